"""Native functions that take a `Call`, found in the stub, with a small call of each."""

import ast
from pathlib import Path

import numpy as np

import fairaudit_rs as fa
from fairaudit_rs import _native


def takers_of_calls():
    """Names of the native functions, methods and classes that have an argument `call`."""
    return {name for name, function in callables().items() if _takes_call(function)}


def callables():
    """By name, what the stub says of native functions, methods and classes that are made."""
    stub = Path(fa.__file__).with_name("_native.pyi").read_text(encoding="utf-8")
    found = {}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        if isinstance(node, ast.ClassDef):
            for value in node.body:
                if isinstance(value, ast.FunctionDef) and not value.name.startswith("__get"):
                    name = node.name if value.name == "__new__" else f"{node.name}.{value.name}"
                    found[name] = value
    return found


def _takes_call(function):
    return "call" in {arg.arg for arg in [*function.args.args, *function.args.kwonlyargs]}


def small_calls(csv_file):
    """By name, functions of a call: valid arguments, little work."""
    call, draws = _native.Call(), _native.Draws(20, seed=1)
    return {
        **_data(csv_file),
        **_metrics(),
        **_permutations(draws, call),
        **_audits(draws, call),
        **_assignments(draws, call),
        **_projections(draws, call),
        **_laws(),
        **_flows(draws),
        **_influences(draws, call),
        **_tails(draws),
        **_extremes(call),
        **_limits(draws),
        "hypergeometric": lambda call: _native.hypergeometric(50, 20, 9, draws, call),
        "binomial": lambda call: _native.binomial(50, 0.3, draws, call),
    }


