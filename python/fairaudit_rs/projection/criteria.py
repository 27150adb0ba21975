"""Parts of criteria: two sides, tolerances, the density of margins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import Value
from ..inference.proportions import SampleProportion
from .notions import RATES

Array = NDArray[np.float64]

#: The cell of rows that take no part.
NO_CELL = _native.NO_CELL
#: A difference of two rates, such as .8 - .7, is off by less than this.
_ROUNDING = 1e-15


def by_unit(values: NDArray[Any]) -> NDArray[Any]:
    """Add up the two cells of every unit."""
    return np.asarray(values.reshape(-1, 2).sum(axis=1))


@dataclass(frozen=True, eq=False, kw_only=True)
class RateCriterion(Value):
    """Two sets of units whose rates must be equal, ``first`` minus ``second``."""

    label: int | None
    first: Any
    second: Any
    #: Units of each.
    of_first: NDArray[np.bool_]
    of_second: NDArray[np.bool_]
    attribute: str = ""

    @property
    def metric(self) -> str:
        """Name of the rate."""
        return RATES[self.label]


@dataclass(frozen=True, eq=False)
class CriteriaTolerance(Value):
    """The criteria may lie between these bounds; both 0 for the simple null hypothesis."""

    low: Array
    high: Array

    def widened(self) -> CriteriaTolerance:
        """Return bounds that forgive the rounding of a difference of rates."""
        return CriteriaTolerance(self.low - _ROUNDING, self.high + _ROUNDING)

    @property
    def is_sharp(self) -> bool:
        """Return whether no gap but 0 is tolerated on any side that is looked at."""
        bounds = np.concatenate([self.low, self.high])
        return not bounds[np.isfinite(bounds)].any()

    @property
    def simple(self) -> bool:
        """Return whether every criterion must be 0."""
        return not (self.low.any() or self.high.any())


@dataclass(frozen=True)
class Curvature:
    """S of the law at three bandwidths, and how many rows stand behind each criterion."""

    bandwidth: float
    matrices: tuple[Array, Array, Array]
    effective_rows: Array

    @property
    def matrix(self) -> Array:
        """S at the bandwidth itself."""
        return self.matrices[1]


class CriterionDescription(NamedTuple):
    """A description of a criterion and its two rates; a user's criterion has no names."""

    name: str
    attribute: str = ""
    first: Any = None
    second: Any = None
    rates: tuple[float, float] = (math.nan, math.nan)
    #: The least and the largest gap that there can be.
    bounds: tuple[float, float] = (-math.inf, math.inf)
    #: The rates as shares of rows that all count the same.
    shares: tuple[SampleProportion, SampleProportion] | None = None
