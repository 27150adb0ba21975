"""Means of rows whose values have a known range: limits on the logit scale, and melded ones.

Without replicates, so that verdicts on many rows cost one pass; with few rows near an end of the
range by melded limits, as tests and intervals are.
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
    """A problem of means as MOVER takes it: with limits between the ends of the range."""

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
    """Limits of means between the ends of their range; melded ones of groups that need them."""

    problem: Problem
    range: Interval
    drawn: InversionMethod

    @property
    def _by_logit(self) -> FormulaMethod:
        return FORMULAS["mover"](_BoundedMeans(self.problem, self.range))

    def value(self, position: int, level: float) -> Interval:
        """Return the interval of the metric of a group; NaN where it has none."""
        return self._of((position,)).value(position, level)

    def ratio(self, pair: Pair, level: float) -> Interval:
        """Return the interval of the ratio of two groups; NaN where it has none."""
        return self._of(pair).ratio(pair, level)

    def margins(self, pair: Pair, margin: float, scale: str) -> MarginTest:
        """Test whether a difference lies within -+ margin, or a ratio from margin to 1 / margin."""
        return self._of(pair).margins(pair, margin, scale)

    def shown_within(self, pair: Pair, level: float, scale: str) -> float | None:
        """Return the least margin at which both one-sided tests reject; None: not by formula."""
        return self._of(pair).shown_within(pair, level, scale)

    def _of(self, groups: Sequence[int]) -> FormulaMethod:
        return self.drawn if self.problem.is_melded(groups) else self._by_logit
