"""Test whether the absolute size of a gap has changed.

Let D = g_2 - g_1 and S = g_2 + g_1. The change is |g_2| - |g_1| = sign(D S) min(|D|, |S|), so the
second gap is smaller if D and S have opposite signs, which takes two tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .intervals import NO_INTERVAL, Interval
from .paired_differences import PairedDifference
from .pvalues import clamp_pvalue, normal_of_tail, upper_tail


@dataclass(frozen=True, kw_only=True)
class SizeChange:
    """The change of the absolute size of a gap, with p-values and an interval."""

    estimate: float
    #: Normal quantile of the one-sided p-value in the direction of the estimate, with its sign.
    statistic: float
    #: P-values of "not smaller", "not larger" and "of the same size".
    less: float
    greater: float
    two_sided: float
    interval: Interval


def size_change(
    change: PairedDifference, total: PairedDifference, correlation: float
) -> SizeChange:
    """Test and estimate |g_2| - |g_1| from g_2 - g_1, g_2 + g_1 and their correlation.

    Two-sided: both D = 0 and S = 0 must be rejected (a union of hypotheses), which keeps the level.
    One-sided: D < 0 < S or D > 0 > S, the better of two such pairs of tests; see `_either`.

    The interval is the range of |g_2| - |g_1| for D and S in their intervals. It excludes 0 if the
    two-sided test rejects.
    """
    less = _either(max(change.less, total.greater), max(change.greater, total.less), correlation)
    greater = _either(
        max(change.greater, total.greater), max(change.less, total.less), -correlation
    )
    estimate = _size(change.estimate, total.estimate)
    one_sided = less if estimate < 0 else greater
    statistic = math.nan
    if not math.isnan(one_sided):
        statistic = math.copysign(max(normal_of_tail(one_sided), 0.0), estimate)
        if one_sided >= 1:
            statistic = 0.0
    return SizeChange(
        estimate=estimate,
        statistic=statistic,
        less=less,
        greater=greater,
        two_sided=_larger(change.two_sided, total.two_sided),
        interval=_sizes(change.interval, total.interval),
    )


def _size(change: float, total: float) -> float:
    size = min(abs(change), abs(total))
    return math.copysign(size, change * total) if size else 0.0


def _sizes(change: Interval, total: Interval) -> Interval:
    """Return the range of the change in size over a rectangle of D and S.

    In each quadrant the change grows with |D| and |S|, so the extremes are at the corners of the
    rectangle or on the axes.
    """
    if math.isnan(change[0]) or math.isnan(total[0]):
        return NO_INTERVAL
    along, across = ([*ends, *([0.0] if ends[0] < 0 < ends[1] else [])] for ends in (change, total))
    corners = [_size(d, s) for d in along for s in across]
    return min(corners), max(corners)


def _larger(one: float, other: float) -> float:
    """Return the larger p-value; NaN if one of them is NaN."""
    return math.nan if math.isnan(one) or math.isnan(other) else max(one, other)


def _either(one: float, other: float, correlation: float) -> float:
    """Return the p-value of the better of two pairs of tests in opposite quadrants.

    Let c be the normal quantile of the smaller p-value. The result is the maximum probability,
    over S with D = 0 and over D with S = 0, of z_D < -c, z_S > c or z_D > c, z_S < -c. Far from 0
    this is P(Z > c); at D = S = 0 it is twice the probability of one quadrant. The latter is larger
    only if the correlation of D and S is below about -0.7, that is, if the second gap has a far
    smaller variance than the first.
    """
    smaller = min(one, other)
    if math.isnan(one) or math.isnan(other):
        return math.nan
    if smaller >= 0.5 or smaller == 0:
        return smaller
    return min(max(smaller, 2 * _quarter(normal_of_tail(smaller), correlation)), 1.0)


def _quarter(c: float, correlation: float) -> float:
    """Return the probability of X < -c and Y > c with a correlation: Owen's T function."""
    from scipy import special

    if correlation >= 0:
        # At most the probability under independence, twice which is below P(Z > c).
        return upper_tail(c) ** 2
    slope = math.sqrt(max(1 + correlation, 0.0) / (1 - correlation))
    return clamp_pvalue(upper_tail(c) - 2 * float(special.owens_t(c, slope)))
