"""Tables: roles of columns, rows collapsed to cells, and every place that rows come from."""

import datetime
import decimal
import itertools
import pickle
import re
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairaudit_rs as fa
from fairaudit_rs import errors

FEW = settings(deadline=None, max_examples=25, derandomize=True, database=None)

LABEL = [1, 0, 1, 1]
DECISION = [1, 0, 0, 1]
GROUP = ["a", "a", "b", "b"]
FRAME = pl.DataFrame({"y": LABEL, "p": DECISION, "g": GROUP})
GOOD_CSV = "y,p,g\n1,1,a\n0,0,a\n1,0,b\n1,1,b\n"


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow")


def labels_by(features, **options):
    """Cells of four rows with the labels of LABEL."""
    return fa.tabulate(y_true=LABEL, sensitive_features=features, **options)


def of_frame(data, **changes):
    arguments = {"y_true": "y", "y_pred": "p", "sensitive_features": "g"} | changes
    return fa.tabulate(data, **arguments)


def as_dict(cells):
    """Every cell as (group, stratum, label, decision, bin): (rows, sum of scores)."""
    strata = cells.strata or ((),)
    return {
        (cells.groups[g], strata[s], int(y), int(p), int(b)): (int(n), int(total))
        for g, s, y, p, b, n, total in zip(
            cells.group,
            cells.stratum,
            cells.y_true,
            cells.y_pred,
            cells.score_bin,
            cells.count,
            cells.score_sum,
            strict=True,
        )
    }


def same(left, right):
    """Assert equal cells whose labels have equal types as well (True == 1 in Python)."""
    assert left == right
    assert repr(left.groups) == repr(right.groups)
    assert repr(left.strata) == repr(right.strata)


def one_line(caught):
    assert "\n" not in str(caught.value).strip()


