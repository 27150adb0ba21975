"""Local Law 144: impact ratios to the most selected category, and no verdict."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.auditing.rules.nyc_ll144 import (
    RACE,
    SEX,
    BiasAudit,
    above_median,
    impact_table,
    impact_tables,
)
from fairaudit_rs.cli import main
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, DataError

#: Adult with boosting, scoring rates: verdicts 5.2. The counts are of these rates.
BY_SEX = {"Female": (2_088, 8_050), "Male": (10_134, 16_371)}
BY_RACE = {
    "Black": (717, 2_307),
    "White": (10_960, 20_916),
    "Asian-Pac-Islander": (430, 787),
    "Amer-Indian-Eskimo": (74, 228),
    "Other": (53, 183),
}
PAIRS = {
    ("f", "x"): (10, 100),
    ("f", "y"): (30, 100),
    ("m", "x"): (40, 100),
    ("m", "y"): (1, 3),
    ("?", "x"): (5, 7),
    ("m", "Unknown"): (2, 4),
}


def audit(counts=PAIRS, **options):
    unknown = fa.Policy.preset("nyc_ll144").is_unknown
    of = {SEX: "sex", RACE: "race"}
    return BiasAudit(
        date="2026-11-20",
        source="applications",
        tables=impact_tables(counts, column_of_kind=of, is_unknown=unknown, **options),
        columns=of,
    )


def ratios(table):
    return {category.category: category.impact_ratio for category in table.categories}


class TestKnownValues:
    def test_the_published_example(self):
        table = impact_table(BY_SEX, by="sex", kind="scoring")
        assert [round(category.rate, 3) for category in table.categories] == [0.259, 0.619]
        assert ratios(table)["Female"] == pytest.approx(0.419, abs=5e-4)
        assert ratios(table)["Male"] == 1
        race = {group: pair for group, pair in BY_RACE.items() if group != "Asian-Pac-Islander"}
        table = impact_table(race, by="race", kind="scoring")
        assert ratios(table)["Black"] == pytest.approx(0.593, abs=5e-4)
        small = {
            category.category: round(100 * category.share, 1)
            for category in table.categories
            if category.small
        }
        assert set(small) == {"Amer-Indian-Eskimo", "Other"}

    def test_categories_under_2_percent(self):
        kept = impact_table(BY_RACE, by="race")
        left = impact_table(BY_RACE, by="race", leave_out=True)
        by_name = {category.category: category for category in left.categories}
        other = by_name["Other"]
        # Number and rate are given all the same, with the reason.
        assert (other.n_applicants, round(other.rate, 2)) == (183, 0.29)
        assert other.left_out
        assert other.reason == "left out: fewer than 2 % of the people of this table"
        assert math.isnan(other.impact_ratio)
        assert not math.isnan(ratios(kept)["Other"])
        assert not by_name["Black"].left_out

    def test_a_small_category_is_no_measure_for_others(self):
        counts = {"a": (50, 100), "b": (60, 100), "tiny": (2, 2)}
        assert ratios(impact_table(counts, by="x"))["b"] == 0.6
        assert ratios(impact_table(counts, by="x", leave_out=True))["b"] == 1

    def test_exactly_2_percent_is_not_under(self):
        table = impact_table({"a": (5, 98), "b": (1, 2)}, by="x")
        assert not any(category.small for category in table.categories)

    def test_three_tables_and_those_who_are_unknown(self):
        sex, race, both = audit().tables
        assert (sex.n_unknown, race.n_unknown, both.n_unknown) == (7, 4, 11)
        assert {category.category: category.n_applicants for category in sex.categories} == {
            "f": 200,
            "m": 107,
        }
        assert {category.category: category.n_applicants for category in race.categories} == {
            "x": 207,
            "y": 103,
        }
        assert ratios(both) == pytest.approx(
            {("f", "x"): 0.25, ("f", "y"): 0.75, ("m", "x"): 1.0, ("m", "y"): 1 / 1.2}
        )

    def test_nobody_known_and_nobody_selected(self):
        sex, race, _ = audit({("?", "x"): (1, 2), ("?", "y"): (0, 2)}).tables
        assert (sex.categories, sex.n_unknown) == ((), 4)
        assert ratios(race)["y"] == 0
        table = impact_table({"a": (0, 5), "b": (0, 9)}, by="x")
        assert {category.reason for category in table.categories} == {"nobody is selected"}
        scored = impact_table({"a": (0, 5), "b": (0, 9)}, by="x", kind="scoring")
        assert {category.reason for category in scored.categories} == {
            "nobody scores above the median"
        }
        assert all(math.isnan(category.impact_ratio) for category in table.categories)

    def test_all_categories_are_small(self):
        many = dict.fromkeys(range(60), (1, 1))
        assert set(ratios(impact_table(many, by="x", leave_out=True)).values()) == {1.0}

    def test_scoring_is_strictly_above_the_median_of_all(self):
        scores = [0.1, 0.5, 0.5, 0.5, 0.9]
        assert above_median(scores).tolist() == [False, False, False, False, True]
        # At least the median is the broken variant: four of five would be above.
        assert above_median([1, 2, 3, 4]).tolist() == [False, False, True, True]
        with pytest.raises(DataError, match="scores must be one number per person"):
            above_median([0.1, np.nan])


class TestSmallHighest:
    """A highest category below 2 % sets all ratios: they are given with and without it."""

    COUNTS = (("a", (50, 100)), ("b", (60, 100)), ("tiny", (2, 2)))

    @pytest.mark.parametrize("leave_out", [False, True])
    def test_both_ratios(self, leave_out):
        table = impact_table(dict(self.COUNTS), by="race", leave_out=leave_out)
        assert table.small_highest.category == "tiny"
        found = {category.category: category for category in table.categories}
        assert [line.ratio_with_small for line in found.values()] == [0.5, 0.6, 1]
        assert [found[name].ratio_without_small for name in "ab"] == pytest.approx([5 / 6, 1])
        assert math.isnan(found["tiny"].ratio_without_small)
        assert found["a"].impact_ratio == pytest.approx(5 / 6 if leave_out else 0.5)
        page = table.to_markdown()
        assert "| ratio with small categories | ratio without small categories |" in page
        assert "| 0.500 | 0.833 |" in page
        assert (
            "tiny has the highest selection rate (1.000) and fewer than 2 % of the people "
            "(2 of 202): ratios are given with and without such categories"
        ) in page
        assert table.rows()[0]["ratio without small categories"] == pytest.approx(5 / 6)

    @pytest.mark.parametrize(
        "counts",
        [
            {"a": (50, 100), "b": (60, 100)},
            {"a": (50, 100), "b": (60, 100), "tiny": (0, 2)},
            {"a": (50, 100), "b": (100, 100), "tiny": (2, 2)},
            {"a": (0, 100), "b": (0, 100), "tiny": (0, 2)},
            dict.fromkeys(range(60), (1, 1)),
        ],
    )
    def test_one_ratio_where_the_highest_is_large(self, counts):
        table = impact_table(counts, by="race")
        assert table.small_highest is None
        assert "without small" not in table.to_markdown()
        assert "ratio with small categories" not in table.rows()[0]

    def test_lines_name_the_category_that_others_are_compared_with(self):
        found = audit()
        assert [table.name_of(table.compared_with) for table in found.tables] == ["m", "y", "m & x"]
        nobody = impact_table({"a": (0, 5), "b": (0, 9)}, by="x")
        assert nobody.compared_with is None

    def test_in_an_audit(self):
        race = np.repeat(["a", "b", "tiny"], [100, 100, 2])
        hired = np.repeat([1, 0, 1, 0, 1], [50, 50, 60, 40, 2])
        found = fa.audit(y_pred=hired, sensitive_features={"race": race}, policy=PRESET, rng=1)
        lines = found.rule_lines
        assert "race or ethnicity: impact ratios are to tiny, selection rate 1.000" in lines
        [line] = [line for line in str(found).splitlines() if line.startswith("  a  ")]
        assert line.split()[:6] == ["a", "100", "0.500", "0.500", "0.500", "0.833"]
        assert any("tiny has the highest selection rate (1.000) and fewer" in x for x in lines)
        assert "without small categories" in found.to_markdown()
        frame = found.to_frame("impact_ratios")
        assert frame["ratio_without_small"].to_list()[:2] == pytest.approx([5 / 6, 1])
        again = fa.from_dict(json.loads(json.dumps(found.to_dict())))
        assert again.bias_audit == found.bias_audit
        assert again.rule_lines == lines


class TestPublished:
    def test_there_is_no_verdict(self):
        one = audit()
        text = one.to_markdown()
        assert one.verdict == "not_asked"
        assert "nothing here passes or fails" in text
        assert "0.8 " not in text
        assert "11 applicants of unknown sex and race or ethnicity are in no line" in text
        assert "| f & x | 100 | 0.100 | 0.250 |  |" in text
        assert "Bias audit of 2026-11-20. Data: applications" in text

    def test_rows(self):
        [_, _, both] = audit(kind="scoring", leave_out=True).tables
        assert both.rows()[3] == {
            "sex and race or ethnicity": "m & y",
            "number of applicants": 3,
            "scoring rate": pytest.approx(1 / 3),
            "impact ratio": None,
            "note": "left out: fewer than 2 % of the people of this table",
        }


def test_arguments():
    with pytest.raises(ArgumentError, match="kind is 'score'; accepted: 'selection', 'scoring'"):
        impact_table(BY_SEX, by="sex", kind="score")
    with pytest.raises(DataError, match="counts has the group 'f'; accepted: tuples of sex and"):
        audit({"f": (1, 2)})


def test_adult(audit_data):
    """Labels of the training rows as if they were selections: figures of the data's page."""
    frame = pl.read_csv(audit_data / "adult" / "adult.data.gz", has_header=False).drop_nulls()
    rows = frame.select(
        pl.col("column_9").str.strip_chars().alias("sex"),
        pl.col("column_8").str.strip_chars().alias("race"),
        (pl.col("column_14").str.strip_chars() == ">50K").alias("hired"),
    )
    grouped = rows.group_by("sex", "race").agg(pl.col("hired").sum(), pl.len())
    sex, race, both = audit({(s, r): (x, n) for s, r, x, n in grouped.rows()}).tables
    assert {category.category: category.n_applicants for category in sex.categories} == {
        "Female": 10_771,
        "Male": 21_790,
    }
    assert ratios(sex)["Female"] == pytest.approx(1179 / 10771 / (6662 / 21790))
    assert {category.category: round(100 * category.rate, 2) for category in race.categories} == {
        "White": 25.59, "Black": 12.39, "Asian-Pac-Islander": 26.56,
        "Amer-Indian-Eskimo": 11.58, "Other": 9.23,
    }  # fmt: skip
    assert {category.category for category in race.categories if category.small} == {
        "Amer-Indian-Eskimo",
        "Other",
    }
    assert sum(category.small for category in both.categories) >= 4


