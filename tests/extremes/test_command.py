"""`fairaudit extremes`."""

import json
import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main

SCORES = ("--y-score", "score", "--counterfactual-score", "flipped")


def columns(n=500, seed=4):
    rng = np.random.default_rng(seed)
    sex = np.repeat(["f", "m", "x"], [n, n, 50])
    score = 0.4 * rng.random(len(sex))
    gain = np.where(sex == "f", 0.5, 0.3) * rng.beta(2, 4, len(sex))
    return {
        "score": score,
        "flipped": score + gain,
        "sex": sex,
        "old": rng.choice(["yes", "no"], len(sex)),
    }


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data.parquet"
    pl.DataFrame(columns()).write_parquet(path)
    return path


def run(file, *more):
    words = [str(word) for word in (file, *SCORES, *more)]
    return CliRunner().invoke(main, ["extremes", *words])


def refused(result, message):
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


# -- Arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("-s", "sexe"), "column 'sexe' does not exist"),
        (("-s", "sex", "--horizon", "1"), "--horizon is 1.0; accepted: a number of rows above 1"),
        (("-s", "sex", "--horizon", "1e9"), "the largest one is 2,500"),
        (("-s", "sex", "--upper", "column"), "upper is 'column'; accepted"),
        (("-s", "sex", "--upper", "-1"), "upper is -1"),
        (("-s", "sex", "--upper", "0.1"), "above upper, 0.1"),
        (("-s", "sex", "--n-exceedances", "many"), "--n-exceedances is 'many'; accepted: 'auto'"),
        (("-s", "sex", "--n-exceedances", "3"), "--n-exceedances is 3"),
        (("-s", "sex", "--null", "none"), "Invalid value for '--null'"),
        (("-s", "sex", "--group", "f"), "only one group"),
        (("-s", "sex", "--reference", "z"), "reference"),
        (("-s", "sex", "--confidence-level", "95"), "--confidence-level is 95"),
        (("-s", "sex", "--json", "/nowhere/out.json"), "its directory does not exist"),
        (("-s", "sex", "--counterfactual-score", "sex"), "--counterfactual-score holds text"),
    ],
)
def test_refusals_name_what_is_wrong(more, message, file):
    refused(run(file, *more), message)


def test_both_columns_of_scores_are_needed(file):
    result = CliRunner().invoke(main, ["extremes", str(file), "--y-score", "score", "-s", "sex"])
    refused(result, "Missing option '--counterfactual-score'")


# -- Known values ----------------------------------------------------------------------------------


def test_what_is_printed_and_written_is_that_of_the_call(file, tmp_path):
    target = tmp_path / "out.json"
    result = run(file, "-s", "sex", "--horizon", "500", "--seed", "1", "--json", target)
    assert result.exit_code == 0, result.stderr
    written = json.loads(target.read_text())
    data = columns()
    called = fa.extreme_test(
        y_score=data["score"],
        counterfactual_score=data["flipped"],
        sensitive_features={"sex": data["sex"]},
        horizon=500,
        rng=1,
    )
    assert written == json.loads(json.dumps(called.to_dict()))
    assert called.summary() in result.stdout
    assert called.to_text(details=True) in result.stdout
    assert re.search(rf"^  f +m +{called.clearest.estimate:.3f} ", result.stdout, re.MULTILINE)
    assert "50 rows; a tail needs at least 100" in result.stdout
    levels = [line for line in result.stdout.splitlines() if line.split()[1:2] == ["1,000"]]
    standing = [re.search("extrapolated|refused", line)[0] for line in levels]
    assert standing == ["extrapolated", "extrapolated", "refused"]


def test_options_reach_the_call(file):
    chosen = run(
        file, "-s", "sex", "--group", "f", "--group", "m", "--reference", "m", "--upper", "none",
        "--n-exceedances", "40", "--null", "equal_laws", "--n-resamples", "99", "--seed", "7",
        "--horizon", "500", "--confidence-level", "0.9",
    )  # fmt: skip
    assert chosen.exit_code == 0, chosen.stderr
    assert "test of equal laws" in chosen.stdout
    assert "90 % interval" in chosen.stdout
    assert re.search(r"^  m +500 ", chosen.stdout, re.MULTILINE)
    assert not re.search(r"^  x +50 ", chosen.stdout, re.MULTILINE)
    by_row = run(file, "-s", "sex", "--group", "f", "--group", "m", "--upper", "row",
                 "--horizon", "500")  # fmt: skip
    assert by_row.exit_code == 0, by_row.stderr
    assert "share of each row's own room" in by_row.stdout
    crossed = run(file, "-s", "sex", "-s", "old", "--horizon", "200")
    assert crossed.exit_code == 0, crossed.stderr
    assert "f & yes" in crossed.stdout


def test_tables_fit_a_screen(file):
    blocks = run(file, "-s", "sex", "--horizon", "500").stdout.split("\n\n")
    titles = ("Pairs of groups:", "Groups:", "Return levels:")
    tables = [block for block in blocks if block.startswith(titles)]
    assert len(tables) == 3
    assert len("\n".join(tables).splitlines()) > 20
    short = [line for table in tables for line in table.splitlines() if "rows;" not in line]
    assert max(map(len, short)) <= 100


# -- Properties ------------------------------------------------------------------------------------


def test_csv_and_parquet_say_the_same(file, tmp_path):
    csv = tmp_path / "data.csv"
    pl.read_parquet(file).write_csv(csv)
    first, second = (
        run(path, "-s", "sex", "--horizon", "500", "--seed", "1") for path in (file, csv)
    )
    assert first.exit_code == 0
    assert first.stdout == second.stdout
