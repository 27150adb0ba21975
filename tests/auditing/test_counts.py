"""Counts of people in commands: columns of one's own, and what `fairaudit tabulate` writes."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main
from tests.printed import content, without_source

ROLES = ("--y-true", "repaid", "--y-pred", "approved")
WORDS = ("--y-true", "back", "--y-pred", "word")
#: Commands that take counts, and what they need besides the columns.
COMMANDS = {
    "audit": (),
    "permutation": ("-m", "tpr", "--n-resamples", "199"),
    "intervals": ("-m", "tpr"),
    "equivalence": ("-m", "tpr", "--margin", "0.3"),
    "power": ("-m", "tpr"),
    "calibrate": ("-m", "tpr", "--n-audits", "20", "--n-resamples", "99"),
}


def rows(n=3_000, gap=0.25, seed=3):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    sex, place = rng.choice(["f", "m"], n), rng.choice(["a", "b"], n)
    decided = rng.random(n) < 0.3 + 0.4 * label - gap * (sex == "f") + 0.1 * (place == "a")
    return pl.DataFrame(
        {
            "repaid": label,
            "approved": decided.astype(int),
            "back": np.where(label, "yes", "no"),
            "word": np.where(decided, "yes", "no"),
            "later": (rng.random(n) < 0.3 + 0.4 * label).astype(int),
            "sex": sex,
            "place": place,
            "age": rng.integers(20, 70, n),
            "score": np.round(rng.random(n), 3),
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = rows()
    frame.write_csv("rows.csv")
    frame.group_by(pl.all().exclude("score")).len("people").write_csv("counted.csv")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def seeded(command):
    return () if command == "power" else ("--seed", "1")


def without_reasons(audit):
    """Drop why other lenses were not run: counts lack rows, and rows may lack scores."""
    for value in audit["others"]:
        assert value["lens"] == "projection" or "needs" in value["reason"]
        del value["reason"]
    return audit


def check_same(found, wanted):
    assert wanted.exit_code in (0, 1), wanted.output
    assert found.exit_code == wanted.exit_code, found.output
    assert without_source(found.stdout) == without_source(wanted.stdout)
    assert found.stderr == wanted.stderr


# -- columns of one's own ----------------------------------------------------------------------


@pytest.mark.parametrize("strata", [(), ("--strata", "place")], ids=["plain", "strata"])
@pytest.mark.parametrize("command", COMMANDS)
def test_counts_give_what_their_people_give(command, strata, here):
    given = (*ROLES, "-s", "sex", *strata, *COMMANDS[command], *seeded(command))
    wanted = run(command, "rows.csv", *given)
    check_same(run(command, "counted.csv", *given, "--count", "people"), wanted)


@pytest.mark.parametrize("preset", ["us_eeoc", "nyc_ll144", "predictive"])
def test_rules_on_counts(preset, here):
    given = (*ROLES, "-s", "sex", "--preset", preset, "--seed", "1", "--where", "age > 30")
    wanted = run("audit", "rows.csv", *given)
    found = run("audit", "counted.csv", *given, "--count", "people")
    kept = "rows are kept, where age > 30"
    assert (kept in found.stdout, kept in wanted.stdout) == (True, True)
    found, wanted = (
        [line for line in without_source(value.stdout).splitlines() if kept not in line]
        for value in (found, wanted)
    )
    assert found == wanted


@pytest.mark.parametrize("favourable", ["yes", "no"])
@pytest.mark.parametrize("preset", ["opportunity", "punitive"])
def test_the_favourable_value_of_counts(preset, favourable, here):
    given = (*WORDS, "-s", "sex", "--favourable", favourable, "--preset", preset, "--seed", "1")
    wanted = run("audit", "rows.csv", *given)
    check_same(run("audit", "counted.csv", *given, "--count", "people"), wanted)
    assert f" = {favourable}" in wanted.stdout.partition("Favourable:")[2].splitlines()[0]


def test_two_texts_of_counts_need_a_favourable_one(here):
    found = run("audit", "counted.csv", *WORDS, "-s", "sex", "--count", "people")
    assert found.exit_code == 2
    assert "--favourable is not given and --y-pred holds 'no', 'yes'. Say which" in found.stderr


def test_ages_of_counts_are_cut(here):
    given = (*ROLES, "-s", "age", "--seed", "1")
    wanted = run("audit", "rows.csv", *given)
    assert "above 25 up to 45" in wanted.stdout
    check_same(run("audit", "counted.csv", *given, "--count", "people"), wanted)


def test_python_takes_counts():
    frame = rows()
    counted = frame.group_by("repaid", "approved", "sex").len("people")
    given = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": "sex", "rng": 1}
    found = fa.audit(data=counted, counts="people", **given)
    wanted = fa.audit(data=frame, **given)
    assert without_reasons(content(found.to_dict())) == without_reasons(content(wanted.to_dict()))
    with pytest.raises(fa.errors.ArgumentTypeError, match="y_score cannot be combined with counts"):
        fa.audit(data=frame, counts="age", y_score="score", **given)
    with pytest.raises(
        fa.errors.ArgumentTypeError, match="X needs one row for each person, and with counts="
    ):
        fa.audit(data=frame, counts="age", X=frame.select("age"), **given)


def test_two_models_on_counts(here):
    given = ("--y-true", "repaid", "--first", "approved", "--second", "later", "-s", "sex")
    wanted = run("compare", "rows.csv", *given, "-m", "tpr", "-m", "f1", "--seed", "1")
    more = ("--count", "people", "--seed", "1")
    check_same(run("compare", "counted.csv", *given, "-m", "tpr", "-m", "f1", *more), wanted)
    found = run("compare", "counted.csv", *given, "-m", "auc", *more)
    assert found.exit_code == 2
    assert "--metric is 'auc', which needs one row per person, but counts is given" in found.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--weight", "age"), "error: --weight "),
        (("--clusters", "age"), "error: --clusters "),
        (("--y-score", "age"), "error: --y-score "),
    ],
)
def test_what_needs_people_is_refused_with_the_reason(options, message, command, here):
    given = (*ROLES, "-s", "sex", *COMMANDS[command], "--count", "people")
    found = run(command, "counted.csv", *given, *options)
    assert found.exit_code == 2
    assert message in found.stderr
    assert found.stderr.count(":") > 2  # the reason
    assert found.stdout == ""


def test_a_warning_comes_before_the_audit(here, monkeypatch):
    def audited(**_):
        raise fa.errors.DataError("the audit runs")

    pl.read_csv("counted.csv").rename({"people": "Freq"}).write_csv("freq.csv")
    monkeypatch.setattr(fa, "audit", audited)
    # A filter makes a frame of the file, in which the column was looked for in vain.
    found = run("audit", "freq.csv", *ROLES, "-s", "sex", "--where", "age > 30")
    told = "if column 'Freq' holds numbers of people, say --count Freq"
    assert told in found.stderr
    assert found.stderr.index(told) < found.stderr.index("the audit runs")


# -- what tabulate writes ----------------------------------------------------------------------


@pytest.mark.parametrize("strata", [(), ("--strata", "place")], ids=["plain", "strata"])
@pytest.mark.parametrize("name", ["counts.csv", "counts.parquet"])
@pytest.mark.parametrize("command", COMMANDS)
def test_the_round_trip(command, name, strata, here):
    given = (*ROLES, "-s", "sex", *strata)
    assert run("tabulate", "rows.csv", *given, "-o", name).exit_code == 0
    more = (*COMMANDS[command], *seeded(command))
    wanted = run(command, "rows.csv", *given, *more)
    check_same(run(command, name, *more), wanted)
    if name.endswith("csv") and not strata:
        check_same(run(command, name, "-s", "sex", *more), wanted)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "audit"])
def test_counts_of_several_attributes_name_their_groups(command, here):
    both = ("-s", "sex", "-s", "place")
    assert run("tabulate", "rows.csv", *ROLES, *both, "-o", "c.csv").exit_code == 0
    more = (*COMMANDS[command], *seeded(command))
    found, wanted = run(command, "c.csv", *more), run(command, "c.csv", *both, *more)
    assert found.stdout == wanted.stdout
    assert "groups are those of sex & place, as the counts hold; -s chooses some" in found.stderr
    assert "groups are those of" not in wanted.stderr
    rows = run(command, "rows.csv", *ROLES, *both, *more)
    assert without_source(found.stdout) == without_source(rows.stdout)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "audit"])
@pytest.mark.parametrize("given", [("rows.csv",), ("counted.csv", "--count", "people")])
def test_other_data_do_not_name_their_attributes(command, given, here):
    found = run(command, *given, *ROLES, *COMMANDS[command])
    assert found.exit_code == 2
    assert "no column of groups is named. Pass -s COLUMN" in found.stderr


@pytest.mark.parametrize("name", ["counts.csv", "counts.parquet"])
def test_the_round_trip_of_several_attributes(name, here):
    given = (*ROLES, "-s", "sex", "-s", "age")
    assert run("tabulate", "rows.csv", *given, "-o", name).exit_code == 0
    wanted = run("audit", "rows.csv", *given, "--seed", "1", "--format", "json")
    found = run("audit", name, "--seed", "1", "--format", "json")
    contents = (content(json.loads(value.stdout)) for value in (found, wanted))
    assert without_reasons(next(contents)) == without_reasons(next(contents))
    one = run("audit", name, "-s", "sex", "--seed", "1")
    check_same(one, run("audit", "rows.csv", *ROLES, "-s", "sex", "--seed", "1"))


@pytest.mark.parametrize("name", ["counts.csv", "counts.parquet"])
def test_bins_of_scores_are_written_and_read(name, here):
    given = ("--y-true", "repaid", "--y-score", "score", "-s", "sex")
    assert run("tabulate", "rows.csv", *given, "--score-bins", "10", "-o", name).exit_code == 0
    read = (pl.read_csv if name.endswith("csv") else pl.read_parquet)(name)
    assert fa.Cells.from_frame(read) == fa.tabulate(
        rows(), y_true="repaid", y_score="score", sensitive_features="sex", score_bins=10
    )
    found = run("permutation", name, "-s", "sex", "-m", "calibration_error", "--seed", "1")
    assert found.exit_code == 0, found.output


def test_columns_of_a_policy_file_give_way_to_those_of_counts(here):
    (here / "fairaudit.toml").write_text(
        "[policy]\npreset = 'parity'\n[roles]\ny_true = 'repaid'\ny_pred = 'approved'\n"
        "sensitive_features = ['sex']\n"
    )
    assert run("tabulate", "rows.csv", *ROLES, "-s", "sex", "-s", "place", "-o", "c.csv")
    found = run("audit", "c.csv", "--seed", "1")
    assert found.exit_code == 1, found.output
    assert "y_pred is that of the counts, and not 'approved' of the policy file" in found.stderr
    wanted = run("audit", "rows.csv", "--seed", "1").stdout
    assert without_source(found.stdout) == without_source(wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--y-pred", "approved"), "--y-pred is 'approved', and DATA holds counts with columns of"),
        (("--strata", "place"), "--strata is 'place', and DATA holds counts with columns of its"),
        (("--weight", "age"), "--weight needs the rows"),
        (("-s", "age"), "column 'age' does not exist; the cells have: 'sex'"),
        (("--favourable", "yes"), "--favourable is 'yes', which is not a value of labels and "),
    ],
)
def test_what_counts_do_not_hold_is_refused(options, message, here):
    run("tabulate", "rows.csv", *ROLES, "-s", "sex", "-o", "counts.csv")
    found = run("audit", "counts.csv", *options)
    assert found.exit_code == 2
    assert message in found.stderr


def test_numbers_of_cells_are_cut():
    frame = rows()
    cells = fa.tabulate(frame, y_pred="approved", sensitive_features=["age", "sex"])
    found = fa.audit(data=cells, rng=1)
    wanted = fa.audit(data=frame, y_pred="approved", sensitive_features=["age", "sex"], rng=1)
    assert without_reasons(content(found.to_dict())) == without_reasons(content(wanted.to_dict()))


# -- init --------------------------------------------------------------------------------------


def test_init_takes_counts(here):
    counted = rows().group_by("repaid", "approved", "sex").len("n")
    counted.write_csv("n.csv")
    rows().select("repaid", "approved", "sex").write_csv("all.csv")
    warned = run("init", "n.csv", "-o", "x.toml")
    assert "if column 'n' holds numbers of people, say --count n" in warned.stderr
    found = run("init", "n.csv", "--count", "n", "-o", "n.toml")
    wanted = run("init", "all.csv", "-o", "all.toml")
    assert found.exit_code == 0, found.output
    assert found.stderr == ""
    command = "fairaudit audit n.csv --policy n.toml --count n"
    assert found.stdout.splitlines()[:-3] == wanted.stdout.splitlines()[:-3]
    assert found.stdout.splitlines()[-1].strip() == command
    audit = run(*command.split()[1:], "--seed", "1")
    assert audit.exit_code == 1, audit.output
    assert "3,000 rows" in audit.stdout
    refused = run("init", "n.csv", "--count", "sex", "-o", "y.toml")
    assert refused.exit_code == 2
    assert "--count names 'sex', which holds String; accepted: whole numbers" in refused.stderr


def test_init_knows_what_tabulate_wrote(here):
    run("tabulate", "rows.csv", *ROLES, "-s", "sex", "-o", "counts.csv")
    found = run("init", "counts.csv")
    assert found.exit_code == 2
    assert "counts that fairaudit tabulate wrote" in found.stderr
    assert "Run fairaudit audit counts.csv" in found.stderr
