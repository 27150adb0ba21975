"""Intervals, equivalence and joint tests within strata of the user's."""

import math

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, NotMeasurableError

from ..reference import within_strata
from .test_designs import columns_of, design_of
from .test_strata import DESIGNS, OTHERS, RATIOS, make, slow_gap

SHARES = ("selection_rate", "true_positive_rate")


def given(rows, metric, design="plain"):
    """Return the arguments of a call within strata."""
    columns = {name: rows[name] for name in columns_of(metric)}
    more = {} if design == "plain" else design_of(rows, design)
    return {
        **columns,
        **more,
        "sensitive_features": rows["group"],
        "strata": rows["stratum"],
        "metric": metric,
        "rng": 1,
    }


def tables(rows, metric):
    """Return hits and rows by stratum and group."""
    inside = np.ones(len(rows["group"]), bool) if metric == SHARES[0] else rows["y_true"] == 1
    hits, counts = [], []
    for stratum in np.unique(rows["stratum"]):
        at = [inside & (rows["stratum"] == stratum) & (rows["group"] == name) for name in "ab"]
        counts.append([int(part.sum()) for part in at])
        hits.append([int(rows["y_pred"][part].sum()) for part in at])
    return hits, counts


class TestArguments:
    @pytest.mark.parametrize("call", [fa.intervals, fa.equivalence_test])
    def test_methods(self, call):
        rows = make(0)
        margin = {"margin": 0.1} if call is fa.equivalence_test else {}
        with pytest.raises(ArgumentError, match="'score' for selection_rate, within strata of yo"):
            call(**given(rows, "selection_rate"), method="score", **margin)
        with pytest.raises(ArgumentError, match="'studentized' for f1, within strata of your own"):
            call(**given(rows, "f1"), method="studentized", **margin)
        with pytest.raises(ArgumentError, match=r"'mantel-haenszel' for f1.*accepted: 'auto', 'd"):
            call(**given(rows, "f1"), method="mantel-haenszel", **margin)
        without = {**given(rows, "selection_rate"), "strata": None}
        with pytest.raises(ArgumentError, match="selection_rate, which has no strata, or is not"):
            call(**without, method="mantel-haenszel", **margin)
        with pytest.raises(ArgumentError, match="components"):
            call(**{**given(rows, "tpr"), "metric": "equalized_odds"}, **margin)

    def test_ratios(self):
        rows = make(0)
        with pytest.raises(ArgumentError, match="scale is 'ratio', but within strata"):
            fa.equivalence_test(**given(rows, "f1"), margin=0.8, scale="ratio")

    def test_margins(self):
        with pytest.raises(ArgumentError, match="margin is 1; accepted: below 1 for proportions"):
            fa.equivalence_test(**given(make(0), "tpr"), margin=1)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("metric", [*RATIOS, *OTHERS])
class TestAgainstTheTest:
    """The answers of `permutation_test` within strata and without them."""

    def test_gaps_and_values(self, metric, design):
        rows = make(1)
        one = given(rows, metric, design)
        result = fa.intervals(**one, n_resamples=199)
        tested = fa.permutation_test(**one, n_resamples=199)
        slow = slow_gap(metric, rows, design)
        assert result.estimate == pytest.approx(slow.difference, rel=1e-9)
        assert result.estimate == tested.estimate
        assert result.standard_error == tested.standard_error
        if result.method != "inversion":  # whose replicates are others
            assert result.confidence_interval == tested.confidence_interval
        assert result.method == tested.interval
        usual = fa.intervals(**{**one, "strata": None}, n_resamples=199)
        assert result.values == usual.values
        assert bool(result.ratios) == fa.metrics.get(metric).is_proportion
        assert result.strata == ("stratum",)
        assert "gap within equal stratum" in result.summary()
        words = "gaps and ratios are those within" if result.ratios else "ratios are not given"
        assert any(words in note for note in result.warnings)

    def test_margins(self, metric, design):
        rows = make(1)
        one = given(rows, metric, design)
        result = fa.equivalence_test(**one, n_resamples=199, margin=0.3)
        assert "gap within equal stratum" in result.summary()
        if result.method == "mantel-haenszel":
            expected = within_strata.equivalence(*tables(rows, metric), 0.3)
        elif result.method == "delta":
            slow = slow_gap(metric, rows, design)
            z = [(slow.difference + end) / math.sqrt(slow.variance) for end in (0.3, -0.3)]
            expected = max(stats.norm.sf(z[0]), stats.norm.cdf(z[1]))
        else:
            assert result.method == "inversion"
            # A test at 0 that is not rejected by replicates is not one at the margin.
            near = fa.equivalence_test(**one, n_resamples=199, margin=1e-9)
            assert near.pvalue > 0.3
            return
        assert result.pvalue == pytest.approx(expected, rel=1e-9)


