"""The tables "Which method for which data" of docs/permutation.md are what the functions do."""

import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.data.tables import AuditTable
from fairaudit_rs.errors import FairAuditError
from fairaudit_rs.inference.tolerance import Tolerance
from fairaudit_rs.permutation.tolerance import prepare_tolerance_question

PAGE = Path(__file__).resolve().parents[2] / "docs" / "permutation.md"
#: The designs by the heading of their table.
DESIGNS = {
    "Rows of equal weight": {},
    "Within strata of your own (`strata=`)": {"strata": "stratum"},
    "Weights (`sample_weight=`)": {"sample_weight": "weight"},
    "Clusters (`clusters=`), also with weights": {"clusters": "cluster"},
}
#: Rows of the tables that are about data of another kind than those of most rows.
FEW = ("the same, few rows", "means of a known range with few rows", "the same in [few", "the same")
OWN = {
    "count_metric": fa.metrics.count_metric("own_count", "tp / (tp + 2 * fp)"),
    "ratio_metric": fa.metrics.ratio_metric(
        "own_ratio", "y_true", lambda row: row["y_score"] + 1, columns=("y_true", "y_score")
    ),
    "callable_metric": fa.metrics.callable_metric(
        "own_function",
        lambda y_true, value, weight: float(np.average(value, weights=weight)),
        columns=("y_true", "y_score"),
        n_samples=20,
    ),
}


def made(n_clusters=60):
    """Return rows of two groups; each stratum contains whole clusters."""
    rng = np.random.default_rng(0)
    n = 3_000
    group = np.where(rng.random(n) < 0.5, "a", "b")
    label = (rng.random(n) < 0.5).astype(int)
    score = np.clip(0.25 + 0.3 * (label - 0.5) + rng.random(n) * 0.5, 0.01, 0.99)
    drawn = rng.integers(0, n_clusters, n)
    return pl.DataFrame(
        {
            "label": label,
            "decision": (score > 0.5).astype(int),
            "score": score,
            "group": group,
            "age": rng.normal(size=n),
            "weight": rng.uniform(0.5, 2, n),
            "stratum": (drawn % 3).astype(str),
            "cluster": np.char.add(group, drawn.astype(str)),
        }
    )


def columns(data, metric="", **design):
    return {
        "data": data,
        "y_true": "label",
        "y_pred": "decision",
        "y_score": "score",
        "sensitive_features": "age" if metric in ("pearson", "spearman") else "group",
        **design,
    }


def cells():
    """Yield the rows of the tables: design, metric, and the five other cells."""
    text = PAGE.read_text(encoding="utf-8").split("## Which method for which data")[1]
    for heading, design in DESIGNS.items():
        table = text.split(f"### {heading}\n")[1].split("\n### ")[0]
        for line in table.splitlines():
            parts = [part.strip() for part in line.strip("|").split("|")]
            if len(parts) != 6 or parts[0].startswith(("metric", "-", *FEW)):
                continue
            for metric in re.findall(r"`(\w+)`", parts[0]):
                yield pytest.param(design, metric, parts[1:], id=f"{heading[:7]}-{metric}")


def codes(cell):
    return re.findall(r"`([\w-]+)`", cell)


def verdict_method(data, metric, **design):
    """Return the method that decides a verdict of an audit; None if there is none."""
    table = AuditTable.make(**columns(data, **design))
    question = prepare_tolerance_question(table, metric, Tolerance(value=0.3, scale="difference"))
    tests = question.tests(alpha=0.05, n_tests=1, n_resamples=99, seed=1)
    assert bool(tests) != (question.reason is not None)
    return tests[0].method if tests else None


@pytest.mark.parametrize(("design", "metric", "row"), list(cells()))
def test_methods_of_the_tables(design, metric, row):
    engine, _, interval, method, verdict = row
    data, chosen = made(), OWN.get(metric, metric)
    passed = columns(data, metric, **design)
    options = {"metric": chosen, "n_resamples": 99, "rng": 1}
    if engine == "refused":
        with pytest.raises(FairAuditError, match="does not apply"):
            fa.permutation_test(**passed, **options)
    else:
        result = fa.permutation_test(**passed, **options)
        assert result.engine in codes(engine)
        if interval.startswith("none"):
            assert np.isnan(result.confidence_interval[0])
        else:
            assert result.interval in codes(interval)
    if method.startswith("refused"):
        with pytest.raises(FairAuditError):
            fa.intervals(**passed, **options)
    else:
        assert fa.intervals(**passed, **options).method in codes(method)
    if not verdict.startswith("refused"):
        assert verdict_method(data, fa.metrics.get(chosen), **design) in codes(verdict)
    elif method.startswith("refused"):
        # The metric has no tolerance in a policy.
        with pytest.raises(FairAuditError):
            fa.Criterion(metric=metric, tolerance=0.3)
    else:
        assert verdict_method(data, fa.metrics.get(chosen), **design) is None


