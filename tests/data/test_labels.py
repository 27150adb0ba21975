"""Labels: categories in their order, intervals, periods, and missing values as a group."""

import copy
import pickle
import re

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.data.ranked_labels import MISSING, RankedLabel, rank_labels
from fairaudit_rs.data.tables import AuditTable

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

ORDER = ["small", "medium", "large"]
SIZES = ["large", "small", "medium", "small", None, "large"]
LABEL = [1, 0, 1, 1, 0, 1]
SORTED = (("small",), ("medium",), ("large",))


def by(column, **options):
    return fa.tabulate(y_true=LABEL, sensitive_features=column, **options)


def known(cells):
    return tuple(cells.group_sizes())


# -- order -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(SIZES, dtype=pd.CategoricalDtype(ORDER, ordered=True)),
        pd.Categorical(SIZES, ORDER, ordered=True),
        pl.Series(SIZES, dtype=pl.Enum(ORDER)),
    ],
    ids=["series", "categorical", "Enum"],
)
def test_ordered_categories_keep_their_order(column):
    cells = by(column)
    assert known(cells) == SORTED
    assert cells.n_missing == 1
    assert known(by(np.array(SIZES, dtype=object))) == (("large",), ("medium",), ("small",))


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow", "parquet"])
def test_ordered_categories_of_data_keep_their_order(kind, tmp_path):
    frame = pl.DataFrame({"y": LABEL, "size": pl.Series(SIZES, dtype=pl.Enum(ORDER))})
    data = frame
    if kind == "pandas":
        data = pd.DataFrame({"y": LABEL, "size": pd.Categorical(SIZES, ORDER, ordered=True)})
    elif kind == "lazy":
        data = frame.lazy()
    elif kind == "parquet":
        data = tmp_path / "sizes.parquet"
        frame.write_parquet(data)
    elif kind == "arrow":
        codes = pa.array([None if size is None else ORDER.index(size) for size in SIZES], pa.int8())
        sizes = pa.DictionaryArray.from_arrays(codes, ORDER, ordered=True)
        data = pa.table({"y": LABEL, "size": sizes})
    cells = fa.tabulate(data, y_true="y", sensitive_features="size")
    assert known(cells) == SORTED
    # Rows, not counts, go another way.
    rows = AuditTable.make(data=data, y_score="y", sensitive_features="size").rows(
        columns=["y_score"]
    )
    assert tuple(rows.cells.group_sizes()) == SORTED


def test_categories_without_an_order_are_sorted_by_their_text():
    for column in (pd.Categorical(SIZES, ORDER), pl.Series(SIZES, dtype=pl.Categorical)):
        assert known(by(column)) == (("large",), ("medium",), ("small",))


def test_numbers_are_sorted_by_their_value():
    assert known(by(pd.Categorical([1, 3, 2, 1, 3, 2], [3, 2, 1], ordered=True))) == (
        (1,),
        (2,),
        (3,),
    )


def test_unused_categories_are_no_groups():
    column = pd.Categorical(SIZES, ["huge", *ORDER], ordered=True)
    assert known(by(column)) == SORTED
    assert known(by(pl.Series(SIZES, dtype=pl.Enum(["huge", *ORDER])))) == SORTED


def test_intervals_of_cut_are_named_and_sorted_by_their_ends():
    age = pd.Series([25, 5, 105, 15, np.nan, 25])
    for column in (pd.cut(age, [0, 10, 20, 100, 200]), pd.cut(age, [0, 10, 20, 100, 200]).array):
        cells = by(column)
        assert known(cells) == (("(0, 10]",), ("(10, 20]",), ("(20, 100]",), ("(100, 200]",))
        assert cells.n_missing == 1
    plain = pd.arrays.IntervalArray.from_tuples([(100, 200), (0, 10), (20, 100)] * 2)
    for column in (plain, pd.Series(plain), list(plain)):
        assert known(by(column)) == (("(0, 10]",), ("(20, 100]",), ("(100, 200]",))


def test_periods_and_times_go_by_their_text():
    periods = pd.Series(pd.PeriodIndex(["2024-10", "2024-02", "2024-10"] * 2, freq="M"))
    assert known(by(periods)) == (("2024-02",), ("2024-10",))
    assert known(by(periods.astype("category"))) == (("2024-02",), ("2024-10",))
    moments = pd.Series(pd.to_datetime(["2024-10-01", "2024-02-01"] * 3))
    expected = (("2024-02-01 00:00:00",), ("2024-10-01 00:00:00",))
    assert known(by(moments)) == known(by(moments.astype("category"))) == expected
    assert len(known(by(moments.dt.tz_localize("UTC")))) == 2
    assert known(by(pd.Series(pd.to_timedelta([1, 2] * 3, unit="D")))) == (
        ("1 day, 0:00:00",),
        ("2 days, 0:00:00",),
    )


