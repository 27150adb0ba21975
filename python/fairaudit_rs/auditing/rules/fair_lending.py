"""Adverse impact ratios and standardized mean differences, as lenders compute them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from ... import arguments
from ...data.groups import group_name
from ...errors import ArgumentTypeError, DataError
from ...inference.proportions import ratio_interval
from ...inference.pvalues import standardize_gap, t_upper_tail, two_sided_normal_quantile
from ...report.words import number
from ...results.verdict import rejects_at
from ..sentences import fill_part, fill_sentence
from .counts import (
    Counts,
    check_counts,
    equal_rates_test,
    format_percent,
    found_in,
    selection_shortfall,
)
from .significance import describe_test, differ_significantly

#: With fewer people than this in both groups, Fisher's exact test is used, else chi-squared.
FISHER_BELOW = 1_000
Denominator = Literal["population", "pooled"]
_SHARE = "a number strictly between 0 and 1, such as 0.8"


@dataclass(frozen=True, kw_only=True)
class AdverseImpact:
    """The adverse impact ratio of a group to a fixed reference group."""

    group: Any
    reference: Any
    favourable: int
    total: int
    reference_total: int
    rate: float
    reference_rate: float
    #: The favourable share over that of the reference; NaN if the latter is 0.
    ratio: float
    interval: tuple[float, float]
    #: Share of the reference minus share of the group: above 0 is to the group's disadvantage.
    difference: float
    odds_ratio: float
    pvalue: float
    method: str
    significant: bool
    #: Whether the ratio is below the threshold, compared exactly.
    is_low: bool
    #: Whether the ratio is low, significant, and the difference above ``least_difference``.
    flagged: bool
    #: Additional favourable decisions that would give the group the rate of the reference.
    shortfall: int
    threshold: float
    least_difference: float
    alpha: float
    #: Number of tests; p-values are not adjusted for them.
    n_comparisons: int

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, attribute: str = "") -> str:
        """Return the group as a sentence; bare numbers are named after their attribute."""
        name, other = (group_name(group, attribute) for group in (self.group, self.reference))
        return fill_sentence(
            "no_adverse_impact" if math.isnan(self.ratio) else "adverse_impact",
            group=name,
            rate=format_percent(self.rate),
            n=f"{self.total:,}",
            reference=other,
            reference_rate=format_percent(self.reference_rate),
            reference_n=f"{self.reference_total:,}",
            ratio=f"{self.ratio:.3f}",
            flagged="Flagged" if self.flagged else "Not flagged",
            why=self._why(name, other),
            favourable_more=fill_part("favourable_more", "favourable_more", k=f"{self.shortfall:,}")
            if self.shortfall
            else "",
            too_few="",
        )

    def _why(self, name: str, other: str) -> str:
        """Return why a group is flagged or not."""
        if self.flagged:
            why = "flagged"
        elif self.difference < 0:
            why = "favoured"
        elif not self.is_low:
            why = "not_low"
        else:
            why = "small_difference" if self.significant else "not_significant"
        return fill_part(
            "why",
            why,
            limit=f"{self.threshold:g}",
            group=name,
            reference=other,
            gap=f"{100 * self.difference:.1f}",
            least=f"{100 * self.least_difference:g}",
            differ_significantly=differ_significantly(self.significant),
            how=describe_test(self.method, self.pvalue, self.n_comparisons, self.alpha),
        )


def adverse_impact(
    counts: Counts,
    reference: Any,
    *,
    threshold: float,
    least_difference: float = 0.0,
    fisher_below: int = FISHER_BELOW,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    n_comparisons: int | None = None,
) -> list[AdverseImpact]:
    """Return the adverse impact ratio of every group.

    Parameters
    ----------
    counts : dict
        For each group, the number of favourable decisions and of people.
    reference : group
        The reference group, chosen before the data are seen, never "the best".
    threshold : float
        The ratio below which a group is flagged; no regulation has one, 0.8 and 0.9 are customary.
    least_difference : float
        A group is flagged only if its difference of shares is larger than this too.
    fisher_below : int
        With fewer people than this in both groups together, Fisher's exact test is used; else the
        chi-squared test without a correction.
    alpha, confidence_level : float
        The level of significance, and that of intervals.
    n_comparisons : int, optional
        Number of tests that the sentences mention beside their p-values, which are not adjusted;
        None for one test per group other than the reference.
    """
    level = arguments.check(alpha=alpha, confidence_level=confidence_level)
    limit = arguments.number("threshold of the ratio", threshold, _SHARE, lambda r: 0 < r < 1)
    least = arguments.at_least_0("least_difference", least_difference)
    below = arguments.count("fisher_below", fisher_below, 0, 10_000)
    groups = check_counts(counts)
    base = groups[found_in(groups, reference)]
    z = two_sided_normal_quantile(level.confidence_level)
    rows = []
    for group, count in groups.items():
        if group == reference:
            continue
        test = equal_rates_test(count, base, below)
        significant = rejects_at(test.pvalue, level.alpha)
        # The threshold as a decimal: 0.8 is exactly four fifths, not the nearest binary number.
        is_low = count.exact < Fraction(str(limit)) * base.exact
        difference = base.exact - count.exact
        rows.append(
            AdverseImpact(
                group=group,
                reference=reference,
                favourable=count.selected,
                total=count.total,
                reference_total=base.total,
                rate=count.rate,
                reference_rate=base.rate,
                ratio=count.rate / base.rate if base.selected else math.nan,
                interval=ratio_interval(count.share, base.share, z),
                difference=float(difference),
                odds_ratio=_odds_ratio(*count, *base),
                pvalue=test.pvalue,
                method=test.method,
                significant=significant,
                is_low=is_low,
                flagged=is_low and significant and difference > Fraction(str(least)),
                shortfall=selection_shortfall(count, base, Fraction(1)),
                threshold=limit,
                least_difference=least,
                alpha=level.alpha,
                n_comparisons=len(groups) - 1 if n_comparisons is None else n_comparisons,
            )
        )
    return rows


def _odds_ratio(x: int, n: int, y: int, m: int) -> float:
    """Return the odds ratio of the group to the reference; NaN if it is 0 / 0."""
    above, below = x * (m - y), y * (n - x)
    return above / below if below else (math.inf if above else math.nan)


# -- means of scores ---------------------------------------------------------------------------


class ScoreMoments(NamedTuple):
    """Number of scores in a group, their mean, and the sum of squares about it."""

    n: int
    mean: float
    squares: float


@dataclass(frozen=True, kw_only=True)
class MeanDifference:
    """The standardized difference of mean scores between a group and a fixed reference group."""

    group: Any
    reference: Any
    n: int
    reference_n: int
    mean: float
    reference_mean: float
    difference: float
    smd: float
    #: The standard deviation by which the difference is divided: of all people, or pooled within
    #: the two groups.
    denominator: Denominator
    higher_is_favourable: bool
    t: float
    #: The p-value of equal means, by Welch's t test; not adjusted.
    pvalue: float
    method: str
    significant: bool
    #: Whether the difference is to the group's disadvantage, beyond the threshold and significant;
    #: None without a threshold.
    flagged: bool | None
    threshold: float | None
    alpha: float
    #: Number of tests; p-values are not adjusted for them.
    n_comparisons: int

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, attribute: str = "") -> str:
        """Return the group as a sentence; bare numbers are named after their attribute."""
        name, other = (group_name(group, attribute) for group in (self.group, self.reference))
        spread = "all people" if self.denominator == "population" else "the two groups"
        side = ""
        if self.significant:
            better = (self.difference > 0) is self.higher_is_favourable
            side = fill_part("side", "advantage" if better else "disadvantage", group=name)
        flag = "flagged_means" if self.flagged else "means_not_flagged"
        flag = "nothing_flagged" if self.flagged is None else flag
        limit = "" if self.threshold is None else f"{self.threshold:g}"
        return fill_sentence(
            "mean_difference",
            group=name,
            mean=number(self.mean),
            n=f"{self.n:,}",
            reference=other,
            reference_mean=number(self.reference_mean),
            reference_n=f"{self.reference_n:,}",
            smd=f"{self.smd:.3f}",
            spread=spread,
            differ_significantly=differ_significantly(self.significant),
            side=side,
            how=describe_test(self.method, self.pvalue, self.n_comparisons, self.alpha),
            flag_of_means=fill_part("flag_of_means", flag, limit=limit),
        )


def standardized_differences(
    moments: Mapping[Any, tuple[int, float, float]],
    reference: Any,
    *,
    threshold: float | None = None,
    denominator: Denominator = "population",
    higher_is_favourable: bool = True,
    alpha: float = 0.05,
    n_comparisons: int | None = None,
) -> list[MeanDifference]:
    """Return the standardized mean difference of every group.

    Parameters
    ----------
    moments : dict
        For each group: number of people, mean, and sum of squares about the mean.
    reference : group
        The reference group, chosen before the data are seen.
    threshold : float, optional
        The size from which a difference to the group's disadvantage is flagged where it is
        significant; 0.3 is customary, and no regulation has one.
    denominator : {"population", "pooled"}
        The standard deviation of all people, or that within the two groups.
    higher_is_favourable : bool
        Whether a high score is good for people.
    alpha : float
        The level of Welch's t test.
    n_comparisons : int, optional
        As in `adverse_impact`.
    """
    level = arguments.check(alpha=alpha)
    arguments.choice("denominator", denominator, ("population", "pooled"))
    favourable = arguments.flag("higher_is_favourable", higher_is_favourable)
    limit = arguments.optional("threshold of the difference", threshold, arguments.positive)
    groups = _checked_moments(moments)
    if reference not in groups:
        names = ", ".join(map(repr, groups))
        raise DataError(
            f"reference is {reference!r}, which is not a group; accepted: {names}",
            argument="reference",
        )
    base = groups[reference]
    whole = _pooled_moments(groups)
    rows = []
    for group, score_moments in groups.items():
        if group == reference:
            continue
        gap = score_moments.mean - base.mean
        if denominator == "population":
            spread = math.sqrt(whole.squares / (whole.n - 1))
        else:
            spread = math.sqrt(
                (score_moments.squares + base.squares) / (score_moments.n + base.n - 2)
            )
        t, pvalue = _welch(score_moments, base)
        significant = rejects_at(pvalue, level.alpha)
        smd = standardize_gap(gap, spread)
        against = -smd if favourable else smd
        rows.append(
            MeanDifference(
                group=group,
                reference=reference,
                n=score_moments.n,
                reference_n=base.n,
                mean=score_moments.mean,
                reference_mean=base.mean,
                difference=gap,
                smd=smd,
                denominator=denominator,
                higher_is_favourable=favourable,
                t=t,
                pvalue=pvalue,
                method="Welch's t test",
                significant=significant,
                flagged=None if limit is None else against >= limit and significant,
                threshold=limit,
                alpha=level.alpha,
                n_comparisons=len(groups) - 1 if n_comparisons is None else n_comparisons,
            )
        )
    return rows


def _checked_moments(moments: object) -> dict[Any, ScoreMoments]:
    if not isinstance(moments, Mapping) or len(moments) < 2:
        raise ArgumentTypeError(
            f"moments is {moments!r}; accepted: (n, mean, squares) of two or more groups",
            argument="moments",
        )
    found = {}
    for group, (n, mean, squares) in moments.items():
        found[group] = ScoreMoments(
            arguments.count(f"n of {group!r}", n, 2, 10**15),
            arguments.finite(f"mean of {group!r}", mean),
            arguments.at_least_0(f"squares of {group!r}", squares),
        )
    return found


def _pooled_moments(groups: Mapping[Any, ScoreMoments]) -> ScoreMoments:
    """Return the moments of all people."""
    n = sum(group.n for group in groups.values())
    mean = math.fsum(group.n * group.mean for group in groups.values()) / n
    squares = math.fsum(
        group.squares + group.n * (group.mean - mean) ** 2 for group in groups.values()
    )
    return ScoreMoments(n, mean, squares)


def _welch(first: ScoreMoments, second: ScoreMoments) -> tuple[float, float]:
    """Return t and the two-sided p-value of equal means, whatever the variances."""
    parts = [each.squares / (each.n - 1) / each.n for each in (first, second)]
    variance = sum(parts)
    t = standardize_gap(first.mean - second.mean, math.sqrt(variance))
    if not variance:
        # Without variance, any difference of means is certain.
        return t, 0.0 if t else 1.0
    df = variance**2 / sum(
        v**2 / (each.n - 1) for v, each in zip(parts, (first, second), strict=True)
    )
    return t, min(2 * t_upper_tail(abs(t), df), 1.0)
