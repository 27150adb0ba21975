"""Runs one permutation test: exact, by replicates, or by melded limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import ArgumentError
from ..inference.pvalues import (
    anytime_pvalue,
    boundaries_up_to,
    monte_carlo_pvalue,
    standardize_gap,
)
from ..progress import Progress
from ..report.notes import Note
from ..report.words import p_text
from ..results.verdict import rejects_at
from .melded_limits import MeldedLimits
from .problem import Problem
from .reasons import WithholdingReason
from .skewness import count_tails
from .strata import share_strata, why_unshared

#: The random stream for the test of all groups together; pairs use other streams.
OMNIBUS_SERIES = 0
#: An adaptive test stops without rejecting if it will never reject, with this confidence.
_FUTILITY_CONFIDENCE = 0.9999
#: Number of replicates for the mean at which a null distribution is centred.
_N_CENTRE_REPLICATES = 512


@dataclass(frozen=True, kw_only=True)
class Procedure:
    """The options of all tests of a comparison."""

    engine: str
    alternative: str
    n_resamples: int
    seed: int
    n_threads: int | None
    level: float
    progress: Progress
    #: Whether tests stop as soon as they are decided, and the level for one pair of several.
    adaptive: bool = False
    pair_alpha: float = 0.0

    def call(self) -> _native.Call:
        """Return the threads and the progress function for the next native call."""
        return _native.Call(self.n_threads, self.progress.tick())

    def draws(self, series: int, end: int | None = None, first: int = 0) -> _native.Draws:
        """Return the replicates ``first`` to ``end`` of a random stream."""
        end = self.n_resamples if end is None else end
        return _native.Draws(end - first, seed=self.seed, series=series, first=first)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one permutation test."""

    statistic: float
    pvalue: float
    pvalue_interval: tuple[float, float]
    engine: str
    n_resamples: int
    n_undefined: int
    #: Probability that a permutation leaves some group without a value.
    undefined_share: float
    null: NDArray[np.float64]
    probabilities: NDArray[np.float64] | None
    notes: tuple[Note, ...] = ()
    #: The replicates that test any gap, for two groups of a mean or ratio.
    shifts: _native.Shifts | None = None
    #: The melded limits of all groups, if used.
    melded: MeldedLimits | None = None
    #: Why there is no verdict.
    withheld: WithholdingReason | None = None
    #: 2 if the p-value is twice that of one side.
    n_sides: int = 1

    @property
    def inconclusive(self) -> str | None:
        """Why there is no verdict, as text."""
        return None if self.withheld is None else self.withheld.text


def run_test(
    problem: Problem, procedure: Procedure, series: int, chosen: Sequence[int] | None = None
) -> Outcome:
    """Test the groups at some positions; all by default.

    Only the test of all groups keeps its null distribution: many pairs would need much memory.
    """
    groups = problem.everything if chosen is None else tuple(chosen)
    if (
        len(groups) == 2
        and problem.stratified
        and not share_strata(problem, (groups[0], groups[1]))
    ):
        return _no_shared_stratum(problem, procedure, groups)
    outcome = (
        _test_melded(problem, procedure, groups, series)
        or _test_corrected(problem, procedure, groups, series)
        or _test_exactly(problem, procedure, groups)
        or _test_by_replicates(problem, procedure, groups, series)
    )
    if groups == problem.everything:
        return outcome
    return replace(outcome, null=outcome.null[:0], probabilities=None)


def _no_shared_stratum(problem: Problem, procedure: Procedure, groups: Sequence[int]) -> Outcome:
    """Return an inconclusive outcome for two groups that share no stratum."""
    procedure.progress.finish(drawn=False)
    return Outcome(
        statistic=math.nan,
        pvalue=1.0,
        pvalue_interval=(math.nan, math.nan),
        engine=problem.drawing_engine,
        n_resamples=0,
        n_undefined=0,
        undefined_share=0.0,
        null=np.empty(0),
        probabilities=None,
        withheld=why_unshared(problem, groups),
    )


