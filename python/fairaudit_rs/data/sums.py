"""Sums by unit that are bit for bit independent of the order of the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Values per block, unless there are more units.
_BLOCK_ROWS = 1 << 16


def sums_of(unit: NDArray[Any], values: Floats, n_units: int = 0) -> Floats:
    """Return the sum of values over each unit, bit for bit independent of the order.

    Each value is rounded to a coarse grid and its rest to a finer one; sums on both grids are
    exact. The remainder is smaller than the rounding of a sum. NaN where a value is not finite.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if not 1e-250 < largest < 1e250:
        # All zeros, or values whose sum can overflow in any order.
        return np.asarray(np.bincount(unit, weights=values, minlength=n_units), dtype=float)
    step = 2.0 ** (math.frexp(largest)[1] + math.frexp(len(values))[1] - 52)
    finer = step * 2.0 ** (math.frexp(len(values))[1] - 52)
    n_units = max(n_units, int(unit.max()) + 1 if len(unit) else 0)
    sums, rest = np.zeros(n_units), np.zeros(n_units)
    # Sums over blocks are exact as well.
    size = max(_BLOCK_ROWS, n_units)
    for start in range(0, len(values), size):
        part, place = values[start : start + size], unit[start : start + size]
        coarse = np.rint(part / step) * step
        sums += np.bincount(place, weights=coarse, minlength=n_units)
        fine = np.rint((part - coarse) / finer) * finer
        rest += np.bincount(place, weights=fine, minlength=n_units)
    return sums + rest
