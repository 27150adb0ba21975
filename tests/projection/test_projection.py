"""The projection lens: the distance to the nearest fair distribution."""

import io
import json
import math
import os
import signal
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.data.tables import AuditTable
from fairaudit_rs.projection.question import pose_notion

from ..reference import projection as reference

NOTIONS = sorted(reference.NOTIONS)


def random_rows(seed, n_rows=1_000, groups="ab", shift=0.0):
    """Label, score around 0 and group; the first group's scores are shifted."""
    rng = np.random.default_rng(seed)
    group = rng.choice(list(groups), n_rows)
    label = (rng.random(n_rows) < 0.5).astype(int)
    score = rng.normal(size=n_rows) + 0.2 * label + shift * (group == groups[0])
    return label, score, group


def ragged_rows(rng, n_groups, n_rows):
    """Rows with ties, zeros, infinite distances and, in half of the cases, weights."""
    group = np.concatenate([np.repeat(np.arange(n_groups), 4), rng.integers(0, n_groups, n_rows)])
    label = np.concatenate([np.tile([0, 0, 1, 1], n_groups), rng.integers(0, 2, n_rows)])
    decision = (rng.random(len(group)) < rng.uniform(0.2, 0.8)).astype(int)
    distance = rng.exponential(size=len(group))
    if rng.random() < 0.5:
        distance = np.round(distance * 4) / 4
    distance[rng.random(len(group)) < 0.1] = 0.0
    distance[rng.random(len(group)) < rng.choice([0, 0.1, 0.5])] = np.inf
    weight = rng.choice([0.25, 0.5, 1.0, 3.0], len(group)) if rng.random() < 0.5 else None
    if weight is not None and rng.random() < 0.5:
        weight = weight * rng.uniform(0.5, 2, len(group))
    return distance, decision, group, label, weight


def parity_notion(group, derivative=None, **options):
    """Statistical parity of groups "a" and "b" as a notion of the user's."""
    first = (np.asarray(group) == "a").astype(float)
    statistics = np.stack([first, 1 - first], axis=1)

    def phi(u, mean):
        return u[:, :1] / mean[0] - u[:, 1:] / mean[1]

    return fa.Notion(phi, statistics, derivative, **options)


def parity_derivative(u, mean):
    return np.stack([-u[:, 0] / mean[0] ** 2, u[:, 1] / mean[1] ** 2], axis=1)[:, None, :]


def run(label, score, group, **options):
    """The test of scores around 0."""
    return fa.projection_test(
        label, score >= 0, distance=np.abs(score), sensitive_features=group, **options
    )


def numbers_of(result):
    """Return the parts that must not change when only the form of the data does."""
    return (
        result.statistic,
        result.pvalue,
        result.critical_value,
        result.bandwidth,
        result.sensitivity,
        result.effective_rows,
        [
            (criterion.gap, criterion.standard_error, criterion.confidence_interval)
            for criterion in result.criteria
        ],
    )


class TestArguments:
    def call(self, **changes):
        label, score, group = random_rows(0, 300)
        arguments = {
            "y_true": label,
            "y_pred": score >= 0,
            "distance": np.abs(score),
            "sensitive_features": group,
        }
        return fa.projection_test(**(arguments | changes))

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"notion": "eo"}, errors.ArgumentError, "notion is 'eo'.*'equalized_odds', or a No"),
            ({"notion": 3}, errors.ArgumentError, "notion is 3"),
            ({"attributes": "both"}, errors.ArgumentError, "attributes is 'both'"),
            ({"alternative": "bigger"}, errors.ArgumentError, "'two-sided', 'greater', 'less'"),
            ({"calibration": "bootstrap"}, errors.ArgumentError, "calibration is 'bootstrap'"),
            ({"n_resamples": 0}, errors.ArgumentError, "n_resamples is 0"),
            ({"n_resamples": 9.5}, errors.ArgumentTypeError, "n_resamples is 9.5"),
            ({"confidence_level": 95}, errors.ArgumentError, "strictly between 0 and 1"),
            ({"confidence_level": "x"}, errors.ArgumentTypeError, "confidence_level is 'x'"),
            ({"rng": "x"}, errors.ArgumentTypeError, "rng is a str"),
            ({"rng": 1, "random_state": 1}, errors.ArgumentTypeError, "two names"),
            ({"n_threads": 0}, errors.ArgumentError, "n_threads is 0"),
            ({"progress": 3}, errors.ArgumentTypeError, "progress is 3"),
            ({"bandwidth": 0}, errors.ArgumentError, "bandwidth is 0; accepted: a finite number"),
            ({"bandwidth": -1.0}, errors.ArgumentError, "bandwidth is -1.0"),
            ({"bandwidth": math.nan}, errors.ArgumentError, "bandwidth is nan"),
            ({"bandwidth": math.inf}, errors.ArgumentError, "bandwidth is inf"),
            ({"bandwidth": "scott"}, errors.ArgumentTypeError, "bandwidth is 'scott'"),
            ({"bandwidth": True}, errors.ArgumentTypeError, "bandwidth is True"),
            ({"epsilon": -0.1}, errors.ArgumentError, "epsilon is -0.1; accepted: None, a number"),
            ({"epsilon": math.nan}, errors.ArgumentError, "epsilon is nan"),
            ({"epsilon": math.inf}, errors.ArgumentError, "epsilon is inf"),
            ({"epsilon": [0.1, 0.2]}, errors.ArgumentError, "or 1 of them"),
            ({"epsilon": [[0.1]]}, errors.ArgumentError, "epsilon is"),
            ({"epsilon": "wide"}, errors.ArgumentTypeError, "epsilon is 'wide'"),
            ({"epsilon": "0.1"}, errors.ArgumentTypeError, "epsilon is '0.1'"),
            ({"epsilon": True}, errors.ArgumentTypeError, "epsilon is True"),
            (
                {"epsilon": 0.1, "calibration": "permutation"},
                errors.ArgumentError,
                "epsilon is 0.1 with calibration='permutation'",
            ),
            (
                {"sample_weight": np.ones(300), "calibration": "permutation"},
                errors.ArgumentError,
                "sample_weight cannot be used with calibration='permutation'",
            ),
            ({"y_true": None}, errors.ArgumentError, "y_true is None.*'equal_opportunity' needs"),
            ({"y_pred": None}, errors.ArgumentError, "y_pred is None. Pass y_pred="),
            ({"distance": None}, errors.ArgumentError, "distance and y_score are None"),
            ({"y_score": np.zeros(300)}, errors.ArgumentTypeError, "both given. Pass one"),
            ({"threshold": 0.4}, errors.ArgumentTypeError, "threshold is 0.4 without y_score"),
            ({"threshold": "x"}, errors.ArgumentTypeError, "threshold is 'x'"),
            ({"threshold": math.nan}, errors.ArgumentError, "threshold is nan"),
            ({"sensitive_features": None}, errors.ArgumentTypeError, "sensitive_features is miss"),
            ({"sensitive_features": ["a"] * 300}, errors.DataError, "only one group"),
            ({"groups": ["a", "z"]}, errors.DataError, "'z', which is no group"),
            ({"groups": ["a", "a"]}, errors.ArgumentError, "named twice"),
            ({"groups": "ab"}, errors.ArgumentTypeError, "a sequence of groups"),
            (
                {"groups": ["a"]},
                errors.DataError,
                "only one group: groups is .*; a comparison needs at least two",
            ),
            ({"reference": "z"}, errors.DataError, "reference names 'z'"),
            ({"reference": {"group": "a"}}, errors.ArgumentTypeError, "reference is a dict"),
            ({"distance": np.ones(5)}, errors.DataError, "differ in length.*distance 5"),
            ({"distance": 0.5}, errors.ArgumentTypeError, "distance has 0 dimensions"),
            ({"distance": ["near"] * 300}, errors.ArgumentTypeError, "distance holds text"),
            ({"distance": "d"}, errors.ArgumentTypeError, "To name a column, pass data= too"),
            ({"distance": np.full(300, -1.0)}, errors.ArgumentError, "distance is -1 in row 0"),
            ({"distance": np.full(300, math.nan)}, errors.ArgumentError, "distance is NaN in row"),
            ({"sample_weight": np.zeros(300)}, errors.DataError, "sample_weight is 0 in every"),
            ({"sample_weight": -np.ones(300)}, errors.DataError, "sample_weight is -1 in row 0"),
            ({"sample_weight": np.full(300, np.inf)}, errors.DataError, "sample_weight is inf"),
            ({"y_true": np.zeros(300)}, errors.NotMeasurableError, "no rows with a positive label"),
            ({"y_true": np.arange(300)}, errors.DataError, "y_true"),
            ({"pos_label": "yes"}, errors.ArgumentError, "pos_label is 'yes'"),
        ],
    )
    def test_wrong_values_are_named(self, changes, error, message):
        with pytest.raises(error, match=message):
            self.call(**changes)

    def test_wrong_values_of_a_notion_are_named(self):
        u = np.ones((300, 2))
        for notion, error, message in [
            (fa.Notion(np.zeros(5)), errors.DataError, r"phi has the shape \(5, 1\)"),
            (fa.Notion(np.ones((300, 0))), errors.DataError, r"phi has the shape \(300, 0\)"),
            (fa.Notion(np.full(300, math.nan)), errors.DataError, "phi is not finite in row 0"),
            (fa.Notion(["a"] * 300), errors.ArgumentTypeError, "phi is not an array of numbers"),
            (fa.Notion(lambda u, mean: u), errors.ArgumentTypeError, "U is None"),
            (fa.Notion(u[:, 0], u), errors.ArgumentError, "derivative is None"),
            (fa.Notion(u[:, 0], u, u), errors.ArgumentError, "derivative has the shape"),
            (fa.Notion(u, u[:5], u), errors.DataError, r"U has the shape \(5, 2\)"),
            (fa.Notion(u, names=["one"]), errors.ArgumentError, "names has 1 entries"),
            (fa.Notion, errors.ArgumentError, "or a Notion object"),
        ]:
            with pytest.raises(error, match=message):
                self.call(notion=notion)
        for name in ("groups", "reference"):
            with pytest.raises(errors.ArgumentTypeError, match=f"{name} cannot be used with"):
                self.call(notion=fa.Notion(u[:, 0]), **{name: ["a", "b"]})

    def test_two_attributes_are_named(self):
        label, score, group = random_rows(0, 300)
        features = {"group": group, "other": np.arange(300) % 2}
        for changes, error, message in [
            ({"groups": ["a"]}, errors.ArgumentTypeError, "groups cannot be used with"),
            ({"reference": "a"}, errors.ArgumentTypeError, "accepted: a dict"),
            ({"reference": {"sex": 1}}, errors.ArgumentError, "reference names 'sex'"),
            ({"reference": {"group": "z"}}, errors.DataError, "reference names 'z'"),
            ({"epsilon": [0.1]}, errors.ArgumentError, "or 2 of them"),
        ]:
            with pytest.raises(error, match=message):
                run(label, score, features, attributes="separate", **changes)
        features["other"] = np.zeros(300)
        with pytest.raises(errors.DataError, match="only one group of other"):
            run(label, score, features, attributes="separate")

    @pytest.mark.parametrize("left_out", ["named", "missing"])
    def test_decisions_of_rows_of_no_group_are_compared_too(self, left_out):
        """With decisions beside scores that agree, rows left out make no difference."""
        label, score, group = random_rows(0, 300, "abc")
        groups = {"groups": ["a", "b"]} if left_out == "named" else {}
        if left_out == "missing":
            group = np.where(group == "c", None, group)
        options = {"sensitive_features": group, "threshold": 0.0, "rng": 1, **groups}
        alone = fa.projection_test(label, y_score=score, **options)
        both = fa.projection_test(label, score >= 0.0, y_score=score, **options)
        assert both.statistic == alone.statistic
        wrong = score >= 0.0
        wrong[7] = not wrong[7]
        with pytest.raises(errors.DataError, match=r"in 1 of 300 rows \(the first is row 7\)"):
            fa.projection_test(label, wrong, y_score=score, **options)

    def test_decisions_that_contradict_scores_or_models(self):
        label, score, group = random_rows(0, 300)
        with pytest.raises(errors.DataError, match=r"y_pred differs from y_score >= threshold"):
            fa.projection_test(label, score < 0, y_score=score, threshold=0.0,
                               sensitive_features=group)  # fmt: skip
        distance = fa.LinearModel([1.0], threshold=0.0, link="identity").distance(score[:, None])
        with pytest.raises(errors.DataError, match=r"the distance's model in 300 of 300"):
            fa.projection_test(label, score < 0, distance=distance, sensitive_features=group)
        with pytest.raises(errors.DataError, match="differ in length"):
            fa.projection_test(label[:9], distance=distance, sensitive_features=group[:9])
        frame = pl.DataFrame({"y": label, "g": group})
        with pytest.raises(errors.ArgumentTypeError, match="distance is a Distances object, but"):
            fa.projection_test("y", distance=distance, sensitive_features="g", data=frame)

    def test_scores_that_are_missing(self):
        label, score, group = random_rows(0, 300)
        score[7] = math.nan
        with pytest.raises(errors.DataError, match="y_score is missing in row 7"):
            fa.projection_test(label, y_score=score, sensitive_features=group)
        with pytest.raises((TypeError, ValueError), match="y_score"):
            fa.projection_test(y_score=0.5, notion=fa.Notion(np.ones(1)))

    def test_columns_that_do_not_exist(self):
        frame = pl.DataFrame({"y": [0, 1], "g": ["a", "b"]})
        with pytest.raises(errors.ColumnError, match="column 'd' does not exist"):
            fa.projection_test("y", "y", distance="d", sensitive_features="g", data=frame)
        with pytest.raises(errors.DataError, match="differ in length: data 2, distance 3"):
            fa.projection_test("y", "y", distance=np.ones(3), sensitive_features="g", data=frame)

    def test_counts_are_refused(self):
        label, score, group = random_rows(0, 300)
        cells = fa.tabulate(y_true=label, y_pred=score >= 0, sensitive_features=group)
        with pytest.raises(errors.ArgumentTypeError, match="projection_test needs the rows"):
            fa.projection_test(data=cells, distance="d")

    @pytest.mark.parametrize("attributes", ["crossed", "separate"])
    def test_directed_tests_of_many_groups_need_a_reference(self, attributes):
        label, score, group = random_rows(0, 300, "abc")
        features = {"group": group, "other": np.arange(300) % 2}
        if attributes == "crossed":
            features = group
        for options in ({"epsilon": 0.05}, {"alternative": "greater"}):
            with pytest.raises(errors.ArgumentError, match="reference is None"):
                run(label, score, features, attributes=attributes, **options)

    def test_files_that_a_chart_cannot_be(self, tmp_path):
        with pytest.raises(errors.ArgumentError, match=r"accepted: \.json, \.svg, \.png"):
            self.call().plot().save(tmp_path / "chart.pdf")

    def test_notions_of_data_need_no_features(self):
        """As with arrays: sensitive_features says nothing when the notion is the user's own."""
        frame = pl.DataFrame({"score": np.linspace(-1, 1, 200)})
        notion = fa.Notion(np.resize([1.0, -1.0, 0.5], 200))
        arrays = fa.projection_test(y_score=frame["score"], threshold=0.0, notion=notion)

        named = fa.projection_test(y_score="score", threshold=0.0, notion=notion, data=frame)
        assert named.statistic == arrays.statistic


