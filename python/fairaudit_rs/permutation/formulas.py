"""Interval and margin methods that need no replicates: score, MOVER, normal distribution.

A `FormulaMethod` returns the interval of a value and of a ratio, and tests a gap or ratio against
two margins; the interval of a gap comes from the problem. `Problem.formula` returns the formula of
a method; a problem can define its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import ArgumentError
from ..inference import mover
from ..inference.intervals import NO_INTERVAL, Bootstrap, Interval, Pair
from ..inference.mantel_haenszel import WithinStrata
from ..inference.proportions import (
    SampleProportion,
    difference_interval,
    farrington_manning,
    ratio_interval,
    ratio_score,
    wilson_interval,
)
from ..inference.pvalues import (
    clamp_pvalue,
    monte_carlo_pvalue,
    normal_cdf,
    normal_of_tail,
    standardize_gap,
    two_sided_normal_quantile,
    upper_tail,
)
from ..inference.score import ScoreStatistic
from ..inference.tolerance import UNKNOWN, TolerancePValues
from .reasons import WithholdingReason


class GroupDifference(Protocol):
    """The gap between two groups."""

    @property
    def estimate(self) -> float:
        """The value of the first group less that of the second."""

    @property
    def standard_error(self) -> float:
        """The standard error of the gap."""


class GroupedMetric(Protocol):
    """A metric in some groups."""

    @property
    def evaluations(self) -> Sequence[_native.Evaluation]:
        """The metric in each group."""

    def gap(self, pair: Pair) -> GroupDifference:
        """Return the difference of two groups."""

    def limited(self, position: int) -> mover.ValueWithLimits:
        """Return the metric of a group with its limits."""

    def log_ratio(self, pair: Pair) -> tuple[float, float]:
        """Return the logarithm of the ratio of two values above 0, and its standard error."""


class MarginTest(NamedTuple):
    """The statistics of a difference or ratio at a lower and an upper margin."""

    tails: TolerancePValues
    #: The statistic of the one-sided test that is further from rejecting; NaN if not testable.
    statistic: float

    @property
    def pvalue(self) -> float:
        """The p-value of the hypothesis that the gap lies outside the margins."""
        return self.tails.p_pass

    @classmethod
    def of_replicates(
        cls, t: NDArray[np.float64], estimate: float, error: float, margin: float
    ) -> MarginTest:
        """Return the tests of -+ margin, given (T* - T) / se* of bootstrap replicates."""
        above, below = (standardize_gap(estimate - end, error) for end in (-margin, margin))
        undefined = np.isnan(t)

        def pvalue(extreme: NDArray[np.bool_]) -> float:
            return monte_carlo_pvalue(int((extreme | undefined).sum()), len(t))

        tails = [
            pvalue(extreme)
            for end in (above, below)
            for extreme in (t >= end - 1e-10 * abs(end), t <= end + 1e-10 * abs(end))
        ]
        return cls(TolerancePValues(*tails), min(above, -below, key=abs))

    @classmethod
    def of_normal(cls, above: float, below: float) -> MarginTest:
        """Return the tests of two normal statistics, those of the lower and the upper margin."""
        if math.isnan(above) or math.isnan(below):
            return UNKNOWN_MARGIN_TEST
        tails = [clamp_pvalue(side(z)) for z in (above, below) for side in (upper_tail, normal_cdf)]
        return cls(TolerancePValues(*tails), min(above, -below, key=abs))

    @classmethod
    def of_scores(cls, above: ScoreStatistic, below: ScoreStatistic) -> MarginTest:
        """Return the tests of two scores, those of the lower and the upper margin."""
        if math.isnan(above.plain) or math.isnan(below.plain):
            return UNKNOWN_MARGIN_TEST
        least_above, least_below = min(above), min(below)
        most_above, most_below = max(above), max(below)
        # As `ScoreStatistic.greater` and `ScoreStatistic.less`, but faster: this is the hot spot
        # of audits with many groups.
        tails = TolerancePValues(
            clamp_pvalue(upper_tail(least_above)),
            clamp_pvalue(normal_cdf(most_above)),
            clamp_pvalue(upper_tail(least_below)),
            clamp_pvalue(normal_cdf(most_below)),
        )
        return cls(tails, min(least_above, -most_below, key=abs))


UNKNOWN_MARGIN_TEST = MarginTest(UNKNOWN, math.nan)


@dataclass(frozen=True)
class FormulaMethod(ABC):
    """A method for one problem; most need no replicates."""

    problem: GroupedMetric

    @abstractmethod
    def value(self, position: int, level: float) -> Interval:
        """Return the interval of the metric of a group; NaN without one."""

    @abstractmethod
    def ratio(self, pair: Pair, level: float) -> Interval:
        """Return the interval of the ratio of two groups; NaN without one."""

    @abstractmethod
    def margin_test(self, pair: Pair, margin: float, scale: str) -> MarginTest:
        """Test whether a difference lies within -+ margin, or a ratio from margin to 1 / margin.

        The p-value is 1 if the pair cannot be tested.
        """

    def shown_within(self, pair: Pair, level: float, scale: str) -> float | None:
        """Return the smallest margin at which both one-sided tests reject; None: no formula.

        For ratios, the logarithm of the margin.
        """
        del pair, level, scale
        return None

    def shown_beyond(self, pair: Pair, level: float, scale: str) -> float | None:
        """Return the largest margin that the tests reject together; None: no formula.

        For ratios, the logarithm of the margin.
        """
        del pair, level, scale
        return None

    def not_rejected(self, pair: Pair, level: float) -> Interval | None:
        """Return the interval of differences that the tests at margins do not reject.

        None if this is the interval of the problem.
        """
        del pair, level
        return None

    @property
    def allows_ratio_of_zero(self) -> bool:
        """Return whether ratios with a group value of 0 have an interval."""
        return False

    def reason_unknown(self, pair: Pair) -> WithholdingReason | None:
        """Return why a gap cannot be tested, apart from a lack of variation; None if it can."""
        del pair
        return None


class StratifiedProportions(GroupedMetric, Protocol):
    """Proportions by group, also within strata."""

    def within(self, pair: Pair) -> WithinStrata:
        """Return the Mantel-Haenszel comparison of two groups."""


class _ScoreMethod(FormulaMethod):
    """Proportions: Wilson's interval, and score tests of differences and ratios."""

    @property
    def allows_ratio_of_zero(self) -> bool:
        return True

    def value(self, position: int, level: float) -> Interval:
        return wilson_interval(*self._share(position), two_sided_normal_quantile(level))

    def ratio(self, pair: Pair, level: float) -> Interval:
        first, second = (self._share(i) for i in pair)
        return ratio_interval(first, second, two_sided_normal_quantile(level))

    def margin_test(self, pair: Pair, margin: float, scale: str) -> MarginTest:
        evaluations = self.problem.evaluations
        first, second = evaluations[pair[0]], evaluations[pair[1]]
        counts = (first.numerator, first.denominator, second.numerator, second.denominator)
        if scale == "ratio":
            return MarginTest.of_scores(
                ratio_score(*counts, margin), ratio_score(*counts, 1 / margin)
            )
        if margin >= 1:
            raise ArgumentError(
                f"margin is {margin:g}; accepted: below 1 for proportions", argument="margin"
            )
        return MarginTest.of_scores(
            farrington_manning(*counts, -margin), farrington_manning(*counts, margin)
        )

    def not_rejected(self, pair: Pair, level: float) -> Interval:
        first, second = (self._share(i) for i in pair)
        return difference_interval(first, second, two_sided_normal_quantile(level))

    def _share(self, position: int) -> SampleProportion:
        entry = self.problem.evaluations[position]
        return SampleProportion(entry.value, entry.denominator)


