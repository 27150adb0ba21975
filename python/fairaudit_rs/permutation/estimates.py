"""Makes the estimates with intervals of `intervals` and `equivalence_test`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..arguments import Word
from ..errors import ArgumentError
from ..inference.intervals import (
    NO_INTERVAL,
    Bootstrap,
    Interval,
    Pair,
    bootstrap_interval,
    range_of_pairs,
    simultaneous_factor,
)
from ..progress import Progress
from ..report.notes import Note
from .formulas import FormulaMethod, log_ratios, normal_interval, safe_exp
from .inversion import InversionMethod
from .problem import BOOTSTRAP_METHODS, Problem
from .question import PermutationQuestion

_MANY_UNDEFINED = 0.01


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The value of a group, or the gap or ratio of two groups, with its interval."""

    kind: str
    first: Any
    second: Any
    estimate: float
    standard_error: float
    confidence_interval: tuple[float, float]
    #: For group values: rows in the denominator of a proportion, or all rows for other metrics.
    n_used: int | None = None


def method_of(
    method: Word, problem: Problem, methods: Sequence[Word], scale: str = "difference"
) -> Word:
    """Return the interval method, or raise if the metric does not support it."""
    why_none = problem.metric.kind.why_no_intervals
    if why_none is not None:
        raise ArgumentError(
            f"metric is {problem.metric.name!r}, which {why_none}", argument="metric"
        )
    possible = problem.interval_methods(scale)
    if method == "auto":
        best = next(word for word in possible if word in methods)
        return methods[methods.index(best)]
    if method not in possible:
        others = [repr(word) for word in methods if word == "auto" or word in possible]
        raise ArgumentError(
            f"method is {method!r} for {problem.metric.name}, {problem.why_not(method)}; "
            f"accepted: {', '.join(others)}",
            argument="method",
        )
    return method


def draw_replicates(
    problem: Problem,
    method: str,
    n_resamples: int,
    seed: int,
    n_threads: int | None,
    callback: Callable[[int, int], object] | None,
) -> Bootstrap | None:
    """Return the bootstrap replicates of a method; None if it needs none."""
    if method not in BOOTSTRAP_METHODS:
        return None
    progress = Progress(callback=callback, n_resamples=n_resamples, total=n_resamples)
    call = _native.Call(n_threads, progress.tick())
    draws = _native.Draws(n_resamples, seed=seed)
    return problem.bootstrap(draws, call, variances=method == "studentized")


def drawn_pairs(
    problem: Problem,
    method: str,
    n_resamples: int,
    seed: int,
    n_threads: int | None,
    callback: Callable[[int, int], object] | None,
    n_pairs: int,
) -> InversionMethod | None:
    """Return the method "inversion", which tests pairs by replicates; None for other methods."""
    if method != "inversion":
        return None
    progress = Progress(callback=callback, n_resamples=n_resamples)
    progress.total = n_resamples * n_pairs
    draws = _native.Draws(n_resamples, seed=seed)
    return InversionMethod(problem, draws=draws, n_threads=n_threads, progress=progress)


