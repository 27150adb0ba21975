"""Lenses of projection and extremes that bind, in the validity atlas.

Projection: equal groups, several rows of each person. With persons as clusters it is not run; rows
that are read as independent fail too often. Extremes: groups with equal levels of one row in 1,000,
of which one has two populations in its tail, and groups whose levels differ by exactly the
tolerance. Order statistics decide; intervals that rest on fits fail too often.
"""

import zlib
from dataclasses import dataclass

import numpy as np

import fairaudit_rs as fa
from atlas_tools import LEVELS, counted
from tests.reference.extremes_designs import beta, mixture

#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 2

#: Of tails, and of persons, which take less time.
AUDITS, AUDITS_OF_PERSONS = 100, 1_000
HORIZON = 1_000
#: Two populations in a tail, by the share of the smaller one.
MIXED = {
    0.003: mixture(0.003, beta(1, 1, 0.8), beta(2, 4, 0.3)),
    0.02: mixture(0.02, beta(8, 2), beta(2, 4, 0.5)),
}


def policy(lens, tolerance, level):
    return fa.Policy(
        name="tails",
        alpha=level,
        criteria=[fa.Criterion(lens=lens, tolerance=tolerance)],
        lenses=[lens],
        intersections="skip",
    )


@dataclass(frozen=True)
class Counted:
    """A scenario with a generator of its own, whose audits are made anew at each level."""

    levels = LEVELS[:2]

    @property
    def key(self):
        return f"{VERSION}:{self!r}:{self.audits}"

    @property
    def audits(self):
        return AUDITS

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        counts = counted((self.audit(rng) for _ in range(self.audits)), self.levels)
        return {"key": self.key, "audits": self.audits, "counts": counts}

    def audit(self, rng):
        data = self.data(rng)
        found = [self.words(data, level) for level in self.levels]
        return {rule: [value[rule] for value in found] for rule in self.counted}


@dataclass(frozen=True)
class PersonsProjected(Counted):
    """Equal groups and persons with several rows; whether clusters are said or not."""

    each: int
    counted = ("fail", "clusters ignored")
    persons = 400
    tolerance = 0.02

    @property
    def n(self):
        return self.each

    @property
    def audits(self):
        return AUDITS_OF_PERSONS

    def data(self, rng):
        group = np.repeat(rng.integers(0, 2, self.persons), self.each)
        own = np.repeat(1.5 * rng.normal(size=self.persons), self.each)
        score = 1 / (1 + np.exp(-own - 0.5 * rng.normal(size=len(group))))
        return {
            "y_pred": (score >= 0.5).astype(int),
            "y_score": score,
            "sensitive_features": {"g": group},
        }

    def words(self, data, level):
        given = data | {
            "policy": policy("projection", self.tolerance, level), "n_threads": 1, "rng": 1,
        }  # fmt: skip
        persons = np.repeat(np.arange(self.persons), self.each)
        found, ignored = fa.audit(**given, clusters=persons), fa.audit(**given)
        return {
            "fail": found.verdict == "fail",
            "clusters ignored": ignored.verdict == "fail",
        }


@dataclass(frozen=True)
class UnlikeTails(Counted):
    """A smooth tail and one of two populations, with equal levels or a gap of the tolerance."""

    share: float
    sizes: tuple
    gap: float
    counted = ("fail", "pass", "fitted")
    #: Where levels are equal; a pass is then right.
    tolerance = 0.01

    @property
    def n(self):
        return max(self.sizes)

    def laws(self):
        smooth, mixed = beta(2, 4), MIXED[self.share]
        ratio = mixed.level(1 / HORIZON) / smooth.level(1 / HORIZON)
        mixed = mixed.times(min(1 / ratio, 1))
        level = mixed.level(1 / HORIZON)
        return smooth.times((level - self.gap) / smooth.level(1 / HORIZON)), mixed

    def data(self, rng):
        gain = [law.sample(rng, n) for law, n in zip(self.laws(), self.sizes, strict=True)]
        return np.minimum(np.concatenate(gain), 0.999)

    def words(self, gain, level):
        tolerance = self.gap or self.tolerance
        found = fa.audit(
            y_pred=(gain > 0.1).astype(int),
            y_score=np.zeros(len(gain)),
            counterfactual_score=gain,
            sensitive_features={"g": np.repeat(["a", "b"], self.sizes)},
            policy=policy("extremes", tolerance, level),
            n_threads=1,
        )
        [pair] = found.results["extremes: ecd by g"].comparisons
        return {
            "fail": found.verdict == "fail",
            "pass": found.verdict == "pass",
            "fitted": pair.low > tolerance or pair.high < -tolerance,
        }


def scenarios():
    sizes = ((1_000, 1_000), (400, 400), (3_000, 3_000), (10_000, 1_000))
    yield from (PersonsProjected(each) for each in (3, 5))
    for share in MIXED:
        yield from (UnlikeTails(share, each, 0) for each in sizes)
        # At 5 % these levels are measured: the test takes order statistics, too.
        yield from (UnlikeTails(share, (4_000, 4_000), gap) for gap in (0, 0.1))
    yield UnlikeTails(0.02, (1_000, 1_000), 0.1)
