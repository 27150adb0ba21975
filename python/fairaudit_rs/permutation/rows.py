"""Comparing groups by rows or clusters of rows: ranks, ratios of sums, weighted counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.groups import group_name, label
from ..data.labels import GroupKey
from ..data.rows import Rows
from ..errors import ArgumentError, NotMeasurableError
from ..metrics.metric import Metric
from ..metrics.row_values import RowValues
from .doubts import mean_doubts, strata_doubts, weight_doubts
from .problem import LabelledProblem
from .relabelling import Audits, Resampled, Tilted, TiltedRows
from .units import Regrouping, group_codes, make_units, positions_of

#: Below this many clusters in a group the sandwich variance is too small.
FEW_CLUSTERS = 40
#: Rows that are looked at together.
_PART = 1 << 18


@dataclass(frozen=True, kw_only=True, eq=False)
class RowProblem(LabelledProblem):
    """Rows: ranks of scores, ratios of sums, and counts of weighted or clustered rows."""

    rows: Rows
    position: NDArray[np.int64]
    #: What exchanges groups within strata by itself: "label", "decision", "denominator".
    conditioning: str | None

    @classmethod
    def make(
        cls,
        rows: Rows,
        metric: Metric,
        keys: Sequence[GroupKey],
        scaling: str,
        conditional: bool,
        n_threads: int | None = None,
    ) -> RowProblem:
        """Take the rows of some groups."""
        if not metric.kind.takes_weights:
            design = "clusters" if rows.cluster is not None else "sample_weight"
            raise ArgumentError(
                f"{design} does not go with {metric.name}, a metric of family {metric.family}; "
                "accepted: metrics of counts, ranks, ratios, and callables"
            )
        sizes = rows.cells.group_sizes()
        return cls(
            metric=metric,
            keys=tuple(keys),
            n_rows=tuple(sizes[key] for key in keys),
            scaling=scaling,
            n_threads=n_threads,
            rows=rows,
            position=positions_of(rows.cells, keys),
            # Rows of one cluster have several labels: clusters are exchanged as they are.
            conditioning=metric.conditions_on if conditional and rows.cluster is None else None,
        )

    def check(self) -> None:
        """Raise when the metric has no value in some group, or cannot be studentized."""
        _ = self.evaluations
        if self.scaling == "unpooled":
            for key, n in zip(self.keys, self._n_clusters, strict=False):
                if n < 2:
                    raise NotMeasurableError(
                        f"group {group_name(label(key))!r} has {n} cluster; a studentized "
                        f"{self.metric.name} of clusters needs at least 2. Name the groups to "
                        "compare with groups="
                    )
        self.check_measurable(self._shortage)

    # -- what is read once -------------------------------------------------------------------

    @cached_property
    def values(self) -> RowValues:
        """What is added up over rows."""
        n = len(self.rows.group)
        return self.metric.kind.row_values(self.rows.columns, n, self.rows.weight)

    @cached_property
    def evaluations(self) -> tuple[_native.Evaluation, ...]:
        """The metric in each group."""
        return tuple(self.test().evaluations)

    @cached_property
    def _n_clusters(self) -> tuple[int, ...]:
        """The number of clusters of each group; nothing without clusters."""
        rows = self.rows
        if rows.cluster is None:
            return ()
        place = self.position[rows.group]
        return tuple(len(np.unique(rows.cluster[place == i])) for i in self.everything)

    @cached_property
    def n_labels(self) -> tuple[list[int], list[int]] | None:
        """The rows with a positive and a negative label, by group, where few are too few."""
        if not self.metric.kind.compares_labels or "y_true" not in self.rows.columns:
            return None
        group, labels = self.rows.group, self.rows.columns["y_true"]
        counts = np.zeros(2 * (1 + len(self.keys)), dtype=np.int64)
        for start in range(0, len(group), _PART):
            part = slice(start, start + _PART)
            # Rows of no group come first.
            place = 2 * (self.position[group[part]] + 1) + labels[part]
            counts += np.bincount(place, minlength=len(counts))
        negative, positive = counts.reshape(-1, 2)[1:].T.tolist()
        return positive, negative

    # -- what it is --------------------------------------------------------------------------

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "stream"

    @property
    def stratified(self) -> bool:
        """Whether gaps are taken within strata of the user's."""
        return bool(self.rows.cells.strata_names)

    @property
    def is_proportion(self) -> bool:
        """Whether values are shares of rows that all count the same: not here."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know besides the numbers."""
        notes = [
            f"{name} has {n} clusters: with fewer than {FEW_CLUSTERS} "
            "standard errors are too small and the interval is too short; the test "
            "recomputes them in every replicate"
            for name, n in zip(self.names, self._n_clusters, strict=False)
            if n < FEW_CLUSTERS
        ]
        return (*notes, *self.notes_of_labels())

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """What is known to go wrong with such data."""
        doubts: list[str] = []
        weight, cluster = self.rows.weight, self.rows.cluster
        if self.stratified:
            doubts += strata_doubts(self.metric, weight, cluster)
        if self.metric.is_proportion and weight is not None:
            doubts += weight_doubts(self.metric.name, self.names, self.evaluations)
        if self.metric.kind.reads == "rows":
            doubts += mean_doubts(self)
        return tuple(doubts)

    def n_used(self, position: int) -> int:
        """Return the rows in the denominator of a proportion; all rows for other metrics."""
        if not self.metric.is_proportion:
            return self.n_rows[position]
        inside = self.position[self.rows.group] == position
        return int((self._in_denominator() & inside).sum())

    def _in_denominator(self) -> NDArray[np.bool_]:
        return self.metric.kind.in_denominator(self.rows.columns, len(self.rows.group))

    # -- tests and replicates ----------------------------------------------------------------

    def make_test(self, chosen: tuple[int, ...]) -> _native.PermutationTest:
        """Make the native test of the groups at some positions."""
        codes, keep = group_codes(self.rows, self.position, chosen)
        # Labels of ranks alone need no column of strata.
        of_labels = self.conditioning == "label" and self.metric.kind.reads == "scores"
        within_labels = of_labels and self.rows.stratum is None
        own = None if within_labels else self.own_strata_codes()
        units = make_units(self.rows, self.keys, codes, keep, chosen, own)
        exchange = units.exchange(len(chosen), self.scaling, self.call)
        return self.values.taken(keep).test(exchange, within_labels)

    def own_strata_codes(self) -> NDArray[np.uint32] | None:
        """Return the strata that the metric conditions on."""
        if self.conditioning is None:
            return None
        if self.conditioning == "denominator":
            return self._in_denominator().astype(np.uint32)
        column = "y_true" if self.conditioning == "label" else "y_pred"
        return self.rows.columns[column].astype(np.uint32)

    def equal(self, null: str) -> Audits:
        """Return audits of groups with one value: shuffled ones, or those of the weak null."""
        if null == "shuffle":
            return super().equal(null)
        ordered = self._in_order()
        rows = ordered.rows
        codes, keep = group_codes(rows, ordered.position, self.everything)
        # Rows are drawn anew within groups and strata of the user's, whatever exchanges groups.
        units, cells = (
            make_units(rows, self.keys, codes, keep, self.everything, own)
            for own in (ordered.own_strata_codes(), None)
        )
        of_units = cells.group.astype(np.int64)
        if cells.stratum is not None:
            of_units += len(self.keys) * cells.stratum.astype(np.int64)
        cell = np.unique(of_units, return_inverse=True)[1].ravel().astype(np.uint32)
        exchange = units.exchange(len(self.keys), self.scaling, self.call)
        return Resampled(ordered.values.taken(keep).weak(exchange, cell))

    def unequal(self, gap: float) -> Tilted[Any]:
        """Return what makes problems of the same rows, in which the first group has a gap."""
        ordered = self._in_order()
        own = ordered.own_strata_codes()
        regrouping = Regrouping.of(ordered.rows, ordered.position, self.keys, own)

        def make(codes: NDArray[Any]) -> RowProblem:
            rows, n_rows = regrouping.regrouped(codes)
            return replace(ordered, rows=rows, n_rows=n_rows)

        def influence() -> NDArray[np.float64]:
            rows, keep = ordered.rows, regrouping.keep
            columns = {name: column[keep] for name, column in rows.columns.items()}
            weight = None if rows.weight is None else rows.weight[keep]
            psi = self.metric.influence(columns, weight)
            return regrouping.units.sums(psi if weight is None else weight * psi)

        def gap_of(share: NDArray[np.float64]) -> float:
            return ordered.values.taken(regrouping.keep).gap(share)

        units = regrouping.units.native(regrouping.n_groups)
        return TiltedRows(units, make, influence=influence, gap=gap_of).with_gap(gap)

    def _in_order(self) -> RowProblem:
        """Return the problem with its rows in an order that does not depend on how they came."""
        rows = self.rows
        columns = [rows.group, *rows.columns.values()]
        columns += [part for part in (rows.weight, rows.stratum, rows.cluster) if part is not None]
        return replace(self, rows=rows.taken(np.lexsort(columns)))

    def _shortage(self, i: int) -> str:
        """Say what a group without a value has too little of."""
        inside = self.position[self.rows.group] == i
        shortage = self.values.shortage(inside)
        if shortage is not None:
            return shortage
        n = int(inside.sum())
        if self.rows.weight is not None and not self.rows.weight[inside].any():
            return f"{n} rows, none of which has weight"
        clustered = self.rows.cluster is not None
        units, n = ("clusters", self._n_clusters[i]) if clustered else ("rows", n)
        what = self.metric.denominator_rows or "rows"
        return f"{n} {units}, or no weight on {what}"
