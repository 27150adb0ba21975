"""The sentences of a rule in an audit: its own numbers beside the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...data.groups import group_name
from ...results.words import listed
from .nyc_ll144 import RATES, BiasAudit
from .report import AttributeReport, CountRow, RuleReport

if TYPE_CHECKING:
    from ..policy import Policy


def rule_lines(policy: Policy, report: RuleReport | None, published: BiasAudit | None) -> list[str]:
    """Return the sentences of the rule of a policy; an empty list where it has none."""
    if report is None:
        return []
    lines = [] if published is None else _published(published, report)
    lines += [
        f"{one.attribute}{_without(report)}: {line}"
        for one in report.attributes
        for line in _of_attribute(policy, one)
    ]
    return [*lines, *rule_facts(policy, report)]


def rule_facts(policy: Policy, report: RuleReport) -> list[str]:
    """Return how the lines count, since when the rule is in force, and what it is not."""
    since = f"in force since {policy.in_force}; " if policy.in_force else ""
    unused = f"; they do not use the {listed(report.unused)}" if report.unused else ""
    return [
        f"these lines count rows, each one as a person{unused}",
        f"rule {policy.rule}: {since}looked up {policy.as_of}; {policy.source}",
        policy.status,
        policy.is_not,
    ]


def own_minimum(policy: Policy, report: RuleReport | None) -> Iterator[str]:
    """Warn that groups without a verdict are in the lines of a rule that has no minimum size."""
    for one in () if report is None else report.attributes:
        groups = {row.group: row.total for row in one.rows_of_counts}
        groups |= {row.reference: row.reference_total for row in one.rows_of_counts}
        small = [name for name, n in groups.items() if n < policy.floor]
        if small:
            names = listed([group_name(name, one.attribute) for name in small], 10)
            yield (
                f"{one.attribute}: {names} {'has' if len(small) == 1 else 'have'} fewer than "
                f"{policy.floor} rows and no verdict here. This minimum is our own: "
                f"{policy.rule} has none, and its own lines below are about all groups"
            )


def _without(report: RuleReport) -> str:
    """Return what stands in each line that counts otherwise than the verdict."""
    return f" (rows, without the {listed(report.unused)})" if report.unused else ""


def _published(found: BiasAudit, report: RuleReport) -> list[str]:
    """Return the tables of Local Law 144, a line for each category."""
    lines = list(found.head)
    for table in found.tables:
        rate = RATES[table.kind]
        top = table.compared_with
        if top is not None:
            lines.append(
                f"{table.by}{_without(report)}: impact ratios are to {table.name_of(top)}, "
                f"{rate} {top.rate:.3f}"
            )
        for one in table.categories:
            ratio = "none" if math.isnan(one.impact_ratio) else f"{one.impact_ratio:.3f}"
            note = f" ({one.reason})" if one.reason else ""
            both = table.both_ratios(one)
            if both:
                note = f"; with categories below 2 % {both[0]}, without them {both[1]}{note}"
            lines.append(
                f"{table.by}{_without(report)}: {table.name_of(one)}: {one.n_applicants:,} "
                f"applicants, {rate} {one.rate:.3f}, impact ratio {ratio}{note}"
            )
        if table.small_note:
            lines.append(f"{table.by}: {table.small_note}")
        people = "1 applicant" if table.n_unknown == 1 else f"{table.n_unknown:,} applicants"
        are = "is" if table.n_unknown == 1 else "are"
        lines.append(f"{table.by}: {people} of unknown {table.by} {are} in no line")
    return lines


def _of_attribute(policy: Policy, one: AttributeReport) -> Iterator[str]:
    for best in one.impact_ratios[:1]:
        if not best.reason:
            yield (
                f"{best.best(one.attribute)} has the highest rate: the others are compared with it"
            )
    for row in one.rows_of_counts:
        yield f"{row.in_words(one.attribute)}{_below_minimum(policy, one.attribute, row)}"
    yield from (row.in_words(one.attribute) for row in one.mean_differences)
    yield from one.missing


def _below_minimum(policy: Policy, attribute: str, row: CountRow) -> str:
    """Return which of two groups have no verdict, though the rule has a line for them."""
    small = [
        f"{group_name(name, attribute)} has {n:,} rows"
        for name, n in ((row.group, row.total), (row.reference, row.reference_total))
        if n < policy.floor
    ]
    if not small:
        return ""
    return (
        f". {' and '.join(small)}, below the {policy.floor} that this audit needs for a verdict; "
        f"{policy.rule} has no such minimum"
    )
