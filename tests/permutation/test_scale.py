"""Weights and values in any unit: powers of two change no bit, what leaves the numbers is told."""

import re

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors

N = 300
RNG = np.random.default_rng(0)
LABEL = (RNG.random(N) < 0.5).astype(int)
GROUP = np.where(RNG.random(N) < 0.5, "a", "b")
SCORE = RNG.random(N)
ATTRIBUTE = RNG.normal(size=N)
WEIGHT = RNG.integers(1, 64, N) / 8.0
CLUSTER = np.arange(N) // 3
STRATUM = np.arange(N) % 4


def told(result):
    return repr(
        (result.statistic, result.pvalue, result.estimate, list(result.confidence_interval))
    )


def audited(metric, design, weight):
    columns = {"sensitive_features": GROUP, "sample_weight": weight}
    if design == "clusters":
        columns |= {"sensitive_features": np.where(CLUSTER % 2, "a", "b"), "clusters": CLUSTER}
    if design == "strata":
        columns["strata"] = STRATUM
    scored = metric in ("auc", "mean_squared_error", "mean_prediction")
    columns |= {"y_score": SCORE} if scored else {"y_pred": (SCORE > 0.5).astype(int)}
    return told(fa.permutation_test(LABEL, metric=metric, n_resamples=99, rng=0, **columns))


@pytest.mark.parametrize("exponent", [3, 250, 1000, -70, -400, -1020])
@pytest.mark.parametrize("design", ["rows", "clusters", "strata"])
@pytest.mark.parametrize("metric", ["tpr", "auc", "f1", "mean_squared_error", "mean_prediction"])
def test_the_unit_of_weights_plays_no_part(metric, design, exponent):
    assert audited(metric, design, np.ldexp(WEIGHT, exponent)) == audited(metric, design, WEIGHT)


@pytest.mark.parametrize("exponent", [250, 1000, -400, -1020])
def test_the_unit_of_weights_plays_no_part_in_intervals_and_projections(exponent):
    def both(weight):
        columns = {"sensitive_features": GROUP, "sample_weight": weight}
        decision = (SCORE > 0.5).astype(int)
        ranges = fa.intervals(LABEL, decision, metric="tpr", n_resamples=99, rng=0, **columns)
        nearest = fa.projection_test(LABEL, decision, distance=abs(SCORE - 0.5), **columns)
        return repr((ranges.rows(), nearest.statistic, nearest.pvalue, nearest.distance))

    assert both(np.ldexp(WEIGHT, exponent)) == both(WEIGHT)


@pytest.mark.parametrize("exponent", [3, 250, 1000, -400, -1000])
@pytest.mark.parametrize("metric", ["spearman", "pearson"])
def test_the_unit_of_an_attribute_plays_no_part(metric, exponent):
    def audited(attribute):
        return told(
            fa.permutation_test(
                LABEL,
                y_score=SCORE,
                sensitive_features=attribute,
                metric=metric,
                n_resamples=99,
                rng=0,
            )
        )

    assert audited(np.ldexp(ATTRIBUTE, exponent)) == audited(ATTRIBUTE)


def test_an_attribute_whose_differences_overflow_is_correlated():
    ends = np.where(ATTRIBUTE > 0, 1.7e308, -1.7e308)
    results = [
        fa.permutation_test(
            LABEL, y_score=SCORE, sensitive_features=x, metric="pearson", n_resamples=99, rng=0
        )
        for x in (ends, np.sign(ends))
    ]
    assert results[0].estimate == pytest.approx(results[1].estimate, rel=1e-12)
    assert results[0].pvalue == results[1].pvalue


@pytest.mark.parametrize("size", [1e200, 1e76, 1e-120, 1e-310])
def test_row_values_whose_powers_are_no_numbers_are_refused(size):
    told = (
        rf"mean_prediction has absolute values of up to {re.escape(f'{size:g}')}; .*in another unit"
    )
    with pytest.raises(errors.ArgumentError, match=told):
        fa.permutation_test(
            LABEL,
            y_score=np.where(SCORE > 0.5, size, -size),
            sensitive_features=GROUP,
            metric="mean_prediction",
        )


def test_counts_beyond_the_whole_floats_are_refused():
    half = 2**52 + 1
    with pytest.raises(errors.DataError, match=r"counts add up to .* rows; accepted: up to"):
        fa.tabulate(
            y_true=[1, 0, 1],
            y_pred=[1, 0, 1],
            sensitive_features=["a", "b", "a"],
            counts=[half, 1, half],
        )
    cells = fa.tabulate(
        y_true=[1, 0], y_pred=[1, 0], sensitive_features=["a", "b"], counts=[half, 1]
    )
    with pytest.raises(errors.DataError, match=r"counts add up to .* rows; accepted: up to"):
        cells + cells
