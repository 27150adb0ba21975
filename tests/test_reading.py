"""How commands read data: rows to keep, a cut, and text files of other kinds."""

import gzip
import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main
from tests.printed import without_source

ROLES = ("--y-true", "repaid", "--y-pred", "approved", "-s", "sex")
#: Commands that read data, and what they need besides.
COMMANDS = {
    "audit": ROLES,
    "permutation": (*ROLES, "-m", "tpr"),
    "intervals": (*ROLES, "-m", "tpr"),
    "equivalence": (*ROLES, "-m", "tpr", "--margin", "0.3"),
    "power": (*ROLES, "-m", "tpr"),
    "calibrate": (*ROLES, "-m", "tpr", "--n-audits", "20", "--n-resamples", "99"),
    "tabulate": ROLES,
    "compare": ("--y-true", "repaid", "--first", "approved", "--second", "later", "-s", "sex",
                "-m", "tpr"),
    "projection": ("--y-true", "repaid", "--y-score", "score", "-s", "sex"),
    "influence": (*ROLES, "-m", "fpr", "--target", "f", "-f", "region"),
    "extremes": ("--y-score", "score", "--counterfactual-score", "flipped", "-s", "sex"),
}  # fmt: skip


def rows(n=1_500, seed=3):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    score = np.clip(0.6 * rng.random(n) + 0.4 * label, 0, 1)
    return pl.DataFrame(
        {
            "repaid": label,
            "approved": (rng.random(n) < 0.3 + 0.4 * label).astype(int),
            "later": (rng.random(n) < 0.3 + 0.4 * label).astype(int),
            "score": score,
            "flipped": np.clip(score + 0.1 * rng.random(n), 0, 1),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["north", "south", "west"], n),
            "age": rng.integers(10, 80, n),
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows().write_csv("loans.csv")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_every_command_that_reads_is_here():
    reading = {
        name
        for name, command in main.commands.items()
        if any(p.name == "data" for p in command.params)
    }
    assert reading - {"init"} == set(COMMANDS)


def seeded(command):
    return () if command in ("power", "tabulate") else ("--seed", "1")


@pytest.mark.parametrize("command", COMMANDS)
def test_rows_to_keep(command, here):
    """A filter gives what the file of these rows gives; another one does not."""
    rows().filter(pl.col("age") >= 18).write_csv("adults.csv")
    more = (*COMMANDS[command], *seeded(command))
    wanted = run(command, "adults.csv", *more)
    found = run(command, "loans.csv", *more, "--where", "age >= 18")
    assert found.exit_code == wanted.exit_code == 0, found.stderr
    told = f"{len(pl.read_csv('adults.csv')):,} of 1,500 rows are kept, where age >= 18"
    if command == "audit":
        assert f"Read: {told}.\n" in found.stdout
        assert without_source(found.stdout) == without_source(wanted.stdout)
        assert f"Read: {told}.\n" in found.stdout
    else:
        assert without_source(found.stdout) == without_source(wanted.stdout)
        assert found.stderr == f"fairaudit: {told}\n"
    assert run(command, "loans.csv", *more).stdout != wanted.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_text_files_of_another_kind(command, here):
    frame = rows().with_columns(
        pl.when(pl.col("age") > 11).then(pl.col("sex")).otherwise(None).alias("sex")
    )
    frame.write_csv("plain.csv")
    frame.with_columns(pl.col("sex").fill_null("?")).write_csv("marked.csv", separator=";")
    text = (here / "marked.csv").read_text("utf-8")
    (here / "other.csv.gz").write_bytes(gzip.compress(text.encode("utf-16")))
    more = (*COMMANDS[command], *seeded(command))
    wanted = run(command, "plain.csv", *more)
    form = ("--delimiter", ";", "--encoding", "utf-16", "--missing", "NA,?")
    found = run(command, "other.csv.gz", *more, *form)
    assert found.exit_code == wanted.exit_code == 0, found.stderr
    assert without_source(found.stdout) == without_source(wanted.stdout)
    assert found.stderr == wanted.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_files_without_a_line_of_names(command, here):
    frame = rows()
    frame.write_csv("nameless.csv", include_header=False)
    text = (here / "nameless.csv").read_text()
    (here / "nameless.csv").write_text(f"a table, of loans\n{text}")
    more = (*COMMANDS[command], *seeded(command))
    wanted = run(command, "loans.csv", *more)
    named = ("--columns", ", ".join(frame.columns), "--skip-lines", "1")
    found = run(command, "nameless.csv", *more, *named)
    assert found.exit_code == wanted.exit_code == 0, found.stderr
    assert without_source(found.stdout) == without_source(wanted.stdout)
    assert found.stderr == wanted.stderr


@pytest.mark.parametrize("option", [("--columns", "a,b"), ("--skip-lines", "1")])
def test_parquet_files_name_their_columns(option, here):
    rows().write_parquet("loans.parquet")
    found = run("audit", "loans.parquet", *ROLES, *option)
    assert found.exit_code == 2
    assert f"{option[0]} cannot be used with Parquet files" in found.stderr


@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if "approved" in COMMANDS[name] and name != "compare"]
)
def test_a_cut_is_the_decision(command, here):
    rows().with_columns(approved=(pl.col("score") >= 0.7).cast(pl.Int8)).write_csv("cut.csv")
    more = (*COMMANDS[command], *seeded(command))
    wanted = run(command, "cut.csv", *more)
    without = [value for value in more if value not in ("--y-pred", "approved")]
    found = run(command, "loans.csv", *without, "--cut", "score=0.7")
    assert found.exit_code == wanted.exit_code == 0, found.stderr
    assert without_source(found.stdout) == without_source(wanted.stdout)


