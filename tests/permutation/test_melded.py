"""Groups compared by the range of their values, or by scores: melded limits."""

import math

import numpy as np
import pytest
from scipy import special, stats

import fairaudit_rs as fa
from fairaudit_rs import _native
from fairaudit_rs.inference import melding as inference
from fairaudit_rs.metrics.row_values import RatioValues
from fairaudit_rs.permutation.melded_limits import (
    LONGEST_REACH,
    MeldedLimits,
    MeldingInputs,
    melding_of,
)

from ..reference import melded as reference
from .posing import posed

CALL = _native.Call(1)
RESIDUAL = fa.metrics.get("mean_residual")
PAIR = (0, 1)


def draws(n, seed=1):
    return _native.Draws(n, seed=seed)


def gaffke(values, n, *, weight=None, bounds=(0.0, 1.0), group=0, seed=1):
    above = np.ascontiguousarray(values if weight is None else weight * values, dtype=float)
    return _native.gaffke_limits(above, weight, bounds, group, draws(n, seed), CALL)


def melding(groups, metric, weights=None, **columns):
    """Return the melded limits of some groups, from columns of all rows."""
    values, place = np.concatenate(groups), np.repeat(np.arange(len(groups)), [*map(len, groups)])
    weight = None if weights is None else np.concatenate(weights)
    above = np.ascontiguousarray(values if weight is None else values * weight, dtype=float)
    units = _native.Units(place.astype(np.uint16), len(groups))
    test = _native.PermutationTest.ratio(above, weight, units, CALL, studentize="none")
    rows = RatioValues(above, weight)
    return MeldingInputs.from_rows(
        metric, rows, place, columns, weight, evaluations=test.evaluations
    )


def bounded(low, high):
    return fa.metrics.ratio_metric("mean_value", "value", bounds=(low, high))


class TestArguments:
    def test_a_value_out_of_its_range_is_named(self):
        with pytest.raises(fa.errors.ArgumentError, match=r"numerator is 1\.5; accepted: values"):
            gaffke(np.array([0.5, 1.5]), 9)

    @pytest.mark.parametrize("bounds", [(1, 0), (0, math.inf), (0, 0)])
    def test_ranges_are_two_numbers_in_order(self, bounds):
        with pytest.raises(fa.errors.ArgumentError, match="two finite numbers, the lower one"):
            fa.metrics.ratio_metric("cost", "cost", bounds=bounds)

    @pytest.mark.parametrize("bounds", [3, "ab", (1,), (0, "1"), [0, 1, 2]])
    def test_ranges_are_numbers(self, bounds):
        with pytest.raises(fa.errors.ArgumentTypeError, match=r"two numbers \(low, high\)"):
            fa.metrics.ratio_metric("cost", "cost", bounds=bounds)

    def test_what_lies_outside_of_the_users_range_is_named(self):
        cost = fa.metrics.ratio_metric("cost", "cost", bounds=(0, 10))
        with pytest.raises(
            fa.errors.ArgumentError, match=r"cost is 11 in row 1; accepted: 0 to 10"
        ):
            cost.kind.row_values({"cost": np.array([1.0, 11.0])}, 2, None)
        rate = fa.metrics.ratio_metric("rate", "paid", "due", bounds=(0, 1))
        rows = {"paid": np.array([1.0, 3.0]), "due": np.array([2.0, 2.0])}
        with pytest.raises(fa.errors.ArgumentError, match="rate is 3 of 2 in row 1"):
            rate.kind.row_values(rows, 2, None)
        rows["due"] = np.array([2.0, -2.0])
        with pytest.raises(fa.errors.ArgumentError, match="denominator of rate is -2"):
            rate.kind.row_values(rows, 2, None)


ROWS = {"y_true": np.array([0.0, 1.0, 1.0]), "y_score": np.array([0.1, 0.75, 0.5])}


