"""The kernels of tails against the slow reference, and against what else is known of them."""

import importlib.util
import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

from fairaudit_rs import _native, errors
from fairaudit_rs.extremes.comparison import distribution_free_limits, fewest_rows
from fairaudit_rs.extremes.problem import TailProblem

from ..reference import extremes as reference
from ..reference.extremes_designs import beta, mixture


def compare_levels(first, second, m, confidence, call):
    """Of two sides alone."""
    return _native.compare_levels([first, second], [(0, 1)], m, confidence, call)[0]


CALL = _native.Call(1)
ROOT = Path(__file__).resolve().parents[2]
NODES, PROBABILITIES = (np.array(part) for part in _native.cut_grid())
SHAPES = [-0.6, -0.3, 0.0, 0.2, 0.8]
LAWS = {
    "uniform": lambda rng, n: rng.random(n),
    "beta": lambda rng, n: rng.beta(2, 4, n),
    "exponential": lambda rng, n: rng.standard_exponential(n),
    "t4": lambda rng, n: rng.standard_t(4, n),
}
#: Cuts of a made-up law: smooth, and unlike the normal one.
MADE_UP = np.array(
    [-0.3 * xi + (1 + 0.1 * xi) * reference.SCORES - 0.05 * reference.SCORES**2 for xi in NODES]
)


def excesses(shape, k=60, seed=0, scale=0.5):
    e = np.random.default_rng([seed, k]).standard_exponential(k)
    return scale * reference.exponential_to_gpd(e, shape)


def tail_of(y, n=None, u=0.0):
    """The native fit of excesses: those and the threshold, among n rows."""
    n = 10 * len(y) if n is None else n
    below = u - 1 - np.arange(n - len(y) - 1.0)
    values = _native.TailValues(np.concatenate([u + y, [u], below]), CALL)
    return values.fit(len(y), None, None)


def tail_values(values):
    return _native.TailValues(np.asarray(values, dtype=float), CALL)


def same_bits(first, second):
    return np.asarray(first, dtype=float).tobytes() == np.asarray(second, dtype=float).tobytes()


# -- Arguments -------------------------------------------------------------------------------------


class TestArguments:
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_values_are_finite(self, bad):
        with pytest.raises(errors.ArgumentError, match=r"values is (NaN|inf|-inf) in row 1; accep"):
            tail_values([0.1, bad, 0.2])

    def test_there_are_values(self):
        with pytest.raises(errors.ArgumentError, match="values is empty"):
            tail_values([])

    def test_exceedances_are_fewer_than_values(self):
        with pytest.raises(errors.ArgumentError, match="n_exceedances is 20; accepted: at most 19"):
            tail_values(np.arange(20.0)).fit(20, None, None)

    def test_five_exceed_the_threshold(self):
        tied = np.repeat([0.0, 1.0, 2.0], [20, 4, 4])
        with pytest.raises(errors.ArgumentError, match="n_exceedances is 4; accepted: at least 5"):
            tail_values(tied).fit(6, None, None)
        with pytest.raises(errors.ArgumentError, match="n_exceedances is 0"):
            tail_values(np.ones(50)).fit(20, None, None)
        with pytest.raises(errors.ArgumentError, match="n_exceedances is 3"):
            tail_values(np.arange(50.0)).fit_over(46.0, None)

    @pytest.mark.parametrize("upper", [1.0, 0.5])
    def test_values_stay_below_the_upper_end(self, upper):
        values = np.linspace(0, 1, 100)
        with pytest.raises(errors.ArgumentError, match=r"upper is .* more than the largest value"):
            tail_values(values).fit(20, upper, None)
        with pytest.raises(errors.ArgumentError, match="upper"):
            tail_values(values).fit_over(0.5, upper)

    @pytest.mark.parametrize("step", [0.0, -1.0, np.nan, np.inf])
    def test_steps_are_above_zero(self, step):
        with pytest.raises(errors.ArgumentError, match=r"resolution is .*a finite number above 0"):
            tail_values(np.arange(100.0)).fit(20, None, step)

    def test_levels_lie_above_the_threshold(self):
        fit, cuts = tail_of(excesses(0.0)), _native.Cuts(MADE_UP)
        for m in (5.0, 10.0, -1.0, np.nan):
            for ask in (
                lambda m=m: fit.interval(m, 0.95, cuts, CALL),
                lambda m=m: fit.z(m, np.ones(1), cuts, CALL),
                lambda m=m: compare_levels((fit, cuts), (fit, cuts), m, 0.95, CALL),
            ):
                with pytest.raises(errors.ArgumentError, match=r"m is .*below the threshold"):
                    ask()

    def test_cuts_have_their_shape_and_are_finite(self):
        with pytest.raises(errors.ArgumentError, match="17 x 17 finite numbers"):
            _native.Cuts(MADE_UP[:-1])
        broken = MADE_UP.copy()
        broken[3, 3] = np.nan
        with pytest.raises(errors.ArgumentError, match="finite"):
            _native.Cuts(broken)

    @pytest.mark.parametrize(
        ("k", "design", "n", "named"),
        [
            (1, (5.0, 100.0), 100, "k is 1"),
            (20, (1.0, 100.0), 100, "a horizon above 1"),
            (20, (5.0, 20.0), 100, "fewer exceedances than n"),
            (20, (np.nan, 100.0), 100, "a horizon above 1"),
            (20, (5.0, 100.0), 99, "at least 100 replicates"),
        ],
    )
    def test_simulations_that_cannot_be(self, k, design, n, named):
        with pytest.raises(errors.ArgumentError, match=named):
            _native.simulate_level_cuts(k, [design], _native.Draws(n, seed=1), CALL)

    def test_permutations_that_cannot_be(self):
        first, second = tail_values(np.arange(50.0)), tail_values(np.arange(30.0))
        draws = _native.Draws(10, seed=1)
        for ks, level, named in (
            ((20, 30), (10.0, None), "n_exceedances is 30; accepted: from 5 to 29"),
            ((4, 20), (10.0, None), "n_exceedances is 4"),
            ((20, 20), (10.0, 49.0), "upper is 49"),
        ):
            with pytest.raises(errors.ArgumentError, match=named):
                _native.permuted_level_differences(first, second, ks, level, draws, CALL)


