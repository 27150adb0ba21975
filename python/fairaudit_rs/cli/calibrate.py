"""The command `fairaudit calibrate`, which measures the errors of a test on simulated groups."""

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
@options.metric_option("Name of a metric.")
@options.sensitive_or_counts
@options.excluded_groups
@options.labels
@options.strata_option("Shuffle groups only among rows with the same value of this column.")
@options.row_columns
@options.counts
@options.pos_label
@options.reading
@click.option(
    "--gap",
    "gaps",
    multiple=True,
    type=float,
    help="A gap for which the power is measured. May be repeated.",
)
@click.option(
    "--null",
    type=click.Choice(["shuffle", "weak"]),
    default="shuffle",
    show_default=True,
    help="What equal groups share: shuffle, the whole distribution; weak, only the metric.",
)
@click.option(
    "--n-audits",
    default=1_000,
    show_default=True,
    type=int,
    help="Simulated tests for each gap and for no gap.",
)
@options.n_resamples(999, "Random permutations in each test.")
@options.computation
@options.json_file("reports")
@click.pass_context
def calibrate(
    context: click.Context,
    /,
    metric: tuple[str, ...],
    json_path: Path | None,
    **given: Any,
) -> None:
    """Measure false alarms and power of a test on DATA.

    Groups are shuffled within strata, so that every rejection is a false alarm. Then they are drawn
    again with the given gaps. With --null weak, rows are drawn from their own group and centred,
    so the effect of skewness shows.

    Exit code 1: more false alarms than the level allows.

    \b
    fairaudit calibrate loans.csv -s sex -m tpr --y-true repaid --y-pred approved --gap 0.05
    """
    options.check_files(json=json_path)
    arguments = as_cells(options.given_arguments(given))
    reports = []
    for name in metric:
        reports.append(fa.calibrate(metric=name, progress=options.shows_progress(), **arguments))
        arguments["rng"] = reports[0].seed
        print_text(str(reports[-1]))
    print_text(f"seed {reports[0].seed}")
    if json_path is not None:
        write_json(json_path, [report.to_dict() for report in reports])
    if not all(report.holds for report in reports):
        context.exit(1)
