"""Values of two groups within strata, standardised to common weights, stratum by stratum; slowly.

value_g = sum_s k_s theta_sg / sum_s k_s over strata that hold both groups, with the weights of the
gap within strata, k_s = D_s1 D_s2 / (D_s1 + D_s2). value_1 - value_2 is that gap: for rates and
means the difference of Mantel and Haenszel.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from .rows import ones_unless


@dataclass(frozen=True)
class Standardised:
    """The result of a comparison of two groups within strata."""

    #: value_1 and value_2.
    values: tuple[float, float]
    #: The crude values, of all rows of a group.
    crude: tuple[float, float]
    #: The share of the weight (of people) in strata that hold one of the groups only.
    left_out: float
    #: For each stratum that holds both: (stratum, D_s1, D_s2, theta_s1, theta_s2).
    strata: tuple[tuple, ...]

    @property
    def gap(self):
        """value_1 - value_2."""
        return self.values[0] - self.values[1]


def _standardised(weight, group, stratum, first, second, size_of, value_of):
    """`size_of(rows)` is D, `value_of(rows)` theta of a mask of rows, NaN where there is none."""
    found, inside = [], 0.0
    for code in sorted(set(stratum.tolist())):
        parts = [(stratum == code) & (group == name) for name in (first, second)]
        sizes = [size_of(part) for part in parts]
        thetas = [
            value_of(part) if size > 0 else np.nan for part, size in zip(parts, sizes, strict=True)
        ]
        if np.isnan(thetas).any():
            continue
        found.append((code, *sizes, *thetas))
        inside += sum(weight[part].sum() for part in parts)
    k = [d_1 * d_2 / (d_1 + d_2) for _, d_1, d_2, _, _ in found]
    compared = (group == first) | (group == second)
    return Standardised(
        values=tuple(
            sum(k_s * row[3 + g] for k_s, row in zip(k, found, strict=True)) / sum(k)
            if k
            else np.nan
            for g in (0, 1)
        ),
        crude=tuple(value_of(group == name) for name in (first, second)),
        left_out=1 - inside / weight[compared].sum(),
        strata=tuple(found),
    )


def ratio(numerator, denominator, group, stratum, first, second, weight=None):
    """Rates, means and ratios of sums: D the weighted sum of the denominator (None: of ones)."""
    a, group, stratum = (np.asarray(part) for part in (numerator, group, stratum))
    w = ones_unless(weight, len(a))
    d = np.ones(len(a)) if denominator is None else np.asarray(denominator, float)
    return _standardised(
        w,
        group,
        stratum,
        first,
        second,
        lambda rows: float((w * d)[rows].sum()),
        lambda rows: float((w * a)[rows].sum() / (w * d)[rows].sum()),
    )


def formula(value, group, stratum, first, second, weight=None):
    """F1, AUC and the like: D = (sum w)^2 / sum w^2; `value(rows)` is NaN where there is none."""
    group, stratum = np.asarray(group), np.asarray(stratum)
    w = ones_unless(weight, len(group))

    def size_of(rows):
        return float(w[rows].sum() ** 2 / (w[rows] ** 2).sum()) if rows.any() else 0.0

    return _standardised(w, group, stratum, first, second, size_of, value)


def tarone(tables):
    """(statistic, p) of Breslow and Day with Tarone's correction; tables (x_1, n_1, x_2, n_2).

    A_s solves A (n_2 - m + A) = psi (m - A)(n_1 - A), m = x_1 + x_2, psi the odds ratio of Mantel
    and Haenszel; 1/V_s = 1/A + 1/(m - A) + 1/(n_1 - A) + 1/(n_2 - m + A);
    sum (x_1 - A)^2 / V - (sum x_1 - A)^2 / sum V, chi-squared with S - 1 degrees of freedom.
    Strata without a margin (no row of a group, or all rows alike) tell nothing.
    """
    kept = [
        (x_1, n_1, x_2, n_2)
        for x_1, n_1, x_2, n_2 in tables
        if n_1 > 0 and n_2 > 0 and 0 < x_1 + x_2 < n_1 + n_2
    ]
    above = sum(x_1 * (n_2 - x_2) / (n_1 + n_2) for x_1, n_1, x_2, n_2 in kept)
    below = sum(x_2 * (n_1 - x_1) / (n_1 + n_2) for x_1, n_1, x_2, n_2 in kept)
    psi = above / below
    off, variances = [], []
    for x_1, n_1, x_2, n_2 in kept:
        m = x_1 + x_2
        low, high = max(0.0, m - n_2), min(n_1, m)
        # The odds ratio of A rises from 0 to infinity between both ends.
        for _ in range(200):
            middle = (low + high) / 2
            below_psi = middle * (n_2 - m + middle) < psi * (m - middle) * (n_1 - middle)
            low, high = (middle, high) if below_psi else (low, middle)
        a = (low + high) / 2
        off.append(x_1 - a)
        variances.append(1 / (1 / a + 1 / (m - a) + 1 / (n_1 - a) + 1 / (n_2 - m + a)))
    statistic = sum(o**2 / v for o, v in zip(off, variances, strict=True)) - sum(off) ** 2 / sum(
        variances
    )
    return statistic, float(stats.chi2.sf(statistic, len(kept) - 1))


def ratio_of_units(above, below, group, stratum, first, second):
    """The ratio within strata of sums over units, and the standard error of its logarithm.

    R = sum k theta_1 / sum k theta_2. With v_sg = n / (n - 1) sum (a - theta_sg d)^2 / D_sg^2 the
    variance of theta_sg over n units, that of log R is
    sum k^2 (v_s1 + R^2 v_s2) / (sum k theta_s1)^2: the delta method with fixed k. Where rows count
    the same and rates have one ratio it estimates what Greenland and Robins do.
    """
    rows = []
    for code in sorted(set(stratum.tolist())):
        entry = []
        for name in (first, second):
            part = (stratum == code) & (group == name)
            a, d, n = above[part], below[part], part.sum()
            theta = a.sum() / d.sum()
            v = n / (n - 1) * ((a - theta * d) ** 2).sum() / d.sum() ** 2
            entry.append((d.sum(), theta, v))
        (d_1, theta_1, v_1), (d_2, theta_2, v_2) = entry
        rows.append((d_1 * d_2 / (d_1 + d_2), theta_1, theta_2, v_1, v_2))
    k, theta_1, theta_2, v_1, v_2 = np.array(rows).T
    ratio = (k @ theta_1) / (k @ theta_2)
    return ratio, np.sqrt((k**2 * (v_1 + ratio**2 * v_2)).sum()) / (k @ theta_1)
