"""The bootstrap that fits the fair metric again in every replicate."""

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
    """Return replicates of the audit value with their variances, given the metric of each.

    The rows of the metric are drawn with replacement, and so are the audited ones, all those of a
    person together; rows that are both are drawn as one. A draw that has no metric, because one
    protected group is not in it, has no value.
    """
    fitted = problem.metric.fitted_rows
    assert fitted is not None
    sample = problem.sample
    person = None if sample is None else sample.person
    rows = _BootstrapDraws(problem.features.values, fitted, person)
    schedule, n = schedule.ends(), len(replicates)
    values, variances = np.full(n, math.nan), np.full(n, math.nan)
    for place, replicate in enumerate(replicates):
        key = np.array([seed, replicate], dtype=np.uint64)
        drawn, persons, of_metric = rows.draw(np.random.Generator(np.random.Philox(key=key)))
        if not len(drawn) or not len(of_metric):
            continue
        try:
            metric = problem.metric.refit(of_metric)
        except DataError:
            continue
        again = problem.under(metric).of_rows(drawn)
        if persons is not None and again.sample is not None:
            again = replace(again, sample=replace(again.sample, person=persons))
        value = Losses(again, again.run(schedule, n_threads), ratio).value("normal")
        values[place], variances[place] = value.estimate, value.variance
        if progress is not None:
            progress(place + 1, n)
    return values, variances


class _BootstrapDraws:
    """Draws of audited rows and of those of the metric, from all that are one or the other."""

    def __init__(self, audited: Floats, fitted: Floats, person: NDArray[np.intp] | None) -> None:
        self.n_fitted = len(fitted)
        #: For every audited row its place among those of the metric, -1 where it is not there.
        self.place = _places_of(audited, fitted)
        self.only_fitted = np.setdiff1d(np.arange(len(fitted)), self.place)
        self.n_units = len(audited)
        self.order: NDArray[np.intp] | None = None
        if person is not None:
            #: Audited rows, those of each person side by side, and where each person ends.
            self.order = np.argsort(person, kind="stable")
            self.ends = np.cumsum(np.bincount(person))
            self.n_units = len(self.ends)

    def draw(
        self, rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], NDArray[np.intp] | None, NDArray[np.intp]]:
        """Return positions of audited rows, whom of the drawn they are of, and rows of the metric.

        Whoever is drawn twice stands for two persons.
        """
        if (self.place < 0).all():
            audited, persons = self._rows_of(rng.integers(self.n_units, size=self.n_units))
            return audited, persons, rng.integers(self.n_fitted, size=self.n_fitted)
        n = self.n_units + len(self.only_fitted)
        drawn = rng.integers(n, size=n)
        audited, persons = self._rows_of(drawn[drawn < self.n_units])
        shared = self.place[audited]
        alone = self.only_fitted[drawn[drawn >= self.n_units] - self.n_units]
        return audited, persons, np.concatenate([shared[shared >= 0], alone])

    def _rows_of(self, units: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
        if self.order is None:
            return units, None
        sizes = np.diff(self.ends, prepend=0)[units]
        first = np.repeat((self.ends[units] - sizes) - (np.cumsum(sizes) - sizes), sizes)
        persons = np.repeat(np.arange(len(units)), sizes)
        return self.order[first + np.arange(len(first))], persons


def _places_of(rows: Floats, others: Floats) -> NDArray[np.intp]:
    """Return where each row is among others, -1 where it is not; equal rows in their order."""
    kind = np.dtype((np.void, rows.itemsize * rows.shape[1]))
    # Adding 0 makes one number of the two zeros.
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
    at = first[value[: len(rows)]] + n_rows[value[: len(rows)]] + among[: len(rows)]
    places[known] = order[at[known]] - len(rows)
    return places
