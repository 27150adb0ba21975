"""The reference of the influence lens against its oracles, derivatives and other programs."""

from itertools import permutations

import numpy as np
import pytest
from scipy import optimize, special, stats

from ..reference import influence as reference
from ..reference import influence_designs as designs

COMBINATION = {"fpr": 0.7, "fnr": -0.4, "selection_rate": 0.2}


def rows(seed=0, n=300, decision=False):
    rng = np.random.default_rng(seed)
    y, f, x = designs.Marginal(0.31, 0.3, decision, dependent=True).rows(rng, n)
    return y, f, x, rng.uniform(0.5, 2, n)


def derivatives(estimate, w, at=range(0, 300, 37), step=1e-5):
    """sum w times d estimate / d w_i: the influence values by definition."""
    for i in at:
        ends = []
        for e in (step, -step):
            moved = w.copy()
            moved[i] += e
            ends.append(estimate(moved))
        yield i, w.sum() * (np.asarray(ends[0]) - np.asarray(ends[1])) / (2 * step)


# --- oracles and influence values -------------------------------------------------------------


def test_the_toy_has_the_values_of_the_page():
    law = reference.toy()
    assert law.p0 @ law.f == pytest.approx(0.908691, abs=1e-6)
    assert law.p1 @ law.f == pytest.approx(0.260926, abs=1e-6)
    for name, target, others in (
        ("fpr", 0.474746, 0.155345),
        ("fnr", 0.047704, 0.440016),
        ("fdr", 0.047704, 0.440016),
    ):
        assert reference.rate(name, law.h0, law.f, law.p0)[0] == pytest.approx(target, abs=1e-6)
        assert reference.rate(name, law.h1, law.f, law.p1)[0] == pytest.approx(others, abs=1e-6)
    assert reference.population_value("da_out", law) == pytest.approx(0.942894, abs=1e-6)
    assert reference.population_value("da_in", law) == pytest.approx(2.143269, abs=1e-6)
    psi = [0.138291, -3.429676, -3.429676, -4.912365, 0.038010, 0.248184, 0.248184, 0.754942]
    np.testing.assert_allclose(reference.population_psi("fpr", law), psi, atol=1e-6)


def test_the_population_descends_as_on_the_page():
    law = reference.toy()
    part = reference.Part(law.h0, law.f, law.h0, law.h1, law.f, law.p0, law.p1)
    path = reference.descent_path("fpr", part, 20, step=0.1)
    factors = reference.factors("fpr", path, law.f, law.h0)
    np.testing.assert_allclose(factors @ law.p0, 1, atol=1e-12)
    gaps = [part.gap("fpr", factors[t])[0] for t in (0, 1, 5, 10, 15, 20)]
    np.testing.assert_allclose(gaps, [0.3194, 0.2732, 0.1419, 0.0620, 0.0209, -0.0041], atol=5e-5)


@pytest.mark.parametrize(
    "metric",
    [*reference.RATES, *reference.DIVERGENCES, COMBINATION, {"fdr": 1, "cal": -2, "da_in": 0.1}],
    ids=str,
)
def test_psi_is_the_finite_difference_and_has_mean_0(metric):
    rng = np.random.default_rng(3)
    p0, p1 = rng.dirichlet(np.full(12, 3.0)), rng.dirichlet(np.full(12, 3.0))
    law = reference.Discrete(p0, p1, *rng.uniform(0.05, 0.95, (3, 12)))
    for discrete in (law, reference.toy()):
        psi = reference.population_psi(metric, discrete)
        np.testing.assert_allclose(psi, reference.finite_difference(metric, discrete), atol=3e-6)
        assert discrete.p0 @ psi == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("name", "mirror"), [("tpr", "fnr"), ("ppv", "fdr")])
def test_mirrored_rates_are_the_negative_row_by_row(name, mirror):
    y, f, x, w = rows()
    psi = reference.psi_rows(name, y, f, w)
    np.testing.assert_allclose(psi, -reference.psi_rows(mirror, y, f, w), atol=1e-12)
    assert w @ psi == pytest.approx(0, abs=1e-10)
    h = np.linspace(0.1, 0.9, len(y))
    one, other = (
        reference.psi_of_x(m, f, h, reference.rates_of(m, y, f, w)) for m in (name, mirror)
    )
    np.testing.assert_allclose(one, -other, atol=1e-12)
    one, other = (reference.marginal_binary(m, y, f, x, w) for m in (name, mirror))
    np.testing.assert_allclose(one.influence, -other.influence, atol=1e-12)
    assert one.events == pytest.approx(other.events)


