"""Numbers that are missing: filled for regressions, with an indicator of the gap as a feature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import Column, EncodedColumn
from ..data.equality import Value

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MissingNumbers(Value):
    """Columns of numbers with gaps, by name: the name of the indicator."""

    indicator: Mapping[str, str] = field(default_factory=dict)
    n_missing: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, Column]
    ) -> tuple[MissingNumbers, dict[str, Column]]:
        """Return the gaps of some columns, and the columns without them.

        A gap becomes the mean of the column, of two values the more frequent one. What is filled in
        changes no regression that knows the indicator, and no row that a model gets.
        """
        indicator: dict[str, str] = {}
        n_missing: dict[str, int] = {}
        filled: dict[str, Column] = {}
        for name, column in columns.items():
            values = _numbers(column)
            gap = None if values is None else np.isnan(values)
            if values is None or gap is None or not gap.any():
                filled[name] = column
                continue
            called = f"{name} is missing"
            while called in columns:
                called = f"({called})"
            indicator[name], n_missing[name] = called, int(gap.sum())
            filled[name] = np.where(gap, _usual(values[~gap]), values)
            filled[called] = gap
        return cls(indicator, n_missing), filled

    def restored(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return columns as they were given, with their gaps and without indicators."""
        own = set(self.indicator.values())
        found = {name: column for name, column in columns.items() if name not in own}
        for name, called in self.indicator.items():
            gap = np.asarray(columns[called], dtype=bool)
            found[name] = np.where(gap, np.nan, found[name].astype(np.float64))
        return found

    def column_of(self, feature: str) -> str:
        """Return the column that a feature is about."""
        return next(
            (name for name, indicator in self.indicator.items() if indicator == feature), feature
        )

    def told(self) -> list[str]:
        """Say which columns have gaps, and what became of them."""
        return [
            f"{name} is missing in {n:,} rows: regressions take its usual value there, and "
            f"{self.indicator[name]!r} is a feature of its own"
            for name, n in self.n_missing.items()
        ]


def _numbers(column: Column) -> Floats | None:
    """Return numbers with NaN for gaps; None for text and truth."""
    if not isinstance(column, EncodedColumn):
        return column.astype(np.float64) if column.dtype.kind == "f" else None
    try:
        table = np.array([*(float(value) for value in column.labels), np.nan])
    except (TypeError, ValueError):
        return None
    is_text = bool(len(column.labels)) and isinstance(column.labels[0], str)
    return None if is_text else table[column.codes]


def _usual(known: Floats) -> float:
    """Return the mean, of two values the more frequent one; 0 of no value."""
    if not len(known):
        return 0.0
    distinct, counts = np.unique(known, return_counts=True)
    return float(distinct[counts.argmax()] if len(distinct) <= 2 else known.mean())
