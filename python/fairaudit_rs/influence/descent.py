"""The descent (Algorithm 1): find row weights of the target group that make its gap small.

The rows are split into three disjoint parts: *fit* gives the direction of each step, *stop* decides
when to end, *report* measures the result. Sums run over distinct rows in their own order, so that
no decision depends on the order of the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import NotMeasurableError
from ..report.notes import Note
from .label_probability import label_probability
from .problem import InfluenceProblem, RowParts
from .rates import Measure, MeasureValue, RateFormula, terms_of

Floats = NDArray[np.float64]

PARTS = ("fit", "stop", "report")
FIT, STOP, REPORT = range(3)
#: The fewest rows in the denominator of a rate for valid intervals: 95 % intervals cover 0.90 to
#: 0.93 with 50 to 80 rows, and 0.94 to 0.96 with 80 to 120.
ENOUGH_EVENTS = 80.0
#: With fewer events or non-events, or fewer effective rows, intervals may be too short.
FEW_EVENTS = 10.0
FEW_WEIGHTED = 20.0
#: The path ends when the effective sample size is a smaller share of the rows.
_LEAST_SHARE = 0.1
#: The random stream of the seed for resampling; the first two deal the parts.
_RESAMPLING = 2


@dataclass(frozen=True, kw_only=True)
class StoppingRule:
    """The length of the steps and the rule that ends the descent, fixed in advance."""

    tolerance: float
    step: float
    max_steps: int
    #: The level of the one-sided bound that ends the path, and of the two-sided intervals.
    level: float

    @property
    def quantile(self) -> float:
        """The distance of the bound from |gap|, in standard errors."""
        return _native.normal_quantile(self.level)


@dataclass(frozen=True, kw_only=True)
class DescentStep:
    """The state of the weights after a number of steps.

    Attributes
    ----------
    step : int
        The number of steps; 0 before the first.
    fit_gap : float
        The gap in the fit part, with P(Y = 1 | X) in place of labels.
    gap, standard_error, bound : float
        The gap in the stop part, and the one-sided upper bound of its absolute value.
    effective_share : float
        The effective sample size of the stop part, divided by its rows.
    """

    step: int
    fit_gap: float
    gap: float
    standard_error: float
    bound: float
    effective_share: float


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """The sums of the weights, and of the squared weights, of each distinct row."""

    once: Floats
    twice: Floats
    #: The number of rows with a positive weight.
    n: float

    @classmethod
    def from_counts(cls, count: NDArray[np.int64], weight: Floats) -> WeightedRows:
        """Return weighted rows from the count of each distinct row and its weight."""
        once = count * weight
        return cls(once, once * weight, float(count[weight > 0].sum()))

    @property
    def n_effective(self) -> float:
        """The effective sample size (Kish)."""
        square = float(self.twice.sum())
        return float(self.once.sum()) ** 2 / square if square > 0 else 0.0

    def events(self, rate: RateFormula, label: Floats, score: Floats) -> float:
        """Return the effective number of rows in the denominator of a rate."""
        one, of_label, of_score, of_both = rate.denominator
        denominator = one + of_label * label + of_score * score + of_both * label * score
        square = float((self.twice * denominator).sum())
        return float((self.once * denominator).sum()) ** 2 / square if square > 0 else 0.0

    def mean(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the weighted means of columns, and their standard errors."""
        total, used = self.once.sum(), self.once > 0
        once, twice, values = self.once[used, None], self.twice[used, None], values[used]
        mean = (once * values).sum(axis=0) / total
        square = (twice * (values - mean) ** 2).sum(axis=0) / total**2
        return mean, np.sqrt(square * (self.n / (self.n - 1) if self.n > 1 else math.nan))

    def group(self, measure: Measure, label: Floats, score: Floats, name: str) -> WeightedMeasure:
        """Return the value and the variance of a measure."""
        once, both = self.once, label * score
        columns = (once, once * label, once * score, once * both)
        totals = np.array([float(column.sum()) for column in columns])
        value = MeasureValue.from_totals(measure, totals, name)
        one, of_label, of_score, of_both = value.coefficients
        psi = one + of_label * label + of_score * score + of_both * both
        square = float((self.twice * psi**2).sum()) / totals[0] ** 2
        correction = self.n / (self.n - 1) if self.n > 1 else math.nan
        return WeightedMeasure(value, square * correction)


