"""The gradient flow of torch modules: batched autograd, one backward pass per stage."""

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
    held: tuple[tuple[int, ...], ...] = (),
) -> tuple[Floats, Floats]:
    """Return the scores by recorded step, score and row, and the moved rows.

    Rows go in batches through all steps; no step keeps the graph of the one before.
    """
    scores = np.empty((len(schedule.record), model.n_scores, len(rows)))
    attacked = np.empty_like(rows)
    with model.at_rest() as scorer:
        # Refuses modules without a finite score at the start.
        scorer.scores(rows, batch_size)
        for first in range(0, len(rows), batch_size):
            part = slice(first, first + batch_size)
            batch = _Batch(scorer, rows[part], targets[part], loss, metric, penalty, held)
            attacked[part] = batch.run(schedule, scores[:, :, part])
            if progress is not None:
                progress(min(first + batch_size, len(rows)))
    return scores, attacked


class _Batch:
    """Some rows on their way, in the units of the metric."""

    def __init__(
        self,
        scorer: Scorer,
        rows: Floats,
        targets: Floats,
        loss: str,
        metric: FairMetric,
        penalty: float,
        held: tuple[tuple[int, ...], ...],
    ) -> None:
        self.held = [list(group) for group in held]
        self.scorer, self.rows, self.units = scorer, rows, metric.units
        self.start, self.targets = scorer.tensor(rows), scorer.tensor(targets)
        self.weigh = _slopes(loss, self.targets, scorer.n_scores)
        pulls, vectors, rest = metric.pulls(penalty)
        self.rest, self.vectors = rest, scorer.tensor(vectors)
        self.pulls, self.scale = scorer.tensor(pulls - rest), scorer.tensor(metric.units)

    def run(self, schedule: Schedule, scores: Floats) -> Floats:
        """Return where the rows end, and fill in their scores by recorded step."""
        import torch

        places, shares = schedule.native.stages
        moved = torch.zeros_like(self.start)
        place = 0
        for t in range(schedule.n_steps + 1):
            if t > 0:
                length = schedule.size / t**schedule.decay
                speed, total = self._velocity(moved), torch.zeros_like(moved)
                for i, share in enumerate(shares):
                    if i > 0:
                        speed = self._velocity(moved + length * places[i] * speed)
                    total += share * speed
                moved = moved + length * total
                for group in self.held:
                    back = _on_simplex(self._at(moved)[:, group]) - self.start[:, group]
                    moved[:, group] = back / self.scale[group]
            if t == schedule.record[place]:
                with torch.no_grad():
                    now = self.scorer.score(self._at(moved)).double().cpu().numpy()
                scores[place] = now.reshape(len(now), -1).T
                place += 1
        return np.asarray(self.rows + self.units * moved.double().cpu().numpy())

    def _at(self, moved: torch.Tensor) -> torch.Tensor:
        return self.start + self.scale * moved

    def _velocity(self, moved: torch.Tensor) -> torch.Tensor:
        _, push = self.scorer.slope(self._at(moved), self.weigh)
        pull = self.rest * moved + ((moved @ self.vectors) * self.pulls) @ self.vectors.T
        return self.scale * push - pull


def _on_simplex(rows: torch.Tensor) -> torch.Tensor:
    """Return the nearest rows that are at least 0 with a sum of 1."""
    import torch

    ordered = rows.sort(dim=1, descending=True).values
    less = (ordered.cumsum(dim=1) - 1) / torch.arange(
        1, rows.shape[1] + 1, device=rows.device, dtype=rows.dtype
    )
    # The last one that stays above 0 says how much all of them lose.
    last = (ordered > less).sum(dim=1, keepdim=True) - 1
    return (rows - less.gather(1, last.clamp(min=0))).clamp(min=0.0)


def _slopes(
    loss: str, targets: torch.Tensor, n_scores: int
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return what gives the slope of a loss in the scores of rows."""
    import torch

    if n_scores > 1:
        own = torch.nn.functional.one_hot(targets.long(), n_scores)

        # The slope of the own class is minus the sum of the others.
        def multinomial(scores: torch.Tensor) -> torch.Tensor:
            others = torch.softmax(scores, dim=1) * (1 - own)
            return others - own * others.sum(dim=1, keepdim=True)

        return multinomial
    side = 1 - 2 * targets
    return {
        "log_loss": lambda score: side * torch.sigmoid(side * score),
        "smooth_hinge": lambda score: side * (1 + side * score).clamp(0.0, 1.0),
        "softplus_hinge": lambda score: side * torch.sigmoid(1 + side * score),
        "squared": lambda score: 2 * (score - targets),
    }[loss]
