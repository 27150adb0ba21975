"""Policies in the validity atlas: references, intersections, people by weight.

Each scenario counts how often `fa.audit` errs, and what the rule before did with the same data: a
pass against the observed highest group alone, a fixed reference with two sides, intersections of
two attributes alone, coverage by rows.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

import fairaudit_rs as fa
from atlas_audit_families import audited
from atlas_audit_pairs import Scenario, passing, words
from atlas_audit_rates import ClosedForm
from atlas_tools import LEVELS
from fairaudit_rs.inference.proportions import farrington_manning, ratio_score
from fairaudit_rs.permutation.formulas import MarginTest

AUDITS_OF_REFERENCES, AUDITS_OF_ROWS = 40_000, 500


def decided(hits, sizes):
    """Decisions and groups "a", "b", ... of which so many are selected."""
    return {
        "y_pred": np.concatenate(
            [np.arange(n) < x for x, n in zip(hits, sizes, strict=True)]
        ).astype(int),
        "sensitive_features": {"g": np.repeat(list("abcdefgh")[: len(sizes)], sizes)},
    }


@dataclass(frozen=True)
class Highest(ClosedForm):
    """Three groups, the smallest is the highest: the lowest lies exactly at the tolerance of it."""

    rates: tuple[float, ...]
    sizes: tuple[int, ...]
    scale: str
    counted = ("fail", "pass", "highest alone")
    wrong = ("fail", "pass")

    @property
    def audits(self):
        return AUDITS_OF_REFERENCES

    @property
    def label(self):
        rates = ", ".join(f"{rate:g}" for rate in self.rates)
        what = "ratio 0.8" if self.scale == "ratio" else "difference 0.1"
        return f"rates {rates} of {', '.join(f'{n:,}' for n in self.sizes)}, {what} to the highest"

    def drawn(self, rng):
        return rng.binomial(self.sizes, self.rates).tolist()

    def pairs(self, drawn):
        """Return (is the first higher, tests at both margins) by pair of groups."""
        score, ends = farrington_manning, (-0.1, 0.1)
        if self.scale == "ratio":
            score, ends = ratio_score, (0.8, 1.25)
        counts = list(zip(drawn, self.sizes, strict=True))
        for i, j in combinations(range(len(counts)), 2):
            (x, n), (y, m) = counts[i], counts[j]
            scores = [score(x, n, y, m, end) for end in ends]
            yield (i, j), (x / n >= y / m, MarginTest.of_scores(*scores))

    def margins(self, drawn):
        return [margins for _, margins in self.pairs(drawn)]

    def old_rule(self, drawn):
        highest = int(np.argmax(np.array(drawn) / self.sizes))
        return max(
            float(margins.pvalue) for pair, (_, margins) in self.pairs(drawn) if highest in pair
        )

    def audited(self, drawn, seed):
        threshold = {"ratio": 0.8} if self.scale == "ratio" else {"tolerance": 0.1}
        return audited(
            [("selection_rate", {**threshold, "reference": "highest"})],
            **decided(drawn, self.sizes),
            rng=seed,
        )


@dataclass(frozen=True)
class Favoured(ClosedForm):
    """A group and a fixed reference at a ratio; above 1 / 0.8 two sides fail it."""

    ratio: float
    sizes = (400, 2_000)
    counted = ("fail", "pass", "two sides")

    @property
    def wrong(self):
        """A group that is better off than tolerated passes."""
        return ("fail", "pass") if self.ratio == 0.8 else ("fail",)

    @property
    def audits(self):
        return AUDITS_OF_REFERENCES

    @property
    def label(self):
        return f"{self.ratio:g} times the rate of a fixed reference, ratio 0.8"

    def drawn(self, rng):
        return rng.binomial(self.sizes, [0.5 * self.ratio, 0.5]).tolist()

    def ends(self, drawn):
        (x, y), (n, m) = drawn, self.sizes
        return MarginTest.of_scores(*(ratio_score(x, n, y, m, end) for end in (0.8, 1.25)))

    def pvalues(self, drawn):
        tails = self.ends(drawn).tails
        return {"fail": tails.p_for_beyond(below=True), "pass": tails.p_for_not_beyond(below=True)}

    def old_rule(self, drawn):
        first, second = np.array(drawn) / self.sizes
        return float(self.ends(drawn).tails.p_fail(first >= second))

    def audited(self, drawn, seed):
        options = {"ratio": 0.8, "attributes": ("g",), "reference": "b"}
        return audited([("selection_rate", options)], **decided(drawn, self.sizes), rng=seed)


@dataclass(frozen=True)
class Parity(Scenario):
    """Rates of 0.4 and 0.6 by the parity of three attributes, and no gap in one or two of them."""

    rows: int
    counted = ("fail", "pass", "two attributes")
    wrong = ("pass",)

    @property
    def audits(self):
        return AUDITS_OF_ROWS

    @property
    def label(self):
        return f"{self.rows:,} rows, a gap of 0.2 only in three attributes together, difference 0.1"

    def audit(self, rng, seed):
        attributes = rng.integers(0, 2, (3, self.rows))
        rate = np.where(attributes.sum(axis=0) % 2, 0.6, 0.4)
        policy = fa.Policy(
            name="atlas",
            criteria=[fa.Criterion(metric="selection_rate", tolerance=0.1)],
            intersections="bind",
            lenses=("permutation",),
        )
        found = fa.audit(
            y_pred=(rng.random(self.rows) < rate).astype(int),
            sensitive_features=dict(zip("xyz", attributes, strict=True)),
            policy=policy,
            evidence="none",
            rng=seed,
            n_threads=1,
        )
        fewer = [question for question in found.questions if question.attribute != "x and y and z"]
        assert all(finding.coverage == 1 for finding in fewer)
        return words(found) | {
            "two attributes": passing([pair for finding in fewer for pair in finding.pairs])
        }


@dataclass(frozen=True)
class ByWeight(Scenario):
    """20 of 4,000 rows stand for 60 % of the people, and are selected at 0.1; the others at .5."""

    counted = ("fail", "pass", "coverage by rows")
    levels = LEVELS[:2]
    wrong = ("pass",)

    @property
    def audits(self):
        return AUDITS_OF_ROWS

    @property
    def label(self):
        return "20 rows of weight 300 (60 % of the people) at 0.1, 3,980 of weight 1 at 0.5"

    def audit(self, rng, seed):
        sizes = (2_000, 1_980, 20)
        columns = decided(rng.binomial(sizes, [0.5, 0.5, 0.1]), sizes)
        weight = np.repeat([1.0, 1.0, 300.0], sizes)
        found = audited(
            [("selection_rate", {"tolerance": 0.1})],
            **columns,
            sample_weight=weight,
            rng=seed,
            n_resamples=999,
        )
        [one] = found.questions
        tested = sum(group.n_rows for group in one.tested)
        by_rows = passing(one.pairs) if tested / one.n_rows >= 0.95 else 1.0
        return words(found) | {"coverage by rows": by_rows}


def scenarios():
    for rates, scale in (((0.60, 0.735, 0.75), "ratio"), ((0.40, 0.48, 0.50), "difference")):
        for sizes in ((20_000, 20_000, 300), (3_000, 6_000, 250)):
            yield Highest(rates, sizes, scale)
    yield from (Favoured(ratio) for ratio in (0.8, 1.4, 1.54))
    yield from (Parity(rows) for rows in (4_000, 20_000))
    yield ByWeight()
