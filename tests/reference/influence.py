"""Slow, plain reference for the influence lens (Wang, Ustun and Calmon 2019).

Written from the statistics page (section 4, "the page") and the file of its measurements
("measured"), not from the library. Every function does the obvious thing.

Notation: group 0 is the target, group 1 the others; y labels, f scores or decisions in [0, 1],
h = P(Y = 1 | X, S = 0), e_v = P(X_j = v | X_-j, S = 0), w weights (all 1 unless given).
A rate is R = E0[a] / E0[b]; B = E0[b]; u = a - R b; the influence of a row is u / B.

Conventions: influence values IF are those of a mean: estimate - truth = sum w IF / sum w. Gaps are
signed, target minus others. A metric is a name, or a combination {name: weight} (Proposition 3).
`level` of an interval is its coverage; undefined is NaN. a and b are linear in y, so with h in the
place of y every function of rows gives the conditional means, and with masses as w the population.
"""

import math
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy import optimize, special, stats

from .inference import largest_gap_interval
from .rows import ones_unless

RATES = ("fpr", "fnr", "tpr", "fdr", "ppv", "selection_rate")
DIVERGENCES = ("da_out", "da_in", "cal")

ENOUGH_EVENTS = 10.0
FEW_EVENTS = 5.0
"""Marginal scores: marked `few events` below the first, refused below the second (the page)."""

LARGEST_SHARE_OF_ARM = 0.1
FEWEST_OF_LABEL = 10
"""Ceteris paribus: refused above this share of 1/e weights, below this number of a label."""

CAL_RATIO = 5.0
"""A two-sided interval of CAL needs CAL >= this many standard errors."""

DA_SHARE = 0.05
DA_BAND = (0.9, 1.1)
"""DA_in: the largest weight share, and the band of mean_1 exp(l)."""

FEWEST_EVENTS_OF_PART = 50.0
ONE_SIDED = 1.645
"""Descent: events a part needs; the one-sided normal quantile as the page rounds it."""

