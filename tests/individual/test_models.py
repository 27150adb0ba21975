"""The individual lens: losses, classes, and the models that it takes."""

import math

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors

from ..reference import individual as reference

LOSSES = ("log_loss", "smooth_hinge", "softplus_hinge", "squared")
STEPS = {"penalty": 10.0, "n_steps": 120, "step_size": 0.01, "step_decay": 0.3}


def rows_of(seed, n=80, p=4, n_classes=2, loss="log_loss"):
    """Features, targets of the loss, and a metric with its matrix."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if loss == "squared":
        y = X @ rng.normal(size=p) + rng.normal(size=n)
    else:
        y = np.argmax(X @ rng.normal(size=(p, n_classes)) + rng.normal(size=(n, n_classes)), axis=1)
    V = rng.normal(size=(2, p))
    return X, y, fa.FairMetric.directions(V), reference.directions_metric(V)


def binary_model(kind, rng, p, link):
    """One of our models, and the same in the reference."""
    boundary = {"threshold": 0.5} if link == "logit" else {"threshold": 0.0}
    if kind == "linear":
        coef = rng.normal(size=p)
        return fa.LinearModel(coef, 0.3, link=link, **boundary), reference.Linear(coef, 0.3)
    points, dual = rng.normal(size=(30, p)), rng.normal(size=30) / 4
    if kind == "network":
        torch = pytest.importorskip("torch")
        module = torch.nn.Sequential(
            torch.nn.Linear(p, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1, bias=False)
        ).double()
        W, b, _ = (tensor.detach().numpy() for tensor in module.parameters())
        plain = Tanh(W, b, module[2].weight.detach().numpy())
        return fa.TorchModel(module, link=link, **boundary), plain
    options = {"kernel": kind, "gamma": 0.2, "degree": 2, "coef0": 1.0}
    ours = fa.KernelModel(points, dual, 0.3, **options, link=link, **boundary)
    return ours, reference.KernelExpansion(points, dual, 0.3, **options)


class Tanh:
    """score = V tanh(W x + b), with its gradient, as the reference takes models."""

    def __init__(self, W, b, V):
        self.W, self.b, self.V = W, b, V

    def score(self, X):
        score = np.tanh(X @ self.W.T + self.b) @ self.V.T
        return score[:, 0] if len(self.V) == 1 else score

    def jacobian(self, X):
        slope = 1 - np.tanh(X @ self.W.T + self.b) ** 2
        full = np.einsum("nh,ch,hp->ncp", slope, self.V, self.W)
        return full[:, 0] if len(self.V) == 1 else full


def check(found, plain, X, y, D, loss, ratio="loss", **options):
    """Compare a result with the reference's flow: path, losses, rows, errors."""
    name = "softmax" if found.score_start.ndim == 2 else loss
    x, start, end, losses = reference.flow(
        plain, X, y, D, loss=name, record=found.path.step, **options
    )
    scale = 1 + np.abs(x).max()
    assert np.abs(found.attacked - x).max() < 1e-9 * scale
    assert np.allclose(found.loss_start, start, rtol=1e-9, atol=1e-15)
    assert np.allclose(found.loss_end, end, rtol=1e-8, atol=1e-13)
    if ratio == "loss":
        wanted = reference.path(start, losses)
        assert np.allclose(found.path.estimate, [s for s, _ in wanted.values()], rtol=1e-7)
        assert np.allclose(found.path.lower_bound, [t for _, t in wanted.values()], rtol=1e-7)
    else:
        wrong = [reference.is_wrong(plain, name, rows, y) for rows in (X, x)]
        assert (found.estimate, found.standard_error**2) == pytest.approx(
            reference.error_rate_ratio(*wrong), rel=1e-9
        )


