"""The Adult and COMPAS experiments of Maity et al. (2021): four classifiers, audited.

    python -m benches.papers.individual [--repetitions 10] [--rows N] [--variants] [--write]

On every random split the classifiers are trained on 80 % of the rows; the rest is audited with
`fa.individual_test`. With --variants other readings are tried on a few splits, with
--published-sensr SenSR takes as many steps as in the published code (hours), with --write the
tables go to docs/reproduction.md.
"""

import argparse
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import fairaudit_rs as fa

from .data import Codes, Individuals, adult_individuals, compas_individuals
from .individual_models import regression_directions, train_all, train_project
from .individual_text import ADULT_TEXT, COMPAS_TEXT, SETTINGS, VARIANTS_TEXT
from .reproduction import table, write_section

SEED = 2021
N_REPETITIONS = 10
N_VARIANT_REPETITIONS = 2
TRAINING_SHARE = 0.8
DELTA = 1.25
EARLY = 200
#: Probabilities closer to 1 are 1 in single precision: the loss is 0, and the published code
#: leaves the row out.
LOST_LOSS = 2.0**-25
LOOSE = "Project trained with lbfgs of scikit-learn"
LOADERS = {"Adult": adult_individuals, "COMPAS": compas_individuals}


@dataclass(frozen=True)
class Flow:
    """The gradient flow of an audit."""

    penalty: float = 50.0
    n_steps: int = 500
    step_size: float = 0.01


@dataclass(frozen=True)
class Published:
    """A row of Table 3 or 4: mean and standard deviation over ten repetitions."""

    balanced_accuracy: str
    gender: str
    race: str
    lower_bound: str
    rejected: str
    error_bound: str = ""
    error_rejected: str = ""


PUBLISHED_FLOW = {"Adult": Flow(), "COMPAS": Flow(100.0, 200, 0.005)}
# fmt: off
PUBLISHED = {
    "Adult": {
        "Baseline": Published("0.817 ± 0.007", "-0.151 ± 0.026", "-0.061 ± 0.015",
                              "3.676 ± 2.164", "1.0", "2.262 ± 0.356", "1.0"),
        "Project": Published("0.825 ± 0.003", "-0.147 ± 0.015", "-0.053 ± 0.015",
                             "1.660 ± 0.355", "0.9", "1.800 ± 0.584", "0.8"),
        "Reductions": Published("0.800 ± 0.005", "0.001 ± 0.021", "-0.027 ± 0.013",
                                "5.712 ± 2.264", "1.0", "3.275 ± 0.343", "1.0"),
        "SenSR": Published("0.765 ± 0.012", "-0.074 ± 0.033", "-0.048 ± 0.008",
                           "1.021 ± 0.008", "0.0", "1.081 ± 0.041", "0.0"),
    },
    "COMPAS": {
        "Baseline": Published("0.675 ± 0.013", "0.218 ± 0.041", "0.260 ± 0.026",
                              "2.385 ± 0.262", "1.0"),
        "Project": Published("0.641 ± 0.017", "0.039 ± 0.029", "0.227 ± 0.021",
                             "1.161 ± 0.145", "0.2"),
        "Reductions": Published("0.652 ± 0.012", "-0.014 ± 0.054", "0.037 ± 0.039",
                                "1.763 ± 0.069", "1.0"),
        "SenSR": Published("0.640 ± 0.022", "0.046 ± 0.031", "0.237 ± 0.018",
                           "1.098 ± 0.061", "0.0"),
    },
}
# fmt: on
CLASSIFIERS = tuple(PUBLISHED["Adult"])


@dataclass(frozen=True)
class Audit:
    """The result of one flow for one classifier."""

    lower_bound: float
    early_bound: float
    bootstrap_bound: float
    error_bound: float
    error_bootstrap_bound: float
    n_floored: int


@dataclass(frozen=True)
class Outcome:
    """One classifier on the test part of one split."""

    balanced_accuracy: float
    gender: float
    race: float
    published: Audit
    standard: Audit
    #: T_n by reading; empty where no variants were asked for.
    variants: dict[str, float]


# Outcomes of the repetitions by classifier.
Outcomes = dict[str, list[Outcome]]


