"""Attributes that are combined from columns of 0 and 1."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.auditing.policy_file import read_roles
from fairaudit_rs.cli import main
from fairaudit_rs.data.combined_columns import NONE_OF_THESE
from tests.printed import without_source

RACES = ("black", "white", "asian")
ROLES = ("--y-true", "repaid", "--y-pred", "approved")


def rows(n=3_000, seed=5):
    rng = np.random.default_rng(seed)
    race = rng.choice([*RACES, NONE_OF_THESE], n, p=[0.3, 0.4, 0.2, 0.1])
    label = rng.integers(0, 2, n)
    chance = 0.3 + 0.4 * label - 0.2 * (race == "black")
    frame = pl.DataFrame(
        {"race_known": race, "repaid": label, "approved": (rng.random(n) < chance).astype(int)}
    )
    return frame.with_columns(
        (pl.col("race_known") == name).cast(pl.Int64).alias(name) for name in RACES
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows().write_csv("people.csv")
    rows().write_parquet("people.parquet")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


# -- the function --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame,
        lambda frame: frame.cast(pl.Boolean),
        lambda frame: frame.cast(pl.Float64),
        lambda frame: frame.cast(pl.String),
        lambda frame: frame.cast(pl.Boolean).cast(pl.String).select(pl.all().str.to_uppercase()),
        lambda frame: frame.to_pandas(),
        lambda frame: frame.to_arrow(),
        lambda frame: {name: frame[name].to_numpy() for name in frame.columns},
    ],
    ids=["int", "bool", "float", "text", "TRUE", "pandas", "arrow", "arrays"],
)
def test_it_is_the_column_that_was_taken_apart(change):
    found = fa.combine_columns(change(rows().select(RACES)))
    assert found.tolist() == rows()["race_known"].to_list()


def test_missing_values():
    found = fa.combine_columns({"a": [1, None, 0, None], "b": [None, 1, None, 0]})
    assert found.tolist() == ["a", "b", None, None]
    found = fa.combine_columns(pd.DataFrame({"a": [1.0, np.nan], "b": [0.0, 0.0]}))
    assert found.tolist() == ["a", None]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1, 0, 1, 1], "b": [0, 0, 1, 1]},
         r"columns 'a' and 'b' are 1 in the same row, row 2 \(.* is 0\) and in 1 other rows\. C"),
        ({"a": [1, 2], "b": [0, 0]}, "column 'a' holds '2'; accepted: 0 and 1"),
        ({"a": [1, 0], "b": [0.5, 0]}, "column 'b' holds '0.5'; accepted: 0 and 1"),
        ({"a": ["x", "1"], "b": [0, 0]}, "column 'a' holds 'x'; accepted: 0 and 1"),
        ({"a": [1, 0]}, "flags has 1 column; accepted: at least two"),
    ],
)  # fmt: skip
def test_what_is_refused(columns, message):
    with pytest.raises(fa.errors.FairAuditError, match=message):
        fa.combine_columns(columns)


def test_an_audit_of_it_is_that_of_the_attribute():
    frame = rows()
    given = {"y_true": frame["repaid"], "y_pred": frame["approved"], "rng": 1}
    made = fa.combine_columns(frame.select(RACES))
    found = fa.audit(**given, sensitive_features={"race": made})
    wanted = fa.audit(**given, sensitive_features={"race": frame["race_known"]})
    assert found.to_dict() == wanted.to_dict()
    assert found.verdict == "fail"


# -- a column by itself --------------------------------------------------------------------------


@pytest.mark.parametrize(("change", "yes", "no"), [(int, 1, 0), (bool, True, False)])
def test_a_column_of_0_and_1_compares_with_everyone_else_and_says_so(change, yes, no):
    frame = rows()
    flag = [change(value) for value in frame["black"]]
    audit = fa.audit(y_pred=frame["approved"], sensitive_features={"black": flag}, rng=1)
    told = f"black = {yes} is compared with everyone else (black = {no})"
    assert told in audit.warnings
    assert told in str(audit)
    assert told in audit.to_markdown()
    assert "combine" not in str(audit)
    both = fa.audit(
        y_pred=frame["approved"],
        sensitive_features={"black": flag, "white": frame["white"]},
        rng=1,
    )
    assert "white = 1 is compared with everyone else (white = 0)" in both.warnings
    assert sum("can be combined to one" in note for note in both.warnings) == 1
    named = fa.audit(y_pred=frame["approved"], sensitive_features={"r": frame["race_known"]}, rng=1)
    assert "everyone else" not in str(named)


# -- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["people.csv", "people.parquet"])
@pytest.mark.parametrize("command", ["audit", "permutation", "tabulate"])
def test_the_option(command, data, here):
    metric = ("-m", "tpr") if command == "permutation" else ()
    seed = () if command == "tabulate" else ("--seed", "1")
    pl.read_parquet("people.parquet").rename({"race_known": "race"}).write_csv("named.csv")
    wanted = run(command, "named.csv", *ROLES, "-s", "race", *metric, *seed)
    combine = ("--combine", "race=black, white,asian")
    found = run(command, data, *ROLES, "-s", "race", *metric, *seed, *combine)
    assert found.exit_code == wanted.exit_code, found.output
    told = "race is combined from the columns black, white, asian"
    if command == "audit":
        assert f"Read: {told}.\n" in found.stdout
        assert without_source(found.stdout) == without_source(wanted.stdout)
    else:
        assert without_source(found.stdout) == without_source(wanted.stdout)
        assert found.stderr == f"fairaudit: {told}\n"


def test_the_file(here):
    (here / "fairaudit.toml").write_text(
        "[policy]\npreset = 'four_fifths'\n[roles]\ny_pred = 'approved'\n"
        "sensitive_features = ['race']\ncombine = { race = ['black', 'white', 'asian'] }\n"
    )
    assert read_roles("fairaudit.toml")["combine"] == {"race": RACES}
    found = run("audit", "people.csv", "--seed", "1")
    assert found.exit_code == 1, found.output
    assert "black" in found.stdout
    assert "race is combined from the columns black, white, asian" in found.stdout


@pytest.mark.parametrize(
    ("combine", "message"),
    [
        ("race", "--combine is 'race'; accepted: a new name and columns"),
        ("race=black", "--combine names black for 'race'; accepted: at least two"),
        ("race=black,nope", "column 'nope' does not exist"),
        ("approved=black,white", "--combine names 'approved', which is a column of the data"),
        ("race=black,repaid", "are 1 in the same row, row "),
    ],
)
def test_bad_options(combine, message, here):
    found = run("audit", "people.csv", *ROLES, "-s", "race", "--combine", combine)
    assert found.exit_code == 2
    assert message in found.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("combine = ['race']", "line 4: combine is ['race']; accepted: attributes, each with a li"),
        ("combine = { race = 'black' }", "line 4: combine is {'race': 'black'}; accepted: attrib"),
        ("combine = { race = ['a', 'a'] }", "line 4: combine of 'race' holds 'a' twice"),
    ],
)
def test_bad_files(line, message, here):
    (here / "fairaudit.toml").write_text(f"[policy]\npreset = 'parity'\n[roles]\n{line}\n")
    found = run("audit", "people.csv", *ROLES, "-s", "race")
    assert found.exit_code == 2
    assert message in found.stderr


# -- init ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "race_", "race_is_"])
def test_init_proposes_one_attribute(prefix, here):
    names = {name: f"{prefix}{name}" for name in RACES}
    rows().drop("race_known").rename(names).write_csv("flags.csv")
    found = run("init", "flags.csv")
    assert found.exit_code == 0, found.output
    assert "sensitive_features: race\n" in found.stdout
    assert f"race: combined from {', '.join(names.values())}\n" in found.stdout
    assert read_roles("fairaudit.toml")["combine"] == {"race": tuple(names.values())}
    audit = run("audit", "flags.csv", "--seed", "1")
    assert audit.exit_code == 1, audit.output
    assert "race is combined from the columns" in audit.stdout
    assert "compared with everyone else" not in audit.stdout


def test_init_combines_no_columns_that_overlap(here):
    frame = rows().drop("race_known").with_columns(hispanic=pl.Series([0, 1] * 1_500))
    frame.write_csv("flags.csv")
    found = run("init", "flags.csv")
    assert found.exit_code == 0, found.output
    assert "sensitive_features: black, white, asian, hispanic\n" in found.stdout
    assert "not combined to race: columns " in found.stdout
    assert "combine" not in read_roles("fairaudit.toml")
    audit = run("audit", "flags.csv", "--seed", "1")
    assert "black = 1 is compared with everyone else (black = 0)" in audit.stdout


def test_init_takes_groups_for_attributes_and_no_collars(here):
    flags = ("female", "is_white", "JobType_is_WhiteCollar", "human")
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({name: rng.integers(0, 2, 400) for name in (*flags, "approved")})
    frame.write_csv("flags.csv")
    found = run("init", "flags.csv")
    assert "sensitive_features: female, is_white\n" in found.stdout
    assert "y_pred: approved\n" in found.stdout
