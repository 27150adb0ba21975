"""The command `fairaudit demo`, which audits synthetic data."""

from __future__ import annotations

from pathlib import Path

import click

import fairaudit_rs as fa

from ..errors import ArgumentError
from ..writing import check_target, write_text
from .command import command
from .messages import print_text, width
from .show import print_moves, print_tests


@command()
@click.option(
    "--rows",
    "n_rows",
    default=20_000,
    show_default=True,
    type=click.IntRange(100, 10**8),
    help="Applicants in the synthetic credit book.",
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
    help="Write the audit to this .md file too.",
)
def demo(n_rows: int, rng: int, output: Path | None) -> None:
    """Audit a synthetic credit book whose bias is known: tests first, then the verdict.

    The exit code is 0 whatever the verdict: it is a demonstration.

    \b
    fairaudit demo
    fairaudit demo --rows 500 -o demo.md      (few rows: how a verdict stays open)
    """
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
    print_text(f"\nThe score with a threshold of 0.5, {nearest.summary()}")
    print_moves(nearest)
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
