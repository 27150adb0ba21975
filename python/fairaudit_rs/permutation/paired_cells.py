"""Compares two models by count metrics whose denominator depends on decisions: PPV, F1, MCC etc.

The change of a group is a function of the counts by label and both decisions, with its linearised
variance. Nearly all of this variance comes from rows that the models decide differently, and a
group can have few or none of these by chance. So the variance is computed from a table with one
extra row in each cell of rows that are decided differently (Agresti and Min, 2005, add halves).
Without it, the error rate of the tests was up to three times their level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.intervals import Pair
from ..inference.paired_differences import PairedDifference, by_law
from .paired_problem import OF_FIRST, OF_SECOND, Floats, PairedCountProblem, correlation_of

#: Extra rows by label, first and second decision: where decisions differ, and everywhere.
_MORE_CHANGED = np.array([0, 1, 1, 0] * 2)
_MORE = np.ones(8, dtype=np.int64)


class _Spread(NamedTuple):
    """Variances of the change and of the sum of both values of a group, and their covariance."""

    change: float
    total: float
    covariance: float


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedCellProblem(PairedCountProblem):
    """A count metric whose denominator depends on decisions."""

    @cached_property
    def values(self) -> Floats:
        """The metric by model and group."""
        native = self.metric.native
        return np.array(
            [
                [native.evaluate(_table(cells, places)).value for cells in self.counts]
                for places in (OF_FIRST, OF_SECOND)
            ]
        )

    @property
    def method(self) -> str:
        """The name of the test of changes."""
        return "delta"

    def shortage(self, position: int) -> str:
        """Return what a group without a value lacks."""
        tables = [_table(self.counts[position], places) for places in (OF_FIRST, OF_SECOND)]
        values = [self.metric.native.evaluate(table).value for table in tables]
        lacking = tables[0 if math.isnan(values[0]) else 1]
        counts = np.array(lacking, dtype=np.uint64)
        return self.metric.kind.shortage(counts, self.n_rows[position])

    def n_changed(self, position: int) -> int:
        """Return how many rows the models decide differently."""
        return int(self.counts[position, :, 0, 1].sum() + self.counts[position, :, 1, 0].sum())

    @cached_property
    def _spreads(self) -> list[_Spread]:
        return [self._spread(cells.ravel()) for cells in self.counts]

    def _spread(self, cells: NDArray[np.int64]) -> _Spread:
        """Return the variances of a group; that of the sum is the larger of two."""
        plain, changed, everywhere = (
            self._variances(cells + more) for more in (0 * _MORE, _MORE_CHANGED, _MORE)
        )
        return _Spread(changed[0], float(np.fmax(plain[1], everywhere[1])), changed[2])

    def _variances(self, cells: NDArray[np.int64]) -> Floats:
        """Return the linearised variances of a table; NaN if the metric has no value."""
        gradients = []
        for places in (OF_FIRST, OF_SECOND):
            gradient = self.metric.native.gradient(_table(cells, places))
            gradients.append(np.nan_to_num(gradient or [math.nan] * 4)[places])
        first, second = gradients
        parts = ((second - first) ** 2, (second + first) ** 2, second**2 - first**2)
        return np.array([float((cells * part).sum()) for part in parts])

    def change(self, position: int, level: float) -> PairedDifference:
        """Return the second value of a group minus the first."""
        first, second = self.values[:, position].tolist()
        return by_law(second - first, math.sqrt(self._spreads[position].change), level)

    def tested(self, pair: Pair, level: float) -> tuple[PairedDifference, PairedDifference, float]:
        """Return the difference and the sum of two gaps, and their correlation."""
        first, second = (float(row[pair[0]] - row[pair[1]]) for row in self.values)
        spread = _Spread(
            *(sum(both) for both in zip(*(self._spreads[i] for i in pair), strict=True))
        )
        errors = math.sqrt(spread.change), math.sqrt(spread.total)
        change, total = (
            by_law(estimate, error, level)
            for estimate, error in zip((second - first, second + first), errors, strict=True)
        )
        return change, total, correlation_of(spread.covariance, errors[0] * errors[1])


def _table(cells: NDArray[np.int64], places: NDArray[np.int64]) -> list[float]:
    """Return tp, fp, fn and tn of one model."""
    table: list[float] = np.bincount(places, cells.ravel(), 4).tolist()
    return table
