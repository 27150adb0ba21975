"""From the arguments of the lens to the discrimination of each group."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, ColumnError, DataError
from fairaudit_rs.extremes.question import ExtremeArguments
from fairaudit_rs.report.notes import Note

from ..reference import extremes as reference
from .designs import by_row, labels, people, pipeline


def pose(progress=None, **arguments):
    return ExtremeArguments(**arguments).pose(progress)


@pytest.fixture(scope="module")
def frame():
    return people()


@pytest.fixture(scope="module")
def fitted(frame):
    return pipeline(frame, labels(frame))


@pytest.fixture(scope="module")
def columns(frame, fitted):
    """The two scores of a flip of sex, and groups, as columns of data."""
    flipped = frame.assign(sex=np.where(frame.sex == "man", "woman", "man"))
    return {
        "s": fitted.predict_proba(frame)[:, 1],
        "t": fitted.predict_proba(flipped)[:, 1],
        "sex": frame.sex.tolist(),
        "race": frame.race.tolist(),
    }


ROAD = {"y_score": [0.1, 0.2], "counterfactual_score": [0.3, 0.1], "sensitive_features": [0, 1]}


def half(X):
    return np.full(len(X), 0.5)


# --- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"model": half}, ArgumentTypeError, "model cannot be combined with y_score and counter"),
        ({"X": [[1]]}, ArgumentTypeError, "X cannot be combined with y_score"),
        ({"attribute": 0}, ArgumentTypeError, "attribute cannot be combined with y_score"),
        ({"flip": "a"}, ArgumentTypeError, "flip cannot be combined with y_score"),
        ({"pos_label": 1}, ArgumentTypeError, "pos_label cannot be combined with y_score"),
        ({"y_score": None}, ArgumentError, "counterfactual_score needs y_score too. Pass both"),
        ({"counterfactual_score": None}, ArgumentError, "y_score needs counterfactual_score too"),
        ({"sensitive_features": None}, ArgumentTypeError, "sensitive_features is missing"),
        ({"sensitive_features": [1, 1]}, DataError, "only one group: group is '1' in every row"),
        ({"sensitive_features": [1]}, DataError, "the columns differ in length"),
        ({"y_score": [0.1, np.nan]}, DataError, "y_score is nan in row 1 and missing or infinite"),
        ({"counterfactual_score": [None, 0.1]}, DataError, "counterfactual_score is nan in row 0"),
        ({"y_score": [0.1, 1.2]}, DataError, r"y_score is 1\.2 in row 1 and not from 0 to 1 in 1"),
        ({"counterfactual_score": [-1, 0]}, DataError, "counterfactual_score is -1 in row 0"),
        ({"y_score": ["a", "b"]}, ArgumentTypeError, "y_score holds text; accepted: numbers"),
        ({"y_score": "s"}, ArgumentTypeError, "To name a column, pass data= too"),
        ({"groups": [0, 2]}, DataError, "groups names 2, which is no group of the data"),
        ({"groups": [0]}, DataError, "only one group"),
        ({"reference": 3}, DataError, "reference names 3, which is no group of the data"),
        ({"upper": 0}, ArgumentError, "upper is 0; accepted: a finite number above 0"),
        ({"upper": "rows"}, ArgumentError, "upper is 'rows'; accepted: .* None .* or 'row' for"),
        ({"upper": np.inf}, ArgumentError, "upper is inf"),
        ({"upper": 0.15}, DataError, r"discrimination in row 0 is 0\.2, above upper, 0\.15"),
    ],
)
def test_scores_that_are_none(changed, error, message):
    with pytest.raises(error, match=message):
        pose(**ROAD | changed)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"model": None}, ArgumentError, "model is None. Pass model, X and attribute, or"),
        ({"X": None}, ArgumentError, "X is None. Pass model, X and attribute, or"),
        ({"attribute": None}, ArgumentError, "attribute is None. Pass the column of X"),
        ({"attribute": "gender"}, ColumnError, "attribute is 'gender', which is no column of X"),
        ({"data": {"a": [1]}}, ArgumentTypeError, "data cannot be combined with model. Pass"),
        ({"sensitive_features": [1, 2]}, DataError, "sensitive_features has 2 rows; X has 600"),
        ({"groups": ["man"]}, DataError, "only one group"),
        ({"flip": "man"}, DataError, "no counterfactual for the rows of group 'man'"),
        ({"attribute": "race", "flip": "a", "reference": "a"}, DataError, "rows of group 'a'"),
        ({"attribute": "race", "flip": "a", "groups": ["a", "b"]}, DataError, "rows of group 'a'"),
        ({"pos_label": 1}, ArgumentTypeError, "pos_label is 1 and model is a function"),
        (
            {"attribute": None, "flip": lambda X, level: X},
            ArgumentError,
            "attribute is None. Pass .* sensitive_features=",
        ),
    ],
)
def test_models_that_cannot_be_asked(frame, changed, error, message):
    with pytest.raises(error, match=message):
        pose(**{"model": half, "X": frame, "attribute": "sex"} | changed)


def test_nothing_at_all():
    with pytest.raises(ArgumentError, match=r"model and y_score are None\. Pass model, X"):
        pose(sensitive_features=[1, 2])


def test_counts_have_no_tail():
    cells = fa.tabulate(y_pred=[0, 1], sensitive_features=[0, 1])
    with pytest.raises(ArgumentTypeError, match="data is a Cells object, which holds counts"):
        pose(data=cells, y_score="s", counterfactual_score="t", sensitive_features="g")


# --- known values and reference ---------------------------------------------------------------


def test_two_columns_by_hand():
    question = pose(
        y_score=[0.25, 0.5, 0.75, 0.5],
        counterfactual_score=[0.5, 0.25, 0.75, 1.0],
        sensitive_features=["w", "m", "w", "w"],
    )
    men, women = question.groups
    assert (men.name, women.name) == ("m", "w")
    assert men.discrimination.tolist() == [-0.25]
    assert women.discrimination.tolist() == [0.25, 0.0, 0.5]
    assert women.score.tolist() == [0.25, 0.75, 0.5]
    assert women.rows.tolist() == [0, 2, 3]
    assert question.group_sizes == {"m": 1, "w": 3}
    assert (question.n_rows, question.n_missing, question.n_flips) == (4, 0, 1)
    assert (question.features, question.attribute) == (("group",), None)
    assert (question.pairs, question.upper, question.notes) == (((0, 1),), 1.0, ())


def test_the_groups_are_those_of_a_permutation_test(columns):
    y = np.arange(600) % 2
    for arguments in ({}, {"reference": "man"}, {"reference": "woman"}):
        test = fa.permutation_test(
            y, y, sensitive_features=columns["sex"], metric="selection_rate", rng=1, **arguments
        )
        question = pose(
            y_score=columns["s"],
            counterfactual_score=columns["t"],
            sensitive_features=columns["sex"],
            **arguments,
        )
        first, second = (question.groups[place].name for place in question.pairs[0])
        assert (first, second) == (test.comparisons[0].first, test.comparisons[0].second)


def test_pairs_of_more_than_two_groups(columns):
    given = {name: columns[name] for name in ("s", "t")}
    arguments = {
        "y_score": given["s"],
        "counterfactual_score": given["t"],
        "sensitive_features": columns["race"],
    }
    assert pose(**arguments).pairs == ((0, 1), (0, 2), (1, 2))
    against = pose(**arguments, reference="a")
    assert [group.name for group in against.groups] == ["b", "c", "a"]
    assert against.pairs == ((0, 2), (1, 2))
    some = pose(**arguments, groups=["c", "a"])
    assert [group.name for group in some.groups] == ["c", "a"]
    assert some.n_rows == sum(race != "b" for race in columns["race"])


def test_the_two_roads_meet(frame, fitted, columns):
    asked = pose(model=fitted, X=frame, attribute="sex")
    given = pose(
        y_score=columns["s"],
        counterfactual_score=columns["t"],
        sensitive_features={"sex": columns["sex"]},
    )
    wanted = reference.discrimination(columns["s"], columns["t"])
    assert np.array_equal(by_row(given, 600), wanted)
    assert by_row(asked, 600) == pytest.approx(wanted, abs=1e-14)
    assert asked.group_sizes == given.group_sizes
    assert asked.features == given.features == ("sex",)
    assert (asked.attribute, given.attribute) == ("sex", None)
    assert asked.n_scored == 2 * len(frame.drop_duplicates())
    assert given.n_scored == 0


def test_an_upper_end_of_each_row(columns):
    question = pose(
        y_score=columns["s"],
        counterfactual_score=columns["t"],
        sensitive_features=columns["sex"],
        upper="row",
    )
    assert question.upper == "row"
    for group in question.groups:
        shares, n_zero = reference.row_shares(group.discrimination, 1 - group.score)
        assert n_zero == 0
        assert shares.max() <= 1


def test_scores_on_another_scale_have_no_known_end():
    question = pose(
        y_score=[300, 700.0],
        counterfactual_score=[650, 650],
        sensitive_features=[0, 1],
        upper=None,
    )
    assert [group.discrimination.tolist() for group in question.groups] == [[350.0], [-50.0]]


# --- properties -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow", "dict", "parquet", "csv"])
def test_columns_of_data_of_every_kind(columns, kind, tmp_path):
    table = pl.DataFrame(columns)
    table.write_parquet(tmp_path / "a.parquet")
    table.write_csv(tmp_path / "a.csv")
    data = {
        "pandas": lambda: pd.DataFrame(columns),
        "polars": lambda: table,
        "lazy": table.lazy,
        "arrow": table.to_arrow,
        "dict": lambda: columns,
        "parquet": lambda: tmp_path / "a.parquet",
        "csv": lambda: str(tmp_path / "a.csv"),
    }[kind]()
    question = pose(
        data=data, y_score="s", counterfactual_score="t", sensitive_features=["sex", "race"]
    )
    wanted = np.subtract(columns["t"], columns["s"])
    assert np.array_equal(by_row(question, 600), wanted)
    assert question.features == ("sex", "race")
    assert question.groups[0].name == ("man", "a")


def test_a_column_that_the_data_do_not_have(columns):
    with pytest.raises(ColumnError, match="column 'u' does not exist"):
        pose(data=columns, y_score="s", counterfactual_score="u", sensitive_features="sex")
    with pytest.raises(ArgumentTypeError, match="counterfactual_score is a float; with data="):
        pose(data=columns, y_score="s", counterfactual_score=0.5, sensitive_features="sex")


def test_an_array_beside_data(columns):
    given = {"data": columns, "y_score": "s", "sensitive_features": "sex"}
    named, beside = (pose(**given, counterfactual_score=name) for name in ("t", columns["t"]))
    assert np.array_equal(by_row(named, 600), by_row(beside, 600))


def test_other_groups_than_the_levels(frame, fitted):
    """The attribute says what is flipped, sensitive_features who is looked at."""
    question = pose(model=fitted, X=frame, attribute="sex", sensitive_features="race")
    assert question.features == ("race",)
    assert question.attribute == "sex"
    array = pose(model=fitted, X=frame, attribute="sex", sensitive_features=frame.race)
    assert question.group_sizes == array.group_sizes
    assert np.array_equal(by_row(question, 600), by_row(array, 600))


def test_rows_without_a_group_are_left_out(columns):
    sex = [None if i % 10 == 0 else value for i, value in enumerate(columns["sex"])]
    question = pose(y_score=columns["s"], counterfactual_score=columns["t"], sensitive_features=sex)
    assert (question.n_missing, question.n_rows) == (60, 540)
    assert [str(note) for note in question.notes] == [
        "60 rows have no value of group and belong to no group"
    ]


def test_one_level_for_all(frame, fitted):
    question = pose(model=fitted, X=frame, attribute="race", flip="b")
    n_rows = int((frame.race == "b").sum())
    assert [group.name for group in question.groups] == ["a", "c"]
    text = f"{n_rows} rows with race b have no flip and are left out"
    assert question.notes == (Note("rows-without-flip", text, ("b",)),)
    others = pose(model=fitted, X=frame, attribute="race", flip="b", sensitive_features="sex")
    assert others.n_rows == 600 - n_rows
    before = fitted.predict_proba(frame)[:, 1]
    wanted = fitted.predict_proba(frame.assign(race="b"))[:, 1] - before
    wanted[frame.race == "b"] = np.nan
    np.testing.assert_allclose(by_row(others, 600), wanted, rtol=0, atol=1e-14)


def test_a_level_of_the_other_two_may_be_the_reference(frame, fitted):
    question = pose(model=fitted, X=frame, attribute="race", flip="b", reference="a")
    assert [group.name for group in question.groups] == ["c", "a"]


def test_a_map_of_descendants(frame, fitted):
    """The user's own map moves income with sex."""

    def flip(X, sex):
        man = sex == "man"
        return X.assign(
            sex=np.where(man, "woman", "man"), income=X.income + np.where(man, -0.2, 0.2)
        )

    question = pose(model=fitted, X=frame, attribute="sex", flip=flip)
    before = fitted.predict_proba(frame)[:, 1]
    after = fitted.predict_proba(flip(frame, frame.sex.to_numpy()))[:, 1]
    assert by_row(question, 600) == pytest.approx(after - before, abs=1e-14)


