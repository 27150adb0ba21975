"""The metrics that are no rates: calibration, and the divergence of a group from the others."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.influence import calibration, divergence

from ..reference import influence as reference

N = 1_200


def make(seed=0, n=N):
    """Features that go with the group, labels, scores that are off by a factor."""
    rng = np.random.default_rng(seed)
    other = rng.random(n) < 0.5
    X = (rng.random((n, 4)) < np.where(other[:, None], 0.6, 0.35)).astype(float)
    h = 1 / (1 + np.exp(-(X @ [1.5, -1.0, 0.5, 0.0] - 0.3)))
    y = (rng.random(n) < h).astype(int)
    return X, y, 0.5 + 0.6 * (h - 0.5), np.where(other, "o", "t"), h


def audit(metric, data=None, **options):
    X, y, f, group, _ = make() if data is None else data
    given = {"X": X, "sensitive_features": group, "target": "t", "metric": metric, "rng": 1}
    return fa.influence_audit(y, y_score=f, **{**given, **options})


def options_of(**more):
    return {"n_folds": 5, "estimator": None, "call": _native.Call(1), **more}


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (
                {"p_group": np.full(3, 0.5)},
                "p_group has the shape .* one number for each of the 1,200",
            ),
            ({"p_group": np.full(N, 1.0)}, "p_group is 1 in row .*; accepted: numbers above 0"),
            ({"p_group": "x"}, "p_group is 'x'; accepted: numbers"),
            ({"p_outcome": np.full(N, 0.5)}, "p_outcome is a ndarray; accepted: a dict"),
            ({"p_outcome": {"u": np.full(N, 0.5)}}, "names the group 'u'; accepted: 't', 'o'"),
            ({"p_outcome": {"t": np.full(N, np.nan)}}, r"p_outcome\['t'\] is nan in row"),
            ({"nuisance": 3}, "nuisance is 3, without fit"),
            ({"nuisance": dict}, "nuisance is .*, a class; accepted"),
        ],
    )
    def test_bad_values(self, options, words):
        metric = "divergence" if "p_group" in options else "calibration"
        with pytest.raises(errors.FairAuditError, match=words):
            audit(metric, **options)

    def test_what_is_known_goes_with_its_metric(self):
        given = np.full(1_200, 0.5)
        for metric, name in (("selection_rate", "p_group"), ("divergence", "p_outcome")):
            with pytest.raises(errors.ArgumentError, match=f"{name} needs metric='[a-z]+', but"):
                audit(metric, **{name: given})

    def test_descent_and_repair_are_for_rates(self):
        found = audit("calibration")
        for method in (found.descend, found.repair):
            with pytest.raises(errors.NotMeasurableError, match="'calibration' is not a rate"):
                method(tolerance=0.05)

    def test_unknown_metrics_name_them(self):
        with pytest.raises(errors.ArgumentError, match="'calibration' or 'divergence'"):
            audit("f1")


class TestKnownValues:
    def test_the_toy(self):
        """Exact: masses as counts of rows, given probabilities."""
        toy = reference.toy()
        counts = [np.rint(1e5 * p).astype(int) for p in (toy.p0, toy.p1)]
        p_group = toy.p1 / (toy.p0 + toy.p1)
        given = tuple(np.repeat(p_group, count) for count in counts)
        features = [np.repeat(reference.TOY_ATOMS, count, axis=0) for count in counts]
        found = divergence.input_divergence(*features, given, 0.95, **options_of())
        assert found.value == pytest.approx(2.143269, abs=2e-4)
        scores = [np.repeat(toy.f, count) for count in counts]
        assert divergence.output_divergence(*scores, 0.95).value == pytest.approx(
            0.942894, abs=2e-4
        )

    def test_the_binned_error_is_that_of_the_metric(self):
        rng = np.random.default_rng(4)
        score, group = rng.random(900), rng.choice(["t", "o"], 900)
        y = (rng.random(900) < score**2).astype(int)
        given = {"sensitive_features": group, "rng": 1}
        found = fa.influence_audit(
            y, y_score=score, X={"x": score}, target="t", metric="calibration", **given
        )
        tested = fa.permutation_test(
            y, y_score=score, metric="calibration_error", n_resamples=19, **given
        )
        binned = {value.group: value.value for value in tested.values}
        # The metric takes the mean score of fine bins for that of their rows.
        ours = [part.binned for part in found.parts[:2]]
        assert ours == pytest.approx([binned["t"], binned["o"]], rel=1e-3)
        assert "over ten bins of the score" in str(found)

    def test_equal_groups(self):
        f = np.tile([0.2, 0.8], 200)
        found = divergence.output_divergence(f, f, 0.95)
        assert found.value == 0
        assert found.interval[0] == 0
        assert 0 < found.interval[1] < 0.1

    def test_a_score_that_only_one_group_has(self):
        f = np.repeat([0.0, 1.0], 20)
        found = divergence.output_divergence(f, np.zeros(30), 0.95)
        assert found.value == math.inf
        assert math.isnan(found.interval[0])


class TestReference:
    def test_calibration(self):
        _, y, f, group, h = make()
        inside = group == "t"
        result = audit("calibration", p_outcome={"t": h, "o": h})
        for part, rows in zip(result.parts, (inside, ~inside), strict=False):
            expected = reference.calibration(y[rows], f[rows], h[rows])
            assert part.estimate == pytest.approx(expected["value"], rel=1e-12)
            assert part.standard_error == pytest.approx(expected["se"], rel=1e-12)
            assert part.lower == pytest.approx(expected["lower"], rel=1e-3)
            assert math.isnan(part.low) == ("interval" not in expected)
        assert {nuisance.learner for nuisance in result.nuisances} == {"given"}
        assert result.estimate == pytest.approx(result.values["t"] - result.values["others"])
        assert result.influence.mean() == pytest.approx(0, abs=1e-12)

    def test_the_input_part(self):
        X, _, _, group, _ = make()
        target, others = X[group == "t"], X[group == "o"]
        found = audit("divergence")
        # The folds that the audit deals, row by row.
        both = np.vstack([target, others])
        other = np.repeat([0.0, 1.0], [len(target), len(others)])
        _, counts, place = _native.distinct_rows(np.column_stack([both, other]), _native.Call())
        order = np.argsort(place, kind="stable")
        folds = np.empty(len(both), dtype=int)
        folds[order] = np.arange(len(both)) % 5
        l0, l1 = reference.input_log_ratio(target, others, folds)
        expected = reference.input_alignment(l0, l1)
        part = found.parts[0]
        assert part.estimate == pytest.approx(expected["value"], rel=1e-6)
        assert part.standard_error == pytest.approx(expected["se"], rel=1e-6)
        assert counts.sum() == N

    def test_the_output_part(self):
        _, _, f, group, _ = make()
        own, rest = f[group == "t"], f[group == "o"]
        found = audit("divergence")
        assert found.estimate == pytest.approx(reference.output_alignment(own, rest), rel=1e-12)
        p, q = own.mean(), rest.mean()
        slope = math.log(p * (1 - q) / (q * (1 - p)))
        assert found.influence == pytest.approx(slope * (own - p))
        low, high = found.confidence_interval
        assert low < found.estimate < high


class TestProperties:
    @pytest.mark.parametrize("metric", ["calibration", "divergence"])
    def test_rows_in_any_order(self, metric):
        data = make()
        order = np.random.default_rng(1).permutation(N)
        first, second = audit(metric, data), audit(metric, [value[order] for value in data])
        assert first.to_dict() == second.to_dict()
        json.dumps(first.to_dict(), allow_nan=False)
        assert first.to_frame().height == len(first.parts)

    def test_calibrated_scores(self):
        X, y, _, group, h = make()
        found = audit("calibration", (X, y, h, group, h))
        assert found.parts[0].note in (calibration.CALIBRATED, calibration.MISCALIBRATED)
        assert math.isnan(found.parts[0].low)
        assert math.isnan(found.pvalue)

    @pytest.mark.parametrize("n", [1, 2, 5, 49])
    def test_a_group_of_few_rows(self, n):
        X, y, f, _, _ = make()
        group = np.where(np.arange(N) < n, "t", "o")
        found = audit("calibration", (X, y, f, group, None))
        assert found.parts[0].note == calibration.FEW
        assert math.isnan(found.parts[0].low)
        assert not math.isnan(found.parts[1].low)
        found = audit("divergence", (X, y, f, group, None))
        assert "rows, 50 needed" in found.parts[0].note
        decided = audit("divergence", (X, y, (f > 0.99).astype(float), group, None))
        assert math.isnan(decided.confidence_interval[0])
        assert math.isnan(decided.pvalue)

    def test_no_overlap_is_refused(self):
        X, y, f, group, _ = make()
        X[:, 0] = group == "t"
        found = audit("divergence", (X, y, f, group, None))
        assert math.isnan(found.parts[0].estimate)
        assert "do not overlap" in found.parts[0].note
        assert "not measured" in found.summary()

    def test_a_model_and_an_estimator_of_the_user(self):
        linear_model = pytest.importorskip("sklearn.linear_model")
        X, y, _, group, _ = make()
        model = linear_model.LogisticRegression().fit(X, y)
        estimator = linear_model.LogisticRegression(C=10.0)
        given = {"X": X, "model": model, "sensitive_features": group, "target": "t", "rng": 1}
        default = fa.influence_audit(y, **given)
        found = fa.influence_audit(y, **given, nuisance=estimator)
        assert not hasattr(estimator, "coef_")
        assert {nuisance.learner for nuisance in found.nuisances} == {"LogisticRegression"}
        assert len(default.nuisances) == 5
        assert all(0 < nuisance.smallest < nuisance.largest < 1 for nuisance in default.nuisances)
        assert default.nuisances[0].auc > 0.6
        assert default.nuisances[0].calibration_slope == pytest.approx(1, abs=0.3)
        ours, theirs = (
            {
                proxy_score.feature: proxy_score
                for proxy_score in result.proxy_scores
                if proxy_score.kind == "ceteris_paribus"
            }
            for result in (default, found)
        )
        for name, score in theirs.items():
            assert score.estimate == pytest.approx(ours[name].estimate, abs=0.02)
            assert "only where both regressions converge" in score.note
        json.dumps(default.to_dict(), allow_nan=False)


def within(successes, n, share):
    """Return whether a count is inside the binomial band of tail 1e-6."""
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, share)
    return low <= successes <= high


@pytest.mark.calibration
def test_calibration_intervals_hold_from_five_standard_errors_on_and_not_near_zero():
    def coverage(bend, audits=600, n=800):
        held = given = always = 0
        for seed in range(audits):
            rng = np.random.default_rng(seed)
            X = (rng.random((n, 4)) < 0.5).astype(float)
            eta = X @ [1.2, -0.8, 0.6, 0.0] - 0.4
            h = 1 / (1 + np.exp(-eta))
            f = 1 / (1 + np.exp(-(eta + bend)))
            y = (rng.random(n) < h).astype(float)
            found = calibration.calibration_of(
                "t", np.column_stack([y, f]), X, None, 0.95, **options_of()
            )
            truth = _mean_error(bend)
            half = 1.96 * found.standard_error
            always += abs(found.value - truth) <= half
            if not math.isnan(found.interval[0]):
                given += 1
                held += found.interval[0] <= truth <= found.interval[1]
        return held, given, always, audits

    held, given, _, audits = coverage(0.9)
    assert given > 0.9 * audits
    assert within(held, given, 0.95)
    _, given, always, audits = coverage(0.0)
    assert given < 0.02 * audits
    assert not within(always, audits, 0.95)


def _mean_error(bend):
    X = reference.TOY_ATOMS
    eta = X @ [1.2, -0.8, 0.6] - 0.4
    return float(np.abs(1 / (1 + np.exp(-eta)) - 1 / (1 + np.exp(-(eta + bend)))).mean())


@pytest.mark.calibration
def test_the_input_limit_holds_and_an_interval_by_a_wrong_regression_does_not():
    """Normal features; in the second design their variance differs, which no linear l sees."""

    def below(shift, scale, truth, audits=250, n=500):
        right = covers = 0
        for seed in range(audits):
            rng = np.random.default_rng(seed)
            target = shift + scale * rng.normal(size=(n, 3))
            others = rng.normal(size=(n, 3))
            found = divergence.input_divergence(target, others, None, 0.95, **options_of())
            assert not found.refusal
            right += found.lower <= truth
            low, high = calibration.two_sided(found.value, found.standard_error, 0.95)
            covers += low <= truth <= high
        return right, covers, audits

    right, _, audits = below(0.3, 1.0, 3 * 0.3**2 / 2)
    assert stats.binom.cdf(right, audits, 0.95) > 1e-6
    assert right >= 0.95 * audits
    truth = 3 * (0.6**2 - 1 - 2 * math.log(0.6)) / 2
    right, covers, audits = below(0.0, 0.6, truth)
    assert right == audits
    assert covers == 0


@pytest.mark.calibration
@pytest.mark.parametrize(("p", "n", "q"), [(0.1, 200, 0.1), (0.1, 200, 0.2), (0.3, 1_000, 0.32)])
def test_output_intervals_hold_and_the_delta_method_fails_near_zero(p, n, q):
    audits, held, delta = 2_000, 0, 0
    truth = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    rng = np.random.default_rng(7)
    for _ in range(audits):
        target, others = (
            (rng.random(m) < share).astype(float) for m, share in ((n, p), (2_000, q))
        )
        found = divergence.output_divergence(target, others, 0.95)
        held += found.interval[0] <= truth <= found.interval[1]
        low, high = calibration.two_sided(found.value, found.standard_error, 0.95)
        delta += low <= truth <= high
    # Wider close to 0, where the divergence does not say which mean is the larger one.
    assert held >= stats.binom.ppf(1e-6, audits, 0.95)
    assert (abs(p - q) < 0.05) != within(delta, audits, 0.95)
