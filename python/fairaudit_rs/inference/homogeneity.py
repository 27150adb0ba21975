"""Test whether the gap of two groups is the same in all strata."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.equality import EqualByValue
from .pvalues import chi_square_tail, monte_carlo_pvalue

#: With fewer rows than this in some group of some stratum, the null distribution of Cochran's Q
#: comes from permutations ...
FEW_ROWS = 50
#: ... if rows times replicates are at most this number.
_MOST_WORK = 2_000_000
_MOST_REPLICATES, _FEWEST_REPLICATES = 999, 199
#: Rows per block, summed over replicates.
_AT_ONCE = 1 << 16
#: Variances below this share of the squares are rounding errors.
_ROUNDING = 1e-20
#: Cochran's rule: at most 20 % of the cells may have an expected count below 5.
_MIN_EXPECTED_COUNT, _MAX_SHARE_BELOW = 5.0, 0.2

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Homogeneity(EqualByValue):
    """The result of a test that the gap of two groups is the same in all strata."""

    #: "breslow-day", "permutation" or "chi-squared"; "" if there is no test.
    method: str
    statistic: float
    #: Number of strata used, minus 1.
    df: int
    pvalue: float
    #: Why there is no p-value, or a remark on it.
    note: str | None = None

    @classmethod
    def unknown(cls, why: str) -> Homogeneity:
        """Return a test without a p-value."""
        return cls(method="", statistic=math.nan, df=0, pvalue=math.nan, note=why)


def breslow_day(hits: Floats, rows: Floats) -> Homogeneity:
    """Test whether the odds ratio of two proportions is the same in all strata.

    The test of Breslow and Day (1980) with the correction of Tarone (1985). A stratum has x_1 and
    x_2 hits in n_1 and n_2 rows, t = x_1 + x_2, and R is the Mantel-Haenszel odds ratio. The
    expected hits A of the first group solve A (n_2 - t + A) = R (t - A) (n_1 - A), and their
    variance is V with 1/V = 1/A + 1/(t - A) + 1/(n_1 - A) + 1/(n_2 - t + A). The statistic
    sum (x_1 - A)^2 / V - (sum (x_1 - A))^2 / sum V is chi-squared with S - 1 degrees of freedom for
    S strata. ``hits`` and ``rows`` are by stratum and group.
    """
    total, size = hits.sum(axis=1), rows.sum(axis=1)
    varied = np.all(rows > 0, axis=1) & (total > 0) & (total < size)
    if np.count_nonzero(varied) < 2:
        return Homogeneity.unknown("fewer than two strata in which both groups and outcomes occur")
    (x, y), (n, m) = hits[varied].T, rows[varied].T
    t, size = total[varied], size[varied]
    numerator, denominator = float((x * (m - y) / size).sum()), float((y * (n - x) / size).sum())
    if not (numerator > 0 and denominator > 0):
        return Homogeneity.unknown("the common odds ratio is 0 or infinite")
    expected = _expected(numerator / denominator, n, m, t)
    cells = np.stack([expected, t - expected, n - expected, m - t + expected])
    variance = 1 / (1 / np.maximum(cells, 1e-300)).sum(axis=0)
    deviation = x - expected
    statistic = float((deviation**2 / variance).sum() - deviation.sum() ** 2 / variance.sum())
    df = len(x) - 1
    few = float((cells < _MIN_EXPECTED_COUNT).mean())
    if few > _MAX_SHARE_BELOW:
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
    # The root between max(0, t - m) and min(n, t), in the form that avoids cancellation.
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    hits: Floats = -2 * c / (b + root)
    return np.clip(hits, np.maximum(0.0, t - m), np.minimum(n, t))


def permuted_homogeneity(
    numerator: Floats,
    denominator: Floats,
    is_second: NDArray[np.bool_],
    stratum: NDArray[np.int64],
    seed: int,
) -> Homogeneity:
    """Test whether the gap of two ratios of sums, theta = sum a / sum d, is the same in all strata.

    The arguments ``numerator`` and ``denominator`` are a and d. Cochran's Q = sum (g_s - G)^2 /
    v_s, with the gap g_s of each stratum, its variance v_s and the mean G of the gaps weighted by 1
    / v_s. Groups are permuted within strata on the centred values e = a - theta_sg d, for which
    every gap is 0. With many units in every group of every stratum, Q is compared with the
    chi-squared distribution instead. Strata without variation (v_s = 0) are excluded; the note has
    the number of the others.
    """
    # Some of the strata may have no rows here.
    present = np.bincount(stratum) > 0
    codes, n_strata = (np.cumsum(present) - 1)[stratum], int(present.sum())
    order = _order(numerator, denominator, 2 * codes + is_second)
    numerator, denominator, codes = numerator[order], denominator[order], codes[order]
    group = is_second[order].astype(np.int64)
    place = 2 * codes + group
    units = np.bincount(place, minlength=2 * n_strata).reshape(-1, 2)
    sums = np.bincount(place, denominator, 2 * n_strata).reshape(-1, 2)
    both = np.all((units > 1) & (sums > 0), axis=1)
    if np.count_nonzero(both) < 2:
        return Homogeneity.unknown("fewer than two strata with two rows or more of each group")
    n_before = int(both.sum())
    [gap_variance] = _gaps(numerator, denominator, codes, group[np.newaxis], n_strata)[1]
    # Equal values differ from their mean only by rounding.
    squares = np.bincount(codes, numerator**2, n_strata)
    both &= gap_variance * sums.sum(axis=1) ** 2 > _ROUNDING * squares
    if np.count_nonzero(both) < 2:
        return Homogeneity.unknown("the metric varies in fewer than two strata")
    note = None
    if both.sum() < n_before:
        note = (
            f"{int(both.sum()):,} of {n_before:,} strata are used, as the metric does not vary in "
            "the others"
        )
    keep = both[codes]
    numerator, denominator, group = numerator[keep], denominator[keep], group[keep]
    codes = (np.cumsum(both) - 1)[codes[keep]]
    n_strata, smallest = int(both.sum()), int(units[both].min())
    statistic = float(_spread(numerator, denominator, codes, group[np.newaxis], n_strata)[0])
    df = n_strata - 1
    if smallest >= FEW_ROWS:
        pvalue = chi_square_tail(statistic, df)
        return Homogeneity(
            method="chi-squared", statistic=statistic, df=df, pvalue=pvalue, note=note
        )
    n_replicates = min(_MOST_WORK // len(numerator), _MOST_REPLICATES)
    if n_replicates < _FEWEST_REPLICATES:
        return Homogeneity.unknown(
            f"strata with fewer than {FEW_ROWS} rows of a group need a permutation test, which is "
            f"made for up to {_MOST_WORK // _FEWEST_REPLICATES:,} rows"
        )
    place = 2 * codes + group
    theta = np.bincount(place, numerator) / np.bincount(place, denominator)
    centred = numerator - theta[place] * denominator
    generator = np.random.Generator(np.random.Philox(seed))
    extreme, at_once = 0, max(_AT_ONCE // len(group), 1)
    for start in range(0, n_replicates, at_once):
        order = np.argsort(
            codes + generator.random((min(at_once, n_replicates - start), len(group))), axis=1
        )
        replicates = _spread(centred, denominator, codes, group[order], n_strata)
        extreme += int((np.isnan(replicates) | (replicates >= statistic * (1 - 1e-12))).sum())
    return Homogeneity(
        method="permutation",
        statistic=statistic,
        df=df,
        pvalue=monte_carlo_pvalue(extreme, n_replicates),
        note=note,
    )


def _order(numerator: Floats, denominator: Floats, place: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the order of rows by place, then a, then d, on which sums of floats depend."""
    if len(place) and denominator.min() == denominator.max():
        # Equal rows may come in any order.
        order = np.argsort(numerator)
    else:
        order = np.lexsort((denominator, numerator))
    small = place.astype(np.uint16) if place.max(initial=0) < 1 << 16 else place
    return order[np.argsort(small[order], kind="stable")]


