"""Groups that are compared by what is known of their values: their range, or their scores.

Melded Gaffke limits for weighted proportions, and for means of a known range with few rows near one
end of it; melded Poisson-binomial limits for mean residuals of events with scores. Rows must be
drawn alone, or in clusters, which are then the units: A and D are sums over a cluster. Not within
strata.

A group needs the limits where its reach r = max(b - theta, theta - a) D_0 / (D sqrt(v)) is above
0.35 (`LONGEST_REACH`). Clusters with close values have a long reach however many they are, and
tests that know no range are right for them. Their limits are needed only where, besides, the group
has few clusters (`has_few`):

- fewer than 8 hold the departures from the usual value (`deviating_number`), or fewer than 4 of a
  group with 40 clusters or more. Of rows of 0 and 1 this is the number of the rarer value; or
- D is below 4 D_0: the group has fewer rows than 4 clusters of the usual size.

D_0 = sum D^2 / sum D is the size of the cluster of a row, the largest one of the compared groups: a
group that holds no large cluster does not show how large its clusters can be, and neither what
these would do to its value. Clusters of one size have that size.
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
from ..inference.intervals import NOTHING, Interval, Pair
from ..metrics.metric import Metric
from ..metrics.row_values import Columns, RatioValues
from .skewness import rounded_up

#: Distance of a mean to the farther end of its range in standard errors, from which on it has too
#: few rows near that end: some 8 events.
LONGEST_REACH = 0.35
#: With fewer clusters (of one size) that hold the departures from the usual value, permutations of
#: clusters miss their level where the groups' clusters vary differently: 9 to 38 % at 5 %.
FEWEST_DEVIATING = 8.0
#: The same of groups with many clusters, and how many these are. Measured in 9 designs: at most 5.9
#: and 1.9 % at the levels of 5 and 1 % (permutations 10.5 and 4.5); with 3 of them 7.0 and 2.8.
FEWEST_OF_MANY, MANY_CLUSTERS = 4.0, 40
#: With fewer rows than so many clusters of the usual size a group may hold no large cluster.
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
    """A problem of rows."""

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
        """Return whether gaps are taken within strata of the user's."""

    @property
    def evaluations(self) -> Sequence[_native.Evaluation]:
        """The metric in each group."""

    @property
    def cluster_sums(self) -> Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """The sums of numerator and denominator over the clusters of each group; () without."""

    @property
    def clustered(self) -> Sequence[ClusteredRatio]:
        """The ratio of each group over its clusters; () without clusters."""


def melding_of(problem: MeldableProblem) -> MeldingInputs | None:
    """Return the groups of a problem, if they have no strata and their range is known."""
    rows = problem.rows
    if problem.stratified:
        return None
    if rows.cluster is not None:
        return _of_clusters(problem)
    plain = rows.weight is None and problem.metric.denominator is None
    if plain and problem.position.min(initial=0) >= 0 and not _few(problem):
        # Usual, and told without a column of its own.
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
    """Return groups whose units are clusters, if some group has too few of them."""
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
    made = MeldingInputs(
        samples=tuple(
            GroupSample(values=RatioValues(above, below), events=None)
            for above, below in problem.cluster_sums
        ),
        bounds=bounds,
        always=False,
        reaches=_reaches_of(shares, bounds, problem.evaluations),
        clusters=ratios,
    )
    return made if any(made.applies((i,)) for i in range(len(ratios))) else None


def has_few(ratio: ClusteredRatio, size: float) -> bool:
    """Return whether a group has too few clusters, ``size`` being the usual one of a cluster."""
    fewest = FEWEST_DEVIATING if ratio.n < MANY_CLUSTERS else FEWEST_OF_MANY
    return ratio.deviating < fewest or ratio.total < FEWEST_LARGE * size


