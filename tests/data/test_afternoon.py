"""A pandas user's afternoon: a book as people keep it, and the same from polars, Arrow, CSV."""

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
compose = pytest.importorskip("sklearn.compose")
linear_model = pytest.importorskip("sklearn.linear_model")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")
sklearn_metrics = pytest.importorskip("sklearn.metrics")

N = 1_200
GRADES = ["low", "middle", "high"]
#: Three rows are of a group that nobody thought of.
RARE = [17, 404, 900]


def make_book():
    rng = np.random.default_rng(11)
    age = rng.integers(18, 90, N).astype(float)
    age[rng.random(N) < 0.05] = np.nan
    grade = rng.choice(GRADES, N, p=[0.3, 0.4, 0.3]).astype(object)
    region = rng.choice(["north", "south"], N).astype(object)
    region[rng.random(N) < 0.1] = None
    region[RARE] = "island"
    repaid = rng.random(N) < 0.7
    score = np.clip(0.35 * repaid + rng.normal(0.35, 0.2, N), 0.01, 0.99).round(3)
    return pd.DataFrame(
        {
            "age": pd.cut(pd.Series(age), [17, 30, 60, 100]),
            "grade": pd.Categorical(grade, GRADES, ordered=True),
            "region": pd.array(region, dtype="string"),
            "month": pd.Series(pd.period_range("2024-01", periods=4, freq="M")[np.arange(N) % 4]),
            "visits": pd.array(np.where(np.arange(N) % 50 == 0, None, np.arange(N) % 3), "Int64"),
            "repaid": pd.array(repaid, dtype="boolean"),
            "score": score,
            "approved": (score >= 0.5).astype("int8"),
            "person": np.arange(N) // 2,
        }
    ).set_index(pd.Index(rng.permutation(N) + 5_000, name="customer"))


BOOK = make_book()


def plain_frame():
    """The book as polars keeps it: intervals and periods are text, categories an Enum."""
    # Beside missing values pandas gives intervals ends with a point: "(17.0, 30.0]".
    held = BOOK.assign(age=BOOK["age"].cat.rename_categories(str))
    texts = ("age", "month", "region")
    return pl.DataFrame(
        {
            **{n: [None if pd.isna(value) else str(value) for value in held[n]] for n in texts},
            "grade": pl.Series(BOOK["grade"].astype(str).to_list(), dtype=pl.Enum(GRADES)),
            "visits": [None if visit is pd.NA else int(visit) for visit in BOOK["visits"]],
            "repaid": BOOK["repaid"].astype(bool).to_list(),
            "score": BOOK["score"].to_numpy(),
            "approved": BOOK["approved"].to_numpy(),
            "person": BOOK["person"].to_numpy(),
        }
    )


@pytest.fixture(scope="module", params=["polars", "lazy", "arrow", "csv", "parquet", "mapping"])
def other(request, tmp_path_factory):
    """The same rows from elsewhere."""
    frame, place = plain_frame(), tmp_path_factory.mktemp("book")
    if request.param == "lazy":
        return frame.lazy()
    if request.param == "arrow":
        return frame.to_arrow()
    if request.param == "mapping":
        return frame.to_dict(as_series=False)
    if request.param == "csv":
        frame.write_csv(place / "book.csv")
        return str(place / "book.csv")
    if request.param == "parquet":
        frame.write_parquet(place / "book.parquet")
        return place / "book.parquet"
    return frame


LABELS = {"y_true": "repaid", "y_pred": "approved"}
AGES = ["(17, 30]", "(30, 60]", "(60, 100]"]
#: What is asked, with the groups in their order.
AUDITS = {
    "intervals of cut": ({"sensitive_features": "age", "metric": "tpr"}, AGES),
    "with the missing ones": (
        {"sensitive_features": "age", "metric": "tpr", "missing": "own"},
        [*AGES, "missing"],
    ),
    "ordered grades": ({"sensitive_features": "grade", "metric": "f1", "groups": GRADES}, GRADES),
    "months": (
        {"sensitive_features": "month", "metric": "accuracy"},
        ["2024-01", "2024-02", "2024-03", "2024-04"],
    ),
    "nullable whole numbers": ({"sensitive_features": "visits", "metric": "ppv"}, [0, 1, 2]),
    "strata with gaps": (
        {
            "sensitive_features": "age",
            "metric": "selection_rate",
            "strata": ["region", "visits"],
            "missing": "own",
        },
        [*AGES, "missing"],
    ),
    "a group of three rows": (
        {"sensitive_features": "region", "metric": "selection_rate"},
        ["island", "north", "south"],
    ),
    "rows": (
        {"sensitive_features": "age", "metric": "auc", "y_score": "score", "missing": "own"},
        [*AGES, "missing"],
    ),
    "clusters": (
        {
            "sensitive_features": "age",
            "metric": "selection_rate",
            "clusters": "person",
            "mixed_clusters": "split",
        },
        AGES,
    ),
}


