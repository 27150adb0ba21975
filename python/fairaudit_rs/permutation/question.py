"""Turns a table, a metric and the arguments of a call into a `PermutationQuestion`."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import arguments
from ..data.cells import Cells
from ..data.groups import attribute_name, choose_groups, group_label, group_name, pairs_of
from ..data.labels import GroupKey, Label
from ..data.rows import AttributeRows, Rows
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import Undefined
from ..metrics.metric import Metric
from ..report.notes import Note
from ..report.shared_notes import rows_without_group_note
from .correlation import CorrelationProblem
from .counts import CountProblem
from .excluded_groups import ExcludedGroup, ExclusionRule, check_unused, notes_on_excluded
from .function_problem import FunctionProblem
from .joint_problem import JointProblem
from .problem import Problem
from .rows import RowProblem
from .strata import refuse_unshared
from .units import without_strata
from .within_strata import PairWithinStrata, note_of_homogeneity, note_of_sample

#: One replicate of the AUC costs 600 row visits per distinct score on cells: cells win above 600
#: rows per score.
_ROWS_PER_LEVEL = 600
_MOST_LEVELS = 20_000


@dataclass(frozen=True, kw_only=True)
class PermutationQuestion:
    """A problem, with the pairs to compare and notes on its data."""

    problem: Problem
    n_rows: int
    n_missing: int
    features: tuple[str, ...]
    #: Names of the user's strata within which rows are exchanged.
    strata_names: tuple[str, ...]
    #: Names of strata in the data that are not used.
    unused_strata: tuple[str, ...] = ()
    pairs: list[tuple[int, int]]
    #: The random stream of each pair; empty for the default.
    series: tuple[int, ...] = ()
    #: Description of the rows that exchange their groups.
    exchanged: str
    #: Groups that are not compared.
    left_out: tuple[ExcludedGroup, ...] = ()
    #: Remarks on how the rows were read.
    notes: tuple[Note, ...] = ()
    #: For gaps within the user's strata: the problem over all rows, without strata.
    marginal: Problem | None = None
    #: The total weight of each group, if weighted rows are excluded; else None.
    people: dict[Any, float] | None = None
    #: Number of excluded rows: those of clusters in several groups.
    n_dropped: int = 0

    @cached_property
    def within(self) -> tuple[PairWithinStrata, ...]:
        """The values of each pair within the user's strata; empty without strata."""
        values = (self.problem.within_strata(pair) for pair in self.pairs)
        return tuple(pair for pair in values if pair is not None)

    def notes_of_strata(self) -> list[Note]:
        """Return notes on whether the gaps of pairs are the same in all strata."""

        def named(group: Any) -> str:
            return group_name(group, attribute_name(self.features))

        within = self.within
        if not within:
            return []
        known = [pair for pair in within if not math.isnan(pair.homogeneity.pvalue)]
        reported = list(within)
        if len(reported) > 1:
            # Report only the pair with the smallest p-value, adjusted for all pairs.
            reported = sorted(known, key=lambda strata: strata.homogeneity.pvalue)[:1]
        notes = []
        for pair in reported:
            who = named(pair.first), named(pair.second)
            notes.append(note_of_homogeneity(pair, " and ".join(who), len(known), subject=who))
        n_rows = dict(zip(map(group_label, self.problem.keys), self.problem.n_rows, strict=True))
        of_sample = note_of_sample(within, n_rows, only_varying=True)
        return notes if of_sample is None else [*notes, of_sample]

    def of_pairs(self, chosen: Collection[frozenset[Any]]) -> PermutationQuestion:
        """Return the question with some of its pairs, chosen by the labels of their groups.

        Each pair keeps its replicates.
        """
        names = [group_label(key) for key in self.problem.keys]
        kept = [
            (pair, series)
            for pair, series in zip(self.pairs, self.series_of_pairs, strict=True)
            if frozenset(names[i] for i in pair) in chosen
        ]
        pairs, series = zip(*kept, strict=True)
        return replace(self, pairs=list(pairs), series=series)

    @property
    def series_of_pairs(self) -> tuple[int, ...]:
        """The random stream of each pair; by default, after that of all groups."""
        return self.series or tuple(range(1, 1 + len(self.pairs)))

    def notes_of_rows(self) -> list[Note]:
        """Return notes on excluded rows and groups."""
        notes = []
        if self.n_missing:
            effect = "belong to no group" if self.problem.keys else "take no part"
            features = " or ".join(self.features)
            notes.append(rows_without_group_note(self.n_missing, features, self.n_rows, effect))
        return [*notes, *self.notes, *notes_on_excluded(self.left_out)]


