"""How well a Pareto law describes a tail: variation, goodness of fit, quantiles, thresholds."""

import math

import numpy as np
import pytest
from scipy import stats

from fairaudit_rs import _native, errors
from fairaudit_rs.extremes.diagnostics import (
    CvTest,
    cv_test,
    goodness_of_fit,
    quantile_rows,
    stability_rows,
    threshold_sequence,
    zhang_stephens,
)

from ..reference import extremes as reference
from .test_gev import golden_rows

CALL = _native.Call(1)
XIS = [-0.5, -0.2, 0.0, 0.1, 0.2, 0.3, 0.5]


def gpd_rows(xi, shape, seed=0):
    e = np.random.default_rng(seed).standard_exponential(shape)
    return reference.exponential_to_gpd(e, xi)


def draws(n=199, seed=1, **options):
    return _native.Draws(n, seed=seed, **options)


#: Shape and scale of 100 excesses of rows by a formula, by pyextremes 2.6.1 (scipy 1.17.1), with
#: the log likelihood. It stops early.
PYEXTREMES = {
    "exponential": (
        -np.log(golden_rows(2)),
        (-0.11485822129685663, 1.0751753757193412, -95.76496600621991),
    ),
    "power": (
        golden_rows(3) ** -0.25,
        (0.09937481760849576, 0.5597278834125284, -51.90172342026255),
    ),
    "bounded": (
        1 - golden_rows(5) ** 0.4,
        (-0.5065199059180596, 0.12982030804768785, 154.8163414094526),
    ),
}


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"level": 0.975}, "level is 0.975; accepted: 0.9, 0.95 or 0.99"),
            ({"compat": "raw"}, "compat is 'raw'; accepted: 'paper'"),
            ({"first": 9}, "first is 9; accepted: a whole number from 10 to 99"),
            ({"last": 100}, "last is 100; accepted: a whole number from 10 to 99"),
            ({"last": 2.5}, "last is 2.5; accepted"),
        ],
    )
    def test_the_variation(self, options, message):
        with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match=message):
            cv_test(np.arange(100.0), **options)

    def test_the_variation_of_few_rows(self):
        with pytest.raises(errors.NotMeasurableError, match=r"values has 10 rows; .* at least 11"):
            cv_test(np.arange(10.0))

    @pytest.mark.parametrize("bad", [[1.0], [1.0, 0.0], [1.0, -2.0], [1.0, math.inf]])
    def test_excesses_are_above_zero(self, bad):
        for function in (lambda y: goodness_of_fit(y, draws()), zhang_stephens):
            with pytest.raises(errors.ArgumentError, match="excesses is"):
                function(np.array(bad))

    def test_numbers_of_exceedances(self):
        rows = np.arange(20.0)
        for bad in ([20], [1]):
            accepted = f"ks is {bad[0]}; accepted: a whole number from 2 to 19"
            with pytest.raises(errors.ArgumentError, match=accepted):
                stability_rows(rows, bad, 100)
            with pytest.raises(errors.ArgumentError, match=accepted):
                threshold_sequence(rows, bad, draws())
            with pytest.raises(errors.ArgumentError, match=f"k is {bad[0]}; accepted: 2 to 19"):
                _native.tail_stability(rows, bad, 100.0, CALL)
        with pytest.raises(errors.ArgumentError, match="m is 1; accepted"):
            stability_rows(rows, [10], 1)
        with pytest.raises(errors.ArgumentError, match="values is NaN; accepted: finite"):
            stability_rows(np.r_[rows, np.nan], [10], 100)

    def test_levels(self):
        with pytest.raises(errors.ArgumentError, match=r"rate is 1\.5"):
            threshold_sequence(np.arange(20.0), [10], draws(), rate=1.5)
        with pytest.raises(errors.ArgumentTypeError, match="level is 'high'"):
            cv_test(np.arange(100.0), level="high")
        for bad, message in (
            ((np.ones(3), 0.1, -1.0), "scale is -1"),
            ((np.ones(3), math.nan, 1.0), "shape is NaN"),
            ((np.array([1.0, math.nan]), 0.1, 1.0), "excesses is NaN"),
        ):
            with pytest.raises(errors.ArgumentError, match=message):
                quantile_rows(*bad)
        with pytest.raises(errors.ArgumentError, match="confidence_level is 0"):
            quantile_rows(np.ones(3), 0.0, 1.0, confidence_level=0)