# -- of an audit -------------------------------------------------------------------------------

#: Sex, race, people, how many of them are hired and how many score above the median of all.
PEOPLE = [
    ("f", "x", 100, 10, 30),
    ("f", "y", 100, 30, 50),
    ("m", "x", 100, 40, 75),
    ("m", "y", 3, 1, 0),
    ("?", "x", 7, 5, 0),
    ("m", None, 4, 2, 0),
]
PRESET = fa.Policy.preset("nyc_ll144")


def applicants(sex="sex", race="race"):
    """People by row; those who score above the median have 0.9, as many as those below or at it."""
    rows = [
        (person, other, int(i < hired), 0.9 if i < above else 0.1)
        for person, other, n, hired, above in PEOPLE
        for i in range(n)
    ]
    frame = pl.DataFrame(rows, schema=[sex, race, "hired", "score"], orient="row")
    return frame.sample(fraction=1, shuffle=True, seed=1)


def audited(data, by=("sex", "race"), policy=PRESET, **options):
    given = {"y_pred": "hired"} | options
    return fa.audit(data=data, sensitive_features=list(by), policy=policy, rng=1, **given)


def optioned(**options):
    return replace(PRESET, rule_options=options)


def lines(found):
    """Return the sentence on each category, by table and category."""
    return {
        (value["rate_of"], value["by"], value["category"]): (
            value["n_applicants"], round(value["rate"], 4), round(value["impact_ratio"], 4)
        )
        for value in found.to_frame("impact_ratios").to_dicts()
    }  # fmt: skip


