"""Audits of a test on one's own data: groups that are equal, or have a gap.

The native module draws equal groups (`audits` of a test, `WeakNull`); with a gap the same rows come
with groups that are drawn anew. An audit depends on its index alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import ArgumentError

Made = TypeVar("Made")
Floats = NDArray[np.float64]


class NullAudits(Protocol):
    """Tests groups for which the null hypothesis is true, in many audits."""

    @property
    def null(self) -> str:
        """The null hypothesis of the groups: "shuffle" or "weak"."""

    @property
    def note(self) -> str | None:
        """Notes on the numbers."""

    def pvalues(self, n_resamples: int, draws: _native.Draws, call: _native.Call) -> Floats:
        """Return the two-sided p-value of every audit; NaN where a group has no value."""


@dataclass(frozen=True)
class ShuffledGroups:
    """Groups that are shuffled as the test exchanges them: an audit is one of its replicates."""

    test: Any
    note: str | None = None
    null = "shuffle"

    def pvalues(self, n_resamples: int, draws: _native.Draws, call: _native.Call) -> Floats:
        """Return the two-sided p-value of every audit; NaN where a group has no value."""
        pvalues: Floats = self.test.audits(n_resamples, draws, call)
        return pvalues


@dataclass(frozen=True)
class ResampledValues:
    """Values that are centred in each group, drawn anew from it with replacement."""

    source: _native.WeakNull
    note: str | None = None
    null = "weak"

    def pvalues(self, n_resamples: int, draws: _native.Draws, call: _native.Call) -> Floats:
        """Return the two-sided p-value of every audit; NaN where a group has no value."""
        return self.source.pvalues(n_resamples, draws, call)


class TiltedSampler(ABC, Generic[Made]):
    """Draws the first group more readily from units that move the metric, once a gap is given.

    A tilt multiplies the odds of a unit by the exponential of its influence.
    """

    #: How readily a unit goes to the first group.
    probability: Floats

    @abstractmethod
    def draw(self, draws: _native.Draws, audit: int) -> Made:
        """Return the problem of an audit."""

    @abstractmethod
    def influence(self) -> Floats:
        """Return how much a unit moves the metric, in standard deviations."""

    @abstractmethod
    def expected_gap(self, probability: Floats) -> float:
        """Return the gap of the first group when units go to it with these probabilities."""

    @abstractmethod
    def base(self) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Return the number of rows of each unit, its stratum, the first group's share by it."""

    def with_gap(self, gap: float) -> TiltedSampler[Made]:
        """Return what makes problems with an expected gap instead, or raise."""
        influence = self.influence()
        rows, stratum, shares = self.base()

        def at(tilt: float) -> Floats:
            return _tilt(tilt * influence, rows, stratum, shares)

        # What the metric's own strata make of the groups is there without a gap.
        explained = self.expected_gap(at(0.0))

        def reached(tilt: float) -> float:
            return (self.expected_gap(at(tilt)) - explained) * math.copysign(1.0, gap)

        high = math.copysign(0.1, gap)
        while reached(high) < abs(gap):
            high *= 2
            if abs(high) > 50:
                largest = math.copysign(reached(high), gap)
                raise ArgumentError(
                    f"gaps holds {gap:g}; these data reach {largest:.3g} at most when the groups "
                    "are drawn anew",
                    argument="gaps",
                )
        low = 0.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            if reached(middle) < abs(gap):
                low = middle
            else:
                high = middle
        made = copy(self)
        made.probability = at(high)
        return made


def _tilt(push: Floats, rows: Floats, stratum: NDArray[np.int64], shares: Floats) -> Floats:
    """Return logistic(push + offset), the offset of each stratum keeping its expected share."""
    low, high = np.full(len(shares), -700.0), np.full(len(shares), 700.0)
    totals = np.maximum(np.bincount(stratum, rows, len(shares)), 1e-300)
    probability = np.zeros(len(push))
    for _ in range(80):
        middle = 0.5 * (low + high)
        probability = 1 / (1 + np.exp(-np.clip(push + middle[stratum], -700, 700)))
        too_many = np.bincount(stratum, rows * probability, len(shares)) / totals > shares
        high, low = np.where(too_many, middle, high), np.where(too_many, low, middle)
    return probability


