"""The same rows with groups drawn anew: equal ones, or with a gap."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import ArgumentError

Made = TypeVar("Made")
Floats = NDArray[np.float64]
#: Series of the shuffles: none that a test uses.
_SHUFFLE_SERIES = 2**63


class Relabelling(ABC, Generic[Made]):
    """Makes problems with other groups of the same rows, equal in law to begin with."""

    #: Whether it can make problems with a gap.
    tilts = False

    @abstractmethod
    def draw(self, audit: int) -> Made:
        """Return the problem of an audit."""

    def with_gap(self, gap: float) -> Relabelling[Made]:
        """Return what makes problems with an expected gap instead, where it `tilts`."""
        raise NotImplementedError


class Tilted(Relabelling[Made]):
    """Draws the first group more readily from units that move the metric, once a gap is given.

    A tilt multiplies the odds of a unit by the exponential of its influence.
    """

    tilts = True
    #: How readily a unit goes to the first group; None: groups are equal.
    probability: Floats | None = None

    def draw(self, audit: int) -> Made:
        """Return the problem of an audit."""
        return self.shuffled(audit) if self.probability is None else self.tilted(self.probability)

    @abstractmethod
    def shuffled(self, audit: int) -> Made:
        """Return the problem with groups shuffled within strata."""

    @abstractmethod
    def tilted(self, probability: Floats) -> Made:
        """Return a problem in which units go to the first group with these probabilities."""

    @abstractmethod
    def influence(self) -> Floats:
        """Return how much a unit moves the metric, in standard deviations."""

    @abstractmethod
    def expected_gap(self, probability: Floats) -> float:
        """Return the gap of the first group when units go to it with these probabilities."""

    @abstractmethod
    def base(self) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Return the number of rows of each unit, its stratum, the first group's share by it."""

    def with_gap(self, gap: float) -> Tilted[Made]:
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
                    "are drawn anew"
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


class ShuffledAttribute(Relabelling[Made]):
    """A continuous attribute, shuffled within strata."""

    def __init__(
        self,
        attribute: Floats,
        stratum: NDArray[np.uint32] | None,
        generator: np.random.Generator,
        make: Callable[[Floats], Made],
    ) -> None:
        self.make, self.generator = make, generator
        self.attribute, self.stratum = attribute, stratum

    def draw(self, audit: int) -> Made:
        """Return the problem of an audit."""
        del audit
        attribute = self.attribute.copy()
        if self.stratum is None:
            self.generator.shuffle(attribute)
        else:
            for code in np.unique(self.stratum):
                inside = self.stratum == code
                attribute[inside] = self.generator.permutation(attribute[inside])
        return self.make(attribute)


class CountUnits:
    """Counts by stratum, group and class, and the part of each class that exchanges groups."""

    def __init__(self, counts: NDArray[np.uint64], part: NDArray[np.int64]) -> None:
        self.counts = counts
        self.part = np.unique(part, return_inverse=True)[1].ravel()
        self.n_parts = int(self.part.max()) + 1

    def shuffled(self, generator: np.random.Generator) -> NDArray[np.uint64]:
        """Return counts of groups drawn anew within each stratum and part."""
        counts = self.counts.astype(np.int64)
        made = np.zeros_like(counts)
        for stratum, observed in enumerate(counts):
            for part in range(self.n_parts):
                classes = np.flatnonzero(self.part == part)
                sizes, left = observed[:, classes].sum(axis=1), observed[:, classes].sum(axis=0)
                for group, size in enumerate(sizes[:-1]):
                    drawn = _draw(generator, left, int(size))
                    made[stratum, group, classes] = drawn
                    left = left - drawn
                made[stratum, -1, classes] = left
        return made.astype(np.uint64)

    def tilted(self, generator: np.random.Generator, probability: Floats) -> NDArray[np.uint64]:
        """Return counts in which rows went to the first group with these probabilities."""
        counts = self.counts.astype(np.int64)
        made = np.zeros_like(counts)
        rows = counts.sum(axis=1)
        first = generator.binomial(rows, probability.reshape(rows.shape))
        made[:, 0] = first
        sizes = counts[:, 1:].sum(axis=2)
        for stratum, left in enumerate(rows - first):
            # The other groups share what is left as they shared it.
            shares = np.cumsum(sizes[stratum]) / max(sizes[stratum].sum(), 1)
            ends = np.round(shares * left.sum()).astype(np.int64)
            for group, size in enumerate(np.diff(ends, prepend=0)[:-1]):
                drawn = _draw(generator, left, int(size))
                made[stratum, group + 1] = drawn
                left = left - drawn
            made[stratum, -1] = left
        return made.astype(np.uint64)