def _test_melded(
    problem: Problem, procedure: Procedure, groups: Sequence[int], series: int
) -> Outcome | None:
    """Test two groups by melded limits; None if they do not need them."""
    if procedure.engine not in ("auto", "melded"):
        return None
    if len(groups) > 2 and problem.unit == "clusters" and problem.uses_melded_limits(groups):
        return _test_melded_together(problem, procedure, groups)
    if len(groups) != 2:
        return None
    limits = problem.melded(groups, procedure.draws(0), _native.Call(procedure.n_threads))
    if limits is None:
        if procedure.engine == "melded":
            raise ArgumentError(
                f"engine is 'melded' for {problem.metric.name}, but these groups have enough rows, "
                f"or values of unknown range; accepted: 'auto', {problem.drawing_engine!r}",
                argument="engine",
            )
        return None
    notes = _melding_notes(problem)
    if problem.unit == "clusters":
        notes += _notes_on_equal_variation(problem, procedure, groups, series)
    else:
        procedure.progress.finish(drawn=False)
    first, second = groups
    pair, alternative = (first, second), _alternative(problem, procedure, groups)
    pvalue = limits.pvalue(pair, alternative)
    gap = problem.gap(pair)
    n_sides = 2 if alternative == "two-sided" else 1
    n = procedure.n_resamples
    # Recover the number of extreme replicates on the more extreme side.
    counted = min(round(pvalue / n_sides * (n + 1)) - 1, n)
    low, high = _native.clopper_pearson(counted, n, 0.99)
    return Outcome(
        statistic=standardize_gap(gap.estimate, gap.standard_error),
        pvalue=pvalue,
        pvalue_interval=(min(1.0, n_sides * low), min(1.0, n_sides * high)),
        engine="melded",
        n_resamples=n,
        n_undefined=0,
        undefined_share=0.0,
        null=np.empty(0),
        probabilities=None,
        melded=limits,
        n_sides=n_sides,
        notes=tuple(notes),
    )


def _melding_notes(problem: Problem) -> list[Note]:
    """Return the note on melded limits, if there is one."""
    return [] if problem.melding_note is None else [problem.melding_note]


def _test_melded_together(problem: Problem, procedure: Procedure, groups: Sequence[int]) -> Outcome:
    """Test several groups with few clusters: the smallest p-value of all pairs times their number.

    The joint permutation of clusters would miss its level, as for two groups.
    """
    limits = problem.melded(groups, procedure.draws(0), _native.Call(procedure.n_threads))
    pairs = list(combinations(groups, 2))
    pvalue, n = min(limits.pvalue(pair) for pair in pairs), procedure.n_resamples
    counted = min(round(pvalue / 2 * (n + 1)) - 1, n)
    low, high = (2 * len(pairs) * end for end in _native.clopper_pearson(counted, n, 0.99))
    procedure.progress.finish(drawn=False)
    return Outcome(
        statistic=problem.test(groups).observed,
        pvalue=min(1.0, len(pairs) * pvalue),
        pvalue_interval=(min(1.0, low), min(1.0, high)),
        engine="melded",
        n_resamples=n,
        n_undefined=0,
        undefined_share=0.0,
        null=np.empty(0),
        probabilities=None,
        melded=limits,
        notes=(
            *_melding_notes(problem),
            Note(
                "smallest-of-pairs",
                f"the test of all groups takes the smallest p-value of {len(pairs):,} pairs, times "
                "their number",
            ),
        ),
    )


def _notes_on_equal_variation(
    problem: Problem, procedure: Procedure, groups: Sequence[int], series: int
) -> list[Note]:
    """Return the note on the test that is valid if the clusters of both groups vary alike."""
    drawn = _test_corrected(problem, replace(procedure, engine="auto"), groups, series)
    if drawn is None or drawn.inconclusive is not None:
        return []
    first, second = (problem.names[i] for i in groups)
    return [
        Note(
            "if-clusters-vary-alike",
            f"if the clusters of {first} and {second} vary alike, the studentized test of whole "
            f"clusters holds: {p_text(drawn.pvalue)}",
            (first, second),
        )
    ]


