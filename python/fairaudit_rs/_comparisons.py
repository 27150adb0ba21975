"""Comparing groups: what a permutation test needs of counts or rows, and one test of them.

A `Problem` knows the metric of each group, can make the native test of any of the groups, and
gives estimates with intervals. `CountProblem` holds counts by stratum, group and class,
`RowProblem` holds rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from .cells import Cells, GroupKey
from .errors import ArgumentError, NotMeasurableError
from .metrics import Metric
from .results import group_name
from .tables import Rows

#: A first series of replicates, of all groups together, that no pair uses.
OMNIBUS_SERIES = 0
CALIBRATION_BINS = 10
_COUNT_NAMES = ("tp", "fp", "fn", "tn")


@dataclass
class Progress:
    """Replicates done over all tests of a call."""

    callback: Callable[[int, int], object] | None
    n_resamples: int
    total: int = 0
    done: int = 0

    def tick(self) -> Callable[[int], object] | None:
        """Return the callback of the next test."""
        callback = self.callback
        if callback is None:
            return None
        start = self.done
        return lambda units: callback(min(start + units, self.total), self.total)

    def finish(self, drawn: bool) -> None:
        """Note that a test is done; an exact one never ticked."""
        self.done += self.n_resamples
        if self.callback is not None and not drawn:
            self.callback(self.done, self.total)


@dataclass(frozen=True)
class Plan:
    """How tests are run."""

    engine: str
    alternative: str
    n_resamples: int
    seed: int
    n_threads: int | None
    level: float
    progress: Progress


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Gap:
    """A difference of two groups."""

    estimate: float
    standard_error: float


@dataclass
class Problem(ABC):
    """The groups of a test, in the order in which they are compared."""

    metric: Metric
    keys: list[GroupKey]
    n_rows: list[int]
    scaling: str
    #: (value, variance, numerator, denominator) of each group.
    evaluations: list[tuple[float, float, float, float]] = field(init=False)

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

    def test(self, positions: Sequence[int], plan: Plan, series: int) -> Outcome:
        """Test the groups at the given positions.

        Only the test of all groups keeps its null distribution: there can be many pairs.
        """
        outcome = self._test(positions, plan, series)
        if len(positions) == len(self.keys):
            return outcome
        return replace(outcome, null=outcome.null[:0], probabilities=None)

    def _test(self, positions: Sequence[int], plan: Plan, series: int) -> Outcome:
        native = self.native(positions)
        statistic = native.observed()
        alternative = plan.alternative if len(positions) == 2 else "two-sided"
        if plan.engine in ("auto", "exact"):
            law = self.exact(native, alternative)
            if law is not None:
                pvalue, undefined, statistics, probabilities = law
                plan.progress.finish(drawn=False)
                return Outcome(
                    statistic, pvalue, (pvalue, pvalue), "exact", 0, 0, undefined, statistics,
                    probabilities,
                )  # fmt: skip
        if plan.engine not in ("auto", self.drawing_engine):
            reason = (
                "is too large to be summed" if plan.engine == "exact" else "is drawn another way"
            )
            raise ArgumentError(
                f"engine is {plan.engine!r}, but the permutation law of {self.metric.name} in "
                f"these data {reason}; accepted: 'auto', {self.drawing_engine!r}"
            )
        null = native.null_distribution(
            plan.n_resamples, plan.seed, series, plan.n_threads, plan.progress.tick()
        )
        plan.progress.finish(drawn=True)
        extreme, undefined = _native.count_extreme(
            null, statistic, alternative, native.needs_centring
        )
        return Outcome(
            statistic,
            (1 + extreme) / (1 + plan.n_resamples),
            _native.clopper_pearson(extreme, plan.n_resamples, 0.99),
            self.drawing_engine,
            plan.n_resamples,
            undefined,
            undefined / plan.n_resamples,
            null,
            None,
        )

    def max_t(self, pairs: list[tuple[int, int]], plan: Plan) -> list[float]:
        """Adjust two-sided p-values of all pairs by the joint replicates of all groups."""
        native = self.native(range(len(self.keys)))
        adjusted: list[float] = native.max_t(
            pairs, plan.n_resamples, plan.seed, OMNIBUS_SERIES, plan.n_threads,
            plan.progress.tick(),
        )  # fmt: skip
        plan.progress.finish(drawn=True)
        return adjusted

    def gap(self, pair: tuple[int, int]) -> Gap:
        """Return the difference of two groups, less what strata of the user's explain."""
        first, second = (self.evaluations[i] for i in pair)
        estimate = first[0] - second[0]
        if self.stratified:
            expected = self.native(pair).expected()
            estimate -= expected[0] - expected[1]
        return Gap(estimate, math.sqrt(first[1] + second[1]))

    def interval(self, pair: tuple[int, int], level: float) -> tuple[float, float]:
        """Return the two-sided interval of a difference; NaN where it cannot be measured."""
        z = _native.normal_quantile(0.5 + level / 2)
        if self.metric.is_proportion and not self.stratified:
            return _newcombe(self.evaluations[pair[0]], self.evaluations[pair[1]], z)
        gap = self.gap(pair)
        if self.metric.family == "calibration" or not gap.standard_error > 0:
            return math.nan, math.nan
        low, high = gap.estimate - z * gap.standard_error, gap.estimate + z * gap.standard_error
        return (max(low, -1.0), min(high, 1.0)) if self.metric.is_proportion else (low, high)

    def one_sided_interval(
        self, pair: tuple[int, int], alternative: str, level: float
    ) -> tuple[float, float]:
        """Return the interval that belongs to an alternative."""
        if alternative == "two-sided":
            return self.interval(pair, level)
        low, high = self.interval(pair, 2 * level - 1)
        bound = 1.0 if self.metric.is_proportion else math.inf
        return (low, bound) if alternative == "greater" else (-bound, high)

    def largest_gap(self, level: float) -> tuple[float, tuple[float, float]]:
        """Return the largest gap and its interval from simultaneous intervals of all pairs."""
        pairs = list(combinations(range(len(self.keys)), 2))
        each = 1 - (1 - level) / len(pairs)
        low, high, largest = 0.0, 0.0, 0.0
        for pair in pairs:
            from_, to = self.interval(pair, each)
            if math.isnan(from_):
                low = high = math.nan
            low, high = max(low, from_, -to), max(high, to, -from_)
            largest = max(largest, abs(self.gap(pair).estimate))
        return largest, (low, high)

    def certain_groups(self) -> list[str]:
        """Return the groups whose metric shows no variation at all."""
        return [
            group_name(label(key))
            for key, evaluation in zip(self.keys, self.evaluations, strict=True)
            if evaluation[1] == 0
        ]

    def _check_measurable(self, rows_of: Callable[[int], str | None]) -> None:
        """Raise when the metric has no value in some group, or cannot be studentized."""
        for i, key in enumerate(self.keys):
            name = group_name(label(key))
            value, variance = self.evaluations[i][:2]
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


