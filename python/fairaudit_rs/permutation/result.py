"""What a permutation test found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.groups import group_name
from ..results.result import Finding
from ..results.verdict import rejects
from ..results.words import number, p_text
from .left_out import LeftOut


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
class PermutationResult(Finding):
    """What `permutation_test` found; see there for what the numbers mean.

    Attributes
    ----------
    metric : str
        Name of the metric.
    values : tuple of GroupValue
        The metric of each group; of a joint criterion each component; none for a correlation.
    comparisons : tuple of Comparison
        Pairs of groups with raw and adjusted p-values; the one pair of a two-group test.
    pvalue_interval : tuple of float
        Clopper-Pearson interval (99 %) of the p-value that infinitely many replicates would
        give; of width 0 when the engine is exact.
    n_resamples : int
        Replicates of each test; 0 when the engine is exact.
    n_undefined : int
        Replicates in which the metric had no value; they count as extreme.
    n_missing : int
        Rows that belong to no group because a sensitive feature is missing.
    adjust, studentize, interval : str
        How p-values were adjusted, how the statistic was scaled, which interval is given.
    exchanged : str
        Which rows exchanged their groups.
    attribute : str
        Names of the sensitive features.
    confidence_level : float
        Level of the intervals.
    inconclusive : str or None
        Why there is no p-value: the data are too few for what they seem to show.
    null_distribution : ndarray
        The statistic of every replicate, or every value that it can take when the engine is
        exact; then ``null_probabilities`` holds their probabilities.
    left_out : tuple of LeftOut
        Groups that are not compared, with their rows and the reason.
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
    left_out: tuple[LeftOut, ...] = ()

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        low, high = self.confidence_interval
        test = {
            "exact": "exact permutation test",
            "melded": f"test by melded limits, {self.n_resamples:,} draws",
        }.get(self.engine, f"permutation test, {self.n_resamples:,} replicates")
        alpha = 1 - self.confidence_level
        sides = "two-sided" if self.alternative == "two-sided" else "one-sided"
        tail = f"{p_text(self.pvalue)}, {sides} {test}"
        between = (
            "no interval"
            if math.isnan(low)
            else f"{100 * self.confidence_level:g} % interval {number(low)} to {number(high)}"
        )
        found = rejects(self.pvalue, alpha)
        if self.inconclusive is not None:
            tail = f"{sides} {test}"
        direction = {"greater": " above 0", "less": " below 0"}.get(self.alternative, "")
        if self.inconclusive is not None:
            verdict = f"inconclusive: {self.inconclusive}"
        elif found:
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
                f"{self.attribute} over {self.n_rows:,} rows ({between}) is {verdict} ({tail})."
            )
        n_groups = len(self.group_sizes)
        if len(self.values) > n_groups:
            who = (
                " and ".join(map(group_name, self.group_sizes))
                if n_groups == 2
                else f"{n_groups} groups"
            )
            return (
                f"{self.metric} of {who}: the differences in {self._components()}, taken together "
                f"(largest {gap} {number(self.estimate)}, {between}), are {verdict} ({tail})."
            )
        if n_groups == 2:
            first, second = self.values
            return (
                f"{self.metric}: {number(first.value)} for {group_name(first.group)} and "
                f"{number(second.value)} for {group_name(second.group)}. The {gap} of "
                f"{number(self.estimate)} ({between}) is {verdict} ({tail})."
            )
        least = min(self.values, key=lambda v: v.value)
        most = max(self.values, key=lambda v: v.value)
        return (
            f"{self.metric} of {len(self.values)} groups: from {number(least.value)} for "
            f"{group_name(least.group)} to {number(most.value)} for {group_name(most.group)}. "
            f"The differences (largest {gap} {number(self.estimate)}, {between}) are {verdict} "
            f"({tail})."
        )

    def _components(self) -> str:
        names = list(dict.fromkeys(value.metric for value in self.values))
        return " and ".join([", ".join(names[:-1]), names[-1]])

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per pair of groups; with more than two, first that of all groups.

        A correlation has one row; a joint criterion shows no values of groups. Groups that are left
        out come last, without a value, ``inconclusive`` being the reason.
        """
        joint = len(self.values) > len(self.group_sizes)
        values = {value.group: math.nan if joint else value.value for value in self.values}
        pairs = [
            {
                "metric": self.metric,
                "comparison": "pair",
                "first": group_name(pair.first),
                "second": group_name(pair.second),
                "first_value": values[pair.first],
                "second_value": values[pair.second],
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
            for pair in self.comparisons
        ]
        left_out = [self._row_of_left_out(one) for one in self.left_out]
        if len(self.group_sizes) == 2:
            return [*pairs, *left_out]
        everything = {
            "comparison": "all groups" if self.values else "correlation",
            "first": None,
            "second": None,
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

    def _row_of_left_out(self, one: LeftOut) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "comparison": "left out",
            "first": group_name(one.group),
            "second": None,
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
            "inconclusive": one.reason,
        }
