"""Baselines that are not NumPy alone: numba, fairlearn, rapidstats, SciPy, and counts in NumPy.

Each is what a good engineer would write with that tool, with the faster of the settings tried.
Functions of numba compile at the first call: call them once on few rows before timing.
"""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import numba
import numpy as np
from numba import float64, int64, njit, prange, uint64

LANES = 16
QUANTILES = (0.025, 0.975)


@njit(inline="always")
def _start(seed, stream):
    """State of a generator of its own for each stream (splitmix64)."""
    state = uint64(seed) * uint64(0xD1342543DE82EF95) + uint64(stream + 1) * uint64(
        0x9E3779B97F4A7C15
    )
    state = (state ^ (state >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> uint64(27))) * uint64(0x94D049BB133111EB)
    return (state ^ (state >> uint64(31))) | uint64(1)


@njit(inline="always")
def _next(state):
    """One step of xorshift64: twice as fast here as the generators that numba brings."""
    state ^= state << uint64(13)
    state ^= state >> uint64(7)
    return state ^ (state << uint64(17))


@njit(inline="always")
def _uniform(state):
    return float64(int64(state >> uint64(11))) * 2.0**-53


@njit(inline="always")
def _auc_gap(wins_first, wins_second, negatives_first, negatives, n_first, n_rows):
    negatives_second = negatives - negatives_first
    positives_first = n_first - negatives_first
    positives_second = n_rows - n_first - negatives_second
    return wins_first / (positives_first * negatives_first) - wins_second / (
        positives_second * negatives_second
    )


@njit(nogil=True)
def _selection_auc(labels, n_first, state):
    """One replicate: each row joins the first group with probability needed / left."""
    n_rows = len(labels)
    needed = float64(n_first)
    wins_first = wins_second = negatives_first = negatives = 0
    for i in range(n_rows):
        state = _next(state)
        drawn = float64(_uniform(state) * (n_rows - i) < needed)
        needed -= drawn
        first = int64(drawn)
        label = int64(labels[i])
        wins_first += label * first * negatives_first
        wins_second += label * (1 - first) * (negatives - negatives_first)
        negatives_first += (1 - label) * first
        negatives += 1 - label
    return _auc_gap(wins_first, wins_second, negatives_first, negatives, n_first, n_rows)


@njit(nogil=True)
def numba_selection_auc(labels_sorted_by_score, n_first, n_resamples, seed):
    """AUC gaps under permuted groups: selection sampling, one pass, no ties, unstudentized."""
    gaps = np.empty(n_resamples)
    for r in range(n_resamples):
        gaps[r] = _selection_auc(labels_sorted_by_score, n_first, _start(seed, r))
    return gaps


@njit(nogil=True, parallel=True)
def numba_selection_auc_parallel(labels_sorted_by_score, n_first, n_resamples, seed):
    """Compute the gaps of `numba_selection_auc`, the replicates shared among the cores."""
    gaps = np.empty(n_resamples)
    for r in prange(n_resamples):
        gaps[r] = _selection_auc(labels_sorted_by_score, n_first, _start(seed, r))
    return gaps


@njit(nogil=True)
def _selection_auc_lanes(labels, n_first, seed, begin, gaps):
    """LANES replicates side by side, so that the inner loop compiles to vector instructions."""
    n_rows = len(labels)
    state = np.empty(LANES, np.uint64)
    needed = np.full(LANES, float64(n_first))
    wins_first = np.zeros(LANES, np.int64)
    wins_second = np.zeros(LANES, np.int64)
    negatives_first = np.zeros(LANES, np.int64)
    negatives = 0
    for k in range(LANES):
        state[k] = _start(seed, begin + k)
    for i in range(n_rows):
        label = int64(labels[i])
        left = float64(n_rows - i)
        for k in range(LANES):
            state[k] = _next(state[k])
            drawn = float64(_uniform(state[k]) * left < needed[k])
            needed[k] -= drawn
            first = int64(drawn)
            if label == 1:
                wins_first[k] += first * negatives_first[k]
                wins_second[k] += (1 - first) * (negatives - negatives_first[k])
            else:
                negatives_first[k] += first
        negatives += 1 - label
    for k in range(min(LANES, len(gaps) - begin)):
        gaps[begin + k] = _auc_gap(
            wins_first[k], wins_second[k], negatives_first[k], negatives, n_first, n_rows
        )


