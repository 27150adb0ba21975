"""`fairaudit permutation`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import fairaudit_rs as fa

from . import options
from .options import check_folders
from .show import print_pairs, print_tests, write_json


@click.command()
@options.data
@options.metric("Name of a metric; may be repeated. 'fairaudit metrics' lists them.")
@options.sensitive()
@options.y_true
@options.y_pred()
@options.y_score
@options.strata("Column within whose values groups are compared; may be repeated.")
@options.pos_label
@options.reference
@options.group(
    "A group to compare, repeated for each; all when left out. 'a & b' is an intersection."
)
@options.alternative
@click.option(
    "--adjust",
    default="holm",
    show_default=True,
    type=click.Choice(["holm", "bh", "max-t", "none"]),
    help="Adjustment of the p-values of several pairs of groups.",
)
@options.clusters
@options.weight
@click.option(
    "--interval",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "delta", "studentized", "basic", "percentile"]),
    help="How intervals are made.",
)
@options.n_resamples(9_999, "Replicates of a test that is not exact.")
@click.option("--adaptive", is_flag=True, help="Stop as soon as the test is decided.")
@options.confidence_level
@options.seed
@options.threads
@options.json_file("results")
def permutation(
    data: str,
    metrics: tuple[str, ...],
    features: tuple[str, ...],
    y_true: str | None,
    y_pred: str | None,
    y_score: str | None,
    strata: tuple[str, ...],
    pos_label: str | None,
    reference: str | None,
    groups: tuple[str, ...],
    alternative: str,
    adjust: str,
    clusters: tuple[str, ...],
    sample_weight: str | None,
    interval: str,
    n_resamples: int,
    adaptive: bool,
    confidence_level: float,
    seed: int | None,
    threads: int | None,
    json_path: Path | None,
) -> None:
    """Test whether metrics are equal in all groups of DATA.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit permutation loans.parquet -s sex -m tpr --y-true repaid --y-pred approved
    """
    check_folders(json=json_path)
    results = []
    for metric in metrics:
        results.append(
            fa.permutation_test(
                y_true,
                y_pred,
                y_score=y_score,
                sensitive_features=list(features),
                data=data,
                metric=metric,
                strata=list(strata) or "auto",
                pos_label=pos_label,
                reference=reference,
                groups=list(groups) or None,
                alternative=alternative,
                adjust=adjust,
                clusters=list(clusters) or None,
                sample_weight=sample_weight,
                interval=interval,
                n_resamples=n_resamples,
                adaptive=adaptive,
                confidence_level=confidence_level,
                rng=seed,
                n_threads=threads,
                progress=sys.stderr.isatty() or None,
            )
        )
        seed = results[0].seed
    print_tests([(" & ".join(features), result) for result in results])
    if len(results) > 1:
        click.echo(
            f"\np, Holm: adjusted over these {len(results)} metrics. The sentences below are about "
            "one metric each, unadjusted."
        )
    for result in results:
        click.echo(f"\n{result}")
        print_pairs(result)
    if json_path is not None:
        write_json(json_path, [result.to_dict() for result in results])
