"""Tolerances of all pairs of a question: floors, bounds, methods, and how often they err."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs import _native, metrics
from fairaudit_rs.data.tables import AuditTable
from fairaudit_rs.inference.tolerance import Tolerance
from fairaudit_rs.metrics.mirrors import gap_key
from fairaudit_rs.permutation.compared_pairs import HIGHEST
from fairaudit_rs.permutation.question import named_columns
from fairaudit_rs.permutation.tolerance import prepare_tolerance_question
from fairaudit_rs.results.verdict import rejects_at

from ..reference import tolerance as reference

OPTIONS = ("floor", "groups", "reference", "score_bins", "pos_label")


def asked(metric, value, scale="difference", **given):
    options = {name: given.pop(name) for name in OPTIONS if name in given}
    chosen = metrics.get(metric)
    table = AuditTable.make(**given, extra=named_columns(chosen)).with_cache()
    return prepare_tolerance_question(table, chosen, Tolerance(value=value, scale=scale), **options)


def results_of(metric, value, scale="difference", *, seed=3, n_tests=1, n_resamples=999, **given):
    question = asked(metric, value, scale, **given)
    return question.tests(alpha=0.05, n_tests=n_tests, n_resamples=n_resamples, seed=seed)


def shares(*counts):
    """Decisions and groups "a", "b", ... with (selected, rows) each."""
    return {
        "y_pred": np.concatenate([np.arange(n) < x for x, n in counts]).astype(int),
        "sensitive_features": np.repeat([*"abcdefgh"][: len(counts)], [n for _, n in counts]),
    }


def people(n=3_000, seed=0, names="abc", chances=(0.6, 0.3, 0.1)):
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, 2, n)
    y_score = np.clip(0.4 * y_true + 0.3 + rng.normal(0, 0.25, n), 0, 1)
    return {
        "y_true": y_true,
        "y_pred": (y_score > 0.5).astype(int),
        "y_score": y_score,
        "sensitive_features": rng.choice([*names], n, p=chances),
    }


class TestArguments:
    def test_replicates_that_are_too_few_to_fail_are_refused(self):
        data = people(600, names="ab", chances=(0.5, 0.5))
        weight = np.linspace(0.5, 2, 600)
        words = (
            "n_resamples is 999; selection_rate is tested by replicates, and 50 comparisons at "
            "0.05 need at least 2,000"
        )
        with pytest.raises(fa.errors.ArgumentError, match=words):
            results_of("selection_rate", 0.1, n_tests=50, sample_weight=weight, **data)
        assert results_of("selection_rate", 0.1, n_tests=50, **data)

    def test_data_that_no_metric_reads_stay_errors(self):
        with pytest.raises(fa.errors.ArgumentError, match="y_true is None, but true_positive_rate"):
            asked("tpr", 0.1, **shares((5, 10), (5, 10)))


class TestKnownValues:
    def test_the_higher_value_is_first_of_a_difference_and_the_lower_one_of_a_ratio(self):
        data = shares((60, 100), (90, 100))
        [gap] = results_of("selection_rate", 0.1, **data)
        [ratio] = results_of("selection_rate", 0.8, "ratio", **data)
        assert (gap.first.group, gap.second.group) == ("b", "a")
        assert (ratio.first.group, ratio.second.group) == ("a", "b")
        assert gap.estimate == pytest.approx(0.3)
        assert ratio.estimate == pytest.approx(2 / 3)
        assert gap.least < gap.estimate < gap.most
        assert ratio.most < ratio.estimate < ratio.least
        assert gap.first.value - gap.second.value == gap.estimate

    def test_bounds_are_simultaneous_on_the_side_of_a_fail_alone(self):
        data = shares((60, 100), (90, 100))
        [alone] = results_of("selection_rate", 0.1, **data)
        [of_many] = results_of("selection_rate", 0.1, n_tests=50, **data)
        assert of_many.least < alone.least
        assert of_many.most == alone.most

    def test_the_worst_ratio_has_an_answer(self):
        """No one of 40 against 30 of 60."""
        [test] = results_of("selection_rate", 0.8, "ratio", **shares((0, 40), (30, 60)))
        assert test.estimate == 0
        assert test.p_fail < 1e-4
        assert 0 < test.least < 0.3
        assert test.most == 0
        assert test.rows_that_tell(Tolerance(value=0.8, scale="ratio"), 0.05, 1) is None

    def test_all_and_nothing(self):
        [test] = results_of("selection_rate", 0.1, **shares((0, 40), (60, 60)))
        assert test.estimate == 1
        assert 0.8 < test.least < 1
        assert test.most == pytest.approx(1)

    def test_two_ratios_of_zero_say_nothing(self):
        [test] = results_of("selection_rate", 0.8, "ratio", **shares((0, 40), (0, 60)))
        assert (test.p_fail, test.p_pass) == (1, 1)
        assert (test.least, test.most) == (1, 0)
        assert "nothing is shown about their ratio" in test.reason

    def test_groups_below_the_floor_are_entries(self):
        question = asked("selection_rate", 0.1, **shares((20, 40), (30, 60), (10, 29), (1, 1)))
        found = {group.group: (group.n_counted, group.reason) for group in question.groups}
        assert found["c"] == (29, "29 eligible rows, of 30 needed")
        assert found["d"] == (1, "1 eligible row, of 30 needed")
        assert question.pairs == ((0, 1),)
        assert question.coverage == pytest.approx(100 / 130)
        assert question.withheld == ()

    def test_a_raised_floor_is_told_apart(self):
        data = shares((20, 40), (30, 60), (60, 120), (5, 20))
        question = asked("selection_rate", 0.1, floor=50, **data)
        assert [value.group for value in question.withheld] == ["a"]
        assert question.withheld[0].reason == "40 eligible rows, of 50 that the policy asks for"
        assert [group.withheld for group in question.groups] == [True, False, False, False]

    def test_rows_that_count_are_those_of_the_denominator(self):
        """100 people and 20 positive labels: nothing is known of their true positive rate."""
        data = people(1_000, names="ab", chances=(0.5, 0.5))
        few = np.flatnonzero((data["sensitive_features"] == "a") & (data["y_true"] == 1))[20:]
        data["y_true"][few] = 0
        question = asked("tpr", 0.1, **data)
        assert question.pairs == ()
        assert question.reason == "fewer than two groups with 30 eligible rows"
        assert question.groups[0].reason == "20 eligible rows, of 30 needed"
        assert asked("fpr", 0.1, **data).pairs == ((0, 1),)

    def test_groups_without_a_value_are_entries(self):
        data = people()
        data["y_true"][data["sensitive_features"] == "c"] = 0
        question = asked("tpr", 0.1, **data)
        [left] = [group for group in question.groups if group.group == "c"]
        assert (left.n_counted, left.is_tested) == (0, False)
        assert "0 rows with a positive label" in left.reason
        data["y_true"][data["sensitive_features"] == "b"] = 0
        question = asked("tpr", 0.1, **data)
        assert question.reason == "fewer than two groups in which it has a value"
        assert [group.n_rows for group in question.groups] == [
            int(np.sum(data["sensitive_features"] == name)) for name in "abc"
        ]
        assert "no other group" in question.groups[0].reason

    def test_one_group_is_no_error(self):
        data = people()
        data["sensitive_features"] = np.repeat("a", 3_000)
        question = asked("tpr", 0.1, **data)
        assert question.reason == "1 group"
        assert question.groups[0].reason == "the only group"
        assert question.tests(alpha=0.05, n_tests=1, n_resamples=9, seed=1) == ()

    @pytest.mark.parametrize("metric", ["f1", "auc", "brier"])
    def test_floors_of_labels(self, metric):
        data = people(1_000, names="ab", chances=(0.5, 0.5))
        few = np.flatnonzero((data["sensitive_features"] == "a") & (data["y_true"] == 1))[9:]
        data["y_true"][few] = 0
        first, second = asked(metric, 0.1, **data).groups
        needed = 20 if metric == "auc" else 10
        assert first.reason == f"9 rows with a positive label, of {needed} needed"
        assert first.n_positive == 9
        assert second.reason is None
        assert second.n_positive + second.n_negative == second.n_rows

    def test_rows_of_labels(self):
        data = people(200, names="ab", chances=(0.8, 0.2))
        n = int(np.sum(data["sensitive_features"] == "b"))
        assert n < 50
        assert asked("f1", 0.1, **data).groups[1].reason == f"{n} eligible rows, of 50 needed"
        assert asked("accuracy", 0.1, **data).groups[1].reason is None
        assert asked("mean_residual", 0.1, **data).groups[1].reason is None

    @pytest.mark.parametrize("metric", ["calibration_error", "equalized_odds"])
    def test_what_informs_alone(self, metric):
        question = asked(metric, 0.1, **people())
        assert question.pairs == ()
        assert "there is no reliable test of a tolerance for" in question.reason

    def test_strata_without_a_method(self):
        strata = np.random.default_rng(1).integers(0, 2, 3_000)
        assert (
            "no reliable test within strata" in asked("f1", 0.1, strata=strata, **people()).reason
        )
        assert asked("tpr", 0.1, strata=strata, **people()).pairs

    def test_a_reference_that_is_chosen_by_looking_counts_all_pairs(self):
        data = shares((20, 40), (50, 60), (60, 120))
        question = asked("selection_rate", 0.8, "ratio", reference=HIGHEST, **data)
        assert {frozenset((t.first.group, t.second.group)) for t in question.tests(
            alpha=0.05, n_tests=3, n_resamples=9, seed=1
        ) if t.p_fail < 1} == {frozenset("ab"), frozenset("bc")}  # fmt: skip
        assert question.n_comparisons == len(question.pairs) == 3
        assert question.pass_only == {(0, 2)}
        fixed = asked("selection_rate", 0.8, "ratio", reference="a", **data)
        assert fixed.n_comparisons == len(fixed.pairs) == 2

    def test_mirrors(self):
        def same(first, second):
            return gap_key(metrics.get(first)) == gap_key(metrics.get(second))

        for pair in ("tpr fnr", "fpr tnr", "ppv fdr", "npv for", "accuracy error_rate"):
            assert same(*pair.split())
        for pair in ("tpr fpr", "tpr ppv", "selection_rate base_rate", "f1 auc"):
            assert not same(*pair.split())
        refusals = fa.metrics.count_metric("refusals", "(fn + tn) / (tp + fp + fn + tn)")
        assert gap_key(refusals) == gap_key(metrics.get("selection_rate"))


def mean_of_positives(label, value, weight):
    return float(value[label == 1].mean())


class TestFunctions:
    """Any function of the rows: bootstrap-t, the variance of each sample by samples of it."""

    def data(self, n=(120, 1_000), rates=(0.6, 0.8), seed=0):
        rng = np.random.default_rng(seed)
        return {
            "y_true": np.ones(sum(n), dtype=int),
            "y_pred": (rng.random(sum(n)) < np.repeat(rates, n)).astype(float),
            "sensitive_features": np.repeat(["a", "b"], n),
        }

    def metric(self, n_samples=50):
        return fa.metrics.callable_metric("own", mean_of_positives, n_samples=n_samples)

    def test_a_rate_as_a_function_is_bounded_as_the_rate_is(self):
        data = self.data()
        [own] = results_of(self.metric(), 0.05, **data)
        [rate] = results_of("tpr", 0.05, **data)
        assert own.method == "studentized"
        assert own.estimate == rate.estimate
        assert own.least == pytest.approx(rate.least, abs=0.03)
        assert own.most == pytest.approx(rate.most, abs=0.03)
        assert own.p_fail == 2 / 1_000
        assert results_of(self.metric(), 0.05, **data)[0] == own

    def test_replicates_in_two_ranges_are_those_of_one(self):
        data = self.data()
        problem = asked(self.metric(), 0.05, **data).prepared.problem
        call = _native.Call()
        whole, *parts = (
            problem.bootstrap_t(_native.Draws(n, seed=4, first=first), call)
            for n, first in ((12, 0), (5, 0), (7, 5))
        )
        for name in ("values", "variances"):
            joined = np.concatenate([getattr(part, name) for part in parts])
            assert np.array_equal(joined, getattr(whole, name))
        expected = np.array([e.variance for e in problem.evaluations])
        assert whole.variances.mean(axis=0) == pytest.approx(expected, rel=0.3)

    def test_clusters_and_strata_have_none(self):
        data = self.data()
        designs = {"clusters": np.arange(1_120), "strata": np.arange(1_120) % 3}
        for name, column in designs.items():
            question = asked(self.metric(), 0.05, **data, **{name: column})
            assert "there is no reliable test" in question.reason


class TestReference:
    def test_shares(self):
        rng = np.random.default_rng(1)
        for _ in range(20):
            n_1, n_2 = (int(n) for n in rng.integers(30, 300, 2))
            counts = (int(rng.integers(1, n_1)), n_1), (int(rng.integers(1, n_2)), n_2)
            [test] = results_of("selection_rate", 0.1, **shares(*counts))
            expected = reference.of_shares(*counts[0], *counts[1], 0.1)
            assert (test.p_fail, test.p_pass) == pytest.approx(expected, abs=2e-5)
            [test] = results_of("selection_rate", 0.8, "ratio", **shares(*counts))
            expected = reference.of_ratio(*counts[0], *counts[1], 0.8)
            assert (test.p_fail, test.p_pass) == pytest.approx(expected, abs=2e-5)

    def test_means_of_a_known_range(self):
        data = people(400, names="ab", chances=(0.5, 0.5))
        [test] = results_of("mean_prediction", 0.05, **data)
        values = [data["y_score"][data["sensitive_features"] == name] for name in "ab"]
        stats_of = [(v.mean(), v.std(ddof=1) / math.sqrt(len(v))) for v in values]
        expected = reference.of_logits(*stats_of[0], *stats_of[1], 0.05)
        assert (test.p_fail, test.p_pass) == pytest.approx(expected, abs=3e-4)
        assert test.method == "mover"

    @pytest.mark.parametrize(
        ("metric", "scale", "options"),
        [
            ("tpr", "difference", {}),
            ("selection_rate", "ratio", {}),
            ("f1", "difference", {}),
            ("auc", "difference", {}),
            ("balanced_accuracy", "difference", {}),
            ("tpr", "difference", {"strata": np.arange(3_000) % 3}),
            ("mean_residual", "difference", {"strata": np.arange(3_000) % 3}),
            ("tpr", "difference", {"sample_weight": np.linspace(0.5, 2, 3_000)}),
            ("selection_rate", "ratio", {"sample_weight": np.linspace(0.5, 2, 3_000)}),
        ],
    )
    def test_a_pass_is_what_equivalence_test_shows(self, metric, scale, options):
        data = people() | options
        value = 0.05 if scale == "difference" else 0.9
        result = fa.equivalence_test(
            **data, metric=metric, margin=value, scale=scale, n_resamples=999, rng=3
        )
        expected = {frozenset((p.first, p.second)): p.pvalue for p in result.comparisons}
        found = results_of(metric, value, scale, seed=result.seed, **data)
        assert {frozenset((t.first.group, t.second.group)): t.p_pass for t in found} == expected


class TestProperties:
    CASES = (
        ("tpr", 0.1, "difference", {}),
        ("selection_rate", 0.8, "ratio", {}),
        ("f1", 0.05, "difference", {}),
        ("mean_residual", 0.05, "difference", {}),
        ("tpr", 0.1, "difference", {"sample_weight": np.linspace(0.5, 2, 3_000)}),
        ("brier", 0.05, "difference", {"clusters": np.arange(3_000)}),
        ("mean_prediction", 0.05, "difference", {"strata": np.arange(3_000) % 3}),
    )

    @pytest.mark.parametrize(("metric", "value", "scale", "options"), CASES)
    def test_bounds_agree_with_the_tests(self, metric, value, scale, options):
        """Tolerances a little inside and outside of each bound, as if they had been asked for."""
        data = people(seed=4)
        data["y_pred"][data["sensitive_features"] == "b"] |= data["y_true"][
            data["sensitive_features"] == "b"
        ]
        # Replicates make steps.
        outwards = (2e-3 if options else 1e-4) * (1 if scale == "difference" else -1)
        for i, test in enumerate(results_of(metric, value, scale, n_tests=3, **data, **options)):
            assert rejects_at(test.p_fail, 0.05 / 3) == (
                test.least >= value if scale == "difference" else test.least <= value
            )
            assert rejects_at(test.p_pass, 0.05) == (
                test.most <= value if scale == "difference" else test.most >= value
            )
            for bound, p, level in (
                (test.least, "p_fail", 0.05 / 3),
                (test.most, "p_pass", 0.05),
            ):
                if not 0 < bound < 1:
                    continue
                near = [
                    getattr(results_of(metric, bound + step, scale, **data, **options)[i], p)
                    for step in (-outwards, outwards)
                ]
                inside, outside = near if p == "p_fail" else near[::-1]
                assert rejects_at(inside, level)
                assert not rejects_at(outside, level)

    @pytest.mark.parametrize(("metric", "value", "scale", "options"), CASES)
    def test_rows_in_any_order(self, metric, value, scale, options):
        if "clusters" in options:
            return
        data = people() | options
        order = np.random.default_rng(2).permutation(3_000)
        shuffled = {name: column[order] for name, column in data.items()}
        one, other = (results_of(metric, value, scale, **part) for part in (data, shuffled))
        if not options:
            for p in ("p_fail", "p_pass", "least", "most"):
                assert [getattr(t, p) for t in one] == pytest.approx(
                    [getattr(t, p) for t in other], rel=1e-6
                )
        assert [t.estimate for t in one] == pytest.approx([t.estimate for t in other])

    def test_other_names_of_groups(self):
        """Names change the order of groups, and nothing else."""
        data = people(names="abc")
        renamed = data | {
            "sensitive_features": np.array([{"a": "z"}.get(g, g) for g in
                                            data["sensitive_features"]])
        }  # fmt: skip
        for metric in ("tpr", "f1", "mean_residual"):
            one, other = (
                {
                    frozenset((t.first.value, t.second.value)): t
                    for t in results_of(metric, 0.1, **part)
                }
                for part in (data, renamed)
            )
            assert one.keys() == other.keys()
            for key, test in one.items():
                assert test.p_fail == pytest.approx(other[key].p_fail, rel=1e-6)
                assert test.most == pytest.approx(other[key].most, rel=1e-6)

    def test_no_replicates_where_a_formula_decides(self):
        """A tenth of a second for what thousands of replicates would take minutes."""
        for metric in ("tpr", "f1", "auc", "mean_residual", "mean_prediction", "brier"):
            data = people(20_000)
            found = results_of(metric, 0.1, n_tests=10_000, n_resamples=9, **data)
            assert {test.method for test in found} <= {"score", "mover"}

    def test_tests_pickle(self):
        found = results_of("f1", 0.1, **people())
        assert pickle.loads(pickle.dumps(found)) == found


def errs(make, metric, tol, n_audits, level=0.05):
    """How many audits with a gap at the tolerance fail, and pass."""
    rng, fails, passes = np.random.default_rng(1), 0, 0
    for audit in range(n_audits):
        question = asked(metric, tol, **make(rng))
        for test in question.tests(alpha=0.05, n_tests=1, n_resamples=499, seed=audit):
            fails += rejects_at(test.p_fail, level)
            passes += rejects_at(test.p_pass, level)
    return fails, passes


@pytest.mark.calibration
class TestCalibration:
    N = 600

    def most(self, rate=0.05):
        return stats.binom.isf(1e-6, self.N, rate)

    @pytest.mark.parametrize("sign", [1, -1])
    def test_mean_residuals_of_few_rows(self, sign):
        """Thirty rows beside 1,000; 1.2 to 4.6 % over sixteen designs."""

        def make(rng):
            score = np.concatenate([rng.beta(2, 3, 30), rng.beta(4, 4, 1_000)])
            chance = np.clip(score + sign * 0.1 * (np.arange(1_030) < 30), 0, 1)
            return {
                "y_true": (rng.random(1_030) < chance).astype(int),
                "y_score": score,
                "sensitive_features": np.repeat(["a", "b"], [30, 1_000]),
            }

        fails, passes = errs(make, "mean_residual", 0.1, self.N)
        assert fails <= self.most()
        assert passes <= self.most()

    def test_functions(self):
        """Fifty rows of 0.97 beside 2,000 of 0.87: all 50 are positive in 22 % of audits."""
        rng, n_audits, n = np.random.default_rng(3), 150, (50, 2_000)
        own, delta = 0, 0
        for audit in range(n_audits):
            data = TestFunctions().data(n, (0.97, 0.87), seed=int(rng.integers(2**32)))
            metric = TestFunctions().metric(20)
            [test] = results_of(metric, 0.1, n_resamples=59, seed=audit, **data)
            own += rejects_at(test.p_fail, 0.05)
            shares = [data["y_pred"][: n[0]].mean(), data["y_pred"][n[0] :].mean()]
            error = math.sqrt(sum(p * (1 - p) / k for p, k in zip(shares, n, strict=True)))
            delta += rejects_at(stats.norm.sf((shares[0] - shares[1] - 0.1) / error), 0.05)
        most = stats.binom.isf(1e-6, n_audits, 0.05)
        assert own <= most
        assert delta > most

    @pytest.mark.parametrize("design", ["strata", "sample_weight", "clusters"])
    @pytest.mark.parametrize("sign", [1, -1])
    def test_rates_of_designs(self, design, sign):
        """Sixty rows beside 1,000, the small group better and worse by the tolerance."""
        n = np.array([60, 1_000])

        def make(rng):
            group = np.repeat(["a", "b"], n)
            stratum = rng.integers(0, 3, n.sum())
            lift = np.array([-0.1, 0.0, 0.1])[stratum] if design == "strata" else 0.0
            unit = np.concatenate([np.arange(60) // 2, 100 + np.arange(1_000) // 2])
            of_unit = rng.random(2_000)[unit] if design == "clusters" else rng.random(n.sum())
            data = {
                "y_pred": (of_unit < 0.7 + lift + 0.1 * sign * (group == "a")).astype(int),
                "sensitive_features": group,
            }
            columns = {
                "strata": stratum,
                "sample_weight": np.exp(rng.normal(0, 0.5, n.sum())),
                "clusters": unit,
            }
            return data | {design: columns[design]}

        fails, passes = errs(make, "selection_rate", 0.1, self.N)
        assert fails <= self.most(0.06)
        assert passes <= self.most()

        def ignored(rng):
            return {name: part for name, part in make(rng).items() if name != design}

        if design == "clusters":
            # As if all rows were drawn alone.
            fails, _ = errs(ignored, "selection_rate", 0.1, self.N)
            assert fails > self.most(0.06)
