"""Wording of results: no contradictions, sizes of groups, names of groups, few notes."""

import contextlib

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs.data.groups import group_name
from fairaudit_rs.permutation import result as permutation_result
from fairaudit_rs.report.notes import Note, fold_notes, reason_without_numbers
from fairaudit_rs.report.words import (
    join_names,
    note_on_disagreement,
    p_text,
    row_count,
)

NAN = float("nan")


class TestNumbers:
    @pytest.mark.parametrize(
        ("pvalue", "text"),
        [
            (0.5, "p = 0.5000"),
            (3e-5, "p = 3e-05"),
            (1e-299, "p = 1e-299"),
            (2.3e-308, "p < 1e-300"),
            (0.0, "p < 1e-300"),
            (NAN, "p = nan"),
        ],
    )
    def test_p(self, pvalue, text):
        assert p_text(pvalue) == text

    def test_rows(self):
        assert row_count(1) == "1 row"
        assert row_count(1_200) == row_count(1_200, 1_200) == "1,200 rows"
        assert row_count(1_200, 30) == "30 eligible of 1,200 rows"
        assert row_count(None) == ""

    def test_lists(self):
        assert join_names(["a"]) == "a"
        assert join_names(["a", "b"]) == "a and b"
        assert join_names(["a", "b", "c"]) == "a, b and c"
        assert join_names(list("abcdefg")) == "a, b, c and 4 more"

    @pytest.mark.parametrize(
        ("interval", "rejected", "text"),
        [
            ((0.1, 0.2), True, ""),
            ((-0.1, 0.2), False, ""),
            ((NAN, NAN), True, ""),
            (
                (0.01, 0.2),
                False,
                " The interval, by another method, leaves out 0: the test decides.",
            ),
            ((-0.1, 0.2), True, " The interval, by another method, includes 0: the test decides."),
        ],
    )
    def test_asides(self, interval, rejected, text):
        assert note_on_disagreement(interval, rejected) == text


class TestFolding:
    def test_three_of_a_kind_are_one(self):
        notes = [
            Note("few-labels", f"{name} has only {n} rows of a label", (name,))
            for name, n in zip("abcde", range(5), strict=True)
        ]
        assert fold_notes([Note("begin", "first"), *notes, Note("end", "last")]) == [
            "first",
            "a has only 0 rows of a label; the same of b, c, d and 1 more (5 notes of this kind)",
            "last",
        ]

    def test_two_are_two(self):
        notes = [Note("few-rows", "a has 1 row", ("a",)), Note("few-rows", "b has 2", ("b",))]
        assert fold_notes(notes) == ["a has 1 row", "b has 2"]

    def test_pairs(self):
        notes = [
            Note("few-rows", f"interval of {a} and {b}: few rows", (a, b))
            for a, b in ("xy", "xz", "yz")
        ]
        assert fold_notes(notes) == [
            "interval of x and y: few rows; the same of x and z and y and z (3 notes of this kind)"
        ]

    def test_other_codes_and_scopes_are_other_kinds(self):
        codes = [Note(code, code, (group,)) for code, group in zip("opq", "abc", strict=True)]
        assert fold_notes(codes) == list("opq")
        scopes = [Note("few", scope, (group,), scope) for scope, group in ("oa", "pb", "qc")]
        assert fold_notes(scopes) == list("opq")

    def test_notes_without_a_subject_stay(self):
        notes = [Note("few", f"{n} replicates") for n in range(3)]
        assert fold_notes(notes) == [note.text for note in notes]

    def test_other_reasons_are_printed_one_by_one(self):
        reasons = ["12 rows of 20", "8 rows of 20", "12 rows of 20"]
        notes = [
            Note("few", f"{name}: {reason}", (name,), reason=reason_without_numbers(reason))
            for name, reason in zip("abc", reasons, strict=True)
        ]
        assert fold_notes(notes) == ["a: 12 rows of 20; the same of b and c (3 notes of this kind)"]
        other = Note("few", "c: all are 0.1", ("c",), reason=reason_without_numbers("all are 0.1"))
        assert fold_notes([*notes[:2], other]) == [note.text for note in (*notes[:2], other)]

    def test_equal_notes_are_one(self):
        assert fold_notes([Note("few", "few rows")] * 4) == ["few rows"]

    def test_a_test_of_six_groups(self):
        rng = np.random.default_rng(0)
        group = rng.choice(list("abcdef"), 300, p=[0.5, 0.3, 0.05, 0.05, 0.05, 0.05])
        label = (rng.random(300) < 0.2).astype(int)
        result = fa.permutation_test(
            label, y_score=rng.random(300).round(2), sensitive_features=group, metric="auc",
            n_resamples=999, rng=1,
        )  # fmt: skip
        few = [text for text in result.warnings if "rows with a positive label" in text]
        assert len(few) >= 3
        for shown in (str(result), result._repr_html_()):
            assert shown.count("rows with a positive label") == 1
            assert f"({len(few)} notes of this kind)" in shown


