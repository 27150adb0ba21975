"""Slow, plain reference for the individual lens (Maity et al. 2021): the gradient flow attack,
its fair metrics, the audit value and its intervals, and the simulation of appendix E.

Written from the statistics page, not from the library. Every function does the obvious thing.

Notation: lambda -> penalty, T -> n_steps, eta_t -> step(t), D -> metric, r_i -> ratios[i],
S_n -> estimate, V_n^2 / n -> variance, T_n -> lower_bound, delta -> delta.

Conventions: labels are 0/1 (classes 0..K-1 in the multinomial loss, reals in the squared loss);
a decision is 1 where f(x) >= 0 (the first of the largest scores for K classes); `level` of an
interval is its coverage; sample variances with ddof 1; undefined is NaN.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from .permutation import is_extreme, statistic
from .rows import resample, studentized_interval

LOSS_FLOOR = 1e-12
"""The smallest loss that counts."""

DELTA = 1.25
"""The tolerated audit value: the four-fifths rule."""

# --- models: score(X) -> (n,) or (n, K), jacobian(X) -> (n, p) or (n, K, p) -----------------


@dataclass(frozen=True)
class Linear:
    """f(x) = w.x + b; w of shape (p,), or (K, p) for K classes."""

    coef: np.ndarray
    intercept: float | np.ndarray = 0.0

    def score(self, X):
        return X @ np.asarray(self.coef).T + self.intercept

    def jacobian(self, X):
        coef = np.asarray(self.coef, dtype=float)
        return np.broadcast_to(coef, (len(X), *coef.shape))


@dataclass(frozen=True)
class KernelExpansion:
    """f(x) = sum_j a_j k(x_j, x) + b; a of shape (m,), or (K, m) for K classes.

    k(z, x) = exp(-gamma |x - z|^2) (rbf), (gamma x.z + coef0)^degree (polynomial), x.z (linear).
    """

    points: np.ndarray
    dual_coef: np.ndarray
    intercept: float | np.ndarray = 0.0
    kernel: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def kernel_and_gradient(self, x):
        """(k_j, dk_j/dx) of one row x against every point."""
        points = np.asarray(self.points)
        if self.kernel == "rbf":
            difference = x - points
            k = np.exp(-self.gamma * np.sum(difference**2, axis=1))
            return k, -2 * self.gamma * k[:, None] * difference
        if self.kernel == "polynomial":
            inner = self.gamma * points @ x + self.coef0
            slope = self.degree * inner ** (self.degree - 1)
            return inner**self.degree, slope[:, None] * self.gamma * points
        if self.kernel == "linear":
            return points @ x, points
        raise ValueError(self.kernel)

    def score(self, X):
        return np.array(
            [np.asarray(self.dual_coef) @ self.kernel_and_gradient(x)[0] for x in X]
        ) + (self.intercept)

    def jacobian(self, X):
        return np.array([np.asarray(self.dual_coef) @ self.kernel_and_gradient(x)[1] for x in X])


# --- losses of (score, y), each with its derivative in the score ----------------------------


def sign_of(y):
    """-1 for label 0, +1 for label 1."""
    return 2.0 * np.asarray(y) - 1.0


def softplus(z):
    """log(1 + exp(z)), to full relative precision down to exp(-745)."""
    return np.logaddexp(0.0, z)


def log_loss(score, y):
    """softplus(-s f), s = +-1. Not softplus(f) - y f: that cancels where the loss is small."""
    return softplus(-sign_of(y) * score)


def log_loss_slope(score, y):
    """-s sigma(-s f), equal to sigma(f) - y without its cancellation."""
    s = sign_of(y)
    return -s * special.expit(-s * score)


def others(score, y):
    """(scores of the classes other than y minus the score of y, their places), row by row."""
    n, k = score.shape
    places = np.array([[c for c in range(k) if c != label] for label in np.asarray(y, dtype=int)])
    rows = np.arange(n)[:, None]
    return score[rows, places] - score[rows, np.asarray(y, dtype=int)[:, None]], places


def softmax_loss(score, y):
    """-log softmax(f)_y = softplus(logsumexp_{c != y}(f_c - f_y)); K = 2 is `log_loss`."""
    return softplus(special.logsumexp(others(score, y)[0], axis=1))


def softmax_loss_slope(score, y):
    """softmax(f)_c - 1{c = y}; the entry of y is minus the sum of the others."""
    slope = special.softmax(score, axis=1)
    _, places = others(score, y)
    rows = np.arange(len(score))
    slope[rows, np.asarray(y, dtype=int)] = -slope[rows[:, None], places].sum(axis=1)
    return slope


def squared_loss(score, y):
    """(f - y)^2, without a half (a half would slow the flow).

    For a linear f every row's residual grows by the same factor: the ratios are all equal.
    """
    return (score - y) ** 2


def squared_loss_slope(score, y):
    """2 (f - y)."""
    return 2 * (score - y)


def smooth_hinge(score, y):
    """Rennie and Srebro (2005), m = s f: 1/2 - m (m <= 0), (1 - m)^2 / 2 (0 < m < 1), 0 (m >= 1).

    Exactly 0, with no gradient, from margin 1 on: such a row never moves, its ratio is
    floor / floor = 1. `softplus_hinge` is the one to take ratios of.
    """
    m = sign_of(y) * score
    return np.where(m <= 0, 0.5 - m, np.where(m < 1, (1 - m) ** 2 / 2, 0.0))


def smooth_hinge_slope(score, y):
    """s h'(m), h' = -1 (m <= 0), m - 1 (0 < m < 1), 0 (m >= 1)."""
    s = sign_of(y)
    return s * np.clip(s * score - 1, -1.0, 0.0)


def softplus_hinge(score, y):
    """softplus(1 - s f), positive everywhere, so that a ratio exists for every row."""
    return softplus(1 - sign_of(y) * score)


def softplus_hinge_slope(score, y):
    """-s sigma(1 - s f)."""
    s = sign_of(y)
    return -s * special.expit(1 - s * score)


LOSSES = {
    "log_loss": (log_loss, log_loss_slope),
    "softmax": (softmax_loss, softmax_loss_slope),
    "squared": (squared_loss, squared_loss_slope),
    "smooth_hinge": (smooth_hinge, smooth_hinge_slope),
    "softplus_hinge": (softplus_hinge, softplus_hinge_slope),
}


def losses_of(model, loss, X, y):
    """loss(f(x_i), y_i)."""
    return LOSSES[loss][0](model.score(X), y)


def loss_gradient(model, loss, X, y):
    """d loss / dx = sum_c (d loss / d f_c) (d f_c / dx), row by row."""
    slope, jacobian = LOSSES[loss][1](model.score(X), y), model.jacobian(X)
    if slope.ndim == 1:
        return slope[:, None] * jacobian
    return np.einsum("nc,ncp->np", slope, jacobian)


def is_wrong(model, loss, X, y):
    """The 0-1 loss of the decision, see the conventions."""
    score = model.score(X)
    decision = np.argmax(score, axis=1) if loss == "softmax" else (score >= 0).astype(int)
    return (decision != np.asarray(y)).astype(float)


# --- fair metrics: d^2(x, x0) = (x - x0)' D (x - x0) ----------------------------------------


def directions_metric(V):
    """I - Q Q', Q an orthonormal basis of the rows of V: directions that cost nothing.

    Rows are set to length 1 first, zero rows left out, and singular values below 1e-10 of the
    largest are rank that is not there.
    """
    V = np.atleast_2d(np.asarray(V, dtype=float))
    length = np.linalg.norm(V, axis=1)
    if not np.any(length > 0):
        return np.eye(V.shape[1])
    unit = V[length > 0] / length[length > 0, None]
    _, size, basis = np.linalg.svd(unit, full_matrices=False)
    Q = basis[size > 1e-10 * size[0]].T
    return np.eye(V.shape[1]) - Q @ Q.T


def mahalanobis_metric(covariance):
    """D = S^{-1}, S a covariance: cheap where the data vary a lot (as `distance` of a model)."""
    return np.linalg.inv(covariance)


def matrix_metric(D):
    """The user's D: symmetric and positive semidefinite up to rounding, else an error."""
    D = np.asarray(D, dtype=float)
    eigenvalues = np.linalg.eigvalsh((D + D.T) / 2)
    scale = np.max(np.abs(eigenvalues))
    if not np.allclose(D, D.T, rtol=0, atol=1e-12 * scale) or eigenvalues[0] < -1e-12 * scale:
        raise ValueError("a fair metric must be symmetric and positive semidefinite")
    return (D + D.T) / 2


