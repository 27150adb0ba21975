"""Two groups within strata, by the formulas, stratum by stratum: equivalence and joint tests."""

import math

import numpy as np
from scipy import stats

from . import inference
from .permutation import proportion_counts


def sato(hits, rows):
    """(Delta, sum P, sum Q, sum k) of Sato, Greenland and Robins (1989)."""
    gap = tilt = spread = total = 0.0
    for (x_1, x_2), (n_1, n_2) in zip(hits, rows, strict=True):
        if n_1 == 0 or n_2 == 0:
            continue
        n = n_1 + n_2
        gap += (x_1 * n_2 - x_2 * n_1) / n
        tilt += (n_1**2 * x_2 - n_2**2 * x_1 + n_1 * n_2 * (n_2 - n_1) / 2) / n**2
        spread += (x_1 * (n_2 - x_2) + x_2 * (n_1 - x_1)) / (2 * n)
        total += n_1 * n_2 / n
    return gap / total, tilt, spread, total


def statistic(hits, rows, margin):
    """(Delta - m) / sqrt(max(v(m), v(Delta))), v(m) = (m sum P + sum Q) / (sum k)^2."""
    gap, tilt, spread, total = sato(hits, rows)
    variances = [(at * tilt + spread) / total**2 for at in (margin, gap)]
    return (gap - margin) / math.sqrt(max(variances)) if variances[1] > 0 else math.nan


def equivalence(hits, rows, margin):
    """p of a gap outside of -+ margin: the larger of two one-sided tests."""
    low, high = (statistic(hits, rows, end) for end in (-margin, margin))
    return 1.0 if math.isnan(low) else max(stats.norm.sf(low), stats.norm.cdf(high))


def joint_statistic(strata, components):
    """d' C^-1 d of proportions that share rows; tables (tp, fp, fn, tn) of two groups by stratum.

    d_i = sum_s k_si (theta_s1i - theta_s2i), k_si = D_s1i D_s2i / (D_s1i + D_s2i), and
    C_ij = sum_s k_si k_sj sum_g V_sgij n_sg / (n_sg - 1).
    """
    gaps = np.zeros(len(components))
    covariance = np.zeros((len(components), len(components)))
    for tables in strata:
        first, second = (
            np.array([proportion_counts(name, *table)[1] for name in components])
            for table in tables
        )
        k = first * second / (first + second)
        theta, other = (inference.joint_values(table, components) for table in tables)
        gaps += k * (theta - other)
        for table in tables:
            n = sum(table)
            own = inference.joint_covariance(table, components) * n / (n - 1)
            covariance += np.outer(k, k) * own
    return inference.quadratic_form(gaps, covariance)
