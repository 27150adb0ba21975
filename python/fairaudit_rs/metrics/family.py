"""The interface of metric families: the data they read, their sums and their limits.

Other code reaches a family through `Metric.kind`, and never branches on its name.
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
from ..report.notes import Note
from .proportion_sums import Proportion
from .row_values import Columns, Floats, RowValues

#: The data that a metric is computed from: counts of classes of rows, ranks of scores, values of
#: rows, the rows of a group as a whole, or a continuous attribute.
Reads = Literal["classes", "scores", "rows", "function", "attribute"]


@dataclass(frozen=True, kw_only=True)
class RowClasses:
    """The classes of rows that a metric counts."""

    n: int
    #: For each class, whether its rows have a positive label.
    positive: tuple[bool, ...]
    #: For each class, the stratum within which ``strata="auto"`` exchanges groups; "denominator"
    #: stands for the rows of the metric's denominator.
    conditioning: tuple[int, ...] | Literal["denominator"] | None
    #: Arguments of the native metric that depend on the data.
    details: tuple[Any, ...] = ()


class MetricFamily:
    """The family of a metric: how its metrics read data and are computed."""

    reads: ClassVar[Reads]
    #: Whether the metric is a formula over tp, fp, fn, tn.
    is_formula: ClassVar[bool] = False
    #: Accepted values of ``studentize``.
    scalings: ClassVar[tuple[str, ...]] = ("auto", "pooled", "unpooled", "corrected", "none")
    #: Whether labels must be binary: 0 and 1, or two values with ``pos_label``.
    binary_labels: ClassVar[bool] = False
    #: Whether scores may be binned.
    takes_bins: ClassVar[bool] = False
    #: Whether weighted rows and clusters are supported.
    takes_weights: ClassVar[bool] = False
    #: Whether simulated groups can have a gap, which is made by the influence of each row.
    has_influence: ClassVar[bool] = False
    #: Whether there is a power formula for the test of one gap.
    has_power: ClassVar[bool] = True
    #: Why the values of groups have no intervals; None if they have.
    why_no_intervals: ClassVar[str | None] = None
    #: Whether the gap of two groups can have an interval.
    has_gap_interval: ClassVar[bool] = True
    #: A note for every test of the metric.
    caveat: ClassVar[Note | None] = None

    def __init__(self, metric: Any) -> None:
        #: A `Metric`; its module imports this one, so the type is not named here.
        self.metric = metric

    # -- properties of the metric --------------------------------------------------------------

    @cached_property
    def native(self) -> _native.CountMetric:
        """The metric as the native module evaluates it."""
        return _native.CountMetric.formula(self.metric.formula)

    @property
    def is_proportion(self) -> bool:
        """Return whether the metric is a proportion: the share of rows that are in a subset."""
        return False

    @property
    def is_separate(self) -> bool:
        """Return whether a joint criterion consists of proportions with disjoint denominators."""
        return False

    @property
    def sum_of(self) -> tuple[Proportion, ...]:
        """The proportions of disjoint rows that the metric is a weighted sum of, if it is one."""
        return ()

    def own_condition(self, within_strata: bool) -> str | None:
        """Return what the metric conditions on, alone or within strata of the user.

        Within strata, ratios other than proportions do not condition on their denominator, because
        the weights of the strata are computed from all rows.
        """
        of_ratio = self.metric.conditions_on == "denominator" and not self.is_proportion
        return None if within_strata and of_ratio else self.metric.conditions_on

    @property
    def compares_labels(self) -> bool:
        """Return whether a group needs enough rows of both labels, however many rows it has."""
        return False

    def smallest_cell(self, cells: Sequence[int]) -> tuple[int, str]:
        """Return the smallest relevant count of the confusion table, and the name of its cell."""
        raise NotImplementedError

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that the metric needs, out of y_true, y_pred and y_score."""
        return tuple(self.metric.columns)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and largest possible value of the metric."""
        return (0.0, 1.0) if self.is_proportion else self.metric.limits

    @property
    def denominator_rows(self) -> str | None:
        """A description of the rows in the denominator; None if there is no short one."""
        return None

    @property
    def variance(self) -> str:
        """The variance that ``studentize="auto"`` selects."""
        return "unpooled"

    def variance_of_units(self, stratified: bool) -> str:
        """Return the variance that ``studentize="auto"`` selects for weighted rows and clusters.

        "corrected" needs a ratio of sums over rows, which every fraction is without strata of the
        user.
        """
        del stratified
        return "unpooled"

    # -- sums over classes and rows ------------------------------------------------------------

    def classes(self, cells: Cells) -> tuple[RowClasses, NDArray[np.int64]]:
        """Return the classes of rows that are counted, and the class of every cell."""
        raise NotImplementedError

    def native_of(self, classes: RowClasses) -> _native.CountMetric:
        """Return the native metric of counts in these classes."""
        del classes
        return self.native

    def class_influence(self, classes: RowClasses, totals: Floats) -> Floats:
        """Return the influence on the metric of one row of each class."""
        raise NotImplementedError

    def shortage(self, totals: NDArray[np.uint64], n_rows: int) -> str:
        """Describe the counts for which a group has no value."""
        del totals
        return f"{n_rows} row" + ("" if n_rows == 1 else "s")

    def row_values(self, columns: Columns, n_rows: int, weight: Floats | None) -> RowValues:
        """Return the row values that are summed, multiplied by the weights."""
        raise NotImplementedError

    def stratified_values(self, columns: Columns, n_rows: int, weight: Floats | None) -> RowValues:
        """Return the row values that are summed in a test within strata."""
        return self.row_values(columns, n_rows, weight)

    def bounds(self, columns: Columns) -> tuple[float, float] | None:
        """Return the smallest and largest possible row value of a ratio; None if unknown."""
        del columns
        return None

    def events(self, columns: Columns) -> tuple[Floats, Floats] | None:
        """Return binary labels and scores if the metric is a mean residual of probabilities."""
        del columns
        return None

    def influence(self, rows: Columns, weight: Floats | None) -> Floats:
        """Return the influence of every row on the metric; see `Metric.influence`."""
        raise ArgumentError(
            f"metric {self.metric.name!r} is of family {self.metric.family!r}, which has no "
            "influence of rows. Use a metric of counts, of ranks, or a ratio.",
            argument="metric",
        )

    def in_denominator(self, columns: Columns, n_rows: int) -> NDArray[np.bool_]:
        """Return which rows are in the denominator of a fraction of counts."""
        fraction = self.native.fraction
        assert fraction is not None
        inside: NDArray[np.bool_] = (np.array(fraction[1]) > 0)[confusion_classes(columns, n_rows)]
        return inside


def confusion_classes(columns: Columns, n_rows: int) -> NDArray[np.uint8]:
    """Return 0 for tp, 1 for fp, 2 for fn, 3 for tn; an absent column counts as 0."""
    classes = np.full(n_rows, 3, dtype=np.uint8)
    for name, worth in (("y_true", 1), ("y_pred", 2)):
        if name in columns:
            classes -= np.asarray(columns[name]).astype(np.uint8) * np.uint8(worth)
    return classes
