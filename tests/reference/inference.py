"""Slow, plain reference for inference built on the metrics: joint criteria, anytime-valid p,
equivalence, intervals of ratios and of the largest gap, weighted counts, correlations, power.

Written from the statistics page, not from the library. Every function does the obvious thing.

Conventions: a table is ``(tp, fp, fn, tn)``; theta a value, v its variance; T = theta_a - theta_b;
`level` of an interval is its coverage; undefined is NaN. In a studentized quantity a zero
difference is 0 whatever the variance and a non-zero one over zero variance is +-inf.
"""

import math

import numpy as np
from scipy import stats

from . import proportions
from .permutation import (
    CELLS,
    PROPORTIONS,
    ROUNDING,
    divide,
    influence_of_cells,
    is_extreme,
    law_of_group_table,
    permutation_test,
    proportion_counts,
    statistic,
    table_of_rows,
    value,
    variance,
    wald_pooled,
)
from .rows import (
    bessel,
    deviations,
    ones_unless,
    pearson,
    quantile,
    two_labels,
    variance_of_influence,
    without_rounding,
)

SINGULAR = 1e-10
"""A correlation matrix with an eigenvalue below this is singular in that direction."""

OUTSIDE = 1e-8
"""A difference of fewer standard errors than this in a singular direction is rounding of 0."""


# --- joint criteria -------------------------------------------------------------------------


def joint_values(table, components):
    """theta = (h_1(c), ..., h_m(c)) of one table."""
    return np.array([value(name, *table) for name in components])


def joint_covariance(table, components):
    """V_ij = sum_k (dh_i/dc_k) (dh_j/dc_k) c_k; NaN where theta_i or theta_j is undefined."""
    gradients = [influence_of_cells(name, *table) for name in components]
    covariance = np.zeros((len(components), len(components)))
    for i, j in np.ndindex(covariance.shape):
        for k, count in enumerate(table):
            if count > 0:
                covariance[i, j] += gradients[i][k] * gradients[j][k] * count
    for i, name in enumerate(components):
        if variance(name, *table) == 0:
            covariance[i, :] = covariance[:, i] = 0.0
    return covariance


def correlation_of(covariance):
    """(R, s): s_i = sqrt(V_ii), R_ij = V_ij / (s_i s_j)."""
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale), scale


def is_regular(covariance):
    """Return whether all variances are positive and the correlation matrix has full rank."""
    if np.any(np.diag(covariance) <= 0):
        return False
    return np.linalg.eigvalsh(correlation_of(covariance)[0])[0] > SINGULAR


def quadratic_form(difference, covariance):
    """d' V^{-1} d; for a singular V the limit of d' (V + e I)^{-1} d, e -> 0:

    d' V^+ d where d is in the range of V (in particular 0 for d_i = V_ii = 0), inf elsewhere.
    """
    difference, covariance = np.asarray(difference), np.asarray(covariance)
    certain = np.diag(covariance) == 0
    if np.any(difference[certain] != 0):
        return math.inf
    kept = np.flatnonzero(~certain)
    if len(kept) == 0:
        return 0.0
    correlation, scale = correlation_of(covariance[np.ix_(kept, kept)])
    eigenvalues, directions = np.linalg.eigh(correlation)
    coordinates = directions.T @ (difference[kept] / scale)
    singular = eigenvalues <= SINGULAR
    if np.any(np.abs(coordinates[singular]) > OUTSIDE * (1 + np.max(np.abs(coordinates)))):
        return math.inf
    return float(np.sum(coordinates[~singular] ** 2 / eigenvalues[~singular]))


