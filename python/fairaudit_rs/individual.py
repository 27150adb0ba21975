"""The individual lens: are similar people treated differently? (Maity et al.)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _validate
from ._audit_value import INTERVALS, AuditValue, one_sided_size
from ._columns import Coded, column_array
from ._flow import (
    SOLVERS,
    Attack,
    FlowPath,
    Schedule,
    StoredAttack,
    UnfairExamples,
    flow,
    flow_model,
)
from ._losses import Along, Losses
from .cells import Label, _binary
from .charts import Chart
from .errors import ArgumentError, ArgumentTypeError, DataError
from .fair_metrics import FairMetric
from .results import Result, number, p_text

__all__ = ["FlowPath", "IndividualResult", "UnfairExamples", "individual_test"]

Floats = NDArray[np.float64]

_MAX_STEPS = 10_000_000
#: A predicted size of the normal test above this many times its level is worth a warning.
_WORST_SIZE = 1.25
_LOSSES = ("log_loss",)


@dataclass(frozen=True, repr=False, eq=False)
class IndividualResult(Result):
    """What `individual_test` found; see there for what the numbers mean.

    Attributes
    ----------
    estimate : float
        The audit value S_n: the mean loss ratio, or the ratio of the error rates.
    lower_bound : float
        T_n: with confidence ``confidence_level`` the audit value is at least this; above `delta`
        the hypothesis of fairness is rejected.
    upper_bound : float
        With the same confidence it is at most this.
    statistic : float
        Standard errors from `delta` to the estimate (on the log scale for ``interval="log"``).
    delta : float
        The tolerated audit value.
    ratio, loss, interval, solver, compat : str or None
        What was asked.
    penalty, step_size, step_decay : float
        Of the flow.
    n_steps : int
        Of the flow.
    metric : str
        The fair metric.
    stability : float
        2 penalty step_size times the largest eigenvalue of the metric. Above 1 the flow swings
        around where it should settle, above 2 (Euler, Heun) it grows without bound.
    loss_floor : float
        Losses below it count as it.
    n_floored, n_floored_end : int
        Rows whose loss was below it, before and after.
    n_nonfinite : int
        Rows whose ratio is not a finite number; with one, nothing can be measured.
    n_dropped : int
        Such rows that were left out, which only ``compat="paper"`` does.
    error_rates : tuple of float
        Share of wrong decisions before and after.
    confidence_level : float
        Level of the bounds, each on its side, and of the interval.
    n_resamples, n_undefined : int
        Replicates of ``interval="bootstrap-t"``, and those without a value.
    path : FlowPath
        S_n and T_n along the flow.
    ratios : ndarray
        One for each row: loss after over loss before.
    loss_start, loss_end, score_start, score_end : ndarray
        Losses and scores of the rows, before and after.
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
    flow: Attack | StoredAttack

    _bulky = Result._bulky | {
        "ratios", "loss_start", "loss_end", "score_start", "score_end", "flow"
    }  # fmt: skip

    @cached_property
    def attacked(self) -> Floats:
        """Where the flow moved every row: x_T, of the shape of X (which is read again)."""
        return self.flow.end()

    def unfair_examples(self, k: int = 10) -> UnfairExamples:
        """Return the rows with the largest ratios, and where the flow moved them.

        Parameters
        ----------
        k : int
            How many; rows of equal ratios are taken in their order.

        Returns
        -------
        UnfairExamples
            With the largest ratio first. Rows whose ratio is not a number are left out.
        """
        k = _validate.count("k", k, 1, 2**62)
        known = np.flatnonzero(~np.isnan(self.ratios))
        row = known[np.argsort(-self.ratios[known], kind="stable")[:k]]
        return UnfairExamples(
            row.astype(np.int64),
            self.ratios[row],
            self.loss_start[row],
            self.loss_end[row],
            self.score_start[row],
            self.score_end[row],
            self.flow.rows[row],
            self.flow.end(row),
            self.flow.feature_names,
        )

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        what = (
            "the mean ratio of losses after and before"
            if self.ratio == "loss"
            else "the ratio of error rates after and before"
        )
        flow = f"a gradient flow of {self.n_steps:,} steps ({self.metric})"
        if math.isnan(self.estimate):
            return f"{_upper(what)} {flow} is not measurable, see the notes."
        rule = " (four-fifths rule: 1 / 0.8)" if self.delta == 1.25 else ""
        level = f"{100 * self.confidence_level:g} %"
        if math.isnan(self.pvalue):
            return f"{_upper(what)} {flow} is {number(self.estimate)}; it has no test."
        rejected = self.pvalue <= (1 - self.confidence_level) * (1 + 1e-9)
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
            f"({p_text(self.pvalue)}, one-sided, {self.interval})."
        )

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

    def plot(self) -> Chart:
        """Return a chart of S_n and T_n along the flow, with the tolerated value (Figure 2)."""
        points = [
            {"time": float(time), "value": float(value), "line": line}
            for line, values in (
                ("audit value", self.path.estimate),
                ("lower bound", self.path.lower_bound),
            )
            for time, value in zip(self.path.time, values, strict=True)
            if math.isfinite(value)
        ]
        return Chart(
            {
                "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
                "title": f"{self.ratio} ratio along the flow",
                "width": 480,
                "height": 240,
                "layer": [
                    {
                        "data": {"values": points},
                        "mark": {"type": "line"},
                        "encoding": {
                            "x": {"field": "time", "type": "quantitative", "title": "time of flow"},
                            "y": {"field": "value", "type": "quantitative",
                                  "title": f"{self.ratio} ratio", "scale": {"zero": False}},
                            "strokeDash": {"field": "line", "type": "nominal", "title": None},
                        },
                    },
                    {
                        "data": {"values": [{"delta": self.delta}]},
                        "mark": {"type": "rule", "strokeDash": [4, 4], "color": "firebrick"},
                        "encoding": {"y": {"field": "delta", "type": "quantitative"}},
                    },
                ],
            }
        )  # fmt: skip


