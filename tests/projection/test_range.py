"""Tolerances and distances at the end of the numbers: an answer, or a refusal of ours."""

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import _native, errors

N = 200
RNG = np.random.default_rng(0)
LABEL = (RNG.random(N) < 0.5).astype(int)
SCORE = RNG.random(N)
NOTIONS = ["equal_opportunity", "equalized_odds", "statistical_parity"]


@pytest.mark.parametrize("epsilon", [2.0, 1e153, 1e155, 1e300, 1.7e308])
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("n_groups", [2, 3])
def test_a_tolerance_of_any_size_is_kept(notion, n_groups, epsilon):
    result = fa.projection_test(
        LABEL,
        (SCORE > 0.5).astype(int),
        y_score=SCORE,
        sensitive_features=np.arange(N) % n_groups,
        reference=0,
        epsilon=epsilon,
        notion=notion,
    )
    assert (result.statistic, result.pvalue) == (0.0, 1.0)


@pytest.mark.parametrize("size", [1.7e308, 1e308, 1e-310])
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("calibration", ["asymptotic", "permutation"])
def test_distances_at_the_end_of_the_numbers_are_refused(notion, calibration, size):
    columns = {"sensitive_features": LABEL[::-1], "notion": notion, "calibration": calibration}
    with pytest.raises(errors.DataError, match=r"the largest distance to the boundary is .*Resc"):
        fa.projection_test(LABEL, y_score=(SCORE - 0.5) * size, threshold=0.0, **columns)
    with pytest.raises(errors.DataError, match=r"the largest distance to the boundary is .*Resc"):
        fa.projection_test(LABEL, (SCORE > 0.5).astype(int), distance=SCORE * size, **columns)


def test_a_box_far_away_is_refused_where_it_arrives():
    one = np.ones(1)
    with pytest.raises(errors.ArgumentError, match=r"a box side is .*up to 1e100"):
        _native.BoxLaw(one, one, -1e153 * one, 1e153 * one, _native.Call())
