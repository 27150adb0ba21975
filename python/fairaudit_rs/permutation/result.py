"""The result of `permutation_test`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..report.words import note_on_disagreement, number, p_text, row_count
from ..results.verdict import rejects_at
from .excluded_groups import ExcludedGroup, with_left_out
from .within_strata import PairWithinStrata, StratifiedFinding


@dataclass(frozen=True, kw_only=True)
class GroupValue:
    """The metric of one group."""

    group: Any
    value: float
    standard_error: float
    n_rows: int
    #: Rows in the denominator of a proportion; all rows for other metrics.
    n_used: int
    metric: str
    #: Method of the interval: "score", "mover", or "delta" (normal distribution; too short for
    #: skewed values, for which `intervals` is better); "" without an interval.
    interval: str
    confidence_interval: tuple[float, float]

    def row(self, name: str) -> dict[str, Any]:
        """Return the value as a table row, with the name of the group."""
        return {
            "metric": self.metric,
            "group": name,
            "n_rows": self.n_rows,
            "n_used": self.n_used,
            "value": self.value,
            "standard_error": self.standard_error,
            "low": self.confidence_interval[0],
            "high": self.confidence_interval[1],
            "interval": self.interval,
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The difference of two groups, ``first`` minus ``second``."""

    first: Any
    second: Any
    estimate: float
    standard_error: float
    statistic: float
    pvalue: float
    adjusted_pvalue: float
    confidence_interval: tuple[float, float]
    engine: str
    n_undefined: int
    #: Why there is no p-value.
    inconclusive: str | None = None