class TestKnownValues:
    GROUP = np.repeat(["a", "b"], [4, 2])
    DECISION = np.array([1, 1, 1, 0, 0, 0])
    #: Gap 3/4; by distance over gain: row 0 (0.05 / 0.25) and row 4 (0.1 / 0.5) tie at 0.2, they
    #: close 0.25 + 0.5.
    DISTANCE = np.array([0.05, 0.1, 0.2, 9.0, 0.1, 0.6])

    def project(self, **options):
        arguments = {"y_pred": self.DECISION, "distance": self.DISTANCE}
        return fa.projection_test(
            sensitive_features=self.GROUP, notion="statistical_parity", **(arguments | options)
        )

    def test_two_groups_by_hand(self):
        result = self.project()
        assert result.estimate == 0.75
        assert result.statistic == pytest.approx(0.15, rel=1e-14)
        assert result.distance == pytest.approx(0.025, rel=1e-14)
        assert result.moves.row.tolist() == [0, 4]
        assert result.moves.fraction.tolist() == [1, 1]
        assert result.moves.from_decision.tolist() == [1, 0]
        assert result.dual_value == pytest.approx(0.15, rel=1e-14)

    def test_a_tolerance_by_hand(self):
        """0.5 is left to close; the tied rows share: 2/3 of each."""
        result = self.project(epsilon=0.25)
        assert result.statistic == pytest.approx(0.1, rel=1e-14)
        assert result.moves.fraction == pytest.approx([2 / 3, 2 / 3])
        assert self.project(alternative="greater", epsilon=0.25).statistic == pytest.approx(0.1)
        less = self.project(alternative="less")
        assert (less.statistic, less.pvalue, len(less.moves)) == (0, 1, 0)
        # b minus a.
        assert self.project(alternative="greater", reference="a").statistic == 0

    def test_weights_by_hand(self):
        """Weights 2 in b: gains of b are the same, masses too; N / sum of weights = 6 / 8."""
        result = self.project(sample_weight=[1, 1, 1, 1, 2, 2])
        assert result.statistic == pytest.approx((0.05 + 2 * 0.1) * 6 / 8)

    def test_three_groups_by_hand(self):
        """Rates 1, 1/2 and 0 with two rows each; c's rows cost 1, a's cost 3 and 5.

        All at rate 1/2: one row of a (3) and one of c (1). At 1: b's negative (1) and both of c.
        """
        group, decision = np.repeat(["a", "b", "c"], 2), np.array([1, 1, 1, 0, 0, 0])
        for cost_of_b, expected in ((1.5, 3.5), (2.5, 4.0)):
            result = fa.projection_test(
                y_pred=decision, distance=[3, 5, 9, cost_of_b, 1, 1], sensitive_features=group,
                notion="statistical_parity",
            )  # fmt: skip
            assert result.statistic == pytest.approx(expected)
            assert result.duality_gap == pytest.approx(0, abs=1e-12)

    def test_zero_and_infinite_distances_by_hand(self):
        result = self.project(distance=[0, 0, 0.3, 9, math.inf, math.inf])
        assert result.statistic == pytest.approx(0.3)
        assert result.moves.row.tolist() == [0, 1, 2]
        reason = self.project(distance=[0, math.inf, 0.3, 9, math.inf, math.inf])
        assert math.isinf(reason.statistic)
        assert math.isnan(reason.pvalue)
        assert "'a' from 0.25 to 1" in reason.inconclusive
        assert "'b' from 0 to 0" in reason.inconclusive
        assert "No movement" in reason.summary()

    @pytest.mark.parametrize(
        ("n_first", "n_second", "n_rows", "epsilon"),
        [(3, 2, 10, 0.1), (8, 7, 10, 0.1), (80, 70, 100, 0.1), (90, 60, 100, 0.3)],
    )
    def test_a_gap_at_the_tolerance_is_fair(self, n_first, n_second, n_rows, epsilon):
        """8/10 - 7/10 is above 0.1 by rounding."""
        place = np.arange(n_rows)
        for distance in (np.full(2 * n_rows, math.inf), np.linspace(0, 1, 2 * n_rows)):
            result = fa.projection_test(
                y_pred=np.concatenate([place < n_first, place < n_second]), distance=distance,
                sensitive_features=np.repeat(["a", "b"], n_rows), notion="statistical_parity",
                epsilon=epsilon,
            )  # fmt: skip
            assert (result.statistic, result.pvalue) == (0, 1)

    def test_no_gap_is_fair_whatever_the_rounding(self):
        weight = np.tile([0.1, 0.2, 0.7, 0.3, 0.7], 3)
        decision, group = np.tile([1, 1, 0, 1, 0], 3), np.tile(list("aaabb"), 3)
        weighted = fa.projection_test(
            y_pred=decision, distance=np.full(15, math.inf), sensitive_features=group,
            notion="statistical_parity", sample_weight=weight,
        )  # fmt: skip
        assert (weighted.statistic, weighted.pvalue) == (0, 1)

    def test_no_gap_of_a_notion_is_fair_whatever_the_rounding(self):
        decision, group = (
            np.tile([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], 8),
            np.repeat(["a", "b"], [70, 10]),
        )
        own = fa.projection_test(
            y_pred=decision, distance=np.full(80, math.inf), notion=parity_notion(group)
        )
        assert (own.statistic, own.pvalue) == (0, 1)

    def test_limit_law_of_one_criterion(self):
        """P(chi2_1 > 2 S s / Sigma) with S and Sigma from the definition."""
        label, score, group = random_rows(1, 2_000, shift=0.1)
        result = run(label, score, group, notion="statistical_parity")
        first = np.mean(group == "a")
        phi = np.where(group == "a", 1 / first, -1 / (1 - first))
        h = 1.06 * score.std(ddof=1) * 2_000**-0.2
        curvature = np.mean(stats.norm.pdf(score / h) * phi**2) / h
        variance = 2_000 * result.standard_error**2
        assert result.bandwidth == pytest.approx(h, rel=1e-12)
        assert result.pvalue == pytest.approx(
            stats.chi2.sf(2 * curvature * result.statistic / variance, 1), rel=1e-10
        )
        assert result.critical_value == pytest.approx(
            stats.chi2.isf(0.05, 1) * variance / (2 * curvature), rel=1e-8
        )
        assert result.pvalue == result.sensitivity[1][1]
        assert [h for h, _ in result.sensitivity] == pytest.approx([h / 2, h, 2 * h])

    @pytest.mark.parametrize("calibration", ["asymptotic", "permutation"])
    def test_everything_lies_on_the_boundary(self, calibration):
        label, score, group = random_rows(1, 400)
        result = fa.projection_test(
            label, score >= 0, distance=np.zeros(400), sensitive_features=group,
            calibration=calibration,
        )  # fmt: skip
        assert result.statistic == 0
        if calibration == "permutation":
            assert result.pvalue == 1
        else:
            assert math.isnan(result.pvalue)
            assert "do not vary" in result.inconclusive

    @pytest.mark.parametrize("kind", ["two groups", "three groups", "separate", "own"])
    def test_nothing_can_move(self, kind):
        _, score, group = random_rows(1, 400, "abc")
        options = {"notion": "statistical_parity", "distance": np.full(400, math.inf)}
        features = {"first": group, "second": np.arange(400) % 2}
        options |= {
            "two groups": {"sensitive_features": group == "a"},
            "three groups": {"sensitive_features": group},
            "separate": {"sensitive_features": features, "attributes": "separate"},
            "own": {"notion": fa.Notion(np.random.default_rng(0).normal(size=(400, 2)))},
        }[kind]
        for calibration in ("asymptotic", "permutation"):
            result = fa.projection_test(y_pred=score >= 0, calibration=calibration, **options)
            assert math.isinf(result.statistic)
            assert math.isnan(result.pvalue)
            assert result.inconclusive

    def test_atoms_and_thin_windows_are_seen(self):
        label, score, group = random_rows(2, 1_000, shift=0.05)
        assert run(label, score, group).inconclusive is None
        for distance, reason in [
            (np.full(1_000, 1.0), "does not follow the limit law"),
            # Half of the rows on the boundary, and twenty distances.
            (np.where(np.arange(1_000) % 2, 0, np.abs(score)), "distinct margins (atoms"),
            (np.abs(score) + 5, "does not follow the limit law|effective rows"),
            (np.ceil(np.abs(score)), "effective rows|distinct margins (atoms|limit law"),
        ]:
            result = fa.projection_test(
                label, score >= 0, distance=distance, sensitive_features=group
            )
            assert math.isnan(result.pvalue)
            assert any(part in result.inconclusive for part in reason.split("|"))
            assert any("calibration='permutation'" in note for note in result.warnings)
            assert "calibration='permutation' gives a valid p-value" in result.summary()
        weighted = fa.projection_test(
            label, score >= 0, distance=np.full(1_000, 1.0), sensitive_features=group,
            sample_weight=np.ones(1_000),
        )  # fmt: skip
        # Weights cannot be permuted.
        assert "calibration=" not in weighted.inconclusive
        few = fa.projection_test(
            label, np.arange(1_000) < 8, distance=np.abs(score), sensitive_features=group
        )
        assert "the limit law needs 4" in few.inconclusive

    def test_a_law_that_rejects_too_rarely_answers_with_a_note(self):
        rng, group = np.random.default_rng(1), np.repeat([0, 1], [1_900, 100])
        score = rng.normal(size=2_000) * np.repeat([10, 1], [1_900, 100])
        options = {"distance": np.abs(score), "sensitive_features": group}
        result = fa.projection_test(y_pred=score >= 0, notion="statistical_parity", **options)
        assert result.inconclusive is None
        assert result.pvalue > 0.05
        assert "p is larger than it need be; calibration='permutation' has" in result.warnings[0]

    @pytest.mark.parametrize("kind", ["tree", "forest", "categorical"])
    def test_trees_forests_and_categories_are_inconclusive(self, kind):
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.tree import DecisionTreeClassifier

        rng = np.random.default_rng(0)
        features = rng.integers(0, 3, (4_000, 5)).astype(float)
        group = rng.choice(["a", "b"], 4_000)
        label = rng.random(4_000) < 1 / (1 + np.exp(5 - features.sum(axis=1)))
        model = {
            "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
            "forest": RandomForestClassifier(30, max_depth=4, random_state=0),
            "categorical": LogisticRegression(),
        }[kind].fit(features[:2_000], label[:2_000])
        rest = slice(2_000, None)
        score = model.predict_proba(features[rest])[:, 1]
        # A tilt against one group, by a whole class of a feature.
        tilted = score - 0.25 * ((group[rest] == "b") & (features[rest, 0] == 1))
        for scores, unfair in ((score, False), (tilted, True)):
            options = {"y_score": scores, "sensitive_features": group[rest]}
            limit = fa.projection_test(label[rest], **options)
            assert math.isnan(limit.pvalue)
            assert "distinct margins (atoms, as those of trees, forests" in limit.inconclusive
            permuted = fa.projection_test(label[rest], **options, calibration="permutation", rng=1)
            assert permuted.inconclusive is None
            assert (permuted.pvalue < 0.01) == unfair

    def test_the_way_out_is_one(self):
        """Permutation is refused with weights and with a tolerance: it must not be advised."""
        label, score, group = random_rows(2, 1_000)
        for options in ({"sample_weight": np.linspace(1, 2, 1_000)}, {"epsilon": 0.01}):
            result = fa.projection_test(
                label, score >= 0, distance=np.full(1_000, 1.0), sensitive_features=group, **options
            )
            assert result.inconclusive
            assert not any("permutation" in note for note in result.warnings)