class TestKnownValues:
    @pytest.mark.parametrize("name", PYEXTREMES)
    def test_pyextremes(self, name):
        rows, (shape, scale, log_likelihood) = PYEXTREMES[name]
        (row,) = stability_rows(rows, [100], 1_000)
        y = reference.excesses(rows, 100)[1]
        assert (row.shape, row.scale) == pytest.approx((shape, scale), abs=2e-4)
        value = float(reference.gpd_log_likelihood(y, row.shape, row.scale))
        assert log_likelihood - 1e-9 <= value < log_likelihood + 1e-5

    def test_critical_values(self):
        # 20,000 sequences of the reference: 0.008 is above four standard errors.
        for k in (10, 50, 499):
            for level in (0.9, 0.95):
                first, table = _native.critical_variations(level)
                expected = reference.cv_critical(k, level, 20_000, seed=k)
                assert table[k - first] == pytest.approx(expected, abs=0.016 if k == 10 else 0.008)
        assert (first, len(table)) == (10, 490)

    def test_forward_stop(self):
        for pvalues in ([0.01, 0.02, 0.9, 0.9], [0.9, 0.01], [0.01, 0.12, 0.001], [], [1.0]):
            assert _native.forward_stop(pvalues, 0.05) == reference.forward_stop(pvalues)

    def test_what_the_variation_says(self):
        rows = np.random.default_rng(1).random(500)
        assert cv_test(rows).summary() == (
            "Not shown to be heavier than an exponential tail (k = 10 to 50)."
        )
        heavy = cv_test(rows**-2.0)
        assert heavy.passes is False
        assert heavy.summary().startswith(f"Heavier than an exponential tail for {heavy.n_above} ")
        tied = cv_test(np.r_[rows, np.full(30, 2.0)])
        assert tied.passes is None
        assert tied.summary() == ("Not measurable for 20 of k = 10 to 50: all values are tied.")

    def test_at_the_edge_there_is_no_test(self):
        found = goodness_of_fit(1 - np.random.default_rng(2).random(60) ** 3, draws())
        assert found.shape == -1.0
        assert math.isnan(found.statistic)
        assert math.isnan(found.pvalue)
        assert found.summary() == (
            "Goodness of fit is not measurable: the fit is at the edge, shape -1, where the "
            "statistic is infinite."
        )

    def test_replicates_at_the_edge_are_left_out(self):
        rows = gpd_rows(-0.7, 40, 3)
        found = goodness_of_fit(rows, draws(999))
        assert found.n_at_edge > 100
        *_, n_extreme, n_at_edge = _native.tail_goodness(rows, draws(999), CALL)
        assert n_at_edge == found.n_at_edge
        assert found.pvalue == (1 + n_extreme - n_at_edge) / (1_000 - n_at_edge)
        assert f"{found.n_at_edge} of 999 replicates are at the edge" in found.summary()

    def test_tied_thresholds_have_no_fit(self):
        rows = np.r_[np.zeros(20), np.ones(10), 1 + gpd_rows(0.1, 30, 4)]
        found = stability_rows(rows, [30, 35, 20], 100)
        assert [math.isnan(row.shape) for row in found] == [False, True, False]
        assert [row.threshold for row in found[:2]] == [1.0, 1.0]
        sequence = threshold_sequence(rows, [35, 20, 30], draws(99))
        assert [test.n_exceedances for test in sequence.tests] == [35, 30, 20]
        assert sequence.tests[0].reason == "excesses are tied with the threshold"
        assert sequence.n_exceedances in (30, 20)


