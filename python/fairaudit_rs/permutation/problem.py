"""What every procedure may ask of a metric on data with groups.

A `Problem` knows the metric of each group, makes the native test of any of the groups, gives gaps
and intervals, says what it cannot, and draws its rows other groups. There is one for counts
(`counts`, `joint`), rows (`rows`), correlations (`correlation`) and any function (`callable`). It
does not change, and it can be sent to other processes: native tests are made there anew.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import Value
from ..data.groups import group_name, label
from ..data.labels import GroupKey
from ..errors import ArgumentError, NotMeasurableError
from ..inference.intervals import NOTHING, Bootstrap, Interval, Pair, bootstrap_interval
from ..inference.proportions import Share, newcombe
from ..metrics.metric import Metric
from .relabelling import Audits, Shuffled, Tilted

BOOTSTRAP_METHODS = ("studentized", "basic", "percentile")
#: With fewer rows of a label than this in a group, un-pooled tests and intervals can miss their
#: level; docs/validity.md has the figures.
FEW_LABELS = 20
#: With fewer, the interval of a gap of ranks is a bootstrap-t one: the delta method is too short.
FEW_FOR_DELTA = 50


@dataclass(frozen=True)
class Gap:
    """A difference of two groups."""

    estimate: float
    standard_error: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem(Value, ABC):
    """A metric and the groups of a test, in the order in which they are compared."""

    metric: Metric
    keys: tuple[GroupKey, ...]
    n_rows: tuple[int, ...]
    scaling: str
    #: Threads for what is prepared once: native tests.
    n_threads: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        self.check()

    @abstractmethod
    def check(self) -> None:
        """Raise when the metric has no value in some group, or cannot be studentized."""

    # -- as observed -------------------------------------------------------------------------

    @property
    @abstractmethod
    def evaluations(self) -> Sequence[_native.Evaluation]:
        """The metric in each group."""

    @property
    def components(self) -> Sequence[Problem]:
        """The problems whose values are shown: those of the parts of a joint criterion."""
        return (self,)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know besides the numbers."""
        return ()

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is known to go wrong with such data."""
        return ()

    @property
    def stratified(self) -> bool:
        """Whether gaps are taken within strata of the user's."""
        return False

    @property
    def is_proportion(self) -> bool:
        """Whether values are shares of rows that all count the same."""
        return self.metric.is_proportion

    @property
    def everything(self) -> tuple[int, ...]:
        """The positions of all groups."""
        return tuple(range(len(self.keys)))

    @property
    def names(self) -> list[str]:
        """The names of the groups, for people."""
        return [group_name(label(key)) for key in self.keys]

    def n_used(self, position: int) -> int:
        """Return the rows in the denominator of a proportion; all rows for other metrics."""
        evaluation = self.evaluations[position]
        return int(evaluation.denominator) if self.is_proportion else self.n_rows[position]

    def gap(self, pair: Pair) -> Gap:
        """Return the difference of two groups, less what strata of the user's explain."""
        if pair not in self._gaps:
            self._gaps[pair] = self._gap(pair)
        return self._gaps[pair]

    @cached_property
    def _gaps(self) -> dict[Pair, Gap]:
        return {}

    def _gap(self, pair: Pair) -> Gap:
        first, second = (self.evaluations[i] for i in pair)
        estimate = first.value - second.value
        if self.stratified:
            expected = self.test(pair).expected
            estimate -= expected[0] - expected[1]
        return Gap(estimate, math.sqrt(first.variance + second.variance))

    def certain_groups(self) -> list[str]:
        """Return the groups whose metric shows no variation at all."""
        named = zip(self.names, self.evaluations, strict=True)
        return [name for name, evaluation in named if evaluation.variance == 0]

    # -- tests -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""

    @property
    def why_undirected(self) -> str | None:
        """What makes one-sided alternatives mean nothing."""
        return f"{len(self.keys)} groups" if len(self.keys) > 2 else None

    @property
    def call(self) -> _native.Call:
        """How native tests are made."""
        return _native.Call(self.n_threads)

    @cached_property
    def _tests(self) -> dict[tuple[int, ...], Any]:
        return {}

    def test(self, chosen: Sequence[int] | None = None) -> Any:
        """Return the native test of the groups at some positions; of all by default.

        That of all groups is kept, and the last one of others: they hold rows of their own.
        """
        wanted = self.everything if chosen is None else tuple(chosen)
        if wanted not in self._tests:
            for other in set(self._tests) - {self.everything}:
                del self._tests[other]
            self._tests[wanted] = self.make_test(wanted)
        return self._tests[wanted]

    @abstractmethod
    def make_test(self, chosen: tuple[int, ...]) -> Any:
        """Make the native test of the groups at some positions."""

    def step_down(
        self, pairs: Sequence[Pair], draws: _native.Draws, call: _native.Call
    ) -> NDArray[np.uint64]:
        """Count the joint replicates that reach the step-down statistic of each pair.

        Counts of ranges of replicates add up; `adjusted` makes p-values of them.
        """
        counts: NDArray[np.uint64] = self.test().max_t(pairs, draws, call)
        return counts

    def adjusted(self, pairs: Sequence[Pair], counts: NDArray[np.uint64], n: int) -> list[float]:
        """Return adjusted two-sided p-values of all pairs, of the counts of n replicates."""
        pvalues: list[float] = self.test().max_t_pvalues(pairs, counts, n)
        return pvalues

    def scaled(
        self, statistic: float, null: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Divide the statistic and its null distribution by what all replicates share."""
        return statistic, null

    # -- intervals ---------------------------------------------------------------------------

    @property
    def gap_method(self) -> str:
        """How the gap of a test gets its interval when nobody chooses."""
        if not self.is_proportion:
            return "delta"
        return "mantel-haenszel" if self.stratified else "newcombe"

    def chosen_gap_method(self, wanted: str) -> str:
        """Return the method behind a word, or raise when there is no such interval."""
        if wanted == "auto":
            return self.gap_method
        if wanted not in BOOTSTRAP_METHODS:
            return wanted
        if self.stratified:
            raise ArgumentError(
                f"interval is {wanted!r} with strata of your own; accepted: 'auto', 'delta'"
            )
        if not self.metric.kind.has_gap_interval:
            raise ArgumentError(
                f"interval is {wanted!r} for {self.metric.name}, which "
                f"{self.metric.kind.why_no_intervals}; accepted: 'auto'"
            )
        return wanted

    def interval_methods(self, scale: str = "difference") -> tuple[str, ...]:
        """Return how values, gaps and ratios can get intervals; the first is what "auto" means."""
        of_all = ("studentized", "delta", "basic", "percentile")
        if not self.is_proportion:
            return of_all
        return ("score", *of_all) if scale == "difference" else of_all

    def why_not(self, method: str) -> str:
        """Say why there is no interval by a method."""
        del method
        return "which is not a proportion of rows that count the same"

    def shown_method(self, method: str) -> str:
        """Return the name of a method of `interval_methods` in results."""
        return method

    @property
    def bound(self) -> float:
        """Return the largest gap that there can be."""
        low, high = self.metric.range
        return high - low

    def interval(
        self, pair: Pair, level: float, method: str, replicates: Bootstrap | None
    ) -> Interval:
        """Return the two-sided interval of a difference; NaN where it cannot be measured."""
        if not self.metric.kind.has_gap_interval:
            return NOTHING
        z = _native.normal_quantile(0.5 + level / 2)
        if method in ("newcombe", "score"):
            entries = (self.evaluations[i] for i in pair)
            first, second = (Share(entry.value, entry.denominator) for entry in entries)
            return newcombe(first, second, z)
        gap = self.gap(pair)
        if replicates is not None:
            i, j = pair
            values, variances = replicates.values, replicates.variances
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
        return max(low, -self.bound), min(high, self.bound)

    def bootstrap(
        self, draws: _native.Draws, call: _native.Call, *, variances: bool = True
    ) -> Bootstrap:
        """Resample the rows, or the clusters, of every group."""
        drawn = self.test().bootstrap(draws, call, variances=variances)
        if variances:
            return Bootstrap(drawn.values, drawn.variances)
        return Bootstrap(drawn.values, np.broadcast_to(math.nan, drawn.values.shape))

    # -- plans and calibration ---------------------------------------------------------------

    def deviations(self) -> dict[Any, float]:
        """Return the standard deviation of the metric per row, by group."""
        return {
            label(key): math.sqrt(entry.variance * n)
            for key, entry, n in zip(self.keys, self.evaluations, self.n_rows, strict=True)
        }

    def equal(self, null: str) -> Audits:
        """Return audits of groups with one value: shuffled ones, or those of the weak null."""
        if null == "shuffle":
            return Shuffled(self.test())
        raise ArgumentError(
            f"null is {null!r} for {self.metric.name}, which has no influence of the rows of a "
            "group; accepted: 'shuffle'"
        )

    def unequal(self, gap: float) -> Tilted[Any]:
        """Return what makes problems of the same rows, in which the first group has a gap."""
        raise ArgumentError(
            f"gaps holds {gap:g} for {self.metric.name}; accepted: gaps of rates and other metrics "
            "of counts, of the AUC, and of means and ratios of row values"
        )

    # -- what checks share -------------------------------------------------------------------

    def check_measurable(self, rows_of: Callable[[int], str | None]) -> None:
        """Raise when the metric has no value in some group, or cannot be studentized."""
        for i, name in enumerate(self.names):
            value, variance = self.evaluations[i].value, self.evaluations[i].variance
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


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledProblem(Problem):
    """A problem of rows with labels, of which a group can have too few."""

    @property
    @abstractmethod
    def n_labels(self) -> tuple[list[int], list[int]] | None:
        """The rows with a positive and a negative label, by group, where few are too few."""

    def chosen_gap_method(self, wanted: str) -> str:
        """Return the method behind a word, or raise when there is no such interval."""
        of_ranks = wanted == "auto" and self.metric.kind.reads == "scores" and not self.stratified
        if of_ranks and self.n_labels is not None and _fewest(self.n_labels) < FEW_FOR_DELTA:
            return "studentized"
        return super().chosen_gap_method(wanted)

    def notes_of_labels(self) -> list[str]:
        """Note the groups with few rows of a label."""
        if self.n_labels is None or self.scaling != "unpooled":
            return []
        notes = []
        for name, up, down in zip(self.names, *self.n_labels, strict=True):
            few, kind = min((up, "positive"), (down, "negative"))
            if few < FEW_LABELS:
                notes.append(
                    f"{name} has only {few} rows with a {kind} label: with few "
                    f"of them (below {FEW_LABELS}) the test of {self.metric.name} can reject too "
                    "often and its interval be too short"
                )
        return notes


def _fewest(labels: tuple[list[int], list[int]]) -> int:
    return min(*labels[0], *labels[1])