@dataclass(frozen=True)
class MantelHaenszelMethod(FormulaMethod):
    """Differences and ratios of proportions within strata; group values are over all rows."""

    problem: StratifiedProportions

    def value(self, position: int, level: float) -> Interval:
        """Return the interval of the metric in all rows of a group."""
        return _ScoreMethod(self.problem).value(position, level)

    @property
    def allows_ratio_of_zero(self) -> bool:
        """Return whether ratios with a group value of 0 have an interval."""
        return True

    def ratio(self, pair: Pair, level: float) -> Interval:
        """Return the ratios that the score test within strata does not reject."""
        return self.problem.within(pair).ratio_interval(two_sided_normal_quantile(level))

    def margin_test(self, pair: Pair, margin: float, scale: str) -> MarginTest:
        """Test whether a difference lies within -+ margin, or a ratio from margin to 1 / margin."""
        within = self.problem.within(pair)
        if scale == "ratio":
            return MarginTest.of_scores(within.ratio_score(margin), within.ratio_score(1 / margin))
        if margin >= 1:
            raise ArgumentError(
                f"margin is {margin:g}; accepted: below 1 for proportions", argument="margin"
            )
        return MarginTest.of_scores(
            within.difference_score(-margin), within.difference_score(margin)
        )


class _MoverMethod(FormulaMethod):
    """Combines the limits of each group's value (MOVER); ratios on the log scale."""

    def value(self, position: int, level: float) -> Interval:
        return self.problem.limited(position).limits(two_sided_normal_quantile(level))

    def ratio(self, pair: Pair, level: float) -> Interval:
        first, second = (self.problem.limited(i).logarithm() for i in pair)
        low, high = mover.difference_interval(first, second, two_sided_normal_quantile(level))
        return safe_exp(low), safe_exp(high)

    def margin_test(self, pair: Pair, margin: float, scale: str) -> MarginTest:
        first, second = self._limited(pair, scale)
        margin = -math.log(margin) if scale == "ratio" else margin
        above = mover.margin_statistic(first, second, -margin)
        return MarginTest.of_normal(
            above, mover.margin_statistic(first, second, margin) if margin else above
        )

    def shown_within(self, pair: Pair, level: float, scale: str) -> float | None:
        """Return the end of the interval farther from 0: the smallest margin that is shown."""
        low, high = mover.difference_interval(*self._limited(pair, scale), normal_of_tail(level))
        return None if math.isnan(low) else max(high, -low)

    def _limited(
        self, pair: Pair, scale: str
    ) -> tuple[mover.ValueWithLimits, mover.ValueWithLimits]:
        first, second = (self.problem.limited(i) for i in pair)
        return (first.logarithm(), second.logarithm()) if scale == "ratio" else (first, second)


