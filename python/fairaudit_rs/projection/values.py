"""Compute the gaps of the criteria with their intervals, and the histogram of the margins."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.intervals import NO_INTERVAL, range_of_pairs
from ..inference.proportions import newcombe_interval, wilson_interval
from .criteria import CriteriaTolerance
from .moves import Moves
from .problem import Criteria
from .question import ProjectionQuestion
from .result import CriterionValue

_BINS = 60


def values_of(
    criteria: Criteria, tolerance: CriteriaTolerance, level: float
) -> tuple[CriterionValue, ...]:
    """Return every criterion with its rates, its gap and an interval."""
    errors = np.sqrt(np.diag(criteria.covariance) / criteria.n_rows)
    z = _native.normal_quantile(0.5 + level / 2)
    return tuple(
        _value(criteria, j, float(errors[j]), z, (float(low), float(high)))
        for j, (low, high) in enumerate(zip(tolerance.low, tolerance.high, strict=True))
    )


def _value(
    criteria: Criteria, j: int, error: float, z: float, tolerance: tuple[float, float]
) -> CriterionValue:
    described, gap = criteria.describe(j), float(criteria.gap[j])
    low, high = gap - z * error, gap + z * error
    if described.shares is not None:
        low, high = newcombe_interval(*described.shares, z)
    least, most = described.bounds
    first_value, second_value = described.rates
    shares = described.shares or ()
    used = [share.n_rows for share in shares] or [math.nan] * 2
    of_values = [wilson_interval(*share, z) for share in shares] or [NO_INTERVAL] * 2
    return CriterionValue(
        name=described.name,
        attribute=described.attribute,
        first=described.first,
        second=described.second,
        first_value=first_value,
        second_value=second_value,
        first_used=used[0],
        second_used=used[1],
        first_interval=of_values[0],
        second_interval=of_values[1],
        gap=gap,
        standard_error=error,
        confidence_interval=(max(low, least), min(high, most)),
        tolerance=tolerance,
    )


def largest_gap(
    values: tuple[CriterionValue, ...], criteria: Criteria, level: float
) -> tuple[float, float, tuple[float, float]]:
    """Return the largest gap, its standard error and its interval."""
    if len(values) == 1:
        value = values[0]
        return value.gap, value.standard_error, value.confidence_interval
    # Bonferroni.
    each_level = 1 - (1 - level) / len(values)
    z = _native.normal_quantile(0.5 + each_level / 2)
    wide = [_value(criteria, j, v.standard_error, z, v.tolerance) for j, v in enumerate(values)]
    interval = range_of_pairs([value.confidence_interval for value in wide])
    return max(abs(value.gap) for value in values), math.nan, interval


def histogram_of(
    question: ProjectionQuestion, moves: Moves, width: float
) -> tuple[float, NDArray[np.float64]]:
    """Return the limit of the histogram of the margins, and its bins by group."""
    farthest = float(moves.distance.max()) if len(moves) else 0.0
    limit = max(1.5 * farthest, 3 * width if width > 0 else 0.0)
    if not limit > 0:
        limit = 1.0
    criteria = question.criteria
    return limit, question.by_group(criteria.native.histogram(limit, _BINS, criteria.call))
