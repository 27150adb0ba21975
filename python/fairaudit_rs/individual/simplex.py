"""Finds groups of one-hot features, and measures how far a flow moves them off the simplex."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ..data.features import Features
from ..data.indicators import Indicator
from ..errors import DataError
from ..literals import OneHot
from ..report.notes import Note
from .attack import Attack, StoredAttack

Floats = NDArray[np.float64]
Groups = tuple[tuple[int, ...], ...]

#: How one-hot features are attacked.
ONE_HOT: tuple[OneHot, ...] = get_args(OneHot)
#: Number of first rows that rule out most columns that are not indicators.
_FIRST = 1_000
#: Tolerance for the sums of groups that the user gives.
_ROUNDING = 1e-9
#: Departures from the simplex by less than this are ignored.
_NEAR = 0.01
_BLOCK = 1 << 16
#: Number of rows that are processed together, so that some of their columns stay in the cache.
_BLOCK_ROWS = 1 << 13


def found_groups(rows: Floats) -> Groups:
    """Return the runs of adjacent columns that look like one feature, coded one-hot.

    Their values are 0 and 1, each row has a single 1 among them, and the first column is not
    constant.
    """
    n, p = rows.shape
    counts = _indicators(rows)
    groups: list[tuple[int, ...]] = []
    first = 0
    while first < p:
        end, total = first, 0
        while end < p and counts[end] >= 0 and total < n:
            total += counts[end]
            end += 1
        varies = 0 < counts[first] < n
        if varies and total == n and _have_one_each(rows, range(first, end)):
            groups.append(tuple(range(first, end)))
            first = end
        else:
            first += 1
    return tuple(groups)


def one_hot_sets(features: Features) -> Groups:
    """Return all one-hot features: adjacent columns, and columns that their names join.

    Names join columns that are indicators of one column (`Indicator`), or whose names agree up to
    the last "_" or "=".
    """
    rows, names = features
    groups = list(found_groups(rows))
    taken = {column for group in groups for column in group}
    counts = _indicators(rows)
    joined: dict[str, list[int]] = {}
    for place, name in enumerate(names or ()):
        stem = _stem(name)
        if stem and place not in taken and counts[place] >= 0:
            joined.setdefault(stem, []).append(place)
    n = len(rows)
    groups += [
        tuple(group)
        for group in joined.values()
        if any(0 < counts[place] < n for place in group)
        and sum(counts[place] for place in group) == n
        and _have_one_each(rows, group)
    ]
    return tuple(sorted(groups))


def _stem(name: str) -> str:
    """Return the column that an indicator was coded from, judging by its name; else ""."""
    if isinstance(name, Indicator):
        return name.column
    return name[: max(name.rfind("_"), name.rfind("="), 0)]


def _indicators(rows: Floats) -> list[int]:
    """Return the number of ones of each column of zeros and ones; -1 for other columns."""
    start = rows[:_FIRST]
    columns = np.flatnonzero(((start == 0) | (start == 1)).all(axis=0))
    ones = np.zeros(len(columns), dtype=np.int64)
    for part in _parts(len(rows)):
        if not len(columns):
            break
        # Transposed, because reductions over short rows are slow.
        values = np.ascontiguousarray(rows[part][:, columns].T)
        is_one = values == 1
        is_indicator = (is_one | (values == 0)).all(axis=1)
        ones = (ones + np.count_nonzero(is_one, axis=1))[is_indicator]
        columns = columns[is_indicator]
    counts = np.full(rows.shape[1], -1, dtype=np.int64)
    counts[columns] = ones
    return [int(count) for count in counts]


def _have_one_each(rows: Floats, columns: Sequence[int]) -> bool:
    """Return whether some columns of zeros and ones add up to 1 in every row."""
    for part in _parts(len(rows)):
        total = sum(rows[part, column] for column in columns)
        if not np.all(total == 1):
            return False
    return True


def _parts(n: int) -> Iterator[slice]:
    return (slice(first, first + _BLOCK_ROWS) for first in range(0, n, _BLOCK_ROWS))


def check_groups(groups: Groups, rows: Floats, feature_names: Sequence[str]) -> None:
    """Raise if a row of a group has a value below 0 or values that do not sum to 1."""
    for group in groups:
        values = rows[:, group]
        off = (values < 0).any(axis=1) | (np.abs(values.sum(axis=1) - 1) > _ROUNDING)
        if off.any():
            row = int(off.argmax())
            values_text = ", ".join(f"{value:g}" for value in values[row][:10])
            raise DataError(
                f"one_hot_groups has {_names(group, feature_names)}, which are {values_text} in "
                f"row {row}. Give columns of at least 0 that sum to 1 in every row.",
                argument="one_hot_groups",
            )


def find_departure(
    flow: Attack | StoredAttack, groups: Groups, feature_names: Sequence[str]
) -> Note | None:
    """Return a note on the group of features that leaves its simplex farthest, if one does."""
    worst: tuple[float, int, float, tuple[int, ...]] | None = None
    far = np.zeros(len(flow.rows), dtype=bool)
    for group in groups:
        for first in range(0, len(flow.rows), _BLOCK):
            farthest, row, off = _farthest(flow, group, slice(first, first + _BLOCK), far)
            size = max(farthest, off)
            if size > _NEAR and (worst is None or size > worst[0]):
                values = flow.end(slice(row, row + 1), list(group))[0]
                beyond = np.nan_to_num(np.maximum(-values, values - 1), nan=0.0)
                largest = int(beyond.argmax())
                worst = size, group[largest], float(values[largest]), group
    if worst is None:
        return None
    _, column, value, group = worst
    return Note(
        "one-hot-features-leave-range",
        f"one-hot features leave what a person can have in {int(far.sum()):,} of "
        f"{len(far):,} rows: {feature_names[column]} becomes {value:.3g} where 0 to 1 is possible "
        f"({_names(group, feature_names)} sum to 1 in the data); one_hot='keep' holds them there",
        (feature_names[column],),
    )


def _farthest(
    flow: Attack | StoredAttack, group: tuple[int, ...], rows: slice, far: NDArray[np.bool_]
) -> tuple[float, int, float]:
    """Return the largest distance of a value from 0 to 1, its row, and of a sum from 1.

    Rows with either are marked in ``far``; values that became NaN are ignored.
    """
    most, farthest_row, most_off = -np.inf, rows.start, 0.0
    for first in range(rows.start, min(rows.stop, len(far)), _BLOCK_ROWS):
        part = slice(first, min(first + _BLOCK_ROWS, rows.stop))
        values = [flow.feature(part, column) for column in group]
        beyond, known = np.full((2, len(values[0])), -np.inf)
        for value in values:
            outside = np.maximum(-value, value - 1)
            np.maximum(beyond, outside, out=beyond)
            np.fmax(known, outside, out=known)
        off = np.abs(sum(values) - 1)
        far[part] |= np.maximum(beyond, off) > _NEAR
        known = np.where(np.isnan(beyond), np.maximum(known, 0.0), known)
        row = int(known.argmax())
        if known[row] > most:
            most, farthest_row = float(known[row]), first + row
        most_off = max(most_off, float(np.nan_to_num(off, nan=0.0).max()))
    return most, farthest_row, most_off


def _names(group: tuple[int, ...], feature_names: Sequence[str]) -> str:
    names = [feature_names[j] for j in group]
    return ", ".join(names if len(names) <= 4 else [*names[:2], "...", names[-1]])
