"""The results of a flow: where it moved the rows, and the audit value at each recorded step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.equality import EqualByValue

Floats = NDArray[np.float64]

#: Number of rows that are moved together.
_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class Attack:
    """The end points of a linear flow: x_T = x_0 + sum_k moved_k part_k."""

    rows: Floats
    #: The coefficients moved_k, by part and row.
    moved: Floats
    #: The projected coefficients part_k, for each eigenvalue of the metric and each score.
    parts: Floats
    feature_names: tuple[str, ...] | None

    def __eq__(self, other: object) -> bool:
        """Return whether another flow moved its rows by the same amounts; names may differ."""
        return isinstance(other, Attack) and np.array_equal(self.moved, other.moved, equal_nan=True)

    def __hash__(self) -> int:
        return hash(self.moved.shape)

    def end(self, chosen: Any = slice(None), columns: Any = slice(None)) -> Floats:
        """Return x_T for some rows and features."""
        attacked = np.array(self.rows[chosen][:, columns], dtype=np.float64)
        moved = self.moved[:, chosen]
        # In blocks of rows, because the terms of the sum are as large as the rows themselves.
        for first in range(0, len(attacked), _BLOCK):
            rows = slice(first, first + _BLOCK)
            for along, part in zip(moved[:, rows], self.parts[:, columns], strict=True):
                attacked[rows] += along[:, None] * part
        return attacked

    def feature(self, rows: slice, column: int) -> Floats:
        """Return x_T for a range of rows and one feature, equal to that of `end`."""
        attacked = np.array(self.rows[rows, column], dtype=np.float64)
        for along, part in zip(self.moved[:, rows], self.parts[:, column], strict=True):
            attacked += along * part
        return attacked


@dataclass(frozen=True, eq=False)
class StoredAttack:
    """The end points of a flow, stored as an array."""

    rows: Floats
    moved: Floats
    feature_names: tuple[str, ...] | None

    def __eq__(self, other: object) -> bool:
        """Return whether another flow moved its rows by the same amounts; names may differ."""
        return isinstance(other, StoredAttack) and np.array_equal(
            self.moved, other.moved, equal_nan=True
        )

    def __hash__(self) -> int:
        return hash(self.moved.shape)

    def end(self, chosen: Any = slice(None), columns: Any = slice(None)) -> Floats:
        """Return x_T for some rows and features."""
        return np.array(self.moved[chosen][:, columns], dtype=np.float64)

    def feature(self, rows: slice, column: int) -> Floats:
        """Return x_T for a range of rows and one feature."""
        return np.array(self.moved[rows, column], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class FlowPath(EqualByValue):
    """The audit value along the flow, after each recorded step.

    Attributes
    ----------
    step : ndarray of int
        Number of steps taken.
    time : ndarray
        Time of the flow: the sum of the lengths of the steps.
    estimate : ndarray
        The audit value S_n.
    lower_bound : ndarray
        The lower bound T_n; by the normal law with ``interval="bootstrap-t"``.
    """

    step: NDArray[np.int64]
    time: Floats
    estimate: Floats
    lower_bound: Floats

    def __len__(self) -> int:
        return len(self.step)
