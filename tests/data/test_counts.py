"""A column that says how many persons a row stands for: the cells of repeated rows."""

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors

BERKELEY = {
    "A": (512, 313, 89, 19),
    "B": (353, 207, 17, 8),
    "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244),
    "E": (53, 138, 94, 299),
    "F": (22, 351, 24, 317),
}
"""Admissions to six departments in 1973 (Bickel, Hammel and O'Connell, 1975, Science 187): men
admitted and rejected, women admitted and rejected."""


def berkeley():
    """One row per department, sex and decision."""
    return {
        "department": np.repeat(list(BERKELEY), 4),
        "sex": np.tile(["man", "man", "woman", "woman"], 6),
        "admitted": np.tile([1, 0, 1, 0], 6),
        "persons": np.concatenate(list(BERKELEY.values())),
    }


def made(seed=0, n=500):
    """Rows with numbers of persons, some of nobody."""
    rng = np.random.default_rng(seed)
    return {
        "group": rng.choice(["a", "b", "c"], n),
        "stratum": rng.integers(0, 3, n),
        "y": rng.integers(0, 2, n),
        "p": rng.integers(0, 2, n),
        "s": rng.random(n),
        "persons": rng.integers(0, 5, n),
    }


def repeated(columns):
    n = columns["persons"]
    return {name: np.repeat(column, n) for name, column in columns.items() if name != "persons"}


def tabulated(columns, counts=True, **options):
    return fa.tabulate(
        y_true=columns["y"],
        y_pred=columns["p"],
        sensitive_features={"group": columns["group"]},
        strata={"stratum": columns["stratum"]},
        **({"counts": columns["persons"]} if counts else {}),
        **options,
    )


NAMES = {
    "y_true": "y",
    "y_pred": "p",
    "sensitive_features": "group",
    "strata": "stratum",
}


class TestArguments:
    @pytest.mark.parametrize(
        ("counts", "error", "message"),
        [
            ([1, 2.5, 1, 1], errors.DataError, "counts is 2.5 in row 1; accepted: whole numbers o"),
            (
                [1, 1, 1, -3],
                errors.DataError,
                "counts is -3 in row 3; accepted: whole numbers of",
            ),
            ([1, np.nan, 1, 1], errors.DataError, "counts is nan in row 1 and missing or infinite"),
            ([1, np.inf, 1, 1], errors.DataError, "counts is inf in row 1 and missing or infinite"),
            (list("abcd"), errors.ArgumentTypeError, "counts holds text; accepted: numbers"),
            ([1, 2], errors.DataError, "columns differ in length: .*counts 2"),
            ("n", errors.ArgumentTypeError, "counts is the text 'n'. To name a column, pass data="),
            (
                [2**53, 1, 1, 2],
                errors.DataError,
                "counts add up to 9,007,199,254,740,99. rows; acc",
            ),
        ],
    )
    def test_arrays(self, counts, error, message):
        with pytest.raises(error, match=message):
            fa.tabulate(y_pred=[0, 1, 0, 1], sensitive_features=list("aabb"), counts=counts)

    @pytest.mark.parametrize(
        ("counts", "error", "message"),
        [
            (
                [1, 2.5, 1, 1],
                errors.DataError,
                "counts column 'n' is 2.5 in one of 1 invalid rows",
            ),
            ([1, 1, -1, -3], errors.DataError, "counts column 'n' is -1 in one of 2 invalid rows"),
            ([1, None, 1, 1], errors.DataError, "column 'n' is missing in one of 1 invalid rows"),
            ([1, np.nan, 1, 1], errors.DataError, "column 'n' is nan in one of 1 invalid rows"),
            (
                list("abcd"),
                errors.ArgumentTypeError,
                "counts column 'n' holds String; accepted: wh",
            ),
            (
                [2**53, 1, 1, 2],
                errors.DataError,
                "counts add up to 9,007,199,254,740,99. rows; acc",
            ),
        ],
    )
    def test_frames(self, counts, error, message):
        frame = pl.DataFrame({"p": [0, 1, 0, 1], "g": list("aabb"), "n": counts}, strict=False)
        for data in (frame, frame.lazy()):
            with pytest.raises(error, match=message):
                fa.tabulate(data, y_pred="p", sensitive_features="g", counts="n")

    def test_scores_of_too_many(self):
        with pytest.raises(errors.DataError, match="rows with scores; accepted: up to 4,294,967,2"):
            fa.tabulate(
                y_true=[0, 1], y_score=[0.2, 0.4], sensitive_features=list("ab"), counts=[2**32, 1]
            )

    def test_a_column_that_is_not_there(self):
        with pytest.raises(errors.FairAuditError, match="column 'n' does not exist"):
            fa.tabulate({"p": [0, 1], "g": [0, 1]}, y_pred="p", sensitive_features="g", counts="n")


