"""The descent to weights under which the gap is small."""

import dataclasses

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.influence import descent
from fairaudit_rs.influence.feature_encodings import FeatureEncodings
from fairaudit_rs.influence.problem import InfluenceProblem
from fairaudit_rs.influence.rates import measure_of

from ..children import outputs_of_instruction_sets
from ..reference import influence as reference
from ..reference import influence_designs as designs
from .test_calibration import within
from .test_marginal import NAMES
from .test_marginal import make as mixed_rows

COMBINATION = {"fpr": 1.0, "fnr": -0.5}
METRICS = [*NAMES, COMBINATION]


def named(metric):
    if isinstance(metric, str):
        return NAMES[metric]
    return {NAMES[name]: weight for name, weight in metric.items()}


def make(n=1_500, seed=0, design=None):
    """Rows of the ten-feature design: features, labels, scores, groups 0 and 1."""
    design, rng = design or designs.ten_features(), np.random.default_rng(seed)
    (X0, y0, f0), (X1, y1, f1) = (design.rows(rng, n, group) for group in (0, 1))
    group = np.repeat([0, 1], n)
    return np.vstack([X0, X1]), np.r_[y0, y1].astype(int), np.r_[f0, f1], group


def audit(rows, metric="fpr", **options):
    X, y, f, group = rows
    given = {"X": X, "sensitive_features": group, "target": 0, "metric": named(metric), "rng": 1}
    return fa.influence_audit(y, **{"y_score": f, "n_draws": 9, **given, **options})


def descend(result, **options):
    """With a regression that takes less time than the default."""
    return result.descend(**{"nuisance": MainEffects(), "rng": 1, **options})


class MainEffects:
    """A logistic regression that a copy shares, so that a test can ask it."""

    def fit(self, X, y):
        self.n_rows = len(X)
        self.of = designs.logistic_main(X, y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - self.of(X), self.of(X)])

    def __deepcopy__(self, memo):
        return self


class Boosted(MainEffects):
    """Boosted trees that follow their rows closely."""

    def fit(self, X, y):
        self.n_rows = len(X)
        self.model = HistGradientBoostingClassifier(
            max_iter=200, learning_rate=0.2, min_samples_leaf=5, random_state=0
        ).fit(X, y)
        return self

    def of(self, X):
        return np.ascontiguousarray(self.model.predict_proba(X)[:, 1])


def reference_parts(found, X0=True):
    """The reference's parts: the same rows in the same thirds, with the same h."""
    parts, distinct = found.parts, found.parts.distinct
    answer = []
    for part in range(3):
        own = np.repeat(np.arange(len(distinct.count)), parts.count[:, part])
        rest = np.repeat(np.arange(len(parts.others)), parts.other_count[:, part])
        label, score = distinct.terms[:, :2].T
        answer.append(
            reference.Part(
                label[own], score[own], found.label_rate[own], parts.others[rest, 1],
                parts.others[rest, 2], X0=distinct.features[own],
            )
        )  # fmt: skip
    return answer