def test_a_map_by_place_of_the_row_is_followed(frame):
    """Rows that are alike in X may have other counterfactuals."""
    shift = np.arange(600) % 3 / 10
    X = frame[["sex", "married"]].assign(x=0.25)
    question = pose(
        model=lambda X: X.x.to_numpy(),
        X=X,
        attribute="sex",
        flip=lambda X, level: X.assign(x=X.x + shift),
    )
    assert by_row(question, 600) == pytest.approx(shift)


def test_a_map_without_the_attribute(frame):
    """A model that does not see the attribute, and a map of what descends from it."""
    X = frame[["age", "income"]]

    def flip(X, group):
        return X.assign(income=X.income + np.where(group == "woman", 0.5, -0.5))

    def model(X):
        return 1 / (1 + np.exp(-X.income.to_numpy()))

    question = pose(model=model, X=X, flip=flip, sensitive_features={"sex": frame.sex})
    wanted = model(flip(X, frame.sex.to_numpy())) - model(X)
    assert by_row(question, 600) == pytest.approx(wanted)
    assert question.attribute is None
    several = pose(
        model=model,
        X=X,
        flip=lambda X, group: flip(X, group["sex"]),
        sensitive_features={"sex": frame.sex, "race": frame.race},
    )
    assert by_row(several, 600) == pytest.approx(wanted)
    assert len(several.groups) == 6


