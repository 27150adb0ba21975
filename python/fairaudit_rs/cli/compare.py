"""The command `fairaudit compare`, which compares the gaps of two models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

import fairaudit_rs as fa

from ..errors import ArgumentError
from ..literals import PlainAdjustment, Verdict
from ..report.words import number
from ..results import verdict as verdicts
from . import options
from .command import command
from .messages import print_text
from .show import print_results, write_json

if TYPE_CHECKING:
    from ..permutation.model_comparison import ModelComparison

#: The words for verdicts on a change.
_WORDS = {
    "fail": "WORSE",
    "pass": "NOT WORSE",
    "inconclusive": "NOT DECIDED",
    "not_measurable": "NOT DECIDED",
}


@command()
@options.data
@options.metric_option()
@options.sensitive_option()
@options.y_true
@click.option("--first", required=True, help="Column of the first model's decisions or scores.")
@click.option("--second", required=True, help="Column of the second model's decisions or scores.")
@options.counts
@options.compared
@options.alternative
@options.adjust_option(get_args(PlainAdjustment))
@click.option(
    "--fail-if-worse",
    "tolerance",
    type=float,
    metavar="TOLERANCE",
    help="Exit with 1 if the data show that a gap grew by more than this.",
)
@click.option(
    "--strict", is_flag=True, help="With --fail-if-worse: exit with 3 if the data do not decide."
)
@options.n_resamples(9_999, "Random permutations or resamples of methods that need them.")
@options.computation
@options.json_file("results")
@click.pass_context
def compare(
    context: click.Context,
    /,
    metric: tuple[str, ...],
    tolerance: float | None,
    strict: bool,
    json_path: Path | None,
    **given: Any,
) -> None:
    """Test whether a new model has a smaller gap than the old.

    DATA is a Parquet or CSV file, or a glob of them in quotes, with the decisions or scores of both
    models in each row. With --alternative less the question is whether gaps became smaller. Exit
    codes: 0 done; 1 with --fail-if-worse, if the data show that a gap grew by more than the
    tolerance; 2 the command or the data are wrong; 3 with --fail-if-worse --strict, if the data do
    not decide.

    \b
    fairaudit compare loans.csv -s sex -m tpr --y-true repaid --first before --second after
    fairaudit compare loans.csv -s sex -m auc --y-true repaid --first old --second new \\
        --alternative greater
    fairaudit compare releases.csv -s sex -m tpr --y-true repaid --first old --second new \\
        --fail-if-worse 0.02 --strict
    """
    if strict and tolerance is None:
        raise ArgumentError(
            "--strict needs --fail-if-worse. Say by how much a gap may grow.",
            argument="strict",
            mentions=("fail_if_worse",),
            code="missing-argument",
        )
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise ArgumentError(
            f"--fail-if-worse is {tolerance:g}; accepted: a number of at least 0",
            argument="fail_if_worse",
        )
    options.check_files(json=json_path)
    results = options.of_each(fa.compare_models, metric, given)
    changes = []
    if tolerance is not None:
        narrow = _for_all_pairs(results, metric, given)
        changes = [_changes(*pair) for pair in zip(results, narrow, strict=True)]
    print_results(results)
    every_change = [change for some in changes for change in some]
    if tolerance is not None:
        print_text(f"\n{_describe_verdict(every_change, tolerance, results[0].confidence_level)}")
    if json_path is not None:
        write_json(json_path, [result.to_dict() for result in results])
    if tolerance is not None:
        for_all = not any(result.left_out for result in results)
        verdict = verdicts.worst_verdict(change.verdict(tolerance) for change in every_change)
        context.exit(verdicts.exit_code(verdict, strict=strict, for_all=for_all))


@dataclass(frozen=True, kw_only=True)
class _Change:
    """The confidence limits of the growth of a pair's gap."""

    name: str
    #: The lower limit, at the confidence level for all pairs together.
    least: float
    #: The upper limit, at the confidence level for this pair: a pass needs every pair anyway.
    most: float

    def verdict(self, tolerance: float) -> Verdict:
        """Return "fail" if the gap grew by more than the tolerance, "pass" if it did not."""
        return verdicts.of_limits(self.least, self.most, tolerance)


def _for_all_pairs(
    results: Sequence[ModelComparison], metric: Sequence[str], given: Mapping[str, Any]
) -> list[ModelComparison]:
    """Return the results with intervals that hold for all pairs together (Bonferroni)."""
    n_pairs = sum(len(result.comparisons) for result in results)
    if n_pairs == 1:
        return list(results)
    level = 1 - (1 - results[0].confidence_level) / n_pairs
    again = {**given, "confidence_level": level, "rng": results[0].seed}
    return options.of_each(fa.compare_models, metric, again)


def _changes(result: ModelComparison, narrow: ModelComparison) -> list[_Change]:
    return [
        _Change(
            name=(
                f"{result.metric} of {result.name_of(comparison.first)} - "
                f"{result.name_of(comparison.second)}"
            ),
            least=joint.confidence_interval[0],
            most=comparison.confidence_interval[1],
        )
        for comparison, joint in zip(result.comparisons, narrow.comparisons, strict=True)
    ]


def _describe_verdict(changes: Sequence[_Change], tolerance: float, level: float) -> str:
    """Return the verdict in words, with the pair that decides it."""
    verdict = verdicts.worst_verdict(change.verdict(tolerance) for change in changes)
    shown = [change for change in changes if change.verdict(tolerance) == verdict]
    by = f"by more than {number(tolerance)}"
    sure = f"{100 * level:g} % confidence"
    sure += f" for all {len(changes):,} pairs together" if len(changes) > 1 else ""
    if verdict == "fail":
        grown = max(shown, key=lambda change: change.least)
        return (
            f"{_WORDS[verdict]}: the gap grew {by} ({grown.name}: by at least "
            f"{number(grown.least)}, {sure})."
        )
    largest = max(shown, key=lambda change: -math.inf if math.isnan(change.most) else change.most)
    most = "any amount" if math.isnan(largest.most) else f"at most {number(largest.most)}"
    what = f"no gap grew {by}" if verdict == "pass" else f"a gap may have grown {by}, or not"
    return f"{_WORDS[verdict]}: {what} ({largest.name}: by {most}, {100 * level:g} % confidence)."
