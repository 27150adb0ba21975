"""Score features with all others held fixed, or by partialled-out slopes where that fails."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .ceteris_paribus import (
    FeatureArm,
    HeldFixedEstimate,
    LabelRegression,
    RowsByFold,
    arms_of,
    contrast_score,
    partialled_out,
    plug_in,
)
from .feature import Feature
from .marginal_scores import (
    FEW_EVENTS,
    DistinctGroupRows,
    FeatureContrast,
    FeatureScore,
    note_on,
    refused_score,
)
from .nuisance import CrossFit, deal_folds
from .rates import MeasureValue
from .regression_quality import NuisanceFit, describe_fit

Floats = NDArray[np.float64]

#: With more levels, each is compared with the most frequent one only.
_MOST_LEVELS = 12
PLUG_IN = "plug-in score of the paper, with an interval that does not hold"
_OTHER_LEARNER = (
    "by given estimators: its interval is promised only where both regressions converge"
)


class HeldFixedScores:
    """The scores of all features, each with the others held fixed, and their influence values."""

    def __init__(
        self,
        distinct: DistinctGroupRows,
        value: MeasureValue,
        features: Sequence[Feature],
        predict: Callable[[Floats], Floats],
        n_folds: int,
        plug_in: bool,
        call: _native.Call,
        estimator: Any = None,
    ) -> None:
        label, score = distinct.terms[:, :2].T
        # Sort by features and label before the score, so that rounding in the scores cannot change
        # the fold of a row.
        both = np.ascontiguousarray(np.column_stack([distinct.features, label]))
        _, _, place = _native.distinct_rows(both, call)
        order = np.lexsort((score, place))
        dealt, folds, count = deal_folds(distinct.count[order].astype(np.int64), n_folds)
        row = order[dealt]
        self.rows = RowsByFold(
            features=distinct.features[row],
            label=label[row],
            score=score[row],
            count=count,
            folds=folds,
            call=call,
        )
        self.value, self.predict, self.plug_in = value, predict, plug_in
        self.label_regression = LabelRegression(
            rows=self.rows, uses_labels=value.measure.needs_labels, estimator=estimator
        )
        self.estimator = estimator
        self._level_fits: dict[str, CrossFit] = {}
        # The influence values of each score, by its identity.
        self._influences: dict[int, Floats] = {}
        self.scores = [score for feature in features for score in self._scores_of(feature)]

    def _scores_of(self, feature: Feature) -> list[FeatureScore]:
        if feature.kind == "continuous":
            return [self._partialled_out_score(feature, feature.columns[0], (), "", None)]
        arms = arms_of(self.label_regression, self.predict, feature.columns)
        # The levels of a binary feature have the high value first and the arms have it last.
        names = feature.levels if feature.kind == "categorical" else feature.levels[::-1]
        for name, arm in zip(names, arms, strict=True):
            if arm.sign > 0:
                level = "1" if feature.kind == "binary" else name
                self._level_fits[f"{feature.name} = {level}"] = arm.fitted
        note = "" if self.estimator is None else _OTHER_LEARNER
        pairs = self._pairs(arms)
        scores, refusals = [], dict.fromkeys(range(len(arms)), "")
        for low, high in pairs:
            levels = (names[high], names[low])
            contrast = FeatureContrast(feature.name, feature.kind, levels, method="ceteris_paribus")
            if self.plug_in:
                estimate = plug_in(self.label_regression, self.value, arms[low], arms[high])
                scores.append(self._score(contrast, estimate, PLUG_IN))
                continue
            estimate = contrast_score(self.label_regression, self.value, arms[low], arms[high])
            if not estimate.refusal:
                scores.append(self._score(contrast, estimate, note))
                refusals.pop(low, None)
                refusals.pop(high, None)
            else:
                refusals |= {at: estimate.refusal for at in (low, high) if at in refusals}
        if self.plug_in:
            return scores
        # A level that could not be compared with any single other level is compared with all others
        # together, by its partialled-out score.
        if feature.kind == "binary" and refusals:
            note = f"held fixed it has no score ({refusals[1]})"
            return [
                self._partialled_out_score(
                    feature, feature.columns[0], feature.levels, note, arms[1]
                )
            ]
        for at, why in refusals.items():
            levels = (names[at], "all others")
            note = f"held fixed it has no score ({why})"
            scores.append(
                self._partialled_out_score(feature, feature.columns[at], levels, note, arms[at])
            )
        return scores

    def _pairs(self, arms: Sequence[FeatureArm]) -> list[tuple[int, int]]:
        """Return the pairs of values to compare: all, or each with the most frequent one."""
        if len(arms) <= _MOST_LEVELS:
            return list(combinations(range(len(arms)), 2))
        most = max(range(len(arms)), key=lambda at: float(self.rows.count @ arms[at].inside))
        return [(most, at) for at in range(len(arms)) if at != most]

    def _partialled_out_score(
        self,
        feature: Feature,
        column: int,
        levels: tuple[str, ...],
        note: str,
        arm: FeatureArm | None,
    ) -> FeatureScore:
        """Return the partialled-out score of a column; ``arm`` is that of a binary column."""
        contrast = FeatureContrast(feature.name, feature.kind, levels, method="partialled_out")
        n_events = self._events(column, arm is not None)
        estimate = partialled_out(
            self.rows, self.value, feature.columns, column, None if arm is None else arm.fitted
        )
        if estimate.refusal:
            return refused_score(contrast, estimate.refusal)
        if n_events < FEW_EVENTS:
            return refused_score(
                contrast, f"{n_events:.3g} events in a cell, {FEW_EVENTS:g} are needed"
            )
        notes = [part for part in (note, note_on(n_events)) if part]
        return self._score(contrast, estimate, "; ".join(notes), n_events)

    def _events(self, column: int, binary: bool) -> float:
        """Return the smaller count of events and non-events.

        For a binary column it is the minimum over its two cells, for a slope that of all rows.
        """
        terms, count = self.rows.terms, self.rows.count
        if not binary:
            return self.value.fewest_events(count @ terms)
        inside = self.rows.features[:, column] > 0
        return min(self.value.fewest_events(count[at] @ terms[at]) for at in (inside, ~inside))

    def _score(
        self,
        contrast: FeatureContrast,
        estimate: HeldFixedEstimate,
        note: str,
        n_events: float = math.nan,
    ) -> FeatureScore:
        score = FeatureScore(
            contrast,
            estimate=estimate.estimate,
            standard_error=estimate.standard_error,
            df=estimate.df,
            n_events=n_events,
            note=note,
        )
        self._influences[id(score)] = estimate.influence
        return score

    @property
    def fits(self) -> tuple[NuisanceFit, ...]:
        """The quality of the regressions on held-out rows.

        They are the regression of the label, if the metric uses labels, and that of each level on
        the other features.
        """
        if not self._level_fits:
            return ()
        outcome = self.label_regression.outcome
        label = [] if outcome is None else [describe_fit("P(y = 1 | X)", outcome)]
        named = self._level_fits.items()
        return (*label, *(describe_fit(f"P({name} | other features)", fit) for name, fit in named))

    def correlation(self, scores: Sequence[FeatureScore]) -> Floats:
        """Return the correlations of the influence values of some scores."""
        influence = np.column_stack([self._influences[id(score)] for score in scores])
        products = influence.T @ (self.rows.count[:, None] * influence)
        scale = np.sqrt(np.diag(products))
        return np.asarray(products / np.outer(scale, scale))
