"""Fill missing numbers for regressions, and add an indicator of missingness as a feature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import Column, EncodedColumn
from ..data.equality import EqualByValue
from ..report.notes import Note

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MissingNumbers(EqualByValue):
    """The columns that have missing numbers, each with the name of its indicator feature."""

    #: The name of the indicator, by column.
    indicator: Mapping[str, str] = field(default_factory=dict)
    n_missing: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, Column]
    ) -> tuple[MissingNumbers, dict[str, Column]]:
        """Return the missing numbers, and the columns filled and with indicators.

        A missing number becomes the mean of the column, or the more frequent of two values. The
        choice does not change regressions that include the indicator, nor the rows that a model
        gets.
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
            indicator_name = f"{name} is missing"
            while indicator_name in columns:
                indicator_name = f"({indicator_name})"
            indicator[name], n_missing[name] = indicator_name, int(gap.sum())
            filled[name] = np.where(gap, _fill_value(values[~gap]), values)
            filled[indicator_name] = gap
        return cls(indicator, n_missing), filled

    def restored(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the original columns, with missing numbers and without indicators."""
        indicators = set(self.indicator.values())
        original = {name: column for name, column in columns.items() if name not in indicators}
        for name, indicator_name in self.indicator.items():
            gap = np.asarray(columns[indicator_name], dtype=bool)
            original[name] = np.where(gap, np.nan, original[name].astype(np.float64))
        return original

    def column_of(self, feature: str) -> str:
        """Return the column of a feature; for an indicator, the column that it is about."""
        return next(
            (name for name, indicator in self.indicator.items() if indicator == feature), feature
        )

    def notes(self) -> list[Note]:
        """Return a note on each column with missing numbers."""
        return [
            Note(
                "missing-numbers-filled",
                f"{name} is missing in {n:,} rows: regressions take its usual value there, and "
                f"{self.indicator[name]!r} is a feature of its own",
                (name,),
            )
            for name, n in self.n_missing.items()
        ]


def _numbers(column: Column) -> Floats | None:
    """Return numbers with NaN for missing values; None for text and booleans."""
    if not isinstance(column, EncodedColumn):
        return column.astype(np.float64) if column.dtype.kind == "f" else None
    try:
        table = np.array([*(float(value) for value in column.labels), np.nan])
    except (TypeError, ValueError):
        return None
    is_text = bool(len(column.labels)) and isinstance(column.labels[0], str)
    return None if is_text else table[column.codes]


def _fill_value(known: Floats) -> float:
    """Return the mean, or the more frequent of two values; 0 if no value is known."""
    if not len(known):
        return 0.0
    distinct, counts = np.unique(known, return_counts=True)
    return float(distinct[counts.argmax()] if len(distinct) <= 2 else known.mean())