# -- Known values ----------------------------------------------------------------------------------


class TestKnownValues:
    def test_evenly_spread_excesses_have_the_lowest_shape(self):
        fit = tail_of(np.arange(1.0, 61.0))
        assert fit.at_edge
        assert fit.shape == -1
        assert fit.scale == 60
        assert fit.end == 60
        assert fit.log_likelihood == pytest.approx(-60 * math.log(60))

    def test_a_level_is_that_of_the_fit(self):
        y = excesses(0.2)
        fit = tail_of(y, n=2_000, u=3.0)
        for m in (100.0, 2_000.0, 1e6):
            M = m * 60 / 2_000
            meant = 3 + fit.scale / fit.shape * (M**fit.shape - 1)
            assert fit.level(m) == pytest.approx(meant, rel=1e-12)

    def test_a_known_end_is_a_change_of_scale(self):
        c = np.random.default_rng(1).beta(2, 4, 500)
        fit, on_t = (
            tail_values(c).fit(34, 1.0, None),
            tail_values(-np.log1p(-c)).fit(34, None, None),
        )
        assert fit.shape == pytest.approx(on_t.shape, abs=1e-9)
        assert fit.level(500.0) == pytest.approx(-math.expm1(-on_t.level(500.0)), rel=1e-9)
        assert fit.threshold == np.sort(c)[-35]

    def test_order_limits_of_the_binomial_law(self):
        values = tail_values(np.arange(1.0, 401.0))
        low, high, measured = values.order_limits(100.0, 0.95)
        # P(Bin(400, 0.01) >= 9) = 0.021, P(Bin = 0) = 0.018.
        assert (low, high, measured) == (392.0, 400.0, True)
        assert values.order_limits(200.0, 0.95)[1:] == (math.inf, False)
        assert tail_values(np.arange(3.0)).order_limits(1.5, 0.999)[0] == -math.inf

    def test_ties_and_their_grid(self):
        values = tail_values([0.0, 0.1, 0.1, 0.3, 0.3, 0.4, 0.8])
        n_distinct, step = values.ties(6)
        assert n_distinct == 4
        assert step == pytest.approx(0.1)
        assert tail_values([0.0, 0.1, 0.35, 0.9]).ties(3) == (3, None)
        assert tail_values([0.0, 0.5, 0.5, 0.5 + math.pi / 10]).ties(3)[0] == 2

    def test_equal_groups_have_no_difference(self):
        fit, cuts = tail_of(excesses(0.0), n=500), _native.Cuts(MADE_UP)
        statistic, pvalue, low, high = compare_levels((fit, cuts), (fit, cuts), 500.0, 0.95, CALL)
        assert statistic == pytest.approx(0, abs=1e-9)
        assert pvalue == pytest.approx(1)
        assert low == pytest.approx(-high, rel=1e-6)

    def test_the_deviance_of_two_counted_groups(self):
        # The level between 10 and 11: 40 of 400 above it in either group, as one in 10 means.
        group = tail_values(np.repeat([1.0, 20.0], [360, 40]))
        statistic, pvalue, low, high = compare_levels(group, group, 10.0, 0.95, CALL)
        assert statistic == 0
        assert pvalue == pytest.approx(1)
        assert low <= 0 <= high

    def test_the_page_has_these_cuts(self):
        # n = 500, k = 34, m = 500: measured there to 0.05, the outermost to 0.1.
        cuts = _native.Cuts.of_level(34, 500.0, 500.0).values
        at = [list(PROBABILITIES).index(p) for p in (0.005, 0.025, 0.05, 0.5, 0.95, 0.975, 0.995)]
        for xi, page in (
            (-0.8, [-3.177, -2.721, -2.452, -0.901, 1.465, 1.799, 2.344]),
            (-0.2, [-3.224, -2.546, -2.207, -0.416, 1.421, 1.778, 2.485]),
            (0.0, [-3.121, -2.438, -2.114, -0.344, 1.457, 1.791, 2.478]),
        ):
            ours = cuts[np.argmin(np.abs(NODES - xi)), at]
            assert np.abs(ours - page)[1:-1].max() < 0.05
            assert np.abs(ours - page).max() < 0.1


# -- Reference -------------------------------------------------------------------------------------


