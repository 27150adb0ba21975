"""Public calls of the permutation lens against baselines, in one run on one machine.

A baseline that would take minutes runs fewer replicates and is scaled; the table says so. With
--write the tables go to benches/README.md and docs/performance.md.
"""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import baselines
import fairaudit_rs as fa
from fairaudit_rs import _native
from report import machine, memory_table, run, seconds, time_table, timed

AFTER = """
A replicate of a count metric costs the same for any number of rows: only counting them does not.
Baselines marked *unstudentized* do less than we do: they recompute no variance, so they are not
valid tests of a metric (`docs/atlas/permutation.md`). numba baselines exclude the sort of the rows
and their compilation; the row on lanes is what someone who knows SIMD would write.

Peak memory of a call above its input columns of 10^7 rows, in multiples of these columns:
"""


def make_rows(n):
    rng = np.random.default_rng(1)
    group = rng.integers(0, 2, n)
    y_true = (rng.random(n) < 0.4).astype(np.int64)
    y_pred = (rng.random(n) < 0.3 + 0.4 * y_true).astype(np.int64)
    return y_true, y_pred, group


def pooled_statistic(tp_a, p_a, tp_b, p_b):
    p = (tp_a + tp_b) / (p_a + p_b)
    return (tp_a / p_a - tp_b / p_b) / np.sqrt(p * (1 - p) * (1 / p_a + 1 / p_b))


def numpy_loop(y_true, y_pred, group, n_resamples):
    """Shuffle the groups and count, once per replicate."""
    rng = np.random.default_rng(2)
    cell = 2 * y_true + y_pred
    shuffled = group.copy()
    null = np.empty(n_resamples)
    for r in range(n_resamples):
        rng.shuffle(shuffled)
        counts = np.bincount(4 * shuffled + cell, minlength=8)
        null[r] = pooled_statistic(
            counts[3], counts[2] + counts[3], counts[7], counts[6] + counts[7]
        )
    return null


def numpy_cells(y_true, y_pred, group, n_resamples):
    """Count the rows once, then draw over the cells, as a good NumPy user does."""
    counts = np.bincount(4 * group + 2 * y_true + y_pred, minlength=8)
    totals = counts[:4] + counts[4:]
    rng = np.random.default_rng(2)
    first = rng.multivariate_hypergeometric(
        totals, int(counts[:4].sum()), size=n_resamples, method="marginals"
    )
    second = totals - first
    return pooled_statistic(
        first[:, 3], first[:, 2] + first[:, 3], second[:, 3], second[:, 2] + second[:, 3]
    )


def auc_rows(n):
    rng = np.random.default_rng(3)
    y_true = (rng.random(n) < 0.4).astype(np.int64)
    return y_true, rng.random(n) + 0.3 * y_true, rng.integers(0, 2, n)


def scikit_learn_loop(y_true, score, group, n_resamples):
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(4)
    for _ in range(n_resamples):
        first = rng.permutation(group) == 0
        roc_auc_score(y_true[first], score[first]) - roc_auc_score(y_true[~first], score[~first])


def numpy_presorted(y_true, score, group, n_resamples):
    """Rows sorted once; the first group's rows by choice, ranks by cumulative sums."""
    rng = np.random.default_rng(5)
    labels = y_true[np.argsort(score)].astype(bool)
    n, size = len(labels), int((group == 0).sum())
    for _ in range(n_resamples):
        first = np.zeros(n, bool)
        first[rng.choice(n, size, replace=False)] = True
        for member in (first, ~first):
            inside = labels[member]
            below = np.cumsum(~inside)
            below[inside].sum() / (inside.sum() * (~inside).sum())


