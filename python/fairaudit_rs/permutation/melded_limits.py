"""Melded confidence limits for groups with too few rows for permutation tests.

They use what is known about the values. Melded Gaffke limits use a known range: for weighted
proportions, and for means with few rows near one end of the range. Melded Poisson-binomial limits
use scores: for mean residuals of events. Units are rows or clusters; A and D are sums over a unit.
The limits are not available within strata.

A group needs the limits if its reach r = max(b - theta, theta - a) D_0 / (D sqrt(v)) is above 0.35
(`LONGEST_REACH`). Clusters with similar values have a long reach however many they are, and
permutation tests are right for them. So a group of clusters needs the limits only if it also has
few clusters (`has_few`):

- fewer than 8 clusters contribute the deviations from the usual value (`deviating_number`), or
  fewer than 4 in a group of at least 40 clusters. For values 0 and 1 this is the number of clusters
  with the rarer value; or
- D is below 4 D_0: the group has fewer rows than 4 clusters of the usual size.

The usual size D_0 = sum D^2 / sum D is the mean cluster size as seen by a row, the largest over the
compared groups: a group without large clusters does not show how large its clusters can be, nor how
these would change its value. If all clusters have the same size, D_0 is that size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.labels import GroupKey
from ..data.rows import Rows
from ..inference import melding
from ..inference.clusters import ClusteredRatio
from ..inference.intervals import NO_INTERVAL, Interval, Pair
from ..metrics.metric import Metric
from ..metrics.row_values import Columns, RatioValues
from ..report.notes import Note
from .skewness import rounded_up

#: With a longer reach (see above) a mean has too few rows near one end of its range: some 8 events.
LONGEST_REACH = 0.35
#: With fewer clusters (of equal size) that deviate from the usual value, permutations of clusters
#: miss their level if the clusters of the groups vary differently: 9 to 38 % at 5 %.
FEWEST_DEVIATING = 8.0
#: The same for groups with many clusters, and how many these are. Measured in 9 designs: at most
#: 5.9 and 1.9 % at the levels of 5 and 1 % (permutations 10.5 and 4.5); with 3 of them 7.0 and 2.8.
FEWEST_OF_MANY, MANY_CLUSTERS = 4.0, 40
#: A group with fewer rows than this many clusters of the usual size may lack large clusters.
FEWEST_LARGE = 4.0
#: The sentences of notes.
SENTENCES = {
    "few_events": (
        "{metric} has few events in a group: test and interval take the scores as probabilities "
        "but for one shift of their logits in each group (melded Poisson-binomial limits)"
    ),
    "known_range": (
        "test and interval of {metric} know that values lie from {low} to {high} (melded Gaffke "
        "limits), as {reason}; that they keep their level was simulated, not proved"
    ),
    "few_clusters": (
        "too few clusters for permutations of clusters: {groups}. Test and interval of {metric} "
        "assume that values lie from {low} to {high}, and that a cluster that was not seen is as "
        "large as those of the group with the largest ones (melded Gaffke limits with clusters as "
        "units); their level was simulated, not proved"
    ),
}


class MeldableProblem(Protocol):
    """The parts of a `RowProblem` that melded limits need."""

    @property
    def metric(self) -> Metric:
        """The metric that is compared."""

    @property
    def keys(self) -> Sequence[GroupKey]:
        """The groups."""

    @property
    def n_rows(self) -> Sequence[int]:
        """The rows of each group."""

    @property
    def rows(self) -> Rows:
        """The rows."""

    @property
    def position(self) -> NDArray[np.int64]:
        """The position of each group of the rows among the compared ones."""

    @property
    def values(self) -> Any:
        """Numerator and denominator by row."""

    @property
    def stratified(self) -> bool:
        """Return whether gaps are taken within the user's strata."""

    @property
    def evaluations(self) -> Sequence[_native.Evaluation]:
        """The metric in each group."""

    @property
    def cluster_sums(self) -> Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """The cluster sums of numerator and denominator, by group; () without clusters."""

    @property
    def clustered(self) -> Sequence[ClusteredRatio]:
        """The ratio of each group over its clusters; () without clusters."""


