"""Few clusters of unequal size: their effective number, and a variance with its degrees of freedom.

A ratio of sums theta = sum A / sum D over clusters has the weights w = D / sum D and the residuals
w e = (A - theta D) / sum D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import NOTHING, Interval
from .pvalues import t_quantile

#: With fewer clusters, counted as if of one size, there is no interval by formula.
FEWEST_FOR_FORMULA = 3.0


@dataclass(frozen=True)
class ClusteredRatio:
    """A ratio of sums over the clusters of a group."""

    value: float
    #: CR2: sum (w e)^2 / (1 - w).
    variance: float
    #: Of Bell and McCaffrey, were clusters the only source of variation.
    df: float
    #: (sum w^2)^2 / sum w^4: how many clusters of one size are worth as much.
    effective: float

    @classmethod
    def of(cls, above: NDArray[np.float64], below: NDArray[np.float64]) -> ClusteredRatio:
        """Take the sums A and D of each cluster."""
        total = float(below.sum())
        value = float(above.sum()) / total
        w, residual = below / total, (above - value * below) / total
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = float((residual**2 / (1 - w)).sum())
            q = w**2 / (1 - w)
            all_q, squares, weights = q.sum(), (q**2).sum(), (w**2).sum()
            qw = (q * w).sum()
            trace = all_q - 2 * qw + all_q * weights
            of_square = (
                squares
                + 2 * (all_q * (q * w**2).sum() - 2 * (q**2 * w).sum())
                + 2 * qw**2
                + 2 * weights * squares
                - 4 * all_q * weights * qw
                + all_q**2 * weights**2
            )
            df = float(trace**2 / of_square)
        return cls(value, variance, df, float(weights**2 / (w**4).sum()))


def gap_interval(first: ClusteredRatio, second: ClusteredRatio, level: float) -> Interval:
    """Return the interval of a difference of two groups, NaN where too few clusters count."""
    if min(first.effective, second.effective) < FEWEST_FOR_FORMULA:
        return NOTHING
    variance = first.variance + second.variance
    if not (math.isfinite(variance) and variance > 0):
        return NOTHING
    df = variance**2 / (first.variance**2 / first.df + second.variance**2 / second.df)
    half = t_quantile((1 - level) / 2, df) * math.sqrt(variance)
    gap = first.value - second.value
    return gap - half, gap + half
