"""Public functions with small arguments that fit, and then some that do not."""

import functools
import inspect
import json
import math

import numpy as np
import polars as pl

import fairaudit_rs as fa
from fairaudit_rs.results.result import Result

from . import objects, values

#: Arguments that are a column of rows, where data are given.
COLUMNS = {
    *("y_true", "y_pred", "y_score", "sensitive_features", "strata", "clusters", "sample_weight"),
    *("counterfactual_score", "distance", "score", "values", "blocks", "pvalues", "data", "X", "y"),
    *("counts", "p_group", "attribute", "real", "generated", "frame", "test", "first", "second"),
    *("gaps", "group_sizes", "share", "basis", "matrix", "coefficients", "points", "score_bins"),
}
#: Arguments that cost much when they are large but accepted: odd values do, sizes do not.
SIZES = ("n_resamples", "n_audits", "n_draws", "n_steps", "n_settings", "n_rows", "n", "max_steps")


def words(r):
    """Words of options that fit often enough."""
    metric = r.choice((*fa.metrics.names(), "selection_rate", "tpr", "auc", "calibration_error"))
    return {
        "metric": metric,
        "alternative": r.choice(("two-sided", "greater", "less")),
        "studentize": r.choice(("auto", "auto", "pooled", "unpooled", "corrected", "none")),
        "adjust": r.choice(("holm", "max-t", "bonferroni", "bh", "none")),
        "engine": r.choice(("auto", "auto", "exact", "cells", "rows")),
        "interval": r.choice(("auto", "auto", "studentized", "delta", "inversion")),
        "method": r.choice(("auto", "auto", "studentized", "delta", "inversion", "mover")),
        "notion": r.choice(("equal_opportunity", "statistical_parity", "equalized_odds")),
        "calibration": r.choice(("asymptotic", "permutation")),
        "attributes": r.choice(("crossed", "separate")),
        "scale": r.choice(("difference", "ratio")),
        "null": r.choice(("shuffle", "weak")),
        "ratio": r.choice(("loss", "error")),
        "solver": r.choice(("euler", "adaptive")),
        "goal": r.choice(("difference", "equivalence")),
    }


class Rows:
    """Small columns of one length: fitting ones, and extreme ones of the right kind."""

    def __init__(self, r):
        self.r, self.n = r, r.choice((1, 2, 3, 4, 8, 20, 40, 60))
        self.rng = np.random.default_rng(r.getrandbits(32))

    def of(self, name):
        """A column for an argument."""
        r, n, rng = self.r, self.n, self.rng
        if name in ("y_true", "y_pred", "y"):
            return rng.integers(0, 2, n)
        if name in ("y_score", "score", "distance", "values"):
            scale = r.choice((1.0, 1.0, 1.0, 1.0, 1e-300, 1e150))
            return scale * r.choice((rng.random(n), rng.integers(0, 4, n) / 4.0))
        if name == "counterfactual_score":
            return rng.random(n)
        if name == "sample_weight":
            return r.choice((1.0, 1.0, 1e-120, 1e76)) * rng.choice([0.0, 0.5, 1.0, 3.0], n)
        if name == "strata":
            return rng.integers(0, r.choice((1, 2, n + 1)), n)
        if name == "clusters":
            return np.arange(n) // r.choice((1, 2, n + 1))
        if name == "X":
            return rng.normal(size=(n, 2)).round(r.choice((0, 3)))
        groups = rng.integers(0, r.choice((1, 2, 2, 2, 3, n + 1)), n)
        if r.random() < 0.3:
            return {"g": groups, "h": rng.integers(0, 2, n)}
        return r.choice((groups, np.array(["a", "b", "\x1b[1m"])[groups % 3]))

    def data(self):
        """Return the arguments most functions take, sometimes with weights, clusters and strata."""
        names = ["y_true", "y_pred", "y_score", "sensitive_features"]
        names += [
            name for name in ("sample_weight", "strata", "clusters") if self.r.random() < 0.12
        ]
        return {name: self.of(name) for name in names}

    def linear(self):
        return fa.LinearModel(self.rng.normal(size=2), link=self.r.choice(("logit", "identity")))

    def kernel(self):
        kind = self.r.choice(("rbf", "polynomial", "linear"))
        return fa.KernelModel(self.rng.normal(size=(3, 2)), self.rng.normal(size=3), kernel=kind)

    def model(self):
        return self.r.choice((self.linear, self.kernel))()

    def fair_metric(self):
        return fa.FairMetric.directions([[1.0, self.r.choice((0.0, 1.0))]])


