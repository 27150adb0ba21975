"""Rates of two models in the validity atlas: rows of two groups go up, go down, or stay.

The statistic of the library, and what it is made of, is computed here for many tables at once; each
scenario checks that it is that of the library.
"""

import math
import zlib
from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.inference.paired_differences import ChangeCounts, score_statistic

#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 2

AUDITS = 10_000
#: Of each law so many tables are compared with the library.
CHECKED = 20
SIZES = ((20, 2_000), (40, 2_000), (100, 2_000), (40, 40))
LEVELS = (0.05, 0.01, 0.001)
RULES = ("both", "corrected", "score", "Wald")
AUDITS_OF_INTERVALS = 500

#: Shares of rows that change, and how many more of them go up than down.
MOVED = (0.01, 0.05, 0.2, 0.5, 0.98)
MEANS = (0.0, 0.01, 0.05, 0.2, 0.5, 0.98)


def laws():
    """((moved, mean), (moved, mean)) of two groups whose rates change by as much."""
    return [
        ((first, mean), (second, mean))
        for mean in MEANS
        for first in MOVED
        for second in MOVED
        if min(first, second) >= mean
    ]


def trinomial(moved, mean):
    """Probabilities of a row that goes up, goes down, stays."""
    up, down = 0.5 * (moved + mean), 0.5 * (moved - mean)
    return [up, down, 1 - up - down]


def drawn(rng, rows, of_groups, n_audits):
    """(up, down, rows) of each group, in so many audits."""
    return [
        np.c_[rng.multinomial(n, trinomial(*group), n_audits)[:, :2], np.full(n_audits, n)].astype(
            float
        )
        for n, group in zip(rows, of_groups, strict=True)
    ]


# --- the statistic, for many tables at once -----------------------------------------------------


def statistics(first, second):
    """z of the score of D = 0, z corrected for skewness, and Wald's, of columns (up, down, n)."""
    low, high = np.full(len(first), -1.0), np.full(len(first), 1.0)
    for _ in range(56):
        middle = 0.5 * (low + high)
        rising = slope(first, middle) + slope(second, middle) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    middle = 0.5 * (low + high)
    means = [(value[:, 0] - value[:, 1]) / value[:, 2] for value in (first, second)]
    gap = means[0] - means[1]
    (v_1, m_1), (v_2, m_2) = moments(first, middle), moments(second, middle)
    variance = v_1 + v_2
    spread = sum(
        ((value[:, 0] + value[:, 1]) / value[:, 2] - mean**2) / value[:, 2]
        for value, mean in zip((first, second), means, strict=True)
    )
    same = np.abs(gap) <= 1e-15
    with np.errstate(divide="ignore", invalid="ignore"):
        z = gap / np.sqrt(variance)
        skewness = (m_1 - m_2) / variance**1.5
        wald = gap / np.sqrt(np.maximum(spread, 0))
        shifted = z + skewness / 6
        inside = np.maximum(1 + 2 * skewness / 3 * shifted, 0)
        corrected = 2 * shifted / (1 + np.sqrt(inside))
        corrected = np.where(corrected * z <= 0, 0.0, corrected)
    # A score whose variance is rounding has no end.
    still = variance <= 1e-30
    z = np.where(still, np.copysign(np.inf, gap), z)
    corrected = np.where(still, z, corrected)
    return [np.where(same, 0.0, value) for value in (z, corrected, wald)]


def share_down(changes, mean):
    """The most likely share of rows that go down when their mean change is known (Tango)."""
    up, down, n = changes.T
    linear = up + down - mean * (2 * n - up + down)
    root = np.sqrt(np.maximum(linear**2 + 8 * n * down * mean * (1 - mean), 0))
    return np.minimum(np.maximum((linear + root) / (4 * n), np.maximum(0, -mean)), (1 - mean) / 2)


def slope(changes, mean):
    """The derivative of the log-likelihood of a mean change, the rest at its best."""
    up, down, n = changes.T
    same, q = n - up - down, share_down(changes, mean)
    found = ratio(up, q + mean) - ratio(same, 1 - 2 * q - mean)
    falling = (up == 0) & (q + mean <= 1e-15)
    found = np.where(falling, ratio(same, 1 + mean) - ratio(down, -mean), found)
    return np.where(same == 0, ratio(up, 1 + mean) - ratio(down, 1 - mean), found)


def ratio(count, of):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count == 0, 0.0, np.where(of > 0, count / of, np.inf))


def moments(changes, mean):
    """Second and third central moments of the mean change, with the shares at their best."""
    n, q = changes[:, 2], share_down(changes, mean)
    moved = 2 * q + mean
    return (moved - mean**2) / n, (mean - 3 * mean * moved + 2 * mean**3) / n**2


