"""The individual lens of an audit: possible people, warnings, and the metric that it binds with."""

import json
import tomllib

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.auditing.schema import policy_schema
from fairaudit_rs.auditing.seeds import seed_of
from fairaudit_rs.data.features import Features
from fairaudit_rs.errors import ArgumentError
from fairaudit_rs.individual.direction_profile import (
    cosine_limit,
    direction_at,
    fit_direction,
    profile_distance,
    squared_cosine,
)
from fairaudit_rs.individual.question import attributes_of
from fairaudit_rs.individual.ranges import find_range_departure
from fairaudit_rs.individual.simplex import one_hot_sets

from ..reference import individual as reference
from .test_audit import policy
from .test_schema import fits


class Town:
    """People with two numbers that go with sex, and a job that was coded one-hot."""

    def __init__(self, n=1_500, seed=0):
        rng = np.random.default_rng(seed)
        self.sex = rng.choice(["f", "m"], n)
        man = self.sex == "m"
        job = np.where(rng.random(n) < 0.6, np.where(man, 0, 1), rng.integers(0, 3, n))
        self.numbers = pd.DataFrame(
            {"income": rng.normal(size=n) + 0.8 * man, "hours": rng.normal(size=n) + 0.4 * man}
        )
        coded = pd.DataFrame(np.eye(3)[job], columns=["job_guard", "job_nurse", "job_cook"])
        self.X = pd.concat([self.numbers, coded], axis=1)
        self.job_model = fa.LinearModel([1.0, 0.2, 1.5, -1.5, 0.0], 0.0)
        self.model = fa.LinearModel([1.0, 0.2], 0.0)
        self.y = (rng.random(n) < self.model.predict_proba(self.numbers)).astype(int)

    def audit(self, *criteria, with_jobs=False, **options):
        X = self.X if with_jobs else self.numbers
        model = self.job_model if with_jobs else self.model
        given = {
            "sensitive_features": {"sex": self.sex},
            "model": model,
            "X": X,
            "policy": policy(*criteria) if criteria else "opportunity",
            "lenses": ["individual"],
            "rng": 1,
            "n_resamples": 999,
        }
        given |= options
        return fa.audit(self.y, given["model"].decision(given["X"]).astype(int), **given)


def held(tolerance=1.25, **options):
    return {"lens": "individual", "tolerance": tolerance, **options}


@pytest.fixture(scope="module")
def town():
    return Town()


