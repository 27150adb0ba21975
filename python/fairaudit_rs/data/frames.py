"""A source of columns in frames and files, counted by a streaming group-by of polars."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..arguments import suggest_nearest
from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    ColumnError,
    DataError,
    FairAuditError,
    TooManyValuesError,
)
from .arrays import (
    NO_BIN,
    WHOLE_NUMBERS,
    ArraySource,
    CombinationCounts,
    check_total,
    refuse_scores,
)
from .bands import cut_lazily
from .columns import column_array, list_some
from .ranked_labels import rank_labels
from .streams import (
    column_names_of,
    enum_casts,
    only_columns,
    parquet_by_pyarrow,
)
from .text_files import OTHER_ENCODING, TextFormat, file_ending, hint_of, is_compressed, repeats_of

if TYPE_CHECKING:
    import polars as pl


#: Number of rows from which the column types of a CSV file are inferred.
_CSV_SCHEMA_ROWS = 10_000
#: The default text format.
PLAIN = TextFormat()
#: The column with the count of each distinct row.
_N_ROWS = "(number of rows)"


@dataclass(frozen=True, kw_only=True)
class FrameSource:
    """Columns of a polars lazy frame: a frame, or files that may be larger than memory."""

    frame: pl.LazyFrame
    columns: dict[str, str]
    origin: str
    #: The distinct rows with their counts, if these are known already.
    distinct: pl.LazyFrame | None = None
    #: The key of the column of people per row; None: one person per row.
    people_column: str | None = None
    holds_rows: ClassVar[bool] = True

    def cut(self, key: str, cuts: Sequence[float]) -> FrameSource:
        """Return this source with the numbers of one column cut into bands."""
        name = f"{self.columns[key]} (bands)"
        with reading_errors(self.origin):
            frame = cut_lazily(self.frame, self.columns[key], cuts, name)
        if frame is None:
            return self
        return replace(self, frame=frame, columns={**self.columns, key: name}, distinct=None)

    def count(
        self,
        keys: Sequence[str],
        limits: Sequence[int],
        score: str | None,
        edges: NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> CombinationCounts:
        """Count the distinct combinations of the keys' values, and of the bins of the score.

        polars has a thread pool of its own, so `n_threads` does not apply.
        """
        import polars as pl

        with reading_errors(self.origin):
            schema = self.frame.collect_schema()
        chosen = [
            _key(self.columns[key], schema[self.columns[key]]).alias(f"key{i}")
            for i, key in enumerate(keys)
        ]
        by = [f"key{i}" for i in range(len(keys))]
        people = pl.lit(1, pl.Int64)
        lazy = self.frame
        if self.people_column is not None:
            name = self.columns[self.people_column]
            self._check_people(name, score is not None)
            chosen.append(pl.col(name).cast(pl.Int64).alias("people"))
            people, lazy = pl.col("people"), lazy.filter(pl.col(name) > 0)
        totals = [
            people.sum().alias("n") if self.people_column else pl.len().cast(pl.Int64).alias("n")
        ]
        if score is None and self.distinct is not None:
            lazy = self.distinct
            if self.people_column is not None:
                lazy = lazy.filter(pl.col(self.columns[self.people_column]) > 0)
            chosen.append(pl.col(_N_ROWS))
            totals = [(pl.col(_N_ROWS) * people).sum().alias("n")]
        if score is not None:
            assert edges is not None
            name = self.columns[score]
            if not schema[name].is_numeric():
                raise ArgumentTypeError(
                    f"y_score column {name!r} holds {schema[name]}; accepted: numbers",
                    argument="y_score",
                )
            chosen.append(pl.col(name).cast(pl.Float64).fill_null(float("nan")).alias("score"))
            by.append("bin")
            units = (pl.col("score") / _native.SCORE_UNIT + 0.5).floor()
            units = units.cast(pl.Int64, strict=False) * people
            totals.append(units.sum().alias("score_sum"))
            totals.append(pl.col("score").first().alias("example"))
        lazy = lazy.select(chosen)
        if score is not None:
            lazy = lazy.with_columns(_bins(edges).alias("bin"))
        with reading_errors(self.origin):
            table = lazy.group_by(by).agg(totals).collect(engine="streaming")
        if score is not None:
            assert edges is not None
            outside = table.filter(pl.col("bin") == NO_BIN)
            if len(outside):
                n_outside, n_rows = int(outside["n"].sum()), int(table["n"].sum())
                refuse_scores(n_outside, n_rows, outside["example"][0], edges)
        for i, limit in enumerate(limits):
            if table[f"key{i}"].n_unique() > limit:
                raise TooManyValuesError(f"column {i} has more than {limit} values", (i, limit))
        values, codes = factorize(table, [f"key{i}" for i in range(len(keys))])
        return CombinationCounts(
            values=values,
            codes=codes,
            counts=table["n"].to_numpy().astype(np.int64),
            score_sums=table["score_sum"].to_numpy().astype(np.int64)
            if score is not None
            else None,
            score_bins=table["bin"].to_numpy().astype(np.int64) if score is not None else None,
        )

    def _check_people(self, name: str, scored: bool) -> None:
        """Raise if a column does not hold whole numbers of at least 0."""
        import polars as pl

        with reading_errors(self.origin):
            dtype = self.frame.collect_schema()[name]
            if not dtype.is_numeric():
                raise ArgumentTypeError(
                    f"counts column {name!r} holds {dtype}; accepted: {WHOLE_NUMBERS}",
                    argument="counts",
                )
            value = pl.col(name).cast(pl.Float64)
            whole = value.is_finite() & (value >= 0) & (value == value.floor())
            wrong = ~whole.fill_null(value=False)
            summary = self.frame.select(
                wrong.sum().alias("n"),
                value.filter(wrong).first().alias("example"),
                value.sum().alias("total"),
            ).collect(engine="streaming")
        n_wrong, example, total = summary.row(0)
        if n_wrong:
            shown = "missing" if example is None else f"{example:g}"
            raise DataError(
                f"counts column {name!r} is {shown} in one of {n_wrong:,} invalid rows; "
                f"accepted: {WHOLE_NUMBERS}",
                argument="counts",
            )
        check_total(total, scored)

    def in_memory(self, needed_by: str = "this") -> ArraySource:
        """Read the columns into memory."""
        del needed_by
        with reading_errors(self.origin):
            table = self.frame.select(list(dict.fromkeys(self.columns.values()))).collect(
                engine="streaming"
            )
        return ArraySource(
            {
                key: column_array(f"column {name!r}", table[name])
                for key, name in self.columns.items()
            }
        )


def _key(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a column as a group-by key: NaN is missing, unordered categories are text."""
    import polars as pl

    column = pl.col(name)
    if isinstance(dtype, pl.Categorical):
        return column.cast(pl.String)
    if dtype.is_float():
        return column.fill_nan(None)
    if dtype.is_decimal():
        return column.cast(pl.Float64)
    if dtype.is_nested() or dtype == pl.Object:
        raise ArgumentTypeError(
            f"column {name!r} holds {dtype}; accepted: numbers, booleans, text, dates",
            argument="data",
        )
    return column


