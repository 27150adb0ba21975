"""Public calls of the permutation lens against baselines, in one run on one machine.

A baseline that would take minutes runs fewer replicates and is scaled; the table says so. With
--write the table goes to benches/README.md.
"""

import argparse
import os
import platform
import time
from pathlib import Path

import numpy as np

import fairaudit_rs as fa

HEAD = """# Benchmarks

    make bench

runs the kernels (`rust/`, divan) and the public calls against baselines (`python/`). Timings are
ratios in one run: these depend on the machine far less than seconds do. The table below was
written by `python benches/python/permutation.py --write`.

"""


def seconds(call, repeats=5):
    """The best of several runs, after one to warm up."""
    call()
    return min(_timed(call) for _ in range(repeats))


def _timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


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
    """What a good NumPy user writes: one count of the rows, then draws over the cells."""
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


def row_benchmarks():
    """AUC and mean of 10^6 rows, 10^3 studentized permutations."""
    y_true, score, group = auc_rows(10**6)
    options = {"sensitive_features": group, "strata": None, "n_resamples": 1_000, "rng": 1}
    ours = _timed(lambda: fa.permutation_test(y_true, y_score=score, metric="auc", **options))
    work = "AUC gap, 10^6 rows, 10^3 DeLong-studentized permutations"
    loop = _timed(lambda: scikit_learn_loop(y_true, score, group, 4)) * 250
    yield work, "scikit-learn loop (4 replicates, scaled)", loop, ours, "600 x"
    presorted = _timed(lambda: numpy_presorted(y_true, score, group, 10)) * 100
    baseline = "NumPy, presorted, choice and cumsum, unstudentized (10, scaled)"
    yield work, baseline, presorted, ours, "30 x"
    from scipy import stats

    def gap(x, y, axis=-1):
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    parts = (score[group == 0], score[group == 1])
    theirs = 50 * _timed(
        lambda: stats.permutation_test(parts, gap, n_resamples=20, batch=1, vectorized=True)
    )
    ours = _timed(lambda: fa.permutation_test(y_score=score, metric="mean_score", **options))
    work = "mean of a row value, 10^6 rows, 10^3 studentized permutations"
    yield work, "scipy.stats.permutation_test (20, scaled)", theirs, ours, "100 x"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write benches/README.md")
    write = parser.parse_args().write
    rows = []
    y_true, y_pred, group = make_rows(10**6)
    options = {
        "metric": "true_positive_rate",
        "strata": None,
        "n_resamples": 10_000,
        "rng": 1,
    }

    def ours(**changes):
        return fa.permutation_test(y_true, y_pred, sensitive_features=group, **(options | changes))

    loop = _timed(lambda: numpy_loop(y_true, y_pred, group, 20)) * 500
    time_ours = seconds(ours)
    work = "TPR, 10^6 rows, 10^4 studentized permutations, from arrays"
    rows.append((work, "NumPy loop (20 replicates, scaled)", loop, time_ours, "1,000 x"))
    rows.append(
        (
            work,
            "NumPy multivariate_hypergeometric",
            seconds(lambda: numpy_cells(y_true, y_pred, group, 10_000)),
            time_ours,
            "5 x",
        )
    )
    rows.append(
        (
            "the same, one thread",
            "NumPy loop (20 replicates, scaled)",
            loop,
            seconds(lambda: ours(n_threads=1)),
            "",
        )
    )
    rows.append(
        (
            "TPR, 10^6 rows, exact test",
            "NumPy loop (20 replicates, scaled)",
            loop,
            seconds(lambda: ours(strata="auto")),
            "",
        )
    )

    cells = fa.tabulate(y_true=y_true, y_pred=y_pred, sensitive_features=group)
    by_size = {}
    for scale in (1, 10, 100):
        many = cells
        for _ in range(round(np.log10(scale))):
            many = sum([many] * 10)
        by_size[many.n_rows] = seconds(
            lambda many=many: fa.permutation_test(data=many, **options), 15
        )
    small, *_, large = by_size.values()
    rows.append(
        ("10^4 permutations of cells of 10^8 rows", "the same of 10^6 rows", small, large, "1.0 x")
    )

    rows.extend(row_benchmarks())
    lines = [
        "| work | baseline | baseline, s | ours, s | ratio | goal |",
        "|---|---|---|---|---|---|",
    ]
    for work, baseline, theirs, mine, goal in rows:
        lines.append(
            f"| {work} | {baseline} | {theirs:.4g} | {mine:.4g} | {theirs / mine:,.3g} x | {goal} |"
        )
    machine = (
        f"{os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}"
    )
    text = "\n".join([*lines, "", machine, ""])
    print(text)
    if write:
        target = Path(__file__).resolve().parents[1] / "README.md"
        target.write_text(HEAD + text, encoding="utf-8")


if __name__ == "__main__":
    main()