def test_every_design_has_a_table():
    assert len(list(cells())) > 50


@pytest.mark.parametrize("metric", ["true_positive_rate", "mean_squared_error"])
def test_few_clusters(metric):
    result = fa.permutation_test(
        **columns(made(n_clusters=6), clusters="cluster"), metric=metric, n_resamples=99, rng=1
    )
    assert (result.engine, result.interval) == ("melded", "gaffke")


def test_few_clusters_of_an_unknown_range():
    result = fa.equivalence_test(
        **columns(made(n_clusters=6), clusters="cluster"),
        metric="f1",
        margin=0.9,
        n_resamples=99,
        rng=1,
    )
    assert result.pvalue == 1


@pytest.mark.parametrize(
    ("metric", "interval"),
    [("mean_residual", "poisson-binomial"), ("mean_squared_error", "gaffke")],
)
def test_few_rows_near_an_end(metric, interval):
    rng = np.random.default_rng(1)
    score = np.full(400, 0.03)
    label = (rng.random(400) < 0.03).astype(int)
    result = fa.permutation_test(
        label,
        y_score=score,
        sensitive_features=np.where(np.arange(400) < 40, "few", "many"),
        metric=metric,
        n_resamples=99,
        rng=1,
    )
    assert (result.engine, result.interval) == ("melded", interval)


def test_all_groups_together():
    data = made().with_columns(group=pl.Series(["a", "b", "c"] * 1_000))
    of_rates = fa.permutation_test(**columns(data), metric="tpr", n_resamples=99, rng=1)
    assert of_rates.engine == "cells"
    assert {pair.engine for pair in of_rates.comparisons} == {"exact"}
    weighted = columns(data, sample_weight="weight")
    of_weights = fa.permutation_test(**weighted, metric="tpr", n_resamples=99, rng=1)
    assert of_weights.engine == "stream"
    assert {pair.engine for pair in of_weights.comparisons} == {"melded"}


@pytest.mark.parametrize("design", [{"sample_weight": "weight"}, {"clusters": "cluster"}])
def test_strata_with_weights_or_clusters(design):
    passed = columns(made(), strata="stratum", **design)
    for metric, interval in (("tpr", "inversion"), ("f1", "delta"), ("auc", "delta")):
        result = fa.permutation_test(**passed, metric=metric, n_resamples=99, rng=1)
        assert (result.engine, result.interval) == ("stream", interval)


def scored_clusters(rng, n_clusters, spread):
    """Return labels and scores of clusters of 30 rows, with an AUC of 0.75 over all clusters.

    Scores are standard normal, shifted in rows with a positive label by a normal amount per
    cluster, whose standard deviation is ``spread``.
    """
    shift = stats.norm.ppf(0.75) * math.sqrt(2 + spread**2) + spread * rng.normal(size=n_clusters)
    label = (rng.random(30 * n_clusters) < 0.5).astype(int)
    return label, rng.normal(size=30 * n_clusters) + label * np.repeat(shift, 30)


def errors_of_auc(n_clusters, spreads, n_data_sets, seed=7):
    """Return how often equal AUC are rejected at 5 and 1 %, and missed by one-sided 95 % limits."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(4)
    for i in range(n_data_sets):
        label, score = np.concatenate(
            [
                scored_clusters(rng, n, spread)
                for n, spread in zip(n_clusters, spreads, strict=True)
            ],
            axis=1,
        )
        cluster = np.repeat(np.arange(sum(n_clusters)), 30)
        passed = {
            "y_true": label.astype(int),
            "y_score": score,
            "sensitive_features": np.where(cluster < n_clusters[0], "large", "small"),
            "clusters": cluster,
            "metric": "auc",
            "n_resamples": 399,
            "rng": i,
        }
        pvalue = fa.permutation_test(**passed).pvalue
        low, high = fa.intervals(**passed, confidence_level=0.9).confidence_interval
        counts += [pvalue <= 0.05, pvalue <= 0.01, low > 0, high < 0]
    return counts / n_data_sets


@pytest.mark.calibration
class TestAucInFewClusters:
    """The AUC has no rule for few clusters: docs/permutation_details.md has the error rates."""

    @pytest.mark.parametrize(
        ("n_clusters", "spreads", "low", "high"),
        [
            ((40, 6), (0.3, 2.0), 0.10, 0.18),
            ((40, 8), (0.3, 1.5), 0.07, 0.15),
            ((100, 50), (0.3, 1.5), 0.03, 0.08),
            ((8, 8), (1.0, 1.0), 0.03, 0.08),
        ],
    )
    def test_rejections_of_equal_values(self, n_clusters, spreads, low, high):
        assert low < errors_of_auc(n_clusters, spreads, 500)[0] < high