@pytest.mark.parametrize(
    ("values", "dtype", "groups"),
    [
        ([1, 2, None], "Int64", ((1,), (2,))),
        ([True, False, None], "boolean", ((False,), (True,))),
        (["b", "a", None], "string", (("a",), ("b",))),
        ([1.5, 2.0, None], "Float64", ((1.5,), (2,))),
    ],
)
def test_nullable_types(values, dtype, groups):
    cells = by(pd.array(values * 2, dtype=dtype))
    assert known(cells) == groups
    assert cells.n_missing == 2


def test_a_group_is_named_by_its_value_or_its_text():
    interval = pd.cut(pd.Series([1, 11, 2, 12, 3, 13]), [0, 10, 20])
    given = {"y_true": LABEL, "sensitive_features": interval, "metric": "base_rate", "rng": 1}
    first = fa.permutation_test(**given, reference="(0, 10]")
    again = fa.permutation_test(**given, reference=pd.Interval(0, 10))
    assert first == again
    assert list(first.group_sizes) == ["(10, 20]", "(0, 10]"]


def test_cells_of_parts_have_one_order_whatever_comes_first():
    parts = [
        by(pd.Categorical(SIZES, order, ordered=True))
        for order in (ORDER, ["medium", "small", "large"])
    ]
    plain = by(np.array(SIZES, dtype=object))
    for some in (parts, [plain, *parts], [parts[0], plain, parts[1]]):
        assert sum(some) == sum(some[::-1])
        assert repr(sum(some).groups) == repr(sum(some[::-1]).groups)
    assert known(parts[0] + plain) == SORTED


def test_cells_keep_their_order_in_files(tmp_path):
    cells = by(pd.Categorical(SIZES, ORDER, ordered=True))
    cells.write_parquet(tmp_path / "cells.parquet")
    again = fa.Cells.read_parquet(tmp_path / "cells.parquet")
    assert again == cells
    assert known(again) == SORTED


def test_ordered_labels_are_text():
    low, high = rank_labels(["low", "high"])
    assert low == "low"
    assert {low: 1}["low"] == 1
    for again in (copy.deepcopy(high), pickle.loads(pickle.dumps(high))):
        assert (again, again.rank, type(again)) == ("high", 1, RankedLabel)


# -- missing -----------------------------------------------------------------------------------