def by_rule(z, corrected, wald):
    """The statistic of each rule; ours is the smaller of two."""
    both = np.where(np.abs(z) < np.abs(corrected), z, corrected)
    return dict(zip(RULES, (both, corrected, z, wald), strict=True))


def check(first, second, both):
    """Stop when the statistics are not those of the library."""
    for value, other, mine in zip(first.tolist(), second.tolist(), both.tolist(), strict=True):
        theirs = score_statistic(ChangeCounts(*value), ChangeCounts(*other), 0.0).nearer
        if not math.isclose(mine, theirs, rel_tol=1e-6, abs_tol=1e-9):
            raise AssertionError(f"{value}, {other}: {mine} here, {theirs} in the library")


# --- what is measured ---------------------------------------------------------------------------


@dataclass(frozen=True)
class EqualChanges:
    """Two groups whose rates change by as much: D = 0."""

    law: tuple
    rows: tuple[int, int]

    @property
    def n(self):
        return 3

    @property
    def key(self):
        return f"{VERSION}:rates:{self.law}:{self.rows}:{AUDITS}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        first, second = drawn(rng, self.rows, self.law, AUDITS)
        found = by_rule(*statistics(first, second))
        check(first[:CHECKED], second[:CHECKED], found["both"][:CHECKED])
        counts = {
            rule: [
                [int((side * z >= stats.norm.isf(level / 2)).sum()) for side in (-1, 1)]
                for level in LEVELS
            ]
            for rule, z in found.items()
        }
        return {"key": self.key, "audits": AUDITS, "counts": counts}


@dataclass(frozen=True)
class AsSamplesOfTheirOwn:
    """Models that decide nine of ten rows alike, taken for samples of their own.

    Half of the rows are selected by the first model; of the first group so many more by the second.
    """

    change: float
    rows = (100, 2_000)

    @property
    def n(self):
        return 3

    @property
    def key(self):
        return f"{VERSION}:apart:{self.change:g}:{AUDITS}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        first, second = drawn(rng, self.rows, ((0.1, self.change), (0.1, 0.0)), AUDITS)
        both = by_rule(*statistics(first, second))["both"]
        gap = variance = 0.0
        for sign, (up, down, n) in ((1, first.T), (-1, second.T)):
            gap = gap + sign * (up - down) / n
            # Of the rows that are not decided differently a half is selected by both.
            kept = rng.binomial((n - up - down).astype(int), 0.5)
            for hits in (kept + down, kept + up):
                variance = variance + hits / n * (1 - hits / n) / n
        apart = gap / np.sqrt(variance)
        limit = stats.norm.isf(0.025)
        counts = {
            "both": int((np.abs(both) >= limit).sum()),
            "apart": int((np.abs(apart) >= limit).sum()),
        }
        return {"key": self.key, "audits": AUDITS, "counts": counts}


@dataclass(frozen=True)
class Covered:
    """Coverage of the intervals of `fa.compare_models`: selection rates, 40 + 40 rows."""

    name: str
    #: Of the first group less the second, whose rate is 0.5 with both models.
    gaps: tuple[float, float]
    rows = (40, 40)

    @property
    def n(self):
        return 2

    @property
    def key(self):
        return f"{VERSION}:covered:{self.gaps}:{AUDITS_OF_INTERVALS}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        group = np.repeat(["a", "b"], self.rows)
        rates = [np.where(group == "a", 0.5 + gap, 0.5) for gap in self.gaps]
        change = self.gaps[1] - self.gaps[0]
        size = abs(self.gaps[1]) - abs(self.gaps[0])
        counts = Counter(dict.fromkeys(("change", "size"), 0))
        for _ in range(AUDITS_OF_INTERVALS):
            chance = rng.random(len(group))
            # A fifth of the rows is decided anew by the second model.
            again = np.where(rng.random(len(group)) < 0.2, rng.random(len(group)), chance)
            result = fa.compare_models(
                first=(chance < rates[0]).astype(int),
                second=(again < rates[1]).astype(int),
                sensitive_features=group,
                metric="selection_rate",
            )
            [pair] = result.comparisons
            counts["change"] += pair.change_interval[0] <= change <= pair.change_interval[1]
            counts["size"] += pair.confidence_interval[0] <= size <= pair.confidence_interval[1]
        counts = {rule: int(count) for rule, count in counts.items()}
        return {"key": self.key, "audits": AUDITS_OF_INTERVALS, "counts": counts}


def scenarios():
    return [
        *(EqualChanges(law, rows) for rows in SIZES for law in laws()),
        *(AsSamplesOfTheirOwn(change) for change in (0.0, 0.08)),
        Covered("halves", (-0.4, -0.2)),
        Covered("none with either", (0.0, 0.0)),
        Covered("turns", (-0.2, 0.2)),
        Covered("goes away", (-0.3, 0.0)),
    ]
