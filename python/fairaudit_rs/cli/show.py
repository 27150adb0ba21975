"""Prints results with all their tables, and writes results as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import fairaudit_rs as fa

from ..data.groups import group_name
from ..rendering.text import render
from ..report.document import Column, Document, Section, Table
from ..report.words import join_names
from ..results.verdict import rejects_at
from ..writing import write_text
from .messages import print_text, width

if TYPE_CHECKING:
    from ..permutation.result import PermutationResult
    from ..results.result import Result

#: Maximum number of groups that a heading names.
_MOST_NAMED = 6
_TEST_COLUMNS = (
    Column(key="metric", heading="metric"),
    Column(key="estimate", heading="gap", kind="value"),
    Column(key="interval", heading="interval", kind="interval"),
    Column(key="adjusted_pvalue", heading="adjusted p", kind="pvalue"),
    Column(key="verdict", heading=""),
)


def write_json(path: Path, content: object) -> None:
    """Write the file of ``--json``."""
    write_text("--json", path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def print_results(results: Sequence[Result]) -> None:
    """Print results with all their tables, and the seed that repeats the command."""
    texts = (
        render(result.document(), width(), details=True, where="--json FILE") for result in results
    )
    print_text("\n\n".join(texts))
    seed = getattr(results[0], "seed", None)
    if seed is not None:
        print_text(f"\nseed {seed}")


def print_tests(tests: Sequence[tuple[str, PermutationResult]]) -> None:
    """Print a table of tests under a heading for each attribute."""
    adjusted = fa.adjust_pvalues([result.pvalue for _, result in tests])
    rows = [(*test, p) for test, p in zip(tests, adjusted, strict=True)]
    sections = tuple(
        Section(title=heading, tables=(_test_table([(test, p) for _, test, p in part]),))
        for heading, part in groupby(rows, key=lambda row: _heading(row[0], row[1]))
    )
    print_text(render(Document(title="", sections=sections), width()))


def _heading(attribute: str, result: PermutationResult) -> str:
    names = [group_name(group, result.attribute) for group in result.group_sizes]
    if not names:
        return attribute
    groups = join_names(names, _MOST_NAMED) if len(names) <= _MOST_NAMED else f"{len(names)} groups"
    return f"{attribute}: {groups}"


def _test_table(tests: Sequence[tuple[PermutationResult, float]]) -> Table:
    rows = tuple(
        (
            result.metric,
            result.estimate,
            result.confidence_interval,
            adjusted_p,
            "differs" if rejects_at(adjusted_p, 1 - result.confidence_level) else "",
        )
        for result, adjusted_p in tests
    )
    return Table(name="tests", columns=_TEST_COLUMNS, rows=rows)
