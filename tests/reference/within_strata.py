"""Two groups within strata, by the formulas, stratum by stratum: equivalence and joint tests."""

import numpy as np

from . import inference, proportions
from .permutation import proportion_counts


def equivalence(hits, rows, margin):
    """p of a gap outside of -+ margin: the larger of two one-sided tests."""
    low, high = (proportions.difference_within(hits, rows, end) for end in (-margin, margin))
    return max(low[0], high[1])


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
