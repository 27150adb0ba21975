"""The projection lens: how far to the nearest fair distribution, and who would move (Si et al.)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _native, arguments
from ._criteria import BANDWIDTHS, Criteria, Curvature, Tolerance, UnitCriteria
from ._projection_permutation import permuted
from ._projection_rows import ProjectionDesign, Question
from ._transport import Plan
from .data.groups import group_name
from .data.labels import Label
from .errors import ArgumentError, ArgumentTypeError
from .inference.intervals import range_of_pairs
from .inference.proportions import newcombe
from .inference.pvalues import LEAST
from .moves import Moves, MoveSummary
from .notions import Notion
from .results.chart import Chart
from .results.result import Result
from .results.verdict import rejects
from .results.words import number, p_text

if TYPE_CHECKING:
    from .models.distances import Distances


#: With fewer rows of a decision than this, expected under equal rates, a rate is not normal enough.
_FEW_DECISIONS = 4
#: With fewer effective rows in the window the density near the boundary is unknown.
_FEW_ROWS = 10
#: With fewer distinct margins in the window, most of them shared, it has no density but atoms.
_FEW_MARGINS = 100
#: What this sample says that a 5 % test of each criterion would reject; beyond it, the limit law
#: does not fit the margins.
_SIZES = (0.01, 0.10)
_BINS = 60
#: Plans whose certificate is worse than this, relative to their cost, say so.
_CERTIFIED = 1e-6


@dataclass(frozen=True)
class CriterionValue:
    """One criterion: two rates that must be equal, ``first`` minus ``second``.

    A criterion of your own has a name and a gap only.
    """

    name: str
    attribute: str
    first: Any
    second: Any
    first_value: float
    second_value: float
    gap: float
    standard_error: float
    confidence_interval: tuple[float, float]
    #: The gaps that count as fair.
    tolerance: tuple[float, float]


@dataclass(frozen=True, repr=False, eq=False)
class ProjectionResult(Result):
    """What `projection_test` found; see there for what the numbers mean.

    Attributes
    ----------
    statistic : float
        s_N = N P: the sum of the moved fractions times their distances.
    distance : float
        P, the distance from the data to the nearest fair distribution; infinite when no movement
        makes the criteria hold.
    pvalue : float
        NaN when the test is inconclusive.
    critical_value : float
        The limit law rejects when the statistic exceeds it (at the level 1 - confidence_level);
        NaN for ``calibration="permutation"``, which compares other costs.
    primal_value, dual_value, duality_gap : float
        The certificate of the statistic: the cost of the plan, a lower bound for any plan, and
        their difference.
    residual : float
        What the plan leaves of the worst criterion, by rounding.
    bandwidth : float
        Of the kernel estimate of the density of the margins at the boundary.
    sensitivity : tuple of (float, float)
        What the limit law gives at half, once and twice the bandwidth, as (bandwidth, p-value);
        also when the test is inconclusive, so that nothing is hidden: these are then no p-values.
    effective_rows : float
        Effective number of rows in the window, of the criterion that has the fewest.
    moves : Moves
        The smallest set of rows, and the smallest moves, that remove the bias.
    moved : tuple of MoveSummary
        The moves by group, label and direction.
    criteria : tuple of CriterionValue
        The gaps that must vanish.
    inconclusive : str or None
        Why there is no p-value.
    notion, calibration, attribute : str
        What was asked.
    n_missing : int
        Rows that belong to no group because a sensitive feature is missing.
    n_resamples, n_undefined : int
        Replicates of ``calibration="permutation"``, and those whose gaps cannot be removed, which
        count as extreme.
    pvalue_interval : tuple of float
        Clopper-Pearson interval (99 %) of the p-value of infinitely many replicates.
    confidence_level : float
        Level of the intervals, and of the critical value.
    histogram : ndarray
        Weight of the signed margins by group (rows) in equal bins around the boundary.
    histogram_limit : float
        They reach from minus this to this.
    null_distribution : ndarray
        With ``calibration="permutation"``, what it costs to remove the gaps of each replicate.
    """

    distance: float
    critical_value: float
    primal_value: float
    dual_value: float
    duality_gap: float
    residual: float
    bandwidth: float
    sensitivity: tuple[tuple[float, float], ...]
    effective_rows: float
    moves: Moves
    moved: tuple[MoveSummary, ...]
    criteria: tuple[CriterionValue, ...]
    inconclusive: str | None
    notion: str
    calibration: str
    attribute: str
    n_missing: int
    n_resamples: int
    n_undefined: int
    pvalue_interval: tuple[float, float]
    confidence_level: float
    histogram: NDArray[np.float64]
    histogram_limit: float
    null_distribution: NDArray[np.float64]

    _bulky = Result._bulky | {"moves", "histogram"}

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        alpha = 1 - self.confidence_level
        if self.inconclusive is not None:
            verdict = f"the test is inconclusive: {self.inconclusive}"
        else:
            found = rejects(self.pvalue, alpha)
            evidence = "more than chance explains" if found else "within what chance explains"
            kind = "permutation-calibrated" if self.calibration == "permutation" else "asymptotic"
            tail = f"({p_text(self.pvalue)}, {kind} projection test)"
            verdict = f"that is {evidence} at the {100 * alpha:.3g} % level {tail}"
            if not found:
                verdict += "; that alone does not show fairness"
        return f"{self.notion}: {self._gaps()}. {self._distance()}; {verdict}."

    def _gaps(self) -> str:
        tolerated = any(criterion.tolerance != (0.0, 0.0) for criterion in self.criteria)
        asked = " (tolerance given)" if tolerated else ""
        if len(self.criteria) == 1 and not math.isnan(self.criteria[0].first_value):
            one = self.criteria[0]
            low, high = one.confidence_interval
            return (
                f"{one.name} is {number(one.first_value)} for {group_name(one.first)} and "
                f"{number(one.second_value)} for {group_name(one.second)}, a gap of "
                f"{number(one.gap)} ({100 * self.confidence_level:g} % interval {number(low)} to "
                f"{number(high)}){asked}"
            )
        return (
            f"the largest of {len(self.criteria)} gaps is {number(self.estimate)}"
            if len(self.criteria) > 1
            else f"{self.criteria[0].name} is {number(self.estimate)}"
        ) + asked

    def _distance(self) -> str:
        if math.isinf(self.distance):
            return "No movement of the rows makes the model fair"
        if not len(self.moves):
            return "The data are fair as they are"
        return (
            f"The nearest fair distribution is {number(self.distance)} away: {len(self.moves):,} "
            f"of {self.n_rows:,} rows change sides, the farthest by "
            f"{number(float(self.moves.distance.max()))}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per criterion."""
        return [
            {
                "notion": self.notion,
                "metric": criterion.name,
                "attribute": criterion.attribute,
                "first": group_name(criterion.first),
                "second": group_name(criterion.second),
                "first_value": criterion.first_value,
                "second_value": criterion.second_value,
                "gap": criterion.gap,
                "standard_error": criterion.standard_error,
                "low": criterion.confidence_interval[0],
                "high": criterion.confidence_interval[1],
                "statistic": self.statistic,
                "distance": self.distance,
                "pvalue": self.pvalue,
            }
            for criterion in self.criteria
        ]

    def plot(self) -> Chart:
        """Return a chart of the margins near the boundary by group, and of the moves."""
        from .charts import margins_and_moves

        return margins_and_moves(
            list(self.group_sizes), self.histogram, self.histogram_limit, self.moves, self.notion
        )


