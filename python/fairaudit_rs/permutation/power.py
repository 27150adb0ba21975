"""Detectable gaps and sizes of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .. import arguments, metrics
from ..data.groups import group_name
from ..data.labels import Label
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError
from ..metrics.metric import AnyMetric, Metric
from .power_plan import MOST_ROWS, PowerPlan, smallest_gap
from .question import Question, named_columns, pose


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
    clusters: Any = None,
    sample_weight: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    missing: Literal["own"] | None = None,
    mixed_clusters: Literal["refuse", "split", "drop"] = "refuse",
    value: float | None = None,
    share: float | Sequence[float] = 1.0,
    group_sizes: Any = None,
    power: float = 0.8,
    goal: str = "difference",
    alternative: str = "two-sided",
    n_comparisons: int | None = None,
    confidence_level: float = 0.95,
) -> PowerPlan:
    r"""Say how large a gap must be for a test to find it, or to show that there is none so large.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference : optional
        Data at hand, as for `permutation_test`; they tell how much the metric varies. Any metric
        but calibration_error and joint criteria.
    clusters, sample_weight, score_bins, pos_label, missing, mixed_clusters : optional
        See `permutation_test`.
    value : float, optional
        Without data: the value of a proportion in the first group; the others lie the gap away,
        on the side of the alternative, or where proportions vary more.
    share : float or sequence of float
        Without data: the share of the rows of a group that are in the denominator, such as the
        base rate for the true positive rate; one for all groups or one for each.
    group_sizes : mapping or sequence of int, optional
        Rows of each group to plan with; by default those of the data.
    power : float
        Probability with which the gap is to be found, or its absence.
    goal : {"difference", "equivalence"}
        What is to be shown: a gap, by `permutation_test`, or that there is none as large, by
        `equivalence_test` with that margin where groups are equal.
    alternative : {"two-sided", "greater", "less"}
        Against which differences.
    n_comparisons : int, optional
        Number of pairs that share the level (Bonferroni, what Holm starts with), or that must all
        be shown to be equal; by default all pairs that the tests would compare.
    confidence_level : float
        1 minus the level of the test.

    Returns
    -------
    PowerPlan

    Notes
    -----
    By the normal approximation to the studentized test, whose permutation and normal critical
    values agree in large groups: the gap is :math:`(z_{1-\alpha/2} + z_{power}) \sqrt{v_a + v_b}`
    with the linearised variances, the smallest one with that power. More than two groups: of the
    two that are hardest to tell apart. Rates of rows that count the same have an exact test: its
    critical value is that of the pooled rate, and whole numbers cost it
    :math:`(1/n_a + 1/n_b)/2` of the gap [1]_. Equivalence: two one-sided tests, of rates with the
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
    given = {
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
    question = _question(chosen, given, groups, reference, score_bins, pos_label, value, share)
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
    )
    gap = smallest_gap(plan.power_at, power, plan.standard_error)
    low, high = chosen.range
    widest = high - low
    if value is not None:
        widest = _widest(value, plan.alternative)
    if value is not None and plan.goal == "difference":
        # The gap changes the variance of the other groups, and that the gap.
        for _ in range(100):
            if gap >= widest:
                break
            plan = _shifted(plan, value, gap)
            before, gap = gap, smallest_gap(plan.power_at, power, plan.standard_error)
            if abs(gap - before) <= 1e-12:
                break
    if gap > widest:
        what = "is found" if plan.goal == "difference" else "is shown not to be there"
        raise ArgumentError(
            f"with {sum(plan.group_sizes.values()):,} rows in all no gap of {plan.metric}, which "
            f"is at most {widest:g}, {what} with probability {power:g}; accepted: more rows "
            "in group_sizes or the data, or less power"
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
    clusters: Any = None,
    sample_weight: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    missing: Literal["own"] | None = None,
    mixed_clusters: Literal["refuse", "split", "drop"] = "refuse",
    value: float | None = None,
    share: float | Sequence[float] = 1.0,
    group_sizes: Any = None,
    power: float = 0.8,
    goal: str = "difference",
    alternative: str = "two-sided",
    n_comparisons: int | None = None,
    confidence_level: float = 0.95,
) -> PowerPlan:
    """Say how many rows a test needs to find a gap, or to show that there is none so large.

    Parameters
    ----------
    gap : float
        The gap to be found; with ``goal="equivalence"`` the margin that no gap shall reach.
    group_sizes : mapping or sequence of number, optional
        Proportions of the groups; by default those of the data, without data equal groups.
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference, clusters, \
sample_weight, score_bins, pos_label, missing, mixed_clusters, value, share, power, goal, \
alternative, n_comparisons, confidence_level : optional
        See `minimum_detectable_gap`.

    Returns
    -------
    PowerPlan
        With the smallest ``group_sizes`` in these proportions that have the power.

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
        raise ArgumentError(f"gap is {gap!r}; accepted: a number above 0")
    low, high = metrics.get(metric).range
    if not 0 < gap < math.inf or gap >= high - low:
        below = f", below {high - low:g} for {metrics.get(metric).name}"
        bounded = below if math.isfinite(high - low) else ""
        raise ArgumentError(f"gap is {gap!r}; accepted: a number above 0{bounded}")
    power = arguments.check(power=power).power
    given = {
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
    question = _question(chosen, given, groups, reference, score_bins, pos_label, value, share)
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
    )
    if value is not None and plan.goal == "difference":
        widest = _widest(value, plan.alternative)
        if gap > widest:
            raise ArgumentError(
                f"gap is {gap:g}, and no group can be so far from value={value:g}, which is a "
                f"proportion; accepted: up to {widest:g}"
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
        if high > MOST_ROWS:
            raise ArgumentError(
                f"gap is {gap:g}; accepted: one that can be found with fewer than 1e15 rows"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if scaled(middle).power_at(gap) >= power else (middle, high)
    found = scaled(high)
    return replace(found, power=found.power_at(gap))


def _question(
    metric: Metric,
    given: dict[str, Any],
    groups: Sequence[Any] | None,
    reference: Any,
    score_bins: Any,
    pos_label: Label,
    value: float | None,
    share: float | Sequence[float],
) -> Question | None:
    """Ask the metric of the data at hand, which have values of their own; None without data."""
    arguments.check(missing=given["missing"], mixed_clusters=given["mixed_clusters"])
    at_hand = given["data"] is not None or given["sensitive_features"] is not None
    if at_hand and value is not None:
        raise ArgumentTypeError("value goes without data; the data have values of their own")
    if at_hand and not (isinstance(share, int | float) and share == 1):
        raise ArgumentTypeError("share goes without data; the data have shares of their own")
    if not metric.kind.has_power:
        raise ArgumentError(
            f"metric is {metric.name!r}, whose power has no formula here; accepted: other metrics "
            "(the components of a joint criterion one by one, or calibrate)"
        )
    if not at_hand:
        for name in ("y_true", "y_pred", "y_score", "clusters", "sample_weight", "missing"):
            if given[name] is not None:
                raise ArgumentTypeError(
                    f"{name} is given without sensitive_features; accepted: both, or value="
                )
        return None
    table = AuditTable.make(**given, extra=named_columns(metric))
    return pose(
        table,
        metric,
        groups=groups,
        reference=reference,
        score_bins=score_bins,
        pos_label=pos_label,
    )


def _plan(
    metric: Metric,
    question: Question | None,
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
) -> PowerPlan:
    """Return a plan without a gap."""
    goal = arguments.choice("goal", goal, ("difference", "equivalence"))
    checked = arguments.check(
        alternative=alternative,
        n_comparisons=n_comparisons,
        confidence_level=confidence_level,
    )
    if goal == "equivalence" and checked.alternative != "two-sided":
        raise ArgumentError(
            f"alternative is {alternative!r} with goal 'equivalence', which has two one-sided "
            "tests; accepted: 'two-sided'"
        )
    if question is not None:
        sizes, deviations, values, shares, pairs = _from_data(question)
        if group_sizes is not None:
            sizes = _sizes(group_sizes, list(sizes), whole)
    else:
        sizes, deviations, values, shares = _from_value(metric, value, share, group_sizes, whole)
        pairs = len(sizes) * (len(sizes) - 1) // 2
    if goal == "equivalence" and len(sizes) == 1:
        raise ArgumentError(
            f"goal is 'equivalence' for {metric.name}, which has no groups; accepted: 'difference'"
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
        () if question is None else question.notes,
    )


#: By group: a number for each.
_Numbers = dict[Any, float]


def _from_data(
    question: Question,
) -> tuple[dict[Any, int], _Numbers, _Numbers | None, _Numbers | None, int]:
    """Return sizes, deviations, of rates also values and shares, and the number of pairs."""
    problem = question.problem
    deviations = problem.deviations()
    sizes = dict(zip(deviations, problem.n_rows, strict=True))
    flat = [group_name(name) for name, deviation in deviations.items() if not deviation > 0]
    if flat:
        raise ArgumentError(
            f"{problem.metric.name} does not vary, or has no standard error, in {flat[0]!r}, so "
            "the data do not tell how large a gap must be; accepted: data in which it varies, or "
            "value="
        )
    values = shares = None
    if problem.is_proportion:
        entries = dict(zip(deviations, problem.evaluations, strict=True))
        values = {group: entry.value for group, entry in entries.items()}
        shares = {group: entry.denominator / sizes[group] for group, entry in entries.items()}
    return sizes, deviations, values, shares, max(len(question.pairs), 1)


def _from_value(
    metric: Metric,
    value: float | None,
    share: float | Sequence[float],
    group_sizes: Any,
    whole: bool,
) -> tuple[dict[Any, int], _Numbers, _Numbers, _Numbers]:
    """Return sizes, deviations, values and shares of equal proportions."""
    if value is None:
        raise ArgumentTypeError(
            "there are neither data (sensitive_features, ...) nor a value to plan with; accepted: "
            "one of them"
        )
    if not metric.is_proportion:
        raise ArgumentError(
            f"value goes with proportions; how much {metric.name} varies must come from data"
        )
    value = arguments.level("value", value)
    if group_sizes is None:
        raise ArgumentTypeError("group_sizes is None; without data it says how many rows there are")
    sizes = _sizes(group_sizes, None, whole)
    accepted = "a number above 0, up to 1, or one for each group"
    one_for_all = isinstance(share, int | float | np.number)
    if not one_for_all and (isinstance(share, str) or not hasattr(share, "__iter__")):
        raise ArgumentTypeError(f"share is {share!r}; accepted: {accepted}")
    shares: list[Any] = [share] * len(sizes) if one_for_all else list(share)  # type: ignore[arg-type]
    if len(shares) != len(sizes):
        raise ArgumentError(f"share has {len(shares)} entries for {len(sizes)} groups")
    for one in shares:
        if not isinstance(one, int | float | np.number):
            raise ArgumentTypeError(f"share is {one!r}; accepted: {accepted}")
        if isinstance(one, bool) or not 0 < one <= 1:
            raise ArgumentError(f"share is {one!r}; accepted: {accepted}")
    by_group = dict(zip(sizes, map(float, shares), strict=True))
    deviations = {group: math.sqrt(value * (1 - value) / one) for group, one in by_group.items()}
    return sizes, deviations, dict.fromkeys(sizes, value), by_group


def _widest(value: float, alternative: str) -> float:
    """Return how far from a proportion another can be, on the side of the alternative."""
    return {"greater": value, "less": 1 - value}.get(alternative, max(value, 1 - value))


def _shifted(plan: PowerPlan, value: float, gap: float) -> PowerPlan:
    """Return the plan with all groups but the first a gap away.

    On the side of the alternative; without one on the side that varies more.
    """
    up = plan.alternative == "less" or (plan.alternative == "two-sided" and value < 0.5)
    other = min(max(value + gap if up else value - gap, 0.0), 1.0)
    assert plan.shares is not None
    values = {group: value if i == 0 else other for i, group in enumerate(plan.group_sizes)}
    deviations = {
        group: math.sqrt(rate * (1 - rate) / plan.shares[group]) for group, rate in values.items()
    }
    return replace(plan, standard_deviations=deviations, values=values)


def _sizes(group_sizes: Any, names: list[Any] | None, whole: bool) -> dict[Any, int]:
    """Return the rows of each group; proportions, if they need not be whole."""
    accepted = "a mapping or sequence with a number for each group, at least two"
    if isinstance(group_sizes, str) or not hasattr(group_sizes, "__iter__"):
        raise ArgumentTypeError(f"group_sizes is {group_sizes!r}; accepted: {accepted}")
    if hasattr(group_sizes, "keys"):
        entries = dict(group_sizes)
        if names is not None and set(entries) != set(names):
            raise ArgumentError(
                f"group_sizes names {list(entries)}; accepted: the groups "
                f"{', '.join(map(group_name, names))}"
            )
        order = list(entries) if names is None else names
    else:
        listed = list(group_sizes)
        order = [f"group {i + 1}" for i in range(len(listed))] if names is None else names
        if len(listed) != len(order):
            raise ArgumentError(
                f"group_sizes has {len(listed)} entries; accepted: one for each of the groups "
                f"{', '.join(map(group_name, order))}"
            )
        entries = dict(zip(order, listed, strict=True))
    if names is None and len(entries) < 2:
        raise ArgumentError(f"group_sizes has {len(entries)} entries; accepted: at least two")
    if whole:
        return {
            group: arguments.count(
                f"group_sizes of {group_name(group)}", entries[group], 1, MOST_ROWS
            )
            for group in order
        }
    for group, size in entries.items():
        if not arguments.is_number(size) or not math.isfinite(size):
            raise ArgumentTypeError(
                f"group_sizes of {group_name(group)} is {size!r}; accepted: a number above 0"
            )
        if size <= 0:
            raise ArgumentError(
                f"group_sizes of {group_name(group)} is {size!r}; accepted: a number above 0"
            )
    return {group: entries[group] for group in order}
