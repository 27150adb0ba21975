"""Read feature matrices from arrays and frames; choose features by name or position."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError, ColumnError, DataError
from .arrays import ArraySource
from .columns import Column, column_array, count_not_finite, is_pandas, list_some
from .indicators import Indicator


class Features(NamedTuple):
    """Rows of features, with the names of the columns if they have names."""

    values: NDArray[np.float64]
    names: tuple[str, ...] | None

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the columns; x0, x1, ... if they have no names."""
        return self.names or tuple(f"x{place}" for place in range(self.values.shape[1]))


#: The replacement for missing values, by name or position of the column.
Fill: TypeAlias = Mapping[str | int, Any]


def read_features(
    X: Any,
    n_features: int | None = None,
    feature_names: tuple[str, ...] | None = None,
    fill: Fill | None = None,
) -> Features:
    """Read an array or a frame as float64 rows; columns with names are matched by name.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_features)
        NumPy array, lists, torch tensor, pandas or polars frame, or Arrow table.
    n_features : int, optional
        Number of features that the model expects.
    feature_names : tuple of str, optional
        Feature names of the model; a frame must have these columns, in any order.
    fill : dict, optional
        Replacements for missing values, by name or position of the column of X.
    """
    columns = _frame_columns(X)
    if columns is None:
        values, names = _array(X), feature_names
        for place, value in _by_place(fill, feature_names, values.shape[1]):
            gap = np.isnan(values[:, place])
            if gap.any():
                values = np.array(values)
                values[gap, place] = value
        shown = values.shape[1]
    else:
        present = [name for name, _ in columns]
        if fill:
            columns = [_filled(name, column, fill) for name, column in columns]
        if feature_names is not None:
            columns = [_chosen(columns, name) for name in feature_names]
        names = tuple(name for name, _ in columns)
        shown = len(names)
        if n_features is None or shown == n_features:
            values = _stacked(columns, len(X))
    if n_features is not None and shown != n_features:
        raise DataError(
            f"X has {shown} columns"
            + (f" ({list_some(present)})" if columns is not None else "")
            + f"; accepted: the {n_features} features of the model",
            argument="X",
        )
    if not values.size:
        raise DataError(
            f"X has shape {values.shape}; accepted: at least one row and one column", argument="X"
        )
    n_bad, place = count_not_finite(values.ravel())
    if n_bad:
        row, column = divmod(place, values.shape[1])
        called = repr(names[column]) if names else str(column)
        raise DataError(
            f"X is {values[row, column]:g} in row {row}, column {called}, and missing or infinite "
            f"in {n_bad:,} places; accepted: finite numbers",
            argument="X",
        )
    return Features(values, names)


def gaps_of(X: Any, feature_names: tuple[str, ...] | None = None) -> NDArray[np.bool_]:
    """Return where features are missing, row by feature, as `read_features` orders them.

    An indicator of a column is missing where the column is.
    """
    columns = _frame_columns(X)
    if columns is None:
        return np.isnan(_array(X))
    by_name = dict(columns)
    if feature_names is not None:
        raw = [
            name.column if isinstance(name, Indicator) and name not in by_name else name
            for name in feature_names
        ]
        columns = [(name, by_name[name]) for name in raw]
    return np.column_stack([_is_missing(column) for _, column in columns])


def _is_missing(column: Any) -> NDArray[np.bool_]:
    if is_pandas(column):
        return np.asarray(column.isna(), dtype=bool)
    is_null = column.is_null()
    return np.asarray(is_null | column.is_nan() if column.dtype.is_float() else is_null, dtype=bool)


def _filled(name: str, column: Any, fill: Fill) -> tuple[str, Any]:
    """Return a column with its missing values replaced."""
    if name not in fill:
        return name, column
    gap = _is_missing(column)
    if not gap.any():
        return name, column
    if is_pandas(column):
        return name, column.astype(object).where(~gap, fill[name]).infer_objects()
    filled = column.fill_nan(None) if column.dtype.is_float() else column
    return name, filled.fill_null(fill[name])


def _by_place(
    fill: Fill | None, names: tuple[str, ...] | None, n_columns: int
) -> list[tuple[int, Any]]:
    """Return the replacements for missing values of an array, by position."""
    place: dict[str | int, Any] = {name: i for i, name in enumerate(names or ())}
    entries = [(place.get(key, key), value) for key, value in (fill or {}).items()]
    return [(i, value) for i, value in entries if isinstance(i, int) and i < n_columns]


def named_columns(X: Any) -> list[tuple[str, Column]]:
    """Return the columns of a frame, a dict or an array by name; an array has x1, x2, ..."""
    columns = [(str(name), X[name]) for name in X] if isinstance(X, Mapping) else _frame_columns(X)
    if columns is None:
        values = _any_numbers(X)
        # Booleans count as 0 and 1.
        values = values.view(np.uint8) if values.dtype.kind == "b" else values
        return [(f"x{place + 1}", values[:, place]) for place in range(values.shape[1])]
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        raise DataError(
            f"X has several columns of one name ({list_some(names)}). Use each name once.",
            argument="X",
        )
    return [(name, column_array(f"column {name!r} of X", column)) for name, column in columns]


