"""The permutation lens: does a metric differ between groups? (DiCiccio et al., KDD 2020)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native, _validate, metrics
from .errors import ArgumentError, ArgumentTypeError, DataError, NotMeasurableError
from .metrics import Metric
from .multiplicity import adjust_pvalues
from .results import Result, group_name, number, p_text
from .tables import AuditTable, Cells, GroupKey, Label, matches

__all__ = ["Comparison", "GroupValue", "PermutationResult", "permutation_test"]

ALTERNATIVES = ("two-sided", "greater", "less")
CALIBRATION_BINS = 10
#: Above this share of undefined replicates a result says so.
_MANY_UNDEFINED = 0.01
#: A first series of replicates that no pair of groups uses.
_OMNIBUS_SERIES = 0


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
        level = f"{100 * self.confidence_level:g} %"
        found = self.pvalue <= 1 - self.confidence_level
        verdict = (
            f"more than chance explains at the {100 * (1 - self.confidence_level):.3g} % level"
            if found
            else "within what chance explains; that alone does not show equality"
        )
        tail = f"{p_text(self.pvalue)}, {self.alternative} {test}"
        if len(self.values) == 2:
            first, second = self.values
            return (
                f"{self.metric}: {number(first.value)} for {group_name(first.group)} and "
                f"{number(second.value)} for {group_name(second.group)}. The gap of "
                f"{number(self.estimate)} ({level} interval {number(low)} to {number(high)}) is "
                f"{verdict} ({tail})."
            )
        least = min(self.values, key=lambda v: v.value)
        most = max(self.values, key=lambda v: v.value)
        return (
            f"{self.metric} of {len(self.values)} groups: from {number(least.value)} for "
            f"{group_name(least.group)} to {number(most.value)} for {group_name(most.group)}. "
            f"The differences (largest {number(self.estimate)}, {level} interval {number(low)} to "
            f"{number(high)}) are {verdict} ({tail})."
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per compared pair of groups."""
        values = {value.group: value for value in self.values}
        return [
            {
                "metric": self.metric,
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
            }
            for pair in self.comparisons
        ]


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
    engine : {"auto", "exact", "cells"}
        ``"auto"`` sums the permutation law where that is possible and draws from it otherwise.
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
    engine = _validate.choice("engine", engine, ("auto", "exact", "cells"))
    n_resamples = _validate.n_resamples(n_resamples)
    level = _validate.level("confidence_level", confidence_level)
    n_threads = _validate.n_threads(n_threads)
    tick = _validate.progress(progress, n_resamples)
    scaling = _studentize(studentize, chosen)
    seed = _validate.seed(rng, random_state)
    conditional, own_strata = _split_strata(strata)
    cells = _cells(
        data,
        y_true,
        y_pred,
        y_score,
        sensitive_features,
        own_strata,
        chosen,
        score_bins,
        pos_label,
        n_threads,
    )
    keys = _choose_groups(cells, groups, reference)
    if alternative != "two-sided" and len(keys) > 2:
        raise ArgumentError(
            f"alternative is {alternative!r} with {len(keys)} groups; accepted: 'two-sided', or "
            "two groups named by groups="
        )
    problem = _Problem.make(cells, chosen, keys, scaling, conditional)
    values = problem.group_values(cells)
    plan = _Plan(engine, alternative, n_resamples, seed, n_threads, level, tick)
    pairs = _pairs(keys, reference)

    warnings = []
    if cells.n_missing:
        warnings.append(
            f"{cells.n_missing:,} of {cells.n_rows:,} rows have no value of "
            f"{' or '.join(cells.sensitive_features)} and belong to no group"
        )
    if scaling == "none":
        warnings.append(
            "the statistic is not studentized: the test can reject far too often when the groups "
            "differ in anything but the metric"
        )
    comparisons = [problem.compare(pair, i, plan) for i, pair in enumerate(pairs)]
    if len(keys) == 2:
        outcome = comparisons[0]
        estimate, standard_error = outcome.estimate, outcome.standard_error
        interval = outcome.interval
        test = outcome.test
    else:
        test = problem.test(range(len(keys)), plan, _OMNIBUS_SERIES)
        estimate, interval = problem.largest_gap(level)
        standard_error = math.nan
        warnings.append(
            "the largest gap of several groups has no standard error; its interval comes from "
            "Bonferroni intervals of all pairs"
        )
    if test.n_undefined > _MANY_UNDEFINED * max(test.n_resamples, 1) and test.n_undefined:
        warnings.append(
            f"{test.n_undefined:,} of {test.n_resamples:,} replicates gave {chosen.name} no value "
            "in some group and count as extreme"
        )
    if test.pvalue <= 0 or test.pvalue == np.finfo(float).tiny:
        warnings.append("p is below the smallest number that can be told from 0")
    raw = [comparison.test.pvalue for comparison in comparisons]
    if adjust == "max-t" and len(pairs) > 1:
        adjusted = problem.max_t(pairs, plan)
    else:
        adjusted = adjust_pvalues(raw, "holm" if adjust == "max-t" else adjust).tolist()
    return PermutationResult(
        estimate=estimate,
        standard_error=standard_error,
        statistic=test.statistic,
        pvalue=test.pvalue,
        confidence_interval=interval
        if alternative == "two-sided"
        else comparisons[0].one_sided(alternative),
        alternative=alternative,
        n_rows=sum(value.n_rows for value in values),
        group_sizes={value.group: value.n_rows for value in values},
        seed=seed,
        engine=test.engine,
        warnings=tuple(warnings),
        metric=chosen.name,
        values=tuple(values),
        comparisons=tuple(
            Comparison(
                first=_label(keys[pair[0]]),
                second=_label(keys[pair[1]]),
                estimate=comparison.estimate,
                standard_error=comparison.standard_error,
                statistic=comparison.test.statistic,
                pvalue=comparison.test.pvalue,
                adjusted_pvalue=adjusted_pvalue,
                confidence_interval=comparison.interval,
                engine=comparison.test.engine,
                n_undefined=comparison.test.n_undefined,
            )
            for pair, comparison, adjusted_pvalue in zip(pairs, comparisons, adjusted, strict=True)
        ),
        pvalue_interval=test.pvalue_interval,
        n_resamples=test.n_resamples,
        n_undefined=test.n_undefined,
        n_missing=cells.n_missing,
        adjust=adjust,
        studentize=scaling,
        interval="newcombe" if chosen.is_proportion else "delta",
        exchanged=_exchanged(chosen, conditional, cells.strata_names),
        confidence_level=level,
        null_distribution=test.null,
        null_probabilities=test.probabilities,
    )


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
    table = AuditTable.make(
        data=data,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        sensitive_features=features,
        strata=strata,
    )
    for name in metric.needs:
        if name not in table.roles:
            hint = (
                "; pass y_pred=(y_score >= threshold)"
                if (name == "y_pred" and "y_score" in table.roles)
                else ""
            )
            raise ArgumentError(f"{name} is None; {metric.name} needs it{hint}")
    return table.cells(
        columns=metric.needs, score_bins=score_bins, pos_label=pos_label, n_threads=n_threads
    )


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
            f"only one group: {features} is {group_name(_label(chosen[0]))!r} in every row; a "
            "comparison needs at least two"
            if chosen
            else f"no group: {features} is missing in every row"
        )
    if reference is not None:
        key = _find_group("reference", reference, chosen)
        # "other minus reference": the reference comes last.
        chosen = [other for other in chosen if other != key] + [key]
    return chosen


