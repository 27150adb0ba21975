"""Slow, plain reference for the permutation lens, count metrics only.

Written from the statistics page, not from the library. Every function does the obvious thing:
rows are really shuffled, tables are really enumerated, exact probabilities are fractions.

Conventions: a table is ``(tp, fp, fn, tn)``; of two groups, ``a`` is the first in sorted order
and T = theta_a - theta_b; undefined is NaN; v is the plug-in variance, p(1-p)/d for a proportion.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy import stats

TIE_TOLERANCE = 1e-10
"""A replicate within this relative distance of the observed statistic is a tie, hence extreme."""

ROUNDING = 1e-14
"""A difference of two values below this relative size is rounding of an exact zero."""

ALTERNATIVES = ("two-sided", "greater", "less")


# --- values ---------------------------------------------------------------------------------
# The value functions also accept complex counts: `variance` differentiates through them.


def divide(numerator, denominator):
    """numerator / denominator, NaN when the denominator is zero."""
    return numerator / denominator if denominator != 0 else math.nan


def selection_rate(tp, fp, fn, tn):
    """(tp + fp) / n."""
    return divide(tp + fp, tp + fp + fn + tn)


def rejection_rate(tp, fp, fn, tn):
    """(fn + tn) / n."""
    return divide(fn + tn, tp + fp + fn + tn)


def base_rate(tp, fp, fn, tn):
    """(tp + fn) / n."""
    return divide(tp + fn, tp + fp + fn + tn)


def true_positive_rate(tp, fp, fn, tn):
    """tp / (tp + fn)."""
    return divide(tp, tp + fn)


def false_positive_rate(tp, fp, fn, tn):
    """fp / (fp + tn)."""
    return divide(fp, fp + tn)


def true_negative_rate(tp, fp, fn, tn):
    """tn / (fp + tn)."""
    return divide(tn, fp + tn)


def false_negative_rate(tp, fp, fn, tn):
    """fn / (tp + fn)."""
    return divide(fn, tp + fn)


def positive_predictive_value(tp, fp, fn, tn):
    """tp / (tp + fp)."""
    return divide(tp, tp + fp)


def false_discovery_rate(tp, fp, fn, tn):
    """fp / (tp + fp)."""
    return divide(fp, tp + fp)


def negative_predictive_value(tp, fp, fn, tn):
    """tn / (fn + tn)."""
    return divide(tn, fn + tn)


def false_omission_rate(tp, fp, fn, tn):
    """fn / (fn + tn)."""
    return divide(fn, fn + tn)


def accuracy(tp, fp, fn, tn):
    """(tp + tn) / n."""
    return divide(tp + tn, tp + fp + fn + tn)


def error_rate(tp, fp, fn, tn):
    """(fp + fn) / n."""
    return divide(fp + fn, tp + fp + fn + tn)


def balanced_accuracy(tp, fp, fn, tn):
    """(tp / (tp + fn) + tn / (fp + tn)) / 2, undefined without positives or negatives."""
    return (divide(tp, tp + fn) + divide(tn, fp + tn)) / 2


def f1(tp, fp, fn, tn):
    """2 tp / (2 tp + fp + fn), undefined only when tp = fp = fn = 0."""
    return divide(2 * tp, 2 * tp + fp + fn)


def mcc(tp, fp, fn, tn):
    """(tp tn - fp fn) / sqrt((tp+fp)(tp+fn)(tn+fp)(tn+fn)), undefined at an empty margin."""
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return divide(tp * tn - fp * fn, margins**0.5)


METRICS = {
    "selection_rate": selection_rate,
    "rejection_rate": rejection_rate,
    "base_rate": base_rate,
    "true_positive_rate": true_positive_rate,
    "false_positive_rate": false_positive_rate,
    "true_negative_rate": true_negative_rate,
    "false_negative_rate": false_negative_rate,
    "positive_predictive_value": positive_predictive_value,
    "false_discovery_rate": false_discovery_rate,
    "negative_predictive_value": negative_predictive_value,
    "false_omission_rate": false_omission_rate,
    "accuracy": accuracy,
    "error_rate": error_rate,
    "balanced_accuracy": balanced_accuracy,
    "f1": f1,
    "mcc": mcc,
}

# Proportions, as (cells that count as a success, cells that count as a trial).
PROPORTIONS = {
    "selection_rate": (("tp", "fp"), ("tp", "fp", "fn", "tn")),
    "rejection_rate": (("fn", "tn"), ("tp", "fp", "fn", "tn")),
    "base_rate": (("tp", "fn"), ("tp", "fp", "fn", "tn")),
    "true_positive_rate": (("tp",), ("tp", "fn")),
    "false_positive_rate": (("fp",), ("fp", "tn")),
    "true_negative_rate": (("tn",), ("fp", "tn")),
    "false_negative_rate": (("fn",), ("tp", "fn")),
    "positive_predictive_value": (("tp",), ("tp", "fp")),
    "false_discovery_rate": (("fp",), ("tp", "fp")),
    "negative_predictive_value": (("tn",), ("fn", "tn")),
    "false_omission_rate": (("fn",), ("fn", "tn")),
    "accuracy": (("tp", "tn"), ("tp", "fp", "fn", "tn")),
    "error_rate": (("fp", "fn"), ("tp", "fp", "fn", "tn")),
}

CELLS = ("tp", "fp", "fn", "tn")


def proportion_counts(name, tp, fp, fn, tn):
    """(successes, trials) of a proportion; KeyError for a metric that is not a proportion."""
    counts = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
    successes, trials = PROPORTIONS[name]
    return sum(counts[cell] for cell in successes), sum(counts[cell] for cell in trials)


def value(name, tp, fp, fn, tn):
    """theta = h(tp, fp, fn, tn) as a float."""
    return float(METRICS[name](float(tp), float(fp), float(fn), float(tn)))


# --- variances ------------------------------------------------------------------------------


def influence_of_cells(name, tp, fp, fn, tn):
    """psi at a row of each cell, in the order (tp, fp, fn, tn); None in an empty cell.

    Proportions: psi = 1{trial} (1{success} - theta) / d. Others: psi_k = dh/dc_k by the complex
    step, Im h(c + i eps e_k) / eps. Both are the same object, since h is homogeneous of degree 0.
    """
    counts = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
    theta = value(name, tp, fp, fn, tn)
    influence = []
    for cell in CELLS:
        if counts[cell] == 0:
            influence.append(None)
        elif math.isnan(theta):
            influence.append(math.nan)
        elif name in PROPORTIONS:
            successes, trials = PROPORTIONS[name]
            trial_count = sum(counts[other] for other in trials)
            success = 1.0 if cell in successes else 0.0
            influence.append((success - theta) / trial_count if cell in trials else 0.0)
        else:
            step = 1e-30
            moved = {other: complex(counts[other]) for other in CELLS}
            moved[cell] += 1j * step
            influence.append(METRICS[name](**moved).imag / step)
    return influence


def variance(name, tp, fp, fn, tn):
    """v = sum_k (dh/dc_k)^2 c_k, a sum over rows of psi_i^2; NaN where theta is undefined."""
    if math.isnan(value(name, tp, fp, fn, tn)):
        return math.nan
    counts = (tp, fp, fn, tn)
    influence = influence_of_cells(name, tp, fp, fn, tn)
    total = sum(count * psi**2 for count, psi in zip(counts, influence, strict=False) if count > 0)
    # n v is at least of order 1/n when it is not zero: anything smaller is rounding.
    return 0.0 if total * sum(counts) < 1e-20 else float(total)


def calibration_error(bin_of_row, score_of_row, y):
    """(ECE, v): ECE = sum_b |sum_{i in b} (y_i - s_i)| / n.

    psi_i = (sign_b (y_i - s_i) - ECE) / n with sign_b the sign of the sum of bin b;
    v = sum psi_i^2.
    """
    bin_of_row, score_of_row, y = (np.asarray(column) for column in (bin_of_row, score_of_row, y))
    n = len(y)
    if n == 0:
        return math.nan, math.nan
    residual = y.astype(float) - score_of_row.astype(float)
    labels = set(bin_of_row.tolist())
    bin_sum = {label: math.fsum(residual[bin_of_row == label]) for label in labels}
    ece = math.fsum(abs(total) for total in bin_sum.values()) / n
    psi = [
        (np.sign(bin_sum[label]) * row_residual - ece) / n
        for label, row_residual in zip(bin_of_row.tolist(), residual, strict=False)
    ]
    return ece, math.fsum(entry**2 for entry in psi)


# --- statistics -----------------------------------------------------------------------------


def statistic(values, variances, studentize, successes=None, trials=None):
    """S of two groups, from T = theta_a - theta_b.

    "none": T. "unpooled": T / sqrt(v_a + v_b). "pooled": T / sqrt(p(1-p)(1/d_a + 1/d_b)) with
    p = (x_a + x_b) / (d_a + d_b), `successes` = (x_a, x_b) and `trials` = (d_a, d_b).
    T = 0 gives 0 whatever the variance; T != 0 over zero variance gives +-inf; NaN stays NaN.
    """
    theta_a, theta_b = values
    if math.isnan(theta_a) or math.isnan(theta_b):
        return math.nan
    difference = theta_a - theta_b
    if abs(difference) <= ROUNDING * max(abs(theta_a), abs(theta_b)):
        return 0.0
    if studentize == "none":
        return difference
    if studentize == "unpooled":
        total = variances[0] + variances[1]
    elif studentize == "pooled":
        if successes is None or trials is None:
            raise ValueError("studentize='pooled' is defined for proportions only")
        p = (successes[0] + successes[1]) / (trials[0] + trials[1])
        total = p * (1 - p) * (1 / trials[0] + 1 / trials[1])
    else:
        raise ValueError(f"studentize={studentize!r}: use 'none', 'unpooled' or 'pooled'")
    if total == 0:
        return math.copysign(math.inf, difference)
    return difference / math.sqrt(total)


def statistic_of_tables(table_a, table_b, metric, studentize):
    """S of one metric from the tables (tp, fp, fn, tn) of two groups."""
    values = [value(metric, *table) for table in (table_a, table_b)]
    variances = [variance(metric, *table) for table in (table_a, table_b)]
    if metric not in PROPORTIONS:
        return statistic(values, variances, studentize)
    counts = [proportion_counts(metric, *table) for table in (table_a, table_b)]
    return statistic(
        values,
        variances,
        studentize,
        successes=[count[0] for count in counts],
        trials=[count[1] for count in counts],
    )


def wald(values, variances):
    """W = sum_g (theta_g - thetabar)^2 / v_g, thetabar = (sum theta_g / v_g) / (sum 1 / v_g).

    Zero variances are taken as the limit v -> 0: if those groups agree, thetabar is their value
    and they contribute nothing; if they disagree, W is inf. So W = S^2 for two groups.
    """
    values = [float(entry) for entry in values]
    if any(math.isnan(entry) for entry in values):
        return math.nan
    scale = max(abs(entry) for entry in values)
    if max(values) - min(values) <= ROUNDING * scale:
        return 0.0
    certain = [theta for theta, v in zip(values, variances, strict=False) if v == 0]
    uncertain = [(theta, v) for theta, v in zip(values, variances, strict=False) if v > 0]
    if certain:
        if max(certain) - min(certain) > ROUNDING * scale:
            return math.inf
        center = certain[0]
    else:
        center = sum(theta / v for theta, v in uncertain) / sum(1 / v for _, v in uncertain)
    return sum((theta - center) ** 2 / v for theta, v in uncertain)


def wald_pooled(successes, trials):
    """W = sum_g d_g (theta_g - p)^2 / (p(1-p)), p the proportion of all groups together."""
    if any(count == 0 for count in trials):
        return math.nan
    p = sum(successes) / sum(trials)
    if p in (0.0, 1.0):
        return 0.0
    return wald(
        [x / d for x, d in zip(successes, trials, strict=False)],
        [p * (1 - p) / d for d in trials],
    )


def wald_of_tables(tables, metric, studentize):
    """W of one metric from one table (tp, fp, fn, tn) per group."""
    if studentize == "unpooled":
        return wald(
            [value(metric, *table) for table in tables],
            [variance(metric, *table) for table in tables],
        )
    if studentize == "pooled":
        if metric not in PROPORTIONS:
            raise ValueError("studentize='pooled' is defined for proportions only")
        counts = [proportion_counts(metric, *table) for table in tables]
        return wald_pooled([count[0] for count in counts], [count[1] for count in counts])
    raise ValueError(f"studentize={studentize!r}: use 'unpooled' or 'pooled'")


# --- permutation ----------------------------------------------------------------------------


def table_of_rows(y_true, y_pred):
    """(tp, fp, fn, tn) counted row by row."""
    tp = fp = fn = tn = 0
    for label, prediction in zip(y_true, y_pred, strict=False):
        if label and prediction:
            tp += 1
        elif prediction:
            fp += 1
        elif label:
            fn += 1
        else:
            tn += 1
    return tp, fp, fn, tn


def tables_of_groups(y_true, y_pred, group, labels):
    """One table per group, in the order of `labels`."""
    return [table_of_rows(y_true[group == label], y_pred[group == label]) for label in labels]


def shuffle_within(group, strata, rng):
    """The group column with its rows shuffled within every stratum."""
    shuffled = np.array(group)
    for stratum in sorted(set(strata.tolist())):
        rows = np.flatnonzero(strata == stratum)
        shuffled[rows] = group[rng.permutation(rows)]
    return shuffled


def is_extreme(replicate, observed, alternative):
    """Return whether a replicate is at least as extreme as the observed value; NaN always is.

    two-sided: |S*| >= |S|; greater: S* >= S; less: S* <= S; each up to a relative 1e-10 of |S|.
    """
    if alternative not in ALTERNATIVES:
        raise ValueError(f"alternative={alternative!r}: use one of {ALTERNATIVES}")
    if math.isnan(replicate):
        return True
    if alternative == "two-sided":
        replicate, observed = abs(replicate), abs(observed)
    elif alternative == "less":
        replicate, observed = -replicate, -observed
    if math.isinf(observed):
        return replicate >= observed
    return replicate >= observed - TIE_TOLERANCE * abs(observed)


def monte_carlo_pvalue(observed, null, alternative):
    """p = (1 + #{at least as extreme}) / (1 + B); NaN when the observed value is undefined."""
    if math.isnan(observed):
        return math.nan
    n_extreme = sum(is_extreme(replicate, observed, alternative) for replicate in null)
    return (1 + n_extreme) / (1 + len(null))


def permutation_test(y_true, y_pred, group, compute, strata, alternative, n_resamples, rng):
    """Shuffle the group column B times and recompute `compute(tables)` on every replicate."""
    y_true, y_pred, group = (np.asarray(column) for column in (y_true, y_pred, group))
    strata = np.zeros(len(group), dtype=int) if strata is None else np.asarray(strata)
    labels = sorted(set(group.tolist()))
    observed = compute(tables_of_groups(y_true, y_pred, group, labels))
    null = []
    for _ in range(n_resamples):
        shuffled = shuffle_within(group, strata, rng)
        null.append(compute(tables_of_groups(y_true, y_pred, shuffled, labels)))
    return {
        "statistic": observed,
        "pvalue": monte_carlo_pvalue(observed, null, alternative),
        "n_undefined": sum(math.isnan(replicate) for replicate in null),
        "null": np.array(null),
    }


def permutation_pvalue(
    y_true,
    y_pred,
    group,
    metric,
    strata=None,
    studentize="unpooled",
    alternative="two-sided",
    n_resamples=999,
    rng=None,
):
    """Two groups: p = (1 + #{S* at least as extreme as S}) / (1 + B), S recomputed every time.

    Returns a dict with `statistic`, `pvalue`, `n_undefined` and `null`.
    """
    n_groups = len(set(np.asarray(group).tolist()))
    if n_groups != 2:
        raise ValueError(f"permutation_pvalue needs 2 groups, got {n_groups}")

    def compute(tables):
        return statistic_of_tables(tables[0], tables[1], metric, studentize)

    return permutation_test(y_true, y_pred, group, compute, strata, alternative, n_resamples, rng)


def permutation_omnibus_pvalue(
    y_true,
    y_pred,
    group,
    metric,
    strata=None,
    studentize="unpooled",
    n_resamples=999,
    rng=None,
):
    """k groups: p = (1 + #{W* >= W}) / (1 + B) with the Wald statistic W; returns as above."""

    def compute(tables):
        return wald_of_tables(tables, metric, studentize)

    return permutation_test(y_true, y_pred, group, compute, strata, "greater", n_resamples, rng)


# --- exact laws -----------------------------------------------------------------------------


def hypergeometric_law(population, successes, draws):
    """{x: C(K, x) C(N - K, m - x) / C(N, m)} as fractions, over the support only."""
    lowest = max(0, draws - (population - successes))
    highest = min(draws, successes)
    return {
        x: Fraction(
            math.comb(successes, x) * math.comb(population - successes, draws - x),
            math.comb(population, draws),
        )
        for x in range(lowest, highest + 1)
    }


def multivariate_hypergeometric_law(counts, draws):
    """{(x_1, ..., x_k): prod_j C(c_j, x_j) / C(sum c, m)} as fractions, over the support only."""
    n_tables = math.comb(sum(counts), draws)
    law = {}
    for table in itertools.product(*(range(min(count, draws) + 1) for count in counts)):
        if sum(table) == draws:
            ways = math.prod(math.comb(count, x) for count, x in zip(counts, table, strict=False))
            law[table] = Fraction(ways, n_tables)
    return law


def binomial_law(n, p):
    """{x: C(n, x) p^x (1 - p)^(n - x)} as fractions."""
    p = Fraction(p)
    return {x: math.comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)}


