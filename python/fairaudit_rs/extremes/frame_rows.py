"""Takes rows of a user's frame, and builds frames of the same kind from columns or rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import is_pandas

Places = NDArray[np.intp]


def kind_of(X: Any) -> str:
    """Return the kind of a frame or a column, in words that messages use."""
    package = type(X).__module__.partition(".")[0]
    if isinstance(X, Mapping):
        return "a dict of columns"
    if is_pandas(X):
        return "a pandas object"
    if package == "polars":
        return "a polars object"
    if hasattr(X, "detach") and hasattr(X, "new_tensor"):
        return "a tensor"
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return "an Arrow object"
    return "an array"


def own_columns(X: Any) -> list[Any]:
    """Return the columns of a frame, unconverted, in the order of `named_columns`."""
    kind = kind_of(X)
    if kind == "a dict of columns":
        return list(X.values())
    if kind == "a pandas object":
        return [X.iloc[:, place] for place in range(X.shape[1])]
    if kind == "a polars object" and hasattr(X, "get_columns"):
        return list(X.get_columns())
    if kind == "an Arrow object":
        return list(X.columns)
    array = X if kind == "a tensor" else np.asarray(X)
    return [array[:, place] for place in range(array.shape[1])]


def take_rows(X: Any, rows: Places) -> Any:
    """Return some rows of a frame or a column, as the same kind of object with a new index."""
    kind = kind_of(X)
    if kind == "a dict of columns":
        return {name: take_rows(column, rows) for name, column in X.items()}
    if kind == "a pandas object":
        taken = X.iloc[rows] if hasattr(X, "iloc") else X.take(rows)
        return taken.reset_index(drop=True) if hasattr(taken, "reset_index") else taken
    if kind == "a polars object":
        return X[rows]
    if kind == "an Arrow object":
        return X.take(rows)
    if isinstance(X, list | tuple):
        return type(X)(X[row] for row in rows.tolist())
    return X[rows] if hasattr(X, "__getitem__") else np.asarray(X)[rows]


def numbers_like(column: Any, numbers: NDArray[np.float64], *, whole: bool) -> Any:
    """Return numbers as a column of the kind and type of `column`."""
    kind = kind_of(column)
    if whole:
        numbers = np.rint(numbers)
    if kind == "a pandas object":
        series = sys.modules["pandas"].Series(numbers)
        listed = _as_objects(column.iloc[0], numbers) if column.dtype == object else None
        return series.astype(column.dtype) if listed is None else type(column)(listed, dtype=object)
    if kind == "a polars object":
        return type(column)(column.name, numbers).cast(column.dtype)
    if kind == "an Arrow object":
        return _arrow(column, numbers)
    if kind == "a tensor":
        return column.new_tensor(numbers)
    if isinstance(column, list | tuple):
        return type(column)(_as_objects(column[0], numbers))
    array = np.asarray(column)
    if array.dtype == object:
        objects = np.empty(len(numbers), dtype=object)
        objects[:] = _as_objects(array.flat[0], numbers)
        return objects
    return numbers.astype(array.dtype).reshape(-1, *array.shape[1:])


def _as_objects(like: Any, numbers: NDArray[np.float64]) -> list[Any]:
    """Return numbers as objects of the type of `like`; as floats if that type is too narrow."""
    whole = bool((numbers == np.rint(numbers)).all())
    kind = type(like) if whole or not isinstance(like, int | np.integer) else float
    return [kind(number) for number in numbers.tolist()]


def _arrow(column: Any, numbers: NDArray[np.float64]) -> Any:
    import pyarrow as pa

    array = pa.array(numbers).cast(column.type)
    return pa.chunked_array([array]) if isinstance(column, pa.ChunkedArray) else array


def frame_of(template: Any, columns: list[Any]) -> Any:
    """Return columns as a frame of the kind of `template`, with its names."""
    kind = kind_of(template)
    if kind == "a dict of columns":
        return dict(zip(template, columns, strict=True))
    if kind == "a pandas object":
        frame = type(template)(dict(enumerate(columns)))
        frame.columns = template.columns
        return frame
    if kind == "a polars object":
        return type(template)(columns)
    if kind == "an Arrow object":
        return type(template).from_arrays(columns, schema=template.schema)
    if kind == "a tensor":
        import torch

        return torch.stack(columns, dim=1)
    return np.stack(columns, axis=1)


def join_rows(first: Any, second: Any) -> Any:
    """Return the rows of two frames of one kind with the same columns, one after the other."""
    kind = kind_of(first)
    if kind == "a dict of columns":
        return {name: join_rows(column, second[name]) for name, column in first.items()}
    if kind == "a pandas object":
        return sys.modules["pandas"].concat([first, second], ignore_index=True)
    if kind == "a polars object":
        return sys.modules["polars"].concat([first, second])
    if kind == "an Arrow object":
        arrow = sys.modules["pyarrow"]
        if hasattr(first, "schema"):
            return arrow.concat_tables([first, second.cast(first.schema)])
        return arrow.chunked_array([first, second])
    if kind == "a tensor":
        return sys.modules["torch"].cat([first, second])
    if isinstance(first, list | tuple):
        return type(first)([*first, *second])
    return np.concatenate([first, second])
