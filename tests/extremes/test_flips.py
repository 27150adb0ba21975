"""How rows become their counterfactuals: levels of the attribute, forms of X, the user's map."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, ColumnError, DataError
from fairaudit_rs.extremes.attribute import read_attribute
from fairaudit_rs.extremes.distinct_rows import find_distinct_rows
from fairaudit_rs.extremes.feature_tables import wrap_features
from fairaudit_rs.extremes.flips import flips_of, mapped_flips

from .designs import one_hot, people


def every(table):
    return np.arange(table.n_rows, dtype=np.int64)


def flipped(X, attribute, flip=None):
    """All counterfactuals of all rows."""
    table = wrap_features(X)
    flips = flips_of(flip, table, read_attribute(attribute, table))
    return [flips.flipped_rows(at, every(table)) for at in range(flips.n_flips)]


def names_of_levels(X, attribute):
    return [
        key if len(key) > 1 else key[0] for key in read_attribute(attribute, wrap_features(X)).keys
    ]


TOY = {"sex": ["m", "f", "m"], "x": [1.0, 2.0, 3.0]}
ONE_HOT = pd.DataFrame(
    {"race_a": [1, 0, 0, 0], "race_b": [0, 1, 0, 0], "x": [0, 0, 1, 1], "old": [0, 0, 0, 1]}
)


# --- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "attribute", "error", "message"),
    [
        (TOY, "age", ColumnError, "attribute is 'age', which is no column of X .* 'sex', 'x'"),
        (TOY, 1.5, ArgumentTypeError, r"attribute is 1\.5; accepted: the name or position"),
        (TOY, True, ArgumentTypeError, "attribute is True; accepted"),
        (TOY, {"sex"}, ArgumentTypeError, "attribute is a set; accepted"),
        (TOY, {"a": None}, ArgumentTypeError, "attribute is a NoneType; accepted"),
        (TOY, "", ColumnError, "attribute is '', which is no column of X"),
        (TOY, [], ArgumentError, "attribute is empty"),
        (TOY, {}, ArgumentError, "attribute is empty"),
        (TOY, [["sex"], []], ArgumentError, "attribute has an empty list of columns"),
        (TOY, ["sex", "sex"], ArgumentError, "names a column twice"),
        ({"sex": ["m", "m"]}, "sex", DataError, "'sex' is 'm' in every row .* at least two levels"),
        ({"sex": ["m", None]}, "sex", DataError, "'sex' is missing in 1 of 2 rows"),
        ({"sex": [0.0, np.nan]}, "sex", DataError, "'sex' is missing in 1 of 2 rows"),
        (np.eye(3), "sex", ArgumentTypeError, "contains the name 'sex'"),
        (np.eye(3), 3, ArgumentError, "contains 3; accepted: positions from 0 to 2"),
        (np.eye(3), -1, ArgumentError, "contains -1; accepted: positions from 0 to 2"),
        (ONE_HOT, ["race_a", "old"], ArgumentError, "one one-hot attribute or several attr"),
        (ONE_HOT, [["x", "old"]], DataError, r"2 are at their higher value in row 3"),
        (people(), [["age", "income"]], DataError, "more than two distinct values"),
        ({"race_a": [1, 1], "race_b": [0, 1]}, "race", DataError, "2 are at their higher value"),
    ],
)
def test_an_attribute_that_is_none(X, attribute, error, message):
    with pytest.raises(error, match=message):
        read_attribute(attribute, wrap_features(X))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros(3), ArgumentError, "X has 1 dimensions; accepted: a two-dimensional array"),
        (np.zeros((0, 2)), DataError, "X has 2 columns and 0 rows; accepted: at least one row"),
        ({}, DataError, "X has 0 columns; accepted: at least one row and one column"),
        ({"a": 3}, ArgumentTypeError, "column 'a' of X is a int; accepted: a column, one value"),
        ({"a": [1], "b": [1, 2]}, DataError, "columns of X differ in length: a 1, b 2"),
        (pl.LazyFrame({"a": [1]}), ArgumentTypeError, "X is a LazyFrame. Collect it first"),
        (np.ma.masked_array(np.eye(2)), ArgumentTypeError, "X is a masked array"),
        ([[1, 2], [3]], ArgumentTypeError, "X cannot become an array"),
        ("file.csv", ArgumentTypeError, "X is a str; accepted: a two-dimensional array"),
        (np.zeros((2, 2), dtype="M8[s]"), ArgumentTypeError, "X has dtype datetime64"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), DataError, "columns with the same name"),
    ],
)
def test_features_that_are_none(X, error, message):
    with pytest.raises(error, match=message):
        wrap_features(X)


def test_sparse_features_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(ArgumentTypeError, match=r"X is sparse. Pass .* X.toarray\(\)"):
        wrap_features(sparse.csr_matrix(np.eye(2)))


@pytest.mark.parametrize(
    ("flip", "error", "message"),
    [
        ("d", DataError, "flip names 'd', which is no group of the data; groups: 'a', 'b', 'c'"),
        ({"a": "d"}, DataError, "flip names 'd'"),
        ({"a": "a"}, ArgumentError, "flip maps 'a' to itself. Map each level to"),
        ({"a": ["b", "b"]}, ArgumentError, "accepted: other levels, each once"),
        ({"a": []}, ArgumentError, r"flip maps 'a' to \[\]; accepted"),
        ({}, ArgumentError, "flip is empty"),
        (["a"], ArgumentTypeError, r"flip is \['a'\]; accepted: None, a level, a dict"),
    ],
)
def test_flips_that_are_none(flip, error, message):
    table = wrap_features(people())
    with pytest.raises(error, match=message):
        flips_of(flip, table, read_attribute("race", table))


def test_a_continuous_attribute_is_not_tried_at_every_value():
    table = wrap_features(people())
    with pytest.raises(DataError, match=r"'age' has 52 levels; accepted: at most 50\. Group"):
        flips_of(None, table, read_attribute("age", table))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda X: X.to_numpy(), "the result of flip is a ndarray; accepted: a DataF"),
        (lambda X: X.iloc[1:], "result of flip has 599 rows; .* with 600 rows and 5 columns"),
        (lambda X: X.drop(columns="age"), "the result of flip has 4 columns"),
        (lambda X: X[X.columns[::-1]], "result of flip has the columns 'income'"),
        (lambda X: [X, X.iloc[1:]], "result 2 of flip has 599 rows"),
        (lambda X: [], "flip returns an empty list"),
    ],
)
def test_a_map_that_gives_other_rows_than_given(made, message):
    with pytest.raises(DataError, match=message):
        mapped_flips(lambda X, level: made(X), wrap_features(people()), None)


# --- known values -----------------------------------------------------------------------------


def test_binary_levels_take_the_other_one():
    assert flipped(TOY, "sex") == [{"sex": ["f", "m", "f"], "x": [1.0, 2.0, 3.0]}]
    (found,) = flipped(np.array([[-0.73, 5.0], [1.37, 6.0], [1.37, 7.0]]), 0)
    assert found.tolist() == [[1.37, 5.0], [-0.73, 6.0], [-0.73, 7.0]]
    (found,) = flipped(pd.DataFrame({"old": [True, False], "x": [1, 2]}), "old")
    assert found.old.tolist() == [False, True]
    assert found.old.dtype == bool


def test_each_other_level_is_tried():
    found = flipped({"race": ["a", "b", "c"]}, "race")
    assert [value["race"] for value in found] == [["b", "c", "a"], ["c", "a", "b"]]


def test_levels_by_dict_and_by_level():
    X = {"race": ["a", "b", "c"]}
    assert [
        value["race"] for value in flipped(X, "race", {"a": ["b", "c"], "b": "a", "c": "a"})
    ] == [
        ["b", "a", "a"],
        ["c", "a", "a"],
    ]
    table = wrap_features(X)
    flips = flips_of("a", table, read_attribute("race", table))
    assert flips.has_counterfactual.tolist() == [False, True, True]
    assert flips.flipped_rows(0, np.array([1, 2]))["race"] == ["a", "a"]
    [note] = flips.notes
    assert note.text == "1 rows with race a have no flip and are left out"
    partly = flips_of({"b": "c"}, table, read_attribute("race", table))
    assert partly.has_counterfactual.tolist() == [False, True, False]
    assert partly.n_different == 1


def test_the_largest_of_several_is_named():
    table = wrap_features(people())
    flips = flips_of(None, table, read_attribute("race", table))
    assert flips.n_different == 2
    assert "largest over up to 2 other levels of race" in flips.notes[0].text
    same = flips_of({"a": "b", "b": "c", "c": "a"}, table, read_attribute("race", table))
    assert same.notes == ()


def test_one_hot_columns_by_prefix_by_list_and_by_dict():
    X = pd.DataFrame({"race_a": [1, 0, 0], "race_b": [0, 1, 0], "race_c": [0, 0, 1], "x": 0})
    for attribute in ("race", ["race_a", "race_b", "race_c"], {"race": list(X.columns[:3])}):
        assert read_attribute(attribute, wrap_features(X)).names == ("race",)
        assert names_of_levels(X, attribute) == ["a", "b", "c"]
        first, second = flipped(X, attribute)
        assert first.to_numpy().tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]]
        assert second.to_numpy().tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]]


def test_one_hot_columns_without_one_level():
    """The level that has no column is called none, and its rows are low in all columns."""
    X = ONE_HOT[["race_a", "race_b"]]
    assert names_of_levels(X, "race") == ["a", "b", "none"]
    to_none = flipped(X, "race")[1].iloc[0]
    assert to_none.tolist() == [0, 0]
    assert names_of_levels(X.iloc[:2], "race") == ["a", "b"]
    assert names_of_levels(X.rename(columns={"race_b": "race_none"}), "race") == [
        "(none)",
        "a",
        "none",
    ]


def test_scaled_one_hot_columns_move_between_their_own_values():
    X = one_hot(people(), scaled=True)
    (found,) = flipped(X, "sex")
    for column in ("sex_man", "sex_woman"):
        low, high = np.sort(X[column].unique())
        assert np.array_equal(found[column] == high, X[column] == low)
    assert found.drop(columns=["sex_man", "sex_woman"]).equals(
        X.drop(columns=["sex_man", "sex_woman"])
    )


def test_a_one_hot_column_of_one_value_is_no_level():
    X = pd.DataFrame({"race_a": [1, 0], "race_b": [0, 1], "race_c": [0, 0]})
    assert names_of_levels(X, "race") == ["a", "b"]
    (found,) = flipped(X, "race")
    assert found.to_numpy().tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "object", "bool[pyarrow]"])
def test_one_hot_columns_of_every_type(dtype):
    X = pd.DataFrame({"race_a": [1, 0, 0], "race_b": [0, 1, 0], "x": [7, 8, 9]})
    X = X.astype({"race_a": dtype, "race_b": dtype})
    found = flipped(X, "race")[0]
    assert names_of_levels(X, "race") == ["a", "b", "none"]
    assert found.astype(int).to_numpy().tolist() == [[0, 1, 7], [0, 0, 8], [1, 0, 9]]
    assert (found.dtypes == X.dtypes).all()
    X.loc[1, "race_b"] = None
    with pytest.raises(DataError, match="more than two distinct values"):
        names_of_levels(X, "race")


def test_several_attributes_flip_together():
    X = people()
    assert names_of_levels(X, ["sex", "married"])[:2] == [("man", False), ("man", True)]
    first = flipped(X, ["sex", "married"])[0]
    both = list(zip(X.sex, X.married, strict=True))
    order = sorted(set(both))
    wanted = [order[(order.index(row) + 1) % 4] for row in both]
    assert list(zip(first.sex, first.married, strict=True)) == wanted


def test_a_list_with_a_prefix_or_a_list_in_it_is_of_several_attributes():
    X = one_hot(people(), scaled=True)
    for attribute in (["sex", "race"], [["sex_man", "sex_woman"], "race"]):
        found = read_attribute(attribute, wrap_features(X))
        assert found.names == ("sex", "race")
        assert len(found.keys) == 6


def test_columns_that_are_both_high_in_a_row_are_several_attributes():
    assert names_of_levels(ONE_HOT, ["x", "old"]) == [(0, 0), (1, 0), (1, 1)]


def test_columns_that_could_be_either_are_named():
    X = wrap_features(ONE_HOT)
    as_one = read_attribute({"kind": ["race_a", "old"]}, X)
    assert as_one.names == ("kind",)
    as_two = read_attribute({"a": "race_a", "old": "old"}, X)
    assert as_two.names == ("a", "old")
    assert (
        "count as the levels of one attribute"
        in read_attribute(["race_a", "race_b"], X).notes[0].text
    )


# --- properties -------------------------------------------------------------------------------


def as_forms(frame):
    """A frame in every form that X may have, text and all."""
    plain = frame.astype({"race": str})
    return {
        "pandas": frame,
        "polars": pl.DataFrame(plain).with_columns(pl.col("race").cast(pl.Categorical)),
        "arrow": pa.Table.from_pandas(frame, preserve_index=False),
        "dict": {name: plain[name].tolist() for name in plain},
        "dict of series": {name: frame[name] for name in frame},
        "objects": plain.to_numpy(dtype=object),
    }


def as_lists(X):
    if isinstance(X, dict):
        return [list(column) for column in X.values()]
    if isinstance(X, np.ndarray):
        return X.T.tolist()
    if isinstance(X, pa.Table):
        return [column.to_pylist() for column in X.columns]
    return [list(X[name]) for name in X.columns]


@pytest.mark.parametrize("kind", list(as_forms(people(5))))
def test_a_flip_keeps_the_form(kind):
    frame = people()
    X = as_forms(frame)[kind]
    attribute = 1 if kind == "objects" else "race"
    for found, wanted in zip(flipped(X, attribute), flipped(frame, "race"), strict=True):
        assert type(found) is type(X)
        assert as_lists(found) == as_lists(wanted)
        if kind in ("pandas", "polars", "arrow"):
            types = {"pandas": "dtypes", "polars": "schema", "arrow": "schema"}[kind]
            assert (getattr(found, types) == getattr(X, types)) is True or all(
                getattr(found, types) == getattr(X, types)
            )
    assert as_lists(X) == as_lists(as_forms(people())[kind]), "X itself was changed"


def test_tensors_stay_tensors():
    X = torch.tensor(one_hot(people(), scaled=True).to_numpy(), dtype=torch.float32)
    X.requires_grad_(True)
    (found,) = flipped(X, [3, 4])
    (wanted,) = flipped(X.detach().numpy(), [3, 4])
    assert found.dtype == torch.float32
    assert np.array_equal(found.numpy(), wanted)


def test_flipping_twice_changes_nothing():
    X = one_hot(people(), scaled=True)
    (once,) = flipped(X, "sex")
    (twice,) = flipped(once, "sex")
    pd.testing.assert_frame_equal(twice, X)


def test_levels_are_seen_whatever_the_order_of_rows():
    X = people()
    order = np.random.default_rng(5).permutation(len(X))
    for once, again in zip(flipped(X, "race"), flipped(X.iloc[order], "race"), strict=True):
        pd.testing.assert_frame_equal(once.iloc[order], again)


def test_a_map_may_change_what_it_is_given():
    X = people()
    before = X.copy()

    def both(X, level):
        X["sex"] = np.where(level == "man", "woman", "man")
        other = X.copy()
        other["income"] += 1
        return [X, other]

    table = wrap_features(X)
    levels = read_attribute("sex", table).levels_of_rows()
    flips = mapped_flips(both, table, levels)
    pd.testing.assert_frame_equal(X, before)
    assert flips.n_flips == 2
    assert (flips.flipped_rows(0, every(table)).sex.to_numpy() != X.sex.to_numpy()).all()


def test_maps_that_give_the_same_count_once():
    flips = mapped_flips(lambda X, level: [X, X.copy()], wrap_features(people()), None)
    assert flips.n_flips == 1


def test_levels_of_several_attributes_go_to_a_map_by_name():
    table = wrap_features(people())
    levels = read_attribute(["sex", "married"], table).levels_of_rows()
    assert levels["sex"].tolist() == table.given.sex.tolist()
    assert levels["married"].tolist() == table.given.married.tolist()


# --- rows that are alike ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(as_forms(people(5))))
def test_rows_that_are_alike_are_found_in_every_form(kind):
    frame = people(400)[["sex", "race", "age", "married", "income"]]
    frame["age"] //= 30
    frame["income"] = np.sign(frame.income)
    twice = pd.concat([frame, frame], ignore_index=True)
    table = wrap_features(as_forms(twice)[kind])
    found = find_distinct_rows([table], every(table))
    assert len(found.first) == len(frame.drop_duplicates())
    shown = twice.astype(str).agg("|".join, axis=1).to_numpy()
    assert (shown[found.first[found.distinct_of_row]] == shown).all()


def test_their_order_does_not_depend_on_that_of_the_rows():
    X = people(3_000)
    order = np.random.default_rng(3).permutation(len(X))
    table, moved = wrap_features(X), wrap_features(X.iloc[order])
    first = X.iloc[find_distinct_rows([table], every(table)).first]
    again = X.iloc[order].iloc[find_distinct_rows([moved], every(moved)).first]
    pd.testing.assert_frame_equal(first.reset_index(drop=True), again.reset_index(drop=True))


def test_columns_that_change_places_are_other_rows():
    table = wrap_features(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    assert len(find_distinct_rows([table], every(table)).first) == 2
