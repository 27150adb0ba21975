"""Melded confidence limits: tests and intervals of two groups from limits at random levels.

Fay, Proschan and Brittain (2015): draw a lower limit of one group and an upper limit of the other,
each at a random level. The share of draws whose difference lies below a margin is a p-value. The
limits of the two groups must be drawn independently.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .intervals import Interval, quantile
from .pvalues import monte_carlo_pvalue

Limits = _native.Limits


def pvalue_above(first: Limits, second: Limits, margin: float = 0.0) -> float:
    """Return the p-value of "first - second is at most the margin"."""
    return _share(first.lower - second.upper <= margin)


def pvalue_below(first: Limits, second: Limits, margin: float = 0.0) -> float:
    """Return the p-value of "first - second is at least the margin"."""
    return _share(first.upper - second.lower >= margin)


def melded_pvalue(first: Limits, second: Limits, alternative: str = "two-sided") -> float:
    """Return the p-value of equality: twice the smaller one-sided p-value, or one of the two."""
    if alternative == "greater":
        return pvalue_above(first, second)
    if alternative == "less":
        return pvalue_below(first, second)
    return min(1.0, 2 * min(pvalue_above(first, second), pvalue_below(first, second)))


def ratio_pvalue_above(first: Limits, second: Limits, ratio: float) -> float:
    """Return the p-value of "first / second is at most the ratio", for non-negative values."""
    return _share(first.lower <= ratio * second.upper)


def ratio_pvalue_below(first: Limits, second: Limits, ratio: float) -> float:
    """Return the p-value of "first / second is at least the ratio", for non-negative values."""
    return _share(first.upper >= ratio * second.lower)


def interval_of_difference(first: Limits, second: Limits, level: float) -> Interval:
    """Return the interval of differences that the tests at this level do not reject."""
    return _between(first.lower - second.upper, first.upper - second.lower, level)


def interval_of_ratio(first: Limits, second: Limits, level: float) -> Interval:
    """Return the interval of first / second for non-negative values; the end may be infinite."""
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
