"""The command `fairaudit extremes`, which tests the worst cases of flipping an attribute."""

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
@click.option("--y-score", required=True, help="Column of scores of the unchanged rows.")
@click.option(
    "--counterfactual-score",
    required=True,
    help="Column of scores of the same rows with their attribute changed.",
)
@options.sensitive_option()
@click.option(
    "--horizon",
    default=1_000.0,
    show_default=True,
    type=float,
    help="The worst case is the worst 1 in this many rows.",
)
@click.option(
    "--null",
    default="equal_levels",
    show_default=True,
    type=click.Choice(["equal_levels", "equal_laws"]),
    help="Hypothesis that the p-value tests: equal worst cases, or equal distributions.",
)
@click.option(
    "--upper",
    default="1",
    show_default=True,
    help="Largest possible difference: a number, none, or row for 1 - score of each row.",
)
@click.option(
    "--n-exceedances",
    default="auto",
    show_default=True,
    help="Number of the largest differences of each group that are fitted, or auto.",
)
@options.group_option("A group to compare; all groups by default. May be repeated.")
@options.reading
@options.reference
@options.n_resamples(999, "Permutations of --null equal_laws.")
@options.computation
@options.json_file("result")
def extremes(
    upper: str,
    n_exceedances: str,
    json_path: Path | None,
    **given: Any,
) -> None:
    """Test how much an attribute changes scores at worst.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit extremes loans.parquet --y-score score --counterfactual-score flipped \\
        -s sex --horizon 1000
    """
    options.check_files(json=json_path)
    result = fa.extreme_test(
        upper=_upper(upper),
        n_exceedances=_whole(n_exceedances),
        progress=options.shows_progress(),
        **options.given_arguments(given),
    )
    print_results([result])
    if json_path is not None:
        write_json(json_path, result.to_dict())


def _upper(text: str) -> Any:
    """Return the number that is meant; other words are judged by the test."""
    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _whole(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text
