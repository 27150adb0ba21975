"""Score statistics with a skewness correction.

Low rates in small groups have skewed distributions: the normal tail of the plain score is too short
on one side, most of all at small levels. The corrected score u solves z = u + g (u^2 - 1) with
g = (third moment) / (6 variance^1.5), all moments at the estimate under the hypothesis (Gart and
Nam, 1990; Laud, 2017). The p-value of each side is the larger of plain and corrected.

.. [1] Gart, J. J. and Nam, J. (1990). Approximate interval estimation of the difference in binomial
   parameters: correction for skewness and extension to multiple tables. Biometrics 46.
   doi:10.2307/2532082
.. [2] Laud, P. J. (2017). Equal-tailed confidence intervals for comparison of rates.
   Pharmaceutical Statistics 16. doi:10.1002/pst.1813
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .intervals import Interval
from .pvalues import clamp_pvalue, normal_cdf, standardize_gap, upper_tail

#: Tolerance for the ends of intervals, and for the statistic there.
_NEAR = 1e-12
_STEPS = 224
#: Statistics are capped at this many standard errors.
_MOST = 100.0


class ScoreStatistic(NamedTuple):
    """The distance of an estimate above a hypothesis in standard errors, plain and corrected.

    NaN if it is unknown, infinite if the variance under the hypothesis is 0.
    """

    plain: float
    corrected: float

    @classmethod
    def from_moments(cls, distance: float, variance: float, third_moment: float) -> ScoreStatistic:
        """Compute both statistics from a distance and its moments.

        u = (-1 + sqrt(1 + 4 g (g + z))) / (2 g), in a form that avoids cancellation; u = z if g is
        0. If the root is imaginary, u is the turning point of the curve, -1 / (2 g).
        """
        if not variance > 0:
            plain = standardize_gap(distance, 0.0)
            return cls(plain, plain)
        error = math.sqrt(variance)
        plain, g = distance / error, third_moment / (6 * variance * error)
        shifted = plain + g
        inside = 1 + 4 * g * shifted
        if inside > 0:
            return cls(plain, 2 * shifted / (1 + math.sqrt(inside)))
        return cls(plain, -1 / (2 * g))

    @property
    def greater(self) -> float:
        """The p-value of "at most the hypothesis": the larger of the two upper tails."""
        return clamp_pvalue(upper_tail(min(self.plain, self.corrected)))

    @property
    def less(self) -> float:
        """The p-value of "at least the hypothesis": the larger of the two lower tails."""
        return clamp_pvalue(normal_cdf(max(self.plain, self.corrected)))

    @property
    def nearer(self) -> float:
        """The statistic that is nearer to 0; 0 if they have opposite signs."""
        return 0.0 if self.plain * self.corrected <= 0 else min(self, key=abs)


#: An unknown score.
NO_SCORE = ScoreStatistic(math.nan, math.nan)


def interval_of(
    score: Callable[[float], ScoreStatistic], estimate: float, ends: Interval, z: float
) -> Interval:
    """Return the interval of hypotheses around an estimate that neither side rejects.

    ``score`` maps a hypothesis to its statistic; ``ends`` are the smallest and the largest possible
    hypothesis.
    """
    low = _end(lambda value: min(*score(value), _MOST) - z, ends[0], estimate)
    high = _end(lambda value: min(-max(score(value)), _MOST) - z, ends[1], estimate)
    return low, high


def _end(beyond: Callable[[float], float], far: float, near: float) -> float:
    """Find the root of a function between an estimate and the farthest possible value.

    The function increases from below 0; if it does not reach 0, the farthest value is returned. The
    secant method with a bisection in every fourth step.
    """
    at_far, at_near = beyond(far), beyond(near)
    if at_far <= 0:
        return far
    if at_near >= 0:
        return near
    moved = 0
    for step in range(_STEPS):
        if abs(far - near) <= _NEAR:
            break
        share = 0.5 if step % 4 == 3 else at_near / (at_near - at_far)
        middle = near + share * (far - near)
        value = beyond(middle)
        if abs(value) <= _NEAR:
            return middle
        # The Illinois rule: halve the value at an end that stays twice.
        if value > 0:
            far, at_far = middle, value
            at_near, moved = (0.5 * at_near, 1) if moved == 1 else (at_near, 1)
        else:
            near, at_near = middle, value
            at_far, moved = (0.5 * at_far, -1) if moved == -1 else (at_far, -1)
    return 0.5 * (far + near)
