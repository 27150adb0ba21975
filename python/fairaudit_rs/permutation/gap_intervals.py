"""Makes the gap intervals of a permutation test."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from .. import _native
from ..inference.intervals import NO_INTERVAL, Bootstrap, Interval, Pair, range_of_pairs
from ..report.notes import Note
from .outcome import Outcome, Procedure, run_test
from .problem import BOOTSTRAP_METHODS, Problem
from .skewness import drop_unsupported_end, invert_test

#: First random stream of replicates that only intervals use.
_INTERVAL_SERIES = 2**40


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
    """The intervals of a metric, or of the components of a joint criterion (Bonferroni)."""

    parts: tuple[_MetricIntervals, ...]
    notes: tuple[Note, ...]
    procedure: Procedure
    alternative: str
    level: float
    #: Whether the user named the method.
    explicit: bool
    #: Intervals by inversion of tests, by pair and level.
    inverted: dict[tuple[Pair, float], Interval] = field(default_factory=dict)
    #: The method of each pair, if it depends on its rows.
    used: dict[Pair, str] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls, problem: Problem, wanted: str, procedure: Procedure, alternative: str, level: float
    ) -> GapIntervals:
        """Choose the interval method, and draw bootstrap replicates if it needs them."""
        parts = []
        for part in problem.components:
            method = part.chosen_gap_method(wanted)
            replicates = None
            if method in BOOTSTRAP_METHODS:
                procedure.progress.total += procedure.n_resamples
                with_variances = method == "studentized"
                replicates = part.bootstrap(
                    procedure.draws(0), procedure.call(), variances=with_variances
                )
                procedure.progress.finish(drawn=True)
            parts.append(_MetricIntervals(part, method, replicates))
        notes = problem.collect_notes(
            (intervals.problem, intervals.problem.notes_of_limits())
            for intervals in parts
            if intervals.method == "mover"
        )
        return cls(
            parts=tuple(parts),
            notes=notes,
            procedure=procedure,
            alternative=alternative,
            level=level,
            explicit=wanted != "auto",
        )

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.parts[0].method

    @property
    def _two_sided_level(self) -> float:
        """The level of the two-sided interval; of a one-sided one, only one end is used."""
        return self.level if self.alternative == "two-sided" else 2 * self.level - 1

    def _bonferroni_level(self, n_pairs: int) -> float:
        return 1 - (1 - self.level) / n_pairs

    @property
    def shown_method(self) -> str:
        """The name of the method in results; pairs with few rare rows can have another one."""
        return " and ".join(dict.fromkeys(self.used.values())) or self.method

    def add_test(self, pair: Pair, outcome: Outcome) -> None:
        """Store the interval limits from the test of a pair, without its replicates."""
        if self.method != "inversion":
            return
        problem, procedure = self.parts[0].problem, self.procedure
        own = problem.inversion_interval(outcome.null, self._two_sided_level, self.alternative)
        if own is not None:
            self.inverted[pair, self._two_sided_level] = own
            return
        if self.explicit and outcome.melded is not None:
            # These replicates are used for the interval only, so any unused stream works.
            series = _INTERVAL_SERIES + pair[0] * len(problem.keys) + pair[1]
            outcome = run_test(
                problem, replace(procedure, engine=problem.drawing_engine), series, pair
            )
        self._store_limits(pair, outcome.shifts, outcome.melded, outcome.inconclusive is not None)

    def _store_limits(self, pair: Pair, shifts: Any, melded: Any, withheld: bool) -> None:
        problem = self.parts[0].problem
        bound, n_pairs = problem.bound, math.comb(len(problem.keys), 2)
        if shifts is None and melded is None:
            # The groups share no stratum.
            for level in {self._two_sided_level, self._bonferroni_level(n_pairs)}:
                self.inverted[pair, level] = NO_INTERVAL
            return
        self.used[pair] = "inversion" if melded is None else str(problem.melding_method)
        for level in {self._two_sided_level, self._bonferroni_level(n_pairs)}:
            if melded is not None:
                low, high = melded.interval(pair, level)
            else:
                low, high = invert_test(shifts, level, _native.Call(self.procedure.n_threads))
            if withheld:
                # Do not claim more than the test.
                low, high = drop_unsupported_end((low, high), bound)
            self.inverted[pair, level] = max(low, -bound), min(high, bound)

    def interval(self, pair: Pair, level: float) -> Interval:
        """Return the two-sided interval of a gap; with several metrics, of the largest gap."""
        if self.method == "inversion":
            return self.inverted[pair, level]
        if len(self.parts) == 1:
            return self.parts[0].interval(pair, level)
        largest = max(self.parts, key=lambda part: abs(part.problem.gap(pair).estimate))
        return largest.interval(pair, 1 - (1 - level) / len(self.parts))

    def one_sided(self, pair: Pair) -> Interval:
        """Return the interval of a gap, open on one side for one-sided alternatives."""
        low, high = self.interval(pair, self._two_sided_level)
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
                if (pair, self._bonferroni_level(len(pairs))) not in self.inverted:
                    # A pair without a test: its replicates need an unused stream.
                    self.procedure.progress.total += self.procedure.n_resamples
                    self.add_test(pair, run_test(problem, self.procedure, 1 + len(pairs) + i, pair))
        each = 1 - (1 - self.level) / len(self.parts)
        largest_by_part = []
        for part in self.parts:
            of_part = 1 - (1 - each) / len(pairs)
            if self.method == "inversion":
                intervals = [
                    self.inverted[pair, self._bonferroni_level(len(pairs))] for pair in pairs
                ]
            else:
                intervals = [part.interval(pair, of_part) for pair in pairs]
            gap = max(abs(part.problem.gap(pair).estimate) for pair in pairs)
            largest_by_part.append((gap, range_of_pairs(intervals)))
        largest = max(gap for gap, _ in largest_by_part)
        known = [(low, high) for _, (low, high) in largest_by_part if not math.isnan(low)]
        if not known:
            return largest, NO_INTERVAL
        lows, highs = zip(*known, strict=True)
        # A component without an interval can have any gap.
        unknown = [
            part.problem.bound
            for part, (_, (low, _)) in zip(self.parts, largest_by_part, strict=True)
            if math.isnan(low)
        ]
        return largest, (max(lows), max((*highs, *unknown)))