def joint_contrasts(values, covariances):
    """(d, C): d_g = theta_g - theta_1 for g = 2..k stacked, C its covariance, with the blocks
    C_gh = V_1 + 1{g = h} V_g."""
    first, others = values[0], values[1:]
    difference = []
    for other in others:
        gap = first - other
        scale = np.maximum(np.abs(first), np.abs(other))
        difference.append(np.where(np.abs(gap) <= ROUNDING * scale, 0.0, gap))
    blocks = [
        [covariances[0] + (covariances[g] if g == h else 0.0) for h in range(1, len(values))]
        for g in range(1, len(values))
    ]
    return np.concatenate(difference), np.block(blocks)


def joint_wald(values, covariances):
    """Q = sum_g (theta_g - m)' V_g^{-1} (theta_g - m).

    The center is m = (sum V_g^{-1})^{-1} sum V_g^{-1} theta_g.
    Two groups: Q = d' (V_a + V_b)^{-1} d, the same number. A singular V_g is taken as a limit: Q is
    then d' C^{-1} d of the contrasts, the same number where both exist.
    """
    values = [np.asarray(entry, dtype=float) for entry in values]
    if any(np.any(np.isnan(entry)) for entry in values):
        return math.nan
    if len(values) == 2 or not all(is_regular(covariance) for covariance in covariances):
        return quadratic_form(*joint_contrasts(values, covariances))
    if not np.any(joint_contrasts(values, covariances)[0]):
        return 0.0
    precisions = [np.linalg.inv(covariance) for covariance in covariances]
    weighted = sum(p @ theta for p, theta in zip(precisions, values, strict=True))
    center = np.linalg.solve(sum(precisions), weighted)
    return float(
        sum(
            (theta - center) @ p @ (theta - center)
            for p, theta in zip(precisions, values, strict=True)
        )
    )


def check_disjoint(components):
    """ValueError unless all components are proportions and no cell is a trial of two of them."""
    for name in components:
        if name not in PROPORTIONS:
            raise ValueError(f"studentize='pooled' is for proportions, {name!r} is none")
    for cell in CELLS:
        names = [name for name in components if cell in PROPORTIONS[name][1]]
        if len(names) > 1:
            raise ValueError(f"studentize='pooled': {names} share the rows {cell!r}")


def joint_statistic(tables, components, studentize="unpooled"):
    """Q of several count metrics together, one table (tp, fp, fn, tn) per group.

    "unpooled": `joint_wald`. "pooled" (proportions with disjoint denominators): the sum over
    components of Pearson's chi-square, for two groups sum_i T_i^2 / V_i with
    V_i = p_i (1 - p_i) (1 / d_ia + 1 / d_ib).
    """
    if studentize == "unpooled":
        return joint_wald(
            [joint_values(table, components) for table in tables],
            [joint_covariance(table, components) for table in tables],
        )
    if studentize != "pooled":
        raise ValueError(f"studentize={studentize!r}: use 'unpooled' or 'pooled'")
    check_disjoint(components)
    total = 0.0
    for name in components:
        counts = [proportion_counts(name, *table) for table in tables]
        total += wald_pooled([count[0] for count in counts], [count[1] for count in counts])
    return total


def joint_permutation_pvalue(
    y_true,
    y_pred,
    group,
    components,
    strata=None,
    studentize="unpooled",
    n_resamples=999,
    rng=None,
):
    """p = (1 + #{Q* >= Q}) / (1 + B), group labels shuffled within strata.

    Returns a dict with `statistic`, `pvalue`, `n_undefined` and `null`.
    """

    def compute(tables):
        return joint_statistic(tables, components, studentize)

    return permutation_test(y_true, y_pred, group, compute, strata, "greater", n_resamples, rng)


