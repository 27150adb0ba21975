"""Minimum detectable gaps and sample sizes."""

import dataclasses
import itertools
import json
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs import errors

from ..reference import inference, permutation, proportions, rows

NAN = math.nan
HALF = {"metric": "selection_rate", "value": 0.5}


def make(seed=0, n=600, groups="ab", shares=None):
    """(y_true, y_pred, score, group)."""
    rng = np.random.default_rng(seed)
    y_true = (rng.random(n) < 0.4).astype(int)
    score = np.clip(0.3 * y_true + 0.7 * rng.random(n), 0.01, 0.99)
    return y_true, (score > 0.5).astype(int), score, rng.choice(list(groups), n, p=shares)


def gap_of(data, metric, **options):
    y_true, y_pred, score, group = data
    return fa.minimum_detectable_gap(
        y_true,
        y_pred,
        y_score=score,
        metric=metric,
        **{"sensitive_features": group, **options},
    )


def size_of(gap, data, metric, **options):
    y_true, y_pred, score, group = data
    return fa.sample_size(
        gap,
        y_true,
        y_pred,
        y_score=score,
        metric=metric,
        **{"sensitive_features": group, **options},
    )


def median_error(y_true, value, weight):
    return float(np.median(np.abs(y_true - value)))


def rate_among_positives(y_true, value, weight):
    return float(value[y_true == 1].mean()) if np.any(y_true == 1) else NAN


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"power": 0}, errors.ArgumentError, "power is 0; accepted: a number strictly betw"),
            ({"power": 1}, errors.ArgumentError, "power is 1; accepted"),
            ({"power": 80}, errors.ArgumentError, "power is 80; accepted"),
            ({"power": NAN}, errors.ArgumentError, "power is nan; accepted"),
            ({"power": "0.8"}, errors.ArgumentTypeError, "power is '0.8'; accepted"),
            ({"power": True}, errors.ArgumentTypeError, "power is True; accepted"),
            ({"power": None}, errors.ArgumentTypeError, "power is None; accepted"),
            ({"confidence_level": 95}, errors.ArgumentError, "confidence_level is 95; accepted"),
            ({"confidence_level": NAN}, errors.ArgumentError, "confidence_level is nan; accepted"),
            ({"alternative": "both"}, errors.ArgumentError, "alternative is 'both'; accepted"),
            ({"alternative": None}, errors.ArgumentError, "alternative is None; accepted"),
            ({"n_comparisons": 0}, errors.ArgumentError, "n_comparisons is 0; accepted"),
            ({"n_comparisons": -2}, errors.ArgumentError, "n_comparisons is -2; accepted"),
            ({"n_comparisons": 1.5}, errors.ArgumentTypeError, "n_comparisons is 1.5; accepted"),
            ({"n_comparisons": True}, errors.ArgumentTypeError, "n_comparisons is True; accepted"),
            (
                {"metric": "equalized_odds"},
                errors.ArgumentError,
                "metric is 'equalized_odds', for which",
            ),
            ({"metric": "ece"}, errors.ArgumentError, "metric is 'calibration_error', for which"),
            ({"metric": "f1"}, errors.ArgumentError, "value is for proportions only: .* f1 must"),
            ({"metric": "pearson"}, errors.ArgumentError, "value is for proportions only"),
            ({"metric": "nope"}, errors.UnknownMetricError, "metric is 'nope'"),
            ({"value": 0}, errors.ArgumentError, "value is 0; accepted"),
            ({"value": 1.0}, errors.ArgumentError, "value is 1.0; accepted"),
            ({"value": -0.2}, errors.ArgumentError, "value is -0.2; accepted"),
            ({"value": NAN}, errors.ArgumentError, "value is nan; accepted"),
            ({"value": "x"}, errors.ArgumentTypeError, "value is 'x'; accepted"),
            ({"value": None}, errors.ArgumentTypeError, "value is None, and there are no data"),
            ({"share": 0}, errors.ArgumentError, "share is 0; accepted"),
            ({"share": 1.5}, errors.ArgumentError, "share is 1.5; accepted"),
            ({"share": -1}, errors.ArgumentError, "share is -1; accepted"),
            ({"share": NAN}, errors.ArgumentError, "share is nan; accepted"),
            ({"share": True}, errors.ArgumentError, "share is True; accepted"),
            ({"share": [0.5]}, errors.ArgumentError, "share has 1 entries; accepted: one for"),
            ({"share": []}, errors.ArgumentError, "share has 0 entries; accepted: one for"),
            ({"share": None}, errors.FairAuditError, "share is None"),
            ({"share": "ab"}, errors.FairAuditError, "share is 'a"),
            ({"share": ["x", 0.5]}, errors.FairAuditError, "share is 'x'"),
            ({"group_sizes": 50}, errors.FairAuditError, "group_sizes is 50"),
            ({"group_sizes": "ab"}, errors.ArgumentTypeError, "group_sizes is 'ab'"),
            ({"group_sizes": [50]}, errors.ArgumentError, "group_sizes has 1 entr.*at least two"),
            ({"group_sizes": {"a": 5}}, errors.ArgumentError, "group_sizes has 1 entr.*at least"),
            ({"group_sizes": [50, 0]}, errors.ArgumentError, "group_sizes of group 2 is 0; acc"),
            ({"group_sizes": [50, -1]}, errors.ArgumentError, "group_sizes of group 2 is -1; ac"),
            ({"group_sizes": [50, NAN]}, errors.ArgumentTypeError, "group_sizes of group 2 is nan"),
            ({"group_sizes": [True, 5]}, errors.ArgumentTypeError, "group_sizes of group 1 is Tr"),
        ],
    )
    @pytest.mark.parametrize("function", [fa.minimum_detectable_gap, fa.sample_size])
    def test_wrong_values(self, function, options, error, message):
        arguments = {**HALF, "group_sizes": [50, 60], **options}
        before = () if function is fa.minimum_detectable_gap else (0.1,)
        with pytest.raises(error, match=message):
            function(*before, **arguments)

    def test_group_sizes_are_needed(self):
        with pytest.raises(errors.ArgumentTypeError, match=r"group_sizes is None\. Without data"):
            fa.minimum_detectable_gap(**HALF)
        with pytest.raises(errors.ArgumentError, match="group_sizes has 0 entries; accepted"):
            fa.minimum_detectable_gap(**HALF, group_sizes=[])

    @pytest.mark.parametrize("empty", [[], {}, ()])
    def test_empty_group_sizes_are_not_equal_groups(self, empty):
        with pytest.raises(errors.ArgumentError, match="group_sizes has 0 entries; accepted"):
            fa.sample_size(0.1, **HALF, group_sizes=empty)

    @pytest.mark.parametrize("gap", [0, -0.1, NAN, "0.1", None, True, [0.1], math.inf, -math.inf])
    def test_gaps(self, gap):
        with pytest.raises(errors.ArgumentError, match=r"gap is .*; accepted: a number above 0"):
            fa.sample_size(gap, **HALF)

    def test_gaps_that_there_cannot_be(self):
        """Two rates are at most 1 apart; no number of rows shows a gap of 2."""
        with pytest.raises(errors.ArgumentError, match="gap is 2"):
            fa.sample_size(2, **HALF)

    def test_gaps_that_are_too_small(self):
        with pytest.raises(errors.ArgumentError, match="gap is 1e-09; accepted: gaps that can"):
            fa.sample_size(1e-9, **HALF)

    def test_group_sizes_of_the_data(self):
        data = make()
        with pytest.raises(errors.ArgumentError, match=r"group_sizes names \['a', 'z'\]; accepted"):
            gap_of(data, "tpr", group_sizes={"a": 5, "z": 6})
        with pytest.raises(
            errors.ArgumentError, match="group_sizes has 3 entries; accepted: one f"
        ):
            gap_of(data, "tpr", group_sizes=[5, 6, 7])

    def test_value_goes_without_data(self):
        with pytest.raises(errors.ArgumentTypeError, match="value cannot be combined with data"):
            gap_of(make(), "tpr", value=0.5)

    def test_share_goes_without_data(self):
        """It is not used, so it must not be taken."""
        with pytest.raises(errors.ArgumentTypeError, match="share cannot be combined with data"):
            gap_of(make(), "tpr", share=0.01)

    def test_labels_without_groups_are_not_dropped(self):
        y_true, y_pred, _, _ = make()
        with pytest.raises(errors.FairAuditError, match=r"sensitive_features|y_true"):
            fa.minimum_detectable_gap(
                y_true, y_pred, metric="tpr", value=0.5, group_sizes=[100, 100]
            )

    @pytest.mark.parametrize("metric", ["equalized_odds", "calibration_error"])
    def test_metrics_without_a_formula(self, metric):
        for call in (lambda: gap_of(make(), metric), lambda: size_of(0.1, make(), metric)):
            with pytest.raises(errors.ArgumentError, match=f"metric is '{metric}', for which"):
                call()

    def test_groups_without_positives(self):
        y_true, y_pred, score, group = make()
        y_true[group == "b"] = 0
        for metric in ("tpr", "auc"):
            with pytest.raises(errors.NotMeasurableError, match="'b' has 0 rows with a positive"):
                gap_of((y_true, y_pred, score, group), metric)

    def test_data_that_do_not_vary(self):
        y_true, y_pred, score, group = make()
        for metric in ("selection_rate", "tpr"):
            with pytest.raises(errors.ArgumentError, match="does not vary"):
                gap_of((y_true, np.ones_like(y_pred), score, group), metric)

    def test_a_callable_without_a_standard_error(self):
        """Some of its bootstrap samples have no positives: no gap can be planned."""
        rate = fa.metrics.callable_metric("rate", rate_among_positives)
        y_true = np.array([1, 1, 0, 0, 0, 0, 0] * 2)
        y_pred = np.array([1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0])
        data = (y_true, y_pred, None, np.repeat(["a", "b"], 7))
        for call in (lambda: gap_of(data, rate), lambda: size_of(0.1, data, rate)):
            with pytest.raises(errors.FairAuditError, match="rate"):
                call()

    @pytest.mark.parametrize("n_rows", [100, "100", [1], [2.5], [NAN]])
    def test_rows_of_a_curve(self, n_rows):
        plan = fa.minimum_detectable_gap(**HALF, group_sizes=[50, 50])
        with pytest.raises(errors.FairAuditError, match="n_rows is"):
            plan.curve(n_rows=n_rows)


