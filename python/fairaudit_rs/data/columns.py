"""Convert any column (list, array, tensor, pandas or polars series) to one kind of array."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..arguments import as_float
from ..errors import ArgumentTypeError
from .equality import EqualByValue
from .ranked_labels import drop_unused_labels, rank_labels

if TYPE_CHECKING:
    import polars as pl


#: Rows per block.
_BLOCK_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class EncodedColumn(EqualByValue):
    """A column as codes into its distinct values; the code after the last one is missing."""

    codes: NDArray[np.uint32]
    labels: Sequence[Any] | pl.Series

    def __len__(self) -> int:
        return len(self.codes)

    def values_at(self, rows: NDArray[Any]) -> list[Any]:
        """Return the values in some rows."""
        return [self.labels[int(c)] if c < len(self.labels) else None for c in self.codes[rows]]


Column: TypeAlias = NDArray[Any] | EncodedColumn


def count_not_finite(values: NDArray[np.float64]) -> tuple[int, int]:
    """Return how many values are not finite, and the row of the first one.

    Works block by block: a flag for every row would cost an eighth of the column.
    """
    n_bad, first = 0, -1
    for start in range(0, len(values), _BLOCK_ROWS):
        bad = ~np.isfinite(values[start : start + _BLOCK_ROWS])
        n = int(np.count_nonzero(bad))
        if n and not n_bad:
            first = start + int(bad.argmax())
        n_bad += n
    return n_bad, first


def argument_of(label: str) -> str:
    """Return the argument that a label is about, such as X for "column 'age' of X"."""
    if label.endswith(" of X"):
        return "X"
    first = label.partition(" ")[0]
    return {"column": "data", "sensitive": "sensitive_features"}.get(first, first)


def check_numeric(name: str, column: Column) -> None:
    """Raise when a column holds text."""
    if isinstance(column, EncodedColumn):
        text = bool(len(column.labels)) and isinstance(column.labels[0], str)
    else:
        text = column.dtype.kind not in "biuf"
    if text:
        raise ArgumentTypeError(f"{name} holds text; accepted: numbers", argument=argument_of(name))


def _polars() -> Any:
    import polars as pl

    return pl


def column_array(name: str, value: Any) -> Column:
    """Return one column as a one-dimensional array of numbers, booleans or text."""
    if isinstance(value, str | bytes) or value is None:
        raise ArgumentTypeError(
            f"{name} is {value!r}; accepted: a column, one value per row",
            argument=argument_of(name),
        )
    package = type(value).__module__.partition(".")[0]
    if package == "polars":
        return _from_series(name, value)
    if package == "pandas":
        value = _from_pandas(name, value)
        if isinstance(value, EncodedColumn):
            return value
    elif hasattr(value, "detach") and hasattr(value, "numpy"):
        value = value.detach().cpu().numpy()
    if np.ma.isMaskedArray(value):
        mask, value = np.ma.getmaskarray(value), np.ma.getdata(value)
        if mask.any():
            value = value.astype(object)
            value[mask] = None
    if isinstance(value, list | tuple) and value and isinstance(value[0], str | None.__class__):
        # Not as an array, in which each text takes the space of the longest one.
        return _from_objects(name, list(value))
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"{name} is not a column: {error}", argument=argument_of(name)
        ) from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ArgumentTypeError(
            f"{name} has {array.ndim} dimensions; accepted: a column, one value per row",
            argument=argument_of(name),
        )
    # A list that mixes text and numbers became text; look at its own values instead.
    if array.dtype.kind == "U" and isinstance(value, list | tuple):
        array = np.array(value, dtype=object)
    if array.dtype.kind == "M":
        array = array.astype("datetime64[us]").astype(object)
    if array.dtype.kind == "m":
        array = array.astype("timedelta64[us]").astype(object)
    if array.dtype.kind in "OT":
        return _from_objects(name, array.astype(object).tolist())
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float64)
    if array.dtype.kind not in "biufUS":
        raise ArgumentTypeError(
            f"{name} has dtype {array.dtype}; accepted: numbers, booleans, text",
            argument=argument_of(name),
        )
    return array


def _from_pandas(name: str, value: Any) -> Any:
    """Return a pandas column as an array; extension types become objects with None."""
    pandas = sys.modules["pandas"]
    if isinstance(value, pandas.DataFrame):
        raise ArgumentTypeError(
            f"{name} is a frame with the columns {list(map(str, value.columns))}; accepted: one "
            "column, whose name occurs once",
            argument=argument_of(name),
        )
    series = value if isinstance(value, pandas.Series) else pandas.Series(value)
    if str(series.dtype) == "category":
        distinct = column_array(name, series.cat.categories)
        if not isinstance(distinct, EncodedColumn):
            # Numbers are sorted by value, not by category.
            labels = np.array([*series.cat.categories, None], dtype=object)
            return labels[series.cat.codes.to_numpy()]
        texts = distinct.values_at(np.arange(len(distinct)))
        ordered = bool(series.cat.ordered) and not isinstance(texts[0], bool)
        return _encode_categories(
            series.cat.codes.to_numpy(), rank_labels(texts) if ordered else texts
        )
    if isinstance(series.dtype, np.dtype):
        return series.to_numpy()
    return series.to_numpy(dtype=object, na_value=None)


def _encode_categories(codes: NDArray[Any], labels: list[Any]) -> EncodedColumn:
    """Return a column of category codes, with only the categories that occur."""
    new_codes, used = drop_unused_labels(codes, len(labels))
    return EncodedColumn(new_codes, [labels[place] for place in used])


def _from_objects(name: str, values: list[Any]) -> Column:
    """Return Python objects as a column: text, numbers or booleans, None for missing.

    Does not use polars: its thread pool does not survive a fork, and lists must work in a child
    process.
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
        return _encode(values)
    numbers = all(
        issubclass(kind, int | float | np.number) and not issubclass(kind, bool) for kind in kinds
    )
    if numbers and all(issubclass(kind, int | np.integer) for kind in kinds):
        return _encode(values)
    if numbers or (len(kinds) == 1 and next(iter(kinds)).__name__ == "Decimal"):
        return np.array([np.nan if v is None else as_float(v) for v in values])
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds)[:5])
        raise ArgumentTypeError(
            f"{name} mixes values of types {names}; accepted: one type", argument=argument_of(name)
        )
    kind = next(iter(kinds))
    package = kind.__module__.partition(".")[0]
    if package == "pandas" and kind.__name__ in ("Interval", "Period"):
        return _by_value(values)
    if kind.__module__ == "datetime" or (package == "pandas" and hasattr(kind, "isoformat")):
        return _encode([None if v is None else str(v) for v in values])
    raise ArgumentTypeError(
        f"{name} holds values of type {kind.__name__}; accepted: numbers, booleans, text",
        argument=argument_of(name),
    )


