"""Intervals and score tests of one or two proportions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .intervals import NO_INTERVAL, Interval
from .roots import narrowed
from .score import NO_SCORE, ScoreStatistic, interval_of

#: Largest absolute log ratio that is searched; its square is finite.
_FARTHEST = 350.0
#: With at least this many rows of each outcome in both groups, scores are smooth.
_FEWEST = 5


class SampleProportion(NamedTuple):
    """A proportion and its number of rows."""

    value: float
    n_rows: float


def newcombe_interval(first: SampleProportion, second: SampleProportion, z: float) -> Interval:
    """Return Newcombe's hybrid score interval of a difference of proportions (1998, method 10)."""
    gap = first.value - second.value
    low_1, high_1 = wilson_interval(*first, z)
    low_2, high_2 = wilson_interval(*second, z)
    return (
        max(gap - math.hypot(first.value - low_1, high_2 - second.value), -1.0),
        min(gap + math.hypot(high_1 - first.value, second.value - low_2), 1.0),
    )


def wilson_interval(p: float, n: float, z: float) -> Interval:
    """Return the score interval of a proportion p of n rows."""
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    # For tiny z, rounding could put a limit on the wrong side of p.
    return min(max(center - half, 0.0), p), max(min(center + half, 1.0), p)


def farrington_manning(
    x_first: float, n_first: float, x_second: float, n_second: float, margin: float
) -> ScoreStatistic:
    """Return the score of p_first - p_second = margin, with its skewness correction.

    The moments are taken at the most likely proportions under the hypothesis, which solve a cubic
    equation (Farrington and Manning, 1990).
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
    of_first, of_second = first * (1 - first) / n_first, second * (1 - second) / n_second
    # The third moment of a proportion is (1 - 2 p) / n times its variance.
    third = of_first * (1 - 2 * first) / n_first - of_second * (1 - 2 * second) / n_second
    return ScoreStatistic.from_moments(p - q - margin, of_first + of_second, third)


def difference_interval(first: SampleProportion, second: SampleProportion, z: float) -> Interval:
    """Return the differences of two proportions that the score test does not reject."""
    x, y = first.value * first.n_rows, second.value * second.n_rows

    def score(margin: float) -> ScoreStatistic:
        return farrington_manning(x, first.n_rows, y, second.n_rows, margin)

    return interval_of(score, first.value - second.value, (-1.0, 1.0), z)


def ratio_score(
    x_first: float, n_first: float, x_second: float, n_second: float, ratio: float
) -> ScoreStatistic:
    """Return the score of p_first / p_second = ratio; NaN if both proportions are 0.

    z = (p_1 - R p_2) / sqrt(q_1 (1 - q_1) / n_1 + R^2 q_2 (1 - q_2) / n_2), with the proportions
    q_1 = R q_2 that are most likely under the hypothesis (Miettinen and Nurminen, 1985, but without
    their factor N / (N - 1), as Farrington and Manning, 1990), and its skewness correction. Both
    decrease in the ratio.
    """
    a = (n_first + n_second) * ratio
    b = ratio * (n_first + x_second) + x_first + n_second
    c = x_first + x_second
    if c == 0:
        return NO_SCORE
    # The smaller root of a q^2 - b q + c, in the form that avoids cancellation.
    inside = b * b - 4 * a * c
    second = 2 * c / (b + math.sqrt(inside if inside > 0 else 0.0))
    second = second if second < 1 else 1.0
    first = ratio * second
    first = first if first < 1 else 1.0
    of_first = first * (1 - first) / n_first
    of_second = ratio**2 * second * (1 - second) / n_second
    third = of_first * (1 - 2 * first) / n_first - of_second * (1 - 2 * second) / n_second * ratio
    distance = x_first / n_first - ratio * x_second / n_second
    return ScoreStatistic.from_moments(distance, of_first + of_second, third)


def ratio_interval(first: SampleProportion, second: SampleProportion, z: float) -> Interval:
    """Return the ratios of two proportions that the score test does not reject.

    The lower end is 0 if the first proportion is 0, the upper end infinite if the second one is 0;
    both are NaN if both proportions are 0.
    """
    x, n = first.value * first.n_rows, first.n_rows
    y, m = second.value * second.n_rows, second.n_rows
    if x == 0 and y == 0:
        return NO_INTERVAL

    def score(ratio: float) -> ScoreStatistic:
        return ratio_score(x, n, y, m, ratio)

    return ratio_interval_of(
        score, first.value, second.value, z, min(x, n - x, y, m - y) >= _FEWEST
    )


def ratio_interval_of(
    score: Callable[[float], ScoreStatistic],
    above: float,
    below: float,
    z: float,
    is_smooth: bool = False,
) -> Interval:
    """Return the ratios around above / below that neither side of a score test rejects.

    The lower end is 0 if ``above`` is 0, the upper end infinite if ``below`` is 0. ``is_smooth``
    says that the scores have no kinks, which can occur with few rows of an outcome.
    """
    start = math.log(above / below) if above and below else 0.0
    low, high = 0.0, math.inf
    if above:
        low = math.exp(_crossing(lambda log: min(score(math.exp(log))), z, start, is_smooth))
    if below:
        high = math.exp(_crossing(lambda log: max(score(math.exp(log))), -z, start, is_smooth))
    if not (above and below):
        return low, high
    # Transforming the ratio forth and back can change its last bit.
    return min(low, above / below), max(high, above / below)


def _crossing(
    falling: Callable[[float], float], level: float, start: float, is_smooth: bool
) -> float:
    """Find where a decreasing function takes a value, to the last bit, from a starting point.

    Infinite if it does not reach the value.
    """
    below, above = start, start
    at_below = at_above = falling(start)
    step = 0.25
    while at_below < level:
        if below <= -_FARTHEST:
            return -math.inf
        below, step = max(below - step, -_FARTHEST), 2 * step
        at_below = falling(below)
    step = 0.25
    while at_above > level:
        if above >= _FARTHEST:
            return math.inf
        above, step = min(above + step, _FARTHEST), 2 * step
        at_above = falling(above)
    sure_below, sure_above = below, above
    if is_smooth:
        ends = (below, at_below - level), (above, at_above - level)
        sure_below, sure_above = narrowed(falling, level, *ends)
    while True:
        middle = 0.5 * (below + above)
        if not below < middle < above:
            return middle
        is_sure = not sure_below < middle < sure_above
        if middle <= sure_below if is_sure else falling(middle) >= level:
            below = middle
        else:
            above = middle
