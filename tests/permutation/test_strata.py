"""Gaps within strata of the user's: against the slow reference, in every design."""

import math

import numpy as np
import pytest

import fairaudit_rs as fa

from ..reference import inference, means, permutation
from ..reference import rows as reference
from . import shifting
from .test_designs import cells_of, columns_of, design_of, is_ratio, terms_of

DESIGNS = ["plain", "weights", "clusters", "both"]
RATIOS = ["selection_rate", "true_positive_rate", "mean_prediction", "mean_residual"]
OTHERS = ["f1", "mcc", "balanced_accuracy", "auc"]


def make(seed=0, groups="ab", n_clusters=120):
    """Rows in clusters of 1 to 3, a cluster of one group and one stratum.

    Strata 0 to 2 hold all groups; 3 one row of "b", 4 one row of "a", 5 nothing but "a".
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, n_clusters)
    stratum = rng.integers(0, 3, n_clusters)
    group = rng.choice(list(groups), n_clusters)
    stratum[:12] = [3, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5]
    group[:12] = list("abaaaabbbaaa")
    sizes[[1, 5]] = 1
    cluster = np.repeat(np.arange(n_clusters), sizes)
    n = len(cluster)
    shift = 0.5 * rng.normal(size=n_clusters)[cluster] + 0.4 * stratum[cluster]
    y_true = (rng.random(n) < 1 / (1 + np.exp(-shift))).astype(int)
    score = 1 / (1 + np.exp(-(y_true + shift + rng.normal(size=n))))
    return {
        "y_true": y_true,
        "y_pred": (score > 0.6).astype(int),
        "y_score": np.round(score, 2),
        "group": group[cluster],
        "weight": rng.uniform(0.5, 2, n),
        "cluster": cluster,
        "stratum": stratum[cluster],
    }


def test_of(rows, metric, design, **options):
    columns = {name: rows[name] for name in columns_of(metric)}
    given = {} if design == "plain" else design_of(rows, design)
    return fa.permutation_test(
        **columns,
        sensitive_features=rows["group"],
        strata=rows["stratum"],
        metric=metric,
        **{"rng": 1, "n_resamples": 99, **given, **options},
    )


test_of.__test__ = False


def terms_within(metric, rows, design):
    """(a, d, group, stratum) of units, of a ratio of sums."""
    if design == "plain":
        return terms_of(metric, {**rows, "weight": np.ones(len(rows["group"]))}, "weights")
    return terms_of(metric, rows, design)


def part_of(metric, rows, inside, design):
    """A `means.Part` of some rows, of a metric that is no ratio within strata."""
    weight = rows["weight"][inside] if design in ("weights", "both") else None
    cluster = rows["cluster"][inside] if design in ("clusters", "both") else None
    y_true, y_pred, score = (rows[name][inside] for name in ("y_true", "y_pred", "y_score"))
    corrected = metric == "auc" and design == "plain"
    if corrected:
        theta, v = reference.auc_estimate(y_true, score)
    elif metric == "auc":
        theta, v = reference.linearised_auc_estimate(y_true, score, weight, cluster)
    else:
        theta, v = inference.count_metric_weighted(metric, y_true, y_pred, weight, cluster, True)
    n = int(np.sum(inside))
    unit = np.arange(n) if cluster is None else np.unique(cluster, return_inverse=True)[1]
    sizes = np.bincount(unit, np.ones(n) if weight is None else weight)
    return means.Part(theta, v, len(sizes), means.effective_number(sizes), corrected)


def parts_of(metric, rows, design, group, labels):
    """Parts by stratum, of each label."""
    return [
        [
            part_of(metric, rows, (rows["stratum"] == s) & (group == label), design)
            for label in labels
        ]
        for s in np.unique(rows["stratum"])
    ]


def slow_gap(metric, rows, design, labels=("a", "b"), group=None):
    """`means.Statistic` of the gap of two groups, the others left out."""
    group = rows["group"] if group is None else group
    kept = np.isin(group, labels)
    rows = {name: column[kept] for name, column in {**rows, "group": group}.items()}
    if is_ratio(metric) and metric != "f1":
        return means.stratified(*terms_within(metric, rows, design))
    parts = parts_of(metric, rows, design, rows["group"], labels)
    return means.stratified_general([tuple(pair) for pair in parts])


def omnibus_of_parts(strata):
    """U' C^- U of a metric that is no ratio: U_g = D_g (theta_g - mean), D the effective number.

    C = sum_h (delta_gh - p_g)(delta_g'h - p_g') D_h^2 v_h n_h/(n_h - 1); U U' of one unit.
    """
    k = len(strata[0])
    vector, matrix = np.zeros(k), np.zeros((k, k))
    for parts in strata:
        there = [not math.isnan(part.theta) and part.n > 0 for part in parts]
        if sum(there) < 2:
            continue
        size = np.array(
            [part.effective_number if ok else 0.0 for part, ok in zip(parts, there, strict=True)]
        )
        theta = np.array([part.theta if ok else 0.0 for part, ok in zip(parts, there, strict=True)])
        own = size * (theta - size @ theta / size.sum())
        vector += own
        known = [part for part, ok in zip(parts, there, strict=True) if ok]
        if any(part.n == 1 or math.isnan(part.variance) for part in known):
            matrix += np.outer(own, own)
            continue
        for h, (part, ok) in enumerate(zip(parts, there, strict=True)):
            if ok:
                row = (np.arange(k) == h) - size / size.sum()
                factor = 1 if part.corrected else means.unbiased(part.n)
                matrix += np.outer(row, row) * size[h] ** 2 * part.variance * factor
    return means.quadratic_form(vector[:-1], matrix[:-1, :-1])


def mantel_haenszel(metric, rows, group=None):
    """(Delta, z): z has the N - 1 of the hypergeometric law, its square is Cochran's with it."""
    group = rows["group"] if group is None else group
    a, d, _, _ = terms_within(metric, rows, "plain")
    above, below, weights, variance = 0.0, 0.0, 0.0, 0.0
    for s in np.unique(rows["stratum"]):
        (x, n), (y, m) = (
            (a[inside].sum(), d[inside].sum())
            for inside in ((rows["stratum"] == s) & (group == label) for label in "ab")
        )
        if n == 0 or m == 0:
            continue
        hits, total = x + y, n + m
        above += x - n * hits / total
        below += (x * m - y * n) / total
        weights += n * m / total
        variance += n * m * hits * (total - hits) / total**2 / max(total - 1, 1)
    assert above == pytest.approx(below, abs=1e-12)
    return above / weights, above / math.sqrt(variance) if above else 0.0


