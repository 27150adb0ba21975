"""Simulates groups on the user's own rows, to measure false alarms and power of a test.

The groups do not differ (false alarms) or have a given gap (power). Without a gap, the
native module simulates and tests every run; with a gap, each run draws the groups of the rows
again and repeats the test. A run is an "audit"; its draws depend only on the seed and its index.
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
from ..report.notes import Note

ProblemT = TypeVar("ProblemT")
Floats = NDArray[np.float64]


class SimulatedTests(Protocol):
    """Runs a test many times on simulated groups."""

    @property
    def null(self) -> str:
        """The null that holds: "shuffle" (exchangeable groups) or "weak" (equal metric only)."""

    @property
    def note(self) -> Note | None:
        """A note on the simulation."""

    def pvalues(self, n_resamples: int, draws: _native.Draws, call: _native.Call) -> Floats:
        """Return the two-sided p-value of every audit; NaN if a group has no value."""


@dataclass(frozen=True)
class ShuffledGroups:
    """Treats one permutation replicate of the test as the observed data of each audit."""

    test: Any
    note: Note | None = None
    null = "shuffle"

    def pvalues(self, n_resamples: int, draws: _native.Draws, call: _native.Call) -> Floats:
        """Return the two-sided p-value of every audit; NaN if a group has no value."""
        pvalues: Floats = self.test.audits(n_resamples, draws, call)
        return pvalues


@dataclass(frozen=True)
class ResampledValues:
    """Redraws each group's centred values with replacement in each audit."""

    source: _native.WeakNull
    note: Note | None = None
    null = "weak"

    def pvalues(self, n_resamples: int, draws: _native.Draws, call: _native.Call) -> Floats:
        """Return the two-sided p-value of every audit; NaN if a group has no value."""
        return self.source.pvalues(n_resamples, draws, call)


class TiltedSampler(ABC, Generic[ProblemT]):
    """Redraws the first group so that it has a given gap, favouring units with a large influence.

    A tilt t multiplies a unit's odds of being in the first group by exp(t * influence).
    """

    #: Probability of each unit to be in the first group.
    probability: Floats

    @abstractmethod
    def draw(self, draws: _native.Draws, audit: int) -> ProblemT:
        """Return the problem with the simulated groups of audit number ``audit``."""

    @abstractmethod
    def influence(self) -> Floats:
        """Return the standardised influence of each unit."""

    @abstractmethod
    def expected_gap(self, probability: Floats) -> float:
        """Return the expected gap, given the probabilities of the first group."""

    @abstractmethod
    def layout(self) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Return rows and stratum of each unit, and the first group's share of each stratum."""

    def with_gap(self, gap: float) -> TiltedSampler[ProblemT]:
        """Return a copy whose audits have this expected gap; raise if the data cannot reach it."""
        influence = self.influence()
        rows, stratum, shares = self.layout()

        def probabilities(tilt: float) -> Floats:
            return _tilt(tilt * influence, rows, stratum, shares)

        # The gap at tilt 0, which comes from the strata that the metric conditions on.
        explained = self.expected_gap(probabilities(0.0))

        def reached(tilt: float) -> float:
            simulated = self.expected_gap(probabilities(tilt)) - explained
            return simulated * math.copysign(1.0, gap)

        high = math.copysign(0.1, gap)
        while reached(high) < abs(gap):
            high *= 2
            if abs(high) > 50:
                largest = math.copysign(reached(high), gap)
                raise ArgumentError(
                    f"gaps contains {gap:g}, but redrawing the groups of these data reaches at "
                    f"most {largest:.3g}. Pass smaller gaps.",
                    argument="gaps",
                )
        low = 0.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            if reached(middle) < abs(gap):
                low = middle
            else:
                high = middle
        tilted = copy(self)
        tilted.probability = probabilities(high)
        return tilted