def _frame_columns(X: Any) -> list[tuple[str, Any]] | None:
    """Return the named columns of a frame, None for anything else."""
    package = type(X).__module__.partition(".")[0]
    if is_pandas(X) and hasattr(X, "iloc") and hasattr(X, "columns"):
        return [(str(name), X.iloc[:, place]) for place, name in enumerate(X.columns)]
    if package == "polars" and hasattr(X, "collect"):
        raise ArgumentTypeError(
            "X is a LazyFrame; accepted: an array or a frame. Call .collect() first.", argument="X"
        )
    if package == "polars" and hasattr(X, "get_columns"):
        return [(column.name, column) for column in X.get_columns()]
    if hasattr(X, "__arrow_c_stream__") and hasattr(X, "column_names"):
        import polars as pl

        return [(column.name, column) for column in pl.DataFrame(X).get_columns()]
    return None


def _chosen(columns: list[tuple[str, Any]], name: str) -> tuple[str, Any]:
    """Return the column of a feature; an indicator may be computed from its original column."""
    called = {column for column, _ in columns}
    if isinstance(name, Indicator) and name not in called and name.column in called:
        return name, name.values_in(_only(columns, name.column)[1])
    return _only(columns, name)


def _only(columns: list[tuple[str, Any]], name: str) -> tuple[str, Any]:
    """Return the column of a name; raise unless there is exactly one."""
    matches = [column for column in columns if column[0] == name]
    if not matches:
        raise ColumnError(
            f"X has no column {name!r}, which is a feature of the model. Its columns: "
            f"{list_some([name for name, _ in columns], 20)}",
            argument="X",
        )
    if len(matches) > 1:
        raise DataError(f"X has {len(matches)} columns {name!r}. Use each name once.", argument="X")
    return matches[0]


def _stacked(columns: list[tuple[str, Any]], n_rows: int) -> NDArray[np.float64]:
    values = np.empty((n_rows, len(columns)))
    for place, (name, column) in enumerate(columns):
        label = f"column {name!r} of X"
        source = ArraySource({name: column_array(label, column)})
        values[:, place] = source.numbers(name, label)
    return values


def _array(X: Any) -> NDArray[np.float64]:
    return np.ascontiguousarray(_any_numbers(X), dtype=np.float64)


def _any_numbers(X: Any) -> NDArray[Any]:
    """Return a two-dimensional array of numbers, without a copy where possible."""
    accepted = "a two-dimensional array of numbers (rows x features), or a frame"
    if hasattr(X, "toarray"):
        raise ArgumentTypeError(
            f"X is sparse; accepted: {accepted}. Pass X.toarray().", argument="X"
        )
    if hasattr(X, "detach") and hasattr(X, "numpy"):
        X = X.detach().cpu().numpy()
    if np.ma.isMaskedArray(X):
        X = np.ma.filled(np.ma.asarray(X, dtype=np.float64), np.nan)
    try:
        array = np.asarray(X)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except Exception as error:  # the __array__ method of X may raise any exception
        raise ArgumentTypeError(
            f"X is not an array of numbers: {error}; accepted: {accepted}", argument="X"
        ) from None
    if array.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"X has dtype {array.dtype}; accepted: {accepted}", argument="X")
    if array.ndim != 2:
        raise ArgumentError(f"X has {array.ndim} dimensions; accepted: {accepted}", argument="X")
    return array


def positions_of(
    argument: str, columns: Any, names: tuple[str, ...] | None, n_features: int
) -> NDArray[np.intp]:
    """Return the positions of features that are given by name or position."""
    chosen = [columns] if isinstance(columns, str | int | np.integer) else columns
    if not arguments.is_listing(chosen):
        raise ArgumentTypeError(
            f"{argument} is {columns!r}; accepted: names or positions of features",
            argument=argument,
        )
    places = [_position_of(argument, column, names, n_features) for column in chosen]
    if len(set(places)) < len(places):
        raise ArgumentError(
            f"{argument} names a feature twice: {list_some(list(chosen), 20)}. Name each once.",
            argument=argument,
        )
    return np.array(places, dtype=np.intp)


def _position_of(
    argument: str, column: object, names: tuple[str, ...] | None, n_features: int
) -> int:
    if isinstance(column, str):
        if names is None:
            raise ArgumentTypeError(
                f"{argument} contains the name {column!r}, but neither X nor the model names the "
                f"features; accepted: positions from 0 to {n_features - 1}",
                argument=argument,
            )
        if column not in names:
            raise ColumnError(
                f"{argument} contains {column!r}; accepted: features of the model, which are "
                f"{list_some(names, 20)}",
                argument=argument,
            )
        return names.index(column)
    try:
        if isinstance(column, bool | np.bool_):
            raise TypeError
        place = operator.index(column)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(
            f"{argument} contains {column!r}; accepted: names or positions of features",
            argument=argument,
        ) from None
    if not 0 <= place < n_features:
        raise ArgumentError(
            f"{argument} contains {place}; accepted: positions from 0 to {n_features - 1}",
            argument=argument,
        )
    return place


def names_of(feature_names: Sequence[str] | None, n_features: int | None) -> tuple[str, ...] | None:
    """Check the feature names of a model; ``n_features`` is None if any number is allowed."""
    if feature_names is None:
        return None
    if not arguments.is_listing(feature_names):
        raise ArgumentTypeError(
            f"feature_names is {feature_names!r}; accepted: a sequence of names, one per feature",
            argument="feature_names",
        )
    # Indicators are texts and remain indicators.
    names = tuple(name if isinstance(name, str) else str(name) for name in feature_names)
    wanted = len(names) if n_features is None else n_features
    if len(names) != wanted or len(set(names)) < len(names):
        raise ArgumentError(
            f"feature_names has {len(names)} names ({list_some(names)}); accepted: {wanted} "
            "different names, one per feature",
            argument="feature_names",
        )
    return names