class TestReference:
    @pytest.mark.parametrize("xi", [-0.5, 0.0, 0.5])
    def test_coefficients_of_variation(self, xi):
        rows = gpd_rows(xi, 300, 5) + 2
        found, raw = cv_test(rows, last=120), cv_test(rows, last=120, compat="paper")
        ks = range(10, 121)
        assert found.ks.tolist() == list(ks)
        np.testing.assert_allclose(found.values, [reference.residual_cv(rows, k) for k in ks])
        np.testing.assert_allclose(raw.values, [reference.raw_cv(rows, k) for k in ks])
        np.testing.assert_allclose(raw.critical, [1 + 1.96 / math.sqrt(k) for k in ks])
        assert raw.passes == reference.passes_cv(rows, last=120, cv=reference.raw_cv)

    @pytest.mark.parametrize("xi", [-0.3, 0.0, 0.4])
    def test_anderson_and_darling(self, xi):
        y = gpd_rows(xi, 60, 6)
        found = goodness_of_fit(y, draws(1_999))
        expected, pvalue = reference.anderson_darling_test(y, 1_999)
        assert found.statistic == pytest.approx(expected, abs=1e-6)
        se = math.sqrt(2 * max(pvalue * (1 - pvalue), 0.01) / 1_999)
        assert found.pvalue == pytest.approx(pvalue, abs=4.9 * se)

    def test_anderson_and_darling_of_heaped_excesses(self):
        y = np.concatenate([gpd_rows(0.2, 60, 24), np.linspace(0.99, 1.01, 60)])
        assert goodness_of_fit(y, draws()).pvalue == 1 / 200

    @pytest.mark.parametrize("xi", [-0.5, 0.0, 0.3])
    def test_zhang_and_stephens(self, xi):
        for n in (15, 78, 500):
            y = gpd_rows(xi, n, 7)
            assert zhang_stephens(y) == pytest.approx(reference.zhang_stephens(y), rel=1e-10)

    @pytest.mark.parametrize("xi", [-0.4, 0.0, 0.4])
    @pytest.mark.parametrize("confidence", [0.95, 0.8])
    def test_quantiles(self, xi, confidence):
        y = gpd_rows(xi, 50, 8)
        rows = quantile_rows(y, xi, 1.3, confidence_level=confidence)
        found = [[row.observed, row.fitted, row.low, row.high] for row in rows]
        expected = reference.quantile_plot(y, xi, 1.3, confidence)
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_stability(self):
        rows = np.random.default_rng(9).beta(2, 4, 500)
        t = reference.to_t(rows, 1.0)
        ks = [60, 17, 34]
        found = [
            [row.n_exceedances, row.threshold, row.shape, row.scale, row.level]
            for row in stability_rows(t, ks, 500)
        ]
        expected = reference.stability(t, 500, ks)
        np.testing.assert_allclose(found, expected, atol=1e-5)

    def test_a_sequence_of_thresholds(self):
        rows = np.r_[np.random.default_rng(10).normal(0, 1, 2_000), np.full(200, 0.7)]
        rows += 1e-6 * np.arange(2_200)
        sequence = threshold_sequence(rows, [60, 100, 500, 800], draws(499))
        assert [test.n_exceedances for test in sequence.tests] == [800, 500, 100, 60]
        known = [test.pvalue for test in sequence.tests if not test.reason]
        assert sequence.n_rejected == reference.forward_stop(known) == 2
        assert sequence.n_exceedances == 100
        alone = goodness_of_fit(reference.excesses(rows, 100)[1], draws(499))
        assert sequence.tests[2] == alone


class TestProperties:
    def test_shift_and_scale_and_order(self):
        rows = gpd_rows(0.1, 400, 11)
        one, other = cv_test(rows), cv_test(rows[::-1] * 8 - 16)
        np.testing.assert_allclose(other.values, one.values, rtol=1e-12)
        assert zhang_stephens(8 * rows)[0] == pytest.approx(zhang_stephens(rows)[0])
        first, second = (stability_rows(x, [30, 60], 800) for x in (rows, rows[::-1]))
        assert first == second
        assert goodness_of_fit(rows, draws()) == goodness_of_fit(rows[::-1].copy(), draws())

    def test_threads_change_no_bit(self):
        y = gpd_rows(0.1, 100, 12)
        one, other = (goodness_of_fit(y, draws(499), _native.Call(n)) for n in (1, 2))
        assert one == other
        ks = list(range(5, 90))
        one, other = (stability_rows(y, ks, 300, _native.Call(n)) for n in (1, 2))
        assert one == other

    def test_replicates_are_those_of_their_index(self):
        y = gpd_rows(0.1, 60, 13)

        def n_extreme(**options):
            return _native.tail_goodness(y, draws(**options), CALL)[4]

        assert n_extreme(n=300) == n_extreme(n=120) + n_extreme(n=180, first=120)
        assert n_extreme(n=2_000) != n_extreme(n=2_000, series=1)

    def test_the_band_holds_most_rows_of_the_law(self):
        held = [
            row.low <= row.observed <= row.high
            for seed in range(400)
            for row in quantile_rows(gpd_rows(0.2, 30, seed), 0.2, 1.0)
        ]
        assert 0.93 < np.mean(held) < 0.97

    def test_a_test_is_frozen(self):
        with pytest.raises(TypeError):
            CvTest(np.ones(1))


