"""The function `individual_test`: attack a model to see if it treats similar people alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from .. import arguments
from ..data.index import check_indices, indices_of, rows_by_label
from ..data.labels import Label
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import Compatibility, Loss, OneHot, Ratio, RatioInterval, Solver
from ..report.notes import Note
from .attack import FlowPath
from .fair_metric import FairMetric
from .losses import Losses
from .problem import problem_class
from .question import LOSSES, flow_model, one_hot_groups_of, sample_of
from .refits import refit_replicates
from .result import Floats, IndividualResult
from .sample import PathSums, repeated_rows
from .schedule import SOLVERS, Schedule
from .simplex import ONE_HOT, find_departure
from .value import INTERVALS, AuditValue

#: Warn if a one-sided error is predicted to be off by more than this share of its level.
_WORST_EXCESS = 0.25
#: Warn if one row has more than this share of the variance.
_LARGEST_SHARE = 0.3
#: Warn if sums over clusters have fewer degrees of freedom than this.
_FEW_DF = 30.0
#: Relative difference below which ratios count as equal.
_EQUAL_RATIOS = 1e-10


def individual_test(
    model: Any,
    X: Any,
    y: Any,
    *,
    fair_metric: FairMetric,
    sample_weight: Any = None,
    clusters: Any = None,
    ratio: Ratio = "loss",
    loss: Loss = "log_loss",
    penalty: float = 50.0,
    n_steps: int = 500,
    step_size: float = 0.01,
    step_decay: float = 0.0,
    solver: Solver = "euler",
    one_hot: OneHot = "free",
    one_hot_groups: Any = None,
    delta: float = 1.25,
    interval: RatioInterval = "normal",
    loss_floor: float = 1e-12,
    confidence_level: float = 0.95,
    compat: Compatibility | None = None,
    pos_label: Label = None,
    path_points: int = 21,
    n_resamples: int = 1_999,
    refit_metric: bool = False,
    batch_size: int = 4_096,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> IndividualResult:
    r"""Test whether a model treats similar people differently, by attacking it.

    Parameters
    ----------
    model : LinearModel, KernelModel, TorchModel, MulticlassModel, or a fitted model
        Fitted LogisticRegression, LinearSVC, SVC, MLPClassifier and other estimators of
        scikit-learn are converted automatically, and so are torch modules that give a logit
        (in double precision with ``TorchModel(module, dtype="float64")``).
    X : array or frame of shape (n_rows, n_features)
        Rows that the model was not fitted on.
    y : array
        Their labels: two classes, the classes of the model, or numbers for ``loss="squared"``.
    fair_metric : FairMetric
        The metric that defines which people are similar, such as `FairMetric.subspace`. Its own
        uncertainty is ignored unless it is refitted, see `refit_metric`.
    sample_weight : array, optional
        Weight of each row, at least 0: the number of people that it stands for. The audit value
        is computed from weighted sums, and standard errors allow for unequal weights. The fair
        metric is fitted without them.
    clusters : array(s), optional
        The cluster of each row (the id of the person, of the household). Standard errors are
        those of sums over clusters, with Student's t, and resampling draws whole clusters.
    ratio : {"loss", "error_rate"}
        The mean over the rows of loss after over loss before, or the error rate after over the
        error rate before.
    loss : {"log_loss", "smooth_hinge", "softplus_hinge", "squared"}
        The loss that the attack increases. ``"log_loss"`` is for scores that are log-odds; with
        several classes it is the multinomial loss. The hinge losses are for margins m = s f of
        support vector machines: ``"smooth_hinge"`` is 1/2 - m below 0, (1 - m)^2 / 2 up to 1 and
        0 beyond, where no row moves [2]_; ``"softplus_hinge"``, log(1 + exp(1 - m)), is
        positive everywhere, so that every row has a ratio. ``"squared"`` is (f - y)^2; with a
        linear model all its ratios are equal, so there is nothing to test.
    penalty : float
        Lambda: the cost to the attack of one unit of squared fair distance.
    n_steps, step_size, step_decay : int, float, float
        The flow takes steps of length ``step_size / t**step_decay``, t = 1, ..., n_steps.
    solver : {"euler", "heun", "rk4"}
        The method of integration; all solvers take the same steps.
    one_hot : {"free", "keep"}
        How one-hot features are attacked: columns of zeros and ones with a single 1 in each row.
        ``"free"``: they move like all others, possibly to values that no person can have; the
        result reports how far. ``"keep"``: after each step every group is projected on the values
        that are at least 0 and sum to 1.
    one_hot_groups : sequence of groups of names or positions of features, optional
        The groups of one-hot features; a name stands for all columns that were coded from it. By
        default, adjacent columns with a single 1 in each row.
    delta : float
        The tolerated audit value; 1.25 is the four-fifths rule.
    interval : {"normal", "log", "bootstrap-t"}
        The method for intervals, bounds and the p-value: the normal law, the normal law of the
        logarithm, or resampling of the studentized mean (for error rates, of the studentized
        logarithm of their ratio), which allows for skewed ratios. No method is valid if the rows
        with the largest ratios are too rare to be in the sample.
    loss_floor : float
        Losses below it are replaced by it, before and after. No row is excluded.
    confidence_level : float
        Level of each one-sided bound, and of the two-sided interval.
    compat : {None, "paper"}
        ``"paper"``: as in the authors' code, variances divide by n, there is no floor, and rows
        whose ratio is not finite are excluded.
    pos_label : optional
        The value of `y` that is label 1.
    path_points : int
        Number of recorded points of the path, including the start and the end.
    n_resamples : int
        Replicates of ``interval="bootstrap-t"``.
    refit_metric : bool
        Fit the metric again in every replicate, on rows drawn from those it was fitted on, and run
        the flow again: the interval then includes the uncertainty of the fit. Needs a
        `FairMetric.subspace` of protected attributes and ``interval="bootstrap-t"``; a few
        hundred replicates are enough. Rows that are both audited and used in the fit are drawn
        together.
    batch_size : int
        Number of rows that a torch module processes at a time.
    rng : None, int, SeedSequence, Generator or RandomState
        Source of the seed; ``random_state`` is an alias.
    n_threads : int, optional
        None or -1 takes all cores that the process may use. The result does not depend on it. Torch
        modules use the number of threads that is set in torch.
    progress : bool or callable, optional
        True prints; a callable gets (rows done, rows in all), then with `refit_metric` (replicates
        done, replicates in all).

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
    :math:`T_n = S_n - z_{1-\alpha} V_n / \sqrt n` exceeds ``delta``. The variance of
    the error-rate ratio is computed by the delta method.

    For a linear model the flow is solved in the eigenspaces of the metric: one number per row for
    each eigenvalue (and class), two for a sensitive subspace, whatever the number of features.
    Other models take one gradient per row and step. The flow runs in the units of the metric,
    features divided by ``fair_metric.units``; results are in the units of X.

    ``delta``: the four-fifths rule of US labor law calls a selection rate for a group suspect below
    4/5 of that of another. Read as a rule about losses, the worse treated of two similar people may
    lose at most 1 / 0.8 = 1.25 times as much as the other.

    The audit value belongs to the attack: it grows with the time of the flow and falls with
    ``penalty``, and values of different settings cannot be compared. A step size with
    ``2 penalty step_size`` times the largest eigenvalue of the metric above 1 makes Euler's flow
    oscillate, for which the result has a warning.

    References
    ----------
    .. [1] Maity, S., Xue, S., Yurochkin, M. and Sun, Y. (2021). Statistical Inference for
       Individual Fairness. ICLR. arXiv:2103.16714
    .. [2] Rennie, J. D. M. and Srebro, N. (2005). Loss Functions for Preference Levels: Regression
       with Discrete Ordered Labels. IJCAI Workshop on Advances in Preference Handling.

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
    ratio = arguments.choice("ratio", ratio, get_args(Ratio))
    one_hot = arguments.choice("one_hot", one_hot, ONE_HOT)
    loss = arguments.choice("loss", loss, LOSSES)
    solver = arguments.choice("solver", solver, SOLVERS)
    interval = arguments.choice("interval", interval, INTERVALS)
    checked = arguments.check(
        penalty=penalty,
        n_steps=n_steps,
        step_size=step_size,
        step_decay=step_decay,
        delta=delta,
        loss_floor=loss_floor,
        confidence_level=confidence_level,
        compat=compat,
        n_resamples=n_resamples,
        batch_size=batch_size,
        rng=rng,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    schedule = Schedule.from_arguments(
        checked.n_steps,
        checked.step_size,
        checked.step_decay,
        solver,
        arguments.count("path_points", path_points, 2, 100_000),
    )
    compat, level, delta = checked.compat, checked.confidence_level, checked.delta
    penalty, floor = checked.penalty, checked.loss_floor
    n_resamples, batch_size = checked.n_resamples, checked.batch_size
    seed, n_threads, callback = checked.seed, checked.n_threads, checked.progress
    if not isinstance(fair_metric, FairMetric):
        raise ArgumentTypeError(
            f"fair_metric is a {type(fair_metric).__name__}; accepted: a FairMetric, such as "
            "FairMetric.subspace(X, protected)",
            argument="fair_metric",
        )
    refit_metric = arguments.flag("refit_metric", refit_metric)
    if refit_metric and interval != "bootstrap-t":
        raise ArgumentError(
            f"refit_metric is True, but interval is {interval!r}. Set interval='bootstrap-t', or "
            "omit refit_metric.",
            argument="refit_metric",
            mentions=("interval",),
            code="conflicting-arguments",
        )
    columns = {"X": X, "y": y, "sample_weight": sample_weight, "clusters": clusters}
    index = check_indices(indices_of(columns))
    flow = flow_model(model, loss, ratio)
    targets = flow.targets(y, loss, pos_label)
    if refit_metric and fair_metric.fitted_rows is None:
        raise ArgumentError(
            f"refit_metric is True, but fair_metric ({fair_metric.kind}) was not fitted on rows. "
            "Use a FairMetric.subspace with protected attributes.",
            argument="refit_metric",
            mentions=("fair_metric",),
            code="conflicting-arguments",
        )
    features = flow.rows(X)
    fair_metric = fair_metric.ordered(features.names)
    sample = sample_of(sample_weight, clusters, len(features.values))
    if compat is not None and (sample_weight is not None or clusters is not None):
        raise ArgumentError(
            "compat is 'paper' with sample_weight or clusters, which the paper's code does not "
            "support. Omit compat, or the weights and clusters.",
            argument="compat",
            mentions=("sample_weight", "clusters"),
            code="conflicting-arguments",
        )
    groups = one_hot_groups_of(one_hot_groups, features)
    kept_groups = groups if one_hot == "keep" else ()
    problem_type, scores = problem_class(flow.scores), flow.scores
    if kept_groups:
        problem_type, scores = problem_type.in_features(scores)
    problem = problem_type(
        scores=scores,
        features=features,
        targets=targets,
        metric=fair_metric,
        penalty=penalty,
        floor=floor if compat is None else None,
        batch_size=batch_size,
        sample=sample,
        kept_groups=kept_groups,
    )
    sums = None if sample is None else PathSums(sample, targets, ratio, floor)
    flowed = problem.run(schedule, n_threads, callback, sums)
    losses = Losses(problem, flowed, ratio)
    value = losses.value(interval)
    path_interval = "normal" if interval == "bootstrap-t" else interval
    path_values = losses.values_along_path(
        path_interval, last=losses.value(path_interval), sums=sums
    )
    all_equal = ratio == "loss" and _are_equal(losses.ratios, value.estimate, problem.engine)
    if all_equal and value.estimate > 1 + _EQUAL_RATIOS:
        # The ratios differ by rounding only, whatever the model.
        value = replace(value, variance=math.nan)
    if interval == "bootstrap-t" and math.isfinite(value.estimate) and value.variance > 0:
        replicates = (
            refit_replicates(
                problem, schedule, ratio, range(n_resamples), seed, n_threads, callback
            )
            if refit_metric
            else losses.bootstrap(n_resamples, seed, n_threads)
        )
        value = replace(value, replicates=replicates)
    pvalue, n_undefined = value.pvalue(delta)
    path = FlowPath(
        np.array(schedule.record, dtype=np.int64),
        schedule.times(),
        np.array([point.estimate for point in path_values]),
        np.array([point.lower_bound(level) for point in path_values]),
    )
    attack = problem.attack(flowed)
    n_repeated = repeated_rows(features, targets, n_threads)
    notes = [*fair_metric.notes, *flow.gap_notes(X)]
    if n_repeated and clusters is None:
        notes.append(_repeats_note(n_repeated, len(targets)))
    if one_hot == "free" and groups:
        notes += filter(None, [find_departure(attack, groups, features.called)])
    if one_hot == "keep" and not groups:
        notes.append(
            Note(
                "no-one-hot-features",
                "one_hot is 'keep', but no one-hot features were found; see one_hot_groups",
            )
        )
    return IndividualResult(
        estimate=value.estimate,
        standard_error=value.standard_error,
        statistic=value.statistic(delta),
        pvalue=pvalue,
        confidence_interval=value.two_sided(level),
        alternative="greater",
        n_rows=len(targets),
        group_sizes={},
        seed=seed,
        engine=problem.engine,
        notes=(
            *_step_notes(problem.stability(schedule), schedule),
            *_value_notes(losses, value, level, all_equal),
            *_undefined_notes(n_undefined, n_resamples),
            *notes,
        ),
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
        stability=problem.stability(schedule),
        loss_floor=losses.floor,
        n_floored=losses.n_weighted(losses.start < losses.floor),
        n_floored_end=losses.n_weighted(losses.end < losses.floor),
        n_nonfinite=losses.n_nonfinite,
        n_dropped=losses.n_nonfinite if losses.as_in_paper and ratio == "loss" else 0,
        error_rates=losses.error_rates,
        confidence_level=level,
        n_resamples=0 if value.replicates is None else n_resamples,
        n_undefined=n_undefined,
        path=path,
        ratios=losses.ratios,
        loss_start=losses.start,
        loss_end=losses.end,
        score_start=_by_row(flowed.start),
        score_end=_by_row(flowed.end),
        units=fair_metric.units,
        refit_metric=refit_metric,
        flow=attack,
        one_hot=one_hot,
        one_hot_groups=tuple(tuple(features.called[j] for j in group) for group in groups),
        n_clusters=None if sample is None else sample.n_persons,
        n_repeated=n_repeated,
        df=value.df,
        sample=sample,
        index=rows_by_label(index, np.arange(len(targets))),
    )


def _step_notes(stability: float, schedule: Schedule) -> Iterator[Note]:
    """Yield a note if the steps are too large for the solver."""
    limits = [(SOLVERS[schedule.solver], "grows")]
    if schedule.solver == "euler":
        limits.append((1.0, "swings"))
    for limit, effect in limits:
        steps = schedule.steps_above(stability, limit)
        if steps:
            which = "all" if steps == schedule.n_steps else f"the first {steps:,} of"
            yield Note(
                "steps-too-large",
                f"2 * penalty * step_size times the largest eigenvalue of the metric is "
                f"{stability:.4g}: above {limit:.4g} ({which} {schedule.n_steps:,} steps) what the "
                f"metric holds back {effect} under {schedule.solver}; take smaller steps",
            )
            return


def _value_notes(
    losses: Losses, value: AuditValue, level: float, all_equal: bool
) -> Iterator[Note]:
    """Yield the notes on the audit value."""
    n = losses.n_weighted(np.ones(len(losses.start), dtype=bool))
    if losses.ratio == "loss":
        if losses.n_nonfinite:
            fate = (
                "were left out, as in the paper's code"
                if losses.as_in_paper
                else "so that nothing can be measured; no row is left out"
            )
            yield Note(
                "ratios-not-finite",
                f"{losses.n_nonfinite:,} of {n:,} rows have a ratio that is not finite, {fate}",
            )
        floored = losses.n_weighted(losses.start < losses.floor)
        if floored:
            yield Note(
                "losses-below-floor",
                f"{floored:,} of {n:,} rows have a loss below the floor of {losses.floor:g}, which "
                "counts instead; their ratios depend on it",
            )
        if all_equal:
            yield Note("equal-ratios", "all ratios are equal, which leaves nothing to test")
    elif losses.has_missing_end_loss:
        yield Note(
            "scores-not-finite",
            "some scores are not finite, so that there is no error rate after the flow",
        )
    elif not losses.n_weighted(losses.wrong_start):
        yield Note(
            "no-error-before-flow",
            "the model makes no error before the flow: a ratio to 0 is not measurable",
        )
    too_few = losses.reason_too_few()
    if too_few is not None:
        yield Note("too-few-independent-units", too_few)
    elif n < 2:
        yield Note("one-row", "one row has no standard error")
    if n < len(losses.start):
        yield Note(
            "rows-of-weight-0",
            f"{len(losses.start) - n:,} of {len(losses.start):,} rows have weight 0",
        )
    if math.isfinite(value.estimate) and value.variance > 0 and not all_equal:
        yield from _skew_notes(losses, value.interval, level, value.df)


def _are_equal(ratios: Floats, estimate: float, engine: str) -> bool:
    """Return whether ratios differ only by rounding, in the precision of the engine."""
    if len(ratios) < 2 or not np.isfinite(ratios).all():
        return False
    rounding = 1e-4 if engine.endswith(("float32", "float16")) else _EQUAL_RATIOS
    return bool(np.ptp(ratios) <= rounding * estimate)


def _repeats_note(n_repeated: int, n_rows: int) -> Note:
    """Return the note that rows repeat others, which matters if they are the same person."""
    return Note(
        "repeated-rows",
        f"{n_repeated:,} of {n_rows:,} rows repeat another one in features and label: if they are "
        "the same people again, and not others who are alike, standard errors are too small and "
        "the test rejects too often; clusters= (the id of the person) takes that into account",
    )


def _undefined_notes(n_undefined: int, n_resamples: int) -> Iterator[Note]:
    """Yield a note if replicates without a value make the bounds wide."""
    if n_undefined > 0.01 * n_resamples:
        yield Note(
            "replicates-without-audit-value",
            f"{n_undefined:,} of {n_resamples:,} replicates have no value (no error before the "
            "flow, or no metric); they count as extreme on either side, which makes the bounds "
            "wide",
        )


def _skew_notes(losses: Losses, interval: str, level: float, df: float) -> Iterator[Note]:
    """Yield notes on bounds that are off because the ratios are skewed."""
    skew, tail = losses.skew(), 1 - level
    clustered = losses.sample is not None and losses.sample.person is not None
    unit = "cluster" if clustered else "row"
    if losses.ratio == "loss" and skew.largest_share > _LARGEST_SHARE:
        yield Note(
            "variance-in-one-unit",
            f"one {unit} carries {100 * skew.largest_share:.2g} % of the variance of the ratios: "
            f"{unit}s that decide may be missing from the sample, and then no interval holds; "
            f"more {unit}s help",
        )
    if interval == "bootstrap-t":
        return
    if df < _FEW_DF:
        yield Note(
            "few-degrees-of-freedom",
            f"few clusters or unequal weights leave {df:.2g} degrees of freedom: where ratios are "
            "skewed, a 5 % test was measured to reject up to 11 % of fair models, and 7 % with "
            "interval='bootstrap-t'",
        )
    excess = skew.excess(level, interval == "log")
    if abs(excess) <= _WORST_EXCESS * tail:
        return
    missed = 100 * min(tail + abs(excess), 1.0)
    effect = (
        f"the upper bound lies too low: about {missed:.2g} % of audit values are above it"
        if excess > 0
        else f"the lower bound lies too high: the test rejects about {missed:.2g} % of fair models"
    )
    yield Note(
        "skewed-ratios",
        f"the ratios are skewed, so that {effect}, not {100 * tail:.3g} %; "
        "interval='bootstrap-t' corrects that",
    )


def _by_row(scores: Floats) -> Floats:
    """Return scores by row; a single score as a vector."""
    return scores[0] if len(scores) == 1 else np.ascontiguousarray(scores.T)
