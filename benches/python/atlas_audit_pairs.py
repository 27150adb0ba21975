"""Pairs of groups in the validity atlas: gaps exactly at a tolerance, of few rows and of designs.

Each scenario counts how often `fa.audit` fails, passes, and what rules that do not hold would say
of the same data: no adjustment, the delta method, "not significant, so pass", a ratio of the
estimates, a design that is left out of account, a raised floor without the rule of coverage.
"""

import math
import zlib
from dataclasses import dataclass

import numpy as np
from scipy import stats

import fairaudit_rs as fa
from atlas_audit_families import audited, delta_p, differs, pairs_of
from atlas_tools import LEVELS, counted
from fairaudit_rs.data.tables import AuditTable
from fairaudit_rs.inference.tolerance import Tolerance
from fairaudit_rs.permutation.tolerance import prepare_tolerance_question

#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 2

#: Audits of formulas, of one pair of rates, of tests by replicates, of callables.
AUDITS, AUDITS_OF_RATES, AUDITS_BY_REPLICATES, AUDITS_OF_FUNCTIONS = 2_000, 3_000, 1_000, 300
TOLERANCE = 0.1
LARGE = 2_000


@dataclass(frozen=True)
class Scenario:
    """A scenario: a name, a number of audits and data of a seed; `n` orders scenarios."""

    levels = LEVELS

    @property
    def n(self):
        return 1

    @property
    def audits(self):
        return AUDITS

    @property
    def key(self):
        return f"{VERSION}:{self!r}:{self.audits}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        audits = (self.audit(rng, audit) for audit in range(self.audits))
        counts = counted(audits, self.levels)
        return {"key": self.key, "audits": self.audits, "counts": counts}


def decisions(*counts):
    """Columns of groups "a", "b" with (selected, rows) each."""
    return {
        "y_pred": np.concatenate([np.arange(n) < x for x, n in counts]).astype(int),
        "sensitive_features": {"g": np.repeat(["a", "b"], [n for _, n in counts])},
    }


def sizes(rows):
    return " + ".join(f"{n:,}" for n in rows)


def side(sign):
    """Where the first group lies."""
    return "above" if sign > 0 else "below"


#: Designs by their argument.
DESIGNS = {"strata": "strata", "sample_weight": "weights", "clusters": "clusters"}


def words(found):
    """Return the p-values of a fail and of a pass; 1 where the audit says something else.

    An audit that does not fail at 5 % does not fail at smaller levels, and passes none of them if
    it does not pass at 5 %: people who are left out withhold a pass at every level.
    """
    pairs = pairs_of(found)
    return {
        "fail": min(pair.adjusted for pair in pairs) if found.verdict == "fail" else 1.0,
        "pass": passing(pairs) if found.verdict == "pass" else 1.0,
    }


def passing(pairs):
    """Return the p-value of a pass of all pairs."""
    return max((pair.test.p_pass for pair in pairs), default=1.0)


@dataclass(frozen=True)
class TenRates(Scenario):
    """Five small groups and a large one, true and false positive rates: ten comparisons.

    Each lies at the tolerance, above and below in turn.
    """

    rows: int
    tolerance: float
    counted = ("fail", "unadjusted", "delta")

    def audit(self, rng, seed):
        signs = np.array([1, -1, 1, -1, 1])
        rows = [LARGE, *[self.rows] * 5]
        group = np.repeat(list("labcde"), rows)
        columns = {"y_true": [], "y_pred": [], "g": []}
        for label, base, sides in ((1, 0.85, signs), (0, 0.6, -signs)):
            rate = np.repeat([base, *(base + self.tolerance * sides)], rows)
            columns["y_true"].append(np.full(len(group), label))
            columns["y_pred"].append((rng.random(len(group)) < rate).astype(int))
            columns["g"].append(group)
        label, decision, group = (np.concatenate(column) for column in columns.values())
        options = {"tolerance": self.tolerance, "attributes": ("g",), "reference": "l"}
        found = audited(
            [("true_positive_rate", options), ("false_positive_rate", options)],
            y_true=label, y_pred=decision, sensitive_features={"g": group}, rng=seed,
        )  # fmt: skip
        tests = [pair.test for pair in pairs_of(found)]
        assert len(tests) == found.n_comparisons == 10
        delta = [delta_p(t.estimate, t.standard_error, self.tolerance) for t in tests]
        return {
            "fail": words(found)["fail"],
            "unadjusted": min(test.p_fail for test in tests),
            "delta": min(delta) * len(tests),
        }


