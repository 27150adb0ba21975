"""Tests means of values with a known range against a tolerance.

Limits come from a formula on the logit scale, which needs one pass over the rows and no replicates.
Groups with few rows near an end of the range use melded limits instead, as `permutation_test` does.
The questions of audits (`tolerance.py`) use it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .. import _native
from ..inference import mover
from ..inference.intervals import Interval, Pair
from .formulas import FORMULAS, FormulaMethod, GroupDifference, MarginTest
from .inversion import InversionMethod
from .problem import Problem


@dataclass(frozen=True)
class _BoundedMeans:
    """Adapts a problem of means for MOVER, with limits within the known range."""

    problem: Problem
    range: Interval

    @property
    def evaluations(self) -> Sequence[_native.Evaluation]:
        return self.problem.evaluations

    def gap(self, pair: Pair) -> GroupDifference:
        return self.problem.gap(pair)

    def log_ratio(self, pair: Pair) -> tuple[float, float]:
        return self.problem.log_ratio(pair)

    def limited(self, position: int) -> mover.ValueWithLimits:
        entry = self.evaluations[position]
        return mover.by_logit(entry.value, math.sqrt(entry.variance), self.range)


@dataclass(frozen=True)
class KnownRangeMethod(FormulaMethod):
    """Limits of means within their known range, or melded limits for groups that need them."""

    problem: Problem
    range: Interval
    drawn: InversionMethod

    @property
    def _by_logit(self) -> FormulaMethod:
        return FORMULAS["mover"](_BoundedMeans(self.problem, self.range))

    def value(self, position: int, level: float) -> Interval:
        """Return the interval of the metric of a group; NaN without one."""
        return self._method_for((position,)).value(position, level)

    def ratio(self, pair: Pair, level: float) -> Interval:
        """Return the interval of the ratio of two groups; NaN without one."""
        return self._method_for(pair).ratio(pair, level)

    def margin_test(self, pair: Pair, margin: float, scale: str) -> MarginTest:
        """Test whether a difference lies within -+ margin, or a ratio from margin to 1 / margin."""
        return self._method_for(pair).margin_test(pair, margin, scale)

    def shown_within(self, pair: Pair, level: float, scale: str) -> float | None:
        """Return the smallest margin at which both one-sided tests reject; None: no formula."""
        return self._method_for(pair).shown_within(pair, level, scale)

    def _method_for(self, groups: Sequence[int]) -> FormulaMethod:
        return self.drawn if self.problem.uses_melded_limits(groups) else self._by_logit
