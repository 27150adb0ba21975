"""Slow, plain reference for means and ratios of sums whose range is not known: the test.

Written from the statistics page, section 1, not from the library. `means_intervals` holds what
comes after the test: intervals, the guard, the fast variance of clusters.

Conventions: a unit is a row or the sums (A, D) of a cluster; weights are multiplied in by the
caller, so that a row is (w a, w d); d = None is all ones. n counts the units other than (0, 0).
Of two groups the first is that of the smaller label and Delta = theta_1 - theta_2. Undefined is
NaN.
"""

import math
from dataclasses import dataclass

import numpy as np

from .permutation import divide, shuffle_within
from .rows import ones_unless, two_labels, without_rounding

TIE = 1e-12
"""A replicate within this relative distance of the observed statistic is a tie, hence extreme; and
a gap below this relative size is none where the variance is 0."""


# --- one statistic ---------------------------------------------------------------------------


def hall(t, kappa):
    """h = T + kappa T^2 / 3 + kappa^2 T^3 / 27 + kappa / 6; T itself if kappa = 0 or T = +-inf."""
    if math.isinf(t):
        return t
    return t + kappa * t**2 / 3 + kappa**2 * t**3 / 27 + kappa / 6


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A gap, its variance, the third sum w of its units; `size` says what a gap is small against.

    `n_single` are strata in which a group has one unit, `n_left_out` those without part.
    """

    difference: float
    variance: float
    third: float = 0.0
    size: float
    n_single: int = 0
    n_left_out: int = 0

    @property
    def skewness(self):
        """kappa = w / v^(3/2); 0 if v = 0."""
        return 0.0 if self.variance == 0 else self.third / self.variance**1.5

    @property
    def studentized(self):
        """T = Delta / sqrt(v); if v = 0: 0 if Delta is 0, else +-inf."""
        if math.isnan(self.difference) or math.isnan(self.variance):
            return math.nan
        if self.variance > 0:
            return self.difference / math.sqrt(self.variance)
        if abs(self.difference) <= TIE * self.size:
            return 0.0
        return math.copysign(math.inf, self.difference)

    @property
    def hall(self):
        """Hall's cubic of T and kappa."""
        return hall(self.studentized, self.skewness)


UNDEFINED = Statistic(difference=math.nan, variance=math.nan, third=math.nan, size=math.nan)


def counted(a, d):
    """Which units are not (0, 0)."""
    return (np.asarray(a) != 0) | (np.asarray(d) != 0)


@dataclass(frozen=True)
class OfGroup:
    """theta = A / D, D, n and u_i = (a_i - theta d_i) / D of the counted units of one group."""

    theta: float
    denominator: float
    n: int
    influence: np.ndarray


def of_group(a, d):
    """theta, D, n and u of the units of one group."""
    keep = counted(a, d)
    a, d = a[keep], d[keep]
    total = math.fsum(d)
    theta = divide(math.fsum(a), total)
    if math.isnan(theta):
        return OfGroup(theta, total, len(a), np.full(len(a), math.nan))
    return OfGroup(theta, total, len(a), without_rounding(a, theta * d) / total)


def units(a, d):
    """(a, d) as floats, d all ones where none is given."""
    a = np.asarray(a, dtype=float)
    return a, ones_unless(d, len(a))


def unbiased(n):
    """n / (n - 1); NaN below two units."""
    return n / (n - 1) if n > 1 else math.nan


# --- two groups ------------------------------------------------------------------------------


def variance_of_group(entry, clusters):
    """v_g = n/(n-1) sum u^2 of rows, sum u^2 of clusters."""
    squares = math.fsum(entry.influence**2)
    return squares if clusters else unbiased(entry.n) * squares


def linearised(a, d, group, *, clusters=False):
    """Delta, v = v_1 + v_2 and the third sum w = sum_1 u^3 - sum_2 u^3, without strata.

    The third sums are raw, and kappa divides them by that v: rows have n/(n-1) in v only.
    """
    a, d = units(a, d)
    group = np.asarray(group)
    first, second = (of_group(a[group == label], d[group == label]) for label in two_labels(group))
    if math.isnan(first.theta) or math.isnan(second.theta):
        return UNDEFINED
    return Statistic(
        difference=float(without_rounding(first.theta, second.theta)),
        variance=variance_of_group(first, clusters) + variance_of_group(second, clusters),
        third=math.fsum(first.influence**3) - math.fsum(second.influence**3),
        size=abs(first.theta) + abs(second.theta),
    )


def parts_of_strata(a, d, group, stratum, labels):
    """[(first, second), ...] of the strata in which both groups have D != 0; how many have not."""
    parts, n_left_out = [], 0
    for code in sorted(set(stratum.tolist())):
        pair = []
        for label in labels:
            rows = (stratum == code) & (group == label)
            pair.append(of_group(a[rows], d[rows]))
        if all(part.denominator != 0 for part in pair):
            parts.append(tuple(pair))
        else:
            n_left_out += 1
    return parts, n_left_out