BOTH = "sex and race or ethnicity"
#: Hand-made: m are hired 43 of 107 and f 40 of 200, so the ratio of f is 0.2 / (43 / 107).
SELECTED = {
    ("selection", "sex", "f"): (200, 0.2, 0.4977),
    ("selection", "sex", "m"): (107, 0.4019, 1.0),
    ("selection", "race or ethnicity", "x"): (207, 0.2657, 0.8828),
    ("selection", "race or ethnicity", "y"): (103, 0.301, 1.0),
    ("selection", BOTH, "f & x"): (100, 0.1, 0.25),
    ("selection", BOTH, "f & y"): (100, 0.3, 0.75),
    ("selection", BOTH, "m & x"): (100, 0.4, 1.0),
    ("selection", BOTH, "m & y"): (3, 0.3333, 0.8333),
}
#: Above the median of all 314, which is 0.1: 155 have .9.
SCORED = {
    ("scoring", "sex", "f"): (200, 0.4, 0.5707),
    ("scoring", "sex", "m"): (107, 0.7009, 1.0),
    ("scoring", "race or ethnicity", "x"): (207, 0.5072, 1.0),
    ("scoring", "race or ethnicity", "y"): (103, 0.4854, 0.957),
    ("scoring", BOTH, "f & x"): (100, 0.3, 0.4),
    ("scoring", BOTH, "f & y"): (100, 0.5, 0.6667),
    ("scoring", BOTH, "m & x"): (100, 0.75, 1.0),
    ("scoring", BOTH, "m & y"): (3, 0.0, 0.0),
}


