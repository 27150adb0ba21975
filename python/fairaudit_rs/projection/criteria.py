"""Small classes that describe a criterion: its two sides, its tolerance, its curvature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import EqualByValue
from ..inference.proportions import SampleProportion
from .notions import RATES

Array = NDArray[np.float64]

#: The cell of rows that are excluded.
NO_CELL = _native.NO_CELL
#: The most that a difference of two rates, such as 0.8 - 0.7, is off by rounding.
_ROUNDING = 1e-15


def by_unit(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sums over the two cells (decisions) of every unit."""
    return np.asarray(values.reshape(-1, 2).sum(axis=1))


@dataclass(frozen=True, eq=False, kw_only=True)
class RateCriterion(EqualByValue):
    """Two sets of units whose rates must be equal; the gap is ``first`` minus ``second``."""

    label: int | None
    first: Any
    second: Any
    #: Masks of the units of each.
    of_first: NDArray[np.bool_]
    of_second: NDArray[np.bool_]
    attribute: str = ""

    @property
    def metric(self) -> str:
        """The name of the rate."""
        return RATES[self.label]


@dataclass(frozen=True, eq=False)
class CriteriaTolerance(EqualByValue):
    """The bounds between which the criteria count as fair; both 0 without a tolerance."""

    low: Array
    high: Array

    def widened(self) -> CriteriaTolerance:
        """Return bounds that allow for the rounding of a difference of rates."""
        return CriteriaTolerance(self.low - _ROUNDING, self.high + _ROUNDING)

    @property
    def is_sharp(self) -> bool:
        """Return whether all finite bounds are 0."""
        bounds = np.concatenate([self.low, self.high])
        return not bounds[np.isfinite(bounds)].any()

    @property
    def simple(self) -> bool:
        """Return whether all bounds are 0, so that every criterion must be 0."""
        return not (self.low.any() or self.high.any())


@dataclass(frozen=True)
class Curvature:
    """The matrix S of the limit law at three bandwidths, and the effective rows by criterion."""

    bandwidth: float
    matrices: tuple[Array, Array, Array]
    effective_rows: Array

    @property
    def matrix(self) -> Array:
        """S at the requested bandwidth."""
        return self.matrices[1]


class CriterionDescription(NamedTuple):
    """A criterion and its two rates; a criterion of a user's `Notion` has only a name."""

    name: str
    attribute: str = ""
    first: Any = None
    second: Any = None
    rates: tuple[float, float] = (math.nan, math.nan)
    #: The smallest and the largest possible gap.
    bounds: tuple[float, float] = (-math.inf, math.inf)
    #: The rates as sample proportions; None if rows have weights.
    shares: tuple[SampleProportion, SampleProportion] | None = None
