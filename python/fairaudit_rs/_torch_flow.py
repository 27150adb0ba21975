"""The gradient flow of torch modules: batched autograd, one backward pass per stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ._torch_models import TorchModel, _Scorer, _scorer

if TYPE_CHECKING:
    import torch

    from ._flow import Schedule

Floats = NDArray[np.float64]

_BATCH = 4_096

#: By solver, where the stages lie in the step, and how much each counts.
_STAGES = {
    "euler": ((0.0,), (1.0,)),
    "heun": ((0.0, 1.0), (1 / 2, 1 / 2)),
    "rk4": ((0.0, 1 / 2, 1 / 2, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
}


def torch_flow(
    model: TorchModel,
    rows: Floats,
    positive: NDArray[np.bool_],
    metric: Floats,
    penalty: float,
    schedule: Schedule,
    progress: Callable[[int], object] | None,
) -> tuple[Floats, Floats, str]:
    """Return the scores by recorded step and row, the moved rows, and the engine.

    Rows go in batches through all steps; no step keeps the graph of the one before.
    """
    scores = np.empty((len(schedule.record), len(rows)))
    attacked = np.empty_like(rows)
    with _scorer(model.module, model.dtype) as scorer:
        # Refuses modules without a finite score at the start.
        scorer.scores(rows, _BATCH)
        pull = scorer.tensor(2 * penalty * metric)
        for first in range(0, len(rows), _BATCH):
            part = slice(first, first + _BATCH)
            start = scorer.tensor(rows[part])
            sign = scorer.tensor(np.where(positive[part], 1.0, -1.0))
            moved = _run(scorer, start, sign, pull, schedule, scores[:, part])
            attacked[part] = rows[part] + moved.double().cpu().numpy()
            if progress is not None:
                progress(min(first + _BATCH, len(rows)))
    return scores, attacked, f"torch autograd, {str(scorer.dtype).removeprefix('torch.')}"


def _run(
    scorer: _Scorer,
    start: torch.Tensor,
    sign: torch.Tensor,
    pull: torch.Tensor,
    schedule: Schedule,
    scores: Floats,
) -> torch.Tensor:
    """Return how far the rows moved, and fill in their scores."""
    import torch

    places, shares = _STAGES[schedule.solver]
    moved = torch.zeros_like(start)

    def velocity(moved: torch.Tensor) -> torch.Tensor:
        score, slope = scorer.slope(start + moved)
        push = -sign * torch.sigmoid(-sign * score)
        return push[:, None] * slope - moved @ pull

    place = 0
    for t in range(schedule.n_steps + 1):
        if t > 0:
            length = schedule.size / t**schedule.decay
            speed, total = velocity(moved), torch.zeros_like(moved)
            for i, share in enumerate(shares):
                if i > 0:
                    speed = velocity(moved + length * places[i] * speed)
                total += share * speed
            moved = moved + length * total
        if t == schedule.record[place]:
            with torch.no_grad():
                scores[place] = scorer.score(start + moved).double().cpu().numpy()
            place += 1
    return moved
