"""Public calls that would take well over two seconds, most of it in native code."""

import numpy as np

import fairaudit_rs as fa


def _rows(n):
    rng = np.random.default_rng(0)
    return (
        (rng.random(n) < 0.4).astype(np.int8),
        rng.random(n),
        (rng.random(n) < 0.3).astype(np.int8),
    )


def _features(n, p):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, p)), (rng.random(n) < 0.5).astype(int)


def permutation_test_of_counts():
    y_true, score, group = _rows(400)
    return lambda: fa.permutation_test(
        y_true,
        score > 0.5,
        sensitive_features=group,
        metric="f1",
        engine="cells",
        n_resamples=50_000_000,
    )


def permutation_test_of_all_pairs():
    y_true, score, _ = _rows(400)
    return lambda: fa.permutation_test(
        y_true,
        score > 0.5,
        sensitive_features=np.arange(400) % 4,
        metric="f1",
        engine="cells",
        adjust="max-t",
        n_resamples=5_000_000,
    )


def permutation_test_of_ranks():
    y_true, score, group = _rows(200_000)
    return lambda: fa.permutation_test(
        y_true, y_score=score, sensitive_features=group, metric="auc", n_resamples=50_000
    )


def permutation_test_of_a_correlation():
    y_true, score, _ = _rows(100_000)
    attribute = np.random.default_rng(1).gamma(2, size=100_000)
    return lambda: fa.permutation_test(
        y_true,
        y_score=score,
        sensitive_features=attribute,
        metric="pearson",
        n_resamples=50_000,
    )


def intervals():
    y_true, score, group = _rows(100_000)
    return lambda: fa.intervals(
        y_true,
        y_score=score,
        sensitive_features=group,
        metric="auc",
        method="studentized",
        n_resamples=99_999,
    )


def equivalence_test():
    y_true, score, group = _rows(100_000)
    return lambda: fa.equivalence_test(
        y_true,
        y_score=score,
        sensitive_features=group,
        metric="auc",
        margin=0.05,
        method="studentized",
        n_resamples=99_999,
    )


def calibrate():
    y_true, score, group = _rows(100_000)
    return lambda: fa.calibrate(
        y_true, y_score=score, sensitive_features=group, metric="auc", n_audits=100
    )


def tabulate():
    place = np.random.default_rng(2).integers(0, 900, 10_000_000)
    text, decision = np.array([f"group {i}" for i in range(900)], "S24")[place], place % 2
    groups = {f"column {i}": text for i in range(12)}
    return lambda: fa.tabulate(y_pred=decision, sensitive_features=groups, n_threads=1)


def projection_test():
    """Seven groups and tolerances: the critical value of a box in six dimensions."""
    y_true, score, _ = _rows(1_000_000)
    return lambda: fa.projection_test(
        y_true,
        y_score=score,
        sensitive_features=np.arange(1_000_000) % 7,
        reference=0,
        epsilon=0.01,
    )


def projection_test_by_permutation():
    y_true, score, group = _rows(100_000)
    return lambda: fa.projection_test(
        y_true,
        y_score=score,
        sensitive_features=group,
        calibration="permutation",
        n_resamples=10_000_000,
    )


def individual_test_of_a_line():
    X, y = _features(500_000, 10)
    model, metric = fa.LinearModel(np.linspace(-1, 1, 10)), fa.FairMetric.directions(np.eye(10)[:2])
    return lambda: fa.individual_test(model, X, y, fair_metric=metric, n_steps=5_000)


def individual_test_of_a_kernel():
    X, y = _features(20_000, 10)
    rng = np.random.default_rng(3)
    model = fa.KernelModel(
        rng.normal(size=(500, 10)), rng.normal(size=500), 0.1, kernel="rbf", gamma=0.1, link="logit"
    )
    metric = fa.FairMetric.directions(np.eye(10)[:2])
    return lambda: fa.individual_test(model, X, y, fair_metric=metric)


def individual_test_with_a_bootstrap():
    X, y = _features(200_000, 4)
    model, metric = fa.LinearModel([1.0, -1.0, 0.5, 0.1]), fa.FairMetric.directions([[1, 0, 0, 0]])
    return lambda: fa.individual_test(
        model,
        X,
        y,
        fair_metric=metric,
        n_steps=20,
        interval="bootstrap-t",
        n_resamples=99_999,
    )


def influence_audit():
    X, y = _features(2_000, 30)
    group = np.arange(2_000) % 2
    return lambda: fa.influence_audit(
        y,
        y_score=np.full(2_000, 0.4) + 0.1 * (X[:, 0] > 0),
        X=X,
        sensitive_features=group,
        target=0,
        n_draws=5_000_000,
    )


def influence_descent():
    """Many short steps towards a gap that they do not reach."""
    X, _ = _features(300_000, 4)
    result = fa.influence_audit(
        y_score=1 / (1 + np.exp(-X[:, 0])),
        X=X,
        sensitive_features=np.where(X[:, 0] > 0, "t", "o"),
        target="t",
        metric="selection_rate",
        n_draws=9,
    )
    return lambda: result.descend(tolerance=0.001, step=1e-6, max_steps=10_000)


def influence_audit_with_all_else_held_fixed():
    X, y = _features(60_000, 16)
    X = (X > 0).astype(float)
    group = np.arange(60_000) % 2
    model = fa.LinearModel(np.full(16, 0.3))
    return lambda: fa.influence_audit(y, X=X, model=model, sensitive_features=group, target=0)


def repair():
    """Forty thousand distinct rows: all pairs of them are looked at."""
    X, _ = _features(100_000, 3)
    group = np.arange(100_000) % 2
    result = fa.influence_audit(
        None,
        y_score=0.3 + 0.1 * group + 0.2 * (X[:, 0] > 0) + 0.001 * np.tanh(X[:, 1]),
        X=X,
        sensitive_features=group,
        target=0,
        metric="selection_rate",
        n_draws=9,
    )
    return lambda: result.repair(parts=(0.9, 0.1), n_threads=1)


def extreme_test_by_permutation():
    _, score, group = _rows(200_000)
    gain = np.random.default_rng(4).beta(2, 8, 200_000) * (1 - score)
    return lambda: fa.extreme_test(
        y_score=score,
        counterfactual_score=score + gain,
        sensitive_features=group,
        null="equal_laws",
        n_resamples=50_000,
    )


def return_level_with_simulated_cuts():
    """Many more exceedances than the shipped cuts know for so many rows."""
    values = np.random.default_rng(5).standard_exponential(40_000)
    tail = fa.fit_tail(values, n_exceedances=20_000)
    return lambda: tail.return_level(50_000)


def ecd_search():
    X, y = _features(40_000, 4)
    X[:, 0] = X[:, 0] > 0

    def train(model, X, y, settings):
        return fa.LinearModel([settings["weight"], 1.0, -1.0, 0.5])

    return lambda: fa.ecd_search(
        dict, X, y, attribute=0, space={"weight": (0.1, 2.0)}, train=train, n_settings=10_000
    )


CALLS = [
    permutation_test_of_counts,
    permutation_test_of_all_pairs,
    permutation_test_of_ranks,
    permutation_test_of_a_correlation,
    intervals,
    equivalence_test,
    calibrate,
    tabulate,
    projection_test,
    projection_test_by_permutation,
    individual_test_of_a_line,
    individual_test_of_a_kernel,
    individual_test_with_a_bootstrap,
    influence_audit,
    influence_descent,
    influence_audit_with_all_else_held_fixed,
    repair,
    extreme_test_by_permutation,
    return_level_with_simulated_cuts,
    ecd_search,
]
