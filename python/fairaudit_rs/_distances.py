"""Distances to a decision boundary, the rows they are of, and what all our models share."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import arguments
from .arguments import finite_number
from .errors import ArgumentError, ArgumentTypeError

LINKS = ("auto", "logit", "identity")
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, repr=False, eq=False)
class Distances:
    """Distance of every row to the decision boundary: inf of cost(x, x') over C(x') != C(x).

    An array of the distances to NumPy (``np.asarray(distances)``); besides, what the rows are
    decided now, and where a row would have to move.

    Attributes
    ----------
    values : ndarray of float64
        At least 0; infinite where no move flips the decision, or none was found.
    decisions : ndarray of bool
        The decision C(x) of every row.
    kind : str
        Model and cost, such as ``"linear, l2"``.
    upper_bound : bool
        Whether a closer boundary point may exist, because the search was iterative.
    feature_names : tuple of str or None
        Names of the columns of `moved`.
    n_not_found : int
        Rows whose distance is infinite because the search found no flip; 0 for closed forms.
    """

    values: NDArray[np.float64]
    decisions: NDArray[np.bool_]
    kind: str = "given"
    upper_bound: bool = False
    feature_names: tuple[str, ...] | None = None
    n_not_found: int = 0
    move: Callable[[NDArray[np.intp]], NDArray[np.float64]] | None = field(
        default=None, kw_only=True
    )

    def __post_init__(self) -> None:
        values = np.ascontiguousarray(self.values, dtype=np.float64)
        decisions = np.asarray(self.decisions)
        if values.ndim != 1:
            raise ArgumentError(f"values has {values.ndim} dimensions; accepted: one per row")
        # The smallest is NaN when one is; a mask of all rows is made only to name the row.
        if len(values) and not values.min() >= 0:
            row = int((~(values >= 0)).argmax())
            raise ArgumentError(
                f"values is {values[row]:g} in row {row}; accepted: distances of at least 0"
            )
        if decisions.shape != values.shape:
            raise ArgumentError(
                f"decisions has shape {decisions.shape}, values {values.shape}; accepted: one "
                "decision per row"
            )
        if decisions.dtype != np.bool_:
            if decisions.dtype.kind not in "iuf" or not np.isin(decisions, (0, 1)).all():
                raise ArgumentTypeError("decisions holds other values than booleans, or 0 and 1")
            decisions = decisions.astype(np.bool_)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "decisions", decisions)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        bound = ", upper bounds" if self.upper_bound else ""
        return (
            f"Distances({len(self):,} rows, {self.kind}{bound}, "
            f"{int(self.decisions.sum()):,} decided 1)"
        )

    @property
    def signed(self) -> NDArray[np.float64]:
        """(2 C(x) - 1) d(x): positive where the decision is 1."""
        return np.where(self.decisions, self.values, -self.values)

    def moved(self, rows: ArrayLike) -> NDArray[np.float64] | None:
        """Return where rows would have to move: just past the boundary, so the decision flips.

        Parameters
        ----------
        rows : array-like of int or bool
            Positions of the rows, or a mask with one value per row.

        Returns
        -------
        ndarray of shape (len(rows), n_features), or None
            NaN in the rows that cannot move, or for which no boundary point was found. None
            when the distances do not come from a model of the features.

        Notes
        -----
        The rows are read again, so the X that the distances were computed from must not have
        been changed in place.
        """
        if self.move is None:
            return None
        positions = np.atleast_1d(np.asarray(rows))
        if positions.ndim != 1:
            raise ArgumentError(f"rows has {positions.ndim} dimensions; accepted: one")
        if positions.dtype == np.bool_:
            if len(positions) != len(self):
                raise ArgumentError(
                    f"rows is a mask of {len(positions):,} rows; accepted: {len(self):,}"
                )
            positions = np.flatnonzero(positions)
        elif not len(positions):
            positions = positions.astype(np.intp)
        elif positions.dtype.kind not in "iu":
            raise ArgumentTypeError(
                f"rows has dtype {positions.dtype}; accepted: positions of rows, or a mask"
            )
        outside = (positions < 0) | (positions >= len(self))
        if outside.any():
            raise ArgumentError(
                f"rows contains {positions[outside][0]}; accepted: 0 to {len(self) - 1:,}"
            )
        return self.move(positions.astype(np.intp))


class BinaryModel(ABC):
    """A score of the features, and the threshold from which on the decision is 1.

    Attributes
    ----------
    threshold : float
        As given: a probability with link ``"logit"``, a score with link ``"identity"``.
    link : {"logit", "identity"}
        What the score is: log-odds, or a number with no meaning of its own.
    boundary : float
        The score from which on the decision is 1.
    feature_names : tuple of str or None
        Names of the features, in the order of the model.
    classes : tuple or None
        Labels 0 and 1 as the model was fitted on them; None where it knows of none.
    """

    classes: tuple[Any, Any] | None = None
    threshold: float
    link: str
    boundary: float
    feature_names: tuple[str, ...] | None

    def _decide_by(self, threshold: object, link: object) -> None:
        """Set the threshold: None is probability 0.5, or score 0 with link "identity"."""
        link = arguments.choice("link", link, LINKS)
        if threshold is None:
            threshold = 0.5 if link == "logit" else 0.0
        value = finite_number("threshold", threshold)
        if link == "auto":
            link = "logit" if 0 < value < 1 else "identity"
        if link == "logit" and not 0 < value < 1:
            raise ArgumentError(
                f"threshold is {value:g} with link='logit'; accepted: a probability strictly "
                "between 0 and 1 (link='identity' compares the score itself)"
            )
        self.threshold, self.link = value, link
        self.boundary = math.log(value / (1 - value)) if link == "logit" else value

    def with_threshold(self, threshold: float) -> Self:
        """Return the same model with another threshold and the same link."""
        other = copy.copy(self)
        other._decide_by(threshold, self.link)
        return other

    @abstractmethod
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of every row, before any link."""

    @abstractmethod
    def distance(self, X: Any) -> Distances:
        """Return the distance of every row to the decision boundary."""

    def decision(self, X: Any) -> NDArray[np.bool_]:
        """Return the decision of every row: whether its score reaches the boundary."""
        return self.decision_function(X) >= self.boundary

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of label 1, one number per row.

        Raises
        ------
        ArgumentError
            With link ``"identity"``: margins and regression values are no probabilities.
        """
        if self.link != "logit":
            raise ArgumentError(
                "predict_proba needs link='logit'; this model has link='identity', so that its "
                "score is no log-odds; use decision_function, or pass link='logit' if it is one"
            )
        with np.errstate(over="ignore"):
            return 1 / (1 + np.exp(-self.decision_function(X)))

    def _probability_rounding(self) -> float:
        """How far a score must be from the boundary for its probability to tell the side."""
        if self.link != "logit":
            return 0.0
        return 8 * EPSILON / min(self.threshold, 1 - self.threshold)
