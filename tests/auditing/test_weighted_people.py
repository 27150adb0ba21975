"""Coverage and the minimum group size count people by weight, and no rows of weight 0."""

import json

import numpy as np
import pytest

import fairaudit_rs as fa


def audited(group, weight, decided, **options):
    own = {"name": "own", "criteria": [fa.Criterion(metric="selection_rate", tolerance=0.1)]}
    return fa.audit(
        None,
        decided,
        sensitive_features={"g": group},
        sample_weight=weight,
        policy=fa.Policy(**{**own, **options}),
        pos_label=1,
        rng=1,
    )


def alternating(n):
    return np.arange(n) % 2


class TestCoverage:
    def test_a_small_group_of_many_people_stands_in_the_way_of_a_pass(self):
        """The audit page, 1.2: 60 % of the people were not tested, and it passed."""
        group = np.repeat(["a", "b", "c"], [2_000, 1_980, 20])
        found = audited(group, np.where(group == "c", 300.0, 1.0), alternating(4_000))
        [one] = found.questions
        assert one.coverage == 3_980 / 9_980
        assert found.verdict == "inconclusive"
        assert "people in tested groups: g 39.9 %" in found.summary()
        assert "only 39.9 % of people are in groups that could be tested" in one.reason
        assert one.share_shown == 3_980 / 9_980
        assert fa.from_dict(json.loads(json.dumps(found.to_dict()))) == found

    def test_a_small_group_of_few_people_does_not(self):
        group = np.repeat(["a", "b", "c"], [200, 200, 25])
        found = audited(
            group, np.where(group == "c", 0.01, 1.0), alternating(425), min_coverage=0.99
        )
        assert found.questions[0].coverage == pytest.approx(400 / 400.25)
        assert 400 / 425 < 0.99

    def test_unknown_people_count_by_weight(self):
        group = np.repeat(["a", "b", "Unknown"], [2_000, 1_980, 20])
        weight = np.where(group == "Unknown", 300.0, 1.0)
        found = audited(group, weight, alternating(4_000))
        assert found.questions[0].coverage == 3_980 / 9_980
        assert "20 rows (60.1 % of people by weight) without a known g" in str(found)
        group = np.where(group == "Unknown", None, group)
        assert audited(group, weight, alternating(4_000)).questions[0].coverage == 3_980 / 9_980

    def test_weights_that_are_all_equal_change_nothing(self):
        group = np.repeat(["a", "b", "c"], [200, 200, 25])
        found = audited(group, np.full(425, 3.0), alternating(425))
        assert found.questions[0].coverage == 400 / 425

    def test_everybody_is_everybody(self):
        group = np.repeat(["a", "b", "c"], [2_000, 2_000, 500])
        weight = np.random.default_rng(0).uniform(0.9, 1.1, 4_500)
        assert audited(group, weight, alternating(4_500)).covers_all

    @pytest.mark.parametrize("seed", range(5))
    def test_everybody_within_strata_is_everybody(self, seed):
        """Two sums of the same weights differ in their last bit: "more than 99.9 %" was printed."""
        rng = np.random.default_rng(seed)
        found = fa.audit(
            None,
            rng.integers(0, 2, 1_500),
            sensitive_features={"g": rng.integers(0, 3, 1_500)},
            sample_weight=rng.lognormal(size=1_500),
            strata=rng.integers(0, 4, 1_500),
            policy=fa.Policy(
                name="own", criteria=[fa.Criterion(metric="selection_rate", tolerance=0.1)]
            ),
            pos_label=1,
            rng=1,
        )
        assert found.questions[0].coverage == 1
        assert "people in tested groups: g 100.0 %" in found.summary()

    def test_other_lenses_count_by_weight_too(self):
        group = np.repeat(["a", "b", "c"], [300, 300, 20])
        criteria = [fa.Criterion(lens="projection", tolerance=0.1, binding=False)]
        found = fa.audit(
            y_score=np.random.default_rng(0).random(620),
            y_true=alternating(620),
            sensitive_features={"g": group},
            sample_weight=np.where(group == "c", 30.0, 1.0),
            policy=fa.Policy(name="own", criteria=criteria),
            n_resamples=99,
            rng=1,
        )
        [one] = [one for one in found.others if one.lens == "projection"]
        assert one.coverage == 0.5


class TestMinimumGroupSize:
    def test_of_other_lenses(self):
        group = np.repeat(["a", "b", "c"], [300, 300, 200])
        weight = np.ones(800)
        weight[629:] = 0
        found = fa.audit(
            y_score=np.random.default_rng(0).random(800),
            y_true=alternating(800),
            sensitive_features={"g": group},
            sample_weight=weight,
            policy=fa.Policy(
                name="own", criteria=[fa.Criterion(lens="projection", tolerance=0.1, binding=False)]
            ),
            n_resamples=99,
            rng=1,
        )
        [one] = [one for one in found.others if one.lens == "projection"]
        assert len(one.tests) == 1

    def test_rows_of_weight_0_do_not_count(self):
        group = np.repeat(["a", "b", "c"], [2_000, 1_800, 200])
        weight = np.ones(4_000)
        weight[3_805:] = 0
        found = audited(group, weight, alternating(4_000))
        small = found.questions[0].groups[2]
        assert (small.n_counted, small.reason) == (5, "5 rows that count, of 30 needed")

    def test_weights_that_differ_are_worth_fewer_rows(self):
        group = np.repeat(["a", "b", "c"], [2_000, 1_800, 200])
        weight = np.ones(4_000)
        weight[-4:] = 1_000.0
        small = audited(group, weight, alternating(4_000)).questions[0].groups[2]
        own = weight[-200:]
        assert small.n_effective == pytest.approx(own.sum() ** 2 / (own**2).sum())
        assert small.reason == "200 rows that count, worth 4.4 rows of equal weight, of 30 needed"
        assert not small.withheld

    def test_a_raised_floor_asks_for_them_too(self):
        group = np.repeat(["a", "b"], [2_000, 200])
        weight = np.ones(2_200)
        weight[-50:] = 20.0
        small = audited(group, weight, alternating(2_200), floor=100).questions[0].groups[1]
        assert small.reason.endswith(
            "200 rows that count, worth 65.6 rows of equal weight, of 100 that the policy asks for"
        )
        assert small.withheld

    def test_labels_of_weight_0_do_not_count(self):
        rng = np.random.default_rng(0)
        label, group = alternating(1_000), np.repeat(["a", "b"], [800, 200])
        weight = np.where((group == "b") & (label == 1), 0.0, 1.0)
        weight[-1] = 1.0
        found = fa.audit(
            label,
            y_score=rng.random(1_000),
            sensitive_features={"g": group},
            sample_weight=weight,
            policy=fa.Policy(name="own", criteria=[fa.Criterion(metric="auc", tolerance=0.1)]),
            rng=1,
        )
        small = found.questions[0].groups[1]
        assert (small.n_positive, small.n_negative) == (1, 100)
        assert small.reason == "1 row with a positive label, of 20 needed"

    def test_without_weights_nothing_is_worth_less(self):
        found = audited(np.repeat(["a", "b"], 40), None, alternating(80))
        assert [one.n_effective for one in found.questions[0].groups] == [None, None]
        assert [one.n_people for one in found.questions[0].groups] == [40, 40]
