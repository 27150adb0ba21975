"""Adverse impact ratios and standardized mean differences, as lenders compute them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from ... import arguments
from ...errors import ArgumentTypeError, DataError
from ...inference.proportions import ratio_interval
from ...inference.pvalues import normal_of_level, standardized, t_upper_tail
from ...results.verdict import rejects
from .counts import Counts, checked, equality, found_in, shortfall

#: Below so many people in both groups Fisher's exact test is taken, else chi-squared.
FISHER_BELOW = 1_000
Denominator = Literal["population", "pooled"]
_SHARE = "a number strictly between 0 and 1, such as 0.8"


@dataclass(frozen=True, kw_only=True)
class AdverseImpact:
    """A group against a fixed reference."""

    group: Any
    reference: Any
    favourable: int
    total: int
    rate: float
    reference_rate: float
    #: The favourable share over that of the reference; NaN where nobody of the reference has it.
    ratio: float
    interval: tuple[float, float]
    #: Of the shares, the reference first: above 0 is to the group's disadvantage.
    difference: float
    odds_ratio: float
    pvalue: float
    method: str
    significant: bool
    #: Below the threshold, significant, and with a difference above the one that counts.
    flagged: bool
    #: Favourable decisions that are missing to the rate of the reference.
    shortfall: int


def adverse_impact(
    counts: Counts,
    reference: Any,
    *,
    threshold: float,
    least_difference: float = 0.0,
    fisher_below: int = FISHER_BELOW,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
) -> list[AdverseImpact]:
    """Return the adverse impact ratio of every group.

    Parameters
    ----------
    counts : dict
        Of each group, how many had the favourable decision, of how many.
    reference : group
        Chosen beforehand, never "the best".
    threshold : float
        The ratio below which a group is flagged; no regulation has one, 0.8 and 0.9 are customary.
    least_difference : float
        The difference of shares that must be exceeded besides.
    fisher_below : int
        People of both groups together below which Fisher's exact test is taken; from there on
        chi-squared without a correction.
    alpha, confidence_level : float
        Level of "significant", and of intervals.
    """
    level = arguments.check(alpha=alpha, confidence_level=confidence_level)
    limit = arguments.number("threshold of the ratio", threshold, _SHARE, lambda r: 0 < r < 1)
    least = arguments.at_least_0("least_difference", least_difference)
    below = arguments.count("fisher_below", fisher_below, 0, 10_000)
    groups = checked(counts)
    base = groups[found_in(groups, reference)]
    z = normal_of_level(level.confidence_level)
    rows = []
    for group, one in groups.items():
        if group == reference:
            continue
        test = equality(one, base, below)
        significant = rejects(test.pvalue, level.alpha)
        # As it is written: 0.8 is four fifths and not the nearest binary number.
        is_low = one.exact < Fraction(str(limit)) * base.exact
        difference = base.exact - one.exact
        rows.append(
            AdverseImpact(
                group=group,
                reference=reference,
                favourable=one.selected,
                total=one.total,
                rate=one.rate,
                reference_rate=base.rate,
                ratio=one.rate / base.rate if base.selected else math.nan,
                interval=ratio_interval(one.share, base.share, z),
                difference=float(difference),
                odds_ratio=_odds_ratio(*one, *base),
                pvalue=test.pvalue,
                method=test.method,
                significant=significant,
                flagged=is_low and significant and difference > Fraction(str(least)),
                shortfall=shortfall(one, base, Fraction(1)),
            )
        )
    return rows


def _odds_ratio(x: int, n: int, y: int, m: int) -> float:
    """Return the odds of the group over those of the reference; NaN where both are without end."""
    above, below = x * (m - y), y * (n - x)
    return above / below if below else (math.inf if above else math.nan)


# -- means of scores ---------------------------------------------------------------------------


class Moments(NamedTuple):
    """Scores of a group: how many, their mean, and the sum of squares about it."""

    n: int
    mean: float
    squares: float


@dataclass(frozen=True, kw_only=True)
class MeanDifference:
    """The mean score of a group against that of a fixed reference, in standard deviations."""

    group: Any
    reference: Any
    n: int
    mean: float
    reference_mean: float
    difference: float
    smd: float
    t: float
    pvalue: float
    significant: bool
    #: Beyond the threshold to the group's disadvantage, and significant; None without a threshold.
    flagged: bool | None


def standardized_differences(
    moments: Mapping[Any, tuple[int, float, float]],
    reference: Any,
    *,
    threshold: float | None = None,
    denominator: Denominator = "population",
    higher_is_favourable: bool = True,
    alpha: float = 0.05,
) -> list[MeanDifference]:
    """Return the standardized mean difference of every group.

    Parameters
    ----------
    moments : dict
        Of each group: number of people, mean, and sum of squares about the mean.
    reference : group
        Chosen beforehand.
    threshold : float, optional
        The size from which a difference to the group's disadvantage is flagged where it is
        significant; 0.3 is customary, and no regulation has one.
    denominator : {"population", "pooled"}
        The standard deviation of all people, or that within the two groups.
    higher_is_favourable : bool
        Whether a high score is good for people.
    alpha : float
        Level of Welch's t-test, which says what is significant.
    """
    level = arguments.check(alpha=alpha)
    arguments.choice("denominator", denominator, ("population", "pooled"))
    favourable = arguments.flag("higher_is_favourable", higher_is_favourable)
    limit = arguments.optional("threshold of the difference", threshold, arguments.positive)
    groups = _checked_moments(moments)
    if reference not in groups:
        names = ", ".join(map(repr, groups))
        raise DataError(f"reference is {reference!r}, which is no group; groups: {names}")
    base = groups[reference]
    whole = _together(groups)
    rows = []
    for group, one in groups.items():
        if group == reference:
            continue
        gap = one.mean - base.mean
        if denominator == "population":
            spread = math.sqrt(whole.squares / (whole.n - 1))
        else:
            spread = math.sqrt((one.squares + base.squares) / (one.n + base.n - 2))
        t, pvalue = _welch(one, base)
        significant = rejects(pvalue, level.alpha)
        smd = standardized(gap, spread)
        against = -smd if favourable else smd
        rows.append(
            MeanDifference(
                group=group,
                reference=reference,
                n=one.n,
                mean=one.mean,
                reference_mean=base.mean,
                difference=gap,
                smd=smd,
                t=t,
                pvalue=pvalue,
                significant=significant,
                flagged=None if limit is None else against >= limit and significant,
            )
        )
    return rows


def _checked_moments(moments: object) -> dict[Any, Moments]:
    if not isinstance(moments, Mapping) or len(moments) < 2:
        raise ArgumentTypeError(
            f"moments is {moments!r}; accepted: (n, mean, squares) of two or more groups"
        )
    found = {}
    for group, (n, mean, squares) in moments.items():
        found[group] = Moments(
            arguments.count(f"n of {group!r}", n, 2, 10**15),
            arguments.finite(f"mean of {group!r}", mean),
            arguments.at_least_0(f"squares of {group!r}", squares),
        )
    return found


def _together(groups: Mapping[Any, Moments]) -> Moments:
    """Return the moments of all people."""
    n = sum(one.n for one in groups.values())
    mean = math.fsum(one.n * one.mean for one in groups.values()) / n
    squares = math.fsum(one.squares + one.n * (one.mean - mean) ** 2 for one in groups.values())
    return Moments(n, mean, squares)


def _welch(one: Moments, other: Moments) -> tuple[float, float]:
    """Return t and the two-sided p-value of equal means, whatever the variances."""
    parts = [each.squares / (each.n - 1) / each.n for each in (one, other)]
    variance = sum(parts)
    t = standardized(one.mean - other.mean, math.sqrt(variance))
    if not variance:
        # Nothing varies: means that differ do so for sure.
        return t, 0.0 if t else 1.0
    df = variance**2 / sum(v**2 / (each.n - 1) for v, each in zip(parts, (one, other), strict=True))
    return t, min(2 * t_upper_tail(abs(t), df), 1.0)