def stratum_weights(denominators):
    """k_s / sum k, k_s = D_s1 D_s2 / (D_s1 + D_s2), of pairs (D_s1, D_s2)."""
    k = [denominator * two / (denominator + two) for denominator, two in denominators]
    return [value / math.fsum(k) for value in k]


def single_strata(contributions):
    """(sum r^2 S / (S - 1), sum r^3) of the strata in which a group has one unit, S their number.

    None add nothing; one alone shows no variance: NaN.
    """
    squares, cubes = (math.fsum(r**power for r in contributions) for power in (2, 3))
    if not contributions:
        return 0.0, 0.0
    return unbiased(len(contributions)) * squares, cubes


def within_gap(gap, difference, size):
    """theta_s1 - theta_s2 - Delta, exactly 0 where it is rounding of values of this size."""
    rest = gap - difference
    return 0.0 if abs(rest) <= TIE * size else rest


def stratified(a, d, group, stratum):
    """The generalised Mantel-Haenszel gap with the variance within strata.

    Delta = sum_s (A_s1 D_s2 - A_s2 D_s1)/(D_s1 + D_s2) / sum_s k_s = sum_s c_s (theta_s1 -
    theta_s2), c_s = k_s / sum k. u_i = c_s (a_i - theta_sg d_i)/D_sg sqrt(n_sg/(n_sg - 1)), for
    clusters too. A stratum with n_sg = 1 in a group is one unit r_s = c_s (theta_s1 - theta_s2 -
    Delta). v = sum u^2 + sum r^2 S/(S - 1), w = sum_1 u^3 - sum_2 u^3 + sum r^3.
    """
    a, d = units(a, d)
    group, stratum = np.asarray(group), np.asarray(stratum)
    parts, n_left_out = parts_of_strata(a, d, group, stratum, two_labels(group))
    if not parts:
        return UNDEFINED
    share = stratum_weights([(value.denominator, two.denominator) for value, two in parts])
    difference = math.fsum(
        c * (value.theta - two.theta) for c, (value, two) in zip(share, parts, strict=True)
    )
    size = math.fsum(
        abs(c) * (abs(value.theta) + abs(two.theta))
        for c, (value, two) in zip(share, parts, strict=True)
    )
    squares, cubes, single = [], [], []
    for c, (value, two) in zip(share, parts, strict=True):
        if value.n == 1 or two.n == 1:
            rest = within_gap(
                value.theta - two.theta, difference, abs(value.theta) + abs(two.theta) + size
            )
            single.append(c * rest)
            continue
        for sign, part in ((1, value), (-1, two)):
            u = c * part.influence * math.sqrt(unbiased(part.n))
            squares.extend(u**2)
            cubes.extend(sign * u**3)
    square_of_single, cube_of_single = single_strata(single)
    return Statistic(
        difference=difference,
        variance=math.fsum(squares) + square_of_single,
        third=math.fsum(cubes) + cube_of_single,
        size=size,
        n_single=len(single),
        n_left_out=n_left_out,
    )


@dataclass(frozen=True)
class Part:
    """A metric in one group of one stratum: theta, its variance, n units, what they weigh.

    `corrected` says that the variance has its own n - 1 (DeLong's).
    """

    theta: float
    variance: float
    n: int
    effective_number: float
    corrected: bool = False


def effective_number(weight):
    """(sum w)^2 / sum w^2; n for equal weights, 0 without units."""
    weight = np.asarray(weight, dtype=float)
    squares = math.fsum(weight**2)
    return 0.0 if squares == 0 else math.fsum(weight) ** 2 / squares


def stratified_general(strata):
    """The gap of a metric that is no ratio, from one pair of `Part` a stratum.

    Delta = sum c_s (theta_s1 - theta_s2), c_s = k_s / sum k, k_s from the effective numbers.
    v = sum c_s^2 (v_s1 n_s1/(n_s1 - 1) + v_s2 n_s2/(n_s2 - 1)), no factor where it is corrected,
    and the rule of `stratified` where a group has one unit or a corrected variance is undefined.
    A stratum with an undefined theta is left out. There is no third sum: h = T.
    """
    defined = [
        pair for pair in strata if not any(math.isnan(part.theta) or part.n == 0 for part in pair)
    ]
    if not defined:
        return UNDEFINED
    share = stratum_weights(
        [(value.effective_number, two.effective_number) for value, two in defined]
    )
    gaps = [value.theta - two.theta for value, two in defined]
    sizes = [abs(value.theta) + abs(two.theta) for value, two in defined]
    difference = math.fsum(c * gap for c, gap in zip(share, gaps, strict=True))
    size = math.fsum(c * value for c, value in zip(share, sizes, strict=True))
    variances, single = [], []
    for c, gap, own_size, pair in zip(share, gaps, sizes, defined, strict=True):
        if any(part.n == 1 or math.isnan(part.variance) for part in pair):
            single.append(c * within_gap(gap, difference, own_size + size))
            continue
        for part in pair:
            variances.append(c**2 * part.variance * (1 if part.corrected else unbiased(part.n)))
    return Statistic(
        difference=difference,
        variance=math.fsum(variances) + single_strata(single)[0],
        size=size,
        n_single=len(single),
        n_left_out=len(strata) - len(defined),
    )


