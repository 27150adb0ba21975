"""The tolerance of a gap, the p-values for failing and passing it, and the bounds they imply.

Both combine one-sided p-values at the two ends of the tolerance: -tol and tol of a difference, rho
and 1 / rho of a ratio. Each pair is tested on the side of its observed gap, as if its groups were
ordered so that the gap is positive. With a fixed order of the groups, a true gap of exactly -tol
would be declared beyond the tolerance in 26 % of audits at the 5 % level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..literals import Scale
from .pvalues import SMALLEST_PVALUE, normal_of_tail

#: Largest absolute logarithm of a ratio that is searched.
MAX_LOG_RATIO = 350.0
#: Relative precision of a bound. A bracket is also closed at 1e-3 times this times its first width.
_PRECISION = 1e-9
#: The largest p-value with a finite normal quantile.
_MAX_PVALUE = 1 - 1e-15
_STEPS = 200


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """The largest difference, or the smallest ratio, that is tolerated."""

    value: float
    scale: Scale = "difference"

    @property
    def distance(self) -> float:
        """The distance from equality: the difference, or the absolute logarithm of the ratio."""
        return self.value if self.scale == "difference" else -math.log(self.value)

    def value_at_distance(self, distance: float) -> float:
        """Return the difference or ratio at a distance from equality."""
        if self.scale == "difference":
            return distance
        return math.exp(-distance) if distance < MAX_LOG_RATIO else 0.0


class TolerancePValues(NamedTuple):
    """Four one-sided p-values: at each end of a tolerance, of "at most" and "at least" this end."""

    #: P-values of "the gap is at most the lower end", P(-tol), and "is at least", P'(-tol).
    at_most_low: float
    at_least_low: float
    #: P-values of "the gap is at most the upper end", P(tol), and "is at least", P'(tol).
    at_most_high: float
    at_least_high: float

    def p_fail(self, is_above: bool) -> float:
        """Return the p-value of "the gap lies within the tolerance", small if it is beyond.

        It is P(tol) + P(-tol) if the observed gap is above 0 (for a ratio: above 1), otherwise
        P'(-tol) + P'(tol). At a tolerance of 0 it is the two-sided test. Simulated p-values are at
        least 2 / (B + 1).
        """
        if is_above:
            return min(1.0, self.at_most_high + self.at_most_low)
        return min(1.0, self.at_least_low + self.at_least_high)

    def p_for_beyond(self, below: bool) -> float:
        """Return the p-value of "the ratio does not lie beyond the tolerance" on one side.

        It is small if the data show that the ratio lies beyond. With ``below``, the null hypothesis
        is "ratio >= rho", otherwise "ratio <= 1 / rho".
        """
        return self.at_least_low if below else self.at_most_high

    def p_for_not_beyond(self, below: bool) -> float:
        """Return the p-value of "the ratio lies beyond the tolerance" on one side.

        It is small if the data show that the ratio does not lie beyond. With ``below``, the null
        hypothesis is "ratio <= rho", otherwise "ratio >= 1 / rho".
        """
        return self.at_most_low if below else self.at_least_high

    @property
    def p_pass(self) -> float:
        """The p-value of "the gap is at least the tolerance", by two one-sided tests."""
        return max(self.at_most_low, self.at_least_high)


#: The p-values of an unknown gap.
UNKNOWN = TolerancePValues(1.0, 1.0, 1.0, 1.0)


def gap_lower_bound(p_fail: Callable[[float], float], level: float, observed_gap: float) -> float:
    """Return the lower bound of a gap: the largest tolerance that the data reject at a level.

    ``p_fail`` increases with the tolerance, up to the observed gap. 0 if no tolerance is rejected.
    """
    if p_fail(0.0) > level:
        return 0.0
    if not p_fail(observed_gap) > level:
        return observed_gap
    z = normal_of_tail(level)
    below, _ = _crossing(lambda tolerance: z - _z_of(p_fail(tolerance)), 0.0, observed_gap)
    return below


def gap_upper_bound(
    p_pass: Callable[[float], float], level: float, observed_gap: float, largest_gap: float
) -> float:
    """Return the upper bound of a gap: the smallest tolerance that passes at a level.

    ``p_pass`` decreases in the tolerance between the observed gap and the largest possible gap. The
    result is the largest possible gap if no tolerance passes.
    """
    if observed_gap >= largest_gap:
        return largest_gap
    end = largest_gap
    if math.isinf(largest_gap):
        end = max(2 * observed_gap, 1.0)
        while p_pass(end) > level and end < largest_gap:
            end *= 2
    if not end < math.inf or p_pass(end) > level:
        return largest_gap
    z = normal_of_tail(level)
    _, above = _crossing(lambda tolerance: _z_of(p_pass(tolerance)) - z, observed_gap, end)
    return above


def fewest_resamples(n_tests: int, level: float) -> int:
    """Return how many replicates a simulated p_fail needs to reach a level in adjusted tests."""
    return math.ceil(2 * n_tests / level * (1 - 1e-9))


def _z_of(pvalue: float) -> float:
    """Return the normal quantile of a p-value.

    It is nearly linear in the tolerance, so that the root search needs few steps.
    """
    return normal_of_tail(min(max(pvalue, SMALLEST_PVALUE), _MAX_PVALUE))


def _crossing(rising: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Return a narrow bracket in which an increasing function crosses 0.

    The Illinois method, with a bisection after several steps at the same end: p-values of
    replicates are step functions.
    """
    at_low, at_high = rising(low), rising(high)
    least = 1e-3 * _PRECISION * (high - low)
    side = moved = 0
    for _ in range(_STEPS):
        close = max(_PRECISION * min(abs(low), abs(high)), least)
        if high - low <= close:
            break
        share = at_low / (at_low - at_high) if at_high > at_low else 0.5
        if moved > 2 or not 0 < share < 1:
            share, moved = 0.5, 0
        # At least half the required width from each end; otherwise one end might never move.
        middle = min(max(low + share * (high - low), low + close / 2), high - close / 2)
        value = rising(middle)
        new_side = -1 if value <= 0 else 1
        moved = moved + 1 if new_side == side else 0
        if value <= 0:
            low, at_low = middle, value
            at_high = at_high / 2 if side == new_side else at_high
        else:
            high, at_high = middle, value
            at_low = at_low / 2 if side == new_side else at_low
        side = new_side
    return low, high