def _test_corrected(
    problem: Problem, procedure: Procedure, groups: Sequence[int], series: int
) -> Outcome | None:
    """Test two groups of a mean or ratio by the larger p-value of two statistics."""
    wanted = problem.scaling == "corrected" and len(groups) == 2
    if not wanted or procedure.engine not in ("auto", problem.drawing_engine):
        return None
    alternative = _alternative(problem, procedure, groups)
    native = problem.test(groups)
    boundaries = (
        boundaries_up_to(procedure.n_resamples) if procedure.adaptive else [procedure.n_resamples]
    )
    call = _native.Call(procedure.n_threads) if procedure.adaptive else procedure.call()
    shifts, tails = None, None
    pvalue = 1.0
    for end in boundaries:
        drawn = native.shifts(procedure.draws(series, end, 0 if shifts is None else shifts.n), call)
        shifts = drawn if shifts is None else shifts.joined(drawn)
        tails = count_tails(shifts, alternative, call)
        if not procedure.adaptive:
            pvalue = tails.pvalue(partial(monte_carlo_pvalue, n_resamples=end))
            break
        procedure.progress.show(end)
        pvalue = min(pvalue, tails.pvalue(partial(anytime_pvalue, n=end)))
        surely_above = tails.interval(end, _FUTILITY_CONFIDENCE)[0] > _alpha(
            problem, procedure, groups
        )
        if rejects_at(pvalue, _alpha(problem, procedure, groups)) or surely_above:
            break
    assert shifts is not None
    assert tails is not None
    procedure.progress.finish(drawn=not procedure.adaptive)
    return Outcome(
        statistic=shifts.studentized,
        pvalue=pvalue,
        pvalue_interval=tails.interval(shifts.n, 1 - 0.01 / len(boundaries)),
        engine=problem.drawing_engine,
        n_resamples=shifts.n,
        n_undefined=tails.n_undefined,
        undefined_share=tails.n_undefined / shifts.n,
        null=shifts.null_distribution() if groups == problem.everything else np.empty(0),
        probabilities=None,
        shifts=shifts,
        withheld=problem.reason_to_withhold(
            tuple(groups), shifts, rejects_at(pvalue, 1 - procedure.level)
        ),
        n_sides=tails.n_sides,
    )


def _alpha(problem: Problem, procedure: Procedure, groups: Sequence[int]) -> float:
    """Return the level that decides a test: pairs share it when p-values are adjusted."""
    return procedure.pair_alpha if len(groups) < len(problem.keys) else 1 - procedure.level


def _alternative(problem: Problem, procedure: Procedure, groups: Sequence[int]) -> str:
    """Return the alternative of a test: two-sided for more than two groups."""
    directed = len(groups) == 2 or not problem.keys
    return procedure.alternative if directed else "two-sided"


def _test_exactly(problem: Problem, procedure: Procedure, groups: Sequence[int]) -> Outcome | None:
    if procedure.engine not in ("auto", "exact"):
        return None
    alternative = _alternative(problem, procedure, groups)
    exact_test = problem.test(groups).exact(alternative, _native.Call(procedure.n_threads))
    if exact_test is None:
        return None
    procedure.progress.finish(drawn=False)
    return Outcome(
        statistic=problem.test(groups).observed,
        pvalue=exact_test.pvalue,
        pvalue_interval=(exact_test.pvalue, exact_test.pvalue),
        engine="exact",
        n_resamples=0,
        n_undefined=0,
        undefined_share=exact_test.undefined,
        null=exact_test.statistics,
        probabilities=exact_test.probabilities,
    )


