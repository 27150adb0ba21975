"""Marginal proxy scores: what `influence_audit` gives without a model."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs import errors

from ..children import outputs_of_instruction_sets
from ..reference import influence as reference

NAMES = {
    "fpr": "false_positive_rate",
    "fnr": "false_negative_rate",
    "tpr": "true_positive_rate",
    "fdr": "false_discovery_rate",
    "ppv": "positive_predictive_value",
    "selection_rate": "selection_rate",
}


def make(n=3_000, seed=0, decision=False):
    """Two groups, a binary, a categorical and a continuous feature; the score follows them."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["t", "o"], n)
    binary = rng.random(n) < 0.3 + 0.2 * (group == "t")
    level = rng.choice(list("abcde"), n, p=[0.4, 0.3, 0.2, 0.08, 0.02])
    number = rng.normal(size=n)
    score = 1 / (1 + np.exp(-(binary - 0.5 + 0.5 * number + 0.5 * (level == "a"))))
    y_true = (rng.random(n) < 0.4 * score + 0.2).astype(int)
    shown = (rng.random(n) < score).astype(int) if decision else score
    X = {"binary": binary, "level": level, "number": number}
    return group, X, y_true, shown


def audit(data, decision=False, **options):
    group, X, y_true, shown = data
    given = {"y_pred": shown} if decision else {"y_score": shown}
    options = {"X": X, "sensitive_features": group, "target": "t", "rng": 1, **given, **options}
    return fa.influence_audit(y_true, **options)


def by_pair(result):
    return {(score.feature, score.levels): score for score in result.proxy_scores}


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (
                {"metric": "auc"},
                "metric is 'auc', which is not supported by influence_audit; acc",
            ),
            ({"metric": {}}, "metric is an empty dict"),
            ({"metric": {"fpr": 0}}, "metric gives 'fpr' the weight 0; accepted: a finite number"),
            ({"metric": {"fpr": "a"}}, "metric gives 'fpr' the weight 'a'; accepted: a number"),
            ({"target": "x"}, "target names 'x', which is no group of the data"),
            ({"X": None}, "X is None. Pass the features as X=, or data= with"),
            (
                {"features": ["height"]},
                "features names 'height', which is not a column .* binary, level, number",
            ),
            ({"sets": ["a"]}, "sets is \\['a'\\]; accepted: a dict"),
            ({"sets": {"s": ["a"]}}, r"sets\['s'\] names 'a', which is not a feature"),
            (
                {"sets": {"s": ["binary", "number"]}},
                r"sets\['s'\] names 'number', which is cont",
            ),
            ({"y_score": np.full(3_000, 2.0)}, "y_score is 2 in row 0; accepted: probabilities"),
            ({"y_score": None}, "y_pred and y_score are None"),
            ({"y_pred": np.zeros(3_000, int)}, "y_pred and y_score are both given"),
            ({"n_draws": 0}, "n_draws is 0; accepted: a whole number from 1"),
            ({"confidence_level": 2}, "confidence_level is 2; accepted"),
            ({"sensitive_features": np.full(3_000, "t")}, "only one group: every row is 't'"),
        ],
    )
    def test_bad_values(self, options, words):
        with pytest.raises(errors.FairAuditError, match=words):
            audit(make(), **options)

    def test_labels_are_needed_by_rates_of_labels_alone(self):
        group, X, _, shown = make()
        options = {"y_score": shown, "X": X, "sensitive_features": group, "target": "t"}
        with pytest.raises(errors.ArgumentError, match="y_true is None, but false_positive_rate"):
            fa.influence_audit(**options)
        assert fa.influence_audit(**options, metric="selection_rate").estimate != 0

    def test_features_of_other_lengths_and_with_gaps(self):
        group, X, y_true, shown = make()
        with pytest.raises(
            errors.DataError, match="X has 10 rows; the labels and scores have 3,000"
        ):
            audit((group, {"a": np.ones(10)}, y_true, shown))
        number = X["number"].copy()
        number[7] = np.inf
        with pytest.raises(errors.DataError, match="'number' is missing or infinite in row 7"):
            audit((group, {"number": number}, y_true, shown))

    def test_text_of_many_levels_is_refused(self):
        group, _, y_true, shown = make()
        names = np.array([f"name {i % 500}" for i in range(len(group))])
        with pytest.raises(errors.DataError, match="'name' has 500 levels; accepted: at most 200"):
            audit((group, {"name": names}, y_true, shown))

    def test_a_group_without_rows_in_the_denominator(self):
        group, X, y_true, shown = make()
        with pytest.raises(errors.NotMeasurableError, match="group 't' has no rows in the denomi"):
            audit((group, X, np.where(group == "t", 1, y_true), shown))


