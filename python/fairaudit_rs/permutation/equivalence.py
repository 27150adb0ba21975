"""`equivalence_test`: tests whether all gaps between groups are smaller than a margin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from .. import arguments, metrics
from ..data.groups import attribute_name, group_label
from ..data.labels import Label
from ..data.tables import AuditTable
from ..errors import ArgumentError
from ..inference.required_rows import (
    PROMISED,
    RequiredRows,
    rows_of_smaller_group,
    rows_that_tell,
    times_to_show_all_within,
)
from ..literals import EquivalenceMethod, Missing, MixedClusters, Scale, Undefined
from ..metrics.metric import AnyMetric
from ..report.words import number, numbers, p_text
from ..results.verdict import rejects_at
from .comparison import group_values
from .estimates import (
    IntervalBuilder,
    draw_replicates,
    drawn_pairs,
    method_of,
    notes_of_intervals,
)
from .excluded_groups import ExcludedGroup, with_left_out
from .question import named_columns, prepare_question, within_strata
from .result import GroupValue
from .two_one_sided import NAMES, TwoOneSidedTests
from .within_strata import PairWithinStrata, StratifiedFinding

METHODS: tuple[EquivalenceMethod, ...] = get_args(EquivalenceMethod)


@dataclass(frozen=True, kw_only=True)
class EquivalenceComparison:
    """Two groups, and the p-value of the hypothesis that their gap exceeds the margin."""

    first: Any
    second: Any
    estimate: float
    standard_error: float
    #: The statistic of the one-sided test that is further from rejecting.
    statistic: float
    pvalue: float
    confidence_interval: tuple[float, float]


@dataclass(frozen=True, repr=False, eq=False)
class EquivalenceResult(StratifiedFinding):
    """The result of `equivalence_test`; a small p-value shows that every gap is below the margin.

    Attributes
    ----------
    metric : str
        Name of the metric.
    margin : float
        The largest difference, or the smallest ratio, that is regarded as equal.
    scale : str
        ``"difference"`` or ``"ratio"``.
    comparisons : tuple of EquivalenceComparison
        Every pair of groups; the p-value of the result is the largest of theirs.
    method : str
        How the two one-sided tests were made.
    n_resamples : int
        Bootstrap replicates; 0 when the method needs none.
    rows_that_tell : RequiredRows or None
        When equality is not shown: the factor by which all groups must grow for a verdict with a
        probability of 80 %, and on which side of the margin, if the gap stays as observed.
    confidence_level : float
        1 minus the level of the test. Intervals have the confidence 1 - 2 * level, so they lie
        within the margin when the test rejects (apart from small differences between methods).
    attribute : str
        Names of the sensitive features.
    values : tuple of GroupValue
        The metric of each group; its intervals have the same level as those of the gaps.
    left_out : tuple of ExcludedGroup
        Groups that were not tested, with their rows and the reason.
    strata : tuple of str
        Names of the strata within which the gaps are taken; empty if over all rows.
    within : tuple of PairWithinStrata
        The values of each pair in every stratum, and the test whether its gap is the same in all.
    """

    metric: str
    margin: float
    scale: str
    comparisons: tuple[EquivalenceComparison, ...]
    method: str
    n_resamples: int
    confidence_level: float
    attribute: str
    values: tuple[GroupValue, ...]
    left_out: tuple[ExcludedGroup, ...] = ()
    strata: tuple[str, ...] = ()
    within: tuple[PairWithinStrata, ...] = ()

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        shown = rejects_at(self.pvalue, 1 - self.confidence_level)
        what = NAMES[self.scale]
        if self.strata:
            what += f" within equal {', '.join(self.strata)}"
        bounds = (
            f"-{number(self.margin)} to {number(self.margin)}"
            if self.scale == "difference"
            else f"{number(self.margin)} to {number(1 / self.margin)}"
        )
        verdict = "is shown to lie" if shown else "is not shown to lie"
        worst = max(self.comparisons, key=lambda pair: pair.pvalue)
        pair = f"{self.sized(worst.first)} and {self.sized(worst.second)}"
        if len(self.comparisons) == 1:
            who = f"the {what} of {number(self.estimate)} of {pair}"
        elif shown:
            who = (
                f"every {what} of {len(self.group_sizes)} groups (hardest to show: "
                f"{number(self.estimate)} of {pair})"
            )
        else:
            who = f"the {what} of {number(self.estimate)} of {pair}, if no other,"
        return (
            f"{self.metric}: {who} {verdict} within {bounds} at the "
            f"{100 * (1 - self.confidence_level):.3g} % level ({p_text(self.pvalue)})."
            f"{self._silence()}{self._advice(worst)}"
        )

    @property
    def details(self) -> str:
        """The name of the tests."""
        return f"two one-sided {self.method} tests"

    def _silence(self) -> str:
        """Name the excluded groups: excluding them must not look like equality."""
        if not self.left_out:
            return ""
        names = ", ".join(self.name_of(group.group) for group in self.left_out)
        return f" Nothing is shown about {names}, which are excluded."

    def _advice(self, worst: EquivalenceComparison) -> str:
        """Return that the gap lies beyond the bounds, or the required rows, as a sentence."""
        telling = self.rows_that_tell
        if telling is None:
            return ""
        what = NAMES[self.scale]
        least, most = (
            (-self.margin, self.margin)
            if self.scale == "difference"
            else (self.margin, 1 / self.margin)
        )
        low, high = worst.confidence_interval
        if low > most or high < least:
            n = len(self.comparisons)
            alone = f", of this one of {n:,} pairs alone" if n > 1 else ""
            level = f"{100 * (2 * self.confidence_level - 1):.3g} %"
            low_text, high_text = numbers(low, high)
            return (
                f" More rows are not needed: its {level} interval, {low_text} to {high_text}{alone}"
                ", lies beyond these bounds."
            )
        if telling.n_rows is not None and telling.factor <= 1:
            return ""  # The formula is for many rows; here it would ask for fewer than there are.
        of_all = telling.side == "within" and len(self.comparisons) > 1
        stays = "If all values stay as they are" if of_all else f"If the {what} stays as it is"
        if telling.n_rows is None:
            return f" {stays}, no realistic number of rows would tell."
        smaller = min((worst.first, worst.second), key=self.group_sizes.__getitem__)
        return (
            f" {stays}, {telling.factor:.3g} times the rows ({telling.n_rows:,} of "
            f"{self.name_of(smaller)}) would show with probability {PROMISED:g} that "
            f"{f'every {what}' if of_all else 'it'} lies {telling.side} these bounds."
        )

    @property
    def rows_that_tell(self) -> RequiredRows | None:
        """The required rows for a verdict, if all values stay as observed.

        If the gap that is hardest to show is within the margin: the rows needed to show this for
        all pairs, as in an audit. None when equality is shown, or the gap is unknown.
        """
        worst = max(self.comparisons, key=lambda pair: pair.pvalue)
        level = 1 - self.confidence_level
        unknown = math.isnan(worst.statistic) or not 0 < worst.standard_error < math.inf
        if rejects_at(self.pvalue, level) or unknown:
            return None
        gap, error, tolerance = worst.estimate, worst.standard_error, self.margin
        if self.scale == "ratio":
            gap, error, tolerance = math.log(gap), error / gap, -math.log(tolerance)
        n_smaller = min(self.group_sizes[group] for group in (worst.first, worst.second))
        n_tests = len(self.comparisons)
        if n_tests > 1 and abs(gap) < tolerance:
            return rows_of_smaller_group(
                "within", self._times_to_show_all(tolerance, level), n_smaller
            )
        return rows_that_tell(gap, error, tolerance, level, n_smaller, n_tests)

    def _times_to_show_all(self, tolerance: float, level: float) -> float:
        """Return the factor by which all groups must grow to show all pairs within the margin."""
        is_ratio = self.scale == "ratio"
        position: dict[Any, int] = {}
        values, variances, pairs = [], [], []
        of_group = {
            group_value.group: group_value
            for group_value in self.values
            if group_value.metric == self.metric
        }
        for k, pair in enumerate(self.comparisons):
            gap, error = pair.estimate, pair.standard_error
            if is_ratio:
                if not gap > 0:
                    return math.inf
                gap, error = math.log(gap), error / gap
            ends = []
            for group, own in ((pair.first, gap), (pair.second, 0.0)):
                # Within strata a group has a value of its own in each comparison.
                key = (group, k) if self.strata else group
                if key not in position:
                    position[key] = len(position)
                    value, spread = of_group[group].value, of_group[group].standard_error
                    if is_ratio and not self.strata:
                        value, spread = math.log(value), spread / value
                    values.append(own if self.strata else value)
                    variances.append(error**2 / 2 if self.strata else spread**2)
                ends.append(position[key])
            pairs.append((ends[0], ends[1], error))
        return times_to_show_all_within(values, variances, pairs, tolerance, level)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per pair of groups, then one per excluded group."""
        return [
            {
                "metric": self.metric,
                "first": self.name_of(pair.first),
                "second": self.name_of(pair.second),
                "first_n_rows": self.group_sizes[pair.first],
                "second_n_rows": self.group_sizes[pair.second],
                "scale": self.scale,
                "margin": self.margin,
                "estimate": pair.estimate,
                "low": pair.confidence_interval[0],
                "high": pair.confidence_interval[1],
                "pvalue": pair.pvalue,
                "reason": None,
            }
            for pair in self.comparisons
        ] + [
            {
                "metric": self.metric,
                "first": self.name_of(group.group),
                "second": None,
                "first_n_rows": group.n_rows,
                "second_n_rows": None,
                "scale": self.scale,
                "margin": self.margin,
                "estimate": math.nan,
                "low": math.nan,
                "high": math.nan,
                "pvalue": math.nan,
                "reason": group.reason,
            }
            for group in self.left_out
        ]

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        rows = [value.row(self.name_of(value.group)) for value in self.values]
        return with_left_out(rows, self.left_out, self.name_of)


