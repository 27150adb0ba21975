"""Rows of mixed columns as numbers and codes, and back to a frame of the kind that they came in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arguments import is_number
from ..data.columns import Column, EncodedColumn, is_pandas, list_some
from ..data.features import named_columns
from ..errors import DataError
from .frame_rows import form_of, frame_of, numbers_like, own_columns, take_rows

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Kind = Literal["levels", "integers", "numbers"]

#: Numbers with at most this many distinct values, each of two rows on average, are levels.
_MOST_LEVELS = 10
#: Rows that are generated at once.
MOST_ROWS = 100_000_000
#: Squares of larger numbers are infinite.
_LARGEST = 1e150


@dataclass(frozen=True, eq=False, kw_only=True)
class MixedColumn:
    """A column: levels (text, truth, numbers of few values), whole numbers, or numbers.

    Attributes
    ----------
    name : str
        Its name; x1, x2, ... in an array.
    kind : str
        ``"levels"``, ``"integers"`` or ``"numbers"``.
    labels : tuple
        The distinct values of levels, in order: numbers by size, others by their text, missing
        (None) last. A code is a place in them.
    low, high : float
        The smallest and the largest number.
    shown : object
        The user's own column: at one row of each level, or at one row where it holds numbers.
    """

    name: str
    kind: Kind
    labels: tuple[Any, ...]
    low: float
    high: float
    shown: Any

    @property
    def of_numbers(self) -> bool:
        """Return whether the user's column holds numbers, be they few."""
        return self.kind != "levels" or is_number(self.labels[0])

    def own(self, values: Floats) -> Any:
        """Return codes or numbers as a column of the user's kind."""
        if self.kind == "levels":
            return take_rows(self.shown, values.astype(np.intp))
        held = np.clip(values, self.low, self.high)
        return numbers_like(self.shown, held, whole=self.kind == "integers")


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows of mixed columns, sorted, so that the order in which they came plays no part."""

    columns: tuple[MixedColumn, ...]
    #: Codes and numbers, by row and column.
    values: Floats
    #: A row of the user's frame, for its kind.
    template: Any
    #: Where these rows were in the user's frame.
    order: Places

    def __len__(self) -> int:
        return len(self.values)

    def places(self, *kinds: Kind) -> Places:
        """Return the places of the columns of some kinds."""
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
                f"column {name!r} of X has {len(column):,} rows, column {named[0][0]!r} "
                f"{n_rows:,}; accepted: columns of one length"
            )
    if n_rows < least:
        raise DataError(
            f"X has {n_rows} rows and {len(named)} columns; accepted: at least {least} rows and "
            "one column",
            argument="X",
        )
    found = [
        _column(name, column, own)
        for (name, column), own in zip(named, own_columns(X), strict=True)
    ]
    values = np.column_stack([held for _, held in found])
    order = np.lexsort(values.T[::-1])
    first = take_rows(X, np.zeros(1, np.intp))
    return MixedRows(tuple(c for c, _ in found), values[order], first, order)


def coded_like(rows: MixedRows, X: Any, what: str, *, unseen: bool = False) -> Floats:
    """Return another frame as codes and numbers of these columns, in the order of its rows.

    Refused are other columns, numbers that are not finite or not whole where all are whole, and
    levels of text or truth that `rows` has not (with `unseen` they are coded as -1). A number that
    is no level gets the nearest code.
    """
    form, wanted = form_of(X), form_of(rows.template)
    if form != wanted:
        raise DataError(f"{what} is {form}; accepted: {wanted}, as X is")
    named = named_columns(X)
    names, own = [name for name, _ in named], [column.name for column in rows.columns]
    if names != own:
        raise DataError(
            f"{what} has the columns {list_some(names)}; accepted: those of X, {list_some(own)}"
        )
    held = (column for _, column in named)
    pairs = zip(rows.columns, held, strict=True)
    return np.column_stack([_coded(known, column, what, unseen) for known, column in pairs])


def _column(name: str, column: Column, own: Any) -> tuple[MixedColumn, Floats]:
    """Return what a column is, and its codes or numbers."""
    labels, codes = _labelled(column)
    if labels is None:
        numbers = _finite(column, name, "X")
        labels, codes = _few(numbers)
    elif all(map(is_number, labels)) and not _categorical(own):
        numbers = _finite(np.array([*labels, np.nan], dtype=np.float64)[codes], name, "X")
        labels, codes = _few(numbers)
    elif None in labels and all(map(is_number, [label for label in labels if label is not None])):
        raise DataError(f"column {name!r} of X is missing in some rows; accepted: numbers")
    if labels is None:
        whole = bool((numbers == np.rint(numbers)).all())
        kind: Kind = "integers" if whole else "numbers"
        low, high = float(numbers.min()), float(numbers.max())
        shown = take_rows(own, np.zeros(1, np.intp))
        made = MixedColumn(name=name, kind=kind, labels=(), low=low, high=high, shown=shown)
        return made, numbers
    order = sorted(range(len(labels)), key=lambda code: _rank(labels[code]))
    to = np.empty(len(labels), np.intp)
    to[order] = np.arange(len(labels))
    codes = to[codes]
    _, first = np.unique(codes, return_index=True)
    made = MixedColumn(
        name=name,
        kind="levels",
        labels=tuple(labels[code] for code in order),
        low=0.0,
        high=float(len(labels) - 1),
        shown=take_rows(own, first),
    )
    return made, codes.astype(np.float64)


def _rank(label: Any) -> tuple[bool, float, str]:
    """Return the place of a label in the order: numbers by size, text, and missing last."""
    return label is None, float(label) if is_number(label) else 0.0, str(label)


def _labelled(column: Column) -> tuple[list[Any] | None, Places]:
    """Return the labels that occur and the codes of a column; no labels of an array of numbers."""
    if isinstance(column, EncodedColumn):
        seen, codes = np.unique(column.codes, return_inverse=True)
        known = len(column.labels)
        return [column.labels[int(c)] if c < known else None for c in seen], codes
    if column.dtype.kind in "iuf":
        return None, np.empty(0, np.intp)
    text = np.char.decode(column, errors="replace") if column.dtype.kind == "S" else column
    levels, codes = np.unique(text, return_inverse=True)
    return levels.tolist(), codes


def _few(numbers: Floats) -> tuple[list[Any] | None, Places]:
    """Return numbers of few distinct values as levels."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    if len(distinct) <= min(_MOST_LEVELS, len(numbers) // 2):
        return distinct.tolist(), codes
    return None, codes


