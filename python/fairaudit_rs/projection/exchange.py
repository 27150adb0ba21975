"""Permutation replicates for criteria that the native module does not cover.

The native module covers groups that are compared with one reference. This module exchanges
decisions at random for ``attributes="separate"`` and for a user's `Notion`, and computes the cost
of removing the resulting gaps. A replicate depends on its index alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .criteria import by_unit
from .notions import Notion, NotionValues

Array = NDArray[np.float64]


class ExchangeTest(Protocol):
    """A statistic with its observed value and any range of its replicates."""

    @property
    def observed(self) -> float:
        """The observed statistic."""

    def null_distribution(self, draws: _native.Draws, call: _native.Call) -> Array:
        """Return the statistic of a range of replicates, in order."""


class GapSampler(Protocol):
    """Draws the gaps of replicates."""

    def draw(self, replicate: int, draws: _native.Draws) -> Array:
        """Return the gaps of the replicate with this index."""


@dataclass(frozen=True)
class GapTest:
    """The test whose statistic is the cost of removing the gaps."""

    gap: Array
    gaps: GapSampler
    cost: Callable[[Array], float]

    @property
    def observed(self) -> float:
        """The cost of removing the observed gaps."""
        return self.cost(self.gap)

    def null_distribution(self, draws: _native.Draws, call: _native.Call) -> Array:
        """Return the cost of removing the gaps of each replicate."""
        null = np.empty(draws.n)
        for i in range(draws.n):
            null[i] = self.cost(self.gaps.draw(draws.first + i, draws))
            if call.progress is not None:
                call.progress(i + 1)
        return null


@dataclass(frozen=True, kw_only=True)
class UnitGaps:
    """Gaps after decisions are exchanged among the units of one label."""

    #: The number of rows of every cell.
    rows: NDArray[np.int64]
    unit_label: NDArray[np.int64]
    #: phi by unit and criterion.
    phi: Array

    @cached_property
    def _unit(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.unit_label)), by_unit(self.rows))

    @cached_property
    def _exchange(self) -> _native.Assignments:
        decided = np.repeat(np.arange(len(self.rows)) % 2, self.rows)
        stratum = self.unit_label[self._unit] + 1
        return _exchange(decided, stratum.astype(np.uint32))

    def draw(self, replicate: int, draws: _native.Draws) -> Array:
        """Return the gaps of a replicate."""
        positive = self._exchange.groups(draws, replicate, _native.Call())
        decided = np.bincount(self._unit, positive, len(self.unit_label))
        return np.asarray(decided @ self.phi / len(self._unit))


@dataclass(frozen=True, kw_only=True)
class RowGaps:
    """Gaps after decisions are exchanged among the rows of a stratum.

    Without user-defined strata, all rows exchange decisions. A fair model does not imply that they
    are exchangeable, so gaps are rescaled from the covariance of the replicate to that of the data.
    """

    notion: Notion
    decisions: NDArray[np.uint16]
    stratum: NDArray[np.uint32] | None
    covariance: Array
    covariance_of: Callable[[NotionValues], Array]

    @cached_property
    def _exchange(self) -> _native.Assignments:
        return _exchange(self.decisions, self.stratum)

    @cached_property
    def _root(self) -> Array:
        return _root(self.covariance)

    def draw(self, replicate: int, draws: _native.Draws) -> Array:
        """Return the gaps of a replicate."""
        positive = self._exchange.groups(draws, replicate, _native.Call())
        drawn = self.notion.evaluate(positive, None)
        if self.stratum is not None:
            return drawn.gap
        root = _root(self.covariance_of(drawn))
        return np.asarray(self._root @ np.linalg.lstsq(root, drawn.gap, rcond=1e-12)[0])


def _exchange(
    decisions: NDArray[np.integer], stratum: NDArray[np.uint32] | None
) -> _native.Assignments:
    """Return a sampler of the decisions of all rows."""
    units = _native.Units(decisions.astype(np.uint16), 2, stratum=stratum)
    return _native.Assignments(units, _native.Call())


def _root(matrix: Array) -> Array:
    """Return the symmetric square root."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)