class TestPossiblePeople:
    def test_one_hot_features_stay_a_choice(self, town):
        audit = town.audit(with_jobs=True)
        [result] = audit.results.values()
        assert result.one_hot == "keep"
        assert result.one_hot_groups == (("job_guard", "job_nurse", "job_cook"),)
        jobs = result.attacked[:, 2:]
        assert jobs.min() > -1e-9
        assert jobs.sum(axis=1) == pytest.approx(np.ones(len(jobs)))
        codes = {"sex": np.where(town.sex == "f", "0", "1")}
        free = fa.individual_test(
            town.job_model,
            town.X,
            town.y,
            fair_metric=fa.FairMetric.subspace(town.X, codes, standardize=True),
        )
        assert free.estimate > 1.05 * result.estimate
        assert any("one-hot features leave what a person can have" in w for w in free.warnings)
        assert "one-hot features stay a choice of one value" in audit.summary()

    def test_sets_are_found_wherever_their_columns_are(self):
        rng = np.random.default_rng(0)
        a, b = np.eye(3)[rng.integers(0, 3, 50)], np.eye(2)[rng.integers(0, 2, 50)]
        rows = np.column_stack([a[:, 0], rng.normal(size=50), b, a[:, 1:], rng.integers(0, 2, 50)])
        named = Features(rows, ("race_a", "age", "sex=f", "sex=m", "race_b", "race_c", "alone"))
        assert one_hot_sets(named) == ((0, 4, 5), (2, 3))
        assert one_hot_sets(Features(rows, None)) == ((2, 3),)
        several = Features(rows, ("race_a", "age", "sex=f", "sex=m", "race_b", "other", "alone"))
        assert one_hot_sets(several) == ((2, 3),)

    def test_the_feature_that_most_rows_leave(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.normal(size=400), rng.random(400), np.ones(400)])
        y = rng.integers(0, 2, 400)
        result = fa.individual_test(
            fa.LinearModel([0.2, 3.0, 1.0]),
            X,
            y,
            fair_metric=fa.FairMetric.directions([[0, 1, 0]]),
        )
        left = find_range_departure(result.flow, ("a", "b", "c"))
        moved = result.attacked
        near = 0.01 * np.ptp(X, axis=0)
        by_hand = (moved < X.min(axis=0) - near) | (moved > X.max(axis=0) + near)
        assert left.feature == "b"
        assert left.n_outside == by_hand[:, 1].sum() > 200
        assert left.share == left.n_outside / 400
        assert f"{left.n_outside} of 400 people" in str(left)

    def test_a_binding_lens_of_impossible_people_is_not_measurable(self, town):
        """Hours from 0 to 1 that the model uses much: most people are moved beyond."""
        X = town.numbers.assign(hours=(town.numbers.hours > 0).astype(float))
        model = fa.LinearModel([1.0, 3.0], -1.0)
        metric = {"fair_metric": {"features": ["hours"]}}
        audit = town.audit(held(**metric), X=X, model=model)
        [found] = audit.others
        assert (found.verdict, audit.verdict) == ("not_measurable", "not_measurable")
        assert "out of the observed range of hours (0 to 1)" in found.reason
        assert "people who do not exist" in audit.summary()
        told = town.audit(held(**metric, binding=False), X=X, model=model)
        assert told.others[0].verdict == "not_measurable"
        # Without a tolerance it is a note.
        note = town.audit(X=X, model=model).others[0].note
        assert "out of the observed range of hours (0 to 1)" in note


class TestWarnings:
    def test_every_warning_of_a_lens_is_in_all_outputs(self, town):
        doubled = {
            "y_true": np.tile(town.y, 2),
            "sensitive_features": {"sex": np.tile(town.sex, 2)},
            "X": pd.concat([town.numbers, town.numbers], ignore_index=True),
        }
        decided = town.model.decision(doubled["X"]).astype(int)
        score = town.model.predict_proba(doubled["X"])
        gain = np.random.default_rng(0).beta(2, 4, len(score)) * 0.2
        flipped = np.minimum(score + gain, 1)
        audit = fa.audit(
            y_pred=decided,
            y_score=score,
            counterfactual_score=flipped,
            model=town.model,
            rng=1,
            **doubled,
        )
        warned = {
            name: result.warnings for name, result in audit.results.items() if result.warnings
        }
        assert any(name.startswith("individual") for name in warned)
        assert any(name.startswith("extremes") for name in warned)
        page = audit.to_markdown().replace("\\", "")
        rows = {row["lens"]: row["note"] or "" for row in audit.rows()}
        for name, warnings in warned.items():
            lens = name.partition(":")[0]
            for warning in warnings:
                if lens == "permutation":
                    assert f"{name.replace(': ', ', ')}: {warning}" in str(audit)
                    continue
                assert f"{lens}, sex: {warning}" in str(audit)
                assert warning in page
                assert warning in rows[lens]
        assert any("repeat another one in features and label" in text for text in audit.warnings)

    def test_strata_are_refused(self, town):
        strata = np.arange(len(town.y)) % 2
        [found] = town.audit(strata=strata, policy="parity").others
        assert found.reason == "not run: takes no strata"
        with_tolerance = town.audit(held(fair_metric={"features": ["hours"]}), strata=strata)
        assert with_tolerance.verdict == "not_measurable"
        assert "takes no strata" in with_tolerance.summary()