def individual_test(
    model: Any,
    X: Any,
    y: Any,
    *,
    fair_metric: FairMetric,
    ratio: str = "loss",
    loss: str = "log_loss",
    penalty: float = 50.0,
    n_steps: int = 500,
    step_size: float = 0.01,
    step_decay: float = 0.0,
    solver: str = "euler",
    delta: float = 1.25,
    interval: str = "normal",
    loss_floor: float = 1e-12,
    confidence_level: float = 0.95,
    compat: str | None = None,
    pos_label: Label = None,
    path_points: int = 21,
    n_resamples: int = 1_999,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> IndividualResult:
    r"""Test whether a model treats similar people differently, by attacking it.

    Parameters
    ----------
    model : LinearModel, TorchModel, or what `fairaudit_rs.models.adapt` makes one of
        Its score must be the log-odds of label 1: a fitted logistic regression of scikit-learn, or
        a torch module that gives a logit (in double precision with
        ``TorchModel(module, dtype="float64")``).
    X : array or frame of shape (n_rows, n_features)
        Rows that the model was not fitted on.
    y : array
        Their labels.
    fair_metric : FairMetric
        Which differences must not count: `FairMetric.subspace` and its siblings. It is taken as
        given; what its fit adds to the uncertainty is not in the interval.
    ratio : {"loss", "error_rate"}
        The mean over the rows of loss after over loss before, or the error rate after over the
        error rate before.
    loss : {"log_loss"}
        The loss that the attack makes larger.
    penalty : float
        Lambda: what a unit of squared fair distance costs the attack.
    n_steps, step_size, step_decay : int, float, float
        The flow takes steps of length ``step_size / t**step_decay``, t = 1, ..., n_steps.
    solver : {"euler", "heun", "rk4"}
        How it is integrated; all solvers take the same steps.
    delta : float
        The tolerated audit value; 1.25 is the four-fifths rule.
    interval : {"normal", "log", "bootstrap-t"}
        How intervals, bounds and the p-value are made: by the normal law, by that of the logarithm
        of the mean, or by resampling the studentized mean, which is right where ratios are skewed.
    loss_floor : float
        Losses below it count as it, before and after. No row is left out.
    confidence_level : float
        Level of the bounds, each on its side, and of the two-sided interval.
    compat : {None, "paper"}
        ``"paper"``: as the authors' code does, variances divide by n, there is no floor, and rows
        whose ratio is not finite are left out.
    pos_label : optional
        The value of `y` that is label 1.
    path_points : int
        How many points of the path are kept, with the start and the end.
    n_resamples : int
        Replicates of ``interval="bootstrap-t"``.
    rng : None, int, SeedSequence or Generator
        Source of the seed; ``random_state`` is an alias.
    n_threads : int, optional
        None takes all cores that the process may use. The result does not depend on it. Torch
        modules run on the threads that torch was told to take.
    progress : bool or callable, optional
        True prints; a callable gets (rows done, rows in all).

    Returns
    -------
    IndividualResult

    Notes
    -----
    Every row follows the gradient flow

    .. math:: \dot x = \nabla_x \{\ell(f(x), y) - \lambda d^2(x, x_0)\}, \qquad x(0) = x_0,

    towards people who are similar under the fair metric d and whom the model treats worse [1]_.
    The audit value is :math:`E[\ell(x_T) / \ell(x_0)]`, and the null hypothesis that it is at most
    ``delta``. It is rejected where the lower bound
    :math:`T_n = S_n - z_{1-\alpha} V_n / \sqrt n` exceeds ``delta``. The error-rate ratio has its
    variance by the delta method.

    For a linear model the flow is solved in the eigenspaces of the metric: one number per row for
    each eigenvalue, two for a sensitive subspace, whatever the number of features. Other models
    take one gradient per row and step.

    The audit value belongs to the attack: it grows with the time of the flow and falls with
    ``penalty``, and values of different settings cannot be compared. A step size with
    ``2 penalty step_size`` times the largest eigenvalue of the metric above 1 makes the flow swing,
    which is among the warnings.

    References
    ----------
    .. [1] Maity, S., Xue, S., Yurochkin, M. and Sun, Y. (2021). Statistical Inference for
       Individual Fairness. ICLR. arXiv:2103.16714

    Examples
    --------
    >>> import numpy as np, fairaudit_rs as fa
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = X[:, 0] + rng.normal(size=500) > 0
    >>> metric = fa.FairMetric.directions([[0.0, 1.0]])
    >>> fair = fa.individual_test(fa.LinearModel([2.0, 0.0]), X, y, fair_metric=metric)
    >>> unfair = fa.individual_test(fa.LinearModel([2.0, 1.0]), X, y, fair_metric=metric)
    >>> bool(fair.lower_bound < 1.25 < unfair.lower_bound)
    True
    """
    ratio = _validate.choice("ratio", ratio, ("loss", "error_rate"))
    loss = _validate.choice("loss", loss, _LOSSES)
    solver = _validate.choice("solver", solver, SOLVERS)
    interval = _validate.choice("interval", interval, INTERVALS)
    if compat is not None:
        compat = _validate.choice("compat", compat, ("paper",))
    level = _validate.level("confidence_level", confidence_level)
    delta = _validate.positive("delta", delta)
    penalty = _at_least_0("penalty", penalty)
    floor = _at_least_0("loss_floor", loss_floor)
    schedule = Schedule.of(
        _validate.count("n_steps", n_steps, 1, _MAX_STEPS),
        _validate.positive("step_size", step_size),
        _at_least_0("step_decay", step_decay),
        solver,
        _validate.count("path_points", path_points, 2, 100_000),
    )
    n_resamples = _validate.n_resamples(n_resamples)
    n_threads = _validate.n_threads(n_threads)
    callback = _validate.progress(progress)
    seed = _validate.seed(rng, random_state)
    if not isinstance(fair_metric, FairMetric):
        raise ArgumentTypeError(
            f"fair_metric is a {type(fair_metric).__name__}; accepted: a FairMetric, such as "
            "FairMetric.subspace(X, protected)"
        )
    ours = flow_model(model)
    positive = _labels(y, pos_label)
    along = Along(ratio, floor, compat == "paper", ours.boundary, positive, n_threads)
    flowed = flow(ours, X, positive, fair_metric, penalty, schedule, n_threads, callback, along.add)
    losses = Losses(flowed, positive, along, n_threads)
    value = losses.value(interval)
    plain = "normal" if interval == "bootstrap-t" else interval
    # The last point is the audit value itself, also where parts were added up for the others.
    points = [*along.values(plain)[:-1], replace(value, interval=plain)]
    if interval == "bootstrap-t" and math.isfinite(value.estimate) and value.variance > 0:
        value = replace(value, replicates=losses.bootstrap(n_resamples, seed, n_threads))
    pvalue, n_undefined = value.pvalue(delta)
    path = FlowPath(
        np.array(schedule.record, dtype=np.int64),
        schedule.times(),
        np.array([point.estimate for point in points]),
        np.array([point.lower_bound(level) for point in points]),
    )
    return IndividualResult(
        estimate=value.estimate,
        standard_error=value.standard_error,
        statistic=value.statistic(delta),
        pvalue=pvalue,
        confidence_interval=value.two_sided(level),
        alternative="greater",
        n_rows=len(positive),
        group_sizes={},
        seed=seed,
        engine=flowed.engine,
        warnings=tuple(_warnings(losses, value, flowed.stability, schedule, level)),
        lower_bound=value.lower_bound(level),
        upper_bound=value.upper_bound(level),
        delta=delta,
        ratio=ratio,
        loss=loss,
        interval=interval,
        solver=solver,
        compat=compat,
        penalty=penalty,
        step_size=schedule.size,
        step_decay=schedule.decay,
        n_steps=schedule.n_steps,
        metric=fair_metric.kind,
        stability=flowed.stability,
        loss_floor=losses.floor,
        n_floored=int((losses.start < losses.floor).sum()),
        n_floored_end=int((losses.end < losses.floor).sum()),
        n_nonfinite=losses.n_nonfinite,
        n_dropped=losses.n_nonfinite if losses.paper else 0,
        error_rates=(float(losses.wrong_start.mean()), float(losses.wrong_end.mean())),
        confidence_level=level,
        n_resamples=0 if value.replicates is None else n_resamples,
        n_undefined=n_undefined,
        path=path,
        ratios=losses.ratios,
        loss_start=losses.start,
        loss_end=losses.end,
        score_start=flowed.start,
        score_end=flowed.end,
        flow=flowed.attack,
    )


def _warnings(
    losses: Losses, value: AuditValue, stability: float, schedule: Schedule, level: float
) -> list[str]:
    """Say what a reader must know besides the numbers."""
    warnings = []
    n = len(losses.positive)
    for limit, effect in [(SOLVERS[schedule.solver], "grows"), (1.0, "swings")]:
        steps = schedule.steps_above(stability, limit)
        if steps:
            which = "all" if steps == schedule.n_steps else f"the first {steps:,} of"
            warnings.append(
                f"2 * penalty * step_size times the largest eigenvalue of the metric is "
                f"{stability:.4g}: above {limit:.4g} ({which} {schedule.n_steps:,} steps) what the "
                f"metric holds back {effect} under {schedule.solver}; take smaller steps"
            )
            break
    if losses.ratio == "loss":
        if losses.n_nonfinite:
            fate = (
                "were left out, as in the paper's code"
                if losses.paper
                else "so that nothing can be measured; no row is left out"
            )
            warnings.append(
                f"{losses.n_nonfinite:,} of {n:,} rows have a ratio that is not finite, {fate}"
            )
        floored = int((losses.start < losses.floor).sum())
        if floored:
            warnings.append(
                f"{floored:,} of {n:,} rows have a loss below the floor of {losses.floor:g}, which "
                "counts instead; their ratios depend on it"
            )
        ratios = losses.ratios
        if value.variance == 0 and n > 1:
            warnings.append("all ratios are equal, which leaves nothing to test")
        elif value.interval == "normal" and math.isfinite(value.variance):
            size = one_sided_size(ratios[np.isfinite(ratios)], level)
            if size > _WORST_SIZE * (1 - level):
                warnings.append(
                    f"the ratios are skewed to the left: the {100 * (1 - level):.3g} % test "
                    f"rejects about {100 * min(size, 1.0):.2g} % of fair models; "
                    "interval='bootstrap-t' corrects that"
                )
    elif np.isnan(losses.end).any():
        warnings.append("some scores are not finite, so that there is no error rate after the flow")
    elif not losses.wrong_start.any():
        warnings.append("the model makes no error before the flow: a ratio to 0 is not measurable")
    if n < 2:
        warnings.append("one row has no standard error")
    return warnings


def _labels(y: Any, pos_label: Label) -> NDArray[np.bool_]:
    """Return which labels are 1."""
    column = column_array("y", y)
    if isinstance(column, Coded):
        values, place = list(column.labels), column.codes.astype(np.int64)
        if len(place) and place.max() >= len(values):
            raise DataError("y is missing in some rows; accepted: a label in every row")
    else:
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            raise DataError("y is missing or infinite in some rows; accepted: a label in every row")
        distinct, found = np.unique(column, return_inverse=True)
        values, place = distinct.tolist(), found.ravel()
    return np.asarray(_binary("y", values, pos_label)[place] == 1)


def _at_least_0(name: str, value: object) -> float:
    given = _validate.finite(name, value)
    if given < 0:
        raise ArgumentError(f"{name} is {value!r}; accepted: a finite number of at least 0")
    return given


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