class TestKnownValues:
    def test_by_hand(self):
        cells = fa.tabulate(
            y_pred=[1, 0, 1, 0], sensitive_features=list("aabb"), counts=[30, 70, 0, 80]
        )
        assert cells.n_rows == 180
        assert cells.count.tolist() == [70, 30, 80]

    def test_a_group_of_nobody_is_none(self):
        cells = fa.tabulate(
            y_pred=[1, 0, 2, 0], sensitive_features=list("aabb"), counts=[3, 7, 0, 0]
        )
        assert cells.groups == (("a",),)

    def test_admissions_of_berkeley(self):
        """Women are admitted less in all, -0.142, and more within departments, +.0184."""
        data = berkeley()
        names = {"y_pred": "admitted", "sensitive_features": "sex"}
        cells = fa.tabulate(data, strata="department", counts="persons", **names)
        assert cells.n_rows == 4_526
        rows = {
            name: np.repeat(column, data["persons"])
            for name, column in data.items()
            if name != "persons"
        }
        options = {"metric": "selection_rate", "groups": ["woman", "man"], "rng": 1}
        by_counts = fa.permutation_test(data=cells, n_resamples=999, **options)
        by_rows = fa.permutation_test(
            data=rows, strata="department", n_resamples=999, **names, **options
        )
        assert by_counts.estimate == pytest.approx(0.0184, abs=5e-5)
        assert by_counts.estimate == by_rows.estimate
        assert by_counts.pvalue == by_rows.pvalue
        assert by_counts.confidence_interval == by_rows.confidence_interval
        by_weight = fa.permutation_test(
            data=data,
            strata="department",
            sample_weight="persons",
            n_resamples=99,
            **names,
            **options,
        )
        assert by_weight.estimate == pytest.approx(by_rows.estimate, rel=1e-12)
        plain = fa.tabulate(data, counts="persons", **names)
        assert fa.intervals(
            data=plain, metric="selection_rate", groups=["woman", "man"]
        ).estimate == pytest.approx(-0.1416, abs=5e-5)


class TestReference:
    @pytest.mark.parametrize("seed", range(5))
    def test_arrays_are_repeated(self, seed):
        columns = made(seed)
        expected = tabulated(repeated(columns), counts=False)
        assert tabulated(columns) == expected
        assert tabulated({**columns, "persons": columns["persons"].astype(float)}) == expected
        assert tabulated(columns, n_threads=1) == expected

    @pytest.mark.parametrize("seed", range(3))
    def test_scores_are_repeated(self, seed):
        columns = made(seed)
        rows = repeated(columns)
        expected = tabulated(rows, counts=False, y_score=rows["s"], score_bins=7)
        assert tabulated(columns, y_score=columns["s"], score_bins=7) == expected
        frame = pl.DataFrame(columns)
        assert fa.tabulate(frame, **NAMES, y_score="s", score_bins=7, counts="persons") == expected

    def test_frames_and_files(self, tmp_path):
        columns = made(7, 3_000)
        columns.pop("s")
        expected = tabulated(repeated(columns), counts=False)
        frame = pl.DataFrame(columns)
        frame.write_csv(tmp_path / "data.csv")
        for i, part in enumerate(frame.iter_slices(999)):
            part.write_parquet(tmp_path / f"{i}.parquet")
        for data in (
            frame,
            frame.lazy(),
            columns,
            frame.to_pandas(),
            tmp_path / "data.csv",
            str(tmp_path / "*.parquet"),
        ):
            assert fa.tabulate(data, **NAMES, counts="persons") == expected

    def test_parts_add_up(self):
        columns = made(8)
        parts = [
            {n: c[place] for n, c in columns.items()} for place in (slice(200), slice(200, 500))
        ]
        assert sum(map(tabulated, parts)) == tabulated(columns)