EACH = [(metric, design) for metric in (*RATIOS, *OTHERS) for design in DESIGNS]


@pytest.mark.parametrize(("metric", "design"), EACH)
class TestReference:
    def test_gap_and_standard_error(self, metric, design):
        rows = make(1)
        slow = slow_gap(metric, rows, design)
        assert slow.n_left_out >= 1
        # A single row has no AUC, no MCC and no balanced accuracy.
        assert slow.n_single >= 1 or metric in OTHERS
        shares = metric in permutation.PROPORTIONS and design == "plain"
        studentize = "unpooled" if shares else "auto"
        result = test_of(rows, metric, design, studentize=studentize)
        assert result.estimate == pytest.approx(slow.difference, rel=1e-9)
        assert result.statistic == pytest.approx(slow.studentized, rel=1e-9)
        if not shares:  # whose standard error is Sato's
            assert result.standard_error == pytest.approx(math.sqrt(slow.variance), rel=1e-9)
        notes = " ".join(result.warnings)
        assert f"{slow.n_left_out} of 6 strata hold no value of {metric}" in notes

    def test_three_groups(self, metric, design):
        rows = make(2, groups="abc", n_clusters=180)
        labels = list("abc")
        if metric in RATIOS:
            expected = means.omnibus_stratified(*terms_within(metric, rows, design))
        else:
            expected = omnibus_of_parts(parts_of(metric, rows, design, rows["group"], labels))
        shares = metric in permutation.PROPORTIONS and design == "plain"
        studentize = "unpooled" if shares else "auto"
        result = test_of(rows, metric, design, studentize=studentize)
        assert result.statistic == pytest.approx(expected, rel=1e-8)
        assert len(result.comparisons) == 3
        for pair in result.comparisons:
            slow = slow_gap(metric, rows, design, (pair.first, pair.second))
            assert pair.estimate == pytest.approx(slow.difference, rel=1e-9)
            assert pair.statistic == pytest.approx(slow.studentized, rel=1e-9)
        gaps = [slow_gap(metric, rows, design, pair).difference
                for pair in (("a", "b"), ("a", "c"), ("b", "c"))]  # fmt: skip
        assert result.estimate == pytest.approx(max(np.abs(gaps)), rel=1e-9)

    @pytest.mark.parametrize("alternative", ["two-sided", "greater"])
    def test_pvalues_are_those_of_shuffled_units(self, metric, design, alternative):
        """Units that are really shuffled within strata (and parts); two statistics of ratios."""
        rows = make(3, n_clusters=60)
        rng = np.random.default_rng(1)
        n = 300
        result = test_of(rows, metric, design, alternative=alternative, n_resamples=20_000)
        assert result.inconclusive is None
        clusters = rows["cluster"] if design in ("clusters", "both") else None
        strata = rows["stratum"]
        conditions = fa.metrics.get(metric).kind.own_condition(True) if clusters is None else None
        if conditions in ("label", "denominator"):
            strata = 2 * strata + (rows["y_true"] if metric != "selection_rate" else 0)
        columns = [reference.shuffle(rows["group"], strata, clusters, rng) for _ in range(n)]
        if metric in permutation.PROPORTIONS and design == "plain":

            def compute(group):
                return (mantel_haenszel(metric, rows, group)[1],) * 2
        else:
            corrected = metric in RATIOS

            def compute(group):
                slow = slow_gap(metric, rows, design, group=group)
                return slow.studentized, slow.hall if corrected else slow.studentized

        observed, null = compute(rows["group"]), [compute(column) for column in columns]
        assert result.statistic == pytest.approx(observed[0], rel=1e-9)
        two = metric in RATIOS and not (metric in permutation.PROPORTIONS and design == "plain")
        if two:
            p = shifting.pvalue(means.max_pvalues(observed, null), alternative)
            sides = 2 if alternative == "two-sided" else 1
        else:
            p = permutation.monte_carlo_pvalue(
                observed[0], [replicate[0] for replicate in null], alternative
            )
            sides = 1
        share = np.clip(p / sides, 0.01, 0.5)
        spread = 5.5 * sides * math.sqrt(share * (1 - share) / n)
        assert result.pvalue == pytest.approx(p, abs=spread)


