"""Columns in memory: whatever holds one value per row, brought to one kind of array.

Nothing here knows what the values mean; `tables` does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _native
from .errors import ArgumentTypeError, DataError

if TYPE_CHECKING:
    import polars as pl

#: Rows that are looked at together.
_PART = 1 << 18
#: Bin of a score that lies outside of all bins, or is missing.
NO_BIN = 2**32 - 1


@dataclass(frozen=True)
class Counts:
    """Distinct combinations: values per column, codes per cell and column, counts."""

    values: list[list[Any]]
    codes: NDArray[np.int64]
    counts: NDArray[np.int64]
    score_sums: NDArray[np.int64] | None = None
    score_bins: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Coded:
    """A column as codes into its distinct values; the code after the last one is missing."""

    codes: NDArray[np.uint32]
    labels: Sequence[Any] | pl.Series

    def __len__(self) -> int:
        return len(self.codes)

    def values_at(self, rows: NDArray[Any]) -> list[Any]:
        """Return the values in some rows."""
        return [self.labels[int(c)] if c < len(self.labels) else None for c in self.codes[rows]]


Column: TypeAlias = NDArray[Any] | Coded


@dataclass(frozen=True)
class ArraySource:
    """Columns in memory, one array each; the native module counts their combinations."""

    columns: dict[str, Column]

    def count(
        self,
        keys: Sequence[str],
        limits: Sequence[int],
        score: str | None,
        edges: NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> Counts:
        """Count the distinct combinations of the keys' values, and of the bins of the score."""
        columns = [self.columns[key] for key in keys]
        native = [_native_column(column) for column in columns]
        limits = list(limits)
        scores = None
        if score is not None:
            assert edges is not None
            scores = _floats("y_score", self.columns[score])
            bins = _native.bin_scores(scores, edges)
            outside = bins == NO_BIN
            if outside.any():
                refuse_scores(
                    int(outside.sum()), len(bins), float(scores[int(outside.argmax())]), edges
                )
            native.append(bins)
            limits.append(len(edges))
        rows, codes, counts, sums = _native.tabulate(native, limits, scores, n_threads)
        values = [_values_at(column, index) for column, index in zip(columns, rows, strict=False)]
        return Counts(
            values,
            codes[:, : len(keys)].astype(np.int64),
            counts.astype(np.int64),
            sums if score is not None else None,
            native[-1][rows[-1]][codes[:, -1]].astype(np.int64) if score is not None else None,
        )

    def in_memory(self) -> ArraySource:
        """Return the columns as they are."""
        return self

    def encode(self, keys: Sequence[str], limits: Sequence[int]) -> tuple[Counts, NDArray[Any]]:
        """Count the distinct combinations of the keys' values, and name that of every row."""
        columns = [self.columns[key] for key in keys]
        rows, codes, counts, cells = _native.encode(
            [_native_column(column) for column in columns], limits
        )
        values = [_values_at(column, index) for column, index in zip(columns, rows, strict=True)]
        return Counts(values, codes.astype(np.int64), counts.astype(np.int64)), cells

    def units(self, keys: Sequence[str], names: Sequence[str]) -> NDArray[np.uint32]:
        """Return the place of every row's combination of values among the sorted ones."""
        combined = np.zeros(0, dtype=np.int64)
        for key, name in zip(keys, names, strict=True):
            column = self.columns[key]
            place, n_distinct, missing = _places(column)
            if missing.any():
                raise DataError(
                    f"clusters column {name!r} is missing in {int(missing.sum()):,} of "
                    f"{len(column):,} rows; leave these rows out or fill them in"
                )
            combined = place if not len(combined) else combined * n_distinct + place
            # Numbered anew at each step, so that products stay small.
            combined = np.unique(combined, return_inverse=True)[1].ravel().astype(np.int64)
        return combined.astype(np.uint32)

    def numbers_or_missing(
        self, key: str, name: str
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return a column as floats, and which of them are there."""
        values = _floats(name, self.columns[key])
        known = ~np.isnan(values)
        if np.isinf(values).any():
            raise DataError(f"{name} is infinite in some rows; accepted: finite numbers")
        return values, known

    def floats(self, key: str, name: str) -> NDArray[np.float64]:
        """Return a column as floats that may be infinite or missing."""
        return _floats(name, self.columns[key])

    def numbers(self, key: str, name: str) -> NDArray[np.float64]:
        """Return a column as finite floats."""
        values = _floats(name, self.columns[key])
        n_bad, row = count_not_finite(values)
        if n_bad:
            raise DataError(
                f"{name} is {values[row]:g} in row {row} and missing or infinite in "
                f"{n_bad:,} of {len(values):,} rows; accepted: finite numbers"
            )
        return values


def _places(column: Column) -> tuple[NDArray[np.int64], int, NDArray[np.bool_]]:
    """Return the place of every value among the sorted ones, their number, what is missing."""
    if isinstance(column, Coded):
        labels = np.array([str(label) for label in column.labels])
        place = np.empty(len(labels) + 1, dtype=np.int64)
        place[np.argsort(labels, kind="stable")] = np.arange(len(labels))
        place[-1] = len(labels)
        return place[column.codes], len(labels) + 1, column.codes == len(labels)
    distinct, place = np.unique(column, return_inverse=True)
    missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
    return place.ravel().astype(np.int64), len(distinct), missing


def count_not_finite(values: NDArray[np.float64]) -> tuple[int, int]:
    """Return how many values are not finite, and the row of the first one.

    A part at a time: a flag for every row would cost an eighth of the column.
    """
    n_bad, first = 0, -1
    for start in range(0, len(values), _PART):
        bad = ~np.isfinite(values[start : start + _PART])
        n = int(np.count_nonzero(bad))
        if n and not n_bad:
            first = start + int(bad.argmax())
        n_bad += n
    return n_bad, first


def _values_at(column: Column, rows: NDArray[Any]) -> list[Any]:
    return column.values_at(rows) if isinstance(column, Coded) else list(column[rows])


def refuse_scores(n_outside: int, n_rows: int, example: float, edges: NDArray[np.float64]) -> None:
    """Raise because some scores are in no bin."""
    raise DataError(
        f"y_score is missing or not between {edges[0]:g} and {edges[-1]:g} in {n_outside:,} of "
        f"{n_rows:,} rows (for example {example:g}); accepted: scores inside of score_bins"
    )


def _native_column(column: Column) -> NDArray[Any]:
    """Return an array that the native module reads: numbers, booleans, fixed-width bytes."""
    if isinstance(column, Coded):
        return column.codes
    array = np.require(column, dtype=column.dtype.newbyteorder("="), requirements=["C", "A"])
    if array.dtype.kind in "US":
        if array.dtype.itemsize == 0:
            return np.zeros(len(array), dtype=np.uint8)
        return array.view(np.uint8).reshape(len(array), array.dtype.itemsize)
    return array


def check_numeric(name: str, column: Column) -> None:
    """Raise when a column holds text."""
    if isinstance(column, Coded):
        text = bool(len(column.labels)) and isinstance(column.labels[0], str)
    else:
        text = column.dtype.kind not in "biuf"
    if text:
        raise ArgumentTypeError(f"{name} holds text; accepted: numbers")


def _floats(name: str, column: Column) -> NDArray[np.float64]:
    check_numeric(name, column)
    if isinstance(column, Coded):
        numbers = np.array([*map(float, column.labels), np.nan])
        return np.asarray(numbers[column.codes], dtype=np.float64)
    return np.require(column, dtype=np.float64, requirements=["C", "A"])


def _polars() -> Any:
    import polars as pl

    return pl


def column_array(name: str, value: Any) -> Column:
    """Return one column as a one-dimensional array of numbers, booleans or text."""
    if isinstance(value, str | bytes) or value is None:
        raise ArgumentTypeError(f"{name} is {value!r}; accepted: a column, one value per row")
    package = type(value).__module__.partition(".")[0]
    if package == "polars":
        return _from_series(name, value)
    if package == "pandas":
        value = _from_pandas(name, value)
    elif hasattr(value, "detach") and hasattr(value, "numpy"):
        value = value.detach().cpu().numpy()
    if np.ma.isMaskedArray(value):
        mask, value = np.ma.getmaskarray(value), np.ma.getdata(value)
        if mask.any():
            value = value.astype(object)
            value[mask] = None
    if isinstance(value, list | tuple) and value and isinstance(value[0], str | None.__class__):
        # Text as it is: an array of text would be as wide as its longest entry.
        return _from_objects(name, list(value))
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentTypeError(f"{name} is not a column: {error}") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ArgumentTypeError(
            f"{name} has {array.ndim} dimensions; accepted: a column, one value per row"
        )
    # A list that mixes text and numbers became text; look at its own values instead.
    if array.dtype.kind == "U" and isinstance(value, list | tuple):
        array = np.array(value, dtype=object)
    if array.dtype.kind == "M":
        array = array.astype("datetime64[us]").astype(object)
    if array.dtype.kind in "OT":
        return _from_objects(name, array.astype(object).tolist())
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float64)
    if array.dtype.kind not in "biufUS":
        raise ArgumentTypeError(
            f"{name} has dtype {array.dtype}; accepted: numbers, booleans, text"
        )
    return array


def _from_pandas(name: str, value: Any) -> Any:
    """Return a pandas column as an array; extension types become objects with None."""
    pandas = sys.modules["pandas"]
    if isinstance(value, pandas.DataFrame):
        raise ArgumentTypeError(
            f"{name} is a frame with the columns {list(map(str, value.columns))}; accepted: one "
            "column (names must not occur twice)"
        )
    series = value if isinstance(value, pandas.Series) else pandas.Series(value)
    if str(series.dtype) == "category":
        labels = np.array([*series.cat.categories, None], dtype=object)
        return labels[series.cat.codes.to_numpy()]
    if isinstance(series.dtype, np.dtype):
        return series.to_numpy()
    return series.to_numpy(dtype=object, na_value=None)


def _from_objects(name: str, values: list[Any]) -> Column:
    """Return Python objects as a column: text, numbers or booleans, None for missing.

    Without polars: its thread pool does not survive a fork, and lists must work in a child.
    """
    kinds = set(map(type, values))
    if any(_may_be_missing(kind) for kind in kinds):
        values = [None if _is_missing(value) else value for value in values]
        kinds = set(map(type, values))
    kinds.discard(type(None))
    if bytes in kinds:
        values = [
            v.decode("utf-8", errors="replace") if isinstance(v, bytes) else v for v in values
        ]
        kinds = kinds - {bytes} | {str}
    if not kinds:
        return np.full(len(values), np.nan)
    booleans = all(issubclass(kind, bool | np.bool_) for kind in kinds)
    if booleans or all(issubclass(kind, str) for kind in kinds):
        return _coded(values)
    numbers = all(
        issubclass(kind, int | float | np.number) and not issubclass(kind, bool) for kind in kinds
    )
    if numbers and all(issubclass(kind, int | np.integer) for kind in kinds):
        return _coded(values)
    if numbers or (len(kinds) == 1 and next(iter(kinds)).__name__ == "Decimal"):
        return np.array([np.nan if v is None else float(v) for v in values])
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds)[:5])
        raise ArgumentTypeError(f"{name} mixes values of types {names}; accepted: one type")
    kind = next(iter(kinds))
    if kind.__module__ == "datetime":
        return _coded([None if v is None else str(v) for v in values])
    raise ArgumentTypeError(
        f"{name} holds values of type {kind.__name__}; accepted: numbers, booleans, text"
    )


def _coded(values: list[Any]) -> Coded:
    """Return values as codes into the distinct ones."""
    place: dict[Any, int] = {}
    codes = np.fromiter(
        (place.setdefault(value, len(place)) for value in values), np.uint32, len(values)
    )
    missing = place.pop(None, None)
    if missing is not None:
        # The code after the last one is missing; those above its old place move down.
        moved = np.arange(len(place) + 1, dtype=np.uint32)
        moved[missing + 1 :] -= 1
        moved[missing] = len(place)
        codes = moved[codes]
    return Coded(codes, list(place))


def _may_be_missing(kind: type) -> bool:
    return issubclass(kind, float | np.floating) or kind.__name__ in ("NAType", "NaTType")


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def _from_series(name: str, series: pl.Series) -> Column:
    """Return a polars column as an array; text and columns with gaps become codes."""
    pl = _polars()
    if not isinstance(series, pl.Series):
        raise ArgumentTypeError(
            f"{name} is a {type(series).__name__}; accepted: a column, one value per row"
        )
    if series.dtype == pl.Null:
        return np.full(len(series), np.nan)
    if series.dtype.is_float():
        return np.asarray(series.to_numpy())
    if series.dtype.is_decimal():
        return np.asarray(series.cast(pl.Float64).to_numpy())
    if series.dtype.is_temporal():
        return _from_objects(name, series.to_list())
    if isinstance(series.dtype, pl.Categorical | pl.Enum):
        series = series.cast(pl.String)
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        if not series.null_count():
            return np.asarray(series.to_numpy())
    elif series.dtype != pl.String:
        raise ArgumentTypeError(f"{name} holds {series.dtype}; accepted: numbers, booleans, text")
    labels = series.drop_nulls().unique().sort()
    text = labels.cast(pl.String)
    codes = series.cast(pl.String).cast(pl.Enum(text)).to_physical().cast(pl.UInt32)
    return Coded(codes.fill_null(len(labels)).to_numpy(), labels)


def is_column(value: Any) -> bool:
    """Whether a value looks like a column, not like one value of it."""
    return not isinstance(value, str | bytes) and hasattr(value, "__len__")


def series_name(value: Any) -> str | None:
    """Return the name of a pandas or polars series."""
    name = getattr(value, "name", None)
    return name if isinstance(name, str) and name else None


def is_pandas(value: Any) -> bool:
    """Whether a value is of pandas, without importing it."""
    return type(value).__module__.partition(".")[0] == "pandas" and "pandas" in sys.modules


def some(values: Sequence[object], most: int = 5) -> str:
    """Return the first few values for a message."""
    shown = ", ".join(repr(value) for value in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")
