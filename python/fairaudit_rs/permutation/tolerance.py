"""Tests whether gaps between groups exceed a tolerance, or are shown to lie within it.

A `ToleranceQuestion` is a metric in the groups of an attribute. It is made in two steps:
`prepare_tolerance_question` finds the groups with enough eligible rows and the number of
comparisons; the tests follow when all questions of an audit are known, because a fail is corrected
for their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .. import _native
from ..data.equality import EqualByValue
from ..data.groups import group_label
from ..data.tables import AuditTable
from ..errors import ArgumentError, NotMeasurableError
from ..inference.intervals import Bootstrap, Pair
from ..inference.required_rows import RequiredRows, rows_that_tell, times_to_show_all_within
from ..inference.tolerance import (
    MAX_LOG_RATIO,
    Tolerance,
    TolerancePValues,
    fewest_resamples,
    gap_lower_bound,
    gap_upper_bound,
)
from ..metrics.directions import Better
from ..metrics.metric import Metric
from ..progress import Progress
from ..results.verdict import rejects_at
from .compared_pairs import BEST, HIGHEST, compared_pairs
from .formulas import FormulaMethod
from .inversion import InversionMethod
from .known_range import KnownRangeMethod
from .minimum_counts import GroupCount, MinimumCounts, counted_groups, unmeasured_groups
from .question import PermutationQuestion, prepare_question
from .two_one_sided import TwoOneSidedTests
from .within_strata import PairWithinStrata

#: Methods that may decide a verdict. The normal distribution with the observed variance may not: it
#: wrongly rejects the true gaps of small groups in 10 to 72 % of families.
_DECIDING = frozenset(("score", "mantel-haenszel", "mover", "inversion", "studentized"))
#: Bootstrap-t replicates, unless a family of tests needs more.
_ENOUGH_OF_BOOTSTRAPS = 999


@dataclass(frozen=True, kw_only=True, eq=False)
class ToleranceTest(EqualByValue):
    """The test whether the gap of two groups is beyond a tolerance, or lies within it.

    The first group has the higher value for differences, and the lower one for ratios. For a
    one-directional ratio to a fixed reference, it is the group that would be worse off.
    """

    first: GroupCount
    second: GroupCount
    estimate: float
    standard_error: float
    #: P-values: ``p_fail`` is small if the gap is beyond the tolerance, ``p_pass`` if it is within.
    p_fail: float
    p_pass: float
    #: P-value of equality.
    p_equal: float
    #: The smallest gap (the largest ratio) that the data allow, at the level for all tests.
    least: float
    #: The largest gap (the smallest ratio) that the data allow, at the uncorrected level.
    most: float
    method: str
    #: Why the pair could not be tested; else None.
    reason: str | None = None
    #: The pair within the user's strata, if there are any.
    within: PairWithinStrata | None = None
    #: Whether the required rows can be computed: not if more rows would get another test.
    has_required_rows: bool = True
    #: Whether the comparison can fail; False if it is only needed for a pass.
    can_fail: bool = True

    @property
    def first_value(self) -> float:
        """The compared value of the first group: within strata if there are any."""
        return self.first.value if self.within is None else self.within.first_value

    @property
    def second_value(self) -> float:
        """The compared value of the second group."""
        return self.second.value if self.within is None else self.within.second_value

    @property
    def in_order(self) -> tuple[tuple[GroupCount, float], tuple[GroupCount, float]]:
        """Both groups with their values: the first one, then the second."""
        return (self.first, self.first_value), (self.second, self.second_value)

    @property
    def by_value(self) -> tuple[tuple[GroupCount, float], tuple[GroupCount, float]]:
        """Both groups with their values, the lower one first."""
        both = self.in_order
        return both if both[0][1] <= both[1][1] else (both[1], both[0])

    @property
    def groups(self) -> tuple[GroupCount, GroupCount]:
        """Both groups."""
        return self.first, self.second

    def rows_that_tell(
        self, tolerance: Tolerance, alpha: float, n_tests: int
    ) -> RequiredRows | None:
        """Return the required rows if the gap stays as observed; None if unknown."""
        if not self.has_required_rows:
            return None
        if (
            not self.can_fail
            and abs(self.estimate) > tolerance.value
            and (tolerance.scale == "difference")
        ):
            return None
        gap, error = self.estimate, self.standard_error
        if tolerance.scale == "ratio" and gap > 0:
            # For one-directional ratios, a ratio above 1 is no better than equality.
            gap, error = min(math.log(gap), 0.0), error / gap
        if not 0 < error < math.inf or math.isinf(gap):
            return None
        n_smaller = min(group.n_counted for group in self.groups)
        return rows_that_tell(gap, error, tolerance.distance, alpha, n_smaller, n_tests)


@dataclass(frozen=True, kw_only=True, eq=False)
class ToleranceQuestion:
    """A metric in the groups of an attribute, with its tolerance."""

    metric: Metric
    #: None if values are only reported, without a verdict.
    tolerance: Tolerance | None
    #: All groups; groups that are not tested have a reason.
    groups: tuple[GroupCount, ...]
    #: All rows, also those without a group, and their total weight if rows have weights.
    n_rows: int
    weight: float | None = None
    #: The pairs to test, by position among the groups of the prepared question.
    pairs: tuple[Pair, ...]
    #: Number of comparisons to correct the significance level for.
    n_comparisons: int
    #: Pairs that are needed for a pass and cannot produce a fail.
    pass_only: frozenset[Pair] = frozenset()
    #: For one-directional ratios to a fixed reference: whether higher or lower values are better.
    better: Better | None = None
    #: Why the question cannot be tested, apart from the reasons of single groups.
    reason: str | None = None
    prepared: PermutationQuestion | None = None

    @property
    def coverage(self) -> float:
        """The share of people in tested groups, by weight if rows have weights.

        Within the user's strata, only people in strata with two tested groups are included.
        """
        tested = math.fsum(group.n_people for group in self.groups if group.is_tested)
        return self._share_compared * tested / (self.n_people or 1)

    @cached_property
    def _share_compared(self) -> float:
        """The share of people in tested groups whose stratum contains two tested groups."""
        by_stratum = None if self.prepared is None else self.prepared.problem.by_stratum
        if by_stratum is None:
            return 1.0
        tested = {group.group for group in self.groups if group.is_tested}
        return by_stratum.share_compared(tested)

    @property
    def n_people(self) -> float:
        """All people, also those without a group: the sum of weights, or the number of rows."""
        return self.n_rows if self.weight is None else self.weight

    @property
    def withheld(self) -> tuple[GroupCount, ...]:
        """The groups that could be tested, but are excluded by the policy's minimum group size."""
        return tuple(group for group in self.groups if group.withheld)

    @cached_property
    def is_drawn(self) -> bool:
        """Return whether the tests need replicates."""
        if not self.pairs or self.prepared is None or self.tolerance is None:
            return False
        method = deciding_method(self.prepared, self.tolerance)
        return method in ("inversion", "studentized") or any(
            map(self.prepared.problem.uses_melded_limits, self.pairs)
        )

    def check_resamples(self, n_resamples: int, n_tests: int, alpha: float) -> None:
        """Raise if a simulated test has too few replicates to be able to fail."""
        needed = fewest_resamples(n_tests, alpha)
        if n_resamples < needed and self.is_drawn:
            raise ArgumentError(
                f"n_resamples is {n_resamples:,}; {self.metric.name} is tested by "
                f"replicates, and {n_tests:,} comparisons at {alpha:g} need at least "
                f"{needed:,}",
                argument="n_resamples",
            )

    def rows_to_pass(self, tests: Sequence[ToleranceTest], alpha: float) -> float:
        """Return the factor by which all groups must grow for all pairs to pass in 8 of 10 audits.

        It assumes that all values stay as observed; it is infinite if no factor is known.
        """
        tolerance = self.tolerance
        assert tolerance is not None
        is_ratio = tolerance.scale == "ratio"
        position: dict[tuple[Any, int | None], int] = {}
        values, variances, pairs = [], [], []
        for k, test in enumerate(tests):
            # For one-directional ratios, a ratio above 1 counts as equality.
            is_better = self.better is not None and test.estimate >= 1
            error = test.standard_error
            if is_ratio and not (test.estimate > 0 and error > 0):
                return math.inf
            error = error / test.estimate if is_ratio else error
            ends = []
            for group, value in ((test.first, test.first_value), (test.second, test.second_value)):
                # Within strata a group has a value of its own in each comparison.
                own = is_better or test.within is not None
                key = (group.group, k if own else None)
                if key not in position:
                    position[key] = len(position)
                    shown = math.log(value) if is_ratio else value
                    values.append(0.0 if is_better else shown)
                    variance = group.variance / value**2 if is_ratio else group.variance
                    variances.append(error**2 / 2 if own else variance)
                ends.append(position[key])
            pairs.append((ends[0], ends[1], error))
        return times_to_show_all_within(values, variances, pairs, tolerance.distance, alpha)

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

        ``n_tests`` is the number of comparisons over all questions that are judged together: a fail
        needs a p-value of at most alpha / n_tests.
        """
        if not self.pairs:
            return ()
        assert self.prepared is not None
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


def prepare_tolerance_question(
    table: AuditTable,
    metric: Metric,
    tolerance: Tolerance | None,
    *,
    floor: int | None = None,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    better: Better | None = None,
    one_sided: bool = False,
    has_pass: bool = True,
    **options: Any,
) -> ToleranceQuestion:
    """Read a metric from a table, and find the groups and pairs that can be tested.

    ``floor``: the policy's minimum of eligible rows in a group. ``reference``: the group that all
    others are compared with, or "highest" or "best". ``better``: whether higher or lower values
    are better. ``one_sided``: a ratio to a fixed reference counts in that direction only. Without
    ``has_pass`` there are no pairs that are only needed for a pass. Other options are those of
    `prepare_question`.
    """
    counted = table.cells(columns=())
    sizes = counted.group_sizes()
    minimum = MinimumCounts.from_metric(metric, floor)
    weights, weight = _weights_of(table)

    def untestable(
        reason: str,
        of_groups: Sequence[GroupCount] = (),
        prepared: PermutationQuestion | None = None,
    ) -> ToleranceQuestion:
        return ToleranceQuestion(
            metric=metric,
            tolerance=tolerance,
            groups=tuple(of_groups),
            n_rows=counted.n_rows,
            weight=weight,
            pairs=(),
            n_comparisons=0,
            reason=reason,
            prepared=prepared,
        )

    wanted = list(sizes) if groups is None else list(groups)
    if len(wanted) < 2:
        only = [
            GroupCount.uncounted(
                group_label(key), n, "the only group", weights.get(group_label(key))
            )
            for key, n in sizes.items()
        ]
        return untestable(f"{len(wanted)} group{'' if len(wanted) == 1 else 's'}", only)
    fixed = None if reference in (HIGHEST, BEST) else reference
    try:
        prepared = prepare_question(
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
        without = unmeasured_groups(sizes, error.reasons, groups, weights)
        return untestable("fewer than two groups in which it has a value", without)
    of_groups = counted_groups(prepared, minimum, prepared.people or weights)
    if tolerance is None:
        return untestable("no threshold", of_groups, prepared)
    method = deciding_method(prepared, tolerance)
    if method is None:
        what = f"ratios of {metric.name}" if tolerance.scale == "ratio" else metric.name
        kind = "within strata" if prepared.problem.stratified else "of a tolerance"
        return untestable(f"there is no reliable test {kind} for {what}", of_groups, prepared)
    compared = compared_pairs(prepared, of_groups, reference, better, has_pass)
    of_ratio = one_sided and fixed is not None and tolerance.scale == "ratio"
    return ToleranceQuestion(
        metric=metric,
        tolerance=tolerance,
        groups=of_groups,
        n_rows=counted.n_rows,
        weight=weight,
        pairs=compared.pairs,
        n_comparisons=compared.n_comparisons,
        pass_only=compared.pass_only,
        better=better if of_ratio else None,
        reason=None if compared.pairs else f"fewer than two groups with {minimum.requirement}",
        prepared=prepared,
    )


def deciding_method(prepared: PermutationQuestion, tolerance: Tolerance) -> str | None:
    """Return the method that decides the verdict; None if no method keeps its level."""
    problem = prepared.problem
    if problem.metric.kind.why_no_intervals is not None:
        return None
    if tolerance.scale == "ratio" and not problem.has_ratios:
        return None
    # The best method comes first: weighted rates also have MOVER limits, which are less reliable.
    possible = problem.interval_methods(tolerance.scale)
    method = next((word for word in possible if word in _DECIDING), None)
    if method is None and problem.has_bootstrap_t:
        return "studentized"
    return "mover" if method == "inversion" and problem.known_range is not None else method


def _weights_of(table: AuditTable) -> tuple[dict[Any, float], float | None]:
    """Return the weight of each group and the total; empty and None without weights."""
    if "sample_weight" not in table.roles:
        return {}, None
    people = table.people
    return {group_label(key): weight for key, weight in people.n_people.items()}, people.total


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
    def _posed(self) -> PermutationQuestion:
        assert self.question.prepared is not None
        return self.question.prepared

    @cached_property
    def _groups(self) -> dict[Any, GroupCount]:
        return {group.group: group for group in self.question.groups}

    @cached_property
    def _drawn(self) -> InversionMethod:
        progress = Progress(callback=self.callback, n_resamples=self.n_resamples)
        progress.total = self.n_resamples * len(self.question.pairs)
        draws = _native.Draws(self.n_resamples, seed=self.seed)
        return InversionMethod(
            self._posed.problem, draws=draws, n_threads=self.n_threads, progress=progress
        )

    @cached_property
    def _tests(self) -> TwoOneSidedTests:
        problem, scale = self._posed.problem, self.tolerance.scale
        method = deciding_method(self._posed, self.tolerance)
        assert method is not None
        self.question.check_resamples(self.n_resamples, self.n_tests, self.alpha)
        formula: FormulaMethod | None
        bootstrap = None
        if method == "inversion":
            formula = self._drawn
        elif method == "mover" and problem.known_range is not None:
            formula = KnownRangeMethod(problem, problem.known_range, self._drawn)
        elif method == "studentized":
            formula = None
            bootstrap = self._bootstrap()
        else:
            formula = problem.formula(method)
        return TwoOneSidedTests(problem=problem, scale=scale, formula=formula, bootstrap=bootstrap)

    def _bootstrap(self) -> Bootstrap:
        """Draw studentized replicates, only as many as needed: they are expensive for functions."""
        needed = max(fewest_resamples(self.n_tests, self.alpha), _ENOUGH_OF_BOOTSTRAPS)
        n = min(self.n_resamples, needed)
        progress = Progress(callback=self.callback, n_resamples=n, total=n)
        call = _native.Call(self.n_threads, progress.tick())
        bootstrap = self._posed.problem.bootstrap_t(_native.Draws(n, seed=self.seed), call)
        progress.finish(drawn=True)
        return bootstrap

    def test(self, pair: Pair) -> ToleranceTest:
        """Test a pair, and compute the smallest and largest gap that the data allow."""
        tolerance, tests, better = self.tolerance, self._tests, self.question.better
        estimate, error, is_above, observed = self._observe(pair)
        known: dict[float, TolerancePValues] = {}

        def tails(distance: float) -> TolerancePValues:
            if distance not in known:
                known[distance] = self._tails(pair, distance)
            return known[distance]

        def p_fail(distance: float) -> float:
            if pair in self.question.pass_only:
                return 1.0
            if better is not None:
                return tails(distance).p_for_beyond(better == "higher")
            return tails(distance).p_fail(is_above)

        def p_pass(distance: float) -> float:
            if better is not None:
                return tails(distance).p_for_not_beyond(better == "higher")
            return tails(distance).p_pass

        at = tolerance.distance
        each = self.alpha / self.n_tests
        at_tolerance = tests.test_pair(pair, tolerance.value)
        known[at] = at_tolerance.tails
        unknown = math.isnan(at_tolerance.statistic)
        least, most = 0.0, self._widest
        if not unknown:
            least = self._least(pair, p_fail, each, min(observed, self._widest))
            most = self._most(pair, p_pass, observed)
            if better is not None:
                # Ratios above 1 matter too: they are negative distances.
                above = max(math.log(estimate), 0.0) if estimate > 0 else 0.0
                if p_fail(0.0) > each:
                    least = -gap_upper_bound(lambda x: p_fail(-x), each, above, MAX_LOG_RATIO)
                if not p_pass(0.0) > self.alpha:
                    most = -gap_lower_bound(lambda x: p_pass(-x), self.alpha, above)
            # Avoid rounding: the bounds must agree with the verdicts at the tolerance.
            least = (max if rejects_at(p_fail(at), each) else min)(least, at)
            most = (min if rejects_at(p_pass(at), self.alpha) else max)(most, at)
        names = [group_label(self._posed.problem.keys[i]) for i in pair]
        within = self._posed.problem.within_strata(pair)
        # Differences are the higher value minus the lower, ratios are at most 1. For a
        # one-directional ratio, the group that would be worse off comes first.
        if is_above == (tolerance.scale == "ratio") if better is None else better == "lower":
            names.reverse()
            within = None if within is None else within.swapped()
        return ToleranceTest(
            first=self._groups[names[0]],
            second=self._groups[names[1]],
            estimate=estimate,
            standard_error=error,
            p_fail=p_fail(at),
            p_pass=p_pass(at),
            p_equal=math.nan if unknown else min(map(tails(0.0).p_fail, (True, False))),
            least=tolerance.value_at_distance(least),
            most=tolerance.value_at_distance(most),
            method=self._method(pair),
            reason=tests.explain_untestable(pair) if unknown else None,
            within=within,
            has_required_rows=not self._has_few_clusters(pair),
            can_fail=pair not in self.question.pass_only,
        )

    def _least(
        self, pair: Pair, p_fail: Callable[[float], float], each: float, observed: float
    ) -> float:
        """Return the lower bound of the distance: the largest one that the data refute."""
        formula, known = self._tests.formula, None
        if formula is not None and self.question.better is None:
            if pair in self.question.pass_only:
                return 0.0
            known = formula.shown_beyond(pair, each, self.tolerance.scale)
        return gap_lower_bound(p_fail, each, observed) if known is None else min(known, observed)

    def _most(self, pair: Pair, p_pass: Callable[[float], float], observed: float) -> float:
        """Return the upper bound of the distance: the largest one that the data allow."""
        formula, scale, widest = self._tests.formula, self.tolerance.scale, self._widest
        known = None
        if formula is not None and self.question.better is None:
            known = formula.shown_within(pair, self.alpha, scale)
        if known is None:
            return gap_upper_bound(p_pass, self.alpha, min(observed, widest), widest)
        return min(known, widest)

    def _has_few_clusters(self, pair: Pair) -> bool:
        """Return whether there are so few clusters that melded limits are used."""
        problem = self._posed.problem
        return problem.unit == "clusters" and problem.uses_melded_limits(pair)

    def _method(self, pair: Pair) -> str:
        problem = self._posed.problem
        if problem.uses_melded_limits(pair):
            return str(problem.melding_method)
        return str(deciding_method(self._posed, self.tolerance))

    @property
    def _widest(self) -> float:
        """The largest possible distance."""
        problem = self._posed.problem
        if self.tolerance.scale == "ratio":
            return MAX_LOG_RATIO
        bound = problem.bound
        if math.isinf(bound) and problem.known_range is not None:
            low, high = problem.known_range
            return high - low
        return bound

    def _tails(self, pair: Pair, distance: float) -> TolerancePValues:
        """Return the p-values at a distance from equality."""
        tolerance, problem = self.tolerance, self._tests.problem
        if distance >= 1 and tolerance.scale == "difference" and problem.is_proportion:
            # A difference of proportions is always at most 1.
            return TolerancePValues(0.0, 1.0, 1.0, 0.0)
        margin = tolerance.value_at_distance(distance)
        return self._tests.test_pair(pair, max(margin, math.exp(-MAX_LOG_RATIO))).tails

    def _observe(self, pair: Pair) -> tuple[float, float, bool, float]:
        """Return the gap, its standard error, whether it is positive, and its distance from 0."""
        problem = self._posed.problem
        gap = problem.gap(pair)
        if self.tolerance.scale == "difference":
            size = abs(gap.estimate)
            return size, gap.standard_error, gap.estimate >= 0, size
        values = problem.compared(pair)
        if self.question.better is not None:
            return self._observe_ratio_to_reference(pair, values)
        low, high = sorted(values)
        ratio = low / high if high > 0 else math.nan
        if not ratio > 0:
            return ratio, math.nan, values[0] >= values[1], MAX_LOG_RATIO
        log, error = problem.log_ratio(pair)
        return ratio, ratio * error, log >= 0, abs(log)

    def _observe_ratio_to_reference(
        self, pair: Pair, values: Sequence[float]
    ) -> tuple[float, float, bool, float]:
        """Return the same for a ratio to a fixed reference, the second group of the pair.

        If higher values are better, the ratio is that of the group to the reference, otherwise the
        inverse: it is small if the group is worse off.
        """
        above, below = values if self.question.better == "higher" else reversed(values)
        if not (above > 0 and below > 0):
            ratio = 0.0 if below > 0 else math.nan
            return ratio, math.nan, False, MAX_LOG_RATIO
        ratio = above / below
        _, error = self._posed.problem.log_ratio(pair)
        return ratio, ratio * error, ratio >= 1, max(-math.log(ratio), 0.0)
