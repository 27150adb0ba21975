"""Intervals of return levels: the shipped cuts against their oracles, coverage by simulation.

Shares must lie in a binomial band of tail 1e-6; the broken variants must not.
"""

import numpy as np
import pytest
from scipy import stats

from fairaudit_rs import _native
from fairaudit_rs.extremes.problem import TailProblem

from ..reference.extremes_designs import EXPONENTIAL, INDEX, LAWS, MIXTURES

CALL = _native.Call(1)
NODES, PROBABILITIES = (np.array(row) for row in _native.cut_grid())
#: Quantiles of the oracles.
OUTER = (0.005, 0.025, 0.05, 0.5, 0.95, 0.975, 0.995)
#: Oracles of section 5, n = 500, k = 34, m = 500, and of its measurements at n = 2,000, k = 78.
ORACLES = {
    (500, 34, 500, -0.8): (-3.177, -2.721, -2.452, -0.901, 1.465, 1.799, 2.344),
    (500, 34, 500, -0.2): (-3.224, -2.546, -2.207, -0.416, 1.421, 1.778, 2.485),
    (500, 34, 500, 0.0): (-3.121, -2.438, -2.114, -0.344, 1.457, 1.791, 2.478),
    (500, 34, 500, 0.5): (-2.971, -2.309, -1.985, -0.244, 1.508, 1.823, 2.520),
    (2_000, 78, 500, 0.0): (-2.854, -2.249, -1.936, -0.187, 1.567, 1.926, 2.582),
    (2_000, 78, 2_000, -0.8): (-3.225, -2.658, -2.387, -0.814, 1.273, 1.681, 2.366),
    (2_000, 78, 8_000, 0.0): (-2.915, -2.243, -1.936, -0.269, 1.397, 1.714, 2.372),
}
ERROR = stats.norm.isf(0.025)


def flat_cuts():
    """Broken: the root as it is, as if its square were chi-square."""
    return _native.Cuts(np.tile(stats.norm.ppf(PROBABILITIES), (len(NODES), 1)))


def at_outer(cuts, shape):
    columns = [int(np.flatnonzero(number == PROBABILITIES)[0]) for number in OUTER]
    return np.array([np.interp(shape, NODES, cuts.values[:, column]) for column in columns])


def off(cuts, shape, page):
    """How far quantiles are from the page's, in units of what is allowed: 0.07, 0.14 outermost."""
    allowed = np.where(np.isin(OUTER, (OUTER[0], OUTER[-1])), 0.14, 0.07)
    return np.max(np.abs(at_outer(cuts, shape) - page) / allowed)


def within(count, of, share):
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], of, share)
    return low <= count <= high


def at_most(count, of, share):
    return count <= stats.binom.isf(1e-6, of, share)


# --- known values -----------------------------------------------------------------------------


@pytest.mark.parametrize(("design", "page"), ORACLES.items())
def test_shipped_cuts_are_those_of_the_page(design, page):
    """Both were simulated, with errors of 0.02 to 0.05, and more in the outermost."""
    n, k, m, shape = design
    assert off(_native.Cuts.of_level(k, float(n), float(m)), shape, page) < 1
    assert off(flat_cuts(), shape, page) > 2


@pytest.mark.parametrize(("n", "m"), [(150, 150), (700, 300), (1_300, 5_200)])
def test_shipped_cuts_between_the_tables_are_those_simulated_there(n, m):
    k = _native.default_exceedances(n)
    simulated = _native.simulate_level_cuts(
        k, [(m * k / n, float(n))], _native.Draws(10_000, seed=3), CALL
    )[0]
    shipped = _native.Cuts.of_level(k, float(n), float(m))
    # Errors of the simulation: 0.027 at the ends of these, all nodes together.
    inner = (PROBABILITIES >= 0.025) & (PROBABILITIES <= 0.975)
    difference = np.abs(shipped.values - simulated.values)
    assert difference[:, inner].max() < 0.16
    assert np.sqrt((difference[:, inner] ** 2).mean()) < 0.06


# --- properties -------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_an_interval_holds_a_level_whose_score_is_within_the_cut(law):
    rng, known = np.random.default_rng(5), LAWS[law]
    held = 0
    for _ in range(60):
        problem = TailProblem(values=known.sample(rng, 300), upper=known.upper)
        for m in (75, 1_200):
            found = problem.fitted(m, CALL)
            for truth in (known.level(1 / m), known.level(2 / m), known.level(0.4 / m)):
                z = problem.fit.z(m, np.array([truth]), problem.cuts(m, CALL), CALL)[0]
                assert (abs(z) <= ERROR) == (found.low <= truth <= found.high)
                held += abs(z) <= ERROR
    assert 0 < held < 360


# --- calibration ------------------------------------------------------------------------------

SAMPLES = 4_000


def scores(law, n, m, cuts=None, samples=SAMPLES, seed=11, **options):
    """Normal scores of the true level in many samples, with the cuts of the lens or others."""
    rng, truth = np.random.default_rng(seed), law.level(1 / m)
    found = []
    for _ in range(samples):
        problem = TailProblem(values=law.sample(rng, n), **{"upper": law.upper, **options})
        at = problem.cuts(m, CALL) if cuts is None else cuts
        found.append(problem.fit.z(m, np.array([truth]), at, CALL)[0])
    return np.array(found)


