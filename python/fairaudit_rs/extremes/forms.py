"""X in the form in which it was given: its columns, and some of its rows, for a model to score.

A model must get what it got when it was fitted: rows of a pandas frame stay a pandas frame, with
the types of its columns. So a counterfactual row takes values of its columns from other rows.
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
class FeatureForm(ABC):
    """Features as they were given."""

    given: Any

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows there are."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """How many features there are."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, None for an array."""
        return None

    @abstractmethod
    def raw(self, place: int) -> Any:
        """Return a column as it is."""

    @abstractmethod
    def _rows(self, rows: RowNumbers) -> Any:
        """Return a copy of some rows."""

    @abstractmethod
    def _with(self, found: Any, place: int, source: RowNumbers) -> Any:
        """Return rows with a column that has the values of other rows."""

    @property
    def kind(self) -> str:
        """The kind of object, for a message."""
        return type(self.given).__name__

    def called(self, place: int) -> str:
        """Return what a column is called in a message."""
        return repr(self.names[place]) if self.names is not None else str(place)

    def column(self, place: int) -> Column:
        """Return a column as an array, or as codes."""
        return column_array(f"column {self.called(place)} of X", self.raw(place))

    def take(self, rows: RowNumbers, sources: Mapping[int, RowNumbers] | None = None) -> Any:
        """Return rows in this form; some columns may have the values of other rows."""
        found = self._rows(rows)
        for place, source in (sources or {}).items():
            found = self._with(found, place, source)
        return found


class _Pandas(FeatureForm):
    @property
    def n_rows(self) -> int:
        return len(self.given)

    @property
    def n_columns(self) -> int:
        return len(self.given.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.given.columns))

    def raw(self, place: int) -> Any:
        return self.given.iloc[:, place]

    def _rows(self, rows: RowNumbers) -> Any:
        return self.given.iloc[rows].copy()

    def _with(self, found: Any, place: int, source: RowNumbers) -> Any:
        found.isetitem(place, self.given.iloc[:, place].array.take(source))
        return found


class _Polars(FeatureForm):
    @property
    def n_rows(self) -> int:
        return int(self.given.height)

    @property
    def n_columns(self) -> int:
        return int(self.given.width)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.given.columns)

    def raw(self, place: int) -> Any:
        return self.given.to_series(place)

    def _rows(self, rows: RowNumbers) -> Any:
        return self.given[rows]

    def _with(self, found: Any, place: int, source: RowNumbers) -> Any:
        return found.with_columns(self.raw(place).gather(source))


class _Arrow(FeatureForm):
    @property
    def n_rows(self) -> int:
        return int(self.given.num_rows)

    @property
    def n_columns(self) -> int:
        return int(self.given.num_columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.given.schema.names)

    def raw(self, place: int) -> Any:
        import polars as pl

        return pl.from_arrow(self.given.column(place))

    def _rows(self, rows: RowNumbers) -> Any:
        return self.given.take(rows)

    def _with(self, found: Any, place: int, source: RowNumbers) -> Any:
        values = self.given.column(place).take(source)
        return found.set_column(place, self.given.schema.field(place), values)


class _Columns(FeatureForm):
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

    def raw(self, place: int) -> Any:
        return list(self.given.values())[place]

    def _rows(self, rows: RowNumbers) -> Any:
        return {name: take_values(column, rows) for name, column in self.given.items()}

    def _with(self, found: Any, place: int, source: RowNumbers) -> Any:
        found[list(self.given)[place]] = take_values(self.raw(place), source)
        return found


class _Array(FeatureForm):
    @property
    def n_rows(self) -> int:
        return len(self.given)

    @property
    def n_columns(self) -> int:
        return int(self.given.shape[1])

    def raw(self, place: int) -> Any:
        return self.given[:, place]

    def _rows(self, rows: RowNumbers) -> Any:
        return self.given[rows]

    def _with(self, found: Any, place: int, source: RowNumbers) -> Any:
        found[:, place] = self.given[source, place]
        return found


class _Tensor(_Array):
    def _rows(self, rows: RowNumbers) -> Any:
        return self.given.detach()[rows]

    def _with(self, found: Any, place: int, source: RowNumbers) -> Any:
        found[:, place] = self.given.detach()[source, place]
        return found


