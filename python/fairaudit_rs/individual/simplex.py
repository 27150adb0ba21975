"""One-hot features: columns of zeros and ones of which each row has one, and how far flows go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..literals import OneHot
from .attack import Attack, StoredAttack

Floats = NDArray[np.float64]
Groups = tuple[tuple[int, ...], ...]

#: How features that were coded from one are attacked.
ONE_HOT: tuple[OneHot, ...] = get_args(OneHot)
#: Rows that are looked at first, to know most columns that are no indicators.
_FIRST = 1_000
#: Sums of given groups may be off by this much.
_ROUNDING = 1e-9
#: Departures from the simplex by less are not worth a word.
_NEAR = 0.01
_BLOCK = 1 << 16


def found_groups(rows: Floats) -> Groups:
    """Return the runs of columns that look like one feature, coded one-hot.

    Their values are 0 and 1, each row has a single 1 among them, and no column is the same in all
    rows but for those between others.
    """
    n, p = rows.shape
    counts = [int(rows[:, j].sum()) if _is_indicator(rows[:, j]) else -1 for j in range(p)]
    groups: list[tuple[int, ...]] = []
    first = 0
    while first < p:
        end, total = first, 0
        while end < p and counts[end] >= 0 and total < n:
            total += counts[end]
            end += 1
        varies = 0 < counts[first] < n
        if varies and total == n and bool((rows[:, first:end].sum(axis=1) == 1).all()):
            groups.append(tuple(range(first, end)))
            first = end
        else:
            first += 1
    return tuple(groups)


def _is_indicator(column: Floats) -> bool:
    return all(
        bool(((part == 0) | (part == 1)).all()) for part in (column[:_FIRST], column[_FIRST:])
    )


def check_groups(groups: Groups, rows: Floats, called: Sequence[str]) -> None:
    """Refuse given groups in which a row has no choice."""
    for group in groups:
        values = rows[:, group]
        off = (values < 0).any(axis=1) | (np.abs(values.sum(axis=1) - 1) > _ROUNDING)
        if off.any():
            row = int(off.argmax())
            shown = ", ".join(f"{value:g}" for value in values[row][:10])
            raise DataError(
                f"one_hot_groups has {_names(group, called)}, which are {shown} in row {row}; "
                "accepted: columns of at least 0 that sum to 1 in every row"
            )


def departure(flow: Attack | StoredAttack, groups: Groups, called: Sequence[str]) -> str | None:
    """Say which group of features leaves its simplex farthest, if one does."""
    worst: tuple[float, tuple[int, ...], int, float] | None = None
    far = np.zeros(len(flow.rows), dtype=bool)
    for group in groups:
        for first in range(0, len(flow.rows), _BLOCK):
            values = flow.end(slice(first, first + _BLOCK), list(group))
            beyond = np.maximum(-values, values - 1)
            off = np.abs(values.sum(axis=1) - 1)
            far[first : first + _BLOCK] |= np.maximum(beyond.max(axis=1), off) > _NEAR
            # Rows that the flow lost have no place.
            beyond[np.isnan(beyond)] = 0.0
            row, at = np.unravel_index(int(beyond.argmax()), beyond.shape)
            size = max(float(beyond[row, at]), float(np.nan_to_num(off, nan=0.0).max()))
            if size > _NEAR and (worst is None or size > worst[0]):
                worst = size, group, group[at], float(values[row, at])
    if worst is None:
        return None
    _, group, column, value = worst
    return (
        f"one-hot features leave what a person can have in {int(far.sum()):,} of "
        f"{len(far):,} rows: {called[column]} becomes {value:.3g} where 0 to 1 is possible "
        f"({_names(group, called)} sum to 1 in the data); one_hot='keep' holds them there"
    )


def _names(group: tuple[int, ...], called: Sequence[str]) -> str:
    names = [called[j] for j in group]
    return ", ".join(names if len(names) <= 4 else [*names[:2], "...", names[-1]])
