"""Text files with other separators and encodings, compressed, and with blanks."""

import gzip

import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs.data.filtered_files import FileOptions
from fairaudit_rs.data.frames import column_names, scan_files
from fairaudit_rs.data.text_files import TextFormat
from fairaudit_rs.errors import ArgumentError, ColumnError, FairAuditError

TEXT = 'repaid,name,sex\n1,José,f\n0,"a,b",m\n1,NA,?\n'
WANTED = pl.DataFrame({"repaid": [1, 0, 1], "name": ["José", "a,b", "NA"], "sex": ["f", "m", "?"]})


def read(path, **form):
    return scan_files(path, TextFormat(**form)).collect()


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("a.csv", TEXT.encode(), {}),
        ("a.csv.gz", gzip.compress(TEXT.encode(), mtime=0), {}),
        ("a.CSV.GZ", gzip.compress(TEXT.encode(), mtime=0), {}),
        ("a.csv", TEXT.encode("latin-1"), {"encoding": "latin-1"}),
        ("a.csv", TEXT.encode("utf-16"), {"encoding": "utf-16"}),
        ("a.csv", TEXT.encode("utf-8-sig"), {"encoding": "utf-8"}),
        ("a.csv.gz", gzip.compress(TEXT.encode("utf-8-sig"), mtime=0), {}),
        ("a.csv", TEXT.replace("\n", "\r\n").encode(), {"delimiter": ","}),
        ("a.tsv", TEXT.replace("a,b", "a;b").replace(",", "\t").replace(";", ",").encode(), {}),
        ("a.data", TEXT.encode(), {"delimiter": ","}),
        ("a.csv", b" repaid , name,sex\n 1 , Jos\xc3\xa9,f\n0, \"a,b\" ,m\n1,NA, ?\n", {}),
        ("a.csv", TEXT.replace("a,b", "a b").replace(",", ";").replace("a b", "a,b").encode(),
         {"delimiter": ";"}),
    ],
    ids=range(12),
)  # fmt: skip
def test_the_same_table(name, content, form, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    assert read(path, **form).equals(WANTED)
    assert column_names(path, TextFormat(**form)) == WANTED.columns


def test_blanks_stay_where_names_have_none(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n x,1\ny ,2\n")
    for form in ({}, {"missing": ("?",)}):
        assert read(tmp_path / "a.csv", **form)["a"].to_list() == [" x", "y "]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_texts_of_missing_values(ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    (WANTED.write_csv if ending == "csv" else WANTED.write_parquet)(path)
    form = TextFormat(missing=("NA", "?"))
    found = FileOptions(form=form).opened(path).frame.collect()
    assert found["name"].to_list() == ["José", "a,b", None]
    assert found["sex"].to_list() == ["f", "m", None]
    assert found["repaid"].to_list() == [1, 0, 1]


def test_numbers_stay_numbers_beside_texts_of_missing_values(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\nNA\n2\n")
    assert read(tmp_path / "a.csv", missing=("NA",))["x"].to_list() == [1, None, 2]


@pytest.mark.parametrize(
    ("name", "content", "form", "message"),
    [
        ("a.csv", b"a;b\n1;2;3\n", {"delimiter": ";"}, "line 2 has 3 values, and the first line 2"),
        ("a.csv", b"a;b\n1\n", {"delimiter": ";"}, "line 2 has 1 values"),
        ("a.csv", b"a,b\n1,2\n", {"columns": ("x", "y", "z")}, "1 has 2 .* --columns names 3$"),
        ("a.csv", b"a,b\n1,2\n", {"columns": ("x", "x")}, "columns names 'x', which is used twi"),
        ("a.csv", b"a,b\n1,2\n", {"columns": ("x", "")}, "columns names '', which is empty"),
        ("a.csv.gz", gzip.compress(b"|x\na,b\n1,2\n", mtime=0), {}, "with --skip-lines 1"),
        ("a.csv", b"a,b\n", {"skip_lines": 3}, "it is empty"),
        ("a.csv", b"", {"delimiter": ";"}, "it is empty"),
        ("a.csv", "é\n1\n".encode("latin-1"), {}, "--encoding latin-1"),
        ("a.csv", "é\n1\n".encode("latin-1"), {"missing": ("x",)}, "as utf-8.*--encoding latin-1"),
        ("a.csv.gz", b"a\n1\n", {}, "Not a gzipped file"),
        ("a.csv.gz", gzip.compress(b"a\n1\n" * 999, mtime=0)[:30], {}, "ended before"),
        ("a.gz", gzip.compress(b"a\n1\n", mtime=0), {}, r"type \.gz; accepted"),
        ("a.txt", b"a\n1\n", {}, r"type \.txt; accepted"),
    ],
)  # fmt: skip
def test_what_is_refused(name, content, form, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FairAuditError, match=message):
        read(tmp_path / name, **form)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"delimiter": ";;"}, "delimiter is ';;'; accepted: one character"),
        ({"delimiter": ""}, "delimiter is ''"),
        ({"delimiter": "\n"}, "delimiter is"),
        ({"delimiter": '"'}, "delimiter is"),
        ({"encoding": "klingon"}, "encoding is 'klingon'; accepted: utf-8"),
        ({"encoding": "hex"}, "encoding is 'hex'"),
    ],
)
def test_formats_that_are_refused(form, message):
    with pytest.raises(ArgumentError, match=message):
        TextFormat(**form)


def test_another_separator_is_suggested(tmp_path):
    (tmp_path / "a.csv").write_text("a;b\n1;2\n")
    with pytest.raises(ColumnError, match="--delimiter ';'"):
        fa.tabulate(data=str(tmp_path / "a.csv"), sensitive_features="a")


def test_compressed_files_in_python(tmp_path):
    frame = pl.DataFrame({"g": ["a", "b"] * 40, "y": [0, 1, 1, 0] * 20})
    frame.write_csv(tmp_path / "a.csv")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    given = {"y_pred": "y", "sensitive_features": "g", "metric": "selection_rate", "rng": 1}
    plain, packed = (
        fa.permutation_test(data=str(tmp_path / name), **given) for name in ("a.csv", "a.csv.gz")
    )
    assert plain == packed


def test_a_file_without_a_line_of_names(tmp_path):
    (tmp_path / "a.csv").write_text("1, f\n0, m\n\n")
    found = read(tmp_path / "a.csv", columns=("repaid", "sex"))
    assert found.to_dict(as_series=False) == {"repaid": [1, 0], "sex": ["f", "m"]}
    assert column_names(tmp_path / "a.csv", TextFormat(columns=("repaid", "sex"))) == found.columns


def test_lines_above_the_table(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf,X1,X2\nid,sex,y\n1,f,0\n2,m,1\n")
    found = read(tmp_path / "a.csv", skip_lines=1)
    assert found.to_dict(as_series=False) == {"id": [1, 2], "sex": ["f", "m"], "y": [0, 1]}


@pytest.mark.parametrize("form", [{}, {"delimiter": ","}])
def test_a_name_that_occurs_twice_fails_only_where_it_is_asked_for(form, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("sex,score,y,score\nf,1,0,3\nm,2,1,4\n")
    found = read(path, **form)
    assert found.columns == ["sex", "score (column 2)", "y", "score (column 4)"]
    assert found["score (column 4)"].to_list() == [3, 4]
    told = r"'score' occurs twice; accepted: 'score \(column 2\)' or 'score \(column 4\)'"
    with pytest.raises(ColumnError, match=told):
        fa.tabulate(data=path, y_pred="score", sensitive_features="sex")
    assert fa.tabulate(data=path, y_pred="y", sensitive_features="sex").n_rows == 2