def logistic_direction(X, attribute, C=1.0):
    """Coefficients of argmin sum_i log_loss_i + |w|^2 / (2 C), the intercept not penalised.

    Found by Newton's method to a gradient of 1e-10: the answer belongs to the problem, not to a
    solver's tolerance. The penalty makes it exist for separable rows; it also makes it depend
    on the units of the features, which are taken as they are.
    """
    Z, y = np.column_stack([X, np.ones(len(X))]), np.asarray(attribute, dtype=float)
    ridge = np.r_[np.full(X.shape[1], 1 / C), 0.0]

    def objective(w):
        return log_loss(Z @ w, y).sum() + ridge @ w**2 / 2

    w = np.zeros(Z.shape[1])
    for _ in range(200):
        gradient = Z.T @ log_loss_slope(Z @ w, y) + ridge * w
        if np.max(np.abs(gradient)) < 1e-10 * len(X):
            break
        p = special.expit(Z @ w)
        change = np.linalg.solve((Z.T * (p * (1 - p))) @ Z + np.diag(ridge), gradient)
        share, now = 1.0, objective(w)
        while objective(w - share * change) > now and share > 1e-6:
            share /= 2
        w = w - share * change
    return w[:-1]


def multinomial_directions(X, attribute, C=1.0):
    """Differences of the K coefficient vectors of the penalised softmax regression from the first.

    The vectors sum to 0, so that their span is that of the K - 1 differences; in large units
    rounding gives the vectors themselves another direction, in which nothing but the penalty holds.

    argmin sum_i softmax_loss_i + sum_c |w_c|^2 / (2 C), intercepts not penalised (b_0 = 0).
    """
    levels, y = np.unique(attribute, return_inverse=True)
    k, p = len(levels), X.shape[1]

    def objective(theta):
        W, b = theta[: k * p].reshape(k, p), np.r_[0.0, theta[k * p :]]
        score = X @ W.T + b
        slope = softmax_loss_slope(score, y)
        value = softmax_loss(score, y).sum() + np.sum(W**2) / (2 * C)
        return value, np.r_[(slope.T @ X + W / C).ravel(), slope.sum(axis=0)[1:]]

    start = np.zeros(k * p + k - 1)
    options = {"maxiter": 10_000, "gtol": 1e-9 * len(X), "ftol": 0.0, "maxfun": 100_000}
    found = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    polished = optimize.root(lambda theta: objective(theta)[1], found.x, tol=1e-14)
    W = polished.x[: k * p].reshape(k, p)
    return W[1:] - W[0]