@pytest.mark.parametrize("name", reference.RATES)
def test_psi_of_x_is_the_conditional_mean_of_the_rows(name):
    law = reference.toy()
    y = np.r_[np.ones(8), np.zeros(8)]
    f = np.r_[law.f, law.f]
    w = np.r_[law.p0 * law.h0, law.p0 * (1 - law.h0)]
    psi = reference.psi_rows(name, y, f, w)
    expected = law.h0 * psi[:8] + (1 - law.h0) * psi[8:]
    np.testing.assert_allclose(expected, reference.population_psi(name, law), atol=1e-12)


def test_the_correction_has_unit_variance():
    law = reference.toy()
    phi = reference.correction(reference.population_psi("fpr", law), law.p0)
    assert law.p0 @ phi**2 == pytest.approx(1)


# --- marginal scores --------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [*reference.RATES, COMBINATION], ids=str)
@pytest.mark.parametrize("decision", [False, True])
def test_marginal_influence_is_the_derivative_by_the_weights(metric, decision):
    y, f, x, w = rows(decision=decision)
    score = reference.marginal_binary(metric, y, f, x, w)
    assert w @ score.influence == pytest.approx(0, abs=1e-9)

    def moved(weights):
        return reference.marginal_binary(metric, y, f, x, weights).value

    for i, derivative in derivatives(moved, w):
        assert score.influence[i] == pytest.approx(derivative, abs=1e-6)
    psi = reference.psi_rows(metric, y, f, w)
    difference = reference.mean(psi[x == 1], w[x == 1]) - reference.mean(psi[x == 0], w[x == 0])
    assert score.value == pytest.approx(difference)


def test_levels_have_the_influence_of_the_binary_score():
    y, f, x, w = rows()
    theta, influence = reference.marginal_levels("fpr", y, f, x, [0.0, 1.0], w)
    score = reference.marginal_binary("fpr", y, f, x, w)
    assert theta[1] - theta[0] == pytest.approx(score.value)
    np.testing.assert_allclose(influence[:, 1] - influence[:, 0], score.influence, atol=1e-12)


@pytest.mark.parametrize("metric", [*reference.RATES, COMBINATION], ids=str)
def test_the_slope_has_the_derivative_by_the_weights(metric):
    y, f, _, w = rows()
    x = np.random.default_rng(8).normal(size=len(y)) + f
    score = reference.marginal_continuous(metric, y, f, x, w, hc3=False)
    assert w @ score.influence == pytest.approx(0, abs=1e-9)
    correct = reference.kish(w) / (reference.kish(w) - 1)

    def moved(weights):
        k = reference.kish(weights)
        value = reference.marginal_continuous(metric, y, f, x, weights, hc3=False).value
        return value * np.sqrt((k - 1) / k * correct)

    for i, derivative in derivatives(moved, w):
        assert score.influence[i] == pytest.approx(derivative, abs=1e-6)
    psi, plain = reference.psi_rows(metric, y, f), reference.marginal_continuous(metric, y, f, x)
    assert plain.value == pytest.approx(np.polyfit(x, psi, 1)[0] * x.std(ddof=1))


def test_hc3_divides_residuals_by_their_leverage():
    y, f, _, _ = rows()
    x = np.random.default_rng(8).normal(size=len(y)) + f
    one = reference.marginal_continuous("selection_rate", y, f, x)
    plain = reference.marginal_continuous("selection_rate", y, f, x, hc3=False)
    d = x - x.mean()
    leverage = 1 / len(x) + d**2 / np.sum(d**2)
    psi = f / 1.0 - f.mean()
    slope = np.sum(d * psi) / np.sum(d**2)
    added = x.std(ddof=1) * len(x) * d / np.sum(d**2) * (psi - slope * d)
    difference = added * (1 / (1 - leverage) - 1)
    np.testing.assert_allclose(one.influence - plain.influence, difference, atol=1e-10)


