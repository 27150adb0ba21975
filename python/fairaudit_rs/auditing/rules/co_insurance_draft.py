"""Gaps in approvals as in Colorado's draft rule on testing in life insurance; informational."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ... import arguments
from ...data.groups import group_name
from ...inference.intervals import Interval
from ...inference.proportions import newcombe_interval
from ...inference.pvalues import two_sided_normal_quantile
from ...results.verdict import rejects_at
from ..sentences import fill_part, fill_sentence
from .counts import Counts, check_counts, equal_rates_test, format_percent, found_in
from .significance import describe_test, differ_significantly

#: Significant gaps of approval rates from this size on are looked into.
FIVE_POINTS = Fraction(5, 100)


@dataclass(frozen=True, kw_only=True)
class ApprovalGap:
    """The comparison of a group's approval rate with that of the reference group."""

    group: Any
    reference: Any
    approved: int
    total: int
    reference_total: int
    rate: float
    reference_rate: float
    #: Above 0 if the reference is approved more often.
    gap: float
    interval: Interval
    pvalue: float
    method: str
    significant: bool
    #: Whether the gap is 5 points or more, compared exactly.
    reaches: bool
    #: Whether the gap is significant and 5 points or more: the draft would look into the variables.
    triggered: bool
    alpha: float
    #: Number of tests; p-values are not adjusted for them.
    n_comparisons: int

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, attribute: str = "") -> str:
        """Return the group as a sentence; bare numbers are named after their attribute."""
        name, other = (group_name(group, attribute) for group in (self.group, self.reference))
        looks = "would look into this" if self.triggered else "would not look into this"
        return fill_sentence(
            "approval_gap",
            group=name,
            rate=format_percent(self.rate),
            n=f"{self.total:,}",
            reference=other,
            reference_rate=format_percent(self.reference_rate),
            reference_n=f"{self.reference_total:,}",
            size=self._size(),
            how=describe_test(self.method, self.pvalue, self.n_comparisons, self.alpha),
            looks=looks,
            too_few="",
        )

    def _size(self) -> str:
        """Return the part of the sentence on the size and significance of the gap."""
        name = "below_five"
        if self.gap < 0:
            name = "in_favour"
        elif self.reaches:
            name = "five_and_significant" if self.significant else "five"
        return fill_part(
            "size",
            name,
            gap=f"{100 * abs(self.gap):.1f}",
            differ_significantly=differ_significantly(self.significant),
        )


def approval_gaps(
    counts: Counts,
    reference: Any,
    *,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    n_comparisons: int | None = None,
) -> list[ApprovalGap]:
    """Return how much less often each group is approved than the reference group.

    Groups and gaps are taken from the data as they are. The draft estimates race from names and
    addresses and adjusts by regression; this function does neither.

    Parameters
    ----------
    counts : dict
        For each group, the number of approved people and of all people.
    reference : group
        The reference group.
    alpha, confidence_level : float
        The level of significance, and that of intervals.
    n_comparisons : int, optional
        Number of tests that the sentences mention beside their p-values, which are not adjusted;
        None for one test per group other than the reference.
    """
    level = arguments.check(alpha=alpha, confidence_level=confidence_level)
    groups = check_counts(counts)
    base = groups[found_in(groups, reference)]
    rows = []
    for group, count in groups.items():
        if group == reference:
            continue
        test = equal_rates_test(count, base)
        significant = rejects_at(test.pvalue, level.alpha)
        gap = base.exact - count.exact
        rows.append(
            ApprovalGap(
                group=group,
                reference=reference,
                approved=count.selected,
                total=count.total,
                reference_total=base.total,
                rate=count.rate,
                reference_rate=base.rate,
                gap=float(gap),
                interval=newcombe_interval(
                    base.share, count.share, two_sided_normal_quantile(level.confidence_level)
                ),
                pvalue=test.pvalue,
                method=test.method,
                significant=significant,
                reaches=gap >= FIVE_POINTS,
                triggered=significant and gap >= FIVE_POINTS,
                alpha=level.alpha,
                n_comparisons=len(groups) - 1 if n_comparisons is None else n_comparisons,
            )
        )
    return rows
