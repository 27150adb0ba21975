"""Tests and intervals of the difference of return levels, by simulation at fixed seeds.

Shares must lie in a binomial band of tail 1e-6; the broken variants must not.
"""

import numpy as np
import pytest
from scipy import optimize, stats

from fairaudit_rs import _native
from fairaudit_rs.extremes.comparison import compare_return_levels, permute_levels
from fairaudit_rs.extremes.problem import TailProblem
from fairaudit_rs.inference.multiplicity import adjust_pvalues

from ..reference import extremes as reference
from ..reference.extremes_designs import EXPONENTIAL, INDEX, LAWS, T4
from .test_calibration_levels import at_most, flat_cuts, within


def compare_levels(first, second, m, confidence, call):
    """Of two sides alone."""
    return _native.compare_levels([first, second], [(0, 1)], m, confidence, call)[0]


pytestmark = pytest.mark.calibration

CALL = _native.Call(1)
BETA = LAWS["beta(2, 4)"]


def scaled(law, like, m, ratio=1.0):
    """A multiple of a law with the level of another, divided by a ratio."""
    return law.times(like.level(1 / m) / (ratio * law.level(1 / m)))


def tails(rng, laws, sizes, upper=None):
    return [
        TailProblem(values=law.sample(rng, n), upper=upper)
        for law, n in zip(laws, sizes, strict=True)
    ]


@pytest.mark.parametrize(
    ("first", "second", "sizes", "m", "upper"),
    [
        (BETA, EXPONENTIAL, (500, 100), 400, None),
        (BETA, BETA, (2_000, 500), 1_000, 1.0),
        (EXPONENTIAL, T4, (2_000, 2_000), 1_000, None),
    ],
)
def test_equal_levels_of_fits(first, second, sizes, m, upper):
    rng, samples = np.random.default_rng(21), 1_000
    second = scaled(second, first, m)
    pvalues = [
        compare_return_levels(*tails(rng, (first, second), sizes, upper), m, CALL).pvalue
        for _ in range(samples)
    ]
    assert within(sum(p <= 0.05 for p in pvalues), samples, 0.05)


def test_the_raw_likelihood_ratio_fails():
    """Broken: the two-sample ratio against chi-square, 500 and 100 rows."""
    rng, samples, m = np.random.default_rng(21), 1_000, 400
    second, flat, rejected = scaled(EXPONENTIAL, BETA, m), flat_cuts(), 0
    for _ in range(samples):
        sides = [(tail.fit, flat) for tail in tails(rng, (BETA, second), (500, 100))]
        rejected += compare_levels(*sides, float(m), 0.95, CALL)[1] <= 0.05
    assert not at_most(rejected, samples, 0.05)


def test_permuted_groups_test_equal_laws_only():
    """Broken as a test of equal levels: with equal levels and other laws it rejects."""
    rng, samples, m = np.random.default_rng(22), 200, 1_000
    second, rejected = scaled(EXPONENTIAL, BETA, m), 0
    for seed in range(samples):
        pair = tails(rng, (BETA, second), (2_000, 500))
        observed, drawn = permute_levels(*pair, m, _native.Draws(99, seed=seed), CALL)
        rejected += 1 + (np.abs(drawn) >= abs(observed)).sum() <= 5
    assert not at_most(rejected, samples, 0.05)


def test_the_minimiser_matters():
    """A curve of an index model is thousands of times steeper than the other's.

    Broken: a plain search between the two estimates.
    """
    rng, samples, m = np.random.default_rng(23), 400, 1_000
    first = INDEX["index model"]
    second = scaled(BETA, first, m)
    ours = plain = 0
    cut = stats.chi2.isf(0.05, 1)
    for _ in range(samples):
        pair = tails(rng, (first, second), (2_000, 500))
        ours += compare_return_levels(*pair, m, CALL).pvalue <= 0.05
        least = least_between(pair, m)
        plain += least > cut
    assert within(ours, samples, 0.05)
    assert not at_most(plain, samples, 0.05)


def least_between(pair, m):
    def total(x):
        at = np.array([x])
        return sum(tail.fit.z(m, at, tail.cuts(m, CALL), CALL)[0] ** 2 for tail in pair)

    ends = sorted(tail.fit.level(m) for tail in pair)
    return optimize.minimize_scalar(total, bounds=ends, method="bounded").fun