def test_the_variance_is_split_by_cell():
    influence, cell = np.array([1.0, 3.0, -1.0, -2.0, -1.0]), np.array([1, 1, 0, 0, 0])
    V, df = reference.split_covariance(influence, cell)
    parts = 2 * 2.0 / 25, 3 * (1 / 3) / 25
    between = (2 * 4 + 3 * (4 / 3) ** 2) / 25
    assert V[0, 0] == pytest.approx(sum(parts) + between)
    below = parts[0] ** 2 / 1 + parts[1] ** 2 / 2 + between**2 / 4
    assert df[0] == pytest.approx(V[0, 0] ** 2 / below)


def test_the_guard_counts_events_in_both_cells():
    y, f = np.r_[np.zeros(40), np.ones(10)], np.r_[np.ones(7), np.zeros(33), np.ones(10)]
    x = np.r_[np.ones(20), np.zeros(30)]
    assert reference.events("fpr", y, f, x == 1) == 7
    assert reference.events("fpr", y, f, x == 0) == 0
    assert reference.marginal_binary("fpr", y, f, x).status == "refused"
    assert [reference.guard(n) for n in (4.9, 5, 9.9, 10)] == [
        "refused",
        "few events",
        "few events",
        "ok",
    ]
    assert reference.events("fpr", y, f, x == 1, np.full(50, 3.0)) == pytest.approx(7)


def test_rare_levels_are_merged():
    rng = np.random.default_rng(2)
    y, f, _ = designs.Marginal(0.31, 0.5, True).rows(rng, 2000)
    x = rng.choice(["a", "b", "c", "d"], 2000, p=[0.6, 0.38, 0.01, 0.01])
    names, levels = reference.merged_levels("fpr", y, f, x)
    assert levels in (["a", "other (3 levels)"], ["a", "b", "other (2 levels)"])
    assert set(names) == set(levels)
    assert all(reference.events("fpr", y, f, names == level) >= 10 for level in levels)


def test_categories_are_tested_and_their_range_holds_every_pair():
    rng = np.random.default_rng(5)
    y, f, _ = designs.Marginal(0.31, 0.5).rows(rng, 3000)
    x = rng.integers(0, 4, 3000)
    normals = rng.normal(size=(999, 6))
    answer = reference.marginal_categorical("fpr", y, f, x, normals=normals)
    assert answer["df"] == 3
    assert answer["p"] > 1e-3
    low, high = answer["range"]
    assert low == 0
    assert high >= np.abs(answer["gaps"]).max()
    by_score = np.digitize(f, [0.1, 0.3])
    far = reference.marginal_categorical("fpr", y, f, by_score, normals=normals[:, :3])
    assert far["p"] < 1e-10
    assert far["range"][0] > 0


def test_few_hundred_marginal_scores_are_covered():
    rng, hits = np.random.default_rng(1), {"fpr": 0, "fdr": 0}
    design = designs.Marginal(0.31, 0.1, False, True)
    truth = {metric: design.truth(metric) for metric in hits}
    n_sims = 300
    for _ in range(n_sims):
        y, f, x = design.rows(rng, 2000)
        for metric in hits:
            low, high = reference.marginal_binary(metric, y, f, x).interval()
            hits[metric] += low <= truth[metric] <= high
    for count in hits.values():
        assert stats.binom.ppf(1e-4, n_sims, 0.95) <= count


# --- several scores at once -------------------------------------------------------------------


def test_draws_have_the_correlation_of_the_influence_values():
    rng = np.random.default_rng(4)
    influence = rng.normal(size=(500, 3)) @ np.array([[1, 0.8, 0], [0, 0.6, 0], [0, 0, 2.0]])
    R = reference.correlation(influence)
    np.testing.assert_allclose(np.diag(R), 1)
    Z = reference.correlated(R, rng.normal(size=(20_000, 3)))
    np.testing.assert_allclose(np.corrcoef(Z.T), R, atol=0.03)


def test_one_score_is_adjusted_to_its_own_p():
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(200_000, 1))
    p, intervals = reference.simultaneous([0.3], [0.1], [12.0], Z)
    assert p[0] == pytest.approx(2 * stats.t.sf(3, 12), abs=1e-3)
    half = stats.t.ppf(0.975, 12) * 0.1
    np.testing.assert_allclose(intervals[0], [0.3 - half, 0.3 + half], atol=3e-3)


# --- nuisances --------------------------------------------------------------------------------


