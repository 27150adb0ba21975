"""The interface of metric families: the columns they read, their sums and their limits.

A family is asked through `Metric.kind`; nobody asks for its name to decide what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.cells import Cells
from ..errors import ArgumentError
from .proportion_sums import Proportion
from .row_values import Columns, Floats, RowValues

#: What a metric looks at: counts of classes of rows, ranks of scores, values of rows, the rows of
#: a group as a whole, or a continuous attribute.
Reads = Literal["classes", "scores", "rows", "function", "attribute"]


@dataclass(frozen=True, kw_only=True)
class RowClasses:
    """The classes of rows that a metric counts."""

    n: int
    #: Of each class, whether its rows have a positive label.
    positive: tuple[bool, ...]
    #: Of each class, the part within which rows exchange their groups under ``strata="auto"``;
    #: "denominator" stands for the rows of the metric's denominator.
    conditioning: tuple[int, ...] | Literal["denominator"] | None
    #: What the native metric is made of besides its formula.
    details: tuple[Any, ...] = ()


class MetricFamily:
    """The family of a metric: how its metrics read data and are computed."""

    reads: ClassVar[Reads]
    #: Whether the metric is a formula over tp, fp, fn, tn.
    is_formula: ClassVar[bool] = False
    #: Ways of scaling the statistic.
    scalings: ClassVar[tuple[str, ...]] = ("auto", "pooled", "unpooled", "corrected", "none")
    #: Whether labels must be 0 and 1, or told apart by ``pos_label``.
    binary_labels: ClassVar[bool] = False
    #: Whether scores may come in bins.
    takes_bins: ClassVar[bool] = False
    #: Whether sums of weighted rows and of clusters have a variance.
    takes_weights: ClassVar[bool] = False
    #: Whether groups can be drawn with a gap, by the influence of a row.
    has_influence: ClassVar[bool] = False
    #: Whether the power of a test of one gap has a formula.
    has_power: ClassVar[bool] = True
    #: Why there is no value for each group that could have an interval.
    why_no_intervals: ClassVar[str | None] = None
    #: Whether the gap of two groups can have an interval.
    has_gap_interval: ClassVar[bool] = True
    #: What a reader of a test must know.
    caveat: ClassVar[str | None] = None

    def __init__(self, metric: Any) -> None:
        #: The `Metric`, which is made of its family and so not imported here.
        self.metric = metric

    # -- what the metric is ------------------------------------------------------------------

    @cached_property
    def native(self) -> _native.CountMetric:
        """The metric as the native module evaluates it."""
        return _native.CountMetric.formula(self.metric.formula)

    @property
    def is_proportion(self) -> bool:
        """Return whether the metric is the share of a set of rows that lie in a subset of it."""
        return False

    @property
    def is_separate(self) -> bool:
        """Return whether a joint criterion is one of proportions that share no rows."""
        return False

    @property
    def sum_of(self) -> tuple[Proportion, ...]:
        """The proportions of different rows of which the metric is a sum, if it is one."""
        return ()

    def own_condition(self, within_strata: bool) -> str | None:
        """Return what its own strata are made of, also crossed with strata of the user's.

        Other ratios than proportions have none there: the weights of strata are made of all rows.
        """
        of_ratio = self.metric.conditions_on == "denominator" and not self.is_proportion
        return None if within_strata and of_ratio else self.metric.conditions_on

    @property
    def compares_labels(self) -> bool:
        """Return whether few rows of one label are too few, whatever the number of rows."""
        return False

    def smallest_cell(self, cells: Sequence[int]) -> tuple[int, str]:
        """Return the smallest count of the confusion table that matters, and what it is of."""
        raise NotImplementedError

    @property
    def needs(self) -> tuple[str, ...]:
        """Which of y_true, y_pred and y_score the metric is computed from."""
        return tuple(self.metric.columns)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest value that the metric can have."""
        return (0.0, 1.0) if self.is_proportion else self.metric.limits

    @property
    def denominator_rows(self) -> str | None:
        """The name of the rows in the denominator, when they have a plain one."""
        return None

    @property
    def variance(self) -> str:
        """The variance that ``studentize="auto"`` takes."""
        return "unpooled"

    def variance_of_units(self, stratified: bool) -> str:
        """Return what ``studentize="auto"`` takes of weighted rows and of clusters.

        "corrected" goes with sums over rows alone: without strata of the user's any fraction is
        a ratio of sums.
        """
        del stratified
        return "unpooled"

    # -- what it adds up ---------------------------------------------------------------------

    def classes(self, cells: Cells) -> tuple[RowClasses, NDArray[np.int64]]:
        """Return the classes of rows that are counted, and that of every cell."""
        raise NotImplementedError

    def native_of(self, classes: RowClasses) -> _native.CountMetric:
        """Return the metric of counts of these classes."""
        del classes
        return self.native

    def class_influence(self, classes: RowClasses, totals: Floats) -> Floats:
        """Return how much a row of each class moves the metric."""
        raise NotImplementedError

    def shortage(self, totals: NDArray[np.uint64], n_rows: int) -> str:
        """Say what a group without a value has too little of."""
        del totals
        return f"{n_rows} row" + ("" if n_rows == 1 else "s")

    def row_values(self, columns: Columns, n_rows: int, weight: Floats | None) -> RowValues:
        """Return what is added up over rows, with the weights multiplied in."""
        raise NotImplementedError

    def stratified_values(self, columns: Columns, n_rows: int, weight: Floats | None) -> RowValues:
        """Return what is added up where groups count by their rows in each stratum."""
        return self.row_values(columns, n_rows, weight)

    def bounds(self, columns: Columns) -> tuple[float, float] | None:
        """Return the least and the greatest value of a row of a ratio; None if nobody knows."""
        del columns
        return None

    def events(self, columns: Columns) -> tuple[Floats, Floats] | None:
        """Return the labels of 0 and 1 and the scores of a mean residual of probabilities."""
        del columns
        return None

    def influence(self, rows: Columns, weight: Floats | None) -> Floats:
        """Return the influence of every row on the metric; see `Metric.influence`."""
        raise ArgumentError(
            f"{self.metric.name} is a metric of family {self.metric.family}, which has no "
            "influence of rows"
        )

    def in_denominator(self, columns: Columns, n_rows: int) -> NDArray[np.bool_]:
        """Return which rows are in the denominator of a fraction of counts."""
        fraction = self.native.fraction
        assert fraction is not None
        inside: NDArray[np.bool_] = (np.array(fraction[1]) > 0)[confusion_classes(columns, n_rows)]
        return inside


def confusion_classes(columns: Columns, n_rows: int) -> NDArray[np.uint8]:
    """Return 0 for tp, 1 for fp, 2 for fn, 3 for tn; a column that is absent counts as 0."""
    classes = np.full(n_rows, 3, dtype=np.uint8)
    for name, worth in (("y_true", 1), ("y_pred", 2)):
        if name in columns:
            classes -= np.asarray(columns[name]).astype(np.uint8) * np.uint8(worth)
    return classes
