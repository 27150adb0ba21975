"""Documents as a fragment of HTML for notebooks; every number keeps its full value."""

from __future__ import annotations

import html
import math
from typing import Any

from ..data.groups import escape_controls
from ..report.document import Cell, Column, Document, Section, Table


def render(document: Document) -> str:
    """Return a document as a fragment of HTML with all its sections."""
    sentences = "".join(_paragraph(text) for text in document.sentences)
    if document.headline:
        sentences = f"<p><b>{_escape(document.headline)}</b></p>{sentences}"
    sections = "".join(map(_section, document.sections))
    notes = "".join(_paragraph(f"Note: {note}.") for note in document.notes)
    details = _paragraph(f"Details: {document.details}.") if document.details else ""
    return f"<div>{sentences}{sections}{notes}{details}</div>"


def _section(section: Section) -> str:
    title = f"<h4>{_escape(section.title)}</h4>" if section.title else ""
    sentences = "".join(map(_paragraph, section.sentences))
    return f"{title}{sentences}{''.join(map(_table, section.tables))}"


def _table(table: Table) -> str:
    heads = "".join(f"<th>{_escape(column.title)}</th>" for column in table.columns)
    body = "".join(f"<tr>{_row(table, row)}</tr>" for row in table.shown_rows)
    hidden = f"<p>{table.n_hidden:,} more {table.noun}</p>" if table.n_hidden else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{hidden}"


def _row(table: Table, row: tuple[Any, ...]) -> str:
    cells = [_cell(column, value) for column, value in zip(table.columns, row, strict=False)]
    n_missing = len(table.columns) - len(row)
    if n_missing:
        # The last cell is a text that fills the remaining columns.
        cells[-1] = f'<td colspan="{n_missing + 1}">{_escape(row[-1].text)}</td>'
    return "".join(cells)


def _cell(column: Column, value: Any) -> str:
    text = _escape(column.text(value))
    numbers = _numbers_of(value.value if isinstance(value, Cell) else value)
    if text and numbers:
        text = f'<data value="{" ".join(numbers)}">{text}</data>'
    return f"<td>{text}</td>"


def _numbers_of(value: Any) -> list[str]:
    """Return the finite numbers of a cell in full; both limits of an interval."""
    values = value if isinstance(value, tuple) else (value,)
    are_numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in values)
    if not (are_numbers and all(map(math.isfinite, values))):
        return []
    return [repr(x if type(x) is int else float(x)) for x in values]


def _paragraph(text: str) -> str:
    return f"<p>{_escape(text)}</p>"


def _escape(text: str) -> str:
    return html.escape(escape_controls(text))
