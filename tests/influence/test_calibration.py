"""Coverage and family-wise error of proxy scores, by simulation at fixed seeds.

A share of AUDITS must lie in a binomial band of tail 1e-6 around what is promised; the broken
variants must not.
"""

import math

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.inference.pvalues import t_quantile
from fairaudit_rs.influence import ceteris_paribus

from ..reference import influence_designs as designs
from .test_ceteris_paribus import rows_of, value_of
from .test_marginal import NAMES

pytestmark = pytest.mark.calibration

AUDITS = 1_000


def audit(y, f, X, metric, **options):
    """The others are two rows that play no part in proxy scores."""
    labels, scores = np.r_[y, 0, 1].astype(int), np.r_[f, 0.4, 0.6]
    X = {name: np.r_[column, 0, 1] for name, column in X.items()}
    group = np.r_[np.zeros(len(y)), 1, 1].astype(int)
    return fa.influence_audit(
        labels, y_score=scores, X=X, sensitive_features=group, target=0, metric=NAMES[metric],
        **{"n_draws": 39, "rng": 1, **options},
    )  # fmt: skip


def marginal(design, n, metric):
    """Scores of the audits that have one, and the truth."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(AUDITS):
        y, f, x = design.rows(rng, n)
        if 0 < x.sum() < n:
            found.append(audit(y, f, {"x": x}, metric).proxy_scores[0])
    return found, design.truth(metric)


def within(count, of, share):
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], of, share)
    return low <= count <= high


@pytest.mark.parametrize(
    ("metric", "n", "design"),
    [
        ("fpr", 500, designs.Marginal(0.31, 0.5)),
        ("fdr", 2_000, designs.Marginal(0.31, 0.1, dependent=True)),
        ("fnr", 2_000, designs.Marginal(0.31, 0.1, decision=True)),
        ("ppv", 5_000, designs.Marginal(0.05, 0.5, decision=True)),
        ("selection_rate", 5_000, designs.Marginal(0.31, 0.02)),
        ("fpr", 5_000, designs.Marginal(0.05, 0.1, dependent=True)),
    ],
)
def test_intervals_cover(metric, n, design):
    scores, truth = marginal(design, n, metric)
    shown = [score for score in scores if not score.note]
    assert len(shown) >= 0.9 * AUDITS
    covered = sum(value.low <= truth <= value.high for value in shown)
    assert within(covered, len(shown), 0.95)


def test_normal_quantiles_without_a_guard_do_not_cover():
    """n = 500, P(x = 1) = 0.02: refused by us in nearly all samples."""
    design = designs.Marginal(0.31, 0.02, decision=True)
    rng = np.random.default_rng(7)
    refused, covered, n_audits = 0, 0, 0
    truth = design.truth("fpr")
    from ..reference import influence as reference

    for _ in range(AUDITS):
        y, f, x = design.rows(rng, 500)
        one = reference.marginal_binary("fpr", y, f, x)
        refused += bool(audit(y, f, {"x": x}, "fpr").proxy_scores[0].note)
        if one.se > 0:
            n_audits += 1
            covered += abs(one.value - truth) <= 1.96 * one.se
    assert refused > 0.9 * AUDITS
    assert not within(covered, n_audits, 0.95)
    assert covered < 0.93 * n_audits


@pytest.mark.parametrize(("metric", "decision"), [("fpr", False), ("fpr", True), ("fdr", False)])
def test_family_wise_error(metric, decision):
    """30 features of prevalence 0.5 to 0.02 that say nothing, n = 500."""
    audits, false = 300, {"guarded": 0, "all": 0}
    for number in range(audits):
        rng = np.random.default_rng(number)
        y, f, X = designs.global_null(rng, 500, decision=decision)
        result = audit(y, f, {f"x{j}": X[:, j] for j in range(X.shape[1])}, metric, n_draws=499)
        false["guarded"] += any(
            score.adjusted_pvalue <= 0.05 for score in result.proxy_scores if not score.note
        )
        false["all"] += _unguarded(metric, y, f, X)
    assert false["guarded"] <= stats.binom.isf(1e-6, audits, 0.05)
    assert false["guarded"] <= 0.07 * audits
    if decision:
        assert false["all"] > stats.binom.isf(1e-6, audits, 0.05)


def _unguarded(metric, y, f, X):
    """Return whether normal quantiles with Bonferroni's level, unguarded, find some feature."""
    from ..reference import influence as reference

    for j in range(X.shape[1]):
        one = reference.marginal_binary(metric, y, f, X[:, j])
        if one.se > 0 and abs(one.value / one.se) > stats.norm.isf(0.025 / X.shape[1]):
            return True
    return False


