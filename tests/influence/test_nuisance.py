"""Probabilities given features: the default regressions, others, and what is known already."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.influence import nuisance, regression_quality

from ..reference import influence as reference

N = 500


def rows(seed=0, n=N):
    """Binary and continuous features, folds, and labels that depend on some of them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([(rng.random((n, 3)) < 0.4).astype(float), rng.normal(size=(n, 2))])
    score = X @ [1.0, -0.5, 0.0, 0.7, -0.3] + 0.8 * X[:, 0] * X[:, 1] - 0.4
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)
    return X, y, np.arange(n) % 5


def regressors(X, folds, count=None):
    count = np.ones(len(X)) if count is None else count
    return nuisance.Regressors.from_features(X, count, folds, _native.Call(2))


class Mean:
    """An estimator that is not of scikit-learn: the share of positive rows by the first column."""

    def fit(self, X, y):
        self.shares = [y[X[:, 0] == at].mean() for at in (0, 1)]
        return self

    def predict_proba(self, X):
        p = np.where(X[:, 0] == 1, self.shares[1], self.shares[0])
        return np.column_stack([1 - p, p])


class Wrong(Mean):
    def predict_proba(self, X):
        return np.ones(len(X))


class TestArguments:
    def test_what_does_not_give_probabilities(self):
        X, y, folds = rows()
        with pytest.raises(errors.DataError, match=r"nuisance \(Wrong\) returned probabilities of"):
            _ = nuisance.fit_nuisance(regressors(X, folds), y, Wrong()).probabilities


class TestReference:
    @pytest.mark.parametrize("seed", range(4))
    def test_the_cross_fit(self, seed):
        X, y, folds = rows(seed)
        found = nuisance.fit_nuisance(regressors(X, folds), y)
        design = reference.default_basis(X).design(X)
        expected = reference.cross_fit_tuned(design, y, folds)
        assert found.penalty == expected.penalty
        for own, theirs in zip(found.coef_by_fold, expected.fits, strict=True):
            assert own == pytest.approx(theirs.coef, rel=1e-8, abs=1e-9)
        assert found.probabilities == pytest.approx(expected.predict(design), rel=1e-8)
        whole = reference.ridge_logistic(design, y, None, expected.penalty)
        assert found.coef == pytest.approx(whole.coef, rel=1e-8, abs=1e-9)
        assert found.hessian == pytest.approx(whole.hessian, rel=1e-7, abs=1e-7)

    def test_the_loss_of_every_penalty(self):
        X, y, folds = rows()
        found = nuisance.fit_nuisance(regressors(X, folds), y)
        design = reference.default_basis(X).design(X)
        for penalty, loss in zip(nuisance.PENALTIES, found.losses, strict=True):
            crossed = reference.cross_fit(design, y, folds, penalty)
            assert loss == pytest.approx(reference.log_loss(y, crossed.predict(design)), rel=1e-8)

    def test_kinds_with_counts_are_rows(self):
        X, y, folds = rows(n=3_000)
        X = X[:, :3]
        both, counts = np.unique(np.column_stack([X, y, folds]), axis=0, return_counts=True)
        fewer = regressors(both[:, :3], both[:, 4].astype(int), counts.astype(float))
        assert len(both) < 90
        one, other = (
            nuisance.fit_nuisance(regressors(X, folds), y),
            nuisance.fit_nuisance(fewer, both[:, 3]),
        )
        assert other.coef_by_fold == pytest.approx(one.coef_by_fold, rel=1e-9, abs=1e-12)

    @pytest.mark.parametrize("twice", [False, True])
    def test_least_squares(self, twice):
        X, y, folds = rows()
        X = X[:, [0, 1, 2, 3, 4, 0]] if twice else X
        found = regressors(X, folds).means(y, X[:, 3])
        design = reference.default_basis(X).design(X)
        for number, values in zip((y, X[:, 3]), found, strict=True):
            for fold in range(5):
                outside = folds != fold
                coef = np.linalg.lstsq(design[outside], number[outside], rcond=None)[0]
                assert values[~outside] == pytest.approx(design[~outside] @ coef, abs=1e-8)

    def test_what_a_row_adds(self):
        X, y, folds = rows()
        found = nuisance.fit_nuisance(regressors(X, folds), y)
        design = reference.default_basis(X).design(X)
        fit = reference.ridge_logistic(design, y, None, found.penalty)
        direction = np.cos(np.arange(design.shape[1]))
        expected = N * reference.change_of_fit(fit, design, y) @ direction
        assert found.influence(lambda *_: direction) == pytest.approx(expected, rel=1e-6, abs=1e-8)

    def test_quality(self):
        X, y, folds = rows()
        fitted = nuisance.fit_nuisance(regressors(X, folds), y)
        found, p = regression_quality.describe_fit("P(y = 1 | X)", fitted), fitted.probabilities
        pairs = p[y == 1][:, None] - p[y == 0]
        assert found.auc == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)
        assert (found.smallest, found.largest) == (p.min(), p.max())
        shares = [1 / e / (1 / e).sum() for e in (p[y == 1], 1 - p[y == 0])]
        assert found.largest_share == pytest.approx(max(share.max() for share in shares))
        logit = np.log(p / (1 - p))[:, None]
        plain = reference.ridge_logistic(np.column_stack([np.ones(N), logit]), y, None, 1e-9)
        assert found.calibration_slope == pytest.approx(plain.coef[1], rel=1e-6)
        bins = np.array_split(np.argsort(p, kind="stable"), 10)
        errors_of = [abs((y[value] - p[value]).mean()) for value in bins]
        assert found.calibration_error == pytest.approx(np.mean(errors_of), rel=1e-9)
        assert found.learner == "ridge logistic, main effects and products"


