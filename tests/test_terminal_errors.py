"""Errors of commands speak to people at a terminal: options, examples, columns and lines of files.

A newcomer read about None, arrays and dicts after a column was not named.
"""

import re
import tomllib

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main

COLUMNS = "Columns of my.csv: sex, age, approved, repaid, score"
INIT = "'fairaudit init my.csv' proposes which to use."
#: Words of Python, which nobody typed.
PYTHON = re.compile(
    r"\bNone\b|\barrays?\b|\bdicts?\b|\bframes?\b|fairaudit_rs\.|[a-z]=\s|True|False"
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    n = 600
    pl.DataFrame(
        {
            "sex": rng.choice(["F", "M"], n),
            "age": rng.integers(18, 76, n),
            "approved": rng.integers(0, 2, n),
            "repaid": rng.integers(0, 2, n),
            "score": np.round(1.3 * rng.random(n), 3),
        }
    ).write_csv("my.csv")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(command, *arguments):
    done = run(command, "my.csv", *arguments)
    assert done.exit_code == 2, done.output
    message = done.stderr.splitlines()[-1].removeprefix("fairaudit: error: ")
    assert not PYTHON.search(message.removeprefix("Error: ")), message
    return message


# -- columns that are not named ----------------------------------------------------------------


@pytest.mark.parametrize("command", ["audit", "permutation", "intervals", "power", "calibrate"])
def test_no_groups(command):
    metric = () if command == "audit" else ("-m", "tpr")
    message = refused(command, *metric, "--y-true", "repaid", "--y-pred", "approved")
    start = "no column of groups is named. Pass -s COLUMN, such as -s sex. "
    assert message == start + COLUMNS + (f". {INIT}" if command == "audit" else ".")


@pytest.mark.parametrize("given", [(), ("--y-true", "repaid"), ("--y-score", "score")])
def test_not_enough_for_an_audit(given):
    message = refused("audit", "-s", "sex", *given)
    assert message.startswith("an audit needs decisions, or labels with scores. Pass --y-pred COL")
    assert message.endswith(f"{COLUMNS}. {INIT}")


@pytest.mark.parametrize(
    ("call", "start"),
    [
        (("permutation", "-m", "tpr"), "true_positive_rate needs labels (what actually happened)"),
        (("permutation", "-m", "auc", "--y-true", "repaid"), "auc needs scores. Pass --y-score CO"),
        (
            ("compare", "-m", "tpr", "--first", "approved", "--second", "approved"),
            "true_positive_rate needs labels (what actually happened). Pass --y-true COLUMN",
        ),
        (
            ("audit", "--preset", "opportunity", "--y-pred", "approved"),
            "true_positive_rate, which binds in the policy 'opportunity', needs labels",
        ),
        (
            ("projection",),
            "no column of scores or distances to the decision boundary is named. Pass --y-score ",
        ),
        (("projection", "--y-score", "score"), "the notion 'equal_opportunity' needs labels"),
        (
            ("influence", "--target", "F", "-m", "selection_rate", "-f", "age"),
            "no column of decisions or scores is named. Pass --y-pred COLUMN, such as --y-pred ap",
        ),
    ],
)
def test_a_role_that_is_needed(call, start):
    message = refused(call[0], "-s", "sex", *call[1:])
    assert message.startswith(start), message
    assert COLUMNS in message


def test_columns_of_a_file_in_another_format(here):
    (here / "my.csv").write_text("sex;approved\nF;1\nM;0\n")
    assert "Columns of my.csv: sex, approved." in refused("audit", "--delimiter", ";")


def test_python_keeps_its_message():
    with pytest.raises(fa.errors.ArgumentTypeError, match="Pass an array of group labels") as one:
        fa.audit([0, 1], [0, 1])
    assert (one.value.argument, one.value.code) == ("sensitive_features", "missing-argument")
    with pytest.raises(
        fa.errors.ArgumentError, match="y_true is None, but auc needs labels"
    ) as other:
        fa.permutation_test(y_pred=[0, 1], sensitive_features=["a", "b"], metric="auc")
    assert other.value.needed_by == "auc"


# -- columns that do not exist -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("-s", "sxe"), "--sensitive: column 'sxe' does not exist; did you mean 'sex'? The "),
        (
            ("-s", "sex", "--y-pred", "aproved"),
            "--y-pred: column 'aproved' does not exist; did",
        ),
        (
            ("-s", "sex", "--weight", "nope"),
            "--weight: column 'nope' does not exist; the data",
        ),
        (
            ("-s", "sex", "--where", "aeg > 3"),
            "--where names column 'aeg', which does not exist; ",
        ),
        (
            ("-s", "sex", "--cut", "scor=1"),
            "--cut names column 'scor', which does not exist; did",
        ),
        (("-s", "sex,age"), "--sensitive is 'sex,age'. Repeat the option: -s sex -s age"),
        (("-s", "sex, age"), "--sensitive is 'sex, age'. Repeat the option: -s sex -s age"),
        (("-s", "sex,nope"), "--sensitive: column 'sex,nope' does not exist; "),
    ],
)
def test_a_column_that_does_not_exist(given, message):
    decides = () if {"--y-pred", "--cut"} & {*given} else ("--y-pred", "approved")
    assert refused("audit", *given, *decides).startswith(message)


