"""Intervals and margins of means and ratios from replicates: tests of any gap, melded limits.

What is drawn for a pair serves all that is asked of it. Values of single groups, and ratios of
means whose range nobody knows, have the bootstrap-t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from .. import _native
from ..inference.intervals import NOTHING, Bootstrap, Interval, Pair, bootstrap_interval, studentize
from ..inference.pvalues import monte_carlo_pvalue, standardize_gap
from ..inference.tolerance import TolerancePValues
from ..progress import Progress
from .formulas import NOTHING_KNOWN, FormulaMethod, MarginTest, log_ratio, log_ratios, safe_exp
from .row_ratios import RatioTests
from .skewness import drop_unsupported_end, invert_test

#: Series of replicates of the pairs of groups: one for each pair.
_FIRST_SERIES = 1
#: The alternatives of the two one-sided tests at a margin: against at most it, and at least it.
_BOTH = ("greater", "less")


@dataclass(frozen=True)
class InversionMethod(FormulaMethod):
    """Intervals of gaps, ratios and values by inverting a test, for means and ratios."""

    problem: Any
    draws: _native.Draws
    n_threads: int | None
    progress: Progress

    @property
    def _call(self) -> _native.Call:
        return _native.Call(self.n_threads)

    @property
    def takes_zero(self) -> bool:
        """Return whether ratios of a value of 0 have an interval: where no value can be less."""
        melded = self._melded(range(len(self.problem.keys)))
        return melded is not None and melded.bounds[0] >= 0

    @property
    def shown(self) -> str:
        """The method as results name it: of pairs with few rare rows it is another one."""
        melding = self.problem.melding_method
        pairs = combinations(range(len(self.problem.keys)), 2)
        used = ["inversion" if self._melded(pair) is None else str(melding) for pair in pairs]
        return " and ".join(dict.fromkeys(used))

    def gap(self, pair: Pair, level: float) -> Interval:
        """Return the interval of a difference: all that the test of its level does not reject."""
        melded = self._melded(pair)
        if melded is not None:
            return self._interval(melded.interval(pair, level))
        shifts = self._shifts(pair)
        if self.problem.why_withheld(pair, shifts, rejected=False) is not None:
            return NOTHING
        interval = invert_test(shifts, level, self._call)
        if self.problem.why_withheld(pair, shifts, rejected=True) is not None:
            # Too few rows for the verdict that there is a gap: not for its other side.
            interval = drop_unsupported_end(interval, self.problem.bound)
        return self._interval(interval)

    def value(self, position: int, level: float) -> Interval:
        """Return the interval of the metric of a group; NaN where it has none."""
        melded = self._melded((position,))
        if melded is not None:
            found: Interval = melded.value_interval(position, level)
            return found
        of_clusters: Interval | None = self.problem.clustered_value(position, level)
        if of_clusters is not None:
            return of_clusters
        entry, drawn = self.problem.evaluations[position], self._bootstrap
        return bootstrap_interval(
            "studentized",
            entry.value,
            math.sqrt(entry.variance),
            drawn.values[:, position],
            drawn.variances[:, position],
            level,
        )

    def ratio(self, pair: Pair, level: float) -> Interval:
        """Return the interval of the ratio of two groups; NaN where it has none."""
        melded = self._melded(pair)
        if melded is not None:
            found: Interval = melded.ratio_interval(pair, level)
            return found
        if self.problem.stratified:
            return self._ratio_within(pair, level)
        log, error = log_ratio(self.problem, pair)
        values, variances = log_ratios(self._bootstrap, pair)
        low, high = bootstrap_interval("studentized", log, error, values, variances, level)
        return safe_exp(low), safe_exp(high)

    def margins(self, pair: Pair, margin: float, scale: str) -> MarginTest:
        """Test whether a difference lies within -+ margin, or a ratio from margin to 1 / margin."""
        melded = self._melded(pair)
        if scale == "ratio":
            if melded is None:
                return self._ratio_margins(pair, -math.log(margin))
            tails = [
                melded.ratio_pvalue_at(pair, end, side)
                for end in (margin, 1 / margin)
                for side in _BOTH
            ]
            return MarginTest(
                TolerancePValues(*tails), self._ratio_statistic(pair, -math.log(margin))
            )
        gap = self.problem.gap(pair)
        ends = [
            standardize_gap(gap.estimate - end, gap.standard_error) for end in (-margin, margin)
        ]
        statistic = min(ends[0], -ends[1], key=abs)
        if melded is not None:
            tails = [melded.pvalue_at(pair, m, side) for m in (-margin, margin) for side in _BOTH]
            return MarginTest(TolerancePValues(*tails), statistic)
        shifts = self._shifts(pair)
        if self.why_unknown(pair) is not None:
            return NOTHING_KNOWN
        tails = []
        for end in (-margin, margin):
            for side in _BOTH:
                found = shifts.extremes(end, side, self._call)
                most = max(found.studentized, found.corrected)
                tails.append(monte_carlo_pvalue(most, shifts.n))
        return MarginTest(TolerancePValues(*tails), statistic)

    def shown_within(self, pair: Pair, level: float, scale: str) -> float | None:
        """Return the least margin at which both one-sided tests reject; None: not by formula."""
        ends = self._ratio_ends(pair, 1 - 2 * level, scale)
        return None if ends is None else max(ends[1], -ends[0])

    def shown_beyond(self, pair: Pair, level: float, scale: str) -> float | None:
        """Return the largest margin that the tests refute together; None: not by formula.

        At half the level on each side: the two tails of a gap within the margin add up to less.
        """
        ends = self._ratio_ends(pair, 1 - level, scale)
        return None if ends is None else max(ends[0], -ends[1], 0.0)

    def _ratio_ends(self, pair: Pair, level: float, scale: str) -> Interval | None:
        """Return the logarithms of the limits of a ratio within strata; None of other gaps."""
        if scale != "ratio" or not self.problem.stratified or self.why_unknown(pair) is not None:
            return None
        low, high = self._ratios(pair).interval(level)
        return math.log(low) if low > 0 else -math.inf, math.log(high)

    def why_unknown(self, pair: Pair) -> str | None:
        """Say why nothing can be shown about a gap: a tail can be missing from a group."""
        if self._melded(pair) is not None:
            return None
        if pair not in self._reasons:
            self._shifts(pair)
        return self._reasons[pair]

    @property
    def notes(self) -> list[str]:
        """Which intervals can be too short, and why."""
        names = self.problem.names
        return [
            f"interval of {names[i]} and {names[j]}: {reason}"
            for (i, j), reason in self._reasons.items()
            if reason is not None
        ]

    # -- what is drawn once ------------------------------------------------------------------

    def _melded(self, groups: Any) -> Any:
        return self.problem.melded(groups, self.draws, self._call)

    @cached_property
    def _made(self) -> dict[Pair, _native.Shifts]:
        return {}

    @cached_property
    def _reasons(self) -> dict[Pair, str | None]:
        return {}

    def _shifts(self, pair: Pair) -> _native.Shifts:
        if pair not in self._made:
            # Many pairs are many replicates; intervals ask of one after the other.
            self._made.clear()
            self._made[pair] = self._draw(self.problem.test(pair), pair)
            self._reasons[pair] = self.problem.why_unknown(pair, self._made[pair])
        return self._made[pair]

    def _draw(self, test: Any, pair: Pair) -> _native.Shifts:
        """Draw the replicates of a native test of two groups."""
        series = _FIRST_SERIES + pair[0] * len(self.problem.keys) + pair[1]
        draws = _native.Draws(self.draws.n, seed=self.draws.seed, series=series)
        shifts: _native.Shifts = test.shifts(
            draws, _native.Call(self.n_threads, self.progress.tick())
        )
        self.progress.finish(drawn=True)
        return shifts

    @cached_property
    def _bootstrap(self) -> Bootstrap:
        drawn: Bootstrap = self.problem.bootstrap(self.draws, self._call)
        return drawn

    def _ratio_within(self, pair: Pair, level: float) -> Interval:
        """Return the interval of a ratio within strata."""
        shifts = self._shifts(pair)
        if self.problem.why_withheld(pair, shifts, rejected=False) is not None:
            return NOTHING
        low, high = self._ratios(pair).interval(level)
        if self.problem.why_withheld(pair, shifts, rejected=True) is not None:
            # Too few rows for the verdict that there is a gap: not for its other side.
            return (0.0 if low > 1 else low), (math.inf if high < 1 else high)
        return low, high

    def _ratios(self, pair: Pair) -> RatioTests:
        if pair not in self._of_ratios:
            self._of_ratios.clear()
            self._of_ratios[pair] = RatioTests(
                problem=self.problem,
                pair=pair,
                draw=lambda test: self._draw(test, pair),
                call=self._call,
            )
        return self._of_ratios[pair]

    @cached_property
    def _of_ratios(self) -> dict[Pair, RatioTests]:
        return {}

    def _ratio_margins(self, pair: Pair, margin: float) -> MarginTest:
        varies = all(self.problem.evaluations[i].variance > 0 for i in pair)
        if not varies or self.why_unknown(pair) is not None:
            return NOTHING_KNOWN
        if self.problem.stratified:
            statistic = self._ratio_statistic(pair, margin)
            return self._ratios(pair).margins(math.exp(-margin), statistic)
        estimate, error = log_ratio(self.problem, pair)
        values, variances = log_ratios(self._bootstrap, pair)
        t = studentize(values, estimate, variances)
        return MarginTest.of_replicates(t, estimate, error, margin)

    def _ratio_statistic(self, pair: Pair, margin: float) -> float:
        """Return the standard errors to the nearer margin: a ratio of 0 lies infinitely far out."""
        a, b = self.problem.compared(pair)
        if not (a > 0 and b > 0):
            return -math.inf if a > 0 or b > 0 else math.nan
        estimate, error = self.problem.log_ratio(pair)
        ends = [standardize_gap(estimate - end, error) for end in (-margin, margin)]
        return min(ends[0], -ends[1], key=abs)

    def _interval(self, interval: Interval) -> Interval:
        bound = self.problem.bound
        return max(interval[0], -bound), min(interval[1], bound)
