"""Tests and intervals from limits of two groups, drawn at random levels and melded.

Fay, Proschan and Brittain (2015): a lower limit of one group less an upper limit of the other is a
lower limit of their difference, each at a level of its own; the share of such differences below a
margin is a p-value. The two groups must be drawn independently.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .intervals import Interval, quantile
from .pvalues import monte_carlo_pvalue

Limits = _native.Limits


def pvalue_above(first: Limits, second: Limits, margin: float = 0.0) -> float:
    """Return the p-value of first - second being at most the margin: small if it is above."""
    return _share(first.lower - second.upper <= margin)


def pvalue_below(first: Limits, second: Limits, margin: float = 0.0) -> float:
    """Return the p-value of first - second being at least the margin: small if it is below."""
    return _share(first.upper - second.lower >= margin)


def melded_pvalue(first: Limits, second: Limits, alternative: str = "two-sided") -> float:
    """Return the p-value of equality: twice the smaller one-sided one, or one of these."""
    if alternative == "greater":
        return pvalue_above(first, second)
    if alternative == "less":
        return pvalue_below(first, second)
    return min(1.0, 2 * min(pvalue_above(first, second), pvalue_below(first, second)))


def ratio_pvalue_above(first: Limits, second: Limits, ratio: float) -> float:
    """Return the p-value of first / second being at most the ratio, of values of at least 0."""
    return _share(first.lower <= ratio * second.upper)


def ratio_pvalue_below(first: Limits, second: Limits, ratio: float) -> float:
    """Return the p-value of first / second being at least the ratio, of values of at least 0."""
    return _share(first.upper >= ratio * second.lower)


def interval_of_difference(first: Limits, second: Limits, level: float) -> Interval:
    """Return the interval that leaves out what the tests of its level reject."""
    return _between(first.lower - second.upper, first.upper - second.lower, level)


def interval_of_ratio(first: Limits, second: Limits, level: float) -> Interval:
    """Return the interval of first / second, of values of at least 0; it may have no upper end."""
    with np.errstate(divide="ignore"):
        return _between(first.lower / second.upper, first.upper / second.lower, level)


def interval_of_value(limits: Limits, level: float) -> Interval:
    """Return the interval of the value of one group."""
    return _between(limits.lower, limits.upper, level)


def _between(lower: NDArray[np.float64], upper: NDArray[np.float64], level: float) -> Interval:
    tail = (1 - level) / 2
    return quantile(lower, tail), quantile(upper, 1 - tail)


def _share(extreme: NDArray[np.bool_]) -> float:
    return monte_carlo_pvalue(int(extreme.sum()), len(extreme))
