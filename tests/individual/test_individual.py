"""The individual lens: are similar people treated differently?"""

import io
import json
import math
import os
import signal

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.individual.value import (
    AuditValue,
    SkewCorrection,
    bootstrap_mean,
    error_ratio,
    mean_ratio,
)

from ..children import outputs_of_instruction_sets
from ..reference import individual as reference


def random_rows(seed, n=300, p=4, noise=0.5):
    """Features, labels and a group that the features tell of."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.4
    X = rng.normal(size=(n, p)) + np.outer(group, rng.normal(size=p))
    y = (X @ rng.normal(size=p) + noise * rng.normal(size=n) > 0).astype(int)
    return X, y, group


def random_metric(rng, p, kind):
    """A metric of ours and its matrix in the reference."""
    if kind == "directions":
        V = rng.normal(size=(2, p))
        return fa.FairMetric.directions(V), reference.directions_metric(V)
    root = rng.normal(size=(p, p))
    if kind == "mahalanobis":
        S = root @ root.T + np.eye(p)
        return fa.FairMetric.mahalanobis(S), reference.mahalanobis_metric(S)
    D = root[:, :2] @ root[:, :2].T / p
    return fa.FairMetric.matrix(D), reference.matrix_metric(D)


class Network:
    """score = v.tanh(W x + b), with its gradient, as the reference takes models."""

    def __init__(self, W, b, v):
        self.W, self.b, self.v = W, b, v

    def score(self, X):
        return np.tanh(X @ self.W.T + self.b) @ self.v

    def jacobian(self, X):
        return ((1 - np.tanh(X @ self.W.T + self.b) ** 2) * self.v) @ self.W

    def module(self, torch):
        module = torch.nn.Sequential(
            torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1, bias=False)
        ).double()
        with torch.no_grad():
            module[0].weight[:] = torch.tensor(self.W)
            module[0].bias[:] = torch.tensor(self.b)
            module[2].weight[0] = torch.tensor(self.v)
        return module


def small_case(seed=0, **options):
    """An ordinary test of random rows."""
    X, y, group = random_rows(seed)
    metric = fa.FairMetric.subspace(X, group)
    model = fa.LinearModel([0.9, -0.6, 0.3, 0.5], 0.1)
    return fa.individual_test(model, X, y, **({"fair_metric": metric, "rng": 1} | options))


def simulated(theta, metric, n_biases=1, **options):
    """The test of one model of the simulation of appendix E."""
    X, y, _ = reference.simulation()
    coef = np.asarray(theta, dtype=float)
    model = fa.LinearModel(coef, n_biases * reference.fitted_bias(X, y, coef))
    return fa.individual_test(
        model, X, y, fair_metric=metric, penalty=100.0, n_steps=400, step_size=0.02,
        step_decay=2 / 3, rng=1, path_points=2, **options,
    )  # fmt: skip


class TestArguments:
    def call(self, **changes):
        X, y, _ = random_rows(0, 50, 2)
        arguments = {
            "model": fa.LinearModel([1.0, -1.0]),
            "X": X,
            "y": y,
            "fair_metric": fa.FairMetric.directions([[0.0, 1.0]]),
        }
        return fa.individual_test(**(arguments | changes))

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"ratio": "gap"}, errors.ArgumentError, "ratio is 'gap'; accepted: 'loss', 'error_r"),
            ({"loss": "hinge"}, errors.ArgumentError, "accepted: 'log_loss', 'smooth_hinge', '"),
            ({"solver": "adams"}, errors.ArgumentError, "'euler', 'heun', 'rk4'"),
            ({"interval": "t"}, errors.ArgumentError, "'normal', 'log', 'bootstrap-t'"),
            ({"compat": "code"}, errors.ArgumentError, "compat is 'code'; accepted: 'paper'"),
            ({"penalty": -1.0}, errors.ArgumentError, "penalty is -1.0; accepted: a finite number"),
            ({"penalty": math.inf}, errors.ArgumentError, "penalty is inf"),
            ({"penalty": "50"}, errors.ArgumentTypeError, "penalty is '50'"),
            ({"n_steps": 0}, errors.ArgumentError, "n_steps is 0; accepted: a whole number from 1"),
            ({"n_steps": 2.5}, errors.ArgumentTypeError, "n_steps is 2.5"),
            ({"step_size": 0}, errors.ArgumentError, "step_size is 0"),
            ({"step_decay": -0.5}, errors.ArgumentError, "step_decay is -0.5"),
            ({"delta": 0}, errors.ArgumentError, "delta is 0"),
            ({"loss_floor": -1e-9}, errors.ArgumentError, "loss_floor is -1e-09"),
            ({"loss_floor": math.nan}, errors.ArgumentError, "loss_floor is nan"),
            ({"confidence_level": 1.0}, errors.ArgumentError, "strictly between 0 and 1"),
            ({"path_points": 1}, errors.ArgumentError, "path_points is 1"),
            ({"n_resamples": 0}, errors.ArgumentError, "n_resamples is 0"),
            ({"rng": "x"}, errors.ArgumentTypeError, "rng is a str"),
            ({"rng": 1, "random_state": 1}, errors.ArgumentTypeError, "two names"),
            ({"n_threads": 0}, errors.ArgumentError, "n_threads is 0"),
            ({"progress": 3}, errors.ArgumentTypeError, "progress is 3"),
            ({"fair_metric": np.eye(2)}, errors.ArgumentTypeError, "fair_metric is a ndarray; acc"),
            ({"fair_metric": None}, errors.ArgumentTypeError, "fair_metric is a NoneType"),
            (
                {"fair_metric": fa.FairMetric.matrix(np.eye(3))},
                errors.ArgumentError,
                "fair_metric has 3 features; accepted: the 2 of X",
            ),
            ({"model": fa.LinearModel([1.0])}, errors.DataError, "X has 2 columns"),
            ({"model": 3}, errors.ArgumentTypeError, "model is a int"),
            (
                {"model": fa.LinearModel([1.0, 0.0], threshold=0.0)},
                errors.ArgumentError,
                "link='identity', so its score is not a log-odds",
            ),
            (
                {"model": fa.KernelModel([[0.0, 0.0]], [1.0])},
                errors.ArgumentError,
                "link='identity', so its score is not a log-odds",
            ),
            ({"X": [[math.nan, 0.0]], "y": [1]}, errors.DataError, "X is nan in row 0, column 0"),
            ({"X": np.ones(3)}, errors.ArgumentError, "X has 1 dimensions"),
            ({"y": [0, 1]}, errors.ArgumentError, "y has 2 rows, X has 50"),
            ({"y": [0, 1] * 24 + [0, 2]}, errors.DataError, "y holds 0, 1, 2; accepted: 0/1"),
            ({"y": [0.0, math.nan] * 25}, errors.DataError, "y is missing or infinite"),
            ({"y": [0, 1] * 25, "pos_label": 3}, errors.ArgumentError, "pos_label is 3"),
            ({"y": "label"}, errors.ArgumentTypeError, "y is 'label'"),
        ],
    )
    def test_wrong_values(self, changes, error, message):
        with pytest.raises(error, match=message):
            self.call(**changes)

    def test_modules_that_give_no_logit(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(errors.ArgumentError, match="module gives shape"):
            self.call(model=torch.nn.Linear(2, 3))
        with pytest.raises(errors.ArgumentError, match="module fails on rows of 2 features"):
            self.call(model=torch.nn.Linear(3, 1))
        with pytest.raises(errors.ArgumentError, match="link='identity'"):
            self.call(model=fa.TorchModel(torch.nn.Linear(2, 1), 0.0))

    @pytest.mark.parametrize(
        ("build", "error", "message"),
        [
            (lambda: fa.FairMetric.directions([[0.0, 0.0]]), errors.ArgumentError, "zeros only"),
            (
                lambda: fa.FairMetric.directions([["a"]]),
                errors.ArgumentTypeError,
                "V is not an array",
            ),
            (
                lambda: fa.FairMetric.directions([[math.inf]]),
                errors.ArgumentError,
                "V has missing or infinite",
            ),
            (lambda: fa.FairMetric.matrix([[1.0, 2.0]]), errors.ArgumentError, "a square matrix"),
            (
                lambda: fa.FairMetric.matrix([[1.0, 0.5], [0.0, 1.0]]),
                errors.ArgumentError,
                "D is not symmetric",
            ),
            (
                lambda: fa.FairMetric.matrix([[1.0, 2.0], [2.0, 1.0]]),
                errors.ArgumentError,
                "D has the eigenvalue -1; accepted: a positive semidefinite",
            ),
            (
                lambda: fa.FairMetric.mahalanobis([[1.0, 1.0], [1.0, 1.0]]),
                errors.ArgumentError,
                "accepted: a covariance matrix of full rank",
            ),
            (lambda: fa.FairMetric.subspace(np.eye(3)), errors.ArgumentTypeError, "protected is N"),
            (
                lambda: fa.FairMetric.subspace(np.eye(3), {"sex": [1, 1, 1]}),
                errors.DataError,
                "protected attribute 'sex' has the same value in all rows",
            ),
            (
                lambda: fa.FairMetric.subspace(np.eye(3), [0, 1]),
                errors.DataError,
                "protected has 2 rows, X has 3",
            ),
            (
                lambda: fa.FairMetric.subspace(np.eye(3), [0.5, math.nan, 1.0]),
                errors.DataError,
                "protected is not finite",
            ),
            (
                lambda: fa.FairMetric.subspace(np.eye(3), [0, 1, 1], C=0),
                errors.ArgumentError,
                "C is 0",
            ),
            (
                lambda: fa.FairMetric.subspace(np.eye(3), given=[[1.0, 2.0]]),
                errors.ArgumentError,
                "given has 2 columns; accepted: the 3 of X",
            ),
            (
                lambda: fa.FairMetric.subspace(pl.DataFrame({"a": [1.0]}), features="b"),
                errors.ColumnError,
                "features contains 'b'",
            ),
        ],
    )
    def test_wrong_metrics(self, build, error, message):
        with pytest.raises(error, match=message):
            build()

    def test_forms_of_data_are_the_same(self):
        X, y, group = random_rows(3, 80, 2)
        names = ["age", "income"]
        model = fa.LinearModel([1.0, -1.0], feature_names=names)
        metric = fa.FairMetric.subspace(X, {"sex": group})
        wanted = fa.individual_test(model, X, y, fair_metric=metric, rng=1)
        frame = pl.DataFrame(X, schema=names)
        for data, labels in [
            (frame, pl.Series(y)),
            (frame.select("income", "age"), y.astype(bool)),
            (frame.to_pandas(), frame.with_columns(y=y).to_pandas()["y"]),
            (X.tolist(), y.tolist()),
            (np.asfortranarray(X), y.astype(float)),
        ]:
            assert fa.individual_test(model, data, labels, fair_metric=metric, rng=1) == wanted
        text = np.where(y == 1, "yes", "no")
        named = fa.individual_test(model, X, text, fair_metric=metric, rng=1, pos_label="yes")
        assert named == wanted
        for protected in (group, group.astype(int), np.where(group, "f", "m"), [group]):
            other = fa.FairMetric.subspace(frame, protected)
            assert np.allclose(other.D, metric.D, atol=1e-12)

    def test_models_of_scikit_learn(self):
        linear_model = pytest.importorskip("sklearn.linear_model")
        X, y, group = random_rows(1)
        fitted = linear_model.LogisticRegression().fit(X, y)
        metric = fa.FairMetric.subspace(X, group)
        ours = fa.LinearModel(fitted.coef_, fitted.intercept_)
        found, wanted = (
            fa.individual_test(model, X, y, fair_metric=metric, rng=1) for model in (fitted, ours)
        )
        assert found == wanted


class TestKnownValues:
    @pytest.mark.parametrize("place", range(21))
    def test_lower_bounds_of_appendix_e(self, place):
        metric = fa.FairMetric.directions([[1.0, 0.0]])
        found = simulated((reference.GRID[place], 0.0), metric)
        # Published with ddof 0: that is `compat`; with ddof 1 0.0006 less at most.
        assert abs(found.lower_bound - reference.T_N_ALONG_THETA_1[place]) < 0.0011
        paper = simulated((reference.GRID[place], 0.0), metric, compat="paper")
        assert abs(paper.lower_bound - reference.T_N_ALONG_THETA_1[place]) <= 0.00051

    @pytest.mark.parametrize(
        ("degrees", "n_biases", "share"),
        [(0, 1, 294), (5, 1, 306), (10, 1, 304), (0, 2, 274)],
    )
    def test_rejected_models_of_appendix_e(self, degrees, n_biases, share):
        # The last one is the published figure, whose bias was added twice.
        metric = fa.FairMetric.matrix(reference.rotated_metric(degrees))
        grid = [(value, two) for value in reference.GRID for two in reference.GRID]
        bounds = [simulated(theta, metric, n_biases).lower_bound for theta in grid]
        assert sum(bound > 1.25 for bound in bounds) == share

    def test_by_hand(self):
        # One step from score 0: the slope is 1/2, the feature that is free moves by step_size / 2,
        # and so does the other, as nothing holds it back yet.
        metric = fa.FairMetric.directions([[1.0, 0.0]])
        model = fa.LinearModel([1.0, 2.0])
        found = fa.individual_test(
            model, [[0.0, 0.0], [2.0, -1.0]], [1, 0], fair_metric=metric, n_steps=1, step_size=0.2
        )
        assert np.allclose(found.attacked, [[-0.1, -0.2], [2.1, -0.8]], atol=1e-15)
        assert np.allclose(found.ratios, math.log1p(math.exp(0.5)) / math.log(2), rtol=1e-15)
        assert found.estimate == found.ratios[0]
        assert "all ratios are equal, which leaves nothing to test" in found.warnings

    def test_error_rates_by_hand(self):
        # Wrong before: rows 0, 1; after: rows 0, 1, 2. A / B = 3 / 2; linearised 2 e - 3 s, which
        # is -1, -1, 2, 0.
        start = np.array([True, True, False, False])
        end = np.array([True, True, True, False])
        assert error_ratio(start, end, 0) == pytest.approx((1.5, 6 / 16))
        assert error_ratio(start, end)[1] == pytest.approx(6 / 3 / 4)

    def test_a_row_that_is_right_beyond_measure_keeps_its_loss(self):
        X = np.array([[100.0, 0.0], [0.5, 0.0], [-0.2, 0.3]])
        metric = fa.FairMetric.directions([[0.0, 1.0]])
        found = fa.individual_test(
            fa.LinearModel([1.0, 0.5]), X, [1, 1, 1], fair_metric=metric, n_steps=20
        )
        assert found.ratios[0] == 1.0
        assert (found.n_floored, found.n_floored_end, found.n_nonfinite) == (1, 1, 0)
        assert "1 of 3 rows have a loss below the floor of 1e-12" in found.warnings[0]
        assert found.loss_start[0] == pytest.approx(math.exp(-100.0), rel=1e-14)
        whole = fa.individual_test(
            fa.LinearModel([1.0, 0.5]), X, [1, 1, 1], fair_metric=metric, n_steps=20, loss_floor=0.0
        )
        assert whole.ratios[0] == 1.0
        assert whole.n_floored == 0

    def test_rows_that_cannot_be_measured_are_counted(self):
        X, y, _ = random_rows(0, 100, 2)
        metric = fa.FairMetric.directions([[0.0, 1.0]])
        options = {"fair_metric": metric, "penalty": 1e6, "n_steps": 2_000}
        found = fa.individual_test(fa.LinearModel([1.0, 0.5]), X, y, **options)
        assert found.n_nonfinite == 100
        assert math.isnan(found.estimate)
        assert math.isnan(found.pvalue)
        assert math.isnan(found.lower_bound)
        assert "what the metric holds back grows" in found.warnings[0]
        assert "100 of 100 rows have a ratio that is not finite" in found.warnings[1]
        assert "is not measurable" in found.summary()
        assert found.to_dict()["estimate"] is None

    def test_without_errors_there_is_no_error_ratio(self):
        X = np.array([[3.0, 0.0], [-3.0, 0.0]])
        metric = fa.FairMetric.directions([[0.0, 1.0]])
        found = fa.individual_test(
            fa.LinearModel([1.0, 0.0]), X, [1, 0], fair_metric=metric, ratio="error_rate"
        )
        assert math.isnan(found.estimate)
        assert "the model makes no error before the flow" in found.warnings[0]

    @pytest.mark.parametrize(
        ("step_size", "solver", "text"),
        [
            (0.01, "euler", None),
            (0.0101, "euler", "above 1 (all 3 steps) what the metric holds back swings"),
            (0.0201, "euler", "above 2 (all 3 steps) what the metric holds back grows under euler"),
            (0.0201, "rk4", None),
            (0.0201, "heun", "above 2 (all 3 steps) what the metric holds back grows under heun"),
            (0.0279, "rk4", "above 2.785 (all 3 steps) what the metric holds back grows under rk4"),
        ],
    )
    def test_stability(self, step_size, solver, text):
        found = small_case(penalty=50.0, step_size=step_size, solver=solver, n_steps=3)
        assert found.stability == pytest.approx(100 * step_size)
        about = [warning for warning in found.warnings if "holds back" in warning]
        assert (text is None and not about) or text in about[0]

    def test_steps_that_become_short_enough(self):
        # 2 lambda eta_t = 4 / t^(2/3) is above 2 for t < 2^(3/2).
        found = simulated((1.0, 0.0), fa.FairMetric.directions([[1.0, 0.0]]))
        assert "above 2 (the first 2 of 400 steps)" in found.warnings[0]

    def test_pvalue_where_nothing_varies(self):
        for estimate, pvalue in [(1.0, 1.0), (1.25, 0.5), (1.3, 0.0)]:
            assert AuditValue(estimate=estimate, variance=0.0).pvalue(1.25) == (pvalue, 0)
            assert AuditValue(estimate=estimate, variance=0.0).two_sided(0.9) == (
                estimate,
                estimate,
            )

    def test_skewed_ratios_are_pointed_out(self):
        X = np.zeros((200, 2))
        X[:4, 0] = 30.0
        X[:, 1] = np.linspace(-0.01, 0.01, 200)
        metric = fa.FairMetric.directions([[1.0, 0.0]])
        model = fa.LinearModel([1.0, 0.0])
        found = fa.individual_test(model, X, [0] * 200, fair_metric=metric)
        assert any("the lower bound lies too high" in warning for warning in found.warnings)
        resampled = fa.individual_test(
            model, X, [0] * 200, fair_metric=metric, interval="bootstrap-t"
        )
        assert not any("skewed" in warning for warning in resampled.warnings)
        # A few rows whose ratio is far above that of the others.
        Z = 50.0 + X
        Z[:4, 0] = -3.0
        few = fa.individual_test(model, Z, [0] * 200, fair_metric=metric)
        assert any("the upper bound lies too low" in warning for warning in few.warnings)
        one = fa.individual_test(
            model, Z[3:], [0] * 197, fair_metric=metric, interval="bootstrap-t"
        )
        assert any("of the variance of the ratios" in warning for warning in one.warnings)

    def test_what_skewness_does_to_bounds(self):
        # To first order: the share of samples whose bound is missed, against many samples.
        rng = np.random.default_rng(3)
        n, level, z = 200, 0.95, stats.norm.ppf(0.95)
        ratios = rng.gamma(1.0, size=(60_000, n))
        mean, error = ratios.mean(axis=1), ratios.std(axis=1, ddof=1) / math.sqrt(n)
        skew = SkewCorrection.of_mean(rng.gamma(1.0, size=1_000_000))
        shrunk = SkewCorrection(skew.influence, 0.0, 1.0)
        for log in (False, True):
            scale = np.exp(z * error / mean) * mean if log else mean + z * error
            missed = np.mean(scale < 1.0) - 0.05
            predicted = shrunk.excess(level, log) * math.sqrt(len(skew.influence) / n)
            assert predicted == pytest.approx(missed, rel=0.15, abs=0.003)
        # Two rates, few errors before: 4 in 100.
        start = rng.random((100_000, 150)) < 0.1
        end = start | (rng.random(start.shape) < 0.1)
        a, b = end.sum(axis=1), start.sum(axis=1)
        known = b > 0
        variance = a * (a - b) / np.maximum(b, 1) ** 3
        bound = a / np.maximum(b, 1) + z * np.sqrt(variance)
        missed = np.mean(bound[known] < 0.19 / 0.1) - 0.05
        many = SkewCorrection.of_rates(start.ravel(), end.ravel())
        predicted = many.excess(level, False) * math.sqrt(start.size / 150)
        assert predicted == pytest.approx(missed, rel=0.15, abs=0.003)

    def test_what_it_says(self):
        found = small_case()
        assert "four-fifths rule" in str(found)
        assert f"is {found.estimate:.3f}, and at least {found.lower_bound:.3f}" in found.summary()
        content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert content["lower_bound"] == found.lower_bound
        assert content["path"]["step"][-1] == 500
        assert "ratios" not in content
        assert found.to_frame().shape == (1, 13)
        assert "<table>" in found._repr_html_()
        assert repr(found).startswith("IndividualResult(metric=")
        assert small_case(delta=2.0).summary().count("four-fifths") == 0

    def test_its_chart(self, tmp_path):
        chart = small_case().plot()
        chart.save(tmp_path / "flow.json")
        layers = json.loads((tmp_path / "flow.json").read_text())["layer"]
        assert len(layers[0]["data"]["values"]) == 42

    def test_unfair_examples(self):
        found = small_case()
        worst = found.unfair_examples(5)
        order = np.argsort(-found.ratios, kind="stable")[:5]
        assert worst.row.tolist() == order.tolist()
        assert np.array_equal(worst.attacked, found.attacked[order])
        assert np.array_equal(worst.ratio, found.ratios[order])
        model = fa.LinearModel([0.9, -0.6, 0.3, 0.5], 0.1)
        assert np.allclose(model.decision_function(worst.attacked), worst.score_end, atol=1e-12)
        assert np.allclose(model.decision_function(worst.start), worst.score_start, atol=1e-12)
        assert worst.to_frame().columns[-2:] == ["x3 before", "x3 after"]
        assert len(found.unfair_examples(10_000)) == 300
        with pytest.raises(errors.ArgumentError, match="k is 0"):
            found.unfair_examples(0)


class TestReference:
    @pytest.mark.parametrize("kind", ["directions", "mahalanobis", "matrix"])
    @pytest.mark.parametrize("solver", ["euler", "heun", "rk4"])
    def test_flow(self, kind, solver):
        rng = np.random.default_rng([1, len(kind), len(solver)])
        for _ in range(4):
            p = int(rng.integers(2, 12))
            X, y, _ = random_rows(rng, 60, p)
            metric, D = random_metric(rng, p, kind)
            coef, intercept = rng.normal(size=p), float(rng.normal())
            options = {
                "penalty": 10.0,
                "n_steps": 500,
                "step_size": float(rng.choice([0.002, 0.01])),
                "step_decay": float(rng.choice([0.0, 0.5])),
                "solver": solver,
            }
            model = fa.LinearModel(coef, intercept)
            found = fa.individual_test(model, X, y, fair_metric=metric, path_points=6, **options)
            x, start, end, losses = reference.flow(
                reference.Linear(coef, intercept), X, y, D, record=found.path.step, **options
            )
            assert found.stability == pytest.approx(
                reference.stability(D, 10.0, options["step_size"])
            )
            assert np.abs(found.attacked - x).max() < 1e-9
            assert np.allclose(found.loss_start, start, rtol=1e-12)
            assert np.allclose(found.loss_end, end, rtol=1e-9)
            wanted = reference.path(start, losses)
            assert np.allclose(found.path.estimate, [s for s, _ in wanted.values()], rtol=1e-9)
            assert np.allclose(found.path.lower_bound, [t for _, t in wanted.values()], rtol=1e-9)
            assert found.path.time[-1] == pytest.approx(
                reference.flow_time(500, options["step_size"], options["step_decay"])
            )

    @pytest.mark.parametrize("solver", ["euler", "heun", "rk4"])
    def test_flow_of_torch_modules(self, solver):
        torch = pytest.importorskip("torch")
        rng = np.random.default_rng(6)
        X, y, group = random_rows(6, 100, 3)
        network = Network(rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=5))
        metric = fa.FairMetric.subspace(X, group)
        options = {"penalty": 10.0, "n_steps": 60, "step_size": 0.02, "step_decay": 0.3}
        options["solver"] = solver
        module = network.module(torch)
        before = [tensor.clone() for tensor in module.parameters()]
        found, single = (
            fa.individual_test(
                fa.TorchModel(module, dtype=dtype), X, y, fair_metric=metric, path_points=4,
                **options,
            )
            for dtype in ("float64", "float32")
        )  # fmt: skip
        x, start, end, losses = reference.flow(
            network, X, y, metric.D, record=found.path.step, **options
        )
        assert np.allclose(found.attacked, x, atol=1e-9)
        assert np.allclose(found.loss_end, end, rtol=1e-9)
        assert np.allclose(
            found.path.estimate, [s for s, _ in reference.path(start, losses).values()]
        )
        assert np.allclose(single.ratios, found.ratios, rtol=1e-3)
        assert found.engine == "torch autograd, float64"
        for tensor, old in zip(module.parameters(), before, strict=True):
            assert tensor.requires_grad
            assert tensor.grad is None
            assert torch.equal(tensor, old)
        assert module.training

    def test_torch_equals_the_kernel(self):
        torch = pytest.importorskip("torch")
        X, y, group = random_rows(7, 200)
        metric = fa.FairMetric.subspace(X, group)
        coef = np.array([0.9, -0.6, 0.3, 0.5])
        module = torch.nn.Linear(4, 1).double()
        with torch.no_grad():
            module.weight[0] = torch.tensor(coef)
            module.bias[0] = 0.1
        models = module, fa.LinearModel(coef, 0.1)
        by_torch, kernel = (fa.individual_test(m, X, y, fair_metric=metric) for m in models)
        assert np.allclose(by_torch.ratios, kernel.ratios, rtol=1e-9)
        assert by_torch.lower_bound == pytest.approx(kernel.lower_bound, rel=1e-9)
        assert np.array_equal(by_torch.unfair_examples(3).row, kernel.unfair_examples(3).row)

    def test_no_step_keeps_the_graph_of_another(self):
        torch = pytest.importorskip("torch")
        inputs = []

        class Watched(torch.nn.Linear):
            def forward(self, x):
                inputs.append(x.grad_fn)
                return super().forward(x)

        X, y, group = random_rows(8, 50)
        metric = fa.FairMetric.subspace(X, group)
        fa.individual_test(Watched(4, 1), X, y, fair_metric=metric, n_steps=20)
        assert len(inputs) >= 20
        assert set(inputs) == {None}

    def test_inference(self):
        for seed in range(5):
            X, y, group = random_rows(seed)
            coef = np.random.default_rng(seed).normal(size=4)
            metric = fa.FairMetric.subspace(X, group)
            D = reference.subspace_metric(X, [group])
            assert np.allclose(metric.D, D, atol=1e-9)
            linear = reference.Linear(coef, 0.2)
            x, start, end, _ = reference.flow(linear, X, y, D)
            ratios, n_floored, n_nonfinite = reference.loss_ratios(start, end)
            wrong = [reference.is_wrong(linear, "log_loss", rows, y) for rows in (X, x)]
            for ratio in ("loss", "error_rate"):
                value = (
                    reference.mean_ratio(ratios)
                    if ratio == "loss"
                    else reference.error_rate_ratio(*wrong)
                )
                for interval, make, tail in [
                    ("normal", reference.normal_interval, reference.normal_pvalue),
                    ("log", reference.log_interval, reference.log_pvalue),
                ]:
                    found = fa.individual_test(
                        fa.LinearModel(coef, 0.2), X, y, fair_metric=metric, ratio=ratio,
                        interval=interval, confidence_level=0.9,
                    )  # fmt: skip
                    assert (found.n_floored, found.n_nonfinite) == (n_floored, n_nonfinite)
                    estimate, variance = found.estimate, found.standard_error**2
                    assert (estimate, variance) == pytest.approx(value, rel=1e-8)
                    assert found.confidence_interval == pytest.approx(make(*value, 0.9), rel=1e-8)
                    for bound, other in [
                        (found.lower_bound, reference.lower_bound),
                        (found.upper_bound, reference.upper_bound),
                    ]:
                        assert bound == pytest.approx(other(*value, 0.9, make), rel=1e-8)
                    assert found.pvalue == pytest.approx(tail(*value), rel=1e-6, abs=1e-300)
            paper = fa.individual_test(
                fa.LinearModel(coef, 0.2), X, y, fair_metric=metric, compat="paper"
            )
            estimate, bound, n_dropped = reference.paper_audit(start, end)
            assert (paper.estimate, paper.lower_bound) == pytest.approx((estimate, bound), rel=1e-8)
            assert paper.n_dropped == n_dropped

    def test_error_ratio(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            n = int(rng.integers(2, 40))
            start, end = rng.random((2, n)) < rng.random((2, 1))
            found = error_ratio(start, end, 1)
            wanted = reference.error_rate_ratio(start.astype(float), end.astype(float))
            assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True)
            if start.any():
                printed = reference.error_rate_ratio_as_printed(start * 1.0, end * 1.0)
                assert error_ratio(start, end, 0) == pytest.approx(printed, abs=1e-9)

    def test_bootstrap_t(self):
        # Two samples of replicates of one law: their intervals agree up to Monte Carlo error.
        rng = np.random.default_rng(2)
        ratios = 1 + rng.exponential(size=60)
        value = mean_ratio(ratios)
        n_resamples = 20_000
        replicates = bootstrap_mean(ratios, None, n_resamples, 3, None)
        found = AuditValue(*value, interval="bootstrap-t", replicates=replicates)
        estimator = reference.mean_ratio
        wanted = reference.bootstrap_t_interval(estimator, [ratios], 4_000, 0.9, rng)
        assert found.two_sided(0.9) == pytest.approx(wanted, abs=0.08 * found.standard_error * 3)
        pvalue = reference.bootstrap_t_pvalue(estimator, [ratios], 1.8, 4_000, rng)
        assert abs(found.pvalue(1.8)[0] - pvalue) < 5 * math.sqrt(pvalue / 4_000)
        # A ratio of rates is studentized on the scale of the logarithm.
        rates = AuditValue(*value, interval="bootstrap-t", of_rates=True, replicates=replicates)
        estimate = value[0]
        logs = np.log(replicates[0] / estimate) * replicates[0] / np.sqrt(replicates[1])
        low, high = np.quantile(logs, [0.05, 0.95]) * found.standard_error / estimate
        wanted = estimate * math.exp(-high), estimate * math.exp(-low)
        assert rates.two_sided(0.9) == pytest.approx(wanted, rel=1e-3)
        t = math.log(estimate / 1.8) * estimate / found.standard_error
        assert rates.statistic(1.8) == pytest.approx(t)
        assert rates.pvalue(1.8)[0] == pytest.approx(np.mean(logs >= t), abs=1e-3)
        # The variances of the replicates are those of the estimator.
        assert np.mean(replicates[1]) == pytest.approx(value[1] * 59 / 60, rel=0.02)

    def test_metrics(self):
        rng = np.random.default_rng(4)
        X, _, group = random_rows(4, 200, 5)
        race = np.array(["a", "b", "c"])[rng.integers(0, 3, 200)]
        X[:, 2] += race == "b"
        age = rng.normal(size=200) + X[:, 0]
        given = rng.normal(size=(1, 5))
        found = fa.FairMetric.subspace(X, {"sex": group, "race": race, "age": age}, given=given)
        wanted = reference.subspace_metric(X, [group, race, age], given)
        assert np.allclose(found.D, wanted, atol=1e-7)
        assert found.rank == 5 - np.linalg.matrix_rank(np.eye(5) - wanted)
        x, other = rng.normal(size=(2, 7, 5))
        distance = np.sum((x - other) @ wanted * (x - other), axis=1)
        assert np.allclose(found.squared_distance(x, other), distance, atol=1e-6)

    @pytest.mark.parametrize("kind", ["directions", "mahalanobis", "matrix"])
    def test_matrices(self, kind):
        rng = np.random.default_rng(5)
        for p in (2, 5, 9):
            metric, D = random_metric(rng, p, kind)
            assert np.allclose(metric.D, D, atol=1e-12)
            assert metric.largest_eigenvalue == pytest.approx(np.linalg.eigvalsh(D)[-1])
            assert metric.rank == np.linalg.matrix_rank(D, tol=1e-9)
            vector = rng.normal(size=p)
            values, parts = metric.split(vector)
            assert np.allclose(parts.sum(axis=0), vector)
            assert np.allclose(values @ parts, D @ vector)
        assert len(fa.FairMetric.matrix(np.diag([1.0, 2.0, 1.0])).split(np.ones(3))[0]) == 2

    def test_features_that_are_protected(self):
        X = pl.DataFrame({"a": [1.0, 2.0], "sex": [0.0, 1.0]})
        metric = fa.FairMetric.subspace(X, features="sex")
        assert np.allclose(metric.D, np.diag([1.0, 0.0]))


class TestProperties:
    def test_threads_rows_and_repetition(self):
        X, y, group = random_rows(7, 5_000)
        metric = fa.FairMetric.subspace(X, group)
        model = fa.LinearModel([0.9, -0.6, 0.3, 0.5], 0.1)
        order = np.random.default_rng(0).permutation(len(y))
        for options in (
            {"interval": "bootstrap-t", "n_resamples": 200},
            {"interval": "bootstrap-t", "n_resamples": 200, "ratio": "error_rate"},
            {"fair_metric": fa.FairMetric.mahalanobis(np.cov(X.T)), "solver": "heun"},
        ):
            options = {"fair_metric": metric, "rng": 5, "n_steps": 100} | options
            one = fa.individual_test(model, X, y, n_threads=1, **options)
            for n_threads in (2, 7):
                assert fa.individual_test(model, X, y, n_threads=n_threads, **options) == one
            moved = fa.individual_test(model, X[order], y[order], **options)
            assert moved.to_dict() == one.to_dict()
            assert np.array_equal(moved.ratios, one.ratios[order])
            assert np.array_equal(moved.attacked, one.attacked[order])

    def test_instruction_sets(self):
        code = """