def equivalence_test(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    sensitive_features: Any = None,
    data: Any = None,
    metric: AnyMetric,
    margin: float,
    scale: Scale = "difference",
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    undefined: Undefined = "raise",
    min_group_size: int | None = None,
    method: EquivalenceMethod = "auto",
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
) -> EquivalenceResult:
    r"""Test whether all gaps between groups are smaller than a margin.

    A test that does not reject equality proves nothing: there may be too few data. Here the null
    hypothesis is that some gap is at least as large as the margin; rejecting it shows that all gaps
    are smaller.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference : optional
        See `permutation_test`.
    undefined, min_group_size : optional
        See `permutation_test`. Nothing is claimed about excluded groups.
    margin : float
        With ``scale="difference"`` the largest difference that is regarded as equal; with
        ``scale="ratio"`` the smallest ratio, below 1: 0.8 for the four-fifths rule.
    scale : {"difference", "ratio"}
        Whether the margin limits a difference or a ratio.
    method : {"auto", "score", "mover", "mantel-haenszel", "inversion", "studentized", "delta"}
        ``"score"``: the score tests of proportions, of Farrington and Manning for differences and
        of Miettinen and Nurminen (without their factor N / (N - 1)) for ratios, which also work
        for rates of 0 or 1. ``"mantel-haenszel"``: the score test of rates within strata that
        differ by the margin. Both take the larger p-value of the score and of the score corrected
        for skewness. ``"mover"``: combines the limits of each group's value. ``"inversion"``: the
        permutation test of means and ratios at either margin, or melded limits for few rows with a
        known range of values; no verdict if a group may lack its rare extreme values.
        ``"studentized"``: bootstrap-t. ``"delta"``: the normal distribution.
        ``"auto"`` takes score for proportions, mover for F1, AUC, balanced accuracy and other
        metrics with a known range, inversion for means, ratios of sums, and rates of weighted
        rows or of clusters, delta for callables, studentized otherwise. Within strata each metric
        has one method: mantel-haenszel for proportions, inversion for means, ratios of sums and
        weighted or clustered rates, delta otherwise.
    strata : None, "auto", array(s), or str(s) with ``data``
        Take gaps within strata, as `permutation_test` does; only rates have ratios there.
        ``"auto"`` takes the strata of cells. ``None``: gaps of all rows.
    clusters, sample_weight, score_bins, pos_label, n_resamples : optional
        See `intervals`.
    missing, mixed_clusters : optional
        See `permutation_test`.
    confidence_level : float
        1 minus the level of the test.
    rng, random_state, n_threads, progress : optional
        See `permutation_test`.

    Returns
    -------
    EquivalenceResult

    Notes
    -----
    Each pair has two one-sided tests: that the gap is at most -margin, and that it is at least
    margin; the p-value of the pair is the larger one. The p-value of all pairs is the largest of
    theirs (an intersection-union test needs no adjustment).

    References
    ----------
    .. [1] Farrington, C. P. and Manning, G. (1990). Test statistics and sample size formulae for
       comparative binomial trials. Statistics in Medicine 9. doi:10.1002/sim.4780091208
    .. [2] Miettinen, O. and Nurminen, M. (1985). Comparative analysis of two rates. Statistics in
       Medicine 4. doi:10.1002/sim.4780040211
    .. [3] Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect
       measures: a general approach. Statistics in Medicine 27. doi:10.1002/sim.3095

    Examples
    --------
    >>> import numpy as np
    >>> import fairaudit_rs as fa
    >>> decisions = np.tile([1, 0], 1000)
    >>> result = fa.equivalence_test(
    ...     y_pred=decisions, sensitive_features=np.repeat(["a", "b"], 1000),
    ...     metric="selection_rate", margin=0.05)
    >>> result.pvalue < 0.05
    True
    """
    method = arguments.choice("method", method, METHODS)
    scale = arguments.choice("scale", scale, get_args(Scale))
    margin = _margin(margin, scale)
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
    if level <= 0.5:
        raise ArgumentError(
            f"confidence_level is {level:g}; accepted: above 0.5", argument="confidence_level"
        )
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
    )
    problem = question.problem
    if scale == "ratio" and not problem.has_ratios:
        raise ArgumentError(
            f"scale is 'ratio', but within strata {problem.metric.name} is compared by differences "
            "only. Pass scale='difference', or no strata.",
            argument="scale",
            mentions=("strata",),
            code="conflicting-arguments",
        )
    method = method_of(method, problem, METHODS, scale)
    bootstrap = draw_replicates(problem, method, n_resamples, seed, n_threads, callback)
    # Intervals with confidence 1 - 2 alpha lie within the margin when the test rejects.
    drawn = drawn_pairs(
        problem, method, n_resamples, seed, n_threads, callback, n_pairs=len(question.pairs)
    )
    maker = IntervalBuilder(
        problem=problem,
        method=method,
        bootstrap=bootstrap,
        level=2 * level - 1,
        drawn=drawn,
        of_tests=True,
    )
    names = [group_label(key) for key in problem.keys]
    tests = TwoOneSidedTests(
        problem=problem,
        scale=scale,
        formula=maker.formula if bootstrap is None else None,
        bootstrap=bootstrap,
    )
    comparisons, untestable = [], []
    for pair in question.pairs:
        entry = maker.gap(pair, names) if scale == "difference" else maker.ratio(pair, names)
        margins = tests.test_pair(pair, margin)
        if math.isnan(margins.statistic):
            untestable.append(pair)
        comparisons.append(
            EquivalenceComparison(
                first=entry.first,
                second=entry.second,
                estimate=entry.estimate,
                standard_error=entry.standard_error,
                statistic=margins.statistic,
                pvalue=margins.pvalue,
                confidence_interval=entry.confidence_interval,
            )
        )
    worst = max(comparisons, key=lambda pair: pair.pvalue)
    return EquivalenceResult(
        estimate=worst.estimate,
        standard_error=worst.standard_error,
        statistic=worst.statistic,
        pvalue=worst.pvalue,
        confidence_interval=worst.confidence_interval,
        alternative="equivalence",
        n_rows=sum(problem.n_rows),
        group_sizes=dict(zip(names, problem.n_rows, strict=True)),
        seed=seed,
        engine=problem.drawing_engine if bootstrap or drawn else "formula",
        notes=(
            *notes_of_intervals(question, bootstrap, maker),
            *tests.notes_on_untestable(untestable),
        ),
        metric=problem.metric.name,
        margin=margin,
        scale=scale,
        comparisons=tuple(comparisons),
        method=method if drawn is None else drawn.method_name,
        n_resamples=n_resamples if bootstrap or drawn else 0,
        confidence_level=level,
        attribute=attribute_name(question.features),
        values=group_values(problem, maker.level),
        left_out=question.left_out,
        strata=question.strata_names,
        within=question.within,
    )


def _margin(value: object, scale: str) -> float:
    accepted = "a number above 0" if scale == "difference" else "a number between 0 and 1"
    if not arguments.is_number(value):
        raise ArgumentError(f"margin is {value!r}; accepted: {accepted}", argument="margin")
    margin = arguments.as_float(value)
    if scale == "ratio" and margin > 1:
        raise ArgumentError(
            f"margin is {margin:g}; accepted: {accepted}, such as {1 / margin:.4g} for ratios from "
            f"{1 / margin:.4g} to {margin:g}",
            argument="margin",
            mentions=("scale",),
        )
    if not (0 < margin < math.inf) or (scale == "ratio" and margin >= 1):
        raise ArgumentError(
            f"margin is {margin:g}; accepted: {accepted} for scale={scale!r}",
            argument="margin",
            mentions=("scale",),
        )
    return margin