class TestKnownValues:
    def test_two_equal_groups(self):
        """n' = (1.959964 sqrt(2 0.475 0.525) + 0.841621 sqrt(0.25 + 0.2475))^2 / 0.05^2 = 1564.7
        rows in each group, and n'/4 (1 + sqrt(1 + 4 / (n' 0.05)))^2 = 1604.4 for the exact test."""
        plan = fa.sample_size(0.05, **HALF)
        assert plan.group_sizes == {"group 1": 1605, "group 2": 1605}
        assert plan.gap == 0.05
        assert 0.8 <= plan.power < 0.801
        back = fa.minimum_detectable_gap(**HALF, group_sizes=[1605, 1605])
        assert float(back) == pytest.approx(0.05, abs=1e-5)

    def test_the_plan_of_casagrande_pike_and_smith(self):
        """.3 against 0.4: 376 rows each; 356 without the correction, with a power of .78."""
        plan = fa.sample_size(0.1, metric="selection_rate", value=0.3)
        assert list(plan.group_sizes.values()) == [376, 376]
        assert proportions.fisher_power(376, 0.3, 376, 0.4) == pytest.approx(0.803, abs=0.001)

    def test_a_gap_that_cannot_be(self):
        with pytest.raises(
            errors.ArgumentError, match=r"gap is 0.8; accepted: up to 0.7, because no"
        ):
            fa.sample_size(0.8, metric="selection_rate", value=0.3)
        assert fa.sample_size(0.6, metric="selection_rate", value=0.3).gap == 0.6
        # First minus second is to be above 0: the second lies below .3.
        with pytest.raises(errors.ArgumentError, match=r"accepted: up to 0.3"):
            fa.sample_size(0.4, metric="selection_rate", value=0.3, alternative="greater")
        plan = fa.sample_size(0.2, metric="selection_rate", value=0.3, alternative="greater")
        assert plan.values == {"group 1": 0.3, "group 2": pytest.approx(0.1)}
        with pytest.raises(errors.ArgumentError, match=r"which is at most 0.7, is found with that"):
            fa.minimum_detectable_gap(metric="selection_rate", value=0.3, group_sizes=[4, 4])

    def test_equivalence_in_words(self):
        plan = fa.sample_size(0.03, **HALF, goal="equivalence")
        assert (plan.goal, plan.gap) == ("equivalence", 0.03)
        assert "that no gap is as large as 0.03, if there is none" in str(plan)
        back = fa.minimum_detectable_gap(**HALF, goal="equivalence", group_sizes=plan.group_sizes)
        assert back.gap == pytest.approx(0.03, rel=1e-3)
        # z = 1.644854 for each side and 1.281552 for both: (2.926406 / 0.03)^2 / 2, about.
        assert plan.group_sizes["group 1"] == pytest.approx((2.926406 / 0.03) ** 2 / 2, rel=0.002)
        three = fa.sample_size(0.03, **HALF, goal="equivalence", group_sizes=[1, 1, 1])
        assert three.group_sizes["group 1"] > plan.group_sizes["group 1"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"goal": "equality"}, "goal is 'equality'; accepted: 'difference', 'equivalence'"),
            ({"goal": None}, "goal is None; accepted"),
            (
                {"goal": "equivalence", "alternative": "less"},
                "alternative is 'less'; accepted: 'two",
            ),
        ],
    )
    def test_goals(self, options, message):
        for call in (fa.minimum_detectable_gap, lambda **given: fa.sample_size(0.1, **given)):
            with pytest.raises(errors.ArgumentError, match=message):
                call(**HALF, group_sizes=[50, 60], **options)

    def test_a_correlation_has_no_equivalence(self):
        rng = np.random.default_rng(0)
        with pytest.raises(errors.ArgumentError, match="goal is 'equivalence' for pearson"):
            fa.minimum_detectable_gap(
                y_score=rng.random(50), sensitive_features=rng.random(50), metric="pearson",
                goal="equivalence",
            )  # fmt: skip

    @pytest.mark.parametrize(
        ("alternative", "power", "z"),
        [
            ("two-sided", 0.8, 1.959964 + 0.841621),
            ("two-sided", 0.9, 1.959964 + 1.281552),
            ("greater", 0.8, 1.644854 + 0.841621),
            ("less", 0.9, 1.644854 + 1.281552),
        ],
    )
    def test_sums_of_normal_quantiles(self, alternative, power, z):
        """F1, whose test is not exact: z times the standard error that the data tell."""
        plan = gap_of(make(), "f1", alternative=alternative, power=power)
        error = math.sqrt(
            sum(plan.standard_deviations[g] ** 2 / plan.group_sizes[g] for g in ("a", "b"))
        )
        assert plan.gap == pytest.approx(z * error, rel=1e-5)
        assert plan.standard_error == pytest.approx(error, rel=1e-12)

    def test_share_of_the_denominator(self):
        """A tenth of the rows count: ten times the rows."""
        all_rows = fa.minimum_detectable_gap(metric="tpr", value=0.8, group_sizes=[100, 200])
        tenth = fa.minimum_detectable_gap(
            metric="tpr", value=0.8, share=0.1, group_sizes=[1000, 2000]
        )
        each = fa.minimum_detectable_gap(
            metric="tpr", value=0.8, share=[0.1, 0.2], group_sizes=[1000, 1000]
        )
        assert tenth.gap == pytest.approx(all_rows.gap, rel=1e-12)
        assert each.gap == pytest.approx(all_rows.gap, rel=1e-12)
        one = fa.minimum_detectable_gap(
            metric="tpr", value=0.8, share=np.float32(0.1), group_sizes=[1000, 2000]
        )
        assert one.gap == pytest.approx(all_rows.gap, rel=1e-6)

    def test_bonferroni(self):
        """Three groups: level 0.05 / 3 for each pair; the two smallest groups decide."""
        plan = fa.minimum_detectable_gap(**HALF, group_sizes={"a": 100, "b": 400, "c": 200})
        assert plan.n_comparisons == 3
        pair = fa.minimum_detectable_gap(
            metric="selection_rate", value=plan.values["b"], group_sizes={"c": 200, "b": 400}
        )
        assert pair.gap < plan.gap
        alone = fa.minimum_detectable_gap(
            **HALF, group_sizes=[100, 200], confidence_level=1 - 0.05 / 3
        )
        assert plan.gap == pytest.approx(alone.gap, rel=1e-9)
        one = fa.minimum_detectable_gap(**HALF, group_sizes=[100, 400, 200], n_comparisons=1)
        assert one.power_at(one.gap) == pytest.approx(0.8, abs=1e-9)

    def test_power_at_no_gap_is_the_level(self):
        plan = gap_of(make(), "f1", confidence_level=0.9)
        assert plan.power_at(0) == pytest.approx(0.1, rel=1e-9)
        one_sided = gap_of(make(), "f1", alternative="greater")
        assert one_sided.power_at(0) == pytest.approx(0.05, rel=1e-9)
        # Exact tests stay below their level.
        exact = fa.minimum_detectable_gap(**HALF, group_sizes=[50, 50])
        assert 0.01 < exact.power_at(0) < 0.05

    def test_proportions_of_groups(self):
        """As the docstring of `group_sizes` says: proportions, numbers."""
        whole = fa.sample_size(0.05, **HALF, group_sizes=[1, 3])
        assert fa.sample_size(0.05, **HALF, group_sizes=[0.25, 0.75]).group_sizes == (
            whole.group_sizes
        )
        assert fa.sample_size(0.05, **HALF, group_sizes=np.array([1, 3])).group_sizes == (
            whole.group_sizes
        )
        n_a = proportions.casagrande_pike_smith(0.5, 0.45, 3)
        assert list(whole.group_sizes.values()) == pytest.approx([n_a, 3 * n_a], abs=4)

    def test_gaps_that_few_rows_cannot_show(self):
        """Two rows in each group find nothing: no gap of rates above 1 may be promised."""
        try:
            plan = fa.minimum_detectable_gap(**HALF, group_sizes=[2, 2])
        except errors.ArgumentError as error:
            assert "group_sizes" in str(error)  # noqa: PT017
        else:
            assert plan.gap <= 1 or math.isnan(plan.gap)

    def test_pairs_with_a_reference(self):
        """a and b are few and are not compared with each other, only with c."""
        data = make(1, 3_000, "abc", (0.05, 0.05, 0.9))
        plan = gap_of(data, "selection_rate", reference="c")
        assert plan.n_comparisons == 2
        v = {g: plan.standard_deviations[g] ** 2 / n for g, n in plan.group_sizes.items()}
        assert plan.standard_error == pytest.approx(
            math.sqrt(max(v["a"], v["b"]) + v["c"]), rel=1e-9
        )

    def test_words_json_and_frames(self):
        plan = fa.minimum_detectable_gap(**HALF, group_sizes={"f": 1000, "m": 2000})
        assert float(plan) == plan.gap
        assert str(plan).startswith("selection_rate: with 1,000 of f, 2,000 of m a gap of 0.05")
        content = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
        assert content["kind"] == "PowerPlan"
        assert [content["summary"], f"Details: {plan.details}."] == str(plan).splitlines()
        curve = plan.curve()
        assert isinstance(curve, pl.DataFrame)
        assert curve.columns == ["n_rows", "gap", "power"]
        assert curve["gap"].to_list() == pytest.approx(np.linspace(0, 2 * plan.gap, 41).tolist())
        assert curve["power"][20] == pytest.approx(0.8, abs=1e-6)
        grid = plan.curve(gaps=0.1, n_rows=[3_000, 12_000])
        assert grid["power"][0] == pytest.approx(plan.power_at(0.1))
        assert grid["power"][1] == pytest.approx(plan.power_at(0.2))

    def test_pairs_in_words(self):
        plan = fa.minimum_detectable_gap(**HALF, group_sizes=[50, 60, 70])
        assert "level shared by 3 pairs" in str(plan)


