"""Transport repair: find the cheapest map of a group to its counterfactual distribution.

It solves a linear program between the group's cells and the counterfactual ones, in counts of rows.
Rows that both sides of a cell share stay (which is exact if a detour never costs less). Columns
(pairs of cells) are generated as needed: those with a reduced cost below 0 at the current duals.
When there are none left, the duals prove that no map is cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, NotMeasurableError
from ..linear_programs import GrowingProgram
from .cell_map import CellMap, FeatureCells
from .cost import ChangeCost

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The most pairs of cells whose costs are in memory.
MOST_PAIRS = 20_000_000
#: Tolerance, in rows and in units of cost.
TOLERANCE = 1e-9
#: The share of rows that may remain unmatched in a stratum of immovable features.
_ROUNDING = 1e-9
#: Pairs of each cell, on either side, in the first program, and the most that a round adds.
_FIRST, _MORE = 8, 4
_MOST_ROUNDS = 1_000


@dataclass(frozen=True, eq=False)
class TransportRepair:
    """A transport repair, with the certificate that no map is cheaper."""

    cell_map: CellMap
    certificate: dict[str, float]


class TransportFlow(NamedTuple):
    """The rows moved between pairs of positions, with the dual values of both sides."""

    source: Ints
    to: Ints
    mass: Floats
    source_dual: Floats
    to_dual: Floats
    n_columns: int


def fit_transport(cells: FeatureCells, cost: ChangeCost, goal: Floats) -> TransportRepair:
    """Return the cheapest map to the masses ``goal`` of the cells, whose total is rescaled."""
    masses = goal * (cells.n_rows / float(goal.sum()))
    stays = np.minimum(cells.count, masses) if cost.is_a_metric else np.zeros(len(cells))
    (strata,) = cost.immovable_codes(cells.features)
    excess, lack = _balance(cells.count - stays, masses - stays, strata)
    source, to, mass = [], [], []
    primal = dual = violation = marginal = 0.0
    n_columns = n_moving = 0
    for stratum in np.unique(strata[excess > 0]):
        inside = strata == stratum
        left, right = (np.flatnonzero(inside & (side > 0)) for side in (excess, lack))
        if len(left) * len(right) > MOST_PAIRS:
            raise DataError(
                f"rows move from {len(left):,} cells to {len(right):,} others; accepted: at most "
                f"{MOST_PAIRS:,} pairs. Bin continuous features first, or use "
                "method='direct'.",
                argument="X",
                mentions=("method",),
            )
        prices = cost.matrix(cells.features[left], cells.features[right])
        if not np.isfinite(prices).all():
            raise DataError(
                "cost is infinite for some pairs, which method='transport' does not support. "
                "Return finite numbers, and name features that must not change in immovable=.",
                argument="cost",
                mentions=("method", "immovable"),
            )
        flow = flow_of(prices, excess[left], lack[right])
        source.append(left[flow.source])
        to.append(right[flow.to])
        mass.append(flow.mass)
        primal += float(flow.mass @ prices[flow.source, flow.to])
        dual += float(excess[left] @ flow.source_dual + lack[right] @ flow.to_dual)
        reduced = prices - flow.source_dual[:, None] - flow.to_dual[None]
        violation = max(violation, -float(reduced.min()))
        out = np.bincount(flow.source, flow.mass, len(left)) - excess[left]
        into = np.bincount(flow.to, flow.mass, len(right)) - lack[right]
        marginal = max(marginal, float(np.abs(out).max()), float(np.abs(into).max()))
        n_columns += flow.n_columns
        n_moving += len(left) * len(right)
    empty = np.zeros(0, dtype=np.int64)
    left, right = np.concatenate([empty, *source]), np.concatenate([empty, *to])
    share = np.concatenate([np.zeros(0), *mass]) / cells.count[left]
    price = _prices(cells, cost, left, right)
    cell_map = CellMap.from_moves(cells, cost, (left, right, np.clip(share, 0.0, 1.0), price))
    n = cells.n_rows
    return TransportRepair(
        cell_map,
        {
            "primal": primal / n,
            "dual": dual / n,
            "difference": (primal - dual) / n,
            "largest_violation": violation,
            "largest_marginal_error": marginal,
            "n_columns": float(n_columns),
            "n_pairs": float(n_moving),
        },
    )


def _prices(cells: FeatureCells, cost: ChangeCost, source: Ints, to: Ints) -> Floats:
    """Return the cost of each move."""
    if cost.function is None:
        difference = np.abs(cells.features[source] - cells.features[to])
        return np.asarray(difference @ cost.weights)
    return cost.matrix(cells.features, cells.features)[source, to]


def _balance(excess: Floats, lack: Floats, strata: NDArray[np.uint32]) -> tuple[Floats, Floats]:
    """Return both sides with the same total in every stratum; raise if rows cannot be moved."""
    excess, lack = np.maximum(excess, 0.0), np.maximum(lack, 0.0)
    n_strata = int(strata.max()) + 1
    left, right = (np.bincount(strata, side, n_strata) for side in (excess, lack))
    n = float(excess.sum())
    unmatched = float(np.abs(left - right).sum()) / 2
    if unmatched > _ROUNDING * max(n, 1.0) and n_strata > 1:
        raise NotMeasurableError(
            "counterfactual changes the shares of the immovable features: "
            f"{100 * unmatched / n:.2g} % of the rows to be moved have no destination with the "
            "same values. Name fewer features in immovable=, or use method='direct'.",
            argument="counterfactual",
            mentions=("immovable", "method"),
        )
    factor = np.divide(left, right, out=np.zeros(n_strata), where=right > 0)
    lack = lack * factor[strata]
    excess = np.where(factor[strata] > 0, excess, 0.0)
    return excess, lack


def flow_of(prices: Floats, excess: Floats, lack: Floats) -> TransportFlow:
    """Return the cheapest flow between two sides of the same total, by column generation."""
    n, m = prices.shape
    unit = float(np.median(prices[prices > 0])) if (prices > 0).any() else 1.0
    scaled = prices / unit
    program = GrowingProgram(np.concatenate([excess, lack[:-1]]), TOLERANCE)
    added = np.zeros((n, m), dtype=bool)
    pairs: list[Ints] = []
    new = _first_pairs(scaled, excess, lack)
    for _ in range(_MOST_ROUNDS):
        added.flat[new] = True
        pairs.append(_add(program, scaled, new))
        solution = program.solve()
        source_dual, to_dual = solution.duals[:n], np.append(solution.duals[n:], 0.0)
        reduced = scaled - source_dual[:, None] - to_dual[None]
        reduced[added] = 0.0
        new = _cheapest(reduced)
        if not len(new):
            break
    at = np.concatenate(pairs)
    used = np.flatnonzero(solution.values > 0)
    source, to = np.divmod(at[used], m)
    return TransportFlow(
        source, to, solution.values[used], source_dual * unit, to_dual * unit, len(at)
    )


def _add(program: GrowingProgram, prices: Floats, pairs: Ints) -> Ints:
    """Add the columns of pairs; return the pairs in the order of their columns.

    The constraint of the last position on the right follows from the others and is omitted.
    """
    n, m = prices.shape
    last = pairs % m == m - 1
    for added, rows in (
        (pairs[~last], np.column_stack([pairs // m, n + pairs % m])[~last]),
        (pairs[last], (pairs // m)[last, None]),
    ):
        if len(added):
            program.add(prices.ravel()[added], rows.astype(np.int32), np.ones(rows.shape))
    return np.concatenate([pairs[~last], pairs[last]])


def _first_pairs(prices: Floats, excess: Floats, lack: Floats) -> Ints:
    """Return the nearest few pairs of every cell, and those of a feasible flow."""
    n, m = prices.shape
    near_to = np.argsort(prices, axis=1, kind="stable")[:, :_FIRST]
    near_from = np.argsort(prices, axis=0, kind="stable")[:_FIRST]
    flat = [
        (np.arange(n)[:, None] * m + near_to).ravel(),
        (near_from * m + np.arange(m)[None]).ravel(),
        _feasible_flow(excess, lack),
    ]
    return np.unique(np.concatenate(flat))


def _feasible_flow(excess: Floats, lack: Floats) -> Ints:
    """Return the pairs of the flow that fills both sides in order (the northwest corner rule)."""
    ends, other = np.cumsum(excess), np.cumsum(lack)
    breaks = np.union1d(ends[:-1], other[:-1])
    middle = (np.r_[0.0, breaks] + np.r_[breaks, ends[-1]]) / 2
    source = np.minimum(np.searchsorted(ends, middle), len(excess) - 1)
    to = np.minimum(np.searchsorted(other, middle), len(lack) - 1)
    return np.asarray(source * len(lack) + to, dtype=np.int64)


def _cheapest(reduced: Floats) -> Ints:
    """Return the pairs of each row and column with the lowest reduced costs below 0."""
    n, m = reduced.shape
    k, j = min(_MORE, m), min(_MORE, n)
    by_row = np.argpartition(reduced, k - 1, axis=1)[:, :k]
    by_column = np.argpartition(reduced, j - 1, axis=0)[:j]
    flat = np.concatenate(
        [
            (np.arange(n)[:, None] * m + by_row).ravel(),
            (by_column * m + np.arange(m)[None]).ravel(),
        ]
    )
    flat = np.unique(flat)
    return flat[reduced.flat[flat] < -TOLERANCE]
