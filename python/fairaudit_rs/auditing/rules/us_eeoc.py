"""The four-fifths rule of the Uniform Guidelines (29 CFR 1607.4 D), with significance tests.

The group with the highest rate is known only after looking at the data. So it is not enough to test
each group against it: with equal rates in 12 groups of 40 people, that test finds a "significant"
group in 76 % of data sets. With k groups the highest rate and any other one are one of C(k, 2)
pairs, and p-values are adjusted for all of them (Bonferroni):

    adjusted p = min(1, C(k, 2) p).

Two tests are adjusted in this way: that of equal rates (the pooled z test, or Fisher's exact test
where equal rates expect fewer than 5 people in a cell of the table), and the score test of a true
ratio of 4/5 or more. The data rule such a ratio out where its adjusted p is at most alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ... import arguments
from ...data.groups import group_name
from ...inference.proportions import ratio_interval, ratio_score
from ...inference.pvalues import two_sided_normal_quantile
from ...report.words import p_text
from ...results.verdict import rejects_at
from ..sentences import fill_part, fill_sentence
from .counts import (
    FEW,
    FISHER,
    Counts,
    EqualityTest,
    SelectionCount,
    bonferroni_pvalue,
    check_counts,
    equal_rates_test,
    format_percent,
    highest_rate_group,
    pair_count,
    selection_shortfall,
)

FOUR_FIFTHS = Fraction(4, 5)
#: The four outcomes: whether the ratio is below 4/5, and whether the rates differ significantly
#: after the adjustment for all comparisons.
OUTCOMES = {
    (True, True): "below four fifths, and the rates differ significantly: flag",
    (True, False): "below four fifths, but the rates do not differ significantly: flag by the "
    "ratio alone",
    (False, True): "not below four fifths, but the rates differ significantly: look at the "
    "practical size",
    (False, False): "not below four fifths, and the rates do not differ significantly: no flag",
}


@dataclass(frozen=True, kw_only=True)
class ImpactRatio:
    """The impact ratio of a group to the one with the highest selection rate."""

    group: Any
    reference: Any
    selected: int
    total: int
    reference_total: int
    rate: float
    reference_rate: float
    ratio: float
    #: The interval of the ratio, by the score test, not adjusted.
    interval: tuple[float, float]
    #: Whether the ratio is below 4/5, compared exactly.
    flagged: bool
    #: The pooled z statistic of equal rates (the "two or three standard deviations" of courts).
    z: float
    #: The p-value of equal rates, not adjusted.
    pvalue: float
    #: The p-value of equal rates, adjusted for all comparisons.
    adjusted_pvalue: float
    method: str
    #: The number of pairs of groups that p-values are adjusted for.
    n_comparisons: int
    alpha: float
    #: Whether the rates differ significantly, by the adjusted p-value.
    significant: bool
    words: str
    #: Additional selections that would raise the ratio to 4/5.
    shortfall: int
    #: The confidence that the true ratio is below 4/5, for all comparisons together: one minus the
    #: adjusted p-value of the score test of a ratio of 4/5 or more.
    confidence_below: float
    #: Whether the data rule out a true ratio of 4/5 or more, at a confidence of 1 - alpha.
    rules_out: bool
    reason: str = ""

    def best(self, attribute: str = "") -> str:
        """Return the group with the highest rate, as a sentence names it."""
        people = f"{format_percent(self.reference_rate)} of {self.reference_total:,}"
        return f"{group_name(self.reference, attribute)} ({people})"

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, attribute: str = "") -> str:
        """Return the comparison as a sentence; the attribute is named if the group is a number."""
        name = group_name(self.group, attribute)
        if self.reason:
            return fill_sentence("nobody_selected", group=name, too_few="")
        n_tests = f"{self.n_comparisons:,}"
        return fill_sentence(
            "impact_ratio",
            group=name,
            rate=format_percent(self.rate),
            n=f"{self.total:,}",
            ratio=f"{self.ratio:.3f}",
            best=self.best(attribute),
            words=self.words,
            test=self._test(),
            more=fill_part("more", "more", k=f"{self.shortfall:,}") if self.shortfall else "",
            rules_out="rule" if self.rules_out else "do not rule",
            confidence=f"{100 * (1 - self.alpha):g} % confidence",
            adjusted=fill_part("adjusted", "adjusted", n_tests=n_tests)
            if self.n_comparisons > 1
            else "",
            too_few="",
        )

    def _test(self) -> str:
        """Return the test of equal rates, as a sentence names it."""
        test = f"the {self.method}"
        if self.is_exact:
            test = f"{self.method}, as equal rates expect fewer than {FEW} people in a cell"
        return fill_part(
            "test",
            "test_of_one" if self.n_comparisons == 1 else "test_of_several",
            z=f"{self.z:.2f}",
            p=p_text(self.pvalue),
            method=test,
            adjusted_p=p_text(self.adjusted_pvalue),
            n_tests=f"{self.n_comparisons:,}",
        )

    @property
    def is_exact(self) -> bool:
        """Return whether equal rates were tested by Fisher's exact test."""
        return self.method == FISHER


