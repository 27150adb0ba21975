"""p-values, bounds and required rows of two shares in a random audit, by SciPy and bisection.

Only where rows count alike: no weights and no clusters. Within strata the sums of the slow
reference are taken.
"""

import math
from functools import cached_property

import numpy as np
from scipy import optimize, stats

from ..reference import proportions, tolerance

PROMISED = 0.8


def restricted(x, n, y, m, margin, ratio):
    """The most likely shares (p, q) with p = ratio q + margin: the log likelihood is concave."""
    low = max(0.0, -margin / ratio)
    high = min(1.0, (1.0 - margin) / ratio)

    def slope(q):
        p = min(max(ratio * q + margin, 1e-15), 1 - 1e-15)
        q = min(max(q, 1e-15), 1 - 1e-15)
        return ratio * (x / p - (n - x) / (1 - p)) + y / q - (m - y) / (1 - q)

    if slope(low) <= 0:
        q = low
    elif slope(high) >= 0:
        q = high
    else:
        q = optimize.brentq(slope, low, high, xtol=1e-15)
    return min(max(ratio * q + margin, 0.0), 1.0), q


def sides(x, n, y, m, margin=0.0, ratio=1.0):
    """(P, P') of p - ratio q = margin: of "at most" and of "at least"."""
    if ratio != 1.0 and x + y == 0:
        return 1.0, 1.0
    p, q = restricted(x, n, y, m, margin, ratio)
    variance = p * (1 - p) / n + ratio**2 * q * (1 - q) / m
    third = p * (1 - p) * (1 - 2 * p) / n**2 - ratio**3 * q * (1 - q) * (1 - 2 * q) / m**2
    return proportions.both_sides(x / n - ratio * y / m - margin, variance, third)


class Compared:
    """Two groups of a question: hits and rows by stratum."""

    def __init__(self, world, asked, first, second):
        self.world, self.asked = world, asked
        above, below = world.terms(asked.metric)
        groups = [world.groups[asked.attribute][name] for name in (first, second)]
        names = [None] if world.stratum is None else np.unique(world.stratum)
        self.hits, self.rows = [], []
        for name in names:
            at = np.ones(world.n, dtype=bool) if name is None else world.stratum == name
            self.hits.append(tuple(int(above[rows & at].sum()) for rows in groups))
            self.rows.append(tuple(int(below[rows & at].sum()) for rows in groups))
        found = world.compared(asked.metric, asked.attribute, first, second)
        self.values = found.first, found.second
        self.better = world.better(asked.metric) if world.one_sided(asked) else None
        if self.better is not None and asked.criterion.reference == world.plain(first):
            self._turn()

    def _turn(self):
        self.hits = [pair[::-1] for pair in self.hits]
        self.rows = [pair[::-1] for pair in self.rows]
        self.values = self.values[::-1]

    @staticmethod
    def is_known(world, asked):
        """Return whether the tests of a question are those of counts."""
        from .words import METRICS

        return METRICS[asked.metric].is_share and not world.weighted and world.clusters is None

    def at(self, margin=0.0, ratio=1.0):
        """(P, P') of the first less ratio times the second."""
        if len(self.hits) == 1 and self.world.stratum is None:
            (x, y), (n, m) = self.hits[0], self.rows[0]
            return sides(x, n, y, m, margin, ratio)
        if margin:
            return proportions.difference_within(self.hits, self.rows, margin)
        return proportions.ratio_within(self.hits, self.rows, ratio) if ratio != 1.0 or (
            self.asked.scale == "ratio"
        ) else proportions.difference_within(self.hits, self.rows, 0.0)  # fmt: skip

    def pvalues(self, tol):
        """(p_fail, p_pass) of a tolerance."""
        if self.asked.scale == "difference":
            if self.values[0] < self.values[1]:
                self._turn()
            if tol >= 1:
                return 1.0, 0.0
            return tolerance.of_tails(lambda m: self.at(m)[0], lambda m: self.at(m)[1], tol)
        if self.better is not None:
            if self.better == "lower":
                self._turn()
                greater, less = self.at(ratio=tol)
                self._turn()
                return less, greater
            greater, less = self.at(ratio=tol)
            return less, greater
        if self.values[0] > self.values[1]:
            self._turn()
        low, high = (self.at(ratio=r) for r in (tol, 1 / tol))
        return min(1.0, low[1] + high[1]), max(low[0], high[1])

    @cached_property
    def p_equal(self):
        """p of equal shares, twice the smaller side; NaN where all rows are alike."""
        n_hits, n_rows = (sum(map(sum, counts)) for counts in (self.hits, self.rows))
        return math.nan if n_hits in (0, n_rows) else min(1.0, 2 * min(self.at()))

    @property
    def error(self):
        """The standard error of the difference, or of the log of the ratio; without strata."""
        (x, y), (n, m) = self.hits[0], self.rows[0]
        p, q = x / n, y / m
        if self.asked.scale == "difference":
            return math.sqrt(p * (1 - p) / n + q * (1 - q) / m)
        return math.sqrt((1 - p) / x + (1 - q) / y)