class TestKnownValues:
    def test_every_row_is_in_one_stratum(self):
        """The compared value is defined for every row of the data."""
        rows = make(1)
        assert sum(cells_of(rows)).tolist() == [1.0] * len(rows["group"])

    def test_two_strata_by_hand(self):
        """Means 3 - 1 in rows 2 + 2 and 7 - 6 in 1 + 3: k = 1 and 3/4, (2 + 3/4) / (7/4)."""
        result = fa.permutation_test(
            y_score=[2.0, 4.0, 0.0, 2.0, 7.0, 5.0, 6.0, 7.0],
            sensitive_features=list("aabbabbb"),
            strata=[0, 0, 0, 0, 1, 1, 1, 1],
            metric="mean_prediction",
            n_resamples=99,
            rng=1,
        )
        assert result.estimate == pytest.approx((2 + 3 / 4) / (7 / 4), rel=1e-12)
        # The second stratum alone has a group of one unit.
        assert math.isnan(result.standard_error)
        assert math.isnan(result.pvalue)
        assert "one stratum alone has a group of one row" in result.inconclusive

    @pytest.mark.parametrize("metric", ["selection_rate", "true_positive_rate"])
    def test_rates_of_plain_rows_are_mantel_and_haenszel(self, metric):
        rows = make(1)
        delta, z = mantel_haenszel(metric, rows)
        result = test_of(rows, metric, "plain")
        assert result.estimate == pytest.approx(delta, rel=1e-12)
        assert result.statistic == pytest.approx(z, rel=1e-9)
        assert result.interval == "mantel-haenszel"


