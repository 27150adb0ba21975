"""Ratios of weighted and clustered rates within strata, after Mantel and Haenszel."""

import math

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from tests.reference import standardised


def weighted(rng, n=400, n_strata=5, top=0.5, ratio=0.8):
    """Weighted rates whose ratio is the same in all strata."""
    group, stratum = np.repeat(["a", "b"], n // 2), rng.integers(0, n_strata, n)
    base = top * (0.6 + 0.8 * np.arange(n_strata) / n_strata)
    rate = base[stratum] * np.where(group == "a", ratio, 1.0)
    return {
        "y_pred": (rng.random(n) < rate).astype(int),
        "sensitive_features": group,
        "strata": stratum,
        "sample_weight": rng.uniform(0.5, 2, n),
    }


def clustered(rng, sizes=(60, 60), rows=5, n_strata=3, ratio=0.8):
    """Clusters with an intra-class correlation of 0.1, each in one stratum."""
    group, stratum = np.repeat(["a", "b"], sizes), rng.integers(0, n_strata, sum(sizes))
    rate = (0.35 + 0.1 * stratum) * np.where(group == "a", ratio, 1.0)
    cluster = np.repeat(np.arange(sum(sizes)), rows)
    drawn = rng.beta(9 * rate, 9 * (1 - rate))[cluster]
    return {
        "y_pred": (rng.random(len(cluster)) < drawn).astype(int),
        "sensitive_features": group[cluster],
        "strata": stratum[cluster],
        "clusters": cluster,
    }


def intervals(data, **options):
    given = {"metric": "selection_rate", "rng": 1, "n_resamples": 999}
    return fa.intervals(**data, **(given | options))


class TestEstimates:
    def test_weights(self):
        data = weighted(np.random.default_rng(1))
        w = data["sample_weight"]
        [found] = intervals(data).ratios
        wanted = standardised.ratio_of_units(
            w * data["y_pred"], w, data["sensitive_features"], data["strata"], "a", "b"
        )
        assert found.estimate == pytest.approx(wanted[0], rel=1e-12)
        assert found.standard_error / found.estimate == pytest.approx(wanted[1], rel=1e-9)

    def test_clusters(self):
        data = clustered(np.random.default_rng(1))
        sums = np.bincount(data["clusters"], data["y_pred"]), np.bincount(data["clusters"])
        first = np.unique(data["clusters"], return_index=True)[1]
        wanted = standardised.ratio_of_units(
            *sums, data["sensitive_features"][first], data["strata"][first], "a", "b"
        )
        [found] = intervals(data, n_resamples=9_999).ratios
        assert found.estimate == pytest.approx(wanted[0], rel=1e-12)
        assert found.standard_error / found.estimate == pytest.approx(wanted[1], rel=1e-9)
        other = np.where(data["sensitive_features"] == "a", "b", "a")
        [swapped] = intervals(data | {"sensitive_features": other}, n_resamples=9_999).ratios
        assert swapped.estimate == pytest.approx(1 / found.estimate)
        ends = [1 / end for end in reversed(swapped.confidence_interval)]
        assert found.confidence_interval == pytest.approx(ends, rel=0.02)

    def test_greenland_and_robins_where_rows_count_the_same(self):
        """The ratio is 0.8 in all strata."""
        tables = [([40, 60], [100, 120]), ([16, 55], [40, 110]), ([24, 32], [150, 160])]
        parts = [
            (s, g, np.arange(n) < x)
            for s, (hits, rows) in enumerate(tables)
            for g, x, n in zip("ab", hits, rows, strict=True)
        ]
        data = {
            "y_pred": np.concatenate([hit for _, _, hit in parts]).astype(int),
            "sensitive_features": np.concatenate([[g] * len(hit) for _, g, hit in parts]),
            "strata": np.concatenate([[s] * len(hit) for s, _, hit in parts]),
        }
        [counts] = intervals(data).ratios
        [rows] = intervals(data | {"sample_weight": np.ones(len(data["y_pred"]))}).ratios
        assert rows.estimate == pytest.approx(0.8, rel=1e-12)
        assert rows.estimate == pytest.approx(counts.estimate, rel=1e-12)
        assert rows.standard_error == pytest.approx(counts.standard_error, rel=0.03)
        assert rows.confidence_interval == pytest.approx(counts.confidence_interval, rel=0.03)


class TestTests:
    def test_interval_and_test_agree(self):
        data = weighted(np.random.default_rng(4), n=1_200)
        [found] = intervals(data, n_resamples=1_999, confidence_level=0.9).ratios
        low, _ = found.confidence_interval
        for margin, shown in ((0.98 * low, True), (1.02 * low, False)):
            result = fa.equivalence_test(
                **data, metric="selection_rate", scale="ratio", margin=margin, rng=1,
                n_resamples=1_999,
            )  # fmt: skip
            assert (result.pvalue <= 0.05) is shown
            assert result.estimate == found.estimate

    @pytest.mark.parametrize("ratio", [0.5, 0.8, 1.0])
    @pytest.mark.parametrize("make", [weighted, clustered])
    def test_audits_decide(self, make, ratio):
        rng = np.random.default_rng(2)
        data = (
            weighted(rng, n=3_000, ratio=ratio)
            if make is weighted
            else clustered(rng, sizes=(600, 600), ratio=ratio)
        )
        data["strata"] = {"dept": data["strata"]}
        audit = fa.audit(**data, policy="four_fifths", rng=1, n_resamples=999, evidence="none")
        [question] = [finding for finding in audit.questions if finding.binding]
        assert question.verdict == {0.5: "fail", 0.8: "inconclusive", 1.0: "pass"}[ratio]
        [pair] = question.pairs
        values = pair.test.first_value, pair.test.second_value
        assert pair.test.estimate == pytest.approx(min(values) / max(values))
        assert 0 < pair.low < pair.high < 1.2
        if ratio == 0.5:
            assert pair.test.estimate < pair.test.least < 0.8
        assert "no reliable test" not in str(audit)

    def test_a_fixed_reference_counts_in_one_direction(self):
        data = weighted(np.random.default_rng(2), n=2_000, ratio=1.0)
        criterion = fa.Criterion(
            metric="selection_rate", ratio=0.8, reference="b", attributes=["g"]
        )
        data["sensitive_features"] = {"g": data["sensitive_features"]}
        audit = fa.audit(
            **data, policy=fa.Policy(name="own", criteria=[criterion]), rng=1, n_resamples=499,
            evidence="none",
        )  # fmt: skip
        assert audit.verdict == "pass"

    def test_nothing_is_silent(self):
        data = weighted(np.random.default_rng(1), n=200)
        none = data | {"y_pred": np.where(data["sensitive_features"] == "a", 0, data["y_pred"])}
        result = intervals(none)
        assert result.ratios[0].estimate == 0
        assert math.isnan(result.ratios[0].confidence_interval[0])
        assert any("a ratio with it has no interval" in note for note in result.warnings)
        result = fa.equivalence_test(
            **none, metric="selection_rate", scale="ratio", margin=0.8, rng=1, n_resamples=99
        )
        assert math.isnan(result.comparisons[0].statistic)
        assert any("nothing is shown about their ratio" in note for note in result.warnings)

    def test_delta(self):
        data = weighted(np.random.default_rng(1))
        [found] = intervals(data, method="delta").ratios
        error = found.standard_error / found.estimate
        low = found.estimate * math.exp(-stats.norm.isf(0.025) * error)
        assert found.confidence_interval[0] == pytest.approx(low)


@pytest.mark.calibration
class TestLevels:
    """One-sided errors at 5 %, with the ratio of crude rates as the broken rule."""

    @pytest.mark.parametrize("make", [weighted, clustered])
    def test_ends(self, make):
        rng, n_audits, outside = np.random.default_rng(3), 60, [0, 0]
        for audit in range(n_audits):
            [found] = intervals(
                make(rng), rng=audit, n_resamples=199, n_threads=1, confidence_level=0.9
            ).ratios
            low, high = found.confidence_interval
            outside[0] += low > 0.8
            outside[1] += high < 0.8
        most = stats.binom.isf(1e-5, n_audits, 0.06)
        assert max(outside) <= most

    def test_strata_that_matter_are_not_ignored(self):
        """Groups that prefer other strata: the crude ratio is off in most data sets."""
        rng, n_audits, outside, broken = np.random.default_rng(5), 60, 0, 0
        for audit in range(n_audits):
            data = weighted(rng, n=600)
            is_first = data["sensitive_features"] == "a"
            kept = rng.random(600) < np.where(is_first == (data["strata"] < 2), 1.0, 0.3)
            data = {name: column[kept] for name, column in data.items()}
            options = {"rng": audit, "n_resamples": 199, "n_threads": 1, "confidence_level": 0.9}
            for strata in (data["strata"], None):
                [found] = intervals(data | {"strata": strata}, **options).ratios
                low, high = found.confidence_interval
                if strata is None:
                    broken += not low <= 0.8 <= high
                else:
                    outside += not low <= 0.8 <= high
        most = stats.binom.isf(1e-5, n_audits, 0.12)
        assert outside <= most < broken