def projection_test(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    threshold: float = 0.5,
    distance: Any | Distances = None,
    sensitive_features: Any = None,
    data: Any = None,
    notion: str | Notion = "equal_opportunity",
    attributes: str = "crossed",
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    epsilon: float | Sequence[float] | None = None,
    alternative: str = "two-sided",
    sample_weight: Any = None,
    pos_label: Label = None,
    bandwidth: float | None = None,
    calibration: str = "asymptotic",
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
        Decisions. They follow from ``y_score`` and ``threshold``, or from the model that
        ``distance`` comes from, when they are not given.
    y_score : array, or str with ``data``, optional
        Scores; without a model, a row is ``|y_score - threshold|`` away from the boundary.
    threshold : float
        A row with a score of at least this is decided positively.
    distance : array, `Distances`, or str with ``data``, optional
        How far each row has to move for the other decision: ``model.distance(X)`` of a model of
        `fairaudit_rs.models`, or numbers of your own (infinite for rows that cannot move).
    sensitive_features : array, several arrays, or str(s) with ``data``
        The attributes whose values make the groups.
    data : frame, path or glob, optional
        See `tabulate`; the other arguments are then names of its columns.
    notion : str or Notion
        ``"statistical_parity"``, ``"equal_opportunity"`` (true positive rates are equal),
        ``"predictive_equality"`` (false positive rates), ``"equalized_odds"`` (both), or a
        `Notion` of your own.
    attributes : {"crossed", "separate"}
        Several sensitive features make their intersections, or must each be fair by itself, all at
        once ("separate").
    groups, reference : optional
        As in `permutation_test`. With ``attributes="separate"`` the reference is a dict by
        attribute.
    epsilon : float or sequence of float, optional
        Gaps up to this count as fair; one number, or one per criterion. More than two groups then
        need a ``reference``.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"``: only gaps above ``epsilon`` (or 0) are unfair, as "group minus reference".
    sample_weight : array, or str with ``data``, optional
        Weight of each row.
    pos_label : optional
        The value of ``y_true`` and ``y_pred`` that is the positive class.
    bandwidth : float, optional
        Of the density of the margins near the boundary; 1.06 sd N^(-1/5) by default. It plays no
        part in the p-value of a permutation.
    calibration : {"asymptotic", "permutation"}
        The limit law, or replicates in which rows of one label exchange their decisions: valid
        for forests, trees and categorical data too, whose margins have no density.
    n_resamples : int
        Replicates of the permutation.
    confidence_level : float
        Level of the intervals of the gaps; the critical value has one minus it.
    rng : None, int, SeedSequence or Generator
        Source of the seed; ``random_state`` is an alias.
    n_threads : int, optional
        None takes all cores that the process may use. The result does not depend on it.
    progress : bool or callable, optional
        Of the permutation: True prints; a callable gets (replicates done, replicates in all).

    Returns
    -------
    ProjectionResult

    Notes
    -----
    The null hypothesis is :math:`E[C(X) \phi_j(U, E U)] = 0` for every criterion j, for the notions
    of groups: their rates are equal. The statistic is the optimal value of

    .. math:: s_N = \min_{0 \le p \le 1} \sum_i p_i d_i \quad\text{subject to}\quad
              \sum_i (1 - 2 C_i) \phi_i p_i = -\sum_i C_i \phi_i,

    the least cost of making the data fair [1]_. It is solved exactly: one criterion by selection,
    several groups by a search over their common rate, any other criteria by linear programs; the
    dual value certifies it. Under the null hypothesis it converges to
    :math:`\tfrac12 V^\top S^{-1} V`, with S from a kernel estimate of the density of the margins
    at the boundary: a weighted sum of chi-squares, whose tail is found by inverting its
    characteristic function. With ``epsilon`` or a one-sided alternative the p-value is the largest
    one over all fair gaps.

    The limit law needs margins with a density near the boundary. When too few rows lie there, or
    many at the same distance, ``pvalue`` is NaN and ``inconclusive`` says why;
    ``calibration="permutation"`` is the way out. Decisions are exchanged within a label, which
    where the rates are equal changes nothing in law, however far from the boundary each group
    lies. The cost of removing the observed gaps is ranked among the costs of removing those that
    chance makes, with rows on either side of the boundary standing for each other.

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
    alternative = arguments.choice("alternative", alternative, ("two-sided", "greater", "less"))
    calibration = arguments.choice("calibration", calibration, ("asymptotic", "permutation"))
    level = arguments.level("confidence_level", confidence_level)
    n_resamples = arguments.n_resamples(n_resamples)
    n_threads = arguments.n_threads(n_threads)
    callback = arguments.progress(progress)
    seed = arguments.seed(rng, random_state)
    width = None if bandwidth is None else arguments.positive("bandwidth", bandwidth)
    design = ProjectionDesign(
        y_true, y_pred, y_score, threshold, distance, sensitive_features, data, notion, attributes,
        groups, reference, sample_weight, pos_label, n_threads,
    )  # fmt: skip
    question = design.pose()
    criteria = question.criteria
    tolerance = _tolerance(question, epsilon, alternative)
    if calibration == "permutation" and not _is_sharp(tolerance):
        raise ArgumentError(
            f"epsilon is {epsilon!r} with calibration='permutation'; accepted: None or 0, because "
            "groups that may differ cannot be exchanged"
        )
    plan = criteria.project(tolerance)
    width = criteria.bandwidth() if width is None else width
    curvature = None if math.isnan(width) else criteria.curvature(width)
    scale = criteria.n_rows / criteria.weight
    statistic = math.inf if plan is None else plan.primal * scale
    test = _Test.of(criteria, tolerance, statistic, curvature, 1 - level)
    if plan is None:
        reason = criteria.why_not(tolerance)
        test = replace(test, pvalue=math.nan, critical_value=math.nan, inconclusive=reason)
    elif calibration == "permutation":
        outcome = permuted(question, tolerance, n_resamples, seed, n_threads, callback)
        test = replace(
            test, pvalue=outcome.pvalue, critical_value=math.nan, inconclusive=None, note=None,
        )  # fmt: skip
    values = _values(criteria, tolerance, level)
    estimate, error, interval = _largest(values, criteria, level)
    exchangeable = plan is not None and _is_sharp(tolerance) and criteria.columns.weight is None
    nobody = Plan(np.zeros(0, dtype=np.int64), np.zeros(0), math.inf, math.inf, math.nan)
    found = plan or nobody
    moves = question.moves(found)
    limit, histogram = _histogram(question, moves, width)
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
        warnings=tuple(_warnings(question, plan, test, values, calibration, level, exchangeable)),
        distance=statistic / criteria.n_rows,
        critical_value=test.critical_value,
        primal_value=statistic,
        dual_value=found.dual * scale,
        duality_gap=(found.primal - found.dual) * scale if math.isfinite(statistic) else math.nan,
        residual=found.residual,
        bandwidth=width,
        sensitivity=test.sensitivity,
        effective_rows=test.effective_rows,
        moves=moves,
        moved=moves.summary(),
        criteria=values,
        inconclusive=test.inconclusive,
        notion=question.notion,
        calibration=calibration,
        attribute=" and ".join(question.features),
        n_missing=question.n_missing,
        n_resamples=n_resamples if drawn else 0,
        n_undefined=outcome.n_undefined if drawn else 0,
        pvalue_interval=outcome.pvalue_interval if drawn else (test.pvalue, test.pvalue),
        confidence_level=level,
        histogram=histogram,
        histogram_limit=limit,
        null_distribution=outcome.null if drawn else np.empty(0),
    )


