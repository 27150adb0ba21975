"""When the test of two means or ratios gives no verdict, and what it says then."""

import math

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import _native
from fairaudit_rs.permutation.skewness import MOST_SKEWED, SkewnessGuard

from ..reference import means, means_intervals
from .posing import posed

RATIO = fa.metrics.ratio_metric("cost_per_case", "cost", "cases")
MEAN = fa.metrics.ratio_metric("mean_cost", "cost")


def make(seed):
    """Skewed rows of two groups of very unequal size."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(6, 60, 2)
    n, power = sum(sizes), rng.uniform(0.1, 2)
    return {
        "cost": rng.exponential(size=n) ** power * rng.choice([-1, 1]),
        "cases": rng.uniform(0.5, 2, n),
        "group": np.repeat(["a", "b"], sizes),
    }


def guard_of(problem):
    shifts = problem.test((0, 1)).shifts(_native.Draws(1, seed=1, series=1), _native.Call(1))
    return SkewnessGuard.from_shapes(shifts.shapes)


class TestReference:
    @pytest.mark.parametrize("metric", [MEAN, RATIO], ids=["mean", "ratio"])
    def test_as_the_reference_says(self, metric):
        skewed, sides = 0, []
        for seed in range(60):
            data = make(seed)
            found = guard_of(posed(metric, data=data, sensitive_features="group"))
            below = data["cases"] if metric is RATIO else np.ones(len(data["cost"]))
            slow = means_intervals.guard(data["cost"], below, data["group"])
            assert found.skewness == pytest.approx(max(slow.ratios), rel=1e-9)
            assert found.wanted == pytest.approx(slow.needed, rel=1e-9)
            assert found.group == slow.worse
            assert found.is_skewed == slow.too_skewed
            assert found.certain is None
            for gap in (-1.0, 1.0):
                assert found.blocks(gap) == slow.withholds_difference(gap)
            assert found.dangerous == -np.sign(slow.direction)
            skewed += found.is_skewed
            sides.append(found.dangerous)
        assert 5 < skewed < 55
        assert {-1, 1} <= set(sides)

    def test_a_group_that_does_not_vary(self):
        data = {"cost": np.r_[np.ones(9), np.arange(30.0)], "group": np.repeat(["a", "b"], [9, 30])}
        found = guard_of(posed(MEAN, data=data, sensitive_features="group"))
        slow = means_intervals.guard(data["cost"], None, data["group"])
        assert found.certain == 0
        assert slow.without_variance == (True, False)
        for gap in (-1.0, 1.0):
            assert found.blocks(gap)
            assert slow.withholds_difference(gap)

    def test_shapes_are_all_it_reads(self):
        """Normal values of unlike scale are not skewed, one that dwarfs the others is."""
        rng = np.random.default_rng(1)
        for scale in (1.0, 1e-6, 1e6):
            value = rng.normal(size=200) * np.repeat([scale, 1.0], 100)
            u = [(part - part.mean()) / 100 for part in (value[:100], value[100:])]
            shapes = np.array([[100.0, np.sum(entry**2), np.sum(entry**3)] for entry in u])
            assert not SkewnessGuard.from_shapes(shapes).is_skewed
        value[0] = 100 * scale
        u[0] = (value[:100] - value[:100].mean()) / 100
        shapes[0] = [100.0, np.sum(u[0] ** 2), np.sum(u[0] ** 3)]
        assert SkewnessGuard.from_shapes(shapes).skewness > MOST_SKEWED


class TestVerdicts:
    @staticmethod
    def rare(sign=1.0, moved=-3.0):
        """40 rows of "a" that have not met what 3 % of 1,960 rows of "b" have."""
        rng = np.random.default_rng(3)
        value = np.where(rng.random(2_000) < 0.03, 30.0, 0.0) + rng.normal(size=2_000)
        group = np.repeat(["a", "b"], [40, 1_960])
        value[:40] = rng.normal(size=40) + moved
        return {"cost": sign * value, "group": group}

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_a_tail_that_is_missing(self, sign):
        data = self.rare(sign)
        options = {"data": data, "sensitive_features": "group", "metric": MEAN, "rng": 1}
        result = fa.permutation_test(**options, n_resamples=1_999)
        # Without the guard it rejects.
        slow = means.linearised(data["cost"], None, data["group"])
        assert sign * slow.studentized < -2
        assert np.isnan([result.pvalue, *result.pvalue_interval]).all()
        word = "low" if sign > 0 else "high"
        assert f"a tail that a has not shown in 40 rows would make it look too {word}" in (
            result.inconclusive
        )
        assert "inconclusive" in str(result)
        assert any(text.startswith("no p-value: too skewed") for text in result.warnings)
        low, high = result.confidence_interval
        assert low <= 0 <= high
        assert (math.isinf(low) if sign > 0 else math.isinf(high)) or low < 0 < high
        assert result.to_dict()["inconclusive"] == result.inconclusive

    def test_the_other_side_is_answered(self):
        """A missing tail cannot have made "a" look high."""
        result = fa.permutation_test(
            data=self.rare(moved=9.0),
            sensitive_features="group",
            metric=MEAN,
            n_resamples=1_999,
            rng=1,
        )
        assert result.inconclusive is None
        assert result.pvalue <= 0.05

    def test_no_verdict_is_no_harm(self):
        """A test that does not reject is answered, however skewed."""
        data = self.rare(moved=0.0)
        result = fa.permutation_test(
            data=data, sensitive_features="group", metric=MEAN, n_resamples=1_999, rng=1
        )
        assert result.inconclusive is None
        assert result.pvalue > 0.05

    def test_few_clusters(self):
        """One cluster that holds nearly all rows is worth one: no p-value."""
        rng = np.random.default_rng(2)
        cluster = np.r_[np.zeros(95, dtype=int), 1, 2, 3, 4, 5, np.arange(6, 106)]
        data = {
            "cost": rng.normal(size=200),
            "group": np.repeat(["a", "b"], 100),
            "unit": cluster,
        }
        options = {"data": data, "sensitive_features": "group", "metric": MEAN, "rng": 1}
        result = fa.permutation_test(**options, clusters="unit", n_resamples=199)
        w = np.bincount(cluster[:100]) / 100
        effective = np.sum(w**2) ** 2 / np.sum(w**4)
        assert math.isnan(result.pvalue)
        assert f"the clusters of a are worth {effective:.3g} of one size" in result.inconclusive
        assert math.isnan(
            fa.permutation_test(
                **options, clusters="unit", n_resamples=199, interval="delta"
            ).confidence_interval[0]
        )

    def test_several_groups(self):
        """A pair without a verdict is none of the family's; the test of all says what it is."""
        data = self.rare()
        data["group"] = np.where(np.arange(2_000) >= 1_500, "c", data["group"])
        result = fa.permutation_test(
            data=data, sensitive_features="group", metric=MEAN, n_resamples=999, rng=1
        )
        by_pair = {(pair.first, pair.second): pair for pair in result.comparisons}
        assert math.isnan(by_pair["a", "b"].pvalue)
        assert math.isnan(by_pair["a", "b"].adjusted_pvalue)
        assert "too skewed" in by_pair["a", "b"].inconclusive
        assert by_pair["b", "c"].inconclusive is None
        assert result.inconclusive is None
        assert any("not corrected for skewness" in text for text in result.warnings)