class TestReference:
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("kind", ["linear", "rbf", "polynomial", "network"])
    def test_losses(self, kind, loss):
        for seed, solver in enumerate(["euler", "heun", "rk4"]):
            rng = np.random.default_rng([seed, len(kind), len(loss)])
            X, y, metric, D = rows_of(rng, loss=loss)
            ours, plain = binary_model(kind, rng, 4, "logit" if loss == "log_loss" else "identity")
            # A squared loss grows without bound, and a polynomial faster than that.
            n_steps = 20 if loss == "squared" else 120
            options = STEPS | {"solver": solver, "n_steps": n_steps}
            found = fa.individual_test(
                ours, X, y, fair_metric=metric, loss=loss, path_points=4, **options
            )
            check(found, plain, X, y, D, loss, **options)
            assert found.loss == loss

    @pytest.mark.parametrize("loss", ["smooth_hinge", "softplus_hinge"])
    def test_error_rates_of_margins(self, loss):
        rng = np.random.default_rng(4)
        X, y, metric, D = rows_of(4)
        ours, plain = binary_model("rbf", rng, 4, "identity")
        found = fa.individual_test(
            ours, X, y, fair_metric=metric, loss=loss, ratio="error_rate", **STEPS
        )
        check(found, plain, X, y, D, loss, "error_rate", **STEPS)

    @pytest.mark.parametrize("ratio", ["loss", "error_rate"])
    @pytest.mark.parametrize("kind", ["linear", "rbf", "network"])
    def test_classes(self, kind, ratio):
        for seed, solver in enumerate(["euler", "heun", "rk4"]):
            rng = np.random.default_rng([seed, 3])
            X, y, metric, D = rows_of(rng, n_classes=4)
            ours, plain = self.multiclass(kind, rng)
            options = STEPS | {"solver": solver}
            found = fa.individual_test(
                ours, X, y, fair_metric=metric, ratio=ratio, path_points=4, **options
            )
            check(found, plain, X, y, D, "log_loss", ratio, **options)
            assert found.score_start.shape == (80, 4)
            assert np.allclose(found.score_start, ours.decision_function(X))

    def multiclass(self, kind, rng):
        intercept = rng.normal(size=4)
        if kind == "linear":
            coef = rng.normal(size=(4, 4))
            return fa.MulticlassModel.linear(coef, intercept), reference.Linear(coef, intercept)
        if kind == "rbf":
            points, dual = rng.normal(size=(30, 4)), rng.normal(size=(4, 30)) / 2
            return (
                fa.MulticlassModel.kernel(points, dual, intercept, "rbf", 0.2),
                reference.KernelExpansion(points, dual, intercept, "rbf", 0.2),
            )
        torch = pytest.importorskip("torch")
        module = torch.nn.Sequential(
            torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 4, bias=False)
        ).double()
        W, b, V = (tensor.detach().numpy() for tensor in module.parameters())
        return fa.MulticlassModel.network(module, 4), Tanh(W, b, V)

    def test_standard_deviations_are_the_units(self):
        # The flow of rows in standard deviations, by a model of such rows.
        rng = np.random.default_rng(8)
        X, y, _, _ = rows_of(8)
        X = X * [1.0, 20.0, 0.1, 3.0]
        group = X[:, 1] / 20 + rng.normal(size=len(X)) > 0
        metric = fa.FairMetric.subspace(X, group, standardize=True)
        deviation = X.std(axis=0)
        D = reference.subspace_metric(X / deviation, [group])
        assert np.allclose(metric.units, deviation)
        assert np.allclose(metric.D, D / np.outer(deviation, deviation), atol=1e-9)
        assert np.allclose(
            metric.squared_distance(X, X[::-1]),
            np.einsum("ij,jk,ik->i", X - X[::-1], metric.D, X - X[::-1]),
        )
        for kind in ("linear", "rbf", "network"):
            ours, plain = binary_model(kind, rng, 4, "logit")
            found = fa.individual_test(ours, X, y, fair_metric=metric, path_points=3, **STEPS)
            x, start, end, _ = reference.flow(
                Scaled(plain, deviation), X / deviation, y, D, **STEPS
            )
            assert np.allclose(found.attacked, x * deviation, atol=1e-8), kind
            assert np.allclose(found.loss_start, start, rtol=1e-9)
            assert np.allclose(found.loss_end, end, rtol=1e-8)
            assert found.stability == pytest.approx(2 * 10 * 0.01)

    def test_refitted_intervals(self):
        # Two samples of replicates of one law agree up to Monte Carlo error.
        rng = np.random.default_rng(5)
        X = rng.normal(size=(60, 3))
        group = X[:, 2] + rng.normal(size=60) > 0
        y = (X[:, 0] + X[:, 2] + rng.normal(size=60) > 0).astype(int)
        model, plain = binary_model("linear", rng, 3, "logit")
        options = {"penalty": 10.0, "n_steps": 40, "step_size": 0.02}
        metric = fa.FairMetric.subspace(X, group)
        found = fa.individual_test(
            model, X, y, fair_metric=metric, interval="bootstrap-t", refit_metric=True,
            n_resamples=1_500, confidence_level=0.8, rng=1, **options,
        )  # fmt: skip
        wanted = reference.refitted_interval(
            plain, X, y, [group], n_bootstrap=1_500, level=0.8, rng=rng, **options
        )
        width = wanted[1] - wanted[0]
        assert found.confidence_interval == pytest.approx(wanted, abs=0.12 * width)
        # Without the fit, whose noise the flow follows, another law is resampled.
        given = fa.individual_test(
            model, X, y, fair_metric=metric, interval="bootstrap-t", n_resamples=1_500,
            confidence_level=0.8, rng=1, **options,
        )  # fmt: skip
        assert abs(given.confidence_interval[1] - wanted[1]) > 0.12 * width


