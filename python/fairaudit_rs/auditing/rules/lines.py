"""The sentences about the policy's rule in an audit: its numbers, dates and sources."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...data.groups import group_name
from ...results.words import join_names
from ..sentences import fill_part, fill_sentence
from .nyc_ll144 import RATES, BiasAudit
from .report import AttributeReport, CountRow, RuleReport

if TYPE_CHECKING:
    from ..policy import Policy


def rule_lines(policy: Policy, report: RuleReport | None, published: BiasAudit | None) -> list[str]:
    """Return the sentences about the policy's rule; an empty list without a rule."""
    if report is None:
        return []
    lines = [] if published is None else _published(published, report)
    lines += [
        fill_part(
            "rule_line",
            "rule_line",
            attribute=attribute.attribute,
            without=_without(report),
            line=line,
        )
        for attribute in report.attributes
        for line in _of_attribute(policy, attribute)
    ]
    return [*lines, *rule_facts(policy, report)]


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


def notes_of_own_minimum(policy: Policy, report: RuleReport | None) -> Iterator[str]:
    """Yield a warning for groups below the minimum size, which the rule reports all the same."""
    for attribute in () if report is None else report.attributes:
        groups = {row.group: row.total for row in attribute.rows_of_counts}
        groups |= {row.reference: row.reference_total for row in attribute.rows_of_counts}
        small = [name for name, n in groups.items() if n < policy.floor]
        if small:
            names = join_names([group_name(name, attribute.attribute) for name in small], 10)
            yield fill_sentence(
                "own_minimum",
                attribute=attribute.attribute,
                groups=names,
                has="has" if len(small) == 1 else "have",
                floor=policy.floor,
                rule=policy.rule,
            )


def _without(report: RuleReport) -> str:
    """Return the remark on parts of the design, such as weights, that the rule does not use."""
    return fill_part("without", "without", parts=join_names(report.unused)) if report.unused else ""


def _published(found: BiasAudit, report: RuleReport) -> list[str]:
    """Return the lines of the tables of Local Law 144, one for each category."""
    lines = list(found.head)
    for table in found.tables:
        rate = RATES[table.kind]
        top = table.compared_with
        if top is not None:
            lines.append(
                fill_sentence(
                    "ratios_are_to",
                    by=table.by,
                    without=_without(report),
                    group=table.name_of(top),
                    rate_name=rate,
                    rate=f"{top.rate:.3f}",
                )
            )
        for category in table.categories:
            ratio = "none" if math.isnan(category.impact_ratio) else f"{category.impact_ratio:.3f}"
            both = table.both_ratios(category)
            lines.append(
                fill_sentence(
                    "category",
                    by=table.by,
                    without=_without(report),
                    group=table.name_of(category),
                    n=f"{category.n_applicants:,}",
                    rate_name=rate,
                    rate=f"{category.rate:.3f}",
                    ratio=ratio,
                    two_ratios=fill_part(
                        "two_ratios", "two_ratios", with_small=both[0], without_small=both[1]
                    )
                    if both
                    else "",
                    category_note=fill_part(
                        "category_note", "category_note", reason=category.reason
                    )
                    if category.reason
                    else "",
                )
            )
        if table.small_note:
            lines.append(f"{table.by}: {table.small_note}")
        lines.append(
            fill_sentence(
                "unknown_category",
                by=table.by,
                people="1 applicant" if table.n_unknown == 1 else f"{table.n_unknown:,} applicants",
                same_by=table.by,
                are="is" if table.n_unknown == 1 else "are",
            )
        )
    return lines


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