@dataclass(frozen=True, kw_only=True)
class IntervalBuilder:
    """Makes all intervals of a problem with the same method."""

    problem: Problem
    method: str
    bootstrap: Bootstrap | None
    level: float
    #: The method "inversion", which has replicates for each pair.
    drawn: InversionMethod | None = None
    #: Whether gap intervals must match the tests at margins.
    of_tests: bool = False
    #: Gap intervals by pair and level: with two groups each is needed twice.
    _gap_intervals: dict[tuple[Pair, float], Interval] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def formula(self) -> FormulaMethod:
        """The method as a `FormulaMethod`; only without bootstrap replicates."""
        return self.problem.formula(self.method) if self.drawn is None else self.drawn

    def columns(self, i: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the values and variances of a group by replicate."""
        assert self.bootstrap is not None
        return self.bootstrap.values[:, i], self.bootstrap.variances[:, i]

    def value(self, i: int, names: list[Any]) -> Estimate:
        """Return the metric of a group."""
        entry = self.problem.evaluations[i]
        value, error = entry.value, math.sqrt(entry.variance)
        if self.bootstrap is None:
            interval = self.formula.value(i, self.level)
        else:
            interval = bootstrap_interval(self.method, value, error, *self.columns(i), self.level)
        low, high = self.problem.metric.range
        return Estimate(
            kind="value",
            first=names[i],
            second=None,
            estimate=value,
            standard_error=error,
            confidence_interval=_clip(interval, low, high),
            n_used=self.problem.n_used(i),
        )

    def gap(self, pair: Pair, names: list[Any]) -> Estimate:
        """Return the difference of two groups."""
        gap = self.problem.gap(pair)
        interval = self._gap_interval(pair, self.level)
        first, second = (names[i] for i in pair)
        return Estimate(
            kind="gap",
            first=first,
            second=second,
            estimate=gap.estimate,
            standard_error=gap.standard_error,
            confidence_interval=interval,
        )

    def _gap_interval(self, pair: Pair, level: float) -> Interval:
        if (pair, level) not in self._gap_intervals:
            self._gap_intervals[pair, level] = self._make_interval(pair, level)
        return self._gap_intervals[pair, level]

    def _make_interval(self, pair: Pair, level: float) -> Interval:
        if self.drawn is not None:
            return self.drawn.gap(pair, level)
        if self.of_tests and self.bootstrap is None:
            interval = self.formula.not_rejected(pair, level)
            if interval is not None:
                return interval
        return self.problem.interval(pair, level, self.method, self.bootstrap)

    def ratio(self, pair: Pair, names: list[Any]) -> Estimate:
        """Return the ratio of two groups; without an interval for most ratios with a value of 0."""
        a, b = self.problem.compared(pair)
        first, second = (names[i] for i in pair)
        interval, error = NO_INTERVAL, math.nan
        if a > 0 and b > 0:
            ratio = a / b
            log, of_log = self.problem.log_ratio(pair)
            error = ratio * of_log
            if self.drawn is not None:
                interval = self.drawn.ratio(pair, self.level)
            elif self.bootstrap is None:
                low, high = self.formula.ratio(pair, self.level)
                # Taking the logarithm and back is not exact.
                interval = (low, high) if math.isnan(low) else (min(low, ratio), max(high, ratio))
            else:
                values, variances = log_ratios(self.bootstrap, pair)
                low, high = bootstrap_interval(
                    self.method, log, of_log, values, variances, self.level
                )
                interval = safe_exp(low), safe_exp(high)
        elif self.bootstrap is None and self.formula.allows_ratio_of_zero:
            ratio = a / b if b else math.inf if a else math.nan
            interval = self.formula.ratio(pair, self.level)
        else:
            ratio = a / b if b else math.nan
        return Estimate(
            kind="ratio",
            first=first,
            second=second,
            estimate=ratio,
            standard_error=error,
            confidence_interval=interval,
        )

    def ratio_notes(self) -> Iterator[Note]:
        """Yield a note on ratios without an interval or standard error."""
        named = zip(self.problem.names, self.problem.evaluations, strict=True)
        below = [(name, entry.value) for name, entry in named if not entry.value > 0]
        if not below:
            return
        metric = self.problem.metric.name
        who = ", ".join(f"{value:.3g} in {name}" for name, value in below[:5])
        groups = tuple(name for name, _ in below)
        if self.bootstrap is None and self.formula.allows_ratio_of_zero:
            both = "; that of two groups at 0 is unknown" if len(below) > 1 else ""
            text = f"{metric} is {who}: a ratio with it has no standard error{both}"
            yield Note("ratio-without-standard-error", text, groups)
        else:
            yield Note(
                "ratio-without-interval",
                f"{metric} is {who}: a ratio with it has no interval, for which both values must "
                "be above 0",
                groups,
            )

    def notes_of_values(self, has_ratios: bool) -> Iterator[Note]:
        """Yield the note that values are over all rows while gaps are within strata."""
        shown = (
            self.problem.shown_method(self.method) if self.drawn is None else self.drawn.method_name
        )
        what = "gaps and ratios" if has_ratios else "gaps"
        yield Note(
            "values-of-all-rows",
            f"{what} are those within strata; values are crude, of all rows of a group ({shown} "
            "intervals), so a gap need not be the difference of two of them"
            f"{'' if has_ratios else ', and ratios are not given'}",
        )
        if self.method == "mover":
            yield from self.problem.notes_of_limits()

    def simultaneous(self, pairs: list[Pair]) -> list[Interval]:
        """Return simultaneous intervals of all differences."""
        if self.method == "studentized" and self.bootstrap is not None and len(pairs) > 1:
            values, variances = (
                np.array([getattr(entry, name) for entry in self.problem.evaluations])
                for name in ("value", "variance")
            )
            factor = simultaneous_factor(values, variances, self.bootstrap, pairs, self.level)
            gaps = [self.problem.gap(pair) for pair in pairs]
            bound = self.problem.bound
            return [
                _clip(normal_interval(gap.estimate, gap.standard_error, factor), -bound, bound)
                for gap in gaps
            ]
        each = 1 - (1 - self.level) / len(pairs)
        return [self._gap_interval(pair, each) for pair in pairs]

    def largest(self, pairs: list[Pair], together: list[Interval]) -> tuple[float, Interval]:
        """Return max - min and its interval."""
        # Two groups that share no stratum have no gap.
        gaps = [abs(self.problem.gap(pair).estimate) for pair in pairs]
        known = [gap for gap in gaps if not math.isnan(gap)]
        return max(known, default=math.nan), range_of_pairs(together)


def _clip(interval: Interval, low: float, high: float) -> Interval:
    if math.isnan(interval[0]):
        return interval
    return max(interval[0], low), min(interval[1], high)


def _notes_of_unknown_gaps(question: PermutationQuestion) -> Iterator[Note]:
    """Yield a note on gaps within strata that have no standard error."""
    problem = question.problem
    errors = {pair: problem.gap(pair).standard_error for pair in question.pairs}
    pairs = [pair for pair, error in errors.items() if math.isnan(error)]
    if pairs:
        unknown = [" and ".join(problem.names[i] for i in pair) for pair in pairs]
        yield Note(
            "gap-without-standard-error",
            f"the gap of {'; '.join(unknown)} within strata has no standard error: they share no "
            "stratum, or a group of one row in one stratum alone, whose spread nothing tells",
            tuple(dict.fromkeys(problem.names[i] for pair in pairs for i in pair)),
        )


def notes_of_intervals(
    question: PermutationQuestion, bootstrap: Bootstrap | None, maker: IntervalBuilder
) -> Iterator[Note]:
    """Yield the remarks on the intervals."""
    problem = question.problem
    yield from question.notes_of_rows()
    yield from problem.notes
    if question.unused_strata:
        yield Note(
            "ignored-strata",
            f"the strata of the cells ({', '.join(question.unused_strata)}) play no part: gaps "
            "are those of all rows",
            question.unused_strata,
        )
    if problem.stratified:
        yield from _notes_of_unknown_gaps(question)
        yield from question.notes_of_strata()
    if bootstrap is not None:
        enough = math.ceil(2 / (1 - maker.level) - 1 - 1e-9)
        if len(bootstrap.values) < enough:
            yield Note(
                "few-replicates-for-intervals",
                f"{len(bootstrap.values):,} replicates are too few for intervals of this level, "
                f"whose ends are unknown; raise n_resamples to {enough:,} or more",
            )
    if maker.method == "studentized" and bootstrap is not None:
        share = float((bootstrap.variances == 0).any(axis=1).mean())
        if share > _MANY_UNDEFINED:
            others = [word for word in problem.interval_methods() if word != "studentized"]
            yield Note(
                "replicates-without-variation",
                f"{100 * share:.3g} % of the replicates do not vary at all within some group: they "
                "lie far out, so that intervals can be too wide and a p-value stays above that "
                f"share, whatever n_resamples is; method {others[0]!r} needs no replicates",
            )
    if bootstrap is not None and bootstrap.undefined_share() > _MANY_UNDEFINED:
        yield Note(
            "replicates-without-value",
            f"{100 * bootstrap.undefined_share():.3g} % of the replicates give "
            f"{problem.metric.name} no value in some group and widen the intervals",
        )
    if maker.method == "mover":
        yield from problem.notes_of_limits()
    melding_note = None if maker.drawn is None else problem.melding_note
    if melding_note is not None:
        yield melding_note
    certain = problem.certain_groups()
    copes = maker.method in ("score", "mover", "mantel-haenszel") or melding_note is not None
    if certain and not copes:
        yield Note(
            "constant-metric-and-intervals",
            f"{problem.metric.name} does not vary at all within {', '.join(certain[:5])}: a gap "
            "whose standard error is 0 has no interval, others are too short",
            tuple(certain),
        )
    if maker.method == "percentile":
        yield Note(
            "percentile-intervals",
            "percentile intervals are for comparison: they cover less than they say",
        )
