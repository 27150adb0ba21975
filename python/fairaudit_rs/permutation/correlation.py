"""Correlation of a row value with a continuous attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.rows import AttributeRows
from ..errors import ArgumentError, NotMeasurableError
from ..inference.intervals import NOTHING
from ..metrics.metric import Metric
from .problem import Gap, Outcome, Problem, Procedure
from .rows import row_value


@dataclass(kw_only=True)
class CorrelationProblem(Problem):
    """One continuous attribute and one value per row: there are no groups."""

    rows: AttributeRows
    _correlation: _native.CorrelationTest = field(init=False, repr=False)
    _variance: float = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.rows.attribute)
        value = row_value(self.metric, "numerator", self.rows.columns, n)
        attribute = self.rows.attribute
        for name, column in ((self.rows.name, attribute), (self.metric.name, value)):
            if n < 3 or column.min() == column.max():
                what = "the attribute" if column is attribute else "the row value of"
                raise NotMeasurableError(
                    f"{what} {name!r} does not vary over {n} rows; a correlation needs two "
                    "columns that do"
                )
        x, y = (midranks(attribute), midranks(value)) if self.metric.by_rank else (attribute, value)
        stratum = self.rows.stratum
        self._correlation = _native.CorrelationTest(
            np.ascontiguousarray(x), np.ascontiguousarray(y), self.scaling, _native.Call(), stratum
        )
        if math.isnan(self._correlation.correlation()):
            raise NotMeasurableError(
                f"{self.rows.name!r} or the value of {self.metric.name} does not vary within the "
                "strata; a correlation needs two columns that do"
            )
        by_rank = self.metric.by_rank and stratum is None
        self._variance = spearman_variance(x, y) if by_rank else self._correlation.variance()
        self.evaluations = []

    @classmethod
    def make(cls, rows: AttributeRows, metric: Metric, scaling: str) -> CorrelationProblem:
        """Take all rows that have the attribute."""
        return cls(metric=metric, keys=[], n_rows=[len(rows.attribute)], scaling=scaling, rows=rows)

    def test_all(self, plan: Procedure, series: int) -> Outcome:
        """Test the one correlation, which has a direction as a pair of groups has."""
        return self.test((0, 1), plan, series)

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "shuffle"

    @property
    def interval_name(self) -> str:
        """Return the name of the method behind `interval`."""
        return "fisher"

    def native(self, positions: Sequence[int]) -> _Centred:
        """Return the native test."""
        del positions
        return _Centred(self._correlation)

    def prepare_intervals(self, method: str, plan: Procedure) -> None:
        """Refuse all but the interval of the formula."""
        del plan
        if method != "auto":
            raise ArgumentError(f"interval is {method!r} for {self.metric.name}; accepted: 'auto'")

    def gap(self, pair: tuple[int, int]) -> Gap:
        """Return the correlation with its standard error."""
        del pair
        return Gap(self._correlation.correlation(), math.sqrt(self._variance))

    def interval(self, pair: tuple[int, int], level: float) -> tuple[float, float]:
        """Return tanh(atanh r +- z se / (1 - r^2))."""
        gap = self.gap(pair)
        r = gap.estimate
        if not gap.standard_error > 0 or abs(r) >= 1:
            return NOTHING
        half = _native.normal_quantile(0.5 + level / 2) * gap.standard_error / (1 - r * r)
        return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)

    @property
    def bound(self) -> float:
        """Return the largest correlation."""
        return 1.0


@dataclass(frozen=True)
class _Centred:
    """The native test; its null distribution is centred by construction."""

    test: _native.CorrelationTest
    needs_centring = False

    def observed(self) -> float:
        return self.test.observed()

    def null_distribution(self, draws: _native.Draws, call: _native.Call) -> NDArray[np.float64]:
        return self.test.null_distribution(draws, call)


def midranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks from 1, ties sharing their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: NDArray[np.float64] = (ends - (counts - 1) / 2)[place.ravel()]
    return ranks


def spearman_variance(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return the variance of the rank correlation, by the influence of a row on it.

    A row changes the correlation by its own product and by moving up the ranks of all rows
    above it: psi = u w + E[1{x_i < X} W] + E[U 1{y_i < Y}], ranks u and w centred, ties 1/2.
    """
    n = len(x)
    # In an order of their own, so that sums do not depend on that of the rows.
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    u, w = (x - x.mean()) / n, (y - y.mean()) / n
    psi = u * w + _mean_above(x, w) + _mean_above(y, u)
    psi -= psi.mean()
    return float((psi**2).sum() / (n**2 * (u**2).mean() * (w**2).mean()))


def _mean_above(ranks: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each row the mean over all rows of 1{its rank < rank} value, ties 1/2."""
    _, place = np.unique(ranks, return_inverse=True)
    sums = np.bincount(place.ravel(), weights=values)
    above = sums.sum() - np.cumsum(sums)
    mean: NDArray[np.float64] = ((above + 0.5 * sums) / len(values))[place.ravel()]
    return mean