def _draw(generator: np.random.Generator, left: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Draw rows without replacement."""
    if left.sum() < 10**9:
        drawn: NDArray[np.int64] = generator.multivariate_hypergeometric(
            left, size, method="marginals"
        )
        return drawn
    # NumPy stops here; our own sampler does not.
    drawn = np.zeros_like(left)
    population, needed, call = int(left.sum()), size, _native.Call()
    for k, marked in enumerate(left.tolist()):
        draws = _native.Draws(1, seed=int(generator.integers(2**63)))
        drawn[k] = _native.hypergeometric(population, marked, needed, draws, call)[0]
        population, needed = population - marked, needed - int(drawn[k])
    return drawn


class ShuffledCounts(Relabelling[Made]):
    """Rows of one class, drawn without replacement."""

    def __init__(
        self,
        units: CountUnits,
        generator: np.random.Generator,
        make: Callable[[NDArray[np.uint64]], Made],
    ) -> None:
        self.units, self.generator, self.make = units, generator, make

    def draw(self, audit: int) -> Made:
        """Return the problem of an audit."""
        del audit
        return self.make(self.units.shuffled(self.generator))


class TiltedCounts(Tilted[Made]):
    """Rows of one class; a unit is a class in a stratum."""

    def __init__(
        self,
        units: CountUnits,
        generator: np.random.Generator,
        make: Callable[[NDArray[np.uint64]], Made],
        *,
        influence: Floats,
        gap: Callable[[Floats, Floats], float],
    ) -> None:
        self.units, self.generator, self.make = units, generator, make
        self.of_class, self.gap = influence, gap

    def shuffled(self, audit: int) -> Made:
        """Return the problem with groups shuffled within strata."""
        del audit
        return self.make(self.units.shuffled(self.generator))

    def tilted(self, probability: Floats) -> Made:
        """Return a problem in which units go to the first group with these probabilities."""
        return self.make(self.units.tilted(self.generator, probability))

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


class RowUnits:
    """Rows or clusters of rows that exchange their groups within strata."""

    def __init__(self, units: _native.Units, seed: int) -> None:
        self.group, self.n_groups = units.group, units.n_groups
        self.stratum, self.of_row = units.stratum, units.of_row
        self.assignments = _native.Assignments(units, _native.Call())
        self.draws = _native.Draws(1, seed=seed, series=_SHUFFLE_SERIES)

    def shuffled(self, audit: int) -> NDArray[Any]:
        """Return the group of every row, shuffled."""
        return self.assignments.groups(self.draws, audit, _native.Call())

    def tilted(self, generator: np.random.Generator, probability: Floats) -> NDArray[Any]:
        """Return the group of every row; units went to the first with these probabilities."""
        first = generator.random(len(probability)) < probability
        sizes = np.bincount(self.group, minlength=self.n_groups)[1:]
        rest = generator.permutation(
            np.repeat(
                np.arange(1, len(sizes) + 1),
                np.diff(
                    np.round(np.cumsum(sizes) / sizes.sum() * (~first).sum()), prepend=0
                ).astype(np.int64),
            )
        )
        codes = np.zeros(len(first), dtype=np.int64)
        codes[~first] = rest
        return codes if self.of_row is None else codes[self.of_row]


class ShuffledRows(Relabelling[Made]):
    """Rows, or clusters of rows, that exchange their groups."""

    def __init__(self, units: RowUnits, make: Callable[[NDArray[Any]], Made]) -> None:
        self.units, self.make = units, make

    def draw(self, audit: int) -> Made:
        """Return the problem of an audit."""
        return self.make(self.units.shuffled(audit))


class TiltedRows(Tilted[Made]):
    """Rows or clusters of rows with an influence on the metric."""

    def __init__(
        self,
        units: RowUnits,
        make: Callable[[NDArray[Any]], Made],
        *,
        generator: np.random.Generator,
        influence: Callable[[], Floats],
        gap: Callable[[Floats], float],
    ) -> None:
        self.units, self.make, self.generator = units, make, generator
        self.of_units, self.gap = influence, gap

    def shuffled(self, audit: int) -> Made:
        """Return the problem with groups shuffled within strata."""
        return self.make(self.units.shuffled(audit))

    def tilted(self, probability: Floats) -> Made:
        """Return a problem in which units go to the first group with these probabilities."""
        return self.make(self.units.tilted(self.generator, probability))

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
