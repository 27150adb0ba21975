"""Slow, plain reference for proportions: score ratios, Mantel-Haenszel, MOVER, exact power.

Written from the statistics page, not from the library. Every function does the obvious thing:
likelihoods are searched on grids, intervals are the values that a test on a grid does not reject,
p-values are looked for among many z.
"""

import math

import numpy as np
from scipy import stats

GRID = 20_001


def log_likelihood(x, n, p):
    """log p^x (1 - p)^(n - x), with 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(x > 0, x * np.log(p), 0.0)
        down = np.where(n - x > 0, (n - x) * np.log1p(-p), 0.0)
    return up + down


def restricted(x_1, n_1, x_2, n_2, ratio):
    """The most likely (p_1, p_2) with p_1 = ratio p_2: a grid, then finer ones around its best."""
    low, high = 0.0, min(1.0, 1.0 / ratio)
    for _ in range(4):
        p_2 = np.linspace(low, high, GRID)
        p_1 = np.minimum(ratio * p_2, 1.0)
        best = int(np.argmax(log_likelihood(x_1, n_1, p_1) + log_likelihood(x_2, n_2, p_2)))
        step = (high - low) / (GRID - 1)
        low, high = max(p_2[best] - step, low), min(p_2[best] + step, high)
    return p_1[best], p_2[best]


def ratio_score(x_1, n_1, x_2, n_2, ratio):
    """z(R) = (p1 - R p2) / sqrt(p1~ (1 - p1~) / n1 + R^2 p2~ (1 - p2~) / n2): no N / (N - 1)."""
    if x_1 + x_2 == 0:
        return math.nan
    p_1, p_2 = restricted(x_1, n_1, x_2, n_2, ratio)
    variance = p_1 * (1 - p_1) / n_1 + ratio**2 * p_2 * (1 - p_2) / n_2
    return (x_1 / n_1 - ratio * x_2 / n_2) / math.sqrt(variance)


def moments(n, p):
    """Variance and third central moment of x / n: sums over its binomial law."""
    x = np.arange(n + 1)
    law = stats.binom.pmf(x, n, p)
    return [float(law @ (x / n - p) ** k) for k in (2, 3)]


def corrected(z, skewness):
    """The root u of z = u + g (u^2 - 1), g = skewness / 6, that is nearer 0; at none the turn."""
    g = skewness / 6
    if abs(g) < 1e-9:
        return z
    roots = np.roots([g, 1.0, -z - g])
    return -1 / (2 * g) if np.iscomplex(roots).any() else float(min(roots.real, key=abs))


def both_sides(distance, variance, third):
    """P = max(sf(z), sf(u)) of "at most the hypothesis", P' = max(Phi(z), Phi(u)) of "at least"."""
    if variance < 1e-15:
        z = u = 0.0 if abs(distance) < 1e-12 else math.copysign(math.inf, distance)
    else:
        z = distance / math.sqrt(variance)
        u = corrected(z, third / variance**1.5)
    greater, less = (max(side(z), side(u)) for side in (stats.norm.sf, stats.norm.cdf))
    return float(greater), float(less)


def by_ratio(x_1, n_1, x_2, n_2, ratio):
    """(P, P') of p_1 / p_2 = ratio."""
    if x_1 + x_2 == 0:
        return 1.0, 1.0
    p_1, p_2 = restricted(x_1, n_1, x_2, n_2, ratio)
    (v_1, m_1), (v_2, m_2) = moments(n_1, p_1), moments(n_2, p_2)
    distance = x_1 / n_1 - ratio * x_2 / n_2
    return both_sides(distance, v_1 + ratio**2 * v_2, m_1 - ratio**3 * m_2)


def tost_ratio(x_1, n_1, x_2, n_2, rho):
    """p_pass = max(P(rho), P'(1/rho))."""
    low, high = (by_ratio(x_1, n_1, x_2, n_2, r) for r in (rho, 1 / rho))
    return max(low[0], high[1])


def mantel_haenszel(hits, rows):
    """(Delta, v) of Sato: v = [Delta sum P + sum Q] / (sum k)^2, stratum by stratum."""
    gap = tilt = spread = total = 0.0
    for (x_1, x_2), (n_1, n_2) in zip(hits, rows, strict=True):
        if n_1 == 0 or n_2 == 0:
            continue
        n = n_1 + n_2
        k = n_1 * n_2 / n
        gap += k * (x_1 / n_1 - x_2 / n_2)
        tilt += (n_1**2 * x_2 - n_2**2 * x_1 + n_1 * n_2 * (n_2 - n_1) / 2) / n**2
        spread += (x_1 * (n_2 - x_2) + x_2 * (n_1 - x_1)) / (2 * n)
        total += k
    return gap / total, (gap / total * tilt + spread) / total**2


