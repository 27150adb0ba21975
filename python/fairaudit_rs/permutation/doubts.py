"""Designs in which the level is known not to hold, each with the error that was measured.

The figures are those of `tests/permutation/test_doubts.py`, which simulates the designs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..data.rows import Rows
from ..metrics.metric import Metric

#: With fewer rows on either side than this, a weighted rate is not normal enough.
_FEW_EVENTS = 20
#: Skewness over the root of the rows, from which on means are called low too often: n >= 25 G^2.
_MOST_SKEWED = 0.2
#: Groups of more rows than this are not looked at: they outgrow all but absurd skewness.
_SMALL_GROUP = 10_000
#: Distance to the end of the range in standard errors of a mean: some 8 events.
_LONGEST_REACH = 0.35
#: Ranges of the row values when labels are 0 or 1 and scores probabilities.
_RANGES = {
    "mean_prediction": (0.0, 1.0),
    "mean_residual": (-1.0, 1.0),
    "mean_absolute_error": (0.0, 1.0),
    "mean_squared_error": (0.0, 1.0),
}


class Means(Protocol):
    """A problem of means or ratios of row values."""

    @property
    def metric(self) -> Metric:
        """What is compared."""

    @property
    def n_rows(self) -> Sequence[int]:
        """Rows of each group."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the groups."""

    @property
    def rows(self) -> Rows:
        """The rows."""

    @property
    def position(self) -> NDArray[np.int64]:
        """The position of each group of the rows among the compared ones."""

    @property
    def values(self) -> Any:
        """Numerator and denominator by row."""

    @property
    def evaluations(self) -> Sequence[Any]:
        """The metric in each group."""


def ratio_doubts(metric: Metric, names: Sequence[str], evaluations: Sequence[Any]) -> Iterator[str]:
    """Say what is known to go wrong in ratios of rates by the bootstrap."""
    if not metric.is_proportion:
        return
    few = _of_few_events(names, evaluations)
    if few:
        yield (
            f"ratios with a {metric.name} near 0 or 1 ({few}) are found by "
            "the bootstrap far too rarely: 49 of 50 against 4,990 of 5,000 with a margin of 0.8 "
            "gives p = 0.36, where the score test gives 0.0007"
        )


def strata_doubts(metric: Metric, weight: Any, cluster: Any) -> Iterator[str]:
    """Say what is known to go wrong within strata of the user's."""
    if weight is not None:
        yield (
            "the gap is not adjusted for strata where rows have weights: two equal groups with "
            "weights 1 and 1.2 crossed in strata of rates 0.2 and 0.8 were told apart in 99 % of "
            "audits at the 5 % level"
        )
    if cluster is not None:
        yield (
            "the gap is not adjusted for strata where clusters differ in size: clusters of 1 and 5 "
            "rows in strata of rates 0.2 and 0.8 showed a gap of 0.4 between equal groups"
        )
    if not metric.is_proportion:
        yield (
            f"the test of {metric.name} within strata is not studentized for the gap in "
            "them: where a tenth of the rows spreads 3 times as far, 23 % of equal groups were "
            "told apart at the 5 % level with strata 5 standard deviations apart, 36 % at 20"
        )


def weight_doubts(name: str, names: Sequence[str], evaluations: Sequence[Any]) -> Iterator[str]:
    """Say what is known to go wrong in rates of weighted rows."""
    few = _of_few_events(names, evaluations)
    if few:
        yield (
            f"{few}: few rows for a weighted {name}; with a rate "
            "of 0.05 and 200 weighted rows beside 1,800 plain ones 21 % of equal groups were "
            "told apart at the 5 % level, and intervals covered 77 %"
        )


def _of_few_events(names: Sequence[str], evaluations: Sequence[Any]) -> str:
    few = [n for n, e in zip(names, evaluations, strict=True) if _events(e) < _FEW_EVENTS]
    return ", ".join(few[:5])


def mean_doubts(problem: Means) -> Iterator[str]:
    """Look at groups in which a mean may have missed its tail."""
    if min(problem.n_rows) > _SMALL_GROUP:
        return
    skewness, n_units, reach = _shape(problem)
    for i, name in enumerate(problem.names):
        wanted = 25 * skewness[i] ** 2
        if wanted > n_units[i] or reach[i] > _LONGEST_REACH or math.isnan(skewness[i]):
            enough = f" ({wanted:.1g} would do)" if wanted > n_units[i] else ""
            yield (
                f"{name} has few rows{enough} for the mean of values so skewed: where 40 of 2,000 "
                "rows meet events of 3 %, 25 % of equal groups were told apart at the 5 % level, "
                "intervals covered 74 %"
            )


def _shape(
    problem: Means,
) -> tuple[list[float], list[int], list[float]]:
    """Return skewness, number of units and reach of each group's linearised values.

    The skewness is the larger of the group's own and that of all rows, each centred in its group;
    the reach is how far the mean is from the end of a known range, in standard errors times n.
    """
    place = problem.position[problem.rows.group]
    inside = place >= 0
    values = problem.values.taken(inside)
    above, place = values.numerator, place[inside]
    below = np.ones(len(above)) if values.denominator is None else values.denominator
    bounds = _range(problem, above)
    if problem.rows.cluster is not None:
        _, first, unit = np.unique(
            problem.rows.cluster[inside], return_index=True, return_inverse=True
        )
        above, below = (np.bincount(unit.ravel(), part) for part in (above, below))
        place = place[first]
    k = len(problem.n_rows)
    theta = np.array([entry.value for entry in problem.evaluations])
    n, total = np.bincount(place, minlength=k), np.bincount(place, below, k)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = (n / total)[place] * (above - theta[place] * below)
        square, cube = (np.bincount(place, u**power, k) for power in (2, 3))
        own = (cube / n) / (square / n) ** 1.5
        pooled = (cube.sum() / n.sum()) / (square.sum() / n.sum()) ** 1.5
        skewness = np.maximum(np.abs(own), abs(pooled))
        reach = np.zeros(k)
        if bounds is not None:
            farthest = np.maximum(bounds[1] - theta, theta - bounds[0])
            reach = farthest / np.sqrt(square)
    return skewness.tolist(), n.tolist(), np.nan_to_num(reach, nan=np.inf).tolist()


def _range(problem: Means, above: NDArray[np.float64]) -> tuple[float, float] | None:
    """Return the range of a mean of single rows that is known, None where none is."""
    if problem.metric.name not in _RANGES or problem.rows.cluster is not None:
        return None
    low, high = _RANGES[problem.metric.name]
    if problem.rows.weight is not None:
        return None
    return (low, high) if above.min() >= low and above.max() <= high else None


def _events(entry: Any) -> float:
    """Return the effective number of rows on the rarer side of a rate."""
    if math.isnan(entry.value):
        return math.nan
    share = min(entry.value, 1 - entry.value)
    if entry.variance > 0:
        return float(share * entry.value * (1 - entry.value) / entry.variance)
    return 0.0
