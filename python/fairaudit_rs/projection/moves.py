"""Who would move: the rows, fractions and distances of a projection."""

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
    """The moves of one group and label in one direction."""

    group: Any
    label: int | None
    from_decision: int
    to_decision: int
    n_rows: int
    #: Sum of weights times fractions.
    mass: float
    mean_distance: float
    largest_distance: float


#: What moves are compared by.
_COMPARED = (
    *("row", "index", "fraction", "distance", "weight", "from_decision", "group", "label"),
)


def unknown_moves() -> None:
    """Say that nobody knows where rows move to."""


def _known(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return x


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Moves(Serializable):
    """The smallest set of rows, and the smallest moves, that remove the bias.

    Attributes
    ----------
    row : ndarray of int
        Positions in the data as given.
    fraction : ndarray
        How much of each row moves: 1, or less for the last ones.
    distance : ndarray
        How far it moves.
    weight : ndarray
        Its weight, 1 without ``sample_weight``.
    from_decision : ndarray of int
        The decision that changes, 0 or 1.
    group, label : ndarray
        Position of its group in ``groups``, and its label (-1 where labels play no part).
    groups : tuple
        The groups.
    x : ndarray or None
        Where the row moves to, when ``distance`` comes from a model that knows.
    feature_names : tuple of str or None
        Names of the columns of ``x``.
    attribute : str
        Names of the sensitive features.
    index : ndarray or None
        What the rows are called in the index of pandas data; None where they go by position.
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
    #: Makes `x`: a large audit moves many rows, and few readers ask where to.
    _moved: Callable[[], NDArray[np.float64] | None] = field(
        default=unknown_moves, repr=False, compare=False
    )

    _bulky = frozenset({"_moved"})

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: where rows move to, not the model and data that know it."""
        x = self.x
        return self.__dict__ | {"_moved": unknown_moves if x is None else partial(_known, x)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, a list for each column; see `Result.to_dict`."""
        x = self.x
        return {**super().to_dict(), "x": None if x is None else encode_value(x)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the moves that `to_dict` made a dict of."""
        made = super().from_dict(content)
        x = decode_entry(content, "x", NDArray[np.float64] | None)
        made.__dict__["_moved"] = unknown_moves if x is None else partial(_known, x)
        return made

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
            are_equal(getattr(self, name), getattr(other, name))
            for name in (
                "row",
                "index",
                "fraction",
                "distance",
                "weight",
                "from_decision",
                "group",
                "label",
            )
        )

    def __hash__(self) -> int:
        return hash((self.groups, len(self)))

    @property
    def x(self) -> NDArray[np.float64] | None:
        """Where each row moves to; None without a model that knows."""
        return self._moved()

    @property
    def names(self) -> list[str]:
        """Names of the groups for people."""
        return [group_name(group, self.attribute) for group in self.groups]

    @property
    def cost(self) -> float:
        """The sum of weight, fraction and distance: the statistic, for weights with mean 1."""
        return float(self.weight @ (self.fraction * self.distance))

    def summary(self) -> tuple[MoveSummary, ...]:
        """Return the moves by group, label and direction."""
        # One number for each kind, in the order of (group, label, decision); labels begin at -1.
        kinds = (3 * self.group + self.label + 1) * 2 + self.from_decision
        found = []
        for code in np.flatnonzero(np.bincount(kinds)):
            at = np.flatnonzero(kinds == code)
            kind = (code // 6, code // 2 % 3 - 1, code % 2)
            mass = self.weight[at] * self.fraction[at]
            # Exact sums: the same bits for any order of the rows.
            total = math.fsum(mass.tolist())
            found.append(
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
        return tuple(found)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per moved row, with where it moves to when that is known."""
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
