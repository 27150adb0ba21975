"""Computes losses, loss ratios and audit values from a flow, at its ends and along its path."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .problem import FlowProblem
from .sample import IndependentUnits, PathSums, RowWeights
from .value import AuditValue, SkewCorrection, bootstrap_mean, error_ratio_of_counts, mean_ratio

Floats = NDArray[np.float64]


class Losses:
    """Losses and errors of every row, before and after, and the audit values they give."""

    def __init__(self, problem: FlowProblem, flowed: _native.Flowed, ratio: str) -> None:
        self.ratio, self.paper = ratio, problem.floor is None
        self.floor = -math.inf if problem.floor is None else problem.floor
        self.ddof = 0 if self.paper else 1
        self.sample: RowWeights | None = problem.sample
        self.start, self.end, self.path = flowed.loss_start, flowed.loss_end, flowed.path
        self._targets, self._scores = problem.targets, (flowed.start, flowed.end)

    @cached_property
    def ratios(self) -> Floats:
        """Loss after over loss before, both at least the floor."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.maximum(self.end, self.floor) / np.maximum(self.start, self.floor))

    @cached_property
    def wrong_start(self) -> NDArray[np.bool_]:
        """A mask of the decisions that are wrong before the flow."""
        return self._targets.wrong(self._scores[0])

    @cached_property
    def wrong_end(self) -> NDArray[np.bool_]:
        """A mask of the decisions that are wrong after the flow."""
        return self._targets.wrong(self._scores[1])

    @cached_property
    def n_nonfinite(self) -> int:
        """The number of rows with positive weight whose ratio is not finite."""
        return self.n_of(~np.isfinite(self.ratios))

    def n_of(self, rows: NDArray[np.bool_]) -> int:
        """Return how many of some rows have a positive weight."""
        weighted = rows if self.sample is None else rows & self.sample.has_weight(len(rows))
        return int(weighted.sum())

    @cached_property
    def ends_unknown(self) -> bool:
        """Return whether a row of positive weight has no loss after the flow."""
        return self.n_of(np.isnan(self.end)) > 0

    @property
    def error_rates(self) -> tuple[float, float]:
        """The shares of wrong decisions before and after; NaN after where a loss has no value."""
        n = len(self.start)
        if self.sample is not None:
            before, after = (
                self.sample.units(wrong.astype(np.float64)).estimate
                for wrong in (self.wrong_start, self.wrong_end)
            )
            return before, math.nan if self.ends_unknown else after
        after = math.nan if np.isnan(self.end).any() else self.path.wrong_end[-1] / n
        return self.path.wrong_start / n, after

    def value(self, interval: str) -> AuditValue:
        """Return the audit value."""
        if self.sample is not None:
            if self.ratio == "error_rate" and self.ends_unknown:
                return AuditValue(math.nan, math.nan, interval=interval)
            return self._units.value(interval, self.ratio == "error_rate")
        if self.ratio == "loss":
            return AuditValue(*mean_ratio(self._measured_ratios, self.ddof), interval=interval)
        if np.isnan(self.end).any():
            return AuditValue(math.nan, math.nan, interval=interval)
        return AuditValue(*self._error_ratio(-1), interval=interval, of_rates=True)

    @cached_property
    def _units(self) -> IndependentUnits:
        """The sums over the independent units."""
        assert self.sample is not None
        if self.ratio == "loss":
            return self.sample.units(self.ratios)
        after, before = (wrong.astype(np.float64) for wrong in (self.wrong_end, self.wrong_start))
        return self.sample.units(after, before)

    def few(self) -> str | None:
        """Return why there is no standard error, if clusters or weighted rows are too few."""
        return None if self.sample is None else self._units.few()

    def along(
        self, interval: str, last: AuditValue, sums: PathSums | None = None
    ) -> list[AuditValue]:
        """Return the audit value after each recorded step, the last one as given."""
        if sums is not None:
            return [*sums.values(interval)[:-1], last]
        points = range(len(self.path.wrong_end) - 1)
        entries = self._mean_ratios() if self.ratio == "loss" else map(self._error_ratio, points)
        values = [AuditValue(*entry, interval=interval) for entry in entries]
        return [*values[: len(points)], last]

    def _mean_ratios(self) -> list[tuple[float, float]]:
        sums = zip(self.path.n, self.path.mean, self.path.squares, strict=True)
        return [
            (mean, squares / (n - self.ddof) / n) if n > self.ddof else (math.nan, math.nan)
            for n, mean, squares in sums
        ]

    def _error_ratio(self, point: int) -> tuple[float, float]:
        path = self.path
        if not path.finite[point]:
            return math.nan, math.nan
        counts = path.wrong_end[point], path.wrong_start, path.wrong_both[point]
        return error_ratio_of_counts(len(self.start), *counts, self.ddof)

    def skew(self) -> SkewCorrection:
        """Return the skewness correction; the audit value must be a number."""
        if self.sample is not None:
            return self._units.skew()
        if self.ratio == "loss":
            return SkewCorrection.of_mean(self._measured_ratios)
        return SkewCorrection.of_rates(self.wrong_start, self.wrong_end)

    @property
    def _measured_ratios(self) -> Floats:
        """The ratios that enter the audit value."""
        return self.ratios[np.isfinite(self.ratios)] if self.paper else self.ratios

    def bootstrap(
        self, n_resamples: int, seed: int, n_threads: int | None
    ) -> tuple[Floats, Floats]:
        """Return bootstrap replicates of the last audit value, with their variances."""
        if self.sample is not None:
            return self._units.bootstrap(n_resamples, seed, n_threads)
        if self.ratio == "loss":
            return bootstrap_mean(
                self._measured_ratios, None, n_resamples, seed, n_threads, self.ddof
            )
        columns = self.wrong_end.astype(np.float64), self.wrong_start.astype(np.float64)
        return bootstrap_mean(*columns, n_resamples, seed, n_threads, self.ddof)
