"""Thirty kinds of bad input through the real command: exit code 2, one message, nothing written."""

import gzip
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from .test_reading import rows

COMMAND = [sys.executable, "-c", "from fairaudit_rs.cli import main; main()"]
ROLES = ("--y-true", "repaid", "--y-pred", "approved", "-s", "sex")
OUT = ("-o", "out.md", "-o", "out.json")
POLICY = "[policy]\nname = 'x'\n[[policy.criterion]]\nmetric = 'tpr'\ntolerance = 0.1\n"


def changed(old, new):
    return POLICY.replace(old, new)


#: What each kind is: the files beside loans.csv, the arguments, and what the message says.
KINDS = {
    # files
    "no such file": ({}, ("none.csv", *ROLES), "no such file"),
    "no file fits": ({}, ("none*.parquet", *ROLES), "no file matches it as a pattern"),
    "a folder without data": ({}, (".", *ROLES), "without Parquet files"),
    "another kind of file": ({"a.xlsx": b"PK"}, ("a.xlsx", *ROLES), "type .xlsx; accepted"),
    "empty": ({"a.csv": b""}, ("a.csv", *ROLES), "cannot be read"),
    "no rows": ({"a.csv": b"repaid,approved,sex\n"}, ("a.csv", *ROLES), "no rows"),
    "short row": (
        {"a.csv": b"repaid,approved,sex\n1,1,f\n1,1\n"}, ("a.csv", *ROLES), "cannot be read",
    ),
    "long row": (
        {"a.csv": b"repaid,approved,sex\n1,1,f,9\n1,1,m\n"}, ("a.csv", *ROLES), "cannot be read",
    ),
    "a column twice": (
        {"a.csv": b"repaid,approved,sex,sex\n1,1,f,f\n"}, ("a.csv", *ROLES), "occurs twice",
    ),
    "no text": (
        {"a.csv": b"repaid,approved,sex\n1,1,\xff\n"}, ("a.csv", *ROLES), "--encoding latin-1",
    ),
    "no gzip": ({"a.csv.gz": b"repaid\n"}, ("a.csv.gz", *ROLES), "Not a gzipped file"),
    "cut off": (
        {"a.csv.gz": gzip.compress(b"repaid,approved,sex\n" + b"1,1,f\n" * 99, mtime=0)[:40]},
        ("a.csv.gz", *ROLES), "cannot be read",
    ),
    "no Parquet": ({"a.parquet": b"PAR1"}, ("a.parquet", *ROLES), "cannot be read"),
    "mixed files": (
        {"x1.csv": b"a\n1\n", "x2.parquet": b""}, ("x*", *ROLES), "not mixed",
    ),
    "another separator": (
        {"a.csv": b"repaid;approved;sex\n1;1;f\n"}, ("a.csv", *ROLES), "--delimiter ';'",
    ),
    "labels of three kinds": (
        {"a.csv": b"repaid,approved,sex\n" + b"1,1,f\n2,0,m\n3,1,m\n" * 9}, ("a.csv", *ROLES),
        "--y-true",
    ),
    "two texts, none favourable": (
        {"a.csv": b"repaid,approved,sex\n" + b"1,yes,f\n0,no,m\n" * 40}, ("a.csv", *ROLES),
        "--favourable is not given and --y-pred holds 'no', 'yes'",
    ),
    "missing labels": (
        {"a.csv": b"repaid,approved,sex\n" + b"1,1,f\n,0,m\n0,1,m\n" * 9}, ("a.csv", *ROLES),
        "--y-true is missing",
    ),
    # policies
    "no TOML": ({"p.toml": b"[policy"}, (*ROLES, "--policy", "p.toml"), "line 1: not valid TOML"),
    "no policy": ({"p.toml": b""}, (*ROLES, "--policy", "p.toml"), "no table [policy]"),
    "unknown key": (
        {"p.toml": changed("tolerance", "tolerence")}, (*ROLES, "--policy", "p.toml"),
        "line 5: tolerence is not a key of a criterion",
    ),
    "unknown metric": (
        {"p.toml": changed("'tpr'", "'tqr'")}, (*ROLES, "--policy", "p.toml"), "'tqr'",
    ),
    "negative tolerance": (
        {"p.toml": changed("0.1", "-0.1")}, (*ROLES, "--policy", "p.toml"), "tolerance is -0.1",
    ),
    "text for a number": (
        {"p.toml": changed("0.1", "'0.1'")}, (*ROLES, "--policy", "p.toml"), "line 5: tolerance is",
    ),
    "level of 5": (
        {"p.toml": changed("name = 'x'", "name = 'x'\nalpha = 5")}, (*ROLES, "--policy", "p.toml"),
        "line 3: alpha is 5",
    ),
    "low floor": (
        {"p.toml": changed("name = 'x'", "name = 'x'\nfloor = 1")}, (*ROLES, "--policy", "p.toml"),
        "line 3: floor is 1",
    ),
    "unknown option of a rule": (
        {"p.toml": b"[policy]\npreset = 'nyc_ll144'\nrule_options = { gender = 'sex' }\n"},
        (*ROLES, "--policy", "p.toml"), "line 3: rule_options has 'gender'",
    ),
    "rule of a column that is none": (
        {"p.toml": b"[policy]\npreset = 'nyc_ll144'\nrule_options = { race = 'origin' }\n"},
        (*ROLES, "--policy", "p.toml"), "'origin', which is not a sensitive feature",
    ),
    "no UTF-8": ({"p.toml": b"\xff\xfe"}, (*ROLES, "--policy", "p.toml"), "p.toml"),
    # options
    "unknown option": ({}, (*ROLES, "--strickt"), "No such option"),
    "unknown column": ({}, (*ROLES, "-s", "nope"), "column 'nope' does not exist"),
    "unknown preset": ({}, (*ROLES, "--preset", "legal"), "'legal' is not one of"),
    "filter": ({}, (*ROLES, "--where", "sex == "), "--where is 'sex == '"),
    "cut and decision": ({}, (*ROLES, "--cut", "score=1"), "Give one of them"),
    "separator": ({}, (*ROLES, "--delimiter", ";;"), "--delimiter is ';;'"),
    "encoding": ({}, (*ROLES, "--encoding", "?"), "--encoding is '?'"),
    "threads": ({}, (*ROLES, "--threads", "0"), "--threads is 0"),
    "kind of output": ({}, (*ROLES, "-o", "out.pdf"), "accepted: a name that ends in .txt"),
    "no folder": ({}, (*ROLES, "-o", "no/out.md"), "its directory does not exist"),
    "no column of counts": ({}, (*ROLES, "--count", "nope"), "column 'nope' does not exist"),
}  # fmt: skip


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def outcome(folder, files, arguments):
    """Run the command in a folder of its own; return how it ended, and whether files stayed."""
    folder.mkdir()
    rows(300).write_csv(folder / "loans.csv")
    (folder / "out.json").write_text("old")
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)
    before = contents(folder)
    own = arguments if not arguments[0].startswith("-") else ("loans.csv", *arguments)
    done = subprocess.run(
        [*COMMAND, "audit", *own, *OUT],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False, env={**os.environ},
    )  # fmt: skip
    return done, contents(folder) == before


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Run all kinds, two at a time."""
    root = tmp_path_factory.mktemp("bad")
    with ThreadPoolExecutor(2) as pool:
        started = {
            kind: pool.submit(outcome, root / str(i), *KINDS[kind][:2])
            for i, kind in enumerate(KINDS)
        }
    return {kind: value.result() for kind, value in started.items()}


def test_there_are_thirty():
    assert len(KINDS) >= 30


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input(kind, outcomes):
    done, same = outcomes[kind]
    assert done.returncode == 2, done.stdout
    assert KINDS[kind][2] in done.stderr
    assert "Traceback" not in done.stderr
    assert "a bug of this package" not in done.stderr
    assert done.stdout == ""
    assert same


def test_good_input_is_no_error(tmp_path):
    """The same call writes its files where nothing is wrong."""
    done, same = outcome(tmp_path / "good", {"p.toml": POLICY}, (*ROLES, "--policy", "p.toml"))
    assert done.returncode in (0, 1), done.stderr
    assert not same
    assert (tmp_path / "good" / "out.md").read_text().startswith("# ")
    assert (tmp_path / "good" / "out.json").read_text() != "old"