def linear_direction(X, attribute):
    """Least-squares coefficients (intercept included), of least norm where they are not unique."""
    centred = X - X.mean(axis=0)
    return np.linalg.lstsq(centred, attribute - np.mean(attribute), rcond=None)[0]


def sensitive_directions(X, protected, given=(), C=1.0):
    """V: per attribute the coefficients of its regression on X, then the given directions.

    Two values: logistic regression. Text, or integers with 3 to 10 values: softmax regression.
    Other numbers: least squares. Only the span counts, so lengths and signs do not. An
    attribute that is itself a feature j is better given, as e_j: its regression is separable.
    """
    V = []
    for attribute in protected:
        attribute = np.asarray(attribute)
        levels = np.unique(attribute)
        if len(levels) == 2:
            V.append(logistic_direction(X, attribute == levels[1], C))
        elif attribute.dtype.kind in "OUSb" or (attribute.dtype.kind in "iu" and len(levels) <= 10):
            V.extend(multinomial_directions(X, attribute, C))
        else:
            V.append(linear_direction(X, attribute))
    return np.array([*V, *given])


def subspace_metric(X, protected, given=(), C=1.0):
    """I minus the projection on span(V), see `sensitive_directions`."""
    return directions_metric(sensitive_directions(X, protected, given, C))


