"""Compute the criteria of a projection: gaps, their covariance, and the curvature of the cost.

Criteria of groups have one value per unit (a group and a label), so apart from a few sums over rows
everything is small. Criteria of a user's `Notion` have a value for every row. Objects are
immutable; their copy in the native module is created on demand and not pickled.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import EqualByValue
from ..data.groups import attribute_name, group_name
from ..inference.proportions import SampleProportion
from ..inference.pvalues import upper_tail
from .criteria import CriteriaTolerance, CriterionDescription, Curvature, RateCriterion, by_unit
from .exchange import ExchangeTest, GapTest, RowGaps, UnitGaps
from .notions import Notion, NotionValues
from .transport import CellCosts, MarginRows, TransportPlan, by_one_criterion, by_rows

Array = NDArray[np.float64]
#: The test is repeated at these multiples of the requested bandwidth.
BANDWIDTHS = (0.5, 1.0, 2.0)
#: The most distinct values of user criteria that are solved by cells; with more, row by row.
_MOST_CELLS = 4_096


@dataclass(frozen=True, eq=False, kw_only=True)
class Criteria(EqualByValue, ABC):
    """The criteria and their rows."""

    rows: MarginRows
    n_threads: int | None

    @cached_property
    def call(self) -> _native.Call:
        """The call options of the native module."""
        return _native.Call(self.n_threads)

    @cached_property
    def native(self) -> _native.ProjectionRows:
        """The rows in the native module, which checks distances and weights."""
        return self.rows.native(self.call)

    @cached_property
    def tally(self) -> _native.Tally:
        """The counts and weights of the rows of every cell."""
        return self.native.tally

    @abstractmethod
    def describe(self, j: int) -> CriterionDescription:
        """Return the description of a criterion."""

    @property
    def unit_label(self) -> NDArray[np.int64]:
        """The label of every unit, -1 if labels are not used."""
        return np.full(self.rows.n_cells // 2, -1)

    @cached_property
    def n_rows(self) -> int:
        """The number of eligible rows."""
        return int(self.tally.rows.sum())

    @cached_property
    def weight(self) -> float:
        """The sum of the weights of eligible rows."""
        return float(self.tally.weight.sum())

    @property
    @abstractmethod
    def gap(self) -> Array:
        """The observed value of each criterion."""

    @property
    @abstractmethod
    def covariance(self) -> Array:
        """Sigma: the covariance of sqrt(N) times the estimated criteria."""

    @abstractmethod
    def curvature(self, bandwidth: float) -> Curvature:
        """Return the matrix S, from the density of the margins near the boundary."""

    @abstractmethod
    def project(self, tolerance: CriteriaTolerance, gap: Array | None = None) -> TransportPlan:
        """Return the cheapest plan, or why there is none; costs are weighted sums.

        The plan removes ``gap``, by default the observed gaps.
        """

    @abstractmethod
    def both_sides(self) -> Self:
        """Return the criteria with every row on both sides of the boundary, at half weight."""

    @abstractmethod
    def exchange(self, tolerance: CriteriaTolerance) -> ExchangeTest:
        """Return the test whose replicates permute the decisions."""

    def cost(self, tolerance: CriteriaTolerance, gap: Array) -> float:
        """Return the cost of removing a gap; infinite if that is impossible."""
        return self.project(tolerance, gap).primal * self.n_rows / self.weight

    def _change(self, tolerance: CriteriaTolerance, gap: Array | None) -> tuple[Array, Array]:
        """Return the smallest and largest changes of the criteria that make them fair."""
        observed = self.gap if gap is None else gap
        wide = tolerance.widened()
        return wide.low - observed, wide.high - observed

    @abstractmethod
    def affordable(self, costs: Array) -> Array:
        """Return the largest change of each criterion, up and down, for a cost: (criteria, 2)."""

    @abstractmethod
    def fewest_decisions(self) -> tuple[float, str]:
        """Return the fewest rows of one decision expected behind any rate, and a text for them.

        The numbers are those expected under equal rates: the observed ones depend on the gap, and
        checking them first would change the level of the test.
        """

    @abstractmethod
    def contributing_cells(self) -> NDArray[np.bool_]:
        """Return which cells contribute to any criterion."""

    def distinct_margins(self, bandwidth: float, enough: int) -> _native.DistinctMargins:
        """Return the number of distinct margins within a bandwidth, and of their rows."""
        cut = np.where(self.contributing_cells(), bandwidth, -1.0)
        return self.native.distinct_margins(cut, enough, self.call)

    def predicted_sizes(self, curvature: Curvature, level: float) -> list[float]:
        """Return the size of the test of each single criterion if these rows were the population.

        The limit law assumes that a gap g costs N g^2 / (2 S). Here the gaps in both directions at
        which the exact cost reaches the critical value are computed; the size is the probability
        of larger gaps by chance. It is close to ``level`` if the law fits, larger if fewer rows lie
        near the boundary than the kernel estimates, and 0 if rows move at no cost.
        """
        variances = np.diag(self.covariance)
        quantile = _native.normal_quantile(1 - level / 2) ** 2
        critical = quantile * variances / (2 * np.diag(curvature.matrix))
        sizes = []
        for variance, changes in zip(variances, self.affordable(critical), strict=True):
            error = math.sqrt(variance / self.n_rows)
            reached = [float(change) / error for change in changes] if error else []
            sizes.append(sum(upper_tail(z) for z in reached) if reached else level)
        return sizes

    def bandwidth(self) -> float:
        """Return 1.06 sd N^(-1/5) of the signed margins; NaN if they do not vary."""
        spread = self.native.spread(self.call)
        n, deviation = spread.rows, spread.standard_deviation
        width = 1.06 * deviation * n ** (-0.2) if n > 1 else math.nan
        return width if width > 0 else math.nan


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitCriteria(Criteria):
    """Criteria of groups, with one value per unit."""

    criteria: tuple[RateCriterion, ...]
    #: The label of every unit, -1 if labels are not used.
    labels: NDArray[np.int64]
    #: For each block of groups whose rates only move together: its units (the reference first) and
    #: its criteria. None: the criteria mix the units in other ways.
    blocks: list[tuple[list[int], list[int]]] | None
    #: Names of the sensitive features.
    features: tuple[str, ...]

    def name_of(self, criterion: RateCriterion, group: Any) -> str:
        """Return the name of a group of a criterion, with its attribute."""
        return group_name(group, criterion.attribute or attribute_name(self.features))

    @property
    def unit_label(self) -> NDArray[np.int64]:
        """The label of every unit."""
        return self.labels

    @cached_property
    def _sides(self) -> tuple[Array, Array]:
        """Masks of the units on the first and the second side of every criterion."""
        first = np.stack([criterion.of_first for criterion in self.criteria], axis=1)
        second = np.stack([criterion.of_second for criterion in self.criteria], axis=1)
        return first.astype(np.float64), second.astype(np.float64)

    @cached_property
    def sizes(self) -> tuple[Array, Array]:
        """The weights behind the rates of the first and the second sides."""
        unit = by_unit(self.tally.weight)
        first, second = (unit @ side for side in self._sides)
        return first, second

    @cached_property
    def rates(self) -> tuple[Array, Array]:
        """The rates of the first and the second sides of all criteria."""
        positive = self.tally.weight[1::2]
        first, second = (
            positive @ side / size for side, size in zip(self._sides, self.sizes, strict=True)
        )
        return first, second

    def describe(self, j: int) -> CriterionDescription:
        """Return the two sides with their rates."""
        criterion = self.criteria[j]
        first, second = (float(rate[j]) for rate in self.rates)
        shares = None
        if self.rows.weight is None:
            of_first, of_second = (float(size[j]) for size in self.sizes)
            shares = SampleProportion(first, of_first), SampleProportion(second, of_second)
        return CriterionDescription(
            criterion.metric,
            criterion.attribute,
            criterion.first,
            criterion.second,
            (first, second),
            (-1.0, 1.0),
            shares,
        )

    @property
    def gap(self) -> Array:
        """The gaps of the rates."""
        first, second = self.rates
        return np.asarray(first - second)

    @cached_property
    def phi(self) -> Array:
        """The values of phi by unit and criterion."""
        first, second = (side / size for side, size in zip(self._sides, self.sizes, strict=True))
        return np.asarray(self.weight * (first - second))

    @cached_property
    def covariance(self) -> Array:
        """Sigma, from the residuals of the rates, which are equal within a cell."""
        n = self.n_rows
        total = np.zeros((len(self.criteria),) * 2)
        for decision in (0, 1):
            of_first, of_second = (
                side * (decision - rate) / size
                for side, rate, size in zip(self._sides, self.rates, self.sizes, strict=True)
            )
            influence = self.weight * (of_first - of_second)
            square = self.tally.square[decision::2] * (n / self.weight) ** 2
            total += influence.T @ (square[:, None] * influence)
        return np.asarray(total / max(n - 1, 1))

    def curvature(self, bandwidth: float) -> Curvature:
        """Return S from the kernel sums of the units."""
        used: list[bool] = list(map(bool, (self.phi != 0).any(axis=1)))
        windows = self.native.windows(used, bandwidth, self.call)
        # The law scales weights to mean 1, so that their sum is the number of rows.
        density = windows.density / self.weight
        matrices = tuple(self.phi.T @ (density[:, [i]] * self.phi) for i in range(len(BANDWIDTHS)))
        with np.errstate(invalid="ignore"):
            effective = (windows.mass @ self.phi**2) ** 2 / (windows.square @ self.phi**4)
        return Curvature(bandwidth, matrices, np.nan_to_num(effective))  # type: ignore[arg-type]

    def project(self, tolerance: CriteriaTolerance, gap: Array | None = None) -> TransportPlan:
        """Solve blocks of groups by their common rate, other criteria by cells."""
        if self.blocks is None or gap is not None:
            return self._curves.cheapest(*self._change(tolerance, gap))
        plan = self.native.project(_native_blocks(self.blocks, tolerance), self.call)
        if isinstance(plan, _native.Unreachable):
            return TransportPlan.none(self._reachable(*self.blocks[plan.block]))
        return TransportPlan.from_native(plan)

    @cached_property
    def _gains(self) -> Array:
        """Return the change of the criteria from moving each cell."""
        gains = np.repeat(self.phi / self.weight, 2, axis=0)
        gains[1::2] *= -1
        return gains

    @cached_property
    def _curves(self) -> CellCosts:
        return CellCosts.from_rows(self.native, self._gains, self.call)

    def both_sides(self) -> Self:
        """Return criteria in which both cells of a unit have all of its rows."""
        return replace(self, rows=self.rows.doubled(), blocks=None)

    def exchange(self, tolerance: CriteriaTolerance) -> ExchangeTest:
        """Return the native test for blocks of groups, or one that projects gap by gap."""
        if self.blocks is not None:
            return self.native.exchange(_native_blocks(self.blocks, tolerance), self.call)
        gaps = UnitGaps(rows=self.tally.rows, unit_label=self.labels, phi=self.phi)
        return GapTest(self.gap, gaps, partial(self.both_sides().cost, tolerance))

    def _reachable(self, units: list[int], at: list[int]) -> str:
        """Return a text with the range of rates that each group of a block can reach."""
        criteria, tally = [self.criteria[j] for j in at], self.tally
        base = self.name_of(criteria[0], criteria[0].second)
        names = [base, *(self.name_of(criterion, criterion.first) for criterion in criteria)]
        weight = by_unit(tally.weight)
        reach = []
        for name, unit in zip(names, units, strict=True):
            positive = tally.weight[2 * unit + 1]
            low = (positive - tally.finite_weight[2 * unit + 1]) / weight[unit]
            high = (positive + tally.finite_weight[2 * unit]) / weight[unit]
            reach.append(f"{name!r} from {low:.3g} to {high:.3g}")
        return (
            f"the {criteria[0].metric} of {', '.join(reach[:10])} is all that can be reached by "
            "rows with a finite distance"
        )

    def affordable(self, costs: Array) -> Array:
        """Spend the cost on the cheapest rows of the contributing units."""
        gains = np.ascontiguousarray(self._gains.T)
        return self.native.affordable(gains, costs * self.weight / self.n_rows, self.call)

    def contributing_cells(self) -> NDArray[np.bool_]:
        """Return the cells of units with a nonzero phi."""
        return np.repeat((self.phi != 0).any(axis=1), 2)

    def fewest_decisions(self) -> tuple[float, str]:
        """Compute the expected rows of each decision on each side of every criterion."""
        expected = []
        sizes = [by_unit(self.tally.rows) @ side for side in self._sides]
        for decision in (0, 1):
            decided = sum(self.tally.rows[decision::2] @ side for side in self._sides)
            for at, size in enumerate(sizes):
                rows = decided / sum(sizes) * size
                j = int(np.argmin(rows))
                criterion = self.criteria[j]
                name = criterion.second if at else criterion.first
                kind = {1: " with a positive label", 0: " with a negative label", None: ""}
                who = self.name_of(criterion, name)
                where = f"decided {decision}{kind[criterion.label]} in {who!r}"
                expected.append((float(rows[j]), where))
        return min(expected)


def _native_blocks(
    blocks: list[tuple[list[int], list[int]]], tolerance: CriteriaTolerance
) -> list[tuple[list[int], list[float], list[float]]]:
    """Return blocks with their tolerances, in the form of the native module."""
    wide = tolerance.widened()
    return [
        (units, [0.0, *(-wide.low[at]).tolist()], [0.0, *wide.high[at].tolist()])
        for units, at in blocks
    ]


@dataclass(frozen=True, eq=False, kw_only=True)
class RowCriteria(Criteria):
    """Criteria of a user's `Notion`, with values for every row. The units are the groups."""

    notion: Notion
    values: NotionValues
    #: Decisions are permuted within strata; None: among all rows.
    stratum: NDArray[np.uint32] | None = None

    @property
    def _row_weight(self) -> Array:
        """Weights with mean 1."""
        n = len(self.rows)
        weight = self.rows.weight
        return np.ones(n) if weight is None else weight * (n / self.weight)

    def describe(self, j: int) -> CriterionDescription:
        """Return the name of the criterion in the notion."""
        return CriterionDescription(self.values.names[j])

    @property
    def gap(self) -> Array:
        """The observed value of each criterion."""
        return self.values.gap

    @cached_property
    def covariance(self) -> Array:
        """Sigma, from the linearised criteria of the rows."""
        return self._covariance_of(self.values)

    def _covariance_of(self, values: NotionValues) -> Array:
        weight = self._row_weight[:, None]
        centred = values.influence - np.average(values.influence, axis=0, weights=weight[:, 0])
        terms = weight * centred
        return np.asarray(terms.T @ terms / max(len(terms) - 1, 1))

    def curvature(self, bandwidth: float) -> Curvature:
        """Return S from kernel sums over the rows."""
        phi, n = self.values.phi, len(self.rows)
        squares = (self.rows.distance / bandwidth) ** 2
        matrices = []
        for factor in BANDWIDTHS:
            kernel = np.exp(-squares / (2 * factor**2)) / math.sqrt(2 * math.pi)
            kernel *= self._row_weight
            matrices.append(phi.T @ (kernel[:, None] * phi) / (n * factor * bandwidth))
            if factor == 1.0:
                terms = kernel[:, None] * phi**2
        with np.errstate(invalid="ignore"):
            effective = terms.sum(axis=0) ** 2 / (terms**2).sum(axis=0)
        return Curvature(bandwidth, tuple(matrices), np.nan_to_num(effective))  # type: ignore[arg-type]

    @cached_property
    def _gains(self) -> Array:
        """Return the change of the criteria from moving each row."""
        sign = np.where(self.rows.cell & 1, -1.0, 1.0)[:, None]
        return np.asarray(sign * self.values.phi / self.weight)

    @cached_property
    def _curves(self) -> CellCosts | None:
        """The costs by distinct value of phi; None if there are too many."""
        distinct, cell = np.unique(self._gains, axis=0, return_inverse=True)
        if len(distinct) > min(_MOST_CELLS, len(self._gains) // 4):
            return None
        kinds = cell.ravel().astype(np.uint16)
        rows = replace(self.rows, cell=kinds, n_cells=len(distinct))
        return CellCosts.from_rows(rows.native(self.call), distinct, self.call)

    def project(self, tolerance: CriteriaTolerance, gap: Array | None = None) -> TransportPlan:
        """Solve by cells if phi has few distinct values, else row by row."""
        low, high = self._change(tolerance, gap)
        gains = self._gains
        if gains.shape[1] == 1:
            bounds = float(low[0]), float(high[0])
            return by_one_criterion(self.native, gains[:, 0], *bounds, self.call)
        if self._curves is not None:
            return self._curves.cheapest(low, high)
        return by_rows(self.rows, gains, low, high)

    def both_sides(self) -> Self:
        """Return criteria in which every row can move in both directions."""
        values = self.values
        twice = NotionValues(
            np.concatenate([values.phi] * 2),
            np.concatenate([values.influence] * 2),
            values.gap,
            values.names,
        )
        return replace(self, rows=self.rows.doubled(), values=twice)

    def exchange(self, tolerance: CriteriaTolerance) -> ExchangeTest:
        """Return a test that evaluates the notion at permuted decisions."""
        gaps = RowGaps(
            notion=self.notion,
            decisions=self.rows.cell & np.uint16(1),
            stratum=self.stratum,
            covariance=self.covariance,
            covariance_of=self._covariance_of,
        )
        return GapTest(self.gap, gaps, partial(self.both_sides().cost, tolerance))

    def affordable(self, costs: Array) -> Array:
        """Spend the cost on the cheapest contributing rows."""
        gains, budgets = np.ascontiguousarray(self._gains.T), costs * self.weight / self.n_rows
        return self.native.affordable(gains, budgets, self.call, by_row=True)

    def contributing_cells(self) -> NDArray[np.bool_]:
        """Return all cells, because phi differs from row to row."""
        return np.ones(self.rows.n_cells, dtype=bool)

    def fewest_decisions(self) -> tuple[float, str]:
        """Count the rows of each decision."""
        rows = self.tally.rows
        return min((float(rows[decision::2].sum()), f"decided {decision}") for decision in (0, 1))