class TestRanges:
    """Which metrics know the range of their rows."""

    @pytest.mark.parametrize(
        ("name", "bounds"),
        [
            ("mean_prediction", (0.0, 1.0)),
            ("mean_residual", (-0.75, 0.9)),
            ("mean_absolute_error", (0.0, 1.0)),
            ("mean_squared_error", (0.0, 1.0)),
            ("log_loss", (0.0, -math.log(0.1))),
            ("true_positive_rate", (0.0, 1.0)),
        ],
    )
    def test_of_probabilities(self, name, bounds):
        metric = fa.metrics.get(name)
        assert metric.kind.bounds(ROWS) == pytest.approx(bounds)
        if metric.family == "ratio":
            values = metric.kind.row_values(ROWS, 3, None).numerator
            assert bounds[0] <= values.min()
            assert values.max() <= bounds[1]
            # Every mean of the registry has a range, where labels and scores are as they should be.
            for column, wrong in (("y_score", 1.5), ("y_true", 0.5)):
                if column in metric.columns:
                    assert metric.kind.bounds({**ROWS, column: np.full(3, wrong)}) is None

    def test_every_ratio_of_the_registry_has_one(self):
        metrics = [fa.metrics.get(name) for name in fa.metrics.names()]
        ratios = [metric for metric in metrics if metric.family == "ratio"]
        assert len(ratios) == 5
        assert all(metric.kind.bounds(ROWS) is not None for metric in ratios)

    def test_formulas_and_others_have_none(self):
        for name in ("f1", "auc", "calibration_error", "equalized_odds", "pearson"):
            assert fa.metrics.get(name).kind.bounds(ROWS) is None
        assert fa.metrics.ratio_metric("cost", "cost").kind.bounds(ROWS) is None

    def test_only_residuals_of_probabilities_have_events(self):
        label, score = RESIDUAL.kind.events(ROWS)
        assert label.tolist() == [0, 1, 1]
        assert score.tolist() == [0.1, 0.75, 0.5]
        assert RESIDUAL.kind.events({**ROWS, "y_true": np.array([0.0, 2.0, 1.0])}) is None
        assert fa.metrics.get("brier").kind.events(ROWS) is None


class TestKnownValues:
    N = 60_000

    @pytest.mark.parametrize(("hits", "n"), [(0, 20), (2, 20), (7, 40), (20, 20)])
    def test_rows_of_0_and_1_have_the_limits_of_clopper_and_pearson(self, hits, n):
        limits = gaffke(np.arange(n) < hits, self.N)
        exact = _native.clopper_pearson(hits, n, 0.95)
        found = inference.interval_of_value(limits, 0.95)
        assert found == pytest.approx(exact, abs=0.01 * (exact[1] - exact[0]) + 1e-12)

    @pytest.mark.parametrize("table", [(1, 12, 8, 15), (0, 9, 40, 300), (12, 12, 5, 20)])
    def test_rows_of_0_and_1_have_fishers_one_sided_p(self, table):
        """Melding is exact there: the tail of the table is a probability of two beta numbers."""
        x_1, n_1, x_2, n_2 = table
        first = gaffke(np.arange(n_1) < x_1, self.N, group=0)
        second = gaffke(np.arange(n_2) < x_2, self.N, group=1)
        counts = [[x_1, n_1 - x_1], [x_2, n_2 - x_2]]
        for side, test in (
            ("greater", inference.pvalue_above),
            ("less", inference.pvalue_below),
        ):
            exact = stats.fisher_exact(counts, alternative=side).pvalue
            error = math.sqrt(exact * (1 - exact) / self.N)
            assert test(first, second) == pytest.approx(exact, abs=4.9 * error + 1e-4)

    def test_two_sided_is_twice_the_smaller_at_most_1(self):
        first, second = gaffke([0, 1] * 9, 999), gaffke([0, 1] * 9, 999, group=1)
        sides = [inference.melded_pvalue(first, second, side) for side in ("greater", "less")]
        assert inference.melded_pvalue(first, second) == min(1.0, 2 * min(sides))

    def test_intervals_are_what_the_tests_do_not_reject(self):
        first, second = gaffke([0, 1] * 30, 999), gaffke([0, 0, 0, 1] * 20, 999, group=1)
        low, high = inference.interval_of_difference(first, second, 0.95)
        tests = (inference.pvalue_above, inference.pvalue_below)
        for end, test in zip((low, high), tests, strict=True):
            step = 1e-9 if end == low else -1e-9
            assert test(first, second, end - step) <= 0.025 < test(first, second, end + step)
        low, high = inference.interval_of_ratio(first, second, 0.95)
        assert inference.ratio_pvalue_above(first, second, low * (1 - 1e-9)) <= 0.025
        assert inference.ratio_pvalue_above(first, second, low * (1 + 1e-9)) > 0.025
        assert inference.ratio_pvalue_below(first, second, high * (1 + 1e-9)) <= 0.025
        assert inference.ratio_pvalue_below(first, second, high * (1 - 1e-9)) > 0.025

    def test_a_rate_of_0_has_a_ratio_without_an_upper_end(self):
        some, none = gaffke([0, 1] * 30, 999), gaffke([0] * 20, 999, group=1)
        low, high = inference.interval_of_ratio(some, none, 0.95)
        assert low > 1
        assert high == math.inf
        low, high = inference.interval_of_ratio(none, some, 0.95)
        assert low == 0
        assert high < 1
        assert inference.ratio_pvalue_below(none, some, 0.8) == 0.001


