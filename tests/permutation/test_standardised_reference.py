"""The slow reference of values within strata, against the gaps that the package gives."""

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa

from ..reference import standardised
from ..reference.rows import auc


def make(seed=0, n=400):
    rng = np.random.default_rng(seed)
    stratum = rng.integers(0, 5, n)
    group = np.where(rng.random(n) < 0.2 + 0.12 * stratum, "a", "b")
    # A stratum of one group alone.
    group[stratum == 4] = "b"
    score = np.clip(rng.random(n) * 0.6 + 0.08 * stratum, 0, 1)
    label = (rng.random(n) < score).astype(int)
    return {
        "label": label,
        "score": score,
        "decision": (rng.random(n) < score).astype(int),
        "group": group,
        "stratum": stratum,
        "weight": rng.lognormal(0, 0.5, n),
    }


class TestKnownValues:
    def test_departments_whose_crude_rates_mislead(self):
        """In both departments women are 20 points above men; the crude rates say the reverse."""
        sizes = {("A", "m"): 1_800, ("A", "w"): 200, ("B", "m"): 200, ("B", "w"): 1_800}
        rates = {("A", "m"): 0.7, ("A", "w"): 0.9, ("B", "m"): 0.1, ("B", "w"): 0.3}
        stratum, group, hits = [], [], []
        for (department, sex), n in sizes.items():
            stratum += [department] * n
            group += [sex] * n
            hits += [i < rates[department, sex] * n - 1e-9 for i in range(n)]
        found = standardised.ratio(hits, None, group, stratum, "w", "m")
        assert found.values == pytest.approx((0.6, 0.4))
        assert found.crude == pytest.approx((0.36, 0.64))
        assert found.left_out == 0
        # Odds ratios of 9 / (7/3) and (3/7) / (1/9): both are 27/7.
        tables = [(180, 200, 1_260, 1_800), (540, 1_800, 20, 200)]
        assert standardised.tarone(tables)[0] == pytest.approx(0, abs=1e-9)

    def test_two_strata_have_the_test_of_two_odds_ratios(self):
        """With large strata Tarone's statistic is the squared z of two log odds ratios, nearly."""
        tables = [(4_200, 10_000, 4_000, 10_000), (3_000, 10_000, 3_050, 10_000)]
        logs = [
            (
                np.log(x_1 / (n_1 - x_1) * (n_2 - x_2) / x_2),
                1 / x_1 + 1 / (n_1 - x_1) + 1 / x_2 + 1 / (n_2 - x_2),
            )
            for x_1, n_1, x_2, n_2 in tables
        ]
        z = (logs[0][0] - logs[1][0]) / np.sqrt(logs[0][1] + logs[1][1])
        statistic, pvalue = standardised.tarone(tables)
        assert statistic == pytest.approx(z**2, rel=1e-3)
        assert pvalue == pytest.approx(2 * stats.norm.sf(abs(z)), rel=2e-2)


class TestReference:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("metric", ["selection_rate", "true_positive_rate", "mean_prediction"])
    def test_differences_are_the_gaps_within_strata(self, metric, weighted):
        data = make()
        weight = data["weight"] if weighted else None
        inside = data["label"] if metric == "true_positive_rate" else None
        value = data["score"] if metric == "mean_prediction" else data["decision"]
        above = value if inside is None else value * inside
        slow = standardised.ratio(
            above, inside, data["group"], data["stratum"], "a", "b", weight=weight
        )
        given = {
            "mean_prediction": {"y_score": data["score"]},
            "selection_rate": {"y_pred": data["decision"]},
            "true_positive_rate": {"y_true": data["label"], "y_pred": data["decision"]},
        }[metric]
        found = fa.intervals(
            **given,
            sensitive_features=data["group"],
            strata=data["stratum"],
            sample_weight=weight,
            metric=metric,
            n_resamples=99,
            rng=1,
        )
        assert slow.gap == pytest.approx(found.estimate, rel=1e-10)
        assert slow.crude == pytest.approx(
            [estimate.estimate for estimate in found.values], rel=1e-10
        )
        # The stratum of one group alone takes no part, and its people are told.
        assert [stratum[0] for stratum in slow.strata] == [0, 1, 2, 3]
        heavy = np.ones(len(value)) if weight is None else weight
        alone = heavy[data["stratum"] == 4].sum() / heavy.sum()
        assert slow.left_out == pytest.approx(alone)

    def test_areas_under_the_curve_take_rows_as_sizes(self):
        data = make(1)

        def area(rows):
            label = data["label"][rows]
            return auc(label, data["score"][rows]) if 0 < label.sum() < len(label) else np.nan

        slow = standardised.formula(area, data["group"], data["stratum"], "a", "b")
        found = fa.intervals(
            data["label"],
            y_score=data["score"],
            sensitive_features=data["group"],
            strata=data["stratum"],
            metric="auc",
        )
        assert slow.gap == pytest.approx(found.estimate, rel=1e-10)