def _few(problem: MeldableProblem) -> bool:
    """Return whether some unweighted mean has too few rows, all groups being compared."""
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
    """Return the same, given D_0 / D of each group."""
    reaches = []
    for share, entry in zip(shares, evaluations, strict=True):
        farther = max(bounds[1] - entry.value, entry.value - bounds[0])
        varies = entry.variance > 0
        reaches.append(float(farther * share) / math.sqrt(entry.variance) if varies else math.inf)
    return tuple(reaches)


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupSample:
    """The rows of one group: sums whose ratio is its value, and events with their scores."""

    values: RatioValues
    #: Scores and the number of positive labels, of a mean residual whose rows all count the same.
    events: tuple[NDArray[np.float64], int] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class MeldingInputs:
    """The groups of a comparison, and the range of their values."""

    samples: tuple[GroupSample, ...]
    bounds: tuple[float, float]
    #: Whether the limits are taken whatever the number of rows.
    always: bool
    #: How far each mean is from the farther end of its range; infinite without variance.
    reaches: tuple[float, ...]
    #: The ratio of each group over its clusters, where these are the units.
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
        """Take the rows of groups, ``place`` being that of each row's group, -1 for none.

        None where nothing is known of the values that would do: no range, or a metric that is no
        ratio of sums; and where no group has too few rows for tests that know no range.
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
            mine = place == i
            scored = None
            if events is not None:
                label, score = events
                scored = (np.ascontiguousarray(score[mine]), int(label[mine].sum()))
            samples.append(GroupSample(values=values.taken(mine), events=scored))
        return cls(samples=tuple(samples), bounds=bounds, always=always, reaches=reaches)

    @property
    def method(self) -> str:
        """The name of the method in results."""
        by_scores = all(sample.events is not None for sample in self.samples)
        return "poisson-binomial" if by_scores else "gaffke"

    def applies(self, groups: Sequence[int]) -> bool:
        """Return whether some of the groups has too few units for tests that know no range."""
        return self.always or any(self._is_short(i) for i in groups)

    @cached_property
    def _size(self) -> float:
        """The usual size of a cluster."""
        return max(ratio.size for ratio in self.clusters)

    def _is_short(self, group: int) -> bool:
        few = not self.clusters or has_few(self.clusters[group], self._size)
        return few and self.reaches[group] > LONGEST_REACH

    def note(self, name: str, groups: Sequence[str]) -> str:
        """Say what a reader of a test or interval by these limits must know."""
        if self.clusters:
            return self._note_of_clusters(name, groups)
        if self.method == "poisson-binomial":
            return SENTENCES["few_events"].format(metric=name)
        low, high = self.bounds
        why = "rows have weights" if self.always else "few rows of a group are near one end of it"
        return SENTENCES["known_range"].format(
            metric=name, low=f"{low:.4g}", high=f"{high:.4g}", reason=why
        )

    def _note_of_clusters(self, name: str, groups: Sequence[str]) -> str:
        short = [
            f"{group} ({_required(self.clusters[i], self._size)})"
            for i, group in enumerate(groups)
            if self._is_short(i)
        ]
        low, high = self.bounds
        return SENTENCES["few_clusters"].format(
            groups=", ".join(short[:5]), metric=name, low=f"{low:.4g}", high=f"{high:.4g}"
        )

    def drawn(self, draws: _native.Draws, call: _native.Call) -> MeldedLimits:
        """Draw limits of all groups, independent of each other."""
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
    """Return Gaffke limits whose unit at the end of the range is so many times as large.

    With s = sum e A, t = sum e D and c = e_0 D_0 they are U = (s + c b) / (t + c) and
    L = (s + c a) / (t + c). The share q = c / (t + c) = (U - L) / (b - a) and the mean
    m = s / t = (L - q a) / (1 - q) are known of them, and f c has the share f q / (1 - q + f q).
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
    """Say how many clusters a group has, and how many would be enough."""
    if not ratio.deviating > 0:
        return f"{ratio.n:,} clusters, all with the same value"
    wanted = rounded_up(required_clusters(ratio, size))
    return f"{ratio.n:,} clusters; about {wanted:,} such clusters are needed"


def required_clusters(ratio: ClusteredRatio, size: float) -> float:
    """Return how many clusters that vary as those of a group are not too few."""
    each = ratio.deviating / ratio.n
    wanted = min(FEWEST_DEVIATING / each, max(FEWEST_OF_MANY / each, MANY_CLUSTERS))
    return max(wanted, ratio.n * FEWEST_LARGE * size / ratio.total)


@dataclass(frozen=True, eq=False)
class MeldedLimits:
    """Limits of groups at random levels, and what they say of pairs."""

    limits: tuple[_native.Limits, ...]
    bounds: tuple[float, float]

    def pvalue(self, pair: Pair, alternative: str = "two-sided") -> float:
        """Return the p-value of equality."""
        return melding.melded_pvalue(*self._of(pair), alternative)

    def pvalue_at(self, pair: Pair, margin: float, alternative: str) -> float:
        """Return the one-sided p-value of a difference: "greater" or "less" than the margin."""
        test = melding.pvalue_above if alternative == "greater" else melding.pvalue_below
        return test(*self._of(pair), margin)

    def ratio_pvalue_at(self, pair: Pair, ratio: float, alternative: str) -> float:
        """Return the one-sided p-value of a ratio; 1 where values can lie below 0."""
        if self.bounds[0] < 0:
            return 1.0
        above = alternative == "greater"
        test = melding.ratio_pvalue_above if above else melding.ratio_pvalue_below
        return test(*self._of(pair), ratio)

    def interval(self, pair: Pair, level: float) -> Interval:
        """Return the interval of a difference."""
        width = self.bounds[1] - self.bounds[0]
        return _within(melding.interval_of_difference(*self._of(pair), level), -width, width)

    def ratio_interval(self, pair: Pair, level: float) -> Interval:
        """Return the interval of a ratio; NaN where values can lie below 0."""
        if self.bounds[0] < 0:
            return NOTHING
        return _within(melding.interval_of_ratio(*self._of(pair), level), 0.0, math.inf)

    def value_interval(self, group: int, level: float) -> Interval:
        """Return the interval of the value of a group."""
        return _within(melding.interval_of_value(self.limits[group], level), *self.bounds)

    def _of(self, pair: Pair) -> tuple[_native.Limits, _native.Limits]:
        first, second = pair
        return self.limits[first], self.limits[second]


def _within(interval: Interval, low: float, high: float) -> Interval:
    return max(interval[0], low), min(interval[1], high)
