"""Values of two groups within strata, and tests of one gap, written as loops from the formulas."""

import math

from scipy import optimize, stats


def within(sums, people):
    """(value_1, value_2, share of people in strata with one group only).

    ``sums`` are, by stratum, ((a_1, d_1), (a_2, d_2)): value a / d, size d. A stratum that holds
    both groups weighs k = d_1 d_2 / (d_1 + d_2).
    """
    total = first = second = outside = everyone = 0.0
    for ((a, d), (b, e)), n in zip(sums, people, strict=True):
        everyone += n
        if d > 0 and e > 0:
            k = d * e / (d + e)
            total, first, second = total + k, first + k * a / d, second + k * b / e
        else:
            outside += n
    return first / total, second / total, outside / everyone


def breslow_day_tarone(tables):
    """(statistic, p) of tables ((x_1, n_1), (x_2, n_2)) by stratum; roots by bisection."""
    tables = [
        t for t in tables if t[0][1] and t[1][1] and 0 < t[0][0] + t[1][0] < t[0][1] + t[1][1]
    ]
    above = sum(x * (m - y) / (n + m) for (x, n), (y, m) in tables)
    below = sum(y * (n - x) / (n + m) for (x, n), (y, m) in tables)
    odds, statistic, off, spread = above / below, 0.0, 0.0, 0.0
    for (x, n), (y, m) in tables:
        t = x + y

        def departure(a, n=n, m=m, t=t):
            return a * (m - t + a) - odds * (t - a) * (n - a)

        a = optimize.brentq(departure, max(0, t - m), min(n, t), xtol=1e-13)
        v = 1 / (1 / a + 1 / (t - a) + 1 / (n - a) + 1 / (m - t + a))
        statistic += (x - a) ** 2 / v
        off, spread = off + x - a, spread + v
    statistic -= off**2 / spread
    return statistic, float(stats.chi2.sf(statistic, len(tables) - 1))


def cochran_q(rows):
    """Q of the gaps of means; ``rows`` are, by stratum, two lists of numbers."""
    gaps, weights = [], []
    for first, second in rows:
        gap, variance = 0.0, 0.0
        for sign, values in ((1, first), (-1, second)):
            mean = math.fsum(values) / len(values)
            gap += sign * mean
            squares = math.fsum((v - mean) ** 2 for v in values)
            variance += squares / (len(values) - 1) / len(values)
        gaps.append(gap)
        weights.append(1 / variance)
    mean = sum(w * g for w, g in zip(weights, gaps, strict=True)) / sum(weights)
    return sum(w * (g - mean) ** 2 for w, g in zip(weights, gaps, strict=True))
