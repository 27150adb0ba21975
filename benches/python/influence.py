"""The influence lens against NumPy, in one run on one machine.

Marginal proxy scores of many binary features with simultaneous intervals, the descent, and
transport repairs of the women of Adult (FAIRAUDIT_DATA) beside the whole linear program. With
--write the table goes to benches/README.md and docs/performance.md.
"""

import gzip
import importlib.util
import os
from pathlib import Path

import numpy as np
from scipy import optimize, sparse, stats

import fairaudit_rs as fa
from fairaudit_rs import _native
from fairaudit_rs.influence.cell_map import FeatureCells
from fairaudit_rs.influence.cost import ChangeCost
from fairaudit_rs.influence.descent import rates_of
from fairaudit_rs.influence.feature_encodings import FeatureEncodings
from fairaudit_rs.influence.rates import measure_of
from fairaudit_rs.influence.transport import fit_transport as transport_repair
from report import machine, run, seconds, time_table, timed

N, FEATURES, DRAWS, STEPS = 1_000_000, 50, 2_000, 20


def make_rows(n, p):
    """Binary features of prevalence 0.5 to 0.05, labels, and scores that follow some of them."""
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
    found = {value.feature: value for value in ours().proxy_scores}
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


def make_parts(n):
    """Rows that are all different, in a fit, a stop and a report part, and those of the others."""
    rng = np.random.default_rng(0)
    chance = rng.beta(2, 3, n)
    score = np.clip(chance + 0.2 * rng.normal(size=n), 0.01, 0.99)
    label = (rng.random(n) < chance).astype(np.float64)
    part = rng.integers(3, size=n)
    others = (rng.random(1_000) < 0.3).astype(np.float64), rng.beta(1, 4, 1_000)
    return chance, label, score, part, others, rng.integers(3, size=1_000)


def false_positives(label, score, weight):
    """The weighted rate, its denominator, and sums that its variance is made of."""
    negative = weight * (1.0 - label)
    base = negative.sum()
    rate = (negative @ score) / base
    error = negative * (score - rate)
    return rate, base, (error @ error) / base**2 * (len(label) / (len(label) - 1))


def descent_by_numpy(chance, label, score, part, others, other_part, step=0.1):
    """As a careful user writes it: rows of the parts that are needed, whole columns at a time."""
    rates = [
        false_positives(*(finding[other_part == k] for finding in others), 1.0) for k in (0, 1)
    ]
    fit, stop = part == 0, part == 1
    h, f = chance[fit], score[fit]
    h_stop, f_stop, y_stop = chance[stop], score[stop], label[stop]
    weight, at_stop, path, steps = np.ones(len(f)), np.ones(len(f_stop)), [], []
    for number in range(STEPS + 1):
        negative = weight * (1.0 - h)
        base = negative.sum()
        rate = (negative @ f) / base
        found, _, variance = false_positives(y_stop, f_stop, at_stop)
        gap, error = found - rates[1][0], np.sqrt(variance + rates[1][2])
        size = at_stop.sum() ** 2 / (at_stop @ at_stop)
        path.append((rate - rates[0][0], gap, error, abs(gap) + 1.645 * error, size / len(y_stop)))
        if number == STEPS:
            break
        scale = np.sign(rate - rates[0][0]) * weight.sum() / base
        psi = (1.0 - h) * (f - rate) * scale
        length = min(step, 1 / psi.max())
        weight *= np.maximum(1.0 - length * psi, 0.0)
        at_stop *= np.maximum(1.0 - length * scale * (1.0 - h_stop) * (f_stop - rate), 0.0)
        steps.append((length * scale, rate))
    everyone = np.ones(len(chance))
    for scale, rate in steps:
        everyone *= np.maximum(1.0 - scale * (1.0 - chance) * (score - rate), 0.0)
    return np.array(path), everyone