class TestReference:
    def test_limits_have_the_law_of_the_slow_ones(self):
        """Skewed values with skewed weights, some rows equal: Kolmogorov and Smirnov's test."""
        rng = np.random.default_rng(0)
        values = np.round(np.minimum(rng.lognormal(-3, 1.2, 70), 1), 2)
        for weight in (None, np.round(rng.lognormal(0, 1.0, 70), 1) + 0.1):
            limits = gaffke(values, 20_000, weight=weight, bounds=(-0.5, 1.0))
            heavy = np.ones(70) if weight is None else weight
            slow = reference.gaffke(heavy * values, heavy, -0.5, 1.0, 20_000, rng)
            for fast, exact in zip((limits.upper, limits.lower), slow, strict=True):
                assert stats.ks_2samp(fast, exact).pvalue > 1e-6
            broken = reference.gaffke(heavy * values, heavy, 0.0, 0.2, 20_000, rng)
            assert stats.ks_2samp(limits.upper, broken[0]).pvalue < 1e-6

    def test_the_reach_is_that_of_the_formula(self):
        rng = np.random.default_rng(1)
        values, weight = rng.random(50), rng.lognormal(0, 1, 50)
        for heavy in (None, weight):
            above = values if heavy is None else heavy * values
            below = np.ones(50) if heavy is None else heavy
            weights = None if heavy is None else [heavy, np.ones(2)]
            found = melding([values, np.array([2.0, -1.0])], bounded(-1, 2), weights)
            slow = reference.reach(above, below, -1, 2)
            assert found.reaches[0] == pytest.approx(slow, rel=1e-12)

    @pytest.mark.parametrize(
        ("n", "rate", "events"), [(30, 0.1, 0), (40, 0.05, 3), (150, 0.4, 150), (4_000, 0.3, 1_190)]
    )
    def test_mean_residuals_have_the_quantiles_of_the_slow_ones(self, n, rate, events):
        rng = np.random.default_rng(2)
        score = np.clip(special.expit(special.logit(rate) + rng.normal(size=n)), 0, 1)
        score[:2] = 0, 1
        limits = _native.poisson_binomial_limits(score, events, 0, draws(20_000), CALL)
        at = np.sort(limits.upper)[::-1], np.sort(limits.lower)[::-1]
        for level in (0.005, 0.05, 0.5, 0.95, 0.995):
            # The level that the draws give to what the reference says.
            exact = reference.poisson_binomial(score, events, level)
            for drawn, limit in zip(at, exact, strict=True):
                if np.ptp(drawn) == 0:
                    assert drawn[0] == pytest.approx(limit, abs=1e-12)
                    continue
                share = np.mean(drawn > limit)
                assert abs(share - level) < 4.9 * math.sqrt(level * (1 - level) / 20_000) + 1e-4