def _bins(edges: NDArray[np.float64] | None) -> pl.Expr:
    import polars as pl

    assert edges is not None
    return pl.col("score").map_batches(
        lambda scores: pl.Series(
            _native.bin_scores(np.ascontiguousarray(scores.to_numpy()), edges, _native.Call())
        ),
        return_dtype=pl.UInt32,
        is_elementwise=True,
    )


def factorize(
    table: pl.DataFrame, names: Sequence[str]
) -> tuple[list[list[Any]], NDArray[np.int64]]:
    """Return the distinct values of columns of a small table, and the codes of its rows."""
    import polars as pl

    values, codes = [], []
    for name in names:
        keys = table.select(key=_key(name, table.schema[name]))
        distinct = keys.unique(maintain_order=True)
        labels = distinct["key"].to_list()
        if isinstance(distinct.schema["key"], pl.Enum):
            ranked = {label: label for label in rank_labels(distinct.schema["key"].categories)}
            labels = [ranked.get(label) for label in labels]
        values.append(labels)
        place = distinct.with_row_index("code")
        joined = keys.join(place, on="key", how="left", nulls_equal=True, maintain_order="left")
        codes.append(joined["code"].cast(pl.Int64).to_numpy())
    if not codes:
        return [], np.zeros((len(table), 0), dtype=np.int64)
    return values, np.stack(codes, axis=1)


