"""Behaviour of every public result: it pickles, compares, prints, and makes a table."""

import copy
import dataclasses
import functools
import html
import importlib
import json
import pickle
import pkgutil
import re

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs.data.equality import are_equal
from fairaudit_rs.extremes.gev import block_maxima, fit_gev
from fairaudit_rs.extremes.problem import TailProblem
from fairaudit_rs.results.result import Result, Serializable

N = 400


def rows():
    rng = np.random.default_rng(3)
    group = rng.choice(["a", "b", "c"], N)
    label = (rng.random(N) < 0.4).astype(int)
    score = np.clip(0.3 * label + 0.6 * rng.random(N), 0.01, 0.99)
    return label, score, group


def comparison(function, **options):
    label, score, group = rows()
    return lambda: function(label, score > 0.5, sensitive_features=group, **options)


def two_models(metric, **options):
    label, score, group = rows()
    first, second = score, np.clip(score + 0.05 * label, 0, 1)
    if metric != "auc":
        first, second = first > 0.5, second > 0.5
    given = {"y_true": label, **options}
    return fa.compare_models(
        first=first, second=second, sensitive_features=group, metric=metric, **given
    )


def individual():
    rng = np.random.default_rng(4)
    features = rng.normal(size=(60, 3))
    labels = (features[:, 0] > 0).astype(int)
    model = fa.LinearModel([1.0, -0.5, 0.2], 0.1)
    metric = fa.FairMetric.directions(np.eye(3)[:1])
    return fa.individual_test(model, features, labels, fair_metric=metric, n_steps=5)


def influence(**options):
    label, score, group = rows()
    features = {"x": score.round(1), "z": np.random.default_rng(5).random(N) > 0.5}
    return fa.influence_audit(
        label, score > 0.5, X=features, sensitive_features=group, target="a", n_draws=50, **options
    )


def tails():
    rng = np.random.default_rng(6)
    values = rng.normal(size=800)
    return fa.extreme_test(
        y_score=values,
        counterfactual_score=values + rng.normal(size=800),
        sensitive_features=np.arange(800) % 2,
        upper=None,
    )


def counterfactual():
    """A feature that goes with the group and with the decision."""
    rng = np.random.default_rng(0)
    woman = rng.random(2_000) < 0.5
    part_time = (rng.random(2_000) < 0.3) | (woman & (rng.random(2_000) < 0.4))
    y_pred = rng.random(2_000) < np.where(part_time, 0.2, 0.5)
    return fa.influence_audit(
        y_pred=y_pred, X={"part_time": part_time}, sensitive_features=woman, target=True,
        metric="selection_rate", n_draws=50, rng=1,
    )  # fmt: skip


def augmented():
    rng = np.random.default_rng(0)
    X = {"sex": rng.integers(0, 2, 1_000), "income": rng.normal(size=1_000)}

    def model(X):
        return 1 / (1 + np.exp(-X["income"] - (0.5 + 0.3 * X["income"]) * X["sex"]))

    return fa.extreme_test(
        model, X, attribute="sex", horizon=200, generator="bootstrap", n_resamples=9, rng=1
    )


