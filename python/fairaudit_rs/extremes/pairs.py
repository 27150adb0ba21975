"""Measures the tails of all groups of a question, and compares pairs of groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.groups import attribute_name, group_name
from ..errors import NotMeasurableError
from ..inference.multiplicity import adjust_pvalues
from ..inference.pvalues import monte_carlo_pvalue
from ..report.notes import Note, reason_without_numbers
from .comparison import LevelComparison, compare_all, permute_levels
from .problem import FEWEST_ROWS, TailProblem
from .question import ROW_BOUNDS, ExtremeQuestion, GroupDiscrimination
from .result import GroupMean, TailComparison, find_clearest
from .search_result import PairEcd

Floats = NDArray[np.float64]

#: The share of rows whose mean is the CVaR.
WORST_SHARE = 0.05
#: Permuted differences within this of the observed one count as equal.
_TIE = 1e-12
_NO_INTERVAL = (math.nan, math.nan)


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupTail:
    """A group with its tail and the means of its discrimination."""

    name: Any
    problem: TailProblem
    acd: GroupMean
    cvar: GroupMean
    #: Number of rows with a score of 1, which cannot increase.
    n_no_room: int


@dataclass(frozen=True, eq=False, kw_only=True)
class TailMeasurements:
    """The tails of all groups, and the comparisons of pairs."""

    groups: tuple[GroupTail, ...]
    comparisons: tuple[TailComparison, ...]
    #: The interval of the clearest difference, simultaneous over all pairs.
    interval: tuple[float, float]
    #: Notes on the fits, and on why tails have none.
    notes: tuple[Note, ...]


def tail_shares(group: GroupDiscrimination, upper: float | str | None) -> tuple[Floats, int]:
    """Return the values of the tail, discrimination or its share of 1 - score, and rows without."""
    if upper != ROW_BOUNDS:
        return group.discrimination, 0
    room = 1 - group.score
    kept = room > 0
    # Rounding may give shares slightly above 1.
    return np.minimum(group.discrimination[kept] / room[kept], 1.0), int((~kept).sum())


def group_tail(
    group: GroupDiscrimination,
    upper: float | str | None,
    n_exceedances: int | None,
    confidence: float,
    n_threads: int | None,
) -> GroupTail:
    """Return the tail of a group, with the means of its discrimination."""
    values, n_no_room = tail_shares(group, upper)
    # Sums over sorted rows do not depend on the order of the rows.
    descending = np.sort(group.discrimination)[::-1]
    problem = TailProblem(
        values=descending if values is group.discrimination else np.sort(values)[::-1],
        upper=1.0 if isinstance(upper, str) else upper,
        n_exceedances=n_exceedances,
        confidence=confidence,
        n_threads=n_threads,
    )
    return GroupTail(
        name=group.name,
        problem=problem,
        acd=GroupMean(**_named(mean_with_error(descending))),
        cvar=GroupMean(**_named(worst_mean(descending, WORST_SHARE))),
        n_no_room=n_no_room,
    )


def _named(found: tuple[float, float]) -> dict[str, float]:
    return {"value": found[0], "standard_error": found[1]}


def measure_tails(
    question: ExtremeQuestion,
    *,
    horizon: float,
    null: str,
    n_exceedances: int | None,
    confidence: float,
    n_resamples: int,
    seed: int,
    n_threads: int | None,
    progress: Callable[[int, int], object] | None,
) -> TailMeasurements:
    """Measure the tails of all groups, and compare them."""
    groups = tuple(
        group_tail(group, question.upper, n_exceedances, confidence, n_threads)
        for group in question.groups
    )
    call = _native.Call(n_threads)
    tails = [group.problem for group in groups]
    compared = compare_all(tails, question.pairs, horizon, call)
    by_order_statistics = [
        pair
        for pair, comparison in zip(question.pairs, compared, strict=True)
        if "order" in comparison.method
    ]
    fits = compare_all(tails, by_order_statistics, horizon, call, fit_only=True)
    fit_of_pair = dict(zip(by_order_statistics, fits, strict=True))
    tests = [
        (comparison.statistic, comparison.pvalue, comparison.pvalue_is_upper_bound)
        for comparison in compared
    ]
    if null == "equal_laws":
        total = n_resamples * len(compared)
        tests = [
            _equal_laws(
                (tails[pair[0]], tails[pair[1]]),
                comparison,
                horizon,
                _native.Draws(n_resamples, seed=seed, series=series),
                _native.Call(n_threads, _ticks(progress, series * n_resamples, total)),
            )
            for series, (pair, comparison) in enumerate(zip(question.pairs, compared, strict=True))
        ]
    adjusted = adjust_pvalues([pvalue for _, pvalue, _ in tests])
    comparisons = tuple(
        _comparison(
            groups[pair[0]].name,
            groups[pair[1]].name,
            comparison,
            fit_of_pair.get(pair),
            test,
            float(p_adjusted),
        )
        for pair, comparison, test, p_adjusted in zip(
            question.pairs, compared, tests, adjusted, strict=True
        )
    )
    clearest = comparisons.index(find_clearest(comparisons))
    interval = (compared[clearest].low, compared[clearest].high)
    n_known = sum(not comparison.reason for comparison in compared)
    if n_known > 1:
        each = 1 - (1 - confidence) / n_known
        pair = question.pairs[clearest]
        joint = compare_all(tails, [pair], horizon, call, confidence=each)[0]
        interval = (joint.low, joint.high)
    return TailMeasurements(
        groups=groups,
        comparisons=comparisons,
        interval=interval,
        notes=tuple(_fit_notes(groups, attribute_name(question.features))),
    )


def _fit_notes(groups: tuple[GroupTail, ...], attribute: str) -> list[Note]:
    """Return notes on the fits, each once with the names of its groups."""
    about: dict[Note, list[str]] = {}
    for group in groups:
        for note in (*group.problem.notes, *_no_fit_notes(group.problem)):
            about.setdefault(note, []).append(group_name(group.name, attribute))
    return [
        replace(
            note,
            text=f"{', '.join(names)}: {note.text}",
            subject=tuple(names),
            reason=reason_without_numbers(note.text),
        )
        for note, names in about.items()
    ]


def pair_ecds(
    question: ExtremeQuestion,
    horizon: float,
    *,
    intervals: bool,
    confidence: float = 0.95,
    n_threads: int | None = None,
) -> list[PairEcd]:
    """Return the ECD of each measurable pair of groups; raise an error if there is none.

    Intervals are simultaneous over all pairs (Bonferroni). Without intervals no cuts are needed,
    which is faster.
    """
    groups = [
        group_tail(group, question.upper, None, confidence, n_threads).problem
        for group in question.groups
    ]
    call = _native.Call(n_threads)
    each = 1 - (1 - confidence) / len(question.pairs)
    if intervals:
        compared = compare_all(groups, question.pairs, horizon, call, confidence=each)
        ecds = [(comparison.estimate, comparison.low, comparison.high) for comparison in compared]
    else:
        levels = [tail.value(horizon) for tail in groups]
        ecds = [(levels[first] - levels[second], *_NO_INTERVAL) for first, second in question.pairs]
    pairs = [
        PairEcd(
            first=question.groups[first].name,
            second=question.groups[second].name,
            estimate=estimate,
            low=low,
            high=high,
        )
        for (first, second), (estimate, low, high) in zip(question.pairs, ecds, strict=True)
        if not math.isnan(estimate)
    ]
    if not pairs:
        named = [(group.name, tail) for group, tail in zip(question.groups, groups, strict=True)]
        raise NotMeasurableError(describe_refusals(named, horizon))
    return pairs


def describe_refusals(tails: Sequence[tuple[Any, TailProblem]], horizon: float) -> str:
    """Describe which groups have no return level, and why; "" if all have one."""
    return "; ".join(
        f"group {name!r}: {reason}" for name, tail in tails if (reason := tail.why_refused(horizon))
    )


def _no_fit_notes(problem: TailProblem) -> list[Note]:
    known = problem.n >= FEWEST_ROWS and problem.why_no_fit
    return [Note("no-tail-fit", f"no fit: {problem.why_no_fit}")] if known else []


def _ticks(
    progress: Callable[[int, int], object] | None, start: int, total: int
) -> Callable[[int], object] | None:
    if progress is None:
        return None
    return lambda done: progress(start + done, total)


def _equal_laws(
    pair: tuple[TailProblem, TailProblem],
    comparison: LevelComparison,
    horizon: float,
    draws: _native.Draws,
    call: _native.Call,
) -> tuple[float, float, bool]:
    if comparison.reason or not all(tail.reaches(horizon) for tail in pair):
        return math.nan, math.nan, False
    observed, drawn = permute_levels(*pair, horizon, draws, call)
    # A replicate without a fit counts as extreme.
    below = np.abs(drawn) < abs(observed) - _TIE
    extreme = len(drawn) - int(below.sum())
    return observed, monte_carlo_pvalue(extreme, len(drawn)), False


def _comparison(
    first: Any,
    second: Any,
    comparison: LevelComparison,
    fit_of_pair: LevelComparison | None,
    test: tuple[float, float, bool],
    adjusted: float,
) -> TailComparison:
    statistic, pvalue, is_bound = test
    nan = math.nan
    return TailComparison(
        first=first,
        second=second,
        estimate=comparison.estimate,
        low=comparison.low,
        high=comparison.high,
        statistic=statistic,
        pvalue=pvalue,
        adjusted_pvalue=adjusted,
        pvalue_is_bound=is_bound,
        method=comparison.method,
        fitted=fit_of_pair.estimate if fit_of_pair else nan,
        fitted_low=fit_of_pair.low if fit_of_pair else nan,
        fitted_high=fit_of_pair.high if fit_of_pair else nan,
        fitted_pvalue=fit_of_pair.pvalue if fit_of_pair else nan,
        reason=comparison.reason,
    )


def mean_with_error(values: Floats) -> tuple[float, float]:
    """Return the mean with its standard error."""
    n = len(values)
    spread = float(values.std(ddof=1)) if n > 1 else math.nan
    return float(values.mean()), spread / math.sqrt(n)


def worst_mean(descending: Floats, share: float) -> tuple[float, float]:
    """Return the mean of the worst share of rows, with its standard error.

    The row at the border has a fractional weight. The standard error is that of the influence
    function, max(c - q, 0) / share, with q the value at the border.
    """
    n = len(descending)
    size = share * n
    weight = np.clip(size - np.arange(n), 0, 1)
    value = float((weight * descending).sum() / size)
    border = descending[min(math.ceil(size) - 1, n - 1)]
    above = np.maximum(descending - border, 0) / share
    return value, float(above.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