def count_benchmarks():
    """Rates of 10^6 rows."""
    y_true, y_pred, group = make_rows(10**6)
    options = {
        "metric": "true_positive_rate",
        "strata": None,
        "n_resamples": 10_000,
        "rng": 1,
    }

    def ours(**changes):
        return fa.permutation_test(y_true, y_pred, sensitive_features=group, **(options | changes))

    loop = timed(lambda: numpy_loop(y_true, y_pred, group, 20)) * 500
    mine = seconds(ours, 15)
    work = "TPR, 10^6 rows, 10^4 studentized permutations, from arrays"
    scaled = "NumPy loop (20 replicates, scaled)"
    yield work, scaled, loop, mine, 1_000
    cells = seconds(lambda: numpy_cells(y_true, y_pred, group, 10_000), 15)
    yield work, "NumPy multivariate_hypergeometric on cells", cells, mine, 5
    yield "the same, one thread", scaled, loop, seconds(lambda: ours(n_threads=1), 15), None
    yield "TPR, 10^6 rows, exact test", scaled, loop, seconds(lambda: ours(strata="auto"), 15), None
    tabulated = fa.tabulate(y_true=y_true, y_pred=y_pred, sensitive_features=group)
    by_size = {}
    for scale in (1, 10, 100):
        many = tabulated
        for _ in range(round(np.log10(scale))):
            many = sum([many] * 10)
        by_size[many.n_rows] = seconds(
            lambda many=many: fa.permutation_test(data=many, **options), 25
        )
    small, *_, large = by_size.values()
    yield "10^4 permutations of cells of 10^8 rows", "the same of 10^6 rows", small, large, 1


def row_benchmarks():
    """AUC, means and correlations of 10^6 rows, 10^3 studentized permutations."""
    from scipy import stats

    y_true, score, group = auc_rows(10**6)
    options = {"sensitive_features": group, "strata": None, "n_resamples": 1_000, "rng": 1}
    labels = y_true[np.argsort(score)].astype(np.int8)
    size = int((group == 0).sum())
    mine = seconds(lambda: fa.permutation_test(y_true, y_score=score, metric="auc", **options), 3)
    work = "AUC gap, 10^6 rows, 10^3 DeLong-studentized permutations"
    loop = timed(lambda: scikit_learn_loop(y_true, score, group, 4)) * 250
    yield work, "scikit-learn loop (4 replicates, scaled)", loop, mine, 600
    presorted = timed(lambda: numpy_presorted(y_true, score, group, 10)) * 100
    baseline = "NumPy, presorted, choice and cumsum, unstudentized (10, scaled)"
    yield work, baseline, presorted, mine, 30
    for name, kernel, goal in (
        ("numba, presorted, selection sampling, unstudentized", "", 6),
        ("the same on all cores", "_parallel", None),
        ("numba, 16 replicates side by side, unstudentized", "_lanes", None),
        ("the same on all cores", "_lanes_parallel", None),
    ):
        call = getattr(baselines, "numba_selection_auc" + kernel)
        theirs = seconds(lambda call=call: call(labels, size, 128, 1), 3) * 1000 / 128
        yield work, f"{name} (128, scaled)", theirs, mine, goal

    def gap(x, y, axis=-1):
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    parts = (score[group == 0], score[group == 1])
    mine = seconds(lambda: fa.permutation_test(y_score=score, metric="mean_score", **options), 3)
    work = "mean of a row value, 10^6 rows, 10^3 studentized permutations"
    theirs = 50 * timed(
        lambda: stats.permutation_test(parts, gap, n_resamples=20, batch=1, vectorized=True)
    )
    yield work, "scipy.stats.permutation_test (20, scaled)", theirs, mine, 100
    for name, kernel, goal in (
        ("numba Fisher-Yates, unstudentized", "", 2),
        ("the same on all cores", "_parallel", None),
    ):
        call = getattr(baselines, "numba_fisher_yates_mean" + kernel)
        theirs = seconds(lambda call=call: call(score, size, 128, 1), 3) * 1000 / 128
        yield work, f"{name} (128, scaled)", theirs, mine, goal
    attribute = np.random.default_rng(6).random(len(score))
    mine = timed(
        lambda: fa.permutation_test(
            y_score=score, sensitive_features=attribute, metric="pearson", n_resamples=1_000, rng=1
        )
    )
    rng = np.random.default_rng(7)

    def correlate():
        shuffled = rng.permutation(score)
        return shuffled @ attribute

    theirs = 1000 * seconds(correlate, 5)
    work = "correlation, 10^6 rows, 10^3 studentized permutations"
    yield work, "NumPy permutation and dot, unstudentized (1, scaled)", theirs, mine, None
    pearson = mine
    mine = 10 * timed(
        lambda: fa.permutation_test(
            y_score=score, sensitive_features=attribute, metric="spearman", n_resamples=100, rng=1
        )
    )
    ranks = [np.argsort(np.argsort(value)) / len(value) - 0.5 for value in (score, attribute)]
    orders = [np.argsort(rank) for rank in ranks]

    def correlate_ranks():
        moved = rng.permutation(len(score))
        return baselines.numpy_rank_correlation(*ranks, *orders, moved)

    theirs = 1000 * seconds(correlate_ranks, 3)
    work = "rank correlation, 10^6 rows, 10^3 permutations, influence of every row (100, scaled)"
    yield work, "NumPy, the same by cumulative sums (1, scaled)", theirs, mine, None
    yield work, "our Pearson correlation", pearson, mine, None


