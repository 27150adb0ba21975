"""Where a repair sends the rows of each cell (a distinct row of features), in what shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .cost import ChangeCost

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureCells:
    """Distinct rows of features of a group: how many rows each has, and its score."""

    features: Floats
    count: Floats
    score: Floats

    @property
    def n_rows(self) -> float:
        """How many rows there are in all."""
        return float(self.count.sum())

    def __len__(self) -> int:
        return len(self.count)


@dataclass(frozen=True, eq=False, kw_only=True)
class CellMap:
    """Moves between cells: from one to another, the share of its rows, the cost of one row.

    In the order of the cells; a cell without a move stays as it is, and so does the share of a
    cell that no move takes.
    """

    cells: FeatureCells
    cost: ChangeCost
    source: Ints
    to: Ints
    share: Floats
    price: Floats

    @classmethod
    def from_moves(
        cls, cells: FeatureCells, cost: ChangeCost, moves: tuple[Ints, Ints, Floats, Floats]
    ) -> CellMap:
        """Return the map of moves in any order; a share that stays is no move."""
        source, to, share, price = moves
        kept = np.flatnonzero((share > 0) & (source != to))
        kept = kept[np.lexsort((to[kept], source[kept]))]
        return cls(
            cells=cells,
            cost=cost,
            source=source[kept],
            to=to[kept],
            share=share[kept],
            price=price[kept],
        )

    def __eq__(self, other: object) -> bool:
        """Return whether another map moves the same rows to the same ones."""
        if not isinstance(other, CellMap):
            return NotImplemented
        mine, its = (
            (cell_map.cells.features, cell_map.source, cell_map.to, cell_map.share, cell_map.price)
            for cell_map in (self, other)
        )
        return all(map(np.array_equal, mine, its))

    def __hash__(self) -> int:
        return hash((len(self.source), self.cells.n_rows))

    @property
    def rows(self) -> Floats:
        """By move, how many rows it takes."""
        return np.asarray(self.cells.count[self.source] * self.share)

    @property
    def moved(self) -> float:
        """The share of all rows that move."""
        return float(self.rows.sum()) / self.cells.n_rows

    @property
    def mean_cost(self) -> float:
        """The cost of the map per row."""
        return float(self.rows @ self.price) / self.cells.n_rows

    def expected_score(self, cell: Ints, own: Floats) -> Floats:
        """Return the mean score of rows after the map; what stays keeps its own."""
        n = len(self.cells)
        leaves = np.bincount(self.source, self.share, n)
        brings = np.bincount(self.source, self.share * self.cells.score[self.to], n)
        found = own.copy()
        seen = cell >= 0
        found[seen] = (1 - leaves[cell[seen]]) * own[seen] + brings[cell[seen]]
        # Shares that add up to 1 do so but for rounding.
        return np.asarray(np.clip(found, 0.0, 1.0))

    def find(self, rows: Floats, call: _native.Call) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the cell whose way every row goes, -1 for none, and which cells were not seen.

        A row of a cell that was not seen goes the way of the nearest one that has the same of what
        must not change.
        """
        if not len(rows):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        n = len(self.cells)
        stacked = np.ascontiguousarray(np.vstack([self.cells.features, rows]))
        first, _, kind = _native.distinct_rows(stacked, call)
        cell_of = np.full(len(first), -1, dtype=np.int64)
        cell_of[kind[:n]] = np.arange(n)
        kind = kind[n:]
        seen = cell_of[kind] >= 0
        others = np.unique(kind[~seen])
        unknown = np.ascontiguousarray(stacked[first[others]])
        cell_of[others], _ = self.cost.nearest(unknown, self.cells.features, call)
        return cell_of[kind], ~seen

    def draw(self, cell: Ints, uniform: Floats) -> Ints:
        """Return where rows go, each by a number from 0 to 1 of its own; -1 where they stay."""
        n = len(self.cells)
        starts = np.searchsorted(self.source, np.arange(n + 1))
        found = np.full(len(cell), -1, dtype=np.int64)
        # Cells have one or two moves, seldom more: one pass over the rows for each.
        most = int(np.diff(starts).max(initial=0))
        reached = np.zeros(len(cell))
        for step in range(most):
            move = starts[np.maximum(cell, 0)] + step
            has = (cell >= 0) & (move < starts[np.maximum(cell, 0) + 1])
            share = np.zeros(len(cell))
            share[has] = self.share[move[has]]
            taken = has & (found < 0) & (uniform < reached + share)
            found[taken] = self.to[move[taken]]
            reached += share
        return found