def permutation_tests():
    """By name, a test of every kind: three groups, but for the correlation."""
    rng, call = np.random.default_rng(0), _native.Call()
    score, other, weight = rng.random(60).round(1), rng.random(60), rng.random(60)
    positive, group = rng.random(60) < 0.5, np.arange(60, dtype=np.uint16) % 3
    of_row, unpooled = np.arange(60, dtype=np.uint32) // 2, {"studentize": "unpooled"}
    stratum = np.arange(60, dtype=np.uint32) // 3 % 2
    rows = _native.Units(group, 3)
    strata = _native.Units(group, 3, stratum=stratum)
    parts = _native.Units(group, 3, stratum=stratum, part=np.arange(60, dtype=np.uint32) // 6 % 2)
    clusters = _native.Units(group[:30], 3, stratum=stratum[:30], of_row=of_row)
    made, f1 = _native.PermutationTest, fa.metrics.get("f1").native
    unclustered = _native.Units(group[:30], 3, of_row=of_row)
    table = rng.integers(5, 40, (2, 3, 4)).astype(np.uint64)
    odds = fa.metrics.get("equalized_odds").native
    return {
        "counts": made.counts(table, f1, **unpooled),
        "joint": made.counts(table, odds, studentize="pooled", conditioning=[0, 1, 0, 1]),
        "auc": made.auc(score, positive, rows, call, **unpooled, within_labels=True),
        "auc of two": made.auc(score, positive, _native.Units(group % 2, 2), call, **unpooled),
        "auc, strata": made.auc(score, positive, parts, call, **unpooled),
        "auc, weights": made.auc(score, positive, rows, call, **unpooled, weight=weight),
        "auc, both": made.auc(score, positive, strata, call, **unpooled, weight=weight),
        "auc, clusters": made.auc(score, positive, unclustered, call, **unpooled, weight=weight),
        "auc, all": made.auc(score, positive, clusters, call, **unpooled, weight=weight),
        "mean": made.ratio(score, None, rows, call, **unpooled),
        "mean, strata": made.ratio(score, None, strata, call, **unpooled),
        "ratio": made.ratio(score, other + 1, rows, call, **unpooled),
        "ratio, strata": made.ratio(score, other + 1, strata, call, **unpooled),
        "weighted counts": made.weighted_counts(rng.random((60, 4)), f1, rows, call, **unpooled),
        "weighted counts, strata": made.weighted_counts(
            rng.random((60, 4)), f1, parts, call, **unpooled
        ),
        "correlation": made.correlation(score, other, call, **unpooled, stratum=stratum),
        "rank correlation": made.correlation(
            score, other, call, **unpooled, stratum=stratum, by_rank=True
        ),
    }


#: Tests of rows in strata of the user's, which have no bootstrap.
IN_STRATA = {
    "auc, strata",
    "auc, both",
    "auc, all",
    "mean, strata",
    "ratio, strata",
    "weighted counts, strata",
}


def shift_tests():
    """By name, tests of two groups of a mean or ratio."""
    rng, call = np.random.default_rng(0), _native.Call()
    score, below, group = rng.random(60), 1 + rng.random(60), np.arange(60, dtype=np.uint16) % 2
    stratum = np.arange(60, dtype=np.uint32) // 7
    made, unpooled = _native.PermutationTest.ratio, {"studentize": "unpooled"}
    rows = _native.Units(group, 2)
    strata = _native.Units(group, 2, stratum=stratum, part=stratum % 2)
    clusters = _native.Units(group, 2, of_row=np.arange(60, dtype=np.uint32))
    return {
        "mean": made(score, None, rows, call, **unpooled),
        "mean, strata": made(score, None, strata, call, **unpooled),
        "ratio": made(score, below, rows, call, **unpooled),
        "ratio, strata": made(score, below, strata, call, **unpooled),
        "clusters": made(score, below, clusters, call, **unpooled),
    }


def draws_of_every_kind():
    """By name, functions of draws that give as many numbers as there are replicates."""
    rng, call = np.random.default_rng(0), _native.Call()
    x, group = rng.random(60), np.arange(60, dtype=np.uint16) % 2
    blocks = [([0, 1], [0.0, 0.0], [0.0, 0.0])]
    projection = _native.ProjectionRows(x, 2 * group + (x > 0.5), 4, call).exchange(blocks, call)
    equal = np.eye(2)
    return {
        "normal_maxima": lambda draws: _native.normal_maxima(equal, draws, call),
        "hypergeometric": lambda draws: _native.hypergeometric(500, 200, 90, draws, call),
        "binomial": lambda draws: _native.binomial(500, 0.3, draws, call),
        "ProjectionTest": lambda draws: projection.null_distribution(draws, call),
        "bootstrap_ratio": lambda draws: _native.bootstrap_ratio(x, None, draws, call).values,
    }


def _data(csv_file):
    columns, limits = [np.arange(12) % 2, np.arange(12) % 3], [9, 9]
    edges = np.array([0.0, 0.5, 1.0])
    return {
        "tabulate": lambda call: _native.tabulate(columns, limits, call),
        "read_csv": lambda call: _native.read_csv(csv_file, ["group"], call),
        "check_parquet": lambda call: _native.check_parquet(csv_file, ["group"], call),
        "bin_scores": lambda call: _native.bin_scores(np.linspace(0, 1, 12), edges, call),
    }


def _metrics():
    f1 = fa.metrics.get("f1").native
    classes = [0, 0, 1, 1], [0.2, 0.2, 0.7, 0.7], [0.0, 1.0, 0.0, 1.0]
    return {
        "CountMetric.calibration": lambda call: _native.CountMetric.calibration(*classes, call),
        "CountMetric.evaluate": lambda call: f1.evaluate([9, 3, 4, 9], call),
    }


def _permutations(draws, call):
    metric = fa.metrics.get("f1").native
    table = np.array([[[9, 3, 4, 9], [8, 3, 4, 9]]], dtype=np.uint64)
    x, y = np.linspace(0, 1, 12), np.arange(12) * 5 % 7 / 7
    positive, weighted = np.arange(12) % 3 > 0, np.eye(4)[np.arange(12) % 4]
    units, none = _native.Units(np.arange(12, dtype=np.uint16) % 2, 2), {"studentize": "none"}
    made = _native.PermutationTest
    test = made.ratio(x, None, units, call, **none)
    shifts = test.shifts(draws, call)
    assert shifts.joined(test.shifts(draws, call)).n == 2 * draws.n
    assert test.contrast(0, 1) is None
    assert len(shifts.null_distribution()) == draws.n
    return {
        "PermutationTest.counts": lambda call: made.counts(table, metric, **none, call=call),
        "PermutationTest.auc": lambda call: made.auc(x, positive, units, call, **none),
        "PermutationTest.ratio": lambda call: made.ratio(x, y + 1, units, call, **none),
        "PermutationTest.mean": lambda call: made.mean([x[:5], x[5:]], units, call, **none),
        "PermutationTest.weighted_counts": lambda call: made.weighted_counts(
            weighted, metric, units, call, **none
        ),
        "PermutationTest.correlation": lambda call: made.correlation(x, y, call, **none),
        "PermutationTest.exact": lambda call: made.counts(table, metric, **none).exact(
            "two-sided", call
        ),
        "PermutationTest.null_distribution": lambda call: test.null_distribution(draws, call),
        "PermutationTest.audits": lambda call: test.audits(9, draws, call),
        "PermutationTest.max_t": lambda call: test.max_t([(0, 1)], draws, call),
        "PermutationTest.shifts": lambda call: test.shifts(draws, call),
        "Shifts.extremes": lambda call: shifts.extremes(0.1, "greater", call),
        "Shifts.limit": lambda call: shifts.limit("less", 0.05, call),
        "PermutationTest.bootstrap": lambda call: test.bootstrap(draws, call),
        "count_extreme": lambda call: _native.count_extreme(x, 0.5, "greater", True, call),
    }


def _audits(draws, call):
    table = np.array([[[9, 3, 4, 9], [8, 3, 4, 9]]], dtype=np.uint64)
    values, none = np.array([1.0, -3.0, 0.5, -0.25]), {"studentize": "none"}
    units = _native.Units(np.arange(12, dtype=np.uint16) % 2, 2)
    x, cell = np.linspace(0, 1, 12), np.arange(12, dtype=np.uint32) % 2
    made = _native.WeakNull
    weak = made.rows(x, None, units, cell, call, **none)
    return {
        "WeakNull.rows": lambda call: made.rows(x, x + 1, units, cell, call, **none),
        "WeakNull.counts": lambda call: made.counts(table, values, values + 4, call, **none),
        "WeakNull.pvalues": lambda call: weak.pvalues(9, draws, call),
        "tilted_counts": lambda call: _native.tilted_counts(
            table, np.full((1, 4), 0.5), draws, 0, call
        ),
        "tilted_groups": lambda call: _native.tilted_groups(
            units, np.full(12, 0.5), draws, 0, call
        ),
    }


def _assignments(draws, call):
    units = _native.Units(np.arange(12, dtype=np.uint16) % 2, 2)
    made = _native.Assignments(units, call)
    groups = made.groups(draws, None, call)
    columns, values = [np.zeros(12)] * 3, np.linspace(0, 1, 6).reshape(3, 2)
    return {
        "Assignments": lambda call: _native.Assignments(units, call),
        "Assignments.groups": lambda call: made.groups(draws, 3, call),
        "Assignments.samples": lambda call: made.samples(groups, 0, 2, draws, 3, call),
        "Assignments.statistic": lambda call: made.statistic([0.1, 0.2], values, call),
        "Assignments.null_distribution": lambda call: made.null_distribution(
            _address(), columns, 0, draws, call
        ),
    }


def _address():
    """The address of a compiled function."""
    import ctypes

    pointer = ctypes.POINTER(ctypes.c_double)
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, pointer, pointer, pointer, ctypes.c_int64)
    _address.alive = prototype(lambda y_true, value, weight, n: float(n))
    return ctypes.cast(_address.alive, ctypes.c_void_p).value


