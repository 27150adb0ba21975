"""Estimate the calibration error of a group: CAL = E|h - f| with h = P(y = 1 | X).

The estimate is the mean of sgn(h - f)(y - f) with h cross-fitted; errors in h can only make it
smaller. Near 0 the signs are noise and a two-sided interval would not cover, so it is only given
when the estimate is at least 5 standard errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.pvalues import normal_of_tail
from .nuisance import Regressors, deal_folds, fit_nuisance
from .regression_quality import NuisanceFit, describe_fit, measure_fit

Floats = NDArray[np.float64]

#: An estimate of at least this many standard errors gets a two-sided interval.
ENOUGH = 5.0
#: A group with fewer rows gets no standard error.
FEWEST_ROWS = 50
FEW = f"fewer than {FEWEST_ROWS} rows: nothing can be said"
CALIBRATED = "not distinguishable from calibrated"
_BINS = 10
MISCALIBRATED = "shown to be miscalibrated, its size not pinned down"
MEASURED = "miscalibrated"


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationDistance:
    """The calibration error of a group, with its limits."""

    value: float
    standard_error: float
    #: NaN below 5 standard errors.
    interval: tuple[float, float]
    #: The one-sided lower limit.
    lower: float
    words: str
    #: The expected calibration error over ten score bins, for comparison: it needs no regression
    #: but is biased upwards in small groups.
    binned: float
    #: sgn(h - f)(y - f) minus its mean, in the order of the rows.
    influence: Floats
    fit: NuisanceFit


def calibration_of(
    name: str,
    rows: Floats,
    features: Floats,
    given: Floats | None,
    level: float,
    *,
    n_folds: int,
    estimator: Any,
    call: _native.Call,
) -> CalibrationDistance:
    """Return the calibration error of a group from its rows (label, score).

    P(y = 1 | X) is fitted if it is not given.
    """
    described = f"P(y = 1 | X) in {name}"
    if given is None:
        first, counts, place = _native.distinct_rows(np.column_stack([features, rows]), call)
        kind, fold, count = deal_folds(counts.astype(np.int64), n_folds)
        label, score = rows[first[kind]].T
        fitted = fit_nuisance(
            Regressors.from_features(features[first[kind]], count, fold, call), label, estimator
        )
        h, how = fitted.probabilities, describe_fit(described, fitted)
    else:
        first, counts, place = _native.distinct_rows(np.column_stack([rows, given]), call)
        kind, count = np.arange(len(first)), counts.astype(np.float64)
        label, score = rows[first].T
        h, how = given[first], measure_fit(described, "given", given[first], label, count)
    terms = np.sign(h - score) * (label - score)
    value, error = _mean(terms, count)
    if len(rows) < FEWEST_ROWS:
        error = math.nan
    lower = value - normal_of_tail(1 - level) * error
    # Equal rows may be in several folds: take the mean of their terms.
    mean_terms = np.bincount(kind, count * terms) / np.bincount(kind, count)
    return CalibrationDistance(
        value=value,
        standard_error=error,
        interval=two_sided(value, error, level)
        if value >= ENOUGH * error > 0
        else (math.nan, math.nan),
        lower=lower,
        words=_words(value, error, lower),
        binned=_binned(label, score, count),
        influence=mean_terms[place] - value,
        fit=how,
    )


def _binned(label: Floats, score: Floats, count: Floats) -> float:
    """Return the sum of |sum (y - f)| over score bins, divided by the number of rows."""
    place = np.minimum((score * _BINS).astype(np.int64), _BINS - 1)
    sums = np.bincount(place, count * (label - score), _BINS)
    return float(np.abs(sums).sum() / count.sum())


def two_sided(value: float, error: float, level: float) -> tuple[float, float]:
    """Return the normal interval."""
    half = normal_of_tail((1 - level) / 2) * error
    return value - half, value + half


def _words(value: float, error: float, lower: float) -> str:
    if math.isnan(error):
        return FEW
    if not lower > 0:
        return CALIBRATED
    return MEASURED if value >= ENOUGH * error > 0 else MISCALIBRATED


def _mean(terms: Floats, count: Floats) -> tuple[float, float]:
    """Return the mean and its standard error."""
    n = float(count.sum())
    value = float(count @ terms) / n
    square = float(count @ (terms - value) ** 2)
    return value, math.sqrt(square / (n - 1) / n) if n > 1 else math.nan