def holds(z):
    """Return whether both errors are those of 95 %."""
    return all(within(int(side.sum()), len(z), 0.025) for side in (z > ERROR, z < -ERROR))


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("law", "n", "m"),
    [
        ("uniform", 500, 125),
        ("beta(2, 1.2)", 500, 500),
        ("beta(2, 4)", 2_000, 8_000),
        ("exponential", 1_300, 1_300),
        ("t4", 2_000, 500),
    ],
)
def test_intervals_of_the_fit_cover(law, n, m):
    z = scores(LAWS[law], n, m)
    assert holds(z)
    assert 0.93 <= np.mean(np.abs(z) <= ERROR) <= 0.965


@pytest.mark.calibration
@pytest.mark.parametrize("options", [{"upper": None}, {}])
def test_chi_square_does_not_cover(options):
    """Broken: without the cuts, on the scale of the values and on that of the fit."""
    z = scores(LAWS["uniform"], 500, 125, flat_cuts(), 1_500, **options)
    assert not holds(z)
    assert np.mean(np.abs(z) <= ERROR) < 0.93


@pytest.mark.calibration
def test_order_statistics_hold_where_no_fit_does():
    """A smooth maximum has shape -2, below what is fitted: n / m of 4 and 3.3."""
    law, n, samples = INDEX["index model"], 500, 2_000
    rng = np.random.default_rng(12)
    wrong = {"primary": [0, 0], "fit": 0, "between": [0, 0]}
    for _ in range(samples):
        problem = TailProblem(values=law.sample(rng, n), upper=1.0)
        found, truth = problem.level(125, CALL), law.level(1 / 125)
        assert found.standing == "measured"
        wrong["primary"][0] += truth < found.low
        wrong["primary"][1] += truth > found.high
        wrong["fit"] += not found.fitted_low <= truth <= found.fitted_high
        found, truth = problem.level(150, CALL), law.level(1 / 150)
        assert found.standing == "extrapolated"
        wrong["between"][0] += truth < found.low
        wrong["between"][1] += truth > found.high
    assert all(at_most(value, samples, 0.025) for value in wrong["primary"])
    # The largest row is below the level in (1 - 1 / 150)^500 = 3.5 % of samples.
    assert all(at_most(value, samples, (1 - 1 / 150) ** 500) for value in wrong["between"])
    assert wrong["fit"] > 0.5 * samples


@pytest.mark.calibration
def test_the_free_limit_holds_with_two_populations_in_the_tail():
    """Of 2 % of the rows the fit sees too few: its lower limit is too high, the free one holds."""
    law, n, m, samples = MIXTURES["2 % of beta(5, 5)"], 500, 2_000, 3_000
    rng, truth = np.random.default_rng(13), law.level(1 / m)
    wrong = {"free": 0, "at least": 0, "fit": 0}
    for _ in range(samples):
        found = TailProblem(values=law.sample(rng, n), upper=1.0).level(m, CALL)
        wrong["free"] += truth < found.lower_free
        wrong["at least"] += truth < found.at_least
        wrong["fit"] += truth < found.fitted_low
    assert at_most(wrong["free"], samples, 0.025)
    assert at_most(wrong["at least"], samples, 0.025)
    assert not at_most(wrong["fit"], samples, 0.025)
    assert wrong["fit"] > 0.1 * samples


@pytest.mark.calibration
def test_cells_cover_where_naive_ties_do_not():
    """Scores on a grid of 0.01, 30 % of them without a difference: the level before rounding."""
    law, n, m, samples = EXPONENTIAL.times(0.02), 2_000, 2_000, 1_500
    rng, truth = np.random.default_rng(14), law.level(1 / (0.35 * m))
    found = {True: [], False: []}
    for _ in range(samples):
        sizes, which = law.sample(rng, n), rng.random(n)
        values = np.where(which < 0.3, 0.0, np.where(which < 0.65, -sizes, sizes))
        values = np.rint(values / 0.01) * 0.01
        for ties, scores_of in found.items():
            problem = TailProblem(values=values, upper=1.0, ties=ties)
            if problem.fit is None:
                continue
            z = problem.fit.z(m, np.array([truth]), problem.cuts(m, CALL), CALL)[0]
            scores_of.append(abs(z))
    covered = {ties: int((np.array(row) <= ERROR).sum()) for ties, row in found.items()}
    assert len(found[True]) > 0.95 * samples
    assert at_most(len(found[True]) - covered[True], len(found[True]), 0.05)
    assert not at_most(len(found[False]) - covered[False], len(found[False]), 0.05)


@pytest.mark.calibration
def test_intervals_of_the_shape_cover():
    """An exponential tail is of type I, but for the error of the interval."""
    rng, samples = np.random.default_rng(15), 3_000
    low, high, flat_low, flat_high = 0, 0, 0, 0
    for _ in range(samples):
        problem = TailProblem(values=EXPONENTIAL.sample(rng, 500))
        limits = problem.shape_interval(CALL)
        low, high = low + (limits[0] > 0), high + (limits[1] < 0)
        limits = problem.fit.shape_interval(0.95, flat_cuts(), CALL)
        flat_low, flat_high = flat_low + (limits[0] > 0), flat_high + (limits[1] < 0)
    assert within(low, samples, 0.025)
    assert within(high, samples, 0.025)
    assert not (within(flat_low, samples, 0.025) and within(flat_high, samples, 0.025))
