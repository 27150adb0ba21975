"""Scores with all other features held fixed."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.influence import ceteris_paribus, nuisance
from fairaudit_rs.influence.rates import MeasureValue, measure_of, terms_of

from ..reference import influence as reference
from ..reference import influence_designs as designs
from .test_marginal import NAMES

N = 600


def rows_of(design=None, n=N, seed=3):
    design = design or designs.CeterisParibus()
    X, y, f = design.rows(np.random.default_rng(seed), n)
    folds = np.arange(n) % 5
    rows = ceteris_paribus.RowsByFold(features=X, label=y, score=f, count=np.ones(n), folds=folds)
    return design, rows, folds


def value_of(metric, rows):
    given = metric if isinstance(metric, dict) else {metric: 1.0}
    measure = measure_of({NAMES[name]: weight for name, weight in given.items()})
    return MeasureValue.from_totals(measure, rows.count @ terms_of(rows.label, rows.score), "t")


def flip_score(regression, value, predict, column):
    """Return the score of a binary feature, 1 against 0."""
    low, high = ceteris_paribus.arms_of(regression, predict, (column,))
    return ceteris_paribus.contrast_score(regression, value, low, high)


def make(n=1_500, seed=0):
    design = designs.CeterisParibus()
    rng = np.random.default_rng(seed)
    X, y, _ = design.rows(rng, n)
    X = np.column_stack([X, rng.normal(size=n)])
    group = np.where(rng.random(n) < 0.3 + 0.3 * X[:, 1], "t", "o")
    return X, y.astype(int), group, LogisticRegression().fit(X, y)


def audit(X, y, group, model, **options):
    given = {"X": X, "model": model, "sensitive_features": group, "target": "t"}
    return fa.influence_audit(y, **given, **{"n_draws": 99, "rng": 1, **options})


def alone(result):
    return {score.feature: score for score in result.proxy_scores if score.kind != "marginal"}


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"n_folds": 1}, "n_folds is 1; accepted: a whole number from 2"),
            ({"compat": "old"}, "compat is 'old'; accepted: 'paper'"),
            ({"y_score": np.full(1_500, 0.5)}, "y_score differs from the model in .* rows"),
            ({"model": object()}, "model is a object without predict_proba"),
            ({"features": "x1"}, "features is 'x1'; accepted: a list of names"),
        ],
    )
    def test_bad_values(self, options, words):
        X, y, group, model = make()
        given = {"X": X, "model": model, "sensitive_features": group, "target": "t", **options}
        with pytest.raises(errors.FairAuditError, match=words):
            fa.influence_audit(y, **given)


class TestReference:
    @pytest.mark.parametrize("metric", [*NAMES, {"fpr": 0.5, "fnr": -1.5}], ids=str)
    @pytest.mark.parametrize("decision", [False, True])
    def test_scores_are_those_of_the_reference(self, metric, decision):
        design, rows, folds = rows_of(designs.CeterisParibus(decision))
        label_regression = ceteris_paribus.LabelRegression(rows=rows)
        found = flip_score(label_regression, value_of(metric, rows), design.model, 0)
        expected, refusal = reference.ceteris_paribus_logistic(
            metric, rows.features, rows.label, rows.score, design.model, 0, folds
        )
        assert found.refusal == refusal == ""
        assert found.estimate == pytest.approx(expected.value, rel=1e-9)
        assert found.influence_error == pytest.approx(expected.extra["plain"], rel=1e-9)
        assert found.stacked_error == pytest.approx(expected.extra["stacked"], rel=1e-9)
        assert found.standard_error == pytest.approx(expected.se, rel=1e-9)
        assert found.df == pytest.approx(expected.df, rel=1e-8)

    @pytest.mark.parametrize("metric", NAMES)
    def test_partialled_out(self, metric):
        _, rows, folds = rows_of()
        value, x = value_of(metric, rows), rows.features[:, 2]
        others = np.delete(rows.features, 2, axis=1)
        share = nuisance.fit_nuisance(rows.regressors.without((2,)), x)
        found = ceteris_paribus.partialled_out(rows, value, (2,), 2, share)
        design = reference.default_basis(others).design(others)
        e = reference.cross_fit_tuned(design, x, folds).predict(design)
        psi = rows.terms @ value.coefficients
        expected = np.empty(N)
        for fold in range(5):
            outside = folds != fold
            coef = np.linalg.lstsq(design[outside], psi[outside], rcond=None)[0]
            expected[~outside] = design[~outside] @ coef
        theirs = reference.partialled_out(metric, rows.label, rows.score, x, e, expected)
        assert found.estimate == pytest.approx(theirs.value, rel=1e-9, abs=1e-12)
        assert found.standard_error == pytest.approx(theirs.se, rel=1e-9)

    def test_slopes_are_per_standard_deviation(self):
        """Of a number: the slope of the reference times the deviation, in any unit."""
        rng = np.random.default_rng(9)
        _, rows, folds = rows_of(n=900)
        number = rows.features[:, 0] + rng.normal(size=900)
        found = []
        for unit in (1.0, 12.0):
            features = np.column_stack([rows.features, 5 + unit * number])
            some = ceteris_paribus.RowsByFold(
                features=features, label=rows.label, score=rows.score, count=rows.count, folds=folds
            )
            value = value_of("fpr", some)
            found.append(ceteris_paribus.partialled_out(some, value, (8,), 8, None))
        one, other = found
        assert other.estimate == pytest.approx(one.estimate, rel=1e-9)
        assert other.standard_error == pytest.approx(one.standard_error, rel=1e-9)
        of = rows.regressors
        expected, e = of.means(rows.terms @ value_of("fpr", rows).coefficients, number)
        theirs = reference.partialled_out("fpr", rows.label, rows.score, number, e, expected)
        assert one.estimate == pytest.approx(theirs.value * number.std(), rel=1e-9)

    def test_kinds_with_counts_are_rows(self):
        """The same fits from distinct rows with counts."""
        _, rows, folds = rows_of()
        both = np.column_stack([rows.features, rows.label, rows.score, folds])
        kinds, counts = np.unique(both, axis=0, return_counts=True)
        fewer = ceteris_paribus.RowsByFold(
            features=kinds[:, :8],
            label=kinds[:, 8],
            score=kinds[:, 9],
            count=counts.astype(float),
            folds=kinds[:, 10].astype(int),
        )
        model = designs.CeterisParibus().model
        one, other = (
            flip_score(ceteris_paribus.LabelRegression(rows=some), value_of("fpr", some), model, 0)
            for some in (rows, fewer)
        )
        assert len(kinds) < 0.97 * N
        assert other.estimate == pytest.approx(one.estimate, rel=1e-8)
        assert other.standard_error == pytest.approx(one.standard_error, rel=1e-8)


class TestProperties:
    def test_every_form_of_features_gives_the_same(self):
        X, y, group, model = make()
        names = [f"x{j + 1}" for j in range(X.shape[1])]
        expected = alone(audit(X, y, group, model))
        fitted = LogisticRegression().fit(pd.DataFrame(X, columns=names), y)
        for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, names)):
            found = alone(audit(frame, y, group, fitted))
            assert {name: score.estimate for name, score in found.items()} == pytest.approx(
                {name: score.estimate for name, score in expected.items()}
            )
        ours = fa.models.adapt(model)
        found = alone(audit(X, y, group, ours))
        assert found["x1"].estimate == pytest.approx(expected["x1"].estimate, rel=1e-9)

    def test_rows_in_any_order(self):
        X, y, group, model = make()
        order = np.random.default_rng(1).permutation(len(y))
        first = audit(X, y, group, model)
        second = audit(X[order], y[order], group[order], model, n_threads=3)
        assert first.to_dict() == second.to_dict()

    def test_kinds_of_scores(self):
        X, y, group, model = make()
        found = alone(audit(X, y, group, model))
        assert {found[f"x{j}"].kind for j in range(1, 9)} == {"ceteris_paribus"}
        assert found["x9"].kind == "partialled_out"

    def test_a_feature_that_the_model_ignores(self):
        """Its marginal score may be large; held fixed it moves nothing."""
        rng = np.random.default_rng(5)
        n = 4_000
        X = (rng.random((n, 2)) < 0.5).astype(float)
        X[:, 1] = np.where(rng.random(n) < 0.8, X[:, 0], X[:, 1])
        y = (rng.random(n) < 0.5).astype(int)
        model = fa.LinearModel([2.0, 0.0], -1.0)
        result = audit(X, y, rng.choice(["t", "o"], n), model)
        marginal = {
            score.feature: score for score in result.proxy_scores if score.kind == "marginal"
        }
        assert marginal["x2"].adjusted_pvalue == pytest.approx(0.01)
        held = alone(result)["x2"]
        assert held.low <= 0 <= held.high
        assert abs(held.estimate) < 0.2 * abs(marginal["x2"].estimate)

    def test_no_overlap_is_partialled_out_and_said_so(self):
        rng = np.random.default_rng(6)
        n = 2_000
        first = rng.random(n) < 0.5
        second = np.where(rng.random(n) < 0.995, first, ~first)
        X = np.column_stack([first, second]).astype(float)
        y = (rng.random(n) < 0.5).astype(int)
        result = audit(X, y, rng.choice(["t", "o"], n), fa.LinearModel([1.0, 1.0], -1.0))
        held = alone(result)["x2"]
        assert held.kind == "partialled_out"
        assert held.note.startswith("held fixed it has no score (")
        twin = audit(X[:, [0, 0]], y, rng.choice(["t", "o"], n), fa.LinearModel([1.0, 1.0], -1.0))
        notes = [value.note for value in alone(twin).values()]
        assert all("refused: the other features determine it" in note for note in notes)

    def test_decisions_and_the_selection_rate_without_labels(self):
        X, _, group, model = make()
        decided = model.predict(X)
        result = fa.influence_audit(
            y_pred=decided, X=X, model=model, sensitive_features=group, target="t",
            metric="selection_rate", n_draws=99, rng=1,
        )  # fmt: skip
        held = alone(result)["x4"]
        flipped = [np.column_stack([X[:, :3], np.full(len(X), at), X[:, 4:]]) for at in (0.0, 1.0)]
        inside = group == "t"
        low, high = (model.predict(value)[inside].mean() for value in flipped)
        assert held.estimate == pytest.approx(high - low, abs=1e-12)
