"""Influence of a row on a metric: the derivative by its share, against finite differences."""

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.integers(1, 9, n) / 10
    y_true = (rng.random(n) < 0.5).astype(bool)
    return {
        "y_true": y_true,
        "y_pred": (rng.random(n) < 0.3 + 0.4 * y_true).astype(bool),
        "y_score": score,
        "cost": rng.exponential(size=n),
        "cases": 1 + rng.integers(0, 4, n),
    }


def auc(rows, weight):
    up, down = rows["y_true"], ~rows["y_true"]
    first, second = rows["y_score"][up][:, None], rows["y_score"][down][None, :]
    order = (first > second) + 0.5 * (first == second)
    return weight[up] @ order @ weight[down] / weight[up].sum() / weight[down].sum()


def value(metric, rows, weight):
    """The metric of weighted rows, written out."""
    if metric.family == "ranks":
        return auc(rows, weight)
    if metric.family == "counts":
        y, d = rows["y_true"], rows["y_pred"]
        counts = [weight[a & b].sum() for a, b in ((y, d), (~y, d), (y, ~d), (~y, ~d))]
        return metric.evaluate(**dict(zip(("tp", "fp", "fn", "tn"), counts, strict=True)))
    columns = {name: np.asarray(column, float) for name, column in rows.items()}
    sums = [
        weight @ (columns[entry] if isinstance(entry, str) else entry(columns))
        for entry in (metric.numerator, metric.denominator or (lambda of: np.ones(len(weight))))
    ]
    return sums[0] / sums[1]


METRICS = [
    *("selection_rate", "tpr", "fdr", "f1", "mcc", "balanced_accuracy", "auc"),
    *("mean_residual", "log_loss", "mean_squared_error"),
    fa.metrics.ratio_metric("cost_per_case", "cost", "cases"),
]


class TestArguments:
    @pytest.mark.parametrize("metric", ["pearson", "equalized_odds", "calibration_error"])
    def test_families_without_influence_of_rows(self, metric):
        with pytest.raises(errors.ArgumentError, match="which has no influence of rows"):
            fa.metrics.get(metric).influence(rows())


class TestReference:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("metric", METRICS, ids=str)
    def test_finite_differences(self, metric, weighted):
        metric = fa.metrics.get(metric)
        data = rows()
        n = len(data["y_true"])
        weight = np.random.default_rng(1).uniform(0.5, 2, n) if weighted else np.ones(n)
        psi = metric.influence(data, weight if weighted else None)
        assert weight @ psi == pytest.approx(0, abs=1e-9)
        # A share e more of row i: weight i grows by e times the sum of weights.
        step = 1e-5 * weight.sum()
        for i in range(0, n, 7):
            change = np.zeros(n)
            change[i] = step
            slope = (
                value(metric, data, weight + change) - value(metric, data, weight - change)
            ) / 2
            assert psi[i] == pytest.approx(slope / 1e-5, rel=1e-5, abs=1e-6)
