"""Scores with all else held fixed in the influence atlas: populations, audits, counts.

Eight binary features, the first one is flipped. P(Y = 1 | X) and P(x_1 = 1 | the others) are
logistic with a product of the signs of two of the others, which the default regressions of main
effects and pairs can say, or of three, which they cannot: so either of them is right or wrong. The
same with one product in each that the regressions are given or not, and a feature of three values.
All true scores are sums over the rows that there can be.
"""

import math
import zlib
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations, product

import numpy as np
from scipy import special, stats

import fairaudit_rs as fa
from atlas_influence_marginal import NAMES
from atlas_tools import ALPHA
from fairaudit_rs.influence import ceteris_paribus
from fairaudit_rs.influence.held_fixed import HeldFixedScores
from fairaudit_rs.influence.nuisance import RegressionBasis, Regressors
from fairaudit_rs.influence.rates import MeasureValue, measure_of
from tests.influence import test_levels
from tests.reference import influence as reference
from tests.reference import influence_designs as designs

#: Raise it when a change of the package or of this file changes what is measured here.
VERSION = 2

METRICS = ("fpr", "fnr", "fdr", "selection_rate")
RIGHT = {"both": (True, True), "e": (False, True), "h": (True, False), "none": (False, False)}
#: Audits of each population that go through the public function too: the same numbers.
CHECKED = 3
#: The guards of a score, as the lens has them; every audit checks that these are its own.
FEWEST, STAND_FOR, LARGEST_SHARE = 10, (0.8, 1.25), 0.1
GUARDS = ("labels", "stand_for", "largest")
FEW_EVENTS = 5


@dataclass(frozen=True)
class Lopsided(designs.CeterisParibus):
    """One more of the others says nearly all of the flipped feature: little overlap."""

    pull: float = 3.0

    def e(self, rest):
        return special.expit(special.logit(super().e(rest)) + self.pull * (2 * rest[:, 3] - 1))


@dataclass(frozen=True)
class Towns(test_levels.Towns):
    """Three towns: scores, or decisions."""

    decision: bool = False

    def model(self, X):
        return (super().model(X) > 0.5).astype(float) if self.decision else super().model(X)


class Model:
    """The model of a population with the methods that the package asks for."""

    classes_ = (0, 1)

    def __init__(self, population):
        self.population = population

    def predict_proba(self, X):
        p = self.population.model(np.asarray(X))
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.population.model(np.asarray(X)).astype(np.int64)


#: The class of a population and its options; None where all pairs are in the regressions, or which
#: are in that of the label and in that of the feature.
POPULATIONS = {
    **{
        f"signs, {name} right": (designs.Signs, {"h_right": h, "e_right": e}, None)
        for name, (h, e) in RIGHT.items()
    },
    **{
        f"pairs given, {name} right": (
            designs.CeterisParibus, {}, (((1, 2),) if h else (), ((0, 1),) if e else ()),
        )
        for name, (h, e) in RIGHT.items()
    },
    "one product": (designs.CeterisParibus, {}, None),
    "signs, rare": (designs.Signs, {"level": -2.2}, None),
    "signs, very rare": (designs.Signs, {"level": -3.5}, None),
    "little overlap": (Lopsided, {}, None),
    "least overlap": (Lopsided, {"pull": 5.0}, None),
    "repeated": (Lopsided, {"pull": 8.0}, None),
    "repeated, e right": (Lopsided, {"pull": 8.0}, ((), ((0, 1),))),
    "little overlap, h right": (Lopsided, {}, (((1, 2),), ())),
    "little overlap, none right": (Lopsided, {}, ((), ())),
    "towns": (Towns, {}, None),
}  # fmt: skip


def population(name, decision):
    kind, options, _ = POPULATIONS[name]
    return kind(decision=decision, **options)


@dataclass(frozen=True, eq=False, kw_only=True)
class OfPairs(Regressors):
    """Rows whose regressions have these products of pairs alone."""

    pairs: tuple
    pairs_without: tuple

    @cached_property
    def basis(self):
        found = RegressionBasis.from_features(
            self.features, self.sum_by_distinct_row(np.ones(len(self.distinct_of_row)))
        )
        return replace(found, pairs=self.pairs)

    def without(self, columns):
        return self.from_features(super().without(columns), (self.pairs_without, ()))

    @classmethod
    def from_features(cls, rows, pairs):
        values = {field.name: getattr(rows, field.name) for field in fields(Regressors)}
        return cls(**values, pairs=pairs[0], pairs_without=pairs[1])


