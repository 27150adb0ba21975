"""The descent (Algorithm 1): weights on the rows of the target group under which its gap is small.

Rows are in three disjoint parts: *fit* says where to go, *stop* when to end, *report* what has come
of it. Kinds of rows have an order of their own, and what decides is added up in it.
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
from .label_rate import label_rate
from .problem import InfluenceProblem, RowParts
from .rates import Measure, MeasureValue, RateFormula, parts_of

Floats = NDArray[np.float64]

PARTS = ("fit", "stop", "report")
FIT, STOP, REPORT = range(3)
#: Rows in the denominator of a rate from which on the intervals of a part hold: with 50 to 80 they
#: cover .90 to .93, with 80 to 120 .94 to .96.
ENOUGH_EVENTS = 80.0
#: Events and non-events below which they may be too short, and effective rows under weights.
FEW_EVENTS = 10.0
FEW_WEIGHTED = 20.0
#: The path ends where the effective sample size is a smaller share of the rows.
_LEAST_SHARE = 0.1
#: Series of the seed's streams; the parts are dealt by the first two.
_RESAMPLING = 2


@dataclass(frozen=True, kw_only=True)
class StoppingRule:
    """When the descent goes on and when it ends, fixed before it."""

    tolerance: float
    step: float
    max_steps: int
    #: Of the one-sided bound that ends the path, and of the two-sided intervals.
    level: float

    @property
    def quantile(self) -> float:
        """Standard errors that the bound lies above |gap|."""
        return _native.normal_quantile(self.level)


@dataclass(frozen=True, kw_only=True)
class DescentStep:
    """The weights after so many steps.

    Attributes
    ----------
    step : int
        0 before the first one.
    fit_gap : float
        The gap that the fit part expects, by the regression of the label.
    gap, standard_error, bound : float
        The gap in the stop part, and its one-sided upper bound in absolute value.
    effective_share : float
        The effective sample size of the stop part, of its rows.
    """

    step: int
    fit_gap: float
    gap: float
    standard_error: float
    bound: float
    effective_share: float


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Weighted rows by kind: the sums of their weights and of the squares of these."""

    once: Floats
    twice: Floats
    #: How many rows have a weight.
    n: float

    @classmethod
    def from_counts(cls, count: NDArray[np.int64], weight: Floats) -> WeightedRows:
        """Return rows of kinds by the weight of one row."""
        once = count * weight
        return cls(once, once * weight, float(count[weight > 0].sum()))

    @property
    def n_effective(self) -> float:
        """Rows of equal weight that would say as much (Kish)."""
        square = float(self.twice.sum())
        return float(self.once.sum()) ** 2 / square if square > 0 else 0.0

    def events(self, rate: RateFormula, label: Floats, score: Floats) -> float:
        """Return the effective rows in the denominator of a rate."""
        one, of_label, of_score, of_both = rate.denominator
        below = one + of_label * label + of_score * score + of_both * label * score
        square = float((self.twice * below).sum())
        return float((self.once * below).sum()) ** 2 / square if square > 0 else 0.0

    def mean(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the means of columns, and their standard errors."""
        total, used = self.once.sum(), self.once > 0
        once, twice, values = self.once[used, None], self.twice[used, None], values[used]
        mean = (once * values).sum(axis=0) / total
        square = (twice * (values - mean) ** 2).sum(axis=0) / total**2
        return mean, np.sqrt(square * (self.n / (self.n - 1) if self.n > 1 else math.nan))

    def group(self, measure: Measure, label: Floats, score: Floats, name: str) -> WeightedMeasure:
        """Return a measure of the rows."""
        once, both = self.once, label * score
        columns = (once, once * label, once * score, once * both)
        totals = np.array([float(column.sum()) for column in columns])
        value = MeasureValue.from_totals(measure, totals, name)
        one, of_label, of_score, of_both = value.parts
        psi = one + of_label * label + of_score * score + of_both * both
        square = float((self.twice * psi**2).sum()) / totals[0] ** 2
        correction = self.n / (self.n - 1) if self.n > 1 else math.nan
        return WeightedMeasure(value, square * correction)


@dataclass(frozen=True, eq=False)
class WeightedMeasure:
    """A measure of weighted rows and its variance."""

    measured: MeasureValue
    variance: float

    @property
    def value(self) -> float:
        """The measure."""
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
        The level whose share it is; empty for the mean of a number.
    before, after : float
        In the target group, on the report part, without and with the weights.
    standard_error, low, high : float
        Of the mean after.
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
    """Where a descent led, and what weights it left."""

    steps: tuple[DescentStep, ...]
    status: str
    #: By step, numbers s: weights are multiplied by 1 - s (1, label rate, score, their product).
    directions: Floats
    #: The weight of a row by kind, and the rows of the report part with theirs.
    factors: Floats
    report: WeightedRows


@dataclass(frozen=True, eq=False, kw_only=True)
class Descent:
    """A target group and the others in three parts, and the chance of a label by kind."""

    audit: InfluenceProblem
    parts: RowParts
    #: P(Y = 1 | X) in the target group; 0 where labels play no part.
    label_rate: Floats
    rule: StoppingRule
    seed: int

    @property
    def label(self) -> Floats:
        """Of the kinds of the target group."""
        return np.ascontiguousarray(self.parts.kinds.parts[:, 0])

    @property
    def score(self) -> Floats:
        """Of the kinds of the target group."""
        return np.ascontiguousarray(self.parts.kinds.parts[:, 1])

    def target(self, weighted: WeightedRows) -> WeightedMeasure:
        """Return the measure of weighted rows of the target group."""
        name = self.audit.shown_name
        return weighted.group(self.audit.measure, self.label, self.score, name)

    def others(self, part: int) -> WeightedMeasure:
        """Return the measure of the others in a part."""
        count = self.parts.other_count[:, part]
        weighted = WeightedRows.from_counts(count, np.ones(len(count)))
        label, score = self.parts.others[:, 1], self.parts.others[:, 2]
        return weighted.group(self.audit.measure, label, score, "others")

    def unweighted(self, part: int) -> WeightedRows:
        """Return the rows of a part as they are."""
        count = self.parts.count[:, part]
        return WeightedRows.from_counts(count, np.ones(len(count)))

    def gap(self, weighted: WeightedRows, part: int) -> GapEstimate:
        """Return the gap of weighted rows of a part."""
        return GapEstimate.from_values(self.target(weighted), self.others(part), self.rule.level)

    @property
    def smallest_tolerance(self) -> float:
        """The bound that the stop part would have without weights at a gap of 0."""
        return self.rule.quantile * self.gap(self.unweighted(STOP), STOP).standard_error

    def fewest_events(self, weighted: WeightedRows) -> float:
        """Return the effective rows in the denominator that has the fewest."""
        rates = self.audit.measure.rates
        return min(weighted.events(rate, self.label, self.score) for rate in rates)

    def reweighted(self) -> DescentPath:
        """Follow the descent by weights."""
        parts, call, rule = self.parts, self.audit.call, self.rule
        label, score = self.label, self.score
        other_label, other_score = np.ascontiguousarray(parts.others[:, 1:3].T)
        steps, numbers, status = _native.descent_path(
            (label, score, np.ascontiguousarray(parts.count)),
            self.label_rate,
            (other_label, other_score, np.ascontiguousarray(parts.other_count)),
            rates_of(self.audit.measure),
            (rule.step, rule.tolerance, rule.quantile, _LEAST_SHARE, rule.max_steps),
            call,
        )
        factors = _native.descent_factors(self.label_rate, score, steps, call)
        return DescentPath(
            steps=tuple(_step(number, *row) for number, row in enumerate(numbers.tolist())),
            status=status,
            directions=steps,
            factors=factors,
            report=WeightedRows.from_counts(parts.count[:, REPORT], factors),
        )

    def resampled(self) -> DescentPath:
        """Follow the descent by drawing rows anew in every step, as the paper prints it."""
        measure, rule = self.audit.measure, self.rule
        draws = [WeightedDraws(self.parts.count[:, part], self.seed, part) for part in range(3)]
        goals = [self.others(FIT), self.others(STOP)]
        path: list[DescentStep] = []
        directions: list[Floats] = []
        while True:
            fit = draws[FIT].weighted.group(measure, self.label_rate, self.score, "the fit part")
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
                direction = self._direction(np.sign(fit_gap) * fit.measured.parts)
                kept = np.maximum(1 - self._along(direction), 0.0)
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
        """Return the parts of the influence times the length of the step."""
        largest = float(self._along(psi)[self.parts.count[:, FIT] > 0].max())
        size = min(self.rule.step, 1 / largest) if largest > 0 else self.rule.step
        return size * psi

    def _along(self, numbers: Floats) -> Floats:
        """Return a sum of 1, label rate, score and their product, by kind."""
        one, of_label, of_score, of_both = numbers
        slope = of_score + of_both * self.label_rate
        return np.asarray(one + of_label * self.label_rate + slope * self.score)

    def marginals(self, report: WeightedRows) -> tuple[FeatureMean, ...]:
        """Return the means of all columns of features, before and after."""
        features = self.parts.kinds.features
        before, _ = self.unweighted(REPORT).mean(features)
        after, error = report.mean(features)
        half = _native.normal_quantile(0.5 + self.rule.level / 2) * error
        # Sorted, for sums that do not depend on the order of the rows.
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
            for feature in self.audit.coding.features
            for at, level in zip(feature.columns, feature.levels or ("",), strict=False)
        )


class WeightedDraws:
    """The rows of a part, drawn anew in proportion to weights."""

    def __init__(self, count: NDArray[np.int64], seed: int, part: int) -> None:
        key = np.array([seed, _RESAMPLING + part], dtype=np.uint64)
        self.stream = np.random.Generator(np.random.Philox(key=key))
        self.kind = np.repeat(np.arange(len(count)), count)
        self.n_kinds = len(count)
        #: How often each row was drawn.
        self.times = np.ones(len(self.kind))

    def draw(self, kept: Floats) -> None:
        """Draw as many rows as there are, by the chances of their kinds."""
        ends = np.cumsum(self.times * kept[self.kind])
        at = np.searchsorted(ends, self.stream.random(len(ends)) * ends[-1], side="right")
        at = np.minimum(at, len(ends) - 1)
        self.times = np.bincount(at, minlength=len(ends)).astype(np.float64)

    @property
    def weighted(self) -> WeightedRows:
        """The rows, each with the number of times that it was drawn."""
        once, twice = (
            np.asarray(np.bincount(self.kind, times, self.n_kinds), dtype=np.float64)
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
    """Return weight, numerator and denominator of every rate, one row each."""
    pairs = zip(measure.weights, measure.rates, strict=True)
    return np.array([[weight, *rate.numerator, *rate.denominator] for weight, rate in pairs])


def check_events(audit: InfluenceProblem, parts: RowParts) -> list[str]:
    """Refuse parts with too few rows in a denominator; say where numerators have few."""
    sides = [
        (audit.shown_name, parts.kinds.parts[:, :2], parts.count),
        ("the others", parts.others[:, 1:3], parts.other_count),
    ]
    notes = []
    for rate in audit.measure.rates:
        for name, rows, counts in sides:
            for part, count in zip(PARTS, counts.T, strict=True):
                totals = [float((count * column).sum()) for column in parts_of(*rows.T).T]
                events, base = (
                    sum(share * total for share, total in zip(side, totals, strict=True))
                    for side in (rate.numerator, rate.denominator)
                )
                if base < ENOUGH_EVENTS:
                    raise NotMeasurableError(
                        f"the {part} part has {base:,.1f} rows in the denominator of {rate.name} "
                        f"in {name}, and its intervals need at least {ENOUGH_EVENTS:g}. Use more "
                        "rows, a larger share in parts=, or another metric.",
                        argument="parts",
                        mentions=("metric",),
                    )
                if min(events, base - events) < FEW_EVENTS:
                    notes.append(
                        f"the {part} part has fewer than {FEW_EVENTS:g} events, or non-events, of "
                        f"{rate.name} in {name}: its standard errors may be too small"
                    )
    return notes


def descent_of(
    audit: InfluenceProblem, rule: StoppingRule, shares: Sequence[float], seed: int, nuisance: Any
) -> tuple[Descent, list[str]]:
    """Deal the rows into parts, look at their events, and fit the regression of the label."""
    parts = audit.parts(shares, seed)
    notes = check_events(audit, parts)
    rate = label_rate(audit, parts, FIT, nuisance)
    return Descent(audit=audit, parts=parts, label_rate=rate, rule=rule, seed=seed), notes