def form_of(X: Any, called: str = "X") -> FeatureForm:
    """Return features in their form."""
    form = _form(X, called)
    names = form.names or ()
    if len(set(names)) < len(names):
        raise DataError(
            f"{called} has several columns of one name ({list_some(names)}); accepted: each once"
        )
    if not form.n_columns or not form.n_rows:
        raise DataError(
            f"{called} has {form.n_columns:,} columns"
            + (f" and {form.n_rows:,} rows" if form.n_columns else "")
            + "; accepted: at least one row and one column"
        )
    return form


def _form(X: Any, called: str) -> FeatureForm:
    package = type(X).__module__.partition(".")[0]
    if isinstance(X, Mapping):
        for name, column in X.items():
            if not is_column(column):
                raise ArgumentTypeError(
                    f"column {str(name)!r} of {called} is a {type(column).__name__}; accepted: a "
                    "column, one value per row"
                )
        lengths = {str(name): len(column) for name, column in X.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {n:,}" for name, n in lengths.items())
            raise DataError(f"the columns of {called} differ in length: {shown}")
        return _Columns(X)
    if is_pandas(X) and hasattr(X, "iloc") and hasattr(X, "columns"):
        return _Pandas(X)
    if package == "polars" and hasattr(X, "collect"):
        raise ArgumentTypeError(f"{called} is a LazyFrame; accepted: a frame (collect it)")
    if package == "polars" and hasattr(X, "to_series"):
        return _Polars(X)
    if package == "pyarrow" and hasattr(X, "set_column"):
        return _Arrow(X)
    if hasattr(X, "detach") and hasattr(X, "new_tensor"):
        return _Tensor(_two_dimensions(X, called))
    return _Array(_two_dimensions(_as_array(X, called), called))


def _two_dimensions(X: Any, called: str) -> Any:
    if X.ndim != 2:
        raise ArgumentError(f"{called} has {X.ndim} dimensions; accepted: {_ACCEPTED}")
    return X


def _as_array(X: Any, called: str) -> NDArray[Any]:
    """Return an array as it is, and a list of rows as one."""
    if hasattr(X, "toarray"):
        raise ArgumentTypeError(f"{called} is sparse; accepted: {_ACCEPTED} (X.toarray())")
    if np.ma.isMaskedArray(X):
        raise ArgumentTypeError(f"{called} is a masked array; accepted: {_ACCEPTED}")
    if isinstance(X, np.ndarray):
        array = X
    elif isinstance(X, list | tuple):
        try:
            array = np.asarray(X)
            # Rows that mix text and numbers became text.
            array = np.array(X, dtype=object) if array.dtype.kind == "U" else array
        except ValueError as error:
            raise ArgumentTypeError(
                f"{called} is no array: {error}; accepted: {_ACCEPTED}"
            ) from None
    else:
        raise ArgumentTypeError(f"{called} is a {type(X).__name__}; accepted: {_ACCEPTED}")
    if array.dtype.kind not in "biufUSO":
        raise ArgumentTypeError(f"{called} has dtype {array.dtype}; accepted: {_ACCEPTED}")
    return array


def take_values(column: Any, rows: RowNumbers) -> Any:
    """Return some values of a column, in its kind."""
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


def check_like(form: FeatureForm, given: FeatureForm, called: str) -> None:
    """Refuse features that a model could not take in place of those given."""
    wrong = None
    if type(form) is not type(given):
        wrong = f"is a {form.kind}"
    elif form.n_rows != given.n_rows:
        wrong = f"has {form.n_rows:,} rows"
    elif form.n_columns != given.n_columns:
        wrong = f"has {form.n_columns:,} columns"
    elif form.names != given.names:
        assert form.names is not None
        wrong = f"has the columns {list_some(form.names, 10)}"
    if wrong is not None:
        names = "" if given.names is None else f" ({list_some(given.names, 10)})"
        raise DataError(
            f"{called} {wrong}; accepted: a {given.kind} like X, with {given.n_rows:,} rows and "
            f"{given.n_columns:,} columns{names}"
        )


def copy_features(X: Any) -> Any:
    """Return a copy of features that a function of the user's may change."""
    if isinstance(X, Mapping):
        return {name: copy_features(column) for name, column in X.items()}
    if isinstance(X, list | tuple):
        return list(X)
    if hasattr(X, "detach"):
        return X.detach().clone()
    return X.copy() if isinstance(X, np.ndarray) or is_pandas(X) else X
