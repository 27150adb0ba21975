"""The gaps of the criteria with their intervals, and the histogram of the margins."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.intervals import range_of_pairs
from ..inference.proportions import newcombe
from .moves import Moves
from .problem import Criteria, Tolerance, UnitCriteria
from .question import Question
from .result import CriterionValue

_BINS = 60


def values_of(criteria: Criteria, tolerance: Tolerance, level: float) -> tuple[CriterionValue, ...]:
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
    gap = float(criteria.gap[j])
    interval = (gap - z * error, gap + z * error)
    if not isinstance(criteria, UnitCriteria):
        name = criteria.values.names[j]  # type: ignore[attr-defined]
        nan = math.nan
        return CriterionValue(
            name=name,
            attribute="",
            first=None,
            second=None,
            first_value=nan,
            second_value=nan,
            gap=gap,
            standard_error=error,
            confidence_interval=interval,
            tolerance=tolerance,
        )
    criterion = criteria.criteria[j]
    first, second = (float(rate[j]) for rate in criteria.rates)
    if criteria.columns.weight is None:
        sizes = [float(size[j]) for size in criteria.sizes]
        interval = newcombe((first, 0.0, 0.0, sizes[0]), (second, 0.0, 0.0, sizes[1]), z)
    return CriterionValue(
        name=criterion.metric,
        attribute=criterion.attribute,
        first=criterion.first,
        second=criterion.second,
        first_value=first,
        second_value=second,
        gap=gap,
        standard_error=error,
        confidence_interval=(max(interval[0], -1.0), min(interval[1], 1.0)),
        tolerance=tolerance,
    )


def largest(
    values: tuple[CriterionValue, ...], criteria: Criteria, level: float
) -> tuple[float, float, tuple[float, float]]:
    """Return the largest gap, its standard error and its interval."""
    if len(values) == 1:
        one = values[0]
        return one.gap, one.standard_error, one.confidence_interval
    each = 1 - (1 - level) / len(values)
    z = _native.normal_quantile(0.5 + each / 2)
    wide = [_value(criteria, j, v.standard_error, z, v.tolerance) for j, v in enumerate(values)]
    interval = range_of_pairs([value.confidence_interval for value in wide])
    return max(abs(value.gap) for value in values), math.nan, interval


def histogram_of(
    question: Question, moves: Moves, width: float
) -> tuple[float, NDArray[np.float64]]:
    """Return how far the histogram of the margins reaches, and its bins by group."""
    farthest = float(moves.distance.max()) if len(moves) else 0.0
    limit = max(1.5 * farthest, 3 * width if width > 0 else 0.0)
    if not limit > 0:
        limit = 1.0
    criteria = question.criteria
    counts = _native.margin_histogram(
        criteria.columns.native, criteria.n_units, limit, _BINS, criteria.n_threads
    ).reshape(criteria.n_units, _BINS)
    return limit, question.by_group(counts)
