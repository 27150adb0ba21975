"""What a rule says of an audit, line by line: its own numbers beside the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...data.groups import group_name
from .co_insurance_draft import approval_gaps
from .counts import Counts, percent
from .fair_lending import adverse_impact
from .nyc_ll144 import RATES, BiasAudit
from .us_eeoc import impact_ratios

if TYPE_CHECKING:
    from ..findings import BaseRate
    from ..policy import Policy


def rule_lines(
    policy: Policy,
    attributes: Sequence[str],
    rates: Sequence[BaseRate],
    published: BiasAudit | None,
) -> list[str]:
    """Return what the rule of a policy says; nothing where it has none."""
    if policy.rule is None:
        return []
    if published is not None:
        lines = _published(published)
    else:
        lines = [
            f"{attribute}: {line}"
            for attribute in attributes
            for line in _of_attribute(policy, attribute, rates)
        ]
    return [*lines, *rule_facts(policy)]


def rule_facts(policy: Policy) -> list[str]:
    """Return what the lines are of, since when the rule is in force, and what it is not."""
    since = f"in force since {policy.in_force}; " if policy.in_force else ""
    return [
        "counted are people: weights, strata and clusters play no part in these lines",
        f"rule {policy.rule}: {since}looked up {policy.as_of}; {policy.source}",
        policy.status,
        policy.is_not,
    ]


def _of_attribute(policy: Policy, attribute: str, rates: Sequence[BaseRate]) -> list[str]:
    of_groups = [one for one in rates if one.attribute == attribute]
    known = [one for one in of_groups if not policy.is_unknown(one.group)]
    if any(math.isnan(one.selection_rate) for one in known):
        return ["no decisions were given"]
    if len(known) < 2:
        return ["fewer than two groups"]
    counts = {one.group: (round(one.selection_rate * one.n_rows), one.n_rows) for one in known}
    return _told(policy, attribute, counts)


def _published(found: BiasAudit) -> list[str]:
    """Return the tables of Local Law 144, a line for each category."""
    lines = list(found.head)
    for table in found.tables:
        rate = RATES[table.kind]
        for one in table.categories:
            ratio = "none" if math.isnan(one.impact_ratio) else f"{one.impact_ratio:.3f}"
            note = f" ({one.reason})" if one.reason else ""
            lines.append(
                f"{table.by}: {table.name_of(one)}: {one.n_applicants:,} applicants, "
                f"{rate} {one.rate:.3f}, impact ratio {ratio}{note}"
            )
        people = "1 applicant" if table.n_unknown == 1 else f"{table.n_unknown:,} applicants"
        are = "is" if table.n_unknown == 1 else "are"
        lines.append(f"{table.by}: {people} of unknown {table.by} {are} in no line")
    return lines


def _told(policy: Policy, attribute: str, counts: Counts) -> list[str]:
    alpha = policy.alpha
    if policy.rule == "us_eeoc":
        return [str(row) for row in impact_ratios(counts, alpha=alpha)]
    references = [(one.reference, one.ratio) for one in policy.criteria if one.covers(attribute)]
    if policy.rule == "fair_lending":
        lines = []
        for reference, threshold in references:
            assert threshold is not None
            for row in adverse_impact(counts, reference, threshold=threshold, alpha=alpha):
                word = "flagged" if row.flagged else "not flagged"
                missing = f", {row.shortfall:,} approvals missing" if row.shortfall else ""
                lines.append(
                    f"{group_name(row.group, attribute)}: adverse impact ratio {row.ratio:.3f} to "
                    f"{group_name(reference, attribute)} ({percent(row.rate)} of {row.total:,} and "
                    f"{percent(row.reference_rate)}), {word} below {threshold:g}{missing}"
                )
        return lines
    # The draft names no reference: each group goes against the largest.
    largest = max(counts, key=lambda group: counts[group][1])
    return [str(row) for row in approval_gaps(counts, largest, alpha=alpha)]
