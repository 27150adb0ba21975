"""Combine mutually exclusive columns of 0 and 1 into one attribute: black, white, asian to race."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, ArgumentTypeError, DataError
from .frames import as_frame, check_columns, reading_errors

if TYPE_CHECKING:
    import polars as pl

#: The group of rows in which no column is 1.
NONE_OF_THESE = "none of these"
#: The column that `combine_columns` adds; no frame has a column of this name.
_COMBINED = "combined\x00"
_TRUE, _FALSE = ["1", "true"], ["0", "false"]


def combine_columns(flags: Any) -> NDArray[np.object_]:
    """Combine mutually exclusive columns of 0 and 1 into one attribute.

    A single such column compares one group with everyone else. Combined, the groups are compared
    with each other.

    Parameters
    ----------
    flags : frame, or mapping of names to arrays
        At least two columns of 0 and 1, booleans, or the texts true and false; in each row at most
        one of them is 1.

    Returns
    -------
    ndarray of object
        For each row the name of the column that is 1, ``"none of these"`` where none is, and None
        where none is and some are missing.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> flags = {"black": [1, 0, 0, 0], "white": [0, 1, 1, 0]}
    >>> fa.combine_columns(flags).tolist()
    ['black', 'white', 'white', 'none of these']
    >>> race = fa.combine_columns(flags)
    >>> fa.audit(y_pred=[1, 0, 1, 0], sensitive_features={"race": race}, rng=1).attributes
    ('race',)
    """
    frame = as_frame("flags", flags)
    if frame.width < 2:
        raise ArgumentError(
            f"flags has {frame.width} column; accepted: at least two", argument="flags"
        )
    combined = with_combined(frame.lazy(), {_COMBINED: frame.columns}, "flags")
    values: NDArray[np.object_] = (
        combined.select(_COMBINED).collect()[_COMBINED].to_numpy().astype(object)
    )
    return values


def with_combined(
    frame: pl.LazyFrame, combine: Mapping[str, Sequence[str]], origin: object
) -> pl.LazyFrame:
    """Return a frame with attributes by name, each combined from columns of 0 and 1.

    Raises if a column holds other values, or if two columns are 1 in the same row.
    """
    import polars as pl

    argument = "flags" if origin == "flags" else "combine"
    with reading_errors(origin):
        schema = frame.collect_schema()
    for name, columns in combine.items():
        _check_names(name, columns, list(schema))
        flags = {column: _flag(column, schema[column], argument) for column in columns}
        _check_rows(frame, flags, origin, argument)
        value = pl.when(pl.any_horizontal(flag.is_null() for flag in flags.values())).then(
            pl.lit(None, pl.String)
        )
        combined = value.otherwise(pl.lit(NONE_OF_THESE))
        for column, flag in flags.items():
            is_group = flag.fill_null(value=False)
            combined = pl.when(is_group).then(pl.lit(column)).otherwise(combined)
        frame = frame.with_columns(combined.alias(name))
    return frame


def _check_names(name: str, columns: Sequence[str], existing: Sequence[str]) -> None:
    if len(columns) < 2 or len(set(columns)) < len(columns):
        raise ArgumentError(
            f"combine names {', '.join(columns) or 'no columns'} for {name!r}; accepted: at least "
            "two columns, each named once",
            argument="combine",
        )
    check_columns(columns, existing)
    if name in existing:
        raise ArgumentError(
            f"combine names {name!r}, which is a column of the data already. Choose another name.",
            argument="combine",
        )


def _flag(column: str, dtype: pl.DataType, argument: str) -> pl.Expr:
    """Return a column as booleans; missing where it is neither 0 nor 1."""
    import polars as pl

    value = pl.col(column)
    false: list[float] | list[str] = [0.0]
    true: list[float] | list[str] = [1.0]
    if dtype == pl.Boolean:
        return value
    if dtype.is_numeric() or dtype == pl.Null:
        value = value.cast(pl.Float64)
    elif isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        value = value.cast(pl.String).str.strip_chars().str.to_lowercase()
        false, true = _FALSE, _TRUE
    else:
        raise ArgumentTypeError(
            f"column {column!r} holds {dtype}; accepted: 0 and 1, true or false",
            argument=argument,
        )
    flag = pl.when(value.is_in(true)).then(statement=True)
    return flag.when(value.is_in(false)).then(statement=False)


def _check_rows(
    frame: pl.LazyFrame, flags: Mapping[str, pl.Expr], origin: object, argument: str
) -> None:
    """Raise if a column holds values other than 0 and 1, or if two are 1 in the same row."""
    import polars as pl

    several = pl.sum_horizontal(flag.cast(pl.Int32).fill_null(0) for flag in flags.values()) > 1
    row = pl.int_range(pl.len())
    checks = [several.sum().alias("several"), row.filter(several).first().alias("row")]
    for place, (column, flag) in enumerate(flags.items()):
        value = pl.col(column)
        wrong = flag.is_null() & _is_known(value, frame.collect_schema()[column])
        checks.append(value.filter(wrong).first().cast(pl.String).alias(f"wrong {place}"))
    with reading_errors(origin):
        report = frame.select(checks).collect(engine="streaming").row(0, named=True)
    for place, column in enumerate(flags):
        if report[f"wrong {place}"] is not None:
            raise DataError(
                f"column {column!r} holds {report[f'wrong {place}']!r}; accepted: 0 and 1, or true "
                "and false, in columns that are combined",
                argument=argument,
            )
    if report["several"]:
        flags_of_row = frame.slice(report["row"], 1).select(**flags).collect().row(0, named=True)
        both = " and ".join(repr(column) for column, is_one in flags_of_row.items() if is_one)
        rest = report["several"] - 1
        more = f" and in {rest:,} other rows" if rest else ""
        raise DataError(
            f"columns {both} are 1 in the same row, row {report['row']:,} (the first is 0){more}. "
            "Combine only columns of which at most one is 1 in each row.",
            argument=argument,
        )


def _is_known(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    return value.is_not_null() & value.is_not_nan() if dtype.is_float() else value.is_not_null()