@dataclass(frozen=True)
class _Test:
    """A p-value with what it rests on."""

    pvalue: float
    critical_value: float
    sensitivity: tuple[tuple[float, float], ...] = ()
    effective_rows: float = math.nan
    inconclusive: str | None = None
    note: str | None = None

    @classmethod
    def of(
        cls,
        criteria: Criteria,
        tolerance: Tolerance,
        statistic: float,
        curvature: Curvature | None,
        alpha: float,
    ) -> _Test:
        """Return the test by the limit law."""
        wide = tolerance.widened()
        fair = bool(((criteria.gap >= wide.low) & (criteria.gap <= wide.high)).all())
        nothing = cls(math.nan, math.nan)
        if curvature is None:
            if fair:
                return replace(nothing, pvalue=1.0)
            return replace(nothing, inconclusive="the distances to the boundary do not vary")
        rows = float(curvature.effective_rows.min())
        laws = [_Law(criteria, tolerance, matrix) for matrix in curvature.matrices]
        if not all(law.exists for law in laws):
            reason = (
                "some criteria are combinations of others"
                if (np.diag(curvature.matrix) > 0).all()
                else "no rows lie near the boundary, whose density the limit law needs"
            )
            return replace(
                nothing, effective_rows=rows, pvalue=1.0 if fair else math.nan,
                inconclusive=None if fair else reason,
            )  # fmt: skip
        critical = laws[1].critical_value(alpha)
        if fair:
            return cls(1.0, critical, effective_rows=rows)
        sensitivity = tuple(
            (factor * curvature.bandwidth, max(law.tail(statistic), LEAST))
            for factor, law in zip(BANDWIDTHS, laws, strict=True)
        )
        pvalue = sensitivity[1][1]
        doubt = _doubt(criteria, curvature)
        if doubt is None:
            bound = "p is an upper bound: with so many tolerances the law is that of none"
            note = bound if laws[1].is_bound else None
            return cls(pvalue, critical, sensitivity, rows, note=note)
        reason, rejects_too_rarely = doubt
        if rejects_too_rarely and rejects(pvalue, alpha):
            note = f"{reason}; it rejects all the same"
            return cls(pvalue, critical, sensitivity, rows, note=note)
        return cls(math.nan, math.nan, sensitivity, rows, inconclusive=reason)