def problem_of(notion, rows, keys, base):
    """(phi, influence) of the reference."""
    _, decision, group, label, weight = rows
    return reference.criteria(notion, group, label, keys, base, decision, weight)


def check_projection(result, expected, tolerance=1e-9, certified=True):
    """The cost is that of the linear program, and one that is infinite has a reason."""
    if expected is None:
        assert math.isinf(result.statistic)
        assert result.inconclusive
        return
    assert result.statistic == pytest.approx(expected["statistic"], rel=tolerance, abs=1e-12)
    assert result.residual <= 1e-9
    if len(result.criteria) == 1 or certified:
        assert abs(result.duality_gap) <= 1e-9 * result.statistic + 1e-12


class TestReference:
    @pytest.mark.parametrize("n_groups", [2, 3, 4, 5, 6])
    def test_groups_equal_the_linear_program(self, n_groups):
        rng = np.random.default_rng(n_groups)
        n_infeasible = 0
        for instance in range(30):
            rows = ragged_rows(rng, n_groups, int(rng.integers(5, 60)))
            distance, decision, group, label, weight = rows
            notion, base = NOTIONS[instance % 4], int(rng.integers(n_groups))
            keys = list(range(n_groups))
            phi, _ = problem_of(notion, rows, keys, base)
            kind = instance % 3
            epsilon = None if kind == 0 else rng.choice([0.01, 0.05, 0.1], phi.shape[1])
            alternative = "greater" if kind == 2 else "two-sided"
            result = fa.projection_test(
                label, decision, distance=distance, sensitive_features=group, notion=notion,
                reference=base, sample_weight=weight, epsilon=epsilon, alternative=alternative,
            )  # fmt: skip
            expected = reference.linear_program(
                distance, decision, phi, weight, epsilon, alternative == "greater"
            )
            check_projection(result, expected, certified=False)
            n_infeasible += expected is None
            assert [criterion.gap for criterion in result.criteria] == pytest.approx(
                reference.gaps(decision, phi, weight), abs=1e-13
            )
            if expected is not None:
                weights = reference.normalised(weight, len(group))[result.moves.row]
                assert weights @ (result.moves.fraction * result.moves.distance) == pytest.approx(
                    result.statistic, rel=1e-9, abs=1e-12
                )
        assert n_infeasible < 25

    @pytest.mark.parametrize("options", [{}, {"epsilon": 0.1}, {"alternative": "greater"}])
    def test_groups_are_certified(self, options):
        """The dual value is a lower bound, and the cost reaches it."""
        rng = np.random.default_rng(3)
        for _ in range(40):
            distance, decision, group, _, weight = ragged_rows(rng, 3, 20)
            result = fa.projection_test(
                y_pred=decision, distance=distance, sensitive_features=group, reference=0,
                notion="statistical_parity", sample_weight=weight, **options,
            )  # fmt: skip
            if math.isfinite(result.statistic):
                gap = result.primal_value - result.dual_value
                assert abs(gap) <= 1e-9 * result.statistic + 1e-12

    def test_a_certificate_by_hand(self):
        """Rates 1/2 (cannot move), 1 and 1: group 1 moves 1.5 rows (0 + 0.5 * 2), group 2 half."""
        result = fa.projection_test(
            y_pred=[1, 0, 1, 1, 1, 1], sensitive_features=[0, 0, 1, 1, 1, 2],
            distance=[math.inf, math.inf, 0, 2, 2, 1], reference=0, alternative="greater",
            notion="statistical_parity",
        )  # fmt: skip
        assert result.statistic == pytest.approx(1.5)
        assert result.dual_value == pytest.approx(1.5)

    def test_attributes_equal_the_linear_program(self):
        rng = np.random.default_rng(9)
        for instance in range(40):
            distance, decision, group, label, weight = ragged_rows(
                rng, 2, int(rng.integers(30, 90))
            )
            several = np.stack([group, *rng.integers(0, 2, (1 + instance % 2, len(group)))], axis=1)
            notion = NOTIONS[instance % 4]
            try:
                phi, _ = reference.criteria_of_attributes(notion, several, label, decision, weight)
            except ValueError:
                continue
            names = [f"attribute {i}" for i in range(several.shape[1])]
            result = fa.projection_test(
                label, decision, distance=distance, notion=notion, attributes="separate",
                sensitive_features=dict(zip(names, several.T, strict=True)),
                reference=dict.fromkeys(names, 0), sample_weight=weight,
            )  # fmt: skip
            assert [criterion.attribute for criterion in result.criteria[: len(names)]] == names
            check_projection(result, reference.linear_program(distance, decision, phi, weight))

    @pytest.mark.parametrize("n_criteria", [1, 2, 3])
    @pytest.mark.parametrize("values", ["few", "dense"])
    def test_notions_of_the_user_equal_the_linear_program(self, n_criteria, values):
        rng = np.random.default_rng(n_criteria)
        for instance in range(15):
            distance, decision, _, _, weight = ragged_rows(rng, 2, int(rng.integers(60, 250)))
            shape = (len(distance), n_criteria)
            phi = rng.normal(size=shape) if values == "dense" else rng.integers(-1, 2, shape) * 1.0
            epsilon = None if instance % 3 else 0.02
            result = fa.projection_test(
                y_pred=decision, distance=distance, notion=fa.Notion(phi), epsilon=epsilon,
                sample_weight=weight, alternative="greater" if instance % 6 == 0 else "two-sided",
            )  # fmt: skip
            expected = reference.linear_program(
                distance, decision, phi, weight, epsilon, instance % 6 == 0
            )
            check_projection(result, expected)

    @pytest.mark.parametrize("values", ["few", "dense", "separate"])
    @pytest.mark.parametrize("far", [1e6, 1e9, 1e12, 1e300])
    def test_a_few_rows_far_away_change_nothing(self, values, far):
        """Distances that stand for "never" are as good as infinity, to the rows that move."""
        rng = np.random.default_rng(4)
        distance, decision = rng.exponential(size=400), rng.integers(0, 2, 400)
        several = rng.integers(0, 2, (400, 2))
        distance[:20] = far
        options = {
            "few": {"notion": fa.Notion(several - 0.5)},
            "dense": {"notion": fa.Notion(rng.normal(size=(400, 2)))},
            "separate": {
                "notion": "statistical_parity",
                "attributes": "separate",
                "sensitive_features": {"one": several[:, 0], "two": several[:, 1]},
            },
        }[values]
        with_infinity = np.where(distance == far, math.inf, distance)
        expected = fa.projection_test(y_pred=decision, distance=with_infinity, **options)
        found = fa.projection_test(y_pred=decision, distance=distance, **options)
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)
        assert found.duality_gap <= 1e-9 * found.statistic

    @pytest.mark.parametrize("values", ["groups", "few", "dense", "separate"])
    @pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e-6, 1e6, 1e12])
    def test_the_scale_of_weights_plays_no_part(self, values, scale):
        rng = np.random.default_rng(4)
        distance, decision = rng.exponential(size=400), rng.integers(0, 2, 400)
        several, weight = rng.integers(0, 2, (400, 2)), rng.uniform(0.5, 2, 400)
        features = {"one": several[:, 0], "two": several[:, 1]}
        options = {
            "groups": {"notion": "statistical_parity", "sensitive_features": features},
            "few": {"notion": fa.Notion(several - 0.5)},
            "dense": {"notion": fa.Notion(rng.normal(size=(400, 2)))},
            "separate": {
                "notion": "statistical_parity",
                "attributes": "separate",
                "sensitive_features": features,
            },
        }[values]
        expected, found = (
            fa.projection_test(y_pred=decision, distance=distance, sample_weight=value, **options)
            for value in (weight, weight * scale)
        )
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)
        assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-6, nan_ok=True)

    @pytest.mark.parametrize("values", ["groups", "few", "separate"])
    def test_weights_of_all_sizes(self, values):
        rng = np.random.default_rng(5)
        distance, decision = rng.exponential(size=400), rng.integers(0, 2, 400)
        several, weight = rng.integers(0, 2, (400, 2)), 10 ** rng.uniform(-12, 12, 400)
        options = {
            "groups": {"notion": "statistical_parity", "sensitive_features": several[:, 0]},
            "few": {"notion": fa.Notion(several - 0.5)},
            "separate": {
                "notion": "statistical_parity",
                "attributes": "separate",
                "sensitive_features": {"one": several[:, 0], "two": several[:, 1]},
            },
        }[values]
        result = fa.projection_test(
            y_pred=decision, distance=distance, sample_weight=weight, **options
        )
        criteria = {
            "groups": lambda: reference.criteria_of_attributes(
                "statistical_parity", several[:, :1], None, decision, weight
            )[0],
            "few": lambda: several - 0.5,
            "separate": lambda: reference.criteria_of_attributes(
                "statistical_parity", several, None, decision, weight
            )[0],
        }[values]()
        expected = reference.linear_program(distance, decision, criteria, weight)
        assert result.statistic == pytest.approx(expected["statistic"], rel=1e-6)

    @pytest.mark.parametrize("notion", NOTIONS)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_law_equals_the_reference(self, notion, weighted):
        n_compared = 0
        for seed in range(6):
            rng = np.random.default_rng(seed)
            groups = ["abc", "ab"][seed % 2]
            label, score, group = random_rows(seed, 3_000, groups, 0.1)
            weight = rng.uniform(0.5, 1.5, 3_000) if weighted else None
            h = 0.3 if weighted else None
            result = run(label, score, group, notion=notion, reference="b", sample_weight=weight,
                         bandwidth=h)  # fmt: skip
            decision, distance = (score >= 0).astype(int), np.abs(score)
            keys = [name for name in groups if name != "b"] + ["b"]
            phi, influence = reference.criteria(notion, group, label, keys, "b", decision, weight)
            expected = reference.projection_test(distance, decision, phi, influence, weight, h=h)
            assert result.bandwidth == pytest.approx(expected["bandwidth"], rel=1e-12)
            assert result.statistic == pytest.approx(expected["statistic"], rel=1e-9)
            errors_of = np.sqrt(np.diag(expected["sigma"]) / 3_000)
            assert [criterion.standard_error for criterion in result.criteria] == pytest.approx(
                errors_of, rel=1e-10
            )
            assert result.effective_rows == pytest.approx(
                expected["effective_points"].min(), rel=1e-10
            )
            if not math.isnan(result.pvalue):
                n_compared += 1
                assert result.pvalue == pytest.approx(expected["pvalue"], rel=1e-7)
        assert n_compared >= 5

    def test_matrices_equal_the_reference(self):
        label, score, group = random_rows(3, 2_000, "abcd", 0.1)
        weight = np.random.default_rng(0).uniform(0.5, 2, 2_000)
        table = AuditTable.make(
            y_true=label,
            y_pred=score >= 0,
            distance=np.abs(score),
            sensitive_features=group,
            sample_weight=weight,
        )
        criteria = pose_notion(table, "equalized_odds", reference="c", n_threads=1).criteria
        phi, influence = reference.criteria(
            "equalized_odds", group, label, list("abdc"), "c", score >= 0, weight
        )
        assert criteria.covariance == pytest.approx(reference.sigma(influence, weight), rel=1e-10,
                                                    abs=1e-12)  # fmt: skip
        for matrix, factor in zip(criteria.curvature(0.3).matrices, (0.5, 1, 2), strict=True):
            expected = reference.kernel_matrix(score, phi, factor * 0.3, weight)
            assert matrix == pytest.approx(expected, rel=1e-10, abs=1e-12)

    def test_bandwidth_of_weighted_rows(self):
        """1.06 sd N^(-1/5): the reference leaves weights out of it."""
        label, score, group = random_rows(3, 2_000)
        for weight in (np.exp(score), np.where(np.arange(2_000) == 3, 1e12, 1.0)):
            result = run(label, score, group, notion="statistical_parity", sample_weight=weight)
            assert result.bandwidth == pytest.approx(reference.bandwidth(score))

    @pytest.mark.parametrize("alternative", ["two-sided", "greater"])
    def test_composite_law_of_one_criterion(self, alternative):
        label, score, group = random_rows(3, 3_000, shift=0.25)
        result = run(label, score, group, epsilon=0.03, alternative=alternative)
        phi, influence = reference.criteria(
            "equal_opportunity", group, label, ["a", "b"], "b", score >= 0
        )
        expected = reference.projection_test(
            np.abs(score), score >= 0, phi, influence, None, 0.03, alternative == "greater"
        )
        assert result.statistic == pytest.approx(expected["statistic"], rel=1e-9)
        assert result.pvalue == pytest.approx(expected["pvalue"], rel=1e-6)
        assert 0 < result.pvalue < 0.5

    @pytest.mark.parametrize("alternative", ["two-sided", "greater"])
    def test_composite_law_of_several_criteria(self, alternative):
        label, score, group = random_rows(3, 3_000, "ab", shift=0.15)
        result = run(label, score, group, epsilon=0.02, alternative=alternative,
                     notion="equalized_odds")  # fmt: skip
        phi, influence = reference.criteria(
            "equalized_odds", group, label, ["a", "b"], "b", score >= 0
        )
        expected = reference.projection_test(
            np.abs(score), score >= 0, phi, influence, None, 0.02, alternative == "greater"
        )
        assert result.statistic == pytest.approx(expected["statistic"], rel=1e-9)
        assert result.pvalue == pytest.approx(expected["pvalue"], abs=0.004)
        assert 0.001 < result.pvalue < 0.9

    @pytest.mark.parametrize("derivative", [None, parity_derivative])
    def test_own_parity_is_parity(self, derivative):
        for seed, weighted in ((1, False), (2, True)):
            label, score, group = random_rows(seed, 2_000, shift=0.1)
            weight = np.exp(0.3 * score) if weighted else None
            notion = parity_notion(group, derivative)
            own, built_in = (
                run(label, score, group, notion=name, sample_weight=weight, bandwidth=0.25)
                for name in (notion, "statistical_parity")
            )
            assert own.statistic == pytest.approx(built_in.statistic, rel=1e-9)
            assert own.pvalue == pytest.approx(built_in.pvalue, rel=1e-6)
            assert own.standard_error == pytest.approx(built_in.standard_error, rel=1e-6)
            assert own.effective_rows == pytest.approx(built_in.effective_rows)

    @pytest.mark.parametrize("calibration", ["asymptotic", "permutation"])
    @pytest.mark.parametrize("kind", ["nothing", "undecided rows", "perfect split"])
    def test_criteria_without_variance(self, kind, calibration):
        _, score, _ = random_rows(1, 500)
        notion = {
            "nothing": fa.Notion(np.zeros(500)),
            "undecided rows": fa.Notion(np.where(score >= 0, 0.0, 1.0)),
            "perfect split": parity_notion(np.where(score >= 0, "a", "b"), parity_derivative),
        }[kind]
        result = fa.projection_test(
            y_pred=score >= 0, distance=np.abs(score), notion=notion, calibration=calibration,
            n_resamples=19, rng=0,
        )  # fmt: skip
        if kind != "perfect split":
            assert (result.statistic, result.pvalue) == (0, 1)


