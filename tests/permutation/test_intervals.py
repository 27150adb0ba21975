"""Intervals of values, gaps, ratios and the largest gap; equivalence tests."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy import integrate, optimize, stats

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.inference import intervals as formulas
from fairaudit_rs.inference import proportions
from fairaudit_rs.inference.proportions import farrington_manning

from ..children import outputs_of_instruction_sets
from ..reference import inference, means_intervals, permutation, row_oracles, rows
from .posing import posed

NAN = math.nan
METHODS = ("score", "studentized", "delta", "basic", "percentile")
PROBABILITIES = {"a": (0.35, 0.15, 0.1, 0.4), "b": (0.25, 0.2, 0.2, 0.35)}
"""tp, fp, fn, tn of each group in simulated audits."""


def make(seed=0, n=300, groups="ab", levels=None):
    """(y_true, y_pred, score, group)."""
    rng = np.random.default_rng(seed)
    y_true = (rng.random(n) < 0.4).astype(int)
    score = np.clip(0.3 * y_true + 0.7 * rng.random(n), 0.01, 0.99)
    if levels:
        score = np.round(score * levels) / levels
    y_pred = (score > 0.5).astype(int)
    return y_true, y_pred, score, rng.choice(list(groups), n)


def intervals_of(data, metric, **options):
    y_true, y_pred, score, group = data
    defaults = {"sensitive_features": group, "n_resamples": 199, "rng": 1}
    return fa.intervals(y_true, y_pred, y_score=score, metric=metric, **{**defaults, **options})


def equivalence_of(data, metric, margin=0.1, **options):
    y_true, y_pred, score, group = data
    defaults = {"sensitive_features": group, "n_resamples": 199, "rng": 1}
    return fa.equivalence_test(
        y_true, y_pred, y_score=score, metric=metric, margin=margin, **{**defaults, **options}
    )


def decisions(*counts):
    """(y_pred, group) of groups "a", "b", ... with (selected, rows) each."""
    y_pred = [np.arange(n) < x for x, n in counts]
    names = [np.repeat("abcdefgh"[i], n) for i, (_, n) in enumerate(counts)]
    return np.concatenate(y_pred).astype(int), np.concatenate(names)


def selection(*counts, **options):
    y_pred, group = decisions(*counts)
    return fa.intervals(
        y_pred=y_pred, sensitive_features=group, metric="selection_rate", **{"rng": 1, **options}
    )


def equivalent(*counts, margin, **options):
    y_pred, group = decisions(*counts)
    return fa.equivalence_test(
        y_pred=y_pred,
        sensitive_features=group,
        metric="selection_rate",
        margin=margin,
        **{"rng": 1, **options},
    )


def drawn(metric, n_resamples=199, seed=1, **columns):
    """The problem of a public call and its bootstrap replicates."""
    problem = posed(metric, seed, **columns)
    return problem, problem.bootstrap(_native.Draws(n_resamples, seed=seed), _native.Call())


def spread_of_f1(theta):
    """c, where v = c / n: of theta = 2q / (1 + q), q the true ones among n positive in any way."""
    q = theta / (2 - theta)
    return (q * (2 - 2 * theta) ** 2 + (1 - q) * theta**2) / (1 + q) ** 2


def median_error(y_true, value, weight):
    return float(np.median(np.abs(y_true - value)))


def rate_among_positives(y_true, value, weight):
    return float(value[y_true == 1].mean()) if np.any(y_true == 1) else NAN


MEDIAN = fa.metrics.callable_metric("median_error", median_error, columns=("y_true", "y_score"))
RATE = fa.metrics.callable_metric("my_rate", rate_among_positives)


class TestArguments:
    @pytest.mark.parametrize("call", [intervals_of, equivalence_of])
    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"method": "bca"}, errors.ArgumentError, r"method is 'bca'; accepted: 'auto', 'score"),
            ({"method": None}, errors.ArgumentError, "method is None; accepted: 'auto'"),
            ({"method": ["score"]}, errors.ArgumentError, r"method is \['score'\]; accepted"),
            ({"n_resamples": 0}, errors.ArgumentError, "n_resamples is 0; accepted: a whole num"),
            ({"n_resamples": -1}, errors.ArgumentError, "n_resamples is -1; accepted"),
            ({"n_resamples": 9.5}, errors.ArgumentTypeError, "n_resamples is 9.5; accepted"),
            ({"n_resamples": NAN}, errors.ArgumentTypeError, "n_resamples is nan; accepted"),
            ({"n_resamples": 10**9}, errors.ArgumentError, "n_resamples is 1,000,000,000; acc"),
            ({"confidence_level": 95}, errors.ArgumentError, "confidence_level is 95; accepted"),
            ({"confidence_level": 0}, errors.ArgumentError, "confidence_level is 0; accepted"),
            ({"confidence_level": -0.5}, errors.ArgumentError, "confidence_level is -0.5; acc"),
            ({"confidence_level": NAN}, errors.ArgumentError, "confidence_level is nan; accepted"),
            ({"confidence_level": "x"}, errors.ArgumentTypeError, "confidence_level is 'x'; acc"),
            ({"confidence_level": True}, errors.ArgumentTypeError, "confidence_level is True; "),
            ({"n_threads": 0}, errors.ArgumentError, "n_threads is 0; accepted"),
            ({"n_threads": "2"}, errors.ArgumentTypeError, "n_threads is '2'; accepted"),
            ({"rng": -1}, errors.ArgumentError, "rng is -1; accepted"),
            ({"rng": 0.5}, errors.ArgumentTypeError, "rng is a float; accepted"),
            ({"random_state": 3}, errors.ArgumentTypeError, "rng and random_state are two names"),
            ({"progress": 3}, errors.ArgumentTypeError, "progress is 3; accepted"),
            ({"groups": ["a"]}, errors.DataError, "only one group"),
            ({"groups": ["a", "a"]}, errors.ArgumentError, "a group is named twice"),
            ({"groups": ["a", "z"]}, errors.DataError, "groups names 'z', which is no group"),
            ({"groups": "ab"}, errors.ArgumentTypeError, "groups is 'ab'; accepted: a sequence"),
            ({"reference": "z"}, errors.DataError, "reference names 'z', which is no group"),
            ({"score_bins": 5}, errors.ArgumentTypeError, "score_bins applies to calibration_err"),
            ({"sensitive_features": []}, errors.FairAuditError, "no rows|differ in length"),
            ({"sensitive_features": ["a"] * 300}, errors.DataError, "only one group"),
            ({"sensitive_features": [None] * 300}, errors.DataError, "no group"),
            ({"sample_weight": [-1.0] * 300}, errors.DataError, "sample_weight is -1 in row 0"),
            ({"sample_weight": [NAN] * 300}, errors.DataError, "sample_weight is nan in row 0"),
            ({"sample_weight": [0.0] * 300}, errors.DataError, "sample_weight is 0 in every row"),
            ({"sample_weight": [1.0] * 3}, errors.DataError, "columns differ in length"),
            ({"clusters": np.zeros(300)}, errors.DataError, "rows in more than one group"),
            ({"pos_label": "yes"}, errors.ArgumentError, "pos_label is 'yes', which does not occ"),
        ],
    )
    def test_wrong_values(self, call, options, error, message):
        with pytest.raises(error, match=message):
            call(make(), "f1", **options)

    @pytest.mark.parametrize("call", [intervals_of, equivalence_of])
    @pytest.mark.parametrize(
        ("metric", "message"),
        [
            ("equalized_odds", "metric is 'equalized_odds', which has no one value"),
            ("calibration_error", "metric is 'calibration_error', which is biased upwards"),
            ("f2", "metric is 'f2'"),
            (None, "metric is None"),
        ],
    )
    def test_metrics_without_intervals(self, call, metric, message):
        with pytest.raises(errors.FairAuditError, match=message):
            call(make(), metric)

    @pytest.mark.parametrize("call", [intervals_of, equivalence_of])
    @pytest.mark.parametrize("metric", ["pearson", "residual_spearman"])
    def test_correlations(self, call, metric):
        data = make()
        attribute = np.random.default_rng(0).random(300)
        with pytest.raises(errors.ArgumentError, match=f"metric is '{metric}', which has no group"):
            call(data, metric, sensitive_features=attribute)

    @pytest.mark.parametrize("call", [intervals_of, equivalence_of])
    @pytest.mark.parametrize("metric", ["f1", "auc", "mean_squared_error", MEDIAN])
    def test_score_is_for_proportions(self, call, metric):
        with pytest.raises(errors.ArgumentError, match=r"method is 'score' for .* not a propor"):
            call(make(), metric, method="score")

    @pytest.mark.parametrize("call", [intervals_of, equivalence_of])
    def test_score_is_for_rows_that_count_the_same(self, call):
        with pytest.raises(errors.ArgumentError, match="method is 'score' for true_positive_rate"):
            call(make(), "tpr", method="score", sample_weight=np.arange(300) % 3)

    def test_the_message_names_methods_that_the_function_takes(self):
        with pytest.raises(errors.ArgumentError, match="method is 'score'") as caught:
            equivalence_of(make(), "f1", method="score")
        assert "percentile" not in str(caught.value)  # which equivalence_test refuses

    @pytest.mark.parametrize("call", [intervals_of, equivalence_of])
    def test_bootstrap_t_of_a_callable(self, call):
        with pytest.raises(errors.ArgumentError, match="method is 'studentized' for median_error"):
            call(make(), MEDIAN, method="studentized")

    @pytest.mark.parametrize("call", [intervals_of, equivalence_of])
    def test_columns_that_are_needed(self, call):
        y_true, y_pred, score, group = make()
        with pytest.raises(errors.ArgumentError, match="y_true is None, but true_positive_rate"):
            call((None, y_pred, score, group), "tpr")
        with pytest.raises(errors.ArgumentError, match="y_score is None, but auc needs scores"):
            call((y_true, y_pred, None, group), "auc")
        with pytest.raises(errors.ArgumentTypeError, match="sensitive_features is missing"):
            call((y_true, y_pred, score, None), "tpr")

    @pytest.mark.parametrize("call", [intervals_of, equivalence_of])
    @pytest.mark.parametrize("method", ["auto", "studentized", "delta"])
    def test_a_group_without_positives(self, call, method):
        y_true, y_pred, score, group = make()
        y_true[group == "b"] = 0
        with pytest.raises(errors.NotMeasurableError, match="'b' has 0 rows with a positive label"):
            call((y_true, y_pred, score, group), "tpr", method=method)
        if method != "score":
            with pytest.raises(errors.NotMeasurableError, match="'b' has 0 rows with a positive"):
                call((y_true, y_pred, score, group), "auc", method=method)

    @pytest.mark.parametrize("call", [intervals_of, equivalence_of])
    def test_values_that_are_missing(self, call):
        y_true, y_pred, score, group = make()
        for bad in (NAN, math.inf):
            wrong = score.copy()
            wrong[7] = bad
            with pytest.raises(errors.DataError, match=f"y_score is {bad:g} in row 7"):
                call((y_true, y_pred, wrong, group), "mse")
        with pytest.raises(errors.DataError, match="y_true holds 0, 1, 2; acc"):
            call((y_true + 2 * (np.arange(300) == 5), y_pred, score, group), "tpr")

    @pytest.mark.parametrize("call", [intervals_of, equivalence_of])
    def test_cells_hold_no_rows(self, call):
        y_true, y_pred, _, group = make()
        cells = fa.tabulate(y_true=y_true, y_pred=y_pred, sensitive_features=group)
        function = {"intervals_of": fa.intervals, "equivalence_of": fa.equivalence_test}[
            call.__name__
        ]
        margin = {} if function is fa.intervals else {"margin": 0.1}
        for options in ({"clusters": "c"}, {"sample_weight": "w"}):
            with pytest.raises(errors.ArgumentTypeError, match="data is a Cells object, which"):
                function(data=cells, metric="tpr", **margin, **options)
        with pytest.raises(errors.ArgumentTypeError, match="y_true cannot be combined with data"):
            function(y_true, data=cells, metric="tpr", **margin)
        with pytest.raises(errors.ArgumentTypeError, match="mean_squared_error needs the rows"):
            function(data=cells, metric="mse", **margin)

    @pytest.mark.parametrize(
        ("margin", "scale", "message"),
        [
            (0, "difference", "margin is 0; accepted: a number above 0"),
            (-0.1, "difference", "margin is -0.1; accepted: a number above 0"),
            (NAN, "difference", "margin is nan; accepted"),
            (math.inf, "difference", "margin is inf; accepted"),
            ("0.1", "difference", "margin is '0.1'; accepted"),
            (None, "difference", "margin is None; accepted"),
            (True, "difference", "margin is True; accepted"),
            ([0.1], "difference", r"margin is \[0.1\]; accepted"),
            (1.0, "difference", "margin is 1; accepted: below 1 for proportions"),
            (1, "ratio", "margin is 1; accepted: a number between 0 and 1"),
            (1.25, "ratio", "margin is 1.25; accepted: a number between 0 and 1"),
            (0.0, "ratio", "margin is 0; accepted: a number between 0 and 1"),
            (0.8, "odds", "scale is 'odds'; accepted: 'difference', 'ratio'"),
        ],
    )
    def test_margins(self, margin, scale, message):
        with pytest.raises(errors.FairAuditError, match=message):
            equivalence_of(make(), "tpr", margin=margin, scale=scale)

    def test_level_of_an_equivalence_test(self):
        with pytest.raises(errors.ArgumentError, match=r"confidence_level is 0.5; accepted: above"):
            equivalence_of(make(), "tpr", confidence_level=0.5)

    @pytest.mark.parametrize("method", ["basic", "percentile"])
    def test_methods_that_give_no_test(self, method):
        with pytest.raises(errors.ArgumentError, match=f"method is '{method}'; accepted"):
            equivalence_of(make(), "f1", method=method)

    def test_margin_is_needed(self):
        with pytest.raises(TypeError, match="margin"):
            fa.equivalence_test(y_pred=[0, 1], sensitive_features=[0, 1], metric="selection_rate")

    @pytest.mark.parametrize("method", ["studentized", "basic", "percentile"])
    def test_too_few_replicates_for_the_level(self, method):
        """One replicate has no 2.5 % quantile: the interval must be refused, wide, or noted."""
        try:
            result = intervals_of(make(), "f1", method=method, n_resamples=1)
        except errors.ArgumentError as error:
            assert "n_resamples is 1" in str(error)  # noqa: PT017
        else:
            low, high = result.confidence_interval
            noted = any("replicate" in note for note in result.warnings)
            assert math.isnan(low) or math.isinf(high - low) or noted


class TestKnownValues:
    @pytest.mark.parametrize(
        ("x", "n", "low", "high"),
        [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611),
         (1, 29, 0.0061, 0.1718)],
    )  # fmt: skip
    def test_wilson(self, x, n, low, high):
        """Newcombe (1998), Statistics in Medicine 17, 857-872, table I, method 3."""
        found = proportions.wilson_interval(x / n, n, _native.normal_quantile(0.975))
        assert found == pytest.approx((low, high), abs=6e-5)
        of_group = selection((x, n), (3, 10)).values[0].confidence_interval
        assert of_group == pytest.approx((low, high), abs=6e-5)

    @pytest.mark.parametrize(
        ("first", "second", "low", "high"),
        [
            ((56, 70), (48, 80), 0.0524, 0.3339),
            ((9, 10), (3, 10), 0.1705, 0.8090),
            ((6, 7), (2, 7), 0.0582, 0.8062),
            ((5, 56), (0, 29), -0.0381, 0.1926),
            ((0, 10), (0, 20), -0.1611, 0.2775),
            ((0, 10), (0, 10), -0.2775, 0.2775),
            ((10, 10), (0, 20), 0.6791, 1),
            ((10, 10), (0, 10), 0.6075, 1),
        ],
    )
    def test_newcombe(self, first, second, low, high):
        """Newcombe (1998), Statistics in Medicine 17, 873-890, table II, method 10."""
        result = selection(first, second)
        assert (result.method, result.engine, result.n_resamples) == ("score", "formula", 0)
        assert result.confidence_interval == pytest.approx((low, high), abs=6e-5)
        mirrored = selection(second, first).confidence_interval
        assert mirrored == pytest.approx((-high, -low), abs=6e-5)

    def test_delta_by_hand(self):
        """.8 of 100 and 0.5 of 100: 1.959964 sqrt(0.16 / 100 + 0.25 / 100) = .125499."""
        result = selection((80, 100), (50, 100), method="delta")
        assert result.confidence_interval == pytest.approx((0.174501, 0.425499), abs=1e-6)
        assert result.standard_error == pytest.approx(math.sqrt(0.0041), rel=1e-12)
        # log 1.6 -+ 1.959964 sqrt(0.16 / 0.64 / 100 + 0.25 / 0.25 / 100)
        half = 1.959963984540054 * math.sqrt(0.0025 + 0.01)
        ratio = result.ratios[0]
        assert ratio.estimate == 1.6
        assert ratio.confidence_interval == pytest.approx(
            (1.6 * math.exp(-half), 1.6 * math.exp(half)), rel=1e-12
        )
        assert ratio.standard_error == pytest.approx(1.6 * math.sqrt(0.0125), rel=1e-12)

    def test_bonferroni_and_largest_gap_by_hand(self):
        """Three pairs: Newcombe at 1 - 0.05 / 3 each; the largest gap from these."""
        result = selection((80, 100), (50, 100), (45, 100))
        z = stats.norm.isf(0.05 / 6)
        pairs = [proportions.newcombe_interval(proportions.SampleProportion(p, 100),
        proportions.SampleProportion(q, 100), z)
                 for p, q in ((0.8, 0.5), (0.8, 0.45), (0.5, 0.45))]  # fmt: skip
        found = [entry.confidence_interval for entry in result.simultaneous]
        assert np.ravel(found) == pytest.approx(np.ravel(pairs), rel=1e-12)
        assert result.estimate == result.largest_gap.estimate == pytest.approx(0.35)
        low, high = result.confidence_interval
        assert (low, high) == pytest.approx((pairs[1][0], pairs[1][1]), rel=1e-12)

    @pytest.mark.parametrize("method", ["percentile", "studentized"])
    def test_replicates_of_two_groups_are_ordered_four_times(self, method, monkeypatch):
        """Two values, the gap, which is the simultaneous one too, and the ratio: both ends each."""
        asked = []
        quantiles = formulas.quantiles
        monkeypatch.setattr(
            formulas, "quantiles", lambda *given: asked.append(given) or quantiles(*given)
        )
        result = selection((80, 100), (50, 100), method=method, n_resamples=99)
        assert [len(levels) for _, levels in asked] == [2] * 4
        assert result.simultaneous[0].confidence_interval == result.gaps[0].confidence_interval

    def test_quantiles(self):
        values = np.array([3.0, 1.0, 2.0, 4.0])
        assert formulas.quantile(values, 0.5) == 2.5
        # Place level (n + 1): beyond the first and the last it lies anywhere.
        assert formulas.quantile(values, 0.2) == 1.0
        assert formulas.quantile(values, 0.19) == -math.inf
        assert formulas.quantile(values, 0.8) == 4.0
        assert formulas.quantile(np.array([5.0]), 0.975) == math.inf
        assert formulas.quantile(np.array([-math.inf, 0.0, math.inf]), 0.5) == 0.0
        assert formulas.quantile(np.array([-math.inf, 0.0, math.inf]), 0.4) == -math.inf
        assert formulas.tail_quantiles(np.array([0.0, NAN, 1.0]), 0.9) == (-math.inf, math.inf)

    @pytest.mark.parametrize("n", [1, 2, 5, 19, 40, 199])
    @pytest.mark.parametrize("level", [0.1, 0.5, 0.9, 0.95, 0.99, 1 - 1 / 20, 1 - 2 / 41])
    @pytest.mark.parametrize("undefined", [0, 0.02, 0.4, 1])
    def test_tails_are_quantiles_of_sorted_values(self, n, level, undefined):
        rng = np.random.default_rng(n)
        values = rng.normal(size=n).round(1)
        values[rng.random(n) < 0.1] = np.inf
        values[rng.random(n) < undefined] = NAN

        def quantile(place, beyond):
            ordered = [-np.inf, *sorted(np.where(np.isnan(values), beyond, values)), np.inf]
            k = math.floor(place * (1 + 1e-12))
            if not 1 <= place <= n:
                return -np.inf if place < 1 else np.inf
            low, high, share = ordered[k], ordered[min(k + 1, n)], max(place - k, 0)
            return low if share == 0 or low == high else (1 - share) * low + share * high

        half = (1 - level) / 2
        expected = quantile(half * (n + 1), -np.inf), quantile((1 - half) * (n + 1), np.inf)
        assert formulas.tail_quantiles(values, level) == expected

    def test_studentize(self):
        t = formulas.studentize(
            np.array([1.0, 1.0, 2.0, 0.0, 3.0, NAN, 3.0, 1.0]),
            1.0,
            np.array([4.0, 0.0, 0.0, 0.0, 4.0, 1.0, NAN, NAN]),
        )
        expected = [0, 0, math.inf, -math.inf, 1, NAN, NAN, NAN]
        assert np.array_equal(t, expected, equal_nan=True)

    def test_range_of_pairs(self):
        """Values 0, 0.3, 0.5 within 0.1: max - min of any values in the intervals."""
        assert formulas.range_of_pairs([(-0.4, -0.2), (-0.6, -0.4), (-0.3, -0.1)]) == (
            0.4,
            0.6,
        )
        assert formulas.range_of_pairs([(-0.1, 0.2)]) == (0.0, 0.2)
        low, high = formulas.range_of_pairs([(0.1, 0.2), (NAN, NAN)])
        assert math.isnan(low)
        assert math.isnan(high)

    def test_undefined_replicates_widen(self):
        replicates = np.r_[np.linspace(0, 1, 39), NAN]
        for method in ("studentized", "basic", "percentile"):
            low, high = formulas.bootstrap_interval(method, 0.5, 1.0, replicates, np.ones(40), 0.95)
            assert (low, high) == (-math.inf, math.inf)
        found = formulas.bootstrap_interval("basic", NAN, 1.0, replicates, np.ones(40), 0.95)
        assert np.isnan(found).all()
        bootstrap = formulas.Bootstrap(np.array([[1, 2], [NAN, 1], [0, 1], [0, NAN]]), None)
        assert bootstrap.undefined_share() == 0.5

    def test_farrington_manning_by_hand(self):
        """Equal groups, p = q = 0.5, margin d: by symmetry 0.5 +- d / 2 is most likely, hence
        z = -d / sqrt(2 (0.25 - d^2 / 4) / n): d = 0.2, n = 100: -0.2 / sqrt(0.0048)."""
        z = farrington_manning(50, 100, 50, 100, 0.2).plain
        assert z == pytest.approx(-0.2 / math.sqrt(0.0048), rel=1e-12)
        # At margin 0 it is the pooled test: (0.8 - 0.5) / sqrt(0.65 0.35 2 / 100).
        assert farrington_manning(80, 100, 50, 100, 0.0).plain == pytest.approx(
            0.3 / math.sqrt(0.65 * 0.35 * 0.02), rel=1e-12
        )

    def test_two_one_sided_tests_by_hand(self):
        """z = 0.2 / sqrt(0.0048), g = 2 (0.24 0.2 / 100^2) / (6 0.0048^1.5): u a little nearer
        0."""
        result = equivalent((50, 100), (50, 100), margin=0.2)
        z, g = 0.2 / math.sqrt(0.0048), 2 * 0.24 * 0.2 / 100**2 / (6 * 0.0048**1.5)
        u = (-1 + math.sqrt(1 + 4 * g * (g + z))) / (2 * g)
        assert u < z
        assert result.pvalue == pytest.approx(stats.norm.sf(u), rel=1e-9)
        assert (result.method, result.alternative, result.n_resamples) == (
            "score", "equivalence", 0,
        )  # fmt: skip
        assert "is shown to lie within -0.200 to 0.200 at the 5 % level" in result.summary()

    def test_size_of_farrington_manning_is_nearly_exact(self):
        """100 and 50 rows, all tables summed: the true size at the margin."""
        for p in (0.2, 0.5, 0.7):
            size = 0.0
            for x_a, x_b in itertools.product(range(101), range(51)):
                both = [farrington_manning(x_a, 100, x_b, 50, m) for m in (-0.25, 0.25)]
                if min(both[0]) >= 1.6448536 and max(both[1]) <= -1.6448536:
                    size += stats.binom.pmf(x_a, 100, p + 0.25) * stats.binom.pmf(x_b, 50, p)
            assert 0.03 < size < 0.056

    def test_what_is_certain_is_not_shown(self):
        """Two rows in each group, all classified right: no interval, and no proof either."""
        data = (np.ones(4, int), np.ones(4, int), None, np.array(list("aabb")))
        for metric, method in (("f1", "auto"), ("f1", "delta"), ("tpr", "studentized")):
            result = equivalence_of(data, metric, margin=0.01, method=method)
            low, high = result.comparisons[0].confidence_interval
            within = low >= -0.01 and high <= 0.01
            assert (result.pvalue <= 0.05) == within, (metric, method, result.pvalue)

    def test_no_standard_error_is_no_proof(self):
        """A callable that is undefined in some bootstrap samples has no standard error."""
        y_true = np.array([1, 1, 0, 0, 0, 0, 0] * 2)
        y_pred = np.array([1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0])
        data = (y_true, y_pred, None, np.repeat(["a", "b"], 7))
        result = equivalence_of(data, RATE, margin=0.01)
        assert not result.pvalue <= 0.05
        shown = intervals_of(data, RATE)
        assert math.isnan(shown.standard_error)
        assert shown.warnings  # "NaN with a reason among the warnings when it has none"

    @pytest.mark.parametrize("metric", ["tpr", "f1", "mse"])
    def test_one_cluster_tells_nothing_about_variation(self, metric):
        """The influences of one cluster sum to 0: its variance is rounding, not certainty."""
        data = make()
        clusters = np.where(data[3] == "a", 0, 1)
        try:
            result = intervals_of(data, metric, clusters=clusters)
            test = equivalence_of(data, metric, margin=0.5, clusters=clusters)
        except errors.NotMeasurableError as error:
            assert "1 cluster" in str(error)  # noqa: PT017
        else:
            low, high = result.confidence_interval
            assert math.isnan(low) or high - low > 1e-6, (low, high)
            assert not test.pvalue <= 0.05

    def test_intervals_stay_where_the_metric_can_be(self):
        """f1 lies in 0..1 and mcc in -1..1, also where few rows are classified wrong."""
        y_true, _, score, group = make()
        y_pred = np.where(np.arange(300) % 80 == 3, 1 - y_true, y_true)
        outside = []
        for metric, low, high in (("f1", 0, 1), ("balanced_accuracy", 0, 1), ("mcc", -1, 1)):
            for method in ("studentized", "delta", "basic"):
                result = intervals_of((y_true, y_pred, score, group), metric, method=method)
                outside += [
                    (metric, method, entry.confidence_interval)
                    for entry in result.values
                    if entry.confidence_interval[0] < low or entry.confidence_interval[1] > high
                ]
        assert not outside, f"{len(outside)} lie outside, such as {outside[0]}"

    def test_a_group_that_does_not_vary(self):
        result = selection((10, 10), (6, 10), method="studentized", n_resamples=99)
        assert math.isnan(result.values[0].confidence_interval[0])
        assert any("does not vary at all within a" in note for note in result.warnings)

    def test_percentile_intervals_are_noted(self):
        notes = intervals_of(make(), "f1", method="percentile").warnings
        assert any("percentile intervals are for comparison" in note for note in notes)

    def test_results_as_json_and_frames(self):
        result = selection((0, 20), (5, 20), (9, 30))
        content = result.to_dict()
        assert content["kind"] == "IntervalResult"
        assert content["ratios"][0]["confidence_interval"][0] == 0
        assert content["ratios"][0]["standard_error"] is None
        assert result.to_frame()["kind"].to_list() == (
            ["value"] * 3 + ["gap"] * 3 + ["ratio"] * 3 + ["simultaneous gap"] * 3 + ["largest gap"]
        )
        assert "the gap, the largest, of c (30 rows) and a (20 rows), is" in str(result)
        assert math.isnan(result.pvalue)
        test = equivalent((5, 20), (9, 30), margin=0.3)
        assert test.to_dict()["comparisons"][0]["pvalue"] == test.pvalue
        assert test.to_frame()["margin"].to_list() == [0.3]


class TestReference:
    def replicates(self, seed=0, n=199, k=4):
        """Values and variances of a made-up bootstrap of k groups, two of them unlike."""
        rng = np.random.default_rng(seed)
        values = rng.normal(np.linspace(0.3, 0.6, k), 0.05, (n, k))
        return values, 0.0025 * rng.chisquare(20, (n, k)) / 20

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
    def test_bootstrap_intervals(self, seed, level):
        values, variances = self.replicates(seed)
        gap, v = values[:, 0] - values[:, 1], variances[:, 0] + variances[:, 1]
        gap[:2], v[2:4] = -0.1, 0.0  # t* = 0 and infinite t*
        for method, expected in (
            ("studentized", rows.studentized_interval(-0.1, 0.0052, gap, v, level)),
            ("basic", rows.basic_interval(-0.1, gap, level)),
            ("percentile", rows.percentile_interval(gap, level)),
        ):
            found = formulas.bootstrap_interval(
                method, -0.1, math.sqrt(0.0052), gap.copy(), v, level
            )
            assert found == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("undefined", [0, 3])
    def test_simultaneous_intervals(self, seed, undefined):
        values, variances = self.replicates(seed)
        values[:undefined, 1] = NAN
        variances[:undefined, 1] = NAN
        theta, v = np.array([0.3, 0.45, 0.5, 0.6]), np.array([0.0025, 0.003, 0.002, 0.0025])
        pairs = list(itertools.combinations(range(4), 2))
        factor = formulas.simultaneous_factor(
            theta, v, formulas.Bootstrap(values, variances), pairs, 0.95
        )
        expected = inference.simultaneous_intervals(theta, v, values, variances, pairs)
        found = [
            (theta[i] - theta[j] - factor * h, theta[i] - theta[j] + factor * h)
            for i, j in pairs
            for h in [math.sqrt(v[i] + v[j])]
        ]
        assert np.ravel(found) == pytest.approx(np.ravel(expected), rel=1e-12)
        assert formulas.range_of_pairs(found) == pytest.approx(
            inference.largest_gap_interval(expected), rel=1e-12
        )

    @pytest.mark.parametrize("metric", ["f1", "mcc", "tpr", "auc", "mse", "log_loss"])
    @pytest.mark.parametrize("groups", ["ab", "abcd"])
    def test_public_intervals_from_the_same_replicates(self, metric, groups):
        y_true, y_pred, score, group = data = make(1, 500, groups)
        problem, bootstrap = drawn(
            metric, y_true=y_true, y_pred=y_pred, y_score=score, sensitive_features=group
        )
        theta = np.array([entry.value for entry in problem.evaluations])
        v = np.array([entry.variance for entry in problem.evaluations])
        values, variances = bootstrap.values, bootstrap.variances
        pairs = list(itertools.combinations(range(len(groups)), 2))
        for method in ("studentized", "basic", "percentile"):
            result = intervals_of(data, metric, method=method)
            for found, (i, j) in zip(result.gaps, pairs, strict=True):
                gap, of_gap = values[:, i] - values[:, j], variances[:, i] + variances[:, j]
                expected = {
                    "studentized": lambda gap, of_gap, i=i, j=j: rows.studentized_interval(
                        theta[i] - theta[j], v[i] + v[j], gap, of_gap
                    ),
                    "basic": lambda gap, _, i=i, j=j: rows.basic_interval(theta[i] - theta[j], gap),
                    "percentile": lambda gap, _: rows.percentile_interval(gap),
                }[method](gap, of_gap)
                assert found.confidence_interval == pytest.approx(expected, rel=1e-9)
        result = intervals_of(data, metric, method="studentized")
        for found, (i, j) in zip(result.ratios, pairs, strict=True):
            expected = inference.ratio_interval_studentized(
                theta[i], v[i], theta[j], v[j],
                values[:, i], variances[:, i], values[:, j], variances[:, j],
            )  # fmt: skip
            assert found.confidence_interval == pytest.approx(expected, rel=1e-9)
        if len(pairs) > 1:
            together = inference.simultaneous_intervals(theta, v, values, variances, pairs)
            found = [entry.confidence_interval for entry in result.simultaneous]
            assert np.ravel(found) == pytest.approx(np.ravel(together), rel=1e-9)
            assert result.confidence_interval == pytest.approx(
                inference.largest_gap_interval(together), rel=1e-9
            )

    @pytest.mark.parametrize("metric", ["f1", "tpr", "auc", "mse"])
    def test_delta_and_its_ratio(self, metric):
        y_true, y_pred, score, group = data = make(2)
        result = intervals_of(data, metric, method="delta")
        found = []
        for name in "ab":
            inside = group == name
            if metric == "auc":
                found.append(rows.auc_estimate(y_true[inside], score[inside]))
            elif metric == "mse":
                a, d = rows.mean_squared_error(y_true[inside], score[inside])
                found.append((rows.ratio(a, d), rows.ratio_variance(a, d)))
            else:
                full = "true_positive_rate" if metric == "tpr" else metric
                table = permutation.table_of_rows(y_true[inside], y_pred[inside])
                found.append((permutation.value(full, *table), permutation.variance(full, *table)))
        (a, v_a), (b, v_b) = found
        half = stats.norm.isf(0.025) * math.sqrt(v_a + v_b)
        assert result.confidence_interval == pytest.approx((a - b - half, a - b + half), rel=1e-9)
        assert result.ratios[0].confidence_interval == pytest.approx(
            inference.ratio_interval_delta(a, v_a, b, v_b), rel=1e-9
        )

    @pytest.mark.parametrize("metric", ["tpr", "f1", "mcc"])
    def test_weights_and_clusters(self, metric):
        y_true, y_pred, _, _ = make(3)
        weight = np.random.default_rng(0).exponential(size=300)
        cluster = np.arange(300) // 4
        group = np.where(cluster % 2 == 0, "a", "b")
        full = "true_positive_rate" if metric == "tpr" else metric
        for options in (
            {"sample_weight": weight},
            {"clusters": cluster},
            {"sample_weight": weight, "clusters": cluster},
        ):
            result = fa.intervals(
                y_true, y_pred, sensitive_features=group, metric=metric, method="delta", **options
            )
            for found in result.values:
                inside = group == found.first
                theta, v = inference.count_metric_weighted(
                    full,
                    y_true[inside],
                    y_pred[inside],
                    weight[inside] if "sample_weight" in options else None,
                    cluster[inside] if "clusters" in options else None,
                )
                assert found.estimate == pytest.approx(theta, rel=1e-9)
                assert found.standard_error == pytest.approx(math.sqrt(v), rel=1e-9)

    @pytest.mark.parametrize("name", ["f1", "auc", "mean_squared_error"])
    def test_replicates_are_those_of_resampled_rows(self, name):
        """Kolmogorov-Smirnov of T* and of t* against rows that are really resampled."""
        y_true, y_pred, score, group = make(4, 120)
        estimate = {
            "f1": lambda y, p, s: (
                permutation.value("f1", *permutation.table_of_rows(y, p)),
                permutation.variance("f1", *permutation.table_of_rows(y, p)),
            ),
            "auc": lambda y, p, s: rows.auc_estimate(y, s),
            "mean_squared_error": lambda y, p, s: rows.ratio_estimate(
                *rows.mean_squared_error(y, s)
            ),
        }[name]
        parts = [tuple(c[group == g] for c in (y_true, y_pred, score)) for g in "ab"]
        slow, slow_v = rows.bootstrap_replicates(
            lambda *r: estimate(*r)[0], lambda *r: estimate(*r)[1], *parts, 500,
            np.random.default_rng(0),
        )  # fmt: skip
        problem, bootstrap = drawn(
            name, 4_000, y_true=y_true, y_pred=y_pred, y_score=score, sensitive_features=group
        )
        gap = problem.gap((0, 1)).estimate
        fast, fast_v = bootstrap.values @ [1, -1], bootstrap.variances @ [1, 1]
        assert stats.ks_2samp(slow, fast).pvalue > 1e-6
        assert stats.ks_2samp(slow_v, fast_v).pvalue > 1e-6
        assert (
            stats.ks_2samp((slow - gap) / np.sqrt(slow_v), (fast - gap) / np.sqrt(fast_v)).pvalue
            > 1e-6
        )

    def test_farrington_manning(self):
        rng = np.random.default_rng(5)
        for _ in range(2_000):
            n_a, n_b = (int(n) for n in rng.integers(1, 200, 2))
            x_a, x_b = int(rng.integers(0, n_a + 1)), int(rng.integers(0, n_b + 1))
            margin = float(rng.uniform(-0.99, 0.99))
            expected = inference.farrington_manning(x_a, n_a, x_b, n_b, margin)[2]
            found = farrington_manning(x_a, n_a, x_b, n_b, margin).plain
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-9), (
                x_a,
                n_a,
                x_b,
                n_b,
                margin,
            )

    def test_farrington_manning_maximises_the_likelihood(self):
        """Not the cubic again: the restricted proportions are searched for."""
        rng = np.random.default_rng(6)
        for _ in range(60):
            n_a, n_b = (int(n) for n in rng.integers(5, 300, 2))
            x_a, x_b = int(rng.integers(1, n_a)), int(rng.integers(1, n_b))
            margin = float(rng.uniform(-0.8, 0.8))

            def loss(q, x_a=x_a, n_a=n_a, x_b=x_b, n_b=n_b, margin=margin):
                p = q + margin
                return -(
                    x_a * math.log(p) + (n_a - x_a) * math.log(1 - p)
                    + x_b * math.log(q) + (n_b - x_b) * math.log(1 - q)
                )  # fmt: skip

            low, high = max(0.0, -margin) + 1e-12, min(1.0, 1 - margin) - 1e-12
            q = optimize.minimize_scalar(loss, bounds=(low, high), options={"xatol": 1e-12}).x
            p = q + margin
            z = (x_a / n_a - x_b / n_b - margin) / math.sqrt(p * (1 - p) / n_a + q * (1 - q) / n_b)
            found = farrington_manning(x_a, n_a, x_b, n_b, margin).plain
            assert found == pytest.approx(z, rel=1e-4)

    def test_score_equivalence(self):
        rng = np.random.default_rng(7)
        for _ in range(60):
            n_a, n_b = (int(n) for n in rng.integers(1, 60, 2))
            x_a, x_b = int(rng.integers(0, n_a + 1)), int(rng.integers(0, n_b + 1))
            margin = float(rng.uniform(0.01, 0.9))
            expected = inference.tost_proportions(x_a, n_a, x_b, n_b, margin)
            found = equivalent((x_a, n_a), (x_b, n_b), margin=margin).pvalue
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)

    @pytest.mark.parametrize("metric", ["f1", "tpr", "auc", "mse"])
    @pytest.mark.parametrize("margin", [0.02, 0.1, 0.2])
    def test_studentized_equivalence(self, metric, margin):
        y_true, y_pred, score, group = data = make(8, 400)
        problem, bootstrap = drawn(
            metric, y_true=y_true, y_pred=y_pred, y_score=score, sensitive_features=group
        )
        gap = problem.gap((0, 1))
        t_star = (bootstrap.values @ [1, -1] - gap.estimate) / np.sqrt(bootstrap.variances @ [1, 1])
        result = equivalence_of(data, metric, margin, method="studentized")
        assert result.pvalue == inference.tost_studentized(
            gap.estimate, gap.standard_error, t_star, margin
        )

    def test_equivalence_of_ratios(self):
        """On the log scale, and the same both ways around."""
        y_true, y_pred, score, group = data = make(9, 600)
        _, bootstrap = drawn(
            "f1", y_true=y_true, y_pred=y_pred, y_score=score, sensitive_features=group
        )
        shown = intervals_of(data, "f1", method="delta")
        (a, v_a), (b, v_b) = ((e.estimate, e.standard_error**2) for e in shown.values)
        center, v = inference.log_ratio(a, v_a, b, v_b)
        t_star = []
        for theta, variance in zip(bootstrap.values, bootstrap.variances, strict=True):
            log_star, v_star = inference.log_ratio(theta[0], variance[0], theta[1], variance[1])
            t_star.append((log_star - center) / math.sqrt(v_star))
        result = equivalence_of(data, "f1", 0.8, scale="ratio", method="studentized")
        expected = inference.tost_studentized(center, math.sqrt(v), t_star, -math.log(0.8))
        assert result.pvalue == expected
        delta = equivalence_of(data, "f1", 0.8, scale="ratio", method="delta")
        swapped = equivalence_of(data, "f1", 0.8, scale="ratio", method="delta", groups=["b", "a"])
        assert delta.pvalue == pytest.approx(swapped.pvalue, rel=1e-9)
        assert swapped.estimate == pytest.approx(1 / delta.estimate, rel=1e-12)


class TestProperties:
    @pytest.mark.parametrize("metric", ["f1", "tpr", "auc", "mse"])
    def test_relabelled_groups_flip_signs(self, metric):
        data = make(1)
        method = "score" if metric == "tpr" else "delta"
        first = intervals_of(data, metric, method=method)
        other = intervals_of(data, metric, method=method, groups=["b", "a"])
        low, high = other.confidence_interval
        assert first.estimate == pytest.approx(-other.estimate, rel=1e-12)
        assert first.confidence_interval == pytest.approx((-high, -low), rel=1e-12)
        assert intervals_of(data, metric, method=method, reference="a").estimate == other.estimate
        assert first.largest_gap.confidence_interval == pytest.approx(
            other.largest_gap.confidence_interval, rel=1e-12
        )
        low, high = (1 / end for end in other.ratios[0].confidence_interval)
        assert first.ratios[0].confidence_interval == pytest.approx((high, low), rel=1e-12)

    @pytest.mark.parametrize("method", ["studentized", "basic", "percentile"])
    def test_relabelled_groups_flip_signs_of_the_bootstrap(self, method):
        """Other draws, hence up to the error of 20,000 replicates."""
        options = {"method": method, "n_resamples": 20_000}
        first = intervals_of(make(1), "f1", **options)
        other = intervals_of(make(1), "f1", groups=["b", "a"], **options)
        low, high = other.confidence_interval
        assert first.confidence_interval == pytest.approx((-high, -low), abs=0.005)

    @pytest.mark.parametrize("metric", ["f1", "auc", "mse"])
    def test_shifted_and_wider(self, metric):
        """A higher level is wider; simultaneous intervals are wider than single ones."""
        data = make(2, 400, "abc")
        widths = [
            np.ptp(intervals_of(data, metric, confidence_level=level).gaps[0].confidence_interval)
            for level in (0.5, 0.8, 0.9, 0.95)
        ]
        assert widths == sorted(widths)
        result = intervals_of(data, metric, n_resamples=1_999)
        for gap, together in zip(result.gaps, result.simultaneous, strict=True):
            assert np.ptp(gap.confidence_interval) < np.ptp(together.confidence_interval)
        low, high = result.confidence_interval
        assert low <= result.estimate <= high

    def test_scaled_scores(self):
        """Mean score: intervals move and stretch with the scores, bit for bit up to rounding."""
        y_true, y_pred, score, group = make(3)
        first = intervals_of((y_true, y_pred, score, group), "mean_score")
        other = intervals_of((y_true, y_pred, 8 * score + 2, group), "mean_score")
        assert other.confidence_interval == pytest.approx(
            tuple(8 * end for end in first.confidence_interval), rel=1e-6
        )
        assert intervals_of((y_true, y_pred, score**3, group), "auc").confidence_interval == (
            intervals_of((y_true, y_pred, score, group), "auc").confidence_interval
        )

    @pytest.mark.parametrize("metric", ["f1", "tpr", "auc", "mse", "log_loss"])
    @pytest.mark.parametrize("groups", ["ab", "abc"])
    def test_bits(self, metric, groups, tmp_path):
        y_true, y_pred, score, group = data = make(4, 2_000, groups, levels=100)
        options = {"method": "studentized"}
        first = intervals_of(data, metric, **options)
        order = np.random.default_rng(0).permutation(len(group))
        frame = pl.DataFrame({"y": y_true, "p": y_pred, "s": score, "group": group})
        for i, part in enumerate(frame.iter_slices(999)):
            part.write_parquet(tmp_path / f"{9 - i}.parquet")
        names = {"y_true": "y", "y_pred": "p", "y_score": "s", "sensitive_features": "group"}
        others = [intervals_of(data, metric, n_threads=n, **options) for n in (1, 2, 7)]
        others.append(intervals_of(tuple(c[order] for c in data), metric, **options))
        others += [
            fa.intervals(data=table, metric=metric, n_resamples=199, rng=1, **names, **options)
            for table in (frame, frame.lazy(), str(tmp_path / "*.parquet"))
        ]
        for other in others:
            assert other.to_dict() == first.to_dict()
        again = equivalence_of(data, metric, 0.3, n_threads=7, **options)
        assert equivalence_of(data, metric, 0.3, n_threads=1, **options).to_dict() == (
            again.to_dict()
        )

    @pytest.mark.parametrize("metric", ["f1", "tpr", "auc", "mse"])
    def test_bits_of_weights_and_clusters(self, metric):
        y_true, y_pred, score, _ = make(5, 1_200)
        cluster = np.arange(1_200) // 6
        group = np.where(cluster % 2 == 0, "a", "b")
        weight = np.random.default_rng(1).integers(1, 5, 1_200)
        order = np.random.default_rng(0).permutation(1_200)
        columns = (y_true, y_pred, score, group)
        options = {"sample_weight": weight, "clusters": cluster}
        first = intervals_of(columns, metric, **options)
        for n in (1, 2, 7):
            assert intervals_of(columns, metric, n_threads=n, **options).to_dict() == (
                first.to_dict()
            )
        moved = intervals_of(
            tuple(c[order] for c in columns),
            metric,
            sample_weight=weight[order],
            clusters=cluster[order],
        )
        assert moved.to_dict() == first.to_dict()

    def test_bits_of_every_instruction_set(self):
        code = (
            "import hashlib, numpy as np, fairaudit_rs as fa\n"
            "rng = np.random.default_rng(5)\n"
            "y, p, group = (rng.integers(0, k, 3000) for k in (2, 2, 3))\n"
            "s, seen = rng.random(3000), hashlib.sha256()\n"
            "for metric in ('f1', 'mcc', 'tpr', 'auc', 'mse', 'log_loss'):\n"
            "    for weight in (None, np.arange(3000) % 4 + 1.0):\n"
            "        options = dict(\n"
            "            y_true=y, y_pred=p, y_score=s, sensitive_features=group, metric=metric,\n"
            "            sample_weight=weight, method='studentized', n_resamples=199, rng=1)\n"
            "        seen.update(repr(fa.intervals(**options).to_dict()).encode())\n"
            "        test = fa.equivalence_test(margin=0.1, **options)\n"
            "        seen.update(repr(test.to_dict()).encode())\n"
            "print(seen.hexdigest())\n"
        )
        assert len(outputs_of_instruction_sets(code)) == 1

    @pytest.mark.parametrize("metric", ["tpr", "f1", "mcc"])
    def test_replicates_of_counts_and_of_rows_agree_in_law(self, metric):
        """Multinomial draws of cells against counts per row: chi-square of T* and of v*."""
        y_true, y_pred, _, group = make(6, 120)
        columns = {"y_true": y_true, "y_pred": y_pred, "sensitive_features": group}
        n = 30_000
        counts = drawn(metric, n, **columns)[1]
        by_row = drawn(metric, n, sample_weight=np.ones(120), **columns)[1]
        # Variances of fractions are c / n of counts, c / (n - 1) of rows; the value tells c.
        theta = by_row.values
        spread = {"tpr": theta * (1 - theta), "f1": spread_of_f1(theta), "mcc": np.inf}[metric]
        with np.errstate(divide="ignore"):
            variances = 1 / (1 / by_row.variances + 1 / spread)
        for of_counts, of_rows in (
            (counts.values @ [1, -1], by_row.values @ [1, -1]),
            (counts.variances @ [1, 1], variances @ [1, 1]),
        ):
            edges = np.unique(np.round(np.quantile(of_counts, np.linspace(0, 1, 41)[1:-1]), 9))
            edges += 1e-7
            table = [
                np.bincount(np.searchsorted(edges, part), minlength=len(edges) + 1)
                for part in (of_counts, of_rows)
            ]
            assert stats.chi2_contingency(table).pvalue > 1e-6
        # A broken variant, the groups resampled together, is seen by the same check.
        drawn_together = np.random.default_rng(0).permutation(by_row.values[:, 0])
        assert stats.ks_2samp(drawn_together, by_row.values[:, 1]).pvalue < 1e-6

    def test_auc_of_distinct_scores_and_of_rows(self):
        """Cells by score and rows have one value, one variance, and one bootstrap law."""
        y_true, _, score, group = make(7, 400, levels=12)
        columns = {"y_true": y_true, "y_score": score, "sensitive_features": group}
        edges = np.r_[np.unique(score) - 1e-6, 1.0]
        cells, of_cells = drawn("auc", 4_000, score_bins=edges, **columns)
        stream, of_rows = drawn("auc", 4_000, **columns)
        assert (cells.drawing_engine, stream.drawing_engine) == ("cells", "stream")
        for left, right in zip(cells.evaluations, stream.evaluations, strict=True):
            assert (left.value, left.variance) == pytest.approx(
                (right.value, right.variance), rel=1e-10
            )
        for left, right in ((of_cells.values, of_rows.values),
                            (of_cells.variances, of_rows.variances)):  # fmt: skip
            assert stats.ks_2samp(left[:, 0], right[:, 0]).pvalue > 1e-6
            assert stats.ks_2samp(left[:, 1], right[:, 1]).pvalue > 1e-6

    def test_constant_weights_change_nothing(self):
        data = make(8)
        plain = intervals_of(data, "f1", method="delta")
        # That of rows has n/(n-1), n the rows that are positive by label or decision.
        y_true, y_pred, _, group = data
        variance = 0.0
        for found in plain.values:
            n = np.sum((group == found.first) & ((y_true == 1) | (y_pred == 1)))
            variance += n / (n - 1) * found.standard_error**2
        half = stats.norm.isf(0.025) * math.sqrt(variance)
        expected = (plain.estimate - half, plain.estimate + half)
        for weight in (1.0, 1e-6, 1e6):
            same = intervals_of(data, "f1", method="delta", sample_weight=np.full(300, weight))
            assert same.confidence_interval == pytest.approx(expected, rel=1e-9)
        singles = intervals_of(data, "f1", method="delta", clusters=np.arange(300))
        a, d = 2.0 * (y_true & y_pred), y_true + y_pred
        slow = means_intervals.cr2(a, d, group).interval
        assert singles.confidence_interval == pytest.approx(slow, rel=1e-9)

    def test_rows_of_weight_zero_do_not_count(self):
        y_true, y_pred, score, group = make(9, 400)
        weight = (np.arange(400) % 4 > 0).astype(float)
        kept = weight > 0
        for metric in ("f1", "auc", "mse"):
            found = intervals_of(
                (y_true, y_pred, score, group), metric, method="delta", sample_weight=weight
            )
            expected = intervals_of(
                (y_true[kept], y_pred[kept], score[kept], group[kept]),
                metric,
                method="delta",
                sample_weight=np.ones(kept.sum()),
            )
            assert found.confidence_interval == pytest.approx(
                expected.confidence_interval, rel=1e-9
            )

    def test_strata_of_cells(self):
        """Departments explain the whole gap. Its interval must be about the same gap."""
        rng = np.random.default_rng(10)
        department = rng.random(4_000) < 0.5
        group = np.where(rng.random(4_000) < np.where(department, 0.9, 0.1), "a", "b")
        y_pred = (rng.random(4_000) < np.where(department, 0.8, 0.2)).astype(int)
        cells = fa.tabulate(y_pred=y_pred, sensitive_features=group, strata=department)
        wrong = []
        for method in METHODS:
            try:
                result = fa.intervals(
                    data=cells, metric="selection_rate", method=method, n_resamples=199, rng=1
                )
            except errors.ArgumentError as error:
                assert "strata" in str(error)  # noqa: PT017
                continue
            low, high = result.confidence_interval
            if not low <= result.estimate <= high:
                wrong.append((method, result.estimate, (low, high)))
        assert not wrong

    def test_equivalence_with_strata_of_cells(self):
        rng = np.random.default_rng(10)
        department = rng.random(4_000) < 0.5
        group = np.where(rng.random(4_000) < np.where(department, 0.9, 0.1), "a", "b")
        y_pred = (rng.random(4_000) < np.where(department, 0.8, 0.2)).astype(int)
        cells = fa.tabulate(y_pred=y_pred, sensitive_features=group, strata=department)
        try:
            result = fa.equivalence_test(data=cells, metric="selection_rate", margin=0.1, rng=1)
        except errors.ArgumentError as error:
            assert "strata" in str(error)  # noqa: PT017
        else:
            assert (abs(result.estimate) > 0.1) or result.pvalue <= 0.05

    def test_missing_groups_are_counted(self):
        y_true, y_pred, score, group = make(11)
        with_missing = np.where(np.arange(300) % 10 == 0, None, group)
        result = intervals_of((y_true, y_pred, score, with_missing), "f1")
        assert (result.n_missing, result.n_rows) == (30, 270)
        assert any("30 of 300 rows have no value" in note for note in result.warnings)

    def test_larger_margins_are_easier(self):
        data = make(12, 800)
        for metric in ("tpr", "f1", "auc"):
            p = [equivalence_of(data, metric, margin).pvalue for margin in (0.02, 0.05, 0.1, 0.3)]
            assert p == sorted(p, reverse=True)
        ratios = [equivalence_of(data, "tpr", m, scale="ratio").pvalue for m in (0.95, 0.8, 0.5)]
        assert ratios == sorted(ratios, reverse=True)

    def test_pvalue_of_all_pairs_is_the_largest(self):
        result = equivalence_of(make(13, 900, "abc"), "f1", 0.15)
        assert result.pvalue == max(pair.pvalue for pair in result.comparisons)
        with_reference = equivalence_of(make(13, 900, "abc"), "f1", 0.15, reference="a")
        assert [pair.second for pair in with_reference.comparisons] == ["a", "a"]

    @pytest.mark.parametrize("method", ["score", "delta", "studentized"])
    def test_rejects_when_the_interval_lies_within_the_margin(self, method):
        """But for the difference between the methods of interval and test, near the level."""
        differ = []
        for x_a, x_b in itertools.product(range(40, 160, 9), range(40, 160, 9)):
            for margin in (0.1, 0.15, 0.25):
                result = equivalent(
                    (x_a, 200), (x_b, 100 + 100 * (x_b > 99)), margin=margin, method=method,
                    n_resamples=199,
                )  # fmt: skip
                low, high = result.comparisons[0].confidence_interval
                inside = -margin <= low and high <= margin
                near = 0.04 < result.pvalue < 0.06 and method != "delta"
                if (result.pvalue <= 0.05) != inside and not near:
                    differ.append((x_a, x_b, margin, result.pvalue, (low, high)))
        assert not differ, f"{len(differ)} differ, such as {differ[0]}"

    def test_a_seed_repeats_a_result(self):
        first = intervals_of(make(), "f1", rng=None)
        assert intervals_of(make(), "f1", rng=first.seed).to_dict() == first.to_dict()
        assert intervals_of(make(), "f1", rng=None, random_state=5).to_dict() == (
            intervals_of(make(), "f1", rng=5).to_dict()
        )
        seen = []
        intervals_of(
            make(), "f1", method="basic", progress=lambda done, total: seen.append((done, total))
        )
        assert seen[-1] == (199, 199)

    def test_inputs_are_left_alone(self):
        data = make()
        before = [column.copy() for column in data]
        for method in ("studentized", "basic"):
            intervals_of(data, "auc", method=method)
        assert all(np.array_equal(a, b) for a, b in zip(data, before, strict=True))


# ---------------------------------------------------------------------------------------------


def confusion(rng, probabilities, n):
    """(y_true, y_pred) of n rows."""
    cell = rng.choice(4, size=n, p=probabilities)
    return np.isin(cell, (0, 2)).astype(int), np.isin(cell, (0, 1)).astype(int)


def two_confusions(rng, n=500, probabilities=PROBABILITIES):
    parts = [confusion(rng, p, n) for p in probabilities.values()]
    return {
        "y_true": np.concatenate([part[0] for part in parts]),
        "y_pred": np.concatenate([part[1] for part in parts]),
        "sensitive_features": np.repeat(list(probabilities), n),
    }


def true_gap(metric, probabilities=PROBABILITIES):
    a, b = (permutation.value(metric, *p) for p in probabilities.values())
    return a - b


def clustered(rng, n_clusters=60, size=6):
    """TPR 2/3 and 1/3, from one person to the next Beta(2, 1) and Beta(1, 2)."""
    rates = np.r_[rng.beta(2, 1, n_clusters), rng.beta(1, 2, n_clusters)]
    cluster = np.repeat(np.arange(2 * n_clusters), size)
    return {
        "y_true": (rng.random(len(cluster)) < 0.7).astype(int),
        "y_pred": (rng.random(len(cluster)) < rates[cluster]).astype(int),
        "sensitive_features": np.where(cluster < n_clusters, "a", "b"),
        "clusters": cluster,
    }


def losses(rng, n=500):
    """Scores U(0.1, 0.9); labels follow them in group a and are coins in group b."""
    score = rng.uniform(0.1, 0.9, 2 * n)
    share = np.where(np.arange(2 * n) < n, score, 0.5)
    return {
        "y_true": (rng.random(2 * n) < share).astype(int),
        "y_score": score,
        "sensitive_features": np.repeat(["a", "b"], n),
    }


def covers(make_audit, truth, n_audits, seed=1, choose=None, **options):
    """The share of audits whose interval of the gap (or what `choose` takes) covers the truth."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(n_audits):
        result = fa.intervals(rng=rng, **make_audit(rng), **{"n_resamples": 999, **options})
        low, high = result.confidence_interval if choose is None else choose(result)
        hits += low <= truth <= high
    return hits / n_audits