class TestProperties:
    def test_threads_parts_and_order_of_rows_change_nothing(self):
        rng = np.random.default_rng(3)
        values, weight = rng.random(3_000), rng.lognormal(0, 1, 3_000)
        whole = gaffke(values, 500, weight=weight)
        order = rng.permutation(3_000)
        assert gaffke(values[order], 500, weight=weight[order]) == whole
        part = _native.gaffke_limits(
            weight * values, weight, (0.0, 1.0), 0, _native.Draws(77, seed=1, first=100), CALL
        )
        assert np.array_equal(part.upper, whole.upper[100:177])
        threads = _native.gaffke_limits(
            weight * values, weight, (0.0, 1.0), 0, draws(500), _native.Call(3)
        )
        assert threads == whole
        assert gaffke(values, 500, weight=weight, group=1) != whole

    def test_units_that_matter_alike_are_told_apart_by_themselves(self):
        """Of some thousand different rows, many of them copies, not all are drawn one by one."""
        rng = np.random.default_rng(5)
        weight = np.round(rng.lognormal(0, 1, 6_000), 3) + 0.001
        values, order = rng.random(6_000) < 0.05, rng.permutation(6_000)
        assert len(np.unique(weight)) > 1_024
        here = gaffke(values, 99, weight=weight)
        assert gaffke(values[order], 99, weight=weight[order]) == here

    def test_the_scale_of_weights_is_nothing(self):
        rng = np.random.default_rng(4)
        values, weight = rng.random(50), rng.lognormal(0, 1, 50)
        assert gaffke(values, 99, weight=weight) == gaffke(values, 99, weight=1024 * weight)

    def test_exchanging_two_groups_exchanges_the_sides(self):
        made = melding([np.r_[1, np.zeros(30)], np.r_[np.ones(6), np.zeros(60)]], bounded(0, 1))
        drawn = made.draw(draws(999), CALL)
        assert drawn.pvalue((0, 1), "less") == drawn.pvalue((1, 0), "greater")
        low, high = drawn.interval((0, 1), 0.9)
        assert drawn.interval((1, 0), 0.9) == (-high, -low)


class TestRule:
    def test_few_events_ask_for_it(self):
        def applies(hits, n):
            made = melding([np.arange(n) < hits, np.arange(4_000) < 2_000], bounded(0, 1))
            return made is not None and made.applies(PAIR)

        assert applies(3, 400)
        assert applies(7, 400)
        assert not applies(9, 400)
        # No variance at all.
        assert applies(0, 400)

    def test_the_reach_is_of_each_group(self):
        groups = [np.arange(400) < hits for hits in (3, 200, 150)]
        made = melding(groups, bounded(0, 1))
        assert [made.applies(pair) for pair in ((0, 1), (1, 2), (0, 2))] == [True, False, True]
        assert made.reaches[1] < LONGEST_REACH < made.reaches[0]

    def test_weighted_proportions_always_take_it(self):
        rng = np.random.default_rng(0)
        groups = [rng.random(900) < 0.5 for _ in PAIR]
        weights = [rng.lognormal(0, 0.1, 900) for _ in PAIR]
        made = melding(groups, fa.metrics.get("selection_rate"), weights)
        assert made.applies(PAIR)
        assert made.method == "gaffke"

    def test_scores_are_taken_of_plain_rows(self):
        score, label = np.full(90, 0.1), np.arange(90) % 9 == 0
        rows = {"y_true": label, "y_score": score}
        groups = np.split(label - score, [40])
        assert melding(groups, RESIDUAL, **rows).method == "poisson-binomial"
        weights = np.split(np.linspace(1, 2, 90), [40])
        assert melding(groups, RESIDUAL, weights, **rows).method == "gaffke"

    def test_without_a_range_there_is_nothing(self):
        assert melding([np.zeros(3), np.zeros(3)], fa.metrics.ratio_metric("cost", "cost")) is None

    def test_ranges_are_those_of_the_compared_groups(self):
        rows = {"y_true": np.zeros(60), "y_score": np.repeat([0.1, 0.2, 0.9], 20)}
        place = np.repeat([0, 1, -1], 20)
        values = RESIDUAL.kind.row_values(rows, 60, None)
        nothing = [_native.Evaluation(0.0, 0.0)] * 2
        made = MeldingInputs.from_rows(RESIDUAL, values, place, rows, None, evaluations=nothing)
        assert made.bounds == (-0.2, 0.9)
        assert len(made.samples) == 2

    def test_rows_of_problems_are_taken_where_they_are_drawn_alone(self):
        rng = np.random.default_rng(0)
        weight, half = rng.lognormal(0, 1, 120), np.arange(120) // 2
        data = {"y_pred": rng.random(120) < 0.1, "sensitive_features": np.repeat([*"ab"], 60)}
        made = melding_of(posed("selection_rate", **data, sample_weight=weight))
        assert made.applies(PAIR)
        note = made.note("rate", "ab")
        assert "as rows have weights; that they keep their level was simulated" in note.text
        drawn = made.draw(draws(99), CALL)
        group = data["sensitive_features"]
        for i, name in enumerate("ab"):
            mine = group == name
            values, heavy = data["y_pred"][mine], weight[mine]
            assert drawn.limits[i] == gaffke(values, 99, weight=heavy, group=i)
        strata = posed("selection_rate", **data, sample_weight=weight, strata=half % 2)
        assert melding_of(strata) is None

    def test_mean_residuals_of_problems_are_taken_with_their_scores(self):
        label, score = np.arange(90) % 30 == 0, np.full(90, 0.05)
        group = np.repeat([*"ab"], 45)
        problem = posed("mean_residual", y_true=label, y_score=score, sensitive_features=group)
        made = melding_of(problem)
        assert made.method == "poisson-binomial"
        assert made.applies(PAIR)
        assert "few events" in made.note("mean_residual", "ab").text
        assert [sample.events[1] for sample in made.samples] == [2, 1]

    def test_ratios_need_values_that_are_not_negative(self):
        limits = tuple(gaffke([0.1, -0.1], 99, bounds=(-1.0, 1.0), group=i) for i in PAIR)
        drawn = MeldedLimits(limits, (-1.0, 1.0))
        assert all(map(math.isnan, drawn.ratio_interval(PAIR, 0.9)))
        assert drawn.ratio_pvalue_at(PAIR, 0.8, "greater") == 1

    def test_intervals_stay_in_the_range(self):
        limits = tuple(gaffke([0.1, 0.2], 9, group=i) for i in PAIR)
        drawn = MeldedLimits(limits, (0.0, 1.0))
        # Nine replicates have no quantile of this level.
        assert drawn.interval(PAIR, 0.95) == (-1, 1)
        assert drawn.value_interval(0, 0.95) == (0, 1)
        assert drawn.ratio_interval(PAIR, 0.95) == (0, math.inf)


