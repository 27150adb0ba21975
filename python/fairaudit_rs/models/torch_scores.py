"""Scores of torch modules and their gradients, one score per row or one per class."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, DataError

if TYPE_CHECKING:
    import torch


#: Number of rows that are scored together.
BATCH = 1024

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TorchScores:
    """The scores of a torch module, in the precision that the user chose."""

    module: torch.nn.Module
    dtype: str | None
    n_scores: int
    n_features: int | None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TorchScores):
            return NotImplemented
        plain = (self.dtype, self.n_scores, self.n_features)
        if plain != (other.dtype, other.n_scores, other.n_features):
            return False
        # Equal modules have the same layers with the same parameters.
        mine, theirs = self.module.state_dict(), other.module.state_dict()
        return (
            repr(self.module) == repr(other.module)
            and mine.keys() == theirs.keys()
            and all(bool((mine[name] == theirs[name]).all()) for name in mine)
        )

    def __hash__(self) -> int:
        return hash((type(self.module), self.dtype, self.n_scores, self.n_features))

    @property
    def precision(self) -> str:
        """The name of the precision in which scores are computed."""
        precision = str(_precision(_floating(self.module))).removeprefix("torch.")
        return precision if self.dtype is None else self.dtype

    def in_eval_mode(self) -> AbstractContextManager[Scorer]:
        """Return a context with the scorer of the module, which is restored afterwards."""
        return _in_eval_mode(self.module, self.dtype, self.n_scores)

    def score_rows(self, rows: Floats) -> Floats:
        """Return the scores of rows, one column for each."""
        with self.in_eval_mode() as scorer:
            return scorer.scores(rows, BATCH).reshape(len(rows), self.n_scores)


def _floating(module: torch.nn.Module) -> list[torch.Tensor]:
    """Return the parameters and buffers of floating point."""
    every = [*module.parameters(), *module.buffers()]
    return [tensor for tensor in every if tensor.is_floating_point()]


def _precision(tensors: list[torch.Tensor]) -> torch.dtype:
    """Return the precision of a module with these tensors."""
    import torch

    return tensors[0].dtype if tensors else torch.float64


@contextmanager
def _in_eval_mode(module: torch.nn.Module, dtype: str | None, n_scores: int) -> Iterator[Scorer]:
    """Yield a scorer of the module in eval mode with fixed parameters; restore it afterwards."""
    import torch

    tensors = _floating(module)
    if any(tensor.is_inference() for tensor in tensors):
        raise ArgumentError(
            "module was made in inference mode, in which torch computes no gradients. Make it "
            "outside of torch.inference_mode().",
            argument="module",
        )
    precision = _precision(tensors)
    device = tensors[0].device if tensors else torch.device("cpu")
    wanted = precision if dtype is None else getattr(torch, dtype)
    if wanted != precision:
        module = copy.deepcopy(module).to(wanted)
    modes = [(part, part.training) for part in module.modules()]
    flags = [(tensor, tensor.requires_grad) for tensor in module.parameters()]
    try:
        module.eval()
        for tensor, _ in flags:
            tensor.requires_grad_(False)
        with torch.inference_mode(False):
            yield Scorer(module, wanted, device, n_scores)
    finally:
        for part, training in modes:
            part.training = training
        for tensor, flag in flags:
            tensor.requires_grad_(flag)


@dataclass(frozen=True)
class Scorer:
    """A module in eval mode, which maps tensors of rows to scores and their gradients."""

    module: torch.nn.Module
    dtype: torch.dtype
    device: torch.device
    #: With one score per row, results have no second axis.
    n_scores: int = 1

    @property
    def epsilon(self) -> float:
        """The machine epsilon of the precision that the module computes in."""
        import torch

        return torch.finfo(self.dtype).eps

    @property
    def array_dtype(self) -> np.dtype[Any]:
        """The NumPy type that stores its numbers without loss."""
        return np.dtype(np.float64 if self.epsilon < 1e-10 else np.float32)

    def tensor(self, rows: NDArray[Any]) -> torch.Tensor:
        """Return rows on the device of the module, in its precision."""
        import torch

        return torch.tensor(rows, dtype=self.dtype, device=self.device)

    def scores(self, rows: Floats, batch_size: int) -> Floats:
        """Return the scores of all rows; they must be finite."""
        import torch

        scores = np.empty((len(rows), self.n_scores) if self.n_scores > 1 else len(rows))
        with torch.no_grad():
            for start in range(0, len(rows), batch_size):
                part = slice(start, start + batch_size)
                scores[part] = self.score(self.tensor(rows[part])).double().cpu().numpy()
        bad = ~np.isfinite(scores).reshape(len(rows), -1).all(axis=1)
        if bad.any():
            row = int(bad.argmax())
            raise DataError(
                f"module gives {scores[row]} in row {row}, and no finite score in "
                f"{int(bad.sum()):,} of {len(rows):,} rows. Use a module with finite logits.",
                argument="module",
            )
        return scores

    def score(self, points: torch.Tensor) -> torch.Tensor:
        """Return one score per point."""
        try:
            output: torch.Tensor = self.module(points)
        except RuntimeError as error:
            raise ArgumentError(
                f"module fails on rows of {points.shape[1]} features: {error}", argument="module"
            ) from error
        n_rows, shape = len(points), tuple(getattr(output, "shape", ()))
        if self.n_scores > 1:
            if shape == (n_rows, self.n_scores):
                return output
            accepted = f"({n_rows}, {self.n_scores}), one logit for each class"
        else:
            if shape == (n_rows,):
                return output
            if shape == (n_rows, 1):
                return output[:, 0]
            if shape == (n_rows, 2):
                return output[:, 1] - output[:, 0]
            accepted = (
                f"({n_rows},), ({n_rows}, 1) or ({n_rows}, 2), one or two logits (with several "
                "classes individual_test takes MulticlassModel.network)"
            )
        output_text = f"shape {shape}" if shape else type(output).__name__
        raise ArgumentError(
            f"module gives {output_text} for {n_rows} rows; accepted: {accepted}", argument="module"
        )

    def slope(
        self,
        points: torch.Tensor,
        weigh: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scores of points and their gradients, without a graph.

        With several scores, their gradients are summed with the weights ``weigh(scores)``.
        """
        import torch

        points = points.detach().requires_grad_(True)
        with torch.enable_grad():
            score = self.score(points)
            if not score.requires_grad:
                raise ArgumentError(
                    "module gives a score without a gradient in its input. Pass a differentiable "
                    "module, or y_score instead of distances.",
                    argument="module",
                    mentions=("y_score",),
                )
            known = score.detach()
            weights = torch.ones_like(known) if weigh is None else weigh(known)
            (gradient,) = torch.autograd.grad(score, points, grad_outputs=weights)
        return known, gradient
