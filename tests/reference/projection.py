"""Slow, plain reference for the projection lens (Si, Murthy, Blanchet, Nguyen, ICML 2021).

Written from the statistics page and the paper, not from the library. The projection is a linear
program given to a solver, the law of a weighted sum of chi-squares is a numerical integral, the
composite law is a simulation.

Conventions: C_i in {0, 1} is the decision, d_i in [0, inf] the unsquared distance to the boundary
(inf: the row cannot move), w_i a weight, always rescaled here to mean 1, E the weighted mean over
the N compared rows. Criterion t has phi_t = U_a / E[U_a] - U_b / E[U_b] with two indicators U, so
gap_t = E[C phi_t] = rate of group t - rate of the reference. s_N = sum_i w_i p_i d_i.
Rows of groups that are not compared are left out by the caller; the rows of the other label stay.
"""

import itertools
import math

import numpy as np
from scipy import integrate, optimize, stats

NOTIONS = {
    "statistical_parity": (None,),
    "equal_opportunity": (1,),
    "predictive_equality": (0,),
    "equalized_odds": (1, 0),
}
"""Label of every stratum in which the rates are compared; None is all rows."""


def normalised(weight, n_rows):
    """Weights with mean 1; None is 1 for every row."""
    if weight is None:
        return np.ones(n_rows)
    weight = np.asarray(weight, dtype=float)
    return weight / weight.mean()


# --- criteria -------------------------------------------------------------------------------


def criteria_of_pairs(pairs, decision=None, weight=None):
    """(phi, influence) of pairs of disjoint indicators (U_a, U_b), one column per pair.

    phi = U_a / E[U_a] - U_b / E[U_b].
    influence = phi C + E[phi_z C] U, where phi_z = (-U_a / E[U_a]^2, U_b / E[U_b]^2), so that
    E[phi_z C] = (-E[U_a C] / E[U_a]^2, E[U_b C] / E[U_b]^2). None when no decision is given.
    """
    n_rows = len(pairs[0][0])
    w = normalised(weight, n_rows)
    phi = np.zeros((n_rows, len(pairs)))
    influence = None if decision is None else np.zeros((n_rows, len(pairs)))
    for t, (first, second) in enumerate(pairs):
        first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
        if np.any(first * second != 0):
            raise ValueError(f"criterion {t}: the two indicators overlap")
        mean_first, mean_second = np.mean(w * first), np.mean(w * second)
        if mean_first == 0 or mean_second == 0:
            raise ValueError(f"criterion {t}: one of the two compared sets has no weight")
        phi[:, t] = first / mean_first - second / mean_second
        if decision is not None:
            c = np.asarray(decision, dtype=float)
            derivative_first = -np.mean(w * first * c) / mean_first**2
            derivative_second = np.mean(w * second * c) / mean_second**2
            influence[:, t] = phi[:, t] * c + derivative_first * first + derivative_second * second
    return phi, influence


def criteria(notion, group, label, groups, reference, decision=None, weight=None):
    """(phi, influence) of every group of `groups` against the reference, Examples 1 to 5.

    Columns: groups in the given order without the reference; equalized odds has first all
    criteria of label 1, then all of label 0. `label` may be None for statistical parity.
    """
    group = np.asarray(group)
    pairs = []
    for value in NOTIONS[notion]:
        stratum = np.ones(len(group), bool) if value is None else np.asarray(label) == value
        for name in groups:
            if name != reference:
                pairs.append((stratum & (group == name), stratum & (group == reference)))
    return criteria_of_pairs(pairs, decision, weight)


def criteria_of_attributes(notion, attributes, label, decision=None, weight=None):
    """(phi, influence) of several binary attributes at once, Example 6: value 1 minus value 0.

    `attributes` is N x K of zeros and ones; equalized odds has first all of label 1.
    """
    attributes = np.asarray(attributes)
    pairs = []
    for value in NOTIONS[notion]:
        stratum = np.ones(len(attributes), bool) if value is None else np.asarray(label) == value
        for column in attributes.T:
            pairs.append((stratum & (column == 1), stratum & (column == 0)))
    return criteria_of_pairs(pairs, decision, weight)


def gaps(decision, phi, weight=None):
    """gap_t = E[C phi_t]."""
    w = normalised(weight, len(phi))
    return np.mean((w * np.asarray(decision, dtype=float))[:, None] * phi, axis=0)


# --- projection -----------------------------------------------------------------------------


