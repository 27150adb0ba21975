"""Read `metric=` of the influence audit, and compute group rates and the influence of each row.

A rate is R = sum a / sum b over the rows of a group. Both a and b are linear combinations of four
terms of a row: 1, the label y, the score f (in place of a decision) and y f. With u = a - R b and
B = mean b, the influence of a row on the rate is psi = u / B.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arguments import is_number
from ..errors import ArgumentError, ArgumentTypeError, NotMeasurableError
from ..metrics import registry
from ..metrics.metric import AnyMetric

Floats = NDArray[np.float64]

#: The terms of a row: 1, y, f, y f.
N_TERMS = 4


@dataclass(frozen=True)
class RateFormula:
    """A rate, as the coefficients of its numerator and denominator on the four terms of a row."""

    name: str
    numerator: tuple[float, float, float, float]
    denominator: tuple[float, float, float, float]


RATES = {
    rate.name: rate
    for rate in (
        RateFormula("selection_rate", (0, 0, 1, 0), (1, 0, 0, 0)),
        RateFormula("true_positive_rate", (0, 0, 0, 1), (0, 1, 0, 0)),
        RateFormula("false_negative_rate", (0, 1, 0, -1), (0, 1, 0, 0)),
        RateFormula("false_positive_rate", (0, 0, 1, -1), (1, -1, 0, 0)),
        RateFormula("true_negative_rate", (1, -1, -1, 1), (1, -1, 0, 0)),
        RateFormula("positive_predictive_value", (0, 0, 0, 1), (0, 0, 1, 0)),
        RateFormula("false_discovery_rate", (0, 0, 1, -1), (0, 0, 1, 0)),
    )
}


#: Measures that are not ratios of sums; `alignment` computes them.
NOT_RATES = ("calibration", "divergence")


@dataclass(frozen=True)
class Measure:
    """The measure that is compared between the target group and the others.

    A weighted sum of rates, or one of `NOT_RATES`, which has no rates.
    """

    name: str
    rates: tuple[RateFormula, ...]
    weights: tuple[float, ...]

    @property
    def needs_labels(self) -> bool:
        """Return whether the measure uses labels."""
        if self.name == "calibration":
            return True
        sides = [side for rate in self.rates for side in (rate.numerator, rate.denominator)]
        return any(side[1] or side[3] for side in sides)


def measure_of(metric: AnyMetric | Mapping[str, float]) -> Measure:
    """Return the measure for the name of a metric, or for a dict of weights by name."""
    if isinstance(metric, Mapping):
        if not metric:
            raise ArgumentError(
                "metric is an empty dict; accepted: a dict of weights by rate", argument="metric"
            )
        for name, weight in metric.items():
            if not is_number(weight):
                raise ArgumentTypeError(
                    f"metric gives {name!r} the weight {weight!r}; accepted: a number",
                    argument="metric",
                )
            if not np.isfinite(weight) or weight == 0:
                raise ArgumentError(
                    f"metric gives {name!r} the weight {weight!r}; accepted: a finite number other "
                    "than 0",
                    argument="metric",
                )
        rates = tuple(_rate(name) for name in metric)
        name = " + ".join(
            f"{weight:g} {rate.name}" for rate, weight in zip(rates, metric.values(), strict=True)
        )
        return Measure(name, rates, tuple(float(weight) for weight in metric.values()))
    if isinstance(metric, str) and metric in NOT_RATES:
        return Measure(str(metric), (), ())
    rate = _rate(metric)
    return Measure(rate.name, (rate,), (1.0,))


def _rate(metric: AnyMetric) -> RateFormula:
    name = registry.get(metric).name
    if name not in RATES:
        raise ArgumentError(
            f"metric is {name!r}, which is not supported by influence_audit; accepted: "
            f"{', '.join(map(repr, RATES))}, a dict of weights by rate, "
            f"{' or '.join(map(repr, NOT_RATES))}",
            argument="metric",
        )
    return RATES[name]


@dataclass(frozen=True, eq=False, kw_only=True)
class RateValue:
    """A rate of a group, with the coefficients of its influence."""

    rate: RateFormula
    value: float
    #: The coefficients of u = a - R b on the four terms.
    deviation: Floats
    #: The coefficients of b on the four terms.
    denominator: Floats
    #: The mean of b.
    mean_denominator: float

    @classmethod
    def from_totals(cls, rate: RateFormula, totals: Floats, group: str) -> RateValue:
        """Return the rate from the sums of the four terms; the first sum is the total weight."""
        numerator = np.array(rate.numerator, float)
        denominator = np.array(rate.denominator, float)
        total = float(denominator @ totals)
        if not total > 0:
            raise NotMeasurableError(
                f"group {group!r} has no rows in the denominator of {rate.name}, so the rate is "
                "undefined. Choose another metric or another target.",
                argument="metric",
                mentions=("target",),
            )
        value = float(numerator @ totals) / total
        return cls(
            rate=rate,
            value=value,
            deviation=numerator - value * denominator,
            denominator=denominator,
            mean_denominator=total / float(totals[0]),
        )


@dataclass(frozen=True, eq=False)
class MeasureValue:
    """A weighted sum of rates in a group."""

    measure: Measure
    rates: tuple[RateValue, ...]

    @classmethod
    def from_totals(cls, measure: Measure, totals: Floats, group: str) -> MeasureValue:
        """Return the weighted sum of rates from the sums of the four terms."""
        return cls(
            measure, tuple(RateValue.from_totals(rate, totals, group) for rate in measure.rates)
        )

    @property
    def value(self) -> float:
        """The weighted sum."""
        pairs = zip(self.measure.weights, self.rates, strict=True)
        return sum(weight * rate.value for weight, rate in pairs)

    @property
    def coefficients(self) -> Floats:
        """The coefficients of the influence psi on the four terms."""
        pairs = zip(self.measure.weights, self.rates, strict=True)
        return sum(
            (weight * rate.deviation / rate.mean_denominator for weight, rate in pairs),
            np.zeros(N_TERMS),
        )

    def fewest_events(self, sums: Floats) -> float:
        """Return the fewest events or non-events of any rate, from the sums of the four terms."""
        counts = []
        for value in self.rates:
            formula = value.rate
            numerator, denominator = np.array(formula.numerator), np.array(formula.denominator)
            counts += [float(numerator @ sums), float((denominator - numerator) @ sums)]
        return min(counts)


def terms_of(label: Floats, score: Floats) -> Floats:
    """Return the four terms of every row, one column each."""
    return np.column_stack([np.ones(len(score)), label, score, label * score])