GROUP = ["a", None, "b", None, "a", "b"]
KINDS = {
    "text": (GROUP, ["a", "b"]),
    "numbers": ([1.0, np.nan, 2.0, np.nan, 1.0, 2.0], [1, 2]),
    "booleans": (pd.array([True, None, False, None, True, False], dtype="boolean"), [False, True]),
    "ordered": (pd.Categorical(GROUP, ["b", "a"], ordered=True), ["b", "a"]),
    "polars": (pl.Series(GROUP), ["a", "b"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_a_group_that_comes_last(kind):
    column, labels = KINDS[kind]
    cells = by(column, missing="own")
    assert cells.group_sizes() == {(label,): 2 for label in [*labels, "missing"]}
    assert cells.n_missing == 0
    assert by(column).n_missing == 2
    result = fa.permutation_test(
        LABEL, sensitive_features=column, metric="base_rate", missing="own", rng=1
    )
    assert list(result.group_sizes) == [*labels, "missing"]
    # Cells in which nobody asked for it know the rows as well.
    assert result == fa.permutation_test(data=by(column), metric="base_rate", missing="own", rng=1)
    assert result == fa.permutation_test(data=cells, metric="base_rate", rng=1)


def test_missing_group_in_every_function():
    rng = np.random.default_rng(0)
    n = 900
    group = rng.choice(np.array(["a", "b", None], dtype=object), n)
    score = rng.random(n)
    y_true, y_pred = rng.random(n) < 0.5, score >= 0.5
    given = {"sensitive_features": group, "missing": "own"}
    rates = {"y_pred": y_pred, "metric": "selection_rate", **given}
    threes = [
        fa.intervals(**rates, n_resamples=9).group_sizes,
        fa.equivalence_test(**rates, margin=0.2, n_resamples=9).group_sizes,
        fa.minimum_detectable_gap(**rates).group_sizes,
        fa.sample_size(0.1, **rates).group_sizes,
        fa.projection_test(y_true, y_score=score, **given).group_sizes,
        fa.extreme_test(
            y_score=score / 2, counterfactual_score=score, horizon=100, **given
        ).group_sizes,
    ]
    for sizes in threes:
        assert list(sizes) == ["a", "b", "missing"]
    report = fa.calibrate(**rates, n_audits=20, n_resamples=19)
    assert "missing" in report.group_sizes
    audit = fa.influence_audit(
        None, y_pred, X={"x": score}, target="missing", metric="selection_rate", n_draws=9, **given
    )
    assert audit.target == "missing"
    assert audit.n_missing == 0


def test_missing_strata_are_refused_or_a_stratum():
    region = ["n", None, "n", None, "s", "s"]
    group = list("ababab")
    given = {"sensitive_features": group, "strata": {"region": region}}
    message = re.escape(
        "strata column 'region' is missing (NaN or None) in 2 of 6 rows; leave these rows out or "
        "fill them in or make them strata of their own by missing='own'"
    )
    with pytest.raises(errors.DataError, match=message):
        fa.tabulate(y_true=LABEL, **given)
    own = fa.tabulate(y_true=LABEL, missing="own", **given)
    filled = ["n", "none", "n", "none", "s", "s"]
    other = fa.tabulate(y_true=LABEL, sensitive_features=group, strata={"region": filled})
    assert own.strata == (("n",), ("s",), ("missing",))
    assert sorted(own.count) == sorted(other.count)
    rng = np.random.default_rng(0)
    region = rng.choice(np.array(["n", "s", None], dtype=object), 300)
    given = {"sensitive_features": rng.choice(["a", "b"], 300), "rng": 1, "n_resamples": 99}
    filled = np.where(region == None, "z", region)  # noqa: E711
    for metric, column in (("selection_rate", "y_pred"), ("mean_prediction", "y_score")):
        given |= {"metric": metric, column: rng.integers(0, 2, 300)}
        own = fa.permutation_test(**given, strata=region, missing="own")
        assert own.pvalue == fa.permutation_test(**given, strata=filled).pvalue


@pytest.mark.parametrize("group", [GROUP, [1, None, 2, None, 1, 2]])
def test_cells_with_a_missing_group_keep_it(group, tmp_path):
    cells = by(group, missing="own")
    assert fa.Cells.from_frame(cells.to_frame()) == cells
    cells.write_parquet(tmp_path / "cells.parquet")
    again = fa.Cells.read_parquet(tmp_path / "cells.parquet")
    assert again == cells
    assert list(again.group_sizes()) == list(cells.group_sizes())
    assert (cells + cells).n_rows == 12
    with pytest.raises(errors.DataError, match="'group' has missing values that are a group"):
        _ = cells + by(group)
    counts = pl.DataFrame({"g": ["a", None], "n": [3, 4]})
    own = fa.Cells.from_frame(counts, sensitive_features="g", count="n", missing="own")
    assert own.group_sizes() == {("a",): 3, ("missing",): 4}


def test_a_value_of_that_name_beside_missing_ones():
    with pytest.raises(errors.DataError, match="a column holds 'missing' beside missing values"):
        by(["missing", None, "a", "a", "b", "b"], missing="own")
    plain = ["missing", "z", "a", "a", "b", "b"]
    # A label that is only called so has no place of its own.
    assert known(by(plain, missing="own")) == (("a",), ("b",), ("missing",), ("z",))


def test_none_names_the_missing_group():
    given = {"y_true": LABEL, "sensitive_features": GROUP, "metric": "base_rate", "missing": "own"}
    assert list(fa.permutation_test(**given, groups=["a", None]).group_sizes) == ["a", MISSING]
    assert fa.permutation_test(**given, reference=None).group_sizes.keys() == {"a", "b", MISSING}


def test_a_correlation_has_no_missing_group():
    with pytest.raises(errors.ArgumentError, match=r"missing is 'own', .* a correlation"):
        fa.permutation_test(
            y_score=[0.1, 0.2, 0.3], sensitive_features=[1.0, np.nan, 3.0], metric="pearson",
            missing="own",
        )  # fmt: skip


def test_missing_goes_with_groups_of_ones_own():
    with pytest.raises(errors.ArgumentTypeError, match="missing needs sensitive_features too"):
        fa.extreme_test(
            fa.LinearModel([1.0, 1.0]), [[0.0, 1.0], [1.0, 0.0]], attribute=1, missing="own"
        )
