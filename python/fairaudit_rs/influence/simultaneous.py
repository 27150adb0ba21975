"""Several scores at once: intervals that hold together, and p-values adjusted for their number."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.pvalues import (
    monte_carlo_pvalue,
    normal_of_tail,
    t_quantile,
    t_upper_tail,
    upper_tail,
)
from .marginal_scores import FeatureScore

Floats = NDArray[np.float64]


def simultaneous_limits(
    scores: Sequence[FeatureScore],
    correlation: Floats,
    level: float,
    draws: _native.Draws,
    call: _native.Call,
) -> tuple[list[float], list[tuple[float, float]]]:
    """Return adjusted p-values and simultaneous intervals by the largest of normal numbers.

    The numbers have the correlations of the influence values, which is what Gaussian multipliers of
    the rows would give. Each |t| goes to the normal scale by its own p-value.
    """
    largest = np.sort(_native.normal_maxima(np.ascontiguousarray(correlation), draws, call))
    rank = math.ceil(round(level * (len(largest) + 1), 9))
    cut = largest[rank - 1] if rank <= len(largest) else math.inf
    pvalues, intervals = [], []
    for score in scores:
        z = on_normal_scale(score)
        reached = len(largest) - int(np.searchsorted(largest, z, side="left"))
        pvalues.append(monte_carlo_pvalue(reached, len(largest)))
        half = t_quantile(upper_tail(cut), score.df) * score.standard_error
        intervals.append((score.estimate - half, score.estimate + half))
    return pvalues, intervals


def on_normal_scale(score: FeatureScore) -> float:
    """Return |t| as the normal number with the same p-value."""
    return normal_of_tail(t_upper_tail(abs(score.t), score.df))
