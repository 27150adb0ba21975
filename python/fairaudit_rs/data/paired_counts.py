"""Rows that two models decide: counts by group, label and both decisions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .cells import Cells
from .equality import Value
from .labels import NamedCombinations


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedCounts(Value):
    """Counts of rows that two models decide."""

    #: Groups with their sizes.
    cells: Cells
    #: By group of the cells, label, decision of the first and of the second model (0 or 1 each);
    #: without labels all rows have the label 0.
    counts: NDArray[np.int64]

    @classmethod
    def from_combinations(
        cls,
        cells: Cells,
        named: NamedCombinations,
        group: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> PairedCounts:
        """Add up combinations of groups, labels and decisions."""
        label = np.maximum(named.y_true, 0)
        table = np.zeros((len(cells.groups), 2, 2, 2), dtype=np.int64)
        np.add.at(
            table, (group, label, named.decisions["first"], named.decisions["second"]), counts
        )
        return cls(cells=cells, counts=table)
