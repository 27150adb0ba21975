"""Other metrics of two models in the validity atlas: of counts, of scores, and sizes of gaps."""

import math
import zlib
from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.inference.absolute_gaps import size_change
from fairaudit_rs.inference.paired_differences import by_law
from fairaudit_rs.permutation.paired_cells import PairedCellProblem
from fairaudit_rs.permutation.paired_problem import OF_FIRST, OF_SECOND

#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 2

SIZES = ((40, 40), (40, 2_000), (100, 2_000), (400, 2_000))
AUDITS_OF_COUNTS = 500
LEVELS_OF_COUNTS = (0.05, 0.01, 0.001)
AUDITS_OF_SCORES = 300
LEVELS_OF_SCORES = (0.05, 0.01)
N_RESAMPLES = 499
AUDITS_OF_SIDES = 5_000


# --- metrics of counts --------------------------------------------------------------------------


def law(base, first, second, shared):
    """Probabilities of (label, first, second), with (TPR, FPR) of both models.

    So much of the decisions is as much in common as it can be, the rest has nothing in common.
    """
    found = np.zeros((2, 2, 2))
    for y, of_label, p, q in zip((1, 0), (base, 1 - base), first, second, strict=True):
        common = np.array([[1 - max(p, q), max(q - p, 0)], [max(p - q, 0), min(p, q)]])
        alone = np.outer([1 - p, p], [1 - q, q])
        found[y] = of_label * (shared * common + (1 - shared) * alone)
    return found.ravel()


#: Of both groups: values change by as much.
LAWS = {
    "equal models": (law(0.4, (0.7, 0.2), (0.7, 0.2), 0.85),) * 2,
    "equal changes": (law(0.4, (0.6, 0.2), (0.75, 0.25), 0.9),) * 2,
    "one way": (law(0.4, (0.6, 0.2), (0.7, 0.25), 1.0),) * 2,
    "near 0": (law(0.1, (0.1, 0.02), (0.15, 0.02), 0.8),) * 2,
    "near 1": (law(0.5, (0.98, 0.95), (0.99, 0.96), 0.7),) * 2,
    "few selected": (law(0.2, (0.5, 0.05), (0.7, 0.05), 0.8),) * 2,
    "noise in one": (
        law(0.4, (0.7, 0.2), (0.7, 0.2), 0.3),
        law(0.4, (0.7, 0.2), (0.7, 0.2), 0.95),
    ),
    "other base rates": (
        law(0.15, (0.7, 0.1), (0.7, 0.1), 0.8),
        law(0.5, (0.7, 0.3), (0.7, 0.3), 0.9),
    ),
}
#: What tp, fp, fn, tn add to the numerator and the denominator.
FRACTIONS = {
    "positive_predictive_value": ((1, 0, 0, 0), (1, 1, 0, 0)),
    "f1": ((2, 0, 0, 0), (2, 1, 1, 0)),
}


def plain_pvalue(metric, tables):
    """D = 0 by the normal law, the variance that of the table as it is."""
    above, below = (np.array(part, dtype=float) for part in FRACTIONS[metric])
    change = variance = 0.0
    for sign, counts in zip((1, -1), tables, strict=True):
        of_cell = 0.0
        for side, cells in ((-1, OF_FIRST), (1, OF_SECOND)):
            total = counts @ below[cells]
            value = counts @ above[cells] / total
            change += sign * side * value
            of_cell = of_cell + side * (above[cells] - value * below[cells]) / total
        variance += counts @ of_cell**2
    if abs(change) < 1e-12:
        return 1.0
    return 2 * stats.norm.sf(abs(change) / math.sqrt(variance)) if variance > 1e-24 else 0.0


@dataclass(frozen=True)
class OfCounts:
    """PPV or F1 in two groups of one of the laws."""

    metric: str
    name: str
    rows: tuple[int, int]

    @property
    def n(self):
        return 2

    @property
    def key(self):
        return f"{VERSION}:{self!r}:{AUDITS_OF_COUNTS}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        metric, audits = fa.metrics.get(self.metric), 0
        found = {rule: [0] * len(LEVELS_OF_COUNTS) for rule in ("ours", "plain")}
        for _ in range(AUDITS_OF_COUNTS):
            tables = [
                rng.multinomial(n, value)
                for n, value in zip(self.rows, LAWS[self.name], strict=True)
            ]
            try:
                problem = PairedCellProblem(
                    metric=metric, keys=(("a",), ("b",)), n_rows=self.rows,
                    counts=np.stack(tables).reshape(2, 2, 2, 2), has_labels=True,
                )  # fmt: skip
            except fa.errors.NotMeasurableError:
                continue
            audits += 1
            pvalues = {
                "ours": problem.tested((0, 1), 0.95)[0].two_sided,
                "plain": plain_pvalue(self.metric, tables),
            }
            count(found, pvalues, LEVELS_OF_COUNTS)
        return {"key": self.key, "audits": audits, "counts": found}


