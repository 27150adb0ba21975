"""The Adult experiments of Wang, Ustun and Calmon (2019), and repairs measured out of sample.

    python -m benches.papers.influence [--splits 20] [--write]

With --write the tables go to docs/reproduction.md.
"""

import argparse
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import fairaudit_rs as fa

from .data import BinaryRows, adult_binary, compas_binary
from .influence_text import (
    ADULT_TEXT,
    EFFECTS_TEXT,
    FIGURE_2_TEXT,
    FIGURE_3_TEXT,
    NOT_FROM_THE_DATA,
    REPAIR_TEXT,
    SETTINGS,
    TABLE_2_TEXT,
)
from .reproduction import table, write_section

SEED = 2021
N_SPLITS = 20
N_TOYS = 10
TRAINING_SHARE = 0.3
LOADERS = {"Adult": adult_binary, "COMPAS": compas_binary}
METRICS = ("false_positive_rate", "false_negative_rate", "false_discovery_rate", "selection_rate")
TOLERANCE = 0.02
STEPS = (0, 1, 5, 10, 15, 20)
POPULATION = (0.3194, 0.2732, 0.1419, 0.0620, 0.0209, -0.0041)
# Table 2, in the order of the features: majority, minority, counterfactual for FPR.
PUBLISHED = (
    (56.4, 16.7, 46.3), (8.3, 8.3, 12.3), (29.4, 35.2, 24.6), (9.2, 8.3, 8.5), (14.2, 16.7, 26.5),
    (6.0, 5.6, 10.1), (4.1, 2.8, 3.0), (29.8, 36.1, 20.9), (19.7, 40.7, 24.7), (21.6, 35.2, 45.2),
    (28.0, 4.6, 2.9), (21.6, 19.4, 23.5), (1.4, 0.9, 0.7), (68.8, 67.6, 56.5), (11.9, 13.0, 13.0),
    (13.8, 10.2, 26.3),
)  # fmt: skip


