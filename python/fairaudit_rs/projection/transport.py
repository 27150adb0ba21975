"""Who moves: the cheapest plan that makes all criteria hold, with its certificate.

Groups whose rates must become equal are solved in the core. Criteria that mix the cells in any
other way go through linear programs: over a few breakpoints of every cell's costs, refined around
the solution, or over the rows themselves when hardly two of them are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native, linear_programs

#: Breakpoints of each cell in the first program, and added around the solution of each.
_POINTS = 33
#: The certificate is as good as rounding lets it be.
_RELATIVE_GAP = 1e-12
_MOST_ROUNDS = 60
_NOTHING = 1e-12

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MarginRows:
    """Rows as the native module reads them; the cell is ``2 * unit + decision``."""

    distance: Array
    cell: NDArray[np.uint16]
    weight: Array | None

    @property
    def native(self) -> tuple[Any, Any, Any]:
        """The columns as an argument."""
        return self.distance, self.cell, self.weight

    def of_unit(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the units of all rows; rows that take no part get those of 0."""
        unit = self.cell >> 1
        return values[np.where(unit < len(values), unit, 0)]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The rows that move, the fraction of each, and the certificate of the cost."""

    rows: NDArray[np.int64]
    fraction: Array
    primal: float
    dual: float
    residual: float

    @classmethod
    def of_native(cls, parts: tuple[Any, ...]) -> Plan:
        """Return the plan that the native module made."""
        rows, fraction, primal, dual, residual, _ = parts
        return cls(
            rows=rows.astype(np.int64),
            fraction=fraction,
            primal=primal,
            dual=dual,
            residual=residual,
        )


@dataclass(frozen=True)
class CellCosts:
    """What it costs to move mass out of every cell, all of whose rows have the same gains."""

    gains: Array
    curves: Any
    cells: list[int]
    call: _native.Call

    @classmethod
    def of(cls, columns: MarginRows, gains: Array, call: _native.Call) -> CellCosts:
        """Sort the rows of the cells that help; a cell without gains stays."""
        used = (gains != 0).any(axis=1)
        curves = _native.CellCurves(columns.native, used.tolist(), call)
        cells = [int(cell) for cell in np.flatnonzero(used) if curves.rows(int(cell))]
        return cls(gains, curves, cells, call)

    def cheapest(self, low: Array, high: Array) -> Plan | None:
        """Return the cheapest plan with ``low <= sum of gains * mass moved <= high``.

        None when there is none.
        """
        # Most of the solution lies near the boundary.
        share = np.linspace(0, 1, _POINTS) ** 2
        ranks = {
            cell: np.unique(np.rint(share * self.curves.rows(cell)).astype(int))
            for cell in self.cells
        }
        best, dual = (np.inf, np.zeros(len(self.gains))), -np.inf
        for _ in range(_MOST_ROUNDS):
            program = _Program.make(self.curves, ranks)
            solution = linear_programs.solve(
                program.price, program.matrix(self.gains), low, high, program.mass
            )
            if solution is None:
                return None
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
        rows, fraction, primal, *_ = self.curves.take(best[1].tolist(), self.call)
        reached = self.gains.T @ best[1]
        residual = float(np.maximum(np.maximum(low - reached, reached - high), 0.0).max())
        return Plan(
            rows=rows.astype(np.int64),
            fraction=fraction,
            primal=primal,
            dual=dual,
            residual=residual,
        )


@dataclass(frozen=True)
class _Program:
    """The segments between breakpoints: the cell, the mass and the mean price of each."""

    cell: NDArray[np.int64]
    mass: Array
    price: Array

    @classmethod
    def make(cls, curves: Any, ranks: dict[int, NDArray[Any]]) -> _Program:
        cell, mass, price = [], [], []
        for at, points in ranks.items():
            masses, costs = map(np.array, curves.points(at, points.tolist()))
            # Where masses differ by many orders of magnitude, a sum may not grow.
            step = np.diff(masses)
            grows = step > 0
            cell.append(np.full(int(grows.sum()), at))
            mass.append(step[grows])
            price.append(np.diff(costs)[grows] / step[grows])
        if not cell:
            return cls(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
        return cls(np.concatenate(cell), np.concatenate(mass), np.concatenate(price))

    def matrix(self, gains: Array) -> Array:
        return np.ascontiguousarray(gains[self.cell].T)


def _refined(
    curves: Any, cell: int, ranks: NDArray[Any], mass: float, price: float
) -> NDArray[Any]:
    """Return the ranks of a cell with more of them where the solution and its price lie."""
    masses, _ = curves.points(cell, ranks.tolist())
    at = int(np.searchsorted(masses, mass))
    wanted = [*curves.ranks(cell, float(price))]
    places = {min(at, len(ranks) - 1), max(at - 1, 0), min(at + 1, len(ranks) - 1)}
    places |= {int(np.searchsorted(ranks, rank)) for rank in wanted}
    new = [np.array(wanted)]
    for place in places:
        first, last = ranks[max(place - 1, 0)], ranks[min(place, len(ranks) - 1)]
        if last - first > 1:
            new.append(np.rint(np.linspace(first, last, _POINTS)).astype(int))
    return np.unique(np.concatenate([ranks, *new]))


def _dual_value(duals: Array, low: Array, high: Array) -> float:
    """Return the part of the dual program's value that belongs to the bounds of the rows."""
    bound = np.where(duals > 0, low, high)
    # An infinite bound has no price.
    return float(np.sum(duals[duals != 0] * bound[duals != 0]))


def by_rows(
    columns: MarginRows, gains: Array, low: Array, high: Array, call: _native.Call
) -> Plan | None:
    """Return the cheapest plan of rows that each have their own gains; None when there is none."""
    weight = np.ones(len(gains)) if columns.weight is None else columns.weight
    if gains.shape[1] == 1:
        return _one_criterion(columns, gains[:, 0], float(low[0]), float(high[0]), call)
    free = (gains != 0).any(axis=1) & np.isfinite(columns.distance) & (weight > 0)
    rows = np.flatnonzero(free)
    cost, matrix = columns.distance[rows], np.ascontiguousarray(gains[rows].T)
    solution = linear_programs.solve(cost, matrix, low, high, weight[rows])
    if solution is None:
        return None
    loss = np.maximum(matrix.T @ solution.duals - cost, 0.0) @ weight[rows]
    reached = matrix @ solution.values
    miss = np.maximum(np.maximum(low - reached, reached - high), 0.0).max()
    moved = solution.values > _NOTHING * weight[rows]
    primal = float(cost @ solution.values)
    return Plan(
        rows=rows[moved],
        fraction=(solution.values / weight[rows])[moved],
        primal=primal,
        dual=_dual_value(solution.duals, low, high) - float(loss),
        residual=float(miss),
    )


def _one_criterion(
    columns: MarginRows, gains: Array, low: float, high: float, call: _native.Call
) -> Plan | None:
    target, sign = (low, 1.0) if low > 0 else (-high, -1.0) if high < 0 else (0.0, 1.0)
    plan, _ = _native.project_gains(columns.native, sign * gains, target, call)
    return None if plan is None else Plan.of_native(plan)
