"""Golden results: what public calls give, to be compared after a change of the code behind them.

`golden.json` holds the results and the public signatures, `test_golden.py` compares them. After a
change that is meant to be seen, ``python -m tests.golden --write`` writes the file anew.

Only public names are imported here, so that modules can move.
"""

import dataclasses
import functools
import hashlib
import inspect
import json
import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main

FILE = Path(__file__).with_name("golden.json")

#: Arrays of results with one entry per replicate, row or bin.
BULKY = (
    "null_distribution",
    "null_probabilities",
    "histogram",
    "ratios",
    "loss_start",
    "loss_end",
    "score_start",
    "score_end",
    "units",
    "attacked",
)
MOVES = ("row", "fraction", "distance", "weight", "x")
#: Of the lines of the file.
WIDTH = 150
#: Longer arrays are not written out.
MOST_ENTRIES = 12


@dataclass(frozen=True)
class Case:
    """A public call and how its result is compared.

    With a tolerance, floats may differ by this share of their size, and arrays of floats are summed
    up instead of hashed: BLAS, LAPACK, torch or the vector functions of NumPy take part, which
    round differently on other processors. Without one, every bit counts.
    """

    call: Callable[[], Any]
    tolerance: float = 0.0
    needs: tuple[str, ...] = ()
    brief: bool = False

    def result(self) -> Any:
        """Return the result as the file holds it."""
        result = Brief(self.call()) if self.brief else self.call()
        return json.loads(json.dumps(plain(result, not self.tolerance), allow_nan=False))


@dataclass(frozen=True)
class Brief:
    """A result of which only the main numbers are written out; the rest is hashed."""

    result: Any


CASES: dict[str, Case] = {}


def cases(
    lens: str,
    calls: dict[str, Callable[[], Any]],
    tolerance: float = 0.0,
    needs: tuple[str, ...] = (),
    brief: bool = False,
) -> None:
    for name, call in calls.items():
        assert f"{lens}/{name}" not in CASES
        CASES[f"{lens}/{name}"] = Case(call, tolerance, needs, brief)


# -- results as plain values -------------------------------------------------------------------


def digest(*parts: Any) -> str:
    """Return the first half of the SHA-256 of arrays and texts."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype.str}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).tobytes())
        else:
            found.update(str(part).encode())
    return found.hexdigest()[:16]


def plain(value: Any, exact: bool) -> Any:
    """Return a value for JSON; what is bulky as a hash, or as a summary when it is not exact."""
    if isinstance(value, Brief):
        return brief_of(value.result, exact)
    if isinstance(value, pl.DataFrame):
        return {"columns": value.columns, "rows": plain(value.rows(), exact)}
    if hasattr(value, "to_dict"):
        return {**value.to_dict(), **besides(value, exact)}
    if isinstance(value, np.ndarray) and value.size > MOST_ENTRIES:
        if exact or value.dtype.kind != "f":
            return f"sha256 {digest(value)}"
        sizes = np.abs(value)
        parts = {"least": value.min(), "largest": value.max(), "mean size": sizes.mean()}
        return {"shape": list(value.shape), **plain(parts, exact)}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), exact)
    if isinstance(value, dict):
        return {str(key): plain(entry, exact) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, exact) for entry in value]
    if dataclasses.is_dataclass(value):
        return {e.name: plain(getattr(value, e.name), exact) for e in dataclasses.fields(value)}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def bulky_arrays(result: Any) -> dict[str, Any]:
    """Return what a result holds besides its dict."""
    found = {name: getattr(result, name, None) for name in BULKY}
    moves = getattr(result, "moves", None)
    if moves is not None:
        found |= {f"moves.{name}": getattr(moves, name) for name in MOVES}
    return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}


def besides(result: Any, exact: bool) -> dict[str, Any]:
    """Return the arrays of a result, and how its text, table and picture look."""
    found = plain(bulky_arrays(result), exact)
    if exact:
        found["shown"] = digest(*shown(result))
    return {"besides": found}


def shown(result: Any) -> list[str]:
    texts = [str(result), repr(result)]
    if hasattr(result, "_repr_html_"):
        texts.append(result._repr_html_())
    if hasattr(result, "to_frame"):
        texts.append(repr(result.to_frame().to_dict(as_series=False)))
    if hasattr(result, "plot"):
        texts.append(json.dumps(result.plot().spec, sort_keys=True))
    return texts


def brief_of(result: Any, exact: bool) -> dict[str, Any]:
    found = {name: getattr(result, name) for name in ("engine", "estimate", "statistic", "pvalue")}
    if not exact or math.isnan(result.pvalue):
        found["low"], found["high"] = result.confidence_interval
    found = {name: value for name, value in found.items() if value == value}
    if exact:
        everything = json.dumps(result.to_dict(), sort_keys=True)
        found["sha256"] = digest(everything, *bulky_arrays(result).values(), *shown(result))
    return plain(found, exact)


def attempt(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return what a call gives in brief, or why it is refused."""
    try:
        return Brief(call(*arguments, **options))
    except fa.errors.FairAuditError as error:
        return f"{type(error).__name__}: {error}"


# -- data --------------------------------------------------------------------------------------