def passes(values, residual):
    """Pass rates of tails (rows) for k from 10 to 50 against 1 + 1.96 / sqrt k."""
    ks = list(range(10, 51))
    bound = 1 + 1.96 / np.sqrt(ks)
    found = [_native.tail_variations(value, ks, residual, CALL) for value in values]
    return (np.array(found) < bound).all(axis=1)


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("xi", "residual", "raw"),
    list(
        zip(
            XIS,
            [1.0, 0.997, 0.927, 0.806, 0.645, 0.470, 0.200],
            [1.0, 1.0, 1.0, 1.0, 1.0, 0.993, 0.847],
            strict=True,
        )
    ),
)
def test_pass_rates_of_the_coefficient_of_variation(xi, residual, raw):
    """The statistics' own figures, of 2,000 simulations or more, n = 2,000."""
    n = 2_000
    rows = gpd_rows(xi, (n, 2_000), 14)
    for is_residual, share in ((True, residual), (False, raw)):
        se = math.sqrt(max(share * (1 - share), 0.002) * 2 / n)
        assert passes(rows, is_residual).mean() == pytest.approx(share, abs=4.9 * se)


def rejections(xi, pvalues, n=1_500):
    """How many of n samples of 34 excesses are rejected at 5 % by each p-value."""
    samples = (gpd_rows(xi, 34, [15, seed]) for seed in range(n))
    found = np.array([pvalues(y, seed) for seed, y in enumerate(samples)])
    return (found <= 0.05).sum(axis=0)


@pytest.mark.calibration
@pytest.mark.parametrize("xi", [-0.2, 0.0, 0.3])
def test_the_size_of_anderson_and_darling(xi):
    """5 % at k = 34; not with parameters held fixed in the bootstrap."""
    n = 1_500

    def fitted_again(y, seed):
        return [goodness_of_fit(y, draws(199, seed=seed), CALL).pvalue]

    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, 0.05)
    assert low <= rejections(xi, fitted_again, n)[0] <= high

    rng = np.random.default_rng(16)

    def held_fixed(y, _):
        shape, scale, _, statistic, *_ = _native.tail_goodness(y, draws(1), CALL)
        drawn = scale * reference.exponential_to_gpd(rng.standard_exponential((199, 34)), shape)
        found = reference.anderson_darling(drawn, np.full(199, shape), np.full(199, scale))
        return [(1 + np.sum(found >= statistic)) / 200]

    assert not low <= rejections(xi, held_fixed, n)[0] <= high


@pytest.mark.calibration
def test_an_automatic_threshold_loses_the_coverage():
    """Student's t with 4 degrees of freedom, n = 500, m = 2,000, 95 % intervals of 400 samples.

    A fixed k covers; a threshold of the sequence of tests, with cuts of its own k, does not.
    """
    law, n, m, n_samples = stats.t(4), 500, 2_000, 400
    ks, default = [20, 34, 50, 75, 110, 160, 230], _native.default_exceedances(500)
    cuts = {
        k: _native.simulate_level_cuts(k, [(m * k / n, float(n))], draws(1_000), CALL)[0]
        for k in ks
    }
    level, fixed, chosen = law.isf(1 / m), 0, 0
    for seed, rows in enumerate(law.rvs((n_samples, n), random_state=np.random.default_rng(17))):
        values = _native.TailValues(rows, CALL)

        def covers(k, values=values):
            low, high = values.fit(k, None, None).interval(m, 0.95, cuts[k], CALL)
            return low <= level <= high

        fixed += covers(default)
        sequence = threshold_sequence(rows, ks, draws(99, seed=seed), call=_native.Call(2))
        chosen += covers(sequence.n_exceedances or min(ks))
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n_samples, 0.95)
    assert low <= fixed <= high
    assert not low <= chosen <= high
