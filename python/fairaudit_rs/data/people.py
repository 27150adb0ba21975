"""People by group: a weight is how many people a row stands for."""

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
    """The people of each group, also of unknown ones."""

    #: Sums of weights, or numbers of rows.
    number: dict[GroupKey, float]
    #: How many rows of equal weight the rows of each group are worth, (sum w)^2 / sum w^2.
    n_effective: dict[GroupKey, float]

    @classmethod
    def of_rows(
        cls, groups: Sequence[GroupKey], of_row: NDArray[Any], weights: NDArray[np.float64]
    ) -> People:
        """Add up rows that have weights; ``of_row`` is the place of each among the groups."""
        sums, squares = (
            sums_of(of_row, part, len(groups)) for part in (weights, weights * weights)
        )
        worth = np.divide(sums**2, squares, out=np.zeros_like(sums), where=squares > 0)
        return cls(
            dict(zip(groups, sums.tolist(), strict=True)),
            dict(zip(groups, worth.tolist(), strict=True)),
        )

    @classmethod
    def of_cells(
        cls, groups: Sequence[GroupKey], group: NDArray[Any], count: NDArray[Any]
    ) -> People:
        """Add up rows that have no weights."""
        sizes = np.bincount(group, weights=count, minlength=len(groups)).tolist()
        number = dict(zip(groups, sizes, strict=True))
        return cls(number, number)

    @property
    def total(self) -> float:
        """All people."""
        return math.fsum(self.number.values())

    def share(self, groups: Collection[GroupKey]) -> float:
        """Return the share of all people who are in some groups."""
        inside = math.fsum(n for key, n in self.number.items() if key in groups)
        return inside / (self.total or 1)
