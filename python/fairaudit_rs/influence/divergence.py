"""Measure in nats how the features (DA_in) and mean scores (DA_out) of a group differ from others.

DA_in = KL(P0 || P1) has the lower bound D = mean_0 l - (mean_1 exp(l) - 1) for any l. Here l is
logit P(S = 1) - logit P(S = 1 | X), cross-fitted. Errors in l make D smaller, so it has a one-sided
limit but no interval. DA_out is the divergence of two Bernoulli laws with the mean scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.pvalues import normal_of_tail
from .marginal_scores import ENOUGH_EVENTS
from .nuisance import Regressors, deal_folds, fit_nuisance
from .regression_quality import NuisanceFit, describe_fit, measure_fit

Floats = NDArray[np.float64]

#: With overlap, no row has a larger share of the weights, and the mean weight is in this range.
_LARGEST_SHARE = 0.05
_MEAN_WEIGHT = (0.9, 1.1)
#: The fewest rows of either group for the input part.
_FEWEST_ROWS = 50
#: Signed roots below this have the standard error at 0.
_SMALL = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class InputDivergence:
    """The divergence of the features, as a lower bound."""

    #: NaN if refused.
    value: float
    standard_error: float
    #: The one-sided lower limit.
    lower: float
    #: Why there is no value; "" if there is one.
    refusal: str
    fit: NuisanceFit


def input_divergence(
    target: Floats,
    others: Floats,
    given: tuple[Floats, Floats] | None,
    level: float,
    *,
    n_folds: int,
    estimator: Any,
    call: _native.Call,
) -> InputDivergence:
    """Return the divergence of the features of the target group from those of the others.

    ``given``: known probabilities that a row is one of the others, for the rows of both.
    """
    described = "P(group is not the target | X)"
    other = np.repeat([0.0, 1.0], [len(target), len(others)])
    values = np.vstack([target, others]) if given is None else np.concatenate(given)[:, None]
    first, counts, _ = _native.distinct_rows(np.column_stack([values, other]), call)
    if given is None:
        kind, fold, count = deal_folds(counts.astype(np.int64), n_folds)
        other = other[first[kind]]
        regressors = Regressors.from_features(values[first[kind]], count, fold, call)
        fitted = fit_nuisance(regressors, other, estimator)
        share, how = fitted.probabilities, describe_fit(described, fitted)
    else:
        count, other, share = counts.astype(np.float64), other[first], values[first, 0]
        how = measure_fit(described, "given", share, other, count)
    whole = float(count @ other / count.sum())
    log_ratio = math.log(whole / (1 - whole)) - np.log(share) + np.log1p(-share)
    return _bound(log_ratio, other > 0, count, level, how)


def _bound(
    log_ratio: Floats, other: NDArray[np.bool_], count: Floats, level: float, how: NuisanceFit
) -> InputDivergence:
    # Avoid overflow: a weight this large is refused in any case.
    ratio = np.exp(np.minimum(log_ratio[other], 700.0))
    in_target, in_others = count[~other], count[other]
    first, of_first = _moments(log_ratio[~other], in_target)
    second, of_second = _moments(ratio, in_others)
    value, error = first - (second - 1), math.sqrt(of_first + of_second)
    largest = float(ratio.max() / (in_others @ ratio)) if ratio.any() else math.nan
    refusal, overlap = "", ": the features of the group and of the others do not overlap"
    fewest = min(in_target.sum(), in_others.sum())
    if fewest < _FEWEST_ROWS:
        refusal = f"one side has {fewest:g} rows, {_FEWEST_ROWS} needed"
    elif not largest <= _LARGEST_SHARE:
        refusal = f"one row of the others carries {100 * largest:.2g} % of the weights{overlap}"
    elif not _MEAN_WEIGHT[0] <= second <= _MEAN_WEIGHT[1]:
        refusal = f"the mean weight of the others is {second:.2f}, not 1{overlap}"
    if refusal:
        value = error = math.nan
    lower = value - normal_of_tail(1 - level) * error
    return InputDivergence(value=value, standard_error=error, lower=lower, refusal=refusal, fit=how)


def _moments(values: Floats, count: Floats) -> tuple[float, float]:
    """Return the mean and its variance."""
    n = float(count.sum())
    mean = float(count @ values) / n
    if n <= 1:
        return mean, math.nan
    return mean, float(count @ (values - mean) ** 2) / (n - 1) / n


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputDivergence:
    """The divergence of the mean scores, and its derivative by that of the target group.

    With too few events everything but the value is NaN.
    """

    value: float
    #: The signed root of the divergence, in standard errors.
    statistic: float
    standard_error: float
    interval: tuple[float, float]
    derivative: float


def output_divergence(target: Floats, others: Floats, level: float) -> OutputDivergence:
    """Return the divergence of the mean scores.

    The interval comes from the signed root r = sgn(p - q) sqrt(2 KL), which is close to normal even
    if the means p and q are equal; the divergence itself is not.
    """
    (p, of_p), (q, of_q) = (
        _moments(sample, np.ones(len(sample))) for sample in _sorted(target, others)
    )
    value = _bernoulli(p, q)
    events = [
        number for n, mean in ((len(target), p), (len(others), q)) for number in _events(n, mean)
    ]
    if min(events) < ENOUGH_EVENTS:
        nan = math.nan
        return OutputDivergence(
            value=value, statistic=nan, standard_error=nan, interval=(nan, nan), derivative=nan
        )
    by_p = math.log(p * (1 - q) / (q * (1 - p)))
    by_q = (q - p) / (q * (1 - q))
    error = math.sqrt(by_p**2 * of_p + by_q**2 * of_q)
    root = math.copysign(math.sqrt(2 * value), p - q)
    of_root = math.sqrt((of_p + of_q) / (q * (1 - q)))
    if abs(root) > _SMALL:
        of_root = error / abs(root)
    half = normal_of_tail((1 - level) / 2) * of_root
    low, high = root - half, root + half
    least = 0.0 if low <= 0 <= high else min(low**2, high**2) / 2
    return OutputDivergence(
        value=value,
        statistic=root / of_root if of_root > 0 else math.nan,
        standard_error=error,
        interval=(least, max(low**2, high**2) / 2),
        derivative=by_p,
    )


def _events(n: int, mean: float) -> tuple[float, float]:
    """Return the expected number of events and of non-events."""
    return n * mean, n * (1 - mean)


def _sorted(*groups: Floats) -> list[Floats]:
    """Return sorted numbers, so that sums do not depend on the order of the rows."""
    return [np.sort(group) for group in groups]


def _bernoulli(p: float, q: float) -> float:
    """Return the divergence of two Bernoulli laws; infinite if q excludes an outcome of p."""
    total = 0.0
    for own, other in ((p, q), (1 - p, 1 - q)):
        if own > 0:
            total += own * math.log(own / other) if other > 0 else math.inf
    return max(total, 0.0)