# --- the flow -------------------------------------------------------------------------------


def step(t, step_size, step_decay=0.0):
    """eta_t = step_size / t^step_decay, t = 1, 2, ..., T."""
    return step_size / t**step_decay


def flow_time(n_steps, step_size, step_decay=0.0):
    """The time reached: sum of eta_t. Every solver takes one step of length eta_t for each t."""
    return sum(step(t, step_size, step_decay) for t in range(1, n_steps + 1))


def stability(metric, penalty, step_size):
    """2 lambda eta max eigenvalue of D, eta the largest step (the first).

    Euler multiplies a displacement along an eigenvector by 1 - 2 lambda eta mu: above 1 it
    swings around 0, above 2 it grows (Heun 2, RK4 2.785). 1 + 1e-9 counts as 1.
    """
    return 2 * penalty * step_size * np.linalg.eigvalsh(metric)[-1]


def on_simplex(row):
    """The nearest point with entries of at least 0 and the sum 1: the best over all supports."""
    k, best = len(row), None
    for chosen in range(1, 2**k):
        inside = [j for j in range(k) if chosen >> j & 1]
        point = np.zeros(k)
        point[inside] = row[inside] - (np.sum(row[inside]) - 1) / len(inside)
        distance = np.sum((point - row) ** 2)
        if point.min() >= 0 and (best is None or distance < best[0]):
            best = distance, point
    return best[1]


def held_flow(model, X, y, metric, groups, loss="log_loss", penalty=50.0, n_steps=20,
              step_size=0.01):  # fmt: skip
    """x_T of Euler's flow that goes back to the simplex of each group after each step."""
    start = np.array(X, dtype=float)
    x = start.copy()
    for _ in range(n_steps):
        pull = 2 * penalty * (x - start) @ metric
        x = x + step_size * (loss_gradient(model, loss, x, np.asarray(y)) - pull)
        for group in groups:
            x[:, group] = [on_simplex(row) for row in x[:, group]]
    return x


def flow(
    model, X, y, metric, loss="log_loss", penalty=50.0, n_steps=500, step_size=0.01,
    step_decay=0.0, solver="euler", record=(),
):  # fmt: skip
    """(x_T, loss(x_0), loss(x_T), {t: loss(x_t)} for t in record).

    dx/ds = grad_x {loss(f(x), y) - lambda d^2(x, x_0)} = grad loss - 2 lambda D (x - x_0). The
    field does not depend on s, so a step of any solver needs only its length eta_t, and all
    solvers approximate x at the same time, `flow_time`.
    """
    start = np.array(X, dtype=float)
    y = np.asarray(y)

    def velocity(x):
        return loss_gradient(model, loss, x, y) - 2 * penalty * (x - start) @ metric

    x, losses = start.copy(), {}
    for t in range(n_steps + 1):
        if t > 0:
            h = step(t, step_size, step_decay)
            k1 = velocity(x)
            if solver == "euler":
                x = x + h * k1
            elif solver == "heun":
                x = x + h / 2 * (k1 + velocity(x + h * k1))
            elif solver == "rk4":
                k2 = velocity(x + h / 2 * k1)
                k3 = velocity(x + h / 2 * k2)
                k4 = velocity(x + h * k3)
                x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            else:
                raise ValueError(solver)
        if t in record:
            losses[t] = losses_of(model, loss, x, y)
    return x, losses_of(model, loss, start, y), losses_of(model, loss, x, y), losses


