"""Reads the inputs of power plans: either data, or an assumed value and group sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import arguments
from ..data.groups import group_name
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError, FairAuditError
from ..metrics.metric import Metric
from .excluded_groups import check_unused
from .power_plan import MAX_PLANNED_ROWS
from .question import PermutationQuestion, named_columns, prepare_question, within_strata


def refuse_value_with_data(
    inputs: dict[str, Any], value: float | None, share: float | Sequence[float]
) -> None:
    """Raise if ``value`` or ``share`` is passed together with data."""
    if inputs["data"] is None and inputs["sensitive_features"] is None:
        return
    if value is not None:
        raise ArgumentTypeError(
            "value cannot be combined with data, which have their own values. Remove one of them.",
            argument="value",
            mentions=("data",),
            code="conflicting-arguments",
        )
    if not (isinstance(share, int | float) and share == 1):
        raise ArgumentTypeError(
            "share cannot be combined with data, which have their own shares. Remove one of them.",
            argument="share",
            mentions=("data",),
            code="conflicting-arguments",
        )


def question_from_data(
    metric: Metric,
    inputs: dict[str, Any],
    *,
    strata: Any,
    group_sizes: Any,
    undefined: str,
    min_group_size: int | None,
    **options: Any,
) -> PermutationQuestion | None:
    """Return the question about the existing data; None without data."""
    arguments.check(missing=inputs["missing"], mixed_clusters=inputs["mixed_clusters"])
    if not metric.kind.has_power:
        raise ArgumentError(
            f"metric is {metric.name!r}, for which there is no power formula. Plan for another "
            "metric (such as each component of a joint criterion), or simulate with calibrate.",
            argument="metric",
        )
    checked = arguments.check(undefined=undefined, min_group_size=min_group_size)
    if inputs["data"] is None and inputs["sensitive_features"] is None:
        why = "applies to plans from data only. Remove it, or pass data."
        check_unused(checked.undefined, checked.min_group_size, why)
        for name in ("y_true", "y_pred", "y_score", "clusters", "sample_weight", "missing"):
            if inputs[name] is not None:
                raise ArgumentTypeError(
                    f"{name} needs sensitive_features too. Pass sensitive_features=, or plan with "
                    "value= alone.",
                    argument=name,
                    mentions=("sensitive_features", "value"),
                    code="missing-argument",
                )
        if strata is not None:
            raise ArgumentTypeError(
                "strata needs data, from which the variance of gaps within strata is estimated. "
                "Pass data, or remove strata.",
                argument="strata",
                mentions=("data",),
                code="missing-argument",
            )
        return None
    within, own_strata = within_strata(strata)
    table = AuditTable.make(**inputs, strata=own_strata, extra=named_columns(metric))
    if within and table.strata and group_sizes is not None:
        raise ArgumentTypeError(
            "group_sizes cannot be combined with strata: rows are then in the proportions of the "
            "data. Remove one of them.",
            argument="group_sizes",
            mentions=("strata",),
            code="conflicting-arguments",
        )
    return prepare_question(
        table,
        metric,
        undefined=checked.undefined,
        min_group_size=checked.min_group_size,
        skips_certain=True,
        **options,
    )


#: A number for each group.
NumberByGroup = dict[Any, float]


def inputs_from_data(
    question: PermutationQuestion,
) -> tuple[dict[Any, int], NumberByGroup, NumberByGroup | None, NumberByGroup | None, int]:
    """Return sizes, standard deviations, values and shares by group, and the number of pairs.

    Values and shares are None for metrics that are not rates.
    """
    problem = question.problem
    deviations = problem.deviations()
    sizes = dict(zip(deviations, problem.n_rows, strict=True))
    constant = [group_name(name) for name, deviation in deviations.items() if not deviation > 0]
    if constant:
        raise ArgumentError(
            f"{problem.metric.name} does not vary, or has no standard error, in "
            f"{', '.join(map(repr, constant))}, so these data cannot be used for "
            f"planning. Pass data "
            "in which it varies, or value=.",
            argument="metric",
            mentions=("value",),
        )
    values = shares = None
    if problem.is_proportion:
        entries = dict(zip(deviations, problem.evaluations, strict=True))
        values = {group: entry.value for group, entry in entries.items()}
        shares = {group: entry.denominator / sizes[group] for group, entry in entries.items()}
    return sizes, deviations, values, shares, max(len(question.pairs), 1)


def error_within_strata(question: PermutationQuestion) -> float:
    """Return the largest standard error of a gap within strata, times the square root of rows."""
    problem = question.problem
    gaps = {pair: problem.gap(pair) for pair in question.pairs}
    unknown = [
        " and ".join(problem.names[i] for i in pair)
        for pair, gap in gaps.items()
        if not gap.standard_error > 0
    ]
    if unknown:
        raise ArgumentError(
            f"the gap of {problem.metric.name} within strata does not vary, or has no standard "
            f"error, for {'; '.join(unknown)}. Pass coarser strata, in which it varies.",
            argument="strata",
        )
    error = max(gap.standard_error for gap in gaps.values())
    return error * math.sqrt(sum(problem.n_rows))


def inputs_from_value(
    metric: Metric,
    value: float | None,
    share: float | Sequence[float],
    group_sizes: Any,
    whole: bool,
) -> tuple[dict[Any, int], NumberByGroup, NumberByGroup, NumberByGroup]:
    """Return sizes, standard deviations, values and shares of groups with the same proportion."""
    if value is None:
        raise ArgumentTypeError(
            "value is None, and there are no data. Pass value=, or sensitive_features= with the "
            "columns of the metric.",
            argument="value",
            mentions=("sensitive_features",),
            code="missing-argument",
        )
    if not metric.is_proportion:
        raise ArgumentError(
            f"value is for proportions only: the variance of {metric.name} must be estimated from "
            "data. Pass data instead.",
            argument="value",
        )
    value = arguments.level("value", value)
    if group_sizes is None:
        raise ArgumentTypeError(
            "group_sizes is None. Without data, pass the rows of each group.",
            argument="group_sizes",
            code="missing-argument",
        )
    sizes = sizes_of(group_sizes, None, whole)
    accepted = "a number above 0, up to 1, or one for each group"
    one_for_all = isinstance(share, int | float | np.number)
    if not one_for_all and not arguments.is_listing(share):
        raise ArgumentTypeError(f"share is {share!r}; accepted: {accepted}", argument="share")
    shares: list[Any] = list(share) if arguments.is_listing(share) else [share] * len(sizes)
    if len(shares) != len(sizes):
        raise ArgumentError(
            f"share has {len(shares)} entries; accepted: one for each of the {len(sizes)} groups",
            argument="share",
        )
    for part in shares:
        if not isinstance(part, int | float | np.number):
            raise ArgumentTypeError(f"share is {part!r}; accepted: {accepted}", argument="share")
        if isinstance(part, bool) or not 0 < part <= 1:
            raise ArgumentError(f"share is {part!r}; accepted: {accepted}", argument="share")
    by_group = dict(zip(sizes, map(float, shares), strict=True))
    deviations = {group: math.sqrt(value * (1 - value) / size) for group, size in by_group.items()}
    return sizes, deviations, dict.fromkeys(sizes, value), by_group


def sizes_of(group_sizes: Any, names: list[Any] | None, whole: bool) -> dict[Any, int]:
    """Return the rows of each group, or their proportions if ``whole`` is False."""
    accepted = "a mapping or sequence with a number for each group, at least two"
    if not arguments.is_listing(group_sizes):
        raise ArgumentTypeError(
            f"group_sizes is {group_sizes!r}; accepted: {accepted}", argument="group_sizes"
        )
    if hasattr(group_sizes, "keys"):
        entries = dict(group_sizes)
        if names is not None and set(entries) != set(names):
            raise ArgumentError(
                f"group_sizes names {list(entries)}; accepted: the groups "
                f"{', '.join(map(group_name, names))}",
                argument="group_sizes",
            )
        order = list(entries) if names is None else names
    else:
        listed = list(group_sizes)
        order = [f"group {i + 1}" for i in range(len(listed))] if names is None else names
        if len(listed) != len(order):
            raise ArgumentError(
                f"group_sizes has {len(listed)} entries; accepted: one for each of the groups "
                f"{', '.join(map(group_name, order))}",
                argument="group_sizes",
            )
        entries = dict(zip(order, listed, strict=True))
    if names is None and len(entries) < 2:
        raise ArgumentError(
            f"group_sizes has {len(entries)} entries; accepted: at least two",
            argument="group_sizes",
        )
    if whole:
        return {group: _whole_size(group, entries[group]) for group in order}
    for group, size in entries.items():
        if not arguments.is_number(size) or not math.isfinite(arguments.as_float(size)):
            raise ArgumentTypeError(
                f"group_sizes of {group_name(group)} is {size!r}; accepted: a number above 0",
                argument="group_sizes",
            )
        if size <= 0:
            raise ArgumentError(
                f"group_sizes of {group_name(group)} is {size!r}; accepted: a number above 0",
                argument="group_sizes",
            )
    return {group: entries[group] for group in order}


def _whole_size(group: Any, size: Any) -> int:
    try:
        return arguments.count(f"group_sizes of {group_name(group)}", size, 1, MAX_PLANNED_ROWS)
    except FairAuditError as error:
        error.argument = "group_sizes"
        raise
