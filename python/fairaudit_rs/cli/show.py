"""Prints the tables of results, and writes results as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import fairaudit_rs as fa

from ..data.groups import group_name
from ..results.tables import join_cells, table_lines
from ..results.verdict import rejects_at
from ..writing import write_text
from .messages import print_text, width

if TYPE_CHECKING:
    import polars as pl

    from ..extremes.result import ExtremeResult
    from ..influence.result import InfluenceResult
    from ..permutation.model_comparison import ModelComparison
    from ..permutation.result import PermutationResult
    from ..projection.result import ProjectionResult

#: If a table has more lines than the first number, only as many as the second are printed.
MOST_LINES, FOLDED_TO = 15, 5
#: Maximum number of groups that are named with their rows.
_MOST_NAMED = 8


class HasSizes(Protocol):
    """A result about groups."""

    @property
    def group_sizes(self) -> Mapping[Any, int]:
        """Rows of each group."""

    @property
    def attribute(self) -> str:
        """Names of the sensitive features."""


class HasPValue(Protocol):
    """A pair of groups with a p-value."""

    @property
    def pvalue(self) -> float:
        """Its p-value alone."""

    @property
    def adjusted_pvalue(self) -> float:
        """Its p-value, adjusted for all pairs."""


Pair = TypeVar("Pair", bound=HasPValue)


def write_json(path: Path, content: object) -> None:
    """Write the file of ``--json``."""
    write_text("--json", path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def print_tests(tests: Iterable[tuple[str, PermutationResult]]) -> None:
    """Print a line per test under a heading per attribute, in 80 columns."""
    tests = list(tests)
    adjusted = fa.adjust_pvalues([result.pvalue for _, result in tests])
    heading = None
    for (attribute, result), adjusted_p in zip(tests, adjusted, strict=True):
        names = [group_name(group, result.attribute) for group in result.group_sizes]
        if heading != (attribute, names):
            heading = (attribute, names)
            groups = ", ".join(names) if len(names) <= 6 else f"{len(names)} groups"
            print_text(f"{attribute}: {groups}" if names else attribute)
            _print_cells(
                f"  {'metric':<26}", f"{'gap':>7}", f"  {'interval':<18}", f"{'p, Holm':>9}"
            )
        low, high = result.confidence_interval
        interval = "-" if low != low else f"{low:+.3f} .. {high:+.3f}"
        sign = "+" if len(names) <= 2 else ""
        verdict = "differs" if rejects_at(adjusted_p, 1 - result.confidence_level) else ""
        _print_cells(
            f"  {result.metric:<26}",
            f"{result.estimate:>{sign}7.3f}",
            f"  {interval:<18}",
            f"{adjusted_p:>9.3g}",
            f"  {verdict}",
        )
        for name in dict.fromkeys(value.metric for value in result.values):
            values = [f"{v.value:.3f}" for v in result.values if v.metric == name]
            if len(values) <= 8:
                shown = "" if name == result.metric else f"{name} "
                print_text(f"    {shown}{' / '.join(values)}")


def print_intervals(frame: pl.DataFrame) -> None:
    """Print intervals; of a kind with many, those with the smallest and largest estimates."""
    columns = ["kind", "first", "second", "estimate", "low", "high"]
    rows, hidden = [columns], []
    for kind in frame["kind"].unique(maintain_order=True):
        part = frame.filter(frame["kind"] == kind).select(columns)
        if len(part) > MOST_LINES:
            hidden.append((len(part) - FOLDED_TO, f"of kind {kind}, between the ends"))
            part = part.sort("estimate", nulls_last=True)
            part = part.head(FOLDED_TO - FOLDED_TO // 2).extend(part.tail(FOLDED_TO // 2))
        rows += [[_cell(value) for value in row] for row in part.iter_rows()]
    _print_rows(rows)
    for n_hidden, what in hidden:
        print_folded(n_hidden, what)


def print_end(result: HasSizes, seed: int | None) -> None:
    """Print the rows of each group, and the seed that repeats the command."""
    sizes = result.group_sizes
    total = f"{sum(sizes.values()):,} rows"
    if len(sizes) > _MOST_NAMED:
        of = f"in {len(sizes):,} groups of {min(sizes.values()):,} to {max(sizes.values()):,}"
    else:
        names = [f"{group_name(size, result.attribute)} {n:,}" for size, n in sizes.items()]
        of = f"compared: {', '.join(names)}"
    n_missing = getattr(result, "n_missing", 0)
    missing = f"; {n_missing:,} rows of no group" if n_missing else ""
    print_text(f"\n{total} {of}{missing}")
    if seed is not None:
        print_text(f"seed {seed}")


def _print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text as a table, its heads first."""
    print_text("\n".join(table_lines(rows, width())))


