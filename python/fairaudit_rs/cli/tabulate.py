"""The command `fairaudit tabulate`, which counts rows by group, label and decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import fairaudit_rs as fa

from ..data.cell_columns import as_text
from ..errors import ArgumentError
from ..writing import check_target, write_file
from . import options
from .command import command
from .messages import print_text


@command()
@options.data
@options.sensitive_option("all columns are kept")
@options.labels
@options.strata_option("Column to keep as a stratum. May be repeated.")
@options.counts
@click.option("--score-bins", type=int, help="Number of bins for scores from 0 to 1.")
@options.pos_label
@options.reading
@options.threads
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the counts to this .csv or .parquet file instead of printing them.",
)
def tabulate(output: Path | None, **given: Any) -> None:
    """Count the rows of DATA by group, label and decision.

    DATA is a Parquet or CSV file, or a glob of them in quotes. Counts contain no single
    people, so they can be shared and added up. The other commands read them like data.

    \b
    fairaudit tabulate loans.csv -s sex --y-true repaid --y-pred approved -o counts.csv
    fairaudit audit counts.csv
    """
    if output is not None:
        if output.suffix not in (".csv", ".parquet"):
            raise ArgumentError(
                f"--output is {output}; accepted: a name that ends in .csv or .parquet",
                argument="output",
            )
        check_target("--output", output)
    frame = fa.tabulate(**options.given_arguments(given)).to_frame()
    if output is None:
        print_text(as_text(frame).write_csv().rstrip("\n"), whole=True)
    else:
        write = as_text(frame).write_csv if output.suffix == ".csv" else frame.write_parquet
        write_file("--output", output, write)
