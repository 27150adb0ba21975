"""Coverage and the minimum group size count people by weight, and no rows of weight 0."""

import json

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs.auditing import questions
from fairaudit_rs.permutation.tolerance import ToleranceQuestion


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
        [one] = [finding for finding in found.others if finding.lens == "projection"]
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
        [one] = [finding for finding in found.others if finding.lens == "projection"]
        assert len(one.tests) == 1

    def test_rows_of_weight_0_do_not_count(self):
        group = np.repeat(["a", "b", "c"], [2_000, 1_800, 200])
        weight = np.ones(4_000)
        weight[3_805:] = 0
        found = audited(group, weight, alternating(4_000))
        small = found.questions[0].groups[2]
        assert (small.n_counted, small.reason) == (5, "5 eligible rows, of 30 needed")

    def test_weights_that_differ_are_worth_fewer_rows(self):
        group = np.repeat(["a", "b", "c"], [2_000, 1_800, 200])
        weight = np.ones(4_000)
        weight[-4:] = 1_000.0
        small = audited(group, weight, alternating(4_000)).questions[0].groups[2]
        own = weight[-200:]
        assert small.n_effective == pytest.approx(own.sum() ** 2 / (own**2).sum())
        assert small.reason == "200 eligible rows, worth 4.4 rows of equal weight, of 30 needed"
        assert not small.withheld

    def test_a_raised_floor_asks_for_them_too(self):
        group = np.repeat(["a", "b"], [2_000, 200])
        weight = np.ones(2_200)
        weight[-50:] = 20.0
        small = audited(group, weight, alternating(2_200), floor=100).questions[0].groups[1]
        assert small.reason.endswith(
            "200 eligible rows, worth 65.6 rows of equal weight, of 100 that the policy asks for"
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
        assert [group.n_effective for group in found.questions[0].groups] == [None, None]
        assert [group.n_people for group in found.questions[0].groups] == [40, 40]


class TestBaseRates:
    """Base rates and the notes about them counted rows, or were silent under weights."""

    def rates(self, weight):
        group = np.repeat(["a", "b"], 1_000)
        y_true = np.tile([1, 0, 0, 0], 500)
        return group, y_true, np.where(y_true == 1, weight, 1.0)

    def test_shares_are_by_weight(self):
        group, y_true, weight = self.rates(3.0)
        found = fa.audit(
            y_true, y_true, sensitive_features={"g": group}, sample_weight=weight, rng=1
        )
        first = found.base_rates[0]
        assert (first.n_rows, first.weight) == (1_000, 1_500.0)
        assert first.base_rate == pytest.approx(np.average(y_true[:1_000], weights=weight[:1_000]))
        assert first.selection_rate == first.base_rate == pytest.approx(0.5)
        [row, _] = found.to_frame("base_rates").to_dicts()
        assert (row["weight"], row["base_rate"]) == (1_500.0, first.base_rate)
        page = found.to_markdown()
        assert "## Groups (shares by weight)" in page
        assert "| g | a | 1,000 | 1,500.0 | 50.0 % | 50.0 % |" in page
        assert fa.from_dict(json.loads(json.dumps(found.to_dict()))) == found

    def test_weights_of_1_change_no_rate(self):
        group, y_true, _ = self.rates(1.0)
        data = {"y_true": y_true, "y_pred": 1 - y_true, "sensitive_features": {"g": group}}
        plain = fa.audit(**data, rng=1).base_rates
        found = fa.audit(**data, sample_weight=np.ones(2_000), rng=1).base_rates
        assert [rate.base_rate for rate in found] == [rate.base_rate for rate in plain]
        assert [rate.selection_rate for rate in found] == [rate.selection_rate for rate in plain]
        assert {rate.weight for rate in plain} == {None}

    def test_a_group_of_no_weight_has_no_rate(self):
        group = np.repeat(["a", "b", "c"], [200, 200, 50])
        found = audited(group, np.where(group == "c", 0.0, 1.0), alternating(450))
        assert np.isnan(found.base_rates[2].selection_rate)
        assert found.base_rates[2].weight == 0

    def test_the_numbers_of_a_rule_count_rows(self):
        group = np.repeat(["a", "b"], 100)
        decided = np.tile([1, 0], 100)
        found = fa.audit(
            y_pred=decided, sensitive_features={"g": group}, sample_weight=np.where(decided, 3, 1),
            policy="us_eeoc", rng=1,
        )  # fmt: skip
        [line] = found.rule_report.attributes[0].impact_ratios
        assert (line.selected, line.total) == (50, 100)
        assert found.base_rates[0].selection_rate == pytest.approx(0.75)

    def test_a_model_that_decides_alike_by_weight(self):
        group = np.repeat(["a", "b"], 1_000)
        decided = np.tile([1, 1, 1, 0], 500)
        found = audited(group, np.where(decided == 1, 1.0, 1e-3), decided)
        assert any("decides the same way for 100.0 % of the people" in w for w in found.warnings)
        found = audited(group, np.where(decided == 1, 1.0, 200.0), decided)
        assert not any("decides the same way" in w for w in found.warnings)

    def test_base_rates_that_differ_by_weight(self):
        rng = np.random.default_rng(2)
        group = np.repeat(["a", "b"], 10_000)
        y_true = (rng.random(20_000) < 0.4).astype(int)
        y_pred = (rng.random(20_000) < np.where(y_true == 1, 0.9, 0.1)).astype(int)
        weight = np.where((group == "a") & (y_true == 1), 3.0, 1.0)
        found = fa.audit(
            y_true, y_pred, sensitive_features={"sex": group}, sample_weight=weight, rng=1,
            n_resamples=999,
        )  # fmt: skip
        rates = [round(100 * rate.base_rate) for rate in found.base_rates]
        note = f"base rates differ by sex ({rates[1]} % of b and {rates[0]} % of a)"
        assert found.verdict == "pass"
        assert any(note in text for text in found.warnings)


class TestTooFewReplicates:
    """They were refused when all questions had been posed."""

    def given(self, n_groups, n_resamples):
        group = np.repeat([f"g{i}" for i in range(n_groups)], 80)
        metrics = ("selection_rate", "tpr", "fpr", "ppv")
        criteria = [fa.Criterion(metric=metric, tolerance=0.1) for metric in metrics]
        decided = alternating(len(group))
        return {
            "y_true": np.ones(len(group), int) - (np.arange(len(group)) % 4 == 3),
            "y_pred": decided,
            "sensitive_features": {"g": group},
            "sample_weight": np.random.default_rng(0).uniform(0.5, 2, len(group)),
            "policy": fa.Policy(name="own", criteria=criteria),
            "pos_label": 1,
            "rng": 1,
            "n_resamples": n_resamples,
        }

    def counted(self, monkeypatch, given):
        asked = []
        plain = questions.prepare_tolerance_question
        monkeypatch.setattr(
            questions,
            "prepare_tolerance_question",
            lambda *a, **kw: asked.append(a[1].name) or plain(*a, **kw),
        )
        with pytest.raises(fa.errors.ArgumentError, match="is tested by replicates") as raised:
            fa.audit(**given)
        return asked, str(raised.value)

    def test_many_groups_are_refused_with_the_first_question(self, monkeypatch):
        asked, message = self.counted(monkeypatch, self.given(23, 9_999))
        assert asked == ["selection_rate"]
        assert "n_resamples is 9,999" in message
        assert "253 comparisons at 0.05 need at least 10,120" in message

    def test_no_test_is_made_before(self, monkeypatch):
        made = []
        monkeypatch.setattr(
            ToleranceQuestion, "tests", lambda self, **_: made.append(self.metric.name)
        )
        asked, _ = self.counted(monkeypatch, self.given(3, 120))
        assert asked == ["selection_rate", "true_positive_rate"]
        assert made == []

    def test_counts_take_no_replicates(self):
        given = self.given(23, 99) | {"sample_weight": None, "evidence": "none"}
        assert fa.audit(**given).n_comparisons > 253
