"""The command ``fairaudit``.

Exit codes: 0 done, 2 usage or data error, 130 interrupted. Verdicts (1 and 3) come with the
audit policy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import fairaudit_rs as fa

from .data.groups import group_name
from .errors import FairAuditError
from .projection.notions import NOTIONS
from .results.verdict import rejects

if TYPE_CHECKING:
    from .permutation.result import PermutationResult
    from .projection.result import ProjectionResult

USAGE_ERROR = 2
INTERRUPTED = 130


class _Group(click.Group):
    """Shows our errors as one line with exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FairAuditError as error:
            click.echo(f"fairaudit: error: {error}", err=True)
            ctx.exit(USAGE_ERROR)
        except OSError as error:
            click.echo(f"fairaudit: error: {error}", err=True)
            ctx.exit(USAGE_ERROR)
        except KeyboardInterrupt:
            click.echo("fairaudit: interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(fa.__version__, prog_name="fairaudit")
def main() -> None:
    """Find out whether a model is unfair, or whether it is noise."""


@main.command()
@click.option(
    "--rows",
    default=20_000,
    show_default=True,
    type=click.IntRange(100, 10**8),
    help="Applicants in the synthetic credit book.",
)
@click.option(
    "--seed",
    default=2020,
    show_default=True,
    type=click.IntRange(0),
    help="Seed of the data and of the tests.",
)
def demo(rows: int, seed: int) -> None:
    """Audit a synthetic credit book whose bias is known."""
    data = fa.datasets.synthetic_credit(rows, rng=seed)
    click.echo(
        f"{rows:,} loan applications. By construction women who would repay are approved less "
        "often than men\n(true positive rate .82 against .88); the false positive rate is .30 "
        "for everybody.\n"
    )
    tests = [
        (
            attribute,
            fa.permutation_test(
                data["repaid"],
                data["approved"],
                y_score=data["score"],
                sensitive_features={attribute: data[attribute]},
                metric=metric,
                rng=seed,
            ),
        )
        for attribute in ("sex", "age")
        for metric in (
            "selection_rate",
            "true_positive_rate",
            "false_positive_rate",
            "positive_predictive_value",
            "f1",
            "calibration_error",
            "auc",
        )
    ]
    _print_tests(tests)
    by_sex = next(
        result
        for attribute, result in tests
        if attribute == "sex" and result.metric == "true_positive_rate"
    )
    click.echo(f"\nIn words: {by_sex.summary()}")
    nearest = fa.projection_test(
        data["repaid"], y_score=data["score"], sensitive_features={"sex": data["sex"]}, rng=seed
    )
    click.echo(f"\nThe score with a threshold of 0.5, {nearest.summary()}")
    _print_moves(nearest)


@main.command("metrics")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_metrics(as_json: bool) -> None:
    """List the metrics of the registry."""
    rows = fa.metrics.table()
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        for row in rows:
            click.echo(f"{row['metric']}: {row['meaning']}")
            click.echo(f"    = {row['formula']}")
            if row["aliases"]:
                click.echo(f"    also {row['aliases']}")


@main.command()
@click.argument("data")
@click.option(
    "--metric",
    "-m",
    "metrics",
    multiple=True,
    required=True,
    help="Name of a metric; may be repeated. 'fairaudit metrics' lists them.",
)
@click.option(
    "--sensitive",
    "-s",
    "features",
    multiple=True,
    required=True,
    help="Column whose values make the groups; repeated, the intersections do.",
)
@click.option("--y-true", help="Column of labels.")
@click.option("--y-pred", help="Column of decisions.")
@click.option("--y-score", help="Column of scores.")
@click.option(
    "--strata",
    multiple=True,
    help="Column within whose values groups are compared; may be repeated.",
)
@click.option("--pos-label", help="The value of labels and decisions that is the positive class.")
@click.option("--reference", help="Compare every other group with this one.")
@click.option(
    "--group",
    "groups",
    multiple=True,
    help="A group to compare, repeated for each; all when left out. 'a & b' is an intersection.",
)
@click.option(
    "--alternative",
    default="two-sided",
    show_default=True,
    type=click.Choice(["two-sided", "greater", "less"]),
)
@click.option(
    "--adjust",
    default="holm",
    show_default=True,
    type=click.Choice(["holm", "bh", "max-t", "none"]),
    help="Adjustment of the p-values of several pairs of groups.",
)
@click.option("--clusters", multiple=True, help="Column whose rows of one value move together.")
@click.option("--weight", "sample_weight", help="Column of weights.")
@click.option(
    "--interval",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "delta", "studentized", "basic", "percentile"]),
    help="How intervals are made.",
)
@click.option(
    "--n-resamples",
    default=9_999,
    show_default=True,
    type=int,
    help="Replicates of a test that is not exact.",
)
@click.option("--adaptive", is_flag=True, help="Stop as soon as the test is decided.")
@click.option("--confidence-level", default=0.95, show_default=True, type=float)
@click.option("--seed", type=click.IntRange(0), help="Seed; chosen and reported when left out.")
@click.option("--threads", type=int, help="Threads; all cores when left out.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the results to this file as JSON.",
)
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
    if json_path is not None and not json_path.parent.is_dir():
        raise fa.errors.ArgumentError(f"--json is {json_path}; its directory does not exist")
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
    _print_tests([(" & ".join(features), result) for result in results])
    if len(results) > 1:
        click.echo(
            f"\np, Holm: adjusted over these {len(results)} metrics. The sentences below are about "
            "one metric each, unadjusted."
        )
    for result in results:
        click.echo(f"\n{result}")
        _print_pairs(result)
    if json_path is not None:
        _write_json(json_path, [result.to_dict() for result in results])