class TestKnownValues:
    def test_the_toy_of_eight_atoms(self):
        """psi over 000 to 111, to 1e-6, from rows in the exact shares."""
        law = reference.toy()
        atoms = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)], float)
        n = 10**6
        psi = reference.population_psi("fpr", law)
        assert psi == pytest.approx(
            [0.138291, -3.429676, -3.429676, -4.912365, 0.038010, 0.248184, 0.248184, 0.754942],
            abs=1e-6,
        )
        # Two rows for each atom and label, weighted by counts of a large sample.
        counts = np.round(n * law.p0[:, None] * np.column_stack([1 - law.h0, law.h0])).astype(int)
        x = np.repeat(np.repeat(atoms, 2, axis=0), counts.ravel(), axis=0)
        y = np.repeat(np.tile([0, 1], 8), counts.ravel())
        f = np.repeat(np.repeat(law.f, 2), counts.ravel())
        group = np.concatenate([np.full(len(y), "t"), ["o", "o"]])
        result = fa.influence_audit(
            np.r_[y, 0, 1], y_score=np.r_[f, 0.5, 0.5], X=np.vstack([x, np.zeros((2, 3))]),
            sensitive_features=group, target="t", n_draws=99,
        )  # fmt: skip
        assert result.values["t"] == pytest.approx(0.474746, abs=1e-5)
        for atom, expected in zip(atoms, psi, strict=True):
            at = (x == atom).all(axis=1)
            assert result.influence[at].mean() == pytest.approx(expected, abs=2e-4)

    def test_mirror_rates_have_mirror_influence(self):
        data = make(decision=True)
        for text, other in (
            ("true_positive_rate", "false_negative_rate"),
            ("positive_predictive_value", "false_discovery_rate"),
            ("false_positive_rate", "true_negative_rate"),
        ):
            first, second = (audit(data, True, metric=name) for name in (text, other))
            assert np.allclose(first.influence, -second.influence, atol=1e-14)
            assert first.estimate == pytest.approx(-second.estimate, abs=1e-14)

    def test_the_gap_of_decisions_is_that_of_the_permutation_lens(self):
        group, _, y_true, decided = data = make(decision=True)
        result = audit(data, True)
        other = fa.permutation_test(
            y_true, decided, sensitive_features=group, metric="fpr", reference="o", interval="delta"
        )
        assert result.estimate == pytest.approx(other.estimate, abs=1e-15)
        assert result.confidence_interval == pytest.approx(other.confidence_interval, abs=2e-4)

    def test_the_sentence(self):
        text = str(audit(make(seed=1), metric="selection_rate"))
        assert "selection_rate of scores is 0." in text
        assert "for the others (1,513 rows), a gap of" in text

    def test_a_gap_that_may_be_zero_has_no_direction(self):
        result = audit(make(seed=3, n=300))
        assert "inconclusive" in result.summary()
        assert any("interval of the gap includes 0" in text for text in result.warnings)


