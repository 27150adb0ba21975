"""Rows that are alike, in an order that depends on what they hold alone.

A model scores each of them once. As matrix products may round a row otherwise when it stands in
another place of a batch, rows in an order of their own make scores that do not depend on the order
in which the rows were given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import Column, EncodedColumn
from .forms import FeatureForm, RowNumbers

Words = NDArray[np.uint64]

#: Starts of the two words that stand for a row: 128 bits, so that no two of 10^9 rows share them.
_STARTS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_PART = 1 << 16


@dataclass(frozen=True)
class DistinctRows:
    """Places of one row of each kind, in their own order, and the kind of every row."""

    first: RowNumbers
    kind: RowNumbers


def distinct_rows(forms: Sequence[FeatureForm], rows: RowNumbers) -> DistinctRows:
    """Find the rows that are alike in all forms of them."""
    words = row_words(forms, rows)
    order = np.lexsort(words[::-1])
    is_new = np.ones(len(rows), dtype=bool)
    is_new[1:] = np.any([word[order[1:]] != word[order[:-1]] for word in words], axis=0)
    kind = np.empty(len(rows), dtype=np.int64)
    kind[order] = np.cumsum(is_new) - 1
    return DistinctRows(rows[order[is_new]], kind)


def row_words(forms: Sequence[FeatureForm], rows: RowNumbers) -> tuple[Words, ...]:
    """Return two words for each row, equal where rows are alike."""
    words = tuple(np.full(len(rows), start, dtype=np.uint64) for start in _STARTS)
    place = 0
    for form in forms:
        for at in range(form.n_columns):
            place += 1
            bits = _bits(form.column(at))
            step = np.uint64(place * 0xD1342543DE82EF95 % 2**64)
            for start in range(0, len(rows), _PART):
                part = slice(start, start + _PART)
                value = bits[rows[part]] + step
                for word in words:
                    word[part] = _mixed(word[part] ^ value)
    return words


def _mixed(word: Words) -> Words:
    """Return the finaliser of SplitMix64: each bit depends on all of them."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def _bits(column: Column) -> Words:
    """Return a word for each value, by what it is and not by where it stands."""
    if isinstance(column, EncodedColumn):
        named = [_word(label) for label in column.labels]
        return np.array([*named, _word(None)], dtype=np.uint64)[column.codes]
    if column.dtype.kind in "US":
        labels, place = np.unique(column, return_inverse=True)
        return np.array([_word(label) for label in labels.tolist()], np.uint64)[place.ravel()]
    if column.dtype.kind == "f":
        return np.ascontiguousarray(column, dtype=np.float64).view(np.uint64)
    if column.dtype.kind == "i":
        return np.ascontiguousarray(column, dtype=np.int64).view(np.uint64)
    return column.astype(np.uint64)


def _word(label: Any) -> int:
    text = f"{type(label).__name__} {label}".encode("utf-8", errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