class TestProperties:
    @pytest.mark.parametrize("metric", ["mean_prediction", "selection_rate", "f1", "auc"])
    @pytest.mark.parametrize("design", ["weights", "both"])
    def test_equal_gaps_and_strata_far_apart(self, metric, design):
        """Differences between strata are in no estimate, no standard error and no replicate."""
        rows = make(4)
        first = test_of(rows, metric, design)
        if metric == "mean_prediction":
            rows["y_score"] = rows["y_score"] + 1_000.0 * rows["stratum"]
            second = test_of(rows, metric, design, n_resamples=4_000)
            assert second.estimate == pytest.approx(first.estimate, abs=1e-9)
            assert second.standard_error == pytest.approx(first.standard_error, rel=1e-7)
            # The order of rows is another, so are the replicates: not their spread.
            spread = test_of(make(4), metric, design, n_resamples=4_000).null_distribution.std()
            assert second.null_distribution.std() == pytest.approx(spread, rel=0.1)
        else:
            # A stratum of one group only has no part.
            kept = rows["stratum"] != 5
            second = test_of({name: row[kept] for name, row in rows.items()}, metric, design)
            assert second.estimate == pytest.approx(first.estimate, rel=1e-12)
            assert second.standard_error == pytest.approx(first.standard_error, rel=1e-12)

    @pytest.mark.parametrize("metric", ["mean_prediction", "f1", "auc"])
    def test_the_scale_of_weights(self, metric):
        rows = make(5)
        first = test_of(rows, metric, "weights")
        second = test_of({**rows, "weight": 1e6 * rows["weight"]}, metric, "weights")
        assert second.estimate == pytest.approx(first.estimate, rel=1e-10)
        assert second.standard_error == pytest.approx(first.standard_error, rel=1e-10)
        assert second.null_distribution == pytest.approx(
            first.null_distribution, rel=1e-7, nan_ok=True
        )

    @pytest.mark.parametrize("metric", ["mean_prediction", "selection_rate", "f1", "auc"])
    @pytest.mark.parametrize("design", DESIGNS)
    def test_threads_and_orders(self, metric, design):
        rows = make(6, groups="abc", n_clusters=150)
        first = test_of(rows, metric, design)
        order = np.random.default_rng(0).permutation(len(rows["group"]))
        shuffled = {name: column[order] for name, column in rows.items()}
        for other in (
            test_of(rows, metric, design, n_threads=2),
            test_of(shuffled, metric, design),
        ):
            assert other.to_dict() == first.to_dict()
            assert np.array_equal(other.null_distribution, first.null_distribution)


class TestFewRows:
    """Intervals by formula are too short where strata hold few rows; others are not."""

    @staticmethod
    def notes(metric, n_strata):
        rng = np.random.default_rng(5)
        columns = {name: rng.integers(0, 2, 600) for name in ("y_true", "y_pred")}
        groups, strata = rng.integers(0, 2, 600), rng.integers(0, n_strata, 600)
        result = fa.permutation_test(
            **columns,
            sensitive_features=groups,
            strata=strata,
            metric=metric,
            n_resamples=99,
            rng=1,
        )
        return [text for text in result.warnings if "rows of a group on average" in text]

    def test_it_is_noted(self):
        [note] = self.notes("f1", 60)
        assert "strata hold 5" in note
        assert "the interval of a gap of f1 within strata is too short; its test holds" in note

    @pytest.mark.parametrize(("metric", "n_strata"), [("f1", 3), ("selection_rate", 60)])
    def test_where_it_matters_alone(self, metric, n_strata):
        assert self.notes(metric, n_strata) == []
