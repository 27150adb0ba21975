"""Output of commands: rows and seeds, many groups in few lines, nothing, on terminals."""

import json
import os
import pty
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from .test_reading import COMMANDS, rows, run, seeded

COMMAND = [sys.executable, "-c", "from fairaudit_rs.cli import main; main()"]
#: What prints a table of its own.
PLAIN = {"tabulate"}
SEEDED = sorted(set(COMMANDS) - {"tabulate", "power"})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows().write_csv("loans.csv")
    state = np.random.default_rng(1).integers(10, 40, 12_000).astype(str)
    rows(12_000).with_columns(sex=pl.Series(state)).write_csv("many.csv")
    return tmp_path


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - PLAIN))
def test_rows_of_each_group(command, here):
    found = run(command, "loans.csv", *COMMANDS[command], *seeded(command))
    sizes = dict(pl.read_csv("loans.csv").group_by("sex").len().iter_rows())
    if command == "audit":
        assert "1,500 rows" in found.stdout
        found = run(command, "loans.csv", *COMMANDS[command], "--format", "md")
    for n in sizes.values():
        assert str(n) in found.stdout
    if command not in ("audit", "calibrate", "power"):
        assert re.search(rf"^ .* f +{sizes['f']}\b", found.stdout, re.MULTILINE)


def test_rows_without_a_group_are_counted(here):
    frame = rows().with_columns(pl.when(pl.col("age") > 11).then(pl.col("sex")).alias("sex"))
    frame.write_csv("some.csv")
    found = run("permutation", "some.csv", *COMMANDS["permutation"], "--seed", "1")
    n = frame["sex"].null_count()
    assert n > 10
    assert f"Note: {n} of 1,500 rows have no value of sex and belong to no group." in found.stdout


@pytest.mark.parametrize("command", SEEDED)
def test_the_seed_is_the_last_word(command, here):
    found = run(command, "loans.csv", *COMMANDS[command], "--seed", "7")
    assert found.stdout.endswith("\nseed 7\n")
    chosen = run(command, "loans.csv", *COMMANDS[command])
    seed = re.search(r"\nseed (\d+)\n\Z", chosen.stdout)
    assert seed is not None
    again = run(command, "loans.csv", *COMMANDS[command], "--seed", seed[1])
    assert again.stdout == chosen.stdout


@pytest.mark.parametrize("command", ["permutation", "intervals", "compare", "projection", "audit"])
def test_many_pairs_are_a_few_lines(command, here):
    file = () if command == "audit" else ("--json", "x.json")
    found = run(command, "many.csv", *COMMANDS[command], "--seed", "1", *file)
    assert found.exit_code == 0, found.stderr
    assert len(found.stdout.splitlines()) < 50
    if command == "audit":
        return
    assert "more " in found.stdout
    assert ": --json FILE has them all" in found.stdout
    if command in ("permutation", "compare"):
        pairs = json.loads((here / "x.json").read_text())[0]["comparisons"]
        assert len(pairs) == 435
        assert "and 430 more pairs" in found.stdout
        least = min(pairs, key=lambda entry: (entry["adjusted_pvalue"], entry["pvalue"]))
        assert re.search(rf"sex={least['first']} +sex={least['second']} ", found.stdout)


def test_fifteen_pairs_are_all_there(here):
    rng = np.random.default_rng(2)
    frame = rows(3_000).with_columns(sex=pl.Series(rng.choice(list("abcdef"), 3_000)))
    frame.write_csv("six.csv")
    found = run("permutation", "six.csv", *COMMANDS["permutation"], "--seed", "1")
    pairs = found.stdout.partition("Pairs of groups:")[2].partition("\n\n")[0]
    assert len(re.findall(r"^  [a-f] +[a-f] ", pairs, re.MULTILINE)) == 15
    assert "more pairs" not in found.stdout


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - PLAIN))
def test_quiet(command, here):
    more = (*COMMANDS[command], *seeded(command), "--where", "age > 11")
    file = ("-o", "x.json") if command == "audit" else ("--json", "x.json")
    found = run(command, "loans.csv", *more, "-q", *file)
    assert (found.exit_code, found.output) == (0, "")
    assert json.loads((here / "x.json").read_text())
    wrong = run(command, "none.csv", *more, "-q")
    assert wrong.exit_code == 2
    assert "no such file" in wrong.stderr
    assert run(command, "loans.csv", *more).stdout != ""


