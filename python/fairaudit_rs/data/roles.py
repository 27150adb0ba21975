"""Roles of columns: arrays, columns of data, and both beside each other, brought to one source."""

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
    """A source, and which of its columns are what."""

    source: Source
    sensitive_features: tuple[str, ...]
    strata: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    clusters: tuple[str, ...] = ()
    #: The bins that scores come in; None where they are numbers.
    score_edges: NDArray[np.float64] | None = None
    #: The labels of the rows in pandas; None where they are their positions.
    index: Any = None
    #: The name of every attribute, by key.
    names: dict[str, str] = field(default_factory=dict)


def read_roles(
    data: Any,
    given: Mapping[str, Any],
    several: Mapping[str, Any],
    extra: Sequence[str],
    rows_for: str | None,
) -> Roles:
    """Return what arguments give: ``given`` are single columns, ``several`` may be more."""
    if several["sensitive_features"] is None and not isinstance(data, Cells):
        raise ArgumentTypeError(
            "sensitive_features is missing; accepted: an array of group labels, several of "
            "them in a dict or frame, or with data= the name(s) of its column(s)",
            argument="sensitive_features",
            mentions=("data",),
        )
    _check_counts(given, several)
    if data is None and extra:
        raise ArgumentTypeError(
            f"column {extra[0]!r} is named by the metric; names of columns go with data=",
            mentions=("data",),
        )
    if data is None:
        return _of_arrays(given, several)
    if isinstance(data, Cells):
        if rows_for is not None:
            CellsSource(data).in_memory(rows_for)
        return _of_cells(data, given, several, extra)
    return _of_data(data, given, several, extra)


def _check_counts(given: Mapping[str, Any], several: Mapping[str, Any]) -> None:
    """Refuse weights and clusters of rows that stand for several persons."""
    if given["counts"] is None:
        return
    for name, there, why in (
        ("sample_weight", given["sample_weight"], "the persons of a row have no weights"),
        (
            "clusters",
            several["clusters"],
            "a row does not say to which clusters its persons belong",
        ),
    ):
        if there is not None:
            raise ArgumentTypeError(
                f"{name} does not go with counts: {why}; accepted: rows of persons with {name}, or "
                "counts alone",
                argument=name,
            )


def _of_cells(
    cells: Cells, given: Mapping[str, Any], several: Mapping[str, Any], extra: Sequence[str]
) -> Roles:
    """Take cells, which hold columns and strata of their own."""
    source = CellsSource(cells)
    of_rows = ("sample_weight", "clusters", "counterfactual_score", "distance", "counts")
    rows_only = {**given, **several, **dict.fromkeys(extra, True)}
    for name in (*of_rows, "first", "second", *extra):
        if rows_only[name] is not None:
            source.in_memory(name)
    for name in ("y_true", "y_pred", "y_score", "strata"):
        if rows_only[name] is not None:
            raise ArgumentTypeError(
                f"{name} does not go with data=cells, which hold their own columns",
                argument=name,
                mentions=("data",),
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


def _of_arrays(given: Mapping[str, Any], several: Mapping[str, Any]) -> Roles:
    for name, value in given.items():
        if isinstance(value, str):
            raise ArgumentTypeError(
                f"{name} is the text {value!r}; names of columns go with data=",
                argument=name,
                mentions=("data",),
            )
    columns, keys, names = _arrays(given, several)
    check_lengths({name.split(":")[-1]: len(column) for name, column in columns.items()})
    indices = indices_of({**given, **several})
    return _in_memory(columns, keys, names, frozenset(set(columns) & set(given)), indices)


def _arrays(
    given: Mapping[str, Any], several: Mapping[str, Any]
) -> tuple[dict[str, Column], dict[str, tuple[str, ...]], dict[str, str]]:
    """Return arrays by role, the keys of each attribute, and their names."""
    columns: dict[str, Column] = {
        name: column_array(name, value) for name, value in given.items() if value is not None
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
        source=source.repeated("counts") if "counts" in roles else source,
        sensitive_features=keys.get("sensitive_features", ()),
        strata=keys.get("strata", ()),
        roles=roles,
        clusters=keys.get("clusters", ()),
        index=check_indices(indices),
        names=names,
    )


def _is_named(value: Any, data: Any) -> bool:
    """Return whether a value names columns of the data.

    Text that repeats itself, as often as data have rows, is labels.
    """
    if not isinstance(value, list | tuple):
        return isinstance(value, str)
    if not all(isinstance(name, str) for name in value):
        return False
    twice = len(set(value)) < len(value)
    return not (twice and _why_not_in_memory(data) is None and len(value) == _n_rows(data))


def _of_data(
    data: Any, given: Mapping[str, Any], several: Mapping[str, Any], extra: Sequence[str]
) -> Roles:
    asked = {name: value for name, value in {**given, **several}.items() if value is not None}
    beside = {
        name: value
        for name, value in asked.items()
        if not (isinstance(value, str) if name in given else _is_named(value, data))
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
    roles = {name: asked[name] for name in given if name in asked.keys() - beside}
    names = {f"{role}:{name}": name for role, some in named.items() for name in some}
    wanted = roles | names | {f"extra:{name}": name for name in extra}
    keys = {role: tuple(f"{role}:{name}" for name in some) for role, some in named.items()}
    everything = frozenset(name for name in given if name in asked)
    if not (beside or is_pandas(data) or isinstance(data, Mapping)):
        frame = frame_source(data, wanted)
        return Roles(
            source=replace(frame, repeats="counts") if "counts" in roles else frame,
            sensitive_features=keys.get("sensitive_features", ()),
            strata=keys.get("strata", ()),
            roles=everything,
            clusters=keys.get("clusters", ()),
            names=names,
        )
    columns = _columns_of(data, wanted)
    if beside:
        more, more_keys, more_names = _arrays(
            {name: beside[name] for name in given if name in beside},
            {name: beside[name] for name in several if name in beside},
        )
        # A stream can be read only once.
        n_rows = {"data": len(next(iter(columns.values()))) if columns else _n_rows(data)}
        check_lengths(n_rows | {name.split(":")[-1]: len(column) for name, column in more.items()})
        columns, keys, names = columns | more, keys | more_keys, names | more_names
    return _in_memory(columns, keys, names, everything, indices_of({"data": data, **beside}))


def _why_not_in_memory(data: Any) -> str | None:
    """Return what data are whose rows are elsewhere; None of a table in memory."""
    package = type(data).__module__.partition(".")[0]
    if isinstance(data, str | Path):
        return f"the file {str(data)!r}"
    if isinstance(data, list | tuple) and all(isinstance(part, str | Path) for part in data):
        return "files"
    if package == "polars" and hasattr(data, "collect"):
        return "a LazyFrame"
    return "a frame of Spark" if package == "pyspark" else None


def _check_beside(name: str, value: Any, data: Any) -> None:
    """Refuse what is no array, and arrays beside data that are not in memory."""
    where = _why_not_in_memory(data)
    if where is not None:
        raise ArgumentTypeError(
            f"{name} is a {type(value).__name__} beside data={where}, whose rows are not in "
            "memory; accepted: the name of a column, or a frame that is (read it first)",
            argument=name,
            mentions=("data",),
        )
    if not hasattr(value, "__len__") and np.ndim(value) == 0:
        raise ArgumentTypeError(
            f"{name} is a {type(value).__name__}; with data= it is the name of a column, or an "
            "array of as many values as data have rows",
            argument=name,
            mentions=("data",),
        )


def _columns_of(data: Any, wanted: Mapping[str, str]) -> dict[str, Column]:
    """Return columns of a table in memory by their role."""
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