@dataclass(frozen=True)
class HeldFixed:
    """Many audits of n rows of a population: all metrics, scores and decisions."""

    name: str
    n: int

    part = "alone"
    audits = 1_000

    @property
    def key(self):
        return f"{VERSION}:{self.part}:{self.name}:{self.n}:{self.audits}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        made = [population(self.name, decision) for decision in (False, True)]
        tallies = {
            (metric, value.decision): [Tally(*truths) for truths in truths_of(value, metric)]
            for metric in METRICS
            for value in made
        }
        for number in range(self.audits):
            X, y, _ = made[0].rows(rng, self.n)
            for value in made:
                audited = Audited(value, X, y, POPULATIONS[self.name][2])
                for metric in METRICS:
                    for tally, pair in zip(
                        tallies[metric, value.decision], audited.pairs, strict=True
                    ):
                        tally.add(audited, metric, *pair)
                    if number < CHECKED and metric == "fdr":
                        audited.check(metric)
        return {
            "share": share_of(made[0]),
            "cells": [
                {"metric": metric, "decision": decision, **tally.entry()}
                for (metric, decision), some in tallies.items()
                for tally in some
            ],
        }


def truths_of(towns, metric):
    """The true score and the true partialled-out score of every pair of values."""
    if isinstance(towns, Towns):
        for low, high in combinations(range(3), 2):
            yield towns.truth(metric, low, high), math.nan
        return
    X, mass = towns.masses()
    h, f = towns.h(X), towns.model(X)
    psi = reference.psi_of_x(metric, f, h, reference.rates_of(metric, h, f, mass))
    rest = X[:, 0] - towns.e(X[:, 1:])
    yield towns.truth(metric), float(mass @ (psi * rest) / (mass @ rest**2))


def share_of(towns):
    """P(x_1 = 1)."""
    if isinstance(towns, Towns):
        rest = np.array([*product((0.0, 1.0), repeat=2)])
        mass = np.prod(np.where(rest == 1, towns.shares, 1 - np.array(towns.shares)), axis=1)
        return float(mass @ towns.town_shares(rest)[:, 0])
    X, mass = towns.masses()
    return float(mass @ X[:, 0])


