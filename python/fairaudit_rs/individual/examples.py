"""The class `UnfairExamples`: the rows whose loss grows most in the attack, before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..data.equality import EqualByValue
from ..results.result import Serializable

if TYPE_CHECKING:
    import polars as pl


Floats = NDArray[np.float64]

#: Number of moved features that a row of the table names.
_NAMED = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class UnfairExamples(EqualByValue, Serializable):
    """The rows whose loss grows most, and the similar people whom the attack finds.

    Attributes
    ----------
    row : ndarray of int
        Positions in X.
    ratio, loss_start, loss_end : ndarray
        Loss after the attack over loss before it, and the two losses.
    score_start, score_end : ndarray of shape (k,), or (k, n_classes)
        Scores of the model before and after the attack.
    start, attacked : ndarray of shape (k, n_features)
        The rows before and after the attack, in the units of X.
    units : ndarray of shape (n_features,)
        The unit of each feature in the fair metric.
    feature_names : tuple of str or None
        Names of the features.
    index : ndarray or None
        Labels of the rows in the index of pandas data; None for other data.
    """

    row: NDArray[np.int64]
    ratio: Floats
    loss_start: Floats
    loss_end: Floats
    score_start: Floats
    score_end: Floats
    start: Floats
    attacked: Floats
    units: Floats
    feature_names: tuple[str, ...] | None
    index: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.row)

    def __repr__(self) -> str:
        ratios = f", ratios {self.ratio[-1]:.3g} to {self.ratio[0]:.3g}" if len(self) else ""
        return f"UnfairExamples({len(self):,} rows{ratios})"

    def _repr_html_(self) -> str:
        return self.to_frame()._repr_html_()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features; x0, x1, ... where they have none."""
        return self.feature_names or tuple(f"x{j}" for j in range(self.start.shape[1]))

    def moved_features(self, k: int = _NAMED) -> list[list[tuple[str, float]]]:
        """Return for every row the features that moved most, with their changes.

        Parameters
        ----------
        k : int
            Maximum number for each row; features that did not move are omitted.

        Returns
        -------
        list of list of (name, change)
            Sorted by the size of the change in the units of the fair metric; the changes themselves
            are in the units of X.
        """
        k = arguments.check(k=k).k
        changes = self.attacked - self.start
        order = np.argsort(-np.abs(changes / self.units), axis=1, kind="stable")[:, :k]
        return [
            [(self.names[j], float(change[j])) for j in places if change[j] != 0]
            for change, places in zip(changes, order, strict=True)
        ]

    def to_frame(self) -> pl.DataFrame:
        """Return one row per example: losses, scores, and each feature before and after."""
        import polars as pl

        columns: dict[str, Any] = {"row": self.row}
        if self.index is not None:
            columns["index"] = self.index.tolist()
        columns["ratio"] = self.ratio
        columns |= {"loss_start": self.loss_start, "loss_end": self.loss_end}
        for when, score in [("start", self.score_start), ("end", self.score_end)]:
            if score.ndim == 1:
                columns[f"score_{when}"] = score
            else:
                columns |= {f"score_{when} {c}": score[:, c] for c in range(score.shape[1])}
        columns["moved most"] = [
            ", ".join(f"{name} {change:+.3g}" for name, change in moved)
            for moved in self.moved_features()
        ]
        for j, name in enumerate(self.names):
            columns[f"{name} before"] = self.start[:, j]
            columns[f"{name} after"] = self.attacked[:, j]
        return pl.DataFrame(columns)
