"""What the scores of the rows are measured against: labels, classes or numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.columns import Coded, column_array, some
from ..data.labels import Label, binary, check_pos_label, matches
from ..errors import ArgumentError, ArgumentTypeError, DataError

Floats = NDArray[np.float64]
#: By score and row.


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels 0 and 1, numbers of classes, or numbers, and the loss of scores for them."""

    values: Floats
    loss: str
    #: The score from which on the decision is 1; None with several scores, the largest decides.
    boundary: float | None
    n_threads: int | None

    @cached_property
    def call(self) -> _native.Call:
        """How the native module is called."""
        return _native.Call(self.n_threads)

    def __len__(self) -> int:
        return len(self.values)

    def of_rows(self, chosen: NDArray[np.intp]) -> Targets:
        """Return the targets of some rows."""
        return replace(self, values=self.values[chosen])

    def losses(self, scores: Floats, part: slice = slice(None)) -> Floats:
        """Return the losses of some rows; NaN where a score is not finite."""
        losses = _native.losses(
            np.ascontiguousarray(scores).ravel(), self.values[part], self.loss, self.call
        )
        # A flow that grew without bound may end where the loss is 0: that is no loss either.
        losses[~np.isfinite(scores).all(axis=0)] = np.nan
        return losses

    def wrong(self, scores: Floats, part: slice = slice(None)) -> NDArray[np.bool_]:
        """Return which decisions are wrong."""
        if self.boundary is None:
            return np.asarray(scores.argmax(axis=0) != self.values[part])
        return np.asarray((scores[0] >= self.boundary) != (self.values[part] == 1))


def labels(y: Any, pos_label: Label) -> Floats:
    """Return labels as 0 and 1."""
    values, place = _distinct(y)
    if pos_label is not None:
        check_pos_label(pos_label, {"y": values})
    return binary("y", values, pos_label)[place].astype(np.float64)


def classes(y: Any, known: tuple[Label, ...], pos_label: Label) -> Floats:
    """Return labels as positions among the classes of a model."""
    if pos_label is not None and len(known) > 2:
        raise ArgumentTypeError(
            f"pos_label is {pos_label!r}, but the model has {len(known)} classes; accepted: None"
        )
    if pos_label is not None and not matches(known[1], pos_label):
        raise ArgumentError(
            f"pos_label is {pos_label!r}, but the model gives the score of {known[1]!r}; accepted: "
            "that, or None"
        )
    values, place = _distinct(y)
    numbers = []
    for value in values:
        found = [number for number, one in enumerate(known) if matches(value, one)]
        if not found:
            raise DataError(
                f"y holds {value!r}; accepted: classes of the model, which are "
                f"{some(list(known), 20)}"
            )
        numbers.append(found[0])
    return np.array(numbers, dtype=np.float64)[place]


def numbers(y: Any, pos_label: Label) -> Floats:
    """Return numbers as they are; labels as 0 and 1 with a positive one."""
    if pos_label is not None:
        return labels(y, pos_label)
    column = column_array("y", y)
    if isinstance(column, Coded) or column.dtype.kind not in "biuf":
        raise DataError("y holds text; accepted with loss='squared': numbers, or pos_label")
    _check_finite(column)
    return column.astype(np.float64)


def _distinct(y: Any) -> tuple[list[Label], NDArray[np.int64]]:
    """Return the distinct values of a column, and which of them each row has."""
    column = column_array("y", y)
    if isinstance(column, Coded):
        values, place = list(column.labels), column.codes.astype(np.int64)
        if len(place) and place.max() >= len(values):
            raise DataError("y is missing in some rows; accepted: a label in every row")
        return values, place
    _check_finite(column)
    distinct, found = np.unique(column, return_inverse=True)
    return distinct.tolist(), found.ravel()


def _check_finite(column: NDArray[Any]) -> None:
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise DataError("y is missing or infinite in some rows; accepted: a value in every row")
