"""The bootstrap of `refit_metric=True`: it fits the fair metric again in every replicate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .losses import Losses
from .problem import FlowProblem
from .schedule import Schedule

Floats = NDArray[np.float64]


def refit_replicates(
    problem: FlowProblem,
    schedule: Schedule,
    ratio: str,
    replicates: range,
    seed: int,
    n_threads: int | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[Floats, Floats]:
    """Return replicates of the audit value, each with a metric fitted again, and their variances.

    The rows of the metric and the audited rows are drawn with replacement, clusters as a whole;
    rows that are both are drawn as one. A draw without one of the protected groups has no metric,
    and so its value is NaN.
    """
    fitted = problem.metric.fitted_rows
    assert fitted is not None
    sample = problem.sample
    person = None if sample is None else sample.person
    rows = _BootstrapDraws(problem.features.values, fitted, person)
    schedule, n = schedule.ends(), len(replicates)
    values, variances = np.full(n, math.nan), np.full(n, math.nan)
    for i, replicate in enumerate(replicates):
        key = np.array([seed, replicate], dtype=np.uint64)
        drawn_rows, persons, metric_rows = rows.draw(np.random.Generator(np.random.Philox(key=key)))
        if not len(drawn_rows) or not len(metric_rows):
            continue
        try:
            metric = problem.metric.refit(metric_rows)
        except DataError:
            continue
        redrawn = problem.under(metric).of_rows(drawn_rows)
        if persons is not None and redrawn.sample is not None:
            redrawn = replace(redrawn, sample=replace(redrawn.sample, person=persons))
        value = Losses(redrawn, redrawn.run(schedule, n_threads), ratio).value("normal")
        values[i], variances[i] = value.estimate, value.variance
        if progress is not None:
            progress(i + 1, n)
    return values, variances


class _BootstrapDraws:
    """Joint draws of audited rows and of the rows of the metric."""

    def __init__(self, audited: Floats, fitted: Floats, person: NDArray[np.intp] | None) -> None:
        self.n_fitted = len(fitted)
        #: Position of every audited row among the rows of the metric, -1 if it is not among them.
        self.position = _positions_among(audited, fitted)
        self.only_fitted = np.setdiff1d(np.arange(len(fitted)), self.position)
        self.n_units = len(audited)
        self.order: NDArray[np.intp] | None = None
        if person is not None:
            #: Audited rows sorted by person, and the end of each person in that order.
            self.order = np.argsort(person, kind="stable")
            self.ends = np.cumsum(np.bincount(person))
            self.n_units = len(self.ends)

    def draw(
        self, rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], NDArray[np.intp] | None, NDArray[np.intp]]:
        """Return positions of audited rows, the drawn person of each, and rows of the metric.

        A person who is drawn twice counts as two persons.
        """
        if (self.position < 0).all():
            audited, persons = self._rows_of(rng.integers(self.n_units, size=self.n_units))
            return audited, persons, rng.integers(self.n_fitted, size=self.n_fitted)
        n = self.n_units + len(self.only_fitted)
        drawn = rng.integers(n, size=n)
        audited, persons = self._rows_of(drawn[drawn < self.n_units])
        shared = self.position[audited]
        alone = self.only_fitted[drawn[drawn >= self.n_units] - self.n_units]
        return audited, persons, np.concatenate([shared[shared >= 0], alone])

    def _rows_of(self, units: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
        if self.order is None:
            return units, None
        sizes = np.diff(self.ends, prepend=0)[units]
        first = np.repeat((self.ends[units] - sizes) - (np.cumsum(sizes) - sizes), sizes)
        persons = np.repeat(np.arange(len(units)), sizes)
        return self.order[first + np.arange(len(first))], persons


def _positions_among(rows: Floats, others: Floats) -> NDArray[np.intp]:
    """Return the position of each row among others, or -1; equal rows are paired in order."""
    kind = np.dtype((np.void, rows.itemsize * rows.shape[1]))
    # Adding 0 turns -0.0 into 0.0.
    both = np.ascontiguousarray(np.concatenate([rows, others]) + 0.0).view(kind).ravel()
    value = np.unique(both, return_inverse=True)[1].ravel()
    order = np.argsort(value, kind="stable")
    first = np.searchsorted(value[order], np.arange(value.max() + 1))
    places = np.full(len(rows), -1, dtype=np.intp)
    among = np.empty(len(both), dtype=np.intp)
    among[order] = np.arange(len(both)) - first[value[order]]
    n_rows = np.bincount(value[: len(rows)], minlength=len(first))
    n_others = np.bincount(value[len(rows) :], minlength=len(first))
    known = among[: len(rows)] < n_others[value[: len(rows)]]
    matches = first[value[: len(rows)]] + n_rows[value[: len(rows)]] + among[: len(rows)]
    places[known] = order[matches[known]] - len(rows)
    return places