MOST_COLUMNS = 200
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Nuisances: columns with pairwise products; the grid of penalties of sum log loss + p/2 |b|^2."""


# --- rates and their influence values ---------------------------------------------------------


def parts(name, y, f):
    """(a, b) of the table of the page: R = E[a] / E[b]."""
    y, f = np.asarray(y, dtype=float), np.asarray(f, dtype=float)
    return {
        "fpr": lambda: ((1 - y) * f, 1 - y),
        "fnr": lambda: (y * (1 - f), y),
        "tpr": lambda: (y * f, y),
        "fdr": lambda: (f * (1 - y), f),
        "ppv": lambda: (f * y, f),
        "selection_rate": lambda: (f, np.ones_like(f)),
    }[name]()


def coefficients(name, f, R):
    """(c0, c1, d0, d1) of the table: E[u | x] = c0 + c1 h, E[b | x] = d0 + d1 h."""
    f = np.asarray(f, dtype=float)
    zero, one = np.zeros_like(f), np.ones_like(f)
    return {
        "fpr": lambda: (f - R, -(f - R), one, -one),
        "fnr": lambda: (zero, 1 - f - R, zero, one),
        "tpr": lambda: (zero, f - R, zero, one),
        "fdr": lambda: (f * (1 - R), -f, f, zero),
        "ppv": lambda: (-R * f, f, f, zero),
        "selection_rate": lambda: (f - R, zero, one, zero),
    }[name]()


def as_combination(metric):
    """{name: weight}; a name alone has weight 1."""
    return {metric: 1.0} if isinstance(metric, str) else dict(metric)


def mean(values, w=None):
    """Sum w values / sum w, over the first axis."""
    values = np.asarray(values, dtype=float)
    w = ones_unless(w, len(values))
    return np.tensordot(w, values, axes=1) / w.sum()


def kish(w):
    """(sum w)^2 / sum w^2."""
    return np.sum(w) ** 2 / np.sum(np.square(w))


def rate(name, y, f, w=None):
    """(R, B): R = E[a] / E[b], B = E[b]; R is NaN if B is 0."""
    a, b = parts(name, y, f)
    B = mean(b, w)
    return (mean(a, w) / B if B > 0 else math.nan), B


def psi_rows(metric, y, f, w=None):
    """The row version: psi_i = u_i / B, u = a - R b; sum w psi = 0."""
    total = 0.0
    for name, weight in as_combination(metric).items():
        a, b = parts(name, y, f)
        R, B = rate(name, y, f, w)
        total = total + weight * (a - R * b) / B
    return total


def psi_of_x(metric, f, h, rates):
    """psi(x) = (c0 + c1 h) / B with rates = {name: (R, B)}."""
    total = 0.0
    for name, weight in as_combination(metric).items():
        R, B = rates[name]
        c0, c1, _, _ = coefficients(name, f, R)
        total = total + weight * (c0 + c1 * h) / B
    return total


def rates_of(metric, y, f, w=None):
    """{name: (R, B)} of the rates of a combination."""
    return {name: rate(name, y, f, w) for name in as_combination(metric)}


def correction(psi, w=None):
    """phi = -psi / sd (Proposition 2); the sd of the distribution w, not of a sample."""
    return -psi / math.sqrt(mean((psi - mean(psi, w)) ** 2, w))


def gap(metric, target, others):
    """(M, se): M = sum of weight (R0 - R1), signed; each group is (y, f) or (y, f, w).

    se^2 = sum over groups of n / (n - 1) sum (w psi)^2 / (sum w)^2, n the rows with weight.
    """
    value, variance = 0.0, 0.0
    for sign, (y, f, *rest) in ((1, target), (-1, others)):
        w = ones_unless(rest[0] if rest else None, len(y))
        for name, weight in as_combination(metric).items():
            value += sign * weight * rate(name, y, f, w)[0]
        n = np.sum(w > 0)
        correct = n / (n - 1) if n > 1 else math.nan
        variance += correct * np.sum((w * psi_rows(metric, y, f, w)) ** 2) / w.sum() ** 2
    return value, math.sqrt(variance)


def sign_is_known(value, se, level=0.95):
    """Test if the interval of the gap excludes 0; if not, the sign of psi as a direction that
    widens or closes the gap is not identified and scores are `inconclusive` (the page)."""
    return abs(value) > stats.norm.isf((1 - level) / 2) * se


# --- any metric on a discrete distribution ----------------------------------------------------


@dataclass(frozen=True)
class Discrete:
    """Atoms: masses p0 and p1 of the groups, f, and h0 and h1 = P(Y = 1 | x, S)."""

    p0: np.ndarray
    p1: np.ndarray
    f: np.ndarray
    h0: np.ndarray
    h1: np.ndarray


def kl_bernoulli(p, q):
    """KL(Bernoulli(p) || Bernoulli(q)) in nats."""
    return float(special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q))


def population_value(metric, law):
    """M of table 1 of the paper, for the rates of the page, DA_out, DA_in and CAL."""
    total = 0.0
    for name, weight in as_combination(metric).items():
        if name == "da_out":
            value = kl_bernoulli(law.p0 @ law.f, law.p1 @ law.f)
        elif name == "da_in":
            value = float(np.sum(special.rel_entr(law.p0, law.p1)))
        elif name == "cal":
            value = law.p0 @ np.abs(law.h0 - law.f) - law.p1 @ np.abs(law.h1 - law.f)
        else:
            value = rate(name, law.h0, law.f, law.p0)[0] - rate(name, law.h1, law.f, law.p1)[0]
        total += weight * value
    return total


def population_psi(metric, law):
    """The closed forms: the table, and equations (8) and (9) of the paper."""
    total = np.zeros(len(law.f))
    for name, weight in as_combination(metric).items():
        if name == "da_out":
            p, q = law.p0 @ law.f, law.p1 @ law.f
            psi = math.log(p * (1 - q) / (q * (1 - p))) * (law.f - p)
        elif name == "da_in":
            psi = np.log(law.p0 / law.p1)
            psi = psi - law.p0 @ psi
        elif name == "cal":
            psi = np.abs(law.h0 - law.f)
            psi = psi - law.p0 @ psi
        else:
            psi = psi_of_x(name, law.f, law.h0, rates_of(name, law.h0, law.f, law.p0))
        total += weight * psi
    return total


def finite_difference(metric, law, step=1e-5):
    """psi at every atom by Definition 4: the central difference of M((1 - e) P0 + e delta_x)."""
    psi = np.zeros(len(law.p0))
    for atom in range(len(psi)):
        values = []
        for e in (step, -step):
            p0 = (1 - e) * law.p0
            p0[atom] += e
            values.append(population_value(metric, Discrete(p0, law.p1, law.f, law.h0, law.h1)))
        psi[atom] = (values[0] - values[1]) / (2 * step)
    return psi


TOY_ATOMS = np.array([[x >> 2 & 1, x >> 1 & 1, x & 1] for x in range(8)], dtype=float)


def toy():
    """The exact toy of section 4.1: atoms 000..111, f = h = expit(5 x1 - 2 x2 - 2 x3)."""

    def masses(p):
        return np.prod(np.where(TOY_ATOMS == 1, p, 1 - np.asarray(p)), axis=1)

    f = special.expit(TOY_ATOMS @ np.array([5.0, -2.0, -2.0]))
    return Discrete(masses([0.9, 0.2, 0.2]), masses([0.1, 0.5, 0.5]), f, f, f)


# --- intervals --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """A score with its standard error, degrees of freedom and influence values."""

    value: float
    se: float
    df: float
    influence: np.ndarray
    events: float = math.nan
    status: str = "ok"
    extra: dict = field(default_factory=dict)

    def interval(self, level=0.95):
        half = stats.t.isf((1 - level) / 2, self.df) * self.se
        return self.value - half, self.value + half

    @property
    def t(self):
        return self.value / self.se if self.se > 0 else math.nan


def split_covariance(influence, cell, w=None):
    """(V, df) of the mean of influence values (n, m), the variance split by cell, ddof 1 in each.

    V = sum over cells of V_c, plus that of the cell means m_c (exactly 0 if x is independent):
    V_c = k/(k - 1) sum_c w^2 (IF - m_c)(IF - m_c)' / (sum w)^2, k Kish's size of the cell;
    between cells: sum_c (sum_c w^2) m_c m_c' / (sum w)^2.
    df_j = V_jj^2 / (sum_c V_c,jj^2 / (k_c - 1) + between_jj^2 / (k - 1)) (Satterthwaite).
    """
    influence = np.asarray(influence, dtype=float).reshape(len(cell), -1)
    w = ones_unless(w, len(influence))
    size = influence.shape[1]
    between, total, below = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    for c in np.unique(cell):
        at = cell == c
        k = kish(w[at])
        if k <= 1:
            return np.full((size, size), math.nan), np.full(size, math.nan)
        center = mean(influence[at], w[at])
        left = w[at, None] * (influence[at] - center) / w.sum()
        V = k / (k - 1) * left.T @ left
        total += V
        below += np.diag(V) ** 2 / (k - 1)
        between += np.sum(w[at] ** 2) * np.outer(center, center) / w.sum() ** 2
    total = total + between
    below = below + np.diag(between) ** 2 / (kish(w) - 1)
    df = np.full(size, math.nan)
    np.divide(np.diag(total) ** 2, below, out=df, where=below > 0)
    return total, df


def standard_error(influence, w=None):
    """(se, df): se^2 = sum (w IF)^2 / (sum w)^2, df = (sum IF^2)^2 / sum IF^4 (of w IF)."""
    w = ones_unless(w, len(influence))
    terms = w * influence
    square = np.sum(terms**2)
    df = square**2 / np.sum(terms**4) if square > 0 else math.nan
    return math.sqrt(square) / w.sum(), df


# --- marginal proxy scores --------------------------------------------------------------------


def events_of(values, w):
    """Kish-effective events: (sum w a)^2 / sum w^2 a; sum a without weights."""
    below = np.sum(w**2 * values)
    return np.sum(w * values) ** 2 / below if below > 0 else 0.0


def events(metric, y, f, at, w=None):
    """The smaller of the events of a and of b - a among the rows `at`, over the combination."""
    w = ones_unless(w, len(y))
    smallest = math.inf
    for name in as_combination(metric):
        a, b = parts(name, y, f)
        smallest = min(smallest, events_of(a[at], w[at]), events_of((b - a)[at], w[at]))
    return smallest


def guard(n_events):
    """The words of the guard."""
    if n_events < FEW_EVENTS:
        return "refused"
    return "few events" if n_events < ENOUGH_EVENTS else "ok"


def marginal_binary(metric, y, f, x, w=None):
    """E0[psi | x = 1] - E0[psi | x = 0] = (mu_1 - mu_0) / B, mu_l the mean of u in level l.

    IF = [1{x=1}(u - mu_1)/p - 1{x=0}(u - mu_0)/q - (bbar_1 - bbar_0) u/B - theta (b - B)] / B.
    """
    x, w = np.asarray(x).astype(bool), ones_unless(w, len(y))
    value, influence = 0.0, np.zeros(len(y))
    if x.all() or not x.any():
        return Estimate(math.nan, math.nan, math.nan, influence, 0.0, "refused")
    p = mean(x, w)
    for name, weight in as_combination(metric).items():
        a, b = parts(name, y, f)
        R, B = rate(name, y, f, w)
        u = a - R * b
        mu_1, mu_0 = mean(u[x], w[x]), mean(u[~x], w[~x])
        db = mean(b[x], w[x]) - mean(b[~x], w[~x])
        theta = (mu_1 - mu_0) / B
        IF = x * (u - mu_1) / p - ~x * (u - mu_0) / (1 - p) - db * u / B - theta * (b - B)
        value += weight * theta
        influence += weight * IF / B
    V, df = split_covariance(influence, x, w)
    n_events = min(events(metric, y, f, x, w), events(metric, y, f, ~x, w))
    return Estimate(value, math.sqrt(V[0, 0]), df[0], influence, n_events, guard(n_events))


def merged_levels(metric, y, f, x, w=None):
    """Levels with fewer than 10 events in a or b - a become "other (k levels)".

    If "other" itself is below 10 the level with the fewest events joins it, and so on (our choice).
    """
    x = np.asarray(x)
    levels = {str(level): [level] for level in np.unique(x)}
    counts = {
        name: events(metric, y, f, np.isin(x, members), w) for name, members in levels.items()
    }
    poor = [name for name in levels if counts[name] < ENOUGH_EVENTS]
    if not poor:
        return np.array([str(level) for level in x]), list(levels)
    rest = sorted((name for name in levels if name not in poor), key=lambda name: counts[name])
    while rest and events(metric, y, f, np.isin(x, merge(levels, poor)), w) < ENOUGH_EVENTS:
        poor.append(rest.pop(0))
    other = f"other ({len(poor)} levels)"
    members = merge(levels, poor)
    names = np.array([other if level in members else str(level) for level in x])
    return names, [name for name in levels if name not in poor] + [other]


def merge(levels, names):
    """The members of several levels."""
    return [member for name in names for member in levels[name]]


def marginal_levels(metric, y, f, x, levels, w=None, with_B=True):
    """(theta, IF): theta_k = E0[psi | x = k] for every level, and its influence values.

    IF_k = [1{x=k}(u - mu_k)/p_k - bbar_k u/B - theta_k (b - B)] / B; the last term only `with_B`.
    """
    w = ones_unless(w, len(y))
    theta, influence = np.zeros(len(levels)), np.zeros((len(y), len(levels)))
    for k, level in enumerate(levels):
        at = x == level
        for name, weight in as_combination(metric).items():
            a, b = parts(name, y, f)
            R, B = rate(name, y, f, w)
            u = a - R * b
            mu, bbar = mean(u[at], w[at]), mean(b[at], w[at])
            IF = at * (u - mu) / mean(at, w) - bbar * u / B
            if with_B:
                IF = IF - mu / B * (b - B)
            theta[k] += weight * mu / B
            influence[:, k] += weight * IF / B
    return theta, influence


def marginal_categorical(metric, y, f, x, w=None, level=0.95, normals=None):
    """Wald chi-square of equal means with the influence of R, and the range of the means.

    Levels below the guard are merged first. Wald: contrasts with the first level, covariance of
    their influence values (R, not B) split by level with ddof 1. Range: simultaneous intervals of
    all pairs (R and B; max |t| from `normals`, one column per pair), then the largest gap.
    """
    names, levels = merged_levels(metric, y, f, x, w)
    if len(levels) < 2:
        return {"levels": levels, "status": "refused", "p": math.nan, "wald": math.nan}
    theta, plain = marginal_levels(metric, y, f, names, levels, w, with_B=False)
    contrasts = theta[1:] - theta[0]
    V, _ = split_covariance(plain[:, 1:] - plain[:, :1], names, w)
    wald = float(contrasts @ np.linalg.solve(V, contrasts))
    _, full = marginal_levels(metric, y, f, names, levels, w)
    pairs = list(combinations(range(len(levels)), 2))
    gaps = np.array([theta[k] - theta[j] for j, k in pairs])
    influence = np.column_stack([full[:, k] - full[:, j] for j, k in pairs])
    V, df = split_covariance(influence, names, w)
    se = np.sqrt(np.diag(V))
    answer = {
        "levels": levels,
        "theta": theta,
        "wald": wald,
        "df": len(levels) - 1,
        "p": stats.chi2.sf(wald, len(levels) - 1),
        "pairs": pairs,
        "gaps": gaps,
        "se": se,
        "df_of_pairs": df,
        "status": "ok",
    }
    if normals is not None:
        Z = correlated(correlation(influence, w), normals)
        answer["intervals"] = simultaneous(gaps, se, df, Z, level)[1]
        answer["range"] = largest_gap_interval([tuple(pair) for pair in answer["intervals"]])
    return answer


def marginal_continuous(metric, y, f, x, w=None, hc3=True):
    """The slope of psi on x per sd of x (ddof 1), HC3, with the influence of R, B and the sd.

    theta = s k_u / B, k_u = S_xu / S_xx, S_xu = sum w (x - m) u. With r the residual of u and l the
    leverage: IF = [s W (x - m)/S_xx r/(1 - l) - s k_b u/B - theta (b - B)]/B
                   + theta ((x - m)^2 W/S_xx - 1)/2; normal interval. Without `hc3` l is 0.
    """
    w = ones_unless(w, len(y))
    W = w.sum()
    d = np.asarray(x, dtype=float) - mean(x, w)
    S = np.sum(w * d**2)
    s = math.sqrt(S / W * kish(w) / (kish(w) - 1))
    leverage = w * (1 / W + d**2 / S) if hc3 else 0.0
    value, influence = 0.0, np.zeros(len(d))
    for name, weight in as_combination(metric).items():
        a, b = parts(name, y, f)
        R, B = rate(name, y, f, w)
        u = a - R * b
        k_u, k_b = np.sum(w * d * u) / S, np.sum(w * d * b) / S
        theta = s * k_u / B
        residual = (u - mean(u, w) - k_u * d) / (1 - leverage)
        IF = s * W * d / S * residual - s * k_b * u / B - theta * (b - B)
        value += weight * theta
        influence += weight * (IF / B + theta * (d**2 * W / S - 1) / 2)
    n_events = events(metric, y, f, np.ones(len(d), dtype=bool), w)
    return Estimate(value, standard_error(influence, w)[0], math.inf, influence, n_events)


# --- several scores at once -------------------------------------------------------------------


def correlation(influence, w=None):
    """The correlation matrix of influence values (n, J): G_jk / sqrt(G_jj G_kk), G = (w IF)'(w IF).

    Not centred: the means are 0, and a Gaussian multiplier bootstrap of sum g_i w_i IF_i has it.
    """
    terms = ones_unless(w, len(influence))[:, None] * influence
    G = terms.T @ terms
    scale = np.sqrt(np.diag(G))
    return G / np.outer(scale, scale)


def correlated(R, normals):
    """Draws (B, J) of N(0, R) from independent normals: Z = normals R^(1/2), the symmetric root."""
    values, vectors = np.linalg.eigh(R)
    return normals @ (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def on_normal_scale(t, df):
    """|t| -> the normal quantile of its two-sided Satterthwaite p."""
    return stats.norm.isf(stats.t.sf(np.abs(t), df))


def simultaneous(values, se, df, Z, level=0.95):
    """(adjusted p, intervals) by max |Z| over the rows of Z, one column per score.

    p_j = (1 + #{max |Z| >= z_j}) / (1 + B), z_j the |t_j| on the normal scale. The cut is the
    ceil(level (B + 1))-th smallest max |Z|; the interval of score j uses the t quantile with the
    tail of the cut.
    """
    values, se, df = np.asarray(values), np.asarray(se), np.asarray(df)
    largest = np.sort(np.abs(Z).max(axis=1))
    z = on_normal_scale(values / se, df)
    p = np.array([(1 + np.sum(largest >= value)) / (1 + len(largest)) for value in z])
    rank = math.ceil(round(level * (len(largest) + 1), 9))
    cut = largest[rank - 1] if rank <= len(largest) else math.inf
    half = stats.t.isf(stats.norm.sf(cut), df) * se
    return p, np.column_stack([values - half, values + half])


# --- nuisances: ridge logistic regression -----------------------------------------------------


@dataclass(frozen=True)
class Basis:
    """An intercept, standardised main effects, and products of pairs of them."""

    center: np.ndarray
    scale: np.ndarray
    pairs: tuple

    def design(self, X):
        Z = (np.asarray(X, dtype=float) - self.center) / self.scale
        products = [Z[:, i] * Z[:, j] for i, j in self.pairs]
        return np.column_stack([np.ones(len(Z)), Z, *products])


def default_basis(X, w=None, pairs=None):
    """Main effects and pairwise products of the standardised features; more than 200 columns
    in all (without the intercept): main effects only. sd with ddof 0; a constant column stays 0."""
    X = np.asarray(X, dtype=float)
    d = X.shape[1]
    center = mean(X, w)
    scale = np.sqrt(mean((X - center) ** 2, w))
    if pairs is None:
        pairs = tuple(combinations(range(d), 2)) if d + d * (d - 1) // 2 <= MOST_COLUMNS else ()
    return Basis(center, np.where(scale > 0, scale, 1.0), tuple(pairs))


@dataclass(frozen=True)
class RidgeFit:
    """coef, and the second derivative of the penalised sum of log losses there."""

    coef: np.ndarray
    penalty: float
    hessian: np.ndarray

    def predict(self, design):
        return special.expit(design @ self.coef)


def ridge_logistic(design, y, w=None, penalty=1.0):
    """min sum w (log(1 + exp(eta)) - y eta) + penalty/2 |coef without intercept|^2, by Newton.

    y may be a share of successes: distinct rows with counts give the same fit. Steps are halved
    until the loss does not grow.
    """
    y = np.asarray(y, dtype=float)
    w = ones_unless(w, len(y))
    ridge = np.full(design.shape[1], float(penalty))
    ridge[0] = 0.0

    def loss(coef):
        eta = design @ coef
        return np.sum(w * (np.logaddexp(0, eta) - y * eta)) + 0.5 * np.sum(ridge * coef**2)

    def hessian_of(coef):
        p = special.expit(design @ coef)
        return (design * (w * p * (1 - p))[:, None]).T @ design + np.diag(ridge)

    coef = np.zeros(design.shape[1])
    for _ in range(100):
        gradient = design.T @ (w * (special.expit(design @ coef) - y)) + ridge * coef
        if np.max(np.abs(gradient)) < 1e-10 * max(1.0, w.sum()):
            break
        step = np.linalg.lstsq(hessian_of(coef), gradient, rcond=None)[0]
        size, before = 1.0, loss(coef)
        while loss(coef - size * step) > before + 1e-12 * abs(before) and size > 1e-10:
            size /= 2
        coef = coef - size * step
    return RidgeFit(coef, float(penalty), hessian_of(coef))


def change_of_fit(fit, design, y, w=None):
    """Return the influence on the coefficients: H^-1 [w x (y - p) - (w / sum w) penalty coef]."""
    w = ones_unless(w, len(y))
    shrink = fit.penalty * fit.coef
    shrink[0] = 0.0
    score = design * (w * (y - fit.predict(design)))[:, None] - np.outer(w / w.sum(), shrink)
    return score @ np.linalg.pinv(fit.hessian)


def mixed(number):
    """The finaliser of splitmix64, an order without meaning."""
    mask = (1 << 64) - 1
    z = (number + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
    return z ^ z >> 31


def folds_by_id(ids, n_folds=5, strata=None):
    """Folds 0..K-1: distinct ids in the order of their hash, dealt in turn, within strata if given.

    Depends on the ids alone; rows of one id share a fold, in the stratum of its first row.
    """
    ids = [int(code) for code in ids]
    strata = [0] * len(ids) if strata is None else list(strata)
    stratum = {}
    for value, its in zip(ids, strata, strict=True):
        stratum.setdefault(value, its)
    ordered = sorted(stratum, key=lambda entry: (stratum[entry], mixed(entry)))
    fold = {value: i % n_folds for i, value in enumerate(ordered)}
    return np.array([fold[code] for code in ids])


@dataclass(frozen=True)
class CrossFit:
    """One fit per fold, made without the rows of that fold."""

    fits: list
    folds: np.ndarray
    penalty: float

    def predict(self, design):
        """Every row by the fit that has not seen it (`design` may hold flipped rows)."""
        p = np.zeros(len(design))
        for fold, fit in enumerate(self.fits):
            at = self.folds == fold
            p[at] = fit.predict(design[at])
        return p


def cross_fit(design, y, folds, penalty, w=None):
    """Fits of all rows but those of each fold."""
    w = ones_unless(w, len(y))
    fits = [
        ridge_logistic(design[folds != k], y[folds != k], w[folds != k], penalty)
        for k in range(int(folds.max()) + 1)
    ]
    return CrossFit(fits, folds, penalty)


def log_loss(y, p, w=None):
    """The mean log loss; p kept 1e-15 away from 0 and 1."""
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return -mean(y * np.log(p) + (1 - y) * np.log1p(-p), w)


def cross_fit_tuned(design, y, folds, w=None, penalties=PENALTIES):
    """The cross-fit whose penalty has the least held-out log loss over the same folds; of equal
    ones the larger penalty. Only this number is chosen with all rows."""
    best, least = None, math.inf
    for penalty in sorted(penalties, reverse=True):
        one = cross_fit(design, y, folds, penalty, w)
        loss = log_loss(y, one.predict(design), w)
        if loss < least:
            best, least = one, loss
    return best


# --- ceteris-paribus scores -------------------------------------------------------------------


@dataclass(frozen=True)
class Flip:
    """The inputs of a flip of feature j from a to b, by row of the target.

    is_a, is_b: 1{x_j = v}; f_a, f_b: the model at the flipped rows; h_a, h_b: h there;
    e_a, e_b: P(X_j = v | X_-j, S = 0).
    """

    is_a: np.ndarray
    is_b: np.ndarray
    f_a: np.ndarray
    f_b: np.ndarray
    h_a: np.ndarray
    h_b: np.ndarray
    e_a: np.ndarray
    e_b: np.ndarray


def ceteris_paribus(metric, y, f, flip, w=None):
    """(gamma, IF): doubly robust E0[psi(b, X_-j) - psi(a, X_-j)] and its influence values.

    s_v = c0_v + c1_v h_v + 1{x_j = v}/e_v c1_v (Y - h_v), D_v the same mean with d0 and d1,
    gamma = mean(s_b - s_a)/B, IF = [s_b - s_a - mean - (D_b - D_a) u/B - gamma (b - B)]/B.
    """
    value, influence = 0.0, np.zeros(len(y))
    for name, weight in as_combination(metric).items():
        a, b = parts(name, y, f)
        R, B = rate(name, y, f, w)
        u = a - R * b
        s, D = {}, {}
        for v, its, f_v, h_v, e_v in (
            ("a", flip.is_a, flip.f_a, flip.h_a, flip.e_a),
            ("b", flip.is_b, flip.f_b, flip.h_b, flip.e_b),
        ):
            c0, c1, d0, d1 = coefficients(name, f_v, R)
            residual = its / e_v * (y - h_v)
            s[v] = c0 + c1 * h_v + c1 * residual
            D[v] = mean(d0 + d1 * h_v + d1 * residual, w)
        difference = s["b"] - s["a"]
        gamma = mean(difference, w) / B
        IF = difference - gamma * B - (D["b"] - D["a"]) * u / B - gamma * (b - B)
        value += weight * gamma
        influence += weight * IF / B
    return value, influence


def gradients(metric, y, f, flip, x_a, x_b, z, w=None):
    """(per row) derivatives of gamma by the coefficients of h and of e_b (binary feature).

    h: [(1 - 1{b}/e_b) c1_b h_b (1 - h_b) x_b - (1 - 1{a}/e_a) c1_a h_a (1 - h_a) x_a] / B,
    e: [-1{b}/e_b (1 - e_b) c1_b (Y - h_b) z - 1{a}/e_a e_b c1_a (Y - h_a) z] / B.
    """
    by_h, by_e = np.zeros_like(x_a), np.zeros_like(z)
    for name, weight in as_combination(metric).items():
        R, B = rate(name, y, f, w)
        c_a, c_b = coefficients(name, flip.f_a, R)[1], coefficients(name, flip.f_b, R)[1]
        at_b = (1 - flip.is_b / flip.e_b) * c_b * flip.h_b * (1 - flip.h_b)
        at_a = (1 - flip.is_a / flip.e_a) * c_a * flip.h_a * (1 - flip.h_a)
        by_h += weight / B * (at_b[:, None] * x_b - at_a[:, None] * x_a)
        e = -flip.is_b / flip.e_b * (1 - flip.e_b) * c_b * (y - flip.h_b)
        e = e - flip.is_a / flip.e_a * flip.e_b * c_a * (y - flip.h_a)
        by_e += weight / B * e[:, None] * z
    return by_h, by_e


def stacked(influence, gradient, fit, design, y, w=None):
    """IF + (d gamma / d beta)' IF_beta: the gradient averaged over all rows (at the cross-fitted
    values), IF_beta of one fit of all rows with the penalty of the cross-fit."""
    w = ones_unless(w, len(y))
    change = change_of_fit(fit, design, y, w) @ mean(gradient, w)
    added = np.zeros(len(y))
    np.divide(w.sum() * change, w, out=added, where=w > 0)
    return influence + added


def refusal(y, flip, w=None):
    """Why a ceteris-paribus score is refused, or "": the largest share of w/e weights of an arm
    above 0.1, or fewer than 10 (Kish-effective) rows of either label in an arm."""
    w = ones_unless(w, len(y))
    for arm, its, e in (("a", flip.is_a, flip.e_a), ("b", flip.is_b, flip.e_b)):
        at = np.asarray(its).astype(bool)
        for label in (0, 1):
            rows = at & (y == label)
            if not rows.any() or kish(w[rows]) < FEWEST_OF_LABEL - 1e-9:
                return f"arm {arm}: too few rows with label {label}"
        weights = w[at] / e[at]
        if weights.max() / weights.sum() > LARGEST_SHARE_OF_ARM:
            return f"arm {arm}: largest weight share"
    return ""


def larger_of_two(value, plain, stacked_influence, w=None):
    """The larger of the two standard errors, with its influence values and its df."""
    plain_se, stacked_se = standard_error(plain, w)[0], standard_error(stacked_influence, w)[0]
    chosen = plain if plain_se >= stacked_se else stacked_influence
    se, df = standard_error(chosen, w)
    return Estimate(value, se, df, chosen, extra={"plain": plain_se, "stacked": stacked_se})


def ceteris_paribus_logistic(metric, X, y, f, model, j, folds, w=None, pairs=(None, None)):
    """The whole of it for a binary feature j with the default nuisances, 0 -> 1.

    `model(X)` gives f at flipped rows; `pairs` are the products of h and of e (None: all).
    """
    X = np.asarray(X, dtype=float)
    X_a, X_b, rest = X.copy(), X.copy(), np.delete(X, j, axis=1)
    X_a[:, j], X_b[:, j] = 0.0, 1.0
    basis_h, basis_e = default_basis(X, w, pairs[0]), default_basis(rest, w, pairs[1])
    design, z, x_j = basis_h.design(X), basis_e.design(rest), X[:, j]
    h = cross_fit_tuned(design, y, folds, w)
    e = cross_fit_tuned(z, x_j, folds, w)
    x_a, x_b, e_b = basis_h.design(X_a), basis_h.design(X_b), e.predict(z)
    flip = Flip(1 - x_j, x_j, model(X_a), model(X_b), h.predict(x_a), h.predict(x_b), 1 - e_b, e_b)
    value, plain = ceteris_paribus(metric, y, f, flip, w)
    by_h, by_e = gradients(metric, y, f, flip, x_a, x_b, z, w)
    fit_h = ridge_logistic(design, y, w, h.penalty)
    fit_e = ridge_logistic(z, x_j, w, e.penalty)
    full = stacked(stacked(plain, by_h, fit_h, design, y, w), by_e, fit_e, z, x_j, w)
    return larger_of_two(value, plain, full, w), refusal(y, flip, w)


def plug_in(metric, flip, rates, w=None):
    """mean of psi(b, X_-j) - psi(a, X_-j) with h as if it were true (compat="paper"), and the
    standard error sd / sqrt(n) that goes with it (ddof 1)."""
    difference = psi_of_x(metric, flip.f_b, flip.h_b, rates)
    difference = difference - psi_of_x(metric, flip.f_a, flip.h_a, rates)
    w = ones_unless(w, len(difference))
    value, n = mean(difference, w), len(difference)
    return value, math.sqrt(n / (n - 1) * np.sum((w * (difference - value)) ** 2)) / w.sum()


def partialled_out(metric, y, f, x, e, expected, w=None):
    """E[(psi - l)(x - e)] / E[(x - e)^2], l = E[psi | X_-j] (`expected`), e = E[x_j | X_-j].

    With r = x - e and v = E[r^2]:
    IF = (psi - l - theta r) r / v - sum over the combination of weight
         {E[b r]/v u/B^2 + theta_k (b - B)/B}, theta_k = E[psi_k r]/v (influence of R and of B).
    """
    r = x - e
    v = mean(r**2, w)
    psi = psi_rows(metric, y, f, w)
    theta = mean((psi - expected) * r, w) / v
    influence = (psi - expected - theta * r) * r / v
    for name, weight in as_combination(metric).items():
        a, b = parts(name, y, f)
        R, B = rate(name, y, f, w)
        u = a - R * b
        theta_k = mean(u / B * r, w) / v
        influence = influence - weight * (mean(b * r, w) / v * u / B**2 + theta_k * (b - B) / B)
    se, df = standard_error(influence, w)
    return Estimate(theta, se, df, influence)


# --- descent ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A part of the data: target rows (y, f, h, w) and those of the others; X of the target."""

    y0: np.ndarray
    f0: np.ndarray
    h0: np.ndarray
    y1: np.ndarray
    f1: np.ndarray
    w0: np.ndarray | None = None
    w1: np.ndarray | None = None
    X0: np.ndarray | None = None

    def gap(self, metric, factor):
        """(M, se) with the target's weights times `factor`."""
        w0 = ones_unless(self.w0, len(self.y0)) * factor
        return gap(metric, (self.y0, self.f0, w0), (self.y1, self.f1, self.w1))

    def events(self, metric):
        """The fewest effective events sum b, over both groups and the combination."""
        return min(
            events_of(parts(name, y, f)[1], ones_unless(w, len(y)))
            for name in as_combination(metric)
            for y, f, w in ((self.y0, self.f0, self.w0), (self.y1, self.f1, self.w1))
        )


