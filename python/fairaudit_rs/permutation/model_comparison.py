"""The result of `compare_models`."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..report.words import number, numbers, p_text, row_count
from ..results.result import Finding
from ..results.verdict import rejects_at
from .excluded_groups import ExcludedGroup, with_left_out

#: Maximum number of groups that are printed with the sentence.
_MOST_LINES = 12
_METHODS = {
    "score": "paired score tests",
    "delta": "delta method for paired rows",
    "inversion": "permutations of what paired rows add",
    "bootstrap-se": "bootstrap standard error of paired rows",
}


@dataclass(frozen=True, kw_only=True)
class ModelValue:
    """The metric of a group with each model, and how it changes."""

    group: Any
    n_rows: int
    #: Rows in the denominator of a rate over the same rows; all rows for other metrics.
    n_used: int
    #: How many of these rows the models decide differently; None for scores.
    n_changed: int | None
    of_first: float
    of_second: float
    #: The second value minus the first.
    change: float
    confidence_interval: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class GapChange:
    """The gap of two groups, first minus second, with each model, and how it changes."""

    first: Any
    second: Any
    gap_of_first: float
    gap_of_second: float
    #: The second gap minus the first, with signs, and the p-value of no change.
    change: float
    change_standard_error: float
    change_interval: tuple[float, float]
    change_pvalue: float
    #: The size of the second gap minus that of the first: negative if the gap became smaller.
    estimate: float
    confidence_interval: tuple[float, float]
    statistic: float
    pvalue: float
    adjusted_pvalue: float

    @property
    def turned(self) -> bool:
        """Return whether the gaps have opposite signs."""
        return self.gap_of_first * self.gap_of_second < 0


@dataclass(frozen=True, kw_only=True)
class OverallChange:
    """The change over all compared rows."""

    #: "accuracy"; "agreement" (the share of rows decided alike) without labels; otherwise the
    #: metric itself.
    measure: str
    of_first: float
    of_second: float
    #: The second value minus the first; for agreement, the share.
    estimate: float
    confidence_interval: tuple[float, float]
    n_rows: int

    def sentence(self, level: float) -> str:
        """Return a sentence on all rows."""
        low, high = self.confidence_interval
        interval = _interval(low, high, level)
        if self.measure == "agreement":
            return f"Both models decide {number(self.estimate)} of the rows alike ({interval})."
        first, second = numbers(self.of_first, self.of_second)
        return (
            f"In all {row_count(self.n_rows)} {self.measure} goes from {first} to {second}, a "
            f"change of {number(self.estimate)} ({interval})."
        )


def _interval(low: float, high: float, level: float) -> str:
    if math.isnan(low):
        return "no interval"
    return f"{100 * level:g} % interval {number(low)} to {number(high)}"


@dataclass(frozen=True, repr=False, eq=False)
class ModelComparison(Finding):
    """The result of `compare_models`; ``estimate`` is below 0 if the gap became smaller.

    Of more than two groups, estimate, statistic, p-value and interval are those of the pair with
    the smallest adjusted p-value.

    Attributes
    ----------
    metric : str
        Name of the metric.
    comparisons : tuple of GapChange
        Every pair of groups: both gaps, the change with its sign, the change of the size.
    values : tuple of ModelValue
        The metric of every group with each model.
    overall : OverallChange
        Accuracy with each model over the compared rows, or its substitute.
    adjust : str
        How p-values of several pairs were adjusted.
    method : str
        ``"score"``, ``"delta"``, ``"inversion"`` or ``"bootstrap-se"``.
    n_resamples : int
        Replicates of each test, or samples of a callable; 0 when the method needs none.
    n_missing : int
        Rows that belong to no group because a sensitive feature is missing.
    confidence_level : float
        Level of the intervals.
    attribute : str
        Names of the sensitive features.
    left_out : tuple of ExcludedGroup
        Groups that are not compared, with their rows and the reason.
    """

    metric: str
    comparisons: tuple[GapChange, ...]
    values: tuple[ModelValue, ...]
    overall: OverallChange
    adjust: str
    method: str
    n_resamples: int
    n_missing: int
    confidence_level: float
    attribute: str
    left_out: tuple[ExcludedGroup, ...] = ()

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        is_one_pair = len(self.comparisons) == 1
        gaps = self._of_pair(self.comparisons[0]) if is_one_pair else self._of_all()
        return f"{gaps} {self.overall.sentence(self.confidence_level)}"

    def _of_pair(self, pair: GapChange) -> str:
        first, second = numbers(pair.gap_of_first, pair.gap_of_second)
        between = _interval(*pair.confidence_interval, self.confidence_level)
        return (
            f"{self.metric}: the gap of {self.sized(pair.first)} minus {self.sized(pair.second)} "
            f"is {first} with the first model and {second} with the second. The change of "
            f"its size by {number(pair.estimate)} ({between}) is {self._verdict(pair)}."
        )

    def _of_all(self) -> str:
        significant = [pair for pair in self.comparisons if self._is_significant(pair)]
        start = (
            f"{self.metric} of {len(self.group_sizes)} groups ({self.sizes()}): of "
            f"{len(self.comparisons):,} gaps,"
        )
        clear = clearest_pair(self.comparisons)
        if not significant:
            return (
                f"{start} none changes its size by more than chance explains at the "
                f"{self._level()} level ({self._tail(clear)}); that alone does not show that they "
                "are the same."
            )
        first, second = numbers(clear.gap_of_first, clear.gap_of_second)
        n, smaller = len(significant), sum(pair.estimate < 0 for pair in significant)
        change = "changes its size" if n == 1 else "change their sizes"
        return (
            f"{start} {n:,} {change} by more than chance explains at the {self._level()} "
            f"level ({smaller:,} smaller, {n - smaller:,} larger). The clearest, "
            f"{self.name_of(clear.first)} minus {self.name_of(clear.second)}, goes from {first} to "
            f"{second} ({self._tail(clear)})."
        )

    def _is_significant(self, pair: GapChange) -> bool:
        return rejects_at(pair.adjusted_pvalue, 1 - self.confidence_level)

    def _level(self) -> str:
        return f"{100 * (1 - self.confidence_level):.3g} %"

    def _tail(self, pair: GapChange) -> str:
        if math.isnan(pair.adjusted_pvalue):
            return "no p-value"
        is_adjusted = len(self.comparisons) > 1 and self.adjust != "none"
        adjusted = " adjusted for all pairs" if is_adjusted else ""
        return f"{p_text(pair.adjusted_pvalue)}{adjusted}"

    @property
    def details(self) -> str:
        """The names of the test and of the adjustment."""
        sides = "two-sided" if self.alternative == "two-sided" else "one-sided"
        adjusted = f"; p-values adjusted by {self.adjust}" if len(self.comparisons) > 1 else ""
        return f"{sides}, {_METHODS[self.method]}{adjusted}"

    def _verdict(self, pair: GapChange) -> str:
        """Return the verdict on a change as text."""
        if math.isnan(pair.adjusted_pvalue):
            return "neither shown nor refuted: too little varies"
        tail = self._tail(pair)
        if self._is_significant(pair):
            return f"more than chance explains at the {self._level()} level ({tail})"
        asked = {"less": "a smaller gap", "greater": "a larger gap"}.get(self.alternative)
        if asked:
            return f"no evidence of {asked} ({tail}); that alone does not show that it is the same"
        return f"within what chance explains ({tail}); that alone does not show that it is the same"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("pairs", "groups")

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per pair of groups, then one per excluded group."""
        changed = {value.group: value.n_changed for value in self.values}
        pairs: list[dict[str, Any]] = [
            {
                "metric": self.metric,
                "first": self.name_of(pair.first),
                "second": self.name_of(pair.second),
                "first_n_rows": self.group_sizes[pair.first],
                "second_n_rows": self.group_sizes[pair.second],
                "first_n_changed": changed[pair.first],
                "second_n_changed": changed[pair.second],
                "gap_of_first": pair.gap_of_first,
                "gap_of_second": pair.gap_of_second,
                "change": pair.change,
                "change_low": pair.change_interval[0],
                "change_high": pair.change_interval[1],
                "change_pvalue": pair.change_pvalue,
                "estimate": pair.estimate,
                "low": pair.confidence_interval[0],
                "high": pair.confidence_interval[1],
                "pvalue": pair.pvalue,
                "adjusted_pvalue": pair.adjusted_pvalue,
                "reason": None,
            }
            for pair in self.comparisons
        ]
        empty = {k: math.nan if isinstance(v, float) else None for k, v in pairs[0].items()}
        return pairs + [
            {
                **empty,
                "metric": self.metric,
                "first": self.name_of(group.group),
                "first_n_rows": group.n_rows,
                "reason": group.reason,
            }
            for group in self.left_out
        ]

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        rows = [
            {
                "metric": self.metric,
                "group": self.name_of(value.group),
                "n_rows": value.n_rows,
                "n_used": value.n_used,
                "n_changed": value.n_changed,
                "of_first": value.of_first,
                "of_second": value.of_second,
                "change": value.change,
                "low": value.confidence_interval[0],
                "high": value.confidence_interval[1],
            }
            for value in self.values
        ]
        return with_left_out(rows, self.left_out, self.name_of)

    def _printed_tables(self) -> Collection[str]:
        """Return the table of groups, if the sentence does not name them all."""
        return ("groups",) if len(self.values) > 2 else ()


def _last_of_all(pvalue: float) -> float:
    """Return the p-value as a sort key; NaN comes last."""
    return math.inf if math.isnan(pvalue) else pvalue


def clearest_pair(comparisons: Sequence[GapChange]) -> GapChange:
    """Return the pair with the smallest adjusted p-value."""
    return min(comparisons, key=lambda change: _last_of_all(change.adjusted_pvalue))
