"""`intervals`: confidence intervals for the values, gaps and ratios of a metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from .. import arguments, metrics
from ..data.groups import attribute_name, group_label
from ..data.labels import Label
from ..data.tables import AuditTable
from ..literals import IntervalMethod, Missing, MixedClusters, Undefined
from ..metrics.metric import AnyMetric
from ..report.words import number
from .estimates import (
    Estimate,
    IntervalBuilder,
    draw_replicates,
    drawn_pairs,
    method_of,
    notes_of_intervals,
)
from .excluded_groups import ExcludedGroup, with_left_out
from .question import named_columns, prepare_question, within_strata
from .within_strata import PairWithinStrata, StratifiedFinding

METHODS: tuple[IntervalMethod, ...] = get_args(IntervalMethod)


@dataclass(frozen=True, repr=False, eq=False)
class IntervalResult(StratifiedFinding):
    """The result of `intervals`; ``estimate`` is the gap, or the largest of several gaps.

    There is no test: ``statistic`` and ``pvalue`` are NaN.

    Attributes
    ----------
    metric : str
        Name of the metric.
    values, gaps, ratios : tuple of Estimate
        The metric of each group; the difference and the ratio of each pair. The confidence level
        holds for each interval separately.
    simultaneous : tuple of Estimate
        The differences again, with simultaneous intervals.
    largest_gap : Estimate
        The largest difference of two compared groups, from the simultaneous intervals.
    method : str
        How the intervals were made.
    n_resamples : int
        Bootstrap replicates; 0 when the method needs none.
    undefined_share : float
        Share of the replicates in which some group has no value; they widen the intervals.
    n_missing : int
        Rows that belong to no group because a sensitive feature is missing.
    confidence_level : float
        Level of the intervals.
    attribute : str
        Names of the sensitive features.
    left_out : tuple of ExcludedGroup
        Groups that are not compared, with their rows and the reason.
    strata : tuple of str
        Names of the strata within which the gaps are taken; empty if over all rows.
    within : tuple of PairWithinStrata
        The values of each pair in every stratum, and the test whether its gap is the same in all.
    """

    metric: str
    values: tuple[Estimate, ...]
    gaps: tuple[Estimate, ...]
    ratios: tuple[Estimate, ...]
    simultaneous: tuple[Estimate, ...]
    largest_gap: Estimate
    method: str
    n_resamples: int
    undefined_share: float
    n_missing: int
    confidence_level: float
    attribute: str
    left_out: tuple[ExcludedGroup, ...] = ()
    strata: tuple[str, ...] = ()
    within: tuple[PairWithinStrata, ...] = ()

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        low, high = self.confidence_interval
        who = (
            f"{self.sized(self.values[0].first)} minus {self.sized(self.values[1].first)}"
            if len(self.values) == 2
            else f"the largest, {self._furthest()}"
        )
        interval = (
            "no interval"
            if math.isnan(low)
            else f"{100 * self.confidence_level:g} % interval {number(low)} to {number(high)}"
        )
        within = f" within equal {', '.join(self.strata)}" if self.strata else ""
        return f"{self.metric}: the gap{within}, {who}, is {number(self.estimate)} ({interval})."

    @property
    def details(self) -> str:
        """The name of the intervals."""
        return f"{self.method} intervals"

    def _furthest(self) -> str:
        """Name the two compared groups with the largest gap."""
        gap = max(self.gaps, key=lambda estimate: abs(estimate.estimate))
        if gap.estimate == 0:
            return f"of {len(self.group_sizes)} groups ({self.sizes()})"
        most, least = (gap.first, gap.second)[:: 1 if gap.estimate > 0 else -1]
        return f"of {self.sized(most)} and {self.sized(least)}"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("estimates", *super().tables)

    def _rows_of(self, table: str) -> Sequence[dict[str, Any]]:
        return (
            [row for row in self.rows() if row["second"]]
            if table == "pairs"
            else (super()._rows_of(table))
        )

    def _document_tables(self) -> Sequence[str]:
        """Return the tables of groups and pairs, which contain all estimates."""
        return ("groups", "pairs")

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        rows = [
            {
                "metric": self.metric,
                "group": self.name_of(value.first),
                "n_rows": self.group_sizes[value.first],
                "n_used": value.n_used,
                "value": value.estimate,
                "standard_error": value.standard_error,
                "low": value.confidence_interval[0],
                "high": value.confidence_interval[1],
            }
            for value in self.values
        ]
        return with_left_out(rows, self.left_out, self.name_of)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per estimate, then one per excluded group, with the reason."""
        everything = (
            *self.values,
            *self.gaps,
            *self.ratios,
            *self.simultaneous,
            self.largest_gap,
        )
        return [
            {
                "metric": self.metric,
                "kind": entry.kind,
                "first": None if entry.first is None else self.name_of(entry.first),
                "second": None if entry.second is None else self.name_of(entry.second),
                "first_n_rows": self.group_sizes.get(entry.first),
                "second_n_rows": self.group_sizes.get(entry.second),
                "estimate": entry.estimate,
                "standard_error": entry.standard_error,
                "low": entry.confidence_interval[0],
                "high": entry.confidence_interval[1],
                "reason": None,
            }
            for entry in everything
        ] + [
            {
                "metric": self.metric,
                "kind": "value",
                "first": self.name_of(group.group),
                "second": None,
                "first_n_rows": group.n_rows,
                "second_n_rows": None,
                "estimate": math.nan,
                "standard_error": math.nan,
                "low": math.nan,
                "high": math.nan,
                "reason": group.reason,
            }
            for group in self.left_out
        ]