def joint_exact_law(y_true, y_pred, group, components, strata=None, studentize="unpooled"):
    """[(Q, probability)] over all permutations of two group labels within strata; the p-value is
    `exact_pvalue(Q, law, "greater")`."""
    y_true, y_pred, group = (np.asarray(column) for column in (y_true, y_pred, group))
    strata = np.zeros(len(group), dtype=int) if strata is None else np.asarray(strata)
    first, _ = two_labels(group)
    stratum_counts, draws = [], []
    for stratum in sorted(set(strata.tolist())):
        rows = strata == stratum
        stratum_counts.append(table_of_rows(y_true[rows], y_pred[rows]))
        draws.append(int(np.sum(group[rows] == first)))
    total = tuple(sum(column) for column in zip(*stratum_counts, strict=True))
    law = []
    for table_a, probability in law_of_group_table(stratum_counts, draws).items():
        table_b = tuple(whole - part for whole, part in zip(total, table_a, strict=True))
        law.append((joint_statistic([table_a, table_b], components, studentize), probability))
    return law


# --- anytime-valid p ------------------------------------------------------------------------


def binomial_mixture_wealth(extreme, t, c):
    """W_t(c) = (1 - BinCDF(L; t + 1, c)) / c after t replicates, L = `extreme` of them extreme.

    The likelihood ratio of Bernoulli(u) flags, u ~ U(0, c), to exchangeable ranks, u ~ U(0, 1).
    """
    return float(stats.binom.sf(extreme, t + 1, c) / c)


def anytime_pvalue(extreme_flags, boundaries, share=0.9):
    """p = inf {alpha: W_s(share alpha) >= 1 / alpha at a boundary s}, at most 1.

    1 - BinCDF(L; s + 1, c) = BetaCDF(c; L + 1, s + 1 - L), so W_s(share alpha) >= 1 / alpha says
    BetaCDF(share alpha) >= share: p = min_s BetaQuantile(share; L_s + 1, s + 1 - L_s) / share.
    Boundaries beyond the last flag are not looked at.
    """
    extreme_flags = np.asarray(extreme_flags, dtype=bool)
    p = 1.0
    for s in boundaries:
        if s <= len(extreme_flags):
            extreme = int(np.sum(extreme_flags[:s]))
            p = min(p, float(stats.beta.ppf(share, extreme + 1, s + 1 - extreme)) / share)
    return p


# --- equivalence ----------------------------------------------------------------------------


def restricted_proportions(x_a, n_a, x_b, n_b, margin):
    """(p_a, p_b) of maximum likelihood subject to p_a - p_b = margin.

    Farrington and Manning (1990), appendix: p_a is a root of a p^3 + b p^2 + c p + d. With
    r = n_b / n_a, h_g = x_g / n_g, m = margin: a = 1 + r, b = -(1 + r + h_a + r h_b + m (r + 2)),
    c = m^2 + m (2 h_a + r + 1) + h_a + r h_b, d = -h_a m (1 + m). At m = 0: both pooled.
    """
    if margin == 0:
        return ((x_a + x_b) / (n_a + n_b),) * 2
    h_a, h_b, r, m = x_a / n_a, x_b / n_b, n_b / n_a, margin
    a = 1 + r
    b = -(1 + r + h_a + r * h_b + m * (r + 2))
    c = m**2 + m * (2 * h_a + r + 1) + h_a + r * h_b
    d = -h_a * m * (1 + m)
    v = b**3 / (3 * a) ** 3 - b * c / (6 * a**2) + d / (2 * a)
    u = math.copysign(math.sqrt(max(0.0, b**2 / (3 * a) ** 2 - c / (3 * a))), v)
    cosine = 0.0 if u == 0 else min(1.0, max(-1.0, v / u**3))
    w = (math.pi + math.acos(cosine)) / 3
    p_a = 2 * u * math.cos(w) - b / (3 * a)
    p_a = min(max(p_a, 0.0, m), 1.0, 1.0 + m)
    return p_a, min(max(p_a - m, 0.0), 1.0)


