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


def u_shape(rng, n=2_000):
    attribute = rng.uniform(-1, 1, n)
    score = np.minimum(4 * attribute**2, 1) + 0.1 * rng.normal(size=n)
    return {"y_score": score, "sensitive_features": attribute, "metric": "spearman"}


DESIGNS = {
    u_shape: ("without a rank correlation", 0.11),
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



class TestProperties:
    """What holds its level is not doubted."""

    @staticmethod
    def quiet(**options):
        warnings = run(0, **options).warnings
        return not any("told apart" in text or "at the 5 % level" in text for text in warnings)

    def test_what_is_mended(self):
        """Within strata, with weights, in clusters; means; few rows."""
        rng = np.random.default_rng(1)
        group, stratum, decided = rng.integers(0, 2, (3, 2_000))
        pair = np.arange(2_000) // 2
        designs = (
            {},
            {"strata": stratum},
            {"sample_weight": rng.uniform(1, 2, 2_000)},
            {"clusters": pair, "sensitive_features": pair % 2},
            {"strata": pair // 2 % 2, "clusters": pair, "sensitive_features": pair % 2},
        )
        for metric, values in (("selection_rate", decided), ("mean_prediction", rng.random(2_000))):
            columns = {"y_pred" if metric == "selection_rate" else "y_score": values}
            for design in designs:
                options = {"sensitive_features": group, "metric": metric, **columns, **design}
                assert self.quiet(**options)

    def test_pearson(self):
        assert self.quiet(**{**u_shape(np.random.default_rng(1)), "metric": "pearson"})


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
