"""CSV files: looked at once, counted in the same look, and read as polars reads them."""

import re

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import _native
from fairaudit_rs.data.tables import AuditTable

ROLES = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": "sex"}
HEADER = "id,sex,repaid,approved"


def table_of(rows, end="\n"):
    return end.join([HEADER, *rows]) + end


def many_rows(n=3_000, sexes=("f", "m", "", '"x, y"', '"say ""no"""', '"two\nlines"')):
    rng = np.random.default_rng(1)
    texts = (sexes[k] for k in rng.integers(0, len(sexes), n))
    return [f"{i},{text},{rng.integers(2)},{rng.integers(2)}" for i, text in enumerate(texts)]


def cells_of(data, **roles):
    return fa.tabulate(data=data, **(ROLES | roles))


def told(cells):
    parts = ("groups", "strata", "group", "stratum", "y_true", "y_pred", "count")
    return [repr(list(getattr(cells, part))) for part in parts]


def same(path, **roles):
    """Return whether the cells of a file are those of the frame that polars makes of it."""
    whole = cells_of(pl.read_csv(path, infer_schema_length=10_000), **roles)
    assert told(cells_of(path, **roles)) == told(whole)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("blank", [False, True])
@pytest.mark.parametrize("last", ["", "9,f,1,0"])
def test_cells_of_a_file_are_those_of_its_frame(end, blank, last, tmp_path):
    path = tmp_path / "rows.csv"
    rows = many_rows()
    if blank:
        # polars takes a blank line for a row of missing values: such files are not counted here.
        rows = ["3001,f,1,1", "", *rows]
    path.write_bytes((table_of(rows, end) + last).encode())
    roles = {"y_true": None, "y_pred": None} if blank else {}
    same(path, **roles)
    same(path, **roles, sensitive_features=["sex", "repaid"])


@pytest.mark.parametrize(
    "sexes",
    [
        ("1", "2", "-0"),
        ("1", "1.0", "nan", ""),
        ("true", "false", "True"),
        ("1e3", "1000", "1000.0"),
        ("01", "1", '"1"'),
        (" a", "a", "a "),
        ("2024-01-31", "2024-02-01"),
        ("é", "e", "Ω and a longer text"),
    ],
)
def test_fields_mean_what_polars_reads(sexes, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(table_of(many_rows(sexes=sexes)), encoding="utf-8")
    same(path)


def test_a_file_is_read_once(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(table_of(many_rows()))
    whole = cells_of(path)
    table = AuditTable.make(data=path, **ROLES)
    path.unlink()
    assert told(table.cells()) == told(whole)
    assert table.cells(columns=["y_true"]).n_rows == 3_000


def test_files_of_different_types(tmp_path):
    for i, sexes in enumerate([("1", "2"), ("1.5", "2")]):
        (tmp_path / f"{i}.csv").write_text(table_of(many_rows(sexes=sexes)))
    assert cells_of(tmp_path / "*.csv").groups == ((1.0,), (1.5,), (2.0,))


def test_more_rows_than_are_counted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(table_of(many_rows(70_000)))
    assert _native.read_csv(str(path), ["id"], _native.Call()).distinct is None
    same(path, sensitive_features=["sex"], strata="id")
    assert cells_of(path, strata="id").n_rows == 70_000


@pytest.mark.parametrize("late", ["f", "0x1", "1.5"])
def test_a_value_that_does_not_fit_is_told_of_the_file(late, tmp_path):
    path = tmp_path / "rows.csv"
    rows = many_rows(11_000, sexes=("1", "2"))
    path.write_text(table_of([*rows, f"0,{late},1,1"]))
    reason = f"could not parse `{late}` as dtype `i64` at column 'sex' (column number 2)"
    with pytest.raises(fa.errors.DataError, match=re.escape(reason)):
        cells_of(path)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("1,f,1", "line 3002 has 3 fields; accepted: 4, as the header"),
        ("1,f,1,1,1", "line 3002 has 5 fields; accepted: 4, as the header"),
        ('1,"f,1,1', "a quote in the row of line 3002 is not closed; accepted: closed quotes"),
    ],
)
@pytest.mark.parametrize("columns", [ROLES, ROLES | {"strata": "id"}])
def test_rows_of_another_length(row, told, columns, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(table_of([*many_rows(sexes=("f", "m")), row]))
    with pytest.raises(fa.errors.DataError, match=re.escape(f"{path} cannot be read: {told}")):
        fa.tabulate(data=path, **columns)


def test_a_name_that_occurs_twice(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("sex,repaid,approved,sex\nf,1,1,m\n")
    with pytest.raises(fa.errors.ColumnError, match="column 'sex' occurs twice; accepted: 'sex"):
        cells_of(path)
