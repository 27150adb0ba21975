"""Sensitive directions: coefficients of the regressions of protected attributes on features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..data.columns import Coded, column_array
from ..errors import ArgumentTypeError, DataError

#: Whole numbers with more distinct values than this are numbers, not categories.
_MOST_CLASSES = 10
_MAX_ITERATIONS = 200
#: A column that varies by less than this share of its size is constant.
_CONSTANT = 1e-12

Floats: TypeAlias = NDArray[np.float64]
#: Value, gradient and Hessian at a point.
_Objective: TypeAlias = Callable[[Floats], tuple[float, Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Attribute:
    """A protected attribute of some rows: the places of its values among its levels, or numbers."""

    name: str
    values: NDArray[Any]
    #: 0 for a number.
    n_levels: int

    @property
    def called(self) -> str:
        """The attribute, for messages."""
        return f"protected attribute {self.name!r}" if self.name else "protected"

    def of_rows(self, chosen: NDArray[np.intp]) -> Attribute:
        """Return the attribute of some rows, with the levels that it has in all."""
        return replace(self, values=self.values[chosen])

    def directions(self, rows: Floats, C: float) -> Floats:
        """Return the coefficients (rows) of the regression of the attribute on the features."""
        if self.n_levels == 0:
            centred = rows - rows.mean(axis=0)
            target = self.values - self.values.mean()
            return np.asarray(np.linalg.lstsq(centred, target, rcond=None)[0][None])
        if len(np.unique(self.values)) < self.n_levels:
            raise DataError(f"{self.called} lacks a value in these rows; accepted: all of them")
        return _softmax(rows, self.values, self.n_levels, C)


def attributes_of(protected: Any, n_rows: int) -> list[Attribute]:
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
    return [_attribute(name, column, n_rows) for name, column in columns]


def _is_value(value: Any) -> bool:
    return value is None or np.ndim(value) == 0


def _attribute(name: str, given: Any, n_rows: int) -> Attribute:
    called = f"protected attribute {name!r}" if name else "protected"
    column = column_array(called, given)
    if len(column) != n_rows:
        raise DataError(f"{called} has {len(column):,} rows, X has {n_rows:,}")
    if isinstance(column, Coded):
        codes, kind = column.codes.astype(np.int64), "U"
        if len(codes) and codes.max() >= len(column.labels):
            raise DataError(f"{called} is missing in some rows; accepted: a value in every row")
    else:
        codes, kind = column, column.dtype.kind
        if kind == "f" and not np.isfinite(column).all():
            raise DataError(f"{called} is not finite in some rows; accepted: finite numbers")
    levels, place = np.unique(codes, return_inverse=True)
    if len(levels) < 2:
        raise DataError(f"{called} has the same value in all rows; accepted: two values at least")
    if len(levels) == 2 or kind in "USOb" or (kind in "iu" and len(levels) <= _MOST_CLASSES):
        return Attribute(name, place.ravel(), len(levels))
    return Attribute(name, np.asarray(column, dtype=np.float64), 0)


def _softmax(rows: Floats, place: NDArray[np.intp], k: int, C: float) -> Floats:
    """Return the coefficients of a ridge softmax regression, as differences from the first level.

    Coefficients of all levels have the ridge penalty, intercepts have none. A common shift of all
    changes the penalty alone: over it, that of the differences u is the least,
    |u|^2 - |sum u|^2 / k. With two levels this is logistic regression with half the penalty on
    its one coefficient, so C is halved there. Features are centred and counted in standard
    deviations meanwhile, which changes nothing but rounding.
    """
    n, p = rows.shape
    scale = rows.std(axis=0)
    scale = np.where(scale > _CONSTANT * np.abs(rows).max(axis=0), scale, 1.0)
    Z = np.column_stack([(rows - rows.mean(axis=0)) / scale, np.ones(n)])
    strength = C / 2 if k == 2 else C
    ridge = np.append(1 / (strength * scale**2), 0.0)
    shared = np.eye(k - 1) - 1 / k
    observed = np.eye(k)[place][:, 1:]

    def objective(w: Floats) -> tuple[float, Floats, Floats]:
        u = w.reshape(k - 1, p + 1)
        score = np.column_stack([np.zeros(n), Z @ u.T])
        score -= score.max(axis=1, keepdims=True)
        size = np.exp(score)
        total = size.sum(axis=1)
        share = size[:, 1:] / total[:, None]
        loss = np.log(total) - score[np.arange(n), place]
        pulled = shared @ (u * ridge)
        hessian: Floats = np.kron(shared, np.diag(ridge)).astype(np.float64)
        for a in range(k - 1):
            for b in range(a, k - 1):
                weight = share[:, a] * ((a == b) - share[:, b])
                block = Z.T @ (Z * weight[:, None])
                at_a, at_b = (slice(c * (p + 1), (c + 1) * (p + 1)) for c in (a, b))
                hessian[at_a, at_b] += block
                if a != b:
                    hessian[at_b, at_a] += block
        value = float(loss.sum() + (u * pulled).sum() / 2)
        gradient: Floats = ((share - observed).T @ Z + pulled).ravel()
        return value, gradient, hessian

    found = _newton(objective, np.zeros((k - 1) * (p + 1)), n)
    return np.asarray(found.reshape(k - 1, p + 1)[:, :p] / scale)


def _newton(objective: _Objective, start: Floats, n_rows: int) -> Floats:
    """Return the minimum of a convex function, up to rounding."""
    point = start
    value, gradient, hessian = objective(point)
    for _ in range(_MAX_ITERATIONS):
        try:
            change = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            raise _not_found() from None
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
        raise _not_found()
    return point


def _not_found() -> DataError:
    return DataError(
        "the regression of a protected attribute on X did not converge; accepted: features of "
        "comparable scales that do not repeat each other, or given directions"
    )
