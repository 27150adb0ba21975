"""What a rule says of an audit, line by line: its own numbers beside the verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...data.groups import group_name
from .co_insurance_draft import approval_gaps
from .counts import Counts, percent
from .fair_lending import adverse_impact
from .nyc_ll144 import impact_table
from .us_eeoc import impact_ratios

if TYPE_CHECKING:
    from ..policy import Policy
    from ..result import Audit


def rule_lines(audit: Audit) -> list[str]:
    """Return what the rule of the policy says of each attribute; nothing where it has none."""
    if audit.policy.rule is None:
        return []
    lines = []
    for attribute in audit.attributes:
        counts, n_unknown = _counts(audit, attribute)
        if not counts:
            lines.append(f"{attribute}: no decisions were given")
        elif len(counts) < 2:
            lines.append(f"{attribute}: fewer than two groups")
        else:
            told = _told(audit.policy, attribute, counts, n_unknown)
            lines += [f"{attribute}: {line}" for line in told]
    if audit.policy.rule == "nyc_ll144":
        lines.append("the table by sex and race together, which the rule asks for, is not here")
    lines.append("counted are people: weights, strata and clusters play no part in these lines")
    return [*lines, *_facts(audit.policy)]


def _counts(audit: Audit, attribute: str) -> tuple[Counts, int]:
    """Return how many of each known group were selected, and how many people are unknown."""
    rates = [one for one in audit.base_rates if one.attribute == attribute]
    known = [one for one in rates if not audit.policy.is_unknown(one.group)]
    if any(math.isnan(one.selection_rate) for one in known):
        return {}, 0
    counts = {one.group: (round(one.selection_rate * one.n_rows), one.n_rows) for one in known}
    return counts, audit.n_rows - sum(one.n_rows for one in known)


def _told(policy: Policy, attribute: str, counts: Counts, n_unknown: int) -> list[str]:
    alpha = policy.alpha
    if policy.rule == "us_eeoc":
        return [str(row) for row in impact_ratios(counts, alpha=alpha)]
    if policy.rule == "nyc_ll144":
        table = impact_table(counts, by=attribute, n_unknown=n_unknown)
        lines = []
        for one in table.categories:
            ratio = "none" if math.isnan(one.impact_ratio) else f"{one.impact_ratio:.3f}"
            note = f" ({one.reason})" if one.reason else ""
            lines.append(
                f"{group_name(one.category, attribute)}: {one.n_applicants:,} applicants, "
                f"selection rate {one.rate:.3f}, impact ratio {ratio}{note}"
            )
        return [*lines, f"{n_unknown:,} applicants of unknown {attribute} are in no line"]
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


def _facts(policy: Policy) -> list[str]:
    since = f"in force since {policy.in_force}; " if policy.in_force else ""
    return [
        f"rule {policy.rule}: {since}looked up {policy.as_of}; {policy.source}",
        policy.status,
        policy.is_not,
    ]
