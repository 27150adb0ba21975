"""Filters of rows as text."""

import datetime
import math

import polars as pl
import pytest

from fairaudit_rs.data.filters import parse_decision, row_filter
from fairaudit_rs.errors import ArgumentError, ColumnError

ROWS = pl.DataFrame(
    {
        "age": [17, 18, 30, None, 64],
        "score": [0.1, 0.7, float("nan"), None, 0.9],
        "sex": ["f", "m", None, "f", "m"],
        "marital status": ["single", "x", "married", "x", "single"],
        "old": [False, False, True, None, True],
        "day": [datetime.date(2024, 1, day) for day in (1, 2, 3, 4, 5)],
        "at": [datetime.datetime(2024, 1, day, 12) for day in (1, 2, 3, 4, 5)],
        "kind": pl.Series(["a", "b", "a", None, "b"], dtype=pl.Categorical),
        "not": [1, 2, 3, 4, 5],
    }
)


def kept(text, frame=ROWS):
    rows = frame.lazy().with_row_index("i").filter(row_filter(text, frame.schema))
    return rows.collect()["i"].to_list()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("age >= 18", [1, 2, 4]),
        ("age>=18 and age<64", [1, 2]),
        ("age = 18", [1]),
        ("age == 18.0", [1]),
        ("age != 18", [0, 2, 4]),
        ("age < 1000000000000000000000000000000000000 and age > -1e400", [0, 1, 2, 4]),
        ("age < -1 or age > 6.4e1", []),
        # NaN is missing: it is larger than any number to polars
        ("score > 0.5", [1, 4]),
        ("score is missing", [2, 3]),
        ("score IS NOT NULL", [0, 1, 4]),
        ("sex = f", [0, 3]),
        ("sex = 'f' or sex is missing", [0, 2, 3]),
        ("sex in (f, 'm') and age in (17, 64)", [0, 4]),
        ("sex not in ('f')", [1, 4]),
        ("not sex = 'f'", [1, 4]),
        # "and" before "or"; brackets before both
        ("age = 17 or age = 18 and sex = 'f'", [0]),
        ("(age = 17 or age = 18) and sex = 'm'", [1]),
        ("`marital status` = 'single'", [0, 4]),
        ('"marital status" = "single"', [0, 4]),
        ("old = true", [2, 4]),
        ("day > '2024-01-03'", [3, 4]),
        ("at >= '2024-01-04 13:00'", [4]),
        ("kind = 'a'", [0, 2]),
        ("`not` > 3", [3, 4]),
        ("not not age = 17", [0]),
    ],
)
def test_what_is_kept(text, wanted):
    assert kept(text) == wanted


def test_as_python_counts():
    """All of a grid of filters, evaluated by hand row by row."""
    for low in (0, 17, 18, 30):
        for word in ("f", "m"):
            found = kept(f"(age > {low} and not sex = {word}) or score < 0.5")
            wanted = []
            for i, row in enumerate(ROWS.iter_rows(named=True)):
                score = row["score"]
                first = None if row["age"] is None else row["age"] > low
                second = None if row["sex"] is None else row["sex"] != word
                third = None if score is None or math.isnan(score) else score < 0.5
                both = (
                    False
                    if False in (first, second)
                    else (None if None in (first, second) else True)
                )
                if both or third:
                    wanted.append(i)
            assert found == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'the end' comes where the name of a column is needed"),
        ("age", "'the end' follows column 'age', where a comparison is needed"),
        ("age >=", "'the end' comes where column 'age' needs a value to compare with"),
        ("age >= 18 sex", "'sex' follows a complete condition"),
        ("age >= 18 and", "'the end' comes where the name of a column is needed"),
        ("(age >= 18", "a bracket is not closed"),
        ("age in 18", "in needs values in brackets"),
        ("age in (18", "a bracket is not closed"),
        ("age => 18", "'>' comes where column 'age' needs a value"),
        ("age not 18", "'18' follows column 'age', where a comparison is needed"),
        ("age is old", "'old' follows 'age' is, where missing is needed"),
        ("age >= old", "'old' does not fit column 'age', which holds numbers"),
        ("sex = 1", r"column 'sex' holds text, and 1 is a number \('1' is text\)"),
        ("old = 1", "'1' does not fit column 'old', which holds true or false"),
        ("day > 'monday'", "'monday' does not fit column 'day', which holds dates"),
        ("age + 1 > 3", r"'\+ 1 > 3' is not understood"),
        ("age >= 18; drop", "'; drop' is not understood"),
        ("sex = 'f", "is not understood"),
        ("(" * 2_000 + "age = 1" + ")" * 2_000, "more than 50 parts are nested"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(ArgumentError, match=message):
        row_filter(text, ROWS.schema)


@pytest.mark.parametrize("text", ["agee >= 18", "__import__('os') = 1", "nope is missing"])
def test_columns_that_are_not_there(text):
    with pytest.raises(ColumnError, match=r"where names column .* data have: 'age', 'score'"):
        row_filter(text, ROWS.schema)


def test_a_decision():
    name, values = parse_decision("score=0.7", ROWS.schema)
    assert name == "score >= 0.7"
    assert ROWS.select(values).to_series().to_list() == [0, 1, None, None, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("score", "accepted: a column and a number"),
        ("score=high", "accepted: a column and a number"),
        ("score=nan", "accepted: a column and a number"),
        ("=0.5", "accepted: a column and a number"),
        ("nope=0.5", "names column 'nope', which does not exist; the data have"),
        ("sex=0.5", "holds String; accepted: numbers"),
    ],
)
def test_decisions_that_are_refused(text, message):
    with pytest.raises((ArgumentError, ColumnError), match=message):
        parse_decision(text, ROWS.schema)