def _few(r):
    return {
        "n_resamples": r.choice((1, 9, 19)),
        "rng": r.randrange(99),
        "n_threads": r.choice((None, 1, 2)),
        "confidence_level": r.choice((0.95, 0.5, 1e-12, 1 - 2**-53)),
    }


def _lens(name, *options, **fixed):
    def make(r, rows):
        function = getattr(fa, name)
        known = inspect.signature(function).parameters
        given = {**rows.data(), **_few(r), "metric": "tpr", **fixed}
        said = words(r)
        given |= {option: said[option] for option in ("metric", *options) if r.random() < 0.5}
        return function, {entry: value for entry, value in given.items() if entry in known}

    return make


def _cells(r, rows):
    return fa.tabulate(
        y_true=rows.of("y_true"), y_pred=rows.of("y_pred"), sensitive_features=rows.of("g")
    )


def _individual(r, rows):
    given = {"model": rows.model(), "X": rows.of("X"), "y": rows.of("y"), "n_steps": 5}
    given |= {"fair_metric": rows.fair_metric(), **_few(r)}
    given |= {name: words(r)[name] for name in ("ratio", "solver") if r.random() < 0.3}
    if r.random() < 0.2:
        given["sample_weight"] = rows.of("sample_weight")
    return fa.individual_test, given


def _influence(r, rows):
    given = {**rows.data(), **_few(r), "X": {"a": rows.of("y"), "b": rows.of("score")}}
    given |= {"target": r.choice((0, 1, "a")), "n_draws": 9, "metric": words(r)["metric"]}
    given.pop("strata", None)
    given.pop("n_resamples")
    return fa.influence_audit, given


def _extreme(r, rows):
    given = {name: rows.of(name) for name in ("y_score", "counterfactual_score", "g")}
    given["sensitive_features"] = given.pop("g")
    return fa.extreme_test, {**given, **_few(r), "n_exceedances": r.choice(("auto", 15, 20))}


def _fit_tail(r, rows):
    many = rows.rng.standard_exponential(r.choice((10, 100, 400)))
    return fa.fit_tail, {"values": many, "n_threads": 1, "method": r.choice(("gpd", "gev"))}


def _tail(r, rows):
    tail = fa.fit_tail(rows.rng.standard_exponential(400), n_exceedances=60)
    name = r.choice(("return_level", "lower_free", "level", "quantiles", "feasibility"))
    method = getattr(tail, name)
    return method, dict.fromkeys(list(inspect.signature(method).parameters)[:1], 1_000)


def _plan(name):
    def make(r, rows):
        function = getattr(fa, name)
        given = {"metric": words(r)["metric"], "value": r.choice((0.5, 0.0, 1.0, 1e-9))}
        given |= {"power": 0.8, "goal": words(r)["goal"], "share": r.choice((1.0, 0.1, [1, 2]))}
        if name == "sample_size":
            return function, {"gap": r.choice((0.1, 0.5, 1e-6)), **given}
        return function, {
            **given,
            "group_sizes": r.choice(([30, 40], [1, 1], {"a": 9, "b": 10**9})),
        }

    return make


def _fair_metric(r, rows):
    wide = rows.rng.normal(size=(rows.n, 2))
    of_one = {
        "directions": lambda: {"basis": [[1.0, 0.0]]},
        "mahalanobis": lambda: {"covariance": np.eye(2)},
        "subspace": lambda: {"X": wide, "attributes": rows.of("y")},
    }
    name = r.choice(list(of_one))
    method = getattr(fa.FairMetric, name)
    known = [parameter for parameter in inspect.signature(method).parameters if parameter != "self"]
    given = dict(zip(known, of_one[name]().values(), strict=False))
    return method, given


def _model(r, rows):
    model = rows.model()
    name = r.choice(("predict_proba", "decision", "decision_function", "distance"))
    method = getattr(model, name)
    return method, {next(iter(inspect.signature(method).parameters)): rows.of("X")}


def _model_of_arrays(r, rows):
    if r.random() < 0.5:
        return fa.LinearModel, {"coefficients": rows.rng.normal(size=2), "intercept": 0.5}
    return fa.KernelModel, {"points": rows.of("X"), "weights": rows.rng.normal(size=rows.n)}