def linear_program(distance, decision, phi, weight=None, epsilon=None, one_sided=False):
    """Problem (7), or (9) with a tolerance, by HiGHS; None when infeasible.

    min sum w p d over p in [0, 1]^N, subject to, with change_t = sum w (1 - 2 C) phi_t p,
        N gap_t + change_t = 0                            (epsilon None)
        N gap_t + change_t <= N eps_t                     (and, two-sided, >= -N eps_t)
    Returns a dict of `statistic` s_N, `moves` p, `dual` gamma and `dual_value`.

    Every constraint is divided by its largest coefficient. Costs are divided by the largest
    distance that is moved, found by a first solution: the solver's tolerances are absolute.
    """
    distance = np.asarray(distance, dtype=float)
    c = np.asarray(decision, dtype=float)
    n_rows, m = phi.shape
    w = normalised(weight, n_rows)
    movable = np.isfinite(distance)
    change = (w * (1 - 2 * c))[:, None] * phi
    row_scale = np.abs(change).max(axis=0)
    matrix = (change / row_scale).T
    current = n_rows * gaps(c, phi, w) / row_scale
    if epsilon is None:
        constraints = {"A_eq": matrix, "b_eq": -current}
    else:
        tolerance = n_rows * np.broadcast_to(np.asarray(epsilon, float), (m,)) / row_scale
        rows, right = [matrix], [tolerance - current]
        if not one_sided:
            rows.append(-matrix)
            right.append(tolerance + current)
        constraints = {"A_ub": np.vstack(rows), "b_ub": np.concatenate(right)}

    cost = np.where(movable, w * np.where(movable, distance, 0.0), 0.0)
    positive = cost[cost > 0]
    cost_scale = float(np.median(positive)) if len(positive) else 1.0
    for _ in range(3):
        solution = optimize.linprog(
            cost / cost_scale,
            bounds=np.column_stack([np.zeros(n_rows), movable.astype(float)]),
            method="highs",
            options={
                "presolve": False,
                "primal_feasibility_tolerance": 1e-10,
                "dual_feasibility_tolerance": 1e-10,
            },
            **constraints,
        )
        if solution.status == 2:
            return None
        if solution.status != 0:
            raise RuntimeError(f"HiGHS: {solution.message}")
        used_scale = cost_scale
        largest = float(np.max(cost * (solution.x > 1e-9), initial=0.0))
        if largest == 0 or 0.5 < largest / cost_scale < 2:
            break
        cost_scale = largest

    # marginals are d(objective) / d(right side); the paper's gamma has the opposite sign.
    if epsilon is None:
        gamma = -solution.eqlin.marginals
    else:
        gamma = -solution.ineqlin.marginals[:m]
        if not one_sided:
            gamma = gamma + solution.ineqlin.marginals[m:]
    gamma = gamma * used_scale / row_scale
    moves = np.clip(solution.x, 0.0, 1.0)
    return {
        "statistic": math.fsum(cost * moves),
        "moves": moves,
        "dual": gamma,
        "dual_value": dual_value(gamma, distance, decision, phi, weight, epsilon, one_sided),
    }


def dual_value(gamma, distance, decision, phi, weight=None, epsilon=None, one_sided=False):
    """The dual objective times N, a lower bound of s_N for every (dual feasible) gamma.

    sum_i w_i {gamma'phi_i C_i + (d_i + (1 - 2 C_i) gamma'phi_i)^-} - N sum_t |gamma_t| eps_t,
    with x^- = min(x, 0); a one-sided tolerance needs gamma >= 0 (-inf is returned otherwise).
    """
    gamma = np.atleast_1d(np.asarray(gamma, dtype=float))
    c = np.asarray(decision, dtype=float)
    w = normalised(weight, len(phi))
    push = phi @ gamma
    terms = w * (push * c + np.minimum(np.asarray(distance, float) + (1 - 2 * c) * push, 0.0))
    total = math.fsum(terms)
    if epsilon is None:
        return total
    if one_sided and np.any(gamma < 0):
        return -math.inf
    tolerance = np.broadcast_to(np.asarray(epsilon, float), gamma.shape)
    return total - len(phi) * float(np.sum(np.abs(gamma) * tolerance))