def melding_of(problem: MeldableProblem) -> MeldingInputs | None:
    """Return the inputs of melded limits; None if no group needs them, or they do not apply."""
    rows = problem.rows
    if problem.stratified:
        return None
    if rows.cluster is not None:
        return _of_clusters(problem)
    plain = rows.weight is None and problem.metric.denominator is None
    if plain and problem.position.min(initial=0) >= 0 and not _has_few_rows(problem):
        # The usual case, decided without copying a column.
        return None
    return MeldingInputs.from_rows(
        problem.metric,
        problem.values,
        problem.position[rows.group],
        rows.columns,
        rows.weight,
        evaluations=problem.evaluations,
    )


def _of_clusters(problem: MeldableProblem) -> MeldingInputs | None:
    """Return the inputs with clusters as units, if some group has too few of them."""
    ratios = tuple(problem.clustered)
    size = max((ratio.size for ratio in ratios), default=0.0)
    if not any(has_few(ratio, size) for ratio in ratios):
        return None
    compared: Any = problem.position[problem.rows.group] >= 0
    compared = slice(None) if compared.all() else compared
    columns = {name: column[compared] for name, column in problem.rows.columns.items()}
    bounds = problem.metric.kind.bounds(columns)
    if bounds is None:
        return None
    shares = np.array([size / ratio.total for ratio in ratios])
    inputs = MeldingInputs(
        samples=tuple(
            GroupSample(values=RatioValues(above, below), events=None)
            for above, below in problem.cluster_sums
        ),
        bounds=bounds,
        always=False,
        reaches=_reaches_of(shares, bounds, problem.evaluations),
        clusters=ratios,
    )
    return inputs if any(inputs.applies((i,)) for i in range(len(ratios))) else None


def has_few(ratio: ClusteredRatio, size: float) -> bool:
    """Return whether a group has too few clusters, given their usual ``size``."""
    fewest = FEWEST_DEVIATING if ratio.n < MANY_CLUSTERS else FEWEST_OF_MANY
    return ratio.deviating < fewest or ratio.total < FEWEST_LARGE * size


def _has_few_rows(problem: MeldableProblem) -> bool:
    """Return whether the unweighted mean of some group has too few rows."""
    if problem.metric.kind.reads != "rows":
        return False
    bounds = problem.metric.kind.bounds(problem.rows.columns)
    if bounds is None:
        return False
    shares = 1 / np.array(problem.n_rows)
    return max(_reaches_of(shares, bounds, problem.evaluations)) > LONGEST_REACH


def _reaches(
    below: NDArray[np.float64] | None,
    place: NDArray[np.int64],
    bounds: tuple[float, float],
    evaluations: Sequence[_native.Evaluation],
) -> tuple[float, ...]:
    """Return max(b - theta, theta - a) D_0 / (D sqrt(v)) of each group, D_0 = sum D^2 / sum D."""
    n = np.bincount(place, minlength=len(evaluations))
    if below is None:
        shares = 1 / n
    else:
        total, squares = (np.bincount(place, below**power, len(n)) for power in (1, 2))
        shares = squares / total**2
    return _reaches_of(shares, bounds, evaluations)


