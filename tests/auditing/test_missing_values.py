"""Missing values in X: models get them as they are, regressions know where they were."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs.data.features import Features, gaps_of, read_features
from fairaudit_rs.errors import DataError
from fairaudit_rs.individual.question import flow_model
from fairaudit_rs.influence.missing_numbers import MissingNumbers

from .test_audit import policy

N = 1_200


class Rows:
    """Income that is missing more often for women, hours that never are, and a job."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.sex = rng.choice(["f", "m"], N)
        man = self.sex == "m"
        income, hours = rng.normal(size=(2, N)) + [[0.8], [0.3]] * man
        job = rng.choice(["guard", "nurse", "cook"], N).astype(object)
        self.y = (rng.random(N) < 1 / (1 + np.exp(-income - (job == "cook")))).astype(int)
        self.gap = rng.random(N) < np.where(man, 0.05, 0.25)
        self.X = pd.DataFrame({"income": np.where(self.gap, np.nan, income), "hours": hours})
        job[rng.random(N) < 0.1] = None
        self.jobs = self.X.assign(job=job)

    def audit(self, model, X=None, **options):
        X = self.X if X is None else X
        given = {
            "sensitive_features": {"sex": self.sex},
            "model": model,
            "X": X,
            "lenses": ["individual", "influence"],
            "rng": 1,
        }
        return fa.audit(self.y, model.predict(X), **(given | options))


@pytest.fixture(scope="module")
def rows():
    return Rows()


@pytest.fixture(scope="module")
def pipeline(rows):
    pytest.importorskip("sklearn")
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), SimpleImputer(), LogisticRegression()).fit(
        rows.X, rows.y
    )


def by_lens(audit):
    return {finding.lens: finding for finding in audit.others}


class TestAudits:
    def test_a_pipeline_that_imputes(self, rows, pipeline):
        found = by_lens(rows.audit(pipeline))
        assert {value.reason for value in found.values()} == {None}
        n = rows.gap.sum()
        assert any(
            f"{n} of {N:,} rows have missing values" in w
            for w in map(str, found["individual"].notes)
        )
        told = f"income is missing in {n} rows: regressions take its usual value there"
        assert any(told in warning for warning in map(str, found["influence"].notes))
        text = str(rows.audit(pipeline))
        assert told in text
        assert "their attack starts at the values that the imputer of the model fills in" in text

    def test_trees_that_take_missing_values(self, rows):
        ensemble = pytest.importorskip("sklearn.ensemble")
        model = ensemble.HistGradientBoostingClassifier(max_iter=10, max_depth=3)
        found = by_lens(rows.audit(model.fit(rows.X, rows.y)))
        assert "no gradient to follow" in found["individual"].reason
        assert found["influence"].reason is None
        assert found["influence"].note == ""

    def test_text_that_is_imputed_and_coded(self, rows):
        pytest.importorskip("sklearn")
        from sklearn.compose import make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        usual = SimpleImputer(strategy="most_frequent", missing_values=None)
        coded = make_column_transformer(
            (SimpleImputer(strategy="median"), ["income", "hours"]),
            (make_pipeline(usual, OneHotEncoder()), ["job"]),
        )
        model = make_pipeline(coded, LogisticRegression()).fit(rows.jobs, rows.y)
        found = by_lens(rows.audit(model, X=rows.jobs))
        assert {value.reason for value in found.values()} == {None}
        assert "one-hot features stay a choice" in found["individual"].note

    def test_a_model_that_fills_nothing_in(self, rows):
        model = fa.LinearModel([1.0, 0.2], feature_names=["income", "hours"])
        audit = fa.audit(
            rows.y,
            rows.y,
            sensitive_features={"sex": rows.sex},
            model=model,
            X=rows.X,
            lenses=["individual", "influence"],
            rng=1,
        )
        found = by_lens(audit)
        words = f"column 'income' of X is missing in {rows.gap.sum()} of {N:,} rows, and a gradient"
        assert words in found["individual"].reason
        assert "a pipeline with a SimpleImputer" in found["individual"].reason
        assert found["influence"].reason is None

    def test_a_lens_that_binds(self, rows, pipeline):
        given = {"lens": "individual", "tolerance": 1.25}
        metric = {"fair_metric": {"features": ["hours"]}}
        audit = rows.audit(pipeline, policy=policy({**given, **metric}), n_resamples=999)
        assert audit.verdict == "pass"
        profile = rows.audit(pipeline, policy=policy(given), n_resamples=999)
        assert profile.verdict == "fail"


