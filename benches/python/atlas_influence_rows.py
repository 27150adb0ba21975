"""Weights and several rows of one person in the influence atlas.

The public function takes neither: weights are measured with the slow reference
`tests/reference/influence.py`, rows of one person as if they were rows of their own and with it.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from atlas_influence_marginal import (
    ENOUGH,
    FEW_METRICS,
    PREVALENCES,
    SIZES,
    Scenario,
    Tally,
    audit,
)
from tests.reference import influence as reference
from tests.reference.influence_designs import GRID, GRID_MASS

WEIGHTS = {
    "none": "",
    "uniform": "uniform from 0.5 to 1.5, independent of the rest",
    "lognormal": "lognormal, sd 1 of the logarithm, independent of the rest",
    "uniform, with x and y": "the same, times 3 where x = 1, divided by 3 where Y = 0",
    "lognormal, with x and y": "the same, times 3 where x = 1, divided by 3 where Y = 0",
}


@dataclass(frozen=True)
class Weighted(Scenario):
    """Binary features with weights of rows, by the slow reference."""

    part = "weights"

    def measure(self):
        rng = self.rng()
        made = [self.design(p, dependent) for p in PREVALENCES for dependent in (False, True)]
        tallies = {
            (law, place): Tally(
                self.truth(value, "with" in law),
                weights=law, prevalence=value.prevalence, dependent=value.dependent,
            )
            for law in WEIGHTS
            for place, value in enumerate(made)
        }  # fmt: skip
        for _ in range(self.audits):
            v, y, f = self.rows(rng)
            X = [(rng.random(self.n) < value.feature_rate(v)).astype(float) for value in made]
            drawn = {
                "none": np.ones(self.n),
                "uniform": rng.uniform(0.5, 1.5, self.n),
                "lognormal": rng.lognormal(size=self.n),
            }
            rows = [fewest_events(self.metric, y, f, x) for x in X]
            for (law, place), tally in tallies.items():
                w = drawn[law.partition(",")[0]]
                if "with" in law:
                    w = w * tilt(X[place], y)
                one = reference.marginal_binary(self.metric, y, f, X[place], w)
                tally.add(one.events, one.interval)
                # What a reader gets who counts rows and not effective events.
                if rows[place] >= ENOUGH and one.se > 0:
                    tally.unguarded += 1
                    tally.t[0.95] += tally.holds(*one.interval(0.95))
        return {"features": [tally.entry() for tally in tallies.values()]}

    def truth(self, design, tilted):
        """The score in the weighted population: sums over V, x and Y."""
        h, f, at = design.label_rate(GRID), design.predict(GRID), design.feature_rate(GRID)
        mass, label, x = [], [], []
        for of_y in (0.0, 1.0):
            for of_x in (0.0, 1.0):
                one = GRID_MASS * (h if of_y else 1 - h) * (at if of_x else 1 - at)
                mass.append(one * (tilt(of_x, of_y) if tilted else 1.0))
                label.append(np.full(len(GRID), of_y))
                x.append(np.full(len(GRID), of_x))
        mass, label, x, f = *map(np.concatenate, (mass, label, x)), np.tile(f, 4)
        psi = reference.psi_rows(self.metric, label, f, mass)
        return reference.mean(psi, mass * x) - reference.mean(psi, mass * (1 - x))


def fewest_events(metric, y, f, x):
    return min(reference.events(metric, y, f, inside) for inside in (x == 1, x == 0))


def tilt(x, y):
    return (1 + 2 * x) * (1 / 3 + 2 / 3 * y)


ROWS_OF_ONE = 5
LIKENESS = 0.3
FEATURES_OF_ONE = {"varies": 0.0, "alike": LIKENESS, "constant": 1.0}


@dataclass(frozen=True)
class Clustered(Scenario):
    """Five rows of each person, taken for rows of their own; a feature is the person's or not.

    V and what is left of the label have an intra-class correlation of 0.3, the feature one of 0,
    0.3 or 1 (of the normals behind them).
    """

    part = "clusters"

    def measure(self):
        rng = self.rng()
        places = [(kind, p) for kind in FEATURES_OF_ONE for p in (0.5, 0.1)]
        tallies, by_person = (
            [
                Tally(self.design(p).truth(self.metric), feature=kind, prevalence=p)
                for kind, p in places
            ]
            for _ in range(2)
        )
        for _ in range(self.audits):
            v = self.shared(rng, LIKENESS)
            design = self.design()
            label = special.ndtr(self.shared(rng, LIKENESS)) < design.label_rate(v)
            y, f = label.astype(float), design.predict(v)
            X = {
                f"x{j}": (special.ndtr(self.shared(rng, FEATURES_OF_ONE[kind])) < p).astype(float)
                for j, (kind, p) in enumerate(places)
            }
            result = audit(y, f, X, self.metric, self.decision)
            scores = zip(result.problem.marginal.scores, tallies, by_person, strict=True)
            for score, tally, other in scores:
                tally.add(score.n_events, score.interval)
                self.add_by_person(other, y, f, X[score.contrast.feature])
        return {
            "features": [tally.entry() for tally in tallies],
            "by_person": [tally.entry() for tally in by_person],
        }

    def shared(self, rng, share):
        """Standard normals, those of a person of this correlation."""
        persons = np.repeat(rng.normal(size=self.n // ROWS_OF_ONE), ROWS_OF_ONE)
        return math.sqrt(share) * persons + math.sqrt(1 - share) * rng.normal(size=self.n)

    def add_by_person(self, tally, y, f, x):
        """Count an interval that adds up the influence values of a person first."""
        one = reference.marginal_binary(self.metric, y, f, x)
        if not one.se > 0:
            tally.add(0.0, None)
            return
        persons = self.n // ROWS_OF_ONE
        sums = one.influence.reshape(persons, ROWS_OF_ONE).sum(axis=1)
        error = math.sqrt(persons / (persons - 1) * np.sum(sums**2)) / self.n
        df = np.sum(sums**2) ** 2 / np.sum(sums**4)

        def interval(level):
            half = stats.t.isf((1 - level) / 2, df) * error
            return one.value - half, one.value + half

        tally.add(self.events_by_person(y, f, x), interval)

    def events_by_person(self, y, f, x):
        """Effective events when a person's rows in a cell are one: (sum A)^2 / sum k A."""
        a, b = reference.parts(self.metric, y, f)
        fewest = math.inf
        for inside in (x, 1 - x):
            for counted in (a, b - a):
                terms = (inside * counted).reshape(-1, ROWS_OF_ONE).sum(axis=1)
                rows = (inside * (counted > 0)).reshape(-1, ROWS_OF_ONE).sum(axis=1)
                below = np.sum(rows * terms)
                fewest = min(fewest, np.sum(terms) ** 2 / below if below > 0 else 0.0)
        return fewest


def scenarios():
    for metric in (*FEW_METRICS, "selection_rate"):
        yield from (Weighted(metric, n, 0.31, d) for n in SIZES for d in (False, True))
        yield from (Clustered(metric, n, 0.31, d) for n in SIZES for d in (False, True))
