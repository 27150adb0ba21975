"""Slow, plain reference for the extremes lens (Monjezi et al. 2025).

Written from the statistics page (section 5, "the page") and the file of its measurements
("measured"), not from the library. Every function does the obvious thing.

Notation: c counterfactual discrimination, t its transformed scale, u the threshold, y_1..y_k the
excesses t - u over it, M = m k / n for a horizon of m rows; xi shape, sigma scale, th = xi / sigma.
x levels on the scale of t, y0 = x - u; X_(1) is the largest. Horizons are in rows (interactions).

Conventions: excesses are arrays (..., k) and levels broadcast against their leading axes, so a
loop over replicates or levels is one call. The limit xi = 0 is taken where |xi| < 1e-9.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, stats

LOWEST_SHAPE = -1.0
HIGHEST_SHAPE = 3.0
NO_SHAPE = 1e-9

NODES = np.array([*(round(-0.8 + 0.1 * i, 1) for i in range(13)), 0.55, 0.7, 0.9, 1.2])
"""Nodes of xi of the cuts. The page counts 14; what it lists are 17."""

LOWER = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1)
PROBABILITIES = np.array([*LOWER, 0.5, *(1 - p for p in reversed(LOWER))])
FLAT_NODES = 3
"""Below the first node of xi: the worst of this many nodes."""

FEWEST_ROWS = 100
FARTHEST = 5
"""Refused: fewer rows, or a horizon above this many times the rows."""

FEWEST_DISTINCT = 5
FEWEST_EXPECTED = 3.0
"""Atoms: distinct exceedances a fit needs. Two samples: the M that both groups need."""

GOLDEN = (math.sqrt(5) - 1) / 2


def maximise(function, low, high, points=81, steps=42):
    """(argmax, maximum) of a function of one number in [low, high]: a grid, then golden section.

    low and high may be arrays: one maximum for each element.
    """
    low, high = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
    grid = np.array([low + (high - low) * q for q in np.linspace(0, 1, points)])
    values = np.array([function(x) for x in grid])
    best = np.argmax(values, axis=0)
    top = np.max(values, axis=0)
    at = np.take_along_axis(grid, best[None], axis=0)[0]
    width = (high - low) / (points - 1)
    a, b = np.maximum(at - width, low), np.minimum(at + width, high)
    for _ in range(steps):
        left, right = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
        keep_left = function(left) >= function(right)
        a, b = np.where(keep_left, a, left), np.where(keep_left, right, b)
    middle = (a + b) / 2
    value = function(middle)
    return np.where(value >= top, middle, at), np.maximum(value, top)


# --- discrimination and its scale -------------------------------------------------------------


def discrimination(score, counterfactual_score):
    """c = f(x, z') - f(x, z)."""
    return np.asarray(counterfactual_score, dtype=float) - np.asarray(score, dtype=float)


def to_t(c, upper=None):
    """t = -log(1 - c / b) for a known upper end b, t = c without; infinite at b.

    Row bounds: give the shares c / bound and b = 1.
    """
    c = np.asarray(c, dtype=float)
    if upper is None:
        return c
    with np.errstate(divide="ignore"):
        return -np.log1p(-np.minimum(c / upper, 1.0))


def from_t(t, upper=None):
    """c = b (1 - exp(-t))."""
    t = np.asarray(t, dtype=float)
    return t if upper is None else -upper * np.expm1(-t)


def row_shares(c, bounds):
    """(shares c / bound, number of rows with bound 0, which are left out)."""
    c, bounds = np.asarray(c, dtype=float), np.asarray(bounds, dtype=float)
    return c[bounds > 0] / bounds[bounds > 0], int(np.sum(bounds <= 0))


def default_k(n):
    """max(15, round(n^(2/3) / log log n))."""
    return max(15, round(n ** (2 / 3) / math.log(math.log(n))))


def excesses(t, k):
    """(u, y): u the (k+1)-th largest, y the k excesses over it, the largest first."""
    top = np.sort(np.asarray(t, dtype=float))[::-1][: k + 1]
    return top[k], top[:k] - top[k]


# --- the generalised Pareto law ---------------------------------------------------------------


def gpd_survival(y, xi, sigma):
    """(1 + xi y / sigma)^(-1/xi), 0 beyond the end point; exp(-y / sigma) for xi = 0."""
    y, xi, sigma = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (y, xi, sigma)))
    shape = np.where(np.abs(xi) < NO_SHAPE, 1.0, xi)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        tail = np.exp(-np.log1p(np.maximum(shape * y / sigma, -1.0)) / shape)
        return np.where(np.abs(xi) < NO_SHAPE, np.exp(-y / sigma), tail)


def growth(xi, M):
    """(M^xi - 1) / xi, log M for xi = 0: the excess that 1 in M excesses exceeds, in sigmas."""
    xi = np.asarray(xi, dtype=float)
    shape = np.where(np.abs(xi) < NO_SHAPE, 1.0, xi)
    return np.where(np.abs(xi) < NO_SHAPE, np.log(M), np.expm1(shape * np.log(M)) / shape)


def gpd_log_likelihood(y, xi, sigma):
    """-k log sigma - (1 + 1/xi) sum log(1 + xi y / sigma); -inf outside of the support."""
    xi, sigma = np.broadcast_arrays(np.asarray(xi, dtype=float), np.asarray(sigma, dtype=float))
    k = y.shape[-1]
    shape = np.where(np.abs(xi) < NO_SHAPE, 1.0, xi)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logs = np.log1p((shape / sigma)[..., None] * y).sum(-1)
        general = -(1 + 1 / shape) * logs
        general = np.where(np.abs(shape + 1) < NO_SHAPE, 0.0, general)
        inside = 1 + shape * y.max(-1) / sigma > -1e-12
        exponential = -y.sum(-1) / sigma
        value = -k * np.log(sigma) + np.where(np.abs(xi) < NO_SHAPE, exponential, general)
    inside = inside | (np.abs(xi) < NO_SHAPE)
    return np.where(inside & (sigma > 0) & ~np.isnan(value), value, -np.inf)