@dataclass(frozen=True, eq=False)
class WeightedMeasure:
    """The measure of weighted rows, with its variance."""

    measured: MeasureValue
    variance: float

    @property
    def value(self) -> float:
        """The value of the measure."""
        return self.measured.value


@dataclass(frozen=True, kw_only=True)
class GapEstimate:
    """A gap with its standard error and interval, and the measure of both sides."""

    value: float
    standard_error: float
    low: float
    high: float
    target: float
    others: float

    @classmethod
    def from_values(
        cls, target: WeightedMeasure, others: WeightedMeasure, level: float
    ) -> GapEstimate:
        """Return the gap of two groups."""
        error = math.sqrt(target.variance + others.variance)
        half = _native.normal_quantile(0.5 + level / 2) * error
        gap = target.value - others.value
        return cls(
            value=gap,
            standard_error=error,
            low=gap - half,
            high=gap + half,
            target=target.value,
            others=others.value,
        )


@dataclass(frozen=True, kw_only=True)
class FeatureMean:
    """The mean of a feature, or the share of one of its levels, before and after.

    Attributes
    ----------
    feature, level : str
        The feature and its level; the level of a number is empty.
    before, after : float
        The mean in the report part of the target group, without and with the weights.
    standard_error, low, high : float
        The standard error and the interval of the mean after.
    others : float
        The mean in the others.
    """

    feature: str
    level: str
    before: float
    after: float
    standard_error: float
    low: float
    high: float
    others: float


@dataclass(frozen=True, eq=False, kw_only=True)
class DescentPath:
    """The steps of a descent and the final weights."""

    steps: tuple[DescentStep, ...]
    status: str
    #: Four coefficients s per step, which multiplies weights by 1 - s . (1, h, f, h f), with h the
    #: label rate and f the score.
    directions: Floats
    #: The final weight of each distinct row, and the weighted rows of the report part.
    factors: Floats
    report: WeightedRows


