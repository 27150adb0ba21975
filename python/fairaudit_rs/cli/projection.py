"""The command `fairaudit projection`, which measures the distance to fair scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import fairaudit_rs as fa

from ..projection.notions import NOTIONS
from ..results.chart import picture_kind
from ..writing import write_file
from . import options
from .command import command
from .show import print_results, write_json


@command()
@options.data
@options.sensitive_option("see --attributes")
@click.option(
    "--notion",
    default="equal_opportunity",
    show_default=True,
    type=click.Choice(list(NOTIONS)),
    help="The rates that must be equal.",
)
@options.labels_or_scores
@click.option(
    "--threshold",
    default=0.5,
    show_default=True,
    type=float,
    help="Scores of at least this are positive decisions.",
)
@click.option("--distance", help="Column of distances to the decision boundary.")
@click.option(
    "--attributes",
    default="crossed",
    show_default=True,
    type=click.Choice(["crossed", "separate"]),
    help="Several columns of groups: compare their intersections, or each column by itself.",
)
@options.group_option("A group to compare; all groups by default. May be repeated.")
@options.reference
@click.option("--epsilon", type=float, help="Gaps up to this size count as fair.")
@options.alternative
@options.weight
@options.pos_label
@options.reading
@click.option(
    "--bandwidth", type=float, help="Bandwidth of the density estimate near the boundary."
)
@click.option(
    "--calibration",
    default="asymptotic",
    show_default=True,
    type=click.Choice(["asymptotic", "permutation"]),
    help="How the p-value is computed. Use permutation for trees and categorical data.",
)
@options.n_resamples(999, "Random permutations for --calibration permutation.")
@options.computation
@options.path_option(
    "--moves",
    "moves_path",
    "Write the rows whose decisions would change to this CSV or Parquet file.",
)
@options.path_option(
    "--plot", "plot_path", "Write the chart to this .json, .svg, .png or .html file."
)
@options.json_file("result")
def projection(
    moves_path: Path | None,
    plot_path: Path | None,
    json_path: Path | None,
    **given: Any,
) -> None:
    """Measure how far DATA are from a fair distribution.

    The result also says whose decisions would have to change.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit projection loans.parquet -s sex --y-true repaid --y-score score --moves moves.csv
    """
    options.check_files(json=json_path, moves=moves_path, plot=plot_path)
    if plot_path is not None:
        picture_kind("--plot", plot_path)
    if moves_path is not None and moves_path.suffix not in (".csv", ".parquet"):
        raise fa.errors.ArgumentError(
            f"--moves is {moves_path}; accepted: a name that ends in .csv or .parquet",
            argument="moves",
        )
    result = fa.projection_test(progress=options.shows_progress(), **options.given_arguments(given))
    print_results([result])
    if moves_path is not None:
        frame = result.moves.to_frame()
        write = frame.write_csv if moves_path.suffix == ".csv" else frame.write_parquet
        write_file("--moves", moves_path, write)
    if plot_path is not None:
        result.plot().save(plot_path)
    if json_path is not None:
        write_json(json_path, [result.to_dict()])
