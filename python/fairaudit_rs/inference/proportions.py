"""Intervals and tests of proportions by formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .intervals import NOTHING, Interval
from .pvalues import standardized

#: Logarithms of ratios beyond which none is looked for.
_FARTHEST = 600.0
#: Logarithms of ratios beyond which the statistic no longer falls, and squares overflow.
_FLAT = 300.0
_LARGEST_EXPONENT = 709.0


class Share(NamedTuple):
    """A proportion of so many rows."""

    value: float
    n_rows: float


def newcombe(first: Share, second: Share, z: float) -> Interval:
    """Newcombe's hybrid score interval of a difference of proportions (1998, method 10)."""
    gap = first.value - second.value
    low_1, high_1 = wilson(*first, z)
    low_2, high_2 = wilson(*second, z)
    return (
        max(gap - math.hypot(first.value - low_1, high_2 - second.value), -1.0),
        min(gap + math.hypot(high_1 - first.value, second.value - low_2), 1.0),
    )


def wilson(p: float, n: float, z: float) -> Interval:
    """Return the score interval of a proportion p of n rows."""
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(center - half, 0.0), min(center + half, 1.0)


def farrington_manning(
    x_first: float, n_first: float, x_second: float, n_second: float, margin: float
) -> float:
    """Return the z statistic of p_first - p_second = margin.

    The variance is that of the proportions which are most likely under the hypothesis: the
    middle root of a cubic.
    """
    p, q = x_first / n_first, x_second / n_second
    theta = n_second / n_first
    a = 1 + theta
    b = -(1 + theta + p + theta * q + margin * (theta + 2))
    c = margin**2 + margin * (2 * p + theta + 1) + p + theta * q
    d = -p * margin * (1 + margin)
    v = b**3 / (3 * a) ** 3 - b * c / (6 * a**2) + d / (2 * a)
    u = math.copysign(math.sqrt(max(b**2 / (3 * a) ** 2 - c / (3 * a), 0.0)), v)
    angle = math.acos(min(max(v / u**3, -1.0), 1.0)) if u else math.pi / 2
    first = 2 * u * math.cos((math.pi + angle) / 3) - b / (3 * a)
    first = min(max(first, 0.0, margin), 1.0, 1 + margin)
    second = min(max(first - margin, 0.0), 1.0)
    variance = first * (1 - first) / n_first + second * (1 - second) / n_second
    return standardized(p - q - margin, math.sqrt(variance))


def ratio_score(
    x_first: float, n_first: float, x_second: float, n_second: float, ratio: float
) -> float:
    """Return the z statistic of p_first / p_second = ratio; NaN where both proportions are 0.

    z = (p_1 - R p_2) / sqrt(q_1 (1 - q_1) / n_1 + R^2 q_2 (1 - q_2) / n_2), with the proportions
    q_1 = R q_2 that are most likely under the hypothesis (Miettinen and Nurminen, 1985; without
    their factor N / (N - 1), as Farrington and Manning, 1990). It falls as the ratio grows.
    """
    a = (n_first + n_second) * ratio
    b = ratio * (n_first + x_second) + x_first + n_second
    c = x_first + x_second
    if c == 0:
        return math.nan
    # The smaller root of a q^2 - b q + c, without a difference of near numbers.
    second = 2 * c / (b + math.sqrt(max(b * b - 4 * a * c, 0.0)))
    second = min(second, 1.0)
    first = min(ratio * second, 1.0)
    variance = first * (1 - first) / n_first + ratio**2 * second * (1 - second) / n_second
    return standardized(x_first / n_first - ratio * x_second / n_second, math.sqrt(variance))


def ratio_interval(first: Share, second: Share, z: float) -> Interval:
    """Return the ratios of two proportions that the score test does not reject.

    From 0 where the first proportion is 0, without an end where the second one is; NaN where both
    are.
    """
    x, n = first.value * first.n_rows, first.n_rows
    y, m = second.value * second.n_rows, second.n_rows
    if x == 0 and y == 0:
        return NOTHING

    def statistic(log_ratio: float) -> float:
        return ratio_score(x, n, y, m, math.exp(max(-_FLAT, min(log_ratio, _FLAT))))

    start = math.log(first.value / second.value) if x and y else 0.0
    low = _exp(_crossing(statistic, z, start)) if x else 0.0
    high = _exp(_crossing(statistic, -z, start)) if y else math.inf
    return low, high


def _exp(value: float) -> float:
    """Return e^value, at most the largest float."""
    return math.exp(min(value, _LARGEST_EXPONENT))


def _crossing(falling: Callable[[float], float], level: float, start: float) -> float:
    """Return where a falling function has a value, to the last bits; looked for from a start."""
    below, above = start, start
    step = 0.25
    while falling(below) < level and below > -_FARTHEST:
        below, step = below - step, 2 * step
    step = 0.25
    while falling(above) > level and above < _FARTHEST:
        above, step = above + step, 2 * step
    while True:
        middle = 0.5 * (below + above)
        if not below < middle < above:
            return middle
        below, above = (middle, above) if falling(middle) >= level else (below, middle)


def mantel_haenszel(hits: NDArray[np.float64], rows: NDArray[np.float64]) -> tuple[float, float]:
    """Return the Mantel-Haenszel difference of two groups and its standard error.

    Of proportions, given as hits and rows by stratum and group; strata in which a group has no rows
    take no part. The variance is that of Sato, Greenland and Robins (1989), which holds both for
    few large strata and for many small ones: (D sum P + sum Q) / (sum k)^2, with the difference D,
    k = n_1 n_2 / N, P = (n_1^2 x_2 - n_2^2 x_1 + n_1 n_2 (n_2 - n_1) / 2) / N^2 and
    Q = (x_1 (n_2 - x_2) + x_2 (n_1 - x_1)) / (2 N) of each stratum.
    """
    rows, hits = (part[np.all(rows > 0, axis=1)] for part in (rows, hits))
    if not len(rows):
        return math.nan, math.nan
    (x, y), (n, m) = hits.T, rows.T
    both = n + m
    weight = n * m / both
    total = weight.sum()
    estimate = float(weight @ (x / n - y / m) / total)
    tilt = ((n**2 * y - m**2 * x + n * m * (m - n) / 2) / both**2).sum()
    spread = ((x * (m - y) + y * (n - x)) / (2 * both)).sum()
    # All strata without variation: rounding can be below 0.
    variance = max(float(estimate * tilt + spread), 0.0) / total**2
    return estimate, math.sqrt(variance)
