"""Chooses the pairs of groups that a tolerance question compares."""

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

#: Values of ``reference`` that let the data choose: the group with the highest or the best value.
HIGHEST, BEST = "highest", "best"


class ComparedPairs(NamedTuple):
    """The pairs of a question, by position among its groups."""

    pairs: tuple[Pair, ...]
    #: Number of comparisons to correct the significance level for.
    n_comparisons: int
    #: Pairs that are needed for a pass and cannot produce a fail.
    pass_only: frozenset[Pair] = frozenset()


def compared_pairs(
    prepared: PermutationQuestion,
    groups: Sequence[GroupCount],
    reference: Any,
    better: Better | None,
    has_pass: bool,
) -> ComparedPairs:
    """Return the pairs of groups that can be tested.

    A reference that the data choose depends on all pairs, so a fail is corrected for all of them. A
    pass needs all pairs too: all groups lie within the tolerance of the true reference exactly when
    all pairs do. The observed reference may not be the true one, and a pass that compares with it
    alone is wrong in up to 25 % of audits.
    """
    by_name = {group.group: group for group in groups}
    keys = prepared.problem.keys
    able = [i for i, key in enumerate(keys) if by_name[group_label(key)].is_tested]
    if reference not in (HIGHEST, BEST):
        pairs = tuple(pair for pair in prepared.pairs if set(pair) <= set(able))
        return ComparedPairs(pairs, len(pairs))
    if len(able) < 2:
        return ComparedPairs((), 0)
    sign = -1 if reference == BEST and better == "lower" else 1
    chosen = _leader(prepared, able, sign)
    pairs = tuple((i, chosen) for i in able if i != chosen)
    n_comparisons = math.comb(len(able), 2)
    if not has_pass:
        return ComparedPairs(pairs, n_comparisons)
    others = tuple(combinations([i for i in able if i != chosen], 2))
    return ComparedPairs((*pairs, *others), n_comparisons, frozenset(others))


def _leader(prepared: PermutationQuestion, able: Sequence[int], sign: int) -> int:
    """Return the group with the highest value, or with the lowest if ``sign`` is -1.

    Within strata, where values exist for pairs only, it is the group whose smallest lead over the
    others is largest.
    """
    problem = prepared.problem
    if not problem.stratified:
        return max(able, key=lambda i: sign * problem.evaluations[i].value)

    def smallest_lead(i: int) -> float:
        gaps = [sign * problem.gap((i, j)).estimate for j in able if j != i]
        return min((gap for gap in gaps if not math.isnan(gap)), default=-math.inf)

    return max(able, key=smallest_lead)