def test_ridge_is_the_minimum_and_counts_are_rows():
    rng = np.random.default_rng(6)
    X = (rng.random((400, 3)) < 0.4).astype(float)
    y = (rng.random(400) < special.expit(X.sum(axis=1) - 1)).astype(float)
    design = reference.default_basis(X).design(X)
    fit = reference.ridge_logistic(design, y, penalty=2.0)

    def loss(coef):
        eta = design @ coef
        return np.sum(np.logaddexp(0, eta) - y * eta) + np.sum(coef[1:] ** 2)

    least = optimize.minimize(loss, fit.coef * 0, method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(fit.coef, least.x, atol=1e-5)
    cells, where, counts = np.unique(design, axis=0, return_inverse=True, return_counts=True)
    share = np.bincount(where, y) / counts
    few = reference.ridge_logistic(cells, share, counts, penalty=2.0)
    np.testing.assert_allclose(few.coef, fit.coef, atol=1e-9)
    np.testing.assert_allclose(reference.change_of_fit(fit, design, y).sum(axis=0), 0, atol=1e-8)


def test_the_basis_has_products_up_to_200_columns():
    X = np.random.default_rng(0).normal(size=(30, 20))
    assert reference.default_basis(X[:, :19]).design(X[:, :19]).shape[1] == 1 + 19 + 171
    assert reference.default_basis(X).design(X).shape[1] == 1 + 20
    Z = reference.default_basis(X).design(X)[:, 1:]
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), 1)


def test_folds_keep_people_together_and_balance():
    ids = np.repeat(np.arange(200), 2)
    folds = reference.folds_by_id(ids)
    np.testing.assert_array_equal(folds[::2], folds[1::2])
    assert np.ptp(np.bincount(folds)) == 0
    np.testing.assert_array_equal(reference.folds_by_id(ids[::-1])[::-1], folds)
    rare = np.arange(200) % 20 == 0
    folds = reference.folds_by_id(range(200), strata=rare)
    np.testing.assert_array_equal(np.bincount(folds[rare]), np.full(5, 2))


def test_cross_fitting_does_not_see_its_fold():
    X, y, _ = designs.CeterisParibus().rows(np.random.default_rng(7), 200)
    design, folds = reference.default_basis(X).design(X), reference.folds_by_id(range(200))
    crossed = reference.cross_fit_tuned(design, y, folds, penalties=(1.0, 10.0))
    assert crossed.penalty in (1.0, 10.0)
    changed = np.where(folds == 2, 1 - y, y)
    again = reference.cross_fit(design, changed, folds, crossed.penalty)
    np.testing.assert_allclose(again.fits[2].coef, crossed.fits[2].coef, atol=1e-12)
    assert np.abs(again.fits[1].coef - crossed.fits[1].coef).max() > 1e-3


# --- ceteris paribus --------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [*reference.RATES, COMBINATION], ids=str)
@pytest.mark.parametrize("decision", [False, True])
def test_without_residuals_doubly_robust_is_the_plug_in(metric, decision):
    design = designs.CeterisParibus(decision)
    X, p = design.masses()
    flip, h, f = design.true_flip(X), design.h(X), design.model(X)
    value, influence = reference.ceteris_paribus(metric, h, f, flip, p)
    assert value == pytest.approx(design.truth(metric), abs=1e-12)
    assert p @ influence == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("metric", ["fpr", "fnr", "fdr"])
@pytest.mark.parametrize("wrong", ["h", "e"])
def test_one_right_nuisance_is_enough(metric, wrong):
    design = designs.CeterisParibus()
    X, p = design.masses()
    flip, h, f = design.true_flip(X), design.h(X), design.model(X)
    # Atoms with y = 1 and y = 0 apart: residuals do not vanish row by row.
    y, twice = np.r_[np.ones(256), np.zeros(256)], np.r_[p * h, p * (1 - h)]
    change = {"h_a": flip.h_a * 0.5, "h_b": flip.h_b * 0.7} if wrong == "h" else {}
    if wrong == "e":
        e = 0.3 + 0.4 * X[:, 3]
        change = {"e_a": 1 - e, "e_b": e}
    flip = reference.Flip(
        **{
            name: np.tile(change.get(name, getattr(flip, name)), 2)
            for name in ("is_a", "is_b", "f_a", "f_b", "h_a", "h_b", "e_a", "e_b")
        }
    )
    value, _ = reference.ceteris_paribus(metric, y, np.tile(f, 2), flip, twice)
    assert value == pytest.approx(design.truth(metric), abs=1e-12)


