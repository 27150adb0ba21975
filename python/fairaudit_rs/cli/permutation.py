"""The command `fairaudit permutation`, which tests metrics for equality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..permutation.lens import permutation_tests
from . import options
from .command import command
from .counts import as_cells
from .messages import print_text
from .show import print_results, print_tests, write_json


@command()
@options.data
@options.metric_option()
@options.sensitive_or_counts
@options.labels
@options.strata_option(
    "Compare only rows with the same value of this column, such as a department. May be repeated."
)
@options.compared
@options.alternative
@options.adjust_option(["holm", "bh", "max-t", "none"])
@options.row_columns
@options.counts
@click.option(
    "--interval",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "inversion", "delta", "studentized", "basic", "percentile"]),
    help="How intervals are computed.",
)
@options.n_resamples(9_999, "Random permutations of a test that is not exact.")
@click.option(
    "--adaptive", is_flag=True, help="Stop drawing permutations as soon as the result is clear."
)
@options.computation
@options.json_file("results")
def permutation(
    metric: tuple[str, ...],
    json_path: Path | None,
    **given: Any,
) -> None:
    """Test whether metrics are equal in all groups of DATA.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit permutation loans.parquet -s sex -m tpr --y-true repaid --y-pred approved
    """
    options.check_files(json=json_path)
    progress = options.shows_progress()
    arguments = as_cells(options.given_arguments(given))
    results = permutation_tests(metric, progress=progress, **arguments)
    print_tests([(result.attribute, result) for result in results])
    if len(results) > 1:
        print_text(
            f"\np, Holm: adjusted over these {len(results)} metrics. The sentences below are about "
            "one metric each, unadjusted."
        )
    print_text("")
    print_results(results)
    if json_path is not None:
        write_json(json_path, [result.to_dict() for result in results])