def intervals(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    sensitive_features: Any = None,
    data: Any = None,
    metric: AnyMetric,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    undefined: Undefined = "raise",
    min_group_size: int | None = None,
    method: IntervalMethod = "auto",
    strata: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    missing: Missing | None = None,
    mixed_clusters: MixedClusters = "refuse",
    n_resamples: int = 9_999,
    confidence_level: float = 0.95,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> IntervalResult:
    r"""Compute confidence intervals for a metric's group values, gaps, ratios and largest gap.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference : optional
        See `permutation_test`. Correlations, joint criteria and calibration_error are not
        supported.
    undefined, min_group_size : optional
        See `permutation_test`.
    method : {"auto", "score", "mover", "inversion", "studentized", "delta", "basic", ...}
        ``"score"``: Wilson's interval of a proportion, Newcombe's of a difference, the inverted
        score test of a ratio, which also works for rates of 0.
        ``"mantel-haenszel"``: the differences and ratios of proportions that the score test within
        strata does not reject.
        ``"mover"``: combines the limits of each group's value: on the logit scale for metrics with
        a known range; with a smoothed variance for sums of proportions such as balanced accuracy.
        ``"inversion"``: all gaps that the permutation test of means and ratios does not reject, or
        melded limits for few rows with a known range of values (group values and ratios: melded
        limits or bootstrap-t). ``"studentized"``: bootstrap-t; every replicate is divided by its
        own standard error. ``"delta"``: the normal distribution with the linearised variance, no
        replicates. ``"basic"`` and ``"percentile"`` are offered for comparison.
        ``"auto"`` takes score for
        proportions, mover for F1, AUC, balanced accuracy and other metrics with a known range,
        inversion for means, ratios of sums, and rates of weighted rows or of clusters, delta with
        the bootstrap standard error for callables, studentized otherwise. Within strata each metric
        has one method: mantel-haenszel for proportions, inversion for means, ratios of sums and
        weighted or clustered rates, delta otherwise.
    strata : None, "auto", array(s), or str(s) with ``data``
        Take gaps within strata, as `permutation_test` does; group values are still over all rows.
        Only rates have ratios within strata.
        ``"auto"`` takes the strata of cells. ``None``: gaps of all rows.
    clusters, sample_weight, score_bins, pos_label : optional
        See `permutation_test`. Whole clusters are resampled.
    missing, mixed_clusters : optional
        See `permutation_test`.
    n_resamples : int
        Bootstrap replicates.
    confidence_level : float
        Level of the intervals.
    rng, random_state, n_threads, progress : optional
        See `permutation_test`. Callables are evaluated in this process whatever ``n_threads`` is.

    Returns
    -------
    IntervalResult

    Notes
    -----
    Rows are resampled within each group. For counts a replicate is a multinomial draw over the
    cells; for rows it is a count per row, drawn in blocks. Intervals of ratios are computed on the
    log scale, except those of proportions by ``"score"``.

    Simultaneous intervals use the quantile of :math:`\max |t^*|` over pairs (studentized) or
    Bonferroni (others). The interval of the largest gap comes from these: a percentile interval of
    max - min itself cannot contain 0 and is never returned.

    A replicate in which a group has no value is treated as beyond both ends of every interval.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> result = fa.intervals(
    ...     [1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 1, 0, 0, 0],
    ...     sensitive_features=list("aaaabbbb"), metric="true_positive_rate")
    >>> result.method, [round(x, 2) for x in result.confidence_interval]
    ('score', [-0.14, 0.79])
    """
    method = arguments.choice("method", method, METHODS)
    checked = arguments.check(
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        rng=rng,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    n_resamples, level = checked.n_resamples, checked.confidence_level
    seed, n_threads, callback = checked.seed, checked.n_threads, checked.progress
    chosen = metrics.get(metric)
    within, own_strata = within_strata(strata)
    table = AuditTable.make(
        data=data,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        sensitive_features=sensitive_features,
        strata=own_strata,
        clusters=clusters,
        sample_weight=sample_weight,
        extra=named_columns(chosen),
        missing=missing,
        mixed_clusters=mixed_clusters,
    )
    question = prepare_question(
        table,
        chosen,
        groups=groups,
        reference=reference,
        undefined=undefined,
        min_group_size=min_group_size,
        conditional=within and bool(table.strata),
        score_bins=score_bins,
        pos_label=pos_label,
        n_threads=n_threads,
        seed=seed,
        with_marginal=True,
    )
    problem, marginal = question.problem, question.marginal
    method = method_of(method, problem, METHODS)
    bootstrap = draw_replicates(problem, method, n_resamples, seed, n_threads, callback)
    everything = question.pairs
    drawn = drawn_pairs(
        problem, method, n_resamples, seed, n_threads, callback, n_pairs=len(everything)
    )
    maker = IntervalBuilder(
        problem=problem, method=method, bootstrap=bootstrap, level=level, drawn=drawn
    )
    of_values = maker
    if marginal is not None:
        usual = method_of("auto", marginal, METHODS)
        of_values = IntervalBuilder(
            problem=marginal,
            method=usual,
            bootstrap=draw_replicates(marginal, usual, n_resamples, seed, n_threads, None),
            level=level,
            drawn=drawn_pairs(marginal, usual, n_resamples, seed, n_threads, None, n_pairs=0),
        )
    k = len(problem.keys)
    names = [group_label(key) for key in problem.keys]
    together = maker.simultaneous(everything)
    largest, of_largest = maker.largest(everything, together)
    gaps = tuple(maker.gap(pair, names) for pair in question.pairs)
    largest_gap = Estimate(
        kind="largest gap",
        first=None,
        second=None,
        estimate=largest,
        standard_error=math.nan,
        confidence_interval=of_largest,
    )
    first = gaps[0] if k == 2 else largest_gap
    notes = [] if drawn is None else drawn.notes
    return IntervalResult(
        estimate=first.estimate,
        standard_error=first.standard_error,
        statistic=math.nan,
        pvalue=math.nan,
        confidence_interval=first.confidence_interval,
        alternative="two-sided",
        n_rows=sum(problem.n_rows),
        group_sizes=dict(zip(names, problem.n_rows, strict=True)),
        seed=seed,
        engine=problem.drawing_engine if bootstrap or drawn else "formula",
        notes=(
            *notes_of_intervals(question, bootstrap, maker),
            *notes,
            *(maker.ratio_notes() if problem.has_ratios else ()),
            *(() if marginal is None else of_values.notes_of_values(problem.has_ratios)),
        ),
        metric=problem.metric.name,
        values=tuple(of_values.value(i, names) for i in range(k)),
        gaps=gaps,
        ratios=tuple(maker.ratio(pair, names) for pair in question.pairs if problem.has_ratios),
        simultaneous=tuple(
            Estimate(
                kind="simultaneous gap",
                first=names[i],
                second=names[j],
                estimate=problem.gap((i, j)).estimate,
                standard_error=problem.gap((i, j)).standard_error,
                confidence_interval=interval,
            )
            for (i, j), interval in zip(everything, together, strict=True)
        ),
        largest_gap=largest_gap,
        method=problem.shown_method(method) if drawn is None else drawn.method_name,
        n_resamples=n_resamples if bootstrap or drawn else 0,
        undefined_share=bootstrap.undefined_share() if bootstrap else 0.0,
        n_missing=question.n_missing,
        confidence_level=level,
        attribute=attribute_name(question.features),
        left_out=question.left_out,
        strata=question.strata_names,
        within=question.within,
    )
