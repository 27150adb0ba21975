"""Whole audits in the validity atlas: a population with known gaps, and how verdicts of it err.

One population of three attributes with 2, 3 and 2 groups, the smallest with a tenth of the people.
The first group of each attribute is worse off by as much: fewer positive labels, and a model that
finds fewer of them. Gaps of ten metrics are known to the last digits, and each question tolerates
exactly its own; or there are none, and the question is how many rows a pass takes.
"""

import zlib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

import numpy as np
from scipy import special, stats

import fairaudit_rs as fa
from atlas_tools import ALPHA

#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 2

ATTRIBUTES = {"a": (0.1, 0.9), "b": (0.1, 0.3, 0.6), "c": (0.3, 0.7)}
METRICS = (
    "selection_rate", "true_positive_rate", "false_positive_rate", "positive_predictive_value",
    "negative_predictive_value", "accuracy", "f1", "auc", "mean_prediction", "brier_score",
)  # fmt: skip
SIZES = (500, 1_000, 2_000, 5_000)
AUDITS = 1_000
#: Of audits without gaps.
SIZES_OF_PASSES = (2_000, 5_000, 10_000, 20_000)
AUDITS_OF_PASSES = 500
POLICIES = {
    "selection rate, 0.10": {"selection_rate": 0.1},
    "TPR, 0.10": {"true_positive_rate": 0.1},
    "TPR and FPR, 0.10": {"true_positive_rate": 0.1, "false_positive_rate": 0.1},
    "TPR, 0.05": {"true_positive_rate": 0.05},
}

#: Of the people in no first group: the share of positive labels, and the means of a normal score
#: of both labels. Each first group that someone belongs to adds `STEP` to them.
PLAIN = np.array([0.4, 0.78, -1.0])
STEP = np.array([-0.06, -0.25, 0.12])

#: Nodes and weights of integrals over a standard normal law.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def audited(criteria, *, rng=1, n_resamples=9_999, policy=None, **columns):
    """The audit of a policy that asks (metric, options) and nothing beside."""
    asked = fa.Policy(
        name="atlas",
        criteria=[fa.Criterion(metric=metric, **options) for metric, options in criteria],
        intersections="skip",
        lenses=("permutation",),
        **(policy or {}),
    )
    return fa.audit(
        **columns, policy=asked, evidence="none", rng=rng, n_resamples=n_resamples, n_threads=1
    )


def pairs_of(audit):
    """All pairs that were tested."""
    return [pair for question in audit.questions for pair in question.pairs]


# --- the population -----------------------------------------------------------------------------


def law_of(gap, places):
    """(share of positive labels, mean score of positives, of negatives) of people in groups."""
    return PLAIN + gap * STEP * sum(place == 0 for place in places)


@cache
def truth(gap, attribute, group):
    """The ten metrics of a group, which is a mixture of people in other groups."""
    others = [
        [
            (place, share)
            for place, share in enumerate(shares)
            if name != attribute or place == group
        ]
        for name, shares in ATTRIBUTES.items()
    ]
    mixture = list(product(*others))
    share = np.array([np.prod([s for _, s in row]) for row in mixture])
    share /= share.sum()
    base, *means = np.array([law_of(gap, [place for place, _ in row]) for row in mixture]).T
    weights = [share * base, share * (1 - base)]
    (tp, fp), (fn, tn) = (
        [float(w @ stats.norm.cdf(side * m)) for w, m in zip(weights, means, strict=True)]
        for side in (1, -1)
    )
    score, loss = 0.0, 0.0
    for label, w, m in zip((1, 0), weights, means, strict=True):
        s = special.ndtr(m[:, None] + NODES)
        score += float(w @ (s @ WEIGHTS))
        loss += float(w @ ((label - s) ** 2 @ WEIGHTS))
    above = stats.norm.cdf((means[0][:, None] - means[1]) / np.sqrt(2))
    auc = float(weights[0] @ above @ weights[1] / (weights[0].sum() * weights[1].sum()))
    return {
        "selection_rate": tp + fp,
        "true_positive_rate": tp / (tp + fn),
        "false_positive_rate": fp / (fp + tn),
        "positive_predictive_value": tp / (tp + fp),
        "negative_predictive_value": tn / (tn + fn),
        "accuracy": tp + tn,
        "f1": 2 * tp / (2 * tp + fp + fn),
        "auc": auc,
        "mean_prediction": score,
        "brier_score": loss,
    }