def test_files_say_which_rows_an_audit_is_about(here):
    names = [f"x.{form}" for form in ("md", "txt", "json")]
    outputs = [word for name in names for word in ("-o", name)]
    run("audit", "loans.csv", *ROLES, "--where", "age >= 18", *outputs, "--quiet")
    for name in names:
        assert "rows are kept, where age" in (here / name).read_text()
    loaded = fa.from_dict(json.loads((here / "x.json").read_text()))
    assert loaded.request.filters[0].endswith("of 1,500 rows are kept, where age >= 18")


def test_missing_values_of_their_own(here):
    rows().with_columns(pl.col("sex").replace({"f": "?"})).write_csv("marked.csv")
    found = run("tabulate", "marked.csv", *ROLES, "--missing", "own,?")
    assert found.exit_code == 0, found.stderr
    assert "missing" in found.stdout
    assert "?" not in found.stdout


def test_what_init_proposes_reads_the_file_in_the_same_way(here):
    rows().write_csv("semi colon.csv", separator=";")
    done = run("init", "semi colon.csv", "--delimiter", ";", "--missing", "NA,?")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.endswith(
        "fairaudit audit 'semi colon.csv' --delimiter ';' --missing 'NA,?'\n"
    )
    assert "sex" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--where", "age >="), "--where is 'age >=': 'the end' comes where column 'age'"),
        (("--where", "agee > 1"), "'agee', which does not exist; did you mean 'age'?"),
        (("--where", "age > 200"), "--where 'age > 200' matches none of the 1,500 rows"),
        (("--where", "sex > 1"), "column 'sex' holds text, and 1 is a number"),
        (("--delimiter", "||"), "--delimiter is '||'; accepted: one character"),
        (("--delimiter", "|"), "does not exist; the data have: "),
        (("--encoding", "klingon"), "--encoding is 'klingon'; accepted"),
        (("--encoding", "utf-16"), "cannot be read as utf-16"),
    ],
)
def test_what_is_refused(command, options, message, here):
    result = run(command, "loans.csv", *COMMANDS[command], *options)
    assert result.exit_code == 2
    assert message in result.stderr, result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert [path.name for path in here.iterdir()] == ["loans.csv"]


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ("score", "--cut is 'score'; accepted: a column and a number, such as score=0.7"),
        ("nope=0.5", "--cut names column 'nope', which does not exist"),
        ("sex=0.5", "--cut names 'sex', which holds String; accepted: numbers"),
    ],
)
def test_cuts_that_are_refused(cut, message, here):
    result = run("audit", "loans.csv", "-s", "sex", "--cut", cut)
    assert result.exit_code == 2
    assert message in result.stderr
