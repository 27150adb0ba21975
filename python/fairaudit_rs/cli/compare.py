"""`fairaudit compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

import fairaudit_rs as fa

from ..literals import PlainAdjustment
from . import options
from .messages import say
from .show import print_changes, print_end, write_json


@click.command()
@options.data
@options.metric()
@options.sensitive()
@options.y_true
@click.option("--first", required=True, help="Column of decisions or scores of the first model.")
@click.option("--second", required=True, help="Column of those of the second model.")
@options.counts
@options.compared
@options.alternative
@options.adjust(get_args(PlainAdjustment))
@options.n_resamples(9_999, "Replicates of methods that draw some.")
@options.computation
@options.json_file("results")
def compare(metric: tuple[str, ...], json_path: Path | None, **given: Any) -> None:
    """Ask whether the gap of a second model is smaller than that of a first, on the same rows.

    DATA is a Parquet or CSV file, or a glob of them in quotes. With --alternative less the
    question is whether gaps became smaller.

    \b
    fairaudit compare loans.csv -s sex -m tpr --y-true repaid --first before --second after
    fairaudit compare loans.csv -s sex -m auc --y-true repaid --first old --second new \\
        --alternative greater
    """
    options.check_files(json=json_path)
    results = options.of_each(fa.compare_models, metric, given)
    for result in results:
        say(f"{result}\n")
        print_changes(result)
    print_end(results[0], results[0].seed)
    if json_path is not None:
        write_json(json_path, [result.to_dict() for result in results])
