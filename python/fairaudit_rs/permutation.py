"""The permutation lens: does a metric differ between groups? (DiCiccio et al., KDD 2020)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _validate, metrics
from ._comparisons import (
    OMNIBUS_SERIES,
    CountProblem,
    Outcome,
    Plan,
    Problem,
    Progress,
    RowProblem,
    label,
)
from .cells import Cells, GroupKey, Label, matches
from .errors import ArgumentError, ArgumentTypeError, DataError
from .metrics import Metric
from .multiplicity import adjust_pvalues
from .results import Result, group_name, number, p_text
from .tables import AuditTable, Rows

__all__ = ["Comparison", "GroupValue", "PermutationResult", "permutation_test"]

ALTERNATIVES = ("two-sided", "greater", "less")
ENGINES = ("auto", "exact", "cells", "stream")
#: Above this share of undefined replicates a result says so.
_MANY_UNDEFINED = 0.01
MAX_PAIRS = 100_000


@dataclass(frozen=True)
class GroupValue:
    """The metric of one group."""

    group: Any
    value: float
    standard_error: float
    n_rows: int
    #: Rows in the denominator of a proportion; all rows for other metrics.
    n_used: int


@dataclass(frozen=True)
class Comparison:
    """The difference of two groups, ``first`` minus ``second``."""

    first: Any
    second: Any
    estimate: float
    standard_error: float
    statistic: float
    pvalue: float
    adjusted_pvalue: float
    confidence_interval: tuple[float, float]
    engine: str
    n_undefined: int


@dataclass(frozen=True, repr=False)
class PermutationResult(Result):
    """What `permutation_test` found; see there for what the numbers mean.

    Attributes
    ----------
    metric : str
        Name of the metric.
    values : tuple of GroupValue
        The metric of each group.
    comparisons : tuple of Comparison
        Pairs of groups with raw and adjusted p-values; the one pair of a two-group test.
    pvalue_interval : tuple of float
        Clopper-Pearson interval (99 %) of the p-value that infinitely many replicates would
        give; of width 0 when the engine is exact.
    n_resamples : int
        Replicates of each test; 0 when the engine is exact.
    n_undefined : int
        Replicates in which the metric had no value; they count as extreme.
    n_missing : int
        Rows that belong to no group because a sensitive feature is missing.
    adjust, studentize, interval : str
        How p-values were adjusted, how the statistic was scaled, which interval is given.
    exchanged : str
        Which rows exchanged their groups.
    confidence_level : float
        Level of the intervals.
    null_distribution : ndarray
        The statistic of every replicate, or every value that it can take when the engine is
        exact; then ``null_probabilities`` holds their probabilities.
    """

    metric: str
    values: tuple[GroupValue, ...]
    comparisons: tuple[Comparison, ...]
    pvalue_interval: tuple[float, float]
    n_resamples: int
    n_undefined: int
    n_missing: int
    adjust: str
    studentize: str
    interval: str
    exchanged: str
    confidence_level: float
    null_distribution: NDArray[np.float64]
    null_probabilities: NDArray[np.float64] | None

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        low, high = self.confidence_interval
        test = (
            "exact permutation test"
            if self.engine == "exact"
            else f"permutation test, {self.n_resamples:,} replicates"
        )
        alpha = 1 - self.confidence_level
        tail = f"{p_text(self.pvalue)}, {self.alternative} {test}"
        between = (
            "no interval"
            if math.isnan(low)
            else f"{100 * self.confidence_level:g} % interval {number(low)} to {number(high)}"
        )
        found = self.pvalue <= _cut(alpha)
        direction = {"greater": " above 0", "less": " below 0"}.get(self.alternative, "")
        if found:
            verdict = f"more than chance explains{direction} at the {100 * alpha:.3g} % level"
        elif direction:
            verdict = f"no evidence of a gap{direction}; that alone does not show equality"
        else:
            verdict = "within what chance explains; that alone does not show equality"
        within = self.exchanged.partition(" with equal ")[2]
        gap = f"gap within equal {within}" if within else "gap"
        if len(self.values) == 2:
            first, second = self.values
            return (
                f"{self.metric}: {number(first.value)} for {group_name(first.group)} and "
                f"{number(second.value)} for {group_name(second.group)}. The {gap} of "
                f"{number(self.estimate)} ({between}) is {verdict} ({tail})."
            )
        least = min(self.values, key=lambda v: v.value)
        most = max(self.values, key=lambda v: v.value)
        return (
            f"{self.metric} of {len(self.values)} groups: from {number(least.value)} for "
            f"{group_name(least.group)} to {number(most.value)} for {group_name(most.group)}. "
            f"The differences (largest {gap} {number(self.estimate)}, {between}) are {verdict} "
            f"({tail})."
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per pair of groups; with more than two, first that of all groups."""
        values = {value.group: value for value in self.values}
        pairs = [
            {
                "metric": self.metric,
                "comparison": "pair",
                "first": group_name(pair.first),
                "second": group_name(pair.second),
                "first_value": values[pair.first].value,
                "second_value": values[pair.second].value,
                "estimate": pair.estimate,
                "standard_error": pair.standard_error,
                "low": pair.confidence_interval[0],
                "high": pair.confidence_interval[1],
                "statistic": pair.statistic,
                "pvalue": pair.pvalue,
                "adjusted_pvalue": pair.adjusted_pvalue,
                "engine": pair.engine,
                "n_undefined": pair.n_undefined,
            }
            for pair in self.comparisons
        ]
        if len(self.values) == 2:
            return pairs
        everything = {
            "comparison": "all groups",
            "first": None,
            "second": None,
            "first_value": None,
            "second_value": None,
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": self.confidence_interval[0],
            "high": self.confidence_interval[1],
            "statistic": self.statistic,
            "pvalue": self.pvalue,
            "adjusted_pvalue": None,
            "engine": self.engine,
            "n_undefined": self.n_undefined,
        }
        return [{"metric": self.metric, **everything}, *pairs]