@contextmanager
def reading_errors(origin: object) -> Iterator[None]:
    """Turn errors while reading a table into a DataError that names the table."""
    try:
        yield
    except FairAuditError:
        raise
    # A polars panic is not an Exception; uncaught, it would exit with the code of a verdict.
    except BaseException as error:
        import polars as pl

        theirs = pl.exceptions.PolarsError | pl.exceptions.PanicException
        ours = OSError | TypeError | ValueError | OverflowError | NotImplementedError
        if not isinstance(error, theirs | ours):
            raise
        lines = str(error).strip().splitlines()
        reason = lines[0] if lines else repr(error)
        hint = f". {OTHER_ENCODING}" if "utf-8" in reason else ""
        raise DataError(
            f"data from {origin} cannot be read: {reason}{hint}", argument="data"
        ) from error


def as_frame(argument: str, value: Any, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Convert a frame or a mapping to a polars frame with at least ``columns``."""
    import polars as pl

    if isinstance(value, pl.DataFrame):
        return value
    if isinstance(value, pl.LazyFrame):
        return value.collect()
    if isinstance(value, dict) or hasattr(value, "__arrow_c_stream__"):
        with reading_errors(f"a {type(value).__name__}"):
            if columns is not None:
                existing = column_names_of(value)
                if existing is not None:
                    check_columns(columns, existing)
                value = only_columns(value, columns)
            return pl.DataFrame(value).with_columns(**enum_casts(value))
    raise ArgumentTypeError(
        f"{argument} is a {type(value).__name__}; accepted: a polars, pandas or Arrow frame, or a "
        "mapping of columns",
        argument=argument,
    )


def names_of(role: str, value: Any) -> list[str]:
    """Return the column names in an argument."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(
            f"{role} is a {type(value).__name__}; with data= pass the name of a column or a list "
            "of names",
            argument=role,
            mentions=("data",),
        )
    if len(set(names)) != len(names):
        raise ArgumentError(
            f"{role} is {list(names)!r}; a column is named twice. Name each once.", argument=role
        )
    return list(names)


def check_columns(wanted: Sequence[str], existing: Sequence[str], where: str = "the data") -> None:
    """Raise when a column does not exist."""
    missing = [name for name in wanted if name not in existing]
    twice = repeats_of(missing[0], existing) if missing else []
    if twice:
        raise ColumnError(
            f"column {missing[0]!r} occurs twice; accepted: {' or '.join(map(repr, twice))}"
        )
    if missing:
        raise unknown_column_error(
            f"column {missing[0]!r} does not exist", missing[0], existing, where=where
        )


def unknown_column_error(
    problem: str,
    name: str,
    existing: Sequence[str],
    argument: str | None = None,
    where: str = "the data",
) -> ColumnError:
    """Return the error about a column that does not exist, with the nearest that does."""
    near = suggest_nearest(name, existing, cutoff=0.65)
    where = where[:1].upper() + where[1:] if near else where
    return ColumnError(
        f"{problem}; {near}{where} have: {list_some(list(existing), 30)}{hint_of(existing)}",
        column=name,
        existing=existing,
        argument=argument,
    )