class TestNames:
    @pytest.mark.parametrize(
        ("group", "attribute", "name"),
        [
            (0, "black", "black=0"),
            ("1", "black", "black=1"),
            (True, "old", "old=True"),
            ("false", "old", "old=false"),
            (0.5, "share", "share=0.5"),
            ("a", "sex", "a"),
            ("18-29", "age", "18-29"),
            (None, "sex", "None"),
            (0, "", "0"),
            ((0, "a"), "black and sex", "black=0 & a"),
            ((0, 1), "black", "0 & 1"),
        ],
    )
    def test_bare_labels_have_their_attribute(self, group, attribute, name):
        assert group_name(group, attribute) == name

    def test_wherever_groups_are_named(self):
        rng = np.random.default_rng(0)
        black = rng.integers(0, 2, 400)
        label = rng.integers(0, 2, 400)
        score = rng.random(400)
        data = {
            "y_true": label,
            "y_pred": (score > 0.5).astype(int),
            "sensitive_features": {"black": black},
        }
        results = [
            fa.permutation_test(**data, metric="tpr"),
            fa.intervals(**data, metric="tpr"),
            fa.equivalence_test(**data, metric="tpr", margin=0.3),
            fa.projection_test(label, y_score=score, sensitive_features={"black": black}),
            fa.calibrate(**data, metric="tpr", n_audits=10, n_resamples=19),
            fa.minimum_detectable_gap(**data, metric="tpr"),
        ]
        for result in results:
            assert "black=0" in result.summary(), type(result)
            assert "black=1" in result.summary(), type(result)
            assert set(result.to_frame("groups")["group"]) == {"black=0", "black=1"}
            assert "black=0" in result._repr_html_()
        assert results[0].to_frame()["first"].to_list() == ["black=0"]
        assert set(results[0].group_sizes) == {0, 1}

    def test_notes_name_them_too(self):
        label = [1, 1, 0, 0, 1, 0] * 5
        score = np.linspace(0, 1, 30)
        result = fa.permutation_test(
            label, y_score=score, sensitive_features={"black": [0, 1] * 15}, metric="auc",
            n_resamples=99, rng=1,
        )  # fmt: skip
        assert result.warnings[0].startswith("black=0 has only ")


