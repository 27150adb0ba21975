"""Slow, plain reference for the permutation lens: metrics of rows, correlations, callables.

Written from the statistics page, not from the library. Every function does the obvious thing:
pairs are really compared, rows are really shuffled, resamples are really drawn.

Conventions: weights are 1 where none are given; `rows` is a tuple of equally long columns; psi_i
is the influence of row i, v = sum_i (w_i psi_i)^2; undefined is NaN; T = theta_a - theta_b.
"""

import math

import numpy as np
from scipy import stats

from .permutation import (
    ROUNDING,
    divide,
    monte_carlo_pvalue,
    shuffle_within,
    statistic,
)

SCORE_FLOOR = 2.0**-52
"""The log loss clips scores to [2^-52, 1 - 2^-52]."""


# --- influence ------------------------------------------------------------------------------


def ones_unless(weight, n):
    """The weights as floats; n ones where there are none."""
    return np.ones(n) if weight is None else np.asarray(weight, dtype=float)


def without_rounding(left, right):
    """left - right, exactly 0 where it is below 1e-14 of |left| + |right|."""
    left, right = np.broadcast_arrays(np.asarray(left, dtype=float), right)
    difference = left - right
    return np.where(np.abs(difference) <= ROUNDING * (np.abs(left) + np.abs(right)), 0, difference)


def variance_of_influence(influence, weight=None, cluster=None):
    """v = sum_i (w_i psi_i)^2, or over clusters c: v = sum_c (sum_{i in c} w_i psi_i)^2."""
    influence = np.asarray(influence, dtype=float)
    weighted = ones_unless(weight, len(influence)) * influence
    if cluster is None:
        return math.fsum(value**2 for value in weighted)
    cluster = np.asarray(cluster)
    return math.fsum(math.fsum(weighted[cluster == code]) ** 2 for code in set(cluster.tolist()))


# --- ranks ----------------------------------------------------------------------------------


def midranks(values):
    """rank_i = #{j: x_j < x_i} + (#{j: x_j = x_i} + 1) / 2."""
    values = np.asarray(values, dtype=float)
    return np.array(
        [np.sum(values < value) + (np.sum(values == value) + 1) / 2 for value in values]
    )


def auc_kernel(positive_score, negative_score):
    """k_ij = 1{s+_i > s-_j} + 1{s+_i = s-_j} / 2, one row for each positive."""
    positive = np.asarray(positive_score, dtype=float)[:, None]
    negative = np.asarray(negative_score, dtype=float)[None, :]
    return (positive > negative) + (positive == negative) / 2


def auc(y_true, score, weight=None):
    """sum_ij w_i w_j k_ij / (W+ W-) over positives i and negatives j; NaN if W+ or W- is 0."""
    y_true, score = np.asarray(y_true).astype(bool), np.asarray(score, dtype=float)
    weight = ones_unless(weight, len(score))
    positive, negative = weight[y_true], weight[~y_true]
    kernel = auc_kernel(score[y_true], score[~y_true])
    total = math.fsum((positive[:, None] * negative[None, :] * kernel).ravel())
    return divide(total, math.fsum(positive) * math.fsum(negative))


def structural_components(y_true, score, weight=None):
    """(V10, V01): V10_i = sum_j w_j k_ij / W- of positive i, V01_j = sum_i w_i k_ij / W+ of
    negative j, each in the order of the rows."""
    y_true, score = np.asarray(y_true).astype(bool), np.asarray(score, dtype=float)
    weight = ones_unless(weight, len(score))
    positive, negative = weight[y_true], weight[~y_true]
    kernel = auc_kernel(score[y_true], score[~y_true])
    of_positives = [divide(math.fsum(negative * row), math.fsum(negative)) for row in kernel]
    of_negatives = [divide(math.fsum(positive * row), math.fsum(positive)) for row in kernel.T]
    return np.array(of_positives), np.array(of_negatives)


def sample_variance(values):
    """sum (x_i - mean)^2 / (n - 1); NaN below two values."""
    n = len(values)
    if n < 2:
        return math.nan
    mean = math.fsum(values) / n
    return math.fsum(value**2 for value in without_rounding(values, mean)) / (n - 1)


def delong_variance(y_true, score):
    """v = var(V10) / n+ + var(V01) / n-, var with n - 1; NaN below 2 positives or 2 negatives."""
    of_positives, of_negatives = structural_components(y_true, score)
    return divide(sample_variance(of_positives), len(of_positives)) + divide(
        sample_variance(of_negatives), len(of_negatives)
    )