def contrast_within(hits, rows, rates, ratio):
    """(sum k (p_1 - R p_2), its variance, its third moment) over sum k: rates given by stratum.

    ``rates`` are p_1, p_2, and the variance of the pooled rate that they are made of. A rate that
    is estimated with the variance v has an expected p (1 - p) that is too small by v.
    """
    distance = variance = third = total = 0.0
    for (x_1, x_2), (n_1, n_2), (p_1, p_2, of_pooled) in zip(hits, rows, rates, strict=True):
        n = n_1 + n_2
        k = n_1 * n_2 / n
        total += k
        distance += k * (x_1 / n_1 - ratio * x_2 / n_2)
        # p_1 moves with the pooled rate as R does, p_2 as 1.
        own_1 = p_1 * (1 - p_1) + ratio**2 * of_pooled
        own_2 = p_2 * (1 - p_2) + of_pooled
        variance += k**2 * (own_1 / n_1 + ratio**2 * own_2 / n_2)
        if n > 2:
            parts = [
                moments(int(rows), min(max(p, 0), 1))[1] for rows, p in ((n_1, p_1), (n_2, p_2))
            ]
            back = n**2 / ((n - 1) * (n - 2))
            third += k**3 * (parts[0] - ratio**3 * parts[1]) * back
    return distance / total, variance / total**2, third / total**3


def difference_within(hits, rows, margin):
    """(P, P') of a difference within strata: the larger of two variances."""
    shared = [i for i, pair in enumerate(rows) if min(pair) > 0]
    hits, rows = [hits[i] for i in shared], [rows[i] for i in shared]
    free, inside = [], []
    for (x_1, x_2), (n_1, n_2) in zip(hits, rows, strict=True):
        n = n_1 + n_2
        p_1 = (x_1 + x_2) / n + margin * n_2 / n
        p_2 = p_1 - margin
        # (n_1 v_1 + n_2 v_2) / n^2, of which the same of the estimates is (n - 1) / n on average.
        spread = n_1 * p_1 * (1 - p_1) + n_2 * p_2 * (1 - p_2)
        free.append((p_1, p_2, spread / n**2 * n / (n - 1)))
        p_1 = min(max(p_1, 0.0, margin), 1.0, 1.0 + margin)
        inside.append((p_1, p_1 - margin, 0.0))
    gap, v, _ = contrast_within(hits, rows, free, 1.0)
    third = contrast_within(hits, rows, inside, 1.0)[2]
    return both_sides(gap - margin, max(v, mantel_haenszel(hits, rows)[1]), third)


def ratio_within(hits, rows, ratio):
    """(P, P') of a ratio within strata."""
    shared = [i for i, pair in enumerate(rows) if min(pair) > 0]
    hits, rows = [hits[i] for i in shared], [rows[i] for i in shared]
    rates = []
    for (x_1, x_2), (n_1, n_2) in zip(hits, rows, strict=True):
        p_2 = min((x_1 + x_2) / (ratio * n_1 + n_2), 1.0, 1 / ratio)
        p_1 = ratio * p_2
        spread = n_1 * p_1 * (1 - p_1) + n_2 * p_2 * (1 - p_2)
        square = (ratio * n_1 + n_2) ** 2
        rates.append((p_1, p_2, spread / (square - ratio**2 * n_1 - n_2)))
    return both_sides(*contrast_within(hits, rows, rates, ratio))


def greenland_robins(hits, rows):
    """(Delta, v) with v = sum k^2 (p1 q1 / n1 + p2 q2 / n2) / (sum k)^2: what there was before."""
    gap = v = total = 0.0
    for (x_1, x_2), (n_1, n_2) in zip(hits, rows, strict=True):
        k = n_1 * n_2 / (n_1 + n_2)
        p_1, p_2 = x_1 / n_1, x_2 / n_2
        gap += k * (p_1 - p_2)
        v += k**2 * (p_1 * (1 - p_1) / n_1 + p_2 * (1 - p_2) / n_2)
        total += k
    return gap / total, v / total**2


def logit_limits(theta, se, z, low=0.0, high=1.0):
    """l, u = expit(logit theta -+ z se / (theta (1 - theta))), of the place in [low, high]."""
    p, s = (theta - low) / (high - low), se / (high - low)
    ends = [
        1 / (1 + math.exp(-(math.log(p / (1 - p)) + k * z * s / (p * (1 - p))))) for k in (-1, 1)
    ]
    return tuple(low + (high - low) * end for end in ends)


