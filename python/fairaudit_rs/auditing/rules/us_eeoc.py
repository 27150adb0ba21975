"""The four-fifths rule of the Uniform Guidelines (29 CFR 1607.4 D), with its companions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ... import arguments
from ...data.groups import group_name
from ...inference.proportions import ratio_interval, ratio_score
from ...inference.pvalues import normal_of_level
from ...results.verdict import rejects
from .counts import (
    Counts,
    Equality,
    Selected,
    checked,
    equality,
    highest,
    percent,
    shortfall,
    told,
)

FOUR_FIFTHS = Fraction(4, 5)
#: The four cells: whether the ratio is below 4/5, and whether the rates differ significantly.
CELLS = {
    (True, True): "flag: below four fifths, and significant",
    (True, False): "flag by the ratio; the numbers are too small to be significant",
    (False, True): "not below four fifths, but significant: look at its practical size",
    (False, False): "not below four fifths, and not significant",
}


@dataclass(frozen=True, kw_only=True)
class ImpactRatio:
    """A group against the one with the highest selection rate."""

    group: Any
    reference: Any
    selected: int
    total: int
    rate: float
    reference_rate: float
    ratio: float
    #: Of the ratio, by the score test.
    interval: tuple[float, float]
    #: Whether the ratio is below 4/5, compared as whole numbers.
    flagged: bool
    #: "Two or three standard deviations": of the rates, as if they were one.
    z: float
    pvalue: float
    method: str
    significant: bool
    words: str
    #: Selections that are missing to 4/5.
    shortfall: int
    #: How sure it is that the true ratio is below 4/5, from 0 to 1: one minus the p-value of the
    #: score test that it is not.
    confidence_below: float
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"{group_name(self.group)}: {self.reason}"
        missing = (
            f", {self.shortfall:,} selections missing to four fifths" if self.shortfall else ""
        )
        return (
            f"{group_name(self.group)}: ratio {self.ratio:.3f} to {group_name(self.reference)} "
            f"({percent(self.rate)} of {self.total:,} and {percent(self.reference_rate)}); "
            f"{self.words}{missing}; the true ratio is below four fifths with a confidence of "
            f"{percent(self.confidence_below)}"
        )


def impact_ratios(
    counts: Counts, *, alpha: float = 0.05, confidence_level: float = 0.95
) -> list[ImpactRatio]:
    """Return the ratio of each group's selection rate to the highest one.

    Parameters
    ----------
    counts : dict
        Of each group, how many were selected and how many applied.
    alpha : float
        Level of "significant".
    confidence_level : float
        Of intervals.

    Examples
    --------
    >>> [row] = impact_ratios({"black": (65, 94), "white": (791, 842)})
    >>> print(row)
    black: ratio 0.736 to white (69.1 % of 94 and 93.9 %); flag: below four fifths, and \
significant, 6 selections missing to four fifths; the true ratio is below four fifths with a \
confidence of 90.6 %
    """
    level = arguments.check(alpha=alpha, confidence_level=confidence_level)
    groups = checked(counts)
    best = highest(groups)
    top = groups[best]
    rows = []
    for group, one in groups.items():
        if group == best:
            continue
        rows.append(_against(group, one, best, top, level))
    return rows


def _against(
    group: Any, one: Selected, best: Any, top: Selected, level: arguments.Checked
) -> ImpactRatio:
    """Return a group against the one with the highest rate."""
    measured = top.selected > 0
    test = equality(one, top) if measured else Equality(math.nan, math.nan, "")
    flagged = one.exact < FOUR_FIFTHS * top.exact
    significant = rejects(test.pvalue, level.alpha)
    return ImpactRatio(
        group=group,
        reference=best,
        selected=one.selected,
        total=one.total,
        rate=one.rate,
        reference_rate=top.rate,
        ratio=one.rate / top.rate if measured else math.nan,
        interval=ratio_interval(one.share, top.share, normal_of_level(level.confidence_level)),
        flagged=flagged,
        z=test.z,
        pvalue=test.pvalue,
        method=test.method,
        significant=significant,
        words=CELLS[flagged, significant] if measured else "",
        shortfall=shortfall(one, top, FOUR_FIFTHS),
        confidence_below=1 - ratio_score(*one, *top, float(FOUR_FIFTHS)).less,
        reason="" if measured else "nobody is selected",
    )


def summary(counts: Counts, rows: list[ImpactRatio]) -> str:
    """Return the rule's answer in a sentence; it never says that a selection is in order."""
    groups = checked(counts)
    flagged = [row for row in rows if row.flagged]
    best = highest(groups)
    head = f"highest rate: {told(best, groups[best])}."
    if not flagged:
        return (
            f"{head} No group is below four fifths of it. The rule has no pass: smaller "
            "differences may count."
        )
    return f"{head} {len(flagged)} of {len(rows)} groups below four fifths of it: " + "; ".join(
        f"{group_name(row.group)} {row.ratio:.3f} ({row.words})" for row in flagged
    )
