"""The class `IndividualResult`, the result of `individual_test`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..literals import IndividualPicture
from ..report.words import number, p_text, row_count
from ..results.chart import Chart
from ..results.result import Finding
from ..results.verdict import rejects_at
from .attack import Attack, FlowPath, StoredAttack
from .chart import path_chart, ratio_chart
from .examples import UnfairExamples
from .sample import RowWeights

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class IndividualResult(Finding):
    """The result of `individual_test`, which explains the method.

    Attributes
    ----------
    estimate : float
        The audit value S_n: the mean loss ratio, or the ratio of the error rates.
    lower_bound : float
        T_n: with confidence ``confidence_level`` the audit value is at least this. If it is above
        `delta`, the hypothesis of fairness is rejected.
    upper_bound : float
        With the same confidence, the audit value is at most this.
    statistic : float
        Distance from `delta` to the estimate in standard errors. It is on the log scale with
        ``interval="log"``, and with ``interval="bootstrap-t"`` if ``ratio="error_rate"``.
    delta : float
        The tolerated audit value.
    ratio, loss, interval, solver, compat : str or None
        The arguments of the test.
    penalty, step_size, step_decay : float
        Parameters of the flow.
    n_steps : int
        Number of steps of the flow.
    metric : str
        Description of the fair metric.
    stability : float
        2 penalty step_size times the largest eigenvalue of the metric. Above 1, Euler's flow
        oscillates around its limit; above 2 (Euler, Heun) or 2.785 (RK4), it diverges.
    refit_metric : bool
        Whether the interval includes the uncertainty of the fit of the metric.
    loss_floor : float
        Losses below it are replaced by it.
    n_floored, n_floored_end : int
        Number of rows whose loss was below ``loss_floor``, before and after.
    n_nonfinite : int
        Number of rows whose ratio is not finite; the audit value is then NaN.
    n_dropped : int
        Number of such rows that were excluded, which only ``compat="paper"`` does.
    error_rates : tuple of float
        Share of wrong decisions before and after.
    confidence_level : float
        Level of each one-sided bound, and of the interval.
    n_resamples, n_undefined : int
        Number of replicates of ``interval="bootstrap-t"``, and of those without a value.
    path : FlowPath
        S_n and T_n along the flow.
    ratios : ndarray
        One for each row: loss after over loss before.
    loss_start, loss_end : ndarray
        Losses of the rows, before and after.
    score_start, score_end : ndarray
        Scores of the rows, before and after; with several classes, one column for each.
    units : ndarray
        The unit of each feature in the fair metric.
    one_hot : str
        How one-hot features were attacked.
    one_hot_groups : tuple of tuples of str
        The groups of one-hot features.
    n_clusters : int or None
        Number of clusters; None if each row is independent.
    n_repeated : int
        Number of rows that equal an earlier one in features and label.
    df : float
        Degrees of freedom of the standard error; infinite without weights and clusters, and with
        ``interval="bootstrap-t"``.
    sample : RowWeights or None
        Weights and clusters of the rows.
    index : ndarray or None
        Labels of the rows in the index of pandas data; None for other data.
    """

    lower_bound: float
    upper_bound: float
    delta: float
    ratio: str
    loss: str
    interval: str
    solver: str
    compat: str | None
    penalty: float
    step_size: float
    step_decay: float
    n_steps: int
    metric: str
    stability: float
    refit_metric: bool
    loss_floor: float
    n_floored: int
    n_floored_end: int
    n_nonfinite: int
    n_dropped: int
    error_rates: tuple[float, float]
    confidence_level: float
    n_resamples: int
    n_undefined: int
    path: FlowPath
    ratios: Floats
    loss_start: Floats
    loss_end: Floats
    score_start: Floats
    score_end: Floats
    units: Floats
    flow: Attack | StoredAttack
    one_hot: str
    one_hot_groups: tuple[tuple[str, ...], ...]
    n_clusters: int | None
    n_repeated: int
    df: float
    sample: RowWeights | None
    index: NDArray[Any] | None

    _not_in_dict = Finding._not_in_dict | {
        "ratios",
        "loss_start",
        "loss_end",
        "score_start",
        "score_end",
        "units",
        "flow",
        "sample",
        "index",
    }

    @cached_property
    def attacked(self) -> Floats:
        """The end points x_T of the flow, with the columns in the order of the model."""
        return self.flow.end()

    def unfair_examples(self, k: int = 10) -> UnfairExamples:
        """Return the rows with the largest ratios, and where the flow moved them.

        Parameters
        ----------
        k : int
            Maximum number of rows. Equal ratios are sorted by position; each cluster has one row.

        Returns
        -------
        UnfairExamples
            Sorted by ratio, largest first. Rows whose ratio is NaN are excluded.
        """
        k = arguments.check(k=k).k
        known = np.flatnonzero(~np.isnan(self.ratios))
        order = known[np.argsort(-self.ratios[known], kind="stable")]
        if self.sample is not None and self.sample.person is not None:
            order = order[np.sort(np.unique(self.sample.person[order], return_index=True)[1])]
        row = order[:k]
        return UnfairExamples(
            row=row.astype(np.int64),
            ratio=self.ratios[row],
            loss_start=self.loss_start[row],
            loss_end=self.loss_end[row],
            score_start=self.score_start[row],
            score_end=self.score_end[row],
            start=self.flow.rows[row],
            attacked=self.flow.end(row),
            units=self.units,
            feature_names=self.flow.feature_names,
            index=None if self.index is None else self.index[row],
        )

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        what = (
            "the mean ratio of losses after and before"
            if self.ratio == "loss"
            else "the ratio of error rates after and before"
        )
        rows = row_count(self.n_rows)
        flow = f"a gradient flow of {self.n_steps:,} steps ({self.metric}) over {rows}"
        if math.isnan(self.estimate):
            return f"{_upper(what)} {flow} is not measurable, see the notes."
        rule = " (four-fifths rule: 1 / 0.8)" if self.delta == 1.25 else ""
        level = f"{100 * self.confidence_level:g} %"
        if math.isnan(self.pvalue):
            return f"{_upper(what)} {flow} is {number(self.estimate)}; it has no test."
        rejected = rejects_at(self.pvalue, 1 - self.confidence_level)
        verdict = (
            f"That is more than the tolerated {self.delta:g}{rule}: similar people are treated "
            "differently"
            if rejected
            else f"That is not shown to exceed the tolerated {self.delta:g}{rule}; that alone does "
            "not show fairness"
        )
        return (
            f"{_upper(what)} {flow} is {number(self.estimate)}, and at least "
            f"{number(self.lower_bound)} with {level} confidence. {verdict} "
            f"({p_text(self.pvalue)})."
        )

    @property
    def details(self) -> str:
        """The description of the test."""
        if math.isnan(self.estimate) or math.isnan(self.pvalue):
            return ""
        return f"one-sided test; interval: {self.interval}{self._of_clusters}"

    @property
    def _of_clusters(self) -> str:
        of = "" if self.n_clusters is None else f", {self.n_clusters:,} clusters"
        return of if math.isinf(self.df) else f"{of}, t with {self.df:.3g} degrees of freedom"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("value", "path")

    def _rows_of(self, table: str) -> Sequence[dict[str, Any]]:
        if table != "path":
            return super()._rows_of(table)
        names = ("step", "time", "estimate", "lower_bound")
        columns = (getattr(self.path, name).tolist() for name in names)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row: the audit value."""
        return [
            {
                "ratio": self.ratio,
                "estimate": self.estimate,
                "standard_error": self.standard_error,
                "lower_bound": self.lower_bound,
                "low": self.confidence_interval[0],
                "high": self.confidence_interval[1],
                "delta": self.delta,
                "statistic": self.statistic,
                "pvalue": self.pvalue,
                "n_rows": self.n_rows,
                "n_floored": self.n_floored,
                "n_nonfinite": self.n_nonfinite,
                "stability": self.stability,
            }
        ]

    def plot(self, what: IndividualPicture = "path") -> Chart:
        """Return a chart of the path or of the ratios, with the tolerated value.

        Parameters
        ----------
        what : {"path", "ratios"}
            S_n and T_n along the flow (Figure 2 of the paper), or a histogram of the row ratios.

        Returns
        -------
        Chart
            The chart.
        """
        what = arguments.choice("what", what, get_args(IndividualPicture))
        if what == "path":
            return path_chart(self.path, self.ratio, self.delta)
        weight = None if self.sample is None else self.sample.weight
        return ratio_chart(self.ratios, self.ratio, self.delta, weight)


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
