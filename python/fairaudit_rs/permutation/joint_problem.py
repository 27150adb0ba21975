"""Tests several count metrics jointly, such as equalized odds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from .. import _native
from ..data.groups import group_label
from ..errors import ArgumentError, NotMeasurableError
from ..inference.intervals import Bootstrap, Pair
from ..metrics.metric import Metric
from ..report.notes import Note
from .counts import ClassCountProblem, CountProblem
from .problem import Gap


@dataclass(frozen=True, kw_only=True, eq=False)
class JointProblem(ClassCountProblem):
    """Several count metrics that are tested jointly and reported separately."""

    def check(self) -> None:
        """Raise when some component has no value in some groups, or cannot be studentized."""
        _ = self.components

    @cached_property
    def components(self) -> tuple[CountProblem, ...]:
        """The problem of each component."""
        problems = []
        shortages: dict[int, str] = {}
        for part in self.metric.components:
            try:
                problems.append(self._component(part))
            except NotMeasurableError as error:
                position = {group_label(key): i for i, key in enumerate(self.keys)}
                reasons = {position[group]: why for group, why in error.reasons.items()}
                shortages = reasons | shortages
        self.refuse(shortages)
        return tuple(problems)

    def _component(self, part: Metric) -> CountProblem:
        return CountProblem(
            metric=part,
            keys=self.keys,
            n_rows=self.n_rows,
            scaling=part.variance if self.scaling == "pooled" else self.scaling,
            counts=self.counts,
            classes=self.classes,
            conditional=self.conditional,
            strata_names=self.strata_names,
            n_threads=self.n_threads,
            features=self.features,
        )

    @property
    def evaluations(self) -> tuple[_native.Evaluation, ...]:
        """NaN: a joint criterion has no single value."""
        return (_native.Evaluation(math.nan, math.nan),) * len(self.keys)

    def bootstrap(
        self, draws: _native.Draws, call: _native.Call, *, variances: bool = True
    ) -> Bootstrap:
        """Raise: only the components of a joint criterion can be resampled."""
        raise ArgumentError(
            f"metric is {self.metric.name!r}, which has no single value; resample its components",
            argument="metric",
        )

    @property
    def fewest(self) -> None:
        """None: the components have their own notes on few rows."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the numbers."""
        return self.collect_notes((part, part.notes) for part in self.components)

    @property
    def why_undirected(self) -> str | None:
        """The reason why one-sided alternatives are not defined."""
        return super().why_undirected or "a joint criterion"

    def _gap(self, pair: Pair) -> Gap:
        """Return the largest gap of any component."""
        return Gap(max((p.gap(pair).estimate for p in self.components), key=abs), math.nan)

    def certain_groups(self) -> list[str]:
        """Return the groups in which some component shows no variation at all."""
        names = [name for part in self.components for name in part.certain_groups()]
        return list(dict.fromkeys(names))
