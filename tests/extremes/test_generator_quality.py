"""How alike generated and real rows are said to be."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import linalg, stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score

from fairaudit_rs import errors
from fairaudit_rs.extremes.frame_rows import take_rows
from fairaudit_rs.extremes.generator_quality import Quality, generator_quality
from fairaudit_rs.extremes.logistic import MixedRidgeLogistic, area_under_curve

from .test_generators import rows

# --- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_folds": 1}, "n_folds is 1; accepted"),
        ({"n_folds": 900}, "n_folds is 900; accepted: at most 400, the number of rows of"),
        ({"target": "retired"}, "target needs test too. Pass target= and test="),
        ({"test": rows(50)}, "test needs target too. Pass target= and test="),
        ({"target": "sex", "test": rows(50)}, "target is 'sex'; accepted: a column of real"),
        ({"target": "job", "test": rows(50)}, "target 'job' has 3 levels; accepted: a column of"),
        ({"target": "age", "test": rows(50)}, "target 'age' has more than ten levels"),
        ({"target": "retired", "test": rows(50), "estimator": 3}, "estimator is 3, which has no"),
    ],
)
def test_arguments(options, message):
    with pytest.raises(errors.FairAuditError, match=message):
        generator_quality(rows(), rows(), rng=0, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: {"age": X["age"]}, "generated has the columns 'age'; accepted: those of X"),
        (
            lambda X: take_rows(X, np.zeros(1, np.intp)),
            "generated has 1 rows; accepted: at least 2",
        ),
        (lambda X: {**X, "retired": np.zeros(400, bool)}, "the same in all rows of generated"),
    ],
)
def test_generated_rows_that_cannot_be_compared(change, message):
    with pytest.raises(errors.DataError, match=message):
        generator_quality(rows(), change(rows()), target="retired", test=rows(), rng=0)


# --- known values -----------------------------------------------------------------------------


def test_a_divergence_by_hand():
    """Half a row more in each of two levels: 3.5, 1.5 of 5 against 1.5, 3.5 of 5."""
    real, generated = {"x": ["a", "a", "a", "b"]}, {"x": ["a", "b", "b", "b"]}
    found = generator_quality(real, generated, n_folds=2, rng=0)
    divergence = 0.7 * math.log(0.7 / 0.3) + 0.3 * math.log(0.3 / 0.7)
    assert found.column_scores == {"x": pytest.approx(math.exp(-divergence))}
    assert found.column_score == pytest.approx(math.exp(-divergence))


def test_a_level_that_no_real_row_has_is_one_more():
    """Half a row more in each of three levels: 0.5, 2.5, 2.5 of 5.5 against 1.5, 2.5, 1.5."""
    real, generated = {"x": ["a", "a", "b", "b"]}, {"x": ["a", "a", "b", "c"]}
    found = generator_quality(real, generated, n_folds=2, rng=0)
    p, q = np.array([0.5, 2.5, 2.5]) / 5.5, np.array([1.5, 2.5, 1.5]) / 5.5
    assert found.column_score == pytest.approx(math.exp(-p @ np.log(p / q)))


def test_equal_rows_and_rows_apart():
    same = generator_quality(rows(), rows(), rng=0)
    assert set(same.column_scores.values()) == {1.0}
    assert same.frechet == pytest.approx(0, abs=1e-6)
    assert math.isnan(same.f1_loss)
    apart = {"x": np.arange(50.0)}
    found = generator_quality(apart, {"x": np.arange(50.0) + 100}, rng=0)
    assert (found.detection_auc, found.detection_score) == (1.0, 0.0)
    # Of equal spread, apart by 100 in units of the spread.
    assert found.frechet == pytest.approx((100 / np.arange(50).std()) ** 2)


# --- reference --------------------------------------------------------------------------------


def test_the_regression_against_scikit_learn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    y = (x @ [1, -2, 0.5, 0] + rng.logistic(size=300) > 0).astype(float)
    other = LogisticRegression(C=1.0, tol=1e-10, max_iter=1_000).fit(x, y)
    mine = MixedRidgeLogistic().fit(x, y)
    np.testing.assert_allclose(mine.coef, [*other.intercept_, *other.coef_[0]], atol=1e-5)
    assert (mine.predict(x) == other.predict(x)).all()
    score = np.round(mine.predict_proba(x)[:, 1], 1)
    assert area_under_curve(score, y) == pytest.approx(roc_auc_score(y, score))


def test_separated_labels_end():
    x = np.linspace(-1, 1, 40)[:, None] * 1e6
    assert (
        MixedRidgeLogistic().fit(x, (x[:, 0] > 0).astype(float)).predict(x) == (x[:, 0] > 0)
    ).all()


def test_the_distance_of_frechet_against_a_matrix_root():
    rng = np.random.default_rng(1)
    both = [
        {"a": rng.normal(size=500), "b": rng.normal(size=500)},
        {"a": rng.normal(1, 2, 500), "b": rng.exponential(size=500)},
    ]
    found = generator_quality(*both, rng=0).frechet
    scaled = [
        np.column_stack([(X[k] - both[0][k].mean()) / both[0][k].std() for k in "ab"]) for X in both
    ]
    m = scaled[0].mean(0) - scaled[1].mean(0)
    S, T = (np.cov(x.T, ddof=0) for x in scaled)
    assert found == pytest.approx(m @ m + np.trace(S + T - 2 * linalg.sqrtm(S @ T).real))


def test_f1_against_scikit_learn_with_an_estimator_of_the_user():
    X, generated, test = rows(300, 1), rows(300, 2), rows(200, 3)
    test["job"][:20] = "king"
    estimator = LogisticRegression(max_iter=1_000)
    found = generator_quality(X, generated, target="retired", test=test, estimator=estimator, rng=0)
    assert not hasattr(estimator, "coef_")

    def design(of):
        flags = [(of["job"] == job).astype(float) for job in ("clerk", "cook", "nurse")]
        numbers = [(of[k] - X[k].mean()) / X[k].std() for k in ("income", "age", "gain")]
        return np.column_stack([*numbers, *flags])

    expected = []
    for value in (X, generated):
        fit = LogisticRegression(max_iter=1_000).fit(design(value), value["retired"])
        expected.append(f1_score(test["retired"], fit.predict(design(test))))
    assert (found.f1_real, found.f1_generated) == pytest.approx(tuple(expected), abs=0.02)
    assert found.f1_loss == found.f1_real - found.f1_generated


# --- properties -------------------------------------------------------------------------------


def test_the_order_of_rows_plays_no_part():
    X, generated = rows(300, 1), rows(200, 2)
    order = np.random.default_rng(0)
    shuffled = [take_rows(value, order.permutation(len(value["age"]))) for value in (X, generated)]
    expected = generator_quality(X, generated, rng=3).rows()
    assert generator_quality(*shuffled, rng=3).rows() == expected


def test_independent_columns_are_told_apart_from_dependent_ones():
    X = rows(2_000, 1)
    rng = np.random.default_rng(2)
    alone = {name: rng.permutation(column) for name, column in X.items()}
    like, unlike = (generator_quality(rows(2_000, 4), record, rng=0) for record in (X, alone))
    assert unlike.column_score > 0.98
    assert unlike.frechet > 5 * like.frechet
    test = rows(500, 5)
    found = generator_quality(X, alone, target="retired", test=test, rng=0)
    assert found.f1_loss > 0.2
    assert [row["measure"] for row in found.rows()[-3:]] == ["f1_real", "f1_generated", "f1_loss"]


def test_a_quality_cannot_be_changed():
    found = generator_quality(rows(), rows(), rng=5)
    assert isinstance(found, Quality)
    assert (found.n_real, found.n_generated, found.seed) == (400, 400, 5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.frechet = 0.0


# --- calibration ------------------------------------------------------------------------------


@pytest.mark.calibration
def test_a_law_is_not_told_apart_from_itself():
    """The mean AUC over 100 pairs of samples of one law is 0.5 within 5 standard errors."""
    found = [
        generator_quality(rows(200, seed), rows(200, seed + 1_000), rng=seed).detection_auc
        for seed in range(100)
    ]
    assert abs(np.mean(found) - 0.5) < 5 * stats.sem(found)
