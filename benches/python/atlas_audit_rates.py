"""Low rates and few rows of a label in the validity atlas: laws that are skewed.

Each scenario counts how often an audit errs with every gap at its tolerance, and how often the rule
errs that was there before: the score alone, Sato's variance at the estimate, the logarithm of a
ratio, limits of balanced accuracy that are made of Wilson's. The p-values are closed forms of the
library, and the first audits of each scenario are compared with those of `fa.audit`.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from atlas_audit_families import audited
from atlas_audit_pairs import Scenario, sizes, words
from atlas_tools import ALPHA, LEVELS
from fairaudit_rs.inference import mover
from fairaudit_rs.inference.mantel_haenszel import keep_shared_strata
from fairaudit_rs.inference.proportions import SampleProportion, farrington_manning, wilson_interval
from fairaudit_rs.permutation.formulas import MarginTest

#: Of rates, of balanced accuracies, whose limits take longer, and of rates by replicates.
AUDITS, AUDITS_OF_LABELS, AUDITS_OF_ROWS = 40_000, 10_000, 500
#: Of each scenario so many audits are compared with `fa.audit`.
CHECKED = 200


@dataclass(frozen=True)
class ClosedForm(Scenario):
    """Audits by closed forms: `margins` of all pairs of a draw, or `pvalues`."""

    @property
    def audits(self):
        return AUDITS

    def audit(self, rng, seed):
        drawn = self.drawn(rng)
        found = {word: float(p) for word, p in self.pvalues(drawn).items()}
        if seed < CHECKED:
            check(found, words(self.audited(drawn, seed)))
        return found | {self.counted[2]: self.old_rule(drawn)}

    def pvalues(self, drawn):
        """Return p of a fail, adjusted for all pairs, and p of a pass, which takes all."""
        tails = [(is_above, margins.tails) for is_above, margins in self.margins(drawn)]
        return {
            "fail": min(1.0, len(tails) * min(tail.p_fail(is_above) for is_above, tail in tails)),
            "pass": max(tail.p_pass for _, tail in tails),
        }


def check(found, theirs):
    """Stop when p-values are not those of an audit, which has 1 where it says something else."""
    for word, p in theirs.items():
        same = math.isclose(found[word], p, rel_tol=1e-6, abs_tol=1e-12)
        if not (same or (p == 1.0 and found[word] > ALPHA)):
            raise AssertionError(f"p of a {word} is {found[word]} here, {p} in the library")


@dataclass(frozen=True)
class LowRates(ClosedForm):
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

    def drawn(self, rng):
        hits = rng.binomial(self.rows, self.rate, self.attributes).tolist()
        return hits, int(rng.binomial(self.large, self.of_large))

    def scores(self, drawn):
        """Return the scores of each pair, at the lower and at the upper margin."""
        hits, of_large = drawn
        tolerance = self.rate - self.of_large
        return [
            [
                farrington_manning(x, self.rows, of_large, self.large, end)
                for end in (-tolerance, tolerance)
            ]
            for x in hits
        ]

    def margins(self, drawn):
        hits, of_large = drawn
        rate = of_large / self.large
        for x, ends in zip(hits, self.scores(drawn), strict=True):
            yield x / self.rows >= rate, MarginTest.of_scores(*ends)

    def old_rule(self, drawn):
        highest = max(upper.plain for _, upper in self.scores(drawn))
        return self.attributes * float(stats.norm.sf(highest))

    def audited(self, drawn, seed):
        hits, of_large = drawn
        m = self.attributes
        # The small groups of two attributes are empty.
        decision = [np.arange(self.rows) < x for x in hits]
        decision = np.concatenate([*decision, np.arange(self.large) < of_large]).astype(int)
        features = {}
        for k in range(m):
            group = np.full(len(decision), "large", dtype=object)
            group[: m * self.rows] = "none"
            group[k * self.rows : (k + 1) * self.rows] = "small"
            features[f"a{k}"] = np.where(group == "none", None, group)
        return audited(
            [("false_positive_rate", {"tolerance": self.rate - self.of_large})],
            y_true=np.zeros(len(decision), int), y_pred=decision, sensitive_features=features,
            rng=seed,
        )  # fmt: skip


@dataclass(frozen=True)
class WithinStrata(ClosedForm):
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

    def drawn(self, rng):
        """Return the selected people by stratum and group."""
        second = rng.uniform(*self.base, self.strata)
        first = self.tolerance * second if self.scale == "ratio" else second + self.tolerance
        return rng.binomial(self.rows, np.stack([first, second], axis=1))

    def within(self, drawn):
        return keep_shared_strata(drawn, np.tile(np.array(self.rows, float), (self.strata, 1)))

    def margins(self, drawn):
        within = self.within(drawn)
        if self.scale == "ratio":
            ends = [within.ratio_score(ratio) for ratio in (self.tolerance, 1 / self.tolerance)]
            yield within.ratio >= 1, MarginTest.of_scores(*ends)
        else:
            ends = [within.difference_score(end) for end in (-self.tolerance, self.tolerance)]
            yield within.estimate >= 0, MarginTest.of_scores(*ends)

    def old_rule(self, drawn):
        """Return p of a pass by the variance at the estimate; 1 where there is none."""
        within = self.within(drawn)
        if self.scale == "ratio":
            if not 0 < within.ratio < math.inf:
                return 1.0
            z = (
                math.log(within.ratio) - math.log(self.tolerance)
            ) / within.log_ratio_standard_error
        else:
            error = within.standard_error
            z = (self.tolerance - within.estimate) / error if error > 0 else 0.0
        return float(stats.norm.sf(z))

    def audited(self, drawn, seed):
        cells = [
            (s, g, n, drawn[s, g]) for s in range(self.strata) for g, n in enumerate(self.rows)
        ]
        size = [n for _, _, n, _ in cells]
        options = {"ratio" if self.scale == "ratio" else "tolerance": self.tolerance}
        return audited(
            [("selection_rate", options)],
            y_pred=np.concatenate([np.arange(n) < x for _, _, n, x in cells]).astype(int),
            sensitive_features={"g": np.repeat([g for _, g, _, _ in cells], size)},
            strata=np.repeat([s for s, _, _, _ in cells], size),
            rng=seed,
        )


@dataclass(frozen=True)
class RatioOfRows(Scenario):
    """Four fifths of weighted or clustered rates in five strata that the groups mix unequally.

    Without the strata the ratio of the groups is another one.
    """

    design: str
    rows: tuple[int, int]
    counted = ("fail", "pass", "without the strata")
    levels = LEVELS[:2]

    @property
    def label(self):
        return f"ratio of 0.8 in 5 strata, {self.design}"

    @property
    def groups(self):
        return sizes(self.rows)

    @property
    def audits(self):
        return AUDITS_OF_ROWS

    def audit(self, rng, seed):
        clustered = self.design == "clusters of 4"
        units = [n // 4 for n in self.rows] if clustered else self.rows
        group = np.repeat([0, 1], units)
        mix = np.array([[0.3, 0.25, 0.2, 0.15, 0.1], [0.1, 0.15, 0.2, 0.25, 0.3]])
        stratum = np.concatenate([rng.choice(5, n, p=p) for n, p in zip(units, mix, strict=True)])
        rate = (0.3 + 0.1 * stratum) * np.where(group == 0, 0.8, 1.0)
        given = {"sample_weight": rng.uniform(0.5, 2, len(group))}
        if clustered:
            # Rates of clusters vary with an intra-class correlation of 0.1.
            cluster = np.repeat(np.arange(len(group)), 4)
            rate = rng.beta(9 * rate, 9 * (1 - rate))[cluster]
            group, stratum, given = group[cluster], stratum[cluster], {"clusters": cluster}
        columns = {
            "y_pred": (rng.random(len(group)) < rate).astype(int),
            "sensitive_features": {"g": group.astype(str)},
            "n_resamples": 999,
            **given,
        }
        criteria = [("selection_rate", {"ratio": 0.8})]
        found = audited(criteria, **columns, strata=stratum, rng=seed)
        crude = audited(criteria, **columns, rng=seed)
        return words(found) | {"without the strata": words(crude)["fail"]}


@dataclass(frozen=True)
class FewOfEachLabel(ClosedForm):
    """Balanced accuracy of few rows of each label beside 400 of each."""

    rows: int
    recalls: tuple[float, float]
    counted = ("fail", "pass", "wilson")

    @property
    def audits(self):
        return AUDITS_OF_LABELS

    @property
    def label(self):
        return f"balanced accuracy, recalls {self.recalls[0]:g} and {self.recalls[1]:g}"

    @property
    def groups(self):
        return f"{self.rows} + 400 of each label"

    @property
    def n_rows(self):
        return self.rows, 400

    def drawn(self, rng):
        """Return the rows that are right by group and label."""
        return [rng.binomial(n, p, 2) for n, p in zip(self.n_rows, self.recalls, strict=True)]

    def margins(self, drawn):
        pair = [
            mover.by_smoothed(
                float(np.mean(x / n)),
                [mover.WeightedProportion(0.5, SampleProportion(float(p), n)) for p in x / n],
            )
            for x, n in zip(drawn, self.n_rows, strict=True)
        ]
        tolerance = abs(self.recalls[0] - self.recalls[1])
        ends = [mover.margin_statistic(*pair, end) for end in (-tolerance, tolerance)]
        yield pair[0].value >= pair[1].value, MarginTest.of_normal(*ends)

    def old_rule(self, drawn):
        """Return p of a gap beyond the tolerance, on the side where it is, by Wilson's limits."""
        pair = [by_wilson(x / n, n) for x, n in zip(drawn, self.n_rows, strict=True)]
        end = self.recalls[0] - self.recalls[1]
        beyond = mover.at_most if end > 0 else mover.at_least
        return float(beyond(*pair, end))

    def audited(self, drawn, seed):
        right = np.concatenate(
            [np.arange(n) < x for n, both in zip(self.n_rows, drawn, strict=True) for x in both]
        )
        label = np.concatenate([np.repeat([1, 0], n) for n in self.n_rows])
        return audited(
            [("balanced_accuracy", {"tolerance": abs(self.recalls[0] - self.recalls[1])})],
            y_true=label, y_pred=np.where(right, label, 1 - label), rng=seed,
            sensitive_features={"g": np.repeat(["a", "b"], [2 * n for n in self.n_rows])},
        )  # fmt: skip