def band(rate, n_audits):
    """The largest rate that n_audits show with probability 1 - 1e-6 when the true one is `rate`."""
    return stats.binom(n_audits, rate).isf(1e-6) / n_audits


LEVELS = (0.05, 0.01, 0.001)
#: Replicates of a test: enough for a level of 0.1 %.
MANY = 1_999


def assert_sizes(pvalues, levels=LEVELS):
    """Shares of p-values up to each level within what chance allows above it."""
    for level in levels:
        rate = float(np.mean(np.array(pvalues) <= level))
        assert rate <= band(level, len(pvalues)), f"{rate:.4f} at {level}"


def studentized_permutation(groups, seed, weights=None):
    """The old way: the permutation test with the un-pooled variance."""
    sizes = [len(values) for values in groups]
    group = np.repeat(np.arange(2, dtype=np.uint16), sizes)
    weight = None if weights is None else np.concatenate(weights)
    values = np.concatenate(groups) * (1.0 if weight is None else weight)
    units = _native.Units(group, 2)
    test = _native.PermutationTest.ratio(values, weight, units, CALL, studentize="unpooled")
    null = test.null_distribution(draws(999, seed), CALL)
    extreme = np.abs(null) >= abs(test.observed) * (1 - 1e-12)
    return (1 + int(extreme.sum())) / 1_000


def without_the_extra_row(values, weight, rng):
    """Broken: the Bayesian bootstrap, which does not know how far the range goes."""
    e = rng.exponential(size=(MANY, len(values))) * weight
    mean = e @ values / e.sum(axis=1)
    return _native.Limits(mean, mean)


def residual(rate):
    """The residual of an event whose score is its rate."""
    return lambda rng, n: (rng.random(n) < rate) - rate


def loss(of):
    """A loss of labels with scores that are right."""

    def make(rng, n):
        score = np.clip(rng.beta(0.5, 9.5, n), 0.001, 0.999)
        return of((rng.random(n) < score).astype(float), score)

    return make


def squared_error(label, score):
    return (label - score) ** 2


def log_loss(label, score):
    return -np.log(np.where(label == 1, score, 1 - score))


def symmetric(rng, n):
    return (rng.beta(5, 5, n) - 0.5) * math.sqrt(44)


def mean_and_deviation(law):
    values = law(np.random.default_rng(0), 4_000_000)
    return float(values.mean()), float(values.std())


