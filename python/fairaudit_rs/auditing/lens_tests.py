"""Compare what a lens measured with its tolerance, by confidence limits or p-values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import metrics
from ..data.groups import group_name
from ..data.tables import AuditTable
from ..errors import FairAuditError
from ..extremes.comparison import distribution_free_limits, fewest_rows
from ..extremes.result import ExtremeResult, TailComparison
from ..individual.result import IndividualResult
from ..inference.tolerance import Tolerance
from ..permutation.tolerance import prepare_tolerance_question
from ..report.words import join_names
from .context import GroupMembership
from .findings import LensTest
from .lens_tolerances import LensTolerance
from .questions import AuditedAttribute, ComputeOptions
from .refusals import reason_of
from .seeds import seed_of
from .sentences import fill_part

#: Names of a group and of all others, in a table of these two.
_OWN, _OTHERS = "own", "others"


def compare_growth(
    lens_tolerance: LensTolerance,
    result: IndividualResult,
    low: IndividualResult,
    high: IndividualResult,
) -> LensTest:
    """Compare the growth of the loss with its tolerance.

    The lower limit comes from the result ``low``, the upper one from ``high``. If ``high`` is the
    result itself, its p-value is used too.
    """
    if math.isnan(result.pvalue):
        return LensTest(
            estimate=result.estimate, reason="the ratio of losses has no standard error"
        )
    from_same_result = high is result
    return lens_tolerance.test_by_limits(
        LensTest(
            estimate=result.estimate,
            least=max(low.lower_bound, 0.0),
            most=high.upper_bound,
            p_fail=result.pvalue if from_same_result else math.nan,
            adjusted=min(1.0, lens_tolerance.n_adjusted * result.pvalue)
            if from_same_result
            else math.nan,
        )
    )


def compare_rates(
    lens_tolerance: LensTolerance,
    compute_options: ComputeOptions,
    attribute: AuditedAttribute,
    metric: str,
    decided: Mapping[str, NDArray[Any]],
    people: GroupMembership,
    tested: Sequence[Any],
) -> tuple[LensTest, ...]:
    """Compare the gap between each group and all others with the tolerance, as questions do.

    The data determine which group is worst off, so every group counts as a comparison. The
    influence values give the same gap with a delta-method interval, which never decides.
    """
    known = metrics.get(metric)
    found = []
    for group in tested if len(tested) > 2 else tested[:1]:
        own = people.code == list(people.groups).index(group)
        rest = [other for other in people.groups if other != group]
        names = {
            _OWN: group_name(group, attribute.name),
            _OTHERS: group_name(rest[0], attribute.name) if len(rest) == 1 else "all others",
        }
        both = names[_OWN], names[_OTHERS]
        table = AuditTable.make(
            y_true=decided.get("y_true"),
            y_pred=decided["y_pred"],
            sensitive_features={attribute.name: np.where(own, _OWN, _OTHERS)},
        )
        seed = seed_of(compute_options.seed, "influence", metric, attribute.name)
        try:
            question = prepare_tolerance_question(
                table,
                known,
                Tolerance(value=lens_tolerance.tolerance),
                n_threads=compute_options.n_threads,
                seed=seed,
            )
            tests = question.tests(
                alpha=lens_tolerance.policy.alpha,
                n_tests=lens_tolerance.n_adjusted,
                n_resamples=compute_options.n_resamples,
                seed=seed,
                n_threads=compute_options.n_threads,
            )
        except FairAuditError as error:
            found.append(_unmeasured_test(*both, reason_of(error)))
            continue
        if not tests:
            groups = [each for each in question.groups if each.reason]
            lacks = [f"{names[each.group]}: {each.reason}" for each in groups]
            found.append(_unmeasured_test(*both, "; ".join(lacks) or str(question.reason)))
            continue
        [test] = tests
        found.append(
            lens_tolerance.test_by_pvalues(
                LensTest(
                    first=names[test.first.group],
                    second=names[test.second.group],
                    first_value=test.first.value,
                    second_value=test.second.value,
                    first_n=test.first.n_counted,
                    second_n=test.second.n_counted,
                    estimate=test.estimate,
                    least=test.least,
                    most=test.most,
                    p_fail=test.p_fail,
                    p_pass=test.p_pass,
                )
            )
        )
    return tuple(found)


def measured_groups(tested: Sequence[Any], tests: Sequence[LensTest]) -> list[Any]:
    """Return the groups whose gap to all others could be measured; two groups share one gap."""
    of_each = list(tests) * len(tested) if len(tests) == 1 else tests
    return [group for group, test in zip(tested, of_each, strict=True) if test.reason is None]


def _unmeasured_test(first: str, second: str, reason: str) -> LensTest:
    return LensTest(first=first, second=second, reason=reason)


# -- extremes ----------------------------------------------------------------------------------


def measured_pairs(result: ExtremeResult) -> list[tuple[Any, Any]]:
    """Return the pairs of groups whose worst cases could be compared."""
    return [
        (comparison.first, comparison.second)
        for comparison in result.comparisons
        if not comparison.reason
    ]


def compare_levels(lens_tolerance: LensTolerance, result: ExtremeResult) -> tuple[LensTest, ...]:
    """Compare the worst cases of each pair of groups, by distribution-free limits.

    Fitted tails never decide: if a tail mixes two populations, their limits failed 35 % of pairs
    at the tolerance.
    """
    tails = [result.tails[group].problem for group in result.tails]
    position = {group: i for i, group in enumerate(result.tails)}
    measured = [comparison for comparison in result.comparisons if not comparison.reason]
    pairs = [(position[comparison.first], position[comparison.second]) for comparison in measured]
    fail_limits, pass_limits = (
        iter(
            distribution_free_limits(tails, pairs, result.horizon, tails[0].call, confidence=level)
        )
        for level in (lens_tolerance.fail_level, lens_tolerance.pass_level)
    )
    return tuple(
        _unmeasured_test(
            result.name_of(comparison.first), result.name_of(comparison.second), comparison.reason
        )
        if comparison.reason
        else lens_tolerance.test_by_limits(
            _level_gap(result, comparison, next(fail_limits), next(pass_limits))
        )
        for comparison in result.comparisons
    )


def note_on_required_rows(lens_tolerance: LensTolerance, result: ExtremeResult) -> str:
    """Return a note on the rows required for a verdict if groups have too few; else ""."""
    call = next(iter(result.tails.values())).problem.call
    for_pass, for_fail = (
        fewest_rows(result.horizon, level, call)
        for level in (lens_tolerance.pass_level, lens_tolerance.fail_level)
    )
    groups = {group for pair in measured_pairs(result) for group in pair}
    if all(result.group_sizes[group] >= max(for_pass, for_fail) for group in groups):
        return ""
    return fill_part("why_not_shown", "few_rows", passes=f"{for_pass:,}", fails=f"{for_fail:,}")


def note_on_repeated_differences(result: ExtremeResult) -> str:
    """Return a note on groups whose largest differences repeat, as copied rows do; else ""."""
    found = [
        f"{tail.problem.fit_basis.n_repeated:,} of {tail.problem.k:,} in {result.name_of(group)}"
        for group, tail in result.tails.items()
        if tail.problem.fit_basis.n_repeated
    ]
    return (
        fill_part("why_not_shown", "equal_differences", groups=join_names(found)) if found else ""
    )


def _level_gap(
    result: ExtremeResult,
    pair: TailComparison,
    fail_limits: tuple[float, float],
    pass_limits: tuple[float, float],
) -> LensTest:
    """Return a pair with its limits, the group with the higher level first."""
    first, second = pair.first, pair.second
    least = fail_limits[0]
    if pair.estimate < 0:
        first, second, least = second, first, -fail_limits[1]
    return LensTest(
        first=result.name_of(first),
        second=result.name_of(second),
        first_value=result.levels[first].value,
        second_value=result.levels[second].value,
        first_n=result.group_sizes[first],
        second_n=result.group_sizes[second],
        estimate=abs(pair.estimate),
        least=max(least, 0.0),
        most=max(pass_limits[1], -pass_limits[0]),
    )
