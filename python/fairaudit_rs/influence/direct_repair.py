"""Direct repair: find the cheapest randomised map between cells with an expected gap of 0.

Rows keep their own labels, so the gap is linear in the map: a row of cell x that is sent to x' adds
v(x, x') = alpha(x) f(x') + beta(x) to it, with f the scores and h = P(Y = 1 | x). Only the lower
convex envelope of (f(x'), cost) matters for each cell. One Lagrange multiplier decides how far
every cell moves along its envelope; segments that tie with it are randomised. A floor for the mean
score adds a second multiplier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from .. import _native, linear_programs
from ..errors import ArgumentError, DataError, NotMeasurableError
from ..report.words import number
from .cell_map import CellMap, FeatureCells
from .cost import MAX_CELLS_WITH_COST_FUNCTION, ChangeCost
from .rates import N_TERMS, Measure, terms_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The most cells, because all pairs of them are examined.
MOST_CELLS = 200_000
#: Prices within this relative distance are ties, and their segments are randomised together.
_TIE = 1e-12
#: A gap of fewer rows than this is taken as 0.
_LEFT = 1e-9
_MOST_ROUNDS = 100


@dataclass(frozen=True, eq=False, kw_only=True)
class GapTarget:
    """The gap to close: the measure of the group minus that of the others."""

    measure: Measure
    #: The rates of the others.
    others: tuple[float, ...]
    #: P(Y = 1 | x) of each cell.
    label: Floats

    def check(self) -> None:
        """Raise if the gap is not linear in the map."""
        if len(self.measure.rates) > 1:
            moving = [rate.name for rate in self.measure.rates if _moves(rate.denominator)]
            if moving:
                raise ArgumentError(
                    f"method='direct' cannot repair the metric {self.measure.name}, because the "
                    f"repair changes the denominator of {moving[0]}. Use a single rate, or a sum "
                    f"without {moving[0]}.",
                    argument="method",
                    mentions=("metric",),
                )

    @property
    def has_moving_denominator(self) -> bool:
        """Return whether the map changes a denominator: then scores of 0 would close the gap."""
        return any(_moves(rate.denominator) for rate in self.measure.rates)

    def coefficients(self, count: Floats) -> tuple[Floats, Floats]:
        """Return alpha and beta by cell."""
        sides = np.zeros(N_TERMS)
        pairs = zip(self.measure.rates, self.measure.weights, self.others, strict=True)
        for rate, weight, other in pairs:
            numerator = np.array(rate.numerator, float)
            denominator = np.array(rate.denominator, float)
            scale = 1.0
            if len(self.measure.rates) > 1:
                total = float(count @ (denominator[0] + denominator[1] * self.label))
                scale = weight / total * count.sum()
            sides += scale * (numerator - other * denominator)
        return sides[2] + sides[3] * self.label, sides[0] + sides[1] * self.label

    def gap(self, count: Floats, score: Floats) -> float:
        """Return the gap at these mean scores by cell; NaN if a rate is undefined."""
        sums = count @ terms_of(self.label, score)
        gap = 0.0
        pairs = zip(self.measure.rates, self.measure.weights, self.others, strict=True)
        for rate, weight, other in pairs:
            denominator = float(np.array(rate.denominator) @ sums)
            numerator = float(np.array(rate.numerator) @ sums)
            gap += weight * (numerator / denominator - other) if denominator > 0 else np.nan
        return gap


def _moves(denominator: tuple[float, ...]) -> bool:
    return denominator[2] != 0 or denominator[3] != 0


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopeSegments:
    """The segments of the envelopes, each from a vertex to the next one further from the cell."""

    cell: Ints
    #: The cells at both ends, and the cost of moving a row there.
    start: Ints
    end: Ints
    start_price: Floats
    end_price: Floats
    #: The change of the score and of the cost along the segment.
    change: Floats
    price: Floats

    @classmethod
    def from_cells(
        cls, cells: FeatureCells, cost: ChangeCost, call: _native.Call
    ) -> EnvelopeSegments:
        """Return the segments of all cells, those of a cell adjacent and the nearest first."""
        starts, to, price = _envelopes(cells, cost, call)
        owner = np.repeat(np.arange(len(cells)), np.diff(starts))
        place = np.arange(len(to))
        own = place[to == owner]
        # One step away from the cell, towards it.
        inwards = np.sign(own[owner] - place)
        order = np.lexsort((np.abs(own[owner] - place), inwards, owner))
        order = order[inwards[order] != 0]
        before = order + inwards[order]
        return cls(
            cell=owner[order],
            start=to[before],
            end=to[order],
            start_price=price[before],
            end_price=price[order],
            change=cells.score[to[order]] - cells.score[to[before]],
            price=price[order] - price[before],
        )


def _envelopes(
    cells: FeatureCells, cost: ChangeCost, call: _native.Call
) -> tuple[Ints, Ints, Floats]:
    if cost.function is None:
        (strata,) = cost.immovable_codes(cells.features)
        weights = cost.weights.tolist()
        starts, to, price = _native.repair_envelopes(
            cells.features, strata, weights, cells.score, call
        )
        return starts.astype(np.int64), to.astype(np.int64), price
    matrix = _matrix(cells, cost)
    envelopes = [_envelope(cells.score, row, place) for place, row in enumerate(matrix)]
    owner = np.repeat(np.arange(len(cells)), [len(envelope) for envelope in envelopes])
    vertices = np.concatenate(envelopes)
    ends = np.searchsorted(owner, np.arange(len(cells) + 1)).astype(np.int64)
    return ends, vertices, np.asarray(matrix[owner, vertices])


def _matrix(cells: FeatureCells, cost: ChangeCost) -> Floats:
    matrix = cost.matrix(cells.features, cells.features)
    if matrix.diagonal().any():
        raise DataError(
            "cost returned a number other than 0 for a row that does not change. Return 0 for "
            "these.",
            argument="cost",
        )
    return matrix


def _envelope(score: Floats, cost: Floats, own: int) -> Ints:
    """Return the vertices of the lower convex envelope of (score, cost), by score."""
    sides = []
    for sign in (-1.0, 1.0):
        away = sign * (score - score[own])
        outside = np.flatnonzero((away > 0) & np.isfinite(cost))
        hull = [own]
        for place in outside[np.lexsort((cost[outside], away[outside]))].tolist():
            while len(hull) > 1 and _is_above(away, cost, hull[-2], hull[-1], place):
                hull.pop()
            if away[place] > away[hull[-1]]:
                hull.append(place)
        sides.append(hull[1:])
    return np.array([*sides[0][::-1], own, *sides[1]], dtype=np.int64)


def _is_above(away: Floats, cost: Floats, first: int, middle: int, last: int) -> bool:
    chord = (cost[last] - cost[first]) * (away[middle] - away[first])
    return bool((cost[middle] - cost[first]) * (away[last] - away[first]) >= chord)


@dataclass(frozen=True, eq=False)
class DirectRepair:
    """A direct repair, with the certificate that no map is cheaper."""

    cell_map: CellMap
    certificate: dict[str, float]


def fit_direct(
    cells: FeatureCells,
    cost: ChangeCost,
    target: GapTarget,
    floor: float | None,
    call: _native.Call,
) -> DirectRepair:
    """Return the cheapest map with a gap of 0 under the fitted h and a mean score above the floor.

    Raises NotMeasurableError when there is none.
    """
    most = MOST_CELLS if cost.function is None else MAX_CELLS_WITH_COST_FUNCTION
    if len(cells) > most:
        raise DataError(
            f"X has {len(cells):,} distinct rows of the target group in the fit part; accepted: "
            f"at most {most:,}. Bin continuous features first.",
            argument="X",
        )
    segments = EnvelopeSegments.from_cells(cells, cost, call)
    slope, level = target.coefficients(cells.count)
    taken, price = _one_multiplier(cells, segments, slope, level, target, floor)
    cell_map = _map_of(cells, cost, segments, taken)
    score = cell_map.expected_score(np.arange(len(cells)), cells.score)
    if floor is not None and float(cells.count @ score) < (floor - 1e-12) * cells.n_rows:
        taken, multipliers = _two_multipliers(cells, segments, slope, level, target, floor)
        cell_map = _map_of(cells, cost, segments, taken)
        score = cell_map.expected_score(np.arange(len(cells)), cells.score)
    else:
        multipliers = (price, 0.0)
    after = target.gap(cells.count, score)
    if np.isnan(after):
        raise NotMeasurableError(
            f"by the fitted P(Y = 1 | X), no row of the target group is in a denominator of "
            f"{target.measure.name}. Pass a nuisance= that predicts both labels.",
            argument="nuisance",
        )
    first, second = multipliers
    reduced = _reduced(cells, cost, first * slope - second, call)
    dual = float(cells.count @ (reduced + first * level)) / cells.n_rows
    dual += second * (floor or 0.0)
    return DirectRepair(
        cell_map,
        {
            "primal": cell_map.mean_cost,
            "dual": dual,
            "difference": cell_map.mean_cost - dual,
            "multiplier": first,
            "floor_multiplier": second,
            "expected_gap": after,
            "mean_score": float(cells.count @ score) / cells.n_rows,
        },
    )


def _reduced(cells: FeatureCells, cost: ChangeCost, slope: Floats, call: _native.Call) -> Floats:
    """Return the minimum of cost + slope * score over all destinations, for each cell."""
    if cost.function is not None:
        matrix = _matrix(cells, cost)
        return np.asarray((matrix + slope[:, None] * cells.score[None]).min(axis=1))
    (strata,) = cost.immovable_codes(cells.features)
    weights = cost.weights.tolist()
    return _native.repair_reduced_costs(cells.features, strata, weights, cells.score, slope, call)


def _one_multiplier(
    cells: FeatureCells,
    segments: EnvelopeSegments,
    slope: Floats,
    level: Floats,
    target: GapTarget,
    floor: float | None,
) -> tuple[Floats, float]:
    """Return the share of each segment that is taken, the cheapest first, and the multiplier."""
    count = cells.count
    need = float(count @ (slope * cells.score + level))
    side = 1.0 if need >= 0 else -1.0
    gain = -side * count[segments.cell] * slope[segments.cell] * segments.change
    taken = np.zeros(len(gain))
    if abs(need) <= _LEFT:
        return taken, 0.0
    useful = np.flatnonzero(gain > 0)
    price = count[segments.cell[useful]] * segments.price[useful] / gain[useful]
    order = np.argsort(price, kind="stable")
    useful, price = useful[order], price[order]
    reached = np.cumsum(gain[useful])
    if not len(useful) or reached[-1] < abs(need) - _LEFT:
        _refuse(cells, segments, target, floor)
    last = price[min(int(np.searchsorted(reached, abs(need))), len(useful) - 1)]
    before = useful[price < last * (1 - _TIE)]
    at = useful[(price >= last * (1 - _TIE)) & (price <= last * (1 + _TIE))]
    taken[before] = 1.0
    taken[at] = np.clip((abs(need) - gain[before].sum()) / gain[at].sum(), 0.0, 1.0)
    return taken, side * float(last)


def _refuse(
    cells: FeatureCells, segments: EnvelopeSegments, target: GapTarget, floor: float | None
) -> NoReturn:
    """Raise an error that names the smallest gap that can be reached."""
    before = target.gap(cells.count, cells.score)
    after = target.gap(cells.count, _nearest(cells, segments, target, floor))
    above = "" if floor is None else f" with a mean score of at least {number(floor)}"
    raise NotMeasurableError(
        f"a gap of 0 cannot be reached{above}: the gap is {number(before)}, and at best "
        f"{number(after)} after a repair. Name fewer features in immovable=, lower floor=, or "
        "use another metric.",
        argument="immovable",
        mentions=("floor", "metric"),
    )


def _nearest(
    cells: FeatureCells, segments: EnvelopeSegments, target: GapTarget, floor: float | None
) -> Floats:
    """Return the scores with the smallest gap, when no map closes it.

    Each cell moves to the better end of its envelope at the current rate, until the rate no longer
    changes (Dinkelbach). A floor then raises the scores that increase the gap least.
    """
    n, count = len(cells), cells.count
    down, up = np.minimum(segments.change, 0.0), np.maximum(segments.change, 0.0)
    low, high = (cells.score + np.bincount(segments.cell, side, n) for side in (down, up))
    single = len(target.measure.rates) == 1
    weight = target.measure.weights[0] if single else 1.0
    gap = target.gap(count, cells.score) / weight
    sign, best = (1.0 if gap >= 0 else -1.0), cells.score
    if floor is not None and count @ best < floor * count.sum():
        best, gap = high, target.gap(count, high) / weight
    for _ in range(_MOST_ROUNDS):
        shift = gap if single else 0.0
        now = replace(target, others=tuple(other + shift for other in target.others))
        slope = sign * now.coefficients(count)[0]
        score = np.where(slope > 0, low, np.where(slope < 0, high, cells.score))
        if floor is not None:
            score = _lifted(count, score, high, slope, floor)
        after = target.gap(count, score) / weight
        if not sign * after < sign * gap - 1e-14:
            break
        best, gap = score, after
    return best


def _lifted(count: Floats, score: Floats, high: Floats, price: Floats, floor: float) -> Floats:
    """Return scores raised to a mean of at least the floor, or as far as possible."""
    need = floor * float(count.sum()) - float(count @ score)
    order = np.argsort(price, kind="stable")
    room = (count * (high - score))[order]
    before = np.cumsum(room) - room
    share = np.clip(np.divide(need - before, room, out=np.zeros(len(room)), where=room > 0), 0, 1)
    lifted = score.copy()
    lifted[order] += share * (high - score)[order]
    return lifted


def _two_multipliers(
    cells: FeatureCells,
    segments: EnvelopeSegments,
    slope: Floats,
    level: Floats,
    target: GapTarget,
    floor: float,
) -> tuple[Floats, tuple[float, float]]:
    """Return the same with a mean score at the floor, by a linear program over the segments."""
    count = cells.count
    weight = count[segments.cell] * segments.change
    matrix = np.vstack([slope[segments.cell] * weight, weight])
    need = float(count @ (slope * cells.score + level))
    lowest = floor * cells.n_rows - float(count @ cells.score)
    low, high = np.array([-need, lowest]), np.array([-need, np.inf])
    price = count[segments.cell] * segments.price
    whole = np.ones(len(price))
    solution = linear_programs.solve_program(price, matrix, low, high, whole)
    if solution is None:
        _refuse(cells, segments, target, floor)
    return solution.values, (-float(solution.duals[0]), float(solution.duals[1]))


def _map_of(
    cells: FeatureCells, cost: ChangeCost, segments: EnvelopeSegments, taken: Floats
) -> CellMap:
    """Return the map that takes these shares of the segments."""
    # For each cell and vertex: the share that arrives minus the share that continues.
    cell = np.concatenate([segments.cell, segments.cell])
    place = np.concatenate([segments.end, segments.start])
    price = np.concatenate([segments.end_price, segments.start_price])
    share = np.concatenate([taken, -taken])
    key = cell * len(cells) + place
    keys, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    shares = np.bincount(inverse, share, len(keys))
    shares[np.abs(shares) < 1e-15] = 0.0
    return CellMap.from_moves(
        cells, cost, (cell[first], place[first], np.clip(shares, 0.0, 1.0), price[first])
    )
