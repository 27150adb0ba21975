"""Intervals from a formula, or from bootstrap replicates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]
Interval = tuple[float, float]
NOTHING = (math.nan, math.nan)


@dataclass(frozen=True)
class Bootstrap:
    """Values and variances of the metric by replicate and group; variances may be NaN."""

    values: NDArray[np.float64]
    variances: NDArray[np.float64]

    def undefined_share(self) -> float:
        """Return the share of replicates in which some group has no value."""
        return float(np.isnan(self.values).any(axis=1).mean())


def tails(values: NDArray[np.float64], level: float) -> Interval:
    """Return the quantiles that leave (1 - level)/2 in each tail.

    What is undefined lies beyond both: an interval can only become wider by it.
    """
    alpha = 1 - level
    lower = quantile(np.where(np.isnan(values), -np.inf, values), alpha / 2)
    return lower, quantile(np.where(np.isnan(values), np.inf, values), 1 - alpha / 2)


def quantile(values: NDArray[np.float64], level: float) -> float:
    """Return the quantile at place level (n + 1) of the sorted values, interpolated linearly.

    Replicates and the truth are exchangeable to a first order, so the truth lies below the k-th of
    n with probability k / (n + 1); beyond all of them it lies anywhere.
    """
    n = len(values)
    place = level * (n + 1)
    if place < 1:
        return -math.inf
    if place > n:
        return math.inf
    below = math.floor(place * (1 + 1e-12))
    share = max(place - below, 0.0)
    at = [below - 1, min(below, n - 1)]
    part = np.partition(values, at)
    low, high = (float(part[i]) for i in at)
    return low if share == 0 or low == high else (1 - share) * low + share * high


def studentize(
    replicates: NDArray[np.float64], estimate: float, variances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return t* = (T* - T) / sqrt(v*): 0 where T* = T, infinite where only v* = 0."""
    gap = replicates - estimate
    gap[np.abs(gap) <= 1e-14 * (np.abs(replicates) + abs(estimate))] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        t = gap / np.sqrt(variances)
    return np.where((gap == 0) & ~np.isnan(variances), 0.0, t)


def bootstrap_interval(
    method: str,
    estimate: float,
    standard_error: float,
    replicates: NDArray[np.float64],
    variances: NDArray[np.float64],
    level: float,
) -> Interval:
    """Return the studentized, basic or percentile interval of an estimate."""
    if math.isnan(estimate):
        return NOTHING
    if method == "studentized":
        if not standard_error > 0:
            return NOTHING
        low, high = tails(studentize(replicates, estimate, variances), level)
        return estimate - high * standard_error, estimate - low * standard_error
    low, high = tails(replicates, level)
    if method == "basic":
        return 2 * estimate - high, 2 * estimate - low
    return low, high


def simultaneous_factor(
    values: NDArray[np.float64],
    variances: NDArray[np.float64],
    bootstrap: Bootstrap,
    pairs: list[Pair],
    level: float,
) -> float:
    """Return the quantile of max over pairs |t*|: the factor of simultaneous intervals."""
    largest = np.zeros(len(bootstrap.values))
    for i, j in pairs:
        if not variances[i] + variances[j] > 0:
            continue
        t = studentize(
            bootstrap.values[:, i] - bootstrap.values[:, j],
            values[i] - values[j],
            bootstrap.variances[:, i] + bootstrap.variances[:, j],
        )
        largest = np.maximum(largest, np.where(np.isnan(t), np.inf, np.abs(t)))
    return quantile(largest, level)


def range_of_pairs(intervals: list[Interval]) -> Interval:
    """Return the interval of max - min from simultaneous intervals of all pairs."""
    low, high = 0.0, 0.0
    for from_, to in intervals:
        if math.isnan(from_) or math.isnan(to):
            return NOTHING
        low, high = max(low, from_, -to), max(high, to, -from_)
    return low, high