def descent_path(metric, fit, n_steps, step=0.1):
    """Algorithm 1 by reweighting on the fit part: a list of (signed step, {name: (R, B)}).

    psi(x) with R and B by h under the present weights, so that its mean is 0. The factor of a row
    is times 1 - step sign(gap) psi(x), the step at most 1 / max(sign(gap) psi).
    """
    factor, path = np.ones(len(fit.y0)), []
    w0 = ones_unless(fit.w0, len(fit.y0))
    for _ in range(n_steps):
        rates = rates_of(metric, fit.h0, fit.f0, w0 * factor)
        now = sum(
            weight * (rates[name][0] - rate(name, fit.y1, fit.f1, fit.w1)[0])
            for name, weight in as_combination(metric).items()
        )
        psi = np.sign(now) * psi_of_x(metric, fit.f0, fit.h0, rates)
        size = min(step, 1 / psi.max()) if psi.max() > 0 else step
        path.append((np.sign(now) * size, rates))
        factor = np.maximum(factor * (1 - size * psi), 0.0)
    return path


def factors(metric, path, f, h):
    """The factors (iterates 0..T, rows) of any rows, clipped at 0."""
    rows = [np.ones(len(f))]
    for size, rates in path:
        rows.append(np.maximum(rows[-1] * (1 - size * psi_of_x(metric, f, h, rates)), 0.0))
    return np.array(rows)