class TestSizes:
    def test_every_sentence_has_them(self):
        rng = np.random.default_rng(0)
        group = np.repeat(["a", "b", "c"], [40, 50, 60])
        label, score = rng.integers(0, 2, 150), rng.random(150)
        data = {"y_true": label, "y_pred": (score > 0.5).astype(int), "sensitive_features": group}
        two = {**data, "groups": ["a", "b"]}
        sentences = {
            "a (40 rows) and": fa.permutation_test(**two, metric="selection_rate"),
            "of 40 rows) and": fa.permutation_test(**two, metric="tpr"),
            "of 3 groups (40 to 60 rows)": fa.permutation_test(**data, metric="tpr", rng=1),
            "joint (40 to 60 rows)": fa.permutation_test(**data, metric="equalized_odds", rng=1),
            "a (40 rows) minus b (50 rows)": fa.intervals(**two, metric="tpr"),
            "(40 rows)": fa.equivalence_test(**two, metric="tpr", margin=0.4),
            "b (50 rows)": fa.projection_test(label, y_score=score, sensitive_features=group),
            "40 rows of a, 50 rows of b and 60 rows of c": fa.calibrate(
                **data, metric="tpr", n_audits=10, n_resamples=19
            ),
            "a (40 rows) and 0": fa.influence_audit(
                **data, X={"x": score}, target="a", metric="selection_rate", n_draws=20
            ),
        }
        for part, result in sentences.items():
            part = part.removeprefix("joint ").removesuffix(" 0")
            assert part in result.summary(), result.summary()

    def test_tables_of_groups(self):
        group = np.repeat(["a", "b"], [40, 60])
        label = np.tile([1, 1, 0, 0, 0], 20)
        decision = np.tile([1, 0, 0, 1], 25)
        result = fa.permutation_test(
            label, decision, sensitive_features=group, metric="true_positive_rate"
        )
        table = result.to_frame("groups")
        assert table["n_rows"].to_list() == [40, 60]
        assert table["n_used"].to_list() == [16, 24]
        of_values = fa.intervals(label, decision, sensitive_features=group, metric="tpr")
        for name in ("value", "low", "high", "n_used"):
            assert table[name].to_list() == of_values.to_frame("groups")[name].to_list()
        pairs = result.to_frame()
        assert pairs["first_n_rows"].to_list() == [40]
        assert pairs["second_n_rows"].to_list() == [60]

    def test_values_of_clusters_are_those_of_intervals(self):
        rng = np.random.default_rng(0)
        group, person = np.repeat(["a", "b"], 100), np.arange(200) // 4
        data = {
            "y_pred": rng.integers(0, 2, 200),
            "sensitive_features": group,
            "clusters": person,
            "metric": "selection_rate",
        }
        first = fa.permutation_test(**data, n_resamples=99, rng=1).to_frame("groups")
        second = fa.intervals(**data, n_resamples=99, rng=1).to_frame("groups")
        assert first["low"].to_list() == pytest.approx(second["low"].to_list())
        assert first["high"].to_list() == pytest.approx(second["high"].to_list())


