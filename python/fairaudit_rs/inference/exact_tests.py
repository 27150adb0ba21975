"""Fisher's exact test and the pooled z-test of two proportions."""

from __future__ import annotations

import math

import numpy as np

from .pvalues import clamp_pvalue, standardize_gap, upper_tail

#: Rounding tolerance of the logarithm of a probability.
_ROUNDING = 1e-7


def fisher_pvalue(x_first: int, n_first: int, x_second: int, n_second: int) -> float:
    """Return the two-sided p-value of equal proportions given all four margins (Fisher, 1935).

    It is the sum of the probabilities of all tables that are at most as likely as the observed one,
    with a relative tolerance of 1e-7 for rounding.
    """
    hits = x_first + x_second
    low, high = max(0, hits - n_second), min(hits, n_first)
    x = np.arange(low, high, dtype=np.float64)
    # Log ratios of C(n, x + 1) C(m, k - x - 1) to C(n, x) C(m, k - x).
    steps = np.log((n_first - x) * (hits - x)) - np.log((x + 1) * (n_second - hits + x + 1))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    as_extreme = logs <= logs[x_first - low] + _ROUNDING
    return clamp_pvalue(min(float(weights[as_extreme].sum() / weights.sum()), 1.0))


def pooled_z(x_first: float, n_first: float, x_second: float, n_second: float) -> float:
    """Return the gap of two proportions in standard errors at the pooled proportion.

    There is no continuity correction; the square is the chi-squared statistic of the table.
    """
    pooled = (x_first + x_second) / (n_first + n_second)
    error = math.sqrt(pooled * (1 - pooled) * (1 / n_first + 1 / n_second))
    return standardize_gap(x_first / n_first - x_second / n_second, error)


def two_sided(z: float) -> float:
    """Return the two-sided p-value of a standard normal statistic."""
    return clamp_pvalue(min(2 * upper_tail(abs(z)), 1.0))


def least_expected(x_first: float, n_first: float, x_second: float, n_second: float) -> float:
    """Return the smallest expected count of the table under equal proportions."""
    hits, rows = x_first + x_second, n_first + n_second
    return min(hits, rows - hits) * min(n_first, n_second) / rows