class TestProperties:
    def test_an_estimator_of_any_kind(self):
        X, y, folds = rows()
        fitted = nuisance.fit_nuisance(regressors(X, folds), y, Mean())
        outside, first = folds != 2, X[:, 0] == 1
        expected = y[outside & first].mean()
        assert fitted.probabilities[(folds == 2) & first] == pytest.approx(expected)
        assert fitted.predict(X[first]) == pytest.approx(y[first].mean())
        assert fitted.influence(lambda *_: np.zeros(1)) is None
        assert regression_quality.describe_fit("P", fitted).learner == "Mean"

    def test_a_fit_of_all_rows(self):
        X, y, folds = rows()
        fitted = nuisance.fit_nuisance(regressors(X, folds), y)
        design = reference.default_basis(X).design(X)
        whole = reference.ridge_logistic(design, y, None, fitted.penalty)
        assert fitted.predict(X) == pytest.approx(whole.predict(design), rel=1e-8)

    def test_no_features_leave_the_share(self):
        _, y, folds = rows()
        found = nuisance.fit_nuisance(regressors(np.empty((N, 0)), folds), y).probabilities
        for fold in range(5):
            assert found[folds == fold] == pytest.approx(y[folds != fold].mean(), rel=1e-9)

    @pytest.mark.parametrize("value", [0.0, 0.3])
    def test_constant_and_equal_columns(self, value):
        X, y, folds = rows()
        more = np.column_stack([X, np.full(N, value), X[:, 0]])
        found = nuisance.fit_nuisance(regressors(more, folds), y)
        assert np.isfinite(found.coef).all()
        plain = nuisance.fit_nuisance(regressors(X, folds), y)
        assert found.losses.min() == pytest.approx(plain.losses.min(), rel=0.02)

    @pytest.mark.parametrize("label", [0.0, 1.0])
    def test_one_label(self, label):
        X, _, folds = rows()
        found = nuisance.fit_nuisance(regressors(X, folds), np.full(N, label)).probabilities
        assert found == pytest.approx(np.full(N, label), abs=1e-6)

    def test_separated_labels(self):
        X, _, folds = rows()
        found = nuisance.fit_nuisance(regressors(X, folds), (X[:, 3] > 0).astype(float))
        assert np.isfinite(found.probabilities).all()
        assert found.penalty == min(nuisance.PENALTIES)

    def test_one_row(self):
        found = nuisance.fit_nuisance(
            regressors(np.ones((1, 2)), np.zeros(1, dtype=int)), np.ones(1)
        )
        assert np.isfinite(found.probabilities).all()

    def test_dealing(self):
        counts = np.array([1, 7, 2, 0, 11])
        kind, fold, number = nuisance.deal_folds(counts, 5)
        assert np.array_equal(np.bincount(kind, number, 5), counts)
        by_fold = np.bincount(fold, number, 5)
        assert by_fold.max() - by_fold.min() <= 1
        assert (number[kind == 1] >= 1).all()
        assert len(number[kind == 1]) == 5


def test_the_estimator_of_an_audit_is_that_of_its_descent_and_repair():
    rng = np.random.default_rng(3)
    X = (rng.random((3_000, 2)) < 0.4).astype(float)
    group = np.where(rng.random(3_000) < 0.3 + 0.4 * X[:, 0], "t", "o")
    y = (rng.random(3_000) < 0.3 + 0.3 * X[:, 1]).astype(int)
    model = fa.LinearModel([1.0, 1.0], -1.0)
    fits = []

    class Counting(LogisticRegression):
        def fit(self, X, y):
            fits.append(len(X))
            return super().fit(X, y)

    result = fa.influence_audit(
        y, X=X, model=model, sensitive_features=group, target="t", nuisance=Counting(),
        n_draws=39, rng=1,
    )  # fmt: skip
    for ask in (lambda: result.descend(tolerance=0.1, rng=1), lambda: result.repair(rng=1)):
        before = len(fits)
        ask()
        assert len(fits) == before + 1