class TestIntervalsAndMargins:
    """Intervals and equivalence tests withhold the same verdicts as the test."""

    @staticmethod
    def missed(**changes):
        """40 rows that hold none of the tail of their law."""
        rng = np.random.default_rng(0)
        first, second = 0.3 * rng.lognormal(0, 1.5, 40), rng.lognormal(0, 1.5, 1_960) + 1
        data = {"cost": np.r_[first, second], "group": np.repeat(["a", "b"], [40, 1_960])}
        return {"data": data, "sensitive_features": "group", "metric": MEAN, "rng": 1, **changes}

    def test_intervals_are_open_where_a_tail_is_missing(self):
        result = fa.intervals(**self.missed(), n_resamples=999)
        low, high = result.confidence_interval
        assert math.isfinite(low)
        assert high == math.inf
        assert any("interval of a and b: too skewed for n" in text for text in result.warnings)
        turned = fa.intervals(**self.missed(groups=["b", "a"]), n_resamples=999)
        assert turned.confidence_interval[0] == -math.inf
        symmetric = self.missed()
        symmetric["data"]["cost"] = np.random.default_rng(1).normal(size=2_000)
        quiet = fa.intervals(**symmetric, n_resamples=999)
        assert not any("too skewed" in text for text in quiet.warnings)
        assert all(map(math.isfinite, quiet.confidence_interval))

    @pytest.mark.parametrize(("scale", "margin"), [("difference", 50.0), ("ratio", 0.01)])
    def test_no_equality_is_shown(self, scale, margin):
        options = {"scale": scale, "margin": margin, "n_resamples": 999}
        result = fa.equivalence_test(**self.missed(), **options)
        assert result.pvalue == 1
        assert math.isnan(result.statistic)
        assert result.rows_that_tell is None
        [note] = [text for text in result.warnings if "nothing is shown" in text]
        assert f"the {'gap' if scale == 'difference' else 'ratio'} of a and b: too skewed" in note
        by_name = fa.equivalence_test(**self.missed(), **options, method="studentized")
        assert by_name.pvalue < 0.05

    def test_a_ratio_of_none_is_far_from_every_margin(self):
        rng = np.random.default_rng(0)
        decided = np.r_[np.zeros(400), rng.random(600) < 0.3].astype(int)
        options = {
            "y_pred": decided,
            "sample_weight": rng.lognormal(0, 0.5, 1_000),
            "sensitive_features": np.repeat(["a", "b"], [400, 600]),
            "metric": "selection_rate",
        }
        result = fa.equivalence_test(**options, margin=0.8, scale="ratio", n_resamples=999)
        assert result.pvalue == 1
        assert result.estimate == 0
        assert result.statistic == -math.inf
        assert not any("does not vary" in text for text in result.warnings)
        [ratio] = fa.intervals(**options, n_resamples=999).ratios
        assert ratio.confidence_interval[0] == 0
        assert ratio.confidence_interval[1] < 0.2
