"""Nuisance regressions: cross-fitted probabilities given the features.

The influence audit needs P(y = 1 | features) for gaps with other features held fixed
(`ceteris_paribus`, `held_fixed`), for the metrics "calibration" and "divergence", and for
`InfluenceResult.descend` and `InfluenceResult.repair` (`label_probability`).

Each row is predicted by a fit without its fold. The default is a ridge logistic regression on main
effects and pairwise products, with the penalty that minimises the log loss on held-out rows. Rows
with the same features are grouped into one distinct row, with counts by fold.
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

#: With more columns of main effects and pairwise products, only main effects are used.
_MOST_COLUMNS = 200
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)
#: Eigenvalues of the normal equations below this share of the largest are taken as 0.
_RANK_TOLERANCE = 1e-13
#: If a Cholesky pivot is below this share of the largest entry, the eigenvalues are checked.
_SURE_PIVOT = 1e-9
#: A feature whose standard deviation is below this share of its mean counts as constant.
_ROUNDING = 1e-12
#: Probabilities are clipped to this distance from 0 and 1.
_CLIP = 1e-15


@dataclass(frozen=True, eq=False)
class RegressionBasis:
    """An intercept, standardised features, and products of pairs of them."""

    center: Floats
    scale: Floats
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def from_features(cls, features: Floats, count: Floats) -> RegressionBasis:
        """Return the basis of some rows; constant features become 0."""
        total = count.sum()
        center = count @ features / total
        scale = np.sqrt(count @ (features - center) ** 2 / total)
        p = features.shape[1]
        use_pairs = p + p * (p - 1) // 2 <= _MOST_COLUMNS
        pairs = tuple(combinations(range(p), 2)) if use_pairs else ()
        varies = scale > _ROUNDING * np.abs(center)
        return cls(center, np.where(varies, scale, 1.0), pairs)

    def columns(self, features: Floats) -> _native.InfluenceDesign:
        """Return the columns of the regression in native code."""
        features = np.ascontiguousarray(features)
        return _native.InfluenceDesign(
            features, self.center.tolist(), self.scale.tolist(), self.pairs
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Regressors:
    """The rows of a regression, with their distinct features, folds and counts."""

    #: The distinct rows of features.
    features: Floats
    #: For each row: the position of its features among the distinct ones, its fold, its count.
    distinct_of_row: Counts
    fold: Counts
    count: Floats
    call: _native.Call

    @classmethod
    def from_features(
        cls, features: Floats, count: Floats, fold: Counts, call: _native.Call
    ) -> Regressors:
        """Group rows with equal features."""
        features = np.ascontiguousarray(features)
        if features.shape[1]:
            first, _, place = _native.distinct_rows(features, call)
        else:
            first, place = np.zeros(1, dtype=np.uint32), np.zeros(len(features), dtype=np.uint32)
        distinct_of_row = place.astype(np.int64)
        return cls(
            features=features[first],
            distinct_of_row=distinct_of_row,
            fold=fold,
            count=count,
            call=call,
        )

    def without(self, columns: tuple[int, ...]) -> Regressors:
        """Return the same rows without some features."""
        fewer = Regressors.from_features(
            np.delete(self.features, columns, axis=1),
            np.ones(len(self.features)),
            np.zeros(len(self.features), dtype=np.int64),
            self.call,
        )
        return Regressors(
            features=fewer.features,
            distinct_of_row=fewer.distinct_of_row[self.distinct_of_row],
            fold=self.fold,
            count=self.count,
            call=self.call,
        )

    @property
    def n_folds(self) -> int:
        """The number of folds, at least two."""
        return max(int(self.fold.max()) + 1, 2)

    @property
    def n_rows(self) -> float:
        """The number of rows."""
        return float(self.count.sum())

    @cached_property
    def basis(self) -> RegressionBasis:
        """The regression basis of these rows."""
        return RegressionBasis.from_features(
            self.features, self.sum_by_distinct_row(np.ones(len(self.distinct_of_row)))
        )

    @cached_property
    def columns(self) -> _native.InfluenceDesign:
        """The columns of the basis for every distinct row."""
        return self.basis.columns(self.features)

    def sum_by_distinct_row(self, values: Floats) -> Floats:
        """Return the sums of count * value over the rows with the same features."""
        sums = np.bincount(self.distinct_of_row, self.count * values, len(self.features))
        return sums.astype(np.float64)

    def sum_by_fold(self, values: Floats) -> Floats:
        """Return the sums of count * value over the rows of each fold and distinct row."""
        n = len(self.features)
        flat = np.bincount(
            self.fold * n + self.distinct_of_row, self.count * values, self.n_folds * n
        )
        return flat.reshape(self.n_folds, n).astype(np.float64)

    def of_rows(self, table: Floats) -> Floats:
        """Return for each row its entry in a table that is indexed by fold and distinct row."""
        return np.asarray(table[self.fold, self.distinct_of_row])

    def means(self, *numbers: Floats) -> list[Floats]:
        """Return cross-fitted conditional means of some numbers, by least squares."""
        own = self.columns.gram(self.sum_by_fold(np.ones(len(self.distinct_of_row))), self.call)
        sums = [self.columns.sums(self.sum_by_fold(y), self.call) for y in numbers]
        products = own.sum(axis=0) - own
        solutions = []
        for fold in range(self.n_folds):
            right = [total.sum(axis=0) - total[fold] for total in sums]
            solutions.append(_least_squares(products[fold], np.column_stack(right)))
        coef = np.array(solutions).transpose(2, 0, 1)
        scores = [
            self.columns.scores(np.ascontiguousarray(coefficients), self.call)
            for coefficients in coef
        ]
        return [self.of_rows(score) for score in scores]


def _least_squares(products: Floats, sums: Floats) -> Floats:
    """Return the minimum-norm solutions of normal equations."""
    try:
        pivots = np.diag(np.linalg.cholesky(products)) ** 2
    except np.linalg.LinAlgError:
        pivots = np.zeros(1)
    if pivots.min() > _SURE_PIVOT * np.diag(products).max():
        return np.asarray(np.linalg.solve(products, sums))
    values, vectors = np.linalg.eigh(products)
    known = values > _RANK_TOLERANCE * max(float(values[-1]), 0.0)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=known)
    return np.asarray(vectors @ (inverse[:, None] * (vectors.T @ sums)))


class CrossFit:
    """Cross-fitted probabilities of y = 1: each row is predicted by the fit without its fold."""

    def __init__(self, regressors: Regressors, y: Floats) -> None:
        self.regressors, self.y = regressors, y

    def probabilities_at(self, features: Floats) -> Floats:
        """Return the cross-fitted probabilities of the rows, with other features.

        ``features`` replaces the distinct feature rows, in their order.
        """
        raise NotImplementedError

    def predict(self, features: Floats) -> Floats:
        """Return the probabilities of any rows, by a fit to all rows."""
        raise NotImplementedError

    @cached_property
    def probabilities(self) -> Floats:
        """The probabilities of the rows at their own features."""
        return self.probabilities_at(self.regressors.features)

    def influence(self, gradient: Callable[[Regressors, RegressionBasis], Floats]) -> Floats | None:
        """Return the influence of each row on a quantity through the fit; None if unknown.

        ``gradient`` returns the derivative of the quantity with respect to the coefficients.
        """
        return None


class RidgeLogistic(CrossFit):
    """The default regression: ridge logistic."""

    def __init__(self, regressors: Regressors, y: Floats) -> None:
        super().__init__(regressors, y)
        count, positive = regressors.sum_by_fold(np.ones(len(y))), regressors.sum_by_fold(y)
        fitted = regressors.columns.cross_fit(count, positive, PENALTIES, regressors.call)
        self.losses, best, self.coef_by_fold, self.coef, self.hessian = fitted
        self.penalty = PENALTIES[best]

    def probabilities_at(self, features: Floats) -> Floats:
        """Return the cross-fitted probabilities of the rows, with other features.

        ``features`` replaces the distinct feature rows, in their order.
        """
        columns = self.regressors.basis.columns(features)
        scores = columns.scores(self.coef_by_fold, self.regressors.call)
        return self.regressors.of_rows(_expit(scores))

    def predict(self, features: Floats) -> Floats:
        """Return the probabilities of any rows, by a fit to all rows."""
        columns = self.regressors.basis.columns(features)
        scores = columns.scores(np.ascontiguousarray(self.coef[None]), self.regressors.call)
        return np.ascontiguousarray(_expit(scores[0]))

    def influence(self, gradient: Callable[[Regressors, RegressionBasis], Floats]) -> Floats | None:
        """Return the influence of each row on a quantity, through the fit to all rows."""
        rows = self.regressors
        shrink = self.penalty * self.coef
        shrink[0] = 0.0
        direction = np.linalg.pinv(self.hessian) @ gradient(rows, rows.basis)
        score, along = rows.columns.scores(np.array([self.coef, direction]), rows.call)
        residual = self.y - _expit(score)[rows.distinct_of_row]
        return np.asarray(rows.n_rows * residual * along[rows.distinct_of_row] - shrink @ direction)


class EstimatorFit(CrossFit):
    """A cross-fit by copies of an estimator with `fit` and `predict_proba`."""

    def __init__(self, regressors: Regressors, y: Floats, estimator: Any) -> None:
        super().__init__(regressors, y)
        self.name, self.estimator = type(estimator).__name__, estimator
        positive = regressors.sum_by_fold(y)
        negative = regressors.sum_by_fold(1 - y)
        self.fits = [
            _learn(
                estimator,
                regressors.features,
                negative.sum(axis=0) - negative[fold],
                positive.sum(axis=0) - positive[fold],
            )
            for fold in range(regressors.n_folds)
        ]

    def probabilities_at(self, features: Floats) -> Floats:
        """Return the cross-fitted probabilities of the rows, with other features.

        ``features`` replaces the distinct feature rows, in their order.
        """
        predictions = np.array([fit(features) for fit in self.fits])
        return self.regressors.of_rows(np.clip(predictions, _CLIP, 1 - _CLIP))

    def predict(self, features: Floats) -> Floats:
        """Return the probabilities of any rows, by a fit to all rows."""
        rows = self.regressors
        counts = [rows.sum_by_distinct_row(1 - self.y), rows.sum_by_distinct_row(self.y)]
        predictions = _learn(self.estimator, rows.features, *counts)(features)
        return np.clip(predictions, _CLIP, 1 - _CLIP)


def _learn(
    estimator: Any, features: Floats, negative: Floats, positive: Floats
) -> Callable[[Floats], Floats]:
    """Fit a copy of an estimator to counts of both labels; return its prediction."""
    label_counts = [np.rint(count).astype(np.int64) for count in (negative, positive)]
    totals = [int(count.sum()) for count in label_counts]
    if not all(totals):
        share = totals[1] / max(sum(totals), 1)
        return lambda rows: np.full(len(rows), share)
    rows = np.concatenate([np.repeat(features, count, axis=0) for count in label_counts])
    fit = _copy(estimator)
    fit.fit(rows, np.repeat([0, 1], totals))
    return lambda rows: _predicted(fit, rows)


def _predicted(fit: Any, rows: Floats) -> Floats:
    """Return the probabilities of the label 1, checked."""
    probabilities = np.asarray(fit.predict_proba(rows), dtype=np.float64)
    shape = (len(rows), 2)
    if probabilities.shape != shape:
        raise DataError(
            f"nuisance ({type(fit).__name__}) returned probabilities of shape "
            f"{probabilities.shape}; accepted: {shape}, for the labels 0 and 1",
            argument="nuisance",
        )
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise DataError(
            f"nuisance ({type(fit).__name__}) returned numbers that are missing or outside 0 to 1. "
            "Use an estimator whose predict_proba returns probabilities.",
            argument="nuisance",
        )
    return np.asarray(probabilities[:, 1])


def _copy(estimator: Any) -> Any:
    """Return an unfitted clone of a scikit-learn estimator, or a deep copy of any other."""
    if hasattr(estimator, "get_params") and importlib.util.find_spec("sklearn") is not None:
        return importlib.import_module("sklearn.base").clone(estimator)
    return copy.deepcopy(estimator)


def check_estimator(estimator: Any) -> None:
    """Raise if an estimator cannot fit and predict."""
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


def fit_label_probability(
    features: Floats,
    label: Floats,
    count: Counts,
    *,
    n_folds: int,
    estimator: Any,
    call: _native.Call,
) -> Floats:
    """Return P(label = 1 | features) for each row of features, by one fit to the counted rows.

    Rows with a count of 0 are predicted too. If all labels are the same, so are the probabilities.
    """
    check_estimator(estimator)
    # The distinct rows of the caller also differ in their scores. Deal folds by features and label
    # only, so that rounding in a score does not change them.
    first, _, place = _native.distinct_rows(np.ascontiguousarray(features), call)
    distinct = np.ascontiguousarray(features[first])
    label_counts = np.bincount(2 * place.astype(np.int64) + (label > 0), count, 2 * len(distinct))
    cell, fold, dealt = deal_folds(np.rint(label_counts).astype(np.int64), n_folds)
    y = (cell % 2).astype(np.float64)
    share = float(dealt @ y) / float(dealt.sum())
    if share in (0.0, 1.0):
        return np.full(len(features), share)
    rows = Regressors.from_features(distinct[cell // 2], dealt, fold, call)
    if estimator is None:
        probabilities = RidgeLogistic(rows, y).predict(distinct)
    else:
        probabilities = _learn(
            estimator, rows.features, rows.sum_by_distinct_row(1 - y), rows.sum_by_distinct_row(y)
        )(distinct)
    return np.ascontiguousarray(probabilities[place])


def _expit(score: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.clip(1 / (1 + np.exp(-score)), _CLIP, 1 - _CLIP)


def deal_folds(count: Counts, n_folds: int) -> tuple[Counts, Counts, Floats]:
    """Deal rows into folds in turn; ``count`` is the number of rows of each distinct row.

    Returns parallel arrays of distinct row, fold and count, for all pairs with rows.
    """
    start = np.cumsum(count) - count
    distinct_rows, folds, counts = [], [], []
    for fold in range(n_folds):
        # Of the rows start .. start + count - 1, those whose number is fold modulo n_folds.
        in_fold = (start + count - 1 - fold) // n_folds - (start - 1 - fold) // n_folds
        with_rows = np.flatnonzero(in_fold)
        distinct_rows.append(with_rows)
        folds.append(np.full(len(with_rows), fold))
        counts.append(in_fold[with_rows])
    return (
        np.concatenate(distinct_rows),
        np.concatenate(folds),
        np.concatenate(counts).astype(np.float64),
    )