def _projections(draws, call):
    distance, cell = np.linspace(0.1, 1, 12), np.arange(12, dtype=np.uint16) % 4
    blocks = [([0, 1], [0.0, 0.0], [0.0, 0.0])]
    rows = _native.ProjectionRows(distance, cell, 4, call)
    used, gains = [True] * 4, np.linspace(0.5, 1, 12)
    curves = rows.curves(used, call)
    budgets = np.ones(1)
    return {
        "ProjectionRows": lambda call: _native.ProjectionRows(distance, cell, 4, call),
        "ProjectionRows.project": lambda call: rows.project(blocks, call),
        "ProjectionRows.select": lambda call: rows.select(gains, 1.0, call),
        "ProjectionRows.affordable": lambda call: rows.affordable(gains[None, :4], budgets, call),
        "ProjectionRows.spread": rows.spread,
        "ProjectionRows.windows": lambda call: rows.windows([True] * 2, 0.3, call),
        "ProjectionRows.distinct_margins": lambda call: rows.distinct_margins(gains[:4], 9, call),
        "ProjectionRows.histogram": lambda call: rows.histogram(1.0, 4, call),
        "ProjectionRows.curves": lambda call: rows.curves(used, call),
        "ProjectionRows.exchange": lambda call: rows.exchange(blocks, call),
        "CellCurves.rows": lambda call: curves.rows(0, call),
        "CellCurves.points": lambda call: curves.points(0, [0, 1], call),
        "CellCurves.ranks": lambda call: curves.ranks(0, 0.5, call),
        "CellCurves.conjugate": lambda call: curves.conjugate([0.5] * 4, call),
        "CellCurves.cost": lambda call: curves.cost([0.5] * 4, call),
        "CellCurves.take": lambda call: curves.take([0.5] * 4, call),
    }


