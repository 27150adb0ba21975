"""The experiments of Monjezi et al. (2025), with tails whose limits hold.

    python -m benches.papers.extremes [--seeds 3] [--mitigation-seeds 2] [--write]

What is measured is kept in target/papers_extremes.jsonl, and a second run goes on from there. With
--write the tables go to docs/reproduction.md.
"""

import argparse
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fairaudit_rs as fa
from fairaudit_rs.extremes.diagnostics import cv_test

from .data import (
    Codes,
    Flippable,
    Matrix,
    bank,
    census,
    compas_races,
    complete_adult,
    default,
    german,
    heart,
    meps,
    prepare,
    students,
)
from .extremes_models import MITIGATORS, MODELS, ORDER_ROWS, as_it_is, fitted, network
from .extremes_quality import GENERATORS, quality
from .extremes_tables import Page
from .reproduction import write_section

RESULTS = Path(__file__).resolve().parents[2] / "target" / "papers_extremes.jsonl"
SEED = 2025
N_SEEDS, N_MITIGATION_SEEDS = 3, 2
#: In the order of Table IV.
DATA: dict[str, Callable[[], Flippable]] = {
    "Census, race": lambda: census("race"),
    "Census, sex": lambda: census("sex"),
    "Credit, sex": german,
    "Bank, age": bank,
    "COMPAS, race": compas_races,
    "Default, sex": default,
    "Heart, sex": heart,
    "MEPS15, sex": lambda: meps(2015),
    "MEPS16, sex": lambda: meps(2016),
    "Students, sex": students,
}
#: Those that the minimax algorithm is run with in the paper.
MITIGATED = ("logistic regression", "network")
HORIZON = 1_000
#: Rows of the smaller group from which mitigation is tried.
FEWEST_MITIGATED = 700
#: The paper's range of k, and its quantile.
FIRST_K, LAST_K, QUANTILE = 10, 50, 1.96

Floats = np.ndarray[Any, np.dtype[np.float64]]
Found = dict[str, Any]


@dataclass(frozen=True)
class Split:
    """Half of the rows for a model, half for the audit."""

    data: Flippable
    train: Matrix
    audit: Matrix
    label: Codes
    audit_label: Codes

    @classmethod
    def from_seed(cls, name: str, seed: int) -> "Split":
        data = DATA[name]()
        order = np.random.default_rng([SEED, seed]).permutation(len(data.label))
        first, second = np.array_split(order, 2)
        train, audit = prepare(data.features[first], data.features[second])
        return cls(data, train, audit, data.label[first], data.label[second])


@dataclass(frozen=True)
class Scores:
    """Probabilities of rows as they are, and with their attribute flipped."""

    privileged: np.ndarray[Any, np.dtype[np.bool_]]
    as_is: Floats
    flipped: Floats

    @classmethod
    def from_model(cls, model: Any, X: Matrix) -> "Scores":
        other = X.copy()
        other[:, 0] = 1 - other[:, 0]
        parts = [np.asarray(model.predict_proba(part)[:, 1]) for part in (X, other)]
        return cls(X[:, 0] == 1, *parts)

    def of_group(self, privileged: bool) -> Floats:
        """The discrimination of the rows of a group."""
        return (self.flipped - self.as_is)[self.privileged == privileged]


# --- what is measured ---------------------------------------------------------------------------


def cell(name: str, model_name: str, seed: int) -> Found:
    """One model on one split: both tails, and their difference."""
    split = Split.from_seed(name, seed)
    model = as_it_is(model_name, split.train, split.label, seed)
    held, seen = Scores.from_model(model, split.audit), Scores.from_model(model, split.train)
    found: Found = {"accuracy": accuracy(held.as_is, split.audit_label), **extremes(held)}
    found["types"] = {
        group: {
            "paper": paper_type(
                np.concatenate([scores.of_group(place) for scores in (held, seen)])
            ),
            "values": our_type(held.of_group(place), None),
            "bounded": our_type(held.of_group(place), 1.0),
        }
        for group, place in (("unprivileged", False), ("privileged", True))
    }
    return found


def accuracy(score: Floats, label: Codes) -> float:
    """The share of right decisions at .5."""
    return float(np.mean((score >= 0.5) == label))


