"""Fits a ridge logistic regression of mixed columns, to judge the quality of generated rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import rankdata

from .mixed_columns import MixedRows

Floats = NDArray[np.float64]

#: Times half the squared coefficients of standardised columns; the intercept has no penalty.
_PENALTY = 1.0
_MOST_STEPS = 100
_CLOSE = 1e-8


@dataclass(frozen=True, eq=False)
class DesignMatrix:
    """Builds the columns of a regression: standardised numbers, and a 0/1 flag for each level."""

    rows: MixedRows
    places: tuple[int, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns that are used."""
        return [self.rows.columns[place].name for place in self.places]

    def matrix(self, values: Floats) -> Floats:
        """Return the regression columns of codes and numbers; a code of -1 sets no flag."""
        parts = []
        for place in self.places:
            column, entries = self.rows.columns[place], values[:, place]
            if column.kind == "levels":
                parts.append((entries[:, None] == np.arange(len(column.labels))).astype(np.float64))
                continue
            training = self.rows.values[:, place]
            spread = float(training.std())
            parts.append((entries[:, None] - training.mean()) / (spread if spread > 0 else 1.0))
        return np.concatenate(parts, axis=1)


class MixedRidgeLogistic:
    """The regression, with the methods of a scikit-learn classifier."""

    def __init__(self) -> None:
        self.coef = np.zeros(0)

    def fit(self, X: Floats, y: Floats) -> MixedRidgeLogistic:
        """Fit by Newton steps, which are halved until the loss decreases."""
        x = np.column_stack([np.ones(len(X)), X])
        penalty = np.full(x.shape[1], _PENALTY)
        penalty[0] = 0.0
        coef = np.zeros(x.shape[1])

        def loss(at: Floats) -> float:
            score = _scores(x, at)
            return float((np.logaddexp(0, score) - y * score).sum() + penalty @ at**2 / 2)

        current_loss = loss(coef)
        for _ in range(_MOST_STEPS):
            p = expit(_scores(x, coef))
            gradient = np.einsum("ij,i->j", x, p - y) + penalty * coef
            # The curvature of the intercept is 0 if all probabilities are 0 or 1.
            hessian = (x.T * (p * (1 - p))) @ x + np.diag(np.maximum(penalty, _CLOSE))
            step = np.linalg.solve(hessian, gradient)
            size = 1.0
            while (next_loss := loss(coef - size * step)) > current_loss and size > _CLOSE:
                size /= 2
            coef = coef - size * step
            done = current_loss - next_loss < _CLOSE * (1 + abs(current_loss))
            current_loss = next_loss
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
    """Return x @ coef without BLAS, whose sums may depend on the number of threads."""
    return np.asarray(np.einsum("ij,j->i", x, coef))


def area_under_curve(score: Floats, y: Floats) -> float:
    """Return the probability that a row of label 1 scores above one of label 0; ties count half."""
    n = float(y.sum())
    ranks = rankdata(score)
    return float((ranks @ y - n * (n + 1) / 2) / (n * (len(y) - n)))


def cross_fitted_auc(x: Floats, y: Floats, n_folds: int, stream: np.random.Generator) -> float:
    """Return the mean AUC over folds that are stratified by label."""
    fold = np.empty(len(y), dtype=np.intp)
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        fold[rows] = stream.permutation(len(rows)) % n_folds
    areas = []
    for held_out in range(n_folds):
        training = fold != held_out
        fit = MixedRidgeLogistic().fit(x[training], y[training])
        areas.append(area_under_curve(fit.predict_proba(x[~training])[:, 1], y[~training]))
    return float(np.mean(areas))
