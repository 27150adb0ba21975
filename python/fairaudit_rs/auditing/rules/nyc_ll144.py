"""Impact ratios of New York City's Local Law 144 (6 RCNY 5-300 to 5-304): numbers, no threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import arguments
from ...data.groups import group_name
from ...errors import DataError
from .counts import Counts, Selected, checked, highest

#: Categories below this share of the data may be left out of the ratios.
SMALL = Fraction(2, 100)
Kind = Literal["selection", "scoring"]
#: What rates are called, by what a tool does.
RATES: Mapping[Kind, str] = {"selection": "selection rate", "scoring": "scoring rate"}
#: What a table is by, and which of (sex, race or ethnicity) that is.
TABLES = {
    "sex": slice(0, 1),
    "race or ethnicity": slice(1, 2),
    "sex and race or ethnicity": slice(0, 2),
}
REASON = "fewer than 2 % of the people of this table"


@dataclass(frozen=True, kw_only=True)
class Category:
    """A line of the published table; without a ratio where the category is left out."""

    category: Any
    n_applicants: int
    #: Of all people in the table.
    share: float
    rate: float
    impact_ratio: float
    #: Whether it may be left out, and then that number, share and rate are given with the reason.
    small: bool
    left_out: bool
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ImpactTable:
    """A table by sex, by race or ethnicity, or by both."""

    by: str
    kind: Kind
    categories: tuple[Category, ...]
    #: People whose category is not known; they are in no line.
    n_unknown: int

    def rows(self) -> list[dict[str, Any]]:
        """Return the published lines, with the names of the columns."""
        rate = RATES[self.kind]
        return [
            {
                self.by: group_name(one.category),
                "number of applicants": one.n_applicants,
                rate: one.rate,
                "impact ratio": None if math.isnan(one.impact_ratio) else one.impact_ratio,
                "note": one.reason,
            }
            for one in self.categories
        ]

    def to_markdown(self) -> str:
        """Return the published table, with the number of unknown below."""
        lines = [
            f"| {self.by} | number of applicants | {RATES[self.kind]} | impact ratio | note |",
            "|---|---|---|---|---|",
        ]
        for row in self.rows():
            ratio = "-" if row["impact ratio"] is None else f"{row['impact ratio']:.3f}"
            name = str(row[self.by]).replace("|", "\\|")
            lines.append(
                f"| {name} | {row['number of applicants']:,} | {row[RATES[self.kind]]:.3f} | "
                f"{ratio} | {row['note']} |"
            )
        people = "1 person" if self.n_unknown == 1 else f"{self.n_unknown:,} people"
        return "\n".join([*lines, "", f"Not in this table: {people} of unknown {self.by}.", ""])


@dataclass(frozen=True, kw_only=True)
class BiasAudit:
    """What is published: date, source of the data, three tables; no verdict."""

    #: Of the audit, such as 2026-11-20.
    date: str
    #: Source and explanation of the data.
    source: str
    kind: Kind
    tables: tuple[ImpactTable, ...]
    #: The rule sets no threshold.
    verdict: str = "not_asked"

    def to_markdown(self) -> str:
        """Return the summary of results."""
        best = "most selected" if self.kind == "selection" else "highest scoring"
        above = "" if self.kind == "selection" else "share of scores above the median of all, "
        head = [
            f"Bias audit of {self.date}. Data: {self.source}",
            "",
            f"Impact ratio: the {RATES[self.kind]} ({above}by category) over that of the {best} "
            "category. The rule sets no threshold; nothing here passes or fails.",
            "",
        ]
        return "\n".join([*head, *(f"{one.to_markdown()}" for one in self.tables)])


def above_median(scores: ArrayLike) -> NDArray[np.bool_]:
    """Return which scores lie strictly above the median of the full sample."""
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 1 or not len(found) or np.isnan(found).any():
        raise DataError("scores are missing or empty; accepted: a number for every person")
    return np.asarray(found > np.median(found))


def impact_table(
    counts: Counts,
    *,
    by: str,
    kind: Kind = "selection",
    leave_out: bool = False,
    n_unknown: int = 0,
) -> ImpactTable:
    """Return a published table.

    Parameters
    ----------
    counts : dict
        Of each category, how many were selected (or scored above the median) and how many there
        are; without people of unknown category.
    by : str
        What the categories are of.
    kind : {"selection", "scoring"}
        What the tool does.
    leave_out : bool
        Whether categories of fewer than 2 % have no ratio, as the rule allows, and are not the
        ones that others are compared with. Their number, share and rate are given all the same.
    n_unknown : int
        People of unknown category.
    """
    groups = checked(counts, groups=0)
    arguments.choice("kind", kind, RATES)
    everybody = sum(one.total for one in groups.values())
    small = {group for group, one in groups.items() if one.total < SMALL * everybody}
    # Where all categories are small there is nothing to compare the others with.
    outside = small if arguments.flag("leave_out", leave_out) and small != {*groups} else set()
    compared = {group: one for group, one in groups.items() if group not in outside}
    top = compared[highest(compared)].rate if compared else math.nan
    categories = []
    for group, one in groups.items():
        reason = ""
        if group in small:
            reason = f"{'left out' if group in outside else 'may be left out'}: {REASON}"
        ratio = math.nan
        if group not in outside and top:
            ratio = one.rate / top
        elif not top:
            reason = "nobody is selected"
        category = Category(
            category=group,
            n_applicants=one.total,
            share=one.total / everybody,
            rate=one.rate,
            impact_ratio=ratio,
            small=group in small,
            left_out=group in outside,
            reason=reason,
        )
        categories.append(category)
    return ImpactTable(by=by, kind=kind, categories=tuple(categories), n_unknown=n_unknown)


def bias_audit(
    counts: Mapping[tuple[Any, Any], tuple[int, int]],
    *,
    date: str,
    source: str,
    kind: Kind = "selection",
    leave_out: bool = False,
    is_unknown: Callable[[Any], bool] = lambda label: label is None,
) -> BiasAudit:
    """Return the tables by sex, by race or ethnicity, and by both.

    Parameters
    ----------
    counts : dict
        Of each pair (sex, race or ethnicity), unknown ones included, how many were selected (or
        scored above the median) and how many there are.
    date, source : str
        When the audit was made, and what the data are.
    kind, leave_out
        As in `impact_table`.
    is_unknown : callable
        Whether a label says that the category is not known, such as `Policy.is_unknown`.
    """
    pairs = checked(counts, groups=1)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise DataError(f"counts has the group {pair!r}; accepted: pairs of sex and race")
    tables = []
    for by, places in TABLES.items():
        n_unknown, known = 0, dict[Any, Selected]()
        for pair, one in pairs.items():
            key = pair[places]
            if any(map(is_unknown, key)):
                n_unknown += one.total
                continue
            label = key[0] if len(key) == 1 else key
            before = known.get(label, Selected(0, 0))
            known[label] = Selected(before.selected + one.selected, before.total + one.total)
        tables.append(
            impact_table(known, by=by, kind=kind, leave_out=leave_out, n_unknown=n_unknown)
        )
    return BiasAudit(date=date, source=source, kind=kind, tables=tuple(tables))
