"""Intervals for values, gaps and ratios of a metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native, arguments
from ..data.cells import Cells
from ..data.groups import group_name, label, pairs_of
from ..data.labels import Label
from ..errors import ArgumentError
from ..inference.intervals import (
    NOTHING,
    Bootstrap,
    Interval,
    Pair,
    bootstrap_interval,
    range_of_pairs,
    simultaneous_factor,
)
from ..inference.proportions import newcombe, wilson
from ..metrics.metric import Metric
from ..results.result import Result
from ..results.words import number
from .correlation import CorrelationProblem
from .joint import JointProblem
from .problem import Problem
from .question import Design, Question

METHODS = ("auto", "score", "studentized", "delta", "basic", "percentile")
_MANY_UNDEFINED = 0.01


@dataclass(frozen=True)
class Estimate:
    """A value of a group, or a gap or ratio of two, with its interval."""

    kind: str
    first: Any
    second: Any
    estimate: float
    standard_error: float
    confidence_interval: tuple[float, float]


@dataclass(frozen=True, repr=False, eq=False)
class IntervalResult(Result):
    """What `intervals` found; ``estimate`` is the gap of two groups, or the largest gap of more.

    Nothing is tested: ``statistic`` and ``pvalue`` are NaN.

    Attributes
    ----------
    metric : str
        Name of the metric.
    values, gaps, ratios : tuple of Estimate
        The metric of each group; the difference and the ratio of each pair. Each interval alone
        has the confidence level.
    simultaneous : tuple of Estimate
        The differences again, with intervals that all hold together.
    largest_gap : Estimate
        The largest difference of any two groups, from the simultaneous intervals.
    method : str
        How the intervals were made.
    n_resamples : int
        Bootstrap replicates; 0 when the method needs none.
    undefined_share : float
        Share of the replicates in which some group has no value; they widen the intervals.
    n_missing : int
        Rows that belong to no group because a sensitive feature is missing.
    confidence_level : float
        Level of the intervals.
    """

    metric: str
    values: tuple[Estimate, ...]
    gaps: tuple[Estimate, ...]
    ratios: tuple[Estimate, ...]
    simultaneous: tuple[Estimate, ...]
    largest_gap: Estimate
    method: str
    n_resamples: int
    undefined_share: float
    n_missing: int
    confidence_level: float

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        low, high = self.confidence_interval
        who = (
            f"{group_name(self.values[0].first)} minus {group_name(self.values[1].first)}"
            if len(self.values) == 2
            else "the largest, of {} and {}".format(*self._furthest())
        )
        interval = (
            "no interval"
            if math.isnan(low)
            else f"{100 * self.confidence_level:g} % {self.method} interval {number(low)} to "
            f"{number(high)}"
        )
        return f"{self.metric}: the gap, {who}, is {number(self.estimate)} ({interval})."

    def _furthest(self) -> tuple[str, str]:
        least, most = (pick(self.values, key=lambda value: value.estimate) for pick in (min, max))
        return group_name(most.first), group_name(least.first)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per estimate."""
        everything = (
            *self.values, *self.gaps, *self.ratios, *self.simultaneous, self.largest_gap,
        )  # fmt: skip
        return [
            {
                "metric": self.metric,
                "kind": entry.kind,
                "first": None if entry.first is None else group_name(entry.first),
                "second": None if entry.second is None else group_name(entry.second),
                "estimate": entry.estimate,
                "standard_error": entry.standard_error,
                "low": entry.confidence_interval[0],
                "high": entry.confidence_interval[1],
            }
            for entry in everything
        ]


