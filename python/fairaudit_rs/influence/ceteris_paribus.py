"""Ceteris-paribus scores: the effect of one feature with all others held fixed.

This is Definition 5 of Wang, Ustun and Calmon (2019). The score of value b of feature j against
value a is gamma = E[psi(b, X_-j) - psi(a, X_-j)] over the rows of the target group, where X_-j are
the other features and psi(x) is the mean influence of rows with features x. The estimate is doubly
robust: consistent if either P(Y = 1 | X) or P(x_j = b | X_-j) is. Its standard error is the larger
of two: from the influence function, and from stacked estimating equations, which include the error
of the two regressions.

An arm is one value of a feature, as in a trial.
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
from .rates import N_TERMS, MeasureValue, RateValue

Floats = NDArray[np.float64]
Predict = Callable[[Floats], Floats]

#: A score is refused for lack of overlap if one row has more than this share of an arm's
#: inverse-probability weights 1 / e, with e = P(x_j = value | other features).
_LARGEST_SHARE = 0.1
#: Accepted range of an arm's total weight 1 / e divided by the number of rows, about 1 if there is
#: overlap.
_WEIGHT_RANGE = (0.8, 1.25)
#: If the other features leave less than this share of a feature's variance unexplained, it has no
#: score.
_LEAST_REST = 0.01
#: A variance below this share of the squared mean is treated as 0 (a rounding error).
_ROUNDING = 1e-24
#: The fewest rows of either label in an arm.
_FEWEST = 10.0


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsByFold:
    """The distinct rows of the target group in each fold, with their counts."""

    features: Floats
    label: Floats
    score: Floats
    count: Floats
    folds: NDArray[np.int64]
    call: _native.Call = field(default_factory=_native.Call)

    @cached_property
    def regressors(self) -> Regressors:
        """The rows as regressors."""
        return Regressors.from_features(self.features, self.count, self.folds, self.call)

    @property
    def n_rows(self) -> float:
        """The number of rows."""
        return float(self.count.sum())

    @property
    def terms(self) -> Floats:
        """The four terms of a rate (1, y, f and y f), one column each."""
        y, f = self.label, self.score
        return np.column_stack([np.ones(len(f)), y, f, y * f])


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureArm:
    """One value of a feature: which rows have it, and the predictions if all rows had it."""

    #: 1 for rows with the value, else 0.
    inside: Floats
    #: With the value set in all rows: the changed features of each distinct feature
    #: row; the score of the model and P(Y = 1 | X), both by row.
    moved: Floats
    score: Floats
    label_probability: Floats
    #: P(X_j = value | the other features), and its regression.
    propensity: Floats
    fitted: CrossFit
    #: -1 if the regression is for the opposite value.
    sign: float


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldFixedEstimate:
    """A score with all else held fixed: a contrast of two values of a feature, or a slope."""

    estimate: float
    standard_error: float
    df: float
    #: The influence values behind the standard error, by distinct row and fold.
    influence: Floats
    #: The error from the influence function.
    influence_error: float
    #: The error that includes the regressions; NaN if their influence is unknown.
    stacked_error: float
    refusal: str


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelRegression:
    """The regression of P(Y = 1 | X) in the target group, shared by all features.

    It is fitted on first use.
    """

    rows: RowsByFold
    #: If False, there is no regression, because it is not needed.
    uses_labels: bool = True
    #: The estimator of regressions; None: the default.
    estimator: Any = None

    @cached_property
    def outcome(self) -> CrossFit | None:
        """The regression; None if the measure does not use labels."""
        return (
            fit_nuisance(self.rows.regressors, self.rows.label, self.estimator)
            if self.uses_labels
            else None
        )

    def label_at(self, moved: Floats) -> Floats:
        """Return P(Y = 1 | X) of every row, with ``moved`` in place of the features.

        ``moved`` has one line for each distinct feature row.
        """
        return (
            np.zeros(len(self.rows.count))
            if self.outcome is None
            else self.outcome.probabilities_at(moved)
        )


def arms_of(
    label_regression: LabelRegression, predict: Predict, columns: tuple[int, ...]
) -> list[FeatureArm]:
    """Return the arms of a feature: values 0 and 1 of one column, or one value per column."""
    rows = label_regression.rows
    regressors = rows.regressors.without(columns)
    arms = []
    for number, column in enumerate(columns):
        fitted = fit_nuisance(regressors, rows.features[:, column], label_regression.estimator)
        setting = np.zeros(len(columns))
        if len(columns) == 1:
            arms.append(_arm(label_regression, predict, columns, setting, fitted, -1.0))
        setting[number] = 1.0
        arms.append(_arm(label_regression, predict, columns, setting, fitted, 1.0))
    return arms


def _arm(
    label_regression: LabelRegression,
    predict: Predict,
    columns: tuple[int, ...],
    setting: Floats,
    fitted: CrossFit,
    sign: float,
) -> FeatureArm:
    regressors = label_regression.rows.regressors
    moved = regressors.features.copy()
    moved[:, columns] = setting
    return FeatureArm(
        inside=fitted.y if sign > 0 else 1 - fitted.y,
        moved=moved,
        score=predict(moved)[regressors.distinct_of_row],
        label_probability=label_regression.label_at(moved),
        propensity=fitted.probabilities if sign > 0 else 1 - fitted.probabilities,
        fitted=fitted,
        sign=sign,
    )


def contrast_score(
    label_regression: LabelRegression, value: MeasureValue, low: FeatureArm, high: FeatureArm
) -> HeldFixedEstimate:
    """Return the score of one value of a feature against another."""
    rows, arms = label_regression.rows, [low, high]
    estimate, plain, by_label, by_share = _doubly_robust(rows, value, arms)
    n, count = rows.n_rows, rows.count
    errors, chosen_influence = [math.sqrt(float(count @ plain**2)) / n, math.nan], plain
    change = _regression_influence(rows, label_regression.outcome, arms, by_label, by_share)
    if change is not None:
        stacked = plain + change
        errors[1] = math.sqrt(float(count @ stacked**2)) / n
        chosen_influence = plain if errors[0] >= errors[1] else stacked
    square, fourth = float(count @ chosen_influence**2), float(count @ chosen_influence**4)
    return HeldFixedEstimate(
        estimate=estimate,
        standard_error=float(np.nanmax(errors)),
        df=square**2 / fourth if fourth > 0 else math.nan,
        influence=chosen_influence,
        influence_error=errors[0],
        stacked_error=errors[1],
        refusal=_refusal(rows, arms, value.measure.needs_labels),
    )


def plug_in(
    label_regression: LabelRegression, value: MeasureValue, low: FeatureArm, high: FeatureArm
) -> HeldFixedEstimate:
    """Return the score of the paper: the mean change of psi between the two values.

    It ignores the estimation error of P(Y = 1 | X). Its standard error is that of a plain mean and
    far too small: for comparison only.
    """
    rows = label_regression.rows
    levels = [_level_and_slope(arm, value.coefficients) for arm in (low, high)]
    of_low, of_high = (
        level + slope * arm.label_probability
        for (level, slope), arm in zip(levels, (low, high), strict=True)
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
        influence_error=error,
        stacked_error=math.nan,
        refusal="",
    )


def _regression_influence(
    rows: RowsByFold,
    outcome: CrossFit | None,
    arms: list[FeatureArm],
    by_label: list[Floats],
    by_share: list[Floats],
) -> Floats | None:
    """Return the part of the influence that comes from the regressions; None if unknown."""
    n, call = rows.n_rows, rows.call
    total = np.zeros(len(rows.count))
    low, high = arms
    if low.fitted is high.fitted:
        along = [(low.fitted, low.sign * by_share[0] + high.sign * by_share[1])]
    else:
        along = [(arm.fitted, arm.sign * by) for arm, by in zip(arms, by_share, strict=True)]
    for fitted, by in along:

        def of_share(regressors: Regressors, _: Any, by: Floats = by) -> Floats:
            sums = regressors.columns.sums(regressors.sum_by_distinct_row(by)[None], call)
            return np.asarray(sums[0] / n)

        share_influence = fitted.influence(of_share)
        if share_influence is None:
            return None
        total += share_influence
    if outcome is None:
        return total

    def of_label(regressors: Regressors, basis: Any) -> Floats:
        weights = [regressors.sum_by_distinct_row(by)[None] for by in by_label]
        sums = [
            basis.columns(arm.moved).sums(weight, call)[0]
            for arm, weight in zip(arms, weights, strict=True)
        ]
        return np.asarray((sums[0] + sums[1]) / n)

    label_influence = outcome.influence(of_label)
    return None if label_influence is None else total + label_influence


def _doubly_robust(
    rows: RowsByFold, value: MeasureValue, arms: list[FeatureArm]
) -> tuple[float, Floats, list[Floats], list[Floats]]:
    """Return the score, its influence values, and its derivatives by the linear predictors.

    Both derivatives have one array per arm with one number per row: with respect to the linear
    predictor of P(Y = 1 | X) when the value of the arm is set, and with respect to that of the
    share of the arm at the observed features.

    With value v of the feature set, h_v = P(Y = 1 | X) and E[u | x] = c0 + c1 h_v, where
    u = a - R b for a rate R with numerator a and denominator b. With e_v the share of v and
    B = mean(b), s_v = c0 + c1 h_v + 1{x = v} / e_v c1 (y - h_v), and
    gamma = mean(s_high - s_low) / B. The influence also uses s_v with b in place of u.
    """
    n, count = rows.n_rows, rows.count
    estimate, influence = 0.0, np.zeros(len(count))
    by_label, by_share = ([np.zeros(len(count)) for _ in arms] for _ in range(2))
    for weight, rate in zip(value.measure.weights, value.rates, strict=True):
        of_u = [_augmented(rows, arm, rate.deviation) for arm in arms]
        of_b = [_augmented(rows, arm, rate.denominator) for arm in arms]
        difference = of_u[1] - of_u[0]
        gamma = float(count @ difference) / n / rate.mean_denominator
        denominator_difference = float(count @ (of_b[1] - of_b[0])) / n
        u, b = rows.terms @ rate.deviation, rows.terms @ rate.denominator
        row_influence = (
            difference
            - gamma * rate.mean_denominator
            - denominator_difference * u / rate.mean_denominator
        )
        row_influence -= gamma * (b - rate.mean_denominator)
        estimate += weight * gamma
        influence += weight / rate.mean_denominator * row_influence
        for place, (arm, sign) in enumerate(zip(arms, (-1.0, 1.0), strict=True)):
            of_label, of_share = _derivatives(rows, arm, rate)
            by_label[place] += sign * weight / rate.mean_denominator * of_label
            by_share[place] += sign * weight / rate.mean_denominator * of_share
    return estimate, influence, by_label, by_share


def _level_and_slope(arm: FeatureArm, coefficients: Floats) -> tuple[Floats, Floats]:
    """Return c0 and c1 such that terms with these coefficients have the mean c0 + c1 h.

    The mean is given x with the value of the arm, and h = P(Y = 1 | X).
    """
    assert len(coefficients) == N_TERMS
    one, label, score, both = coefficients
    return one + score * arm.score, label + both * arm.score


def _augmented(rows: RowsByFold, arm: FeatureArm, coefficients: Floats) -> Floats:
    """Return s_v by row, see `_doubly_robust`."""
    level, slope = _level_and_slope(arm, coefficients)
    residual = arm.inside / arm.propensity * (rows.label - arm.label_probability)
    return np.asarray(level + slope * (arm.label_probability + residual))


def _derivatives(rows: RowsByFold, arm: FeatureArm, rate: RateValue) -> tuple[Floats, Floats]:
    """Return the derivatives of s_v by the linear predictors of h and of e_v, by row."""
    _, slope = _level_and_slope(arm, rate.deviation)
    by_label = (
        (1 - arm.inside / arm.propensity)
        * slope
        * arm.label_probability
        * (1 - arm.label_probability)
    )
    by_share = (
        -arm.inside
        / arm.propensity
        * (1 - arm.propensity)
        * slope
        * (rows.label - arm.label_probability)
    )
    return by_label, by_share


def _refusal(rows: RowsByFold, arms: list[FeatureArm], labels: bool) -> str:
    """Return why a score is refused: no overlap, or few rows of a label; "" if it is not."""
    for arm in arms:
        inside = arm.inside > 0
        for label in (0.0, 1.0) if labels else ():
            n = float(rows.count[inside & (rows.label == label)].sum())
            if n < _FEWEST:
                return f"{n:g} rows with label {label:g} and one of its values, {_FEWEST:g} needed"
        weights = 1 / arm.propensity[inside]
        # With overlap, the rows with the value represent all rows.
        stand_for = float(rows.count[inside] @ weights) / rows.n_rows
        if not _WEIGHT_RANGE[0] <= stand_for <= _WEIGHT_RANGE[1]:
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
    """Return the slope of psi on the residual of a column given the other features.

    E[(psi - l)(x - e)] / E[(x - e)^2] with l = E[psi | X_-j] and e = E[x | X_-j] cross-fitted. For
    a binary feature, whose regression is given as ``share_of``, this is the overlap-weighted score,
    which is consistent if e is. Continuous features have the score per standard deviation.
    """
    others, x = rows.regressors.without(columns), rows.features[:, column]
    psi = rows.terms @ value.coefficients
    if share_of is None:
        expected, share = others.means(psi, x)
    else:
        (expected,), share = others.means(psi), share_of.probabilities
    rest, n = x - share, rows.n_rows
    square = float(rows.count @ rest**2) / n
    center = float(rows.count @ x) / n
    spread = float(rows.count @ (x - center) ** 2) / n
    if spread <= _ROUNDING * center**2:
        return _refused("constant in the target group")
    if not square > _LEAST_REST * spread:
        return _refused("the other features determine it")
    theta = float(rows.count @ ((psi - expected) * rest)) / n / square
    influence = (psi - expected - theta * rest) * rest / square
    for weight, rate in zip(value.measure.weights, value.rates, strict=True):
        u, b = rows.terms @ rate.deviation, rows.terms @ rate.denominator
        own = float(rows.count @ (u * rest)) / n / rate.mean_denominator / square
        shared = float(rows.count @ (b * rest)) / n / square
        centred = b / rate.mean_denominator - 1
        influence -= weight * (shared * u / rate.mean_denominator**2 + own * centred)
    if share_of is None:
        # Scale to one standard deviation, and include the error of estimating it.
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
        influence_error=error,
        stacked_error=math.nan,
        refusal="",
    )


def _refused(refusal: str) -> HeldFixedEstimate:
    nan = math.nan
    return HeldFixedEstimate(
        estimate=nan,
        standard_error=nan,
        df=nan,
        influence=np.zeros(0),
        influence_error=nan,
        stacked_error=nan,
        refusal=refusal,
    )
