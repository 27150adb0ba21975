"""Tests of whether the gap of two groups is the same in all strata."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.equality import Value
from .pvalues import chi_square_tail, monte_carlo_pvalue

#: With fewer rows than this in a group of a stratum, the law of Q is found by permutation ...
FEW_ROWS = 50
#: ... as long as rows times replicates stay below this number.
_MOST_WORK = 2_000_000
_MOST_REPLICATES, _FEWEST_REPLICATES = 999, 199
#: Variances that are less than this share of squares are rounding.
_ROUNDING = 1e-20
#: The chi-squared law needs expected counts of 5 in four of five cells (Cochran's rule).
_EXPECTED, _MOST_BELOW = 5.0, 0.2

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Homogeneity(Value):
    """A test of the hypothesis that the gap of two groups is the same in all strata."""

    #: "breslow-day", "permutation" or "chi-squared"; "" where nothing could be tested.
    method: str
    statistic: float
    #: Strata that take part, less one.
    df: int
    pvalue: float
    #: Why there is no p-value, or how it may mislead.
    note: str | None = None

    @classmethod
    def unknown(cls, why: str) -> Homogeneity:
        """Return a test without a p-value."""
        return cls(method="", statistic=math.nan, df=0, pvalue=math.nan, note=why)


def breslow_day(hits: Floats, rows: Floats) -> Homogeneity:
    """Test whether the odds ratio of two proportions is the same in all strata.

    Breslow and Day (1980) with the correction of Tarone (1985). With x_1, x_2 hits of n_1, n_2
    rows, t = x_1 + x_2, and R the Mantel-Haenszel odds ratio, A solves
    A (n_2 - t + A) = R (t - A) (n_1 - A) and 1/V = 1/A + 1/(t - A) + 1/(n_1 - A) + 1/(n_2 - t + A):
    sum (x_1 - A)^2 / V - (sum (x_1 - A))^2 / sum V, chi-squared with S - 1 degrees of freedom.
    ``hits`` and ``rows`` are by stratum and group.
    """
    total, size = hits.sum(axis=1), rows.sum(axis=1)
    varied = np.all(rows > 0, axis=1) & (total > 0) & (total < size)
    if np.count_nonzero(varied) < 2:
        return Homogeneity.unknown("fewer than two strata in which both groups and outcomes occur")
    (x, y), (n, m) = hits[varied].T, rows[varied].T
    t, size = total[varied], size[varied]
    above, below = float((x * (m - y) / size).sum()), float((y * (n - x) / size).sum())
    if not (above > 0 and below > 0):
        return Homogeneity.unknown("the common odds ratio is 0 or infinite")
    expected = _expected(above / below, n, m, t)
    cells = np.stack([expected, t - expected, n - expected, m - t + expected])
    variance = 1 / (1 / np.maximum(cells, 1e-300)).sum(axis=0)
    off = x - expected
    statistic = float((off**2 / variance).sum() - off.sum() ** 2 / variance.sum())
    df = len(x) - 1
    few = float((cells < _EXPECTED).mean())
    if few > _MOST_BELOW:
        return Homogeneity.unknown(
            f"{100 * few:.0f} % of the cells of all strata expect fewer than 5 people"
        )
    return Homogeneity(
        method="breslow-day",
        statistic=max(statistic, 0.0),
        df=df,
        pvalue=chi_square_tail(max(statistic, 0.0), df),
    )


def _expected(odds: float, n: Floats, m: Floats, t: Floats) -> Floats:
    """Return the expected hits of the first group, given the margins and the odds ratio."""
    a = 1 - odds
    b = m - t + odds * (n + t)
    c = -odds * n * t
    # The root between max(0, t - m) and min(n, t), without a difference of near numbers.
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    found: Floats = -2 * c / (b + root)
    return np.clip(found, np.maximum(0.0, t - m), np.minimum(n, t))


def permuted_homogeneity(
    above: Floats,
    below: Floats,
    is_second: NDArray[np.bool_],
    stratum: NDArray[np.int64],
    seed: int,
) -> Homogeneity:
    """Test whether the gap of two ratios of sums, theta = sum a / sum d, is the same in all strata.

    Q = sum (d_s - D)^2 / v_s with the gap d_s of each stratum, its variance v_s and their mean D
    weighted by 1 / v_s (Cochran). Units exchange their groups within strata after each group's own
    value is taken away, e = a - theta_sg d: then all gaps are 0, and so equal. With many units in
    every group of every stratum Q is compared with the chi-squared law. Strata in which no value
    varies have v_s = 0 and no weight: they are left out, and the note counts those that are used.
    """
    order = np.lexsort((below, above, is_second, stratum))
    above, below, stratum = above[order], below[order], stratum[order]
    group = is_second[order].astype(np.int64)
    codes = np.unique(stratum, return_inverse=True)[1]
    n_strata = int(codes.max(initial=-1)) + 1
    at = 2 * codes + group
    units = np.bincount(at, minlength=2 * n_strata).reshape(-1, 2)
    sums = np.bincount(at, below, 2 * n_strata).reshape(-1, 2)
    both = np.all((units > 1) & (sums > 0), axis=1)
    if np.count_nonzero(both) < 2:
        return Homogeneity.unknown("fewer than two strata with two rows or more of each group")
    n_before = int(both.sum())
    _, of_gap = _gaps(above, below, codes, group, n_strata)
    # Equal values differ from their mean by rounding alone.
    squares = np.bincount(codes, above**2, n_strata)
    both &= of_gap * sums.sum(axis=1) ** 2 > _ROUNDING * squares
    if np.count_nonzero(both) < 2:
        return Homogeneity.unknown("the metric varies in fewer than two strata")
    note = None
    if both.sum() < n_before:
        note = (
            f"{int(both.sum()):,} of {n_before:,} strata are used, as the metric does not vary in "
            "the others"
        )
    keep = both[codes]
    above, below, group = above[keep], below[keep], group[keep]
    codes = (np.cumsum(both) - 1)[codes[keep]]
    n_strata, smallest = int(both.sum()), int(units[both].min())
    statistic = _spread(above, below, codes, group, n_strata)
    df = n_strata - 1
    if smallest >= FEW_ROWS:
        pvalue = chi_square_tail(statistic, df)
        return Homogeneity(
            method="chi-squared", statistic=statistic, df=df, pvalue=pvalue, note=note
        )
    n_replicates = min(_MOST_WORK // len(above), _MOST_REPLICATES)
    if n_replicates < _FEWEST_REPLICATES:
        return Homogeneity.unknown(
            f"strata with fewer than {FEW_ROWS} rows of a group need a permutation test, which is "
            f"made for up to {_MOST_WORK // _FEWEST_REPLICATES:,} rows"
        )
    place = 2 * codes + group
    theta = np.bincount(place, above) / np.bincount(place, below)
    centred = above - theta[place] * below
    generator = np.random.Generator(np.random.Philox(seed))
    extreme = 0
    for _ in range(n_replicates):
        drawn = group[np.lexsort((generator.random(len(group)), codes))]
        found = _spread(centred, below, codes, drawn, n_strata)
        extreme += math.isnan(found) or found >= statistic * (1 - 1e-12)
    return Homogeneity(
        method="permutation",
        statistic=statistic,
        df=df,
        pvalue=monte_carlo_pvalue(extreme, n_replicates),
        note=note,
    )


def _gaps(
    above: Floats,
    below: Floats,
    codes: NDArray[np.int64],
    group: NDArray[np.int64],
    n_strata: int,
) -> tuple[Floats, Floats]:
    """Return the gap of each stratum and its variance; NaN where a group has too few units."""
    place, size = 2 * codes + group, 2 * n_strata
    sums, totals = np.bincount(place, above, size), np.bincount(place, below, size)
    n = np.bincount(place, minlength=size)
    with np.errstate(divide="ignore", invalid="ignore"):
        theta = sums / totals
        residual = above - theta[place] * below
        variance = np.bincount(place, residual**2, size) * n / (n - 1) / totals**2
    values = theta.reshape(-1, 2)
    return values[:, 0] - values[:, 1], variance.reshape(-1, 2).sum(axis=1)


def _spread(
    above: Floats,
    below: Floats,
    codes: NDArray[np.int64],
    group: NDArray[np.int64],
    n_strata: int,
) -> float:
    """Return Cochran's Q; NaN where a gap has no variance."""
    gaps, of_gap = _gaps(above, below, codes, group, n_strata)
    if not np.all(of_gap > 0):
        return math.nan
    weight = 1 / of_gap
    mean = (weight * gaps).sum() / weight.sum()
    return float((weight * (gaps - mean) ** 2).sum())
