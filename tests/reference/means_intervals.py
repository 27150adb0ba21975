"""Slow, plain reference for means and ratios of sums whose range is not known: after the test.

Intervals by inversion (by shifting, and from stored sums), the guard, CR2 for clusters. Written
from the statistics page, section 1; conventions as in `means`.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from .means import (
    Statistic,
    counted,
    max_pvalues,
    of_group,
    statistic_of,
    stratum_weights,
    unbiased,
    units,
)
from .permutation import divide
from .rows import two_labels, without_rounding

STEP = 0.2
"""Step of the search for an end, in standard errors."""

# --- inversion -------------------------------------------------------------------------------


def identity_probability(a, d, group, stratum=None):
    """The chance that a shuffle gives every counted unit its own group: 1/C(n, n_1) of all units.

    C(m, m_1)/C(n, n_1) where only n - m units are counted; the product over strata.
    """
    a, d = units(a, d)
    group, still = np.asarray(group), ~counted(a, d)
    first = group == two_labels(group)[0]
    stratum = np.zeros(len(a), dtype=int) if stratum is None else np.asarray(stratum)
    chance = 1.0
    for code in set(stratum.tolist()):
        own = stratum == code
        chance *= math.comb(int(np.sum(own & still)), int(np.sum(own & still & first))) / math.comb(
            int(np.sum(own)), int(np.sum(own & first))
        )
    return chance


def outermost(pvalue, start, step, alpha):
    """The farthest delta from `start`, in the direction of `step`, with p(delta) > alpha/2.

    Steps outwards until p has stayed at alpha/2 or below for as far again and 20 steps, and
    bisects between the last step above and the next.
    """
    last, k = 0, 0
    while k < 2 * last + 20:
        k += 1
        if pvalue(start + k * step) > alpha / 2:
            last = k
        if k > 100_000:
            return math.copysign(math.inf, step)
    inside, outside = start + last * step, start + (last + 1) * step
    for _ in range(60):
        middle = (inside + outside) / 2
        if pvalue(middle) > alpha / 2:
            inside = middle
        else:
            outside = middle
    return (inside + outside) / 2


def invert(pvalues_at, observed, chance, n_resamples, alpha):
    """(low, high) = the outermost crossings of p_greater and p_less through alpha/2.

    Both infinite where the test cannot reach alpha/2: 1/C(n, n_1) or 1/(1 + B) above it.
    """
    if math.isnan(observed.variance):
        return math.nan, math.nan
    if max(chance, 1 / (1 + n_resamples)) > alpha / 2:
        return -math.inf, math.inf
    step = STEP * math.sqrt(observed.variance)
    if step == 0:
        step = STEP * max(observed.size, 1.0)
    return (
        outermost(lambda entry: pvalues_at(entry).greater, observed.difference, -step, alpha),
        outermost(lambda entry: pvalues_at(entry).less, observed.difference, step, alpha),
    )


def shifted(a, d, group, delta):
    """a - delta d in the first group: the hypothesis "the gap is delta" becomes "there is none"."""
    a, d = units(a, d)
    group = np.asarray(group)
    return np.where(group == two_labels(group)[0], a - delta * d, a)


def pvalues_at(a, d, group, shuffles, delta, stratum=None, *, clusters=False):
    """The test of "the gap is delta" with these shuffles: all rows are shifted and read again."""
    moved = shifted(a, d, group, delta)

    def compute(column):
        found = statistic_of(moved, d, column, stratum, clusters=clusters)
        return found.studentized, found.hall

    return max_pvalues(compute(group), [compute(column) for column in shuffles])


def interval_by_shifting(a, d, group, shuffles, stratum=None, *, clusters=False, alpha=0.05):
    """{delta: p(delta) > alpha/2 on both sides}, by brute force."""
    return invert(
        lambda delta: pvalues_at(a, d, group, shuffles, delta, stratum, clusters=clusters),
        statistic_of(a, d, group, stratum, clusters=clusters),
        identity_probability(a, d, group, stratum),
        len(shuffles),
        alpha,
    )


# --- inversion from stored sums ----------------------------------------------------------------


@dataclass(frozen=True)
class Sums:
    """Sums over units: a^i d^j over S, and (with `of_shifted`) over the shifted units in S.

    S are the units in one group of a replicate, A the first group of the data. Over S: n, a, d,
    a^2, ad, d^2, a^3, a^2 d, a d^2, d^3. Over S and A: d, ad, d^2, a^2 d, a d^2, d^3.
    """

    n: int
    of_all: dict
    of_shifted: dict


OF_ALL = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3))
OF_SHIFTED = ((0, 1), (1, 1), (0, 2), (2, 1), (1, 2), (0, 3))


def stored_sums(a, d, drawn, first):
    """`Sums` of the units in `drawn`, those in `first` being the shifted ones."""
    both = drawn & first
    return Sums(
        int(np.sum(counted(a, d) & drawn)),
        {(i, j): math.fsum((a**i * d**j)[drawn]) for i, j in OF_ALL},
        {(i, j): math.fsum((a**i * d**j)[both]) for i, j in OF_SHIFTED},
    )


@dataclass(frozen=True)
class Polynomials:
    """theta, sum u^2 and sum u^3 of one group, in delta.

    theta(delta) = t_0 - t_1 delta, sum u^2 = q_0 - 2 q_1 delta + q_2 delta^2,
    sum u^3 = w_0 - 3 w_1 delta + 3 w_2 delta^2 - w_3 delta^3.
    """

    theta: np.ndarray
    squares: np.ndarray
    cubes: np.ndarray


def polynomials(sums):
    """From sums alone: u_i(delta) = (x_i - delta f_i)/D, x = a - theta d, f = d (1{i in A} - rho).

    rho = sum_{S and A} d / D is by how much theta falls with delta. With 1 = 1{i in A}:
    sum x f = sum_A x d - rho sum x d, sum x^2 f alike; f^2 = d^2 (rho^2 + (1 - 2 rho) 1) and
    f^3 = d^3 (-rho^3 + (1 - 3 rho + 3 rho^2) 1).
    """
    over, part, total = sums.of_all, sums.of_shifted, sums.of_all[0, 1]
    theta, rho = over[1, 0] / total, part[0, 1] / total
    xd, xxd, xdd = sums_with_deviations(over, theta)
    xd_part, xxd_part, xdd_part = sums_with_deviations(part, theta)
    squares = [
        over[2, 0] - 2 * theta * over[1, 1] + theta**2 * over[0, 2],
        xd_part - rho * xd,
        (1 - 2 * rho) * part[0, 2] + rho**2 * over[0, 2],
    ]
    cubes = [
        over[3, 0] - 3 * theta * over[2, 1] + 3 * theta**2 * over[1, 2] - theta**3 * over[0, 3],
        xxd_part - rho * xxd,
        (1 - 2 * rho) * xdd_part + rho**2 * xdd,
        (1 - 3 * rho + 3 * rho**2) * part[0, 3] - rho**3 * over[0, 3],
    ]
    return Polynomials(
        np.array([theta, rho]), np.array(squares) / total**2, np.array(cubes) / total**3
    )


def sums_with_deviations(sums, theta):
    """(sum x d, sum x^2 d, sum x d^2) of x = a - theta d."""
    return (
        sums[1, 1] - theta * sums[0, 2],
        sums[2, 1] - 2 * theta * sums[1, 2] + theta**2 * sums[0, 3],
        sums[1, 2] - theta * sums[0, 3],
    )


@dataclass(frozen=True)
class Coefficients:
    """Delta = c_0 - c_1 delta, v = v_0 - 2 v_1 delta + v_2 delta^2,

    w = w_0 - 3 w_1 delta + 3 w_2 delta^2 - w_3 delta^3.
    """

    difference: np.ndarray
    variance: np.ndarray
    third: np.ndarray
    size: float

    def at(self, delta):
        """The statistic of data whose first group is shifted by delta."""
        v = self.variance * np.array([1, -2 * delta, delta**2])
        w = self.third * np.array([1, -3 * delta, 3 * delta**2, -(delta**3)])
        variance = math.fsum(v)
        return Statistic(
            difference=float(without_rounding(self.difference[0], self.difference[1] * delta)),
            variance=0.0 if variance <= 1e-12 * math.fsum(np.abs(v)) else variance,
            third=math.fsum(w),
            size=self.size + abs(delta),
        )


NOTHING = Coefficients(*(np.full(n, math.nan) for n in (2, 3, 4)), math.nan)


def pairs_of_sums(a, d, drawn, first, stratum):
    """`Sums` of S and of all the others, stratum by stratum, where both have D != 0."""
    pairs = []
    for code in sorted(set(stratum.tolist())):
        own = stratum == code
        pair = stored_sums(a, d, drawn & own, first), stored_sums(a, d, ~drawn & own, first)
        if all(sums.of_all[0, 1] != 0 for sums in pair):
            pairs.append(pair)
    return pairs


def stored_coefficients(a, d, drawn, first, stratum=None, *, clusters=False):
    """The coefficients of a replicate that puts `drawn` into group 1, from sums alone.

    `first` is group 1 of the data. A stratum in which a group has one unit adds r = r_0 - r_1
    delta to v and w as in `stratified`.
    """
    a, d = units(a, d)
    within = stratum is not None
    pairs = pairs_of_sums(
        a, d, drawn, first, np.asarray(stratum) if within else np.zeros(len(a), dtype=int)
    )
    if not pairs:
        return NOTHING
    share = stratum_weights([tuple(sums.of_all[0, 1] for sums in pair) for pair in pairs])
    found = [tuple(polynomials(sums) for sums in pair) for pair in pairs]
    gaps = [value.theta - two.theta for value, two in found]
    difference = sum(c * gap for c, gap in zip(share, gaps, strict=True))
    variance, third, single = np.zeros(3), np.zeros(4), []
    for c, gap, pair, sums in zip(share, gaps, found, pairs, strict=True):
        if within and any(part.n == 1 for part in sums):
            single.append(c * (gap - difference))
            continue
        for sign, part, own in zip((1, -1), pair, sums, strict=True):
            factor = unbiased(own.n) if within or not clusters else 1.0
            variance += c**2 * factor * part.squares
            third += sign * c**3 * (factor**1.5 if within else 1.0) * part.cubes
    if single:
        variance += unbiased(len(single)) * sum(np.array([r**2, r * t, t**2]) for r, t in single)
        third += sum(np.array([r**3, r**2 * t, r * t**2, t**3]) for r, t in single)
    size = math.fsum(
        c * (abs(value.theta[0]) + abs(two.theta[0]))
        for c, (value, two) in zip(share, found, strict=True)
    )
    return Coefficients(difference, variance, third, size)


def interval_by_inversion(a, d, group, shuffles, stratum=None, *, clusters=False, alpha=0.05):
    """`interval_by_shifting` without another look at the rows."""
    a, d = units(a, d)
    group = np.asarray(group)
    label = two_labels(group)[0]
    first = group == label
    data, *replicates = [
        stored_coefficients(a, d, column == label, first, stratum, clusters=clusters)
        for column in [group, *shuffles]
    ]

    def compute(coefficients, delta):
        found = coefficients.at(delta)
        return found.studentized, found.hall

    return invert(
        lambda delta: max_pvalues(
            compute(data, delta), [compute(replicate, delta) for replicate in replicates]
        ),
        statistic_of(a, d, group, stratum, clusters=clusters),
        identity_probability(a, d, group, stratum),
        len(shuffles),
        alpha,
    )


# --- guard -----------------------------------------------------------------------------------

TOO_SKEWED = 0.2
"""|G| / sqrt(n) above which the dangerous verdict is withheld: n < 25 G^2."""


@dataclass(frozen=True, kw_only=True)
class Guard:
    """The verdicts that the skewness of two groups allows.

    `ratios` are |G_g| / sqrt(n_g) (clusters: G* for n), `direction` is K, `needed` the n = 25 G^2
    of the worse group.
    """

    skewness: tuple
    ratios: tuple
    direction: float
    without_variance: tuple

    @property
    def worse(self):
        """The group with the larger ratio: 0 or 1."""
        return int(self.ratios[1] > self.ratios[0])

    @property
    def needed(self):
        """25 G^2."""
        return 25 * self.skewness[self.worse] ** 2

    @property
    def too_skewed(self):
        """g > .2."""
        return max(self.ratios) > TOO_SKEWED

    def withholds_difference(self, difference):
        """The verdict "different": without variance, or g > 0.2 and sign(Delta) = -sign(K)."""
        if any(self.without_variance):
            return True
        return self.too_skewed and np.sign(difference) == -np.sign(self.direction)

    def withholds_equivalence(self):
        """Every claim of equivalence: without variance, or g > .2."""
        return any(self.without_variance) or self.too_skewed


def skewness(values):
    """m_3 / m_2^(3/2) of values about 0, 0 if m_2 = 0."""
    square = math.fsum(values**2) / len(values)
    return 0.0 if square == 0 else math.fsum(values**3) / len(values) / square**1.5


def guard(a, d, group, *, clusters=False):
    """G_g, the larger in absolute value of the own and the pooled skewness of n_g u_i.

    n_g u_i is centred in its own group. V_g = max(own, pooled-within variance) / n_g,
    K = (G_1 V_1^1.5/sqrt(n_1) - G_2 V_2^1.5/sqrt(n_2)) / (V_1 + V_2)^1.5. For clusters the ratios
    |G_g|/sqrt(n_g) have G* for n_g; in K, which is that third sum, n_g is the number of clusters.
    """
    a, d = units(a, d)
    group = np.asarray(group)
    labels = two_labels(group)
    parts = [of_group(a[group == label], d[group == label]) for label in labels]
    values = [part.n * part.influence for part in parts]
    pooled = np.concatenate(values)
    of_pooled = skewness(pooled)
    common = divide(math.fsum(pooled**2), len(pooled) - 2)
    chosen = tuple(max(skewness(value), of_pooled, key=abs) for value in values)
    own = [divide(math.fsum(value**2), len(value) - 1) for value in values]
    v = [max(value, common) / part.n for value, part in zip(own, parts, strict=True)]
    total = (v[0] + v[1]) ** 1.5
    thirds = [
        skew * value**1.5 / math.sqrt(part.n)
        for skew, value, part in zip(chosen, v, parts, strict=True)
    ]
    numbers = [
        effective_clusters(d[group == label]) if clusters else part.n
        for label, part in zip(labels, parts, strict=True)
    ]
    return Guard(
        skewness=chosen,
        ratios=tuple(abs(skew) / math.sqrt(n) for skew, n in zip(chosen, numbers, strict=True)),
        direction=0.0 if total == 0 else (thirds[0] - thirds[1]) / total,
        without_variance=tuple(not np.any(value) for value in values),
    )


# --- clusters --------------------------------------------------------------------------------

FEWEST_FOR_TEST, FEWEST_FOR_CR2 = 2, 3
"""Effective numbers of clusters below which the max-test and the CR2 interval are refused."""


def effective_clusters(d):
    """G* = (sum w^2)^2 / sum w^4, w_c = D_c / D."""
    return divide(math.fsum(d**2) ** 2, math.fsum(d**4))


def cr2_of_group(a, d):
    """(theta, v, df) of one group: v = sum (w e)^2/(1 - w), w e = (a - theta d)/D, in closed form.

    df = (tr K)^2 / tr(K K), K = diag(q) - q w' - w q' + Q w w', q = w^2/(1 - w), Q = sum q.
    """
    part = of_group(a, d)
    keep = counted(a, d)
    w = d[keep] / part.denominator
    if np.any(w >= 1):
        return part.theta, math.nan, math.nan
    v = math.fsum(part.influence**2 / (1 - w))
    q = w**2 / (1 - w)
    sum_q, sum_w2, sum_q2 = math.fsum(q), math.fsum(w**2), math.fsum(q**2)
    sum_qw, sum_qw2, sum_q2w = math.fsum(q * w), math.fsum(q * w**2), math.fsum(q**2 * w)
    trace = sum_q - 2 * sum_qw + sum_q * sum_w2
    trace_of_square = (
        sum_q2
        + 2 * (sum_q * sum_qw2 - 2 * sum_q2w)
        + 2 * sum_qw**2
        + 2 * sum_w2 * sum_q2
        - 4 * sum_q * sum_w2 * sum_qw
        + sum_q**2 * sum_w2**2
    )
    return part.theta, v, divide(trace**2, trace_of_square)


def cr2_by_matrices(a, d):
    """(theta, v, df) of one group with v = y' K y, K = M' diag(q) M, M = I - 1 w', y = a/d."""
    w = d / math.fsum(d)
    y = a / d
    projection = np.eye(len(w)) - np.outer(np.ones(len(w)), w)
    form = projection.T @ np.diag(w**2 / (1 - w)) @ projection
    return w @ y, y @ form @ y, np.trace(form) ** 2 / np.trace(form @ form)


@dataclass(frozen=True)
class FastInterval:
    """Delta -+ t_df sqrt(v), with G* of both groups."""

    difference: float
    variance: float
    df: float
    interval: tuple
    effective: tuple


def cr2(a, d, group, *, level=0.95):
    """v = v_1 + v_2, df = v^2/(v_1^2/df_1 + v_2^2/df_2); no interval if G* < 3 in a group."""
    a, d = units(a, d)
    group = np.asarray(group)
    rows = [group == label for label in two_labels(group)]
    (theta_1, v_1, df_1), (theta_2, v_2, df_2) = (cr2_of_group(a[own], d[own]) for own in rows)
    difference, variance = theta_1 - theta_2, v_1 + v_2
    df = divide(variance**2, v_1**2 / df_1 + v_2**2 / df_2)
    half = stats.t.ppf((1 + level) / 2, df) * math.sqrt(variance)
    effective = tuple(effective_clusters(d[own]) for own in rows)
    enough = min(effective) >= FEWEST_FOR_CR2
    interval = (difference - half, difference + half) if enough else (math.nan, math.nan)
    return FastInterval(difference, variance, df, interval, effective)
