"""The individual lens of audits in the validity atlas: beside a verdict, and where it binds.

Beside a verdict: a model uses one feature, which goes with no attribute. Sex goes with another
feature, race with none: the direction in which races differ is noise, and if it cost nothing, any
feature would.

Where it binds: the growth of the loss is exactly the tolerance, under the metric of all people. The
lens has that metric from the policy, or the profile of the direction that is fitted to its rows.
"""

import zlib
from collections import Counter
from dataclasses import dataclass

import numpy as np

import fairaudit_rs as fa
from atlas_tools import LEVELS, counted
from fairaudit_rs.auditing.seeds import seed_of

#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 2

#: Beside a verdict; where the lens binds by a metric that is given, or by the profile.
AUDITS, AUDITS_GIVEN, AUDITS_OF_PROFILES = 100, 400, 120
ROWS = 1_000
#: What `individual_test` takes for too much.
TOO_MUCH = 1.25


@dataclass(frozen=True)
class NoStandIn:
    """The individual lens of an audit by two attributes, of which none plays a part."""

    n_features: int
    counted = ("found", "without the rule")

    @property
    def n(self):
        return 4

    @property
    def key(self):
        return f"{VERSION}:lenses:{self.n_features}:{AUDITS}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        counts = Counter(dict.fromkeys(self.counted, 0))
        for audit in range(AUDITS):
            counts.update(self.audit(rng, audit))
        return {"key": self.key, "audits": AUDITS, "counts": dict(counts)}

    def audit(self, rng, seed):
        X = rng.normal(size=(ROWS, self.n_features))
        groups = {
            "sex": np.where(X[:, 1] + rng.normal(size=ROWS) > 0, "m", "f"),
            "race": rng.choice(["a", "b"], ROWS),
        }
        model = fa.LinearModel([1.0, *[0.0] * (self.n_features - 1)])
        label = (rng.random(ROWS) < model.predict_proba(X)).astype(int)
        found = fa.audit(
            label, model.decision(X).astype(int), sensitive_features=groups, model=model, X=X,
            lenses=["individual"], rng=seed, n_threads=1,
        )  # fmt: skip
        [ours] = found.others
        everything = fa.FairMetric.subspace(X, groups, standardize=True)
        bare = fa.individual_test(
            model, X, label, fair_metric=everything, n_threads=1,
            rng=seed_of(seed, "individual", "sex and race"),
        )  # fmt: skip
        return {
            "found": int(ours.low > TOO_MUCH),
            "without the rule": int(bare.confidence_interval[0] > TOO_MUCH),
        }


#: By name: the direction of sex, the coefficients of the model, and rows.
DESIGNS = {
    "4 features, sex strongly in X": ((1.5, 1.0, 0, 0), (0.3, 0.8, 1.0, 0), 1_000),
    "10 features, sex weakly in X, fair model": ((0.3, *[0] * 9), (0, 0, 1, 1, *[0] * 6), 1_000),
    "10 features, sex weakly in X, model uses it": (
        (0.3, *[0] * 9), (0.6, 0.6, 1, 1, *[0] * 6), 1_000
    ),
    "6 features": ((0.7, 0.7, *[0] * 4), (0.5, 0.5, 0.5, 0, 0, 0), 4_000),
}  # fmt: skip


@dataclass(frozen=True)
class AtTheGrowth:
    """A binding individual lens whose growth of the loss is the tolerance."""

    design: str
    given: bool
    levels = LEVELS[:2]
    counted = ("fail", "pass", "fitted fails", "fitted passes")

    @property
    def n(self):
        return 4 + len(DESIGNS[self.design][0])

    @property
    def key(self):
        metric = "given" if self.given else "profile"
        return f"{VERSION}:growth:{self.design}:{metric}:{self.audits}"

    @property
    def audits(self):
        return AUDITS_GIVEN if self.given else AUDITS_OF_PROFILES

    def __str__(self):
        return f"{self.design}, metric {'given' if self.given else 'by its profile'}"

    @property
    def names(self):
        return [f"x{place}" for place in range(len(DESIGNS[self.design][0]))]

    def people(self, n, rng):
        direction, coef, _ = DESIGNS[self.design]
        X = rng.normal(size=(n, len(coef)))
        model = fa.LinearModel(coef)
        label = (rng.random(n) < model.predict_proba(X)).astype(int)
        man = rng.random(n) < 1 / (1 + np.exp(-X @ np.array(direction)))
        return X, label, np.where(man, "m", "f"), model

    def growth(self):
        """The growth of the loss of all people, under their own metric."""
        X, label, _, model = self.people(400_000, np.random.default_rng(1))
        metric = fa.FairMetric.directions([DESIGNS[self.design][0]])
        return fa.individual_test(model, X, label, fair_metric=metric, n_threads=1).estimate

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        growth = self.growth()
        audits = (self.audit(rng, audit, growth) for audit in range(self.audits))
        counts = counted(audits, self.levels)
        return {"key": self.key, "audits": self.audits, "counts": counts, "growth": growth}

    def audit(self, rng, seed, growth):
        people = self.people(DESIGNS[self.design][2], rng)
        found = [self.words(people, seed, growth, level) for level in self.levels]
        return {rule: [value[rule] for value in found] for rule in self.counted}

    def words(self, people, seed, growth, level):
        X, label, sex, model = people
        direction, _, _ = DESIGNS[self.design]
        metric = {"directions": [dict(zip(self.names, direction, strict=True))]}
        criterion = fa.Criterion(
            lens="individual", tolerance=growth, fair_metric=metric if self.given else None
        )
        found = fa.audit(
            label, model.decision(X).astype(int), sensitive_features={"sex": sex}, model=model,
            X=X, policy=fa.Policy(name="growth", criteria=[criterion], alpha=level),
            lenses=["individual"], n_resamples=999, rng=seed, n_threads=1,
        )  # fmt: skip
        fitted = fa.individual_test(
            model, X, label, fair_metric=fa.FairMetric.subspace(X, sex, standardize=True),
            n_threads=1, confidence_level=1 - level,
        )  # fmt: skip
        return {
            "fail": found.verdict == "fail",
            "pass": found.verdict == "pass",
            "fitted fails": fitted.lower_bound > growth,
            "fitted passes": fitted.upper_bound < growth,
        }


def scenarios():
    binding = [AtTheGrowth(name, given) for name in DESIGNS for given in (True, False)]
    return [*(NoStandIn(n) for n in (3, 10, 30)), *binding]
