"""Compares groups by a user-defined function of their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.labels import GroupKey
from ..data.rows import Rows
from ..data.tables import MAX_DECISION_VALUES
from ..errors import ArgumentError
from ..inference.intervals import Bootstrap, Pair
from ..metrics.metric import Metric
from ..report.notes import Note
from .function_run import FunctionRun
from .problem import Gap, Problem
from .units import group_codes, make_units, positions_of


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionProblem(Problem):
    """Any function of the rows of a group."""

    rows: Rows
    position: NDArray[np.int64]
    conditional: bool
    seed: int

    @classmethod
    def make(
        cls,
        rows: Rows,
        metric: Metric,
        keys: Sequence[GroupKey],
        scaling: str,
        conditional: bool,
        seed: int,
    ) -> FunctionProblem:
        """Take the rows of some groups."""
        sizes = rows.cells.group_sizes()
        return cls(
            metric=metric,
            keys=tuple(keys),
            n_rows=tuple(sizes[key] for key in keys),
            scaling=scaling,
            features=rows.cells.sensitive_features,
            rows=rows,
            position=positions_of(rows.cells, keys),
            conditional=conditional,
            seed=seed,
        )

    def check(self) -> None:
        """Raise when the function has no value in some groups."""
        self.refuse(self.shortages(lambda i: f"{self.n_rows[i]} rows and gets NaN"))

    def weights_of(self, position: int) -> NDArray[np.float64] | None:
        """Return the weights of the rows of a group; None without weights."""
        if self.rows.weight is None:
            return None
        inside = self.position[self.rows.group] == position
        weights: NDArray[np.float64] = self.rows.weight[inside]
        return weights

    @cached_property
    def evaluations(self) -> tuple[_native.Evaluation, ...]:
        """The metric in each group, with the variance of its bootstrap."""
        test = self.test()
        units = _native.Units(test.units.group, test.units.n_groups, of_row=test.units.of_row)
        # Values over all rows, ignoring strata.
        run = replace(test, n_samples=self.metric.n_samples, units=units)
        values, samples = run.values(_native.Draws(1, seed=self.seed), None)
        spread = ((samples - np.array(values)) ** 2).mean(axis=0)
        return tuple(
            _native.Evaluation(value, float(variance))
            for value, variance in zip(values, spread, strict=True)
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the numbers."""
        notes = []
        if any(math.isnan(entry.variance) for entry in self.evaluations):
            notes.append(
                Note(
                    "no-standard-error",
                    "some bootstrap samples of a group have no value of "
                    f"{self.metric.name}, so there is no standard error",
                    tuple(
                        name
                        for name, entry in zip(self.names, self.evaluations, strict=True)
                        if math.isnan(entry.variance)
                    ),
                )
            )
        return (*notes, *self.notes_of_strata())

    def notes_of_strata(self) -> list[Note]:
        """Return a note on unused strata."""
        run = self.test()
        if run.stratum is None:
            return []
        group = run.units.group if run.units.of_row is None else run.units.group[run.units.of_row]
        n, used = len(np.unique(run.stratum)), len(run.strata_of(group))
        if n == used:
            return []
        return [
            Note(
                "strata-without-every-group",
                f"{n - used:,} of {n:,} strata hold no value of {self.metric.name} in every "
                "group, or only one row of one, and take no part",
            )
        ]

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "callable"

    @property
    def stratified(self) -> bool:
        """Return whether rows are exchanged within the user's strata."""
        return bool(self.rows.cells.strata_names)

    def make_test(self, chosen: tuple[int, ...]) -> FunctionRun:
        """Make the run on the groups at some positions."""
        codes, keep = group_codes(self.rows, self.position, chosen)
        own = None
        if self.conditional and self.metric.conditions_on and self.rows.cluster is None:
            own = self._own_strata()
        units = make_units(self.rows, self.keys, codes, keep, chosen, own)
        label, value = (
            np.ascontiguousarray(self.rows.columns[name][keep], dtype=np.float64)
            for name in self.metric.columns
        )
        return FunctionRun(
            name=self.metric.name,
            function=self.metric.function,
            columns=(label, value),
            weight=None if self.rows.weight is None else self.rows.weight[keep],
            units=units.native(len(chosen)),
            n_samples=self.metric.n_samples if self.scaling == "bootstrap" else 0,
            seed=self.seed,
        )

    def _own_strata(self) -> NDArray[np.uint32]:
        """Return the label or decision of each row as a code."""
        column = "y_true" if self.metric.conditions_on == "label" else "y_pred"
        distinct, code = np.unique(self.rows.columns[column], return_inverse=True)
        if len(distinct) > MAX_DECISION_VALUES:
            raise ArgumentError(
                f"{column} has {len(distinct):,} distinct values; accepted: at most "
                f"{MAX_DECISION_VALUES}, because {self.metric.name} conditions on it",
                argument=column,
            )
        return code.ravel().astype(np.uint32)

    def _gap(self, pair: Pair) -> Gap:
        """Return the difference of two groups, within the user's strata if there are any."""
        run = replace(self.test(pair), n_samples=self.metric.n_samples)
        if run.stratum is None:
            first, second = (self.evaluations[i] for i in pair)
            return Gap(first.value - second.value, math.sqrt(first.variance + second.variance))
        values, samples = run.values(_native.Draws(1, seed=self.seed), None)
        gap = values[0] - values[1]
        spread = ((samples[:, 0] - samples[:, 1] - gap) ** 2).mean()
        return Gap(gap, math.sqrt(float(spread)))

    def step_down(
        self, pairs: Sequence[Pair], draws: _native.Draws, call: _native.Call
    ) -> NDArray[np.uint64]:
        """Raise: the pairs of a callable have no joint replicates."""
        raise ArgumentError(
            f"adjust is 'max-t' for {self.metric.name}, a callable; accepted: 'holm', 'bh', 'none'",
            argument="adjust",
        )

    def scaled(
        self, statistic: float, null: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Divide by the standard deviation of all replicates, for the scaling "shared"."""
        if self.scaling != "shared":
            return statistic, null
        spread = float(np.nanstd(null, ddof=1)) if len(null) > 1 else math.nan
        return (statistic / spread, null / spread) if spread > 0 else (statistic, null)

    @property
    def gap_method(self) -> str:
        """The default interval method for gaps."""
        return "bootstrap-se"

    def chosen_gap_method(self, wanted: str) -> str:
        """Return the interval method of this name, or raise if the metric does not support it."""
        if wanted in ("delta", "studentized"):
            raise ArgumentError(
                f"interval is {wanted!r} for {self.metric.name}, a callable; "
                "accepted: 'auto', 'basic', 'percentile'",
                argument="interval",
            )
        if wanted != "auto" and self.stratified:
            raise ArgumentError(
                f"interval is {wanted!r} with strata of your own and {self.metric.name}, a "
                "callable; accepted: 'auto'",
                argument="interval",
            )
        return self.gap_method if wanted == "auto" else wanted

    def interval_methods(self, scale: str = "difference") -> tuple[str, ...]:
        """Return the interval methods of the metric; the first is the default."""
        del scale
        return ("delta",) if self.stratified else ("delta", "basic", "percentile")

    def why_not(self, method: str) -> str:
        """Return why the metric has no interval by a method."""
        if method == "studentized":
            return "a callable, which would need a bootstrap in each sample"
        return super().why_not(method)

    def shown_method(self, method: str) -> str:
        """Return the name of a method in results."""
        return "bootstrap-se" if method == "delta" else method

    def bootstrap(
        self, draws: _native.Draws, call: _native.Call, *, variances: bool = True
    ) -> Bootstrap:
        """Resample the rows of every group; samples have no variances."""
        del variances
        # Samples are drawn in sequence: earlier ones are drawn and dropped.
        run = replace(self.test(), n_samples=draws.first + draws.n)
        every = _native.Draws(1, seed=draws.seed, series=draws.series)
        samples = run.values(every, None, call.progress)[1][draws.first :]
        return Bootstrap(samples, np.full(samples.shape, math.nan))

    @property
    def has_bootstrap_t(self) -> bool:
        """Return whether a nested bootstrap is supported: for unstratified, unclustered rows."""
        return not self.stratified and self.rows.cluster is None

    def bootstrap_t(self, draws: _native.Draws, call: _native.Call) -> Bootstrap:
        """Resample the rows of every group, and each sample again for its variance."""
        run = replace(self.test(), n_samples=self.metric.n_samples)
        return Bootstrap(*run.double_bootstrap(draws, call.progress))