def calibration_benchmarks():
    """False alarms of F1 on 10^5 rows."""
    y_true, y_pred, group = make_rows(10**5)
    options = {"metric": "f1", "n_resamples": 999, "rng": 1}
    rng = np.random.default_rng(3)

    def public_calls(n_audits):
        for _ in range(n_audits):
            shuffled = rng.permutation(group)
            fa.permutation_test(y_true, y_pred, sensitive_features=shuffled, **options)

    theirs = 20 * timed(lambda: public_calls(50))
    work = "calibrate, F1, 10^5 rows, 1,000 audits of 999 replicates"
    for null, goal in (("shuffle", 20), ("weak", None)):
        mine = seconds(
            lambda null=null: fa.calibrate(
                y_true, y_pred, sensitive_features=group, n_audits=1_000, null=null, **options
            ),
            3,
        )
        shown = work if null == "shuffle" else "the same, the weak null"
        yield shown, "shuffled groups and public calls (50 audits, scaled)", theirs, mine, goal


def numpy_stratified_mean(value, ends, first, n_resamples):
    """Shuffle within strata and studentize the weighted mean of the gaps, once per replicate."""
    rng = np.random.default_rng(8)
    mask, parts = first.astype(float), np.split(np.arange(len(value)), ends[:-1])
    starts = np.concatenate([[0], ends[:-1]])
    squares, null = value**2, np.empty(n_resamples)
    n = np.add.reduceat(np.ones(len(value)), starts)
    total, total_squares = (np.add.reduceat(part, starts) for part in (value, squares))
    for r in range(n_resamples):
        for rows in parts:
            rng.shuffle(mask[rows[0] : rows[-1] + 1])
        n1, a1, s1 = (
            np.add.reduceat(part, starts) for part in (mask, mask * value, mask * squares)
        )
        n2, a2, s2 = n - n1, total - a1, total_squares - s1
        k = n1 * n2 / n
        v1, v2 = ((s - a**2 / m) / (m - 1) / m for m, a, s in ((n1, a1, s1), (n2, a2, s2)))
        null[r] = (k @ (a1 / n1 - a2 / n2)) / np.sqrt(k**2 @ (v1 + v2))
    return null


def numpy_clustered_mean(above, below, first, n_resamples):
    """Shuffle clusters and studentize the ratio of their sums, once per replicate."""
    rng, mask, null = np.random.default_rng(9), first.copy(), np.empty(n_resamples)
    for r in range(n_resamples):
        rng.shuffle(mask)
        gap, variance = 0.0, 0.0
        for sign, inside in ((1, mask), (-1, ~mask)):
            a, d = above[inside], below[inside]
            theta = a.sum() / d.sum()
            gap += sign * theta
            variance += np.sum((a - theta * d) ** 2) / d.sum() ** 2
        null[r] = gap / np.sqrt(variance)
    return null