class TestArguments:
    def refused(self, error, message, *args, **kwargs):
        with pytest.raises(error, match=message) as caught:
            fa.tabulate(*args, **kwargs)
        assert isinstance(caught.value, errors.FairAuditError)
        one_line(caught)
        return caught.value

    # -- arrays ------------------------------------------------------------------------------

    def test_lengths_that_differ_are_listed(self):
        self.refused(
            errors.DataError,
            "differ in length: y_true 4, y_pred 3, y_score 2, sex 4, region 5",
            y_true=LABEL,
            y_pred=[0, 1, 1],
            y_score=[0.5, 0.5],
            sensitive_features={"sex": GROUP},
            strata={"region": [1, 2, 3, 4, 5]},
        )

    def test_no_rows(self):
        self.refused(
            errors.DataError, "no rows", y_true=[], y_pred=[], sensitive_features=np.array([])
        )
        self.refused(errors.DataError, "no rows", y_true=[], sensitive_features=[])

    @pytest.mark.parametrize("features", [{}, np.empty((4, 0)), pl.DataFrame()])
    def test_no_attribute(self, features):
        self.refused(
            errors.ArgumentError,
            "sensitive_features has no columns",
            y_true=LABEL,
            sensitive_features=features,
        )

    def test_no_attribute_name(self):
        self.refused(
            errors.ArgumentError,
            "sensitive_features",
            FRAME,
            y_true="y",
            sensitive_features=[],
        )

    @pytest.mark.parametrize("role", ["y_true", "y_pred", "y_score", "sensitive_features"])
    def test_text_in_place_of_an_array(self, role):
        arguments = {"y_true": LABEL, "sensitive_features": GROUP} | {role: "income"}
        self.refused(
            errors.ArgumentTypeError, rf"{role} is the text 'income'\. .* data=", **arguments
        )

    def test_text_as_strata(self):
        self.refused(
            errors.ArgumentTypeError,
            r"strata is the text 'region'\. .* data=",
            y_true=LABEL,
            sensitive_features=GROUP,
            strata="region",
        )

    @pytest.mark.parametrize(
        "value", [b"1011", 1, 3.5, {1, 0}, {"y": 1}, iter(LABEL), None, np.float64(1)]
    )
    def test_not_a_column(self, value):
        if value is None:
            self.refused(
                errors.ArgumentTypeError, "sensitive_features is missing", sensitive_features=None
            )
        else:
            self.refused(
                errors.ArgumentTypeError,
                "y_true .*accepted: a column, one value per row",
                y_true=value,
                sensitive_features=GROUP,
            )

    def test_rows_of_different_lengths(self):
        self.refused(
            errors.ArgumentTypeError,
            "y_true is not a column",
            y_true=[[1], [1, 2], 1, 1],
            sensitive_features=GROUP,
        )

    @pytest.mark.parametrize("role", ["y_true", "y_pred", "y_score"])
    @pytest.mark.parametrize("shape", [(4, 2), (4, 2, 2)])
    def test_two_dimensions(self, role, shape):
        self.refused(
            errors.ArgumentTypeError,
            f"{role} has {len(shape)} dimensions; accepted: a column",
            **({"y_true": LABEL} | {role: np.zeros(shape, dtype=int)}),
            sensitive_features=GROUP,
        )

    def test_three_dimensions_of_attributes(self):
        self.refused(
            errors.ArgumentTypeError,
            "sensitive_features .*3 dimensions",
            y_true=LABEL,
            sensitive_features=np.zeros((4, 2, 2)),
        )

    def test_frame_as_labels(self, pd):
        for frame in (pd.DataFrame({"y": LABEL, "z": LABEL}), FRAME.select("y", "p")):
            self.refused(errors.ArgumentTypeError, "y_true", y_true=frame, sensitive_features=GROUP)

    @pytest.mark.parametrize("values", [["a", 1, "b", 2], [1, "a", 2, "b"]])
    def test_mixed_types(self, values, pd):
        message = "g'? mixes values of types int, str; accepted: one type"
        self.refused(
            errors.ArgumentTypeError, message, y_true=LABEL, sensitive_features={"g": values}
        )
        self.refused(
            errors.ArgumentTypeError,
            message,
            pd.DataFrame({"y": LABEL, "g": values}),
            y_true="y",
            sensitive_features="g",
        )

    def test_mixed_types_in_a_mapping(self):
        self.refused(
            errors.ArgumentTypeError,
            "g.* mixes values of types int, str",
            {"y": LABEL, "g": ["a", 1, "b", 2]},
            y_true="y",
            sensitive_features="g",
        )

    def test_mixed_labels(self):
        self.refused(
            errors.ArgumentTypeError,
            "y_true mixes values of types int, str",
            y_true=[1, "0", 1, 0],
            sensitive_features=GROUP,
        )

    @pytest.mark.parametrize(
        "values",
        [
            np.array(LABEL, dtype=complex),
            np.zeros(4, dtype=[("a", "i4")]),
            np.array([object(), object(), object(), object()]),
        ],
    )
    def test_values_that_are_no_labels(self, values):
        self.refused(
            errors.ArgumentTypeError, "y_true .*accepted", y_true=values, sensitive_features=GROUP
        )

    @pytest.mark.parametrize("value", [0, -3, 5000])
    def test_thread_count(self, value):
        self.refused(
            errors.ArgumentError,
            "n_threads is .*accepted: a whole number from 1",
            y_true=LABEL,
            sensitive_features=GROUP,
            n_threads=value,
        )

    # -- labels and decisions ----------------------------------------------------------------

    @pytest.mark.parametrize(
        ("values", "shown"),
        [
            ([1, 2, 1, 2], "1, 2"),
            ([-1, 1, 1, 1], "-1, 1"),
            (["y", "n", "y", "n"], "'y', 'n'|'n', 'y'"),
            (["1", "0", "1", "0"], "'0', '1'|'1', '0'"),
            ([0, 1, 2, 1], "0, 1, 2"),
        ],
    )
    @pytest.mark.parametrize("role", ["y_true", "y_pred"])
    def test_other_labels_hint_at_pos_label(self, role, values, shown):
        message = f"{role} holds ({shown}); accepted: 0/1 or booleans.*pos_label"
        self.refused(errors.DataError, message, **{role: values}, sensitive_features=GROUP)
        frame = pl.DataFrame({"v": values, "g": GROUP})
        # The order in which a frame shows the values is free.
        message = f"{role} holds .*; accepted: 0/1 or booleans.*pos_label"
        self.refused(errors.DataError, message, frame, **{role: "v"}, sensitive_features="g")

    @pytest.mark.parametrize("role", ["y_true", "y_pred"])
    @pytest.mark.parametrize(
        "values",
        [
            [1, None, 0, 1],
            [1.0, np.nan, 0.0, 1.0],
            np.array([1, np.nan, 0, 1], dtype=np.float32),
            [True, None, False, True],
            np.array([1, None, 0, 1], dtype=object),
            pl.Series([1, None, 0, 1]),
            pl.Series([1.0, float("nan"), 0.0, 1.0]),
            np.ma.array(LABEL, mask=[0, 1, 0, 0]),
            np.ma.array([True, False, True, True], mask=[0, 1, 0, 0]),
        ],
    )
    def test_missing_labels_are_counted(self, role, values):
        message = re.escape(f"{role} is missing (NaN or None) in 1 of 4 rows")
        self.refused(errors.DataError, message, **{role: values}, sensitive_features=GROUP)

    def test_missing_labels_of_frames_are_counted(self, pd):
        values = [1, None, 0, None, 1]
        group = list("aabbb")
        message = re.escape("y_true is missing (NaN or None) in 2 of 5 rows")
        for data in (
            pl.DataFrame({"y": values, "g": group}),
            pl.LazyFrame({"y": [1.0, float("nan"), 0.0, None, 1.0], "g": group}),
            pd.DataFrame({"y": values, "g": group}),
            pd.DataFrame({"y": pd.array(values, dtype="Int64"), "g": group}),
        ):
            self.refused(errors.DataError, message, data, y_true="y", sensitive_features="g")

    def test_missing_labels_with_pos_label(self):
        self.refused(
            errors.DataError,
            "y_true is missing .* in 1 of 4 rows",
            y_true=["y", None, "n", "y"],
            sensitive_features=GROUP,
            pos_label="y",
        )

    def test_all_labels_missing(self):
        self.refused(
            errors.DataError,
            "y_true is missing .* in 4 of 4 rows",
            y_true=[None] * 4,
            sensitive_features=GROUP,
        )

    def test_missing_rows_have_thousands_separators(self):
        values = np.full(12_000, np.nan)
        values[:1_000] = 1
        self.refused(
            errors.DataError,
            "in 11,000 of 12,000 rows",
            y_true=values,
            sensitive_features=np.arange(12_000) % 2,
        )

    @pytest.mark.parametrize("n_rows", [4, 1_000])
    def test_scores_as_decisions(self, n_rows):
        rng = np.random.default_rng(1)
        label, score = rng.integers(0, 2, n_rows), rng.random(n_rows)
        group = np.arange(n_rows) % 2
        message = "y_pred .*scores belong in y_score"
        self.refused(
            errors.DataError, message, y_true=label, y_pred=score, sensitive_features=group
        )
        data = pl.DataFrame({"y": label, "p": score, "g": group})
        self.refused(
            errors.DataError, message, data, y_true="y", y_pred="p", sensitive_features="g"
        )

    @pytest.mark.parametrize(
        ("values", "pos_label"),
        [
            (["y", "n", "y", "n"], "z"),
            (["1", "2", "1", "2"], 2),
            ([1, 2, 1, 2], "3"),
            ([1, 2, 1, 2], 3),
            ([1, 0, 1, 0], float("nan")),
        ],
    )
    def test_pos_label_that_does_not_occur(self, values, pos_label):
        self.refused(
            errors.ArgumentError,
            re.escape(f"pos_label is {pos_label!r}, which does not occur"),
            y_true=values,
            sensitive_features=GROUP,
            pos_label=pos_label,
        )

    # -- groups and strata -------------------------------------------------------------------

    @pytest.mark.parametrize("kind", [np.int64, np.float64, "U8", "S8", object])
    def test_too_many_groups(self, kind):
        self.refused(
            errors.TooManyValuesError,
            "sensitive_features 'postcode' has more than 1,000 distinct values. .*fewer classes",
            sensitive_features={"postcode": np.arange(1_001).astype(kind)},
        )

    def test_too_many_groups_in_a_frame(self):
        value = self.refused(
            errors.TooManyValuesError,
            "sensitive_features 'postcode' has more than 1,000 distinct values",
            pl.DataFrame({"postcode": np.arange(1_001)}),
            sensitive_features="postcode",
        )
        assert isinstance(value, errors.DataError)

    def test_a_thousand_groups_are_accepted(self):
        group = np.arange(1_000)
        assert len(fa.tabulate(sensitive_features=group).groups) == 1_000
        frame = pl.DataFrame({"g": group})
        assert len(fa.tabulate(frame, sensitive_features="g").groups) == 1_000

    def test_too_many_strata(self):
        self.refused(
            errors.TooManyValuesError,
            "strata 'id' has more than 100,000 distinct values",
            sensitive_features=np.arange(100_001) % 2,
            strata={"id": np.arange(100_001)},
        )

    @pytest.mark.parametrize("values", [["x", None, "x", "z"], [1.0, np.nan, 1.0, 2.0]])
    def test_missing_strata(self, values):
        message = re.escape("strata column 'region' is missing (NaN or None) in 1 of 4 rows")
        self.refused(
            errors.DataError,
            message,
            y_true=LABEL,
            sensitive_features=GROUP,
            strata={"region": values},
        )
        frame = FRAME.with_columns(region=pl.Series(values))
        self.refused(
            errors.DataError,
            message,
            frame,
            y_true="y",
            sensitive_features="g",
            strata="region",
        )

    def test_one_name_for_two_arrays(self, pd):
        sex, age = ["f", "m", "f", "m"], ["x", "x", "z", "z"]
        for features in (
            [pd.Series(sex, name="attribute"), pd.Series(age, name="attribute")],
            [pl.Series("attribute", sex), pl.Series("attribute", age)],
        ):
            self.refused(
                errors.ArgumentError, "'attribute'", y_true=LABEL, sensitive_features=features
            )

    def test_one_name_after_conversion_to_text(self):
        self.refused(
            errors.ArgumentError,
            "'1'",
            y_true=LABEL,
            sensitive_features={1: GROUP, "1": ["x", "z", "x", "z"]},
        )

    # -- scores ------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "bins",
        [
            0,
            -1,
            1.5,
            True,
            "ten",
            10**9,
            [],
            [0.5],
            [0, 0],
            [1, 0],
            [0, np.nan, 1],
            [0, np.inf],
            [[0, 1], [1, 2]],
            [False, True],
        ],
    )
    def test_score_bins(self, bins):
        self.refused(
            (errors.ArgumentError, errors.ArgumentTypeError),
            "score_bins is .*; accepted: a (whole )?number",
            y_true=LABEL,
            y_score=[0.1, 0.2, 0.3, 0.4],
            sensitive_features=GROUP,
            score_bins=bins,
        )

    @pytest.mark.parametrize(
        ("bad", "shown"), [(1.4, r"1\.4"), (-0.4, r"-0\.4"), (np.nan, "nan"), (np.inf, "inf")]
    )
    def test_scores_outside(self, bad, shown):
        score = [0.1, 0.2, bad, 0.4]
        message = (
            r"^y_score is missing or not between 0 and 1 in 1 of 4 rows "
            rf"\(for example {shown}\); accepted: scores within score_bins$"
        )
        self.refused(
            errors.DataError, message, y_true=LABEL, y_score=score, sensitive_features=GROUP
        )
        self.refused(
            errors.DataError,
            message,
            FRAME.with_columns(s=pl.Series(score)),
            y_true="y",
            y_score="s",
            sensitive_features="g",
        )

    def test_scores_outside_own_edges(self):
        self.refused(
            errors.DataError,
            r"not between 0 and 0\.7 in 1 of 4 rows \(for example 0\.9\)",
            y_score=[0.1, 0.2, 0.7, 0.9],
            sensitive_features=GROUP,
            score_bins=[0, 0.5, 0.7],
        )

    def test_missing_scores(self):
        for score in ([0.1, None, 0.3, 0.4], np.ma.array([0.1, 0.2, 0.3, 0.4], mask=[0, 1, 0, 0])):
            self.refused(
                (errors.ArgumentError, errors.DataError),
                "y_score is (NaN|missing)",
                y_score=score,
                sensitive_features=GROUP,
            )

    def test_text_as_scores(self):
        self.refused(
            errors.ArgumentTypeError,
            "y_score holds text; accepted: numbers",
            y_score=GROUP,
            sensitive_features=GROUP,
        )
        self.refused(
            errors.ArgumentTypeError,
            "y_score column 'g' holds .*; accepted: numbers",
            FRAME,
            y_score="g",
            sensitive_features="g",
        )

    # -- data= -------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "changes",
        [
            {"y_true": "nope"},
            {"y_pred": "nope"},
            {"y_score": "nope"},
            {"sensitive_features": ["g", "nope"]},
            {"strata": "nope"},
        ],
    )
    def test_missing_column(self, changes, pd, pa, tmp_path):
        FRAME.write_csv(tmp_path / "rows.csv")
        FRAME.write_parquet(tmp_path / "rows.parquet")
        for data in (
            FRAME,
            FRAME.lazy(),
            FRAME.to_dict(as_series=False),
            pd.DataFrame({"y": LABEL, "p": DECISION, "g": GROUP}),
            pa.table({"y": LABEL, "p": DECISION, "g": GROUP}),
            tmp_path / "rows.csv",
            tmp_path / "rows.parquet",
        ):
            arguments = {"y_true": "y", "sensitive_features": "g"} | changes
            value = self.refused(
                errors.ColumnError,
                "^column 'nope' does not exist; the data have: 'y', 'p', 'g'$",
                data,
                **arguments,
            )
            assert isinstance(value, errors.DataError)
            assert isinstance(value, KeyError)

    def test_column_names_that_are_numbers(self, pd):
        data = pd.DataFrame({0: LABEL, 1: GROUP})
        expected = fa.tabulate(y_true=LABEL, sensitive_features={"1": GROUP})
        same(fa.tabulate(data, y_true="0", sensitive_features="1"), expected)

    @pytest.mark.parametrize("data", [42, np.zeros((3, 3)), [], [1, 2], object()])
    def test_data_of_another_type(self, data):
        self.refused(
            errors.ArgumentTypeError,
            "data is a .*; accepted: a polars, pandas or Arrow frame",
            data,
            y_true="y",
            sensitive_features="g",
        )

    def test_cells_are_not_tabulated_again(self):
        value = self.refused(
            errors.ArgumentTypeError,
            "data is a Cells",
            labels_by(GROUP),
            y_true="y",
            sensitive_features="group",
        )
        assert not re.search("accepted:.*Cells", str(value))

    def test_mapping_of_different_lengths(self):
        self.refused(
            errors.DataError,
            "length|height",
            {"y": LABEL, "g": GROUP[:3]},
            y_true="y",
            sensitive_features="g",
        )

    def test_frames_without_rows(self, pd, pa, tmp_path):
        empty = FRAME.head(0)
        empty.write_parquet(tmp_path / "empty.parquet")
        for data in (empty, empty.lazy(), empty.to_pandas(), tmp_path / "empty.parquet"):
            self.refused(errors.DataError, "no rows", data, y_true="y", sensitive_features="g")

    def test_repeated_names(self):
        for role in ("sensitive_features", "strata"):
            arguments = {"y_true": "y", "sensitive_features": "g"} | {role: ["g", "g"]}
            self.refused(
                errors.ArgumentError, f"{role} is .* a column is named twice", FRAME, **arguments
            )

    def test_duplicate_columns_of_pandas(self, pd):
        data = pd.DataFrame([[1, "a", "b"]] * 4, columns=["y", "g", "g"])
        self.refused(errors.ArgumentTypeError, "'g'", data, y_true="y", sensitive_features="g")

    def test_duplicate_columns_of_a_pandas_frame_of_attributes(self, pd):
        features = pd.DataFrame([["a", "b"]] * 4, columns=["g", "g"])
        self.refused(
            (errors.ArgumentError, errors.DataError),
            "'g'",
            y_true=LABEL,
            sensitive_features=features,
        )

    def test_duplicate_columns_of_arrow(self, pa):
        data = pa.table([pa.array(LABEL), pa.array(GROUP), pa.array(GROUP)], ["y", "g", "g"])
        self.refused(errors.DataError, "'?g'?", data, y_true="y", sensitive_features="g")

    @pytest.mark.parametrize(
        "values",
        [
            [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 2,
            [datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)] * 2,
            [decimal.Decimal("1.5"), decimal.Decimal("2.5")] * 2,
        ],
        ids=["date", "datetime", "decimal"],
    )
    def test_other_types_mean_the_same_in_arrays_and_frames(self, values):
        """Either all are refused, by name, or all are accepted and alike."""
        outcomes = []
        for call in (
            lambda: fa.tabulate(y_true=LABEL, sensitive_features={"since": values}),
            lambda: fa.tabulate(
                y_true=LABEL, sensitive_features={"since": pl.Series("since", values)}
            ),
            lambda: fa.tabulate(
                pl.DataFrame({"y": LABEL, "since": values}), y_true="y", sensitive_features="since"
            ),
        ):
            try:
                outcomes.append(call())
            except errors.ArgumentTypeError as error:
                assert "since" in str(error)  # noqa: PT017 (either outcome may come)
                outcomes.append("refused")
        assert outcomes[0] == outcomes[1] == outcomes[2]

    def test_lists_as_groups(self):
        self.refused(
            errors.ArgumentTypeError,
            "g.* holds List.*; accepted: numbers, booleans, text",
            pl.DataFrame({"y": LABEL, "g": [[1], [2], [1], [2]]}),
            y_true="y",
            sensitive_features="g",
        )

    # -- files -------------------------------------------------------------------------------

    def refused_file(self, message, path, error=errors.DataError):
        return self.refused(error, message, path, y_true="y", y_pred="p", sensitive_features="g")

    LONG = "1,1,a,9\n"
    SHORT = "1,1\n"

    @pytest.mark.parametrize(
        "text",
        [
            GOOD_CSV + LONG,
            GOOD_CSV.replace("0,0,a\n", "0,0,a,9\n"),
            "y,p,g\n" + "1,1,a\n0,1,b\n" * 5_000 + LONG + "1,1,a\n",
        ],
        ids=["last", "middle", "late"],
    )
    def test_csv_with_long_rows(self, text, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text(text)
        self.refused_file(r"rows\.csv cannot be read: .*fields", path)

    @pytest.mark.parametrize(
        "text",
        [
            GOOD_CSV + SHORT,
            GOOD_CSV.replace("0,0,a\n", "0,0\n"),
            "y,p,g\n" + "1,1,a\n0,1,b\n" * 5_000 + SHORT + "1,1,a\n",
        ],
        ids=["last", "middle", "late"],
    )
    def test_csv_with_short_rows(self, text, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text(text)
        self.refused_file(r"rows\.csv.*(field|column|short)", path)

    @pytest.mark.parametrize("row", [LONG, SHORT, "1\n"], ids=["long", "short", "one"])
    @pytest.mark.parametrize("header", ["y,p,g", "g,y,p", "y,g,p"])
    def test_ragged_csv_whatever_the_columns_that_are_read(self, header, row, tmp_path):
        """A ragged row is damage wherever it is cut, and whether the last column is read or not."""
        path = tmp_path / "rows.csv"
        frame = FRAME.select(header.split(","))
        path.write_text(frame.write_csv() + row)
        for arguments in (
            {"y_true": "y", "y_pred": "p", "sensitive_features": "g"},
            {"y_true": "y", "sensitive_features": "g"},
            {"sensitive_features": "g"},
        ):
            with pytest.raises(errors.DataError, match=r"rows\.csv"):
                fa.tabulate(path, **arguments)

    def test_csv_cut_off_in_a_row(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text(GOOD_CSV + "1,1")
        self.refused_file(r"rows\.csv.*(field|column|short)", path)

    def test_csv_without_anything(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text("")
        self.refused_file(r"rows\.csv cannot be read: .*empty", path)

    def test_csv_with_a_header_alone(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text("y,p,g\n")
        self.refused_file("no rows", path)

    def test_csv_with_repeated_names(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text("y,p,g,g\n1,1,a,b\n0,1,b,a\n")
        self.refused_file("'?g'?.*(twice|duplicate|more than once)", path)

    def test_csv_with_another_separator(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text(GOOD_CSV.replace(",", ";"))
        self.refused_file("'y' does not exist; the data have: 'y;p;g'", path, errors.ColumnError)

    def test_csv_in_another_encoding(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_bytes(GOOD_CSV.replace("b", "\xe9").encode("latin-1"))
        self.refused_file(r"rows\.csv cannot be read: .*(?i:utf-?8)", path)

    def test_csv_whose_type_changes_late(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text("y,p,g\n" + "1,1,1\n0,1,2\n" * 5_000 + "1,1,A\n")
        self.refused_file(r"rows\.csv cannot be read: .*`A`.*'g'", path)

    @pytest.mark.parametrize("kept", [0.0, 0.02, 0.5, 0.99])
    def test_truncated_parquet(self, kept, tmp_path):
        path = tmp_path / "rows.parquet"
        FRAME.write_parquet(path)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(kept * len(whole))])
        self.refused_file(r"rows\.parquet cannot be read", path)
        with pytest.raises(errors.DataError, match=r"rows\.parquet cannot be read"):
            fa.Cells.read_parquet(path)

    def test_damaged_parquet(self, tmp_path):
        path = tmp_path / "rows.parquet"
        FRAME.write_parquet(path)
        damaged = bytearray(path.read_bytes())
        damaged[30:60] = bytes(30)
        path.write_bytes(damaged)
        self.refused_file(r"rows\.parquet cannot be read", path)

    @pytest.mark.parametrize("name", ["none.parquet", "none.csv", "none*.parquet", "none/*.csv"])
    def test_no_such_file(self, name, tmp_path):
        self.refused_file(f"{re.escape(name)}'; no such file", tmp_path / name)

    def test_an_empty_path_is_not_the_current_directory(self, tmp_path, monkeypatch):
        FRAME.write_parquet(tmp_path / "rows.parquet")
        monkeypatch.chdir(tmp_path)
        self.refused_file("data is ''", "")

    def test_no_such_file_in_a_list(self, tmp_path):
        FRAME.write_parquet(tmp_path / "one.parquet")
        self.refused_file(
            r"none\.parquet'; no such file",
            [tmp_path / "one.parquet", tmp_path / "none.parquet"],
        )

    def test_mixed_file_types(self, tmp_path):
        FRAME.write_parquet(tmp_path / "rows.parquet")
        FRAME.write_csv(tmp_path / "rows.csv")
        self.refused_file(
            r"files of type \.csv, \.parquet; accepted: .*not mixed", tmp_path / "rows.*"
        )

    @pytest.mark.parametrize("name", ["rows.txt", "rows", "rows.gz"])
    def test_unknown_file_type(self, name, tmp_path):
        (tmp_path / name).write_text(GOOD_CSV)
        self.refused_file(r"files of type .*accepted: \.parquet and \.csv", tmp_path / name)

    def test_directory_without_parquet(self, tmp_path):
        """The directory is there; the message must not say that it is not."""
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "notes.txt").write_text("")
        self.refused_file("data'.*(director|folder).*Parquet", tmp_path / "data")

    def test_one_bad_file_of_many(self, tmp_path):
        FRAME.write_csv(tmp_path / "a.csv")
        (tmp_path / "b.csv").write_text("y,q,g\n1,1,a\n")
        self.refused_file(r"column 'p' does not exist; the data in .*b\.csv", tmp_path / "*.csv")

    # -- cells -------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (lambda: labels_by({"sex": GROUP}), "sensitive_features"),
            (lambda: labels_by(GROUP, strata={"s": GROUP}), "strata_names"),
            (lambda: labels_by(GROUP, y_pred=DECISION), "columns"),
            (lambda: labels_by(GROUP, y_score=[0.1] * 4), "columns|score bins"),
        ],
    )
    def test_cells_that_do_not_add_up(self, other, message):
        cells = labels_by(GROUP)
        for pair in ((cells, other()), (other(), cells)):
            with pytest.raises(errors.DataError, match=f"({message}).*cannot be added"):
                sum(pair)

    def test_cells_with_other_bins(self):
        parts = [labels_by(GROUP, y_score=[0.1] * 4, score_bins=n) for n in (2, 4)]
        with pytest.raises(errors.DataError, match="different score bins cannot be added"):
            sum(parts)

    @pytest.mark.parametrize("other", [1, None, "cells"])
    def test_cells_and_something_else(self, other):
        with pytest.raises(TypeError, match="unsupported operand"):
            labels_by(GROUP) + other
        with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate"):
            other + labels_by(GROUP)

    def test_cells_have_no_hash(self):
        with pytest.raises(TypeError, match="unhashable"):
            hash(labels_by(GROUP))

    @pytest.mark.parametrize("names", [["age"], ["sex", "age"]])
    def test_marginalize_by_unknown_attributes(self, names):
        cells = labels_by({"sex": GROUP, "region": GROUP})
        with pytest.raises(errors.ColumnError, match="cells have: 'sex', 'region'"):
            cells.marginalize(names)

    def test_marginalize_by_one_attribute_twice(self):
        cells = labels_by({"sex": GROUP, "region": GROUP})
        with pytest.raises((errors.ArgumentError, errors.ColumnError), match="twice"):
            cells.marginalize(["sex", "sex"])

    @pytest.mark.parametrize("counts", [[1, -1, 1, 1], [1, None, 1, 1], [1.0, 0.5, 1.0, 1.0]])
    def test_counts_that_are_no_counts(self, counts):
        frame = pl.DataFrame({"g": GROUP, "count": counts})
        with pytest.raises(errors.DataError, match="column 'count' holds the number of rows"):
            fa.Cells.from_frame(frame, sensitive_features="g")

    def test_counts_beyond_64_bits(self):
        """Such a cell must not vanish."""
        counts = pl.Series([2**63 + 5, 1, 1, 1], dtype=pl.UInt64)
        frame = pl.DataFrame({"g": GROUP, "count": counts})
        with pytest.raises(errors.DataError, match="count"):
            fa.Cells.from_frame(frame, sensitive_features="g")

    def test_counts_without_rows(self):
        frame = pl.DataFrame({"g": GROUP, "count": [0] * 4})
        for data in (frame, frame.head(0)):
            with pytest.raises(errors.DataError, match="no rows"):
                fa.Cells.from_frame(data, sensitive_features="g")

    def test_counts_without_a_column(self):
        frame = pl.DataFrame({"g": GROUP, "n": [1] * 4})
        with pytest.raises(errors.ColumnError, match=r"'count' does not exist; .*: 'g', 'n'"):
            fa.Cells.from_frame(frame, sensitive_features="g")
        with pytest.raises(errors.ColumnError, match=r"'sex' does not exist; .*: 'g', 'n'"):
            fa.Cells.from_frame(frame, sensitive_features="sex", count="n")

    def test_counts_without_named_attributes(self):
        with pytest.raises(errors.ArgumentError, match=r"sensitive_features is None.*: g, count"):
            fa.Cells.from_frame(pl.DataFrame({"g": GROUP, "count": [1] * 4}))

    @pytest.mark.parametrize("frame", [42, None, "cells.parquet"])
    def test_counts_that_are_no_frame(self, frame):
        with pytest.raises(errors.ArgumentTypeError, match="frame is "):
            fa.Cells.from_frame(frame, sensitive_features="g")

    def test_counts_with_missing_labels(self):
        frame = pl.DataFrame({"g": GROUP, "y": [1, None, 0, 0], "count": [1, 30, 1, 1]})
        with pytest.raises(errors.DataError, match=r"y_true is missing .* in 30 of 33 rows"):
            fa.Cells.from_frame(frame, sensitive_features="g", y_true="y")
        with pytest.raises(errors.DataError, match=r"'y' is missing .* in 30 of 33 rows"):
            fa.Cells.from_frame(frame, sensitive_features="g", strata="y")

    def test_incomplete_frame_of_cells(self):
        frame = labels_by(GROUP, y_score=[0.1] * 4).to_frame()
        for name in ("score_sum", "score_bin", "count"):
            with pytest.raises(errors.ColumnError, match=f"'{name}' does not exist"):
                fa.Cells.from_frame(frame.drop(name))

    def test_frame_of_cells_with_different_bins(self):
        frames = [labels_by(GROUP, y_score=[0.1] * 4, score_bins=n).to_frame() for n in (2, 4)]
        with pytest.raises(errors.DataError, match=r"score bins|score_edges"):
            fa.Cells.from_frame(pl.concat(frames))

    def test_read_parquet_of_other_data(self, tmp_path):
        """The caller of read_parquet has no argument sensitive_features to set."""
        FRAME.write_parquet(tmp_path / "rows.parquet")
        with pytest.raises(errors.DataError, match=r"rows\.parquet"):
            fa.Cells.read_parquet(tmp_path / "rows.parquet")

    def test_read_parquet_of_no_file(self, tmp_path):
        with pytest.raises(errors.DataError, match=r"none\.parquet cannot be read"):
            fa.Cells.read_parquet(tmp_path / "none.parquet")

    def test_write_parquet_into_no_directory(self, tmp_path):
        with pytest.raises(OSError, match="nowhere"):
            labels_by(GROUP).write_parquet(tmp_path / "nowhere" / "cells.parquet")
        assert list(tmp_path.iterdir()) == []

    def test_write_parquet_onto_a_directory(self, tmp_path):
        (tmp_path / "cells.parquet").mkdir()
        with pytest.raises(OSError, match=r"cells\.parquet"):
            labels_by(GROUP).write_parquet(tmp_path / "cells.parquet")
        assert [path.name for path in tmp_path.iterdir()] == ["cells.parquet"]


class TestKnownValues:
    def test_small_table(self):
        cells = fa.tabulate(
            y_true=[1, 0, 1, 1, 1, 0],
            y_pred=[1, 0, 0, 1, 1, 0],
            sensitive_features=["m", "m", "f", "f", "m", "m"],
        )
        assert as_dict(cells) == {
            (("f",), (), 1, 0, -1): (1, 0),
            (("f",), (), 1, 1, -1): (1, 0),
            (("m",), (), 0, 0, -1): (2, 0),
            (("m",), (), 1, 1, -1): (2, 0),
        }
        assert cells.groups == (("f",), ("m",))
        assert cells.sensitive_features == ("group",)
        assert cells.strata_names == ()
        assert cells.columns == ("y_true", "y_pred")
        assert cells.n_rows == 6
        assert cells.n_missing == 0
        assert cells.group_sizes() == {("f",): 2, ("m",): 4}
        assert len(cells) == 4
        assert repr(cells) == ("Cells: 6 rows in 4 cells, 2 groups by group, with y_true, y_pred")

    def test_scores_and_strata(self):
        cells = fa.tabulate(
            y_true=[1, 0, 1, 1],
            y_score=[0.0, 0.5, 0.75, 1.0],
            sensitive_features={"sex": ["f", "f", "m", "m"]},
            strata={"region": [2, 2, 1, 1]},
            score_bins=[0, 0.5, 1],
        )
        unit = 2**30
        assert as_dict(cells) == {
            (("f",), (2,), 0, -1, 1): (1, unit // 2),
            (("f",), (2,), 1, -1, 0): (1, 0),
            (("m",), (1,), 1, -1, 1): (2, unit + 3 * unit // 4),
        }
        assert cells.columns == ("y_true", "y_score")
        assert cells.strata == ((1,), (2,))
        assert cells.score_edges.tolist() == [0, 0.5, 1]

    @pytest.mark.parametrize(
        ("bins", "expected"),
        [
            (10, [0, 1, 2, 3, 5, 7, 9, 9]),
            (100, [0, 10, 29, 30, 57, 70, 99, 99]),
            ([0, 0.1, 0.3, 0.7, 1], [0, 1, 1, 2, 2, 3, 3, 3]),
        ],
    )
    def test_a_score_on_an_edge_goes_up_and_the_last_edge_is_inside(self, bins, expected):
        score = np.array([0, 0.1, 0.29, 0.3, 0.57, 0.7, 0.995, 1])
        own = np.arange(8)
        from_arrays = fa.tabulate(y_score=score, sensitive_features=own, score_bins=bins)
        assert from_arrays.score_bin.tolist() == expected
        data = pl.DataFrame({"s": score, "group": own})
        same(
            fa.tabulate(data, y_score="s", sensitive_features="group", score_bins=bins),
            from_arrays,
        )

    def test_several_attributes_make_intersections(self):
        sex, age = ["f", "f", "m", "m"], ["old", "young", "old", "old"]
        cells = labels_by({"sex": sex, "age": age})
        assert cells.groups == (("f", "old"), ("f", "young"), ("m", "old"))
        assert cells.group_sizes() == {("f", "old"): 1, ("f", "young"): 1, ("m", "old"): 2}

    def test_several_attributes_in_other_containers(self, pd, pa):
        sex, age = ["f", "f", "m", "m"], ["old", "young", "old", "old"]
        named = {"sex": sex, "age": age}
        expected = labels_by(named)
        for features in (pl.DataFrame(named), pd.DataFrame(named)):
            same(labels_by(features), expected)
        same(labels_by([pl.Series("sex", sex), pd.Series(age, name="age")]), expected)
        unnamed = labels_by({"group_1": sex, "group_2": age})
        for features in ([sex, age], (sex, age), np.array([sex, age]).T):
            same(labels_by(features), unnamed)

    def test_several_attributes_in_an_arrow_table(self, pa):
        named = {"sex": ["f", "f", "m", "m"], "age": ["old", "young", "old", "old"]}
        same(labels_by(pa.table(named)), labels_by(named))

    def test_names_of_series(self, pd):
        for column in (pl.Series("sex", GROUP), pd.Series(GROUP, name="sex")):
            same(labels_by(column), labels_by({"sex": GROUP}))

    @pytest.mark.parametrize(
        "features",
        [
            ["f", None, "m", None],
            np.array(["f", None, "m", None], dtype=object),
            np.array(["f", np.nan, "m", float("nan")], dtype=object),
            pl.Series(["f", None, "m", None]),
            pl.Series(["f", None, "m", None], dtype=pl.Categorical),
            np.ma.array(["f", "m", "m", "f"], mask=[0, 1, 0, 1]),
        ],
    )
    def test_missing_groups_are_counted_and_kept(self, features):
        cells = labels_by(features)
        assert cells.groups == (("f",), ("m",), (None,))
        assert cells.n_missing == 2
        assert cells.n_rows == 4
        assert cells.group_sizes() == {("f",): 1, ("m",): 1}

    @pytest.mark.parametrize(
        "features",
        [
            [1, None, 2.5, None],
            [1.0, np.nan, 2.5, None],
            np.array([1, np.nan, 2.5, np.nan]),
            np.array([1, np.nan, 2.5, np.nan], dtype=np.float32),
            pl.Series([1.0, None, 2.5, float("nan")]),
            np.ma.array([1, 7, 2.5, 7], mask=[0, 1, 0, 1]),
        ],
    )
    def test_missing_numbers_as_groups(self, features):
        cells = labels_by(features)
        assert cells.groups == ((1,), (2.5,), (None,))
        assert cells.n_missing == 2
        frame = pl.DataFrame({"y": LABEL, "group": [1.0, None, 2.5, float("nan")]})
        same(fa.tabulate(frame, y_true="y", sensitive_features="group"), cells)

    def test_missing_groups_of_pandas(self, pd):
        for values, dtype in (
            (["f", None, "m", None], "category"),
            (["f", None, "m", None], "string"),
            (["f", float("nan"), "m", None], object),
            (["f", pd.NA, "m", None], object),
        ):
            series = pd.Series(values, dtype=dtype, name="group")
            expected = labels_by(["f", None, "m", None])
            same(labels_by(series), expected)
            data = pd.DataFrame({"y": LABEL, "group": series})
            same(fa.tabulate(data, y_true="y", sensitive_features="group"), expected)

    def test_missing_booleans_as_groups(self, pd):
        """The names of groups must not depend on whether a value is missing, nor on the source."""
        values = [True, None, False, False]
        frame = pl.DataFrame({"y": LABEL, "group": values})
        from_frame = fa.tabulate(frame, y_true="y", sensitive_features="group")
        assert repr(from_frame.groups) == "((False,), (True,), (None,))"
        for features in (values, frame["group"], pd.Series(values, dtype="boolean")):
            same(labels_by(features), from_frame)

    def test_every_group_missing(self):
        cells = labels_by([None] * 4)
        assert cells.groups == ((None,),)
        assert cells.n_missing == 4
        assert cells.group_sizes() == {}

    def test_a_missing_part_of_an_intersection(self):
        cells = labels_by({"sex": ["f", None, "m", "m"], "age": [1, 2, None, 2]})
        assert cells.n_missing == 2
        assert cells.group_sizes() == {("f", 1): 1, ("m", 2): 1}

    def test_text_that_looks_missing_is_missing_unless_it_is_kept(self):
        texts = ["", "None", "nan", None]
        assert labels_by(texts).groups == (("",), (None,))
        kept = fa.tabulate(y_true=[0, 1, 0, 1], sensitive_features=texts, missing="keep_texts")
        assert kept.groups == (("",), ("None",), ("nan",), (None,))

    def test_order_of_groups(self):
        assert labels_by([10, 9, -1, 2.5]).groups == ((-1,), (2.5,), (9,), (10,))
        assert labels_by(["b", "B", "10", "9"]).groups == (("10",), ("9",), ("B",), ("b",))
        assert labels_by([True, False, True, True]).groups == ((False,), (True,))

    def test_zero_has_no_sign(self):
        assert labels_by([0.0, -0.0, 1.0, -0.0]).groups == ((0,), (1,))

    def test_large_integers_stay_apart(self, pd):
        values = [2**53, 2**53 + 1, 2**53 + 1, 2**53]
        for features in (values, np.array(values), np.array(values, dtype=np.uint64)):
            assert labels_by(features).groups == ((2**53,), (2**53 + 1,))

    def test_large_integers_stay_apart_beside_missing_ones(self, pd):
        values = [2**53, 2**53 + 1, None, 2**53 + 1]
        expected = ((2**53,), (2**53 + 1,), (None,))
        frame = pl.DataFrame({"y": LABEL, "g": values})
        assert fa.tabulate(frame, y_true="y", sensitive_features="g").groups == expected
        for features in (values, frame["g"], pd.Series(values, dtype="Int64")):
            assert labels_by(features).groups == expected

    # -- positive class ----------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("values", "pos_label"),
        [
            (["yes", "no", "yes", "yes"], "yes"),
            (np.array(["yes", "no", "yes", "yes"]), np.str_("yes")),
            (np.array([b"yes", b"no", b"yes", b"yes"]), "yes"),
            (np.array([b"yes", b"no", b"yes", b"yes"]), b"yes"),
            ([2, 1, 2, 2], 2),
            ([2.0, 1.0, 2.0, 2.0], 2),
            (np.array([2, 1, 2, 2]), np.int64(2)),
            ([1, 2, 1, 1], 1),
            ([1, -1, 1, 1], 1),
            ([0, 1, 0, 0], 0),
            ([1, 0, 1, 1], 1),
            ([1, 0, 1, 1], True),
            ([True, False, True, True], True),
            ([False, True, False, False], False),
            ([True, False, True, True], 1),
            (["a", "b", "a", "a"], "a"),
            ([3, 1, 3, 3], 3),
        ],
    )
    def test_pos_label(self, values, pos_label):
        expected = fa.tabulate(y_true=LABEL, y_pred=LABEL, sensitive_features=GROUP)
        same(
            fa.tabulate(
                y_true=values, y_pred=values, sensitive_features=GROUP, pos_label=pos_label
            ),
            expected,
        )
        frame = pl.DataFrame({"y": np.asarray(values).astype(object).tolist(), "group": GROUP})
        same(
            fa.tabulate(
                frame, y_true="y", y_pred="y", sensitive_features="group", pos_label=pos_label
            ),
            expected,
        )

    def test_pos_label_of_labels_beside_coded_decisions(self):
        cells = fa.tabulate(
            y_true=["yes", "no", "yes", "yes"],
            y_pred=DECISION,
            sensitive_features=GROUP,
            pos_label="yes",
        )
        same(cells, fa.tabulate(y_true=LABEL, y_pred=DECISION, sensitive_features=GROUP))

    @pytest.mark.parametrize(
        ("decisions", "expected"), [([1, 1, 1, 1], [0] * 4), ([2, 2, 2, 2], [1] * 4)]
    )
    def test_pos_label_with_decisions_of_one_class(self, decisions, expected):
        """Labels and decisions are 1/2 with 2 positive: a 1 is negative wherever it stands."""
        cells = fa.tabulate(
            y_true=[1, 2, 2, 1], y_pred=decisions, sensitive_features=GROUP, pos_label=2
        )
        same(cells, fa.tabulate(y_true=[0, 1, 1, 0], y_pred=expected, sensitive_features=GROUP))

    @pytest.mark.parametrize(("negative", "positive"), [(1, 2), ("n", "y"), (0, 1), (-1, 1)])
    def test_pos_label_in_parts_of_one_class(self, negative, positive):
        whole = fa.tabulate(
            y_true=[negative] * 2 + [positive] * 2,
            sensitive_features=["a", "b"] * 2,
            pos_label=positive,
        )
        parts = [
            fa.tabulate(y_true=[value] * 2, sensitive_features=["a", "b"], pos_label=positive)
            for value in (negative, positive)
        ]
        same(sum(parts), whole)

    def test_pos_label_in_parts_of_one_class_beside_coded_decisions(self):
        """A part without positives is no misspelt pos_label, with or without decisions."""
        cells = fa.tabulate(
            y_true=["n"] * 4, y_pred=DECISION, sensitive_features=GROUP, pos_label="y"
        )
        same(cells, fa.tabulate(y_true=[0] * 4, y_pred=DECISION, sensitive_features=GROUP))

    # -- kinds of arrays ---------------------------------------------------------------------

    @pytest.mark.parametrize(
        "dtype",
        [
            *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            *("float16", "float32", "float64", "longdouble", "bool", "object"),
            *(">i2", ">u2", ">i4", ">u4", ">i8", ">f4", ">f8"),
        ],
    )
    def test_kinds_of_numbers(self, dtype):
        expected = fa.tabulate(
            y_true=LABEL, y_pred=DECISION, sensitive_features=[0, 0, 1, 1], strata=[1, 1, 1, 0]
        )
        cells = fa.tabulate(
            y_true=np.array(LABEL).astype(dtype),
            y_pred=np.array(DECISION).astype(dtype),
            sensitive_features=np.array([0, 0, 1, 1]).astype(dtype),
            strata=np.array([1, 1, 1, 0]).astype(dtype),
        )
        assert cells == expected

    @pytest.mark.parametrize("dtype", [">i2", "<i2", "float16", "float32", ">f8", "longdouble"])
    def test_kinds_of_scores(self, dtype):
        score = np.array([0, 1, 1, 0])
        expected = labels_by(GROUP, y_score=score.astype(float))
        same(labels_by(GROUP, y_score=score.astype(dtype)), expected)

    @pytest.mark.parametrize(
        "make",
        [
            tuple,
            np.array,
            lambda values: np.array(values, dtype="U9"),
            lambda values: np.array(values, dtype=">U3"),
            lambda values: np.array(values, dtype="S3"),
            lambda values: np.array(values, dtype=object),
            lambda values: np.array([value.encode() for value in values], dtype=object),
            lambda values: [value.encode() for value in values],
            lambda values: np.array(values, dtype=np.dtypes.StringDType()),
            pl.Series,
            lambda values: pl.Series(values, dtype=pl.Categorical),
            lambda values: pl.Series(values, dtype=pl.Enum(["a", "b", "z"])),
        ],
        ids=[
            *("tuple", "U", "U9", ">U", "S", "object", "object of bytes", "list of bytes"),
            *("StringDType", "polars", "Categorical", "Enum"),
        ],
    )
    def test_kinds_of_text(self, make):
        expected = labels_by(GROUP, strata=GROUP)
        same(labels_by(make(GROUP), strata=make(GROUP)), expected)
        labels = ["a", "b", "a", "a"]
        cells = fa.tabulate(
            y_true=make(labels), sensitive_features=GROUP, strata=GROUP, pos_label="a"
        )
        same(cells, expected)

    @pytest.mark.parametrize(
        "dtype", [pl.String, pl.Categorical, pl.Enum(["a", "b", "z"]), pl.Binary]
    )
    def test_kinds_of_text_in_frames(self, dtype):
        frame = FRAME.with_columns(pl.col("g").cast(dtype))
        same(of_frame(frame), of_frame(FRAME))
        same(of_frame(frame.lazy()), of_frame(FRAME))

    @pytest.mark.parametrize(
        "dtype", ["category", "string", "string[pyarrow]", "object", "arrow", "arrow dictionary"]
    )
    def test_kinds_of_text_in_pandas(self, dtype, pd, pa):
        if dtype == "arrow":
            dtype = pd.ArrowDtype(pa.string())
        elif dtype == "arrow dictionary":
            dtype = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
        series = pd.Series(GROUP, dtype=dtype)
        same(labels_by(series), labels_by(GROUP))
        data = pd.DataFrame({"y": LABEL, "p": DECISION, "g": series})
        same(of_frame(data), of_frame(FRAME))

    @pytest.mark.parametrize(
        "dtype", ["Int64", "Int8", "UInt16", "Float64", "boolean", "category", "int64[pyarrow]"]
    )
    def test_kinds_of_numbers_in_pandas(self, dtype, pd, pa):
        label = pd.Series(LABEL).astype(dtype)
        decision = pd.Series(DECISION).astype(dtype)
        expected = fa.tabulate(y_true=LABEL, y_pred=DECISION, sensitive_features=GROUP)
        same(fa.tabulate(y_true=label, y_pred=decision, sensitive_features=GROUP), expected)

    def test_pandas_arrays_outside_of_a_series(self, pd):
        for column in (pd.Index(GROUP), pd.Categorical(GROUP), pd.array(GROUP, dtype="string")):
            same(labels_by(column), labels_by(GROUP))

    def test_pandas_rows_are_taken_in_order_whatever_the_index(self, pd):
        label = pd.Series(LABEL, index=[3, 2, 2, 0])
        group = pd.Series(GROUP, index=[3, 2, 2, 0])
        same(fa.tabulate(y_true=label, sensitive_features=group), labels_by(GROUP))

    def test_arrow_arrays(self, pa):
        for column in (
            pa.array(GROUP),
            pa.chunked_array([GROUP[:1], GROUP[1:]]),
            pa.array(GROUP).dictionary_encode(),
        ):
            same(labels_by(column), labels_by(GROUP))

    def test_arrow_frames(self, pa):
        table = pa.table({"y": LABEL, "p": DECISION, "g": GROUP})
        for data in (table, table.to_batches()[0], table.to_reader()):
            same(of_frame(data), of_frame(FRAME))

    @pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "float64", "bool"])
    def test_layouts_of_memory(self, dtype):
        label, group = np.array(LABEL).astype(dtype), np.array([1, 1, 0, 0]).astype(dtype)
        expected = fa.tabulate(y_true=label, sensitive_features=group)

        def every_second(array):
            wide = np.ones(8, dtype=array.dtype)
            wide[::2] = array
            return wide[::2]

        def backwards(array):
            return np.ascontiguousarray(array[::-1])[::-1]

        def column_of_rows(array):
            return np.ascontiguousarray(np.stack([array, array, array], axis=1))[:, 1]

        def column_of_columns(array):
            return np.asfortranarray(np.stack([array, array], axis=1))[:, 1]

        def read_only(array):
            copy = array.copy()
            copy.flags.writeable = False
            return copy

        for change in (
            every_second,
            backwards,
            column_of_rows,
            column_of_columns,
            read_only,
        ):
            cells = fa.tabulate(y_true=change(label), sensitive_features=change(group))
            same(cells, expected)

    @pytest.mark.parametrize("dtype", ["uint16", "int32", "int64", "float32", "float64"])
    def test_arrays_that_are_not_aligned(self, dtype):
        store = np.zeros(4 * np.dtype(dtype).itemsize + 1, dtype=np.uint8)
        label = store[1:].view(dtype)
        label[:] = LABEL
        assert not label.flags.aligned
        same(fa.tabulate(y_true=label, sensitive_features=GROUP), labels_by(GROUP))
        record = np.zeros(4, dtype=[("flag", "u1"), ("y", dtype)])
        record["y"] = LABEL
        same(fa.tabulate(y_true=record["y"], sensitive_features=GROUP), labels_by(GROUP))
        cells = labels_by(GROUP, y_score=record["y"])
        same(cells, labels_by(GROUP, y_score=[float(value) for value in LABEL]))

    def test_layouts_of_scores_and_text(self):
        score, group = np.array([0.1, 0.9, 0.4, 0.4]), np.array(GROUP)
        expected = labels_by(GROUP, y_score=score)
        same(labels_by(np.repeat(group, 2)[::2], y_score=np.repeat(score, 2)[::2]), expected)
        score.flags.writeable = group.flags.writeable = False
        same(labels_by(group, y_score=score), expected)

    def test_attributes_in_fortran_order(self):
        values = np.array([[1, 2], [1, 2], [3, 4], [3, 5]])
        same(labels_by(np.asfortranarray(values)), labels_by(values))

    def test_a_matrix_of_one_column_is_a_column(self):
        same(
            fa.tabulate(y_true=np.array(LABEL).reshape(4, 1), sensitive_features=GROUP),
            labels_by(GROUP),
        )

    def test_masked_arrays(self):
        same(labels_by(np.ma.array(GROUP)), labels_by(GROUP))
        same(
            labels_by(np.ma.array([7, 7, 8, 8], mask=[0, 0, 0, 1])),
            labels_by([7.0, 7.0, 8.0, np.nan]),
        )
        same(
            labels_by(np.ma.array(["x", "x", "z", "z"], mask=[1, 0, 0, 0])),
            labels_by([None, "x", "z", "z"]),
        )

    def test_masked_rows_are_not_read(self):
        cells = labels_by(np.ma.masked_all(4, dtype=float))
        assert cells.n_missing == 4

    def test_torch_tensors(self):
        torch = pytest.importorskip("torch")
        expected = fa.tabulate(y_true=LABEL, y_pred=DECISION, sensitive_features=[1, 1, 0, 0])
        for dtype in (torch.int64, torch.int32, torch.uint8, torch.float32, torch.float16):
            cells = fa.tabulate(
                y_true=torch.tensor(LABEL, dtype=dtype),
                y_pred=torch.tensor(DECISION, dtype=dtype) > 0,
                sensitive_features=torch.tensor([1, 9, 1, 9, 0, 9, 0, 9], dtype=dtype)[::2],
            )
            same(cells, expected)
        score = torch.tensor([0.25, 0.5, 0.75, 1.0], requires_grad=True)
        same(
            labels_by(GROUP, y_score=score),
            labels_by(GROUP, y_score=[0.25, 0.5, 0.75, 1.0]),
        )

    # -- files -------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "content",
        [
            GOOD_CSV,
            GOOD_CSV[:-1],
            GOOD_CSV.replace("\n", "\r\n"),
            "\ufeff" + GOOD_CSV,
            'g,p,"y"\n"a",1,1\n"a",0,0\n"b",0,1\n"b",1,1\n',
            "y,unused,p,g\n1,?,1,a\n0,,0,a\n1,?,0,b\n1,?,1,b\n",
            "y,p,g\n1.0,true,a\n0.0,false,a\n1.0,false,b\n1.0,true,b\n",
            "y,p,g\nTrue,True,a\nFalse,False,a\nTrue,False,b\nTrue,True,b\n",
        ],
        ids=["plain", "no end", "crlf", "bom", "quotes", "unused", "float bool", "pandas bool"],
    )
    def test_kinds_of_csv(self, content, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_bytes(content.encode())
        same(of_frame(path), of_frame(FRAME))
        same(of_frame(str(path)), of_frame(FRAME))

    def test_empty_field_is_a_missing_group(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text("y,p,g\n1,1,a\n0,0,\n1,0,b\n")
        cells = of_frame(path)
        assert cells.groups == (("a",), ("b",), (None,))
        assert cells.n_missing == 1

    def test_separators_and_line_ends_in_quotes(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text('y,p,g\n1,1,"a, b"\n0,0,"c ""d""\ne"\n')
        assert of_frame(path).groups == (("a, b",), ('c "d"\ne',))

    @pytest.mark.parametrize("name", ["ROWS.CSV", "ro[w]s.csv", "ro*s.csv", "r ö.csv"])
    def test_names_of_files(self, name, tmp_path):
        (tmp_path / name).write_text(GOOD_CSV)
        (tmp_path / "rows.csv").write_text(GOOD_CSV)
        same(of_frame(tmp_path / name), of_frame(FRAME))

    def test_directory_of_parquet(self, tmp_path):
        (tmp_path / "day=1").mkdir()
        FRAME.head(1).write_parquet(tmp_path / "day=1" / "part.parquet")
        FRAME.tail(3).write_parquet(tmp_path / "part.parquet")
        (tmp_path / "_SUCCESS").write_text("")
        same(of_frame(tmp_path), of_frame(FRAME))

    @pytest.mark.parametrize("folder", [".cache", "_temporary"])
    def test_hidden_parts_of_a_directory_are_left_out(self, folder, tmp_path):
        """As Spark, Arrow and `glob` leave them out: they are drafts of other files."""
        (tmp_path / folder).mkdir()
        FRAME.head(1).write_parquet(tmp_path / folder / "part.parquet")
        FRAME.write_parquet(tmp_path / "part.parquet")
        same(of_frame(tmp_path), of_frame(FRAME))

    def test_order_of_columns_may_differ_between_files(self, tmp_path):
        FRAME.head(2).write_parquet(tmp_path / "a.parquet")
        FRAME.tail(2).select("g", "p", "y").write_parquet(tmp_path / "b.parquet")
        same(of_frame(tmp_path / "*.parquet"), of_frame(FRAME))
        same(of_frame([tmp_path / "a.parquet", tmp_path / "b.parquet"]), of_frame(FRAME))

    def test_columns_without_a_role_may_differ_between_files(self, tmp_path):
        FRAME.head(2).write_parquet(tmp_path / "a.parquet")
        FRAME.tail(2).with_columns(note=pl.lit("new")).write_parquet(tmp_path / "b.parquet")
        same(of_frame(tmp_path / "*.parquet"), of_frame(FRAME))
        same(of_frame([tmp_path / "a.parquet", tmp_path / "b.parquet"]), of_frame(FRAME))

    # -- counts made elsewhere ---------------------------------------------------------------

    def test_from_frame_of_own_counts(self):
        frame = pl.DataFrame(
            {
                "sex": ["f", "f", "m", "m", "m"],
                "repaid": ["y", "n", "y", "y", "n"],
                "n": [3, 0, 5, 2, 1],
            }
        )
        cells = fa.Cells.from_frame(
            frame, sensitive_features="sex", y_true="repaid", count="n", pos_label="y"
        )
        assert as_dict(cells) == {
            (("f",), (), 1, -1, -1): (3, 0),
            (("m",), (), 0, -1, -1): (1, 0),
            (("m",), (), 1, -1, -1): (7, 0),
        }

    def test_from_frame_of_pandas_and_arrow(self, pd, pa):
        columns = {"sex": ["f", None, "m"], "y": [1, 0, 1], "n": [3, 4, 5]}
        expected = fa.Cells.from_frame(
            pl.DataFrame(columns), sensitive_features=["sex"], y_true="y", count="n"
        )
        assert expected.n_missing == 4
        by_category = pd.DataFrame(columns).astype({"sex": "category"})
        for frame in (pd.DataFrame(columns), by_category, pa.table(columns)):
            cells = fa.Cells.from_frame(frame, sensitive_features="sex", y_true="y", count="n")
            same(cells, expected)

    def test_from_frame_with_nan_groups(self):
        frame = pl.DataFrame({"g": [1.0, float("nan"), float("nan"), 2.5], "count": [1, 2, 3, 4]})
        cells = fa.Cells.from_frame(frame, sensitive_features="g")
        assert cells.groups == ((1,), (2.5,), (None,))
        assert cells.n_missing == 5

    def test_from_frame_adds_up_rows_that_repeat(self):
        cells = labels_by(GROUP, y_score=[0.1, 0.2, 0.3, 0.4])
        frame = cells.to_frame()
        same(fa.Cells.from_frame(pl.concat([frame, frame.reverse()])), cells + cells)


class TestReference:
    @staticmethod
    def reference(columns, edges=None):
        """Count rows one at a time; columns: group keys, stratum keys, y, p, scores."""
        counts, sums = Counter(), Counter()
        for group, stratum, label, decision, score in zip(*columns, strict=True):
            place = -1
            if edges is not None:
                place = max(i for i in range(len(edges) - 1) if edges[i] <= score)
            key = (group, stratum, label, decision, place)
            counts[key] += 1
            if edges is not None:
                sums[key] += int(np.floor(score * 2**30 + 0.5))
        return {key: (n, sums[key]) for key, n in counts.items()}

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("bins", [None, 7, 100, (0.0, 0.2, 0.21, 0.9, 1.0)])
    def test_random_rows(self, seed, bins):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 3_000))
        sex = rng.choice(["f", "m", "x", None], n, p=[0.4, 0.4, 0.1, 0.1])
        age = rng.integers(0, 4, n)
        region = rng.choice(["north", "south"], n)
        year = rng.integers(2018, 2021, n)
        label, decision = rng.integers(0, 2, n), rng.integers(0, 2, n)
        # Round numbers fall on edges.
        score = np.where(rng.random(n) < 0.5, rng.random(n), rng.integers(0, 101, n) / 100)
        score[: n // 10] = 1.0
        edges = None
        if bins is not None:
            edges = [i / bins for i in range(bins + 1)] if isinstance(bins, int) else list(bins)
        expected = self.reference(
            (
                list(zip(sex, age.tolist(), strict=True)),
                list(zip(region.tolist(), year.tolist(), strict=True)),
                label.tolist(),
                decision.tolist(),
                score.tolist(),
            ),
            edges,
        )
        options = {} if bins is None else {"y_score": score, "score_bins": bins}
        cells = fa.tabulate(
            y_true=label,
            y_pred=decision,
            sensitive_features={"sex": sex, "age": age},
            strata={"region": region, "year": year},
            **options,
        )
        assert as_dict(cells) == expected
        assert len(cells) == len(expected)
        assert cells.n_rows == n
        assert cells.n_missing == sum(value is None for value in sex)
        frame = pl.DataFrame(
            {"sex": sex.tolist(), "age": age, "region": region, "year": year}
            | {"y": label, "p": decision, "s": score},
            schema_overrides={"sex": pl.String},
        )
        options = {} if bins is None else {"y_score": "s", "score_bins": bins}
        from_frame = fa.tabulate(
            frame,
            y_true="y",
            y_pred="p",
            sensitive_features=["sex", "age"],
            strata=["region", "year"],
            **options,
        )
        same(from_frame, cells)

    def test_rows_of_many_blocks_and_long_text(self):
        rng = np.random.default_rng(11)
        n = 150_000
        names = np.array([f"a rather long name of a group, number {i:04}" for i in range(600)])
        group = names[rng.integers(0, 600, n)]
        label = rng.integers(0, 2, n).astype(bool)
        cells = fa.tabulate(y_true=label, sensitive_features=group)
        expected = Counter(zip(group.tolist(), label.tolist(), strict=True))
        assert as_dict(cells) == {
            ((name,), (), int(value), -1, -1): (count, 0)
            for (name, value), count in expected.items()
        }

    def test_group_sizes(self):
        rng = np.random.default_rng(12)
        group = rng.choice(["a", "b", None], 500)
        cells = fa.tabulate(y_true=rng.integers(0, 2, 500), sensitive_features=group)
        expected = Counter((value,) for value in group if value is not None)
        assert cells.group_sizes() == dict(expected)


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "é", "", None]),
        st.integers(-1, 1),
        st.integers(0, 1),
        st.booleans(),
        st.integers(0, 40).map(lambda i: i / 40),
    ),
    min_size=1,
    max_size=40,
)

