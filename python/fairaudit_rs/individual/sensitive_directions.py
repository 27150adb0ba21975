"""Fits sensitive directions: the coefficients of protected attributes regressed on features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..data.equality import EqualByValue
from ..errors import DataError
from ..interrupts import run_interruptibly

_MAX_ITERATIONS = 200
#: Singular values below this share of the largest count as 0.
_RANK = 1e-10
#: If the smallest eigenvalue of the Gram matrix exceeds this share of the number of features, the
#: rank is full, and singular values are not computed.
_FULL_RANK = 1e-6
#: A column whose standard deviation is below this share of its size counts as constant.
CONSTANT_SHARE = 1e-12

Floats: TypeAlias = NDArray[np.float64]
#: Value, gradient and Hessian at a point.
_Objective: TypeAlias = Callable[[Floats], tuple[float, Floats, Floats]]


@dataclass(frozen=True, eq=False)
class ProtectedAttribute(EqualByValue):
    """The values of a protected attribute: level codes, or numbers."""

    name: str
    values: NDArray[Any]
    #: Number of levels; 0 if the attribute is numeric.
    n_levels: int

    @property
    def description(self) -> str:
        """The attribute as messages name it."""
        return f"protected attribute {self.name!r}" if self.name else "protected"

    def of_rows(self, chosen: NDArray[np.intp]) -> ProtectedAttribute:
        """Return the attribute of some rows, with all of its levels."""
        return replace(self, values=self.values[chosen])

    def directions(self, rows: Floats, C: float, space: Floats | None) -> Floats:
        """Return the coefficients (rows) of the regression of the attribute on the features.

        If rows vary only in a subspace, with the columns of ``space`` as orthonormal basis, the
        coefficients are those of least norm among all that fit equally well. They do not depend
        on how redundant columns were coded.
        """
        if space is not None:
            inside = (rows - rows.mean(axis=0)) @ space
            return np.asarray(self.directions(inside, C, None) @ space.T)
        if self.n_levels == 0:
            centred = rows - rows.mean(axis=0)
            target = self.values - self.values.mean()
            solution = run_interruptibly(lambda: np.linalg.lstsq(centred, target, rcond=None))
            return np.asarray(solution[0][None])
        if len(np.unique(self.values)) < self.n_levels:
            raise DataError(
                f"{self.description} has levels that do not occur in these rows. Choose rows in "
                "which every level occurs.",
                argument="protected",
            )
        return _softmax(rows, self.values, self.n_levels, C)


def varying_space(rows: Floats) -> Floats | None:
    """Return an orthonormal basis (columns) of the space in which rows vary around their mean.

    None if the varying features are linearly independent: the coefficients are then unique.
    """
    centred = rows - rows.mean(axis=0)
    scale = rows.std(axis=0)
    varies = np.flatnonzero(scale > CONSTANT_SHARE * np.abs(rows).max(axis=0))
    scaled = centred[:, varies] / scale[varies]
    gram = scaled.T @ scaled / len(rows)
    if not len(varies) or np.linalg.eigvalsh(gram)[0] > _FULL_RANK * len(varies):
        return None
    # Singular values, because their squares lose what is below 1e-8.
    triangle = run_interruptibly(lambda: np.linalg.qr(scaled, mode="r"))
    _, size, right = np.linalg.svd(triangle, full_matrices=True)
    rank = int((size > _RANK * size[0]).sum())
    if rank == len(varies):
        return None
    # Directions that change no score, in feature units; the space is their orthogonal complement.
    null_directions = right[rank:] / scale[varies]
    inside = np.linalg.svd(null_directions, full_matrices=True)[2][len(null_directions) :]
    space = np.zeros((rows.shape[1], rank))
    space[varies] = inside.T
    return space


def _softmax(rows: Floats, codes: NDArray[np.intp], k: int, C: float) -> Floats:
    """Return the coefficients of a ridge softmax regression, as differences from the first level.

    The ridge penalty applies to the coefficients of all levels, not to intercepts. Adding one
    vector to the coefficients of all levels changes the penalty only; its minimum over that vector,
    in terms of the differences u, is |u|^2 - |sum u|^2 / k. With two levels this is logistic
    regression with half the penalty on its one coefficient, so C is halved there. Features are
    standardised during the fit, which changes rounding only.
    """
    n, p = rows.shape
    scale = rows.std(axis=0)
    scale = np.where(scale > CONSTANT_SHARE * np.abs(rows).max(axis=0), scale, 1.0)
    Z = np.column_stack([(rows - rows.mean(axis=0)) / scale, np.ones(n)])
    strength = C / 2 if k == 2 else C
    ridge = np.append(1 / (strength * scale**2), 0.0)
    shared = np.eye(k - 1) - 1 / k
    observed = np.eye(k)[codes][:, 1:]

    def objective(w: Floats) -> tuple[float, Floats, Floats]:
        u = w.reshape(k - 1, p + 1)
        score = np.column_stack([np.zeros(n), Z @ u.T])
        score -= score.max(axis=1, keepdims=True)
        size = np.exp(score)
        total = size.sum(axis=1)
        probability = size[:, 1:] / total[:, None]
        loss = np.log(total) - score[np.arange(n), codes]
        ridge_gradient = shared @ (u * ridge)
        hessian: Floats = np.kron(shared, np.diag(ridge)).astype(np.float64)
        for a in range(k - 1):
            for b in range(a, k - 1):
                weight = probability[:, a] * ((a == b) - probability[:, b])
                block = Z.T @ (Z * weight[:, None])
                at_a, at_b = (slice(c * (p + 1), (c + 1) * (p + 1)) for c in (a, b))
                hessian[at_a, at_b] += block
                if a != b:
                    hessian[at_b, at_a] += block
        value = float(loss.sum() + (u * ridge_gradient).sum() / 2)
        gradient: Floats = ((probability - observed).T @ Z + ridge_gradient).ravel()
        return value, gradient, hessian

    minimum = _newton(objective, np.zeros((k - 1) * (p + 1)), n)
    return np.asarray(minimum.reshape(k - 1, p + 1)[:, :p] / scale)


def _newton(objective: _Objective, start: Floats, n_rows: int) -> Floats:
    """Return the minimum point of a convex function, up to rounding."""
    point = start
    value, gradient, hessian = objective(point)
    for _ in range(_MAX_ITERATIONS):
        try:
            change = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            raise _no_convergence() from None
        step = 1.0
        while True:
            moved = objective(point - step * change)
            if moved[0] <= value or step < 1e-8:
                break
            step /= 2
        if moved[0] > value:
            break
        is_small = bool(np.abs(change).max() <= 1e-13 * (1 + np.abs(point).max()))
        reached = point - step * change
        if np.array_equal(reached, point):
            # No progress in floating point.
            break
        point = reached
        value, gradient, hessian = moved
        if is_small:
            break
    if np.abs(gradient).max() > 1e-6 * n_rows:
        raise _no_convergence()
    return point


def _no_convergence() -> DataError:
    return DataError(
        "the regression of a protected attribute on X did not converge. Bring the features to "
        "comparable scales and remove redundant ones, or pass the sensitive directions as given=.",
        argument="protected",
        mentions=("given",),
    )
