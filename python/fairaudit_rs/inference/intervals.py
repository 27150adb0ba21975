"""Quantiles, and intervals from bootstrap replicates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]
Interval = tuple[float, float]
NO_INTERVAL = (math.nan, math.nan)


@dataclass(frozen=True)
class Bootstrap:
    """Bootstrap values and variances by replicate and group; variances may be NaN."""

    values: NDArray[np.float64]
    variances: NDArray[np.float64]

    def undefined_share(self) -> float:
        """Return the share of replicates in which some group has no value."""
        undefined = np.isnan(self.values)
        return float(undefined.any(axis=1).mean()) if undefined.any() else 0.0


def clip_interval(interval: Interval, bound: float) -> Interval:
    """Clip an interval of a difference to -bound and bound."""
    low, high = interval
    return interval if math.isnan(low) else (max(low, -bound), min(high, bound))


def tail_quantiles(values: NDArray[np.float64], level: float) -> Interval:
    """Return the quantiles with (1 - level) / 2 in each tail.

    Undefined values count as beyond both quantiles, which can only widen the interval.
    """
    alpha = 1 - level
    undefined = np.isnan(values)
    if not undefined.any():
        low, high = quantiles(values, (alpha / 2, 1 - alpha / 2))
        return low, high
    lower = quantile(np.where(undefined, -np.inf, values), alpha / 2)
    return lower, quantile(np.where(undefined, np.inf, values), 1 - alpha / 2)


def quantile(values: NDArray[np.float64], level: float) -> float:
    """Return a single quantile as `quantiles` does."""
    return quantiles(values, (level,))[0]


def quantiles(values: NDArray[np.float64], levels: Sequence[float]) -> list[float]:
    """Return the quantiles at position level (n + 1) of the sorted values, interpolated linearly.

    Replicates and the true value are exchangeable to first order, so the true value lies below the
    k-th of n replicates with probability k / (n + 1). Beyond all replicates a quantile is infinite.
    """
    n = len(values)
    places = [level * (n + 1) for level in levels]
    below = [math.floor(place * (1 + 1e-12)) for place in places]
    inside = [k for k, place in zip(below, places, strict=True) if 1 <= place <= n]
    ranks = {rank for k in inside for rank in (k - 1, min(k, n - 1))}
    ordered = np.partition(values, sorted(ranks)) if ranks else values

    def value(place: float, k: int) -> float:
        if place < 1:
            return -math.inf
        if place > n:
            return math.inf
        share = max(place - k, 0.0)
        low, high = float(ordered[k - 1]), float(ordered[min(k, n - 1)])
        return low if share == 0 or low == high else (1 - share) * low + share * high

    return [value(place, k) for place, k in zip(places, below, strict=True)]


def studentize(
    replicates: NDArray[np.float64], estimate: float, variances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return t* = (T* - T) / sqrt(v*): 0 if T* = T, otherwise infinite if v* = 0."""
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
        return NO_INTERVAL
    if method == "studentized":
        if not standard_error > 0:
            return NO_INTERVAL
        low, high = tail_quantiles(studentize(replicates, estimate, variances), level)
        return estimate - high * standard_error, estimate - low * standard_error
    low, high = tail_quantiles(replicates, level)
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
    """Return the quantile of the maximum |t*| over pairs, as a factor of simultaneous intervals."""
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
            return NO_INTERVAL
        low, high = max(low, from_, -to), max(high, to, -from_)
    return low, high