def _label(key: GroupKey) -> Any:
    """Return the group as the user names it: a label, or a tuple of several."""
    return key[0] if len(key) == 1 else key


def _find_group(argument: str, label: Any, existing: Sequence[GroupKey]) -> GroupKey:
    parts = label if isinstance(label, tuple | list) else (label,)
    wanted = tuple(part.item() if isinstance(part, np.generic) else part for part in parts)
    for key in existing:
        if len(key) == len(wanted) and all(map(matches, key, wanted)):
            return key
    for key in existing:
        if isinstance(label, str) and label == group_name(_label(key)):
            return key
    names = [repr(_label(key)) for key in existing]
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    raise DataError(f"{argument} names {label!r}, which is no group of the data; groups: {shown}")


def _pairs(keys: Sequence[GroupKey], reference: Any) -> list[tuple[int, int]]:
    if reference is not None:
        return [(i, len(keys) - 1) for i in range(len(keys) - 1)]
    return list(combinations(range(len(keys)), 2))


def _exchanged(metric: Metric, conditional: bool, strata_names: Sequence[str]) -> str:
    rows = {
        "denominator": metric.denominator_rows or "rows of the denominator",
        "label": "rows of the same label",
        "decision": "rows of the same decision",
        None: "rows",
    }[metric.conditions_on if conditional else None]
    return rows + (f" with equal {', '.join(strata_names)}" if strata_names else "")