def intervals(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    sensitive_features: Any = None,
    data: Any = None,
    metric: str | Metric,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    method: str = "auto",
    clusters: Any = None,
    sample_weight: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    n_resamples: int = 9_999,
    confidence_level: float = 0.95,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> IntervalResult:
    r"""Give intervals for a metric in each group, its gaps, its ratios and its largest gap.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference : optional
        See `permutation_test`. Correlations, joint criteria and calibration_error have no
        intervals here.
    method : {"auto", "score", "studentized", "delta", "basic", "percentile"}
        ``"score"``: Wilson's interval of a proportion, Newcombe's of a difference.
        ``"studentized"``: bootstrap-t; every replicate is divided by its own standard error.
        ``"delta"``: the normal law with the linearised variance, no replicates.
        ``"basic"`` and ``"percentile"`` are there to be compared with. ``"auto"`` takes score for
        proportions, delta with the bootstrap standard error for callables, studentized otherwise.
    clusters, sample_weight, score_bins, pos_label : optional
        See `permutation_test`. Clusters are resampled as wholes.
    n_resamples : int
        Bootstrap replicates.
    confidence_level : float
        Level of the intervals.
    rng, random_state, n_threads, progress : optional
        See `permutation_test`. Callables are evaluated in this process whatever ``n_threads`` is.

    Returns
    -------
    IntervalResult

    Notes
    -----
    Rows are resampled within each group. For counts a replicate is a multinomial draw over the
    cells; for rows it is a count per row, drawn in blocks. Ratios are on the log scale.

    All pairs hold together with the quantile of :math:`\max |t^*|` over pairs (studentized) or
    Bonferroni (others). The interval of the largest gap comes from these: a percentile interval of
    max - min itself cannot contain 0 and is never given.

    A replicate in which a group has no value lies beyond both ends of every interval.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> result = fa.intervals(
    ...     [1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 1, 0, 0, 0],
    ...     sensitive_features=list("aaaabbbb"), metric="true_positive_rate")
    >>> result.method, [round(x, 2) for x in result.confidence_interval]
    ('score', [-0.14, 0.79])
    """
    method = arguments.choice("method", method, METHODS)
    n_resamples = arguments.n_resamples(n_resamples)
    level = arguments.level("confidence_level", confidence_level)
    n_threads = arguments.n_threads(n_threads)
    callback = arguments.progress(progress)
    seed = arguments.seed(rng, random_state)
    design = Design(
        metric, y_true, y_pred, y_score, sensitive_features, data, groups, reference,
        strata=None, clusters=clusters, sample_weight=sample_weight, score_bins=score_bins,
        pos_label=pos_label, n_threads=n_threads,
    )  # fmt: skip
    question = design.pose(seed)
    problem = question.problem
    method = method_of(method, problem, METHODS)
    bootstrap = resample(problem, method, n_resamples, seed, n_threads, callback)
    maker = Maker(problem, method, bootstrap, level)
    k = len(problem.keys)
    names = [label(key) for key in problem.keys]
    everything = pairs_of(problem.keys, None)
    together = maker.simultaneous(everything)
    largest, of_largest = maker.largest(everything, together)
    gaps = tuple(maker.gap(pair, names) for pair in question.pairs)
    largest_gap = Estimate("largest gap", None, None, largest, math.nan, of_largest)
    first = gaps[0] if k == 2 else largest_gap
    by_formula = method == "delta" and problem.metric.family == "callable"
    return IntervalResult(
        estimate=first.estimate,
        standard_error=first.standard_error,
        statistic=math.nan,
        pvalue=math.nan,
        confidence_interval=first.confidence_interval,
        alternative="two-sided",
        n_rows=sum(problem.n_rows),
        group_sizes=dict(zip(names, problem.n_rows, strict=True)),
        seed=seed,
        engine=problem.drawing_engine if bootstrap else "formula",
        warnings=tuple(warnings_of(question, bootstrap, maker)),
        metric=problem.metric.name,
        values=tuple(maker.value(i, names) for i in range(k)),
        gaps=gaps,
        ratios=tuple(maker.ratio(pair, names) for pair in question.pairs),
        simultaneous=tuple(
            Estimate(
                "simultaneous gap",
                names[i],
                names[j],
                problem.gap((i, j)).estimate,
                problem.gap((i, j)).standard_error,
                interval,
            )
            for (i, j), interval in zip(everything, together, strict=True)
        ),
        largest_gap=largest_gap,
        # A callable has no formula: its standard errors are those of the bootstrap.
        method="bootstrap-se" if by_formula else method,
        n_resamples=n_resamples if bootstrap else 0,
        undefined_share=bootstrap.undefined_share() if bootstrap else 0.0,
        n_missing=question.n_missing,
        confidence_level=level,
    )


def method_of(method: str, problem: Problem, methods: Sequence[str]) -> str:
    """Return the method, or raise when the metric has no such interval."""
    name, family = problem.metric.name, problem.metric.family
    if isinstance(problem, CorrelationProblem | JointProblem) or family == "calibration":
        reason = {
            "correlation": "has no groups; permutation_test gives its interval",
            "joint": "has no one value; ask for its components",
        }.get(family, "is biased upwards in small groups, so no interval of its gap covers")
        raise ArgumentError(f"metric is {name!r}, which {reason}")
    if method == "auto":
        if family == "callable":
            return "delta"
        return "score" if problem.is_proportion else "studentized"
    if method == "score" and not problem.is_proportion:
        others = ", ".join(repr(other) for other in methods if other != "score")
        raise ArgumentError(
            f"method is 'score' for {name}, which is not a proportion of rows that count the same; "
            f"accepted: {others}"
        )
    if method == "studentized" and family == "callable":
        others = ", ".join(repr(o) for o in methods if o not in ("score", "studentized"))
        raise ArgumentError(
            f"method is 'studentized' for {name}, a callable, which would need a bootstrap in each "
            f"sample; accepted: {others}"
        )
    return method


def resample(
    problem: Problem,
    method: str,
    n_resamples: int,
    seed: int,
    n_threads: int | None,
    callback: Callable[[int, int], object] | None,
) -> Bootstrap | None:
    """Draw the replicates that a method needs; None when it is a formula."""
    if method not in ("studentized", "basic", "percentile"):
        return None

    def tick(done: int) -> None:
        assert callback is not None
        callback(min(done, n_resamples), n_resamples)

    return problem.draw_bootstrap(n_resamples, seed, n_threads, tick if callback else None)


@dataclass(frozen=True)
class Maker:
    """Makes all intervals of a problem by one method."""

    problem: Problem
    method: str
    bootstrap: Bootstrap | None
    level: float

    @property
    def _z(self) -> float:
        return _native.normal_quantile(0.5 + self.level / 2)

    def columns(self, i: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the values and variances of a group by replicate."""
        assert self.bootstrap is not None
        return self.bootstrap.values[:, i], self.bootstrap.variances[:, i]

    def value(self, i: int, names: list[Any]) -> Estimate:
        """Return the metric of a group."""
        value, variance, _, rows = self.problem.evaluations[i]
        error = math.sqrt(variance)
        if self.method == "score":
            interval = wilson(value, rows, self._z)
        elif self.bootstrap is None:
            interval = _normal(value, error, self._z)
        else:
            interval = bootstrap_interval(self.method, value, error, *self.columns(i), self.level)
        low, high = self.problem.metric.range
        return Estimate("value", names[i], None, value, error, _clip(interval, low, high))

    def gap(self, pair: Pair, names: list[Any]) -> Estimate:
        """Return the difference of two groups."""
        gap = self.problem.gap(pair)
        interval = self._gap_interval(pair, self.level)
        first, second = (names[i] for i in pair)
        return Estimate("gap", first, second, gap.estimate, gap.standard_error, interval)

    def _gap_interval(self, pair: Pair, level: float) -> Interval:
        gap = self.problem.gap(pair)
        z = _native.normal_quantile(0.5 + level / 2)
        if self.method == "score":
            first, second = (self.problem.evaluations[i] for i in pair)
            return newcombe(first, second, z)
        if self.bootstrap is None:
            interval = _normal(gap.estimate, gap.standard_error, z)
        else:
            (a, v_a), (b, v_b) = (self.columns(i) for i in pair)
            interval = bootstrap_interval(
                self.method, gap.estimate, gap.standard_error, a - b, v_a + v_b, level
            )
        return _clip(interval, -self.problem.bound, self.problem.bound)

    def ratio(self, pair: Pair, names: list[Any]) -> Estimate:
        """Return the ratio of two groups; no interval when a value is not above 0."""
        (a, v_a), (b, v_b) = (self.problem.evaluations[i][:2] for i in pair)
        first, second = (names[i] for i in pair)
        ratio = a / b if b else math.nan
        if not (a > 0 and b > 0):
            return Estimate("ratio", first, second, ratio, math.nan, NOTHING)
        error = math.sqrt(v_a / a**2 + v_b / b**2)
        if self.bootstrap is None:
            interval = _normal(math.log(ratio), error, self._z)
        else:
            interval = bootstrap_interval(
                self.method, math.log(ratio), error, *self.log_ratios(pair), self.level
            )
        low, high = (math.nan if math.isnan(end) else _exp(end) for end in interval)
        return Estimate("ratio", first, second, ratio, ratio * error, (low, high))

    def log_ratios(self, pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the replicates of the log ratio and of its variance."""
        (a, v_a), (b, v_b) = (self.columns(i) for i in pair)
        a, b = (np.where(part > 0, part, np.nan) for part in (a, b))
        return np.log(a / b), v_a / a**2 + v_b / b**2

    def simultaneous(self, pairs: list[Pair]) -> list[Interval]:
        """Return intervals of all differences that hold together."""
        if self.method == "studentized" and self.bootstrap is not None and len(pairs) > 1:
            values, variances = (
                np.array([entry[at] for entry in self.problem.evaluations]) for at in (0, 1)
            )
            factor = simultaneous_factor(values, variances, self.bootstrap, pairs, self.level)
            gaps = [self.problem.gap(pair) for pair in pairs]
            bound = self.problem.bound
            return [
                _clip(_normal(gap.estimate, gap.standard_error, factor), -bound, bound)
                for gap in gaps
            ]
        each = 1 - (1 - self.level) / len(pairs)
        return [self._gap_interval(pair, each) for pair in pairs]

    def largest(self, pairs: list[Pair], together: list[Interval]) -> tuple[float, Interval]:
        """Return max - min and its interval."""
        largest = max(abs(self.problem.gap(pair).estimate) for pair in pairs)
        return largest, range_of_pairs(together)


def _normal(estimate: float, error: float, z: float) -> Interval:
    return (estimate - z * error, estimate + z * error) if error > 0 else NOTHING


def _clip(interval: Interval, low: float, high: float) -> Interval:
    if math.isnan(interval[0]):
        return interval
    return max(interval[0], low), min(interval[1], high)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def warnings_of(question: Question, bootstrap: Bootstrap | None, maker: Maker) -> Iterator[str]:
    """Say what a reader must know besides the intervals."""
    problem = question.problem
    if question.n_missing:
        yield (
            f"{question.n_missing:,} of {question.n_rows:,} rows have no value of "
            f"{' or '.join(question.features)} and belong to no group"
        )
    yield from problem.notes
    if isinstance(question.data, Cells) and question.data.strata_names:
        yield (
            f"the strata of the cells ({', '.join(question.data.strata_names)}) play no part: gaps "
            "are those of all rows"
        )
    if bootstrap is not None:
        enough = math.ceil(2 / (1 - maker.level) - 1 - 1e-9)
        if len(bootstrap.values) < enough:
            yield (
                f"{len(bootstrap.values):,} replicates are too few for intervals of this level, "
                f"whose ends are unknown; raise n_resamples to {enough:,} or more"
            )
    if bootstrap is not None and bootstrap.undefined_share() > _MANY_UNDEFINED:
        yield (
            f"{100 * bootstrap.undefined_share():.3g} % of the replicates give "
            f"{problem.metric.name} no value in some group and widen the intervals"
        )
    certain = problem.certain_groups()
    if certain and maker.method != "score":
        yield (
            f"{problem.metric.name} does not vary at all within {', '.join(certain[:5])}: a gap "
            "whose standard error is 0 has no interval, others are too short"
        )
    if maker.method == "percentile":
        yield "percentile intervals are for comparison: they cover less than they say"
