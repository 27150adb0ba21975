"""Compares two models by metrics that are not functions of counts: AUC, means, callables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.intervals import Pair, clip_interval
from ..inference.paired_differences import PairedDifference, by_law, unknown_difference
from ..inference.pvalues import monte_carlo_pvalue
from ..metrics.row_values import Exchange, fewer_of_labels
from ..progress import Progress
from .function_run import FunctionRun
from .model_comparison import OverallChange
from .paired_problem import Floats, PairedProblem, correlation_of
from .skewness import invert_test

#: Variances up to this are 0 apart from rounding.
_ROUNDING = 1e-28


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedRowProblem(PairedProblem):
    """Rows in a canonical order: by group, label and both models' outputs."""

    #: The position of each row's group among the keys.
    group: NDArray[np.uint16]
    #: The columns of the metric for each model.
    first: Mapping[str, NDArray[Any]]
    second: Mapping[str, NDArray[Any]]
    seed: int
    n_draws: int
    #: Whether the models swap roles when replicates are drawn, so that the result does not depend
    #: on which model comes first.
    turned: bool
    n_threads: int | None = field(default=None, compare=False)
    progress: Progress | None = field(default=None, compare=False)

    @property
    def both(self) -> tuple[Mapping[str, NDArray[Any]], Mapping[str, NDArray[Any]]]:
        """The columns of the metric for each model."""
        return self.first, self.second

    def shortage(self, position: int) -> str:
        """Return what a group without a value lacks."""
        label = self.first.get("y_true")
        if self.metric.kind.compares_labels and label is not None:
            positive = int(label[self.group == position].sum())
            few, what = fewer_of_labels(positive, self.n_rows[position] - positive)
            return f"{few} {what}"
        return f"{self.n_rows[position]:,} rows"

    def overall(self, level: float) -> OverallChange:
        """Return the metric in all rows with both models."""
        first, second = self.all_values[:, self.everyone].tolist()
        change = self.change(self.everyone, level)
        return OverallChange(
            measure=self.metric.name,
            of_first=first,
            of_second=second,
            estimate=change.estimate,
            confidence_interval=clip_interval(change.interval, self.bound),
            n_rows=len(self.group),
        )

    @property
    def everyone(self) -> int:
        """The position of all rows together, after the groups."""
        return len(self.keys)

    @cached_property
    def _twice(self) -> NDArray[np.uint16]:
        """The group of each row, then all rows again as one extra group."""
        return np.concatenate([self.group, np.full_like(self.group, self.everyone)])

    def _units(self) -> _native.Units:
        return _native.Units(self._twice, len(self.keys) + 1)

    @property
    def values(self) -> Floats:
        """The metric by model and group."""
        return self.all_values[:, : self.everyone]

    @property
    def all_values(self) -> Floats:
        """The metric by model and group; the last column is over all rows."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedInfluenceProblem(PairedRowProblem):
    """The AUC, means and ratios of sums: the row contributions to the change are compared as means.

    The contribution of a row is the value of its group plus the influence of the row, combined over
    both models. Two groups are compared by permutations of these, corrected for skewness.
    """

    @property
    def method(self) -> str:
        """The name of the test of changes."""
        return "inversion"

    @property
    def engine(self) -> str:
        """The engine that draws replicates."""
        return "stream"

    @property
    def n_resamples(self) -> int:
        """Replicates."""
        return self.n_draws

    @cached_property
    def all_values(self) -> Floats:
        """The metric by model and group; the last column is over all rows."""
        return np.stack([self._values_of(columns) for columns in self.both])

    def _values_of(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        n, call = len(self._twice), _native.Call(self.n_threads)
        repeated = {name: np.concatenate([column] * 2) for name, column in columns.items()}
        exchange = Exchange(
            units=self._units(), scaling="unpooled", sums=lambda values: values, call=call
        )
        test = self.metric.kind.row_values(repeated, n, None).test(exchange, False)
        return np.array([entry.value for entry in test.evaluations])

    @cached_property
    def _influences(self) -> tuple[Floats, Floats]:
        """The influence of the rows with each model: on their group, then on all rows."""
        first, second = (self._influence_of(columns) for columns in self.both)
        return first, second

    def _influence_of(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        influence = np.empty(len(self._twice))
        for i in range(self.everyone):
            part = np.flatnonzero(self.group == i)
            rows = {name: column[part] for name, column in columns.items()}
            influence[part] = self.metric.kind.influence(rows, None)
        influence[len(self.group) :] = self.metric.kind.influence(columns, None)
        return influence

    def change(self, position: int, level: float) -> PairedDifference:
        """Return the second value of a group, or of all rows, minus the first."""
        part = self._twice == position
        first, second = (influence[part] for influence in self._influences)
        squares, n = (second - first) ** 2, int(part.sum())
        labels = np.zeros(n, dtype=np.int64)
        if self.metric.kind.compares_labels:
            labels = np.concatenate([self.first["y_true"]] * 2)[part].astype(np.int64)
        rows = np.bincount(labels)
        value_1, value_2 = self.all_values[:, position].tolist()
        if rows.min() < 2:
            return unknown_difference(value_2 - value_1)
        variance = float((np.bincount(labels, squares) * rows / (rows - 1)).sum()) / n**2
        error = math.sqrt(variance) if variance > _ROUNDING else 0.0
        return by_law(value_2 - value_1, error, level, float(rows.min() - 1))

    def tested(self, pair: Pair, level: float) -> tuple[PairedDifference, PairedDifference, float]:
        """Return the difference and the sum of two gaps, and their correlation."""
        # The order of groups and models must not change the result.
        i, j = sorted(pair)
        group = self.group
        part = (group == i) | (group == j)
        code = (group[part] == j).astype(np.uint16)
        first, second = (influence[: len(group)][part] for influence in self._influences)
        values = self.all_values[:, [i, j]]
        sign = -1.0 if self.turned else 1.0
        change = self._means(sign * (second - first), sign * (values[1] - values[0]), code, level)
        total = self._means(second + first, values[1] + values[0], code, level)
        if self.turned:
            change = change.mirrored()
        if (i, j) != tuple(pair):
            change, total = change.mirrored(), total.mirrored()
        covariance = float((np.bincount(code, second**2 - first**2) / np.bincount(code) ** 2).sum())
        errors = change.standard_error * total.standard_error
        return change, total, correlation_of(covariance, errors)

    def _means(
        self, influence: Floats, values: Floats, code: NDArray[np.uint16], level: float
    ) -> PairedDifference:
        """Compare two groups by the means of their row contributions."""
        spread = np.bincount(code, influence**2) / np.bincount(code) ** 2
        if spread.min() <= _ROUNDING:
            return unknown_difference(float(values[0] - values[1]))
        call = _native.Call(self.n_threads)
        test = _native.PermutationTest.ratio(
            influence + values[code], None, _native.Units(code, 2), call, studentize="corrected"
        )
        tick = None if self.progress is None else self.progress.tick()
        draws = _native.Draws(self.n_draws, seed=self.seed)
        shifts = test.shifts(draws, _native.Call(self.n_threads, tick))
        if self.progress is not None:
            self.progress.finish(drawn=True)
        less, greater = (
            monte_carlo_pvalue(max(extremes.studentized, extremes.corrected), shifts.n)
            for extremes in (shifts.extremes(0.0, side, call) for side in ("less", "greater"))
        )
        return PairedDifference(
            estimate=float(values[0] - values[1]),
            standard_error=math.sqrt(shifts.variance),
            less=less,
            greater=greater,
            interval=invert_test(shifts, level, call),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedFunctionProblem(PairedRowProblem):
    """Any function of the rows of a group, with the standard error of bootstrap samples."""

    @property
    def method(self) -> str:
        """The name of the test of changes."""
        return "bootstrap-se"

    @property
    def engine(self) -> str:
        """The engine that draws replicates."""
        return "callable"

    @property
    def n_resamples(self) -> int:
        """Bootstrap samples."""
        return self.metric.n_samples

    @cached_property
    def _runs(self) -> list[tuple[Floats, Floats]]:
        """The values of every group and of its samples, by model; both have the same samples."""
        runs = []
        for columns in self.both:
            label, value = (
                np.ascontiguousarray(np.concatenate([columns[name]] * 2), dtype=np.float64)
                for name in self.metric.columns
            )
            run = FunctionRun(
                name=self.metric.name,
                function=self.metric.function,
                columns=(label, value),
                weight=None,
                units=self._units(),
                n_samples=self.metric.n_samples,
                seed=self.seed,
            )
            values, samples = run.values(_native.Draws(1, seed=self.seed), None)
            runs.append((np.array(values), samples))
        return runs

    @cached_property
    def all_values(self) -> Floats:
        """The metric by model and group; the last column is over all rows."""
        return np.stack([values for values, _ in self._runs])

    @cached_property
    def _spreads(self) -> Floats:
        """The variance of the change and of the sum of every group, and their covariance."""
        (first, of_first), (second, of_second) = self._runs
        change, total = (
            of_second + sign * of_first - (second + sign * first) for sign in (-1.0, 1.0)
        )
        return np.stack(
            [(a * b).mean(axis=0) for a, b in ((change,) * 2, (total,) * 2, (change, total))]
        )

    def change(self, position: int, level: float) -> PairedDifference:
        """Return the second value of a group, or of all rows, minus the first."""
        first, second = self.all_values[:, position].tolist()
        return by_law(second - first, math.sqrt(float(self._spreads[0, position])), level)

    def tested(self, pair: Pair, level: float) -> tuple[PairedDifference, PairedDifference, float]:
        """Return the difference and the sum of two gaps, and their correlation."""
        first, second = (row[pair[0]] - row[pair[1]] for row in self.all_values)
        of_change, of_total, shared = self._spreads[:, list(pair)]
        varies = bool((of_change > 0).all() and (of_total > 0).all())
        errors = [math.sqrt(float(part.sum())) if varies else 0.0 for part in (of_change, of_total)]
        change, total = (
            by_law(float(estimate), error, level)
            for estimate, error in zip((second - first, second + first), errors, strict=True)
        )
        return change, total, correlation_of(float(shared.sum()), errors[0] * errors[1])
