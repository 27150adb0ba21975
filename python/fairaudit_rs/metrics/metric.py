"""What a metric is: a row of the registry, or one of the user's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import ArgumentError

Conditioning = Literal["denominator", "label", "decision", "score"]
Family = Literal["counts", "calibration", "ranks", "ratio", "joint", "correlation", "callable"]

#: A number per row: a function of the columns by name, or the name of a column.
RowValue: TypeAlias = Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64]] | str

#: What the rows of a set of confusion counts have in common.
_ROWS = {
    (1, 1, 1, 1): "rows",
    (1, 0, 1, 0): "rows with a positive label",
    (0, 1, 0, 1): "rows with a negative label",
    (1, 1, 0, 0): "rows with a positive decision",
    (0, 0, 1, 1): "rows with a negative decision",
}


@dataclass(frozen=True)
class Metric:
    """A metric of one group; a row of the registry.

    Parameters
    ----------
    name : str
        The name that results carry.
    formula : str
        A formula over ``tp, fp, fn, tn`` (family ``"counts"``); for other families only what
        tables print.
    family : {"counts", "calibration", "ranks", "ratio", "joint", "correlation", "callable"}
        Counts of labels and decisions; the expected calibration error over ten bins of the
        score; the area under the ROC curve; a ratio of sums of row values; several count
        metrics at once; the correlation of a row value with a continuous attribute; any function
        of the rows of a group.
    description : str
        One line for tables.
    aliases : tuple of str
        Other names that find the metric.
    conditions_on : {"denominator", "label", "decision"}, optional
        Rows whose groups ``strata="auto"`` exchanges among themselves: those of the metric's
        denominator (proportions), of one label, or of one decision. None: all rows.
    numerator, denominator : callable or str, optional
        Row values of a ratio: functions of a mapping of columns, or names of columns of
        ``data``. Without a denominator the ratio is a mean. The numerator is also the row value
        of a correlation.
    columns : tuple of str
        Which of y_true, y_pred and y_score a metric of another family than counts needs.
    components : tuple of Metric
        The metrics of a joint criterion.
    by_rank : bool
        Whether a correlation is one of ranks (Spearman).
    function : callable, optional
        The function of a metric of family callable; see `callable_metric`.
    n_samples : int
        Bootstrap samples per replicate that studentize a callable.
    limits : tuple of float
        The least and the greatest value of the metric; those of proportions and of the AUC are
        known.
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
    _parsed: _native.CountMetric | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.conditions_on not in (None, "denominator", "label", "decision", "score"):
            raise ArgumentError(
                f"conditions_on is {self.conditions_on!r}; accepted: None, 'denominator', "
                "'label', 'decision'"
            )

    def __getstate__(self) -> dict[str, Any]:
        # The parsed formula is made anew where it is needed.
        return {**self.__dict__, "_parsed": None}

    @property
    def native(self) -> _native.CountMetric:
        """The metric as the native module evaluates it."""
        if self._parsed is None:
            parsed = (
                _native.CountMetric.joint([part.native for part in self.components])
                if self.family == "joint"
                else _native.CountMetric.formula(self.formula)
            )
            object.__setattr__(self, "_parsed", parsed)
        assert self._parsed is not None
        return self._parsed

    @property
    def is_counts(self) -> bool:
        """Whether the metric is a formula over tp, fp, fn, tn."""
        return self.family == "counts"

    @property
    def is_proportion(self) -> bool:
        """Whether the metric is the share of a set of rows that lie in a subset of it."""
        return self.is_counts and self.native.is_proportion

    @property
    def needs(self) -> tuple[str, ...]:
        """Which of y_true, y_pred and y_score the metric is computed from."""
        if self.family == "joint":
            needed = {name for part in self.components for name in part.needs}
            return tuple(name for name in ("y_true", "y_pred") if name in needed)
        if not self.is_counts:
            return self.columns
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
    def range(self) -> tuple[float, float]:
        """The least and the greatest value that the metric can have."""
        return (0.0, 1.0) if self.is_proportion or self.family == "ranks" else self.limits

    @property
    def denominator_rows(self) -> str | None:
        """What the rows in the denominator are called, when they have a plain name."""
        fraction = self.native.fraction if self.is_counts else None
        if fraction is None:
            return None
        a, b, c, d = (int(value != 0) for value in fraction[1])
        return _ROWS.get((a, b, c, d))

    @property
    def variance(self) -> str:
        """The variance that ``studentize="auto"`` takes."""
        if self.family == "callable":
            return "bootstrap"
        return "pooled" if self.is_proportion or self.is_separate else "unpooled"

    @property
    def is_separate(self) -> bool:
        """Whether a joint criterion is one of proportions that share no rows."""
        if not self.components or not all(part.is_proportion for part in self.components):
            return False
        denominators = [(part.native.fraction or ([], []))[1] for part in self.components]
        return all(sum(rows) <= 1 for rows in zip(*denominators, strict=True))

    def influence(
        self, rows: Mapping[str, NDArray[Any]], weight: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return what every row of a group adds to the metric: its derivative by the row's share.

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
        n = len(next(iter(rows.values())))
        heavy = np.ones(n) if weight is None else weight
        if self.family == "counts":
            label, decision = (
                np.asarray(rows.get(name, np.zeros(n))).astype(np.int64)
                for name in ("y_true", "y_pred")
            )
            place = 2 * (1 - decision) + (1 - label)
            totals = np.bincount(place, heavy, 4)
            gradient = self.native.gradient(totals.tolist())
            by_class = np.nan_to_num(np.array(gradient)) * totals.sum()
            return np.asarray(by_class[place])
        if self.family == "ranks":
            psi = rank_influence(rows["y_score"], rows["y_true"], weight)
            return np.asarray(psi * heavy.sum())
        if self.family == "ratio":
            above = self._row_value(self.numerator, rows)
            below = (
                np.ones(n) if self.denominator is None else self._row_value(self.denominator, rows)
            )
            value = float(heavy @ above) / float(heavy @ below)
            return np.asarray((above - value * below) * (heavy.sum() / float(heavy @ below)))
        raise ArgumentError(
            f"{self.name} is a metric of family {self.family}, which has no influence of rows"
        )

    @staticmethod
    def _row_value(
        source: RowValue | None, rows: Mapping[str, NDArray[Any]]
    ) -> NDArray[np.float64]:
        assert source is not None
        columns = {name: np.asarray(column, dtype=np.float64) for name, column in rows.items()}
        return np.asarray(columns[source] if isinstance(source, str) else source(columns))

    def evaluate(self, *, tp: float, fp: float, fn: float, tn: float) -> float:
        """Compute the metric from the counts of one group; NaN where it is undefined."""
        if not self.is_counts:
            raise ArgumentError(f"{self.name} is not a function of tp, fp, fn, tn")
        return self.native.evaluate([tp, fp, fn, tn])[0]


def rank_influence(
    score: NDArray[Any], positive: NDArray[Any], weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return the influence of rows on the AUC, ties 1/2."""
    weight = np.ones(len(score)) if weight is None else weight
    positive = positive.astype(bool)
    _, level = np.unique(score, return_inverse=True)
    level = level.ravel()

    def below(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        sums = np.bincount(level, weight * rows)
        ranks: NDArray[np.float64] = (np.cumsum(sums) - 0.5 * sums)[level]
        return ranks

    up, down = float(weight[positive].sum()), float(weight[~positive].sum())
    if not up or not down:
        return np.zeros(len(score))
    component = np.where(positive, below(~positive) / down, 1 - below(positive) / up)
    auc = float((weight * component * positive).sum()) / up
    return (component - auc) / np.where(positive, up, down)
