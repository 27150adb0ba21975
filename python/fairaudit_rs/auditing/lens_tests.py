"""The comparisons of lenses that a policy holds to a tolerance: a size with limits, or p-values."""

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
from ..extremes.lens import LAST_CONFIDENCE
from ..extremes.result import ExtremeResult, TailComparison
from ..individual.result import IndividualResult
from ..inference.tolerance import Tolerance
from ..permutation.tolerance import ask
from .binding import Bound
from .findings import LensTest
from .questions import Attribute, Computing
from .refusals import reason_of
from .seeds import seed_of
from .setting import People

#: A group, and all others, in a table of the two.
_OWN, _OTHERS = "own", "others"


def of_growth(
    bound: Bound, result: IndividualResult, low: IndividualResult, high: IndividualResult
) -> LensTest:
    """Return the growth of the loss, with limits of two results; growth has one side.

    Where both limits are of the metric of the result, its p-value is that of the comparison.
    """
    if math.isnan(result.pvalue):
        return LensTest(
            estimate=result.estimate, reason="the ratio of losses has no standard error"
        )
    is_own = high is result
    return bound.of_limits(
        LensTest(
            estimate=result.estimate,
            least=max(low.lower_bound, 0.0),
            most=high.upper_bound,
            p_fail=result.pvalue if is_own else math.nan,
            adjusted=min(1.0, bound.n_adjusted * result.pvalue) if is_own else math.nan,
        )
    )


def of_rates(
    bound: Bound,
    computing: Computing,
    one: Attribute,
    metric: str,
    decided: Mapping[str, NDArray[Any]],
    people: People,
    tested: Sequence[Any],
) -> tuple[LensTest, ...]:
    """Return the gap of every group to all others together, by the tests of the questions.

    Which group is worst off the data say, so that each could be the one that is looked at. The
    influence values give the same gap with an interval by the delta method, which never decides.
    """
    known = metrics.get(metric)
    found = []
    for group in tested if len(tested) > 2 else tested[:1]:
        own = people.code == list(people.groups).index(group)
        rest = [other for other in people.groups if other != group]
        names = {
            _OWN: group_name(group, one.name),
            _OTHERS: group_name(rest[0], one.name) if len(rest) == 1 else "all others",
        }
        both = names[_OWN], names[_OTHERS]
        table = AuditTable.make(
            y_true=decided.get("y_true"),
            y_pred=decided["y_pred"],
            sensitive_features={one.name: np.where(own, _OWN, _OTHERS)},
        )
        seed = seed_of(computing.seed, "influence", metric, one.name)
        try:
            question = ask(
                table,
                known,
                Tolerance(value=bound.tolerance),
                n_threads=computing.n_threads,
                seed=seed,
            )
            tests = question.tests(
                alpha=bound.policy.alpha,
                n_tests=bound.n_adjusted,
                n_resamples=computing.n_resamples,
                seed=seed,
                n_threads=computing.n_threads,
            )
        except FairAuditError as error:
            found.append(_unknown(*both, reason_of(error)))
            continue
        if not tests:
            groups = [each for each in question.groups if each.reason]
            lacks = [f"{names[each.group]}: {each.reason}" for each in groups]
            found.append(_unknown(*both, "; ".join(lacks) or str(question.reason)))
            continue
        [test] = tests
        found.append(
            bound.of_pvalues(
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
    """Return the groups whose gap to all others could be measured; of two there is one gap."""
    of_each = list(tests) * len(tested) if len(tests) == 1 else tests
    return [group for group, test in zip(tested, of_each, strict=True) if test.reason is None]


def _unknown(first: str, second: str, reason: str) -> LensTest:
    return LensTest(first=first, second=second, reason=reason)


# -- extremes ----------------------------------------------------------------------------------


def measured_pairs(result: ExtremeResult) -> list[tuple[Any, Any]]:
    """Return the pairs of groups whose worst cases could be compared."""
    return [(one.first, one.second) for one in result.comparisons if not one.reason]


def of_levels(
    bound: Bound, result: ExtremeResult, fails: ExtremeResult, passes: ExtremeResult
) -> tuple[LensTest, ...]:
    """Return the difference of worst cases of every pair, by intervals at two levels."""
    return tuple(
        bound.of_limits(_difference(result, wide, narrow, fails.confidence_level))
        for wide, narrow in zip(fails.comparisons, passes.comparisons, strict=True)
    )


def _difference(
    result: ExtremeResult, wide: TailComparison, narrow: TailComparison, level: float
) -> LensTest:
    first, second = wide.first, wide.second
    low, high = narrow.low, narrow.high
    least = wide.low
    if wide.estimate < 0:
        first, second = second, first
        low, high = -narrow.high, -narrow.low
        least = -wide.high
    names = result.name_of(first), result.name_of(second)
    if wide.reason:
        return _unknown(*names, wide.reason)
    if "fit" in wide.method and level > LAST_CONFIDENCE:
        # What was simulated ends there: more comparisons have no limit that is known to hold.
        least = 0.0
    return LensTest(
        first=names[0],
        second=names[1],
        first_value=result.levels[first].value,
        second_value=result.levels[second].value,
        first_n=result.group_sizes[first],
        second_n=result.group_sizes[second],
        estimate=abs(wide.estimate),
        least=max(least, 0.0),
        most=max(high, -low),
    )