def impact_ratios(
    counts: Counts,
    *,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    n_comparisons: int | None = None,
) -> list[ImpactRatio]:
    """Return the ratio of each group's selection rate to the highest one.

    Parameters
    ----------
    counts : dict
        For each group, the number of selected people and of applicants.
    alpha : float
        The level of both tests, for all comparisons together.
    confidence_level : float
        The level of intervals, which are not adjusted.
    n_comparisons : int, optional
        Number of comparisons that p-values are adjusted for; None for all pairs of these groups.

    Examples
    --------
    >>> [row] = impact_ratios({"black": (65, 94), "white": (791, 842)})
    >>> print(row)
    black: 69.1 % of 94 selected, 0.736 times the highest rate, that of white (93.9 % of 842): \
below four fifths, and the rates differ significantly: flag. Test of equal rates: z = -8.15, \
p = 3.5e-16 by the pooled z test; 1 comparison. 6 more selections would make it four fifths. The \
data do not rule out a true ratio of 0.80 or more (95 % confidence)
    """
    level = arguments.check(alpha=alpha, confidence_level=confidence_level)
    groups = check_counts(counts)
    n = pair_count(len(groups)) if n_comparisons is None else n_comparisons
    highest_group = highest_rate_group(groups)
    return [
        _compare_with_highest(group, count, highest_group, groups[highest_group], level, n)
        for group, count in groups.items()
        if group != highest_group
    ]


def _compare_with_highest(
    group: Any,
    count: SelectionCount,
    highest_group: Any,
    highest: SelectionCount,
    level: arguments.CheckedArguments,
    n_comparisons: int,
) -> ImpactRatio:
    """Compare a group with the one of the highest rate."""
    has_ratio = highest.selected > 0
    test = equal_rates_test(count, highest) if has_ratio else EqualityTest(math.nan, math.nan, "")
    flagged = count.exact < FOUR_FIFTHS * highest.exact
    adjusted_pvalue = bonferroni_pvalue(test.pvalue, n_comparisons)
    # The score test of a true ratio of 4/5 or more; its statistic falls as the ratio grows.
    score = ratio_score(*count, *highest, float(FOUR_FIFTHS))
    ratio_pvalue = bonferroni_pvalue(score.less, n_comparisons)
    significant = rejects_at(adjusted_pvalue, level.alpha)
    return ImpactRatio(
        group=group,
        reference=highest_group,
        selected=count.selected,
        total=count.total,
        reference_total=highest.total,
        rate=count.rate,
        reference_rate=highest.rate,
        ratio=count.rate / highest.rate if has_ratio else math.nan,
        interval=ratio_interval(
            count.share, highest.share, two_sided_normal_quantile(level.confidence_level)
        ),
        flagged=flagged,
        z=test.z,
        pvalue=test.pvalue,
        adjusted_pvalue=adjusted_pvalue,
        method=test.method,
        n_comparisons=n_comparisons,
        alpha=level.alpha,
        significant=significant,
        words=OUTCOMES[flagged, significant] if has_ratio else "",
        shortfall=selection_shortfall(count, highest, FOUR_FIFTHS),
        confidence_below=1 - ratio_pvalue,
        rules_out=rejects_at(ratio_pvalue, level.alpha),
        reason="" if has_ratio else "nobody is selected in any group",
    )
