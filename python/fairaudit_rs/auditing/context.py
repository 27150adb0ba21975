"""The inputs that the lenses of an audit share: policy, model, features, and group membership."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.groups import group_label
from ..data.tables import AuditTable
from ..extremes.feature_tables import FeatureTable
from ..literals import LensName
from .findings import QuestionFinding
from .lens_tolerances import LensTolerance, LensTolerances
from .policy import Policy
from .questions import AuditedAttribute, ComputeOptions
from .seeds import seed_of

Positions = NDArray[np.intp]

#: The parts of a design that the standard errors of each lens take into account. With any other
#: part the lens is not run: it would treat rows as independent, with up to 21 % false fails.
DESIGNS: Mapping[LensName, tuple[str, ...]] = {
    "projection": ("weights",),
    "individual": ("weights", "clusters"),
    "influence": (),
    "extremes": (),
}


def design_refusal(lens: LensName, table: AuditTable) -> str | None:
    """Return the reason if a lens cannot use the design of the data, else None."""
    if not table.source.holds_rows:
        return "counts have no rows"
    present = {
        "weights": "sample_weight" in table.roles,
        "clusters": bool(table.clusters),
        "strata": bool(table.strata),
    }
    refused = [
        part for part, is_present in present.items() if is_present and part not in DESIGNS[lens]
    ]
    return f"takes no {' and no '.join(refused)}" if refused else None


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelInputs:
    """The model, its features and counterfactual scores, as far as they are given."""

    model: Any = None
    feature_table: FeatureTable | None = None
    has_counterfactuals: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditContext:
    """The context in which the lenses of an audit are run."""

    policy: Policy
    #: Single attributes, with one table behind them.
    attributes: Sequence[AuditedAttribute]
    compute_options: ComputeOptions
    model_inputs: ModelInputs
    questions: Sequence[QuestionFinding]
    #: The tolerances of lenses.
    lens_tolerances: LensTolerances

    @property
    def roles(self) -> frozenset[str]:
        """The arguments that are given as columns."""
        return self.attributes[0].table.roles

    @property
    def confidence(self) -> float:
        """The level of intervals."""
        return 1 - self.policy.alpha

    def options(self, *name: str) -> dict[str, Any]:
        """Return the options of every lens; the seed is derived from the name."""
        return {
            "confidence_level": self.confidence,
            "rng": seed_of(self.compute_options.seed, *name),
            "n_threads": self.compute_options.n_threads,
            "progress": self.compute_options.callback,
        }

    def lens_tolerance(self, lens: str, attribute: str) -> LensTolerance | None:
        """Return the tolerance of a lens for an attribute; None if it is informational."""
        return self.lens_tolerances.find(lens, attribute)

    def coverage(self, attribute: AuditedAttribute, groups: Collection[Any]) -> float:
        """Return the share of all people who are in some groups of an attribute, by weight."""
        people = attribute.table.people
        return people.share([key for key in people.n_people if group_label(key) in groups])

    def why_not(self, lens: LensName) -> str | None:
        """Return the reason if the lens cannot use the design of the data, else None."""
        return design_refusal(lens, self.attributes[0].table)


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupMembership:
    """The rows whose group is known, with their groups."""

    rows: Positions
    #: For each of these rows, the position of its group in `groups`.
    code: NDArray[np.intp]
    groups: Sequence[Any]

    @classmethod
    def from_attribute(cls, attribute: AuditedAttribute) -> GroupMembership:
        """Find the rows of each group of an attribute."""
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