def _print_cells(*cells: str) -> None:
    """Print a row of padded cells, on several lines if the terminal is narrow."""
    print_text("\n".join(join_cells(cells, width())))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.4g}"
    return "" if value is None else str(value)


def print_pairs(result: PermutationResult) -> None:
    """Print the pairs of a test of more than two groups; of many, the most significant."""
    if len(result.group_sizes) <= 2:
        return
    print_text(f"  pairs, adjusted by {result.adjust}:")
    shown = clearest_first(result.comparisons)
    for pair in shown:
        low, high = pair.confidence_interval
        first, second = (group_name(group, result.attribute) for group in (pair.first, pair.second))
        print_text(
            f"    {first} - {second}: {pair.estimate:+.3f} "
            f"({low:+.3f} .. {high:+.3f}), adjusted p = {pair.adjusted_pvalue:.3g}"
        )
    print_folded(len(result.comparisons) - len(shown), "pairs, with larger p-values")


def clearest_first(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Return all pairs of groups or, of many, those with the smallest adjusted p-values."""
    if len(pairs) <= MOST_LINES:
        return pairs

    def place(pair: Pair) -> tuple[bool, float, float]:
        return isnan(pair.adjusted_pvalue), pair.adjusted_pvalue, pair.pvalue

    return sorted(pairs, key=place)[:FOLDED_TO]


def print_folded(n_hidden: int, what: str) -> None:
    """Print how many lines are not shown, and where to find them."""
    if n_hidden > 0:
        print_text(f"    ... and {n_hidden:,} more {what}: --json FILE has all of them")


def print_changes(result: ModelComparison) -> None:
    """Print the change of gaps between two models; of many, the most significant."""
    rows = [["gap of", "first model", "second", "size changes by", "interval", "adjusted p"]]
    shown = clearest_first(result.comparisons)
    for pair in shown:
        names = [group_name(group, result.attribute) for group in (pair.first, pair.second)]
        low, high = pair.confidence_interval
        rows.append(
            [
                " - ".join(names),
                f"{pair.gap_of_first:+.3f}",
                f"{pair.gap_of_second:+.3f}",
                f"{pair.estimate:+.3f}",
                "-" if isnan(low) else f"{low:+.3f} .. {high:+.3f}",
                "-" if isnan(pair.adjusted_pvalue) else f"{pair.adjusted_pvalue:.3g}",
            ]
        )
    _print_rows(rows)
    print_folded(len(result.comparisons) - len(shown), "pairs, with larger p-values")


def print_moves(result: ProjectionResult) -> None:
    """Print who moves, a line for each group, label and direction."""
    if not result.moved:
        return
    print_text("\nwho moves:")
    shown: Sequence[Any] = result.moved
    if len(shown) > MOST_LINES:
        shown = sorted(shown, key=lambda entry: -entry.n_rows)[:FOLDED_TO]
    for part in shown:
        label = "" if part.label is None else f", label {part.label}"
        name = group_name(part.group, result.attribute)
        print_text(
            f"  {name}{label}: {part.n_rows:,} from {part.from_decision} to "
            f"{part.to_decision}, by {part.mean_distance:.3g} on average and "
            f"{part.largest_distance:.3g} at most"
        )
    print_folded(len(result.moved) - len(shown), "lines, of fewer rows")


def print_scores(result: InfluenceResult) -> None:
    """Print the proxy scores, if there are any, the most significant first."""
    if not result.proxy_scores:
        return
    scores = result.proxy_scores
    if len(scores) > MOST_LINES:
        scores = scores[:FOLDED_TO]
    names = [
        " ".join([proxy_score.feature, " against ".join(proxy_score.levels)])
        for proxy_score in scores
    ]
    size = min(max(map(len, names)) + 2, 56)
    print_text("")
    _print_cells(
        f"  {'feature':<{size}}", f"{'score':>8}", f"  {'interval of all':<18}", f"{'p, all':>9}"
    )
    for name, score in zip(names, scores, strict=True):
        low, high = score.simultaneous_low, score.simultaneous_high
        interval = "-" if low != low else f"{low:+.3f} .. {high:+.3f}"
        shown = f"  {name[: size - 2]:<{size}}"
        if score.note:
            _print_cells(shown, f"  {score.note}")
            continue
        p = f"{score.adjusted_pvalue:>9.3g}"
        _print_cells(shown, f"{score.estimate:>+8.3f}", f"  {interval:<18}", p)
    print_folded(len(result.proxy_scores) - len(scores), "scores, less clear")


def print_tails(result: ExtremeResult) -> None:
    """Print the pairs of groups or why they were not compared; of many, the most significant."""
    shown_pairs = clearest_first(result.comparisons)
    names = [
        " - ".join(group_name(group, result.grouped_by) for group in (pair.first, pair.second))
        for pair in shown_pairs
    ]
    size = min(max(9, *map(len, names)) + 2, 40)
    print_text("")
    _print_cells(
        f"  {'pair':<{size}}", f"{'gap':>8}", f"  {'interval':<18}", f"{'p, Holm':>9}", "  by"
    )
    for name, pair in zip(names, shown_pairs, strict=True):
        shown = f"  {name[: size - 2]:<{size}}"
        if pair.reason:
            _print_cells(shown, f"  {pair.reason}")
            continue
        p = f"{'<' if pair.pvalue_is_bound else ''}{pair.adjusted_pvalue:.3g}"
        interval = f"{pair.low:+.3f} .. {pair.high:+.3f}"
        _print_cells(
            shown, f"{pair.estimate:>+8.3f}", f"  {interval:<18}", f"{p:>9}", f"  {pair.method}"
        )
    print_folded(len(result.comparisons) - len(shown_pairs), "pairs, with larger p-values")


def print_levels(result: ExtremeResult) -> None:
    """Print the return levels of each group: what one row in m exceeds, a line per horizon."""
    print_text("")
    _print_cells(
        f"  {'one row in':>12}",
        f"{'exceeds':>9}",
        f"  {'interval':<18}",
        f"{'at least':>9}",
        "  standing",
    )
    many = len(result.tails) > MOST_LINES
    tails = dict(list(result.tails.items())[: FOLDED_TO if many else None])
    for group, tail in tails.items():
        kind = f", type {tail.type}" if tail.type else ""
        print_text(f"  {group_name(group, result.grouped_by)}: {tail.n:,} rows{kind}")
        for level in tail.return_levels:
            shown = f"  {level.horizon:>12,.0f}"
            if level.standing == "refused":
                free = f"{level.lower_free:>9.3f}"
                _print_cells(shown, f"{'-':>9}", f"  {'-':<18}", free, "  refused")
                continue
            interval = f"{level.low:.3f} .. {level.high:.3f}"
            at_least = f"{level.at_least:>9.3f}"
            value = f"{level.value:>9.3f}"
            _print_cells(shown, value, f"  {interval:<18}", at_least, f"  {level.standing}")
    print_folded(len(result.tails) - len(tails), "groups")
