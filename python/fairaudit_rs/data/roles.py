"""Assign roles to columns: arrays, columns of data, or both together, as one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, ArgumentTypeError
from .arrays import ArraySource
from .cells import Cells
from .columns import Column, column_array, is_pandas
from .columns_from_arguments import add_columns, check_lengths, named_columns
from .frames import as_frame, check_columns, frame_source, names_of
from .index import check_indices, indices_of
from .sources import CellsSource, Source


@dataclass(frozen=True, kw_only=True)
class Roles:
    """A source, and the roles of its columns."""

    source: Source
    sensitive_features: tuple[str, ...]
    strata: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    clusters: tuple[str, ...] = ()
    #: The edges of the score bins of cells; None if scores are numbers.
    score_edges: NDArray[np.float64] | None = None
    #: The pandas index of the rows; None if rows are known by position only.
    index: Any = None
    #: The name of each attribute, by key.
    names: dict[str, str] = field(default_factory=dict)


def read_roles(
    data: Any,
    single: Mapping[str, Any],
    several: Mapping[str, Any],
    extra: Sequence[str],
    rows_for: str | None,
) -> Roles:
    """Read the roles; ``single`` has one column per role, ``several`` may have more."""
    if several["sensitive_features"] is None and not isinstance(data, Cells):
        raise ArgumentTypeError(
            "sensitive_features is missing. Pass an array of group labels, several of them in a "
            "dict or frame, or with data= the names of columns.",
            argument="sensitive_features",
            mentions=("data",),
            code="missing-argument",
        )
    _check_counts(single, several)
    if data is None and extra:
        raise ArgumentTypeError(
            f"column {extra[0]!r} is named by the metric. Pass the frame that holds it as data=.",
            argument="metric",
            mentions=("data",),
            code="missing-argument",
        )
    if data is None:
        return _of_arrays(single, several)
    if isinstance(data, Cells):
        if rows_for is not None:
            CellsSource(data).in_memory(rows_for)
        return _of_cells(data, single, several, extra)
    return _of_data(data, single, several, extra)


def _check_counts(single: Mapping[str, Any], several: Mapping[str, Any]) -> None:
    """Raise if counts come with weights or clusters."""
    if single["counts"] is None:
        return
    for name, value, why in (
        ("sample_weight", single["sample_weight"], "the people of a row have no separate weights"),
        (
            "clusters",
            several["clusters"],
            "the people of a row may belong to different clusters",
        ),
    ):
        if value is not None:
            raise ArgumentTypeError(
                f"{name} cannot be combined with counts: {why}. Pass one row per person with "
                f"{name}, or counts alone.",
                argument=name,
                code="conflicting-arguments",
            )


def _of_cells(
    cells: Cells, single: Mapping[str, Any], several: Mapping[str, Any], extra: Sequence[str]
) -> Roles:
    """Read the roles of cells, which contain their columns and strata."""
    source = CellsSource(cells)
    of_rows = ("sample_weight", "clusters", "counterfactual_score", "distance", "counts")
    rows_only = {**single, **several, **dict.fromkeys(extra, True)}
    for name in (*of_rows, "first", "second", *extra):
        if rows_only[name] is not None:
            source.in_memory(name)
    for name in ("y_true", "y_pred", "y_score", "strata"):
        if rows_only[name] is not None:
            raise ArgumentTypeError(
                f"{name} cannot be combined with data=cells, which contain all columns. Remove it.",
                argument=name,
                mentions=("data",),
                code="conflicting-arguments",
            )
    features = several["sensitive_features"]
    source = CellsSource(cells if features is None else cells.marginalize(features))
    features = source.cells.sensitive_features
    names = {f"sensitive_features:{name}": name for name in features}
    names |= {f"strata:{name}": name for name in cells.strata_names}
    return Roles(
        source=source,
        sensitive_features=tuple(f"sensitive_features:{name}" for name in features),
        strata=tuple(f"strata:{name}" for name in cells.strata_names),
        roles=frozenset(cells.columns),
        score_edges=cells.score_edges,
        names=names,
    )


def _of_arrays(single: Mapping[str, Any], several: Mapping[str, Any]) -> Roles:
    for name, value in single.items():
        if isinstance(value, str):
            raise ArgumentTypeError(
                f"{name} is the text {value!r}. To name a column, pass data= too.",
                argument=name,
                mentions=("data",),
            )
    columns, keys, names = _arrays(single, several)
    check_lengths({name.split(":")[-1]: len(column) for name, column in columns.items()})
    indices = indices_of({**single, **several})
    return _in_memory(columns, keys, names, frozenset(set(columns) & set(single)), indices)


def _arrays(
    single: Mapping[str, Any], several: Mapping[str, Any]
) -> tuple[dict[str, Column], dict[str, tuple[str, ...]], dict[str, str]]:
    """Return arrays by role, the keys of attributes by role, and the names of attributes by key."""
    columns: dict[str, Column] = {
        name: column_array(name, value) for name, value in single.items() if value is not None
    }
    names: dict[str, str] = {}
    keys = {
        role: add_columns(columns, names, role, value)
        for role, value in several.items()
        if value is not None
    }
    return columns, keys, names


def _in_memory(
    columns: dict[str, Column],
    keys: Mapping[str, tuple[str, ...]],
    names: dict[str, str],
    roles: frozenset[str],
    indices: Mapping[str, Any],
) -> Roles:
    source = ArraySource(columns)
    return Roles(
        source=source.with_counts("counts") if "counts" in roles else source,
        sensitive_features=keys.get("sensitive_features", ()),
        strata=keys.get("strata", ()),
        roles=roles,
        clusters=keys.get("clusters", ()),
        index=check_indices(indices),
        names=names,
    )


def _is_named(value: Any, data: Any) -> bool:
    """Return whether a value names columns of the data.

    A list of texts with repetitions, as long as the data, holds labels.
    """
    if not isinstance(value, list | tuple):
        return isinstance(value, str)
    if not all(isinstance(name, str) for name in value):
        return False
    twice = len(set(value)) < len(value)
    return not (twice and _why_not_in_memory(data) is None and len(value) == _n_rows(data))


def _of_data(
    data: Any, single: Mapping[str, Any], several: Mapping[str, Any], extra: Sequence[str]
) -> Roles:
    asked = {name: value for name, value in {**single, **several}.items() if value is not None}
    beside = {
        name: value
        for name, value in asked.items()
        if not (isinstance(value, str) if name in single else _is_named(value, data))
    }
    for name in beside:
        _check_beside(name, beside[name], data)
    named = {
        role: names_of(role, several[role]) for role in several if role in asked.keys() - beside
    }
    if named.get("sensitive_features") == [] and not isinstance(asked["sensitive_features"], tuple):
        raise ArgumentError(
            "sensitive_features is empty; accepted: at least one name",
            argument="sensitive_features",
        )
    roles = {name: asked[name] for name in single if name in asked.keys() - beside}
    names = {f"{role}:{name}": name for role, some in named.items() for name in some}
    wanted = roles | names | {f"extra:{name}": name for name in extra}
    keys = {role: tuple(f"{role}:{name}" for name in some) for role, some in named.items()}
    everything = frozenset(name for name in single if name in asked)
    if not (beside or is_pandas(data) or isinstance(data, Mapping)):
        frame = frame_source(data, wanted)
        return Roles(
            source=replace(frame, people_column="counts") if "counts" in roles else frame,
            sensitive_features=keys.get("sensitive_features", ()),
            strata=keys.get("strata", ()),
            roles=everything,
            clusters=keys.get("clusters", ()),
            names=names,
        )
    columns = _columns_of(data, wanted)
    if beside:
        more, more_keys, more_names = _arrays(
            {name: beside[name] for name in single if name in beside},
            {name: beside[name] for name in several if name in beside},
        )
        # A stream can be read only once.
        n_rows = {"data": len(next(iter(columns.values()))) if columns else _n_rows(data)}
        check_lengths(n_rows | {name.split(":")[-1]: len(column) for name, column in more.items()})
        columns, keys, names = columns | more, keys | more_keys, names | more_names
    return _in_memory(columns, keys, names, everything, indices_of({"data": data, **beside}))


def _why_not_in_memory(data: Any) -> str | None:
    """Describe data whose rows are not in memory; None for a table in memory."""
    package = type(data).__module__.partition(".")[0]
    if isinstance(data, str | Path):
        return f"the file {str(data)!r}"
    if isinstance(data, list | tuple) and all(isinstance(part, str | Path) for part in data):
        return "files"
    if package == "polars" and hasattr(data, "collect"):
        return "a LazyFrame"
    return "a frame of Spark" if package == "pyspark" else None


def _check_beside(name: str, value: Any, data: Any) -> None:
    """Raise for values that are not arrays, and for arrays beside data that are not in memory."""
    where = _why_not_in_memory(data)
    if where is not None:
        raise ArgumentTypeError(
            f"{name} is a {type(value).__name__} beside data={where}, whose rows are not in "
            "memory. Pass the name of a column, or read the data into a frame first.",
            argument=name,
            mentions=("data",),
        )
    if not hasattr(value, "__len__") and np.ndim(value) == 0:
        raise ArgumentTypeError(
            f"{name} is a {type(value).__name__}; with data= pass the name of a column, or an "
            "array with one value per row",
            argument=name,
            mentions=("data",),
        )


def _columns_of(data: Any, wanted: Mapping[str, str]) -> dict[str, Column]:
    """Return columns of a table in memory by role."""
    if is_pandas(data) or isinstance(data, Mapping):
        return named_columns(data, wanted)
    frame = as_frame("data", data, list(dict.fromkeys(wanted.values())))
    check_columns(list(wanted.values()), frame.columns)
    return {key: column_array(f"column {name!r}", frame[name]) for key, name in wanted.items()}


def _n_rows(data: Any) -> int:
    if isinstance(data, Mapping):
        column = next(iter(data.values()), ())
        return len(column) if hasattr(column, "__len__") else 1
    return len(data) if hasattr(data, "__len__") else as_frame("data", data).height