def auc_influence(y_true, score, weight=None):
    """psi_i = (V10_i - AUC) / W+ of a positive, psi_j = (V01_j - AUC) / W- of a negative."""
    y_true = np.asarray(y_true).astype(bool)
    weight = ones_unless(weight, len(y_true))
    theta = auc(y_true, score, weight)
    if math.isnan(theta):
        return np.full(len(y_true), math.nan)
    of_positives, of_negatives = structural_components(y_true, score, weight)
    influence = np.empty(len(y_true))
    influence[y_true] = without_rounding(of_positives, theta) / math.fsum(weight[y_true])
    influence[~y_true] = without_rounding(of_negatives, theta) / math.fsum(weight[~y_true])
    return influence


def auc_linearised_variance(y_true, score, weight=None, cluster=None):
    """v = sum (w_i psi_i)^2, by cluster if given: DeLong with n+ and n- in place of n - 1."""
    return variance_of_influence(auc_influence(y_true, score, weight), weight, cluster)


def auc_variance_as_printed(y_true, score):
    """Negative control. The paper's V_A / n, p+ and 1 - p+ swapped: (n+ n- = n^2 p+ (1 - p+))

    v = var(V10) / n- + var(V01) / n+, var with n.
    """
    of_positives, of_negatives = structural_components(y_true, score)
    return np.var(of_positives) / len(of_negatives) + np.var(of_negatives) / len(of_positives)


# --- ratios of sums -------------------------------------------------------------------------


def ratio(numerator, denominator=None, weight=None):
    """theta = sum w a / sum w d, d = 1 where none is given; NaN if sum w d = 0."""
    numerator = np.asarray(numerator, dtype=float)
    denominator = ones_unless(denominator, len(numerator))
    weight = ones_unless(weight, len(numerator))
    return divide(math.fsum(weight * numerator), math.fsum(weight * denominator))


def ratio_influence(numerator, denominator=None, weight=None):
    """psi_i = (a_i - theta d_i) / sum w d."""
    numerator = np.asarray(numerator, dtype=float)
    denominator = ones_unless(denominator, len(numerator))
    weight = ones_unless(weight, len(numerator))
    theta = ratio(numerator, denominator, weight)
    if math.isnan(theta):
        return np.full(len(numerator), math.nan)
    return without_rounding(numerator, theta * denominator) / math.fsum(weight * denominator)


def bessel(counted):
    """n / (n - 1) of the n rows that are counted; NaN below two."""
    n = int(np.sum(counted))
    return n / (n - 1) if n > 1 else math.nan


def ratio_variance(numerator, denominator=None, weight=None):
    """v = n/(n-1) sum (w_i psi_i)^2, n the rows with (w a, w d) != (0, 0); NaN below two."""
    numerator = np.asarray(numerator, dtype=float)
    denominator = ones_unless(denominator, len(numerator))
    weight = ones_unless(weight, len(numerator))
    squares = variance_of_influence(ratio_influence(numerator, denominator, weight), weight)
    return bessel((weight * numerator != 0) | (weight * denominator != 0)) * squares


def clustered_ratio_variance(numerator, denominator=None, weight=None, cluster=None):
    """v = sum over clusters of (sum_i w_i psi_i)^2, no factor; `ratio_variance` without them."""
    if cluster is None:
        return ratio_variance(numerator, denominator, weight)
    if len(numerator) == 0:
        return math.nan
    return variance_of_influence(ratio_influence(numerator, denominator, weight), weight, cluster)


def mean_prediction(y_true, score):
    """(a, d) = (s, 1)."""
    return np.asarray(score, dtype=float), np.ones(len(score))


def mean_residual(y_true, score):
    """(a, d) = (y - s, 1)."""
    return np.asarray(y_true, dtype=float) - np.asarray(score, dtype=float), np.ones(len(score))


def mean_absolute_error(y_true, score):
    """(a, d) = (|y - s|, 1)."""
    residual, one = mean_residual(y_true, score)
    return np.abs(residual), one


def mean_squared_error(y_true, score):
    """(a, d) = ((y - s)^2, 1)."""
    residual, one = mean_residual(y_true, score)
    return residual**2, one