class TestReference:
    @pytest.mark.parametrize("decision", [False, True])
    @pytest.mark.parametrize("metric", [*NAMES, "combination"])
    def test_scores_are_those_of_the_reference(self, metric, decision):
        group, X, y_true, shown = data = make(decision=decision)
        combination = {"fpr": 0.5, "fnr": -2.0}
        ours = (
            {NAMES[name]: weight for name, weight in combination.items()}
            if metric == "combination"
            else NAMES[metric]
        )
        theirs = combination if metric == "combination" else metric
        result = audit(data, decision, metric=ours, n_draws=199)
        inside = group == "t"
        y, f = y_true[inside].astype(float), np.asarray(shown, float)[inside]
        assert np.allclose(result.influence, reference.psi_rows(theirs, y, f), atol=1e-13)
        found = by_pair(result)
        binary = reference.marginal_binary(theirs, y, f, X["binary"][inside])
        ours = found[("binary", ("True", "False"))]
        self.same(ours, binary.value, binary.se, binary.interval())
        assert ours.n_events == pytest.approx(binary.events)
        slope = reference.marginal_continuous(theirs, y, f, X["number"][inside])
        self.same(found[("number", ())], slope.value, slope.se, slope.interval())
        levels = reference.marginal_categorical(theirs, y, f, X["level"][inside])
        assert result.feature_tests["level"] == pytest.approx(levels["p"], rel=1e-7)
        for number, (first, second) in enumerate(levels["pairs"]):
            one = found[("level", (levels["levels"][second], levels["levels"][first]))]
            half = stats.t.isf(0.025, levels["df_of_pairs"][number]) * levels["se"][number]
            gap = levels["gaps"][number]
            self.same(one, gap, levels["se"][number], (gap - half, gap + half))

    def same(self, score, value, error, interval):
        assert score.estimate == pytest.approx(value, rel=1e-9, abs=1e-12)
        assert score.standard_error == pytest.approx(error, rel=1e-9)
        assert (score.low, score.high) == pytest.approx(interval, rel=1e-8)

    def test_simultaneous_intervals_are_those_of_the_reference_up_to_draws(self):
        group, X, y_true, shown = data = make(seed=5)
        result = audit(data, n_draws=20_000)
        inside = group == "t"
        y, f = y_true[inside].astype(float), shown[inside]
        one = reference.marginal_binary("fpr", y, f, X["binary"][inside])
        two = reference.marginal_continuous("fpr", y, f, X["number"][inside])
        three = reference.marginal_levels(
            "fpr", y, f, *reference.merged_levels("fpr", y, f, X["level"][inside])
        )[1]
        pairs = [(b, a) for a in range(three.shape[1]) for b in range(a + 1, three.shape[1])]
        influence = np.column_stack(
            [one.influence, two.influence, *(three[:, b] - three[:, a] for b, a in pairs)]
        )
        normals = np.random.default_rng(0).normal(size=(20_000, influence.shape[1]))
        R = reference.correlation(influence)
        largest = np.abs(reference.correlated(R, normals)).max(axis=1)
        ours = by_pair(result)[("number", ())]
        cut = (ours.simultaneous_high - ours.estimate) / ours.standard_error
        assert cut == pytest.approx(np.quantile(largest, 0.95), abs=0.03)


