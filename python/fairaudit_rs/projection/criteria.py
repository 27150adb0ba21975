"""What criteria are made of: counts of cells, two sides, tolerances, the density of margins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.proportions import Share
from .notions import RATES
from .transport import MarginRows

Array = NDArray[np.float64]

#: A difference of two rates, such as .8 - .7, is off by less than this.
_ROUNDING = 1e-15


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Rows, weights and squared weights of every cell."""

    rows: NDArray[np.int64]
    finite: NDArray[np.int64]
    weight: Array
    finite_weight: Array
    square: Array

    @classmethod
    def of(cls, columns: MarginRows, n_cells: int, call: _native.Call) -> Tally:
        """Count; distances and weights that are none are refused."""
        rows, finite, weight, finite_weight, square = _native.projection_tally(
            columns.native, n_cells, call
        )
        return cls(
            rows=rows.astype(np.int64),
            finite=finite.astype(np.int64),
            weight=weight,
            finite_weight=finite_weight,
            square=square,
        )

    def by_unit(self, values: NDArray[Any]) -> NDArray[Any]:
        """Add up the two cells of every unit."""
        return np.asarray(values.reshape(-1, 2).sum(axis=1))


@dataclass(frozen=True, kw_only=True)
class Criterion:
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


@dataclass(frozen=True)
class Tolerance:
    """The criteria may lie between these bounds; both 0 for the simple null hypothesis."""

    low: Array
    high: Array

    def widened(self) -> Tolerance:
        """Return bounds that forgive the rounding of a difference of rates."""
        return Tolerance(self.low - _ROUNDING, self.high + _ROUNDING)

    @property
    def simple(self) -> bool:
        """Whether every criterion must be 0."""
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


class Description(NamedTuple):
    """What a criterion compares, and the two rates; those of a user's criterion have no names."""

    name: str
    attribute: str = ""
    first: Any = None
    second: Any = None
    rates: tuple[float, float] = (math.nan, math.nan)
    #: The least and the largest gap that there can be.
    bounds: tuple[float, float] = (-math.inf, math.inf)
    #: The rates as shares of rows that all count the same.
    shares: tuple[Share, Share] | None = None
