"""Comparing groups by rows or clusters of rows: ranks, ratios of sums, weighted counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.columns import count_not_finite
from ..data.groups import group_name, label
from ..data.labels import GroupKey
from ..data.rows import Rows
from ..errors import ArgumentError, NotMeasurableError
from ..inference.intervals import Bootstrap
from ..metrics.metric import Metric
from .counts import few_labels
from .problem import Evaluation, Problem
from .units import group_codes, make_units, positions_of

#: Below this many clusters in a group the sandwich variance is too small.
FEW_CLUSTERS = 40
#: Rows that are looked at together.
_PART = 1 << 18


@dataclass(kw_only=True)
class RowProblem(Problem):
    """Rows: ranks of scores, ratios of sums, and counts of weighted or clustered rows."""

    rows: Rows
    position: NDArray[np.int64]
    #: What exchanges groups within strata by itself: "label", "decision", "denominator".
    conditioning: str | None
    row_values: dict[str, NDArray[Any]] = field(init=False, repr=False)
    #: The native test made last: that of all groups is often asked for twice.
    _made: tuple[tuple[int, ...], _native.RowTest] | None = field(
        init=False, repr=False, default=None
    )

    def __post_init__(self) -> None:
        self.row_values = _row_values(self.metric, self.rows)
        self.evaluations = [
            Evaluation(*entry) for entry in self.native(range(len(self.keys))).evaluations()
        ]
        if self.rows.cluster is not None:
            self._check_clusters()
        self._check_measurable(self._rows_of)
        two_labels = self.metric.family == "ranks" or (
            self.metric.family == "counts" and not self.metric.is_proportion
        )
        if two_labels and "y_true" in self.rows.columns:
            self.note_few_labels(*self._labels())

    @classmethod
    def make(
        cls, rows: Rows, metric: Metric, keys: list[GroupKey], scaling: str, conditional: bool
    ) -> RowProblem:
        """Take the rows of some groups."""
        if metric.family not in ("ranks", "ratio", "counts"):
            design = "clusters" if rows.cluster is not None else "sample_weight"
            raise ArgumentError(
                f"{design} does not go with {metric.name}, a metric of family {metric.family}; "
                "accepted: metrics of counts, ranks, ratios, and callables"
            )
        position = positions_of(rows.cells, keys)
        sizes = rows.cells.group_sizes()
        # Rows of one cluster have several labels: clusters are exchanged as they are.
        own = metric.conditions_on if conditional and rows.cluster is None else None
        return cls(
            metric=metric,
            keys=keys,
            n_rows=[sizes[key] for key in keys],
            scaling=scaling,
            rows=rows,
            position=position,
            conditioning=own,
        )

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "stream"

    @property
    def stratified(self) -> bool:
        """Whether gaps are taken within strata of the user's."""
        return bool(self.rows.cells.strata_names)

    def n_used(self, position: int) -> int:
        """Return the rows in the denominator of a proportion; all rows for other metrics."""
        if not self.metric.is_proportion:
            return self.n_rows[position]
        fraction = self.metric.native.fraction
        assert fraction is not None
        inside = self.position[self.rows.group] == position
        return int((np.array(fraction[1])[_classes(self.rows)[inside]] > 0).sum())

    @property
    def is_proportion(self) -> bool:
        """Whether values are shares of rows that all count the same: not here."""
        return False

    def native(self, positions: Sequence[int]) -> _native.RowTest:
        """Return the native test of the groups at these positions."""
        chosen = tuple(positions)
        if self._made is None or self._made[0] != chosen:
            self._made = None
            self._made = (chosen, self._make(positions))
        return self._made[1]

    def _make(self, positions: Sequence[int]) -> _native.RowTest:
        codes, keep = group_codes(self.rows, self.position, positions)
        # Labels alone need no column of strata.
        within_labels = self.conditioning == "label" and "score" in self.row_values
        within_labels = within_labels and self.rows.stratum is None
        own = None if within_labels else self.own_strata_codes()
        units = make_units(self.rows, self.keys, codes, keep, positions, own)
        values = {name: value[keep] for name, value in self.row_values.items()}
        n_groups = len(positions)
        common = (units.group, n_groups, self.scaling, _native.Call(), units.stratum)
        if "score" in values:
            return _native.RowTest.auc(
                values["score"],
                values["label"],
                *common,
                values.get("weight"),
                units.of_row,
                within_labels,
            )
        if "counts" in values:
            counts = np.stack([units.sums(column) for column in values["counts"].T], axis=1)
            return _native.RowTest.counts(np.ascontiguousarray(counts), self.metric.native, *common)
        below = values.get("denominator")
        if below is None and units.of_row is not None:
            below = np.ones(len(values["numerator"]))
        return _native.RowTest.ratio(
            units.sums(values["numerator"]), None if below is None else units.sums(below), *common
        )

    def _labels(self) -> tuple[list[int], list[int]]:
        """Return the numbers of positive and negative labels of each group."""
        group, label = self.rows.group, self.rows.columns["y_true"]
        counts = np.zeros(2 * (1 + len(self.keys)), dtype=np.int64)
        for start in range(0, len(group), _PART):
            part = slice(start, start + _PART)
            # Rows of no group come first.
            place = 2 * (self.position[group[part]] + 1) + label[part]
            counts += np.bincount(place, minlength=len(counts))
        negative, positive = counts.reshape(-1, 2)[1:].T.tolist()
        return positive, negative

    def own_strata_codes(self) -> NDArray[np.uint32] | None:
        """Return the strata that the metric conditions on."""
        if self.conditioning is None:
            return None
        if self.conditioning == "denominator":
            fraction = self.metric.native.fraction
            assert fraction is not None
            return (np.array(fraction[1])[_classes(self.rows)] > 0).astype(np.uint32)
        column = "y_true" if self.conditioning == "label" else "y_pred"
        return self.rows.columns[column].astype(np.uint32)

    def draw_bootstrap(
        self,
        n_resamples: int,
        seed: int,
        n_threads: int | None,
        progress: Callable[[int], object] | None = None,
    ) -> Bootstrap:
        """Resample the rows, or the clusters, of every group."""
        k = len(self.keys)
        draws, call = _native.Draws(n_resamples, seed=seed), _native.Call(n_threads, progress)
        flat = self.native(range(k)).bootstrap(draws, call)
        both = flat.reshape(n_resamples, k, 2)
        return Bootstrap(both[:, :, 0], both[:, :, 1])

    def _rows_of(self, i: int) -> str:
        inside = self.position[self.rows.group] == i
        if self.metric.family == "ranks":
            labels = self.rows.columns["y_true"][inside]
            if self.rows.weight is not None:
                labels = labels[self.rows.weight[inside] > 0]
            n_positive = int(labels.sum())
            return few_labels(n_positive, len(labels) - n_positive)
        if self.rows.weight is not None and not self.rows.weight[inside].any():
            return f"{int(inside.sum())} rows, none of which has weight"
        units = "rows"
        n = int(inside.sum())
        if self.rows.cluster is not None:
            units, n = "clusters", len(np.unique(self.rows.cluster[inside]))
        what = self.metric.denominator_rows or "rows"
        return f"{n} {units}, or no weight on {what}"

    def _check_clusters(self) -> None:
        """Refuse groups of a single cluster, note those of few."""
        assert self.rows.cluster is not None
        for i, key in enumerate(self.keys):
            n = len(np.unique(self.rows.cluster[self.position[self.rows.group] == i]))
            if n < 2 and self.scaling == "unpooled":
                raise NotMeasurableError(
                    f"group {group_name(label(key))!r} has {n} cluster; a studentized "
                    f"{self.metric.name} of clusters needs at least 2. Name the groups to compare "
                    "with groups="
                )
            if n < FEW_CLUSTERS:
                self.notes.append(
                    f"{group_name(label(key))} has {n} clusters: with fewer than {FEW_CLUSTERS} "
                    "standard errors are too small and the interval is too short; the test "
                    "recomputes them in every replicate"
                )


