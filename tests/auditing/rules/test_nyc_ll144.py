"""Local Law 144: impact ratios to the most selected category, and no verdict."""

import math

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs.auditing.rules.nyc_ll144 import above_median, bias_audit, impact_table
from fairaudit_rs.errors import ArgumentError, DataError

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
    return bias_audit(
        counts, date="2026-11-20", source="applications", is_unknown=unknown, **options
    )


def ratios(table):
    return {one.category: one.impact_ratio for one in table.categories}


class TestKnownValues:
    def test_the_published_example(self):
        table = impact_table(BY_SEX, by="sex", kind="scoring")
        assert [round(one.rate, 3) for one in table.categories] == [0.259, 0.619]
        assert ratios(table)["Female"] == pytest.approx(0.419, abs=5e-4)
        assert ratios(table)["Male"] == 1
        race = {group: pair for group, pair in BY_RACE.items() if group != "Asian-Pac-Islander"}
        table = impact_table(race, by="race", kind="scoring")
        assert ratios(table)["Black"] == pytest.approx(0.593, abs=5e-4)
        small = {one.category: round(100 * one.share, 1) for one in table.categories if one.small}
        assert set(small) == {"Amer-Indian-Eskimo", "Other"}

    def test_categories_under_2_percent(self):
        kept = impact_table(BY_RACE, by="race")
        left = impact_table(BY_RACE, by="race", leave_out=True)
        by_name = {one.category: one for one in left.categories}
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
        assert not any(one.small for one in table.categories)

    def test_three_tables_and_those_who_are_unknown(self):
        sex, race, both = audit().tables
        assert (sex.n_unknown, race.n_unknown, both.n_unknown) == (7, 4, 11)
        assert {one.category: one.n_applicants for one in sex.categories} == {"f": 200, "m": 107}
        assert {one.category: one.n_applicants for one in race.categories} == {"x": 207, "y": 103}
        assert ratios(both) == pytest.approx(
            {("f", "x"): 0.25, ("f", "y"): 0.75, ("m", "x"): 1.0, ("m", "y"): 1 / 1.2}
        )

    def test_nobody_known_and_nobody_selected(self):
        sex, race, _ = audit({("?", "x"): (1, 2), ("?", "y"): (0, 2)}).tables
        assert (sex.categories, sex.n_unknown) == ((), 4)
        assert ratios(race)["y"] == 0
        table = impact_table({"a": (0, 5), "b": (0, 9)}, by="x")
        assert {one.reason for one in table.categories} == {"nobody is selected"}
        assert all(math.isnan(one.impact_ratio) for one in table.categories)

    def test_all_categories_are_small(self):
        many = dict.fromkeys(range(60), (1, 1))
        assert set(ratios(impact_table(many, by="x", leave_out=True)).values()) == {1.0}

    def test_scoring_is_strictly_above_the_median_of_all(self):
        scores = [0.1, 0.5, 0.5, 0.5, 0.9]
        assert above_median(scores).tolist() == [False, False, False, False, True]
        # At least the median is the broken variant: four of five would be above.
        assert above_median([1, 2, 3, 4]).tolist() == [False, False, True, True]
        with pytest.raises(DataError, match="scores are missing or empty"):
            above_median([0.1, np.nan])


class TestPublished:
    def test_there_is_no_verdict(self):
        one = audit()
        text = one.to_markdown()
        assert one.verdict == "not_asked"
        assert "nothing here passes or fails" in text
        assert "0.8 " not in text
        assert "Not in this table: 11 people of unknown sex and race or ethnicity." in text
        assert "| f & x | 100 | 0.100 | 0.250 |  |" in text

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
    with pytest.raises(DataError, match="counts has the group 'f'; accepted: pairs of sex and"):
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
    assert {one.category: one.n_applicants for one in sex.categories} == {
        "Female": 10_771,
        "Male": 21_790,
    }
    assert ratios(sex)["Female"] == pytest.approx(1179 / 10771 / (6662 / 21790))
    assert {one.category: round(100 * one.rate, 2) for one in race.categories} == {
        "White": 25.59, "Black": 12.39, "Asian-Pac-Islander": 26.56,
        "Amer-Indian-Eskimo": 11.58, "Other": 9.23,
    }  # fmt: skip
    assert {one.category for one in race.categories if one.small} == {"Amer-Indian-Eskimo", "Other"}
    assert sum(one.small for one in both.categories) >= 4
