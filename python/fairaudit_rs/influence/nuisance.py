"""Nuisances: probabilities given the features, by ridge logistic regression, cross-fitted.

Rows come as kinds with counts. The penalty is the one with the least held-out log loss; a row is
predicted by the fit that has not seen it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Columns of main effects and pairwise products, beyond which there are main effects alone.
_MOST_COLUMNS = 200
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)
_MOST_STEPS = 100
_LEAST = 1e-15


@dataclass(frozen=True, eq=False)
class Basis:
    """An intercept, standardised features, and products of pairs of them."""

    center: Floats
    scale: Floats
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, features: Floats, count: Floats) -> Basis:
        """Return the basis of some rows: constant features stay 0."""
        total = count.sum()
        center = count @ features / total
        scale = np.sqrt(count @ (features - center) ** 2 / total)
        p = features.shape[1]
        few = p + p * (p - 1) // 2 <= _MOST_COLUMNS
        pairs = tuple(combinations(range(p), 2)) if few else ()
        return cls(center, np.where(scale > 0, scale, 1.0), pairs)

    def design(self, features: Floats) -> Floats:
        """Return the columns of the regression."""
        z = (features - self.center) / self.scale
        first, second = (np.array([pair[i] for pair in self.pairs], dtype=int) for i in (0, 1))
        return np.column_stack([np.ones(len(z)), z, z[:, first] * z[:, second]])


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients, and the second derivative of the penalised sum of log losses there."""

    coef: Floats
    penalty: float
    hessian: Floats

    @classmethod
    def of(cls, design: Floats, y: Floats, count: Floats, penalty: float) -> RidgeFit:
        """Minimise the log loss of rows with counts and penalty / 2 times the squared coefficients.

        The intercept is free. Newton's steps are halved until the loss does not grow.
        """
        ridge = np.full(design.shape[1], penalty)
        ridge[0] = 0.0

        def loss(coef: Floats) -> float:
            score = design @ coef
            rest = float(count @ (np.logaddexp(0.0, score) - y * score))
            return rest + 0.5 * float(ridge @ coef**2)

        coef = np.zeros(design.shape[1])
        hessian = _hessian(design, coef, count, ridge)
        before = loss(coef)
        for _ in range(_MOST_STEPS):
            gradient = design.T @ (count * (_expit(design @ coef) - y)) + ridge * coef
            if np.abs(gradient).max() < 1e-10 * max(1.0, float(count.sum())):
                break
            step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
            share = 1.0
            while share > 1e-10 and loss(coef - share * step) > before + 1e-12 * abs(before):
                share /= 2
            coef = coef - share * step
            before = loss(coef)
            hessian = _hessian(design, coef, count, ridge)
        return cls(coef, penalty, hessian)

    def predict(self, design: Floats) -> Floats:
        """Return probabilities."""
        return _expit(design @ self.coef)

    def influence(self, design: Floats, y: Floats, n_rows: float) -> Floats:
        """Return what a row of each kind adds to the coefficients, times the number of rows."""
        shrink = self.penalty * self.coef
        shrink[0] = 0.0
        score = design * (y - self.predict(design))[:, None] - shrink / n_rows
        return np.asarray(n_rows * score @ np.linalg.pinv(self.hessian))


def _hessian(design: Floats, coef: Floats, count: Floats, ridge: Floats) -> Floats:
    p = _expit(design @ coef)
    return np.asarray((design * (count * p * (1 - p))[:, None]).T @ design + np.diag(ridge))


def _expit(score: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-score)))


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A fit for each fold, made without its rows."""

    fits: tuple[RidgeFit, ...]
    folds: NDArray[np.int64]

    @property
    def penalty(self) -> float:
        """That of all fits."""
        return self.fits[0].penalty

    def predict(self, design: Floats) -> Floats:
        """Return the probabilities of rows, each by the fit that has not seen it."""
        found = np.empty(len(design))
        for fold, fit in enumerate(self.fits):
            inside = self.folds == fold
            found[inside] = fit.predict(design[inside])
        return found

    def log_loss(self, design: Floats, y: Floats, count: Floats) -> float:
        """Return the mean held-out log loss."""
        p = np.clip(self.predict(design), _LEAST, 1 - _LEAST)
        return float(-(count @ (y * np.log(p) + (1 - y) * np.log1p(-p))) / count.sum())


def cross_fit(design: Floats, y: Floats, count: Floats, folds: NDArray[np.int64]) -> CrossFit:
    """Return the cross-fit whose penalty loses least; of equal ones the larger penalty."""
    best, least = None, math.inf
    for penalty in sorted(PENALTIES, reverse=True):
        fits = []
        for fold in range(int(folds.max()) + 1):
            others = folds != fold
            fits.append(RidgeFit.of(design[others], y[others], count[others], penalty))
        one = CrossFit(tuple(fits), folds)
        loss = one.log_loss(design, y, count)
        if loss < least:
            best, least = one, loss
    assert best is not None
    return best


def dealt(
    count: NDArray[np.int64], n_folds: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Deal the rows of kinds into folds in turn, in the order of the kinds.

    Returns the kind, the fold and the number of rows of every kind in every fold that has some.
    """
    start = np.cumsum(count) - count
    kinds, folds, counts = [], [], []
    for fold in range(n_folds):
        # Rows number g, g + n_folds, ... of a kind's rows start .. start + count - 1.
        number = (start + count - 1 - fold) // n_folds - (start - 1 - fold) // n_folds
        kind = np.flatnonzero(number)
        kinds.append(kind)
        folds.append(np.full(len(kind), fold))
        counts.append(number[kind])
    return np.concatenate(kinds), np.concatenate(folds), np.concatenate(counts).astype(np.float64)


def cross_mean(design: Floats, y: Floats, count: Floats, folds: NDArray[np.int64]) -> Floats:
    """Return the conditional mean of a number by least squares, cross-fitted."""
    found, root = np.empty(len(y)), np.sqrt(count)
    for fold in range(int(folds.max()) + 1):
        inside = folds == fold
        weighted = design[~inside] * root[~inside, None]
        coef = np.linalg.lstsq(weighted, y[~inside] * root[~inside], rcond=None)[0]
        found[inside] = design[inside] @ coef
    return found
