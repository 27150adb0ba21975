"""ColumnTransformer and pipelines before linear models and networks."""

import pickle
import warnings

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors, models
from fairaudit_rs.data.indicators import Indicator

pd = pytest.importorskip("pandas")
compose = pytest.importorskip("sklearn.compose")
ensemble = pytest.importorskip("sklearn.ensemble")
impute = pytest.importorskip("sklearn.impute")
linear_model = pytest.importorskip("sklearn.linear_model")
network = pytest.importorskip("sklearn.neural_network")
preprocessing = pytest.importorskip("sklearn.preprocessing")
pipeline = pytest.importorskip("sklearn.pipeline")

N = 400
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "name": [f"person {i}" for i in range(N)],
        "age": RNG.integers(20, 70, N),
        "job": RNG.choice(["clerk", "cook", "nurse"], N),
        "income": RNG.lognormal(3, 0.5, N),
        "floor": RNG.integers(1, 4, N),
        "owner": RNG.random(N) < 0.3,
    }
)
Y = (FRAME["age"] + 10 * (FRAME["job"] == "cook") + RNG.normal(0, 10, N) > 48).astype(int)

Scaler, OneHot = preprocessing.StandardScaler, preprocessing.OneHotEncoder
TRANSFORMERS = {
    "numbers": [("n", Scaler(), ["income", "age"])],
    "levels": [("n", Scaler(), ["income", "age"]), ("c", OneHot(), ["job", "floor"])],
    "levels first": [("c", OneHot(), ["job"]), ("n", preprocessing.MinMaxScaler(), ["age"])],
    "first dropped": [("c", OneHot(drop="first"), ["job", "owner"]), ("n", "passthrough", ["age"])],
    "if binary": [("c", OneHot(drop="if_binary"), ["owner", "job"])],
    "named drop": [("c", OneHot(drop=["cook"]), ["job"]), ("d", "drop", ["name"])],
    "pipelines": [
        (
            "n",
            pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.RobustScaler()),
            ["age", "income"],
        ),
        (
            "c",
            pipeline.make_pipeline(
                impute.SimpleImputer(strategy="most_frequent"), OneHot(handle_unknown="ignore")
            ),
            ["job"],
        ),
    ],
    "indicators scaled": [
        ("c", pipeline.make_pipeline(OneHot(), Scaler(with_mean=False)), ["job"]),
        ("n", preprocessing.MaxAbsScaler(), ["age"]),
    ],
    "twice": [("n", Scaler(), ["age"]), ("m", "passthrough", ["age", "income"])],
    "by position": [("n", Scaler(), [1, 3]), ("c", OneHot(), slice(2, 3))],
    "by slice": [("n", "passthrough", slice("income", "floor"))],
    "by kind": [
        ("n", Scaler(), compose.make_column_selector(dtype_include=np.number)),
        ("c", OneHot(), [False, False, True, False, False, False]),
    ],
}


def transformer(kind, **options):
    return compose.ColumnTransformer(TRANSFORMERS[kind], **options)


def fit(*steps):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pipeline.make_pipeline(*steps).fit(FRAME, Y)


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_scores_are_those_of_the_pipeline(kind):
    fitted = fit(transformer(kind), linear_model.LogisticRegression(max_iter=2_000))
    ours = models.adapt(fitted)
    assert isinstance(ours, fa.LinearModel)
    assert ours.decision_function(FRAME) == pytest.approx(
        fitted.decision_function(FRAME), rel=1e-9, abs=1e-9
    )
    assert ours.predict_proba(FRAME) == pytest.approx(fitted.predict_proba(FRAME)[:, 1])
    shuffled = pl.DataFrame(FRAME).select(sorted(FRAME.columns))
    assert np.array_equal(ours.decision_function(shuffled), ours.decision_function(FRAME))
    again = pickle.loads(pickle.dumps(ours))
    assert again == ours
    assert np.array_equal(again.decision_function(FRAME), ours.decision_function(FRAME))