def _laws():
    box = np.eye(2).ravel(), np.eye(2).ravel(), -np.ones(2), np.ones(2)
    law = _native.BoxLaw(*box)
    return {
        "BoxLaw": lambda call: _native.BoxLaw(*box, call),
        "BoxLaw.tail": lambda call: law.tail(1.0, call),
        "BoxLaw.quantile": lambda call: law.quantile(0.05, call),
    }


def _influences(draws, call):
    """Three features of 40 rows."""
    rng = np.random.default_rng(3)
    features = rng.random((40, 3))
    group = (np.arange(30), rng.random(40) < 0.5, rng.random(40))
    columns = _native.InfluenceColumns(list(features.T), call)
    rows = _native.InfluenceRows(columns, [1.0] * 3, group, call)
    influences, leverages = rng.random((3, 9)), np.zeros((3, 4))
    half, rates = np.full(40, 0.5), np.array([[1.0, 0, 0, 1, 0, 1, 0, 0, 0]])
    kinds = half, rng.random(40), np.ones((40, 3), dtype=np.int64)
    design = _native.InfluenceDesign(features, [0.0] * 3, [1.0] * 3, [(0, 1)])
    folds, lists = np.repeat(np.eye(2), 20, axis=1), rng.random((2, 40))
    return {
        "distinct_rows": lambda call: _native.distinct_rows(features, call),
        "InfluenceColumns": lambda call: _native.InfluenceColumns(list(features.T), call),
        "InfluenceRows": lambda call: _native.InfluenceRows(columns, [1.0] * 3, group, call),
        "InfluenceRows.gram": lambda call: rows.gram(influences, [1.0] * 4, leverages, call),
        "InfluenceDesign.cross_fit": lambda call: design.cross_fit(folds, folds, [1.0], call),
        "InfluenceDesign.scores": lambda call: design.scores(rng.random((2, 5)), call),
        "InfluenceDesign.sums": lambda call: design.sums(lists, call),
        "InfluenceDesign.gram": lambda call: design.gram(lists, call),
        "group_moments": lambda call: _native.group_moments(group, call),
        "normal_maxima": lambda call: _native.normal_maxima(np.eye(3), draws, call),
        "descent_path": lambda call: _native.descent_path(
            kinds, half, kinds, rates, (0.1, 0.05, 1.645, 0.1, 5), call
        ),
        "descent_factors": lambda call: _native.descent_factors(
            half, half, np.full((2, 4), 0.1), call
        ),
        **_repairs(features),
    }