def p_equal(world, asked, first, second):
    """p of equal values of two groups; NaN where it is not that of counts."""
    if not Compared.is_known(world, asked):
        return math.nan
    return Compared(world, asked, first, second).p_equal


def times_to_pass(world, asked):
    """By how much all groups must grow for all pairs of a question to pass in 8 of 10 audits."""
    pairs, alpha = world.pairs_shown(asked), world.policy.alpha
    limit = asked.tolerance if asked.scale == "difference" else -math.log(asked.tolerance)
    names = sorted({name for pair in pairs for name in pair})
    rng, z = np.random.default_rng(3), stats.norm.isf(alpha)
    values, spread, errors = [], [], {}
    for name in names:
        rows = world.groups[asked.attribute][name]
        value, n = world.value(asked.metric, rows), world.n_eligible(asked.metric, rows)
        if asked.scale == "ratio" and value == 0:
            return math.inf
        values.append(value if asked.scale == "difference" else math.log(value))
        share = value * (1 - value) / n
        spread.append(math.sqrt(share if asked.scale == "difference" else share / value**2))
    for a, b in pairs:
        i, j = names.index(a), names.index(b)
        errors[i, j] = math.hypot(spread[i], spread[j])
        if abs(values[i] - values[j]) >= limit:
            return math.inf
    noise = rng.standard_normal((8_000, len(names))) * spread

    def share(root):
        fits = np.ones(len(noise), dtype=bool)
        for (i, j), error in errors.items():
            gap = values[i] - values[j] + (noise[:, i] - noise[:, j]) / root
            fits &= np.abs(gap) + z * error / root <= limit
        return fits.mean()

    low, high = 0.0, 1.0
    while share(high) < PROMISED:
        high *= 2
        if high > 1e6:
            return math.inf
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (low, middle) if share(middle) >= PROMISED else (middle, high)
    return high**2


def times_to_fail(world, asked, first, second):
    """By how much all groups must grow for two of them to fail in 8 of 10 audits."""
    pair = Compared(world, asked, first, second)
    limit, gap = asked.tolerance, abs(pair.values[0] - pair.values[1])
    if asked.scale == "ratio":
        limit, gap = -math.log(limit), abs(math.log(pair.values[0] / pair.values[1]))
    z = stats.norm.isf(world.each(asked)) + stats.norm.ppf(PROMISED)
    return (z * pair.error / (gap - limit)) ** 2


def can_tell_rows(world, asked):
    """Return whether the required rows are those of plain shares in both directions."""
    return Compared.is_known(world, asked) and world.stratum is None and not world.one_sided(asked)


def adjusted(world, pvalues):
    """Holm's p-values of a family in which further comparisons are not rejected."""
    if world.policy.adjustment == "none":
        return pvalues
    found = tolerance.holm([*pvalues, *[1.0] * (world.n_tests - len(pvalues))])
    return found[: len(pvalues)]