def _gaps(
    numerator: Floats,
    denominator: Floats,
    codes: NDArray[np.int64],
    group: NDArray[np.int64],
    n_strata: int,
) -> tuple[Floats, Floats]:
    """Return gaps by stratum and their variances, for each row of ``group``; NaN for few units."""
    n_lines, size = len(group), 2 * n_strata
    place = (2 * codes + group + size * np.arange(n_lines)[:, np.newaxis]).ravel()

    def added(terms: Floats) -> Floats:
        totals_by_place = np.bincount(place, terms.ravel(), n_lines * size)
        return np.asarray(totals_by_place, np.float64).reshape(n_lines, n_strata, 2)

    numerator, denominator = (
        np.broadcast_to(part, group.shape) for part in (numerator, denominator)
    )
    sums, totals = added(numerator), added(denominator)
    n = np.bincount(place, minlength=n_lines * size).reshape(sums.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        theta = sums / totals
        residual = numerator - theta.ravel()[place].reshape(group.shape) * denominator
        variance = added(residual**2) * n / (n - 1) / totals**2
    return theta[..., 0] - theta[..., 1], variance.sum(axis=2)


def _spread(
    numerator: Floats,
    denominator: Floats,
    codes: NDArray[np.int64],
    group: NDArray[np.int64],
    n_strata: int,
) -> Floats:
    """Return Cochran's Q for each row of ``group``; NaN where a gap has no variance."""
    gaps, gap_variance = _gaps(numerator, denominator, codes, group, n_strata)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = 1 / gap_variance
        mean = (weight * gaps).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
        spread = (weight * (gaps - mean) ** 2).sum(axis=1)
    return np.where(np.all(gap_variance > 0, axis=1), spread, np.nan)