def descent():
    chance, label, score, part, others, other_part = given = make_parts(N)
    counts = np.eye(3, dtype=np.int64)
    rates, call = rates_of(measure_of("false_positive_rate")), _native.Call()
    target, rest = (label, score, counts[part]), (*others, counts[other_part])

    def ours():
        rule = (0.1, 1e-9, 1.645, 0.0, STEPS)
        steps, path, _ = _native.descent_path(target, chance, rest, rates, rule, call)
        return path, _native.descent_factors(chance, score, steps, call)

    (path, factors), (their_path, their_factors) = ours(), descent_by_numpy(*given)
    assert np.abs(path - their_path).max() < 1e-9
    assert np.abs(factors - their_factors).max() < 1e-9
    work = f"influence values and descent, 10^6 different rows, {STEPS} steps, the same nuisance"
    yield work, "NumPy", seconds(lambda: descent_by_numpy(*given), 3), seconds(ours, 5), 5


def adult_women():
    """Cells of the women that train nothing, their counts, and masses with the men's FPR."""
    path = Path(os.environ["FAIRAUDIT_DATA"], "adult_proxy", "adult_proxy_data.csv.gz")
    with gzip.open(path, "rt") as file:
        header, *lines = (line.strip().split(",") for line in file)
    table = {
        name.strip('"'): column
        for name, column in zip(header, zip(*lines, strict=True), strict=True)
    }
    label = np.array([value == "1" for value in table.pop("IncomeOver50K")], dtype=float)
    woman = np.array([value.strip('"') == "Female" for value in table.pop("Sex")])
    X = np.array([[value in ("1", "TRUE") for value in column] for column in table.values()]).T
    training = np.random.default_rng(52).random(len(X)) < 0.35

    def loss(coef):
        score = coef[0] + X[training] @ coef[1:]
        pull = 1 / (1 + np.exp(-score)) - label[training]
        value = np.logaddexp(0, score).sum() - label[training] @ score + coef @ coef / 2
        return value, np.r_[pull.sum(), pull @ X[training]] + coef

    coef = optimize.minimize(loss, np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B").x
    score = 1 / (1 + np.exp(-coef[0] - X @ coef[1:]))
    men, women = ~training & ~woman & (label == 0), ~training & woman
    cells, place, count = np.unique(
        X[women].astype(float), axis=0, return_inverse=True, return_counts=True
    )
    negative = np.bincount(place, 1 - label[women])
    f = np.bincount(place, score[women]) / count

    def gap(tilt):
        factor = np.exp(tilt * f)
        return (negative * factor) @ f / (negative @ factor) - score[men].mean()

    tilt = optimize.brentq(gap, -50, 50)
    return cells, count.astype(float), count * np.exp(tilt * f), list(table)


def whole_program(count, wanted, cost):
    """All pairs of cells at once."""
    n = len(count)
    into = sparse.kron(np.ones((1, n)), sparse.eye(n))
    rows = sparse.vstack([sparse.kron(sparse.eye(n), np.ones((1, n))), into], format="csc")
    tolerances = dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), 1e-9)
    found = optimize.linprog(
        cost.ravel(), A_eq=rows[:-1], b_eq=np.r_[count, wanted][:-1], method="highs-ds",
        options=tolerances,
    )  # fmt: skip
    assert found.status == 0
    return found.fun


def transport():
    if "FAIRAUDIT_DATA" not in os.environ:
        return
    features, count, wanted, names = adult_women()
    wanted *= count.sum() / wanted.sum()
    cells = FeatureCells(features=features, count=count, score=np.zeros(len(count)))
    coding = FeatureEncodings.from_columns(
        {name: features[:, k] for k, name in enumerate(names)}, {}
    )
    cost = ChangeCost.from_arguments(None, (), coding, features, count)
    matrix = cost.matrix(features, features)
    value = transport_repair(cells, cost, wanted).certificate["primal"] * count.sum()
    found = []
    work = f"transport repair, {len(count)} x {len(count)} cells (Adult, women)"
    theirs = timed(lambda: found.append(whole_program(count, wanted, matrix)))
    assert abs(found[0] - value) < 1e-8 * value
    mine = seconds(lambda: transport_repair(cells, cost, wanted))
    yield work, "HiGHS, all pairs", theirs, mine, 10
    if importlib.util.find_spec("ot"):
        import ot

        def pot():
            return float((ot.emd(count, wanted, matrix, numItermax=10_000_000) * matrix).sum())

        assert abs(pot() - value) < 1e-9 * value
        yield work, "POT, ot.emd", seconds(pot), mine, None


def lines():
    yield from time_table([*marginal(), *descent(), *transport()])
    yield from ["", machine()]


if __name__ == "__main__":
    run("influence", lines(), __doc__)