def law_of_group_table(stratum_counts, draws):
    """Law of the table of group a: the sum over strata of independent multivariate
    hypergeometric tables, `draws[s]` rows of group a out of the cells `stratum_counts[s]`."""
    law = {(0, 0, 0, 0): Fraction(1)}
    for counts, n_rows in zip(stratum_counts, draws, strict=False):
        stratum_law = multivariate_hypergeometric_law(counts, n_rows)
        summed = {}
        for (before, p), (extra, q) in itertools.product(law.items(), stratum_law.items()):
            table = tuple(x + y for x, y in zip(before, extra, strict=False))
            summed[table] = summed.get(table, Fraction(0)) + p * q
        law = summed
    return law


def exact_law_of_tables(stratum_counts, draws, metric, studentize):
    """[(S, probability)] over all tables with the margins of every stratum fixed."""
    total = tuple(sum(column) for column in zip(*stratum_counts, strict=False))
    law = []
    for table_a, probability in law_of_group_table(stratum_counts, draws).items():
        table_b = tuple(whole - part for whole, part in zip(total, table_a, strict=False))
        law.append((statistic_of_tables(table_a, table_b, metric, studentize), probability))
    return law


def exact_law(y_true, y_pred, group, metric, strata=None, studentize="unpooled"):
    """[(S, probability)] over all permutations of two group labels within strata."""
    y_true, y_pred, group = (np.asarray(column) for column in (y_true, y_pred, group))
    strata = np.zeros(len(group), dtype=int) if strata is None else np.asarray(strata)
    labels = sorted(set(group.tolist()))
    if len(labels) != 2:
        raise ValueError(f"exact_law needs 2 groups, got {len(labels)}")
    stratum_counts, draws = [], []
    for stratum in sorted(set(strata.tolist())):
        rows = strata == stratum
        stratum_counts.append(table_of_rows(y_true[rows], y_pred[rows]))
        draws.append(int(np.sum(group[rows] == labels[0])))
    return exact_law_of_tables(stratum_counts, draws, metric, studentize)


