"""Choose the intersections of attributes that a policy tests, and note those that it skips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from ..data.groups import group_label
from ..data.tables import AuditTable
from ..permutation.minimum_counts import ROWS
from ..report.notes import Note
from ..report.words import join_names
from .criterion import Criterion
from .findings import GroupNamer, QuestionFinding
from .policy import Policy
from .questions import AuditedAttribute, PreparedCriterion, skipped_criterion
from .sentences import fill_note

#: Attributes per intersection: two in informational questions, up to three in binding ones.
_PAIR_SIZE = 2
MAX_CROSSED = 3
#: Maximum number of comparisons of binding intersections; with more, the tests have no power.
MAX_INTERSECTION_COMPARISONS = 2_000
_MAX_NAMED = 5


def intersections_of(table: AuditTable, policy: Policy) -> list[AuditedAttribute]:
    """Return the intersections that a policy may test."""
    if policy.intersections == "skip":
        return []
    most = MAX_CROSSED if policy.intersections == "bind" else _PAIR_SIZE
    names = table.feature_names
    crossed = [
        AuditedAttribute.from_table(table, some, policy)
        for n in range(_PAIR_SIZE, most + 1)
        for some in combinations(names, n)
    ]
    # Intersections of three attributes with fewer than two groups have nothing to compare.
    return [
        attribute
        for attribute in crossed
        if len(attribute.parts) == _PAIR_SIZE or has_two_groups(attribute)
    ]


def limit_intersections(
    prepared_criteria: Sequence[PreparedCriterion],
    table: AuditTable,
    policy: Policy,
    attributes: Sequence[AuditedAttribute],
) -> list[PreparedCriterion]:
    """Return the questions to test, and skipped ones, which prevent a verdict of pass.

    Binding questions about intersections are tested in their order, up to
    `MAX_INTERSECTION_COMPARISONS`
    comparisons; those of three attributes only if two groups can be compared.
    """
    if policy.intersections != "bind":
        return list(prepared_criteria)
    found, n_comparisons = [], 0
    for prepared in prepared_criteria:
        if not (prepared.binding and prepared.attribute.is_intersection):
            found.append(prepared)
            continue
        if not prepared.question.pairs and len(prepared.attribute.parts) > _PAIR_SIZE:
            continue
        n_comparisons += prepared.question.n_comparisons
        if n_comparisons > MAX_INTERSECTION_COMPARISONS:
            n_comparisons -= prepared.question.n_comparisons
            why = (
                f"its {prepared.question.n_comparisons:,} comparisons are beyond the "
                f"{MAX_INTERSECTION_COMPARISONS:,} that are made of intersections"
            )
            prepared = skipped_criterion(prepared.criterion, prepared.attribute, why)
        found.append(prepared)
    crossed = [
        audited_attribute for audited_attribute in attributes if audited_attribute.is_intersection
    ]
    seen = set()
    for criterion in policy.binding:
        if criterion.metric is None:
            continue
        for attribute, why in find_skipped(criterion, table, policy, crossed):
            key = (criterion.metric, criterion.ratio is None, attribute.name)
            if key not in seen:
                found.append(skipped_criterion(criterion, attribute, why))
            seen.add(key)
    return found


def has_two_groups(attribute: AuditedAttribute) -> bool:
    """Return whether two groups of an attribute have enough rows to be compared."""
    sizes = attribute.table.people.n_effective
    known = set(attribute.groups)
    return sum(n >= ROWS for key, n in sizes.items() if group_label(key) in known) > 1


def find_skipped(
    criterion: Criterion, table: AuditTable, policy: Policy, crossed: Sequence[AuditedAttribute]
) -> Iterator[tuple[AuditedAttribute, str]]:
    """Yield the intersections that a binding criterion skips although they have enough rows.

    If an intersection has two groups with enough rows, so does every intersection of a subset of
    its attributes. So it is enough to look for the first intersection of four attributes, and only
    where one of three attributes has two such groups.
    """
    if criterion.is_fixed_reference:
        for attribute in crossed:
            is_pair = len(attribute.parts) == _PAIR_SIZE
            if (
                is_pair
                and any(map(criterion.covers, attribute.parts))
                and has_two_groups(attribute)
            ):
                yield attribute, "criteria with a fixed reference are not asked of intersections"
        return
    names = [name for name in table.feature_names if criterion.covers(name)]
    triples = [set(attribute.parts) for attribute in crossed if len(attribute.parts) == MAX_CROSSED]
    for four in combinations(names, MAX_CROSSED + 1):
        if not any(parts < set(four) for parts in triples):
            continue
        attribute = AuditedAttribute.from_table(table, four, policy)
        if has_two_groups(attribute):
            yield attribute, f"intersections of more than {MAX_CROSSED} attributes are not asked"
            return


def _rows(n: int) -> str:
    """Return the number of eligible rows in words; 0 means that no metric could count them."""
    return f"{n:,} eligible row{'' if n == 1 else 's'}" if n else "too few eligible rows"


def notes_of_small(findings: Sequence[QuestionFinding], named: GroupNamer) -> Iterator[Note]:
    """Yield a note on the intersections that were too small for informational questions.

    Excluded groups of binding questions have a note of their own.
    """
    small: dict[str, int] = {}
    for finding in findings:
        if finding.is_intersection and not finding.binding:
            for group in finding.untested:
                name = f"{named(finding.attribute, group.group)} ({finding.attribute})"
                counted = [n for n in (group.n_counted, small.get(name, 0)) if n]
                small[name] = min(counted, default=0)
    if small:
        ascending = sorted(small.items(), key=lambda entry: entry[1])
        names = [f"{name}: {_rows(n)}" for name, n in ascending]
        n = len(small)
        name = "small_intersection" if n == 1 else "small_intersections"
        yield fill_note(name, n=f"{n:,}", groups=join_names(names, _MAX_NAMED))
