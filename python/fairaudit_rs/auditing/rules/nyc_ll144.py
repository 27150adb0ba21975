"""The impact ratios of New York City's Local Law 144 (6 RCNY 5-300 to 5-304)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import arguments
from ...data.groups import attribute_name, group_name
from ...errors import DataError
from ...report.document import Cell, Column, Document, Section, Table
from ...report.words import join_names
from ...results.result import render_result
from ..sentences import fill_part, fill_sentence
from .counts import Counts, SelectionCount, check_counts, highest_rate_group

#: Categories below this share of the data may be excluded from the ratios.
SMALL_SHARE = Fraction(2, 100)
Kind = Literal["selection", "scoring"]
#: The name of the rate, for tools that select and tools that score.
RATES: Mapping[Kind, str] = {"selection": "selection rate", "scoring": "scoring rate"}
#: Why there are no ratios if all rates are 0.
NOBODY: Mapping[Kind, str] = {
    "selection": "nobody is selected",
    "scoring": "nobody scores above the median",
}
#: The kinds of categories in the rule.
SEX, RACE = "sex", "race or ethnicity"
#: The additional ratios if the category with the highest rate is small.
_BOTH = ("ratio with small categories", "ratio without small categories")
SMALL_REASON = "fewer than 2 % of the people of this table"


@dataclass(frozen=True, kw_only=True)
class ImpactLine:
    """A line of the published table; an excluded category has no ratio."""

    category: Any
    n_applicants: int
    #: The share of all people in the table.
    share: float
    rate: float
    impact_ratio: float
    #: The impact ratio if small categories (below 2 %) count towards the highest rate, and if they
    #: do not (NaN for a small category). They differ if the highest rate is that of a small one.
    ratio_with_small: float
    ratio_without_small: float
    #: Whether the category may be excluded, and whether it is; its number, share and rate stay.
    small: bool
    left_out: bool
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ImpactTable:
    """A table by sex, by race or ethnicity, or by both."""

    by: str
    kind: Kind
    categories: tuple[ImpactLine, ...]
    #: People whose category is not known, and who are in no line.
    n_unknown: int
    #: The columns that hold the categories; they precede a category that is a number: black=0.
    attribute: str = ""

    def name_of(self, line: ImpactLine) -> str:
        """Return the name of a category."""
        return group_name(line.category, self.attribute)

    @property
    def compared_with(self) -> ImpactLine | None:
        """The category with ratio 1; None if there are no ratios."""
        found = [category for category in self.categories if not math.isnan(category.impact_ratio)]
        return max(found, key=lambda line: line.rate, default=None)

    @property
    def small_highest(self) -> ImpactLine | None:
        """The category with the highest rate if it is small and another is not; else None."""
        if all(category.small for category in self.categories):
            return None
        top = max(self.categories, key=lambda line: (line.rate, not line.small))
        return top if top.small and top.rate else None

    @property
    def small_note(self) -> str:
        """The reason for two ratios, if the category with the highest rate is small; else ""."""
        top = self.small_highest
        if top is None:
            return ""
        return fill_part(
            "small_note",
            "small_note",
            group=self.name_of(top),
            rate_name=RATES[self.kind],
            rate=f"{top.rate:.3f}",
            n=f"{top.n_applicants:,}",
            n_all=f"{sum(category.n_applicants for category in self.categories):,}",
        )

    def both_ratios(self, line: ImpactLine) -> list[str]:
        """Return the ratios with and without small categories; [] if they are equal."""
        if self.small_highest is None:
            return []
        return [_three_decimals(line.ratio_with_small), _three_decimals(line.ratio_without_small)]

    def rows(self) -> list[dict[str, Any]]:
        """Return the published lines, with the names of the columns."""
        rate = RATES[self.kind]

        def both(line: ImpactLine) -> dict[str, float | None]:
            if self.small_highest is None:
                return {}
            ratios = (line.ratio_with_small, line.ratio_without_small)
            return dict(zip(_BOTH, map(_or_none, ratios), strict=True))

        return [
            {
                self.by: self.name_of(category),
                "number of applicants": category.n_applicants,
                rate: category.rate,
                "impact ratio": _or_none(category.impact_ratio),
                **both(category),
                "note": category.reason,
            }
            for category in self.categories
        ]

    def table(self) -> Table:
        """Return the published table."""
        has_both = self.small_highest is not None
        columns = (
            Column(key="category", heading=self.by),
            Column(key="n_applicants", heading="number of applicants", kind="count"),
            Column(key="rate", heading=RATES[self.kind], kind="value"),
            Column(key="impact_ratio", heading="impact ratio", kind="value"),
            *(Column(key=head, heading=head, kind="value") for head in _BOTH if has_both),
            Column(key="note", heading="note"),
        )
        rows = tuple(
            (
                self.name_of(category),
                category.n_applicants,
                Cell(f"{category.rate:.3f}", category.rate),
                Cell(_three_decimals(category.impact_ratio), category.impact_ratio),
                *map(Cell, self.both_ratios(category)),
                category.reason,
            )
            for category in self.categories
        )
        return Table(name="impact_ratios", columns=columns, rows=rows, noun="categories")

    def section(self, unused: Sequence[str] = ()) -> Section:
        """Return the published table with what it compares, and who is not in it.

        ``unused`` are parts of the design, such as weights, that the rule ignores.
        """
        sentences, top = [], self.compared_with
        if top is not None:
            sentences.append(
                fill_sentence(
                    "ratios_are_to",
                    by=self.by,
                    without=without_parts(unused),
                    group=self.name_of(top),
                    rate_name=RATES[self.kind],
                    rate=f"{top.rate:.3f}",
                )
            )
        if self.small_note:
            sentences.append(f"{self.by}: {self.small_note}")
        is_one = self.n_unknown == 1
        sentences.append(
            fill_sentence(
                "unknown_category",
                by=self.by,
                people="1 applicant" if is_one else f"{self.n_unknown:,} applicants",
                same_by=self.by,
                are="is" if is_one else "are",
            )
        )
        title = f"{RATES[self.kind].capitalize()} by {self.by}"
        return Section(title=title, sentences=tuple(sentences), tables=(self.table(),))

    def to_markdown(self) -> str:
        """Return the published table, with the number of people of unknown category below."""
        return render_result("markdown", Document(title="", sections=(self.section(),)))


@dataclass(frozen=True, kw_only=True)
class BiasAudit:
    """The published bias audit: date, source of the data and tables, without a verdict."""

    #: The date of the audit, such as 2026-11-20; empty if not given.
    date: str
    #: Source and explanation of the data; empty if not given.
    source: str
    #: Tables by sex, by race or ethnicity, and by both, for decisions, scores or both.
    tables: tuple[ImpactTable, ...]
    #: The columns of sex and of race or ethnicity.
    columns: dict[str, str]
    #: What the rule requires and the data lack, with the reason.
    missing: tuple[str, ...] = ()
    #: The rule sets no threshold.
    verdict: str = "not_asked"

    @property
    def head(self) -> list[str]:
        """The lines before the tables: date, source, and the definition of the ratios."""
        lines = []
        if self.date or self.source:
            made = f" of {self.date}" if self.date else ""
            data = fill_part("source_of_data", "source_of_data", source=self.source)
            lines.append(
                fill_sentence("bias_audit", made=made, source_of_data=data * bool(self.source))
            )
        if self.columns:
            found = [f"{what} is column {name!r}" for what, name in self.columns.items()]
            lines.append(fill_sentence("bias_columns", columns="; ".join(found)))
        for kind in dict.fromkeys(table.kind for table in self.tables):
            lines.append(fill_sentence(f"impact_of_{kind}"))
        lines.append(fill_sentence("no_threshold"))
        return [*lines, *(fill_sentence("missing", what=what) for what in self.missing)]

    def rows(self) -> list[dict[str, Any]]:
        """Return the lines of all tables as the rows of one."""
        return [
            {
                "by": table.by,
                "rate_of": table.kind,
                "category": table.name_of(category),
                "n_applicants": category.n_applicants,
                "share": category.share,
                "rate": category.rate,
                "impact_ratio": category.impact_ratio,
                "ratio_with_small": category.ratio_with_small,
                "ratio_without_small": category.ratio_without_small,
                "left_out": category.left_out,
                "n_unknown": table.n_unknown,
                "reason": category.reason or None,
            }
            for table in self.tables
            for category in table.categories
        ]

    def to_markdown(self) -> str:
        """Return the summary of results."""
        sections = (Section(sentences=tuple(self.head)), *(t.section() for t in self.tables))
        return render_result("markdown", Document(title="", sections=sections))


def without_parts(unused: Sequence[str]) -> str:
    """Return the remark on parts of the design, such as weights, that the rule ignores."""
    return fill_part("without", "without", parts=join_names(list(unused))) if unused else ""


def above_median(scores: ArrayLike) -> NDArray[np.bool_]:
    """Return a mask of the scores strictly above the median of the full sample."""
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 1 or not len(found) or np.isnan(found).any():
        raise DataError(
            "scores must be one number per person, without missing values", argument="scores"
        )
    return np.asarray(found > np.median(found))


def impact_table(
    counts: Counts,
    *,
    by: str,
    kind: Kind = "selection",
    leave_out: bool = False,
    n_unknown: int = 0,
    attribute: str = "",
) -> ImpactTable:
    """Return a published table.

    Parameters
    ----------
    counts : dict
        For each category, the number selected (or scored above the median) and of people, without
        people of unknown category.
    by : str
        The kind of category, such as "sex".
    kind : {"selection", "scoring"}
        Whether the tool selects or scores.
    leave_out : bool
        Whether categories of fewer than 2 % have no ratio, as the rule allows, and do not serve as
        the highest rate. Their number, share and rate are still reported.
    n_unknown : int
        People of unknown category.
    attribute : str
        The columns of the categories.
    """
    groups = check_counts(counts, groups=0)
    arguments.choice("kind", kind, RATES)
    everybody = sum(count.total for count in groups.values())
    small = {group for group, count in groups.items() if count.total < SMALL_SHARE * everybody}
    # If all categories are small, none is excluded.
    excluded = small if arguments.flag("leave_out", leave_out) and small != {*groups} else set()
    compared = {group: count for group, count in groups.items() if group not in excluded}
    large = {group: count for group, count in groups.items() if group not in small}
    highest_rates = [
        found[highest_rate_group(found)].rate if found else math.nan for found in (groups, large)
    ]
    highest_rate = compared[highest_rate_group(compared)].rate if compared else math.nan
    categories = []
    for group, count in groups.items():
        reason = ""
        if group in small:
            reason = f"{'left out' if group in excluded else 'may be left out'}: {SMALL_REASON}"
        ratio = math.nan
        if group not in excluded and highest_rate:
            ratio = count.rate / highest_rate
        elif not highest_rate:
            reason = NOBODY[kind]
        category = ImpactLine(
            category=group,
            n_applicants=count.total,
            share=count.total / everybody,
            rate=count.rate,
            impact_ratio=ratio,
            ratio_with_small=_ratio(count.rate, highest_rates[0]),
            ratio_without_small=math.nan
            if group in small
            else _ratio(count.rate, highest_rates[1]),
            small=group in small,
            left_out=group in excluded,
            reason=reason,
        )
        categories.append(category)
    return ImpactTable(
        by=by,
        kind=kind,
        categories=tuple(categories),
        n_unknown=n_unknown,
        attribute=attribute,
    )


def _ratio(rate: float, highest: float) -> float:
    """Return a rate over the highest rate; NaN if that is 0 or NaN."""
    return rate / highest if highest else math.nan


def _three_decimals(ratio: float) -> str:
    """Return a ratio for a table."""
    return "-" if math.isnan(ratio) else f"{ratio:.3f}"


def _or_none(ratio: float) -> float | None:
    return None if math.isnan(ratio) else ratio


def impact_tables(
    counts: Mapping[tuple[Any, ...], tuple[int, int]],
    *,
    column_of_kind: Mapping[str, str],
    kind: Kind = "selection",
    leave_out: bool = False,
    is_unknown: Callable[[Any], bool] = lambda label: label is None,
) -> tuple[ImpactTable, ...]:
    """Return the tables by sex, by race or ethnicity, and by both, or one table if one is known.

    Parameters
    ----------
    counts : dict
        For each pair (sex, race or ethnicity), including unknown ones, the number selected (or
        scored above the median) and of people.
    of : dict
        The kinds of category in the order of the pairs, with their columns.
    kind, leave_out
        As in `impact_table`.
    is_unknown : callable
        Returns whether a value means an unknown category, such as `Policy.is_unknown`.
    """
    people = check_counts(counts, groups=1)
    for key in people:
        if not isinstance(key, tuple) or len(key) != len(column_of_kind):
            raise DataError(
                f"counts has the group {key!r}; accepted: tuples of {' and '.join(column_of_kind)}",
                argument="counts",
            )
    tables = []
    for names in dict.fromkeys([*((name,) for name in column_of_kind), tuple(column_of_kind)]):
        n_unknown, known = 0, dict[Any, SelectionCount]()
        for key, count in people.items():
            chosen = tuple(
                part for part, name in zip(key, column_of_kind, strict=True) if name in names
            )
            if any(map(is_unknown, chosen)):
                n_unknown += count.total
                continue
            label = chosen[0] if len(chosen) == 1 else chosen
            before = known.get(label, SelectionCount(0, 0))
            known[label] = SelectionCount(
                before.selected + count.selected, before.total + count.total
            )
        table = impact_table(
            known,
            by=" and ".join(names),
            kind=kind,
            leave_out=leave_out,
            n_unknown=n_unknown,
            attribute=attribute_name([column_of_kind[name] for name in names]),
        )
        tables.append(table)
    return tuple(tables)