class TestProperties:
    def test_names_of_groups(self):
        label, score, group = random_rows(1, shift=0.1)
        result = run(label, score, group)
        other = run(label, score, np.where(group == "a", "z", "y"))
        assert other.statistic == result.statistic
        assert other.pvalue == result.pvalue
        assert other.estimate == -result.estimate
        assert {"z", "y"} == set(other.group_sizes)

    @pytest.mark.parametrize("attributes", ["crossed", "separate"])
    @pytest.mark.parametrize("calibration", ["asymptotic", "permutation"])
    def test_order_of_rows_bit_for_bit(self, attributes, calibration):
        label, score, group = random_rows(1, 500, "abc", shift=0.1)
        score = np.round(score, 2) + 0.005
        order = np.random.default_rng(0).permutation(500)
        other = np.arange(500) % 2
        options = {"attributes": attributes, "calibration": calibration, "n_resamples": 29}
        results = [
            run(label[at], score[at], {"group": group[at], "other": other[at]}, rng=1, **options)
            for at in (np.arange(500), order)
        ]
        if calibration == "asymptotic":
            assert repr(numbers_of(results[0])) == repr(numbers_of(results[1]))
        assert results[0].statistic == results[1].statistic
        moved = [dict(zip(r.moves.row.tolist(), r.moves.fraction, strict=True)) for r in results]
        assert {int(order[row]): fraction for row, fraction in moved[1].items()} == moved[0]

    @pytest.mark.parametrize("calibration", ["asymptotic", "permutation"])
    def test_threads_bit_for_bit(self, calibration):
        label, score, group = random_rows(1, 150_000, "abc", shift=0.02)
        weight = None if calibration == "permutation" else np.exp(score)
        results = [
            run(label, score, group, notion="equalized_odds", rng=3, n_threads=n_threads,
                calibration=calibration, n_resamples=49, sample_weight=weight)
            for n_threads in (1, 2, 7)
        ]  # fmt: skip
        assert len({repr(numbers_of(result)) for result in results}) == 1
        for result in results[1:]:
            assert np.array_equal(result.null_distribution, results[0].null_distribution)
            assert np.array_equal(result.moves.fraction, results[0].moves.fraction)
            assert np.array_equal(result.histogram, results[0].histogram)

    @pytest.mark.parametrize("calibration", ["asymptotic", "permutation"])
    @pytest.mark.parametrize("scale", [1e-300, 1e-9, 7.0, 1e300])
    @pytest.mark.parametrize("kind", ["two", "three", "separate", "own"])
    def test_scale_of_distances(self, calibration, scale, kind):
        label, score, group = random_rows(1, 800, "abc", shift=0.1)
        features = {"group": group == "a", "other": np.arange(800) % 2}
        options = {
            "two": {"sensitive_features": group == "a"},
            "three": {"sensitive_features": group},
            "separate": {"sensitive_features": features, "attributes": "separate"},
            "own": {"notion": fa.Notion(np.random.default_rng(0).normal(size=(800, 2)))},
        }[kind]
        one, scaled = (
            fa.projection_test(
                label, score >= 0, distance=np.abs(score) * factor, calibration=calibration,
                n_resamples=9, rng=0, **options,
            )
            for factor in (1, scale)
        )  # fmt: skip
        assert scaled.statistic == pytest.approx(one.statistic * scale, rel=1e-9)
        assert scaled.pvalue == pytest.approx(one.pvalue, rel=1e-6, nan_ok=True)
        assert scaled.bandwidth == pytest.approx(one.bandwidth * scale)

    def test_whole_weights_are_copies(self):
        label, score, group = random_rows(1, 600, "abc", shift=0.1)
        weight = np.random.default_rng(0).integers(0, 4, 600)
        copies = np.repeat(np.arange(600), weight)
        for notion in NOTIONS:
            weighted = run(label, score, group, notion=notion, sample_weight=weight, bandwidth=0.3)
            copied = run(label[copies], score[copies], group[copies], notion=notion, bandwidth=0.3)
            assert weighted.distance == pytest.approx(copied.distance, rel=1e-9)
            assert [criterion.gap for criterion in weighted.criteria] == pytest.approx(
                [criterion.gap for criterion in copied.criteria], abs=1e-13
            )

    def test_forms_of_data(self, tmp_path):
        pandas = pytest.importorskip("pandas")
        label, score, group = random_rows(1, 1_000, shift=0.1)
        frame = pl.DataFrame({"y": label, "c": score >= 0, "d": np.abs(score), "g": group})
        frame.write_parquet(tmp_path / "rows.parquet")
        frame.write_csv(tmp_path / "rows.csv")
        expected = numbers_of(run(label, score, group))
        for data in (
            frame,
            frame.lazy(),
            frame.to_pandas() if hasattr(pandas, "DataFrame") else frame,
            frame.to_arrow(),
            str(tmp_path / "rows.parquet"),
            str(tmp_path / "rows.csv"),
        ):
            found = fa.projection_test("y", "c", distance="d", sensitive_features="g", data=data)
            assert numbers_of(found) == expected
        lists = fa.projection_test(
            label.tolist(), (score >= 0).tolist(), distance=np.abs(score).tolist(),
            sensitive_features=group.tolist(),
        )  # fmt: skip
        assert numbers_of(lists) == expected
        scored = fa.projection_test(label, y_score=score, threshold=0, sensitive_features=group)
        assert numbers_of(scored) == expected

    @pytest.mark.parametrize("notion", NOTIONS)
    def test_reference_does_not_matter(self, notion):
        label, score, group = random_rows(4, 4_000, "abcd", shift=0.1)
        results = [run(label, score, group, notion=notion, reference=name) for name in "abcd"]
        results.append(run(label, score, group, notion=notion))
        for result in results[1:]:
            assert result.statistic == pytest.approx(results[0].statistic, rel=1e-10)
            assert result.pvalue == pytest.approx(results[0].pvalue, rel=1e-8)
            assert result.critical_value == pytest.approx(results[0].critical_value, rel=1e-6)

    def test_a_wider_tolerance_is_easier(self):
        label, score, group = random_rows(1, 4_000, "abc", shift=0.25)
        results = [
            run(label, score, group, reference="c", epsilon=epsilon)
            for epsilon in (0, 0.01, 0.03, 0.05, 0.2)
        ]
        statistics, pvalues = zip(
            *[(result.statistic, result.pvalue) for result in results], strict=True
        )
        assert list(statistics) == sorted(statistics, reverse=True)
        assert list(pvalues) == sorted(pvalues)
        assert pvalues[-1] == 1

    def test_groups_that_are_not_compared(self):
        label, score, group = random_rows(1, 1_500, "abc", shift=0.1)
        score[group == "c"] = 99
        part = group != "c"
        named = run(label, score, group, groups=["a", "b"])
        assert numbers_of(named) == numbers_of(run(label[part], score[part], group[part]))
        assert named.n_rows == part.sum()
        assert set(named.group_sizes) == {"a", "b"}
        score[group == "c"] = math.nan
        distance = np.abs(score)
        unread = fa.projection_test(
            label, score >= 0, distance=distance, sensitive_features=group, groups=["a", "b"]
        )
        assert numbers_of(unread) == numbers_of(named)

    def test_missing_groups_are_counted(self):
        label, score, group = random_rows(1, 1_000, shift=0.1)
        group = group.astype(object)
        group[:50] = None
        result = run(label, score, group)
        assert (result.n_missing, result.n_rows) == (50, 950)
        assert any("50 of 1,000 rows have no value of group" in note for note in result.warnings)
        assert numbers_of(result) == numbers_of(run(label[50:], score[50:], group[50:]))

    @pytest.mark.parametrize("pos_label", [0, -1, "yes"])
    def test_positive_label_with_a_model(self, pos_label):
        """It names a value of y_true; the model's decisions are its own."""
        label, score, group = random_rows(1, 800)
        distance = fa.LinearModel([1.0], threshold=0.0, link="identity").distance(score[:, None])
        expected = fa.projection_test(label, distance=distance, sensitive_features=group)
        other = "no" if pos_label == "yes" else 1
        names = np.where(label == 1, pos_label, other)
        found = fa.projection_test(
            names, distance=distance, sensitive_features=group, pos_label=pos_label
        )
        assert numbers_of(found) == numbers_of(expected)

    def test_positive_label(self):
        label, score, group = random_rows(1, 800)
        expected = run(label, score, group)
        found = fa.projection_test(
            np.where(label == 1, "yes", "no"), np.where(score >= 0, "yes", "no"),
            distance=np.abs(score), sensitive_features=group, pos_label="yes",
        )  # fmt: skip
        assert numbers_of(found) == numbers_of(expected)

    @pytest.mark.parametrize("notion", NOTIONS)
    def test_moves_equalise_the_rates(self, notion):
        label, score, group = random_rows(1, 900, "abc", shift=0.4)
        result = run(label, score, group, notion=notion)
        decision = (score >= 0).astype(float)
        moves = result.moves
        assert np.array_equal(moves.from_decision, decision[moves.row])
        assert np.array_equal(moves.distance, np.abs(score)[moves.row])
        assert [moves.groups[i] for i in moves.group] == group[moves.row].tolist()
        decision[moves.row] += moves.fraction * (1 - 2 * moves.from_decision)
        for stratum in reference.NOTIONS[notion]:
            part = label == label if stratum is None else label == stratum
            rates = [decision[part & (group == name)].mean() for name in "abc"]
            assert np.ptp(rates) < 1e-12
        assert moves.cost == pytest.approx(result.statistic, rel=1e-12)
        assert sum(row.n_rows for row in result.moved) == len(moves)
        total = sum(row.mass * row.mean_distance for row in result.moved)
        assert total == pytest.approx(result.statistic)
        frame = moves.to_frame()
        assert frame.columns == ["row", "group", "label", "fraction", "from", "to", "distance"]
        assert frame.height == len(moves)
        if notion == "statistical_parity":
            assert frame["label"].null_count() == frame.height

    @pytest.mark.parametrize("kind", ["l2", "l1", "linf", "immovable", "discrete"])
    def test_moved_rows_of_a_linear_model_flip(self, kind):
        rng = np.random.default_rng(2)
        features = np.column_stack([rng.normal(size=(700, 2)), rng.integers(0, 2, 700)])
        model = fa.LinearModel([1.0, -0.5, 0.4], 0.1)
        options = {
            "immovable": {"immovable": [1]},
            "discrete": {"discrete": [2], "discrete_cost": 0.3},
        }.get(kind, {"norm": kind})
        distance = model.distance(features, **options)
        result = fa.projection_test(
            rng.integers(0, 2, 700), distance=distance,
            sensitive_features=np.where(features[:, 0] + rng.normal(size=700) > 0, "a", "b"),
        )  # fmt: skip
        moved = result.moves.x
        assert moved.shape == (len(result.moves), 3)
        assert len(moved) > 20
        assert np.array_equal(model.decision(moved), result.moves.from_decision == 0)
        if kind == "l2":
            length = np.linalg.norm(moved - features[result.moves.row], axis=1)
            assert length == pytest.approx(result.moves.distance, rel=1e-6)
        assert result.moves.to_frame().columns[-3:] == ["to_x1", "to_x2", "to_x3"]

    def test_moved_rows_of_a_kernel_model_flip(self):
        rng = np.random.default_rng(2)
        features = rng.normal(size=(400, 2))
        model = fa.KernelModel(rng.normal(size=(12, 2)), rng.choice([-1.0, 1.0], 12), 0.05)
        result = fa.projection_test(
            y_pred=None, distance=model.distance(features), notion="statistical_parity",
            sensitive_features=np.where(features[:, 0] > 0, "a", "b"),
        )  # fmt: skip
        moved = result.moves.x
        known = ~np.isnan(moved).any(axis=1)
        assert known.mean() > 0.5
        flipped = model.decision(moved[known]) == (result.moves.from_decision[known] == 0)
        assert flipped.all()

    def test_searched_distances_are_upper_bounds(self):
        import torch

        torch.set_num_threads(1)
        rng = np.random.default_rng(3)
        features, group = rng.normal(size=(600, 3)), rng.choice(["a", "b"], 600)
        features[group == "a", 0] += 0.4
        module = torch.nn.Linear(3, 1).double()
        with torch.no_grad():
            module.weight.copy_(torch.tensor([[1.0, -0.5, 0.25]]))
            module.bias.fill_(0.1)
        options = {"sensitive_features": group, "notion": "statistical_parity"}
        exact = fa.projection_test(
            distance=fa.LinearModel([1.0, -0.5, 0.25], 0.1).distance(features), **options
        )
        searched = fa.projection_test(
            distance=fa.TorchModel(module, dtype="float64").distance(features), **options
        )
        assert searched.statistic >= exact.statistic * (1 - 1e-9)
        assert searched.statistic == pytest.approx(exact.statistic, rel=1e-5)
        assert any("are upper bounds" in note for note in searched.warnings)
        assert not any("are upper bounds" in note for note in exact.warnings)
        assert searched.moves.x is not None

    def test_without_a_model_nothing_is_known_of_x(self):
        label, score, group = random_rows(1)
        assert run(label, score, group).moves.x is None
        scored = fa.projection_test(label, y_score=score, threshold=0, sensitive_features=group)
        assert scored.moves.x is None

    @pytest.mark.parametrize("features", [True, False])
    def test_explanation_of_an_own_notion(self, features, tmp_path):
        label, score, group = random_rows(1, shift=0.2)
        notion = parity_notion(group, name="mine", names=["parity"])
        result = run(label, score, group if features else None, notion=notion)
        assert result.moves.to_frame().height == len(result.moves)
        assert result.criteria[0].name == "parity"
        assert result.notion == "mine"
        assert sum(row.n_rows for row in result.moved) == len(result.moves)
        result.plot().save(tmp_path / "chart.json")
        assert json.loads((tmp_path / "chart.json").read_text())["title"] == "mine"

    def test_charts(self, tmp_path):
        pytest.importorskip("vl_convert")
        label, score, group = random_rows(1, shift=0.2)
        chart = run(label, score, group).plot()
        for ending in ("json", "svg", "png", "html"):
            chart.save(tmp_path / f"chart.{ending}")
        assert json.loads((tmp_path / "chart.json").read_text()) == chart.spec
        assert ElementTree.parse(tmp_path / "chart.svg").getroot().tag.endswith("svg")
        assert (tmp_path / "chart.png").read_bytes()[:4] == b"\x89PNG"
        assert "<html" in (tmp_path / "chart.html").read_text().lower()
        assert "application/vnd.vegalite.v5+json" in chart._repr_mimebundle_()

    @pytest.mark.parametrize("distance", ["near", "infinite"])
    def test_charts_of_nothing(self, distance, tmp_path):
        label, score, group = random_rows(1)
        far = np.full(len(score), math.inf) if distance == "infinite" else np.zeros(len(score))
        result = fa.projection_test(label, score >= 0, distance=far, sensitive_features=group)
        json.dumps(result.plot().spec, allow_nan=False)
        json.dumps(result.to_dict(), allow_nan=False)

    @pytest.mark.parametrize("calibration", ["asymptotic", "permutation"])
    def test_results_are_equal(self, calibration):
        label, score, group = random_rows(1, shift=0.1)
        options = {"calibration": calibration, "n_resamples": 99}
        one = run(label, score, group, rng=1, **options)
        same = run(label, score, group, rng=one.seed, **options)
        other = run(label, score + 0.01, group, rng=1, **options)
        assert hash(one) == hash(same)
        assert one == same
        assert one != other

    def test_results_explain_themselves(self):
        label, score, group = random_rows(1, 1_000, "abc", shift=0.4)
        for options in (
            {"groups": ["a", "b"]},
            {},
            {"calibration": "permutation", "n_resamples": 99, "rng": 0},
            {"reference": "a", "epsilon": 0.01},
        ):
            result = run(label, score, group, **options)
            text = str(result)
            assert "equal_opportunity" in text
            assert "rows change sides" in text
            assert "projection test" in text
            assert len(repr(result)) < 300
            assert repr(result).startswith("ProjectionResult(")
            page = result._repr_html_()
            assert page.startswith("<div>")
            assert "true_positive_rate" in page
            content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
            assert content["kind"] == "ProjectionResult"
            assert content["statistic"] == result.statistic
            assert result.to_frame().height == len(result.criteria)
            assert result.distance == result.statistic / result.n_rows

    def test_html_is_escaped(self):
        label, score, group = random_rows(1)
        result = run(label, score, np.where(group == "a", "<b>", "&"))
        assert "<b>" not in result._repr_html_()

    @pytest.mark.parametrize("separate", [False, True])
    def test_progress(self, separate):
        label, score, group = random_rows(1, 400)
        seen = []
        options = {"calibration": "permutation", "n_resamples": 40, "rng": 0}
        features = {"group": group, "other": np.arange(400) % 2} if separate else group
        if separate:
            options["attributes"] = "separate"
        run(label, score, features, progress=lambda *counts: seen.append(counts), **options)
        assert seen[-1] == (40, 40)
        assert seen == sorted(seen)
        with pytest.raises(RuntimeError, match="enough"):
            run(label, score, features, progress=self.stop, **options)

    @staticmethod
    def stop(done, total):
        raise RuntimeError("enough")

    def test_progress_prints(self, monkeypatch):
        label, score, group = random_rows(1, 400)
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        run(label, score, group, calibration="permutation", n_resamples=40, progress=True)
        assert "40 / 40" in " ".join(stream.getvalue().split())

    @pytest.mark.parametrize("separate", [False, True])
    def test_interrupts_are_heard(self, separate):
        label, score, group = random_rows(1, 2_000)
        features, options = group, {}
        if separate:
            features = {"group": group, "other": np.arange(2_000) % 2}
            options["attributes"] = "separate"
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        # A shell's background job ignores the signal; then this would not end.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            start = time.monotonic()
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                run(label, score, features, calibration="permutation", n_resamples=10**7, **options)
            # All replicates take many minutes.
            assert time.monotonic() - start < 60
        finally:
            signal.signal(signal.SIGINT, before)

    def test_permutation_is_seeded(self):
        label, score, group = random_rows(1, 500)
        options = {"calibration": "permutation", "n_resamples": 99}
        one, same, other = (run(label, score, group, rng=seed, **options) for seed in (1, 1, 2))
        assert np.array_equal(one.null_distribution, same.null_distribution)
        assert not np.array_equal(one.null_distribution, other.null_distribution)
        extreme = np.sum(one.null_distribution <= one.null_distribution.max())
        assert extreme == len(one.null_distribution) == 99
        assert (one.pvalue * 100) == pytest.approx(round(one.pvalue * 100))
        assert one.pvalue_interval[0] <= one.pvalue <= one.pvalue_interval[1] + 0.01

    def test_permutation_sees_a_gap_of_a_group_that_cannot_move(self):
        """Only b can move; 0.8 against 0.3 in 2,000 rows is no chance."""
        rng = np.random.default_rng(1)
        group = rng.choice(["a", "b"], 2_000)
        decision = rng.random(2_000) < np.where(group == "a", 0.8, 0.3)
        distance = np.where(group == "a", math.inf, rng.exponential(size=2_000))
        asymptotic, permuted = (
            fa.projection_test(
                y_pred=decision, distance=distance, sensitive_features=group,
                notion="statistical_parity", calibration=calibration, n_resamples=99, rng=0,
            )
            for calibration in ("asymptotic", "permutation")
        )  # fmt: skip
        assert asymptotic.pvalue < 1e-9
        assert not permuted.pvalue > 0.05

    def test_many_groups_are_quick(self):
        """Five times the groups are five times the work; pairs of them would be 25 times."""
        rng = np.random.default_rng(0)
        decision, distance = rng.random(20_000) < 0.5, rng.random(20_000)

        def work(n_groups):
            """Count calls of functions, which a slow machine does not change."""
            calls = []
            sys.setprofile(lambda *event: calls.append(event[1]))
            try:
                fa.projection_test(
                    y_pred=decision, distance=distance, notion="statistical_parity",
                    sensitive_features=np.arange(20_000) % n_groups,
                )  # fmt: skip
            finally:
                sys.setprofile(None)
            return len(calls)

        work(2)
        assert work(400) < 8 * work(80)

    def test_a_million_rows(self):
        label, score, group = random_rows(0, 1_000_000, "abc")
        result = run(label, score, group, notion="equalized_odds")
        assert result.duality_gap <= 1e-9 * result.statistic
        assert result.inconclusive is None


