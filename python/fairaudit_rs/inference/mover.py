"""MOVER: intervals and tests of differences and ratios from the confidence limits of each value.

The method of variance estimates recovery (Zou and Donner, 2008). With limits l, u of each value,
the interval of the difference d = a - b is d - sqrt((a - l_a)^2 + (u_b - b)^2) to
d + sqrt((u_a - a)^2 + (b - l_b)^2). With Wilson's limits of proportions it is Newcombe's interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from .intervals import NO_INTERVAL, Interval
from .proportions import SampleProportion
from .pvalues import clamp_pvalue, normal_cdf, upper_tail

#: Limits are searched up to this many standard errors.
_FARTHEST = 40.0
#: Bisection steps to find a number of standard errors to the last bit.
_HALVINGS = 80


@dataclass(frozen=True)
class ValueWithLimits:
    """A value and its limits as a function of z; NaN if it has no limits."""

    value: float
    limits: Callable[[float], Interval]

    @property
    def is_known(self) -> bool:
        """Return whether there are limits."""
        return not math.isnan(self.limits(1.0)[0])

    def logarithm(self) -> ValueWithLimits:
        """Return the logarithm of a value that is not below 0."""

        def limits(z: float) -> Interval:
            low, high = self.limits(z)
            return _log(low), _log(high)

        return ValueWithLimits(_log(self.value), limits)


class WeightedProportion(NamedTuple):
    """A proportion in a weighted sum, with its factor."""

    factor: float
    share: SampleProportion


def by_logit(value: float, error: float, range_: Interval) -> ValueWithLimits:
    """Return a value in a finite range with limits on the logit scale.

    The limits are expit(logit p -+ z se / (p (1 - p))), with p the relative position in the range.
    There are none if the value is at an end of the range or has no standard error.
    """
    low, high = range_
    width = high - low
    share = (value - low) / width
    if not (0 < share < 1 and error > 0):
        return ValueWithLimits(value, lambda z: NO_INTERVAL)
    middle = math.log(share / (1 - share))
    spread = error / width / (share * (1 - share))

    def limits(z: float) -> Interval:
        below, above = (low + width * _expit(middle + end * spread) for end in (-z, z))
        # Transforming the value forth and back can change its last bit.
        return min(below, value), max(above, value)

    return ValueWithLimits(value, limits)


def by_smoothed(value: float, parts: Iterable[WeightedProportion]) -> ValueWithLimits:
    """Return a weighted sum of proportions of different rows, with limits that hold for few rows.

    The limits are those of `by_logit` in the range of the sum, with the variance
    sum f^2 p (1 - p) / n at p = (x + 1) / (n + 2). (MOVER of Wilson's limits has one-sided errors
    of up to 10 % at a nominal 5 %.) If all proportions are 0 or 1 such that the sum is at an end of
    its range, the farthest sum that is not rejected at a level has p_1^n_1 p_2^n_2 ... = level.
    """
    parts = tuple(parts)
    down = sum(f * share.value - min(f, 0.0) for f, share in parts)
    up = sum(max(f, 0.0) - f * share.value for f, share in parts)
    for end, sign in ((1.0, -1.0), (0.0, 1.0)):
        if all(share.value == (end if f > 0 else 1 - end) for f, share in parts):
            return ValueWithLimits(value, partial(_at_end, value, parts, sign))
    variance = 0.0
    for factor, (p, n) in parts:
        smoothed = (p * n + 1) / (n + 2)
        variance += factor**2 * smoothed * (1 - smoothed) / n
    return by_logit(value, math.sqrt(variance), (value - down, value + up))


def _at_end(value: float, parts: tuple[WeightedProportion, ...], sign: float, z: float) -> Interval:
    """Return the limits of a sum at an end of its range, for a given z.

    The farthest sum has proportions p = min(c n / |f|, 1).
    """
    free, log_level = list(parts), math.log(clamp_pvalue(upper_tail(z)))
    while True:
        rows = sum(share.n_rows for _, share in free)
        logs = sum(share.n_rows * math.log(share.n_rows / abs(f)) for f, share in free)
        log_c = (log_level - logs) / rows
        kept = [
            proportion
            for proportion in free
            if log_c + math.log(proportion.share.n_rows / abs(proportion.factor)) < 0
        ]
        if len(kept) == len(free):
            break
        free = kept
    room = sum(abs(f) - math.exp(log_c) * share.n_rows for f, share in free)
    return (value - room, value) if sign < 0 else (value, value + room)


def difference_interval(first: ValueWithLimits, second: ValueWithLimits, z: float) -> Interval:
    """Return the interval of a difference; NaN if a value has no limits."""
    low_1, high_1 = first.limits(z)
    low_2, high_2 = second.limits(z)
    gap = first.value - second.value
    return (
        gap - math.hypot(first.value - low_1, high_2 - second.value),
        gap + math.hypot(high_1 - first.value, second.value - low_2),
    )


def margin_statistic(first: ValueWithLimits, second: ValueWithLimits, margin: float) -> float:
    """Return how many standard errors a difference lies above a margin.

    It is the z at which the margin is an end of the interval, so its upper tail is the p-value of
    "at most the margin" and its lower tail that of "at least the margin". NaN if a value has no
    limits, infinite if no interval reaches the margin.
    """
    gap = first.value - second.value
    if not (first.is_known and second.is_known):
        return math.nan
    sign = 1.0 if margin <= gap else -1.0

    def reaches(z: float) -> bool:
        low, high = difference_interval(first, second, z)
        return low <= margin if sign > 0 else high >= margin

    below, above = 0.0, _FARTHEST
    if not reaches(above):
        return sign * math.inf
    for _ in range(_HALVINGS):
        middle = 0.5 * (below + above)
        below, above = (below, middle) if reaches(middle) else (middle, above)
    return sign * above


def at_most(first: ValueWithLimits, second: ValueWithLimits, margin: float) -> float:
    """Return the p-value P(m) of "the difference is at most m"; 1 if it is unknown."""
    z = margin_statistic(first, second, margin)
    return 1.0 if math.isnan(z) else clamp_pvalue(normal_cdf(-z))


def at_least(first: ValueWithLimits, second: ValueWithLimits, margin: float) -> float:
    """Return the p-value P'(m) of "the difference is at least m"; 1 if it is unknown."""
    z = margin_statistic(first, second, margin)
    return 1.0 if math.isnan(z) else clamp_pvalue(normal_cdf(z))


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _log(value: float) -> float:
    if math.isnan(value):
        return math.nan
    return math.log(value) if value > 0 else -math.inf
