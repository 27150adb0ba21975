"""Colorado's draft of testing in life insurance: gaps of approvals, informative only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ... import arguments
from ...data.groups import group_name
from ...inference.intervals import Interval
from ...inference.proportions import newcombe
from ...inference.pvalues import normal_of_level
from ...results.verdict import rejects
from .counts import Counts, checked, equality, found_in, percent

#: Of approval rates: from here on a significant difference is looked into.
FIVE_POINTS = Fraction(5, 100)


@dataclass(frozen=True, kw_only=True)
class ApprovalGap:
    """The approvals of a group against those of a reference."""

    group: Any
    reference: Any
    approved: int
    total: int
    rate: float
    reference_rate: float
    #: Above 0 where the reference is approved more often.
    gap: float
    interval: Interval
    pvalue: float
    method: str
    significant: bool
    #: Significant and of 5 points or more: the draft would look into the variables.
    triggered: bool

    def __str__(self) -> str:
        words = "would be looked into" if self.triggered else "would not be looked into"
        return (
            f"{group_name(self.group)}: approved {percent(self.rate)} of {self.total:,}, "
            f"{group_name(self.reference)} {percent(self.reference_rate)}; by the draft, which is "
            f"not in force, this {words}"
        )


def approval_gaps(
    counts: Counts, reference: Any, *, alpha: float = 0.05, confidence_level: float = 0.95
) -> list[ApprovalGap]:
    """Return how much less often each group is approved than a reference.

    Groups are as given and gaps as seen: the draft estimates race from names and addresses and
    adjusts by regression, which this does not.

    Parameters
    ----------
    counts : dict
        Of each group, how many were approved, of how many.
    reference : group
        The group that others are compared with.
    alpha, confidence_level : float
        Level of "significant", and of intervals.
    """
    level = arguments.check(alpha=alpha, confidence_level=confidence_level)
    groups = checked(counts)
    base = groups[found_in(groups, reference)]
    rows = []
    for group, one in groups.items():
        if group == reference:
            continue
        test = equality(one, base)
        significant = rejects(test.pvalue, level.alpha)
        gap = base.exact - one.exact
        rows.append(
            ApprovalGap(
                group=group,
                reference=reference,
                approved=one.selected,
                total=one.total,
                rate=one.rate,
                reference_rate=base.rate,
                gap=float(gap),
                interval=newcombe(base.share, one.share, normal_of_level(level.confidence_level)),
                pvalue=test.pvalue,
                method=test.method,
                significant=significant,
                triggered=significant and gap >= FIVE_POINTS,
            )
        )
    return rows
