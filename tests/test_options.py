"""Options of the command line: each sets an argument of Python, and messages name it."""

import inspect
import re
import sys

import click
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main
from fairaudit_rs.cli.messages import with_options
from fairaudit_rs.data.frames import FrameSource

from . import signatures

FUNCTIONS = {
    "permutation": fa.permutation_test,
    "projection": fa.projection_test,
    "influence": fa.influence_audit,
    "extremes": fa.extreme_test,
    "calibrate": fa.calibrate,
    "audit": fa.audit,
    "intervals": fa.intervals,
    "equivalence": fa.equivalence_test,
    "power": fa.minimum_detectable_gap,
    "tabulate": fa.tabulate,
    "compare": fa.compare_models,
}
#: Files that are written.
FILES = {"json_path", "moves_path", "plot_path"}
#: What the policy is made of, what is printed, and how the command ends.
BESIDES = {"counts", "policy_path", "preset", "favourable", "strict", "form", "output", "quiet"}
#: How files are read.
BESIDES |= {"where", "cut", "delimiter", "encoding", "columns", "skip_lines", "combine"}
#: What ends or accompanies a command.
BESIDES |= {"tolerance", "show_progress"}
#: Text that is a number, a word, or none.
READ = {"upper": float}


def disagreeing(command, function):
    """Return what the options of a command say otherwise than the function that it calls."""
    given = signatures.arguments_of(function)
    found = []
    for option in command.params:
        name = option.name
        if name in FILES or (name in BESIDES and name not in given):
            continue
        if name not in given:
            found.append(f"{name} is no argument of {function.__name__}")
            continue
        default, own = given[name].default, option.default
        own = READ[name](own) if name in READ else own
        # What click holds where there is no default is of a class of its own.
        if isinstance(own, bool | int | float | str) and own != default:
            found.append(f"{name} is {own!r} by default, and {default!r} in Python")
        words = re.fullmatch(r"\{(.*)\}.*", signatures.described(function)[name].type)
        if isinstance(option.type, click.Choice) and words and "..." not in words[1]:
            accepted = [word.strip('"') for word in words[1].split(", ")]
            if list(option.type.choices) != accepted:
                found.append(f"{name} is one of {option.type.choices}, and {accepted} in Python")
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_options_are_arguments_with_their_defaults(name):
    assert disagreeing(main.commands[name], FUNCTIONS[name]) == []


def test_other_options_are_found():
    @click.command()
    @click.option("--n-resamples", default=99)
    @click.option("--colour")
    @click.option("--alternative", type=click.Choice(["less", "more"]))
    def planted():
        """Do nothing."""

    assert disagreeing(planted, fa.permutation_test) == [
        "n_resamples is 99 by default, and 9999 in Python",
        "colour is no argument of permutation_test",
        "alternative is one of ('less', 'more'), and ['two-sided', 'greater', 'less'] in Python",
    ]


def test_every_command_that_computes_is_compared():
    assert set(main.commands) - set(FUNCTIONS) == {"demo", "metrics", "init"}


def test_an_argument_has_one_option():
    options = {}
    for command in main.commands.values():
        for option in command.params:
            assert options.setdefault(option.name, option.opts) == option.opts
    assert options["rng"] == ["--seed"]


# -- messages ----------------------------------------------------------------------------------


def about(message, argument=None, *mentions):
    return fa.errors.ArgumentError(message, argument=argument, mentions=mentions)


