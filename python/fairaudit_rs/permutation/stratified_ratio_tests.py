"""Tests and intervals for ratios of weighted or clustered rates within strata.

With A and D the sums of numerators and denominators of a group in a stratum and
k = D_1 D_2 / (D_1 + D_2), the ratio within strata is R = sum k A_1/D_1 / sum k A_2/D_2 (Mantel and
Haenszel). A true ratio of rho means that

    U(rho) = sum k (A_1/D_1 - rho A_2/D_2) / sum k

is 0. U(rho) is the gap within strata after the second group's numerators are multiplied by rho. A
ratio is therefore tested with that gap's permutation test, including its row- or cluster-level
variance and its skewness correction. Each end of the interval is the most extreme ratio that is not
rejected. It is found by iteration: if U_0 is the confidence limit of the gap U(rho), the next ratio
is rho + U_0 sum k / sum k A_2/D_2. The standard error of log R is that of U(R) divided by the first
group's weighted rate, sum k A_1/D_1 / sum k. For unweighted rows it is the estimate of Greenland
and Robins (1985) without their assumption that the ratio is the same in all strata.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .. import _native
from ..inference.intervals import NO_INTERVAL, Interval, Pair
from ..inference.pvalues import SMALLEST_PVALUE, monte_carlo_pvalue
from ..inference.tolerance import TolerancePValues
from .formulas import MarginTest

_SIDES = ("greater", "less")
#: Maximum number of iterations, and the relative step below which they stop (the remaining error is
#: about the square of that step).
_MAX_ITERATIONS, _STOP_STEP = 8, 1e-2
#: Replicates drawn at one ratio are reused for another if their logarithms differ by at most this.
_SAME_REPLICATES = 0.02


@dataclass(frozen=True, kw_only=True)
class RatioTests:
    """The tests of the ratio of two groups within strata, by replicates."""

    problem: Any
    pair: Pair
    #: Draws the replicates of a native test of two groups.
    draw: Callable[[Any], _native.Shifts]
    call: _native.Call
    _replicates: dict[float, _native.Shifts] = field(default_factory=dict, repr=False)

    def replicates_at(self, ratio: float) -> _native.Shifts:
        """Return the replicates of U at a ratio."""
        if ratio not in self._replicates:
            self._replicates[ratio] = self.draw(self.problem.ratio_test(self.pair, ratio))
        return self._replicates[ratio]

    def pvalue(self, ratio: float, side: str) -> float:
        """Return the p-value of a ratio against the alternative "greater" or "less".

        Replicates of a ratio nearby are shifted: U(rho') = U(rho) + (rho - rho') times the rate of
        the second group.
        """
        log = math.log(ratio)
        drawn_ratio = min(
            self._replicates, key=lambda number: abs(math.log(number) - log), default=math.inf
        )
        if not abs(math.log(drawn_ratio) - log) <= _SAME_REPLICATES:
            drawn_ratio = ratio
        second = self.problem.compared(self.pair)[1]
        # `ratio_test` divides U by max(rho, 1), so the shift is divided too.
        gap = (ratio - drawn_ratio) * second / max(drawn_ratio, 1.0)
        shifts = self.replicates_at(drawn_ratio)
        exceedances = shifts.extremes(gap, side, self.call)
        return monte_carlo_pvalue(max(exceedances.studentized, exceedances.corrected), shifts.n)

    def margin_test(self, margin: float, statistic: float) -> MarginTest:
        """Test whether the ratio lies between the margin and its inverse."""
        tails = [self.pvalue(end, side) for end in (margin, 1 / margin) for side in _SIDES]
        return MarginTest(TolerancePValues(*tails), statistic)

    def interval(self, level: float) -> Interval:
        """Return the interval of ratios that the two-sided test does not reject."""
        tail = max((1 - level) / 2, SMALLEST_PVALUE)
        low, high = (self._end(side, tail) for side in _SIDES)
        first, second = self.problem.compared(self.pair)
        ratio = first / second
        return (min(low, ratio), max(high, ratio)) if low < math.inf else NO_INTERVAL

    def _end(self, side: str, tail: float) -> float:
        """Return the lower end ("greater") or the upper end ("less") of the interval.

        The end is open (0 or infinite) if there is no limit, or the iteration does not converge.
        """
        first, second = self.problem.compared(self.pair)
        ratio: float = first / second
        open_end = 0.0 if side == "greater" else math.inf
        for _ in range(_MAX_ITERATIONS):
            gap: float = self.replicates_at(ratio).limit(side, tail, self.call)
            # `ratio_test` divides U by max(rho, 1).
            step = gap * max(ratio, 1.0) / second
            if not math.isfinite(step) or ratio + step <= 0:
                return open_end
            ratio += step
            if abs(step) <= _STOP_STEP * ratio:
                return ratio
        return open_end
