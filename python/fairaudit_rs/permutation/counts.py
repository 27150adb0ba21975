"""Compares groups by counts: confusion counts, score bins and joint criteria."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.cells import Cells
from ..data.labels import GroupKey
from ..inference import mover
from ..inference.homogeneity import Homogeneity, breslow_day, permuted_homogeneity
from ..inference.intervals import Bootstrap, Interval, Pair
from ..inference.mantel_haenszel import WithinStrata, keep_shared_strata
from ..inference.proportions import SampleProportion
from ..inference.pvalues import two_sided_normal_quantile
from ..metrics.family import RowClasses
from ..metrics.metric import Metric
from ..metrics.row_values import fewer_of_labels
from ..report.notes import Note
from .formulas import FormulaMethod, MantelHaenszelMethod
from .labelled_problem import LabelledProblem
from .problem import Gap
from .simulated_groups import (
    CountUnits,
    ResampledValues,
    ShuffledGroups,
    SimulatedTests,
    TiltedCounts,
    TiltedSampler,
)
from .within_strata import HOMOGENEITY_SEED, MOST_ROWS, StratumValues

Self = TypeVar("Self", bound="ClassCountProblem")


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassCountProblem(LabelledProblem):
    """Counts by stratum, group and class."""

    counts: NDArray[np.uint64]
    classes: RowClasses
    #: Whether rows exchange groups only within the classes that the metric conditions on.
    conditional: bool
    strata_names: tuple[str, ...]
    #: The labels of the strata, in the order of the counts.
    strata: tuple[GroupKey, ...] = ()
    #: Whether a class can contain rows with different scores.
    binned: bool = False

    @classmethod
    def make(
        cls: type[Self],
        cells: Cells,
        metric: Metric,
        keys: Sequence[GroupKey],
        scaling: str,
        conditional: bool,
        n_threads: int | None = None,
    ) -> Self:
        """Collapse cells to the classes of a metric."""
        classes, of_cell = metric.kind.classes(cells)
        counts = cells.class_counts(keys, of_cell, classes.n)
        names, strata = cells.strata_names, cells.strata
        if not conditional:
            # Ignore the strata of the cells: all rows exchange their groups.
            counts, names, strata = counts.sum(axis=0, keepdims=True), (), ()
        sizes = cells.group_sizes()
        return cls(
            metric=metric,
            keys=tuple(keys),
            n_rows=tuple(sizes[key] for key in keys),
            scaling=scaling,
            counts=counts,
            classes=classes,
            conditional=conditional,
            strata_names=names,
            strata=strata,
            n_threads=n_threads,
            features=cells.sensitive_features,
            binned=metric.kind.reads == "scores" and cells.score_edges is not None,
        )

    @cached_property
    def native_metric(self) -> _native.CountMetric:
        """The native metric for these classes."""
        return self.metric.kind.native_of(self.classes)

    @cached_property
    def totals(self) -> NDArray[np.uint64]:
        """Counts by group and class."""
        totals: NDArray[np.uint64] = self.counts.sum(axis=0)
        return totals

    @property
    def conditioning(self) -> str | list[int] | None:
        """For each class, the block of classes within which rows exchange their groups."""
        own = self.conditional and self.metric.kind.own_condition(self.stratified)
        blocks = self.classes.conditioning if own else None
        return list(blocks) if isinstance(blocks, tuple) else blocks

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "cells"

    @property
    def stratified(self) -> bool:
        """Return whether gaps are taken within the user's strata."""
        return len(self.counts) > 1

    def make_test(self, chosen: tuple[int, ...]) -> _native.PermutationTest:
        """Make the native test of the groups at some positions."""
        return _native.PermutationTest.counts(
            np.ascontiguousarray(self.counts[:, list(chosen), :]),
            self.native_metric,
            studentize=self.scaling,
            conditioning=self.conditioning,
            call=self.call,
        )

    def with_counts(self: Self, counts: NDArray[np.uint64]) -> Self:
        """Return a copy with other counts."""
        n_rows = tuple(counts.sum(axis=(0, 2)).astype(int).tolist())
        return replace(self, n_rows=n_rows, counts=counts)

    def equal(self, null: str) -> SimulatedTests:
        """Return simulated audits of groups with equal metrics; null is "shuffle" or "weak"."""
        if null == "shuffle" or not self.metric.kind.has_influence:
            return super().equal(null)
        if self.is_proportion:
            return ShuffledGroups(
                self.test(),
                Note(
                    "weak-null-is-shuffle",
                    f"groups with one {self.metric.name} are equal in law: the weak null of a "
                    "proportion of eligible rows the same is the shuffle",
                ),
            )
        return ResampledValues(self._centred())

    def _centred(self) -> _native.WeakNull:
        """Return the null simulation from values centred within each stratum and group.

        The values are a - theta d for fractions, and otherwise the influence of each row. Each
        combination of stratum, group and class that occurs becomes a class with its own value.
        """
        fraction = self.native_metric.fraction
        values = np.zeros(self.counts.shape)
        for place in np.ndindex(self.counts.shape[:2]):
            totals = self.counts[place].astype(float)
            if fraction is not None:
                above, below = np.array(fraction)
                if below @ totals > 0:
                    values[place] = above - (above @ totals) / (below @ totals) * below
            elif totals.any():
                own = self.metric.kind.class_influence(self.classes, totals)
                values[place] = totals.sum() * own
        present = np.flatnonzero(self.counts)
        counts = np.zeros((*self.counts.shape[:2], len(present)), dtype=np.uint64)
        stratum, group, of_class = np.unravel_index(present, self.counts.shape)
        counts[stratum, group, np.arange(len(present))] = self.counts.ravel()[present]
        blocks = self.conditioning
        return _native.WeakNull.counts(
            counts,
            values.ravel()[present],
            None if fraction is None else np.array(fraction[1])[of_class],
            self.call,
            studentize=self.scaling,
            conditioning=None if blocks is None else [int(blocks[k]) for k in of_class],
        )

    def unequal(self, gap: float) -> TiltedSampler[Any]:
        """Return a sampler of problems with the same rows and a gap of the first group."""
        if not self.metric.kind.has_influence:
            return super().unequal(gap)
        conditioning: Any = self.conditioning
        if conditioning == "denominator":
            fraction = self.native_metric.fraction
            assert fraction is not None
            conditioning = np.array(fraction[1]) > 0
        elif conditioning is None:
            conditioning = np.zeros(self.classes.n)
        units = CountUnits(self.counts, np.array(conditioning).astype(np.int64))

        def gap_of(first: NDArray[np.float64], rest: NDArray[np.float64]) -> float:
            values = (self.native_metric.evaluate(part.tolist()).value for part in (first, rest))
            return float(next(values) - next(values))

        totals = self.totals.sum(axis=0).astype(float)
        influence = self.metric.kind.class_influence(self.classes, totals)
        tilted = TiltedCounts(units, self.with_counts, influence=influence, gap=gap_of)
        return tilted.with_gap(gap)