def numpy_gaffke(value, weight, n_draws):
    """Limits of a weighted share: an exponential number for each row, once per draw."""
    rng, above = np.random.default_rng(10), weight * value
    extra = np.sum(weight**2) / weight.sum()
    upper = np.empty(n_draws)
    for r in range(n_draws):
        e = rng.exponential(size=len(value))
        end = extra * rng.exponential()
        upper[r] = (e @ above + end) / (e @ weight + end)
    return upper


def design_benchmarks():
    """Strata, weights, clusters and inverted intervals, 10^6 rows."""
    rng = np.random.default_rng(11)
    n = 10**6
    stratum = np.sort(rng.integers(0, 10, n))
    group = rng.integers(0, 2, n)
    value = rng.exponential(size=n) + stratum
    options = {"y_score": value, "metric": "mean_score", "n_resamples": 1_000, "rng": 1}
    options["sensitive_features"] = group
    mine = seconds(lambda: fa.permutation_test(strata=stratum, **options), 3)
    ends = np.searchsorted(stratum, np.arange(1, 11))
    theirs = 100 * timed(lambda: numpy_stratified_mean(value, ends, group == 0, 10))
    work = "mean of a row value within 10 strata, 10^6 rows, 10^3 permutations with their interval"
    yield work, "NumPy, shuffles within strata (10, scaled)", theirs, mine, 50
    cluster = rng.integers(0, 10**5, n)
    of_cluster = rng.integers(0, 2, 10**5)
    clustered = {**options, "sensitive_features": of_cluster[cluster], "clusters": cluster}
    mine = seconds(lambda: fa.permutation_test(**clustered), 3)
    sums = np.bincount(cluster, value, 10**5), np.bincount(cluster, minlength=10**5)
    theirs = 50 * timed(lambda: numpy_clustered_mean(*sums, of_cluster == 0, 20))
    work = "mean of 10^5 clusters of 10^6 rows, 10^3 permutations with their interval"
    yield work, "NumPy, shuffles of clusters, summed before (20, scaled)", theirs, mine, None
    weight, decided = rng.lognormal(0, 1, n), (rng.random(n) < 0.3).astype(int)
    weighted = {"y_pred": decided, "sample_weight": weight, "metric": "selection_rate", "rng": 1}
    mine = seconds(
        lambda: fa.permutation_test(sensitive_features=group, n_resamples=9_999, **weighted), 3
    )
    theirs = 2_000 * timed(lambda: numpy_gaffke(decided, weight, 5))
    work = "weighted rate, 10^6 rows, 9,999 melded limits (Gaffke)"
    yield work, "NumPy, an exponential for each row (5, scaled)", theirs, mine, None
    mine = seconds(lambda: fa.permutation_test(interval="inversion", **options), 3)
    theirs = seconds(lambda: fa.permutation_test(interval="delta", **options), 3)
    work = "mean of a row value, 10^6 rows, 10^3 permutations with the inverted interval"
    yield work, "the same test with the interval by formula", theirs, mine, 0.67
    few = {**options, "y_score": value[:2_000], "sensitive_features": group[:2_000]}
    few["n_resamples"] = 9_999
    mine = seconds(lambda: fa.permutation_test(interval="inversion", **few), 25)
    theirs = seconds(lambda: fa.permutation_test(interval="delta", **few), 25)
    work = "the same of 2,000 rows, 9,999 permutations"
    yield work, "the same test with the interval by formula", theirs, mine, 0.67