class _Law:
    """The law of the statistic under the least favourable fair gaps."""

    def __init__(self, criteria: Criteria, tolerance: Tolerance, matrix: NDArray[Any]) -> None:
        self.covariance, self.matrix = criteria.covariance, matrix
        root = math.sqrt(criteria.n_rows)
        self.low, self.high = tolerance.low * root, tolerance.high * root
        self.simple = tolerance.simple
        #: Whether the tail is an upper bound, see `box_tail` of the core.
        self.is_bound = False
        scale = np.sqrt(np.diag(matrix))
        self.exists = bool((scale > 0).all()) and bool(
            np.linalg.eigvalsh(matrix / np.outer(scale, scale)).min() > 1e-10
        )

    @cached_property
    def _weights(self) -> list[float]:
        return _native.quadratic_weights(self.covariance.ravel(), self.matrix.ravel())

    def _arguments(self) -> tuple[Any, ...]:
        return self.covariance.ravel(), self.matrix.ravel(), self.low, self.high

    def tail(self, statistic: float) -> float:
        """Return the p-value."""
        if self.simple:
            return _native.weighted_chi_square_tail(self._weights, statistic)
        tail, self.is_bound = _native.box_tail(statistic, *self._arguments())
        return tail

    def critical_value(self, alpha: float) -> float:
        """Return the value that is exceeded with probability alpha."""
        if self.simple:
            return _native.weighted_chi_square_quantile(self._weights, alpha)
        return _native.box_quantile(alpha, *self._arguments())