def frame_source(data: Any, columns: dict[str, str]) -> FrameSource:
    """Return a source of columns of some data, named by role."""
    import polars as pl

    wanted = list(dict.fromkeys(columns.values()))
    if isinstance(data, pl.LazyFrame):
        frame, origin = data, "a LazyFrame"
    elif isinstance(data, pl.DataFrame):
        frame, origin = data.lazy(), "a frame"
    elif isinstance(data, str | Path):
        frame, distinct = _scan(data_files(data), wanted)
        return FrameSource(frame=frame, columns=columns, origin=str(data), distinct=distinct)
    elif isinstance(data, list | tuple) and data and all(isinstance(p, str | Path) for p in data):
        files = [file for part in data for file in data_files(part)]
        frame, distinct = _scan(files, wanted)
        origin = f"{len(files)} files"
        return FrameSource(frame=frame, columns=columns, origin=origin, distinct=distinct)
    elif hasattr(data, "__arrow_c_stream__"):
        frame, origin = as_frame("data", data, wanted).lazy(), f"a {type(data).__name__}"
    else:
        raise ArgumentTypeError(
            f"data is a {type(data).__name__}; accepted: a polars, pandas or Arrow frame, a polars "
            "LazyFrame, a path or glob of Parquet or CSV files, or a mapping of columns",
            argument="data",
        )
    with reading_errors(origin):
        check_columns(wanted, frame.collect_schema().names())
    return FrameSource(frame=frame.select(wanted), columns=columns, origin=origin)


def scan_files(data: str | Path, form: TextFormat = PLAIN) -> pl.LazyFrame:
    """Return all columns of the files at a path, in a directory or matching a pattern."""
    return _scan(data_files(data), column_names(data, form), form)[0]


def column_names(data: str | Path, form: TextFormat = PLAIN) -> list[str]:
    """Return the column names of the first of these files, without reading its rows."""
    import polars as pl

    files = data_files(data)
    is_text = are_text_files(files, form)
    first = files[0]
    check_regular("data", first)
    with reading_errors(first):
        if is_text and not form.is_plain(first):
            return form.names(first)
        scan = (pl.scan_csv if is_text else pl.scan_parquet)(first, glob=False)
        return scan.collect_schema().names()


def check_regular(name: str, file: str | Path) -> None:
    """Raise for pipes, devices and sockets, where reading may never end."""
    if not isinstance(file, str | Path):
        raise ArgumentTypeError(f"{name} is {file!r}; accepted: the path of a file", argument=name)
    try:
        mode = Path(file).stat().st_mode
    except (OSError, ValueError) as error:
        raise DataError(f"data from {file} cannot be read: {error}", argument="data") from None
    if not stat.S_ISREG(mode):
        kind = "a named pipe" if stat.S_ISFIFO(mode) else "not a regular file"
        raise DataError(
            f"{name} is {str(file)!r}, which is {kind}; accepted: a regular file. Write its "
            "content to a file first, or read it into a frame",
            argument=name,
        )


def check_pages(file: str | Path, columns: list[str] | None = None) -> None:
    """Raise for Parquet files whose page headers would make polars abort the process."""
    try:
        _native.check_parquet(file, columns, _native.Call())
    except ArgumentError as error:
        raise DataError(f"data from {file} cannot be read: {error}", argument="data") from None


def data_files(path: str | Path) -> list[str]:
    """Return the files at a path, in a directory or matching a pattern."""
    import glob

    text = str(path)
    place = Path(path)
    try:
        is_folder, is_there = place.is_dir(), place.exists()
    except OSError as error:  # such as a name that is too long
        raise DataError(f"data from {text} cannot be read: {error}", argument="data") from None
    if text and is_folder:
        inside = sorted(place.rglob("*.parquet"))
        # Hidden parts of a writer (_temporary, .cache) are not data.
        hidden = ("_", ".")
        files = [
            str(file)
            for file in inside
            if not any(part.startswith(hidden) for part in file.relative_to(place).parts)
        ]
        if not files:
            raise DataError(f"data is {text!r}, a directory without Parquet files", argument="data")
        return files
    files = [text] if text and is_there else sorted(glob.glob(text))  # noqa: PTH207
    if not files:
        raise DataError(
            f"data is {text!r}; no such file, and no file matches it as a pattern", argument="data"
        )
    return files