@pytest.fixture(name="exact_quantile", autouse=True)
def _exact_quantile(monkeypatch):
    monkeypatch.setattr(reference, "ONE_SIDED", stats.norm.isf(0.05))


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"tolerance": 0}, "tolerance is 0; accepted: a finite number above 0"),
            ({"tolerance": "a"}, "tolerance is 'a'; accepted: a finite number above 0"),
            ({"step": -1}, "step is -1; accepted: a finite number above 0"),
            ({"max_steps": 1.5}, "max_steps is 1.5; accepted: a whole number from 0"),
            ({"method": "walk"}, "method is 'walk'; accepted: 'reweight', 'resample'"),
            ({"parts": (0.5, 0.5)}, "accepted: 3 shares .*fit, stop, report"),
            ({"confidence_level": 95}, "confidence_level is 95; accepted"),
            (
                {"nuisance": object()},
                "without fit; accepted: an estimator with fit and predict_proba",
            ),
            ({"rng": 1, "random_state": 1}, "rng and random_state are two names"),
        ],
    )
    def test_bad_values(self, options, words):
        with pytest.raises(errors.FairAuditError, match=words):
            audit(make()).descend(**{"tolerance": 0.1, "rng": 1, **options})

    def test_too_few_events_name_the_part(self):
        words = r"fit part has 4\d.\d rows in the denominator .* in group=0, .* at least 80"
        with pytest.raises(errors.NotMeasurableError, match=words):
            audit(make(1_500, design=designs.toy_descent())).descend(tolerance=0.1, rng=1)
        X, y, f, group = make()
        y[group == 1] = 1
        y[np.flatnonzero(group)[:30]] = 0
        with pytest.raises(errors.NotMeasurableError, match=r"in the others, .* at least 80"):
            audit((X, y, f, group)).descend(tolerance=0.1, rng=1)

    @pytest.mark.parametrize(
        ("found", "words"),
        [
            (np.ones(5), "returned probabilities of shape"),
            (np.full((1_024, 2), 2.0), "missing or outside 0 to 1"),
        ],
    )
    def test_a_nuisance_without_probabilities(self, found, words):
        class Odd(MainEffects):
            def predict_proba(self, X):
                return found[: len(X)]

        with pytest.raises(errors.DataError, match=words):
            audit(make()).descend(tolerance=0.1, nuisance=Odd(), rng=1)

    def test_a_nuisance_that_rules_a_label_out(self):
        class Sure(MainEffects):
            def predict_proba(self, X):
                return np.tile([0.0, 1.0], (len(X), 1))

        with pytest.raises(errors.ArgumentError, match="the chance of a label in the fit part"):
            audit(make()).descend(tolerance=0.1, nuisance=Sure(), rng=1)


def population(metric, rule):
    """The kernel on the masses of the toy, with chances in the place of labels."""
    law = reference.toy()
    counts = [np.tile(np.round(1_000 * p).astype(np.int64)[:, None], 3) for p in (law.p0, law.p1)]
    target = law.h0, law.f, counts[0]
    rates = descent.rates_of(measure_of(named(metric)))
    call = _native.Call(1)
    return law, _native.descent_path(target, law.h0, (law.h1, law.f, counts[1]), rates, rule, call)


class TestKnownValues:
    def test_the_descent_of_the_toy(self):
        _, (steps, numbers, status) = population("fpr", (0.1, 1e-9, 0.0, 0.0, 20))
        gaps = {0: 0.3194, 1: 0.2732, 5: 0.1419, 10: 0.0620, 15: 0.0209, 20: -0.0041}
        for step, gap in gaps.items():
            assert numbers[step, 0] == pytest.approx(gap, abs=5.1e-5)
            assert numbers[step, 1] == pytest.approx(numbers[step, 0], abs=1e-12)
        assert (len(steps), status) == (20, "steps")

    @pytest.mark.parametrize("metric", METRICS, ids=str)
    def test_the_descent_is_that_of_the_population(self, metric):
        law, (steps, numbers, _) = population(metric, (0.1, 1e-9, 0.0, 0.0, 20))
        part = reference.Part(law.h0, law.f, law.h0, law.h1, law.f, law.p0, law.p1)
        path = reference.descent_path(metric, part, 20)
        for step, factor in enumerate(reference.factors(metric, path, law.f, law.h0)):
            p0 = law.p0 * factor / (law.p0 @ factor)
            moved = dataclasses.replace(law, p0=p0)
            assert numbers[step, 0] == pytest.approx(
                reference.population_value(metric, moved), abs=1e-9
            )
        factors = _native.descent_factors(law.h0, law.f, steps, _native.Call(1))
        assert factors == pytest.approx(factor, abs=1e-12)

    @pytest.mark.parametrize("metric", METRICS, ids=str)
    def test_a_step_is_the_finite_difference(self, metric):
        law, (steps, numbers, _) = population(metric, (1e-3, 1e-9, 0.0, 0.0, 1))
        basis = np.column_stack([np.ones(8), law.h0, law.f, law.h0 * law.f])
        psi = np.sign(numbers[0, 0]) * basis @ steps[0] / 1e-3
        assert psi == pytest.approx(reference.finite_difference(metric, law), abs=1e-6)


