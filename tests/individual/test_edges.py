"""The individual lens where a reviewer broke it: each test fails on a bug that was there."""

import contextlib

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.individual import sensitive_directions
from fairaudit_rs.individual.refits import _BootstrapDraws

STEPS = {"penalty": 10.0, "n_steps": 30, "step_size": 0.02}


def rows(seed=0, n=300, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    group = (X[:, 2] + rng.normal(size=n) > 0).astype(int)
    return X, y, group


def test_columns_of_the_metric_are_those_of_the_model():
    X, y, _ = rows()
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    model = fa.LinearModel([1.0, 0.0, 0.5], feature_names=["a", "b", "c"])
    other = frame.select("c", "a", "b")
    metric = fa.FairMetric.subspace(other, features="c")
    found = fa.individual_test(model, other, y, fair_metric=metric, **STEPS)
    moved = found.unfair_examples(1).moved_features(1)
    assert moved[0][0][0] == "c"
    wanted = fa.individual_test(
        model, frame, y, fair_metric=fa.FairMetric.subspace(frame, features="c"), **STEPS
    )
    assert found.estimate == pytest.approx(wanted.estimate)


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_three_groups_free_two_directions_in_any_unit(scale):
    X, _, _ = rows(p=4)
    groups = np.random.default_rng(1).integers(0, 3, len(X))
    assert fa.FairMetric.subspace(X * scale, groups).rank == 2


def test_labels_are_read_by_the_classes_of_an_estimator():
    linear = pytest.importorskip("sklearn.linear_model")
    X, y, group = rows()
    model = linear.LogisticRegression().fit(X, y + 1)
    metric = fa.FairMetric.subspace(X, group)
    X, y = X[y == 0], y[y == 0] + 1  # all of class 1, the first one of two
    found = fa.individual_test(model, X, y, fair_metric=metric, **STEPS)
    assert found.error_rates[0] == pytest.approx(np.mean(model.predict(X) != y))


def test_a_positive_label_that_is_the_other_class_of_an_estimator():
    linear = pytest.importorskip("sklearn.linear_model")
    X, y, group = rows()
    names = np.where(y == 1, "yes", "no")
    model = linear.LogisticRegression().fit(X, names)
    metric = fa.FairMetric.subspace(X, group)
    with pytest.raises(errors.FairAuditError):
        fa.individual_test(model, X, names, fair_metric=metric, pos_label="no", **STEPS)


def test_mahalanobis_metrics_of_torch_modules():
    torch = pytest.importorskip("torch")
    X, y, _ = rows()
    module = torch.nn.Linear(3, 1).double()
    weight = module.weight.detach().numpy()[0]
    plain = fa.LinearModel(weight, module.bias.item(), threshold=0.5)
    metric = fa.FairMetric.mahalanobis(np.diag([1.0, 2.0, 3.0]))
    found, wanted = (
        fa.individual_test(model, X, y, fair_metric=metric, **STEPS) for model in (module, plain)
    )
    assert np.allclose(found.ratios, wanted.ratios)


def test_constant_columns_have_no_standard_deviation():
    X, _, group = rows(n=1000)
    X[:, 1] = 0.1
    metric = fa.FairMetric.subspace(X, group, standardize=True)
    assert metric.units[1] == 1.0


def test_collinear_columns_make_no_foreign_error():
    rng = np.random.default_rng(0)
    X = (rng.integers(100, 99_999, 400) * (rng.random(400) < 0.08))[:, None] * np.ones(2) * 1e4
    group = rng.integers(0, 2, 400)
    with contextlib.suppress(errors.FairAuditError):
        fa.FairMetric.subspace(X, group)


def test_steps_that_hardly_decay():
    X, y, _ = rows()
    metric = fa.FairMetric.directions([[0.0, 0.0, 1.0]])
    found = fa.individual_test(
        fa.LinearModel([1.0, 0.5, 0.6]), X, y, fair_metric=metric, penalty=100.0, step_size=0.5,
        step_decay=5e-4, n_steps=20,
    )  # fmt: skip
    assert "(all 20 steps)" in found.warnings[0]


@pytest.mark.parametrize("solver", ["heun", "rk4"])
def test_solvers_of_higher_order_do_not_swing(solver):
    # 1 - z + z^2 / 2 (- z^3 / 6 + z^4 / 24) is positive everywhere.
    X, y, _ = rows()
    metric = fa.FairMetric.directions([[0.0, 0.0, 1.0]])
    found = fa.individual_test(
        fa.LinearModel([2.0, 0.0, 0.0]), X, y, fair_metric=metric, penalty=75.0, step_size=0.01,
        n_steps=30, solver=solver, path_points=31,
    )  # fmt: skip
    assert (np.diff(found.path.estimate) > -1e-12).all()
    assert not any("swings" in warning for warning in found.warnings)


def test_error_rates_of_scores_that_are_not_finite():
    X, y, _ = rows()
    metric = fa.FairMetric.directions([[0.0, 0.0, 1.0]])
    found = fa.individual_test(
        fa.LinearModel([1.0, 0.5, 0.6]), X, y, fair_metric=metric, penalty=1e6, ratio="error_rate"
    )
    assert not np.isfinite(found.score_end).any()
    assert np.isnan(found.error_rates[1])


def test_error_rates_drop_no_row():
    X, y, _ = rows()
    found = fa.individual_test(
        fa.LinearModel([3.0, 0.5, 0.3], threshold=0.0), X, y, loss="smooth_hinge",
        fair_metric=fa.FairMetric.directions([[0.0, 0.0, 1.0]]), ratio="error_rate",
        compat="paper", **STEPS,
    )  # fmt: skip
    assert found.n_dropped == 0


def test_bound_and_pvalue_agree_for_any_number_of_replicates():
    X, y, _ = rows(n=150)
    options = {"fair_metric": fa.FairMetric.directions([[0.0, 0.0, 1.0]]), "rng": 1} | STEPS
    options |= {"interval": "bootstrap-t", "n_resamples": 200}
    model = fa.LinearModel([1.0, 0.5, 0.6])
    bound = fa.individual_test(model, X, y, **options).lower_bound
    found = fa.individual_test(model, X, y, delta=bound - 1e-9, **options)
    assert (found.pvalue <= 0.05) == (found.lower_bound > found.delta)


def test_refits_regress_as_the_fit_did():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    age = rng.integers(0, 10, 200)
    age[:2] = 10  # with eleven values it is a number, with ten it were a category
    metric = fa.FairMetric.subspace(X, {"age": age})
    assert metric.refit(np.arange(2, 200)).rank == metric.rank == 11


def test_refits_draw_the_same_rows_in_any_order():
    X, y, group = rows(n=120)
    model = fa.LinearModel([1.0, 0.5, 0.6])
    options = {"interval": "bootstrap-t", "refit_metric": True, "n_resamples": 99, "rng": 1}
    metric = fa.FairMetric.subspace(X, group)
    place = np.random.default_rng(3).permutation(120)
    shared = fa.individual_test(model, X[place], y[place], fair_metric=metric, **options, **STEPS)
    wanted = fa.individual_test(
        model, X[place], y[place], fair_metric=fa.FairMetric.subspace(X[place], group[place]),
        **options, **STEPS,
    )  # fmt: skip
    assert shared.confidence_interval == pytest.approx(wanted.confidence_interval, rel=1e-9)


def test_refits_of_a_metric_of_few_audited_rows():
    X, y, group = rows(n=60)
    few = [int(np.argmax(group)), int(np.argmin(group)), 7, 8]
    metric = fa.FairMetric.subspace(X, group, fit_on=few)
    found = fa.individual_test(
        fa.LinearModel([1.0, 0.5, 0.6]), X, y, fair_metric=metric, interval="bootstrap-t",
        refit_metric=True, n_resamples=99, rng=1, n_steps=5,
    )  # fmt: skip
    assert 10 < found.n_undefined < 90
    assert any("replicates have no value" in warning for warning in found.warnings)


def test_draws_of_rows_that_are_shared():
    rng = np.random.default_rng(4)
    rows_ = rng.normal(size=(40, 2))
    audited, fitted = rows_[[3, 1, 1, 20, 21]], rows_[[1, 3, 30, 1]]
    draws = _BootstrapDraws(audited, fitted, None)
    # Equal rows are matched in their order.
    assert draws.position.tolist() == [1, 0, 3, -1, -1]
    assert draws.only_fitted.tolist() == [2]
    for seed in range(20):
        one, persons, two = draws.draw(np.random.default_rng(seed))
        assert persons is None
        shared = draws.position[one]
        assert two[: (shared >= 0).sum()].tolist() == shared[shared >= 0].tolist()
        assert set(two[(shared >= 0).sum() :]) <= {2}
    one, _, two = _BootstrapDraws(audited, rows_[30:], None).draw(np.random.default_rng(0))
    assert [len(one), len(two)] == [5, 10]


def test_draws_of_whole_persons():
    rng = np.random.default_rng(4)
    audited, person = rng.normal(size=(6, 2)), np.array([2, 0, 2, 1, 1, 2])
    draws = _BootstrapDraws(audited, audited[[0, 3]], person)
    assert draws.n_units == 3
    for seed in range(20):
        rows_, persons, of_metric = draws.draw(np.random.default_rng(seed))
        assert persons.max() == 2
        for drawn in range(3):
            mine = np.sort(rows_[persons == drawn])
            assert mine.tolist() in ([1], [3, 4], [0, 2, 5])
        # Rows of the metric are drawn with the person they are of.
        assert len(of_metric) == np.isin(rows_, [0, 3]).sum()


def test_refits_of_a_rare_value_make_no_foreign_error():
    X, y, group = rows()
    X[:, 1] = np.where(np.arange(300) < 2, 5.0, 0.1)
    metric = fa.FairMetric.subspace(X, group, standardize=True)
    fa.individual_test(
        fa.LinearModel([1.0, 0.5, 0.6]), X, y, fair_metric=metric, interval="bootstrap-t",
        refit_metric=True, n_resamples=60, rng=1, n_steps=5,
    )  # fmt: skip


def test_large_seeds_are_told_apart():
    X, y, group = rows(n=80)
    options = {"interval": "bootstrap-t", "refit_metric": True, "n_resamples": 99} | STEPS
    options["fair_metric"] = fa.FairMetric.subspace(X, group)
    model = fa.LinearModel([1.0, 0.5, 0.6])
    one, two = (
        fa.individual_test(model, X, y, rng=seed, **options).confidence_interval
        for seed in (2**63, 2**63 + 5)
    )
    assert one != two


def test_equal_ratios_of_squared_losses_say_nothing():
    X, _, _ = rows()
    y = np.random.default_rng(1).normal(size=len(X))
    found = fa.individual_test(
        fa.LinearModel([1.0, 0.5, 0.3], threshold=0.0), X, y, loss="squared",
        fair_metric=fa.FairMetric.directions([[0.0, 0.0, 1.0]]), **STEPS,
    )  # fmt: skip
    assert "treated differently" not in found.summary()


def test_modules_without_parameters():
    torch = pytest.importorskip("torch")

    class Frozen(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.ones(3, 1))

        def forward(self, x):
            return x @ self.weight

    X, y, _ = rows(n=20)
    metric = fa.FairMetric.directions([[0.0, 0.0, 1.0]])
    assert fa.individual_test(Frozen(), X, y, fair_metric=metric, n_steps=2).estimate > 1


def test_modules_made_in_inference_mode():
    torch = pytest.importorskip("torch")
    with torch.inference_mode():
        module = torch.nn.Linear(3, 1)
    X, y, _ = rows(n=20)
    metric = fa.FairMetric.directions([[0.0, 0.0, 1.0]])
    flags = [tensor.requires_grad for tensor in module.parameters()]
    with contextlib.suppress(errors.FairAuditError):
        fa.individual_test(module, X, y, fair_metric=metric, n_steps=2)
    assert [tensor.requires_grad for tensor in module.parameters()] == flags


def test_a_support_vector_far_away_costs_no_digits():
    rng = np.random.default_rng(0)
    points, dual = rng.normal(size=(20, 3)), rng.normal(size=20)
    X, y, _ = rows(n=40)
    metric = fa.FairMetric.directions([[0.0, 0.0, 1.0]])
    near = fa.KernelModel(points, dual, gamma=0.3, threshold=0.5)
    far = fa.KernelModel(np.vstack([points, [1e8, 0, 0]]), [*dual, 1.0], gamma=0.3, threshold=0.5)
    found, wanted = (
        fa.individual_test(m, X, y, fair_metric=metric, **STEPS).score_start for m in (far, near)
    )
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_bars_of_equal_ratios():
    X, y, _ = rows()
    metric = fa.FairMetric.directions([[0.0, 0.0, 1.0]])
    found = fa.individual_test(
        fa.LinearModel([0.0, 0.0, 0.0], 1.0), X, y, fair_metric=metric, delta=1.0, **STEPS
    )
    bars = found.plot("ratios").spec["layer"][0]["data"]["values"]
    assert sum(bar["rows"] for bar in bars) == len(X)


def test_regressions_stop_where_rounding_does(monkeypatch):
    """A step that moves nothing is not taken again, up to the last of 200 iterations."""
    seen = []
    real = sensitive_directions._newton

    def counted(objective, start, n_rows):
        def counting(point):
            seen.append(point.tobytes())
            return objective(point)

        return real(counting, start, n_rows)

    monkeypatch.setattr(sensitive_directions, "_newton", counted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6))
    fa.FairMetric.subspace(X, np.where(X[:, 1] + rng.normal(size=500) > 0, "m", "f"))
    # One search along a line, at most, looks at points that it knows.
    assert len(seen) - len(set(seen)) < 100