@dataclass(frozen=True, repr=False, eq=False)
class PermutationResult(StratifiedFinding):
    """The result of `permutation_test`.

    Attributes
    ----------
    metric : str
        Name of the metric.
    values : tuple of GroupValue
        The metric of each group (for a joint criterion, each component); empty for a correlation.
    comparisons : tuple of Comparison
        Pairs of groups with raw and adjusted p-values; the one pair of a two-group test.
    pvalue_interval : tuple of float
        Clopper-Pearson interval (99 %) of the p-value with infinitely many replicates; of width 0
        when the engine is exact.
    n_resamples : int
        Replicates of each test; 0 when the engine is exact.
    n_undefined : int
        Replicates in which the metric had no value; they count as extreme.
    n_missing : int
        Rows that belong to no group because a sensitive feature is missing.
    adjust, studentize, interval : str
        How p-values were adjusted, how the statistic was scaled, and the interval method.
    exchanged : str
        Which rows exchanged their groups.
    attribute : str
        Names of the sensitive features.
    confidence_level : float
        Level of the intervals.
    inconclusive : str or None
        Why there is no p-value, usually because there are too few data; else None.
    null_distribution : ndarray
        The statistic of every replicate; when the engine is exact, all its possible values, with
        their probabilities in ``null_probabilities``.
    left_out : tuple of ExcludedGroup
        Groups that are not compared, with their rows and the reason.
    within : tuple of PairWithinStrata
        With strata of your own: for each pair its values within strata and in every stratum, and
        the test whether the gap is the same in all. ``values`` are crude: over all rows of a group.
    """

    metric: str
    values: tuple[GroupValue, ...]
    comparisons: tuple[Comparison, ...]
    pvalue_interval: tuple[float, float]
    n_resamples: int
    n_undefined: int
    n_missing: int
    adjust: str
    studentize: str
    interval: str
    exchanged: str
    attribute: str
    confidence_level: float
    inconclusive: str | None
    null_distribution: NDArray[np.float64]
    null_probabilities: NDArray[np.float64] | None
    left_out: tuple[ExcludedGroup, ...] = ()
    within: tuple[PairWithinStrata, ...] = ()

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        low, high = self.confidence_interval
        alpha = 1 - self.confidence_level
        tail = f" ({p_text(self.pvalue)})"
        between = (
            "no interval"
            if math.isnan(low)
            else f"{100 * self.confidence_level:g} % interval {number(low)} to {number(high)}"
        )
        rejected = rejects_at(self.pvalue, alpha)
        direction = {"greater": " above 0", "less": " below 0"}.get(self.alternative, "")
        beside = note_on_disagreement(self.confidence_interval, rejected)
        if self.inconclusive is not None:
            tail, beside = "", ""
            verdict = f"inconclusive: {self.inconclusive}"
        elif rejected:
            verdict = f"more than chance explains{direction} at the {100 * alpha:.3g} % level"
        elif direction:
            verdict = f"no evidence of a gap{direction}; that alone does not show equality"
        else:
            verdict = "within what chance explains; that alone does not show equality"
        within = self.exchanged.partition(" with equal ")[2]
        gap = f"gap within equal {within}" if within else "gap"
        if not self.values:
            within = f" within equal {within}" if within else ""
            return (
                f"{self.metric}: a correlation of {number(self.estimate)}{within} with "
                f"{self.attribute} over {row_count(self.n_rows)} ({between}) is {verdict}"
                f"{tail}.{beside}"
            )
        n_groups = len(self.group_sizes)
        if self._is_joint:
            who = (
                " and ".join(map(self.sized, self.group_sizes))
                if n_groups == 2
                else f"{n_groups} groups ({self.sizes()})"
            )
            return (
                f"{self.metric} of {who}: the differences in {self._components()}, taken together "
                f"(largest {gap} {number(self.estimate)}, {between}), are {verdict}{tail}.{beside}"
            )
        if n_groups == 2:
            values = [value.value for value in self.values]
            if self.within:
                values = [self.within[0].first_value, self.within[0].second_value]
            first, second = (
                f"{number(value)} for {self.name_of(group_value.group)} "
                f"({row_count(group_value.n_rows, group_value.n_used)})"
                for group_value, value in zip(self.values, values, strict=True)
            )
            strata = " within strata" if self.within else " of all rows" if within else ""
            return (
                f"{self.metric}{strata}: {first} and {second}. The {gap} of "
                f"{number(self.estimate)} ({between}) is {verdict}{tail}.{beside}"
            )
        return (
            f"{self.metric} of {n_groups} groups ({self.sizes()}): {self._range()}. "
            f"The differences (largest {gap} {number(self.estimate)}, {between}) are {verdict}"
            f"{tail}.{beside}"
        )

    @property
    def details(self) -> str:
        """The names of the test and of the interval."""
        test = {
            "exact": "exact permutation test",
            "melded": f"test by melded limits, {self.n_resamples:,} draws",
        }.get(self.engine, f"permutation test, {self.n_resamples:,} replicates")
        sides = "two-sided" if self.alternative == "two-sided" else "one-sided"
        interval = "" if math.isnan(self.confidence_interval[0]) else f"; interval: {self.interval}"
        return f"{sides} {test}{interval}"

    def _range(self) -> str:
        """Return the range of the values as text."""
        least = min(self.values, key=lambda v: v.value)
        most = max(self.values, key=lambda v: v.value)
        if least.value == most.value:
            return f"{number(least.value)} for all of them"
        return (
            f"from {number(least.value)} for {self.name_of(least.group)} to {number(most.value)} "
            f"for {self.name_of(most.group)}"
        )

    @property
    def _is_joint(self) -> bool:
        return len(self.values) > len(self.group_sizes)

    def _components(self) -> str:
        names = list(dict.fromkeys(value.metric for value in self.values))
        return " and ".join([", ".join(names[:-1]), names[-1]])

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per pair of groups; with more than two groups, first one for all groups.

        A correlation has one row; a joint criterion has no group values. Excluded groups come last,
        without a value and with the reason in ``inconclusive``.
        """
        joint = self._is_joint
        values = {value.group: math.nan if joint else value.value for value in self.values}
        compared = [(values[pair.first], values[pair.second]) for pair in self.comparisons]
        if self.within:
            compared = [(pair.first_value, pair.second_value) for pair in self.within]
        pairs = [
            {
                "metric": self.metric,
                "comparison": "pair",
                "first": self.name_of(pair.first),
                "second": self.name_of(pair.second),
                "first_n_rows": self.group_sizes[pair.first],
                "second_n_rows": self.group_sizes[pair.second],
                "first_value": first,
                "second_value": second,
                "estimate": pair.estimate,
                "standard_error": pair.standard_error,
                "low": pair.confidence_interval[0],
                "high": pair.confidence_interval[1],
                "statistic": pair.statistic,
                "pvalue": pair.pvalue,
                "adjusted_pvalue": pair.adjusted_pvalue,
                "engine": pair.engine,
                "n_undefined": pair.n_undefined,
                "inconclusive": pair.inconclusive,
            }
            for pair, (first, second) in zip(self.comparisons, compared, strict=True)
        ]
        left_out = [self._row_of_excluded(group) for group in self.left_out]
        if len(self.group_sizes) == 2:
            return [*pairs, *left_out]
        everything = {
            "comparison": "all groups" if self.values else "correlation",
            "first": None,
            "second": None,
            "first_n_rows": None,
            "second_n_rows": None,
            "first_value": None,
            "second_value": None,
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": self.confidence_interval[0],
            "high": self.confidence_interval[1],
            "statistic": self.statistic,
            "pvalue": self.pvalue,
            "adjusted_pvalue": None,
            "engine": self.engine,
            "n_undefined": self.n_undefined,
            "inconclusive": self.inconclusive,
        }
        return [{"metric": self.metric, **everything}, *pairs, *left_out]

    def _document_rows(self, table: str) -> Sequence[dict[str, Any]]:
        """Return the rows of a table; the sentence has the test of all groups together."""
        rows = self._rows_of(table)
        return [row for row in rows if row.get("comparison") != "all groups"]

    def _row_of_excluded(self, group: ExcludedGroup) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "comparison": "left out",
            "first": self.name_of(group.group),
            "second": None,
            "first_n_rows": group.n_rows,
            "second_n_rows": None,
            "first_value": math.nan,
            "second_value": None,
            "estimate": math.nan,
            "standard_error": math.nan,
            "low": math.nan,
            "high": math.nan,
            "statistic": math.nan,
            "pvalue": math.nan,
            "adjusted_pvalue": None,
            "engine": None,
            "n_undefined": None,
            "inconclusive": group.reason,
        }

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group; for a joint criterion, one per group and component."""
        rows = [value.row(self.name_of(value.group)) for value in self.values]
        return with_left_out(rows, self.left_out, self.name_of)