class TestFits:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("k", [15, 34, 209])
    def test_the_fit_of_excesses(self, shape, k):
        y = excesses(shape, k, seed=3)
        fit, (xi, sigma, top) = tail_of(y), reference.fit_gpd(y)
        assert fit.k == k
        assert fit.n == 10 * k
        assert fit.log_likelihood >= float(top) - 1e-9 * k
        assert fit.shape == pytest.approx(float(xi), abs=1e-5)
        assert fit.scale == pytest.approx(float(sigma), rel=1e-5)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_scipy_polished_finds_the_same(self, shape):
        y = excesses(shape, 120, seed=5)
        fit = tail_of(y)
        assert not fit.at_edge

        def loss(parameters):
            return -stats.genpareto.logpdf(y, parameters[0], scale=math.exp(parameters[1])).sum()

        found, _, scale = stats.genpareto.fit(y, floc=0)
        start = np.array([found, math.log(scale)])
        for _ in range(3):
            start = optimize.minimize(
                loss, start, method="Nelder-Mead", options={"xatol": 1e-12, "fatol": 1e-14}
            ).x
        assert fit.shape == pytest.approx(start[0], abs=1e-6)
        assert fit.scale == pytest.approx(math.exp(start[1]), rel=1e-6)

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("M", [3.0, 30.0, 3_000.0])
    def test_fits_at_a_level_are_seen_in_z(self, shape, M):
        y = excesses(shape, 50, seed=7)
        fit, n = tail_of(y), 500
        m = M * n / 50
        x = fit.level(m) * np.array([0.3, 0.8, 0.95, 0.999, 1.001, 1.05, 1.3, 3.0, 30.0])
        root, xi = reference.signed_root(y, x, M)
        meant = [reference.z_of(*row, MADE_UP) for row in zip(root, xi, strict=True)]
        found = fit.z(m, x, _native.Cuts(MADE_UP), CALL)
        np.testing.assert_allclose(found, meant, rtol=1e-4, atol=2e-4)

    @pytest.mark.parametrize(("shape", "k"), [(-0.5, 21), (-0.35, 21), (-0.2, 15), (-0.7, 15)])
    def test_no_level_is_caught_in_a_lower_peak(self, shape, k):
        """The likelihood at a level may have a second peak, at the shape of -1 or above it."""
        cuts, M = _native.Cuts(MADE_UP), 0.25 * k
        for seed in range(40):
            y = excesses(shape, k, seed=seed)
            fit = tail_of(y)
            x = fit.level(10 * M) * np.array([1.05, 1.1, 1.19, 1.3, 1.5])
            root, xi = reference.signed_root(y, x, M)
            meant = [reference.z_of(*row, MADE_UP) for row in zip(root, xi, strict=True)]
            np.testing.assert_allclose(fit.z(10 * M, x, cuts, CALL), meant, atol=1e-3)

    def test_levels_that_cannot_be(self):
        fit, cuts = tail_of(excesses(0.0), u=1.0), _native.Cuts(MADE_UP)
        low, high = fit.z(100.0, np.array([1.0, np.inf]), cuts, CALL)
        assert low > 100
        assert high < -100

    @pytest.mark.parametrize("law", LAWS)
    @pytest.mark.parametrize("m", [125.0, 500.0, 2_000.0])
    def test_intervals_of_levels(self, law, m):
        c = LAWS[law](np.random.default_rng(2), 500)
        upper = 1.0 if c.max() < 1 else None
        k = _native.default_exceedances(500)
        cuts = _native.Cuts.of_level(k, 500.0, m)
        fit = tail_values(c).fit(k, upper, None)
        curve = reference.curve(c, m, cuts.values, upper=upper)
        low, high = reference.return_level_interval(curve)
        found = fit.interval(m, 0.95, cuts, CALL)
        assert found == pytest.approx((low, high), abs=2e-4 * (high - low))
        assert fit.level(m) == pytest.approx(curve.estimate(), rel=1e-6)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_intervals_of_the_shape(self, shape):
        y = excesses(shape, 60, seed=11)
        cuts = _native.Cuts.of_shape(60)
        found = tail_of(y).shape_interval(0.95, cuts, CALL)
        assert found == pytest.approx(reference.shape_interval(y, cuts.values), abs=1e-4)

    def test_a_threshold_in_place_of_a_rank(self):
        c = np.random.default_rng(1).standard_exponential(400)
        by_rank = tail_values(c).fit(30, None, None)
        over = tail_values(c).fit_over(np.sort(c)[-31], None)
        assert (by_rank.shape, by_rank.scale, by_rank.k) == (over.shape, over.scale, over.k)


