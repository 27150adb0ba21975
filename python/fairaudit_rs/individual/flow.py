"""Gradient flows: from rows, a model and a fair metric to scores along the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.features import Features
from ..errors import ArgumentError
from ..models.scores import KernelScores, LinearScores, Scores
from .fair_metric import FairMetric
from .schedule import Schedule
from .targets import Targets

Floats = NDArray[np.float64]

#: Rows whose scores along the way are in memory at a time.
_PART = 1 << 14

#: Gets the scores of some rows, by recorded step and score, and the place of these rows.
Visitor = Callable[[Floats, slice], object]


@dataclass(frozen=True, eq=False)
class Attack:
    """Where a linear flow moved the rows: x_T = x_0 + sum_k moved_k part_k."""

    rows: Floats
    #: By part and row.
    moved: Floats
    #: For each eigenvalue of the metric and each score, the part of the coefficients.
    parts: Floats
    feature_names: tuple[str, ...] | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attack) and np.array_equal(self.moved, other.moved, equal_nan=True)

    def __hash__(self) -> int:
        return hash(self.moved.shape)

    def end(self, chosen: Any = slice(None)) -> Floats:
        """Return x_T of some rows."""
        attacked = np.array(self.rows[chosen], dtype=np.float64)
        moved = self.moved[:, chosen]
        # A block of rows at a time: what is added to all of them would be as large as they are.
        for first in range(0, len(attacked), _PART):
            rows = slice(first, first + _PART)
            for along, part in zip(moved[:, rows], self.parts, strict=True):
                attacked[rows] += along[:, None] * part
        return attacked


@dataclass(frozen=True, eq=False)
class StoredAttack:
    """Where a flow moved the rows, kept as it is."""

    rows: Floats
    moved: Floats
    feature_names: tuple[str, ...] | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredAttack) and np.array_equal(
            self.moved, other.moved, equal_nan=True
        )

    def __hash__(self) -> int:
        return hash(self.moved.shape)

    def end(self, chosen: Any = slice(None)) -> Floats:
        """Return x_T of some rows."""
        return np.array(self.moved[chosen], dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Flowed:
    """Scores of all rows before and after the flow, where it moved them, and how it ran."""

    #: Scores of all rows before and after, by score and row.
    start: Floats
    end: Floats
    attack: Attack | StoredAttack
    #: 2 lambda eta_1 times the largest eigenvalue of the metric.
    stability: float
    engine: str


@dataclass(frozen=True, eq=False)
class FlowPath:
    """The audit value along the flow: after each of some steps.

    Attributes
    ----------
    step : ndarray of int
        Numbers of steps.
    time : ndarray
        The time reached: the sum of the lengths of the steps.
    estimate : ndarray
        S_n.
    lower_bound : ndarray
        T_n; from the normal law with ``interval="bootstrap-t"``.
    """

    step: NDArray[np.int64]
    time: Floats
    estimate: Floats
    lower_bound: Floats

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True, eq=False, kw_only=True)
class Flow:
    """How rows are moved; `run` moves them."""

    scores: Scores
    metric: FairMetric
    penalty: float
    schedule: Schedule
    batch_size: int
    n_threads: int | None
    progress: Callable[[int, int], object] | None

    @property
    def stability(self) -> float:
        """2 lambda eta_1 times the largest eigenvalue of the metric."""
        return 2 * self.penalty * self.schedule.size * self.metric.largest_eigenvalue

    def under(self, metric: FairMetric, schedule: Schedule) -> Flow:
        """Return the flow under another metric and schedule, without progress."""
        return replace(self, metric=metric, schedule=schedule, progress=None)

    def run(self, features: Features, targets: Targets, visit: Visitor) -> Flowed:
        """Move all rows; `visit` sees their scores along the way."""
        rows, names = features
        n, n_scores = len(rows), self.scores.n_scores
        if self.metric.n_features != rows.shape[1]:
            raise ArgumentError(
                f"fair_metric is of {self.metric.n_features} features; accepted: the "
                f"{rows.shape[1]} of X"
            )
        if len(targets) != n:
            raise ArgumentError(f"y has {len(targets):,} rows, X has {n:,}; accepted: as many")
        start, end = np.empty((n_scores, n)), np.empty((n_scores, n))
        attack: Attack | StoredAttack
        if isinstance(self.scores, LinearScores):
            eigenvalues, parts = self.metric.split(self.scores.coef)
            gains = parts @ parts.transpose(0, 2, 1)
            factors = (2 * self.penalty * eigenvalues).tolist(), gains.ravel().tolist()
            flat_parts = parts.reshape(-1, rows.shape[1]) * self.metric.units
            attack = Attack(rows, np.empty((len(flat_parts), n)), flat_parts, names)
            many = f"closed form in {len(flat_parts)} numbers per row"
        else:
            attack = StoredAttack(rows, np.empty_like(rows), names)
        for first in range(0, n, _PART):
            part = slice(first, first + _PART)
            if isinstance(self.scores, LinearScores):
                scores, moved = self._linear(rows[part], targets, part, factors)
                attack.moved[:, part], engine = moved.reshape(-1, scores.shape[2]), many
            else:
                scores, attack.moved[part], engine = self._stored(rows[part], targets, part, n)
            start[:, part], end[:, part] = scores[0], scores[-1]
            visit(scores, part)
        return Flowed(start=start, end=end, attack=attack, stability=self.stability, engine=engine)

    def _linear(
        self, rows: Floats, targets: Targets, part: slice, factors: tuple[list[float], list[float]]
    ) -> tuple[Floats, Floats]:
        """Return the scores by recorded step, score and row, and how far the rows moved."""
        assert isinstance(self.scores, LinearScores)
        model = self.scores.coef.ravel(), self.scores.intercepts.tolist()
        flat, moved = _native.linear_flow(
            rows.ravel(),
            targets.values[part],
            targets.loss,
            model,
            factors,
            self.schedule.native,
            _native.Call(self.n_threads, self._tick(part.start, len(targets))),
        )
        return flat.reshape(len(self.schedule.record), self.scores.n_scores, -1), moved

    def _stored(
        self, rows: Floats, targets: Targets, part: slice, n: int
    ) -> tuple[Floats, Floats, str]:
        """Return the scores by recorded step, score and row, the moved rows, and the engine."""
        values, tick = targets.values[part], self._tick(part.start, n)
        if isinstance(self.scores, KernelScores):
            pulls, vectors, rest = self.metric.pulls(self.penalty)
            metric = pulls.tolist(), vectors.T.ravel(), rest
            flat, moved = _native.kernel_flow(
                rows.ravel(),
                values,
                targets.loss,
                self.scores.native,
                metric,
                self.metric.units,
                self.schedule.native,
                _native.Call(self.n_threads, tick),
            )
            scores = flat.reshape(len(self.schedule.record), self.scores.n_scores, -1)
            attacked = rows + self.metric.units * moved.reshape(rows.shape)
            return scores, attacked, f"{self.scores.base.kernel} kernel"
        from .torch_flow import torch_flow

        assert not isinstance(self.scores, LinearScores)
        return torch_flow(
            self.scores,
            rows,
            values,
            targets.loss,
            self.metric,
            self.penalty,
            self.schedule,
            self.batch_size,
            tick,
        )

    def _tick(self, first: int, n: int) -> Callable[[int], object] | None:
        progress = self.progress
        return None if progress is None else lambda done: progress(first + done, n)