@pytest.mark.parametrize("metric", ["fpr", "tpr", "fdr", "selection_rate", COMBINATION], ids=str)
def test_the_stacked_influence_is_the_derivative_of_the_whole_estimate(metric):
    design, n = designs.CeterisParibus(), 300
    rng = np.random.default_rng(11)
    X, y, f = design.rows(rng, n)
    w = rng.uniform(0.5, 2, n)
    basis_h = reference.Basis(np.full(8, 0.5), np.ones(8), ())
    basis_e = reference.Basis(np.full(7, 0.5), np.ones(7), ())
    X_a, X_b = X.copy(), X.copy()
    X_a[:, 0], X_b[:, 0] = 0, 1
    x, z, x_a, x_b = (
        basis_h.design(X),
        basis_e.design(X[:, 1:]),
        basis_h.design(X_a),
        basis_h.design(X_b),
    )
    f_a, f_b = design.model(X_a), design.model(X_b)

    def everything(weights):
        fit_h = reference.ridge_logistic(x, y, weights, 0.0)
        fit_e = reference.ridge_logistic(z, X[:, 0], weights, 0.0)
        e = fit_e.predict(z)
        h_a, h_b = fit_h.predict(x_a), fit_h.predict(x_b)
        flip = reference.Flip(1 - X[:, 0], X[:, 0], f_a, f_b, h_a, h_b, 1 - e, e)
        value, plain = reference.ceteris_paribus(metric, y, f, flip, weights)
        return value, plain, flip, fit_h, fit_e

    _, plain, flip, fit_h, fit_e = everything(w)
    by_h, by_e = reference.gradients(metric, y, f, flip, x_a, x_b, z, w)
    full = reference.stacked(plain, by_h, fit_h, x, y, w)
    full = reference.stacked(full, by_e, fit_e, z, X[:, 0], w)
    for i, derivative in derivatives(lambda weights: everything(weights)[0], w, range(0, n, 61)):
        assert full[i] == pytest.approx(derivative, abs=2e-5)


def test_the_larger_standard_error_is_taken():
    plain, stacked = np.array([1.0, -1, 2, -2]), np.array([1.0, -1, 1, -1])
    one = reference.larger_of_two(0.5, plain, stacked)
    assert one.se == pytest.approx(np.sqrt(10) / 4)
    assert one.df == pytest.approx(100 / 34)
    assert reference.larger_of_two(0.5, stacked, plain).se == one.se


def test_ceteris_paribus_end_to_end_and_refusals():
    design = designs.CeterisParibus()
    X, y, f = design.rows(np.random.default_rng(12), 600)
    folds = reference.folds_by_id(range(600))
    one, reason = reference.ceteris_paribus_logistic("fpr", X, y, f, design.model, 0, folds)
    assert reason == ""
    assert abs(one.value - design.truth("fpr")) < 4 * one.se
    flip = design.true_flip(X)
    assert reference.refusal(y, flip) == ""
    rare = np.where(X[:, 0] == 1, 0.0, y)
    assert "too few rows with label 1" in reference.refusal(rare, flip)
    e_b = np.where(np.arange(600) == np.flatnonzero(X[:, 0])[0], 1e-4, flip.e_b)
    parts = {**vars(flip), "e_b": e_b}
    assert "largest weight share" in reference.refusal(y, reference.Flip(**parts))


def test_partialled_out_influence_is_the_derivative():
    y, f, x, w = rows()
    rng = np.random.default_rng(3)
    e, expected = rng.uniform(0.2, 0.4, len(y)), rng.normal(0, 0.1, len(y))
    one = reference.partialled_out(COMBINATION, y, f, x, e, expected, w)

    def moved(weights):
        return reference.partialled_out(COMBINATION, y, f, x, e, expected, weights).value

    for i, derivative in derivatives(moved, w):
        assert one.influence[i] == pytest.approx(derivative, abs=1e-6)


# --- descent ----------------------------------------------------------------------------------