@dataclass(frozen=True)
class OnePair(Scenario):
    """Selection rates of 0.8 and, in the first group, 0.7 or .9."""

    rows: tuple[int, int]
    sign: int
    counted = ("fail", "pass", "quiet")

    @property
    def label(self):
        return f"selection rate {0.8 + self.sign * TOLERANCE:g} against 0.8"

    @property
    def groups(self):
        return sizes(self.rows)

    @property
    def audits(self):
        return AUDITS_OF_RATES

    def audit(self, rng, seed):
        counts = rng.binomial(self.rows, (0.8 + self.sign * TOLERANCE, 0.8))
        columns = decisions(*zip(counts, self.rows, strict=True))
        found = audited([("selection_rate", {"tolerance": TOLERANCE})], **columns, rng=seed)
        [pair] = pairs_of(found)
        return words(found) | {"quiet": [not differs(pair, level) for level in self.levels]}


@dataclass(frozen=True)
class FourFifths(Scenario):
    """A ratio of exactly .8."""

    rate: float
    rows: tuple[int, int]
    counted = ("fail", "pass", "point", "logarithm")

    @property
    def label(self):
        return f"four fifths, rate {self.rate:g} in the second group"

    @property
    def groups(self):
        return sizes(self.rows)

    @property
    def audits(self):
        return AUDITS_OF_RATES

    def audit(self, rng, seed):
        counts = rng.binomial(self.rows, (0.8 * self.rate, self.rate))
        columns = decisions(*zip(counts, self.rows, strict=True))
        found = audited([("selection_rate", {"ratio": 0.8})], **columns, rng=seed)
        low, high = sorted(count / n for count, n in zip(counts, self.rows, strict=True))
        return words(found) | {"point": low < 0.8 * high, "logarithm": self.by_logarithm(counts)}

    def by_logarithm(self, counts):
        """Return p of a pass by the normal law of the logarithm (Katz); 1 without selections."""
        if not all(counts):
            return 1.0
        error = math.sqrt(sum(1 / x - 1 / n for x, n in zip(counts, self.rows, strict=True)))
        shares = [x / n for x, n in zip(counts, self.rows, strict=True)]
        log = -abs(math.log(shares[0] / shares[1]))
        return float(stats.norm.sf((log - math.log(0.8)) / error)) if error > 0 else 0.0


