"""Scores with all else held fixed in the influence atlas: populations, audits, counts.

Eight binary features, the first one is flipped. P(Y = 1 | X) and P(x_1 = 1 | the others) are
logistic with a product of the signs of two of the others, which the default regressions of main
effects and pairs can say, or of three, which they cannot: so either of them is right or wrong. All
true scores are sums over the 256 rows that there can be.
"""

import math
import zlib
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

import fairaudit_rs as fa
from atlas_influence_marginal import NAMES, VERSION
from atlas_tools import ALPHA
from fairaudit_rs.influence import ceteris_paribus
from fairaudit_rs.influence.alone import Alone
from fairaudit_rs.influence.rates import MeasureValue, measure_of
from tests.reference import influence_designs as designs

METRICS = ("fpr", "fnr", "fdr", "selection_rate")
RIGHT = {"both": (True, True), "e": (False, True), "h": (True, False), "none": (False, False)}
#: Audits of each population that go through the public function too: the same numbers.
CHECKED = 3


@dataclass(frozen=True)
class Signs(designs.CeterisParibus):
    """Products of signs in h, in e and in the model."""

    h_right: bool = True
    e_right: bool = True
    #: Of the logit of e: lower where the flipped feature is rare.
    level: float = 0.2

    @staticmethod
    def signs(rest, right):
        return np.prod(2 * rest[:, : 2 if right else 3] - 1, axis=1)

    def e(self, rest):
        tail = rest[:, 2:] @ np.array([0.5, -0.5, 0.4, 0.3, -0.3])
        return special.expit(self.level + self.signs(rest, self.e_right) + tail)

    def h(self, X):
        tail = X[:, 3:] @ np.array([0.6, -0.5, 0.5, -0.4, 0.3])
        signs = 1.2 * self.signs(X[:, 1:], self.h_right)
        return special.expit(-1.0 + 0.8 * X[:, 0] + signs + tail)

    def model(self, X):
        signs = 0.3 * self.signs(X[:, 1:], True) + 0.6 * self.signs(X[:, 1:], False)
        tail = X[:, 3:] @ np.array([0.7, -0.4, 0.5, -0.5, 0.4])
        eta = -1.2 + 0.7 * X[:, 0] + signs + tail
        return (eta > -0.3).astype(float) if self.decision else special.expit(eta)


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


POPULATIONS = {
    **{
        f"signs, {name} right": {"h_right": h, "e_right": e}
        for name, (h, e) in RIGHT.items()
    },
    "signs, rare": {"level": -2.2},
    "signs, very rare": {"level": -3.5},
    "one product": None,
}  # fmt: skip


def population(name, decision):
    options = POPULATIONS[name]
    return designs.CeterisParibus(decision) if options is None else Signs(decision, **options)


@dataclass(frozen=True)
class HeldFixed:
    """Many audits of n rows of a population: all metrics, scores and decisions."""

    name: str
    n: int

    part = "alone"

    @property
    def audits(self):
        return 1_000

    @property
    def key(self):
        return f"{VERSION}:{self.part}:{self.name}:{self.n}:{self.audits}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        made = [population(self.name, decision) for decision in (False, True)]
        tallies = {
            (metric, one.decision): Tally(one.truth(metric)) for metric in METRICS for one in made
        }
        for number in range(self.audits):
            X, y, _ = made[0].rows(rng, self.n)
            for one in made:
                audited = Audited(one, X, y)
                for metric in METRICS:
                    found, plug_in = audited.scores(metric)
                    tallies[metric, one.decision].add(found, plug_in)
                    if number < CHECKED and metric == "fdr":
                        audited.check(metric, found, plug_in)
        X, mass = made[0].masses()
        return {
            "share": float(mass @ X[:, 0]),
            "cells": [
                {"metric": metric, "decision": decision, **tally.entry()}
                for (metric, decision), tally in tallies.items()
            ],
        }


class Audited:
    """The lens's own objects for one sample: its regressions serve all metrics."""

    def __init__(self, one, X, y):
        self.one = one
        f = one.model(X)
        # The others: a row of either label and both values of all features.
        self.X = np.vstack([X, np.zeros((2, X.shape[1])), np.ones((2, X.shape[1]))])
        self.y = np.r_[y, 0, 1, 0, 1].astype(np.int64)
        self.group = np.r_[np.zeros(len(y)), np.ones(4)].astype(np.int64)
        # Needs no regression: for the rows in the lens's own order.
        problem = self.audit("fpr", model=None, **self.said()).problem
        alone = Alone(
            kinds=problem.kinds, value=problem.target_group.value, features=(),
            predict=one.model, n_folds=5, plug_in=False, call=problem.call,
        )  # fmt: skip
        self.totals = alone.rows.count @ alone.rows.parts
        self.nuisances = alone.nuisances
        self.arms = ceteris_paribus.arms_of(alone.nuisances, one.model, (0,))
        assert len(f) == alone.rows.n_rows

    def said(self):
        f = self.one.model(self.X)
        return {"y_pred": f.astype(np.int64)} if self.one.decision else {"y_score": f}

    def audit(self, metric, model, **options):
        return fa.influence_audit(
            self.y, X=self.X, model=model, sensitive_features=self.group, target=0,
            metric=NAMES[metric], n_draws=1, rng=1, n_threads=1, features=self.features(model),
            **options,
        )  # fmt: skip

    def features(self, model):
        """A model has all features and is asked for one."""
        return None if model is None else ["x1"]

    def scores(self, metric):
        """The score with what the lens says of it, and the plug-in score of the paper."""
        value = MeasureValue.of(measure_of(NAMES[metric]), self.totals, "target")
        ours = ceteris_paribus.contrast(self.nuisances, value, *self.arms)
        return ours, ceteris_paribus.plug_in(self.nuisances, value, *self.arms)

    def check(self, metric, found, plug_in):
        """The public function says the same."""
        model = Model(self.one)
        for compat, one in ((None, found), ("paper", plug_in)):
            if one.refusal:
                continue
            result = self.audit(metric, model, compat=compat, **self.said())
            (score,) = (s for s in result.proxy_scores if s.kind == "ceteris_paribus")
            assert math.isclose(score.estimate, one.estimate, rel_tol=1e-9)
            assert math.isclose(score.standard_error, one.standard_error, rel_tol=1e-9)


class Tally:
    """How often the intervals of one score hold, and how far it lies from the truth."""

    def __init__(self, truth):
        self.truth = truth
        self.counts = dict.fromkeys(("shown", "ours", "plain", "plug_in"), 0)
        self.errors, self.standard = [], []

    def add(self, found, plug_in):
        error = found.estimate - self.truth
        self.counts["plug_in"] += abs(plug_in.estimate - self.truth) <= NORMAL * (
            plug_in.standard_error
        )
        if found.refusal:
            return
        self.counts["shown"] += 1
        quantile = stats.t.isf(ALPHA / 2, found.df)
        self.counts["ours"] += abs(error) <= quantile * found.standard_error
        self.counts["plain"] += abs(error) <= NORMAL * found.plain_error
        self.errors.append(error)
        self.standard.append(found.standard_error)

    def entry(self):
        known = len(self.errors) > 1
        return {
            "truth": self.truth,
            **{name: int(count) for name, count in self.counts.items()},
            "bias": float(np.mean(self.errors)) if known else None,
            "deviation": float(np.std(self.errors)) if known else None,
            "standard_error": float(np.mean(self.standard)) if known else None,
        }


NORMAL = stats.norm.isf(ALPHA / 2)


def scenarios():
    for name in POPULATIONS:
        for n in (500, 5_000):
            yield HeldFixed(name, n)