class Scaled:
    """A model of rows in other units, as the reference takes models."""

    def __init__(self, plain, units):
        self.plain, self.units = plain, units

    def score(self, X):
        return self.plain.score(X * self.units)

    def jacobian(self, X):
        return self.plain.jacobian(X * self.units) * self.units


class TestArguments:
    @pytest.mark.parametrize(
        ("model", "options", "error", "message"),
        [
            ("linear", {"loss": "squared"}, errors.ArgumentError, "model has link='logit'"),
            (
                "margin",
                {"loss": "squared", "ratio": "error_rate"},
                errors.ArgumentError,
                "numbers, which have no wrong decisions",
            ),
            ("margin", {}, errors.ArgumentError, "loss='smooth_hinge' or 'softplus_hinge'"),
            (
                "classes",
                {"loss": "smooth_hinge"},
                errors.ArgumentError,
                "'smooth_hinge' for a model of 3 classes",
            ),
            ("classes", {"y": [0, 1, 3] * 10}, errors.DataError, "y holds 3; accepted: the class"),
            (
                "classes",
                {"pos_label": 1},
                errors.ArgumentTypeError,
                "pos_label is 1, but the model has 3 classes",
            ),
            (
                "margin",
                {"loss": "squared", "y": ["a", "b"] * 15},
                errors.DataError,
                "y holds text",
            ),
            (
                "linear",
                {"refit_metric": True},
                errors.ArgumentError,
                "refit_metric is True, but interval is 'normal'",
            ),
            (
                "linear",
                {"refit_metric": True, "interval": "bootstrap-t"},
                errors.ArgumentError,
                "was not fitted on rows",
            ),
            ("linear", {"refit_metric": "yes"}, errors.ArgumentTypeError, "refit_metric is 'yes'"),
            ("linear", {"batch_size": 0}, errors.ArgumentError, "batch_size is 0"),
        ],
    )
    def test_wrong_values(self, model, options, error, message):
        X = np.random.default_rng(0).normal(size=(30, 2))
        models = {
            "linear": fa.LinearModel([1.0, 0.5]),
            "margin": fa.LinearModel([1.0, 0.5], threshold=0.0),
            "classes": fa.MulticlassModel.linear(np.eye(3)[:, :2]),
        }
        arguments = {"y": [0, 1] * 15, "fair_metric": fa.FairMetric.directions([[0.0, 1.0]])}
        with pytest.raises(error, match=message):
            fa.individual_test(models[model], X, **(arguments | options))

    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (lambda: fa.MulticlassModel.linear([[1.0]]), "has one score"),
            (lambda: fa.MulticlassModel.linear(np.eye(3), [1.0, 2.0]), "intercept has 2 numbers"),
            (lambda: fa.MulticlassModel.linear(np.eye(2), classes=["a"]), "2 distinct labels"),
            (lambda: fa.MulticlassModel.linear(np.eye(2), classes=["a", "a"]), "2 distinct labels"),
            (lambda: fa.MulticlassModel.linear(np.eye(2), feature_names=["a"]), "feature_names"),
        ],
    )
    def test_wrong_models(self, build, message):
        with pytest.raises(errors.ArgumentError, match=message):
            build()

    def test_classes_that_are_no_labels(self):
        with pytest.raises(errors.ArgumentTypeError, match="accepted: text, numbers or booleans"):
            fa.MulticlassModel.linear(np.eye(2), classes=[[1], [2]])

    def test_wrong_networks(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(errors.ArgumentError, match="module ends in Softmax"):
            fa.MulticlassModel.network(torch.nn.Sequential(torch.nn.Softmax(1)), 3)
        with pytest.raises(errors.ArgumentTypeError, match="module is a str"):
            fa.MulticlassModel.network("net", 3)
        model = fa.MulticlassModel.network(torch.nn.Linear(2, 4), 3)
        with pytest.raises(errors.ArgumentError, match=r"shape \(5, 4\).*\(5, 3\), one logit"):
            model.decision_function(np.zeros((5, 2)))

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"standardize": "height"}, errors.ColumnError, "standardize contains 'height'"),
            ({"fit_on": [True]}, errors.ArgumentError, "a mask of 1 rows; accepted: the 40"),
            ({"fit_on": [40]}, errors.ArgumentError, "fit_on contains 40; accepted: 0 to 39"),
            ({"fit_on": []}, errors.ArgumentTypeError, "fit_on has dtype float64"),
            ({"fit_on": [False] * 40}, errors.ArgumentError, "chooses no row"),
            ({"fit_on": [0.5]}, errors.ArgumentTypeError, "fit_on has dtype float64"),
            ({"features": "race"}, errors.ColumnError, "features contains 'race'"),
        ],
    )
    def test_wrong_metrics(self, options, error, message):
        frame = pl.DataFrame({"age": np.arange(40.0), "sex": [0.0, 1.0] * 20})
        with pytest.raises(error, match=message):
            fa.FairMetric.subspace(frame, [0, 1, 1, 1] * 10, **options)