class TestReference:
    @pytest.mark.parametrize("metric", METRICS, ids=str)
    @pytest.mark.parametrize("tolerance", [0.08, 0.02])
    def test_path_bounds_and_marginals(self, metric, tolerance):
        found = descend(audit(make(), metric), tolerance=tolerance, rng=3)
        parts = reference_parts(found)
        if metric != "selection_rate":
            assert found.label_rate.std() > 0.1
        expected = reference.descent(metric, *parts, tolerance)
        reasons = {"reached": "tolerance", "steps": "grid ended"}
        assert reasons.get(found.status, found.status) == expected["reason"]
        assert found.n_steps == expected["iterate"]
        assert found.smallest_tolerance == pytest.approx(expected["smallest_tolerance"], rel=1e-9)
        if found.reached:
            assert found.bound == pytest.approx(expected["bound"], rel=1e-9)
        assert found.after.value == pytest.approx(expected["gap"], abs=1e-9)
        assert found.after.standard_error == pytest.approx(expected["se"], rel=1e-9)
        assert found.confidence_interval == pytest.approx(expected["interval"], abs=1e-9)
        assert found.n_effective == pytest.approx(expected["ess"], rel=1e-9)
        marginals = [(marginal.after, marginal.low, marginal.high) for marginal in found.marginals]
        assert np.array(marginals) == pytest.approx(expected["marginals"], abs=1e-9)
        before = parts[2].gap(metric, np.ones(len(parts[2].y0)))
        assert (found.before.value, found.before.standard_error) == pytest.approx(before, rel=1e-9)

    def test_every_step(self):
        found = descend(audit(make()), tolerance=0.02, rng=3, max_steps=12)
        fit, stop, _ = reference_parts(found)
        path = reference.descent_path("fpr", fit, 12)
        at_stop = reference.factors("fpr", path, stop.f0, stop.h0)
        assert found.n_steps == 12
        for value, factor in zip(found.path, at_stop, strict=True):
            assert (value.gap, value.standard_error) == pytest.approx(
                stop.gap("fpr", factor), abs=1e-9
            )
            share = reference.kish(factor) / len(factor)
            assert value.effective_share == pytest.approx(share, rel=1e-9)
        distinct = found.parts.distinct
        expected = reference.factors("fpr", path, distinct.terms[:, 1], found.label_rate)[-1]
        assert found.factors == pytest.approx(expected, rel=1e-9)


