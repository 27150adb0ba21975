"""Runs the gradient flow of torch modules in batches, with one backward pass per stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..models.torch_scores import Scorer, TorchScores

if TYPE_CHECKING:
    import torch

    from .fair_metric import FairMetric
    from .schedule import Schedule


Floats = NDArray[np.float64]


def torch_flow(
    model: TorchScores,
    rows: Floats,
    targets: Floats,
    loss: str,
    metric: FairMetric,
    penalty: float,
    schedule: Schedule,
    batch_size: int,
    progress: Callable[[int], object] | None,
    *,
    kept_groups: tuple[tuple[int, ...], ...] = (),
) -> tuple[Floats, Floats]:
    """Return the scores, of shape (recorded steps, scores per row, rows), and the moved rows.

    Each batch runs through all steps; the autograd graph is not kept between steps. The groups of
    one-hot features in `kept_groups` are projected on the simplex after each step.
    """
    scores = np.empty((len(schedule.record), model.n_scores, len(rows)))
    moved_rows = np.empty_like(rows)
    with model.in_eval_mode() as scorer:
        # Raises if a score is not finite at the start.
        scorer.scores(rows, batch_size)
        for first in range(0, len(rows), batch_size):
            part = slice(first, first + batch_size)
            batch = _Batch(scorer, rows[part], targets[part], loss, metric, penalty, kept_groups)
            moved_rows[part] = batch.run(schedule, scores[:, :, part])
            if progress is not None:
                progress(min(first + batch_size, len(rows)))
    return scores, moved_rows


class _Batch:
    """The flow of one batch of rows; displacements are in the units of the metric."""

    def __init__(
        self,
        scorer: Scorer,
        rows: Floats,
        targets: Floats,
        loss: str,
        metric: FairMetric,
        penalty: float,
        kept_groups: tuple[tuple[int, ...], ...],
    ) -> None:
        self.kept_groups = [list(group) for group in kept_groups]
        self.scorer, self.rows, self.units = scorer, rows, metric.units
        self.start, self.targets = scorer.tensor(rows), scorer.tensor(targets)
        self.loss_slope = _slopes(loss, self.targets, scorer.n_scores)
        pulls, vectors, rest = metric.pulls(penalty)
        self.rest, self.vectors = rest, scorer.tensor(vectors)
        # `rest` applies in all directions, so eigenvectors get the difference.
        self.excess_pulls, self.scale = scorer.tensor(pulls - rest), scorer.tensor(metric.units)

    def run(self, schedule: Schedule, scores: Floats) -> Floats:
        """Return where the rows end, and fill in their scores by recorded step."""
        import torch

        nodes, weights = schedule.native.stages
        displacement = torch.zeros_like(self.start)
        point = 0
        for t in range(schedule.n_steps + 1):
            if t > 0:
                length = schedule.size / t**schedule.decay
                speed, total = self._velocity(displacement), torch.zeros_like(displacement)
                for i, weight in enumerate(weights):
                    if i > 0:
                        speed = self._velocity(displacement + length * nodes[i] * speed)
                    total += weight * speed
                displacement = displacement + length * total
                for group in self.kept_groups:
                    back = _on_simplex(self._rows_at(displacement)[:, group]) - self.start[:, group]
                    displacement[:, group] = back / self.scale[group]
            if t == schedule.record[point]:
                with torch.no_grad():
                    current = self.scorer.score(self._rows_at(displacement)).double().cpu().numpy()
                scores[point] = current.reshape(len(current), -1).T
                point += 1
        return np.asarray(self.rows + self.units * displacement.double().cpu().numpy())

    def _rows_at(self, displacement: torch.Tensor) -> torch.Tensor:
        return self.start + self.scale * displacement

    def _velocity(self, displacement: torch.Tensor) -> torch.Tensor:
        _, push = self.scorer.slope(self._rows_at(displacement), self.loss_slope)
        pull = (
            self.rest * displacement
            + ((displacement @ self.vectors) * self.excess_pulls) @ self.vectors.T
        )
        return self.scale * push - pull


def _on_simplex(rows: torch.Tensor) -> torch.Tensor:
    """Return the nearest rows with entries of at least 0 and a sum of 1."""
    import torch

    ordered = rows.sort(dim=1, descending=True).values
    less = (ordered.cumsum(dim=1) - 1) / torch.arange(
        1, rows.shape[1] + 1, device=rows.device, dtype=rows.dtype
    )
    # Projection on the simplex: the last sorted entry that stays positive gives the threshold.
    last = (ordered > less).sum(dim=1, keepdim=True) - 1
    return (rows - less.gather(1, last.clamp(min=0))).clamp(min=0.0)


def _slopes(
    loss: str, targets: torch.Tensor, n_scores: int
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the function that maps scores to the derivative of the loss."""
    import torch

    if n_scores > 1:
        is_own = torch.nn.functional.one_hot(targets.long(), n_scores)

        # The slope of the own class is minus the sum of the others.
        def multinomial(scores: torch.Tensor) -> torch.Tensor:
            others = torch.softmax(scores, dim=1) * (1 - is_own)
            return others - is_own * others.sum(dim=1, keepdim=True)

        return multinomial
    sign = 1 - 2 * targets
    return {
        "log_loss": lambda score: sign * torch.sigmoid(sign * score),
        "smooth_hinge": lambda score: sign * (1 + sign * score).clamp(0.0, 1.0),
        "softplus_hinge": lambda score: sign * torch.sigmoid(1 + sign * score),
        "squared": lambda score: 2 * (score - targets),
    }[loss]
