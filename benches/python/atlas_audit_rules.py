"""The lines of the four-fifths rule where all groups are equal, in the validity atlas.

The highest rate is known only after looking at the data. Without an adjustment for all pairs of
groups, its test and its confidence are wrong far more often than they say.
"""

import zlib
from dataclasses import dataclass

import numpy as np

from atlas_tools import LEVELS, counted
from fairaudit_rs.auditing.rules.us_eeoc import impact_ratios
from fairaudit_rs.inference.proportions import ratio_score

#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 2

AUDITS = 2_000


@dataclass(frozen=True)
class EqualGroups:
    """Audits of groups of one size and one selection rate.

    Counted is how many have a group with a significant flag, and how many have one of which the
    data rule out a true ratio of 4/5 or more; both also without the adjustment, which is the broken
    variant.
    """

    n_groups: int
    rows: int
    rate: float
    counted = ("flag", "ruled out", "unadjusted flag", "unadjusted confidence")

    @property
    def n(self):
        return self.n_groups * self.rows

    @property
    def audits(self):
        """More with few groups, where the rule without an adjustment errs little above 5 %."""
        return 6 * AUDITS if self.n_groups < 8 else AUDITS

    @property
    def key(self):
        return f"{VERSION}:rules:{self.n_groups}:{self.rows}:{self.rate}:{self.audits}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        drawn = rng.binomial(self.rows, self.rate, (self.audits, self.n_groups)).tolist()
        audits = (self.audit(dict(enumerate(selected))) for selected in drawn)
        return {"key": self.key, "audits": self.audits, "counts": counted(audits, LEVELS)}

    def audit(self, selected):
        counts = {group: (x, self.rows) for group, x in selected.items()}
        rows = impact_ratios(counts)
        flagged = [row for row in rows if row.flagged]
        alone = [
            ratio_score(row.selected, row.total, selected[row.reference], self.rows, 0.8).less
            for row in rows
        ]
        return {
            "flag": min((row.adjusted_pvalue for row in flagged), default=1.0),
            "ruled out": min(1 - row.confidence_below for row in rows),
            "unadjusted flag": min((row.pvalue for row in flagged), default=1.0),
            "unadjusted confidence": min(alone),
        }


def scenarios():
    """The designs of the second audit, section 1.7."""
    designs = [(5, 60, 0.4), (8, 60, 0.4), (8, 200, 0.2), (12, 40, 0.5)]
    return [EqualGroups(*design) for design in designs]


def table(of, share):
    """The lines of the page; `share` writes a count of audits."""
    yield "### The four-fifths rule where all groups are equal"
    yield ""
    yield (
        f"The lines of `us_eeoc` in {AUDITS:,} audits of groups of one size and one rate (of few "
        f"groups {6 * AUDITS:,}). "
        "**Flag**: audits with a group below four fifths that differs significantly; **ruled "
        "out**: audits in which the data rule out a true ratio of 0.8 or more of some group, at "
        "that confidence. Both are errors. Beside them the same without the adjustment for all "
        "pairs of groups."
    )
    yield ""
    yield (
        "| groups | people each | rate | flag, % | ruled out, % | unadjusted flag, % | "
        "unadjusted confidence, % |"
    )
    yield "|---|---|---|---|---|---|---|"
    for value, entry in of(EqualGroups):
        shares = [share(entry["counts"][rule], entry["audits"]) for rule in value.counted]
        yield f"| {value.n_groups} | {value.rows} | {value.rate:g} | {' | '.join(shares)} |"
    yield ""