class TestProperties:
    def test_rows_in_any_order_and_threads(self):
        group, X, y_true, shown = make()
        order = np.random.default_rng(1).permutation(len(group))
        first = audit((group, X, y_true, shown), n_threads=1)
        shuffled = {name: column[order] for name, column in X.items()}
        second = audit((group[order], shuffled, y_true[order], shown[order]), n_threads=3)
        assert first.to_dict() == second.to_dict()
        assert np.array_equal(first.influence[np.argsort(first.row)], first.influence)
        back = np.empty(len(order))
        back[order[second.row]] = second.influence
        assert np.array_equal(back[first.row], first.influence)

    def test_instruction_sets(self):
        code = (
            "from tests.influence.test_marginal import audit, make\n"
            "print(audit(make()).to_dict())\n"
        )
        assert len(outputs_of_instruction_sets(code)) == 1

    def test_every_kind_of_table(self, tmp_path):
        group, X, y_true, shown = make()
        frame = pl.DataFrame({**X, "g": group, "y": y_true, "f": shown})
        options = {"y_score": "f", "sensitive_features": "g", "target": "t", "rng": 1}
        options["features"] = list(X)
        frame.write_parquet(tmp_path / "data.parquet")
        expected = audit(make())
        for data in (frame, frame.to_pandas(), frame.lazy(), tmp_path / "data.parquet"):
            found = fa.influence_audit("y", data=data, **options)
            for score, other in zip(found.proxy_scores, expected.proxy_scores, strict=True):
                assert score == other
        by_frame = audit((group, pd.DataFrame(X), y_true, shown))
        assert by_frame.to_dict() == expected.to_dict()

    def test_one_hot_columns_are_one_feature(self):
        group, X, y_true, shown = make()
        hot = {f"is_{name}": (X["level"] == name).astype(int) for name in "abcde"}
        as_set = audit((group, hot, y_true, shown), sets={"level": list(hot)})
        as_text = audit((group, {"level": X["level"]}, y_true, shown))
        assert as_set.feature_tests == pytest.approx(as_text.feature_tests)
        assert [score.estimate for score in as_set.proxy_scores] == pytest.approx(
            [score.estimate for score in as_text.proxy_scores]
        )
        assert {score.feature for score in as_set.proxy_scores} == {"level"}
        without = {name: column for name, column in hot.items() if name != "is_a"}
        rest = audit((group, without, y_true, shown), sets={"level": list(without)})
        assert any("none of level" in score.levels for score in rest.proxy_scores)

    def test_scales_and_shifts_change_nothing(self):
        group, X, y_true, shown = make()
        moved = {**X, "number": 5 - 1_000 * X["number"]}
        first, second = (audit((group, record, y_true, shown)) for record in (X, moved))
        one, other = (by_pair(result)[("number", ())] for result in (first, second))
        assert one.estimate == pytest.approx(-other.estimate)
        assert one.standard_error == pytest.approx(other.standard_error)
        assert one.adjusted_pvalue == other.adjusted_pvalue

    def test_a_feature_twice_is_no_more_evidence(self):
        group, X, y_true, shown = make()
        twice = {**X, "again": X["number"]}
        first, second = (audit((group, record, y_true, shown)) for record in (X, twice))
        cut = [
            (value.simultaneous_high - value.estimate) / value.standard_error
            for value in (by_pair(result)[("number", ())] for result in (first, second))
        ]
        assert cut[0] == pytest.approx(cut[1], rel=0.05)

    def test_missing_text_is_a_level_and_missing_groups_are_counted(self):
        group, X, y_true, shown = make()
        level = X["level"].astype(object)
        level[:300] = None
        groups = group.astype(object)
        groups[-50:] = None
        result = audit((groups, {"level": level}, y_true, shown))
        assert result.n_missing == 50
        assert result.n_rows == len(group) - 50
        assert any("missing" in score.levels for score in result.proxy_scores)

    def test_few_events_are_marked_and_then_refused(self):
        group, _, y_true, shown = make(n=4_000, decision=True)
        inside = group == "t"
        negatives = np.flatnonzero(inside & (y_true == 0) & (shown == 1))
        for n_events, words in ((12, ""), (7, "few events: 7"), (3, "refused: 3 events")):
            rare = np.zeros(len(group), bool)
            rare[negatives[:n_events]] = True
            rare[np.flatnonzero(inside & (y_true == 0) & (shown == 0))[:40]] = True
            result = audit((group, {"rare": rare}, y_true, shown), True)
            (score,) = result.proxy_scores
            assert score.note.startswith(words)
            assert (score.note == "") == (words == "")
            assert math.isnan(score.low) == words.startswith("refused")
            assert bool(result.warnings) >= words.startswith("refused")

    def test_a_constant_feature_is_refused(self):
        group, X, y_true, shown = make()
        constant = {"one": np.ones(len(group)), "same": np.full(len(group), "x"), **X}
        result = audit((group, constant, y_true, shown))
        notes = {score.feature: score.note for score in result.proxy_scores}
        assert "constant" in notes["one"]
        assert "refused" in notes["same"]

    def test_results_travel(self):
        import pickle

        result = audit(make())
        assert pickle.loads(pickle.dumps(result)) == result
        assert result.to_frame().shape[0] == len(result.proxy_scores)
        assert abs(result.influence.mean()) < 1e-12
        assert np.sign(result.correction @ result.influence) == -np.sign(result.estimate)

    def test_progress_of_draws(self):
        seen = []
        audit(make(), n_draws=50_000, progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (50_000, 50_000)