@pytest.mark.parametrize(
    ("sizes", "m", "method"),
    [
        ((500, 500), 50, "order statistics"),
        ((500, 100), 25, "order statistics"),
        ((2_000, 500), 500, "order statistics and fit"),
    ],
)
def test_counted_groups(sizes, m, method):
    """Exponential against t4; order statistics are discrete, and may reject less."""
    rng, samples = np.random.default_rng(24), 1_500
    second = scaled(T4, EXPONENTIAL, m)
    found = [
        compare_return_levels(*tails(rng, (EXPONENTIAL, second), sizes), m, CALL)
        for _ in range(samples)
    ]
    assert {comparison.method for comparison in found} == {method}
    assert at_most(sum(comparison.pvalue <= 0.05 for comparison in found), samples, 0.05)
    assert at_most(sum(comparison.pvalue <= 0.01 for comparison in found), samples, 0.01)


def test_near_uniform_tails_reject_too_little():
    rng, samples, m = np.random.default_rng(25), 500, 400
    uniform, flat = LAWS["uniform"], flat_cuts()
    rejected = raw = 0
    for _ in range(samples):
        pair = tails(rng, (uniform, uniform), (500, 100))
        rejected += compare_return_levels(*pair, m, CALL).pvalue <= 0.05
        sides = [(tail.fit, flat) for tail in pair]
        raw += compare_levels(*sides, float(m), 0.95, CALL)[1] <= 0.05
    assert at_most(rejected, samples, 0.05)
    assert raw > rejected


def test_the_interval_of_the_difference_covers():
    """A ratio of 1.5; broken: without the cuts."""
    rng, samples, m = np.random.default_rng(26), 600, 400
    second, flat = scaled(EXPONENTIAL, BETA, m, 1.5), flat_cuts()
    truth = BETA.level(1 / m) - second.level(1 / m)
    missed = missed_flat = 0
    for _ in range(samples):
        pair = tails(rng, (BETA, second), (500, 100))
        found = compare_return_levels(*pair, m, CALL)
        missed += not found.low <= truth <= found.high
        sides = [(tail.fit, flat) for tail in pair]
        _, _, low, high = compare_levels(*sides, float(m), 0.95, CALL)
        missed_flat += not low <= truth <= high
    assert at_most(missed, samples, 0.05)
    assert not at_most(missed_flat, samples, 0.05)


def test_adjusted_pvalues_of_four_groups():
    """All six pairs of four groups with one level; broken: without an adjustment."""
    rng, samples, m = np.random.default_rng(27), 300, 1_000
    laws = [BETA, *(scaled(law, BETA, m) for law in (EXPONENTIAL, T4, BETA))]
    found = alone = 0
    for _ in range(samples):
        groups = tails(rng, laws, (1_000, 500, 500, 500))
        pvalues = [
            compare_return_levels(groups[i], groups[j], m, CALL).pvalue
            for j in range(4)
            for i in range(j)
        ]
        found += adjust_pvalues(pvalues).min() <= 0.05
        alone += min(pvalues) <= 0.05
    assert at_most(found, samples, 0.05)
    assert not at_most(alone, samples, 0.05)


def test_counted_groups_whose_values_lie_apart():
    """n = 370 each, m = 100, equal levels at 1 %: not with the larger of the one-sample tails.

    Above 0.5 lies one row in 100 of either group; below, the values of the first lie far away and
    those of the second close by, so that no other level fits both better.
    """
    rng, n, m, samples = np.random.default_rng(29), 370, 100.0, 5_000
    found = []
    for _ in range(samples):
        above = rng.random((2, n)) < 1 / m
        high = 0.5 + 0.1 * rng.random((2, n))
        low = np.stack([0.1 * rng.random(n), 0.45 + 0.05 * rng.random(n)])
        sides = [_native.TailValues(row, CALL) for row in np.where(above, high, low)]
        found.append(compare_levels(*sides, m, 0.95, CALL)[:2])
    most = stats.binom.ppf(1 - 1e-6, samples, 0.01)
    assert sum(p <= 0.01 for _, p in found) <= most
    tails = [reference.deviance_tail(statistic, n, m) for statistic, _ in found]
    assert sum(p <= 0.01 for p in tails) > most
