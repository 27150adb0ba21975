"""Several count metrics at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .counts import CountProblem
from .problem import Evaluation, Gap, Procedure


@dataclass(kw_only=True)
class JointProblem(CountProblem):
    """Several count metrics at once: tested together, shown one by one."""

    #: The problem of each component.
    parts: list[CountProblem] = field(init=False)

    def evaluate(self, totals: NDArray[np.uint64]) -> None:
        """Compute each component of each group."""
        self.evaluations = [Evaluation(*[math.nan] * 4)] * len(self.keys)
        self.parts = [
            CountProblem(
                metric=part,
                keys=self.keys,
                n_rows=self.n_rows,
                scaling=part.variance if self.scaling == "pooled" else self.scaling,
                counts=self.counts,
                count_metric=part.native,
                conditioning=self.conditioning,
                strata_names=self.strata_names,
            )
            for part in self.metric.components
        ]

    def check(self, totals: NDArray[np.uint64]) -> None:
        """Leave the check to the components."""

    def prepare_intervals(self, method: str, plan: Procedure) -> None:
        """Choose how the gaps of each component get their intervals."""
        self.interval_method = method
        for part in self.parts:
            part.prepare_intervals(method, plan)

    @property
    def interval_name(self) -> str:
        """Return the name of the method behind the intervals of the components."""
        return self.parts[0].interval_name

    def gap(self, pair: tuple[int, int]) -> Gap:
        """Return the largest gap of a component."""
        return Gap(max((p.gap(pair).estimate for p in self.parts), key=abs), math.nan)

    def interval(self, pair: tuple[int, int], level: float) -> tuple[float, float]:
        """Return the interval of the component with the largest gap, Bonferroni over all."""
        each = 1 - (1 - level) / len(self.parts)
        largest = max(self.parts, key=lambda part: abs(part.gap(pair).estimate))
        return largest.interval(pair, each)

    def largest_gap(self, level: float) -> tuple[float, tuple[float, float]]:
        """Return the largest gap of a component and its interval, Bonferroni over all."""
        each = 1 - (1 - level) / len(self.parts)
        gaps, intervals = zip(*(part.largest_gap(each) for part in self.parts), strict=True)
        lows, highs = zip(*intervals, strict=True)
        return max(gaps), (max(lows), max(highs))

    def certain_groups(self) -> list[str]:
        """Return the groups in which some component shows no variation at all."""
        names = [name for part in self.parts for name in part.certain_groups()]
        return list(dict.fromkeys(names))