class TestKnownValues:
    def test_labels_of_several_classes(self):
        model = fa.MulticlassModel.linear(np.eye(3), classes=["low", "middle", "high"])
        X = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
        assert model.decision(X).tolist() == ["low", "high", "middle"]
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
        metric = fa.FairMetric.directions([[1.0, -1.0, 0.0]])
        found = fa.individual_test(
            model, X, ["low", "middle", "middle"], fair_metric=metric, **STEPS
        )
        loss = -np.log(model.predict_proba(X)[[0, 1, 2], [0, 1, 1]])
        assert np.allclose(found.loss_start, loss)
        assert found.error_rates[0] == pytest.approx(1 / 3)
        frame = found.unfair_examples(2).to_frame()
        assert "score_end 2" in frame.columns

    def test_two_classes_are_the_binary_model(self):
        X, y, metric, _ = rows_of(1)
        coef = np.array([0.5, -1.0, 0.3, 0.8])
        binary = fa.individual_test(
            fa.LinearModel(coef, 0.2), X, y, fair_metric=metric, rng=1, **STEPS
        )
        two = fa.MulticlassModel.linear([0 * coef, coef], [0.0, 0.2])
        found = fa.individual_test(two, X, y, fair_metric=metric, rng=1, **STEPS)
        assert np.allclose(found.ratios, binary.ratios, rtol=1e-10)
        assert found.error_rates == binary.error_rates

    def test_ratios_of_squared_losses_of_a_line_are_equal(self):
        X, y, metric, _ = rows_of(2, loss="squared")
        model = fa.LinearModel([0.5, -1.0, 0.3, 0.8], threshold=0.0)
        found = fa.individual_test(model, X, y, fair_metric=metric, loss="squared", **STEPS)
        assert np.ptp(found.ratios) < 1e-9 * found.estimate
        assert any("all ratios are equal" in warning for warning in found.warnings)

    def test_rows_beyond_the_hinge_stand_still(self):
        metric = fa.FairMetric.directions([[1.0]])
        model = fa.LinearModel([1.0], threshold=0.0)
        found = fa.individual_test(
            model, [[2.0], [0.5]], [1, 1], fair_metric=metric, loss="smooth_hinge", **STEPS
        )
        assert found.attacked[0] == 2.0
        assert found.ratios[0] == 1.0
        assert found.n_floored == 1
        assert found.attacked[1] < 0.5

    def test_standardized_columns(self):
        frame = pl.DataFrame({"age": [10.0, 20.0, 60.0, 30.0], "sex": [0.0, 1.0, 1.0, 0.0]})
        group = [0, 1, 1, 0]
        deviation = frame["age"].to_numpy().std()
        for standardize in (True, ["age"], "age", [0]):
            metric = fa.FairMetric.subspace(frame, group, standardize=standardize)
            assert metric.units.tolist() == [deviation, 1.0]
        assert fa.FairMetric.subspace(frame, group).units.tolist() == [1.0, 1.0]
        constant = frame.with_columns(age=pl.lit(7.0))
        assert fa.FairMetric.subspace(
            constant, group, standardize=True
        ).units.tolist() == [1.0, 1.0]  # fmt: skip

    def test_a_name_of_several_columns(self):
        names = ["age", "race_black", "race=white", "sex", "sex_ratio"]
        frame = pl.DataFrame(np.eye(5), schema=names)
        race = fa.FairMetric.subspace(frame, features="race")
        assert np.allclose(np.diag(race.D), [1, 0, 0, 1, 1])
        # The column itself is meant where there is one.
        sex = fa.FairMetric.subspace(frame, features=["sex", "age"])
        assert np.allclose(np.diag(sex.D), [0, 1, 1, 0, 1])

    def test_fit_on(self):
        X, _, _, _ = rows_of(3)
        group = X[:, 0] > 0.2
        mask = np.arange(len(X)) % 2 == 0
        wanted = fa.FairMetric.subspace(X[mask], group[mask])
        for fit_on in (mask, np.flatnonzero(mask), np.flatnonzero(mask).tolist()):
            found = fa.FairMetric.subspace(X, group, fit_on=fit_on)
            assert np.array_equal(found.D, wanted.D)
            assert np.array_equal(found.fitted_rows, X[mask])
        drawn = np.array([0, 0, 1, 5, 7, 7, 9, 30, 31, 32])
        again = fa.FairMetric.subspace(X, group).refit(drawn)
        assert np.array_equal(again.D, fa.FairMetric.subspace(X[drawn], group[drawn]).D)

    def test_features_that_moved(self):
        frame = pl.DataFrame(rows_of(4)[0], schema=["a", "b", "c", "d"])
        metric = fa.FairMetric.subspace(frame, features=["b", "d"], standardize=["d"])
        model = fa.LinearModel([0.0, 1.0, 0.0, -5.0])
        y = model.decision(frame)
        found = fa.individual_test(model, frame, y, fair_metric=metric, **STEPS)
        moved = found.unfair_examples(3).moved_features(2)
        assert [[name for name, _ in row] for row in moved] == [["d", "b"]] * 3
        table = found.unfair_examples(3).to_frame()
        assert table["moved most"][0].startswith("d ")
        for name in ("b", "d"):
            change = table[f"{name} after"] - table[f"{name} before"]
            assert dict(moved[0])[name] == pytest.approx(change[0])

    def test_charts(self):
        X, y, metric, _ = rows_of(5)
        found = fa.individual_test(fa.LinearModel([1.0, 0, 0, 0]), X, y, fair_metric=metric)
        bars = found.plot("ratios").spec["layer"][0]["data"]["values"]
        assert sum(bar["rows"] for bar in bars) == len(X)
        assert found.plot().spec["title"] == "loss ratio along the flow"
        with pytest.raises(errors.ArgumentError, match="what is 'pie'"):
            found.plot("pie")


