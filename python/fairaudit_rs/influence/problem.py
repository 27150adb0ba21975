"""The numbers of an audit: the gap, the influence of every row, and the marginal scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import Value
from ..data.groups import group_name
from ..inference.pvalues import upper_tail
from .coding import Coding
from .features import Feature
from .held_fixed import HeldFixedScores
from .marginal_scores import (
    FeatureScore,
    GroupRows,
    KindSums,
    MarginalScores,
    RowKinds,
    refused_score,
)
from .missing_numbers import MissingNumbers
from .quality import NuisanceFit
from .question import InfluenceQuestion
from .rates import Measure, MeasureValue, parts_of
from .simultaneous import on_normal_scale, simultaneous_limits
from .split import deal_at_random

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

#: A standard error that is rounding: variances are differences of sums of squares.
_NO_ERROR = 1e-7
#: A score that is rounding, as a share of the largest influence of a row: scores are means of such
#: values, and it would take more than 10^20 rows to tell one from 0.
_NO_SCORE = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupMeasure:
    """The measure in rows of a group, and sums of their parts."""

    value: MeasureValue
    #: Sums of parts and of their products, with weights where rows have them.
    cell: KindSums
    n_rows: float

    @classmethod
    def from_rows(
        cls, measure: Measure, rows: GroupRows, name: str, call: _native.Call
    ) -> GroupMeasure:
        """Add up the rows of a group."""
        cell = KindSums.from_rows(rows, call)
        return cls(
            value=MeasureValue.from_totals(measure, cell.sums, name), cell=cell, n_rows=cell.n
        )

    @classmethod
    def of_parts(
        cls, measure: Measure, parts: Floats, count: Floats, weight: Floats | None, name: str
    ) -> GroupMeasure:
        """Add up kinds of rows: their parts, how often each occurs, the weight of one row."""
        once = count if weight is None else count * weight
        twice = once if weight is None else once * weight
        cell = KindSums(
            (once[:, None] * parts).sum(axis=0), np.asarray((twice[:, None] * parts).T @ parts)
        )
        return cls(
            value=MeasureValue.from_totals(measure, cell.sums, name),
            cell=cell,
            n_rows=float(count.sum()),
        )

    @property
    def variance(self) -> float:
        """The variance of the measure, by its influence values."""
        n, parts = self.n_rows, self.value.parts
        if n <= 1:
            return math.nan
        # Rounding may leave less than 0 where all rows are the same.
        square = max(float(parts @ self.cell.products @ parts), 0.0)
        return square / self.cell.n**2 * (n / (n - 1))


@dataclass(frozen=True, eq=False, kw_only=True)
class RowParts:
    """The rows of both sides in disjoint parts: by kind of row, how many there are in each."""

    kinds: RowKinds
    count: Counts
    #: Parts (1, label, score, both) of kinds of other rows.
    others: Floats
    other_count: Counts

    def target(self, measure: Measure, part: int, weight: Floats | None = None) -> GroupMeasure:
        """Return the target group's measure in a part, with weights by kind or without."""
        parts = parts_of(*self.kinds.parts[:, :2].T)
        count = self.count[:, part].astype(np.float64)
        return GroupMeasure.of_parts(measure, parts, count, weight, "the target group")

    def other(self, measure: Measure, part: int) -> GroupMeasure:
        """Return the others' measure in a part."""
        count = self.other_count[:, part].astype(np.float64)
        return GroupMeasure.of_parts(measure, self.others, count, None, "the others")


def others_name(target: Any) -> str:
    """Return what the others are called beside the target group, which may have that name."""
    return "all others" if target == "others" else "others"


@dataclass(frozen=True, eq=False)
class SimultaneousScore:
    """A score, and what it is among all of them."""

    score: FeatureScore
    adjusted_pvalue: float
    interval: tuple[float, float]

    @property
    def z(self) -> float:
        """|t| on the normal scale."""
        return on_normal_scale(self.score)


