"""Scores with all else held fixed of categorical features, and models that take text."""

import dataclasses
import math
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.inference.pvalues import t_quantile
from fairaudit_rs.influence import ceteris_paribus

from ..reference import influence as reference
from .test_ceteris_paribus import value_of

AUDITS = 300


@dataclass(frozen=True)
class Towns:
    """Three towns and two binary features; towns go with these, labels and scores with all."""

    shares = (0.5, 0.4)
    pull = np.array([[0.0, 0.0], [1.0, -0.8], [-0.7, 1.2]])
    label = np.array([-0.8, 0.9, 0.3, 0.8, -0.9])
    score = np.array([-1.0, 0.5, 0.9, 0.6, -0.5])

    def town_shares(self, rest):
        return special.softmax(rest @ self.pull.T + [0.3, 0.0, -0.2], axis=1)

    def coded(self, town, rest):
        return np.column_stack([np.eye(3)[town], rest])

    def h(self, X):
        return special.expit(X @ self.label)

    def model(self, X):
        return special.expit(X @ self.score)

    def rows(self, rng, n):
        rest = (rng.random((n, 2)) < self.shares).astype(float)
        ends = self.town_shares(rest).cumsum(axis=1)
        town = (rng.random(n)[:, None] > ends[:, :2]).sum(axis=1)
        X = self.coded(town, rest)
        return X, (rng.random(n) < self.h(X)).astype(float), self.model(X)

    def truth(self, metric, low, high):
        """By enumeration."""
        rest = np.array(list(product((0.0, 1.0), repeat=2)))
        mass = np.prod(np.where(rest == 1, self.shares, 1 - np.array(self.shares)), axis=1)
        X = np.concatenate([self.coded(np.full(4, t), rest) for t in range(3)])
        p = np.concatenate([mass * self.town_shares(rest)[:, t] for t in range(3)])
        rates = reference.rates_of(metric, self.h(X), self.model(X), p)
        means = []
        for town in (low, high):
            moved = self.coded(np.full(4, town), rest)
            psi = reference.psi_of_x(metric, self.model(moved), self.h(moved), rates)
            means.append(mass @ psi)
        return means[1] - means[0]


def folded(X, y, f):
    n = len(y)
    return ceteris_paribus.RowsByFold(
        features=X, label=y, score=f, count=np.ones(n), folds=np.arange(n) % 5
    )


class TestReference:
    @pytest.mark.parametrize("metric", ["fpr", "fdr", "selection_rate"])
    def test_pairs_of_levels(self, metric):
        design = Towns()
        rows = folded(*design.rows(np.random.default_rng(4), 700))
        label_regression = ceteris_paribus.LabelRegression(rows=rows)
        value = value_of(metric, rows)
        arms = ceteris_paribus.arms_of(label_regression, design.model, (0, 1, 2))
        influences = []
        for low, high in combinations(range(3), 2):
            a, b = arms[low], arms[high]
            found = ceteris_paribus.contrast_score(label_regression, value, a, b)
            flip = reference.Flip(
                a.inside,
                b.inside,
                a.score,
                b.score,
                a.label_probability,
                b.label_probability,
                a.propensity,
                b.propensity,
            )
            theirs, influence = reference.ceteris_paribus(metric, rows.label, rows.score, flip)
            assert found.estimate == pytest.approx(theirs, rel=1e-9)
            error = math.sqrt(influence @ influence) / len(influence)
            assert found.influence_error == pytest.approx(error, rel=1e-9)
            influences.append(found.estimate)
            plain = ceteris_paribus.plug_in(label_regression, value, a, b)
            rates = reference.rates_of(metric, rows.label, rows.score)
            expected = reference.plug_in(metric, flip, rates)
            assert (plain.estimate, plain.standard_error) == pytest.approx(expected, rel=1e-9)
        # 0 to 1, 1 to 2 and 0 to 2 add up.
        assert influences[0] + influences[2] == pytest.approx(influences[1], abs=1e-10)

    def test_the_stacked_error_knows_both_regressions(self):
        """The derivative of the estimate by the coefficients, by small steps."""
        design = Towns()
        rows = folded(*design.rows(np.random.default_rng(5), 400))
        label_regression = ceteris_paribus.LabelRegression(rows=rows)
        value = value_of("fpr", rows)
        low, high = ceteris_paribus.arms_of(label_regression, design.model, (0, 1, 2))[:2]
        logit = special.logit(high.propensity)

        def estimate(step, column):
            moved = special.expit(logit + step * rows.features[:, column])
            arm = dataclasses.replace(high, propensity=moved)
            return ceteris_paribus.contrast_score(label_regression, value, low, arm).estimate

        rate = value.rates[0]
        _, by_share = ceteris_paribus._derivatives(rows, high, rate)
        for column in (3, 4):
            slope = (estimate(1e-5, column) - estimate(-1e-5, column)) / 2e-5
            found = (by_share * rows.features[:, column]).mean() / rate.mean_denominator
            assert found == pytest.approx(slope, rel=1e-5)


