"""Measure the quality of the regressions of an audit: AUC, calibration and overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .nuisance import CrossFit, EstimatorFit, RidgeLogistic

Floats = NDArray[np.float64]

_BINS = 10
_MAX_STEPS = 50
_CONVERGED = 1e-10
#: With a steeper slope, the labels are separated and the regression has no solution.
_STEEPEST = 1e6


@dataclass(frozen=True, kw_only=True)
class NuisanceFit:
    """The method and the out-of-sample quality of a fitted probability.

    Attributes
    ----------
    of : str
        The name of the probability.
    learner : str
        ``"ridge logistic, main effects and products"``, ``"ridge logistic, main effects"``,
        ``"given"``, or the class of an estimator.
    penalty : float
        The penalty of the ridge regression; NaN for others.
    auc : float
        The chance that a positive row has a larger probability than a negative one.
    calibration_slope : float
        The slope of a logistic regression of the label on the logit of the probability: 1 if
        calibrated, below 1 if overconfident.
    calibration_error : float
        The mean absolute difference between the mean probability and the share of positive rows,
        over ten equal-sized bins by probability; some of it is noise.
    smallest, largest : float
        The smallest and the largest probability.
    largest_share : float
        The largest share of one row in the weights 1 / e of its label, with e the probability of
        that label; a large share means that there is no overlap.
    """

    of: str
    learner: str
    penalty: float
    auc: float
    calibration_slope: float
    calibration_error: float
    smallest: float
    largest: float
    largest_share: float


def describe_fit(of: str, fitted: CrossFit) -> NuisanceFit:
    """Return the quality of a cross-fitted regression."""
    rows = fitted.regressors
    count, positive = rows.sum_by_fold(np.ones(len(fitted.y))), rows.sum_by_fold(fitted.y)
    p = np.zeros(count.shape)
    p[rows.fold, rows.distinct_of_row] = fitted.probabilities
    present = count > 0
    penalty = fitted.penalty if isinstance(fitted, RidgeLogistic) else math.nan
    share = positive[present] / count[present]
    return measure_fit(of, learner_name(fitted), p[present], share, count[present], penalty)


def learner_name(fitted: CrossFit) -> str:
    """Return the name of the learner of a regression."""
    if isinstance(fitted, EstimatorFit):
        return fitted.name
    products = " and products" if fitted.regressors.basis.pairs else ""
    return f"ridge logistic, main effects{products}"


def measure_fit(
    of: str, learner: str, p: Floats, y: Floats, count: Floats, penalty: float = math.nan
) -> NuisanceFit:
    """Return the quality of probabilities for rows with counts and shares of positive labels."""
    order = np.lexsort((y, p))
    p, y, count = p[order], y[order], count[order]
    return NuisanceFit(
        of=of,
        learner=learner,
        penalty=penalty,
        auc=_auc(p, y, count),
        calibration_slope=_slope(p, y, count),
        calibration_error=_error(p, y, count),
        smallest=float(p[0]),
        largest=float(p[-1]),
        largest_share=max(_largest_share(p, y * count), _largest_share(1 - p, (1 - y) * count)),
    )


def _auc(p: Floats, y: Floats, count: Floats) -> float:
    """Return the chance that a positive row is above a negative one; ties count half."""
    _, place = np.unique(p, return_inverse=True)
    positive, negative = np.bincount(place, count * y), np.bincount(place, count * (1 - y))
    pairs = positive.sum() * negative.sum()
    below = np.cumsum(negative) - negative / 2
    return float(positive @ below / pairs) if pairs > 0 else math.nan


def _slope(p: Floats, y: Floats, count: Floats) -> float:
    """Return the slope of a logistic regression on the logit; NaN if it does not exist."""
    positive = float(count @ y)
    inside = (p > 0) & (p < 1)
    p, y, count = p[inside], y[inside], count[inside]
    if not 0 < positive < count.sum() or np.ptp(p) == 0:
        return math.nan
    x = np.column_stack([np.ones(len(p)), np.log(p) - np.log1p(-p)])
    coef = np.array([0.0, 1.0])
    for _ in range(_MAX_STEPS):
        with np.errstate(over="ignore"):
            fitted = 1 / (1 + np.exp(-x @ coef))
        spread = x.T @ (x * (count * fitted * (1 - fitted))[:, None])
        if not np.linalg.det(spread) > 0:
            return math.nan
        step = np.linalg.solve(spread, x.T @ (count * (y - fitted)))
        coef = coef + step
        if not abs(coef[1]) < _STEEPEST:
            return math.nan
        if np.abs(step).max() < _CONVERGED * max(1.0, float(np.abs(coef).max())):
            return float(coef[1])
    return math.nan


def _error(p: Floats, y: Floats, count: Floats) -> float:
    """Return the mean absolute error over equal-sized bins; tied rows share a bin."""
    values, place = np.unique(p, return_inverse=True)
    number = np.bincount(place, count)
    residual = np.bincount(place, count * (y - p))
    middle = np.cumsum(number) - number / 2
    bins = np.minimum((_BINS * middle / number.sum()).astype(np.int64), _BINS - 1)
    assert len(values) == len(bins)
    return float(np.abs(np.bincount(bins, residual)).sum() / number.sum())


def _largest_share(p: Floats, count: Floats) -> float:
    inside = (count > 0) & (p > 0)
    if not inside.any():
        return math.nan
    weights = 1 / p[inside]
    return float(weights.max() / (count[inside] @ weights))
