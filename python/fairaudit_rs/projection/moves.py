"""The moves of a projection: which rows would change their decision, and how far they move."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.equality import are_equal
from ..data.groups import group_name
from ..results.result import Serializable
from ..results.stored import decode_entry, encode_value

if TYPE_CHECKING:
    from typing import Self

    import polars as pl


@dataclass(frozen=True, kw_only=True)
class MoveSummary:
    """A summary of the moves of one group and label in one direction."""

    group: Any
    label: int | None
    from_decision: int
    to_decision: int
    n_rows: int
    #: Sum of weights times fractions.
    mass: float
    mean_distance: float
    largest_distance: float


#: The columns by which moves are compared.
_COMPARED = (
    "row",
    "index",
    "fraction",
    "distance",
    "weight",
    "from_decision",
    "group",
    "label",
)


def unknown_destination() -> None:
    """Return None: the destinations of the rows are unknown."""


def _constant(x: NDArray[np.float64]) -> NDArray[np.float64]:
    # A function of the module, unlike a lambda, can be pickled.
    return x


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Moves(Serializable):
    """The rows that must change their decision to remove the bias at least cost.

    Attributes
    ----------
    row : ndarray of int
        Positions of the rows in the data.
    fraction : ndarray
        The fraction of each row that moves: 1, or less for rows that move only in part.
    distance : ndarray
        The distance of each move.
    weight : ndarray
        The weight of each row, 1 without ``sample_weight``.
    from_decision : ndarray of int
        The decision that changes, 0 or 1.
    group, label : ndarray
        Position of the group of each row in ``groups``, and its label (-1 if labels are not used).
    groups : tuple
        The groups.
    x : ndarray or None
        The destinations of the rows, if ``distance`` comes from a model that can compute them.
    feature_names : tuple of str or None
        Names of the columns of ``x``.
    attribute : str
        Names of the sensitive features.
    index : ndarray or None
        The labels of the rows in the index of pandas data; None without an index.
    """

    row: NDArray[np.int64]
    fraction: NDArray[np.float64]
    distance: NDArray[np.float64]
    weight: NDArray[np.float64]
    from_decision: NDArray[np.int8]
    group: NDArray[np.int64]
    label: NDArray[np.int8]
    groups: tuple[Any, ...]
    feature_names: tuple[str, ...] | None = None
    attribute: str = ""
    index: NDArray[Any] | None = None
    #: Computes `x` on demand, because it can be large and is rarely needed.
    _compute_x: Callable[[], NDArray[np.float64] | None] = field(
        default=unknown_destination, repr=False, compare=False
    )

    _not_in_dict = frozenset({"_compute_x"})

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: the destinations, not the model and data behind them."""
        return self.__dict__ | {"_compute_x": _returning(self.x)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, a list for each column; see `Result.to_dict`."""
        x = self.x
        return {**super().to_dict(), "x": None if x is None else encode_value(x)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild the moves from the dict of `to_dict`."""
        moves = super().from_dict(content)
        x = decode_entry(content, "x", NDArray[np.float64] | None)
        moves.__dict__["_compute_x"] = _returning(x)
        return moves

    def __len__(self) -> int:
        return len(self.row)

    def __repr__(self) -> str:
        return f"Moves({len(self):,} rows, cost={self.cost:.6g})"

    def _repr_html_(self) -> str:
        return self.to_frame()._repr_html_()

    def __eq__(self, other: object) -> bool:
        """Return whether the same rows move in the same way."""
        if not isinstance(other, Moves):
            return NotImplemented
        return self.groups == other.groups and all(
            are_equal(getattr(self, name), getattr(other, name)) for name in _COMPARED
        )

    def __hash__(self) -> int:
        return hash((self.groups, len(self)))

    @property
    def x(self) -> NDArray[np.float64] | None:
        """The destination of each row; None if no model can compute it."""
        return self._compute_x()

    @property
    def names(self) -> list[str]:
        """The names of the groups, with their attribute."""
        return [group_name(group, self.attribute) for group in self.groups]

    @property
    def cost(self) -> float:
        """The sum of weight * fraction * distance; it equals the statistic."""
        return float(self.weight @ (self.fraction * self.distance))

    def summary(self) -> tuple[MoveSummary, ...]:
        """Return the moves by group, label and direction."""
        # Code (group, label, decision) as one number; labels start at -1.
        kinds = (3 * self.group + self.label + 1) * 2 + self.from_decision
        summaries = []
        for code in np.flatnonzero(np.bincount(kinds)):
            at = np.flatnonzero(kinds == code)
            kind = (code // 6, code // 2 % 3 - 1, code % 2)
            mass = self.weight[at] * self.fraction[at]
            # Exact sums do not depend on the order of the rows.
            total = math.fsum(mass.tolist())
            summaries.append(
                MoveSummary(
                    group=self.groups[kind[0]],
                    label=None if kind[1] < 0 else int(kind[1]),
                    from_decision=int(kind[2]),
                    to_decision=1 - int(kind[2]),
                    n_rows=len(at),
                    mass=total,
                    mean_distance=math.fsum((mass * self.distance[at]).tolist()) / total,
                    largest_distance=float(self.distance[at].max()),
                )
            )
        return tuple(summaries)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per moved row, with its destination if that is known."""
        import polars as pl

        names = self.names
        columns: dict[str, Any] = {
            "row": self.row,
            **({} if self.index is None else {"index": self.index.tolist()}),
            "group": np.array(names, dtype=object)[self.group].tolist() if len(self) else [],
            "label": pl.Series(self.label).replace(-1, None),
            "fraction": self.fraction,
            "from": self.from_decision,
            "to": 1 - self.from_decision,
            "distance": self.distance,
        }
        x = self.x
        if x is not None:
            features = self.feature_names or tuple(f"x{i + 1}" for i in range(x.shape[1]))
            columns |= {f"to_{name}": x[:, i] for i, name in enumerate(features)}
        return pl.DataFrame(columns, schema_overrides={"group": pl.String})


def _returning(
    x: NDArray[np.float64] | None,
) -> Callable[[], NDArray[np.float64] | None]:
    """Return a function, which can be pickled, that returns x."""
    return unknown_destination if x is None else partial(_constant, x)
