"""`Problem`: the interface to a metric on grouped data, which all procedures use.

A `Problem` has the metric of each group, makes native tests, gaps and intervals, explains what it
cannot compute, and simulates groups. There are subclasses for counts (`counts`, `joint_problem`),
rows (`rows`), correlations (`correlation`) and functions (`function_problem`). Problems are
immutable and can be pickled; native tests are then made again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import EqualByValue
from ..data.groups import attribute_name, group_label, group_name
from ..data.labels import GroupKey
from ..errors import ArgumentError
from ..inference import mover
from ..inference.homogeneity import Homogeneity
from ..inference.intervals import NO_INTERVAL, Bootstrap, Interval, Pair, bootstrap_interval
from ..inference.proportions import SampleProportion, newcombe_interval
from ..inference.pvalues import two_sided_normal_quantile
from ..metrics.metric import Metric
from ..report.notes import Note
from .excluded_groups import refuse_groups
from .formulas import FORMULAS, FormulaMethod, log_ratio
from .reasons import WithholdingReason
from .simulated_groups import ShuffledGroups, SimulatedTests, TiltedSampler
from .strata import notes_of_strata
from .within_strata import PairWithinStrata, StratumValues

BOOTSTRAP_METHODS = ("studentized", "basic", "percentile")


@dataclass(frozen=True)
class Gap:
    """The difference between two groups."""

    estimate: float
    standard_error: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem(EqualByValue, ABC):
    """A metric and the groups of a test, in the order of the comparison."""

    metric: Metric
    keys: tuple[GroupKey, ...]
    n_rows: tuple[int, ...]
    scaling: str
    #: Threads for making native tests.
    n_threads: int | None = field(default=None, compare=False)
    #: Names of the attributes that make the groups, for people.
    features: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        self.check()

    @abstractmethod
    def check(self) -> None:
        """Raise when the metric has no value in some groups, or cannot be studentized."""

    # -- as observed -------------------------------------------------------------------------

    @property
    @abstractmethod
    def evaluations(self) -> Sequence[_native.Evaluation]:
        """The metric in each group."""

    @property
    def components(self) -> Sequence[Problem]:
        """The components of a joint criterion, or the problem itself."""
        return (self,)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the numbers."""
        return ()

    def collect_notes(
        self, notes_of_parts: Iterable[tuple[Problem, Iterable[Note]]]
    ) -> tuple[Note, ...]:
        """Return the notes of components; of several, notes that name the metric have its scope."""
        notes = []
        for part, of_part in notes_of_parts:
            name = part.metric.name
            for note in of_part:
                is_of_part = len(self.components) > 1 and name in note.text
                notes.append(replace(note, scope=name) if is_of_part else note)
        return tuple(dict.fromkeys(notes))

    @property
    def stratified(self) -> bool:
        """Return whether gaps are taken within the user's strata."""
        return False

    @property
    def is_proportion(self) -> bool:
        """Return whether values are proportions of unweighted, unclustered rows."""
        return self.metric.is_proportion

    @property
    def is_studentized(self) -> bool:
        """Return whether tests divide by the variance of each group."""
        return self.scaling in ("unpooled", "corrected")

    @property
    def everything(self) -> tuple[int, ...]:
        """The positions of all groups."""
        return tuple(range(len(self.keys)))

    @property
    def names(self) -> list[str]:
        """The names of the groups, for people."""
        attribute = attribute_name(self.features)
        return [group_name(group_label(key), attribute) for key in self.keys]

    def n_used(self, position: int) -> int:
        """Return the rows in the denominator of a proportion; all rows for other metrics."""
        evaluation = self.evaluations[position]
        return int(evaluation.denominator) if self.is_proportion else self.n_rows[position]

    def labels_of(self, position: int) -> tuple[int, int] | None:
        """Return the rows of a group with a positive and a negative label; None if it has none."""
        del position
        return None

    def weights_of(self, position: int) -> NDArray[np.float64] | None:
        """Return the weights of the eligible rows of a group; None without weights."""
        del position
        return None

    def gap(self, pair: Pair) -> Gap:
        """Return the difference of two groups, within the user's strata if there are any."""
        if pair not in self._gaps:
            self._gaps[pair] = self._gap(pair)
        return self._gaps[pair]

    @cached_property
    def _gaps(self) -> dict[Pair, Gap]:
        return {}

    def _gap(self, pair: Pair) -> Gap:
        within = self.test().contrast(*pair) if self.stratified else None
        if within is not None:
            return Gap(within.estimate, math.sqrt(within.variance))
        first, second = (self.evaluations[i] for i in pair)
        return Gap(first.value - second.value, math.sqrt(first.variance + second.variance))

    @cached_property
    def by_stratum(self) -> StratumValues | None:
        """The metric by stratum and group; None without the user's strata."""
        return None

    def homogeneity(self, pair: Pair) -> Homogeneity:
        """Test whether the gap of two groups is the same in all strata."""
        del pair
        return Homogeneity.unknown(f"there is no such test of {self.metric.name}")

    def within_strata(self, pair: Pair) -> PairWithinStrata | None:
        """Return the values of two groups within strata; None without the user's strata."""
        if self.by_stratum is None:
            return None
        return self.by_stratum.compare_pair(pair, lambda: self.homogeneity(pair))

    @property
    def has_ratios(self) -> bool:
        """Return whether two groups have a ratio; within strata only rates have one."""
        return not self.stratified or self.is_proportion

    def compared(self, pair: Pair) -> tuple[float, float]:
        """Return the two values whose ratio is taken."""
        first, second = (self.evaluations[i].value for i in pair)
        return first, second

    def log_ratio(self, pair: Pair) -> tuple[float, float]:
        """Return the logarithm of the ratio of two values above 0, and its standard error."""
        return log_ratio(self, pair)

    def certain_groups(self) -> list[str]:
        """Return the names of groups in which the metric does not vary."""
        named = zip(self.names, self.evaluations, strict=True)
        return [name for name, evaluation in named if evaluation.variance == 0]

    def notes_of_strata(self) -> list[Note]:
        """Return notes on the user's strata."""
        return notes_of_strata(self)

    # -- tests -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""

    @property
    def why_undirected(self) -> str | None:
        """The reason why one-sided alternatives are not defined."""
        return f"{len(self.keys)} groups" if len(self.keys) > 2 else None

    @property
    def call(self) -> _native.Call:
        """The threads for making native tests."""
        return _native.Call(self.n_threads)

    @cached_property
    def _tests(self) -> dict[tuple[int, ...], Any]:
        return {}

    def test(self, chosen: Sequence[int] | None = None) -> Any:
        """Return the native test of the groups at some positions; of all by default.

        The test of all groups is cached, and the last one of other groups: tests copy their rows.
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

    @property
    def known_range(self) -> Interval | None:
        """The known range of row values, for means of unweighted, unclustered rows; else None."""
        return None

    def uses_melded_limits(self, groups: Sequence[int]) -> bool:
        """Return whether one of the groups needs melded limits."""
        del groups
        return False

    def melded(self, groups: Sequence[int], draws: _native.Draws, call: _native.Call) -> Any:
        """Return the melded limits of all groups; None if these groups do not need them."""
        del groups, draws, call

    @property
    def melding_method(self) -> str | None:
        """The name of the melded limits; None if no group needs them."""
        return None

    @property
    def unit(self) -> str:
        """The name of the units that exchange their groups: "rows" or "clusters"."""
        return "rows"

    @property
    def melding_note(self) -> Note | None:
        """The note on tests and intervals that use melded limits."""
        return None

    def reason_to_withhold(
        self, pair: Sequence[int], shifts: _native.Shifts, rejected: bool
    ) -> WithholdingReason | None:
        """Return why a test of two groups is inconclusive; ``rejected``: if it would reject."""
        del pair, shifts, rejected
        return None

    def step_down(
        self, pairs: Sequence[Pair], draws: _native.Draws, call: _native.Call
    ) -> NDArray[np.uint64]:
        """Count the joint replicates that reach the step-down statistic of each pair.

        Counts of several ranges of replicates can be summed; `adjusted` turns them into p-values.
        """
        counts: NDArray[np.uint64] = self.test().max_t(pairs, draws, call)
        return counts

    def adjusted(self, pairs: Sequence[Pair], counts: NDArray[np.uint64], n: int) -> list[float]:
        """Return adjusted two-sided p-values of all pairs from the counts of n replicates."""
        pvalues: list[float] = self.test().max_t_pvalues(pairs, counts, n)
        return pvalues

    def scaled(
        self, statistic: float, null: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Divide the statistic and its null distribution by a scale that all replicates share."""
        return statistic, null

    # -- intervals ---------------------------------------------------------------------------

    @property
    def gap_method(self) -> str:
        """The default interval method for gaps."""
        if self.is_proportion:
            return "mantel-haenszel" if self.stratified else "newcombe"
        return "mover" if self.prefers_mover and not self.stratified else "delta"

    def chosen_gap_method(self, wanted: str) -> str:
        """Return the interval method of this name, or raise if the metric does not support it."""
        if wanted == "auto":
            return self.gap_method
        if wanted == "inversion" and self.scaling != "corrected":
            raise ArgumentError(
                f"interval is 'inversion' for {self.metric.name} with studentize={self.scaling!r}. "
                "Pass interval='auto'; 'inversion' is for means and ratios of sums with "
                "studentize='auto'.",
                argument="interval",
                mentions=("studentize",),
            )
        if wanted not in BOOTSTRAP_METHODS:
            return wanted
        if self.stratified:
            raise ArgumentError(
                f"interval is {wanted!r} with strata of your own; accepted: 'auto', 'delta'",
                argument="interval",
            )
        if not self.metric.kind.has_gap_interval:
            raise ArgumentError(
                f"interval is {wanted!r} for {self.metric.name}, which "
                f"{self.metric.kind.why_no_intervals}; accepted: 'auto'",
                argument="interval",
            )
        return wanted

    def interval_methods(self, scale: str = "difference") -> tuple[str, ...]:
        """Return the interval methods of the metric; the first is the default."""
        of_all = ("studentized", "delta", "basic", "percentile")
        del scale
        if self.stratified:
            return ("mantel-haenszel",) if self.is_proportion else ("delta",)
        if self.is_proportion:
            return ("score", *of_all)
        if self.prefers_mover:
            return ("mover", *of_all)
        return (*of_all, "mover") if self.is_bounded else of_all

    def why_not(self, method: str) -> str:
        """Return why the metric has no interval by a method."""
        if self.stratified:
            return "within strata of your own"
        if method == "mantel-haenszel":
            return "which has no strata, or is not a proportion without weights and clusters"
        if method == "inversion":
            return "which is not a mean, ratio of sums, or rate of weighted rows or clusters"
        if method == "mover":
            return (
                "a proportion (use 'score')"
                if self.is_proportion
                else "whose values have no limits within a known range"
            )
        return "which is not a proportion without weights and clusters"

    @property
    def is_bounded(self) -> bool:
        """Return whether values lie in a known finite range and have confidence limits."""
        return math.isfinite(self.bound) and self.metric.kind.reads in ("classes", "scores")

    @property
    def prefers_mover(self) -> bool:
        """Return whether MOVER is the best method for gaps and ratios."""
        return self.is_bounded

    def notes_of_limits(self) -> list[Note]:
        """Return a note on groups in which the metric has no limits."""
        bare = [n for i, n in enumerate(self.names) if not self.limited(i).is_known]
        if not bare:
            return []
        return [
            Note(
                "no-limits",
                f"{self.metric.name} does not vary in {', '.join(bare[:5])}, or is at an end of "
                "its range: there is no interval of it or of a gap from it",
                tuple(bare),
            )
        ]

    def limited(self, position: int) -> mover.ValueWithLimits:
        """Return the metric of a group with its limits."""
        entry = self.evaluations[position]
        return mover.by_logit(entry.value, math.sqrt(entry.variance), self.metric.range)

    def formula(self, method: str) -> FormulaMethod:
        """Return the `FormulaMethod` of this name."""
        return FORMULAS[method](self)

    def value_interval(self, position: int, level: float) -> tuple[str, Interval]:
        """Return the method and the interval of a group value, without replicates.

        The normal distribution is used if there is no better formula; limits stay in the range.
        """
        if not self.metric.kind.has_gap_interval:
            return "", NO_INTERVAL
        method = next((word for word in self.interval_methods() if word in FORMULAS), "")
        if not method:
            return method, NO_INTERVAL
        low, high = self.formula(method).value(position, level)
        least, most = self.metric.range
        return method, (max(low, least), min(high, most)) if low <= high else NO_INTERVAL

    def shown_method(self, method: str) -> str:
        """Return the name of an interval method in results."""
        return method

    @property
    def bound(self) -> float:
        """The largest possible gap."""
        low, high = self.metric.range
        return high - low

    def interval(
        self, pair: Pair, level: float, method: str, replicates: Bootstrap | None
    ) -> Interval:
        """Return the two-sided interval of a difference; NaN where it cannot be measured."""
        if not self.metric.kind.has_gap_interval:
            return NO_INTERVAL
        z = two_sided_normal_quantile(level)
        if method in ("newcombe", "score"):
            entries = (self.evaluations[i] for i in pair)
            first, second = (SampleProportion(entry.value, entry.denominator) for entry in entries)
            return newcombe_interval(first, second, z)
        if method == "mover":
            return mover.difference_interval(self.limited(pair[0]), self.limited(pair[1]), z)
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
            return NO_INTERVAL
        return max(low, -self.bound), min(high, self.bound)

    def inversion_interval(
        self, null: NDArray[np.float64], level: float, alternative: str
    ) -> Interval | None:
        """Return the interval that inverts a null distribution; None if not supported."""
        del null, level, alternative
        return None

    def bootstrap(
        self, draws: _native.Draws, call: _native.Call, *, variances: bool = True
    ) -> Bootstrap:
        """Resample the rows, or the clusters, of every group."""
        drawn = self.test().bootstrap(draws, call, variances=variances)
        if variances:
            return Bootstrap(drawn.values, drawn.variances)
        return Bootstrap(drawn.values, np.broadcast_to(math.nan, drawn.values.shape))

    @property
    def has_bootstrap_t(self) -> bool:
        """Return whether bootstrap replicates can be studentized."""
        return "studentized" in self.interval_methods()

    def bootstrap_t(self, draws: _native.Draws, call: _native.Call) -> Bootstrap:
        """Resample the rows, with the variance of each replicate."""
        return self.bootstrap(draws, call)

    # -- plans and calibration ---------------------------------------------------------------

    def deviations(self) -> dict[Any, float]:
        """Return the standard deviation of the metric per row, by group."""
        return {
            group_label(key): math.sqrt(entry.variance * n)
            for key, entry, n in zip(self.keys, self.evaluations, self.n_rows, strict=True)
        }

    def equal(self, null: str) -> SimulatedTests:
        """Return simulated audits of groups with equal metrics; null is "shuffle" or "weak"."""
        if null == "shuffle":
            return ShuffledGroups(self.test())
        raise ArgumentError(
            f"null is {null!r} for {self.metric.name}, which has no row influences; accepted: "
            "'shuffle'",
            argument="null",
        )

    def unequal(self, gap: float) -> TiltedSampler[Any]:
        """Return a sampler of problems with the same rows and a gap of the first group."""
        raise ArgumentError(
            f"gaps contains {gap:g}, but gaps of {self.metric.name} cannot be simulated. Pass no "
            "gaps, or use a metric of counts, the AUC, or a mean or ratio of row values.",
            argument="gaps",
        )

    # -- checks ------------------------------------------------------------------------------

    def shortages(self, rows_of: Callable[[int], str | None]) -> dict[int, str]:
        """Return why groups have no value of the metric, or cannot be studentized."""
        reasons = {}
        for i, entry in enumerate(self.evaluations):
            if math.isnan(entry.value):
                reasons[i] = f"{rows_of(i)}; {self.metric.name} is not defined there"
            elif self.is_studentized and (math.isnan(entry.variance) or self.n_rows[i] < 2):
                reasons[i] = f"{rows_of(i)}; a studentized {self.metric.name} needs at least 2"
        return reasons

    def refuse(self, shortages: Mapping[int, str]) -> None:
        """Raise if some groups cannot be compared; the message names them all."""
        refuse_groups(shortages, self.keys, self.names)