def _categorical(own: Any) -> bool:
    return is_pandas(own) and str(own.dtype) == "category"


def _finite(column: Any, name: str, what: str) -> Floats:
    numbers = np.asarray(column, dtype=np.float64)
    bad = ~(np.abs(numbers) <= _LARGEST)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"column {name!r} of {what} is {numbers[row]:g} in row {row}, and missing or "
            f"infinite in {int(bad.sum()):,} rows; accepted: finite numbers (up to {_LARGEST:g})"
        )
    return numbers


def _coded(known: MixedColumn, column: Column, what: str, unseen: bool) -> Floats:
    """Return the codes or numbers of a column of another frame."""
    labels, codes = _labelled(column)
    if known.of_numbers:
        if labels is not None:
            held = [label if is_number(label) else np.nan for label in labels]
            column = np.array(held, dtype=np.float64)[codes]
        numbers = _finite(column, known.name, what)
        if known.kind == "levels":
            levels = np.array(known.labels, dtype=np.float64)
            middles = (levels[1:] + levels[:-1]) / 2
            return np.searchsorted(middles, numbers).astype(np.float64)
        if known.kind == "integers" and not (numbers == np.rint(numbers)).all():
            raise DataError(
                f"column {known.name!r} of {what} has numbers that are not whole; accepted: whole "
                "numbers, as in X"
            )
        return numbers
    if labels is None:
        distinct, codes = np.unique(np.asarray(column), return_inverse=True)
        labels = distinct.tolist()
    place = {label: code for code, label in enumerate(known.labels)}
    others = [label for label in labels if label not in place]
    if others and not unseen:
        raise DataError(
            f"column {known.name!r} of {what} has {list_some(others)}; accepted: "
            f"levels that X has, "
            f"which are {list_some(known.labels, 20)}"
        )
    return np.array([place.get(label, -1) for label in labels], dtype=np.float64)[codes]