class TestReference:
    @pytest.mark.parametrize("metric", ["selection_rate", "true_positive_rate", "f1", "mcc"])
    def test_counts(self, metric):
        exact = metric.endswith("rate")
        y_true, y_pred, _, group = data = make(2)
        plan = gap_of(data, metric)
        found = {}
        for name in "ab":
            inside = group == name
            table = permutation.table_of_rows(y_true[inside], y_pred[inside])
            found[name] = math.sqrt(permutation.variance(metric, *table) * inside.sum())
            assert plan.standard_deviations[name] == pytest.approx(found[name], rel=1e-9)
        sizes = plan.group_sizes["a"], plan.group_sizes["b"]
        if exact:
            lost = sum(0.5 / (plan.shares[g] * n) for g, n in plan.group_sizes.items())
            plain = rows.minimum_detectable_gap(found["a"], sizes[0], found["b"], sizes[1])
            assert plan.gap == pytest.approx(plain + lost, rel=0.01)
            return
        # The formula leaves out the far tail, which adds 1e-7 at a power of .8.
        assert plan.gap == pytest.approx(
            rows.minimum_detectable_gap(found["a"], sizes[0], found["b"], sizes[1]), rel=1e-5
        )
        assert plan.power_at(0.07) == pytest.approx(
            inference.power_of_gap(0.07, found["a"], sizes[0], found["b"], sizes[1]), rel=1e-9
        )

    @pytest.mark.parametrize("metric", ["auc", "mean_squared_error", "log_loss"])
    def test_rows(self, metric):
        y_true, _, score, group = data = make(3)
        plan = gap_of(data, metric)
        for name in "ab":
            inside = group == name
            v = (
                rows.delong_variance(y_true[inside], score[inside])
                if metric == "auc"
                else rows.ratio_variance(*rows.ROW_METRICS[metric](y_true[inside], score[inside]))
            )
            assert plan.standard_deviations[name] == pytest.approx(
                math.sqrt(v * inside.sum()), rel=1e-9
            )

    def test_weights_and_clusters(self):
        y_true, y_pred, score, _ = make(4)
        cluster = np.arange(600) // 5
        group = np.where(cluster % 2 == 0, "a", "b")
        weight = np.random.default_rng(0).exponential(size=600)
        plan = gap_of((y_true, y_pred, score, group), "f1", sample_weight=weight, clusters=cluster)
        for name in "ab":
            inside = group == name
            _, v = inference.count_metric_weighted(
                "f1", y_true[inside], y_pred[inside], weight[inside], cluster[inside]
            )
            assert plan.standard_deviations[name] == pytest.approx(
                math.sqrt(v * inside.sum()), rel=1e-9
            )

    def test_callables_have_the_bootstrap_standard_error(self):
        metric = fa.metrics.callable_metric(
            "mean", lambda y, s, w: float(np.mean(s)), columns=("y_true", "y_score"),
            n_samples=4_000,
        )  # fmt: skip
        data = make(5)
        plan, formula = gap_of(data, metric), gap_of(data, "mean_prediction")
        assert plan.gap == pytest.approx(formula.gap, rel=0.05)

    @pytest.mark.parametrize("seed", range(4))
    def test_sample_size(self, seed):
        rng = np.random.default_rng(seed)
        p, gap = rng.uniform(0.1, 0.9), rng.uniform(0.01, 0.1)
        sizes = [int(n) for n in rng.integers(1, 9, 2)]
        plan = fa.sample_size(gap, metric="accuracy", value=p, group_sizes=sizes)
        # The second group lies the gap away, where proportions vary more.
        other = p + gap if p < 0.5 else p - gap
        ratio = sizes[1] / sizes[0]
        n_first = proportions.casagrande_pike_smith(p, other, ratio)
        expected = (n_first, ratio * n_first)
        for found, wanted in zip(plan.group_sizes.values(), expected, strict=True):
            assert wanted - 2 <= found <= wanted + 2 * max(sizes)

    @pytest.mark.parametrize("metric", ["pearson", "spearman"])
    def test_correlations(self, metric):
        """One sample: v of the correlation as tested; z sqrt(v)."""
        rng = np.random.default_rng(6)
        score, attribute = rng.random(400), rng.normal(size=400)
        plan = fa.minimum_detectable_gap(
            y_score=score, sensitive_features={"age": attribute}, metric=metric
        )
        assert plan.group_sizes == {"age": 400}
        z = stats.norm.isf(0.025) + stats.norm.ppf(0.8)
        assert plan.gap == pytest.approx(z / math.sqrt(400), rel=0.2)
        more = fa.sample_size(
            plan.gap / 2, y_score=score, sensitive_features={"age": attribute}, metric=metric
        )
        assert more.group_sizes["age"] == pytest.approx(1600, abs=2)