class TestProperties:
    def test_batches_and_threads(self):
        torch = pytest.importorskip("torch")
        X, y, metric, _ = rows_of(6)
        module = torch.nn.Linear(4, 1).double()
        one, some = (
            fa.individual_test(module, X, y, fair_metric=metric, batch_size=size, **STEPS)
            for size in (1_000, 7)
        )
        assert np.allclose(one.ratios, some.ratios, rtol=1e-10)
        rng = np.random.default_rng(0)
        for model in (
            fa.KernelModel(rng.normal(size=(20, 4)), rng.normal(size=20), threshold=0.5),
            fa.MulticlassModel.linear(rng.normal(size=(3, 4))),
        ):
            first, second = (
                fa.individual_test(model, X, y, fair_metric=metric, n_threads=n, rng=1, **STEPS)
                for n in (1, 3)
            )
            assert first == second

    def test_refits_are_reproducible_and_tell_their_progress(self):
        X, y, _, _ = rows_of(7)
        group = np.arange(80) % 3 == 0
        metric = fa.FairMetric.subspace(X, group)
        seen = []
        options = {"fair_metric": metric, "interval": "bootstrap-t", "refit_metric": True}
        options |= {"n_resamples": 25, "rng": 3} | STEPS
        model = fa.LinearModel([1.0, 0.5, 0.0, 0.2])
        first = fa.individual_test(model, X, y, **options, progress=lambda *done: seen.append(done))
        assert first == fa.individual_test(model, X, y, n_threads=1, **options)
        assert seen[-1] == (25, 25)
        assert first.refit_metric

    def test_draws_without_a_metric_have_no_value(self):
        # One row of a group in eight: many draws do not have it.
        X, y, _, _ = rows_of(8, n=8)
        metric = fa.FairMetric.subspace(X, np.arange(8) == 0)
        found = fa.individual_test(
            fa.LinearModel([1.0, 0.5, 0.0, 0.2]), X, y, fair_metric=metric, rng=1,
            interval="bootstrap-t", refit_metric=True, n_resamples=200, **STEPS,
        )  # fmt: skip
        assert 40 < found.n_undefined < 100
        assert found.pvalue >= found.n_undefined / 201
        assert math.isfinite(found.estimate)