def algorithm_1(distance, decision, phi, weight=None, epsilon=None, one_sided=False):
    """(s_N, p) for one criterion by sorting, Algorithm 1; None when infeasible.

    s = -sum w C phi, shrunk towards 0 by N eps (one-sided: s = -(sum w C phi - N eps)^+);
    gain_i = (1 - 2 C_i) phi_i sgn(s) > 0; rows by d_i / gain_i ascending, each moved as a whole
    (it covers w_i gain_i and costs w_i d_i) until |s| is covered; the last one is fractional.
    """
    phi = np.asarray(phi, dtype=float).reshape(-1)
    n_rows = len(phi)
    w = normalised(weight, n_rows).tolist()
    distance, phi = np.asarray(distance, dtype=float).tolist(), phi.tolist()
    decision = [int(value) for value in decision]
    total = math.fsum(w[i] * decision[i] * phi[i] for i in range(n_rows))
    if epsilon is None:
        s = -total
    elif one_sided:
        s = -max(total - n_rows * epsilon, 0.0)
    else:
        s = -math.copysign(max(abs(total) - n_rows * epsilon, 0.0), total)
    moves = [0.0] * n_rows
    remaining = abs(s)
    # A sum of n_rows terms of this size is zero up to rounding.
    rounding = 1e-14 * math.fsum(w[i] * abs(phi[i]) for i in range(n_rows))
    if remaining <= rounding:
        return 0.0, np.array(moves)
    sign = 1.0 if s > 0 else -1.0
    candidates = []
    for i in range(n_rows):
        gain = (1 - 2 * decision[i]) * phi[i] * sign
        if gain > 0 and w[i] > 0 and math.isfinite(distance[i]):
            candidates.append((distance[i] / gain, i, gain))
    candidates.sort()
    for _, i, gain in candidates:
        if w[i] * gain < remaining:
            moves[i] = 1.0
            remaining -= w[i] * gain
        else:
            moves[i] = remaining / (w[i] * gain)
            remaining = 0.0
            break
    if remaining > rounding:
        return None
    total = math.fsum(w[i] * moves[i] * distance[i] for i in range(n_rows) if moves[i] > 0)
    return total, np.array(moves)


# --- law ------------------------------------------------------------------------------------


def signed_margin(distance, decision):
    """Phi = (2 C - 1) d."""
    return (2 * np.asarray(decision, dtype=float) - 1) * np.asarray(distance, dtype=float)


def bandwidth(margin):
    """h = 1.06 sd(Phi) n^(-1/5), ddof 1, over the n rows of finite margin; weights play no part."""
    finite = margin[np.isfinite(margin)]
    return 1.06 * float(np.std(finite, ddof=1)) * len(finite) ** -0.2


def kernel(margin, h):
    """K(Phi / h), the standard normal density; 0 at an infinite margin."""
    return np.exp(-0.5 * (margin / h) ** 2) / math.sqrt(2 * math.pi)


def kernel_matrix(margin, phi, h, weight=None):
    """S = (1 / (N h)) sum w K(Phi / h) phi phi'."""
    w = normalised(weight, len(phi))
    return (phi * (w * kernel(margin, h))[:, None]).T @ phi / (len(phi) * h)


def sigma(influence, weight=None):
    """Sigma = covariance (ddof 1) of w_i (influence_i - weighted mean of influence)."""
    w = normalised(weight, len(influence))
    centred = w[:, None] * (influence - np.mean(w[:, None] * influence, axis=0))
    centred = centred - centred.mean(axis=0)
    return centred.T @ centred / (len(influence) - 1)


def effective_points(margin, phi, h, weight=None):
    """n_eff_t = (sum v)^2 / sum v^2 with v_i = w_i K(Phi_i / h) phi_it^2."""
    w = normalised(weight, len(phi))
    v = (w * kernel(margin, h))[:, None] * phi**2
    return v.sum(axis=0) ** 2 / np.sum(v**2, axis=0)


def critical_distance(kernel_m, sigma_m, phi, n_rows, z=1.96):
    """Moving distance at the edge of rejection: z sqrt(Sigma_tt / N) / S_tt max|phi_t|.

    The dual multiplier of a single criterion is gap / S; a row moves when d <= gamma |phi|.
    """
    gamma = z * np.sqrt(np.diag(sigma_m) / n_rows) / np.diag(kernel_m)
    return gamma * np.abs(phi).max(axis=0)