@pytest.mark.parametrize(
    "options",
    [
        {"remainder": "passthrough"},
        {"remainder": preprocessing.StandardScaler()},
        {"transformer_weights": {"n": 0.5}},
        {"verbose_feature_names_out": False},
    ],
    ids=str,
)
def test_options_of_column_transformers(options):
    steps = [("n", Scaler(), ["age"]), ("c", OneHot(), ["job"]), ("d", "drop", ["name"])]
    fitted = fit(
        compose.ColumnTransformer(steps, **options), linear_model.LogisticRegression(max_iter=5_000)
    )
    ours = models.adapt(fitted)
    assert ours.decision_function(FRAME) == pytest.approx(
        fitted.decision_function(FRAME), rel=1e-9, abs=1e-9
    )


def test_features_are_numbers_in_their_units_and_indicators():
    ours = models.adapt(fit(transformer("levels"), linear_model.LogisticRegression()))
    names = ("age", "job_clerk", "job_cook", "job_nurse", "income", "floor_1", "floor_2", "floor_3")
    assert ours.feature_names == names
    # Dropped levels are features that play no part; dropped columns are none.
    dropped = models.adapt(fit(transformer("first dropped"), linear_model.LogisticRegression()))
    assert dropped.feature_names == (
        *("age", "job_clerk", "job_cook", "job_nurse", "owner_False", "owner_True"),
    )
    assert (dropped.coef[[1, 4]] == 0).all()


def test_encoded_rows_are_read_too():
    ours = models.adapt(fit(transformer("levels"), linear_model.LogisticRegression()))
    encoded = pd.DataFrame(
        {
            name: FRAME[name.column] == name.value if isinstance(name, Indicator) else FRAME[name]
            for name in ours.feature_names
        }
    )
    assert np.array_equal(ours.decision_function(encoded), ours.decision_function(FRAME))
    assert np.array_equal(
        ours.decision_function(encoded.to_numpy(dtype=float)), ours.decision_function(FRAME)
    )


def test_distances_live_in_the_features():
    ours = models.adapt(fit(transformer("levels"), linear_model.LogisticRegression()))
    distances = ours.distance(FRAME)
    moved = distances.moved(np.arange(N))
    assert moved.shape == (N, 8)
    assert ours.decision_function(moved) == pytest.approx(ours.boundary, abs=1e-6)
    held = ours.distance(FRAME, immovable=["job_clerk", "job_cook", "job_nurse"])
    assert (held.values >= distances.values).all()
    result = fa.projection_test(
        Y.to_numpy(), distance=distances, sensitive_features=FRAME["job"].to_numpy()
    )
    assert set(result.group_sizes) == {"clerk", "cook", "nurse"}
    assert result.moves.feature_names == ours.feature_names


def test_flows_live_in_the_features():
    fitted = fit(transformer("first dropped"), linear_model.LogisticRegression())
    metric = fa.FairMetric.directions(np.eye(6)[1:4])
    result = fa.individual_test(fitted, FRAME, Y, fair_metric=metric, n_steps=5)
    assert result.unfair_examples(2).feature_names == models.adapt(fitted).feature_names


def test_a_fair_metric_of_dummies_fits():
    fitted = fit(transformer("first dropped"), linear_model.LogisticRegression())
    dummies = pd.get_dummies(FRAME[["job", "owner", "age"]], columns=["job", "owner"])
    metric = fa.FairMetric.subspace(dummies, FRAME["owner"])
    raw = fa.individual_test(fitted, FRAME, Y, fair_metric=metric, n_steps=5)
    encoded = fa.individual_test(fitted, dummies, Y, fair_metric=metric, n_steps=5)
    assert raw.estimate == encoded.estimate


def test_networks_of_both_kinds_of_libraries():
    torch = pytest.importorskip("torch")
    net = network.MLPClassifier((4,), max_iter=20, random_state=0)
    for kind in ("levels", "first dropped", "pipelines"):
        fitted = fit(transformer(kind), net)
        ours = models.adapt(fitted)
        assert isinstance(ours, fa.TorchModel)
        with torch.no_grad():
            assert ours.predict_proba(FRAME) == pytest.approx(fitted.predict_proba(FRAME)[:, 1])


def test_several_classes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        several = pipeline.make_pipeline(
            transformer("levels"), linear_model.LogisticRegression()
        ).fit(FRAME, np.arange(N) % 3)
    ours = models.sklearn.multiclass_from_sklearn(several)
    assert ours.predict_proba(FRAME) == pytest.approx(several.predict_proba(FRAME))