class TestAgreement:
    """The sentence says which of the two decides where test and interval disagree, only there."""

    def audits(self, n=1_000):
        rng = np.random.default_rng(0)
        for _ in range(n):
            hits = rng.binomial(40, 0.3, 2)
            decision = np.concatenate([np.arange(40) < k for k in hits]).astype(int)
            yield fa.permutation_test(
                y_pred=decision, sensitive_features=np.repeat(["a", "b"], 40),
                metric="selection_rate",
            )  # fmt: skip

    def test_of_a_thousand_small_audits(self):
        n_aside = 0
        for result in self.audits(300):
            low, high = result.confidence_interval
            differ = (low > 0 or high < 0) != (result.pvalue <= 0.05)
            assert ("the test decides" in result.summary()) == differ
            n_aside += differ
        assert n_aside > 2

    def of_all_kinds(self):
        """Audits of 40 + 40 rows, of 3 x 40 and of two rates at once: by metric and design."""
        for metric in ("selection_rate", "tpr", "ppv", "accuracy", "f1", "mcc", "auc"):
            for design in ("two-sided", "greater", "strata", "sample_weight", "groups"):
                yield from self.of_kind(metric, design)
        yield from self.of_kind("equalized_odds", "two-sided")

    def of_kind(self, metric, design, n_audits=12):
        rng = np.random.default_rng(5)
        group = np.repeat(list("abc")[: 3 if design == "groups" else 2], 40)
        options = {"metric": metric, "n_resamples": 199, "undefined": "skip"}
        if design == "greater":
            options["alternative"] = design
        for number in range(n_audits):
            label = rng.integers(0, 2, len(group))
            score = (rng.random(len(group)) + 0.2 * label + 0.25 * (group == "b")).round(2)
            rows = {"sensitive_features": group, "y_score": score}
            if metric != "auc":
                rows = {"sensitive_features": group, "y_pred": (score > 0.6).astype(int)}
            if design == "strata":
                rows[design] = rng.integers(0, 2, len(group))
            if design == "sample_weight":
                rows[design] = rng.random(len(group)) + 0.5
            with contextlib.suppress(fa.errors.NotMeasurableError):
                yield fa.permutation_test(label, **rows, **options, rng=number)

    def contradictions(self, results):
        """How many sentences say another thing than their interval, and not which one decides."""
        n_differ, wrong = 0, []
        for result in results:
            low, high = result.confidence_interval
            if np.isnan(low) or np.isnan(result.pvalue):
                continue
            differ = (low > 0 or high < 0) != (result.pvalue <= 0.05)
            n_differ += differ
            if ("the test decides" in result.summary()) != differ:
                wrong.append(result.summary())
        return n_differ, wrong

    def test_none_in_audits_of_all_kinds(self, monkeypatch):
        results = list(self.of_all_kinds())
        n_differ, wrong = self.contradictions(results)
        assert len(results) > 380
        assert n_differ > 10
        assert wrong == []
        # Without the words that say it, all of them are found.
        monkeypatch.setattr(
            permutation_result, "note_on_disagreement", lambda interval, rejected: ""
        )
        assert len(self.contradictions(results)[1]) == n_differ

    def test_the_projection(self):
        rng = np.random.default_rng(0)
        n_aside = 0
        for _ in range(150):
            result = fa.projection_test(
                rng.integers(0, 2, 400), y_score=rng.random(400),
                sensitive_features=rng.choice(["a", "b"], 400), notion="statistical_parity",
            )  # fmt: skip
            if result.inconclusive is not None:
                continue
            low, high = result.criteria[0].confidence_interval
            differ = (low > 0 or high < 0) != (result.pvalue <= 0.05)
            assert ("the test decides" in result.summary()) == differ
            n_aside += differ
        assert n_aside

    def test_equal_values_are_not_a_range(self):
        data = {"y_pred": np.ones(30), "sensitive_features": list("abc") * 10}
        result = fa.permutation_test(**data, metric="selection_rate")
        assert "(10 rows each): 1.000 for all of them." in result.summary()
        assert "from" not in result.summary()
        assert "the largest, of 3 groups" in fa.intervals(**data, metric="selection_rate").summary()


