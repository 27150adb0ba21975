"""Tables 1 to 3 of Si et al. (2021): a naive and a fair support vector machine, audited.

    python -m benches.papers.projection [--splits 200] [--variants] [--write]

Both classifiers are trained on one part of the data and tested on the rest, many times over; the
tables count how often their fairness is rejected at level .05. With --variants other readings of
the data are tried on a few splits; with --write the tables go to docs/reproduction.md.
"""

import argparse
import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import repeat

import numpy as np
from scipy import stats
from sklearn.svm import SVC

import fairaudit_rs as fa

from .data import Codes, DataSet, Matrix, arrhythmia, compas, drug, prepare
from .projection_text import CLASSIFIERS_TEXT, REJECTIONS_TEXT, SETTINGS, VARIANTS_TEXT
from .reproduction import table, write_section

SEED = 2021
N_SPLITS = 200
N_VARIANT_SPLITS = 40
LEVEL = 0.05
TRAINING_SHARE = 0.7
PENALTIES = (0.01, 0.1, 1.0)
N_FOLDS = 5
CLASSIFIERS = ("Naive SVM", "Donini et al. (2018)")
PROTOCOLS = ("70-30 split", "resampled")
NOTIONS = ("equal_opportunity", "equalized_odds")
# The table of the paper and what is tested; p-values come in this order.
TESTS = (
    (1, "equal opportunity, limit law"),
    (1, "the same, with our refusals"),
    (1, "the same, by permutation"),
    (2, "equalized odds, limit law"),
    (2, "the same, with our refusals"),
    (2, "the same, by permutation"),
    (3, "equal opportunity, Welch"),
    (3, "the same, normal quantile"),
)
# Percentages of 1,000 splits, by classifier and table.
PUBLISHED = {
    "Arrhythmia": ((68.4, 75.1, 76.1), (11.6, 13.7, 14.0)),
    "COMPAS": ((100.0, 100.0, 100.0), (16.6, 21.7, 16.1)),
    "Drug": ((30.1, 30.5, 35.5), (21.6, 17.2, 23.0)),
}
DATA_SETS: tuple[Callable[[], DataSet], ...] = (arrhythmia, compas, drug)
VARIANTS: tuple[tuple[str, Callable[[], DataSet]], ...] = (
    ("Arrhythmia, as in the tables", arrhythmia),
    ("Arrhythmia, all 278 features", partial(arrhythmia, 278)),
    ("Arrhythmia, sex among the features", partial(arrhythmia, with_sex=True)),
    ("Arrhythmia, positive: arrhythmia", partial(arrhythmia, positive="arrhythmia")),
    ("COMPAS, as in the tables", compas),
    ("COMPAS, race among the features", partial(compas, with_race=True)),
    ("COMPAS, positive: did not reoffend", partial(compas, positive=0)),
    ("COMPAS, African-American against all others", partial(compas, all_races=True)),
    ("COMPAS, all races, sensitive: sex", partial(compas, "sex", all_races=True)),
    ("Drug, as in the tables", drug),
    ("Drug, ethnicity among the features", partial(drug, with_ethnicity=True)),
    ("Drug, sensitive: gender", partial(drug, sensitive="gender")),
    ("Drug, positive: ever used cannabis", partial(drug, positive="ever")),
    ("Drug, cocaine", partial(drug, "coke")),
    ("Drug, heroin", partial(drug, "heroin")),
)


@dataclass(frozen=True)
class Outcome:
    """The decisions of one classifier on the test part of one split."""

    pvalues: tuple[float, ...]  # in the order of TESTS; NaN is inconclusive
    accuracy: float
    gap: float
    constant: bool
    penalty: float


