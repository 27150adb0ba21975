"""`fairaudit influence`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import fairaudit_rs as fa

from . import options
from .options import check_folders
from .show import print_scores, write_json


@click.command()
@options.data
@options.metric("A rate, calibration or divergence; may be repeated.")
@click.option(
    "--sensitive", "-s", "feature", required=True, help="Column whose values make the groups."
)
@click.option("--target", required=True, help="The group that is looked at.")
@click.option(
    "--features", "-f", multiple=True, required=True, help="Column of a feature; may be repeated."
)
@options.y_true
@options.y_pred("Column of decisions; not needed with --y-score.")
@options.y_score
@options.pos_label
@click.option(
    "--n-draws", default=2_000, show_default=True, type=int, help="Draws behind joint intervals."
)
@options.confidence_level
@options.seed
@options.threads
@options.json_file("results")
def influence(
    data: str,
    metrics: tuple[str, ...],
    feature: str,
    target: str,
    features: tuple[str, ...],
    y_true: str | None,
    y_pred: str | None,
    y_score: str | None,
    pos_label: str | None,
    n_draws: int,
    confidence_level: float,
    seed: int | None,
    threads: int | None,
    json_path: Path | None,
) -> None:
    """Find the features of DATA that stand in for a group.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit influence loans.parquet -s sex --target female -m fpr -f job -f hours \\
        --y-true repaid --y-pred approved
    """
    check_folders(json=json_path)
    results = []
    for metric in metrics:
        results.append(
            fa.influence_audit(
                y_true,
                y_pred,
                y_score=y_score,
                sensitive_features=feature,
                target=target,
                data=data,
                metric=metric,
                features=list(features),
                pos_label=pos_label,
                n_draws=n_draws,
                confidence_level=confidence_level,
                rng=seed,
                n_threads=threads,
                progress=sys.stderr.isatty() or None,
            )
        )
        seed = results[0].seed
    for result in results:
        click.echo(f"{result}")
        print_scores(result)
    if json_path is not None:
        write_json(json_path, [result.to_dict() for result in results])
