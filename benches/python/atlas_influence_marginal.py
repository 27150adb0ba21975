"""Marginal scores in the influence atlas: what is simulated, audited and counted.

The rows come from the designs of `tests/reference/influence_designs.py`: V normal, P(Y = 1 | V)
logistic, scores or decisions by V, features that go with V or not. All true scores are sums over a
fine grid of V.
"""

import math
import zlib
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
from scipy import special, stats

import fairaudit_rs as fa
from atlas_tools import ALPHA
from tests.reference import influence as reference
from tests.reference import influence_designs as designs
from tests.reference.influence_designs import GRID, GRID_MASS

#: Raise it, or that of one part, when a change of the package or of these files changes what is
#: measured.
VERSION = 1

NAMES = {
    "fpr": "false_positive_rate",
    "fnr": "false_negative_rate",
    "tpr": "true_positive_rate",
    "fdr": "false_discovery_rate",
    "ppv": "positive_predictive_value",
    "selection_rate": "selection_rate",
}
COMBINATIONS = {
    "fpr / 2 - 1.5 fnr": {"fpr": 0.5, "fnr": -1.5},
    "tpr - fpr": {"tpr": 1.0, "fpr": -1.0},
    "fdr + selection rate": {"fdr": 1.0, "selection_rate": 1.0},
}
METRICS = (*NAMES, *COMBINATIONS)
#: Metrics of the parts that do not go through all of them.
FEW_METRICS = ("fpr", "fnr", "fdr")
SIZES = (500, 2_000, 5_000)
BASES = (0.31, 0.05)
PREVALENCES = (0.5, 0.1, 0.02)
LEVELS = (0.95, 0.99, 0.999)
ENOUGH, FEW = reference.ENOUGH_EVENTS, reference.FEW_EVENTS
NORMAL = {level: stats.norm.isf((1 - level) / 2) for level in LEVELS}


def of_reference(metric):
    """A metric as the reference takes it."""
    return COMBINATIONS.get(metric, metric)


def of_package(metric):
    """A metric as the package takes it."""
    if metric in NAMES:
        return NAMES[metric]
    return {NAMES[name]: weight for name, weight in COMBINATIONS[metric].items()}


def audit(y, f, X, metric, decision, **options):
    """Audit these rows; the others are two rows that play no part in proxy scores."""
    labels = np.r_[y, 0, 1].astype(np.int64)
    X = {name: np.append(column, two_of(column)) for name, column in X.items()}
    said = {"y_pred": np.r_[f, 0, 1].astype(np.int64)} if decision else {"y_score": np.r_[f, 0, 1]}
    return fa.influence_audit(
        labels, X=X, sensitive_features=np.r_[np.zeros(len(y)), 1, 1].astype(np.int64), target=0,
        metric=of_package(metric), n_threads=1, **{"n_draws": 1, "rng": 1, **said, **options},
    )  # fmt: skip


def two_of(column):
    return ["a", "b"] if column.dtype.kind == "U" else [0.0, 1.0]


@dataclass(frozen=True)
class Scenario:
    """Many audits of n rows of one design."""

    metric: str
    n: int
    base: float
    decision: bool

    part = ""
    audits = 1_000
    version = VERSION

    @property
    def key(self):
        values = ":".join(str(value) for value in asdict(self).values())
        return f"{self.version}:{self.part}:{values}:{self.audits}"

    def rng(self):
        return np.random.default_rng(zlib.crc32(self.key.encode()))

    def design(self, prevalence=0.5, dependent=False):
        return designs.Marginal(self.base, prevalence, self.decision, dependent)

    def rows(self, rng):
        """(v, y, f)."""
        v = rng.normal(size=self.n)
        y = (rng.random(self.n) < self.design().label_rate(v)).astype(float)
        return v, y, self.design().predict(v)

    def psi(self):
        """The influence of the points of the grid."""
        return psi_of(self.metric, self.base, self.decision)

    def measure(self):
        raise NotImplementedError


@cache
def psi_of(metric, base, decision):
    design, metric = designs.Marginal(base, 0.5, decision), of_reference(metric)
    h, f = design.label_rate(GRID), design.predict(GRID)
    return reference.psi_of_x(metric, f, h, reference.rates_of(metric, h, f, GRID_MASS))


