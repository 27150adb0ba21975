"""Tests how the gap between two groups changes from one model to another, on the same rows.

A `PairedProblem` has the metric of every group with both models. For two groups it tests the
difference D and the sum S of the two gaps: by a score test for rates over the same rows, by the
normal distribution for other count metrics (`paired_cells`) and callables, and by permutations for
the AUC and row values (`paired_rows`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..data.equality import EqualByValue
from ..data.groups import attribute_name, group_label, group_name
from ..data.labels import GroupKey
from ..inference.absolute_gaps import SizeChange, size_change
from ..inference.intervals import Pair, clip_interval
from ..inference.paired_differences import ChangeCounts, PairedDifference, by_score
from ..inference.proportions import wilson_interval
from ..inference.pvalues import two_sided_normal_quantile
from ..metrics.metric import Metric
from ..report.notes import Note
from .excluded_groups import refuse_groups
from .model_comparison import OverallChange

Floats = NDArray[np.float64]
#: Cells by label, first and second decision, and their positions in tp, fp, fn, tn by model.
_CELLS = np.arange(8)
OF_FIRST, OF_SECOND = (2 * (1 - _CELLS // step % 2) + 1 - _CELLS // 4 for step in (2, 1))


@dataclass(frozen=True, kw_only=True)
class PairedGap:
    """The gap between two groups with each of two models."""

    gaps: tuple[float, float]
    #: The second gap minus the first.
    change: PairedDifference
    size: SizeChange


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedProblem(EqualByValue, ABC):
    """A metric of two models in some groups, in the order of the comparison."""

    metric: Metric
    keys: tuple[GroupKey, ...]
    n_rows: tuple[int, ...]
    #: Names of the attributes that make the groups, for people.
    features: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        undefined = np.flatnonzero(np.isnan(self.values).any(axis=0)).tolist()
        why = {i: f"{self.shortage(i)}; {self.metric.name} is not defined there" for i in undefined}
        refuse_groups(why, self.keys, self.names)

    @property
    def names(self) -> list[str]:
        """The names of the groups, for people."""
        return [group_name(group_label(key), attribute_name(self.features)) for key in self.keys]

    @property
    @abstractmethod
    def values(self) -> Floats:
        """The metric by model and group."""

    @property
    def bound(self) -> float:
        """The largest possible gap."""
        low, high = self.metric.range
        return high - low

    @property
    def n_resamples(self) -> int:
        """Replicates; 0 where there are none."""
        return 0

    @property
    @abstractmethod
    def method(self) -> str:
        """The name of the test of changes."""

    @property
    def engine(self) -> str:
        """The engine that draws replicates."""
        return "formula"

    @abstractmethod
    def shortage(self, position: int) -> str:
        """Return what a group without a value lacks."""

    def n_used(self, position: int) -> int:
        """Return the rows in the denominator of a rate over the same rows; all rows otherwise."""
        return self.n_rows[position]

    def n_changed(self, position: int) -> int | None:
        """Return how many of these rows the models decide differently; None for scores."""
        del position
        return None

    @abstractmethod
    def change(self, position: int, level: float) -> PairedDifference:
        """Return the second value of a group minus the first."""

    @abstractmethod
    def tested(self, pair: Pair, level: float) -> tuple[PairedDifference, PairedDifference, float]:
        """Return the difference and the sum of two gaps, and their correlation."""

    @abstractmethod
    def overall(self, level: float) -> OverallChange:
        """Return the accuracy with both models over the compared rows, or its substitute."""

    def notes(self) -> Iterator[Note]:
        """Yield the remarks on the numbers."""
        same = [name for i, name in enumerate(self.names) if self.n_changed(i) == 0]
        if same:
            yield Note(
                "no-changed-decisions",
                f"both models decide all eligible rows alike in {', '.join(same[:5])}: what is "
                "known of a change there comes from the number of rows alone",
                tuple(same),
            )

    def compare(self, pair: Pair, level: float) -> PairedGap:
        """Return the gap of two groups with each model, and how it changes."""
        change, total, correlation = self.tested(pair, level)
        size = size_change(change, total, correlation)
        first, second = (float(row[pair[0]] - row[pair[1]]) for row in self.values)
        return PairedGap(
            gaps=(first, second),
            change=replace(change, interval=clip_interval(change.interval, 2 * self.bound)),
            size=replace(size, interval=clip_interval(size.interval, self.bound)),
        )


# -- counts -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedCountProblem(PairedProblem):
    """A metric of counts: rows by group, label, first and second decision."""

    counts: NDArray[np.int64]
    #: Whether there are labels; otherwise all rows have the label 0.
    has_labels: bool

    def overall(self, level: float) -> OverallChange:
        """Return the accuracy with both models; without labels, their agreement."""
        (rejected, lost), (gained, accepted) = self.counts.sum(axis=(0, 1)).tolist()
        n_rows = rejected + lost + gained + accepted
        if not self.has_labels:
            share = (rejected + accepted) / n_rows
            return OverallChange(
                measure="agreement",
                of_first=math.nan,
                of_second=math.nan,
                estimate=share,
                confidence_interval=wilson_interval(
                    share, n_rows, two_sided_normal_quantile(level)
                ),
                n_rows=n_rows,
            )
        # Rows that are right with both models, with the second only, and with the first only.
        negative, positive = self.counts.sum(axis=0)
        both = int(negative[0, 0] + positive[1, 1])
        second = int(negative[1, 0] + positive[0, 1])
        first = int(negative[0, 1] + positive[1, 0])
        change = by_score(ChangeCounts(second, first, n_rows), None, level)
        return OverallChange(
            measure="accuracy",
            of_first=(both + first) / n_rows,
            of_second=(both + second) / n_rows,
            estimate=change.estimate,
            confidence_interval=change.interval,
            n_rows=n_rows,
        )


def has_fixed_rows(metric: Metric) -> bool:
    """Return whether a metric is a rate whose denominator does not depend on decisions."""
    fraction = metric.native.fraction
    if not metric.is_proportion or fraction is None:
        return False
    tp, fp, fn, tn = fraction[1]
    return tp == fn and fp == tn


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedRateProblem(PairedCountProblem):
    """A rate over the same rows with both models: TPR, FPR, selection rate, accuracy."""

    @cached_property
    def tables(self) -> NDArray[np.int64]:
        """Rows of the denominator by group, first and second model (0: not in the numerator)."""
        fraction = self.metric.native.fraction
        assert fraction is not None
        above, below = (np.array(part) > 0 for part in fraction)
        table = np.zeros((len(self.keys), 2, 2), dtype=np.int64)
        flat = self.counts.reshape(len(self.keys), 8)
        for cell in np.flatnonzero(below[OF_FIRST]).tolist():
            table[:, int(above[OF_FIRST[cell]]), int(above[OF_SECOND[cell]])] += flat[:, cell]
        return table

    @cached_property
    def values(self) -> Floats:
        """The metric by model and group."""
        rows = self.tables.sum(axis=(1, 2))
        hits = np.stack([self.tables[:, 1, :].sum(axis=1), self.tables[:, :, 1].sum(axis=1)])
        shares: Floats = np.full(hits.shape, math.nan)
        np.divide(hits, rows, out=shares, where=rows > 0)
        return shares

    @property
    def method(self) -> str:
        """The name of the test of changes."""
        return "score"

    def shortage(self, position: int) -> str:
        """Return what a group without a value lacks."""
        del position
        return f"0 {self.metric.denominator_rows or 'eligible rows'}"

    def n_used(self, position: int) -> int:
        """Return the rows in the denominator."""
        return int(self.tables[position].sum())

    def n_changed(self, position: int) -> int:
        """Return how many of these rows the models decide differently."""
        return int(self.tables[position, 0, 1] + self.tables[position, 1, 0])

    def _changes(self, position: int) -> tuple[ChangeCounts, ChangeCounts]:
        """Return the rows that go up or down, and those that are 1 or 0 with both models."""
        (neither, gained), (lost, both) = self.tables[position].tolist()
        n = neither + gained + lost + both
        return ChangeCounts(gained, lost, n), ChangeCounts(both, neither, n)

    def change(self, position: int, level: float) -> PairedDifference:
        """Return the second value of a group minus the first."""
        return by_score(self._changes(position)[0], None, level)

    def tested(self, pair: Pair, level: float) -> tuple[PairedDifference, PairedDifference, float]:
        """Return the difference and the sum of two gaps, and their correlation."""
        (change_1, total_1), (change_2, total_2) = map(self._changes, pair)
        change, total = by_score(change_1, change_2, level), by_score(total_1, total_2, level)
        used = np.array([self.n_used(i) for i in pair])
        spread = self.values[:, list(pair)] * (1 - self.values[:, list(pair)]) / used
        errors = change.standard_error * total.standard_error
        return change, total, correlation_of(float(np.diff(spread.sum(axis=1))[0]), errors)


def correlation_of(covariance: float, errors: float) -> float:
    """Return a correlation; the worst case, -1, if something does not vary."""
    return min(max(covariance / errors, -1.0), 1.0) if errors > 0 else -1.0
