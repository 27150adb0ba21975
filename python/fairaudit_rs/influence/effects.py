"""Measure the effects of a repair on every rate, on rows that were not used to fit it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import NotMeasurableError
from .problem import GroupMeasure
from .rates import RATES, Measure, RateFormula, terms_of

Floats = NDArray[np.float64]

ACCURACY = RateFormula("accuracy", (1, -1, -1, 2), (1, 0, 0, 0))


@dataclass(frozen=True, kw_only=True)
class RepairEffect:
    """A rate of the target group before and after a repair, on the report part.

    Attributes
    ----------
    metric : str
        ``"accuracy"``, a rate, or the metric of the audit.
    before, after : float
        The value in the target group; NaN if undefined.
    others : float
        The value in the others.
    gap_before, gap_before_low, gap_before_high : float
        The gap between the target group and the others, with its interval.
    gap_after, gap_after_low, gap_after_high : float
        The same after the repair.
    """

    metric: str
    before: float
    after: float
    others: float
    gap_before: float
    gap_before_low: float
    gap_before_high: float
    gap_after: float
    gap_after_low: float
    gap_after_high: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportRows:
    """The report part: rows of the target group before and after the repair, and the others."""

    label: Floats
    before: Floats
    after: Floats
    count: Floats
    #: The terms (1, y, f, y f) of the distinct rows of the others, and the count of each.
    others: Floats
    other_count: Floats

    def group(self, measure: Measure, after: bool) -> GroupMeasure:
        """Return the target group's measure."""
        terms = terms_of(self.label, self.after if after else self.before)
        return GroupMeasure.from_terms(measure, terms, self.count, None, "the target group")

    def other(self, measure: Measure) -> GroupMeasure:
        """Return the others' measure."""
        return GroupMeasure.from_terms(measure, self.others, self.other_count, None, "the others")

    def gap(self, measure: Measure, after: bool) -> tuple[float, float]:
        """Return the gap and its standard error."""
        own, other = self.group(measure, after), self.other(measure)
        error = math.sqrt(own.variance + other.variance)
        return own.value.value - other.value.value, error

    def smallest_denominator(self, measure: Measure) -> float:
        """Return the rows in the smallest denominator of either side, after the repair."""
        own = self.count @ terms_of(self.label, self.after)
        other = self.other_count @ self.others
        denominators = [np.array(rate.denominator) for rate in measure.rates]
        return min(float(side @ totals) for side in denominators for totals in (own, other))

    def effects(
        self, measure: Measure, with_labels: bool, level: float
    ) -> tuple[RepairEffect, ...]:
        """Return the effects on the measure, on accuracy and on every rate of the data."""
        single = [Measure(rate.name, (rate,), (1.0,)) for rate in (ACCURACY, *RATES.values())]
        measures = [rate for rate in single if with_labels or not rate.needs_labels]
        if measure.name not in RATES:
            measures = [measure, *measures]
        return tuple(self._effect(rate, level) for rate in measures)

    def _effect(self, measure: Measure, level: float) -> RepairEffect:
        sides = (
            partial(self.group, measure, False),
            partial(self.group, measure, True),
            partial(self.other, measure),
        )
        values = [_value_or_nan(side) for side in sides]
        gaps = [self._interval(measure, after, level) for after in (False, True)]
        (before, low, high), (after, after_low, after_high) = gaps
        return RepairEffect(
            metric=measure.name,
            before=values[0],
            after=values[1],
            others=values[2],
            gap_before=before,
            gap_before_low=low,
            gap_before_high=high,
            gap_after=after,
            gap_after_low=after_low,
            gap_after_high=after_high,
        )

    def _interval(self, measure: Measure, after: bool, level: float) -> tuple[float, float, float]:
        try:
            gap, error = self.gap(measure, after)
        except NotMeasurableError:
            return math.nan, math.nan, math.nan
        half = _native.normal_quantile(0.5 + level / 2) * error
        return gap, gap - half, gap + half


def _value_or_nan(group: Callable[[], GroupMeasure]) -> float:
    try:
        return group().value.value
    except NotMeasurableError:
        return math.nan
