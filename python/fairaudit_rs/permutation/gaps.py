"""The intervals that a test gives for its gaps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from ..inference.intervals import Bootstrap, Interval, Pair, range_of_pairs
from .outcome import Procedure
from .problem import BOOTSTRAP_METHODS, Problem


@dataclass(frozen=True)
class _OfOne:
    """The intervals of one metric."""

    problem: Problem
    method: str
    replicates: Bootstrap | None

    def interval(self, pair: Pair, level: float) -> Interval:
        return self.problem.interval(pair, level, self.method, self.replicates)

    def largest(self, level: float) -> tuple[float, Interval]:
        """Return the largest gap and its interval, from simultaneous ones of all pairs."""
        pairs = list(combinations(self.problem.everything, 2))
        each = 1 - (1 - level) / len(pairs)
        largest = max(abs(self.problem.gap(pair).estimate) for pair in pairs)
        return largest, range_of_pairs([self.interval(pair, each) for pair in pairs])


@dataclass(frozen=True)
class GapIntervals:
    """The intervals of a metric, or of the parts of a joint criterion, Bonferroni over them."""

    parts: tuple[_OfOne, ...]
    notes: tuple[str, ...]

    @classmethod
    def prepare(cls, problem: Problem, wanted: str, how: Procedure) -> GapIntervals:
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
            parts.append(_OfOne(part, method, replicates))
        notes = []
        if problem.stratified and any(
            part.method == "delta" and not part.problem.is_proportion for part in parts
        ):
            notes.append(
                "the interval of a gap within strata can be too long: its standard error is that "
                "of the gap of all rows"
            )
        for one in parts:
            notes += one.problem.notes_of_limits() if one.method == "mover" else []
        return cls(tuple(parts), tuple(notes))

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.parts[0].method

    def interval(self, pair: Pair, level: float) -> Interval:
        """Return the two-sided interval of a gap; of several metrics that of the largest one."""
        if len(self.parts) == 1:
            return self.parts[0].interval(pair, level)
        largest = max(self.parts, key=lambda part: abs(part.problem.gap(pair).estimate))
        return largest.interval(pair, 1 - (1 - level) / len(self.parts))

    def one_sided(self, pair: Pair, alternative: str, level: float) -> Interval:
        """Return the interval that belongs to an alternative."""
        if alternative == "two-sided":
            return self.interval(pair, level)
        low, high = self.interval(pair, 2 * level - 1)
        bound = self.parts[0].problem.bound
        return (low, bound) if alternative == "greater" else (-bound, high)

    def largest(self, level: float) -> tuple[float, Interval]:
        """Return the largest gap of any pair and metric, and its interval."""
        if len(self.parts) == 1:
            return self.parts[0].largest(level)
        each = 1 - (1 - level) / len(self.parts)
        gaps, intervals = zip(*(part.largest(each) for part in self.parts), strict=True)
        lows, highs = zip(*intervals, strict=True)
        return max(gaps), (max(lows), max(highs))