def _generator(r, rows):
    kind = r.choice((fa.SmoothedBootstrap, fa.GaussianCopula))
    made = kind()
    if r.random() < 0.5:
        return made.fit, {"X": {"a": rows.of("y"), "b": rows.of("values")}, "rng": 1}
    made.fit({"a": rows.of("y"), "b": rows.rng.random(rows.n)})
    return made.sample, {"n": 3, "rng": 1}


def _quality(r, rows):
    real = {"a": rows.of("y"), "b": rows.rng.random(rows.n)}
    return fa.generator_quality, {"real": real, "generated": real, "n_folds": 2, "rng": 1}


def _search(r, rows):
    def train(model, X, y, settings):
        return fa.LinearModel([settings["w"], 1.0])

    X = np.column_stack([rows.of("y"), rows.rng.random(rows.n)])
    given = {"estimator": dict, "X": X, "y": rows.of("y"), "attribute": 0, "train": train}
    return fa.ecd_search, {**given, "space": {"w": (0.1, 2.0)}, "n_settings": 2, "rng": 1}


def _frame_of_cells(r, rows):
    frame = pl.DataFrame(
        {
            "g": rows.rng.integers(0, 2, rows.n),
            "y": rows.of("y"),
            "p": rows.of("y"),
            "count": rows.rng.integers(0, 9, rows.n),
        }
    )
    given = {"frame": frame, "sensitive_features": "g", "y_true": "y", "y_pred": "p"}
    known = inspect.signature(fa.Cells.from_frame).parameters
    return fa.Cells.from_frame, {name: value for name, value in given.items() if name in known}


def _by_cells(r, rows):
    cells = _cells(r, rows)
    function = r.choice((fa.permutation_test, fa.intervals))
    return function, {"data": cells, "metric": words(r)["metric"], **_few(r)}


def _by_frame(r, rows):
    data = rows.data()
    data.pop("sensitive_features")
    table = {**data, "g": rows.rng.integers(0, 2, rows.n)}
    if r.random() < 0.4:
        table[r.choice(list(table))] = values.column(r, rows.n)
    try:
        frame = r.choice((pl.DataFrame, dict))(table)
    except Exception:  # polars does not take every column
        frame = table
    given = {"data": frame, "metric": words(r)["metric"], "sensitive_features": "g", **_few(r)}
    return fa.permutation_test, given | {name: name for name in data}


def _metric(r, rows):
    function = r.choice(
        (
            fa.metrics.callable_metric,
            fa.metrics.correlation_metric,
            fa.metrics.joint_metric,
            fa.metrics.ratio_metric,
            fa.metrics.get,
        )
    )
    known = inspect.signature(function).parameters
    given = {
        "name": "x",
        "metric": "tpr",
        "function": lambda y, v, w: float(np.mean(v)),
        "value": "y_score",
        "numerator": lambda columns: columns["y_score"],
        "components": ["tpr", "fpr"],
    }
    return function, {name: value for name, value in given.items() if name in known}


def _own_metric(r, rows):
    """A metric of a function that answers with anything."""
    answer = values.scalar(r)
    metric = r.choice(
        (
            lambda: fa.metrics.callable_metric("x", lambda y, v, w: answer, n_samples=2),
            lambda: fa.metrics.ratio_metric("x", lambda columns: answer),
            lambda: fa.metrics.ratio_metric("x", lambda columns: values.column(r, rows.n)),
            lambda: fa.metrics.correlation_metric("x", lambda columns: values.column(r, rows.n)),
        )
    )()
    return fa.permutation_test, {**rows.data(), **_few(r), "metric": metric}


def _chained(r, rows):
    """List what results offer."""
    function, given = r.choice((_lens("permutation_test"), _projection, _influence))(r, rows)
    result = function(**given)
    methods = [
        getattr(result, name)
        for name in ("plot", "descend", "repair", "unfair_examples", "to_frame")
        if hasattr(result, name)
    ]
    method = r.choice(methods)
    known = inspect.signature(method).parameters
    return method, {
        name: value for name, value in {"tolerance": 0.1, "rng": 1}.items() if name in known
    }


def _flag(r, rows):
    """A column of 0 and 1, seldom with a 1, or an odd one."""
    flag = (rows.rng.random(rows.n) < 0.05).astype(int)
    return values.column(r, rows.n) if r.random() < 0.2 else flag