LABELS = st.one_of(
    st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=8),
    st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=8),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
    st.lists(st.booleans(), min_size=1, max_size=8),
)


def cells_of_rows(rows):
    sex, age, label, decision, score = zip(*rows, strict=True)
    return fa.tabulate(
        y_true=label,
        y_pred=decision,
        y_score=score,
        sensitive_features={"sex": np.array(sex, dtype=object), "age": age},
        strata={"age": age},
        score_bins=5,
    )


def book(n=3_000, seed=5):
    """A frame with missing groups, strata and scores."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "sex": rng.choice(["f", "m", None], n, p=[0.5, 0.45, 0.05]).tolist(),
            "age": rng.integers(0, 5, n),
            "region": rng.choice(["north", "south", "west"], n),
            "repaid": rng.integers(0, 2, n),
            "approved": rng.random(n) < 0.6,
            "score": rng.random(n),
        },
        schema_overrides={"sex": pl.String},
    )


def tabulate_book(data, **changes):
    arguments = {
        "y_true": "repaid",
        "y_pred": "approved",
        "y_score": "score",
        "sensitive_features": ["sex", "age"],
        "strata": "region",
        "score_bins": 10,
    }
    return fa.tabulate(data, **(arguments | changes))


class TestProperties:
    @FEW
    @given(rows=ROWS, data=st.data())
    def test_cells_of_parts_add_up(self, rows, data):
        whole = cells_of_rows(rows)
        shuffled = data.draw(st.permutations(rows))
        same(cells_of_rows(shuffled), whole)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
        edges = [0, *cuts, len(rows)]
        parts = [cells_of_rows(shuffled[a:b]) for a, b in itertools.pairwise(edges) if a < b]
        same(sum(parts), whole)
        same(sum(reversed(parts)), whole)

    def test_cells_of_codes_1_and_2_add_up(self):
        rng = np.random.default_rng(8)
        label, group = np.sort(rng.integers(1, 3, 100)), rng.integers(0, 2, 100)
        whole = fa.tabulate(y_true=label, sensitive_features=group, pos_label=2)
        parts = [
            fa.tabulate(y_true=label[at], sensitive_features=group[at], pos_label=2)
            for at in np.array_split(np.arange(100), 5)
        ]
        same(sum(parts), whole)

    @FEW
    @given(rows=ROWS)
    def test_round_trips(self, rows):
        cells = cells_of_rows(rows)
        same(fa.Cells.from_frame(cells.to_frame()), cells)
        same(fa.Cells.from_frame(cells.to_frame().reverse()), cells)
        same(pickle.loads(pickle.dumps(cells)), cells)

    @FEW
    @given(labels=LABELS)
    def test_round_trips_of_labels(self, labels):
        n = len(labels)
        features = np.array(labels, dtype=object)
        cells = fa.tabulate(
            y_true=[i % 2 for i in range(n)],
            sensitive_features={"count": features, "y_true": features},
        )
        assert {key[0] for key in cells.groups} == set(labels)
        same(fa.Cells.from_frame(cells.to_frame()), cells)

    @pytest.mark.parametrize(
        "labels",
        [
            [[None] * 4],
            [[1e300, 1.0, 2.0, 3.0]],
            [[0.5, 1.5, 2.5, 3.0], [1, 2, 3, 4]],
            [np.array([2**63 + 1, 1, 2, 3], dtype=np.uint64)],
        ],
        ids=["missing", "huge", "floats", "unsigned"],
    )
    def test_round_trip_keeps_groups_apart(self, labels, tmp_path):
        cells = sum(labels_by(part) for part in labels)
        same(fa.Cells.from_frame(cells.to_frame()), cells)
        cells.write_parquet(tmp_path / "cells.parquet")
        same(fa.Cells.read_parquet(tmp_path / "cells.parquet"), cells)

    def test_labels_that_no_column_keeps_apart_are_refused(self):
        with pytest.raises(errors.DataError, match="holds numbers and text"):
            labels_by([1, 2, 1, 2]) + labels_by(["1", "2", "A", "B"])
        with pytest.raises(errors.DataError, match="holds booleans and numbers"):
            labels_by([True, False, True, True]) + labels_by([1, 0, 1, 1])
        mixed = labels_by([2**53 + 1, 2, 3, 4]) + labels_by([0.5, 1.5, 2.5, 3.5])
        with pytest.raises(errors.DataError, match="do not fit into one column"):
            mixed.to_frame()

    def test_round_trip_through_a_file(self, tmp_path):
        cells = tabulate_book(book())
        path = tmp_path / "cells.parquet"
        cells.write_parquet(path)
        same(fa.Cells.read_parquet(path), cells)
        same(fa.Cells.read_parquet(str(path)), cells)
        doubled = cells + cells
        doubled.write_parquet(str(path))
        same(fa.Cells.read_parquet(path), doubled)
        assert [entry.name for entry in tmp_path.iterdir()] == ["cells.parquet"]

    def test_round_trip_of_part_of_the_columns(self):
        for columns in ({}, {"y_true": "repaid"}, {"y_pred": "approved"}, {"y_score": "score"}):
            cells = fa.tabulate(book(), sensitive_features="sex", **columns)
            same(fa.Cells.from_frame(cells.to_frame()), cells)
            assert cells.columns == tuple(columns)

    def test_sources_give_the_same_cells(self, pd, pa, tmp_path):
        frame = book()
        frame.write_csv(tmp_path / "book.csv")
        frame.write_parquet(tmp_path / "book.parquet")
        parts = tmp_path / "parts"
        parts.mkdir()
        for i, part in enumerate(frame.iter_slices(700)):
            part.write_parquet(parts / f"{9 - i}.parquet")
            part.write_csv(parts / f"{i}.csv")
        of_arrays = fa.tabulate(
            y_true=frame["repaid"].to_numpy(),
            y_pred=frame["approved"].to_list(),
            y_score=frame["score"].to_numpy(),
            sensitive_features={"sex": frame["sex"].to_list(), "age": frame["age"].to_numpy()},
            strata={"region": frame["region"].to_numpy()},
            score_bins=10,
        )
        assert of_arrays.n_rows == 3_000
        assert of_arrays.n_missing > 0
        files = sorted(parts.glob("*.parquet"))
        for data in (
            frame,
            frame.lazy(),
            frame.lazy().filter(pl.col("id") >= 0),
            frame.to_pandas(),
            frame.to_arrow(),
            frame.to_dict(as_series=True),
            frame.to_dict(as_series=False),
            frame.select(reversed(frame.columns)),
            frame.sample(fraction=1, shuffle=True, seed=1),
            tmp_path / "book.csv",
            str(tmp_path / "book.csv"),
            tmp_path / "book.parquet",
            str(tmp_path / "book.parquet"),
            parts,
            parts / "*.parquet",
            str(parts / "*.csv"),
            parts / "[5-9].parquet",
            tmp_path / "**" / "?.parquet",
            files,
            files[::-1],
            tuple(map(str, files)),
            [parts / "[5-6].parquet", parts / "[7-9].parquet"],
        ):
            same(tabulate_book(data), of_arrays)

    def test_parts_of_files_add_up(self, tmp_path):
        frame = book()
        for i, part in enumerate(frame.iter_slices(1_100)):
            part.write_parquet(tmp_path / f"{i}.parquet")
        parts = [tabulate_book(path) for path in tmp_path.glob("*.parquet")]
        same(sum(parts), tabulate_book(frame))
        parts.reverse()
        same(sum(parts), tabulate_book(frame))

    def test_threads_do_not_matter(self):
        frame = book(200_000)
        arrays = {
            "y_true": frame["repaid"],
            "y_pred": frame["approved"],
            "y_score": frame["score"],
            "sensitive_features": frame.select("sex", "age"),
            "strata": {"region": frame["region"]},
            "score_bins": 10,
        }
        expected = tabulate_book(frame)
        for n_threads in (1, 2, 7, None):
            same(fa.tabulate(**arrays, n_threads=n_threads), expected)
            same(tabulate_book(frame, n_threads=n_threads), expected)

    def test_inputs_are_not_changed(self):
        frame = book()
        before = frame.clone()
        label = frame["repaid"].to_numpy().copy()
        kept = label.copy()
        first = tabulate_book(frame)
        fa.tabulate(y_true=label, sensitive_features=frame["sex"])
        assert frame.equals(before)
        assert np.array_equal(label, kept)
        same(tabulate_book(frame), first)

    def test_adding_does_not_change_the_parts(self):
        one, two = tabulate_book(book(seed=1)), tabulate_book(book(seed=2))
        total = one + two
        assert total == two + one
        same(one, tabulate_book(book(seed=1)))
        same(two, tabulate_book(book(seed=2)))
        assert total != one

    @pytest.mark.parametrize("names", [["sex"], ["age"], ["age", "sex"], ["sex", "age"]])
    def test_marginalize_is_to_tabulate_fewer_attributes(self, names):
        cells = tabulate_book(book())
        expected = tabulate_book(book(), sensitive_features=names)
        same(cells.marginalize(names), expected)
        same(cells.marginalize(tuple(names)), expected)
        assert cells.marginalize(names).n_rows == cells.n_rows

    def test_marginalize_takes_one_name_like_tabulate(self):
        same(
            tabulate_book(book()).marginalize("sex"),
            tabulate_book(book(), sensitive_features="sex"),
        )

    def test_marginalize_and_adding_commute(self):
        one, two = tabulate_book(book(seed=1)), tabulate_book(book(seed=2))
        same(
            (one + two).marginalize(["sex"]),
            one.marginalize(["sex"]) + two.marginalize(["sex"]),
        )

    def test_own_group_by_is_to_tabulate(self):
        frame = book().rename({"sex": "gender", "repaid": "outcome"})
        counts = frame.group_by("gender", "age", "region", "outcome", "approved").agg(
            pl.len().alias("n_applicants")
        )
        cells = fa.Cells.from_frame(
            counts,
            sensitive_features=["gender", "age"],
            strata="region",
            y_true="outcome",
            y_pred="approved",
            count="n_applicants",
        )
        expected = fa.tabulate(
            frame,
            y_true="outcome",
            y_pred="approved",
            sensitive_features=["gender", "age"],
            strata="region",
        )
        same(cells, expected)

    def test_own_group_by_of_pandas_is_to_tabulate(self, pd, pa):
        frame = book().to_pandas()
        counts = frame.groupby(["sex", "repaid"], dropna=False).size().rename("count").reset_index()
        cells = fa.Cells.from_frame(counts, sensitive_features="sex", y_true="repaid")
        same(cells, fa.tabulate(frame, y_true="repaid", sensitive_features="sex"))

    def test_relabelling_groups_relabels_cells(self):
        frame = book()
        swapped = frame.with_columns(pl.col("sex").replace({"f": "m", "m": "f"}))
        cells, other = tabulate_book(frame), tabulate_book(swapped)
        names = {"f": "m", "m": "f", None: None}
        assert as_dict(other) == {
            ((names[sex], age), *rest): value
            for ((sex, age), *rest), value in as_dict(cells).items()
        }

    def test_display_names_the_columns(self):
        cells = tabulate_book(book())
        assert repr(cells).startswith("Cells: 3,000 rows in ")
        assert "by sex, age, strata by region, with y_true, y_pred, y_score" in repr(cells)
        assert "<table" in cells._repr_html_()
