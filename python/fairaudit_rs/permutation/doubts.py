"""Designs in which the level is known not to hold, each with the error that was measured.

The figures are those of `tests/permutation/test_doubts.py`, which simulates the designs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ..metrics.metric import Metric

#: With fewer rows on either side than this, a rate is not normal enough.
_FEW_EVENTS = 20


def ratio_doubts(metric: Metric, names: Sequence[str], evaluations: Sequence[Any]) -> Iterator[str]:
    """Say what is known to go wrong in ratios of rates by the bootstrap."""
    if not metric.is_proportion:
        return
    few = _of_few_events(names, evaluations)
    if few:
        yield (
            f"ratios with a {metric.name} near 0 or 1 ({few}) are found by "
            "the bootstrap far too rarely: 49 of 50 against 4,990 of 5,000 with a margin of 0.8 "
            "gives p = 0.36, where the score test gives 0.0007"
        )


def correlation_doubts(metric: Metric) -> Iterator[str]:
    """Say what is known to go wrong in correlations."""
    if metric.by_rank:
        yield (
            f"where attribute and value depend on each other without a rank correlation (a U "
            f"shape), the test of {metric.name} rejects 10 to 12 % at the 5 % level, "
            "whatever the number of rows"
        )


def _of_few_events(names: Sequence[str], evaluations: Sequence[Any]) -> str:
    few = [n for n, e in zip(names, evaluations, strict=True) if _events(e) < _FEW_EVENTS]
    return ", ".join(few[:5])


def _events(entry: Any) -> float:
    """Return the effective number of rows on the rarer side of a rate."""
    if math.isnan(entry.value):
        return math.nan
    share = min(entry.value, 1 - entry.value)
    if entry.variance > 0:
        return float(share * entry.value * (1 - entry.value) / entry.variance)
    return 0.0