def by_wilson(shares, n):
    """The mean of two proportions with limits made of Wilson's."""
    value = float(np.mean(shares))

    def limits(z):
        ends = [wilson_interval(float(p), n, z) for p in shares]
        down, up = (
            math.hypot(*((p - end[side]) / 2 for p, end in zip(shares, ends, strict=True)))
            for side in (0, 1)
        )
        return value - down, value + up

    return mover.ValueWithLimits(value, limits)


def scenarios():
    yield LowRates(1, 30, 0.13, 0.03)
    yield LowRates(10, 30, 0.114, 0.014)
    yield LowRates(10, 100, 0.07, 0.02)
    yield WithinStrata(3, (20, 300), (0.01, 0.01), "difference", 0.05)
    yield WithinStrata(100, (1, 4), (0.02, 0.1), "difference", 0.1)
    yield WithinStrata(50, (1, 4), (0.9, 0.99), "ratio", 0.8)
    yield WithinStrata(3, (20, 300), (0.9, 0.9), "ratio", 0.8)
    yield WithinStrata(10, (10, 300), (0.02, 0.1), "ratio", 0.8)
    yield RatioOfRows("weights", (300, 900))
    yield RatioOfRows("clusters of 4", (240, 960))
    yield FewOfEachLabel(25, (0.87, 0.97))
    yield FewOfEachLabel(40, (0.94, 0.99))
    yield FewOfEachLabel(30, (0.85, 0.95))
    yield FewOfEachLabel(100, (0.97, 0.995))
