"""Inputs of power plans: data, or a value and group sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import arguments
from ..data.groups import group_name
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError
from ..metrics.metric import Metric
from .excluded_groups import check_unused
from .power_plan import MOST_ROWS
from .question import PermutationQuestion, named_columns, pose_metric, within_strata


def check_planned(
    given: dict[str, Any], value: float | None, share: float | Sequence[float]
) -> None:
    """Refuse values to plan with beside data."""
    if given["data"] is None and given["sensitive_features"] is None:
        return
    if value is not None:
        raise ArgumentTypeError(
            "value goes without data; the data have values of their own", argument="value"
        )
    if not (isinstance(share, int | float) and share == 1):
        raise ArgumentTypeError(
            "share goes without data; the data have shares of their own", argument="share"
        )


def question_of(
    metric: Metric,
    given: dict[str, Any],
    *,
    strata: Any,
    group_sizes: Any,
    undefined: str,
    min_group_size: int | None,
    **posed: Any,
) -> PermutationQuestion | None:
    """Ask the metric of the data at hand; None when there are none."""
    arguments.check(missing=given["missing"], mixed_clusters=given["mixed_clusters"])
    if not metric.kind.has_power:
        raise ArgumentError(
            f"metric is {metric.name!r}, whose power has no formula here; accepted: other metrics "
            "(the components of a joint criterion one by one, or calibrate)",
            argument="metric",
        )
    checked = arguments.check(undefined=undefined, min_group_size=min_group_size)
    if given["data"] is None and given["sensitive_features"] is None:
        check_unused(checked.undefined, checked.min_group_size, "goes with data, not with value")
        for name in ("y_true", "y_pred", "y_score", "clusters", "sample_weight", "missing"):
            if given[name] is not None:
                raise ArgumentTypeError(
                    f"{name} is given without sensitive_features; accepted: both, or value=",
                    argument=name,
                    mentions=(
                        "sensitive_features",
                        "value",
                    ),
                )
        if strata is not None:
            raise ArgumentTypeError(
                "strata goes with data, which tell how gaps vary within them, not with value",
                argument="strata",
            )
        return None
    within, own_strata = within_strata(strata)
    table = AuditTable.make(**given, strata=own_strata, extra=named_columns(metric))
    if within and table.strata and group_sizes is not None:
        raise ArgumentTypeError(
            "group_sizes does not go with strata, whose rows are in the proportions of the data; "
            "accepted: one of them",
            argument="group_sizes",
        )
    return pose_metric(
        table,
        metric,
        undefined=checked.undefined,
        min_group_size=checked.min_group_size,
        skips_certain=True,
        **posed,
    )


#: By group: a number for each.
Numbers = dict[Any, float]


def from_data(
    question: PermutationQuestion,
) -> tuple[dict[Any, int], Numbers, Numbers | None, Numbers | None, int]:
    """Return sizes, deviations, of rates also values and shares, and the number of pairs."""
    problem = question.problem
    deviations = problem.deviations()
    sizes = dict(zip(deviations, problem.n_rows, strict=True))
    flat = [group_name(name) for name, deviation in deviations.items() if not deviation > 0]
    if flat:
        raise ArgumentError(
            f"{problem.metric.name} does not vary, or has no standard error, in "
            f"{', '.join(map(repr, flat))}, so the data do not tell how large a gap must be; "
            "accepted: data in which it varies, or value=",
            mentions=("value",),
        )
    values = shares = None
    if problem.is_proportion:
        entries = dict(zip(deviations, problem.evaluations, strict=True))
        values = {group: entry.value for group, entry in entries.items()}
        shares = {group: entry.denominator / sizes[group] for group, entry in entries.items()}
    return sizes, deviations, values, shares, max(len(question.pairs), 1)


def error_within(question: PermutationQuestion) -> float:
    """Return the largest standard error of a gap within strata, times the root of all rows."""
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
            f"error, of {'; '.join(unknown)}; accepted: strata in which it varies, or fewer of them"
        )
    error = max(gap.standard_error for gap in gaps.values())
    return error * math.sqrt(sum(problem.n_rows))


def from_value(
    metric: Metric,
    value: float | None,
    share: float | Sequence[float],
    group_sizes: Any,
    whole: bool,
) -> tuple[dict[Any, int], Numbers, Numbers, Numbers]:
    """Return sizes, deviations, values and shares of equal proportions."""
    if value is None:
        raise ArgumentTypeError(
            "there are neither data (sensitive_features, ...) nor a value to plan with; accepted: "
            "one of them",
            mentions=("sensitive_features",),
        )
    if not metric.is_proportion:
        raise ArgumentError(
            f"value goes with proportions; how much {metric.name} varies must come from data",
            argument="value",
        )
    value = arguments.level("value", value)
    if group_sizes is None:
        raise ArgumentTypeError(
            "group_sizes is None; without data it says how many rows there are",
            argument="group_sizes",
        )
    sizes = sizes_of(group_sizes, None, whole)
    accepted = "a number above 0, up to 1, or one for each group"
    one_for_all = isinstance(share, int | float | np.number)
    if not one_for_all and not arguments.is_listing(share):
        raise ArgumentTypeError(f"share is {share!r}; accepted: {accepted}", argument="share")
    shares: list[Any] = list(share) if arguments.is_listing(share) else [share] * len(sizes)
    if len(shares) != len(sizes):
        raise ArgumentError(
            f"share has {len(shares)} entries for {len(sizes)} groups", argument="share"
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
    """Return the rows of each group; proportions, if they need not be whole."""
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
        return {
            group: arguments.count(
                f"group_sizes of {group_name(group)}", entries[group], 1, MOST_ROWS
            )
            for group in order
        }
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
