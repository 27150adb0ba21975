"""Gradient flows: from rows, a model and a fair metric to scores along the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._distances import read_features
from ._linear_models import LinearModel
from ._torch_models import TorchModel
from .errors import ArgumentError, ArgumentTypeError
from .fair_metrics import FairMetric
from .models import adapt

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]

SOLVERS = {"euler": 2.0, "heun": 2.0, "rk4": 2.785293563405282}
"""Each solver with the 2 lambda eta mu from which on it blows up."""

#: Rows whose scores along the way are in memory at a time.
_PART = 1 << 14

#: Gets the scores of some rows, by recorded step, and the place of these rows.
Visitor = Callable[[Floats, slice], object]


@dataclass(frozen=True)
class Schedule:
    """Steps of length ``size / t**decay``, and after which of them scores are kept."""

    n_steps: int
    size: float
    decay: float
    solver: str
    record: tuple[int, ...]

    @classmethod
    def of(cls, n_steps: int, size: float, decay: float, solver: str, n_points: int) -> Schedule:
        """Return a schedule that looks at the flow so many times, at the start and the end too."""
        record = np.unique(np.round(np.linspace(0, n_steps, n_points)).astype(int))
        return cls(n_steps, size, decay, solver, tuple(record.tolist()))

    @property
    def native(self) -> tuple[int, float, float, str, list[int]]:
        """As the native module takes it."""
        return self.n_steps, self.size, self.decay, self.solver, list(self.record)

    def steps_above(self, stability: float, limit: float) -> int:
        """Return how many steps, the first ones, are too long for a limit of the stability."""
        if stability <= limit * (1 + 1e-9):
            return 0
        if self.decay == 0:
            return self.n_steps
        return int(min(self.n_steps, np.ceil((stability / limit) ** (1 / self.decay)) - 1))

    def times(self) -> Floats:
        """Return the time that the flow has reached at each recorded step: the sum of steps."""
        lengths = self.size / np.arange(1, self.n_steps + 1) ** self.decay
        reached: Floats = np.concatenate([[0.0], np.cumsum(lengths)])
        return reached[list(self.record)]


@dataclass(frozen=True, eq=False)
class Attack:
    """Where a linear flow moved the rows: x_T = x_0 + sum_k moved_k part_k."""

    rows: Floats
    #: By eigenvalue of the metric and row.
    moved: Floats
    #: By eigenvalue, the part of the coefficients.
    parts: Floats
    feature_names: tuple[str, ...] | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attack) and np.array_equal(self.moved, other.moved, equal_nan=True)

    def __hash__(self) -> int:
        return hash(self.moved.shape)

    def end(self, chosen: Any = slice(None)) -> Floats:
        """Return x_T of some rows."""
        attacked = np.array(self.rows[chosen])
        for moved, part in zip(self.moved, self.parts, strict=True):
            attacked += moved[chosen][:, None] * part
        return np.asarray(attacked, dtype=np.float64)


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


@dataclass(frozen=True)
class Flowed:
    """What the flow of all rows came to."""

    #: Scores of all rows before and after.
    start: Floats
    end: Floats
    attack: Attack | StoredAttack
    #: 2 lambda eta_1 times the largest eigenvalue of the metric.
    stability: float
    boundary: float
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


@dataclass(frozen=True, eq=False)
class UnfairExamples:
    """The rows with the largest ratios, and the similar people who are treated worst.

    Attributes
    ----------
    row : ndarray of int
        Positions in X.
    ratio, loss_start, loss_end : ndarray
        The ratio of the row, and the losses before and after.
    score_start, score_end : ndarray
        Scores of the model before and after.
    start, attacked : ndarray of shape (k, n_features)
        The rows and where the flow moved them.
    feature_names : tuple of str or None
        Names of the columns of these.
    """

    row: NDArray[np.int64]
    ratio: Floats
    loss_start: Floats
    loss_end: Floats
    score_start: Floats
    score_end: Floats
    start: Floats
    attacked: Floats
    feature_names: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.row)

    def __repr__(self) -> str:
        shown = f", ratios {self.ratio[-1]:.3g} to {self.ratio[0]:.3g}" if len(self) else ""
        return f"UnfairExamples({len(self):,} rows{shown})"

    def to_frame(self) -> pl.DataFrame:
        """Return one row per example: losses, scores, and each feature before and after."""
        import polars as pl

        names = self.feature_names or tuple(f"x{j}" for j in range(self.start.shape[1]))
        columns: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("row", "ratio", "loss_start", "loss_end", "score_start", "score_end")
        }
        for j, name in enumerate(names):
            columns[f"{name} before"] = self.start[:, j]
            columns[f"{name} after"] = self.attacked[:, j]
        return pl.DataFrame(columns)


def flow_model(model: Any) -> LinearModel | TorchModel:
    """Return the model as one whose flow is known, with log-odds as its score."""
    adapted = adapt(model)
    if not isinstance(adapted, LinearModel | TorchModel):
        raise ArgumentTypeError(
            f"model is a {type(model).__name__}; accepted so far: linear models (a LinearModel, or "
            "a fitted linear classifier of scikit-learn) and torch modules; flows of kernel models "
            "are not built yet"
        )
    if adapted.link != "logit":
        raise ArgumentError(
            "model has link='identity', so that its score is no log-odds; loss='log_loss' accepts "
            "link='logit' (the same model with link='logit' if it is one)"
        )
    return adapted


def flow(
    model: LinearModel | TorchModel,
    X: Any,
    positive: NDArray[np.bool_],
    metric: FairMetric,
    penalty: float,
    schedule: Schedule,
    n_threads: int | None,
    progress: Callable[[int, int], object] | None,
    visit: Visitor,
) -> Flowed:
    """Run the flow of a model under the log loss; `visit` sees the scores along the way."""
    width = len(model.coef) if isinstance(model, LinearModel) else model._n_features()
    rows, names = read_features(X, width, model.feature_names)
    n = len(rows)
    if len(positive) != n:
        raise ArgumentError(f"y has {len(positive):,} rows, X has {n:,}; accepted: as many")
    if metric.n_features != rows.shape[1]:
        raise ArgumentError(
            f"fair_metric is of {metric.n_features} features; accepted: the {rows.shape[1]} of X"
        )
    start, end = np.empty(n), np.empty(n)
    attack: Attack | StoredAttack
    if isinstance(model, LinearModel):
        eigenvalues, parts = metric.split(model.coef)
        gains = np.einsum("ij,ij->i", parts, parts)
        factors = (2 * penalty * eigenvalues).tolist(), gains.tolist()
        attack = Attack(rows, np.empty((len(parts), n)), parts, names)
        engine = f"closed form in {len(parts)} numbers per row"
    else:
        attack = StoredAttack(rows, np.empty_like(rows), names)
    for first in range(0, n, _PART):
        part = slice(first, first + _PART)
        tick = None if progress is None else _shifted(progress, first, n)
        if isinstance(model, LinearModel):
            flat, moved = _native.linear_flow(
                rows[part].ravel(), positive[part], model.coef, model.intercept, factors,
                schedule.native, n_threads, tick,
            )  # fmt: skip
            scores = flat.reshape(len(schedule.record), -1)
            size = scores.shape[1]
            attack.moved[:, part] = moved.reshape(-1, size) * np.where(positive[part], -1.0, 1.0)
        else:
            from ._torch_flow import torch_flow

            scores, attack.moved[part], engine = torch_flow(
                model, rows[part], positive[part], metric.D, penalty, schedule, tick
            )
        start[part], end[part] = scores[0], scores[-1]
        visit(scores, part)
    stability = 2 * penalty * schedule.size * metric.largest_eigenvalue
    return Flowed(start, end, attack, stability, model.boundary, engine)


def _shifted(progress: Callable[[int, int], object], first: int, n: int) -> Callable[[int], object]:
    return lambda done: progress(first + done, n)