def predicted_size(distance, decision, phi, h, weight=None, level=0.05):
    """Size of the test of one criterion if this sample's transport costs were the population's.

    The law takes the cost of a gap g to be N g^2 / (2 S). The exact cost of creating a gap in
    either direction is read off the sorted rows, and the gap at which it reaches the critical
    value, q Sigma / (2 S) with P(chi2_1 > q) = level, is z standard errors sqrt(Sigma / N). The
    prediction is the sum over both directions of P(Z > z): near `level` where the quadratic law
    fits, larger where rows near the boundary are fewer than the kernel says (a gap in Phi, a
    coarse lattice), 0 where they move for nothing (atoms at 0).
    """
    phi = np.asarray(phi, dtype=float).reshape(-1)
    n_rows = len(phi)
    w = normalised(weight, n_rows)
    _, influence = criteria_of_pairs([(phi > 0, phi < 0)], decision, weight)
    variance = sigma(influence, weight)[0, 0]
    margin = signed_margin(distance, decision)
    curvature = kernel_matrix(margin, phi[:, None], h, weight)[0, 0]
    critical = stats.chi2.isf(level, 1) * variance / (2 * curvature)
    total = 0.0
    for sign in (1.0, -1.0):
        candidates = []
        for i in range(n_rows):
            gain = (1 - 2 * int(decision[i])) * phi[i] * sign
            if gain > 0 and w[i] > 0 and math.isfinite(distance[i]):
                candidates.append((distance[i] / gain, w[i] * gain))
        candidates.sort()
        cost = moved = 0.0
        reached = math.inf
        for ratio, gain in candidates:
            if cost + ratio * gain >= critical:
                reached = moved + (critical - cost) / ratio
                break
            cost, moved = cost + ratio * gain, moved + gain
        total += stats.norm.sf(reached / math.sqrt(n_rows * variance))
    return float(total)


def smallest_count(decision, phi):
    """Fewest rows of either decision in either compared set of every criterion."""
    c = np.asarray(decision, dtype=bool)
    return np.array(
        [
            min(np.sum(side & value) for side in (column > 0, column < 0) for value in (c, ~c))
            for column in phi.T
        ]
    )


def weighted_chi_square_tail(weights, q):
    """P(sum_j weights_j chi2_1 > q), independent terms; relative error about 1e-11.

    Imhof's (1961) inversion integral, 1/(2 pi i) int exp(K(t) - q t) / t dt with the cumulant
    generating function K(t) = -sum log(1 - 2 weights_j t) / 2. Imhof integrates along the
    imaginary axis, where the integrand oscillates and decays like a power; here the path is the
    parabola t = c + bend x^2 + i x through the saddle point K'(c) = q, which turns away from the
    cuts [1 / (2 weights_j), inf) and along which the integrand decays exponentially. A saddle
    point left of the pole t = 0 gives P - 1.
    """
    weights = np.asarray(weights, dtype=float)
    weights = weights[weights > 0]
    if q <= 0:
        return 1.0
    if len(weights) == 0:
        return 0.0
    q, weights = q / weights.max(), weights / weights.max()
    if abs(q / weights.sum() - 1) < 1e-3:
        # The saddle point would sit on the pole: step to the side, any real c < 1/2 will do.
        c = 0.05 / len(weights)
    else:
        c = optimize.brentq(
            lambda t: np.sum(weights / (1 - 2 * weights * t)) - q,
            -len(weights) / q,
            0.5 - 0.25 / q,
            xtol=1e-13,
        )
    bend = 0.25 / (0.5 - c)
    unit = float(np.sum(2 * weights**2 / (1 - 2 * weights * c) ** 2)) ** -0.5
    height = -0.5 * float(np.sum(np.log(1 - 2 * weights * c))) - q * c

    def integrand(x):
        t = complex(c + bend * x * x, x)
        exponent = -0.5 * np.sum(np.log(1 - 2 * weights * t)) - q * t - height
        return (np.exp(exponent) / t * complex(2 * bend * x, 1)).imag

    ends = [0.0, unit / 4, unit, 4 * unit, 16 * unit, 64 * unit, 256 * unit, 2_048 * unit]
    total = sum(
        integrate.quad(integrand, low, high, epsabs=1e-13 / unit, epsrel=1e-12, limit=500)[0]
        for low, high in itertools.pairwise(ends)
    )
    tail = math.exp(height) * total / math.pi
    return min(max(tail + 1.0 if c < 0 else tail, 0.0), 1.0)


