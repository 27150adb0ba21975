"""The sentences about the policy's rule in an audit: its numbers, dates and sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...data.groups import group_name
from ...report.notes import Note
from ...report.words import join_names
from ..sentences import fill_note, fill_part, fill_sentence
from .nyc_ll144 import without_parts
from .report import AttributeReport, CountRow, RuleReport

if TYPE_CHECKING:
    from ..policy import Policy


def attribute_lines(policy: Policy, report: RuleReport) -> list[str]:
    """Return the sentences about the numbers of the rule, by attribute."""
    return [
        fill_part(
            "rule_line",
            "rule_line",
            attribute=attribute.attribute,
            without=without_parts(report.unused),
            line=line,
        )
        for attribute in report.attributes
        for line in _of_attribute(policy, attribute)
    ]


def rule_facts(policy: Policy, report: RuleReport) -> list[str]:
    """Return how the numbers count rows, since when the rule is in force, and what it is not."""
    since = fill_part("since", "since", date=policy.in_force) if policy.in_force else ""
    unused = fill_part("unused", "unused", parts=join_names(report.unused)) if report.unused else ""
    return [
        fill_sentence("rule_counts", unused=unused),
        fill_sentence(
            "rule_source",
            rule=policy.rule,
            since=since,
            as_of=policy.as_of,
            source=policy.source,
        ),
        policy.status,
        policy.is_not,
    ]


def notes_of_own_minimum(policy: Policy, report: RuleReport | None) -> Iterator[Note]:
    """Yield a warning for groups below the minimum size, which the rule reports all the same."""
    for attribute in () if report is None else report.attributes:
        groups = {row.group: row.total for row in attribute.rows_of_counts}
        groups |= {row.reference: row.reference_total for row in attribute.rows_of_counts}
        small = [name for name, n in groups.items() if n < policy.floor]
        if small:
            names = join_names([group_name(name, attribute.attribute) for name in small], 10)
            yield fill_note(
                "own_minimum",
                scope=attribute.attribute,
                attribute=attribute.attribute,
                groups=names,
                has="has" if len(small) == 1 else "have",
                floor=policy.floor,
                rule=policy.rule,
            )


def _of_attribute(policy: Policy, report: AttributeReport) -> Iterator[str]:
    for best in report.impact_ratios[:1]:
        if not best.reason:
            yield fill_sentence("highest_rate", best=best.best(report.attribute))
    for row in report.rows_of_counts:
        yield f"{row.in_words(report.attribute)}{_below_minimum(policy, report.attribute, row)}"
    yield from (row.in_words(report.attribute) for row in report.mean_differences)
    yield from report.missing


def _below_minimum(policy: Policy, attribute: str, row: CountRow) -> str:
    """Return the remark on groups below the minimum size, which have no verdict."""
    small = [
        f"{group_name(name, attribute)} has {n:,} rows"
        for name, n in ((row.group, row.total), (row.reference, row.reference_total))
        if n < policy.floor
    ]
    if not small:
        return ""
    groups = " and ".join(small)
    return fill_part("too_few", "too_few", groups=groups, floor=policy.floor, rule=policy.rule)
