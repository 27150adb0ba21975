"""Replace values by integer codes 0, 1, ..., in blocks of rows to save memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows per block.
_BLOCK_ROWS = 1 << 18
#: A lookup table is used if the integers span at most this many times the number of rows, plus one
#: block.
_PER_ROW = 4


def split_ranges(n: int) -> Iterator[slice]:
    """Return consecutive ranges of ``n`` rows."""
    return (slice(start, min(start + _BLOCK_ROWS, n)) for start in range(0, n, _BLOCK_ROWS))


def number_values(values: NDArray[Any]) -> tuple[NDArray[np.uint32], int]:
    """Return each value's rank among the distinct ones, and the number of distinct values.

    The same codes as ``np.unique(values, return_inverse=True)``, with all NaN equal, but with less
    memory.
    """
    if values.dtype.kind in "biu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < _PER_ROW * len(values) + _BLOCK_ROWS and max(abs(low), abs(high)) < 2**62:
            return _by_table(values, low, high - low + 1)
    return _by_order(values)


def _by_table(values: NDArray[Any], low: int, size: int) -> tuple[NDArray[np.uint32], int]:
    seen = np.zeros(size, dtype=np.bool_)
    for part in split_ranges(len(values)):
        seen[values[part].astype(np.int64) - low] = True
    n = int(np.count_nonzero(seen))
    if values.dtype == np.uint32 and n == size and not low:
        return values, n
    number = np.cumsum(seen, dtype=np.uint32)
    codes = np.empty(len(values), dtype=np.uint32)
    for part in split_ranges(len(values)):
        codes[part] = number[values[part].astype(np.int64) - low] - 1
    return codes, n


def _by_order(values: NDArray[Any]) -> tuple[NDArray[np.uint32], int]:
    order = np.argsort(values, kind="stable")
    codes = np.empty(len(values), dtype=np.uint32)
    n = 0
    last = values[:0]
    for part in split_ranges(len(values)):
        rows = order[part]
        ordered = values[rows]
        before = np.concatenate([last, ordered[:-1]])
        differs = ordered[len(ordered) - len(before) :] != before
        if values.dtype.kind == "f":
            differs &= ~(np.isnan(ordered[len(ordered) - len(before) :]) & np.isnan(before))
        # The very first value is new.
        new = np.concatenate([np.ones(len(ordered) - len(before), dtype=np.bool_), differs])
        codes[rows] = n + np.cumsum(new) - 1
        n += int(np.count_nonzero(new))
        last = ordered[-1:]
    return codes, n


def codes_by_unit(codes: NDArray[Any], unit: NDArray[np.uint32], n_units: int) -> NDArray[Any]:
    """Return the code of each unit, taken from its last row."""
    unit_codes = np.zeros(n_units, dtype=codes.dtype)
    for part in split_ranges(len(unit)):
        unit_codes[unit[part]] = codes[part]
    return unit_codes


def differing_rows(
    codes: NDArray[Any], unit: NDArray[np.uint32], unit_codes: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return a mask of the rows whose code differs from that of their unit."""
    differs = np.empty(len(unit), dtype=np.bool_)
    for part in split_ranges(len(unit)):
        np.not_equal(unit_codes[unit[part]], codes[part], out=differs[part])
    return differs