def split_rows(data: DataSet, protocol: str, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Training and test rows."""
    n_rows = len(data.label)
    if protocol == "70-30 split":
        order, n_train = rng.permutation(n_rows), int(TRAINING_SHARE * n_rows)
        return order[:n_train], order[n_train:]
    cell = 2 * data.group + data.label
    drawn = []
    for code in range(4):
        rows = np.flatnonzero(cell == code)
        drawn.append(rng.choice(rows, size=int(TRAINING_SHARE * len(rows))))
    train = np.concatenate(drawn)
    return train, np.setdiff1d(np.arange(n_rows), train)


def fit(X: Matrix, label: Codes, penalty: float) -> tuple[Matrix, float]:
    """A linear support vector machine; rows that are equal enter once, with their number."""
    rows, counts = np.unique(np.column_stack([X, label]), axis=0, return_counts=True)
    machine = SVC(kernel="linear", C=penalty).fit(rows[:, :-1], rows[:, -1], counts)
    return machine.coef_[0], float(machine.intercept_[0])


def stratified_folds(label: Codes, rng: np.random.Generator) -> Codes:
    """The fold of every row, with equal shares of the labels."""
    fold = np.empty(len(label), dtype=np.int64)
    for value in (0, 1):
        rows = rng.permutation(np.flatnonzero(label == value))
        fold[rows] = np.arange(len(rows)) % N_FOLDS
    return fold


def best_penalty(X: Matrix, label: Codes, rng: np.random.Generator) -> float:
    """The C of the highest accuracy in cross-validation; the smallest of those that are equal."""
    fold = stratified_folds(label, rng)
    accuracies = []
    for penalty in PENALTIES:
        correct = 0
        for held_out in (fold == k for k in range(N_FOLDS)):
            coef, intercept = fit(X[~held_out], label[~held_out], penalty)
            correct += np.sum((X[held_out] @ coef + intercept >= 0) == label[held_out])
        accuracies.append(correct)
    return PENALTIES[int(np.argmax(accuracies))]


def fair_directions(X: Matrix, label: Codes, group: Codes) -> Matrix:
    """The projection onto u.w = 0, u the gap between the groups' means of the positive rows.

    Donini et al. (2018), section 4: with a linear loss, w.u = 0 makes the risks of the positive
    rows equal in both groups; a linear machine fitted to the projected rows has such a w.
    """
    means = [X[(label == 1) & (group == code)].mean(axis=0) for code in (0, 1)]
    u = means[1] - means[0]
    projection: Matrix = np.eye(len(u)) - np.outer(u, u) / (u @ u)
    return projection


def projection_pvalues(model: fa.LinearModel, test: DataSet, seed: int) -> tuple[float, ...]:
    """Of both notions: the limit law as published, with our refusals, and by permutation."""
    distance = model.distance(test.features)
    pvalues: list[float] = []
    for notion in NOTIONS:
        options = {"distance": distance, "sensitive_features": test.group, "notion": notion}
        limit = fa.projection_test(test.label, **options)
        # The law at the bandwidth itself; without it, and without a gap, nothing is rejected.
        published = limit.sensitivity[1][1] if limit.sensitivity else 1.0
        permuted = fa.projection_test(test.label, **options, calibration="permutation", rng=seed)
        pvalues += [published, limit.pvalue, permuted.pvalue]
    return tuple(pvalues)


def welch_pvalues(decision: Codes, label: Codes, group: Codes) -> tuple[float, float]:
    """Of equal true positive rates: Welch's statistic against Student's and the normal law."""
    groups = [decision[(label == 1) & (group == code)] for code in (0, 1)]
    summaries = [(rows.mean(), rows.std(ddof=1), len(rows)) for rows in groups]
    if all(deviation == 0 for _, deviation, _ in summaries):
        equal = float(summaries[0][0] == summaries[1][0])
        return equal, equal
    welch = stats.ttest_ind_from_stats(*summaries[0], *summaries[1], equal_var=False)
    return float(welch.pvalue), float(2 * stats.norm.sf(abs(welch.statistic)))


def audit(coef: Matrix, intercept: float, penalty: float, test: DataSet, seed: int) -> Outcome:
    """All tests of one classifier; one that decides alike for all rows is not rejected."""
    label, group = test.label, test.group
    decision = (test.features @ coef + intercept >= 0).astype(np.int64)
    constant = bool(np.ptp(decision) == 0)
    pvalues: tuple[float, ...] = (1.0,) * len(TESTS)
    if not constant:
        model = fa.LinearModel(coef, intercept, threshold=0.0)
        welch = welch_pvalues(decision, label, group)
        pvalues = (*projection_pvalues(model, test, seed), *welch)
    rates = [decision[(label == 1) & (group == code)].mean() for code in (0, 1)]
    accuracy = float(np.mean(decision == label))
    return Outcome(pvalues, accuracy, float(rates[1] - rates[0]), constant, penalty)


def run_split(data: DataSet, protocol: str, split: int) -> tuple[Outcome, Outcome]:
    """Both classifiers on one split; the seed is that of the split."""
    rng = np.random.default_rng((SEED, split))
    train, test = split_rows(data, protocol, rng)
    X, X_test = prepare(data.features[train], data.features[test])
    label, group = data.label[train], data.group[train]
    rest = DataSet(data.name, X_test, data.label[test], data.group[test])
    outcomes = []
    for directions in (np.eye(X.shape[1]), fair_directions(X, label, group)):
        X_seen = X @ directions
        penalty = best_penalty(X_seen, label, rng)
        coef, intercept = fit(X_seen, label, penalty)
        outcomes.append(audit(directions @ coef, intercept, penalty, rest, split))
    return outcomes[0], outcomes[1]


def run_splits(
    pool: Executor, data: DataSet, protocol: str, n_splits: int
) -> tuple[list[Outcome], list[Outcome]]:
    """The outcomes of the naive and of the fair classifier."""
    pairs = list(pool.map(run_split, repeat(data), repeat(protocol), range(n_splits)))
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def percentage(hits: Iterable[bool], *, error: bool = False) -> str:
    """The share of hits, with its standard error over splits."""
    flags = np.fromiter(hits, dtype=np.float64)
    share = flags.mean()
    text = f"{100 * share:.1f}"
    return f"{text} ± {100 * np.sqrt(share * (1 - share) / len(flags)):.1f}" if error else text


def rejections(outcomes: Sequence[Outcome], test: int, *, error: bool = True) -> str:
    """The rejected and, in brackets, the inconclusive splits."""
    pvalues = [outcome.pvalues[test] for outcome in outcomes]
    rejected = percentage((p < LEVEL for p in pvalues), error=error)
    unclear = sum(np.isnan(p) for p in pvalues)
    return f"{rejected} ({percentage(np.isnan(pvalues))})" if unclear else rejected


# The outcomes of the naive and of the fair classifier, by data set and protocol.
Results = dict[tuple[str, str], tuple[list[Outcome], list[Outcome]]]


def run_tables(pool: Executor, n_splits: int) -> Results:
    """All splits of all data sets."""
    return {
        (data.name, protocol): run_splits(pool, data, protocol, n_splits)
        for data in (load() for load in DATA_SETS)
        for protocol in PROTOCOLS
    }


def rejection_table(results: Results) -> str:
    """Published and own percentages."""
    rows = []
    for test, (number, title) in enumerate(TESTS):
        for name, published in PUBLISHED.items():
            for k, classifier in enumerate(CLASSIFIERS):
                own = [rejections(results[name, protocol][k], test) for protocol in PROTOCOLS]
                printed = f"{published[k][number - 1]:.1f}"
                rows.append([f"{number}: {title}", name, classifier, printed, *own])
    return table(["Table", "data", "classifier", "published", *PROTOCOLS], rows)


def classifier_table(results: Results) -> str:
    """How the classifiers differ."""
    rows = []
    for (name, protocol), pair in results.items():
        for classifier, outcomes in zip(CLASSIFIERS, pair, strict=True):
            gaps = np.array([outcome.gap for outcome in outcomes])
            cells = [
                f"{np.mean([outcome.accuracy for outcome in outcomes]):.3f}",
                f"{gaps.mean():+.3f}",
                f"{np.abs(gaps).mean():.3f}",
                percentage(outcome.constant for outcome in outcomes),
                f"{np.median([outcome.penalty for outcome in outcomes]):g}",
            ]
            rows.append([name, protocol, classifier, *cells])
    head = ["accuracy", "mean gap", "mean size of gap", "constant, %", "median C"]
    return table(["data", "protocol", "classifier", *head], rows)


def variant_table(pool: Executor, n_splits: int) -> str:
    """Other readings of the data: percentages of the naive and of the fair classifier."""
    rows = []
    for name, load in VARIANTS:
        data = load()
        for protocol in PROTOCOLS:
            pair = run_splits(pool, data, protocol, n_splits)
            cells = [
                " / ".join(rejections(outcomes, test, error=False) for outcomes in pair)
                for test in range(len(TESTS))
            ]
            rows.append([name, protocol, *cells])
    return table(["reading", "protocol", *(f"{number}: {title}" for number, title in TESTS)], rows)


def section(n_splits: int, tables: Sequence[str]) -> str:
    """The text for docs/reproduction.md."""
    texts = [REJECTIONS_TEXT.format(n_splits=n_splits), CLASSIFIERS_TEXT]
    texts.append(VARIANTS_TEXT.format(n_splits=N_VARIANT_SPLITS))
    parts = [f"{text}\n{rows}" for text, rows in zip(texts, tables, strict=False)]
    return "\n".join([SETTINGS, *parts])


def main() -> None:
    """Run, print and perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="per data set and protocol")
    parser.add_argument("--variants", action="store_true", help="try other readings of the data")
    parser.add_argument("--write", action="store_true", help="write docs/reproduction.md")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        results = run_tables(pool, arguments.splits)
        tables = [rejection_table(results), classifier_table(results)]
        print(*tables, sep="\n")
        if arguments.variants:
            tables.append(variant_table(pool, N_VARIANT_SPLITS))
            print(f"\n{tables[2]}")
    if arguments.write:
        write_section("projection", section(arguments.splits, tables))


if __name__ == "__main__":
    main()