def _test_by_replicates(
    problem: Problem, procedure: Procedure, groups: Sequence[int], series: int
) -> Outcome:
    if procedure.engine not in ("auto", problem.drawing_engine):
        name = problem.metric.name
        reason = f"which does not support {name} in these data"
        if procedure.engine == "exact":
            reason = f"but the exact distribution of {name} in these data is too large to be summed"
        raise ArgumentError(
            f"engine is {procedure.engine!r}, {reason}; accepted: 'auto', "
            f"{problem.drawing_engine!r}",
            argument="engine",
        )
    test = problem.test(groups)
    alternative = _alternative(problem, procedure, groups)
    if procedure.adaptive:
        alpha = _alpha(problem, procedure, groups)
        return _draw_until_decided(problem, procedure, test, series, alternative, alpha)
    statistic = test.observed
    null = test.null_distribution(procedure.draws(series), procedure.call())
    procedure.progress.finish(drawn=True)
    statistic, null = problem.scaled(statistic, null)
    extreme, undefined = _native.count_extreme(
        null,
        statistic,
        alternative,
        test.needs_centring,
        _native.Call(procedure.n_threads),
    )
    return Outcome(
        statistic=statistic,
        pvalue=monte_carlo_pvalue(extreme, procedure.n_resamples),
        pvalue_interval=_native.clopper_pearson(extreme, procedure.n_resamples, 0.99),
        engine=problem.drawing_engine,
        n_resamples=procedure.n_resamples,
        n_undefined=undefined,
        undefined_share=undefined / procedure.n_resamples,
        null=null,
        probabilities=None,
    )


def _draw_until_decided(
    problem: Problem, procedure: Procedure, test: Any, series: int, alternative: str, alpha: float
) -> Outcome:
    """Draw until the test rejects, or will never reject.

    The p-value is valid at any time (see `anytime_pvalue`). Decisions are taken at fixed numbers of
    replicates, so they do not depend on the number of threads.
    """
    boundaries = boundaries_up_to(procedure.n_resamples)
    statistic, center = test.observed, 0.0
    if test.needs_centring:
        center = _center(test, procedure, series)
    null = np.empty(0)
    pvalue, interval = 1.0, (0.0, 1.0)
    # All intervals together have 99 % confidence, so the last one has at least that.
    level = 1 - 0.01 / len(boundaries)
    call = _native.Call(procedure.n_threads)
    for end in boundaries:
        drawn = test.null_distribution(procedure.draws(series, end, len(null)), call)
        null = np.concatenate([null, drawn])
        procedure.progress.show(len(null))
        extreme, undefined = _native.count_extreme(
            null - center, statistic - center, alternative, False, call
        )
        pvalue = min(pvalue, anytime_pvalue(extreme, end))
        interval = _native.clopper_pearson(extreme, end, level)
        surely_above = _native.clopper_pearson(extreme, end, _FUTILITY_CONFIDENCE)[0] > alpha
        if rejects_at(pvalue, alpha) or surely_above:
            break
    procedure.progress.finish(drawn=False)
    statistic, null = problem.scaled(statistic, null)
    return Outcome(
        statistic=statistic,
        pvalue=pvalue,
        pvalue_interval=interval,
        engine=problem.drawing_engine,
        n_resamples=len(null),
        n_undefined=undefined,
        undefined_share=undefined / len(null),
        null=null,
        probabilities=None,
    )


def _center(test: Any, procedure: Procedure, series: int) -> float:
    """Return the mean of extra replicates, which are not counted in the p-value.

    A null distribution of fixed size is centred at its own mean. In an adaptive test this mean
    would change with every look, and so would the centred replicates. With a mean from extra
    replicates, the observed statistic and the counted replicates stay exchangeable, and the
    p-value stays valid.
    """
    first = procedure.n_resamples
    draws = procedure.draws(series, first + _N_CENTRE_REPLICATES, first)
    drawn = test.null_distribution(draws, _native.Call(procedure.n_threads))
    finite = drawn[np.isfinite(drawn)]
    return math.fsum(finite) / len(finite) if len(finite) else 0.0