def weighted_marginals(X, w, level=0.95):
    """The means of the features under the weights with normal intervals (table 2 of the paper):
    se^2 = n/(n - 1) sum w^2 (x - m)^2 / (sum w)^2."""
    m = mean(X, w)
    n = np.sum(w > 0)
    se = np.sqrt(n / (n - 1) * np.sum((w[:, None] * (X - m)) ** 2, axis=0)) / w.sum()
    half = stats.norm.isf((1 - level) / 2) * se
    return np.column_stack([m, m - half, m + half])


def descent(metric, fit, stop, report, tolerance, n_steps=100, step=0.1, rule="bound", on="report"):
    """Descent with a stopping rule; the grid fixed beforehand is every iterate 0..n_steps.

    Stops at the first iterate where the effective sample size of the stop part is below n/10 (no
    claim) or |gap| + 1.645 se of the stop part is below the tolerance (rule "point": |gap|, which
    is broken). `on`: the part that reports; "fit" is the broken variant.
    """
    used = (fit, stop, report)
    smallest = ONE_SIDED * stop.gap(metric, np.ones(len(stop.y0)))[1]
    answer = {"smallest_tolerance": smallest, "claim": False, "iterate": None, "reason": ""}
    if min(part.events(metric) for part in used) < FEWEST_EVENTS_OF_PART:
        return answer | {"reason": "refused: too few events"}
    path = descent_path(metric, fit, n_steps, step)
    at_stop = factors(metric, path, stop.f0, stop.h0)
    w_stop = ones_unless(stop.w0, len(stop.y0))
    n_rows = kish(w_stop)
    answer["reason"] = "grid ended"
    for t, factor in enumerate(at_stop):
        answer["iterate"] = t
        ess = kish(w_stop * factor)
        if ess < n_rows / 10:
            answer["reason"] = "effective sample size"
            break
        value, se = stop.gap(metric, factor)
        bound = abs(value) + (ONE_SIDED * se if rule == "bound" else 0.0)
        if bound < tolerance:
            answer |= {"claim": True, "reason": "tolerance", "bound": bound}
            break
    t = answer["iterate"]
    part = {"fit": fit, "stop": stop, "report": report}[on]
    factor = factors(metric, path, part.f0, part.h0)[t]
    value, se = part.gap(metric, factor)
    half = stats.norm.isf(0.025) * se
    answer |= {"gap": value, "se": se, "interval": (value - half, value + half), "path": path[:t]}
    answer["ess"] = kish(ones_unless(part.w0, len(part.y0)) * factor)
    if part.X0 is not None:
        weights = ones_unless(part.w0, len(part.y0)) * factor
        answer["marginals"] = weighted_marginals(part.X0, weights)
    return answer


