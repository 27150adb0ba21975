"""Tests of equal return levels in the extremes atlas: two groups, several, rows scored twice."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from atlas_extremes_counts import (
    Limits,
    Scenario,
    chi_square,
    tail_of_rows,
)
from fairaudit_rs import _native
from fairaudit_rs.extremes.comparison import compare_return_levels, permute_levels
from fairaudit_rs.extremes.problem import TailProblem
from fairaudit_rs.inference.multiplicity import adjust_pvalues
from tests.reference.extremes_designs import EXPONENTIAL, INDEX, LAWS, beta


def compare_levels(first, second, m, confidence, call):
    """Of two sides alone."""
    return _native.compare_levels([first, second], [(0, 1)], m, confidence, call)[0]


#: Levels of the test; a p-value that is a bound is the last.
SIZES = (0.05, 0.01, 0.001)
#: Two laws with the known end of both, None: the fit is of the values. The second law is scaled to
#: the level of the first, below it where an end is known.
SMOOTH = {
    "beta(2, 4), beta(2, 4)": ("beta(2, 4)", "beta(2, 4)", 1.0),
    "beta(2, 4), exponential": ("beta(2, 4)", "exponential", None),
    "beta(2, 4), t4": ("beta(2, 4)", "t4", None),
    "exponential, t4": ("exponential", "t4", None),
    "exponential, exponential": ("exponential", "exponential", None),
    "t4, t4": ("t4", "t4", None),
    ".5 beta(2, 4), .05 exponential": (".5 beta(2, 4)", ".05 exponential", 1.0),
}
#: More simulations of these.
MANY = tuple(SMOOTH)[:6]
NEAR_UNIFORM = {
    "uniform, uniform": ("uniform", "uniform", None),
    "beta(2, 1.2), uniform": ("beta(2, 1.2)", "uniform", None),
    "beta(2, 1.2), uniform on t": ("beta(2, 1.2)", "uniform", 1.0),
}
SHORT = {
    "index model, index model": ("index model", "index model", None),
    "index model, beta(2, 4)": ("index model", "beta(2, 4)", None),
    "index model, exponential": ("index model", "exponential", None),
}
PAIRS = {**SMOOTH, **NEAR_UNIFORM, **SHORT}
BY_NAME = {
    **LAWS,
    **INDEX,
    ".5 beta(2, 4)": beta(2, 4, 0.5),
    ".05 exponential": EXPONENTIAL.times(0.05),
}
#: Simulations of raw chi-square.
BESIDE = 250
#: Rows of both groups and the horizon: both fitted, one counted, both counted.
FITTED = ((2_000, 2_000, 1_000), (2_000, 500, 1_000), (500, 100, 400))
TURNED = ((500, 2_000, 1_000), (100, 500, 400))
HALF = ((2_000, 500, 500), (2_000, 200, 200), (500, 100, 100))
COUNTED = ((2_000, 2_000, 500), (2_000, 500, 125), (500, 500, 50), (500, 100, 25))


class Rejections:
    """How often a test rejects at each of SIZES, and how often it has no p-value."""

    def __init__(self):
        self.counts = np.zeros(len(SIZES), dtype=int)
        self.of = self.refused = 0

    def add(self, pvalue):
        if np.isnan(pvalue):
            self.refused += 1
            return
        self.of += 1
        # A bound is the last level but for rounding.
        self.counts += pvalue <= np.array(SIZES) * (1 + 1e-6)

    def entry(self):
        return {"of": self.of, "refused": self.refused, "rejected": self.counts.tolist()}


def pair_of(name, m, ratio=1.0):
    """Two laws, the second scaled so that its level is that of the first divided by a ratio."""
    first, second, upper = PAIRS[name]
    one, other = BY_NAME[first], BY_NAME[second]
    factor = one.level(1 / m) / (ratio * other.level(1 / m))
    return one.with_upper(upper), other.times(factor, upper)


@dataclass(frozen=True)
class Pair(Scenario):
    """The test and the interval of two groups; where both are fitted also raw chi-square."""

    laws: str
    sizes: tuple
    m: int
    ratio: float
    audits: int

    @property
    def part(self):
        return "size" if self.ratio == 1 else "power"

    @property
    def n(self):
        return max(self.sizes)

    def measure(self):
        one, other = pair_of(self.laws, self.m, self.ratio)
        rng, call, flat = self.rng(), _native.Call(1), chi_square()
        truth = one.level(1 / self.m) - other.level(1 / self.m)
        test, raw, limits, methods = Rejections(), Rejections(), Limits(), []
        for number in range(self.audits):
            first, second = (
                tail_of_rows(one, rng, self.sizes[0]),
                tail_of_rows(other, rng, self.sizes[1]),
            )
            found = compare_return_levels(first, second, self.m, call)
            test.add(found.pvalue)
            limits.add(found.low - truth, found.high - truth, 0.0)
            methods.append(found.method)
            if found.method == "fit" and number < BESIDE and self.ratio == 1:
                raw.add(self.raw(first, second, flat, call))
        method = max(set(methods), key=methods.count)
        return {
            "method": method,
            "test": test.entry(),
            "raw": raw.entry(),
            "outside": [limits.low, limits.high, limits.of],
        }

    def raw(self, first, second, flat, call):
        """The p-value of the two-sample likelihood ratio with chi-square."""
        sides = ((first.fit, flat), (second.fit, flat))
        return compare_levels(*sides, float(self.m), 0.95, call)[1]


@dataclass(frozen=True)
class Permuted(Scenario):
    """Permuted groups, a test of equal laws, taken for one of equal levels."""

    laws: str
    sizes: tuple
    m: int
    audits: int = 500
    resamples: int = 199
    part = "permuted"

    @property
    def n(self):
        return max(self.sizes)

    def measure(self):
        one, other = pair_of(self.laws, self.m)
        rng, call, test = self.rng(), _native.Call(1), Rejections()
        for number in range(self.audits):
            first, second = (
                tail_of_rows(one, rng, self.sizes[0]),
                tail_of_rows(other, rng, self.sizes[1]),
            )
            draws = _native.Draws(self.resamples, seed=number)
            observed, drawn = permute_levels(first, second, self.m, draws, call)
            extreme = len(drawn) - int((np.abs(drawn) < abs(observed) - 1e-12).sum())
            test.add((1 + extreme) / (1 + len(drawn)))
        return {"test": test.entry()}


#: Laws of several groups, scaled to one level, and their sizes.
GROUPS = {
    "four groups of 2,000": (("beta(2, 4)", "exponential", "t4", "beta(2, 4)"), (2_000,) * 4),
    "four groups of 500 to 2,000": (
        ("beta(2, 4)", "exponential", "t4", "beta(2, 4)"),
        (2_000, 1_000, 500, 500),
    ),
    "2 % of 10,000": (("beta(2, 4)", "exponential"), (200, 9_800)),
    "2 % of 10,000, heavy": (("t4", "exponential"), (200, 9_800)),
    "98 % of 10,000": (("beta(2, 4)", "exponential"), (9_800, 200)),
}


@dataclass(frozen=True)
class Several(Scenario):
    """Family-wise error of all pairs by Holm, and of unadjusted p-values."""

    groups: str
    m: int = 1_000
    audits: int = 1_000
    part = "several"

    @property
    def n(self):
        return sum(GROUPS[self.groups][1])

    def measure(self):
        names, sizes = GROUPS[self.groups]
        level = BY_NAME[names[0]].level(1 / self.m)
        laws = [BY_NAME[name].times(level / BY_NAME[name].level(1 / self.m)) for name in names]
        rng, call = self.rng(), _native.Call(1)
        holm, alone, refused = Rejections(), Rejections(), 0
        pairs = [(i, j) for j in range(len(laws)) for i in range(j)]
        methods = set()
        for _ in range(self.audits):
            tails = [tail_of_rows(law, rng, n) for law, n in zip(laws, sizes, strict=True)]
            found = [compare_return_levels(tails[i], tails[j], self.m, call) for i, j in pairs]
            methods |= {comparison.method for comparison in found}
            pvalues = np.array([comparison.pvalue for comparison in found])
            refused += int(np.isnan(pvalues).sum())
            holm.add(np.nanmin(adjust_pvalues(pvalues)))
            alone.add(np.nanmin(pvalues))
        return {
            "n_pairs": len(pairs),
            "methods": sorted(methods),
            "no_pvalue": refused,
            "holm": holm.entry(),
            "alone": alone.entry(),
        }


@dataclass(frozen=True)
class Paired(Scenario):
    """Both groups are the same rows, by a Gaussian copula: the tails are taken as independent."""

    law: str
    n: int
    m: int
    correlation: float
    audits: int = 500
    part = "paired"

    def measure(self):
        law, rng, call, test = LAWS[self.law], self.rng(), _native.Call(1), Rejections()
        rest = np.sqrt(1 - self.correlation**2)
        for _ in range(self.audits):
            first = rng.standard_normal(self.n)
            second = self.correlation * first + rest * rng.standard_normal(self.n)
            tails = [
                TailProblem(values=law.level(stats.norm.sf(value)), upper=law.upper)
                for value in (first, second)
            ]
            test.add(compare_return_levels(*tails, self.m, call).pvalue)
        return {"test": test.entry()}


def scenarios():
    for laws in PAIRS:
        for design in (*FITTED, *HALF, *COUNTED):
            yield pair(laws, design, 1.0, audits_of(laws, design))
        if len(set(PAIRS[laws][:2])) > 1:
            yield from (pair(laws, design, 1.0, 1_000) for design in TURNED)
    for ratio in (1.2, 1.5):
        for laws in SMOOTH:
            yield from (pair(laws, design, ratio, 200) for design in (*FITTED, *HALF, *COUNTED))
        for laws in (*NEAR_UNIFORM, *SHORT):
            yield pair(laws, FITTED[1], ratio, 200)
    for laws in ("beta(2, 4), exponential", "exponential, t4", "beta(2, 4), t4"):
        yield from (Permuted(laws, tuple(sizes), m) for *sizes, m in FITTED)
    yield from (Several(groups) for groups in GROUPS)
    for law in ("beta(2, 4)", "t4"):
        for n, m in ((2_000, 1_000), (500, 400)):
            for correlation in (-1.0, -0.5, 0.0, 0.5, 0.8, 0.95):
                yield Paired(law, n, m, correlation)


def audits_of(laws, design):
    """As many as time allows: what is promised, what is cheap, the rest."""
    if design in COUNTED or (laws in MANY and design in FITTED):
        return 5_000
    return 1_000


def pair(laws, design, ratio, audits):
    *sizes, m = design
    return Pair(laws, tuple(sizes), m, ratio, audits)