class TestAudit:
    def test_tables_of_decisions(self):
        found = audited(applicants())
        assert (found.verdict, found.exit_code(strict=True)) == ("not_asked", 0)
        assert lines(found) == SELECTED
        assert [table.n_unknown for table in found.bias_audit.tables] == [7, 4, 11]
        assert "the data hold no scores" in str(found)
        assert fa.from_dict(json.loads(json.dumps(found.to_dict()))) == found
        assert pickle.loads(pickle.dumps(found)) == found

    def test_tables_of_scores(self):
        assert lines(audited(applicants(), y_score="score")) == SELECTED | SCORED
        assert lines(audited(applicants(), y_pred=None, y_score="score")) == SCORED

    def test_counts_give_the_same_table(self):
        cells = fa.tabulate(applicants(), y_pred="hired", sensitive_features=["sex", "race"])
        found = fa.audit(data=cells, policy=PRESET, rng=1)
        assert lines(found) == SELECTED
        assert [table.n_unknown for table in found.bias_audit.tables] == [7, 4, 11]

    def test_the_favourable_decision_is_the_selection(self):
        words = applicants().with_columns(
            hired=pl.when(pl.col("hired") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))
        )
        yes = replace(PRESET, favourable="yes")
        assert lines(audited(words, policy=yes)) == SELECTED
        assert lines(audited(words, policy=replace(PRESET, favourable="no"))) != SELECTED

    def test_columns_with_other_names_are_named(self):
        data = applicants("group_1", "group_2")
        silent = audited(data, ("group_1", "group_2"))
        assert silent.bias_audit.tables == ()
        assert "missing: the tables with sex: no attribute is called so (group_1, " in str(silent)
        assert silent.exit_code(strict=True) == 0
        named = optioned(sex="group_1", race="group_2", date="2026-11-20", data="all of 2026")
        found = audited(data, ("group_1", "group_2"), named)
        assert lines(found) == SELECTED
        assert "  Bias audit of 2026-11-20. Data: all of 2026\n" in str(found)
        assert "missing: the date" not in str(found)

    @pytest.mark.parametrize("name", ["gender", "Applicant Sex", "sexAtBirth"])
    def test_names_that_say_so(self, name):
        found = audited(applicants(name, "ethnic_group"), (name, "ethnic_group"))
        assert lines(found) == SELECTED
        assert f"sex is column '{name}'; race or ethnicity is column 'ethnic_group'" in str(found)

    def test_one_attribute_has_one_table(self):
        found = audited(applicants(), ("sex",))
        assert {key[1] for key in lines(found)} == {"sex"}
        assert "missing: the tables with race or ethnicity: no attribute is called so" in str(found)

    def test_two_that_could_be_it(self):
        data = applicants().with_columns(gender="sex")
        found = audited(data, ("sex", "gender", "race"))
        assert "missing: the tables with sex: 'sex' and 'gender' could be it" in str(found)
        assert lines(audited(data, ("sex", "gender", "race"), optioned(sex="sex"))) == SELECTED

    def test_small_categories_are_left_out_with_number_rate_and_reason(self):
        found = audited(applicants(), policy=optioned(leave_out=True), y_score="score")
        frame = found.to_frame("impact_ratios").filter(pl.col("left_out"))
        assert frame["category"].to_list() == ["m & y", "m & y"]
        assert frame["n_applicants"].to_list() == [3, 3]
        assert frame["rate"].to_list() == [1 / 3, 0]
        assert frame["impact_ratio"].is_nan().all()
        assert set(frame["reason"]) == {"left out: fewer than 2 % of the people of this table"}
        line = next(line for line in str(found).splitlines() if line.startswith("  m & y  "))
        assert line.split()[3:5] == ["3", "0.333"]
        assert line.endswith("left out: fewer than 2 % of the people of this table")

    def test_bare_numbers_have_the_names_of_their_columns(self):
        data = applicants().with_columns(sex=(pl.col("sex") == "f").cast(pl.Int8))
        assert ("selection", "sex", "sex=1") in lines(audited(data))

    def test_scores_that_are_missing(self):
        data = applicants().with_columns(score=pl.when(pl.col("sex") == "f").then(pl.col("score")))
        found = audited(data, y_score="score")
        assert lines(found) == SELECTED
        assert "missing: scoring rates: y_score is nan in row" in str(found)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sex": "nope"}, "sex is 'nope', which is not a sensitive feature; accepted: 'sex'"),
            ({"sex": "race"}, "both read from 'race'. Name two attributes"),
        ],
    )
    def test_options_that_do_not_fit_the_data(self, options, message):
        with pytest.raises(DataError, match=message):
            audited(applicants(), policy=optioned(**options))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"gender": "x"}, "rule_options has 'gender'; accepted: 'sex', 'race', 'leave_out'"),
            ({"leave_out": "yes"}, "rule_options of 'leave_out' is 'yes'"),
            ({"sex": ""}, "rule_options of 'sex' is ''; accepted: a text, not empty"),
        ],
    )
    def test_options_that_there_are_not(self, options, message):
        with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
            optioned(**options)

    def test_other_rules_take_none(self):
        with pytest.raises(
            ArgumentError, match="'sex'; accepted: no options with the rule 'us_eeoc'"
        ):
            replace(fa.Policy.preset("us_eeoc"), rule_options={"sex": "x"})
        with pytest.raises(ArgumentTypeError, match="rule_options is 1; accepted: a table"):
            replace(PRESET, rule_options=1)


