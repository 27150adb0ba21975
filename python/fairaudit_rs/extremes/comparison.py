"""Tests whether two tails have equal return levels, and bounds their difference.

`extreme_test` uses it for the pairs of groups; a binding extremes lens of `audit` uses the
distribution-free limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.pvalues import upper_tail
from .problem import TailProblem

Floats = NDArray[np.float64]

#: `fewest_rows` searches up to this many times the horizon.
_MOST_HORIZONS = 64


@dataclass(frozen=True, kw_only=True)
class LevelComparison:
    """The test of equal return levels of two tails."""

    estimate: float
    low: float
    high: float
    statistic: float
    pvalue: float
    #: Whether the p-value is only an upper bound.
    pvalue_is_upper_bound: bool
    #: "order statistics", "fit", or both joined by "and", the first group's method first.
    method: str
    reason: str


def compare_return_levels(
    first: TailProblem,
    second: TailProblem,
    horizon: float,
    call: _native.Call,
    *,
    fit_only: bool = False,
) -> LevelComparison:
    """Compare the return levels of two tails: see `compare_all`."""
    return compare_all((first, second), [(0, 1)], horizon, call, fit_only=fit_only)[0]


def compare_all(
    tails: Sequence[TailProblem],
    pairs: Sequence[tuple[int, int]],
    horizon: float,
    call: _native.Call,
    *,
    confidence: float | None = None,
    fit_only: bool = False,
) -> list[LevelComparison]:
    """Compare return levels of pairs of tails, given by their positions.

    Order statistics are used for a tail when they give both a lower and an upper limit of its
    level, otherwise a fit. A pair whose interval by order statistics is unbounded at this
    confidence is compared by fits if possible.
    """
    confidence = tails[0].confidence if confidence is None else confidence
    sides = [_side(tail, horizon, call, fit_only) for tail in tails]
    comparable_pairs = [pair for pair in pairs if not any(sides[place].reason for place in pair)]
    used = sorted({place for pair in comparable_pairs for place in pair})
    index_of = {place: index for index, place in enumerate(used)}
    results = _native.compare_levels(
        [sides[place].native for place in used],
        [(index_of[first], index_of[second]) for first, second in comparable_pairs],
        float(horizon),
        confidence,
        call,
    )
    comparisons = {
        pair: _compared(sides[pair[0]], sides[pair[1]], *result)
        for pair, result in zip(comparable_pairs, results, strict=True)
    }
    unbounded = [
        pair
        for pair, comparison in comparisons.items()
        if math.isinf(comparison.high - comparison.low)
        and "order statistics" in comparison.method
        and all(tails[place].reaches(horizon) for place in pair)
    ]
    if unbounded:
        fits = compare_all(tails, unbounded, horizon, call, confidence=confidence, fit_only=True)
        comparisons |= dict(zip(unbounded, fits, strict=True))
    return [
        comparisons.get(pair) or _incomparable(sides[pair[0]].reason or sides[pair[1]].reason)
        for pair in pairs
    ]


def distribution_free_limits(
    tails: Sequence[TailProblem],
    pairs: Sequence[tuple[int, int]],
    horizon: float,
    call: _native.Call,
    *,
    confidence: float,
) -> list[tuple[float, float]]:
    r"""Return distribution-free limits of the return level differences of pairs of tails.

    The number N of n rows above the return level of a horizon is Bin(n, 1 / horizon) for every law.
    With D the binomial deviance of a count and c the smallest number with
    P(D_1(N_1) + D_2(N_2) > c) <= 1 - confidence, the limits are the least and the greatest

        x_1 - x_2 with D_1(N_1(x_1)) + D_2(N_2(x_2)) <= c.

    Both limits of a pair hold in at least ``confidence`` of samples. A group with too few rows has
    a lower limit of its level but no upper limit; the known end of its values is used instead.
    """
    if not pairs:
        return []
    sides = [tail.sorted for tail in tails]
    comparisons = _native.compare_levels(sides, pairs, float(horizon), confidence, call)
    lowest = [tail.sorted.order_limits(horizon, confidence)[0] for tail in tails]
    ends = [math.inf if tail.upper is None else tail.upper for tail in tails]
    limits = []
    for (first, second), (_, _, low, high) in zip(pairs, comparisons, strict=True):
        least = lowest[first] - ends[second] if math.isinf(low) else low
        most = ends[first] - lowest[second] if math.isinf(high) else high
        limits.append((least, most))
    return limits


def fewest_rows(horizon: float, confidence: float, call: _native.Call) -> int:
    """Return the smallest size at which two equally large groups have finite limits.

    The limits are those of `distribution_free_limits`.
    """
    low, high = 1, _MOST_HORIZONS * math.ceil(horizon)
    while low < high:
        n = (low + high) // 2
        side = _native.TailValues(np.arange(n, dtype=np.float64), call)
        comparisons = _native.compare_levels(
            [side, side], [(0, 1)], float(horizon), confidence, call
        )
        low, high = (n + 1, high) if math.isinf(comparisons[0][-1]) else (low, n)
    return low


@dataclass(frozen=True, kw_only=True)
class _TailSide:
    """A tail in a comparison."""

    native: Any = None
    method: str = ""
    value: float = math.nan
    #: Why it cannot be compared.
    reason: str = ""


def _side(tail: TailProblem, horizon: float, call: _native.Call, fit_only: bool) -> _TailSide:
    reason = tail.why_refused(horizon)
    if not reason and tail.is_measured(horizon) and not fit_only:
        return _TailSide(native=tail.sorted, method="order statistics", value=tail.value(horizon))
    if not reason and tail.fit is not None and tail.reaches(horizon):
        native = (tail.fit, tail.cuts(horizon, call))
        return _TailSide(native=native, method="fit", value=tail.fit.level(horizon))
    return _TailSide(reason=reason or tail.why_no_fit or "the level is below the threshold")


def _compared(
    first: _TailSide, second: _TailSide, statistic: float, pvalue: float, low: float, high: float
) -> LevelComparison:
    methods = (first.method, second.method)
    # The cuts, simulated critical values of the test of a fit, are tabulated up to this score.
    least = 2 * upper_tail(_native.last_cut_score())
    pvalue_is_upper_bound = "fit" in methods and pvalue < least
    return LevelComparison(
        estimate=first.value - second.value + 0.0,
        low=low,
        high=high,
        statistic=statistic,
        pvalue=least if pvalue_is_upper_bound else pvalue,
        pvalue_is_upper_bound=pvalue_is_upper_bound,
        method=" and ".join(dict.fromkeys(methods)),
        reason="",
    )


def _incomparable(reason: str) -> LevelComparison:
    nan = math.nan
    return LevelComparison(
        estimate=nan,
        low=nan,
        high=nan,
        statistic=nan,
        pvalue=nan,
        pvalue_is_upper_bound=False,
        method="",
        reason=reason,
    )


def permute_levels(
    first: TailProblem,
    second: TailProblem,
    horizon: float,
    draws: _native.Draws,
    call: _native.Call,
) -> tuple[float, Floats]:
    """Return the difference of fitted levels, observed and under permutation of the rows."""
    ends = {first.scale_upper, second.scale_upper}
    upper = first.scale_upper if len(ends) == 1 else None
    fits = [tail.sorted.fit(tail.k, upper, None) for tail in (first, second)]
    drawn = _native.permuted_level_differences(
        first.sorted, second.sorted, (first.k, second.k), (float(horizon), upper), draws, call
    )
    return fits[0].level(horizon) - fits[1].level(horizon), drawn
