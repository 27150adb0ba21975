"""Data that break careless code: finite answers, or refusals that name the reason."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairaudit_rs as fa
from fairaudit_rs import errors

N = 800


def make(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((n, 3)) < (0.5, 0.3, 0.6), rng.normal(size=n)]).astype(float)
    y = (rng.random(n) < 1 / (1 + np.exp(-X @ (1.0, -1.0, 0.5, 0.8)))).astype(int)
    return X, y, rng.choice(["t", "o"], n), LogisticRegression().fit(X, y)


def audit(X, y, group, model=None, **options):
    given = {"X": X, "sensitive_features": group, "target": "t", "n_draws": 99, "rng": 1}
    if model is not None:
        given |= {"model": model}
    return fa.influence_audit(y, **given, **options)


def held(result):
    return {score.feature: score for score in result.proxy_scores if score.kind != "marginal"}


def assert_finite_or_refused(result):
    for score in result.proxy_scores:
        numbers = (
            score.estimate,
            score.low,
            score.high,
            score.simultaneous_low,
            score.simultaneous_high,
        )
        known = all(math.isfinite(number) for number in numbers)
        assert known or score.note.startswith("refused: "), score
    assert result.to_dict()
    assert str(result)


def test_a_constant_feature():
    X, y, group, model = make()
    X = np.column_stack([X, np.full(N, 3.0)])
    model = LogisticRegression().fit(X, y)
    result = audit(X, y, group, model)
    assert_finite_or_refused(result)
    assert [score.note for score in result.proxy_scores if score.feature == "x5"] == [
        "refused: constant in the target group",
        "refused: constant in the target group",
    ]


def test_a_feature_that_is_the_group():
    """The group is what a feature says: P(S | X) is 0 or 1, and the feature constant in it."""
    X, y, group, _ = make()
    X[:, 0] = group == "t"
    model = LogisticRegression().fit(X, y)
    result = audit(X, y, group, model)
    assert_finite_or_refused(result)
    notes = {score.note for score in result.proxy_scores if score.feature == "x1"}
    assert "refused: constant in the target group" in notes


def test_features_that_determine_others():
    X, y, group, _ = make()
    X = np.column_stack([X, 1 - X[:, 0], X[:, 3] * 2 + 1])
    model = LogisticRegression().fit(X, y)
    result = audit(X, y, group, model)
    assert_finite_or_refused(result)
    for name in ("x1", "x4", "x5", "x6"):
        assert held(result)[name].note == "refused: the other features determine it"


def test_labels_that_features_determine():
    X, _, group, _ = make()
    y = X[:, 0].astype(int)
    model = LogisticRegression().fit(X, y)
    assert_finite_or_refused(audit(X, y, group, model))


def test_empty_cells():
    """No row of the target group has the feature and label 1."""
    X, y, group, model = make()
    X[(group == "t") & (y == 1), 1] = 0.0
    result = audit(X, y, group, metric="true_positive_rate", y_score=np.full(N, 0.5))
    assert_finite_or_refused(result)
    (one,) = (score for score in result.proxy_scores if score.feature == "x2")
    assert one.note.startswith("refused: ")
    X, y, group, model = make()
    X[(group == "t") & (y == 1), 1] = 0.0
    assert_finite_or_refused(audit(X, y, group, model))


def test_a_target_of_five_rows():
    X, y, group, model = make()
    group = np.where(np.arange(N) < 5, "t", "o")
    y[:5] = [0, 1, 0, 1, 0]
    result = audit(X, y, group, model)
    assert_finite_or_refused(result)
    assert all(score.note for score in result.proxy_scores)


def test_a_label_that_one_group_lacks():
    X, y, group, model = make()
    for lacking in ("t", "o"):
        all_one = np.where(group == lacking, 1, y)
        with pytest.raises(errors.NotMeasurableError, match="has no rows in the denominator"):
            audit(X, all_one, group, model)


def test_a_model_that_ignores_every_feature():
    X, y, group, _ = make()
    model = fa.LinearModel([0.0] * 4, 0.3)
    result = audit(X, y, group, model)
    assert_finite_or_refused(result)
    assert result.estimate == pytest.approx(0, abs=1e-12)
    assert "inconclusive" in result.summary()
    assert {score.note for score in result.proxy_scores} == {"refused: the same in every row"}


def test_a_gap_that_may_be_0():
    X, y, _, model = make()
    group = np.random.default_rng(5).choice(["t", "o"], N)
    result = audit(X, y, group, model)
    assert "direction in which a feature moves it is not known" in " ".join(result.warnings)


def test_text_of_ten_thousand_levels():
    rng = np.random.default_rng(0)
    n = 20_000
    X = {"name": np.array([f"n{i % 10_000}" for i in range(n)]), "x": rng.normal(size=n)}
    y, f = rng.integers(0, 2, n), rng.random(n)
    with pytest.raises(errors.DataError, match="'name' has 10,000 levels; accepted: at most 200"):
        audit(X, y, rng.choice(["t", "o"], n), y_score=f)


def test_weights_and_clusters_are_refused_with_the_reason():
    X, y, group, model = make()
    for name in ("sample_weight", "clusters"):
        with pytest.raises(errors.ArgumentError, match=f"{name} is not supported by influence"):
            audit(X, y, group, model, **{name: np.ones(N)})


@pytest.mark.parametrize("metric", ["false_discovery_rate", "positive_predictive_value"])
def test_nobody_selected(metric):
    X, y, group, _ = make()
    with pytest.raises(errors.NotMeasurableError, match="has no rows in the denominator"):
        audit(X, y, group, y_pred=np.where(group == "t", 0, y), metric=metric)


def test_no_label_of_one_among_the_rows_without_a_feature():
    """The influence values of the score are all 0 then: rounding leaves no variance below 0."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = (rng.random(400) < 0.5).astype(float)
        y = ((rng.random(400) < 0.3) & (x == 1)).astype(int)
        group = np.where(np.arange(400) % 2, "t", "o")
        (one,) = audit(
            x[:, None], y, group, y_score=rng.random(400), metric="false_negative_rate"
        ).proxy_scores
        assert one.note == "refused: 0 events in a cell, 5 are needed"
