"""What other lenses find beside verdicts where there is nothing to find, in the validity atlas.

A model uses one feature, which goes with no attribute. Sex goes with another feature, race with
none: the direction in which races differ is noise, and if it cost nothing, any feature would.
"""

import zlib
from collections import Counter
from dataclasses import dataclass

import numpy as np

import fairaudit_rs as fa
from fairaudit_rs.auditing.seeds import seed_of

#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 1

AUDITS = 100
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


def scenarios():
    return [NoStandIn(n) for n in (3, 10, 30)]