def brier_score(y_true, score):
    """(a, d) = ((y - s)^2, 1) of a label 0/1 and a probability."""
    return mean_squared_error(y_true, score)


def log_loss(y_true, score):
    """(a, d) = (-log s if y = 1, -log(1 - s) if y = 0; 1), s clipped to [2^-52, 1 - 2^-52]."""
    clipped = np.clip(np.asarray(score, dtype=float), SCORE_FLOOR, 1 - SCORE_FLOOR)
    loss = -np.where(np.asarray(y_true).astype(bool), np.log(clipped), np.log(1 - clipped))
    return loss, np.ones(len(clipped))


ROW_METRICS = {
    "mean_prediction": mean_prediction,
    "mean_residual": mean_residual,
    "mean_absolute_error": mean_absolute_error,
    "mean_squared_error": mean_squared_error,
    "brier_score": brier_score,
    "log_loss": log_loss,
}


# --- correlation ----------------------------------------------------------------------------


def deviations(values):
    """x_i - mean(x)."""
    values = np.asarray(values, dtype=float)
    return without_rounding(values, math.fsum(values) / len(values))


def pearson(x, y):
    """r = mu11 / sqrt(mu20 mu02), mu_jk = mean of (x - mean)^j (y - mean)^k; NaN if constant."""
    x, y = deviations(x), deviations(y)
    r = divide(math.fsum(x * y), math.sqrt(math.fsum(x**2)) * math.sqrt(math.fsum(y**2)))
    return 0.0 if abs(r) <= ROUNDING else r


def spearman(x, y):
    """Pearson's r of the midranks."""
    return pearson(midranks(x), midranks(y))


#: Strata of fewer rows than this, if there are as many of them, are units of the variance.
FEW_RANKS = 20


