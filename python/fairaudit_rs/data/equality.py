"""Equality and pickling of dataclasses that hold arrays."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


class EqualByValue:
    """A dataclass that compares by its fields, entry by entry; NaN equals NaN.

    Only fields are pickled: other attributes are caches, some of them native objects.
    """

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            are_equal(mine, theirs)
            for mine, theirs in zip(_compared_fields(self), _compared_fields(other), strict=True)
        )

    def __getstate__(self) -> dict[str, Any]:
        assert is_dataclass(self)
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def __hash__(self) -> int:
        return hash(
            (type(self), *(name for name in _compared_fields(self) if isinstance(name, str | int)))
        )


def _compared_fields(value: Any) -> list[Any]:
    assert is_dataclass(value)
    return [getattr(value, entry.name) for entry in fields(value) if entry.compare]


def are_equal(a: Any, b: Any) -> bool:
    """Return whether two values are equal; arrays and sequences are compared entry by entry."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and _same_array(a, b)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(are_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(are_equal(a[key], b[key]) for key in a)
    if hasattr(a, "equals") and type(a) is type(b):
        # Polars and pandas columns.
        return bool(a.equals(b))
    return bool(a == b) or (a != a and b != b)


def _same_array(a: Any, b: Any) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
