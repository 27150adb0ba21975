"""Compute the p-value of `calibration="permutation"`.

If the rates are equal, decisions are exchangeable among the groups of a label. The test computes
the cost of removing the gaps of permuted decisions, at the observed margins, and ranks the cost of
the observed gaps among them. Every row is placed on both sides of the boundary, see the core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import ArgumentError
from ..inference.pvalues import monte_carlo_pvalue
from ..progress import Progress
from .criteria import CriteriaTolerance
from .problem import Criteria

_TIE = 1e-10

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PermutedPValue:
    """A permutation p-value with its interval and its null distribution."""

    pvalue: float
    pvalue_interval: tuple[float, float]
    n_undefined: int
    null: Array


def rank_of_cost(
    criteria: Criteria,
    tolerance: CriteriaTolerance,
    n_resamples: int,
    seed: int,
    callback: Callable[[int, int], object] | None,
) -> PermutedPValue:
    """Return the p-value: the rank of the observed cost among those of permuted decisions."""
    if criteria.rows.weight is not None:
        raise ArgumentError(
            "sample_weight cannot be used with calibration='permutation', because rows of "
            "different weights are not exchangeable. Remove one of them.",
            argument="sample_weight",
            mentions=("calibration",),
            code="conflicting-arguments",
        )
    progress = Progress(callback=callback, n_resamples=n_resamples)
    progress.total = n_resamples
    test = criteria.exchange(tolerance)
    call = _native.Call(criteria.n_threads, progress.tick())
    null = test.null_distribution(_native.Draws(n_resamples, seed=seed), call)
    extreme = int((null >= test.observed * (1 - _TIE)).sum())
    return PermutedPValue(
        monte_carlo_pvalue(extreme, n_resamples),
        _native.clopper_pearson(extreme, n_resamples, 0.99),
        int(np.isinf(null).sum()),
        null,
    )