def _tilt(push: Floats, rows: Floats, stratum: NDArray[np.int64], shares: Floats) -> Floats:
    """Return logistic(push + offset), where the offset of each stratum preserves its share."""
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
    """Counts by stratum, group and class, and the block of classes that each class belongs to.

    Groups are exchanged within blocks.
    """

    def __init__(self, counts: NDArray[np.uint64], block: NDArray[np.int64]) -> None:
        self.counts = np.ascontiguousarray(counts)
        self.block = np.unique(block, return_inverse=True)[1].ravel()
        self.n_blocks = int(self.block.max()) + 1


class TiltedCounts(TiltedSampler[ProblemT]):
    """`TiltedSampler` for counts: all rows of one class in one stratum are a unit."""

    def __init__(
        self,
        units: CountUnits,
        make: Callable[[NDArray[np.uint64]], ProblemT],
        *,
        influence: Floats,
        gap: Callable[[Floats, Floats], float],
    ) -> None:
        self.units, self.make = units, make
        self.influence_by_class, self.gap = influence, gap

    def draw(self, draws: _native.Draws, audit: int) -> ProblemT:
        """Return the problem with the simulated groups of audit number ``audit``."""
        counts = self.units.counts
        probability = self.probability.reshape(len(counts), -1)
        drawn = _native.tilted_counts(counts, probability, draws, audit, _native.Call())
        return self.make(drawn.reshape(counts.shape))

    def influence(self) -> Floats:
        """Return the standardised influence of each unit."""
        totals = self.units.counts.sum(axis=(0, 1)).astype(float)
        influence = self.influence_by_class
        spread = math.sqrt(float((influence**2 * totals).sum() / totals.sum()))
        scaled: Floats = np.tile(influence / (spread or 1.0), len(self.units.counts))
        return scaled

    def layout(self) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Return rows and stratum of each unit, and the first group's share of each stratum."""
        counts, n_blocks = self.units.counts.astype(float), self.units.n_blocks
        rows = counts.sum(axis=1)
        stratum = (np.arange(len(rows))[:, None] * n_blocks + self.units.block).ravel()
        first = np.bincount(stratum, counts[:, 0].ravel(), len(rows) * n_blocks)
        totals = np.bincount(stratum, rows.ravel(), len(rows) * n_blocks)
        return rows.ravel(), stratum, first / np.maximum(totals, 1)

    def expected_gap(self, probability: Floats) -> float:
        """Return the expected gap, given the probabilities of the first group."""
        rows = self.units.counts.sum(axis=1).astype(float)
        first = (rows * probability.reshape(rows.shape)).sum(axis=0)
        return self.gap(first, rows.sum(axis=0) - first)


class TiltedRows(TiltedSampler[ProblemT]):
    """`TiltedSampler` for rows: a unit is a row or a cluster."""

    def __init__(
        self,
        units: _native.Units,
        make: Callable[[NDArray[Any]], ProblemT],
        *,
        influence: Callable[[], Floats],
        gap: Callable[[Floats], float],
    ) -> None:
        self.units, self.make = units, make
        self.influence_of_units, self.gap = influence, gap

    def draw(self, draws: _native.Draws, audit: int) -> ProblemT:
        """Return the problem with the simulated groups of audit number ``audit``."""
        call, of_row = _native.Call(), self.units.of_row
        codes = _native.tilted_groups(self.units, self.probability, draws, audit, call)
        return self.make(codes if of_row is None else codes[of_row])

    def influence(self) -> Floats:
        """Return the standardised influence of each unit."""
        summed = self.influence_of_units()
        return summed / (float(summed.std()) or 1.0)

    def layout(self) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Return rows and stratum of each unit, and the first group's share of each stratum."""
        group, stratum = self.units.group, self.units.stratum
        codes = np.zeros(len(group), np.int64) if stratum is None else stratum.astype(np.int64)
        n = int(codes.max()) + 1
        totals = np.bincount(codes, minlength=n)
        first = np.bincount(codes, group == 0, n)
        return np.ones(len(group)), codes, first / np.maximum(totals, 1)

    def expected_gap(self, probability: Floats) -> float:
        """Return the expected gap, given the probabilities of the first group."""
        of_row = self.units.of_row
        return self.gap(probability if of_row is None else probability[of_row])