# --- several groups --------------------------------------------------------------------------


def contrasts(parts):
    """(U, C) of one stratum: U_g = A_g - D_g A/D = sum_h (delta_gh - p_g) A_h, p_g = D_g / D.

    C_gg' = sum_h (delta_gh - p_g)(delta_g'h - p_g') E_h, E_h = n_h/(n_h - 1) sum (a - theta d)^2;
    U U' where a group has one unit. A group with D_h = 0 has no part.
    """
    total = math.fsum(part.denominator for part in parts)
    present = [part.denominator != 0 for part in parts]
    n_groups = len(parts)
    if total == 0:
        return np.zeros(n_groups), np.zeros((n_groups, n_groups))
    share = np.array([part.denominator / total for part in parts])
    sums = [
        part.theta * part.denominator if there else 0.0
        for part, there in zip(parts, present, strict=True)
    ]
    mean = math.fsum(sums) / total
    contribution = np.array(
        [
            part.denominator * float(without_rounding(part.theta, mean)) if there else 0.0
            for part, there in zip(parts, present, strict=True)
        ]
    )
    if any(part.n == 1 for part, there in zip(parts, present, strict=True) if there):
        return contribution, np.outer(contribution, contribution)
    covariance = np.zeros((n_groups, n_groups))
    for h, (part, there) in enumerate(zip(parts, present, strict=True)):
        if not there:
            continue
        square = unbiased(part.n) * math.fsum((part.influence * part.denominator) ** 2)
        row = (np.arange(n_groups) == h) - share
        covariance += np.outer(row, row) * square
    return contribution, covariance


def quadratic_form(vector, matrix):
    """U' C^- U, C^- the generalised inverse; 0 if U = 0, inf where C does not reach U."""
    if not np.any(vector):
        return 0.0
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0, scale, 1.0)
    vector, matrix = vector / scale, matrix / np.outer(scale, scale)
    inverse = np.linalg.pinv(matrix, rcond=TIE, hermitian=True)
    rest = vector - matrix @ inverse @ vector
    if np.max(np.abs(rest)) > 1e-9 * np.max(np.abs(vector)):
        return math.inf
    return float(vector @ inverse @ vector)


def omnibus_stratified(a, d, group, stratum):
    """U' C^- U of the first k - 1 of U = sum_s U_s, C = sum_s C_s (see `contrasts`)."""
    a, d = units(a, d)
    group, stratum = np.asarray(group), np.asarray(stratum)
    labels = sorted(set(group.tolist()))
    vector, matrix = np.zeros(len(labels)), np.zeros((len(labels), len(labels)))
    for code in sorted(set(stratum.tolist())):
        rows = [(stratum == code) & (group == label) for label in labels]
        added, covariance = contrasts([of_group(a[own], d[own]) for own in rows])
        vector, matrix = vector + added, matrix + covariance
    return quadratic_form(vector[:-1], matrix[:-1, :-1])


# --- permutation -----------------------------------------------------------------------------


def statistic_of(a, d, group, stratum=None, *, clusters=False):
    """`stratified` with strata, `linearised` without."""
    if stratum is None:
        return linearised(a, d, group, clusters=clusters)
    return stratified(a, d, group, stratum)


def is_beyond(replicate, observed, side):
    """Test if side (1: greater, -1: less) times S* is at least that of S, up to ties; NaN is."""
    if math.isnan(replicate):
        return True
    replicate, observed = side * replicate, side * observed
    if math.isinf(observed):
        return replicate >= observed
    return replicate >= observed - TIE * abs(observed)


@dataclass(frozen=True)
class PValues:
    """p of both sides and twice the smaller."""

    greater: float
    less: float

    @property
    def two_sided(self):
        """min(1, 2 min(p_greater, p_less))."""
        return min(1.0, 2 * min(self.greater, self.less))


def max_pvalues(observed, null):
    """p_side = max(p_T, p_h), each (1 + #{at least as extreme}) / (1 + B), of pairs (T, h)."""
    if math.isnan(observed[0]):
        return PValues(math.nan, math.nan)
    sides = []
    for side in (1, -1):
        p = [
            (1 + sum(is_beyond(replicate[which], observed[which], side) for replicate in null))
            / (1 + len(null))
            for which in (0, 1)
        ]
        sides.append(max(p))
    return PValues(*sides)


def shuffled_groups(group, stratum, n_resamples, rng):
    """B shuffles of the groups of units, within strata."""
    group = np.asarray(group)
    stratum = np.zeros(len(group), dtype=int) if stratum is None else np.asarray(stratum)
    return [shuffle_within(group, stratum, rng) for _ in range(n_resamples)]


def pvalues(a, d, group, stratum=None, *, clusters=False, n_resamples=999, rng=None):
    """The test: T and h of the data and of every shuffle, p = `max_pvalues`."""

    def compute(column):
        found = statistic_of(a, d, column, stratum, clusters=clusters)
        return found.studentized, found.hall

    null = [compute(column) for column in shuffled_groups(group, stratum, n_resamples, rng)]
    return max_pvalues(compute(group), null)
