"""The context of the lenses in an audit: a model and its rows, and people of known groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.groups import group_label
from ..data.tables import AuditTable
from ..extremes.forms import FeatureForm
from ..literals import LensName
from .findings import QuestionFinding
from .lens_tolerances import LensTolerance, LensTolerances
from .policy import Policy
from .questions import AuditedAttribute, ComputeOptions
from .seeds import seed_of

Positions = NDArray[np.intp]

#: By lens, the parts of a design that its errors take into account. With any other part it is not
#: run: rows would be read as independent, and false fails come in up to 21 % of audits.
DESIGNS: Mapping[LensName, tuple[str, ...]] = {
    "projection": ("weights",),
    "individual": ("weights", "clusters"),
    "influence": (),
    "extremes": (),
}


def design_refusal(lens: LensName, table: AuditTable) -> str | None:
    """Return which part of the data's design a lens does not take, or None."""
    if not table.source.holds_rows:
        return "counts have no rows"
    present = {
        "weights": "sample_weight" in table.roles,
        "clusters": bool(table.clusters),
        "strata": bool(table.strata),
    }
    refused = [part for part, there in present.items() if there and part not in DESIGNS[lens]]
    return f"takes no {' and no '.join(refused)}" if refused else None


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelInputs:
    """A model, the rows that it takes, and scores with an attribute flipped: what there is."""

    model: Any = None
    form: FeatureForm | None = None
    has_counterfactuals: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditContext:
    """The context in which the lenses of an audit are run."""

    policy: Policy
    #: Single attributes, with one table behind them.
    attributes: Sequence[AuditedAttribute]
    computing: ComputeOptions
    given: ModelInputs
    questions: Sequence[QuestionFinding]
    #: What lenses are held to.
    bounds: LensTolerances

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

    def bound(self, lens: str, attribute: str) -> LensTolerance | None:
        """Return what a lens is held to in an attribute; None where it only informs."""
        return self.bounds.lens(lens, attribute)

    def coverage(self, attribute: AuditedAttribute, groups: Collection[Any]) -> float:
        """Return the share of all people who are in some groups of an attribute, by weight."""
        people = attribute.table.people
        return people.share([key for key in people.number if group_label(key) in groups])

    def why_not(self, lens: LensName) -> str | None:
        """Return which part of the data's design stands in the way of a lens, or None."""
        return design_refusal(lens, self.attributes[0].table)


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupMembership:
    """The rows whose group is known, and which one it is."""

    rows: Positions
    #: By row that is known, its place among the groups.
    code: NDArray[np.intp]
    groups: Sequence[Any]

    @classmethod
    def from_attribute(cls, attribute: AuditedAttribute) -> GroupMembership:
        """Find the people of an attribute."""
        found = attribute.table.rows(columns=())
        places = {group: place for place, group in enumerate(attribute.groups)}
        known = [places.get(group_label(key), -1) for key in found.cells.groups]
        code = np.array(known, dtype=np.intp)[found.group]
        rows = np.flatnonzero(code >= 0)
        return cls(rows=rows, code=code[rows], groups=attribute.groups)

    @property
    def names(self) -> NDArray[Any]:
        """The group of every row."""
        named = np.empty(len(self.groups), dtype=object)
        named[:] = self.groups
        return np.asarray(named[self.code])
