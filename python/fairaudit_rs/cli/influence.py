"""The command `fairaudit influence`, which finds features that stand in for a group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import fairaudit_rs as fa

from . import options
from .command import command
from .show import print_results, write_json


@command()
@options.data
@options.metric_option("A rate, calibration or divergence; may be repeated.")
@click.option(
    "--sensitive",
    "-s",
    "sensitive_features",
    required=True,
    help="Column of groups.",
)
@click.option("--target", required=True, help="The group whose gap is explained.")
@click.option(
    "--features", "-f", multiple=True, required=True, help="Column of a feature. May be repeated."
)
@options.labels_or_scores
@options.cut
@options.pos_label
@options.reading
@click.option(
    "--n-draws",
    default=2_000,
    show_default=True,
    type=int,
    help="Random draws for intervals that hold jointly.",
)
@options.computation
@options.json_file("results")
def influence(
    metric: tuple[str, ...],
    json_path: Path | None,
    **given: Any,
) -> None:
    """Find the features of DATA that stand in for a group.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit influence loans.parquet -s sex --target female -m fpr -f job -f hours \\
        --y-true repaid --y-pred approved
    """
    options.check_files(json=json_path)
    results = options.of_each(fa.influence_audit, metric, given)
    print_results(results)
    if json_path is not None:
        write_json(json_path, [result.to_dict() for result in results])
