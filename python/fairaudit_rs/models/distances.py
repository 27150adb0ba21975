"""The class `Distances`: how far rows are from the decision boundary, and where they would move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import arguments
from ..data.arrays import ArraySource
from ..data.columns import column_array, count_not_finite
from ..errors import ArgumentError, ArgumentTypeError, DataError

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, repr=False, eq=False)
class Distances:
    """Distance of every row to the decision boundary: inf of cost(x, x') over C(x') != C(x).

    NumPy treats it as the array of distances (``np.asarray(distances)``). It also holds the
    current decisions, and can compute where a row would have to move.

    Attributes
    ----------
    values : ndarray of float64
        At least 0; infinite where no move flips the decision, or where none was found.
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
            raise ArgumentError(
                f"values has {values.ndim} dimensions; accepted: one per row", argument="values"
            )
        # The minimum is NaN if any value is; the mask is computed only to name the row.
        if len(values) and not values.min() >= 0:
            row = int((~(values >= 0)).argmax())
            raise ArgumentError(
                f"values is {values[row]:g} in row {row}; accepted: distances of at least 0",
                argument="values",
            )
        if decisions.shape != values.shape:
            raise ArgumentError(
                f"decisions has shape {decisions.shape}, values {values.shape}; accepted: one "
                "decision per row",
                argument="decisions",
            )
        if decisions.dtype != np.bool_:
            if decisions.dtype.kind not in "iuf" or not np.isin(decisions, (0, 1)).all():
                raise ArgumentTypeError(
                    "decisions holds other values than booleans. Pass booleans, or 0 and 1.",
                    argument="decisions",
                )
            decisions = decisions.astype(np.bool_)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "decisions", decisions)

    @classmethod
    def _of_scores(cls, scores: NDArray[np.float64], threshold: float) -> Distances:
        """Return the distances of finite scores, without the checks of the constructor."""
        values = scores - threshold
        np.abs(values, out=values)
        distances = cls.__new__(cls)
        distances.__dict__.update(values=values, decisions=scores >= threshold, kind="score margin")
        return distances

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
            NaN for rows that cannot move, or for which no boundary point was found. None if the
            distances do not come from a model of the features.

        Notes
        -----
        The rows are read again, so the X that the distances were computed from must not have
        been changed in place.
        """
        if self.move is None:
            return None
        positions = np.atleast_1d(np.asarray(rows))
        if positions.ndim != 1:
            raise ArgumentError(
                f"rows has {positions.ndim} dimensions; accepted: one", argument="rows"
            )
        if positions.dtype == np.bool_:
            if len(positions) != len(self):
                raise ArgumentError(
                    f"rows is a mask of {len(positions):,} rows; accepted: {len(self):,}",
                    argument="rows",
                )
            positions = np.flatnonzero(positions)
        elif not len(positions):
            positions = positions.astype(np.intp)
        elif positions.dtype.kind not in "iu":
            raise ArgumentTypeError(
                f"rows has dtype {positions.dtype}; accepted: positions of rows, or a mask",
                argument="rows",
            )
        outside = (positions < 0) | (positions >= len(self))
        if outside.any():
            raise ArgumentError(
                f"rows contains {positions[outside][0]}; accepted: 0 to {len(self) - 1:,}",
                argument="rows",
            )
        return self.move(positions.astype(np.intp))


def score_distance(y_score: Any, threshold: float = 0.5) -> Distances:
    """Return |score - threshold| as the distance of every row, for use without a model.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores.
    threshold : float
        Rows that reach it get decision 1.

    Returns
    -------
    Distances
        Distances of kind ``"score margin"``, whose `moved` returns None.

    Examples
    --------
    >>> score_distance([0.5, 0.25, 1.0]).values
    array([0.  , 0.25, 0.5 ])
    """
    cut = arguments.check(threshold=threshold).threshold
    column = ArraySource({"y_score": column_array("y_score", y_score)})
    return Distances._of_scores(column.numbers("y_score", "y_score"), cut)


def margins_of_scores(scores: NDArray[np.float64], threshold: float) -> Distances:
    """Return the distances of the scores of a table, in which some may be missing or infinite."""
    if count_not_finite(scores)[0]:
        missing = np.flatnonzero(np.isnan(scores))
        if len(missing):
            raise DataError(
                f"y_score is missing in row {missing[0]}. Pass a score for every row.",
                argument="y_score",
            )
        # Raises, with the rows that are infinite.
        return score_distance(scores, threshold)
    return Distances._of_scores(scores, threshold)
