"""Designs in which the level is known not to hold, each with the error that was measured.

The figures are those of `tests/permutation/test_doubts.py`, which simulates the designs.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..metrics.metric import Metric

def correlation_doubts(metric: Metric) -> Iterator[str]:
    """Say what is known to go wrong in correlations."""
    if metric.by_rank:
        yield (
            f"where attribute and value depend on each other without a rank correlation (a U "
            f"shape), the test of {metric.name} rejects 10 to 12 % at the 5 % level, "
            "whatever the number of rows"
        )