def extremes(scores: Scores) -> Found:
    """ACD, CVaR and ECD, unprivileged less privileged, at the farthest horizon that is measured."""
    fewest = int(min(np.bincount(scores.privileged, minlength=2)))
    reason = ""
    for horizon in (min(HORIZON, 5 * fewest), int(min(HORIZON, fewest / ORDER_ROWS))):
        if horizon < 20:
            continue
        try:
            result = fa.extreme_test(
                y_score=scores.as_is, counterfactual_score=scores.flipped,
                sensitive_features=scores.privileged.astype(int), reference=1,
                horizon=horizon, rng=SEED, n_threads=1,
            )  # fmt: skip
        except fa.errors.NotMeasurableError as error:
            reason = reason or str(error)
            continue
        low, high = result.confidence_interval
        return {
            "sizes": [result.group_sizes[0], result.group_sizes[1]],
            "horizon": horizon,
            "acd": result.acd[0].value - result.acd[1].value,
            "cvar": result.cvar[0].value - result.cvar[1].value,
            "ecd": result.ecd,
            "low": low,
            "high": high,
            "pvalue": result.pvalue,
            "method": result.clearest.method,
            "levels": [float(result.tails[place].level(horizon).value) for place in (0, 1)],
        }
    sizes = [int((scores.privileged == place).sum()) for place in (0, 1)]
    ignores = not (scores.as_is != scores.flipped).any()
    return {"sizes": sizes, "reason": reason or "fewer than 100 rows", "ignores": ignores}


def paper_type(values: Floats) -> Found:
    """The paper's rule on all rows: the raw coefficients of variation, and the shape at k = 50."""
    try:
        passes = cv_test(values, first=FIRST_K, last=LAST_K, compat="paper").passes
        residual = cv_test(values, first=FIRST_K, last=LAST_K).passes
        shape = fa.fit_tail(values, n_exceedances=LAST_K, resolution=None, n_threads=1).shape
    except fa.errors.FairAuditError:
        return {"passes": False, "residual": False, "type": ""}
    if math.isnan(shape):
        return {"passes": bool(passes), "residual": bool(residual), "type": ""}
    # The variance of a maximum likelihood estimate of the shape is (1 + shape)^2 / k.
    error = QUANTILE * (1 + shape) / math.sqrt(LAST_K)
    kind = "III" if shape + error < 0 else "II" if shape - error > 0 else "I"
    return {"passes": bool(passes), "residual": bool(residual), "type": kind}


def our_type(values: Floats, upper: float | None) -> str:
    """The type by the interval of the shape with calibrated cuts; "" without a fit."""
    try:
        return fa.fit_tail(values, upper=upper, n_threads=1).type
    except fa.errors.FairAuditError:
        return ""


def mitigated(name: str, model_name: str, method: str, seed: int) -> Found:
    """A model after mitigation, on rows that it has not seen."""
    split = Split.from_seed(name, seed)
    start = time.perf_counter()
    model = MITIGATORS[method](model_name, split.train, split.label, seed)
    seconds = time.perf_counter() - start
    found: Found = {"seconds": seconds}
    if isinstance(model, fa.SearchResult):
        found |= {"selection_ecd": model.selection_ecd, "report_ecd": model.report_ecd}
        found["settings"] = str(model.settings)
        model = model.model
    scores = Scores.from_model(model, split.audit)
    decided, label = scores.as_is >= 0.5, split.audit_label
    odds = [
        decided[~scores.privileged & (label == y)].mean()
        - decided[scores.privileged & (label == y)].mean()
        for y in (0, 1)
    ]
    found |= {"accuracy": accuracy(scores.as_is, label), "aod": float(np.mean(odds))}
    return found | extremes(scores)