class TestEstimators:
    """Fitted models of scikit-learn."""

    def fitted(self, name, **options):
        sklearn = pytest.importorskip("sklearn")
        module, _, name = name.rpartition(".")
        return getattr(__import__(f"{sklearn.__name__}.{module}", fromlist=[name]), name)(**options)

    def test_networks(self):
        X, y, metric, _ = rows_of(9, n=200)
        for activation in ("identity", "logistic", "tanh", "relu"):
            fitted = self.fitted(
                "neural_network.MLPClassifier", hidden_layer_sizes=(7, 5), activation=activation,
                max_iter=15, random_state=1,
            )  # fmt: skip
            with pytest.warns(Warning, match="iterations"):
                fitted.fit(X, y)
            ours = fa.models.adapt(fitted)
            chance = fitted.predict_proba(X)[:, 1]
            assert np.allclose(ours.predict_proba(X), chance, atol=1e-12)
            found = fa.individual_test(fitted, X, y, fair_metric=metric, **STEPS)
            assert np.allclose(found.loss_start, -np.log(np.where(y == 1, chance, 1 - chance)))
            assert found.estimate > 1
            assert found.engine == "torch autograd, float64"

    def test_several_classes(self):
        X, y, metric, _ = rows_of(10, n=200, n_classes=3)
        names = np.array(["no", "some", "yes"])[y]
        network = self.fitted("neural_network.MLPClassifier", max_iter=15, random_state=1)
        scaler = self.fitted("preprocessing.StandardScaler")
        pipeline = self.fitted("pipeline.Pipeline", steps=[("a", scaler), ("b", network)])
        plain = self.fitted("linear_model.LogisticRegression")
        folded = self.fitted(
            "pipeline.Pipeline", steps=[("a", self.fitted("preprocessing.MinMaxScaler")),
                                        ("b", self.fitted("linear_model.LogisticRegression"))],
        )  # fmt: skip
        for model in (plain, folded, pipeline):
            if model is pipeline:
                with pytest.warns(Warning, match="iterations"):
                    model.fit(X, names)
            else:
                model.fit(X, names)
            found = fa.individual_test(model, X, names, fair_metric=metric, **STEPS)
            chance = model.predict_proba(X)[np.arange(len(y)), y]
            assert np.allclose(found.loss_start, -np.log(chance), rtol=1e-9)
            assert found.error_rates[0] == pytest.approx(np.mean(model.predict(X) != names))
        with pytest.warns(Warning, match="iterations"):
            labels = network.fit(X, np.column_stack([y == 0, y == 1]))
        with pytest.raises(errors.ArgumentError, match="2 labels for every row"):
            fa.individual_test(labels, X, y == 0, fair_metric=metric)
        forest = self.fitted("ensemble.RandomForestClassifier", n_estimators=3).fit(X, names)
        with pytest.raises(errors.ArgumentTypeError, match="there is no gradient to follow"):
            fa.individual_test(forest, X, names, fair_metric=metric)
        vectors = self.fitted("svm.SVC").fit(X, names)
        with pytest.raises(errors.ArgumentTypeError, match="SVC with 3 classes, whose scores"):
            fa.individual_test(vectors, X, names, fair_metric=metric)

    def test_a_network_behind_scalers(self):
        X, y, _, _ = rows_of(11, n=200)
        X = X * [1.0, 10.0, 0.1, 5.0] + 3
        network = self.fitted("neural_network.MLPClassifier", max_iter=15, random_state=1)
        steps = [
            ("first", self.fitted("preprocessing.StandardScaler")),
            ("second", self.fitted("preprocessing.MinMaxScaler")),
            ("network", network),
        ]
        pipeline = self.fitted("pipeline.Pipeline", steps=steps)
        with pytest.warns(Warning, match="iterations"):
            pipeline.fit(X, y)
        chance = pipeline.predict_proba(X)[:, 1]
        assert np.allclose(fa.models.adapt(pipeline).predict_proba(X), chance, atol=1e-12)
        inner = self.fitted("pipeline.Pipeline", steps=pipeline.steps[1:])
        outer = self.fitted("pipeline.Pipeline", steps=[pipeline.steps[0], ("inner", inner)])
        assert np.allclose(fa.models.adapt(outer).predict_proba(X), chance, atol=1e-12)

    @pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
    def test_support_vector_machines(self, kernel):
        X, y, metric, _ = rows_of(12, n=150)
        vectors = self.fitted("svm.SVC", kernel=kernel).fit(X, y)
        found = fa.individual_test(
            vectors, X, y, fair_metric=metric, loss="softplus_hinge", **STEPS
        )
        margin = vectors.decision_function(X)
        assert np.allclose(found.score_start, margin)
        assert np.allclose(found.score_end, vectors.decision_function(found.attacked))
        assert found.error_rates[0] == pytest.approx(np.mean(vectors.predict(X) != y))
        linear = self.fitted("svm.LinearSVC").fit(X, y)
        plain = fa.individual_test(linear, X, y, fair_metric=metric, loss="smooth_hinge", **STEPS)
        assert np.allclose(plain.score_start, linear.decision_function(X))
        with pytest.raises(errors.ArgumentError, match="score is not a log-odds"):
            fa.individual_test(vectors, X, y, fair_metric=metric)

    def test_kernel_ridge(self):
        X, y, metric, _ = rows_of(13, loss="squared")
        ridge = self.fitted("kernel_ridge.KernelRidge", kernel="rbf", gamma=0.2).fit(X, y)
        model = fa.models.adapt(ridge, threshold=0.0)
        found = fa.individual_test(model, X, y, fair_metric=metric, loss="squared", **STEPS)
        assert np.allclose(found.loss_start, (ridge.predict(X) - y) ** 2)
        assert np.allclose(found.loss_end, (ridge.predict(found.attacked) - y) ** 2)
