"""The class `Metric`: one metric, built-in or defined by the user."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import ArgumentError
from .families import FAMILIES
from .family import MetricFamily

Conditioning = Literal["denominator", "label", "decision", "score"]
Family = Literal["counts", "calibration", "ranks", "ratio", "joint", "correlation", "callable"]

#: A number per row: a function of the columns by name, or the name of a column.
RowValue: TypeAlias = Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64]] | str
#: The smallest and largest possible row value: two numbers, a function of the columns that returns
#: them, or None if unknown.
Bounds: TypeAlias = (
    tuple[float, float]
    | Callable[[Mapping[str, NDArray[np.float64]]], tuple[float, float] | None]
    | None
)


@dataclass(frozen=True)
class Metric:
    """A metric that is computed for each group.

    Parameters
    ----------
    name : str
        Name of the metric in results.
    formula : str
        A formula over ``tp, fp, fn, tn`` (family ``"counts"``); for other families a text that
        tables show.
    family : {"counts", "calibration", "ranks", "ratio", "joint", "correlation", "callable"}
        Counts of labels and decisions; the expected calibration error over ten bins of the
        score; the area under the ROC curve; a ratio of sums of row values; several count
        metrics at once; the correlation of a row value with a continuous attribute; any function
        of the rows of a group.
    description : str
        One line for tables.
    aliases : tuple of str
        Other names of the metric.
    conditions_on : {"denominator", "label", "decision"}, optional
        Rows whose groups ``strata="auto"`` exchanges among themselves: those of the metric's
        denominator (proportions and F1), of one label, or of one decision. None: all rows.
    numerator, denominator : callable or str, optional
        Row values of a ratio: functions of a mapping of columns, or names of columns of
        ``data``. Without a denominator the ratio is a mean. The numerator is also the row value
        of a correlation.
    columns : tuple of str
        The columns that the metric needs, out of y_true, y_pred and y_score; for count metrics
        they follow from the formula.
    components : tuple of Metric
        The metrics of a joint criterion.
    by_rank : bool
        Whether a correlation uses ranks (Spearman).
    function : callable, optional
        The function of a metric of family callable; see `callable_metric`.
    n_samples : int
        Number of bootstrap samples that studentize a callable in each replicate.
    limits : tuple of float
        The smallest and largest possible value of the metric; not needed for proportions and
        the AUC.
    bounds : tuple of float or callable, optional
        The smallest and largest possible value of numerator / denominator in a row, or a function
        of the mapping of columns that returns them, or None if unknown. Tests of groups with few
        rows near a bound use it.
    is_residual : bool
        Whether the metric is the mean of label minus score, whose tests use the scores and not
        only the bounds.
    """

    name: str
    formula: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    conditions_on: Conditioning | None = None
    family: Family = "counts"
    numerator: RowValue | None = None
    denominator: RowValue | None = None
    columns: tuple[str, ...] = ()
    components: tuple[Metric, ...] = ()
    by_rank: bool = False
    function: Callable[..., Any] | None = None
    n_samples: int = 100
    limits: tuple[float, float] = (-math.inf, math.inf)
    bounds: Bounds = None
    is_residual: bool = False

    def __post_init__(self) -> None:
        if self.conditions_on not in (None, "denominator", "label", "decision", "score"):
            raise ArgumentError(
                f"conditions_on is {self.conditions_on!r}; accepted: None, 'denominator', "
                "'label', 'decision'",
                argument="conditions_on",
            )
        if self.family not in FAMILIES:
            accepted = ", ".join(map(repr, FAMILIES))
            raise ArgumentError(
                f"family is {self.family!r}; accepted: {accepted}", argument="family"
            )

    def __getstate__(self) -> dict[str, Any]:
        # The parsed formula is not pickled; it is parsed again on demand.
        return {name: value for name, value in self.__dict__.items() if name != "kind"}

    @cached_property
    def kind(self) -> MetricFamily:
        """The family of the metric: how it reads and sums data, and its limits."""
        return FAMILIES[self.family](self)

    @property
    def native(self) -> _native.CountMetric:
        """The metric as the native module evaluates it."""
        return self.kind.native

    @property
    def is_counts(self) -> bool:
        """Return whether the metric is a formula over tp, fp, fn, tn."""
        return self.kind.is_formula

    @property
    def is_proportion(self) -> bool:
        """Return whether the metric is a proportion: the share of rows that are in a subset."""
        return self.kind.is_proportion

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that the metric needs, out of y_true, y_pred and y_score."""
        return self.kind.needs

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and largest possible value of the metric."""
        return self.kind.range

    @property
    def denominator_rows(self) -> str | None:
        """A description of the rows in the denominator; None if there is no short one."""
        return self.kind.denominator_rows

    @property
    def variance(self) -> str:
        """The variance that ``studentize="auto"`` selects."""
        return self.kind.variance

    @property
    def is_separate(self) -> bool:
        """Return whether a joint criterion consists of proportions with disjoint denominators."""
        return self.kind.is_separate

    def influence(
        self, rows: Mapping[str, NDArray[Any]], weight: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the influence of every row of a group: the metric's derivative by the row's share.

        Parameters
        ----------
        rows : mapping of arrays
            The columns that the metric needs, by name: labels and decisions of 0 and 1, scores.
        weight : ndarray, optional
            The weight of each row.

        Returns
        -------
        ndarray
            One number per row; their weighted mean is 0.
        """
        return self.kind.influence(rows, weight)

    def evaluate(self, *, tp: float, fp: float, fn: float, tn: float) -> float:
        """Compute the metric from the counts of one group; NaN where it is undefined."""
        if not self.is_counts:
            raise ArgumentError(
                f"metric {self.name!r} is not a formula over tp, fp, fn, tn. Use a count metric.",
                argument="metric",
            )
        return self.native.evaluate([tp, fp, fn, tn]).value


#: A metric, its name or alias, or a function or scorer of scikit-learn that computes it.
AnyMetric: TypeAlias = str | Metric | Callable[..., Any]