def _scan(
    files: Sequence[str], wanted: list[str], form: TextFormat = PLAIN
) -> tuple[pl.LazyFrame, pl.LazyFrame | None]:
    """Return the named columns of all files, concatenated, and their distinct rows."""
    are_text = are_text_files(files, form)
    scans, counted = [], []
    for file in files:
        check_regular("data", file)
        with reading_errors(file):
            if are_text and form.is_plain(file):
                scan, distinct = _scan_csv(file, wanted)
            elif are_text:
                scan, distinct = form.frame(file), None
            else:
                check_pages(file, wanted)
                scan, distinct = _scan_parquet(file, wanted), None
            where = "the data" if len(files) == 1 else f"the data in {file}"
            check_columns(wanted, scan.collect_schema().names(), where)
            scans.append(scan.select(wanted))
            if distinct is not None:
                counted.append(distinct)
    with reading_errors(f"{len(files)} files"):
        together = _concatenated(scans)
        together.collect_schema()
    return together, _concatenated(counted) if len(counted) == len(files) else None


def _scan_parquet(file: str, wanted: list[str]) -> pl.LazyFrame:
    """Return a Parquet file; only the named columns if polars does not know all types."""
    import polars as pl

    scan = pl.scan_parquet(file, glob=False)
    try:
        scan.collect_schema()
    except pl.exceptions.PanicException:
        parquet = parquet_by_pyarrow(file)
        if parquet is None:
            raise
        check_columns(wanted, parquet.schema_arrow.names)
        return as_frame("data", parquet.read(wanted)).lazy()
    return scan


def are_text_files(files: Sequence[str], form: TextFormat) -> bool:
    """Return True for text files and False for Parquet files."""
    are_text = [form.is_text(file) for file in files]
    if all(are_text):
        return True
    if any(are_text) or not {Path(file).suffix.lower() for file in files} <= {".parquet", ".pq"}:
        kinds = sorted(
            {file_ending(file) + (".gz" if is_compressed(file) else "") for file in files}
        )
        raise DataError(
            f"data are files of type {', '.join(kinds) or 'unknown'}; accepted: "
            ".parquet and .csv (.tsv, .csv.gz), not mixed; other text files with --delimiter (from "
            "Python: read them into a frame)",
            argument="data",
        )
    for name in ("columns", "skip_lines"):
        if getattr(form, name):
            raise ArgumentError(
                f"{name} cannot be used with Parquet files, which name their columns. Remove it.",
                argument=name,
            )
    return False


def _concatenated(parts: list[pl.LazyFrame]) -> pl.LazyFrame:
    import polars as pl

    return parts[0] if len(parts) == 1 else pl.concat(parts, how="vertical_relaxed")


def _scan_csv(file: str, wanted: list[str]) -> tuple[pl.LazyFrame, pl.LazyFrame | None]:
    """Return a CSV file, and the distinct rows of some columns if there are few.

    With few distinct rows the file is read only once. Rows of different length are errors: polars
    fills short rows with missing values, and notices long ones only when it needs all columns.
    """
    import polars as pl

    try:
        rows = _native.read_csv(file, [] if _N_ROWS in wanted else wanted, _native.Call())
    except ArgumentError as error:
        hint = f". {OTHER_ENCODING}" if "utf-8" in str(error) else ""
        raise DataError(
            f"data from {file} cannot be read: {error}{hint}", argument="data"
        ) from None
    schema = pl.scan_csv(file, glob=False, infer_schema_length=_CSV_SCHEMA_ROWS).collect_schema()
    scan = pl.scan_csv(file, glob=False, schema=schema)
    if rows.distinct is None:
        return scan, None
    types = {name: schema[name] for name in wanted} | {_N_ROWS: pl.Int64()}
    try:
        distinct = pl.scan_csv(rows.distinct, has_header=False, schema=types).collect()
    except pl.exceptions.PolarsError:
        # Reading the file itself gives an error that locates the value that does not fit.
        return scan, None
    return scan, distinct.lazy()
