"""Compute an influence audit: the gap, the influence of every row, and the proxy scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import EqualByValue
from ..data.groups import group_name
from ..inference.pvalues import upper_tail
from .feature import Feature
from .feature_encodings import FeatureEncodings
from .held_fixed import HeldFixedScores
from .marginal_scores import (
    DistinctGroupRows,
    FeatureScore,
    GroupRows,
    MarginalScores,
    TermMoments,
    refused_score,
)
from .missing_numbers import MissingNumbers
from .question import InfluenceQuestion
from .rates import Measure, MeasureValue, terms_of
from .regression_quality import NuisanceFit
from .simultaneous import on_normal_scale, simultaneous_limits
from .split import deal_at_random

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Standard errors below this are rounding errors: variances are differences of sums of squares.
_NO_ERROR = 1e-7
#: Scores below this share of the largest influence of a row are rounding errors: scores are means
#: of influence values, and detecting such a score would take more than 10^20 rows.
_NO_SCORE = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupMeasure:
    """The measure of a group, with the sums that it is computed from."""

    value: MeasureValue
    #: Sums of the terms and of their products, weighted if rows have weights.
    moments: TermMoments
    n_rows: float

    @classmethod
    def from_rows(
        cls, measure: Measure, rows: GroupRows, name: str, call: _native.Call
    ) -> GroupMeasure:
        """Add up the rows of a group."""
        cell = TermMoments.from_rows(rows, call)
        return cls(
            value=MeasureValue.from_totals(measure, cell.sums, name), moments=cell, n_rows=cell.n
        )

    @classmethod
    def from_terms(
        cls, measure: Measure, terms: Floats, count: Floats, weight: Floats | None, name: str
    ) -> GroupMeasure:
        """Add up distinct rows from their terms, counts and weights (of one row)."""
        once = count if weight is None else count * weight
        twice = once if weight is None else once * weight
        cell = TermMoments(
            (once[:, None] * terms).sum(axis=0), np.asarray((twice[:, None] * terms).T @ terms)
        )
        return cls(
            value=MeasureValue.from_totals(measure, cell.sums, name),
            moments=cell,
            n_rows=float(count.sum()),
        )

    @property
    def variance(self) -> float:
        """The variance of the measure, from its influence values."""
        n, psi = self.n_rows, self.value.coefficients
        if n <= 1:
            return math.nan
        # Rounding may leave less than 0 if all rows are the same.
        square = max(float(psi @ self.moments.products @ psi), 0.0)
        return square / self.moments.n**2 * (n / (n - 1))


@dataclass(frozen=True, eq=False, kw_only=True)
class RowParts:
    """The rows of both sides, split into disjoint parts: counts by distinct row and part."""

    distinct: DistinctGroupRows
    count: Counts
    #: The terms (1, y, f, y f) of the distinct rows of the others.
    others: Floats
    other_count: Counts

    def target(self, measure: Measure, part: int, weight: Floats | None = None) -> GroupMeasure:
        """Return the target group's measure in a part, optionally with weights by distinct row."""
        terms = terms_of(*self.distinct.terms[:, :2].T)
        count = self.count[:, part].astype(np.float64)
        return GroupMeasure.from_terms(measure, terms, count, weight, "the target group")

    def other(self, measure: Measure, part: int) -> GroupMeasure:
        """Return the others' measure in a part."""
        count = self.other_count[:, part].astype(np.float64)
        return GroupMeasure.from_terms(measure, self.others, count, None, "the others")


def others_name(target: Any) -> str:
    """Return the name of the others, which must differ from that of the target group."""
    return "all others" if target == "others" else "others"


@dataclass(frozen=True, eq=False)
class SimultaneousScore:
    """A score with its adjusted p-value and simultaneous interval."""

    score: FeatureScore
    adjusted_pvalue: float
    interval: tuple[float, float]

    @property
    def z(self) -> float:
        """|t| on the normal scale."""
        return on_normal_scale(self.score)