def fit_gpd(y):
    """(xi, sigma, log likelihood): the profile likelihood over th > -1 / y_max.

    l(th) = -k [log(xi(th) / th) + xi(th) + 1], xi(th) = mean log(1 + th y) >= -1, sigma = xi / th;
    and the edge xi = -1, sigma = y_max, l = -k log y_max. Searched in log(1 + th y_max).
    """
    y = np.asarray(y, dtype=float)
    k, largest, average = y.shape[-1], y.max(-1), y.mean(-1)

    def shape_and_scale(s):
        th = np.expm1(s) / largest
        xi = np.log1p(th[..., None] * y).mean(-1)
        flat = np.abs(s) < NO_SHAPE
        return np.where(flat, 0.0, xi), np.where(flat, average, xi / np.where(flat, 1.0, th))

    def profile(s):
        xi, sigma = shape_and_scale(s)
        return np.where(xi >= LOWEST_SHAPE, -k * (np.log(sigma) + xi + 1), -np.inf)

    reach = np.full(largest.shape, 20.0)
    s, value = maximise(profile, -reach, reach, points=121)
    xi, sigma = shape_and_scale(s)
    edge = -k * np.log(largest)
    at_edge = edge >= value
    return (
        np.where(at_edge, LOWEST_SHAPE, xi),
        np.where(at_edge, largest, sigma),
        np.maximum(edge, value),
    )


