"""Text labels with a rank for sorting: categories, intervals, bands, and the missing group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


class RankedLabel(str):
    """A text label that is sorted by its rank."""

    rank: float

    def __new__(cls, text: str, rank: float) -> RankedLabel:
        """Make a label with its rank among the labels of its column."""
        label = super().__new__(cls, text)
        label.rank = rank
        return label

    def __getnewargs__(self) -> tuple[str, float]:  # type: ignore[override]
        return str(self), self.rank


#: The label of missing values that form their own group or stratum.
MISSING = RankedLabel("missing", math.inf)


def is_missing_group(label: Any) -> bool:
    """Return whether a label is that of missing values, and not the text "missing"."""
    return isinstance(label, RankedLabel) and label.rank == math.inf


def rank_labels(labels: Iterable[str]) -> list[str]:
    """Return the labels with ranks, so that they sort in the given order."""
    return [RankedLabel(label, rank) for rank, label in enumerate(labels)]


def sort_key(label: Any) -> tuple[int, Any]:
    """Return a key that sorts numbers by value, then text by rank, then other text, None last."""
    if label is None:
        return (4, 0)
    if isinstance(label, bool):
        return (0, int(label))
    if isinstance(label, RankedLabel):
        return (3, 0) if label.rank == math.inf else (2, (label.rank, str(label)))
    return (1, label) if isinstance(label, int | float) else (2, (math.inf, label))


def unify_ranks(keys: Sequence[tuple[Any, ...]], position: int) -> Sequence[tuple[Any, ...]]:
    """Give each label at a position of the keys a single rank.

    Parts of the data may have different categories. A label gets its lowest rank in any part, so
    that the order of the parts does not matter.
    """
    if not any(isinstance(key[position], RankedLabel) for key in keys):
        return keys
    least: dict[Any, Any] = {}
    for key in keys:
        label = key[position]
        least[label] = min(least.get(label, label), label, key=sort_key)
    return [(*key[:position], least[key[position]], *key[position + 1 :]) for key in keys]


def drop_unused_labels(codes: np.ndarray[Any, Any], n_labels: int) -> tuple[Any, list[int]]:
    """Renumber codes to the labels that occur; return the codes and the indices of these labels."""
    known = np.where((codes < 0) | (codes >= n_labels), n_labels, codes).astype(np.int64)
    occurs = np.bincount(known, minlength=n_labels + 1)[:n_labels] > 0
    table = np.full(n_labels + 1, int(occurs.sum()), dtype=np.uint32)
    table[:-1][occurs] = np.arange(int(occurs.sum()), dtype=np.uint32)
    return table[known], np.flatnonzero(occurs).tolist()