def law_weights(kernel_m, sigma_m):
    """Weights of V'S^-1 V / 2, V ~ N(0, Sigma): eigenvalues of S^-1/2 Sigma S^-1/2 / 2."""
    values, vectors = np.linalg.eigh(kernel_m)
    root = vectors @ np.diag(values**-0.5) @ vectors.T
    return np.linalg.eigvalsh(root @ sigma_m @ root) / 2


def box_distance(points, lower, upper, kernel_m):
    """Half the squared S^-1-distance of every row of `points` to the box [lower, upper].

    The dual: max over gamma of gamma'x - sup_{b in box} gamma'b - gamma'S gamma / 2. Its optimum
    is one of the stationary points in which every coordinate is free (gamma_t = 0), held at the
    upper end (gamma_t >= 0) or at the lower end (gamma_t <= 0): the largest value over all of them
    whose signs fit.
    """
    best = np.zeros(len(points))
    for state in itertools.product((0, 1, -1), repeat=points.shape[1]):
        state = np.array(state)
        active = np.flatnonzero(state)
        bound = np.where(state > 0, upper, lower)[active]
        if len(active) == 0 or np.any(np.isinf(bound)):
            continue
        block = kernel_m[np.ix_(active, active)]
        gamma = np.linalg.solve(block, (points[:, active] - bound).T).T
        fits = np.all(gamma * state[active] >= 0, axis=1)
        value = 0.5 * np.sum(gamma * (gamma @ block), axis=1)
        best = np.where(fits, np.maximum(best, value), best)
    return best


def composite_pvalue_monte_carlo(
    statistic, kernel_m, sigma_m, n_rows, epsilon, one_sided=False, n_draws=200_000, seed=0
):
    """sup over the box of P(N/2 squared S^-1-distance of (gap + V / sqrt(N)) to the box >= s_N).

    {x: distance <= c} is convex and V is normal, so the probability to stay in it is log-concave
    in the true gap and least at a vertex; one-sided there is one vertex, eps.
    """
    if statistic <= 0:
        return 1.0
    m = len(kernel_m)
    upper = np.broadcast_to(np.asarray(epsilon, dtype=float), (m,)) * math.sqrt(n_rows)
    lower = np.full(m, -math.inf) if one_sided else -upper
    values, vectors = np.linalg.eigh(sigma_m)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(seed).standard_normal((n_draws, m)) @ root.T
    corners = [upper] if one_sided else list(itertools.product(*zip(lower, upper, strict=True)))
    return max(
        float(np.mean(box_distance(draws + np.array(corner), lower, upper, kernel_m) >= statistic))
        for corner in corners
    )


def asymptotic_pvalue(statistic, kernel_m, sigma_m, n_rows, epsilon=None, one_sided=False):
    """p-value of s_N from the limit law; NaN when S is singular.

    Simple null: P(V'S^-1 V / 2 > s_N). With z = sqrt(2 S s_N / Sigma), one criterion and a
    tolerance: one-sided Phi(-z); two-sided Phi(-z) + Phi(-z - 2 eps / se), se = sqrt(Sigma / N);
    1 when s_N = 0. Several criteria and a tolerance: Monte Carlo.
    """
    kernel_m, sigma_m = np.atleast_2d(kernel_m), np.atleast_2d(sigma_m)
    if not np.all(np.isfinite(kernel_m)) or np.linalg.eigvalsh(kernel_m)[0] <= 0:
        return math.nan
    if statistic <= 0:
        return 1.0
    if epsilon is None:
        return weighted_chi_square_tail(law_weights(kernel_m, sigma_m), statistic)
    if len(kernel_m) > 1:
        return composite_pvalue_monte_carlo(
            statistic, kernel_m, sigma_m, n_rows, epsilon, one_sided
        )
    variance = sigma_m.item()
    if variance == 0:
        return 0.0
    z = math.sqrt(2 * kernel_m.item() * statistic / variance)
    p = float(stats.norm.sf(z))
    if not one_sided:
        p += float(stats.norm.sf(z + 2 * np.asarray(epsilon).item() / math.sqrt(variance / n_rows)))
    return p


# --- the test -------------------------------------------------------------------------------


