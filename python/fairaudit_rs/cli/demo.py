"""The command `fairaudit demo`, which audits synthetic data."""

from __future__ import annotations

import random
from pathlib import Path
from shlex import quote

import click

import fairaudit_rs as fa

from ..errors import ArgumentError
from ..writing import check_target, write_text
from . import options
from .command import command
from .messages import print_text, width
from .show import print_tests


@command()
@click.option(
    "--rows",
    "n_rows",
    default=20_000,
    show_default=True,
    type=click.IntRange(100, 10**8),
    help="Number of made-up applicants.",
)
@click.option(
    "--seed",
    "rng",
    default=2020,
    show_default=True,
    type=click.IntRange(0),
    help="Seed of the data and of the tests.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the audit to this .md file.",
)
@options.path_option(
    "--write",
    "file",
    "Write the untidy CSV file of docs/first_audit.md, with 1,800 made-up applications, and do "
    "nothing else.",
)
@click.pass_context
def demo(
    context: click.Context, /, n_rows: int, rng: int, output: Path | None, file: Path | None
) -> None:
    """Audit made-up loan decisions whose bias is known.

    Prints tests of single metrics, then the verdict of an audit. The exit code is 0 whatever the
    verdict: this is a demonstration.

    \b
    fairaudit demo
    fairaudit demo --rows 500 -o demo.md      (few rows: the verdict stays open)
    fairaudit demo --write loans.csv          (a file to try 'init' and 'audit' on)
    """
    if file is not None:
        _write_file(file, context)
        return
    if output is not None:
        if output.suffix != ".md":
            raise ArgumentError(
                f"--output is {output}; accepted: a name that ends in .md", argument="output"
            )
        check_target("--output", output)
    data = fa.datasets.synthetic_credit(n_rows, rng=rng)
    print_text(
        f"{n_rows:,} loan applications. By construction women who would repay are approved less "
        "often than men\n(true positive rate .82 against .88); the false positive rate is .30 "
        "for everybody.\n"
    )
    tests = [
        (
            attribute,
            fa.permutation_test(
                data["repaid"],
                data["approved"],
                y_score=data["score"],
                sensitive_features={attribute: data[attribute]},
                metric=metric,
                rng=rng,
            ),
        )
        for attribute in ("sex", "age")
        for metric in (
            "selection_rate",
            "true_positive_rate",
            "false_positive_rate",
            "positive_predictive_value",
            "f1",
            "calibration_error",
            "auc",
        )
    ]
    print_tests(tests)
    by_sex = next(
        result
        for attribute, result in tests
        if attribute == "sex" and result.metric == "true_positive_rate"
    )
    print_text(f"\nIn words: {by_sex.summary()}")
    nearest = fa.projection_test(
        data["repaid"], y_score=data["score"], sensitive_features={"sex": data["sex"]}, rng=rng
    )
    nearest_text = nearest.to_text(width())
    print_text(f"\nThe score with a threshold of 0.5, {nearest_text}")
    audited = fa.audit(
        data["repaid"],
        data["approved"],
        sensitive_features={"sex": data["sex"], "age": data["age"]},
        rng=rng,
    )
    print_text(
        "\nThe verdict of an audit. A gap that is shown to exist may be small enough for a policy "
        f"to tolerate.\n\n{audited.to_text(width())}\n\nseed {audited.seed}"
    )
    if output is not None:
        write_text("--output", output, audited.to_markdown())


def _write_file(file: Path, context: click.Context) -> None:
    """Write the untidy file, and print how to go on."""
    for option in ("n_rows", "rng", "output"):
        if context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE:
            raise ArgumentError(
                "--write makes the same file every time and audits nothing. Leave out the other "
                "options.",
                argument="file",
                mentions=(option,),
                code="conflicting-arguments",
            )
    if file.suffix != ".csv":
        raise ArgumentError(
            f"--write is {file}; accepted: a name that ends in .csv", argument="file"
        )
    check_target("--write", file)
    if file.exists():
        raise ArgumentError(
            f"{file} exists already and is left as it is. Delete it, or choose another name.",
            argument="file",
        )
    write_text("--write", file, untidy_loans())
    print_text(f"1,800 made-up loan applications are in {file}. Next:")
    print_text(f"  fairaudit init {quote(str(file))}", whole=True)


def untidy_loans() -> str:
    """Return a table as people have it: semicolons, blanks, NA and ?, dates, yes and no.

    Women who would pay back are approved less often than men.
    """
    draw = random.Random(4)
    lines = ["Applied ; Gender; Age ;Region;Decision;Paid back;Interview"]
    for _ in range(1_800):
        gender = draw.choices(["female", "male", "?", ""], [46, 50, 2, 2])[0]
        age = "NA" if draw.random() < 0.04 else draw.randint(18, 79)
        good = draw.random() < 0.6
        chance = (0.75 if good else 0.3) - 0.2 * (gender == "female" and good)
        decision = "yes" if draw.random() < chance else "no"
        back = "NA" if draw.random() < 0.01 else "yes" if good else "no"
        day = f"{draw.randint(1, 28):02d}.{draw.randint(1, 12):02d}.2024"
        region, interview = draw.choice(["North", "South"]), draw.choice(["A", "B", "n/a"])
        lines.append(f"{day}; {gender};{age};{region};{decision}; {back};{interview}")
    return "\n".join(lines) + "\n"