def closed_flow(model, X, y, metric, penalty=50.0, n_steps=500, step_size=0.01, step_decay=0.0):
    """`flow` (Euler, log loss) for a linear model and a projection D, two numbers per row.

    x - x_0 = a (I - D) w + b D w, z = z_0 + a |(I - D) w|^2 + b |D w|^2 with
    da = eta (sigma(z) - y), db = eta (sigma(z) - y - 2 lambda b). Returns (x_T, losses).
    """
    dear = metric @ model.coef
    free = model.coef - dear
    z0 = model.score(X)
    a, b, z = np.zeros(len(X)), np.zeros(len(X)), z0
    for t in range(1, n_steps + 1):
        h, g = step(t, step_size, step_decay), log_loss_slope(z, y)
        a, b = a + h * g, b + h * (g - 2 * penalty * b)
        z = z0 + a * (free @ free) + b * (dear @ dear)
    return X + np.outer(a, free) + np.outer(b, dear), log_loss(z, y)


def eigen_flow(model, X, y, metric, penalty=50.0, n_steps=500, step_size=0.01, step_decay=0.0):
    """`closed_flow` for any D = sum_k mu_k q_k q_k': one number per eigenvalue.

    x - x_0 = sum_k c_k (q_k.w) q_k, z = z_0 + sum_k c_k (q_k.w)^2,
    dc_k = eta (sigma(z) - y - 2 lambda mu_k c_k).
    """
    mu, Q = np.linalg.eigh(metric)
    part = Q.T @ model.coef
    z0 = model.score(X)
    c, z = np.zeros((len(X), len(mu))), z0
    for t in range(1, n_steps + 1):
        h, g = step(t, step_size, step_decay), log_loss_slope(z, y)
        c = c + h * (g[:, None] - 2 * penalty * mu * c)
        z = z0 + c @ part**2
    return X + (c * part) @ Q.T, log_loss(z, y)


# --- the audit value ------------------------------------------------------------------------


def loss_ratios(loss_start, loss_end, loss_floor=LOSS_FLOOR):
    """(r, n_floored, n_nonfinite), r_i = max(loss(x_T), floor) / max(loss(x_0), floor).

    The floor enters both: a row that is right beyond measure before and after has ratio 1, not
    0. n_floored counts rows with loss(x_0) < floor. NaN stays NaN.
    """
    start, end = np.asarray(loss_start), np.asarray(loss_end)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.maximum(end, loss_floor) / np.maximum(start, loss_floor)
    return ratios, int(np.sum(start < loss_floor)), int(np.sum(~np.isfinite(ratios)))


def mean_ratio(ratios, ddof=1):
    """(S_n, V_n^2 / n); NaN where a ratio is not finite (no row is dropped) or n <= ddof."""
    ratios = np.asarray(ratios, dtype=float)
    if not np.all(np.isfinite(ratios)) or len(ratios) <= ddof:
        return math.nan, math.nan
    return float(np.mean(ratios)), float(np.var(ratios, ddof=ddof) / len(ratios))


def error_rate_ratio(wrong_start, wrong_end, ddof=1):
    """(A / B, variance), A and B the error rates after and before; NaN where B = 0.

    Delta method: g' Sigma g / n, g = (1 / B, -A / B^2), Sigma the covariance of the two columns.
    """
    A, B, n = np.mean(wrong_end), np.mean(wrong_start), len(wrong_end)
    if B == 0 or n <= ddof:
        return math.nan, math.nan
    linearised = (wrong_end - A) / B - A / B**2 * (wrong_start - B)
    return float(A / B), float(np.sum(linearised**2) / (n - ddof) / n)


def error_rate_ratio_as_printed(wrong_start, wrong_end):
    """Equation (3.13), with the un-centred second moments V: the same as `error_rate_ratio` with
    ddof 0, because g'(A, B) = 0."""
    A, B, n = np.mean(wrong_end), np.mean(wrong_start), len(wrong_end)
    rows = np.column_stack([wrong_end, wrong_start])
    V = rows.T @ rows / n
    inside = A**2 * V[1, 1] + B**2 * V[0, 0] - 2 * A * B * V[0, 1]
    return float(A / B), float(inside / B**4 / n)


