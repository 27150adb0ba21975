"""Names that could steer a terminal, and files that are none."""

import os
import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs import _native
from fairaudit_rs.cli import main
from fairaudit_rs.data.groups import escape_controls, group_name
from fairaudit_rs.errors import DataError

from ..children import run_child

#: Red letters, a line of one's own, going back, the order of letters, half a surrogate.
STEERING = ("\x1b[31mred", "two\nlines", "over\rwritten", "ab\u202edc", "\ud800", "\x9b2J")


@pytest.mark.parametrize("name", STEERING)
def test_names_that_steer_are_written_as_codes(name):
    shown = group_name(name)
    assert shown.isprintable()
    assert shown.encode().decode("unicode_escape").encode("utf-8", "surrogatepass") == name.encode(
        "utf-8", "surrogatepass"
    )
    assert group_name(("a", name)) == f"a & {shown}"


def test_other_names_stay_as_they_are():
    for name in ("black", "Ω é 日本", "a & b", "\\x1b", "no\u00a0break", "a\u3000b", 3, None, 0.5):
        assert group_name(name) == str(name)
    assert escape_controls("a\nb\r", kept="\n") == "a\nb\\r"


def audits(name):
    n = 60
    y_true, y_pred = np.arange(n) % 2, np.arange(n) // 2 % 2
    groups = np.where(np.arange(n) % 3 == 0, "b", name).astype(object)
    data = {"y_true": y_true, "y_pred": y_pred, "sensitive_features": groups}
    yield fa.permutation_test(**data, metric="tpr")
    yield fa.intervals(**data, metric="tpr")
    yield fa.equivalence_test(**data, metric="tpr", margin=0.1)
    yield fa.projection_test(
        y_true, y_score=np.linspace(0, 1, n), sensitive_features=groups, notion="statistical_parity"
    )
    yield fa.influence_audit(
        **data, target=name, X=np.arange(n)[:, None] % 5, metric="selection_rate", n_draws=19
    )


def test_no_result_prints_what_steers():
    name = "".join(word for word in STEERING if word != "\ud800")
    for result in audits(name):
        text = f"{result}{result!r}{result._repr_html_()}"
        assert escape_controls(text, kept="\n") == text
        assert "red" not in text or "\\x1b[31mred" in text
        assert "\nlines" not in text


