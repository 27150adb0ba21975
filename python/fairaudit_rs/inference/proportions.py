"""Intervals and tests of proportions by formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .intervals import NOTHING, Interval
from .pvalues import standardized

#: Logarithms of ratios beyond which none is looked for: their squares are finite.
_FARTHEST = 350.0


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
    # A tiny z leaves nothing but rounding between the limits.
    return min(max(center - half, 0.0), p), max(min(center + half, 1.0), p)


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
        return ratio_score(x, n, y, m, math.exp(log_ratio))

    start = math.log(first.value / second.value) if x and y else 0.0
    low = math.exp(_crossing(statistic, z, start)) if x else 0.0
    high = math.exp(_crossing(statistic, -z, start)) if y else math.inf
    if not (x and y):
        return low, high
    # The logarithm and back is not the ratio to the last bit.
    ratio = first.value / second.value
    return min(low, ratio), max(high, ratio)


def _crossing(falling: Callable[[float], float], level: float, start: float) -> float:
    """Return where a falling function has a value, to the last bits; looked for from a start.

    Infinite where it does not come that far.
    """
    below, above = start, start
    step = 0.25
    while falling(below) < level:
        if below <= -_FARTHEST:
            return -math.inf
        below, step = max(below - step, -_FARTHEST), 2 * step
    step = 0.25
    while falling(above) > level:
        if above >= _FARTHEST:
            return math.inf
        above, step = min(above + step, _FARTHEST), 2 * step
    while True:
        middle = 0.5 * (below + above)
        if not below < middle < above:
            return middle
        below, above = (middle, above) if falling(middle) >= level else (below, middle)


class WithinStrata(NamedTuple):
    """The Mantel-Haenszel difference of two groups, and what its variance is made of.

    The variance is that of Sato, Greenland and Robins (1989), which holds both for few large strata
    and for many small ones: (D sum P + sum Q) / (sum k)^2, with the difference D,
    k = n_1 n_2 / N, P = (n_1^2 x_2 - n_2^2 x_1 + n_1 n_2 (n_2 - n_1) / 2) / N^2 and
    Q = (x_1 (n_2 - x_2) + x_2 (n_1 - x_1)) / (2 N) of each stratum.
    """

    estimate: float
    #: Sums of P, of Q, and of k.
    tilt: float
    spread: float
    weight: float

    def error_at(self, difference: float) -> float:
        """Return the standard error if this is the true difference."""
        # All strata without variation: rounding can be below 0.
        return math.sqrt(max(difference * self.tilt + self.spread, 0.0)) / self.weight

    @property
    def error(self) -> float:
        """The standard error."""
        return self.error_at(self.estimate)

    def statistic(self, margin: float) -> float:
        """Return the z statistic of a difference of the margin; NaN where nothing varies.

        Its standard error is that at the margin, or at the estimate where that is larger: at the
        margin the variance of rates near 0 and 1 can fall below 0, and both are right if the
        margin is true.
        """
        error = max(self.error_at(margin), self.error)
        return (self.estimate - margin) / error if error > 0 and self.error > 0 else math.nan


def mantel_haenszel(hits: NDArray[np.float64], rows: NDArray[np.float64]) -> WithinStrata:
    """Return the Mantel-Haenszel difference of two groups.

    Of proportions, given as hits and rows by stratum and group; strata in which a group has no rows
    take no part.
    """
    rows, hits = (part[np.all(rows > 0, axis=1)] for part in (rows, hits))
    if not len(rows):
        return WithinStrata(*[math.nan] * 4)
    (x, y), (n, m) = hits.T, rows.T
    both = n + m
    weight = n * m / both
    total = float(weight.sum())
    tilt = ((n**2 * y - m**2 * x + n * m * (m - n) / 2) / both**2).sum()
    spread = ((x * (m - y) + y * (n - x)) / (2 * both)).sum()
    return WithinStrata(float(weight @ (x / n - y / m) / total), float(tilt), float(spread), total)