def clustered_ratio(numerator, denominator=None, weights=None, clusters=None):
    """(theta, CR2 variance, Bell and McCaffrey's df), theta = sum w a / sum w d; a mean has d = 1.

    Units are clusters, or rows. With W_c their weights and w_c = W_c / sum W the linearised
    u_c = sum_c w (a - theta d) / sum w d; v = sum u_c^2 / (1 - w_c). For a mean of equal units
    v = residuals' A residuals with residuals = (I - 1 w') y, so that E v and Var v under equal
    variances are the traces of K = (I - 1 w') diag(w^2 / (1 - w)) (I - 1 w')'.
    """
    numerator = np.asarray(numerator, dtype=float)
    n = len(numerator)
    denominator = np.ones(n) if denominator is None else np.asarray(denominator, dtype=float)
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    clusters = np.arange(n) if clusters is None else np.asarray(clusters)
    kept = weights > 0
    numerator, denominator, weights, clusters = (
        value[kept] for value in (numerator, denominator, weights, clusters)
    )
    total = np.sum(weights * denominator)
    theta = np.sum(weights * numerator) / total
    u = weights * (numerator - theta * denominator) / total
    labels = np.unique(clusters)
    u = np.array([u[clusters == label].sum() for label in labels])
    w = np.array([weights[clusters == label].sum() for label in labels]) / weights.sum()
    centre = np.eye(len(w)) - np.outer(np.ones(len(w)), w)
    K = centre.T @ np.diag(w**2 / (1 - w)) @ centre
    df = np.trace(K) ** 2 / np.trace(K @ K)
    return float(theta), float(np.sum(u**2 / (1 - w))), float(df)


def normal_interval(estimate, variance, level=0.95):
    """S -+ z_{(1 + level) / 2} sqrt(v)."""
    half = stats.norm.ppf((1 + level) / 2) * math.sqrt(variance)
    return estimate - half, estimate + half


def log_interval(estimate, variance, level=0.95):
    """S exp(-+ z sqrt(v) / S): an interval of the mean ratio, not of the mean log ratio.

    log S_n estimates log E[r] (or log A / B), with variance v / S^2 by the delta method; exp
    returns it to the scale of the mean. (exp of the mean of log r is the geometric mean, a
    smaller number: not what H0 speaks of.) NaN unless S > 0.
    """
    if not estimate > 0:
        return math.nan, math.nan
    half = stats.norm.ppf((1 + level) / 2) * math.sqrt(variance) / estimate
    return estimate * math.exp(-half), estimate * math.exp(half)


def bootstrap_replicates(estimator, columns, n_bootstrap=999, rng=None):
    """(S*, v*) of every replicate, rows drawn with replacement, all columns together."""
    rng = np.random.default_rng(rng)
    columns = [np.asarray(column) for column in columns]
    replicates = [estimator(*resample(columns, rng)) for _ in range(n_bootstrap)]
    return np.array(replicates).T


def bootstrap_t_interval(estimator, columns, n_bootstrap=999, level=0.95, rng=None):
    """(S - q_{1-alpha/2}(t*) sqrt(v), S - q_{alpha/2}(t*) sqrt(v)), t* = (S* - S) / sqrt(v*).

    The quantiles and the degenerate cases are those of `studentized_interval`.
    """
    observed, variance = estimator(*columns)
    replicates = bootstrap_replicates(estimator, columns, n_bootstrap, rng)
    return studentized_interval(observed, variance, *replicates, level)


def bootstrap_t_pvalue(estimator, columns, delta=DELTA, n_bootstrap=999, rng=None):
    """(1 + #{t* >= t}) / (1 + B), t = (S - delta) / sqrt(v); an undefined t* counts as extreme."""
    observed, variance = estimator(*columns)
    if math.isnan(observed):
        return math.nan
    replicates, variances = bootstrap_replicates(estimator, columns, n_bootstrap, rng)
    t = studentized(observed, delta, variance)
    t_star = [
        studentized(replicate, observed, v)
        for replicate, v in zip(replicates, variances, strict=True)
    ]
    return (1 + sum(is_extreme(value, t, "greater") for value in t_star)) / (1 + len(t_star))


def studentized(estimate, reference, variance):
    """(estimate - reference) / sqrt(v); 0 for 0 / 0, +-inf for another difference over 0."""
    return statistic((estimate, reference), (variance, 0.0), "unpooled")


