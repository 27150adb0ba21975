"""Where a flow moved the rows, and the audit value on their way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.equality import Value

Floats = NDArray[np.float64]

#: Rows that are moved at a time.
_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class Attack:
    """Where a linear flow moved the rows: x_T = x_0 + sum_k moved_k part_k."""

    rows: Floats
    #: By part and row.
    moved: Floats
    #: For each eigenvalue of the metric and each score, the part of the coefficients.
    parts: Floats
    feature_names: tuple[str, ...] | None

    def __eq__(self, other: object) -> bool:
        """Return whether another flow moved its rows as far, whatever their features are called."""
        return isinstance(other, Attack) and np.array_equal(self.moved, other.moved, equal_nan=True)

    def __hash__(self) -> int:
        return hash(self.moved.shape)

    def end(self, chosen: Any = slice(None), columns: Any = slice(None)) -> Floats:
        """Return x_T of some rows, in some features."""
        attacked = np.array(self.rows[chosen][:, columns], dtype=np.float64)
        moved = self.moved[:, chosen]
        # A block of rows at a time: what is added to all of them would be as large as they are.
        for first in range(0, len(attacked), _BLOCK):
            rows = slice(first, first + _BLOCK)
            for along, part in zip(moved[:, rows], self.parts[:, columns], strict=True):
                attacked[rows] += along[:, None] * part
        return attacked

    def feature(self, rows: slice, column: int) -> Floats:
        """Return x_T of a range of rows in one feature, as `end` does."""
        attacked = np.array(self.rows[rows, column], dtype=np.float64)
        for along, part in zip(self.moved[:, rows], self.parts[:, column], strict=True):
            attacked += along * part
        return attacked


@dataclass(frozen=True, eq=False)
class StoredAttack:
    """Where a flow moved the rows, kept as it is."""

    rows: Floats
    moved: Floats
    feature_names: tuple[str, ...] | None

    def __eq__(self, other: object) -> bool:
        """Return whether another flow moved its rows as far, whatever their features are called."""
        return isinstance(other, StoredAttack) and np.array_equal(
            self.moved, other.moved, equal_nan=True
        )

    def __hash__(self) -> int:
        return hash(self.moved.shape)

    def end(self, chosen: Any = slice(None), columns: Any = slice(None)) -> Floats:
        """Return x_T of some rows, in some features."""
        return np.array(self.moved[chosen][:, columns], dtype=np.float64)

    def feature(self, rows: slice, column: int) -> Floats:
        """Return x_T of a range of rows in one feature."""
        return np.array(self.moved[rows, column], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class FlowPath(Value):
    """The audit value along the flow: after each of some steps.

    Attributes
    ----------
    step : ndarray of int
        Numbers of steps.
    time : ndarray
        The time reached: the sum of the lengths of the steps.
    estimate : ndarray
        S_n.
    lower_bound : ndarray
        T_n; from the normal law with ``interval="bootstrap-t"``.
    """

    step: NDArray[np.int64]
    time: Floats
    estimate: Floats
    lower_bound: Floats

    def __len__(self) -> int:
        return len(self.step)