class _NormalMethod(FormulaMethod):
    """The normal distribution with the linearised variance; ratios on the log scale."""

    def value(self, position: int, level: float) -> Interval:
        entry = self.problem.evaluations[position]
        return normal_interval(
            entry.value, math.sqrt(entry.variance), two_sided_normal_quantile(level)
        )

    def ratio(self, pair: Pair, level: float) -> Interval:
        low, high = normal_interval(*self.problem.log_ratio(pair), two_sided_normal_quantile(level))
        return safe_exp(low), safe_exp(high)

    def margin_test(self, pair: Pair, margin: float, scale: str) -> MarginTest:
        if scale == "ratio":
            estimate, error = self.problem.log_ratio(pair)
            margin = -math.log(margin)
        else:
            gap = self.problem.gap(pair)
            estimate, error = gap.estimate, gap.standard_error
        varies = all(self.problem.evaluations[i].variance > 0 for i in pair)
        if not (varies and error > 0):
            # A variance of 0 is not precision: a few rows can agree by chance.
            return UNKNOWN_MARGIN_TEST
        return MarginTest.of_normal(
            standardize_gap(estimate + margin, error), standardize_gap(estimate - margin, error)
        )


FORMULAS: dict[str, type[FormulaMethod]] = {
    "score": _ScoreMethod,
    "mover": _MoverMethod,
    "delta": _NormalMethod,
}


def log_ratio(problem: GroupedMetric, pair: Pair) -> tuple[float, float]:
    """Return the logarithm of the ratio of two values above 0, and its standard error."""
    first, second = (problem.evaluations[i] for i in pair)
    error = math.sqrt(_relative(first) + _relative(second))
    ratio = first.value / second.value
    if 0 < ratio < math.inf:
        return math.log(ratio), error
    return math.log(first.value) - math.log(second.value), error


def _relative(evaluation: _native.Evaluation) -> float:
    """Return the relative variance; the squared value can overflow."""
    try:
        return evaluation.variance / evaluation.value**2
    except (ZeroDivisionError, OverflowError):
        share = math.sqrt(evaluation.variance) / evaluation.value
        return share * share


def log_ratios(bootstrap: Bootstrap, pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the replicates of the log ratio of two groups and of its variance."""
    a, b = (np.where(part > 0, part, np.nan) for part in (bootstrap.values[:, i] for i in pair))
    v_a, v_b = (bootstrap.variances[:, i] for i in pair)
    return np.log(a / b), v_a / a**2 + v_b / b**2


def normal_interval(estimate: float, error: float, z: float) -> Interval:
    """Return the estimate -+ z standard errors; NaN without a standard error."""
    return (estimate - z * error, estimate + z * error) if error > 0 else NO_INTERVAL


def safe_exp(value: float) -> float:
    """Return e^value, or infinity on overflow."""
    return math.exp(value) if not value >= 700 else math.inf
