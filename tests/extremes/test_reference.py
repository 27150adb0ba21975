"""The reference of the extremes lens against its oracles, closed forms and scipy."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from ..reference import extremes as reference

OUTER = (0.005, 0.025, 0.05, 0.5, 0.95, 0.975, 0.995)
LAWS = {
    "uniform": (stats.uniform(), 1.0),
    "beta(2, 1.2)": (stats.beta(2, 1.2), 1.0),
    "beta(2, 4)": (stats.beta(2, 4), 1.0),
    "exponential": (stats.expon(), None),
    "t4": (stats.t(4), None),
}


def gpd_rows(xi, shape, seed=0):
    e = np.random.default_rng(seed).standard_exponential(shape)
    return reference.exponential_to_gpd(e, xi)


@pytest.fixture(scope="module")
def table():
    return reference.cut_table(34, 500, 500, n_simulations=400, seed=5)


def two_curves(table, scale=1.0, shift=0.0, upper=None):
    """Samples of beta(2, 4) and of half an exponential of about its levels, each n = 500."""
    rng = np.random.default_rng(8)
    first, second = rng.beta(2, 4, 500), 0.12 * rng.standard_exponential(500)
    return [
        reference.curve(scale * c + shift, 500, table, k=34, upper=upper) for c in (first, second)
    ]


# --- oracles of the page ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xi", "page"),
    [
        (-0.8, [-3.177, -2.721, -2.452, -0.901, 1.465, 1.799, 2.344]),
        (-0.2, [-3.224, -2.546, -2.207, -0.416, 1.421, 1.778, 2.485]),
        (0.0, [-3.121, -2.438, -2.114, -0.344, 1.457, 1.791, 2.478]),
        (0.5, [-2.971, -2.309, -1.985, -0.244, 1.508, 1.823, 2.520]),
    ],
)
def test_the_cuts_are_those_of_the_page(xi, page):
    found = reference.cuts(34, 500, 500, xi, 4000, 21, OUTER)
    np.testing.assert_allclose(found[1:-1], page[1:-1], atol=0.09)
    np.testing.assert_allclose(found, page, atol=0.16)


@pytest.mark.parametrize(
    ("xi", "residual", "raw"),
    [(-0.2, 0.997, 1), (0.0, 0.927, 1), (0.2, 0.645, 1), (0.5, 0.200, 0.847)],
)
def test_pass_rates_of_the_coefficient_of_variation(xi, residual, raw):
    top = -np.sort(-gpd_rows(xi, (1000, 2000), 4), axis=1)[:, :51]
    for cv, page in ((reference.residual_cv, residual), (reference.raw_cv, raw)):
        passed = np.ones(1000, dtype=bool)
        for k in range(10, 51):
            y = top[:, :k] - top[:, [k]] if cv is reference.residual_cv else top[:, :k]
            passed &= reference.coefficient_of_variation(y) < 1 + 1.96 / math.sqrt(k)
        assert passed[:3].tolist() == [reference.passes_cv(value, cv=cv) for value in top[:3]]
        se = math.sqrt(max(page * (1 - page), 0.002) * (1 / 1000 + 1 / 1000))
        assert passed.mean() == pytest.approx(page, abs=4.5 * se)


@pytest.mark.parametrize(("n", "k"), [(100, 15), (500, 34), (2000, 78), (10_000, 209)])
def test_the_default_number_of_exceedances(n, k):
    assert reference.default_k(n) == k


def test_the_nodes_and_probabilities_of_the_cuts():
    assert len(reference.NODES) == len(reference.PROBABILITIES) == 17
    np.testing.assert_allclose(np.diff(reference.NODES[:13]), 0.1)


@pytest.mark.parametrize(
    ("ratio", "r", "s", "coverage", "five", "one"),
    [
        (2, 6, 0, 0.9835, 0.1517, 0.0045),
        (4, 9, 1, 0.9605, 0.0395, 0.0211),
        (8, 15, 3, 0.9693, 0.0591, 0.0066),
        (30, 42, 20, 0.9576, 0.0424, 0.0106),
    ],
)
def test_ranks_and_sizes_of_order_statistics(ratio, r, s, coverage, five, entry):
    n, m = 2000, 2000 / ratio
    assert reference.order_ranks(n, m) == (r, s)
    law = stats.binom(n, 1 / m)
    assert law.cdf(r - 1) - (law.cdf(s - 1) if s else 0) == pytest.approx(coverage, abs=6e-5)
    for level, size in ((0.95, five), (0.99, entry)):
        cut = stats.chi2.ppf(level, 1)
        assert reference.deviance_tail(cut, n, m) == pytest.approx(size, abs=6e-5)


# --- the generalised Pareto law ---------------------------------------------------------------


@pytest.mark.parametrize("xi", [-0.7, -0.2, 0.0, 1e-6, 0.4, 1.3])
def test_density_and_survival_are_scipys(xi):
    y = gpd_rows(xi, 20)
    law = stats.genpareto(xi, scale=1.7)
    found = reference.gpd_log_likelihood(y, xi, 1.7)
    assert found == pytest.approx(law.logpdf(y).sum(), abs=1e-8)
    np.testing.assert_allclose(reference.gpd_survival(y, xi, 1.7), law.sf(y), atol=1e-12)
    assert reference.return_excess(xi, 1.7, 40) == pytest.approx(law.isf(1 / 40), rel=1e-9)


@pytest.mark.parametrize("xi", [-0.3, 0.0, 0.2, 0.6])
@pytest.mark.parametrize("k", [34, 209])
def test_the_fit_is_the_maximum(xi, k):
    y = gpd_rows(xi, k, 7)
    shape, sigma, value = reference.fit_gpd(y)
    assert value == pytest.approx(reference.gpd_log_likelihood(y, shape, sigma), abs=1e-9)
    loose, _, wide = stats.genpareto.fit(y, floc=0)
    assert (shape, sigma) == pytest.approx((loose, wide), abs=2e-3)
    found = optimize.minimize(
        lambda p: -stats.genpareto.logpdf(y, p[0], scale=p[1]).sum(),
        [loose, wide],
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 2000},
    )
    assert (shape, sigma) == pytest.approx(tuple(found.x), abs=1e-6)


def test_the_fit_at_the_edge():
    """Evenly spaced excesses: no interior maximum above -k log y_max."""
    y = np.linspace(0.05, 1, 20) ** 0.5
    xi, sigma, value = reference.fit_gpd(y)
    assert (xi, sigma, value) == pytest.approx((-1, 1, 0))


def test_many_samples_at_once_are_one_at_a_time():
    y = gpd_rows(-0.4, (6, 15), 9)
    together = np.array(reference.signed_root(y, np.linspace(0.5, 3, 6), 15.0))
    alone = [
        reference.signed_root(*value, 15.0) for value in zip(y, np.linspace(0.5, 3, 6), strict=1)
    ]
    np.testing.assert_allclose(together.T, alone, atol=1e-7)


@pytest.mark.parametrize("xi", [-0.9, -0.4, 0.0, 0.5])
def test_the_fit_at_its_own_level_is_the_fit(xi):
    y = gpd_rows(xi, 34, 11)
    shape, sigma, value = reference.fit_gpd(y)
    level = reference.return_excess(shape, sigma, 20)
    at, wide, top = reference.fit_at_level(y, level, 20)
    assert top == pytest.approx(value, abs=1e-7)
    np.testing.assert_allclose([at, wide], [shape, sigma], atol=1e-3)
    r, _ = reference.signed_root(y, level * np.array([0.8, 1, 1.2]), 20)
    assert r[0] > 0 > r[2]
    assert r[1] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("y0", [1.0, 2.0, 5.0, 30.0])
def test_the_fit_at_a_level_is_the_maximum_on_the_curve(y0):
    y = gpd_rows(-0.1, 34, 12)
    xi, sigma, value = reference.fit_at_level(y, y0, 50)
    assert reference.return_excess(xi, sigma, 50) == pytest.approx(y0)
    assert value == pytest.approx(reference.gpd_log_likelihood(y, xi, sigma), abs=1e-9)
    grid = np.linspace(-1, 3, 4001)
    others = reference.gpd_log_likelihood(y, grid, y0 / reference.growth(grid, 50))
    assert np.max(others) - 1e-9 <= value <= np.max(others) + 1e-3


@pytest.mark.parametrize("xi0", [-1.0, -0.5, 0.0, 0.7])
def test_the_fit_at_a_shape(xi0):
    y = gpd_rows(0.1, 40, 13)
    sigma, value = reference.fit_at_shape(y, xi0)
    closed = {0.0: y.mean(), -1.0: y.max()}
    if xi0 in closed:
        assert sigma == pytest.approx(closed[xi0], rel=1e-6)
    grid = np.linspace(0.2, 8, 4000) * y.mean()
    assert value >= np.max(reference.gpd_log_likelihood(y, xi0, grid)) - 1e-9


def test_levels_at_and_below_the_threshold():
    r, _ = reference.signed_root(gpd_rows(0.1, 34), np.array([-1.0, 0.0, 1e-9, np.inf]), 20)
    assert r[0] == r[1] == np.inf
    assert r[2] > 20
    assert r[3] == -np.inf


def test_zhang_and_stephens():
    y = gpd_rows(0.3, 20_000, 14)
    assert reference.zhang_stephens(y) == pytest.approx((0.3, 1), abs=0.03)
    xi, sigma = reference.zhang_stephens(y[:50])
    assert reference.zhang_stephens(7 * y[:50]) == pytest.approx((xi, 7 * sigma))
    assert xi == pytest.approx(float(reference.fit_gpd(y[:50])[0]), abs=0.15)


def test_end_points():
    assert reference.end_point(0.5, -0.5, 0.2) == pytest.approx(0.9)
    assert reference.end_point(0.5, 0.1, 0.2) == math.inf
    assert reference.end_point(0.5, 0.1, 0.2, upper=0.8) == 0.8
    assert reference.end_point(0.5, -0.5, 0.2, upper=2.0) == pytest.approx(2 * -math.expm1(-0.9))


# --- scale and shift --------------------------------------------------------------------------


def test_the_scale_of_a_known_end():
    c = np.array([-0.5, 0.0, 0.3, 0.999, 1.0])
    t = reference.to_t(c, 1.0)
    assert t[-1] == math.inf
    np.testing.assert_allclose(reference.from_t(t, 1.0), c, atol=1e-15)
    np.testing.assert_allclose(reference.to_t(0.3 * c, 0.3), t, rtol=1e-12)
    assert reference.to_t(c) is c


def test_bounds_of_rows():
    shares, apart = reference.row_shares([0.1, 0.0, 0.3], [0.4, 0.0, 0.3])
    assert (shares.tolist(), apart) == ([0.25, 1.0], 1)


def test_a_law_at_a_known_end_is_exponential():
    """1 - F ~ (b - c)^a has shape 0 and scale 1/a on t, shape -1/a on c."""
    c = stats.beta(1, 3).rvs(20_000, random_state=np.random.default_rng(15))
    for upper, xi in ((None, -1 / 3), (1.0, 0.0)):
        _, y = reference.excesses(reference.to_t(c, upper), 2000)
        assert reference.fit_gpd(y)[0] == pytest.approx(xi, abs=0.06)


def test_roots_know_no_unit():
    y = gpd_rows(-0.2, 34, 16)
    levels = np.array([0.5, 2.0, 4.0])
    first, second = (np.array(reference.signed_root(f * y, f * levels, 34.0)) for f in (1.0, 1e-4))
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_intervals_move_with_the_rows(table):
    plain = reference.return_level_interval(two_curves(table)[0])
    moved = reference.return_level_interval(two_curves(table, 3.0, -7.0)[0])
    np.testing.assert_allclose(moved, 3 * np.array(plain) - 7, rtol=1e-5)


# --- cuts and intervals -----------------------------------------------------------------------


def test_scores_between_quantiles_and_beyond(table):
    row = table[4]
    for p, q in zip(reference.PROBABILITIES, row, strict=True):
        assert reference.normal_score(q, row) == pytest.approx(stats.norm.ppf(p))
    outer = stats.norm.ppf(0.0005)
    assert reference.normal_score(row[0] - 0.7, row) == pytest.approx(outer - 0.7)
    assert reference.normal_score(row[-1] + 0.7, row) == pytest.approx(0.7 - outer)
    assert reference.two_sided(outer - 0.7) == (0.001, True)
    assert reference.two_sided(1.96) == (pytest.approx(0.05, abs=1e-4), False)


def test_below_the_first_node_the_worst_counts(table):
    for r in (-3.0, -2.5, -0.7, 0.4, 1.7):
        nodes = [reference.normal_score(r, row) for row in table[:3]]
        found = reference.z_of(r, -0.95, table)
        assert abs(found) <= min(map(abs, nodes))
    low, high = reference.cuts_at(table, -0.95, 0.025, 0.975)
    for r, accepted in ((low + 1e-9, True), (low - 1e-6, False), (high + 1e-6, False)):
        assert (abs(reference.z_of(r, -0.95, table)) <= stats.norm.ppf(0.975)) == accepted


def test_the_interval_holds_its_cuts(table):
    for sample in two_curves(table):
        interval = reference.return_level_interval(sample)
        assert interval[0] < sample.estimate() < interval[1]
        np.testing.assert_allclose(sample.z(interval), [1.95996, -1.95996], atol=1e-4)
        levels = [reference.to_t(x) - sample.u for x in interval]
        for y0, side in zip(levels, (1, 0), strict=True):
            r, xi = reference.signed_root(sample.y, y0, sample.M)
            assert r == pytest.approx(reference.cuts_at(table, xi, 0.025, 0.975)[side], abs=1e-4)
        outer = reference.return_level_interval(sample, 0.99)
        assert outer[0] < interval[0] < interval[1] < outer[1]


def test_scores_of_many_samples(table):
    c = np.random.default_rng(27).beta(2, 4, (3, 500))
    z, _ = reference.scores_at(c, 0.65, 500, table, upper=1.0)
    alone = [reference.curve(value, 500, table, upper=1.0).z(0.65)[0] for value in c]
    np.testing.assert_allclose(z, alone, atol=1e-6)


@pytest.mark.calibration
@pytest.mark.parametrize("m", [125, 2000])
def test_intervals_cover_the_level(m):
    """Five laws, n = 500; chi-square cuts on the scale of c fall out of the band (uniform)."""
    cuts = reference.cut_table(34, 500, m, n_simulations=2000, seed=6)
    draws, cut = 3000, stats.norm.ppf(0.975)
    least, most = stats.binom.ppf([1e-6, 1 - 1e-6], draws, 0.95) / draws
    for seed, (law, upper) in enumerate(LAWS.values()):
        c = law.ppf(np.random.default_rng(seed).random((draws, 500)))
        z, _ = reference.scores_at(c, law.isf(1 / m), m, cuts, upper=upper)
        assert least <= np.mean(np.abs(z) <= cut) <= most
    c = np.random.default_rng(9).random((draws, 500))
    _, r = reference.scores_at(c, 1 - 1 / m, m, cuts)
    assert np.mean(np.abs(r) <= cut) < least


def test_calibrated_cuts_shift_the_interval_up(table):
    """The null law of r lies to the left: chi-square cuts end too low."""
    sample = two_curves(table)[0]
    assert (
        reference.return_level_interval(sample)[1]
        > (reference.chi_square_interval(sample.y, sample.u, sample.M)[1])
    )


def test_types_by_the_interval_of_the_shape():
    cuts = reference.cut_table_of_shape(34, n_simulations=200, seed=2)
    for xi, kind in ((-0.7, "III"), (0.0, "I"), (1.1, "II")):
        y = reference.exponential_to_gpd(-np.log(np.arange(34, 0, -1) / 35), xi)
        low, high = reference.shape_interval(y, cuts)
        assert low < reference.fit_gpd(y)[0] < high
        assert reference.tail_type((low, high)) == kind
    assert [reference.feasible(kind) for kind in ("I", "II", "III")] == [True, False, True]


# --- order statistics -------------------------------------------------------------------------


def test_limits_of_order_statistics():
    values = np.arange(1.0, 501.0)
    assert reference.order_interval(values, 50) == (501 - 18, 501 - 4)
    assert reference.order_interval(values, 400) == (reference.lower_free(values, 400), math.inf)
    r = reference.order_ranks(500, 400)[0]
    assert stats.binom.sf(r - 1, 500, 1 / 400) <= 0.025 < stats.binom.sf(r - 2, 500, 1 / 400)
    assert reference.at_least(600.0, values, 50) == 501 - 18


def test_what_is_measured_extrapolated_refused():
    found = [reference.standing(500, m) for m in (100, 136, 137, 2500, 2501)]
    assert found == ["measured", "measured", "extrapolated", "extrapolated", "refused"]
    assert reference.standing(99, 10) == "refused"
    assert (reference.largest_horizon(200), reference.largest_horizon(99)) == (1000, 0)


def test_near_the_switch_the_upper_limit_is_not_below_the_largest():
    values = np.arange(500.0)
    assert reference.primary_interval(values, 150, (1.0, 2.0)) == (1.0, 499.0)
    assert reference.primary_interval(values, 200, (1.0, 2.0)) == (1.0, 2.0)
    assert reference.primary_interval(values, 50, (1.0, 2.0)) == (482.0, 496.0)


# --- two samples ------------------------------------------------------------------------------


@pytest.mark.parametrize("steep", [1.0, 1e3, 1e5])
def test_the_minimum_between_a_flat_and_a_steep_curve(steep):
    """(x - 1)^2 + (steep (x - 3))^2 has its minimum 4 steep^2 / (1 + steep^2)."""
    _, Q = reference.least_distance(
        lambda x: (x - 1) ** 2, lambda x: (steep * (x - 3)) ** 2, [1.0, 3.0]
    )
    assert pytest.approx(4 * steep**2 / (1 + steep**2), rel=1e-6) == Q


def test_equal_levels(table):
    first, second = two_curves(table)
    Q, p = reference.equal_levels_test(first, second)
    assert reference.equal_levels_test(second, first) == pytest.approx((Q, p), abs=1e-5)
    moved = reference.equal_levels_test(*two_curves(table, 5.0, 2.0))
    assert moved == pytest.approx((Q, p), abs=1e-4)
    dense = np.linspace(0.4, 2, 401)
    lowest = np.min(first.z(dense) ** 2 + second.z(dense) ** 2)
    assert lowest - 4e-3 < Q < lowest + 1e-9
    same, sure = reference.equal_levels_test(first, first)
    assert (same, sure) == pytest.approx((0, 1), abs=1e-4)


def test_few_expected_exceedances_are_refused(table):
    sample = reference.curve(np.random.default_rng(0).beta(2, 4, 500), 40, table, k=34)
    with pytest.raises(ValueError, match="M >= 3"):
        reference.equal_levels_test(sample, sample)


def test_the_interval_of_the_difference_is_the_test_inverted(table):
    first, second = two_curves(table)
    low, high = reference.ecd_interval(first, second, steps=6)
    assert low < reference.ecd(first, second) < high
    cut = stats.chi2.ppf(0.95, 1)
    for limit in (low, high):
        Q = reference.shifted_distance(first, second, limit)[1]
        assert pytest.approx(cut, abs=0.3) == Q
    assert (low <= 0 <= high) == (reference.equal_levels_test(first, second)[1] >= 0.05)


def test_deviances_of_counts():
    assert reference.deviance(5, 500, 100) == pytest.approx(0)
    for N in (0, 2, 9, 500):
        expected = 2 * (stats.binom.logpmf(N, 500, N / 500) - stats.binom.logpmf(N, 500, 0.01))
        assert reference.deviance(N, 500, 100) == pytest.approx(expected)
    assert reference.deviance_tail(0.0, 500, 100) == pytest.approx(1)


def test_the_order_test():
    rng = np.random.default_rng(17)
    first, second = rng.exponential(size=400), rng.exponential(size=300)
    Q, p = reference.order_test(first, second, 50)
    assert reference.order_test(second, first, 50) == pytest.approx((Q, p))
    assert reference.order_test(np.exp(first), np.exp(second), 50) == pytest.approx((Q, p))
    far, small = reference.order_test(first, second + 10, 50)
    assert far == pytest.approx(reference.deviance(0, 400, 50))
    assert small < 0.01 < p


def test_the_hybrid_test(table):
    rng = np.random.default_rng(18)
    counted = rng.beta(2, 4, 4000)
    fitted = two_curves(table)[0]
    Q, p = reference.hybrid_test(counted, fitted, 500)
    assert Q >= 0
    assert p >= stats.chi2.sf(Q, 1)
    assert reference.hybrid_test(counted + 5, fitted, 500)[1] < 0.01


def test_permuting_groups():
    rng = np.random.default_rng(19)
    first, second = rng.beta(2, 4, (2, 120))
    k = reference.default_k(120)
    observed, p = reference.equal_laws_test(first, second, 300, n_permutations=19)
    assert observed == pytest.approx(
        reference.fitted_level(first, 300, k) - reference.fitted_level(second, 300, k)
    )
    assert p == pytest.approx(round(20 * p) / 20)
    assert reference.equal_laws_test(first, 9 * second, 300, n_permutations=19)[1] <= 0.2


# --- atoms ------------------------------------------------------------------------------------


def test_cells_of_scores():
    c = np.repeat([0.0, 0.01, 0.02, 0.03, 0.05], [50, 30, 20, 10, 5])
    cells = reference.grouped(c, 0.01, k=20)
    assert cells.u == pytest.approx(0.025)
    assert (cells.k, cells.counts.tolist()) == (15, [10, 5])
    np.testing.assert_allclose(cells.low, [0, 0.02], atol=1e-12)
    np.testing.assert_allclose(cells.high, [0.01, 0.03], atol=1e-12)
    assert reference.grouped_standing(c, 0.01, k=20) == "order statistics only"
    assert reference.grouped_standing(np.arange(100) / 100, 0.01, k=20) == "fit"
    assert reference.grouped_standing(np.maximum(np.arange(100) / 100 - 0.8, 0), 0.01, 30) == (
        "order statistics only"
    )
    at_the_end = reference.grouped(np.arange(101) / 100, 0.01, k=20, upper=1.0)
    assert at_the_end.high[-1] == math.inf


def test_fine_cells_are_the_continuous_fit():
    rng = np.random.default_rng(20)
    c = np.round(rng.exponential(0.1, 500), 5)
    cells = reference.grouped(c, 1e-5, k=34)
    u, y = reference.excesses(c, 34)
    assert cells.u == pytest.approx(u, abs=1e-5)
    xi, sigma, _ = reference.fit_gpd(y)
    found = reference.fit_grouped(cells)
    np.testing.assert_allclose(found[:2], [xi, sigma], atol=2e-3)
    levels = np.array([0.15, 0.3, 0.6])
    r, at = reference.grouped_signed_root(cells, levels, 34.0)
    expected, shapes = reference.signed_root(y, levels, 34.0)
    np.testing.assert_allclose(r, expected, atol=0.01)
    np.testing.assert_allclose(at, shapes, atol=0.01)


def test_cells_of_an_exponential_are_geometric():
    """At xi = 0 and cells of width h the law is geometric: its estimate is closed."""
    counts = np.array([20, 9, 5, 3, 1, 1])
    j = np.arange(6)
    cells = reference.Grouped(u=0.0, low=0.1 * j, high=0.1 * (j + 1), counts=counts, n=500)
    mean = np.sum(j * counts) / counts.sum()
    sigma = 0.1 / math.log1p(1 / mean)
    value = reference.grouped_log_likelihood(cells, 0.0, sigma)
    assert value > reference.grouped_log_likelihood(cells, 0.0, 1.01 * sigma)
    assert value > reference.grouped_log_likelihood(cells, 0.0, 0.99 * sigma)
    share = 1 / (1 + mean)
    expected = np.sum(counts * (np.log(share) + j * np.log1p(-share)))
    assert value == pytest.approx(expected)
    xi, wide, top = reference.fit_grouped(cells)
    assert top >= value
    level = reference.return_excess(xi, wide, 12.0)
    assert reference.grouped_signed_root(cells, level, 12.0)[0] == pytest.approx(0, abs=1e-3)


def test_intervals_of_scores_on_a_grid(table):
    """Scores on a grid of 0.005 have about the interval of the scores before rounding."""
    c = np.random.default_rng(8).beta(2, 4, 500)
    plain = np.array(reference.return_level_interval(reference.curve(c, 500, table, 34, 1.0)))
    sample = reference.grouped_curve(np.rint(200 * c) / 200, 0.005, 500, table, 34, 1.0)
    np.testing.assert_allclose(reference.return_level_interval(sample), plain, atol=0.03)


# --- the GEV law ------------------------------------------------------------------------------


@pytest.mark.parametrize("xi", [-0.3, 0.0, 0.4])
def test_gpd_and_gev_are_each_other(xi):
    mu, scale, shape = reference.gev_of_gpd(0.2, xi, 0.7, 12.0)
    assert reference.gpd_of_gev(mu, scale, shape, 0.2) == pytest.approx((0.7, 12.0))
    law = stats.genextreme(-xi, loc=mu, scale=scale)
    y = np.array([0.1, 0.5, 1.0])
    expected = np.exp(-12 * reference.gpd_survival(y, xi, 0.7))
    np.testing.assert_allclose(law.cdf(0.2 + y), expected, rtol=1e-10)
    x = reference.gev_return_level(mu, scale, xi, 50, 400)
    assert law.cdf(x) ** (1 / 50) == pytest.approx(1 - 1 / 400, rel=1e-10)
    z = law.rvs(30, random_state=np.random.default_rng(1))
    found = reference.gev_log_likelihood(z, (mu, scale, xi))
    assert found == pytest.approx(law.logpdf(z).sum(), abs=1e-8)


@pytest.mark.parametrize("xi", [-0.2, 0.0, 0.3])
def test_the_fit_of_maxima_is_scipys(xi):
    z = stats.genextreme(-xi, loc=2, scale=0.5).rvs(80, random_state=np.random.default_rng(21))
    mu, scale, shape, value = reference.fit_gev(z)
    c, loc, wide = stats.genextreme.fit(z, -shape, loc=mu, scale=scale)
    assert (shape, mu, scale) == pytest.approx((-c, loc, wide), abs=1e-3)
    assert value >= stats.genextreme.logpdf(z, c, loc, wide).sum() - 1e-9


def test_the_point_process_is_the_pareto_fit():
    rng = np.random.default_rng(22)
    x = rng.exponential(0.3, 500)
    u, y = reference.excesses(x, 34)
    xi, sigma, _ = reference.fit_gpd(y)
    blocks = 5
    mu, scale, shape, _ = reference.fit_point_process(u + y, u, blocks)
    expected = reference.gev_of_gpd(u, xi, sigma, 34 / blocks)
    np.testing.assert_allclose([mu, scale, shape], expected, atol=1e-6)


def test_blocks_of_rows():
    assert reference.block_maxima([1, 5, 2, 8, 3, 9, 4], 3).tolist() == [5, 9]


# --- diagnostics and averages -----------------------------------------------------------------


def test_coefficients_of_variation():
    y = gpd_rows(0.0, 300, 23)
    assert reference.residual_cv(3 * y + 5, 40) == pytest.approx(reference.residual_cv(y, 40))
    assert reference.raw_cv(y + 5, 40) < reference.raw_cv(y, 40) < 1
    critical = [reference.cv_critical(k, n_simulations=4000) for k in (10, 100, 400)]
    assert critical[0] > critical[1] > critical[2] > 1


def test_anderson_and_darling():
    y = gpd_rows(0.2, 60, 24)
    found = reference.anderson_darling(y, 0.2, 1.1)
    law = stats.genpareto(0.2, scale=1.1)
    scipys = stats.goodness_of_fit(
        stats.genpareto,
        y,
        known_params={"c": 0.2, "loc": 0, "scale": 1.1},
        statistic="ad",
        n_mc_samples=1,
        rng=np.random.default_rng(0),
    )
    assert found == pytest.approx(scipys.statistic)
    p = np.sort(law.cdf(y))
    edges = np.concatenate([[0], p, [1]])
    integral = sum(
        integrate.quad(lambda q, i=i: (i / 60 - q) ** 2 / (q * (1 - q)), a, b)[0]
        for i, (a, b) in enumerate(pairwise(edges))
    )
    assert found == pytest.approx(60 * integral, rel=1e-5)
    assert reference.anderson_darling_test(y, 99)[1] > 0.05
    clustered = np.concatenate([y, np.linspace(0.99, 1.01, 60)])
    assert reference.anderson_darling_test(clustered, 99)[1] == 0.01


def test_forward_stop():
    assert reference.forward_stop([0.01, 0.02, 0.9, 0.9]) == 2
    assert reference.forward_stop([0.9, 0.01]) == 0
    assert reference.forward_stop([0.01, 0.12, 0.001]) == 3


def test_the_quantile_plot():
    y = gpd_rows(0.0, 50, 25)
    rows = reference.quantile_plot(y, 0.0, 2.0)
    np.testing.assert_allclose(rows[:, 1], -2 * np.log1p(-np.arange(1, 51) / 51))
    assert np.all((rows[:, 2] < rows[:, 1]) & (rows[:, 1] < rows[:, 3]))


def test_stability_over_k():
    c = np.random.default_rng(26).beta(2, 4, 500)
    rows = reference.stability(c, 500, [17, 34], upper=1.0)
    assert rows[1, 4] == pytest.approx(reference.fitted_level(c, 500, 34, upper=1.0))
    assert rows[0, 1] > rows[1, 1]
    assert np.all((rows[:, 4] > c.max() * 0.8) & (rows[:, 4] < 1))


def test_averages():
    assert reference.discrimination([0.5, 0.2], [0.75, 0.1]) == pytest.approx([0.25, -0.1])
    c = np.arange(1.0, 11.0)
    assert reference.acd(c) == 5.5
    assert reference.cvar(c, 0.2) == 9.5
    assert reference.cvar(c, 0.25) == pytest.approx((10 + 9 + 4) / 2.5)
    assert reference.cvar(c, 1.0) == 5.5
