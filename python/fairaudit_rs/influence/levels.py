"""Find the levels of text and boolean columns, with missing values as a level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.columns import Column, EncodedColumn
from ..errors import DataError

#: The most levels of a categorical feature.
_MOST_LEVELS = 200
_MISSING = "missing"


def with_text_codes(column: Column) -> Column:
    """Return a column with fixed-width text as codes."""
    if isinstance(column, EncodedColumn) or column.dtype.kind in "biuf":
        return column
    distinct, codes = np.unique(column, return_inverse=True)
    named = np.char.decode(distinct, "latin-1") if distinct.dtype.kind == "S" else distinct
    return EncodedColumn(codes.ravel().astype(np.uint32), [str(value) for value in named])


def present_levels(column: Column) -> list[bool]:
    """Return whether each level occurs, in the order of the levels."""
    if not isinstance(column, EncodedColumn):
        return [not column.all(), bool(column.any())]
    _, place = ordered_levels(column)
    counts = np.bincount(column.codes, minlength=len(place))
    occurs = np.zeros(len(place), dtype=bool)
    occurs[place] = counts > 0
    return occurs.tolist()


def ordered_levels(column: Column) -> tuple[list[str | None], NDArray[np.int64]]:
    """Return the sorted levels, missing (None) last, and the position of every code."""
    if not isinstance(column, EncodedColumn):
        return ["False", "True"], np.arange(2)
    named = [str(value) for value in column.labels]
    order = sorted(range(len(named)), key=named.__getitem__)
    place = np.empty(len(named) + 1, dtype=np.int64)
    place[order] = np.arange(len(named))
    place[len(named)] = len(named)
    return [*(named[i] for i in order), None], place


def levels_of(
    name: str, column: Column, is_truth: bool
) -> tuple[list[str | None], NDArray[np.int64]]:
    """Return the sorted levels, missing last, and the position of the level of every row."""
    column = with_text_codes(column)
    if not isinstance(column, EncodedColumn) and len(column) and column.dtype.kind != "b":
        needed = "booleans are needed (or 0 and 1)" if is_truth else "text is needed"
        if not (is_truth and np.isin(column, (0, 1)).all()):
            raise DataError(
                f"feature {name!r} holds numbers where {needed}. Convert it to "
                f"{'booleans' if is_truth else 'text'}.",
                argument="X",
            )
    levels, place = ordered_levels(column)
    codes = column.codes if isinstance(column, EncodedColumn) else column.astype(np.int64)
    return levels, place[codes]


def name_of_missing(levels: Sequence[str]) -> str:
    """Return a name for the missing value that no level has."""
    name = _MISSING
    while name in levels:
        name = f"({name})"
    return name


def check_levels(name: str, n_levels: int) -> None:
    """Raise if there are too many levels to compare."""
    if n_levels > _MOST_LEVELS:
        raise DataError(
            f"feature {name!r} has {n_levels:,} levels; accepted: at most {_MOST_LEVELS}. Merge "
            "levels first.",
            argument="X",
        )