class TestPolicyMetric:
    """The fair metric of a policy is the same whatever the rows are."""

    def test_features_directions_and_units(self, town):
        for given, by_hand in (
            ({"features": ["hours"]}, fa.FairMetric.directions([[0, 1]])),
            ({"directions": [{"income": 1, "hours": 0.5}]}, fa.FairMetric.directions([[1, 0.5]])),
        ):
            audit = town.audit(held(fair_metric=given))
            [result] = audit.results.values()
            expected = fa.individual_test(
                town.model,
                town.numbers,
                town.y,
                fair_metric=by_hand,
                delta=1.25,
                interval="bootstrap-t",
                n_resamples=999,
                rng=seed_of(1, "individual", "sex"),
            )
            [test] = audit.others[0].tests
            assert (test.estimate, test.least, test.most) == (
                expected.estimate,
                expected.lower_bound,
                expected.upper_bound,
            )
            assert test.p_fail == result.pvalue
        both = {"features": ["hours"], "units": {"hours": 2.0, "income": 0.5}}
        metric = policy(held(fair_metric=both)).criteria[0].policy_metric
        made = metric.for_features(Features(town.numbers.to_numpy(), ("income", "hours")))
        assert made.D.tolist() == [[4.0, 0.0], [0.0, 0.0]]
        assert made.units.tolist() == [0.5, 2.0]

    def test_a_recorded_metric_is_the_metric(self, town, tmp_path):
        codes = {"sex": np.where(town.sex == "f", "0", "1")}
        fitted = fa.FairMetric.subspace(town.numbers, codes, standardize=True)
        own = policy(held(fair_metric=fitted))
        path = tmp_path / "fairaudit.toml"
        path.write_text(own.to_toml())
        again = fa.Policy.load(path)
        assert again == own
        assert fa.Policy.from_dict(json.loads(json.dumps(own.to_dict()))) == own
        features = Features(town.numbers.to_numpy(), ("income", "hours"))
        made = again.criteria[0].policy_metric.for_features(features)
        assert pytest.approx(fitted.D) == made.D
        assert made.units.tolist() == fitted.units.tolist()
        turned = Features(town.numbers.to_numpy()[:, ::-1], ("hours", "income"))
        assert (
            pytest.approx(fitted.D[::-1, ::-1])
            == again.criteria[0].policy_metric.for_features(turned).D
        )
        value = town.audit(held(fair_metric=fitted)).others[0].estimate
        expected = fa.individual_test(town.model, town.numbers, town.y, fair_metric=fitted)
        assert value == pytest.approx(expected.estimate, rel=1e-9)

    def test_files_are_checked_by_the_schema(self, tmp_path):
        own = {"features": ["hours"], "units": {"hours": 2.0}}
        text = policy(held(fair_metric=own)).to_toml()
        assert fits(tomllib.loads(text), policy_schema())
        assert not fits(tomllib.loads(text.replace("features", "feature")), policy_schema())
        path = tmp_path / "fairaudit.toml"
        path.write_text(text.replace("features", "feature"))
        with pytest.raises(ArgumentError, match="line 4: feature is not a key of fair_metric"):
            fa.Policy.load(path)

    def test_words(self, town):
        audit = town.audit(held(fair_metric={"features": ["hours"]}))
        assert "for this attack alone, under the metric of this policy" in audit.summary()
        assert "under the metric of the policy (hours at no cost)" in audit.summary()
        told = town.audit(held(binding=False, tolerance=None, fair_metric={"features": ["hours"]}))
        assert "under the metric of this policy" in told.summary()
        assert "under a metric fitted to these rows" in town.audit().summary()

    def test_what_is_refused(self, town):
        words = "directions of fair_metric names 'hour', which is not a feature of X; accepted"
        with pytest.raises(ArgumentError, match=words):
            town.audit(held(fair_metric={"directions": [{"hour": 1}]}))
        with pytest.raises(ArgumentError, match="fair_metric contains 'hour'; accepted"):
            town.audit(held(fair_metric={"features": ["hour"]}))
        with pytest.raises(ArgumentError, match="makes all people alike"):
            town.audit(held(fair_metric={"features": ["hours", "income"]}))
        one = {"matrix": [[1.0]], "matrix_features": ["income"]}
        with pytest.raises(ArgumentError, match="no row for the feature 'hours'"):
            town.audit(held(fair_metric=one))
        with pytest.raises(ArgumentError, match="fair_metric is given for true_positive_rate"):
            fa.Criterion(metric="tpr", tolerance=0.1, fair_metric={"features": ["a"]})
        for given, words in (
            ({}, "no features or directions and no matrix"),
            ({"features": ["a"], "matrix": [[1]]}, "both features or directions and a matrix"),
            ({"feature": ["a"]}, "did you mean 'features'"),
            ({"matrix": [[1, 0]], "matrix_features": ["a"]}, "a square matrix"),
            ({"matrix": [[1]]}, "matrix_features has 0 names, matrix has 1 rows"),
            ({"directions": [{"a": 0}]}, "directions holds {'a': 0}; accepted: .* not all 0"),
            ({"features": ["a"], "units": {"a": 0}}, "units of 'a' is 0; accepted: a number above"),
        ):
            with pytest.raises(ArgumentError, match=words):
                fa.Criterion(lens="individual", tolerance=1.25, fair_metric=given)


