"""The command `fairaudit equivalence`, which shows that gaps are within a margin."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

import fairaudit_rs as fa

from ..literals import EquivalenceMethod
from . import options
from .command import command
from .show import print_results, write_json


@command()
@options.data
@options.metric_option()
@options.sensitive_or_counts
@click.option(
    "--margin",
    required=True,
    type=float,
    help="Largest difference that counts as equal; with --scale ratio, smallest ratio.",
)
@click.option(
    "--scale",
    default="difference",
    show_default=True,
    type=click.Choice(["difference", "ratio"]),
    help="Whether the margin is a difference or a ratio of two groups.",
)
@options.gap_options(get_args(EquivalenceMethod), "How each margin is tested.")
def equivalence(metric: tuple[str, ...], json_path: Path | None, **given: Any) -> None:
    """Test whether all gaps in DATA are within a margin.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit equivalence loans.csv -s sex -m tpr --margin 0.1 --y-true repaid --y-pred approved
    fairaudit equivalence loans.csv -s sex -m selection_rate --margin 0.8 --scale ratio \\
        --y-pred approved
    """
    options.check_files(json=json_path)
    results = options.of_each(fa.equivalence_test, metric, given, of_cells=True)
    print_results(results)
    if json_path is not None:
        write_json(json_path, [result.to_dict() for result in results])