POLICY = """[policy]
preset = "opportunity"
favourable = {favourable}

[roles]
sensitive_features = ["sex"]
y_true = "repaid"
y_pred = "{y_pred}"
"""


def test_a_wrong_value_of_the_policy_file_is_named_with_its_line(here):
    def wrong(*options, favourable="1", y_pred="approved"):
        text = POLICY.format(favourable=favourable, y_pred=y_pred)
        (here / "fairaudit.toml").write_text(text)
        return refused("audit", *options)

    assert wrong(y_pred="aproved").startswith(
        "fairaudit.toml, line 8: y_pred: column 'aproved' does not exist; did you mean 'approved'?"
    )
    assert wrong(favourable="'yes'").startswith(
        "fairaudit.toml, line 3: favourable is 'yes', but --y-pred holds 0, 1 and --y-true "
    )
    # What was typed is named as an option.
    assert wrong("--favourable", "yes").startswith("--favourable is 'yes'")
    assert wrong("-s", "sxe").startswith("--sensitive: column 'sxe'")
    text = POLICY.format(favourable=1, y_pred="age").replace("favourable = 1", "")
    (here / "fairaudit.toml").write_text(text)
    assert refused("audit").startswith("fairaudit.toml, line 8: y_pred holds 18, 19, 20")
    assert refused("audit", "--y-pred", "age").startswith("--y-pred holds 18, 19, 20")


# -- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            "sr",
            "which is not the name of a metric; did you mean 'selection_rate'? 'fairaudit ",
        ),
        ("true_postive_rate", "; did you mean 'true_positive_rate'? 'fairaudit metrics' lists all"),
        ("qqqqqq", "which is not the name of a metric. 'fairaudit metrics' lists all"),
    ],
)
def test_unknown_metrics(metric, message, here):
    assert message in refused("permutation", "-s", "sex", "-m", metric)
    text = POLICY.format(favourable=1, y_pred="approved").replace(
        "\n[roles]", f'[[policy.criterion]]\nmetric = "{metric}"\ntolerance = 0.1\n[roles]'
    )
    (here / "fairaudit.toml").write_text(text)
    assert "'fairaudit metrics' lists all" in refused("audit")


def test_numbers_are_no_decisions():
    message = refused("permutation", "-s", "sex", "-m", "selection_rate", "--y-pred", "age")
    assert message.endswith(
        "So many numbers do not look like decisions. Name scores with --y-score, or decide from a "
        "number on with --cut age=NUMBER"
    )
    assert "--pos-label" not in message


def test_scores_above_1():
    message = refused("audit", "-s", "sex", "--y-true", "repaid", "--y-score", "score")
    assert re.fullmatch(
        r"--y-score holds 1\.\d+ \(column score\), but scores must lie between 0 and 1\. Divide "
        r".*\(docs/policy\.md\)",
        message,
    )
    assert "mean_residual" not in message


def test_scores_that_are_none_are_warned_of():
    given = ("-s", "sex", "--y-pred", "approved", "--y-score")
    assert "warning: y_score is 'age', which goes from 18 to 75; " in run(
        "audit", "my.csv", *given, "age"
    ).stderr.replace("76", "75")
    pl.read_csv("my.csv").with_columns(score=pl.col("score") / 2).write_csv("half.csv")
    assert "y_score" not in run("audit", "half.csv", *given, "score").stderr