def spearman_within(x, y, stratum=None):
    """(r, v) of ranks within strata: r = sum T_s / sqrt(sum u^2 sum w^2), T_s = sum over s of u w.

    k(a, b) = 1{a < b} + 1{a = b} / 2; u_i = mean_j k(x_j, x_i) - 1/2 over the rows of the stratum,
    w likewise; psi_i = u_i w_i + mean_j k(x_i, x_j) w_j + mean_j u_j k(y_i, y_j) less its mean in
    the stratum. v = sum psi^2 / (sum u^2 sum w^2); small strata are units if there are many.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    stratum = np.zeros(len(x)) if stratum is None else np.asarray(stratum)
    parts, squares_u, squares_w = [], [], []
    for code in np.unique(stratum):
        inside = stratum == code
        below_x, below_y = _kernel(x[inside]), _kernel(y[inside])
        u, w = below_x.mean(axis=0) - 0.5, below_y.mean(axis=0) - 0.5
        psi = u * w + (below_x @ w + below_y @ u) / len(u)
        squares_u.append(math.fsum(u**2))
        squares_w.append(math.fsum(w**2))
        parts.append((len(u), math.fsum(u * w), math.fsum((psi - psi.mean()) ** 2)))
    scale = math.sqrt(math.fsum(squares_u) * math.fsum(squares_w))
    r = divide(math.fsum(part[1] for part in parts), scale)
    shares = [math.sqrt(a * b) for a, b in zip(squares_u, squares_w, strict=True)]
    small = [n < FEW_RANKS and share > 0 for (n, _, _), share in zip(parts, shares, strict=True)]
    units = sum(small)
    if units < FEW_RANKS:
        return r, divide(math.fsum(part[2] for part in parts), scale**2)
    total = 0.0
    for (_, product, square), share, is_unit in zip(parts, shares, small, strict=True):
        total += units / (units - 1) * (product - r * share) ** 2 if is_unit else square
    return r, total / scale**2


def _kernel(values):
    """k(a, b) of every pair, a by row."""
    return (values[:, None] < values[None, :]) + (values[:, None] == values[None, :]) / 2


def spearman_statistic(x, y, studentize=True, stratum=None):
    """S = r / sqrt(v), or r; 0 where r = 0."""
    r, v = spearman_within(x, y, stratum)
    if abs(r) <= ROUNDING:
        return 0.0
    return statistic((r, 0.0), (v, 0.0), "unpooled" if studentize else "none")


def correlation_variance(x, y):
    """v = mu22 / (mu20 mu02) / n, moments with 1/n: sum psi^2 at r = 0."""
    x, y = deviations(x), deviations(y)
    return divide(math.fsum(x**2 * y**2), math.fsum(x**2) * math.fsum(y**2))


def correlation_statistic(x, y, studentize=True):
    """S = r / sqrt(v), or r; 0 where r = 0."""
    return statistic(
        (pearson(x, y), 0.0),
        (correlation_variance(x, y), 0.0),
        "unpooled" if studentize else "none",
    )


# --- permutation ----------------------------------------------------------------------------


def permutation_result(observed, null, alternative):
    """The dict that every permutation function returns."""
    return {
        "statistic": observed,
        "pvalue": monte_carlo_pvalue(observed, null, alternative),
        "n_undefined": sum(math.isnan(replicate) for replicate in null),
        "null": np.array(null),
    }


def the_only(values, message):
    """The one distinct value, an error with this message if there are more."""
    values = set(values.tolist())
    if len(values) != 1:
        raise ValueError(message)
    return values.pop()


def shuffle_clusters(group, strata, clusters, rng):
    """The group column with its labels shuffled over clusters, within strata: a cluster takes one
    label as a whole. The number of clusters of a group is kept, its number of rows is not."""
    names = sorted(set(clusters.tolist()))
    label_of_cluster, stratum_of_cluster = [], []
    for name in names:
        rows = clusters == name
        label_of_cluster.append(
            the_only(group[rows], f"cluster {name!r} has rows of two groups: use strata instead")
        )
        stratum_of_cluster.append(
            the_only(strata[rows], f"cluster {name!r} has rows in two strata")
        )
    moved = shuffle_within(np.array(label_of_cluster), np.array(stratum_of_cluster), rng)
    shuffled = np.array(group)
    for name, label in zip(names, moved, strict=True):
        shuffled[clusters == name] = label
    return shuffled


def shuffle(group, strata, clusters, rng):
    """The group column shuffled over rows or clusters, within strata."""
    strata = np.zeros(len(group), dtype=int) if strata is None else np.asarray(strata)
    if clusters is None:
        return shuffle_within(group, strata, rng)
    return shuffle_clusters(group, strata, np.asarray(clusters), rng)


def two_labels(group):
    """The two group labels in sorted order."""
    labels = sorted(set(group.tolist()))
    if len(labels) != 2:
        raise ValueError(f"this needs 2 groups, got {len(labels)}")
    return labels


def rows_of(columns, mask):
    """The rows of a group, as a tuple of columns."""
    return tuple(np.asarray(column)[mask] for column in columns)


def auc_estimate(y_true, score):
    """(AUC, DeLong variance)."""
    return auc(y_true, score), delong_variance(y_true, score)


def linearised_auc_estimate(y_true, score, weight=None, cluster=None):
    """(AUC, linearised variance), weighted and by cluster if given."""
    return auc(y_true, score, weight), auc_linearised_variance(y_true, score, weight, cluster)


def ratio_estimate(numerator, denominator=None, weight=None, cluster=None):
    """(theta, v) of a ratio of sums, weighted and by cluster if given."""
    return (
        ratio(numerator, denominator, weight),
        clustered_ratio_variance(numerator, denominator, weight, cluster),
    )


def row_statistic(columns, group, labels, estimate, studentize=True):
    """S = T / sqrt(v_a + v_b), or T; `estimate(*columns of a group)` returns (theta, v).

    An undefined theta makes S undefined, an undefined v too if S needs it.
    """
    estimates = [estimate(*rows_of(columns, group == label)) for label in labels]
    values, variances = zip(*estimates, strict=True)
    if studentize and any(math.isnan(variance) for variance in variances):
        return math.nan
    return statistic(values, variances, "unpooled" if studentize else "none")


def row_permutation_pvalue(
    columns,
    group,
    estimate,
    strata=None,
    clusters=None,
    alternative="two-sided",
    n_resamples=999,
    rng=None,
    studentize=True,
):
    """p = (1 + #{S* at least as extreme as S}) / (1 + B), theta and v recomputed every time.

    `columns` (weights and clusters too, where `estimate` takes them) stay; group labels move, over
    rows or whole clusters, within strata. Returns `statistic`, `pvalue`, `null`, `n_undefined`.
    """
    group = np.asarray(group)
    labels = two_labels(group)
    observed = row_statistic(columns, group, labels, estimate, studentize)
    null = [
        row_statistic(columns, shuffle(group, strata, clusters, rng), labels, estimate, studentize)
        for _ in range(n_resamples)
    ]
    return permutation_result(observed, null, alternative)


def correlation_pvalue(
    x, y, n_resamples=999, rng=None, studentize=True, alternative="two-sided", rank=False
):
    """p of S = r / sqrt(v), or of r: y is permuted over rows. `rank`: both as midranks first."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if rank:
        x, y = midranks(x), midranks(y)
    null = [correlation_statistic(x, rng.permutation(y), studentize) for _ in range(n_resamples)]
    return permutation_result(correlation_statistic(x, y, studentize), null, alternative)


def fairtest_pvalue(x, y, n_resamples=999, rng=None):
    """Negative control. r, with x and y thrown together, shuffled and cut in two again."""
    pooled = np.concatenate([x, y]).astype(float)
    null = []
    for _ in range(n_resamples):
        shuffled = rng.permutation(pooled)
        null.append(pearson(shuffled[: len(x)], shuffled[len(x) :]))
    return permutation_result(pearson(x, y), null, "two-sided")


# --- bootstrap ------------------------------------------------------------------------------


def resample(rows, rng):
    """n rows drawn with replacement from n rows, all columns together."""
    n = len(rows[0])
    drawn = rng.integers(0, n, size=n)
    return tuple(np.asarray(column)[drawn] for column in rows)


def difference(function, rows_a, rows_b):
    """T = f(rows of a) - f(rows of b)."""
    return float(function(*rows_a)) - float(function(*rows_b))


def bootstrap_variance(function, rows_a, rows_b, n_bootstrap, rng):
    """Equation (1): v = sum_i (T*_i - T)^2 / n_b, about T and not about the mean of T*.

    Each group is resampled on its own. One undefined T* makes v undefined.
    """
    observed = difference(function, rows_a, rows_b)
    squares = []
    for _ in range(n_bootstrap):
        replicate = difference(function, resample(rows_a, rng), resample(rows_b, rng))
        squares.append((replicate - observed) ** 2)
    return math.fsum(squares) / n_bootstrap


def callable_pvalue(
    function,
    columns,
    group,
    n_resamples=999,
    n_bootstrap=100,
    rng=None,
    studentize="bootstrap",
    strata=None,
    clusters=None,
    alternative="two-sided",
):
    """p of any f(*columns) -> float of a group.

    "bootstrap": S = T / sqrt(v), v of equation (1) again for every shuffle. "shared": T over the
    standard deviation (n - 1) of the defined T*, which gives the p of "none": T.
    """
    group = np.asarray(group)
    labels = two_labels(group)

    def compute(column):
        rows_a, rows_b = (rows_of(columns, column == label) for label in labels)
        if studentize != "bootstrap":
            return difference(function, rows_a, rows_b)
        values = function(*rows_a), function(*rows_b)
        v = bootstrap_variance(function, rows_a, rows_b, n_bootstrap, rng)
        return math.nan if math.isnan(v) else statistic(values, (v, 0.0), "unpooled")

    observed = compute(group)
    null = [compute(shuffle(group, strata, clusters, rng)) for _ in range(n_resamples)]
    if studentize == "shared":
        deviation = math.sqrt(
            sample_variance([replicate for replicate in null if not math.isnan(replicate)])
        )
        observed, null = observed / deviation, [replicate / deviation for replicate in null]
    return permutation_result(observed, null, alternative)


def quantile(values, level):
    """Linear interpolation at place (n + 1) level of the sorted values, which may be infinite; -inf
    and inf beyond the first and the last."""
    ordered = [-math.inf, *sorted(values), math.inf]
    position = (len(values) + 1) * level
    below = math.floor(position + 1e-9)
    above = min(below + 1, len(ordered) - 1)
    part = max(position - below, 0.0)
    if part < 1e-9 or ordered[below] == ordered[above]:
        return ordered[below]
    return (1 - part) * ordered[below] + part * ordered[above]


def two_quantiles(values, level):
    """(q_{alpha/2}, q_{1-alpha/2}) of the defined values, alpha = 1 - level."""
    defined = [float(value) for value in values if not math.isnan(value)]
    return quantile(defined, (1 - level) / 2), quantile(defined, (1 + level) / 2)


def bootstrap_replicates(value_function, variance_function, rows_a, rows_b, n_bootstrap, rng):
    """(T*, v*) of every replicate, v* = v*_a + v*_b; each group is resampled on its own."""
    replicates, variances = [], []
    for _ in range(n_bootstrap):
        drawn_a, drawn_b = resample(rows_a, rng), resample(rows_b, rng)
        replicates.append(difference(value_function, drawn_a, drawn_b))
        variances.append(variance_function(*drawn_a) + variance_function(*drawn_b))
    return np.array(replicates), np.array(variances)


def studentized_interval(observed, variance, replicates, variances, level=0.95):
    """(T - q_{1-alpha/2}(t*) sqrt(v), T - q_{alpha/2}(t*) sqrt(v)), t* = (T* - T) / sqrt(v*).

    v* = 0 gives t* = 0 if T* = T and +-inf otherwise; undefined t* are left out.
    """
    studentized = [
        math.nan if math.isnan(v) else statistic((replicate, observed), (v, 0.0), "unpooled")
        for replicate, v in zip(replicates, variances, strict=True)
    ]
    lower, upper = two_quantiles(studentized, level)
    return observed - upper * math.sqrt(variance), observed - lower * math.sqrt(variance)


def basic_interval(observed, replicates, level=0.95):
    """(2 T - q_{1-alpha/2}(T*), 2 T - q_{alpha/2}(T*)); undefined T* are left out."""
    lower, upper = two_quantiles(replicates, level)
    return 2 * observed - upper, 2 * observed - lower


def percentile_interval(replicates, level=0.95):
    """(q_{alpha/2}(T*), q_{1-alpha/2}(T*)); undefined T* are left out."""
    return two_quantiles(replicates, level)


def studentized_bootstrap_interval(
    value_function, variance_function, rows_a, rows_b, n_bootstrap=999, level=0.95, rng=None
):
    """(lower, upper) of theta_a - theta_b by bootstrap-t, see `studentized_interval`."""
    observed = difference(value_function, rows_a, rows_b)
    variance = variance_function(*rows_a) + variance_function(*rows_b)
    replicates, variances = bootstrap_replicates(
        value_function, variance_function, rows_a, rows_b, n_bootstrap, rng
    )
    return studentized_interval(observed, variance, replicates, variances, level)


def basic_bootstrap_interval(
    value_function, variance_function, rows_a, rows_b, n_bootstrap=999, level=0.95, rng=None
):
    """(lower, upper) of theta_a - theta_b, see `basic_interval`; variances are not used."""
    observed = difference(value_function, rows_a, rows_b)
    replicates, _ = bootstrap_replicates(
        value_function, variance_function, rows_a, rows_b, n_bootstrap, rng
    )
    return basic_interval(observed, replicates, level)


def percentile_bootstrap_interval(
    value_function, variance_function, rows_a, rows_b, n_bootstrap=999, level=0.95, rng=None
):
    """(lower, upper) of theta_a - theta_b, see `percentile_interval`; variances are not used."""
    replicates, _ = bootstrap_replicates(
        value_function, variance_function, rows_a, rows_b, n_bootstrap, rng
    )
    return percentile_interval(replicates, level)


# --- power ----------------------------------------------------------------------------------


def minimum_detectable_gap(
    standard_deviation_a, n_a, standard_deviation_b, n_b, level=0.05, power=0.8
):
    """(z_{1-level/2} + z_power) sqrt(sd_a^2 / n_a + sd_b^2 / n_b): two-sided, far tail left out.

    `level` is the size of the test; sd_g^2 = n_g v_g.
    """
    z = stats.norm.ppf(1 - level / 2) + stats.norm.ppf(power)
    return float(z * math.sqrt(standard_deviation_a**2 / n_a + standard_deviation_b**2 / n_b))


def sample_size(
    gap, standard_deviation_a, standard_deviation_b, size_ratio=1.0, level=0.05, power=0.8
):
    """(n_a, n_b) whose minimum detectable gap is `gap`, n_b = size_ratio n_a, not rounded.

    n_a = (z_{1-level/2} + z_power)^2 (sd_a^2 + sd_b^2 / size_ratio) / gap^2.
    """
    z = stats.norm.ppf(1 - level / 2) + stats.norm.ppf(power)
    n_a = (z / gap) ** 2 * (standard_deviation_a**2 + standard_deviation_b**2 / size_ratio)
    return float(n_a), float(size_ratio * n_a)