class Audited:
    """The lens's own objects for one sample: its regressions serve all metrics."""

    def __init__(self, entry, X, y, pairs_given):
        self.one, self.is_default = entry, pairs_given is None
        # The others: a row of either label and both values of all features.
        self.X = np.vstack([X, np.zeros((2, X.shape[1])), np.ones((2, X.shape[1]))])
        self.y = np.r_[y, 0, 1, 0, 1].astype(np.int64)
        self.group = np.r_[np.zeros(len(y)), np.ones(4)].astype(np.int64)
        # Needs no regression: for the rows in the lens's own order.
        problem = self.audit("fpr", **self.said()).problem
        alone = HeldFixedScores(
            distinct=problem.distinct, value=problem.target_group.value, features=(),
            predict=entry.model, n_folds=5, plug_in=False, call=problem.call,
        )  # fmt: skip
        self.rows, self.label_regression = alone.rows, alone.label_regression
        if not self.is_default:
            given = OfPairs.from_features(self.rows.regressors, pairs_given)
            self.rows.__dict__["regressors"] = given
        self.totals = self.rows.count @ self.rows.terms
        columns = (0, 1, 2) if isinstance(entry, Towns) else (0,)
        self.arms = ceteris_paribus.arms_of(alone.label_regression, entry.model, columns)
        self.pairs = [*combinations(range(len(self.arms)), 2)]
        assert self.rows.n_rows == len(y)

    def said(self):
        f = self.one.model(self.X)
        return {"y_pred": f.astype(np.int64)} if self.one.decision else {"y_score": f}

    def audit(self, metric, **options):
        return fa.influence_audit(
            self.y, X=self.X, sensitive_features=self.group, target=0, metric=NAMES[metric],
            n_draws=1, rng=1, n_threads=1, **options,
        )  # fmt: skip

    def value(self, metric):
        return MeasureValue.from_totals(measure_of(NAMES[metric]), self.totals, "target")

    def scores(self, metric, low, high):
        """The score with what the lens says of it, and the plug-in score of the paper."""
        arms = self.label_regression, self.value(metric), self.arms[low], self.arms[high]
        return ceteris_paribus.contrast_score(*arms), ceteris_paribus.plug_in(*arms)

    def guards(self, metric, low, high):
        """Which guards fail."""
        fewest, stand_for, largest = [math.inf], [], []
        for arm in (self.arms[low], self.arms[high]):
            inside, count = arm.inside > 0, self.rows.count
            if metric != "selection_rate":
                labels = [self.rows.label == label for label in (0.0, 1.0)]
                fewest += [count[inside & label].sum() for label in labels]
            weights = 1 / arm.propensity[inside]
            total = count[inside] @ weights
            stand_for.append(total / self.rows.n_rows)
            largest.append(weights.max(initial=0.0) / total if total else math.inf)
        low, high = STAND_FOR
        failing = {
            "labels": min(fewest) < FEWEST,
            "stand_for": not all(low <= share <= high for share in stand_for),
            "largest": max(largest) > LARGEST_SHARE,
        }
        return {name for name, fails in failing.items() if fails}

    def instead(self, metric):
        """The partialled-out score, where it has events."""
        value, (_, arm) = self.value(metric), self.arms
        inside, parts = arm.inside > 0, self.rows.terms
        cells = [value.n_events(self.rows.count[at] @ parts[at]) for at in (inside, ~inside)]
        if min(cells) < FEW_EVENTS:
            return None
        found = ceteris_paribus.partialled_out(self.rows, value, (0,), 0, arm.fitted)
        return None if found.refusal else found

    def check(self, metric):
        """The public function says the same."""
        if not self.is_default or isinstance(self.one, Towns):
            return
        model, (pair,) = Model(self.one), self.pairs
        for compat, value in zip((None, "paper"), self.scores(metric, *pair), strict=True):
            if value.refusal:
                continue
            result = self.audit(metric, model=model, compat=compat, features=["x1"], **self.said())
            (score,) = (s for s in result.proxy_scores if s.kind == "ceteris_paribus")
            assert math.isclose(score.estimate, value.estimate, rel_tol=1e-9)
            assert math.isclose(score.standard_error, value.standard_error, rel_tol=1e-9)


class Tally:
    """How often the intervals of one score hold, and how far it lies from the truth."""

    def __init__(self, truth, truth_instead):
        self.truth, self.truth_instead = truth, truth_instead
        names = ("shown", "ours", "plain", "stacked", "plug_in", "all", "all_ours")
        self.counts = dict.fromkeys((*names, "instead", "instead_ours"), 0)
        #: By guard: samples that it refuses, those that it alone refuses, and hits among these.
        self.guards = {name: [0, 0, 0] for name in GUARDS}
        self.errors, self.standard = [], []

    def add(self, audited, metric, low, high):
        found, plug_in = audited.scores(metric, low, high)
        failing = audited.guards(metric, low, high)
        assert bool(failing) == bool(found.refusal)
        self.count("plug_in", plug_in, NORMAL * plug_in.standard_error)
        ours = stats.t.isf(ALPHA / 2, found.df) * found.standard_error
        if math.isfinite(ours):
            self.counts["all"] += 1
            self.count("all_ours", found, ours)
        for name in failing:
            self.guards[name][0] += 1
        if failing:
            if len(failing) == 1:
                (name,) = failing
                self.guards[name][1] += 1
                self.guards[name][2] += self.holds(found, ours)
            self.add_instead(audited, metric)
            return
        self.counts["shown"] += 1
        self.count("ours", found, ours)
        self.count("plain", found, NORMAL * found.influence_error)
        self.count("stacked", found, NORMAL * found.stacked_error)
        self.errors.append(found.estimate - self.truth)
        self.standard.append(found.standard_error)

    def add_instead(self, audited, metric):
        """Return the substitute for a score that is refused."""
        one = None if math.isnan(self.truth_instead) else audited.instead(metric)
        if one is not None:
            self.counts["instead"] += 1
            half = stats.t.isf(ALPHA / 2, one.df) * one.standard_error
            self.counts["instead_ours"] += abs(one.estimate - self.truth_instead) <= half

    def count(self, name, found, half):
        self.counts[name] += self.holds(found, half)

    def holds(self, found, half):
        return bool(abs(found.estimate - self.truth) <= half)

    def entry(self):
        known = len(self.errors) > 1
        return {
            "truth": self.truth,
            **{name: int(count) for name, count in self.counts.items()},
            "guards": {name: [int(x) for x in counts] for name, counts in self.guards.items()},
            "bias": float(np.mean(self.errors)) if known else None,
            "deviation": float(np.std(self.errors)) if known else None,
            "standard_error": float(np.mean(self.standard)) if known else None,
        }


