"""Ratios of weighted or clustered rates within strata, by the permutation test of gaps.

With A and D the sums of numerators and denominators of a group in a stratum and
k = D_1 D_2 / (D_1 + D_2), the ratio within strata is R = sum k A_1/D_1 / sum k A_2/D_2 (Mantel and
Haenszel). A true ratio of rho means that

    U(rho) = sum k (A_1/D_1 - rho A_2/D_2) / sum k

is 0, which is the gap within strata of rows whose second group has rho times its numerators. So the
test of a ratio is the permutation test of that gap, with its variance of rows or clusters and its
correction for skewness. An end of the interval is the ratio that is just not rejected: with the
limit U_0 of the gap at some rho the next one is rho + U_0 sum k / sum k A_2/D_2. The standard
error of log R is that of U(R) over the value of the first group, for rows that count the same the
estimate of Greenland and Robins (1985) without their assumption of one ratio in all strata.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .. import _native
from ..inference.intervals import NOTHING, Interval, Pair
from ..inference.pvalues import LEAST, monte_carlo_pvalue
from ..inference.tolerance import TolerancePValues
from .formulas import MarginTest

_SIDES = ("greater", "less")
#: Steps to an end of an interval, and the last one: what is left is of the order of its square.
_MOST_STEPS, _LAST_STEP = 8, 1e-2
#: A test of a ratio serves others that are this near, on the log scale.
_NEAR = 0.02


@dataclass(frozen=True, kw_only=True)
class RatioTests:
    """The tests of the ratio of two groups within strata, by replicates."""

    problem: Any
    pair: Pair
    #: Draws the replicates of a native test of two groups.
    draw: Callable[[Any], _native.Shifts]
    call: _native.Call
    _drawn: dict[float, _native.Shifts] = field(default_factory=dict, repr=False)

    def shifts(self, ratio: float) -> _native.Shifts:
        """Return the replicates of U at a ratio."""
        if ratio not in self._drawn:
            self._drawn[ratio] = self.draw(self.problem.ratio_test(self.pair, ratio))
        return self._drawn[ratio]

    def pvalue(self, ratio: float, side: str) -> float:
        """Return the p-value of a ratio: against "greater" ones, or "less".

        Near a ratio with replicates U(rho') = U(rho) + (rho - rho') times the second value.
        """
        log = math.log(ratio)
        near = min(self._drawn, key=lambda number: abs(math.log(number) - log), default=math.inf)
        if not abs(math.log(near) - log) <= _NEAR:
            near = ratio
        gap = (ratio - near) * self.problem.compared(self.pair)[1] / max(near, 1.0)
        found = self.shifts(near).extremes(gap, side, self.call)
        return monte_carlo_pvalue(max(found.studentized, found.corrected), self.shifts(near).n)

    def margins(self, margin: float, statistic: float) -> MarginTest:
        """Test whether the ratio lies from the margin to its inverse."""
        tails = [self.pvalue(end, side) for end in (margin, 1 / margin) for side in _SIDES]
        return MarginTest(TolerancePValues(*tails), statistic)

    def interval(self, level: float) -> Interval:
        """Return the ratios that the two-sided test of a level does not reject."""
        tail = max((1 - level) / 2, LEAST)
        low, high = (self._end(side, tail) for side in _SIDES)
        first, second = self.problem.compared(self.pair)
        ratio = first / second
        return (min(low, ratio), max(high, ratio)) if low < math.inf else NOTHING

    def _end(self, side: str, tail: float) -> float:
        """Return the smallest ratio that is not rejected in favour of greater ones, or the largest.

        A limit that is open, or steps that do not meet, leave it open: 0 or infinite.
        """
        first, second = self.problem.compared(self.pair)
        ratio: float = first / second
        is_open = 0.0 if side == "greater" else math.inf
        for _ in range(_MOST_STEPS):
            gap: float = self.shifts(ratio).limit(side, tail, self.call)
            step = gap * max(ratio, 1.0) / second
            if not math.isfinite(step) or ratio + step <= 0:
                return is_open
            ratio += step
            if abs(step) <= _LAST_STEP * ratio:
                return ratio
        return is_open
