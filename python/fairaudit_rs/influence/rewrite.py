"""Change some rows of a frame, array or dict of features, and keep its form and types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import is_pandas

Rows = NDArray[np.int64]
Values = Mapping[str, NDArray[Any]]


def rewrite_rows(X: Any, rows: Rows, values: Values) -> Any:
    """Return a copy of X with new values in some rows, by column name.

    Types, names and the index are kept. The columns of an array are x1, x2, ...
    """
    if isinstance(X, Mapping):
        changed = {name: _column(X[name], rows, values[str(name)]) for name in X if name in values}
        return {**X, **changed}
    if is_pandas(X) and hasattr(X, "iloc"):
        return _pandas(X, rows, values)
    package = type(X).__module__.partition(".")[0]
    if package == "polars":
        return X.with_columns(_column(X[name], rows, values[name]) for name in values)
    if hasattr(X, "__arrow_c_stream__") and hasattr(X, "column_names"):
        import polars as pl

        if not len(X):
            return X
        table = rewrite_rows(pl.DataFrame(X), rows, values).to_arrow().cast(X.schema)
        return table if hasattr(X, "to_batches") else table.combine_chunks().to_batches()[0]
    if hasattr(X, "detach") and hasattr(X, "new_tensor"):
        return X.new_tensor(_array(X.detach().cpu().numpy(), rows, values))
    return _array(X, rows, values)


def _array(X: Any, rows: Rows, values: Values) -> NDArray[Any]:
    changed = np.array(X)
    for name, column in values.items():
        changed[rows, int(name.removeprefix("x")) - 1] = column
    return changed


def _pandas(X: Any, rows: Rows, values: Values) -> Any:
    changed = X.copy()
    for place, name in enumerate(X.columns):
        if str(name) in values:
            changed.isetitem(place, _column(X.iloc[:, place], rows, values[str(name)]))
    return changed


def _column(column: Any, rows: Rows, values: NDArray[Any]) -> Any:
    """Return a copy of a column with new values in some rows."""
    package = type(column).__module__.partition(".")[0]
    if package == "pandas":
        changed = column.copy()
        changed.iloc[rows] = like_column(column, values).array
        return changed
    if package == "polars":
        return column.clone().scatter(rows, like_column(column, values))
    if isinstance(column, list | tuple):
        mixed = list(column)
        for row, value in zip(rows.tolist(), values.tolist(), strict=True):
            mixed[row] = value
        return type(column)(mixed)
    changed = np.array(column)
    changed[rows] = values
    return changed


def like_column(column: Any, values: NDArray[Any]) -> Any:
    """Return values as a column with the type and the missing value of another column."""
    listed = values.tolist()
    if is_pandas(column):
        missing = column[column.isna()]
        if len(missing):
            listed = [missing.iloc[0] if value is None else value for value in listed]
        return type(column)(listed, dtype=column.dtype)
    return type(column)(column.name, listed).cast(column.dtype)