def audited(data, name):
    asked, _ = AUDITS[name]
    return fa.permutation_test(data=data, **LABELS, **asked, rng=3, n_resamples=199)


@pytest.mark.parametrize("name", AUDITS)
def test_the_afternoon(name):
    found = audited(BOOK, name)
    groups = AUDITS[name][1]
    if groups is not None:
        assert list(found.group_sizes) == groups
    sizes = sum(found.group_sizes.values())
    assert sizes == N - found.n_missing
    if AUDITS[name][0].get("missing"):
        assert found.n_missing == 0
        assert found.group_sizes["missing"] == BOOK["age"].isna().sum()


@pytest.mark.parametrize("name", AUDITS)
def test_the_same_numbers_from_elsewhere(name, other):
    mine, theirs = audited(BOOK, name), audited(other, name)
    assert mine.group_sizes == theirs.group_sizes
    assert (mine.estimate, mine.statistic) == (theirs.estimate, theirs.statistic)
    assert mine.pvalue == theirs.pvalue or (np.isnan(mine.pvalue) and np.isnan(theirs.pvalue))
    for comparison, again in zip(mine.comparisons, theirs.comparisons, strict=True):
        assert {comparison.first, comparison.second} == {again.first, again.second}


def test_grades_come_in_their_order_where_it_is_known(other):
    order = list(
        fa.intervals(data=BOOK, **LABELS, sensitive_features="grade", metric="tpr").group_sizes
    )
    assert order == GRADES
    cells = fa.tabulate(other, y_true="repaid", sensitive_features="grade")
    knows = not (isinstance(other, str | dict))
    assert list(cells.group_sizes()) == [
        (grade,) for grade in (GRADES if knows else sorted(GRADES))
    ]


def test_a_group_of_three_rows_is_told_and_not_hidden():
    found = audited(BOOK, "a group of three rows")
    assert found.group_sizes["island"] == 3
    assert 0 < found.pvalue <= 1


def test_the_index_in_every_answer():
    assert not BOOK.index.is_monotonic_increasing
    moves = fa.projection_test(
        data=BOOK, y_true="repaid", y_score="score", sensitive_features="age"
    ).moves
    assert moves.index.tolist() == BOOK.index[moves.row].tolist()
    assert moves.to_frame()["index"].to_list() == moves.index.tolist()
    by_label = BOOK.loc[moves.index]
    assert ((by_label["score"] >= 0.5).astype(int) == moves.from_decision).all()


def test_series_of_other_rows_are_refused_and_arrays_are_not():
    approved = BOOK["score"] >= 0.5
    given = {"y_true": "repaid", "sensitive_features": "age", "metric": "tpr", "rng": 3}
    beside = fa.permutation_test(data=BOOK, y_pred=approved, **given)
    assert beside.pvalue == fa.permutation_test(data=BOOK, y_pred="approved", **given).pvalue
    assert beside.pvalue == fa.permutation_test(data=BOOK, y_pred=approved.array, **given).pvalue
    forgotten = approved.reset_index(drop=True)
    for wrong in (forgotten, approved.sort_index()):
        with pytest.raises(errors.DataError, match="the indices of data and y_pred differ"):
            fa.permutation_test(data=BOOK, y_pred=wrong, **given)


def test_a_fitted_pipeline_on_the_same_frame():
    book = BOOK.assign(known=BOOK["visits"].fillna(0).astype(int), place=BOOK["region"].fillna("-"))
    book["place"] = book["place"].astype(object)
    prepared = compose.ColumnTransformer(
        [
            ("numbers", preprocessing.StandardScaler(), ["score", "known"]),
            ("levels", preprocessing.OneHotEncoder(), ["place"]),
        ]
    )
    fitted = pipeline.make_pipeline(prepared, linear_model.LogisticRegression()).fit(
        book, book["repaid"].astype(int)
    )
    distances = fa.models.adapt(fitted).distance(book)
    assert (distances.decisions == (fitted.predict(book) == 1)).all()
    decided = pd.Series(fitted.predict(book), index=book.index)
    found = fa.projection_test(
        book["repaid"], decided, distance=distances, sensitive_features=book["grade"]
    )
    assert list(found.group_sizes) == GRADES
    by_function = fa.permutation_test(
        book["repaid"], decided, sensitive_features=book["grade"], rng=1,
        metric=sklearn_metrics.recall_score,
    )  # fmt: skip
    by_name = fa.permutation_test(
        book["repaid"], decided, sensitive_features=book["grade"], rng=1, metric="tpr"
    )
    assert by_function == by_name