#: Law, range, mean and standard deviation.
LAWS = {
    "residual of 3 %": (residual(0.03), (-1.0, 1.0), 0.0, math.sqrt(0.03 * 0.97)),
    "squared error": (loss(squared_error), (0.0, 1.0), None, None),
    "log loss": (loss(log_loss), (0.0, math.log(1_000)), None, None),
}


def design(law, case):
    """Make 40 + 1,960 rows of equal means: the second symmetric, or of a third of the spread."""
    make, bounds, mean, deviation = LAWS[law]
    if mean is None:
        mean, deviation = mean_and_deviation(make)

    def groups(rng):
        first = make(rng, 40)
        if case == "x3":
            return first, mean + (make(rng, 1_960) - mean) / 3
        spread = deviation / 3 if case == "ms3" else deviation
        return first, mean + spread * symmetric(rng, 1_960)

    return groups, bounds, mean


@pytest.mark.calibration
class TestKnownRange:
    """Means of 40 rows against those of 1,960, whose skewness no test without a range survives."""

    @pytest.mark.parametrize(
        ("law", "case"),
        [
            ("residual of 3 %", "moreskew"),
            ("residual of 3 %", "x3"),
            ("residual of 3 %", "ms3"),
            ("squared error", "x3"),
            ("log loss", "x3"),
        ],
    )
    def test_size_and_coverage(self, law, case):
        groups, bounds, mean = design(law, case)
        metric, rng = bounded(*bounds), np.random.default_rng(5)
        pvalues, covered, missed = [], [], []
        for audit in range(1_000):
            pair = groups(rng)
            made = melding(pair, metric)
            assert made.applies(PAIR)
            drawn = made.draw(draws(MANY, audit), CALL)
            pvalues.append(drawn.pvalue(PAIR))
            low, high = drawn.interval(PAIR, 0.95)
            covered.append(low <= 0 <= high)
            low, high = drawn.value_interval(0, 0.95)
            missed.append(not low <= mean <= high)
        assert_sizes(pvalues)
        assert np.mean(missed) <= band(0.05, len(missed))
        # The interval leaves 0 out where the test rejects, and nowhere else.
        assert covered == [p > 0.05 for p in pvalues]

    @pytest.mark.parametrize(("law", "case"), [("residual of 3 %", "moreskew"), ("log loss", "x3")])
    def test_without_the_range_nothing_holds(self, law, case):
        groups, bounds, _ = design(law, case)
        rng, seeds = np.random.default_rng(6), range(300)
        old, broken = [], []
        for seed in seeds:
            first, second = groups(rng)
            old.append(studentized_permutation((first, second), seed))
            blind = without_the_extra_row(first, np.ones(40), rng)
            limits = gaffke(second, MANY, bounds=bounds, group=1, seed=seed)
            broken.append(inference.melded_pvalue(blind, limits))
        for pvalues in (old, broken):
            with pytest.raises(AssertionError):
                assert_sizes(pvalues, [0.01])

    def test_a_gap_of_the_margin_is_rarely_called_smaller(self):
        """An event of 8 % with scores of 3 % against scores that are right; normal limits fail."""
        rng, margin = np.random.default_rng(15), 0.05
        melded, normal = [], []
        for audit in range(600):
            first, second = residual(0.08)(rng, 40) + margin, symmetric(rng, 1_960) * 0.1
            made = melding((first, second), bounded(-1.0, 1.0))
            drawn = made.draw(draws(999, audit), CALL)
            melded.append(drawn.pvalue_at(PAIR, margin, "less"))
            error = math.sqrt(first.var(ddof=1) / 40 + second.var(ddof=1) / 1_960)
            gap = first.mean() - second.mean()
            normal.append(stats.norm.cdf((gap - margin) / error))
        assert_sizes(melded, LEVELS[:2])
        with pytest.raises(AssertionError):
            assert_sizes(normal, LEVELS[:1])


