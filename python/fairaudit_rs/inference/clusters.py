"""Sums over clusters, and variances of means and ratios whose units differ in weight."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import NOTHING, Interval
from .pvalues import t_quantile

Floats = NDArray[np.float64]
#: With fewer clusters, counted as if of one size, there is no interval by formula.
FEWEST_FOR_FORMULA = 3.0
#: Below this the quantile of Student's t with few degrees of freedom is not known.
_LEAST_TAIL = 1e-200


def effective_number(weight: Floats) -> float:
    """Return the number of equal units that spread as much: (sum w^2)^2 / sum w^4."""
    squares = np.sort(weight / weight.max()) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


def deviating_number(above: Floats, below: Floats) -> float:
    """Return how many clusters of one size hold the departures from the usual value.

    (sum |A - m D|)^2 / sum (A - m D)^2, with m the median of A / D over clusters. For rows of 0
    and 1 it is the number of the rarer value; for n equal clusters of a normal law about 0.64 n.
    """
    sized = below > 0
    if not sized.any():
        return 0.0
    usual = float(np.median(above[sized] / below[sized]))
    off = np.sort(np.abs(above - usual * below))
    largest = float(off[-1])
    if not 0 < largest < math.inf:
        return 0.0
    off = off / largest
    return float(off.sum() ** 2 / (off**2).sum())


def leverage_factors(weight: Floats) -> Floats:
    """Return what squares of the residuals are multiplied by, 1 / (1 - share of the weight): CR2.

    The residuals of a mean are too small, those of heavy units most of all (Bell and McCaffrey,
    2002, for one mean).
    """
    total = float(np.sort(weight).sum())
    return np.asarray(total / (total - weight))


def degrees_of_freedom(weight: Floats) -> float:
    """Return Bell and McCaffrey's df of that variance, for units that vary alike.

    With w the shares of the weight and q = w^2 / (1 - w) they are (tr K)^2 / tr K K,
    K = diag(q) - q w' - w q' + (sum q) w w'; n - 1 for n equal units.
    """
    w = np.sort(weight)
    w = w / w.sum()
    q = w**2 / (1 - w)
    sum_q, sum_w2, sum_q2, sum_qw = q.sum(), (w**2).sum(), (q**2).sum(), (q * w).sum()
    trace = sum_q - 2 * sum_qw + sum_q * sum_w2
    square = (
        sum_q2
        + 2 * (sum_q * (q * w**2).sum() - 2 * (q**2 * w).sum())
        + 2 * sum_qw**2
        + 2 * sum_w2 * sum_q2
        - 4 * sum_q * sum_w2 * sum_qw
        + sum_q**2 * sum_w2**2
    )
    return float(trace**2 / square)


@dataclass(frozen=True, kw_only=True)
class ClusteredRatio:
    """A ratio of sums over the clusters of a group: theta = sum A / sum D."""

    value: float
    #: CR2, with the residuals (A - theta D) / sum D and the shares of D as weights.
    variance: float
    #: Of Bell and McCaffrey, were clusters the only source of variation.
    df: float
    #: How many clusters of one size are worth as much.
    effective: float
    #: How many clusters there are, and how many of one size hold the departures from their median.
    n: int
    deviating: float
    #: Sum of D, and the usual size D_0 of the cluster of a row: sum D^2 / sum D.
    total: float
    size: float

    @classmethod
    def from_sums(cls, above: Floats, below: Floats) -> ClusteredRatio:
        """Take the sums A and D of each cluster; those without any have no part."""
        counts = (above != 0) | (below != 0)
        above, below = above[counts], below[counts]
        total = float(below.sum())
        value = float(above.sum()) / total
        residual = (above - value * below) / total
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = float((residual**2 * leverage_factors(below)).sum())
            df = degrees_of_freedom(below)
        return cls(
            value=value,
            variance=variance,
            df=df,
            effective=effective_number(below),
            n=len(below),
            deviating=deviating_number(above, below),
            total=total,
            size=float((below**2).sum()) / total,
        )

    def interval(self, level: float) -> Interval:
        """Return the interval of the value, NaN where too few clusters count."""
        return _around(self.value, self.variance, self.df, self.effective, level)


def gap_interval(first: ClusteredRatio, second: ClusteredRatio, level: float) -> Interval:
    """Return the interval of a difference of two groups, NaN where too few clusters count."""
    variance = first.variance + second.variance
    if not (math.isfinite(variance) and variance > 0):
        return NOTHING
    df = variance**2 / (first.variance**2 / first.df + second.variance**2 / second.df)
    effective = min(first.effective, second.effective)
    return _around(first.value - second.value, variance, df, effective, level)


def _around(value: float, variance: float, df: float, effective: float, level: float) -> Interval:
    if effective < FEWEST_FOR_FORMULA or not (math.isfinite(variance) and variance > 0):
        return NOTHING
    # Levels of several intervals together can round to 1, and tails of tiny levels to above 1/2.
    half = max(t_quantile(max((1 - level) / 2, _LEAST_TAIL), df), 0.0) * math.sqrt(variance)
    return value - half, value + half
