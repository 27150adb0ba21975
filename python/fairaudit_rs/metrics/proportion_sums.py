"""Recognises count metrics that are weighted sums of proportions, such as balanced accuracy."""

from __future__ import annotations

from typing import NamedTuple

from .. import _native

#: Positions of hits and misses in (tp, fp, fn, tn), for the rows of each label, or of each
#: decision.
_OF_LABELS = ((0, 2), (3, 1))
_OF_DECISIONS = ((0, 1), (3, 2))
#: Counts at which a formula is compared with the sum, to find out whether they are equal.
_TRIED = ((7.0, 3.0, 5.0, 11.0), (2.0, 9.0, 4.0, 1.0), (13.0, 1.0, 6.0, 8.0), (5.0, 5.0, 1.0, 17.0))
_ROUNDING = 1e-12


class Proportion(NamedTuple):
    """A proportion in a sum: its factor, and the positions of its hits and misses."""

    factor: float
    hits: int
    misses: int


def conditions_on_denominator(metric: _native.CountMetric) -> bool:
    """Return whether a metric is a function of one proportion among the rows of its denominator.

    F1 is 2 j / (1 + j) with j the share of true positives among tp + fp + fn, so a test that
    exchanges groups among these rows only is exact, as for a proportion.
    """
    if metric.is_proportion:
        return True
    if metric.fraction is None:
        return False
    kinds = {(above, below) for above, below in zip(*metric.fraction, strict=True) if below}
    outside = (above for above, below in zip(*metric.fraction, strict=True) if not below)
    return len(kinds) == 2 and not any(outside) and all(below > 0 for _, below in kinds)


def sum_of_proportions(metric: _native.CountMetric) -> tuple[Proportion, ...]:
    """Return the proportions of disjoint rows that a metric is a weighted sum of, if it is one."""
    for pairs in (_OF_LABELS, _OF_DECISIONS):
        proportions = _sum_over(metric, pairs)
        if proportions:
            return proportions
    return ()


def _sum_over(
    metric: _native.CountMetric, pairs: tuple[tuple[int, int], tuple[int, int]]
) -> tuple[Proportion, ...]:
    """Return the two proportions that a metric is a weighted sum of; empty if it is not.

    The factors follow from the values where both proportions are 0 or 1. Other counts then verify
    that the metric equals the sum.
    """

    def value(*positions: int) -> float:
        return metric.evaluate([float(k in positions) for k in range(4)]).value

    (hits, misses), (hits_2, misses_2) = pairs
    constant = value(misses, misses_2)
    factors = (value(hits, misses_2) - constant, value(misses, hits_2) - constant)
    for counts in _TRIED:
        shares = [counts[i] / (counts[i] + counts[j]) for i, j in pairs]
        expected = constant + factors[0] * shares[0] + factors[1] * shares[1]
        if not abs(metric.evaluate(counts).value - expected) <= _ROUNDING:
            return ()
    return tuple(
        Proportion(factor, *positions)
        for factor, positions in zip(factors, pairs, strict=True)
        if abs(factor) > _ROUNDING
    )