def fit_at_level(y, y0, M):
    """(xi, sigma, log likelihood) of the fit whose level of horizon M is y0 > 0.

    sigma = xi y0 / (M^xi - 1); xi in [max(-1, log(1 - y0 / y_max) / log M if y0 < y_max), 3].
    """
    y, y0 = np.asarray(y, dtype=float), np.asarray(y0, dtype=float)
    share = y0 / y.max(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        support = np.log1p(-np.minimum(share, 1.0)) / math.log(M)
    low = np.maximum(LOWEST_SHAPE, np.where(share < 1, support, LOWEST_SHAPE))
    xi, value = maximise(
        lambda xi: gpd_log_likelihood(y, xi, y0 / growth(xi, M)),
        low,
        HIGHEST_SHAPE,
        points=49,
        steps=34,
    )
    return xi, y0 / growth(xi, M), value


def fit_at_shape(y, xi):
    """(sigma, log likelihood) of the fit at a given shape: sigma > -xi y_max, searched in logs.

    xi = -1: sigma = y_max; xi = 0: sigma = mean y.
    """
    y, xi = np.asarray(y, dtype=float), np.asarray(xi, dtype=float)
    least = np.maximum(0.0, -xi) * y.max(-1)
    scale = y.mean(-1)
    offset, value = maximise(
        lambda w: gpd_log_likelihood(y, xi, least + scale * np.exp(w)),
        np.full(np.shape(least), -25.0),
        10.0,
        points=61,
        steps=36,
    )
    edge = gpd_log_likelihood(y, LOWEST_SHAPE, y.max(-1))
    at_edge = xi <= LOWEST_SHAPE
    sigma = np.where(at_edge, y.max(-1), least + scale * np.exp(offset))
    return sigma, np.where(at_edge, edge, value)


def return_excess(xi, sigma, M):
    """(sigma / xi)(M^xi - 1), sigma log M for xi = 0."""
    return sigma * growth(xi, M)


def return_level(u, xi, sigma, M, upper=None):
    """x_m = u + (sigma / xi)(M^xi - 1), mapped back to c."""
    return from_t(u + return_excess(xi, sigma, M), upper)


def end_point(u, xi, sigma, upper=None):
    """u - sigma / xi for xi < 0, else infinite; mapped back to c (where infinite is b)."""
    return from_t(u - sigma / xi if xi < 0 else math.inf, upper)


def zhang_stephens(y):
    """(xi, sigma) of Zhang and Stephens (2009), a point estimate.

    b_j = 1/y_(k) + (1 - sqrt(J / (j - 0.5))) / (3 y_([k/4 + 0.5])), J = 20 + [sqrt k]; b = -th is
    the mean of b_j with weights exp l(b_j); xi = mean log(1 - b y), sigma = -xi / b.
    """
    y = np.sort(np.asarray(y, dtype=float))
    k = len(y)
    J = 20 + math.floor(math.sqrt(k))
    j = np.arange(1, J + 1)
    b = 1 / y[-1] + (1 - np.sqrt(J / (j - 0.5))) / (3 * y[math.floor(k / 4 + 0.5) - 1])
    xi = np.log1p(-b[:, None] * y).mean(1)
    value = k * (np.log(-b / xi) - xi - 1)
    w = np.exp(value - value.max())
    b = np.sum(w * b) / w.sum()
    xi = np.log1p(-b * y).mean()
    return xi, -xi / b


# --- signed roots and their cuts --------------------------------------------------------------


def root_of(gap, sign):
    """Sign times sqrt(2 gap), 0 where rounding makes the gap negative."""
    return sign * np.sqrt(2 * np.maximum(gap, 0.0))


def signed_root(y, y0, M, fit=None):
    """(r, xi~): r = sign(yhat - y0) sqrt(2 (l^ - l~(y0))) and the shape of the fit at y0.

    y0 <= 0 (a level below the threshold): r = +inf and xi~ = xi^, the limit as y0 falls to 0.
    """
    y, y0 = np.asarray(y, dtype=float), np.asarray(y0, dtype=float)
    xi, sigma, top = fit_gpd(y) if fit is None else fit
    known = (y0 > 0) & np.isfinite(y0)
    at, _, value = fit_at_level(y, np.where(known, y0, 1.0), M)
    r = root_of(top - value, np.sign(return_excess(xi, sigma, M) - y0))
    r = np.where(known, r, np.where(y0 > 0, -np.inf, np.inf))
    return r, np.where(known, at, xi)


def signed_root_of_shape(y, xi0, fit=None):
    """sign(xi^ - xi0) sqrt(2 (l^ - l(xi0)))."""
    xi, _, top = fit_gpd(y) if fit is None else fit
    return root_of(top - fit_at_shape(y, xi0)[1], np.sign(xi - xi0))


def exponential_to_gpd(e, xi):
    """(exp(xi E) - 1) / xi of standard exponentials: the GPD with sigma = 1."""
    return e if abs(xi) < NO_SHAPE else np.expm1(xi * e) / xi


def null_roots(k, n, m, xi, n_simulations, seed):
    """Roots r(x_m) at the truth: U ~ Beta(k+1, n-k), y0 = ((m U)^xi - 1) / xi, M = m k / n."""
    rng = np.random.default_rng(seed)
    U = rng.beta(k + 1, n - k, n_simulations)
    y = exponential_to_gpd(rng.standard_exponential((n_simulations, k)), xi)
    return signed_root(y, growth(xi, m * U), m * k / n)[0]


def null_roots_of_shape(k, xi, n_simulations, seed):
    """Roots of the shape at the truth: their law depends on (xi, k) only."""
    y = np.random.default_rng(seed).standard_exponential((n_simulations, k))
    return signed_root_of_shape(exponential_to_gpd(y, xi), xi)


def quantiles(values, probabilities=PROBABILITIES):
    """Sample quantiles with linear interpolation."""
    return np.quantile(values, probabilities)


def cuts(k, n, m, xi, n_simulations=1000, seed=0, probabilities=PROBABILITIES):
    """Quantiles of the null law of r(x_m) at the shape xi."""
    return quantiles(null_roots(k, n, m, xi, n_simulations, seed), probabilities)


def cut_table(k, n, m, n_simulations=1000, seed=0, nodes=NODES):
    """A row of PROBABILITIES for each node of xi."""
    rows = [cuts(k, n, m, xi, n_simulations, [seed, i]) for i, xi in enumerate(nodes)]
    return np.array(rows)


def cut_table_of_shape(k, n_simulations=1000, seed=0, nodes=NODES):
    """The same for the root of the shape."""
    return np.array(
        [
            quantiles(null_roots_of_shape(k, xi, n_simulations, [seed, i]))
            for i, xi in enumerate(nodes)
        ]
    )


SCORES = stats.norm.ppf(PROBABILITIES)


def normal_score(r, row):
    """z = Phi^-1 of the null probability of r: linear in r between the quantiles of a row.

    Beyond the outermost quantiles z goes on with slope 1 in r.
    """
    if r < row[0]:
        return SCORES[0] + (r - row[0])
    if r > row[-1]:
        return SCORES[-1] + (r - row[-1])
    return float(np.interp(r, row, SCORES))


def row_at(table, xi, nodes=NODES):
    """The quantiles at a shape, linear in xi between nodes; above the last node the last."""
    xi = min(max(xi, nodes[0]), nodes[-1])
    i = min(int(np.searchsorted(nodes, xi, side="right")) - 1, len(nodes) - 2)
    share = (xi - nodes[i]) / (nodes[i + 1] - nodes[i])
    return (1 - share) * table[i] + share * table[i + 1]


def z_of(r, xi, table, nodes=NODES):
    """z(r) at the shape xi; below the first node the smallest |z| of three, 0 if signs differ."""
    if xi >= nodes[0]:
        return normal_score(r, row_at(table, xi, nodes))
    scores = [normal_score(r, row) for row in table[:FLAT_NODES]]
    if min(scores) <= 0 <= max(scores):
        return 0.0
    return min(scores, key=abs)


def cuts_at(table, xi, lower, upper, nodes=NODES):
    """(low, high) cuts of r at two of PROBABILITIES; below the first node the widest of three."""
    at = [int(np.argmin(np.abs(PROBABILITIES - p))) for p in (lower, upper)]
    if xi >= nodes[0]:
        return tuple(row_at(table, xi, nodes)[at])
    return table[:FLAT_NODES, at[0]].min(), table[:FLAT_NODES, at[1]].max()


def two_sided(z):
    """(p, bounded): 2 Phi(-|z|); bounded where |z| is beyond the last quantile of the table."""
    least = 2 * PROBABILITIES[0]
    p = 2 * stats.norm.sf(abs(z))
    return (least, True) if p < least else (p, False)


# --- one sample -------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Curve:
    """z(x) of one group for the horizon m, on the scale of c."""

    u: float
    y: np.ndarray
    M: float
    table: np.ndarray
    upper: float | None = None

    def __post_init__(self):
        self.fit = fit_gpd(self.y)

    def estimate(self):
        """The fitted return level."""
        xi, sigma, _ = self.fit
        return float(return_level(self.u, xi, sigma, self.M, self.upper))

    def z(self, x):
        """Phi^-1 of the null probability of r at the levels x."""
        x = np.atleast_1d(np.asarray(x, dtype=float))
        r, xi = signed_root(self.y, to_t(x, self.upper) - self.u, self.M, self.fit)
        return np.array([z_of(*row, self.table) for row in zip(r, xi, strict=True)])

    def on_t(self):
        """The curve on the scale of t."""
        return replace(self, upper=None)


def curve(c, m, table, k=None, upper=None):
    """The curve of a sample: threshold at the (k+1)-th largest, M = m k / n."""
    k = default_k(len(c)) if k is None else k
    u, y = excesses(to_t(c, upper), k)
    return Curve(u=u, y=y, M=m * k / len(c), table=table, upper=upper)


def scores_at(samples, x, m, table, k=None, upper=None):
    """(z, r) at x of many samples (rows): an interval holds x where |z| is within its cut."""
    n = samples.shape[1]
    k = default_k(n) if k is None else k
    t = -np.sort(-to_t(samples, upper), axis=1)[:, : k + 1]
    u, y = t[:, k], t[:, :k] - t[:, [k]]
    r, xi = signed_root(y, to_t(x, upper) - u, m * k / n)
    return np.array([z_of(*row, table) for row in zip(r, xi, strict=True)]), r


def levels_around(centre, span, per_decade=6, decades=(-5, 3)):
    """The centre and centre -+ span 10^d, d on an even grid: in order."""
    steps = span * np.logspace(*decades, (decades[1] - decades[0]) * per_decade + 1)
    return np.concatenate([centre - steps[::-1], [centre], centre + steps])


def edge_of(inside, within, outside, steps=30):
    """The border between a point that is inside and one that is not, by bisection."""
    for _ in range(steps):
        middle = (within + outside) / 2
        if inside(middle):
            within = middle
        else:
            outside = middle
    return (within + outside) / 2


def return_level_interval(sample, confidence=0.95):
    """(low, high): the hull of all levels with |z(x)| <= the normal quantile, mapped to c.

    For a confidence among the tabled probabilities: q_low(xi~) <= r <= q_high(xi~).
    """
    cut = stats.norm.ppf((1 + confidence) / 2)
    on_t = sample.on_t()
    estimate = on_t.estimate()
    grid = levels_around(estimate, estimate - sample.u)
    grid = np.concatenate([[sample.u], grid[grid > sample.u]])
    inside = np.flatnonzero(np.abs(on_t.z(grid)) <= cut)
    first, last = inside[0], inside[-1]

    def within(x):
        return abs(on_t.z(x)[0]) <= cut

    low = edge_of(within, grid[first], grid[first - 1])
    high = edge_of(within, grid[last], grid[last + 1])
    return float(from_t(low, sample.upper)), float(from_t(high, sample.upper))


def shape_interval(y, table, confidence=0.95):
    """(low, high): the hull of all xi0 in [-1, 3] whose root is between its cuts at xi0."""
    cut = stats.norm.ppf((1 + confidence) / 2)
    fit = fit_gpd(y)

    def within(xi0):
        return abs(z_of(float(signed_root_of_shape(y, xi0, fit)), xi0, table)) <= cut

    grid = np.linspace(LOWEST_SHAPE, HIGHEST_SHAPE, 41)
    inside = [i for i, xi0 in enumerate(grid) if within(xi0)]
    if not inside:
        return math.nan, math.nan
    first, last = inside[0], inside[-1]
    low = grid[0] if first == 0 else edge_of(within, grid[first], grid[first - 1], 25)
    high = grid[-1] if last == 40 else edge_of(within, grid[last], grid[last + 1], 25)
    return float(low), float(high)


def tail_type(interval):
    """III if the interval of xi is below 0, II if above, I if it holds 0."""
    low, high = interval
    if high < 0:
        return "III"
    return "II" if low > 0 else "I"


def feasible(kind):
    """Types I and III: the shape is not above 0 for sure (62 + 14 of the paper's 80 are its 76)."""
    return kind in ("I", "III")


def chi_square_interval(y, u, M, confidence=0.95):
    """All levels on t with r^2 <= the chi-square cut: what the page rejects."""
    cut = stats.norm.ppf((1 + confidence) / 2)
    xi, sigma, _ = fit_gpd(y)
    estimate = float(return_excess(xi, sigma, M))
    grid = levels_around(estimate, estimate)
    grid = np.concatenate([[0.0], grid[grid > 0]])
    inside = np.flatnonzero(np.abs(signed_root(y, grid, M)[0]) <= cut)
    first, last = inside[0], inside[-1]

    def within(y0):
        return abs(signed_root(y, y0, M)[0]) <= cut

    return (
        u + edge_of(within, grid[first], grid[first - 1]),
        u + edge_of(within, grid[last], grid[last + 1]),
    )


# --- order statistics -------------------------------------------------------------------------


def order_ranks(n, m, confidence=0.95):
    """(r, s) of [X_(r), X_(s)], counted from the largest; s = 0: no upper limit.

    r the smallest with P(Bin(n, 1/m) >= r) <= alpha/2, s the largest with
    P(Bin <= s - 1) <= alpha/2.
    """
    half = (1 - confidence) / 2
    law = stats.binom(n, 1 / m)
    r = next(r for r in range(n + 2) if law.sf(r - 1) <= half)
    s = 0
    while law.cdf(s) <= half:
        s += 1
    return r, s


def order_interval(values, m, confidence=0.95):
    """(X_(r), X_(s)): -inf, inf where there is no such rank."""
    top = np.sort(np.asarray(values, dtype=float))[::-1]
    r, s = order_ranks(len(top), m, confidence)
    return (top[r - 1] if r <= len(top) else -math.inf), (top[s - 1] if s else math.inf)


def lower_free(values, m, confidence=0.95):
    """X_(r): the lower limit that every law and every m has."""
    return order_interval(values, m, confidence)[0]


def is_measured(n, m, confidence=0.95):
    """(1 - 1/m)^n <= alpha/2."""
    return (1 - 1 / m) ** n <= (1 - confidence) / 2


def standing(n, m, confidence=0.95):
    """`refused`: n < 100 or m > 5 n; else `measured` where order statistics hold the level."""
    if n < FEWEST_ROWS or m > FARTHEST * n:
        return "refused"
    return "measured" if is_measured(n, m, confidence) else "extrapolated"


def largest_horizon(n):
    """The largest admissible m; 0 below 100 rows."""
    return FARTHEST * n if n >= FEWEST_ROWS else 0


def primary_interval(values, m, fitted, confidence=0.95):
    """Order statistics where measured; else the fitted one, for 3 m <= n not below X_(1) above."""
    n = len(values)
    if is_measured(n, m, confidence):
        return order_interval(values, m, confidence)
    low, high = fitted
    return low, (max(high, np.max(values)) if n >= 3 * m else high)


def at_least(fitted_low, values, m, confidence=0.95):
    """The limit of a claim "at least": the smaller of the fitted one and the free one."""
    return min(fitted_low, lower_free(values, m, confidence))


# --- two samples ------------------------------------------------------------------------------


def least_distance(first, second, centres, rounds=6, points=15):
    """(x, Q): the minimum over x of first(x) + second(x), both squared deviations.

    A grid around every centre, two-sided and geometric, and an even one over all; then ever finer
    even grids in the best two brackets.
    """

    def total(x):
        return first(x) + second(x)

    centres = np.asarray(centres, dtype=float)
    span = np.ptp(centres)
    if span == 0:
        return float(centres[0]), float(total(centres[:1])[0])
    steps = 0.5 * span * 10 ** (-np.arange(15) / 2)
    around = np.concatenate([[x, *(x - steps), *(x + steps)] for x in centres])
    grid = np.unique(np.concatenate([around, np.linspace(centres.min(), centres.max(), 41)]))
    values = total(grid)
    best = np.argsort(values, kind="stable")[:2]
    x, value = grid[best], values[best]
    a, b = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, len(grid) - 1)]
    for _ in range(rounds):
        finer = np.linspace(a, b, points, axis=1)
        at = total(finer.ravel()).reshape(finer.shape)
        j = np.argmin(at, axis=1)
        lower = at[[0, 1], j] < value
        x, value = np.where(lower, finer[[0, 1], j], x), np.minimum(at[[0, 1], j], value)
        a = finer[[0, 1], np.maximum(j - 1, 0)]
        b = finer[[0, 1], np.minimum(j + 1, points - 1)]
    return float(x[np.argmin(value)]), float(np.min(value))


