"""The audit: one call, one policy, one verdict in words."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.auditing.seeds import seed_of
from fairaudit_rs.errors import AuditFailedError
from fairaudit_rs.metrics import registry
from fairaudit_rs.permutation.minimum_counts import ROWS


def shares(counts, name="group"):
    """Decisions and an attribute with (selected, rows) by group."""
    return {
        "y_pred": np.concatenate([np.arange(n) < x for x, n in counts.values()]).astype(int),
        "sensitive_features": {name: np.repeat(list(counts), [n for _, n in counts.values()])},
    }


def positives(counts, name="group"):
    """The same of people whose label is positive, and a negative one in ten of each group."""
    data = shares(counts, name)
    n = len(data["y_pred"])
    data["sensitive_features"][name] = np.tile(data["sensitive_features"][name], 2)
    data["y_true"] = np.repeat([1, 0], n)
    data["y_pred"] = np.concatenate([data["y_pred"], np.arange(n) % 2])
    return data


def people(n=4_000, seed=0, gap=0.0):
    rng = np.random.default_rng(seed)
    y_true = (rng.random(n) < 0.5).astype(int)
    y_score = np.clip(0.4 * y_true + 0.3 + rng.normal(0, 0.2, n), 0, 1)
    sex = rng.choice(["f", "m"], n)
    y_pred = (y_score > 0.5).astype(int)
    y_pred[(sex == "f") & (rng.random(n) < gap)] = 0
    return {
        "y_true": y_true,
        "y_pred": y_pred,
        "y_score": y_score,
        "sensitive_features": {
            "sex": sex,
            "race": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]),
        },
    }


def audited(data, **options):
    return fa.audit(**data, **{"rng": 1, **options})


def policy(*criteria, name="own", **options):
    return fa.Policy(
        name=name, criteria=[fa.Criterion(**criterion) for criterion in criteria], **options
    )


def tpr(tolerance=0.1, **options):
    return policy({"metric": "tpr", "tolerance": tolerance}, **options)


class TestArguments:
    def test_a_binding_metric_needs_its_columns(self):
        words = "y_true is None, but true_positive_rate needs it and binds in the policy 'own'"
        with pytest.raises(fa.errors.ArgumentError, match=words):
            audited(shares({"a": (5, 10), "b": (5, 10)}), policy=tpr())

    def test_informative_ones_are_rows_with_the_reason(self):
        own = policy(
            {"metric": "selection_rate", "ratio": 0.8},
            {"metric": "auc", "tolerance": 0.05, "binding": False},
        )
        audit = audited(shares({"a": (50, 100), "b": (50, 100)}), policy=own)
        row = audit.findings.row(by_predicate=pl.col("metric") == "auc", named=True)
        assert row["reason"] == "the data hold no labels and no scores"
        assert (row["verdict"], row["binding"]) == ("not_measurable", False)

    def test_cells_know_what_is_positive(self):
        data = people(400)
        del data["y_score"]
        cells = fa.tabulate(**data)
        assert audited({"data": cells}, policy=tpr(favourable=1)).questions[0].pairs
        with pytest.raises(fa.errors.ArgumentTypeError, match="favourable is 0 with data=cells"):
            audited({"data": cells}, policy=tpr(favourable=0))
        own = policy(
            {"metric": "tpr", "tolerance": 0.1},
            {"metric": "mean_residual", "tolerance": 0.1, "binding": False},
        )
        reasons = audited({"data": fa.tabulate(**people(400), score_bins=20)}, policy=own).findings
        assert "mean_residual needs the rows themselves" in " ".join(reasons["reason"].drop_nulls())

    def test_replicates_that_are_too_few_are_an_error_of_what_binds_alone(self):
        data = people(400) | {"sample_weight": np.linspace(0.5, 2, 400)}
        with pytest.raises(fa.errors.ArgumentError, match="n_resamples is 19; true_positive_rate"):
            audited(data, policy=tpr(), n_resamples=19)
        own = policy(
            {"metric": "auc", "tolerance": 0.1},
            {"metric": "tpr", "tolerance": 0.1, "binding": False},
        )
        found = audited(data, policy=own, n_resamples=19).findings
        assert any("n_resamples is 19" in (text or "") for text in found["reason"])

    def test_what_is_no_policy(self):
        data = people(100)
        with pytest.raises(fa.errors.ArgumentTypeError, match="policy is a int; accepted: a Poli"):
            audited(data, policy=3)
        with pytest.raises(fa.errors.ArgumentError, match="policy is 'nice'; accepted: 'opportu"):
            audited(data, policy="nice")
        with pytest.raises(fa.errors.FileError, match=r"nowhere\.toml cannot be read"):
            audited(data, policy="nowhere.toml")
        with pytest.raises(fa.errors.ArgumentError, match="evidence is 'much'; accepted: 'fail"):
            audited(data, evidence="much")

    def test_favourable_and_pos_label_are_one_thing(self):
        words = "pos_label is 1, and favourable is 0 in the policy. Give one of them"
        with pytest.raises(fa.errors.ArgumentTypeError, match=words):
            audited(people(100), policy=tpr(favourable=0), pos_label=1)


class TestKnownValues:
    """Counts of real audits (rounded shares), with what the prototype found of them."""

    @pytest.mark.parametrize(
        ("name", "counts", "tolerance", "word", "bound"),
        [
            ("student sex", {"M": (151, 169), "F": (214, 238)}, 0.1, "pass", 0.059),
            ("student age", {"<18": (274, 309), ">=18": (91, 98)}, 0.1, "pass", 0.089),
            ("german age", {"<=25": (46, 55), ">25": (263, 295)}, 0.1, "inconclusive", 0.156),
            ("dutch sex", {"f": (3_688, 4_874), "m": (8_041, 9_405)}, 0.1, "inconclusive", 0.11),
            ("compas age", {"<25": (146, 292), ">45": (392, 432)}, 0.1, "fail", 0.354),
        ],
    )
    def test_opportunity(self, name, counts, tolerance, word, bound):
        audit = audited(positives(counts), policy=tpr(tolerance))
        [one] = audit.questions
        assert (audit.verdict, one.verdict) == (word, word)
        pair = one.telling_pair.test
        assert (pair.least if word == "fail" else pair.most) == pytest.approx(bound, abs=0.0015)

    @pytest.mark.parametrize(
        ("counts", "word", "bound"),
        [
            ({"black": (65, 94), "white": (791, 842)}, "inconclusive", 0.647),
            ({"female": (161, 179), "male": (741, 808)}, "pass", 0.932),
            ({"Female": (652, 8_050), "Male": (4_240, 16_371)}, "fail", 0.335),
            ({"other": (208, 212), "white": (9_327, 9_339)}, "pass", 0.96),
        ],
    )
    def test_four_fifths(self, counts, word, bound):
        audit = audited(shares(counts), policy="four_fifths")
        assert audit.verdict == word
        one = audit.questions[0]
        pair = one.telling_pair.test
        assert (pair.least if word == "fail" else pair.most) == pytest.approx(bound, abs=0.002)

    def test_the_table_shows_the_worst_bound_and_not_the_largest_p(self):
        """Law school: black against white, not other against white."""
        counts = {"black": (627, 694), "other": (208, 212), "white": (9_327, 9_339)}
        audit = audited(shares(counts), policy="four_fifths")
        test = audit.questions[0].telling_pair.test
        assert {test.first.group, test.second.group} == {"black", "white"}
        assert audit.verdict == "pass"
        assert any("negative decisions are 75.1 times as frequent for black (9.7 %)" in text
                   for text in audit.warnings)  # fmt: skip
        assert any("the model decides the same way for 99.2 %" in text for text in audit.warnings)

    def test_groups_below_the_floor_are_said(self):
        counts = {"a": (900, 1_000), "b": (900, 1_000), "c": (0, ROWS - 1)}
        audit = audited(shares(counts, "race"), policy="four_fifths")
        assert audit.verdict == "pass"
        assert not audit.covers_all
        assert str(audit).startswith("PASS for the groups that could be measured, not for all.")
        assert "people in tested groups: race 98.6 %" in audit.summary()
        assert (audit.exit_code(), audit.exit_code(strict=True)) == (0, 3)
        words = "not tested for race, selection_rate: c (29 eligible rows, of 30 needed)"
        assert any(words in text for text in audit.remarks)

    def test_a_raised_floor_buys_no_pass(self):
        counts = {"a": (450, 900), "b": (450, 900), "c": (12, 40)}
        assert audited(shares(counts), policy="parity").verdict == "inconclusive"
        raised = policy({"metric": "selection_rate", "tolerance": 0.1}, floor=50)
        audit = audited(shares(counts), policy=raised)
        assert audit.verdict == "inconclusive"
        assert audit.questions[0].reason == (
            "a testable group is excluded by the minimum size of the policy"
        )
        few = shares({"a": (450, 900), "b": (450, 900), "c": (10, 29)})
        assert audited(few, policy=raised).verdict == "pass"

    def test_people_whose_group_is_unknown(self):
        counts = {"a": (450, 900), "b": (450, 900), "Unknown": (0, 60)}
        audit = audited(shares(counts, "race"), policy="parity")
        assert audit.verdict == "pass"
        assert {group.group for group in audit.questions[0].groups} == {"a", "b"}
        assert audit.questions[0].coverage == pytest.approx(1_800 / 1_860)
        assert "Excluded: 60 people without a known race." in audit.summary()
        many = shares({"a": (450, 900), "b": (450, 900), "?": (0, 150)})
        audit = audited(many, policy="parity")
        assert audit.verdict == "inconclusive"
        assert "Only 92.3 % of people are in groups that could be tested" in audit.summary()

    def test_almost_all_people_are_all(self):
        """One person of unknown sex in 20,000 made a strict run exit with 3."""
        for n_unknown, code, whom in ((1, 0, "all"), (20, 0, "all"), (21, 3, "tested")):
            counts = {
                "f": (4_000, 8_000),
                "m": (6_000, 12_000 - n_unknown),
                "Unknown": (0, n_unknown),
            }
            audit = audited(shares(counts, "sex"), policy="parity")
            assert (audit.verdict, audit.passes_for) == ("pass", whom)
            assert audit.exit_code(strict=True) == code
            assert str(audit).startswith("PASS. ") == (whom == "all")
            found = json.loads(json.dumps(audit.to_dict()))
            assert (found["verdict"], found["passes_for"]) == ("pass", whom)
            assert found["coverage"] == 1 - n_unknown / 20_000
            assert fa.from_dict(found) == audit
        assert "people in tested groups: sex 99.9 %" in str(audit)
        all_of_them = policy({"metric": "selection_rate", "tolerance": 0.1}, strict_coverage=1.0)
        counts["Unknown"] = (0, 1)
        audit = audited(shares(counts, "sex"), policy=all_of_them)
        assert (audit.passes_for, audit.exit_code(strict=True)) == ("tested", 3)
        assert "strict_coverage 1" in audit.summary()

    def test_inconclusive_is_for_nobody(self):
        few = audited(shares({"f": (50, 100), "m": (50, 100)}, "sex"), policy="parity")
        assert (few.to_dict()["verdict"], few.to_dict()["passes_for"]) == ("inconclusive", None)
        nothing = audited(shares({"f": (50, 100), "m": (50, 100)}, "sex"), policy="nyc_ll144")
        assert (nothing.to_dict()["coverage"], nothing.passes_for) == (None, None)

    def test_nothing_can_be_measured(self):
        audit = audited(shares({"a": (5, 20), "b": (450, 900)}, "race"), policy="parity")
        assert audit.verdict == "not_measurable"
        assert (audit.exit_code(), audit.exit_code(strict=True)) == (0, 3)
        assert "20 eligible rows, of 30 needed" in audit.summary()
        assert "NOT MEASURABLE (not a pass)." in audit.summary()

    def test_one_group(self):
        audit = audited(shares({"a": (5, 90)}), policy="parity")
        assert audit.verdict == "not_measurable"
        assert "1 group (a: the only group)" in audit.summary()

    def test_a_rule_without_a_threshold_asks_nothing(self):
        audit = audited(shares({"a": (40, 100), "b": (80, 100)}), policy="nyc_ll144")
        assert (audit.verdict, audit.exit_code(strict=True)) == ("not_asked", 0)
        assert audit.to_frame("groups")["value"].to_list() == [0.4, 0.8]
        assert "PASS" not in str(audit)

    def test_a_rule_without_a_pass(self):
        for selected, word in ((800, "no_fail"), (400, "fail")):
            data = shares({"a": (selected, 1_000), "b": (810, 1_000)})
            audit = audited(data, policy="us_eeoc")
            assert audit.verdict == word
            assert str(audit).startswith({"fail": "FAIL."}.get(word, "NO FAIL (the policy knows"))
            # JSON, findings and comparisons say what the text says: they said "not asked", "pass".
            assert {question["verdict"] for question in audit.to_dict()["questions"]} == {word}
            assert audit.findings["verdict"][0] == word
            assert audit.to_frame("pairs")["verdict"].to_list() == [word]
            assert (audit.exit_code(), audit.exit_code(strict=True)) == ((0, 0), (1, 1))[
                word == "fail"
            ]

    def test_a_rule_without_a_pass_is_not_open_for_coverage(self):
        """It was inconclusive, since "a pass needs 95 %" of people in tested groups."""
        data = shares(
            {"a": (800, 1_000), "b": (810, 1_000), **{f"c{i}": (16, 20) for i in range(9)}}
        )
        audit = audited(data, policy="us_eeoc")
        assert audit.coverage < 0.95
        assert (audit.verdict, audit.questions[0].reason) == ("no_fail", None)
        assert audit.summary().startswith("NO FAIL for the groups that could be measured, not for")
        assert (audit.exit_code(), audit.exit_code(strict=True)) == (0, 3)
        assert "pass needs" not in str(audit)

    def test_required_rows_of_a_rule_without_a_pass(self):
        """They were said to "show a PASS of this question"."""
        audit = audited(shares({"a": (45, 100), "b": (50, 100)}), policy="us_eeoc")
        assert audit.verdict == "inconclusive"
        assert "times as many rows" in audit.summary()
        assert "a PASS" not in audit.summary()

    def test_mirrors_count_once(self):
        both = policy({"metric": "tpr", "tolerance": 0.1}, {"metric": "fnr", "tolerance": 0.1})
        audit = audited(people(gap=0.2), policy=both)
        alone = audited(people(gap=0.2), policy=tpr())
        assert audit.n_comparisons == alone.n_comparisons == 4
        first, mirrored = audit.questions[0], audit.questions[3]
        assert (mirrored.metric, mirrored.same_as) == ("false_negative_rate", "true_positive_rate")
        assert mirrored.verdict == first.verdict == "fail"
        test, other = first.telling_pair.test, mirrored.telling_pair.test
        assert (test.first.group, other.first.group) == ("m", "f")
        assert other.first.value - other.second.value == pytest.approx(test.estimate)
        assert first.telling_pair.adjusted == alone.questions[0].telling_pair.adjusted

    def test_the_line_of_who_is_worse_off(self):
        failed = audited(people(gap=0.4), policy=tpr()).summary()
        assert "to the disadvantage of f" in failed
        punished = policy({"metric": "tpr", "tolerance": 0.1}, punitive=True)
        assert "to the disadvantage of m" in audited(people(gap=0.4), policy=punished).summary()

    def test_favourable_decides_what_is_positive(self):
        data = people(gap=0.4)
        named = {**data, "y_true": np.where(data["y_true"], "yes", "no"),
                 "y_pred": np.where(data["y_pred"], "yes", "no")}  # fmt: skip
        del named["y_score"], data["y_score"]
        one = audited(data, policy=tpr()).questions[0]
        other = audited(named, policy=tpr(favourable="yes")).questions[0]
        assert one.telling_pair.test == other.telling_pair.test
        audit = audited(named, policy=tpr(favourable="no"))
        refused = (data["y_true"] == 0) & (data["sensitive_features"]["sex"] == "f")
        expected = np.mean(data["y_pred"][refused] == 0)
        assert audit.questions[0].groups[0].value == pytest.approx(expected)
        assert "Favourable: y_pred = no, y_true = no." in audit.summary()

    def test_ages_are_cut(self):
        rng = np.random.default_rng(1)
        age = rng.integers(18, 80, 3_000)
        audit = fa.audit(y_pred=rng.integers(0, 2, 3_000), sensitive_features={"age": age}, rng=1)
        groups = {group.group: group.n_rows for group in audit.questions[0].groups}
        assert groups == {
            "up to 25": np.sum(age <= 25),
            "above 25 up to 45": np.sum((age > 25) & (age <= 45)),
            "above 45": np.sum(age > 45),
        }
        assert next(iter(groups)) == "up to 25"

    def test_decisions_in_words_beside_labels_of_0_and_1(self):
        """The favourable decision is no label: metrics of labels alone read 0 and 1 as they are."""
        data = people(gap=0.1)
        words = {**data, "y_pred": np.where(data["y_pred"] == 1, "yes", "no")}
        criteria = [{"metric": name, "tolerance": 0.1} for name in ("tpr", "mean_residual", "auc")]
        plain = audited(data, policy=policy(*criteria))
        told = audited(words, policy=policy(*criteria, favourable="yes"))
        assert told.findings.equals(plain.findings)
        assert told.base_rates == plain.base_rates
        # What no column holds is refused as before.
        with pytest.raises(fa.errors.DataError, match="favourable is 'ja', but y_pred holds"):
            audited(words, policy=policy(*criteria, favourable="ja"))
        with pytest.raises(ValueError, match="pos_label is 'yes', which does not occur in y_true"):
            audited(
                {**data, "y_true": np.where(data["y_true"] == 1, "good", "bad")}, pos_label="yes"
            )


class TestOutputs:
    def test_words(self):
        text = str(audited(people(gap=0.4)))
        assert text.startswith('FAIL. 4,000 rows; policy "opportunity" (the default, because')
        for word in ("allowing for chance", "evidence of a gap, not of its cause",
                     "eligible rows", "Favourable: y_pred = 1, y_true = 1."):  # fmt: skip
            assert word in text
        for word in ("biased", "discriminat", "illegal", "compliant"):
            assert word not in text
        calm = str(audited(people(40_000)))
        assert calm.startswith("PASS. 40,000 rows")
        assert "Allowing for chance, the largest possible gap is" in calm
        assert " fair" not in calm.replace("unfair", "").replace("fairaudit_rs", "")

    def test_inconclusive_says_for_whom_all_is_shown_and_what_would_tell(self):
        counts = {"a": (2_000, 4_000), "b": (2_000, 4_000), "tiny": (22, 40)}
        text = audited(shares(counts, "race"), policy="parity").summary()
        assert text.startswith("INCONCLUSIVE (not a pass).")
        assert (
            "among a and b (99.5 % of people) every gap is within the tolerance. "
            "Comparisons with tiny are open."
        ) in text
        assert "8 of 10 audits would show a PASS of this question" in text

    def test_frames(self):
        audit = audited(people())
        named = ["lens", "metric", "attribute", "first", "second", "estimate", "low", "high"]
        named += ["pvalue", "adjusted_pvalue", "tolerance", "verdict", "reason"]
        assert set(named) <= set(audit.findings.columns)
        assert audit.findings["lens"].unique().sort().to_list() == [
            "extremes", "individual", "influence", "permutation", "projection"
        ]  # fmt: skip
        lenses = audit.findings.filter(pl.col("lens") == "individual")
        assert lenses["reason"][0].startswith("not run: needs a model")
        pairs = audit.to_frame("pairs")
        assert len(pairs.filter(pl.col("binding"))) == audit.n_comparisons == 4
        assert (pairs["adjusted_p_fail"] >= pairs["p_fail"]).all()
        assert audit.to_frame("base_rates").columns == [
            "attribute", "group", "n_rows", "weight", "base_rate", "selection_rate", "is_crude"
        ]  # fmt: skip

    def test_markdown_and_html_show_names_literally(self):
        counts = {"<b>|x": (10, 100), "_y_": (90, 100)}
        audit = audited(shares(counts, "a*b"), policy="parity")
        page = audit.to_markdown()
        assert page.startswith("# FAIL\n")
        assert "\\<b\\>\\|x" in page
        assert "<b>|x" not in audit._repr_html_()
        assert all(line.count(" | ") == 9 for line in page.splitlines() if "selection" in line
                   and line.startswith("|"))  # fmt: skip

    def test_json_and_pickles_hold_other_results(self):
        audit = audited(people(gap=0.4))
        assert "permutation: true_positive_rate by sex" in audit.results
        again = fa.from_dict(json.loads(json.dumps(audit.to_dict(), allow_nan=False)))
        assert again == audit
        assert str(again) == str(audit)
        assert type(again.results["permutation: true_positive_rate by sex"]) is fa.PermutationResult
        assert pickle.loads(pickle.dumps(audit)) == audit

    def test_raise_for_verdict(self):
        failed = audited(people(gap=0.4))
        with pytest.raises(AuditFailedError, match=r"FAIL\. 4,000 rows") as raised:
            failed.raise_for_verdict()
        assert raised.value.verdict == "fail"
        with pytest.raises(AssertionError):
            failed.raise_for_verdict()
        undecided = audited(people(400))
        assert undecided.verdict == "inconclusive"
        assert undecided.raise_for_verdict() is undecided
        with pytest.raises(AuditFailedError, match="INCONCLUSIVE"):
            undecided.raise_for_verdict(strict=True)

    def test_base_rates_that_differ_are_told_where_criteria_disagree(self):
        rng = np.random.default_rng(2)
        group = np.repeat(["a", "b"], 10_000)
        y_true = (rng.random(20_000) < np.where(group == "a", 0.2, 0.6)).astype(int)
        y_pred = (rng.random(20_000) < np.where(y_true == 1, 0.9, 0.1)).astype(int)
        audit = fa.audit(y_true, y_pred, sensitive_features={"sex": group}, rng=1)
        assert audit.verdict == "pass"
        assert any("base rates differ by sex (20 % of a and 60 % of b)" in text
                   for text in audit.warnings)  # fmt: skip


class TestProperties:
    def numbers(self, audit, metric):
        rows = audit.to_frame("pairs").filter(pl.col("metric") == metric)
        return rows.select("attribute", "first", "estimate", "p_fail", "p_pass", "high")

    def test_another_metric_changes_no_other_number(self):
        data = people(1_000) | {"sample_weight": np.linspace(0.5, 2, 1_000)}
        one = {"metric": "tpr", "tolerance": 0.1}
        more = {"metric": "selection_rate", "tolerance": 0.1, "binding": False}
        alone = audited(data, policy=policy(one), evidence="permutation")
        both = audited(data, policy=policy(more, one), evidence="permutation")
        name = "true_positive_rate"
        assert self.numbers(alone, name).equals(self.numbers(both, name))
        key = f"permutation: {name} by sex"
        assert alone.results[key] == both.results[key]
        other = audited(data, policy=policy(one), rng=2)
        assert not self.numbers(alone, name).equals(self.numbers(other, name))

    def test_seeds_have_names(self):
        names = [("a", "b"), ("b", "a"), ("ab",), ("a", "b", ""), ()]
        assert len({seed_of(1, *name) for name in names} | {seed_of(2, "a", "b")}) == 6
        assert all(0 <= seed_of(1, *name) < 2**64 for name in names)

    def test_all_kinds_of_data_and_any_order_of_rows(self, tmp_path):
        data = people()
        frame = pl.DataFrame(
            {name: column for name, column in data.items() if name != "sensitive_features"}
            | data["sensitive_features"]
        )
        frame.write_parquet(tmp_path / "people.parquet")
        named = {"y_true": "y_true", "y_pred": "y_pred", "y_score": "y_score",
                 "sensitive_features": ["sex", "race"]}  # fmt: skip
        # All but what the data are called.
        first = replace(audited(data), request=None).to_dict()
        for table in (frame, frame.lazy(), tmp_path / "people.parquet", frame.to_pandas()):
            found = audited({"data": table, **named})
            assert replace(found, request=None).to_dict() == first
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
        other = audited({"data": shuffled, **named})
        assert other.verdict == first["verdict"]
        counts = ["p_fail", "p_pass", "low", "high"]
        is_rate = ~pl.col("metric").is_in(["mean_residual"])
        mine, theirs = (
            value.to_frame("pairs").filter(is_rate).select(counts)
            for value in (audited(data), other)
        )
        assert mine.equals(theirs)

    def test_cells_give_the_verdict_of_their_rows(self):
        data = people()
        del data["y_score"]
        cells = fa.tabulate(**data)
        assert audited({"data": cells}).questions[0] == audited(data).questions[0]

    def test_one_read_of_the_columns(self, monkeypatch):
        """Ten metrics of three attributes: the rows are counted once for all that are counts."""
        from fairaudit_rs.data.arrays import ArraySource

        calls = []
        real = ArraySource.count

        def count(self, keys, *args):
            calls.append(tuple(keys))
            return real(self, keys, *args)

        monkeypatch.setattr(ArraySource, "count", count)
        data = people()
        del data["y_score"]
        rates = ["selection_rate", "tpr", "fpr", "ppv", "npv", "accuracy", "f1", "mcc"]
        own = policy(
            *[{"metric": rate, "tolerance": 0.1} for rate in rates], lenses=["permutation"]
        )
        audited(data, policy=own, evidence="none")
        assert len(calls) == 1

    def test_one_read_of_the_rows(self, monkeypatch):
        """Metrics of scores beside rates: rows are encoded once for all attributes and metrics."""
        from fairaudit_rs.data.arrays import ArraySource

        calls = []
        real = ArraySource._encode

        def encode(self, keys, *args):
            calls.append(tuple(keys))
            return real(self, keys, *args)

        monkeypatch.setattr(ArraySource, "_encode", encode)
        of_rows = ["auc", "mean_residual", "mean_squared_error", "log_loss"]
        given = [{"metric": row, "binding": False} for row in of_rows]
        own = policy({"metric": "tpr", "tolerance": 0.1}, *given, lenses=["permutation"])
        audited(people(), policy=own, evidence="none")
        assert len(calls) == 1

    def test_without_failures_nothing_is_permuted(self):
        assert audited(people(40_000)).results.keys() <= {
            "projection: equal_opportunity by sex", "projection: equal_opportunity by race"
        }  # fmt: skip
        audit = audited(people(400), evidence="permutation")
        assert "permutation: selection_rate by race" in audit.results
        binding = [question for question in audit.questions if question.binding]
        assert all(not math.isnan(value.evidence) for value in binding)

    def test_intersections_inform_unless_they_bind(self):
        own = {"metric": "tpr", "tolerance": 0.1}
        audit = audited(people(), policy=policy(own))
        [crossed] = [
            question for question in audit.questions if question.attribute == "sex and race"
        ]
        assert not crossed.binding
        assert audit.n_comparisons == 4
        bound = audited(people(), policy=policy(own, intersections="bind"))
        assert bound.n_comparisons == 4 + 15
        skipped = audited(people(), policy=policy(own, intersections="skip"))
        assert {question.attribute for question in skipped.questions} == {"sex", "race"}

    def test_holm_counts_all_pairs_of_all_binding_questions(self):
        own = policy({"metric": "tpr", "tolerance": 0.1}, {"metric": "fpr", "tolerance": 0.1})
        audit = audited(people(gap=0.25), policy=own)
        pairs = audit.to_frame("pairs").filter(pl.col("binding"))
        assert audit.n_comparisons == len(pairs) == 8
        expected = fa.adjust_pvalues(pairs["p_fail"].to_list())
        assert pairs["adjusted_p_fail"].to_list() == pytest.approx(expected.tolist())


@pytest.mark.calibration
class TestCalibration:
    N = 250

    def verdicts(self, gap, n=3_000, tolerance=0.1, **options):
        """Two rates of two attributes; the gap is the same in all of them, of either sign."""
        rng, words = np.random.default_rng(1), []
        for _ in range(self.N):
            sex, place = (rng.choice(["a", "b"], n, p=[0.25, 0.75]) for _ in range(2))
            y_true = rng.integers(0, 2, n)
            shift = gap * ((sex == "a") * 1.0 - (place == "a") * 1.0)
            rate = np.where(y_true == 1, 0.7, 0.3) + shift
            audit = fa.audit(
                y_true,
                (rng.random(n) < rate).astype(int),
                sensitive_features={"sex": sex, "place": place},
                policy=policy(
                    {"metric": "tpr", "tolerance": tolerance},
                    {"metric": "fpr", "tolerance": tolerance},
                    lenses=["permutation"],
                    intersections="skip",
                    **options,
                ),
                evidence="none",
                rng=1,
            )
            words.append(audit.verdict)
        return words

    def test_gaps_at_the_tolerance_fail_rarely_and_never_pass(self):
        words = self.verdicts(0.1)
        most = stats.binom.isf(1e-6, self.N, 0.05)
        assert words.count("fail") <= most
        assert words.count("pass") <= most
        unadjusted = self.verdicts(0.1, adjustment="none")
        assert unadjusted.count("fail") > words.count("fail")

    def test_gaps_beyond_are_found_and_no_gaps_pass(self):
        assert self.verdicts(0.2).count("fail") > 0.8 * self.N
        assert self.verdicts(0.0, n=8_000).count("pass") > 0.8 * self.N


def test_bugs_and_stops_are_no_reasons(monkeypatch):
    data = fa.datasets.synthetic_credit()
    given = {"sensitive_features": data["sex"], "policy": "performance", "rng": 1}

    def broken(error):
        def project(*_, **__):
            raise error

        monkeypatch.setattr("fairaudit_rs.auditing.lenses.project_table", project)
        score = np.asarray(data["score"])
        return fa.audit(data["repaid"], (score >= 0.5).astype(int), y_score=score, **given)

    told = broken(fa.errors.DataError("so it is")).findings.filter(pl.col("lens") == "projection")
    assert told["reason"].to_list() == ["not run: so it is"]
    for kind in (fa.errors.InternalError, fa.errors.CancelledError):
        with pytest.raises(kind):
            broken(kind("planted"))


class TestOwnMetrics:
    def test_a_column_that_the_metric_names(self, monkeypatch):
        """A ratio metric of a data column is read with the other columns."""
        for table in ("_METRICS", "_NAME_BY_KEY"):
            monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
        rng = np.random.default_rng(0)
        frame = pl.DataFrame({"sex": list("ab") * 200, "cost": rng.random(400)})
        metric = fa.metrics.ratio_metric("mean_cost_of_test", "cost")
        fa.metrics.register(metric)
        criterion = fa.Criterion(metric="mean_cost_of_test", tolerance=0.5)
        policy = fa.Policy(name="costs", criteria=(criterion,))
        audit = fa.audit(data=frame, sensitive_features="sex", policy=policy, rng=1)
        means = dict(frame.group_by("sex").agg(pl.col("cost").mean()).iter_rows())
        found = {group.group: group.value for group in audit.questions[0].tested}
        assert found == pytest.approx(means)
        assert audit.verdict == "pass"
        with pytest.raises(fa.errors.ArgumentTypeError, match="column 'cost'"):
            fa.audit(y_pred=[0, 1] * 200, sensitive_features=list("ab") * 200, policy=policy)