def test_a_model_that_ignores_the_attribute_says_so(frame):
    model = pipeline(frame, labels(frame))
    blind = frame.assign(sex="man")
    question = pose(
        model=lambda X: model.predict_proba(X.assign(sex="man"))[:, 1], X=frame, attribute="sex"
    )
    assert question.nothing_changes
    assert "the model ignores sex: no flip changes a score" in question.notes[-1].text
    assert not pose(model=model, X=frame, attribute="sex").nothing_changes
    with pytest.raises(DataError, match="attribute 'sex' is 'man' in every row of X"):
        pose(model=model, X=blind, attribute="sex")


def test_differences_that_are_equal_but_for_rounding_are_ties():
    rng = np.random.default_rng(0)
    before, after = rng.integers(0, 101, (2, 5_000))
    score, flipped = before / 100, after / 100
    plain = reference.discrimination(score, flipped)
    assert len(np.unique(plain)) > 201
    question = pose(
        y_score=score, counterfactual_score=flipped, sensitive_features=np.arange(5_000) % 2
    )
    found = by_row(question, 5_000)
    assert len(np.unique(found)) == len(np.unique(after - before))
    assert np.abs(found - plain).max() < 1e-15
    assert (found[before == after] == 0).all()


def test_a_difference_of_rounding_alone_is_0():
    score = np.array([0.3, 0.7, 0.1, 0.9])
    question = pose(
        y_score=score, counterfactual_score=np.nextafter(score, 1), sensitive_features=list("abab")
    )
    assert question.nothing_changes


