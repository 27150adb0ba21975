"""Indicators: features that are 1 where a column of a frame has one of its values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .columns import column_array, list_some
from .labels import distinct_values


class Indicator(str):
    """The name of an indicator, with the column and the value that it stands for."""

    column: str
    value: Any
    #: All values that the column may have; None where others have no indicator.
    known: tuple[Any, ...] | None

    def __new__(cls, column: str, value: Any, known: tuple[Any, ...] | None) -> Indicator:
        """Return the name, as scikit-learn makes it."""
        level = super().__new__(cls, f"{column}_{value}")
        level.column, level.value, level.known = column, value, known
        return level

    def __getnewargs__(self) -> tuple[str, Any, tuple[Any, ...] | None]:  # type: ignore[override]
        return self.column, self.value, self.known

    def from_column(self, column: Any) -> NDArray[np.float64]:
        """Return the indicator of a column: 1 where it has the value."""
        called = f"column {self.column!r} of X"
        values, place = distinct_values(column_array(called, column))
        missing = [value is None or value != value for value in values]
        unknown = np.array([*missing, True])[place]
        if unknown.any():
            raise DataError(
                f"{called} is missing in {int(unknown.sum()):,} of {len(place):,} rows; accepted: "
                "a value in every row, as the model knows them"
            )
        if self.known is not None:
            other = [value for value in values if not any(_same(value, k) for k in self.known)]
            if other:
                raise DataError(
                    f"{called} holds {list_some(other)}, which the model was not "
                    f"fitted on; it knows "
                    f"{list_some(list(self.known))}"
                )
        return np.array([*(_same(value, self.value) for value in values), False])[place].astype(
            np.float64
        )


def _same(value: Any, other: Any) -> bool:
    return isinstance(value, str) == isinstance(other, str) and bool(value == other)
