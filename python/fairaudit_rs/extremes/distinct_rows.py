"""Finds identical rows, and orders the distinct rows by their contents only.

A model then scores each distinct row once. A matrix product may round a row differently at another
position in a batch, so the order by contents makes scores independent of the order of the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import Column, EncodedColumn
from .feature_tables import FeatureTable, RowNumbers

Hashes = NDArray[np.uint64]

#: Seeds of the two 64-bit hashes of a row: with 128 bits, 10^9 distinct rows do not collide.
_SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_CHUNK_ROWS = 1 << 16


@dataclass(frozen=True)
class DistinctRows:
    """One row number per distinct row, in hash order, and the distinct row that each row equals."""

    first: RowNumbers
    distinct_of_row: RowNumbers


def find_distinct_rows(feature_tables: Sequence[FeatureTable], rows: RowNumbers) -> DistinctRows:
    """Find the rows that are identical in every form: in X and, if given, its counterfactuals."""
    hashes = row_hashes(feature_tables, rows)
    order = np.lexsort(hashes[::-1])
    is_new = np.ones(len(rows), dtype=bool)
    is_new[1:] = np.any([hash_[order[1:]] != hash_[order[:-1]] for hash_ in hashes], axis=0)
    distinct_of_row = np.empty(len(rows), dtype=np.int64)
    distinct_of_row[order] = np.cumsum(is_new) - 1
    return DistinctRows(rows[order[is_new]], distinct_of_row)


def row_hashes(feature_tables: Sequence[FeatureTable], rows: RowNumbers) -> tuple[Hashes, ...]:
    """Return two hashes for each row, which are equal for identical rows."""
    hashes = tuple(np.full(len(rows), start, dtype=np.uint64) for start in _SEEDS)
    n_columns = 0
    for feature_table in feature_tables:
        for column in range(feature_table.n_columns):
            n_columns += 1
            column_hashes = _hash_column(feature_table.column(column))
            step = np.uint64(n_columns * 0xD1342543DE82EF95 % 2**64)
            for start in range(0, len(rows), _CHUNK_ROWS):
                chunk = slice(start, start + _CHUNK_ROWS)
                value = column_hashes[rows[chunk]] + step
                for hash_ in hashes:
                    hash_[chunk] = _mix(hash_[chunk] ^ value)
    return hashes


def _mix(hash_: Hashes) -> Hashes:
    """Mix by the finaliser of SplitMix64: each output bit depends on every input bit."""
    hash_ = (hash_ ^ (hash_ >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hash_ = (hash_ ^ (hash_ >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hash_ ^ (hash_ >> np.uint64(31))


def _hash_column(column: Column) -> Hashes:
    """Return a hash for each value, which depends on the value, not on its code or row."""
    if isinstance(column, EncodedColumn):
        named = [_hash_label(label) for label in column.labels]
        return np.array([*named, _hash_label(None)], dtype=np.uint64)[column.codes]
    if column.dtype.kind in "US":
        labels, place = np.unique(column, return_inverse=True)
        return np.array([_hash_label(label) for label in labels.tolist()], np.uint64)[place.ravel()]
    if column.dtype.kind == "f":
        return np.ascontiguousarray(column, dtype=np.float64).view(np.uint64)
    if column.dtype.kind == "i":
        return np.ascontiguousarray(column, dtype=np.int64).view(np.uint64)
    return column.astype(np.uint64)


def _hash_label(label: Any) -> int:
    text = f"{type(label).__name__} {label}".encode("utf-8", errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