def farrington_manning(x_a, n_a, x_b, n_b, margin):
    """(p_a, p_b, z): restricted proportions under H0: p_a - p_b = margin, and
    z = (x_a/n_a - x_b/n_b - margin) / sqrt(p_a (1 - p_a) / n_a + p_b (1 - p_b) / n_b).

    All NaN without trials.
    """
    if not -1 < margin < 1:
        raise ValueError(f"margin={margin!r}: use a number between -1 and 1")
    if n_a == 0 or n_b == 0:
        return math.nan, math.nan, math.nan
    p_a, p_b = restricted_proportions(x_a, n_a, x_b, n_b, margin)
    v = p_a * (1 - p_a) / n_a + p_b * (1 - p_b) / n_b
    z = statistic((x_a / n_a - x_b / n_b, margin), (v, 0.0), "unpooled")
    return p_a, p_b, z


def tost_proportions(x_a, n_a, x_b, n_b, margin):
    """p = max(P(-margin), P'(margin)), H0: |p_a - p_b| >= margin."""
    if not 0 < margin < 1:
        raise ValueError(f"margin={margin!r}: use a number between 0 and 1")
    if n_a == 0 or n_b == 0:
        return math.nan
    sides = []
    for end in (-margin, margin):
        p_a, p_b, _ = farrington_manning(x_a, n_a, x_b, n_b, end)
        (v_a, m_a), (v_b, m_b) = proportions.moments(n_a, p_a), proportions.moments(n_b, p_b)
        distance = x_a / n_a - x_b / n_b - end
        sides.append(proportions.both_sides(distance, v_a + v_b, m_a - m_b))
    return max(sides[0][0], sides[1][1])


def tost_studentized(gap, standard_error, t_star, margin):
    """p = max(p_low, p_high) with S_low = (gap + margin) / se, S_high = (gap - margin) / se,
    p_low = (1 + #{t* >= S_low}) / (1 + B), p_high = (1 + #{t* <= S_high}) / (1 + B).

    t* = (T* - T) / se*. Undefined t* are extreme in both; ties as in `is_extreme`.
    """
    if math.isnan(gap) or math.isnan(standard_error):
        return math.nan
    s_low = statistic((gap, -margin), (standard_error**2, 0.0), "unpooled")
    s_high = statistic((gap, margin), (standard_error**2, 0.0), "unpooled")
    p_low = (1 + sum(is_extreme(entry, s_low, "greater") for entry in t_star)) / (1 + len(t_star))
    p_high = (1 + sum(is_extreme(entry, s_high, "less") for entry in t_star)) / (1 + len(t_star))
    return max(p_low, p_high)


# --- intervals ------------------------------------------------------------------------------


def half_width(critical, standard_error):
    """c se; infinite where c is, even over se = 0."""
    return critical if math.isinf(critical) else critical * standard_error


def log_ratio(value_a, var_a, value_b, var_b):
    """(log(theta_a / theta_b), v_a / theta_a^2 + v_b / theta_b^2); NaN unless both are > 0."""
    if not (value_a > 0 and value_b > 0):
        return math.nan, math.nan
    return math.log(value_a / value_b), var_a / value_a**2 + var_b / value_b**2


def ratio_interval_delta(value_a, var_a, value_b, var_b, level=0.95):
    """exp(log(theta_a / theta_b) -+ z sqrt(v_a / theta_a^2 + v_b / theta_b^2))."""
    center, v = log_ratio(value_a, var_a, value_b, var_b)
    half = stats.norm.ppf((1 + level) / 2) * math.sqrt(v)
    return float(np.exp(center - half)), float(np.exp(center + half))


