"""`fairaudit calibrate`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import fairaudit_rs as fa

from . import options
from .options import check_folders
from .show import write_json


@click.command()
@options.data
@options.metric("Name of a metric.")
@options.sensitive()
@options.y_true
@options.y_pred()
@options.y_score
@options.strata("Column within whose values groups are shuffled.")
@options.clusters
@options.weight
@options.pos_label
@click.option("--gap", "gaps", multiple=True, type=float, help="A gap to measure the power at.")
@click.option("--n-audits", default=1_000, show_default=True, type=int, help="Audits of each kind.")
@options.n_resamples(999, "Replicates of each test.")
@options.confidence_level
@options.seed
@options.threads
@options.json_file("reports")
@click.pass_context
def calibrate(
    context: click.Context,
    data: str,
    metrics: tuple[str, ...],
    features: tuple[str, ...],
    y_true: str | None,
    y_pred: str | None,
    y_score: str | None,
    strata: tuple[str, ...],
    clusters: tuple[str, ...],
    sample_weight: str | None,
    pos_label: str | None,
    gaps: tuple[float, ...],
    n_audits: int,
    n_resamples: int,
    confidence_level: float,
    seed: int | None,
    threads: int | None,
    json_path: Path | None,
) -> None:
    """Measure false alarms and power of the test on DATA.

    Groups are shuffled within strata, so that every rejection is a false alarm; then drawn anew
    with the given gaps. Exit code 1: more false alarms than the level allows.

    \b
    fairaudit calibrate loans.csv -s sex -m tpr --y-true repaid --y-pred approved --gap 0.05
    """
    check_folders(json=json_path)
    reports = []
    for metric in metrics:
        reports.append(
            fa.calibrate(
                y_true,
                y_pred,
                y_score=y_score,
                sensitive_features=list(features),
                data=data,
                metric=metric,
                gaps=gaps,
                strata=list(strata) or "auto",
                clusters=list(clusters) or None,
                sample_weight=sample_weight,
                pos_label=pos_label,
                n_audits=n_audits,
                n_resamples=n_resamples,
                confidence_level=confidence_level,
                rng=seed,
                n_threads=threads,
                progress=sys.stderr.isatty() or None,
            )
        )
        seed = reports[0].seed
        click.echo(str(reports[-1]))
    click.echo(f"seed {seed}")
    if json_path is not None:
        write_json(json_path, [report.to_dict() for report in reports])
    if not all(report.holds for report in reports):
        context.exit(1)