@main.command()
@click.argument("data")
@click.option(
    "--sensitive",
    "-s",
    "features",
    multiple=True,
    required=True,
    help="Column whose values make the groups; repeated, see --attributes.",
)
@click.option(
    "--notion",
    default="equal_opportunity",
    show_default=True,
    type=click.Choice(list(NOTIONS)),
    help="Which rates must be equal.",
)
@click.option("--y-true", help="Column of labels.")
@click.option("--y-pred", help="Column of decisions; not needed with --y-score.")
@click.option("--y-score", help="Column of scores.")
@click.option(
    "--threshold",
    default=0.5,
    show_default=True,
    type=float,
    help="Scores from here on are decided positively.",
)
@click.option("--distance", help="Column of distances to the decision boundary.")
@click.option(
    "--attributes",
    default="crossed",
    show_default=True,
    type=click.Choice(["crossed", "separate"]),
    help="Several sensitive columns make intersections, or must each be fair by itself.",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    help="A group to compare, repeated for each; all when left out.",
)
@click.option("--reference", help="Compare every other group with this one.")
@click.option("--epsilon", type=float, help="Gaps up to this count as fair.")
@click.option(
    "--alternative",
    default="two-sided",
    show_default=True,
    type=click.Choice(["two-sided", "greater", "less"]),
)
@click.option("--weight", "sample_weight", help="Column of weights.")
@click.option("--pos-label", help="The value of labels and decisions that is the positive class.")
@click.option("--bandwidth", type=float, help="Of the density near the boundary.")
@click.option(
    "--calibration",
    default="asymptotic",
    show_default=True,
    type=click.Choice(["asymptotic", "permutation"]),
    help="How the p-value is found; permutation is valid for trees and categorical data too.",
)
@click.option(
    "--n-resamples", default=999, show_default=True, type=int, help="Replicates of a permutation."
)
@click.option("--confidence-level", default=0.95, show_default=True, type=float)
@click.option("--seed", type=click.IntRange(0), help="Seed; chosen and reported when left out.")
@click.option("--threads", type=int, help="Threads; all cores when left out.")
@click.option(
    "--moves",
    "moves_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the rows that would move to this CSV or Parquet file.",
)
@click.option(
    "--plot",
    "plot_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the chart to this .json, .svg, .png or .html file.",
)
@click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the result to this file as JSON.",
)
def projection(
    data: str,
    features: tuple[str, ...],
    moves_path: Path | None,
    plot_path: Path | None,
    json_path: Path | None,
    groups: tuple[str, ...],
    seed: int | None,
    threads: int | None,
    y_true: str | None,
    y_pred: str | None,
    **options: Any,
) -> None:
    """Measure how far DATA are from a fair distribution, and who would have to move.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit projection loans.parquet -s sex --y-true repaid --y-score score --moves moves.csv
    """
    for name, path in (("--json", json_path), ("--moves", moves_path), ("--plot", plot_path)):
        if path is not None and not path.parent.is_dir():
            raise fa.errors.ArgumentError(f"{name} is {path}; its directory does not exist")
    if moves_path is not None and moves_path.suffix not in (".csv", ".parquet"):
        raise fa.errors.ArgumentError(f"--moves is {moves_path}; accepted: .csv or .parquet")
    result = fa.projection_test(
        y_true,
        y_pred,
        data=data,
        sensitive_features=list(features),
        groups=list(groups) or None,
        rng=seed,
        n_threads=threads,
        progress=sys.stderr.isatty() or None,
        **options,
    )
    click.echo(str(result))
    _print_moves(result)
    if moves_path is not None:
        frame = result.moves.to_frame()
        write = frame.write_csv if moves_path.suffix == ".csv" else frame.write_parquet
        write(moves_path)
    if plot_path is not None:
        result.plot().save(plot_path)
    if json_path is not None:
        _write_json(json_path, [result.to_dict()])


