"""Compute losses before, along and after a flow, and audit values: ratios of losses or errors.

The flow moves each row towards a similar individual whom the model treats worse.
"""

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
        self.ratio, self.as_in_paper = ratio, problem.floor is None
        self.floor = -math.inf if problem.floor is None else problem.floor
        self.ddof = 0 if self.as_in_paper else 1
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
        return self.n_weighted(~np.isfinite(self.ratios))

    def n_weighted(self, rows: NDArray[np.bool_]) -> int:
        """Return how many of some rows have a positive weight."""
        weighted = rows if self.sample is None else rows & self.sample.has_weight(len(rows))
        return int(weighted.sum())

    @cached_property
    def has_missing_end_loss(self) -> bool:
        """Return whether a row of positive weight has no loss after the flow."""
        return self.n_weighted(np.isnan(self.end)) > 0

    @property
    def error_rates(self) -> tuple[float, float]:
        """The shares of wrong decisions before and after the flow.

        The second is NaN if a row of positive weight has no loss after the flow.
        """
        n = len(self.start)
        if self.sample is not None:
            before, after = (
                self.sample.unit_sums(wrong.astype(np.float64)).estimate
                for wrong in (self.wrong_start, self.wrong_end)
            )
            return before, math.nan if self.has_missing_end_loss else after
        after = math.nan if np.isnan(self.end).any() else self.path.wrong_end[-1] / n
        return self.path.wrong_start / n, after

    def value(self, interval: str) -> AuditValue:
        """Return the audit value."""
        if self.sample is not None:
            if self.ratio == "error_rate" and self.has_missing_end_loss:
                return AuditValue(math.nan, math.nan, interval=interval)
            return self._unit_sums.value(interval, self.ratio == "error_rate")
        if self.ratio == "loss":
            return AuditValue(*mean_ratio(self._ratios_used, self.ddof), interval=interval)
        if np.isnan(self.end).any():
            return AuditValue(math.nan, math.nan, interval=interval)
        return AuditValue(*self._error_ratio(-1), interval=interval, of_rates=True)

    @cached_property
    def _unit_sums(self) -> IndependentUnits:
        """Loss ratios, or errors, summed by independent unit: a cluster or a weighted row."""
        assert self.sample is not None
        if self.ratio == "loss":
            return self.sample.unit_sums(self.ratios)
        after, before = (wrong.astype(np.float64) for wrong in (self.wrong_end, self.wrong_start))
        return self.sample.unit_sums(after, before)

    def reason_too_few(self) -> str | None:
        """Return why there is no standard error (too few clusters or weighted rows), or None."""
        return None if self.sample is None else self._unit_sums.reason_too_few()

    def values_along_path(
        self, interval: str, last: AuditValue, sums: PathSums | None = None
    ) -> list[AuditValue]:
        """Return the audit value after each recorded step; ``last`` is that of the last step."""
        if sums is not None:
            return [*sums.values(interval)[:-1], last]
        points = range(len(self.path.wrong_end) - 1)
        estimates_and_variances = (
            self._mean_ratios() if self.ratio == "loss" else map(self._error_ratio, points)
        )
        values = [AuditValue(*pair, interval=interval) for pair in estimates_and_variances]
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
        """Return the skewness correction; the audit value must not be NaN."""
        if self.sample is not None:
            return self._unit_sums.skew()
        if self.ratio == "loss":
            return SkewCorrection.of_mean(self._ratios_used)
        return SkewCorrection.of_rates(self.wrong_start, self.wrong_end)

    @property
    def _ratios_used(self) -> Floats:
        """The ratios that enter the audit value."""
        return self.ratios[np.isfinite(self.ratios)] if self.as_in_paper else self.ratios

    def bootstrap(
        self, n_resamples: int, seed: int, n_threads: int | None
    ) -> tuple[Floats, Floats]:
        """Return replicates of the audit value at the end, and the variance of each replicate."""
        if self.sample is not None:
            return self._unit_sums.bootstrap(n_resamples, seed, n_threads)
        if self.ratio == "loss":
            return bootstrap_mean(self._ratios_used, None, n_resamples, seed, n_threads, self.ddof)
        columns = self.wrong_end.astype(np.float64), self.wrong_start.astype(np.float64)
        return bootstrap_mean(*columns, n_resamples, seed, n_threads, self.ddof)
