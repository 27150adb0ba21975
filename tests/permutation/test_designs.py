"""The permutation lens on weighted and clustered rows, and on the AUC of few distinct scores."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, chi2

import fairaudit_rs as fa
from fairaudit_rs import _native, errors

from ..children import outputs_of_instruction_sets
from ..reference import inference, means, means_intervals, permutation
from ..reference import rows as reference
from . import shifting
from .posing import posed

COUNTS = [
    "selection_rate",
    "true_positive_rate",
    "positive_predictive_value",
    "accuracy",
    "balanced_accuracy",
    "f1",
    "mcc",
]
DESIGNS = ["weights", "clusters", "both"]


def make(seed=0, n=300, groups="ab", levels=None):
    """Rows in clusters of 1 to 5 rows; a cluster is of one group."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n), rng.integers(1, 6, n))[:n]
    group = rng.choice(list(groups), n)[cluster]
    shift = rng.normal(size=n)[cluster]
    y_true = (rng.random(n) < 1 / (1 + np.exp(-shift))).astype(int)
    score = 1 / (1 + np.exp(-(y_true + shift + rng.normal(size=n))))
    if levels:
        score = np.round(score * levels) / levels
    return {
        "y_true": y_true,
        "y_pred": (score > 0.6).astype(int),
        "y_score": score,
        "group": group,
        "weight": rng.uniform(0.2, 3, n),
        "cluster": cluster,
    }


def design_of(rows, design):
    options = {}
    if design in ("weights", "both"):
        options["sample_weight"] = rows["weight"]
    if design in ("clusters", "both"):
        options["clusters"] = rows["cluster"]
    return options


def columns_of(metric):
    return fa.metrics.get(metric).needs


def test_of(rows, metric, design="weights", **options):  # noqa: PT028 (no test)
    columns = {name: rows[name] for name in columns_of(metric)}
    return fa.permutation_test(
        **columns,
        sensitive_features=rows["group"],
        metric=metric,
        **{"rng": 1, "n_resamples": 99, **design_of(rows, design), **options},
    )


test_of.__test__ = False


def expected_of(metric, rows, inside, design, within=False):
    """(theta, v) of some rows by the slow reference; `within`: of a stratum of the user's."""
    weight = rows["weight"][inside] if design != "clusters" else None
    cluster = rows["cluster"][inside] if design != "weights" else None
    y_true, y_pred, score = (rows[name][inside] for name in ("y_true", "y_pred", "y_score"))
    if metric in permutation.METRICS:
        return inference.count_metric_weighted(metric, y_true, y_pred, weight, cluster, within)
    if metric == "auc":
        return reference.linearised_auc_estimate(y_true, score, weight, cluster)
    a, d = reference.ROW_METRICS[metric](y_true, score)
    return reference.ratio_estimate(a, d, weight, cluster)


def terms_of(metric, rows, design):
    """(a, d, group, stratum) of rows or clusters whose sums a metric is a ratio of; None if none.

    A row is w a, w d, a cluster the sums over its rows.
    """
    metric = fa.metrics.get(metric).name
    tp, fp, fn, tn = cells = cells_of(rows)
    if metric in permutation.PROPORTIONS:
        of_cell = dict(zip(permutation.CELLS, cells, strict=True))
        parts = permutation.PROPORTIONS[metric]
        a, d = (np.sum([of_cell[name] for name in part], axis=0) for part in parts)
    elif metric == "f1":
        a, d = 2.0 * tp, 2.0 * tp + fp + fn
    elif metric in reference.ROW_METRICS:
        a, d = reference.ROW_METRICS[metric](rows["y_true"], rows["y_score"])
    else:
        return None
    weight = np.ones(len(tn)) if design == "clusters" else rows["weight"]
    unit = units_of(rows, design)
    first = np.unique(unit, return_index=True)[1]
    stratum = rows["stratum"][first] if "stratum" in rows else None
    sums = [np.bincount(unit, weight * part) for part in (a, d)]
    return *sums, rows["group"][first], stratum


def cells_of(rows):
    y, p = rows["y_true"] == 1, rows["y_pred"] == 1
    return [(value).astype(float) for value in (y & p, ~y & p, y & ~p, ~y & ~p)]


def units_of(rows, design):
    """The number of the row or cluster of each row."""
    if design == "weights":
        return np.arange(len(rows["group"]))
    return np.unique(rows["cluster"], return_inverse=True)[1]


def is_ratio(metric):
    return metric not in ("balanced_accuracy", "mcc", "auc")


def assignments(units_of_first, n_units):
    """Every choice of the units that are of the first group, as 0 and 1."""
    for chosen in itertools.combinations(range(n_units), units_of_first):
        group = np.ones(n_units, dtype=int)
        group[list(chosen)] = 0
        yield group


def enumerated_pvalue(rows, metric, design, alternative="two-sided"):
    """The p-value over all assignments of rows or clusters to groups."""
    unit = units_of(rows, design)
    first = min(rows["group"])
    of_unit = np.array([rows["group"][unit == u][0] != first for u in range(unit.max() + 1)])

    def statistic(group):
        estimates = [expected_of(metric, rows, group[unit] == g, design) for g in (0, 1)]
        values, variances = zip(*estimates, strict=True)
        return permutation.statistic(values, variances, "unpooled")

    observed = statistic(of_unit.astype(int))
    law = [statistic(group) for group in assignments(int((~of_unit).sum()), len(of_unit))]
    extreme = [permutation.is_extreme(term, observed, alternative) for term in law]
    return observed, float(np.mean(extreme))


