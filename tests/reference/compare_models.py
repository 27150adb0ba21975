"""Slow, plain reference for two models on the same rows, written from the definitions.

Every function does the obvious thing: likelihoods are searched on grids, the skewness correction is
a root of its quadratic, intervals are what a test on a grid does not reject, bivariate normal
probabilities are integrals, the bootstrap resamples rows one replicate at a time.

A trinomial is ``(up, down, n)``: rows that go from 0 to 1, from 1 to 0, and all rows.
"""

import math

import numpy as np
from scipy import integrate, stats

from .permutation import value as metric_value

GRID = 2_001


# --- rates over the same rows: two trinomials ------------------------------------------------


def log_likelihood(counts, shares):
    """sum n_j log p_j, with 0 log 0 = 0."""
    total = 0.0
    for count, share in zip(counts, shares, strict=True):
        if count:
            with np.errstate(divide="ignore", invalid="ignore"):
                total = total + count * np.log(share)
    return total


def best_share_down(up, down, n, mean):
    """q that maximises up log(q + mean) + down log q + same log(1 - 2 q - mean), by finer grids."""
    low, high = max(0.0, -mean), (1 - mean) / 2
    for _ in range(5):
        q = np.linspace(low, high, GRID)
        parts = (q + mean, q, 1 - 2 * q - mean)
        found = log_likelihood((up, down, n - up - down), [np.maximum(p, 0.0) for p in parts])
        found = np.where(np.isnan(found), -np.inf, found) * np.ones(GRID)
        best = int(np.argmax(found))
        step = (high - low) / (GRID - 1)
        low, high = max(q[best] - step, low), min(q[best] + step, high)
    return q[best], found[best]


def best_mean(first, second, margin):
    """The mean change of the first that maximises both likelihoods, the second's a margin less."""
    low, high = max(-1.0, margin - 1), min(1.0, margin + 1)
    for _ in range(6):
        means = np.linspace(low, high, 41)
        found = [
            best_share_down(*first, m)[1] + best_share_down(*second, m - margin)[1] for m in means
        ]
        best = int(np.argmax(found))
        step = (high - low) / 40
        low, high = max(means[best] - step, low), min(means[best] + step, high)
    return means[best]


def moments(trinomial, mean):
    """Central moments of a row in {-1, 0, 1} with the most likely shares."""
    q, _ = best_share_down(*trinomial, mean)
    law = {1: q + mean, -1: q, 0: 1 - 2 * q - mean}
    return [sum(p * (x - mean) ** k for x, p in law.items()) for k in (2, 3)]


def score(first, second, margin):
    """The statistic of delta_1 - delta_2 = margin: of z and its skewness correction the smaller."""
    mean = best_mean(first, second, margin)
    (v_1, m_1), (v_2, m_2) = moments(first, mean), moments(second, mean - margin)
    n_1, n_2 = first[2], second[2]
    observed = (first[0] - first[1]) / n_1 - (second[0] - second[1]) / n_2 - margin
    variance = v_1 / n_1 + v_2 / n_2
    if abs(observed) < 1e-12:
        return 0.0
    z = observed / math.sqrt(variance)
    skewness = (m_1 / n_1**2 - m_2 / n_2**2) / variance**1.5
    # z = w + skewness (w^2 - 1) / 6
    roots = np.roots([skewness / 6, 1.0, -z - skewness / 6])
    if abs(skewness) < 1e-9:
        w = z
    elif np.iscomplex(roots).any():
        # Beyond the turn of the curve: twice the shifted z, whose root would be imaginary.
        w = 2 * (z + skewness / 6)
    else:
        w = float(min(roots.real, key=abs))
    if w * z <= 0:
        return 0.0
    return min(z, w, key=abs)


def is_accepted(first, second, margin, z):
    """Return whether a margin is within the two-sided interval of so many standard errors."""
    return abs(score(first, second, margin)) < z


# --- the size of a gap -----------------------------------------------------------------------


def size(change, total):
    """|g_2| - |g_1| from D = g_2 - g_1 and S = g_2 + g_1."""
    first, second = (total - change) / 2, (total + change) / 2
    return abs(second) - abs(first)


def range_of_sizes(change, total, n=401):
    """The least and the greatest |g_2| - |g_1| in a rectangle of D and S, on a grid."""
    d, s = np.linspace(*change, n), np.linspace(*total, n)
    found = [size(value, other) for value in d for other in s]
    return min(found), max(found)


def opposite_quarters(c, shift, correlation):
    """P(X < -c, Y > c) + P(X > c, Y < -c), Y = shift + r X + sqrt(1 - r^2) E."""
    spread = math.sqrt(1 - correlation**2)

    def density(x):
        above = stats.norm.sf((c - shift + correlation * x) / spread)
        below = stats.norm.cdf((-c - shift - correlation * x) / spread)
        return stats.norm.pdf(x) * (above + below)

    return integrate.quad(density, c, c + 12, limit=200)[0]


def one_sided(one, other, correlation):
    """The p-value of the better of two quarters: the largest probability along either axis."""
    c = stats.norm.isf(min(one, other))
    return max(opposite_quarters(c, shift, correlation) for shift in np.linspace(0, 10, 41))


# --- the bootstrap of rows -------------------------------------------------------------------


def table_of(label, decision):
    return tuple(
        int(((label == y) & (decision == p)).sum()) for p, y in ((1, 1), (1, 0), (0, 1), (0, 0))
    )


def change_of(metric, label, first, second):
    """theta_2 - theta_1 of some rows."""
    values = [metric_value(metric, *table_of(label, value)) for value in (first, second)]
    return values[1] - values[0]


def jackknife_variance(metric, label, first, second):
    """The infinitesimal jackknife by finite differences: every row weighs a little more."""
    weight = np.ones(len(label))

    def change():
        found = []
        for decision in (first, second):
            table = [
                float(weight[(label == y) & (decision == p)].sum())
                for p, y in ((1, 1), (1, 0), (0, 1), (0, 0))
            ]
            found.append(metric_value(metric, *table))
        return found[1] - found[0]

    step, total = 1e-4, 0.0
    for row in range(len(label)):
        weight[row] = 1 + step
        up = change()
        weight[row] = 1 - step
        total += ((up - change()) / (2 * step)) ** 2
        weight[row] = 1
    return total


def bootstrap_t(metric, groups, n_resamples, rng):
    """(D, se, t*) of two groups of (label, first, second), rows of both models together."""

    def both(samples):
        changes = [change_of(metric, *rows) for rows in samples]
        variances = [jackknife_variance(metric, *rows) for rows in samples]
        return changes[0] - changes[1], variances

    observed, variances = both(groups)
    replicates = []
    for _ in range(n_resamples):
        drawn = []
        for rows in groups:
            at = rng.integers(0, len(rows[0]), len(rows[0]))
            drawn.append(tuple(column[at] for column in rows))
        change, spread = both(drawn)
        known = min(spread) > 1e-18
        replicates.append((change - observed) / math.sqrt(sum(spread)) if known else math.nan)
    return observed, math.sqrt(sum(variances)), np.array(replicates)