class TestProperties:
    def test_three_groups_hold_together(self):
        rows = make(2, groups="abc", n_clusters=180)
        result = fa.intervals(**given(rows, "selection_rate"))
        for alone, together in zip(result.gaps, result.simultaneous, strict=True):
            assert alone.estimate == together.estimate
            assert together.confidence_interval[0] < alone.confidence_interval[0]
        tested = fa.permutation_test(**given(rows, "selection_rate"), n_resamples=99)
        assert result.largest_gap.estimate == tested.estimate
        assert result.largest_gap.confidence_interval == tested.confidence_interval

    def test_one_stratum_is_none(self):
        rows = make(3)
        rows["stratum"] = np.zeros(len(rows["group"]), int)
        one = given(rows, "mean_prediction")
        within, without = (
            fa.intervals(**{**one, "strata": strata}, n_resamples=199)
            for strata in (rows["stratum"], None)
        )
        assert within.estimate == pytest.approx(without.estimate, rel=1e-12)
        assert within.confidence_interval == pytest.approx(without.confidence_interval, rel=1e-6)
        one = given(rows, "tpr")
        assert fa.intervals(**one).gaps == fa.intervals(**{**one, "strata": None}).gaps

    def test_groups_change_places(self):
        rows = make(4)
        one = given(rows, "tpr")
        first = fa.equivalence_test(**one, margin=0.2)
        second = fa.equivalence_test(**one, margin=0.2, groups=["b", "a"])
        assert second.pvalue == pytest.approx(first.pvalue, rel=1e-12)
        assert second.estimate == pytest.approx(-first.estimate, rel=1e-12)

    def test_what_is_shown_is_in_the_interval(self):
        """Sato's variance at the margin is never taken below that at the estimate."""
        rng = np.random.default_rng(5)
        for _ in range(50):
            rows = make(int(rng.integers(1 << 30)))
            result = fa.equivalence_test(**given(rows, "tpr"), margin=float(rng.uniform(0.1, 0.4)))
            low, high = result.confidence_interval
            if result.pvalue <= 0.05:
                assert -result.margin < low < high < result.margin

    def test_nothing_varies(self):
        rows = make(6)
        rows["y_pred"] = np.zeros(len(rows["group"]), int)
        result = fa.equivalence_test(**given(rows, "selection_rate"), margin=0.3)
        assert result.pvalue == 1
        assert "nothing is shown about their gap" in result.warnings[-1]

    @pytest.mark.parametrize("metric", ["selection_rate", "auc", "mean_prediction"])
    def test_groups_that_share_no_stratum(self, metric):
        rows = make(7)
        rows["stratum"] = (rows["group"] == "a").astype(int)
        one = given(rows, metric)
        for call, margin in ((fa.intervals, {}), (fa.equivalence_test, {"margin": 0.3})):
            with pytest.raises(NotMeasurableError, match="nothing is compared within strata"):
                call(**one, n_resamples=99, **margin)

    def test_one_row_alone_has_no_spread(self):
        """Of one stratum with a group of one row nothing is shown: p was 0 without an error."""
        rng = np.random.default_rng(8)
        n = 200
        group = np.array(["a"] * 100 + ["b"] * 100)
        stratum = np.where(np.arange(n) == 0, 1, 0)
        stratum[150:] = 1
        result = fa.equivalence_test(
            rng.integers(0, 2, n),
            np.ones(n, int),
            sensitive_features=group,
            strata=stratum,
            metric="f1",
            margin=0.9,
        )
        assert result.pvalue == 1

    def test_cells_bring_their_strata(self):
        rows = make(9)
        columns = {name: rows[name] for name in ("y_true", "y_pred")}
        cells = fa.tabulate(
            **columns, sensitive_features={"g": rows["group"]}, strata={"s": rows["stratum"]}
        )
        one = given(rows, "tpr")
        within = fa.intervals(data=cells, metric="tpr", strata="auto")
        assert within.confidence_interval == fa.intervals(**one).confidence_interval
        without = fa.intervals(data=cells, metric="tpr")
        assert without.strata == ()
        assert without.estimate == fa.intervals(**{**one, "strata": None}).estimate

    def test_callables(self):
        rows = make(10)
        share = fa.metrics.callable_metric("share", lambda y, p, w: p.mean(), n_samples=40)
        one = {**given(rows, "tpr"), "metric": share}
        result = fa.intervals(**one)
        assert result.method == "bootstrap-se"
        plain = fa.intervals(**given(rows, "selection_rate"))
        # Strata of one row in a group take no part in that of a callable.
        assert result.estimate == pytest.approx(plain.estimate, abs=0.05)


