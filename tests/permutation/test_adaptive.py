"""Tests that stop early with a p-value that is valid at any time, and how gaps get intervals."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.permutation import outcome

from ..children import outputs_of_instruction_sets
from ..reference import inference, means, permutation
from ..reference import rows as reference
from . import shifting


def make(seed=0, n=400, gap=0.0, groups="ab"):
    rng = np.random.default_rng(seed)
    group = np.resize(list(groups), n)
    y_true = rng.integers(0, 2, n)
    score = rng.normal(size=n) + y_true + gap * (group == "a")
    return y_true, score, group


def test_of(data, metric="mean_score", **options):  # noqa: PT028 (no test)
    y_true, score, group = data
    needs = fa.metrics.get(metric).needs
    columns = {"y_true": y_true, "y_pred": (score > 0.5).astype(int), "y_score": score}
    return fa.permutation_test(
        **{name: columns[name] for name in needs},
        sensitive_features=group,
        metric=metric,
        **{"rng": 1, "adaptive": True, **options},
    )


test_of.__test__ = False


def boundaries_up_to(n):
    return [*(b for b in (128 * 2**i for i in range(40)) if b < n), n]


def extreme_flags(result, alternative="two-sided"):
    return [
        permutation.is_extreme(value, result.statistic, alternative)
        for value in result.null_distribution
    ]


def flags_of_sides(shifts, alternative):
    """Of each side: which replicates are as extreme by T, and by h."""
    observed, *null = shifting.t_and_h(shifts)
    sides = {"two-sided": (1, -1), "greater": (1,), "less": (-1,)}[alternative]
    return [
        [
            np.array(
                [means.is_beyond(replicate[which], observed[which], side) for replicate in null]
            )
            for which in (0, 1)
        ]
        for side in sides
    ]


def two_statistics(flags, b):
    """(p, extreme replicates) after b of them: twice the smaller side, by the larger of T and h."""
    found = []
    for side in flags:
        most = max(side, key=lambda entry: entry[:b].sum())
        found.append((inference.anytime_pvalue(most[:b], [b]), int(most[:b].sum())))
    p, extreme = min(found, key=lambda row: row[1])
    return min(1.0, len(flags) * p), extreme


@pytest.fixture
def shifts_seen(monkeypatch):
    """The replicates at any gap that tests have looked at, one after the other."""
    seen = []
    original = outcome.count_tails

    def tails(shifts, *more):
        seen.append(shifts)
        return original(shifts, *more)

    monkeypatch.setattr(outcome, "count_tails", tails)
    return seen


class TestArguments:
    @pytest.mark.parametrize("value", ["yes", 1, None, 0.5])
    def test_adaptive(self, value):
        with pytest.raises(
            errors.ArgumentTypeError, match=f"adaptive is {value!r}; accepted: True"
        ):
            test_of(make(), adaptive=value)

    @pytest.mark.parametrize("value", ["wald", None, 3, "Delta"])
    def test_interval(self, value):
        match = f"interval is {value!r}; accepted: 'auto', 'inversion', 'delta', 'studentized',"
        with pytest.raises(errors.ArgumentError, match=match):
            test_of(make(), interval=value)

    @pytest.mark.parametrize("value", [0, -1, 2.5, True, "many", 10**9])
    def test_n_resamples(self, value):
        with pytest.raises(
            errors.FairAuditError, match=r"n_resamples is .*; accepted: a whole num"
        ):
            test_of(make(), n_resamples=value)

    @pytest.mark.parametrize("interval", ["studentized", "basic", "percentile"])
    def test_bootstraps_that_do_not_fit(self, interval):
        data = make()
        with pytest.raises(
            errors.ArgumentError, match=f"interval is '{interval}' with strata of yo"
        ):
            test_of(data, interval=interval, strata=np.resize([0, 1, 2], 400))
        scores = (data[0], 1 / (1 + np.exp(-data[1])), data[2])
        match = f"interval is '{interval}' for calibration_error.*accepted: 'auto'"
        with pytest.raises(errors.ArgumentError, match=match):
            test_of(scores, "calibration_error", interval=interval)


class TestKnownValues:
    def test_no_extreme_replicate_of_128(self):
        """x = 0, n = 128: the 0.9 quantile of Beta(1, 129) is 1 - 0.1^(1/129); over .9.

        Twice that of a side where two statistics are asked.
        """
        for options, sides in (({"studentize": "unpooled"}, 1), ({}, 2), (
            {"alternative": "greater"}, 1
        )):  # fmt: skip
            result = test_of(make(gap=1.0), n_resamples=9_999, **options)
            assert result.n_resamples == 128
            assert result.pvalue == pytest.approx(sides * (1 - 0.1 ** (1 / 129)) / 0.9, rel=1e-12)
            assert result.null_distribution.shape == (128,)

    def test_a_clear_absence_stops_at_once(self):
        y_true, score, group = make()
        result = test_of((y_true, np.repeat(score[::2], 2), group))
        assert result.estimate == pytest.approx(0, abs=1e-12)
        assert (result.n_resamples, result.pvalue) == (128, 1.0)

    @pytest.mark.parametrize("n", [1, 5, 127, 128, 129])
    def test_few_replicates(self, n):
        result = test_of(make(gap=0.2), n_resamples=n)
        assert result.n_resamples in boundaries_up_to(n)
        assert 0 < result.pvalue <= 1


class TestReference:
    @pytest.mark.parametrize("alternative", permutation.ALTERNATIVES)
    @pytest.mark.parametrize("gap", [0.0, 0.15, 0.2, 0.25, 0.4])
    @pytest.mark.parametrize("metric", ["mean_score", "f1", "mae"])
    def test_pvalues_are_those_of_the_betting_reference(self, metric, gap, alternative):
        """One statistic."""
        result = test_of(
            make(1, gap=gap),
            metric,
            alternative=alternative,
            n_resamples=5_000,
            studentize="unpooled",
        )
        n = result.n_resamples
        assert n in boundaries_up_to(5_000)
        assert n == len(result.null_distribution)
        flags = extreme_flags(result, alternative)
        slow = inference.anytime_pvalue(flags, [b for b in boundaries_up_to(5_000) if b <= n])
        assert result.pvalue == pytest.approx(slow, rel=1e-9)

    @pytest.mark.parametrize("alternative", permutation.ALTERNATIVES)
    @pytest.mark.parametrize("gap", [0.0, 0.15, 0.25, 0.4])
    @pytest.mark.parametrize("metric", ["mean_score", "mae"])
    def test_pvalues_of_two_statistics(self, metric, gap, alternative, shifts_seen):
        """Twice the smaller side, of which the larger p of T and of h at each look."""
        result = test_of(make(1, gap=gap), metric, alternative=alternative, n_resamples=5_000)
        n = result.n_resamples
        flags = flags_of_sides(shifts_seen[-1], alternative)
        assert len(flags[0][0]) == n == len(result.null_distribution)
        looks = [b for b in boundaries_up_to(5_000) if b <= n]
        assert looks[-1] == n
        slow = min(two_statistics(flags, b)[0] for b in looks)
        assert result.pvalue == pytest.approx(slow, rel=1e-9)
        one_look = test_of(make(1, gap=gap), metric, alternative=alternative, n_resamples=n,
                           adaptive=False)  # fmt: skip
        numbers = shifting.t_and_h(shifts_seen[-1])
        p = getattr(means.max_pvalues(numbers[0], numbers[1:]), alternative.replace("-", "_"))
        assert one_look.pvalue == pytest.approx(p, rel=1e-12)

    @pytest.mark.parametrize("seed", range(8))
    def test_when_two_statistics_stop(self, seed, shifts_seen):
        result = test_of(make(seed, gap=0.18), n_resamples=4_000)
        test_of(make(seed, gap=0.18), n_resamples=4_000, adaptive=False)
        flags = flags_of_sides(shifts_seen[-1], "two-sided")
        looks = boundaries_up_to(4_000)
        for b in looks:
            p = min(two_statistics(flags, c)[0] for c in looks if c <= b)
            extreme = two_statistics(flags, b)[1]
            above = 2 * permutation.clopper_pearson(extreme, b, 0.9999)[0] > 0.05
            if p <= 0.05 or above:
                break
        assert result.n_resamples == b
        low, high = permutation.clopper_pearson(extreme, b, 1 - 0.01 / len(looks))
        assert result.pvalue_interval == pytest.approx((2 * low, min(1, 2 * high)), rel=1e-9)

    @pytest.mark.parametrize("seed", range(8))
    def test_when_it_stops(self, seed):
        """At the first boundary where p <= 5 %, or where p surely stays above; or not at all."""
        result = test_of(make(seed, gap=0.18), n_resamples=4_000, studentize="unpooled")
        flags = extreme_flags(result)
        looks = boundaries_up_to(4_000)
        for b in looks:
            p = inference.anytime_pvalue(flags, [c for c in looks if c <= b])
            above = permutation.clopper_pearson(int(np.sum(flags[:b])), b, 0.9999)[0] > 0.05
            if p <= 0.05 or above:
                break
        assert result.n_resamples == b

    def test_the_first_replicates_are_those_of_a_fixed_number(self):
        data = make(2, gap=0.15)
        fixed = test_of(data, adaptive=False, n_resamples=2_000)
        stopped = test_of(data, n_resamples=2_000)
        n = stopped.n_resamples
        assert np.array_equal(stopped.null_distribution, fixed.null_distribution[:n])
        assert stopped.statistic == fixed.statistic

    @pytest.mark.parametrize("alternative", permutation.ALTERNATIVES)
    @pytest.mark.parametrize("gap", [0.0, 0.25, 0.35, 1.5])
    @pytest.mark.parametrize("metric", ["auc", "balanced_accuracy"])
    def test_centred_at_the_mean_of_further_replicates(self, metric, gap, alternative):
        """Within labels: 512 replicates after all that can be counted give the centre."""
        data = make(1, gap=gap, n=1_200)
        options = {"alternative": alternative, "engine": "auto"}
        result = test_of(data, metric, n_resamples=2_000, **options)
        whole = test_of(data, metric, n_resamples=2_512, adaptive=False, **options)
        n = result.n_resamples
        assert np.array_equal(result.null_distribution, whole.null_distribution[:n])
        centre = whole.null_distribution[2_000:].mean()
        looks = boundaries_up_to(2_000)
        flags = [
            permutation.is_extreme(value - centre, result.statistic - centre, alternative)
            for value in result.null_distribution
        ]
        slow = inference.anytime_pvalue(flags, [b for b in looks if b <= n])
        assert result.pvalue == pytest.approx(slow, rel=1e-9)
        if gap in (0.0, 1.5):
            assert n < 2_000
        assert not any("did not stop early" in text for text in result.warnings)

    def test_the_interval_of_the_pvalue(self):
        """Clopper and Pearson at 1 - 0.01 / k for k looks."""
        result = test_of(make(3, gap=0.2), n_resamples=5_000, studentize="unpooled")
        n_extreme = int(np.sum(extreme_flags(result)))
        slow = permutation.clopper_pearson(
            n_extreme, result.n_resamples, 1 - 0.01 / len(boundaries_up_to(5_000))
        )
        assert result.pvalue_interval == pytest.approx(slow, rel=1e-9)

    @pytest.mark.parametrize("interval", ["delta", "studentized", "basic", "percentile"])
    @pytest.mark.parametrize("metric", ["true_positive_rate", "f1", "auc", "mean_score"])
    def test_intervals(self, metric, interval):
        """Equal to the slow bootstrap within its error; the delta method to the digit."""
        y_true, score, group = make(4, n=240, gap=0.5)
        result = test_of((y_true, score, group), metric, adaptive=False, interval=interval,
                         n_resamples=4_000)  # fmt: skip
        assert result.interval == interval
        y_pred = (score > 0.5).astype(int)

        def estimate(y_true, y_pred, score):
            if metric == "auc":
                return reference.auc_estimate(y_true, score)
            if metric == "mean_score":
                return reference.ratio_estimate(score)
            table = permutation.table_of_rows(y_true, y_pred)
            return permutation.value(metric, *table), permutation.variance(metric, *table)

        columns = [reference.rows_of((y_true, y_pred, score), group == g) for g in "ab"]
        theta, v = zip(*(estimate(*own) for own in columns), strict=True)
        gap, se = theta[0] - theta[1], math.sqrt(sum(v))
        if interval == "delta":
            slow = (gap - norm.isf(0.025) * se, gap + norm.isf(0.025) * se)
            assert result.confidence_interval == pytest.approx(slow, rel=1e-9)
            return
        rng = np.random.default_rng(1)
        n = 300 if metric == "auc" else 1_000
        replicates = []
        for _ in range(n):
            drawn = [estimate(*reference.resample(own, rng)) for own in columns]
            replicates.append([drawn[0][0] - drawn[1][0], drawn[0][1] + drawn[1][1]])
        t, variances = np.array(replicates).T
        if interval == "studentized":
            slow = reference.studentized_interval(gap, se**2, t, variances)
        elif interval == "basic":
            slow = reference.basic_interval(gap, t)
        else:
            slow = reference.percentile_interval(t)
        error = 5 * math.sqrt(0.025 * 0.975 / n) / norm.pdf(1.96) * se
        assert result.confidence_interval == pytest.approx(slow, abs=error)


class TestProperties:
    @pytest.mark.parametrize("metric", ["mean_score", "f1", "auc", "pearson"])
    def test_threads(self, metric):
        y_true, score, group = make(5, n=4_000, gap=0.06)
        if metric == "pearson":
            group = (group == "a").astype(float)
        first = test_of((y_true, score, group), metric)
        for n_threads in (1, 2, 7):
            other = test_of((y_true, score, group), metric, n_threads=n_threads)
            assert other.to_dict() == first.to_dict()
            assert np.array_equal(other.null_distribution, first.null_distribution)

    def test_bits_of_every_instruction_set(self):
        code = (
            "from tests.permutation.test_adaptive import make, test_of\n"
            "for metric in ('mean_score', 'f1', 'auc'):\n"
            "    for interval in ('auto', 'studentized', 'basic', 'percentile'):\n"
            "        print(test_of(make(6, gap=.2), metric, interval=interval).to_dict())\n"
        )
        assert len(outputs_of_instruction_sets(code)) == 1

    def test_decisions_follow_the_level(self):
        """p near 2 %: rejected at 95 % after a few looks, at 99 % it takes longer to decide."""
        data = make(0, gap=0.17)
        fixed = test_of(data, adaptive=False).pvalue
        assert 0.012 < fixed < 0.035
        lenient, strict = (test_of(data, confidence_level=level) for level in (0.95, 0.99))
        assert lenient.pvalue <= 0.05
        assert strict.pvalue > 0.01
        assert lenient.n_resamples < strict.n_resamples

    def test_exact_laws_need_no_stopping(self):
        data = make(8, n=60)
        result = test_of(data, "true_positive_rate")
        assert (result.engine, result.n_resamples) == ("exact", 0)
        assert result.pvalue == test_of(data, "true_positive_rate", adaptive=False).pvalue

    @pytest.mark.parametrize("metric", ["equalized_odds", "conditional_use_accuracy"])
    def test_joint_criteria_stop_early(self, metric):
        """Q is at least 0 and centred at nothing."""
        result = test_of(make(10, gap=1.5, n=800), metric, engine="cells", n_resamples=9_999)
        assert result.n_resamples == 128
        assert not any("did not stop early" in text for text in result.warnings)

    @pytest.mark.parametrize("seed", [1, 74, 217])
    def test_never_below_the_fixed_number(self, seed):
        """As documented: about a tenth larger, never smaller, than p of the same replicates."""
        result = test_of(make(0, gap=0.055), confidence_level=0.8, n_resamples=3_000, rng=seed)
        flags = extreme_flags(result)
        assert result.pvalue >= (1 + np.sum(flags)) / (1 + len(flags)) * (1 - 1e-9)

    def test_pairs_and_progress(self):
        seen = []
        result = test_of(
            make(11, n=600, groups="abc", gap=0.5),
            n_resamples=2_000,
            progress=lambda done, total: seen.append((done, total)),
        )
        assert len(result.comparisons) == 3
        assert seen == sorted(seen)
        assert {total for _, total in seen} == {8_000}
        assert seen[-1] == (8_000, 8_000)

    def test_few_replicates_cannot_reject(self):
        """The least p of 20 replicates is above 5 %: say so, as for a fixed number of 10."""
        result = test_of(make(12, gap=3.0), n_resamples=20)
        assert result.pvalue > 0.05
        assert any("raise n_resamples" in text for text in result.warnings)


class TestPairs:
    def test_pairs_share_the_level(self):
        """A pair stops when it passes what Holm may ask of it, not at the raw level."""
        rng = np.random.default_rng(3)
        group = rng.integers(0, 5, 6_000)
        y_true = rng.integers(0, 2, 6_000)
        y_pred = (rng.random(6_000) < 0.15 * group + 0.15 + 0.1 * y_true).astype(int)
        options = {"sensitive_features": group, "metric": "f1", "rng": 1}
        result = fa.permutation_test(y_true, y_pred, adaptive=True, **options)
        fixed = fa.permutation_test(y_true, y_pred, **options)
        for stopped, whole in zip(result.comparisons, fixed.comparisons, strict=True):
            if whole.adjusted_pvalue < 0.01:
                assert stopped.adjusted_pvalue <= 0.05
        assert sum(pair.adjusted_pvalue <= 0.05 for pair in result.comparisons) >= 8


@pytest.mark.calibration
class TestCalibration:
    N_AUDITS = 2_000

    def pvalues(self, draw, **options):
        """One statistic, many seeds: the p-value of exchangeable ranks by simulation."""
        rng = np.random.default_rng(1)
        p, n_used = [], []
        for _ in range(self.N_AUDITS):
            result = test_of(draw(rng), n_resamples=1_024, rng=rng, **options)
            p.append(self.judge(result))
            n_used.append(result.n_resamples)
        return np.array(p), np.array(n_used)

    @staticmethod
    def judge(result):
        return result.pvalue

    @staticmethod
    def null(rng):
        group = np.repeat(["a", "b"], 30)
        return None, rng.normal(size=60), group

    @pytest.mark.parametrize("level", [0.95, 0.99])
    def test_size(self, level):
        p, n_used = self.pvalues(self.null, confidence_level=level)
        for alpha in (0.01, 0.05):
            assert np.mean(p <= alpha) <= binom(self.N_AUDITS, alpha).isf(1e-6) / self.N_AUDITS
        assert np.mean(n_used == 128) > 0.5

    def test_size_of_a_p_that_is_looked_at_often(self):
        """The smallest x / n of all looks is no p-value."""
        rng = np.random.default_rng(1)
        p, broken = [], []
        for _ in range(self.N_AUDITS):
            flags = np.array(extreme_flags(test_of(self.null(rng), n_resamples=1_024, rng=rng,
                                                   adaptive=False)))  # fmt: skip
            looks = np.arange(1, 1_025)
            broken.append(np.min((np.cumsum(flags) / looks)[19:]))
            p.append(inference.anytime_pvalue(flags, boundaries_up_to(1_024)))
        limit = binom(self.N_AUDITS, 0.05).isf(1e-6) / self.N_AUDITS
        assert np.mean(np.array(p) <= 0.05) <= limit
        assert np.mean(np.array(broken) <= 0.05) > limit

    def test_size_of_centred_tests(self):
        """AUC within labels, whose null distribution is centred; looks without a price are not."""
        rng = np.random.default_rng(3)
        p, broken = [], []
        for _ in range(1_000):
            score = rng.normal(size=60)
            data = np.resize([0, 1], 60), score, np.repeat(["a", "b"], [24, 36])
            p.append(test_of(data, "auc", n_resamples=1_024, rng=rng).pvalue)
            whole = test_of(data, "auc", n_resamples=1_024, rng=rng, adaptive=False)
            extreme = np.cumsum(extreme_flags(whole))
            looks = np.arange(1, 1_025)
            broken.append(np.min((extreme / looks)[19:]))
        limit = binom(1_000, 0.05).isf(1e-6) / 1_000
        assert np.mean(np.array(p) <= 0.05) <= limit
        assert np.mean(np.array(p) <= 0.01) <= binom(1_000, 0.01).isf(1e-6) / 1_000
        assert np.mean(np.array(p) <= 0.05) > 0.02
        assert np.mean(np.array(broken) <= 0.05) > limit

    def test_power_is_that_of_a_fixed_number(self):
        def draw(rng):
            group = np.repeat(["a", "b"], 30)
            return None, rng.normal(size=60) + 0.75 * (group == "a"), group

        p, n_used = self.pvalues(draw)
        fixed, _ = self.pvalues(draw, adaptive=False)
        assert np.mean(fixed <= 0.05) > 0.7
        assert np.mean(p <= 0.05) > np.mean(fixed <= 0.05) - 0.05
        assert np.mean(n_used) < 400

    @pytest.mark.parametrize("interval", ["studentized", "basic", "delta"])
    def test_intervals_cover(self, interval):
        """Means of 60 + 60 normal rows with spread 1 and 3; a wrong spread does not cover."""
        rng = np.random.default_rng(2)
        missed, broken = 0, 0
        for _ in range(1_000):
            group = np.repeat(["a", "b"], 60)
            value = rng.normal(size=120) * np.where(group == "a", 1, 3)
            result = test_of((None, value, group), n_resamples=199, interval=interval, rng=rng)
            low, high = result.confidence_interval
            missed += low > 0 or high < 0
            half = norm.isf(0.025) * value[group == "a"].std() * math.sqrt(2 / 60)
            broken += abs(result.estimate) > half
        low, high = binom(1_000, 0.05).ppf(1e-6), binom(1_000, 0.06).isf(1e-6)
        assert low <= missed <= high
        assert broken > high