def test_descent_stops_claims_and_reports():
    design, rng = designs.ten_features(), np.random.default_rng(9)
    parts = design.parts(rng, 6000)
    answer = reference.descent("fpr", *parts, tolerance=0.06, n_steps=60)
    assert answer["claim"]
    assert answer["reason"] == "tolerance"
    assert answer["bound"] < 0.06
    assert len(answer["path"]) == answer["iterate"]
    assert answer["interval"][0] < answer["gap"] < answer["interval"][1]
    assert answer["marginals"].shape == (10, 3)
    point = reference.descent("fpr", *parts, tolerance=0.06, n_steps=60, rule="point")
    assert point["iterate"] < answer["iterate"]
    on_fit = reference.descent("fpr", *parts, tolerance=0.06, n_steps=60, on="fit")
    assert on_fit["gap"] != answer["gap"]
    never = reference.descent("fpr", *parts, tolerance=0.001, n_steps=5)
    assert (never["claim"], never["reason"]) == (False, "grid ended")


def test_descent_refuses_parts_without_events():
    parts = designs.toy_descent().parts(np.random.default_rng(9), 600)
    answer = reference.descent("fpr", *parts, tolerance=0.1)
    assert answer["reason"].startswith("refused")
    assert answer["smallest_tolerance"] > 0.05


def test_steps_are_capped_and_weights_stay_at_0():
    law = reference.toy()
    part = reference.Part(law.h0, law.f, law.h0, law.h1, law.f, law.p0, law.p1)
    path = reference.descent_path("fpr", part, 3, step=5.0)
    assert path[0][0] == pytest.approx(1 / 0.754942, abs=1e-6)
    factors = reference.factors("fpr", path, law.f, law.h0)
    assert factors.min() == 0
    other = reference.factors("fpr", path, np.array([1.0]), np.array([0.0]))
    assert other.min() >= 0


# --- repair -----------------------------------------------------------------------------------


def cells(seed, k=6):
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 2, (k, 4))
    C = np.abs(places[:, None] - places[None]).sum(axis=2) + 0.01 * (1 - np.eye(k))
    return rng.integers(1, 30, k).astype(float), *rng.uniform(0.05, 0.95, (2, k)), C


@pytest.mark.parametrize("name", reference.RATES)
@pytest.mark.parametrize("seed", range(4))
def test_direct_repair_is_optimal(name, seed):
    n, h, f, C = cells(seed)
    before = reference.rate(name, h, f, n)[0]
    for R1 in (before - 0.04, before + 0.04, before):
        answer = reference.direct_repair(name, n, h, f, C, R1)
        cost, _ = reference.direct_repair_program(name, n, h, f, C, R1)
        if answer["status"] != "ok":
            assert np.isnan(cost)
            continue
        assert answer["gap"] == pytest.approx(0, abs=1e-10)
        assert answer["cost"] == pytest.approx(answer["dual"], abs=1e-9)
        assert answer["cost"] == pytest.approx(cost, abs=1e-6)
        np.testing.assert_allclose(answer["plan"].sum(axis=1), 1)
        assert np.sum((answer["plan"] > 0) & (answer["plan"] < 1)) in (0, 2)
    assert answer["cost"] == pytest.approx(0, abs=1e-9)


def test_direct_repair_says_what_cannot_be_reached():
    n, h, f, C = cells(1)
    stay = np.where(np.eye(len(n), dtype=bool), 0.0, np.inf)
    assert reference.direct_repair("fpr", n, h, f, stay, 0.1)["status"] == "cannot be reached"
    f = np.r_[f[:-1], 0.0]
    answer = reference.direct_repair("fdr", n, h, f, C, 0.001, floor=0.2)
    assert answer["status"] == "cannot be reached"
    cost, _ = reference.direct_repair_program("fdr", n, h, f, C, 0.001, floor=0.2)
    assert np.isnan(cost)


def test_transport_is_the_best_assignment():
    rng = np.random.default_rng(0)
    for _ in range(5):
        k = 6
        places = rng.normal(size=(k, 2))
        C = np.abs(places[:, None] - places[None]).sum(axis=2)
        source, target = rng.multinomial(6, np.ones(k) / k, size=2).astype(float)
        units = np.repeat(np.arange(k), source.astype(int))
        to = np.repeat(np.arange(k), target.astype(int))
        best = min(sum(C[i, j] for i, j in zip(units, o, strict=True)) for o in permutations(to))
        for common in (True, False):
            cost, moved = reference.transport(source, target, C, common)
            assert cost == pytest.approx(best, abs=1e-8)
            np.testing.assert_allclose(moved.sum(axis=1), source, atol=1e-8)
            np.testing.assert_allclose(moved.sum(axis=0), target, atol=1e-8)
    blocked = np.where(np.eye(2, dtype=bool), 0.0, np.inf)
    assert reference.transport([3, 1], [1, 3], blocked)[1] is None