@dataclass(frozen=True, eq=False, kw_only=True)
class InfluenceProblem(EqualByValue):
    """The data of an audit: a target group with its features, and the others."""

    measure: Measure
    #: Labels and scores of all rows.
    label: NDArray[np.bool_]
    score: Floats
    #: The features of all rows, and the positions of the target group and of the others.
    encodings: FeatureEncodings
    positions: NDArray[np.int64]
    other_positions: NDArray[np.int64]
    #: The features that get scores.
    features: tuple[Feature, ...]
    target_name: Any
    #: The model as a function of encoded rows.
    predict: Callable[[Floats], Floats] | None = None
    n_folds: int = 5
    n_threads: int | None = None
    #: Whether held-fixed scores are the plug-in scores of the paper.
    plug_in: bool = False
    #: The estimator of regressions; None: the default.
    estimator: Any = None
    #: The name of the sensitive feature.
    attribute: str = ""
    #: Missing numbers in the features.
    missing_numbers: MissingNumbers = field(default_factory=MissingNumbers)

    @property
    def display_name(self) -> str:
        """The target group with its attribute, for texts."""
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
        """Return the problem of a question."""
        return cls(
            measure=question.measure,
            label=question.label,
            score=question.score,
            encodings=question.encodings,
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
            missing_numbers=question.missing_numbers,
        )

    @property
    def call(self) -> _native.Call:
        """The call options of native code."""
        return _native.Call(self.n_threads)

    @cached_property
    def matrix(self) -> Floats:
        """The features of the target group as numbers."""
        return self.encodings.matrix(self.positions)

    @cached_property
    def other_matrix(self) -> Floats:
        """The features of the others as numbers."""
        return self.encodings.matrix(self.other_positions)

    @cached_property
    def rows(self) -> Floats:
        """The labels and scores of the target group, one column each."""
        return np.column_stack([self.label[self.positions], self.score[self.positions]])

    @cached_property
    def others(self) -> Floats:
        """The labels and scores of the others, one column each."""
        positions = self.other_positions
        return np.column_stack([self.label[positions], self.score[positions]])

    @property
    def group_rows(self) -> GroupRows:
        """The rows of the target group for native code."""
        return self.positions, self.label, self.score

    @cached_property
    def target_group(self) -> GroupMeasure:
        """The measure of the target group."""
        return GroupMeasure.from_rows(self.measure, self.group_rows, self.display_name, self.call)

    @cached_property
    def other_group(self) -> GroupMeasure:
        """The measure of the others."""
        rows = (self.other_positions, self.label, self.score)
        return GroupMeasure.from_rows(self.measure, rows, "the others", self.call)

    @property
    def gap(self) -> float:
        """The measure of the target group minus that of the others."""
        return self.target_group.value.value - self.other_group.value.value

    @property
    def standard_error(self) -> float:
        """The standard error of the gap."""
        return math.sqrt(self.target_group.variance + self.other_group.variance)

    @property
    def pvalue(self) -> float:
        """The two-sided p-value of "there is no gap", by the normal distribution."""
        error = self.standard_error
        return 2 * upper_tail(abs(self.gap) / error) if error > 0 else math.nan

    @property
    def influence(self) -> Floats:
        """The influence psi of each row of the target group on the measure."""
        one, label, score, both = self.target_group.value.coefficients
        y, f = self.label[self.positions], self.score[self.positions]
        # Linear in the score, with an intercept and a slope by label.
        return np.asarray(np.where(y, one + label, one) + np.where(y, score + both, score) * f)

    @cached_property
    def distinct_positions(
        self,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint32]]:
        """The first row and the count of each distinct row, and the distinct row of each row."""
        both = np.ascontiguousarray(np.column_stack([self.matrix, self.rows]))
        return _native.distinct_rows(both, self.call)

    @cached_property
    def distinct(self) -> DistinctGroupRows:
        """The distinct rows of the target group."""
        first, counts, _ = self.distinct_positions
        features = np.ascontiguousarray(self.matrix[first])
        label, score = self.rows[first].T
        terms = np.ascontiguousarray(np.column_stack([label, score, label * score]))
        count = counts.astype(np.float64)
        return DistinctGroupRows(features, terms, count)

    def parts(self, shares: Sequence[float], seed: int) -> RowParts:
        """Split the rows of both sides into parts at random."""
        distinct = self.distinct
        first, counts, _ = _native.distinct_rows(np.ascontiguousarray(self.others), self.call)
        return RowParts(
            distinct=distinct,
            count=deal_at_random(distinct.count.astype(np.int64), shares, seed, 0),
            others=terms_of(*self.others[first].T),
            other_count=deal_at_random(counts.astype(np.int64), shares, seed, 1),
        )

    @cached_property
    def marginal(self) -> MarginalScores:
        """The marginal scores of all features."""
        whole, value = self.target_group.moments, self.target_group.value
        return MarginalScores(
            self.encodings, self.group_rows, whole, value, self.features, self.call
        )

    def half_width(self, level: float) -> float:
        """Return half the width of the interval of the gap."""
        return _native.normal_quantile(0.5 + level / 2) * self.standard_error

    def scores(
        self, level: float, n_draws: int, seed: int, callback: Callable[[int, int], object] | None
    ) -> tuple[list[SimultaneousScore], tuple[NuisanceFit, ...]]:
        """Return all scores with simultaneous limits, and the quality of the regressions."""
        tick = None if callback is None else lambda done: callback(done, n_draws)
        call = _native.Call(self.n_threads, tick)
        draws = _native.Draws(n_draws, seed=seed)
        least = _NO_ERROR * max(map(abs, self.measure.weights))
        marginal = self.marginal
        scores = _with_limits(marginal.scores, marginal.correlation, level, draws, call, least)
        if self.predict is None:
            return self._without_rounding(scores), ()
        held_fixed = HeldFixedScores(
            distinct=self.distinct,
            value=self.target_group.value,
            features=self.features,
            predict=self.predict,
            n_folds=self.n_folds,
            plug_in=self.plug_in,
            call=self.call,
            estimator=self.estimator,
        )
        draws = _native.Draws(n_draws, seed=seed, series=1)
        scores += _with_limits(held_fixed.scores, held_fixed.correlation, level, draws, call, least)
        return self._without_rounding(scores), held_fixed.fits

    def _without_rounding(self, scores: list[SimultaneousScore]) -> list[SimultaneousScore]:
        """Return scores, with those that are rounding errors set to 0."""
        least = _NO_SCORE * float(np.abs(self.influence).max())
        return [
            replace(score, score=replace(score.score, estimate=0.0))
            if abs(score.score.estimate) <= least
            else score
            for score in scores
        ]


def _with_limits(
    scores: list[FeatureScore],
    correlation: Callable[[list[FeatureScore]], Floats],
    level: float,
    draws: _native.Draws,
    call: _native.Call,
    least: float,
) -> list[SimultaneousScore]:
    """Return scores with adjusted p-values and simultaneous intervals, NaN for refused ones.

    Scores with a standard error up to ``least`` are refused, because it is a rounding error.
    """
    undefined = (math.nan, math.nan)
    scores = [
        refused_score(feature_score.contrast, "the same in every row")
        if feature_score.standard_error <= least
        else feature_score
        for feature_score in scores
    ]
    # Scores with few events have heavy tails and would invalidate the limits of all others.
    eligible = [
        feature_score
        for feature_score in scores
        if feature_score.standard_error > 0 and not feature_score.has_few_events
    ]
    limited: dict[int, SimultaneousScore] = {}
    if eligible:
        pvalues, intervals = simultaneous_limits(
            eligible, correlation(eligible), level, draws, call
        )
        for score, pvalue, interval in zip(eligible, pvalues, intervals, strict=True):
            limited[id(score)] = SimultaneousScore(score, pvalue, interval)
    return [
        limited.get(id(score), SimultaneousScore(score, math.nan, undefined)) for score in scores
    ]
