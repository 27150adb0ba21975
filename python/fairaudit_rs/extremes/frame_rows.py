"""Rows of a user's frame by their places, and frames of the user's kind from columns."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import is_pandas

Places = NDArray[np.intp]


def form_of(X: Any) -> str:
    """Return what a frame or a column is, in words."""
    package = type(X).__module__.partition(".")[0]
    if isinstance(X, Mapping):
        return "a dict of columns"
    if is_pandas(X):
        return "of pandas"
    if package == "polars":
        return "of polars"
    if hasattr(X, "detach") and hasattr(X, "new_tensor"):
        return "a tensor"
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return "of Arrow"
    return "an array"


def own_columns(X: Any) -> list[Any]:
    """Return the columns of a frame as the user has them, in the order of `named_columns`."""
    form = form_of(X)
    if form == "a dict of columns":
        return list(X.values())
    if form == "of pandas":
        return [X.iloc[:, place] for place in range(X.shape[1])]
    if form == "of polars" and hasattr(X, "get_columns"):
        return list(X.get_columns())
    if form == "of Arrow":
        return list(X.columns)
    held = X if form == "a tensor" else np.asarray(X)
    return [held[:, place] for place in range(held.shape[1])]


def take_rows(X: Any, rows: Places) -> Any:
    """Return some rows of a frame, or of a column, in its own kind; an index begins anew."""
    form = form_of(X)
    if form == "a dict of columns":
        return {name: take_rows(column, rows) for name, column in X.items()}
    if form == "of pandas":
        kept = X.iloc[rows] if hasattr(X, "iloc") else X.take(rows)
        return kept.reset_index(drop=True) if hasattr(kept, "reset_index") else kept
    if form == "of polars":
        return X[rows]
    if form == "of Arrow":
        return X.take(rows)
    if isinstance(X, list | tuple):
        return type(X)(X[row] for row in rows.tolist())
    return X[rows] if hasattr(X, "__getitem__") else np.asarray(X)[rows]


def numbers_like(column: Any, numbers: NDArray[np.float64], *, whole: bool) -> Any:
    """Return numbers as a column like another one: of its kind and type."""
    form = form_of(column)
    if whole:
        numbers = np.rint(numbers)
    if form == "of pandas":
        series = sys.modules["pandas"].Series(numbers)
        listed = _as_objects(column.iloc[0], numbers) if column.dtype == object else None
        return series.astype(column.dtype) if listed is None else type(column)(listed, dtype=object)
    if form == "of polars":
        return type(column)(column.name, numbers).cast(column.dtype)
    if form == "of Arrow":
        return _arrow(column, numbers)
    if form == "a tensor":
        return column.new_tensor(numbers)
    if isinstance(column, list | tuple):
        return type(column)(_as_objects(column[0], numbers))
    held = np.asarray(column)
    if held.dtype == object:
        found = np.empty(len(numbers), dtype=object)
        found[:] = _as_objects(held.flat[0], numbers)
        return found
    return numbers.astype(held.dtype).reshape(-1, *held.shape[1:])


def _as_objects(like: Any, numbers: NDArray[np.float64]) -> list[Any]:
    """Return numbers as Python objects of the type of another one, when it can hold them."""
    whole = bool((numbers == np.rint(numbers)).all())
    kind = type(like) if whole or not isinstance(like, int | np.integer) else float
    return [kind(number) for number in numbers.tolist()]


def _arrow(column: Any, numbers: NDArray[np.float64]) -> Any:
    import pyarrow as pa

    found = pa.array(numbers).cast(column.type)
    return pa.chunked_array([found]) if isinstance(column, pa.ChunkedArray) else found


def frame_of(template: Any, columns: list[Any]) -> Any:
    """Return columns as a frame of the kind of another one, with its names."""
    form = form_of(template)
    if form == "a dict of columns":
        return dict(zip(template, columns, strict=True))
    if form == "of pandas":
        found = type(template)(dict(enumerate(columns)))
        found.columns = template.columns
        return found
    if form == "of polars":
        return type(template)(columns)
    if form == "of Arrow":
        return type(template).from_arrays(columns, schema=template.schema)
    if form == "a tensor":
        import torch

        return torch.stack(columns, dim=1)
    return np.stack(columns, axis=1)


def join_rows(first: Any, second: Any) -> Any:
    """Return the rows of two frames of one kind with the same columns, one after the other."""
    form = form_of(first)
    if form == "a dict of columns":
        return {name: join_rows(column, second[name]) for name, column in first.items()}
    if form == "of pandas":
        return sys.modules["pandas"].concat([first, second], ignore_index=True)
    if form == "of polars":
        return sys.modules["polars"].concat([first, second])
    if form == "of Arrow":
        arrow = sys.modules["pyarrow"]
        if hasattr(first, "schema"):
            return arrow.concat_tables([first, second.cast(first.schema)])
        return arrow.chunked_array([first, second])
    if form == "a tensor":
        return sys.modules["torch"].cat([first, second])
    if isinstance(first, list | tuple):
        return type(first)([*first, *second])
    return np.concatenate([first, second])
