"""Scores of rows, one or one for each class: what a gradient flow needs to know of a model."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .kernel import KernelModel, _parts
from .linear import LinearModel
from .network import Scorer, TorchModel, at_rest

if TYPE_CHECKING:
    import torch


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearScores:
    """``X @ coef.T + intercepts``."""

    coef: Floats
    intercepts: Floats

    @property
    def n_scores(self) -> int:
        """How many a row has."""
        return len(self.coef)

    @property
    def n_features(self) -> int | None:
        """Of a row, None if any number will do."""
        return int(self.coef.shape[1])

    def of(self, rows: Floats) -> Floats:
        """Return the scores of rows, one column for each."""
        return np.asarray(rows @ self.coef.T + self.intercepts)


@dataclass(frozen=True, eq=False)
class KernelScores:
    """Sums of kernels at the support vectors of a model, one for each row of coefficients."""

    base: KernelModel
    dual_coef: Floats
    intercepts: Floats

    @property
    def n_scores(self) -> int:
        """How many a row has."""
        return len(self.dual_coef)

    @property
    def n_features(self) -> int | None:
        """Of a row, None if any number will do."""
        return int(self.base.support_vectors.shape[1])

    @property
    def native(self) -> tuple[Any, ...]:
        """As the native module takes it."""
        base = self.base
        flat = base.support_vectors.ravel(), self.dual_coef.ravel(), self.intercepts.tolist()
        return *flat, base.kernel, base.gamma, base.degree, base.coef0

    def of(self, rows: Floats) -> Floats:
        """Return the scores of rows, one column for each."""
        scores = np.empty((len(rows), self.n_scores))
        for part in _parts(len(rows), self.dual_coef.shape[1]):
            scores[part] = self.base._kernel(rows[part] - self.base._centre) @ self.dual_coef.T
        return np.asarray(scores + self.intercepts)


@dataclass(frozen=True, eq=False)
class TorchScores:
    """What a module gives, in a precision of the user's."""

    module: torch.nn.Module
    dtype: str | None
    n_scores: int
    n_features: int | None

    def at_rest(self) -> AbstractContextManager[Scorer]:
        """Give what scores rows while the module is left as it was."""
        return at_rest(self.module, self.dtype, self.n_scores)

    def of(self, rows: Floats) -> Floats:
        """Return the scores of rows, one column for each."""
        with self.at_rest() as scorer:
            return scorer.scores(rows, 1024).reshape(len(rows), self.n_scores)


Scores: TypeAlias = LinearScores | KernelScores | TorchScores


def scores_of(model: LinearModel | KernelModel | TorchModel) -> Scores:
    """Return the one score of a model."""
    if isinstance(model, LinearModel):
        return LinearScores(model.coef[None], np.array([model.intercept]))
    if isinstance(model, KernelModel):
        return KernelScores(model, model.dual_coef[None], np.array([model.intercept]))
    return TorchScores(model.module, model.dtype, 1, model._n_features())
