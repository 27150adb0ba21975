"""Designs in which the level does not hold: each is warned of, with the error that it has.

The errors are those in the words of the warnings; they go when the designs are mended.
"""

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa

AUDITS = 1_000


def run(seed, **options):
    return fa.permutation_test(n_resamples=499, rng=seed, **options)


def weights_in_strata(rng, n=4_000):
    group, stratum = rng.integers(0, 2, (2, n))
    decided = rng.random(n) < np.where(stratum == 1, 0.8, 0.2)
    return {
        "y_pred": decided,
        "sensitive_features": group,
        "strata": stratum,
        "sample_weight": np.where(group == stratum, 1.2, 1.0),
        "metric": "selection_rate",
    }


def clusters_in_strata(rng, n=600):
    group, stratum = rng.integers(0, 2, (2, n))
    cluster = np.repeat(np.arange(n), np.where(group == stratum, 5, 1))
    decided = rng.random(len(cluster)) < np.where(stratum == 1, 0.8, 0.2)[cluster]
    return {
        "y_pred": decided,
        "sensitive_features": group[cluster],
        "strata": stratum[cluster],
        "clusters": cluster,
        "metric": "selection_rate",
    }


def means_in_strata(rng, distance=5.0, n=1_000):
    stratum = rng.integers(0, 2, n)
    group = (rng.random(n) < 0.1).astype(int)
    value = rng.normal(0, np.where(group == 1, 3.0, 1.0)) + distance * stratum
    return {
        "data": {"value": value, "group": group, "stratum": stratum},
        "sensitive_features": "group",
        "strata": "stratum",
        "metric": fa.metrics.ratio_metric("mean", "value"),
    }


def weighted_rate(rng, few=200, many=1_800):
    weight = np.concatenate([rng.lognormal(0, 1.5, few), np.ones(many)])
    return {
        "y_pred": rng.random(few + many) < 0.05,
        "sensitive_features": np.repeat(["a", "b"], [few, many]),
        "sample_weight": weight,
        "metric": "selection_rate",
    }


def rare_residuals(rng, few=40, many=1_960):
    score = np.concatenate([np.full(few, 0.03), rng.beta(2, 5, many)])
    return {
        "y_true": rng.random(few + many) < score,
        "y_score": score,
        "sensitive_features": np.repeat(["a", "b"], [few, many]),
        "metric": "mean_residual",
    }


DESIGNS = {
    weights_in_strata: ("not adjusted for strata where rows have weights", 0.99),
    clusters_in_strata: ("not adjusted for strata where clusters differ", 1.0),
    means_in_strata: ("not studentized for the gap in them", 0.23),
    lambda rng: means_in_strata(rng, 20.0): ("not studentized for the gap in them", 0.36),
    weighted_rate: ("few rows for a weighted selection_rate", 0.21),
    rare_residuals: ("few rows .*for the mean of values so skewed", 0.25),
}


class TestKnownValues:
    @pytest.mark.parametrize("make", list(DESIGNS))
    def test_the_design_is_warned_of(self, make):
        import re

        result = run(0, **make(np.random.default_rng(0)))
        words, _ = DESIGNS[make]
        found = [text for text in result.warnings if re.search(words, text)]
        assert len(found) == 1
        assert "%" in found[0] or "0.4" in found[0]
        assert found[0] in str(result)

    @pytest.mark.parametrize("make", [weighted_rate, rare_residuals])
    def test_intervals_equivalence_and_calibrate_say_it_too(self, make):
        options = make(np.random.default_rng(0))
        results = (
            fa.intervals(**options, n_resamples=99),
            fa.equivalence_test(**options, margin=0.1, n_resamples=99),
        )
        for result in results:
            assert any("told apart at the 5 % level" in text for text in result.warnings)
        report = fa.calibrate(**options, n_audits=10, n_resamples=19)
        assert any("told apart at the 5 % level" in text for text in report.notes)

    def test_ratios_of_rates_near_one(self):
        decided = np.r_[np.ones(49), 0, np.ones(4_990), np.zeros(10)].astype(int)
        options = {
            "y_pred": decided,
            "sensitive_features": np.repeat(["a", "b"], [50, 5_000]),
            "metric": "selection_rate",
        }
        result = fa.equivalence_test(**options, margin=0.8, scale="ratio", rng=1)
        assert result.pvalue == pytest.approx(0.36, abs=0.01)
        assert any("gives p = 0.36, where the score test" in text for text in result.warnings)
        found = fa.intervals(**options, method="studentized", n_resamples=99)
        assert any("ratios with a selection_rate near 0 or 1 (a, b)" in t for t in found.warnings)
        by_formula = fa.intervals(**options)
        assert not any("ratios with" in text for text in by_formula.warnings)


class TestProperties:
    """What holds its level is not doubted."""

    def quiet(self, **options):
        warnings = run(0, **options).warnings
        return not any("told apart" in text or "at the 5 % level" in text for text in warnings)

    def test_proportions_in_strata(self):
        rng = np.random.default_rng(1)
        group, stratum, decided = rng.integers(0, 2, (3, 2_000))
        options = {"sensitive_features": group, "metric": "selection_rate"}
        assert self.quiet(y_pred=decided, strata=stratum, **options)
        assert self.quiet(y_pred=decided, sample_weight=rng.uniform(1, 2, 2_000), **options)
        assert self.quiet(
            y_pred=decided,
            clusters=np.arange(2_000) // 2,
            sensitive_features=(np.arange(2_000) // 2 % 2),
            metric="selection_rate",
        )

    def test_means_of_normal_values_and_of_many_rows(self):
        rng = np.random.default_rng(2)
        metric = fa.metrics.ratio_metric("mean", "value")
        for few, values in ((40, rng.normal(size=2_000)), (600, rng.exponential(size=2_000))):
            data = {"value": values, "group": np.repeat(["a", "b"], [few, 2_000 - few])}
            assert self.quiet(data=data, sensitive_features="group", metric=metric)

    def test_skewness_of_clusters(self):
        """Rows that are skewed alone and symmetric together with their twin."""
        rng = np.random.default_rng(3)
        value = rng.exponential(size=300)
        data = {
            "value": np.concatenate([value, -value]),
            "group": np.tile(np.repeat(["a", "b"], [30, 270]), 2),
            "person": np.tile(np.arange(300), 2),
        }
        metric = fa.metrics.ratio_metric("mean", "value")
        options = {"data": data, "sensitive_features": "group", "metric": metric}
        skewed = {**options, "data": {**data, "value": np.abs(data["value"])}}
        assert not self.quiet(**skewed, clusters="person")
        assert self.quiet(
            **{**options, "data": {**data, "value": data["value"] + rng.normal(size=600)}},
            clusters="person",
        )


@pytest.mark.calibration
@pytest.mark.parametrize("make", list(DESIGNS))
def test_the_error_is_that_of_the_words(make):
    """Rejections of equal groups at the 5 % level; far outside of the band of a valid test."""
    _, share = DESIGNS[make]
    rng = np.random.default_rng(1)
    rejected = sum(run(audit, **make(rng)).pvalue <= 0.05 for audit in range(AUDITS))
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], AUDITS, share)
    assert low <= rejected <= high
    assert rejected > stats.binom.isf(1e-6, AUDITS, 0.05)
