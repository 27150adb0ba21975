"""The map of a repair: the destinations of the rows of each cell (a distinct feature row)."""

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
    """The distinct feature rows of a group, with the number of rows and the score of each."""

    features: Floats
    count: Floats
    score: Floats

    @property
    def n_rows(self) -> float:
        """The total number of rows."""
        return float(self.count.sum())

    def __len__(self) -> int:
        return len(self.count)


@dataclass(frozen=True, eq=False, kw_only=True)
class CellMap:
    """Moves from one cell to another, with the share of its rows and the cost per row.

    Sorted by source cell. Rows that no move takes keep their features.
    """

    cells: FeatureCells
    cost: ChangeCost
    source: Ints
    to: Ints
    share: Floats
    row_cost: Floats

    @classmethod
    def from_moves(
        cls, cells: FeatureCells, cost: ChangeCost, moves: tuple[Ints, Ints, Floats, Floats]
    ) -> CellMap:
        """Return the map of moves in any order; moves of a cell to itself are dropped."""
        source, to, share, row_cost = moves
        kept = np.flatnonzero((share > 0) & (source != to))
        kept = kept[np.lexsort((to[kept], source[kept]))]
        return cls(
            cells=cells,
            cost=cost,
            source=source[kept],
            to=to[kept],
            share=share[kept],
            row_cost=row_cost[kept],
        )

    def __eq__(self, other: object) -> bool:
        """Return whether another map moves the same rows to the same ones."""
        if not isinstance(other, CellMap):
            return NotImplemented
        mine, its = (
            (
                cell_map.cells.features,
                cell_map.source,
                cell_map.to,
                cell_map.share,
                cell_map.row_cost,
            )
            for cell_map in (self, other)
        )
        return all(map(np.array_equal, mine, its))

    def __hash__(self) -> int:
        return hash((len(self.source), self.cells.n_rows))

    @property
    def rows(self) -> Floats:
        """The number of rows of each move."""
        return np.asarray(self.cells.count[self.source] * self.share)

    @property
    def moved(self) -> float:
        """The share of all rows that move."""
        return float(self.rows.sum()) / self.cells.n_rows

    @property
    def mean_cost(self) -> float:
        """The mean cost per row, including rows that do not move."""
        return float(self.rows @ self.row_cost) / self.cells.n_rows

    def expected_score(self, cell: Ints, own: Floats) -> Floats:
        """Return the expected scores of rows after the map; rows that stay keep their own."""
        n = len(self.cells)
        leaves = np.bincount(self.source, self.share, n)
        brings = np.bincount(self.source, self.share * self.cells.score[self.to], n)
        score = own.copy()
        known = cell >= 0
        score[known] = (1 - leaves[cell[known]]) * own[known] + brings[cell[known]]
        # The shares of a cell add up to 1 only up to rounding.
        return np.asarray(np.clip(score, 0.0, 1.0))

    def find(self, rows: Floats, call: _native.Call) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the cell of every row (-1 for none), and which rows have new features.

        A row with new features gets the nearest cell with the same immovable features.
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
        """Return the destination of every row, drawn by its uniform number; -1 if it stays."""
        n = len(self.cells)
        starts = np.searchsorted(self.source, np.arange(n + 1))
        destination = np.full(len(cell), -1, dtype=np.int64)
        # Most cells have one or two moves, so a pass over the rows per move is cheap.
        most = int(np.diff(starts).max(initial=0))
        reached = np.zeros(len(cell))
        for step in range(most):
            move = starts[np.maximum(cell, 0)] + step
            has = (cell >= 0) & (move < starts[np.maximum(cell, 0) + 1])
            share = np.zeros(len(cell))
            share[has] = self.share[move[has]]
            taken = has & (destination < 0) & (uniform < reached + share)
            destination[taken] = self.to[move[taken]]
            reached += share
        return destination
