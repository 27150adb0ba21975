"""Models: distances to the decision boundary, moved rows, adapters."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn import (
    discriminant_analysis,
    ensemble,
    linear_model,
    model_selection,
    naive_bayes,
    pipeline,
    preprocessing,
    svm,
    tree,
)
from sklearn.kernel_ridge import KernelRidge

from fairaudit_rs import errors, models
from fairaudit_rs.models import Distances, KernelModel, LinearModel, TorchModel

from ..reference import distances as reference

NORMS = ["l1", "l2", "linf", "mahalanobis"]


def make(seed=0, n=300, p=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.array([0.5, 1, 3, 10, 0.1])[:p] + np.arange(p)
    coef = rng.normal(size=p)
    y = (X @ coef - np.median(X @ coef) + rng.normal(size=n) > 0).astype(int)
    return X, y, coef, -float(np.median(X @ coef))


def make_covariance(p=5, seed=1):
    root = np.random.default_rng(seed).normal(size=(p, p + 2))
    return root @ root.T


def options_of(norm, p=5):
    return {"norm": norm, **({"covariance": make_covariance(p)} if norm == "mahalanobis" else {})}


def make_kernel(kernel, seed=3, n_support=40, p=3):
    rng = np.random.default_rng(seed)
    return KernelModel(
        rng.normal(size=(n_support, p)),
        rng.normal(size=n_support),
        0.1,
        kernel,
        gamma=0.4,
        degree=3,
        coef0=1.0,
    )


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of torch that wait for each other are slow where cores are shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_module(seed=0, outputs=1, p=4):
    """A network fitted to whether two features have the same sign."""
    torch.manual_seed(seed)
    module = torch.nn.Sequential(
        torch.nn.Linear(p, 16),
        torch.nn.BatchNorm1d(16),
        torch.nn.Tanh(),
        torch.nn.Dropout(0.1),
        torch.nn.Linear(16, outputs),
    )
    X = torch.randn(400, p)
    y = (X[:, 0] * X[:, 1] > 0).float()
    optimizer = torch.optim.Adam(module.parameters(), 0.05)
    for _ in range(60):
        optimizer.zero_grad()
        score = module(X)
        score = score[:, -1] - (score[:, 0] if outputs == 2 else 0)
        torch.nn.functional.binary_cross_entropy_with_logits(score, y).backward()
        optimizer.step()
    module.zero_grad(set_to_none=True)
    return module


def linear_module(coef, intercept):
    module = torch.nn.Linear(len(coef), 1).double()
    with torch.no_grad():
        module.weight[:] = torch.tensor(coef)
        module.bias[:] = intercept
    return module


class TestArguments:
    @pytest.mark.parametrize(
        ("make_model", "kind", "match"),
        [
            (lambda: LinearModel([[1, 2], [3, 4]]), ValueError, r"coef has shape \(2, 2\)"),
            (lambda: LinearModel([]), ValueError, r"coef has shape \(0,\)"),
            (lambda: LinearModel(["a"]), TypeError, "coef is not an array of numbers"),
            (lambda: LinearModel([np.nan]), ValueError, "coef has missing or infinite entries"),
            (lambda: LinearModel([1], "x"), TypeError, "intercept is 'x'; accepted: a finite"),
            (lambda: LinearModel([1], np.inf), ValueError, "intercept is inf; accepted: a finite"),
            (lambda: LinearModel([1], 0, True), TypeError, "threshold is True; accepted: a finite"),
            (lambda: LinearModel([1], link="log"), ValueError, "link is 'log'; accepted: 'auto'"),
            (
                lambda: LinearModel([1], threshold=1.0, link="logit"),
                ValueError,
                "threshold is 1 with link='logit'; accepted: a probability strictly",
            ),
            (
                lambda: LinearModel([1, 2], feature_names=["a", "a"]),
                ValueError,
                r"feature_names has 2 names \('a', 'a'\); accepted: 2 different names",
            ),
            (
                lambda: KernelModel([[1.0]], [1, 2]),
                ValueError,
                "dual_coef has 2 numbers; accepted: one for each of the 1 support vectors",
            ),
            (lambda: KernelModel([1.0], [1]), ValueError, r"support_vectors has shape \(1,\)"),
            (
                lambda: KernelModel([[1]], [1], kernel="sigmoid"),
                ValueError,
                "kernel is 'sigmoid'; accepted: 'rbf', 'polynomial', 'linear'",
            ),
            (
                lambda: KernelModel([[1]], [1], gamma=0),
                ValueError,
                "gamma is 0; accepted: a finite number above 0",
            ),
            (
                lambda: KernelModel([[1]], [1], degree=0),
                ValueError,
                "degree is 0; accepted: a whole",
            ),
            (
                lambda: KernelModel([[1]], [1], coef0=-1),
                ValueError,
                "coef0 is -1; accepted: a finite number of at least 0",
            ),
            (lambda: TorchModel("net"), TypeError, "module is a str; accepted: a torch.nn.Module"),
            (
                lambda: TorchModel(torch.nn.Linear(1, 1), dtype="float16"),
                ValueError,
                "dtype is 'float16'; accepted: 'float32', 'float64'",
            ),
            (
                lambda: TorchModel(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Sigmoid())),
                ValueError,
                "module ends in Sigmoid, so it gives probabilities, not logits. Pass the "
                "module without this layer, or link='identity'",
            ),
        ],
    )
    def test_models(self, make_model, kind, match):
        with pytest.raises(kind, match=match) as caught:
            make_model()
        assert isinstance(caught.value, errors.FairAuditError)

    @pytest.mark.parametrize(
        ("X", "kind", "match"),
        [
            ([1.0, 2.0], ValueError, "X has 1 dimensions; accepted: a two-dimensional array"),
            ([[1.0]], ValueError, "X has 1 columns; accepted: the 2 features of the model"),
            ([[1.0, 2.0], [1.0]], TypeError, "X is not an array of numbers: .*inhomogeneous"),
            ([["a", "b"]], TypeError, "X has dtype <U1; accepted: a two-dim"),
            (np.zeros((0, 2)), ValueError, r"X has shape \(0, 2\); accepted: at least one row"),
            ([[1.0, 2.0], [3.0, np.nan]], ValueError, "X is nan in row 1, column 'b', and missing"),
            (
                pd.DataFrame({"a": [1.0], "c": [2.0]}),
                KeyError,
                "X has no column 'b', which is a feature of the model. Its columns: 'a', 'c'",
            ),
            (
                pl.DataFrame({"a": [1.0, None], "b": [2.0, 1.0]}),
                ValueError,
                "column 'a' of X is nan in row 1",
            ),
            (pl.DataFrame({"a": ["u"], "b": [2.0]}), TypeError, "column 'a' of X holds text"),
            (pl.LazyFrame({"a": [1.0], "b": [2.0]}), TypeError, "X is a LazyFrame; accepted"),
        ],
    )
    def test_rows(self, X, kind, match):
        with pytest.raises(kind, match=match):
            LinearModel([1, 2], feature_names=["a", "b"]).decision(X)

    @pytest.mark.parametrize(
        ("options", "kind", "match"),
        [
            (
                {"norm": "l3"},
                ValueError,
                "norm is 'l3'; accepted: 'l1', 'l2', 'linf', 'mahalanobis'",
            ),
            (
                {"norm": "mahalanobis"},
                TypeError,
                r"covariance is missing, but norm='mahalanobis' needs it",
            ),
            ({"covariance": np.eye(2)}, TypeError, "covariance is only for norm='mahalanobis', an"),
            (
                {"norm": "mahalanobis", "covariance": np.eye(3)},
                ValueError,
                r"covariance has shape \(3, 3\); accepted: \(2, 2\)",
            ),
            (
                {"norm": "mahalanobis", "covariance": [[1, 1], [0, 1]]},
                ValueError,
                "covariance is not symmetric",
            ),
            (
                {"norm": "mahalanobis", "covariance": np.diag([1.0, -1.0])},
                ValueError,
                "covariance has the eigenvalue -1; accepted: none below 0",
            ),
            ({"immovable": "a"}, TypeError, "immovable contains the name 'a', but neither X nor"),
            ({"immovable": 2}, ValueError, "immovable contains 2; accepted: positions from 0 to 1"),
            ({"immovable": [True]}, TypeError, "immovable contains True; accepted: names or pos"),
            ({"immovable": 1.5}, TypeError, "immovable is 1.5; accepted: names or positions"),
            ({"immovable": [0, 0]}, ValueError, "immovable names a feature twice: 0, 0"),
            ({"discrete": 0}, TypeError, "discrete_cost is missing, but discrete needs it"),
            (
                {"discrete": 0, "discrete_cost": 0},
                ValueError,
                "discrete_cost is 0; accepted: a finite number above 0",
            ),
            ({"discrete_cost": 1}, TypeError, "discrete_cost needs discrete, which names no"),
            (
                {"discrete": [0, 1], "discrete_cost": 1, "discrete_values": [[1]]},
                ValueError,
                r"discrete_values has shape \(1, 1\); accepted: one row per combination of the 2",
            ),
        ],
    )
    def test_costs(self, options, kind, match):
        with pytest.raises(kind, match=match):
            LinearModel([1, 2]).distance([[1.0, 2.0]], **options)

    def test_unknown_name(self):
        with pytest.raises(
            KeyError, match=r"immovable contains 'c'; accepted: features .* 'a', 'b'"
        ):
            LinearModel([1, 2]).distance(pl.DataFrame({"a": [1], "b": [2]}), immovable="c")

    @pytest.mark.parametrize(
        ("rows", "kind", "match"),
        [
            ([2], ValueError, "rows contains 2; accepted: 0 to 1"),
            ([-1], ValueError, "rows contains -1; accepted: 0 to 1"),
            ([0.5], TypeError, "rows has dtype float64; accepted: positions of rows, or a mask"),
            ([True], ValueError, "rows is a mask of 1 rows; accepted: 2"),
        ],
    )
    def test_moved(self, rows, kind, match):
        with pytest.raises(kind, match=match):
            LinearModel([1.0]).distance([[1.0], [2.0]]).moved(rows)

    @pytest.mark.parametrize(
        ("values", "decisions", "kind", "match"),
        [
            (
                [-1.0],
                [True],
                ValueError,
                "values is -1 in row 0; accepted: distances of at least 0",
            ),
            ([0.0, np.nan], [1, 0], ValueError, "values is nan in row 1"),
            ([1.0], [True, False], ValueError, r"decisions has shape \(2,\), values \(1,\)"),
            ([1.0], [2], TypeError, "decisions holds other values than booleans"),
        ],
    )
    def test_distances(self, values, decisions, kind, match):
        with pytest.raises(kind, match=match):
            Distances(values, decisions)

    def test_margins_are_no_probabilities(self):
        with pytest.raises(
            ValueError, match="predict_proba needs link='logit', but this model has link"
        ):
            LinearModel([1.0], threshold=0.0).predict_proba([[1.0]])
        with pytest.raises(ValueError, match="predict_proba needs link='logit'"):
            KernelModel([[1.0]], [1.0]).predict_proba([[1.0]])

    def test_kernel_that_cancels(self):
        model = KernelModel([[1.0], [1.0]], [1.0, -1.0])
        with pytest.raises(ValueError, match="dual_coef cancel: alpha' K alpha is 0 beside terms"):
            model.distance([[0.0]])

    @pytest.mark.parametrize(
        ("module", "match"),
        [
            (torch.nn.Linear(2, 3), r"module gives shape \(1, 3\) for 1 rows; accepted: \(1,\)"),
            (torch.nn.Linear(3, 1), "module fails on rows of 2 features: .*"),
        ],
    )
    def test_module_of_another_shape(self, module, match):
        with pytest.raises(ValueError, match=match):
            TorchModel(module).distance([[1.0, 2.0]])

    def test_module_without_gradient(self):
        class Detached(torch.nn.Module):
            def forward(self, rows):
                return rows.detach()[:, 0]

        with pytest.raises(
            ValueError, match="module gives a score without a gradient in its input"
        ):
            TorchModel(Detached()).distance([[1.0, 2.0]])

    def test_module_with_missing_scores(self):
        class Log(torch.nn.Module):
            def forward(self, rows):
                return rows[:, 0].log()

        with pytest.raises(ValueError, match="module gives nan in row 1, and no finite score in 1"):
            TorchModel(Log()).decision([[1.0], [-1.0]])

    @pytest.mark.parametrize(
        ("model", "kind", "match"),
        [
            (tree.DecisionTreeClassifier(), TypeError, "whose score is piecewise constant"),
            (
                ensemble.RandomForestClassifier(),
                TypeError,
                r"RandomForestClassifier, .*y_score=model.predict_proba\(X\)\[:, 1\] with "
                'calibration="permutation"',
            ),
            (ensemble.HistGradientBoostingClassifier(), TypeError, "piecewise constant"),
            (naive_bayes.GaussianNB(), TypeError, "GaussianNB, for which there is no closed form"),
            (linear_model.LogisticRegression(), ValueError, "without classes_, so it is not"),
            (linear_model.LogisticRegression, TypeError, "model is the class LogisticRegression"),
            (linear_model.Ridge(), TypeError, "threshold is missing, and a Ridge predicts numbers"),
            (lambda X: X, TypeError, "model is a function; accepted: a LinearModel"),
        ],
    )
    def test_adapt(self, model, kind, match):
        with pytest.raises(kind, match=match):
            models.adapt(model)

    def test_three_classes(self):
        X, _, _, _ = make(n=90)
        model = linear_model.RidgeClassifier().fit(X, np.arange(90) % 3)
        with pytest.raises(
            ValueError, match="RidgeClassifier with 3 classes; accepted: two classes"
        ):
            models.adapt(model)

    def test_kernels_of_sklearn(self):
        X, y, _, _ = make(n=50)
        with pytest.raises(
            ValueError, match="SVC with kernel='sigmoid'; accepted: linear, rbf, poly"
        ):
            models.adapt(svm.SVC(kernel="sigmoid").fit(X, y))

    @pytest.mark.parametrize(
        ("steps", "kind", "match"),
        [
            (
                [preprocessing.PolynomialFeatures(), linear_model.LogisticRegression()],
                TypeError,
                "step 'polynomialfeatures' is a PolynomialFeatures; accepted before a linear model",
            ),
            (
                [preprocessing.MinMaxScaler(clip=True), linear_model.LogisticRegression()],
                ValueError,
                "step 'minmaxscaler' clips, which is not linear",
            ),
            ([preprocessing.StandardScaler(), svm.SVC()], TypeError, "Pipeline that ends in SVC"),
            (
                [preprocessing.StandardScaler(), tree.DecisionTreeClassifier()],
                TypeError,
                "DecisionTreeClassifier, whose score is piecewise constant",
            ),
        ],
    )
    def test_pipelines(self, steps, kind, match):
        X, y, _, _ = make(n=60)
        with pytest.raises(kind, match=match):
            models.adapt(pipeline.make_pipeline(*steps).fit(X, y))


class TestKnownValues:
    # w = (3, -4), margin of (1, 0) is 3 - 8 = -5; of (3, 1) it is 9 - 4 - 8 = -3.
    @pytest.mark.parametrize(
        ("norm", "expected", "moved"),
        [
            ("l1", 5 / 4, (1.0, -1.25)),
            ("l2", 1.0, (1.6, -0.8)),
            ("linf", 5 / 7, (1 + 5 / 7, -5 / 7)),
        ],
    )
    def test_linear(self, norm, expected, moved):
        distances = LinearModel([3.0, -4.0], -8.0).distance([[1.0, 0.0]], norm)
        assert distances.kind == f"linear, {norm}"
        assert distances.values == pytest.approx([expected], rel=1e-15)
        assert distances.moved([0]) == pytest.approx(np.array([moved]), rel=1e-14)

    def test_mahalanobis(self):
        # w' M w = 4 * 9 + 16 = 52, along M w = (12, -4).
        model = LinearModel([3.0, -4.0], -8.0)
        distances = model.distance([[1.0, 0.0]], "mahalanobis", covariance=np.diag([4.0, 1.0]))
        assert distances.values == pytest.approx([5 / np.sqrt(52)], rel=1e-15)
        assert distances.moved([0]) == pytest.approx(np.array([[1 + 60 / 52, -20 / 52]]))

    def test_immovable_features_are_given_in_a_mahalanobis_cost(self):
        # Given the first, the second varies by 1 - 0.8^2 = 0.36, not by 1.
        model = LinearModel([1.0, 1.0], threshold=0.0)
        distances = model.distance(
            [[0.0, 3.0]], "mahalanobis", covariance=[[1, 0.8], [0.8, 1]], immovable=0
        )
        assert distances.values == pytest.approx([3 / 0.6])
        assert distances.moved([0]) == pytest.approx(np.array([[0.0, 0.0]]), abs=1e-12)

    def test_jump(self):
        # Sliding costs 2; a jump costs 0.5 and takes the score from 2 to 0.25, which is left.
        model = LinearModel([1.0, 1.75], threshold=0.0)
        distances = model.distance([[0.25, 1.0], [-9.0, 0.0]], discrete=[1], discrete_cost=0.5)
        assert distances.values.tolist() == [0.75, 7.75]
        assert distances.kind == "linear, l2, 1 discrete at 0.5"
        assert distances.moved([0, 1]) == pytest.approx(
            np.array([[0.0, 0.0], [-1.75, 1.0]]), abs=1e-12
        )

    def test_nothing_may_move(self):
        distances = LinearModel([1.0, 0.0]).distance([[1.0, 1.0], [0.0, 2.0]], immovable=[0])
        assert distances.values.tolist() == [np.inf, np.inf]
        assert np.isnan(distances.moved([0, 1])).all()

    def test_thresholds(self):
        logistic = LinearModel([1.0])
        assert (logistic.link, logistic.boundary) == ("logit", 0.0)
        strict = LinearModel([1.0], threshold=0.8)
        assert (strict.link, strict.boundary) == ("logit", pytest.approx(np.log(4), rel=1e-15))
        margin = LinearModel([1.0], threshold=0.0)
        assert (margin.link, margin.boundary) == ("identity", 0.0)
        score = LinearModel([1.0], threshold=0.5, link="identity")
        assert (score.link, score.boundary) == ("identity", 0.5)
        assert (KernelModel([[1.0]], [1.0]).link, KernelModel([[1.0]], [1.0]).boundary) == (
            "identity",
            0.0,
        )
        assert KernelModel([[1.0]], [1.0], link="logit").threshold == 0.5
        assert strict.with_threshold(0.5).boundary == 0.0
        assert strict.threshold == 0.8

    def test_probabilities(self):
        model = LinearModel([1.0])
        expected = [0.0, 1 / (1 + np.e), 0.5, 1.0]
        assert model.predict_proba([[-1000.0], [-1.0], [0.0], [1000.0]]) == pytest.approx(expected)

    def test_kernel(self):
        # f(0) = 1 - exp(-2), alpha' K alpha = 2 - 2 exp(-2).
        model = KernelModel([[0.0], [2.0]], [1.0, -1.0], gamma=0.5)
        distances = model.distance([[0.0], [1.0], [2.0]])
        expected = (1 - np.exp(-2)) / np.sqrt(2 - 2 * np.exp(-2))
        assert distances.values == pytest.approx([expected, 0, expected])
        assert (distances.kind, distances.upper_bound) == ("rbf kernel", False)
        assert distances.moved([0])[0, 0] == pytest.approx(1.0, rel=1e-12)

    def test_constant_kernel_model(self):
        distances = KernelModel([[0.0]], [0.0], 1.0).distance([[0.0]])
        assert distances.values.tolist() == [np.inf]
        assert np.isnan(distances.moved([0])).all()

    def test_kernel_model_with_one_decision(self):
        distances = KernelModel([[0.0]], [1.0], 1.0).distance([[0.0], [3.0]])
        assert np.isnan(distances.moved([0, 1])).all()

    def test_score_distance(self):
        distances = models.score_distance(pl.Series([0.2, 0.5, 0.9]), threshold=0.5)
        assert distances.values == pytest.approx([0.3, 0.0, 0.4])
        assert distances.decisions.tolist() == [False, True, True]
        assert distances.kind == "score margin"
        assert distances.moved([0]) is None

    def test_distances_are_an_array(self):
        distances = Distances([1.0, np.inf], [0, 1])
        assert len(distances) == 2
        assert np.asarray(distances).tolist() == [1.0, np.inf]
        assert np.asarray(distances, dtype=np.float32).dtype == np.float32
        assert distances.signed.tolist() == [-1.0, np.inf]
        assert repr(distances) == "Distances(2 rows, given, 1 decided 1)"


class TestReference:
    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("immovable", [[], [2], [0, 4]])
    def test_linear(self, norm, immovable):
        X, _, coef, intercept = make(n=6)
        options = options_of(norm)
        got = LinearModel(coef, intercept).distance(X, immovable=immovable, **options)
        expected = [reference.linear(x, coef, intercept, immovable=immovable, **options) for x in X]
        assert got.values == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("immovable", [[], [1], [0, 2]])
    @pytest.mark.parametrize("given", [False, True])
    def test_jumps(self, norm, immovable, given):
        rng = np.random.default_rng(5)
        X, _, coef, _ = make(n=25)
        coef = coef / [1, 1, 1, 10, 1]
        discrete = [4, 0, 1]
        X[:, discrete] = rng.integers(0, 2, size=(25, 3))
        intercept = -float(np.median(X @ coef))
        allowed = np.unique(X[:, discrete], axis=0)
        extra = {}
        if given:
            # Rows of other combinations may not jump.
            allowed = np.array([[0.0, 1, 0], [1, 1, 0], [1, 0, 1], [0, 2, 1]])
            extra = {"discrete_values": allowed}
        options = {**options_of(norm), "immovable": immovable, "discrete": discrete}
        got = LinearModel(coef, intercept).distance(X, discrete_cost=0.3, **extra, **options)
        expected = [
            reference.linear(x, coef, intercept, jump_cost=0.3, allowed=allowed, **options)
            for x in X
        ]
        assert got.values == pytest.approx(expected, rel=1e-6)
        if not given:
            # Both kinds of moves occur, so both are tested.
            slid = LinearModel(coef, intercept).distance(
                X, immovable=sorted({*immovable, *discrete}), **options_of(norm)
            )
            assert (got.values < slid.values).any()

    def test_nothing_but_jumps(self):
        rng = np.random.default_rng(2)
        X = rng.integers(0, 3, size=(60, 3)).astype(float)
        coef = np.array([1.0, -2.0, 0.5])
        options = {"discrete": [0, 1], "immovable": [2]}
        got = LinearModel(coef, 0.25, threshold=0.0).distance(X, discrete_cost=1.0, **options)
        allowed = np.unique(X[:, :2], axis=0)
        expected = [
            reference.linear(x, coef, 0.25, "l2", jump_cost=1.0, allowed=allowed, **options)
            for x in X
        ]
        assert got.values.tolist() == expected
        moved = got.moved(range(60))
        assert np.array_equal(moved[:, 2], X[:, 2])

    @pytest.mark.parametrize("kernel", ["linear", "polynomial"])
    def test_kernels_with_a_feature_map(self, kernel):
        rng = np.random.default_rng(0)
        points, alpha, X = rng.normal(size=(30, 2)), rng.normal(size=30), rng.normal(size=(50, 2))

        def features(x):
            if kernel == "linear":
                return x
            # (0.5 x.z + 1)^2 = phi(x).phi(z)
            a, b = np.sqrt(0.5) * x.T
            root = np.sqrt(2)
            return np.column_stack([np.ones(len(x)), root * a, root * b, a**2, b**2, root * a * b])

        w = alpha @ features(points)
        model = KernelModel(points, alpha, 0.3, kernel, gamma=0.5, degree=2, coef0=1.0)
        expected = np.abs(features(X) @ w + 0.3) / np.linalg.norm(w)
        assert model.distance(X).values == pytest.approx(expected, rel=1e-10)
        assert model.decision(X).tolist() == (features(X) @ w + 0.3 >= 0).tolist()

    def test_linear_kernel_is_the_linear_model(self):
        kernel = make_kernel("linear")
        linear = LinearModel(kernel.dual_coef @ kernel.support_vectors, 0.1, threshold=0.0)
        X = np.random.default_rng(0).normal(size=(40, 3))
        got, expected = kernel.distance(X), linear.distance(X)
        assert got.values == pytest.approx(expected.values, rel=1e-10)
        assert got.moved(range(40)) == pytest.approx(expected.moved(range(40)), abs=1e-10)

    def test_rbf(self):
        model = make_kernel("rbf")
        X = np.random.default_rng(0).normal(size=(20, 3))

        def kernel(a, b):
            return np.exp(-0.4 * ((a[:, None] - b[None]) ** 2).sum(axis=2))

        points, alpha = model.support_vectors, model.dual_coef
        score = kernel(X, points) @ alpha + 0.1
        assert model.decision_function(X) == pytest.approx(score, rel=1e-10)
        norm = np.sqrt(alpha @ kernel(points, points) @ alpha)
        assert model.distance(X).values == pytest.approx(np.abs(score) / norm, rel=1e-10)

    @pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
    def test_gradient(self, kernel):
        model = make_kernel(kernel)
        X = np.random.default_rng(0).normal(size=(5, 3))
        step = 1e-6
        for j, change in enumerate(step * np.eye(3)):
            rise = model.decision_function(X + change) - model.decision_function(X - change)
            assert model._gradient(X)[:, j] == pytest.approx(rise / (2 * step), rel=1e-5)

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_torch_against_many_points(self, norm):
        # Among the points of a fine grid that are decided otherwise hardly one is closer.
        module = make_module(p=2)
        model = TorchModel(module, dtype="float64")
        X = np.random.default_rng(1).normal(size=(40, 2))
        got = model.distance(X, norm)
        axis = np.linspace(-4, 4, 241)
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        decided = model.decision(grid)
        order = reference.ORDERS[norm]
        nearest = [
            np.linalg.norm(grid[decided != now] - x, ord=order, axis=1).min()
            for x, now in zip(X, got.decisions, strict=True)
        ]
        assert got.n_not_found == 0
        assert (got.values <= np.array(nearest) + 1e-9).mean() > 0.9
        assert (got.values > np.array(nearest) - 2 * (axis[1] - axis[0])).all()


class TestProperties:
    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("threshold", [0.5, 0.05, -3.0])
    @pytest.mark.parametrize("immovable", [[], [1, 2]])
    def test_moved_rows_flip_at_the_cost(self, norm, threshold, immovable):
        X, _, coef, intercept = make(n=2000)
        model = LinearModel(coef, intercept, threshold)
        distances = model.distance(X, immovable=immovable, **options_of(norm))
        moved = distances.moved(np.arange(2000))
        assert np.array_equal(moved[:, immovable], X[:, immovable])
        assert (model.decision(moved) != distances.decisions).all()
        # One at a time, sums may round otherwise.
        for row in range(50):
            assert model.decision(moved[row][None])[0] != distances.decisions[row]
        if threshold > 0:
            assert ((model.predict_proba(moved) >= threshold) != distances.decisions).all()
        covariance = make_covariance() if norm == "mahalanobis" else None
        costs = [reference.cost(change, norm, covariance) for change in moved - X]
        assert costs == pytest.approx(distances.values, rel=1e-10, abs=1e-12)

    def test_moved_rows_flip_after_jumps(self):
        X, _, coef, _ = make(n=1000)
        X[:, 1] = np.random.default_rng(0).integers(0, 3, size=1000)
        coef[1] = 5.0
        intercept = -float(np.median(X @ coef))
        model = LinearModel(coef, intercept)
        distances = model.distance(X, discrete=1, discrete_cost=0.7)
        moved = distances.moved(np.ones(1000, dtype=bool))
        jumped = moved[:, 1] != X[:, 1]
        assert 0 < jumped.sum() < 1000
        assert np.isin(moved[:, 1], [0, 1, 2]).all()
        assert (model.decision(moved) != distances.decisions).all()
        costs = np.linalg.norm(np.delete(moved - X, 1, axis=1), axis=1) + 0.7 * jumped
        assert costs == pytest.approx(distances.values, rel=1e-10, abs=1e-12)

    def test_rows_on_the_boundary(self):
        model = LinearModel([1.0, 2.0])
        X = np.array([[2.0, -1.0], [-0.2, 0.1]])
        distances = model.distance(X)
        assert distances.values == pytest.approx([0, 0], abs=1e-16)
        assert (model.decision(distances.moved([0, 1])) != distances.decisions).all()

    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("factor", [1e-200, 1e-3, 7.0, 1e150])
    def test_scaling_the_score_changes_nothing(self, norm, factor):
        X, _, coef, intercept = make()
        options = options_of(norm)
        one = LinearModel(coef, intercept, threshold=-0.2).distance(X, **options)
        other = LinearModel(
            factor * coef, factor * intercept, factor * -0.2, link="identity"
        ).distance(X, **options)
        assert other.values == pytest.approx(one.values, rel=1e-9)
        assert np.array_equal(other.decisions, one.decisions)

    @pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
    def test_scaling_a_kernel_model_changes_nothing(self, kernel):
        model = make_kernel(kernel)
        X = np.random.default_rng(0).normal(size=(50, 3))
        scaled = KernelModel(
            model.support_vectors,
            37 * model.dual_coef,
            37 * model.intercept,
            kernel,
            gamma=0.4,
            coef0=1.0,
        )
        assert scaled.distance(X).values == pytest.approx(model.distance(X).values, rel=1e-10)

    @pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
    def test_moved_rows_of_kernel_models_flip(self, kernel, monkeypatch):
        model = make_kernel(kernel)
        X = np.random.default_rng(0).normal(size=(300, 3))
        distances = model.distance(X)
        moved = distances.moved(np.arange(300))
        assert (model.decision(moved) != distances.decisions).all()
        # On the boundary, beside what the score is elsewhere.
        assert np.abs(model.decision_function(moved)).max() < 1e-9
        # Block by block the same.
        monkeypatch.setattr("fairaudit_rs.models.kernel._BLOCK", 400)
        again = make_kernel(kernel).distance(X)
        assert again.values == pytest.approx(distances.values, rel=1e-12)
        assert again.moved(np.arange(300)) == pytest.approx(moved, rel=1e-6, abs=1e-6)

    def test_far_rows_of_an_rbf_model_move_to_the_other_side(self):
        # The gradient is 0 there; the nearest support vector of the other side still is a way.
        model = KernelModel([[0.0, 0.0], [1.0, 0.0]], [1.0, -1.0], 0.1, gamma=2.0)
        X = np.array([[400.0, 400.0]])
        distances = model.distance(X)
        moved = distances.moved([0])
        assert model.decision(moved)[0] != distances.decisions[0]

    def test_stationary_rows_of_a_polynomial_model_move(self):
        # f = x^2 - 1 with gradient 0 at 0, and one that overflows where a step may lead.
        model = KernelModel([[1.0]], [1.0], -1.0, "polynomial", degree=2)
        moved = model.distance([[0.0], [0.5], [3.0]]).moved([0, 1, 2])
        assert moved[1:, 0] == pytest.approx([1, 1], rel=1e-12)
        steep = KernelModel([[1.0], [-1.0]], [1.0, 1e-9], -1.0, "polynomial", degree=99)
        assert steep.distance([[1e-3]]).moved([0])[0, 0] == pytest.approx(1, rel=1e-6)

    def test_kernels_far_from_zero_do_not_round(self):
        model = make_kernel("rbf")
        X = np.random.default_rng(0).normal(size=(50, 3))
        shifted = KernelModel(model.support_vectors + 1e6, model.dual_coef, 0.1, gamma=model.gamma)
        assert shifted.distance(X + 1e6).values == pytest.approx(
            model.distance(X).values, rel=1e-6, abs=1e-8
        )

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    @pytest.mark.parametrize("threshold", [0.5, 0.9])
    def test_torch_bounds_the_exact_distance(self, norm, threshold):
        X, _, coef, intercept = make(n=400)
        exact = LinearModel(coef, intercept, threshold).distance(X, norm)
        module = linear_module(coef, intercept)
        bound = TorchModel(module, threshold).distance(X, norm, batch_size=150)
        assert (bound.upper_bound, bound.kind) == (True, f"torch, {norm}")
        assert np.array_equal(bound.decisions, exact.decisions)
        assert (bound.values >= exact.values * (1 - 1e-12)).all()
        assert bound.values == pytest.approx(exact.values, rel=1e-6, abs=1e-12)

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    @pytest.mark.parametrize("dtype", [None, "float64"])
    @pytest.mark.parametrize("outputs", [1, 2])
    def test_moved_rows_of_modules_flip(self, norm, dtype, outputs):
        model = TorchModel(make_module(outputs=outputs), dtype=dtype)
        X = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
        distances = model.distance(X, norm)
        found = np.flatnonzero(np.isfinite(distances.values))
        assert len(found) + distances.n_not_found == 200
        assert len(found) > 150
        moved = distances.moved(found)
        assert (model.decision(moved) != distances.decisions[found]).all()
        costs = np.linalg.norm(moved - X[found], ord=reference.ORDERS[norm], axis=1)
        assert costs == pytest.approx(distances.values[found], rel=1e-9)

    def test_modules_are_left_as_they_were(self):
        module = make_module()
        module.train()
        module[1].eval()
        module[0].weight.requires_grad_(False)
        module(torch.ones(3, 4)).sum().backward()
        state = {name: value.clone() for name, value in module.state_dict().items()}
        modes = [part.training for part in module.modules()]
        flags = [tensor.requires_grad for tensor in module.parameters()]
        grads = [None if t.grad is None else t.grad.clone() for t in module.parameters()]
        X = np.random.default_rng(0).normal(size=(30, 4))
        model = TorchModel(module)
        with torch.no_grad():
            distances = model.distance(X)
        with torch.inference_mode():
            again = model.distance(X)
        assert np.array_equal(distances.values, again.values)
        assert modes == [part.training for part in module.modules()]
        assert flags == [tensor.requires_grad for tensor in module.parameters()]
        for before, tensor in zip(grads, module.parameters(), strict=True):
            assert (before is None and tensor.grad is None) or torch.equal(before, tensor.grad)
        for name, value in module.state_dict().items():
            assert torch.equal(value, state[name])

    def test_modules_are_left_as_they_were_after_errors(self):
        module = torch.nn.Linear(3, 1)
        with pytest.raises(ValueError, match="module fails on rows of 2 features"):
            TorchModel(module).distance([[1.0, 2.0]])
        assert module.training
        assert module.weight.requires_grad

    def test_rows_without_a_flip_are_infinite_and_counted(self):
        class Plateau(torch.nn.Module):
            def forward(self, rows):
                return torch.where(rows[:, 0] > 0, rows[:, 1], 1.0 + 0 * rows[:, 1])

        distances = TorchModel(Plateau()).distance([[1.0, 0.5], [-1.0, 0.5]])
        assert distances.values.tolist() == [pytest.approx(0.5), np.inf]
        assert distances.n_not_found == 1
        assert np.isnan(distances.moved([1])).all()

    def test_frames_are_read_by_name(self):
        X, _, coef, intercept = make(n=50, p=3)
        named = LinearModel(coef, intercept, feature_names=["a", "b", "c"])
        expected = named.distance(X, immovable="b")
        assert expected.feature_names == ("a", "b", "c")
        columns = {"c": X[:, 2], "other": ["text"] * 50, "a": X[:, 0], "b": X[:, 1]}
        for frame in (
            pd.DataFrame(columns),
            pl.DataFrame(columns),
            pl.DataFrame(columns).to_arrow(),
        ):
            assert np.array_equal(named.distance(frame, immovable="b").values, expected.values)
        # Without names the model takes the columns as they come, and the frame names them.
        unnamed = LinearModel(coef, intercept)
        for frame in (pd.DataFrame(X, columns=list("xyz")), pl.DataFrame(X, schema=list("xyz"))):
            got = unnamed.distance(frame, immovable=["y"])
            assert np.array_equal(got.values, expected.values)
            assert got.feature_names == ("x", "y", "z")
        for rows in (X.tolist(), np.asfortranarray(X), torch.tensor(X), X.astype(object)):
            assert np.array_equal(named.distance(rows, immovable=1).values, expected.values)

    def test_rows_may_be_permuted(self):
        X, _, coef, intercept = make(n=200)
        X[:, 0] = X[:, 0] > 0
        order = np.random.default_rng(0).permutation(200)
        options = {"discrete": [0], "discrete_cost": 0.1}
        one = LinearModel(coef, intercept).distance(X, **options)
        other = LinearModel(coef, intercept).distance(X[order], **options)
        assert other.values == pytest.approx(one.values[order], rel=1e-12)

    def test_pickle(self):
        X, _, coef, intercept = make(n=20)
        for model in (LinearModel(coef, intercept), make_kernel("rbf", p=5)):
            distances = model.distance(X)
            again = pickle.loads(pickle.dumps(distances))
            assert np.array_equal(again.moved([1, 2]), distances.moved([1, 2]), equal_nan=True)

    def test_import_loads_nothing_heavy(self):
        code = (
            "import sys, fairaudit_rs.models as m; m.LinearModel([1.0]).distance([[1.0]]); "
            "print([n for n in ('torch', 'sklearn', 'scipy', 'polars') if n in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.strip() == "[]", done.stderr


class TestAdapters:
    @pytest.mark.parametrize(
        ("estimator", "link"),
        [
            (linear_model.LogisticRegression(max_iter=5000), "logit"),
            (linear_model.LogisticRegression(fit_intercept=False, max_iter=5000), "logit"),
            (linear_model.SGDClassifier(loss="log_loss", random_state=0), "logit"),
            (discriminant_analysis.LinearDiscriminantAnalysis(), "logit"),
            (linear_model.SGDClassifier(random_state=0), "identity"),
            (linear_model.RidgeClassifier(), "identity"),
            (linear_model.Perceptron(random_state=0), "identity"),
            (svm.LinearSVC(dual=False), "identity"),
            (svm.LinearSVC(dual=False, fit_intercept=False), "identity"),
            (
                pipeline.make_pipeline(
                    preprocessing.StandardScaler(), linear_model.LogisticRegression()
                ),
                "logit",
            ),
            (
                pipeline.make_pipeline(
                    preprocessing.MinMaxScaler((-1, 3)),
                    "passthrough",
                    preprocessing.StandardScaler(with_mean=False),
                    preprocessing.RobustScaler(),
                    preprocessing.MaxAbsScaler(),
                    svm.LinearSVC(dual=False),
                ),
                "identity",
            ),
            (
                model_selection.GridSearchCV(
                    linear_model.RidgeClassifier(), {"alpha": [0.1, 1.0]}, cv=2
                ),
                "identity",
            ),
            (svm.SVC(kernel="linear", max_iter=20_000), "identity"),
            (svm.SVC(gamma="scale"), "identity"),
            (svm.SVC(gamma="auto"), "identity"),
            (svm.SVC(gamma=0.2), "identity"),
            (svm.NuSVC(kernel="poly", degree=2, coef0=1.0, nu=0.3), "identity"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_classifiers(self, estimator, link):
        X, y, _, _ = make(n=150)
        X = (X - X.mean(axis=0)) / X.std(axis=0) * [1, 2, 1, 1, 1] + [0, 0, 1, 0, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(X, y)
        model = models.adapt(estimator)
        assert model.link == link
        score = estimator.decision_function(X)
        assert model.decision_function(X) == pytest.approx(score, rel=1e-9, abs=1e-9)
        assert np.array_equal(model.decision(X), estimator.predict(X) == 1)
        if link == "logit":
            assert model.predict_proba(X) == pytest.approx(estimator.predict_proba(X)[:, 1])
        moved = model.distance(X).moved(np.arange(150))
        assert (estimator.predict(moved) != estimator.predict(X)).all()
        stricter = models.adapt(estimator, threshold=0.7)
        assert stricter.link == link
        assert stricter.threshold == 0.7

    @pytest.mark.parametrize(
        "estimator",
        [
            linear_model.LinearRegression(),
            linear_model.Ridge(),
            linear_model.RidgeCV(),
            linear_model.Lasso(alpha=0.01),
            linear_model.ElasticNetCV(cv=2),
            pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge()),
            KernelRidge(kernel="rbf"),
            KernelRidge(kernel="polynomial", gamma=0.1, degree=2),
            KernelRidge(kernel="linear"),
        ],
        ids=lambda value: str(value)[:40],
    )
    @pytest.mark.parametrize("columns", [False, True])
    def test_regressions(self, estimator, columns):
        X, y, _, _ = make(n=80)
        target = (
            y[:, None] if columns and not isinstance(estimator, linear_model.ElasticNetCV) else y
        )
        estimator.fit(X, target)
        model = models.adapt(estimator, threshold=0.5)
        assert (model.link, model.boundary) == ("identity", 0.5)
        predicted = estimator.predict(X).ravel()
        assert model.decision_function(X) == pytest.approx(predicted, rel=1e-9, abs=1e-9)
        assert np.array_equal(model.decision(X), predicted >= 0.5)

    def test_names_of_features(self):
        X, y, _, _ = make(n=60, p=3)
        frame = pd.DataFrame(X, columns=["age", "debt", "zip"])
        fitted = pipeline.make_pipeline(
            preprocessing.StandardScaler(), linear_model.LogisticRegression()
        ).fit(frame, y)
        model = models.adapt(fitted)
        assert model.feature_names == ("age", "debt", "zip")
        distances = model.distance(frame[["zip", "age", "debt"]], immovable=["age"])
        assert np.array_equal(distances.moved([0])[:, 0], X[:1, 0])

    def test_what_is_a_model_already(self):
        class Own:
            def decision_function(self, X): ...
            def decision(self, X): ...
            def predict_proba(self, X): ...
            def distance(self, X): ...

        own, linear = Own(), LinearModel([1.0])
        assert models.adapt(own) is own
        assert models.adapt(linear) is linear
        assert models.adapt(linear, threshold=0.9).threshold == 0.9
        assert isinstance(linear, models.Model)
        with pytest.raises(
            TypeError, match="threshold is only for models that are converted, and this Own"
        ):
            models.adapt(own, threshold=0.5)

    def test_modules(self):
        model = models.adapt(make_module(), threshold=0.3)
        assert isinstance(model, TorchModel)
        assert model.threshold == 0.3
