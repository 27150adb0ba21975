"""Reads columns and takes rows of X without changing its kind, for a model to score.

A model must get the kind of object on which it was fitted: rows of a pandas frame stay a pandas
frame with the same column types. So the columns of a counterfactual row are copied from other rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import Column, column_array, is_column, is_pandas, list_some
from ..errors import ArgumentError, ArgumentTypeError, DataError

RowNumbers = NDArray[np.int64]

_ACCEPTED = (
    "a two-dimensional array (rows x features), a torch tensor, a pandas or polars frame, an Arrow "
    "table, or a dict of columns"
)


@dataclass(frozen=True, eq=False)
class FeatureTable(ABC):
    """Features in the kind of object that the user passed."""

    given: Any

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of features."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns; None for an array."""
        return None

    @abstractmethod
    def raw(self, position: int) -> Any:
        """Return a column unchanged."""

    @abstractmethod
    def _take_rows(self, rows: RowNumbers) -> Any:
        """Return a copy of some rows."""

    @abstractmethod
    def _copy_column(self, found: Any, position: int, source: RowNumbers) -> Any:
        """Return rows in which the values of one column are those of other rows."""

    @property
    def kind(self) -> str:
        """Name of the object's type, for a message."""
        return type(self.given).__name__

    def called(self, position: int) -> str:
        """Return the name or position of a column, for a message."""
        return repr(self.names[position]) if self.names is not None else str(position)

    def column(self, position: int) -> Column:
        """Return a column as an array or an encoded column."""
        return column_array(f"column {self.called(position)} of X", self.raw(position))

    def take(self, rows: RowNumbers, sources: Mapping[int, RowNumbers] | None = None) -> Any:
        """Return rows in this form; `sources` has the rows whose values some columns take."""
        found = self._take_rows(rows)
        for position, source in (sources or {}).items():
            found = self._copy_column(found, position, source)
        return found


class _Pandas(FeatureTable):
    @property
    def n_rows(self) -> int:
        return len(self.given)

    @property
    def n_columns(self) -> int:
        return len(self.given.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.given.columns))

    def raw(self, position: int) -> Any:
        return self.given.iloc[:, position]

    def _take_rows(self, rows: RowNumbers) -> Any:
        return self.given.iloc[rows].copy()

    def _copy_column(self, found: Any, position: int, source: RowNumbers) -> Any:
        found.isetitem(position, self.given.iloc[:, position].array.take(source))
        return found


class _Polars(FeatureTable):
    @property
    def n_rows(self) -> int:
        return int(self.given.height)

    @property
    def n_columns(self) -> int:
        return int(self.given.width)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.given.columns)

    def raw(self, position: int) -> Any:
        return self.given.to_series(position)

    def _take_rows(self, rows: RowNumbers) -> Any:
        return self.given[rows]

    def _copy_column(self, found: Any, position: int, source: RowNumbers) -> Any:
        return found.with_columns(self.raw(position).gather(source))


class _Arrow(FeatureTable):
    @property
    def n_rows(self) -> int:
        return int(self.given.num_rows)

    @property
    def n_columns(self) -> int:
        return int(self.given.num_columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.given.schema.names)

    def raw(self, position: int) -> Any:
        import polars as pl

        return pl.from_arrow(self.given.column(position))

    def _take_rows(self, rows: RowNumbers) -> Any:
        return self.given.take(rows)

    def _copy_column(self, found: Any, position: int, source: RowNumbers) -> Any:
        values = self.given.column(position).take(source)
        return found.set_column(position, self.given.schema.field(position), values)


class _Columns(FeatureTable):
    """A dict of columns, each of which keeps its kind."""

    @property
    def n_rows(self) -> int:
        return len(self.raw(0))

    @property
    def n_columns(self) -> int:
        return len(self.given)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.given))

    def raw(self, position: int) -> Any:
        return list(self.given.values())[position]

    def _take_rows(self, rows: RowNumbers) -> Any:
        return {name: take_values(column, rows) for name, column in self.given.items()}

    def _copy_column(self, found: Any, position: int, source: RowNumbers) -> Any:
        found[list(self.given)[position]] = take_values(self.raw(position), source)
        return found


class _Array(FeatureTable):
    @property
    def n_rows(self) -> int:
        return len(self.given)

    @property
    def n_columns(self) -> int:
        return int(self.given.shape[1])

    def raw(self, position: int) -> Any:
        return self.given[:, position]

    def _take_rows(self, rows: RowNumbers) -> Any:
        return self.given[rows]

    def _copy_column(self, found: Any, position: int, source: RowNumbers) -> Any:
        found[:, position] = self.given[source, position]
        return found


class _Tensor(_Array):
    def _take_rows(self, rows: RowNumbers) -> Any:
        return self.given.detach()[rows]

    def _copy_column(self, found: Any, position: int, source: RowNumbers) -> Any:
        found[:, position] = self.given.detach()[source, position]
        return found