@dataclass(frozen=True, eq=False, kw_only=True)
class Descent:
    """The target group and the others in three parts, with the fitted label rates."""

    audit: InfluenceProblem
    parts: RowParts
    #: P(Y = 1 | X) of the target group's distinct rows; 0 if the measure does not use labels.
    label_probability: Floats
    rule: StoppingRule
    seed: int

    @property
    def label(self) -> Floats:
        """The labels of the target group's distinct rows."""
        return np.ascontiguousarray(self.parts.distinct.terms[:, 0])

    @property
    def score(self) -> Floats:
        """The scores of the target group's distinct rows."""
        return np.ascontiguousarray(self.parts.distinct.terms[:, 1])

    def target(self, weighted: WeightedRows) -> WeightedMeasure:
        """Return the measure of weighted rows of the target group."""
        name = self.audit.display_name
        return weighted.group(self.audit.measure, self.label, self.score, name)

    def others(self, part: int) -> WeightedMeasure:
        """Return the measure of the others in a part."""
        count = self.parts.other_count[:, part]
        weighted = WeightedRows.from_counts(count, np.ones(len(count)))
        label, score = self.parts.others[:, 1], self.parts.others[:, 2]
        return weighted.group(self.audit.measure, label, score, "others")

    def unweighted(self, part: int) -> WeightedRows:
        """Return the rows of a part with equal weights."""
        count = self.parts.count[:, part]
        return WeightedRows.from_counts(count, np.ones(len(count)))

    def gap(self, weighted: WeightedRows, part: int) -> GapEstimate:
        """Return the gap of weighted rows of a part."""
        return GapEstimate.from_values(self.target(weighted), self.others(part), self.rule.level)

    @property
    def smallest_tolerance(self) -> float:
        """The bound of the stop part with equal weights and a gap of 0."""
        return self.rule.quantile * self.gap(self.unweighted(STOP), STOP).standard_error

    def fewest_events(self, weighted: WeightedRows) -> float:
        """Return the effective number of rows in the smallest denominator."""
        rates = self.audit.measure.rates
        return min(weighted.events(rate, self.label, self.score) for rate in rates)

    def reweighted(self) -> DescentPath:
        """Follow the descent by updating weights."""
        parts, call, rule = self.parts, self.audit.call, self.rule
        label, score = self.label, self.score
        other_label, other_score = np.ascontiguousarray(parts.others[:, 1:3].T)
        steps, numbers, status = _native.descent_path(
            (label, score, np.ascontiguousarray(parts.count)),
            self.label_probability,
            (other_label, other_score, np.ascontiguousarray(parts.other_count)),
            rates_of(self.audit.measure),
            (rule.step, rule.tolerance, rule.quantile, _LEAST_SHARE, rule.max_steps),
            call,
        )
        factors = _native.descent_factors(self.label_probability, score, steps, call)
        return DescentPath(
            steps=tuple(_step(number, *row) for number, row in enumerate(numbers.tolist())),
            status=status,
            directions=steps,
            factors=factors,
            report=WeightedRows.from_counts(parts.count[:, REPORT], factors),
        )

    def resampled(self) -> DescentPath:
        """Follow the descent by resampling the rows in every step, as printed in the paper."""
        measure, rule = self.audit.measure, self.rule
        draws = [WeightedDraws(self.parts.count[:, part], self.seed, part) for part in range(3)]
        goals = [self.others(FIT), self.others(STOP)]
        path: list[DescentStep] = []
        directions: list[Floats] = []
        while True:
            fit = draws[FIT].weighted.group(
                measure, self.label_probability, self.score, "the fit part"
            )
            stop = draws[STOP].weighted
            gap = GapEstimate.from_values(self.target(stop), goals[STOP], rule.level)
            bound = abs(gap.value) + rule.quantile * gap.standard_error
            share = stop.n_effective / float(self.parts.count[:, STOP].sum())
            fit_gap = fit.value - goals[FIT].value
            path.append(_step(len(path), fit_gap, gap.value, gap.standard_error, bound, share))
            if share < _LEAST_SHARE:
                status = "effective sample size"
            elif bound < rule.tolerance:
                status = "reached"
            elif len(path) > rule.max_steps:
                status = "steps"
            else:
                direction = self._direction(np.sign(fit_gap) * fit.measured.coefficients)
                kept = np.maximum(1 - self._combine(direction), 0.0)
                for part in draws:
                    part.draw(kept)
                directions.append(direction)
                continue
            total = np.asarray(sum(part.weighted.once for part in draws))
            return DescentPath(
                steps=tuple(path),
                status=status,
                directions=np.array(directions).reshape(-1, 4),
                factors=total / self.parts.count.sum(axis=1),
                report=draws[REPORT].weighted,
            )

    def _direction(self, psi: Floats) -> Floats:
        """Return the influence coefficients, scaled by the length of the step."""
        largest = float(self._combine(psi)[self.parts.count[:, FIT] > 0].max())
        size = min(self.rule.step, 1 / largest) if largest > 0 else self.rule.step
        return size * psi

    def _combine(self, coefficients: Floats) -> Floats:
        """Return a combination of 1, label rate, score and their product, by distinct row."""
        one, of_label, of_score, of_both = coefficients
        slope = of_score + of_both * self.label_probability
        return np.asarray(one + of_label * self.label_probability + slope * self.score)

    def marginals(self, report: WeightedRows) -> tuple[FeatureMean, ...]:
        """Return the means of all feature columns, before and after."""
        features = self.parts.distinct.features
        before, _ = self.unweighted(REPORT).mean(features)
        after, error = report.mean(features)
        half = _native.normal_quantile(0.5 + self.rule.level / 2) * error
        # Sort, so that sums do not depend on the order of the rows.
        others = [float(np.sort(column).mean()) for column in self.audit.other_matrix.T]
        return tuple(
            FeatureMean(
                feature=feature.name,
                level=level,
                before=float(before[at]),
                after=float(after[at]),
                standard_error=float(error[at]),
                low=float(after[at] - half[at]),
                high=float(after[at] + half[at]),
                others=others[at],
            )
            for feature in self.audit.encodings.features
            for at, level in zip(feature.columns, feature.levels or ("",), strict=False)
        )


