"""Scenarios of the permutation lens in the validity atlas, and data of each."""

import math
import zlib
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

import fairaudit_rs as fa

#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 2

#: Audits of a scenario.
AUDITS = 2_000
SIZES = (200, 500, 2_000)
BASE_RATES = ((0.5, 0.5), (0.5, 0.2), (0.5, 0.05))
#: One place for each: the page shows them in this order.
DESIGNS = (
    "plain", "weights", "clusters", "strata", "few rows", "skewed", "spread weights", "states",
    "sparse strata", "U shape", "V shape", "tied",
)  # fmt: skip
GAP = 0.1

#: Designs in which the first group has 2 % of the rows; those within strata of the user's.
UNEQUAL = ("few rows", "skewed")
STRATIFIED = ("strata", "sparse strata")
#: Standard deviation of what the rows of a cluster share; that of a row is 1.
SHARED = {"clusters": 1.0, "states": 0.5}

CONFUSION = [
    metric for metric in fa.metrics.names() if fa.metrics.get(metric).family in ("counts", "joint")
]
SCORED = ["auc", "calibration_error"]
ERRORS = ["mean_absolute_error", "mean_squared_error", "log_loss"]
VALUES = ["mean_prediction", "mean_residual"]
CORRELATIONS = ["pearson", "spearman", "residual_pearson", "residual_spearman"]


@dataclass(frozen=True)
class Scenario:
    metric: str
    design: str
    n: int
    base_rates: tuple[float, float]

    @property
    def key(self):
        first, second = self.base_rates
        return f"{VERSION}:{self.metric}:{self.design}:{self.n}:{first:g}:{second:g}:{AUDITS}"

    @property
    def seed(self):
        return zlib.crc32(self.key.encode())


def scenarios():
    """All metrics plainly; those of each family in other designs."""
    for n in SIZES:
        for base_rates in BASE_RATES:
            for metric in (*CONFUSION, *SCORED, *ERRORS, *VALUES):
                yield Scenario(metric, "plain", n, base_rates)
        for metric in CORRELATIONS:
            yield Scenario(metric, "plain", n, (0.5, 0.5))
    for design in ("weights", "clusters"):
        for metric in ("true_positive_rate", "accuracy", "f1", "mcc", "auc", "mean_squared_error"):
            for n in SIZES:
                yield Scenario(metric, design, n, (0.5, 0.2))
    for metric in ("true_positive_rate", "accuracy", "f1", "equalized_odds", "auc"):
        for n in SIZES:
            yield Scenario(metric, "strata", n, (0.5, 0.2))
    # What an audit from outside found: small shares, skewness, heavy weights, few large clusters,
    # strata of few rows, dependence without correlation, ties.
    few = ("selection_rate", "true_positive_rate", "f1", "balanced_accuracy", "auc", *ERRORS)
    for metric in (*few, *VALUES):
        for n in (500, 2_000):
            yield Scenario(metric, "few rows", n, (0.5, 0.2))
    for metric in ("mean_residual", *ERRORS):
        for n in (500, 2_000):
            yield Scenario(metric, "skewed", n, (0.5, 0.03))
    for metric in ("selection_rate", "true_positive_rate", "f1", "auc", "mean_squared_error"):
        for n in SIZES:
            yield Scenario(metric, "spread weights", n, (0.5, 0.2))
            yield Scenario(metric, "states", n, (0.5, 0.2))
    for metric in ("selection_rate", "true_positive_rate", "f1", "mean_squared_error"):
        for n in SIZES:
            yield Scenario(metric, "sparse strata", n, (0.5, 0.2))
    for n in SIZES:
        for metric in CORRELATIONS:
            for design in ("U shape", "V shape", "tied"):
                yield Scenario(metric, design, n, (0.5, 0.5))
        yield Scenario("auc", "tied", n, (0.5, 0.2))


# --- groups with one value of a metric, and little else, in common ------------------------------


def value_of(metric, base_rate, found, wrong):
    """The metric of a group with these rates of true and false positives."""
    tp, fn = base_rate * found, base_rate * (1 - found)
    fp, tn = (1 - base_rate) * wrong, (1 - base_rate) * (1 - wrong)
    return fa.metrics.get(metric).evaluate(tp=tp, fp=fp, fn=fn, tn=tn)


