"""Labels with a place in an order of their own: ordered categories, intervals, what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


class RankedLabel(str):
    """A label that groups are sorted by its rank; text in every other respect."""

    rank: float

    def __new__(cls, text: str, rank: float) -> RankedLabel:
        """Return the text with its place among the labels of its column."""
        label = super().__new__(cls, text)
        label.rank = rank
        return label

    def __getnewargs__(self) -> tuple[str, float]:  # type: ignore[override]
        return str(self), self.rank


#: The label of missing values that are a group, or a stratum, of their own.
MISSING = RankedLabel("missing", math.inf)


def is_missing_group(label: Any) -> bool:
    """Return whether a label is that of missing values, and not a value of that name."""
    return isinstance(label, RankedLabel) and label.rank == math.inf


def in_order(labels: Iterable[str]) -> list[str]:
    """Return labels that keep the order in which they come."""
    return [RankedLabel(label, rank) for rank, label in enumerate(labels)]


def sort_key(label: Any) -> tuple[int, Any]:
    """Numbers by value, then text by rank, then text by itself; what is missing last."""
    if label is None:
        return (4, 0)
    if isinstance(label, bool):
        return (0, int(label))
    if isinstance(label, RankedLabel):
        return (3, 0) if label.rank == math.inf else (2, (label.rank, str(label)))
    return (1, label) if isinstance(label, int | float) else (2, (math.inf, label))


def with_one_order(keys: Sequence[tuple[Any, ...]], place: int) -> Sequence[tuple[Any, ...]]:
    """Return keys of several parts of the data with one rank for each label in a place.

    Parts may know other categories: a label gets the least rank that it has anywhere, so that the
    order of the parts plays no role.
    """
    if not any(isinstance(key[place], RankedLabel) for key in keys):
        return keys
    least: dict[Any, Any] = {}
    for key in keys:
        label = key[place]
        least[label] = min(least.get(label, label), label, key=sort_key)
    return [(*key[:place], least[key[place]], *key[place + 1 :]) for key in keys]


def used_codes(codes: np.ndarray[Any, Any], n_labels: int) -> tuple[Any, list[int]]:
    """Return codes into the labels that occur, and which of them do; others are missing."""
    known = np.where((codes < 0) | (codes >= n_labels), n_labels, codes).astype(np.int64)
    occurs = np.bincount(known, minlength=n_labels + 1)[:n_labels] > 0
    table = np.full(n_labels + 1, int(occurs.sum()), dtype=np.uint32)
    table[:-1][occurs] = np.arange(int(occurs.sum()), dtype=np.uint32)
    return table[known], np.flatnonzero(occurs).tolist()
