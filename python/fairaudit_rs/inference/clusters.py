"""Cluster-robust variances and intervals of means and ratios of sums."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import NO_INTERVAL, Interval
from .pvalues import t_quantile

Floats = NDArray[np.float64]
#: Minimum effective number of clusters for an interval by formula.
FEWEST_FOR_FORMULA = 3.0
#: Smallest tail for which the quantile of Student's t with few degrees of freedom is computed.
_LEAST_TAIL = 1e-200


def effective_number(weight: Floats) -> float:
    """Return the effective number of units: (sum w^2)^2 / sum w^4."""
    squares = np.sort(weight / weight.max()) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


def deviating_number(above: Floats, below: Floats) -> float:
    """Return the effective number of clusters that deviate from the typical value.

    (sum |A - m D|)^2 / sum (A - m D)^2, with m the median of A / D over clusters. For rows of 0
    and 1 this is the number of rows with the rarer value; for n equal, normally distributed
    clusters it is about 0.64 n.
    """
    sized = below > 0
    if not sized.any():
        return 0.0
    usual = float(np.median(above[sized] / below[sized]))
    deviation = np.sort(np.abs(above - usual * below))
    largest = float(deviation[-1])
    if not 0 < largest < math.inf:
        return 0.0
    deviation = deviation / largest
    return float(deviation.sum() ** 2 / (deviation**2).sum())


def leverage_factors(weight: Floats) -> Floats:
    """Return the CR2 factors of squared residuals, 1 / (1 - share of the weight).

    They correct for residuals that are too small, most of all in heavy units (Bell and McCaffrey,
    2002, for a single mean).
    """
    total = float(np.sort(weight).sum())
    return np.asarray(total / (total - weight))


def degrees_of_freedom(weight: Floats) -> float:
    """Return Bell and McCaffrey's degrees of freedom of the CR2 variance, for equal variances.

    With w the shares of the weight and q = w^2 / (1 - w) they are (tr K)^2 / tr K K, where
    K = diag(q) - q w' - w q' + (sum q) w w'. For n equal units they are n - 1.
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
    """The ratio of two sums over the clusters of a group, theta = sum A / sum D."""

    value: float
    #: CR2, with the residuals (A - theta D) / sum D and the shares of D as weights.
    variance: float
    #: Degrees of freedom (Bell and McCaffrey), if clusters were the only source of variation.
    df: float
    #: The effective number of clusters.
    effective: float
    #: The number of clusters, and the effective number of those that deviate from the median.
    n: int
    deviating: float
    #: The sum of D, and the mean cluster size seen by a row, D_0 = sum D^2 / sum D.
    total: float
    size: float

    @classmethod
    def from_sums(cls, above: Floats, below: Floats) -> ClusteredRatio:
        """Compute the ratio from the sums A and D of each cluster; empty clusters are ignored."""
        is_filled = (above != 0) | (below != 0)
        above, below = above[is_filled], below[is_filled]
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
        """Return the interval of the value; NaN if there are too few clusters."""
        return _around(self.value, self.variance, self.df, self.effective, level)


def gap_interval(first: ClusteredRatio, second: ClusteredRatio, level: float) -> Interval:
    """Return the interval of the difference of two groups; NaN if there are too few clusters."""
    variance = first.variance + second.variance
    if not (math.isfinite(variance) and variance > 0):
        return NO_INTERVAL
    df = variance**2 / (first.variance**2 / first.df + second.variance**2 / second.df)
    effective = min(first.effective, second.effective)
    return _around(first.value - second.value, variance, df, effective, level)


def _around(value: float, variance: float, df: float, effective: float, level: float) -> Interval:
    if effective < FEWEST_FOR_FORMULA or not (math.isfinite(variance) and variance > 0):
        return NO_INTERVAL
    # Adjusted levels can round to 1, and the tails of tiny levels to above 1/2.
    half = max(t_quantile(max((1 - level) / 2, _LEAST_TAIL), df), 0.0) * math.sqrt(variance)
    return value - half, value + half
