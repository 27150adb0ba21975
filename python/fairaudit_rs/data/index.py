"""Read pandas indices: labels of rows, and whether two columns have the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .columns import argument_of, is_pandas

#: Number of index labels that a message shows.
_SHOWN = 3


def index_of(value: Any) -> Any:
    """Return the index of a pandas series or frame, an index itself, or None for other values."""
    if not is_pandas(value):
        return None
    # A series or a frame, or an index itself.
    return value.index if hasattr(value, "iloc") else value if hasattr(value, "nlevels") else None


def indices_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the indices of all series and frames among, or inside of, some arguments."""
    indices_by_name: dict[str, Any] = {}
    for name, value in arguments.items():
        parts = {name: value}
        if isinstance(value, Mapping):
            parts = {f"{name} {part!r}": column for part, column in value.items()}
        elif isinstance(value, list | tuple) and any(map(is_pandas, value)):
            parts = {f"{name} {i + 1}": column for i, column in enumerate(value)}
        indices = {part: index_of(column) for part, column in parts.items()}
        indices_by_name |= {part: index for part, index in indices.items() if index is not None}
    return indices_by_name


def check_indices(indices: Mapping[str, Any]) -> Any:
    """Return the common index, or None if there is none; raise if indices differ."""
    if not indices:
        return None
    (name, first), *others = indices.items()
    for other, index in others:
        if index is not first and not index.equals(first):
            _refuse(name, first, other, index)
    return first


def rows_by_label(index: Any, rows: NDArray[Any]) -> NDArray[Any] | None:
    """Return the index labels of some rows; None if the labels are the positions."""
    if index is None or _is_plain(index):
        return None
    labels = index.take(rows)
    if labels.nlevels == 1 and isinstance(labels.dtype, np.dtype) and labels.dtype.kind in "iuf":
        return np.asarray(labels)
    # An object array keeps the tuples of a multi-index as single labels.
    array = np.empty(len(labels), dtype=object)
    array[:] = [label if isinstance(label, str | int) else _text(label) for label in labels]
    return array


def _text(label: Any) -> Any:
    return " & ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _is_plain(index: Any) -> bool:
    """Return whether an index is the default one of pandas, whose labels are the positions."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _refuse(name: str, first: Any, other: str, index: Any) -> None:
    if len(first) != len(index):
        return  # `check_lengths` reports this with the lengths of all columns.
    disordered = first.is_unique and index.is_unique and first.isin(index).all()
    how = "the same labels in another order" if disordered else "other labels"
    raise DataError(
        f"the indices of {name} and {other} differ: {_shown(first)} and {_shown(index)}, {how}. "
        "Bring both into one order with .reindex(...), or pass .to_numpy() if rows belong together "
        "by position.",
        argument=argument_of(name),
        mentions=(argument_of(other),),
    )


def _shown(index: Any) -> str:
    labels = ", ".join(str(label) for label in index[:_SHOWN])
    return f"({labels}{', ...' if len(index) > _SHOWN else ''})"
