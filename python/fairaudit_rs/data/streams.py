"""Read tables of other packages through Arrow, only the requested columns."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import DataError

if TYPE_CHECKING:
    import polars as pl


def column_names_of(table: Any) -> list[str] | None:
    """Return the column names of a table; None if they are known only after reading it."""
    if _package(table) == "pyarrow" and hasattr(table, "schema"):
        return list(table.schema.names)
    if _package(table) in _SELECT and hasattr(table, "columns"):
        return list(table.columns)
    return None


def check_unique_name(name: str, existing: Sequence[str], origin: object) -> None:
    """Raise when several columns have this name."""
    if existing.count(name) > 1:
        raise DataError(
            f"data from {origin} cannot be read: column {name!r} occurs twice. Rename one of them.",
            argument="data",
        )


def only_columns(table: Any, names: Sequence[str]) -> Any:
    """Return a table with some of its columns, in this order.

    If possible, the package of the table drops the other columns before it computes or copies
    them. Other Arrow streams are reduced batch by batch with pyarrow; without pyarrow the table
    is returned unchanged.
    """
    existing, package = column_names_of(table), _package(table)
    for name in names:
        check_unique_name(name, existing or [], f"a {type(table).__name__}")
    if package == "pyarrow" and hasattr(table, "select"):
        return table.select(list(names))
    if package in _SELECT and existing is not None:
        return _SELECT[package](table, names)
    if find_spec("pyarrow") is None or not hasattr(table, "__arrow_c_stream__"):
        return table
    import pyarrow as pa

    batches = pa.RecordBatchReader.from_stream(table)
    schema = batches.schema
    if any(schema.names.count(name) != 1 for name in names):
        # `check_columns` reports missing or repeated names after reading.
        return batches
    chosen = pa.schema([schema.field(name) for name in names], schema.metadata)
    return pa.RecordBatchReader.from_batches(
        chosen, (batch.select(list(names)) for batch in batches)
    )


def enum_casts(value: Any) -> dict[str, pl.Expr]:
    """Return by ordered dictionary column the expression that casts it to an enum in its order."""
    import polars as pl

    enums = {}
    names = getattr(value, "column_names", ())
    # In a Spark frame, `column_names` is a column and not a list.
    for name in names if isinstance(names, list) else ():
        column = value[name]
        if getattr(getattr(column, "type", None), "ordered", False):
            if hasattr(column, "unify_dictionaries"):
                column = column.unify_dictionaries().combine_chunks()
            labels = column.dictionary.to_pylist()
            if all(isinstance(label, str) for label in labels):
                enums[name] = pl.col(name).cast(pl.Enum(labels))
    return enums


def parquet_by_pyarrow(file: str) -> Any:
    """Open a Parquet file with pyarrow, which supports more types than polars; None without it."""
    if find_spec("pyarrow") is None:
        return None
    from pyarrow import parquet

    return parquet.ParquetFile(file)


def _package(table: Any) -> str:
    """Return the package of a table; for pyspark with its submodule."""
    module = type(table).__module__
    package = module.partition(".")[0]
    return ".".join(module.split(".")[:2]) if package == "pyspark" else package


def _quoted(names: Sequence[str], mark: str) -> list[str]:
    return [mark + name.replace(mark, 2 * mark) + mark for name in names]


#: How to select columns by name in each package, with quotes if names would be expressions.
_SELECT = {
    "pyspark.sql": lambda table, names: table.select(*_quoted(names, "`")),
    "duckdb": lambda table, names: table.project(", ".join(_quoted(names, '"'))),
    "_duckdb": lambda table, names: table.project(", ".join(_quoted(names, '"'))),
    "narwhals": lambda table, names: table.select(*names),
    "ibis": lambda table, names: table.select(*names),
}