def _reaches_of(
    shares: NDArray[np.float64],
    bounds: tuple[float, float],
    evaluations: Sequence[_native.Evaluation],
) -> tuple[float, ...]:
    """Return the reach of each group, given its D_0 / D."""
    reaches = []
    for share, entry in zip(shares, evaluations, strict=True):
        farther = max(bounds[1] - entry.value, entry.value - bounds[0])
        varies = entry.variance > 0
        reaches.append(float(farther * share) / math.sqrt(entry.variance) if varies else math.inf)
    return tuple(reaches)


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupSample:
    """The rows of one group: the terms of its ratio, and events with their scores."""

    values: RatioValues
    #: Scores and the number of positive labels, for mean residuals of unweighted rows.
    events: tuple[NDArray[np.float64], int] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class MeldingInputs:
    """The groups of a comparison, and the range of their values."""

    samples: tuple[GroupSample, ...]
    bounds: tuple[float, float]
    #: Whether the limits are used regardless of the number of rows.
    always: bool
    #: The reach of each group; infinite without variance.
    reaches: tuple[float, ...]
    #: The ratio of each group over its clusters, if these are the units.
    clusters: tuple[ClusteredRatio, ...] = ()

    @classmethod
    def from_rows(
        cls,
        metric: Metric,
        values: Any,
        place: NDArray[np.int64],
        columns: Columns,
        weight: NDArray[np.float64] | None,
        *,
        evaluations: Sequence[_native.Evaluation],
    ) -> MeldingInputs | None:
        """Return the inputs from rows; ``place`` is the position of each row's group, or -1.

        None if the range is unknown, or if every group has enough rows for permutation tests.
        """
        compared = place >= 0
        if not compared.all():
            columns = {name: column[compared] for name, column in columns.items()}
            values, place = values.taken(compared), place[compared]
        bounds = metric.kind.bounds(columns)
        if bounds is None:
            return None
        always = metric.is_proportion and weight is not None
        reaches = _reaches(values.denominator, place, bounds, evaluations)
        if not always and max(reaches) <= LONGEST_REACH:
            return None
        events = metric.kind.events(columns) if weight is None else None
        samples = []
        for i in range(len(evaluations)):
            inside = place == i
            scored = None
            if events is not None:
                label, score = events
                scored = (np.ascontiguousarray(score[inside]), int(label[inside].sum()))
            samples.append(GroupSample(values=values.taken(inside), events=scored))
        return cls(samples=tuple(samples), bounds=bounds, always=always, reaches=reaches)

    @property
    def method(self) -> str:
        """The name of the method in results."""
        by_scores = all(sample.events is not None for sample in self.samples)
        return "poisson-binomial" if by_scores else "gaffke"

    def applies(self, groups: Sequence[int]) -> bool:
        """Return whether one of the groups has too few units for permutation tests."""
        return self.always or any(self._is_short(i) for i in groups)

    @cached_property
    def _size(self) -> float:
        """The usual size of a cluster."""
        return max(ratio.size for ratio in self.clusters)

    def _is_short(self, group: int) -> bool:
        few = not self.clusters or has_few(self.clusters[group], self._size)
        return few and self.reaches[group] > LONGEST_REACH

    def note(self, name: str, groups: Sequence[str]) -> Note:
        """Return the note on tests and intervals that use these limits."""
        if self.clusters:
            return self._note_of_clusters(name, groups)
        if self.method == "poisson-binomial":
            return Note("few-events", SENTENCES["few_events"].format(metric=name))
        low, high = self.bounds
        why = "rows have weights" if self.always else "few rows of a group are near one end of it"
        text = SENTENCES["known_range"].format(
            metric=name, low=f"{low:.4g}", high=f"{high:.4g}", reason=why
        )
        return Note("known-range", text)

    def _note_of_clusters(self, name: str, groups: Sequence[str]) -> Note:
        short = {
            group: f"{group} ({_required(self.clusters[i], self._size)})"
            for i, group in enumerate(groups)
            if self._is_short(i)
        }
        low, high = self.bounds
        text = SENTENCES["few_clusters"].format(
            groups=", ".join(list(short.values())[:5]),
            metric=name,
            low=f"{low:.4g}",
            high=f"{high:.4g}",
        )
        return Note("few-clusters", text, tuple(short))

    def draw(self, draws: _native.Draws, call: _native.Call) -> MeldedLimits:
        """Draw the limits of all groups independently."""
        limits = []
        for i, sample in enumerate(self.samples):
            if sample.events is not None:
                limits.append(_native.poisson_binomial_limits(*sample.events, i, draws, call))
            else:
                above, below = sample.values.numerator, sample.values.denominator
                of_group = _native.gaffke_limits(above, below, self.bounds, i, draws, call)
                if self.clusters:
                    larger = self._size / self.clusters[i].size
                    of_group = with_larger_unit(of_group, self.bounds, larger)
                limits.append(of_group)
        return MeldedLimits(tuple(limits), self.bounds)