def smoothed_limits(shares, z):
    """Limits of sum f x / n: (f, x, n) of different rows; of its place between its two ends.

    Logit limits with v = sum f^2 p (1 - p) / n at p = (x + 1) / (n + 2). Where all are at an end:
    the farthest sum with prod p^n = sf(z), the least p among many in two groups of rows.
    """
    value = sum(f * x / n for f, x, n in shares)
    low, high = (sum(end(f, 0.0) for f, _, _ in shares) for end in (min, max))
    if value in (low, high):
        level, (f, _, n), rest = stats.norm.sf(z), shares[0], shares[1:]
        first = np.linspace(level ** (1 / n), 1.0, GRID)
        if not rest:
            room = abs(f) * (1 - first[0])
        else:
            ((g, _, m),) = rest
            second = np.minimum((level / first**n) ** (1 / m), 1.0)
            room = float(np.max(abs(f) * (1 - first) + abs(g) * (1 - second)))
        return (low, low + room) if value == low else (high - room, high)
    smoothed = [(f, (x + 1) / (n + 2), n) for f, x, n in shares]
    v = sum(f**2 * p * (1 - p) / n for f, p, n in smoothed)
    return logit_limits(value, math.sqrt(v), z, low, high)


def wilson(x, n, z):
    """The p with |x / n - p| <= z sqrt(p (1 - p) / n): roots of a quadratic."""
    a, b, c = 1 + z**2 / n, -(2 * x / n + z**2 / n), (x / n) ** 2
    root = math.sqrt(max(b**2 - 4 * a * c, 0.0))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def mover(theta_1, limits_1, theta_2, limits_2):
    """L = d - sqrt((theta_1 - l_1)^2 + (u_2 - theta_2)^2), U = d + sqrt((u_1 - ...)^2 + ...)."""
    d = theta_1 - theta_2
    return (
        d - math.hypot(theta_1 - limits_1[0], limits_2[1] - theta_2),
        d + math.hypot(limits_1[1] - theta_1, theta_2 - limits_2[0]),
    )


def mover_pvalue(theta_1, limits_1, theta_2, limits_2, margin):
    """P(m): m <= d: L(z) = m, P = sf(z); m > d: U(z) = m, P = Phi(z); by a scan over z.

    ``limits`` are functions of z.
    """
    z = np.linspace(0, 12, 24_001)
    side = 0 if margin <= theta_1 - theta_2 else 1
    ends = np.array(
        [mover(theta_1, limits_1(value), theta_2, limits_2(value))[side] for value in z]
    )
    reached = ends <= margin if side == 0 else ends >= margin
    found = z[int(np.argmax(reached))] if reached.any() else math.inf
    return stats.norm.sf(found) if side == 0 else stats.norm.cdf(found)


def fisher_power(n_1, p_1, n_2, p_2, alpha=0.05, greater=False):
    """The probability that Fisher's exact test rejects: every table of every total is tested.

    Two-sided: as extreme is what lies as far from the expected count.
    """
    power = 0.0
    law_1, law_2 = stats.binom(n_1, p_1), stats.binom(n_2, p_2)
    first = int(law_1.ppf(1e-9) + law_2.ppf(1e-9))
    for total in range(first, int(law_1.isf(1e-9) + law_2.isf(1e-9)) + 1):
        x_1 = np.arange(max(0, total - n_2), min(n_1, total) + 1)
        share = stats.hypergeom(n_1 + n_2, total, n_1).pmf(x_1)
        far = x_1 - total * n_1 / (n_1 + n_2)
        far = far if greater else np.abs(far)
        order = np.argsort(-far, kind="stable")
        # The last of those that lie as far.
        last = np.searchsorted(-far[order], -far[order] + 1e-9, side="right") - 1
        p = np.cumsum(share[order])[last]
        rejected = order[p <= alpha * (1 + 1e-12)]
        hits = x_1[rejected]
        power += float((law_1.pmf(hits) * law_2.pmf(total - hits)).sum())
    return power


def casagrande_pike_smith(p_1, p_2, ratio=1.0, alpha=0.05, power=0.8):
    """n_1 of the exact test, n_2 = ratio n_1, as printed: n'/4 (1 + sqrt(1 + 2 (r + 1)/(r n' d)))^2
    with n' = (z_a sqrt((r + 1) pbar qbar) + z_b sqrt(r p_1 q_1 + p_2 q_2))^2 / (r d^2).
    """
    d, r = abs(p_1 - p_2), ratio
    middle = (p_1 + r * p_2) / (r + 1)
    plain = (
        stats.norm.isf(alpha / 2) * math.sqrt((r + 1) * middle * (1 - middle))
        + stats.norm.ppf(power) * math.sqrt(r * p_1 * (1 - p_1) + p_2 * (1 - p_2))
    ) ** 2 / (r * d**2)
    return plain / 4 * (1 + math.sqrt(1 + 2 * (r + 1) / (r * plain * d))) ** 2
