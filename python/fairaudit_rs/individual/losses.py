"""Losses and ratios of the rows of a flow, at its ends and on its way."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .flow import Flowed
from .targets import Targets
from .value import (
    AuditValue,
    Skew,
    bootstrapped,
    error_ratio,
    error_ratio_of_counts,
    mean_ratio,
    merged,
)

Floats = NDArray[np.float64]


class Losses:
    """Losses and errors of every row, before and after."""

    def __init__(self, flowed: Flowed, along: LossesAlong) -> None:
        self.ratio, self.paper = along.ratio, along.paper
        self.floor, self.ddof = along.floor, along.ddof
        targets = along.targets
        self.start, self.end = targets.losses(flowed.start), targets.losses(flowed.end)
        self.wrong_start, self.wrong_end = targets.wrong(flowed.start), targets.wrong(flowed.end)
        self.ratios = ratios_of(self.start, self.end, self.floor)

    @cached_property
    def n_nonfinite(self) -> int:
        """Rows whose ratio is not a finite number."""
        return int((~np.isfinite(self.ratios)).sum())

    def value(self, interval: str) -> AuditValue:
        """Return the audit value."""
        if self.ratio == "loss":
            return AuditValue(*mean_ratio(self._kept(self.ratios), self.ddof), interval=interval)
        if np.isnan(self.end).any():
            return AuditValue(math.nan, math.nan, interval=interval)
        value = error_ratio(self.wrong_start, self.wrong_end, self.ddof)
        return AuditValue(*value, interval=interval, of_rates=True)

    def skew(self) -> Skew:
        """Return what each row adds to the audit value, which must be a number."""
        if self.ratio == "loss":
            return Skew.of_mean(self._kept(self.ratios))
        return Skew.of_rates(self.wrong_start, self.wrong_end)

    def _kept(self, ratios: Floats) -> Floats:
        return ratios[np.isfinite(ratios)] if self.paper else ratios

    def bootstrap(
        self, n_resamples: int, seed: int, n_threads: int | None
    ) -> tuple[Floats, Floats]:
        """Return replicates of the last audit value, with variances."""
        if self.ratio == "loss":
            ratios = self._kept(self.ratios)
            return bootstrapped(ratios, None, n_resamples, seed, n_threads, self.ddof)
        columns = self.wrong_end.astype(np.float64), self.wrong_start.astype(np.float64)
        return bootstrapped(*columns, n_resamples, seed, n_threads, self.ddof)


class LossesAlong:
    """The audit value along the flow, from scores of rows that come in parts."""

    def __init__(self, ratio: str, floor: float, paper: bool, targets: Targets) -> None:
        self.ratio, self.paper, self.floor = ratio, paper, -math.inf if paper else floor
        self.ddof = 0 if paper else 1
        self.targets = targets
        #: By recorded step, what `merged` wants of every part, and the counts of errors.
        self.moments: list[list[tuple[int, float, float]]] = []
        self.errors: list[NDArray[np.int64]] = []

    def add(self, scores: Floats, part: slice) -> None:
        """Take in the scores of some rows by recorded step."""
        if self.ratio == "loss":
            self.moments.append(self._moments(scores, part))
            return
        wrong_start = self.targets.wrong(scores[0], part)
        errors = []
        for now in scores:
            wrong = self.targets.wrong(now, part)
            broken = not np.isfinite(now).all()
            errors.append((wrong.sum(), wrong_start.sum(), (wrong & wrong_start).sum(), broken))
        self.errors.append(np.array(errors, dtype=np.int64))

    def _moments(self, scores: Floats, part: slice) -> list[tuple[int, float, float]]:
        start = self.targets.losses(scores[0], part)
        moments = []
        for now in scores:
            ratios = ratios_of(start, self.targets.losses(now, part), self.floor)
            if self.paper:
                ratios = ratios[np.isfinite(ratios)]
            moments.append((len(ratios), *_native.moments(ratios, self.targets.call)))
        return moments

    def values(self, interval: str, last: AuditValue) -> list[AuditValue]:
        """Return the audit value after each recorded step: by parts of the rows but the last."""
        if self.ratio == "loss":
            steps = list(zip(*self.moments, strict=True))
            found = [merged(list(parts), self.ddof) for parts in steps[:-1]]
        else:
            found = [
                (math.nan, math.nan)
                if broken
                else error_ratio_of_counts(len(self.targets), a, b, c, self.ddof)
                for a, b, c, broken in np.sum(self.errors, axis=0).tolist()[:-1]
            ]
        return [*(AuditValue(*one, interval=interval) for one in found), last]


def ratios_of(start: Floats, end: Floats, floor: float) -> Floats:
    """Return the ratios of losses of at least the floor."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.maximum(end, floor) / np.maximum(start, floor))