def _doubt(criteria: Criteria, curvature: Curvature) -> tuple[str, bool] | None:
    """Say why the limit law cannot be trusted here, and whether it errs on the safe side."""
    fewest, which = criteria.fewest_decisions()
    if fewest < _FEW_DECISIONS:
        few = f"only {fewest:.2g} rows {which} are expected; the limit law needs {_FEW_DECISIONS}"
        return few, False
    rows = curvature.effective_rows
    if (rows < _FEW_ROWS).any():
        return (
            f"only {float(rows.min()):.3g} effective rows lie near the boundary (within a "
            f"bandwidth of {curvature.bandwidth:.3g}); the limit law needs {_FEW_ROWS}"
        ), False
    distinct, near = criteria.distinct_margins(curvature.bandwidth, _FEW_MARGINS)
    if distinct < min(_FEW_MARGINS, near / 2):
        return (
            f"the {near:,} rows within a bandwidth of the boundary have only {distinct} distinct "
            "margins (atoms, as those of trees, forests and categorical features)"
        ), False
    sizes = [criteria.predicted_size(curvature, j, 0.05) for j in range(len(rows))]
    least, most = min(sizes), max(sizes)
    margins = (
        "the cost of small gaps does not follow the limit law (margins with atoms, as those of "
        "trees and of categorical features, a dip near the boundary, or few rows): a 5 % test "
        "would reject"
    )
    if most > _SIZES[1]:
        return f"{margins} {100 * most:.2g} % of such data were they fair", False
    if least < _SIZES[0]:
        return f"{margins} only {100 * least:.2g} % of such data were they fair", True
    return None


def _tolerance(question: Question, epsilon: Any, alternative: str) -> Tolerance:
    """Return the bounds between which gaps count as fair."""
    m = len(question.criteria.gap)
    accepted = f"None, a number of at least 0, or {m} of them"
    values = np.asarray(0.0 if epsilon is None else epsilon)
    if values.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"epsilon is {epsilon!r}; accepted: {accepted}")
    if values.ndim > 1 or (values.ndim == 1 and len(values) != m):
        raise ArgumentError(f"epsilon is {epsilon!r}; accepted: {accepted}")
    values = np.broadcast_to(values, (m,)).astype(np.float64)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ArgumentError(f"epsilon is {epsilon!r}; accepted: {accepted}")
    directed = bool(values.any()) or alternative != "two-sided"
    if directed and question.needs_reference:
        raise ArgumentError(
            f"reference is None with {len(question.keys)} groups and "
            + (f"alternative={alternative!r}" if not values.any() else f"epsilon={epsilon!r}")
            + "; accepted: the group that the others are compared with"
        )
    endless = np.full(m, np.inf)
    low = -endless if alternative == "greater" else -values
    high = endless if alternative == "less" else values
    return Tolerance(low, high)


def _is_sharp(tolerance: Tolerance) -> bool:
    """Whether no gap but 0 is tolerated on any side that is looked at."""
    bounds = np.concatenate([tolerance.low, tolerance.high])
    return not bounds[np.isfinite(bounds)].any()


def _values(criteria: Criteria, tolerance: Tolerance, level: float) -> tuple[CriterionValue, ...]:
    errors = np.sqrt(np.diag(criteria.covariance) / criteria.n_rows)
    z = _native.normal_quantile(0.5 + level / 2)
    return tuple(
        _value(criteria, j, float(errors[j]), z, (float(low), float(high)))
        for j, (low, high) in enumerate(zip(tolerance.low, tolerance.high, strict=True))
    )


