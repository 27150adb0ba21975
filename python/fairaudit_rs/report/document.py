"""The classes `Document`, `Section`, `Table` and `Column`: a result as data for all renderers.

A result makes its document once; `fairaudit_rs.rendering` turns it into text, Markdown, HTML or
JSON. Renderers format values by the kinds of their columns and compute nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .words import number, p_text

#: What a column holds: "value" is a metric, "pvalue" a p-value, "count" a number of rows or people,
#: "interval" a pair of limits.
Kind = Literal["text", "count", "value", "interval", "pvalue"]


@dataclass(frozen=True)
class Cell:
    """A value with a text of its own, if the column cannot format it."""

    text: str
    value: Any = None


@dataclass(frozen=True)
class Remainder:
    """A text that fills the remaining cells of a row, such as the reason why there is no number."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table: its name in data, its heading, and how its values are written."""

    key: str
    heading: str
    kind: Kind = "text"
    #: A unit that all values share, such as "points"; part of the heading.
    unit: str = ""

    @property
    def is_numeric(self) -> bool:
        """Return whether values are numbers, which are aligned at the right."""
        return self.kind in ("count", "value", "pvalue")

    @property
    def title(self) -> str:
        """The heading with its unit."""
        return f"{self.heading} ({self.unit})" if self.unit else self.heading

    def text(self, value: Any) -> str:
        """Return a value as text; missing values are empty."""
        if isinstance(value, Cell | Remainder):
            return value.text
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        return _FORMATS[self.kind](value)


def _interval_text(limits: tuple[float, float]) -> str:
    low, high = limits
    return "" if math.isnan(low) or math.isnan(high) else f"{number(low)} to {number(high)}"


_FORMATS: dict[str, Callable[[Any], str]] = {
    "text": str,
    "count": lambda value: f"{value:,.{0 if float(value).is_integer() else 1}f}",
    "value": number,
    "interval": _interval_text,
    "pvalue": lambda value: p_text(value).removeprefix("p ").removeprefix("= "),
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of values under typed columns; a row may end early with a `Remainder`."""

    #: The name of the table in `Result.to_frame`, which has all rows.
    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    #: What one row is, for "12 more pairs".
    noun: str = "rows"
    #: How many rows are shown if there are many; None shows all.
    n_shown: int | None = None

    @property
    def shown_rows(self) -> tuple[tuple[Any, ...], ...]:
        """The rows that are shown."""
        return self.rows[: self.n_shown]

    @property
    def n_hidden(self) -> int:
        """The number of rows that are not shown."""
        return len(self.rows) - len(self.shown_rows)

    def texts(self) -> list[list[str]]:
        """Return the headings and the shown rows as text."""
        rows = [
            [column.text(value) for column, value in zip(self.columns, row, strict=False)]
            for row in self.shown_rows
        ]
        return [[column.title for column in self.columns], *rows]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture as data."""

    title: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """Sentences, tables and figures under a title."""

    title: str = ""
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    #: Whether only full outputs contain it: pages and Markdown, but not the printed text.
    is_detail: bool = False


@dataclass(frozen=True, kw_only=True)
class Document:
    """A result: what was found in sentences, then tables, notes, and how it was computed."""

    #: The title of a page.
    title: str
    #: The verdict, with which the first sentence begins; "" without a verdict.
    headline: str = ""
    sentences: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
    #: The names of methods.
    details: str = ""
    #: What repeats the result, such as the seed, by name.
    facts: Mapping[str, str] = field(default_factory=dict)
