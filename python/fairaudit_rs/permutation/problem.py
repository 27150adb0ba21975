"""Comparing groups: one test of some of the groups, their gaps and intervals.

A `Problem` knows the metric of each group, can make the native test of any of the groups, and
gives estimates with intervals. There is one for counts (`counts`, `joint`), rows (`rows`),
correlations (`correlation`) and any function (`callable`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.groups import group_name, label
from ..data.labels import GroupKey
from ..errors import ArgumentError, NotMeasurableError
from ..inference.intervals import NOTHING, Bootstrap, bootstrap_interval, range_of_pairs
from ..inference.proportions import Share, newcombe
from ..inference.pvalues import anytime_pvalue, boundaries_up_to, monte_carlo_pvalue
from ..metrics.metric import Metric
from ..progress import Progress
from ..results.verdict import rejects

BOOTSTRAP_METHODS = ("studentized", "basic", "percentile")
#: A first series of replicates, of all groups together, that no pair uses.
OMNIBUS_SERIES = 0
#: Confidence with which a test that stops early will never reject.
_FUTILE = 0.9999
#: With fewer rows of a label than this in a group, un-pooled tests and intervals can miss their
#: level; docs/validity.md has the figures.
FEW_LABELS = 20
#: With fewer, the interval of a gap of ranks is a bootstrap-t one: the delta method is too short.
FEW_FOR_DELTA = 50


@dataclass(frozen=True, kw_only=True)
class Procedure:
    """How tests are run."""

    engine: str
    alternative: str
    n_resamples: int
    seed: int
    n_threads: int | None
    level: float
    progress: Progress
    #: Whether tests stop as soon as they are decided, and the level of a pair among several.
    adaptive: bool = False
    pair_alpha: float = 0.0
    #: How gaps get their intervals: "auto", "delta", or a bootstrap.
    interval: str = "auto"

    def call(self) -> _native.Call:
        """Return how the next test is run."""
        return _native.Call(self.n_threads, self.progress.tick())


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One permutation test."""

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


class Evaluation(NamedTuple):
    """The metric in a group; numerator and denominator are NaN where it is no fraction."""

    value: float
    variance: float
    numerator: float
    denominator: float

    @property
    def share(self) -> Share:
        """The proportion that it is."""
        return Share(self.value, self.denominator)


@dataclass(frozen=True)
class Gap:
    """A difference of two groups."""

    estimate: float
    standard_error: float


