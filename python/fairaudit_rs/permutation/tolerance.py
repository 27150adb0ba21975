"""Tolerances: which pairs of groups are beyond one, and which are shown to lie within it.

A question is a metric in the groups of an attribute. It is asked first, which tells the groups that
have enough rows that count and how many comparisons there are; its tests are made when all
questions of an audit are known, since what a fail may quote depends on their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .. import _native
from ..data.equality import Value
from ..data.groups import label
from ..data.labels import GroupKey
from ..data.tables import AuditTable
from ..errors import ArgumentError, NotMeasurableError
from ..inference.intervals import Bootstrap, Pair
from ..inference.rows_that_tell import RowsThatTell, rows_that_tell
from ..inference.tolerance import (
    FARTHEST_RATIO,
    Tails,
    Tolerance,
    fewest_resamples,
    largest_refuted,
    smallest_shown,
)
from ..metrics.metric import Metric
from ..progress import Progress
from ..results.verdict import rejects
from .drawn import Drawn
from .floors import CountedGroup, Floor, counted_groups
from .formulas import Formula, log_ratio
from .known_range import KnownRange
from .margins import MarginTests
from .question import Question, pose

#: The methods that may decide: the normal law with the variance that is seen refutes true gaps of
#: small groups in 10 to 72 % of families.
_DECIDING = frozenset(("score", "mantel-haenszel", "mover", "inversion", "studentized"))
#: Replicates of the bootstrap-t, unless a family of tests needs more.
_ENOUGH_OF_BOOTSTRAPS = 999
#: A reference that is the group with the highest value.
HIGHEST = "highest"


@dataclass(frozen=True, kw_only=True, eq=False)
class ToleranceTest(Value):
    """Two groups, and whether their gap is beyond a tolerance or shown to lie within it.

    Of a difference the first group has the higher value, of a ratio the lower one.
    """

    first: CountedGroup
    second: CountedGroup
    estimate: float
    standard_error: float
    #: Small where the gap is beyond the tolerance; small where it is shown to lie within it.
    p_fail: float
    p_pass: float
    #: The smallest gap (the largest ratio) that the data allow, at the level of one of all tests.
    least: float
    #: The largest gap (the smallest ratio) that is still possible, at the level.
    most: float
    method: str
    #: Why nothing is known.
    reason: str | None = None

    @property
    def groups(self) -> tuple[CountedGroup, CountedGroup]:
        """Both groups."""
        return self.first, self.second

    def rows_that_tell(
        self, tolerance: Tolerance, alpha: float, n_tests: int
    ) -> RowsThatTell | None:
        """Return how many rows would tell, if the gap stays as it is seen; None if unknown."""
        gap, error = self.estimate, self.standard_error
        if tolerance.scale == "ratio" and gap > 0:
            gap, error = math.log(gap), error / gap
        if not 0 < error < math.inf or math.isinf(gap):
            return None
        n_smaller = min(group.n_counted for group in self.groups)
        return rows_that_tell(gap, error, tolerance.distance, alpha, n_smaller, n_tests)


@dataclass(frozen=True, kw_only=True, eq=False)
class ToleranceQuestion:
    """A metric in the groups of an attribute, and what is tolerated."""

    metric: Metric
    #: None where values are shown, and nothing is asked.
    tolerance: Tolerance | None
    #: All groups, those that are not tested with the reason.
    groups: tuple[CountedGroup, ...]
    #: Rows of all groups, and of none.
    n_rows: int
    #: The pairs to test, by position among the groups of the posed question.
    pairs: tuple[Pair, ...]
    #: How many comparisons they count as.
    n_comparisons: int
    #: Why there is nothing to test, beyond what groups lack.
    reason: str | None = None
    posed: Question | None = None

    @property
    def coverage(self) -> float:
        """The share of people who are in groups that are tested."""
        return sum(one.n_rows for one in self.groups if one.is_tested) / max(self.n_rows, 1)

    @property
    def withheld(self) -> tuple[CountedGroup, ...]:
        """The groups that could be tested, and are left out by a floor that was raised."""
        return tuple(one for one in self.groups if one.withheld)

    def tests(
        self,
        *,
        alpha: float,
        n_tests: int,
        n_resamples: int,
        seed: int,
        n_threads: int | None = None,
        callback: Callable[[int, int], object] | None = None,
    ) -> tuple[ToleranceTest, ...]:
        """Test all pairs.

        ``n_tests`` is the number of comparisons of all questions that are judged together: a fail
        is quoted at the level alpha / n_tests.
        """
        if not self.pairs:
            return ()
        assert self.posed is not None
        assert self.tolerance is not None
        run = _Run(
            question=self,
            tolerance=self.tolerance,
            alpha=alpha,
            n_tests=n_tests,
            n_resamples=n_resamples,
            seed=seed,
            n_threads=n_threads,
            callback=callback,
        )
        return tuple(run.test(pair) for pair in self.pairs)


def ask(
    table: AuditTable,
    metric: Metric,
    tolerance: Tolerance | None,
    *,
    floor: int | None = None,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    **options: Any,
) -> ToleranceQuestion:
    """Ask a metric of a table: find the groups that can be tested, and their pairs.

    ``floor`` are the rows that count which a policy asks of a group; ``reference`` compares all
    groups with one of them, or with that of the highest value. Others are `pose`'s.
    """
    counted = table.cells(columns=())
    sizes = counted.group_sizes()
    found = Floor.of(metric, floor)

    def nothing(
        reason: str, of_groups: Sequence[CountedGroup] = (), posed: Question | None = None
    ) -> ToleranceQuestion:
        return ToleranceQuestion(
            metric=metric,
            tolerance=tolerance,
            groups=tuple(of_groups),
            n_rows=counted.n_rows,
            pairs=(),
            n_comparisons=0,
            reason=reason,
            posed=posed,
        )

    wanted = list(sizes) if groups is None else list(groups)
    if len(wanted) < 2:
        only = [CountedGroup.uncounted(label(key), n, "the only group") for key, n in sizes.items()]
        return nothing(f"{len(wanted)} group{'' if len(wanted) == 1 else 's'}", only)
    fixed = None if reference == HIGHEST else reference
    try:
        posed = pose(
            table,
            metric,
            groups=groups,
            reference=fixed,
            undefined="skip",
            conditional=bool(table.strata),
            **options,
        )
    except NotMeasurableError as error:
        if not error.reasons:
            raise
        without = _unmeasured(sizes, error.reasons, groups)
        return nothing("fewer than two groups in which it has a value", without)
    of_groups = counted_groups(posed, found)
    if tolerance is None:
        return nothing("no threshold", of_groups, posed)
    method = deciding_method(posed, tolerance)
    if method is None:
        kind = "within strata" if posed.problem.stratified else "of a tolerance"
        return nothing(f"{metric.name} has no test {kind} that keeps its level", of_groups, posed)
    pairs, n_comparisons = _pairs(posed, of_groups, reference)
    return ToleranceQuestion(
        metric=metric,
        tolerance=tolerance,
        groups=of_groups,
        n_rows=counted.n_rows,
        pairs=tuple(pairs),
        n_comparisons=n_comparisons,
        reason=None if pairs else f"fewer than two groups with {found.told}",
        posed=posed,
    )


def deciding_method(posed: Question, tolerance: Tolerance) -> str | None:
    """Return the method that decides; None where none keeps its level."""
    problem = posed.problem
    if problem.metric.kind.why_no_intervals is not None:
        return None
    if tolerance.scale == "ratio" and problem.stratified:
        return None
    # The problem names the best one first: weighted rates have limits, too, that hold less well.
    possible = problem.interval_methods(tolerance.scale)
    found = next((word for word in possible if word in _DECIDING), None)
    if found is None and problem.has_bootstrap_t:
        return "studentized"
    return "mover" if found == "inversion" and problem.known_range is not None else found


def _unmeasured(
    sizes: dict[GroupKey, int], reasons: dict[Any, str], groups: Sequence[Any] | None
) -> list[CountedGroup]:
    """Return the groups of which too few have a value: the others wait for a second one."""
    kept = {label(key): n for key, n in sizes.items()}
    if groups is not None:
        kept = {group: n for group, n in kept.items() if group in list(groups)}
    return [
        CountedGroup.uncounted(group, n, reasons.get(group, "no other group to compare with"))
        for group, n in kept.items()
    ]


def _pairs(
    posed: Question, groups: Sequence[CountedGroup], reference: Any
) -> tuple[list[Pair], int]:
    """Return the pairs of groups that can be tested, and how many comparisons they count as."""
    by_name = {one.group: one for one in groups}
    keys = posed.problem.keys
    able = [i for i, key in enumerate(keys) if by_name[label(key)].is_tested]
    if reference != HIGHEST:
        pairs = [pair for pair in posed.pairs if set(pair) <= set(able)]
        return pairs, len(pairs)
    if len(able) < 2:
        return [], 0
    highest = max(able, key=lambda i: posed.problem.evaluations[i].value)
    # The group that all are compared with was chosen by looking at all pairs.
    return [(i, highest) for i in able if i != highest], math.comb(len(able), 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Run:
    """The tests of one question."""

    question: ToleranceQuestion
    tolerance: Tolerance
    alpha: float
    n_tests: int
    n_resamples: int
    seed: int
    n_threads: int | None
    callback: Callable[[int, int], object] | None

    @property
    def _posed(self) -> Question:
        assert self.question.posed is not None
        return self.question.posed

    @cached_property
    def _groups(self) -> dict[Any, CountedGroup]:
        return {one.group: one for one in self.question.groups}

    @cached_property
    def _drawn(self) -> Drawn:
        progress = Progress(callback=self.callback, n_resamples=self.n_resamples)
        progress.total = self.n_resamples * len(self.question.pairs)
        draws = _native.Draws(self.n_resamples, seed=self.seed)
        return Drawn(self._posed.problem, draws=draws, n_threads=self.n_threads, progress=progress)

    @cached_property
    def _tests(self) -> MarginTests:
        problem, scale = self._posed.problem, self.tolerance.scale
        method = deciding_method(self._posed, self.tolerance)
        assert method is not None
        self._check_resamples(method)
        formula: Formula | None
        bootstrap = None
        if method == "inversion":
            formula = self._drawn
        elif method == "mover" and problem.known_range is not None:
            formula = KnownRange(problem, problem.known_range, self._drawn)
        elif method == "studentized":
            formula = None
            bootstrap = self._bootstrap()
        else:
            formula = problem.formula(method)
        return MarginTests(problem=problem, scale=scale, formula=formula, bootstrap=bootstrap)

    def _bootstrap(self) -> Bootstrap:
        """Draw replicates with variances of their own: of a function each costs many values."""
        needed = max(fewest_resamples(self.n_tests, self.alpha), _ENOUGH_OF_BOOTSTRAPS)
        n = min(self.n_resamples, needed)
        progress = Progress(callback=self.callback, n_resamples=n, total=n)
        call = _native.Call(self.n_threads, progress.tick())
        found = self._posed.problem.bootstrap_t(_native.Draws(n, seed=self.seed), call)
        progress.finish(drawn=True)
        return found

    def _check_resamples(self, method: str) -> None:
        """Refuse replicates that are too few for a simulated test to fail."""
        needed = fewest_resamples(self.n_tests, self.alpha)
        drawn = method in ("inversion", "studentized") or any(
            self._posed.problem.is_melded(pair) for pair in self.question.pairs
        )
        if drawn and self.n_resamples < needed:
            raise ArgumentError(
                f"n_resamples is {self.n_resamples:,}; {self.question.metric.name} is tested by "
                f"replicates, and {self.n_tests:,} comparisons at {self.alpha:g} need at least "
                f"{needed:,}"
            )

    def test(self, pair: Pair) -> ToleranceTest:
        """Test a pair, and find what gaps the data allow."""
        tolerance, tests = self.tolerance, self._tests
        estimate, error, is_above, seen = self._seen(pair)
        known: dict[float, Tails] = {}

        def tails(distance: float) -> Tails:
            if distance not in known:
                known[distance] = self._tails(pair, distance)
            return known[distance]

        def p_fail(distance: float) -> float:
            return tails(distance).p_fail(is_above)

        def p_pass(distance: float) -> float:
            return tails(distance).p_pass

        at = tolerance.distance
        each = self.alpha / self.n_tests
        at_tolerance = tests.at(pair, tolerance.value)
        known[at] = at_tolerance.tails
        unknown = math.isnan(at_tolerance.statistic)
        least, most = 0.0, self._widest
        if not unknown:
            least = largest_refuted(p_fail, each, min(seen, self._widest))
            most = self._most(pair, p_pass, seen)
            # To the last bit, what is refuted lies beyond its bound, and what is shown within it.
            least = (max if rejects(p_fail(at), each) else min)(least, at)
            most = (min if rejects(p_pass(at), self.alpha) else max)(most, at)
        names = [label(self._posed.problem.keys[i]) for i in pair]
        # Differences are those of the higher value less the lower one, ratios at most 1.
        if is_above == (tolerance.scale == "ratio"):
            names.reverse()
        return ToleranceTest(
            first=self._groups[names[0]],
            second=self._groups[names[1]],
            estimate=estimate,
            standard_error=error,
            p_fail=p_fail(at),
            p_pass=p_pass(at),
            least=tolerance.at(least),
            most=tolerance.at(most),
            method=self._method(pair),
            reason=tests.why_nothing(pair) if unknown else None,
        )

    def _most(self, pair: Pair, p_pass: Callable[[float], float], seen: float) -> float:
        """Return the largest distance that is still possible."""
        formula, scale, widest = self._tests.formula, self.tolerance.scale, self._widest
        known = None if formula is None else formula.shown_within(pair, self.alpha, scale)
        if known is None:
            return smallest_shown(p_pass, self.alpha, min(seen, widest), widest)
        return min(known, widest)

    def _method(self, pair: Pair) -> str:
        problem = self._posed.problem
        if problem.is_melded(pair):
            return str(problem.melding_method)
        return str(deciding_method(self._posed, self.tolerance))

    @property
    def _widest(self) -> float:
        """The largest distance that there can be."""
        problem = self._posed.problem
        if self.tolerance.scale == "ratio":
            return FARTHEST_RATIO
        bound = problem.bound
        if math.isinf(bound) and problem.known_range is not None:
            low, high = problem.known_range
            return high - low
        return bound

    def _tails(self, pair: Pair, distance: float) -> Tails:
        """Return the tests at a distance from equality."""
        tolerance, problem = self.tolerance, self._posed.problem
        if tolerance.scale == "difference" and problem.is_proportion and distance >= 1:
            # No difference of shares is larger: nothing refutes that it is at most 1.
            return Tails(0.0, 1.0, 1.0, 0.0)
        margin = tolerance.at(distance)
        return self._tests.at(pair, max(margin, math.exp(-FARTHEST_RATIO))).tails

    def _seen(self, pair: Pair) -> tuple[float, float, bool, float]:
        """Return the gap, its standard error, on which side it is, and its distance from 0."""
        problem = self._posed.problem
        gap = problem.gap(pair)
        if self.tolerance.scale == "difference":
            size = abs(gap.estimate)
            return size, gap.standard_error, gap.estimate >= 0, size
        values = [problem.evaluations[i].value for i in pair]
        low, high = sorted(values)
        ratio = low / high if high > 0 else math.nan
        if not ratio > 0:
            return ratio, math.nan, values[0] >= values[1], FARTHEST_RATIO
        log, error = log_ratio(problem, pair)
        return ratio, ratio * error, log >= 0, abs(log)