def confusion_rates(metric, base_rates, gap):
    """(base rate, true positive rate, false positive rate) of two groups, `gap` apart."""
    first = (base_rates[0], 0.7, 0.3)
    if metric == "base_rate":
        return first, (base_rates[0] - gap, 0.6, 0.2)
    if metric == "equalized_odds":
        return first, (base_rates[1], 0.7 - gap, 0.3)
    if metric == "conditional_use_accuracy":
        return first, None
    for rates in ((0.7, 0.3), (0.5, 0.5), (0.3, 0.6)):
        first = (base_rates[0], *rates)
        # Both the fair and the unfair second group must exist.
        seconds = [solve(metric, base_rates[1], value_of(metric, *first) - g) for g in (0.0, GAP)]
        if all(seconds):
            return first, seconds[0 if gap == 0 else 1]
    raise ValueError(f"{metric} cannot be equal with base rates of {base_rates}")


def solve(metric, base, wanted):
    """Rates with this value of the metric: true positives, false positives or both are moved."""
    roads = (lambda x: (base, x, 0.3), lambda x: (base, 0.7, x), lambda x: (base, x, x / 3))
    for road in roads:
        grid = np.linspace(0.02, 0.98, 97)
        off = np.array([value_of(metric, *road(x)) - wanted for x in grid])
        turn = np.flatnonzero(np.sign(off[:-1]) * np.sign(off[1:]) <= 0)
        if len(turn):
            low, high = grid[turn[0]], grid[turn[0] + 1]

            def excess(x, road=road):
                return value_of(metric, *road(x)) - wanted

            return road(optimize.brentq(excess, low, high))
    return None


def error_shapes(metric, gap, skewed=False):
    """Beta laws of the error of two groups, their means `gap` apart.

    (2, 4) and (1, b); where errors are skewed, (0.1, b) of the few and (2, 60).
    """
    of = {
        "mean_absolute_error": lambda e: e,
        "mean_squared_error": lambda e: e**2,
        "log_loss": lambda e: -np.log1p(-e),
    }[metric]
    nodes = (np.arange(20_000) + 0.5) / 20_000

    def mean(a, b):
        return of(stats.beta.ppf(nodes, a, b)).mean()

    known, a = ((2, 60), 0.1) if skewed else ((2, 4), 1)
    wanted = mean(*known) + gap
    other = (a, optimize.brentq(lambda b: mean(a, b) - wanted, 0.5 if skewed else 0.3, 200))
    return (other, known) if skewed else (known, other)


