"""Metrics with the same gaps: shares that add up to 1 in every group, and other names of one."""

from __future__ import annotations

from collections.abc import Hashable

from .metric import Metric


def gap_key(metric: Metric) -> Hashable:
    """Return what is equal for two metrics whose differences between groups have one size.

    The rate of approvals and that of refusals among the same rows differ by the same amount: true
    positive and false negative rate, false positive and true negative, both predictive values and
    what they leave out, accuracy and error rate. Their ratios are others.
    """
    if not metric.is_proportion:
        return metric.name
    fraction = metric.native.fraction
    assert fraction is not None
    above, below = (tuple(float(count) for count in part) for part in fraction)
    rest = tuple(b - a for a, b in zip(above, below, strict=True))
    return below, frozenset((above, rest))
