"""Tables and notes on the strata of an audit's stratified questions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..permutation.within_strata import (
    PairWithinStrata,
    StratumGap,
    note_of_homogeneity,
    note_of_sample,
    stratum_name,
)
from ..report.document import Cell, Column, Table
from ..report.notes import Note
from .findings import GroupNamer, PairFinding, QuestionFinding
from .wording import Wording

#: Maximum number of strata in a printed table: those with the largest weights.
_MOST_SHOWN = 12


def _stratified(
    findings: Sequence[QuestionFinding],
) -> Iterator[tuple[QuestionFinding, PairFinding, PairWithinStrata]]:
    """Yield the binding questions with strata, each with its deciding pair of groups."""
    for finding in findings:
        pair = finding.telling_pair
        if finding.binding and pair is not None and pair.test.within is not None:
            yield finding, pair, pair.test.within


def stratum_tables(
    findings: Sequence[QuestionFinding], wording: Wording
) -> Iterator[tuple[str, Table]]:
    """Yield a title and a table for each binding question that compares within strata."""
    for finding, pair, within in _stratified(findings):
        first, second = (
            wording.named(finding.attribute, group.group) for group in pair.test.groups
        )
        title = f"{finding.attribute}, {finding.metric}: {first} and {second} in each stratum"
        if not within.strata:
            title += f" ({within.n_strata:,} strata, too many to list)"
        shown = sorted(within.strata, key=lambda stratum: -stratum.weight)[:_MOST_SHOWN]
        if len(shown) < len(within.strata):
            title += f" (the {_MOST_SHOWN} of {within.n_strata:,} strata with the most weight)"
        columns = (
            Column(key="stratum", heading="stratum"),
            Column(key="first_value", heading=first),
            Column(key="second_value", heading=second),
            Column(key="gap", heading="gap"),
            Column(key="weight", heading="weight"),
        )
        rows = tuple(
            _row(finding, stratum, within.names, wording)
            for stratum in within.strata
            if stratum in shown
        )
        yield title, Table(name="strata", columns=columns, rows=rows, noun="strata")


def _row(
    finding: QuestionFinding, stratum: StratumGap, names: tuple[str, ...], wording: Wording
) -> tuple[str | Cell, ...]:
    def cell(value: float, n: int) -> Cell:
        text = f"{wording.value(finding, value)} of {n:,}"
        return Cell(f"no value ({n:,})" if math.isnan(value) else text, value)

    gap = "" if math.isnan(stratum.gap) else wording.value(finding, stratum.gap)
    return (
        stratum_name(names, stratum.stratum),
        cell(stratum.first_value, stratum.first_n),
        cell(stratum.second_value, stratum.second_n),
        Cell(gap.replace("%", "points"), stratum.gap),  # a difference of percentages
        Cell(f"{100 * stratum.weight:.1f} %", stratum.weight),
    )


def notes_of_homogeneity(findings: Sequence[QuestionFinding], named: GroupNamer) -> Iterator[Note]:
    """Yield a note on the homogeneity of gaps for each binding question with strata."""
    for finding, pair, within in _stratified(findings):
        scope = f"{finding.attribute}, {finding.metric}"
        names = tuple(named(finding.attribute, group.group) for group in pair.test.groups)
        about = f"{scope}, {' and '.join(names)}"
        yield note_of_homogeneity(within, about, subject=names, scope=scope)


def notes_of_samples(findings: Sequence[QuestionFinding]) -> Iterator[Note]:
    """Yield a warning for binding questions whose strata may be a sample, as queries are."""
    for finding in findings:
        within = [pair.test.within for pair in finding.pairs if pair.test.within is not None]
        if finding.binding and within:
            n_rows = {group.group: group.n_rows for group in finding.tested}
            note = note_of_sample(within, n_rows)
            if note is not None:
                scope = f"{finding.attribute}, {finding.metric}"
                yield replace(note, text=f"{scope}: {note.text}", scope=scope)
