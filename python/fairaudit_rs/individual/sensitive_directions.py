"""Sensitive directions: coefficients of the regressions of protected attributes on features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..data.equality import Value
from ..errors import DataError
from ..interrupts import run_interruptibly

_MAX_ITERATIONS = 200
#: Singular values below this share of the largest are rank that is not there ...
_RANK = 1e-10
#: ... and above this share of them, looked at squared, all of it is.
_FULL_RANK = 1e-6
#: A column that varies by less than this share of its size is constant.
_CONSTANT = 1e-12

Floats: TypeAlias = NDArray[np.float64]
#: Value, gradient and Hessian at a point.
_Objective: TypeAlias = Callable[[Floats], tuple[float, Floats, Floats]]


@dataclass(frozen=True, eq=False)
class ProtectedAttribute(Value):
    """A protected attribute of some rows: the places of its values among its levels, or numbers."""

    name: str
    values: NDArray[Any]
    #: 0 for a number.
    n_levels: int

    @property
    def called(self) -> str:
        """The attribute, for messages."""
        return f"protected attribute {self.name!r}" if self.name else "protected"

    def of_rows(self, chosen: NDArray[np.intp]) -> ProtectedAttribute:
        """Return the attribute of some rows, with the levels that it has in all."""
        return replace(self, values=self.values[chosen])

    def directions(self, rows: Floats, C: float, space: Floats | None) -> Floats:
        """Return the coefficients (rows) of the regression of the attribute on the features.

        Where rows vary in a subspace only, of which the columns of ``space`` are an orthonormal
        basis, coefficients are of it: the shortest of all that fit as well. So they belong to
        the data, however what is redundant was coded.
        """
        if space is not None:
            inside = (rows - rows.mean(axis=0)) @ space
            return np.asarray(self.directions(inside, C, None) @ space.T)
        if self.n_levels == 0:
            centred = rows - rows.mean(axis=0)
            target = self.values - self.values.mean()
            found = run_interruptibly(lambda: np.linalg.lstsq(centred, target, rcond=None))
            return np.asarray(found[0][None])
        if len(np.unique(self.values)) < self.n_levels:
            raise DataError(
                f"{self.called} lacks a value in these rows; accepted: all of them",
                argument=self.called,
            )
        return _softmax(rows, self.values, self.n_levels, C)


def varying_space(rows: Floats) -> Floats | None:
    """Return an orthonormal basis (columns) of the space in which rows vary around their mean.

    None where no feature that varies is a sum of others and a constant: all is unique there.
    """
    centred = rows - rows.mean(axis=0)
    scale = rows.std(axis=0)
    varies = np.flatnonzero(scale > _CONSTANT * np.abs(rows).max(axis=0))
    scaled = centred[:, varies] / scale[varies]
    gram = scaled.T @ scaled / len(rows)
    if not len(varies) or np.linalg.eigvalsh(gram)[0] > _FULL_RANK * len(varies):
        return None
    # The singular values themselves: their squares would hide what is below 1e-8.
    triangle = run_interruptibly(lambda: np.linalg.qr(scaled, mode="r"))
    _, size, right = np.linalg.svd(triangle, full_matrices=True)
    rank = int((size > _RANK * size[0]).sum())
    if rank == len(varies):
        return None
    # What changes no score, in the units of the features; all that is orthogonal to it is inside.
    nothing = right[rank:] / scale[varies]
    inside = np.linalg.svd(nothing, full_matrices=True)[2][len(nothing) :]
    space = np.zeros((rows.shape[1], rank))
    space[varies] = inside.T
    return space


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
        reached = point - share * change
        if np.array_equal(reached, point):
            # Rounding: every further step would be this one again.
            break
        point = reached
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
