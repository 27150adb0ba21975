"""Nuisances: probabilities given the features, cross-fitted: a row is predicted without its fold.

The default is a ridge logistic regression on main effects and pairwise products, with the penalty
that loses least on held-out rows. Rows with the same features are one kind, with counts by fold.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import ArgumentTypeError, DataError

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Columns of main effects and pairwise products, beyond which there are main effects alone.
_MOST_COLUMNS = 200
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)
#: Directions in which least squares know less than this part of what they know in the best one.
_UNKNOWN = 1e-13
#: A pivot below this part of the largest entry may stand for such a direction.
_UNCLEAR = 1e-9
#: Spread of a feature, as a part of its mean, that is rounding.
_ROUNDING = 1e-12
#: Probabilities are kept this far from 0 and 1.
_LEAST = 1e-15


@dataclass(frozen=True, eq=False)
class RegressionBasis:
    """An intercept, standardised features, and products of pairs of them."""

    center: Floats
    scale: Floats
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def from_features(cls, features: Floats, count: Floats) -> RegressionBasis:
        """Return the basis of some rows: constant features stay 0."""
        total = count.sum()
        center = count @ features / total
        scale = np.sqrt(count @ (features - center) ** 2 / total)
        p = features.shape[1]
        few = p + p * (p - 1) // 2 <= _MOST_COLUMNS
        pairs = tuple(combinations(range(p), 2)) if few else ()
        spread = scale > _ROUNDING * np.abs(center)
        return cls(center, np.where(spread, scale, 1.0), pairs)

    def columns(self, features: Floats) -> _native.InfluenceDesign:
        """Return the columns of the regression in native code."""
        features = np.ascontiguousarray(features)
        return _native.InfluenceDesign(
            features, self.center.tolist(), self.scale.tolist(), self.pairs
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Regressors:
    """Rows as kinds of equal features, with their folds: what regressions are made on."""

    #: By kind.
    features: Floats
    #: By row.
    kind: Counts
    fold: Counts
    count: Floats
    call: _native.Call

    @classmethod
    def from_features(
        cls, features: Floats, count: Floats, fold: Counts, call: _native.Call
    ) -> Regressors:
        """Put rows with equal features together."""
        features = np.ascontiguousarray(features)
        if features.shape[1]:
            first, _, place = _native.distinct_rows(features, call)
        else:
            first, place = np.zeros(1, dtype=np.uint32), np.zeros(len(features), dtype=np.uint32)
        kind = place.astype(np.int64)
        return cls(features=features[first], kind=kind, fold=fold, count=count, call=call)

    def without(self, columns: tuple[int, ...]) -> Regressors:
        """Return the same rows by the other features."""
        fewer = Regressors.from_features(
            np.delete(self.features, columns, axis=1),
            np.ones(len(self.features)),
            np.zeros(len(self.features), dtype=np.int64),
            self.call,
        )
        return Regressors(
            features=fewer.features,
            kind=fewer.kind[self.kind],
            fold=self.fold,
            count=self.count,
            call=self.call,
        )

    @property
    def n_folds(self) -> int:
        """How many folds there are, two at least."""
        return max(int(self.fold.max()) + 1, 2)

    @property
    def n_rows(self) -> float:
        """How many rows there are."""
        return float(self.count.sum())

    @cached_property
    def basis(self) -> RegressionBasis:
        """The basis of these rows."""
        return RegressionBasis.from_features(self.features, self.by_kind(np.ones(len(self.kind))))

    @cached_property
    def columns(self) -> _native.InfluenceDesign:
        """The columns of the kinds."""
        return self.basis.columns(self.features)

    def by_kind(self, values: Floats) -> Floats:
        """Return the sums of count times a number of the rows, by kind."""
        found = np.bincount(self.kind, self.count * values, len(self.features))
        return found.astype(np.float64)

    def by_fold(self, values: Floats) -> Floats:
        """Return the sums of count times a number of the rows, by fold and kind."""
        n = len(self.features)
        flat = np.bincount(self.fold * n + self.kind, self.count * values, self.n_folds * n)
        return flat.reshape(self.n_folds, n).astype(np.float64)

    def of_rows(self, found: Floats) -> Floats:
        """Return what holds for a row in a table by fold and kind."""
        return np.asarray(found[self.fold, self.kind])

    def means(self, *numbers: Floats) -> list[Floats]:
        """Return the conditional means of some numbers by least squares, cross-fitted."""
        own = self.columns.gram(self.by_fold(np.ones(len(self.kind))), self.call)
        sums = [self.columns.sums(self.by_fold(y), self.call) for y in numbers]
        products = own.sum(axis=0) - own
        found = []
        for fold in range(self.n_folds):
            right = [total.sum(axis=0) - total[fold] for total in sums]
            found.append(_least_squares(products[fold], np.column_stack(right)))
        coef = np.array(found).transpose(2, 0, 1)
        scores = [
            self.columns.scores(np.ascontiguousarray(coefficients), self.call)
            for coefficients in coef
        ]
        return [self.of_rows(score) for score in scores]


def _least_squares(products: Floats, sums: Floats) -> Floats:
    """Return the shortest solutions of normal equations."""
    try:
        pivots = np.diag(np.linalg.cholesky(products)) ** 2
    except np.linalg.LinAlgError:
        pivots = np.zeros(1)
    if pivots.min() > _UNCLEAR * np.diag(products).max():
        return np.asarray(np.linalg.solve(products, sums))
    values, vectors = np.linalg.eigh(products)
    known = values > _UNKNOWN * max(float(values[-1]), 0.0)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=known)
    return np.asarray(vectors @ (inverse[:, None] * (vectors.T @ sums)))


class CrossFit:
    """Probabilities of a row to be positive, by the fit that has not seen its fold."""

    def __init__(self, regressors: Regressors, y: Floats) -> None:
        self.regressors, self.y = regressors, y

    def at(self, features: Floats) -> Floats:
        """Return the probabilities of all rows, were the features of their kinds these."""
        raise NotImplementedError

    def predict(self, features: Floats) -> Floats:
        """Return the probabilities of any rows, by a fit of all rows."""
        raise NotImplementedError

    @cached_property
    def found(self) -> Floats:
        """The probabilities of the rows as they are."""
        return self.at(self.regressors.features)

    def influence(self, gradient: Callable[[Regressors, RegressionBasis], Floats]) -> Floats | None:
        """Return what a row adds to a number by the fit; None where that is not known.

        The gradient is that of the number by the coefficients.
        """
        return None


class RidgeLogistic(CrossFit):
    """The default."""

    def __init__(self, regressors: Regressors, y: Floats) -> None:
        super().__init__(regressors, y)
        count, positive = regressors.by_fold(np.ones(len(y))), regressors.by_fold(y)
        fitted = regressors.columns.cross_fit(count, positive, PENALTIES, regressors.call)
        self.losses, best, self.coef_by_fold, self.coef, self.hessian = fitted
        self.penalty = PENALTIES[best]

    def at(self, features: Floats) -> Floats:
        """Return the probabilities of all rows, were the features of their kinds these."""
        columns = self.regressors.basis.columns(features)
        scores = columns.scores(self.coef_by_fold, self.regressors.call)
        return self.regressors.of_rows(_expit(scores))

    def predict(self, features: Floats) -> Floats:
        """Return the probabilities of any rows, by a fit of all rows."""
        columns = self.regressors.basis.columns(features)
        scores = columns.scores(np.ascontiguousarray(self.coef[None]), self.regressors.call)
        return np.ascontiguousarray(_expit(scores[0]))

    def influence(self, gradient: Callable[[Regressors, RegressionBasis], Floats]) -> Floats | None:
        """Return what a row adds to a number by the coefficients of all rows."""
        of = self.regressors
        shrink = self.penalty * self.coef
        shrink[0] = 0.0
        turned = np.linalg.pinv(self.hessian) @ gradient(of, of.basis)
        score, along = of.columns.scores(np.array([self.coef, turned]), of.call)
        rest = self.y - _expit(score)[of.kind]
        return np.asarray(of.n_rows * rest * along[of.kind] - shrink @ turned)


class EstimatorFit(CrossFit):
    """Fits of an estimator with `fit` and `predict_proba`."""

    def __init__(self, regressors: Regressors, y: Floats, estimator: Any) -> None:
        super().__init__(regressors, y)
        self.name, self.estimator = type(estimator).__name__, estimator
        positive = regressors.by_fold(y)
        negative = regressors.by_fold(1 - y)
        self.fits = [
            _learn(
                estimator,
                regressors.features,
                negative.sum(axis=0) - negative[fold],
                positive.sum(axis=0) - positive[fold],
            )
            for fold in range(regressors.n_folds)
        ]

    def at(self, features: Floats) -> Floats:
        """Return the probabilities of all rows, were the features of their kinds these."""
        found = np.array([fit(features) for fit in self.fits])
        return self.regressors.of_rows(np.clip(found, _LEAST, 1 - _LEAST))

    def predict(self, features: Floats) -> Floats:
        """Return the probabilities of any rows, by a fit of all rows."""
        rows = self.regressors
        both = [rows.by_kind(1 - self.y), rows.by_kind(self.y)]
        found = _learn(self.estimator, rows.features, *both)(features)
        return np.clip(found, _LEAST, 1 - _LEAST)


def _learn(
    estimator: Any, features: Floats, negative: Floats, positive: Floats
) -> Callable[[Floats], Floats]:
    """Fit a copy of an estimator to kinds of rows of both labels."""
    both = [np.rint(counts).astype(np.int64) for counts in (negative, positive)]
    totals = [int(counts.sum()) for counts in both]
    if not all(totals):
        share = totals[1] / max(sum(totals), 1)
        return lambda rows: np.full(len(rows), share)
    rows = np.concatenate([np.repeat(features, counts, axis=0) for counts in both])
    fit = _copy(estimator)
    fit.fit(rows, np.repeat([0, 1], totals))
    return lambda rows: _of_one(fit, rows)


def _of_one(fit: Any, rows: Floats) -> Floats:
    found = np.asarray(fit.predict_proba(rows), dtype=np.float64)
    shape = (len(rows), 2)
    if found.shape != shape:
        raise DataError(
            f"nuisance ({type(fit).__name__}) returned probabilities of shape {found.shape}; "
            f"accepted: {shape}, the probabilities of the labels 0 and 1",
            argument="nuisance",
        )
    if not ((found >= 0) & (found <= 1)).all():
        raise DataError(
            f"nuisance ({type(fit).__name__}) returned numbers that are missing or outside 0 to 1. "
            "Use an estimator whose predict_proba returns probabilities.",
            argument="nuisance",
        )
    return np.asarray(found[:, 1])


def _copy(estimator: Any) -> Any:
    """Return an estimator as it was before it was fitted, where scikit-learn knows it."""
    if hasattr(estimator, "get_params") and importlib.util.find_spec("sklearn") is not None:
        return importlib.import_module("sklearn.base").clone(estimator)
    return copy.deepcopy(estimator)


def check_estimator(estimator: Any) -> None:
    """Refuse what does not fit and predict."""
    if estimator is None:
        return
    lacking = [name for name in ("fit", "predict_proba") if not hasattr(estimator, name)]
    if lacking or isinstance(estimator, type):
        what = "a class" if isinstance(estimator, type) else f"without {lacking[0]}"
        raise ArgumentTypeError(
            f"nuisance is {estimator!r}, {what}; accepted: an estimator with fit and predict_proba",
            argument="nuisance",
        )


def fit_nuisance(regressors: Regressors, y: Floats, estimator: Any = None) -> CrossFit:
    """Return the probability of y = 1 given the features, by an estimator or by the default."""
    if estimator is None:
        return RidgeLogistic(regressors, y)
    return EstimatorFit(regressors, y, estimator)


def label_chance(
    features: Floats,
    label: Floats,
    count: Counts,
    *,
    n_folds: int,
    estimator: Any,
    call: _native.Call,
) -> Floats:
    """Return P(label = 1 | features) of kinds of rows, by one fit of as many of each as there are.

    Kinds of which there are none are predicted too. Labels that are all the same have this chance.
    """
    check_estimator(estimator)
    # By features and label: the last bit of a score does not move a row to another fold.
    first, _, place = _native.distinct_rows(np.ascontiguousarray(features), call)
    known = np.ascontiguousarray(features[first])
    both = np.bincount(2 * place.astype(np.int64) + (label > 0), count, 2 * len(known))
    kind, fold, number = deal_folds(np.rint(both).astype(np.int64), n_folds)
    y = (kind % 2).astype(np.float64)
    share = float(number @ y) / float(number.sum())
    if share in (0.0, 1.0):
        return np.full(len(features), share)
    rows = Regressors.from_features(known[kind // 2], number, fold, call)
    if estimator is None:
        found = RidgeLogistic(rows, y).predict(known)
    else:
        found = _learn(estimator, rows.features, rows.by_kind(1 - y), rows.by_kind(y))(known)
    return np.ascontiguousarray(found[place])


def _expit(score: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.clip(1 / (1 + np.exp(-score)), _LEAST, 1 - _LEAST)


def deal_folds(count: Counts, n_folds: int) -> tuple[Counts, Counts, Floats]:
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
