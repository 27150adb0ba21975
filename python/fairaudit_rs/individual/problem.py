"""The flow problems of linear models, kernel models and torch modules, and how each is run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import EqualByValue
from ..data.features import Features
from ..errors import ArgumentError, ArgumentTypeError
from ..models.kernel import KernelFunction, KernelScores
from ..models.linear import LinearScores
from ..models.scores import Scores
from ..models.torch_scores import TorchScores
from .attack import Attack, StoredAttack
from .fair_metric import FairMetric
from .sample import PathSums, RowWeights
from .schedule import Schedule
from .targets import Targets
from .torch_flow import torch_flow

Floats = NDArray[np.float64]

#: Number of rows whose moments are computed together; ranges of rows must be whole parts. Flows
#: that run in Python keep the scores along the path of so many rows in memory.
PART = _native.FLOW_PART


@dataclass(frozen=True, eq=False, kw_only=True)
class FlowProblem(EqualByValue, ABC):
    """Rows with their targets, scores and fair metric, and how a flow moves them.

    Pickles without its native objects, which are built again on demand.
    """

    features: Features
    targets: Targets
    scores: Any
    metric: FairMetric
    penalty: float
    #: Losses below it are replaced by it. None: ratios that are not finite are excluded.
    floor: float | None
    #: Number of rows that a torch module processes at a time.
    batch_size: int
    #: Weights and clusters of the rows; None if each row is independent with weight 1.
    sample: RowWeights | None = None
    #: Groups of one-hot features that are kept at least 0 with a sum of 1.
    kept_groups: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        n_rows, n_features = self.features.values.shape
        if self.metric.n_features != n_features:
            raise ArgumentError(
                f"fair_metric has {self.metric.n_features} features; accepted: the "
                f"{n_features} of X",
                argument="fair_metric",
            )
        if len(self.targets) != n_rows:
            raise ArgumentError(
                f"y has {len(self.targets):,} rows, X has {n_rows:,}. Pass one label per row.",
                argument="y",
            )

    def __len__(self) -> int:
        return len(self.targets)

    @classmethod
    def in_features(cls, scores: Any) -> tuple[type[FlowProblem], Any]:
        """Return a problem class in which rows move in all features, and its scores."""
        return cls, scores

    @property
    @abstractmethod
    def engine(self) -> str:
        """A description of how rows are moved."""

    def run(
        self,
        schedule: Schedule,
        n_threads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
        sums: PathSums | None = None,
    ) -> _native.Flowed:
        """Run the flow for all rows; progress gets (rows done, rows).

        `sums`, for weighted or clustered rows, collect the scores at each recorded step.
        """
        n = len(self)
        tick = None if progress is None else lambda done: progress(done, n)
        call = _native.Call(n_threads, tick)
        return self._run(schedule, call) if sums is None else self._by_parts(schedule, call, sums)

    def _run(self, schedule: Schedule, call: _native.Call) -> _native.Flowed:
        """Run the flow for all rows."""
        return self._by_parts(schedule, call, None)

    @abstractmethod
    def _walk(self, schedule: Schedule, call: _native.Call) -> tuple[Floats, Floats]:
        """Return the scores, of shape (recorded steps, scores per row, rows), and the moves."""

    def _by_parts(
        self, schedule: Schedule, call: _native.Call, sums: PathSums | None
    ) -> _native.Flowed:
        """Run the flow in parts of the rows, with all scores along the path of a part in memory."""
        flowed, progress, silent = [], call.progress, _native.Call(call.n_threads)
        for first in range(0, len(self), PART):
            part = slice(first, first + PART)
            tick = None if progress is None else lambda done, first=first: progress(first + done)
            values = self.targets.values[part]
            scores, moved = self.of_rows(part)._walk(schedule, _native.Call(call.n_threads, tick))
            flowed.append(
                _native.Flowed.of_scores(
                    scores,
                    moved,
                    values,
                    self.targets.loss,
                    silent,
                    floor=self.floor,
                    boundary=self.targets.boundary,
                )
            )
            if sums is not None:
                sums.add(part, scores, silent)
        return self.joined(flowed)

    @abstractmethod
    def attack(self, flowed: _native.Flowed) -> Attack | StoredAttack:
        """Return the end points of the flow."""

    def of_rows(self, chosen: slice | NDArray[np.intp]) -> FlowProblem:
        """Return the problem of some rows."""
        rows = Features(self.features.values[chosen], self.features.names)
        sample = None if self.sample is None else self.sample.of_rows(chosen)
        return replace(self, features=rows, targets=self.targets.of_rows(chosen), sample=sample)

    def under(self, metric: FairMetric) -> FlowProblem:
        """Return the problem with another fair metric."""
        return replace(self, metric=metric)

    def stability(self, schedule: Schedule) -> float:
        """Return 2 lambda eta_1 times the largest eigenvalue of the metric."""
        return 2 * self.penalty * schedule.size * self.metric.largest_eigenvalue

    def joined(self, parts: Sequence[_native.Flowed]) -> _native.Flowed:
        """Return the outcome for all rows, from those of consecutive ranges of whole parts."""
        return _native.Flowed(
            np.concatenate([part.start for part in parts], axis=1),
            np.concatenate([part.end for part in parts], axis=1),
            np.concatenate([part.moved for part in parts], axis=self._rows_of_moved),
            np.concatenate([part.loss_start for part in parts]),
            np.concatenate([part.loss_end for part in parts]),
            _native.Path.joined([part.path for part in parts]),
        )

    #: The axis of `Flowed.moved` that runs over rows.
    _rows_of_moved = 0


class LinearProblem(FlowProblem):
    """A linear model: rows move along its coefficients projected on eigenspaces of the metric."""

    scores: LinearScores
    _rows_of_moved = 1

    @classmethod
    def in_features(cls, scores: LinearScores) -> tuple[type[FlowProblem], KernelScores]:
        """Return the problem class and scores of an equivalent sum of linear kernels."""
        kernel = KernelFunction(
            support_vectors=scores.coef, name="linear", gamma=1.0, degree=1, coef0=0.0
        )
        return KernelProblem, KernelScores(kernel, np.eye(len(scores.coef)), scores.intercepts)

    @property
    def engine(self) -> str:
        """A description of how rows are moved."""
        return f"closed form in {len(self._parts)} numbers per row"

    def _run(self, schedule: Schedule, call: _native.Call) -> _native.Flowed:
        return self._flow.run(
            schedule.native, call, floor=self.floor, boundary=self.targets.boundary
        )

    def _walk(self, schedule: Schedule, call: _native.Call) -> tuple[Floats, Floats]:
        flowed = self._flow.scores(schedule.native, call)
        return flowed.scores, flowed.moved

    def attack(self, flowed: _native.Flowed) -> Attack:
        """Return the end points of the flow."""
        parts = self._parts * self.metric.units
        return Attack(self.features.values, flowed.moved, parts, self.features.names)

    @cached_property
    def _split(self) -> tuple[Floats, Floats]:
        return self.metric.split(self.scores.coef)

    @property
    def _parts(self) -> Floats:
        """The projected coefficients, by eigenvalue and score."""
        return self._split[1].reshape(-1, self.metric.n_features)

    @cached_property
    def _flow(self) -> _native.Flow:
        eigenvalues, parts = self._split
        return _native.Flow.linear(
            self.features.values,
            self.targets.values,
            self.targets.loss,
            np.ascontiguousarray(self.scores.coef),
            self.scores.intercepts.tolist(),
            (2 * self.penalty * eigenvalues).tolist(),
            parts @ parts.transpose(0, 2, 1),
        )


class KernelProblem(FlowProblem):
    """A kernel model: rows move in all features."""

    scores: KernelScores

    @property
    def engine(self) -> str:
        """A description of how rows are moved."""
        suffix = ", one-hot features held" if self.kept_groups else ""
        return f"{self.scores.kernel.name} kernel{suffix}"

    def _run(self, schedule: Schedule, call: _native.Call) -> _native.Flowed:
        return self._flow.run(
            schedule.native, call, floor=self.floor, boundary=self.targets.boundary
        )

    def _walk(self, schedule: Schedule, call: _native.Call) -> tuple[Floats, Floats]:
        flowed = self._flow.scores(schedule.native, call)
        return flowed.scores, flowed.moved

    def attack(self, flowed: _native.Flowed) -> StoredAttack:
        """Return the end points of the flow."""
        rows = self.features.values
        attacked = self.metric.units * flowed.moved
        attacked += rows
        return StoredAttack(rows, attacked, self.features.names)

    @cached_property
    def _flow(self) -> _native.Flow:
        kernel, (pulls, vectors, rest) = self.scores.kernel, self.metric.pulls(self.penalty)
        model = _native.KernelExpansion(
            np.ascontiguousarray(kernel.support_vectors),
            np.ascontiguousarray(self.scores.dual_coef),
            self.scores.intercepts.tolist(),
            kernel.name,
            gamma=kernel.gamma,
            degree=kernel.degree,
            coef0=kernel.coef0,
        )
        metric = _native.MetricPull(
            self.metric.units, pulls.tolist(), np.ascontiguousarray(vectors.T), rest
        )
        rows, targets = self.features.values, self.targets
        return _native.Flow.kernel(
            rows, targets.values, targets.loss, model, metric, self.kept_groups
        )


class TorchProblem(FlowProblem):
    """A torch module: rows move in all features, along its gradients."""

    scores: TorchScores

    @property
    def engine(self) -> str:
        """A description of how rows are moved."""
        prefix = "one-hot features held, " if self.kept_groups else ""
        return f"torch autograd, {prefix}{self.scores.precision}"

    def _walk(self, schedule: Schedule, call: _native.Call) -> tuple[Floats, Floats]:
        return torch_flow(
            self.scores,
            self.features.values,
            self.targets.values,
            self.targets.loss,
            self.metric,
            self.penalty,
            schedule,
            self.batch_size,
            call.progress,
            kept_groups=self.kept_groups,
        )

    def attack(self, flowed: _native.Flowed) -> StoredAttack:
        """Return the end points of the flow."""
        return StoredAttack(self.features.values, flowed.moved, self.features.names)


#: The problem class for each class of scores.
PROBLEMS: dict[type, type[FlowProblem]] = {
    LinearScores: LinearProblem,
    KernelScores: KernelProblem,
    TorchScores: TorchProblem,
}


def problem_class(scores: Scores) -> type[FlowProblem]:
    """Return the problem class for a model with these scores."""
    for kind in type(scores).__mro__:
        if kind in PROBLEMS:
            return PROBLEMS[kind]
    raise ArgumentTypeError(
        f"model has scores of the class {type(scores).__name__}; accepted: "
        f"{', '.join(kind.__name__ for kind in PROBLEMS)}",
        argument="model",
    )