@dataclass(kw_only=True)
class Problem(ABC):
    """The groups of a test, in the order in which they are compared."""

    metric: Metric
    keys: list[GroupKey]
    n_rows: list[int]
    scaling: str
    #: What a reader must know besides the numbers.
    notes: list[str] = field(init=False, default_factory=list)
    #: The metric in each group.
    evaluations: list[Evaluation] = field(init=False)
    #: Set by `prepare_intervals`.
    interval_method: str = field(init=False, default="auto")
    replicates: Bootstrap | None = field(init=False, default=None)
    #: The fewest rows of one label in a group, where the metric asks for it.
    fewest_labels: float = field(init=False, default=math.inf)

    @abstractmethod
    def native(self, positions: Sequence[int]) -> Any:
        """Return the native test of the groups at these positions."""

    @property
    @abstractmethod
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""

    @property
    def stratified(self) -> bool:
        """Whether gaps are taken within strata of the user's."""
        return False

    def exact(self, native: Any, alternative: str) -> Any:
        """Return the exact law of a test, or None."""
        del native, alternative

    def test(self, positions: Sequence[int], plan: Procedure, series: int) -> Outcome:
        """Test the groups at the given positions.

        Only the test of all groups keeps its null distribution: there can be many pairs.
        """
        outcome = self._test(positions, plan, series)
        if len(positions) == len(self.keys) or not self.keys:
            return outcome
        return replace(outcome, null=outcome.null[:0], probabilities=None)

    def test_all(self, plan: Procedure, series: int) -> Outcome:
        """Test all groups at once."""
        return self.test(range(len(self.keys)), plan, series)

    def _test(self, positions: Sequence[int], plan: Procedure, series: int) -> Outcome:
        native = self.native(positions)
        statistic = native.observed()
        alternative = plan.alternative if len(positions) == 2 else "two-sided"
        if plan.engine in ("auto", "exact"):
            law = self.exact(native, alternative)
            if law is not None:
                pvalue, undefined, statistics, probabilities = law
                plan.progress.finish(drawn=False)
                return Outcome(
                    statistic=statistic,
                    pvalue=pvalue,
                    pvalue_interval=(pvalue, pvalue),
                    engine="exact",
                    n_resamples=0,
                    n_undefined=0,
                    undefined_share=undefined,
                    null=statistics,
                    probabilities=probabilities,
                )
        if plan.engine not in ("auto", self.drawing_engine):
            reason = (
                "is too large to be summed" if plan.engine == "exact" else "is drawn another way"
            )
            raise ArgumentError(
                f"engine is {plan.engine!r}, but the permutation law of {self.metric.name} in "
                f"these data {reason}; accepted: 'auto', {self.drawing_engine!r}"
            )
        if plan.adaptive and not native.needs_centring:
            return self._adaptive(native, positions, alternative, plan, series)
        draws = _native.Draws(plan.n_resamples, seed=plan.seed, series=series)
        null = native.null_distribution(draws, plan.call())
        plan.progress.finish(drawn=True)
        if plan.adaptive:
            adaptive = "a null distribution that is centred at its own mean is drawn as a whole"
            self.notes.append(f"{adaptive}: the test did not stop early")
        statistic, null = self.rescale(statistic, null)
        extreme, undefined = _native.count_extreme(
            null, statistic, alternative, native.needs_centring, _native.Call(plan.n_threads)
        )
        return Outcome(
            statistic=statistic,
            pvalue=monte_carlo_pvalue(extreme, plan.n_resamples),
            pvalue_interval=_native.clopper_pearson(extreme, plan.n_resamples, 0.99),
            engine=self.drawing_engine,
            n_resamples=plan.n_resamples,
            n_undefined=undefined,
            undefined_share=undefined / plan.n_resamples,
            null=null,
            probabilities=None,
        )

    def _adaptive(
        self, native: Any, positions: Sequence[int], alternative: str, plan: Procedure, series: int
    ) -> Outcome:
        """Draw until the test is decided: reject, or will never reject.

        The p-value is valid at any time (see `anytime_pvalue`). Decisions fall at boundaries of
        the index of the replicates, so that threads cannot change them.
        """
        boundaries = boundaries_up_to(plan.n_resamples)
        statistic = native.observed()
        # Holm and BH may hold a pair to level / n_pairs: it stops only once decided at that.
        alpha = plan.pair_alpha if len(positions) < len(self.keys) else 1 - plan.level
        null = np.empty(0)
        pvalue, interval = 1.0, (0.0, 1.0)
        # All intervals together have 99 % confidence, so that of the last one has it.
        level = 1 - 0.01 / len(boundaries)
        call = _native.Call(plan.n_threads)
        for end in boundaries:
            first = len(null)
            draws = _native.Draws(end - first, seed=plan.seed, series=series, first=first)
            null = np.concatenate([null, native.null_distribution(draws, call)])
            plan.progress.show(len(null))
            extreme, undefined = _native.count_extreme(null, statistic, alternative, False, call)
            pvalue = min(pvalue, anytime_pvalue(extreme, end))
            interval = _native.clopper_pearson(extreme, end, level)
            surely_above = _native.clopper_pearson(extreme, end, _FUTILE)[0] > alpha
            if rejects(pvalue, alpha) or surely_above:
                break
        plan.progress.finish(drawn=False)
        statistic, null = self.rescale(statistic, null)
        return Outcome(
            statistic=statistic,
            pvalue=pvalue,
            pvalue_interval=interval,
            engine=self.drawing_engine,
            n_resamples=len(null),
            n_undefined=undefined,
            undefined_share=undefined / len(null),
            null=null,
            probabilities=None,
        )

    def rescale(
        self, statistic: float, null: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Divide the statistic and its null distribution by what all replicates share."""
        return statistic, null

    # -- intervals ---------------------------------------------------------------------------

    def draw_bootstrap(
        self,
        n_resamples: int,
        seed: int,
        n_threads: int | None,
        progress: Callable[[int], object] | None = None,
    ) -> Bootstrap:
        """Resample the rows of every group."""
        raise NotImplementedError

    def prepare_intervals(self, method: str, plan: Procedure) -> None:
        """Choose how gaps get their intervals; draw what that needs."""
        few = self.metric.family == "ranks" and self.fewest_labels < FEW_FOR_DELTA
        if method == "auto" and few and not self.stratified:
            method = "studentized"
        if method in ("auto", "delta") and self.stratified and not self.is_proportion:
            self.notes.append(
                "the interval of a gap within strata can be too long: its standard error is that "
                "of the gap of all rows"
            )
        self.interval_method = method
        if method in BOOTSTRAP_METHODS:
            self.check_bootstrap(method)
            plan.progress.total += plan.n_resamples
            self.replicates = self.draw_bootstrap(
                plan.n_resamples, plan.seed, plan.n_threads, plan.progress.tick()
            )
            plan.progress.finish(drawn=True)

    def check_bootstrap(self, method: str) -> None:
        """Raise when there is no such interval for this metric and design."""
        if self.stratified:
            raise ArgumentError(
                f"interval is {method!r} with strata of your own; accepted: 'auto', 'delta'"
            )
        if self.metric.family == "calibration":
            raise ArgumentError(
                f"interval is {method!r} for {self.metric.name}, which is biased upwards in small "
                "groups, so no interval of its gap covers; accepted: 'auto'"
            )

    @property
    def interval_name(self) -> str:
        """Return the name of the method behind `interval`."""
        if self.interval_method != "auto":
            return self.interval_method
        if not self.is_proportion:
            return "delta"
        return "mantel-haenszel" if self.stratified else "newcombe"

    @property
    def is_proportion(self) -> bool:
        """Whether values are shares of rows that all count the same."""
        return self.metric.is_proportion

    def n_used(self, position: int) -> int:
        """Return the rows in the denominator of a proportion; all rows for other metrics."""
        evaluation = self.evaluations[position]
        return int(evaluation.denominator) if self.is_proportion else self.n_rows[position]

    def max_t(self, pairs: list[tuple[int, int]], plan: Procedure) -> list[float]:
        """Adjust two-sided p-values of all pairs by the joint replicates of all groups."""
        native = self.native(range(len(self.keys)))
        adjusted: list[float] = native.max_t(
            pairs,
            _native.Draws(plan.n_resamples, seed=plan.seed, series=OMNIBUS_SERIES),
            plan.call(),
        )
        plan.progress.finish(drawn=True)
        return adjusted

    def gap(self, pair: tuple[int, int]) -> Gap:
        """Return the difference of two groups, less what strata of the user's explain."""
        first, second = (self.evaluations[i] for i in pair)
        estimate = first.value - second.value
        if self.stratified:
            expected = self.native(pair).expected()
            estimate -= expected[0] - expected[1]
        return Gap(estimate, math.sqrt(first.variance + second.variance))

    def interval(self, pair: tuple[int, int], level: float) -> tuple[float, float]:
        """Return the two-sided interval of a difference; NaN where it cannot be measured."""
        z = _native.normal_quantile(0.5 + level / 2)
        method = self.interval_method
        first, second = (self.evaluations[i] for i in pair)
        if self.metric.family == "calibration":
            return NOTHING
        if method == "auto" and self.is_proportion and not self.stratified:
            return newcombe(first.share, second.share, z)
        gap = self.gap(pair)
        if self.replicates is not None:
            i, j = pair
            values, variances = self.replicates.values, self.replicates.variances
            low, high = bootstrap_interval(
                method,
                gap.estimate,
                gap.standard_error,
                values[:, i] - values[:, j],
                variances[:, i] + variances[:, j],
                level,
            )
        elif gap.standard_error > 0:
            half = z * gap.standard_error
            low, high = gap.estimate - half, gap.estimate + half
        else:
            return NOTHING
        bound = self.bound
        return max(low, -bound), min(high, bound)

    @property
    def bound(self) -> float:
        """Return the largest gap that there can be."""
        low, high = self.metric.range
        return high - low

    def one_sided_interval(
        self, pair: tuple[int, int], alternative: str, level: float
    ) -> tuple[float, float]:
        """Return the interval that belongs to an alternative."""
        if alternative == "two-sided":
            return self.interval(pair, level)
        low, high = self.interval(pair, 2 * level - 1)
        bound = self.bound
        return (low, bound) if alternative == "greater" else (-bound, high)

    def largest_gap(self, level: float) -> tuple[float, tuple[float, float]]:
        """Return the largest gap and its interval from simultaneous intervals of all pairs."""
        pairs = list(combinations(range(len(self.keys)), 2))
        each = 1 - (1 - level) / len(pairs)
        largest = max(abs(self.gap(pair).estimate) for pair in pairs)
        return largest, range_of_pairs([self.interval(pair, each) for pair in pairs])

    def certain_groups(self) -> list[str]:
        """Return the groups whose metric shows no variation at all."""
        return [
            group_name(label(key))
            for key, evaluation in zip(self.keys, self.evaluations, strict=True)
            if evaluation.variance == 0
        ]

    def note_few_labels(self, n_positive: Sequence[int], n_negative: Sequence[int]) -> None:
        """Note the groups with few rows of a label."""
        self.fewest_labels = min(*n_positive, *n_negative)
        if self.scaling != "unpooled":
            return
        for key, up, down in zip(self.keys, n_positive, n_negative, strict=True):
            few, kind = min((up, "positive"), (down, "negative"))
            if few < FEW_LABELS:
                self.notes.append(
                    f"{group_name(label(key))} has only {few} rows with a {kind} label: with few "
                    f"of them (below {FEW_LABELS}) the test of {self.metric.name} can reject too "
                    "often and its interval be too short"
                )

    def _check_measurable(self, rows_of: Callable[[int], str | None]) -> None:
        """Raise when the metric has no value in some group, or cannot be studentized."""
        for i, key in enumerate(self.keys):
            name = group_name(label(key))
            value, variance, *_ = self.evaluations[i]
            advice = "Name the groups to compare with groups=, or choose another metric"
            if math.isnan(value):
                raise NotMeasurableError(
                    f"group {name!r} has {rows_of(i)}; {self.metric.name} is not defined there. "
                    + advice
                )
            if self.scaling == "unpooled" and (math.isnan(variance) or self.n_rows[i] < 2):
                raise NotMeasurableError(
                    f"group {name!r} has {rows_of(i)}; a studentized {self.metric.name} needs at "
                    f"least 2. {advice}"
                )
