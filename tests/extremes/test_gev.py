"""Block maxima, their extreme value law, and its return levels."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from fairaudit_rs import _native, errors
from fairaudit_rs.extremes.gev import BlockMaxima, block_maxima, fit_gev, gev_of_excesses

from ..reference import extremes as reference

SHAPES = [-0.7, -0.3, 0.0, 0.2, 0.8]


def sample(shape, n=60, seed=0, scale=0.5, location=2.0):
    rng = np.random.default_rng(seed)
    return stats.genextreme(-shape, loc=location, scale=scale).rvs(n, random_state=rng)


def fit(maxima, size=50.0, **options):
    return fit_gev(BlockMaxima(maxima=np.asarray(maxima, dtype=float), block_size=size), **options)


def golden_rows(power):
    """Evenly spread numbers in (0, 1), by multiples of a root."""
    return (np.arange(1, 2_001) * math.sqrt(power)) % 1 * 0.999 + 0.0005


#: Rows by a formula, with fits of pyextremes 2.6.1 (scipy 1.17.1): location, scale, shape of the
#: maxima of blocks of 40 rows, log likelihood. It stops early: 1e-3 of a parameter.
PYEXTREMES = {
    "exponential": (
        -np.log(golden_rows(2)),
        (4.035735058231793, 0.5103743277986148, 0.36406228827150544, -55.38598413707528),
    ),
    "power": (
        golden_rows(3) ** -0.25,
        (2.786268952674059, 0.4137296798176907, 0.26967874269214714, -42.49950192875973),
    ),
    "bounded": (
        1 - golden_rows(5) ** 0.4,
        (0.7994308162319637, 0.06017637183085353, -0.32504166072268303, 70.4164258836603),
    ),
}


class TestArguments:
    @pytest.mark.parametrize("given", [{}, {"blocks": [1] * 40, "block_size": 4}])
    def test_blocks_are_given_in_one_way(self, given):
        with pytest.raises(errors.ArgumentTypeError, match=r"Pass either blocks .* or block_size"):
            block_maxima(np.arange(40.0), **given)

    def test_a_block_size_is_a_whole_number(self):
        with pytest.raises(errors.ArgumentError, match="block_size is 0; accepted"):
            block_maxima(np.arange(40.0), block_size=0)

    def test_labels_are_one_per_row(self):
        with pytest.raises(
            errors.ArgumentError, match=r"blocks has shape \(3,\); accepted: a labe"
        ):
            block_maxima(np.arange(40.0), blocks=[1, 2, 3])

    def test_blocks_are_of_about_equal_sizes(self):
        labels = np.r_[np.repeat(np.arange(12), 3), 99]
        with pytest.raises(errors.ArgumentError, match=r"labels of 1 to 3 rows\. Use"):
            block_maxima(np.arange(37.0), blocks=labels)

    def test_values_are_finite(self):
        with pytest.raises(errors.ArgumentError, match="values has missing or infinite entries"):
            block_maxima([1.0, np.nan], block_size=1)

    def test_few_blocks_are_refused(self):
        with pytest.raises(errors.NotMeasurableError, match=r"9 blocks of rows; .* at least 10"):
            block_maxima(np.arange(39.0), block_size=4)

    def test_equal_maxima_are_refused(self):
        with pytest.raises(errors.NotMeasurableError, match="all 10 blocks are 1: there is no"):
            block_maxima(np.ones(40), block_size=4)

    @pytest.mark.parametrize(
        "maxima", [np.repeat([1.0, 2.0, 3.0, 4.0], 9), np.r_[np.ones(30), np.arange(20.0)]]
    )
    def test_maxima_on_few_values_are_refused(self, maxima):
        with pytest.raises(
            errors.NotMeasurableError, match=r"distinct values, .* times. Use larger"
        ):
            fit(maxima)

    @pytest.mark.parametrize(
        ("labels", "kind"), [([None, "a"] * 20, "None"), ([math.nan] * 40, "missing")]
    )
    def test_labels_are_there(self, labels, kind):
        with pytest.raises(
            (errors.ArgumentError, errors.ArgumentTypeError), match=r"blocks has .*labels"
        ):
            block_maxima(np.arange(40.0), blocks=labels)

    @pytest.mark.parametrize("m", [1, 0.5])
    def test_a_horizon_is_above_one_row(self, m):
        with pytest.raises(errors.ArgumentError, match=rf"m is {m}; accepted: a finite .* above 1"):
            fit(sample(0.1)).return_level(m)

    def test_a_threshold_is_within_the_law(self):
        found = fit(sample(-0.3))
        assert found.shape < 0
        with pytest.raises(errors.ArgumentError, match="accepted: a number below"):
            found.excesses(found.endpoint + 0.1)

    @pytest.mark.parametrize(
        ("maxima", "message"),
        [
            ([1.0, 2.0], "maxima is 2 numbers; accepted: at least 4 finite"),
            ([1.0, 2.0, math.inf, 3.0], "maxima is from 1 to inf"),
            ([1.0] * 5, "maxima is 5 numbers equal to 1"),
        ],
    )
    def test_the_native_fit_refuses(self, maxima, message):
        with pytest.raises(errors.ArgumentError, match=message):
            _native.gev_fit(np.array(maxima), _native.Call())


class TestKnownValues:
    def test_blocks_of_rows(self):
        rows = np.arange(43.0) * 17 % 43
        found = block_maxima(rows, block_size=4)
        assert found.maxima.tolist() == reference.block_maxima(rows, 4).tolist()
        [note] = found.notes
        assert note.text == "the last 3 rows are no whole block and were excluded"

    def test_labelled_blocks_may_lie_anywhere(self):
        rows, labels = np.arange(40.0) * 17 % 40, np.arange(40) % 10
        found = block_maxima(rows, blocks=[f"day {label}" for label in labels])
        assert found.maxima.tolist() == [rows[labels == number].max() for number in range(10)]
        assert (found.block_size, found.notes) == (4.0, ())
        uneven = block_maxima(np.append(rows, 3.0), blocks=np.append(labels, 0))
        [note] = uneven.notes
        assert note.text == "blocks have 4 to 5 rows; return levels take their mean, 4.1"

    @pytest.mark.parametrize("name", PYEXTREMES)
    def test_pyextremes(self, name):
        rows, (location, scale, shape, log_likelihood) = PYEXTREMES[name]
        found = fit_gev(block_maxima(rows, block_size=40))
        assert found.law == pytest.approx((location, scale, shape), abs=2e-4)
        assert log_likelihood - 1e-9 <= found.log_likelihood < log_likelihood + 1e-5

    def test_the_edge_has_a_formula(self):
        rng = np.random.default_rng(3)
        maxima = 1 - rng.random(40) ** 3
        found = fit(maxima)
        width = np.mean(maxima.max() - maxima)
        assert (found.end, found.shape) == ("lowest shape", -1.0)
        assert found.law == pytest.approx((maxima.max() - width, width, -1.0))
        assert found.log_likelihood == pytest.approx(-40 * (math.log(width) + 1))
        assert found.endpoint == pytest.approx(maxima.max())
        assert np.isnan(found.standard_errors).all()
        assert np.isnan(found.slope)
        assert "the law ends at the largest" in found.reason
        assert found.reason in found.warnings
        low, high = found.return_level(1_000)[1:]
        assert low < found.return_level(1_000)[0] <= high

    def test_below_minus_a_half_there_are_no_standard_errors(self):
        found = fit(sample(-0.75, 200))
        assert found.end == "converged"
        assert found.shape < -0.5
        assert np.isnan(found.standard_errors).all()
        assert "not above -0.5" in found.reason

    def test_the_highest_shape(self):
        found = fit(np.exp(np.exp(np.linspace(0, 4, 12))))
        assert (found.end, found.shape) == ("highest shape", pytest.approx(3.0))

    def test_the_sentence(self):
        found = fit(sample(-0.3))
        assert str(found).startswith("The maxima of 60 blocks of 50 rows follow an extreme value")
        assert "standard error" in str(found)
        assert "so it ends at" in str(found)


class TestReference:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("n", [15, 80])
    def test_the_fit(self, shape, n):
        maxima = sample(shape, n, seed=21)
        found = fit(maxima)
        location, scale, xi, log_likelihood = reference.fit_gev(maxima)
        if xi < -1:
            # The reference climbs past the edge.
            assert found.end == "lowest shape"
            return
        assert found.end == "converged"
        assert found.slope < 1e-12
        assert found.law == pytest.approx((location, scale, xi), abs=1e-6)
        assert found.log_likelihood == pytest.approx(log_likelihood, abs=1e-9)

    @pytest.mark.parametrize("shape", [-0.4, 0.0, 0.3])
    def test_scipy(self, shape):
        maxima = sample(shape, 80, seed=4)
        found = fit(maxima)
        start = stats.genextreme.fit(maxima)

        def loss(parameters):
            c, location, log_scale = parameters
            return -stats.genextreme.logpdf(maxima, c, location, math.exp(log_scale)).sum()

        # scipy stops early: its optimum is polished.
        options = {"xatol": 1e-11, "fatol": 1e-13, "maxiter": 9_000, "maxfev": 9_000}
        point = np.array([start[0], start[1], math.log(start[2])])
        for _ in range(4):
            point = optimize.minimize(loss, point, method="Nelder-Mead", options=options).x
        polished = (point[1], math.exp(point[2]), -point[0])
        assert found.law == pytest.approx(polished, abs=1e-6)

    @pytest.mark.parametrize("shape", [-0.3, 0.0, 0.3])
    def test_standard_errors_are_the_curvature(self, shape):
        maxima = sample(shape, 80, seed=5)
        found = fit(maxima)
        point, h = np.array(found.law), 1e-4

        def value(*steps):
            return reference.gev_log_likelihood(maxima, point + h * np.sum(steps, axis=0))

        units = np.eye(3)
        information = [
            [
                -(value(a, b) - value(a, -b) - value(-a, b) + value(-a, -b)) / (4 * h * h)
                for a in units
            ]
            for b in units
        ]
        expected = np.sqrt(np.diag(np.linalg.inv(information)))
        np.testing.assert_allclose(found.standard_errors, expected, rtol=1e-4)

    @pytest.mark.parametrize("shape", [-0.3, 0.0, 0.4])
    def test_pareto_and_extreme_value_laws_are_each_other(self, shape):
        law = gev_of_excesses(0.2, 0.7, shape, 12.0)
        assert law == pytest.approx(reference.gev_of_gpd(0.2, shape, 0.7, 12.0))
        assert _native.gev_excesses(law, 0.2) == pytest.approx((0.7, 12.0))
        assert _native.gev_excesses(law, 0.5) == pytest.approx(
            reference.gpd_of_gev(*law[:2], shape, 0.5)
        )

    def test_the_point_process_form_is_the_pareto_fit(self):
        rows = np.random.default_rng(22).exponential(0.3, 500)
        u, y = reference.excesses(rows, 34)
        shape, scale, *_ = _native.tail_goodness(y, _native.Draws(1, seed=1), _native.Call())
        expected = reference.fit_point_process(u + y, u, 5)[:3]
        assert gev_of_excesses(u, scale, shape, 34 / 5) == pytest.approx(expected, abs=1e-5)

    @pytest.mark.parametrize("shape", [-0.4, 0.0, 0.5])
    def test_the_return_level_and_its_interval(self, shape):
        maxima = sample(shape, 40, seed=6)
        found = fit(maxima, size=25.0)
        level, low, high = found.return_level(700)
        assert level == pytest.approx(reference.gev_return_level(*found.law, 25, 700))
        growth = float(reference.growth(found.shape, 1 / (-25 * math.log1p(-1 / 700))))
        assert level == pytest.approx(found.location + found.scale * growth)
        for limit in (low, high):
            # Nuisance parameters are climbed by the reference's own means.
            def fixed(p, limit=limit):
                xi, scale = p[0], math.exp(p[1])
                if not -1 < xi < 3:
                    return -math.inf
                odds = 1 / (-25 * math.log1p(-1 / 700))
                location = limit - scale * float(reference.growth(xi, odds))
                return reference.gev_log_likelihood(maxima, (location, scale, xi))

            starts = [[xi, math.log(w)] for xi in (-0.3, 0.01, 0.5) for w in (0.3, 0.6, 1.2)]
            starts = [start for start in starts if math.isfinite(fixed(start))]
            most = max(reference.climb(fixed, start)[1] for start in starts)
            fall = 2 * (found.log_likelihood - most)
            assert fall == pytest.approx(stats.chi2.ppf(0.95, 1), abs=1e-6)


class TestProperties:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_neither_order_nor_threads_change_a_bit(self, shape):
        maxima = sample(shape, 40, seed=7)
        one, other = fit(maxima), fit(maxima[::-1], call=_native.Call(2))
        assert one.law == other.law
        assert one.return_level(500) == other.return_level(500)

    def test_shift_and_scale(self):
        maxima = sample(0.2, 40, seed=8)
        one, other = fit(maxima), fit(1e-6 * maxima - 3)
        assert other.shape == pytest.approx(one.shape, abs=1e-7)
        assert other.scale == pytest.approx(1e-6 * one.scale, rel=1e-6)
        expected = 1e-6 * np.array(one.return_level(500)) - 3
        np.testing.assert_allclose(other.return_level(500), expected, rtol=0, atol=1e-11)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_levels_grow_with_the_horizon_and_lie_in_their_intervals(self, shape):
        found = fit(sample(shape, 40, seed=9))
        rows = np.array([found.return_level(m) for m in (2, 10, 100, 1_000, 10_000)])
        assert (np.diff(rows[:, 0]) > 0).all()
        assert ((rows[:, 1] < rows[:, 0]) & (rows[:, 0] < rows[:, 2])).all()
        wider = np.array(fit(sample(shape, 40, seed=9), confidence_level=0.99).return_level(100))
        assert wider[1] < rows[2, 1]
        assert wider[2] > rows[2, 2]

    def test_tied_maxima_have_a_fit(self):
        found = fit(np.round(sample(0.1, 60, seed=10), 1))
        assert found.end == "converged"
        assert abs(found.shape - fit(sample(0.1, 60, seed=10)).shape) < 0.1

    def test_a_far_outlier_has_a_fit(self):
        maxima = sample(0.1, 59, seed=11)
        for outlier in (1e3, 1e8, 1e15):
            found = fit(np.r_[maxima, outlier])
            assert found.end == "converged"
            assert found.slope < 1e-9
            expected = reference.gev_log_likelihood(np.r_[maxima, outlier], found.law)
            assert found.log_likelihood == pytest.approx(expected, abs=1e-6)
            assert found.return_level(100)[2] > found.return_level(100)[0]


@pytest.mark.calibration
def test_the_shape_is_within_its_standard_errors():
    """95 % intervals of 3,000 fits to 100 maxima; with half the standard error they fail."""
    rng, covered, halved, n = np.random.default_rng(12), 0, 0, 3_000
    for maxima in stats.genextreme(-0.1).rvs((n, 100), random_state=rng):
        found = fit(maxima)
        away = abs(found.shape - 0.1) / found.standard_errors[2]
        covered += away < 1.96
        halved += away < 0.98
    # Asymptotic: between 93 and 96 % at this size.
    low, high = stats.binom.ppf(1e-6, n, 0.93), stats.binom.ppf(1 - 1e-6, n, 0.96)
    assert low <= covered <= high
    assert not low <= halved <= high
