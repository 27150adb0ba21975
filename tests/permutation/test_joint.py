"""The permutation lens on joint criteria: several count metrics that must be equal at once."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import fairaudit_rs as fa
from fairaudit_rs import errors

from ..children import outputs_of_instruction_sets
from ..reference import inference, permutation

COMPONENTS = {
    "equalized_odds": ["true_positive_rate", "false_positive_rate"],
    "conditional_use_accuracy": ["positive_predictive_value", "negative_predictive_value"],
    "tpr_and_ppv": ["true_positive_rate", "positive_predictive_value"],
    "f1_and_accuracy": ["f1", "accuracy"],
    "three": ["true_positive_rate", "selection_rate", "mcc"],
}


def metric_of(name):
    if name in fa.metrics.names() or name not in COMPONENTS:
        return name
    return fa.metrics.joint_metric(name, COMPONENTS[name])


def make(seed=0, n=300, groups="ab"):
    rng = np.random.default_rng(seed)
    group = rng.choice(list(groups), n)
    y_true = (rng.random(n) < np.where(group == "a", 0.4, 0.6)).astype(int)
    y_pred = (rng.random(n) < np.where(y_true == 1, 0.7, 0.2)).astype(int)
    return y_true, y_pred, group


def test_of(y_true, y_pred, group, metric, **options):
    if isinstance(metric, str):
        metric = metric_of(metric)
    return fa.permutation_test(
        y_true,
        y_pred,
        sensitive_features=group,
        metric=metric,
        **{"rng": 1, "n_resamples": 99, **options},
    )


test_of.__test__ = False


def tables_of(y_true, y_pred, group):
    return permutation.tables_of_groups(y_true, y_pred, group, sorted(set(group.tolist())))


def own_strata(name, y_true, y_pred):
    return {"equalized_odds": y_true, "conditional_use_accuracy": y_pred}.get(name)


def band(p, n):
    low, high = binom(n, p).ppf(1e-6), binom(n, p).isf(1e-6)
    return (1 + low) / (n + 1), (1 + high) / (n + 1)


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "options", "match"),
        [
            (("", ["tpr", "fpr"]), {}, "name is ''"),
            (("j", ["tpr"]), {}, r"components is \['true_positive_rate'\]; accepted: at least two"),
            (("j", []), {}, r"components is \[\]; accepted: at least two"),
            (("j", ["tpr", "auc"]), {}, "components is .*'auc'.*; accepted: at least two count"),
            (("j", ["equalized_odds", "tpr"]), {}, "components is .*'equalized_odds'"),
            (("j", ["tpr", "tpx"]), {}, "'tpx', which is not the name of a metric"),
            (("j", "tpr"), {}, "components is 'tpr'"),
            (("j", None), {}, "components is None"),
            (("j", ["tpr", "fpr"]), {"conditions_on": "rows"}, "conditions_on is 'rows'; accepted"),
            (("j", ["tpr", "fpr"]), {"conditions_on": "score"}, "conditions_on is 'score'; accept"),
            (
                ("j", ["tpr", "fpr"]),
                {"conditions_on": "denominator"},
                "conditions_on is 'denominator'; accepted",
            ),
        ],
    )
    def test_metrics_that_are_none(self, arguments, options, match):
        with pytest.raises(errors.FairAuditError, match=match):
            fa.metrics.joint_metric(*arguments, **options)

    @pytest.mark.parametrize(
        ("metric", "options", "match"),
        [
            ("equalized_odds", {"alternative": "greater"}, "alternative is 'greater', .* a joint"),
            ("tpr_and_ppv", {"studentize": "pooled"}, "studentize is 'pooled' for tpr_and_ppv"),
            ("equalized_odds", {"studentize": "shared"}, "studentize is 'shared'; accepted"),
            ("equalized_odds", {"engine": "stream"}, "engine is 'stream'.*accepted: 'auto', 'cell"),
            ("equalized_odds", {"engine": "shuffle"}, "engine is 'shuffle'.*accepted: 'auto'"),
            ("equalized_odds", {"sample_weight": np.ones(300)}, "sample_weight does not apply to"),
            ("equalized_odds", {"score_bins": 5}, "score_bins applies to .* not to equalized_odds"),
            ("equalized_odds", {"interval": "basic", "strata": np.resize([0, 1], 300)},
             "interval is 'basic' with strata"),
        ],
    )  # fmt: skip
    def test_wrong_inputs(self, metric, options, match):
        with pytest.raises(errors.FairAuditError, match=match):
            test_of(*make(), metric, **options)

    @pytest.mark.parametrize("missing", ["y_true", "y_pred"])
    def test_columns_that_are_needed(self, missing):
        y_true, y_pred, group = make()
        columns = {"y_true": y_true, "y_pred": y_pred} | {missing: None}
        with pytest.raises(errors.ArgumentError, match=f"{missing} is None, but equalized"):
            fa.permutation_test(**columns, sensitive_features=group, metric="equalized_odds")

    def test_a_component_without_rows(self):
        y_true, y_pred, group = make()
        y_true[group == "b"] = 1
        with pytest.raises(errors.NotMeasurableError, match="group 'b' has 0 rows with a negative "
                           "label; false_positive_rate is not defined"):  # fmt: skip
            test_of(y_true, y_pred, group, "equalized_odds")


class TestKnownValues:
    def test_equalized_odds_is_two_chi_squares(self):
        """TPR 8/10 and 4/10, FPR 2/10 and 3/10: 20 (0.4)^2/4 / (0.6 0.4) + 20 (0.1)^2/4 / (0.25
        0.75)."""
        counts = {"a": (8, 2, 2, 8), "b": (4, 3, 6, 7)}
        y_true, y_pred, group = [], [], []
        for g, cells in counts.items():
            for n, (y, d) in zip(cells, ((1, 1), (0, 1), (1, 0), (0, 0)), strict=True):
                y_true += [y] * n
                y_pred += [d] * n
                group += [g] * n
        result = test_of(y_true, y_pred, group, "equalized_odds")
        chi_squares = 0.4**2 / (0.24 * 0.2) + 0.1**2 / (0.25 * 0.75 * 0.2)
        assert result.statistic == pytest.approx(chi_squares)
        assert result.estimate == pytest.approx(0.4)
        assert [value.metric for value in result.values] == [
            name for name in COMPONENTS["equalized_odds"] for _ in range(2)
        ]
        assert [value.value for value in result.values] == pytest.approx([0.8, 0.4, 0.2, 0.3])
        assert result.exchanged == "rows of the same label"
        assert "true_positive_rate and false_positive_rate, taken together" in result.summary()

    def test_equal_tables_are_no_evidence(self):
        y_true, y_pred = np.resize([0, 1, 1, 0], 40), np.resize([0, 1, 0, 1], 40)
        group = np.repeat(["a", "b"], 20)
        for metric in COMPONENTS:
            result = test_of(y_true, y_pred, group, metric)
            assert result.statistic == 0.0
            assert result.pvalue == pytest.approx(1.0, abs=1e-12)


class TestReference:
    @pytest.mark.parametrize("groups", ["ab", "abc"])
    @pytest.mark.parametrize("name", COMPONENTS)
    def test_statistics(self, name, groups):
        y_true, y_pred, group = make(1, groups=groups)
        tables = tables_of(y_true, y_pred, group)
        for studentize in ("unpooled", "pooled"):
            if studentize == "pooled" and own_strata(name, y_true, y_pred) is None:
                continue
            result = test_of(y_true, y_pred, group, name, studentize=studentize)
            slow = inference.joint_statistic(tables, COMPONENTS[name], studentize)
            assert result.statistic == pytest.approx(slow, rel=1e-9)
            assert result.studentize == studentize
        auto = test_of(y_true, y_pred, group, name)
        assert auto.studentize == ("pooled" if metric_separate(name) else "unpooled")
        values = [permutation.value(c, *table) for c in COMPONENTS[name] for table in tables]
        variances = [permutation.variance(c, *table) for c in COMPONENTS[name] for table in tables]
        assert [value.value for value in auto.values] == pytest.approx(values, rel=1e-12)
        assert [value.standard_error**2 for value in auto.values] == pytest.approx(
            variances, rel=1e-10
        )

    @pytest.mark.parametrize("name", COMPONENTS)
    def test_pvalues_are_those_of_the_law(self, name):
        """Large values of Q are evidence, small ones are not."""
        y_true, y_pred, group = make(2, n=24)
        strata = own_strata(name, y_true, y_pred)
        studentize = "pooled" if metric_separate(name) else "unpooled"
        law = inference.joint_exact_law(y_true, y_pred, group, COMPONENTS[name], strata, studentize)
        observed = inference.joint_statistic(
            tables_of(y_true, y_pred, group), COMPONENTS[name], studentize
        )
        p = float(permutation.exact_pvalue(observed, law, "greater"))
        drawn = test_of(y_true, y_pred, group, name, engine="cells", n_resamples=20_000)
        assert drawn.statistic == pytest.approx(observed, rel=1e-9)
        low, high = band(p, 20_000)
        assert low <= drawn.pvalue <= high

    @pytest.mark.parametrize("name", COMPONENTS)
    def test_exact_pvalues(self, name):
        y_true, y_pred, group = make(2, n=24)
        strata = own_strata(name, y_true, y_pred)
        studentize = "pooled" if metric_separate(name) else "unpooled"
        law = inference.joint_exact_law(y_true, y_pred, group, COMPONENTS[name], strata, studentize)
        observed = inference.joint_statistic(
            tables_of(y_true, y_pred, group), COMPONENTS[name], studentize
        )
        p = float(permutation.exact_pvalue(observed, law, "greater"))
        result = test_of(y_true, y_pred, group, name)
        if result.engine == "exact":
            assert result.pvalue == pytest.approx(p, rel=1e-9)
        else:
            assert result.n_resamples == 99

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("name", COMPONENTS)
    def test_pvalues_count_larger_statistics(self, name, seed):
        """p = (1 + #{Q* >= Q}) / (1 + B) of the very replicates that are given."""
        y_true, y_pred, group = make(seed)
        result = test_of(y_true, y_pred, group, name, engine="cells", n_resamples=999)
        extreme = np.sum(result.null_distribution >= result.statistic * (1 - 1e-10))
        assert result.pvalue == (1 + extreme) / 1_000

    def test_pvalues_of_rows_that_are_shuffled(self):
        y_true, y_pred, group = make(4, n=120, groups="abc")
        slow = inference.joint_permutation_pvalue(
            y_true,
            y_pred,
            group,
            COMPONENTS["equalized_odds"],
            strata=y_true,
            studentize="pooled",
            n_resamples=600,
            rng=np.random.default_rng(1),
        )
        fast = test_of(y_true, y_pred, group, "equalized_odds", n_resamples=9_999)
        assert fast.statistic == pytest.approx(slow["statistic"], rel=1e-9)
        assert abs(fast.pvalue - slow["pvalue"]) < 4.9 * np.sqrt(0.25 / 600)

    def test_intervals_are_those_of_the_components(self):
        y_true, y_pred, group = make(5)
        result = test_of(y_true, y_pred, group, "equalized_odds")
        parts = [
            test_of(y_true, y_pred, group, name, confidence_level=0.975)
            for name in COMPONENTS["equalized_odds"]
        ]
        largest = max(parts, key=lambda part: abs(part.estimate))
        assert result.estimate == largest.estimate
        assert result.confidence_interval == pytest.approx(largest.confidence_interval, rel=1e-12)


def metric_separate(name):
    return name in ("equalized_odds", "conditional_use_accuracy")


class TestProperties:
    @pytest.mark.parametrize("name", COMPONENTS)
    def test_relabelled_groups(self, name):
        y_true, y_pred, group = make(6, groups="abc")
        first = test_of(y_true, y_pred, group, name)
        for order in itertools.permutations("abc"):
            renamed = np.array([order["abc".index(g)] for g in group])
            other = test_of(y_true, y_pred, renamed, name)
            assert other.statistic == pytest.approx(first.statistic, rel=1e-9)
            assert other.estimate == pytest.approx(first.estimate, rel=1e-12)

    @pytest.mark.parametrize("name", COMPONENTS)
    def test_the_order_of_components(self, name):
        y_true, y_pred, group = make(7)
        metric = fa.metrics.joint_metric("j", COMPONENTS[name])
        turned = fa.metrics.joint_metric("j", COMPONENTS[name][::-1])
        first = test_of(y_true, y_pred, group, metric)
        second = test_of(y_true, y_pred, group, turned)
        assert second.statistic == pytest.approx(first.statistic, rel=1e-9)
        assert second.null_distribution == pytest.approx(first.null_distribution, rel=1e-6)

    def test_components_that_add_nothing(self):
        """TPR with FNR = 1 - TPR, or with itself, is TPR alone."""
        y_true, y_pred, group = make(8, n=80)
        alone = test_of(y_true, y_pred, group, "tpr", studentize="unpooled", strata=None,
                        engine="cells", n_resamples=4_000)  # fmt: skip
        for twice in (["tpr", "fnr"], ["tpr", "tpr"]):
            metric = fa.metrics.joint_metric("twice", twice)
            both = test_of(y_true, y_pred, group, metric, engine="cells", n_resamples=4_000)
            assert both.statistic == pytest.approx(alone.statistic**2, rel=1e-9)
            assert both.pvalue == pytest.approx(alone.pvalue, abs=0.06)

    @pytest.mark.parametrize("name", COMPONENTS)
    def test_bits(self, name, tmp_path):
        y_true, y_pred, group = make(9, n=1_500, groups="abc")
        first = test_of(y_true, y_pred, group, name)
        order = np.random.default_rng(0).permutation(1_500)
        others = [test_of(y_true, y_pred, group, name, n_threads=n) for n in (1, 2, 7)]
        others.append(test_of(y_true[order], y_pred[order], group[order], name))
        frame = pl.DataFrame({"y": y_true, "d": y_pred, "group": group})
        for i, part in enumerate(frame.iter_slices(999)):
            part.write_parquet(tmp_path / f"{9 - i}.parquet")
        names = {"y_true": "y", "y_pred": "d", "sensitive_features": "group"}
        cells = fa.tabulate(y_true=y_true, y_pred=y_pred, sensitive_features=group)
        sources = [(data, names) for data in (frame, frame.lazy(), str(tmp_path / "*.parquet"))]
        others += [
            fa.permutation_test(data=data, metric=metric_of(name), n_resamples=99, rng=1, **columns)
            for data, columns in [*sources, (cells, {})]
        ]
        for other in others:
            assert np.array_equal(other.null_distribution, first.null_distribution)
            assert other.to_dict() == first.to_dict()

    def test_bits_of_every_instruction_set(self):
        code = (
            "import hashlib\n"
            "from tests.permutation.test_joint import make, test_of, COMPONENTS\n"
            "for name in COMPONENTS:\n"
            "    null = test_of(*make(5), name, engine='cells').null_distribution\n"
            "    print(hashlib.sha256(null.tobytes()).hexdigest())\n"
        )
        assert len(outputs_of_instruction_sets(code)) == 1

    def test_pairs_of_three_groups(self):
        y_true, y_pred, group = make(10, n=900, groups="abc")
        result = test_of(y_true, y_pred, group, "equalized_odds", adjust="max-t")
        for pair in result.comparisons:
            kept = np.isin(group, [pair.first, pair.second])
            alone = test_of(y_true[kept], y_pred[kept], group[kept], "equalized_odds")
            assert pair.statistic == pytest.approx(alone.statistic, rel=1e-10)
            assert pair.adjusted_pvalue >= pair.pvalue
        versus = test_of(y_true, y_pred, group, "equalized_odds", reference="b")
        assert [pair.second for pair in versus.comparisons] == ["b", "b"]

    def test_opposite_gaps_are_seen(self):
        """TPR higher and FPR lower: no gap in the selection rate, one in equalized odds."""
        rng = np.random.default_rng(11)
        group = np.repeat(["a", "b"], 400)
        y_true = np.resize([0, 1], 800)
        chance = np.where(y_true == 1, 0.6, 0.4) + np.where(group == "a", 0.12, -0.12) * (
            2 * y_true - 1
        )
        y_pred = (rng.random(800) < chance).astype(int)
        assert test_of(y_true, y_pred, group, "selection_rate", n_resamples=999).pvalue > 0.05
        joint = test_of(y_true, y_pred, group, "equalized_odds", n_resamples=999)
        assert joint.pvalue == 1 / 1_000

    def test_gaps_are_taken_within_strata(self):
        rng = np.random.default_rng(12)
        easy = rng.random(3_000) < 0.5
        group = np.where(rng.random(3_000) < np.where(easy, 0.8, 0.2), "a", "b")
        y_true = rng.integers(0, 2, 3_000)
        right = rng.random(3_000) < np.where(easy, 0.95, 0.6)
        y_pred = np.where(right, y_true, 1 - y_true)
        crude = test_of(y_true, y_pred, group, "equalized_odds", n_resamples=499)
        within = test_of(y_true, y_pred, group, "equalized_odds", strata=easy, n_resamples=499)
        assert crude.pvalue == 1 / 500
        assert within.pvalue > 0.01
        assert within.exchanged == "rows of the same label with equal stratum"


@pytest.mark.calibration
class TestCalibration:
    N_AUDITS = 1_000

    def rejected(self, audit, alpha=0.05):
        rng = np.random.default_rng(1)
        return np.mean([audit(rng) <= alpha for _ in range(self.N_AUDITS)])

    def band(self, rate):
        law = binom(self.N_AUDITS, rate)
        return law.ppf(1e-6) / self.N_AUDITS, law.isf(1e-6) / self.N_AUDITS

    @staticmethod
    def equal_odds(rng):
        """Base rates 0.8 and 0.3, TPR 0.8 and FPR 0.2 in both groups."""
        group = np.repeat(["a", "b"], [150, 250])
        y_true = (rng.random(400) < np.where(group == "a", 0.8, 0.3)).astype(int)
        y_pred = (rng.random(400) < np.where(y_true == 1, 0.8, 0.2)).astype(int)
        return y_true, y_pred, group

    def test_size_of_equalized_odds(self):
        def audit(rng, **options):
            data = self.equal_odds(rng)
            return test_of(
                *data, "equalized_odds", engine="cells", n_resamples=199, rng=rng, **options
            ).pvalue

        low, high = self.band(0.05)
        assert low <= self.rejected(audit) <= high
        # All labels exchanged, unstudentized: base rates that differ look like a gap.
        assert self.rejected(lambda rng: audit(rng, strata=None, studentize=False)) > high

    def test_small_statistics_are_no_evidence(self):
        """Rejections at 95 % come from large Q: among p <= 0.05 no Q below its median."""

        def audit(rng, centred=False):
            data = self.equal_odds(rng)
            result = test_of(*data, "equalized_odds", n_resamples=199, rng=rng, engine="cells")
            null, q = result.null_distribution, result.statistic
            p = result.pvalue
            if centred:
                center = np.mean([*null, q])
                p = (1 + np.sum(np.abs(null - center) >= abs(q - center))) / 200
            larger = (1 + np.sum(null >= q * (1 - 1e-10))) / 200
            return 0.0 if abs(p - larger) > 1e-9 else 1.0

        # At least as extreme means at least as large, in every audit.
        assert self.rejected(audit) == 0.0
        assert self.rejected(lambda rng: audit(rng, True)) > 0.1

    def test_size_of_a_criterion_with_shared_rows(self):
        """Three rates that share rows, groups of one law: exact whatever the criterion."""
        names = ["selection_rate", "base_rate", "true_positive_rate"]
        metric = fa.metrics.joint_metric("three_rates", names)

        def audit(rng, one_by_one=False):
            y_true = rng.integers(0, 2, 160)
            y_pred = (rng.random(160) < 0.3 + 0.5 * y_true).astype(int)
            data = (y_true, y_pred, np.repeat(["a", "b"], 80))
            options = {"n_resamples": 199, "engine": "cells", "rng": rng}
            if one_by_one:  # the least p-value, as if it were the only one
                return min(test_of(*data, name, **options).pvalue for name in names)
            return test_of(*data, metric, **options).pvalue

        low, high = self.band(0.05)
        assert low <= self.rejected(audit) <= high
        assert self.rejected(lambda rng: audit(rng, True)) > high


class TestComponentsWithoutAnInterval:
    """F1 of 1 has no interval: what it may be is not left out of that of the largest gap."""

    @pytest.mark.parametrize(
        "components", [["f1_score", "selection_rate"], ["selection_rate", "f1_score"]]
    )
    def test_the_interval_holds_the_estimate(self, components):
        rng = np.random.default_rng(1)
        group = np.repeat(list("abc"), 30)
        label, decision = (rng.random(90) < 0.5).astype(int), (rng.random(90) < 0.6).astype(int)
        decision = np.where(group == "a", label, decision)
        metric = fa.metrics.joint_metric("both", components)
        found = fa.permutation_test(
            label, decision, sensitive_features=group, metric=metric, n_resamples=99, rng=1
        )
        low, high = found.confidence_interval
        assert low <= found.estimate <= high == 1.0
        alone = fa.permutation_test(
            label, decision, sensitive_features=group, metric="selection_rate",
            confidence_level=0.975, n_resamples=99, rng=1,
        )  # fmt: skip
        assert low == alone.confidence_interval[0]

    def test_no_component_has_one(self):
        label = np.array([1, 0] * 10 + [1, 1, 0, 0] * 5)
        group = np.repeat(["a", "b"], 20).astype(object)
        group[30:] = "c"
        metric = fa.metrics.joint_metric("both", ["f1_score", "matthews_correlation"])
        found = fa.permutation_test(
            label, label, sensitive_features=group, metric=metric, n_resamples=99, rng=1,
            studentize="none",
        )  # fmt: skip
        assert np.isnan(found.confidence_interval).all()