class WeightedDraws:
    """The rows of a part, resampled in proportion to weights."""

    def __init__(self, count: NDArray[np.int64], seed: int, part: int) -> None:
        key = np.array([seed, _RESAMPLING + part], dtype=np.uint64)
        self.stream = np.random.Generator(np.random.Philox(key=key))
        self.distinct_of_row = np.repeat(np.arange(len(count)), count)
        self.n_distinct = len(count)
        #: The number of times that each row was drawn.
        self.times = np.ones(len(self.distinct_of_row))

    def draw(self, kept: Floats) -> None:
        """Draw as many rows as there are, with chances proportional to ``kept`` by distinct row."""
        ends = np.cumsum(self.times * kept[self.distinct_of_row])
        at = np.searchsorted(ends, self.stream.random(len(ends)) * ends[-1], side="right")
        at = np.minimum(at, len(ends) - 1)
        self.times = np.bincount(at, minlength=len(ends)).astype(np.float64)

    @property
    def weighted(self) -> WeightedRows:
        """The rows, weighted by the number of times that each was drawn."""
        once, twice = (
            np.asarray(np.bincount(self.distinct_of_row, times, self.n_distinct), dtype=np.float64)
            for times in (self.times, self.times**2)
        )
        return WeightedRows(once, twice, float((self.times > 0).sum()))


def _step(
    number: int, fit_gap: float, gap: float, error: float, bound: float, share: float
) -> DescentStep:
    return DescentStep(
        step=number,
        fit_gap=fit_gap,
        gap=gap,
        standard_error=error,
        bound=bound,
        effective_share=share,
    )


def rates_of(measure: Measure) -> Floats:
    """Return the weight, numerator and denominator of every rate, one row each."""
    pairs = zip(measure.weights, measure.rates, strict=True)
    return np.array([[weight, *rate.numerator, *rate.denominator] for weight, rate in pairs])


def check_events(audit: InfluenceProblem, parts: RowParts) -> list[Note]:
    """Raise if a part has too few rows in a denominator; return notes on small numerators."""
    sides = [
        (audit.display_name, parts.distinct.terms[:, :2], parts.count),
        ("the others", parts.others[:, 1:3], parts.other_count),
    ]
    notes = []
    for rate in audit.measure.rates:
        for name, rows, counts in sides:
            for part, count in zip(PARTS, counts.T, strict=True):
                totals = [float((count * column).sum()) for column in terms_of(*rows.T).T]
                events, n_below = (
                    sum(share * total for share, total in zip(side, totals, strict=True))
                    for side in (rate.numerator, rate.denominator)
                )
                if n_below < ENOUGH_EVENTS:
                    raise NotMeasurableError(
                        f"the {part} part has {n_below:,.1f} rows in the denominator of "
                        f"{rate.name} in {name}, and its intervals need at least "
                        f"{ENOUGH_EVENTS:g}. Use more rows, a larger share in parts=, or another "
                        "metric.",
                        argument="parts",
                        mentions=("metric",),
                    )
                if min(events, n_below - events) < FEW_EVENTS:
                    notes.append(
                        Note(
                            "few-events-in-part",
                            f"the {part} part has fewer than {FEW_EVENTS:g} events, or non-events, "
                            f"of {rate.name} in {name}: its standard errors may be too small",
                            (name,),
                            f"{rate.name}, {part} part",
                        )
                    )
    return notes


def prepare_descent(
    audit: InfluenceProblem, rule: StoppingRule, shares: Sequence[float], seed: int, nuisance: Any
) -> tuple[Descent, list[Note]]:
    """Split the rows into parts, check their events, and fit the regression of the label."""
    parts = audit.parts(shares, seed)
    notes = check_events(audit, parts)
    rate = label_probability(audit, parts, FIT, nuisance)
    return Descent(audit=audit, parts=parts, label_probability=rate, rule=rule, seed=seed), notes