class TestProperties:
    def test_order_of_rows_and_threads(self):
        rows = make()
        found = descend(audit(rows, n_threads=1), tolerance=0.08, rng=3)
        order = np.random.default_rng(5).permutation(len(rows[1]))
        other = descend(
            audit([column[order] for column in rows], n_threads=3), tolerance=0.08, rng=3
        )
        assert found.to_dict() == other.to_dict()
        by_row = np.zeros(len(order))
        by_row[order[other.row]] = other.weights
        assert (by_row[found.row] == found.weights).all()
        assert found == descend(audit(rows), tolerance=0.08, rng=3)
        assert found != descend(audit(rows), tolerance=0.08, rng=4)

    @pytest.mark.parametrize("method", ["reweight", "resample"])
    def test_instruction_sets(self, method):
        code = (
            "from tests.influence.test_descent import audit, descend, make\n"
            f"found = descend(audit(make()), tolerance=0.08, rng=3, method={method!r})\n"
            "print(found.to_dict(), found.weights.sum())\n"
        )
        assert len(outputs_of_instruction_sets(code)) == 1

    @pytest.mark.parametrize("method", ["reweight", "resample"])
    def test_names_of_features(self, method):
        X, y, f, group = make()
        given = {"tolerance": 0.08, "rng": 3, "method": method, "step": 0.3}
        found = descend(audit((X, y, f, group)), **given)
        frame = {f"feature {j}": X[:, j] for j in range(10)}
        other = descend(audit((frame, y, f, group)), **given)
        assert (found.weights == other.weights).all()
        assert [marginal.feature for marginal in other.marginals] == list(frame)
        assert [marginal.after for marginal in found.marginals] == [
            marginal.after for marginal in other.marginals
        ]

    def test_a_smaller_tolerance_goes_on(self):
        result = audit(make(3_000))
        loose, tight = (descend(result, tolerance=t, rng=3) for t in (0.1, 0.05))
        assert loose.reached
        assert tight.reached
        assert loose.n_steps < tight.n_steps
        assert loose.path == tight.path[: len(loose.path)]
        assert loose.smallest_tolerance == tight.smallest_tolerance

    @pytest.mark.parametrize("decision", [False, True])
    @pytest.mark.parametrize("metric", METRICS, ids=str)
    def test_scores_and_decisions_of_all_metrics(self, metric, decision):
        X, y, f, group = make()
        given = {"y_score": None, "y_pred": (f > 0.5).astype(int)} if decision else {}
        found = descend(audit((X, y, f, group), metric, **given), tolerance=0.15, rng=2)
        assert found.reached
        assert found.bound < 0.15
        assert abs(found.after.value) < max(0.15, abs(found.before.value))
        assert found.weights.mean() == pytest.approx(1)
        assert (found.weights >= 0).all()

    def test_features_of_all_kinds(self):
        group, X, y, score = mixed_rows(4_000)
        found = fa.influence_audit(
            y, y_score=score, X=X, sensitive_features=group, target="t", rng=1, n_draws=9
        ).descend(tolerance=0.1, rng=1)
        levels = [marginal for marginal in found.marginals if marginal.feature == "level"]
        assert [level.level for level in levels] == list("abcde")
        for side in ("before", "after", "others"):
            assert sum(getattr(level, side) for level in levels) == pytest.approx(1)
        others = X["number"][group == "o"].mean()
        numbers = {
            marginal.feature: marginal
            for marginal in found.marginals
            if marginal.feature != "level"
        }
        assert numbers["number"].level == ""
        assert numbers["number"].others == pytest.approx(others)
        assert numbers["binary"].level == "True"

    def test_labels_play_no_part_in_a_selection_rate(self):
        X, _, f, group = make()
        found = fa.influence_audit(
            y_score=f, X=X, sensitive_features=group, target=0, metric="selection_rate", rng=1,
        ).descend(tolerance=0.06, rng=1)  # fmt: skip
        assert found.reached
        assert not found.label_rate.any()

    def test_it_says_how_it_ended(self):
        result = audit(make())
        one = descend(result, tolerance=0.01, rng=1, max_steps=1)
        assert (one.status, one.n_steps, one.reached) == ("steps", 1, False)
        assert "after max_steps=1 steps" in str(one)
        assert one.tolerance < one.smallest_tolerance
        assert "is below" in one.warnings[0]
        toy = audit(make(3_000, design=designs.toy_descent()), "selection_rate")
        far = descend(toy, tolerance=0.05, rng=1)
        assert far.status == "effective sample size"
        assert far.path[-1].effective_share < 0.1 <= far.path[-2].effective_share
        assert "(effective sample size)" in far.summary()
        none = descend(result, tolerance=0.5, rng=1)
        assert (none.status, none.n_steps, none.before) == ("reached", 0, none.after)
        assert (none.weights == 1).all()

    def test_a_gap_that_is_not_known(self):
        X, y, f, group = make()
        rng = np.random.default_rng(2)
        found = descend(audit((X, y, f, rng.permutation(group))), tolerance=0.1, rng=1)
        assert any("interval of the gap before includes 0" in text for text in found.warnings)

    def test_rows_that_say_little(self):
        """One score, one label in the group, features that are constant or determine others."""
        X, y, f, group = make()
        same = descend(audit((X, y, np.full(3_000, 0.3), group)), tolerance=0.1)
        assert (same.status, same.n_steps) == ("reached", 0)
        assert np.isnan(same.pvalue)
        one = audit((X, np.where(group == 0, 0, y), f, group)).descend(tolerance=0.1, rng=1)
        assert not one.label_rate.any()
        assert one.reached
        for features in (np.ones((3_000, 2)), np.column_stack([X[:, 0], X[:, 0], 1 - X[:, 0]])):
            found = audit((features, y, f, group)).descend(tolerance=0.1, rng=1)
            assert found.reached
            assert found.n_steps > 0

    def test_long_descents_stay_finite(self):
        found = descend(audit(make()), tolerance=1e-9, step=1e6, max_steps=3_000)
        assert found.status == "effective sample size"
        assert np.isfinite(found.weights).all()

    def test_few_events_above(self):
        X, y, _, group = make(3_000)
        decision = (np.arange(len(y)) % 97 == 0).astype(int)
        found = descend(audit((X, y, None, group), y_pred=decision), tolerance=0.1, rng=1)
        assert any("fewer than 10 events, or non-events" in text for text in found.warnings)

    def test_the_nuisance_is_fitted_on_its_part(self):
        nuisance = MainEffects()
        found = descend(
            audit(make()), tolerance=0.1, rng=1, nuisance=nuisance, parts=(0.2, 0.4, 0.4)
        )
        assert nuisance.n_rows == 300
        expected = nuisance.predict_proba(found.parts.distinct.features)[:, 1]
        assert found.label_rate == pytest.approx(expected, rel=1e-12)
        assert found.parts.count.sum(axis=0).tolist() == [300, 600, 600]

    def test_the_default_nuisance(self):
        toy = designs.toy_descent()
        rows = make(6_000, design=toy)
        found = audit(rows).descend(tolerance=0.05, rng=1)
        distinct = found.parts.distinct
        assert np.abs(found.label_rate - toy.h(distinct.features)) @ distinct.count < 0.02 * 6_000
        order = np.random.default_rng(5).permutation(len(rows[1]))
        other = audit([column[order] for column in rows]).descend(tolerance=0.05, rng=1)
        assert found.to_dict() == other.to_dict()

    def test_samples_follow_the_weights(self):
        rows = make()
        found = descend(audit(rows), tolerance=0.05, rng=1)
        drawn = found.sample(200_000, rng=1)
        assert (rows[3][drawn] == 0).all()
        assert (drawn == found.sample(200_000, rng=1)).all()
        expected = found.weights @ rows[0][found.row] / found.weights.sum()
        assert rows[0][drawn].mean(axis=0) == pytest.approx(expected, abs=0.006)
        with pytest.raises(errors.ArgumentError, match="n is 0; accepted"):
            found.sample(0)

    def test_outputs(self):
        found = descend(audit(make()), tolerance=0.05, rng=1)
        assert isinstance(found.to_frame(), pl.DataFrame)
        assert found.to_frame().height == 10
        plain = found.to_dict()
        assert plain["kind"] == "Counterfactual"
        assert not {"weights", "row", "parts", "factors", "label_rate"} & set(plain)
        assert len(plain["path"]) == found.n_steps + 1
        assert "<table>" in found._repr_html_()
        assert "reweighted in" in str(found)
        assert hash(found) == hash(descend(audit(make()), tolerance=0.05, rng=1))