def permutation_test(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    sensitive_features: Any = None,
    data: Any = None,
    metric: str | Metric,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    alternative: str = "two-sided",
    studentize: str | bool = "auto",
    strata: Any = "auto",
    adjust: str = "holm",
    engine: str = "auto",
    score_bins: Any = None,
    pos_label: Label = None,
    n_resamples: int = 9_999,
    confidence_level: float = 0.95,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> PermutationResult:
    r"""Test whether a metric is equal in all groups.

    Parameters
    ----------
    y_true, y_pred, y_score : array, or str with ``data``, optional
        Labels, decisions (0/1, booleans, or anything with ``pos_label``) and scores; those
        that the metric needs.
    sensitive_features : array, several arrays, or str(s) with ``data``
        The attributes whose values make the groups; several make their intersections. With
        ``data=cells`` the default is all attributes of the cells.
    data : frame, path, glob or Cells, optional
        See `tabulate`.
    metric : str or Metric
        A name or alias of the registry (``fairaudit metrics`` lists them), or a metric made by
        `metrics.count_metric`.
    groups : sequence, optional
        The groups to compare, in this order; all by default, sorted. Intersections are tuples.
    reference : optional
        Compare every other group with this one, as "other minus reference". Without it, two
        groups are compared as "first minus second", more as all pairs.
    alternative : {"two-sided", "greater", "less"}
        Against which differences; more than two groups are tested two-sided.
    studentize : {"auto", "pooled", "unpooled", "none"} or bool
        ``"auto"`` takes the pooled (score) variance for proportions, the linearised variance
        of each group for other metrics. ``False`` is ``"none"``: not valid when the groups
        differ in anything but the metric.
    strata : "auto", None, array(s), or str(s) with ``data``
        Rows exchange their groups only within a stratum. ``"auto"`` takes what the metric
        conditions on (true positive rate: the positive labels); strata of your own are
        crossed with it. ``None`` exchanges all rows.
    adjust : {"holm", "bh", "max-t", "none"}
        How p-values of several pairs are adjusted. ``"max-t"`` uses the joint replicates of
        all groups; it keeps the family-wise error when the groups do not differ in law at
        all, not for the weaker hypothesis that this metric is equal.
    engine : {"auto", "exact", "cells", "stream"}
        ``"auto"`` sums the permutation law where that is possible and draws from it otherwise:
        over cells for counts, over rows for ranks and row values.
    score_bins, pos_label : optional
        See `tabulate`.
    n_resamples : int
        Replicates of each test that is not exact.
    confidence_level : float
        Level of the intervals, and of the wording of the summary.
    rng : None, int, SeedSequence or Generator
        Source of the seed; ``random_state`` is an alias.
    n_threads : int, optional
        None takes all cores that the process may use. The result does not depend on it.
    progress : bool or callable, optional
        True prints; a callable gets (replicates done, replicates in all).

    Returns
    -------
    PermutationResult

    Raises
    ------
    DataError
        When the data cannot be tested as they are; the message says which value is in the way.

    Notes
    -----
    The null hypothesis is that the metric :math:`\theta` is equal in all groups. The statistic
    :math:`S = (\theta_a - \theta_b) / \sqrt{v_a + v_b}` is recomputed for every replicate with
    its own variances, so the test keeps its level asymptotically even when the groups differ
    in everything else [1]_; and exactly when the exchanged rows do not differ in law at all.
    For a proportion with ``strata="auto"`` that is the hypothesis itself: the test is exact.
    More than two groups are tested by :math:`\sum_g (\theta_g - \bar\theta)^2 / v_g`.

    :math:`p = (1 + \#\{|S^*| \ge |S|\}) / (1 + B)`; ties are decided on integers or within a
    relative 1e-10, a replicate without a value counts as extreme. Exact engines add up
    probabilities and need no "+ 1".

    With strata of your own the statistic is what remains of the gap when the part that the
    strata alone explain is taken away; for proportions the estimate is the Mantel-Haenszel
    difference, for other metrics that remainder (smaller than the gap within each stratum where
    groups are spread unevenly over strata).

    Intervals: Newcombe's score interval for differences of proportions, otherwise the delta
    method; with more than two groups that of the largest gap comes from Bonferroni intervals of
    all pairs.

    References
    ----------
    .. [1] DiCiccio, C., Vasudevan, S., Basu, K., Kenthapadi, K. and Agarwal, D. (2020).
       Evaluating Fairness Using Permutation Tests. KDD. doi:10.1145/3394486.3403199

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> result = fa.permutation_test(
    ...     [1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0, 0, 0, 0],
    ...     sensitive_features=list("aaaaabbbbb"), metric="true_positive_rate")
    >>> result.engine, round(result.pvalue, 4)
    ('exact', 0.0476)
    """
    chosen = metrics.get(metric)
    alternative = _validate.choice("alternative", alternative, ALTERNATIVES)
    adjust = _validate.choice("adjust", adjust, ("holm", "bh", "max-t", "none"))
    engine = _validate.choice("engine", engine, ENGINES)
    n_resamples = _validate.n_resamples(n_resamples)
    level = _validate.level("confidence_level", confidence_level)
    n_threads = _validate.n_threads(n_threads)
    callback = _validate.progress(progress)
    scaling = _studentize(studentize, chosen)
    seed = _validate.seed(rng, random_state)
    conditional, own_strata = _split_strata(strata)
    if score_bins is not None and chosen.family != "calibration":
        raise ArgumentTypeError(f"score_bins goes with calibration_error, not with {chosen.name}")
    if score_bins is not None and isinstance(data, Cells):
        raise ArgumentTypeError("score_bins does not go with data=cells, which hold their own bins")
    columns = (data, y_true, y_pred, y_score, sensitive_features, own_strata)
    problem: Problem
    if chosen.family in ("ranks", "ratio"):
        rows = _rows(chosen, *columns, pos_label)
        cells = rows.cells
        keys = _choose_groups(cells, groups, reference)
        problem = RowProblem.make(rows, chosen, keys, scaling, conditional)
    else:
        cells = _cells(*columns, chosen, score_bins, pos_label, n_threads)
        keys = _choose_groups(cells, groups, reference)
        problem = CountProblem.make(cells, chosen, keys, scaling, conditional)
    if alternative != "two-sided" and len(keys) > 2:
        raise ArgumentError(
            f"alternative is {alternative!r} with {len(keys)} groups; accepted: 'two-sided', or "
            "two groups named by groups="
        )
    if alternative != "two-sided" and level <= 0.5:
        raise ArgumentError(
            f"confidence_level is {level:g} with a one-sided alternative; accepted: above 0.5"
        )
    pairs = _pairs(keys, reference)
    joint = adjust == "max-t" and len(pairs) > 1
    ticker = Progress(callback, n_resamples)
    ticker.total = n_resamples * (len(pairs) + (len(keys) > 2) + joint)
    plan = Plan(engine, alternative, n_resamples, seed, n_threads, level, ticker)

    tests = [problem.test(pair, plan, 1 + i) for i, pair in enumerate(pairs)]
    raw = [test.pvalue for test in tests]
    if len(keys) == 2:
        test = tests[0]
        gap = problem.gap((0, 1))
        estimate, standard_error = gap.estimate, gap.standard_error
        interval = problem.one_sided_interval((0, 1), alternative, level)
    else:
        test = problem.test(range(len(keys)), plan, OMNIBUS_SERIES)
        estimate, interval = problem.largest_gap(level)
        standard_error = math.nan
    if joint:
        # A pair is tested on its own rows, the family on all: never below the pair's own p.
        adjusted = np.maximum(problem.max_t(pairs, plan), raw).tolist()
    else:
        adjusted = adjust_pvalues(raw, "none" if adjust == "max-t" else adjust).tolist()
    comparisons = tuple(
        Comparison(
            first=label(keys[pair[0]]),
            second=label(keys[pair[1]]),
            estimate=problem.gap(pair).estimate,
            standard_error=problem.gap(pair).standard_error,
            statistic=outcome.statistic,
            pvalue=outcome.pvalue,
            adjusted_pvalue=adjusted_pvalue,
            confidence_interval=problem.one_sided_interval(pair, alternative, level),
            engine=outcome.engine,
            n_undefined=outcome.n_undefined,
        )
        for pair, outcome, adjusted_pvalue in zip(pairs, tests, adjusted, strict=True)
    )
    values = tuple(
        GroupValue(
            group=label(key),
            value=evaluation[0],
            standard_error=math.sqrt(evaluation[1]),
            n_rows=n_rows,
            n_used=int(evaluation[3]) if chosen.is_proportion else n_rows,
        )
        for key, evaluation, n_rows in zip(keys, problem.evaluations, problem.n_rows, strict=True)
    )
    return PermutationResult(
        estimate=estimate,
        standard_error=standard_error,
        statistic=test.statistic,
        pvalue=test.pvalue,
        confidence_interval=interval,
        alternative=alternative,
        n_rows=sum(problem.n_rows),
        group_sizes={value.group: value.n_rows for value in values},
        seed=seed,
        engine=test.engine,
        warnings=tuple(_warnings(problem, cells, test, tests, adjust, interval, plan)),
        metric=chosen.name,
        values=values,
        comparisons=comparisons,
        pvalue_interval=test.pvalue_interval,
        n_resamples=test.n_resamples,
        n_undefined=test.n_undefined,
        n_missing=cells.n_missing,
        adjust=adjust,
        studentize=scaling,
        interval=_interval_name(problem),
        exchanged=_exchanged(chosen, conditional, cells.strata_names if conditional else ()),
        confidence_level=level,
        null_distribution=test.null,
        null_probabilities=test.probabilities,
    )


def _interval_name(problem: Problem) -> str:
    if not problem.metric.is_proportion:
        return "delta"
    return "mantel-haenszel" if problem.stratified else "newcombe"


def _warnings(
    problem: Problem,
    cells: Cells,
    test: Outcome,
    tests: Sequence[Outcome],
    adjust: str,
    interval: tuple[float, float],
    plan: Plan,
) -> list[str]:
    """Say what a reader must know besides the numbers."""
    name, alpha = problem.metric.name, 1 - plan.level
    warnings = []
    if cells.n_missing:
        warnings.append(
            f"{cells.n_missing:,} of {cells.n_rows:,} rows have no value of "
            f"{' or '.join(cells.sensitive_features)} and belong to no group"
        )
    if problem.scaling == "none":
        warnings.append(
            "the statistic is not studentized: the test can reject far too often when the groups "
            "differ in anything but the metric"
        )
    if len(problem.keys) > 2:
        warnings.append(
            "the largest gap of several groups has no standard error; its interval comes from "
            "Bonferroni intervals of all pairs, those of single pairs are not simultaneous"
        )
    if problem.metric.family == "calibration":
        warnings.append(
            "calibration_error is biased upwards in small groups, so its gap has no interval; the "
            "test asks whether labels follow the scores in the same way"
        )
    certain = problem.certain_groups()
    if certain and problem.scaling == "unpooled":
        warnings.append(
            f"{name} does not vary at all within {', '.join(certain[:5])}: its standard error is 0 "
            "and says nothing, and the test can have little power"
        )
    share = max(outcome.undefined_share for outcome in (test, *tests))
    if share > _MANY_UNDEFINED:
        warnings.append(
            f"{100 * share:.3g} % of the permutations give {name} no value in some group and "
            "count as extreme"
        )
    if test.pvalue == np.finfo(float).tiny:
        warnings.append("p is below the smallest number that can be told from 0")
    drawn = [outcome for outcome in tests if outcome.engine != "exact"]
    least = (len(tests) if adjust in ("holm", "bh") else 1) / (1 + plan.n_resamples)
    if drawn and least > alpha:
        warnings.append(
            f"{len(tests):,} pairs with {plan.n_resamples:,} replicates each: no drawn test alone "
            f"can reach {alpha:.3g} after adjustment; raise n_resamples to "
            f"{math.ceil(len(tests) / alpha):,} or more"
        )
    low, high = interval
    outside = low > 0 or high < 0
    if len(problem.keys) == 2 and not math.isnan(low) and outside != (test.pvalue <= _cut(alpha)):
        warnings.append(
            "the interval and the test disagree about 0: they are different methods, and this "
            "gap lies at the margin of both"
        )
    return warnings


def _cut(alpha: float) -> float:
    """Return the level to compare p-values with: 1 - 0.9 is a little less than 0.1."""
    return alpha * (1 + 1e-9)


# ---------------------------------------------------------------------------------------------
# Arguments


def _studentize(value: str | bool, metric: Metric) -> str:
    if isinstance(value, bool):
        value = "auto" if value else "none"
    word = _validate.choice("studentize", value, ("auto", "pooled", "unpooled", "none"))
    if word == "auto":
        return metric.variance
    if word == "pooled" and not metric.is_proportion:
        raise ArgumentError(
            f"studentize is 'pooled' for {metric.name}, which is not a proportion; accepted: "
            "'auto', 'unpooled', 'none'"
        )
    return word


def _split_strata(strata: Any) -> tuple[bool, Any]:
    """Return whether the metric's own stratum is used, and strata of the user's own."""
    if isinstance(strata, str) and strata == "auto":
        return True, None
    if strata is None or strata is False:
        return False, None
    return True, strata


def _cells(
    data: Any,
    y_true: Any,
    y_pred: Any,
    y_score: Any,
    features: Any,
    strata: Any,
    metric: Metric,
    score_bins: Any,
    pos_label: Label,
    n_threads: int | None,
) -> Cells:
    if isinstance(data, Cells):
        extra = {"y_true": y_true, "y_pred": y_pred, "y_score": y_score, "strata": strata}
        given = [name for name, value in extra.items() if value is not None]
        if given:
            raise ArgumentTypeError(
                f"{given[0]} does not go with data=cells, which hold their own columns"
            )
        missing = [name for name in metric.needs if name not in data.columns]
        if missing:
            raise ArgumentError(
                f"{metric.name} needs {missing[0]}; the cells hold {', '.join(data.columns)}"
            )
        if features is None:
            return data
        return data.marginalize(features)
    table = _table(metric, data, y_true, y_pred, y_score, features, strata)
    return table.cells(
        columns=metric.needs, score_bins=score_bins, pos_label=pos_label, n_threads=n_threads
    )


def _rows(
    metric: Metric,
    data: Any,
    y_true: Any,
    y_pred: Any,
    y_score: Any,
    features: Any,
    strata: Any,
    pos_label: Label,
) -> Rows:
    if isinstance(data, Cells):
        raise ArgumentTypeError(
            f"data is a Cells, which hold counts; {metric.name} needs the rows themselves"
        )
    named = [value for value in (metric.numerator, metric.denominator) if isinstance(value, str)]
    extra = [name for name in named if name not in metric.columns]
    table = _table(metric, data, y_true, y_pred, y_score, features, strata, extra)
    return table.rows(
        columns=metric.needs,
        extra=[f"extra:{name}" for name in extra],
        binary=metric.family == "ranks" or pos_label is not None,
        pos_label=pos_label,
    )


def _table(
    metric: Metric,
    data: Any,
    y_true: Any,
    y_pred: Any,
    y_score: Any,
    features: Any,
    strata: Any,
    extra: Sequence[str] = (),
) -> AuditTable:
    table = AuditTable.make(
        data=data,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        sensitive_features=features,
        strata=strata,
        extra=extra,
    )
    for name in metric.needs:
        if name not in table.roles:
            hint = (
                "; pass y_pred=(y_score >= threshold)"
                if (name == "y_pred" and "y_score" in table.roles)
                else ""
            )
            raise ArgumentError(f"{name} is None; {metric.name} needs it{hint}")
    return table


def _choose_groups(cells: Cells, groups: Sequence[Any] | None, reference: Any) -> list[GroupKey]:
    existing = list(cells.group_sizes())
    if groups is None:
        chosen = existing
    else:
        if isinstance(groups, str) or not hasattr(groups, "__iter__"):
            raise ArgumentTypeError(f"groups is {groups!r}; accepted: a sequence of groups")
        chosen = [_find_group("groups", label, existing) for label in groups]
        if len(set(chosen)) < len(chosen):
            raise ArgumentError(f"groups is {list(groups)!r}; a group is named twice")
    if len(chosen) < 2:
        features = " and ".join(cells.sensitive_features)
        raise DataError(
            f"only one group: {features} is {group_name(label(chosen[0]))!r} in every row; a "
            "comparison needs at least two"
            if chosen
            else f"no group: {features} is missing in every row"
        )
    if reference is not None:
        key = _find_group("reference", reference, chosen)
        # "other minus reference": the reference comes last.
        chosen = [other for other in chosen if other != key] + [key]
    return chosen


def _find_group(argument: str, wanted: Any, existing: Sequence[GroupKey]) -> GroupKey:
    parts = wanted if isinstance(wanted, tuple | list) else (wanted,)
    parts = tuple(part.item() if isinstance(part, np.generic) else part for part in parts)
    for key in existing:
        if len(key) == len(parts) and all(map(matches, key, parts)):
            return key
    for key in existing:
        if isinstance(wanted, str) and wanted == group_name(label(key)):
            return key
    names = [repr(label(key)) for key in existing]
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    raise DataError(f"{argument} names {wanted!r}, which is no group of the data; groups: {shown}")


def _pairs(keys: Sequence[GroupKey], reference: Any) -> list[tuple[int, int]]:
    if reference is not None:
        return [(i, len(keys) - 1) for i in range(len(keys) - 1)]
    n_pairs = len(keys) * (len(keys) - 1) // 2
    if n_pairs > MAX_PAIRS:
        raise DataError(
            f"{len(keys):,} groups make {n_pairs:,} pairs; accepted: at most {MAX_PAIRS:,} pairs. "
            "Compare with one group by reference=, or name some groups by groups="
        )
    return list(combinations(range(len(keys)), 2))


def _exchanged(metric: Metric, conditional: bool, strata_names: Sequence[str]) -> str:
    rows = {
        "denominator": metric.denominator_rows or "rows of the denominator",
        "label": "rows of the same label",
        "decision": "rows of the same decision",
        "score": "rows of the same score bin",
        None: "rows",
    }[metric.conditions_on if conditional else None]
    return rows + (f" with equal {', '.join(strata_names)}" if strata_names else "")
