"""Which pairs of groups a question compares: all, or those with a reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

from ..data.groups import group_label
from ..inference.intervals import Pair
from ..metrics.directions import Better
from .minimum_counts import GroupCount
from .question import PermutationQuestion

#: References that the data choose: the group with the highest value, or with the best one.
HIGHEST, BEST = "highest", "best"


class ComparedPairs(NamedTuple):
    """The pairs of a question, by position among its groups."""

    pairs: tuple[Pair, ...]
    #: How many comparisons they count as.
    n_comparisons: int
    #: Those that must pass and cannot fail.
    pass_only: frozenset[Pair] = frozenset()


def compared_pairs(
    posed: PermutationQuestion,
    groups: Sequence[GroupCount],
    reference: Any,
    better: Better | None,
    has_pass: bool,
) -> ComparedPairs:
    """Return the pairs of groups that can be tested.

    The data choose the reference by all pairs, so that a fail counts all of them as comparisons.
    All groups lie within the tolerance of the true reference exactly when all pairs lie within it
    of each other: a pass takes all pairs. The group that is seen as the reference may be another
    one, and a pass that compares with it alone is false in up to 25 % of audits.
    """
    by_name = {name.group: name for name in groups}
    keys = posed.problem.keys
    able = [i for i, key in enumerate(keys) if by_name[group_label(key)].is_tested]
    if reference not in (HIGHEST, BEST):
        pairs = tuple(pair for pair in posed.pairs if set(pair) <= set(able))
        return ComparedPairs(pairs, len(pairs))
    if len(able) < 2:
        return ComparedPairs((), 0)
    sign = -1 if reference == BEST and better == "lower" else 1
    chosen = _leader(posed, able, sign)
    pairs = tuple((i, chosen) for i in able if i != chosen)
    n_comparisons = math.comb(len(able), 2)
    if not has_pass:
        return ComparedPairs(pairs, n_comparisons)
    others = tuple(combinations([i for i in able if i != chosen], 2))
    return ComparedPairs((*pairs, *others), n_comparisons, frozenset(others))


def _leader(posed: PermutationQuestion, able: Sequence[int], sign: int) -> int:
    """Return the group whose smallest lead over another one is largest; of -1 the lowest.

    Within strata there is one value for each pair, not for each group.
    """
    problem = posed.problem
    if not problem.stratified:
        return max(able, key=lambda i: sign * problem.evaluations[i].value)

    def smallest_lead(i: int) -> float:
        gaps = [sign * problem.gap((i, j)).estimate for j in able if j != i]
        return min((gap for gap in gaps if not math.isnan(gap)), default=-math.inf)

    return max(able, key=smallest_lead)
