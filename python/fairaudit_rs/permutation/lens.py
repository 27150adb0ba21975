"""`permutation_test`: arguments in, result out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import arguments
from ..data.groups import label
from ..data.labels import Label
from ..errors import ArgumentError
from ..inference.multiplicity import adjust_pvalues
from ..inference.pvalues import LEAST, anytime_pvalue, monte_carlo_pvalue
from ..metrics.metric import Metric
from ..progress import Progress
from ..results.verdict import rejects
from .joint import JointProblem
from .problem import BOOTSTRAP_METHODS, OMNIBUS_SERIES, Outcome, Problem, Procedure
from .question import Design, Question
from .result import Comparison, GroupValue, PermutationResult

ENGINES = ("auto", "exact", "cells", "stream", "shuffle", "callable")
INTERVALS = ("auto", "delta", *BOOTSTRAP_METHODS)
#: Above this share of undefined replicates a result says so.
_MANY_UNDEFINED = 0.01


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
    clusters: Any = None,
    sample_weight: Any = None,
    adjust: str = "holm",
    engine: str = "auto",
    interval: str = "auto",
    score_bins: Any = None,
    pos_label: Label = None,
    n_resamples: int = 9_999,
    adaptive: bool = False,
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
        ``data=cells`` the default is all attributes of the cells. For a correlation, one
        attribute of numbers.
    data : frame, path, glob or Cells, optional
        See `tabulate`.
    metric : str or Metric
        A name or alias of the registry (``fairaudit metrics`` lists them), or a metric made by
        `metrics.count_metric`, `ratio_metric`, `joint_metric`, `correlation_metric` or
        `callable_metric`.
    groups : sequence, optional
        The groups to compare, in this order; all by default, sorted. Intersections are tuples.
    reference : optional
        Compare every other group with this one, as "other minus reference". Without it, two
        groups are compared as "first minus second", more as all pairs.
    alternative : {"two-sided", "greater", "less"}
        Against which differences; more than two groups are tested two-sided.
    studentize : {"auto", "pooled", "unpooled", "bootstrap", "shared", "none"} or bool
        ``"auto"`` takes the pooled (score) variance for proportions, the linearised variance
        of each group for other metrics, the bootstrap of every replicate for callables.
        ``False`` is ``"none"``: not valid when the groups differ in anything but the metric, and
        neither is ``"shared"`` (callables), one standard deviation for all replicates.
    strata : "auto", None, array(s), or str(s) with ``data``
        Rows exchange their groups only within a stratum. ``"auto"`` takes what the metric
        conditions on (true positive rate: the positive labels); strata of your own are
        crossed with it. ``None`` exchanges all rows.
    clusters : array(s), or str(s) with ``data``, optional
        Rows of one cluster (the decisions about one person) move together, and standard errors
        are those of sums over clusters. A cluster must be of one group. Clusters are exchanged
        whatever their labels: ``strata="auto"`` then adds no stratum of the metric.
    sample_weight : array, or str with ``data``, optional
        Weight of each row, at least 0. Metrics are of weighted sums, and standard errors know
        that the weights differ.
    adjust : {"holm", "bh", "max-t", "none"}
        How p-values of several pairs are adjusted. ``"max-t"`` uses the joint replicates of
        all groups; it keeps the family-wise error when the groups do not differ in law at
        all, not for the weaker hypothesis that this metric is equal.
    engine : {"auto", "exact", "cells", "stream", "shuffle", "callable"}
        ``"auto"`` sums the permutation law where that is possible and draws from it otherwise:
        over cells for counts and for the AUC of scores with few values, over rows for ranks, row
        values, weights and clusters; it shuffles for correlations.
    interval : {"auto", "delta", "studentized", "basic", "percentile"}
        How the interval of a gap is made; see Notes and `intervals`. ``n_resamples`` are also
        those of the bootstrap.
    score_bins, pos_label : optional
        See `tabulate`.
    n_resamples : int
        Replicates of each test that is not exact.
    adaptive : bool
        Stop a test as soon as it is decided at the level ``1 - confidence_level``, shared by the
        pairs: ``n_resamples`` is then the largest number of replicates. The p-value is valid
        whenever one stops, and says on which side of the level it lies: one that stopped early
        can be far larger than that of all replicates, and is not made for further adjustment.
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
    More than two groups are tested by :math:`\sum_g (\theta_g - \bar\theta)^2 / v_g`, a joint
    criterion by :math:`d^\top V^{-1} d` of the differences of its components.

    :math:`p = (1 + \#\{|S^*| \ge |S|\}) / (1 + B)`; ties are decided on integers or within a
    relative 1e-10, a replicate without a value counts as extreme. Exact engines add up
    probabilities and need no "+ 1".

    With strata of your own the statistic is what remains of the gap when the part that the
    strata alone explain is taken away; for proportions the estimate is the Mantel-Haenszel
    difference, for other metrics that remainder (smaller than the gap within each stratum where
    groups are spread unevenly over strata).

    Intervals: Newcombe's score interval for differences of proportions, bootstrap-t for the AUC
    when a group has fewer than 50 rows of a label, otherwise the delta method (correlations:
    Fisher's z; callables: the bootstrap standard error); with more than two groups that of the
    largest gap comes from Bonferroni intervals of all pairs, and so does that of the components
    of a joint criterion.

    With ``adaptive`` the p-value after n replicates, x of them extreme, is the smallest 0.9
    quantile of Beta(x + 1, n + 1 - x) so far, over 0.9: betting on the binomial mixture [2]_.
    The test looks at 128, 256, 512, ... replicates.

    References
    ----------
    .. [1] DiCiccio, C., Vasudevan, S., Basu, K., Kenthapadi, K. and Agarwal, D. (2020).
       Evaluating Fairness Using Permutation Tests. KDD. doi:10.1145/3394486.3403199
    .. [2] Fischer, L. and Ramdas, A. (2024). Sequential Monte Carlo testing by betting.
       arXiv:2401.07365

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> result = fa.permutation_test(
    ...     [1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0, 0, 0, 0],
    ...     sensitive_features=list("aaaaabbbbb"), metric="true_positive_rate")
    >>> result.engine, round(result.pvalue, 4)
    ('exact', 0.0476)
    """
    adjust = arguments.choice("adjust", adjust, ("holm", "bh", "max-t", "none"))
    engine = arguments.choice("engine", engine, ENGINES)
    interval = arguments.choice("interval", interval, INTERVALS)
    adaptive = arguments.flag("adaptive", adaptive)
    checked = arguments.check(
        alternative=alternative,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        rng=rng,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    alternative = checked.alternative
    n_resamples, level = checked.n_resamples, checked.confidence_level
    seed, n_threads, callback = checked.seed, checked.n_threads, checked.progress
    design = Design(
        metric=metric,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        sensitive_features=sensitive_features,
        data=data,
        groups=groups,
        reference=reference,
        studentize=studentize,
        strata=strata,
        clusters=clusters,
        sample_weight=sample_weight,
        engine=engine,
        score_bins=score_bins,
        pos_label=pos_label,
        n_threads=n_threads,
    )
    question = design.pose(seed)
    problem, pairs = question.problem, question.pairs
    n_groups = len(problem.keys)
    one_sided = alternative != "two-sided"
    if one_sided and (n_groups > 2 or isinstance(problem, JointProblem)):
        what = f"{n_groups} groups" if n_groups > 2 else "a joint criterion"
        raise ArgumentError(
            f"alternative is {alternative!r} with {what}; accepted: 'two-sided', or two groups "
            "named by groups= and one metric"
        )
    if one_sided and level <= 0.5:
        raise ArgumentError(
            f"confidence_level is {level:g} with a one-sided alternative; accepted: above 0.5"
        )
    joint = adjust == "max-t" and len(pairs) > 1
    ticker = Progress(callback, n_resamples)
    ticker.total = n_resamples * (len(pairs) + (n_groups != 2) + joint)
    pair_alpha = (1 - level) / (1 if adjust == "none" else max(len(pairs), 1))
    plan = Procedure(
        engine=engine,
        alternative=alternative,
        n_resamples=n_resamples,
        seed=seed,
        n_threads=n_threads,
        level=level,
        progress=ticker,
        adaptive=adaptive,
        pair_alpha=pair_alpha,
        interval=interval,
    )
    problem.prepare_intervals(interval, plan)

    tests = [problem.test(pair, plan, 1 + i) for i, pair in enumerate(pairs)]
    raw = [test.pvalue for test in tests]
    if n_groups > 2:
        test = problem.test_all(plan, OMNIBUS_SERIES)
        estimate, confidence_interval = problem.largest_gap(level)
        standard_error = math.nan
    else:
        test = tests[0] if tests else problem.test_all(plan, OMNIBUS_SERIES)
        gap = problem.gap((0, 1))
        estimate, standard_error = gap.estimate, gap.standard_error
        confidence_interval = problem.one_sided_interval((0, 1), alternative, level)
    if joint:
        # A pair is tested on its own rows, the family on all: never below the pair's own p.
        adjusted = np.maximum(problem.max_t(pairs, plan), raw).tolist()
    elif len(raw) > 1:
        adjusted = adjust_pvalues(raw, adjust).tolist()
    else:
        # One test needs no adjustment.
        adjusted = raw
    comparisons = tuple(
        Comparison(
            first=label(problem.keys[pair[0]]),
            second=label(problem.keys[pair[1]]),
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
    return PermutationResult(
        estimate=estimate,
        standard_error=standard_error,
        statistic=test.statistic,
        pvalue=test.pvalue,
        confidence_interval=confidence_interval,
        alternative=alternative,
        n_rows=sum(problem.n_rows),
        group_sizes=dict(zip(map(label, problem.keys), problem.n_rows, strict=False)),
        seed=seed,
        engine=test.engine,
        warnings=tuple(_warnings(question, test, tests, adjust, confidence_interval, plan)),
        metric=problem.metric.name,
        values=group_values(problem),
        comparisons=comparisons,
        pvalue_interval=test.pvalue_interval,
        n_resamples=test.n_resamples,
        n_undefined=test.n_undefined,
        n_missing=question.n_missing,
        adjust=adjust,
        studentize=problem.scaling,
        interval=problem.interval_name,
        exchanged=question.exchanged,
        attribute=" and ".join(question.features),
        confidence_level=level,
        null_distribution=test.null,
        null_probabilities=test.probabilities,
    )


def group_values(problem: Problem) -> tuple[GroupValue, ...]:
    """Return the metric of each group; of a joint criterion each component."""
    parts = problem.parts if isinstance(problem, JointProblem) else [problem]
    return tuple(
        GroupValue(
            group=label(key),
            value=part.evaluations[i].value,
            standard_error=math.sqrt(part.evaluations[i].variance),
            n_rows=part.n_rows[i],
            n_used=part.n_used(i),
            metric=part.metric.name,
        )
        for part in parts
        for i, key in enumerate(part.keys)
    )


def _warnings(
    question: Question,
    test: Outcome,
    tests: Sequence[Outcome],
    adjust: str,
    interval: tuple[float, float],
    plan: Procedure,
) -> list[str]:
    """Say what a reader must know besides the numbers."""
    problem = question.problem
    name, alpha = problem.metric.name, 1 - plan.level
    warnings = []
    if question.n_missing:
        part = "belong to no group" if problem.keys else "take no part"
        warnings.append(
            f"{question.n_missing:,} of {question.n_rows:,} rows have no value of "
            f"{' or '.join(question.features)} and {part}"
        )
    warnings += [*problem.notes, *question.doubts]
    if problem.scaling in ("none", "shared"):
        warnings.append(
            "the statistic is not studentized in every replicate: the test can reject far too "
            "often when the groups differ in anything but the metric"
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
    if test.pvalue == LEAST:
        warnings.append("p is below the smallest number that can be told from 0")
    drawn = [outcome for outcome in tests if outcome.engine != "exact"]
    n = plan.n_resamples
    alone = anytime_pvalue(0, n) if plan.adaptive else monte_carlo_pvalue(0, n)
    least = (len(tests) if adjust in ("holm", "bh") and tests else 1) * alone
    drawn = drawn or ([test] if test.engine != "exact" else [])
    if drawn and least > alpha:
        enough = math.ceil((1 + n) * least / alpha)
        pairs = f"{len(tests):,} pairs with " if len(tests) > 1 else ""
        each = " each" if pairs else ""
        after = " after adjustment" if pairs else ""
        warnings.append(
            f"{pairs}{n:,} replicates{each}: no drawn test alone can reach {alpha:.3g}{after}; "
            f"raise n_resamples to {enough:,} or more"
        )
    low, high = interval
    outside = low > 0 or high < 0
    if len(problem.keys) == 2 and not math.isnan(low) and outside != rejects(test.pvalue, alpha):
        warnings.append(
            "the interval and the test disagree about 0: they are different methods, and this "
            "gap lies at the margin of both"
        )
    return warnings
