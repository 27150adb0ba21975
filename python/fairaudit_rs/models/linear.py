"""`LinearModel`: linear scores, and distances to the boundary in closed form for four norms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import arguments
from ..arguments import finite_array
from ..data.equality import EqualByValue
from ..data.features import names_of, positions_of, read_features
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import Link, Norm
from .binary import BinaryModel, intercept_of
from .distances import EPSILON, Distances

NORMS: tuple[Norm, ...] = get_args(Norm)

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class LinearScores(EqualByValue):
    """The scores ``X @ coef.T + intercepts``."""

    coef: Floats
    intercepts: Floats

    @property
    def n_scores(self) -> int:
        """The number of scores of a row."""
        return len(self.coef)

    @property
    def n_features(self) -> int | None:
        """The number of features of a row; None if it can be any."""
        return int(self.coef.shape[1])

    def score_rows(self, rows: Floats) -> Floats:
        """Return the scores of rows, one column per score."""
        return np.asarray(rows @ self.coef.T + self.intercepts)


class LinearModel(BinaryModel):
    """A linear score with a threshold: logistic regression, a linear SVM, a scorecard.

    Parameters
    ----------
    coef : array-like of shape (n_features,)
        Coefficients; scikit-learn's shape (1, n_features) is accepted too.
    intercept : float
        Added to the score.
    threshold : float, optional
        Rows that reach it get decision 1: a probability with link ``"logit"``, a score with link
        ``"identity"``. None is probability 0.5 with link ``"logit"``, and score 0 otherwise.
    link : {"auto", "logit", "identity"}
        ``"logit"``: the score is the log-odds of label 1, the probability is
        ``1 / (1 + exp(-score))``. ``"identity"``: the score is a margin or any other number.
        ``"auto"`` takes ``"logit"`` when the threshold is strictly between 0 and 1, and
        ``"identity"`` otherwise, so ``LinearModel(coef, intercept)`` is a logistic model decided
        at probability 1/2, and ``LinearModel(coef, intercept, threshold=0.0)`` a margin.
    feature_names : sequence of str, optional
        Names of the features. With names, the columns of a frame are chosen by name.

    Notes
    -----
    A row on the boundary gets decision 1; scikit-learn's `predict` gives it 0. The two do not
    differ elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> model = LinearModel([3.0, 4.0], intercept=-5.0)
    >>> distances = model.distance([[0.0, 0.0], [3.0, 4.0]])
    >>> distances.values, distances.decisions
    (array([1., 4.]), array([False,  True]))
    >>> moved = distances.moved([0])
    >>> bool(np.allclose(moved, [[0.6, 0.8]])), model.decision(moved)
    (True, array([ True]))
    """

    scores: LinearScores

    def __init__(
        self,
        coef: ArrayLike,
        intercept: float = 0.0,
        threshold: float | None = 0.5,
        *,
        link: Link = "auto",
        feature_names: Sequence[str] | None = None,
    ) -> None:
        shape = np.shape(coef)
        if len(shape) == 2 and shape[0] == 1:
            coef = np.asarray(coef)[0]
        elif len(shape) != 1 or not shape[0]:
            raise ArgumentError(
                f"coef has shape {shape}; accepted: one number per feature (two classes)",
                argument="coef",
            )
        self.coef = finite_array("coef", coef, 1)
        self.intercept = intercept_of(intercept)
        self.feature_names = names_of(feature_names, len(self.coef))
        self._decide_by(threshold, link)
        self.scores = LinearScores(self.coef[None], np.array([self.intercept]))

    def __repr__(self) -> str:
        return (
            f"LinearModel({len(self.coef)} features, intercept={self.intercept:g}, "
            f"threshold={self.threshold:g}, link={self.link!r})"
        )

    def decision_function(self, X: Any) -> Floats:
        """Return ``X @ coef + intercept``."""
        return self._score(read_features(X, len(self.coef), self.feature_names).values)

    def _score(self, rows: Floats) -> Floats:
        return np.asarray(rows @ self.coef + self.intercept)

    def distance(
        self,
        X: Any,
        norm: Norm = "l2",
        *,
        covariance: ArrayLike | None = None,
        immovable: Any = None,
        discrete: Any = None,
        discrete_cost: float | None = None,
        discrete_values: ArrayLike | None = None,
    ) -> Distances:
        """Return the distance of every row to the decision boundary.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            The rows, in the units of the coefficients.
        norm : {"l1", "l2", "linf", "mahalanobis"}
            The cost of moving a row.
        covariance : array-like of shape (n_features, n_features), optional
            M of norm ``"mahalanobis"``, such as ``np.cov(X, rowvar=False)``.
        immovable : names or positions of features, optional
            Features that no move may change: their cost is infinite.
        discrete : names or positions of features, optional
            Features that may only jump together from one of their allowed combinations to
            another.
        discrete_cost : float, optional
            Cost of such a jump, on the scale of the norm of the other features; required with
            `discrete`.
        discrete_values : array-like of shape (n_combinations, len(discrete)), optional
            The allowed combinations, with columns in the order of `discrete`. By default the
            distinct combinations that occur in X. A row whose own combination is not among
            them cannot jump.

        Returns
        -------
        Distances
            In closed form, also for `moved`. Infinite where no allowed move changes the decision.

        Notes
        -----
        With m the score minus the boundary and w the coefficients that may move, the distance
        is ``|m| / |w|*`` with the dual norm: l1 moves the feature of the largest coefficient
        alone (``max |w|``), l2 moves along w, linf moves all features equally far
        (``sum |w|``). The cost ``sqrt(delta' M^-1 delta)`` moves along ``M w``
        (``sqrt(w' M w)``); where some features are immovable, M is replaced by the conditional
        covariance of the others given these.

        With `discrete` the cost is equation (4) of [1]_: the norm of the change of the
        continuous features plus `discrete_cost` if the discrete ones change at all. The best
        jump is the one whose score is furthest on the other side, so that

            d = min(|m| / |w_C|*, discrete_cost + max(|m| - gain, 0) / |w_C|*).

        For norm ``"mahalanobis"`` M is then the block of the continuous features. A discrete
        feature that is immovable keeps its value in every jump.

        References
        ----------
        .. [1] N. Si, K. Murthy, J. Blanchet, V. A. Nguyen, "Testing Group Fairness via Optimal
           Transport Projections", ICML 2021, equations (3a), (4) and (6).

        Examples
        --------
        >>> model = LinearModel([1.0, 2.0], threshold=0.0, feature_names=["age", "member"])
        >>> X = [[-1.5, 0.0], [3.0, 1.0]]
        >>> model.distance(X, immovable="age").values
        array([0.75, 2.5 ])
        >>> model.distance(X, discrete="member", discrete_cost=0.5).values
        array([0.5, 3.5])
        """
        norm = arguments.choice("norm", norm, NORMS)
        rows, names = read_features(X, len(self.coef), self.feature_names)
        n_features = len(self.coef)
        fixed = positions_of("immovable", () if immovable is None else immovable, names, n_features)
        jumping = positions_of("discrete", () if discrete is None else discrete, names, n_features)
        continuous = np.setdiff1d(np.arange(n_features), jumping)
        movable = np.setdiff1d(continuous, fixed)
        scale = _covariance(covariance, norm, n_features)
        fixed_continuous = np.setdiff1d(continuous, movable)
        dual, direction = _dual(self.coef, norm, movable, fixed_continuous, scale)
        kind, jumps = f"linear, {norm}", None
        if len(jumping):
            cost = _jump_cost(discrete_cost)
            values = rows[:, jumping]
            if discrete_values is not None:
                values = _combinations(discrete_values, len(jumping))
            jumps = _Jumps.build(values, jumping, np.isin(jumping, fixed), self.coef, cost)
            kind += f", {len(jumping)} discrete at {cost:g}"
        elif discrete_cost is not None or discrete_values is not None:
            argument = "discrete_cost" if discrete_cost is not None else "discrete_values"
            raise ArgumentTypeError(
                f"{argument} needs discrete, which names no feature. Name the discrete features, "
                f"or omit {argument}.",
                argument=argument,
                mentions=("discrete",),
                code="missing-argument",
            )
        if len(fixed):
            kind += f", {len(fixed)} immovable"
        moves = _CheapestMoves(self, dual, direction, jumps)
        decided, values, _ = moves.costs(rows)
        return Distances(
            values, decided, kind, feature_names=names, move=partial(_move_rows, moves, rows)
        )


def _move_rows(moves: _CheapestMoves, rows: Floats, chosen: Positions) -> Floats:
    return moves.moved(rows[chosen])


def _jump_cost(value: object) -> float:
    if value is None:
        raise ArgumentTypeError(
            "discrete_cost is missing, but discrete needs it. Pass the cost of a jump of the "
            "discrete features, on the scale of the norm of the others, such as 1.0.",
            argument="discrete_cost",
            mentions=("discrete",),
            code="missing-argument",
        )
    return arguments.positive("discrete_cost", value)


def _combinations(values: ArrayLike, n_columns: int) -> Floats:
    array = finite_array("discrete_values", values, np.ndim(values))
    if array.ndim == 1 and n_columns == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != n_columns:
        raise ArgumentError(
            f"discrete_values has shape {array.shape}; accepted: one row per combination of the "
            f"{n_columns} discrete features",
            argument="discrete_values",
        )
    return array


def _covariance(value: ArrayLike | None, norm: str, n_features: int) -> Floats | None:
    if norm != "mahalanobis":
        if value is not None:
            raise ArgumentTypeError(
                f"covariance is only for norm='mahalanobis', and norm is {norm!r}. Change norm, or "
                "omit covariance.",
                argument="covariance",
                mentions=("norm",),
                code="conflicting-arguments",
            )
        return None
    if value is None:
        raise ArgumentTypeError(
            "covariance is missing, but norm='mahalanobis' needs it. Pass a matrix such as "
            "np.cov(X, rowvar=False).",
            argument="covariance",
            mentions=("norm",),
            code="missing-argument",
        )
    matrix = finite_array("covariance", np.atleast_2d(np.asarray(value)), 2)
    if matrix.shape != (n_features, n_features):
        raise ArgumentError(
            f"covariance has shape {matrix.shape}; accepted: {(n_features, n_features)}",
            argument="covariance",
        )
    largest = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > 1e-10 * largest:
        raise ArgumentError(
            "covariance is not symmetric. Pass a symmetric matrix.", argument="covariance"
        )
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    if lowest < -1e-10 * largest:
        raise ArgumentError(
            f"covariance has the eigenvalue {lowest:.3g}; accepted: none below 0",
            argument="covariance",
        )
    return (matrix + matrix.T) / 2


def _dual(
    coef: Floats, norm: str, movable: Positions, fixed: Positions, scale: Floats | None
) -> tuple[float, Floats]:
    """Return the dual norm of the coefficients, and the cheapest move that raises the score by 1.

    Parameters
    ----------
    coef : ndarray
        All coefficients.
    norm : str
        The norm of the cost.
    movable, fixed : ndarray of int
        Continuous features that may move, and those that may not.
    scale : ndarray, optional
        M of norm ``"mahalanobis"``.
    """
    direction = np.zeros(len(coef))
    largest = float(np.abs(coef[movable]).max(initial=0.0))
    if largest == 0:
        return 0.0, direction
    # Relative to the largest coefficient, so that squares neither underflow nor overflow.
    w = coef[movable] / largest
    if norm == "l1":
        dual = 1.0
        step = np.zeros(len(w))
        steepest = int(np.abs(w).argmax())
        step[steepest] = 1 / w[steepest]
    elif norm == "l2":
        dual = float(np.sqrt(w @ w))
        step = w / (w @ w)
    elif norm == "linf":
        dual = float(np.abs(w).sum())
        step = np.sign(w) / dual
    else:
        assert scale is not None
        along = scale[np.ix_(movable, movable)] @ w
        total = float(w @ along)
        if len(fixed):
            cross = scale[np.ix_(fixed, movable)]
            explained = np.linalg.lstsq(scale[np.ix_(fixed, fixed)], cross @ w, rcond=None)[0]
            along = along - cross.T @ explained
        square = float(w @ along)
        if square <= 10 * len(coef) * EPSILON * total:
            # The movable part of the score is determined by the fixed features.
            return 0.0, direction
        dual = float(np.sqrt(square))
        step = along / square
    direction[movable] = step / largest
    return dual * largest, direction


@dataclass(frozen=True)
class _CheapestMoves:
    """The cheapest moves of the rows of one model under one cost.

    `direction` raises the score by 1 at a cost of ``1 / dual``; `dual` is 0 if no feature that
    moves continuously changes the score.
    """

    model: LinearModel
    dual: float
    direction: Floats
    jumps: _Jumps | None = None

    def costs(self, rows: Floats) -> tuple[NDArray[np.bool_], Floats, Positions | None]:
        """Return the decision of every row, its distance, and the target of its jump (-1: none)."""
        score = self.model._score(rows)
        decided = score >= self.model.boundary
        margin = score - self.model.boundary
        cost = self._slide(np.abs(margin))
        if self.jumps is None:
            return decided, cost, None
        target, gain = self.jumps.best(rows, decided)
        if self.dual > 0:
            remaining = np.maximum(np.abs(margin) - gain, 0.0)
            jump_cost = self.jumps.cost + self._slide(remaining)
        else:
            after = self.jumps.applied(rows, target)
            flips = (self.model._score(after) >= self.model.boundary) != decided
            jump_cost = np.where(flips, self.jumps.cost, np.inf)
        return decided, np.minimum(cost, jump_cost), np.where(jump_cost < cost, target, -1)

    def _slide(self, margins: Floats) -> Floats:
        """Return the cost of moving continuously by these margins."""
        if self.dual == 0:
            return np.full(len(margins), np.inf)
        with np.errstate(over="ignore"):
            return margins / self.dual

    def moved(self, rows: Floats) -> Floats:
        """Return the rows moved just past the boundary; NaN where no move flips the decision."""
        decided, cost, target = self.costs(rows)
        start = rows if target is None or self.jumps is None else self.jumps.applied(rows, target)
        side = np.where(decided, 1.0, -1.0)
        score = self.model._score(start)
        margin = score - self.model.boundary
        reachable = np.isfinite(cost)
        # Past the boundary by more than the rounding error of any order of summation.
        size = np.abs(start) @ np.abs(self.model.coef) + abs(self.model.intercept)
        size += abs(self.model.boundary) + np.abs(margin) * (
            np.abs(self.direction) @ np.abs(self.model.coef)
        )
        overshoot = 4 * (rows.shape[1] + 2) * EPSILON * size + self.model._probability_rounding()
        for _ in range(64):
            step = np.where(side * margin > -overshoot, -margin - side * overshoot, 0.0)
            moved = start + step[:, None] * self.direction
            stuck = reachable & ((self.model._score(moved) >= self.model.boundary) == decided)
            if not stuck.any() or self.dual == 0:
                break
            overshoot = np.where(stuck, 2 * overshoot, overshoot)
        moved[~reachable | stuck] = np.nan
        return moved


@dataclass(frozen=True, kw_only=True)
class _Jumps:
    """Jumps of the discrete features between their allowed combinations."""

    columns: Positions
    cost: float
    values: Floats
    totals: Floats
    #: For each combination, the reachable one with the lowest, and with the highest, score.
    lowest: Positions
    highest: Positions
    #: For each column, its levels and the codes of the combinations of columns up to it.
    steps: tuple[tuple[Floats, NDArray[np.int64]], ...]

    @classmethod
    def build(
        cls, values: Floats, columns: Positions, fixed: NDArray[np.bool_], coef: Floats, cost: float
    ) -> _Jumps:
        values, steps = _distinct(values)
        totals = values @ coef[columns]
        group = np.zeros(len(values), dtype=np.int64)
        if fixed.any():
            fixed_values = values[:, fixed]
            group = _codes(fixed_values, _distinct(fixed_values)[1])
        order = np.lexsort((totals, group))
        _, first, sizes = np.unique(group[order], return_index=True, return_counts=True)
        return cls(
            columns=columns,
            cost=cost,
            values=values,
            totals=totals,
            lowest=order[first][group],
            highest=order[first + sizes - 1][group],
            steps=steps,
        )

    def best(self, rows: Floats, decided: NDArray[np.bool_]) -> tuple[Positions, Floats]:
        """Return the best combination for every row to jump to, and the change of the score."""
        current = _codes(rows[:, self.columns], self.steps)
        target = np.where(decided, self.lowest[current], self.highest[current])
        gain = np.abs(self.totals[target] - self.totals[current])
        return np.where(current < 0, -1, target), np.where(current < 0, 0.0, gain)

    def applied(self, rows: Floats, target: Positions) -> Floats:
        """Return the rows after their jumps."""
        after = rows.copy()
        jumping = np.flatnonzero(target >= 0)
        after[np.ix_(jumping, self.columns)] = self.values[target[jumping]]
        return after


def _distinct(rows: Floats) -> tuple[Floats, tuple[tuple[Floats, NDArray[np.int64]], ...]]:
    """Return the distinct rows, and the steps with which `_codes` finds them."""
    steps = []
    codes = np.zeros(len(rows), dtype=np.int64)
    first = np.zeros(1, dtype=np.intp)
    for column in rows.T:
        levels, place = np.unique(column, return_inverse=True)
        prefixes, first, codes = np.unique(
            codes * len(levels) + place, return_index=True, return_inverse=True
        )
        steps.append((levels, prefixes))
    return rows[first], tuple(steps)


def _codes(rows: Floats, steps: tuple[tuple[Floats, NDArray[np.int64]], ...]) -> NDArray[np.int64]:
    """Return the position of every row among the distinct ones, -1 if it is not among them."""
    codes = np.zeros(len(rows), dtype=np.int64)
    known = np.ones(len(rows), dtype=bool)
    for column, (levels, prefixes) in zip(rows.T, steps, strict=True):
        place = np.minimum(np.searchsorted(levels, column), len(levels) - 1)
        known &= levels[place] == column
        wanted = codes * len(levels) + place
        codes = np.minimum(np.searchsorted(prefixes, wanted), len(prefixes) - 1)
        known &= prefixes[codes] == wanted
    return np.where(known, codes, -1)