class TestRefusals:
    """A fitted metric decides by chance: it binds through its profile alone."""

    def refused(self, town, words, **options):
        with pytest.raises(ArgumentError, match=words) as raised:
            town.audit(held(), **options)
        assert "give the metric in the policy (fair_metric of the criterion" in str(raised.value)
        assert "set binding to false" in str(raised.value)

    def test_what_has_no_profile(self, town):
        rng = np.random.default_rng(0)
        self.refused(town, "Here X has one-hot features", with_jobs=True)
        other = {"sensitive_features": {"sex": town.sex, "age": town.numbers.income > 0.5}}
        self.refused(town, "Here 2 attributes were given, not one", **other)
        three = np.where(town.numbers.income > 1, "x", town.sex)
        self.refused(town, "more than two groups", sensitive_features={"group": three})
        kernel = fa.KernelModel(
            rng.normal(size=(5, 2)), rng.normal(size=5), 0.0, kernel="rbf", gamma=0.5, link="logit"
        )
        self.refused(town, "the model is not linear with one score", model=kernel)
        repeated = town.numbers.assign(again=town.numbers.hours + town.numbers.income)
        model = fa.LinearModel([1.0, 0.2, 0.0])
        self.refused(town, "features of X are linearly dependent", X=repeated, model=model)

    def test_what_informs_has_no_verdict_and_still_a_sentence(self, town):
        audit = town.audit(held(binding=False), with_jobs=True)
        [found] = audit.others
        assert found.verdict == "not_measurable"
        assert found.reason.startswith("a fitted metric has no verdict here (X has one-hot feat")
        assert "- individual, sex: for similar people" in audit.summary()
        assert "say nothing" not in str(audit)


