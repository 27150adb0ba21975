"""Sensitive directions: coefficients of the regressions of protected attributes on features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._columns import Coded, Column, column_array
from .errors import ArgumentTypeError, DataError

#: Whole numbers with more distinct values than this are numbers, not categories.
_MOST_CLASSES = 10
_MAX_ITERATIONS = 200

Floats: TypeAlias = NDArray[np.float64]
#: Value, gradient and Hessian at a point.
_Objective: TypeAlias = Callable[[Floats], tuple[float, Floats, Floats]]


def attributes_of(protected: Any, n_rows: int) -> list[tuple[str, Column]]:
    """Return the protected attributes with their names ("" where they have none)."""
    if protected is None:
        return []
    columns: list[tuple[str, Any]]
    if isinstance(protected, Mapping):
        columns = [(str(name), column) for name, column in protected.items()]
    elif hasattr(protected, "columns") and not hasattr(protected, "shape"):
        raise ArgumentTypeError("protected is a lazy frame; accepted: columns, or a frame")
    elif hasattr(protected, "columns"):
        columns = [(str(name), protected[name]) for name in protected.columns]
    elif isinstance(protected, np.ndarray) and protected.ndim == 2:
        columns = [("", column) for column in protected.T]
    elif isinstance(protected, Sequence) and len(protected) and not _is_value(protected[0]):
        columns = [("", column) for column in protected]
    else:
        columns = [(str(getattr(protected, "name", None) or ""), protected)]
    read = []
    for name, column in columns:
        called = f"protected attribute {name!r}" if name else "protected"
        array = column_array(called, column)
        if len(array) != n_rows:
            raise DataError(f"{called} has {len(array):,} rows, X has {n_rows:,}")
        read.append((name, array))
    return read


def _is_value(value: Any) -> bool:
    return value is None or np.ndim(value) == 0


def directions_of(rows: Floats, name: str, column: Column, C: float) -> Floats:
    """Return the coefficients (rows) of the regression of an attribute on the features."""
    called = f"protected attribute {name!r}" if name else "protected"
    if isinstance(column, Coded):
        codes, kind = column.codes.astype(np.int64), "U"
        if len(codes) and codes.max() >= len(column.labels):
            raise DataError(f"{called} is missing in some rows; accepted: a value in every row")
    else:
        kind = column.dtype.kind
        if kind == "f" and not np.isfinite(column).all():
            raise DataError(f"{called} is not finite in some rows; accepted: finite numbers")
        codes = column
    levels, place = np.unique(codes, return_inverse=True)
    if len(levels) < 2:
        raise DataError(f"{called} has the same value in all rows; accepted: two values at least")
    if len(levels) == 2:
        return _logistic(rows, place == 1, C)[None]
    if kind in "USOb" or (kind in "iu" and len(levels) <= _MOST_CLASSES):
        return _softmax(rows, place, len(levels), C)
    centred = rows - rows.mean(axis=0)
    target = np.asarray(column, dtype=np.float64)
    return np.asarray(np.linalg.lstsq(centred, target - target.mean(), rcond=None)[0][None])


def _logistic(rows: Floats, positive: NDArray[np.bool_], C: float) -> Floats:
    """Return the coefficients of a ridge logistic regression; the intercept is not penalised."""
    Z = np.column_stack([rows, np.ones(len(rows))])
    ridge = np.append(np.full(rows.shape[1], 1 / C), 0.0)
    sign = np.where(positive, 1.0, -1.0)

    def objective(w: Floats) -> tuple[float, Floats, Floats]:
        margin = sign * (Z @ w)
        with np.errstate(over="ignore"):
            wrong = 1 / (1 + np.exp(margin))
        value = float(np.logaddexp(0.0, -margin).sum() + ridge @ w**2 / 2)
        curvature = Z.T @ (Z * (wrong * (1 - wrong))[:, None])
        return value, ridge * w - Z.T @ (sign * wrong), curvature + np.diag(ridge)

    return np.asarray(_newton(objective, np.zeros(Z.shape[1]), len(rows))[:-1])


def _softmax(rows: Floats, place: NDArray[np.intp], k: int, C: float) -> Floats:
    """Return the coefficients of a ridge softmax regression; the first intercept is 0."""
    n, p = rows.shape
    Z = np.column_stack([rows, np.ones(n)])
    # Coefficients and intercept of each class side by side; the first intercept is held at 0.
    ridge = np.tile(np.append(np.full(p, 1 / C), 0.0), k)
    free = np.delete(np.arange(k * (p + 1)), p)
    observed = np.eye(k)[place]

    def objective(w: Floats) -> tuple[float, Floats, Floats]:
        whole = np.zeros(k * (p + 1))
        whole[free] = w
        score = Z @ whole.reshape(k, p + 1).T
        score -= score.max(axis=1, keepdims=True)
        size = np.exp(score)
        total = size.sum(axis=1)
        share = size / total[:, None]
        loss = np.log(total) - score[np.arange(n), place]
        gradient = ((share - observed).T @ Z).ravel() + ridge * whole
        hessian = np.diag(ridge)
        for a in range(k):
            for b in range(a, k):
                weight = share[:, a] * ((a == b) - share[:, b])
                block = Z.T @ (Z * weight[:, None])
                at_a, at_b = (slice(c * (p + 1), (c + 1) * (p + 1)) for c in (a, b))
                hessian[at_a, at_b] += block
                if a != b:
                    hessian[at_b, at_a] += block
        value = float(loss.sum() + ridge @ whole**2 / 2)
        return value, gradient[free], hessian[np.ix_(free, free)]

    whole = np.zeros(k * (p + 1))
    whole[free] = _newton(objective, np.zeros(len(free)), n)
    return np.asarray(whole.reshape(k, p + 1)[:, :p])


def _newton(objective: _Objective, start: Floats, n_rows: int) -> Floats:
    """Return the minimum of a convex function, up to rounding."""
    point = start
    value, gradient, hessian = objective(point)
    for _ in range(_MAX_ITERATIONS):
        change = np.linalg.solve(hessian, gradient)
        share = 1.0
        while True:
            moved = objective(point - share * change)
            if moved[0] <= value or share < 1e-8:
                break
            share /= 2
        if moved[0] > value:
            break
        settled = bool(np.abs(change).max() <= 1e-13 * (1 + np.abs(point).max()))
        point = point - share * change
        value, gradient, hessian = moved
        if settled:
            break
    if np.abs(gradient).max() > 1e-6 * n_rows:
        raise DataError(
            "the regression of a protected attribute on X did not converge; accepted: features of "
            "comparable scales (standardise X), or given directions"
        )
    return point