class TestCommand:
    @pytest.fixture
    def here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        applicants("group_1", "race").write_csv("people.csv")
        (tmp_path / "law.toml").write_text(
            "[policy]\npreset = 'nyc_ll144'\n"
            "rule_options = { sex = 'group_1', date = '2026-11-20', data = 'applications' }\n"
        )
        return tmp_path

    def run(self, *more, policy="law.toml"):
        given = ("people.csv", "-s", "group_1", "-s", "race", "--y-pred", "hired", "--seed", "1")
        arguments = ("audit", *given, "--y-score", "score", "--policy", policy, "--strict", *more)
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    def test_text(self, here):
        found = self.run()
        assert (found.exit_code, found.stderr) == (0, "")
        assert found.stdout.startswith("NOT ASKED. 314 rows;")
        rule = found.stdout.partition("What the rule says:\n")[2]
        for line in (
            "  Bias audit of 2026-11-20. Data: applications\n",
            "Selection rate by sex:\n",
            "  f                     200           0.200         0.498\n",
            "Scoring rate by race or ethnicity:\n",
            f"  {BOTH}: 11 applicants of unknown {BOTH} are in no line\n",
        ):
            assert line in rule
        assert "missing" not in rule

    def test_markdown(self, here):
        page = self.run("--format", "md").stdout
        assert "| race or ethnicity | number of applicants | scoring rate | impact ratio |" in page
        assert "| f | 200 | 0.200 | 0.498 |  |" in page
        assert "| f & x | 100 | 0.300 | 0.400 |  |" in page
        assert f"11 applicants of unknown {BOTH} are in no line" in page

    def test_json(self, here):
        content = json.loads(self.run("--format", "json").stdout)
        again = fa.from_dict(content)
        data = pl.read_csv("people.csv")
        policy = fa.Policy.load("law.toml")
        wanted = audited(data, ("group_1", "race"), policy, y_score="score")
        assert lines(again) == lines(wanted) == SELECTED | SCORED
        assert again.bias_audit == wanted.bias_audit
        assert [table["by"] for table in content["bias_audit"]["tables"]] == ["sex", RACE, BOTH] * 2

    def test_what_is_wrong_has_its_line(self, here):
        for old, new, message in (
            ("sex =", "gender =", "bad.toml, line 3: rule_options has 'gender'"),
            ("group_1", "nope", "sex is 'nope', which is not a sensitive feature"),
        ):
            text = (here / "law.toml").read_text()
            (here / "bad.toml").write_text(text.replace(old, new))
            found = self.run(policy="bad.toml")
            assert (found.exit_code, found.stdout) == (2, "")
            assert message in found.stderr