# --- repair -----------------------------------------------------------------------------------


def repair_values(name, h, f_to, R1):
    """v(x, x') of the page, cells (rows of h) by destinations (values of f): the gap of the rows
    after the map, which keep their own y, is 0 where sum n q v = 0."""
    h, f_to = np.asarray(h, dtype=float)[:, None], np.asarray(f_to, dtype=float)[None]
    return {
        "fpr": lambda: (1 - h) * (f_to - R1),
        "fnr": lambda: h * (1 - f_to - R1),
        "tpr": lambda: h * (f_to - R1),
        "fdr": lambda: f_to * (1 - h - R1),
        "ppv": lambda: f_to * (h - R1),
        "selection_rate": lambda: f_to - R1 + 0 * h,
    }[name]()


def rate_after_map(name, n, h, f_to, plan):
    """The rate when cell x with n rows and mean label h goes to x' with share plan[x, x']."""
    above = below = 0.0
    for cell in range(len(n)):
        for to in range(len(f_to)):
            a, b = parts(name, h[cell], f_to[to])
            above += n[cell] * plan[cell, to] * a
            below += n[cell] * plan[cell, to] * b
    return above / below if below > 0 else math.nan


def envelope(v, C, start):
    """The segments (slope, from, to) of the lower hull of the points (v, C) from `start` towards
    smaller v, where C[start] is the least: what a unit less of v costs, cheapest first."""
    segments, now = [], start
    while True:
        left = [j for j in range(len(v)) if v[j] < v[now] and np.isfinite(C[j])]
        if not left:
            return segments
        slopes = {j: (C[j] - C[now]) / (v[now] - v[j]) for j in left}
        least = min(slopes.values())
        to = min((j for j in left if slopes[j] <= least + 1e-15), key=lambda j: v[j])
        segments.append((slopes[to], now, to))
        now = to