def middle_of(sample):
    """The level with z = 0 (the first sign change going up): the centre of its intervals."""
    estimate = sample.estimate()
    span = estimate - float(from_t(sample.u, sample.upper))
    grid = levels_around(estimate, span, decades=(-5, 1))
    grid = grid[(grid > estimate - span)]
    if sample.upper is not None:
        grid = grid[grid < sample.upper]
    positive = sample.z(grid) > 0
    if positive.all():
        return float(grid[-1])
    last = int(np.argmin(positive))
    if last == 0:
        return float(grid[0])
    return float(edge_of(lambda x: sample.z(x)[0] > 0, grid[last - 1], grid[last]))


def centres_of(sample):
    """The estimate and the level with z = 0."""
    return np.array([sample.estimate(), middle_of(sample)])


def shifted_distance(first, second, delta=0.0, centres=None):
    """(x, Q): min over x of z_1(x + delta)^2 + z_2(x)^2."""
    ours, theirs = centres or (centres_of(first), centres_of(second))
    return least_distance(
        lambda x: first.z(x + delta) ** 2,
        lambda x: second.z(x) ** 2,
        np.concatenate([ours - delta, theirs]),
    )


def equal_levels_test(first, second):
    """(Q, p): Q = min over x of z_1(x)^2 + z_2(x)^2, p = P(chi^2_1 > Q); both need M >= 3."""
    if min(first.M, second.M) < FEWEST_EXPECTED:
        raise ValueError("both groups need M >= 3")
    _, Q = shifted_distance(first, second)
    return Q, float(stats.chi2.sf(Q, 1))


