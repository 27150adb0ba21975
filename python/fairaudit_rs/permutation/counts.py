"""Comparing groups by counts: confusion counts, score bins, joint criteria."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.cells import Cells
from ..data.labels import GroupKey
from ..errors import ArgumentError
from ..inference.intervals import Bootstrap
from ..inference.proportions import mantel_haenszel
from ..metrics.metric import Metric
from .problem import Evaluation, Gap, Problem

CALIBRATION_BINS = 10
_COUNT_NAMES = ("tp", "fp", "fn", "tn")
#: Of each count, the label and the decision that rows exchange their groups within.
_BY_LABEL = [0, 1, 0, 1]
_BY_DECISION = [0, 0, 1, 1]


@dataclass(kw_only=True)
class CountProblem(Problem):
    """Counts by stratum, group and class."""

    counts: NDArray[np.uint64]
    count_metric: _native.CountMetric
    conditioning: str | list[int] | None
    strata_names: tuple[str, ...]

    def __post_init__(self) -> None:
        totals = self.counts.sum(axis=0)
        self.evaluate(totals)
        self.check(totals)

    def evaluate(self, totals: NDArray[np.uint64]) -> None:
        """Compute the metric of each group."""
        self.evaluations = []
        fraction = self.count_metric.fraction
        for row in totals:
            value, variance = self.count_metric.evaluate(row.astype(float).tolist())
            above, below = (
                (float(np.dot(part, row)) for part in fraction) if fraction else (math.nan,) * 2
            )
            self.evaluations.append(Evaluation(value, variance, above, below))

    def check(self, totals: NDArray[np.uint64]) -> None:
        """Raise when the metric has no value in some group, or cannot be studentized."""

        def rows_of(i: int) -> str:
            rows = self.metric.denominator_rows
            if rows is not None:
                return f"0 {rows}"
            if self.metric.family == "ranks":
                return few_labels(int(totals[i, 1::2].sum()), int(totals[i, ::2].sum()))
            if self.n_rows[i] < 2 or not self.metric.is_counts:
                return f"{self.n_rows[i]} row" + ("" if self.n_rows[i] == 1 else "s")
            return ", ".join(f"{n}={int(c)}" for n, c in zip(_COUNT_NAMES, totals[i], strict=True))

        self._check_measurable(rows_of)
        if self.metric.family == "ranks":
            self.note_few_labels(
                totals[:, 1::2].sum(axis=1).tolist(), totals[:, ::2].sum(axis=1).tolist()
            )
        elif self.metric.is_counts and not self.metric.is_proportion:
            self.note_few_labels(
                (totals[:, 0] + totals[:, 2]).tolist(), (totals[:, 1] + totals[:, 3]).tolist()
            )

    @classmethod
    def make(
        cls, cells: Cells, metric: Metric, keys: list[GroupKey], scaling: str, conditional: bool
    ) -> CountProblem:
        """Collapse cells to the classes of a metric."""
        conditioning: str | list[int] | None = None
        if metric.family == "ranks":
            native, classes, n_classes = _ranks(cells)
            if conditional:
                conditioning = [k % 2 for k in range(n_classes)]
        elif metric.is_counts or metric.family == "joint":
            native, classes, n_classes = metric.native, cells.confusion_classes(), 4
            if conditional and metric.conditions_on == "denominator":
                conditioning = "denominator"
            elif conditional and metric.conditions_on is not None:
                conditioning = _BY_LABEL if metric.conditions_on == "label" else _BY_DECISION
        else:
            native, classes, n_classes = _calibration(cells)
            if conditional:
                # Rows of one score bin exchange their groups.
                conditioning = [k // 2 for k in range(n_classes)]
        counts = cells.class_counts(keys, classes, n_classes)
        names = cells.strata_names
        if not conditional:
            # All rows exchange their groups, whatever strata the cells hold.
            counts, names = counts.sum(axis=0, keepdims=True), ()
        sizes = cells.group_sizes()
        return cls(
            metric=metric,
            keys=keys,
            n_rows=[sizes[key] for key in keys],
            scaling=scaling,
            counts=counts,
            count_metric=native,
            conditioning=conditioning,
            strata_names=names,
        )

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "cells"

    @property
    def stratified(self) -> bool:
        """Whether gaps are taken within strata of the user's."""
        return len(self.counts) > 1

    def native(self, positions: Sequence[int]) -> _native.CountTest:
        """Return the native test of the groups at these positions."""
        table = np.ascontiguousarray(self.counts[:, list(positions), :]).ravel()
        return _native.CountTest(
            table, len(positions), self.count_metric, self.scaling, self.conditioning
        )

    def draw_bootstrap(
        self,
        n_resamples: int,
        seed: int,
        n_threads: int | None,
        progress: Callable[[int], object] | None = None,
    ) -> Bootstrap:
        """Resample the rows of every group: one multinomial draw of its classes."""
        table = np.ascontiguousarray(self.counts.sum(axis=0)).ravel()
        draws, call = _native.Draws(n_resamples, seed=seed), _native.Call(n_threads, progress)
        flat = _native.bootstrap_counts(table, len(self.keys), self.count_metric, draws, call)
        both = flat.reshape(n_resamples, len(self.keys), 2)
        return Bootstrap(both[:, :, 0], both[:, :, 1])

    def exact(self, native: Any, alternative: str) -> Any:
        """Return the exact law of a test, or None."""
        return native.exact(alternative, _native.Call())

    def gap(self, pair: tuple[int, int]) -> Gap:
        """Return the difference of two groups, within strata if there are any.

        Proportions: the Mantel-Haenszel difference. Others: the difference less what the strata
        alone explain.
        """
        if not (self.stratified and self.metric.is_proportion):
            return super().gap(pair)
        assert self.count_metric.fraction is not None
        hits, rows = (
            self.counts[:, list(pair), :] @ np.array(part) for part in self.count_metric.fraction
        )
        return Gap(*mantel_haenszel(hits, rows))