@pytest.mark.parametrize(
    ("command", "error", "shown"),
    [
        # the argument that it is about
        ("permutation", about("metric is 'tqr'", "metric"), "--metric is 'tqr'"),
        (
            "permutation",
            about("n_threads is 0; accepted: 1", "n_threads"),
            "--threads is 0; accepted: 1",
        ),
        ("permutation", about("rng is -1", "rng"), "--seed is -1"),
        ("permutation", about("groups names 'x'", "groups"), "--group names 'x'"),
        ("permutation", about("sample_weight is 0 in", "sample_weight"), "--weight is 0 in"),
        ("calibrate", about("gaps holds nan", "gaps"), "--gap holds nan"),
        (
            "permutation",
            about("data is 'a.csv'; no such file", "data"),
            "DATA is 'a.csv'; no such file",
        ),
        (
            "projection",
            about("distance and y_score are None", "distance", "y_score"),
            "--distance and --y-score are None",
        ),
        # without an argument, and with one of other commands or of Python alone
        ("permutation", about("metric is 'tqr'"), "metric is 'tqr'"),
        ("permutation", about("bandwidth is 0", "bandwidth"), "bandwidth is 0"),
        ("permutation", about("studentize is 'x'", "studentize"), "studentize is 'x'"),
        # names in sentences, with a value or without
        (
            "permutation",
            about("scores belong in y_score", None, "y_score"),
            "scores belong in --y-score",
        ),
        ("permutation", about("named by groups= and", None, "groups"), "named by --group and"),
        ("permutation", about("take pos_label='yes'.", None, "pos_label"), "take --pos-label yes."),
        ("permutation", about("take pos_label=0.5.", None, "pos_label"), "take --pos-label 0.5."),
        ("permutation", about("or adaptive=True", None, "adaptive"), "or --adaptive"),
        ("extremes", about("upper=None for scores", None, "upper"), "--upper none for scores"),
        (
            "projection",
            about("with calibration='permutation'; x", None, "calibration"),
            "with --calibration permutation; x",
        ),
        ("permutation", about("names go with data=", None, "data"), "names go with DATA"),
        # words, values and code
        (
            "permutation",
            about("metric is 'x', no metric of groups", "metric", "groups"),
            "--metric is 'x', no metric of groups",
        ),
        (
            "permutation",
            about("column 'y_pred' is text", None, "y_pred"),
            "column 'y_pred' is text",
        ),
        (
            "permutation",
            about('column "y_pred" is text', None, "y_pred"),
            'column "y_pred" is text',
        ),
        ("permutation", about("column 'my y_pred col'", None, "y_pred"), "column 'my y_pred col'"),
        (
            "permutation",
            about("in old_y_pred, y_pred.csv", None, "y_pred"),
            "in old_y_pred, y_pred.csv",
        ),
        (
            "projection",
            about("distance=model.distance(X), or", None, "distance"),
            "distance=model.distance(X), or",
        ),
        (
            "permutation",
            about("y_score=model.predict(X)[:, 1]", None, "y_score"),
            "y_score=model.predict(X)[:, 1]",
        ),
        (
            "permutation",
            about("pass y_pred=(y_score >= c)", None, "y_pred"),
            "pass y_pred=(y_score >= c)",
        ),
        ("permutation", about("pos_label=[1]", None, "pos_label"), "pos_label=[1]"),
        (
            "permutation",
            about("metrics.count_metric(metric)", None, "metric"),
            "metrics.count_metric(metric)",
        ),
        ("permutation", about("with data=cells", None, "data"), "with data=cells"),
        ("permutation", about(""), ""),
    ],
)
def test_messages(command, error, shown):
    assert with_options(error, main.commands[command]) == shown


@pytest.fixture
def book(tmp_path):
    rng = np.random.default_rng(3)
    n = 400
    frame = pl.DataFrame(
        {
            "repaid": rng.integers(0, 2, n),
            "approved": rng.integers(0, 2, n),
            "score": rng.random(n),
            "flipped": rng.random(n),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.choice(["old", "mid", "young"], n),
        }
    )
    path = tmp_path / "loans.csv"
    frame.write_csv(path)
    return str(path)


LABELS = ("--y-true", "repaid", "--y-pred", "approved")
SCORES = ("--y-score", "score", "--counterfactual-score", "flipped")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("permutation", *LABELS, "-m", "tpr", "--n-resamples", "0"), "--n-resamples is 0; acc"),
        (("permutation", *LABELS, "-m", "tpr", "--threads", "0"), "--threads is 0; accepted: a"),
        (
            ("permutation", *LABELS, "-m", "tpr", "--confidence-level", "95"),
            "--confidence-level is 95.0; accepted",
        ),
        (
            ("permutation", *LABELS, "-m", "tpr", "--pos-label", "maybe"),
            "--pos-label is 'maybe', which does not occur in",
        ),
        (
            ("permutation", "--y-true", "repaid", "--y-pred", "score", "-m", "tpr"),
            "scores belong in --y-score",
        ),
        (
            ("permutation", *LABELS, "-m", "tpr", "-s", "age", "--alternative", "less"),
            "--alternative is 'less', which is not defined for .* groups. Pass --alternative "
            "two-sided, or compare two groups",
        ),
        (("calibrate", *LABELS, "-m", "tpr", "--n-audits", "1"), "--n-audits is 1; accepted"),
        (("calibrate", *LABELS, "-m", "tpr", "--gap", "0"), "--gap contains 0.0; accepted"),
        (("projection", *LABELS), "no column of scores or distances to the decision boundary"),
        (
            ("projection", "--y-true", "repaid", "--y-score", "score", "--bandwidth", "0"),
            "--bandwidth is 0.0; accepted",
        ),
        (
            ("influence", *LABELS, "-m", "tpr", "--target", "x", "-f", "age"),
            "--target names 'x'",
        ),
        (
            ("extremes", *SCORES, "--upper", "column"),
            "--upper is 'column'; accepted",
        ),
        (
            ("extremes", *SCORES, "--n-exceedances", "few"),
            "--n-exceedances is 'few'; accepted",
        ),
    ],
)
def test_errors_of_commands(arguments, message, book):
    name, *others = arguments
    done = CliRunner().invoke(main, [name, book, "-s", "sex", *others])
    assert done.exit_code == 2
    assert re.search(f"^fairaudit: error: .*{message}", done.stderr), done.stderr
    assert done.stderr.count("\n") == 1