def lower_bound(estimate, variance, level=0.95, interval=normal_interval):
    """T_n = S_n - z_{level} V_n / sqrt(n): the lower end of the two-sided interval of level
    2 level - 1. H0 is rejected where T_n > delta. z_{0.95} = 1.644854 (Algorithm 1: 1.645)."""
    return interval(estimate, variance, 2 * level - 1)[0]


def upper_bound(estimate, variance, level=0.95, interval=normal_interval):
    """S_n + z_{level} V_n / sqrt(n), the other one-sided interval (-inf, upper]."""
    return interval(estimate, variance, 2 * level - 1)[1]


def normal_pvalue(estimate, variance, delta=DELTA):
    """1 - Phi((S - delta) / sqrt(v)): H0 is E[r] <= delta; v = 0 gives 1 for S < delta, 1/2 for
    S = delta, 0 above."""
    return float(stats.norm.sf(studentized(estimate, delta, variance)))


def log_pvalue(estimate, variance, delta=DELTA):
    """1 - Phi(S log(S / delta) / sqrt(v)), the test that `log_interval` inverts."""
    if not estimate > 0:
        return math.nan
    return float(
        stats.norm.sf(studentized(math.log(estimate), math.log(delta), variance / estimate**2))
    )


def paper_audit(loss_start, loss_end, level=0.95):
    """compat="paper": (S_n, T_n, n_dropped); no floor, non-finite ratios dropped, ddof 0."""
    ratios, _, n_dropped = loss_ratios(loss_start, loss_end, loss_floor=-math.inf)
    estimate, variance = mean_ratio(ratios[np.isfinite(ratios)], ddof=0)
    return estimate, lower_bound(estimate, variance, level), n_dropped


def path(loss_start, losses, level=0.95, loss_floor=LOSS_FLOOR):
    """{t: (S_n, T_n)} along the flow (Figure 2), losses as recorded by `flow`."""
    answer = {}
    for t, loss_now in losses.items():
        estimate, variance = mean_ratio(loss_ratios(loss_start, loss_now, loss_floor)[0])
        answer[t] = estimate, lower_bound(estimate, variance, level)
    return answer


def refitted_interval(
    model, X, y, protected, given=(), C=1.0, n_bootstrap=199, level=0.95, rng=None, **flow_options
):
    """The bootstrap-t interval of S_n that includes the fit of the sensitive subspace.

    Rows are drawn with their protected attributes, the metric is fitted again on the drawn
    rows (which are also those audited), and the flow runs again under it.
    """

    def estimator(X, y, *protected):
        metric = subspace_metric(X, protected, given, C)
        _, loss_start, loss_end, _ = flow(model, X, y, metric, **flow_options)
        return mean_ratio(loss_ratios(loss_start, loss_end)[0])

    return bootstrap_t_interval(estimator, [X, y, *protected], n_bootstrap, level, rng)


# --- the simulation of appendix E -----------------------------------------------------------

GRID = np.round(np.arange(-4.0, 4.01, 0.4), 10)
"""The 21 values of each coefficient."""

T_N_ALONG_THETA_1 = (
    6.690, 4.962, 3.656, 2.718, 2.077, 1.654, 1.378, 1.200, 1.087, 1.022, 1.000,
    1.023, 1.094, 1.223, 1.433, 1.753, 2.211, 2.818, 3.559, 4.404, 5.324,
)  # fmt: skip
"""T_n at theta_2 = 0, theta_1 on GRID: to the last digit with ddof 0, +-0.0006 with ddof 1."""


def simulation(seed=1, n=400):
    """(X, y, minority) of equation (E.1).

    Drawn in this order from the legacy RandomState: the n x 2 normals of the features (sd 0.25),
    the groups by choice([minority, majority], p = [0.1, 0.9]), the n normals of the noise
    (times 0.01). mu = (+-1.5, 0) and w = (+-0.2, -0.01), + for the minority;
    y = 1{w.(x - mu) + noise > 0}: centred at the group's mean, which (E.1) leaves out.
    """
    rng = np.random.RandomState(seed)
    deviation = rng.normal(0, 0.25, (n, 2))
    minority = rng.choice([1, 0], size=n, p=[0.1, 0.9])
    noise = rng.normal(size=n) * 0.01
    side = 2 * minority - 1
    X = deviation + np.column_stack([1.5 * side, np.zeros(n)])
    centred_score = 0.2 * side * deviation[:, 0] - 0.01 * deviation[:, 1]
    return X, (centred_score + noise > 0).astype(int), minority


