"""Melded confidence laws, slowly: means with a known range, mean residuals with scores."""

import numpy as np
from scipy import optimize, special, stats


def usual_size(denominator):
    """sum D^2 / sum D: the size of the unit of a row."""
    d = np.asarray(denominator, float)
    return (d**2).sum() / d.sum()


def gaffke(numerator, denominator, low, high, n, rng, extra=None):
    """n draws of (U*, L*): an exponential number for every unit, one for the end of the range.

    The unit at the end has the usual size of the group, or ``extra``.
    """
    a, d = np.asarray(numerator, float), np.asarray(denominator, float)
    extra = usual_size(d) if extra is None else extra
    upper, lower = np.empty(n), np.empty(n)
    for i in range(n):
        e, e_0 = rng.exponential(size=len(a)), rng.exponential()
        above, below = e @ a, e @ d + e_0 * extra
        upper[i] = (above + e_0 * extra * high) / below
        lower[i] = (above + e_0 * extra * low) / below
    return upper, lower


def reach(numerator, denominator, low, high):
    """max(b - theta, theta - a) D_0 / (D sqrt(v)), v = n/(n-1) sum u^2."""
    a, d = np.asarray(numerator, float), np.asarray(denominator, float)
    n, total = len(a), d.sum()
    theta = a.sum() / total
    v = n / (n - 1) * ((a - theta * d) ** 2).sum() / total**2
    return max(high - theta, theta - low) * ((d**2).sum() / total) / (total * np.sqrt(v))


def events_up_to(k, probabilities):
    """P(Y <= k): recursion up to 200 rows, else the normal law with skewness and continuity."""
    p = np.asarray(probabilities, float)
    if len(p) <= 200:
        law = np.array([1.0])
        for each in p:
            law = np.append(law, 0.0) * (1 - each) + np.append(0.0, law) * each
        return law[: k + 1].sum()
    variance = (p * (1 - p)).sum()
    skewness = (p * (1 - p) * (1 - 2 * p)).sum() / variance**1.5
    x = (k + 0.5 - p.sum()) / np.sqrt(variance)
    return stats.norm.cdf(x) + skewness * (1 - x**2) * stats.norm.pdf(x) / 6


def poisson_binomial(score, n_events, level):
    """(mu where P(Y <= y) = level, mu where P(Y >= y) = 1 - level), by search."""
    s = np.clip(np.asarray(score, float), 2.0**-52, 1 - 2.0**-52)
    n = len(s)

    def mean_residual(k):
        def excess(shift):
            return events_up_to(k, special.expit(special.logit(s) + shift)) - level

        # Where the law is summed, also where all events are sure.
        far = 80 if n <= 200 else 12
        shift = optimize.brentq(excess, -far, far, xtol=1e-13)
        return np.mean(special.expit(special.logit(s) + shift) - s)

    upper = np.mean(1 - s) if n_events == n else mean_residual(n_events)
    lower = -np.mean(s) if n_events == 0 else mean_residual(n_events - 1)
    return upper, lower


def pvalue_above(first, second, margin=0.0):
    """P(m): of H0: theta_1 - theta_2 <= m; each side is (U*, L*)."""
    return (1 + np.sum(first[1] - second[0] <= margin)) / (1 + len(first[0]))


def pvalue_below(first, second, margin=0.0):
    """P'(m): of H0: theta_1 - theta_2 >= m."""
    return (1 + np.sum(first[0] - second[1] >= margin)) / (1 + len(first[0]))


def pvalue(first, second):
    """Twice the smaller one."""
    return min(1.0, 2 * min(pvalue_above(first, second), pvalue_below(first, second)))


def reach_of_clusters(numerator, denominator, low, high, size):
    """max(b - theta, theta - a) D_0 / (D sqrt(v)) of clusters: v = sum u^2, D_0 is given."""
    a, d = np.asarray(numerator, float), np.asarray(denominator, float)
    total = d.sum()
    theta = a.sum() / total
    v = (((a - theta * d) / total) ** 2).sum()
    return max(high - theta, theta - low) * size / (total * np.sqrt(v))


def has_few(numerator, denominator, size):
    """Fewer than 8 clusters deviate (4 of at least 40), or D is below 4 sizes of a cluster."""
    n = sum(1 for d in denominator if d > 0)
    few = deviating_number(numerator, denominator) < (8 if n < 40 else 4)
    return bool(few or sum(denominator) < 4 * size)


def deviating_number(numerator, denominator):
    """(sum |A - m D|)^2 / sum (A - m D)^2, m the median of A / D over clusters with D > 0."""
    usual = np.median([a / d for a, d in zip(numerator, denominator, strict=True) if d > 0])
    off = [abs(a - usual * d) for a, d in zip(numerator, denominator, strict=True)]
    return sum(off) ** 2 / sum(x**2 for x in off)
