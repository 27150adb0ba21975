"""Texts such as "nan" in sensitive features are missing values, wherever the data come from."""

import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.cli import main
from fairaudit_rs.data.labels import MISSING_TEXTS

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

TEXTS = ["nan", "None", "NULL", "na", "<NA>", "Missing", " NaN "]
GROUP = ["a", "b", "nan", "a", "b", "None", "a", "b", "nan"]
LABEL = [1, 0, 1, 0, 1, 1, 0, 1, 0]
NOTE = (
    "sex: the text 'None' in 1 row and 'nan' in 2 rows is read as a missing value; "
    "missing='keep_texts' makes it a group"
)
KNOWN = {("a",): 3, ("b",): 3}
KEPT = {("None",): 1, ("a",): 3, ("b",): 3, ("nan",): 2}


def as_file(kind, folder):
    path = folder / f"rows.{kind}"
    frame = pl.DataFrame({"sex": GROUP, "label": LABEL})
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    return {"data": str(path), "y_true": "label", "sensitive_features": "sex"}


def as_frame(frame):
    return {"data": frame, "y_true": "label", "sensitive_features": "sex"}


KINDS = {
    "list": lambda _: {"y_true": LABEL, "sensitive_features": {"sex": GROUP}},
    "array": lambda _: {"y_true": LABEL, "sensitive_features": {"sex": np.array(GROUP)}},
    "pandas": lambda _: as_frame(pd.DataFrame({"sex": GROUP, "label": LABEL})),
    "categories": lambda _: as_frame(
        pd.DataFrame({"sex": pd.Categorical(GROUP), "label": LABEL})
    ),
    "polars": lambda _: as_frame(pl.DataFrame({"sex": GROUP, "label": LABEL})),
    "lazy": lambda _: as_frame(pl.LazyFrame({"sex": GROUP, "label": LABEL})),
    "arrow": lambda _: as_frame(pa.table({"sex": GROUP, "label": LABEL})),
    "csv": lambda folder: as_file("csv", folder),
    "parquet": lambda folder: as_file("parquet", folder),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data(kind, tmp_path):
    given = KINDS[kind](tmp_path)
    cells = fa.tabulate(**given)
    assert cells.group_sizes() == KNOWN
    assert (cells.n_rows, cells.n_missing) == (9, 3)
    assert [note.text for note in cells.notes] == [NOTE]
    for missing in ("own", "keep_texts"):
        kept = fa.tabulate(**given, missing=missing)
        assert kept.group_sizes() == KEPT
        assert kept.notes == []
    result = fa.permutation_test(**given, metric="base_rate", rng=1)
    assert list(result.group_sizes) == ["a", "b"]
    assert NOTE in result.warnings
    assert "3 of 9 rows have no value of sex and belong to no group" in result.warnings
    kept = fa.permutation_test(**given, metric="base_rate", rng=1, missing="keep_texts")
    assert list(kept.group_sizes) == ["None", "a", "b", "nan"]


@pytest.mark.parametrize("text", TEXTS)
def test_any_case_and_blanks(text):
    assert text.strip().casefold() in MISSING_TEXTS
    assert fa.tabulate(sensitive_features=["a", "b", text]).n_missing == 1


@pytest.mark.parametrize("text", ["Nana", "no", "not a number", "n", "NAs", "none of these"])
def test_other_texts_are_groups(text):
    assert fa.tabulate(sensitive_features=["a", "b", text]).n_missing == 0


def test_missing_values_made_text_by_pandas():
    column = pd.Series(["f", "m", np.nan, "f", "m", None] * 20).astype(str)
    result = fa.permutation_test(
        y_pred=[1, 0, 1, 0, 1, 0] * 20, sensitive_features=column, metric="selection_rate"
    )
    assert list(result.group_sizes) == ["f", "m"]
    assert result.n_missing == 40


def test_missing_values_beside_texts():
    group = ["a", None, "nan", "b"]
    assert fa.tabulate(sensitive_features=group).n_missing == 2
    kept = fa.tabulate(sensitive_features=group, missing="keep_texts")
    assert (list(kept.group_sizes()), kept.n_missing) == ([("a",), ("b",), ("nan",)], 1)
    own = fa.tabulate(sensitive_features=group, missing="own")
    assert list(own.group_sizes()) == [("a",), ("b",), ("nan",), ("missing",)]


def test_strata_and_labels_keep_their_texts():
    cells = fa.tabulate(sensitive_features=list("abab"), strata={"s": ["none", "x", "x", "none"]})
    assert cells.strata == (("none",), ("x",))


def test_cells_keep_what_was_chosen(tmp_path):
    """The choice is made where rows are counted: in memory, in files, and by sums."""
    rows = {"y_true": LABEL, "sensitive_features": {"sex": GROUP, "age": ["o", "y", "y"] * 3}}
    for missing, names in ((None, ["a", "b"]), ("keep_texts", ["None", "a", "b", "nan"])):
        cells = fa.tabulate(**rows, missing=missing)
        cells.write_parquet(tmp_path / "cells.parquet")
        again = fa.Cells.read_parquet(tmp_path / "cells.parquet")
        assert again == cells
        for data in (cells, again, cells.marginalize("sex"), cells + cells):
            test = fa.permutation_test(data=data.marginalize("sex"), metric="base_rate", rng=1)
            assert list(test.group_sizes) == names
        found = fa.permutation_test(data=cells, sensitive_features="sex", metric="base_rate", rng=1)
        assert list(found.group_sizes) == names
    audit = fa.audit(
        data=fa.tabulate(y_pred=LABEL, sensitive_features={"sex": GROUP}), policy="parity", rng=1
    )
    assert NOTE in audit.warnings
    twice = fa.tabulate(**rows) + fa.tabulate(**rows)
    assert twice.missing_texts == (("sex", "None", 2), ("sex", "nan", 4))
    assert twice.marginalize("age").notes == []


def test_tables_of_counts():
    frame = pl.DataFrame({"g": ["a", "b", "NA"], "n": [3, 4, 5]})
    cells = fa.Cells.from_frame(frame, sensitive_features="g", count="n")
    assert (cells.n_missing, cells.missing_texts) == (5, (("g", "NA", 5),))
    kept = fa.Cells.from_frame(frame, sensitive_features="g", count="n", missing="keep_texts")
    assert kept.group_sizes() == {("NA",): 5, ("a",): 3, ("b",): 4}


def test_a_text_that_is_named_says_how_to_keep_it():
    given = {"y_true": LABEL, "sensitive_features": GROUP, "metric": "base_rate"}
    message = "'nan', which is no group of the data.* This text is read as a missing value; missing"
    with pytest.raises(errors.DataError, match=message):
        fa.permutation_test(**given, reference="nan")
    fa.permutation_test(**given, reference="nan", missing="keep_texts")


def test_every_function_says_so():
    rng = np.random.default_rng(0)
    n = 900
    group = rng.choice(["a", "b", "nan"], n)
    score = rng.random(n)
    y_true, y_pred = (rng.random(n) < 0.5).astype(int), (score >= 0.5).astype(int)
    by = {"sensitive_features": {"sex": group}}
    rates = {"y_pred": y_pred, "metric": "selection_rate", **by}
    results = [
        fa.intervals(**rates, n_resamples=9),
        fa.equivalence_test(**rates, margin=0.2, n_resamples=9),
        fa.projection_test(y_true, y_score=score, **by),
        fa.extreme_test(y_score=score / 2, counterfactual_score=score, horizon=100, **by),
        fa.influence_audit(
            None, y_pred, X={"x": score}, target="a", metric="selection_rate", n_draws=9, **by
        ),
        fa.compare_models(y_true, y_pred, 1 - y_pred, metric="tpr", n_resamples=9, **by),
        fa.audit(y_pred=y_pred, policy="parity", rng=1, **by),
    ]
    for result in results:
        [note] = [text for text in result.warnings if "is read as a missing value" in text]
        assert note.startswith("sex: the text 'nan' in ")


def test_audits():
    rng = np.random.default_rng(1)
    religion = rng.choice(["Christian", "Muslim", "None"], 900)
    given = {"y_pred": rng.integers(0, 2, 900), "sensitive_features": {"religion": religion}}
    audit = fa.audit(**given, policy="parity", rng=1)
    assert {group.group for group in audit.questions[0].groups} == {"Christian", "Muslim"}
    n = int((religion == "None").sum())
    assert f"Excluded: {n:,} people without a known religion." in audit.summary()
    assert any(text.startswith("religion: the text 'None' in ") for text in audit.warnings)
    kept = fa.audit(**given, policy="parity", rng=1, missing="keep_texts")
    assert {group.group for group in kept.questions[0].groups} == {"Christian", "Muslim", "None"}
    assert not any("read as a missing value" in text for text in kept.warnings)


def test_the_lenses_of_an_audit_keep_them_too():
    rng = np.random.default_rng(2)
    n = 800
    religion = rng.choice(["Muslim", "None"], n)
    X = pd.DataFrame({"x": rng.normal(size=n), "religion": religion})
    kept = fa.audit(
        y_pred=(X["x"] + (religion == "None") > 0).astype(int),
        sensitive_features={"religion": religion},
        X=X[["x"]],
        policy="parity",
        lenses=["permutation", "influence"],
        missing="keep_texts",
        rng=1,
    )
    [found] = [finding for finding in kept.others if finding.lens == "influence"]
    assert found.reason is None
    assert {found.first, found.second} <= {"None", "Muslim", None}


class TestCommand:
    def run(self, folder, *more):
        path = folder / "rows.csv"
        frame = pl.DataFrame({"sex": GROUP * 30, "hired": LABEL * 30})
        frame.write_csv(path)
        given = ("permutation", path, "-s", "sex", "--y-pred", "hired", "-m", "selection_rate")
        return CliRunner().invoke(
            main, [str(value) for value in (*given, "--seed", "1", "--n-resamples", "99", *more)]
        )

    def test_missing(self, tmp_path):
        plain = self.run(tmp_path)
        assert plain.exit_code == 0, plain.stderr
        assert "the text 'None' in 30 rows and 'nan' in 60 rows is read as" in plain.stdout
        kept = self.run(tmp_path, "--missing", "keep_texts")
        assert "read as a missing value" not in kept.stdout
        assert re.search(r"^  sex=nan +60 ", kept.stdout, re.MULTILINE)
        marked = self.run(tmp_path, "--missing", "a,keep_texts")
        assert "90 of 270 rows have no value of sex" in marked.stdout
        both = self.run(tmp_path, "--missing", "own,keep_texts")
        assert both.exit_code == 2
        assert "missing is 'keep_texts' and 'own'. Give one of them" in both.stderr