class TestCuts:
    def test_z_of_roots(self):
        cuts = _native.Cuts(MADE_UP)
        shapes = [-1.0, -0.93, -0.8, -0.75, -0.05, 0.0, 0.42, 0.6, 1.19, 1.2, 2.0, 3.0]
        roots = [-40.0, -4.0, -2.2, -0.2, 0.0, 0.1, 0.31, 1.7, 4.5, 60.0]
        for root, xi in itertools.product(roots, shapes):
            assert cuts.z(root, xi) == pytest.approx(
                reference.z_of(root, xi, MADE_UP), abs=1e-12
            ), (root, xi)

    def test_below_the_first_node_the_worst_counts(self):
        cuts = _native.Cuts(MADE_UP)
        scores = [reference.normal_score(0.2, row) for row in MADE_UP[:3]]
        assert min(scores) < 0 < max(scores)
        assert cuts.z(0.2, -0.9) == 0
        assert cuts.z(2.0, -0.9) == pytest.approx(
            min(reference.normal_score(2.0, row) for row in MADE_UP[:3])
        )

    def test_values_come_back(self):
        cuts = _native.Cuts(MADE_UP)
        assert np.array_equal(cuts.values, MADE_UP)
        assert np.array_equal(_native.Cuts(*cuts.__getnewargs__()).values, MADE_UP)

    def test_the_grid_is_that_of_the_page(self):
        np.testing.assert_allclose(NODES, reference.NODES, atol=1e-12)
        np.testing.assert_allclose(PROBABILITIES, reference.PROBABILITIES)

    @pytest.mark.calibration
    @pytest.mark.parametrize(("k", "n", "m"), [(15, 100, 100), (34, 500, 125), (34, 500, 2_000)])
    def test_simulated_quantiles(self, k, n, m):
        draws = _native.Draws(4_000, seed=3)
        [ours] = _native.simulate_level_cuts(k, [(m * k / n, float(n))], draws, _native.Call(2))
        for node in (0, 3, 8, 12, 16):
            roots = reference.null_roots(k, n, m, NODES[node], 4_000, seed=node)
            check_quantiles(ours.values[node], roots, 4_000)

    @pytest.mark.calibration
    def test_simulated_quantiles_of_the_shape(self):
        ours = _native.simulate_shape_cuts(34, _native.Draws(4_000, seed=3), _native.Call(2))
        for node in (0, 3, 8, 12, 16):
            roots = reference.null_roots_of_shape(34, NODES[node], 4_000, seed=node)
            check_quantiles(ours.values[node], roots, 4_000)

    @pytest.mark.calibration
    def test_cuts_of_another_horizon_are_seen(self):
        draws = _native.Draws(4_000, seed=3)
        [ours] = _native.simulate_level_cuts(34, [(2_000 * 34 / 500, 500.0)], draws, CALL)
        roots = reference.null_roots(34, 500, 125, -0.6, 4_000, seed=0)
        with pytest.raises(AssertionError):
            check_quantiles(ours.values[1], roots, 4_000)


def check_quantiles(quantiles, roots, n):
    """Shares of independent roots below simulated quantiles: both have binomial errors."""
    for probability, quantile in zip(PROBABILITIES, quantiles, strict=True):
        if probability < 0.005 or probability > 0.995:
            continue
        found = np.mean(roots <= quantile)
        # A tail of 1e-6: 4.9 errors of a difference of two shares.
        assert (
            abs(found - probability)
            < 4.9 * math.sqrt(2 * probability * (1 - probability) / n) + 1 / n
        ), (probability, found)


class TestTable:
    @pytest.mark.calibration
    @pytest.mark.parametrize(
        ("k", "n", "m"), [(24, 300, 300), (42, 700, 2_500), (42, 5_000, 900), (62, 1_700, 170)]
    )
    def test_designs_off_the_grid(self, k, n, m):
        draws, call = _native.Draws(5_000, seed=11), _native.Call(2)
        [simulated] = _native.simulate_level_cuts(k, [(m * k / n, float(n))], draws, call)
        shipped = _native.Cuts.of_level(k, float(n), float(m))
        inner = slice(5, -5)
        assert np.abs(shipped.values - simulated.values)[:, inner].max() < 0.15
        # The table beside, at the nearest k with the wrong horizon, is not within that.
        other = _native.Cuts.of_level(k, float(n), 5.0 * n if m < n else n / 10)
        assert np.abs(other.values - simulated.values)[:, inner].max() > 0.15

    def test_where_it_ends(self):
        of_level = _native.Cuts.of_level
        assert of_level(34, 500.0, 500.0)
        assert of_level(34, 1e9, 1e9)
        assert of_level(7, 500.0, 500.0) is None
        assert of_level(4_201, 1e8, 1e8)
        assert of_level(8, 100.0, 100.0)
        assert of_level(4_200, 1.2e6, 1e6)
        assert of_level(34, 500.0, 5.5 * 500)
        assert of_level(34, 500.0, 5.51 * 500) is None
        assert of_level(34, 500.0, 500 * 2.19 / 34) is None
        # The n to which 34 is the default is 500: 20 % fewer are simulated.
        rows = {k: n for k, n, _ in _native.tabled_designs()}
        assert of_level(36, rows[36] / 1.19, 500.0)
        assert of_level(36, rows[36] / 1.21, 500.0) is None
        assert _native.Cuts.of_shape(7) is None
        assert np.array_equal(
            _native.Cuts.of_shape(4_201).values, _native.Cuts.of_shape(4_200).values
        )
        assert _native.Cuts.of_shape(8)
        assert _native.Cuts.of_shape(4_200)

    def test_tables_on_the_grid_are_those_of_the_file(self):
        script, lines = table_script(), file_lines()
        for index, (k, n, designs) in list(enumerate(_native.tabled_designs()))[::6]:
            start = index * (len(designs) + 1) * len(NODES)
            for place in (1, 4, 7):
                horizon, rows = designs[place]
                assert rows == n
                row = lines[start + place * len(NODES)]
                ours = _native.Cuts.of_level(k, n, horizon * n / k)
                inner = row < script_limit()
                np.testing.assert_allclose(ours.values[0][inner], row[inner] / 1000, atol=1e-9)
        assert script.REPLICATES == 20_000

    def test_the_script_writes_this_head(self):
        script = table_script()
        assert script.FILE.read_text(encoding="utf-8").startswith(script.HEAD)
        assert len(file_lines()) == 18 * 19 * len(NODES)

    @pytest.mark.calibration
    def test_the_file_is_simulated_again(self):
        script, lines = table_script(), file_lines()
        k, _, designs = _native.tabled_designs()[0]
        draws, call = _native.Draws(script.REPLICATES, seed=script.SEED, series=k), _native.Call(2)
        [found] = _native.simulate_level_cuts(k, [designs[3]], draws, call)
        lines_of_it = lines[3 * len(NODES) : 4 * len(NODES)]
        inner = lines_of_it < script_limit()
        ours = np.rint(1000 * found.values)
        assert np.array_equal(ours[inner], lines_of_it[inner])
        shape = _native.simulate_shape_cuts(k, draws, call).values
        start = len(designs) * len(NODES)
        assert np.array_equal(np.rint(1000 * shape), lines[start : start + len(NODES)])


