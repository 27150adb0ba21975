"""Low rates and few rows of a label in the validity atlas: laws that are skewed.

Each scenario counts how often `fa.audit` errs with every gap at its tolerance, and how often the
rule errs that was there before: the score alone, Sato's variance at the estimate, the logarithm of
a ratio, limits of balanced accuracy that are made of Wilson's.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from atlas_audit_families import audited
from atlas_audit_pairs import Scenario, sizes, words
from fairaudit_rs.inference import mover
from fairaudit_rs.inference.proportions import farrington_manning, wilson
from fairaudit_rs.inference.strata import mantel_haenszel

AUDITS = 10_000


@dataclass(frozen=True)
class LowRates(Scenario):
    """Attributes with one small group each, beside one large group: a false positive rate."""

    attributes: int
    rows: int
    rate: float
    of_large: float
    large: int = 3_000
    counted = ("fail", "pass", "score alone")

    @property
    def label(self):
        return f"{self.attributes} false positive rate(s), {self.rate:g} and {self.of_large:g}"

    @property
    def groups(self):
        return sizes((self.rows, self.large))

    @property
    def audits(self):
        return AUDITS

    def audit(self, rng, seed):
        m, tolerance = self.attributes, self.rate - self.of_large
        hits, of_large = (
            rng.binomial(self.rows, self.rate, m),
            rng.binomial(self.large, self.of_large),
        )
        # The small groups of two attributes are empty.
        decision = [np.arange(self.rows) < x for x in hits]
        decision = np.concatenate([*decision, np.arange(self.large) < of_large]).astype(int)
        features = {}
        for k in range(m):
            group = np.full(len(decision), "large", dtype=object)
            group[: m * self.rows] = "none"
            group[k * self.rows : (k + 1) * self.rows] = "small"
            features[f"a{k}"] = np.where(group == "none", None, group)
        found = audited(
            [("false_positive_rate", {"tolerance": tolerance})],
            y_true=np.zeros(len(decision), int), y_pred=decision, sensitive_features=features,
            rng=seed,
        )  # fmt: skip
        scores = [
            farrington_manning(x, self.rows, of_large, self.large, tolerance).plain
            for x in hits.tolist()
        ]
        return words(found) | {"score alone": m * float(stats.norm.sf(max(scores)))}


@dataclass(frozen=True)
class WithinStrata(Scenario):
    """Selection rates in strata of one design: a difference, or four fifths."""

    strata: int
    rows: tuple[int, int]
    base: tuple[float, float]
    scale: str
    tolerance: float
    counted = ("fail", "pass", "normal law")

    @property
    def label(self):
        low, high = self.base
        return (
            f"{self.scale} of {self.tolerance:g} in {self.strata} strata, rates {low:g} to {high:g}"
        )

    @property
    def groups(self):
        return sizes(self.rows)

    @property
    def audits(self):
        return AUDITS

    def audit(self, rng, seed):
        second = rng.uniform(*self.base, self.strata)
        first = self.tolerance * second if self.scale == "ratio" else second + self.tolerance
        hits = rng.binomial(self.rows, np.stack([first, second], axis=1))
        cells = [(s, g, n, hits[s, g]) for s in range(self.strata) for g, n in enumerate(self.rows)]
        size = [n for _, _, n, _ in cells]
        options = {"ratio" if self.scale == "ratio" else "tolerance": self.tolerance}
        found = audited(
            [("selection_rate", options)],
            y_pred=np.concatenate([np.arange(n) < x for _, _, n, x in cells]).astype(int),
            sensitive_features={"g": np.repeat([g for _, g, _, _ in cells], size)},
            strata=np.repeat([s for s, _, _, _ in cells], size),
            rng=seed,
        )
        rows = np.tile(np.array(self.rows, float), (self.strata, 1))
        return words(found) | {"normal law": self.by_normal_law(mantel_haenszel(hits, rows))}

    def by_normal_law(self, within):
        """Return p of a pass by the variance at the estimate; 1 where there is none."""
        if self.scale == "ratio":
            if not 0 < within.ratio < math.inf:
                return 1.0
            z = (math.log(within.ratio) - math.log(self.tolerance)) / within.log_error
        else:
            z = (self.tolerance - within.estimate) / within.error if within.error > 0 else 0.0
        return float(stats.norm.sf(z))


@dataclass(frozen=True)
class FewOfEachLabel(Scenario):
    """Balanced accuracy of few rows of each label beside 400 of each."""

    rows: int
    recalls: tuple[float, float]
    counted = ("fail", "pass", "wilson")

    @property
    def label(self):
        return f"balanced accuracy, recalls {self.recalls[0]:g} and {self.recalls[1]:g}"

    @property
    def groups(self):
        return f"{self.rows} + 400 of each label"

    @property
    def audits(self):
        return AUDITS

    def audit(self, rng, seed):
        n_rows, tolerance = (self.rows, 400), abs(self.recalls[0] - self.recalls[1])
        hits = [rng.binomial(n, p, 2) for n, p in zip(n_rows, self.recalls, strict=True)]
        right = np.concatenate(
            [np.arange(n) < x for n, both in zip(n_rows, hits, strict=True) for x in both]
        )
        label = np.concatenate([np.repeat([1, 0], n) for n in n_rows])
        found = audited(
            [("balanced_accuracy", {"tolerance": tolerance})],
            y_true=label, y_pred=np.where(right, label, 1 - label), rng=seed,
            sensitive_features={"g": np.repeat(["a", "b"], [2 * n for n in n_rows])},
        )  # fmt: skip
        pair = [by_wilson(x / n, n) for x, n in zip(hits, n_rows, strict=True)]
        end = self.recalls[0] - self.recalls[1]
        # Beyond the tolerance on the side where the gap is.
        beyond = mover.at_most if end > 0 else mover.at_least
        return words(found) | {"wilson": float(beyond(*pair, end))}


def by_wilson(shares, n):
    """The mean of two proportions with limits made of Wilson's."""
    value = float(np.mean(shares))

    def limits(z):
        ends = [wilson(float(p), n, z) for p in shares]
        down, up = (
            math.hypot(*((p - end[side]) / 2 for p, end in zip(shares, ends, strict=True)))
            for side in (0, 1)
        )
        return value - down, value + up

    return mover.Limited(value, limits)


def scenarios():
    yield LowRates(1, 30, 0.13, 0.03)
    yield LowRates(10, 30, 0.114, 0.014)
    yield LowRates(10, 100, 0.07, 0.02)
    yield WithinStrata(3, (20, 300), (0.01, 0.01), "difference", 0.05)
    yield WithinStrata(200, (1, 4), (0.1, 0.6), "difference", 0.1)
    yield WithinStrata(50, (1, 4), (0.9, 0.99), "ratio", 0.8)
    yield WithinStrata(3, (20, 300), (0.9, 0.9), "ratio", 0.8)
    yield WithinStrata(10, (10, 300), (0.02, 0.1), "ratio", 0.8)
    yield FewOfEachLabel(25, (0.87, 0.97))
    yield FewOfEachLabel(40, (0.94, 0.99))
    yield FewOfEachLabel(50, (0.85, 0.8))
