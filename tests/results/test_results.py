"""What every public result has in common: it pickles, compares, prints, and makes a table."""

import json
import pickle

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs.data.equality import equal
from fairaudit_rs.extremes.problem import TailProblem
from fairaudit_rs.results.result import Result

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


def individual():
    rng = np.random.default_rng(4)
    features = rng.normal(size=(60, 3))
    labels = (features[:, 0] > 0).astype(int)
    model = fa.LinearModel([1.0, -0.5, 0.2], 0.1)
    metric = fa.FairMetric.directions(np.eye(3)[:1])
    return fa.individual_test(model, features, labels, fair_metric=metric, n_steps=5)


def influence():
    label, score, group = rows()
    features = {"x": score.round(1), "z": np.random.default_rng(5).random(N) > 0.5}
    return fa.influence_audit(
        label, score > 0.5, X=features, sensitive_features=group, target="a", n_draws=50
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


MADE = {
    "permutation_test": comparison(fa.permutation_test, metric="tpr", n_resamples=99, rng=1),
    "intervals": comparison(fa.intervals, metric="f1", n_resamples=99, rng=1),
    "equivalence_test": comparison(fa.equivalence_test, metric="tpr", margin=0.2),
    "calibrate": comparison(fa.calibrate, metric="tpr", n_audits=10, gaps=[0.1], rng=1),
    "minimum_detectable_gap": comparison(fa.minimum_detectable_gap, metric="tpr"),
    "sample_size": lambda: fa.sample_size(0.1, metric="tpr", value=0.5),
    "projection_test": lambda: fa.projection_test(
        rows()[0], y_score=rows()[1], sensitive_features=rows()[2]
    ),
    "individual_test": individual,
    "influence_audit": influence,
    "extreme_test": tails,
    "fit_tail": lambda: fa.fit_tail(np.random.default_rng(7).normal(size=500)),
}


@pytest.fixture(scope="module", params=MADE)
def result(request):
    return MADE[request.param]()


def test_it_is_a_result(result):
    assert isinstance(result, Result)


def test_a_pickle_says_the_same(result):
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert hash(again) == hash(result)
    assert str(again) == str(result)
    assert again != "something else"


def test_plain_values_and_tables(result):
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert content["kind"] == type(result).__name__
    assert content["summary"] == result.summary()
    frame = result.to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert len(frame) == len(result.rows()) > 0
    assert result._repr_html_().startswith("<div><p>")
    assert repr(result).startswith(type(result).__name__ + "(")


def test_other_data_make_other_results():
    assert MADE["sample_size"]() != fa.sample_size(0.2, metric="tpr", value=0.5)


def test_problems_equal_their_copies_and_go_on():
    audit = MADE["influence_audit"]().problem
    again = pickle.loads(pickle.dumps(audit))
    assert again == audit
    assert equal(again.coding.native.ends, audit.coding.native.ends)
    tail = TailProblem(values=np.random.default_rng(7).normal(size=500))
    copy = pickle.loads(pickle.dumps(tail))
    assert copy == tail != TailProblem(values=tail.values + 1.0)
    assert copy.sorted.n == tail.sorted.n
