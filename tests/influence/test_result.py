"""Results of an audit: ranks, charts and storage."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.influence.result import ProxyScore, rank_scores


def proxy(name, estimate, half, kind="marginal"):
    return ProxyScore(
        feature=name, kind=kind, type="binary", levels=("1", "0"), estimate=estimate,
        standard_error=half / 2, low=estimate - half / 2, high=estimate + half / 2,
        simultaneous_low=estimate - half, simultaneous_high=estimate + half, pvalue=0.5,
        adjusted_pvalue=0.5, n_events=100.0, note="",
    )  # fmt: skip


def make(n=3_000, target="woman", metric="selection_rate"):
    rng = np.random.default_rng(0)
    woman, part = rng.random(n) < 0.5, rng.random(n) < 0.3
    part |= woman & (rng.random(n) < 0.4)
    X = {"part": part, "x": rng.normal(size=n), "town": rng.choice(list("abc"), n)}
    y, p = rng.random(n) < 0.5, rng.random(n) < np.where(part, 0.2, 0.5)
    group = np.where(woman, target, "man")
    shown = {"y_score": 0.1 + 0.8 * p} if metric == "calibration" else {"y_pred": p}
    return fa.influence_audit(
        y, X=X, sensitive_features=group, target=target, metric=metric, n_draws=99, rng=1, **shown
    )


class TestRanks:
    def test_places_that_the_intervals_allow(self):
        scores = [
            proxy("a", -0.9, 0.1),
            proxy("b", 0.5, 0.1),
            proxy("c", -0.45, 0.1),
            proxy("d", 0.01, 0.05),
            proxy("e", 0.7, 0.1, "ceteris_paribus"),
            proxy("f", math.nan, math.nan),
        ]
        found = [
            (score.rank, score.highest_rank, score.lowest_rank) for score in rank_scores(scores)
        ]
        assert found == [
            (1, 1, 1), (2, 2, 3), (3, 2, 3), (4, 4, 4), (1, 1, 1), (None, None, None),
        ]  # fmt: skip

    def test_intervals_that_reach_over_0_are_of_any_size_up_to_their_ends(self):
        found = rank_scores([proxy("a", 0.1, 0.3), proxy("b", 0.3, 0.1), proxy("c", 0.6, 0.1)])
        assert [(score.highest_rank, score.lowest_rank) for score in found] == [
            (2, 3),
            (2, 3),
            (1, 1),
        ]


class TestCharts:
    def test_proxy_scores(self, tmp_path):
        result = make()
        chart = result.plot()
        shown = chart.spec["data"]["values"]
        assert shown[0]["feature"] == "part"
        assert len(shown) == 5
        assert shown[0]["shown"]
        chart.save(tmp_path / "scores.svg")
        assert "part" in (tmp_path / "scores.svg").read_text(encoding="utf-8")
        assert result.plot("held_fixed").spec["data"]["values"] == []

    def test_bad_value(self):
        with pytest.raises(errors.FairAuditError, match="kind is 'all'; accepted"):
            make().plot("all")

    def test_no_scores_no_chart(self):
        with pytest.raises(errors.NotMeasurableError, match="'calibration' has no proxy scores"):
            make(metric="calibration").plot()


class TestWords:
    @pytest.mark.parametrize("metric", ["selection_rate", "calibration"])
    def test_a_group_called_others(self, metric):
        result, named = make(target="others", metric=metric), make(metric=metric)
        assert list(result.values.values()) == list(named.values.values())
        assert list(result.values) == ["others", "all others"]
        assert list(result.group_sizes.values()) == list(named.group_sizes.values())
        assert str(result)

    def test_what_is_made_of_a_group_called_others(self):
        result = make(target="others")
        for found in (result.descend(tolerance=0.5, rng=1), result.repair(rng=1)):
            assert list(found.group_sizes) == ["others", "all others"]

    def test_a_gap_of_one_row_has_no_interval(self):
        y, group = np.arange(60) % 3 < 1, np.arange(60) < 1
        result = fa.influence_audit(
            None, y, X={"x": ~y}, sensitive_features=group, target=True, metric="selection_rate",
            n_draws=9, rng=1,
        )  # fmt: skip
        assert "includes 0" not in str(result)
        assert "the gap has no interval" in str(result)

    def test_a_small_weight_only_scales(self):
        one, small = (make(metric={"selection_rate": weight}) for weight in (1.0, 1e-9))
        for first, second in zip(one.proxy_scores, small.proxy_scores, strict=True):
            assert second.estimate == pytest.approx(1e-9 * first.estimate)
            assert second.adjusted_pvalue == first.adjusted_pvalue


def test_a_result_can_be_kept():
    result = make()
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again.problem.marginal.scores[0].estimate == result.problem.marginal.scores[0].estimate
    assert result != make(2_000)


class TestScoresOfFeatures:
    def test_a_feature_with_some_scores_is_not_without(self):
        """One rare level of four has too few rows; a constant has no score at all."""
        rng, n = np.random.default_rng(0), 3_000
        level = np.where(rng.random(n) < 0.004, "d", rng.choice(list("abc"), n))
        X = pd.DataFrame({"cluster": level, "age": rng.normal(size=n), "constant": np.ones(n)})

        class Model:
            def predict(self, X):
                return np.asarray(X["age"] + (X["cluster"] == "a") > 0).astype(int)

        y_pred = Model().predict(X)
        result = fa.influence_audit(
            (rng.random(n) < 0.3 + 0.4 * y_pred).astype(int),
            y_pred,
            X=X,
            model=Model(),
            sensitive_features=rng.random(n) < 0.5,
            target=True,
            metric="true_positive_rate",
            rng=1,
        )
        notes = {score.note for score in result.proxy_scores if score.feature == "cluster"}
        assert any(note.startswith("refused") for note in notes)
        assert "1 of 3 features have no score in group=True: constant" in result.warnings

    def test_rounding_is_no_score(self):
        """The rate is 10 in 29 with and without the feature, of unlike shares of positives."""

        def rows(hits, misses, negatives):
            return np.repeat([[1, 1], [1, 0], [0, 0]], [hits, misses, negatives], axis=0)

        y_true, y_pred = np.concatenate([rows(10, 19, 27), rows(30, 57, 11)]).T
        n = len(y_true)
        result = fa.influence_audit(
            np.r_[y_true, y_true],
            np.r_[y_pred, 1 - y_pred],
            X={
                "idle": np.tile(np.repeat([1.0, 0.0], [56, 98]), 2),
                "other": np.random.default_rng(1).normal(size=2 * n),
            },
            sensitive_features=np.repeat([True, False], n),
            target=True,
            metric="true_positive_rate",
            rng=1,
        )
        scores = {score.feature: score for score in result.proxy_scores}
        # -3.7e-17 without regard to rounding.
        assert scores["idle"].estimate == 0.0
        assert (scores["other"].rank, scores["idle"].rank) == (1, 2)
