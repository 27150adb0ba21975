"""`FairMetric`: the distance between two people, in which protected differences cost nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import arguments
from ..arguments import finite_array
from ..data.columns import list_some
from ..data.equality import EqualByValue
from ..data.row_keys import content_order
from ..errors import ArgumentError, ArgumentTypeError, ColumnError
from ..report.notes import Note
from .question import attributes_of, chosen_features, chosen_rows, read_rows, scaled_features
from .sensitive_directions import CONSTANT_SHARE, ProtectedAttribute, varying_space

#: Singular values below this share of the largest count as 0.
_RANK = 1e-10
#: Eigenvalues that differ by less than this share of the largest count as equal.
_EQUAL_EIGENVALUES = 1e-12
#: The largest eigenvalue of covariances and metrics must lie between this and its inverse, so that
#: squares and inverses neither overflow nor underflow.
_SMALLEST_EIGENVALUE = 1e-100

Floats: TypeAlias = NDArray[np.float64]
Positions: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, repr=False, eq=False)
class FairMetric(EqualByValue):
    """The squared fair distance (x - x')' D (x - x') of two rows.

    Made by `subspace`, `directions`, `mahalanobis` or `matrix`. The gradient flow of
    `individual_test` runs in the units of the metric: features divided by `units`.

    Attributes
    ----------
    kind : str
        Description of how D was made.
    n_features : int
        Number of features.
    rank : int
        Rank of D: the number of directions with a cost.
    units : ndarray of shape (n_features,)
        The unit of each feature: 1, or its standard deviation.
    feature_names : tuple of str or None
        Names of the features if the metric was learned from a frame; other rows are then read by
        name. Without names, features are in the order of the model.
    notes : tuple of Note
        Remarks on the fit, which results repeat.
    """

    kind: str
    n_features: int
    #: Eigenvalues of D in its units, with their eigenvectors (columns) ...
    _eigenvalues: Floats
    _eigenvectors: Floats
    #: ... and the eigenvalue of all directions orthogonal to these.
    _rest: float
    units: Floats
    #: Names of the features, if the metric was learned from named columns.
    feature_names: tuple[str, ...] | None = None
    #: The rows and options of the fit, with which it can be repeated.
    _fit: _SubspaceFit | None = None
    #: Remarks on the fit.
    notes: tuple[Note, ...] = ()

    @classmethod
    def directions(cls, V: ArrayLike) -> FairMetric:
        """Return a metric in which some directions cost nothing.

        Parameters
        ----------
        V : array-like of shape (n_directions, n_features)
            One direction per row; only their span matters.

        Returns
        -------
        FairMetric
            D = I - Q Q', where the columns of Q are an orthonormal basis of the span.

        Examples
        --------
        >>> metric = FairMetric.directions([[0.0, 2.0]])
        >>> metric.D
        array([[1., 0.],
               [0., 0.]])
        """
        rows = finite_array("V", _as_two_dimensional("V", V), 2)
        basis = _basis_of_span(rows)
        if not basis.shape[1]:
            raise ArgumentError(
                "V holds zeros only. Pass at least one direction that is not 0.", argument="V"
            )
        count = f"{basis.shape[1]} direction{'s' * (basis.shape[1] > 1)} at no cost"
        return cls._free(count, basis, np.ones(rows.shape[1]))

    @classmethod
    def _free(cls, kind: str, basis: Floats, units: Floats) -> FairMetric:
        """Return a metric in which a subspace costs nothing."""
        return cls(kind, len(units), np.zeros(basis.shape[1]), basis, 1.0, units)

    @classmethod
    def subspace(
        cls,
        X: Any,
        protected: Any = None,
        *,
        features: Any = None,
        given: ArrayLike | None = None,
        C: float = 1.0,
        standardize: Any = False,
        fit_on: ArrayLike | None = None,
    ) -> FairMetric:
        """Return a metric in which differences between protected groups cost nothing.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Rows from which the sensitive directions are learned; other rows than the audited ones
            are fine.
        protected : column, mapping, frame or sequence of columns, optional
            Protected attributes of these rows. Each is regressed on X: two values by logistic
            regression, text and whole numbers with up to ten values by softmax regression, other
            numbers by least squares. The coefficients are the sensitive directions.
        features : names or positions of columns of X, optional
            Features that are themselves protected: changing them costs nothing. The name of a
            feature that was coded in several columns means all of them: ``"race"`` stands for
            ``"race_black"`` and ``"race=white"`` where there is no column ``"race"``.
        given : array-like of shape (n_directions, n_features), optional
            Further directions at no cost.
        C : float
            Inverse strength of the ridge penalty of the regressions, as in scikit-learn. The
            penalty makes the solution exist for separable groups.
        standardize : bool, or names or positions of columns of X
            Features that are measured in standard deviations in the regressions, the distance and
            the flow; True means all but indicators (columns of zeros and ones). Inputs and
            outputs keep their own units.
        fit_on : array-like of bool or int, optional
            The rows of X, by mask or position, on which the metric is fitted; all by default. The
            result is sensitive to the fit, and a metric learned from other rows than those
            audited does not depend on their noise.

        Returns
        -------
        FairMetric
            D = I minus the projection on the sensitive directions, in its units.

        Notes
        -----
        The regressions are fitted to convergence, so the metric depends on the data and not on a
        solver. Their penalty depends on the units of the features. If features are redundant
        (one-hot columns of all values of a feature), many coefficients fit equally well. Those of
        least norm are used, which do not depend on the order of the columns, and `notes` has a
        remark. All rows of X have the same weight, even if the audit weights them.
        """
        strength = arguments.positive("C", C)
        rows, names = read_rows(X)
        attributes = attributes_of(protected, len(rows))
        given_directions = None
        if given is not None:
            given_directions = finite_array("given", _as_two_dimensional("given", given), 2)
            if given_directions.shape[1] != rows.shape[1]:
                raise ArgumentError(
                    f"given has {given_directions.shape[1]} columns; accepted: the "
                    f"{rows.shape[1]} of X",
                    argument="given",
                )
            if not given_directions.any(axis=1).all():
                raise ArgumentError(
                    "given holds a row of zeros. Pass directions that are not 0.", argument="given"
                )
        free = (
            None
            if features is None
            else chosen_features("features", features, names, rows.shape[1])
        )
        if not attributes and free is None and given_directions is None:
            raise ArgumentTypeError(
                "protected is None, and so are features and given. Pass protected attributes, "
                "features or directions.",
                argument="protected",
                mentions=("features", "given"),
                code="missing-argument",
            )
        scaled = scaled_features(standardize, rows, names)
        if fit_on is not None:
            chosen = chosen_rows("fit_on", fit_on, len(rows))
            rows = rows[chosen]
            attributes = [attribute.of_rows(chosen) for attribute in attributes]
        return _SubspaceFit(
            rows=rows,
            attributes=attributes,
            free=free,
            given=given_directions,
            C=strength,
            scaled=scaled,
            feature_names=names,
        ).metric()

    @classmethod
    def mahalanobis(cls, S: ArrayLike) -> FairMetric:
        """Return the Mahalanobis metric D = S^-1 of a covariance matrix S.

        Parameters
        ----------
        S : array-like of shape (n_features, n_features)
            Symmetric and positive definite, such as ``np.cov(X, rowvar=False)``: moves in
            directions of large variance are cheap.

        Returns
        -------
        FairMetric
            The metric.
        """
        matrix = _symmetric("S", S)
        values, vectors = np.linalg.eigh(matrix)
        if not values[0] > _EQUAL_EIGENVALUES * values[-1]:
            raise ArgumentError(
                f"S has the eigenvalue {values[0]:.3g}; accepted: a covariance matrix of full rank",
                argument="S",
            )
        if not _SMALLEST_EIGENVALUE <= values[-1] <= 1 / _SMALLEST_EIGENVALUE:
            raise ArgumentError(
                f"S has the eigenvalue {values[-1]:.3g}, whose inverse is too large "
                f"or too small; accepted: a largest eigenvalue from {_SMALLEST_EIGENVALUE:g} to "
                f"{1 / _SMALLEST_EIGENVALUE:g} (features in other units)",
                argument="S",
            )
        ones = np.ones(len(values))
        reversed_vectors = np.ascontiguousarray(vectors[:, ::-1])
        return cls("Mahalanobis", len(values), 1 / values[::-1], reversed_vectors, 0.0, ones)

    @classmethod
    def matrix(cls, D: ArrayLike) -> FairMetric:
        """Return the metric with a given matrix.

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
        if values[0] < -_EQUAL_EIGENVALUES * np.abs(values).max():
            raise ArgumentError(
                f"D has the eigenvalue {values[0]:.3g}; accepted: a positive semidefinite matrix",
                argument="D",
            )
        largest = float(np.abs(values).max())
        if largest and not _SMALLEST_EIGENVALUE <= largest <= 1 / _SMALLEST_EIGENVALUE:
            raise ArgumentError(
                f"D has the eigenvalue {largest:.3g}; accepted: a largest eigenvalue of 0, or from "
                f"{_SMALLEST_EIGENVALUE:g} to {1 / _SMALLEST_EIGENVALUE:g} (features "
                f"in other units)",
                argument="D",
            )
        ones = np.ones(len(values))
        return cls("given matrix", len(values), np.maximum(values, 0.0), vectors, 0.0, ones)

    def __repr__(self) -> str:
        return f"FairMetric({self.kind}; {self.n_features} features, rank {self.rank})"

    @property
    def rank(self) -> int:
        """The number of directions with a cost."""
        zero = int((self._eigenvalues <= _EQUAL_EIGENVALUES * self.largest_eigenvalue).sum())
        rest = self.n_features - len(self._eigenvalues) if self._rest > 0 else 0
        return len(self._eigenvalues) - zero + rest

    @property
    def largest_eigenvalue(self) -> float:
        """The largest eigenvalue of D in its units, which limits the steps of a flow."""
        largest = float(self._eigenvalues.max(initial=0.0))
        beyond = len(self._eigenvalues) < self.n_features
        return max(largest, self._rest) if beyond else largest

    @property
    def D(self) -> Floats:  # noqa: N802
        """The matrix D for rows in their own units."""
        Q = self._eigenvectors
        rest = self._rest * (np.eye(self.n_features) - Q @ Q.T)
        matrix = ((Q * self._eigenvalues) @ Q.T + rest) / np.outer(self.units, self.units)
        return np.asarray(matrix / 2 + matrix.T / 2)

    def pulls(self, penalty: float) -> tuple[Floats, Floats, float]:
        """Return the eigenvalues times 2 penalty, the eigenvectors, and the same for the rest."""
        return 2 * penalty * self._eigenvalues, self._eigenvectors, 2 * penalty * self._rest

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
        first, second = (self._rows(name, given) for name, given in (("X", X), ("other", other)))
        if len(first) != len(second) and 1 not in (len(first), len(second)):
            raise ArgumentError(
                f"other has {len(second):,} rows, X has {len(first):,}; accepted: as many, or 1",
                argument="other",
            )
        change = first - second
        change = change / self.units
        along = (change @ self._eigenvectors) ** 2
        beyond = np.einsum("ij,ij->i", change, change) - along.sum(axis=1)
        return np.asarray(along @ self._eigenvalues + self._rest * np.maximum(beyond, 0.0))

    def _rows(self, name: str, value: Any) -> Floats:
        rows = value
        if np.ndim(value) == 1 and not hasattr(value, "columns"):
            rows = np.atleast_2d(np.asarray(value))
        if self.feature_names is not None and hasattr(value, "columns"):
            return read_rows(rows, self.n_features, self.feature_names).values
        values = read_rows(rows).values
        if values.shape[1] != self.n_features:
            raise ArgumentError(
                f"{name} has shape {values.shape}; accepted: rows of {self.n_features} features",
                argument=name,
            )
        return values

    def ordered(self, names: tuple[str, ...] | None) -> FairMetric:
        """Return the same metric with its features in the order of these names."""
        mine = self.feature_names
        if mine is None or names is None or mine == names:
            return self
        if sorted(mine) != sorted(names):
            raise ColumnError(
                f"fair_metric has the features {list_some(mine, 20)}; accepted: those of X and the "
                f"model, {list_some(names, 20)}",
                argument="fair_metric",
            )
        order = np.array([mine.index(name) for name in names], dtype=np.intp)
        return replace(
            self,
            _eigenvectors=np.ascontiguousarray(self._eigenvectors[order]),
            units=self.units[order],
            feature_names=names,
            _fit=None if self._fit is None else self._fit.ordered(order, names),
        )

    @property
    def fitted_rows(self) -> Floats | None:
        """The rows that the metric was fitted on; None if it was not fitted."""
        return None if self._fit is None else self._fit.rows

    def refit(self, chosen: Positions) -> FairMetric:
        """Fit the metric again on some of its rows, which may be repeated."""
        if self._fit is None:
            raise ArgumentError(
                f"fair_metric is {self!r}, which was not fitted on rows. Use a "
                "FairMetric.subspace with protected attributes.",
                argument="fair_metric",
            )
        return self._fit.take_rows(chosen).metric()

    def split(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Return the eigenvalues of D, and the projections of vectors on their eigenspaces.

        Vectors are gradients in the units of the rows; the projections are in those of the metric.
        """
        vectors = vectors * self.units
        values, parts = [], []
        start = 0
        tolerance = _EQUAL_EIGENVALUES * self.largest_eigenvalue
        while start < len(self._eigenvalues):
            close = np.abs(self._eigenvalues[start:] - self._eigenvalues[start]) <= tolerance
            # At least one eigenvalue at a time, so that the loop ends.
            end = start + max(int(close.argmin() if not close.all() else len(close)), 1)
            Q = self._eigenvectors[:, start:end]
            values.append(float(self._eigenvalues[start:end].mean()))
            parts.append((vectors @ Q) @ Q.T)
            start = end
        if len(self._eigenvalues) < self.n_features:
            values.append(self._rest)
            parts.append(vectors - sum(parts, np.zeros(vectors.shape)))
        nonzero = [k for k, part in enumerate(parts) if part.any()]
        return np.array(values)[nonzero], np.array(parts).reshape(-1, *vectors.shape)[nonzero]


@dataclass(frozen=True, eq=False, kw_only=True)
class _SubspaceFit(EqualByValue):
    """The rows and options for fitting a sensitive subspace."""

    rows: Floats
    attributes: list[ProtectedAttribute]
    #: Features at no cost.
    free: Positions | None
    given: Floats | None
    C: float
    #: Features that are measured in standard deviations.
    scaled: Positions
    feature_names: tuple[str, ...] | None

    def take_rows(self, chosen: Positions) -> _SubspaceFit:
        """Return the fit on some rows."""
        attributes = [attribute.of_rows(chosen) for attribute in self.attributes]
        return replace(self, rows=self.rows[chosen], attributes=attributes)

    def ordered(self, order: Positions, names: tuple[str, ...]) -> _SubspaceFit:
        """Return the fit with its features in another order."""
        inverse = np.argsort(order)
        return replace(
            self,
            rows=self.rows[:, order],
            free=None if self.free is None else inverse[self.free],
            given=None if self.given is None else self.given[:, order],
            scaled=inverse[self.scaled],
            feature_names=names,
        )

    def metric(self) -> FairMetric:
        """Return the metric of these rows, which does not depend on their order."""
        values = [attribute.values for attribute in self.attributes]
        # Sums depend on the order of the rows through rounding.
        ordered = self.take_rows(content_order([*self.rows.T, *values]))
        n_features = self.rows.shape[1]
        units = np.ones(n_features)
        deviation = ordered.rows[:, self.scaled].std(axis=0)
        size = np.abs(ordered.rows[:, self.scaled]).max(axis=0)
        units[self.scaled] = np.where(deviation > CONSTANT_SHARE * size, deviation, 1.0)
        rows = ordered.rows / units if len(self.scaled) else ordered.rows
        space = varying_space(rows) if self.attributes else None
        directions = [attribute.directions(rows, self.C, space) for attribute in ordered.attributes]
        if self.free is not None:
            directions.append(np.eye(n_features)[self.free])
        if self.given is not None:
            directions.append(self.given / units)
        basis = _basis_of_span(np.concatenate(directions))
        count = f"{basis.shape[1]} direction{'s' * (basis.shape[1] != 1)} at no cost"
        attributes = [attribute.name for attribute in self.attributes if attribute.name]
        source = " of " + ", ".join(attributes) if attributes else ""
        kind = f"sensitive subspace{source}: {count}"
        metric = replace(
            FairMetric._free(kind, basis, units),
            feature_names=self.feature_names,
            notes=() if space is None else (_redundancy_note(rows, space),),
        )
        return replace(metric, _fit=self) if self.attributes else metric


def _redundancy_note(rows: Floats, space: Floats) -> Note:
    """Return the note that the coefficients are not unique, and which ones were chosen."""
    n_varying = int((np.ptp(rows, axis=0) > 0).sum())
    return Note(
        "features-repeat-each-other",
        f"the features of the fair metric repeat each other: the {n_varying:,} that vary have rank "
        f"{space.shape[1]:,}, as one-hot columns of all values have, so that several sensitive "
        "directions fit the protected attributes equally well; the one of least norm is taken",
    )


def _basis_of_span(rows: Floats) -> Floats:
    """Return an orthonormal basis (columns) of the span of the rows."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    unit = rows[largest > 0] / largest[largest > 0, None]
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    if not len(unit):
        return np.zeros((rows.shape[1], 0))
    _, size, basis = np.linalg.svd(unit, full_matrices=False)
    return np.ascontiguousarray(basis[size > _RANK * size[0]].T)


def _as_two_dimensional(name: str, value: ArrayLike) -> NDArray[Any]:
    """Return an array with two dimensions; a vector becomes a single row."""
    try:
        return np.atleast_2d(np.asarray(value))
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{name} is no array of numbers: {error}", argument=name) from None


def _symmetric(name: str, value: ArrayLike) -> Floats:
    matrix = finite_array(name, _as_two_dimensional(name, value), 2)
    if matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(
            f"{name} has shape {matrix.shape}; accepted: a square matrix", argument=name
        )
    if np.abs(matrix - matrix.T).max() > _EQUAL_EIGENVALUES * np.abs(matrix).max():
        raise ArgumentError(f"{name} is not symmetric. Pass a symmetric matrix.", argument=name)
    return np.asarray(matrix / 2 + matrix.T / 2)
