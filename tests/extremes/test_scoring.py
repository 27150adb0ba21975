"""Scores of any model for rows and their counterfactuals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import fairaudit_rs as fa
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, DataError
from fairaudit_rs.extremes.attribute import read_attribute
from fairaudit_rs.extremes.feature_tables import wrap_features
from fairaudit_rs.extremes.flips import flips_of
from fairaudit_rs.extremes.scoring import probability_of, score_rows

from ..reference import extremes as reference
from .designs import labels, one_hot, people, pipeline


def scored(model, X, attribute, rows=None, pos_label=None, **options):
    table = wrap_features(X)
    rows = np.arange(table.n_rows, dtype=np.int64) if rows is None else rows
    flips = flips_of(None, table, read_attribute(attribute, table))
    return score_rows(probability_of(model, pos_label), table, flips, rows, **options)


def other_sex(X):
    return X.assign(sex=np.where(X.sex == "man", "woman", "man"))


@pytest.fixture(scope="module")
def frame():
    return people()


@pytest.fixture(scope="module")
def fitted(frame):
    return pipeline(frame, labels(frame))


# --- arguments --------------------------------------------------------------------------------


def giving(value):
    return lambda X: np.full(len(X), value)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (LogisticRegression, ArgumentTypeError, "model is the class LogisticRegression"),
        (LinearSVC(), ArgumentTypeError, "model is a LinearSVC without predict_proba; accepted"),
        (3, ArgumentTypeError, "model is a int without predict_proba"),
        (giving(np.nan), DataError, r"model returns nan for X, row \d+; accepted: probabilit"),
        (giving(1.5), DataError, r"model returns 1\.5 for X, row \d+; accepted: probabil"),
        (giving(-0.1), DataError, r"model returns -0\.1 for X, row"),
        (lambda X: np.zeros(3), DataError, r"shape \(3,\) for \d+ rows; accepted: a probability"),
        (lambda X: np.zeros((len(X), 3)), DataError, r"shape \(\d+, 3\)"),
        (lambda X: 0.5, DataError, r"array of shape \(\)"),
        (lambda X: ["a"] * len(X), DataError, "model does not return an array of num"),
        (torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Softmax(1)), ArgumentError, "Softmax"),
    ],
)
def test_models_that_are_none(frame, model, error, message):
    with pytest.raises(error, match=message):
        scored(model, frame, "sex")


def test_the_row_of_a_bad_probability_is_that_of_the_user(frame):
    with pytest.raises(DataError, match="model returns nan for X, row 17;"):
        scored(lambda X: np.where(X.index == 17, np.nan, 0.5), frame.assign(x=range(600)), "sex")
    bad = (frame.sex == "man").to_numpy().argmax()
    only = frame.iloc[[bad]]

    def model(X):
        return np.where((X.sex == "woman") & (X.income == only.income.iloc[0]), np.nan, 0.5)

    rows = np.array([bad])
    with pytest.raises(DataError, match=f"for the counterfactual of row {bad};"):
        scored(model, frame, "sex", rows=rows)


@pytest.mark.parametrize(
    ("pos_label", "message"),
    [("yes", r"pos_label is 'yes', which is no class of the model; its classes: 0, 1")],
)
def test_a_favourable_label_that_is_none(fitted, pos_label, message):
    with pytest.raises(ArgumentError, match=message):
        probability_of(fitted, pos_label)


def test_a_function_knows_of_no_labels():
    with pytest.raises(ArgumentTypeError, match="pos_label is 1 and model is a function"):
        probability_of(giving(0.5), 1)


def test_several_classes_need_the_favourable_one(frame):
    y = np.random.default_rng(0).choice(["bad", "good", "fair"], len(frame))
    X = frame[["age", "income", "married"]]
    model = LogisticRegression(max_iter=1000).fit(X, y)
    with pytest.raises(ArgumentError, match=r"3 classes .*. Pass pos_label= to name"):
        scored(model, X, "married")
    found = scored(model, X, "married", pos_label="good")
    assert found.score == pytest.approx(model.predict_proba(X)[:, 2], abs=1e-12)


def test_text_in_a_dict_for_a_model(frame, fitted):
    X = {name: frame[name].tolist() for name in frame}
    with pytest.raises(ArgumentTypeError, match="X is a dict with text columns, which cannot"):
        scored(fitted, X, "sex")


# --- known values and reference ---------------------------------------------------------------


def test_a_logistic_model_by_hand():
    model = fa.LinearModel([2.0, 1.0], -1.0)
    found = scored(model, np.array([[0.0, 1.0], [1.0, 1.0]]), 0)
    low, high = 0.5, 1 / (1 + np.exp(-2))
    assert found.score == pytest.approx([low, high])
    assert found.discrimination == pytest.approx([high - low, low - high])


def test_it_is_the_difference_of_the_reference(frame, fitted):
    found = scored(fitted, frame, "sex")
    before, after = (fitted.predict_proba(X)[:, 1] for X in (frame, other_sex(frame)))
    wanted = reference.discrimination(before, after)
    assert found.score == pytest.approx(before, abs=1e-14)
    assert found.discrimination == pytest.approx(wanted, abs=1e-14)


def test_the_largest_over_several_levels(frame, fitted):
    found = scored(fitted, frame, "race")
    levels = frame.race.cat.categories
    before = fitted.predict_proba(frame)[:, 1]
    moved = [fitted.predict_proba(frame.assign(race=level))[:, 1] for level in levels]
    differences = np.array([reference.discrimination(before, value) for value in moved])
    differences[frame.race.cat.codes, np.arange(len(frame))] = -np.inf
    assert found.discrimination == pytest.approx(differences.max(axis=0), abs=1e-14)


def test_the_favourable_label_may_be_the_first(frame, fitted):
    good, bad = (scored(fitted, frame, "sex", pos_label=label) for label in (1, 0))
    assert bad.score == pytest.approx(1 - good.score, abs=1e-14)
    assert bad.discrimination == pytest.approx(-good.discrimination, abs=1e-14)
    ours = fa.LinearModel([2.0, 1.0], -1.0)
    X = np.array([[0.0, 1.0], [1.0, 1.0]])
    first, second = (scored(ours, X, 0, pos_label=label) for label in (0, 1))
    assert first.discrimination == pytest.approx(-second.discrimination)


def models_of_one_score(X):
    """The same probabilities from every kind of model."""
    linear = fa.LinearModel(np.linspace(-1, 1, X.shape[1]), 0.25)
    layer = torch.nn.Linear(X.shape[1], 1, dtype=torch.float64)
    with torch.no_grad():
        layer.weight[:] = torch.tensor(linear.coef[None])
        layer.bias[:] = linear.intercept
    of_two = torch.nn.Linear(X.shape[1], 2, dtype=torch.float64)
    with torch.no_grad():
        of_two.weight[:] = torch.tensor(np.stack([np.zeros(X.shape[1]), linear.coef]))
        of_two.bias[:] = torch.tensor([0.0, linear.intercept])

    def function(X):
        return linear.predict_proba(np.asarray(X, dtype=float))

    class Ours:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, X):
            p = function(X)
            return np.column_stack([1 - p, p])

    return {
        "ours": linear,
        "logit": layer,
        "two logits": of_two,
        "sigmoid": torch.nn.Sequential(layer, torch.nn.Sigmoid()),
        "TorchModel": fa.TorchModel(layer),
        "function": function,
        "column": lambda X: function(X)[:, None],
        "two columns": lambda X: Ours().predict_proba(X),
        "tensor": lambda X: torch.tensor(function(X), requires_grad=True),
        "series": lambda X: pd.Series(function(X)),
        "polars": lambda X: pl.Series(function(X)),
        "object": Ours(),
    }


@pytest.mark.parametrize("kind", list(models_of_one_score(np.zeros((1, 2)))))
def test_every_kind_of_model_gives_the_same(frame, kind):
    X = one_hot(frame, scaled=True).to_numpy()
    models = models_of_one_score(X)
    wanted, found = scored(models["ours"], X, [3, 4]), scored(models[kind], X, [3, 4])
    assert found.score == pytest.approx(wanted.score, abs=1e-14)
    assert found.discrimination == pytest.approx(wanted.discrimination, abs=1e-14)


def test_a_module_of_single_precision_may_round_past_1():
    X = np.array([[0.0, 1.0], [1.0, 1.0]])
    found = scored(lambda X: np.where(X[:, 0] == 1, np.float32(1 + 1.2e-7), 0.5), X, 0)
    assert found.score.tolist() == [0.5, 1.0]


# --- properties -------------------------------------------------------------------------------


def test_a_model_gets_what_it_was_fitted_on(frame, fitted):
    """A pipeline that picks columns by name and type takes no array: a wrong form would fail."""
    seen = []

    def model(X):
        seen.append((type(X), X.dtypes.to_dict()))
        return fitted.predict_proba(X)[:, 1]

    scored(model, frame, "race")
    assert len(seen) == 3
    assert all(row == (pd.DataFrame, frame.dtypes.to_dict()) for row in seen)


def test_a_dict_goes_to_a_model_as_an_array_and_to_a_function_as_a_dict(frame):
    X = {"married": frame.married.to_numpy(), "income": frame.income.to_numpy()}
    model = fa.LinearModel([1.0, 2.0])
    found = scored(model, X, "married")
    assert found.score == pytest.approx(model.predict_proba(np.column_stack(list(X.values()))))

    def function(X):
        return 1 / (1 + np.exp(-1.0 * X["married"] - 2 * X["income"]))

    by_name = scored(function, X, "married")
    assert by_name.discrimination == pytest.approx(found.discrimination)


def test_rows_that_are_alike_are_scored_once(frame):
    X = frame[["sex", "race"]]
    seen = []

    def model(X):
        seen.append(len(X))
        return np.where(X.sex == "man", 0.75, 0.25)

    found = scored(model, X, "sex")
    assert seen == [6, 6]
    assert found.n_scored == 12
    assert found.discrimination.tolist() == np.where(X.sex == "man", -0.5, 0.5).tolist()


@pytest.mark.parametrize("kind", ["logit", "forest", "linear", "single"])
def test_the_order_of_rows_changes_no_bit(kind):
    frame = people(3_000)
    X = one_hot(frame, scaled=True).to_numpy(dtype=np.float32 if kind == "single" else np.float64)
    if kind in ("logit", "single"):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(8, 33), torch.nn.ReLU(), torch.nn.Linear(33, 1)]
        model = torch.nn.Sequential(*layers)
    else:
        kinds = {"forest": RandomForestClassifier(5), "linear": LogisticRegression()}
        model = kinds[kind].fit(X, labels(frame))
    order = np.random.default_rng(1).permutation(len(X))
    found, moved = scored(model, X, [3, 4]), scored(model, X[order], [3, 4])
    assert np.array_equal(found.score[order], moved.score)
    assert np.array_equal(found.discrimination[order], moved.discrimination)


def test_a_model_that_rounds_by_place_gives_the_same_for_any_order(frame):
    """As matrix products may, but by more: rows scored in the order given would differ."""

    def model(X):
        return 0.5 + np.arange(len(X)) % 7 / 100 + 0.1 * (X.sex == "man").to_numpy()

    order = np.random.default_rng(1).permutation(len(frame))
    found, moved = scored(model, frame, "sex"), scored(model, frame.iloc[order], "sex")
    assert np.array_equal(found.score[order], moved.score)
    assert not np.array_equal(found.score, moved.score)
    assert np.array_equal(found.discrimination[order], moved.discrimination)
    blind = scored(lambda X: 0.5 + np.arange(len(X)) % 7 / 100, frame, "race", batch=50)
    assert not blind.discrimination.any()


@pytest.mark.parametrize("batch", [1, 7, 600, 100_000])
def test_the_size_of_batches_changes_nothing(frame, batch):
    def model(X):
        return 1 / (1 + np.exp(-X.income.to_numpy() - (X.sex == "man").to_numpy()))

    found, parts = scored(model, frame, "sex"), scored(model, frame, "sex", batch=batch)
    assert np.array_equal(found.score, parts.score)
    assert np.array_equal(found.discrimination, parts.discrimination)


@pytest.mark.parametrize("width", [1, 5, 30])
def test_a_model_that_ignores_the_attribute_gives_exactly_0(width):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_001, width + 1))
    X[:, 0] = np.where(rng.random(len(X)) < 0.3, 1.37, -0.73)
    model = fa.LinearModel(np.append(0.0, rng.normal(size=width)))
    assert not scored(model, X, 0).discrimination.any()


def test_progress_counts_rows_and_may_stop_the_call(frame, fitted):
    seen = []
    scored(fitted, frame, "race", batch=250, progress=lambda *at: seen.append(at))
    total = 3 * len(frame.drop_duplicates())
    assert seen == [(750, total), (1500, total), (total, total)]

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scored(fitted, frame, "race", progress=stop)


def test_only_the_rows_that_are_asked_for_are_scored(frame, fitted):
    rows = np.array([5, 3, 8])
    found, whole = scored(fitted, frame, "sex", rows=rows), scored(fitted, frame, "sex")
    assert found.discrimination == pytest.approx(whole.discrimination[rows], abs=1e-14)
    assert found.n_scored == 6