def ratio_interval_studentized(
    value_a,
    var_a,
    value_b,
    var_b,
    replicate_values_a,
    replicate_variances_a,
    replicate_values_b,
    replicate_variances_b,
    level=0.95,
):
    """(exp(l - q_{1-alpha/2} se), exp(l - q_{alpha/2} se)), l = log(theta_a / theta_b),
    se^2 = v_a / theta_a^2 + v_b / theta_b^2, q of t* = (l* - l) / se*.

    An undefined t* (a replicate that is not positive, too) is +inf in q_{1-alpha/2} and -inf in
    q_{alpha/2}.
    """
    center, v = log_ratio(value_a, var_a, value_b, var_b)
    if math.isnan(v):
        return math.nan, math.nan
    studentized = []
    for row in zip(
        replicate_values_a,
        replicate_variances_a,
        replicate_values_b,
        replicate_variances_b,
        strict=True,
    ):
        log_star, v_star = log_ratio(*row)
        studentized.append(statistic((log_star, center), (v_star, 0.0), "unpooled"))
        if math.isnan(v_star):
            studentized[-1] = math.nan
    for_lower = [-math.inf if math.isnan(entry) else entry for entry in studentized]
    for_upper = [math.inf if math.isnan(entry) else entry for entry in studentized]
    lower = quantile(for_lower, (1 - level) / 2)
    upper = quantile(for_upper, (1 + level) / 2)
    return (
        float(np.exp(center - half_width(upper, math.sqrt(v)))),
        float(np.exp(center - half_width(lower, math.sqrt(v)))),
    )


def simultaneous_intervals(
    values, variances, replicate_values, replicate_variances, pairs, level=0.95
):
    """[(T -+ c sqrt(v_a + v_b))] for `pairs` [(a, b)] of group indices, c = q_level(M*),
    M* = max over pairs |t*|, t* = (T* - T) / sqrt(v*_a + v*_b), T = theta_a - theta_b.

    `replicate_values` and `replicate_variances` are B rows of one number per group. An undefined
    t* makes M* = +inf; a pair whose T is undefined is NaN and takes no part in M*.
    """

    def gap_of(theta, v, pair):
        a, b = pair
        return float(theta[a] - theta[b]), float(v[a] + v[b])

    observed = [gap_of(values, variances, pair) for pair in pairs]
    defined = [i for i, (gap, v) in enumerate(observed) if not math.isnan(gap + v)]
    maxima = []
    for theta_star, v_star in zip(replicate_values, replicate_variances, strict=True):
        largest = 0.0
        for i in defined:
            gap, v = gap_of(theta_star, v_star, pairs[i])
            t_star = math.nan
            if not math.isnan(v):
                t_star = statistic((gap, observed[i][0]), (v, 0.0), "unpooled")
            largest = max(largest, math.inf if math.isnan(t_star) else abs(t_star))
        maxima.append(largest)
    critical = quantile(maxima, level)
    intervals = []
    for i, (gap, v) in enumerate(observed):
        if i in defined:
            half = half_width(critical, math.sqrt(v))
            intervals.append((gap - half, gap + half))
        else:
            intervals.append((math.nan, math.nan))
    return intervals


def largest_gap_interval(pair_intervals):
    """(low, high) of max theta - min theta from simultaneous intervals (l, u) of all pairs:
    low = max(0, max over pairs of max(l, -u)), high = max over pairs of max(u, -l).

    NaN if an interval is.
    """
    if any(math.isnan(end) for interval in pair_intervals for end in interval):
        return math.nan, math.nan
    low = max(max(lower, -upper) for lower, upper in pair_intervals)
    high = max(max(upper, -lower) for lower, upper in pair_intervals)
    return max(0.0, low), high


# --- weighted and clustered counts ----------------------------------------------------------


FRACTIONS = {*PROPORTIONS, "f1"}
"""Metrics h(c) that are one sum of counts over another."""

IN_DENOMINATOR_OF_F1 = ("tp", "fp", "fn")