def direct_repair(name, n, h, f_to, C, R1, floor=0.0):
    """The cheapest randomised map x -> x' with gap 0 (method="direct").

    Every cell starts at its cheapest destination and moves down its lower hull; over all cells the
    cheapest moves first, the last one in part (the randomised tie). Its slope is the multiplier
    lambda of v: every cell is at an argmin of C + lambda v, and dual = sum n min (C + lambda v).
    FDR and PPV: "cannot be reached" if the mean of f(x') falls below the floor (looked at after).
    """
    v, n = repair_values(name, h, f_to, R1), np.asarray(n, dtype=float)
    start = [int(np.argmin(row)) for row in C]
    need = sum(n[c] * v[c, start[c]] for c in range(len(n)))
    side = 1.0 if need >= 0 else -1.0
    plan = np.zeros_like(v)
    plan[np.arange(len(n)), start] = 1.0
    moves = []
    for c in range(len(n)):
        moves += [(*segment, c) for segment in envelope(side * v[c], C[c], start[c])]
    left, multiplier = abs(need), 0.0
    for slope, before, to, c in sorted(moves, key=lambda move: move[0]):
        if left <= 1e-12 * n.sum():
            break
        gain = n[c] * side * (v[c, before] - v[c, to])
        share = min(1.0, left / gain) if gain > 0 else 1.0
        plan[c, before] -= share
        plan[c, to] += share
        left, multiplier = (0.0 if share < 1 else left - gain), side * slope
    reduced = np.where(np.isfinite(C), np.where(np.isfinite(C), C, 0) + multiplier * v, np.inf)
    cost = sum(n[c] * plan[c, j] * C[c, j] for c, j in zip(*np.nonzero(plan), strict=True))
    answer = {
        "plan": plan,
        "multiplier": multiplier,
        "cost": cost,
        "dual": float(n @ reduced.min(axis=1)),
        "gap": rate_after_map(name, n, h, f_to, plan) - R1,
        "mean_f": float(n @ plan @ f_to / n.sum()),
        "status": "ok",
    }
    low = name in ("fdr", "ppv") and answer["mean_f"] < floor
    if left > 1e-9 * max(1.0, abs(need)) or low or math.isnan(answer["gap"]):
        answer["status"] = "cannot be reached"
    return answer