def test_slopes_and_levels():
    """A continuous feature, and three levels that say nothing: coverage and size."""
    rng = np.random.default_rng(3)
    covered = rejected = 0
    slope = _true_slope()
    for number in range(AUDITS):
        v = rng.normal(size=800)
        y = rng.random(800) < 1 / (1 + np.exp(1 - v))
        f = 1 / (1 + np.exp(1 - 0.8 * v))
        X = {"v": v, "level": rng.choice(["a", "b", "c"], 800)}
        labels = np.r_[y, 0, 1].astype(int)
        X = {"v": np.r_[v, 0, 1], "level": np.r_[X["level"], ["a", "b"]]}
        result = fa.influence_audit(
            labels, y_score=np.r_[f, 0.4, 0.6], X=X, target=0, n_draws=39, rng=number,
            sensitive_features=np.r_[np.zeros(800), 1, 1].astype(int),
        )  # fmt: skip
        one = next(score for score in result.proxy_scores if score.feature == "v")
        covered += one.low <= slope <= one.high
        rejected += result.feature_tests["level"] <= 0.05
    assert within(covered, AUDITS, 0.95)
    assert within(rejected, AUDITS, 0.05)


def _true_slope():
    """Of psi for the false positive rate on v, per standard deviation, by a fine grid."""
    v = np.linspace(-9, 9, 200_001)
    mass = stats.norm.pdf(v) / stats.norm.pdf(v).sum()
    h, f = 1 / (1 + np.exp(1 - v)), 1 / (1 + np.exp(1 - 0.8 * v))
    base = float(mass @ (1 - h))
    rate = float(mass @ ((1 - h) * f)) / base
    slope = float(mass @ (v * (1 - h) * (f - rate))) / base
    assert math.isfinite(slope)
    return slope


def ceteris_paribus_coverage(metric, design, audits, n):
    """How often the intervals hold the truth: ours, and the paper's plug-in with its own error."""
    truth, ours, plug_in = design.truth(metric), 0, 0
    for audit_number in range(audits):
        _, rows, _ = rows_of(design, n, seed=audit_number)
        label_regression, value = ceteris_paribus.LabelRegression(rows=rows), value_of(metric, rows)
        low, high = ceteris_paribus.arms_of(label_regression, design.model, (0,))
        found = ceteris_paribus.contrast_score(label_regression, value, low, high)
        ours += abs(found.estimate - truth) <= t_quantile(0.025, found.df) * found.standard_error
        found = ceteris_paribus.plug_in(label_regression, value, low, high)
        plug_in += abs(found.estimate - truth) <= 1.96 * found.standard_error
    return ours, plug_in


@pytest.mark.parametrize("metric", ["fpr", "fdr"])
@pytest.mark.parametrize("n", [500, 5_000])
def test_ceteris_paribus_covers_and_the_plug_in_does_not(metric, n):
    audits = 300 if n == 500 else 150
    ours, plug_in = ceteris_paribus_coverage(metric, designs.CeterisParibus(), audits, n)
    assert within(ours, audits, 0.95)
    assert not within(plug_in, audits, 0.95)


@pytest.mark.parametrize(
    ("h_right", "e_right"), [(True, True), (False, True), (True, False), (False, False)]
)
def test_one_right_regression_is_enough_and_none_is_not(h_right, e_right):
    design = designs.Signs(h_right=h_right, e_right=e_right)
    ours, _ = ceteris_paribus_coverage("fdr", design, 200, 5_000)
    assert within(ours, 200, 0.95) == (h_right or e_right)