class TestProperties:
    @pytest.mark.parametrize("metric", ["f1", "auc", "mse"])
    def test_four_times_the_rows_halve_the_gap(self, metric):
        data = make(7)
        plan = gap_of(data, metric)
        sizes = {group: 4 * n for group, n in plan.group_sizes.items()}
        assert gap_of(data, metric, group_sizes=sizes).gap == pytest.approx(plan.gap / 2, rel=1e-9)
        half = size_of(plan.gap / 2, data, metric)
        assert sum(half.group_sizes.values()) == pytest.approx(4 * 600, abs=3)

    @pytest.mark.parametrize("metric", ["tpr", "f1", "auc", "mse"])
    def test_there_and_back(self, metric):
        data = make(8)
        plan = size_of(0.05, data, metric, power=0.9)
        assert plan.power >= 0.9
        back = gap_of(data, metric, power=0.9, group_sizes=plan.group_sizes)
        assert back.gap == pytest.approx(0.05, rel=1e-2)
        assert back.gap <= 0.05

    def test_sizes_are_the_smallest(self):
        for sizes, gap in itertools.product(([1, 1], [1, 3], [2, 5], [1, 9, 30]), (0.03, 0.1, 0.4)):
            plan = fa.sample_size(gap, **HALF, group_sizes=sizes)
            fewer = {group: n - 1 for group, n in plan.group_sizes.items()}
            if min(fewer.values()) < 1:
                continue
            smaller = dataclasses.replace(plan, group_sizes=fewer)
            assert smaller.power_at(gap) < 0.8
            assert plan.power >= 0.8

    def test_power_grows(self):
        plan = fa.minimum_detectable_gap(**HALF, group_sizes=[80, 90])
        power = [plan.power_at(gap) for gap in np.linspace(0, 0.6, 30)]
        assert power == sorted(power)
        assert plan.power_at(-0.1) == pytest.approx(plan.power_at(0.1), rel=1e-12)
        by_rows = plan.curve(gaps=[0.1], n_rows=[20, 200, 2_000])["power"].to_list()
        assert by_rows == sorted(by_rows)

    @pytest.mark.parametrize("metric", ["tpr", "f1", "auc", "mse"])
    def test_labels_and_order_do_not_matter(self, metric):
        y_true, y_pred, score, group = data = make(9)
        plan = gap_of(data, metric)
        order = np.random.default_rng(0).permutation(600)
        assert gap_of(tuple(c[order] for c in data), metric) == plan
        renamed = gap_of((y_true, y_pred, score, np.where(group == "a", "z", "c")), metric)
        assert renamed.gap == pytest.approx(plan.gap, rel=1e-12)
        swapped = gap_of(data, metric, groups=["b", "a"])
        assert swapped.gap == pytest.approx(plan.gap, rel=1e-12)

    def test_arrays_frames_files_and_cells(self, tmp_path):
        y_true, y_pred, score, group = data = make(10)
        frame = pl.DataFrame({"y": y_true, "p": y_pred, "s": score, "group": group})
        frame.write_parquet(tmp_path / "data.parquet")
        cells = fa.tabulate(y_true=y_true, y_pred=y_pred, sensitive_features=group)
        first = gap_of(data, "tpr")
        assert fa.minimum_detectable_gap(data=cells, metric="tpr") == first
        for table in (frame, frame.lazy(), tmp_path / "data.parquet"):
            names = {"y_true": "y", "y_pred": "p", "sensitive_features": "group"}
            assert fa.minimum_detectable_gap(data=table, metric="tpr", **names) == first
            more = fa.sample_size(0.05, data=table, metric="tpr", **names)
            assert more == size_of(0.05, data, "tpr")

    def test_two_equal_group_sizes_given_as_they_are(self):
        plan = fa.minimum_detectable_gap(**HALF, group_sizes=np.array([40, 50]))
        assert plan == fa.minimum_detectable_gap(**HALF, group_sizes=(40, 50))

    def test_a_power_below_the_level_needs_no_gap(self):
        assert gap_of(make(), "f1", power=0.04).gap == 0
        assert fa.minimum_detectable_gap(**HALF, group_sizes=[5, 5], power=0.001).gap == 0