_projection = _lens(
    "projection_test", "notion", "calibration", "attributes", "alternative", epsilon=None
)
MAKERS = {
    "permutation_test": _lens(
        "permutation_test", "alternative", "studentize", "adjust", "engine", "interval"
    ),
    "intervals": _lens("intervals", "method"),
    "equivalence_test": _lens("equivalence_test", "method", "scale", margin=0.1),
    "compare_models": lambda r, rows: (
        fa.compare_models,
        {
            **{name: rows.of(name) for name in ("y_true", "sensitive_features")},
            "first": rows.of("y_pred"),
            "second": rows.of("y_pred"),
            **{name: words(r)[name] for name in ("metric", "alternative", "adjust")},
            **_few(r),
        },
    ),
    "calibrate": _lens("calibrate", "null", "studentize", n_audits=10),
    "projection_test": _projection,
    "tabulate": lambda r, rows: (
        fa.tabulate,
        {name: rows.of(name) for name in ("y_true", "y_pred", "sensitive_features", "strata")},
    ),
    "combine_columns": lambda r, rows: (
        fa.combine_columns,
        {"flags": {name: _flag(r, rows) for name in ("a", "b", "c")[: r.choice((1, 2, 3))]}},
    ),
    "individual_test": _individual,
    "influence_audit": _influence,
    "extreme_test": _extreme,
    "fit_tail": _fit_tail,
    "tail": _tail,
    "minimum_detectable_gap": _plan("minimum_detectable_gap"),
    "sample_size": _plan("sample_size"),
    "adjust_pvalues": lambda r, rows: (
        fa.adjust_pvalues,
        {"pvalues": rows.rng.random(rows.n), "method": words(r)["adjust"]},
    ),
    "fair_metric": _fair_metric,
    "model": _model,
    "model_of_arrays": _model_of_arrays,
    "generator": _generator,
    "generator_quality": _quality,
    "ecd_search": _search,
    "frame_of_cells": _frame_of_cells,
    "by_cells": _by_cells,
    "by_frame": _by_frame,
    "metric": _metric,
    "own_metric": _own_metric,
    "chained": _chained,
    "adapt": lambda r, rows: (fa.models.adapt, {"model": rows.model()}),
    "score_distance": lambda r, rows: (fa.models.score_distance, {"y_score": rows.of("score")}),
    "synthetic_credit": lambda r, rows: (fa.datasets.synthetic_credit, {"n_rows": 10, "rng": 1}),
    **objects.MAKERS,
}
#: The quick lenses more often than what takes long.
WEIGHTS = {
    **dict.fromkeys(MAKERS, 4),
    **dict.fromkeys(("permutation_test", "intervals", "projection_test", "tabulate"), 8),
    **dict.fromkeys(("ecd_search", "generator_quality", "generator", "extreme_test"), 1),
    **dict.fromkeys(("chained", "influence_audit", "calibrate"), 2),
    **dict.fromkeys(("audit", "of_sklearn"), 2),
}


def make(r):
    """Draw a call: its name, the function and its arguments."""
    name = r.choices(list(MAKERS), [WEIGHTS[maker] for maker in MAKERS])[0]
    rows = Rows(r)
    function, given = MAKERS[name](r, rows)
    known = list(_parameters(getattr(function, "__func__", function)))
    for _ in range(r.choice((0, 0, 1, 1, 1, 2))):
        argument = r.choice(known or ["unknown"])
        if argument in SIZES and r.random() < 0.5:
            continue
        odd = values.column(r, rows.n) if argument in COLUMNS else values.scalar(r)
        if argument in COLUMNS and r.random() < 0.25:
            odd = values.scalar(r)
        given[argument] = odd
    if r.random() < 0.03:
        given.pop(r.choice(list(given)), None) if given else None
    if r.random() < 0.005:
        given["unknown"] = 1
    return name, function, given


@functools.cache
def _parameters(function):
    found = inspect.signature(function).parameters.values()
    return tuple(
        value.name
        for value in found
        if value.name not in ("self", "cls") and value.kind != value.VAR_KEYWORD
    )


def look_at(result, r):
    """Do with a result what everybody does."""
    str(result)
    repr(result)
    if not isinstance(result, Result):
        return
    shown = r.randrange(5)
    if shown == 0:
        json.dumps(result.to_dict(), allow_nan=False)
    elif shown == 1:
        result.to_frame()
    elif shown == 2:
        result._repr_html_()
    elif shown == 3:
        assert result == result
    else:
        hash(result)
        assert not math.isinf(getattr(result, "pvalue", 0.0))
