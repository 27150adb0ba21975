"""What a projection test found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.groups import group_name
from ..results.chart import Chart
from ..results.result import Finding
from ..results.verdict import rejects
from ..results.words import number, p_text
from .moves import Moves, MoveSummary


@dataclass(frozen=True, kw_only=True)
class CriterionValue:
    """One criterion: two rates that must be equal, ``first`` minus ``second``.

    A criterion of your own has a name and a gap only.
    """

    name: str
    attribute: str
    first: Any
    second: Any
    first_value: float
    second_value: float
    gap: float
    standard_error: float
    confidence_interval: tuple[float, float]
    #: The gaps that count as fair.
    tolerance: tuple[float, float]


@dataclass(frozen=True, repr=False, eq=False)
class ProjectionResult(Finding):
    """What `projection_test` found; see there for what the numbers mean.

    Attributes
    ----------
    statistic : float
        s_N = N P: the sum of the moved fractions times their distances.
    distance : float
        P, the distance from the data to the nearest fair distribution; infinite when no movement
        makes the criteria hold.
    pvalue : float
        NaN when the test is inconclusive.
    critical_value : float
        The limit law rejects when the statistic exceeds it (at the level 1 - confidence_level);
        NaN for ``calibration="permutation"``, which compares other costs.
    primal_value, dual_value, duality_gap : float
        The certificate of the statistic: the cost of the plan, a lower bound for any plan, and
        their difference.
    residual : float
        What the plan leaves of the worst criterion, by rounding.
    bandwidth : float
        Of the kernel estimate of the density of the margins at the boundary.
    sensitivity : tuple of (float, float)
        What the limit law gives at half, once and twice the bandwidth, as (bandwidth, p-value);
        also when the test is inconclusive, so that nothing is hidden: these are then no p-values.
    effective_rows : float
        Effective number of rows in the window, of the criterion that has the fewest.
    moves : Moves
        The smallest set of rows, and the smallest moves, that remove the bias.
    moved : tuple of MoveSummary
        The moves by group, label and direction.
    criteria : tuple of CriterionValue
        The gaps that must vanish.
    inconclusive : str or None
        Why there is no p-value.
    notion, calibration, attribute : str
        What was asked.
    n_missing : int
        Rows that belong to no group because a sensitive feature is missing.
    n_resamples, n_undefined : int
        Replicates of ``calibration="permutation"``, and those whose gaps cannot be removed, which
        count as extreme.
    pvalue_interval : tuple of float
        Clopper-Pearson interval (99 %) of the p-value of infinitely many replicates.
    confidence_level : float
        Level of the intervals, and of the critical value.
    histogram : ndarray
        Weight of the signed margins by group (rows) in equal bins around the boundary.
    histogram_limit : float
        They reach from minus this to this.
    null_distribution : ndarray
        With ``calibration="permutation"``, what it costs to remove the gaps of each replicate.
    """

    distance: float
    critical_value: float
    primal_value: float
    dual_value: float
    duality_gap: float
    residual: float
    bandwidth: float
    sensitivity: tuple[tuple[float, float], ...]
    effective_rows: float
    moves: Moves
    moved: tuple[MoveSummary, ...]
    criteria: tuple[CriterionValue, ...]
    inconclusive: str | None
    notion: str
    calibration: str
    attribute: str
    n_missing: int
    n_resamples: int
    n_undefined: int
    pvalue_interval: tuple[float, float]
    confidence_level: float
    histogram: NDArray[np.float64]
    histogram_limit: float
    null_distribution: NDArray[np.float64]

    _bulky = Finding._bulky | {"moves", "histogram"}

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        alpha = 1 - self.confidence_level
        if self.inconclusive is not None:
            verdict = f"the test is inconclusive: {self.inconclusive}"
        else:
            found = rejects(self.pvalue, alpha)
            evidence = "more than chance explains" if found else "within what chance explains"
            kind = "permutation-calibrated" if self.calibration == "permutation" else "asymptotic"
            tail = f"({p_text(self.pvalue)}, {kind} projection test)"
            verdict = f"that is {evidence} at the {100 * alpha:.3g} % level {tail}"
            if not found:
                verdict += "; that alone does not show fairness"
        return f"{self.notion}: {self._gaps()}. {self._distance()}; {verdict}."

    def _gaps(self) -> str:
        tolerated = any(criterion.tolerance != (0.0, 0.0) for criterion in self.criteria)
        asked = " (tolerance given)" if tolerated else ""
        if len(self.criteria) == 1 and not math.isnan(self.criteria[0].first_value):
            one = self.criteria[0]
            low, high = one.confidence_interval
            return (
                f"{one.name} is {number(one.first_value)} for {group_name(one.first)} and "
                f"{number(one.second_value)} for {group_name(one.second)}, a gap of "
                f"{number(one.gap)} ({100 * self.confidence_level:g} % interval {number(low)} to "
                f"{number(high)}){asked}"
            )
        return (
            f"the largest of {len(self.criteria)} gaps is {number(self.estimate)}"
            if len(self.criteria) > 1
            else f"{self.criteria[0].name} is {number(self.estimate)}"
        ) + asked

    def _distance(self) -> str:
        if math.isinf(self.distance):
            return "No movement of the rows makes the model fair"
        if not len(self.moves):
            return "The data are fair as they are"
        return (
            f"The nearest fair distribution is {number(self.distance)} away: {len(self.moves):,} "
            f"of {self.n_rows:,} rows change sides, the farthest by "
            f"{number(float(self.moves.distance.max()))}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per criterion."""
        return [
            {
                "notion": self.notion,
                "metric": criterion.name,
                "attribute": criterion.attribute,
                "first": group_name(criterion.first),
                "second": group_name(criterion.second),
                "first_value": criterion.first_value,
                "second_value": criterion.second_value,
                "gap": criterion.gap,
                "standard_error": criterion.standard_error,
                "low": criterion.confidence_interval[0],
                "high": criterion.confidence_interval[1],
                "statistic": self.statistic,
                "distance": self.distance,
                "pvalue": self.pvalue,
            }
            for criterion in self.criteria
        ]

    def plot(self) -> Chart:
        """Return a chart of the margins near the boundary by group, and of the moves."""
        from .chart import margins_and_moves

        return margins_and_moves(
            list(self.group_sizes), self.histogram, self.histogram_limit, self.moves, self.notion
        )
