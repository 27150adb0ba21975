"""From the arguments of `projection_test` to criteria on rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..data.cells import Cells
from ..data.groups import choose_groups, find_group, group_name, label
from ..data.labels import GroupKey, Label
from ..data.rows import CodedRows
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError, DataError, NotMeasurableError
from ..models.distances import Distances, score_distance
from .criteria import Criterion
from .moves import Moves
from .notions import ALIASES, NOTIONS, RATES, Notion
from .problem import Criteria, RowCriteria, UnitCriteria
from .transport import MarginRows, Plan

#: Cells from here on are of rows that take no part.
_NO_CELL = 65_534
_MOST_UNITS = 32_000

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Question:
    """Criteria on rows, and what a result says about the data."""

    criteria: Criteria
    notion: str
    keys: list[GroupKey]
    #: Position of the group of every unit.
    group: NDArray[np.int64]
    features: tuple[str, ...]
    n_rows: int
    n_missing: int
    #: More than two groups and no reference: gaps have no direction.
    needs_reference: bool
    distances: Distances | None

    def group_sizes(self) -> dict[Any, int]:
        """Return the rows of each group that take part."""
        rows = self.criteria.tally.by_unit(self.criteria.tally.rows)
        sizes = np.bincount(self.group, weights=rows, minlength=len(self.keys))
        return {label(key): int(n) for key, n in zip(self.keys, sizes, strict=True)}

    def by_group(self, values: Array) -> Array:
        """Add up what was found for each unit, by group."""
        total = np.zeros((len(self.keys), values.shape[1]))
        np.add.at(total, self.group, values)
        return total

    def moves(self, plan: Plan) -> Moves:
        """Return the rows that move, with what is known about them."""
        columns, rows = self.criteria.columns, plan.rows
        weight = columns.weight
        cell = columns.cell[rows].astype(np.int64)
        unit = cell >> 1
        of_label = np.full(len(rows), -1)
        if isinstance(self.criteria, UnitCriteria):
            of_label = self.criteria.unit_label[unit]
        distances = self.distances
        return Moves(
            row=rows,
            fraction=plan.fraction,
            distance=columns.distance[rows],
            # With mean 1 over the rows that take part, as in the statistic.
            weight=np.ones(len(rows))
            if weight is None
            else weight[rows] * (self.criteria.n_rows / self.criteria.weight),
            from_decision=(cell & 1).astype(np.int8),
            group=self.group[unit],
            label=of_label.astype(np.int8),
            groups=tuple(map(label, self.keys)),
            feature_names=None if distances is None else distances.feature_names,
            _moved=(lambda: None) if distances is None else (lambda: distances.moved(rows)),
        )


@dataclass(frozen=True, kw_only=True)
class ProjectionDesign:
    """The arguments of `projection_test` that say what is tested."""

    y_true: Any
    y_pred: Any
    y_score: Any
    threshold: float
    distance: Any
    sensitive_features: Any
    data: Any
    notion: Any
    attributes: str
    groups: Sequence[Any] | None
    reference: Any
    sample_weight: Any
    pos_label: Label
    n_threads: int | None

    def pose(self) -> Question:
        """Check the arguments, read the data and make the criteria."""
        arguments.choice("attributes", self.attributes, ("crossed", "separate"))
        threshold = arguments.finite("threshold", self.threshold)
        if isinstance(self.data, Cells):
            raise ArgumentTypeError(
                "data is a Cells, which hold counts; projection_test needs the rows themselves"
            )
        if self.y_score is None and threshold != 0.5:
            raise ArgumentTypeError(
                f"threshold is {threshold:g} without y_score, which it goes with"
            )
        labels = self._labels()
        table = self._table()
        loaded = table.loaded()
        wanted = [name for name in ("y_true", "y_pred") if name in table.roles]
        if labels == (None,):
            wanted = [name for name in wanted if name != "y_true"]
        elif any(entry is not None for entry in labels) and "y_true" not in table.roles:
            raise ArgumentError(f"y_true is None; the notion {self.notion!r} needs it")
        if isinstance(self.notion, Notion):
            coded = loaded.combinations(wanted, self.pos_label)
            return self._of_notion(coded, wanted, loaded, threshold)
        # Nobody else holds the combinations, so that they can go when they are no longer needed.
        return self._of_groups(
            loaded.combinations(wanted, self.pos_label), labels, wanted, loaded, threshold
        )

    def _labels(self) -> tuple[int | None, ...]:
        """Return the labels whose rates must be equal."""
        if isinstance(self.notion, Notion):
            for name in ("groups", "reference"):
                if getattr(self, name) is not None:
                    raise ArgumentTypeError(f"{name} does not go with a notion of your own")
            return (None,)
        name = (
            ALIASES.get(self.notion, self.notion) if isinstance(self.notion, str) else self.notion
        )
        if not isinstance(name, str) or name not in NOTIONS:
            accepted = ", ".join(map(repr, NOTIONS))
            raise ArgumentError(f"notion is {self.notion!r}; accepted: {accepted}, or a Notion")
        return NOTIONS[name]

    def _table(self) -> AuditTable:
        distance, y_pred = self.distance, self.y_pred
        features = self.sensitive_features
        if isinstance(distance, Distances):
            if self.data is not None:
                raise ArgumentTypeError(
                    "distance is a Distances and data is given; with data= it is the name of a "
                    "column"
                )
            distance = distance.values
        if distance is None and self.y_score is None:
            raise ArgumentError(
                "distance and y_score are None; accepted: distance=model.distance(X), distances of "
                "your own, or y_score"
            )
        if distance is not None and self.y_score is not None:
            raise ArgumentTypeError("distance and y_score are both given; pass one")
        if y_pred is None and self.y_score is None and not isinstance(self.distance, Distances):
            raise ArgumentError(
                "y_pred is None; accepted: decisions, a distance from a model, which knows them, "
                "or y_score"
            )
        if features is None and isinstance(self.notion, Notion):
            features = ()
        return AuditTable.make(
            data=self.data,
            y_true=self.y_true,
            y_pred=y_pred,
            y_score=self.y_score,
            sensitive_features=features,
            sample_weight=self.sample_weight,
            distance=distance,
        )

    def _distances(self, table: AuditTable, threshold: float) -> tuple[Distances | None, Array]:
        """Return what knows the distances, and the distances."""
        if isinstance(self.distance, Distances):
            return self.distance, self.distance.values
        if self.distance is not None:
            return None, table.numbers("distance")
        score = table.numbers("y_score")
        if np.isnan(score).any():
            row = int(np.isnan(score).argmax())
            raise DataError(f"y_score is missing in row {row}; accepted: a score for every row")
        found = score_distance(score, threshold)
        return found, found.values

    def _columns(
        self,
        cell: NDArray[np.uint16],
        wanted: Sequence[str],
        table: AuditTable,
        threshold: float,
    ) -> tuple[MarginRows, Distances | None]:
        """Return the rows for the native module; cells know the decision when there is y_pred."""
        distances, given = self._distances(table, threshold)
        if "y_pred" not in wanted:
            assert distances is not None
            cell += distances.decisions
        elif distances is not None and self.y_pred is not None:
            differ = (cell & 1) != distances.decisions
            if differ.any():
                source = (
                    "y_score >= threshold" if self.y_score is not None else "the distance's model"
                )
                raise DataError(
                    f"y_pred differs from {source} in {int(differ.sum()):,} of {len(differ):,} "
                    f"rows (the first is row {int(differ.argmax())}); accepted: the decisions that "
                    "the distances belong to"
                )
        values = given if distances is None else distances.values
        weight = table.weights()
        if weight is not None:
            # Their scale plays no part; near 1 nothing over- or underflows.
            weight = weight / weight.max()
            weight /= weight.mean()
        return MarginRows(np.ascontiguousarray(values), cell, weight), distances

    # -- notions of groups -------------------------------------------------------------------

    def _of_groups(
        self,
        coded: CodedRows,
        labels: tuple[int | None, ...],
        wanted: Sequence[str],
        table: AuditTable,
        threshold: float,
    ) -> Question:
        separate = self.attributes == "separate" and len(coded.cells.sensitive_features) > 1
        keys = self._keys(coded, separate)
        kinds = (0, 1) if "y_true" in wanted else (None,)
        unit_of = self._units(coded, keys, kinds)
        n_units = len(keys) * len(kinds)
        if n_units > _MOST_UNITS:
            raise DataError(f"{len(keys):,} groups; accepted: at most {_MOST_UNITS // 2:,}")
        decided = coded.named.y_pred if "y_pred" in wanted else 0
        code = np.where(unit_of < 0, _NO_CELL, 2 * unit_of) + decided
        # The combinations are as large as the labels: they go before the distances come.
        cell = code.astype(np.uint16)[coded.combination]
        cells = coded.cells
        sizes = cells.group_sizes()
        del coded
        columns, distances = self._columns(cell, wanted, table, threshold)
        unit_label = np.tile([-1 if kind is None else kind for kind in kinds], len(keys))
        unit_group = np.repeat(np.arange(len(keys)), len(kinds))
        if separate:
            criteria, undirected = self._separate(cells, keys, labels, unit_group, unit_label)
            blocks = None
        else:
            base_group = self._base(keys, sizes)
            criteria, blocks = _crossed(keys, base_group, labels, unit_group, unit_label)
            undirected = len(keys) > 2 and self.reference is None
        made = UnitCriteria(
            columns=columns,
            n_units=n_units,
            n_threads=self.n_threads,
            criteria=tuple(criteria),
            unit_label=unit_label,
            blocks=blocks,
        )
        _check_rows(made)
        return Question(
            criteria=made,
            notion=ALIASES.get(self.notion, self.notion),
            keys=keys,
            group=unit_group,
            features=cells.sensitive_features,
            n_rows=cells.n_rows,
            n_missing=cells.n_rows - sum(sizes.values()),
            needs_reference=undirected,
            distances=distances,
        )

    def _keys(self, coded: CodedRows, separate: bool) -> list[GroupKey]:
        if not separate:
            if isinstance(self.reference, Mapping):
                raise ArgumentTypeError(
                    "reference is a dict; that goes with attributes='separate' and several features"
                )
            return choose_groups(coded.cells, self.groups, self.reference)
        if self.groups is not None:
            raise ArgumentTypeError("groups does not go with attributes='separate'")
        if self.reference is not None and not isinstance(self.reference, Mapping):
            raise ArgumentTypeError(
                f"reference is {self.reference!r} with attributes='separate'; accepted: a dict "
                "with a group of each attribute"
            )
        keys = list(coded.cells.group_sizes())
        for at, name in enumerate(coded.cells.sensitive_features):
            if len({key[at] for key in keys}) < 2:
                raise DataError(
                    f"only one group of {name} in the rows whose features are all known"
                )
        return keys

    def _units(
        self, coded: CodedRows, keys: list[GroupKey], kinds: Sequence[int | None]
    ) -> NDArray[np.int64]:
        """Return the unit of every combination, -1 of those that take no part."""
        named = coded.named
        place = {key: i for i, key in enumerate(keys)}
        group = np.array([place.get(key, -1) for key in named.groups])[named.group]
        if kinds == (None,):
            return group
        return np.where(group < 0, -1, group * len(kinds) + named.y_true)

    def _base(self, keys: list[GroupKey], sizes: Mapping[GroupKey, int]) -> int:
        """Return the group that the others are compared with; the largest for want of another."""
        if self.reference is not None or len(keys) == 2:
            return len(keys) - 1
        return int(np.argmax([sizes[key] for key in keys]))

    def _separate(
        self,
        cells: Cells,
        keys: list[GroupKey],
        labels: tuple[int | None, ...],
        unit_group: NDArray[np.int64],
        unit_label: NDArray[np.int64],
    ) -> tuple[list[Criterion], bool]:
        """Return the criteria of each attribute by itself, and whether some need a reference."""
        names, sizes = cells.sensitive_features, cells.group_sizes()
        undirected = False
        reference = dict(self.reference or {})
        for name in reference:
            if name not in names:
                raise ArgumentError(f"reference names {name!r}; accepted: {', '.join(names)}")
        criteria = []
        for entry in labels:
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
                here = np.ones(len(unit_label), bool) if entry is None else unit_label == entry
                criteria += [
                    Criterion(
                        label=entry,
                        first=level,
                        second=base,
                        of_first=of_level[level][unit_group] & here,
                        of_second=of_level[base][unit_group] & here,
                        attribute=name,
                    )
                    for level in levels
                    if level != base
                ]
        return criteria, undirected

    # -- notions of the user's ---------------------------------------------------------------

    def _of_notion(
        self, coded: CodedRows, wanted: Sequence[str], table: AuditTable, threshold: float
    ) -> Question:
        if self.attributes != "crossed":
            raise ArgumentTypeError("attributes does not go with a notion of your own")
        keys = sorted(set(coded.named.groups), key=str)
        place = {key: i for i, key in enumerate(keys)}
        group = np.array([place[key] for key in coded.named.groups])[coded.named.group]
        decided = coded.named.y_pred if "y_pred" in wanted else 0
        cell = (2 * group + decided).astype(np.uint16)[coded.combination]
        columns, distances = self._columns(cell, wanted, table, threshold)
        made = RowCriteria(
            columns=columns,
            n_units=len(keys),
            n_threads=self.n_threads,
            notion=self.notion,
            values=self.notion.evaluate(cell & 1, columns.weight),
        )
        return Question(
            criteria=made,
            notion=self.notion.name,
            keys=keys,
            group=np.arange(len(keys)),
            features=coded.cells.sensitive_features,
            n_rows=len(cell),
            n_missing=0,
            needs_reference=False,
            distances=distances,
        )


def _crossed(
    keys: list[GroupKey],
    base: int,
    labels: tuple[int | None, ...],
    unit_group: NDArray[np.int64],
    unit_label: NDArray[np.int64],
) -> tuple[list[Criterion], list[tuple[list[int], list[int]]]]:
    """Return the criteria of groups against one of them, and the blocks that they make."""
    criteria: list[Criterion] = []
    blocks = []
    others = [i for i in range(len(keys)) if i != base]
    for entry in labels:
        here = np.ones(len(unit_label), bool) if entry is None else unit_label == entry
        units = [np.flatnonzero((unit_group == i) & here)[0] for i in (base, *others)]
        at = list(range(len(criteria), len(criteria) + len(others)))
        blocks.append((list(map(int, units)), at))
        criteria += [
            Criterion(
                label=entry,
                first=label(keys[i]),
                second=label(keys[base]),
                of_first=(unit_group == i) & here,
                of_second=(unit_group == base) & here,
            )
            for i in others
        ]
    return criteria, blocks


def _check_rows(criteria: UnitCriteria) -> None:
    """Raise when some rate has no rows."""
    for criterion, *sizes in zip(criteria.criteria, *criteria.sizes, strict=True):
        for name, size in zip((criterion.first, criterion.second), sizes, strict=True):
            if not size > 0:
                kind = {1: "a positive label", 0: "a negative label", None: "any weight"}
                raise NotMeasurableError(
                    f"group {group_name(name)!r} has no rows with {kind[criterion.label]}; "
                    f"{RATES[criterion.label]} is not defined there. Name the groups to compare "
                    "with groups=, or choose another notion"
                )