def band(p, n):
    """Monte Carlo error of a p-value: a tail of 1e-6 on each side."""
    low, high = binom(n, p).ppf(1e-6), binom(n, p).isf(1e-6)
    return low / (n + 1), (high + 1) / (n + 1)


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "kind", "match"),
        [
            ({"sample_weight": -1.0}, errors.DataError, r"sample_weight is -1 in row 3; accepted"),
            ({"sample_weight": np.nan}, errors.DataError, r"sample_weight is nan in row 3 .* 1 of"),
            ({"sample_weight": np.inf}, errors.DataError, r"sample_weight is inf in row 3 .* 1 of"),
        ],
    )
    def test_weights_that_are_none(self, options, kind, match):
        rows = make()
        rows["weight"][3] = options["sample_weight"]
        with pytest.raises(kind, match=match):
            test_of(rows, "f1")

    @pytest.mark.parametrize(
        ("options", "kind", "match"),
        [
            ({"sample_weight": np.zeros(300)}, ValueError, "sample_weight is 0 in every row"),
            ({"sample_weight": np.ones(5)}, ValueError, "differ in length: .*sample_weight 5"),
            ({"sample_weight": "w"}, TypeError, "sample_weight is the text 'w'.*pass data= too"),
            ({"sample_weight": ["x"] * 300}, TypeError, "sample_weight holds text"),
            ({"clusters": "person"}, TypeError, "clusters is the text 'person'.*pass data= too"),
            ({"clusters": np.ones(5)}, ValueError, "differ in length: .*cluster 5"),
            ({"clusters": []}, ValueError, "clusters has no columns|differ in length"),
            ({"studentize": "pooled"}, ValueError, "studentize is 'pooled' for true_positive_rate, "
             "which is weighted or clustered"),
            ({"studentize": "bootstrap"}, ValueError, "studentize is 'bootstrap'; accepted"),
            ({"engine": "exact"}, ValueError, "engine is 'exact'.*accepted: 'auto', 'stream'"),
            ({"engine": "cells"}, ValueError, "engine is 'cells'.*accepted: 'auto', 'stream'"),
        ],
    )  # fmt: skip
    def test_wrong_inputs(self, options, kind, match):
        rows = make()
        with pytest.raises(kind, match=match):
            test_of(rows, "true_positive_rate", **{"sample_weight": rows["weight"], **options})

    def test_missing_clusters(self):
        rows = make()
        rows["cluster"] = np.where(rows["cluster"] == 3, np.nan, rows["cluster"])
        n = int(np.isnan(rows["cluster"]).sum())
        with pytest.raises(errors.DataError, match=f"clusters .* is missing in {n} of 300 rows"):
            test_of(rows, "f1", "clusters")
        names = [None if np.isnan(value) else str(value) for value in rows["cluster"]]
        with pytest.raises(errors.DataError, match=f"clusters .* is missing in {n} of 300 rows"):
            test_of(rows, "f1", "weights", clusters=names)

    def test_clusters_of_several_groups_or_strata(self):
        rows = make()
        rows["cluster"] = np.arange(300) // 3
        with pytest.raises(errors.DataError, match=r"of 100 clusters have rows in more than one "
                           r"group: cluster .* has rows in 'a', 'b'.*strata="):  # fmt: skip
            test_of(rows, "f1", "clusters")
        rows = make()
        with pytest.raises(errors.DataError, match="clusters have rows in more than one stratum"):
            test_of(rows, "f1", "clusters", strata=np.arange(300) % 7)

    @pytest.mark.parametrize("design", DESIGNS)
    @pytest.mark.parametrize("metric", ["equalized_odds", "calibration_error"])
    def test_metrics_without_a_design(self, metric, design):
        name = "sample_weight" if design == "weights" else "clusters"
        with pytest.raises(errors.ArgumentError, match=f"{name} does not apply to {metric}"):
            test_of(make(), metric, design)

    def test_cells_hold_no_weights(self):
        rows = make()
        cells = fa.tabulate(
            y_true=rows["y_true"], y_pred=rows["y_pred"], sensitive_features=rows["group"]
        )
        for name, value in (("sample_weight", "weight"), ("clusters", "cluster")):
            with pytest.raises(errors.ArgumentTypeError, match=f"data is a Cells.*; {name} needs"):
                fa.permutation_test(data=cells, metric="tpr", **{name: rows[value]})

    @pytest.mark.parametrize("metric", ["true_positive_rate", "f1", "auc", "mean_prediction"])
    def test_a_group_without_weight(self, metric):
        rows = make()
        rows["weight"][rows["group"] == "a"] = 0
        with pytest.raises(errors.NotMeasurableError, match=f"group 'a' has .*{metric}"):
            test_of(rows, metric)

    @pytest.mark.parametrize("kind", ["words", "numbers"])
    @pytest.mark.parametrize("n", [300, 3_000])
    def test_scores_that_are_text(self, n, kind):
        """The number of rows decides the engine, not what a score may be."""
        rows = make(n=n, levels=3)
        names = {"words": ["low", "middle", "high", "top"], "numbers": ["0", "1", "2", "3"]}[kind]
        rows["y_score"] = np.array(names)[np.round(rows["y_score"] * 3).astype(int)]
        with pytest.raises(errors.ArgumentTypeError, match="y_score holds text; accepted: numbers"):
            test_of(rows, "auc", None)

    @pytest.mark.parametrize("n", [300, 3_000])
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_scores_that_are_missing(self, n, bad):
        rows = make(n=n, levels=3)
        rows["y_score"][7] = bad
        with pytest.raises(errors.DataError, match=f"y_score is {bad:g} in row 7 .* 1 of {n:,}"):
            test_of(rows, "auc", None)

    def test_too_many_scores_for_cells(self):
        rows = make(n=25_000)
        with pytest.raises(
            errors.ArgumentError, match=r"engine is 'cells'.*accepted: 'auto', 'str"
        ):
            test_of(rows, "auc", None, engine="cells")