@dataclass(frozen=True)
class OfDesign(Scenario):
    """Selection rates within strata, with weights or in clusters; 0.7 in the large group.

    Left out of account, strata and weights show a larger gap than there is, and clusters more
    rows.
    """

    design: str
    sign: int
    rows = (60, 1_000)
    counted = ("fail", "pass", "ignored")
    levels = LEVELS[:2]

    @property
    def label(self):
        return f"selection rate, {DESIGNS[self.design]}, {side(self.sign)}"

    @property
    def groups(self):
        return sizes(self.rows)

    @property
    def audits(self):
        return AUDITS_BY_REPLICATES

    def audit(self, rng, seed):
        columns, given = self.columns(rng)
        criteria = [("selection_rate", {"tolerance": TOLERANCE})]
        found = audited(criteria, **columns, **given, rng=seed, n_resamples=999)
        ignored = audited(criteria, **columns, rng=seed)
        return words(found) | {"ignored": words(ignored)["fail"]}

    def columns(self, rng):
        n, design = sum(self.rows), self.design
        group = np.repeat(["a", "b"], self.rows)
        small = group == "a"
        rate = 0.7 + self.sign * TOLERANCE * small
        chance = rng.random(n)
        if design == "strata":
            shares = np.array([0.5, 0.3, 0.2])
            of_small = rng.choice(3, n, p=shares[:: -self.sign])
            stratum = np.where(small, of_small, rng.choice(3, n, p=shares[:: self.sign]))
            rate = rate + np.array([-0.1, 0.0, 0.1])[stratum]
            given = {"strata": stratum}
        elif design == "sample_weight":
            # Of the small group the selected are drawn twice as often, or half as often.
            often = np.where(small, 2.0**self.sign, 1.0)
            rate = rate * often / (rate * often + 1 - rate)
            spread = np.exp(rng.normal(0, 0.3, n))
            given = {"sample_weight": spread * np.where(chance < rate, 1 / often, 1.0)}
        else:
            # Two rows each, which are decided alike.
            unit = np.concatenate([[k * 10**6 + i // 2 for i in range(m)]
                                   for k, m in enumerate(self.rows)])  # fmt: skip
            chance = chance[np.searchsorted(unit, unit)]
            given = {"clusters": unit}
        decision = (chance < rate).astype(int)
        return {"y_pred": decision, "sensitive_features": {"g": group}}, given


@dataclass(frozen=True)
class InClusters(Scenario):
    """F1 and AUC of 50 clusters of five correlated rows beside 400."""

    metric: str
    sign: int
    clusters = (50, 400)
    counted = ("fail", "pass", "ignored")
    levels = LEVELS[:2]

    @property
    def label(self):
        return f"{self.metric}, {side(self.sign)}"

    @property
    def groups(self):
        return f"{sizes(self.clusters)} clusters"

    @property
    def audits(self):
        return AUDITS_BY_REPLICATES

    def audit(self, rng, seed):
        columns = self.columns(rng)
        unit = columns.pop("clusters")
        criteria = [(self.metric, {"tolerance": self.true_gap})]
        found = audited(criteria, **columns, clusters=unit, rng=seed, n_resamples=999)
        ignored = audited(criteria, **columns, rng=seed)
        return words(found) | {"ignored": words(ignored)["fail"]}

    @property
    def found(self):
        """The true positive rate of both groups, with a false positive rate of .2."""
        return 0.7 + 0.15 * self.sign, 0.7

    @property
    def true_gap(self):
        if self.metric == "auc":
            values = [stats.norm.cdf(stats.norm.ppf(rate)) for rate in self.found]
        else:
            values = [2 * rate / (1 + rate + 0.2) for rate in self.found]
        return abs(values[0] - values[1])

    def columns(self, rng):
        unit = np.repeat(np.arange(sum(self.clusters)), 5)
        group = np.repeat(["a", "b"], [5 * n for n in self.clusters])
        found = np.where(group == "a", *self.found)
        label = rng.random(len(unit)) < 0.5
        shared, own = rng.normal(size=sum(self.clusters))[unit], rng.normal(size=len(unit))
        noise = (shared + own) / math.sqrt(2)
        columns = {
            "y_true": label.astype(int), "sensitive_features": {"g": group}, "clusters": unit
        }  # fmt: skip
        if self.metric == "auc":
            # Negatives N(0, 1), positives N(m, 1): AUC = Phi(m / sqrt(2)).
            shift = math.sqrt(2) * stats.norm.ppf(found)
            return columns | {"y_score": stats.norm.cdf(noise + shift * label)}
        chance = stats.norm.cdf(noise)
        return columns | {"y_pred": (chance < np.where(label, found, 0.2)).astype(int)}


@dataclass(frozen=True)
class Residual(Scenario):
    """Mean residuals of few rows beside 2,000, whose scores have another law."""

    rows: int
    sign: int
    counted = ("fail", "pass", "delta")

    @property
    def label(self):
        return f"mean residual, {side(self.sign)}"

    @property
    def groups(self):
        return sizes((self.rows, LARGE))

    def audit(self, rng, seed):
        n = np.array([self.rows, LARGE])
        small = np.repeat([True, False], n)
        score = np.concatenate([rng.beta(2, 2, n[0]), rng.beta(4, 4, n[1])])
        # Between tol and 1 - tol, so that no chance is cut off.
        score = TOLERANCE + (1 - 2 * TOLERANCE) * score
        label = rng.random(n.sum()) < score + self.sign * TOLERANCE * small
        found = audited(
            [("mean_residual", {"tolerance": TOLERANCE})],
            y_true=label.astype(int), y_score=score, rng=seed,
            sensitive_features={"g": np.where(small, "a", "b")},
        )  # fmt: skip
        [pair] = pairs_of(found)
        delta = delta_p(pair.test.estimate, pair.test.standard_error, TOLERANCE)
        return words(found) | {"delta": delta}


def mean_of(label, value, weight):
    return float(value.mean())


@dataclass(frozen=True)
class Function(Scenario):
    """The mean of 50 rows beside 2,000 as a callable, which policies cannot name.

    Of 0 and 1 with shares of 0.97 and 0.87, and of lognormal values whose means are 0.9 and 1.
    """

    law: str
    rows = (50, LARGE)
    counted = ("fail", "pass", "delta")
    levels = LEVELS[:1]

    @property
    def label(self):
        return "a callable: mean of " + {"shares": "0 and 1"}.get(self.law, f"{self.law} values")

    @property
    def groups(self):
        return sizes(self.rows)

    @property
    def audits(self):
        return AUDITS_OF_FUNCTIONS

    def audit(self, rng, seed):
        values = [self.values(rng, n, side) for side, n in enumerate(self.rows)]
        metric = fa.metrics.callable_metric("own", mean_of, n_samples=20)
        table = AuditTable.make(
            y_true=np.ones(sum(self.rows), dtype=int), y_pred=np.concatenate(values),
            sensitive_features=np.repeat(["a", "b"], self.rows),
        )  # fmt: skip
        question = prepare_tolerance_question(
            table.with_cache(), metric, Tolerance(value=TOLERANCE)
        )
        [test] = question.tests(alpha=LEVELS[0], n_tests=1, n_resamples=199, seed=seed, n_threads=1)
        gap = abs(values[0].mean() - values[1].mean())
        error = math.sqrt(sum(part.var() / len(part) for part in values))
        return {
            "fail": test.p_fail,
            "pass": test.p_pass,
            "delta": delta_p(gap, error, TOLERANCE),
        }

    def values(self, rng, n, side):
        if self.law == "shares":
            return (rng.random(n) < (0.97, 0.87)[side]).astype(float)
        return rng.lognormal(-0.5, 1.0, n) * (1 - TOLERANCE, 1)[side]


@dataclass(frozen=True)
class RaisedFloor(Scenario):
    """Groups of 70, 20, 6 and 4 %; the smallest is selected at 0.3, the others at .5."""

    rows: int
    floor: int
    counted = ("fail", "pass", "without the rule")

    @property
    def audits(self):
        return AUDITS_BY_REPLICATES

    def audit(self, rng, seed):
        of_groups = rng.multinomial(self.rows, [0.7, 0.2, 0.06, 0.04])
        hits = rng.binomial(of_groups, [0.5, 0.5, 0.5, 0.3])
        found = audited(
            [("selection_rate", {"tolerance": TOLERANCE})],
            policy={"floor": self.floor},
            y_pred=np.concatenate([np.arange(n) < x for x, n in zip(hits, of_groups, strict=True)]),
            sensitive_features={"g": np.repeat(list("abcd"), of_groups)},
            rng=seed,
        )
        return words(found) | {"without the rule": passing(pairs_of(found))}


def scenarios():
    for rows in (30, 100):
        yield from (TenRates(rows, tolerance) for tolerance in (0.05, 0.1))
    for sign in (1, -1):
        yield from (OnePair(rows, sign) for rows in ((40, LARGE), (100, LARGE), (400, 400)))
        for design in ("strata", "sample_weight", "clusters"):
            yield OfDesign(design, sign)
        yield from (InClusters(metric, sign) for metric in ("f1", "auc"))
        yield from (Residual(rows, sign) for rows in (30, 50, 100))
    for rate in (0.1, 0.6, 0.9):
        yield from (FourFifths(rate, rows) for rows in ((40, LARGE), (40, 40), (400, 400)))
    yield from (Function(law) for law in ("shares", "lognormal"))
    yield from (RaisedFloor(*row) for row in ((1_000, 30), (1_000, 100), (3_000, 30), (3_000, 200)))
