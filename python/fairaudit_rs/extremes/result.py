"""The result of `extreme_test`, with its sentence, tables and charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..data.groups import group_name
from ..literals import TailPicture
from ..report.words import limits_text, numbers, p_text, row_count
from ..results.chart import Chart
from ..results.result import Finding
from ..results.verdict import rejects_at
from .augment import AugmentedTail
from .problem import ReturnLevel, rows_text
from .tail import TailFit, draw_tails, level_row

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class TailComparison:
    """The extreme counterfactual discrimination of two groups: ``first`` minus ``second``.

    Attributes
    ----------
    first, second : Any
        The groups.
    estimate, low, high : float
        The difference of their return levels with its interval; NaN where there is a `reason`.
    statistic, pvalue, adjusted_pvalue : float
        The test of the result's null hypothesis.
    pvalue_is_bound : bool
        Whether the p-value is only an upper bound, because the table of critical values ends there.
    method : str
        ``"order statistics"``, ``"fit"``, or both, the first group's method first. With
        ``null="equal_laws"`` it is the method of the interval.
    fitted, fitted_low, fitted_high, fitted_pvalue : float
        Estimate, interval and p-value by the fits of both groups, if `method` includes order
        statistics; NaN otherwise.
    reason : str
        Why it is not measurable; "" where it is.
    """

    first: Any
    second: Any
    estimate: float
    low: float
    high: float
    statistic: float
    pvalue: float
    adjusted_pvalue: float
    pvalue_is_bound: bool
    method: str
    fitted: float
    fitted_low: float
    fitted_high: float
    fitted_pvalue: float
    reason: str


@dataclass(frozen=True, kw_only=True)
class GroupMean:
    """A mean of the discrimination of a group's rows, with its standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class ExtremeResult(Finding):
    """The result of `extreme_test`; its notes explain the numbers.

    Attributes
    ----------
    estimate : float
        The extreme counterfactual discrimination (ECD): the difference of the return levels of the
        two groups with the clearest difference (the smallest p-value); also ``ecd``.
    comparisons : tuple of TailComparison
        All pairs, with adjusted p-values.
    tails : dict of TailFit
        The tail of each group.
    acd, cvar : dict of GroupMean
        For each group, the mean discrimination, and the mean of its worst 5 % of rows.
    horizon : float
        The horizon in rows (interactions).
    null : str
        ``"equal_levels"`` or ``"equal_laws"``.
    attribute : str
        The attribute that is flipped, else the features that define the groups.
    upper : float, "row" or None
        The known upper end of the discrimination.
    n_no_room : dict of int
        With ``upper="row"``, the number of excluded rows of each group: their score is 1.
    augmented : dict of AugmentedTail
        For each group, the tail with generated rows; no other number depends on them. Empty
        without a generator.
    n_resamples : int
        Replicates of ``null="equal_laws"``; 0 for other tests.
    confidence_level : float
        Level of the intervals.
    grouped_by : str
        Names of the features that define the groups.
    """

    comparisons: tuple[TailComparison, ...]
    tails: dict[Any, TailFit]
    acd: dict[Any, GroupMean]
    cvar: dict[Any, GroupMean]
    horizon: float
    null: str
    attribute: str
    upper: float | str | None
    n_no_room: dict[Any, int]
    augmented: dict[Any, AugmentedTail]
    n_resamples: int
    n_missing: int
    confidence_level: float
    grouped_by: str

    _derived = ("warnings", "levels")

    @property
    def ecd(self) -> float:
        """The extreme counterfactual discrimination: `estimate`."""
        return self.estimate

    @cached_property
    def levels(self) -> dict[Any, ReturnLevel]:
        """For each group, the level that one row in `horizon` exceeds."""
        return {group: tail.level(self.horizon) for group, tail in self.tails.items()}

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("pairs", "groups", "return_levels")

    @property
    def clearest(self) -> TailComparison:
        """The pair with the clearest difference: the smallest p-value."""
        return find_clearest(self.comparisons)

    @property
    def return_levels(self) -> pl.DataFrame:
        """Return levels of horizons from 10 to 1,000,000 rows by group, with their limits."""
        return self.to_frame("return_levels")

    def _rows_of(self, table: str) -> Sequence[dict[str, Any]]:
        if table != "return_levels":
            return super()._rows_of(table)
        return [
            {"group": self.name_of(group), **level_row(level)}
            for group, tail in self.tails.items()
            for level in tail.return_levels
        ]

    def _document_rows(self, table: str) -> Sequence[dict[str, Any]]:
        """Return the rows of a table; the rows that a level rests on are those in the tail."""
        rows = self._rows_of(table)
        if table != "groups":
            return rows
        names = {"n_used": "n_exceedances", "value": "level"}
        return [{names.get(key, key): value for key, value in row.items()} for row in rows]

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        found = self.clearest
        first, second = self.name_of(found.first), self.name_of(found.second)
        m = rows_text(self.horizon)
        alpha = 1 - self.confidence_level
        pairs = sum(not comparison.reason for comparison in self.comparisons)
        among = f", the clearest difference of {pairs} pairs of groups" if pairs > 1 else ""
        p = p_text(self.pvalue)
        if found.pvalue_is_bound:
            p = p.replace("p = ", "p at most ")
        if found.pvalue_is_bound and not rejects_at(self.pvalue, alpha):
            verdict = "not decided: the cuts that p-values are read off end before it"
        elif rejects_at(self.pvalue, alpha):
            verdict = f"more than chance explains at the {100 * alpha:.3g} % level"
        else:
            verdict = "within what chance explains; that alone does not show equality"
        levels = []
        for group in (found.first, found.second):
            level = self.levels[group]
            value, low, high = numbers(level.value, level.low, level.high)
            limits = limits_text(level.low, level.high, (low, high))
            of = f"{row_count(self.group_sizes[group])}; {level.standing}, {limits}"
            levels.append(f"{value} in {self.name_of(group)} ({of})")
        gap, low, high = numbers(found.estimate, *self.confidence_interval)
        limits = limits_text(*self.confidence_interval, (low, high))
        interval = f"{100 * self.confidence_level:g} % interval {limits}"
        return (
            f"Extreme counterfactual discrimination by {self.attribute}: 1 row in {m} exceeds "
            f"{levels[0]} and {levels[1]}. The difference of {gap}, {first} minus {second} "
            f"({interval}){among}, is {verdict} ({p})."
        )

    @property
    def details(self) -> str:
        """The name of the test."""
        word = "equal laws" if self.null == "equal_laws" else "equal return levels"
        return f"test of {word}"

    def name_of(self, group: Any) -> str:
        """Return the display name of a group."""
        return group_name(group, self.grouped_by)

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group, with the level that one row in `horizon` exceeds."""
        tails, levels = self.tails, self.levels
        return [
            {
                "group": self.name_of(group),
                "n_rows": n,
                "n_used": tails[group].n_exceedances if group in tails else 0,
                "value": levels[group].value if group in levels else math.nan,
                "low": levels[group].low if group in levels else math.nan,
                "high": levels[group].high if group in levels else math.nan,
                "standing": levels[group].standing if group in levels else "",
                "mean": self.acd[group].value if group in self.acd else math.nan,
                "mean_of_worst": self.cvar[group].value if group in self.cvar else math.nan,
            }
            for group, n in self.group_sizes.items()
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each pair of groups."""
        return [
            {
                "first": self.name_of(comparison.first),
                "second": self.name_of(comparison.second),
                "first_n_rows": self.group_sizes.get(comparison.first),
                "second_n_rows": self.group_sizes.get(comparison.second),
                "horizon": self.horizon,
                "estimate": comparison.estimate,
                "low": comparison.low,
                "high": comparison.high,
                "statistic": comparison.statistic,
                "pvalue": comparison.pvalue,
                "adjusted_pvalue": comparison.adjusted_pvalue,
                "pvalue_is_bound": comparison.pvalue_is_bound,
                "method": comparison.method,
                "fitted": comparison.fitted,
                "fitted_low": comparison.fitted_low,
                "fitted_high": comparison.fitted_high,
                "fitted_pvalue": comparison.fitted_pvalue,
                "reason": comparison.reason,
            }
            for comparison in self.comparisons
        ]

    def plot(self, kind: TailPicture = "return_level") -> Chart:
        """Return a chart of all groups.

        Parameters
        ----------
        kind : {"return_level", "qq", "density", "stability"}
            See `TailFit.plot`.

        Returns
        -------
        Chart
            Shown in notebooks, and saved by ``save``.
        """
        from .. import arguments
        from .tail import PICTURES

        return draw_tails(arguments.choice("kind", kind, PICTURES), self.tails)


def find_clearest(comparisons: tuple[TailComparison, ...]) -> TailComparison:
    """Return the pair with the smallest p-value; among equals, with the largest absolute ECD."""
    known = [comparison for comparison in comparisons if not math.isnan(comparison.pvalue)]
    return min(
        known or comparisons,
        key=lambda comparison: (comparison.adjusted_pvalue, -abs(comparison.estimate)),
    )