@functools.cache
def book(n: int = 600) -> dict[str, Any]:
    """A credit book with a column for every role."""
    data = fa.datasets.synthetic_credit(n, rng=11)
    rng = np.random.default_rng(12)
    female = data["sex"] == "female"
    place = np.where(female, np.cumsum(female), np.cumsum(~female))
    known = data["sex"].astype(object)
    known[rng.random(n) < 0.05] = None
    years = rng.integers(18, 90, n).astype(float)
    amount = rng.integers(1, 50, n) * 100.0
    return data | {
        "known": known,
        "branch": rng.choice(["east", "north", "west"], n),
        # Two decisions about every person.
        "person": 2 * (place // 2) + female,
        "weight": rng.integers(1, 5, n) / 2,
        "years": years,
        "years_known": np.where(rng.random(n) < 0.05, np.nan, years),
        "grade": np.round(data["score"], 1),
        "amount": amount,
        "paid": amount * data["repaid"],
        "said": np.where(data["approved"] == 1, "yes", "no"),
        "done": np.where(data["repaid"] == 1, "yes", "no"),
    }


@functools.cache
def frame(n: int = 600) -> pl.DataFrame:
    data = book(n)
    return pl.DataFrame({**data, "known": pl.Series(data["known"].tolist(), dtype=pl.String)})


def roles(n: int, by: Any) -> dict[str, Any]:
    """The columns of the book as arrays, by their roles; groups by one attribute or several."""
    data = book(n)
    names = by if isinstance(by, tuple) else (by,)
    return {
        "y_true": data["repaid"],
        "y_pred": data["approved"],
        "y_score": data["score"],
        "sensitive_features": {name: data[name] for name in names},
    }


NAMES = {
    "y_true": "repaid",
    "y_pred": "approved",
    "y_score": "score",
    "sensitive_features": "sex",
    "n_threads": 1,
    "rng": 5,
}


def permute(metric: Any, by: Any = "sex", n: int = 600, **options: Any) -> Any:
    given = {"n_resamples": 199, "rng": 7, "n_threads": 1, **roles(n, by), **options}
    return fa.permutation_test(metric=metric, **given)


def column(name: str, n: int = 600) -> Any:
    return book(n)[name]


# -- metrics of our own ------------------------------------------------------------------------


def median_error(y_true: Any, value: Any, weight: Any) -> float:
    return float(np.median(np.abs(y_true - value)))


def mean_value(y_true: Any, value: Any, weight: Any) -> float:
    """Mean in the order of the rows, whatever NumPy adds up first."""
    weight = np.ones(len(value)) if weight is None else weight
    return math.fsum((weight * value).tolist()) / math.fsum(weight.tolist())


def callable_metric(function: Any = median_error, **options: Any) -> fa.metrics.Metric:
    given = {"columns": ("y_true", "y_score"), "n_samples": 10, **options}
    return fa.metrics.callable_metric("own", function, **given)


def compiled_metric() -> fa.metrics.Metric:
    """A weighted mean as machine code."""
    import numba

    pointer = numba.types.CPointer(numba.types.float64)

    @numba.cfunc(numba.types.float64(pointer, pointer, pointer, numba.types.int64))
    def function(y_true, value, weight, n):
        total, rows = 0.0, 0.0
        for i in range(n):
            total += weight[i] * value[i] * (1.0 + y_true[i])
            rows += weight[i]
        return total / rows if rows > 0.0 else math.nan

    return fa.metrics.callable_metric("compiled", function, columns=("y_true", "y_score"))


def missed(rows: Any) -> Any:
    return rows["y_true"] * (1 - rows["y_score"])


MISSED = fa.metrics.ratio_metric(
    "missed", missed, lambda rows: rows["y_true"], columns=("y_true", "y_score")
)
REPAID = fa.metrics.ratio_metric("repaid_share", "paid", "amount")
JACCARD = fa.metrics.count_metric("jaccard", "tp / (tp + fp + fn)")
RISK = fa.metrics.count_metric("risk", "fn / (tp + 2 * fn) - abs(fp - fn) / (tp + tn)")
DECIDED = fa.metrics.count_metric(
    "decided", "sqrt(tp * tn) / (tp + tn)", conditions_on="decision", description="Own one."
)
BOTH = fa.metrics.joint_metric("both", ["tpr", "ppv"], conditions_on="label")
GAP_BY_YEARS = fa.metrics.correlation_metric(
    "gap_by_years", lambda rows: rows["y_true"] - rows["y_pred"], columns=("y_true", "y_pred")
)

#: A metric of every kind that there is.
KINDS: dict[str, Any] = {
    "selection_rate": "selection_rate",
    "tpr": "tpr",
    "f1": "f1",
    "mcc": "mcc",
    "balanced_accuracy": "balanced_accuracy",
    "own counts": DECIDED,
    "calibration_error": "ece",
    "auc": "auc",
    "mean_residual": "mean_residual",
    "mean_squared_error": "mse",
    "log_loss": "log_loss",
    "own ratio": REPAID,
    "equalized_odds": "equalized_odds",
    "conditional_use_accuracy": "conditional_use_accuracy",
    "pearson": "pearson",
    "spearman": "spearman",
    "residual_pearson": "residual_pearson",
    "residual_spearman": "residual_spearman",
    "callable": callable_metric(),
}
#: Kinds whose values go through vector functions of NumPy.
INEXACT_KINDS = {"log_loss": 1e-12}
CORRELATIONS = ("pearson", "spearman", "residual_pearson", "residual_spearman")

# -- the permutation test ----------------------------------------------------------------------

BY_AGE = {"sensitive_features": "age"}
#: Every option with every kind of metric; what does not go together is refused with a message.
VARIANTS: dict[str, dict[str, Any]] = {
    "auto": {},
    **{
        f"engine={engine}": {"engine": engine}
        for engine in ("exact", "cells", "stream", "shuffle", "callable")
    },
    **{
        f"studentize={way}": {"studentize": way}
        for way in ("pooled", "unpooled", "bootstrap", "shared", "none")
    },
    **{
        f"interval={way}": {"interval": way}
        for way in ("delta", "studentized", "basic", "percentile")
    },
    "strata=None": {"strata": None},
    "sample_weight": {"sample_weight": "weight"},
    "clusters": {"clusters": "person"},
    "clusters, sample_weight, strata=None": {
        "clusters": "person",
        "sample_weight": "weight",
        "strata": None,
    },
    "score_bins": {"score_bins": 8},
    "adaptive": {"adaptive": True, "n_resamples": 999},
    "greater": {"alternative": "greater"},
    "less": {"alternative": "less"},
    **{f"3 groups, {adjust}": {**BY_AGE, "adjust": adjust} for adjust in ("holm", "bh", "max-t")},
    "3 groups, reference": {**BY_AGE, "reference": "30-59", "adjust": "none"},
    "groups": {**BY_AGE, "groups": ["60+", "18-29"], "confidence_level": 0.9},
    "24 rows": {"data": frame(24)},
    "24 rows, exact": {"data": frame(24), "engine": "exact"},
}
#: NumPy adds up gaps within strata by BLAS.
STRATA: dict[str, dict[str, Any]] = {
    "own strata": {"strata": "branch"},
    "y_true": {"strata": "repaid"},
    "both": {"strata": ["branch", "repaid"]},
    "3 groups": {**BY_AGE, "strata": "branch"},
    "weights, interval": {"strata": "branch", "sample_weight": "weight", "interval": "delta"},
}


def grid(kind: str, variants: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One kind of metric with every option."""
    base = {**NAMES, "data": frame(), "metric": KINDS[kind], "n_resamples": 49}
    if kind in CORRELATIONS:
        base["sensitive_features"] = "years"
    return {
        name: attempt(fa.permutation_test, **(base | options)) for name, options in variants.items()
    }


for _kind in KINDS:
    cases(
        "permutation with every option",
        {_kind: functools.partial(grid, _kind, VARIANTS)},
        INEXACT_KINDS.get(_kind, 0.0),
    )
    cases("permutation in strata", {_kind: functools.partial(grid, _kind, STRATA)}, 1e-12)


def of_tables() -> dict[str, Any]:
    """The same rows as every kind of table."""
    import pandas as pd

    rows, names = frame(), NAMES | {"metric": "f1", "n_resamples": 99}
    cells = fa.tabulate(rows, **{n: names[n] for n in ("y_true", "y_pred", "sensitive_features")})
    found = {
        "polars": rows,
        "lazy": rows.lazy(),
        "pandas": pd.DataFrame(book()),
        "arrow": rows.to_arrow(),
        "mapping": book(),
    }
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows.write_csv(place / "rows.csv")
        for i, part in enumerate(rows.iter_slices(250)):
            part.write_parquet(place / f"part-{i}.parquet")
        found |= {
            "csv": place / "rows.csv",
            "glob": str(place / "part-*.parquet"),
            "files": sorted(place.glob("*.parquet")),
            "folder": place,
        }
        done = {name: attempt(fa.permutation_test, **names, data=d) for name, d in found.items()}
    own = {name: names[name] for name in ("metric", "n_resamples", "rng")}
    done["cells"] = attempt(fa.permutation_test, data=cells, **own)
    done["cells without labels"] = attempt(
        fa.permutation_test, data=cells, **own | {"metric": "ece"}
    )
    return done


def of_seeds() -> dict[str, Any]:
    """Every kind of source of random numbers."""
    made = {
        "int": 12,
        "large": 2**70,
        "sequence": np.random.SeedSequence(4),
        "generator": np.random.default_rng(4),
    }
    found = {name: permute("f1", n=200, n_resamples=49, rng=rng) for name, rng in made.items()}
    found["random_state"] = permute("f1", n=200, n_resamples=49, rng=None, random_state=3)
    return {name: Brief(result) for name, result in found.items()}


def of_progress() -> list[Any]:
    """The last word of every kind of progress."""
    seen: list[tuple[int, int]] = []
    permute("f1", by="age", n_resamples=99, progress=lambda *done: seen.append(done))
    permutation = seen[-1]
    seen.clear()
    project(calibration="permutation", progress=lambda *done: seen.append(done))
    return [permutation, seen[-1]]


cases(
    "permutation",
    {
        "exact": lambda: permute("tpr", n=200),
        "three groups": lambda: permute("f1", by="age", n_resamples=999, n_threads=2),
        "missing groups, text labels": lambda: permute(
            "accuracy",
            by="known",
            y_true=column("done"),
            y_pred=column("said"),
            pos_label="yes",
        ),
        "weights and clusters": lambda: permute(
            "tpr", clusters=column("person"), sample_weight=column("weight")
        ),
        "calibration_error": lambda: permute("ece", by="age", n_resamples=99),
        "auc of rows": lambda: permute("auc"),
        "auc, few rows": lambda: permute("auc", n=90),
        "own ratio": lambda: permute(MISSED),
        "own counts": lambda: [Brief(permute(metric)) for metric in (JACCARD, RISK, DECIDED)],
        "own joint": lambda: permute(BOTH),
        "joint, three groups": lambda: permute("conditional_use_accuracy", by="age"),
        "correlation, missing values": lambda: permute("residual_spearman", by="years_known"),
        "callable, bootstrap": lambda: permute(callable_metric(), n=200, n_resamples=49),
        "adaptive": lambda: permute("f1", by="age", adaptive=True, n_resamples=2_000),
        "seeds": of_seeds,
        "last progress": of_progress,
    },
)
cases(
    "permutation",
    {
        "cells, one-sided": lambda: permute("tpr", engine="cells", alternative="greater"),
        "three groups, max-t": lambda: permute("mcc", by="age", adjust="max-t"),
        "reference": lambda: permute("selection_rate", by="age", reference="60+", adjust="bh"),
        "intersections": lambda: permute("tpr", by=("sex", "age"), n=300, adjust="none"),
        "own strata, f1": lambda: permute("f1", strata={"branch": column("branch")}),
        "auc of cells": lambda: permute("auc", score_bins=12, by="age"),
        "auc of grades": lambda: permute("auc", y_score=column("grade"), engine="cells"),
        "auc, weights": lambda: permute("auc", sample_weight=column("weight")),
        "own ratio, exact": lambda: permute(MISSED, n=16),
        "own correlation, strata": lambda: permute(
            GAP_BY_YEARS, by="years", strata=column("branch"), alternative="less"
        ),
        "callable, weights": lambda: permute(
            callable_metric(mean_value),
            studentize="shared",
            sample_weight=column("weight"),
            by="age",
            n_resamples=49,
        ),
        "callable of decisions": lambda: permute(
            callable_metric(mean_value, columns=("y_true", "y_pred"), conditions_on="label"),
            clusters=column("person"),
            n_resamples=49,
            interval="basic",
        ),
    },
    brief=True,
)
cases(
    "permutation",
    {
        "compiled callable": lambda: permute(
            compiled_metric(), n=300, sample_weight=column("weight", 300), n_threads=2
        )
    },
    needs=("numba",),
)
cases("permutation", {"tables": of_tables}, needs=("pandas", "pyarrow"))
cases(
    "permutation",
    {"own strata, proportion": lambda: permute("tpr", strata=column("branch"))},
    tolerance=1e-12,
)

# -- intervals, equivalence, power, calibration ------------------------------------------------

VALUED = [
    kind
    for kind in KINDS
    if kind not in (*CORRELATIONS, "equalized_odds", "conditional_use_accuracy")
]


def grid_of_intervals(kind: str) -> dict[str, Any]:
    """Every method of intervals, and of equivalence, for one kind of metric."""
    base = {**NAMES, "data": frame(), "metric": KINDS[kind], "n_resamples": 99}
    methods = ("auto", "score", "mover", "studentized", "delta", "basic", "percentile")
    found = {way: attempt(fa.intervals, **base, method=way) for way in methods}
    for name, options in {
        "3 groups": BY_AGE,
        "3 groups, reference": {**BY_AGE, "reference": "60+", "method": "delta"},
        "weights": {"sample_weight": "weight"},
        "clusters": {"clusters": "person"},
    }.items():
        found[name] = attempt(fa.intervals, **(base | options))
    for scale, margin in (("difference", 0.1), ("ratio", 0.8)):
        for way in methods[:5]:
            given = base | {"scale": scale, "margin": margin, "method": way}
            found[f"equivalence, {scale}, {way}"] = attempt(fa.equivalence_test, **given)
    return found


def interval_of(metric: Any, by: Any = "sex", n: int = 600, **options: Any) -> Any:
    given = {"n_resamples": 199, "rng": 7, "n_threads": 2, **roles(n, by), **options}
    return fa.intervals(metric=metric, **given)


def equivalence_of(metric: Any, margin: float, by: Any = "sex", **options: Any) -> Any:
    given = {"n_resamples": 199, "rng": 7, "n_threads": 2, **roles(600, by), **options}
    return fa.equivalence_test(metric=metric, margin=margin, **given)


for _kind in VALUED:
    cases(
        "intervals with every option",
        {_kind: functools.partial(grid_of_intervals, _kind)},
        INEXACT_KINDS.get(_kind, 0.0),
    )
cases(
    "intervals",
    {
        "score": lambda: interval_of("tpr", by="age"),
        "studentized": lambda: interval_of(
            "f1", by="age", method="studentized", confidence_level=0.9
        ),
        "mover": lambda: interval_of("balanced_accuracy", by="age"),
        "delta": lambda: interval_of("auc", method="delta", reference="male"),
        "basic, weights": lambda: interval_of(
            "tpr", method="basic", sample_weight=column("weight")
        ),
        "callable": lambda: interval_of(callable_metric()),
    },
)
cases(
    "equivalence",
    {
        "score": lambda: equivalence_of("tpr", 0.15),
        "ratio, score": lambda: equivalence_of("tpr", 0.8, by="age", scale="ratio"),
        "ratio, mover": lambda: equivalence_of("f1", 0.8, by="age", scale="ratio"),
        "ratio, studentized": lambda: equivalence_of(
            "f1", 0.8, by="age", scale="ratio", method="studentized"
        ),
        "delta, clusters": lambda: equivalence_of(
            "mean_residual", 0.1, method="delta", clusters=column("person")
        ),
    },
)


def both_models(metric: Any, by: str = "sex", scores: bool = False, **options: Any) -> Any:
    """The scores of the frame, and others that are nearer to the labels."""
    known = roles(600, by)
    label, score = np.asarray(known["y_true"]), np.asarray(known["y_score"])
    models = [score, 0.8 * score + 0.2 * label]
    first, second = models if scores else [model > 0.5 for model in models]
    given = {"n_resamples": 199, "rng": 7, "n_threads": 2, **options}
    groups = known["sensitive_features"]
    return fa.compare_models(
        label, first, second, sensitive_features=groups, metric=metric, **given
    )


cases(
    "two models",
    {
        "score": lambda: both_models("tpr"),
        "score, less, 3 groups": lambda: both_models("fpr", by="age", alternative="less"),
        "delta": lambda: both_models("f1", by="age", reference="60+"),
        "inversion": lambda: both_models("auc", scores=True),
        "inversion of means": lambda: both_models("brier_score", by="age", scores=True),
    },
)


def audit_of(policy: Any, by: Any, **options: Any) -> Any:
    audit = fa.audit(policy=policy, **{"rng": 7, "n_threads": 1, **roles(900, by), **options})
    return {"text": str(audit), "findings": audit.findings}


cases(
    "audit",
    {
        "opportunity": lambda: audit_of(None, "sex", n_resamples=99),
        "ratio": lambda: audit_of("four_fifths", "age", evidence="none"),
        "performance": lambda: audit_of("performance", "age", evidence="none"),
        "weights": lambda: audit_of("parity", "sex", sample_weight=column("weight", 900)),
    },
    1e-9,
)


def planned(call: Callable[..., Any], metric: str, by: str = "sex", **options: Any) -> Any:
    return call(metric=metric, **roles(600, by), **options)


def power_plans() -> dict[str, Any]:
    """Plans from data of every kind, and from a value."""
    smallest = functools.partial(planned, fa.minimum_detectable_gap)
    size = functools.partial(planned, fa.sample_size, gap=0.2)
    plan = smallest("tpr", by="age", reference="60+", alternative="greater", power=0.9)
    return {
        "proportion": smallest("tpr"),
        "reference": plan,
        "rows": smallest("auc", by="age"),
        "callable": smallest(callable_metric()),
        "correlation": smallest("pearson", by="years"),
        "weights": smallest("mse", sample_weight=column("weight"), clusters=column("person")),
        "value": fa.minimum_detectable_gap(
            metric="tpr", value=0.8, share=[0.3, 0.2, 0.5], group_sizes=[500, 300, 200]
        ),
        "size": size("tpr"),
        "size of shares": size("f1", group_sizes={"female": 1, "male": 3}, n_comparisons=4),
        "size of a value": fa.sample_size(0.05, metric="selection_rate", value=0.5, power=0.7),
        "curve": plan.curve(gaps=[0.0, 0.1], n_rows=[300, 3_000]),
        "numbers": [float(plan), plan.standard_error, plan.power_at(0.1)],
    }


cases("power", {"plans": power_plans})


def calibrated(metric: Any, by: Any = "sex", n: int = 300, **options: Any) -> Any:
    given = {"n_audits": 20, "n_resamples": 49, "rng": 7, "n_threads": 1, **roles(n, by), **options}
    return fa.calibrate(metric=metric, **given)


cases(
    "calibrate",
    {
        "counts": lambda: calibrated("tpr", gaps=[0.1, -0.2]),
        "counts, three groups": lambda: calibrated("f1", by="age", gaps=[0.1]),
        "own strata": lambda: calibrated("selection_rate", strata=column("branch", 300)),
        "scores": lambda: calibrated("ece"),
        "rows": lambda: calibrated("mean_residual", gaps=[0.1]),
        "auc": lambda: calibrated("auc", gaps=[0.1]),
        "clusters": lambda: calibrated(
            "tpr", clusters=column("person", 300), sample_weight=column("weight", 300), gaps=[0.2]
        ),
        "correlation": lambda: calibrated("residual_pearson", by="years"),
        "callable": lambda: calibrated(callable_metric(), n=100, n_audits=10, n_resamples=19),
    },
)

# -- tables, metrics, p-values -----------------------------------------------------------------


def cells_of_everything() -> dict[str, Any]:
    """Cells, and what can be made of them."""
    rows = frame(120)
    names = {"y_true": "done", "y_pred": "said", "pos_label": "yes"}
    cells = fa.tabulate(rows, sensitive_features=["known", "age"], strata="branch", **names)
    scored = fa.tabulate(
        y_true=column("repaid", 120),
        y_score=column("score", 120),
        sensitive_features=column("sex", 120),
        score_bins=[0.0, 0.25, 0.5, 1.0],
        n_threads=2,
    )
    counted = rows.group_by("age", "repaid", "approved").len("n")
    own = fa.Cells.from_frame(
        counted, sensitive_features="age", y_true="repaid", y_pred="approved", count="n"
    )
    with tempfile.TemporaryDirectory() as folder:
        cells.write_parquet(Path(folder) / "cells.parquet")
        read = fa.Cells.read_parquet(Path(folder) / "cells.parquet")
    kept = cells.marginalize("known")
    return {
        "cells": digest(repr(cells.to_frame().rows())),
        "columns": cells.to_frame().columns,
        "repr": repr(cells),
        "n_rows, n_missing": [cells.n_rows, cells.n_missing],
        "group_sizes": cells.group_sizes(),
        "marginalized": kept.to_frame(),
        "added": repr(kept + kept),
        "read as written": read == cells,
        "scored": scored.to_frame().drop("score_edges"),
        "edges": scored.score_edges,
        "own": own.to_frame(),
        "100 bins": digest(
            fa.tabulate(
                y_score=column("score"), sensitive_features=column("age"), n_threads=1
            ).score_sum
        ),
    }


def adjusted() -> dict[str, Any]:
    pvalues = [0.04, math.nan, 0.001, 0.03, 1.0, 0.03, 0.0]
    return {way: fa.adjust_pvalues(pvalues, way) for way in ("holm", "bh", "none")}


def registry() -> dict[str, Any]:
    """Record the properties and values of every metric of the registry."""
    counts = {"tp": 30, "fp": 7, "fn": 11, "tn": 52}
    chosen = [fa.metrics.get(name) for name in fa.metrics.names()]
    return {
        metric.name: {
            "needs": metric.needs,
            "family": metric.family,
            "variance": metric.variance,
            "range": metric.range,
            "conditions_on": metric.conditions_on,
            "value": metric.evaluate(**counts) if metric.is_counts else None,
        }
        for metric in (*chosen, MISSED, JACCARD, RISK, DECIDED, BOTH, GAP_BY_YEARS)
    }


cases("tables", {"cells": cells_of_everything})
cases("adjust_pvalues", {"every method": adjusted})
cases("metrics", {"registry": registry, "table": lambda: digest(fa.metrics.table())})

# -- the projection test -----------------------------------------------------------------------


def project(by: Any = "sex", n: int = 2_000, **options: Any) -> Any:
    given = {"rng": 7, "n_threads": 2, "n_resamples": 99, **roles(n, by), "y_pred": None}
    return fa.projection_test(**(given | options))


def moved(distance: Any, y_true: Any = None, **options: Any) -> Any:
    """The test of the distances of a model of `people`."""
    _, y, group = people(1_000)
    given = {"notion": "equal_opportunity", "rng": 7, "n_threads": 1, **options}
    return fa.projection_test(y, distance=distance, sensitive_features={"group": group}, **given)


#: A power of two, so that shares of the rows are exact.
N_OWN = 2_048


def parity(with_derivative: bool = True, **options: Any) -> fa.Notion:
    """Statistical parity of two halves, one of which holds the old, as a notion of our own."""
    first = np.zeros(N_OWN)
    first[np.argsort(column("age", N_OWN), kind="stable")[N_OWN // 2 :]] = 1.0

    def phi(u: Any, mean: Any) -> Any:
        return u[:, :1] / mean[0] - u[:, 1:] / mean[1]

    def derivative(u: Any, mean: Any) -> Any:
        return np.stack([-u[:, 0] / mean[0] ** 2, u[:, 1] / mean[1] ** 2], axis=1)[:, None, :]

    statistics = np.stack([first, 1 - first], axis=1)
    return fa.Notion(phi, statistics, derivative if with_derivative else None, **options)


def two_criteria() -> fa.Notion:
    """The decisions are unrelated to a number and to a group."""
    years = (column("years", N_OWN) - 54) / 64
    group = np.where(column("sex", N_OWN) == "female", 0.5, -0.5)
    return fa.Notion(np.stack([years, group], axis=1), names=["years", "sex"], name="unrelated")


def own_notion(notion: fa.Notion, **options: Any) -> Any:
    given = {"y_score": column("score", N_OWN), "rng": 7, "n_threads": 1, **options}
    return fa.projection_test(notion=notion, **given)


NOTIONS = ("statistical_parity", "equal_opportunity", "predictive_equality", "equalized_odds")
#: Their results are written out ...
PROJECTIONS: dict[str, Callable[[], Any]] = {
    **{notion: functools.partial(project, notion=notion) for notion in NOTIONS},
    "epsilon": lambda: project(notion="equalized_odds", epsilon=[0.01, 0.02]),
    "less, epsilon": lambda: project(alternative="less", epsilon=0.01, bandwidth=0.1),
    "three groups, reference, epsilon": lambda: project(
        by="age", reference="30-59", epsilon=0.02, notion="statistical_parity"
    ),
    "missing groups, text labels": lambda: project(
        by="known",
        y_true=column("done", 2_000),
        y_score=None,
        y_pred=column("said", 2_000),
        pos_label="yes",
        distance=column("score", 2_000),
    ),
    "inconclusive": lambda: project(y_score=column("grade", 2_000)),
    "nothing can move": lambda: project(
        y_score=None, y_pred=column("approved", 2_000), distance=np.full(2_000, np.inf)
    ),
    "permutation": lambda: project(calibration="permutation"),
    "separate": lambda: project(
        by=("sex", "age"), attributes="separate", notion="statistical_parity"
    ),
    "own notion": lambda: own_notion(parity()),
    "own notion, two criteria": lambda: own_notion(two_criteria()),
    "own notion, permutation": lambda: own_notion(
        parity(strata=column("branch", N_OWN)), calibration="permutation", n_resamples=29
    ),
}
#: ... and of these the main numbers.
MORE_PROJECTIONS: dict[str, Callable[[], Any]] = {
    "weights": lambda: project(sample_weight=column("weight", 2_000)),
    "greater": lambda: project(alternative="greater", threshold=0.6),
    "three groups": lambda: project(by="age"),
    "groups": lambda: project(by="age", groups=["60+", "18-29"], confidence_level=0.9),
    "intersections": lambda: project(by=("sex", "age"), notion="statistical_parity"),
    "names of columns": lambda: fa.projection_test(
        "repaid", y_score="score", sensitive_features="sex", data=frame(), rng=1
    ),
    "permutation, three groups": lambda: project(
        by="age", notion="equalized_odds", calibration="permutation", n_threads=1
    ),
    "permutation of atoms": lambda: project(
        y_score=column("grade", 2_000), calibration="permutation"
    ),
    "separate, reference, epsilon": lambda: project(
        by=("sex", "age"),
        attributes="separate",
        reference={"age": "60+", "sex": "male"},
        epsilon=0.01,
    ),
    "separate, permutation": lambda: project(
        by=("sex", "branch"), attributes="separate", calibration="permutation", n_resamples=29
    ),
    "own notion, no derivative": lambda: own_notion(parity(with_derivative=False)),
    "own notion, epsilon": lambda: own_notion(parity(), epsilon=0.01, alternative="greater"),
    "own notion, permutation, scaled": lambda: own_notion(
        two_criteria(), calibration="permutation", n_resamples=19
    ),
}


def core_of(call: Callable[[], Any]) -> dict[str, Any]:
    """Return the part of a projection that no BLAS takes part in: who moves, and replicates."""
    result = call()
    moves = [getattr(result.moves, name) for name in MOVES if name != "x"]
    found = {"statistic": result.statistic, "moves": digest(*moves), "rows": len(result.moves)}
    if result.n_resamples:
        found |= {"null": digest(result.null_distribution), "pvalue": result.pvalue}
    return found


cases("projection", PROJECTIONS, tolerance=1e-12)
cases("projection", MORE_PROJECTIONS, tolerance=1e-12, brief=True)
cases(
    "projection, who moves",
    {
        name: functools.partial(core_of, call)
        for name, call in (PROJECTIONS | MORE_PROJECTIONS).items()
        if not name.startswith(("own notion", "separate"))
    },
)

# -- models ------------------------------------------------------------------------------------


@functools.cache
def people(n: int = 300) -> tuple[Any, Any, Any]:
    """Features, labels, and a group that the features tell of."""
    rng = np.random.default_rng(21)
    group = rng.random(n) < 0.4
    X = rng.normal(size=(n, 4)) + group[:, None] * np.array([1.0, 0.5, 0.0, -0.5])
    noise = rng.normal(size=n)
    y = (X[:, 0] + X[:, 1] - 0.5 * X[:, 2] + noise > 0).astype(int)
    return X, y, np.where(group, "a", "b")


#: Products of these are exact, in whatever order they are added up.
COEF = [2.0, 1.0, -0.5, 0.25]


def linear_model(**options: Any) -> fa.LinearModel:
    return fa.LinearModel(COEF, 0.125, **options)


def kernel_model(kernel: str = "rbf", **options: Any) -> fa.KernelModel:
    rng = np.random.default_rng(22)
    points, dual = rng.normal(size=(20, 4)), rng.normal(size=20)
    given = {"gamma": 0.25, "degree": 2, "coef0": 1.0, **options}
    return fa.KernelModel(points, dual, 0.25, kernel, **given)


def network(n_outputs: int = 1) -> Any:
    """A torch module in double precision."""
    import torch

    module = torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, n_outputs)
    ).double()
    rng = np.random.default_rng(23)
    with torch.no_grad():
        for tensor in module.parameters():
            tensor.copy_(torch.from_numpy(rng.normal(size=tuple(tensor.shape))))
    return module


def logistic_regression(n_classes: int = 2) -> Any:
    """A fitted estimator of scikit-learn whose coefficients are known."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression()
    model.classes_ = np.array(["bad", "good", "other"][:n_classes])
    coef = np.array([COEF, [0.5, -1.0, 0.0, 2.0], [-1.0, 0.5, 1.0, 0.0]])
    model.coef_ = coef[:1] if n_classes == 2 else coef
    model.intercept_ = np.array([0.125, -0.25, 0.0])[: len(model.coef_)]
    return model


def distances_of(model: Any, *options: dict[str, Any]) -> list[Any]:
    """Distances of a model, and where three rows would move."""
    X = people()[0]
    found = [model.distance(X, **chosen) for chosen in options or ({},)]
    return [
        {
            "repr": repr(d),
            "values": d.values,
            "signed": d.signed,
            "moved": d.moved([0, 5, 7]),
            "upper_bound": d.upper_bound,
            "n_not_found": d.n_not_found,
        }
        for d in found
    ]


def scores_of(model: Any) -> dict[str, Any]:
    X = people()[0]
    return {
        "repr": repr(model),
        "score": model.decision_function(X),
        "probability": model.predict_proba(X),
        "decided": digest(model.decision(X)),
    }


def with_member() -> Any:
    """The features, the last of which is 0 or 1."""
    X = people(1_000)[0].copy()
    X[:, 3] = X[:, 3] > 0
    return X


cases(
    "models",
    {
        "score_distance": lambda: distances_of_scores(),
        "linear, scores": lambda: scores_of(linear_model()),
        "linear": lambda: distances_of(
            linear_model(threshold=0.75),
            *({"norm": norm} for norm in ("l1", "l2", "linf")),
            {"norm": "mahalanobis", "covariance": np.diag([1.0, 2.0, 4.0, 0.5])},
            {"immovable": [0, 3]},
            {"discrete": [3], "discrete_cost": 0.5},
        ),
        "kernels": lambda: [
            [distances_of(kernel_model(kernel)), kernel_model(kernel).norm]
            for kernel in ("rbf", "polynomial", "linear")
        ],
        "kernel, scores": lambda: scores_of(kernel_model(link="logit", threshold=0.5)),
        "multiclass": lambda: [
            scores_of(model) for model in (multiclass("linear"), multiclass("kernel"))
        ],
    },
    tolerance=1e-12,
)
cases(
    "models",
    {
        "torch, scores": lambda: scores_of(fa.TorchModel(network(), 0.6)),
        "torch": lambda: distances_of(
            fa.TorchModel(network()), *({"norm": norm} for norm in ("l1", "l2", "linf"))
        ),
        "multiclass of torch": lambda: scores_of(multiclass("network")),
    },
    tolerance=1e-12,
    needs=("torch",),
)
cases(
    "models",
    {
        "adapt": lambda: [
            scores_of(fa.models.adapt(logistic_regression(), 0.25)),
            fa.models.from_sklearn(logistic_regression()).classes,
        ]
    },
    tolerance=1e-12,
    needs=("sklearn",),
)
cases(
    "projection of a model",
    {"linear": lambda: moved(linear_model().distance(people(1_000)[0], "l1"))},
    tolerance=1e-12,
)
cases(
    "projection of a model",
    {
        "linear, discrete": lambda: moved(
            linear_model().distance(with_member(), discrete=[3], discrete_cost=0.25),
            notion="statistical_parity",
        ),
        "kernel": lambda: moved(kernel_model().distance(people(1_000)[0])),
    },
    tolerance=1e-12,
    brief=True,
)
cases(
    "projection of a model",
    {"torch": lambda: moved(fa.TorchModel(network()).distance(people(1_000)[0]))},
    tolerance=1e-12,
    needs=("torch",),
    brief=True,
)


def distances_of_scores() -> list[Any]:
    found = fa.models.score_distance(column("score"), 0.625)
    return [repr(found), found.values, found.signed, found.moved([0])]


def multiclass(kind: str) -> fa.MulticlassModel:
    classes = {"classes": ["low", "mid", "high"]}
    if kind == "linear":
        coef = [COEF, [0.5, -1.0, 0.0, 2.0], [-1.0, 0.5, 1.0, 0.0]]
        return fa.MulticlassModel.linear(coef, [0.0, 0.25, -0.5], **classes)
    if kind == "network":
        return fa.MulticlassModel.network(network(3), 3, **classes)
    rng = np.random.default_rng(24)
    points, dual = rng.normal(size=(20, 4)), rng.normal(size=(3, 20))
    return fa.MulticlassModel.kernel(points, dual, 0.0, "rbf", 0.25, **classes)


# -- the individual test -----------------------------------------------------------------------


def free_direction() -> fa.FairMetric:
    """The second feature costs nothing; there is nothing to round."""
    return fa.FairMetric.directions([[0.0, 1.0, 0.0, 0.0]])


def fitted_metric(**options: Any) -> fa.FairMetric:
    X, _, group = people()
    return fa.FairMetric.subspace(X, {"group": group}, **options)


def attack(model: Any = None, metric: Any = None, y: Any = None, **options: Any) -> Any:
    X, labels, _ = people()
    given = {"penalty": 8.0, "n_steps": 40, "step_size": 0.03125, "path_points": 5, **options}
    return fa.individual_test(
        linear_model() if model is None else model,
        X,
        labels if y is None else y,
        fair_metric=free_direction() if metric is None else metric,
        **{"rng": 7, "n_threads": 2, "n_resamples": 99, **given},
    )


def three_classes() -> Any:
    X = people()[0]
    return np.array(["low", "mid", "high"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]


def margin_model() -> fa.LinearModel:
    return linear_model(threshold=0.0)


def examples() -> dict[str, Any]:
    """The unfair examples of a test of named features."""
    X, y, _ = people()
    names = ["age", "income", "debt", "visits"]
    rows = pl.DataFrame(X, schema=names)
    result = fa.individual_test(
        linear_model(feature_names=names),
        rows.select(reversed(names)),
        y,
        fair_metric=free_direction(),
        n_steps=40,
        penalty=8.0,
        rng=7,
    )
    found = result.unfair_examples(3)
    return {
        "frame": found.to_frame(),
        "moved": found.moved_features(2),
        "repr": repr(found),
        "attacked": result.attacked,
        "ratios": digest(result.plot("ratios").spec),
    }


def metrics_of_people() -> dict[str, Any]:
    """Every kind of fair metric."""
    X, _, group = people()
    root = np.random.default_rng(25).normal(size=(4, 4))
    third = np.resize(["x", "y", "z"], len(X))
    rows = pl.DataFrame(X, schema=["age", "sex_f", "sex_m", "visits"])
    made = {
        "directions": fa.FairMetric.directions([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 2.0]]),
        "subspace": fitted_metric(),
        "subspace, standardized": fitted_metric(standardize=True, C=0.5),
        "subspace, some rows": fitted_metric(fit_on=np.arange(150)),
        "subspace, three values": fa.FairMetric.subspace(X, third),
        "subspace, numbers": fa.FairMetric.subspace(X, X[:, 0] * 2 + X[:, 3]),
        "subspace, features": fa.FairMetric.subspace(rows, {"g": group}, features="sex"),
        "subspace, given": fa.FairMetric.subspace(X, given=[[1.0, 0.0, 0.0, 1.0]]),
        "mahalanobis": fa.FairMetric.mahalanobis(root @ root.T + np.eye(4)),
        "matrix": fa.FairMetric.matrix(root[:, :2] @ root[:, :2].T),
    }
    return {
        name: {
            "repr": repr(metric),
            "D": metric.D.round(9).ravel().tolist(),
            "units": metric.units,
            "rank": metric.rank,
            "largest_eigenvalue": metric.largest_eigenvalue,
            "distance": metric.squared_distance(X[:3], X[3:6]),
            "names": metric.feature_names,
        }
        for name, metric in made.items()
    }


cases(
    "individual",
    {
        "euler": lambda: attack(),
        "bootstrap-t": lambda: attack(interval="bootstrap-t"),
        "error rate": lambda: attack(ratio="error_rate"),
        "smooth hinge, paper": lambda: attack(margin_model(), loss="smooth_hinge", compat="paper"),
        "too long steps": lambda: attack(penalty=20.0, step_size=0.0625),
    },
)
cases(
    "individual",
    {
        "heun": lambda: attack(solver="heun", step_decay=0.5),
        "rk4": lambda: attack(solver="rk4", n_threads=1),
        "log interval": lambda: attack(interval="log", delta=1.1, confidence_level=0.9),
        "error rate, log": lambda: attack(ratio="error_rate", interval="log"),
        "error rate, bootstrap-t": lambda: attack(ratio="error_rate", interval="bootstrap-t"),
        "smooth hinge": lambda: attack(margin_model(), loss="smooth_hinge", loss_floor=0.01),
        "softplus hinge": lambda: attack(margin_model(), loss="softplus_hinge", solver="heun"),
        "squared": lambda: attack(margin_model(), loss="squared", penalty=2.0),
        "text labels": lambda: attack(
            y=np.where(people()[1] == 1, "good", "bad"), pos_label="good"
        ),
    },
    brief=True,
)
cases(
    "individual",
    {
        "subspace": lambda: attack(metric=fitted_metric()),
        "refitted metric": lambda: attack(
            metric=fitted_metric(), refit_metric=True, interval="bootstrap-t", n_resamples=9
        ),
        "rbf kernel": lambda: attack(
            kernel_model(link="logit", threshold=0.5), metric=fitted_metric(standardize=True)
        ),
        "multiclass": lambda: attack(multiclass("linear"), y=three_classes()),
        "unfair examples": examples,
        "fair metrics": metrics_of_people,
    },
    tolerance=1e-12,
)
cases(
    "individual",
    {
        "mahalanobis": lambda: attack(metric=fa.FairMetric.mahalanobis(np.cov(people()[0].T))),
        "polynomial kernel, squared": lambda: attack(
            kernel_model("polynomial", gamma=0.0625), loss="squared", penalty=30.0, solver="rk4"
        ),
        "linear kernel, softplus hinge": lambda: attack(
            kernel_model("linear"), loss="softplus_hinge", ratio="error_rate"
        ),
        "multiclass of kernels": lambda: attack(
            multiclass("kernel"), y=three_classes(), ratio="error_rate"
        ),
    },
    tolerance=1e-12,
    brief=True,
)
cases(
    "individual",
    {
        "torch, heun": lambda: attack(fa.TorchModel(network()), solver="heun"),
        "torch, rk4": lambda: attack(fa.TorchModel(network()), solver="rk4"),
        "torch, softplus hinge": lambda: attack(
            fa.TorchModel(network(), 0.0), loss="softplus_hinge", batch_size=100
        ),
        "multiclass of torch": lambda: attack(multiclass("network"), y=three_classes()),
    },
    tolerance=1e-12,
    needs=("torch",),
    brief=True,
)
cases(
    "individual",
    {"torch, euler": lambda: attack(fa.TorchModel(network()))},
    tolerance=1e-12,
    needs=("torch",),
)
cases(
    "individual",
    {
        "sklearn": lambda: attack(
            logistic_regression(), y=np.where(people()[1] == 1, "good", "bad")
        ),
        "sklearn, multiclass": lambda: attack(
            logistic_regression(3), y=np.array(["bad", "good", "other"])[people()[1]]
        ),
    },
    tolerance=1e-12,
    needs=("sklearn",),
    brief=True,
)

# -- the command line --------------------------------------------------------------------------


def command(*arguments: Any, parsed: str = "") -> dict[str, Any]:
    """Record the printed lines of a command; {data} is a file, {out} a folder that is read.

    Files that it writes are hashed, but for the JSON file named by `parsed`.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "out").mkdir()
        frame().write_csv(place / "data.csv")
        filled = [str(a).format(data=place / "data.csv", out=place / "out") for a in arguments]
        done = CliRunner().invoke(main, filled, terminal_width=80)
        written = {file.name: file.read_text() for file in sorted((place / "out").iterdir())}
    return {
        "exit_code": done.exit_code,
        "stdout": done.stdout.splitlines(),
        "stderr": done.stderr.splitlines(),
        "files": {
            name: json.loads(text) if name == parsed else digest(text)
            for name, text in written.items()
        },
    }


CREDIT = ("{data}", "--y-true", "repaid", "--seed", "3", "--threads", "1")
COMMANDS = ("demo", "metrics", "permutation", "projection", "calibrate")
cases(
    "command line",
    {
        "help": lambda: command("--help"),
        **{f"help of {name}": functools.partial(command, name, "-h") for name in COMMANDS},
        "version": lambda: command("--version"),
        "metrics": lambda: command("metrics"),
        "metrics as json": lambda: digest(command("metrics", "--json")),
        "permutation": lambda: command(
            *("permutation", *CREDIT, "-m", "tpr", "-m", "f1", "-s", "age", "--y-pred"),
            *("approved", "--n-resamples", "199", "--json", "{out}/results.json"),
        ),
        "permutation, options": lambda: command(
            *("permutation", *CREDIT, "-m", "ppv", "-s", "sex", "--y-pred", "approved"),
            *("--strata", "branch", "--reference", "female", "--n-resamples", "99"),
        ),
        "calibrate": lambda: command(
            *("calibrate", *CREDIT, "-m", "tpr", "-s", "sex", "--y-pred", "approved", "--gap"),
            *("0.2", "--n-audits", "20", "--n-resamples", "49", "--json", "{out}/report.json"),
        ),
        "demo": lambda: command("demo", "--rows", "400", "--seed", "4"),
        "wrong option": lambda: command("permutation", *CREDIT, "-m", "tpr", "--bogus"),
        "wrong metric": lambda: command("permutation", *CREDIT, "-m", "tqr", "-s", "sex"),
        "wrong column": lambda: command(
            "permutation", *CREDIT, "-m", "tpr", "-s", "nope", "--y-pred", "approved"
        ),
        "missing role": lambda: command("calibrate", *CREDIT, "-m", "tpr", "-s", "sex"),
        "wrong directory": lambda: command(
            *("calibrate", *CREDIT, "-m", "tpr", "-s", "sex", "--y-pred", "approved"),
            *("--json", "nowhere/report.json"),
        ),
    },
)
cases(
    "command line",
    {
        "projection": lambda: command(
            *("projection", *CREDIT, "-s", "sex", "--y-score", "score", "--json"),
            *("{out}/result.json", "--moves", "{out}/moves.csv", "--plot", "{out}/plot.json"),
            parsed="result.json",
        )
    },
    tolerance=1e-12,
)

# -- signatures --------------------------------------------------------------------------------


def signatures() -> dict[str, Any]:
    """Public names, their parameters and the fields of results; not their annotations."""
    modules = {"fa": fa, **{f"fa.{name}": getattr(fa, name) for name in MODULES}}
    found: dict[str, Any] = {
        f"{name}.__all__": sorted(module.__all__) for name, module in modules.items()
    }
    for name, module in modules.items():
        for entry in module.__all__:
            found |= described(f"{name}.{entry}", getattr(module, entry))
    results, parts = results_and_parts()
    for part in parts:
        kind = of_class(type(part))
        # Readers meet them in results and never make one.
        del kind["made from"]
        found[f"(part of a result) {type(part).__name__}"] = kind
    for result in results:
        found[f"(table) {type(result).__name__}"] = result.to_frame().columns
    return found


MODULES = ("metrics", "models", "datasets", "errors")


def described(name: str, entry: Any) -> dict[str, Any]:
    if inspect.isclass(entry):
        return {name: of_class(entry)}
    return {name: parameters(entry)} if callable(entry) else {}


def parameters(function: Any) -> str:
    """Return names, kinds and defaults of parameters; those that begin with _ are not public."""
    signature = inspect.signature(function)
    kept = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if not parameter.name.startswith("_")
    ]
    return str(signature.replace(parameters=kept, return_annotation=inspect.Signature.empty))


def of_class(kind: type) -> dict[str, Any]:
    """Return what a class is made from, and what its instances offer."""
    if issubclass(kind, Exception):
        bases = [base.__name__ for base in kind.__mro__ if base not in (BaseException, object)]
        own = "__init__" in vars(kind)
        return {"bases": bases, **({"made from": parameters(kind)} if own else {})}
    found: dict[str, Any] = {"made from": parameters(kind)}
    if dataclasses.is_dataclass(kind):
        names = [entry.name for entry in dataclasses.fields(kind)]
        found["fields"] = [name for name in names if not name.startswith("_")]
    members = [name for name in dir(kind) if not name.startswith("_")]
    offered = {name: inspect.getattr_static(kind, name) for name in members}
    found["methods"] = {
        name: parameters(getattr(kind, name))
        for name, member in offered.items()
        if inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)
    }
    found["properties"] = [
        name
        for name, member in offered.items()
        if isinstance(member, property | functools.cached_property)
    ]
    return found


def results_and_parts() -> tuple[list[Any], list[Any]]:
    """Return a result of every kind, and parts whose classes are not public by themselves."""
    permutation, interval = permute("tpr", n=200), interval_of("tpr", n=200)
    equivalence, calibration = equivalence_of("tpr", 0.1), calibrated("tpr", n_audits=10)
    projection, individual = project(n=600), attack(n_steps=5)
    examples = individual.unfair_examples(1)
    parts = [
        permutation.values[0],
        permutation.comparisons[0],
        interval.largest_gap,
        equivalence.comparisons[0],
        calibration.false_alarms,
        projection.criteria[0],
        projection.moves,
        projection.moved[0],
        projection.plot(),
        individual.path,
        examples,
    ]
    results = [permutation, interval, equivalence, calibration, projection, individual]
    return [*results, projection.moves, examples], parts


# -- comparing and writing ---------------------------------------------------------------------


def differences(expected: Any, found: Any, tolerance: float = 0.0, key: str = "") -> list[str]:
    """Return a line for each key whose value is no longer the expected one."""
    if isinstance(expected, dict) and isinstance(found, dict):
        lines = [f"{key}.{name} is gone" for name in expected if name not in found]
        lines += [f"{key}.{name} is new" for name in found if name not in expected]
        for name in expected:
            if name in found:
                lines += differences(expected[name], found[name], tolerance, f"{key}.{name}")
        return lines
    if isinstance(expected, list) and isinstance(found, list):
        lines = []
        if len(expected) != len(found):
            lines.append(f"{key} had {len(expected)} entries and has {len(found)}")
        for i, pair in enumerate(zip(expected, found, strict=False)):
            lines += differences(*pair, tolerance, f"{key}[{i}]")
        return lines
    if isinstance(expected, float) and isinstance(found, float) and tolerance:
        # These two are what rounding has left of 0.
        noise = 1e-9 if key.endswith(("duality_gap", "residual")) else 0.0
        same = math.isclose(expected, found, rel_tol=tolerance, abs_tol=noise)
    else:
        same = json.dumps(expected) == json.dumps(found)
    return [] if same else [f"{key} was {expected!r} and is {found!r}"]


def read() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


def text_of(value: Any, depth: int = 0) -> str:
    """Return JSON, sorted and indented by 1; what fits on a line is on one line."""
    flat = json.dumps(value, sort_keys=True, allow_nan=False)
    if not isinstance(value, dict | list) or depth + len(flat) <= WIDTH:
        return flat
    if isinstance(value, dict):
        opening, closing = "{", "}"
        lines = [f"{json.dumps(k)}: {text_of(v, depth + 1)}" for k, v in sorted(value.items())]
    else:
        opening, closing = "[", "]"
        lines = [text_of(entry, depth + 1) for entry in value]
    inner = "".join(f"\n{' ' * (depth + 1)}{line}," for line in lines).removesuffix(",")
    return f"{opening}{inner}\n{' ' * depth}{closing}"


def write() -> None:
    """Store what calls give now; what a test would not tell from the stored one stays."""
    stored = read()["cases"]
    found = {name: case.result() for name, case in CASES.items()}
    for name, case in CASES.items():
        if name in stored and not differences(stored[name], found[name], case.tolerance):
            found[name] = stored[name]
    content = {"cases": found, "signatures": signatures()}
    FILE.write_text(text_of(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.golden --write")
    write()
