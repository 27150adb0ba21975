"""Converts frames of mixed columns to numbers and codes, and back to the kind of frame given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arguments import is_number
from ..data.columns import Column, EncodedColumn, is_pandas, list_some
from ..data.features import named_columns
from ..errors import DataError
from .frame_rows import frame_of, kind_of, numbers_like, own_columns, take_rows

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Kind = Literal["levels", "integers", "numbers"]

#: Numbers with at most this many distinct values, and two rows per value on average, are levels.
_MOST_LEVELS = 10
#: The most rows of one top-up.
MOST_ROWS = 100_000_000
#: Squares of larger numbers are infinite.
_LARGEST = 1e150


@dataclass(frozen=True, eq=False, kw_only=True)
class MixedColumn:
    """A column: levels (text, booleans, numbers with few values), whole numbers, or numbers.

    Attributes
    ----------
    name : str
        The name of the column; x1, x2, ... in an array.
    kind : str
        ``"levels"``, ``"integers"`` or ``"numbers"``.
    labels : tuple
        The distinct levels in order: numbers by size, others by their text, missing (None) last.
        Codes are positions in this tuple.
    low, high : float
        The smallest and the largest number.
    shown : object
        Part of the user's column: one row of each level, or one row of a column of numbers.
    """

    name: str
    kind: Kind
    labels: tuple[Any, ...]
    low: float
    high: float
    shown: Any

    @property
    def of_numbers(self) -> bool:
        """Return whether the user's column has numbers, even if they are read as levels."""
        return self.kind != "levels" or is_number(self.labels[0])

    def own(self, values: Floats) -> Any:
        """Return codes or numbers as a column of the user's kind."""
        if self.kind == "levels":
            return take_rows(self.shown, values.astype(np.intp))
        clipped = np.clip(values, self.low, self.high)
        return numbers_like(self.shown, clipped, whole=self.kind == "integers")


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows of mixed columns, sorted, so that results do not depend on the order of the rows."""

    columns: tuple[MixedColumn, ...]
    #: Codes and numbers, by row and column.
    values: Floats
    #: One row of the user's frame, for its kind and column names.
    template: Any
    #: Positions of these rows in the user's frame.
    order: Places

    def __len__(self) -> int:
        return len(self.values)

    def places(self, *kinds: Kind) -> Places:
        """Return the positions of the columns of some kinds."""
        return np.array([i for i, c in enumerate(self.columns) if c.kind in kinds], dtype=np.intp)

    def frame(self, values: Floats) -> Any:
        """Return codes and numbers as a frame of the user's kind."""
        own = [column.own(values[:, place]) for place, column in enumerate(self.columns)]
        return frame_of(self.template, own)


def read_mixed(X: Any, least: int = 2) -> MixedRows:
    """Read a frame of mixed columns: arrays, dicts of columns, pandas, polars, Arrow, tensors.

    Numbers must be finite; missing text is a level of its own.
    """
    named = named_columns(X)
    n_rows = len(named[0][1]) if named else 0
    for name, column in named:
        if len(column) != n_rows:
            raise DataError(
                f"column {name!r} of X has {len(column):,} rows, but column {named[0][0]!r} has "
                f"{n_rows:,}. Pass columns of equal length.",
                argument="X",
            )
    if n_rows < least:
        raise DataError(
            f"X has {n_rows} rows and {len(named)} columns; accepted: at least {least} rows and "
            "one column",
            argument="X",
        )
    columns = [
        _column(name, column, own)
        for (name, column), own in zip(named, own_columns(X), strict=True)
    ]
    values = np.column_stack([held for _, held in columns])
    order = np.lexsort(values.T[::-1])
    first = take_rows(X, np.zeros(1, np.intp))
    return MixedRows(tuple(c for c, _ in columns), values[order], first, order)


def coded_like(
    rows: MixedRows, X: Any, called: str, *, argument: str | None = None, unseen: bool = False
) -> Floats:
    """Return another frame as codes and numbers of these columns, in the order of its rows.

    Other columns, numbers that are not finite, fractions in a column of whole numbers, and unknown
    levels of text are errors; with `unseen`, unknown levels are coded as -1. In a column of few
    numbers, a new number gets the code of the nearest one. Messages call the frame `called`.
    """
    argument = called if argument is None else argument
    kind, wanted = kind_of(X), kind_of(rows.template)
    if kind != wanted:
        raise DataError(f"{called} is {kind}; accepted: {wanted}, like X", argument=argument)
    named = named_columns(X)
    names, own = [name for name, _ in named], [column.name for column in rows.columns]
    if names != own:
        raise DataError(
            f"{called} has the columns {list_some(names)}; accepted: those of X, {list_some(own)}",
            argument=argument,
        )
    entries = (column for _, column in named)
    pairs = zip(rows.columns, entries, strict=True)
    return np.column_stack(
        [_coded(known, column, called, argument, unseen=unseen) for known, column in pairs]
    )