# ---------------------------------------------------------------------------------------------
# The test


@dataclass(frozen=True)
class _Plan:
    engine: str
    alternative: str
    n_resamples: int
    seed: int
    n_threads: int | None
    level: float
    tick: Callable[[int], object] | None


@dataclass(frozen=True)
class _Outcome:
    """One permutation test."""

    statistic: float
    pvalue: float
    pvalue_interval: tuple[float, float]
    engine: str
    n_resamples: int
    n_undefined: int
    null: NDArray[np.float64]
    probabilities: NDArray[np.float64] | None


@dataclass(frozen=True)
class _PairOutcome:
    """The difference of two groups and its test."""

    test: _Outcome
    estimate: float
    standard_error: float
    interval: tuple[float, float]
    one_sided: Callable[[str], tuple[float, float]]


@dataclass(frozen=True)
class _Problem:
    """Counts by stratum, group and class, and what is computed from them."""

    metric: Metric
    native: _native.CountMetric
    counts: NDArray[np.uint64]
    keys: list[GroupKey]
    scaling: str
    conditioning: str | list[int] | None
    #: (value, variance, numerator, denominator) of each group.
    evaluations: list[tuple[float, float, float, float]]

    @classmethod
    def make(
        cls, cells: Cells, metric: Metric, keys: list[GroupKey], scaling: str, conditional: bool
    ) -> _Problem:
        conditioning: str | list[int] | None = None
        if metric.is_calibration:
            native, classes, n_classes = _calibration(cells)
        else:
            native, classes, n_classes = metric.native, cells.confusion_classes(), 4
            if conditional and metric.conditions_on is not None:
                conditioning = {
                    "denominator": "denominator",
                    "label": [0, 1, 0, 1],
                    "decision": [0, 0, 1, 1],
                }[metric.conditions_on]  # type: ignore[assignment]
        counts = cells.class_counts(keys, classes, n_classes)
        totals = counts.sum(axis=0)
        evaluations = []
        for key, row in zip(keys, totals, strict=True):
            value, variance = native.evaluate(row.astype(float).tolist())
            if math.isnan(value):
                raise NotMeasurableError(_why_undefined(metric, key, row))
            fraction = native.fraction
            above, below = (
                (float(np.dot(part, row)) for part in fraction) if fraction else (math.nan,) * 2
            )
            evaluations.append((value, variance, above, below))
        return cls(metric, native, counts, keys, scaling, conditioning, evaluations)

    def _test(self, positions: Sequence[int]) -> _native.CountTest:
        table = np.ascontiguousarray(self.counts[:, list(positions), :]).ravel()
        return _native.CountTest(
            table, len(positions), self.native, self.scaling, self.conditioning
        )

    def test(self, positions: Sequence[int], plan: _Plan, series: int) -> _Outcome:
        """Test the groups at the given positions."""
        native = self._test(positions)
        statistic = native.observed()
        alternative = plan.alternative if len(positions) == 2 else "two-sided"
        if plan.engine in ("auto", "exact"):
            law = native.exact(alternative)
            if law is not None:
                pvalue, undefined, statistics, probabilities = law
                return _Outcome(
                    statistic,
                    pvalue,
                    (pvalue, pvalue),
                    "exact",
                    0,
                    int(undefined > 0),
                    statistics,
                    probabilities,
                )
            if plan.engine == "exact":
                raise ArgumentError(
                    f"engine is 'exact', but the permutation law of {self.metric.name} in these "
                    "data is too large to be summed; accepted: 'auto', 'cells'"
                )
        null = native.null_distribution(
            plan.n_resamples, plan.seed, series, plan.n_threads, plan.tick
        )
        extreme, undefined_count = _native.count_extreme(null, statistic, alternative)
        return _Outcome(
            statistic,
            (1 + extreme) / (1 + plan.n_resamples),
            _native.clopper_pearson(extreme, plan.n_resamples, 0.99),
            "cells",
            plan.n_resamples,
            undefined_count,
            null,
            None,
        )

    def compare(self, pair: tuple[int, int], index: int, plan: _Plan) -> _PairOutcome:
        """Test one pair of groups on their own rows."""
        first, second = (self.evaluations[i] for i in pair)
        return _PairOutcome(
            test=self.test(pair, plan, 1 + index),
            estimate=first[0] - second[0],
            standard_error=math.sqrt(first[1] + second[1]),
            interval=self.interval(pair, plan.level),
            one_sided=lambda alternative: self._one_sided(pair, alternative, plan.level),
        )

    def max_t(self, pairs: list[tuple[int, int]], plan: _Plan) -> list[float]:
        """Adjust two-sided p-values of all pairs by the joint replicates of all groups."""
        return self._test(range(len(self.keys))).max_t(
            pairs, plan.n_resamples, plan.seed, _OMNIBUS_SERIES, plan.n_threads, plan.tick
        )

    def interval(self, pair: tuple[int, int], level: float) -> tuple[float, float]:
        """Return the interval of a difference: Newcombe's for proportions, else delta."""
        z = _native.normal_quantile(0.5 + level / 2)
        first, second = (self.evaluations[i] for i in pair)
        gap = first[0] - second[0]
        if not self.metric.is_proportion:
            half = z * math.sqrt(first[1] + second[1])
            return gap - half, gap + half
        low_1, high_1 = _wilson(first[0], first[3], z)
        low_2, high_2 = _wilson(second[0], second[3], z)
        return (
            max(gap - math.hypot(first[0] - low_1, high_2 - second[0]), -1.0),
            min(gap + math.hypot(high_1 - first[0], second[0] - low_2), 1.0),
        )

    def _one_sided(
        self, pair: tuple[int, int], alternative: str, level: float
    ) -> tuple[float, float]:
        low, high = self.interval(pair, 2 * level - 1) if level > 0.5 else (math.nan, math.nan)
        bound = 1.0 if self.metric.is_proportion else math.inf
        return (low, bound) if alternative == "greater" else (-bound, high)

    def largest_gap(self, level: float) -> tuple[float, tuple[float, float]]:
        """Return max - min and its interval from simultaneous intervals of all pairs."""
        pairs = list(combinations(range(len(self.keys)), 2))
        each = 1 - (1 - level) / len(pairs)
        low, high, gap = 0.0, 0.0, 0.0
        for pair in pairs:
            from_, to = self.interval(pair, each)
            low = max(low, from_, -to)
            high = max(high, to, -from_)
            gap = max(gap, abs(self.evaluations[pair[0]][0] - self.evaluations[pair[1]][0]))
        return gap, (low, high)

    def group_values(self, cells: Cells) -> list[GroupValue]:
        """Return the metric of each group."""
        sizes = cells.group_sizes()
        return [
            GroupValue(
                group=_label(key),
                value=evaluation[0],
                standard_error=math.sqrt(evaluation[1]),
                n_rows=sizes[key],
                n_used=int(evaluation[3]) if self.metric.is_proportion else sizes[key],
            )
            for key, evaluation in zip(self.keys, self.evaluations, strict=True)
        ]


