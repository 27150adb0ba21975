"""What the lenses of an audit are run with: a model and its rows, and people of known groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.groups import label
from ..extremes.forms import Form
from .binding import Bound, Bounds
from .findings import QuestionFinding
from .policy import Policy
from .questions import Attribute, Computing
from .seeds import seed_of

Positions = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class Given:
    """A model, the rows that it takes, and scores with an attribute flipped: what there is."""

    model: Any = None
    form: Form | None = None
    has_counterfactuals: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """What the lenses of an audit are run with."""

    policy: Policy
    #: Single attributes, with one table behind them.
    attributes: Sequence[Attribute]
    computing: Computing
    given: Given
    questions: Sequence[QuestionFinding]
    #: What lenses are held to.
    bounds: Bounds

    @property
    def roles(self) -> frozenset[str]:
        """The columns that there are."""
        return self.attributes[0].table.roles

    @property
    def confidence(self) -> float:
        """The level of intervals."""
        return 1 - self.policy.alpha

    def options(self, *name: str) -> dict[str, Any]:
        """Return what every lens takes; its seed is made of its name."""
        return {
            "confidence_level": self.confidence,
            "rng": seed_of(self.computing.seed, *name),
            "n_threads": self.computing.n_threads,
            "progress": self.computing.callback,
        }

    def bound(self, lens: str, attribute: str) -> Bound | None:
        """Return what a lens is held to in an attribute; None where it only informs."""
        return self.bounds.lens(lens, attribute)

    def coverage(self, one: Attribute, groups: Collection[Any]) -> float:
        """Return the share of all people who are in some groups of an attribute."""
        cells = one.table.cells(columns=())
        sizes = cells.group_sizes().items()
        return sum(n for key, n in sizes if label(key) in groups) / max(cells.n_rows, 1)

    def why_not(self, *, weights: bool = True) -> str | None:
        """Return what in the data stands in the way of a lens that takes rows, and of whom.

        ``weights`` says whether the lens takes weights and clusters. None takes strata.
        """
        table = self.attributes[0].table
        if not table.source.holds_rows:
            return "counts have no rows"
        for there, taken, what in (
            ("sample_weight" in table.roles, weights, "weights"),
            (bool(table.clusters), weights, "clusters"),
            (bool(table.strata), False, "strata"),
        ):
            if there and not taken:
                return f"takes no {what}"
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """The rows whose group is known, and which one it is."""

    rows: Positions
    #: By row that is known, its place among the groups.
    code: NDArray[np.intp]
    groups: Sequence[Any]

    @classmethod
    def of(cls, one: Attribute) -> People:
        """Find the people of an attribute."""
        found = one.table.rows(columns=())
        places = {group: place for place, group in enumerate(one.groups)}
        known = [places.get(label(key), -1) for key in found.cells.groups]
        code = np.array(known, dtype=np.intp)[found.group]
        rows = np.flatnonzero(code >= 0)
        return cls(rows=rows, code=code[rows], groups=one.groups)

    @property
    def names(self) -> NDArray[Any]:
        """The group of every row."""
        named = np.empty(len(self.groups), dtype=object)
        named[:] = self.groups
        return np.asarray(named[self.code])