def _repairs(rows):
    strata, weights, score = np.zeros(40, np.uint32), [1.0] * 3, rows[:, 0].copy()
    cells = (rows, strata, weights, score)
    return {
        "repair_envelopes": lambda call: _native.repair_envelopes(*cells, call),
        "repair_reduced_costs": lambda call: _native.repair_reduced_costs(*cells, score, call),
        "nearest_rows": lambda call: _native.nearest_rows(rows, strata, *cells[:3], call),
    }


def _flows(draws):
    X, labels, units = np.linspace(-1, 1, 12), np.arange(6) % 2.0, np.ones(2)
    rows, none = X.reshape(6, 2), np.ones((1, 1, 1))
    schedule = _native.Schedule(3, 0.1, decay=0.0, solver="euler", record=[0, 3])
    flow = _native.Flow.linear(rows, labels, "log_loss", units[None], [0.0], [0.0], none)
    scores = X.reshape(2, 1, 6)
    return {
        "Flow.run": lambda call: flow.run(schedule, call, floor=0.0, boundary=0.0),
        "Flow.scores": lambda call: flow.scores(schedule, call),
        "Flowed.of_scores": lambda call: _native.Flowed.of_scores(
            scores, rows, labels, "log_loss", call, floor=None, boundary=0.0
        ),
        "moments": lambda call: _native.moments(X, call),
        "bootstrap_ratio": lambda call: _native.bootstrap_ratio(X, X + 2, draws, call),
    }


def _tails(draws):
    values = np.cumsum(1 / np.arange(20.0, 0.0, -1.0))
    return {
        "gev_fit": lambda call: _native.gev_fit(values, call),
        "gev_return_level_interval": lambda call: _native.gev_return_level_interval(
            values, 50.0, 100.0, 0.95, call
        ),
        "tail_variations": lambda call: _native.tail_variations(values, [10, 12], True, call),
        "tail_goodness": lambda call: _native.tail_goodness(values, draws, call),
        "tail_goodness_by_threshold": lambda call: _native.tail_goodness_by_threshold(
            values, [12, 10], draws, call
        ),
        "tail_quantiles": lambda call: _native.tail_quantiles(values, 0.1, 1.0, 0.95, call),
        "tail_stability": lambda call: _native.tail_stability(values, [10, 12], 100.0, call),
        "zhang_stephens": lambda call: _native.zhang_stephens(values, call),
    }


def _limits(draws):
    values, weights = np.linspace(0.0, 1.0, 20), np.linspace(1.0, 2.0, 20)
    return {
        "gaffke_limits": lambda call: _native.gaffke_limits(
            values, weights, (0.0, 1.0), 1, draws, call
        ),
        "poisson_binomial_limits": lambda call: _native.poisson_binomial_limits(
            values, 7, 1, draws, call
        ),
    }


def _extremes(call):
    values = _native.TailValues(np.random.default_rng(0).random(120), call)
    tail, cuts = values.fit(15, None, None), _native.Cuts.of_level(15, 120.0, 100.0)
    few = _native.Draws(100, seed=1)
    return {
        "TailValues": lambda call: _native.TailValues(np.arange(5.0), call),
        "Tail.interval": lambda call: tail.interval(100.0, 0.95, cuts, call),
        "Tail.z": lambda call: tail.z(100.0, np.array([0.99]), cuts, call),
        "Tail.shape_interval": lambda call: tail.shape_interval(0.95, cuts, call),
        "compare_levels": lambda call: _native.compare_levels(
            [(tail, cuts)], [(0, 0)], 100.0, 0.95, call
        ),
        "permuted_level_differences": lambda call: _native.permuted_level_differences(
            values, values, (15, 15), (100.0, None), few, call
        ),
        "simulate_level_cuts": lambda call: _native.simulate_level_cuts(
            10, [(5.0, 100.0)], few, call
        ),
        "simulate_shape_cuts": lambda call: _native.simulate_shape_cuts(10, few, call),
    }