def test_small_differences_that_are_more_than_rounding_stay():
    score = np.full(1_000, 0.5)
    question = pose(
        y_score=score,
        counterfactual_score=score + np.arange(1_000) * 1e-12,
        sensitive_features=np.arange(1_000) % 2,
    )
    assert len(np.unique(by_row(question, 1_000))) == 1_000


def test_equal_columns_say_so():
    question = pose(**ROAD | {"counterfactual_score": ROAD["y_score"]})
    assert question.nothing_changes
    assert question.notes == (Note("equal-scores", "the two scores are the same in every row"),)


def test_the_order_of_rows_changes_no_bit(frame, fitted):
    order = np.random.default_rng(2).permutation(600)
    for attribute in ("sex", "race", ["sex", "married"]):
        question = pose(model=fitted, X=frame, attribute=attribute)
        moved = pose(model=fitted, X=frame.iloc[order], attribute=attribute)
        assert np.array_equal(by_row(question, 600)[order], by_row(moved, 600))
        assert question.notes == moved.notes


def test_swapping_labels_swaps_groups(frame, fitted, columns):
    names = {"man": "zz", "woman": "aa"}
    question = pose(
        y_score=columns["s"], counterfactual_score=columns["t"], sensitive_features=columns["sex"]
    )
    swapped = pose(
        y_score=columns["s"],
        counterfactual_score=columns["t"],
        sensitive_features=[names[value] for value in columns["sex"]],
    )
    first, second = question.groups
    assert np.array_equal(swapped.groups[0].discrimination, second.discrimination)
    assert np.array_equal(swapped.groups[1].discrimination, first.discrimination)


def test_progress_is_of_rows_scored(frame, fitted):
    seen = []
    pose(lambda done, total: seen.append((done, total)), model=fitted, X=frame, attribute="sex")
    total = 2 * len(frame.drop_duplicates())
    assert seen == [(total, total)]