@dataclass
class CountProblem(Problem):
    """Counts by stratum, group and class."""

    counts: NDArray[np.uint64]
    count_metric: _native.CountMetric
    conditioning: str | list[int] | None
    strata_names: tuple[str, ...]

    def __post_init__(self) -> None:
        self.evaluations = []
        totals = self.counts.sum(axis=0)
        fraction = self.count_metric.fraction
        for row in totals:
            value, variance = self.count_metric.evaluate(row.astype(float).tolist())
            above, below = (
                (float(np.dot(part, row)) for part in fraction) if fraction else (math.nan,) * 2
            )
            self.evaluations.append((value, variance, above, below))

        def rows_of(i: int) -> str:
            rows = self.metric.denominator_rows
            if rows is not None:
                return f"0 {rows}"
            if self.n_rows[i] < 2 or not self.metric.is_counts:
                return f"{self.n_rows[i]} row" + ("" if self.n_rows[i] == 1 else "s")
            return ", ".join(f"{n}={int(c)}" for n, c in zip(_COUNT_NAMES, totals[i], strict=True))

        self._check_measurable(rows_of)

    @classmethod
    def make(
        cls, cells: Cells, metric: Metric, keys: list[GroupKey], scaling: str, conditional: bool
    ) -> CountProblem:
        """Collapse cells to the classes of a metric."""
        conditioning: str | list[int] | None = None
        if metric.is_counts:
            native, classes, n_classes = metric.native, cells.confusion_classes(), 4
            if conditional and metric.conditions_on == "denominator":
                conditioning = "denominator"
            elif conditional and metric.conditions_on is not None:
                conditioning = [0, 1, 0, 1] if metric.conditions_on == "label" else [0, 0, 1, 1]
        else:
            native, classes, n_classes = _calibration(cells)
            if conditional:
                # Rows of one score bin exchange their groups.
                conditioning = [k // 2 for k in range(n_classes)]
        counts = cells.class_counts(keys, classes, n_classes)
        names = cells.strata_names
        if not conditional:
            # All rows exchange their groups, whatever strata the cells hold.
            counts, names = counts.sum(axis=0, keepdims=True), ()
        sizes = cells.group_sizes()
        return cls(
            metric, keys, [sizes[key] for key in keys], scaling, counts, native, conditioning, names
        )

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "cells"

    @property
    def stratified(self) -> bool:
        """Whether gaps are taken within strata of the user's."""
        return len(self.counts) > 1

    def native(self, positions: Sequence[int]) -> _native.CountTest:
        """Return the native test of the groups at these positions."""
        table = np.ascontiguousarray(self.counts[:, list(positions), :]).ravel()
        return _native.CountTest(
            table, len(positions), self.count_metric, self.scaling, self.conditioning
        )

    def exact(self, native: Any, alternative: str) -> Any:
        """Return the exact law of a test, or None."""
        return native.exact(alternative)

    def gap(self, pair: tuple[int, int]) -> Gap:
        """Return the difference of two groups, within strata if there are any.

        Proportions: the Mantel-Haenszel difference with the variance of Greenland and Robins
        (1985). Others: the difference less what the strata alone explain.
        """
        if not (self.stratified and self.metric.is_proportion):
            return super().gap(pair)
        assert self.count_metric.fraction is not None
        hits, rows = (self.counts[:, list(pair), :] @ np.array(part)
                      for part in self.count_metric.fraction)  # fmt: skip
        rows, hits = (part[np.all(rows > 0, axis=1)] for part in (rows, hits))
        if not len(rows):
            return Gap(math.nan, math.nan)
        weight = rows[:, 0] * rows[:, 1] / rows.sum(axis=1)
        share = hits / rows
        spread = share * (1 - share) / rows
        total = weight.sum()
        return Gap(
            float(weight @ (share[:, 0] - share[:, 1]) / total),
            float(math.sqrt(weight**2 @ spread.sum(axis=1)) / total),
        )


@dataclass
class RowProblem(Problem):
    """Rows: ranks of scores, or ratios of sums."""

    rows: Rows
    position: NDArray[np.int64]

    def __post_init__(self) -> None:
        self._values = _row_values(self.metric, self.rows)
        self.evaluations = self.native(range(len(self.keys))).evaluations()

        def rows_of(i: int) -> str | None:
            if self.metric.family == "ratio":
                return f"{self.n_rows[i]} rows, or a denominator of 0"
            label_of = self.rows.columns["y_true"][self.position[self.rows.group] == i]
            n_positive = int(label_of.sum())
            n_negative = len(label_of) - n_positive
            few, kind = min((n_positive, "positive"), (n_negative, "negative"))
            return f"{few} row{'' if few == 1 else 's'} with a {kind} label"

        self._check_measurable(rows_of)

    @classmethod
    def make(
        cls, rows: Rows, metric: Metric, keys: list[GroupKey], scaling: str, conditional: bool
    ) -> RowProblem:
        """Take the rows of some groups."""
        if conditional and metric.conditions_on == "label":
            # Rows of one label exchange their groups, within strata of the user's.
            stratum = rows.columns["y_true"].astype(np.uint32)
            if rows.stratum is not None:
                stratum += 2 * rows.stratum
            rows = replace(rows, stratum=stratum)
        position = np.full(len(rows.cells.groups), -1, dtype=np.int64)
        place = {key: i for i, key in enumerate(rows.cells.groups)}
        for i, key in enumerate(keys):
            position[place[key]] = i
        sizes = rows.cells.group_sizes()
        return cls(metric, keys, [sizes[key] for key in keys], scaling, rows, position)

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "stream"

    @property
    def stratified(self) -> bool:
        """Whether gaps are taken within strata of the user's."""
        return bool(self.rows.cells.strata_names)

    def native(self, positions: Sequence[int]) -> _native.RowTest:
        """Return the native test of the groups at these positions."""
        wanted = np.full(len(self.keys) + 1, -1, dtype=np.int64)
        wanted[list(positions)] = np.arange(len(positions))
        group = wanted[self.position][self.rows.group]
        keep = group >= 0
        everything = bool(keep.all())

        def chosen(values: NDArray[Any]) -> NDArray[Any]:
            return values if everything else values[keep]

        codes = chosen(group).astype(np.uint32)
        stratum = None if self.rows.stratum is None else chosen(self.rows.stratum)
        first, second = (None if v is None else chosen(v) for v in self._values)
        assert first is not None
        if self.metric.family == "ranks":
            assert second is not None
            return _native.RowTest.auc(
                first, second.astype(bool), codes, len(positions), self.scaling, stratum
            )
        return _native.RowTest.ratio(first, second, codes, len(positions), self.scaling, stratum)


def _row_values(
    metric: Metric, rows: Rows
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return (score, label) of ranks, or (numerator, denominator) of a ratio."""
    if metric.family == "ranks":
        return rows.columns["y_score"], rows.columns["y_true"]

    def value(argument: str) -> NDArray[np.float64] | None:
        source = getattr(metric, argument)
        if source is None:
            return None
        computed = rows.columns[source] if isinstance(source, str) else source(rows.columns)
        array = np.ascontiguousarray(computed, dtype=np.float64)
        if array.shape != rows.group.shape or not np.all(np.isfinite(array)):
            raise ArgumentError(
                f"{argument} of {metric.name} gives an array of shape {array.shape} with "
                f"{int((~np.isfinite(array)).sum())} values that are not finite; accepted: one "
                f"finite number for each of the {len(rows.group)} rows"
            )
        return array

    numerator = value("numerator")
    assert numerator is not None
    return numerator, value("denominator")


def label(key: GroupKey) -> Any:
    """Return the group as the user names it: a label, or a tuple of several."""
    return key[0] if len(key) == 1 else key


def _calibration(cells: Cells) -> tuple[_native.CountMetric, NDArray[np.int64], int]:
    """Classes of (score bin, label); the score of a bin is the mean score of its rows."""
    edges = cells.score_edges
    assert edges is not None
    if edges[0] < 0 or edges[-1] > 1:
        raise ArgumentError(
            f"score_bins go from {edges[0]:g} to {edges[-1]:g}; calibration_error needs scores "
            "that are probabilities, from 0 to 1"
        )
    bins, place = np.unique(cells.score_bin, return_inverse=True)
    rows = np.zeros(len(bins))
    sums = np.zeros(len(bins), dtype=np.int64)
    np.add.at(rows, place, cells.count)
    np.add.at(sums, place, cells.score_sum)
    means = sums * _native.SCORE_UNIT / rows
    # The middle of a fine bin lies in the coarse bin that holds all of it.
    middles = (edges[bins] + edges[bins + 1]) / 2
    coarse = np.minimum((middles * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)
    native = _native.CountMetric.calibration(
        np.repeat(coarse, 2).tolist(), np.repeat(means, 2).tolist(), [0.0, 1.0] * len(bins)
    )
    return native, 2 * place.ravel() + cells.y_true, 2 * len(bins)


def _newcombe(
    first: tuple[float, float, float, float], second: tuple[float, float, float, float], z: float
) -> tuple[float, float]:
    """Newcombe's hybrid score interval of a difference of proportions (1998, method 10)."""
    gap = first[0] - second[0]
    low_1, high_1 = _wilson(first[0], first[3], z)
    low_2, high_2 = _wilson(second[0], second[3], z)
    return (
        max(gap - math.hypot(first[0] - low_1, high_2 - second[0]), -1.0),
        min(gap + math.hypot(high_1 - first[0], second[0] - low_2), 1.0),
    )


def _wilson(p: float, n: float, z: float) -> tuple[float, float]:
    """Return the score interval of a proportion p of n rows."""
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(center - half, 0.0), min(center + half, 1.0)
