"""`KernelModel`: scores that are sums of kernels, and distances in the space of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import arguments
from ..arguments import finite_array
from ..data.equality import EqualByValue
from ..data.features import names_of, read_features
from ..errors import ArgumentError, DataError
from ..literals import KernelName, Link
from .binary import BinaryModel, intercept_of
from .distances import EPSILON, Distances

KERNELS: tuple[KernelName, ...] = get_args(KernelName)

#: Maximum number of entries of a kernel matrix in memory.
_BLOCK = 1 << 21
#: Maximum number of Newton steps, and of bisections, to find a boundary point.
_NEWTON_STEPS = 50
_HALVINGS = 53

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelFunction(EqualByValue):
    """k(z_j, x) for points z_j: a function of the product of z and x, or of their distance."""

    support_vectors: Floats
    name: str
    gamma: float
    degree: int
    coef0: float

    @cached_property
    def centre(self) -> Floats:
        """The centre that is subtracted from all rows."""
        # rbf depends on differences only, which round least near 0; the median ignores outliers.
        centre = np.median(self.support_vectors, axis=0) if self.name == "rbf" else 0.0
        return np.broadcast_to(centre, self.support_vectors.shape[1:])

    @cached_property
    def points(self) -> Floats:
        """The centred support vectors."""
        return np.asarray(self.support_vectors - self.centre)

    @cached_property
    def squares(self) -> Floats:
        """The squared lengths of the centred support vectors."""
        return np.asarray(np.einsum("ij,ij->i", self.points, self.points))

    def of_centred(self, rows: Floats) -> Floats:
        """Return k(row, support vector) of centred rows."""
        products: Floats = rows @ self.points.T
        if self.name == "linear":
            return products
        if self.name == "polynomial":
            products *= self.gamma
            products += self.coef0
            return _power(products, self.degree)
        products *= 2
        products -= self.squares
        products -= np.einsum("ij,ij->i", rows, rows)[:, None]
        np.minimum(products, 0.0, out=products)
        products *= self.gamma
        return np.exp(products, out=products)


@dataclass(frozen=True, eq=False)
class KernelScores(EqualByValue):
    """Scores that are sums of kernels at the same support vectors, with coefficients each."""

    kernel: KernelFunction
    dual_coef: Floats
    intercepts: Floats

    @property
    def n_scores(self) -> int:
        """The number of scores of a row."""
        return len(self.dual_coef)

    @property
    def n_features(self) -> int | None:
        """The number of features of a row; None if it can be any."""
        return int(self.kernel.support_vectors.shape[1])

    def score_rows(self, rows: Floats) -> Floats:
        """Return the scores of rows, one column per score."""
        scores = np.empty((len(rows), self.n_scores))
        for part in _parts(len(rows), self.dual_coef.shape[1]):
            centred = rows[part] - self.kernel.centre
            scores[part] = self.kernel.of_centred(centred) @ self.dual_coef.T
        return np.asarray(scores + self.intercepts)


class KernelModel(BinaryModel):
    """A score that is a sum of kernels: support vector machine, kernel ridge, kernel logistic.

    The score is ``f(x) = sum_i dual_coef[i] k(support_vectors[i], x) + intercept``.

    Parameters
    ----------
    support_vectors : array-like of shape (n_support, n_features)
        The points of the kernels.
    dual_coef : array-like of shape (n_support,)
        Their coefficients alpha, with their sign; shape (1, n_support) is accepted too.
    intercept : float
        Added to the score.
    kernel : {"rbf", "polynomial", "linear"}
        ``exp(-gamma |x - z|^2)``, ``(gamma x.z + coef0)^degree``, or ``x.z``.
    gamma : float
        Above 0.
    degree : int
        Degree of the polynomial.
    coef0 : float
        Constant of the polynomial, at least 0.
    threshold : float, optional
        Rows that reach it get decision 1. By default 0 (the margin of an SVM), or probability
        0.5 with link ``"logit"``.
    link : {"auto", "logit", "identity"}
        As for `LinearModel`: ``"auto"`` takes ``"logit"`` when a threshold strictly between 0
        and 1 is given, ``"identity"`` otherwise.
    feature_names : sequence of str, optional
        Names of the features. With names, the columns of a frame are chosen by name.

    Notes
    -----
    `predict_proba` is for scores that are log-odds (kernel logistic regression, link
    ``"logit"``). It raises for the margin of an SVM and the value of kernel ridge, which are not
    log-odds.

    Examples
    --------
    >>> model = KernelModel([[0.0], [2.0]], [1.0, -1.0], kernel="rbf", gamma=0.5)
    >>> model.distance([[0.0], [1.0]]).values.round(5)
    array([0.65752, 0.     ])
    """

    scores: KernelScores

    def __init__(
        self,
        support_vectors: ArrayLike,
        dual_coef: ArrayLike,
        intercept: float = 0.0,
        kernel: KernelName = "rbf",
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        threshold: float | None = None,
        *,
        link: Link = "auto",
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.support_vectors = finite_array("support_vectors", support_vectors, 2)
        shape = np.shape(dual_coef)
        if len(shape) == 2 and shape[0] == 1:
            dual_coef = np.asarray(dual_coef)[0]
        self.dual_coef = finite_array("dual_coef", dual_coef, 1)
        if len(self.dual_coef) != len(self.support_vectors):
            raise ArgumentError(
                f"dual_coef has {len(self.dual_coef)} numbers; accepted: one for each of the "
                f"{len(self.support_vectors)} support vectors",
                argument="dual_coef",
            )
        self.intercept = intercept_of(intercept)
        self.kernel = arguments.choice("kernel", kernel, KERNELS)
        self.gamma = arguments.positive("gamma", gamma)
        self.degree = arguments.count("degree", degree, 1, 100)
        self.coef0 = arguments.at_least_0("coef0", coef0)
        self.feature_names = names_of(feature_names, self.support_vectors.shape[1])
        self._decide_by(threshold, link)
        self._basis = KernelFunction(
            support_vectors=self.support_vectors,
            name=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
        )
        self.scores = KernelScores(self._basis, self.dual_coef[None], np.array([self.intercept]))

    def __repr__(self) -> str:
        return (
            f"KernelModel({len(self.dual_coef):,} support vectors, kernel={self.kernel!r}, "
            f"threshold={self.threshold:g}, link={self.link!r})"
        )

    def decision_function(self, X: Any) -> Floats:
        """Return ``sum_i dual_coef[i] k(support_vectors[i], x) + intercept`` of every row."""
        rows = read_features(X, self.support_vectors.shape[1], self.feature_names).values
        return self._score(rows)

    def distance(self, X: Any) -> Distances:
        """Return the distance of every row to the decision boundary in the kernel's space.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        Distances
            Infinite when the score is constant.

        Notes
        -----
        The cost is ``|phi(x) - phi(x')| = sqrt(k(x, x) - 2 k(x, x') + k(x', x'))`` with phi
        the feature map of the kernel, the square root of equation (3b) of [1]_, and

            d(x) = |f(x) - boundary| / sqrt(alpha' K alpha).

        The square, as printed there, would give Phi an infinite density at the boundary, which
        breaks Assumption 1. This is the distance to the hyperplane in the space of the kernel.
        Not every point of that space is the image of a row, so it is a lower bound of the cost
        of moving a row. With the linear kernel it is the distance of `LinearModel` with norm l2.

        `Distances.moved` therefore finds a boundary point for the rows themselves: Newton
        steps along the gradient of f or, where they fail, the segment to the nearest support
        vector on the other side, then bisection towards the boundary. The point shows a change
        that flips the decision; its cost is not the distance. NaN where none was found.

        References
        ----------
        .. [1] N. Si, K. Murthy, J. Blanchet, V. A. Nguyen, "Testing Group Fairness via Optimal
           Transport Projections", ICML 2021, section 3.1.
        """
        rows, names = read_features(X, self.support_vectors.shape[1], self.feature_names)
        score = self._score(rows)
        margin = np.abs(score - self.boundary)
        values = margin / self.norm if self.norm > 0 else np.full(len(rows), np.inf)
        return Distances(
            values,
            score >= self.boundary,
            f"{self.kernel} kernel",
            feature_names=names,
            move=partial(_move_rows, self, rows),
        )

    @cached_property
    def norm(self) -> float:
        """``sqrt(alpha' K alpha)``: the norm of the score in the space of the kernel."""
        alpha = self.dual_coef
        if not alpha.any():
            return 0.0
        total = sum(
            float(alpha[part] @ (self._basis.of_centred(self._basis.points[part]) @ alpha))
            for part in _parts(len(alpha), len(alpha))
        )
        diagonal = np.ones(len(alpha))
        if self.kernel == "polynomial":
            diagonal = (self.gamma * self._basis.squares + self.coef0) ** self.degree
        elif self.kernel == "linear":
            diagonal = self._basis.squares
        size = float(np.abs(alpha) @ np.sqrt(diagonal)) ** 2
        if not total > 4 * EPSILON * size:
            raise DataError(
                f"dual_coef cancel: alpha' K alpha is {total:.3g} beside terms of {size:.3g}, "
                "which is lost in rounding. Refit the model with a larger ridge penalty, so that "
                "its score varies.",
                argument="dual_coef",
            )
        return float(np.sqrt(total))

    def _score(self, rows: Floats) -> Floats:
        score = np.empty(len(rows))
        for part in _parts(len(rows), len(self.dual_coef)):
            score[part] = self._basis.of_centred(rows[part] - self._basis.centre) @ self.dual_coef
        return score + self.intercept

    def _margin(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the margins of some rows, and bounds of their rounding errors."""
        centred = rows - self._basis.centre
        kernel = self._basis.of_centred(centred)
        margin = kernel @ self.dual_coef + (self.intercept - self.boundary)
        # A product of rows x and z rounds by |x| |z|, which the slope of the kernel scales.
        lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))[:, None]
        products = lengths * np.sqrt(self._basis.squares)
        if self.kernel == "rbf":
            terms = kernel * (1 + self.gamma * (lengths**2 + self._basis.squares))
        elif self.kernel == "polynomial":
            terms = self.degree * _power(self.gamma * products + self.coef0, self.degree)
        else:
            terms = products
        size = terms @ np.abs(self.dual_coef)
        size += abs(self.intercept) + abs(self.boundary)
        return margin, 16 * EPSILON * size + self._probability_rounding()

    def _gradient(self, rows: Floats) -> Floats:
        centred = rows - self._basis.centre
        if self.kernel == "linear":
            return np.broadcast_to(self.dual_coef @ self._basis.points, rows.shape)
        if self.kernel == "polynomial":
            products = self.gamma * (centred @ self._basis.points.T) + self.coef0
            weights = _power(products, self.degree - 1) * self.dual_coef
            weights *= self.degree * self.gamma
            return np.asarray(weights @ self._basis.points)
        weights = self._basis.of_centred(centred) * self.dual_coef
        towards = weights @ self._basis.points - weights.sum(axis=1)[:, None] * centred
        return np.asarray(2 * self.gamma * towards)

    def _moved(self, rows: Floats) -> Floats:
        """Return boundary points of a block of rows; NaN where none was found."""
        margin, tolerance = self._margin(rows)
        side = np.where(margin >= 0, 1.0, -1.0)
        current = rows.copy()
        crossed = np.zeros(len(rows), dtype=bool)
        # Far from the support vectors gradients vanish, so steps are limited to their distance.
        longest = np.full(len(rows), np.inf)
        if self.kernel != "linear":
            away = np.linalg.norm(rows - self._basis.centre, axis=1)
            longest = 2 * (np.sqrt(self._basis.squares.max()) + away)
        for _ in range(_NEWTON_STEPS):
            active = np.flatnonzero(~crossed)
            if not len(active):
                break
            gradient = self._gradient(current[active])
            largest = np.abs(gradient).max(axis=1)
            direction = gradient / largest[:, None]
            steepness = np.linalg.norm(direction, axis=1)
            wanted = -margin[active] - 2 * side[active] * tolerance[active]
            length = np.minimum(np.abs(wanted) / (steepness * largest), longest[active])
            step = np.sign(wanted) * length / steepness
            step = np.where(largest > 0, step, 0.0)
            current[active] += step[:, None] * np.nan_to_num(direction)
            margin[active], tolerance[active] = self._margin(current[active])
            crossed[active] = side[active] * margin[active] < -tolerance[active]
        ends = np.full(rows.shape, np.nan)
        ends[crossed] = current[crossed]
        self._fall_back(rows, side, crossed, ends)
        return self._halve(rows, side, crossed, ends)

    def _fall_back(
        self, rows: Floats, side: Floats, crossed: NDArray[np.bool_], ends: Floats
    ) -> None:
        """Aim at the nearest support vector with the other decision."""
        for sign in (1.0, -1.0):
            missing = np.flatnonzero(~crossed & (side == sign))
            if not len(missing):
                continue
            opposite = self._opposite_points(sign)
            if not len(opposite):
                continue
            gaps = np.einsum("ij,ij->i", opposite, opposite) - 2 * rows[missing] @ opposite.T
            ends[missing] = opposite[gaps.argmin(axis=1)]
            crossed[missing] = True

    def _opposite_points(self, sign: float) -> Floats:
        """Return the support vectors that lie on the other side by more than rounding."""
        opposite = []
        for part in _parts(len(self.support_vectors), len(self.support_vectors)):
            points = self.support_vectors[part]
            margin, tolerance = self._margin(points)
            opposite.append(points[sign * margin < -tolerance])
        return np.concatenate(opposite)

    def _halve(
        self, rows: Floats, side: Floats, crossed: NDArray[np.bool_], ends: Floats
    ) -> Floats:
        """Bisect between the rows and their points on the other side."""
        indices = np.flatnonzero(crossed)
        start, move, sign = rows[indices], ends[indices] - rows[indices], side[indices]
        low, high = np.zeros(len(indices)), np.ones(len(indices))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            margin, tolerance = self._margin(start + middle[:, None] * move)
            flipped = sign * margin < -tolerance
            high = np.where(flipped, middle, high)
            low = np.where(flipped, low, middle)
        moved = np.full(rows.shape, np.nan)
        moved[indices] = start + high[:, None] * move
        return moved


def _move_rows(model: KernelModel, rows: Floats, chosen: NDArray[np.intp]) -> Floats:
    moved = np.empty((len(chosen), rows.shape[1]))
    for part in _parts(len(chosen), len(model.dual_coef)):
        # Steps can reach points where a polynomial overflows; no boundary point is found there.
        with np.errstate(all="ignore"):
            moved[part] = model._moved(rows[chosen[part]])
    return moved


def _parts(n_rows: int, n_columns: int) -> list[slice]:
    """Return slices of rows whose blocks of the kernel matrix are small."""
    size = max(1, _BLOCK // max(n_columns, 1))
    return [slice(start, start + size) for start in range(0, n_rows, size)]


def _power(base: Floats, exponent: int) -> Floats:
    """Return a whole power by repeated squaring, which is faster than logarithms."""
    power = np.ones_like(base)
    square = base
    while exponent:
        if exponent & 1:
            power = power * square
        exponent >>= 1
        if exponent:
            square = square * square
    return power
