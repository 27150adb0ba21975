"""`fairaudit intervals`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

import fairaudit_rs as fa

from ..literals import IntervalMethod
from . import options
from .messages import say
from .options import check_files
from .show import print_end, print_intervals, write_json


@click.command()
@options.data
@options.metric("Name of a metric; may be repeated. 'fairaudit metrics' lists them.")
@options.sensitive()
@options.labels
@options.strata("Column within whose values gaps are taken; may be repeated.")
@options.pos_label
@options.reading
@options.reference
@options.group(
    "A group to compare, repeated for each; all when left out. 'a & b' is an intersection."
)
@options.left_out
@click.option(
    "--method",
    default="auto",
    show_default=True,
    type=click.Choice(get_args(IntervalMethod)),
    help="How intervals are made.",
)
@options.clusters
@options.mixed_clusters
@options.weight
@options.n_resamples(9_999, "Replicates of methods that draw some.")
@options.computation
@options.json_file("results")
def intervals(metric: tuple[str, ...], json_path: Path | None, **given: Any) -> None:
    """Say how large metrics, their gaps and ratios can be in the groups of DATA.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit intervals loans.csv -s sex -m tpr --y-true repaid --y-pred approved
    """
    check_files(json=json_path)
    asked = options.asked(given)
    results = []
    for name in metric:
        results.append(fa.intervals(metric=name, progress=options.progress(), **asked))
        asked["rng"] = results[0].seed
    for result in results:
        say(f"{result}\n")
        print_intervals(result.to_frame())
    print_end(results[0], results[0].seed)
    if json_path is not None:
        write_json(json_path, [result.to_dict() for result in results])