class CountUnits:
    """Counts by stratum, group and class, and the part of each class that exchanges groups."""

    def __init__(self, counts: NDArray[np.uint64], part: NDArray[np.int64]) -> None:
        self.counts = np.ascontiguousarray(counts)
        self.part = np.unique(part, return_inverse=True)[1].ravel()
        self.n_parts = int(self.part.max()) + 1


class TiltedCounts(TiltedSampler[Made]):
    """Rows of one class; a unit is a class in a stratum."""

    def __init__(
        self,
        units: CountUnits,
        make: Callable[[NDArray[np.uint64]], Made],
        *,
        influence: Floats,
        gap: Callable[[Floats, Floats], float],
    ) -> None:
        self.units, self.make = units, make
        self.of_class, self.gap = influence, gap

    def draw(self, draws: _native.Draws, audit: int) -> Made:
        """Return the problem of an audit."""
        counts = self.units.counts
        probability = self.probability.reshape(len(counts), -1)
        drawn = _native.tilted_counts(counts, probability, draws, audit, _native.Call())
        return self.make(drawn.reshape(counts.shape))

    def influence(self) -> Floats:
        """Return how much a unit moves the metric, in standard deviations."""
        totals = self.units.counts.sum(axis=(0, 1)).astype(float)
        spread = math.sqrt(float((self.of_class**2 * totals).sum() / totals.sum()))
        scaled: Floats = np.tile(self.of_class / (spread or 1.0), len(self.units.counts))
        return scaled

    def base(self) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Return the number of rows of each unit, its stratum, the first group's share by it."""
        counts, n_parts = self.units.counts.astype(float), self.units.n_parts
        rows = counts.sum(axis=1)
        stratum = (np.arange(len(rows))[:, None] * n_parts + self.units.part).ravel()
        first = np.bincount(stratum, counts[:, 0].ravel(), len(rows) * n_parts)
        totals = np.bincount(stratum, rows.ravel(), len(rows) * n_parts)
        return rows.ravel(), stratum, first / np.maximum(totals, 1)

    def expected_gap(self, probability: Floats) -> float:
        """Return the gap of the first group when units go to it with these probabilities."""
        rows = self.units.counts.sum(axis=1).astype(float)
        first = (rows * probability.reshape(rows.shape)).sum(axis=0)
        return self.gap(first, rows.sum(axis=0) - first)


class TiltedRows(TiltedSampler[Made]):
    """Rows or clusters of rows with an influence on the metric."""

    def __init__(
        self,
        units: _native.Units,
        make: Callable[[NDArray[Any]], Made],
        *,
        influence: Callable[[], Floats],
        gap: Callable[[Floats], float],
    ) -> None:
        self.units, self.make = units, make
        self.of_units, self.gap = influence, gap

    def draw(self, draws: _native.Draws, audit: int) -> Made:
        """Return the problem of an audit."""
        call, of_row = _native.Call(), self.units.of_row
        codes = _native.tilted_groups(self.units, self.probability, draws, audit, call)
        return self.make(codes if of_row is None else codes[of_row])

    def influence(self) -> Floats:
        """Return how much a unit moves the metric, in standard deviations."""
        summed = self.of_units()
        return summed / (float(summed.std()) or 1.0)

    def base(self) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Return the number of rows of each unit, its stratum, the first group's share by it."""
        group, stratum = self.units.group, self.units.stratum
        codes = np.zeros(len(group), np.int64) if stratum is None else stratum.astype(np.int64)
        n = int(codes.max()) + 1
        totals = np.bincount(codes, minlength=n)
        first = np.bincount(codes, group == 0, n)
        return np.ones(len(group)), codes, first / np.maximum(totals, 1)

    def expected_gap(self, probability: Floats) -> float:
        """Return the gap of the first group when units go to it with these probabilities."""
        of_row = self.units.of_row
        return self.gap(probability if of_row is None else probability[of_row])