def projection_test(
    distance, decision, phi, influence, weight=None, epsilon=None, one_sided=False, h=None
):
    """Everything at once from distances, decisions and the criteria; None when infeasible."""
    n_rows = len(phi)
    if phi.shape[1] == 1:
        tolerance = None if epsilon is None else np.asarray(epsilon).item()
        solved = algorithm_1(distance, decision, phi, weight, tolerance, one_sided)
        if solved is None:
            return None
        statistic, moves = solved
    else:
        solved = linear_program(distance, decision, phi, weight, epsilon, one_sided)
        if solved is None:
            return None
        statistic, moves = solved["statistic"], solved["moves"]
    margin = signed_margin(distance, decision)
    h = bandwidth(margin) if h is None else h
    kernel_m, sigma_m = kernel_matrix(margin, phi, h, weight), sigma(influence, weight)
    return {
        "statistic": statistic,
        "moves": moves,
        "gaps": gaps(decision, phi, weight),
        "bandwidth": h,
        "kernel_matrix": kernel_m,
        "sigma": sigma_m,
        "effective_points": effective_points(margin, phi, h, weight),
        "pvalue": asymptotic_pvalue(statistic, kernel_m, sigma_m, n_rows, epsilon, one_sided),
    }


def welch_z_squared(decision, phi, influence):
    """Welch's z^2 of one criterion, plug-in variances (no ddof): N gap^2 / mean(influence^2)."""
    return len(phi) * gaps(decision, phi)[0] ** 2 / np.mean(influence[:, 0] ** 2)


# --- simulation -----------------------------------------------------------------------------


def two_gaussians(rng, n, share=0.5, label_law="logistic"):
    """(distance, decision, group, label): two features N(0, I), C = 1{x_1 + x_2 >= 0}.

    Group 1 has probability `share` and is independent of the features. Labels: "logistic",
    P(Y = 1 | x) = 1 / (1 + exp(-(x_1 + x_2))), or "coin", 1/2; the same law in both groups, so
    every notion holds. Distances are Euclidean, |x_1 + x_2| / sqrt(2).
    """
    x = rng.standard_normal((n, 2))
    group = (rng.random(n) < share).astype(int)
    score = x.sum(axis=1)
    chance = 1 / (1 + np.exp(-score)) if label_law == "logistic" else np.full(n, 0.5)
    label = (rng.random(n) < chance).astype(int)
    return np.abs(score) / math.sqrt(2), (score >= 0).astype(int), group, label


def four_gaussians(rng, n):
    """As above, with the law of Taskesen et al. (2021): the first feature depends on group and
    label, the second, N(0, 5), on neither, and the classifier C = 1{x_2 >= 0} uses only it."""
    cell = rng.choice(4, size=n, p=[0.2, 0.1, 0.3, 0.4])
    group = np.array([1, 0, 1, 0])[cell]
    label = np.array([1, 1, 0, 0])[cell]
    second = math.sqrt(5) * rng.standard_normal(n)
    return np.abs(second), (second >= 0).astype(int), group, label


def simulate_size(generate, n, n_repeats, seed, notion="equal_opportunity"):
    """(size of the 5 % test, correlation of s_N / (Sigma / 2S) with Welch's z^2, n_undefined)."""
    rng = np.random.default_rng(seed)
    pvalues, scaled, welch = [], [], []
    n_undefined = 0
    for _ in range(n_repeats):
        distance, decision, group, label = generate(rng, n)
        try:
            phi, influence = criteria(notion, group, label, [0, 1], 0, decision)
        except ValueError:
            n_undefined += 1
            continue
        result = projection_test(distance, decision, phi, influence)
        variance = result["sigma"][0, 0]
        if variance == 0 or math.isnan(result["pvalue"]):
            n_undefined += 1
            continue
        pvalues.append(result["pvalue"])
        scaled.append(2 * result["kernel_matrix"][0, 0] * result["statistic"] / variance)
        welch.append(welch_z_squared(decision, phi, influence))
    size = float(np.mean(np.array(pvalues) < 0.05))
    return size, float(np.corrcoef(scaled, welch)[0, 1]), n_undefined


def main(n_repeats=4_000):
    for name, generate in (
        ("two_gaussians, logistic labels", two_gaussians),
        ("two_gaussians, coin labels", lambda rng, n: two_gaussians(rng, n, 0.5, "coin")),
        ("four_gaussians", four_gaussians),
    ):
        print(name)
        for n in (100, 300, 1_000, 5_000):
            size, correlation, n_undefined = simulate_size(generate, n, n_repeats, seed=n)
            print(f"  N={n}: size {size:.4f}  correlation {correlation:.3f}  {n_undefined=}")


if __name__ == "__main__":
    main()