def _encode(values: list[Any]) -> EncodedColumn:
    """Encode values as codes into the distinct ones."""
    place: dict[Any, int] = {}
    codes = np.fromiter(
        (place.setdefault(value, len(place)) for value in values), np.uint32, len(values)
    )
    missing = place.pop(None, None)
    if missing is not None:
        # Missing values get the code after the last label; higher codes move down by one.
        moved = np.arange(len(place) + 1, dtype=np.uint32)
        moved[missing + 1 :] -= 1
        moved[missing] = len(place)
        codes = moved[codes]
    return EncodedColumn(codes, list(place))


def _by_value(values: list[Any]) -> EncodedColumn:
    """Encode sortable values as texts that keep their order."""
    coded = _encode(values)
    places = sorted(range(len(coded.labels)), key=coded.labels.__getitem__)
    labels: list[Any] = [None] * len(places)
    for place, label in zip(places, rank_labels(str(coded.labels[p]) for p in places), strict=True):
        labels[place] = label
    return EncodedColumn(coded.codes, labels)


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
            f"{name} is a {type(series).__name__}; accepted: a column, one value per row",
            argument=argument_of(name),
        )
    if series.dtype == pl.Null:
        return np.full(len(series), np.nan)
    if series.dtype.is_float():
        wide = series if series.dtype in (pl.Float32, pl.Float64) else series.cast(pl.Float64)
        return np.asarray(wide.to_numpy())
    if str(series.dtype) in ("Int128", "UInt128"):
        # NumPy has no integers of 128 bits.
        return _from_objects(name, series.to_list())
    if series.dtype.is_decimal():
        return np.asarray(series.cast(pl.Float64).to_numpy())
    if series.dtype.is_temporal():
        return _from_objects(name, series.to_list())
    if isinstance(series.dtype, pl.Enum):
        codes = series.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        return _encode_categories(codes, rank_labels(series.dtype.categories.to_list()))
    if isinstance(series.dtype, pl.Categorical):
        series = series.cast(pl.String)
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        if not series.null_count():
            return np.asarray(series.to_numpy())
    elif series.dtype != pl.String:
        raise ArgumentTypeError(
            f"{name} holds {series.dtype}; accepted: numbers, booleans, text",
            argument=argument_of(name),
        )
    labels = series.drop_nulls().unique().sort()
    text = labels.cast(pl.String)
    codes = series.cast(pl.String).cast(pl.Enum(text)).to_physical().cast(pl.UInt32)
    return EncodedColumn(codes.fill_null(len(labels)).to_numpy(), labels)


def is_column(value: Any) -> bool:
    """Return whether a value looks like a column and not like a single value."""
    return not isinstance(value, str | bytes) and hasattr(value, "__len__")


def series_name(value: Any) -> str | None:
    """Return the name of a pandas or polars series, None if it has no name."""
    name = getattr(value, "name", None)
    return name if isinstance(name, str) and name else None


def is_pandas(value: Any) -> bool:
    """Return whether a value comes from pandas, without importing pandas."""
    return type(value).__module__.partition(".")[0] == "pandas" and "pandas" in sys.modules


def list_some(values: Sequence[object], most: int = 5) -> str:
    """Return the first few values for a message."""
    shown = ", ".join(repr(value) for value in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")
