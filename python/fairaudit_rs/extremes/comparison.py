"""The return levels of two tails compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.pvalues import upper_tail
from .problem import TailProblem

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The test of equal return levels of two tails."""

    estimate: float
    low: float
    high: float
    statistic: float
    pvalue: float
    #: Whether the p-value is known only to be at most this.
    is_bound: bool
    #: "order statistics", "fit", or both, the first group's first.
    method: str
    reason: str


def compare(
    first: TailProblem,
    second: TailProblem,
    m: float,
    call: _native.Call,
    *,
    confidence: float | None = None,
    fit_only: bool = False,
) -> Compared:
    """Compare return levels: by order statistics where they limit a level, else by fits.

    Order statistics that limit no difference from both sides, at the level of confidence that is
    asked for, give way to the fits.
    """
    sides: list[Any] = []
    methods, values = [], []
    for tail in (first, second):
        reason = tail.why_refused(m)
        if not reason and tail.is_measured(m) and not fit_only:
            sides.append(tail.sorted)
            methods.append("order statistics")
            values.append(tail.value(m))
        elif not reason and tail.fit is not None and tail.reaches(m):
            sides.append((tail.fit, tail.cuts(m, call)))
            methods.append("fit")
            values.append(tail.fit.level(m))
        else:
            return _incomparable(reason or tail.why_no_fit or "the level is below the threshold")
    level = first.confidence if confidence is None else confidence
    statistic, pvalue, low, high = _native.compare_levels(sides[0], sides[1], float(m), level, call)
    fitted = all(tail.fit is not None and tail.reaches(m) for tail in (first, second))
    if math.isinf(high - low) and "order statistics" in methods and fitted:
        return compare(first, second, m, call, confidence=confidence, fit_only=True)
    least = 2 * upper_tail(_native.last_cut_score())
    is_bound = "fit" in methods and pvalue < least
    return Compared(
        estimate=values[0] - values[1] + 0.0,
        low=low,
        high=high,
        statistic=statistic,
        pvalue=least if is_bound else pvalue,
        is_bound=is_bound,
        method=" and ".join(dict.fromkeys(methods)),
        reason="",
    )


def _incomparable(reason: str) -> Compared:
    nan = math.nan
    return Compared(
        estimate=nan,
        low=nan,
        high=nan,
        statistic=nan,
        pvalue=nan,
        is_bound=False,
        method="",
        reason=reason,
    )


def permuted(
    first: TailProblem, second: TailProblem, m: float, draws: _native.Draws, call: _native.Call
) -> tuple[float, Floats]:
    """Return the difference of fitted levels, and those of permuted rows, each value by itself."""
    ends = {first.scale_upper, second.scale_upper}
    upper = first.scale_upper if len(ends) == 1 else None
    fits = [tail.sorted.fit(tail.k, upper, None) for tail in (first, second)]
    drawn = _native.permuted_level_differences(
        first.sorted, second.sorted, (first.k, second.k), (float(m), upper), draws, call
    )
    return fits[0].level(m) - fits[1].level(m), drawn
