"""Tests and intervals for ratios of weighted or clustered rates within strata.

With A and D the sums of numerators and denominators of a group in a stratum and
k = D_1 D_2 / (D_1 + D_2), the ratio within strata is R = sum k A_1/D_1 / sum k A_2/D_2 (Mantel and
Haenszel). A true ratio of rho means that

    U(rho) = sum k (A_1/D_1 - rho A_2/D_2) / sum k

is 0. This is the gap within strata if the numerators of the second group are multiplied by rho, so
a ratio is tested by the permutation test of that gap, with its variance of rows or clusters and its
correction for skewness. An end of the interval is the ratio that is just not rejected, found by
iteration: with the limit U_0 of the gap at rho, the next ratio is rho + U_0 sum k / sum k A_2/D_2.
The standard error of log R is that of U(R) divided by the value of the first group. For unweighted
rows it is the estimate of Greenland and Robins (1985) without their assumption that the ratio is
the same in all strata.
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
#: Maximum number of iterations, and the relative step that ends them: the remaining error is of the
#: order of its square.
_MOST_STEPS, _LAST_STEP = 8, 1e-2
#: The replicates of a ratio are reused for ratios this near, on the log scale.
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
        """Return the p-value of a ratio against the alternative "greater" or "less".

        Replicates of a near ratio are shifted: U(rho') = U(rho) + (rho - rho') times second value.
        """
        log = math.log(ratio)
        near = min(self._drawn, key=lambda number: abs(math.log(number) - log), default=math.inf)
        if not abs(math.log(near) - log) <= _NEAR:
            near = ratio
        gap = (ratio - near) * self.problem.compared(self.pair)[1] / max(near, 1.0)
        shifts = self.shifts(near)
        extremes = shifts.extremes(gap, side, self.call)
        return monte_carlo_pvalue(max(extremes.studentized, extremes.corrected), shifts.n)

    def margins(self, margin: float, statistic: float) -> MarginTest:
        """Test whether the ratio lies between the margin and its inverse."""
        tails = [self.pvalue(end, side) for end in (margin, 1 / margin) for side in _SIDES]
        return MarginTest(TolerancePValues(*tails), statistic)

    def interval(self, level: float) -> Interval:
        """Return the interval of ratios that the two-sided test does not reject."""
        tail = max((1 - level) / 2, LEAST)
        low, high = (self._end(side, tail) for side in _SIDES)
        first, second = self.problem.compared(self.pair)
        ratio = first / second
        return (min(low, ratio), max(high, ratio)) if low < math.inf else NOTHING

    def _end(self, side: str, tail: float) -> float:
        """Return the lower end ("greater") or the upper end ("less") of the interval.

        The end is open (0 or infinite) if there is no limit, or the iteration does not converge.
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
