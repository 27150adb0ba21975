"""Rows that are no sample of a smooth law in the extremes atlas: ties, persons, bounds of rows."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from atlas_extremes_counts import Limits, Scenario, Scores
from atlas_extremes_pairs import Rejections
from fairaudit_rs import _native
from fairaudit_rs.extremes.comparison import compare_return_levels
from fairaudit_rs.extremes.pairs import group_tail
from fairaudit_rs.extremes.problem import TailProblem
from fairaudit_rs.extremes.question import ROW_BOUNDS, GroupDiscrimination
from tests.reference.extremes_designs import ALL, LAWS, beta, mixture

#: Rows over horizon.
RATIOS = (4, 1, 0.25)
#: Above it order statistics limit a level from both sides.
LEAST_MEASURED = 3.69
GRID = 0.01
#: Of rows: no difference, below 0, above it.
ZEROS, BELOW = 0.3, 0.35
ABOVE = 1 - ZEROS - BELOW
GRIDDED = {
    ".8 beta(2, 4)": beta(2, 4, 0.8),
    ".05 exponential": ALL[".05 exponential"],
    ".02 exponential": LAWS["exponential"].times(0.02, 1.0),
    ".01 exponential": LAWS["exponential"].times(0.01, 1.0),
    ".3 uniform": beta(1, 1, 0.3),
}
ROUNDING = 1e-9


class Horizons:
    """The counts at each horizon: ours, each value by itself, and the user's answer."""

    def __init__(self, n, level, seen=lambda x: x):
        self.horizons = [n / ratio for ratio in RATIOS]
        self.truths = [level(1 / m) for m in self.horizons]
        #: The levels of what is seen of the values.
        self.seen = [seen(truth) for truth in self.truths]
        self.ours = [Scores() for _ in RATIOS]
        self.alone = [Scores() for _ in RATIOS]
        self.primary = [Limits() for _ in RATIOS]
        self.free = [Limits() for _ in RATIOS]
        self.reasons = Counter()

    def add(self, values, upper, call):
        ours = TailProblem(values=values, upper=upper)
        alone = TailProblem(values=values, upper=upper, ties=False)
        self.reasons[kind_of(ours)] += 1
        for place, (m, truth) in enumerate(zip(self.horizons, self.truths, strict=True)):
            for problem, scores in ((ours, self.ours[place]), (alone, self.alone[place])):
                if problem.reaches(m):
                    scores.add(problem.fit, m, truth, problem.cuts(m, call), call)
                else:
                    scores.refused += 1
            found = ours.level(m, call)
            # Order statistics limit levels of what is seen; the fit those of what lies behind it.
            at = self.seen[place] if found.standing == "measured" else truth
            self.primary[place].add(found.low - ROUNDING, found.high + ROUNDING, at)
            self.free[place].add(found.lower_free - ROUNDING, np.inf, self.seen[place])

    def entry(self):
        cells = [
            {
                "rows_over_horizon": ratio,
                "ours": self.ours[place].entry(),
                "alone": self.alone[place].entry(),
                "primary": self.primary[place].entry(),
                "free": self.free[place].entry(),
            }
            for place, ratio in enumerate(RATIOS)
        ]
        return {"cells": cells, "fits": dict(self.reasons)}


def kind_of(problem):
    """How a tail is fitted."""
    if problem.fit is None:
        return "none"
    return "cells" if problem.fit_basis.resolution is not None else "values"


@dataclass(frozen=True)
class Gridded(Scenario):
    """Scores on a grid of 0.01: 30 % of rows without a difference, 35 % below 0."""

    law: str
    n: int
    audits: int = 800
    part = "grid"

    def measure(self):
        law, rng, call = GRIDDED[self.law], self.rng(), _native.Call(1)
        counted = Horizons(self.n, lambda q: law.level(q / ABOVE), on_grid)
        for _ in range(self.audits):
            counted.add(on_grid(rows_of(law, rng, self.n)), 1.0, call)
        return counted.entry()


def rows_of(law, rng, n):
    which = rng.random(n)
    sizes = law.sample(rng, n)
    return np.where(which < ZEROS, 0.0, np.where(which < ZEROS + BELOW, -sizes, sizes))


def on_grid(values):
    return np.rint(np.asarray(values) / GRID) * GRID


COPIES = {
    "each row once to three times": (1 / 3, 1 / 3, 1 / 3),
    "each twentieth row twice": (0.95, 0.05),
    "each fifth row twice": (0.8, 0.2),
}


