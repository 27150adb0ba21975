"""`minimum_detectable_gap` and `sample_size`: power plans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from .. import arguments, metrics
from ..data.groups import attribute_name
from ..data.labels import Label
from ..errors import ArgumentError
from ..literals import Alternative, Goal, Missing, MixedClusters, Undefined
from ..metrics.metric import AnyMetric, Metric
from .power_inputs import (
    error_within_strata,
    inputs_from_data,
    inputs_from_value,
    question_from_data,
    refuse_value_with_data,
    sizes_of,
)
from .power_plan import MAX_PLANNED_ROWS, PowerPlan, smallest_gap
from .question import PermutationQuestion, within_strata


def minimum_detectable_gap(
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
    strata: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    missing: Missing | None = None,
    mixed_clusters: MixedClusters = "refuse",
    value: float | None = None,
    share: float | Sequence[float] = 1.0,
    group_sizes: Any = None,
    power: float = 0.8,
    goal: Goal = "difference",
    alternative: Alternative = "two-sided",
    n_comparisons: int | None = None,
    confidence_level: float = 0.95,
) -> PowerPlan:
    r"""Compute the smallest gap that a test finds with a given power, or can rule out.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference : optional
        Existing data, as for `permutation_test`, from which the variance of the metric is
        estimated. All metrics except calibration_error and joint criteria.
    undefined, min_group_size, clusters, sample_weight, score_bins, pos_label : optional
        See `permutation_test`; ``"skip"`` also excludes groups in which the metric does not vary.
    missing, mixed_clusters : optional
        See `permutation_test`.
    strata : None, "auto", array(s), or str(s) with ``data``
        Plan for gaps within strata, as in `permutation_test` and `equivalence_test`. Rows are in
        the proportions of the data, so ``group_sizes`` cannot be combined with it. ``"auto"`` takes
        the strata of cells. ``None``: gaps of all rows.
    value : float, optional
        Without data: the value of a proportion in the first group. The others differ from it by
        the gap, in the direction of the alternative, or in that of the larger variance.
    share : float or sequence of float
        Without data: the share of the rows of a group that are in the denominator, such as the
        base rate for the true positive rate; one number for all groups, or one for each.
    group_sizes : mapping or sequence of int, optional
        Planned rows of each group; by default those of the data.
    power : float
        Probability with which the test must find the gap, or show its absence.
    goal : {"difference", "equivalence"}
        What the test must show: a gap, by `permutation_test`; or that every gap is smaller, by
        `equivalence_test` with the gap as its margin, if groups are equal.
    alternative : {"two-sided", "greater", "less"}
        The direction of the test.
    n_comparisons : int, optional
        Number of pairs that share the level (Bonferroni, the first step of Holm), or that must all
        be shown to be equal; by default all pairs that the tests would compare.
    confidence_level : float
        1 minus the level of the test.

    Returns
    -------
    PowerPlan

    Notes
    -----
    The normal approximation to the studentized test is used, whose permutation and normal critical
    values agree in large groups: the gap is :math:`(z_{1-\alpha/2} + z_{power}) \sqrt{v_a + v_b}`
    with the linearised variances. With more than two groups, the plan is for the two with the
    largest standard error. Unweighted rates have an exact test: its critical value is that of the
    pooled rate, and the discreteness of counts costs it :math:`(1/n_a + 1/n_b)/2` of the gap [1]_.
    Within strata, the standard error of the data (for rates Sato's) is scaled by the square root of
    the ratio of rows, also for rates. Equivalence uses two one-sided tests, for rates with the
    variances of Farrington and Manning at the margin.

    References
    ----------
    .. [1] Casagrande, J. T., Pike, M. C. and Smith, P. G. (1978). An improved approximate formula
       for calculating sample sizes for comparing two binomial distributions. Biometrics 34.
       doi:10.2307/2530613

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> plan = fa.minimum_detectable_gap(
    ...     metric="true_positive_rate", value=0.8, share=0.3, group_sizes=[10_000, 2_000])
    >>> round(plan.gap, 3)
    0.053
    """
    power = arguments.check(power=power).power
    inputs = {
        "data": data,
        "y_true": y_true,
        "y_pred": y_pred,
        "y_score": y_score,
        "sensitive_features": sensitive_features,
        "clusters": clusters,
        "sample_weight": sample_weight,
        "missing": missing,
        "mixed_clusters": mixed_clusters,
    }
    chosen = metrics.get(metric)
    refuse_value_with_data(inputs, value, share)
    question = question_from_data(
        chosen,
        inputs,
        groups=groups,
        reference=reference,
        strata=strata,
        group_sizes=group_sizes,
        undefined=undefined,
        min_group_size=min_group_size,
        score_bins=score_bins,
        pos_label=pos_label,
    )
    plan = _plan(
        chosen,
        question,
        reference,
        value,
        share,
        group_sizes,
        True,
        goal,
        alternative,
        n_comparisons,
        confidence_level,
        power,
        stratified=within_strata(strata)[0],
    )
    gap = smallest_gap(plan.power_at, power, plan.standard_error)
    low, high = chosen.range
    widest = high - low
    if value is not None:
        value = arguments.level("value", value)
        widest = _widest(value, plan.alternative)
    if value is not None and plan.goal == "difference":
        # Iterate: the gap changes the variance of the other groups, which changes the gap.
        for _ in range(100):
            if gap >= widest:
                break
            plan = _shifted(plan, value, gap)
            before, gap = gap, smallest_gap(plan.power_at, power, plan.standard_error)
            if abs(gap - before) <= 1e-12:
                break
    if gap > widest:
        what = "found" if plan.goal == "difference" else "ruled out"
        raise ArgumentError(
            f"power is {power:g}, but with {sum(plan.group_sizes.values()):,} rows in all no gap "
            f"of {plan.metric}, which is at most {widest:g}, is {what} with that probability. Pass "
            "more rows, in group_sizes or the data, or a lower power.",
            argument="power",
            mentions=("group_sizes",),
        )
    return replace(plan, gap=gap)


def sample_size(
    gap: float,
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
    strata: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    missing: Missing | None = None,
    mixed_clusters: MixedClusters = "refuse",
    value: float | None = None,
    share: float | Sequence[float] = 1.0,
    group_sizes: Any = None,
    power: float = 0.8,
    goal: Goal = "difference",
    alternative: Alternative = "two-sided",
    n_comparisons: int | None = None,
    confidence_level: float = 0.95,
) -> PowerPlan:
    """Compute the number of rows that a test needs to find a gap, or to rule it out.

    Parameters
    ----------
    gap : float
        The gap to find; with ``goal="equivalence"`` the margin that no gap may reach.
    group_sizes : mapping or sequence of number, optional
        Proportions of the groups; by default those of the data, or equal groups without data.
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference, undefined, \
min_group_size, strata, clusters, sample_weight, score_bins, pos_label, missing, mixed_clusters, \
value, share, power, goal, alternative, n_comparisons, confidence_level : optional
        See `minimum_detectable_gap`.

    Returns
    -------
    PowerPlan
        With the smallest ``group_sizes`` in these proportions that reach the power.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> plan = fa.sample_size(0.05, metric="selection_rate", value=0.5)
    >>> sum(plan.group_sizes.values())
    3210
    >>> plan = fa.sample_size(0.03, metric="selection_rate", value=0.5, goal="equivalence")
    >>> sum(plan.group_sizes.values())
    9512
    """
    if not arguments.is_number(gap):
        raise ArgumentError(f"gap is {gap!r}; accepted: a number above 0", argument="gap")
    low, high = metrics.get(metric).range
    if not 0 < gap < math.inf or gap >= high - low:
        below = f", below {high - low:g} for {metrics.get(metric).name}"
        bounded = below if math.isfinite(high - low) else ""
        raise ArgumentError(f"gap is {gap!r}; accepted: a number above 0{bounded}", argument="gap")
    power = arguments.check(power=power).power
    inputs = {
        "data": data,
        "y_true": y_true,
        "y_pred": y_pred,
        "y_score": y_score,
        "sensitive_features": sensitive_features,
        "clusters": clusters,
        "sample_weight": sample_weight,
        "missing": missing,
        "mixed_clusters": mixed_clusters,
    }
    chosen = metrics.get(metric)
    refuse_value_with_data(inputs, value, share)
    question = question_from_data(
        chosen,
        inputs,
        groups=groups,
        reference=reference,
        strata=strata,
        group_sizes=group_sizes,
        undefined=undefined,
        min_group_size=min_group_size,
        score_bins=score_bins,
        pos_label=pos_label,
    )
    plan = _plan(
        chosen,
        question,
        reference,
        value,
        share,
        [1, 1] if group_sizes is None and question is None else group_sizes,
        False,
        goal,
        alternative,
        n_comparisons,
        confidence_level,
        power,
        stratified=within_strata(strata)[0],
    )
    if value is not None and plan.goal == "difference":
        value = arguments.level("value", value)
        widest = _widest(value, plan.alternative)
        if gap > widest:
            raise ArgumentError(
                f"gap is {gap:g}; accepted: up to {widest:g}, because no proportion is further "
                f"from value={value:g}",
                argument="gap",
                mentions=("value",),
            )
        plan = _shifted(plan, value, float(gap))
    total = sum(plan.group_sizes.values())
    shares = {group: size / total for group, size in plan.group_sizes.items()}

    def scaled(n: int) -> PowerPlan:
        sizes = {group: max(math.ceil(share * n), 1) for group, share in shares.items()}
        return replace(plan, group_sizes=sizes, gap=float(gap))

    high = 2
    while scaled(high).power_at(gap) < power:
        high *= 2
        if high > MAX_PLANNED_ROWS:
            raise ArgumentError(
                f"gap is {gap:g}; accepted: gaps that can be found with fewer than 1e15 rows",
                argument="gap",
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if scaled(middle).power_at(gap) >= power else (middle, high)
    smallest = scaled(high)
    return replace(smallest, power=smallest.power_at(gap))


def _plan(
    metric: Metric,
    question: PermutationQuestion | None,
    reference: Any,
    value: float | None,
    share: float | Sequence[float],
    group_sizes: Any,
    whole: bool,
    goal: str,
    alternative: str,
    n_comparisons: int | None,
    confidence_level: float,
    power: float,
    *,
    stratified: bool,
) -> PowerPlan:
    """Return a plan without a gap."""
    goal = arguments.choice("goal", goal, get_args(Goal))
    checked = arguments.check(
        alternative=alternative,
        n_comparisons=n_comparisons,
        confidence_level=confidence_level,
    )
    if goal == "equivalence" and checked.alternative != "two-sided":
        raise ArgumentError(
            f"alternative is {alternative!r}; accepted: 'two-sided' for goal='equivalence', which "
            "has two one-sided tests already",
            argument="alternative",
            mentions=("goal",),
        )
    within = None
    if question is not None:
        sizes, deviations, values, shares, pairs = inputs_from_data(question)
        if stratified and question.problem.stratified:
            # There is no formula for the exact test of rates within strata.
            within, values, shares = error_within_strata(question), None, None
        if group_sizes is not None:
            sizes = sizes_of(group_sizes, list(sizes), whole)
    else:
        sizes, deviations, values, shares = inputs_from_value(
            metric, value, share, group_sizes, whole
        )
        pairs = len(sizes) * (len(sizes) - 1) // 2
    if goal == "equivalence" and len(sizes) == 1:
        raise ArgumentError(
            f"goal is 'equivalence' for {metric.name}, which has no groups; accepted: 'difference'",
            argument="goal",
        )
    # The reference is the last group.
    fixed = None if reference is None else list(sizes)[-1]
    return PowerPlan(
        metric.name,
        sizes,
        deviations,
        math.nan,
        power,
        checked.confidence_level,
        checked.alternative,
        max(pairs, 1) if checked.n_comparisons is None else checked.n_comparisons,
        fixed,
        goal,
        values,
        shares,
        "" if question is None else attribute_name(question.features),
        () if question is None else question.left_out,
        () if question is None else question.notes,
        within,
        () if within is None or question is None else question.strata_names,
    )


def _widest(value: float, alternative: str) -> float:
    """Return the largest possible gap from a proportion, in the direction of the alternative."""
    return {"greater": value, "less": 1 - value}.get(alternative, max(value, 1 - value))


def _shifted(plan: PowerPlan, value: float, gap: float) -> PowerPlan:
    """Return the plan with all groups but the first shifted by a gap.

    They are shifted in the direction of the alternative, or in that of the larger variance.
    """
    up = plan.alternative == "less" or (plan.alternative == "two-sided" and value < 0.5)
    other = min(max(value + gap if up else value - gap, 0.0), 1.0)
    assert plan.shares is not None
    values = {group: value if i == 0 else other for i, group in enumerate(plan.group_sizes)}
    deviations = {
        group: math.sqrt(rate * (1 - rate) / plan.shares[group]) for group, rate in values.items()
    }
    return replace(plan, standard_deviations=deviations, values=values)