def gap_of(metric, attribute):
    """The largest true gap of the groups of an attribute."""
    groups = range(len(ATTRIBUTES[attribute]))
    values = [truth(1, attribute, group)[metric] for group in groups]
    return max(abs(pair - other) for pair, other in combinations(values, 2))


def people(rng, n, gap):
    """Columns of so many people."""
    places = {name: rng.choice(len(shares), n, p=shares) for name, shares in ATTRIBUTES.items()}
    n_first = sum(place == 0 for place in places.values())
    base, high, low = PLAIN[:, None] + gap * STEP[:, None] * n_first
    label = rng.random(n) < base
    score = np.where(label, high, low) + rng.normal(size=n)
    return {
        "y_true": label.astype(int),
        "y_pred": (score > 0).astype(int),
        "y_score": special.ndtr(score),
        "sensitive_features": {
            name: np.array(list("xyz"))[place] for name, place in places.items()
        },
    }


# --- what is measured ---------------------------------------------------------------------------


@dataclass(frozen=True)
class AtTheTolerance:
    """All questions tolerate their true gap: 50 pairs, of which 40 lie exactly at a tolerance."""

    n: int

    @property
    def key(self):
        return f"{VERSION}:family:{self.n}:{AUDITS}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        criteria = [
            (metric, {"tolerance": gap_of(metric, name), "attributes": (name,)})
            for metric in METRICS
            for name in ATTRIBUTES
        ]
        counts, passes, quiet = Counter(), Counter(), Counter()
        n_pairs = []
        for audit in range(AUDITS):
            found = audited(criteria, rng=audit, **people(rng, self.n, 1))
            pairs = pairs_of(found)
            n_pairs.append(len(pairs))
            counts["fail"] += found.verdict == "fail"
            counts["pass"] += found.verdict == "pass"
            counts["unadjusted"] += any(pair.test.p_fail <= ALPHA for pair in pairs)
            for question in found.questions:
                name = f"{question.metric} by {question.attribute}"
                passes[name] += question.verdict == "pass"
                quiet[name] += bool(question.pairs) and not any(map(differs, question.pairs))
            counts.update(broken(found, len(pairs)))
        return {
            "key": self.key,
            "audits": AUDITS,
            "pairs": float(np.mean(n_pairs)),
            "counts": dict(counts),
            "passes": dict(passes),
            "quiet": dict(quiet),
        }


def differs(pair, level=ALPHA):
    """Return whether two groups differ significantly by the z test with observed variances."""
    error = pair.test.standard_error
    z = abs(pair.test.estimate) / error if error > 0 else np.inf
    return 2 * stats.norm.sf(z) <= level


def broken(audit, n_pairs):
    """Which rules that do not hold would fail an audit."""
    point = delta = False
    for question in audit.questions:
        tolerance = question.tolerance.value
        for pair in question.pairs:
            point |= pair.test.estimate > tolerance
            delta |= delta_p(pair.test.estimate, pair.test.standard_error, tolerance) <= (
                ALPHA / n_pairs
            )
    return {"point": int(point), "delta": int(delta)}


def delta_p(gap, error, tolerance):
    """p of a fail by the normal law with the variances that are seen, however few the rows."""
    if not error > 0:
        return float(gap <= tolerance)
    return min(1.0, sum(float(stats.norm.sf((gap + end * tolerance) / error)) for end in (-1, 1)))


@dataclass(frozen=True)
class WithoutGaps:
    """A model without gaps: how often is it told so?"""

    policy: str
    n: int

    @property
    def key(self):
        return f"{VERSION}:passes:{self.policy}:{self.n}:{AUDITS_OF_PASSES}"

    def measure(self):
        # The same people for all policies.
        rng = np.random.default_rng(zlib.crc32(f"passes:{self.n}".encode()))
        criteria = [(metric, {"tolerance": t}) for metric, t in POLICIES[self.policy].items()]
        counts = Counter()
        for audit in range(AUDITS_OF_PASSES):
            columns = people(rng, self.n, 0)
            del columns["y_score"]
            found = audited(criteria, rng=audit, **columns)
            counts[found.verdict] += 1
            counts["quiet"] += not any(map(differs, pairs_of(found)))
        return {"key": self.key, "audits": AUDITS_OF_PASSES, "counts": dict(counts)}


def scenarios():
    return [
        *(AtTheTolerance(n) for n in SIZES),
        *(WithoutGaps(policy, n) for policy in POLICIES for n in SIZES_OF_PASSES),
    ]
