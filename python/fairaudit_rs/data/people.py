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
    n_people: dict[GroupKey, float]
    #: The effective number of rows of each group, (sum w)^2 / sum w^2.
    n_effective: dict[GroupKey, float]

    @classmethod
    def from_rows(
        cls, groups: Sequence[GroupKey], group_of_row: NDArray[Any], weights: NDArray[np.float64]
    ) -> People:
        """Add up rows with weights; ``of_row`` is the index of the group of each row."""
        sums, squares = (
            sums_of(group_of_row, part, len(groups)) for part in (weights, weights * weights)
        )
        effective = np.divide(sums**2, squares, out=np.zeros_like(sums), where=squares > 0)
        return cls(
            dict(zip(groups, sums.tolist(), strict=True)),
            dict(zip(groups, effective.tolist(), strict=True)),
        )

    @classmethod
    def from_cells(
        cls, groups: Sequence[GroupKey], cell_group: NDArray[Any], cell_count: NDArray[Any]
    ) -> People:
        """Add up cells, each with its number of rows; without weights, a row is one person."""
        sizes = np.bincount(cell_group, weights=cell_count, minlength=len(groups)).tolist()
        n_people = dict(zip(groups, sizes, strict=True))
        return cls(n_people, n_people)

    @property
    def total(self) -> float:
        """The number of all people."""
        return math.fsum(self.n_people.values())

    def share(self, groups: Collection[GroupKey]) -> float:
        """Return the share of people in some groups."""
        inside = math.fsum(n for key, n in self.n_people.items() if key in groups)
        return inside / (self.total or 1)