class TestResampling:
    def test_on_average_it_is_reweighting(self):
        result, differences = audit(make()), []
        for seed in range(100):
            options = {"tolerance": 1e-9, "max_steps": 2, "step": 0.5, "rng": seed}
            one, other = (
                descend(result, method=method, **options) for method in ("resample", "reweight")
            )
            assert one.before == other.before
            differences.append(one.after.value - other.after.value)
        assert abs(stats.ttest_1samp(differences, 0).statistic) < 4
        assert abs(np.mean(differences)) < 0.1 * abs(other.before.value - other.after.value)

    def test_it_closes_the_gap_in_long_steps(self):
        found = descend(audit(make(15_000)), tolerance=0.05, rng=1, step=0.4, method="resample")
        assert found.reached
        assert "resampled in" in str(found)
        assert 0.1 < found.path[-1].effective_share < 1 / (1 + found.n_steps) * 1.1
        assert abs(found.after.value) < 0.05 < abs(found.before.value)
        again = descend(audit(make(15_000)), tolerance=0.05, rng=1, step=0.4, method="resample")
        assert found == again

    def test_many_steps_leave_few_rows(self):
        found = descend(audit(make()), tolerance=0.001, rng=1, step=0.01, method="resample")
        assert found.status == "effective sample size"
        assert 7 <= found.n_steps <= 12

    def test_few_effective_rows(self):
        toy = audit(make(3_300, design=designs.toy_descent()))
        found = descend(toy, tolerance=0.01, rng=1, step=0.01, method="resample")
        assert any("in the denominator of the metric, fewer than 20" in text for text in
                   found.warnings)  # fmt: skip

    def test_it_ends_after_the_most_steps(self):
        found = descend(audit(make()), tolerance=0.01, rng=1, max_steps=2, method="resample")
        assert (found.status, found.n_steps) == ("steps", 2)
        assert found.weights.mean() == pytest.approx(1)


@dataclasses.dataclass(frozen=True)
class Simulated:
    """A descent of simulated rows, with the true gap under its weights."""

    descent: descent.Descent
    path: descent.DescentPath
    truth: float

    def covers(self, part):
        weighted = descent.WeightedRows.from_counts(
            self.descent.parts.count[:, part], self.path.factors
        )
        if part == descent.REPORT:
            weighted = self.path.report
        gap = self.descent.gap(weighted, part)
        return gap.low <= self.truth <= gap.high