def fitted_bias(X, y, coef):
    """b of least summed log loss given w: sum_i sigma(w.x_i + b) = sum_i y_i."""
    return optimize.brentq(lambda b: np.sum(special.expit(X @ coef + b) - y), -100, 100)


def rotated_metric(degrees):
    """u u' with u = (-sin b, cos b), rank one; section 4.1 prints only its diagonal."""
    b = np.deg2rad(degrees)
    u = np.array([-np.sin(b), np.cos(b)])
    return np.outer(u, u)


def simulation_ratios(X, y, coef, metric, n_biases=1):
    """r_i for the model w.x + n_biases b; n_biases = 2 is the published figure's slip."""
    coef = np.asarray(coef, dtype=float)
    model = Linear(coef, n_biases * fitted_bias(X, y, coef))
    _, loss_start, loss_end, _ = flow(
        model, X, y, metric, penalty=100.0, n_steps=400, step_size=0.02, step_decay=2 / 3
    )
    return loss_ratios(loss_start, loss_end)[0]


def simulation_share(X, y, metric, n_biases=1, ddof=1):
    """The share of the 21 x 21 grid of (theta_1, theta_2) with T_n > 1.25.

    294/441 = 0.6667, rotated by 5 and 10 degrees (either way) 306/441 = 0.6939 and 304/441 =
    0.6893, bias twice 274/441 = 0.6213; the same for ddof 0 and 1, z exact or 1.645. The cell
    closest to 1.25 is 0.015, 5e-5, 5e-5 and 6e-4 away. With only the diagonal of the rotated
    metric, as section 4.1 prints it: 0.6667 and 0.4898.
    """
    n_rejected = 0
    for theta in [(value, two) for value in GRID for two in GRID]:
        ratios = simulation_ratios(X, y, theta, metric, n_biases)
        n_rejected += lower_bound(*mean_ratio(ratios, ddof)) > DELTA
    return n_rejected / len(GRID) ** 2


# --- the profile of the angle between a linear model and a sensitive direction --------------


def profile_distance(coef, b, covariance, c, n_starts=5, seed=0):
    """D(c) = min over v with cos^2(v, coef) = c of (v - b)' V^-1 (v - b), by brute force.

    v = r (sqrt(c) a + sqrt(1 - c) q), a the unit vector of coef and q a unit vector across it. The
    best length r of given q is in closed form (negative ones turn v around); q is searched for.
    """
    inverse = np.linalg.inv(covariance)
    a = coef / np.linalg.norm(coef)
    across = np.linalg.svd(a[None])[2][1:].T

    def of(x):
        size = np.linalg.norm(x)
        q = across @ (x / size) if size > 0 else across[:, 0]
        u = math.sqrt(c) * a + math.sqrt(1 - c) * q
        r = (u @ inverse @ b) / (u @ inverse @ u)
        gap = r * u - b
        return float(gap @ inverse @ gap)

    rng = np.random.default_rng(seed)
    starts = [across.T @ b, -(across.T @ b), *rng.normal(size=(n_starts, len(b) - 1))]
    options = {"xatol": 1e-12, "fatol": 1e-14, "maxiter": 40_000, "maxfev": 40_000}
    found = []
    for start in starts:
        rough = optimize.minimize(of, start, method="BFGS")
        found.append(rough.fun)
    best = optimize.minimize(
        of, starts[int(np.argmin(found))], method="Nelder-Mead", options=options
    )
    return min(*found, best.fun)


def cosine_interval(coef, b, covariance, limit, n_grid=4_001):
    """The smallest and the largest c of a grid on [0, 1] with D(c) <= limit."""
    grid = np.linspace(0, 1, n_grid)
    inside = [c for c in grid if profile_distance(coef, b, covariance, c, n_starts=2) <= limit]
    return min(inside), max(inside)
