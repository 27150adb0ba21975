"""Checks whether the user's strata contain both groups of a pair, and makes notes on strata."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from ..data.groups import group_label
from ..errors import NotMeasurableError
from ..inference.intervals import Pair
from ..report.notes import Note
from .reasons import WithholdingReason

#: With fewer rows per group and stratum, delta-method intervals of gaps within strata are too short
#: (F1: coverage of 80 to 84 % with 2 rows, 90 % with 25). Proportions and means have others.
FEW_IN_STRATUM = 50
#: Strata can be queries if there are at least this many, with at most this many rows per group.
LEAST_QUERIES = 10
_MOST_IN_QUERY = 25
#: Notes on strata that can be a sample of others.
MANY_STRATA = (
    "{n} strata with few rows each are compared: rows of a stratum count as independent. If the "
    "strata are queries (ranked lists), or the gap differs from stratum to stratum, the test "
    "rejects too often: 19 % of fair rankings of 30 lists at 5 %. Rankings have no unit of their "
    "own yet"
)
EFFECT_VARIES = (
    "the effect differs between the {n} strata that are compared: the test is about these strata "
    "alone. If they are a sample of others (queries, courts, branches), it rejects too often"
)
#: The sentence of `why_unshared`.
UNSHARED = (
    "no stratum holds a value of {metric} in both {first} and {second}: nothing is compared within "
    "strata"
)


def share_strata(problem: Any, pair: Pair) -> bool:
    """Return whether some stratum contains both groups of a pair, so they can be compared."""
    return any(not math.isnan(part.gap(pair).estimate) for part in problem.components)


def why_unshared(problem: Any, pair: Sequence[int]) -> WithholdingReason:
    """Return the reason that no stratum contains both groups of a pair."""
    first, second = (problem.names[i] for i in pair)
    text = UNSHARED.format(metric=problem.metric.name, first=first, second=second)
    return WithholdingReason("no-shared-stratum", text, (first, second))


def refuse_unshared(problem: Any, pairs: Sequence[Pair]) -> None:
    """Raise if no pair of groups shares a stratum."""
    if not problem.stratified or any(share_strata(problem, pair) for pair in pairs):
        return
    reason = "no stratum that another group shares"
    raise NotMeasurableError(
        f"no stratum holds a value of {problem.metric.name} in two groups, so nothing is compared "
        "within strata. Pass strata with rows of several groups, or none.",
        {group_label(key): reason for key in problem.keys},
        argument="strata",
    )


def notes_of_strata(problem: Any) -> list[Note]:
    """Return notes on strata that are unused, have few rows, or can be queries."""
    if not problem.stratified:
        return []
    test, notes = problem.test(), []
    name = problem.metric.name
    used = {
        (i, j): within.n_used
        for i, j in combinations(problem.everything, 2)
        if (within := test.contrast(i, j)) is not None
    }
    if used and min(used.values()) < test.n_strata:
        n = test.n_strata - min(used.values())
        what = "both groups" if len(problem.keys) == 2 else "two groups that are compared"
        notes.append(
            Note(
                "unused-strata",
                f"{n:,} of {test.n_strata:,} strata hold no value of {name} in {what} "
                "and take no part in their gap",
            )
        )
    sizes = problem.n_rows
    rows = {(i, j): (sizes[i] + sizes[j]) / (2 * n) for (i, j), n in used.items() if n > 0}
    if problem.gap_method == "delta" and rows and min(rows.values()) < FEW_IN_STRATUM:
        notes.append(
            Note(
                "small-strata",
                f"strata hold {min(rows.values()):.3g} rows of a group on average: with few of "
                f"them (below {FEW_IN_STRATUM}) the interval of a gap of {name} within strata is "
                "too short; its test holds",
            )
        )
    n_queries = max(
        (used[pair] for pair, n in rows.items() if can_be_queries(used[pair], n * used[pair])),
        default=0,
    )
    if n_queries:
        notes.append(note_of_many_strata(n_queries))
    return notes


def note_of_many_strata(n_strata: int) -> Note:
    """Return the note on many strata with few rows each, which can be queries."""
    return Note("many-strata", MANY_STRATA.format(n=f"{n_strata:,}"))


def can_be_queries(n_strata: int, n_rows: float) -> bool:
    """Return whether strata can be queries: many strata with few rows per group."""
    return n_strata >= LEAST_QUERIES and n_rows <= _MOST_IN_QUERY * n_strata
