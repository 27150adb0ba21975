"""Keys of rows by content, for orders and samples that do not depend on the order of the rows.

A row's hash combines its values, column by column. Its key is a hash of that hash, a seed, and the
row's index among rows with the same values. So duplicate rows get different keys and are sampled
individually, and it does not matter which duplicate gets which key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .columns import Column, EncodedColumn

Hashes = NDArray[np.uint64]

#: The steps and multipliers of splitmix64 (Steele, Lea and Flood, 2014).
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_LAST = np.uint64(31)
_MISSING = np.uint64(0x5851F42D4C957F2D)


def row_hashes(columns: Sequence[Column]) -> Hashes:
    """Return a hash of the values of each row."""
    hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        hashes = _mixed(hashes + _STEP + _bits(column))
    return hashes


def row_keys(hashes: Hashes, seed: int) -> Hashes:
    """Return a key for each row; rows with the same hash get different keys."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sizes = np.diff(np.append(starts, len(ordered)))
    rank_among_equal = np.empty(len(hashes), dtype=np.uint64)
    rank_among_equal[order] = np.arange(len(ordered)) - np.repeat(starts, sizes)
    return _mixed(_mixed(hashes + np.uint64(seed)) + rank_among_equal * _STEP)


def content_order(columns: Sequence[Column]) -> NDArray[np.intp]:
    """Return an order of the rows by content; equal rows keep their order."""
    return np.argsort(row_hashes(columns), kind="stable")


def hashes_of_units_by_row(units: NDArray[np.integer], hashes: Hashes) -> Hashes:
    """Return for each row a hash of the contents of all rows of its unit (cluster).

    The identifier of the unit does not matter.
    """
    sums = np.zeros(int(units.max(initial=-1)) + 1, dtype=np.uint64)
    np.add.at(sums, units, _mixed(hashes))
    return np.asarray(sums[units])


def _mixed(values: Hashes) -> Hashes:
    for shift, factor in _MIX:
        values = (values ^ (values >> shift)) * factor
    return values ^ (values >> _LAST)


def _bits(column: Column) -> Hashes:
    """Return 64 bits for each value of a column, equal for equal values."""
    if isinstance(column, EncodedColumn):
        known = [_label_hash(label) for label in column.labels]
        return np.array([*known, _MISSING], dtype=np.uint64)[column.codes]
    if column.dtype == np.uint64:
        return column
    if column.dtype.kind in "biuf":
        # Adding 0 turns -0 into 0, and all kinds of NaN become one value.
        values = column.astype(np.float64) + 0.0
        return np.where(np.isnan(values), _MISSING, values.view(np.uint64))
    labels, codes = np.unique(column.astype(str), return_inverse=True)
    return np.array([_label_hash(label) for label in labels], dtype=np.uint64)[codes]


def _label_hash(label: object) -> int:
    return int.from_bytes(hashlib.blake2b(str(label).encode(), digest_size=8).digest(), "big")
