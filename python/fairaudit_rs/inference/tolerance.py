"""Is a gap beyond a tolerance, or shown to lie within it: two p-values, and the bounds they give.

Both are made of one-sided p-values at the two ends of the tolerance: -tol and tol of a difference,
rho and 1 / rho of a ratio. A pair is looked at on the side on which its gap is seen, as if its
groups were ordered so that the gap is positive: unordered, a gap of -tol would be refuted in 26 %
of audits at 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..literals import Scale
from .pvalues import LEAST, normal_of_tail

#: The logarithm of the smallest ratio that is looked for, without its sign.
FARTHEST_RATIO = 350.0
#: Bounds are found up to this share of themselves, or a thousandth of it of where they can be.
_PRECISION = 1e-9
#: p-values up to this have a normal number.
_MOST_P = 1 - 1e-15
_STEPS = 200


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """The largest difference, or the smallest ratio, that counts as equal."""

    value: float
    scale: Scale = "difference"

    @property
    def distance(self) -> float:
        """How far it is from equality: the difference, or the logarithm of the ratio."""
        return self.value if self.scale == "difference" else -math.log(self.value)

    def at(self, distance: float) -> float:
        """Return the difference or ratio that is so far from equality."""
        if self.scale == "difference":
            return distance
        return math.exp(-distance) if distance < FARTHEST_RATIO else 0.0


class TolerancePValues(NamedTuple):
    """One-sided p-values of a gap at both ends of a tolerance, in both directions."""

    #: Of a gap of at most the lower end, P(-tol), and of at least it.
    at_most_low: float
    at_least_low: float
    #: Of a gap of at most the upper end, P(tol), and of at least it, P'(tol).
    at_most_high: float
    at_least_high: float

    def p_fail(self, is_above: bool) -> float:
        """Return the p-value of "the gap lies within the tolerance": small where it is beyond.

        The sum of the two ends, P(tol) + P(-tol), of a pair whose gap is seen above 0 (of a ratio:
        above 1); of the other one P'(-tol) + P'(tol). At a tolerance of 0 it is the two-sided test.
        A simulated one is at least 2 / (B + 1).
        """
        if is_above:
            return min(1.0, self.at_most_high + self.at_most_low)
        return min(1.0, self.at_least_low + self.at_least_high)

    def p_beyond(self, below: bool) -> float:
        """Return the p-value of "the ratio does not lie beyond the tolerance" on one side.

        ``below``: of a ratio of at least rho, P'(rho) = Phi(z(rho)); else of at most 1 / rho.
        """
        return self.at_least_low if below else self.at_most_high

    def p_not_beyond(self, below: bool) -> float:
        """Return the p-value of "the ratio lies beyond the tolerance" on one side.

        ``below``: of a ratio of at most rho, P(rho) = 1 - Phi(z(rho)); else of at least 1 / rho.
        """
        return self.at_most_low if below else self.at_least_high

    @property
    def p_pass(self) -> float:
        """The p-value of "the gap is as large as the tolerance": two one-sided tests."""
        return max(self.at_most_low, self.at_least_high)


#: Where nothing is known of a gap.
UNKNOWN = TolerancePValues(1.0, 1.0, 1.0, 1.0)


def largest_refuted(p_fail: Callable[[float], float], level: float, seen: float) -> float:
    """Return the largest tolerance that the data refute at a level: the gap is at least that.

    ``p_fail`` grows with the tolerance, up to the gap that is seen. 0 where no tolerance is
    refuted.
    """
    if p_fail(0.0) > level:
        return 0.0
    if not p_fail(seen) > level:
        return seen
    z = normal_of_tail(level)
    below, _ = _crossing(lambda tolerance: z - _z_of(p_fail(tolerance)), 0.0, seen)
    return below


def smallest_shown(
    p_pass: Callable[[float], float], level: float, seen: float, most: float
) -> float:
    """Return the smallest tolerance within which the gap is shown to lie: it is at most that.

    ``p_pass`` falls with the tolerance from the gap that is seen to the largest one that there can
    be, which is the answer where no tolerance is shown.
    """
    if seen >= most:
        return most
    end = most
    if math.isinf(most):
        end = max(2 * seen, 1.0)
        while p_pass(end) > level and end < most:
            end *= 2
    if not end < math.inf or p_pass(end) > level:
        return most
    z = normal_of_tail(level)
    _, above = _crossing(lambda tolerance: _z_of(p_pass(tolerance)) - z, seen, end)
    return above


def fewest_resamples(n_tests: int, level: float) -> int:
    """Return how many replicates let a simulated p_fail reach a level in so many adjusted tests."""
    return math.ceil(2 * n_tests / level * (1 - 1e-9))


def _z_of(pvalue: float) -> float:
    """Return the normal number of a p-value: of distances it is a line, more or less."""
    return normal_of_tail(min(max(pvalue, LEAST), _MOST_P))


def _crossing(rising: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Return two near numbers between which a rising function crosses 0, up to 0 and above it.

    Regula falsi (Illinois), with a halving whenever it moves one end only for long: steps of
    replicates have no slope.
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
        # A step beyond what is looked for closes the other end, too.
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
