"""Recognises metrics whose gaps have the same size, such as approval and refusal rates."""

from __future__ import annotations

from collections.abc import Hashable

from .metric import Metric


def gap_key(metric: Metric) -> Hashable:
    """Return a key that is equal for two metrics whose gaps between groups have the same size.

    Two rates of the same rows that add up to 1 have gaps of the same size: true positive and false
    negative rate, false positive and true negative rate, each predictive value and its complement,
    accuracy and error rate. Their ratios between groups differ.
    """
    if not metric.is_proportion:
        return metric.name
    fraction = metric.native.fraction
    assert fraction is not None
    above, below = (tuple(float(count) for count in part) for part in fraction)
    rest = tuple(b - a for a, b in zip(above, below, strict=True))
    return below, frozenset((above, rest))
