"""Return levels and shapes of one tail in the extremes atlas."""

from dataclasses import dataclass

import numpy as np

from atlas_extremes_counts import (
    AT,
    CUTS,
    INTERVALS,
    Limits,
    Scenario,
    Scores,
    chi_square,
    tail_of_rows,
)
from fairaudit_rs import _native
from fairaudit_rs.extremes.diagnostics import threshold_sequence
from fairaudit_rs.extremes.problem import FEWEST_EXCEEDANCES, TailProblem, level_cuts
from fairaudit_rs.extremes.tail import make_tail_fit
from tests.reference.extremes_designs import ALL, INDEX, LAWS, MIXTURES, OTHERS

#: Horizons in rows, as multiples of n.
HORIZONS = (0.25, 1, 4)
#: Sizes of the promise, beyond it, and between those to which tabled numbers are the default.
SIZES = (500, 2_000, 10_000, 150, 300, 1_300)
#: Where coverage is promised, and variants are looked at beside ours.
PROMISED_SIZES = (500, 2_000)
#: Horizons of what a user gets: rows over horizon.
ROWS_OVER_HORIZON = (20, 8, 4, 3.7, 3.4, 3.05, 2, 1, 0.25, 0.18)
#: Simulations of variants beside ours.
BESIDE = 1_500