@dataclass(frozen=True)
class Copied(Scenario):
    """Rows of a smooth law of which some are there several times: ties on no grid."""

    copies: str
    law: str
    n: int
    audits: int = 800
    part = "copies"

    def measure(self):
        law, rng, call = LAWS[self.law], self.rng(), _native.Call(1)
        counted, shares = Horizons(self.n, law.level), COPIES[self.copies]
        for _ in range(self.audits):
            times = 1 + rng.choice(len(shares), self.n, p=shares)
            counted.add(np.repeat(law.sample(rng, self.n), times)[: self.n], law.upper, call)
        return counted.entry()


ROWS_OF_ONE = 3


@dataclass(frozen=True)
class Clustered(Scenario):
    """Three rows of each person with a Gaussian copula, taken for rows of their own.

    With a correlation of 1 they are equal: each value then counts by itself in both.
    """

    law: str
    n: int
    correlation: float
    audits: int = 800
    part = "clusters"

    def measure(self):
        law, rng, call = LAWS[self.law], self.rng(), _native.Call(1)
        counted, tests = Horizons(self.n, law.level), {}
        for number in range(self.audits):
            counted.add(self.rows(law, rng), law.upper, call)
            if number >= self.audits // 2:
                continue
            for ratio in (2, 8):
                tails = [
                    TailProblem(values=self.rows(law, rng), upper=law.upper, ties=False)
                    for _ in range(2)
                ]
                found = compare_return_levels(*tails, self.n / ratio, call)
                tests.setdefault(ratio, Rejections()).add(found.pvalue)
        said = [{"rows_over_horizon": ratio, **test.entry()} for ratio, test in tests.items()]
        return {**counted.entry(), "tests": said}

    def rows(self, law, rng):
        persons = -(-self.n // ROWS_OF_ONE)
        own = np.repeat(rng.standard_normal(persons), ROWS_OF_ONE)[: self.n]
        rest = rng.standard_normal(self.n)
        mixed = np.sqrt(self.correlation) * own + np.sqrt(1 - self.correlation) * rest
        return law.level(stats.norm.sf(mixed))


def shares_of_a_logistic_model(effect=1.5):
    """The share 1 - (1 + e^x) / (1 + e^(x + effect)) of the room, x normal: it grows with x."""

    def share(x):
        return 1 - np.exp(np.logaddexp(0, x) - np.logaddexp(0, x + effect))

    def draw(rng, n):
        x = rng.standard_normal(n)
        return special.expit(x), share(x)

    return draw, lambda q: share(stats.norm.isf(q))


def shares_apart(law):
    """Shares that do not go with the score."""
    return lambda rng, n: (rng.random(n), law.sample(rng, n)), law.level


def shares_with_the_score():
    """Shares of one law where the score is below 0.5, of another above."""
    low, high = beta(2, 4), beta(2, 2)

    def draw(rng, n):
        score = rng.random(n)
        return score, np.where(score < 0.5, low.sample(rng, n), high.sample(rng, n))

    return draw, mixture(0.5, low, high).level


SHARES = {
    "beta(2, 4), apart from the score": shares_apart(beta(2, 4)),
    "beta(2, 1.2), apart from the score": shares_apart(beta(2, 1.2)),
    "beta(2, 4) or beta(2, 2), by the score": shares_with_the_score(),
    "a logistic model": shares_of_a_logistic_model(),
}
#: Rows whose score is 1 already.
FULL = 0.1


@dataclass(frozen=True)
class Bounded(Scenario):
    """`upper="row"`: the tail is that of shares of the room 1 - f(x, z); a tenth has none."""

    shares: str
    n: int
    audits: int = 800
    part = "row bounds"

    def measure(self):
        draw, level = SHARES[self.shares]
        rng, call = self.rng(), _native.Call(1)
        full = int(FULL * self.n)
        counted = Horizons(self.n - full, level)
        for _ in range(self.audits):
            score, share = draw(rng, self.n)
            score[:full], share[:full] = 1.0, 0.0
            group = GroupDiscrimination(
                name="a",
                discrimination=(1 - score) * share,
                score=score,
                rows=np.arange(self.n),
            )
            tail = group_tail(group, ROW_BOUNDS, None, 0.95)
            if tail.n_no_room != full:
                raise RuntimeError(f"{tail.n_no_room} rows without room; {full} were made")
            counted.add(tail.problem.values, tail.problem.upper, call)
        return counted.entry()


def scenarios():
    for n in (500, 2_000):
        yield from (Gridded(law, n) for law in GRIDDED)
        for copies in COPIES:
            yield from (Copied(copies, law, n) for law in ("beta(2, 4)", "exponential"))
        for law in ("beta(2, 4)", "exponential"):
            yield from (Clustered(law, n, rho) for rho in (0.0, 0.5, 0.9, 1.0))
        yield from (Bounded(shares, n) for shares in SHARES)