@pytest.mark.calibration
class TestCalibration:
    """The formula against simulated permutation tests: within .04."""

    N = 1_500

    def rejected(self, make_audit, n_audits, **options):
        rng = np.random.default_rng(1)
        return np.mean(
            [
                fa.permutation_test(rng=rng, n_resamples=399, **make_audit(rng), **options).pvalue
                <= 0.05
                for _ in range(n_audits)
            ]
        )

    @pytest.mark.parametrize(
        ("n", "alternative"), [((400, 400), "two-sided"), ((300, 900), "less")]
    )
    def test_selection_rate(self, n, alternative):
        plan = fa.minimum_detectable_gap(**HALF, group_sizes=n, alternative=alternative, power=0.8)
        sign = -1 if alternative == "less" else 1
        rate = np.repeat([0.5 + sign * plan.gap / 2, 0.5 - sign * plan.gap / 2], n)

        def audit(rng):
            return {
                "y_pred": (rng.random(sum(n)) < rate).astype(int),
                "sensitive_features": np.repeat(["a", "b"], n),
            }

        found = self.rejected(audit, self.N, metric="selection_rate", alternative=alternative)
        assert found == pytest.approx(0.8, abs=0.04)
        # A broken plan, the standard error of one group alone, is far off.
        wrong = plan.power_at(plan.gap * math.sqrt(2))
        assert abs(found - wrong) > 0.04

    def test_true_positive_rate(self):
        n = (900, 600)
        plan = fa.minimum_detectable_gap(metric="tpr", value=0.7, share=[0.4, 0.6], group_sizes=n)
        base = np.repeat([0.4, 0.6], n)
        rate = np.repeat([0.7 + plan.gap / 2, 0.7 - plan.gap / 2], n)

        def audit(rng):
            return {
                "y_true": (rng.random(1_500) < base).astype(int),
                "y_pred": (rng.random(1_500) < rate).astype(int),
                "sensitive_features": np.repeat(["a", "b"], n),
            }

        assert self.rejected(audit, self.N, metric="tpr") == pytest.approx(0.8, abs=0.04)

    def test_auc_and_mean_squared_error_from_data(self):
        """A pilot of 4,000 rows plans 500 and 700; the gap is made by moving the scores."""
        rng = np.random.default_rng(2)

        def scores(y_true, shift):
            return shift * y_true + rng.standard_normal(len(y_true))

        y_true = (rng.random(4_000) < 0.4).astype(int)
        pilot = (y_true, y_true, scores(y_true, 1.0), np.repeat(["a", "b"], 2_000))
        sizes = {"a": 500, "b": 700}
        plan = gap_of(pilot, "auc", group_sizes=sizes)
        middle = stats.norm.cdf(1 / math.sqrt(2))
        shift = np.repeat(
            [math.sqrt(2) * stats.norm.ppf(middle + s * plan.gap / 2) for s in (1, -1)], (500, 700)
        )

        def audit(rng):
            labels = (rng.random(1_200) < 0.4).astype(int)
            return {
                "y_true": labels,
                "y_score": shift * labels + rng.standard_normal(1_200),
                "sensitive_features": np.repeat(["a", "b"], (500, 700)),
            }

        assert self.rejected(audit, 800, metric="auc") == pytest.approx(0.8, abs=0.04)

        residual = gap_of(pilot, "mean_residual", group_sizes=sizes)
        moved = np.repeat([residual.gap, 0.0], (500, 700))

        def shifted(rng):
            labels = (rng.random(1_200) < 0.4).astype(int)
            return {
                "y_true": labels,
                "y_score": labels - moved + rng.standard_normal(1_200),
                "sensitive_features": np.repeat(["a", "b"], (500, 700)),
            }

        found = self.rejected(shifted, 800, metric="mean_residual")
        assert found == pytest.approx(0.8, abs=0.04)

    def test_clusters(self):
        """A plan that ignores that rows come in clusters promises far too much."""
        rng = np.random.default_rng(3)
        size, people = 6, (150, 150)

        def book(rng, gap):
            rate = rng.beta(2, 2, sum(people)) + np.repeat([gap / 2, -gap / 2], people)
            cluster = np.repeat(np.arange(sum(people)), size)
            return {
                "y_pred": (rng.random(len(cluster)) < rate[cluster]).astype(int),
                "sensitive_features": np.where(cluster < people[0], "a", "b"),
                "clusters": cluster,
            }

        pilot = book(rng, 0.0)
        plan = fa.minimum_detectable_gap(metric="selection_rate", **pilot)
        # Rates outside of 0 to 1 are cut off, which takes away about 1 % of the gap.
        found = self.rejected(lambda rng: book(rng, plan.gap), self.N, metric="selection_rate")
        assert found == pytest.approx(0.8, abs=0.05)
        del pilot["clusters"]
        naive = fa.minimum_detectable_gap(metric="selection_rate", **pilot)
        broken = self.rejected(lambda rng: book(rng, naive.gap), 500, metric="selection_rate")
        assert broken < 0.7

    @pytest.mark.parametrize(("value", "gap"), [(0.95, 0.05), (0.1, 0.1), (0.5, 0.1)])
    def test_rates_far_from_one_half(self, value, gap):
        """The gap changes the variance: without that 0.95 and 0.90 are told apart with power
        .56."""
        plan = fa.sample_size(gap, metric="selection_rate", value=value)
        n = list(plan.group_sizes.values())
        other = value + gap if value < 0.5 else value - gap
        rng = np.random.default_rng(20)
        found = 0
        for _ in range(600):
            hits = rng.binomial(n, (value, other))
            cells = fa.Cells.from_frame(
                {
                    "group": ["a", "a", "b", "b"],
                    "y": [1, 0, 1, 0],
                    "count": [hits[0], n[0] - hits[0], hits[1], n[1] - hits[1]],
                },
                sensitive_features="group",
                y_pred="y",
            )
            found += fa.permutation_test(data=cells, metric="selection_rate").pvalue <= 0.05
        assert found / 600 == pytest.approx(0.8, abs=0.07)

    @pytest.mark.parametrize(
        ("value", "gap", "sizes"),
        [(0.3, 0.1, (1, 1)), (0.1, 0.1, (1, 9)), (0.02, 0.04, (1, 4)), (0.9, 0.05, (1, 1)),
         (0.3, 0.3, (1, 1))],
    )  # fmt: skip
    def test_power_of_the_exact_test(self, value, gap, sizes):
        """All tables summed: 80 to 85 %. Un-pooled without a correction: 0.54 for 0.02, .06."""
        plan = fa.sample_size(gap, metric="selection_rate", value=value, group_sizes=sizes)
        other = plan.values["group 2"]
        n = list(plan.group_sizes.values())
        found = proportions.fisher_power(n[0], value, n[1], other)
        assert 0.795 <= found <= 0.85
        plain = rows.sample_size(
            gap, *(math.sqrt(p * (1 - p)) for p in (value, other)), sizes[1] / sizes[0]
        )
        few = [math.ceil(entry) for entry in plain]
        assert proportions.fisher_power(few[0], value, few[1], other) < 0.79

    @pytest.mark.parametrize(
        ("value", "margin", "sizes"),
        [(0.5, 0.1, (1, 1)), (0.1, 0.05, (1, 4)), (0.95, 0.05, (1, 3))],
    )
    def test_power_of_equivalence_tests(self, value, margin, sizes):
        """Public calls; a plan for one of the two one-sided tests shows it in 60 %."""
        options = {"metric": "selection_rate", "value": value, "group_sizes": sizes}
        plan = fa.sample_size(margin, **options, goal="equivalence")
        rng, n_audits = np.random.default_rng(9), 1_500

        def shown(n):
            hits = rng.binomial(n, value)
            counts = [hits[0], n[0] - hits[0], hits[1], n[1] - hits[1]]
            cells = fa.Cells.from_frame(
                {"group": ["a", "a", "b", "b"], "y": [1, 0, 1, 0], "count": counts},
                sensitive_features="group", y_pred="y",
            )  # fmt: skip
            result = fa.equivalence_test(data=cells, metric="selection_rate", margin=margin)
            return result.pvalue <= 0.05

        def share(n, n_audits):
            return np.mean([shown(n) for _ in range(n_audits)])

        low, high = (stats.binom.ppf(tail, n_audits, 0.8) / n_audits for tail in (1e-6, 1 - 1e-6))
        assert low <= share(list(plan.group_sizes.values()), n_audits) <= high
        z = stats.norm.isf(0.05) + stats.norm.ppf(0.8)
        n_first = value * (1 - value) * (1 + sizes[0] / sizes[1]) * (z / margin) ** 2
        few = [math.ceil(n_first), math.ceil(n_first * sizes[1] / sizes[0])]
        assert share(few, 400) < low

    def test_correlation(self):
        n = 300
        plan = fa.minimum_detectable_gap(
            y_score=np.random.default_rng(4).standard_normal(n),
            sensitive_features=np.random.default_rng(5).standard_normal(n),
            metric="pearson",
        )

        def audit(rng):
            x = rng.standard_normal(n)
            return {
                "y_score": plan.gap * x + math.sqrt(1 - plan.gap**2) * rng.standard_normal(n),
                "sensitive_features": x,
            }

        assert self.rejected(audit, 1_000, metric="pearson") == pytest.approx(0.8, abs=0.06)
