"""Levels next to 0 and to 1, and p-values that floats cannot tell from 0."""

import math
import sys

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs.inference import mover, proportions
from fairaudit_rs.inference.pvalues import normal_of_tail, two_sided_normal_quantile

LEAST = sys.float_info.min
ALMOST_ONE = 1 - 2**-53
LEVELS = [5e-324, 1e-300, 2**-53, 1e-12, 0.01, 1 - 1e-12, 1 - 2**-52, ALMOST_ONE]
KINDS = {
    "rate": ("selection_rate", ("y_pred",), ("score", "delta")),
    "f1": ("f1", ("y_true", "y_pred"), ("mover", "delta")),
    "sum": ("balanced_accuracy", ("y_true", "y_pred"), ("mover", "delta")),
    "auc": ("auc", ("y_true", "y_score"), ("mover", "delta")),
    "mean": ("mean_prediction", ("y_score",), ("inversion", "delta")),
    "weights": ("selection_rate", ("y_pred", "sample_weight"), ("inversion", "delta")),
    "clusters": ("selection_rate", ("y_pred", "clusters"), ("inversion", "delta")),
}


def given(kind, groups="ab", n=30):
    """Return the arguments of a call with so many rows of each group."""
    rng = np.random.default_rng(0)
    n_rows = n * len(groups)
    score = rng.random(n_rows)
    y_true = (rng.random(n_rows) > 0.4).astype(int)
    book = {
        "y_true": y_true,
        "y_score": score,
        "y_pred": (score + 0.2 * y_true > 0.5).astype(int),
        "sample_weight": rng.random(n_rows) + 0.5,
        "clusters": np.arange(n_rows) // 2,
    }
    metric, names, _ = KINDS[kind]
    columns = {name: book[name] for name in names}
    group = np.repeat(list(groups), n)
    return {**columns, "sensitive_features": group, "metric": metric, "rng": 1}


def all_of(result):
    """Return the estimates of a result that have an interval."""
    every = (*result.values, *result.gaps, *result.ratios, *result.simultaneous)
    return (*every, result.largest_gap)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
class TestIntervals:
    @pytest.mark.parametrize("groups", ["ab", "abc"])
    def test_ends_are_in_order(self, kind, level, groups):
        for method in KINDS[kind][2]:
            result = fa.intervals(
                **given(kind, groups), method=method, confidence_level=level, n_resamples=99
            )
            for value in all_of(result):
                low, high = value.confidence_interval
                assert low <= high, (method, value)
                if method != "inversion":  # whose limits are those of replicates
                    # Of clusters the value is added up in two orders.
                    near = 1e-12 if kind == "clusters" else 0.0
                    assert low - near <= value.estimate <= high + near, (method, value)

    def test_of_tests(self, kind, level):
        result = fa.permutation_test(**given(kind), confidence_level=level, n_resamples=99)
        low, high = result.confidence_interval
        assert low <= high


class TestNormalLimits:
    def test_levels_next_to_one(self):
        assert two_sided_normal_quantile(0.95) == pytest.approx(1.959963984540054, rel=1e-15)
        assert two_sided_normal_quantile(1 - 2**-52) == pytest.approx(
            normal_of_tail(2**-53), rel=1e-3
        )
        assert two_sided_normal_quantile(ALMOST_ONE) == pytest.approx(
            normal_of_tail(2**-54), rel=1e-12
        )
        # Of several intervals together what is left is nothing.
        assert two_sided_normal_quantile(1.0) == pytest.approx(37.5, abs=0.1)
        assert two_sided_normal_quantile(5e-324) >= 0

    def test_the_widest_interval_of_a_rate_is_one(self):
        """1 - 2^-53 and a half added is 1, of which the quantile is infinite."""
        result = fa.intervals(**given("rate"), confidence_level=ALMOST_ONE)
        narrower = fa.intervals(**given("rate"), confidence_level=1 - 1e-14)
        for wide, narrow in zip(all_of(result), all_of(narrower), strict=True):
            (low, high), (from_, to) = wide.confidence_interval, narrow.confidence_interval
            assert low < from_ or low == from_ == 0
            assert high > to

    def test_ratios_that_no_test_rejects(self):
        """The exponential overflowed."""
        few = proportions.SampleProportion(1 / 3, 3.0)
        assert proportions.ratio_interval(few, few, math.inf) == (0.0, math.inf)

    def test_half_an_interval_is_none(self):
        """Groups that share no stratum have no gap, and so no bound of it."""
        rows = given("mean")
        rows["strata"] = (rows["sensitive_features"] == "a").astype(int)
        with pytest.raises(fa.errors.NotMeasurableError, match="nothing is compared within"):
            fa.permutation_test(**rows, alternative="greater", n_resamples=99)


class TestPvalues:
    @pytest.mark.parametrize(
        ("metric", "method", "options"),
        [
            ("selection_rate", "score", {"margin": 0.5}),
            ("selection_rate", "score", {"margin": 0.2, "scale": "ratio"}),
            ("selection_rate", "delta", {"margin": 0.5}),
            ("f1", "mover", {"margin": 0.5}),
            ("f1", "mover", {"margin": 0.2, "scale": "ratio"}),
            ("selection_rate", "mantel-haenszel", {"margin": 0.5, "strata": True}),
        ],
    )
    def test_equivalence_is_never_certain(self, metric, method, options):
        n = 200_000
        y_pred = np.tile([1, 0], n // 2)
        columns = {"y_pred": y_pred}
        if metric == "f1":
            columns["y_true"] = np.tile([1, 1, 0, 0], n // 4)
        if "strata" in options:
            options = {**options, "strata": np.tile([0, 0, 1, 1], n // 4)}
        group = np.repeat(["a", "b"], n // 2)
        result = fa.equivalence_test(
            **columns, sensitive_features=group, metric=metric, method=method, **options
        )
        assert result.pvalue == LEAST

    def test_replicates_have_their_floor(self):
        result = fa.equivalence_test(**given("mean", n=400), margin=0.9, n_resamples=99)
        assert result.pvalue == pytest.approx(1 / 100)

    def test_limits_of_values(self):
        first, second = (mover.by_logit(value, 1e-3, (0.0, 1.0)) for value in (0.2, 0.8))
        assert mover.at_least(first, second, 0.5) == LEAST
        assert mover.at_most(second, first, -0.5) == LEAST
