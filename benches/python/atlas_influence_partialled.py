"""Partialled-out scores of continuous features in the influence atlas.

x is what three other features say of it, e, and a rest of its own; P(Y = 1 | x, the others) and the
scores are logistic in all of them. e is linear, which the default regression can say, or has a
square, which it cannot. The variance of x is 1, so that the true score of a
standard deviation is E[psi (x - e)] / E[(x - e)^2], summed over a grid.
"""

import math
import zlib
from dataclasses import dataclass
from functools import cache
from itertools import product
from unittest import mock

import numpy as np
from scipy import special, stats

import fairaudit_rs as fa
from atlas_influence_marginal import FEW_METRICS, NAMES
from atlas_tools import ALPHA
from fairaudit_rs.influence import ceteris_paribus
from fairaudit_rs.influence.held_fixed import HeldFixedScores
from fairaudit_rs.influence.rates import MeasureValue, measure_of
from tests.reference import influence as reference

#: Raise it when a change of the package or of this file changes what is measured here.
VERSION = 2
CHECKED = 3

SHARES_OF_BINARY = (0.5, 0.3)
#: By law of the rest: how it comes from a standard normal, with mean 0 and variance 1.
LAWS = {
    "normal": lambda z: z,
    "lognormal": lambda z: (np.exp(z) - math.sqrt(math.e)) / math.sqrt((math.e - 1) * math.e),
}
#: Points of the grid of the rest and of the continuous other feature.
POINTS = (2_001, 401)


@dataclass(frozen=True)
class Rows:
    """The effects of x, two binary features and a normal one on labels and scores."""

    law: str
    #: The share of the variance of x that the others do not say.
    rest: float
    square: bool
    decision: bool

    def expected(self, others):
        """Return the prediction of x from the others, with variance 1."""
        e = others @ np.array([1.0, -0.8, 0.6])
        variance = 0.25 + 0.64 * 0.21 + 0.36
        if self.square:
            e = e + 0.5 * (others[:, 2] ** 2 - 1)
            variance += 0.25 * 2
        return e / math.sqrt(variance)

    def feature(self, others, z):
        own = math.sqrt(self.rest) * LAWS[self.law](z)
        return math.sqrt(1 - self.rest) * self.expected(others) + own

    def h(self, x, others):
        return special.expit(-0.8 + 0.7 * x + others @ np.array([0.5, -0.6, 0.4]))

    def model(self, x, others):
        eta = -0.8 + 0.6 * x + others @ np.array([0.4, -0.3, 0.3])
        return (eta > 0).astype(float) if self.decision else special.expit(eta)

    def draw(self, rng, n):
        """(x, others, y)."""
        binary = (rng.random((n, 2)) < SHARES_OF_BINARY).astype(float)
        others = np.column_stack([binary, rng.normal(size=n)])
        x = self.feature(others, rng.normal(size=n))
        return x, others, (rng.random(n) < self.h(x, others)).astype(float)


@cache
def grid(entry):
    """(mass, h, f, own) of all points."""
    z, w = (stats.norm.ppf((np.arange(points) + 0.5) / points) for points in POINTS)
    found = []
    for binary in product((0.0, 1.0), repeat=2):
        share = math.prod(p if b else 1 - p for b, p in zip(binary, SHARES_OF_BINARY, strict=True))
        others = np.column_stack([np.tile(binary, (len(w), 1)), w])
        others, rest = np.repeat(others, len(z), axis=0), np.tile(z, len(w))
        x = entry.feature(others, rest)
        own = x - math.sqrt(1 - entry.rest) * entry.expected(others)
        mass = np.full(len(x), share / len(x))
        found.append((mass, entry.h(x, others), entry.model(x, others), own))
    return tuple(map(np.concatenate, zip(*found, strict=True)))


def truth(entry, metric):
    mass, h, f, own = grid(entry)
    psi = reference.psi_of_x(metric, f, h, reference.rates_of(metric, h, f, mass))
    # The rest has mean 0 but for the grid.
    own = own - mass @ own
    return float(mass @ (psi * own) / (mass @ own**2))