def test_no_command_prints_what_steers(tmp_path):
    """Groups, names of columns and values in messages."""
    n, name = 60, "\x1b[31mred"
    rows = {"y": np.arange(n) % 2, f"p{name}": np.arange(n) // 2 % 2}
    rows["g"] = np.where(np.arange(n) % 3 == 0, "b", name)
    pl.DataFrame(rows).write_parquet(tmp_path / "data.parquet")
    common = ("--y-true", "y", "--y-pred", f"p{name}", "-s", "g")
    for arguments in (
        ("permutation", "-m", "tpr", *common),
        ("permutation", "-m", "tpr", *common[:-1], name),
        ("permutation", "-m", name, *common),
        ("permutation", "-m", "tpr", *common, "--reference", f"{name}x"),
        ("influence", "-m", "tpr", *common, "--target", name, "-f", f"p{name}"),
        ("calibrate", "-m", "tpr", *common, "--n-audits", "10", "--n-resamples", "19"),
    ):
        path = str(tmp_path / "data.parquet")
        done = CliRunner().invoke(main, [arguments[0], path, *arguments[1:]])
        assert done.exit_code in (0, 1, 2), done.output
        assert "\x1b" not in done.output
        assert r"\x1b[31mred" in done.output or arguments[0] == "calibrate"


def test_a_group_is_found_by_its_name_and_by_what_is_shown():
    data = {"y_pred": [0, 1] * 20, "sensitive_features": ["a\nb", "c", "d", "d"] * 10}
    for name in ("a\nb", r"a\nb"):
        found = fa.permutation_test(**data, metric="selection_rate", reference=name)
        assert found.comparisons[0].second == "a\nb"


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_pipes_are_refused(ending, tmp_path):
    pipe = tmp_path / f"rows{ending}"
    os.mkfifo(pipe)
    for data in (pipe, [pipe], str(tmp_path / f"*{ending}")):
        with pytest.raises(DataError, match=r"which is a named pipe; accepted: a regular file"):
            fa.tabulate(data, y_pred="p", sensitive_features="g")
    with pytest.raises(DataError, match=r"path is .*which is a named pipe"):
        fa.Cells.read_parquet(pipe)


def test_other_files_that_are_none(tmp_path):
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    with pytest.raises(DataError, match="which is not a regular file"):
        fa.tabulate(tmp_path / "zero.csv", y_pred="p", sensitive_features="g")
    for path in ("nowhere", "zero\0", tmp_path):
        with pytest.raises(DataError, match=r"cannot be read|not a regular file"):
            fa.Cells.read_parquet(path)


@pytest.mark.parametrize("text", ['f,1\nm,"0\n', '"f,1\nm,0\n', 'f,1\nm,0\n"m'])
def test_a_quote_without_an_end_is_named_by_its_line(text, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"g,p\n{text}")
    line = 2 + text.partition('"')[0].count("\n")
    told = f"{path} cannot be read: a quote in the row of line {line} is not closed"
    with pytest.raises(DataError, match=re.escape(told)):
        fa.tabulate(path, y_pred="p", sensitive_features="g")


class TestDamagedParquet:
    """Headers of pages that hold what cannot be, for which polars ends the process."""

    @pytest.fixture
    def rows(self, tmp_path):
        path = tmp_path / "rows.parquet"
        pl.DataFrame({"p": [0, 1] * 20, "g": ["a", "b", "b", "a"] * 10}).write_parquet(
            path, compression="uncompressed", use_pyarrow=False
        )
        return path

    #: Numbers of values as Thrift writes them, of data pages and of pages of dictionaries.
    @pytest.mark.parametrize(
        ("known", "damaged", "message"),
        [
            (b"\x2c\x15\x50", b"\x2c\x15\x15", "number of values is -11: the file is damaged"),
            (b"\x2c\x15\x50", b"\x2c\x15\x52", "number of values is 41: the file is damaged"),
            (b"\x4c\x15\x04", b"\x4c\x15\x7d", "number of values is -63: the file is damaged"),
            (b"\x4c\x15\x04", b"\x4c\x15\x7c", "of a byte or more each, is 62: the file is dam"),
        ],
    )
    def test_numbers_that_cannot_be(self, rows, known, damaged, message):
        content = rows.read_bytes()
        assert content.count(known) == 2
        _native.check_parquet(rows, None, _native.Call())
        rows.write_bytes(content.replace(known, damaged, 1))
        with pytest.raises(
            DataError, match=f'cannot be read: column "p" has a page whose.*{message}'
        ):
            fa.tabulate(rows, y_pred="p", sensitive_features="g")
        with pytest.raises(DataError, match=message):
            fa.Cells.read_parquet(rows)
        # Of other columns nobody makes room for values.
        _native.check_parquet(rows, ["g"], _native.Call())

    def test_pages_of_many_kinds(self, tmp_path):
        frame = pl.DataFrame(
            {
                "numbers": np.arange(3_000),
                "long": ["x" * 70_000] + ["y"] * 2_999,
                "lists": [[1, 2, None], [], None] * 1_000,
                "missing": [None, True, False] * 1_000,
                "structs": [{"a": 1, "b": "x"}] * 3_000,
            }
        )
        for compression in ("uncompressed", "zstd", "snappy"):
            for size in (7, 100_000):
                path = tmp_path / f"{compression}-{size}.parquet"
                frame.write_parquet(
                    path, compression=compression, data_page_size=size, row_group_size=1_001
                )
                _native.check_parquet(path, None, _native.Call())

    def test_no_changed_byte_ends_the_process(self, rows):
        """In a process of its own."""
        code = (
            "import fairaudit_rs as fa\n"
            f"path = {str(rows)!r}\n"
            "content, refused = open(path, 'rb').read(), 0\n"
            "for place in range(len(content)):\n"
            "    changed = bytearray(content)\n"
            "    changed[place] = 0x15 if place % 2 else 0x7f\n"
            "    open(path, 'wb').write(changed)\n"
            "    try:\n"
            "        fa.tabulate(path, y_pred='p', sensitive_features='g')\n"
            "    except fa.errors.FairAuditError:\n"
            "        refused += 1\n"
            "print(len(content), refused)\n"
        )
        done = run_child(code)
        assert done.returncode == 0, done.stderr[-500:]
        size, refused = map(int, done.stdout.split())
        assert 100 < refused < size