@dataclass(frozen=True)
class Split:
    """A model, and the rows that it has not seen."""

    data: BinaryRows
    model: LogisticRegression
    rows: np.ndarray[Any, np.dtype[np.int64]]

    @classmethod
    def from_rows(cls, data: BinaryRows, repetition: int) -> "Split":
        order = np.random.default_rng([SEED, repetition]).permutation(len(data.label))
        n_train = int(TRAINING_SHARE * len(order))
        model = LogisticRegression(C=1e6, max_iter=1_000)
        model.fit(data.features[order[:n_train]], data.label[order[:n_train]])
        return cls(data, model, order[n_train:])

    @classmethod
    def whole(cls, data: BinaryRows) -> "Split":
        """A model of all rows, and these rows."""
        model = LogisticRegression(C=1e6, max_iter=1_000).fit(data.features, data.label)
        return cls(data, model, np.arange(len(data.label)))

    def audit(self, metric: Any, **options: Any) -> Any:
        """Audit the scores of the rows."""
        data, rows = self.data, self.rows
        X = dict(zip(data.names, data.features[rows].T, strict=True))
        group = np.where(data.target[rows], "target", "others")
        return fa.influence_audit(
            data.label[rows], y_score=self.score, X=X, sensitive_features=group, target="target",
            metric=metric, rng=SEED, **options,
        )  # fmt: skip

    @property
    def score(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the scores of the rows."""
        found = self.model.predict_proba(self.data.features[self.rows])
        return np.asarray(found[:, 1])


# --- Adult --------------------------------------------------------------------------------------


def adult_table(split: Split) -> str:
    """The figures of the first paragraphs of section 5, on the audited rows and on all rows."""
    columns = [adult_figures(split), adult_figures(Split.whole(split.data))]
    published = (
        ("mean score, women", "12.5 %"),
        ("mean score, men", "29.4 %"),
        ("AUC of the model", "0.866 ± 0.01"),
        ("AUC of P(Y = 1 \\| X, women)", "0.854 ± 0.011"),
        ("AUC of P(men \\| X)", "0.849 ± 0.036"),
        ("DA, by the features, main effects", "0.845 %"),
        ("the same, with products (our default)", ""),
        ("DA, by the mean score", ""),
        ("CAL, women", "13.1 %"),
        ("FPR gap, expected", "16.8 %"),
        ("FPR gap, decisions at 0.5", ""),
        ("threshold at which it is 16.8 %", ""),
    )
    rows = [
        [*line, *found] for line, found in zip(published, zip(*columns, strict=True), strict=True)
    ]
    return table(["figure", "published", "audited 70 %", "all rows"], rows)


def adult_figures(split: Split) -> list[str]:
    """They, in the order of the table."""
    data, rows = split.data, split.rows
    target, score = data.target[rows], split.score
    X, y = data.features[rows], data.label[rows]
    vanilla = LogisticRegression(C=1e6, max_iter=1_000)

    def auc(X: Any, y: Any) -> str:
        found = cross_val_score(vanilla, X, y, cv=10, scoring="roc_auc")
        return f"{found.mean():.3f} ± {found.std():.3f}"

    def decided(threshold: float) -> float:
        rates = [np.mean(score[inside & (y == 0)] > threshold) for inside in (target, ~target)]
        return float(rates[0] - rates[1])

    plain, _ = split.audit("divergence", nuisance=vanilla).parts
    inputs, outputs = split.audit("divergence").parts
    calibration = split.audit("calibration").parts[0]
    thresholds = np.linspace(0.01, 0.99, 99)
    nearest = min(thresholds, key=lambda entry: abs(abs(decided(entry)) - 0.168))
    return [
        f"{100 * score[target].mean():.2f} %",
        f"{100 * score[~target].mean():.2f} %",
        auc(X, y),
        auc(X[target], y[target]),
        auc(X, ~target),
        f"{plain.estimate:.3f} nats (at least {plain.lower:.3f})",
        f"{inputs.estimate:.3f} (at least {inputs.lower:.3f})",
        f"{outputs.estimate:.3f} ({outputs.low:.3f} to {outputs.high:.3f})",
        f"{100 * calibration.estimate:.1f} % ({100 * calibration.low:.1f} to "
        f"{100 * calibration.high:.1f})",
        f"{100 * split.audit('false_positive_rate', n_draws=39).estimate:.1f} %",
        f"{100 * decided(0.5):.1f} %",
        f"{nearest:.2f}",
    ]


def score_table(split: Split) -> str:
    """Proxy scores of the false positive rate: marginal, held fixed, and the paper's plug-in."""
    found, paper = (
        split.audit("false_positive_rate", model=split.model, compat=compat)
        for compat in (None, "paper")
    )
    by_kind: dict[tuple[str, str], Any] = {}
    for result, held in ((found, "held"), (paper, "paper")):
        for score in result.proxy_scores:
            by_kind[score.feature, "marginal" if score.kind == "marginal" else held] = score
    rows = []
    for name in sorted(split.data.names, key=lambda name: by_kind[name, "marginal"].rank or 99):
        cells = [name]
        for kind in ("marginal", "held", "paper"):
            one = by_kind[name, kind]
            if one.rank is None:
                cells += [one.note, ""][: 2 if kind != "paper" else 1]
                continue
            interval = f"{one.simultaneous_low:.2f} to {one.simultaneous_high:.2f}"
            partialled = ", partialled" if one.kind == "partialled_out" else ""
            if kind == "paper":
                cells.append(f"{one.estimate:.3f}")
            else:
                cells += [
                    f"{one.estimate:.3f} ({interval}{partialled})",
                    f"{one.highest_rank} to {one.lowest_rank}",
                ]
        rows.append(cells)
    head = ["feature", "marginal", "rank", "all else held fixed", "rank", "plug-in"]
    return table(head, rows)


def not_from_the_data() -> str:
    """List published figures that the data cannot have given."""
    data = adult_binary()
    women = 100 * data.features[data.target].mean(axis=0)
    shares = dict(zip(data.names, women, strict=True))
    return NOT_FROM_THE_DATA.format(
        majority=fewest_persons([row[0] for row in PUBLISHED]),
        minority=fewest_persons([row[1] for row in PUBLISHED]),
        married=shares["Married"],
        immigrant=shares["Immigrant"],
    )


def fewest_persons(percentages: Sequence[float]) -> int:
    """The smallest number of which all these are percentages, to a digit after the point."""
    published = np.array(percentages)
    for n in range(1, 10_000):
        found = 100 * np.round(published * n / 100) / n
        if (np.abs(found - published) < 0.0501).all():
            return n
    raise ValueError("none")


def marginal_table(split: Split) -> str:
    """Table 2: shares before and after the descent for FPR, and those of the others."""
    counterfactual = split.audit("false_positive_rate", n_draws=39).descend(
        tolerance=0.03, max_steps=200, rng=SEED
    )
    found = {marginal.feature: marginal for marginal in counterfactual.marginals}
    rows = []
    for name, (majority, minority, after) in zip(split.data.names, PUBLISHED, strict=True):
        one = found[name]
        rows.append(
            [
                name,
                f"{majority}",
                f"{minority}",
                f"{after}",
                f"{100 * one.others:.1f}",
                f"{100 * one.before:.1f}",
                f"{100 * one.after:.1f} ({100 * one.low:.1f} to {100 * one.high:.1f})",
            ]
        )
    head = ["feature", "men, published", "women", "after", "men, here", "women", "after"]
    return table(head, rows) + f"\n{counterfactual.summary()}\n"


# --- the toy ------------------------------------------------------------------------------------


def toy_gaps(repetition: int) -> list[float]:
    """The gap of the part that stops the descent, by step."""
    rng = np.random.default_rng([SEED, 1, repetition])
    n = 75_000
    group = rng.random(n) < 0.5
    share = np.where(group[:, None], (0.1, 0.5, 0.5), (0.9, 0.2, 0.2))
    X = (rng.random((n, 3)) < share).astype(float)
    score = special.expit(X @ (5.0, -2.0, -2.0))
    y = (rng.random(n) < score).astype(int)
    audit = fa.influence_audit(
        y, y_score=score, X=X, sensitive_features=np.where(group, 1, 0), target=0,
        n_draws=39, rng=repetition,
    )  # fmt: skip
    counterfactual = audit.descend(tolerance=1e-9, step=0.1, max_steps=max(STEPS), rng=repetition)
    return [step.gap for step in counterfactual.path]


def toy_table(all_gaps: Sequence[list[float]]) -> str:
    """Gaps by step: exact, and estimated."""
    gaps = np.array([[gaps[step] for step in STEPS] for gaps in all_gaps])
    rows = [
        ["population", *(f"{gap:.4f}" for gap in POPULATION)],
        ["here, mean", *(f"{gap:.4f}" for gap in gaps.mean(axis=0))],
        ["here, sd", *(f"{gap:.4f}" for gap in gaps.std(axis=0, ddof=1))],
    ]
    return table(["step", *map(str, STEPS)], rows)


# --- repair -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Repaired:
    """A repair on the report part of one split."""

    before: float
    after: float
    around_0: bool
    cost: float
    moved: float
    accuracy_before: float
    accuracy_after: float
    #: Gaps after it, by metric.
    gaps: dict[str, tuple[float, float]]


def repair_split(name: str, repetition: int) -> dict[tuple[str, str], Repaired | str]:
    """Both repairs for every metric on one split."""
    split = Split.from_rows(LOADERS[name](), repetition)
    found: dict[tuple[str, str], Repaired | str] = {}
    for metric in METRICS:
        audit = split.audit(metric, n_draws=39)
        for method in ("direct", "transport"):
            try:
                found[metric, method] = _repaired(audit, method, repetition)
            except fa.errors.FairAuditError as error:
                found[metric, method] = str(error)
    return found


def _repaired(audit: Any, method: str, repetition: int) -> Repaired:
    if method == "transport":
        counterfactual = audit.descend(tolerance=TOLERANCE, rng=repetition, parts=(0.35, 0.15, 0.5))
        repair = audit.repair(method=method, counterfactual=counterfactual, rng=repetition)
    else:
        repair = audit.repair(method=method, rng=repetition)
    low, high = repair.confidence_interval
    accuracy = next(effect for effect in repair.effects if effect.metric == "accuracy")
    return Repaired(
        before=repair.gap_before,
        after=repair.gap_after,
        around_0=bool(low <= 0 <= high),
        cost=repair.cost,
        moved=repair.moved,
        accuracy_before=accuracy.before,
        accuracy_after=accuracy.after,
        gaps={
            effect.metric: (effect.gap_before, effect.gap_after)
            for effect in repair.effects
            if effect.metric in METRICS
        },
    )


Outcomes = list[dict[tuple[str, str], Repaired | str]]


def repair_table(outcomes: dict[str, Outcomes]) -> str:
    """Gaps on the report part before and after, by data, metric and method."""
    rows = []
    for name, splits in outcomes.items():
        for metric in METRICS:
            for method in ("direct", "transport"):
                found = [split[metric, method] for split in splits]
                known = [repaired for repaired in found if isinstance(repaired, Repaired)]
                if not known:
                    refused = f"refused in {len(found)}"
                    rows.append([name, metric.replace("_", " "), method, *[""] * 4, refused])
                    continue
                before, after = (
                    [getattr(repaired, at) for repaired in known] for at in ("before", "after")
                )
                zeros = sum(repaired.around_0 for repaired in known)
                cost, moved = (
                    np.mean([getattr(repaired, at) for repaired in known])
                    for at in ("cost", "moved")
                )
                rows.append(
                    [
                        name,
                        metric.replace("_", " "),
                        method,
                        f"{np.mean(before):.3f}",
                        f"{np.mean(after):.3f} ± {np.std(after):.3f}",
                        f"{cost:.2f}",
                        f"{100 * moved:.0f} %",
                        f"{zeros} of {len(known)}",
                    ]
                )
    head = ["data", "metric", "repair", "gap", "after", "cost a row", "moved", "around 0"]
    return table(head, rows)


def effect_table(outcomes: dict[str, Outcomes]) -> str:
    """Accuracy and the gaps of all metrics after each repair."""
    rows = []
    for name, splits in outcomes.items():
        for metric in METRICS:
            for method in ("direct", "transport"):
                found = [split[metric, method] for split in splits]
                known = [repaired for repaired in found if isinstance(repaired, Repaired)]
                if not known:
                    continue
                accuracy = [
                    f"{100 * np.mean([repaired.accuracy_before for repaired in known]):.1f}",
                    f"{100 * np.mean([repaired.accuracy_after for repaired in known]):.1f}",
                ]
                gaps = [
                    f"{np.mean([repaired.gaps[other][1] for repaired in known]):+.3f}"
                    for other in METRICS
                ]
                rows.append([name, metric.replace("_", " "), method, *accuracy, *gaps])
    head = [
        "data",
        "repaired for",
        "repair",
        "accuracy, %",
        "after, %",
        "FPR",
        "FNR",
        "FDR",
        "selection",
    ]
    return table(head, rows)


def section(parts: dict[str, str], n_splits: int) -> Iterable[str]:
    """The text for docs/reproduction.md."""
    yield SETTINGS
    yield ADULT_TEXT
    yield parts["adult"]
    yield not_from_the_data()
    yield FIGURE_2_TEXT
    yield parts["toy"]
    yield FIGURE_3_TEXT
    yield parts["scores"]
    yield TABLE_2_TEXT
    yield parts["marginals"]
    yield REPAIR_TEXT.format(n_splits=n_splits)
    yield parts["repairs"]
    yield EFFECTS_TEXT
    yield parts["effects"]


def main() -> None:
    """Run, print and perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="random splits")
    parser.add_argument("--write", action="store_true", help="write docs/reproduction.md")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    split = Split.from_rows(adult_binary(), 0)
    parts = {"adult": adult_table(split), "scores": score_table(split)}
    parts["marginals"] = marginal_table(split)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        parts["toy"] = toy_table(list(pool.map(toy_gaps, range(N_TOYS))))
        outcomes = {
            name: list(pool.map(partial(repair_split, name), range(arguments.splits)))
            for name in LOADERS
        }
    parts["repairs"], parts["effects"] = repair_table(outcomes), effect_table(outcomes)
    text = "\n".join(section(parts, arguments.splits))
    print(text)
    if arguments.write:
        write_section("influence", text)


if __name__ == "__main__":
    main()