def on_a_terminal(arguments, columns, **environment):
    """Return what a command prints on a terminal of so many columns."""
    master, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "50", **environment}
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=terminal, stderr=subprocess.DEVNULL,
        env=environment,
    )  # fmt: skip
    os.close(terminal)
    printed = b""
    while True:
        try:
            part = os.read(master, 65_536)
        except OSError:
            break
        if not part:
            break
        printed += part
    os.close(master)
    process.wait(timeout=60)
    return printed.decode().replace("\r\n", "\n")


def test_a_terminal_wraps_sentences_and_nothing_else_changes(here):
    arguments = ("permutation", "loans.csv", *COMMANDS["permutation"], "--seed", "1")
    plain = run(*arguments).stdout
    assert max(map(len, plain.splitlines())) > 120
    for columns in (60, 100):
        printed = on_a_terminal(arguments, columns)
        assert printed.split() == plain.split()
        assert max(len(line) for line in printed.splitlines()) <= columns
    assert on_a_terminal(arguments, 400) == plain


MODULES = ("messages", "show", "audit", "demo")
#: What is printed of groups with long names, of many metrics, of rules and of questions that fail.
WIDE = {
    "one metric after the other": (
        "permutation", "long.csv", "-s", "sex", "-m", "positive_predictive_value", "-m", "f1",
        "-m", "equalized_odds", "--y-true", "repaid", "--y-pred", "approved",
    ),
    "long names": ("audit", "long.csv", *COMMANDS["audit"]),
    "a rule": ("audit", "long.csv", "-s", "sex", "--y-pred", "approved", "--preset", "nyc_ll144"),
    "few rows": ("audit", "long.csv", *COMMANDS["audit"], "--where", "age > 60"),
    "metrics": ("metrics",),
    "demo": ("demo", "--rows", "500"),
}  # fmt: skip


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("name", [*sorted(set(COMMANDS) - PLAIN), *WIDE])
def test_no_line_is_wider_than_the_terminal(name, columns, here, monkeypatch):
    names = ["a rather long name of a group of people", "another one", "x" * 64]
    state = pl.Series(np.random.default_rng(1).choice(names, 1_500))
    rows().with_columns(sex=state).write_csv("long.csv")
    arguments = WIDE.get(name, (name, "loans.csv", *COMMANDS.get(name, ())))
    seed = () if name in ("metrics", "demo", "power") else ("--seed", "1")
    plain = run(*arguments, *seed).stdout
    for module in MODULES:
        # Commands have the names of their modules.
        monkeypatch.setattr(sys.modules[f"fairaudit_rs.cli.{module}"], "width", lambda: columns)
    found = run(*arguments, *seed)
    assert found.exit_code in (0, 1), found.output
    assert max(map(len, found.stdout.splitlines())) <= columns
    # Words of 64 letters are broken; nothing else is changed, left out or put in another order.
    assert "".join(found.stdout.split()) == "".join(plain.split())
    assert found.stdout != plain or max(map(len, plain.splitlines())) <= columns


def test_formats_and_files_are_not_folded(here, monkeypatch):
    given = ("audit", "loans.csv", *COMMANDS["audit"], "--seed", "1")
    plain = {form: run(*given, "--format", form).stdout for form in ("text", "md", "json")}
    counts = run("tabulate", "loans.csv", *COMMANDS["tabulate"]).stdout
    for module in MODULES:
        monkeypatch.setattr(sys.modules[f"fairaudit_rs.cli.{module}"], "width", lambda: 60)
    for form in ("md", "json"):
        assert run(*given, "--format", form, "-o", "x.txt").stdout == plain[form]
    assert (here / "x.txt").read_text().rstrip() == plain["text"].rstrip()
    assert run("tabulate", "loans.csv", *COMMANDS["tabulate"]).stdout == counts


@pytest.mark.parametrize("variable", ["NO_COLOR", "FORCE_COLOR"])
def test_nothing_is_coloured(variable, here):
    arguments = ("audit", "loans.csv", *COMMANDS["audit"], "--seed", "1")
    assert "\x1b" not in on_a_terminal(arguments, 80, **{variable: "1"})
