"""Intersections of attributes: which of them a policy asks, and which it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from ..data.groups import label
from ..data.tables import AuditTable
from ..permutation.floors import ROWS
from ..results.words import listed
from .criterion import Criterion
from .findings import Named, QuestionFinding
from .policy import Policy
from .questions import Asked, Attribute, skipped
from .sentences import sentence

#: Attributes that are crossed: two inform, up to three bind.
_CROSSED = 2
MOST_CROSSED = 3
#: Comparisons of binding intersections; more leave no power to any of them.
MOST_COMPARISONS = 2_000
_MOST_NAMED = 5


def intersections_of(table: AuditTable, policy: Policy) -> list[Attribute]:
    """Return the intersections of the attributes of a table that a policy asks about."""
    if policy.intersections == "skip":
        return []
    most = MOST_CROSSED if policy.intersections == "bind" else _CROSSED
    names = table.feature_names
    crossed = [
        Attribute.of(table, some, policy)
        for n in range(_CROSSED, most + 1)
        for some in combinations(names, n)
    ]
    # Where three attributes leave fewer than two groups there is nothing to compare.
    return [one for one in crossed if len(one.parts) == _CROSSED or has_two_groups(one)]


def limited(
    asked: Sequence[Asked], table: AuditTable, policy: Policy, attributes: Sequence[Attribute]
) -> list[Asked]:
    """Return the questions that are asked, and those that withhold a pass as they are not.

    Of binding questions about intersections the first ones are asked, up to `MOST_COMPARISONS`; of
    three attributes those alone that leave two groups to compare.
    """
    if policy.intersections != "bind":
        return list(asked)
    found, n_comparisons = [], 0
    for one in asked:
        if not (one.binding and one.attribute.is_intersection):
            found.append(one)
            continue
        if not one.question.pairs and len(one.attribute.parts) > _CROSSED:
            continue
        n_comparisons += one.question.n_comparisons
        if n_comparisons > MOST_COMPARISONS:
            n_comparisons -= one.question.n_comparisons
            why = (
                f"its {one.question.n_comparisons:,} comparisons are beyond the "
                f"{MOST_COMPARISONS:,} that are made of intersections"
            )
            one = skipped(one.criterion, one.attribute, why)
        found.append(one)
    crossed = [one for one in attributes if one.is_intersection]
    seen = set()
    for criterion in policy.binding:
        if criterion.metric is None:
            continue
        for attribute, why in unasked(criterion, table, policy, crossed):
            key = (criterion.metric, criterion.ratio is None, attribute.name)
            if key not in seen:
                found.append(skipped(criterion, attribute, why))
            seen.add(key)
    return found


def has_two_groups(one: Attribute) -> bool:
    """Whether two groups of an attribute have enough rows to be compared."""
    sizes = one.table.people.n_effective
    known = set(one.groups)
    return sum(n >= ROWS for key, n in sizes.items() if label(key) in known) > 1


def unasked(
    criterion: Criterion, table: AuditTable, policy: Policy, crossed: Sequence[Attribute]
) -> Iterator[tuple[Attribute, str]]:
    """Yield the intersections that a binding criterion does not ask although they have rows.

    If an intersection of some attributes has two groups with enough rows, one of fewer attributes
    has, too: the first one of four attributes stands for all larger ones, and where none of three
    has two such groups none of four has.
    """
    if criterion.is_fixed_reference:
        for one in crossed:
            pair = len(one.parts) == _CROSSED
            if pair and any(map(criterion.covers, one.parts)) and has_two_groups(one):
                yield one, "criteria with a fixed reference are not asked of intersections"
        return
    names = [name for name in table.feature_names if criterion.covers(name)]
    three = [set(one.parts) for one in crossed if len(one.parts) == MOST_CROSSED]
    for some in combinations(names, MOST_CROSSED + 1):
        if not any(parts < set(some) for parts in three):
            continue
        one = Attribute.of(table, some, policy)
        if has_two_groups(one):
            yield one, f"intersections of more than {MOST_CROSSED} attributes are not asked"
            return


def _rows(n: int) -> str:
    """Return how many eligible rows a group has; 0 where no metric could count them."""
    return f"{n:,} eligible row{'' if n == 1 else 's'}" if n else "too few eligible rows"


def notes_of_small(findings: Sequence[QuestionFinding], named: Named) -> Iterator[str]:
    """Name the intersections that were too small for a question that does not bind.

    Of binding questions all groups that were not tested are named.
    """
    small: dict[str, int] = {}
    for one in findings:
        if one.is_intersection and not one.binding:
            for group in one.untested:
                name = f"{named(one.attribute, group.group)} ({one.attribute})"
                counted = [n for n in (group.n_counted, small.get(name, 0)) if n]
                small[name] = min(counted, default=0)
    if small:
        ascending = sorted(small.items(), key=lambda entry: entry[1])
        names = [f"{name}: {_rows(n)}" for name, n in ascending]
        n = len(small)
        name = "small_intersection" if n == 1 else "small_intersections"
        yield sentence(name, n=f"{n:,}", groups=listed(names, _MOST_NAMED))
