"""Native replicates of two groups, in the terms of the slow reference."""

import itertools
import math

import numpy as np
from scipy.stats import binom

from ..reference import means, means_intervals


def coefficients(shifts):
    """Those of the data, then those of each replicate; a gap is nothing below rounding of 1."""
    observed, _, replicates = shifts.__getnewargs__()
    return [
        means_intervals.Coefficients(row[:2], row[2:5], row[5:], 1.0)
        for row in np.vstack([observed, replicates])
    ]


def t_and_h(shifts, gap=0.0):
    """(T, h) of the data, then of each replicate, were the gap this one."""
    found = [coefficient.at(gap) for coefficient in coefficients(shifts)]
    return [(value.studentized, value.hall) for value in found]


def assignments(group, stratum=None):
    """Every column of two groups (0: the first) that shuffles of units within strata can give."""
    group = np.asarray(group)
    first = group == min(group)
    stratum = np.zeros(len(group), dtype=int) if stratum is None else np.asarray(stratum)
    units = [np.flatnonzero(stratum == code) for code in np.unique(stratum)]
    choices = [itertools.combinations(own, int(first[own].sum())) for own in units]
    for chosen in itertools.product(*choices):
        column = np.ones(len(group), dtype=int)
        column[list(itertools.chain(*chosen))] = 0
        yield column


def all_pvalues(a, d, group, stratum=None, **options):
    """`means.max_pvalues` over all assignments of units to groups."""
    group = np.asarray(group)

    def compute(column):
        found = means.statistic_of(a, d, column, stratum, **options)
        return found.studentized, found.hall

    own = (group != min(group)).astype(int)
    null = [
        compute(assignment)
        for assignment in assignments(group, stratum)
        if not np.array_equal(assignment, own)
    ]
    return means.max_pvalues(compute(own), null)


def band(pvalues, alternative, n):
    """Where the p-value of n replicates is, but for a tail of 1e-6 on each side."""
    sides = 2 if alternative == "two-sided" else 1
    p = (
        min(pvalues.greater, pvalues.less)
        if alternative == "two-sided"
        else getattr(pvalues, alternative)
    )
    low, high = binom(n, p).ppf(1e-6), binom(n, p).isf(1e-6)
    return min(1.0, sides * low / (n + 1)), min(1.0, sides * (high + 1) / (n + 1))


def pvalue(pvalues, alternative):
    """The p-value of an alternative; NaN where it is undefined."""
    found = getattr(pvalues, alternative.replace("-", "_"))
    return math.nan if math.isnan(found) else found