def test_python_keeps_its_words():
    with pytest.raises(fa.errors.ArgumentError, match=r"^n_resamples is 0"):
        fa.permutation_test(y_pred=[0, 1], sensitive_features=[0, 1], metric="f1", n_resamples=0)


def test_left_out_options_keep_the_defaults_of_python(monkeypatch, book):
    seen = {}

    def permutation_tests(metrics, **given):
        seen.update(given)
        raise fa.errors.DataError("enough")

    command = sys.modules["fairaudit_rs.cli.permutation"]
    monkeypatch.setattr(command, "permutation_tests", permutation_tests)
    CliRunner().invoke(main, ["permutation", book, "-s", "sex", "-s", "age", "-m", "tpr"])
    assert seen["sensitive_features"] == ["sex", "age"]
    assert not {"strata", "groups", "clusters", "y_score", "rng", "n_threads"} & set(seen)
    parameters = inspect.signature(fa.permutation_test).parameters
    rest = set(seen) - {"data", "sensitive_features", "progress"}
    assert {name: seen[name] for name in rest} == {name: parameters[name].default for name in rest}


def test_several_metrics_read_the_file_once(monkeypatch, book):
    reads = []
    original = FrameSource.count

    def counted(*given):
        reads.append(given)
        return original(*given)

    monkeypatch.setattr(FrameSource, "count", counted)
    command = [
        "permutation",
        book,
        "-s",
        "sex",
        "--y-true",
        "repaid",
        "--y-pred",
        "approved",
        "--seed",
        "1",
    ]
    together = CliRunner().invoke(main, [*command, "-m", "tpr", "-m", "f1", "-m", "ppv"])
    assert together.exit_code == 0, together.stderr
    assert len(reads) == 1
    alone = CliRunner().invoke(main, [*command, "-m", "f1"])
    assert alone.stdout.splitlines()[-1] in together.stdout


def test_missing_groups_and_mixed_clusters(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "approved": rng.integers(0, 2, 300),
            "sex": rng.choice(np.array(["f", "m", None], dtype=object), 300).tolist(),
            "person": np.arange(300) // 2,
        }
    )
    frame.write_csv(tmp_path / "loans.csv")
    command = ["permutation", str(tmp_path / "loans.csv"), "-s", "sex", "--y-pred", "approved"]
    command += ["-m", "selection_rate", "--seed", "1", "--n-resamples", "99"]
    own = CliRunner().invoke(main, [*command, "--missing", "own"])
    assert own.exit_code == 0, own.stderr
    assert "missing" in own.stdout
    assert "belong to no group" not in own.stdout
    plain = CliRunner().invoke(main, command)
    assert "belong to no group" in plain.stdout
    clustered = [*command, "--clusters", "person"]
    refused = CliRunner().invoke(main, clustered)
    assert refused.exit_code == 2
    assert re.search(
        r"clusters have rows in more than one group: cluster \d+ has rows in 'f', 'm'\. Pass "
        r"--mixed-clusters split .* as --strata instead",
        refused.stderr,
    )
    for how, text in (("split", "are split into"), ("drop", "are excluded, with their")):
        found = CliRunner().invoke(main, [*clustered, "--mixed-clusters", how])
        assert found.exit_code == 0, found.stderr
        assert text in found.stdout
