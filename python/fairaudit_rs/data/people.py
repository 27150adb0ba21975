"""Count people by group, where a weight is the number of people that a row stands for."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .labels import GroupKey
from .sums import sums_of


@dataclass(frozen=True)
class People:
    """The number of people in each group, including groups with missing values."""

    #: The sum of weights, or the number of rows, of each group.
    number: dict[GroupKey, float]
    #: The effective number of rows of each group, (sum w)^2 / sum w^2.
    n_effective: dict[GroupKey, float]

    @classmethod
    def of_rows(
        cls, groups: Sequence[GroupKey], of_row: NDArray[Any], weights: NDArray[np.float64]
    ) -> People:
        """Add up rows with weights; ``of_row`` is the index of the group of each row."""
        sums, squares = (
            sums_of(of_row, part, len(groups)) for part in (weights, weights * weights)
        )
        effective = np.divide(sums**2, squares, out=np.zeros_like(sums), where=squares > 0)
        return cls(
            dict(zip(groups, sums.tolist(), strict=True)),
            dict(zip(groups, effective.tolist(), strict=True)),
        )

    @classmethod
    def of_cells(
        cls, groups: Sequence[GroupKey], group: NDArray[Any], count: NDArray[Any]
    ) -> People:
        """Add up cells, each with its number of rows; without weights, a row is one person."""
        sizes = np.bincount(group, weights=count, minlength=len(groups)).tolist()
        number = dict(zip(groups, sizes, strict=True))
        return cls(number, number)

    @property
    def total(self) -> float:
        """The number of all people."""
        return math.fsum(self.number.values())

    def share(self, groups: Collection[GroupKey]) -> float:
        """Return the share of people in some groups."""
        inside = math.fsum(n for key, n in self.number.items() if key in groups)
        return inside / (self.total or 1)