def test_the_level_has_the_example_of_a_level(here):
    """0.95, the example of a confidence level, would let 95 % of audits fail falsely."""
    (here / "fairaudit.toml").write_text("[policy]\npreset = 'parity'\nalpha = 5\n")
    message = refused("audit", "-s", "sex", "--y-pred", "approved")
    assert message.startswith("fairaudit.toml, line 3: alpha is 5; ")
    assert "such as 0.05" in message
    assert "0.95" not in message


def test_the_preset_that_needs_a_file():
    message = refused("audit", "-s", "sex", "--preset", "fair_lending", "--y-pred", "approved")
    assert "fair_lending needs a threshold and a reference group for each attribute" in message
    assert "--policy" in message


WORDS = ("-s", "sex", "--y-true", "stayed")


@pytest.fixture
def stayed(here):
    words = np.where(np.arange(600) % 3, "yes", "no")
    region = np.array(["east", "north", "south"])[np.arange(600) % 3]
    frame = pl.read_csv("my.csv").with_columns(
        stayed=pl.Series(words), region=pl.Series(region), invited=pl.Series(words[::-1])
    )
    frame.write_csv("my.csv")


@pytest.mark.usefixtures("stayed")
class TestFavourable:
    def test_it_is_that_of_the_labels_where_a_cut_decides(self):
        """It was looked for among the decisions, 0 and 1, only: no value was accepted."""
        options = ("--cut", "score=0.7", "--seed", "1")
        found = run("audit", "my.csv", *WORDS, *options, "--favourable", "yes")
        assert found.exit_code in (0, 1), found.stderr
        assert 'policy "opportunity"' in found.stdout
        table = found.stdout.partition("\n\n")[2]
        same = run("audit", "my.csv", *WORDS, *options, "--pos-label", "yes")
        assert table == same.stdout.partition("\n\n")[2]

    def test_a_value_of_the_cut_does_not_name_the_label(self):
        message = refused("audit", *WORDS, "--cut", "score=0.7", "--favourable", "1")
        assert message.startswith("--favourable is 1, which does not occur in --y-true; it holds ")
        assert "Name the value of the labels that people want" in message

    def test_the_column_without_it_is_named(self):
        message = refused("audit", *WORDS, "--y-pred", "region", "--favourable", "yes")
        assert message.startswith("--favourable is 'yes', but --y-pred holds 'east', 'north', 's")

    @pytest.mark.parametrize("favourable", [(), ("--favourable", "yes")])
    def test_scores_in_place_of_decisions(self, favourable):
        """It said "column 0 has more than 64 values"."""
        message = refused("audit", *WORDS, "--y-pred", "score", *favourable)
        assert message == (
            "--y-pred has more than 64 distinct values. It must hold the decision, 0 or 1; scores "
            "belong in --y-score, or in --cut score=NUMBER."
        )

    def test_other_commands_name_their_option(self):
        message = refused("permutation", "-m", "tpr", *WORDS, "--favourable", "yes")
        assert "as --pos-label VALUE" in message


def test_groups_of_many_numbers_are_warned_of():
    found = run("audit", "my.csv", "-s", "score", "--y-pred", "approved")
    assert "warning: score holds" in found.stderr
    assert "bands = { score = [...] }" in found.stderr
    assert "numbers" not in run("audit", "my.csv", "-s", "age", "--y-pred", "approved").stderr


def test_a_missing_role_beside_a_policy_file(here):
    (here / "fairaudit.toml").write_text("[policy]\npreset = 'opportunity'\n")
    message = refused("audit", "-s", "sex", "--y-pred", "approved")
    assert "or set y_true in [roles] of fairaudit.toml. " in message
    assert "init" not in message


def test_values_of_files_say_how_to_write_them(here):
    start = "[policy]\nname = 'x'\n[[policy.criterion]]\nmetric = 'tpr'\n"

    def wrong(line, text=start):
        (here / "fairaudit.toml").write_text(f"{text}{line}\n")
        return refused("audit", "-s", "sex", "--y-pred", "approved", "--y-true", "repaid")

    assert "such as 0.1 for 10 percentage points" in wrong("tolerance = 10")
    group = wrong("tolerance = 0.1\nreference = 'female'")
    assert "attributes is not given. Give the one that it belongs to, as in attri" in group
    table = wrong("tolerance = 0.1\nreference = { sex = 'female' }")
    assert "accepted: a group, such as 'female', with its attribute in attributes = ['s" in table
    assert "accepted: a whole number of 30 or more" in wrong(
        "floor = 10", "[policy]\npreset = 'parity'\n"
    )
    quotes = wrong("y_true = stayed", "[roles]\n")
    assert quotes.endswith('Texts need quotes, as in y_true = "repaid"')
    assert "did you mean 'true_positive_rate'?" in wrong("metric = 'tpr_rate'", start[:-15])