def exact_pvalue(observed, law, alternative="two-sided"):
    """P(S* at least as extreme as S) as a fraction, without +1; NaN when S is undefined.

    An undefined table counts as extreme; ties as in `is_extreme`.
    """
    if math.isnan(observed):
        return math.nan
    return sum(
        (probability for term, probability in law if is_extreme(term, observed, alternative)),
        Fraction(0),
    )


# --- multiplicity ---------------------------------------------------------------------------


def holm(p):
    """Adjusted p_(j) = max_{i <= j} min(1, (m - i + 1) p_(i)), in input order."""
    m = len(p)
    adjusted = [math.nan] * m
    running = 0.0
    for rank, index in enumerate(sorted(range(m), key=lambda number: p[number])):
        running = max(running, min(1.0, (m - rank) * p[index]))
        adjusted[index] = running
    return adjusted


def benjamini_hochberg(p):
    """Adjusted p_(j) = min_{i >= j} min(1, m p_(i) / i), in input order."""
    m = len(p)
    adjusted = [math.nan] * m
    running = 1.0
    order = sorted(range(m), key=lambda number: p[number])
    for rank in range(m, 0, -1):
        index = order[rank - 1]
        running = min(running, m * p[index] / rank)
        adjusted[index] = running
    return adjusted


def step_down_max_t(observed, null):
    """Westfall-Young: hypotheses by |S| descending, the j-th compared with the maximum of |S*|
    over the hypotheses j, ..., m; p = (1 + count) / (1 + B), made monotone; in input order.

    `null` is B rows of m statistics from the same shuffles. An undefined replicate is extreme;
    a hypothesis with undefined S keeps NaN and takes no part in any maximum.
    """
    null = np.asarray(null, dtype=float)
    adjusted = [math.nan] * len(observed)
    defined = [number for number in range(len(observed)) if not math.isnan(observed[number])]
    order = sorted(defined, key=lambda number: -abs(observed[number]))
    running = 0.0
    for rank, index in enumerate(order):
        count = 0
        for replicate in null:
            count += any(
                is_extreme(replicate[other], observed[index], "two-sided") for other in order[rank:]
            )
        running = max(running, (1 + count) / (1 + len(null)))
        adjusted[index] = running
    return adjusted


# --- intervals ------------------------------------------------------------------------------


def clopper_pearson(k, n, level=0.95):
    """(lower, upper): beta quantiles B(alpha/2; k, n-k+1) and B(1-alpha/2; k+1, n-k)."""
    tail = (1 - level) / 2
    lower = 0.0 if k == 0 else float(stats.beta.ppf(tail, k, n - k + 1))
    upper = 1.0 if k == n else float(stats.beta.ppf(1 - tail, k + 1, n - k))
    return lower, upper


def delta_interval(values, variances, level=0.95):
    """(lower, upper): T -+ z_{1-alpha/2} sqrt(v_a + v_b), T = theta_a - theta_b, not clipped."""
    difference = values[0] - values[1]
    half_width = stats.norm.ppf((1 + level) / 2) * math.sqrt(variances[0] + variances[1])
    return float(difference - half_width), float(difference + half_width)