@dataclass(frozen=True)
class Fitted(Scenario):
    """Intervals by the fit with shipped cuts, and variants that should or should not hold.

    An interval holds the truth where its normal score is within the cut; the intervals themselves
    are computed of some samples to see that this is so.
    """

    law: str
    n: int
    audits: int = 10_000
    part = "levels"

    def measure(self):
        law, rng, call, flat = ALL[self.law], self.rng(), _native.Call(1), chi_square()
        horizons = [ratio * self.n for ratio in HORIZONS]
        truths = [law.level(1 / m) for m in horizons]
        k = _native.default_exceedances(self.n)
        threshold = law.level(k / self.n)
        names = ["ours", "chi-square on c", "chi-square on t", "half", "double", "threshold"]
        counted = {(name, m): Scores() for name in names for m in horizons}
        widths = {m: Limits() for m in horizons}
        differ = 0
        for number in range(self.audits):
            values = law.sample(rng, self.n)
            ours = TailProblem(values=values, upper=law.upper)
            variants = {"ours": (ours, None)}
            if number < BESIDE and self.law in LAWS and self.n in PROMISED_SIZES:
                on_c = TailProblem(values=values)
                variants |= {
                    "chi-square on c": (on_c, flat),
                    "chi-square on t": (ours, flat),
                    "half": (self.chosen(values, law, max(k // 2, FEWEST_EXCEEDANCES)), None),
                    "double": (self.chosen(values, law, 2 * k), None),
                    "threshold": (
                        TailProblem(values=values, upper=law.upper, threshold=threshold),
                        None,
                    ),
                }
            for name, (problem, cuts) in variants.items():
                for m, truth in zip(horizons, truths, strict=True):
                    if not problem.reaches(m):
                        counted[name, m].refused += 1
                        continue
                    at = problem.cuts(m, call) if cuts is None else cuts
                    counted[name, m].add(problem.fit, m, truth, at, call)
            if number < INTERVALS:
                for m, truth in zip(horizons, truths, strict=True):
                    found = ours.fitted(m, call)
                    widths[m].add(found.low, found.high, truth)
                    within = abs(counted["ours", m].found[-1]) <= CUTS[AT]
                    differ += int(within != (found.low <= truth <= found.high))
        cells = [
            {"variant": name, "ratio": m / self.n, **scores.entry()}
            for (name, m), scores in counted.items()
            if scores.found or scores.refused
        ]
        intervals = [{"ratio": m / self.n, **limits.entry()} for m, limits in widths.items()]
        return {"k": k, "cells": cells, "intervals": intervals, "differ": differ}

    def chosen(self, values, law, k):
        return TailProblem(values=values, upper=law.upper, n_exceedances=k)


@dataclass(frozen=True)
class Automatic(Scenario):
    """A threshold by tests of Anderson and Darling in sequence, with the cuts of what it chose."""

    law: str
    n: int
    audits: int = 200
    part = "automatic"

    def measure(self):
        law, rng, call = LAWS[self.law], self.rng(), _native.Call(1)
        k = _native.default_exceedances(self.n)
        ks = sorted({max(15, round(k * step)) for step in (0.5, 1, 2, 3, 4)})
        horizons = [ratio * self.n for ratio in HORIZONS]
        counted = {m: Scores() for m in horizons}
        chosen = []
        for number in range(self.audits):
            values = law.sample(rng, self.n)
            problem = TailProblem(values=values, upper=law.upper)
            rows = problem.on_scale(problem.sorted.top(ks[-1] + 1))
            draws = _native.Draws(49, seed=number)
            found = threshold_sequence(rows, ks, draws, call=call).n_exceedances or ks[0]
            chosen.append(found)
            fit = problem.sorted.fit(found, law.upper, None)
            for m in horizons:
                cuts = level_cuts(found, self.n, float(m), call)
                counted[m].add(fit, m, law.level(1 / m), cuts, call)
        cells = [{"ratio": m / self.n, **scores.entry()} for m, scores in counted.items()]
        return {"k": k, "chosen": float(np.median(chosen)), "cells": cells}


@dataclass(frozen=True)
class Studentized(Scenario):
    """Bootstrap-t of the fitted level on the scale of the fit, with the error of the delta rule."""

    law: str
    n: int
    audits: int = 300
    resamples: int = 99
    part = "bootstrap-t"

    def measure(self):
        law, rng = LAWS[self.law], self.rng()
        k = _native.default_exceedances(self.n)
        horizons = np.array([ratio * self.n for ratio in HORIZONS])
        truths = np.array([law.level(1 / m) for m in horizons])
        if law.upper is not None:
            truths = -np.log1p(-truths / law.upper)
        low = np.zeros(len(horizons), dtype=int)
        high = low.copy()
        for _ in range(self.audits):
            values = law.sample(rng, self.n)
            if law.upper is not None:
                values = -np.log1p(-values / law.upper)
            estimate, error = self.level(values, k, horizons)
            drawn = []
            for _ in range(self.resamples):
                again, its = self.level(values[rng.integers(0, self.n, self.n)], k, horizons)
                drawn.append((again - estimate) / its)
            left, right = np.quantile(drawn, [0.025, 0.975], axis=0)
            low += truths < estimate - right * error
            high += truths > estimate - left * error
        cells = [
            {"ratio": m / self.n, "of": self.audits, "low": int(value), "high": int(other)}
            for m, value, other in zip(horizons, low, high, strict=True)
        ]
        return {"k": k, "cells": cells}

    def level(self, values, k, horizons):
        """Fitted levels with their standard errors by the delta rule, as for shapes above -.5."""
        fit = _native.TailValues(values, _native.Call(1)).fit(k, None, None)
        shape, scale = fit.shape, fit.scale
        M = horizons * k / self.n
        grown = np.log(M) if abs(shape) < 1e-8 else np.expm1(shape * np.log(M)) / shape
        by_shape = (
            scale * np.log(M) ** 2 / 2
            if abs(shape) < 1e-8
            else scale * (M**shape * np.log(M) - grown) / shape
        )
        one = 1 + max(shape, -0.99)
        variance = (
            (by_shape * one) ** 2 - 2 * by_shape * grown * scale * one + 2 * (grown * scale) ** 2
        ) / k + scale**2 / k
        return fit.threshold + scale * grown, np.sqrt(variance)


@dataclass(frozen=True)
class Primary(Scenario):
    """The answer at a horizon: order statistics or the fit, and the free lower limit."""

    law: str
    n: int
    audits: int = 1_500
    part = "primary"

    def measure(self):
        law, rng, call = ALL[self.law], self.rng(), _native.Call(1)
        horizons = [self.n / ratio for ratio in ROWS_OVER_HORIZON]
        truths = [law.level(1 / m) for m in horizons]
        names = ("primary", "fit", "half", "free", "at least")
        counted = {(name, place): Limits() for name in names for place in range(len(horizons))}
        standings = [[] for _ in horizons]
        for _ in range(self.audits):
            problem = tail_of_rows(law, rng, self.n)
            for place, (m, truth) in enumerate(zip(horizons, truths, strict=True)):
                found = problem.level(m, call)
                standings[place].append(found.standing)
                for name, low, high in (
                    ("primary", found.low, found.high),
                    ("fit", found.fitted_low, found.fitted_high),
                    ("half", found.half_low, found.half_high),
                    ("free", found.lower_free, np.inf),
                    ("at least", found.at_least, np.inf),
                ):
                    counted[name, place].add(low, high, truth)
        cells = [
            {
                "rows_over_horizon": ratio,
                "standing": max(set(said), key=said.count),
                "refused": said.count("refused"),
                **{name: counted[name, place].entry() for name in names},
            }
            for place, (ratio, said) in enumerate(zip(ROWS_OVER_HORIZON, standings, strict=True))
        ]
        return {"cells": cells}


@dataclass(frozen=True)
class Shapes(Scenario):
    """Intervals of the shape and types, with the end known and not."""

    law: str
    n: int
    known_end: bool
    audits: int = 1_500
    part = "shapes"

    def measure(self):
        law, rng, call = LAWS[self.law], self.rng(), _native.Call(1)
        shape = law.shapes[0 if self.known_end else 1]
        limits, types, refused = Limits(), {"I": 0, "II": 0, "III": 0}, 0
        for _ in range(self.audits):
            problem = tail_of_rows(law, rng, self.n, **({} if self.known_end else {"upper": None}))
            found = make_tail_fit(problem, call=call)
            low, high = found.confidence_interval
            if not found.type:
                refused += 1
                continue
            limits.add(low, high, shape)
            types[found.type] += 1
        return {"shape": shape, "types": types, "no_type": refused, **limits.entry()}


def scenarios():
    for n in SIZES:
        audits = 10_000 if n in PROMISED_SIZES or n == 10_000 else 3_000
        yield from (Fitted(law, n, audits) for law in LAWS)
    for n in (500, 2_000):
        yield from (Fitted(law, n, 2_000) for law in OTHERS)
    for law in LAWS:
        for n in (500, 2_000):
            yield Primary(law, n)
        for n, audits in ((100, 1_500), (200, 1_500), (10_000, 2_000)):
            yield Primary(law, n, audits)
    for law in (*INDEX, *MIXTURES):
        yield from (Primary(law, n) for n in (500, 2_000))
    for law in OTHERS:
        yield from (Primary(law, n, 600) for n in (500, 2_000))
    for n in (500, 2_000, 10_000):
        for law, known in LAWS.items():
            yield Shapes(law, n, True)
            if known.upper is not None:
                yield Shapes(law, n, False)
    for n in (500, 2_000):
        for law in LAWS:
            yield Automatic(law, n)
            yield Studentized(law, n)
