"""The result of a projection test."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.groups import group_name
from ..report.words import join_names, note_on_disagreement, number, p_text, row_count
from ..results.chart import Chart
from ..results.result import Finding
from ..results.verdict import rejects_at
from .moves import Moves, MoveSummary


@dataclass(frozen=True, kw_only=True)
class CriterionValue:
    """One criterion: two rates that must be equal; the gap is ``first`` minus ``second``.

    A criterion of a user's `Notion` has only a name and a gap.
    """

    name: str
    attribute: str
    first: Any
    second: Any
    first_value: float
    second_value: float
    #: The rows in the denominators of both rates, and Wilson intervals; NaN for weighted rows.
    first_used: float
    second_used: float
    first_interval: tuple[float, float]
    second_interval: tuple[float, float]
    gap: float
    standard_error: float
    confidence_interval: tuple[float, float]
    #: The gaps that count as fair.
    tolerance: tuple[float, float]


@dataclass(frozen=True, repr=False, eq=False)
class ProjectionResult(Finding):
    """The result of `projection_test`, which explains the numbers.

    Attributes
    ----------
    statistic : float
        s_N = N P: the sum of the moved fractions times their distances.
    distance : float
        P, the distance from the data to the nearest fair distribution; infinite if no movement of
        rows satisfies the criteria.
    pvalue : float
        NaN if the test is inconclusive.
    critical_value : float
        The limit law rejects if the statistic exceeds it (at the level 1 - confidence_level); NaN
        for ``calibration="permutation"``, which compares other costs.
    primal_value, dual_value, duality_gap : float
        The certificate of the statistic: the cost of the plan, a lower bound for any plan, and
        their difference.
    residual : float
        The largest remaining violation of a criterion by the plan, from rounding.
    bandwidth : float
        Bandwidth of the kernel estimate of the density of the margins at the boundary.
    sensitivity : tuple of (float, float)
        (bandwidth, p-value) by the limit law at half, once and twice the bandwidth. If the test is
        inconclusive these numbers are not valid p-values, and are given for information only.
    effective_rows : float
        The effective number of rows in the window, the smallest over the criteria.
    moves : Moves
        The rows that must change their decision to remove the bias at least cost.
    moved : tuple of MoveSummary
        The moves by group, label and direction.
    criteria : tuple of CriterionValue
        The gaps that must vanish.
    inconclusive : str or None
        Why there is no p-value.
    notion, calibration, attribute : str
        The notion, the calibration and the sensitive feature of the test.
    n_missing : int
        Rows that belong to no group because a sensitive feature is missing.
    n_resamples, n_undefined : int
        The number of permutations, and of those whose gaps cannot be removed, which count as
        extreme.
    pvalue_interval : tuple of float
        Clopper-Pearson interval (99 %) of the p-value with infinitely many permutations.
    confidence_level : float
        Level of the intervals, and of the critical value.
    histogram : ndarray
        Weight of the signed margins by group (rows) in equal bins around the boundary.
    histogram_limit : float
        The bins reach from minus this to this.
    null_distribution : ndarray
        With ``calibration="permutation"``, the cost of removing the gaps of each replicate.
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

    _not_in_dict = Finding._not_in_dict | {"moves", "histogram"}

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        alpha = 1 - self.confidence_level
        beside = ""
        if self.inconclusive is not None:
            verdict = f"the test is inconclusive: {self.inconclusive}"
        else:
            rejects = rejects_at(self.pvalue, alpha)
            level = f"at the {100 * alpha:.3g} % level ({p_text(self.pvalue)})"
            if self._tolerated:
                shown = "shown" if rejects else "not shown"
                verdict = f"that a gap is beyond the tolerance is {shown} {level}"
                if not rejects:
                    verdict += "; that alone does not show that none is"
            else:
                evidence = "more than chance explains" if rejects else "within what chance explains"
                verdict = f"that is {evidence} {level}"
                if not rejects:
                    verdict += "; that alone does not show fairness"
                if len(self.criteria) == 1:
                    beside = note_on_disagreement(self.criteria[0].confidence_interval, rejects)
        return f"{self.notion}: {self._gaps()}. {self._distance()}; {verdict}.{beside}"

    @property
    def details(self) -> str:
        """The name of the test."""
        kind = "permutation-calibrated" if self.calibration == "permutation" else "asymptotic"
        return f"{kind} projection test"

    @property
    def _tolerated(self) -> str:
        """The gaps that count as fair, in words; "" without a tolerance."""
        tolerances = dict.fromkeys(criterion.tolerance for criterion in self.criteria)
        if all(tolerance == (0.0, 0.0) for tolerance in tolerances):
            return ""
        texts = [_between(*tolerance) for tolerance in tolerances]
        return f"{'tolerance' if len(texts) == 1 else 'tolerances'} {join_names(texts)}"

    def _gaps(self) -> str:
        tolerated = f" ({self._tolerated})" if self._tolerated else ""
        criterion = self.criteria[0]
        if len(self.criteria) == 1 and not math.isnan(criterion.first_value):
            low, high = criterion.confidence_interval
            groups = (criterion.first, criterion.second)
            first, second = (self._side(criterion, group) for group in groups)
            return (
                f"{criterion.name} is {number(criterion.first_value)} for {first} and "
                f"{number(criterion.second_value)} for {second}, a gap of "
                f"{number(criterion.gap)} ({100 * self.confidence_level:g} % interval "
                f"{number(low)} to {number(high)}){tolerated}"
            )
        if len(self.criteria) == 1:
            return f"{criterion.name} is {number(self.estimate)}{tolerated}"
        n = len(self.criteria)
        return f"the largest of {n} gaps{self._compared()} is {number(self.estimate)}{tolerated}"

    def _compared(self) -> str:
        """Return the groups compared, each with its reference; "" for a user's `Notion`."""
        against: dict[str, dict[str, None]] = {}
        for criterion in self.criteria:
            if criterion.first is not None or criterion.second is not None:
                firsts = against.setdefault(self._side(criterion, criterion.second), {})
                firsts[self._side(criterion, criterion.first)] = None
        texts = [
            f"{join_names(list(firsts), most=5)} against {base}" for base, firsts in against.items()
        ]
        return f", of {'; '.join(texts)}," if texts else ""

    def _side(self, criterion: CriterionValue, group: Any) -> str:
        """Return the name of a side of a criterion, with its number of rows if known."""
        name = group_name(group, criterion.attribute or self.attribute)
        size = None if criterion.attribute else self.group_sizes.get(group)
        return name if size is None else f"{name} ({row_count(size)})"

    def _distance(self) -> str:
        if math.isinf(self.distance):
            return "No movement of the rows makes the model fair"
        if not self.moved:
            fair = "within the tolerance" if self._tolerated else "without a gap"
            return f"The data are {fair} as they are"
        n_moved = sum(part.n_rows for part in self.moved)
        farthest = max(part.largest_distance for part in self.moved)
        return (
            f"The nearest fair distribution is {number(self.distance)} away: {n_moved:,} "
            f"of {self.n_rows:,} rows change sides, the farthest by {number(farthest)}"
        )

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("pairs", "groups", *(("moved",) if self.moved else ()))

    def _rows_of(self, table: str) -> Sequence[dict[str, Any]]:
        if table != "moved":
            return super()._rows_of(table)
        return [
            {
                "group": self.name_of(part.group),
                "label": part.label,
                "from": part.from_decision,
                "to": part.to_decision,
                "n_rows": part.n_rows,
                "mass": part.mass,
                "mean_distance": part.mean_distance,
                "largest_distance": part.largest_distance,
            }
            for part in self.moved
        ]

    def _printed_tables(self) -> Collection[str]:
        """Return the table of the rows that change sides."""
        return ("moved",)

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group and rate, or for a user's `Notion` one per group."""
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for criterion in self.criteria:
            sides = (
                (
                    criterion.first,
                    criterion.first_value,
                    criterion.first_used,
                    criterion.first_interval,
                ),
                (
                    criterion.second,
                    criterion.second_value,
                    criterion.second_used,
                    criterion.second_interval,
                ),
            )
            for group, value, used, interval in sides:
                if math.isnan(value):
                    continue
                name = group_name(group, criterion.attribute or self.attribute)
                rows[criterion.name, name] = {
                    "metric": criterion.name,
                    "group": name,
                    "n_rows": None if criterion.attribute else self.group_sizes.get(group),
                    "n_used": None if math.isnan(used) else round(used),
                    "value": value,
                    "low": interval[0],
                    "high": interval[1],
                }
        return list(rows.values()) or super().group_rows()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per criterion."""
        return [
            {
                "notion": self.notion,
                "metric": criterion.name,
                "attribute": criterion.attribute,
                "first": group_name(criterion.first, criterion.attribute or self.attribute),
                "second": group_name(criterion.second, criterion.attribute or self.attribute),
                "first_n_rows": self.group_sizes.get(criterion.first),
                "second_n_rows": self.group_sizes.get(criterion.second),
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

        names = list(map(self.name_of, self.group_sizes))
        return margins_and_moves(
            names, self.histogram, self.histogram_limit, self.moves, self.notion
        )


def _between(low: float, high: float) -> str:
    """Return the gaps that count as fair, in words."""
    if low == -high:
        return f"up to {number(high)} either way"
    return f"up to {number(high)}" if math.isinf(low) else f"from {number(low)}"