def test_arrays_without_names():
    X = FRAME[["age", "income", "floor"]].to_numpy(dtype=float)
    steps = [("n", Scaler(), [0, 2])]
    fitted = pipeline.make_pipeline(
        compose.ColumnTransformer(steps), linear_model.LogisticRegression()
    ).fit(X, Y)
    ours = models.adapt(fitted)
    assert ours.feature_names is None
    assert ours.coef[1] == 0
    assert ours.decision_function(X) == pytest.approx(fitted.decision_function(X))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            [("o", preprocessing.OrdinalEncoder(), ["job"])],
            "step 'columntransformer: o' is a O",
        ),
        ([("p", preprocessing.PolynomialFeatures(), ["age"])], "is a PolynomialFeatures; accept"),
        ([("c", OneHot(min_frequency=200), ["job"])], "merges rare categories"),
        (
            [("n", preprocessing.MinMaxScaler(clip=True), ["age"])],
            "clips, which is not linear. Refit it with clip=False",
        ),
        (
            [("n", impute.SimpleImputer(missing_values=20), ["age"])],
            r"a SimpleImputer with missing_values=20 .*; accepted: missing_values=nan",
        ),
        (
            [("n", pipeline.make_pipeline(Scaler(), OneHot()), ["floor"])],
            "encodes columns that an earlier step has changed",
        ),
    ],
)
def test_what_is_no_affine_map_is_refused(steps, message):
    fitted = fit(compose.ColumnTransformer(steps), linear_model.LogisticRegression())
    with pytest.raises(errors.FairAuditError, match=message):
        models.adapt(fitted)


def test_levels_without_names_are_refused():
    X = FRAME[["age", "floor"]].to_numpy()
    fitted = pipeline.make_pipeline(
        compose.ColumnTransformer([("c", OneHot(), [1])], remainder="passthrough"),
        linear_model.LogisticRegression(),
    ).fit(X, Y)
    with pytest.raises(errors.ArgumentTypeError, match="a OneHotEncoder of columns without names"):
        models.adapt(fitted)


def test_values_that_the_model_does_not_know():
    strict = models.adapt(fit(transformer("levels"), linear_model.LogisticRegression()))
    lenient = fit(transformer("pipelines"), linear_model.LogisticRegression())
    other = FRAME.assign(job=["pilot", *FRAME["job"][1:]])
    with pytest.raises(
        errors.DataError, match="column 'job' of X holds 'pilot'; accepted: values that the model"
    ):
        strict.decision_function(other)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = lenient.decision_function(other)
    assert models.adapt(lenient).decision_function(other) == pytest.approx(theirs)
    gap = FRAME.assign(job=[None, *FRAME["job"][1:]])
    with pytest.raises(errors.DataError, match="column 'job' of X is missing in 1 of 400 rows"):
        strict.decision_function(gap)


def test_forests_are_told_where_to_go():
    forest = ensemble.RandomForestClassifier(5, random_state=0)
    ordinal = [("o", preprocessing.OrdinalEncoder(), ["job"])]
    for fitted in (
        fit(transformer("levels"), forest),
        fit(compose.ColumnTransformer(ordinal), forest),
        forest.fit(FRAME[["age", "income"]], Y),
    ):
        with pytest.raises(errors.ArgumentTypeError, match=r"RandomForestClassifier, .* y_score="):
            models.adapt(fitted)
        metric = fa.FairMetric.directions([[1.0]])
        message = r"is a RandomForestClassifier, .* extreme_test\(model, X, attribute=\.\.\.\) "
        with pytest.raises(errors.ArgumentTypeError, match=message):
            fa.individual_test(fitted, FRAME, Y, fair_metric=metric)
    # Where the messages lead.
    scores = forest.predict_proba(FRAME[["age", "income"]])[:, 1]
    found = fa.projection_test(
        Y.to_numpy(), y_score=scores, sensitive_features=FRAME["owner"].to_numpy(),
        calibration="permutation", n_resamples=19, rng=1,
    )  # fmt: skip
    assert 0 < found.pvalue <= 1
