"""Audit values of weighted or clustered rows, at the end of a flow and along its path."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import EqualByValue
from ..data.features import Features
from ..data.sums import sums_of
from ..inference.clusters import (
    degrees_of_freedom,
    effective_number,
    leverage_factors,
)
from .targets import Targets
from .value import AuditValue, SkewCorrection, bootstrap_mean

Floats = NDArray[np.float64]

#: Number of rows that are processed together.
_BLOCK = 1 << 12
#: Minimum effective number of persons for a standard error.
_FEW_PERSONS = 3.0


@dataclass(frozen=True, eq=False)
class RowWeights(EqualByValue):
    """The weights and persons (clusters) of rows; at least one of the two is present."""

    weight: Floats | None
    #: The number of every row's person, from 0 on.
    person: NDArray[np.intp] | None

    @classmethod
    def from_arrays(cls, weight: Floats | None, person: NDArray[Any] | None) -> RowWeights | None:
        """Return weights and persons; None if all weights are equal and rows independent."""
        if weight is not None and (weight == weight[0]).all():
            weight = None
        if person is not None:
            codes = np.unique(person, return_inverse=True)[1].ravel()
            person = codes.astype(np.intp) if codes.max() + 1 < len(codes) else None
        return None if weight is None and person is None else cls(weight, person)

    def of_rows(self, chosen: Any) -> RowWeights:
        """Return the weights and persons of some rows."""
        return RowWeights(
            None if self.weight is None else self.weight[chosen],
            None if self.person is None else self.person[chosen],
        )

    @property
    def n_persons(self) -> int | None:
        """The number of persons; None if there are no clusters."""
        return None if self.person is None else int(self.person.max()) + 1

    def has_weight(self, n_rows: int) -> NDArray[np.bool_]:
        """Return a mask of the rows with positive weight."""
        return np.ones(n_rows, dtype=bool) if self.weight is None else self.weight > 0

    def weighed(self, values: Floats) -> Floats:
        """Return values times weights; where the weight is 0, the result is 0 even for NaN."""
        if self.weight is None:
            return values
        with np.errstate(invalid="ignore"):
            return np.where(self.weight > 0, self.weight * values, 0.0)

    def totals(self, values: Floats) -> Floats:
        """Return sums over the rows of each person, which do not depend on their order."""
        return values if self.person is None else sums_of(self.person, values)

    def unit_sums(self, numerator: Floats, denominator: Floats | None = None) -> IndependentUnits:
        """Return the sums of two columns over each person, or for each independent row.

        Without a denominator, the estimate is a mean.
        """
        size = self.totals(self.weighed(np.ones(len(numerator))))
        positive = size > 0
        sums = self.totals(self.weighed(numerator))[positive]
        if denominator is None:
            return IndependentUnits(sums, size[positive], size[positive])
        return IndependentUnits(
            sums, self.totals(self.weighed(denominator))[positive], size[positive]
        )


@dataclass(frozen=True, eq=False)
class IndependentUnits(EqualByValue):
    """Sums over persons, or rows, that were sampled independently."""

    numerator: Floats
    denominator: Floats
    #: Weight of each, above 0.
    size: Floats

    @property
    def estimate(self) -> float:
        """The sum of the numerators over that of the denominators."""
        below = _mean(self.denominator)
        return _mean(self.numerator) / below if below > 0 else math.nan

    def value(self, interval: str, of_rates: bool) -> AuditValue:
        """Return the audit value with the variance of the linearised sums.

        For the bootstrap the variance is that of equal units, as in the replicates; otherwise it
        is corrected for the leverage of each unit, with its degrees of freedom.
        """
        n, estimate = len(self.size), self.estimate
        if math.isnan(estimate) or n < 2 or effective_number(self.size) < _FEW_PERSONS:
            return AuditValue(estimate, math.nan, interval=interval, of_rates=of_rates)
        residual = (self.numerator - estimate * self.denominator) / _mean(self.denominator)
        by_formula = interval != "bootstrap-t"
        factor = leverage_factors(self.size) if by_formula else n / (n - 1)
        return AuditValue(
            estimate,
            _mean(residual**2 * factor) / n,
            interval=interval,
            of_rates=of_rates,
            df=degrees_of_freedom(self.size) if by_formula else math.inf,
        )

    def skew(self) -> SkewCorrection:
        """Return the skewness correction from the influence of each unit."""
        below, estimate = _mean(self.denominator), self.estimate
        influence = (self.numerator - estimate * self.denominator) / below
        return SkewCorrection(influence, _mean(influence * self.denominator) / below, estimate)

    def bootstrap(
        self, n_resamples: int, seed: int, n_threads: int | None
    ) -> tuple[Floats, Floats]:
        """Return replicates of the audit value with their variances; whole units are drawn."""
        return bootstrap_mean(self.numerator, self.denominator, n_resamples, seed, n_threads)

    def reason_too_few(self) -> str | None:
        """Return why there is no standard error, if the units are too few; else None."""
        effective = effective_number(self.size)
        if len(self.size) > 1 and effective >= _FEW_PERSONS:
            return None
        return (
            f"{len(self.size):,} clusters or weighted rows count as {effective:.2g} of equal "
            f"weight; a standard error needs {_FEW_PERSONS:g}"
        )


def _mean(values: Floats) -> float:
    """Return the mean of numbers; NaN unless all are finite."""
    return _native.moments(np.ascontiguousarray(values), _native.Call())[0]


class PathSums:
    """Audit values along a flow, from scores that arrive in parts of the rows.

    At each recorded step, sums of N - D and D, and of their products, are sufficient. For loss
    ratios r, N = w r and D = w; for wrong decisions a (after) and b (before), N = w a and D = w b,
    by row or by person. N - D is 0 at the start and stays small, so that no digits cancel.
    """

    def __init__(self, sample: RowWeights, targets: Targets, ratio: str, floor: float) -> None:
        self._sample, self._targets, self._ratio, self._floor = sample, targets, ratio, floor
        self._size = sample.totals(sample.weighed(np.ones(len(targets))))
        self._factor = np.ones(len(self._size))
        positive = self._size > 0
        if positive.sum() > 1:
            self._factor[positive] = leverage_factors(self._size[positive])
        #: For each recorded step: five sums of independent rows, or two sums for each person.
        self._sums: list[Floats] = []

    def add(self, rows: slice, scores: Floats, call: _native.Call) -> None:
        """Add the scores of some rows, of shape (recorded steps, scores per row, rows)."""
        sample, targets = self._sample.of_rows(rows), self._targets.of_rows(rows)
        if not self._sums:
            n = 5 if sample.person is None else 2 * len(self._size)
            self._sums = [np.zeros(n) for _ in scores]
        start = targets.wrong(scores[0])
        for sums, now in zip(self._sums, scores, strict=True):
            if self._ratio == "loss":
                below = sample.weighed(np.ones(len(targets)))
                change = sample.weighed(self._ratios(scores[0], now, targets, call) - 1)
            else:
                below = sample.weighed(start.astype(np.float64))
                finite = np.isfinite(now).all(axis=0)
                change = targets.wrong(now).astype(np.float64) - start
                change = sample.weighed(np.where(finite, change, math.nan))
            if sample.person is None:
                sums += _products(change, below, self._factor[rows])
            else:
                half = len(self._size)
                for first, values in ((0, change), (half, below)):
                    sums[first : first + half] += sums_of(sample.person, values, half)

    def _ratios(self, start: Floats, end: Floats, targets: Targets, call: _native.Call) -> Floats:
        """Return the loss ratios between two sets of scores."""
        flowed = _native.Flowed.of_scores(
            np.stack([start, end]),
            np.zeros((0, 0)),
            targets.values,
            targets.loss,
            call,
            floor=self._floor,
            boundary=targets.boundary,
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.maximum(flowed.loss_end, self._floor) / np.maximum(
                flowed.loss_start, self._floor
            )

    def values(self, interval: str) -> list[AuditValue]:
        """Return the audit value after each recorded step."""
        size = self._size[self._size > 0]
        known = len(size) > 1 and effective_number(size) >= _FEW_PERSONS
        df = degrees_of_freedom(size) if known else math.inf
        values = []
        for sums in self._sums:
            five = sums
            if self._sample.person is not None:
                change, below = np.split(sums, 2)
                five = _products(change, below, self._factor)
            change_sum, total, aa, ab, bb = five.tolist()
            if not total > 0:
                values.append(AuditValue(math.nan, math.nan, interval=interval))
                continue
            gap = change_sum / total
            squares = max(aa - 2 * gap * ab + gap * gap * bb, 0.0) if known else math.nan
            if math.isnan(gap):
                squares = math.nan
            values.append(AuditValue(1 + gap, squares / total**2, interval=interval, df=df))
        return values


def _products(change: Floats, below: Floats, factor: Floats) -> Floats:
    """Return the sums of a and b, and the sums of a a, a b and b b times the factors."""
    terms = [change, below, factor * change**2, factor * change * below, factor * below**2]
    return np.array([_mean(term) * len(term) for term in terms])


def repeated_rows(features: Features, targets: Targets, n_threads: int | None) -> int:
    """Return how many rows equal an earlier one in features and label."""
    rows, labels = features.values, targets.values
    candidates = _perhaps_repeated(rows)
    if not len(candidates):
        return 0
    call = _native.Call(n_threads)
    kind = _native.distinct_rows(np.ascontiguousarray(rows[candidates]), call)[2]
    pairs = np.column_stack([kind.astype(np.float64), labels[candidates]])
    return len(candidates) - len(_native.distinct_rows(pairs, call)[1])


def _perhaps_repeated(rows: Floats) -> NDArray[np.intp]:
    """Return the rows whose weighted feature sum occurs more than once, as for equal rows."""
    mixed = np.zeros(len(rows))
    with np.errstate(over="ignore", invalid="ignore"):
        # In blocks of rows, so that their columns stay in the cache.
        for first in range(0, len(rows), _BLOCK):
            part = slice(first, first + _BLOCK)
            for j in range(rows.shape[1]):
                mixed[part] += rows[part, j] * math.cos(j + 1)
    mixed[np.isnan(mixed)] = 0.0
    ordered = np.sort(mixed)
    shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(shared):
        return np.zeros(0, dtype=np.intp)
    position = np.minimum(np.searchsorted(shared, mixed), len(shared) - 1)
    return np.flatnonzero(shared[position] == mixed)