def test_the_example_of_the_docs(tmp_path, capsys):
    page = Path(__file__).resolve().parents[2] / "docs" / "projection.md"
    text = page.read_text(encoding="utf-8")
    names = {}
    exec(text.partition("```python\n")[2].partition("```")[0], names)
    printed = text.partition("```\n\n    ")[2].partition("\n\n")[0]
    assert " ".join(printed.split()) in " ".join(capsys.readouterr().out.split())
    names["chart"].save(tmp_path / "margins.svg")
    assert (tmp_path / "margins.svg").read_text(encoding="utf-8").startswith("<svg")


def limits(n_repeats, level, tail=1e-6):
    """Shares of rejections that a test of this level shows but with this probability on a side."""
    law = stats.binom(n_repeats, level)
    return law.ppf(tail) / n_repeats, law.isf(tail) / n_repeats


def hybrid_rows(rng, n_rows, kind, share=0.1):
    """Group 1 is small and far from the boundary, group 0 near; both are decided 1 by a coin."""
    group = (rng.random(n_rows) < share).astype(int)
    score = rng.normal(size=n_rows)
    if kind == "lattice":
        score = (np.floor(score * 5) + 0.5) / 5
    elif kind == "forest":
        # Shares of 20 trees that vote for 1; one half is never reached.
        score = (rng.binomial(19, 0.5, n_rows) - 9.5) / 19
    elif kind == "categorical":
        score = rng.choice([-2.0, -1.0, 1.0, 2.0], n_rows)
    return score * np.where(group == 1, 3.0, 0.1), group