class Scaled:
    """Nothing is fitted."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        positive = 1 / (1 + np.exp(-self.scale * X[:, 0] - 0.1 * X[:, 1]))
        return np.stack([1 - positive, positive], axis=1)


def searched():
    rng = np.random.default_rng(8)
    X = np.stack([rng.normal(size=2_000), rng.random(2_000) < 0.5], axis=1)
    y = (X[:, 0] + rng.normal(size=2_000) > 0).astype(int)

    return fa.ecd_search(
        Scaled,
        X,
        y,
        space={"scale": [0.5, 1.0, 2.0]},
        attribute=1,
        n_settings=3,
        horizon=100,
        rng=1,
    )


#: Calls by the class of what they return.
MADE = {
    "PermutationResult": {
        "two groups": comparison(
            fa.permutation_test, metric="tpr", groups=["a", "b"], n_resamples=99, rng=1
        ),
        "three groups": comparison(fa.permutation_test, metric="tpr", n_resamples=99, rng=1),
        "joint": comparison(fa.permutation_test, metric="equalized_odds", n_resamples=99, rng=1),
        "few rows": lambda: fa.permutation_test(
            y_pred=[1, 0, 1, 1], sensitive_features=[0, 0, 1, 1], metric="selection_rate"
        ),
        "no interval": lambda: fa.permutation_test(
            rows()[0],
            y_score=rows()[1],
            sensitive_features=rows()[2],
            metric="calibration_error",
            n_resamples=99,
            rng=1,
        ),
        "booleans": lambda: fa.permutation_test(
            y_pred=rows()[0],
            sensitive_features={"old": rows()[1] > 0.5, "place": rows()[2]},
            metric="selection_rate",
            n_resamples=99,
            rng=1,
        ),
        "correlation": lambda: fa.permutation_test(
            *rows()[:1],
            y_score=rows()[1],
            sensitive_features=np.arange(N),
            metric="pearson",
            n_resamples=99,
            rng=1,
        ),
    },
    "IntervalResult": {"": comparison(fa.intervals, metric="f1", n_resamples=99, rng=1)},
    "EquivalenceResult": {"": comparison(fa.equivalence_test, metric="tpr", margin=0.2)},
    "ModelComparison": {
        "two groups": lambda: two_models(groups=["a", "b"], metric="tpr"),
        "three groups": lambda: two_models(metric="f1"),
        "scores": lambda: two_models(metric="auc", n_resamples=99, rng=1),
        "no labels": lambda: two_models(metric="selection_rate", y_true=None),
    },
    "CalibrationReport": {
        "": comparison(fa.calibrate, metric="tpr", n_audits=10, gaps=[0.1], rng=1)
    },
    "PowerPlan": {
        "gap": comparison(fa.minimum_detectable_gap, metric="tpr"),
        "size": lambda: fa.sample_size(0.1, metric="tpr", value=0.5),
    },
    "ProjectionResult": {
        "": lambda: fa.projection_test(rows()[0], y_score=rows()[1], sensitive_features=rows()[2]),
        "tolerance": lambda: fa.projection_test(
            rows()[0], y_score=rows()[1], sensitive_features=rows()[2] == "a", epsilon=0.5
        ),
    },
    "Moves": {
        "": lambda: (
            fa.projection_test(rows()[0], y_score=rows()[1], sensitive_features=rows()[2]).moves
        )
    },
    "IndividualResult": {"": individual},
    "UnfairExamples": {
        "": lambda: individual().unfair_examples(3),
        "none": lambda: individual().unfair_examples(1),
    },
    "InfluenceResult": {"": influence},
    "AlignmentResult": {"": lambda: influence(metric="divergence")},
    "Counterfactual": {"": lambda: counterfactual().descend(tolerance=0.2, rng=1)},
    "Repair": {"": lambda: counterfactual().repair(rng=1)},
    "ExtremeResult": {"": tails, "generated rows": augmented},
    "TailFit": {
        "": lambda: fa.fit_tail(np.random.default_rng(7).normal(size=500)),
        "no fit": lambda: fa.fit_tail(np.repeat([0.0, 1.0], 200)),
    },
    "GevFit": {"": lambda: fit_gev(block_maxima(np.arange(400.0) * 7 % 97, block_size=20))},
    "SearchResult": {"": searched},
    "Audit": {
        "fail": lambda: fa.audit(
            rows()[0],
            rows()[0] * (rows()[2] == "a"),
            y_score=rows()[1],
            sensitive_features={"place": rows()[2], "old": rows()[1] > 0.5},
            n_resamples=99,
            rng=1,
        ),
        "lenses of a model": lambda: fa.audit(
            rows()[0],
            rows()[1] > 0.5,
            sensitive_features={"place": rows()[2] == "a"},
            model=fa.LinearModel([1.0, 0.5], -0.5, feature_names=["score", "place"]),
            X=pl.DataFrame({"score": rows()[1], "place": (rows()[2] == "a") * 1.0}),
            rng=1,
        ),
        "ratio": lambda: fa.audit(
            y_pred=rows()[0],
            sensitive_features={"place": rows()[2], "age": np.arange(N) % 70},
            rng=1,
        ),
        "not measurable": lambda: fa.audit(
            rows()[0][:40], rows()[0][:40], sensitive_features=rows()[2][:40], rng=1
        ),
        "not asked": lambda: fa.audit(
            y_pred=rows()[0], sensitive_features=rows()[2], policy="nyc_ll144", rng=1
        ),
    },
    "Quality": {
        "": lambda: fa.generator_quality({"x": np.arange(40)}, {"x": np.arange(40) // 2}, rng=0)
    },
}
#: Public classes that no function returns as what it found.
NO_RESULTS = {
    "Cells", "LinearModel", "KernelModel", "TorchModel", "MulticlassModel", "FairMetric", "Notion",
    "SmoothedBootstrap", "GaussianCopula", "TVAE", "CTGAN", "TopUps", "Policy", "Criterion",
}  # fmt: skip
CASES = [(kind, case) for kind, cases in MADE.items() for case in cases]


@functools.cache
def made(kind, case):
    return MADE[kind][case]()


@pytest.fixture(params=CASES, ids=lambda case: "-".join(filter(None, case)))
def result(request):
    return made(*request.param)


def classes():
    return {name for name in fa.__all__ if isinstance(getattr(fa, name), type)}


def test_every_public_class_is_a_result_of_these_or_named_as_none():
    assert classes() == MADE.keys() | NO_RESULTS
    for name in MADE:
        assert issubclass(getattr(fa, name), Serializable)
        assert all(type(made(name, case)).__name__ == name for case in MADE[name])


def test_every_result_of_the_package_is_public():
    """So that `from_dict` finds its class."""
    for module in pkgutil.walk_packages(fa.__path__, "fairaudit_rs."):
        if not module.name.startswith(("fairaudit_rs.cli", "fairaudit_rs._native")):
            importlib.import_module(module.name)
    found, new = set(), {Serializable}
    while new:
        found |= new
        new = {kind for parent in new for kind in parent.__subclasses__()} - found
    found = {kind for kind in found if kind.__module__.startswith("fairaudit_rs.")}
    bases = {"Serializable", "Result", "Finding", "StratifiedFinding"}
    assert {kind.__name__ for kind in found} - bases == MADE.keys()


def test_a_pickle_says_the_same(result):
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert hash(again) == hash(result)
    assert str(again) == str(result)
    assert again != "something else"
    assert copy.copy(result) == result


def test_json_and_back(result):
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert content["kind"] == type(result).__name__
    assert content["schema_version"] == 3
    for again in (fa.from_dict(content), type(result).from_dict(content)):
        assert type(again) is type(result)
        assert again == result
        assert hash(again) == hash(result)
        assert str(again) == str(result)
        assert repr(again) == repr(result)
        assert again._repr_html_() == result._repr_html_()
        assert again.to_dict() == result.to_dict()
        assert pickle.loads(pickle.dumps(again)) == again
        exactly(again, result)


def exactly(again, result):
    """Fields are the same to the last bit and type."""
    for entry in dataclasses.fields(result):
        if entry.name not in result._not_in_dict:
            mine, theirs = getattr(again, entry.name), getattr(result, entry.name)
            assert are_equal(mine, theirs), entry.name
            assert repr(mine) == repr(theirs), entry.name


def test_what_dicts_leave_out_is_asked_for_in_vain(result):
    again = fa.from_dict(result.to_dict())
    fields = {entry.name for entry in dataclasses.fields(result)} - {"_compute_x"}
    for name in result._not_in_dict & fields:
        with pytest.raises(fa.errors.NotStoredError, match=f"{name} is not there: this"):
            getattr(again, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = again.nothing


def test_tables(result):
    frame = result.to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert len(frame) > 0
    assert "<table" in result._repr_html_()
    assert repr(result).startswith(type(result).__name__ + "(")
    if not isinstance(result, Result):
        return
    content = result.to_dict()
    assert content["summary"] == result.summary()
    assert len(frame) == len(result.rows())
    assert result._repr_html_().startswith("<div><p>")
    for table in result.tables:
        assert len(result.to_frame(table)) > 0
    assert result.to_frame(result.tables[0]).equals(frame)
    with pytest.raises(fa.errors.ArgumentError, match="table is 'nothing'; accepted: '"):
        result.to_frame("nothing")
    if getattr(result, "group_sizes", None):
        groups = result.to_frame("groups")
        page = result._repr_html_()
        assert all(html.escape(str(name)) in page for name in groups["group"])
        assert set(groups["n_rows"]) == set(result.group_sizes.values())
        assert set(groups["group"]) == set(groups["group"].unique())
    else:
        assert "groups" not in result.tables or isinstance(result, fa.Audit)


#: Names that say nothing to people who have no statistics: they go to the details and notes.
TECHNICAL = re.compile(
    r"studentized|bonferroni|\bholm\b|score test|one-sided|two-sided|permutation test|melded|"
    r"\bmover\b|newcombe|bootstrap|asymptotic|projection test|\bt with|degrees of freedom|"
    r"inversion|mantel",
    re.IGNORECASE,
)


def test_sentences_have_no_names_of_methods(result):
    if not isinstance(result, Result):
        return
    assert not TECHNICAL.search(result.summary()), result.summary()
    assert (f"\nDetails: {result.details}." in str(result)) == bool(result.details)


def test_names_of_methods_are_in_the_details():
    results = [(kind, made(kind, case)) for kind, case in CASES]
    named = {kind for kind, value in results if isinstance(value, Result) and value.details}
    assert named >= {
        "PermutationResult", "EquivalenceResult", "IntervalResult", "ModelComparison",
        "ProjectionResult", "IndividualResult", "ExtremeResult",
    }  # fmt: skip


def test_repr_names_the_metric(result):
    metric = getattr(result, "metric", None)
    if isinstance(metric, str):
        assert metric in repr(result)


def test_the_tail_of_a_dict_says_what_it_said():
    tail = fa.from_dict(made("TailFit", "").to_dict())
    assert tail.return_levels == made("TailFit", "").return_levels
    assert tail.feasibility() == made("TailFit", "").feasibility()
    with pytest.raises(fa.errors.NotStoredError, match="problem is not there: this TailFit came"):
        tail.return_level(50)


def test_what_needs_rows_says_so():
    again = fa.from_dict(made("InfluenceResult", "").to_dict())
    with pytest.raises(fa.errors.NotStoredError, match="problem is not there: this Influence"):
        again.descend(tolerance=0.1)
    with pytest.raises(fa.errors.NotStoredError, match="correction is not there"):
        _ = again.correction
    again = fa.from_dict(made("IndividualResult", "").to_dict())
    with pytest.raises(fa.errors.NotStoredError, match="attacked is not there"):
        _ = again.attacked


class TestRefusals:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ([], "content is a list; accepted: a dict that `to_dict` returned"),
            ({}, "kind is None; accepted: the class of a result"),
            ({"kind": "Result"}, "kind is 'Result'; accepted: the class of a result"),
            ({"kind": "LinearModel"}, "kind is 'LinearModel'; accepted: the class of a result"),
            ({"kind": ["a"]}, r"kind is \['a'\]; accepted: the class of a result"),
            ({"kind": "PowerPlan", "schema_version": 1}, "schema_version is 1; accepted: 3"),
            ({"kind": "PowerPlan", "schema_version": 2}, "metric is missing. Pass an unchanged"),
        ],
    )
    def test_what_is_no_dict_of_a_result(self, content, message):
        with pytest.raises((fa.errors.DataError, fa.errors.ArgumentTypeError), match=message):
            fa.from_dict(content)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"kind": "TailFit"}, "kind is 'TailFit'; accepted: 'PowerPlan'"),
            ({"gap": "much"}, "gap: holds 'much'; accepted: a number"),
            ({"gap": 10**400}, "gap: int too large to convert to float"),
            ({"metric": 3}, "metric: holds 3; accepted: str"),
            ({"group_sizes": [1]}, r"group_sizes: holds \[1\]; accepted: an object"),
            ({"group_sizes": {"[1": 1}}, "group_sizes: Expecting"),
        ],
    )
    def test_what_is_no_field(self, changed, message):
        content = made("PowerPlan", "size").to_dict() | changed
        with pytest.raises(fa.errors.DataError, match=message):
            fa.PowerPlan.from_dict(content)

    @pytest.mark.parametrize("word", ["maybe", ["pass"], None, 3])
    def test_words_are_those_that_there_are(self, word):
        content = made("Audit", "ratio").to_dict() | {"verdict": word}
        with pytest.raises(fa.errors.DataError, match=r"verdict: holds .*; accepted: 'fail', 'inc"):
            fa.from_dict(content)


def test_other_data_make_other_results():
    assert made("PowerPlan", "size") != fa.sample_size(0.2, metric="tpr", value=0.5)


def test_problems_equal_their_copies_and_go_on():
    audit = made("InfluenceResult", "").problem
    again = pickle.loads(pickle.dumps(audit))
    assert again == audit
    assert are_equal(again.encodings.native.ends, audit.encodings.native.ends)
    tail = TailProblem(values=np.random.default_rng(7).normal(size=500))
    other = pickle.loads(pickle.dumps(tail))
    assert other == tail != TailProblem(values=tail.values + 1.0)
    assert other.sorted.n == tail.sorted.n
