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
@options.sensitive_option("all are kept")
@options.labels
@options.strata_option("Column that is kept as a stratum; may be repeated.")
@options.counts
@click.option("--score-bins", type=int, help="Bins of scores from 0 to 1.")
@options.pos_label
@options.reading
@options.threads
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this .csv or .parquet file instead of printing.",
)
def tabulate(output: Path | None, **given: Any) -> None:
    """Count the rows of DATA by group, label and decision.

    DATA is a Parquet or CSV file, or a glob of them in quotes. Counts hold no people: they can
    leave the house, add up, and are read by the other commands as they are.

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
