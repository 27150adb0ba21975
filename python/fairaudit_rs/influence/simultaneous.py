"""Compute simultaneous intervals and adjusted p-values of several scores."""

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
    """Return adjusted p-values and simultaneous intervals, from maxima of normal variables.

    The variables have the correlations of the influence values, as in a Gaussian multiplier
    bootstrap of the rows. Each |t| is mapped to the normal scale by its own p-value.
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
    """Return the normal quantile with the same p-value as |t|."""
    return normal_of_tail(t_upper_tail(abs(score.t), score.df))
