"""Find the cheapest plan of moves that satisfies all criteria, with its certificate.

The native module solves groups whose rates must become equal. Other criteria are solved by linear
programs: over a few breakpoints of the cost curve of each cell, refined around the solution, or
over the rows themselves if almost all rows differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native, linear_programs
from ..data.equality import EqualByValue

#: Breakpoints of each cell in the first program, and those added around each solution.
_POINTS = 33
#: The relative duality gap at which the search ends: that of rounding.
_RELATIVE_GAP = 1e-12
_MOST_ROUNDS = 60
#: Smaller fractions of a row are rounding.
_LEAST_FRACTION = 1e-12
NO_PLAN = "no change of the decisions of rows with a finite distance makes all criteria hold"

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginRows(EqualByValue):
    """The rows for the native module; the cell of a row is ``2 * unit + decision``.

    The arrays are read-only.
    """

    distance: Array
    cell: NDArray[np.uint16]
    weight: Array | None
    n_cells: int

    def __post_init__(self) -> None:
        for name in ("distance", "cell", "weight"):
            values = getattr(self, name)
            if values is not None:
                view = np.ascontiguousarray(values).view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    def __len__(self) -> int:
        return len(self.distance)

    def native(self, call: _native.Call) -> _native.ProjectionRows:
        """Return the rows, checked and counted by cell."""
        return _native.ProjectionRows(
            self.distance, self.cell, self.n_cells, call, weight=self.weight
        )

    def doubled(self) -> MarginRows:
        """Return every row twice, once with each decision, at half its weight."""
        weight = np.ones(len(self)) if self.weight is None else self.weight
        return MarginRows(
            distance=np.concatenate([self.distance] * 2),
            cell=np.concatenate([self.cell & ~np.uint16(1), self.cell | np.uint16(1)]),
            weight=0.5 * np.concatenate([weight] * 2),
            n_cells=self.n_cells,
        )


@dataclass(frozen=True, kw_only=True)
class TransportPlan:
    """The rows that move, the fraction of each, and the certificate of the cost."""

    rows: NDArray[np.int64]
    fraction: Array
    primal: float
    dual: float
    residual: float
    #: Why no plan exists; then no row moves, and the cost is infinite.
    refusal: str | None = None

    @classmethod
    def none(cls, reason: str) -> TransportPlan:
        """Return the empty plan for criteria that no move can satisfy."""
        return cls(
            rows=np.zeros(0, dtype=np.int64),
            fraction=np.zeros(0),
            primal=math.inf,
            dual=math.inf,
            residual=math.nan,
            refusal=reason,
        )

    @classmethod
    def from_native(cls, plan: _native.Plan) -> TransportPlan:
        """Return a plan of the native module."""
        return cls(
            rows=plan.rows,
            fraction=plan.fraction,
            primal=plan.primal,
            dual=plan.dual,
            residual=plan.residual,
        )


@dataclass(frozen=True)
class CellCosts:
    """The cost of moving mass out of each cell, whose rows all have the same gains."""

    gains: Array
    curves: _native.CellCurves
    cells: list[int]
    call: _native.Call

    @classmethod
    def from_rows(cls, rows: _native.ProjectionRows, gains: Array, call: _native.Call) -> CellCosts:
        """Sort the rows of the cells with gains; others cannot contribute."""
        used = (gains != 0).any(axis=1)
        curves = rows.curves(used.tolist(), call)
        cells = [int(cell) for cell in np.flatnonzero(used) if curves.rows(int(cell))]
        return cls(gains, curves, cells, call)

    def cheapest(self, low: Array, high: Array) -> TransportPlan:
        """Return the cheapest plan with ``low <= sum of gains * mass moved <= high``."""
        # Most of the solution lies near the boundary.
        share = np.linspace(0, 1, _POINTS) ** 2
        ranks = {
            cell: np.unique(np.rint(share * self.curves.rows(cell)).astype(int))
            for cell in self.cells
        }
        best, dual = (np.inf, np.zeros(len(self.gains))), -np.inf
        for _ in range(_MOST_ROUNDS):
            program = _Program.make(self.curves, ranks)
            solution = linear_programs.solve_program(
                program.price, program.matrix(self.gains), low, high, program.mass
            )
            if solution is None:
                return TransportPlan.none(NO_PLAN)
            masses = np.zeros(len(self.gains))
            np.add.at(masses, program.cell, solution.values)
            prices = self.gains @ solution.duals
            loss = self.curves.conjugate(prices.tolist())
            dual = max(dual, _dual_value(solution.duals, low, high) - loss)
            cost = self.curves.cost(masses.tolist())
            if cost < best[0]:
                best = cost, masses
            if best[0] - dual <= _RELATIVE_GAP * best[0]:
                break
            finer = {
                cell: _refined(self.curves, cell, ranks[cell], masses[cell], prices[cell])
                for cell in self.cells
            }
            if all(len(finer[cell]) == len(ranks[cell]) for cell in self.cells):
                break
            ranks = finer
        reached = self.gains.T @ best[1]
        return replace(
            TransportPlan.from_native(self.curves.take(best[1].tolist(), self.call)),
            dual=dual,
            residual=float(np.maximum(np.maximum(low - reached, reached - high), 0.0).max()),
        )


@dataclass(frozen=True)
class _Program:
    """The segments between breakpoints: the cell, the mass and the mean price of each."""

    cell: NDArray[np.int64]
    mass: Array
    price: Array

    @classmethod
    def make(cls, curves: _native.CellCurves, ranks: dict[int, NDArray[Any]]) -> _Program:
        cell, mass, price = [], [], []
        for at, points in ranks.items():
            curve = curves.points(at, points.tolist())
            # If masses differ by many orders of magnitude, adding one may not change the sum.
            step = np.diff(curve.mass)
            grows = step > 0
            cell.append(np.full(int(grows.sum()), at))
            mass.append(step[grows])
            price.append(np.diff(curve.cost)[grows] / step[grows])
        if not cell:
            return cls(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
        return cls(np.concatenate(cell), np.concatenate(mass), np.concatenate(price))

    def matrix(self, gains: Array) -> Array:
        return np.ascontiguousarray(gains[self.cell].T)


def _refined(
    curves: _native.CellCurves, cell: int, ranks: NDArray[Any], mass: float, price: float
) -> NDArray[Any]:
    """Return the breakpoints of a cell, with more of them near the solution and its price."""
    masses = curves.points(cell, ranks.tolist()).mass
    at = int(np.searchsorted(masses, mass))
    priced = curves.ranks(cell, float(price))
    priced_ranks = [priced.below, priced.up_to]
    places = {min(at, len(ranks) - 1), max(at - 1, 0), min(at + 1, len(ranks) - 1)}
    places |= {int(np.searchsorted(ranks, rank)) for rank in priced_ranks}
    new = [np.array(priced_ranks)]
    for place in places:
        first, last = ranks[max(place - 1, 0)], ranks[min(place, len(ranks) - 1)]
        if last - first > 1:
            new.append(np.rint(np.linspace(first, last, _POINTS)).astype(int))
    return np.unique(np.concatenate([ranks, *new]))


def _dual_value(duals: Array, low: Array, high: Array) -> float:
    """Return the contribution of the constraint bounds to the dual value."""
    bound = np.where(duals > 0, low, high)
    # The dual of an infinite bound is 0.
    return float(np.sum(duals[duals != 0] * bound[duals != 0]))


def by_rows(rows: MarginRows, gains: Array, low: Array, high: Array) -> TransportPlan:
    """Return the cheapest plan if every row has its own gains."""
    weight = np.ones(len(gains)) if rows.weight is None else rows.weight
    free = (gains != 0).any(axis=1) & np.isfinite(rows.distance) & (weight > 0)
    at = np.flatnonzero(free)
    cost, matrix = rows.distance[at], np.ascontiguousarray(gains[at].T)
    solution = linear_programs.solve_program(cost, matrix, low, high, weight[at])
    if solution is None:
        return TransportPlan.none(NO_PLAN)
    loss = np.maximum(matrix.T @ solution.duals - cost, 0.0) @ weight[at]
    reached = matrix @ solution.values
    miss = np.maximum(np.maximum(low - reached, reached - high), 0.0).max()
    moved = solution.values > _LEAST_FRACTION * weight[at]
    primal = float(cost @ solution.values)
    return TransportPlan(
        rows=at[moved],
        fraction=(solution.values / weight[at])[moved],
        primal=primal,
        dual=_dual_value(solution.duals, low, high) - float(loss),
        residual=float(miss),
    )


def by_one_criterion(
    rows: _native.ProjectionRows, gains: Array, low: float, high: float, call: _native.Call
) -> TransportPlan:
    """Return the cheapest plan for a single criterion, with a gain for every row."""
    target, sign = (low, 1.0) if low > 0 else (-high, -1.0) if high < 0 else (0.0, 1.0)
    plan = rows.select(sign * gains, target, call)
    if isinstance(plan, _native.Unreachable):
        return TransportPlan.none(NO_PLAN)
    return TransportPlan.from_native(plan)
