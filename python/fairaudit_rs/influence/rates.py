"""Rates of a group with scores in the place of decisions, and what each row adds to them.

A rate is R = sum a / sum b over the rows of a group. Both a and b are sums of four numbers of a
row, its parts: 1, the label y, the score f, and y f. With u = a - R b and B = mean b, the influence
of a row on the rate is psi = u / B.
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

#: 1, y, f, y f.
PARTS = 4


@dataclass(frozen=True)
class RateFormula:
    """A rate by the parts of a row: what goes into its numerator and its denominator."""

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


#: Metrics that are no rates.
ALIGNMENTS = ("calibration", "divergence")


@dataclass(frozen=True)
class Measure:
    """A weighted sum of rates: what is compared between the target group and the others."""

    name: str
    rates: tuple[RateFormula, ...]
    weights: tuple[float, ...]

    @property
    def needs_labels(self) -> bool:
        """Return whether labels play a part."""
        if self.name == "calibration":
            return True
        sides = [side for rate in self.rates for side in (rate.numerator, rate.denominator)]
        return any(side[1] or side[3] for side in sides)


def measure_of(metric: AnyMetric | Mapping[str, float]) -> Measure:
    """Return the rate of a name, or the sum of several by weight."""
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
        shown = " + ".join(
            f"{weight:g} {rate.name}" for rate, weight in zip(rates, metric.values(), strict=True)
        )
        return Measure(shown, rates, tuple(float(weight) for weight in metric.values()))
    if isinstance(metric, str) and metric in ALIGNMENTS:
        return Measure(str(metric), (), ())
    rate = _rate(metric)
    return Measure(rate.name, (rate,), (1.0,))


def _rate(metric: AnyMetric) -> RateFormula:
    name = registry.get(metric).name
    if name not in RATES:
        raise ArgumentError(
            f"metric is {name!r}, which is not supported by influence_audit; accepted: "
            f"{', '.join(map(repr, RATES))}, or a dict of them by weight; or one of "
            f"{' and '.join(map(repr, ALIGNMENTS))}",
            argument="metric",
        )
    return RATES[name]


@dataclass(frozen=True, eq=False, kw_only=True)
class RateValue:
    """A rate of a group, with what its influence is made of."""

    rate: RateFormula
    value: float
    #: By part, what a row adds: u = a - R b.
    excess: Floats
    #: By part: b.
    base: Floats
    #: The mean of b.
    mean_base: float

    @classmethod
    def from_totals(cls, rate: RateFormula, totals: Floats, group: str) -> RateValue:
        """Return the rate of rows whose parts have these sums, the first one their weight."""
        above, below = np.array(rate.numerator, float), np.array(rate.denominator, float)
        base = float(below @ totals)
        if not base > 0:
            raise NotMeasurableError(
                f"group {group!r} has no rows in the denominator of {rate.name}, so the rate is "
                "undefined. Choose another metric or another target.",
                argument="metric",
                mentions=("target",),
            )
        value = float(above @ totals) / base
        return cls(
            rate=rate,
            value=value,
            excess=above - value * below,
            base=below,
            mean_base=base / float(totals[0]),
        )


@dataclass(frozen=True, eq=False)
class MeasureValue:
    """A weighted sum of rates in a group."""

    measure: Measure
    rates: tuple[RateValue, ...]

    @classmethod
    def from_totals(cls, measure: Measure, totals: Floats, group: str) -> MeasureValue:
        """Return the sum of rates of rows whose parts have these sums."""
        return cls(
            measure, tuple(RateValue.from_totals(rate, totals, group) for rate in measure.rates)
        )

    @property
    def value(self) -> float:
        """The weighted sum."""
        pairs = zip(self.measure.weights, self.rates, strict=True)
        return sum(weight * rate.value for weight, rate in pairs)

    @property
    def parts(self) -> Floats:
        """By part, the influence of a row: psi."""
        pairs = zip(self.measure.weights, self.rates, strict=True)
        return sum(
            (weight * rate.excess / rate.mean_base for weight, rate in pairs), np.zeros(PARTS)
        )

    def n_events(self, sums: Floats) -> float:
        """Return the fewest events or non-events of a rate among rows with these sums of parts."""
        counts = []
        for rate in self.rates:
            above, below = np.array(rate.rate.numerator), np.array(rate.rate.denominator)
            counts += [float(above @ sums), float((below - above) @ sums)]
        return min(counts)


def parts_of(label: Floats, score: Floats) -> Floats:
    """Return 1, y, f and y f of every row, one column each."""
    return np.column_stack([np.ones(len(score)), label, score, label * score])