@dataclass(frozen=True)
class PartialledOut:
    """Many audits of n rows: FPR, FNR and FDR, scores and decisions."""

    law: str
    rest: float
    square: bool
    n: int

    part = "partialled"

    @property
    def audits(self):
        return 1_000 if self.n < 1_000 else 500

    @property
    def key(self):
        words = f"{self.law}:{self.rest:g}:{self.square}"
        return f"{VERSION}:{self.part}:{words}:{self.n}:{self.audits}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        made = [Rows(self.law, self.rest, self.square, decision) for decision in (False, True)]
        seen = {
            (metric, rows.decision): {
                "metric": metric, "decision": rows.decision, "truth": truth(rows, metric),
                "given": 0, "covered": 0, "few": 0, "determined": 0, "bare": 0,
            }
            for metric in FEW_METRICS
            for rows in made
        }  # fmt: skip
        grid.cache_clear()
        for number in range(self.audits):
            x, others, y = made[0].draw(rng, self.n)
            for rows in made:
                self.audit(rows, x, others, y, seen, number < CHECKED)
        return {"cells": list(seen.values())}

    def audit(self, entry, x, others, y, seen, checked):
        X = np.column_stack([x, others])
        f = entry.model(x, others)
        # The others: a row of either label and both values of the binary features.
        X, y = np.vstack([X, [0.0, 0, 0, 0], [1.0, 1, 1, 1]]), np.r_[y, 0, 1].astype(np.int64)
        group = np.r_[np.zeros(self.n), 1, 1].astype(np.int64)
        f = entry.model(X[:, 0], X[:, 1:])
        said = {"y_pred": f.astype(np.int64)} if entry.decision else {"y_score": f}
        given = {
            "X": X, "sensitive_features": group, "target": 0, "n_draws": 1, "rng": 1,
            "n_threads": 1, **said,
        }  # fmt: skip
        problem = fa.influence_audit(y, metric=NAMES["fpr"], **given).problem
        alone = HeldFixedScores(
            distinct=problem.distinct, value=problem.target_group.value, features=(),
            predict=lambda rows: entry.model(rows[:, 0], rows[:, 1:]), n_folds=5, plug_in=False,
            call=problem.call,
        )  # fmt: skip
        rows = alone.rows
        totals = rows.count @ rows.terms
        for metric in FEW_METRICS:
            value = MeasureValue.from_totals(measure_of(NAMES[metric]), totals, "target")
            found = ceteris_paribus.partialled_out(rows, value, (0,), 0, None)
            count = seen[metric, entry.decision]
            if value.n_events(totals) < reference.ENOUGH_EVENTS:
                count["few"] += 1
            elif not found.refusal:
                count["given"] += 1
                count["covered"] += holds(found, count["truth"])
                if checked and metric == "fdr":
                    self.check(entry, y, metric, given, found)
            else:
                count["determined"] += 1
                # As if no share were too small.
                with mock.patch.object(ceteris_paribus, "_LEAST_REST", 0.0):
                    bare = ceteris_paribus.partialled_out(rows, value, (0,), 0, None)
                count["bare"] += holds(bare, count["truth"])

    @staticmethod
    def check(entry, y, metric, given, found):
        """The public function says the same."""

        class Model:
            classes_ = (0, 1)

            def predict_proba(self, rows):
                f = entry.model(np.asarray(rows)[:, 0], np.asarray(rows)[:, 1:])
                return np.column_stack([1 - f, f])

            def predict(self, rows):
                return entry.model(np.asarray(rows)[:, 0], np.asarray(rows)[:, 1:]).astype(np.int64)

        result = fa.influence_audit(y, metric=NAMES[metric], model=Model(), **given)
        (score,) = (
            s for s in result.proxy_scores if s.kind == "partialled_out" and s.feature == "x1"
        )
        assert math.isclose(score.estimate, found.estimate, rel_tol=1e-7)
        assert math.isclose(score.standard_error, found.standard_error, rel_tol=1e-7)


def holds(found, value):
    half = stats.t.isf(ALPHA / 2, found.df) * found.standard_error
    return bool(abs(found.estimate - value) <= half)


def scenarios():
    places = [("normal", rest, False) for rest in (0.5, 0.05, 0.02, 0.012, 0.008, 0.003)]
    places += [("lognormal", rest, False) for rest in (0.5, 0.05, 0.012)]
    places += [("normal", rest, True) for rest in (0.5, 0.05)]
    for place in places:
        for n in (500, 5_000):
            yield PartialledOut(*place, n)