class TestJoint:
    """Joint criteria: the quadratic form of contrasts within strata."""

    def test_statistic(self):
        """Separate proportions: the sum of the squares of the statistics of each."""
        rows = make(11)
        one = {**given(rows, "tpr"), "n_resamples": 99}
        joint = fa.permutation_test(**{**one, "metric": "equalized_odds"})
        parts = [fa.permutation_test(**{**one, "metric": name}) for name in ("tpr", "fpr")]
        expected = sum(part.statistic**2 for part in parts)
        assert joint.statistic == pytest.approx(expected, rel=1e-9)

    def test_correlated_components(self):
        """d' V^-1 d with the covariances of each stratum and group, of complete strata."""
        rng = np.random.default_rng(12)
        n = 600
        rows = {
            "group": rng.choice(["a", "b"], n),
            "stratum": rng.integers(0, 3, n),
            "y_true": rng.integers(0, 2, n),
            "y_pred": rng.integers(0, 2, n),
        }
        names = ["true_positive_rate", "positive_predictive_value"]
        metric = fa.metrics.joint_metric("both", names)
        classes = 2 * (1 - rows["y_pred"]) + (1 - rows["y_true"])
        strata = [
            [
                np.bincount(
                    classes[(rows["group"] == name) & (rows["stratum"] == stratum)], minlength=4
                ).tolist()
                for name in "ab"
            ]
            for stratum in range(3)
        ]
        expected = within_strata.joint_statistic(strata, names)
        result = fa.permutation_test(
            rows["y_true"],
            rows["y_pred"],
            sensitive_features=rows["group"],
            strata=rows["stratum"],
            metric=metric,
            n_resamples=99,
            rng=1,
        )
        assert result.statistic == pytest.approx(expected, rel=1e-9)


