"""Where columns come from: arrays, frames and files, each brought to one kind of array.

A source counts the distinct combinations of some of its columns: the native module does it
for arrays, a streaming group-by of polars for frames and files. Nothing here knows what the
values mean; `tables` does.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from .errors import ArgumentError, ArgumentTypeError, ColumnError, DataError, TooManyValuesError

if TYPE_CHECKING:
    import polars as pl


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
    """A column of text as codes into its distinct values."""

    codes: NDArray[np.uint32]
    labels: list[str | None]

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class ArraySource:
    """Columns in memory, one array each."""

    columns: dict[str, NDArray[Any] | Coded]

    def count(
        self,
        keys: Sequence[str],
        limits: Sequence[int],
        score: str | None,
        edges: NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> Counts:
        arrays = [self.columns[key] for key in keys]
        native = [_native_column(array) for array in arrays]
        limits = list(limits)
        score_values = None
        if score is not None:
            assert edges is not None
            score_values = _floats("y_score", self.columns[score])
            native.append(_native.bin_scores(score_values, edges))
            limits.append(len(edges))
        rows, codes, counts, sums = _native.tabulate(native, limits, score_values, n_threads)
        values = [
            [array.labels[code] for code in array.codes[index]]
            if isinstance(array, Coded)
            else list(array[index])
            for array, index in zip(arrays, rows, strict=False)
        ]
        bins = None
        if score is not None:
            bins = native[-1][rows[-1]][codes[:, -1]].astype(np.int64)
        return Counts(
            values,
            codes[:, : len(keys)].astype(np.int64),
            counts.astype(np.int64),
            sums if score is not None else None,
            bins,
        )


def _native_column(array: NDArray[Any] | Coded) -> NDArray[Any]:
    """Return an array that the native module reads: numbers, booleans, fixed-width bytes."""
    if isinstance(array, Coded):
        return array.codes
    kind = array.dtype.kind
    if (kind in "biuf" and array.dtype.itemsize in (1, 4, 8)) or array.dtype in ("i2", "u2"):
        return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    if kind == "f":
        return np.ascontiguousarray(array, dtype=np.float64)
    if kind in "US":
        flat = np.ascontiguousarray(array)
        if flat.dtype.itemsize == 0:
            return np.zeros(len(flat), dtype=np.uint8)
        return flat.view(np.uint8).reshape(len(flat), flat.dtype.itemsize)
    raise ArgumentTypeError(f"a column has dtype {array.dtype}; accepted: numbers, booleans, text")


def _floats(name: str, array: NDArray[Any] | Coded) -> NDArray[np.float64]:
    if isinstance(array, Coded) or array.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"{name} holds text; accepted: numbers")
    return np.ascontiguousarray(array, dtype=np.float64)


@dataclass(frozen=True)
class FrameSource:
    """Columns of a polars lazy frame: a frame, or files that need not fit into memory."""

    frame: pl.LazyFrame
    columns: dict[str, str]
    origin: str

    def count(
        self,
        keys: Sequence[str],
        limits: Sequence[int],
        score: str | None,
        edges: NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> Counts:
        import polars as pl

        chosen = [pl.col(self.columns[key]).alias(f"key{i}") for i, key in enumerate(keys)]
        schema = self.frame.collect_schema()
        chosen = [
            column.cast(pl.String)
            if isinstance(schema[self.columns[key]], pl.Categorical | pl.Enum)
            else column
            for column, key in zip(chosen, keys, strict=True)
        ]
        by = [f"key{i}" for i in range(len(keys))]
        totals = [pl.len().cast(pl.Int64).alias("n")]
        if score is not None:
            assert edges is not None
            fixed_edges = edges
            column = pl.col(self.columns[score])
            if not schema[self.columns[score]].is_numeric():
                raise ArgumentTypeError(
                    f"y_score column {self.columns[score]!r} holds "
                    f"{schema[self.columns[score]]}; accepted: numbers"
                )
            chosen.append(column.cast(pl.Float64).fill_null(float("nan")).alias("score"))
            by.append("bin")
            totals.append(
                (pl.col("score") / _native.SCORE_UNIT + 0.5)
                .floor()
                .cast(pl.Int64)
                .sum()
                .alias("score_sum")
            )
        lazy = self.frame.select(chosen)
        if score is not None:
            lazy = lazy.with_columns(
                pl.col("score")
                .map_batches(
                    lambda values: pl.Series(
                        _native.bin_scores(np.ascontiguousarray(values.to_numpy()), fixed_edges)
                    ),
                    return_dtype=pl.UInt32,
                    is_elementwise=True,
                )
                .alias("bin")
            )
        with reading(self.origin):
            table = lazy.group_by(by).agg(totals).collect(engine="streaming")
        values, codes = [], []
        for i, limit in enumerate(limits):
            distinct = table[f"key{i}"].unique()
            if len(distinct) > limit:
                raise TooManyValuesError(f"column {i} has more than {limit} values", (i, limit))
            values.append(distinct.to_list())
            place = pl.DataFrame({f"key{i}": distinct}).with_row_index("code")
            joined = table.select(f"key{i}").join(
                place, on=f"key{i}", how="left", nulls_equal=True, maintain_order="left"
            )
            codes.append(joined["code"].to_numpy().astype(np.int64))
        stacked = np.stack(codes, axis=1) if codes else np.zeros((len(table), 0), np.int64)
        return Counts(
            values,
            stacked,
            table["n"].to_numpy().astype(np.int64),
            table["score_sum"].to_numpy().astype(np.int64) if score is not None else None,
            table["bin"].to_numpy().astype(np.int64) if score is not None else None,
        )


class reading:  # noqa: N801 (a context manager that reads like a phrase)
    """Turns errors of reading files into a DataError that names the file."""

    def __init__(self, origin: object) -> None:
        self.origin = origin

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        import polars as pl

        if error is None or isinstance(error, DataError | ArgumentError | ArgumentTypeError):
            return
        if isinstance(error, pl.exceptions.ComputeError) and "accepted:" in str(error):
            # An error of the native module that passed through polars.
            text = str(error)
            raise DataError(text[text.find("y_score") :].splitlines()[0]) from error
        if isinstance(error, pl.exceptions.PolarsError | OSError):
            reason = str(error).strip().splitlines()
            raise DataError(
                f"data from {self.origin} cannot be read: {reason[0] if reason else error!r}"
            ) from error


def column_array(name: str, value: Any) -> NDArray[Any] | Coded:
    """Return one column as a one-dimensional array of numbers, booleans or text."""
    package = type(value).__module__.partition(".")[0]
    if package == "polars":
        return _from_series(name, value)
    if package == "pandas":
        value = _from_pandas(value)
    elif hasattr(value, "detach") and hasattr(value, "numpy"):
        value = value.detach().cpu().numpy()
    if np.ma.isMaskedArray(value) and np.ma.getmaskarray(value).any():
        value = np.ma.filled(value.astype(object), None)
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
    if array.dtype.kind == "O":
        return _from_objects(name, array)
    if array.dtype.kind not in "biufUS":
        raise ArgumentTypeError(
            f"{name} has dtype {array.dtype}; accepted: numbers, booleans, text"
        )
    return array


def _from_pandas(series: Any) -> Any:
    """Return a pandas column as an array; extension types become objects with None."""
    if str(series.dtype) == "category":
        labels = np.array([*series.cat.categories, None], dtype=object)
        return labels[series.cat.codes.to_numpy()]
    if isinstance(series.dtype, np.dtype):
        return series.to_numpy()
    return series.to_numpy(dtype=object, na_value=None)


def _from_objects(name: str, values: NDArray[Any]) -> NDArray[Any] | Coded:
    """Return Python objects as an array: text, numbers or booleans, None for missing."""
    import polars as pl

    # NaN among text is a missing value too (pandas writes it).
    plain = [None if value is None or value != value else value for value in values.tolist()]
    try:
        return _from_series(name, pl.Series(name, plain, strict=True))
    except (TypeError, pl.exceptions.PolarsError):
        kinds = sorted({type(value).__name__ for value in plain})
        raise ArgumentTypeError(
            f"{name} mixes values of types {', '.join(kinds[:5])}; accepted: one type"
        ) from None


def _from_series(name: str, series: pl.Series) -> NDArray[Any] | Coded:
    """Return a polars column as an array; text becomes codes, without an object per row."""
    import polars as pl

    if series.dtype == pl.Null:
        return np.full(len(series), np.nan)
    if isinstance(series.dtype, pl.Categorical | pl.Enum):
        series = series.cast(pl.String)
    if series.dtype == pl.String:
        labels = series.drop_nulls().unique().sort()
        codes = series.cast(pl.Enum(labels)).to_physical().cast(pl.UInt32).fill_null(len(labels))
        return Coded(codes.to_numpy(), [*labels.to_list(), None])
    if series.dtype == pl.Boolean and series.null_count():
        return series.cast(pl.Float64).to_numpy()
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        return series.to_numpy()
    raise ArgumentTypeError(f"{name} holds {series.dtype}; accepted: numbers, booleans, text")


def some(values: Sequence[object], most: int = 5) -> str:
    shown = ", ".join(repr(value) for value in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")


def is_column(value: Any) -> bool:
    return not isinstance(value, str | bytes) and hasattr(value, "__len__")


def series_name(value: Any) -> str | None:
    name = getattr(value, "name", None)
    return name if isinstance(name, str) and name else None


def is_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and "pandas" in sys.modules


def names_of(role: str, value: Any) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(
            f"{role} is a {type(value).__name__}; with data= it is the name of a column or a list "
            "of names"
        )
    if len(set(names)) != len(names):
        raise ArgumentError(f"{role} is {list(names)!r}; a column is named twice")
    return list(names)


def check_columns(wanted: Sequence[str], existing: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in existing]
    if missing:
        raise ColumnError(
            f"column {missing[0]!r} does not exist; the data have: {some(list(existing), 30)}"
        )


def lazy_frame(data: Any) -> tuple[pl.LazyFrame, str]:
    """Return data as a lazy frame, and what to call it in messages."""
    import polars as pl

    if isinstance(data, pl.LazyFrame):
        return data, "a LazyFrame"
    if isinstance(data, pl.DataFrame):
        return data.lazy(), "a frame"
    if isinstance(data, str | Path):
        return _scan(str(data))
    if isinstance(data, list | tuple) and data and all(isinstance(p, str | Path) for p in data):
        parts = [_scan(str(part))[0] for part in data]
        return pl.concat(parts), f"{len(parts)} files"
    if hasattr(data, "__arrow_c_stream__"):
        return pl.DataFrame(data).lazy(), f"a {type(data).__name__}"
    if isinstance(data, Mapping):
        return pl.DataFrame(dict(data)).lazy(), "a mapping"
    raise ArgumentTypeError(
        f"data is a {type(data).__name__}; accepted: a polars, pandas or Arrow frame, a polars "
        "LazyFrame, a path or glob of Parquet or CSV files, a mapping of columns, or Cells"
    )


def _scan(path: str) -> tuple[pl.LazyFrame, str]:
    import glob

    import polars as pl

    place = Path(path)
    files = (
        sorted(str(p) for p in place.rglob("*.parquet"))
        if place.is_dir()
        else (
            [path] if place.exists() else sorted(glob.glob(path))  # noqa: PTH207 (any pattern)
        )
    )
    if not files:
        raise DataError(f"data is {path!r}; no such file, and no file fits it as a pattern")
    suffixes = {Path(file).suffix.lower() for file in files}
    with reading(path):
        if suffixes <= {".parquet", ".pq"}:
            return pl.scan_parquet(files, glob=False), path
        if suffixes <= {".csv"}:
            return pl.scan_csv(files, glob=False), path
    raise DataError(
        f"data is {path!r} with files of type {', '.join(sorted(suffixes)) or 'unknown'}; "
        "accepted: .parquet and .csv, not mixed"
    )