import numpy as np, fairaudit_rs as fa
rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(700, 5)) * 64) / 64
y = X[:, 0] > 0
for metric in (fa.FairMetric.directions(np.eye(5)[:1]), fa.FairMetric.matrix(np.diag(range(5)))):
    for solver in ("euler", "rk4"):
        found = fa.individual_test(
            fa.LinearModel([1.0, 0.5, -0.25, 2.0, 0.0]), X, y, fair_metric=metric, solver=solver,
            penalty=4.0, step_decay=0.3)
        print(found.ratios.tobytes().hex(), found.attacked.tobytes().hex(), found.lower_bound)
"""
        assert len(outputs_of_instruction_sets(code)) == 1

    def test_labels_and_signs(self):
        X, y, group = random_rows(8)
        metric = fa.FairMetric.subspace(X, group)
        coef = np.array([0.9, -0.6, 0.3, 0.5])
        one = fa.individual_test(fa.LinearModel(coef, 0.1), X, y, fair_metric=metric)
        # The same person seen from the other side.
        other = fa.individual_test(fa.LinearModel(-coef, -0.1), X, 1 - y, fair_metric=metric)
        assert np.array_equal(one.ratios, other.ratios)
        # Units of a feature, with the metric in the same units.
        scale = np.array([1.0, 2.0, 0.5, 4.0])
        D = metric.D
        plain = fa.individual_test(
            fa.LinearModel(coef), X, y, fair_metric=fa.FairMetric.matrix(D), penalty=5.0
        )
        # A rotation changes nothing at all.
        Q = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
        turned = fa.individual_test(
            fa.LinearModel(Q @ coef), X @ Q.T, y, penalty=5.0,
            fair_metric=fa.FairMetric.matrix((Q @ D @ Q.T + (Q @ D @ Q.T).T) / 2),
        )  # fmt: skip
        assert np.allclose(plain.ratios, turned.ratios, rtol=1e-9)
        assert scale.shape == coef.shape

    def test_the_free_direction_decides(self):
        X, y, _ = random_rows(9, p=2)
        metric = fa.FairMetric.directions([[0.0, 1.0]])
        bounds = [
            fa.individual_test(fa.LinearModel([1.0, weight]), X, y, fair_metric=metric).lower_bound
            for weight in (0.0, 0.5, 1.0, 2.0)
        ]
        assert bounds == sorted(bounds)
        strict = fa.FairMetric.matrix(np.eye(2))
        for penalty in (5.0, 50.0):
            held = fa.individual_test(
                fa.LinearModel([1.0, 2.0]), X, y, fair_metric=strict, penalty=penalty
            )
            assert held.estimate < 1 + 10 / penalty
        assert bounds[-1] > 1.25

    def test_solvers_agree(self):
        values = [
            small_case(solver=solver, penalty=5.0, step_size=0.001).estimate
            for solver in ("euler", "heun", "rk4")
        ]
        assert values[1] == pytest.approx(values[2], rel=1e-8)
        assert values[0] == pytest.approx(values[2], rel=1e-3)

    def test_path_ends_in_the_estimate(self):
        for options in ({}, {"interval": "log"}, {"ratio": "error_rate"}):
            found = small_case(**options)
            assert found.path.estimate[0] == 1.0
            assert found.path.estimate[-1] == found.estimate
            assert found.path.lower_bound[-1] == found.lower_bound
            assert found.path.step.tolist() == list(range(0, 501, 25))
        assert len(small_case(n_steps=3).path) == 4

    def test_bounds_and_pvalue_agree(self):
        for interval in ("normal", "log", "bootstrap-t"):
            found = small_case(interval=interval)
            for delta in (0.99 * found.lower_bound, 1.01 * found.lower_bound):
                again = small_case(interval=interval, delta=delta)
                assert (again.pvalue < 0.05) == (delta < found.lower_bound)
            assert found.lower_bound < found.estimate < found.upper_bound

    def test_losses_to_the_last_digits(self):
        x = np.concatenate([np.linspace(-745, 745, 40_001), np.linspace(-2, 2, 40_001)])
        found = _native.Flowed.of_scores(
            x[None, None], np.zeros((0, 0)), np.zeros(len(x)), "log_loss", _native.Call(),
            floor=0.0, boundary=0.0,
        ).loss_start  # fmt: skip
        normal = x > -708
        assert np.allclose(found[normal], np.logaddexp(0, x[normal]), rtol=5e-16, atol=0)
        assert np.allclose(found[~normal], np.exp(x[~normal]), rtol=1e-15, atol=5e-324)

    def test_progress_and_interruption(self):
        X, y, _ = random_rows(0, 20_000, 2)
        metric = fa.FairMetric.directions([[0.0, 1.0]])
        options = {"fair_metric": metric, "n_threads": 1}
        model = fa.LinearModel([1.0, 0.5])
        seen = []
        fa.individual_test(
            model, X, y, progress=lambda done, total: seen.append((done, total)), **options
        )
        assert seen[-1] == (20_000, 20_000)
        told = []

        def interrupt(done, total):
            # The first time that it is told how far the flow is; nobody may tell it more then.
            told.append(done)
            os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            fa.individual_test(model, X, y, n_steps=1_000_000, progress=interrupt, **options)
        assert len(told) == 1
        assert told[0] < 20_000

    def test_pickles_and_prints(self):
        import contextlib

        with contextlib.redirect_stdout(io.StringIO()) as out:
            print(small_case())
        assert "Note" in out.getvalue() or out.getvalue().strip().endswith(".")