class TestPlans:
    """The standard error within strata, times the root of rows over rows."""

    def test_arguments(self):
        rows = given(make(0), "tpr")
        del rows["rng"]
        with pytest.raises(ArgumentTypeError, match="strata needs data, from which"):
            fa.sample_size(0.1, metric="tpr", value=0.5, strata=[0, 1])
        with pytest.raises(ArgumentTypeError, match="group_sizes cannot be combined with strata"):
            fa.minimum_detectable_gap(**rows, group_sizes=[100, 100])
        apart = {**rows, "strata": (rows["sensitive_features"] == "a").astype(int)}
        with pytest.raises(NotMeasurableError, match="nothing is compared within strata"):
            fa.minimum_detectable_gap(**apart)

    @pytest.mark.parametrize("design", DESIGNS)
    @pytest.mark.parametrize("metric", ["selection_rate", "mean_prediction", "f1", "auc"])
    def test_standard_errors(self, metric, design):
        rows = given(make(1), metric, design)
        tested = fa.permutation_test(**rows, n_resamples=99)
        del rows["rng"]
        plan = fa.minimum_detectable_gap(**rows)
        assert plan.standard_error == pytest.approx(tested.standard_error, rel=1e-12)
        z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
        assert plan.gap == pytest.approx(z * tested.standard_error, rel=1e-4)
        assert "a gap within equal stratum of" in str(plan)
        larger = fa.sample_size(plan.gap / 2, **rows)
        n = sum(larger.group_sizes.values())
        assert n == pytest.approx(4 * len(rows["sensitive_features"]), rel=0.01)

    def test_the_hardest_of_several_pairs(self):
        rows = given(make(2, groups="abc", n_clusters=180), "selection_rate")
        pairs = fa.permutation_test(**rows, n_resamples=99).comparisons
        del rows["rng"]
        plan = fa.minimum_detectable_gap(**rows)
        assert plan.n_comparisons == 3
        hardest = max(pair.standard_error for pair in pairs)
        assert plan.standard_error == pytest.approx(hardest, rel=1e-12)
        equal = fa.minimum_detectable_gap(**rows, goal="equivalence")
        assert "that no gap within equal stratum in 3 pairs is as large" in str(equal)

    def test_cells_without_being_asked(self):
        rows = make(9)
        cells = fa.tabulate(
            y_true=rows["y_true"],
            y_pred=rows["y_pred"],
            sensitive_features={"g": rows["group"]},
            strata={"s": rows["stratum"]},
        )
        one = given(rows, "tpr")
        del one["rng"]
        within = fa.minimum_detectable_gap(data=cells, metric="tpr", strata="auto")
        assert within.gap == fa.minimum_detectable_gap(**one).gap
        without = fa.minimum_detectable_gap(data=cells, metric="tpr")
        assert without.gap == fa.minimum_detectable_gap(**{**one, "strata": None}).gap


SHARE = np.array([0.2, 0.5, 0.8])


def drawn(metric, rng, n, gap):
    """Rows of three strata in which a group has more and more rows; the gap is in each of them."""
    stratum = rng.integers(0, 3, n)
    is_first = rng.random(n) < SHARE[stratum]

    def level(*of_stratum):
        return np.array(of_stratum)[stratum] + gap * is_first

    if metric == "selection_rate":
        columns = {"y_pred": rng.random(n) < level(0.2, 0.5, 0.75)}
    elif metric == "f1":
        # tp + fp / 2 + fn / 2 has one probability in a stratum.
        rate, f1 = np.array([0.6, 0.7, 0.8])[stratum], level(0.4, 0.55, 0.7)
        hits = rate * f1 / (2 - f1)
        each = (rate - hits) / 2
        u = rng.random(n)
        false_alarm, miss = (u > hits) & (u <= hits + each), (u > hits + each) & (u <= rate)
        columns = {"y_true": (u <= hits) | miss, "y_pred": (u <= hits) | false_alarm}
    elif metric == "auc":
        label = rng.random(n) < np.array([0.3, 0.5, 0.7])[stratum]
        distance = math.sqrt(2) * stats.norm.ppf(level(0.6, 0.7, 0.8))
        score = stats.norm.cdf(rng.normal(size=n) + distance * label + stratum - 2)
        columns = {"y_true": label, "y_score": score}
    else:
        columns = {"y_score": 0.4 * rng.beta(4, 4, n) + level(0.1, 0.25, 0.4)}
    return {**columns, "sensitive_features": is_first, "groups": [True, False]}, stratum


