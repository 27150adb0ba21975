"""Turns the arguments of `compare_models` into a `PairedQuestion`, and checks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.cells import Cells
from ..data.groups import choose_groups, pairs_of
from ..data.labels import GroupKey, Label
from ..data.paired_counts import PairedCounts
from ..data.rows import Rows
from ..data.tables import AuditTable
from ..errors import ArgumentError
from ..inference.intervals import Pair
from ..metrics.metric import Metric
from ..progress import Progress
from ..report.notes import Note
from ..report.shared_notes import rows_without_group_note
from .excluded_groups import ExcludedGroup, ExclusionRule, notes_on_excluded
from .paired_cells import PairedCellProblem
from .paired_problem import PairedProblem, PairedRateProblem, has_fixed_rows
from .paired_rows import PairedFunctionProblem, PairedInfluenceProblem, PairedRowProblem
from .question import named_columns
from .units import positions_of


@dataclass(frozen=True, kw_only=True)
class PairedQuestion:
    """A paired problem, with the pairs to compare and notes on its data."""

    problem: PairedProblem
    #: Positions of the groups in the order of the comparison.
    order: tuple[int, ...]
    pairs: list[Pair]
    n_rows: int
    n_missing: int
    features: tuple[str, ...]
    left_out: tuple[ExcludedGroup, ...]
    #: Remarks on how the rows were read.
    notes: tuple[Note, ...] = ()

    def notes_of_rows(self) -> list[Note]:
        """Return notes on excluded rows and groups."""
        notes = []
        if self.n_missing:
            features = " or ".join(self.features)
            notes.append(rows_without_group_note(self.n_missing, features, self.n_rows))
        return [*notes, *self.notes, *notes_on_excluded(self.left_out)]


@dataclass(frozen=True, kw_only=True)
class ReplicateOptions:
    """The options of replicates."""

    n_resamples: int
    seed: int
    n_threads: int | None
    progress: Progress


def prepare_paired_question(
    table: AuditTable,
    metric: Metric,
    drawing: ReplicateOptions,
    *,
    groups: Sequence[Any] | None,
    reference: Any,
    undefined: str,
    min_group_size: int | None,
    pos_label: Label,
) -> PairedQuestion:
    """Read a table for two models, and return the question how a metric changes."""
    decides = _check(table, metric)
    twice = rows = None
    if metric.is_counts:
        twice = table.count_paired(pos_label=pos_label, n_threads=drawing.n_threads)
        cells = twice.cells
    else:
        rows = _rows(table, metric, decides, pos_label)
        cells = rows.cells

    def make(keys: Sequence[GroupKey]) -> PairedProblem:
        # The order of the comparison must not change the replicates of a group.
        ordered = [key for key in cells.groups if key in set(keys)]
        if rows is not None:
            return _problem_of_rows(rows, metric, ordered, decides, drawing)
        assert twice is not None
        return _problem_of_counts(twice, metric, ordered, "y_true" in table.roles)

    chosen = choose_groups(cells, groups, reference)
    rule = ExclusionRule(
        make=make,
        metric=metric.name,
        sizes=cells.group_sizes(),
        with_reference=reference is not None,
        undefined=undefined,
        min_group_size=min_group_size,
    )
    problem, left_out = rule.split_off(chosen)
    kept = [key for key in chosen if key in problem.keys]
    order = tuple(problem.keys.index(key) for key in kept)
    pairs = [(order[i], order[j]) for i, j in pairs_of(kept, reference)]
    # Each pair has two series of replicates: for the change and the sum of the gaps.
    drawing.progress.total = 2 * len(pairs) * drawing.n_resamples
    return PairedQuestion(
        problem=problem,
        order=order,
        pairs=pairs,
        n_rows=cells.n_rows,
        n_missing=cells.n_missing,
        features=cells.sensitive_features,
        left_out=left_out,
        notes=tuple(cells.notes),
    )


def _places(cells: Cells, keys: Sequence[GroupKey]) -> list[int]:
    return [cells.groups.index(key) for key in keys]


def _check(table: AuditTable, metric: Metric) -> bool:
    """Check that two models can be compared by a metric; return whether it uses decisions."""
    kind, needs = metric.kind, metric.needs
    if "counts" in table.roles and not metric.is_counts:
        raise ArgumentError(
            f"metric is {metric.name!r}, which needs one row per person, but counts is given. Pass "
            "a rate or another metric of counts.",
            argument="metric",
            mentions=("counts",),
            code="conflicting-arguments",
        )
    if kind.why_no_intervals is not None:
        raise ArgumentError(
            f"metric is {metric.name!r}, which {kind.why_no_intervals}", argument="metric"
        )
    named = named_columns(metric)
    if named:
        raise ArgumentError(
            f"metric is {metric.name!r}, which uses column {named[0]!r} of the data, the same for "
            "both models. Pass a metric of decisions or scores.",
            argument="metric",
        )
    inputs = [name for name in ("y_pred", "y_score") if name in needs]
    if len(inputs) != 1:
        what = "both decisions and scores" if inputs else "neither decisions nor scores"
        raise ArgumentError(
            f"metric is {metric.name!r}, which uses {what}. Pass a metric of one of them, and that "
            "column of each model as first= and second=.",
            argument="metric",
            mentions=("first", "second"),
        )
    for name in ("first", "second"):
        if name not in table.roles:
            what = "decisions" if inputs == ["y_pred"] else "scores"
            raise ArgumentError(
                f"{name} is None; {metric.name} needs the {what} of both models",
                argument=name,
                code="missing-argument",
            )
    if "y_true" in needs and "y_true" not in table.roles:
        raise ArgumentError(
            f"y_true is None, but {metric.name} needs labels. Pass y_true=.",
            argument="y_true",
            code="missing-argument",
            needed_by=metric.name,
        )
    return inputs == ["y_pred"]


def _rows(table: AuditTable, metric: Metric, decides: bool, pos_label: Label) -> Rows:
    labels = ["y_true"] if "y_true" in metric.needs else []
    models = ["first", "second"]
    return table.rows(
        columns=[*labels, *(models if decides else [])],
        extra=[] if decides else models,
        binary=metric.kind.binary_labels or pos_label is not None,
        pos_label=pos_label,
        needed_by=metric.name,
    )


def _problem_of_counts(
    twice: PairedCounts, metric: Metric, keys: Sequence[GroupKey], has_labels: bool
) -> PairedProblem:
    places = _places(twice.cells, keys)
    sizes = twice.cells.group_sizes()
    n_rows, features = tuple(sizes[key] for key in keys), twice.cells.sensitive_features
    counts = twice.counts[places]
    if has_fixed_rows(metric):
        return PairedRateProblem(
            metric=metric,
            keys=tuple(keys),
            n_rows=n_rows,
            features=features,
            counts=counts,
            has_labels=has_labels,
        )
    return PairedCellProblem(
        metric=metric,
        keys=tuple(keys),
        n_rows=n_rows,
        features=features,
        counts=counts,
        has_labels=has_labels,
    )


def _problem_of_rows(
    rows: Rows, metric: Metric, keys: Sequence[GroupKey], decides: bool, drawing: ReplicateOptions
) -> PairedProblem:
    position = positions_of(rows.cells, keys)[rows.group]
    order, turned = _canonical_order(rows, position)
    taken = rows.taken(order)
    sizes = rows.cells.group_sizes()
    own = "y_pred" if decides else "y_score"
    labels = {name: taken.columns[name] for name in ("y_true",) if name in taken.columns}
    kind: type[PairedRowProblem] = PairedInfluenceProblem
    if metric.kind.reads == "function":
        kind = PairedFunctionProblem
    return kind(
        metric=metric,
        keys=tuple(keys),
        n_rows=tuple(sizes[key] for key in keys),
        features=rows.cells.sensitive_features,
        group=positions_of(rows.cells, keys)[taken.group].astype(np.uint16),
        first={**labels, own: taken.columns["first"]},
        second={**labels, own: taken.columns["second"]},
        seed=drawing.seed,
        n_draws=drawing.n_resamples,
        turned=turned,
        n_threads=drawing.n_threads,
        progress=drawing.progress,
    )


def _canonical_order(rows: Rows, position: NDArray[np.int64]) -> tuple[NDArray[np.int64], bool]:
    """Return an order of the rows that does not depend on which model comes first.

    Also return whether the models swap roles in this order.
    """
    columns = [np.asarray(rows.columns[name], dtype=np.float64) for name in ("first", "second")]
    ordered = [np.sort(column) for column in columns]
    differ = np.flatnonzero(ordered[0] != ordered[1])
    turned = bool(differ.size and ordered[0][differ[0]] > ordered[1][differ[0]])
    if turned:
        columns.reverse()
    label = [rows.columns["y_true"]] if "y_true" in rows.columns else []
    order = np.lexsort((columns[1], columns[0], *label, position))
    return order[np.searchsorted(position[order], 0) :], turned