class TestProfile:
    def test_the_smallest_statistic_is_that_of_brute_force(self):
        rng = np.random.default_rng(0)
        for p in (2, 3, 5):
            w, b = rng.normal(size=(2, p))
            root = rng.normal(size=(p, 2 * p))
            V = root @ root.T / 20
            for c in (0.0, 0.05, 0.4, 0.9, 1.0):
                slow = reference.profile_distance(w, b, V, c, n_starts=5)
                assert profile_distance(w, b, V, c) == pytest.approx(slow, rel=1e-8, abs=1e-12)
        w, V = np.array([1.0, 0.0, 0.0]), np.diag([1.0, 2.0, 3.0])
        for b in np.eye(3):
            slow = reference.profile_distance(w, b, V, 0.3)
            assert profile_distance(w, b, V, 0.3) == pytest.approx(slow, rel=1e-8)

    def test_the_interval_is_that_of_a_grid(self):
        rng = np.random.default_rng(1)
        w, b = rng.normal(size=(2, 2))
        V = np.diag([0.02, 0.05])
        found = [cosine_limit(w, b, V, 3.84, end) for end in (0.0, 1.0)]
        slow = reference.cosine_interval(w, b, V, 3.84, 101)
        assert found == pytest.approx(slow, abs=0.01)
        assert found[0] < squared_cosine(w, b) < found[1]
        for c in found:
            assert profile_distance(w, b, V, c) == pytest.approx(3.84)
            assert squared_cosine(w, direction_at(w, b, c)) == pytest.approx(c)
        assert [cosine_limit(w, b, 100 * V, 3.84, end) for end in (0.0, 1.0)] == [0.0, 1.0]

    def test_the_value_grows_with_the_angle_alone(self, town):
        """Two numbers say where a row is, so that one direction of each angle stands for all."""
        w, rng, values = np.array([1.0, 0.2, -0.5]), np.random.default_rng(2), []
        X, y = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
        for c in (0.0, 0.2, 0.5, 0.9):
            found = {
                round(
                    fa.individual_test(
                        fa.LinearModel(w),
                        X,
                        y,
                        fair_metric=fa.FairMetric.directions(
                            [direction_at(w, rng.normal(size=3), c)]
                        ),
                    ).estimate,
                    10,
                )
                for _ in range(3)
            }
            assert len(found) == 1
            values += found
        assert values == sorted(values)

    def test_the_covariance_is_that_of_refits(self):
        """The sandwich of rows and of clusters against a bootstrap of both."""
        rng, n = np.random.default_rng(3), 400
        X = np.repeat(rng.normal(size=(n // 2, 2)), 2, axis=0)
        sex = np.repeat((rng.random(n // 2) < 1 / (1 + np.exp(-X[::2, 0]))).astype(int), 2)
        pair = np.repeat(np.arange(n // 2), 2)
        clustered = fit_direction(attributes_of(sex, n)[0], X, 2, 1.0, pair)
        alone = fit_direction(attributes_of(sex, n)[0], X, 2, 1.0, None)
        assert clustered.covariance == pytest.approx(2 * alone.covariance, rel=0.02)
        found = []
        for _ in range(300):
            drawn = (2 * rng.integers(0, n // 2, n // 2)[:, None] + [0, 1]).ravel()
            found.append(attributes_of(sex[drawn], n)[0].directions(X[drawn], 1.0, None)[0])
        of_refits = np.cov(np.array(found), rowvar=False)
        assert np.diag(clustered.covariance) == pytest.approx(np.diag(of_refits), rel=0.3)

    def test_an_audit_by_hand(self, town):
        """Two comparisons bind: a fail at alpha / 2, of which each estimate has its part."""
        audit = town.audit(held(2.0), {"metric": "tpr", "tolerance": 0.4}, lenses="auto")
        found = next(finding for finding in audit.others if finding.lens == "individual")
        [test] = found.tests
        names, X = ["income", "hours"], town.numbers.to_numpy()
        codes = {"sex": np.where(town.sex == "f", "0", "1")}
        units, w = X.std(axis=0), np.array([1.0, 0.2])
        fit = fit_direction(attributes_of(codes, len(X))[0], X / units, 2, 1.0, None)
        size = (((X - X.mean(axis=0)) * w) ** 2).sum(axis=1)

        def bounds(end, alpha):
            tail = alpha / 2 if end else alpha / 4
            limit = stats.norm.isf(tail) ** 2
            angle = cosine_limit(w * units, fit.direction, fit.covariance, limit, end)
            direction = direction_at(w * units, fit.direction, angle)
            error = stats.norm.isf(alpha / 4) * size.std(ddof=1) / np.sqrt(len(X))
            own = units * np.sqrt(1 + (error if end else -error) / size.mean())
            given = {
                "directions": [dict(zip(names, direction * own, strict=True))],
                "units": dict(zip(names, own, strict=True)),
            }
            metric = policy(held(fair_metric=given)).criteria[0].policy_metric
            result = fa.individual_test(
                town.model,
                town.numbers,
                town.y,
                fair_metric=metric.for_features(Features(X, tuple(names))),
                delta=2.0,
                interval="bootstrap-t",
                n_resamples=999,
                confidence_level=1 - alpha / 4,
                rng=seed_of(1, "individual", "sex"),
            )
            return result.lower_bound, result.upper_bound

        assert test.least == pytest.approx(bounds(0.0, 0.05 / 2)[0], rel=1e-9)
        assert test.most == pytest.approx(bounds(1.0, 0.05)[1], rel=1e-9)
        assert test.least < test.estimate < test.most
        assert np.isnan(test.p_fail)
        assert "under every metric that the rows allow" in audit.summary()
        assert town.audit(held(0.99 * test.least)).verdict == "fail"
        assert town.audit(held(1.01 * test.most)).verdict == "pass"


class Population:
    """People whose group goes with some directions of X, and a model that is linear in X."""

    def __init__(self, group, coef, n):
        self.group, self.coef = np.array(group), np.array(coef, dtype=float)
        self.n, self.names = n, [f"x{place}" for place in range(len(coef))]
        self.model = fa.LinearModel(self.coef)
        self.metric = fa.FairMetric.directions([self.group])
        X, y, _ = self.draw(200_000, np.random.default_rng(10**6))
        #: The growth of the loss of all people, under their own metric.
        self.growth = fa.individual_test(self.model, X, y, fair_metric=self.metric).estimate

    def draw(self, n, rng):
        X = rng.normal(size=(n, len(self.coef)))
        y = (rng.random(n) < self.model.predict_proba(X)).astype(int)
        return X, y, np.where(rng.random(n) < 1 / (1 + np.exp(-X @ self.group)), "m", "f")

    def verdicts(self, n_audits, *, given):
        """Return verdicts at the growth, and those of the fitted metric as it is."""
        rng, found, broken = np.random.default_rng(4), [], []
        metric = {"directions": [dict(zip(self.names, self.group.tolist(), strict=True))]}
        own = policy(
            held(self.growth, **({"fair_metric": metric} if given else {})), lenses=["individual"]
        )
        for seed in range(n_audits):
            X, y, sex = self.draw(self.n, rng)
            audit = fa.audit(
                y,
                self.model.decision(X).astype(int),
                sensitive_features={"sex": sex},
                model=self.model,
                X=X,
                policy=own,
                n_resamples=999,
                rng=seed,
                n_threads=1,
            )
            found.append(audit.verdict)
            fitted = fa.individual_test(
                self.model,
                X,
                y,
                fair_metric=fa.FairMetric.subspace(X, sex, standardize=True),
                n_threads=1,
            )
            broken.append(
                "fail"
                if fitted.lower_bound > self.growth
                else "pass"
                if fitted.upper_bound < self.growth
                else "inconclusive"
            )
        return found, broken


STRONG = ([1.5, 1.0, 0.0, 0.0], [0.3, 0.8, 1.0, 0.0], 1_000)
WEAK_FAIR = ([0.4, *[0.0] * 9], [0.0, 0.0, 1.0, 1.0, *[0.0] * 6], 1_000)
WEAK_USED = ([0.4, *[0.0] * 9], [0.6, 0.6, 1.0, 1.0, *[0.0] * 6], 1_000)


@pytest.mark.calibration
class TestCalibration:
    """The growth of the loss is exactly the tolerance, under the metric of all people."""

    @pytest.mark.parametrize("given", [True, False], ids=["given", "profile"])
    @pytest.mark.parametrize("design", [STRONG, WEAK_FAIR, WEAK_USED])
    def test_a_coin_does_not_decide(self, design, given):
        n_audits = 100
        found, broken = Population(*design).verdicts(n_audits, given=given)
        most = stats.binom.isf(1e-6, n_audits, 0.05)
        assert found.count("fail") <= most
        assert found.count("pass") <= most
        # A fitted metric as it is: by chance.
        assert broken.count("fail") > most

    def test_a_profile_still_decides(self):
        """With room a fair model passes, and one that uses sex fails."""
        fair = Population([1.5, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], 2_000)
        fair.growth = 1.25
        assert fair.verdicts(20, given=False)[0].count("pass") >= 15
        unfair = Population(*STRONG)
        unfair.growth = 1.25
        assert unfair.verdicts(20, given=False)[0].count("fail") >= 15