def count(found, pvalues, at):
    """Add the levels at which p-values reject; one that is not known rejects nothing."""
    for rule, pvalue in pvalues.items():
        for i, level in enumerate(at):
            found[rule][i] += bool(pvalue <= level)


# --- metrics of scores --------------------------------------------------------------------------

#: Noise of the first and of the second model, and the share of positive labels; the same in both
#: groups.
DESIGNS = {
    "far better": (1.5, 0.3, 0.4),
    "few positives": (0.6, 0.3, 0.15),
}


def added(metric, label, scores):
    """Return the influence of every row on the change of a group, in additive parts."""
    if metric == "brier_score":
        losses = [(score - label) ** 2 for score in scores]
        return [losses[1] - losses[0]]
    placed = []
    for score in scores:
        of_label = [np.sort(score[label == y]) for y in (0, 1)]
        above, below = (
            np.mean([np.searchsorted(other, score[label == y], side) for side in ("left", "right")],
                    axis=0) / len(other)
            for y, other in ((1, of_label[0]), (0, of_label[1]))
        )  # fmt: skip
        placed.append((above, 1 - below))
    positive, negative = (b - a for a, b in zip(*placed, strict=True))
    # The mean of both is the change: it counts once.
    return [positive, negative - negative.mean()]


def of_means(groups):
    """p of D = 0 by the normal law and by Welch's t, of what rows add in both groups."""
    gap = sum(sign * part.mean() for sign, of in zip((1, -1), groups, strict=True) for part in of)
    spreads = [(part.var(ddof=1) / len(part), len(part) - 1) for of in groups for part in of]
    variance = sum(spread for spread, _ in spreads)
    if not variance > 0:
        return 1.0, 1.0
    df = variance**2 / sum(spread**2 / n for spread, n in spreads)
    z = abs(gap) / math.sqrt(variance)
    return 2 * stats.norm.sf(z), 2 * stats.t.sf(z, df)


@dataclass(frozen=True)
class OfScores:
    """AUC or Brier score of scores with noise, of the same law in both groups."""

    metric: str
    design: str
    rows: tuple[int, int]

    @property
    def n(self):
        return 1

    @property
    def key(self):
        return f"{VERSION}:{self!r}:{AUDITS_OF_SCORES}:{N_RESAMPLES}"

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        audits = 0
        found = {rule: [0] * len(LEVELS_OF_SCORES) for rule in ("ours", "normal", "welch")}
        group = np.repeat(["a", "b"], self.rows)
        *noises, base = DESIGNS[self.design]
        for audit in range(AUDITS_OF_SCORES):
            label = (rng.random(len(group)) < base).astype(int)
            known = 1.2 * label + rng.normal(size=len(group))
            scores = [
                1 / (1 + np.exp(-known - noise * rng.normal(size=len(group)))) for noise in noises
            ]
            few = min(
                np.bincount(label[group == name], minlength=2).min() for name in np.unique(group)
            )
            if few < 2:
                continue
            audits += 1
            result = fa.compare_models(
                label, *scores, sensitive_features=group, metric=self.metric, rng=audit,
                n_resamples=N_RESAMPLES, n_threads=1,
            )  # fmt: skip
            parts = [
                added(self.metric, label[group == name], [score[group == name] for score in scores])
                for name in "ab"
            ]
            normal, welch = of_means(parts)
            ours = result.comparisons[0].change_pvalue
            count(found, {"ours": ours, "normal": normal, "welch": welch}, LEVELS_OF_SCORES)
        return {"key": self.key, "audits": audits, "counts": found}


# --- sizes of gaps ------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneSided:
    """Two gaps that are 0, with normal estimates: is the second one smaller?"""

    #: Standard error of the second gap; that of the first is 1.
    error: float

    @property
    def n(self):
        return 2

    @property
    def key(self):
        return f"{VERSION}:sides:{self.error:g}:{AUDITS_OF_SIDES}"

    @property
    def correlation(self):
        """Of the difference and the sum."""
        return (self.error**2 - 1) / (self.error**2 + 1)

    def measure(self):
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        error = math.hypot(1.0, self.error)
        counts = Counter(dict.fromkeys(("ours", "sign"), 0))
        for first, second in rng.normal(size=(AUDITS_OF_SIDES, 2)) * (1.0, self.error):
            change, total = (by_law(gap, error, 0.95) for gap in (second - first, second + first))
            counts["ours"] += size_change(change, total, self.correlation).less <= 0.05
            towards = math.copysign(1.0, first) * (second - first) / error
            counts["sign"] += bool(stats.norm.cdf(towards) <= 0.05)
        counts = {rule: int(n) for rule, n in counts.items()}
        return {"key": self.key, "audits": AUDITS_OF_SIDES, "counts": counts}


def scenarios():
    return [
        *(OneSided(error) for error in (1.0, 0.5, 0.2, 0.05)),
        *(OfCounts(metric, name, rows) for metric in FRACTIONS for name in LAWS for rows in SIZES),
        *(
            OfScores(metric, design, rows)
            for metric in ("auc", "brier_score")
            for design in DESIGNS
            for rows in SIZES[:2]
        ),
    ]
