"""Indicator features, which are 1 where a column of a frame has a given value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .columns import column_array, list_some
from .labels import distinct_values


class Indicator(str):
    """The name of an indicator, with its column and value."""

    column: str
    value: Any
    #: All values that the column may have. None if it may have others, whose indicators are all 0.
    known: tuple[Any, ...] | None

    def __new__(cls, column: str, value: Any, known: tuple[Any, ...] | None) -> Indicator:
        """Make the name in the style of scikit-learn."""
        name = super().__new__(cls, f"{column}_{value}")
        name.column, name.value, name.known = column, value, known
        return name

    def __getnewargs__(self) -> tuple[str, Any, tuple[Any, ...] | None]:  # type: ignore[override]
        return self.column, self.value, self.known

    def values_in(self, column: Any) -> NDArray[np.float64]:
        """Compute the indicator from its column: 1 where the column has the value."""
        called = f"column {self.column!r} of X"
        values, place = distinct_values(column_array(called, column))
        missing = [value is None or value != value for value in values]
        unknown = np.array([*missing, True])[place]
        if unknown.any():
            raise DataError(
                f"{called} is missing in {int(unknown.sum()):,} of {len(place):,} rows; accepted: "
                "a value in every row",
                argument="X",
            )
        if self.known is not None:
            other = [value for value in values if not any(_same(value, k) for k in self.known)]
            if other:
                raise DataError(
                    f"{called} holds {list_some(other)}; accepted: values that the model was "
                    f"fitted on, which are {list_some(list(self.known))}",
                    argument="X",
                )
        return np.array([*(_same(value, self.value) for value in values), False])[place].astype(
            np.float64
        )


def _same(value: Any, other: Any) -> bool:
    """Return whether two values are equal; a text never equals a number."""
    return isinstance(value, str) == isinstance(other, str) and bool(value == other)
