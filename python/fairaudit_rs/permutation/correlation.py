"""Tests the correlation between a row value and a continuous attribute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.rows import AttributeRows
from ..errors import ArgumentError, NotMeasurableError
from ..inference.intervals import NO_INTERVAL, Bootstrap, Interval, Pair
from ..inference.pearson import CorrelationSums, critical_values
from ..inference.pvalues import two_sided_normal_quantile
from ..metrics.metric import Metric
from ..metrics.row_values import row_value
from .problem import Gap, Problem


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrelationProblem(Problem):
    """One continuous attribute and one value per row, without groups."""

    rows: AttributeRows

    @classmethod
    def make(
        cls, rows: AttributeRows, metric: Metric, scaling: str, n_threads: int | None = None
    ) -> CorrelationProblem:
        """Take all rows that have the attribute."""
        n_rows = (len(rows.attribute),)
        return cls(
            metric=metric, keys=(), n_rows=n_rows, scaling=scaling, rows=rows, n_threads=n_threads
        )

    @cached_property
    def columns(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The attribute and the value of every row."""
        n = len(self.rows.attribute)
        source = self.metric.numerator
        value = row_value(self.metric.name, "numerator", source, self.rows.columns, n)
        attribute = self.rows.attribute
        for name, column in ((self.rows.name, attribute), (self.metric.name, value)):
            if n < 3 or column.min() == column.max():
                what = "the attribute" if column is attribute else "the row value of"
                raise NotMeasurableError(
                    f"{what} {name!r} does not vary over {n} rows. Correlate two columns that "
                    "vary.",
                    argument="sensitive_features" if column is attribute else "metric",
                )
        return np.ascontiguousarray(attribute), np.ascontiguousarray(value)

    def check(self) -> None:
        """Raise when the attribute or the value does not vary."""
        [evaluation] = self.test().evaluations
        if math.isnan(evaluation.value):
            raise NotMeasurableError(
                f"{self.rows.name!r} or the value of {self.metric.name} does not vary within the "
                "strata. Pass coarser strata, or none.",
                argument="strata",
            )

    @property
    def evaluations(self) -> tuple[_native.Evaluation, ...]:
        """An empty tuple: there are no groups."""
        return ()

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "shuffle"

    def make_test(self, chosen: tuple[int, ...]) -> _native.PermutationTest:
        """Make the native test."""
        del chosen
        return _native.PermutationTest.correlation(
            *self.columns,
            self.call,
            studentize=self.scaling,
            stratum=self.rows.stratum,
            by_rank=self.metric.by_rank,
        )

    @property
    def gap_method(self) -> str:
        """The method of the interval."""
        return "fisher" if self.metric.by_rank else "inversion"

    def chosen_gap_method(self, wanted: str) -> str:
        """Return the only interval method, or raise for any other."""
        if wanted not in ("auto", self.gap_method):
            raise ArgumentError(
                f"interval is {wanted!r} for {self.metric.name}; accepted: 'auto'",
                argument="interval",
            )
        return self.gap_method

    def gap(self, pair: Pair) -> Gap:
        """Return the correlation with its standard error."""
        del pair
        return self._value

    @cached_property
    def _value(self) -> Gap:
        [evaluation] = self.test().evaluations
        return Gap(evaluation.value, math.sqrt(evaluation.variance))

    def interval(
        self, pair: Pair, level: float, method: str, replicates: Bootstrap | None
    ) -> Interval:
        """Return tanh(atanh r +- z se / (1 - r^2)), the interval of rank correlations."""
        del method, replicates
        gap = self.gap(pair)
        r = gap.estimate
        if not gap.standard_error > 0 or abs(r) >= 1:
            return NO_INTERVAL
        half = two_sided_normal_quantile(level) * gap.standard_error / (1 - r * r)
        return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)

    def inversion_interval(
        self, null: NDArray[np.float64], level: float, alternative: str
    ) -> Interval | None:
        """Return the interval of correlations that the test does not reject; None for ranks."""
        if self.metric.by_rank:
            return None
        if not self.is_studentized:
            # The replicates are not studentized: use the normal distribution instead.
            return self._sums.interval(*[two_sided_normal_quantile(level)] * 2)
        return self._sums.interval(*critical_values(null, level, alternative))

    @cached_property
    def _sums(self) -> CorrelationSums:
        return CorrelationSums.from_columns(*self.columns, self.rows.stratum)

    @property
    def bound(self) -> float:
        """Return the largest possible absolute value of a correlation."""
        return 1.0

    def deviations(self) -> dict[Any, float]:
        """Return the standard error of the correlation times the root of the number of rows."""
        error = self._value.standard_error
        return {self.rows.name: error * math.sqrt(self.n_rows[0])}