class TestKnownValues:
    def test_a_weighted_rate(self):
        """Three positives of "a" with weights 1, 2, 3, the last one found: 3/6."""
        result = fa.permutation_test(
            [1, 1, 1, 1, 1, 1],
            [0, 0, 1, 1, 1, 0],
            sensitive_features=list("aaabbb"),
            sample_weight=[1, 2, 3, 1, 1, 1],
            metric="tpr",
            n_resamples=99,
            rng=1,
            engine="stream",
        )
        first, second = result.values
        assert first.value == pytest.approx(0.5)
        # psi = (1{found} - 1/2) / 6, v = 3/2 (1 + 4 + 9) / 4 / 36.
        assert first.standard_error == pytest.approx(math.sqrt(3 / 2 * 14 / 4) / 6)
        assert second.value == pytest.approx(2 / 3)
        assert second.standard_error == pytest.approx(math.sqrt(3 / 2 * 6 / 9) / 3)
        assert (result.engine, result.studentize, result.interval) == (
            "stream",
            "corrected",
            "inversion",
        )

    def test_clusters_that_agree_with_themselves(self):
        """Four rows in two clusters count as two: v = 2 (1/4)^2 and not 4 (1/8)^2."""
        result = fa.permutation_test(
            y_score=[1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
            sensitive_features=list("aaaabbbb"),
            clusters=[1, 1, 2, 2, 3, 4, 5, 6],
            metric="mean_score",
            n_resamples=99,
            rng=1,
        )
        first, second = result.values
        assert (first.value, second.value) == (0.5, 0.25)
        assert first.standard_error == pytest.approx(math.sqrt(2 / 16))
        assert second.standard_error == pytest.approx(math.sqrt(0.75 / 16))
        assert result.exchanged == "clusters"
        assert any("clusters of a are worth 2 of one size" in text for text in result.warnings)

    def test_a_weighted_auc(self):
        """Positives 0.8 (weight 3) and 0.4, negatives 0.5 (weight 2) and 0.1: (3*2 + 3 + 1) /
        12."""
        weight = [3, 1, 2, 1]
        score = [0.8, 0.4, 0.5, 0.1]
        result = fa.permutation_test(
            [1, 1, 0, 0] * 2,
            y_score=score * 2,
            sensitive_features=list("aaaabbbb"),
            sample_weight=weight * 2,
            metric="auc",
            n_resamples=99,
            rng=1,
        )
        assert result.values[0].value == pytest.approx(10 / 12)
        assert result.statistic == 0
        assert result.pvalue == 1


class TestReference:
    @pytest.mark.parametrize("design", DESIGNS)
    @pytest.mark.parametrize("metric", [*COUNTS, "auc", *sorted(reference.ROW_METRICS)])
    def test_values_and_variances(self, metric, design):
        rows = make(1, levels=20 if metric == "auc" else None)
        result = test_of(rows, metric, design, interval="delta")
        # Weighted rates, and means of so few rows or clusters, have melded limits.
        assert result.engine in ("melded", "stream")
        assert result.studentize == ("corrected" if is_ratio(metric) else "unpooled")
        estimates = [expected_of(metric, rows, rows["group"] == g, design) for g in "ab"]
        for value, (theta, v) in zip(result.values, estimates, strict=True):
            assert value.value == pytest.approx(theta, rel=1e-10)
            assert value.standard_error**2 == pytest.approx(v, rel=1e-10)
        values, variances = zip(*estimates, strict=True)
        assert result.statistic == pytest.approx(
            permutation.statistic(values, variances, "unpooled"), rel=1e-9
        )
        slow = permutation.delta_interval(values, variances)
        if design != "weights" and is_ratio(metric):
            a, d, group, _ = terms_of(metric, rows, design)
            slow = means_intervals.cr2(a, d, group).interval
        assert result.confidence_interval == pytest.approx(slow, rel=1e-9)
        standard = test_of(rows, metric, design)
        others = ("gaffke", "poisson-binomial", "mover") if design == "weights" else ("gaffke",)
        assert standard.interval in ("inversion" if is_ratio(metric) else "delta", *others)
        assert standard.confidence_interval != result.confidence_interval or not is_ratio(metric)

    @pytest.mark.parametrize("design", DESIGNS)
    @pytest.mark.parametrize("metric", ["true_positive_rate", "mcc", "auc", "mean_residual"])
    def test_three_groups(self, metric, design):
        rows = make(2, n=600, groups="abc")
        result = test_of(rows, metric, design, adjust="max-t")
        estimates = [expected_of(metric, rows, rows["group"] == g, design) for g in "abc"]
        values, variances = zip(*estimates, strict=True)
        assert result.statistic == pytest.approx(permutation.wald(values, variances), rel=1e-8)
        gaps = {(pair.first, pair.second): pair.statistic for pair in result.comparisons}
        assert gaps["a", "c"] == pytest.approx(
            permutation.statistic(values[::2], variances[::2], "unpooled"), rel=1e-8
        )
        assert result.estimate == pytest.approx(max(values) - min(values), rel=1e-10)
        assert all(pair.adjusted_pvalue >= pair.pvalue for pair in result.comparisons)

    def test_a_ratio_with_a_denominator(self):
        rows = make(3)
        rng = np.random.default_rng(3)
        frame = pl.DataFrame(
            {**rows, "cost": rng.gamma(2, size=300), "cases": rng.integers(1, 5, 300)}
        )
        metric = fa.metrics.ratio_metric("cost_per_case", "cost", "cases")
        result = fa.permutation_test(
            data=frame,
            sensitive_features="group",
            sample_weight="weight",
            clusters="cluster",
            metric=metric,
            rng=1,
            n_resamples=99,
        )
        for value in result.values:
            part = frame.filter(pl.col("group") == value.group)
            theta, v = reference.ratio_estimate(
                *(part[name].to_numpy() for name in ("cost", "cases", "weight", "cluster"))
            )
            assert value.value == pytest.approx(theta, rel=1e-10)
            assert value.standard_error**2 == pytest.approx(v, rel=1e-10)

    @pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
    @pytest.mark.parametrize("design", DESIGNS)
    @pytest.mark.parametrize("metric", ["accuracy", "f1", "auc", "mean_residual"])
    def test_pvalues_are_those_of_all_permutations(self, metric, design, alternative):
        """One statistic."""
        rows = self.few_rows(metric, design)
        observed, p = enumerated_pvalue(rows, metric, design, alternative)
        result = test_of(
            rows,
            metric,
            design,
            strata=None,
            n_resamples=20_000,
            alternative=alternative,
            studentize="unpooled",
        )
        assert result.statistic == pytest.approx(observed, rel=1e-9)
        low, high = band(p, 20_000)
        assert low <= result.pvalue <= high

    @staticmethod
    def few_rows(metric, design):
        rng = np.random.default_rng(8)
        n = 10 if design == "weights" else 16
        rows = make(8, n=n)
        if design != "weights":
            rows["cluster"] = np.repeat(np.arange(8), [1, 3, 2, 2, 1, 3, 2, 2])
            rows["group"] = np.array(list("aabbabab"))[rows["cluster"]]
        else:
            rows["group"] = np.array(list("ababbaabab"))
        rows["y_true"] = np.resize([0, 1], n) if metric == "auc" else rng.integers(0, 2, n)
        if metric == "auc" and design == "weights":
            rows["y_true"] = np.array([0, 0, 1, 1, 0, 1, 0, 0, 1, 1])
        rows["y_pred"] = np.where(rng.random(n) < 0.6, rows["y_true"], 1 - rows["y_true"])
        return rows

    @pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
    @pytest.mark.parametrize("design", DESIGNS)
    @pytest.mark.parametrize("metric", ["accuracy", "f1", "mean_residual"])
    def test_pvalues_of_two_statistics(self, metric, design, alternative):
        """The larger p of T and of h over all assignments, twice the smaller side."""
        rows = self.few_rows(metric, design)
        # Values of "a" that vary: without it there is no verdict.
        rows["y_pred"][0] = 1 - rows["y_pred"][0]
        a, d, group, _ = terms_of(metric, rows, design)
        options = {"clusters": design != "weights"}
        slow = shifting.all_pvalues(a, d, group, **options)
        result = test_of(
            rows,
            metric,
            design,
            strata=None,
            n_resamples=20_000,
            alternative=alternative,
            engine="stream",
        )
        found = means.linearised(a, d, group, **options)
        assert result.statistic == pytest.approx(found.studentized, rel=1e-9)
        assert result.inconclusive is None
        low, high = shifting.band(slow, alternative, 20_000)
        assert low <= result.pvalue <= high

    @pytest.mark.parametrize("interval", ["studentized", "basic", "percentile"])
    @pytest.mark.parametrize("design", ["weights", "clusters"])
    def test_bootstrap_intervals(self, interval, design):
        rows = make(5, n=200)
        result = test_of(rows, "f1", design, interval=interval, n_resamples=4_000)
        assert result.interval == interval
        rng = np.random.default_rng(5)
        index = {g: np.flatnonzero(rows["group"] == g) for g in "ab"}
        replicates, variances = [], []
        for _ in range(1_000):
            drawn = []
            for g in "ab":
                if design == "weights":
                    picked = rng.choice(index[g], len(index[g]))
                    own = {name: column[picked] for name, column in rows.items()}
                else:
                    names = np.unique(rows["cluster"][index[g]])
                    parts = [np.flatnonzero(rows["cluster"] == c)
                             for c in rng.choice(names, len(names))]  # fmt: skip
                    own = {name: column[np.concatenate(parts)] for name, column in rows.items()}
                    own["cluster"] = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
                drawn.append(expected_of("f1", own, slice(None), design))
            replicates.append(drawn[0][0] - drawn[1][0])
            variances.append(drawn[0][1] + drawn[1][1])
        observed, se = result.estimate, result.standard_error
        if interval == "studentized":
            slow = reference.studentized_interval(observed, se**2, replicates, variances)
        elif interval == "basic":
            slow = reference.basic_interval(observed, replicates)
        else:
            slow = reference.percentile_interval(replicates)
        # The quantile of 1,000 replicates: about se sqrt(0.025 0.975 / 1,000) / 0.058 = 0.085 se.
        assert result.confidence_interval == pytest.approx(slow, abs=0.45 * se)
        assert result.confidence_interval != pytest.approx(observed, abs=se)

    @pytest.mark.parametrize("groups", ["ab", "abc"])
    @pytest.mark.parametrize("strata", ["auto", None, "own"])
    def test_few_scores_collapse_to_cells(self, groups, strata):
        rows = make(6, n=2_000, groups=groups, levels=2)
        own = np.arange(2_000) % 3 if strata == "own" else strata
        fast = test_of(rows, "auc", None, strata=own)
        slow = test_of(rows, "auc", None, strata=own, engine="stream")
        assert (fast.engine, slow.engine) == ("cells", "stream")
        assert fast.statistic == pytest.approx(slow.statistic, rel=1e-9)
        assert fast.estimate == pytest.approx(slow.estimate, rel=1e-9, abs=1e-13)
        for first, second in zip(fast.values, slow.values, strict=True):
            assert first.value == pytest.approx(second.value, rel=1e-12)
            assert first.standard_error == pytest.approx(second.standard_error, rel=1e-10)
            inside = rows["group"] == first.group
            slowest = reference.delong_variance(rows["y_true"][inside], rows["y_score"][inside])
            assert first.standard_error**2 == pytest.approx(slowest, rel=1e-9)
        assert fast.confidence_interval == pytest.approx(slow.confidence_interval, rel=1e-9)

    def test_score_bins_are_scores(self):
        rows = make(7, n=1_000)
        cells = fa.tabulate(
            y_true=rows["y_true"],
            y_score=rows["y_score"],
            sensitive_features=rows["group"],
            score_bins=8,
        )
        binned = fa.permutation_test(data=cells, metric="auc", rng=1, n_resamples=99)
        given = test_of(rows, "auc", None, score_bins=8)
        rows["y_score"] = np.minimum((rows["y_score"] * 8).astype(int), 7)
        slow = test_of(rows, "auc", None, engine="stream")
        for result in (binned, given):
            assert result.engine == "cells"
            assert result.statistic == pytest.approx(slow.statistic, rel=1e-9)
            assert result.standard_error == pytest.approx(slow.standard_error, rel=1e-10)
            assert any("within one bin" in text for text in result.warnings)
        assert np.array_equal(binned.null_distribution, given.null_distribution)


class TestProperties:
    @pytest.mark.parametrize("design", DESIGNS)
    @pytest.mark.parametrize("metric", ["ppv", "f1", "auc", "mae"])
    def test_relabelled_groups(self, metric, design):
        rows = make(10)
        first = test_of(rows, metric, design)
        rows["group"] = np.where(rows["group"] == "a", "z", rows["group"])
        second = test_of(rows, metric, design)
        assert second.estimate == pytest.approx(-first.estimate, rel=1e-12)
        assert second.statistic == pytest.approx(-first.statistic, rel=1e-9)
        by_formula = test_of(rows, metric, design, interval="delta")
        rows = make(10)
        low, high = test_of(rows, metric, design, interval="delta").confidence_interval
        assert by_formula.confidence_interval == pytest.approx((-high, -low), rel=1e-9)

    @pytest.mark.parametrize("design", DESIGNS)
    @pytest.mark.parametrize("metric", ["ppv", "f1", "mae"])
    def test_relabelled_groups_of_two_statistics(self, metric, design):
        """The second is drawn where the first was: p and limits within Monte Carlo error."""
        rows, problems = make(10), []
        renamed = {**rows, "group": np.where(rows["group"] == "a", "z", rows["group"])}
        n = 20_000
        for record in (rows, renamed):
            roles = {"sensitive_features": record["group"], **design_of(record, design)}
            problem = posed(metric, **{name: record[name] for name in columns_of(metric)}, **roles)
            draws = _native.Draws(n, seed=1, series=1)
            problems.append(problem.test((0, 1)).shifts(draws, _native.Call()))
        first, second = problems
        error = math.sqrt(first.variance)
        assert second.studentized == pytest.approx(-first.studentized, rel=1e-9)
        assert second.corrected == pytest.approx(-first.corrected, rel=1e-9)
        for side, other in (("greater", "less"), ("less", "greater")):
            counts = [
                value.extremes(0.0, way, _native.Call())
                for value, way in ((first, side), (second, other))
            ]
            shares = [max(count.studentized, count.corrected) / n for count in counts]
            assert shares[0] == pytest.approx(shares[1], abs=5.5 * math.sqrt(0.5 / n))
            limits = (
                first.limit(side, 0.1, _native.Call()),
                second.limit(other, 0.1, _native.Call()),
            )
            # The density of T at its 0.1 quantile is about .18.
            spread = 5.5 * math.sqrt(2 * 0.1 * 0.9 / n) / 0.15 * error
            assert limits[1] == pytest.approx(-limits[0], abs=spread)

    def test_a_group_that_does_not_vary_tells_nothing(self):
        """A verdict without support is withheld, with the reason; its interval is open."""
        rows = TestReference.few_rows("accuracy", "weights")
        options = {"strata": None, "n_resamples": 9_999, "alternative": "greater"}
        result = test_of(rows, "accuracy", **options, engine="stream")
        a, d, group, _ = terms_of("accuracy", rows, "weights")
        assert shifting.all_pvalues(a, d, group).greater <= 0.05
        assert math.isnan(result.pvalue)
        assert "no value varies within a" in result.inconclusive
        assert result.confidence_interval[0] <= 0 <= result.confidence_interval[1]

    @pytest.mark.parametrize("design", DESIGNS)
    @pytest.mark.parametrize("metric", ["tpr", "f1", "auc", "mean_residual"])
    @pytest.mark.parametrize("groups", ["ab", "abc"])
    def test_bits(self, metric, design, groups, tmp_path):
        rows = make(11, n=900, groups=groups, levels=50)
        first = test_of(rows, metric, design)
        order = np.random.default_rng(0).permutation(900)
        shuffled = {name: column[order] for name, column in rows.items()}
        others = [test_of(rows, metric, design, n_threads=n) for n in (1, 2, 7)]
        others.append(test_of(shuffled, metric, design))
        renamed = {**shuffled, "cluster": np.array([f"p{c:04d}" for c in shuffled["cluster"]])}
        others.append(test_of(renamed, metric, design))
        frame = pl.DataFrame(rows)
        for i, part in enumerate(frame.iter_slices(350)):
            part.write_parquet(tmp_path / f"{9 - i}.parquet")
        names = {name: name for name in columns_of(metric)} | {"sensitive_features": "group"}
        names |= {"sample_weight": "weight"} if design != "clusters" else {}
        names |= {"clusters": "cluster"} if design != "weights" else {}
        others += [
            fa.permutation_test(data=data, metric=metric, n_resamples=99, rng=1, **names)
            for data in (frame, frame.lazy(), str(tmp_path / "*.parquet"), rows)
        ]
        for other in others:
            assert np.array_equal(other.null_distribution, first.null_distribution)
            assert other.to_dict() == first.to_dict()

    def test_bits_of_every_instruction_set(self):
        code = (
            "import hashlib\n"
            "from tests.permutation.test_designs import make, test_of\n"
            "for design in ('weights', 'clusters', 'both'):\n"
            "    for metric in ('f1', 'auc', 'mae', 'ppv'):\n"
            "        for options in ({}, {'interval': 'basic'}):\n"
            "            r = test_of(make(5, n=700, levels=90), metric, design, **options)\n"
            "            print(hashlib.sha256(r.null_distribution.tobytes()).hexdigest())\n"
            "            print(r.confidence_interval)\n"
        )
        assert len(outputs_of_instruction_sets(code)) == 1

    @pytest.mark.parametrize("metric", [*COUNTS, "auc", "mae"])
    def test_equal_weights_are_none(self, metric):
        rows = make(12)
        rows["weight"] = np.full(300, 0.37)
        weighted = test_of(rows, metric, n_resamples=9_999)
        plain = test_of(rows, metric, None, studentize="unpooled", n_resamples=9_999)
        for first, second in zip(weighted.values, plain.values, strict=True):
            assert first.value == pytest.approx(second.value, rel=1e-12)
            variance = second.standard_error**2
            if metric in inference.FRACTIONS:
                # Those of counts divide by n, those of rows by n - 1, n of the denominator.
                n = np.count_nonzero(
                    terms_of(metric, rows, "weights")[1][rows["group"] == first.group]
                )
                variance *= n / (n - 1)
            if metric == "auc":
                # DeLong divides by n+ - 1 and n- - 1, the linearised variance by n+ and n-.
                inside = rows["group"] == second.group
                y_true, score = rows["y_true"][inside], rows["y_score"][inside]
                parts = reference.structural_components(y_true, score)
                variance = sum(np.var(part) / len(part) for part in parts)
            assert first.standard_error**2 == pytest.approx(variance, rel=1e-9)
        assert weighted.exchanged == plain.exchanged
        # One p is of two statistics on the worse side, the other of one on both.
        alike = test_of(rows, metric, studentize="unpooled", n_resamples=9_999)
        assert alike.pvalue == pytest.approx(plain.pvalue, abs=0.035)

    @pytest.mark.parametrize("design", ["weights", "both"])
    @pytest.mark.parametrize("metric", ["tpr", "mcc", "auc", "log_loss"])
    @pytest.mark.parametrize("scale", [4.0, 2.0**-40, 2.0**60])
    def test_the_scale_of_weights(self, metric, design, scale):
        rows = make(13)
        first = test_of(rows, metric, design)
        rows["weight"] = rows["weight"] * scale
        second = test_of(rows, metric, design)
        assert second.estimate == pytest.approx(first.estimate, rel=1e-12)
        assert second.standard_error == pytest.approx(first.standard_error, rel=1e-10)
        assert second.null_distribution == pytest.approx(first.null_distribution, rel=1e-8)

    def test_rows_of_the_denominator_are_counted(self):
        rows = make(14)
        result = test_of(rows, "tpr")
        plain = fa.permutation_test(
            rows["y_true"], rows["y_pred"], sensitive_features=rows["group"], metric="tpr"
        )
        assert [v.n_used for v in result.values] == [v.n_used for v in plain.values]

    @pytest.mark.parametrize("metric", ["f1", "auc", "tpr"])
    def test_few_rows_of_a_kind_are_noted(self, metric):
        """Un-pooled variances of few rows: of a label for ranks, of a cell for counts."""
        rows = make(14)
        inside = np.flatnonzero((rows["group"] == "b") & (rows["y_true"] == 1))
        rows["y_true"][inside[8:]] = 0
        rows["y_pred"][inside[:8]] = [1, 1, 1, 1, 1, 0, 0, 0]
        notes = " ".join(test_of(rows, metric, studentize="unpooled").warnings)
        assert ("b has only 8 rows with a positive label" in notes) == (metric == "auc")
        assert ("b has only 3 false negatives" in notes) == (metric == "f1")
        # The corrected test looks at the skewness itself.
        notes = " ".join(test_of(rows, metric).warnings)
        assert "false negatives" not in notes

    @pytest.mark.parametrize("metric", ["tpr", "f1", "auc", "mae"])
    def test_rows_without_weight_are_not_there(self, metric):
        rows = make(14)
        kept = np.random.default_rng(0).random(300) < 0.8
        rows["weight"][~kept] = 0
        few = {name: column[kept] for name, column in rows.items()}
        for first, second in zip(test_of(rows, metric).values, test_of(few, metric).values,
                                 strict=True):  # fmt: skip
            assert first.value == pytest.approx(second.value, rel=1e-12)
            assert first.standard_error == pytest.approx(second.standard_error, rel=1e-10)

    @pytest.mark.parametrize("metric", ["tpr", "f1", "auc", "mae"])
    def test_whole_weights_are_repeated_rows(self, metric):
        """In a cluster: a row of weight 3 is three rows of one cluster."""
        rows = make(15)
        rows["weight"] = np.random.default_rng(0).integers(1, 5, 300).astype(float)
        many = {
            name: np.repeat(column, rows["weight"].astype(int)) for name, column in rows.items()
        }
        weighted = test_of(rows, metric, "both")
        repeated = test_of(many, metric, "clusters")
        assert repeated.estimate == pytest.approx(weighted.estimate, rel=1e-12)
        assert repeated.standard_error == pytest.approx(weighted.standard_error, rel=1e-10)
        assert repeated.null_distribution == pytest.approx(weighted.null_distribution, rel=1e-8)

    @pytest.mark.parametrize("metric", ["tpr", "f1", "auc", "mae"])
    def test_clusters_of_one_row_are_none(self, metric):
        rows = make(16)
        rows["cluster"] = np.arange(300)
        rows["weight"] = np.ones(300)
        clustered = test_of(rows, metric, "clusters", n_resamples=9_999)
        weighted = test_of(rows, metric, "weights", strata=None, n_resamples=9_999)
        terms = terms_of(metric, rows, "weights")
        for of_cluster, of_row in zip(clustered.values, weighted.values, strict=True):
            # That of rows has n/(n-1), n of the denominator; that of clusters has not.
            n = (
                math.inf
                if terms is None
                else np.count_nonzero(terms[1][rows["group"] == of_row.group])
            )
            factor = 1 if terms is None else n / (n - 1)
            variance = factor * of_cluster.standard_error**2
            assert of_row.standard_error**2 == pytest.approx(variance, rel=1e-9)
        assert clustered.estimate == pytest.approx(weighted.estimate, rel=1e-12)
        assert clustered.statistic == pytest.approx(weighted.statistic, rel=0.02)
        assert clustered.pvalue == pytest.approx(weighted.pvalue, abs=0.035)

    @pytest.mark.parametrize("metric", ["selection_rate", "mcc", "auc", "mean_prediction"])
    def test_rows_that_occur_twice_in_a_cluster(self, metric):
        rows = make(17)
        twice = {name: np.repeat(column, 2) for name, column in rows.items()}
        once, both = (test_of(record, metric, "clusters") for record in (rows, twice))
        assert both.standard_error == pytest.approx(once.standard_error, rel=1e-10)
        assert both.null_distribution == pytest.approx(once.null_distribution, rel=1e-8)
        assert both.pvalue == once.pvalue
        naive = test_of({**twice, "weight": np.ones(600)}, metric)
        assert naive.standard_error < 0.85 * once.standard_error

    def test_several_columns_of_clusters(self):
        rows = make(18)
        pair = {"site": rows["cluster"] // 7, "person": rows["cluster"] % 7}
        by_pair = test_of(rows, "f1", None, clusters=pair)
        by_one = test_of(rows, "f1", "clusters")
        assert by_pair.standard_error == by_one.standard_error
        assert np.array_equal(by_pair.null_distribution, by_one.null_distribution)

    def test_groups_that_are_chosen_or_missing(self):
        rows = make(19, n=600, groups="abc")
        chosen = test_of(rows, "f1", "both", groups=["a", "c"])
        kept = rows["group"] != "b"
        alone = test_of({name: column[kept] for name, column in rows.items()}, "f1", "both")
        assert np.array_equal(chosen.null_distribution, alone.null_distribution)
        assert chosen.standard_error == alone.standard_error
        rows["group"] = [None if g == "b" else g for g in rows["group"]]
        missing = test_of(rows, "f1", "both")
        assert np.array_equal(missing.null_distribution, alone.null_distribution)
        assert missing.n_missing == int((~kept).sum())

    def test_strata_and_clusters(self):
        rows = make(20, n=800)
        stratum = rows["cluster"] % 2
        rows["y_score"] = rows["y_score"] + 5.0 * stratum
        result = test_of(rows, "mean_prediction", "both", strata=stratum)
        assert result.exchanged == "clusters with equal stratum"
        assert result.pvalue > 0.01

    def test_few_scores_of_other_types(self):
        """Whole numbers, booleans and a negative zero are scores like others."""
        rows = make(21, n=3_000, levels=1)
        first = test_of(rows, "auc", None)
        assert first.engine == "cells"
        for scores in (
            rows["y_score"].astype(int),
            rows["y_score"].astype(bool),
            np.where(rows["y_score"] == 0, np.resize([0.0, -0.0], 3_000), 1.0),
        ):
            other = test_of({**rows, "y_score": scores}, "auc", None)
            assert np.array_equal(other.null_distribution, first.null_distribution)


@pytest.mark.calibration
class TestCalibration:
    @staticmethod
    def rejected(audit, n_audits):
        rng = np.random.default_rng(1)
        return np.mean([audit(rng) <= 0.05 for _ in range(n_audits)])

    @staticmethod
    def bands(n_audits):
        law = binom(n_audits, 0.05)
        return law.ppf(1e-6) / n_audits, law.isf(1e-6) / n_audits

    @staticmethod
    def correlated(rng):
        """40 + 60 clusters of 1 to 12 rows, intra-cluster correlation about 1/2."""
        sizes = rng.integers(1, 13, 100)
        cluster = np.repeat(np.arange(100), sizes)
        group = np.where(cluster < 40, "a", "b")
        value = rng.normal(size=100)[cluster] + rng.normal(size=len(cluster))
        return cluster, group, value

    @pytest.mark.parametrize("metric", ["selection_rate", "mean_prediction"])
    def test_size_with_clusters(self, metric):
        def audit(rng, clustered=True):
            cluster, group, value = self.correlated(rng)
            columns = {"y_score": value} if metric == "mean_prediction" else {"y_pred": value > 0.5}
            return fa.permutation_test(
                **columns,
                sensitive_features=group,
                metric=metric,
                clusters=cluster if clustered else None,
                n_resamples=199,
                rng=rng,
            ).pvalue

        low, high = self.bands(1_000)
        assert low <= self.rejected(audit, 1_000) <= high
        assert self.rejected(lambda rng: audit(rng, False), 1_000) > high

    def test_size_with_clusters_of_unlike_groups(self):
        """40 clusters of "a" that spread widely, 160 of "b" that do not, 1 to 8 rows each."""

        def audit(rng, **options):
            cluster = np.repeat(np.arange(200), rng.integers(1, 9, 200))
            spread = np.where(cluster < 40, 3.0, 1.0)
            value = spread * (rng.normal(size=200)[cluster] + rng.normal(size=len(cluster)))
            return fa.permutation_test(
                y_score=value,
                sensitive_features=np.where(cluster < 40, "a", "b"),
                metric="mean_prediction",
                clusters=cluster,
                n_resamples=199,
                rng=rng,
                **options,
            ).pvalue

        low, high = self.bands(1_000)
        assert low <= self.rejected(audit, 1_000) <= high
        assert self.rejected(lambda rng: audit(rng, studentize=False), 1_000) > high

    @pytest.mark.parametrize("metric", ["selection_rate", "mean_prediction", "auc"])
    def test_size_with_weights_that_depend_on_the_group(self, metric):
        """Weights of "a" are 1 to 13, those of "b" are 1; the weighted metrics are equal."""

        def audit(rng, as_counts=False):
            group = np.repeat(["a", "b"], [150, 300])
            weight = np.where(group == "a", 1 + 3 * rng.integers(0, 5, 450), 1)
            value = rng.normal(size=450)
            y_true = rng.integers(0, 2, 450)
            times = weight if as_counts else np.ones(450, dtype=int)
            columns = {
                "selection_rate": {"y_pred": value > 0.3},
                "mean_prediction": {"y_score": value},
                "auc": {"y_true": y_true, "y_score": value + y_true},
            }[metric]
            return fa.permutation_test(
                **{name: np.repeat(column, times) for name, column in columns.items()},
                sensitive_features=np.repeat(group, times),
                metric=metric,
                sample_weight=None if as_counts else weight,
                n_resamples=199,
                rng=rng,
            ).pvalue

        low, high = self.bands(1_000)
        assert low <= self.rejected(audit, 1_000) <= high
        # A weight of 4 is not four rows.
        assert self.rejected(lambda rng: audit(rng, True), 400) > self.bands(400)[1]

    @pytest.mark.parametrize("interval", ["delta", "inversion"])
    def test_intervals_cover_with_clusters(self, interval):
        def audit(rng, clustered=True):
            cluster, group, value = self.correlated(rng)
            low, high = fa.permutation_test(
                y_score=value,
                sensitive_features=group,
                metric="mean_prediction",
                clusters=cluster if clustered else None,
                n_resamples=199,
                interval=interval,
                rng=1,
            ).confidence_interval
            return 0.0 if low > 0 or high < 0 else 1.0

        low, high = self.bands(1_500)
        assert low <= self.rejected(audit, 1_500) <= high
        assert self.rejected(lambda rng: audit(rng, False), 1_500) > high

    @pytest.mark.parametrize("engine", ["stream", "shuffle", "callable"])
    def test_one_law_for_all_engines(self, engine):
        """0/1 values of two groups: weights of 1, correlation, callable, against cells.

        The correlation of two 0/1 columns grows with the gap of the shares, so it tells how many
        positive decisions "a" has in a replicate as well as the gap does.
        """
        rng = np.random.default_rng(3)
        y_pred, group = rng.integers(0, 2, 60), rng.permutation(np.repeat(["a", "b"], [25, 35]))
        options = {"studentize": "none", "rng": 1, "strata": None, "n_resamples": 20_000}

        def draw(name):
            attribute, columns, more = group, {"y_pred": y_pred}, {"metric": "selection_rate"}
            if name == "cells":
                more["engine"] = "cells"
            elif name == "stream":
                more["sample_weight"] = np.ones(60)
            elif name == "shuffle":
                attribute, columns = (group == "a").astype(int), {"y_score": y_pred}
                more["metric"] = "pearson"
            else:
                columns["y_true"] = y_pred
                more["n_resamples"] = 5_000
                more["metric"] = fa.metrics.callable_metric(
                    "share", lambda y_true, value, weight: float(value.mean()), n_samples=2
                )
            result = fa.permutation_test(
                **columns, sensitive_features=attribute, **{**options, **more}
            )
            assert result.engine == name
            assert len(result.null_distribution) == result.n_resamples
            gap = result.null_distribution
            if name == "shuffle":
                gap = gap * np.std(y_pred) / math.sqrt(25 / 60 * 35 / 60)
            # gap = x / 25 - (n - x) / 35 with x of n positive decisions in "a".
            x = (gap + y_pred.sum() / 35) / (1 / 25 + 1 / 35)
            assert np.abs(x - np.round(x)).max() < 1e-6
            return np.bincount(np.round(x).astype(int), minlength=26)

        def same_law(first, second):
            kept = first + second >= 20
            both = np.stack([first[kept], second[kept]])
            expected = both.sum(axis=0) * (both.sum(axis=1) / both.sum())[:, None]
            return np.sum((both - expected) ** 2 / expected) < chi2.isf(1e-6, kept.sum() - 1)

        drawn, cells = draw(engine), draw("cells")
        assert same_law(drawn, cells)
        # A law of one more positive decision in "a" is told apart.
        assert not same_law(drawn, np.append(0, cells[:-1]))

    def test_few_scores_have_one_law(self):
        rng = np.random.default_rng(4)
        y_true = np.resize([0, 1, 1], 48)
        score = rng.integers(0, 3, 48)
        group = np.repeat(["a", "b"], [20, 28])
        n = 20_000
        both = [
            fa.permutation_test(
                y_true,
                y_score=score,
                sensitive_features=group,
                metric="auc",
                engine=engine,
                strata=None,
                n_resamples=n,
                rng=1,
            ).null_distribution
            for engine in ("stream", "cells")
        ]
        finite = both[0][np.isfinite(both[0])]
        edges = np.unique(np.quantile(finite, np.linspace(0, 1, 31)[1:-1])) + 1e-9

        def same_law(first, second):
            first, second = (
                np.bincount(np.searchsorted(edges, null), minlength=len(edges) + 1)
                for null in (first, second)
            )
            kept = first + second >= 20
            distance = (first - second)[kept] ** 2 / (first + second)[kept]
            return np.sum(distance) < chi2.isf(1e-6, kept.sum() - 1)

        assert same_law(*both)
        assert not same_law(both[0], both[1] + 0.1)
