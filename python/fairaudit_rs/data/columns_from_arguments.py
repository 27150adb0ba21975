"""Read columns from arguments: arrays, mappings or frames of columns, or names in a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError, DataError
from .columns import Column, column_array, is_column, series_name
from .frames import as_frame, check_columns


def add_columns(
    columns: dict[str, Column], keys: dict[str, str], role: str, value: Any
) -> tuple[str, ...]:
    """Add one array, or the columns of a mapping, frame, list or 2-D array."""
    if isinstance(value, str):
        raise ArgumentTypeError(
            f"{role} is the text {value!r}. To name a column, pass data= too.",
            argument=role,
            mentions=("data",),
        )
    if isinstance(value, tuple) and not value:
        return ()
    single = {"sensitive_features": "group", "strata": "stratum"}.get(role, "cluster")
    named: list[tuple[str, Any]]
    if isinstance(value, Mapping):
        named = [(str(name), column) for name, column in value.items()]
    elif hasattr(value, "__arrow_c_stream__") and (
        hasattr(value, "column_names") or hasattr(value, "get_column")
    ):
        frame = as_frame(role, value)
        named = [(name, frame[name]) for name in frame.columns]
    elif hasattr(value, "columns") and hasattr(value, "iloc"):
        named = [(str(name), value.iloc[:, i]) for i, name in enumerate(value.columns)]
    elif isinstance(value, list | tuple) and value and is_column(value[0]):
        named = [
            (series_name(column) or f"{single}_{i + 1}", column) for i, column in enumerate(value)
        ]
    elif isinstance(value, np.ndarray) and value.ndim == 2:
        named = [(f"{single}_{i + 1}", value[:, i]) for i in range(value.shape[1])]
    else:
        named = [(series_name(value) or single, value)]
    if not named:
        raise ArgumentError(f"{role} has no columns. Pass at least one.", argument=role)
    for name, column in named:
        key = f"{role}:{name}"
        if key in columns:
            raise ArgumentError(f"{role} names {name!r} twice. Use each name once.", argument=role)
        columns[key] = column_array(f"{role} {name!r}", column)
        keys[key] = name
    return tuple(f"{role}:{name}" for name, _ in named)


def check_lengths(lengths: dict[str, int]) -> None:
    """Raise if columns differ in length or have no rows."""
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {n:,}" for name, n in lengths.items())
        raise DataError(f"the columns differ in length: {shown}. Pass one value per row in each.")
    if 0 in lengths.values():
        raise DataError("the data have no rows", argument="data")


def named_columns(data: Any, wanted: Mapping[str, str]) -> dict[str, Column]:
    """Return columns of a pandas frame or a mapping by role."""
    if not isinstance(data, Mapping) and not hasattr(data, "columns"):
        raise ArgumentTypeError(
            f"data is a {type(data).__name__}; accepted: a frame or a mapping of columns",
            argument="data",
        )
    existing = list(data) if isinstance(data, Mapping) else list(data.columns)
    # Columns with numbers as names are found by their text.
    names = {str(name): name for name in existing}
    check_columns(list(wanted.values()), list(names))
    columns = {
        key: column_array(f"column {name!r}", data[names[name]]) for key, name in wanted.items()
    }
    check_lengths({wanted[key]: len(column) for key, column in columns.items()})
    return columns