def ten_groups(seed: int) -> Found:
    """Adult by race and sex, a network, every flip: one call, timed."""
    frame = complete_adult()
    data = census("sex")
    races = sorted(frame["race"].unique().to_list())
    columns = [np.asarray(frame["race"] == race, dtype=np.float64) for race in races]
    # Sex, then five columns of race, then all else; the column of White goes.
    features = np.column_stack([data.features[:, 0], *columns, data.features[:, 2:]])
    order = np.random.default_rng([SEED, seed]).permutation(len(features))
    first, second = order[: len(order) * 3 // 10], order[len(order) * 3 // 10 :]
    train, audit = prepare(features[first], features[second])
    model = fitted(network(seed), train, data.label[first])
    names = ["sex", *(f"race_{race}" for race in races)]
    X = {
        name: audit[:, place]
        for place, name in enumerate([*names, *(f"x{i}" for i in range(train.shape[1] - 6))])
    }
    start = time.perf_counter()
    result = fa.extreme_test(
        model, X, attribute={"sex": "sex", "race": names[1:]}, horizon=500, rng=SEED
    )
    seconds = time.perf_counter() - start
    worst = result.clearest
    return {
        "seconds": seconds,
        "rows": result.n_rows,
        "groups": len(result.group_sizes),
        "measured": sum(not comparison.reason for comparison in result.comparisons),
        "pairs": len(result.comparisons),
        "ecd": result.ecd,
        "interval": list(result.confidence_interval),
        "pvalue": result.pvalue,
        "first": list(map(str, worst.first)),
        "second": list(map(str, worst.second)),
        "fewest": min(result.group_sizes.values()),
    }


def generated(name: str, generator: str) -> Found:
    """How alike the rows of a generator are to real ones."""
    return quality(DATA[name](), generator, SEED)


# --- running ------------------------------------------------------------------------------------

JOBS: dict[str, Callable[..., Found]] = {
    "cell": cell,
    "mitigated": mitigated,
    "generated": generated,
    "ten_groups": ten_groups,
}
Key = tuple[Any, ...]


def keys(n_seeds: int, n_mitigation_seeds: int) -> Iterator[Key]:
    """All that is to be measured, seed by seed."""
    yield ("ten_groups", 0)
    for name in DATA:
        if name != "Census, race":
            for generator in GENERATORS:
                yield ("generated", name, generator)
    for seed in range(n_seeds):
        for name in DATA:
            for model in MODELS:
                yield ("cell", name, model, seed)
    names = mitigated_data()
    for seed in range(n_mitigation_seeds):
        for name in names:
            for model in MITIGATED:
                for method in MITIGATORS:
                    yield ("mitigated", name, model, method, seed)


def mitigated_data() -> list[str]:
    """Data with groups that are large enough for a part that searches and one that reports."""
    sizes = {name: np.bincount(data().features[:, 0].astype(int)) for name, data in DATA.items()}
    return [name for name, size in sizes.items() if size.min() >= FEWEST_MITIGATED]


def run(key: Key) -> Found:
    """Measure one of them; why it cannot be is a finding, too."""
    try:
        return JOBS[key[0]](*key[1:])
    except fa.errors.FairAuditError as error:
        return {"reason": str(error)}


def load() -> dict[Key, Found]:
    """Return the earlier measurements."""
    if not RESULTS.exists():
        return {}
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    return {tuple(entry["key"]): entry["found"] for entry in map(json.loads, lines)}


def measure(wanted: list[Key]) -> dict[Key, Found]:
    """Measure what is not there yet, on all cores."""
    found = load()
    missing = [key for key in wanted if key not in found]
    RESULTS.parent.mkdir(exist_ok=True)
    # One thread for each process: the sums of linear algebra are then the same everywhere.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool,
        RESULTS.open("a", encoding="utf-8") as file,
    ):
        futures = {pool.submit(run, key): key for key in missing}
        for done, future in enumerate(as_completed(futures), 1):
            key, one = futures[future], future.result()
            found[key] = one
            file.write(json.dumps({"key": list(key), "found": one}) + "\n")
            file.flush()
            print(f"{done} of {len(missing)}: {', '.join(map(str, key))}", flush=True)
    return {key: found[key] for key in wanted}


def main() -> None:
    """Run, print and perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="splits of each data set")
    parser.add_argument(
        "--mitigation-seeds", type=int, default=N_MITIGATION_SEEDS, help="those with mitigation"
    )
    parser.add_argument("--write", action="store_true", help="write docs/reproduction.md")
    arguments = parser.parse_args()
    found = measure(list(keys(arguments.seeds, arguments.mitigation_seeds)))
    page = Page(
        found=found,
        data=list(DATA),
        models=list(MODELS),
        mitigated=MITIGATED,
        mitigators=list(MITIGATORS),
        n_seeds=arguments.seeds,
        n_mitigation_seeds=arguments.mitigation_seeds,
        fewest=FEWEST_MITIGATED,
    )
    text = "\n".join(page.text())
    print(text)
    if arguments.write:
        write_section("extremes", text)


if __name__ == "__main__":
    main()