def assert_covers(share, low=0.935, high=0.965):
    assert low <= share <= high, share


@pytest.mark.calibration
class TestCalibration:
    """Coverage of 95 % intervals at 500 rows per group lies between 0.935 and .965."""

    def test_true_positive_rate_by_score(self):
        assert_covers(covers(two_confusions, true_gap("true_positive_rate"), 8_000, metric="tpr"))

    @pytest.mark.parametrize("metric", ["f1", "mcc"])
    def test_counts(self, metric):
        assert_covers(covers(two_confusions, true_gap(metric), 2_500, metric=metric))

    def test_auc(self):
        """Binormal scores, shifts 1 and 1.5, base rates 0.5 and .2."""

        def audit(rng):
            parts = [
                row_oracles.auc_equal(rng, (250, 250), (rate, rate), shift)
                for rate, shift in ((0.5, 1.0), (0.2, 1.5))
            ]
            return {
                "y_true": np.concatenate([part[0] for part in parts]),
                "y_score": np.concatenate([part[1] for part in parts]),
                "sensitive_features": np.repeat(["a", "b"], 500),
            }

        truth = stats.norm.cdf(1 / math.sqrt(2)) - stats.norm.cdf(1.5 / math.sqrt(2))
        assert_covers(covers(audit, truth, 1_500, metric="auc"))

    def test_mean_squared_error(self):
        """E s (1 - s) = 0.19667 and E s^2 = 0.30333 of U(0.1, 0.9)."""
        second = 0.25 + 0.64 / 12
        truth = (0.5 - second) - second
        assert_covers(covers(losses, truth, 1_500, metric="mean_squared_error"))

    def test_log_loss(self):
        entropy = integrate.quad(lambda s: -2 * s * math.log(s), 0.1, 0.9)[0] / 0.8
        coin = integrate.quad(lambda s: -math.log(s), 0.1, 0.9)[0] / 0.8
        assert_covers(covers(losses, entropy - coin, 1_500, metric="log_loss"))

    def test_clusters(self):
        """60 people a group; rows resampled as if nobody came twice cover too little."""
        assert_covers(covers(clustered, 1 / 3, 3_000, metric="tpr"))

        def ignoring(rng):
            data = clustered(rng)
            del data["clusters"]
            return data

        broken = covers(ignoring, 1 / 3, 800, metric="tpr", method="studentized")
        assert broken < 0.9
        with pytest.raises(AssertionError):
            assert_covers(broken)

    def test_ratio_of_selection_rates(self):
        truth = 0.5 / 0.45

        def ratio(result):
            return result.ratios[0].confidence_interval

        for method, n_audits in (("score", 5_000), ("studentized", 4_000)):
            assert_covers(
                covers(
                    two_confusions, truth, n_audits, choose=ratio,
                    metric="selection_rate", method=method,
                )
            )  # fmt: skip

    def four(self, rng, probabilities):
        return two_confusions(rng, 250, dict(zip("abcd", probabilities, strict=True)))

    def test_simultaneous_intervals_of_four_groups(self):
        a, b = PROBABILITIES.values()
        values = [permutation.value("f1", *p) for p in (a, b, b, a)]
        pairs = list(itertools.combinations(range(4), 2))
        together, alone = [], []

        def all_hold(entries):
            return all(
                entry.confidence_interval[0]
                <= values[i] - values[j]
                <= entry.confidence_interval[1]
                for entry, (i, j) in zip(entries, pairs, strict=True)
            )

        rng = np.random.default_rng(1)
        for _ in range(2_000):
            result = fa.intervals(
                rng=rng,
                metric="f1",
                method="studentized",
                n_resamples=999,
                **self.four(rng, (a, b, b, a)),
            )
            together.append(all_hold(result.simultaneous))
            alone.append(all_hold(result.gaps))
        assert_covers(np.mean(together))
        with pytest.raises(AssertionError):
            assert_covers(np.mean(alone))

    def test_largest_gap_of_four_equal_groups(self):
        """Ours covers the true 0; a percentile interval of max - min never does."""
        a = PROBABILITIES["a"]
        rng = np.random.default_rng(1)
        ours, percentile = [], []
        for _ in range(2_000):
            data = self.four(rng, (a, a, a, a))
            result = fa.intervals(rng=rng, metric="f1", n_resamples=999, **data)
            low, high = result.confidence_interval
            ours.append(low <= 0 <= high)
            if len(percentile) < 300:
                values = drawn("f1", 399, seed=len(percentile), **data)[1].values
                low, high = rows.percentile_interval(np.ptp(values, axis=1))
                percentile.append(low <= 0 <= high)
        assert_covers(np.mean(ours))
        assert np.mean(percentile) == 0
        with pytest.raises(AssertionError):
            assert_covers(np.mean(percentile))

    @pytest.mark.parametrize(
        ("metric", "n_audits"), [("selection_rate", 10_000), ("f1", 2_000)], ids=["score", "boot"]
    )
    def test_equivalence_at_the_margin(self, metric, n_audits):
        """The true gap is the margin: it is not shown to be smaller in more than 5 %."""
        far = {"a": (0.35, 0.15, 0.1, 0.4), "b": (0.2, 0.05, 0.25, 0.5)}
        margin = true_gap(metric, far)
        rng = np.random.default_rng(1)
        p = [
            fa.equivalence_test(
                rng=rng,
                metric=metric,
                margin=margin,
                n_resamples=999,
                **two_confusions(rng, 500, far),
            ).pvalue
            for _ in range(n_audits)
        ]
        law = stats.binom(n_audits, 0.05)
        found = int(np.sum(np.array(p) <= 0.05))
        assert law.ppf(1e-6) <= found <= law.isf(1e-6)
        # A test of equality that finds nothing, taken for proof, "shows" it far too often.
        rng = np.random.default_rng(1)
        nothing = 0
        for _ in range(300):
            few = two_confusions(rng, 30, far)
            nothing += (
                fa.permutation_test(metric=metric, n_resamples=199, rng=rng, **few).pvalue > 0.05
            )
        assert nothing > stats.binom(300, 0.05).isf(1e-6)

    @pytest.mark.parametrize("method", ["score", "studentized", "delta"])
    def test_equivalence_of_few_rows(self, method):
        """5 rows each, rates 0.95 and 0.75: in 18 % all are selected, which shows nothing."""
        rng = np.random.default_rng(1)
        n_audits = 2_000
        found = 0
        for _ in range(n_audits):
            y_pred = (rng.random(10) < np.repeat([0.95, 0.75], 5)).astype(int)
            found += (
                fa.equivalence_test(
                    y_pred=y_pred,
                    sensitive_features=np.repeat(["a", "b"], 5),
                    metric="selection_rate",
                    margin=0.1,
                    method=method,
                    n_resamples=199,
                    rng=rng,
                ).pvalue
                <= 0.05
            )
        assert found <= stats.binom(n_audits, 0.05).isf(1e-6)

    def test_equivalence_of_ratios_at_the_margin(self):
        """Selection rates 0.4 and 0.5, a ratio of .8."""
        law = {"a": (0.3, 0.1, 0.2, 0.4), "b": (0.35, 0.15, 0.1, 0.4)}
        rng = np.random.default_rng(1)
        n_audits = 3_000
        found = sum(
            fa.equivalence_test(
                rng=rng,
                metric="selection_rate",
                margin=0.8,
                scale="ratio",
                n_resamples=999,
                **two_confusions(rng, 500, law),
            ).pvalue
            <= 0.05
            for _ in range(n_audits)
        )
        band = stats.binom(n_audits, 0.05)
        assert band.ppf(1e-6) <= found <= band.isf(1e-6)


class TestProgress:
    @pytest.mark.parametrize("metric", ["f1", "auc", "callable"])
    def test_a_bootstrap_tells_how_far_it_is(self, metric):
        chosen = RATE if metric == "callable" else metric
        seen = []
        intervals_of(
            make(), chosen, progress=lambda done, total: seen.append((done, total)),
            method="basic", n_resamples=150,
        )  # fmt: skip
        assert seen[-1] == (150, 150)
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        # Python calls the function: every sample is heard of.
        assert len(seen) > 100 or metric != "callable"

    def test_tests_count_their_bootstrap(self):
        seen = []
        y_true, y_pred, _, group = make()
        fa.permutation_test(
            y_true, y_pred, sensitive_features=group, metric="f1", interval="studentized",
            n_resamples=150, rng=1, progress=lambda done, total: seen.append((done, total)),
        )  # fmt: skip
        assert seen[-1] == (300, 300)