def ecd(first, second):
    """Return level of the unprivileged (first) minus the privileged group."""
    return first.estimate() - second.estimate()


def ecd_interval(first, second, confidence=0.95, steps=20):
    """(low, high): all delta with min over x of z_1(x + delta)^2 + z_2(x)^2 <= cut."""
    cut = stats.chi2.ppf(confidence, 1)
    centres = centres_of(first), centres_of(second)
    centre = centres[0][1] - centres[1][1]
    span = sum(np.ptp(return_level_interval(value, confidence)) for value in (first, second))

    def within(delta):
        return shifted_distance(first, second, delta, centres)[1] <= cut

    limits = []
    for side in (-1, 1):
        reach = span
        while within(centre + side * reach):
            reach *= 2
        limits.append(edge_of(within, centre, centre + side * reach, steps))
    return tuple(float(limit) for limit in limits)


def deviance(count, n, m):
    """2 [N log(N m / n) + (n - N) log((n - N) / (n - n/m))], N rows above a level of horizon m."""
    count = np.asarray(count, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.where(count > 0, count * np.log(count * m / n), 0.0)
        rest = np.where(count < n, (n - count) * np.log((n - count) / (n - n / m)), 0.0)
    return 2 * (above + rest)


def deviance_tail(Q, n, m):
    """P(deviance >= Q) for one group: exact, N ~ Bin(n, 1/m)."""
    count = np.arange(n + 1)
    return float(stats.binom.pmf(count, n, 1 / m)[deviance(count, n, m) >= Q - 1e-9].sum())


def count_above(values, x):
    """#{values > x} for every x."""
    values = np.sort(values)
    return len(values) - np.searchsorted(values, x, side="right")


def deviance_of_ties(values, x, m):
    """The least deviance of a count from #{values > x} to #{values >= x}."""
    n = len(values)
    counts = np.arange(np.sum(values > x), np.sum(values >= x) + 1)
    return float(deviance(counts, n, m).min())


def tail_of_sum(Q, n, m, other):
    """P(deviance of N ~ Bin(n, 1/m) + another number >= Q), `other` the tail of that number."""
    count = np.arange(n + 1)
    rest = Q - deviance(count, n, m)
    return float(np.sum(stats.binom.pmf(count, n, 1 / m) * np.array([other(q) for q in rest])))


def order_test(first, second, m):
    """(Q, p): min over x of the two binomial deviances, p of the sum at the level that both share.

    The page has the larger of the one-sample tails, to be simulated before it is promised: where
    values lie apart it rejects 2.4 % of equal pairs at 1 % (n = 370, m = 100).
    """
    x = np.unique(np.concatenate([first, second]))
    between = sum(
        deviance(count_above(g, np.append(-np.inf, x)), len(g), m) for g in (first, second)
    )
    at = [sum(deviance_of_ties(g, value, m) for g in (first, second)) for value in x]
    Q = min(*between, *at)
    p = tail_of_sum(Q, len(first), m, lambda q: deviance_tail(q, len(second), m))
    return float(Q), p


def free_interval(first, second, m, upper=math.inf, confidence=0.95):
    """Limits of the first level less the second that hold for every law: all counts are tried.

    c is the smallest sum of deviances that is exceeded in at most 1 - confidence. A row count of
    N above the level means that it lies from X_(N+1) to X_(N). Without an upper limit by the rows
    the known end and the other's lower limit stand in.
    """
    groups = [np.sort(value)[::-1] for value in (first, second)]
    counts = [np.arange(len(label) + 1) for label in groups]
    each = [deviance(count, len(count) - 1, m) for count in counts]
    chances = [stats.binom.pmf(count, len(count) - 1, 1 / m) for count in counts]
    sums, chance = np.add.outer(*each), np.multiply.outer(*chances)
    order = np.argsort(-sums, axis=None)
    beyond = np.cumsum(chance.ravel()[order])
    cut = sums.ravel()[order][np.argmax(beyond > 1 - confidence)]
    inside = np.argwhere(sums <= cut + 1e-9)
    highest = [[math.inf, *label] for label in groups]
    lowest = [[*label, -math.inf] for label in groups]
    low = min(lowest[0][i] - highest[1][j] for i, j in inside)
    high = max(highest[0][i] - lowest[1][j] for i, j in inside)
    if math.isinf(low):
        low = lower_free(first, m, confidence) - upper
    if math.isinf(high):
        high = upper - lower_free(second, m, confidence)
    return low, high


def hybrid_test(counted, fitted, m):
    """(Q, p) with the deviance of a group (n >= 3.69 m) in place of z^2, the other's from its fit.

    Steps in x: the minimum is over both sides of every value of the counted group, and over the
    stretch between values around the centre of the fitted one.
    """
    middle = middle_of(fitted)
    values = np.sort(counted)
    x = np.concatenate([values, np.nextafter(values, -np.inf), [middle]])
    Q = np.min(deviance(count_above(values, x), len(values), m) + fitted.z(x) ** 2)
    return float(Q), tail_of_sum(Q, len(values), m, lambda q: stats.chi2.sf(q, 1))


def fitted_level(c, m, k, upper=None):
    """The return level of a sample."""
    u, y = excesses(to_t(c, upper), k)
    xi, sigma, _ = fit_gpd(y)
    return float(return_level(u, xi, sigma, m * k / len(c), upper))


def equal_laws_test(first, second, m, n_permutations=999, seed=0, upper=None):
    """(ECD, p): rows permuted among the groups; p = (1 + #{|ECD*| >= |ECD|}) / (1 + B)."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([first, second])

    def statistic(rows):
        groups = rows[: len(first)], rows[len(first) :]
        levels = [fitted_level(g, m, default_k(len(g)), upper) for g in groups]
        return levels[0] - levels[1]

    observed = statistic(rows)
    drawn = [statistic(rng.permutation(rows)) for _ in range(n_permutations)]
    extreme = sum(abs(value) >= abs(observed) - 1e-12 for value in drawn)
    return observed, (1 + extreme) / (1 + n_permutations)


# --- atoms ------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Grouped:
    """Exceedances in cells: excess edges on t, counts; u and n beside them."""

    u: float
    low: np.ndarray
    high: np.ndarray
    counts: np.ndarray
    n: int

    @property
    def k(self):
        """Exceedances."""
        return int(self.counts.sum())


def grouped(c, resolution, k=None, upper=None):
    """Cells of width `resolution` around the distinct values above the (k+1)-th largest.

    The threshold is the half grid point above that value; cell edges on c go through to_t, an edge
    at or above b is infinite.
    """
    c = np.asarray(c, dtype=float)
    k = default_k(len(c)) if k is None else k
    threshold = np.sort(c)[::-1][k]
    steps = np.rint(c / resolution).astype(int)
    base = round(threshold / resolution)
    values, counts = np.unique(steps[steps > base], return_counts=True)
    u = float(to_t((base + 0.5) * resolution, upper))
    low, high = (to_t((values + side) * resolution, upper) - u for side in (-0.5, 0.5))
    return Grouped(u=u, low=low, high=high, counts=counts, n=len(c))


def grouped_standing(c, resolution, k=None):
    """`fit`, or `order statistics only`: fewer than 5 distinct exceedances, u at the zeros."""
    k = default_k(len(c)) if k is None else k
    cells = grouped(c, resolution, k)
    at_zeros = round(np.sort(c)[::-1][k] / resolution) == 0
    few = len(cells.counts) < FEWEST_DISTINCT
    return "order statistics only" if few or at_zeros else "fit"


def grouped_log_likelihood(cells, xi, sigma):
    """Sum of n_j log(S(low_j) - S(high_j)); S is 0 beyond the end point."""
    xi, sigma = (np.asarray(v, dtype=float)[..., None] for v in (xi, sigma))
    share = gpd_survival(cells.low, xi, sigma) - gpd_survival(cells.high, xi, sigma)
    with np.errstate(divide="ignore"):
        return (cells.counts * np.log(np.maximum(share, 0.0))).sum(-1)


def fit_grouped_at_level(cells, y0, M):
    """(xi, sigma, log likelihood) of the censored fit at a level, xi in [-1, 3]."""
    y0 = np.asarray(y0, dtype=float)
    xi, value = maximise(
        lambda xi: grouped_log_likelihood(cells, xi, y0 / growth(xi, M)),
        np.full(y0.shape, LOWEST_SHAPE),
        HIGHEST_SHAPE,
        points=81,
        steps=36,
    )
    return xi, y0 / growth(xi, M), value


def fit_grouped(cells):
    """(xi, sigma, log likelihood): over sigma for each xi in [-1, 3], then over xi."""
    middle = (cells.low + np.where(np.isfinite(cells.high), cells.high, cells.low)) / 2
    scale = np.sum(cells.counts * middle) / cells.k

    def over_scale(xi):
        return maximise(
            lambda w: grouped_log_likelihood(cells, xi, scale * np.exp(w)),
            np.full(np.shape(xi), -12.0),
            6.0,
            points=61,
            steps=34,
        )

    grid = np.linspace(LOWEST_SHAPE, HIGHEST_SHAPE, 41)
    best = int(np.argmax(over_scale(grid)[1]))
    xi, value = maximise(
        lambda xi: over_scale(xi)[1],
        grid[max(best - 1, 0)],
        grid[min(best + 1, 40)],
        points=3,
        steps=36,
    )
    return float(xi), float(scale * np.exp(over_scale(xi)[0])), float(value)


def grouped_signed_root(cells, y0, M, fit=None):
    """(r, xi~) from the censored likelihood, r = +inf for y0 <= 0; same cuts."""
    y0 = np.asarray(y0, dtype=float)
    xi, sigma, top = fit_grouped(cells) if fit is None else fit
    known = (y0 > 0) & np.isfinite(y0)
    at, _, value = fit_grouped_at_level(cells, np.where(known, y0, 1.0), M)
    r = root_of(top - value, np.sign(return_excess(xi, sigma, M) - y0))
    r = np.where(known, r, np.where(y0 > 0, -np.inf, np.inf))
    return r, np.where(known, at, xi)


@dataclass(kw_only=True)
class GroupedCurve:
    """z(x) from the censored likelihood; used like a Curve."""

    cells: Grouped
    M: float
    table: np.ndarray
    upper: float | None = None

    def __post_init__(self):
        self.u = self.cells.u
        self.fit = fit_grouped(self.cells)

    def estimate(self):
        """The fitted return level."""
        xi, sigma, _ = self.fit
        return float(return_level(self.u, xi, sigma, self.M, self.upper))

    def z(self, x):
        """Phi^-1 of the null probability of r at the levels x."""
        x = np.atleast_1d(np.asarray(x, dtype=float))
        r, xi = grouped_signed_root(self.cells, to_t(x, self.upper) - self.u, self.M, self.fit)
        return np.array([z_of(*row, self.table) for row in zip(r, xi, strict=True)])

    def on_t(self):
        """The curve on the scale of t."""
        return replace(self, upper=None)


def grouped_curve(c, resolution, m, table, k=None, upper=None):
    """The curve of scores on a grid; M = m k / n with the number k of exceedances in the cells."""
    cells = grouped(c, resolution, k, upper)
    return GroupedCurve(cells=cells, M=m * cells.k / len(c), table=table, upper=upper)


# --- the GEV law ------------------------------------------------------------------------------


def gev_of_gpd(u, xi, sigma, M):
    """(mu, scale, xi) of the largest of m rows: mu = u + (sigma/xi)(M^xi - 1), sigma M^xi."""
    return u + return_excess(xi, sigma, M), sigma * M**xi, xi


def gpd_of_gev(mu, scale, xi, u):
    """(sigma, M): sigma = scale + xi (u - mu), M = (1 + xi (u - mu) / scale)^(-1/xi)."""
    return scale + xi * (u - mu), float(gpd_survival(u - mu, xi, scale))


def point_process_log_likelihood(x, u, blocks, parameters):
    """-blocks (1 + xi (u - mu)/s)^(-1/xi) - k log s - (1 + 1/xi) sum log(1 + xi (x - mu)/s)."""
    mu, scale, xi = parameters
    if scale <= 0:
        return -math.inf
    if abs(xi) < NO_SHAPE:
        return float(
            -blocks * math.exp(-(u - mu) / scale)
            - len(x) * math.log(scale)
            - np.sum(x - mu) / scale
        )
    lowest, inner = 1 + xi * (u - mu) / scale, 1 + xi * (x - mu) / scale
    if lowest <= 0 or inner.min() <= 0:
        return -math.inf
    return float(
        -blocks * lowest ** (-1 / xi)
        - len(x) * math.log(scale)
        - (1 + 1 / xi) * np.log(inner).sum()
    )


def gev_log_likelihood(maxima, parameters):
    """-B log s - (1 + 1/xi) sum log w - sum w^(-1/xi), w = 1 + xi (z - mu)/s."""
    mu, scale, xi = parameters
    if scale <= 0:
        return -math.inf
    z = (np.asarray(maxima, dtype=float) - mu) / scale
    if abs(xi) < NO_SHAPE:
        return float(-len(z) * math.log(scale) - z.sum() - np.exp(-z).sum())
    w = 1 + xi * z
    if w.min() <= 0:
        return -math.inf
    return float(
        -len(z) * math.log(scale) - (1 + 1 / xi) * np.log(w).sum() - (w ** (-1 / xi)).sum()
    )


def block_maxima(values, size):
    """The largest of each block of `size` consecutive rows; an incomplete block is left out."""
    values = np.asarray(values, dtype=float)
    whole = len(values) // size * size
    return values[:whole].reshape(-1, size).max(1)


def climb(function, start):
    """The maximum by the simplex of Nelder and Mead, begun anew until it stays."""
    point, value = np.asarray(start, dtype=float), -math.inf
    for _ in range(20):
        found = optimize.minimize(
            lambda p: -function(p),
            point,
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000, "maxfev": 4000},
        )
        point = found.x
        if -found.fun <= value + 1e-11:
            break
        value = -found.fun
    return point, -found.fun


def fit_gev(maxima):
    """(mu, scale, xi, log likelihood), from the moments of Gumbel's law."""
    maxima = np.asarray(maxima, dtype=float)
    shift, unit = maxima.mean(), maxima.std()
    z = (maxima - shift) / unit
    scale = math.sqrt(6) / math.pi
    point, value = climb(lambda p: gev_log_likelihood(z, p), [-np.euler_gamma * scale, scale, 0.01])
    mu, scale, xi = point
    return shift + unit * mu, unit * scale, xi, value - len(z) * math.log(unit)


def fit_point_process(x, u, blocks):
    """(mu, scale, xi, log likelihood) for the largest of n / blocks rows; x are the values > u."""
    y = np.asarray(x, dtype=float) - u
    unit = y.mean()
    start = gev_of_gpd(0.0, 0.01, 1.0, len(y) / blocks)
    (mu, scale, xi), value = climb(
        lambda p: point_process_log_likelihood(y / unit, 0.0, blocks, p), start
    )
    return u + unit * mu, unit * scale, xi, value - len(y) * math.log(unit)


def gev_return_level(mu, scale, xi, size, m):
    """x with P(row > x) = 1/m: G(x) = (1 - 1/m)^size."""
    return mu + scale * float(growth(xi, 1 / (-size * math.log1p(-1 / m))))


# --- diagnostics ------------------------------------------------------------------------------


def coefficient_of_variation(y, ddof=1):
    """sd / mean over the last axis."""
    return np.std(y, axis=-1, ddof=ddof) / np.mean(y, axis=-1)


def residual_cv(values, k):
    """The coefficient of variation of the k excesses over the (k+1)-th largest."""
    return float(coefficient_of_variation(excesses(values, k)[1]))


def raw_cv(values, k):
    """The one of the k largest values themselves (`compat`)."""
    return float(coefficient_of_variation(np.sort(values)[::-1][:k]))


def passes_cv(values, first=10, last=50, bound=None, cv=residual_cv):
    """True if cv_k < bound(k) for all k from first to last; 1 + 1.96 / sqrt k unless given."""
    bound = bound or (lambda k: 1 + 1.96 / math.sqrt(k))
    return all(cv(values, k) < bound(k) for k in range(first, last + 1))


def cv_critical(k, probability=0.95, n_simulations=10_000, seed=0):
    """The quantile of the residual coefficient of k standard exponentials (pivotal)."""
    y = np.random.default_rng(seed).standard_exponential((n_simulations, k))
    return float(np.quantile(coefficient_of_variation(y), probability))


def anderson_darling(y, xi, sigma):
    """A^2 = -k - (1/k) sum (2 i - 1) [log F(y_(i)) + log S(y_(k+1-i))]; inf at the edge xi = -1."""
    y = np.sort(np.asarray(y, dtype=float), axis=-1)
    k = y.shape[-1]
    S = gpd_survival(y, *(np.asarray(v)[..., None] for v in (xi, sigma)))
    i = np.arange(1, k + 1)
    with np.errstate(divide="ignore"):
        logs = np.log1p(-S) + np.log(S[..., ::-1])
    return -k - ((2 * i - 1) * logs).sum(-1) / k


def anderson_darling_test(y, n_resamples=999, seed=0):
    """(A^2, p) with the parametric bootstrap: samples of the fitted law, each fitted again."""
    y = np.asarray(y, dtype=float)
    xi, sigma, _ = fit_gpd(y)
    observed = float(anderson_darling(y, xi, sigma))
    e = np.random.default_rng(seed).standard_exponential((n_resamples, len(y)))
    drawn = exponential_to_gpd(e, float(xi))
    fits = fit_gpd(drawn)
    extreme = np.sum(anderson_darling(drawn, fits[0], fits[1]) >= observed - 1e-12)
    return observed, (1 + int(extreme)) / (1 + n_resamples)


def forward_stop(pvalues, alpha=0.05):
    """How many of ordered hypotheses to reject: last j with -(1/j) sum log(1 - p_i) <= alpha."""
    with np.errstate(divide="ignore"):
        running = np.cumsum(-np.log1p(-np.asarray(pvalues, dtype=float)))
    below = np.flatnonzero(running / np.arange(1, len(pvalues) + 1) <= alpha)
    return int(below[-1]) + 1 if len(below) else 0


def quantile_plot(y, xi, sigma, confidence=0.95):
    """Rows (observed, fitted, low, high), ascending: fitted at i / (k+1), band Beta(i, k+1-i)."""
    y = np.sort(np.asarray(y, dtype=float))
    i = np.arange(1, len(y) + 1)
    law = stats.beta(i, len(y) + 1 - i)
    half = (1 - confidence) / 2
    shares = [i / (len(y) + 1), law.ppf(half), law.ppf(1 - half)]
    return np.column_stack([y, *(return_excess(xi, sigma, 1 / (1 - p)) for p in shares)])


def stability(c, m, ks, upper=None):
    """Rows (k, u, xi, sigma, x_m): the fit over every k, u on t and x_m on c."""
    rows = []
    for k in ks:
        u, y = excesses(to_t(c, upper), k)
        xi, sigma, _ = fit_gpd(y)
        level = return_level(u, xi, sigma, m * k / len(c), upper)
        rows.append([k, u, float(xi), float(sigma), float(level)])
    return np.array(rows)


# --- averages beside the tail -----------------------------------------------------------------


def acd(c):
    """Average discrimination of a group."""
    return float(np.mean(c))


def cvar(c, share=0.05):
    """The mean of the worst share of rows; the row at the border counts with its part."""
    top = np.sort(np.asarray(c, dtype=float))[::-1]
    size = share * len(top)
    w = np.clip(size - np.arange(len(top)), 0, 1)
    return float(np.sum(w * top) / size)