def chosen(data: Individuals, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Individuals:
    """Some of the rows."""
    columns = {name: getattr(data, name)[rows] for name in ("features", "label", "gender", "race")}
    return replace(data, **columns)


def split(data: Individuals, repetition: int) -> tuple[Individuals, Individuals]:
    """Training and test part, numbers standardized by the training part."""
    order = np.random.default_rng((SEED, repetition)).permutation(len(data.label))
    n_train = int(TRAINING_SHARE * len(order))
    train, test = chosen(data, order[:n_train]), chosen(data, order[n_train:])
    columns = list(data.numbers)
    mean = train.features[:, columns].mean(axis=0)
    deviation = train.features[:, columns].std(axis=0)
    for part in (train, test):
        part.features[:, columns] = (part.features[:, columns] - mean) / deviation
    return train, test


def sensitive_metric(data: Individuals, C: float = 1.0) -> fa.FairMetric:
    """The sensitive subspace of gender and race; protected features are at no cost, too."""
    k = data.n_protected
    protected = {"gender": data.gender, "race": data.race}
    rest = fa.FairMetric.subspace(data.features[:, k:], protected, C=C)
    matrix = np.zeros((data.features.shape[1],) * 2)
    matrix[k:, k:] = rest.D
    return rest if k == 0 else fa.FairMetric.matrix(matrix)


def directions_metric(data: Individuals, solver: str) -> fa.FairMetric:
    """The same with a regression of scikit-learn, at its defaults."""
    return fa.FairMetric.directions(regression_directions(data, solver))


def test(
    model: fa.TorchModel, rows: Individuals, metric: fa.FairMetric, flow: Flow, **options: object
) -> fa.IndividualResult:
    """The public call."""
    return fa.individual_test(
        model, rows.features, rows.label, fair_metric=metric, penalty=flow.penalty,
        n_steps=flow.n_steps, step_size=flow.step_size, delta=DELTA, n_threads=1, **options,
    )  # fmt: skip


def audit(
    model: fa.TorchModel, rows: Individuals, metric: fa.FairMetric, flow: Flow, seed: int
) -> Audit:
    """Both ratios; the path of a bootstrap-t audit has the bounds of the normal law."""
    # Enough points for one after every 20 steps.
    options = {"interval": "bootstrap-t", "rng": seed, "path_points": flow.n_steps // 20 + 1}
    loss = test(model, rows, metric, flow, **options)
    error = test(model, rows, metric, flow, ratio="error_rate", **options)
    early = int(np.flatnonzero(loss.path.step == EARLY)[0])
    return Audit(
        float(loss.path.lower_bound[-1]),
        float(loss.path.lower_bound[early]),
        loss.lower_bound,
        float(error.path.lower_bound[-1]),
        error.lower_bound,
        loss.n_floored,
    )


def odds_difference(decided: NDArray[np.bool_], label: Codes, group: Codes) -> float:
    """Mean gap of the true and false positive rates, group 0 minus group 1 (as in the tables)."""
    gaps = [
        decided[(label == value) & (group == 0)].mean()
        - decided[(label == value) & (group == 1)].mean()
        for value in (0, 1)
    ]
    return float(np.mean(gaps))


def readings(train: Individuals, rows: Individuals) -> dict[str, tuple[fa.FairMetric, Flow]]:
    """Metric and flow by other readings of the paper."""
    flow = PUBLISHED_FLOW[rows.name]
    finer = replace(flow, n_steps=2 * flow.n_steps, step_size=flow.step_size / 2)
    metric = sensitive_metric(rows)
    return {
        "as in the tables": (metric, flow),
        "half the step size, twice the steps": (metric, finer),
        "metric: lbfgs of scikit-learn": (directions_metric(rows, "lbfgs"), flow),
        "metric: liblinear": (directions_metric(rows, "liblinear"), flow),
        "metric: C = 0.01": (sensitive_metric(rows, 0.01), flow),
        "metric: C = 100": (sensitive_metric(rows, 100.0), flow),
        "metric: from the training rows": (sensitive_metric(train), flow),
    }


def without_lost(model: fa.TorchModel, rows: Individuals) -> Individuals:
    """The rows that the published code keeps: single precision sees their loss."""
    score = model.decision_function(rows.features)
    loss = np.logaddexp(0.0, np.where(rows.label == 1, -score, score))
    return chosen(rows, loss >= LOST_LOSS)


def variant_bounds(
    model: fa.TorchModel, rows: Individuals, read: dict[str, tuple[fa.FairMetric, Flow]]
) -> dict[str, float]:
    """T_n by other readings of the paper."""
    bounds = {name: test(model, rows, *reading).lower_bound for name, reading in read.items()}
    if read:
        kept = without_lost(model, rows)
        own = test(model, kept, *read["as in the tables"])
        bounds["without rows of no loss in single precision"] = own.lower_bound
    return bounds


def examine(
    module: nn.Module,
    rows: Individuals,
    metric: fa.FairMetric,
    seed: int,
    read: dict[str, tuple[fa.FairMetric, Flow]],
) -> Outcome:
    """Accuracy, group fairness and audits of one classifier."""
    model, flow = fa.TorchModel(module, dtype="float64"), PUBLISHED_FLOW[rows.name]
    decided = model.decision_function(rows.features) >= 0
    rates = [np.mean(decided[rows.label == value] == value) for value in (0, 1)]
    published = audit(model, rows, metric, flow, seed)
    standard = published if flow == Flow() else audit(model, rows, metric, Flow(), seed)
    return Outcome(
        float(np.mean(rates)),
        odds_difference(decided, rows.label, rows.gender),
        odds_difference(decided, rows.label, rows.race),
        published,
        standard,
        variant_bounds(model, rows, read),
    )


def run_repetition(
    name: str, n_rows: int | None, n_variants: int, published_sensr: bool, repetition: int
) -> dict[str, Outcome]:
    """All classifiers on one split; the seed is that of the split."""
    torch.set_num_threads(1)
    train, rows = split(LOADERS[name](), repetition)
    rows = chosen(rows, np.arange(len(rows.label))[:n_rows])
    modules = train_all(train, repetition, published_sensr=published_sensr)
    metric = sensitive_metric(rows)
    read = readings(train, rows) if repetition < n_variants else {}
    outcomes = {
        classifier: examine(module, rows, metric, repetition, read)
        for classifier, module in modules.items()
    }
    if read:
        loose = fa.TorchModel(train_project(train, repetition, "lbfgs"), dtype="float64")
        bound = test(loose, rows, metric, PUBLISHED_FLOW[name]).lower_bound
        outcomes["Project"].variants[LOOSE] = bound
    return outcomes


def run(pool: Executor, name: str, arguments: argparse.Namespace) -> Outcomes:
    """All repetitions of a data set."""
    n_variants = N_VARIANT_REPETITIONS if arguments.variants else 0
    task = partial(run_repetition, name, arguments.rows, n_variants, arguments.published_sensr)
    found = list(pool.map(task, range(arguments.repetitions)))
    return {classifier: [outcomes[classifier] for outcomes in found] for classifier in CLASSIFIERS}


def mean_text(values: Iterable[float]) -> str:
    """Mean and standard deviation over the repetitions."""
    numbers = np.fromiter(values, dtype=np.float64)
    deviation = numbers.std(ddof=1) if len(numbers) > 1 else np.nan
    return f"{numbers.mean():.3f} ± {deviation:.3f}"


def share_text(bounds: Iterable[float]) -> str:
    """The share of repetitions that are rejected."""
    return f"{np.mean([bound > DELTA for bound in bounds]):.1f}"


def accuracy_table(name: str, outcomes: Outcomes) -> str:
    """Accuracy and group fairness, published and ours."""
    rows = []
    for classifier, published in PUBLISHED[name].items():
        cells = [classifier]
        for attribute in ("balanced_accuracy", "gender", "race"):
            own = mean_text(getattr(outcome, attribute) for outcome in outcomes[classifier])
            cells += [getattr(published, attribute), own]
        rows.append(cells)
    head = [f"{what}, {whose}" for what in ("balanced accuracy", "AOD gender", "AOD race")
            for whose in ("published", "ours")]  # fmt: skip
    return table(["classifier", *head], rows)


def audit_row(audits: Sequence[Audit]) -> list[str]:
    """T_n, rejections by the normal law and by the bootstrap, and the same for error rates."""
    return [
        mean_text(a.lower_bound for a in audits),
        share_text(a.lower_bound for a in audits),
        share_text(a.bootstrap_bound for a in audits),
        mean_text(a.error_bound for a in audits),
        share_text(a.error_bound for a in audits),
        share_text(a.error_bootstrap_bound for a in audits),
    ]


AUDIT_HEAD = [
    "classifier", "", "T_n", "rejected", "rejected, bootstrap-t", "T̃_n (error rates)", "rejected",
    "rejected, bootstrap-t",
]  # fmt: skip


def audit_table(name: str, outcomes: Outcomes) -> str:
    """Bounds and rejections, published and ours."""
    rows = []
    for classifier, published in PUBLISHED[name].items():
        own = outcomes[classifier]
        rows.append([classifier, "published", published.lower_bound, published.rejected, "",
                     published.error_bound, published.error_rejected, ""])  # fmt: skip
        if name == "COMPAS":
            rows.append([classifier, "ours, λ = 100, 200 steps of 0.005",
                         *audit_row([outcome.published for outcome in own])])  # fmt: skip
        early = [outcome.standard.early_bound for outcome in own]
        rows.append([classifier, "ours, λ = 50, 200 steps of 0.01", mean_text(early),
                     share_text(early), "", "", "", ""])  # fmt: skip
        rows.append([classifier, "ours, λ = 50, 500 steps of 0.01",
                     *audit_row([outcome.standard for outcome in own])])  # fmt: skip
    return table(AUDIT_HEAD, rows)


def variant_table(results: dict[str, Outcomes]) -> str:
    """Mean T_n over a few splits by reading."""
    rows = []
    for name, outcomes in results.items():
        for reading in outcomes["Project"][0].variants:
            cells = [name, reading]
            for classifier in CLASSIFIERS:
                found = [outcome.variants.get(reading) for outcome in outcomes[classifier]]
                bounds = [bound for bound in found if bound is not None]
                cells.append(f"{np.mean(bounds):.3f}" if bounds else "")
            rows.append(cells)
    return table(["data", "reading", *CLASSIFIERS], rows)


def split_table(results: dict[str, Outcomes]) -> str:
    """T_n of every split, by the flow that is compared with the published one."""
    rows = []
    for name, outcomes in results.items():
        for classifier in CLASSIFIERS:
            bounds = [outcome.published.lower_bound for outcome in outcomes[classifier]]
            rows.append([name, classifier, " ".join(f"{bound:.2f}" for bound in bounds)])
    return table(["data", "classifier", "T_n by split"], rows)


def section(results: dict[str, Outcomes], arguments: argparse.Namespace) -> str:
    """The text for docs/reproduction.md."""
    parts = [SETTINGS]
    for name, text in (("Adult", ADULT_TEXT), ("COMPAS", COMPAS_TEXT)):
        outcomes = results[name]
        parts.append(text.format(n_repetitions=arguments.repetitions))
        parts += [accuracy_table(name, outcomes), audit_table(name, outcomes)]
    parts.append("### T_n of every split\n")
    parts.append(split_table(results))
    if arguments.variants:
        n = min(N_VARIANT_REPETITIONS, arguments.repetitions)
        parts += [VARIANTS_TEXT.format(n_repetitions=n), variant_table(results)]
    return "\n".join(parts)


def main() -> None:
    """Run, print and perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=N_REPETITIONS, help="random splits")
    parser.add_argument("--rows", type=int, default=None, help="audit only so many test rows")
    parser.add_argument("--variants", action="store_true", help="try other readings of the paper")
    parser.add_argument("--published-sensr", action="store_true", help="train SenSR in full: hours")
    parser.add_argument("--write", action="store_true", help="write docs/reproduction.md")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        results = {name: run(pool, name, arguments) for name in LOADERS}
    for name, outcomes in results.items():
        print(accuracy_table(name, outcomes), audit_table(name, outcomes), sep="\n")
    print(split_table(results))
    if arguments.variants:
        print(variant_table(results))
    if arguments.write:
        write_section("individual", section(results, arguments))


if __name__ == "__main__":
    main()