def bootstrap_benchmarks():
    """Intervals of 10^5 rows, 10^3 replicates."""
    y_true, y_pred, group = make_rows(10**5)
    options = {"metric": "true_positive_rate", "method": "studentized", "n_resamples": 1_000}
    mine = seconds(
        lambda: fa.intervals(y_true, y_pred, sensitive_features=group, rng=1, **options), 15
    )
    work = "interval of a TPR gap, 10^5 rows, 10^3 bootstrap replicates, studentized"
    theirs = 200 * timed(lambda: baselines.fairlearn_bootstrap(y_true, y_pred, group, 5))
    yield work, "fairlearn MetricFrame n_boot, percentile (5, scaled)", theirs, mine, 10_000
    decided = [y_pred[(group == g) & (y_true == 1)].astype(float) for g in (0, 1)]
    theirs = seconds(lambda: baselines.scipy_bootstrap_gap(*decided, 1_000), 3)
    yield work, "scipy.stats.bootstrap of the positives, percentile", theirs, mine, None
    counts = 4 * group + 2 * y_true + y_pred

    def cells():
        table = np.bincount(counts, minlength=8).reshape(2, 4)
        return baselines.numpy_bootstrap_cells(table, 1_000)

    # Half a millisecond each: the best of many.
    theirs = seconds(cells, 200)
    yield work, "NumPy multinomial on cells, percentile", theirs, mine, None
    options["method"] = "percentile"
    mine = seconds(
        lambda: fa.intervals(y_true, y_pred, sensitive_features=group, rng=1, **options), 200
    )
    work = "the same, percentile"
    yield work, "NumPy multinomial on cells, percentile", theirs, mine, 0.9
    tabulated = fa.tabulate(y_true=y_true, y_pred=y_pred, sensitive_features=group)
    mine = seconds(lambda: fa.intervals(data=tabulated, rng=1, **options), 200)
    table = np.bincount(counts, minlength=8).reshape(2, 4)
    theirs = seconds(lambda: baselines.numpy_bootstrap_cells(table, 1_000), 200)
    yield f"{work}, from cells", "NumPy multinomial of the cells", theirs, mine, 0.9
    y_true, score, group = auc_rows(10**5)
    options = {"metric": "auc", "method": "studentized", "n_resamples": 1_000, "rng": 1}
    mine = seconds(
        lambda: fa.intervals(y_true, y_score=score, sensitive_features=group, **options), 3
    )
    theirs = baselines.rapidstats_seconds(y_true, score, 1_000)
    work = "AUC of two groups and their gap, 10^5 rows, 10^3 bootstrap replicates, studentized"
    yield work, "rapidstats, AUC of all rows, percentile", theirs, mine, 15


def melded_benchmarks():
    """Limits of a weighted proportion of 10^6 rows, 9,999 replicates."""
    rng = np.random.default_rng(8)
    weight = rng.lognormal(0, 1, 10**6)
    hits = weight * (rng.random(10**6) < 0.05)
    draws, call = _native.Draws(9_999, seed=1), _native.Call()
    mine = seconds(lambda: _native.gaffke_limits(hits, weight, (0.0, 1.0), 0, draws, call), 3)

    def bootstrap():
        e = rng.standard_exponential(len(weight))
        return (e @ hits) / (e @ weight)

    theirs = 9_999 * seconds(bootstrap, 5)
    work = "Gaffke limits of a weighted rate, 10^6 rows, 9,999 replicates"
    yield work, "NumPy, an exponential number for every row (1, scaled)", theirs, mine, 100


