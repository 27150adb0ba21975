"""Ceteris-paribus scores: what a feature alone moves, all others held fixed (Definition 5).

gamma = E[psi(b, X_-j) - psi(a, X_-j)] over the rows of the target group, psi(x) the conditional
mean of the influence. Doubly robust: right where either P(Y = 1 | X) or P(x_j = b | X_-j) is; its
standard error is the larger of that of the influence function and of the stacked one, which counts
in what the two regressions add.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .nuisance import CrossFit, Regressors, fit_nuisance
from .rates import PARTS, MeasureValue, RateValue

Floats = NDArray[np.float64]
Predict = Callable[[Floats], Floats]

#: With a larger share of the weights 1 / e of an arm in one row there is no overlap to speak of.
_LARGEST_SHARE = 0.1
#: Share of all rows that those with a value stand for, by weights 1 / e; 1 with overlap.
_STAND_FOR = (0.8, 1.25)
#: Share of the variance of a feature that the others must leave.
_LEAST_REST = 0.01
#: A variance that is no more than this share of the squared mean is that of rounding.
_ROUNDING = 1e-24
#: Rows of either label in an arm.
_FEWEST = 10.0


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsByFold:
    """Kinds of rows of the target group by fold, with how often each occurs."""

    features: Floats
    label: Floats
    score: Floats
    count: Floats
    folds: NDArray[np.int64]
    call: _native.Call = field(default_factory=_native.Call)

    @cached_property
    def regressors(self) -> Regressors:
        """The rows by their features."""
        return Regressors.from_features(self.features, self.count, self.folds, self.call)

    @property
    def n_rows(self) -> float:
        """How many rows there are."""
        return float(self.count.sum())

    @property
    def parts(self) -> Floats:
        """1, y, f and y f, one column each."""
        y, f = self.label, self.score
        return np.column_stack([np.ones(len(f)), y, f, y * f])


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureArm:
    """The rows with one value of a feature: who has it, and what it would be for the others."""

    inside: Floats
    #: The features by kind, the model and P(Y = 1 | X) by row, were all rows to have the value.
    moved: Floats
    score: Floats
    label: Floats
    #: P(X_j = value | the other features), and the regression that it comes from.
    share: Floats
    fitted: CrossFit
    #: -1 where the regression is that of the other value.
    sign: float


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldFixedEstimate:
    """A score with all else held fixed: from one value of a feature to another, or its slope."""

    estimate: float
    standard_error: float
    df: float
    #: By kind and fold, of the standard error that was taken.
    influence: Floats
    plain_error: float
    #: NaN where it is not known what the regressions add.
    stacked_error: float
    refusal: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Nuisances:
    """P(Y = 1 | X) of the target group, shared by all features; fitted when first asked for."""

    rows: RowsByFold
    #: Whether labels play a part.
    needed: bool = True
    #: What regressions are made with in the place of the default.
    estimator: Any = None

    @cached_property
    def outcome(self) -> CrossFit | None:
        """The regression; None where labels play no part."""
        return (
            fit_nuisance(self.rows.regressors, self.rows.label, self.estimator)
            if self.needed
            else None
        )

    def label_at(self, moved: Floats) -> Floats:
        """Return P(Y = 1 | X) of all rows, were the features of their kinds these."""
        return np.zeros(len(self.rows.count)) if self.outcome is None else self.outcome.at(moved)


def flip_score(
    nuisances: Nuisances, value: MeasureValue, predict: Predict, column: int
) -> HeldFixedEstimate:
    """Return the score of the binary feature in a column, 1 against 0."""
    low, high = arms_of(nuisances, predict, (column,))
    return contrast_score(nuisances, value, low, high)


def arms_of(nuisances: Nuisances, predict: Predict, columns: tuple[int, ...]) -> list[FeatureArm]:
    """Return the rows by value of a feature: 0 and 1 of one column, or a value for each column."""
    rows = nuisances.rows
    regressors = rows.regressors.without(columns)
    arms = []
    for number, column in enumerate(columns):
        fitted = fit_nuisance(regressors, rows.features[:, column], nuisances.estimator)
        alone = np.zeros(len(columns))
        if len(columns) == 1:
            arms.append(_arm(nuisances, predict, columns, alone, fitted, -1.0))
        alone[number] = 1.0
        arms.append(_arm(nuisances, predict, columns, alone, fitted, 1.0))
    return arms


def _arm(
    nuisances: Nuisances,
    predict: Predict,
    columns: tuple[int, ...],
    setting: Floats,
    fitted: CrossFit,
    sign: float,
) -> FeatureArm:
    regressors = nuisances.rows.regressors
    moved = regressors.features.copy()
    moved[:, columns] = setting
    return FeatureArm(
        inside=fitted.y if sign > 0 else 1 - fitted.y,
        moved=moved,
        score=predict(moved)[regressors.kind],
        label=nuisances.label_at(moved),
        share=fitted.found if sign > 0 else 1 - fitted.found,
        fitted=fitted,
        sign=sign,
    )


def contrast_score(
    nuisances: Nuisances, value: MeasureValue, low: FeatureArm, high: FeatureArm
) -> HeldFixedEstimate:
    """Return the score of one value of a feature against another."""
    rows, arms = nuisances.rows, [low, high]
    estimate, plain, by_label, by_share = _doubly_robust(rows, value, arms)
    n, count = rows.n_rows, rows.count
    errors, taken = [math.sqrt(float(count @ plain**2)) / n, math.nan], plain
    change = _added(rows, nuisances.outcome, arms, by_label, by_share)
    if change is not None:
        stacked = plain + change
        errors[1] = math.sqrt(float(count @ stacked**2)) / n
        taken = plain if errors[0] >= errors[1] else stacked
    square, fourth = float(count @ taken**2), float(count @ taken**4)
    return HeldFixedEstimate(
        estimate=estimate,
        standard_error=float(np.nanmax(errors)),
        df=square**2 / fourth if fourth > 0 else math.nan,
        influence=taken,
        plain_error=errors[0],
        stacked_error=errors[1],
        refusal=_refusal(rows, arms, value.measure.needs_labels),
    )


def plug_in(
    nuisances: Nuisances, value: MeasureValue, low: FeatureArm, high: FeatureArm
) -> HeldFixedEstimate:
    """Return the score as the paper has it: the mean change of psi, as if P(Y = 1 | X) were known.

    Its error is that of a plain mean, which is too small by far: for comparison only.
    """
    rows = nuisances.rows
    levels = [_level_and_slope(arm, value.parts) for arm in (low, high)]
    of_low, of_high = (
        level + slope * arm.label for (level, slope), arm in zip(levels, (low, high), strict=True)
    )
    difference, n = of_high - of_low, rows.n_rows
    estimate = float(rows.count @ difference) / n
    influence = difference - estimate
    error = math.sqrt(float(rows.count @ influence**2) / max(n - 1, 1) / n)
    return HeldFixedEstimate(
        estimate=estimate,
        standard_error=error,
        df=math.inf,
        influence=influence,
        plain_error=error,
        stacked_error=math.nan,
        refusal="",
    )


def _added(
    rows: RowsByFold,
    outcome: CrossFit | None,
    arms: list[FeatureArm],
    by_label: list[Floats],
    by_share: list[Floats],
) -> Floats | None:
    """Return what the regressions add to the influence; None where that is not known."""
    n, call = rows.n_rows, rows.call
    total = np.zeros(len(rows.count))
    low, high = arms
    if low.fitted is high.fitted:
        along = [(low.fitted, low.sign * by_share[0] + high.sign * by_share[1])]
    else:
        along = [(arm.fitted, arm.sign * by) for arm, by in zip(arms, by_share, strict=True)]
    for fitted, by in along:

        def of_share(regressors: Regressors, _: Any, by: Floats = by) -> Floats:
            sums = regressors.columns.sums(regressors.by_kind(by)[None], call)
            return np.asarray(sums[0] / n)

        added = fitted.influence(of_share)
        if added is None:
            return None
        total += added
    if outcome is None:
        return total

    def of_label(regressors: Regressors, basis: Any) -> Floats:
        weights = [regressors.by_kind(by)[None] for by in by_label]
        sums = [
            basis.columns(arm.moved).sums(weight, call)[0]
            for arm, weight in zip(arms, weights, strict=True)
        ]
        return np.asarray((sums[0] + sums[1]) / n)

    more = outcome.influence(of_label)
    return None if more is None else total + more


def _doubly_robust(
    rows: RowsByFold, value: MeasureValue, arms: list[FeatureArm]
) -> tuple[float, Floats, list[Floats], list[Floats]]:
    """Return the score, its influence values, and by row its derivatives by the linear predictors.

    They come by arm: those of P(Y = 1 | X) at its rows, those of the share at the rows as they are.

    s_v = c0 + c1 h + 1{x = v} / e c1 (y - h) with E[u | x] = c0 + c1 h, the same of b with d0, d1;
    gamma = mean(s_b - s_a) / B.
    """
    n, count = rows.n_rows, rows.count
    estimate, influence = 0.0, np.zeros(len(count))
    by_label, by_share = ([np.zeros(len(count)) for _ in arms] for _ in range(2))
    for weight, rate in zip(value.measure.weights, value.rates, strict=True):
        of_u = [_augmented(rows, arm, rate.excess) for arm in arms]
        of_b = [_augmented(rows, arm, rate.base) for arm in arms]
        difference = of_u[1] - of_u[0]
        gamma = float(count @ difference) / n / rate.mean_base
        base_gap = float(count @ (of_b[1] - of_b[0])) / n
        u, b = rows.parts @ rate.excess, rows.parts @ rate.base
        one = difference - gamma * rate.mean_base - base_gap * u / rate.mean_base
        one -= gamma * (b - rate.mean_base)
        estimate += weight * gamma
        influence += weight / rate.mean_base * one
        for place, (arm, sign) in enumerate(zip(arms, (-1.0, 1.0), strict=True)):
            of_label, of_share = _derivatives(rows, arm, rate)
            by_label[place] += sign * weight / rate.mean_base * of_label
            by_share[place] += sign * weight / rate.mean_base * of_share
    return estimate, influence, by_label, by_share


def _level_and_slope(arm: FeatureArm, parts: Floats) -> tuple[Floats, Floats]:
    """Return c0 and c1: with f as in the arm, the mean of a sum of parts given x is c0 + c1 h."""
    assert len(parts) == PARTS
    one, label, score, both = parts
    return one + score * arm.score, label + both * arm.score


def _augmented(rows: RowsByFold, arm: FeatureArm, parts: Floats) -> Floats:
    level, slope = _level_and_slope(arm, parts)
    residual = arm.inside / arm.share * (rows.label - arm.label)
    return np.asarray(level + slope * (arm.label + residual))


def _derivatives(rows: RowsByFold, arm: FeatureArm, rate: RateValue) -> tuple[Floats, Floats]:
    """Return the derivatives of s_v by the linear predictors of h and of e_v, by row."""
    _, slope = _level_and_slope(arm, rate.excess)
    by_label = (1 - arm.inside / arm.share) * slope * arm.label * (1 - arm.label)
    by_share = -arm.inside / arm.share * (1 - arm.share) * slope * (rows.label - arm.label)
    return by_label, by_share


def _refusal(rows: RowsByFold, arms: list[FeatureArm], labels: bool) -> str:
    """Say why there is no overlap, or too few rows of a label; "" where there is enough."""
    for arm in arms:
        inside = arm.inside > 0
        for label in (0.0, 1.0) if labels else ():
            n = float(rows.count[inside & (rows.label == label)].sum())
            if n < _FEWEST:
                return f"{n:g} rows with label {label:g} and one of its values, {_FEWEST:g} needed"
        weights = 1 / arm.share[inside]
        # Where all rows could have the value, those that have it stand for all of them.
        stand_for = float(rows.count[inside] @ weights) / rows.n_rows
        if not _STAND_FOR[0] <= stand_for <= _STAND_FOR[1]:
            return (
                f"rows with one of its values stand for {100 * stand_for:.0f} % of all: no overlap"
            )
        largest = float(weights.max() / (rows.count[inside] @ weights))
        if largest > _LARGEST_SHARE:
            return f"one row carries {100 * largest:.2g} % of the weights of its value: no overlap"
    return ""


def partialled_out(
    rows: RowsByFold,
    value: MeasureValue,
    columns: tuple[int, ...],
    column: int,
    share_of: CrossFit | None,
) -> HeldFixedEstimate:
    """Return the slope of psi by what the other features do not say of a column.

    E[(psi - l)(x - e)] / E[(x - e)^2], l = E[psi | X_-j] and e = E[x | X_-j] cross-fitted:
    the overlap-weighted score of a binary feature, right where e is. It needs predictions only. The
    regression of a binary feature is given; others have the score of one standard deviation.
    """
    others, x = rows.regressors.without(columns), rows.features[:, column]
    psi = rows.parts @ value.parts
    if share_of is None:
        expected, share = others.means(psi, x)
    else:
        (expected,), share = others.means(psi), share_of.found
    rest, n = x - share, rows.n_rows
    square = float(rows.count @ rest**2) / n
    center = float(rows.count @ x) / n
    spread = float(rows.count @ (x - center) ** 2) / n
    if spread <= _ROUNDING * center**2:
        return _nothing("constant in the target group")
    if not square > _LEAST_REST * spread:
        return _nothing("the other features determine it")
    theta = float(rows.count @ ((psi - expected) * rest)) / n / square
    influence = (psi - expected - theta * rest) * rest / square
    for weight, rate in zip(value.measure.weights, value.rates, strict=True):
        u, b = rows.parts @ rate.excess, rows.parts @ rate.base
        own = float(rows.count @ (u * rest)) / n / rate.mean_base / square
        shared = float(rows.count @ (b * rest)) / n / square
        centred = b / rate.mean_base - 1
        influence -= weight * (shared * u / rate.mean_base**2 + own * centred)
    if share_of is None:
        # Per standard deviation, which is estimated too.
        scale = math.sqrt(spread)
        influence = scale * influence + theta * ((x - center) ** 2 - spread) / (2 * scale)
        theta *= scale
    second, fourth = float(rows.count @ influence**2), float(rows.count @ influence**4)
    error = math.sqrt(second) / n
    return HeldFixedEstimate(
        estimate=theta,
        standard_error=error,
        df=second**2 / fourth if fourth > 0 else math.nan,
        influence=influence,
        plain_error=error,
        stacked_error=math.nan,
        refusal="",
    )


def _nothing(refusal: str) -> HeldFixedEstimate:
    nan = math.nan
    return HeldFixedEstimate(
        estimate=nan,
        standard_error=nan,
        df=nan,
        influence=np.zeros(0),
        plain_error=nan,
        stacked_error=nan,
        refusal=refusal,
    )
