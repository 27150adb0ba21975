"""Counts of rows by group, label and the decisions of two models, to compare the models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .cells import Cells
from .equality import EqualByValue
from .labels import NamedCombinations


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedCounts(EqualByValue):
    """Counts of rows by group, label and the decisions of two models."""

    #: Cells that hold the groups with their sizes.
    cells: Cells
    #: Counts by group of the cells, label, decision of the first model and decision of the second
    #: model (0 or 1 each); without labels all rows have the label 0.
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
