"""The method "inversion": intervals and equivalence tests for means and ratios, from replicates.

It inverts permutation tests; groups with few rare rows use melded limits instead (see
`inference.melding`). The replicates of a pair are reused for all questions about it. Group values,
and ratios of unbounded metrics, use bootstrap-t intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from .. import _native
from ..inference.intervals import (
    NO_INTERVAL,
    Bootstrap,
    Interval,
    Pair,
    bootstrap_interval,
    studentize,
)
from ..inference.pvalues import monte_carlo_pvalue, standardize_gap
from ..inference.tolerance import TolerancePValues
from ..progress import Progress
from ..report.notes import Note
from .formulas import (
    UNKNOWN_MARGIN_TEST,
    FormulaMethod,
    MarginTest,
    log_ratio,
    log_ratios,
    safe_exp,
)
from .reasons import WithholdingReason
from .skewness import drop_unsupported_end, invert_test
from .stratified_ratio_tests import RatioTests

#: First random stream of the pairs; each pair has its own.
_FIRST_SERIES = 1
#: The alternatives of the two one-sided tests at each end of a margin.
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
    def allows_ratio_of_zero(self) -> bool:
        """Return whether ratios with a group value of 0 have an interval: if none is negative."""
        melded = self._melded(range(len(self.problem.keys)))
        return melded is not None and melded.bounds[0] >= 0

    @property
    def method_name(self) -> str:
        """The name of the method in results; pairs with few rare rows use melded limits."""
        melding = self.problem.melding_method
        pairs = combinations(range(len(self.problem.keys)), 2)
        used = ["inversion" if self._melded(pair) is None else str(melding) for pair in pairs]
        return " and ".join(dict.fromkeys(used))

    def gap(self, pair: Pair, level: float) -> Interval:
        """Return the interval of a difference: all gaps that the test does not reject."""
        melded = self._melded(pair)
        if melded is not None:
            return self._interval(melded.interval(pair, level))
        shifts = self._replicates_of(pair)
        if self.problem.reason_to_withhold(pair, shifts, rejected=False) is not None:
            return NO_INTERVAL
        interval = invert_test(shifts, level, self._call)
        if self.problem.reason_to_withhold(pair, shifts, rejected=True) is not None:
            # Too few rows to claim a gap: open the interval on that side, keep the other.
            interval = drop_unsupported_end(interval, self.problem.bound)
        return self._interval(interval)

    def value(self, position: int, level: float) -> Interval:
        """Return the interval of the metric of a group; NaN without one."""
        melded = self._melded((position,))
        if melded is not None:
            of_value: Interval = melded.value_interval(position, level)
            return of_value
        of_clusters: Interval | None = self.problem.clustered_value(position, level)
        if of_clusters is not None:
            return of_clusters
        entry, bootstrap = self.problem.evaluations[position], self._bootstrap
        return bootstrap_interval(
            "studentized",
            entry.value,
            math.sqrt(entry.variance),
            bootstrap.values[:, position],
            bootstrap.variances[:, position],
            level,
        )

    def ratio(self, pair: Pair, level: float) -> Interval:
        """Return the interval of the ratio of two groups; NaN without one."""
        melded = self._melded(pair)
        if melded is not None:
            of_ratio: Interval = melded.ratio_interval(pair, level)
            return of_ratio
        if self.problem.stratified:
            return self._ratio_within(pair, level)
        log, error = log_ratio(self.problem, pair)
        values, variances = log_ratios(self._bootstrap, pair)
        low, high = bootstrap_interval("studentized", log, error, values, variances, level)
        return safe_exp(low), safe_exp(high)

    def margin_test(self, pair: Pair, margin: float, scale: str) -> MarginTest:
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
        shifts = self._replicates_of(pair)
        if self.reason_unknown(pair) is not None:
            return UNKNOWN_MARGIN_TEST
        tails = []
        for end in (-margin, margin):
            for side in _BOTH:
                extremes = shifts.extremes(end, side, self._call)
                larger = max(extremes.studentized, extremes.corrected)
                tails.append(monte_carlo_pvalue(larger, shifts.n))
        return MarginTest(TolerancePValues(*tails), statistic)

    def shown_within(self, pair: Pair, level: float, scale: str) -> float | None:
        """Return the smallest margin at which both one-sided tests reject; None: no formula."""
        ends = self._ratio_ends(pair, 1 - 2 * level, scale)
        return None if ends is None else max(ends[1], -ends[0])

    def shown_beyond(self, pair: Pair, level: float, scale: str) -> float | None:
        """Return the largest margin that the tests reject together; None: no formula.

        Half the level is used on each side, which bounds the sum of the two tails.
        """
        ends = self._ratio_ends(pair, 1 - level, scale)
        return None if ends is None else max(ends[0], -ends[1], 0.0)

    def _ratio_ends(self, pair: Pair, level: float, scale: str) -> Interval | None:
        """Return the log limits of a ratio within strata; None for other gaps."""
        if scale != "ratio" or not self.problem.stratified or self.reason_unknown(pair) is not None:
            return None
        low, high = self._ratios(pair).interval(level)
        return math.log(low) if low > 0 else -math.inf, math.log(high)

    def reason_unknown(self, pair: Pair) -> WithholdingReason | None:
        """Return why a gap cannot be tested, such as a group without its extreme values."""
        if self._melded(pair) is not None:
            return None
        if pair not in self._reasons:
            self._replicates_of(pair)
        return self._reasons[pair]

    @property
    def notes(self) -> list[Note]:
        """Notes on intervals that are unknown or too short."""
        names = self.problem.names
        reasons = {pair: reason for pair, reason in self._reasons.items() if reason is not None}
        return [
            Note(
                "interval-unknown",
                f"interval of {names[i]} and {names[j]}: {reason}",
                (names[i], names[j]),
                reason=reason.kind,
            )
            for (i, j), reason in reasons.items()
        ]

    # -- replicates --------------------------------------------------------------------------

    def _melded(self, groups: Any) -> Any:
        """Return the melded limits of all groups; None if these groups do not need them."""
        return self.problem.melded(groups, self.draws, self._call)

    @cached_property
    def _replicates_by_pair(self) -> dict[Pair, _native.Shifts]:
        return {}

    @cached_property
    def _reasons(self) -> dict[Pair, WithholdingReason | None]:
        return {}

    def _replicates_of(self, pair: Pair) -> _native.Shifts:
        if pair not in self._replicates_by_pair:
            # Keep the current pair only: replicates take memory, and pairs come one by one.
            self._replicates_by_pair.clear()
            self._replicates_by_pair[pair] = self._draw(self.problem.test(pair), pair)
            self._reasons[pair] = self.problem.reason_unknown(pair, self._replicates_by_pair[pair])
        return self._replicates_by_pair[pair]

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
        bootstrap: Bootstrap = self.problem.bootstrap(self.draws, self._call)
        return bootstrap

    def _ratio_within(self, pair: Pair, level: float) -> Interval:
        """Return the interval of a ratio within strata."""
        shifts = self._replicates_of(pair)
        if self.problem.reason_to_withhold(pair, shifts, rejected=False) is not None:
            return NO_INTERVAL
        low, high = self._ratios(pair).interval(level)
        if self.problem.reason_to_withhold(pair, shifts, rejected=True) is not None:
            # Too few rows to claim a gap: open the interval on that side, keep the other.
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

    def _ratio_margins(self, pair: Pair, log_margin: float) -> MarginTest:
        varies = all(self.problem.evaluations[i].variance > 0 for i in pair)
        if not varies or self.reason_unknown(pair) is not None:
            return UNKNOWN_MARGIN_TEST
        if self.problem.stratified:
            statistic = self._ratio_statistic(pair, log_margin)
            return self._ratios(pair).margin_test(math.exp(-log_margin), statistic)
        estimate, error = log_ratio(self.problem, pair)
        values, variances = log_ratios(self._bootstrap, pair)
        t = studentize(values, estimate, variances)
        return MarginTest.of_replicates(t, estimate, error, log_margin)

    def _ratio_statistic(self, pair: Pair, log_margin: float) -> float:
        """Return the standard errors to the nearer margin; infinite for a ratio of 0."""
        a, b = self.problem.compared(pair)
        if not (a > 0 and b > 0):
            return -math.inf if a > 0 or b > 0 else math.nan
        estimate, error = self.problem.log_ratio(pair)
        ends = [standardize_gap(estimate - end, error) for end in (-log_margin, log_margin)]
        return min(ends[0], -ends[1], key=abs)

    def _interval(self, interval: Interval) -> Interval:
        bound = self.problem.bound
        return max(interval[0], -bound), min(interval[1], bound)