def table_script():
    path = ROOT / "benches" / "python" / "tables_cuts.py"
    spec = importlib.util.spec_from_file_location("tables_cuts", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tables_cuts"] = module
    spec.loader.exec_module(module)
    return module


def file_lines():
    path = ROOT / "rust" / "fairaudit-core" / "src" / "extremes" / "cuts.txt"
    rows = path.read_text(encoding="utf-8").splitlines()
    return np.array([row.split() for row in rows if not row.startswith("#")], dtype=int)


def script_limit():
    """Larger numbers stand for roots of levels below the threshold, which go on in z."""
    return 50_000


class TestOrder:
    @pytest.mark.parametrize("n", [20, 100, 369, 1_000])
    @pytest.mark.parametrize("m", [3.0, 27.1, 100.0, 1_000.0])
    @pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
    def test_limits(self, n, m, confidence):
        c = np.random.default_rng(0).random(n)
        low, high, measured = tail_values(c).order_limits(m, confidence)
        assert (low, high) == reference.order_interval(c, m, confidence)
        assert measured == reference.is_measured(n, m, confidence)

    @pytest.mark.parametrize("sizes", [(400, 400), (400, 900), (1_200, 380)])
    def test_deviances_of_two_groups(self, sizes):
        rng = np.random.default_rng(sizes)
        first, second = rng.random(sizes[0]), 0.97 * rng.random(sizes[1])
        found = compare_levels(tail_values(first), tail_values(second), 100.0, 0.95, CALL)
        least, p = reference.order_test(first, second, 100.0)
        assert found[:2] == pytest.approx((least, p), abs=1e-9)

    def test_the_interval_holds_the_differences_that_are_not_rejected(self):
        rng = np.random.default_rng(1)
        first, second = rng.random(400), 0.5 * rng.random(500)
        _, _, low, high = compare_levels(tail_values(first), tail_values(second), 100.0, 0.95, CALL)
        for delta, within in ((low, True), (high, True), (low - 1e-6, False), (high + 1e-6, False)):
            inner = delta + (1e-9 if delta == low else -1e-9 if delta == high else 0)
            _, p = reference.order_test(first, second + inner, 100.0)
            assert (p >= 0.05) == within, delta

    def test_ties_between_groups(self):
        rng = np.random.default_rng(3)
        for _ in range(5):
            groups = rng.integers(0, 30, 400) / 30, rng.integers(0, rng.integers(10, 29), 400) / 30
            values = [tail_values(label) for label in groups]
            found = compare_levels(*values, 50.0, 0.95, CALL)
            least, p = reference.order_test(*groups, 50.0)
            assert found[:2] == pytest.approx((least, p), abs=1e-9)
            assert least <= reference.order_test(*groups, 50.0)[0] + 1e-12
            # A difference of 0 is in the interval where it is not rejected.
            assert (found[2] <= 0 <= found[3]) == (p > 0.05)

    def test_equal_values_have_equal_levels(self):
        same = tail_values(np.full(500, 0.125))
        assert compare_levels(same, same, 100.0, 0.95, CALL) == (0, 1, 0, 0)


class TestPairs:
    def fitted(self, c, m):
        k = _native.default_exceedances(len(c))
        cuts = _native.Cuts.of_level(k, float(len(c)), m)
        return (tail_values(c).fit(k, None, None), cuts), reference.curve(c, m, cuts.values)

    @pytest.mark.parametrize("law", LAWS)
    @pytest.mark.parametrize("factor", [1.0, 1.3])
    def test_the_test_of_equal_levels(self, law, factor):
        rng = np.random.default_rng(5)
        first, second = factor * LAWS[law](rng, 500), LAWS["exponential"](rng, 200) / 5
        second *= np.sort(first)[-1] / np.sort(second)[-1]
        (ours, curve), (theirs, other) = self.fitted(first, 400.0), self.fitted(second, 400.0)
        least, p, _, _ = compare_levels(ours, theirs, 400.0, 0.95, CALL)
        meant = reference.equal_levels_test(curve, other)
        # Ours may find a lower minimum.
        assert least <= meant[0] + 1e-4
        assert least == pytest.approx(meant[0], abs=2e-3)
        assert p == pytest.approx(stats.chi2.sf(least, 1), rel=1e-9)

    @pytest.mark.parametrize(("law", "confidence"), [("beta", 0.95), ("t4", 0.9)])
    def test_the_interval_of_the_difference(self, law, confidence):
        rng = np.random.default_rng(8)
        first, second = LAWS[law](rng, 300), 0.7 * LAWS[law](rng, 300)
        (ours, curve), (theirs, other) = self.fitted(first, 300.0), self.fitted(second, 300.0)
        _, _, low, high = compare_levels(ours, theirs, 300.0, confidence, CALL)
        meant = reference.ecd_interval(curve, other, confidence, steps=12)
        assert (low, high) == pytest.approx(meant, abs=2e-3 * (high - low))

    def test_order_statistics_beside_a_fit(self):
        rng = np.random.default_rng(13)
        many, few = rng.beta(2, 4, 1_000), 1.2 * rng.beta(2, 4, 300)
        theirs, curve = self.fitted(few, 200.0)
        least, p, _, _ = compare_levels(tail_values(many), theirs, 200.0, 0.95, CALL)
        meant, _ = reference.hybrid_test(many, curve, 200.0)
        assert least <= meant + 1e-6
        assert least == pytest.approx(meant, abs=1e-3)
        of_sum = reference.tail_of_sum(least, 1_000, 200.0, lambda q: stats.chi2.sf(q, 1))
        assert p == pytest.approx(of_sum, rel=1e-9)

    def test_swapped_groups(self):
        rng = np.random.default_rng(21)
        (ours, _), (theirs, _) = (self.fitted(rng.beta(2, b, 500), 500.0) for b in (4, 6))
        found = compare_levels(ours, theirs, 500.0, 0.95, CALL)
        swapped = compare_levels(theirs, ours, 500.0, 0.95, CALL)
        assert found[:2] == pytest.approx(swapped[:2], rel=1e-9)
        assert found[2:] == pytest.approx((-swapped[3], -swapped[2]), rel=1e-6)


class TestCells:
    @pytest.mark.parametrize("law", ["beta", "exponential"])
    @pytest.mark.parametrize("step", [0.01, 0.05])
    def test_cells_of_a_grid(self, law, step):
        c = np.round(LAWS[law](np.random.default_rng(4), 600) / step) * step
        upper = 2.0 if law == "beta" else None
        k = 40
        fit, cells = tail_values(c).fit(k, upper, step), reference.grouped(c, step, k, upper)
        assert fit.k == cells.k
        xi, sigma, top = reference.fit_grouped(cells)
        assert fit.log_likelihood >= top - 1e-6
        assert fit.shape == pytest.approx(xi, abs=2e-3)
        assert fit.scale == pytest.approx(sigma, rel=5e-3)
        assert reference.to_t(fit.threshold, upper) == pytest.approx(cells.u, rel=1e-9)

    def test_z_of_cells(self):
        c = np.round(np.random.default_rng(4).beta(2, 4, 600), 2)
        fit, cells = tail_values(c).fit(40, None, 0.01), reference.grouped(c, 0.01, 40)
        m = 600.0
        M = m * cells.k / 600
        x = cells.u + (fit.level(m) - cells.u) * np.array([0.7, 0.9, 1.1, 1.5, 4.0])
        root, xi = reference.grouped_signed_root(cells, x - cells.u, M)
        meant = [reference.z_of(*row, MADE_UP) for row in zip(root, xi, strict=True)]
        found = fit.z(m, x, _native.Cuts(MADE_UP), CALL)
        np.testing.assert_allclose(found, meant, rtol=1e-3, atol=2e-3)

    def test_fine_cells_are_as_good_as_values(self):
        c = np.random.default_rng(9).standard_exponential(500)
        single = tail_values(c).fit(34, None, None)
        step = 1e-5
        celled = tail_values(np.round(c / step) * step).fit(34, None, step)
        assert celled.shape == pytest.approx(single.shape, abs=1e-3)
        assert celled.level(500.0) == pytest.approx(single.level(500.0), rel=1e-3)


class TestPermuted:
    def test_all_divisions_of_a_few_rows(self):
        """Replicates are divisions of the pooled rows, all equally likely."""
        pooled = np.array([0.1, 0.2, 0.35, 0.5, 0.8, 1.2, 1.9, 2.5, 3.4, 4.7, 6.0, 9.0])
        m, meant = 12.0, {}
        for rows in itertools.combinations(range(12), 6):
            mine = np.isin(np.arange(12), rows)
            levels = [
                tail_values(g).fit(5, None, None).level(m) for g in (pooled[mine], pooled[~mine])
            ]
            meant[rows] = levels[0] - levels[1]
        n = 20_000
        found = _native.permuted_level_differences(
            tail_values(pooled[:6]), tail_values(pooled[6:]), (5, 5), (m, None),
            _native.Draws(n, seed=4), CALL,
        )  # fmt: skip
        places, counts = np.unique(np.round(found, 9), return_counts=True)
        expected = np.unique(np.round(list(meant.values()), 9))
        np.testing.assert_allclose(places, expected, atol=1e-8)
        _, weights = np.unique(np.round(list(meant.values()), 9), return_counts=True)
        chance = weights / len(meant)
        assert stats.chisquare(counts, n * chance).pvalue > 1e-6
        uneven = chance * np.linspace(0.7, 1.3, len(chance))
        assert stats.chisquare(counts, n * uneven / uneven.sum()).pvalue < 1e-6

    @pytest.mark.parametrize("upper", [None, 1.0])
    def test_a_slow_permutation(self, upper):
        rng = np.random.default_rng(6)
        first, second = rng.beta(2, 4, 200), 0.8 * rng.beta(2, 3, 150)
        ks, m = (20, 17), 150.0
        found = _native.permuted_level_differences(
            tail_values(first), tail_values(second), ks, (m, upper),
            _native.Draws(400, seed=2), CALL,
        )  # fmt: skip
        rows = np.concatenate([first, second])

        def slow():
            drawn = rng.permutation(rows)
            groups = drawn[:200], drawn[200:]
            one, other = (
                reference.fitted_level(g, m, k, upper) for g, k in zip(groups, ks, strict=True)
            )
            return one - other

        theirs = np.array([slow() for _ in range(150)])
        assert stats.ks_2samp(found, theirs).pvalue > 1e-6
        assert stats.ks_2samp(found + np.std(found), theirs).pvalue < 1e-6

    def test_ties_leave_no_fit_or_a_fit_of_what_is_above(self):
        rng = np.random.default_rng(6)
        first, second = np.round(rng.random(100), 1), np.round(rng.random(100), 1)
        found = _native.permuted_level_differences(
            tail_values(first), tail_values(second), (15, 15), (50.0, None),
            _native.Draws(500, seed=2), CALL,
        )  # fmt: skip
        assert 0 < np.isnan(found).sum() < 500


# -- Properties ------------------------------------------------------------------------------------


class TestProperties:
    def test_any_order_of_rows_and_any_number_of_threads(self):
        rng = np.random.default_rng(0)
        c = np.concatenate([rng.beta(2, 4, 300_000), np.zeros(10), -np.zeros(10)])
        answers = []
        for order, threads in ((slice(None), 1), (slice(None, None, -1), 2)):
            call = _native.Call(threads)
            values = _native.TailValues(np.ascontiguousarray(c[order]), call)
            fit = values.fit(500, 1.0, None)
            cuts = _native.Cuts.of_level(500, 300_020.0, 1e5)
            answers.append(
                [
                    *values.top(600), fit.shape, fit.scale, fit.log_likelihood, fit.level(1e5),
                    *fit.interval(1e5, 0.95, cuts, call), *values.order_limits(1e5, 0.95),
                    *fit.shape_interval(0.95, _native.Cuts.of_shape(500), call),
                ]
            )  # fmt: skip
        assert same_bits(*answers)

    def test_replicates_do_not_depend_on_threads_or_parts(self):
        rng = np.random.default_rng(0)
        first, second = tail_values(rng.random(300)), tail_values(rng.random(200))

        def drawn(n, threads, start=0):
            draws = _native.Draws(n, seed=5, first=start)
            call = _native.Call(threads)
            return _native.permuted_level_differences(
                first, second, (20, 20), (200.0, 1.0), draws, call
            )

        whole = drawn(100, 1)
        assert same_bits(whole, drawn(100, 2))
        assert same_bits(whole, np.concatenate([drawn(37, 1), drawn(63, 2, 37)]))
        designs = [(10.0, 100.0), (20.0, np.inf)]
        one, two = (
            _native.simulate_level_cuts(15, designs, _native.Draws(300, seed=1), _native.Call(n))
            for n in (1, 2)
        )
        alone = _native.simulate_level_cuts(15, designs[1:], _native.Draws(300, seed=1), CALL)
        assert all(same_bits(a.values, b.values) for a, b in zip(one, two, strict=True))
        assert same_bits(one[1].values, alone[0].values)

    @pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e150, 1e300])
    @pytest.mark.parametrize("shape", [-0.5, 0.0, 0.5])
    def test_units_do_not_matter(self, unit, shape):
        y = excesses(shape, seed=2)
        plain, scaled = (
            tail_of(y),
            _native.TailValues(
                unit * np.concatenate([y, [0.0], -np.arange(1.0, 540.0) / 600]), CALL
            ).fit(60, None, None),
        )
        assert scaled.shape == pytest.approx(plain.shape, abs=1e-6)
        assert scaled.scale / unit == pytest.approx(plain.scale, rel=1e-6)
        cuts = _native.Cuts(MADE_UP)
        ours, meant = (fit.interval(300.0, 0.95, cuts, CALL) for fit in (scaled, plain))
        assert np.array(ours) / unit == pytest.approx(np.array(meant), rel=1e-5)
        limits = scaled.shape_interval(0.95, cuts, CALL)
        assert limits == pytest.approx(plain.shape_interval(0.95, cuts, CALL), abs=1e-5)

    def test_denormal_values(self):
        y = np.arange(1.0, 61.0) ** 2 * 5e-324
        fit = tail_values(np.concatenate([y, np.zeros(400)])).fit(60, None, None)
        assert math.isfinite(fit.shape)
        assert 0 < fit.scale < 1e-300

    def test_all_but_one_value_are_fitted(self):
        c = np.random.default_rng(3).standard_exponential(120)
        fit = tail_values(c).fit(119, None, None)
        y = np.sort(c)[::-1]
        xi, sigma, _ = reference.fit_gpd(y[:-1] - y[-1])
        assert fit.k == 119
        assert fit.threshold == c.min()
        assert (fit.shape, fit.scale) == pytest.approx((float(xi), float(sigma)), abs=1e-5)

    def test_horizons_just_above_the_threshold(self):
        fit, cuts = tail_of(excesses(0.1), n=600), _native.Cuts(MADE_UP)
        for m in (10.0 * (1 + 1e-9), 10.001, 10.5):
            low, high = fit.interval(m, 0.95, cuts, CALL)
            assert 0 <= low <= fit.level(m) <= high < fit.level(100.0) + 1
            assert fit.level(m) > 0

    @pytest.mark.parametrize("law", LAWS)
    def test_intervals_are_nested_and_hold_their_middle(self, law):
        c = LAWS[law](np.random.default_rng(17), 500)
        k = 34
        fit, cuts = tail_values(c).fit(k, None, None), _native.Cuts.of_level(k, 500.0, 500.0)
        before = (fit.level(500.0),) * 2
        for confidence in (0.5, 0.8, 0.95, 0.99, 0.999):
            low, high = fit.interval(500.0, confidence, cuts, CALL)
            if confidence > 0.5:
                assert low <= before[0] + 1e-9
                assert high >= before[1] - 1e-9
            width = stats.norm.ppf((1 + confidence) / 2)
            z = fit.z(500.0, np.array([low, high]), cuts, CALL)
            np.testing.assert_allclose(np.abs(z), width, atol=1e-4)
            before = low, high

    def test_a_step_from_level_to_level_is_the_whole_search(self):
        """z of one level does not depend on which others are asked."""
        fit, cuts = tail_of(excesses(-0.4), n=600), _native.Cuts(MADE_UP)
        x = fit.level(300.0) * np.geomspace(0.1, 10, 50)
        together = fit.z(300.0, x, cuts, CALL)
        alone = [fit.z(300.0, np.array([value]), cuts, CALL)[0] for value in x[::-1]][::-1]
        assert same_bits(together, alone)