def _value(
    criteria: Criteria, j: int, error: float, z: float, tolerance: tuple[float, float]
) -> CriterionValue:
    gap = float(criteria.gap[j])
    interval = (gap - z * error, gap + z * error)
    if not isinstance(criteria, UnitCriteria):
        name = criteria.values.names[j]  # type: ignore[attr-defined]
        nan = math.nan
        return CriterionValue(name, "", None, None, nan, nan, gap, error, interval, tolerance)
    criterion = criteria.criteria[j]
    first, second = (float(rate[j]) for rate in criteria.rates)
    if criteria.columns.weight is None:
        sizes = [float(size[j]) for size in criteria.sizes]
        interval = newcombe((first, 0.0, 0.0, sizes[0]), (second, 0.0, 0.0, sizes[1]), z)
    return CriterionValue(
        criterion.metric, criterion.attribute, criterion.first, criterion.second, first, second,
        gap, error, (max(interval[0], -1.0), min(interval[1], 1.0)), tolerance,
    )  # fmt: skip


def _largest(
    values: tuple[CriterionValue, ...], criteria: Criteria, level: float
) -> tuple[float, float, tuple[float, float]]:
    """Return the largest gap, its standard error and its interval."""
    if len(values) == 1:
        one = values[0]
        return one.gap, one.standard_error, one.confidence_interval
    each = 1 - (1 - level) / len(values)
    z = _native.normal_quantile(0.5 + each / 2)
    wide = [_value(criteria, j, v.standard_error, z, v.tolerance) for j, v in enumerate(values)]
    interval = range_of_pairs([value.confidence_interval for value in wide])
    return max(abs(value.gap) for value in values), math.nan, interval


def _histogram(question: Question, moves: Moves, width: float) -> tuple[float, NDArray[np.float64]]:
    """Return how far the histogram of the margins reaches, and its bins by group."""
    farthest = float(moves.distance.max()) if len(moves) else 0.0
    limit = max(1.5 * farthest, 3 * width if width > 0 else 0.0)
    if not limit > 0:
        limit = 1.0
    criteria = question.criteria
    counts = _native.margin_histogram(
        criteria.columns.native, criteria.n_units, limit, _BINS, criteria.n_threads
    ).reshape(criteria.n_units, _BINS)
    return limit, question.by_group(counts)


def _warnings(
    question: Question,
    plan: Plan | None,
    test: _Test,
    values: tuple[CriterionValue, ...],
    calibration: str,
    level: float,
    exchangeable: bool,
) -> list[str]:
    """Say what a reader must know besides the numbers."""
    alpha = 1 - level
    warnings = []
    if question.n_missing:
        warnings.append(
            f"{question.n_missing:,} of {question.n_rows:,} rows have no value of "
            f"{' or '.join(question.features)} and belong to no group"
        )
    if test.inconclusive is not None:
        way_out = "; calibration='permutation' gives a valid one" if exchangeable else ""
        warnings.append(f"no p-value: {test.inconclusive}{way_out}")
    distances = question.distances
    if distances is not None and distances.upper_bound:
        missed = f"; none was found for {distances.n_not_found:,} rows, which stay where they are"
        warnings.append(
            "distances come from a search for the boundary and are upper bounds, and so is the "
            "statistic" + (missed if distances.n_not_found else "")
        )
    if plan is not None and plan.primal - plan.dual > _CERTIFIED * plan.primal:
        warnings.append(
            f"the plan may cost up to {(plan.primal - plan.dual) / plan.primal:.2g} of its cost "
            "more than the best one: the program is badly scaled"
        )
    if test.note is not None:
        warnings.append(test.note)
    if test.pvalue == LEAST:
        warnings.append("p is below the smallest number that can be told from 0")
    if calibration == "asymptotic" and test.inconclusive is None:
        verdicts = {rejects(pvalue, alpha) for _, pvalue in test.sensitivity}
        if len(verdicts) > 1:
            low, middle, high = (f"{pvalue:.3g}" for _, pvalue in test.sensitivity)
            warnings.append(
                f"the verdict depends on the bandwidth: p is {low}, {middle} and {high} at half, "
                "once and twice the bandwidth"
            )
    if len(values) > 1:
        warnings.append(
            "the largest of several gaps has no standard error; its interval comes from Bonferroni "
            "intervals of all criteria"
        )
    return warnings
