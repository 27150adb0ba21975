"""Compares groups by rows or clusters: ranks, ratios of sums and weighted counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.integer_codes import codes_by_unit, number_values
from ..data.labels import GroupKey
from ..data.rows import Rows
from ..errors import ArgumentError
from ..inference.clusters import ClusteredRatio, gap_interval
from ..inference.homogeneity import Homogeneity
from ..inference.intervals import Bootstrap, Interval, Pair
from ..metrics.family import confusion_classes
from ..metrics.metric import Metric
from ..metrics.row_values import RatioValues, RowValues, fewer_of_labels
from ..report.notes import Note
from .labelled_problem import LabelledProblem
from .melded_limits import FEWEST_DEVIATING, MeldingInputs, melding_of
from .reasons import WithholdingReason
from .row_strata import homogeneity_of_rows, rows_by_stratum
from .simulated_groups import (
    ResampledValues,
    ShuffledGroups,
    SimulatedTests,
    TiltedRows,
    TiltedSampler,
)
from .skewness import FEWEST_ANSWERED, FEWEST_CLUSTERS, SkewnessGuard, rounded_up
from .units import ExchangeUnits, Regrouping, group_codes, make_units, places_of, positions_of
from .within_strata import StratumValues

#: Below this many clusters in a group the sandwich variance is too small.
FEW_CLUSTERS = 40
#: Number of rows per batch.
_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, kw_only=True, eq=False)
class RowProblem(LabelledProblem):
    """Rows: ranks of scores, ratios of sums, and counts of weighted or clustered rows."""

    rows: Rows
    position: NDArray[np.int64]
    #: What the metric conditions on: "label", "decision", "denominator" or nothing.
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
                f"{design} does not apply to {metric.name}, a metric of family {metric.family}. "
                "Use a metric of counts, ranks or ratios, or a callable.",
                argument=design,
                code="conflicting-arguments",
            )
        sizes = rows.cells.group_sizes()
        return cls(
            metric=metric,
            keys=tuple(keys),
            n_rows=tuple(sizes[key] for key in keys),
            scaling=scaling,
            n_threads=n_threads,
            features=rows.cells.sensitive_features,
            rows=rows,
            position=positions_of(rows.cells, keys),
            # A cluster can have several labels, so clusters ignore what the metric conditions on.
            conditioning=metric.kind.own_condition(rows.stratum is not None)
            if conditional and rows.cluster is None
            else None,
        )

    def check(self) -> None:
        """Raise when the metric has no value in some groups, or cannot be studentized."""
        shortages = self.shortages(self._shortage)
        if self.is_studentized:
            for i, n in enumerate(self._n_clusters):
                if n < 2:
                    needs = f"a studentized {self.metric.name} of clusters needs at least 2"
                    shortages[i] = f"{n} cluster; {needs}"
        self.refuse(shortages)

    # -- cached values -----------------------------------------------------------------------

    @cached_property
    def values(self) -> RowValues:
        """The values that are summed over rows."""
        n, kind = len(self.rows.group), self.metric.kind
        # Within strata, groups are weighted by rows unless the metric is a proportion.
        if self.stratified and not self.metric.is_proportion:
            return kind.stratified_values(self.rows.columns, n, self.rows.weight)
        return kind.row_values(self.rows.columns, n, self.rows.weight)

    @cached_property
    def evaluations(self) -> tuple[_native.Evaluation, ...]:
        """The metric in each group."""
        return tuple(self.test().evaluations)

    @cached_property
    def _n_clusters(self) -> tuple[int, ...]:
        """The number of clusters of each group; empty without clusters."""
        rows = self.rows
        if rows.cluster is None:
            return ()
        cluster, n_clusters = number_values(rows.cluster)
        # Clusters in several groups raise an error when the test is made.
        group = self.position[codes_by_unit(rows.group, cluster, n_clusters)]
        return tuple(int(np.count_nonzero(group == i)) for i in self.everything)

    @cached_property
    def fewest(self) -> Sequence[tuple[int, str]] | None:
        """The smallest count behind the metric, with its name, by group; None if it is the rows."""
        kind = self.metric.kind
        if not kind.compares_labels:
            return None
        group, n_groups = self.rows.group, len(self.keys)
        counts = np.zeros(4 * (1 + n_groups), dtype=np.int64)
        for start in range(0, len(group), _BLOCK_ROWS):
            part = slice(start, start + _BLOCK_ROWS)
            columns = {name: column[part] for name, column in self.rows.columns.items()}
            # The first position is for rows outside the compared groups.
            place = self.position[group[part]] + 1
            classes = confusion_classes(columns, len(place))
            counts += np.bincount(4 * place + classes, minlength=len(counts))
        cells = counts.reshape(-1, 4)[1:]
        if kind.reads == "classes":
            return [kind.smallest_cell(of_group) for of_group in cells.tolist()]
        up, down = cells[:, [0, 2]].sum(axis=1), cells[:, [1, 3]].sum(axis=1)
        return [fewer_of_labels(*both) for both in zip(up.tolist(), down.tolist(), strict=True)]

    def labels_of(self, position: int) -> tuple[int, int] | None:
        """Return the rows of a group with a positive and a negative label; None if it has none."""
        return None if self._labels is None else self._labels[position]

    @cached_property
    def _labels(self) -> list[tuple[int, int]] | None:
        label = self.rows.columns.get("y_true")
        if label is None or not np.all((label == 0) | (label == 1)):
            return None
        place = 2 * (self.position[self.rows.group] + 1) + (label == 0)
        if self.rows.weight is not None:
            place = place[self.rows.weight > 0]
        counts = np.bincount(place, minlength=2 + 2 * len(self.keys)).reshape(-1, 2)[1:]
        return [(up, down) for up, down in counts.tolist()]

    # -- properties --------------------------------------------------------------------------

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "stream"

    @property
    def stratified(self) -> bool:
        """Return whether gaps are taken within the user's strata."""
        return bool(self.rows.cells.strata_names)

    @property
    def is_proportion(self) -> bool:
        """Return False: the rows can have weights or clusters."""
        return False

    @property
    def prefers_mover(self) -> bool:
        """Return whether MOVER is the best method for gaps and ratios.

        It is not for clusters, which can be few, nor for weighted rates.
        """
        return self.is_bounded and self.rows.cluster is None and not self.metric.is_proportion

    @property
    def _prefers_inversion(self) -> bool:
        """Return whether to invert the test: for means, ratios, and weighted or clustered rates."""
        return self.scaling == "corrected" and not self.prefers_mover

    def interval_methods(self, scale: str = "difference") -> tuple[str, ...]:
        """Return the interval methods of the metric; the first is the default."""
        methods = super().interval_methods(scale)
        return ("inversion", *methods) if self._prefers_inversion else methods

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the numbers."""
        notes = []
        if self.scaling != "corrected":
            notes = [
                Note(
                    "short-intervals-of-clusters",
                    f"{name} has {n} clusters: with fewer than {FEW_CLUSTERS} "
                    "standard errors are too small and the interval is too short; the test "
                    "recomputes them in every replicate",
                    (name,),
                )
                for name, n in zip(self.names, self._n_clusters, strict=False)
                if n < FEW_CLUSTERS
            ]
        for name, ratio in zip(self.names, self.clustered, strict=False):
            if ratio.effective < FEW_CLUSTERS / 2:
                worth = f"the clusters of {name} are worth {ratio.effective:.3g} of one size"
                notes.append(Note("unequal-clusters", worth, (name,)))
        notes += self.notes_of_strata()
        return (*notes, *self.notes_of_few())

    def n_used(self, position: int) -> int:
        """Return the rows in the denominator of a proportion; all rows for other metrics."""
        if not self.metric.is_proportion:
            return self.n_rows[position]
        inside = self.position[self.rows.group] == position
        return int((self.in_denominator() & inside).sum())

    def weights_of(self, position: int) -> NDArray[np.float64] | None:
        """Return the weights of the eligible rows of a group; None without weights."""
        if self.rows.weight is None:
            return None
        inside = self.position[self.rows.group] == position
        if self.metric.is_proportion:
            inside &= self.in_denominator()
        weights: NDArray[np.float64] = self.rows.weight[inside]
        return weights

    def in_denominator(self) -> NDArray[np.bool_]:
        """Return which rows are in the denominator of the metric."""
        return self.metric.kind.in_denominator(self.rows.columns, len(self.rows.group))

    # -- the user's strata --------------------------------------------------------------------

    @cached_property
    def by_stratum(self) -> StratumValues | None:
        """The metric by stratum and group; None without the user's strata."""
        return rows_by_stratum(self)

    @property
    def has_ratios(self) -> bool:
        """Return whether two groups have a ratio; within strata only rates have one."""
        return not self.stratified or (self.metric.is_proportion and self._prefers_inversion)

    def compared(self, pair: Pair) -> tuple[float, float]:
        """Return the two values whose ratio is taken."""
        if self.by_stratum is None:
            return super().compared(pair)
        within = self.by_stratum.compare_pair(pair, lambda: Homogeneity.unknown("not asked"))
        return within.first_value, within.second_value

    def log_ratio(self, pair: Pair) -> tuple[float, float]:
        """Return the logarithm of the ratio of two values above 0, and its standard error."""
        if not self.stratified:
            return super().log_ratio(pair)
        first, second = self.compared(pair)
        ratio = first / second
        contrast = self.ratio_test(pair, ratio).contrast(0, 1)
        assert contrast is not None
        return math.log(ratio), math.sqrt(contrast.variance) * max(ratio, 1.0) / first

    def ratio_test(self, pair: Pair, ratio: float) -> _native.PermutationTest:
        """Return the test of a gap of 0 with the second group's numerators multiplied by ``ratio``.

        If the ratio is above 1, the first group's are divided instead, to keep numbers small.
        """
        codes, keep = group_codes(self.rows, self.position, pair)
        units = make_units(self.rows, self.keys, codes, keep, pair, self.own_strata_codes())
        terms = self.values.taken(keep).terms()
        assert terms is not None
        above, below = terms
        scaled = np.where(codes == 1, min(ratio, 1.0), min(1 / ratio, 1.0)) * above
        exchange = units.exchange(len(pair), self.scaling, self.call)
        return RatioValues(scaled, below).test(exchange, False)

    def homogeneity(self, pair: Pair) -> Homogeneity:
        """Test whether the gap of two groups is the same in all strata."""
        return homogeneity_of_rows(self, pair)

    # -- skewness and clusters -----------------------------------------------------------------

    @cached_property
    def _melding(self) -> MeldingInputs | None:
        """The inputs of melded limits; None if no group needs them."""
        return melding_of(self) if self.scaling == "corrected" else None

    def uses_melded_limits(self, groups: Sequence[int]) -> bool:
        """Return whether one of the groups needs melded limits."""
        return self._melding is not None and self._melding.applies(groups)

    @cached_property
    def known_range(self) -> Interval | None:
        """The known range of row values, for means of unweighted, unclustered rows; else None."""
        rows, metric = self.rows, self.metric
        plain = rows.weight is None and rows.cluster is None and not self.stratified
        if not plain or metric.kind.reads != "rows" or metric.denominator is not None:
            return None
        return metric.kind.bounds(rows.columns)

    def melded(self, groups: Sequence[int], draws: _native.Draws, call: _native.Call) -> Any:
        """Return the melded limits of all groups; None if these groups do not need them."""
        if self._melding is None or not self.uses_melded_limits(groups):
            return None
        key = (draws.n, draws.seed)
        if key not in self._limits:
            self._limits.clear()
            self._limits[key] = self._melding.draw(draws, call)
        return self._limits[key]

    @cached_property
    def _limits(self) -> dict[tuple[int, int], Any]:
        return {}

    @property
    def melding_method(self) -> str | None:
        """The name of the melded limits; None if no group needs them."""
        return None if self._melding is None else self._melding.method

    @property
    def melding_note(self) -> Note | None:
        """The note on tests and intervals that use melded limits."""
        return None if self._melding is None else self._melding.note(self.metric.name, self.names)

    @cached_property
    def cluster_sums(self) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
        """The cluster sums of numerator and denominator, by group; () without clusters."""
        if self.rows.cluster is None:
            return ()
        terms = self.values.terms()
        if terms is None:
            return ()
        codes, keep = group_codes(self.rows, self.position, self.everything)
        units = make_units(self.rows, self.keys, codes, keep, self.everything, None)
        above, below = (units.sums(part[keep]) for part in terms)
        inside = (units.group == i for i in self.everything)
        return tuple((above[part], below[part]) for part in inside)

    @cached_property
    def clustered(self) -> tuple[ClusteredRatio, ...]:
        """The ratio of each group over its clusters; () without clusters or a ratio."""
        return tuple(ClusteredRatio.from_sums(above, below) for above, below in self.cluster_sums)

    def reason_to_withhold(
        self, pair: Sequence[int], shifts: _native.Shifts, rejected: bool
    ) -> WithholdingReason | None:
        """Return why a test of two groups is inconclusive; ``rejected``: if it would reject."""
        names = [self.names[i] for i in pair]
        if math.isnan(shifts.variance):
            return WithholdingReason(
                "one-row-in-stratum",
                "one stratum alone has a group of one row, whose spread nothing tells",
            )
        for i in pair:
            if self.clustered and self.clustered[i].effective < FEWEST_CLUSTERS:
                return WithholdingReason(
                    "too-unequal-clusters",
                    f"the clusters of {self.names[i]} are worth {self.clustered[i].effective:.3g} "
                    f"of one size; accepted: at least {FEWEST_CLUSTERS:g}",
                    (self.names[i],),
                )
        if not rejected or not self._guards(pair):
            return None
        guard = SkewnessGuard.from_shapes(shifts.shapes)
        few = guard.is_skewed and self._has_few_clusters(pair)
        if few or guard.blocks(shifts.estimate):
            return guard.reason(names, self.unit)
        return self._why_too_few(pair)

    def reason_unknown(
        self, pair: Sequence[int], shifts: _native.Shifts
    ) -> WithholdingReason | None:
        """Return why a gap cannot be tested, such as a group without its extreme values."""
        reason = self.reason_to_withhold(pair, shifts, rejected=False)
        if reason is not None or not self._guards(pair):
            return reason
        guard = SkewnessGuard.from_shapes(shifts.shapes)
        if guard.certain is not None or guard.is_skewed:
            return guard.reason([self.names[i] for i in pair], self.unit)
        return self._why_too_few(pair)

    @cached_property
    def _is_guarded(self) -> bool:
        """Return whether the guard against skewness applies.

        With clusters it applies only if the range of values is unknown: otherwise melded limits
        handle few clusters. Within strata, tests of clusters have no guard here (see `_guards`).
        """
        if self.rows.cluster is None:
            return True
        return not self.stratified and self.metric.kind.bounds(self.rows.columns) is None

    def _why_too_few(self, pair: Sequence[int]) -> WithholdingReason | None:
        """Return which group has too few clusters for a verdict, if the range is unknown."""
        if self.stratified or not self.clustered:
            return None
        fewest = min(pair, key=lambda i: self.clustered[i].deviating)
        ratio = self.clustered[fewest]
        if ratio.deviating >= FEWEST_ANSWERED:
            return None
        # Groups without variation have another reason; otherwise at least 1 cluster deviates.
        wanted = rounded_up(ratio.n * FEWEST_ANSWERED / max(ratio.deviating, 1.0))
        return WithholdingReason(
            "too-few-clusters",
            f"{self.names[fewest]} has {ratio.n:,} clusters, too few to show the tail of values of "
            f"unknown range; some {wanted:,} would do, or bounds= of the metric",
            (self.names[fewest],),
        )

    def _guards(self, pair: Sequence[int]) -> bool:
        """Return whether the guard against skewness applies to two groups.

        Within strata it applies to few clusters, which have no melded limits there.
        """
        return self._is_guarded or (self.stratified and self._has_few_clusters(pair))

    def _has_few_clusters(self, groups: Sequence[int]) -> bool:
        clustered = self.clustered
        return bool(clustered) and any(clustered[i].deviating < FEWEST_DEVIATING for i in groups)

    @property
    def unit(self) -> str:
        """The name of the units that exchange their groups: "rows" or "clusters"."""
        return "rows" if self.rows.cluster is None else "clusters"

    @property
    def gap_method(self) -> str:
        """The default interval method for gaps."""
        return "inversion" if self._prefers_inversion else super().gap_method

    def clustered_value(self, position: int, level: float) -> Interval | None:
        """Return the interval of a group's ratio over its clusters; None without clusters."""
        return self.clustered[position].interval(level) if self.clustered else None

    def value_interval(self, position: int, level: float) -> tuple[str, Interval]:
        """Return the method and the interval of a group value, without replicates.

        Clusters use CR2 with the degrees of freedom of Bell and McCaffrey.
        """
        of_clusters = self.clustered_value(position, level)
        if of_clusters is None:
            return super().value_interval(position, level)
        low, high = of_clusters
        least, most = self.metric.range
        return "delta", (max(low, least), min(high, most))

    def interval(
        self, pair: Pair, level: float, method: str, replicates: Bootstrap | None
    ) -> Interval:
        """Return the two-sided interval of a difference; NaN where it cannot be measured."""
        if method != "delta" or not self.clustered or self.stratified:
            return super().interval(pair, level, method, replicates)
        first, second = (self.clustered[i] for i in pair)
        low, high = gap_interval(first, second, level)
        return max(low, -self.bound), min(high, self.bound)

    # -- tests and replicates ----------------------------------------------------------------

    def make_test(self, chosen: tuple[int, ...]) -> _native.PermutationTest:
        """Make the native test of the groups at some positions."""
        rows, of_ranks = self.rows, self.metric.kind.reads == "scores"
        # Rank metrics handle labels themselves, without a column of strata.
        of_labels = self.conditioning == "label" and of_ranks
        own = None if of_labels else self.own_strata_codes()
        if of_ranks and own is None and rows.cluster is None:
            # Rows of other groups are skipped natively, so that no rows are copied.
            units = ExchangeUnits(rows.group, rows.stratum, None, None)
            exchange = units.exchange(len(chosen), self.scaling, self.call)
            exchange = replace(exchange, places=places_of(self.position, chosen))
            return self.values.test(exchange, of_labels)
        codes, keep = group_codes(rows, self.position, chosen)
        units = make_units(rows, self.keys, codes, keep, chosen, own)
        exchange = units.exchange(len(chosen), self.scaling, self.call)
        return self.values.taken(keep).test(exchange, of_labels)

    def own_strata_codes(self) -> NDArray[np.uint32] | None:
        """Return the strata that the metric conditions on."""
        if self.conditioning is None:
            return None
        if self.conditioning == "denominator":
            return self.in_denominator().astype(np.uint32)
        column = "y_true" if self.conditioning == "label" else "y_pred"
        return self.rows.columns[column].astype(np.uint32)

    def equal(self, null: str) -> SimulatedTests:
        """Return simulated audits of groups with equal metrics; null is "shuffle" or "weak"."""
        audits: ShuffledGroups | ResampledValues = self._audits(null)
        if self._melding is None:
            return audits
        note = Note(
            "tested-by-permutations",
            "audits are tested by permutations; permutation_test compares groups of these data by "
            "melded limits, which reject less often",
        )
        return replace(audits, note=note)

    def _audits(self, null: str) -> Any:
        if null == "shuffle":
            return super().equal(null)
        ordered = self._in_canonical_order()
        rows = ordered.rows
        codes, keep = group_codes(rows, ordered.position, self.everything)
        # Rows are redrawn within groups and the user's strata, whatever the metric conditions on.
        units, cells = (
            make_units(rows, self.keys, codes, keep, self.everything, own)
            for own in (ordered.own_strata_codes(), None)
        )
        of_units = cells.group.astype(np.int64)
        if cells.stratum is not None:
            of_units += len(self.keys) * cells.stratum.astype(np.int64)
        cell = np.unique(of_units, return_inverse=True)[1].ravel().astype(np.uint32)
        exchange = units.exchange(len(self.keys), self.scaling, self.call)
        return ResampledValues(ordered.values.taken(keep).weak(exchange, cell))

    def unequal(self, gap: float) -> TiltedSampler[Any]:
        """Return a sampler of problems with the same rows and a gap of the first group."""
        ordered = self._in_canonical_order()
        own = ordered.own_strata_codes()
        regrouping = Regrouping.from_rows(ordered.rows, ordered.position, self.keys, own)

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

    def _in_canonical_order(self) -> RowProblem:
        """Return the problem with its rows in canonical order."""
        return replace(self, rows=self.rows.taken(self.order()))

    def order(self) -> NDArray[np.intp]:
        """Return a canonical order of the rows."""
        rows = self.rows
        columns = [rows.group, *rows.columns.values()]
        columns += [part for part in (rows.weight, rows.stratum, rows.cluster) if part is not None]
        return np.lexsort(columns)

    def _shortage(self, i: int) -> str:
        """Return what a group without a value lacks."""
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