NORMAL = stats.norm.isf(ALPHA / 2)


@dataclass(frozen=True)
class FamilyAlone:
    """Eight features that say nothing once three others are held fixed: is one of them found?"""

    metric: str
    n: int
    decision: bool

    part = "family alone"
    n_draws = 999
    names = tuple(f"x{j}" for j in range(4, 12))

    @property
    def audits(self):
        return 500 if self.n < 1_000 else 300

    @property
    def key(self):
        words = f"{self.metric}:{self.n}:{self.decision}"
        return f"{VERSION}:{self.part}:{words}:{self.audits}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        seen = {"false": 0, "alone": 0, "marginal": 0, "flipped": 0, "partialled": 0}
        for number in range(self.audits):
            X, y = self.rows(rng)
            group = np.r_[np.zeros(self.n), np.ones(4)].astype(np.int64)
            result = fa.influence_audit(
                y, X=X, model=Model(self), sensitive_features=group, target=0,
                metric=NAMES[self.metric], features=self.names, n_threads=1,
                n_draws=self.n_draws, rng=number, **self.said(X),
            )  # fmt: skip
            marginal = [score for score in result.proxy_scores if score.kind == "marginal"]
            held = [score for score in result.proxy_scores if score.kind != "marginal"]
            shown = [score for score in held if score.standard_error > 0]
            seen["false"] += any(score.adjusted_pvalue <= ALPHA for score in shown)
            # Of single scores, and of marginal ones, which are not 0.
            seen["alone"] += sum(score.pvalue <= ALPHA for score in shown)
            seen["marginal"] += any(score.adjusted_pvalue <= ALPHA for score in marginal)
            seen["flipped"] += sum(score.kind == "ceteris_paribus" for score in shown)
            seen["partialled"] += sum(score.kind == "partialled_out" for score in shown)
        return seen

    def rows(self, rng):
        """(X, y) of the target group, and four rows of the others that play no part."""
        first = (rng.random((self.n, 3)) < (0.5, 0.4, 0.6)).astype(float)
        pull = np.resize([0.8, -0.6, 0.0, 0.5], (len(self.names), 1))
        eta = special.logit(np.geomspace(0.5, 0.1, len(self.names)))
        rates = special.expit(eta + (first[:, :1] + first[:, 1:2] - 0.9) * pull.T)
        X = np.column_stack([first, rng.random(rates.shape) < rates])
        h = special.expit(-0.6 + X[:, :3] @ np.array([0.8, -0.9, 0.7]))
        y = np.r_[rng.random(self.n) < h, 0, 1, 0, 1].astype(np.int64)
        return np.vstack([X, np.zeros((2, X.shape[1])), np.ones((2, X.shape[1]))]), y

    def model(self, X):
        eta = -0.7 + X[:, :3] @ np.array([0.9, -0.6, 0.5])
        return (eta > 0).astype(float) if self.decision else special.expit(eta)

    def said(self, X):
        f = self.model(X)
        return {"y_pred": f.astype(np.int64)} if self.decision else {"y_score": f}


def scenarios():
    for name in POPULATIONS:
        for n in (500, 5_000):
            yield HeldFixed(name, n)
    for metric in ("fpr", "fnr", "fdr"):
        yield from (FamilyAlone(metric, n, d) for n in (500, 5_000) for d in (False, True))