class TestModels:
    def make(self, n=2_000):
        rng = np.random.default_rng(2)
        X, y, _ = Towns().rows(rng, n)
        towns = np.array(["ash", "birch", "cedar"])[X[:, :3].argmax(axis=1)]
        frame = pd.DataFrame({"town": towns, "rich": X[:, 3] > 0, "old": X[:, 4]})
        group = rng.choice(["t", "o"], n)
        return frame, X, y.astype(int), group

    def test_text_and_indicators_say_the_same(self):
        frame, X, y, group = self.make()
        encoder = make_column_transformer(
            (OneHotEncoder(sparse_output=False), ["town"]), remainder="passthrough"
        )
        model = make_pipeline(encoder, LogisticRegression()).fit(frame, y)
        given = {"sensitive_features": group, "target": "t", "n_draws": 99, "rng": 1}
        result = fa.influence_audit(y, X=frame, model=model, **given)
        held = [score for score in result.proxy_scores if score.kind != "marginal"]
        assert {score.levels for score in held if score.feature == "town"} == {
            ("birch", "ash"), ("cedar", "ash"), ("cedar", "birch"),
        }  # fmt: skip
        assert {score.kind for score in held} == {"ceteris_paribus"}
        # The same rows as columns of 0 and 1, three of which are one feature.
        plain = LogisticRegression().fit(X, y)
        again = fa.influence_audit(y, X=X, model=plain, sets={"town": ["x1", "x2", "x3"]}, **given)
        names = {"x1": "ash", "x2": "birch", "x3": "cedar"}
        other = {
            tuple(names[level] for level in score.levels): score.estimate
            for score in again.proxy_scores
            if score.kind != "marginal" and score.feature == "town"
        }
        for score in held:
            if score.feature == "town":
                assert score.estimate == pytest.approx(other[score.levels], rel=1e-4)

    def test_missing_text_reaches_the_model_as_it_was(self):
        frame, _, y, group = self.make()
        frame["town"] = frame["town"].astype(object)
        frame.loc[frame.index % 9 == 0, "town"] = np.nan
        encoder = make_column_transformer(
            (OneHotEncoder(sparse_output=False), ["town"]), remainder="passthrough"
        )
        model = make_pipeline(encoder, LogisticRegression()).fit(frame, y)
        result = fa.influence_audit(
            y, X=frame, model=model, sensitive_features=group, target="t", n_draws=99, rng=1
        )
        assert any("missing" in score.levels for score in result.proxy_scores)
        repaired = result.repair(rng=1).transform(frame, group)
        assert (repaired.dtypes == frame.dtypes).all()
        assert not any(value is None for value in repaired["town"])
        assert model.predict_proba(repaired).shape == (len(frame), 2)

    def test_a_set_of_features_has_a_level_for_each_combination(self):
        frame, _, y, group = self.make()
        encoder = make_column_transformer(
            (OneHotEncoder(sparse_output=False), ["town"]), remainder="passthrough"
        )
        model = make_pipeline(encoder, LogisticRegression()).fit(frame, y)
        given = {"sensitive_features": group, "target": "t", "n_draws": 99, "rng": 1}
        result = fa.influence_audit(
            y, X=frame, model=model, sets={"wealth": ["rich", "old"]}, **given
        )
        pair = ("rich True, old 1", "rich False, old 0")
        for kind in ("marginal", "ceteris_paribus"):
            (one,) = (
                score
                for score in result.proxy_scores
                if score.kind == kind and {*score.levels} == {*pair}
            )
            assert np.isfinite(one.low)
        assert {score.feature for score in result.proxy_scores} == {"wealth", "town"}
        # The same as one text column with a level for each combination.
        f = model.predict_proba(frame)[:, 1]
        both = frame["rich"].astype(str) + frame["old"].astype(str)
        again = fa.influence_audit(y, y_score=f, X={"both": both.to_numpy()}, **given)
        marginal = [
            score
            for score in result.proxy_scores
            if score.feature == "wealth" and score.kind == "marginal"
        ]
        assert sorted(abs(score.estimate) for score in marginal) == pytest.approx(
            sorted(abs(score.estimate) for score in again.proxy_scores)
        )

    def test_text_in_a_dict_has_no_form_that_a_model_takes(self):
        frame, _, y, group = self.make(200)
        columns = {name: frame[name].to_numpy() for name in frame}
        model = LogisticRegression().fit(frame[["old"]].to_numpy(), y)
        with pytest.raises(errors.FairAuditError, match="model needs X as a pandas or polars"):
            fa.influence_audit(y, X=columns, model=model, sensitive_features=group, target="t")

    def test_rare_levels_stand_against_all_others(self):
        frame, _X, y, group = self.make()
        frame.loc[:12, "town"] = "dale"
        towns = np.array(["ash", "birch", "cedar", "dale"])

        class Model:
            def predict_proba(self, rows):
                at = np.searchsorted(towns, rows["town"].to_numpy().astype(str)) % 3
                rest = rows[["rich", "old"]].to_numpy(dtype=float)
                f = Towns().model(Towns().coded(at, rest))
                return np.column_stack([1 - f, f])

        result = fa.influence_audit(
            y, X=frame, model=Model(), sensitive_features=group, target="t", n_draws=99, rng=1
        )
        dale = [
            score
            for score in result.proxy_scores
            if score.kind != "marginal" and "dale" in score.levels
        ]
        assert [(score.kind, score.levels) for score in dale] == [
            ("partialled_out", ("dale", "all others"))
        ]
        assert "needed" in dale[0].note

    def test_the_scores_of_the_paper_are_marked(self):
        _frame, X, y, group = self.make(600)
        model = LogisticRegression().fit(X, y)
        result = fa.influence_audit(
            y, X=X, model=model, sensitive_features=group, target="t", compat="paper",
            sets={"town": ["x1", "x2", "x3"]}, n_draws=99, rng=1,
        )  # fmt: skip
        held = [score for score in result.proxy_scores if score.kind != "marginal"]
        assert len(held) == 5
        assert {score.note for score in held} == {
            "plug-in score of the paper, with an interval that does not hold"
        }


@pytest.mark.calibration
@pytest.mark.parametrize("metric", ["fpr", "fdr"])
def test_pairs_of_levels_cover_and_the_plug_in_does_not(metric):
    design, n, covered = Towns(), 500, {"ours": 0, "plug-in": 0}
    truth = design.truth(metric, 0, 2)
    for number in range(AUDITS):
        rows = folded(*design.rows(np.random.default_rng(number), n))
        label_regression = ceteris_paribus.LabelRegression(rows=rows)
        value = value_of(metric, rows)
        arms = ceteris_paribus.arms_of(label_regression, design.model, (0, 1, 2))
        for name, score in (
            ("ours", ceteris_paribus.contrast_score),
            ("plug-in", ceteris_paribus.plug_in),
        ):
            found = score(label_regression, value, arms[0], arms[2])
            half = t_quantile(0.025, found.df) * found.standard_error
            covered[name] += abs(found.estimate - truth) <= half
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], AUDITS, 0.95)
    assert low <= covered["ours"] <= high
    assert covered["plug-in"] < low