def band(rate, n):
    """The rates that n audits show with probability 1 - 2e-6 when the true rate is `rate`."""
    law = stats.binom(n, rate)
    return law.ppf(1e-6) / n, law.isf(1e-6) / n


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("metric", "n", "gap", "n_audits"),
    [
        ("selection_rate", 1_000, -0.15, 1_200),
        ("f1", 1_500, -0.1, 1_200),
        ("auc", 1_500, -0.1, 600),
        ("mean_prediction", 200, -0.1, 400),
    ],
)
class TestCalibration:
    """A gap at the margin within every stratum; the groups are in strata of other rates."""

    def results(self, call, metric, n, gap, n_audits, within=True, **options):
        rng = np.random.default_rng(13)
        for audit in range(n_audits):
            columns, stratum = drawn(metric, rng, n, gap)
            strata = stratum if within else None
            more = {"n_resamples": 199, "rng": audit, **options}
            yield call(**columns, metric=metric, strata=strata, **more)

    def test_equivalence(self, metric, n, gap, n_audits):
        def shown(n_audits, within):
            found = self.results(
                fa.equivalence_test, metric, n, gap, n_audits, within, margin=abs(gap)
            )
            return np.mean([result.pvalue <= 0.05 for result in found])

        low, high = band(0.05, n_audits)
        assert low <= shown(n_audits, True) <= high
        # All rows together have a smaller gap: in the better strata are more of the first group.
        assert shown(n_audits // 4, False) > band(0.05, n_audits // 4)[1]

    def test_intervals(self, metric, n, gap, n_audits):
        def covered(n_audits, within):
            found = self.results(fa.intervals, metric, n, gap, n_audits, within)
            limits = [result.confidence_interval for result in found]
            return np.mean([low <= gap <= high for low, high in limits])

        low, high = band(0.95, n_audits)
        assert low <= covered(n_audits, True) <= high
        assert covered(n_audits // 4, False) < band(0.95, n_audits // 4)[0]


@pytest.mark.calibration
@pytest.mark.parametrize("metric", ["equalized_odds", "calibration_error"])
def test_size_of_joint_criteria_and_calibration_errors(metric):
    """Equal groups within strata; ignoring them rejects."""
    rng = np.random.default_rng(14)
    n_audits = 500

    def pvalue(audit, within):
        n = 400
        stratum = rng.integers(0, 3, n)
        group = rng.random(n) < SHARE[stratum]
        if metric == "equalized_odds":
            label = rng.random(n) < 0.5
            rate = np.array([0.2, 0.4, 0.6])[stratum] + 0.2 * label
            columns = {"y_true": label, "y_pred": rng.random(n) < rate}
        else:
            score = rng.integers(1, 5, n) / 5
            label = rng.random(n) < score * np.array([0.5, 0.8, 1.0])[stratum]
            columns = {"y_true": label, "y_score": score}
        return fa.permutation_test(
            **columns,
            sensitive_features=group,
            metric=metric,
            strata=stratum if within else "auto",
            n_resamples=199,
            rng=audit,
        ).pvalue

    low, high = band(0.05, n_audits)
    assert low <= np.mean([pvalue(i, True) <= 0.05 for i in range(n_audits)]) <= high
    broken = np.mean([pvalue(i, False) <= 0.05 for i in range(n_audits // 4)])
    assert broken > band(0.05, n_audits // 4)[1]


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("metric", "n", "gap"),
    [("f1", 1_500, 0.08), ("mean_prediction", 150, 0.04), ("auc", 1_500, 0.08)],
)
def test_power_is_as_planned(metric, n, gap):
    """From many rows of the same kind; the plan for all rows together promises something else."""
    columns, strata = drawn(metric, np.random.default_rng(15), 20 * n, gap)
    plans = [
        fa.minimum_detectable_gap(**columns, metric=metric, strata=value)
        for value in (strata, None)
    ]
    within, without = (plan.curve([gap], [n])["power"][0] for plan in plans)
    rng, n_audits = np.random.default_rng(16), 400
    found = 0
    for audit in range(n_audits):
        columns, strata = drawn(metric, rng, n, gap)
        result = fa.permutation_test(
            **columns, metric=metric, strata=strata, n_resamples=199, rng=audit
        )
        found += result.pvalue <= 0.05
    low, high = band(within, n_audits)
    assert low <= found / n_audits <= high
    low, high = band(without, n_audits)
    assert not low <= found / n_audits <= high