# -- calls -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(main.commands))
def test_help(name):
    """Summaries are not cut in the list of commands, and every option is explained."""
    command = main.commands[name]
    summary = command.help.partition("\n")[0]
    assert len(summary) < 60
    assert summary in run("--help").stdout
    assert all(option.help for option in command.params if option.param_type_name == "option")
    assert command.example().startswith(f"fairaudit {name}")


@pytest.mark.parametrize("name", sorted({*main.commands} - {"demo", "metrics"}))
def test_without_data_there_is_an_example(name):
    done = run(name)
    assert done.exit_code == 2
    assert done.stderr.rstrip().endswith(f"Example: {main.commands[name].example()}")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("permutation", "-s", "sex"), "Missing option '--metric' / '-m'. 'fairaudit metrics' lis"),
        (("audit", "sex"), "unexpected extra argument (sex). Columns go after an option, such as "),
        (("audit", "--reference", "F"), "The policy names the reference group of an audit"),
        (("audit", "-m", "tpr"), "The policy names the metrics of an audit"),
        (("tabulate",), "Missing option '--sensitive' / '-s'. Example: fairaudit tabulate"),
        (("audit", "--y-prd", "approved"), "'--y-pred'"),
    ],
)
def test_wrong_calls(call, words):
    message = refused(*call)
    assert words in message
    assert f"Example: fairaudit {call[0]} " in message


def test_unknown_commands():
    assert "No such command 'adit'; did you mean 'audit'? " in run("adit").stderr
    assert "No such command 'qqqqq'. 'fairaudit --help' lists all" in run("qqqqq").stderr
    assert run("qqqqq").exit_code == 2


# -- init and demo -----------------------------------------------------------------------------


class TestInit:
    def test_says_why_scores_were_not_found(self):
        found = run("init", "my.csv").stdout
        assert re.search(r"y_score: not found \(score goes from 0.* to 1\.\d+; scores must ", found)

    def test_says_that_the_favourable_value_is_not_set(self, here):
        assert "favourable: not set; the audit takes 1\n" in run("init", "my.csv").stdout
        assert "favourable" not in tomllib.loads((here / "fairaudit.toml").read_text())["policy"]

    def test_does_not_blame_an_option_that_was_not_given(self):
        run("init", "my.csv")
        assert refused("init") == (
            "fairaudit.toml exists already and is left as it is. Edit it, delete it, or write "
            "another file with -o NAME."
        )

    def test_explains_the_tolerance_and_what_does_not_bind(self, here):
        run("init", "my.csv")
        text = (here / "fairaudit.toml").read_text()
        assert "accepted: 10 percentage points. This\n# is a default and not a law." in text
        lines = [line for line in text.splitlines() if line.startswith("binding")]
        assert set(lines) == {"binding = false  # shown only, not part of the verdict"}
        assert 'write a preset, such as preset = "parity", in place of name' in text
        assert "fairaudit_rs" not in text


class TestDemoFile:
    def test_it_is_the_same_every_time(self, here):
        assert "fairaudit init loans.csv" in run("demo", "--write", "loans.csv").stdout
        run("demo", "--write", "again.csv")
        text = (here / "loans.csv").read_text()
        assert text == (here / "again.csv").read_text()
        assert text.count("\n") == 1_801

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (("my.csv",), "my.csv exists already"),
            (("x.txt",), "--write is x.txt; accepted: a name that ends in .csv"),
            (("no/x.csv",), "its directory does not exist"),
            (("x.csv", "--rows", "500"), "--write makes the same file every time"),
        ],
    )
    def test_what_is_refused(self, given, message, here):
        before = (here / "my.csv").read_bytes()
        done = run("demo", "--write", *given)
        assert done.exit_code == 2
        assert message in done.stderr
        assert (here / "my.csv").read_bytes() == before
        assert not (here / "x.csv").exists()