def _why_undefined(metric: Metric, key: GroupKey, counts: NDArray[np.uint64]) -> str:
    group = group_name(_label(key))
    rows = metric.denominator_rows
    if rows is not None:
        reason = f"has 0 {rows}"
    elif metric.is_calibration:
        reason = "has 0 rows"
    else:
        shown = ", ".join(
            f"{name}={int(n)}" for name, n in zip(("tp", "fp", "fn", "tn"), counts, strict=True)
        )
        reason = f"has {shown}"
    return (
        f"group {group!r} {reason}; {metric.name} is not defined there. Name the groups to "
        "compare with groups=, or choose another metric"
    )


def _calibration(cells: Cells) -> tuple[_native.CountMetric, NDArray[np.int64], int]:
    """Classes of (score bin, label); the score of a bin is the mean score of its rows."""
    edges = cells.score_edges
    assert edges is not None
    if edges[0] < 0 or edges[-1] > 1:
        raise ArgumentError(
            f"score_bins go from {edges[0]:g} to {edges[-1]:g}; calibration_error needs scores "
            "that are probabilities, from 0 to 1"
        )
    bins, place = np.unique(cells.score_bin, return_inverse=True)
    rows = np.zeros(len(bins))
    sums = np.zeros(len(bins), dtype=np.int64)
    np.add.at(rows, place, cells.count)
    np.add.at(sums, place, cells.score_sum)
    means = sums * _native.SCORE_UNIT / rows
    coarse = np.minimum((means * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)
    native = _native.CountMetric.calibration(
        np.repeat(coarse, 2).tolist(), np.repeat(means, 2).tolist(), [0.0, 1.0] * len(bins)
    )
    return native, 2 * place.ravel() + cells.y_true, 2 * len(bins)


def _wilson(p: float, n: float, z: float) -> tuple[float, float]:
    """Return the score interval of a proportion p of n rows."""
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(center - half, 0.0), min(center + half, 1.0)
