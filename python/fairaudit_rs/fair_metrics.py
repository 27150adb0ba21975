"""Fair metrics: how far apart two people are, when differences that must not count cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate
from ._columns import Coded, Column, column_array
from ._distances import finite_array, positions_of, read_features
from .errors import ArgumentError, ArgumentTypeError, DataError

__all__ = ["FairMetric"]

#: Singular values below this share of the largest are rank that is not there.
_RANK = 1e-10
#: Eigenvalues closer than this share of the largest are one.
_EQUAL = 1e-12
#: Whole numbers with more distinct values than this are numbers, not categories.
_MOST_CLASSES = 10
_MAX_ITERATIONS = 200

Floats: TypeAlias = NDArray[np.float64]
#: Value, gradient and Hessian at a point.
_Objective: TypeAlias = Callable[[Floats], tuple[float, Floats, Floats]]


@dataclass(frozen=True, repr=False, eq=False)
class FairMetric:
    """The squared fair distance (x - x')' D (x - x') of two rows.

    Made by `subspace`, `directions`, `mahalanobis` or `matrix`.

    Attributes
    ----------
    kind : str
        Where D comes from, for people.
    n_features : int
        Number of features.
    rank : int
        Of D: the number of directions that cost something.
    """

    kind: str
    n_features: int
    #: Eigenvalues of D with their eigenvectors (columns) ...
    _eigenvalues: Floats
    _eigenvectors: Floats
    #: ... and the eigenvalue of all directions orthogonal to these.
    _rest: float = 0.0

    @classmethod
    def directions(cls, V: ArrayLike) -> FairMetric:
        """Return the metric under which some directions cost nothing.

        Parameters
        ----------
        V : array-like of shape (n_directions, n_features)
            One direction per row; only their span counts.

        Returns
        -------
        FairMetric
            D = I - Q Q', the columns of Q being an orthonormal basis of the span.

        Examples
        --------
        >>> metric = FairMetric.directions([[0.0, 2.0]])
        >>> metric.D
        array([[1., 0.],
               [0., 0.]])
        """
        rows = finite_array("V", np.atleast_2d(np.asarray(V)), 2)
        basis = _span(rows)
        if not basis.shape[1]:
            raise ArgumentError("V holds zeros only; accepted: at least one direction")
        count = f"{basis.shape[1]} direction{'s' * (basis.shape[1] > 1)} at no cost"
        return cls(count, rows.shape[1], np.zeros(basis.shape[1]), basis, 1.0)

    @classmethod
    def subspace(
        cls,
        X: Any,
        protected: Any = None,
        *,
        features: Any = None,
        given: ArrayLike | None = None,
        C: float = 1.0,
    ) -> FairMetric:
        """Return the metric under which what tells protected groups apart costs nothing.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Rows to learn the sensitive directions from; they need not be those that are audited.
        protected : column, mapping, frame or sequence of columns, optional
            Protected attributes of these rows. Each is regressed on X: two values by logistic
            regression, text and whole numbers with up to ten values by softmax regression, other
            numbers by least squares. The coefficients are the sensitive directions.
        features : names or positions of columns of X, optional
            Features that are themselves protected: changing them costs nothing.
        given : array-like of shape (n_directions, n_features), optional
            Further directions at no cost.
        C : float
            Inverse strength of the ridge penalty of the regressions, as in scikit-learn; it
            makes the answer exist for separable groups.

        Returns
        -------
        FairMetric
            D = I minus the projection on the sensitive directions.

        Notes
        -----
        The regressions are fitted to convergence, so the metric belongs to the data and not to a
        solver. Their penalty depends on the units of the features, which are taken as they are.
        The audit value is sensitive to this fit; see the `fair_metric` of `individual_test`.
        """
        strength = _validate.positive("C", C)
        rows, names = read_features(X)
        attributes = _attributes(protected, len(rows))
        found = [_directions_of(rows, name, column, strength) for name, column in attributes]
        if features is not None:
            places = positions_of("features", features, names, rows.shape[1])
            found.append(np.eye(rows.shape[1])[places])
        if given is not None:
            more = finite_array("given", np.atleast_2d(np.asarray(given)), 2)
            if more.shape[1] != rows.shape[1]:
                raise ArgumentError(
                    f"given has {more.shape[1]} columns; accepted: the {rows.shape[1]} of X"
                )
            found.append(more)
        if not found:
            raise ArgumentTypeError(
                "protected is None; accepted: protected attributes, or features or given directions"
            )
        basis = _span(np.concatenate(found))
        count = f"{basis.shape[1]} direction{'s' * (basis.shape[1] != 1)} at no cost"
        called = [name for name, _ in attributes if name]
        kind = f"sensitive subspace{' of ' + ', '.join(called) if called else ''}: {count}"
        return cls(kind, rows.shape[1], np.zeros(basis.shape[1]), basis, 1.0)

    @classmethod
    def mahalanobis(cls, S: ArrayLike) -> FairMetric:
        """Return the Mahalanobis metric D = S^-1 of a covariance matrix S.

        Parameters
        ----------
        S : array-like of shape (n_features, n_features)
            Symmetric and positive definite, such as ``np.cov(X, rowvar=False)``: moving is cheap
            where the data vary a lot.

        Returns
        -------
        FairMetric
            The metric.
        """
        matrix = _symmetric("S", S)
        values, vectors = np.linalg.eigh(matrix)
        if not values[0] > _EQUAL * values[-1]:
            raise ArgumentError(
                f"S has the eigenvalue {values[0]:.3g}; accepted: a covariance matrix of full rank"
            )
        return cls("Mahalanobis", len(values), 1 / values[::-1], vectors[:, ::-1])

    @classmethod
    def matrix(cls, D: ArrayLike) -> FairMetric:
        """Return the metric of a matrix.

        Parameters
        ----------
        D : array-like of shape (n_features, n_features)
            Symmetric and positive semidefinite.

        Returns
        -------
        FairMetric
            The metric.
        """
        matrix = _symmetric("D", D)
        values, vectors = np.linalg.eigh(matrix)
        if values[0] < -_EQUAL * np.abs(values).max():
            raise ArgumentError(
                f"D has the eigenvalue {values[0]:.3g}; accepted: a positive semidefinite matrix"
            )
        return cls("given matrix", len(values), np.maximum(values, 0.0), vectors)

    def __repr__(self) -> str:
        return f"FairMetric({self.kind}; {self.n_features} features, rank {self.rank})"

    @property
    def rank(self) -> int:
        """The number of directions that cost something."""
        zero = int((self._eigenvalues <= _EQUAL * self.largest_eigenvalue).sum())
        rest = self.n_features - len(self._eigenvalues) if self._rest > 0 else 0
        return len(self._eigenvalues) - zero + rest

    @property
    def largest_eigenvalue(self) -> float:
        """The largest eigenvalue of D, which limits the steps of a flow."""
        largest = float(self._eigenvalues.max(initial=0.0))
        beyond = len(self._eigenvalues) < self.n_features
        return max(largest, self._rest) if beyond else largest

    @property
    def D(self) -> Floats:  # noqa: N802
        """The matrix."""
        Q = self._eigenvectors
        rest = self._rest * (np.eye(self.n_features) - Q @ Q.T)
        matrix = (Q * self._eigenvalues) @ Q.T + rest
        return np.asarray((matrix + matrix.T) / 2)

    def squared_distance(self, X: ArrayLike, other: ArrayLike) -> Floats:
        """Return the squared fair distance of every row of X to that of another array.

        Parameters
        ----------
        X, other : array-like of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Squared distances.
        """
        change = np.atleast_2d(np.asarray(X, dtype=np.float64) - np.asarray(other))
        if change.ndim != 2 or change.shape[1] != self.n_features:
            raise ArgumentError(
                f"X has shape {np.shape(X)}; accepted: rows of {self.n_features} features"
            )
        return np.asarray(np.einsum("ij,jk,ik->i", change, self.D, change))

    def split(self, vector: Floats) -> tuple[Floats, Floats]:
        """Return the eigenvalues of D, and the part of a vector in the space of each (rows)."""
        values, parts = [], []
        place = 0
        scale = _EQUAL * self.largest_eigenvalue
        while place < len(self._eigenvalues):
            close = np.abs(self._eigenvalues[place:] - self._eigenvalues[place]) <= scale
            end = place + int(close.argmin() if not close.all() else len(close))
            Q = self._eigenvectors[:, place:end]
            values.append(float(self._eigenvalues[place:end].mean()))
            parts.append(Q @ (Q.T @ vector))
            place = end
        if len(self._eigenvalues) < self.n_features:
            values.append(self._rest)
            parts.append(vector - sum(parts, np.zeros(len(vector))))
        kept = [k for k, part in enumerate(parts) if part.any()]
        return np.array(values)[kept], np.array(parts).reshape(-1, len(vector))[kept]


def _span(rows: Floats) -> Floats:
    """Return an orthonormal basis (columns) of the span of the rows."""
    length = np.linalg.norm(rows, axis=1)
    unit = rows[length > 0] / length[length > 0, None]
    if not len(unit):
        return np.zeros((rows.shape[1], 0))
    _, size, basis = np.linalg.svd(unit, full_matrices=False)
    return np.ascontiguousarray(basis[size > _RANK * size[0]].T)


def _symmetric(name: str, value: ArrayLike) -> Floats:
    matrix = finite_array(name, np.atleast_2d(np.asarray(value)), 2)
    if matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(f"{name} has shape {matrix.shape}; accepted: a square matrix")
    if np.abs(matrix - matrix.T).max() > _EQUAL * np.abs(matrix).max():
        raise ArgumentError(f"{name} is not symmetric; accepted: a symmetric matrix")
    return np.asarray((matrix + matrix.T) / 2)


def _attributes(protected: Any, n_rows: int) -> list[tuple[str, Column]]:
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


def _directions_of(rows: Floats, name: str, column: Column, C: float) -> Floats:
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