def _classes(rows: Rows) -> NDArray[np.int64]:
    """Return 0 for tp, 1 for fp, 2 for fn, 3 for tn; a column that is absent counts as 0."""
    absent = np.zeros(len(rows.group), dtype=bool)
    label_, decision = (
        rows.columns.get(name, absent).astype(np.int64) for name in ("y_true", "y_pred")
    )
    return 2 * (1 - decision) + (1 - label_)


def _row_values(metric: Metric, rows: Rows) -> dict[str, NDArray[Any]]:
    """Return what the native test adds up: by row, with the weights multiplied in."""
    weight = rows.weight
    if metric.family == "ranks":
        label_ = rows.columns["y_true"].astype(bool, copy=False)
        values = {"score": rows.columns["y_score"], "label": label_}
        return values if weight is None else {**values, "weight": weight}
    ones = np.ones(len(rows.group)) if weight is None else weight
    if metric.family == "counts":
        classes = _classes(rows)
        fraction = metric.native.fraction
        if fraction is None:
            counts = np.zeros((len(classes), 4))
            counts[np.arange(len(classes)), classes] = ones
            return {"counts": counts}
        above, below = (np.array(part)[classes] * ones for part in fraction)
        return {"numerator": above, "denominator": below}
    above = row_value(metric, "numerator", rows.columns, len(rows.group))
    if weight is None:
        if metric.denominator is None:
            return {"numerator": above}
        below = row_value(metric, "denominator", rows.columns, len(rows.group))
        return {"numerator": above, "denominator": below}
    below = weight
    if metric.denominator is not None:
        below = weight * row_value(metric, "denominator", rows.columns, len(rows.group))
    return {"numerator": weight * above, "denominator": below}


def row_value(
    metric: Metric, argument: str, columns: dict[str, NDArray[Any]], n_rows: int
) -> NDArray[np.float64]:
    """Return the numerator or denominator of every row."""
    source = getattr(metric, argument)
    columns = {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}
    computed = columns[source] if isinstance(source, str) else source(columns)
    array = np.ascontiguousarray(computed, dtype=np.float64)
    n_bad = count_not_finite(array.ravel())[0]
    if array.shape != (n_rows,) or n_bad:
        raise ArgumentError(
            f"{argument} of {metric.name} gives an array of shape {array.shape} with "
            f"{n_bad} values that are not finite; accepted: one finite number for "
            f"each of the {n_rows} rows"
        )
    return array