class Maker:
    """Draws the rows of a scenario; `gap` is the true difference."""

    def __init__(self, scenario, gap):
        self.scenario, self.gap, self.metric = scenario, gap, scenario.metric
        if self.metric in CONFUSION:
            self.rates = confusion_rates(self.metric, scenario.base_rates, gap)
        elif self.metric in ERRORS:
            self.shapes = error_shapes(self.metric, gap, scenario.design == "skewed")
        elif self.metric == "auc":
            # Positives N(m, s^2), negatives N(0, 1): AUC = Phi(m / sqrt(1 + s^2)).
            z = stats.norm.ppf([0.75, 0.75 - gap])
            self.normal = [(z[0] * math.sqrt(2), 1.0), (z[1] * math.sqrt(5), 2.0)]

    def rows(self, rng):
        n, design = self.scenario.n, self.scenario.design
        if self.metric in CORRELATIONS:
            return self.correlated(rng, 2 * n)
        sizes = self.sizes()
        parts = [self.group(rng, g, size) for g, size in enumerate(sizes)]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns["group"] = np.repeat([0, 1], sizes)
        if design == "spread weights":
            # Of mean 1, with a standard deviation of 1.5, in both groups.
            spread = math.log(1 + 1.5**2)
            columns["weight"] = rng.lognormal(-spread / 2, math.sqrt(spread), sum(sizes))
        if design == "tied":
            columns["y_score"] = np.round(4 * columns["y_score"]) / 4
        if design == "weights":
            first, second = rng.random(n) + 0.5, rng.exponential(1.0, n) + 0.1
            columns["weight"] = np.concatenate([first, second])
        return columns

    def sizes(self):
        """Rows of both groups: as many, or 2 and 98 % of them."""
        n = self.scenario.n
        return (n // 25, 2 * n - n // 25) if self.scenario.design in UNEQUAL else (n, n)

    def group(self, rng, g, n):
        metric, design = self.metric, self.scenario.design
        base = self.scenario.base_rates[g]
        columns = {}
        shift = np.zeros(n)
        if design == "clusters":
            # Clusters of 5 rows; the second group's rows belong to other clusters.
            cluster = np.arange(n) // 5
            columns["cluster"] = cluster + g * 10**6
            shift = rng.normal(size=n // 5 + 1)[cluster]
        if design == "states":
            # A cluster is the people of one group in one of 25 states, some far larger than others.
            share = 1 / (1 + np.arange(25))
            state = rng.choice(25, n, p=share / share.sum())
            columns["cluster"] = state + g * 10**6
            shift = SHARED[design] * rng.normal(size=25)[state]
        if design == "sparse strata":
            # Some four rows a stratum; the groups mix the strata differently.
            stratum = (rng.random(n) ** (1.0, 0.7)[g] * (n // 2)).astype(int)
            columns["stratum"] = stratum
            shift = 0.8 * np.sin(stratum)
            base = np.where(stratum % 2, *self.scenario.base_rates)
        if design == "strata":
            # One law within a stratum, whatever the group; the groups mix the strata differently.
            stratum = rng.random(n) < (0.3, 0.7)[g]
            columns["stratum"] = stratum.astype(int)
            shift = np.where(stratum, 0.8, -0.8)
            base = np.where(stratum, *self.scenario.base_rates)
        if metric == "conditional_use_accuracy":
            decision = rng.random(n) < (0.5, 0.5 * base / 0.5 + 0.05)[g]
            shown = (0.7 - self.gap * g, 0.25)
            label = rng.random(n) < np.where(decision, *shown)
            return columns | {"y_true": label.astype(int), "y_pred": decision.astype(int)}
        if metric in CONFUSION:
            group_base, found, wrong = self.rates[g]
            if design in STRATIFIED:
                found, wrong = 0.7 - self.gap * g, 0.3 + self.gap * g
            else:
                base = group_base
            label = rng.random(n) < base
            noise = rng.normal(size=n)
            # What clusters share leaves the law of a row as it is; what strata share does not.
            chance = stats.norm.cdf((noise + shift) / math.hypot(1.0, SHARED.get(design, 0.0)))
            decision = chance < np.where(label, found, wrong)
            return columns | {"y_true": label.astype(int), "y_pred": decision.astype(int)}
        if metric == "auc":
            label = rng.random(n) < base
            mean, spread = self.normal[g if design != "strata" or self.gap else 0]
            noise = rng.normal(size=n)
            if design in SHARED:
                noise = (noise + shift) / math.hypot(1.0, SHARED[design])
            score = np.where(label, mean + spread * noise, noise) + shift * (design == "strata")
            return columns | {"y_true": label.astype(int), "y_score": score}
        if metric in ERRORS:
            chance = rng.random(n)
            if design in SHARED:
                noise = (rng.normal(size=n) + shift) / math.hypot(1.0, SHARED[design])
                chance = stats.norm.cdf(noise)
            error = np.clip(stats.beta.ppf(chance, *self.shapes[g]), 1e-9, 1 - 1e-9)
            label = rng.random(n) < base
            score = np.where(label, 1 - error, error)
            return columns | {"y_true": label.astype(int), "y_score": score}
        # Calibrated scores of another shape; a gap is a shift of the score or of the labels.
        shape = ((2, 2), (1, 1 / max(base, 0.05) - 1))[g]
        if design == "skewed":
            shape = ((1, 1 / 0.03 - 1), (2, 2))[g]
        if metric == "mean_prediction":
            mean = 0.5 - self.gap * g
            shape = ((2, 2), (mean * 1.2, (1 - mean) * 1.2))[g]
        score = rng.beta(*shape, n)
        label = rng.random(n) < np.clip(score - self.gap * g, 0, 1)
        return columns | {"y_true": label.astype(int), "y_score": score}

    def correlated(self, rng, n):
        """No correlation, but a spread that grows with the attribute, or a shape; or a slope."""
        design = self.scenario.design
        attribute = rng.random(n)
        slope = 3 * self.gap * (attribute - 0.5)
        noise = rng.normal(size=n)
        if design in ("U shape", "V shape"):
            x = 2 * attribute - 1
            shape = np.minimum(4 * x**2, 1) if design == "U shape" else np.abs(x)
            score = shape + 0.1 * noise + slope
        else:
            score = noise * (0.2 + attribute**2) + slope
        if design == "tied":
            attribute, score = np.round(5 * attribute), np.round(2 * score)
        return {"y_true": np.zeros(n), "y_score": -score, "group": attribute}