class TestModels:
    def test_the_flow_starts_where_the_model_does(self, rows, pipeline):
        flow = flow_model(pipeline, "log_loss", "loss")
        assert flow.fill["income"] == pytest.approx(rows.X.income.mean())
        for X in (rows.X, pl.from_pandas(rows.X)):
            score = flow.scores.score_rows(flow.rows(X).values)[:, 0]
            assert score == pytest.approx(pipeline.decision_function(rows.X))
            assert flow.gaps(X)[:, 0].tolist() == rows.gap.tolist()
        assert flow.gaps(rows.X.fillna(0.0)) is None
        metric = fa.FairMetric.directions([[0.0, 1.0]])
        found = fa.individual_test(pipeline, rows.X, rows.y, fair_metric=metric)
        filled = rows.X.fillna({"income": rows.X.income.mean()})
        assert found.estimate == pytest.approx(
            fa.individual_test(pipeline, filled, rows.y, fair_metric=metric).estimate
        )

    def test_features_are_filled_by_name_or_position(self):
        X = np.array([[1.0, np.nan], [np.nan, 2.0]])
        assert read_features(X, fill={0: 5.0, 1: 7.0}).values.tolist() == [[1.0, 7.0], [5.0, 2.0]]
        assert np.isnan(X).sum() == 2
        frame = pd.DataFrame(X, columns=["a", "b"])
        for given in (frame, pl.from_pandas(frame)):
            assert read_features(given, fill={"a": 5.0, "b": 7.0}).values.tolist() == [
                [1.0, 7.0],
                [5.0, 2.0],
            ]
            assert gaps_of(given, ("b", "a")).tolist() == [[True, False], [False, True]]
        with pytest.raises(DataError, match="missing or infinite in"):
            read_features(X, fill={0: 5.0})


class TestLikeness:
    def test_directions_know_where_values_are_missing(self, rows, pipeline):
        """The direction is that of a regression with the indicator, not of the filled rows."""
        from fairaudit_rs.auditing.similarity import RegressionRows
        from fairaudit_rs.individual.question import attributes_of

        flow = flow_model(pipeline, "log_loss", "loss")
        made = RegressionRows.from_features(flow.rows(rows.X), flow.gaps(rows.X))
        assert made.indicators[:, 0].tolist() == rows.gap.astype(float).tolist()
        metric = made.metric({"sex": rows.sex})
        [attribute] = attributes_of({"sex": rows.sex}, N)
        wide = np.column_stack([made.features.values / metric.units, rows.gap])
        expected = attribute.directions(wide, 1.0, None)[0, :2]
        free = fa.FairMetric.directions([expected])
        D = np.outer(metric.units, metric.units) * metric.D
        assert pytest.approx(free.D, abs=1e-9) == D
        without = fa.FairMetric.subspace(made.features.values, rows.sex, standardize=True)
        assert not np.allclose(without.D, metric.D, atol=1e-3)
        again = RegressionRows.from_features(Features(made.features.values, None), None)
        assert pytest.approx(without.D) == again.metric({"sex": rows.sex}).D


class TestInfluence:
    def test_columns_with_gaps_and_back(self):
        columns = {
            "a": np.array([1.0, np.nan, 3.0, 8.0]),
            "b": np.array([0.0, 1.0, np.nan, 1.0]),
            "c": np.array([True, False, True, True]),
            "a is missing": np.arange(4),
        }
        gaps, filled = MissingNumbers.from_columns(columns)
        assert gaps.indicator == {"a": "(a is missing)", "b": "b is missing"}
        assert filled["a"].tolist() == [1.0, 4.0, 3.0, 8.0]
        assert filled["b"].tolist() == [0.0, 1.0, 1.0, 1.0]
        back = gaps.restored(filled)
        assert set(back) == set(columns)
        np.testing.assert_array_equal(back["a"], columns["a"])
        np.testing.assert_array_equal(back["b"], columns["b"])

    def test_the_model_gets_rows_as_they_are(self, rows):
        """A model of gaps alone: only the indicator moves its decisions."""
        seen = []

        class OfGaps:
            def predict(self, X):
                seen.append(X["income"].isna().any())
                return X["income"].isna().to_numpy().astype(int) ^ (X["hours"] > 0.5).to_numpy()

        model = OfGaps()
        found = fa.influence_audit(
            y_pred=model.predict(rows.X),
            X=rows.X,
            model=model,
            sensitive_features=rows.sex,
            target="f",
            metric="selection_rate",
            rng=1,
        )
        assert all(seen[:2])
        held = {
            score.feature: score.estimate
            for score in found.proxy_scores
            if score.kind == "ceteris_paribus"
        }
        assert abs(held["income is missing"]) > 0.1
        assert held.get("income", 0.0) == pytest.approx(0.0, abs=1e-9)
        with pytest.raises(DataError, match="X has missing numbers in income, which a repair"):
            found.repair(rng=1)

    def test_scores_are_those_of_the_filled_columns(self, rows):
        given = {
            "y_pred": rows.y,
            "sensitive_features": rows.sex,
            "target": "f",
            "metric": "selection_rate",
            "rng": 1,
        }
        found = fa.influence_audit(X=rows.X, **given)
        by_hand = rows.X.assign(income=rows.X.income.fillna(rows.X.income.mean()))
        by_hand.insert(1, "income is missing", rows.gap)
        expected = fa.influence_audit(X=by_hand, **given)
        assert [(score.feature, score.estimate) for score in found.proxy_scores] == [
            (score.feature, pytest.approx(score.estimate)) for score in expected.proxy_scores
        ]