class Tally:
    """Coverage of the intervals of one score over many audits, by what the guard says."""

    def __init__(self, truth, **words):
        self.truth, self.words = truth, words
        self.samples = {"enough": 0, "few": 0, "refused": 0}
        self.covered = dict.fromkeys(LEVELS, 0)
        self.covered_few = 0
        #: Of intervals without a guard: samples that have one, and hits by level and kind.
        self.unguarded = 0
        self.normal = dict.fromkeys(LEVELS, 0)
        self.t = dict.fromkeys(LEVELS, 0)

    def add(self, events, interval):
        """Count one interval, a function of the level, with its events."""
        if not events >= FEW:
            self.samples["refused"] += 1
        elif events < ENOUGH:
            self.samples["few"] += 1
            self.covered_few += self.holds(*interval(LEVELS[0]))
        else:
            self.samples["enough"] += 1
            for level in LEVELS:
                self.covered[level] += self.holds(*interval(level))

    def add_unguarded(self, entry):
        """Count the intervals that an estimate of the reference gives whatever the events."""
        if not entry.se > 0:
            return
        self.unguarded += 1
        plain = reference.standard_error(entry.influence)[0]
        for level in LEVELS:
            self.normal[level] += abs(entry.value - self.truth) <= NORMAL[level] * plain
            self.t[level] += self.holds(*entry.interval(level))

    def holds(self, low, high):
        return bool(low <= self.truth <= high)

    def entry(self):
        counts = {"normal": self.normal, "t": self.t, "covered": self.covered}
        return {
            **self.words,
            "truth": self.truth,
            **self.samples,
            "covered_few": self.covered_few,
            "unguarded": self.unguarded,
            **{name: [int(by[level]) for level in LEVELS] for name, by in counts.items()},
        }


@dataclass(frozen=True)
class Binary(Scenario):
    """Binary features of three prevalences, with V and without, in one audit."""

    part = "binary"
    audits = 2_000

    def measure(self):
        rng = self.rng()
        made = [self.design(p, dependent) for p in PREVALENCES for dependent in (False, True)]
        tallies = [
            Tally(
                value.truth(of_reference(self.metric)),
                prevalence=value.prevalence, dependent=value.dependent,
            )
            for value in made
        ]  # fmt: skip
        for _ in range(self.audits):
            v, y, f = self.rows(rng)
            X = np.column_stack([rng.random(self.n) < value.feature_rate(v) for value in made])
            X = {f"x{j}": column for j, column in enumerate(X.T.astype(float))}
            result = audit(y, f, X, self.metric, self.decision)
            shown = {value.feature: value for value in result.proxy_scores}
            # Other levels than that of the audit come from the scores behind it.
            behind = {value.contrast.feature: value for value in result.problem.marginal.scores}
            for name, tally in zip(X, tallies, strict=True):
                score = behind[name]
                assert score.note.startswith("refused") or score.interval(0.95) == (
                    shown[name].low, shown[name].high,
                )  # fmt: skip
                tally.add(score.n_events, score.interval)
                if self.metric in FEW_METRICS:
                    tally.add_unguarded(reference.marginal_binary(self.metric, y, f, X[name]))
        return {"features": [tally.entry() for tally in tallies]}


@dataclass(frozen=True)
class Family(Scenario):
    """Thirty features that say nothing: how often is one of them found?"""

    part = "family"
    n_draws = 999
    #: 2: scores with few events have no part in it.
    version = 2

    @property
    def audits(self):
        return 1_000 if self.n < 1_000 else 500

    def measure(self):
        rng = self.rng()
        false = dict.fromkeys(("ours", "normal", "t"), 0)
        taking_part = dict.fromkeys(("ours", "marked"), 0)
        for number in range(self.audits):
            y, f, X = designs.global_null(rng, self.n, self.base, self.decision)
            features = {f"x{j}": column for j, column in enumerate(X.T)}
            result = audit(
                y, f, features, self.metric, self.decision, n_draws=self.n_draws, rng=number
            )
            shown = [score for score in result.proxy_scores if score.standard_error > 0]
            enough = [value for value in shown if value.n_events >= ENOUGH]
            assert all(math.isfinite(value.adjusted_pvalue) for value in enough)
            taking_part["ours"] += len(enough)
            taking_part["marked"] += len(shown) - len(enough)
            # Those that are marked have no adjusted p-value.
            false["ours"] += any(value.adjusted_pvalue <= ALPHA for value in shown)
            for name, found in self.unguarded(rng, y, f, X).items():
                false[name] += found
        return {"false": false, "taking_part": taking_part}

    def unguarded(self, rng, y, f, X):
        """Return whether max |t| finds a feature, by normal and by Satterthwaite quantiles."""
        scores = [reference.marginal_binary(self.metric, y, f, x) for x in X.T]
        scores = [score for score in scores if score.se > 0]
        influence = np.column_stack([score.influence for score in scores])
        normals = rng.normal(size=(self.n_draws, len(scores)))
        Z = reference.correlated(reference.correlation(influence), normals)
        cut = np.sort(np.abs(Z).max(axis=1))[math.ceil(0.95 * (self.n_draws + 1)) - 1]
        value = np.array([score.value for score in scores])
        plain = np.sqrt(np.sum(influence**2, axis=0)) / self.n
        t = value / np.array([score.se for score in scores])
        z = reference.on_normal_scale(t, np.array([score.df for score in scores]))
        return {"normal": bool((np.abs(value) > cut * plain).any()), "t": bool((z > cut).any())}