@dataclass(frozen=True, eq=False, kw_only=True)
class InfluenceProblem(Value):
    """A target group with its features, and the others."""

    measure: Measure
    #: Labels and scores of all rows.
    label: NDArray[np.bool_]
    score: Floats
    #: The features of all rows, and which of them are those of the target group and the others.
    coding: Coding
    positions: NDArray[np.int64]
    other_positions: NDArray[np.int64]
    #: The features that are asked for.
    features: tuple[Feature, ...]
    target_name: Any
    #: The model as a function of coded rows.
    predict: Callable[[Floats], Floats] | None = None
    n_folds: int = 5
    n_threads: int | None = None
    #: Whether scores with all else held fixed are those of the paper.
    plug_in: bool = False
    #: What regressions are made with in the place of the default.
    estimator: Any = None
    #: The sensitive feature, for people.
    attribute: str = ""
    #: Of numbers in the features.
    gaps: MissingNumbers = field(default_factory=MissingNumbers)

    @property
    def shown_name(self) -> str:
        """The name of the target group for people."""
        return group_name(self.target_name, self.attribute)

    @classmethod
    def from_question(
        cls,
        question: InfluenceQuestion,
        *,
        n_folds: int,
        plug_in: bool,
        n_threads: int | None,
        estimator: Any = None,
    ) -> InfluenceProblem:
        """Return the audit of a question."""
        return cls(
            measure=question.measure,
            label=question.label,
            score=question.score,
            coding=question.coding,
            positions=question.rows,
            other_positions=question.other_rows,
            features=question.features,
            target_name=question.target_name,
            predict=question.predict,
            n_folds=n_folds,
            n_threads=n_threads,
            plug_in=plug_in,
            estimator=estimator,
            attribute=question.attribute,
            gaps=question.gaps,
        )

    @property
    def call(self) -> _native.Call:
        """How native code is to run."""
        return _native.Call(self.n_threads)

    @cached_property
    def matrix(self) -> Floats:
        """The features of the target group as numbers."""
        return self.coding.matrix(self.positions)

    @cached_property
    def other_matrix(self) -> Floats:
        """The features of the others as numbers."""
        return self.coding.matrix(self.other_positions)

    @cached_property
    def rows(self) -> Floats:
        """Label and score of the rows of the target group."""
        return np.column_stack([self.label[self.positions], self.score[self.positions]])

    @cached_property
    def others(self) -> Floats:
        """Label and score of all other rows."""
        places = self.other_positions
        return np.column_stack([self.label[places], self.score[places]])

    @property
    def group_rows(self) -> GroupRows:
        """The rows of the target group as native code reads them."""
        return self.positions, self.label, self.score

    @cached_property
    def target_group(self) -> GroupMeasure:
        """The target group."""
        return GroupMeasure.from_rows(self.measure, self.group_rows, self.shown_name, self.call)

    @cached_property
    def other_group(self) -> GroupMeasure:
        """All others."""
        rows = (self.other_positions, self.label, self.score)
        return GroupMeasure.from_rows(self.measure, rows, "the others", self.call)

    @property
    def gap(self) -> float:
        """The measure of the target group less that of the others."""
        return self.target_group.value.value - self.other_group.value.value

    @property
    def standard_error(self) -> float:
        """Of the gap."""
        return math.sqrt(self.target_group.variance + self.other_group.variance)

    @property
    def pvalue(self) -> float:
        """Two-sided, of no gap, by the normal law."""
        error = self.standard_error
        return 2 * upper_tail(abs(self.gap) / error) if error > 0 else math.nan

    @property
    def influence(self) -> Floats:
        """By row of the target group, what it adds to the measure: psi."""
        one, label, score, both = self.target_group.value.parts
        y, f = self.label[self.positions], self.score[self.positions]
        # By label, where a line in the score begins and its slope.
        return np.asarray(np.where(y, one + label, one) + np.where(y, score + both, score) * f)

    @cached_property
    def distinct(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint32]]:
        """A row of each kind of the target group, how many there are, the kind of every row."""
        both = np.ascontiguousarray(np.column_stack([self.matrix, self.rows]))
        return _native.distinct_rows(both, self.call)

    @cached_property
    def kinds(self) -> RowKinds:
        """The distinct rows of the target group."""
        first, counts, _ = self.distinct
        features = np.ascontiguousarray(self.matrix[first])
        label, score = self.rows[first].T
        parts = np.ascontiguousarray(np.column_stack([label, score, label * score]))
        count = counts.astype(np.float64)
        return RowKinds(features, parts, count)

    def parts(self, shares: Sequence[float], seed: int) -> RowParts:
        """Deal the rows of both sides into parts at random."""
        kinds = self.kinds
        first, counts, _ = _native.distinct_rows(np.ascontiguousarray(self.others), self.call)
        return RowParts(
            kinds=kinds,
            count=deal_at_random(kinds.count.astype(np.int64), shares, seed, 0),
            others=parts_of(*self.others[first].T),
            other_count=deal_at_random(counts.astype(np.int64), shares, seed, 1),
        )

    @cached_property
    def marginal(self) -> MarginalScores:
        """The marginal scores of all features."""
        whole, value = self.target_group.cell, self.target_group.value
        return MarginalScores(self.coding, self.group_rows, whole, value, self.features, self.call)

    def half_width(self, level: float) -> float:
        """Half of the interval of the gap."""
        return _native.normal_quantile(0.5 + level / 2) * self.standard_error

    def scores(
        self, level: float, n_draws: int, seed: int, callback: Callable[[int, int], object] | None
    ) -> tuple[list[SimultaneousScore], tuple[NuisanceFit, ...]]:
        """Return all scores, those not refused with what holds for all of their kind, and fits."""
        tick = None if callback is None else lambda done: callback(done, n_draws)
        call = _native.Call(self.n_threads, tick)
        draws = _native.Draws(n_draws, seed=seed)
        least = _NO_ERROR * max(map(abs, self.measure.weights))
        marginal = self.marginal
        found = _together(marginal.scores, marginal.correlation, level, draws, call, least)
        if self.predict is None:
            return self._settled(found), ()
        alone = HeldFixedScores(
            kinds=self.kinds,
            value=self.target_group.value,
            features=self.features,
            predict=self.predict,
            n_folds=self.n_folds,
            plug_in=self.plug_in,
            call=self.call,
            estimator=self.estimator,
        )
        draws = _native.Draws(n_draws, seed=seed, series=1)
        found += _together(alone.scores, alone.correlation, level, draws, call, least)
        return self._settled(found), alone.fits

    def _settled(self, found: list[SimultaneousScore]) -> list[SimultaneousScore]:
        """Return scores, those that are rounding as 0."""
        least = _NO_SCORE * float(np.abs(self.influence).max())
        return [
            replace(score, score=replace(score.score, estimate=0.0))
            if abs(score.score.estimate) <= least
            else score
            for score in found
        ]


def _together(
    scores: list[FeatureScore],
    correlation: Callable[[list[FeatureScore]], Floats],
    level: float,
    draws: _native.Draws,
    call: _native.Call,
    least: float,
) -> list[SimultaneousScore]:
    """Return scores with what holds for all of them that are not refused.

    Standard errors up to the least one are rounding.
    """
    nothing = (math.nan, math.nan)
    scores = [
        refused_score(feature_score.what, "the same in every row")
        if feature_score.standard_error <= least
        else feature_score
        for feature_score in scores
    ]
    # With few events a score is too often far out: it would spoil what holds for all of them.
    shown = [
        feature_score
        for feature_score in scores
        if feature_score.standard_error > 0 and not feature_score.has_few_events
    ]
    known: dict[int, SimultaneousScore] = {}
    if shown:
        pvalues, intervals = simultaneous_limits(shown, correlation(shown), level, draws, call)
        for score, pvalue, interval in zip(shown, pvalues, intervals, strict=True):
            known[id(score)] = SimultaneousScore(score, pvalue, interval)
    return [known.get(id(score), SimultaneousScore(score, math.nan, nothing)) for score in scores]