def test_transported_rows_keep_their_labels_so_a_gap_stays():
    law = reference.toy()
    part = reference.Part(law.h0, law.f, law.h0, law.h1, law.f, law.p0, law.p1)
    path = reference.descent_path("fdr", part, 60)
    target = law.p0 * reference.factors("fdr", path, law.f, law.h0)[-1]
    C = np.abs(reference.TOY_ATOMS[:, None] - reference.TOY_ATOMS[None]).sum(axis=2)
    n = 1000 * law.p0
    _, moved = reference.transport(n, target, C)
    R1 = reference.rate("fdr", law.h1, law.f, law.p1)[0]
    after = reference.rate_after_map("fdr", n, law.h0, law.f, moved / n[:, None]) - R1
    counterfactual = reference.rate("fdr", law.h0, law.f, target)[0] - R1
    assert abs(after) > abs(counterfactual) + 0.05
    stay = reference.rate_after_map("fdr", n, law.h0, law.f, np.eye(8))
    assert stay == pytest.approx(0.047704, abs=1e-6)


# --- CAL and DA -------------------------------------------------------------------------------


def test_calibration_of_a_known_distance():
    rng = np.random.default_rng(0)
    h = rng.uniform(0.2, 0.8, 4000)
    y = (rng.random(4000) < h).astype(float)
    far = reference.calibration(y, np.clip(h - 0.15, 0, 1), h)
    assert far["interval"][0] < 0.15 < far["interval"][1]
    near = reference.calibration(y, h + 0.001, h)
    assert "interval" not in near
    assert near["status"] == "not distinguishable from calibrated"


def test_input_alignment_is_a_lower_bound():
    design, rng = designs.ten_features(), np.random.default_rng(2)
    X0, X1 = (design.rows(rng, 1500, group)[0] for group in (0, 1))
    folds = reference.folds_by_id(range(3000))
    l0, l1 = reference.input_log_ratio(X0, X1, folds, pairs=(), penalties=(1.0, 10.0))
    answer = reference.input_alignment(l0, l1)
    truth = reference.population_value("da_in", design.law()[1])
    assert answer["status"] == "ok"
    assert answer["lower"] < truth
    assert abs(answer["value"] - truth) < 5 * answer["se"]
    assert reference.input_alignment(l0, l1 + 0.2)["status"] == "refused: mean weight"
    heavy = np.r_[l1[:-1], np.log(len(l1))]
    assert reference.input_alignment(l0, heavy)["status"] == "refused: largest weight share"


def test_input_alignment_by_hand():
    l0, l1 = np.log([2.0, 1.0, 2.0]), np.log([0.5, 1.0, 1.2])
    answer = reference.input_alignment(l0, l1)
    assert answer["value"] == pytest.approx(np.log(4) / 3 - (0.9 - 1))
    variance = l0.var(ddof=1) / 3 + np.var([0.5, 1.0, 1.2], ddof=1) / 3
    assert answer["se"] == pytest.approx(np.sqrt(variance))
    assert answer["share"] == pytest.approx(1.2 / 2.7)


def test_output_alignment():
    assert reference.output_alignment([0.5, 0.5], [0.5]) == 0
    assert reference.output_alignment([1.0, 0.0], [0.0]) == np.inf


def test_signed_gap_and_its_error():
    law, rng = reference.toy(), np.random.default_rng(0)
    groups = []
    for p, h in ((law.p0, law.h0), (law.p1, law.h1)):
        at = rng.choice(8, 20_000, p=p)
        groups.append(((rng.random(20_000) < h[at]).astype(float), law.f[at]))
    value, se = reference.gap("fpr", *groups)
    assert abs(value - 0.3194) < 4 * se
    assert reference.sign_is_known(value, se)
    assert not reference.sign_is_known(-1.9 * se, se)
    assert reference.gap("fpr", *groups[::-1])[0] == pytest.approx(-value)
    weighted = [(*group, np.full(20_000, 2.5)) for group in groups]
    assert reference.gap("fpr", *weighted) == pytest.approx((value, se))