def weighted_design(case):
    """Events of 5 % by weight, 100 rows and 1,960: log-sd 1.5 of weights in one group or both."""
    spreads = {"same": (1.5, 1.5), "light": (1.5, 0.3), "heavy": (0.3, 1.5)}
    first, second = spreads.get(case, (1.5, 0.0))
    # E w^1.5 / E w of lognormal weights.
    slope = 0.05 / math.exp(0.625 * 1.5**2)

    def groups(rng):
        weights = [rng.lognormal(0, s, n) for s, n in ((first, 100), (second, 1_960))]
        rates = [np.full(100, 0.05), np.full(1_960, 0.05)]
        if case == "informative":
            rates[0] = np.minimum(slope * np.sqrt(weights[0]), 1)
        return [(rng.random(len(rate)) < rate).astype(float) for rate in rates], weights

    return groups


@pytest.mark.calibration
class TestWeightedProportions:
    @pytest.mark.parametrize("case", ["same", "light", "heavy", "informative"])
    def test_size_and_coverage(self, case):
        groups, rate = weighted_design(case), fa.metrics.get("selection_rate")
        rng, pvalues, missed = np.random.default_rng(7), [], []
        for audit in range(1_000):
            labels, weights = groups(rng)
            made = melding(labels, rate, weights)
            assert made.applies(PAIR)
            drawn = made.draw(draws(MANY, audit), CALL)
            pvalues.append(drawn.pvalue(PAIR))
            low, high = drawn.value_interval(0, 0.95)
            missed.append(not low <= 0.05 <= high)
        assert_sizes(pvalues)
        assert np.mean(missed) <= band(0.05, len(missed))

    @pytest.mark.parametrize("case", ["light", "informative"])
    def test_the_permutation_and_the_bootstrap_do_not_hold(self, case):
        groups, rng = weighted_design(case), np.random.default_rng(8)
        old, broken = [], []
        for seed in range(600):
            labels, weights = groups(rng)
            old.append(studentized_permutation(labels, seed, weights))
            blind = without_the_extra_row(labels[0], weights[0], rng)
            limits = gaffke(labels[1], MANY, weight=weights[1], group=1, seed=seed)
            broken.append(inference.melded_pvalue(blind, limits))
        for pvalues in (old, broken):
            with pytest.raises(AssertionError):
                assert_sizes(pvalues, [0.05])


def scored_design(rates, case):
    """Labels of 40 and 1,960 rows and scores that are right, or flattened with the right mean."""

    def laws(rate):
        z = np.random.default_rng(0).normal(size=400_000)

        def center(slope, wanted):
            low, high = -12.0, 12.0
            for _ in range(60):
                middle = (low + high) / 2
                below = special.expit(middle + slope * z).mean() < wanted
                low, high = (middle, high) if below else (low, middle)
            return low

        return center(1.0, rate), center(0.5, rate)

    centers = [laws(rate) for rate in rates]

    def groups(rng):
        made = []
        for (right, flat), n in zip(centers, (40, 1_960), strict=True):
            z = rng.normal(size=n)
            law = special.expit(right + z)
            score = law if case == "right" else special.expit(flat + 0.5 * z)
            made.append(((rng.random(n) < law).astype(float), score))
        return made

    return groups


@pytest.mark.calibration
class TestScores:
    @pytest.mark.parametrize("case", ["right", "flattened"])
    @pytest.mark.parametrize("rates", [(0.03, 0.29), (0.05, 0.05)])
    def test_size_and_coverage(self, rates, case):
        groups, rng = scored_design(rates, case), np.random.default_rng(9)
        pvalues, missed = [], []
        for audit in range(1_000):
            made = groups(rng)
            label, score = (np.concatenate(part) for part in zip(*made, strict=True))
            residuals = [y - s for y, s in made]
            groups_ = melding(residuals, RESIDUAL, y_true=label, y_score=score)
            assert groups_.method == "poisson-binomial"
            drawn = groups_.draw(draws(MANY, audit), CALL)
            pvalues.append(drawn.pvalue(PAIR))
            low, high = drawn.value_interval(0, 0.95)
            missed.append(not low <= 0 <= high)
        assert_sizes(pvalues)
        assert np.mean(missed) <= band(0.05, len(missed))

    def test_the_permutation_of_residuals_does_not_hold(self):
        groups, rng = scored_design((0.03, 0.29), "right"), np.random.default_rng(10)
        old = []
        for seed in range(300):
            old.append(studentized_permutation([y - s for y, s in groups(rng)], seed))
        for level in LEVELS[:2]:
            with pytest.raises(AssertionError):
                assert_sizes(old, [level])
