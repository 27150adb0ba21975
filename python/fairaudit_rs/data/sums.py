"""Sums by unit whose bits do not depend on the order of the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def sums_of(unit: NDArray[Any], values: Floats, n_units: int = 0) -> Floats:
    """Return the sums of values over each unit, with bits that do not depend on the order.

    Values are split on two grids that are so coarse that their sums have no rounding. What is
    below the second counts less than the rounding of a sum; NaN where a value is not finite.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if not 1e-250 < largest < 1e250:
        # Zeros, or numbers that have no sum in any order.
        return np.asarray(np.bincount(unit, weights=values, minlength=n_units), dtype=float)
    step = 2.0 ** (math.frexp(largest)[1] + math.frexp(len(values))[1] - 52)
    finer = step * 2.0 ** (math.frexp(len(values))[1] - 52)
    coarse = np.rint(values / step) * step
    fine = np.rint((values - coarse) / finer) * finer
    sums = np.bincount(unit, weights=coarse, minlength=n_units)
    return np.asarray(sums + np.bincount(unit, weights=fine, minlength=n_units))
