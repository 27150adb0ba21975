"""`--progress`: how far the work is, in lines on the standard error."""

import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from fairaudit_rs.cli import main

ROLES = ("--y-true", "repaid", "--y-pred", "approved", "-s", "sex")
#: Commands that draw replicates.
COMMANDS = {
    "permutation": (*ROLES, "-m", "f1", "--n-resamples", "999"),
    "intervals": (*ROLES, "-m", "f1", "--method", "studentized", "--n-resamples", "999"),
    "calibrate": (*ROLES, "-m", "tpr", "--n-audits", "20", "--n-resamples", "99"),
    "audit": (*ROLES, "--evidence", "permutation"),
    "compare": ("--y-true", "repaid", "--first", "score", "--second", "other", "-s", "sex",
                "-m", "auc", "--n-resamples", "999"),
    "projection": ("--y-true", "repaid", "--y-score", "score", "-s", "sex",
                   "--calibration", "permutation", "--n-resamples", "99"),
    "extremes": ("--y-score", "score", "--counterfactual-score", "other", "-s", "sex",
                 "--null", "equal_laws", "--n-resamples", "99"),
}  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    n = 600
    label, score = rng.integers(0, 2, n), rng.random(n)
    pl.DataFrame(
        {
            "repaid": label,
            "approved": (rng.random(n) < 0.3 + 0.4 * label).astype(int),
            "score": score,
            "other": np.clip(score + 0.2 * rng.random(n), 0, 1),
            "sex": rng.choice(["f", "m"], n),
        }
    ).write_csv("loans.csv")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("command", COMMANDS)
def test_lines_on_standard_error_and_the_same_output(command, here):
    given = (command, "loans.csv", *COMMANDS[command], "--seed", "1")
    plain = run(*given)
    assert plain.exit_code in (0, 1), plain.output
    assert " / " not in plain.stderr
    found = run(*given, "--progress")
    assert found.exit_code == plain.exit_code
    assert found.stdout == plain.stdout
    lines = [line for line in found.stderr.splitlines() if " / " in line]
    assert lines
    for line in lines:
        assert re.fullmatch(r" +[\d,]+ / [\d,]+( .* left)?", line), line
    assert "\r" not in found.stderr
    quiet = run(*given, "--progress", "--quiet")
    assert quiet.output == ""