def simulate(
    design, n, tolerance, number, *, nuisance=MainEffects, level=0.95, method="reweighted"
):
    """A descent of `n` rows in each group by the false positive rate; None where it is refused."""
    rng = np.random.default_rng(number)
    (X0, y0, f0), (X1, y1, f1) = (design.rows(rng, n, group) for group in (0, 1))
    coding = FeatureEncodings.from_columns(
        dict(zip("abcdefghij", np.vstack([X0, X1]).T, strict=False)), {}
    )
    problem = InfluenceProblem(
        measure=measure_of("false_positive_rate"),
        label=np.concatenate([y0, y1]) > 0,
        score=np.concatenate([f0, f1]),
        encodings=coding,
        positions=np.arange(n),
        other_positions=np.arange(n, 2 * n),
        features=coding.features,
        target_name="0",
        n_threads=1,
    )
    rule = descent.StoppingRule(tolerance=tolerance, step=0.1, max_steps=60, level=level)
    learner = nuisance()
    try:
        found, _ = descent.prepare_descent(problem, rule, (1 / 3, 1 / 3, 1 / 3), number, learner)
    except errors.NotMeasurableError:
        return None
    path = getattr(found, method)()
    X, law = design.law()
    factor = _native.descent_factors(learner.of(X), law.f, path.directions, problem.call)
    p0 = law.p0 * factor / (law.p0 @ factor)
    return Simulated(
        found, path, reference.population_value("fpr", dataclasses.replace(law, p0=p0))
    )


def simulations(audits, *given, **options):
    found = [simulate(*given, number, **options) for number in range(audits)]
    return [value for value in found if value is not None]


class TestCalibration:
    pytestmark = pytest.mark.calibration

    @pytest.mark.parametrize(
        ("design", "n", "tolerance", "audits"),
        [
            # 80 to 95 rows without the label in each part, about 92, and about 225.
            (designs.toy_descent(), 2_900, 0.05, 900),
            (designs.toy_descent(), 2_900, 0.1, 900),
            (designs.toy_descent(), 3_300, 0.05, 600),
            (designs.ten_features(), 1_500, 0.05, 600),
        ],
    )
    def test_intervals_of_the_report_part(self, design, n, tolerance, audits):
        found = simulations(audits, design, n, tolerance)
        assert len(found) > 0.5 * audits
        covered = sum(value.covers(descent.REPORT) for value in found)
        assert within(covered, len(found), 0.95)
        assert 0.93 <= covered / len(found) <= 0.97

    def test_resampling(self):
        found = simulations(150, designs.ten_features(), 3_000, 0.1, method="resampled")
        assert within(sum(value.covers(descent.REPORT) for value in found), len(found), 0.95)

    def test_too_few_events_do_not_hold(self, monkeypatch):
        """18 rows without the label in a part: refused by us."""
        assert not simulations(50, designs.toy_descent(), 600, 0.05)
        monkeypatch.setattr(descent, "ENOUGH_EVENTS", 1.0)
        found = simulations(400, designs.toy_descent(), 600, 0.05)
        assert not within(sum(value.covers(descent.REPORT) for value in found), len(found), 0.95)

    def test_the_fit_part_fails_with_boosted_trees(self):
        found = simulations(60, designs.ten_features(), 3_000, 0.05, nuisance=Boosted)
        assert within(sum(value.covers(descent.REPORT) for value in found), len(found), 0.95)
        assert not within(sum(value.covers(descent.FIT) for value in found), len(found), 0.95)

    @pytest.mark.parametrize("tolerance", [0.05, 0.1])
    def test_the_claim_holds_and_that_of_the_point_rule_fails(self, tolerance):
        """How often |gap| is larger than the tolerance where it is said to be below it."""
        false, claims = {}, {}
        for level in (0.95, 0.5):
            found = simulations(300, designs.toy_descent(), 3_300, tolerance, level=level)
            claimed = [value for value in found if value.path.status == "reached"]
            claims[level] = len(claimed)
            false[level] = sum(abs(value.truth) > tolerance for value in claimed)
        most = {level: stats.binom.isf(1e-6, claims[level], 0.05) for level in claims}
        assert false[0.95] <= most[0.95]
        assert false[0.5] > most[0.5]
        assert false[0.5] > 0.25 * claims[0.5]
