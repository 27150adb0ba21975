"""Score statistics, and the same corrected for the skewness of their law.

Low rates in a small group have skewed laws: the normal tail of the score alone is too short on one
side, the more so the smaller the level. The corrected score u solves z = u + g (u^2 - 1) with
g = (third moment) / (6 variance^1.5), all moments at the estimate under the hypothesis (Gart and
Nam, 1990; Laud, 2017). The p-value of a side is the larger of the two.

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

#: Ends of intervals are found to within this, or where the statistic is.
_NEAR = 1e-12
_STEPS = 224
#: Standard errors that are as good as any number more.
_MOST = 100.0


class ScoreStatistic(NamedTuple):
    """How many standard errors an estimate lies above a hypothesis, as it is and corrected.

    NaN where nothing is known, infinite where the hypothesis leaves no variance.
    """

    plain: float
    corrected: float

    @classmethod
    def from_moments(cls, distance: float, variance: float, third_moment: float) -> ScoreStatistic:
        """Return both statistics of a distance with the moments of its law.

        u = (-1 + sqrt(1 + 4 g (g + z))) / (2 g), without a difference of near numbers; z itself
        where g is 0. Where the root is imaginary it is the turn of that curve, -1 / (2 g).
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
        """The one that is nearer to 0; 0 where they lie on both sides of it."""
        return 0.0 if self.plain * self.corrected <= 0 else min(self, key=abs)


#: Where nothing is known.
NO_SCORE = ScoreStatistic(math.nan, math.nan)


def interval_of(
    score: Callable[[float], ScoreStatistic], estimate: float, ends: Interval, z: float
) -> Interval:
    """Return the hypotheses, around an estimate, that neither of the two sides rejects.

    ``score`` is that of a hypothesis, ``ends`` the least and the greatest one that there can be.
    """
    low = _end(lambda at: min(*score(at), _MOST) - z, ends[0], estimate)
    high = _end(lambda at: min(-max(score(at)), _MOST) - z, ends[1], estimate)
    return low, high


def _end(beyond: Callable[[float], float], far: float, near: float) -> float:
    """Return where a function is 0 between an estimate and the farthest value there can be.

    It grows from below 0 on; the farthest value itself where it does not come that far. Secants
    find the place, and every fourth step halves what is left.
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
        # An end that stays twice counts half, so that it comes to move (the Illinois rule).
        if value > 0:
            far, at_far = middle, value
            at_near, moved = (0.5 * at_near, 1) if moved == 1 else (at_near, 1)
        else:
            near, at_near = middle, value
            at_far, moved = (0.5 * at_far, -1) if moved == -1 else (at_far, -1)
    return 0.5 * (far + near)