class TestFreeLimits:
    """Limits of a difference by order statistics alone: the reference tries all counts."""

    @pytest.mark.parametrize("confidence", [0.9, 0.95, 0.995])
    @pytest.mark.parametrize("sizes", [(100, 100), (110, 200), (300, 120)])
    @pytest.mark.parametrize("m", [20.0, 45.0, 250.0])
    def test_the_reference(self, sizes, m, confidence):
        rng = np.random.default_rng(int(sum(sizes) + m))
        values = [0.5 * rng.beta(2, 4, sizes[0]), 0.3 * rng.beta(2, 4, sizes[1])]
        tails = [TailProblem(values=value, upper=1.0) for value in values]
        [found] = distribution_free_limits(tails, [(0, 1)], m, CALL, confidence=confidence)
        expected = reference.free_interval(*values, m, 1.0, confidence)
        assert found == pytest.approx(expected, abs=1e-15)
        [(low, high)] = distribution_free_limits(tails, [(1, 0)], m, CALL, confidence=confidence)
        assert (-high, -low) == pytest.approx(expected, abs=1e-15)

    def test_without_a_known_end_there_is_no_limit(self):
        rng = np.random.default_rng(1)
        tails = [TailProblem(values=rng.normal(size=n)) for n in (100, 5_000)]
        [(low, high)] = distribution_free_limits(tails, [(0, 1)], 1_000, CALL, confidence=0.95)
        assert np.isfinite(low)
        assert high == np.inf

    def test_rows_from_which_on_there_are_limits(self):
        n = fewest_rows(1_000, 0.95, CALL)
        for rows, there in ((n - 1, False), (n, True)):
            tail = TailProblem(values=np.arange(float(rows)))
            [(low, high)] = distribution_free_limits(
                [tail, tail], [(0, 1)], 1_000, CALL, confidence=0.95
            )
            assert np.isfinite([low, high]).all() == there

    @pytest.mark.calibration
    def test_both_limits_together_hold_for_every_law(self):
        """Two populations in one of the tails, tied values in the other."""
        rng, n, m, samples = np.random.default_rng(30), 400, 100.0, 1_500
        mixed, smooth = mixture(0.02, beta(8, 2), beta(2, 4, 0.5)), beta(2, 4)
        step = 1 / 64
        # Tied upwards: the level is that of the smooth law, tied upwards.
        truth = mixed.level(1 / m) - np.ceil(smooth.level(1 / m) / step) * step
        missed = 0
        for _ in range(samples):
            values = [mixed.sample(rng, n), np.ceil(smooth.sample(rng, n) / step) * step]
            tails = [TailProblem(values=value) for value in values]
            [(low, high)] = distribution_free_limits(tails, [(0, 1)], m, CALL, confidence=0.95)
            missed += not low <= truth <= high
        assert missed <= stats.binom.ppf(1 - 1e-6, samples, 0.05)