def file_benchmarks():
    """Cells of a CSV file of 2 x 10^6 rows and 8 columns, 3 of which are counted."""
    n = 2 * 10**6
    y_true, y_pred, group = make_rows(n)
    rng = np.random.default_rng(8)
    rows = pl.DataFrame(
        {
            "id": np.arange(n),
            "group": np.array(["first", "second"])[group],
            "age": rng.integers(18, 90, n),
            "income": rng.normal(5e4, 1e4, n).round(2),
            "place": np.array(["Here, or near", "There"])[rng.integers(0, 2, n)],
            "y_true": y_true,
            "y_pred": y_pred,
            "score": rng.random(n),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        rows.write_csv(path)

        def scan(columns):
            return pl.scan_csv(path).group_by(columns).len().collect(engine="streaming")

        def ours(**columns):
            return fa.tabulate(data=path, sensitive_features="group", **columns)

        mine = seconds(lambda: ours(y_true="y_true", y_pred="y_pred"), 7)
        theirs = seconds(lambda: scan(["group", "y_true", "y_pred"]), 7)
        work = "cells of a CSV file, 2 x 10^6 rows, 3 of 8 columns"
        yield (
            work,
            "polars, streaming scan and group-by (lengths of rows unchecked)",
            theirs,
            mine,
            0.9,
        )


SET_UP = """
import numpy as np
import fairaudit_rs as fa
_rng = np.random.default_rng(0)
n = 10**7
y_true = (_rng.random(n) < 0.4).astype(np.int8)
y_pred = (_rng.random(n) < 0.5).astype(np.int8)
y_score = _rng.random(n)
group = _rng.integers(0, 2, n).astype(np.int8)
_few = slice(100_000)
fa.permutation_test(y_true[_few], y_score=y_score[_few], sensitive_features=group[_few],
                    metric="auc", n_resamples=160, rng=1)
"""
MEMORY = {
    "TPR, 10^3 permutations": (
        "fa.permutation_test(y_true, y_pred, sensitive_features=group, metric='tpr', "
        "n_resamples=1_000, strata=None, rng=1)",
        "del y_score",
    ),
    "AUC, 32 permutations": (
        "fa.permutation_test(y_true, y_score=y_score, sensitive_features=group, metric='auc', "
        "n_resamples=32, rng=1)",
        "del y_pred",
    ),
    "AUC of 2 x 10^6 clusters, 32 permutations": (
        "fa.permutation_test(y_true, y_score=y_score, sensitive_features=group, clusters=cluster, "
        "metric='auc', n_resamples=32, rng=1)",
        "del y_pred\ncluster = np.arange(n) // 5\ngroup = group[cluster]",
    ),
    "Spearman, 32 permutations": (
        "fa.permutation_test(y_true, y_score=y_score, sensitive_features=attribute, "
        "metric='spearman', n_resamples=32, rng=1)",
        "del y_pred, group\nattribute = _rng.normal(size=n)",
    ),
    "mean squared error, 32 permutations": (
        "fa.permutation_test(y_true, y_score=y_score, sensitive_features=group, "
        "metric='mean_squared_error', n_resamples=32, rng=1)",
        "del y_pred",
    ),
    "AUC in 10^3 strata of 10 groups, 32 permutations": (
        "fa.permutation_test(y_true, y_score=y_score, sensitive_features=group, strata=stratum, "
        "metric='auc', n_resamples=32, rng=1)",
        "del y_pred\nstratum = _rng.integers(0, 1_000, n).astype(np.int16)\n"
        "group = _rng.integers(0, 10, n).astype(np.int8)",
    ),
    "mean of a row value, 32 permutations": (
        "fa.permutation_test(y_score=y_score, sensitive_features=group, metric='mean_score', "
        "n_resamples=32, rng=1)",
        "del y_true, y_pred",
    ),
    "TPR, 10^3 bootstrap replicates": (
        "fa.intervals(y_true, y_pred, sensitive_features=group, metric='tpr', "
        "method='studentized', n_resamples=1_000, rng=1)",
        "del y_score",
    ),
    "AUC, 32 bootstrap replicates": (
        "fa.intervals(y_true, y_score=y_score, sensitive_features=group, metric='auc', "
        "method='studentized', n_resamples=32, rng=1)",
        "del y_pred",
    ),
}


def lines():
    yield from time_table(
        row
        for benchmarks in (
            count_benchmarks,
            row_benchmarks,
            design_benchmarks,
            calibration_benchmarks,
            bootstrap_benchmarks,
            melded_benchmarks,
            file_benchmarks,
        )
        for row in benchmarks()
    )
    yield from ["", machine(), *AFTER.splitlines(), ""]
    yield from memory_table(MEMORY, SET_UP)


if __name__ == "__main__":
    run("permutation", lines(), __doc__)
