"""The intervals that a test gives for its gaps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from .. import _native
from ..inference.intervals import NOTHING, Bootstrap, Interval, Pair, range_of_pairs
from .outcome import Outcome, Procedure, run_test
from .problem import BOOTSTRAP_METHODS, Problem
from .skewness import drop_unsupported_end, invert_test

#: Series of replicates that intervals alone use.
_OF_INTERVALS = 2**40


@dataclass(frozen=True)
class _MetricIntervals:
    """The intervals of one metric."""

    problem: Problem
    method: str
    replicates: Bootstrap | None

    def interval(self, pair: Pair, level: float) -> Interval:
        return self.problem.interval(pair, level, self.method, self.replicates)


@dataclass(frozen=True, kw_only=True)
class GapIntervals:
    """The intervals of a metric, or of the parts of a joint criterion, Bonferroni over them."""

    parts: tuple[_MetricIntervals, ...]
    notes: tuple[str, ...]
    how: Procedure
    alternative: str
    level: float
    #: Whether the method was asked for by name.
    explicit: bool
    #: Intervals that came of tests, by pair and level.
    inverted: dict[tuple[Pair, float], Interval] = field(default_factory=dict)
    #: How each pair got its interval, where that depends on its rows.
    used: dict[Pair, str] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls, problem: Problem, wanted: str, how: Procedure, alternative: str, level: float
    ) -> GapIntervals:
        """Choose how gaps get their intervals; draw what that needs."""
        parts = []
        for part in problem.components:
            method = part.chosen_gap_method(wanted)
            replicates = None
            if method in BOOTSTRAP_METHODS:
                how.progress.total += how.n_resamples
                with_variances = method == "studentized"
                replicates = part.bootstrap(how.draws(0), how.call(), variances=with_variances)
                how.progress.finish(drawn=True)
            parts.append(_MetricIntervals(part, method, replicates))
        notes = [
            note
            for intervals in parts
            if intervals.method == "mover"
            for note in intervals.problem.notes_of_limits()
        ]
        return cls(
            parts=tuple(parts),
            notes=tuple(notes),
            how=how,
            alternative=alternative,
            level=level,
            explicit=wanted != "auto",
        )

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.parts[0].method

    @property
    def _two_sided(self) -> float:
        """The level of the two-sided interval of which one end belongs to an alternative."""
        return self.level if self.alternative == "two-sided" else 2 * self.level - 1

    def _of_each(self, n_pairs: int) -> float:
        return 1 - (1 - self.level) / n_pairs

    @property
    def shown_method(self) -> str:
        """The method as results name it: of a pair with few rare rows it can be another one."""
        return " and ".join(dict.fromkeys(self.used.values())) or self.method

    def add_test(self, pair: Pair, outcome: Outcome) -> None:
        """Take from the test of a pair what its intervals need: it holds many replicates."""
        if self.method != "inversion":
            return
        problem, how = self.parts[0].problem, self.how
        own = problem.inverted(outcome.null, self._two_sided, self.alternative)
        if own is not None:
            self.inverted[pair, self._two_sided] = own
            return
        if self.explicit and outcome.melded is not None:
            # Nobody tests by these replicates: any series of their own will do.
            series = _OF_INTERVALS + pair[0] * len(problem.keys) + pair[1]
            outcome = run_test(problem, replace(how, engine=problem.drawing_engine), series, pair)
        self._store_limits(pair, outcome.shifts, outcome.melded, outcome.inconclusive is not None)

    def _store_limits(self, pair: Pair, shifts: Any, melded: Any, withheld: bool) -> None:
        problem = self.parts[0].problem
        bound, n_pairs = problem.bound, math.comb(len(problem.keys), 2)
        if shifts is None and melded is None:
            # Groups that share no stratum.
            for level in {self._two_sided, self._of_each(n_pairs)}:
                self.inverted[pair, level] = NOTHING
            return
        self.used[pair] = "inversion" if melded is None else str(problem.melding_method)
        for level in {self._two_sided, self._of_each(n_pairs)}:
            if melded is not None:
                low, high = melded.interval(pair, level)
            else:
                low, high = invert_test(shifts, level, _native.Call(self.how.n_threads))
            if withheld:
                # What the test does not say, its interval does not say either.
                low, high = drop_unsupported_end((low, high), bound)
            self.inverted[pair, level] = max(low, -bound), min(high, bound)

    def interval(self, pair: Pair, level: float) -> Interval:
        """Return the two-sided interval of a gap; of several metrics that of the largest one."""
        if self.method == "inversion":
            return self.inverted[pair, level]
        if len(self.parts) == 1:
            return self.parts[0].interval(pair, level)
        largest = max(self.parts, key=lambda part: abs(part.problem.gap(pair).estimate))
        return largest.interval(pair, 1 - (1 - level) / len(self.parts))

    def one_sided(self, pair: Pair) -> Interval:
        """Return the interval of a gap that belongs to the alternative."""
        low, high = self.interval(pair, self._two_sided)
        bound = self.parts[0].problem.bound
        if self.alternative == "two-sided" or math.isnan(low) or math.isnan(high):
            return low, high
        return (low, bound) if self.alternative == "greater" else (-bound, high)

    def largest(self) -> tuple[float, Interval]:
        """Return the largest gap of any pair and metric, and its interval."""
        problem = self.parts[0].problem
        pairs = list(combinations(problem.everything, 2))
        if self.method == "inversion":
            for i, pair in enumerate(pairs):
                if (pair, self._of_each(len(pairs))) not in self.inverted:
                    # A pair that nobody asked for; its series is no test's.
                    self.how.progress.total += self.how.n_resamples
                    self.add_test(pair, run_test(problem, self.how, 1 + len(pairs) + i, pair))
        each = 1 - (1 - self.level) / len(self.parts)
        found = []
        for part in self.parts:
            of_part = 1 - (1 - each) / len(pairs)
            if self.method == "inversion":
                intervals = [self.inverted[pair, self._of_each(len(pairs))] for pair in pairs]
            else:
                intervals = [part.interval(pair, of_part) for pair in pairs]
            gap = max(abs(part.problem.gap(pair).estimate) for pair in pairs)
            found.append((gap, range_of_pairs(intervals)))
        largest = max(gap for gap, _ in found)
        known = [(low, high) for _, (low, high) in found if not math.isnan(low)]
        if not known:
            return largest, NOTHING
        lows, highs = zip(*known, strict=True)
        # The gap of a part without an interval can be any.
        unknown = [
            part.problem.bound
            for part, (_, (low, _)) in zip(self.parts, found, strict=True)
            if math.isnan(low)
        ]
        return largest, (max(lows), max((*highs, *unknown)))