def _column(name: str, column: Column, own: Any) -> tuple[MixedColumn, Floats]:
    """Return the description of a column, and its codes or numbers."""
    labels, codes = _labelled(column)
    if labels is None:
        numbers = _finite(column, name, "X", "X")
        labels, codes = _levels_of_few_numbers(numbers)
    elif all(map(is_number, labels)) and not _categorical(own):
        numbers = _finite(np.array([*labels, np.nan], dtype=np.float64)[codes], name, "X", "X")
        labels, codes = _levels_of_few_numbers(numbers)
    elif None in labels and all(map(is_number, [label for label in labels if label is not None])):
        raise DataError(
            f"column {name!r} of X has numbers and missing values. Remove these rows, or fill in "
            "numbers.",
            argument="X",
        )
    if labels is None:
        whole = bool((numbers == np.rint(numbers)).all())
        kind: Kind = "integers" if whole else "numbers"
        low, high = float(numbers.min()), float(numbers.max())
        shown = take_rows(own, np.zeros(1, np.intp))
        mixed = MixedColumn(name=name, kind=kind, labels=(), low=low, high=high, shown=shown)
        return mixed, numbers
    order = sorted(range(len(labels)), key=lambda code: _rank(labels[code]))
    new_code = np.empty(len(labels), np.intp)
    new_code[order] = np.arange(len(labels))
    codes = new_code[codes]
    _, first = np.unique(codes, return_index=True)
    mixed = MixedColumn(
        name=name,
        kind="levels",
        labels=tuple(labels[code] for code in order),
        low=0.0,
        high=float(len(labels) - 1),
        shown=take_rows(own, first),
    )
    return mixed, codes.astype(np.float64)


def _rank(label: Any) -> tuple[bool, float, str]:
    """Return the sort key of a label: numbers by size, others by text, missing last."""
    return label is None, float(label) if is_number(label) else 0.0, str(label)


def _labelled(column: Column) -> tuple[list[Any] | None, Places]:
    """Return the labels and codes of a column; None and no codes for an array of numbers."""
    if isinstance(column, EncodedColumn):
        seen, codes = np.unique(column.codes, return_inverse=True)
        known = len(column.labels)
        return [column.labels[int(c)] if c < known else None for c in seen], codes
    if column.dtype.kind in "iuf":
        return None, np.empty(0, np.intp)
    text = np.char.decode(column, errors="replace") if column.dtype.kind == "S" else column
    levels, codes = np.unique(text, return_inverse=True)
    return levels.tolist(), codes


def _levels_of_few_numbers(numbers: Floats) -> tuple[list[Any] | None, Places]:
    """Return labels and codes of numbers with few distinct values; None for other numbers."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    if len(distinct) <= min(_MOST_LEVELS, len(numbers) // 2):
        return distinct.tolist(), codes
    return None, codes


def _categorical(own: Any) -> bool:
    return is_pandas(own) and str(own.dtype) == "category"


def _finite(column: Any, name: str, called: str, argument: str) -> Floats:
    numbers = np.asarray(column, dtype=np.float64)
    bad = ~(np.abs(numbers) <= _LARGEST)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"column {name!r} of {called} is {numbers[row]:g} in row {row}, and missing, infinite "
            f"or too large in {int(bad.sum()):,} rows; accepted: finite numbers (up to "
            f"{_LARGEST:g})",
            argument=argument,
        )
    return numbers


def _coded(
    known: MixedColumn, column: Column, called: str, argument: str, *, unseen: bool
) -> Floats:
    """Return the codes or numbers of a column of another frame."""
    labels, codes = _labelled(column)
    if known.of_numbers:
        if labels is not None:
            numeric = [label if is_number(label) else np.nan for label in labels]
            column = np.array(numeric, dtype=np.float64)[codes]
        numbers = _finite(column, known.name, called, argument)
        if known.kind == "levels":
            levels = np.array(known.labels, dtype=np.float64)
            middles = (levels[1:] + levels[:-1]) / 2
            return np.searchsorted(middles, numbers).astype(np.float64)
        if known.kind == "integers" and not (numbers == np.rint(numbers)).all():
            raise DataError(
                f"column {known.name!r} of {called} has numbers that are not whole; accepted: "
                "whole numbers, as in X",
                argument=argument,
            )
        return numbers
    if labels is None:
        distinct, codes = np.unique(np.asarray(column), return_inverse=True)
        labels = distinct.tolist()
    codes_by_label = {label: code for code, label in enumerate(known.labels)}
    unknown = [label for label in labels if label not in codes_by_label]
    if unknown and not unseen:
        raise DataError(
            f"column {known.name!r} of {called} has {list_some(unknown)}; accepted: the levels of "
            f"X, {list_some(known.labels, 20)}",
            argument=argument,
        )
    return np.array([codes_by_label.get(label, -1) for label in labels], dtype=np.float64)[codes]
