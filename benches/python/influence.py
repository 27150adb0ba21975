"""The influence lens against NumPy, in one run on one machine.

Marginal proxy scores of many binary features with simultaneous intervals. With --write the table
goes to benches/README.md and docs/performance.md.
"""

import numpy as np
from scipy import stats

import fairaudit_rs as fa
from report import machine, run, seconds, time_table

N, FEATURES, DRAWS = 1_000_000, 50, 2_000


def make_rows(n, p):
    """Binary features of prevalence .5 to .05, labels, and scores that follow some of them."""
    rng = np.random.default_rng(0)
    X = (rng.random((n, p)) < np.geomspace(0.5, 0.05, p)).astype(np.float64)
    score = 1 / (1 + np.exp(1.5 - X[:, :5].sum(axis=1) - rng.normal(size=n)))
    y = (rng.random(n) < 0.7 * score + 0.1).astype(np.int64)
    return X, y, score, rng


def by_numpy(X, y, f, draws):
    """As a careful user writes it: influence values as a matrix, its Gram matrix, draws."""
    b = 1.0 - y
    B = b.mean()
    R = (b * f).mean() / B
    u = b * (f - R)
    p = X.mean(axis=0)
    q = 1 - p
    mu_1, mu_0 = u @ X / (len(y) * p), u @ (1 - X) / (len(y) * q)
    db = b @ X / (len(y) * p) - b @ (1 - X) / (len(y) * q)
    theta = (mu_1 - mu_0) / B
    influence = X * ((u[:, None] - mu_1) / p) - (1 - X) * ((u[:, None] - mu_0) / q)
    influence -= u[:, None] * (db / B) + (b - B)[:, None] * theta
    influence /= B
    gram = influence.T @ influence
    error = np.sqrt(np.diag(gram)) / len(y)
    scale = np.sqrt(np.diag(gram))
    root = np.linalg.cholesky(gram / np.outer(scale, scale) + 1e-12 * np.eye(len(theta)))
    largest = np.abs(np.random.default_rng(0).normal(size=(draws, len(theta))) @ root.T).max(axis=1)
    cut = np.quantile(largest, 0.95)
    return theta, error, cut, 2 * stats.norm.sf(np.abs(theta / error))


def marginal():
    X, y, score, rng = make_rows(N, FEATURES)
    group = np.zeros(N, np.int8)
    group[rng.choice(N, 1_000, replace=False)] = 1
    inside = group == 0

    def ours():
        return fa.influence_audit(
            y, y_score=score, X=X, sensitive_features=group, target=0, n_draws=DRAWS, rng=1
        )

    theta, error, *_ = by_numpy(X[inside], y[inside].astype(float), score[inside], DRAWS)
    found = {one.feature: one for one in ours().proxy_scores}
    for j in range(FEATURES):
        one = found[f"x{j + 1}"]
        assert abs(one.estimate - theta[j]) < 1e-9
        assert abs(one.standard_error / error[j] - 1) < 1e-2
    work = f"marginal proxy scores, {FEATURES} features, {DRAWS:,} draws, 10^6 rows, from arrays"
    target = X[inside], y[inside].astype(float), score[inside]
    yield (
        work,
        "NumPy, the Gram matrix",
        seconds(lambda: by_numpy(*target, DRAWS), 2),
        seconds(ours, 2),
        3,
    )


def lines():
    yield from time_table([*marginal()])
    yield from ["", machine()]


if __name__ == "__main__":
    run("influence", lines(), __doc__)