def with_larger_unit(limits: _native.Limits, bounds: Interval, factor: float) -> _native.Limits:
    """Return Gaffke limits whose extra unit at the end of the range is ``factor`` times as large.

    With s = sum e A, t = sum e D and c = e_0 D_0 they are U = (s + c b) / (t + c) and
    L = (s + c a) / (t + c). The share q = c / (t + c) = (U - L) / (b - a) and the mean
    m = s / t = (L - q a) / (1 - q) follow from them, and f c has the share f q / (1 - q + f q).
    """
    if not factor > 1:
        return limits
    low, high = bounds
    share = (limits.upper - limits.lower) / (high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (limits.lower - share * low) / (1 - share)
    mean = np.clip(np.where(share < 1, mean, low), low, high)
    share = factor * share / (1 - share + factor * share)
    rest = (1 - share) * mean
    return _native.Limits(rest + share * high, rest + share * low)


def _required(ratio: ClusteredRatio, size: float) -> str:
    """Return the number of clusters of a group, and the required number, as text."""
    if not ratio.deviating > 0:
        return f"{ratio.n:,} clusters, all with the same value"
    wanted = rounded_up(required_clusters(ratio, size))
    return f"{ratio.n:,} clusters; about {wanted:,} such clusters are needed"


def required_clusters(ratio: ClusteredRatio, size: float) -> float:
    """Return the required number of clusters, if further ones vary as those of the group."""
    each = ratio.deviating / ratio.n
    wanted = min(FEWEST_DEVIATING / each, max(FEWEST_OF_MANY / each, MANY_CLUSTERS))
    return max(wanted, ratio.n * FEWEST_LARGE * size / ratio.total)


@dataclass(frozen=True, eq=False)
class MeldedLimits:
    """Limits of all groups at random levels, with the tests and intervals of pairs."""

    limits: tuple[_native.Limits, ...]
    bounds: tuple[float, float]

    def pvalue(self, pair: Pair, alternative: str = "two-sided") -> float:
        """Return the p-value of equality."""
        return melding.melded_pvalue(*self._limits_of(pair), alternative)

    def pvalue_at(self, pair: Pair, margin: float, alternative: str) -> float:
        """Return the one-sided p-value against a difference "greater" or "less" than the margin."""
        test = melding.pvalue_above if alternative == "greater" else melding.pvalue_below
        return test(*self._limits_of(pair), margin)

    def ratio_pvalue_at(self, pair: Pair, ratio: float, alternative: str) -> float:
        """Return the one-sided p-value of a ratio; 1 if values can be negative."""
        if self.bounds[0] < 0:
            return 1.0
        above = alternative == "greater"
        test = melding.ratio_pvalue_above if above else melding.ratio_pvalue_below
        return test(*self._limits_of(pair), ratio)

    def interval(self, pair: Pair, level: float) -> Interval:
        """Return the interval of a difference."""
        width = self.bounds[1] - self.bounds[0]
        return _within(melding.interval_of_difference(*self._limits_of(pair), level), -width, width)

    def ratio_interval(self, pair: Pair, level: float) -> Interval:
        """Return the interval of a ratio; NaN if values can be negative."""
        if self.bounds[0] < 0:
            return NO_INTERVAL
        return _within(melding.interval_of_ratio(*self._limits_of(pair), level), 0.0, math.inf)

    def value_interval(self, group: int, level: float) -> Interval:
        """Return the interval of the value of a group."""
        return _within(melding.interval_of_value(self.limits[group], level), *self.bounds)

    def _limits_of(self, pair: Pair) -> tuple[_native.Limits, _native.Limits]:
        first, second = pair
        return self.limits[first], self.limits[second]


def _within(interval: Interval, low: float, high: float) -> Interval:
    return max(interval[0], low), min(interval[1], high)