@dataclass(frozen=True, kw_only=True)
class _MetricReading:
    """The options for reading a table for one metric."""

    table: AuditTable
    metric: Metric
    score_bins: Any
    pos_label: Label
    engine: str
    n_threads: int | None

    def cells(self) -> Cells:
        """Return counts by the columns of the metric."""
        return self.table.cells(
            columns=self.metric.needs,
            score_bins=self.score_bins,
            pos_label=self.pos_label,
            n_threads=self.n_threads,
        )

    def score_levels(self) -> Cells | None:
        """Return cells by score, binned or distinct; None if rows are faster."""
        if not self.table.source.holds_rows or self.score_bins is not None:
            return self.cells()
        limit = min(self.table.n_rows // _ROWS_PER_LEVEL, _MOST_LEVELS)
        if self.engine in ("cells", "exact"):
            limit = _MOST_LEVELS
        if self.engine == "stream" or limit < 2:
            return None
        return self.table.score_levels(limit, self.pos_label)

    def rows(self) -> Rows:
        """Return the rows."""
        return self.table.rows(
            columns=self.metric.needs,
            extra=[f"extra:{name}" for name in named_columns(self.metric)],
            binary=self.metric.kind.binary_labels or self.pos_label is not None,
            pos_label=self.pos_label,
            needed_by=self.metric.name,
        )

    def attribute_rows(self) -> AttributeRows:
        """Return the rows with a continuous attribute."""
        return self.table.attribute_rows(
            columns=self.metric.needs,
            extra=[f"extra:{name}" for name in named_columns(self.metric)],
            pos_label=self.pos_label,
            needed_by=self.metric.name,
        )


def prepare_question(
    table: AuditTable,
    metric: Metric,
    *,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    studentize: str | bool = "auto",
    conditional: bool = True,
    engine: str = "auto",
    score_bins: Any = None,
    pos_label: Label = None,
    n_threads: int | None = None,
    seed: int = 0,
    undefined: Undefined = "raise",
    min_group_size: int | None = None,
    with_marginal: bool = False,
    skips_certain: bool = False,
) -> PermutationQuestion:
    """Read what a metric needs from a table, and make the problem.

    ``conditional``: rows exchange their groups only within strata (those of the table, and those
    that the metric conditions on). Groups without a value, or with too few rows, are excluded, as
    if ``groups`` did not name them. ``with_marginal``: also make the problem without strata.
    ``skips_certain``: also exclude groups in which the metric does not vary.
    """
    checked = arguments.check(undefined=undefined, min_group_size=min_group_size)
    weighted = "sample_weight" in table.roles or bool(table.clusters)
    stratified = conditional and bool(table.strata)
    scaling = scaling_of(studentize, metric, weighted, stratified)
    _check_bins(score_bins, metric, table)
    _check_needs(metric, table)
    reads = metric.kind.reads
    counts_alone = not weighted and (
        reads == "classes" or (reads == "scores" and score_bins is not None)
    )
    if table.source.holds_rows and not counts_alone:
        # Load the table once for all that follows.
        table = table.loaded(metric.name)
    reading = _MetricReading(
        table=table,
        metric=metric,
        score_bins=score_bins,
        pos_label=pos_label,
        engine=engine,
        n_threads=n_threads,
    )
    if reads == "attribute":
        why = f"does not apply to {metric.name}, a correlation without groups. Remove it."
        check_unused(checked.undefined, checked.min_group_size, why)
        return _correlation(reading, groups, reference, scaling)
    cells = None
    notes: tuple[Note, ...] = ()
    if reads == "scores" and not weighted:
        cells = reading.score_levels()
    elif reads == "classes" and not weighted:
        cells = reading.cells()
    n_dropped, rows, people, chosen = 0, None, None, None
    if cells is None:
        rows = reading.rows()
        chosen = choose_groups(rows.cells, groups, reference)
        settled = table.settled(rows, chosen)
        if settled.cluster is not None:
            rows = replace(rows, cluster=settled.cluster)
        if settled.keep is not None:
            n_dropped = int(np.count_nonzero(~settled.keep))
            kept = table.where(settled.keep)
            rows = replace(reading, table=kept).rows()
            if groups is None and checked.undefined == "raise":
                # A group that nobody named, and that has no rows any more, is no error.
                chosen = choose_groups(rows.cells, groups, reference)
            if "sample_weight" in table.roles:
                people = {group_label(key): n for key, n in kept.people.n_people.items()}
        notes = settled.notes
    counted = cells if rows is None else rows.cells
    assert counted is not None

    def problem_of(keys: Sequence[GroupKey], scaled: str, within: bool) -> Problem:
        if rows is None:
            kind = JointProblem if metric.components else CountProblem
            return kind.make(counted, metric, keys, scaled, within, n_threads)
        taken = rows if within else without_strata(rows)
        if reads == "function":
            return FunctionProblem.make(taken, metric, keys, scaled, within, seed)
        return RowProblem.make(taken, metric, keys, scaled, within, n_threads)

    def make(keys: Sequence[GroupKey]) -> Problem:
        problem = problem_of(keys, scaling, conditional)
        if skips_certain and checked.undefined == "skip":
            certain = [i for i, entry in enumerate(problem.evaluations) if not entry.variance > 0]
            problem.refuse(dict.fromkeys(certain, f"no variation of {metric.name} to plan with"))
        return problem

    rule = ExclusionRule(
        make=make,
        metric=metric.name,
        sizes=dict.fromkeys(chosen or (), 0) | counted.group_sizes(),
        with_reference=reference is not None,
        undefined=checked.undefined,
        min_group_size=checked.min_group_size,
    )
    problem, left_out = rule.split_off(chosen or choose_groups(counted, groups, reference))
    marginal = None
    if with_marginal and problem.stratified:
        marginal = problem_of(problem.keys, scaling_of(studentize, metric, weighted), False)
    pairs = pairs_of(problem.keys, reference)
    refuse_unshared(problem, pairs)
    names = counted.strata_names if conditional else ()
    clustered = bool(table.clusters)
    own = metric.kind.own_condition(bool(names)) if conditional and not clustered else None
    return PermutationQuestion(
        problem=problem,
        n_rows=counted.n_rows,
        n_missing=counted.n_missing,
        features=counted.sensitive_features,
        strata_names=names,
        unused_strata=() if conditional else counted.strata_names,
        pairs=pairs,
        notes=(*counted.notes, *notes),
        exchanged=describe_exchange(metric, own, names, "clusters" if clustered else "rows"),
        left_out=left_out,
        marginal=marginal,
        people=people,
        n_dropped=n_dropped,
    )


def _correlation(
    reading: _MetricReading, groups: Sequence[Any] | None, reference: Any, scaling: str
) -> PermutationQuestion:
    metric, table = reading.metric, reading.table
    for name, is_set in (
        ("groups", groups is not None),
        ("reference", reference is not None),
        ("clusters", bool(table.clusters)),
        ("sample_weight", "sample_weight" in table.roles),
    ):
        if is_set:
            raise ArgumentTypeError(
                f"{name} does not apply to {metric.name}, a correlation. Remove it.",
                argument=name,
                code="conflicting-arguments",
            )
    rows = reading.attribute_rows()
    problem = CorrelationProblem.make(rows, metric, scaling, reading.n_threads)
    return PermutationQuestion(
        problem=problem,
        n_rows=len(rows.attribute) + rows.n_missing,
        n_missing=rows.n_missing,
        features=(rows.name,),
        strata_names=rows.strata_names,
        pairs=[],
        exchanged=describe_exchange(metric, None, rows.strata_names, "rows"),
    )


def _check_bins(score_bins: Any, metric: Metric, table: AuditTable) -> None:
    if score_bins is None:
        return
    if not metric.kind.takes_bins:
        raise ArgumentTypeError(
            f"score_bins applies to calibration_error and auc only, not to {metric.name}. Remove "
            "it.",
            argument="score_bins",
            code="conflicting-arguments",
        )
    if not table.source.holds_rows:
        raise ArgumentTypeError(
            "score_bins does not apply to data=cells, which have their own bins. Remove it.",
            argument="score_bins",
            mentions=("data",),
            code="conflicting-arguments",
        )


def _check_needs(metric: Metric, table: AuditTable) -> None:
    """Raise if the table lacks rows or columns that the metric needs."""
    if metric.kind.reads in ("rows", "function", "attribute") and not table.source.holds_rows:
        table.source.in_memory(metric.name)
    missing = [name for name in metric.needs if name not in table.roles]
    if not missing:
        return
    if not table.source.holds_rows:
        columns = [name for name in ("y_true", "y_pred", "y_score") if name in table.roles]
        raise ArgumentError(
            f"{missing[0]} is needed by {metric.name}, but the cells only have "
            f"{', '.join(columns)}. Tabulate the data with {missing[0]}, or choose another metric.",
            argument=missing[0],
            code="missing-argument",
        )
    what = {"y_true": "labels", "y_pred": "decisions", "y_score": "scores"}[missing[0]]
    value = ""
    if missing[0] == "y_pred" and "y_score" in table.roles:
        value = "(y_score >= threshold)"
    raise ArgumentError(
        f"{missing[0]} is None, but {metric.name} needs {what}. Pass {missing[0]}={value}.",
        argument=missing[0],
        needed_by=metric.name,
        code="missing-argument",
    )


def named_columns(metric: Metric) -> list[str]:
    """Return the columns of the data that the metric itself names."""
    named = [value for value in (metric.numerator, metric.denominator) if isinstance(value, str)]
    return [name for name in named if name not in metric.columns]


def scaling_of(value: str | bool, metric: Metric, weighted: bool, stratified: bool = False) -> str:
    """Return how the statistic is scaled."""
    if isinstance(value, bool):
        value = "auto" if value else "none"
    word = arguments.choice("studentize", value, metric.kind.scalings)
    if word == "auto":
        return metric.kind.variance_of_units(stratified) if weighted else metric.variance
    kinds = {metric.variance, metric.kind.variance_of_units(stratified) if weighted else None}
    if word == "corrected" and word not in kinds:
        raise ArgumentError(
            f"studentize is 'corrected' for {metric.name}, which is not a mean, ratio of sums, or "
            "rate of weighted rows or clusters; accepted: 'auto', 'unpooled', 'none'",
            argument="studentize",
        )
    if word == "pooled" and (weighted or metric.variance != "pooled"):
        reason = (
            "weighted or clustered"
            if weighted
            else "not a proportion, nor proportions of different rows"
        )
        raise ArgumentError(
            f"studentize is 'pooled' for {metric.name}, which is {reason}; accepted: 'auto', "
            "'unpooled', 'none'",
            argument="studentize",
        )
    return word


def split_strata(strata: Any) -> tuple[bool, Any]:
    """Return whether rows exchange their groups within strata, and the user's strata."""
    if isinstance(strata, str) and strata == "auto":
        return True, None
    if strata is None or strata is False:
        return False, None
    return True, strata


def within_strata(strata: Any) -> tuple[bool, Any]:
    """Return whether gaps are taken within strata, and the user's strata.

    Strata that the metric conditions on affect tests only, so they are ignored here.
    """
    return (False, None) if strata is None else split_strata(strata)


def describe_exchange(
    metric: Metric, conditions_on: str | None, strata_names: Sequence[str], rows_word: str
) -> str:
    """Return a description of the rows that exchange their groups."""
    rows = {
        "denominator": metric.denominator_rows or "rows of the denominator",
        "label": "rows of the same label",
        "decision": "rows of the same decision",
        "score": "rows of the same score bin",
        None: rows_word,
    }[conditions_on]
    return rows + (f" with equal {', '.join(strata_names)}" if strata_names else "")
