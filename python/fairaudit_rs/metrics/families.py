"""The families of metrics: the data each reads, the sums it is computed from, and its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.cells import Cells
from ..data.integer_codes import split_ranges
from ..errors import ArgumentError
from ..report.notes import Note
from .family import MetricFamily, RowClasses, confusion_classes
from .proportion_sums import Proportion, sum_of_proportions
from .row_values import (
    Columns,
    CountValues,
    Floats,
    MeanOfParts,
    RankValues,
    RatioValues,
    RowValues,
    as_floats,
    check_bounds,
    check_size,
    few_labels,
    is_of_one_row,
    rank_influence,
    row_value,
    value_of,
)

CALIBRATION_BINS = 10
_COUNT_NAMES = ("tp", "fp", "fn", "tn")
_CELLS = ("true positive", "false positive", "false negative", "true negative")
#: The label, or the decision, of each count: rows that share it can exchange their groups.
_BY_LABEL = (0, 1, 0, 1)
_BY_DECISION = (0, 0, 1, 1)
#: Descriptions of the rows in a set of confusion counts.
_ROWS = {
    (1, 1, 1, 1): "rows",
    (1, 0, 1, 0): "rows with a positive label",
    (0, 1, 0, 1): "rows with a negative label",
    (1, 1, 0, 0): "rows with a positive decision",
    (0, 0, 1, 1): "rows with a negative decision",
    (1, 1, 1, 0): "rows with a positive label or decision",
}


class _CountFamily(MetricFamily):
    """Metrics of the counts tp, fp, fn, tn."""

    reads = "classes"

    def classes(self, cells: Cells) -> tuple[RowClasses, NDArray[np.int64]]:
        conditions_on = self.metric.conditions_on
        conditioning: tuple[int, ...] | Literal["denominator"] | None = None
        if conditions_on == "denominator":
            fraction = self.native.fraction
            # For ratios that are not proportions, mark the classes in the denominator.
            below = None if self.is_proportion or fraction is None else fraction[1]
            conditioning = (
                "denominator" if below is None else tuple(int(part > 0) for part in below)
            )
        elif conditions_on is not None:
            conditioning = _BY_LABEL if conditions_on == "label" else _BY_DECISION
        classes = RowClasses(n=4, positive=(True, False, True, False), conditioning=conditioning)
        return classes, cells.confusion_classes()


class _CountFormula(_CountFamily):
    """One formula over tp, fp, fn, tn."""

    is_formula = True
    binary_labels = True
    takes_weights = True
    has_influence = True

    @property
    def is_proportion(self) -> bool:
        return self.native.is_proportion

    @cached_property
    def sum_of(self) -> tuple[Proportion, ...]:
        return sum_of_proportions(self.native)

    def smallest_cell(self, cells: Sequence[int]) -> tuple[int, str]:
        # Counts that the formula does not use, such as tn for F1, are ignored.
        matters = self.native.gradient([7.0, 3.0, 5.0, 11.0])
        if not matters or not any(matters):
            matters = [1.0] * 4
        n, name = min((n, i) for n, i, by in zip(cells, range(4), matters, strict=True) if by)
        return n, _CELLS[name] + ("" if n == 1 else "s")

    @property
    def compares_labels(self) -> bool:
        return not self.is_proportion

    @property
    def needs(self) -> tuple[str, ...]:
        fraction = self.native.fraction
        if fraction is None:
            return ("y_true", "y_pred")
        needs = []
        # tp and fn differ by the decision, tp and fp by the label; likewise tn.
        if any(c[0] != c[1] or c[2] != c[3] for c in fraction):
            needs.append("y_true")
        if any(c[0] != c[2] or c[1] != c[3] for c in fraction):
            needs.append("y_pred")
        return tuple(needs)

    @property
    def denominator_rows(self) -> str | None:
        fraction = self.native.fraction
        if fraction is None:
            return None
        a, b, c, d = (int(value != 0) for value in fraction[1])
        return _ROWS.get((a, b, c, d))

    @property
    def variance(self) -> str:
        return "pooled" if self.is_proportion else "unpooled"

    def bounds(self, columns: Columns) -> tuple[float, float] | None:
        del columns
        return (0.0, 1.0) if self.is_proportion else None

    def class_influence(self, classes: RowClasses, totals: Floats) -> Floats:
        del classes
        gradient = self.native.gradient(totals.tolist())
        assert gradient is not None
        return np.asarray(np.nan_to_num(np.array(gradient)))

    def shortage(self, totals: NDArray[np.uint64], n_rows: int) -> str:
        rows, fraction = self.denominator_rows, self.native.fraction
        if rows is not None and fraction is not None and not totals @ np.array(fraction[1]):
            return f"0 {rows}"
        if n_rows < 2:
            return super().shortage(totals, n_rows)
        return ", ".join(f"{n}={int(c)}" for n, c in zip(_COUNT_NAMES, totals, strict=True))

    def row_values(self, columns: Columns, n_rows: int, weight: Floats | None) -> RowValues:
        fraction = self.native.fraction
        if fraction is None:
            return self.stratified_values(columns, n_rows, weight)
        ones = np.ones(n_rows) if weight is None else weight
        classes = confusion_classes(columns, n_rows)
        above, below = (np.array(part)[classes] * ones for part in fraction)
        return RatioValues(above, below)

    def stratified_values(self, columns: Columns, n_rows: int, weight: Floats | None) -> RowValues:
        counts = np.zeros((n_rows, 4))
        classes = confusion_classes(columns, n_rows)
        counts[np.arange(n_rows), classes] = 1.0 if weight is None else weight
        return CountValues(counts, self.native)

    def variance_of_units(self, stratified: bool) -> str:
        is_ratio = self.is_proportion or (self.native.fraction is not None and not stratified)
        return "corrected" if is_ratio else "unpooled"

    def influence(self, rows: Columns, weight: Floats | None) -> Floats:
        n = len(next(iter(rows.values())))
        weights = np.ones(n) if weight is None else weight
        classes = confusion_classes(rows, n)
        totals = np.bincount(classes, weights, 4)
        by_class = np.nan_to_num(np.array(self.native.gradient(totals.tolist()))) * totals.sum()
        return np.asarray(by_class[classes])


class _JointFamily(_CountFamily):
    """Several count metrics that are tested together."""

    has_power = False
    why_no_intervals = "has no one value; ask for its components"

    @cached_property
    def native(self) -> _native.CountMetric:
        return _native.CountMetric.joint([part.native for part in self.metric.components])

    @property
    def needs(self) -> tuple[str, ...]:
        needed = {name for part in self.metric.components for name in part.needs}
        return tuple(name for name in ("y_true", "y_pred") if name in needed)

    @property
    def variance(self) -> str:
        return "pooled" if self.is_separate else "unpooled"

    @property
    def is_separate(self) -> bool:
        parts = self.metric.components
        if not parts or not all(part.is_proportion for part in parts):
            return False
        denominators: list[Sequence[float]] = [
            (part.native.fraction or ([], []))[1] for part in parts
        ]
        return all(sum(rows) <= 1 for rows in zip(*denominators, strict=True))


class _CalibrationFamily(MetricFamily):
    """The expected calibration error over bins of the score."""

    reads = "classes"
    takes_bins = True
    has_power = False
    why_no_intervals = "is biased upwards in small groups, so no interval of its gap covers"
    has_gap_interval = False
    caveat = Note(
        "biased-in-small-groups",
        "calibration_error is biased upwards in small groups, so its gap has no interval; the "
        "test asks whether labels follow the scores in the same way",
    )

    def classes(self, cells: Cells) -> tuple[RowClasses, NDArray[np.int64]]:
        """Return classes of (score bin, label); the score of a bin is the mean of its rows."""
        edges = cells.score_edges
        assert edges is not None
        if edges[0] < 0 or edges[-1] > 1:
            raise ArgumentError(
                f"score_bins go from {edges[0]:g} to {edges[-1]:g}, but {self.metric.name} needs "
                "probabilities. Pass scores and bins from 0 to 1.",
                argument="score_bins",
            )
        bins, bin_of_cell = np.unique(cells.score_bin, return_inverse=True)
        rows = np.zeros(len(bins))
        sums = np.zeros(len(bins), dtype=np.int64)
        np.add.at(rows, bin_of_cell, cells.count)
        np.add.at(sums, bin_of_cell, cells.score_sum)
        means = sums * _native.SCORE_UNIT / rows
        # Each fine bin lies in a single coarse bin, that of its middle.
        middles = (edges[bins] + edges[bins + 1]) / 2
        coarse = np.minimum((middles * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)
        classes = RowClasses(
            n=2 * len(bins),
            positive=(False, True) * len(bins),
            # Groups are exchanged within each score bin.
            conditioning=tuple(np.repeat(np.arange(len(bins)), 2).tolist()),
            details=(tuple(np.repeat(coarse, 2).tolist()), tuple(np.repeat(means, 2).tolist())),
        )
        return classes, 2 * bin_of_cell.ravel() + cells.y_true

    def native_of(self, classes: RowClasses) -> _native.CountMetric:
        bins, means = classes.details
        return _native.CountMetric.calibration(bins, means, [0.0, 1.0] * (classes.n // 2))


class _RankFamily(MetricFamily):
    """The area under the ROC curve."""

    reads = "scores"
    binary_labels = True
    takes_bins = True
    takes_weights = True
    has_influence = True

    @property
    def compares_labels(self) -> bool:
        return True

    @property
    def range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def classes(self, cells: Cells) -> tuple[RowClasses, NDArray[np.int64]]:
        """Return classes of (distinct score or score bin in ascending order, label)."""
        levels, level_of_cell = np.unique(cells.score_bin, return_inverse=True)
        classes = RowClasses(
            n=2 * len(levels),
            positive=(False, True) * len(levels),
            conditioning=(0, 1) * len(levels),
        )
        return classes, 2 * level_of_cell.ravel() + cells.y_true

    def native_of(self, classes: RowClasses) -> _native.CountMetric:
        return _native.CountMetric.ranks(classes.n // 2)

    def class_influence(self, classes: RowClasses, totals: Floats) -> Floats:
        code = np.arange(classes.n)
        return rank_influence(code // 2, code % 2, totals)

    def shortage(self, totals: NDArray[np.uint64], n_rows: int) -> str:
        del n_rows
        return few_labels(int(totals[1::2].sum()), int(totals[::2].sum()))

    def row_values(self, columns: Columns, n_rows: int, weight: Floats | None) -> RowValues:
        del n_rows
        positive = columns["y_true"].astype(bool, copy=False)
        return RankValues(columns["y_score"], positive, weight)

    def influence(self, rows: Columns, weight: Floats | None) -> Floats:
        weights = np.ones(len(rows["y_score"])) if weight is None else weight
        psi = rank_influence(rows["y_score"], rows["y_true"], weight)
        return np.asarray(psi * weights.sum())


class _RatioFamily(MetricFamily):
    """A ratio of sums of row values, or a mean."""

    reads = "rows"
    takes_weights = True
    has_influence = True

    @property
    def variance(self) -> str:
        return "corrected"

    def variance_of_units(self, stratified: bool) -> str:
        del stratified
        return "corrected"

    def row_values(self, columns: Columns, n_rows: int, weight: Floats | None) -> RowValues:
        has_below = self.metric.denominator is not None
        source = self.metric.numerator
        if weight is None and not has_below and is_of_one_row(source) and not self._has_limits:
            needed = {name: columns[name] for name in self.metric.columns}
            return MeanOfParts(self.metric.name, source, needed)
        above = self._checked("numerator", columns, n_rows)
        below = self._checked("denominator", columns, n_rows) if has_below else None
        check_bounds(self.metric.name, self.metric.bounds, above, below)
        if weight is not None:
            above, below = weight * above, weight if below is None else weight * below
        return RatioValues(above, below)

    @property
    def _has_limits(self) -> bool:
        """Return whether the user gave the range of values, which is then enforced."""
        return self.metric.bounds is not None and not callable(self.metric.bounds)

    def bounds(self, columns: Columns) -> tuple[float, float] | None:
        bounds = self.metric.bounds
        if not callable(bounds):
            return None if bounds is None else (float(bounds[0]), float(bounds[1]))
        low, high = math.inf, -math.inf
        for part in split_ranges(len(next(iter(columns.values())))):
            limits = bounds(as_floats({name: column[part] for name, column in columns.items()}))
            if limits is None:
                return None
            low, high = min(low, float(limits[0])), max(high, float(limits[1]))
        return (low, high) if low < high else None

    def events(self, columns: Columns) -> tuple[Floats, Floats] | None:
        if not self.metric.is_residual or self.bounds(columns) is None:
            return None
        floats = as_floats(columns)
        return floats["y_true"], floats["y_score"]

    def _checked(self, argument: str, columns: Columns, n_rows: int) -> Floats:
        source = getattr(self.metric, argument)
        values = row_value(self.metric.name, argument, source, columns, n_rows)
        check_size(self.metric.name, argument, values)
        return values

    def influence(self, rows: Columns, weight: Floats | None) -> Floats:
        n = len(next(iter(rows.values())))
        weights = np.ones(n) if weight is None else weight
        above = value_of(self.metric.numerator, rows)
        has_below = self.metric.denominator is not None
        below = value_of(self.metric.denominator, rows) if has_below else np.ones(n)
        # Not a dot product, whose order of summation depends on the processor.
        size = float((weights * below).sum())
        value = float((weights * above).sum()) / size
        return np.asarray((above - value * below) * (float(weights.sum()) / size))


class _CorrelationFamily(MetricFamily):
    """The correlation of a row value with a continuous attribute."""

    reads = "attribute"
    why_no_intervals = "has no groups; permutation_test gives its interval"


class _FunctionFamily(MetricFamily):
    """Any function of the rows of a group."""

    reads = "function"
    scalings = ("auto", "bootstrap", "shared", "none")

    @property
    def variance(self) -> str:
        return "bootstrap"

    def variance_of_units(self, stratified: bool) -> str:
        del stratified
        return "bootstrap"


FAMILIES: dict[str, type[MetricFamily]] = {
    "counts": _CountFormula,
    "calibration": _CalibrationFamily,
    "ranks": _RankFamily,
    "ratio": _RatioFamily,
    "joint": _JointFamily,
    "correlation": _CorrelationFamily,
    "callable": _FunctionFamily,
}
