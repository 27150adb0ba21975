"""`fairaudit compare --fail-if-worse`: exit codes, words, and how often they are wrong."""

import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main

GIVEN = ("--first", "old", "--second", "new", "-m", "selection_rate", "--seed", "1")


def rows(n=4_000, first=0.1, second=0.1, seed=7, groups=("f", "m")):
    """Decisions of two models: the gaps between the first group and all others."""
    rng = np.random.default_rng(seed)
    group = rng.choice(groups, n)
    draw, behind = rng.random(n), group == groups[0]
    old = draw < 0.6 - first * behind
    changed = rng.random(n) < 0.1
    new = np.where(changed, rng.random(n), draw) < 0.6 - second * behind
    return pl.DataFrame({"old": old.astype(int), "new": new.astype(int), "group": group})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows(second=0.3).write_csv("worse.csv")
    rows().write_csv("same.csv")
    rows(200).write_csv("few.csv")
    rows(12_000, second=0.3, groups=("a", "b", "c", "d")).write_csv("four.csv")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("data", "strict", "tolerance", "code", "word"),
    [
        ("worse.csv", False, 0.05, 1, "WORSE"),
        ("worse.csv", True, 0.05, 1, "WORSE"),
        ("worse.csv", False, 0.2, 0, "NOT DECIDED"),
        ("worse.csv", True, 0.2, 3, "NOT DECIDED"),
        ("worse.csv", True, 0.4, 0, "NOT WORSE"),
        ("same.csv", True, 0.1, 0, "NOT WORSE"),
        ("same.csv", True, 0, 3, "NOT DECIDED"),
        ("few.csv", False, 0.02, 0, "NOT DECIDED"),
        ("few.csv", True, 0.02, 3, "NOT DECIDED"),
        ("four.csv", False, 0.05, 1, "WORSE"),
    ],
)
def test_exit_codes(data, strict, tolerance, code, word, here):
    more = ("--fail-if-worse", tolerance, *(["--strict"] if strict else []))
    found = run("compare", data, "-s", "group", *GIVEN, *more)
    assert found.exit_code == code, found.output
    assert f"\n{word}: " in found.stdout
    assert run("compare", data, "-s", "group", *GIVEN).exit_code == 0


def test_the_words_are_the_limits_of_the_result(here):
    found = run("compare", "worse.csv", "-s", "group", *GIVEN, "--fail-if-worse", "0.05")
    result = fa.compare_models(
        first="old", second="new", data="worse.csv", sensitive_features="group",
        metric="selection_rate", rng=1,
    )  # fmt: skip
    least = float(re.search(r"by at least ([\d.]+), 95 % confidence\)", found.stdout)[1])
    assert least == pytest.approx(result.confidence_interval[0], abs=5e-4)
    many = run("compare", "four.csv", "-s", "group", *GIVEN, "--fail-if-worse", "0.05")
    assert "95 % confidence for all 6 pairs together" in many.stdout


def test_a_group_that_is_left_out_is_no_pass_for_all(here):
    frame = rows(8_000)
    more = pl.DataFrame({"old": [1, 0], "new": [0, 1], "group": ["x", "x"]})
    pl.concat([frame, more.cast(frame.schema)]).write_csv("x.csv")
    given = ("compare", "x.csv", "-s", "group", *GIVEN, "--min-group-size", "30")
    assert run(*given, "--fail-if-worse", "0.1").exit_code == 0
    assert run(*given, "--fail-if-worse", "0.1", "--strict").exit_code == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--strict",), "--strict needs --fail-if-worse"),
        (("--fail-if-worse", "-1"), "--fail-if-worse is -1; accepted: a number of at least 0"),
        (("--fail-if-worse", "nan"), "--fail-if-worse is nan; accepted: a number of at least 0"),
        (("--fail-if-worse", "x"), "'x' is not a valid float"),
    ],
)
def test_bad_calls(options, message, here):
    found = run("compare", "same.csv", "-s", "group", *GIVEN, *options)
    assert found.exit_code == 2
    assert message in found.stderr


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("groups", "n", "tolerance"), [(("f", "m"), 800, 0.05), (("f", "m"), 800, 0.0)]
)
def test_a_gap_that_grew_by_the_tolerance_is_seldom_called_worse(groups, n, tolerance):
    """At most 5 % of audits; the rule "it grew in these rows" fails about half of them."""
    n_audits, worse, naive = 400, 0, 0
    for seed in range(n_audits):
        result = fa.compare_models(
            data=rows(n, 0.1, 0.1 + tolerance, seed, groups),
            first="old",
            second="new",
            sensitive_features="group",
            metric="selection_rate",
            rng=1,
        )
        worse += result.confidence_interval[0] > tolerance
        naive += result.estimate > tolerance
    # A binomial of 5 % exceeds this with a probability of 1e-6.
    band = 0.05 * n_audits + 4.9 * np.sqrt(0.05 * 0.95 * n_audits)
    assert worse <= band
    assert naive > band
