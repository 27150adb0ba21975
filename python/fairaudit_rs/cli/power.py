"""The command `fairaudit power`, which computes the smallest detectable gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import fairaudit_rs as fa

from . import options
from .command import command
from .counts import as_cells
from .messages import print_text
from .show import write_json


@command()
@options.data
@options.metric_option()
@options.sensitive_or_counts
@options.gap_columns
@options.row_columns
@click.option(
    "--power",
    default=0.8,
    show_default=True,
    type=float,
    help="Probability of finding the gap, or of showing that there is none.",
)
@click.option(
    "--goal",
    default="difference",
    show_default=True,
    type=click.Choice(["difference", "equivalence"]),
    help="Goal of the test: to find a gap, or to show that none is as large.",
)
@options.alternative
@click.option(
    "--n-comparisons",
    type=int,
    help="Number of pairs of groups that share the level. Default: all pairs.",
)
@options.confidence_level
@options.json_file("plans")
def power(metric: tuple[str, ...], json_path: Path | None, **given: Any) -> None:
    """Compute the smallest gap that a test on DATA can find.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit power loans.csv -s sex -m tpr --y-true repaid --y-pred approved
    fairaudit power loans.csv -s sex -m tpr --goal equivalence --y-true repaid --y-pred approved
    """
    options.check_files(json=json_path)
    arguments = as_cells(options.given_arguments(given))
    plans = [fa.minimum_detectable_gap(metric=name, **arguments) for name in metric]
    for plan in plans:
        print_text(f"{plan}")
    if json_path is not None:
        write_json(json_path, [plan.to_dict() for plan in plans])
