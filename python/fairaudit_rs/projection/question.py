"""Read the arguments of `projection_test` and build the criteria."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..data.arrays import ArraySource
from ..data.cells import Cells
from ..data.columns import column_array
from ..data.groups import attribute_name, choose_groups, find_group, group_label
from ..data.index import rows_by_label
from ..data.labels import GroupKey, Label
from ..data.rows import EncodedRows
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError, DataError, NotMeasurableError
from ..literals import AttributeCombination
from ..models.distances import Distances, margins_of_scores
from ..report.notes import Note
from .criteria import NO_CELL, RateCriterion, by_unit
from .moves import Moves, unknown_destination
from .notions import ALIASES, NOTIONS, RATES, Notion
from .problem import Criteria, RowCriteria, UnitCriteria
from .transport import MarginRows, TransportPlan

_MOST_UNITS = 32_000
#: The largest distance must lie between the inverse of this and this, to avoid overflow.
_FARTHEST = 1e305

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ProjectionQuestion:
    """The criteria, with the facts about the data that the result reports."""

    criteria: Criteria
    notion: str
    keys: list[GroupKey]
    #: The position of the group of every unit in `keys`.
    group: NDArray[np.int64]
    features: tuple[str, ...]
    n_rows: int
    n_missing: int
    #: Whether gaps have no direction: more than two groups and no reference.
    needs_reference: bool
    distances: Distances | None
    #: The pandas index of the rows.
    index: Any = None
    #: Notes on how the rows were read.
    notes: tuple[Note, ...] = ()

    def group_sizes(self) -> dict[Any, int]:
        """Return the number of eligible rows of each group."""
        rows = by_unit(self.criteria.tally.rows)
        sizes = np.bincount(self.group, weights=rows, minlength=len(self.keys))
        return {group_label(key): int(n) for key, n in zip(self.keys, sizes, strict=True)}

    def by_group(self, values: Array) -> Array:
        """Return sums of values by unit over the units of each group."""
        total = np.zeros((len(self.keys), values.shape[1]))
        np.add.at(total, self.group, values)
        return total

    def moves(self, plan: TransportPlan) -> Moves:
        """Return the rows that move in a plan, with their groups, labels and weights."""
        data, rows = self.criteria.rows, plan.rows
        weight, distances = data.weight, self.distances
        cell = data.cell[rows].astype(np.int64)
        unit = cell >> 1
        return Moves(
            row=rows,
            fraction=plan.fraction,
            distance=data.distance[rows],
            # Scaled to mean 1 over all eligible rows, as in the statistic.
            weight=np.ones(len(rows))
            if weight is None
            else weight[rows] * (self.criteria.n_rows / self.criteria.weight),
            from_decision=(cell & 1).astype(np.int8),
            group=self.group[unit],
            label=self.criteria.unit_label[unit].astype(np.int8),
            groups=tuple(map(group_label, self.keys)),
            feature_names=None if distances is None else distances.feature_names,
            attribute=attribute_name(self.features),
            index=rows_by_label(self.index, rows),
            _compute_x=unknown_destination if distances is None else partial(distances.moved, rows),
        )


@dataclass(frozen=True, kw_only=True)
class _CriteriaReading:
    """The settings for reading a table in memory, with methods that read its parts."""

    table: AuditTable
    labels: tuple[int | None, ...]
    #: Distances from a model.
    distances: Distances | None
    threshold: float
    pos_label: Label
    n_threads: int | None

    @property
    def wanted(self) -> list[str]:
        """The columns that define cells together with the groups."""
        without_labels = self.labels == (None,)
        names = ("y_pred",) if without_labels else ("y_true", "y_pred")
        return [name for name in names if name in self.table.roles]

    def combinations(self) -> EncodedRows:
        """Return the combination of groups, labels and decisions of every row."""
        return self.table.combinations(self.wanted, self.pos_label, self.n_threads)

    def rows(self, cell: NDArray[np.uint16], n_cells: int) -> tuple[MarginRows, Distances | None]:
        """Return the rows and distances; decisions are added to cells if there is no y_pred."""
        distances, values = self._distances()
        _check_size(values)
        if "y_pred" not in self.table.roles:
            assert distances is not None
            cell += distances.decisions
        elif distances is not None:
            self._check_decisions(cell, distances)
        weight = self.table.weights()
        if weight is not None:
            # The scale of weights is irrelevant; near 1 nothing over- or underflows.
            weight = weight / weight.max()
            # Sort, so that the mean does not depend on the order of the rows.
            weight /= np.sort(weight).mean()
        rows = MarginRows(distance=values, cell=cell, weight=weight, n_cells=n_cells)
        return rows, distances

    def _distances(self) -> tuple[Distances | None, Array]:
        """Return the `Distances` of a model or of scores, if any, and the distances."""
        if self.distances is not None:
            return self.distances, self.distances.values
        if "distance" in self.table.roles:
            return None, self.table.numbers("distance")
        distances = margins_of_scores(self.table.numbers("y_score"), self.threshold)
        return distances, distances.values

    def _check_decisions(self, cell: NDArray[np.uint16], distances: Distances) -> None:
        differ = (cell & 1) != distances.decisions
        if differ.any():
            scored = "y_score" in self.table.roles
            source = "y_score >= threshold" if scored else "the distance's model"
            raise DataError(
                f"y_pred differs from {source} in {int(differ.sum()):,} of {len(differ):,} "
                f"rows (the first is row {int(differ.argmax())}); accepted: the decisions that "
                "the distances belong to",
                argument="y_pred",
            )


def _check_size(distance: Array) -> None:
    """Raise if sums of distances, or their inverses, would overflow."""
    largest = float(distance.max(initial=0.0))
    if math.isinf(largest):
        # Rows that cannot move have an infinite distance.
        largest = float(distance.max(initial=0.0, where=np.isfinite(distance)))
    if largest and not math.isnan(largest) and not 1 / _FARTHEST <= largest <= _FARTHEST:
        raise DataError(
            f"the largest distance to the boundary is {largest:g}; accepted: from "
            f"{1 / _FARTHEST:g} to {_FARTHEST:g}. Rescale the scores or distances.",
            argument="distance",
        )


def pose_notion(
    table: AuditTable,
    notion: str | Notion,
    *,
    distances: Distances | None = None,
    threshold: float = 0.5,
    attributes: str = "crossed",
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    pos_label: Label = None,
    n_threads: int | None = None,
    exchanging: bool = False,
) -> ProjectionQuestion:
    """Read the rows that a notion needs from a table, and build its criteria.

    ``distances`` are those of the table, if they come from a model. ``exchanging``: whether
    decisions will be permuted within the strata of a user's `Notion`.
    """
    arguments.choice("attributes", attributes, get_args(AttributeCombination))
    threshold = arguments.finite("threshold", threshold)
    table = table.loaded("projection_test")
    if "y_score" not in table.roles and threshold != 0.5:
        raise ArgumentTypeError(
            f"threshold is {threshold:g} without y_score. Pass y_score=, or remove the threshold.",
            argument="threshold",
            mentions=("y_score",),
        )
    labels = _labels(notion, groups, reference)
    _check_roles(table, notion, labels, distances)
    reading = _CriteriaReading(
        table=table,
        labels=labels,
        distances=distances,
        threshold=threshold,
        pos_label=pos_label,
        n_threads=n_threads,
    )
    if isinstance(notion, Notion):
        if attributes != "crossed":
            raise ArgumentTypeError(
                "attributes cannot be used with a Notion object. Remove it.", argument="attributes"
            )
        return _pose_user_notion(reading, notion, exchanging)
    separate = attributes == "separate" and len(table.sensitive_features) > 1
    choice = _GroupChoice(separate=separate, groups=groups, reference=reference)
    return _pose_group_notion(reading, choice, ALIASES.get(notion, notion))


def _labels(notion: Any, groups: Any, reference: Any) -> tuple[int | None, ...]:
    """Return the labels for which rates must be equal."""
    if isinstance(notion, Notion):
        for name, value in (("groups", groups), ("reference", reference)):
            if value is not None:
                raise ArgumentTypeError(
                    f"{name} cannot be used with a Notion object. Remove it.", argument=name
                )
        return (None,)
    name = ALIASES.get(notion, notion) if isinstance(notion, str) else notion
    if not isinstance(name, str) or name not in NOTIONS:
        accepted = ", ".join(map(repr, NOTIONS))
        raise ArgumentError(
            f"notion is {notion!r}; accepted: {accepted}, or a Notion object", argument="notion"
        )
    return NOTIONS[name]


def _check_roles(
    table: AuditTable,
    notion: str | Notion,
    labels: tuple[int | None, ...],
    distances: Distances | None,
) -> None:
    """Raise if a table lacks a column that the projection needs."""
    roles = table.roles
    if not roles & {"distance", "y_score"}:
        raise ArgumentError(
            "distance and y_score are None. Pass distance=model.distance(X), distances of your "
            "own, or y_score=.",
            argument="distance",
            mentions=("y_score",),
            code="missing-argument",
        )
    if roles >= {"distance", "y_score"}:
        raise ArgumentTypeError(
            "distance and y_score are both given. Pass one of them.",
            argument="distance",
            mentions=("y_score",),
            code="conflicting-arguments",
        )
    if not roles & {"y_pred", "y_score"} and distances is None:
        raise ArgumentError(
            "y_pred is None. Pass y_pred=, y_score=, or distance=model.distance(X), which includes "
            "the decisions.",
            argument="y_pred",
            mentions=("y_score", "distance"),
            code="missing-argument",
        )
    if labels != (None,) and "y_true" not in roles:
        raise ArgumentError(
            f"y_true is None, but the notion {notion!r} needs labels. Pass y_true=.",
            argument="y_true",
            code="missing-argument",
            needed_by=f"the notion {notion!r}",
        )


# -- notions of groups -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _GroupChoice:
    """The choice of the groups and the reference."""

    #: Whether each attribute is tested by itself.
    separate: bool
    groups: Sequence[Any] | None
    reference: Any

    def keys(self, coded: EncodedRows) -> list[GroupKey]:
        """Return the groups; a named reference comes last."""
        if not self.separate:
            if isinstance(self.reference, Mapping):
                raise ArgumentTypeError(
                    "reference is a dict, which needs attributes='separate' and several sensitive "
                    "features. Pass a single group.",
                    argument="reference",
                    mentions=("attributes",),
                )
            return choose_groups(coded.cells, self.groups, self.reference)
        if self.groups is not None:
            raise ArgumentTypeError(
                "groups cannot be used with attributes='separate'. Remove one of them.",
                argument="groups",
                mentions=("attributes",),
                code="conflicting-arguments",
            )
        if self.reference is not None and not isinstance(self.reference, Mapping):
            raise ArgumentTypeError(
                f"reference is {self.reference!r} with attributes='separate'; accepted: a dict "
                "of one group per attribute",
                argument="reference",
                mentions=("attributes",),
            )
        keys = list(coded.cells.group_sizes())
        for at, name in enumerate(coded.cells.sensitive_features):
            if len({key[at] for key in keys}) < 2:
                raise DataError(
                    f"only one group of {name} in the rows without missing sensitive features. "
                    f"Remove {name}, or pass rows of at least two groups.",
                    argument="sensitive_features",
                )
        return keys

    def base(self, keys: list[GroupKey], sizes: Mapping[GroupKey, int]) -> int:
        """Return the position of the reference group, by default the largest."""
        if self.reference is not None or len(keys) == 2:
            return len(keys) - 1
        return int(np.argmax([sizes[key] for key in keys]))


def _pose_group_notion(
    reading: _CriteriaReading, choice: _GroupChoice, notion: str
) -> ProjectionQuestion:
    cell, cells, keys, kinds = _cells_of_groups(reading, choice)
    sizes, n_units = cells.group_sizes(), len(keys) * len(kinds)
    rows, distances = reading.rows(cell, 2 * n_units)
    unit_label = np.tile([-1 if kind is None else kind for kind in kinds], len(keys))
    unit_group = np.repeat(np.arange(len(keys)), len(kinds))
    blocks = None
    if choice.separate:
        criteria, undirected = _separate_criteria(
            cells, keys, choice.reference, reading.labels, unit_group, unit_label
        )
    else:
        base = choice.base(keys, sizes)
        criteria, blocks = _crossed_criteria(keys, base, reading.labels, unit_group, unit_label)
        undirected = len(keys) > 2 and choice.reference is None
    unit_criteria = UnitCriteria(
        rows=rows,
        n_threads=reading.n_threads,
        criteria=tuple(criteria),
        labels=unit_label,
        blocks=blocks,
        features=cells.sensitive_features,
    )
    _check_rows(unit_criteria)
    return ProjectionQuestion(
        criteria=unit_criteria,
        notion=notion,
        keys=keys,
        group=unit_group,
        features=cells.sensitive_features,
        n_rows=cells.n_rows,
        n_missing=cells.n_rows - sum(sizes.values()),
        needs_reference=undirected,
        distances=distances,
        index=reading.table.index,
        notes=tuple(cells.notes),
    )


def _cells_of_groups(
    reading: _CriteriaReading, choice: _GroupChoice
) -> tuple[NDArray[np.uint16], Cells, list[GroupKey], Sequence[int | None]]:
    """Return the cell of every row, the groups, and the labels; each pair of these is a unit.

    The encoded rows are large, so they are released here, before the distances are read.
    """
    coded = reading.combinations()
    keys = choice.keys(coded)
    kinds: Sequence[int | None] = (0, 1) if "y_true" in reading.wanted else (None,)
    n_units = len(keys) * len(kinds)
    if n_units > _MOST_UNITS:
        raise DataError(
            f"sensitive_features makes {len(keys):,} groups; accepted: at most "
            f"{_MOST_UNITS // 2:,}",
            argument="sensitive_features",
        )
    named = coded.named
    place = {key: i for i, key in enumerate(keys)}
    group = np.array([place.get(key, -1) for key in named.groups])[named.group]
    unit = group if len(kinds) == 1 else group * len(kinds) + named.y_true
    decided = named.y_pred if "y_pred" in reading.wanted else 0
    # Rows without a group have a code of at least NO_CELL, whose last bit is the decision: it is
    # still checked against the scores.
    code = (np.where(group < 0, NO_CELL, 2 * unit) + decided).astype(np.uint16)
    return code[coded.combination], coded.cells, keys, kinds


def _separate_criteria(
    cells: Cells,
    keys: list[GroupKey],
    references: Any,
    labels: tuple[int | None, ...],
    unit_group: NDArray[np.int64],
    unit_label: NDArray[np.int64],
) -> tuple[list[RateCriterion], bool]:
    """Return the criteria of each attribute by itself, and whether any needs a reference."""
    names, sizes = cells.sensitive_features, cells.group_sizes()
    undirected = False
    reference = dict(references or {})
    for name in reference:
        if name not in names:
            raise ArgumentError(
                f"reference names {name!r}; accepted: {', '.join(names)}", argument="reference"
            )
    criteria = []
    for label in labels:
        for at, name in enumerate(names):
            levels = list(dict.fromkeys(key[at] for key in sorted(keys, key=str)))
            of_level = {level: np.array([key[at] == level for key in keys]) for level in levels}
            if name in reference:
                base = find_group("reference", reference[name], [(lv,) for lv in levels])[0]
            elif len(levels) == 2:
                base = levels[1]
            else:
                rows = [sum(sizes[k] for k in keys if k[at] == level) for level in levels]
                base, undirected = levels[int(np.argmax(rows))], True
            has_label = np.ones(len(unit_label), bool) if label is None else unit_label == label
            criteria += [
                RateCriterion(
                    label=label,
                    first=level,
                    second=base,
                    of_first=of_level[level][unit_group] & has_label,
                    of_second=of_level[base][unit_group] & has_label,
                    attribute=name,
                )
                for level in levels
                if level != base
            ]
    return criteria, undirected


# -- user-defined notions --------------------------------------------------------------------


def _pose_user_notion(
    reading: _CriteriaReading, notion: Notion, exchanging: bool
) -> ProjectionQuestion:
    coded = reading.combinations()
    keys = sorted(set(coded.named.groups), key=str)
    place = {key: i for i, key in enumerate(keys)}
    group = np.array([place[key] for key in coded.named.groups])[coded.named.group]
    decided = coded.named.y_pred if "y_pred" in reading.wanted else 0
    cell = (2 * group + decided).astype(np.uint16)[coded.combination]
    rows, distances = reading.rows(cell, 2 * len(keys))
    criteria = RowCriteria(
        rows=rows,
        n_threads=reading.n_threads,
        notion=notion,
        values=notion.evaluate(cell & 1, rows.weight),
        stratum=_strata(notion, len(rows)) if exchanging else None,
    )
    return ProjectionQuestion(
        criteria=criteria,
        notion=notion.name,
        keys=keys,
        group=np.arange(len(keys)),
        features=coded.cells.sensitive_features,
        n_rows=len(rows),
        n_missing=0,
        needs_reference=False,
        distances=distances,
        index=reading.table.index,
    )


def _strata(notion: Notion, n_rows: int) -> NDArray[np.uint32] | None:
    """Return the codes of the strata of a notion; None without strata."""
    if notion.strata is None:
        return None
    column = column_array("strata", notion.strata)
    if len(column) != n_rows:
        raise DataError(
            f"strata has {len(column):,} rows; the data have {n_rows:,}. Pass one stratum per row.",
            argument="strata",
        )
    return ArraySource({"strata": column}).cluster_codes(["strata"], ["strata"])


def _crossed_criteria(
    keys: list[GroupKey],
    base: int,
    labels: tuple[int | None, ...],
    unit_group: NDArray[np.int64],
    unit_label: NDArray[np.int64],
) -> tuple[list[RateCriterion], list[tuple[list[int], list[int]]]]:
    """Return the criteria of all groups against the reference, and their blocks."""
    criteria: list[RateCriterion] = []
    blocks = []
    others = [i for i in range(len(keys)) if i != base]
    for label in labels:
        has_label = np.ones(len(unit_label), bool) if label is None else unit_label == label
        units = [np.flatnonzero((unit_group == i) & has_label)[0] for i in (base, *others)]
        at = list(range(len(criteria), len(criteria) + len(others)))
        blocks.append((list(map(int, units)), at))
        criteria += [
            RateCriterion(
                label=label,
                first=group_label(keys[i]),
                second=group_label(keys[base]),
                of_first=(unit_group == i) & has_label,
                of_second=(unit_group == base) & has_label,
            )
            for i in others
        ]
    return criteria, blocks


def _check_rows(criteria: UnitCriteria) -> None:
    """Raise if the denominator of a rate is empty."""
    for criterion, *sizes in zip(criteria.criteria, *criteria.sizes, strict=True):
        for name, size in zip((criterion.first, criterion.second), sizes, strict=True):
            if not size > 0:
                kind = {1: "a positive label", 0: "a negative label", None: "any weight"}
                raise NotMeasurableError(
                    f"group {criteria.name_of(criterion, name)!r} has no rows with "
                    f"{kind[criterion.label]}; "
                    f"{RATES[criterion.label]} is not defined there. Name the groups to compare "
                    "with groups=, or choose another notion.",
                    argument="notion",
                    mentions=("groups",),
                )