def wrap_features(X: Any, called: str = "X", *, argument: str = "X") -> FeatureTable:
    """Wrap features by their kind of object; messages call them `called` and blame `argument`."""
    feature_table = _wrap_by_type(X, called, argument)
    names = feature_table.names or ()
    if len(set(names)) < len(names):
        raise DataError(
            f"{called} has columns with the same name ({list_some(names)}). Rename them, so that "
            "each name occurs once.",
            argument=argument,
        )
    if not feature_table.n_columns or not feature_table.n_rows:
        raise DataError(
            f"{called} has {feature_table.n_columns:,} columns"
            + (f" and {feature_table.n_rows:,} rows" if feature_table.n_columns else "")
            + "; accepted: at least one row and one column",
            argument=argument,
        )
    return feature_table


def _wrap_by_type(X: Any, called: str, argument: str) -> FeatureTable:
    package = type(X).__module__.partition(".")[0]
    if isinstance(X, Mapping):
        for name, column in X.items():
            if not is_column(column):
                raise ArgumentTypeError(
                    f"column {str(name)!r} of {called} is a {type(column).__name__}; accepted: a "
                    "column, one value per row",
                    argument=argument,
                )
        lengths = {str(name): len(column) for name, column in X.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {n:,}" for name, n in lengths.items())
            raise DataError(f"the columns of {called} differ in length: {shown}", argument=argument)
        return _Columns(X)
    if is_pandas(X) and hasattr(X, "iloc") and hasattr(X, "columns"):
        return _Pandas(X)
    if package == "polars" and hasattr(X, "collect"):
        raise ArgumentTypeError(
            f"{called} is a LazyFrame. Collect it first: X.collect().", argument=argument
        )
    if package == "polars" and hasattr(X, "to_series"):
        return _Polars(X)
    if package == "pyarrow" and hasattr(X, "set_column"):
        return _Arrow(X)
    if hasattr(X, "detach") and hasattr(X, "new_tensor"):
        return _Tensor(_check_two_dimensions(X, called, argument))
    return _Array(_check_two_dimensions(_as_array(X, called, argument), called, argument))


def _check_two_dimensions(X: Any, called: str, argument: str) -> Any:
    if X.ndim != 2:
        raise ArgumentError(
            f"{called} has {X.ndim} dimensions; accepted: {_ACCEPTED}", argument=argument
        )
    return X


def _as_array(X: Any, called: str, argument: str) -> NDArray[Any]:
    """Return an array unchanged, and a list of rows as an array."""
    if hasattr(X, "toarray"):
        raise ArgumentTypeError(
            f"{called} is sparse. Pass a dense array: X.toarray().", argument=argument
        )
    if np.ma.isMaskedArray(X):
        raise ArgumentTypeError(
            f"{called} is a masked array; accepted: {_ACCEPTED}", argument=argument
        )
    if isinstance(X, np.ndarray):
        array = X
    elif isinstance(X, list | tuple):
        try:
            array = np.asarray(X)
            # NumPy turned rows that mix text and numbers into text.
            array = np.array(X, dtype=object) if array.dtype.kind == "U" else array
        except ValueError as error:
            raise ArgumentTypeError(
                f"{called} cannot become an array ({error}); accepted: {_ACCEPTED}",
                argument=argument,
            ) from None
    else:
        raise ArgumentTypeError(
            f"{called} is a {type(X).__name__}; accepted: {_ACCEPTED}", argument=argument
        )
    if array.dtype.kind not in "biufUSO":
        raise ArgumentTypeError(
            f"{called} has dtype {array.dtype}; accepted: {_ACCEPTED}", argument=argument
        )
    return array


def take_values(column: Any, rows: RowNumbers) -> Any:
    """Return some values of a column, as the same kind of object."""
    package = type(column).__module__.partition(".")[0]
    if package == "pandas":
        return column.iloc[rows] if hasattr(column, "iloc") else column.take(rows)
    if package == "polars":
        return column.gather(rows)
    if package == "pyarrow":
        return column.take(rows)
    if hasattr(column, "detach"):
        return column.detach()[rows]
    if isinstance(column, list | tuple):
        return [column[row] for row in rows.tolist()]
    return np.asarray(column)[rows]


def check_like(feature_table: FeatureTable, given: FeatureTable, called: str) -> None:
    """Refuse results of flip that a model could not take in place of the given features."""
    wrong = None
    if type(feature_table) is not type(given):
        wrong = f"is a {feature_table.kind}"
    elif feature_table.n_rows != given.n_rows:
        wrong = f"has {feature_table.n_rows:,} rows"
    elif feature_table.n_columns != given.n_columns:
        wrong = f"has {feature_table.n_columns:,} columns"
    elif feature_table.names != given.names:
        assert feature_table.names is not None
        wrong = f"has the columns {list_some(feature_table.names, 10)}"
    if wrong is not None:
        names = "" if given.names is None else f" ({list_some(given.names, 10)})"
        raise DataError(
            f"{called} {wrong}; accepted: a {given.kind} like X, with {given.n_rows:,} rows and "
            f"{given.n_columns:,} columns{names}",
            argument="flip",
        )


def copy_features(X: Any) -> Any:
    """Copy features, so that a user's function may change them."""
    if isinstance(X, Mapping):
        return {name: copy_features(column) for name, column in X.items()}
    if isinstance(X, list | tuple):
        return list(X)
    if hasattr(X, "detach"):
        return X.detach().clone()
    return X.copy() if isinstance(X, np.ndarray) or is_pandas(X) else X