class TestContradictions:
    def data(self):
        rng = np.random.default_rng(2)
        group = np.repeat(["a", "b", "c"], [200, 150, 250])
        return rng.integers(0, 2, 600), rng.random(600), group

    def test_a_tolerance_is_printed_and_kept_to(self):
        label, score, group = self.data()
        two = {"sensitive_features": np.where(group == "a", "a", "b"), "y_score": score}
        wide = fa.projection_test(label, **two, epsilon=0.2).summary()
        assert "(tolerance up to 0.200 either way). The data are within the tolerance as" in wide
        assert "that a gap is beyond the tolerance is not shown at the 5 % level" in wide
        assert "fair as they are" not in wide
        assert "fairness" not in wide
        sharp = fa.projection_test(label, **two).summary()
        assert "tolerance" not in sharp

    def test_tolerances_of_their_own(self):
        label, score, group = self.data()
        result = fa.projection_test(
            label, y_score=score, sensitive_features=group, reference="a", epsilon=[0.1, 0.2]
        )
        words = "(tolerances up to 0.100 either way and up to 0.200 either way)"
        assert words in result.summary()

    def test_one_sided(self):
        label, score, group = self.data()
        result = fa.projection_test(
            label, y_score=score, sensitive_features=group == "a", alternative="greater"
        )
        assert "(tolerance up to 0.000)" in result.summary()

    def test_several_groups_and_their_reference(self):
        label, score, group = self.data()
        result = fa.projection_test(label, y_score=score, sensitive_features=group, reference="b")
        words = "the largest of 2 gaps, of a (200 rows) and c (250 rows) against b (150 rows), is"
        assert words in result.summary()

    def test_attributes_apart(self):
        label, score, group = self.data()
        result = fa.projection_test(
            label, y_score=score, attributes="separate",
            sensitive_features={"place": group == "a", "old": score > 0.4},
        )  # fmt: skip
        assert "place=False against place=True; old=False against old=True" in result.summary()
        assert set(result.to_frame("groups")["group"]) == {
            "place=False", "place=True", "old=False", "old=True"
        }  # fmt: skip

    def test_exact_pairs_need_no_replicates(self):
        result = fa.permutation_test(
            y_pred=[0, 1, 1] * 10, sensitive_features=list("abcdefghij") * 3,
            metric="selection_rate", engine="auto", n_resamples=99, rng=1,
        )  # fmt: skip
        assert {pair.engine for pair in result.comparisons} == {"exact"}
        assert not [text for text in result.warnings if "n_resamples" in text]

    def test_the_test_of_all_groups_needs_its_own(self):
        rng = np.random.default_rng(0)
        result = fa.permutation_test(
            y_pred=rng.integers(0, 2, 900), sensitive_features=rng.choice(list("abcdef"), 900),
            metric="selection_rate", n_resamples=9, rng=1,
        )  # fmt: skip
        assert {pair.engine for pair in result.comparisons} == {"exact"}
        assert result.engine == "cells"
        (note,) = [text for text in result.warnings if "n_resamples" in text]
        assert note.startswith("9 replicates: no drawn test alone can reach 0.05; raise")

    def test_calibration_errors_have_no_interval_and_say_so_once(self):
        label, score, group = self.data()
        result = fa.permutation_test(
            label, y_score=score, sensitive_features=group, metric="calibration_error",
            n_resamples=99, rng=1,
        )  # fmt: skip
        assert "so its gap has no interval" in str(result)
        assert "Bonferroni" not in str(result)

    def test_a_reference_leaves_other_pairs_out(self):
        group = np.repeat(["a", "b", "c"], 100)
        decision = np.concatenate([np.arange(100) < k for k in (90, 50, 10)]).astype(int)
        data = {"y_pred": decision, "sensitive_features": group, "metric": "selection_rate"}
        everything = fa.intervals(**data)
        assert everything.largest_gap.estimate == pytest.approx(0.8)
        assert len(everything.simultaneous) == 3
        result = fa.intervals(**data, reference="b")
        assert result.largest_gap.estimate == pytest.approx(0.4)
        assert [(simultaneou.first, simultaneou.second) for simultaneou in result.simultaneous] == [
            ("a", "b"),
            ("c", "b"),
        ]
        assert "the largest, of a (100 rows) and b (100 rows), is 0.400" in result.summary()
        # Two pairs share the level, not three.
        alone = fa.intervals(**{**data, "confidence_level": 0.975}, groups=["a", "b"])
        assert result.simultaneous[0].confidence_interval == alone.gaps[0].confidence_interval

    def test_the_smallest_p(self):
        n = 100_000
        result = fa.permutation_test(
            y_pred=np.repeat([0, 1], n), sensitive_features=np.repeat(["a", "b"], n),
            metric="selection_rate",
        )  # fmt: skip
        assert "(p < 1e-300)" in result.summary()
        assert result.details.startswith("two-sided exact permutation test; interval: ")