@pytest.mark.calibration
class TestCalibration:
    @pytest.mark.parametrize(
        ("n_rows", "n_repeats"), [(100, 6_000), (300, 6_000), (1_000, 6_000), (5_000, 4_000)]
    )
    def test_size_of_the_limit_law(self, n_rows, n_repeats):
        """METHODS: 0.050, 0.047, 0.051, 0.044 at these sizes, of all samples."""
        rng = np.random.default_rng(n_rows)
        pvalues = []
        for _ in range(n_repeats):
            distance, decision, group, label = reference.two_gaussians(rng, n_rows)
            pvalues.append(
                fa.projection_test(
                    label, decision, distance=distance, sensitive_features=group, n_threads=1
                ).pvalue
            )
        pvalues = np.array(pvalues)
        conclusive = pvalues[~np.isnan(pvalues)]
        low, high = limits(len(conclusive), 0.05)
        # The limit is an approximation: half a point more on both sides.
        assert low - 0.005 <= np.mean(conclusive <= 0.05) <= high + 0.005
        assert len(conclusive) / n_repeats > {100: 0.5, 300: 0.85, 1_000: 0.94, 5_000: 0.98}[n_rows]

    def test_a_squared_distance_fails_the_same_check(self):
        """The cost that the paper prints as (3b): its density at the boundary is infinite."""
        rng = np.random.default_rng(9)
        pvalues = []
        for _ in range(2_000):
            distance, decision, group, label = reference.two_gaussians(rng, 1_000)
            result = fa.projection_test(
                label, decision, distance=distance**2, sensitive_features=group, n_threads=1
            )
            pvalues.append(result.sensitivity[1][1] if result.sensitivity else 1.0)
        low, high = limits(2_000, 0.05)
        assert not low - 0.005 <= np.mean(np.array(pvalues) <= 0.05) <= high + 0.005

    @pytest.mark.parametrize(
        ("alternative", "notion"),
        [("two-sided", "statistical_parity"), ("greater", "statistical_parity"),
         ("two-sided", "equalized_odds"), ("greater", "equalized_odds")],
    )  # fmt: skip
    def test_size_at_the_tolerance(self, alternative, notion):
        """True gaps of exactly epsilon; without the tolerance the same data are rejected."""
        rng = np.random.default_rng(10)
        pvalues, sharp = [], []
        for _ in range(1_500):
            group, label = rng.integers(0, 2, 1_500), rng.integers(0, 2, 1_500)
            score = rng.normal(size=1_500) + stats.norm.ppf(0.55) * group
            options = {
                "y_pred": score >= 0, "distance": np.abs(score), "sensitive_features": group,
                "notion": notion, "reference": 0, "n_threads": 1,
            }  # fmt: skip
            if notion == "equalized_odds":
                options["y_true"] = label
            pvalues.append(
                fa.projection_test(epsilon=0.05, alternative=alternative, **options).pvalue
            )
            sharp.append(fa.projection_test(**options).pvalue)
        pvalues = np.array(pvalues)
        pvalues = pvalues[~np.isnan(pvalues)]
        low, high = limits(len(pvalues), 0.05)
        assert len(pvalues) > 1_300
        assert low - 0.01 <= np.mean(pvalues <= 0.05) <= high
        assert np.mean(np.array(sharp) <= 0.05) > high

    def test_size_where_groups_are_unequal(self):
        """The limits on expected decisions and effective rows keep the level, and are needed."""
        rng = np.random.default_rng(8)
        kept, refused = [], []
        for _ in range(9_000):
            n_rows = int(rng.choice([100, 200, 400, 800]))
            group = rng.random(n_rows) < rng.choice([0.05, 0.1, 0.2, 0.5])
            group[:2] = True, False
            score = rng.normal(size=n_rows) - rng.choice([-1.2, -0.6, 0, 0.6, 1.2])
            result = fa.projection_test(
                y_pred=score >= 0, distance=np.abs(score), sensitive_features=group,
                notion="statistical_parity", n_threads=1,
            )  # fmt: skip
            by_law = result.sensitivity[1][1] if result.sensitivity else result.pvalue
            few = result.inconclusive is not None and "the limit law needs" in result.inconclusive
            (refused if few else kept).append(by_law <= 0.05)
        low, high = limits(len(kept), 0.05)
        assert low - 0.005 <= np.mean(kept) <= high + 0.005
        assert np.mean(refused) > 0.1
        assert len(kept) > 5_000

    def far_group(self, seed, n_repeats, sizes, factors, rate):
        """By audit of fair decisions: p by the limit law, p as answered, effective rows.

        Groups have these sizes, rates of selection, and margins so many times as wide.
        """
        rng, group = np.random.default_rng(seed), np.repeat([0, 1], sizes)
        found = np.full((n_repeats, 3), np.nan)
        for audit in range(n_repeats):
            score = rng.normal(stats.norm.ppf(rate), size=sum(sizes)) * np.repeat(factors, sizes)
            result = fa.projection_test(
                y_pred=score >= 0, distance=np.abs(score), sensitive_features=group,
                notion="statistical_parity", n_threads=1,
            )  # fmt: skip
            by_law = result.sensitivity[1][1] if result.sensitivity else result.pvalue
            found[audit] = by_law, result.pvalue, result.effective_rows
        return found.T

    @pytest.mark.parametrize(
        ("sizes", "factors", "rate", "share"),
        [
            ((1_960, 40), (1, 3), 0.5, 0.8),
            ((1_960, 40), (1, 10), 0.5, 0.6),
            ((1_900, 100), (1, 3), 0.2, 0.9),
            ((1_900, 100), (10, 1), 0.5, 0.8),
        ],
    )
    def test_size_where_one_group_is_far_away(self, sizes, factors, rate, share):
        """Few rows near the boundary of a small group do no harm where it has decisions enough.

        With ten effective rows demanded of all, 1 % of the first design was answered, and 12 % of
        the last when a law that rejects too rarely answered rejections alone.
        """
        _, pvalue, effective = self.far_group(3, 4_000, sizes, factors, rate)
        answered = pvalue[~np.isnan(pvalue)]
        assert len(answered) / 4_000 > share
        for level in (0.05, 0.01, 0.001):
            assert np.mean(answered <= level) <= limits(len(answered), level)[1]
        if sizes == (1_960, 40):
            assert np.mean(effective < 10) > 0.9

    def test_the_law_without_its_conditions_fails_the_same_check(self):
        by_law, pvalue, _ = self.far_group(4, 1_500, (190, 10), (1, 3), 0.2)
        known = by_law[~np.isnan(by_law)]
        for level in (0.05, 0.01, 0.001):
            assert np.mean(known <= level) > limits(len(known), level)[1]
            assert np.mean(pvalue <= level) <= limits(1_500, level)[1]

    def permuted(self, rng, n_repeats, make, n_resamples=59):
        pvalues = []
        for seed in range(n_repeats):
            arguments = make(rng)
            result = fa.projection_test(
                calibration="permutation", n_resamples=n_resamples, rng=seed, n_threads=1,
                **arguments,
            )  # fmt: skip
            pvalues.append(result.pvalue)
        return np.array(pvalues)

    @pytest.mark.parametrize("kind", ["smooth", "lattice", "forest", "categorical"])
    def test_size_of_the_permutation(self, kind):
        def make(rng):
            score, group = hybrid_rows(rng, 400, kind)
            return {
                "y_pred": score >= 0,
                "distance": np.abs(score),
                "sensitive_features": group,
                "notion": "statistical_parity",
            }

        pvalues = self.permuted(np.random.default_rng(1), 4_000, make)
        assert not np.isnan(pvalues).any()
        assert np.mean(pvalues <= 0.05) <= limits(4_000, 0.05)[1]
        assert np.mean(pvalues <= 0.2) <= limits(4_000, 0.2)[1]

    @pytest.mark.parametrize("kind", ["smooth", "lattice"])
    def test_an_unstudentized_cost_fails_the_same_check(self, kind):
        """The cost of permuted groups, itself compared: the small group is far away."""
        rng = np.random.default_rng(1)

        def cost(score, group):
            return fa.projection_test(
                y_pred=score >= 0, distance=np.abs(score), sensitive_features=group,
                notion="statistical_parity", n_threads=1,
            ).statistic  # fmt: skip

        rejected = 0
        for _ in range(150):
            score, group = hybrid_rows(rng, 400, kind)
            null = [cost(score, rng.permutation(group)) for _ in range(19)]
            rejected += sum(replicate >= cost(score, group) for replicate in null) == 0
        assert rejected / 150 > limits(150, 0.05)[1]

    def test_size_of_the_permutation_of_equalized_odds(self):
        def make(rng):
            score, group = hybrid_rows(rng, 600, "lattice", 0.3)
            return {
                "y_true": rng.integers(0, 2, 600),
                "y_pred": score >= 0,
                "distance": np.abs(score),
                "sensitive_features": group,
                "notion": "equalized_odds",
            }

        pvalues = self.permuted(np.random.default_rng(2), 4_000, make)
        assert np.mean(pvalues <= 0.05) <= limits(4_000, 0.05)[1]

    def test_size_of_the_permutation_of_three_groups(self):
        """Scores of a forest: steps of 0.2 in all groups, which spread by 3, 0.1 and 1."""

        def make(rng):
            group = rng.choice(3, 1_500, p=[0.1, 0.3, 0.6])
            score = rng.normal(size=1_500) * np.array([3, 0.1, 1])[group]
            score = (np.floor(score * 5) + 0.5) / 5
            return {
                "y_pred": score >= 0,
                "distance": np.abs(score),
                "sensitive_features": group,
                "notion": "statistical_parity",
            }

        pvalues = self.permuted(np.random.default_rng(11), 2_500, make)
        assert np.mean(pvalues <= 0.05) <= limits(2_500, 0.05)[1]

    def test_size_of_the_permutation_of_attributes(self):
        def make(rng):
            score, group = hybrid_rows(rng, 300, "smooth", 0.2)
            return {
                "y_pred": score >= 0,
                "distance": np.abs(score),
                "sensitive_features": {"one": group, "two": rng.integers(0, 2, 300)},
                "attributes": "separate",
                "notion": "statistical_parity",
            }

        pvalues = self.permuted(np.random.default_rng(3), 500, make, n_resamples=39)
        assert np.mean(pvalues <= 0.05) <= limits(500, 0.05)[1]

    @pytest.mark.parametrize("kind", ["parity", "opportunity"])
    def test_size_of_the_permutation_of_own_notions(self, kind):
        """Positive labels lie farther away and are mostly decided 1, in both groups alike."""

        def make(rng):
            n_rows = 20 if kind == "parity" else 200
            group = (rng.random(n_rows) < 0.2).astype(float)
            group[:2] = 0, 1
            label = np.ones(n_rows) if kind == "parity" else (rng.random(n_rows) < 0.3) * 1.0
            label[:2] = 1
            score = rng.normal(size=n_rows) + 0.7
            if kind == "opportunity":
                score = rng.normal(size=n_rows) * np.where(label == 1, 2, 0.2) + 3 * label
            parts = np.stack([group * label, (1 - group) * label], axis=1)
            notion = fa.Notion(
                lambda u, mean: u[:, :1] / mean[0] - u[:, 1:] / mean[1],
                parts,
                strata=None if kind == "parity" else label,
            )
            return {"y_pred": score >= 0, "distance": np.abs(score), "notion": notion}

        n_repeats = 1_500 if kind == "parity" else 400
        pvalues = self.permuted(np.random.default_rng(4), n_repeats, make)
        assert np.mean(pvalues <= 0.05) <= limits(n_repeats, 0.05)[1]
        assert np.mean(pvalues <= 0.2) <= limits(n_repeats, 0.2)[1]

    def test_power_is_that_of_welch(self):
        rng = np.random.default_rng(5)
        rejected = []
        for _ in range(4_000):
            group = rng.integers(0, 2, 1_000)
            score = rng.normal(size=1_000) + 0.16 * group
            pvalue = fa.projection_test(
                y_pred=score >= 0, distance=np.abs(score), sensitive_features=group,
                notion="statistical_parity", n_threads=1,
            ).pvalue  # fmt: skip
            if not math.isnan(pvalue):
                rejected.append((pvalue <= 0.05, welch(score >= 0, group, group == group) <= 0.05))
        own, of_welch = np.mean(rejected, axis=0)
        assert abs(own - of_welch) < 0.03
        assert 0.3 < of_welch < 0.9
        assert len(rejected) > 3_500

    def test_power_against_two_shifts_beats_bonferroni(self):
        """Both rates of equalized odds are 2 standard errors apart."""
        rng = np.random.default_rng(6)
        rejected = []
        for _ in range(3_000):
            group, label = rng.integers(0, 2, (2, 1_000))
            score = rng.normal(size=1_000) + 0.225 * group
            pvalue = fa.projection_test(
                label, score >= 0, distance=np.abs(score), sensitive_features=group,
                notion="equalized_odds", n_threads=1,
            ).pvalue  # fmt: skip
            if not math.isnan(pvalue):
                pair = min(welch(score >= 0, group, label == value) for value in (0, 1))
                rejected.append((pvalue <= 0.05, pair <= 0.025))
        own, bonferroni = np.mean(rejected, axis=0)
        assert own > bonferroni
        assert len(rejected) > 2_500


def welch(decision, group, part):
    """p-value of Welch's z test of two rates."""
    first, second = decision[part & (group == 0)], decision[part & (group == 1)]
    variance = first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second)
    return 2 * stats.norm.sf(abs(first.mean() - second.mean()) / math.sqrt(variance))