def few_labels(n_positive: int, n_negative: int) -> str:
    """Say of which label a group has few rows."""
    few, kind = min((n_positive, "positive"), (n_negative, "negative"))
    return f"{few} row{'' if few == 1 else 's'} with a {kind} label"


def _ranks(cells: Cells) -> tuple[_native.CountMetric, NDArray[np.int64], int]:
    """Classes of (distinct score or score bin in ascending order, label)."""
    levels, place = np.unique(cells.score_bin, return_inverse=True)
    n_classes = 2 * len(levels)
    return _native.CountMetric.ranks(len(levels)), 2 * place.ravel() + cells.y_true, n_classes


def _calibration(cells: Cells) -> tuple[_native.CountMetric, NDArray[np.int64], int]:
    """Classes of (score bin, label); the score of a bin is the mean score of its rows."""
    edges = cells.score_edges
    assert edges is not None
    if edges[0] < 0 or edges[-1] > 1:
        raise ArgumentError(
            f"score_bins go from {edges[0]:g} to {edges[-1]:g}; calibration_error needs scores "
            "that are probabilities, from 0 to 1"
        )
    bins, place = np.unique(cells.score_bin, return_inverse=True)
    rows = np.zeros(len(bins))
    sums = np.zeros(len(bins), dtype=np.int64)
    np.add.at(rows, place, cells.count)
    np.add.at(sums, place, cells.score_sum)
    means = sums * _native.SCORE_UNIT / rows
    # The middle of a fine bin lies in the coarse bin that holds all of it.
    middles = (edges[bins] + edges[bins + 1]) / 2
    coarse = np.minimum((middles * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)
    native = _native.CountMetric.calibration(
        np.repeat(coarse, 2).tolist(), np.repeat(means, 2).tolist(), [0.0, 1.0] * len(bins)
    )
    return native, 2 * place.ravel() + cells.y_true, 2 * len(bins)
