"""A small ridge logistic regression of mixed columns, for scores of generated rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import rankdata

from .mixed_columns import MixedRows

Floats = NDArray[np.float64]

#: On the squares of the coefficients of standardised columns, halved; the intercept is free.
_PENALTY = 1.0
_MOST_STEPS = 100
_CLOSE = 1e-8


@dataclass(frozen=True, eq=False)
class DesignMatrix:
    """Columns of numbers standardised, and a flag for each level."""

    rows: MixedRows
    places: tuple[int, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns that take part."""
        return [self.rows.columns[place].name for place in self.places]

    def matrix(self, values: Floats) -> Floats:
        """Return codes and numbers as columns of a regression; a code of -1 has no flag."""
        parts = []
        for place in self.places:
            column, held = self.rows.columns[place], values[:, place]
            if column.kind == "levels":
                parts.append((held[:, None] == np.arange(len(column.labels))).astype(np.float64))
                continue
            known = self.rows.values[:, place]
            spread = float(known.std())
            parts.append((held[:, None] - known.mean()) / (spread if spread > 0 else 1.0))
        return np.concatenate(parts, axis=1)


class MixedRidgeLogistic:
    """The regression; `fit` and `predict_proba` as of an estimator."""

    def __init__(self) -> None:
        self.coef = np.zeros(0)

    def fit(self, X: Floats, y: Floats) -> MixedRidgeLogistic:
        """Fit by Newton's steps, halved until the loss falls."""
        x = np.column_stack([np.ones(len(X)), X])
        penalty = np.full(x.shape[1], _PENALTY)
        penalty[0] = 0.0
        coef = np.zeros(x.shape[1])

        def loss(at: Floats) -> float:
            score = _scores(x, at)
            return float((np.logaddexp(0, score) - y * score).sum() + penalty @ at**2 / 2)

        now = loss(coef)
        for _ in range(_MOST_STEPS):
            p = expit(_scores(x, coef))
            gradient = np.einsum("ij,i->j", x, p - y) + penalty * coef
            # The intercept's own curvature is 0 where all labels are sure.
            hessian = (x.T * (p * (1 - p))) @ x + np.diag(np.maximum(penalty, _CLOSE))
            step = np.linalg.solve(hessian, gradient)
            size = 1.0
            while (then := loss(coef - size * step)) > now and size > _CLOSE:
                size /= 2
            coef = coef - size * step
            done = now - then < _CLOSE * (1 + abs(now))
            now = then
            if done:
                break
        self.coef = coef
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Return the probabilities of 0 and 1."""
        p = expit(self.coef[0] + _scores(X, self.coef[1:]))
        return np.column_stack([1 - p, p])

    def predict(self, X: Floats) -> Floats:
        """Return the likelier label."""
        return np.asarray(self.predict_proba(X)[:, 1] > 0.5).astype(np.float64)


def _scores(x: Floats, coef: Floats) -> Floats:
    """Return x @ coef, not by BLAS: its sums may depend on the number of threads."""
    return np.asarray(np.einsum("ij,j->i", x, coef))


def area_under_curve(score: Floats, y: Floats) -> float:
    """Return the chance that a row of label 1 scores above one of label 0, ties counting half."""
    n = float(y.sum())
    ranks = rankdata(score)
    return float((ranks @ y - n * (n + 1) / 2) / (n * (len(y) - n)))


def cross_fitted_auc(x: Floats, y: Floats, n_folds: int, stream: np.random.Generator) -> float:
    """Return the mean AUC over folds, each predicted without its rows; folds are even by label."""
    fold = np.empty(len(y), dtype=np.intp)
    for label in (0, 1):
        own = np.flatnonzero(y == label)
        fold[own] = stream.permutation(len(own)) % n_folds
    found = []
    for left in range(n_folds):
        known = fold != left
        fit = MixedRidgeLogistic().fit(x[known], y[known])
        found.append(area_under_curve(fit.predict_proba(x[~known])[:, 1], y[~known]))
    return float(np.mean(found))