def count_metric_weighted(name, y_true, y_pred, weight=None, cluster=None, within=False):
    """(theta, v): theta = h(c), c_k = sum of w_i over the rows of cell k;
    v = sum over clusters (or rows) of (sum w_i psi_i)^2, psi_i = dh/dc_{k(i)} at c.

    A fraction of counts of rows is a ratio of sums: v has n/(n-1), n the rows of its denominator
    that have weight. `within`: strata of the user's, where only proportions are ratios of sums.
    """
    y_true, y_pred = np.asarray(y_true).astype(bool), np.asarray(y_pred).astype(bool)
    weight = ones_unless(weight, len(y_true))
    cells = [y_true & y_pred, ~y_true & y_pred, y_true & ~y_pred, ~y_true & ~y_pred]
    table = tuple(math.fsum(weight[cell]) for cell in cells)
    theta = value(name, *table)
    if math.isnan(theta):
        return math.nan, math.nan
    influence = np.zeros(len(y_true))
    for cell, psi in zip(cells, influence_of_cells(name, *table), strict=True):
        influence[cell] = 0.0 if psi is None else psi
    v = variance_of_influence(influence, weight, cluster)
    if cluster is None and name in (PROPORTIONS if within else FRACTIONS):
        inside = PROPORTIONS[name][1] if name in PROPORTIONS else IN_DENOMINATOR_OF_F1
        counted = [cell for cell, label in zip(cells, CELLS, strict=True) if label in inside]
        v *= bessel(np.any(counted, axis=0) & (weight != 0))
    # As in `variance`: below this it is rounding of zero.
    return theta, 0.0 if v < 1e-20 * math.fsum(weight**2) / math.fsum(weight) ** 2 else v


# --- correlation ----------------------------------------------------------------------------


def correlation_influence_variance(x, y):
    """v = sum psi_i^2 / n^2, psi = z_x z_y - r (z_x^2 + z_y^2) / 2, z by moments with 1/n.

    NaN if a column is constant. For ranks this leaves out that the ranks themselves vary.
    """
    r = pearson(x, y)
    if math.isnan(r):
        return math.nan
    x, y = deviations(x), deviations(y)
    n = len(x)
    z_x = x / math.sqrt(math.fsum(x**2) / n)
    z_y = y / math.sqrt(math.fsum(y**2) / n)
    psi = without_rounding(z_x * z_y, r * (z_x**2 + z_y**2) / 2)
    return math.fsum(psi**2) / n**2


def pearson_statistic(x, y, rho):
    """S(rho) = sum psi / sqrt(sum psi^2), psi = z_x z_y - rho (z_x^2 + z_y^2) / 2."""
    z_x, z_y = ((column - np.mean(column)) / np.std(column) for column in (x, y))
    psi = z_x * z_y - rho * (z_x**2 + z_y**2) / 2
    return float(psi.sum() / math.sqrt((psi**2).sum()))


def pearson_interval(x, y, null, level=0.95):
    """The rho on a grid with |S(rho)| up to the k-th largest |S*|, k = (1 - level) (B + 1)."""
    k = math.floor((1 - level) * (len(null) + 1) + 1e-9)
    critical = np.sort(np.abs(null))[-k] if k else math.inf
    grid = np.linspace(-1, 1, 20_001)
    kept = [rho for rho in grid if abs(pearson_statistic(x, y, rho)) <= critical]
    return min(kept), max(kept)


def fisher_interval(r, v, level=0.95):
    """tanh(atanh r -+ z sqrt(v) / (1 - r^2)); (r, r) at r = +-1."""
    if math.isnan(r) or math.isnan(v):
        return math.nan, math.nan
    if abs(r) >= 1 - ROUNDING:
        return float(r), float(r)
    half = stats.norm.ppf((1 + level) / 2) * divide(math.sqrt(v), 1 - r**2)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


# --- power ----------------------------------------------------------------------------------


def power_of_gap(gap, standard_deviation_a, n_a, standard_deviation_b, n_b, level=0.05):
    """Phi(gap / se - z) + Phi(-gap / se - z), z = z_{1-level/2}, both tails, `level` the size;
    se = sqrt(sd_a^2 / n_a + sd_b^2 / n_b), sd_g^2 = n_g v_g."""
    se = math.sqrt(standard_deviation_a**2 / n_a + standard_deviation_b**2 / n_b)
    z = stats.norm.ppf(1 - level / 2)
    return float(stats.norm.cdf(gap / se - z) + stats.norm.cdf(-gap / se - z))