def direct_repair_program(name, n, h, f_to, C, R1, floor=None):
    """The same as a linear program; with a floor for the mean of f(x') as a second constraint."""
    v, n = repair_values(name, h, f_to, R1), np.asarray(n, dtype=float)
    cells, to = v.shape
    finite = np.isfinite(C)
    of_cell = np.kron(np.eye(cells), np.ones(to))
    lowest = None if floor is None else -np.tile(f_to, cells)[None]
    answer = optimize.linprog(
        np.where(finite, C, 0).ravel(),
        A_eq=np.vstack([of_cell, v.ravel()]),
        b_eq=np.r_[n, 0.0],
        A_ub=lowest,
        b_ub=None if floor is None else [-floor * n.sum()],
        bounds=[(0, None if ok else 0) for ok in finite.ravel()],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if answer.status != 0:
        return math.nan, None
    return answer.fun, answer.x.reshape(cells, to) / n[:, None]


def transport(source, target, C, common=True):
    """(cost, moved mass (cells, cells)) of the full linear program, in counts, tolerance 1e-9.

    `target` is scaled to the total of `source`. With `common` the mass that both have in a cell
    stays (exact for a metric C). NaN and None if infeasible.
    """
    source = np.asarray(source, dtype=float)
    target = np.asarray(target, dtype=float) * source.sum() / np.sum(target)
    stays = np.minimum(source, target) if common else np.zeros(len(source))
    a, b = source - stays, target - stays
    rows, columns = np.flatnonzero(a > 0), np.flatnonzero(b > 0)
    moved = np.diag(stays)
    if not len(rows):
        return 0.0, moved
    inside = C[np.ix_(rows, columns)]
    finite = np.isfinite(inside)
    out = np.kron(np.eye(len(rows)), np.ones(len(columns)))
    into = np.kron(np.ones(len(rows)), np.eye(len(columns)))
    answer = optimize.linprog(
        np.where(finite, inside, 0).ravel(),
        A_eq=np.vstack([out, into[:-1]]),
        b_eq=np.r_[a[rows], b[columns][:-1]],
        bounds=[(0, None if ok else 0) for ok in finite.ravel()],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if answer.status != 0:
        return math.nan, None
    moved[np.ix_(rows, columns)] += answer.x.reshape(len(rows), len(columns))
    return answer.fun, moved


# --- CAL and DA -------------------------------------------------------------------------------


def calibration(y, f, h, w=None):
    """CAL = E|h - f| of one group: the mean of sgn(h_-i - f_i)(Y_i - f_i), h cross-fitted.

    A two-sided interval only where CAL >= 5 standard errors, else "not distinguishable from
    calibrated" and the one-sided 95 % lower limit.
    """
    terms = np.sign(h - f) * (y - f)
    w = ones_unless(w, len(terms))
    value, n = mean(terms, w), len(terms)
    se = math.sqrt(n / (n - 1) * np.sum((w * (terms - value)) ** 2)) / w.sum()
    answer = {"value": value, "se": se, "lower": value - ONE_SIDED * se, "status": "ok"}
    if value < CAL_RATIO * se:
        return answer | {"status": "not distinguishable from calibrated"}
    half = stats.norm.isf(0.025) * se
    return answer | {"interval": (value - half, value + half)}


def input_alignment(l0, l1):
    """DA_in from l = logit P(S = 1) - logit pi(x) (an estimate of log dP0/dP1), cross-fitted.

    D = mean_0 l - (mean_1 exp(l) - 1), se^2 = var_0(l)/n_0 + var_1(exp l)/n_1 (ddof 1); a lower
    bound D - 1.645 se, refused unless the largest share of exp(l) <= 0.05 and its mean in .9..1.1.
    """
    ratio = np.exp(l1)
    value = l0.mean() - (ratio.mean() - 1)
    se = math.sqrt(l0.var(ddof=1) / len(l0) + ratio.var(ddof=1) / len(l1))
    share = ratio.max() / ratio.sum()
    status = "ok"
    if share > DA_SHARE:
        status = "refused: largest weight share"
    elif not DA_BAND[0] <= ratio.mean() <= DA_BAND[1]:
        status = "refused: mean weight"
    return {"value": value, "se": se, "lower": value - ONE_SIDED * se, "share": share} | {
        "mean_ratio": ratio.mean(),
        "status": status,
    }


def input_log_ratio(X0, X1, folds, pairs=None, penalties=PENALTIES):
    """(l0, l1) by the default nuisance: rows of the target first in `folds`."""
    X, s = np.vstack([X0, X1]), np.r_[np.zeros(len(X0)), np.ones(len(X1))]
    design = default_basis(X, pairs=pairs).design(X)
    crossed = cross_fit_tuned(design, s, folds, penalties=penalties)
    logit = np.zeros(len(s))
    for k, fit in enumerate(crossed.fits):
        logit[folds == k] = design[folds == k] @ fit.coef
    log_ratio = special.logit(s.mean()) - logit
    return log_ratio[: len(X0)], log_ratio[len(X0) :]


def output_alignment(f0, f1):
    """DA_out = KL(Bernoulli(mean f0) || Bernoulli(mean f1)); inf where a decision that the target
    gets is one the others never get."""
    return kl_bernoulli(float(np.mean(f0)), float(np.mean(f1)))
