"""MOVER: intervals and tests of differences and ratios, made of the limits of each value.

The method of variance estimates recovery (Zou and Donner, 2008): with limits l, u of each value
the difference d = a - b lies from d - sqrt((a - l_a)^2 + (u_b - b)^2) to
d + sqrt((u_a - a)^2 + (b - l_b)^2). With Wilson's limits of proportions it is Newcombe's interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from .intervals import NOTHING, Interval
from .proportions import SampleProportion
from .pvalues import clamp_pvalue, normal_cdf, upper_tail

#: Standard errors beyond which no limit is looked for.
_FARTHEST = 40.0
#: Steps that find a number of standard errors to the last bits.
_HALVINGS = 80


@dataclass(frozen=True)
class ValueWithLimits:
    """A value and its limits, so many standard errors away; NaN where it has none."""

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
    """A proportion in a sum, and what it is multiplied with."""

    factor: float
    share: SampleProportion


def by_logit(value: float, error: float, range_: Interval) -> ValueWithLimits:
    """Return a value in a finite range with the limits of its logit.

    They are expit(logit p -+ z se / (p (1 - p))) of p, the place in the range: none where the value
    is at an end, or has no standard error.
    """
    low, high = range_
    width = high - low
    share = (value - low) / width
    if not (0 < share < 1 and error > 0):
        return ValueWithLimits(value, lambda z: NOTHING)
    middle = math.log(share / (1 - share))
    spread = error / width / (share * (1 - share))

    def limits(z: float) -> Interval:
        below, above = (low + width * _expit(middle + end * spread) for end in (-z, z))
        # The logit and back is not the value to the last bit.
        return min(below, value), max(above, value)

    return ValueWithLimits(value, limits)


def by_smoothed(value: float, parts: Iterable[WeightedProportion]) -> ValueWithLimits:
    """Return a sum of proportions of different rows with limits that hold with few of them.

    The limits are those of the logit of its place between the ends of the sum, with the variance
    sum f^2 p (1 - p) / n at p = (x + 1) / (n + 2): MOVER of Wilson's limits errs in up to 10 % on
    one side at 5 %. Where all proportions are at an end, the least likely sum that is not refuted
    at a level has p_1^n_1 p_2^n_2 ... = level.
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
    """Return the limits of a sum whose proportions are all at their ends, so many errors away.

    The farthest sum has proportions p = c n / |f|, or 1 where that is more.
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
    """Return the interval of a difference; NaN where a value has no limits."""
    low_1, high_1 = first.limits(z)
    low_2, high_2 = second.limits(z)
    gap = first.value - second.value
    return (
        gap - math.hypot(first.value - low_1, high_2 - second.value),
        gap + math.hypot(high_1 - first.value, second.value - low_2),
    )


def margin_statistic(first: ValueWithLimits, second: ValueWithLimits, margin: float) -> float:
    """Return how many standard errors a difference lies above a margin.

    It is the z at which the margin is an end of the interval, so the p-value of "at most the
    margin" is the upper tail of it and that of "at least" the lower one; NaN where a value has no
    limits, infinite for a margin that no interval reaches.
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
    """Return the p-value P(m) of a difference of at most m; 1 where nothing is known."""
    z = margin_statistic(first, second, margin)
    return 1.0 if math.isnan(z) else clamp_pvalue(normal_cdf(-z))


def at_least(first: ValueWithLimits, second: ValueWithLimits, margin: float) -> float:
    """Return the p-value P'(m) of a difference of at least m; 1 where nothing is known."""
    z = margin_statistic(first, second, margin)
    return 1.0 if math.isnan(z) else clamp_pvalue(normal_cdf(z))


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _log(value: float) -> float:
    if math.isnan(value):
        return math.nan
    return math.log(value) if value > 0 else -math.inf