@dataclass(frozen=True, kw_only=True, eq=False)
class CountProblem(ClassCountProblem):
    """One metric of counts."""

    def check(self) -> None:
        """Raise when the metric has no value in some groups, or cannot be studentized."""
        shortage = self.metric.kind.shortage
        self.refuse(self.shortages(lambda i: shortage(self.totals[i], self.n_rows[i])))

    @cached_property
    def evaluations(self) -> tuple[_native.Evaluation, ...]:
        """The metric in each group."""
        return tuple(self.test().evaluations)

    @property
    def fewest(self) -> Sequence[tuple[int, str]] | None:
        """The smallest count behind the metric, with its name, by group; None if it is the rows."""
        if not self.metric.kind.compares_labels:
            return None
        if self.metric.kind.reads == "classes":
            return [self.metric.kind.smallest_cell(cells) for cells in self.totals.tolist()]
        positive = np.array(self.classes.positive)
        up, down = (self.totals[:, part].sum(axis=1).tolist() for part in (positive, ~positive))
        return [fewer_of_labels(*both) for both in zip(up, down, strict=True)]

    def labels_of(self, position: int) -> tuple[int, int] | None:
        """Return the rows of a group with a positive and a negative label; None if it has none."""
        if "y_true" not in self.metric.needs:
            return None
        positive, counts = np.array(self.classes.positive), self.totals[position]
        return int(counts[positive].sum()), int(counts[~positive].sum())

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the numbers."""
        ties = Note(
            "binned-scores",
            "scores within one bin count as tied; more bins or the scores themselves tell more",
        )
        return (*self.notes_of_few(), *self.notes_of_strata(), *([ties] if self.binned else []))

    @property
    def is_bounded(self) -> bool:
        """Return whether values lie in a known finite range and have confidence limits."""
        return bool(self.metric.kind.sum_of) or super().is_bounded

    def limited(self, position: int) -> mover.ValueWithLimits:
        """Return the metric of a group with its limits (for sums, those of the proportions)."""
        counts = self.totals[position].astype(float)
        parts = []
        for factor, hits, misses in self.metric.kind.sum_of:
            n_rows = counts[hits] + counts[misses]
            parts.append(
                mover.WeightedProportion(factor, SampleProportion(counts[hits] / n_rows, n_rows))
            )
        if not parts:
            return super().limited(position)
        return mover.by_smoothed(self.evaluations[position].value, parts)

    def _gap(self, pair: Pair) -> Gap:
        """Return the difference of two groups, within the user's strata if there are any."""
        if not (self.stratified and self.metric.is_proportion):
            return super()._gap(pair)
        within = self.within(pair)
        return Gap(within.estimate, within.standard_error)

    def within(self, pair: Pair) -> WithinStrata:
        """Return the proportions of two groups within the user's strata."""
        if pair not in self._within:
            self._within[pair] = keep_shared_strata(*self._shares(pair))
        return self._within[pair]

    def compared(self, pair: Pair) -> tuple[float, float]:
        """Return the two values whose ratio is taken."""
        if not (self.stratified and self.metric.is_proportion):
            return super().compared(pair)
        return self.within(pair).means

    def log_ratio(self, pair: Pair) -> tuple[float, float]:
        """Return the logarithm of the ratio of two values above 0, and its standard error."""
        if not (self.stratified and self.metric.is_proportion):
            return super().log_ratio(pair)
        within = self.within(pair)
        return math.log(within.ratio), within.log_ratio_standard_error

    @cached_property
    def _within(self) -> dict[Pair, WithinStrata]:
        return {}

    def interval(
        self, pair: Pair, level: float, method: str, replicates: Bootstrap | None
    ) -> Interval:
        """Return the two-sided interval of a difference; NaN where it cannot be measured."""
        if method == "mantel-haenszel":
            return self.within(pair).difference_interval(two_sided_normal_quantile(level))
        return super().interval(pair, level, method, replicates)

    def _shares(self, groups: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return hits and eligible rows of a proportion by stratum and group."""
        fraction = self.native_metric.fraction
        assert fraction is not None
        hits, rows = (self.counts[:, list(groups), :] @ np.array(part) for part in fraction)
        return hits, rows

    @cached_property
    def by_stratum(self) -> StratumValues | None:
        """The metric by stratum and group; None without the user's strata."""
        if not self.stratified:
            return None
        if self.metric.is_proportion:
            hits, rows = self._shares(self.everything)
            value = np.divide(hits, rows, out=np.full(hits.shape, np.nan), where=rows > 0)
        else:
            rows = self.counts.sum(axis=2).astype(float)
            value = np.array(
                [
                    [self.native_metric.evaluate(group.tolist()).value for group in stratum]
                    for stratum in self.counts.astype(float)
                ]
            )
        return StratumValues(
            names=self.strata_names,
            strata=self.strata,
            value=value,
            size=np.where(np.isnan(value), 0.0, rows),
            n=rows.astype(np.int64),
            people=rows,
            keys=self.keys,
        )

    def homogeneity(self, pair: Pair) -> Homogeneity:
        """Test whether the gap of two groups is the same in all strata."""
        if self.metric.is_proportion:
            return breslow_day(*self._shares(pair))
        counts = self.counts[:, list(pair), :]
        n = int(counts.sum())
        if n > MOST_ROWS or not self.metric.kind.has_influence:
            return super().homogeneity(pair)
        # Row values whose mean and variance in each stratum and group are those of the metric.
        values = np.zeros(counts.shape)
        for place in np.ndindex(counts.shape[:2]):
            totals = counts[place].astype(float)
            value = self.native_metric.evaluate(totals.tolist()).value
            if not math.isnan(value):
                influence = self.metric.kind.class_influence(self.classes, totals)
                with np.errstate(over="ignore", invalid="ignore"):
                    values[place] = value + totals.sum() * influence
        if not np.isfinite(values).all():
            return Homogeneity.unknown(f"{self.metric.name} has no finite slope in some stratum")
        places = np.repeat(np.arange(counts.size), counts.ravel().astype(np.int64))
        stratum, group, _ = np.unravel_index(places, counts.shape)
        above = values.ravel()[places]
        return permuted_homogeneity(above, np.ones(n), group == 1, stratum, HOMOGENEITY_SEED)

    def formula(self, method: str) -> FormulaMethod:
        """Return the `FormulaMethod` of this name."""
        return (
            MantelHaenszelMethod(self) if method == "mantel-haenszel" else super().formula(method)
        )