def _print_moves(result: ProjectionResult) -> None:
    """Print who moves, a line for each group, label and direction."""
    if not result.moved:
        return
    click.echo("\nwho moves:")
    for part in result.moved:
        label = "" if part.label is None else f", label {part.label}"
        click.echo(
            f"  {group_name(part.group)}{label}: {part.n_rows:,} from {part.from_decision} to "
            f"{part.to_decision}, by {part.mean_distance:.3g} on average and "
            f"{part.largest_distance:.3g} at most"
        )


@main.command()
@click.argument("data")
@click.option("--metric", "-m", "metrics", multiple=True, required=True, help="Name of a metric.")
@click.option(
    "--sensitive",
    "-s",
    "features",
    multiple=True,
    required=True,
    help="Column whose values make the groups; repeated, the intersections do.",
)
@click.option("--y-true", help="Column of labels.")
@click.option("--y-pred", help="Column of decisions.")
@click.option("--y-score", help="Column of scores.")
@click.option("--strata", multiple=True, help="Column within whose values groups are shuffled.")
@click.option("--clusters", multiple=True, help="Column whose rows of one value move together.")
@click.option("--weight", "sample_weight", help="Column of weights.")
@click.option("--pos-label", help="The value of labels and decisions that is the positive class.")
@click.option("--gap", "gaps", multiple=True, type=float, help="A gap to measure the power at.")
@click.option("--n-audits", default=1_000, show_default=True, type=int, help="Audits of each kind.")
@click.option(
    "--n-resamples", default=999, show_default=True, type=int, help="Replicates of each test."
)
@click.option("--confidence-level", default=0.95, show_default=True, type=float)
@click.option("--seed", type=click.IntRange(0), help="Seed; chosen and reported when left out.")
@click.option("--threads", type=int, help="Threads; all cores when left out.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the reports to this file as JSON.",
)
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
    if json_path is not None and not json_path.parent.is_dir():
        raise fa.errors.ArgumentError(f"--json is {json_path}; its directory does not exist")
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
        _write_json(json_path, [report.to_dict() for report in reports])
    if not all(report.holds for report in reports):
        context.exit(1)


def _write_json(path: Path, content: object) -> None:
    """Write a file that appears whole or not at all."""
    scratch = path.with_name(f".{path.name}.tmp")
    try:
        scratch.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _print_tests(tests: Iterable[tuple[str, PermutationResult]]) -> None:
    """Print a line per test under a heading per attribute, in 80 columns."""
    tests = list(tests)
    adjusted = fa.adjust_pvalues([result.pvalue for _, result in tests])
    heading = None
    for (attribute, result), adjusted_p in zip(tests, adjusted, strict=True):
        names = [group_name(group) for group in result.group_sizes]
        if heading != (attribute, names):
            heading = (attribute, names)
            groups = ", ".join(names) if len(names) <= 6 else f"{len(names)} groups"
            click.echo(f"{attribute}: {groups}" if names else attribute)
            click.echo(f"  {'metric':<26}{'gap':>7}  {'interval':<18}{'p, Holm':>9}")
        low, high = result.confidence_interval
        interval = "-" if low != low else f"{low:+.3f} .. {high:+.3f}"
        sign = "+" if len(names) <= 2 else ""
        verdict = "differs" if rejects(adjusted_p, 1 - result.confidence_level) else ""
        line = (
            f"  {result.metric:<26}{result.estimate:>{sign}7.3f}  {interval:<18}{adjusted_p:>9.3g}"
        )
        click.echo(f"{line}  {verdict}".rstrip())
        for name in dict.fromkeys(value.metric for value in result.values):
            values = [f"{v.value:.3f}" for v in result.values if v.metric == name]
            if len(values) <= 8:
                shown = "" if name == result.metric else f"{name} "
                click.echo(f"    {shown}{' / '.join(values)}")


def _print_pairs(result: PermutationResult) -> None:
    """Print the pairs of groups of a test of more than two."""
    if len(result.group_sizes) <= 2:
        return
    click.echo(f"  pairs, adjusted by {result.adjust}:")
    for pair in result.comparisons:
        low, high = pair.confidence_interval
        click.echo(
            f"    {group_name(pair.first)} - {group_name(pair.second)}: {pair.estimate:+.3f} "
            f"({low:+.3f} .. {high:+.3f}), adjusted p = {pair.adjusted_pvalue:.3g}"
        )