@njit(nogil=True)
def numba_selection_auc_lanes(labels_sorted_by_score, n_first, n_resamples, seed):
    """Compute the gaps of `numba_selection_auc` as someone who knows SIMD would."""
    gaps = np.empty(n_resamples)
    for block in range((n_resamples + LANES - 1) // LANES):
        _selection_auc_lanes(labels_sorted_by_score, n_first, seed, block * LANES, gaps)
    return gaps


@njit(nogil=True, parallel=True)
def numba_selection_auc_lanes_parallel(labels_sorted_by_score, n_first, n_resamples, seed):
    """Compute the same gaps once more, the blocks of lanes shared among the cores."""
    gaps = np.empty(n_resamples)
    for block in prange((n_resamples + LANES - 1) // LANES):
        _selection_auc_lanes(labels_sorted_by_score, n_first, seed, block * LANES, gaps)
    return gaps


@njit(nogil=True)
def _fisher_yates_means(values, n_first, state, gaps):
    """Fill `gaps`; each replicate shuffles on from the last, and only as many rows as needed."""
    n_rows = len(values)
    n_drawn = min(n_first, n_rows - n_first)
    sign = 1.0 if n_drawn == n_first else -1.0
    shuffled = values.copy()
    total = values.sum()
    for r in range(len(gaps)):
        drawn_sum = 0.0
        for i in range(n_drawn):
            state = _next(state)
            j = i + int64(_uniform(state) * (n_rows - i))
            value = shuffled[j]
            shuffled[j] = shuffled[i]
            shuffled[i] = value
            drawn_sum += value
        gaps[r] = sign * (drawn_sum / n_drawn - (total - drawn_sum) / (n_rows - n_drawn))


@njit(nogil=True)
def numba_fisher_yates_mean(values, n_first, n_resamples, seed):
    """Differences of means under permuted groups: partial Fisher-Yates, unstudentized."""
    gaps = np.empty(n_resamples)
    _fisher_yates_means(values, n_first, _start(seed, 0), gaps)
    return gaps


@njit(nogil=True, parallel=True)
def numba_fisher_yates_mean_parallel(values, n_first, n_resamples, seed):
    """Use all cores, each with a copy of the values; other draws than the serial one."""
    gaps = np.empty(n_resamples)
    n_chunks = numba.get_num_threads()
    for chunk in prange(n_chunks):
        begin = chunk * n_resamples // n_chunks
        end = (chunk + 1) * n_resamples // n_chunks
        _fisher_yates_means(values, n_first, _start(seed, chunk), gaps[begin:end])
    return gaps


def fairlearn_bootstrap(y_true, y_pred, group, n_boot):
    """Percentile interval of the TPR difference (absolute: fairlearn takes max minus min)."""
    from fairlearn.metrics import MetricFrame, true_positive_rate

    frame = MetricFrame(
        metrics=true_positive_rate,
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=group,
        n_boot=n_boot,
        ci_quantiles=list(QUANTILES),
        random_state=1,
    )
    low, high = frame.difference_ci(method="between_groups")
    return low, high


def fairlearn_bootstraps(y_true, y_pred, score, by, n_boot):
    """Percentile intervals of ten metrics in the groups of every attribute."""
    from fairlearn import metrics as fair
    from fairlearn.metrics import MetricFrame
    from sklearn import metrics

    def negative_predictive_value(y_true, y_pred):
        return metrics.precision_score(y_true, y_pred, pos_label=0)

    of_decisions = {
        "selection_rate": fair.selection_rate,
        "true_positive_rate": fair.true_positive_rate,
        "false_positive_rate": fair.false_positive_rate,
        "positive_predictive_value": metrics.precision_score,
        "negative_predictive_value": negative_predictive_value,
        "accuracy": metrics.accuracy_score,
        "f1": metrics.f1_score,
    }
    of_scores = {
        "auc": metrics.roc_auc_score,
        "mean_prediction": fair.mean_prediction,
        "brier_score": metrics.brier_score_loss,
    }
    for column in by.values():
        for functions, given in ((of_decisions, y_pred), (of_scores, score)):
            frame = MetricFrame(
                metrics=functions,
                y_true=y_true,
                y_pred=given,
                sensitive_features=column,
                n_boot=n_boot,
                ci_quantiles=list(QUANTILES),
                random_state=1,
            )
            frame.difference_ci(method="between_groups")


def rapidstats_auc_bootstrap(y_true, score, iterations, sampling_method="poisson"):
    """Percentile interval of the AUC (Rust, all cores).

    Poisson counts keep the rows sorted and are the faster method in a process as it comes;
    multinomial is the fastest of all where Polars has one thread (`rapidstats_seconds`).
    """
    import rapidstats

    bootstrap = rapidstats.Bootstrap(
        iterations=iterations,
        confidence=QUANTILES[1] - QUANTILES[0],
        method="percentile",
        sampling_method=sampling_method,
        seed=1,
        n_jobs=os.cpu_count(),
        chunksize=max(1, min(50, iterations // os.cpu_count())),
    )
    low, _, high = bootstrap.roc_auc(y_true, score)
    return low, high


def _seconds(call, repeats):
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


@contextmanager
def _environment(name, value):
    """Set a variable for the processes started inside."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def _rapidstats_timed(y_true, score, iterations, sampling_method):
    rapidstats_auc_bootstrap(y_true, score, 4, sampling_method)
    return _seconds(lambda: rapidstats_auc_bootstrap(y_true, score, iterations, sampling_method), 1)


def rapidstats_seconds(y_true, score, iterations):
    """Seconds of the faster of two set-ups, in processes of their own.

    Its replicates run side by side and sort inside with Polars' own threads; with
    POLARS_MAX_THREADS=1, which must be there when the process starts, the two do not compete.
    """
    spawn = multiprocessing.get_context("spawn")
    taken = []
    for threads, method in ((os.cpu_count(), "poisson"), (1, "multinomial")):
        with (
            _environment("POLARS_MAX_THREADS", str(threads)),
            ProcessPoolExecutor(1, mp_context=spawn) as pool,
        ):
            arguments = (y_true, score, iterations, method)
            taken.append(pool.submit(_rapidstats_timed, *arguments).result())
    return min(taken)


def _gap_of_means(first, second, axis=-1):
    return first.mean(axis=axis) - second.mean(axis=axis)


def scipy_bootstrap_gap(values_a, values_b, n_resamples):
    """Percentile interval of a difference of means; four replicates fit the cache, more do not."""
    from scipy import stats

    interval = stats.bootstrap(
        (values_a, values_b),
        _gap_of_means,
        n_resamples=n_resamples,
        batch=4,
        vectorized=True,
        method="percentile",
        rng=1,
    ).confidence_interval
    return interval.low, interval.high


def numpy_bootstrap_cells(counts, n_resamples):
    """Percentile interval of the TPR gap; `counts` is groups by (TN, FP, FN, TP).

    A bootstrap of rows is a multinomial draw of their counts: nothing here depends on the rows.
    """
    n_rows = counts.sum()
    drawn = np.random.default_rng(1).multinomial(n_rows, counts.ravel() / n_rows, n_resamples)
    missed, found = drawn.reshape(n_resamples, 2, 4)[:, :, 2:].transpose(2, 1, 0)
    rate = found / (found + missed)
    low, high = np.quantile(rate[0] - rate[1], QUANTILES)
    return low, high


def numpy_rank_correlation(u, w, by_u, by_w, moved):
    """Rank correlation over its standard error: influence by cumulative sums, without ties."""
    n = len(u)
    # `by_u` and `by_w` are the orders of u and of w, known once; w comes to row i from moved[i].
    paired = w[moved]
    back = np.empty_like(moved)
    back[moved] = np.arange(n)
    psi = u * paired
    for order, values in ((by_u, paired), (back[by_w], u)):
        sums = np.cumsum(values[order][::-1])[::-1] - 0.5 * values[order]
        psi[order] += sums / n
    return (u @ paired) / np.sqrt(np.sum((psi - psi.mean()) ** 2))
