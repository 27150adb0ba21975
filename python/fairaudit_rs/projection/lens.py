"""The function `projection_test`: checks its arguments and returns the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from .. import arguments
from ..data.groups import attribute_name
from ..data.labels import Label
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError
from ..inference.pvalues import SMALLEST_PVALUE
from ..literals import Alternative, AttributeCombination, Missing, NotionName, ProjectionCalibration
from ..models.distances import Distances
from ..report.notes import Note
from ..report.shared_notes import (
    no_pvalue_note,
    rows_without_group_note,
    smallest_pvalue_note,
)
from ..results.verdict import rejects_at
from .criteria import CriteriaTolerance
from .law import LimitTest
from .notions import Notion
from .question import ProjectionQuestion, pose_notion
from .replicates import rank_of_cost
from .result import CriterionValue, ProjectionResult
from .transport import TransportPlan
from .values import histogram_of, largest_gap, values_of

#: A plan whose relative duality gap is larger than this gets a warning.
_CERTIFIED = 1e-6


def projection_test(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    threshold: float = 0.5,
    distance: Any | Distances = None,
    sensitive_features: Any = None,
    data: Any = None,
    notion: NotionName | Notion = "equal_opportunity",
    attributes: AttributeCombination = "crossed",
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    epsilon: float | Sequence[float] | None = None,
    alternative: Alternative = "two-sided",
    sample_weight: Any = None,
    pos_label: Label = None,
    missing: Missing | None = None,
    bandwidth: float | None = None,
    calibration: ProjectionCalibration = "asymptotic",
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> ProjectionResult:
    r"""Test a notion of group fairness by the distance to the nearest fair distribution.

    Parameters
    ----------
    y_true : array, or str with ``data``, optional
        Labels; not needed for statistical parity.
    y_pred : array, or str with ``data``, optional
        Decisions. By default they follow from ``y_score`` and ``threshold``, or from the model of
        ``distance``.
    y_score : array, or str with ``data``, optional
        Scores; without a model, the distance of a row to the boundary is
        ``|y_score - threshold|``.
    threshold : float
        Rows with at least this score have a positive decision.
    distance : array, `Distances`, or str with ``data``, optional
        The distance of each row to the other decision: ``model.distance(X)`` of a model of
        `fairaudit_rs.models`, or your own numbers (infinite for rows that cannot move).
    sensitive_features : array, several arrays, or str(s) with ``data``
        The attributes whose values define the groups.
    data : frame, path or glob, optional
        See `tabulate`; the other arguments are then names of its columns.
    notion : str or Notion
        ``"statistical_parity"``, ``"equal_opportunity"`` (true positive rates are equal),
        ``"predictive_equality"`` (false positive rates), ``"equalized_odds"`` (both), or a
        `Notion` of your own.
    attributes : {"crossed", "separate"}
        With several sensitive features: groups are their intersections, or each feature must be
        fair by itself, in one joint test ("separate").
    groups, reference : optional
        As in `permutation_test`. With ``attributes="separate"`` the reference is a dict by
        attribute.
    epsilon : float or sequence of float, optional
        Gaps up to this size count as fair; one number, or one per criterion. With more than two
        groups this requires a ``reference``.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"``: only gaps above ``epsilon`` (or 0) are unfair, as "group minus reference".
    sample_weight : array, or str with ``data``, optional
        Weight of each row.
    pos_label : optional
        The value of ``y_true`` and ``y_pred`` that is the positive class.
    missing : optional
        See `tabulate`.
    bandwidth : float, optional
        Bandwidth of the density of the margins near the boundary; 1.06 sd N^(-1/5) by default.
        Permutation p-values do not depend on it.
    calibration : {"asymptotic", "permutation"}
        The limit law, or permutations of the decisions among rows with the same label. These are
        also valid for forests, trees and categorical data, whose margins have no density.
    n_resamples : int
        Number of permutations.
    confidence_level : float
        Level of the intervals of the gaps; the critical value is at one minus this level.
    rng : None, int, SeedSequence, Generator or RandomState
        Source of the seed; ``random_state`` is an alias.
    n_threads : int, optional
        None or -1 takes all cores that the process may use. The result does not depend on it.
    progress : bool or callable, optional
        Of the permutations: True prints; a callable gets (permutations done, permutations in all).

    Returns
    -------
    ProjectionResult

    Notes
    -----
    The null hypothesis is :math:`E[C(X) \phi_j(U, E U)] = 0` for every criterion j; for the named
    notions this means that the rates of the groups are equal. The statistic is the optimal value of

    .. math:: s_N = \min_{0 \le p \le 1} \sum_i p_i d_i \quad\text{subject to}\quad
              \sum_i (1 - 2 C_i) \phi_i p_i = -\sum_i C_i \phi_i,

    the lowest cost of making the data fair [1]_. It is solved exactly: one criterion by selection,
    several groups by a search over their common rate, other criteria by linear programs. The dual
    value certifies it. Under the null hypothesis it converges to
    :math:`\tfrac12 V^\top S^{-1} V`, with S from a kernel estimate of the density of the margins
    at the boundary. This is a weighted sum of chi-squares, whose tail is computed by inverting its
    characteristic function. With ``epsilon`` or a one-sided alternative the p-value is the maximum
    over all fair gaps.

    The limit law needs margins with a density near the boundary. If too few rows lie there, or many
    at the same distance, ``pvalue`` is NaN and ``inconclusive`` has the reason; use
    ``calibration="permutation"`` then. It permutes decisions within a label. If the rates are
    equal, this does not change the distribution, however far from the boundary each group lies. The
    cost of removing the observed gaps is ranked among the costs of removing the permuted gaps, with
    every row placed on both sides of the boundary.

    References
    ----------
    .. [1] Si, N., Murthy, K., Blanchet, J. and Nguyen, V. A. (2021). Testing Group Fairness via
       Optimal Transport Projections. ICML. arXiv:2106.01070

    Examples
    --------
    >>> import numpy as np, fairaudit_rs as fa
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], 4_000)
    >>> y_true = rng.random(4_000) < 0.5
    >>> score = rng.normal(0.4 + 0.2 * y_true + 0.05 * (group == "a"), 0.2)
    >>> result = fa.projection_test(y_true, y_score=score, sensitive_features=group)
    >>> result.pvalue < 0.001, len(result.moves)
    (True, 88)
    """
    calibration = arguments.choice("calibration", calibration, get_args(ProjectionCalibration))
    checked = arguments.check(
        threshold=threshold,
        alternative=alternative,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        rng=rng,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    threshold, alternative = checked.threshold, checked.alternative
    n_resamples, level = checked.n_resamples, checked.confidence_level
    seed, n_threads, callback = checked.seed, checked.n_threads, checked.progress
    width = None if bandwidth is None else arguments.positive("bandwidth", bandwidth)
    model = distance if isinstance(distance, Distances) else None
    if model is not None and data is not None:
        raise ArgumentTypeError(
            "distance is a Distances object, but with data= it must be the name of a column. Pass "
            "arrays instead of data=, or the name of a column.",
            argument="distance",
            mentions=("data",),
        )
    if sensitive_features is None and isinstance(notion, Notion):
        sensitive_features = ()
    table = AuditTable.make(
        data=data,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        distance=distance if model is None else model.values,
        rows_for="projection_test",
        missing=missing,
    )
    return project_table(
        table,
        notion,
        model=model,
        threshold=threshold,
        attributes=attributes,
        groups=groups,
        reference=reference,
        epsilon=epsilon,
        alternative=alternative,
        pos_label=pos_label,
        width=width,
        calibration=calibration,
        n_resamples=n_resamples,
        level=level,
        seed=seed,
        n_threads=n_threads,
        callback=callback,
    )


def project_table(
    table: AuditTable,
    notion: NotionName | Notion,
    *,
    model: Distances | None = None,
    threshold: float = 0.5,
    attributes: AttributeCombination = "crossed",
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    epsilon: float | Sequence[float] | None = None,
    alternative: Alternative = "two-sided",
    pos_label: Label = None,
    width: float | None = None,
    calibration: ProjectionCalibration = "asymptotic",
    n_resamples: int = 999,
    level: float = 0.95,
    seed: int = 0,
    n_threads: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> ProjectionResult:
    """Test a notion on a table, like `projection_test` but with arguments that are checked."""
    question = pose_notion(
        table,
        notion,
        distances=model,
        threshold=threshold,
        attributes=attributes,
        groups=groups,
        reference=reference,
        pos_label=pos_label,
        n_threads=n_threads,
        exchanging=calibration == "permutation",
    )
    criteria = question.criteria
    tolerance = _tolerance(question, epsilon, alternative)
    if calibration == "permutation" and not tolerance.is_sharp:
        raise ArgumentError(
            f"epsilon is {epsilon!r} with calibration='permutation'; accepted: None or 0, because "
            "groups that may differ cannot be exchanged",
            argument="epsilon",
            mentions=("calibration",),
        )
    plan = criteria.project(tolerance)
    width = criteria.bandwidth() if width is None else width
    curvature = None if math.isnan(width) else criteria.curvature(width)
    scale = criteria.n_rows / criteria.weight
    statistic = plan.primal * scale
    test = LimitTest.from_criteria(criteria, tolerance, statistic, curvature, 1 - level)
    if plan.refusal is not None:
        test = replace(test, pvalue=math.nan, critical_value=math.nan, inconclusive=plan.refusal)
    elif calibration == "permutation":
        outcome = rank_of_cost(criteria, tolerance, n_resamples, seed, callback)
        test = replace(
            test,
            pvalue=outcome.pvalue,
            critical_value=math.nan,
            inconclusive=None,
            note=None,
        )
    values = values_of(criteria, tolerance, level)
    estimate, error, interval = largest_gap(values, criteria, level)
    moves = question.moves(plan)
    limit, histogram = histogram_of(question, moves, width)
    drawn = calibration == "permutation" and math.isfinite(statistic)
    return ProjectionResult(
        estimate=estimate,
        standard_error=error,
        statistic=statistic,
        pvalue=test.pvalue,
        confidence_interval=interval,
        alternative=alternative,
        n_rows=criteria.n_rows,
        group_sizes=question.group_sizes(),
        seed=seed,
        engine=calibration,
        notes=tuple(_result_notes(question, plan, test, values, calibration, level)),
        distance=statistic / criteria.n_rows,
        critical_value=test.critical_value,
        primal_value=statistic,
        dual_value=plan.dual * scale,
        duality_gap=(plan.primal - plan.dual) * scale if math.isfinite(statistic) else math.nan,
        residual=plan.residual,
        bandwidth=width,
        sensitivity=test.sensitivity,
        effective_rows=test.effective_rows,
        moves=moves,
        moved=moves.summary(),
        criteria=values,
        inconclusive=test.inconclusive,
        notion=question.notion,
        calibration=calibration,
        attribute=attribute_name(question.features),
        n_missing=question.n_missing,
        n_resamples=n_resamples if drawn else 0,
        n_undefined=outcome.n_undefined if drawn else 0,
        pvalue_interval=outcome.pvalue_interval if drawn else (test.pvalue, test.pvalue),
        confidence_level=level,
        histogram=histogram,
        histogram_limit=limit,
        null_distribution=outcome.null if drawn else np.empty(0),
    )


def _tolerance(question: ProjectionQuestion, epsilon: Any, alternative: str) -> CriteriaTolerance:
    """Return the bounds between which gaps count as fair."""
    m = len(question.criteria.gap)
    accepted = f"None, a number of at least 0, or {m} of them"
    values = np.asarray(0.0 if epsilon is None else epsilon)
    if values.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"epsilon is {epsilon!r}; accepted: {accepted}", argument="epsilon")
    if values.ndim > 1 or (values.ndim == 1 and len(values) != m):
        raise ArgumentError(f"epsilon is {epsilon!r}; accepted: {accepted}", argument="epsilon")
    values = np.broadcast_to(values, (m,)).astype(np.float64)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ArgumentError(f"epsilon is {epsilon!r}; accepted: {accepted}", argument="epsilon")
    directed = bool(values.any()) or alternative != "two-sided"
    if directed and question.needs_reference:
        raise ArgumentError(
            f"reference is None with {len(question.keys)} groups and "
            + (f"alternative={alternative!r}" if not values.any() else f"epsilon={epsilon!r}")
            + ". Pass reference=, the group that the others are compared with.",
            argument="reference",
            mentions=("epsilon", "alternative"),
            code="missing-argument",
        )
    unbounded = np.full(m, np.inf)
    low = -unbounded if alternative == "greater" else -values
    high = unbounded if alternative == "less" else values
    return CriteriaTolerance(low, high)


def _result_notes(
    question: ProjectionQuestion,
    plan: TransportPlan,
    test: LimitTest,
    values: tuple[CriterionValue, ...],
    calibration: str,
    level: float,
) -> Iterator[Note]:
    """Yield the notes on a projection."""
    if question.n_missing:
        features = " or ".join(question.features)
        yield rows_without_group_note(question.n_missing, features, question.n_rows)
    yield from question.notes
    if test.inconclusive is not None:
        yield no_pvalue_note(test.inconclusive)
    distances = question.distances
    if distances is not None and distances.upper_bound:
        missed = f"; none was found for {distances.n_not_found:,} rows, which stay where they are"
        yield Note(
            "distances-are-upper-bounds",
            "distances come from a search for the boundary and are upper bounds, and so is the "
            "statistic" + (missed if distances.n_not_found else ""),
        )
    if plan.refusal is None and plan.primal - plan.dual > _CERTIFIED * plan.primal:
        yield Note(
            "plan-not-optimal",
            f"the plan may cost up to {(plan.primal - plan.dual) / plan.primal:.2g} of its cost "
            "more than the best one: the program is badly scaled",
        )
    if test.note is not None:
        yield test.note
    if test.pvalue == SMALLEST_PVALUE:
        yield smallest_pvalue_note()
    if calibration == "asymptotic" and test.inconclusive is None:
        verdicts = {rejects_at(pvalue, 1 - level) for _, pvalue in test.sensitivity}
        if len(verdicts) > 1:
            low, middle, high = (f"{pvalue:.3g}" for _, pvalue in test.sensitivity)
            yield Note(
                "verdict-depends-on-bandwidth",
                f"the verdict depends on the bandwidth: p is {low}, {middle} and {high} at half, "
                "once and twice the bandwidth",
            )
    if len(values) > 1:
        yield Note(
            "largest-of-gaps-without-error",
            "the largest of several gaps has no standard error; its interval comes from Bonferroni "
            "intervals of all criteria",
        )
