"""Tests whether groups differ at all, for questions without a tolerance.

The p-value is that of the two-sided test of a gap of 0, by the method that decides questions with a
tolerance. Only methods without replicates are used, which are cheap.
"""

from __future__ import annotations

import math

from ..data.groups import group_label
from ..inference.intervals import Pair
from ..inference.tolerance import Tolerance
from .question import PermutationQuestion
from .tolerance import ToleranceQuestion, ToleranceTest, deciding_method
from .two_one_sided import TwoOneSidedTests

_FORMULAS = ("score", "mantel-haenszel", "mover")
#: With more pairs of groups than this, no tests are made.
MOST_PAIRS = 2_000


def equality_tests(question: ToleranceQuestion) -> tuple[ToleranceTest, ...]:
    """Test whether the groups of a question differ; () if that needs replicates."""
    prepared = question.prepared
    if prepared is None:
        return ()
    method = deciding_method(prepared, Tolerance(value=0.0))
    problem = prepared.problem
    if method not in _FORMULAS or problem.known_range is not None:
        return ()
    tested = {group.group for group in question.groups if group.is_tested}
    testable = {i for i, key in enumerate(problem.keys) if group_label(key) in tested}
    pairs = [pair for pair in prepared.pairs if set(pair) <= testable]
    if len(pairs) > MOST_PAIRS:
        return ()
    tests = TwoOneSidedTests(problem=problem, scale="difference", formula=problem.formula(method))
    return tuple(_test(question, prepared, tests, method, pair) for pair in pairs)


def _test(
    question: ToleranceQuestion,
    prepared: PermutationQuestion,
    tests: TwoOneSidedTests,
    method: str,
    pair: Pair,
) -> ToleranceTest:
    """Test a pair, the group with the higher value first."""
    problem = prepared.problem
    gap, margins = problem.gap(pair), tests.test_pair(pair, 0.0)
    is_unknown = math.isnan(margins.statistic)
    within = problem.within_strata(pair)
    groups = {group.group: group for group in question.groups}
    first, second = (groups[group_label(problem.keys[i])] for i in pair)
    if gap.estimate < 0:
        first, second = second, first
        within = None if within is None else within.swapped()
    p_equal = min(margins.tails.p_fail(is_above) for is_above in (True, False))
    return ToleranceTest(
        first=first,
        second=second,
        estimate=abs(gap.estimate),
        standard_error=gap.standard_error,
        p_fail=math.nan,
        p_pass=math.nan,
        p_equal=math.nan if is_unknown else p_equal,
        least=math.nan,
        most=math.nan,
        method=method,
        reason=tests.explain_untestable(pair) if is_unknown else None,
        within=within,
    )