@dataclass(frozen=True)
class Levels(Scenario):
    """A categorical feature, with V and without: P(level | V) is multinomial logistic."""

    n_levels: int
    part = "levels"
    n_draws = 399

    def shares(self, v, dependent):
        """P(level | v), rows by levels: the rarest is a fifth of the most frequent one at v = 0."""
        level = np.arange(self.n_levels)
        order = (level * 3) % self.n_levels if self.n_levels % 3 else level
        slope = np.linspace(-0.8, 0.8, self.n_levels)[order] if dependent else 0.0 * level
        size = np.log(np.geomspace(1, 0.2, self.n_levels))
        return special.softmax(size + v[:, None] * slope, axis=1)

    def measure(self):
        return {
            name: self.of_design(dependent)
            for name, dependent in (("independent", False), ("dependent", True))
        }

    def of_design(self, dependent):
        rng, names = self.rng(), np.array([chr(97 + k) for k in range(self.n_levels)])
        mass = GRID_MASS[:, None] * self.shares(GRID, dependent)
        parts = {
            name: (self.psi() @ column, column.sum())
            for name, column in zip(names.tolist(), mass.T, strict=True)
        }
        seen = {"tested": 0, "rejected": 0, "covered": 0, "merged": 0, "pairs": 0, "alone": 0}
        for number in range(self.audits):
            v, y, f = self.rows(rng)
            below = np.cumsum(self.shares(v, dependent), axis=1)[:, :-1]
            level = names[(rng.random(self.n)[:, None] > below).sum(axis=1)]
            result = audit(
                y, f, {"level": level}, self.metric, self.decision, n_draws=self.n_draws, rng=number
            )
            if "level" not in result.feature_tests:
                continue
            scores = result.proxy_scores
            own = {name for score in scores for name in score.levels if name in parts}
            hold = [self.holds(score, parts, own) for score in scores]
            seen["tested"] += 1
            seen["rejected"] += result.feature_tests["level"] <= ALPHA
            seen["merged"] += len(own) < self.n_levels
            seen["covered"] += all(together for together, _ in hold)
            seen["pairs"] += len(hold)
            seen["alone"] += sum(alone for _, alone in hold)
        return seen

    @staticmethod
    def holds(score, parts, own):
        """Return whether both intervals of a pair hold; what has no name of its own is "other"."""
        means = []
        for level in score.levels:
            members = [level] if level in parts else [name for name in parts if name not in own]
            above, below = np.sum([parts[name] for name in members], axis=0)
            means.append(above / below)
        truth = means[0] - means[1]
        return (
            bool(score.simultaneous_low <= truth <= score.simultaneous_high),
            bool(score.low <= truth <= score.high),
        )


@dataclass(frozen=True)
class Slopes(Scenario):
    """Continuous features: normal and lognormal, with V (correlation 0.6 with its normal) or
    not."""

    part = "slopes"

    def measure(self):
        rng = self.rng()
        tallies = {
            f"{law}, {share}": Tally(self.truth(law, share), law=law, correlation=share)
            for law in ("normal", "lognormal")
            for share in (0.0, 0.6)
        }
        for _ in range(self.audits):
            v, y, f = self.rows(rng)
            X = {}
            for name, tally in tallies.items():
                share = tally.words["correlation"]
                z = share * v + math.sqrt(1 - share**2) * rng.normal(size=self.n)
                X[name] = z if tally.words["law"] == "normal" else np.exp(z)
            result = audit(y, f, X, self.metric, self.decision)
            for score in result.problem.marginal.scores:
                tallies[score.contrast.feature].add(score.n_events, score.interval)
        return {"features": [tally.entry() for tally in tallies.values()]}

    def truth(self, law, share):
        """E[psi E[x | V]] / sd(x): the mean of psi is 0."""
        if law == "normal":
            return float(GRID_MASS @ (self.psi() * share * GRID))
        mean = np.exp(share * GRID + (1 - share**2) / 2)
        return float(GRID_MASS @ (self.psi() * mean)) / math.sqrt((math.e - 1) * math.e)


def scenarios():
    """All of them; those of the first parts first."""
    places = [(n, base, decision) for n in SIZES for base in BASES for decision in (False, True)]
    for metric in METRICS:
        yield from (Binary(metric, *place) for place in places)
    for metric in FEW_METRICS:
        yield from (Family(metric, n, 0.31, d) for n in (500, 5_000) for d in (False, True))
    for metric in FEW_METRICS:
        for n_levels in (3, 5, 10):
            # With rare labels 500 rows have no two levels of enough events.
            few = [place for place in places if place[:2] != (500, 0.05)]
            yield from (Levels(metric, *place, n_levels) for place in few)
        yield from (Slopes(metric, *place) for place in places)
