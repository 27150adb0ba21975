"""Intervals for values, gaps and ratios of a metric; equivalence of groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native, _validate
from ._comparisons import Problem, label
from ._correlation import CorrelationProblem
from ._counts import JointProblem
from ._intervals import (
    NOTHING,
    Bootstrap,
    Interval,
    Pair,
    bootstrap_interval,
    newcombe,
    range_of_pairs,
    simultaneous_factor,
    studentize,
    wilson,
)
from ._question import Design, Question, pairs_of
from .cells import Cells, Label
from .errors import ArgumentError, DataError
from .metrics import Metric
from .results import Result, group_name, number, p_text

__all__ = [
    "EquivalenceResult",
    "Estimate",
    "IntervalResult",
    "equivalence_test",
    "intervals",
]

METHODS = ("auto", "score", "studentized", "delta", "basic", "percentile")
EQUIVALENCE_METHODS = ("auto", "score", "studentized", "delta")
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


@dataclass(frozen=True, repr=False)
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
            else f"the largest of {len(self.values)} groups"
        )
        interval = (
            "no interval"
            if math.isnan(low)
            else f"{100 * self.confidence_level:g} % {self.method} interval {number(low)} to "
            f"{number(high)}"
        )
        return f"{self.metric}: the gap, {who}, is {number(self.estimate)} ({interval})."

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
        See `permutation_test`.

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
    ('score', [-0.15, 0.8])
    """
    method = _validate.choice("method", method, METHODS)
    n_resamples = _validate.n_resamples(n_resamples)
    level = _validate.level("confidence_level", confidence_level)
    n_threads = _validate.n_threads(n_threads)
    callback = _validate.progress(progress)
    seed = _validate.seed(rng, random_state)
    design = Design(
        metric, y_true, y_pred, y_score, sensitive_features, data, groups, reference,
        strata=None, clusters=clusters, sample_weight=sample_weight, score_bins=score_bins,
        pos_label=pos_label, n_threads=n_threads,
    )  # fmt: skip
    question = design.pose(seed)
    problem = question.problem
    method = _method(method, problem, METHODS)
    bootstrap = _resample(problem, method, n_resamples, seed, n_threads, callback)
    maker = _Maker(problem, method, bootstrap, level)
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
        warnings=tuple(_warnings(question, bootstrap, maker)),
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


def _method(method: str, problem: Problem, methods: Sequence[str]) -> str:
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


def _resample(
    problem: Problem,
    method: str,
    n_resamples: int,
    seed: int,
    n_threads: int | None,
    callback: Callable[[int, int], object] | None,
) -> Bootstrap | None:
    if method not in ("studentized", "basic", "percentile"):
        return None
    bootstrap = problem.draw_bootstrap(n_resamples, seed, n_threads)
    if callback is not None:
        callback(n_resamples, n_resamples)
    return bootstrap


@dataclass(frozen=True)
class _Maker:
    """Makes all intervals of a problem by one method."""

    problem: Problem
    method: str
    bootstrap: Bootstrap | None
    level: float

    @property
    def _z(self) -> float:
        return _native.normal_quantile(0.5 + self.level / 2)

    def _columns(self, i: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
            interval = bootstrap_interval(self.method, value, error, *self._columns(i), self.level)
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
            (a, v_a), (b, v_b) = (self._columns(i) for i in pair)
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
        (a, v_a), (b, v_b) = (self._columns(i) for i in pair)
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


def _warnings(question: Question, bootstrap: Bootstrap | None, maker: _Maker) -> Iterator[str]:
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


# ---------------------------------------------------------------------------------------------
# Equivalence


@dataclass(frozen=True)
class EquivalenceComparison:
    """Two groups, and the p-value of their being further apart than the margin."""

    first: Any
    second: Any
    estimate: float
    standard_error: float
    #: Of the one of the two tests that is further from rejecting.
    statistic: float
    pvalue: float
    confidence_interval: tuple[float, float]


@dataclass(frozen=True, repr=False)
class EquivalenceResult(Result):
    """What `equivalence_test` found; a small p-value shows that no gap exceeds the margin.

    Attributes
    ----------
    metric : str
        Name of the metric.
    margin : float
        The largest difference, or the smallest ratio, that counts as equal.
    scale : str
        ``"difference"`` or ``"ratio"``.
    comparisons : tuple of EquivalenceComparison
        Every pair of groups; the p-value of the result is the largest of theirs.
    method : str
        How the two one-sided tests were made.
    n_resamples : int
        Bootstrap replicates; 0 when the method needs none.
    confidence_level : float
        1 minus the level of the test; intervals have the confidence 1 - 2 * level, so that they
        lie within the margin when the test rejects, but for the margin of both methods.
    """

    metric: str
    margin: float
    scale: str
    comparisons: tuple[EquivalenceComparison, ...]
    method: str
    n_resamples: int
    confidence_level: float

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        shown = self.pvalue <= (1 - self.confidence_level) * (1 + 1e-9)
        what = "gap" if self.scale == "difference" else "ratio"
        bounds = (
            f"-{number(self.margin)} to {number(self.margin)}"
            if self.scale == "difference"
            else f"{number(self.margin)} to {number(1 / self.margin)}"
        )
        verdict = "is shown to lie" if shown else "is not shown to lie"
        who = (
            f"the {what} of {number(self.estimate)}"
            if len(self.comparisons) == 1
            else f"every {what} of {len(self.group_sizes)} groups (most extreme "
            f"{number(self.estimate)})"
        )
        return (
            f"{self.metric}: {who} {verdict} within {bounds} at the "
            f"{100 * (1 - self.confidence_level):.3g} % level ({p_text(self.pvalue)}, two "
            f"one-sided {self.method} tests)."
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per pair of groups."""
        return [
            {
                "metric": self.metric,
                "first": group_name(pair.first),
                "second": group_name(pair.second),
                "scale": self.scale,
                "margin": self.margin,
                "estimate": pair.estimate,
                "low": pair.confidence_interval[0],
                "high": pair.confidence_interval[1],
                "pvalue": pair.pvalue,
            }
            for pair in self.comparisons
        ]


def equivalence_test(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    sensitive_features: Any = None,
    data: Any = None,
    metric: str | Metric,
    margin: float,
    scale: str = "difference",
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
) -> EquivalenceResult:
    r"""Show that no two groups are further apart than a margin.

    A test that does not reject equality shows nothing: the data may be few. Here the null
    hypothesis is that some gap is at least as large as the margin, and rejecting it shows that
    none is.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference : optional
        See `permutation_test`.
    margin : float
        With ``scale="difference"`` the largest difference that counts as equal; with
        ``scale="ratio"`` the smallest ratio, below 1: 0.8 for the four-fifths rule.
    scale : {"difference", "ratio"}
        What the margin is about.
    method : {"auto", "score", "studentized", "delta"}
        ``"score"``: the tests of Farrington and Manning for differences of proportions.
        ``"studentized"``: bootstrap-t. ``"delta"``: the normal law. ``"auto"`` takes score for
        differences of proportions, delta for callables, studentized otherwise.
    clusters, sample_weight, score_bins, pos_label, n_resamples : optional
        See `intervals`.
    confidence_level : float
        1 minus the level of the test.
    rng, random_state, n_threads, progress : optional
        See `permutation_test`.

    Returns
    -------
    EquivalenceResult

    Notes
    -----
    Two one-sided tests per pair: of a gap of at most -margin and of one of at least margin; the
    p-value of the pair is the larger one. That of all pairs is the largest (an intersection of
    hypotheses needs no adjustment).

    References
    ----------
    .. [1] Farrington, C. P. and Manning, G. (1990). Test statistics and sample size formulae for
       comparative binomial trials. Statistics in Medicine 9. doi:10.1002/sim.4780091208

    Examples
    --------
    >>> import numpy as np
    >>> import fairaudit_rs as fa
    >>> decisions = np.tile([1, 0], 1000)
    >>> result = fa.equivalence_test(
    ...     y_pred=decisions, sensitive_features=np.repeat(["a", "b"], 1000),
    ...     metric="selection_rate", margin=0.05)
    >>> result.pvalue < 0.05
    True
    """
    method = _validate.choice("method", method, EQUIVALENCE_METHODS)
    scale = _validate.choice("scale", scale, ("difference", "ratio"))
    margin = _margin(margin, scale)
    n_resamples = _validate.n_resamples(n_resamples)
    level = _validate.level("confidence_level", confidence_level)
    if level <= 0.5:
        raise ArgumentError(f"confidence_level is {level:g}; accepted: above 0.5 here")
    n_threads = _validate.n_threads(n_threads)
    callback = _validate.progress(progress)
    seed = _validate.seed(rng, random_state)
    design = Design(
        metric, y_true, y_pred, y_score, sensitive_features, data, groups, reference,
        strata=None, clusters=clusters, sample_weight=sample_weight, score_bins=score_bins,
        pos_label=pos_label, n_threads=n_threads,
    )  # fmt: skip
    question = design.pose(seed)
    problem = question.problem
    if method == "score" and scale == "ratio":
        raise ArgumentError(
            "method is 'score' with scale 'ratio'; accepted: 'auto', 'studentized', 'delta'"
        )
    if method == "auto" and scale == "ratio" and problem.metric.family != "callable":
        method = "studentized"
    method = _method(method, problem, EQUIVALENCE_METHODS)
    bootstrap = _resample(problem, method, n_resamples, seed, n_threads, callback)
    # Intervals of confidence 1 - 2 alpha lie within the margin when the test rejects.
    maker = _Maker(problem, method, bootstrap, 2 * level - 1)
    names = [label(key) for key in problem.keys]
    tester = _Tester(maker, margin, scale)
    comparisons = []
    for pair in question.pairs:
        entry = maker.gap(pair, names) if scale == "difference" else maker.ratio(pair, names)
        comparisons.append(
            EquivalenceComparison(
                entry.first,
                entry.second,
                entry.estimate,
                entry.standard_error,
                *tester.test(pair),
                entry.confidence_interval,
            )
        )
    worst = max(comparisons, key=lambda pair: pair.pvalue)
    return EquivalenceResult(
        estimate=worst.estimate,
        standard_error=worst.standard_error,
        statistic=worst.statistic,
        pvalue=worst.pvalue,
        confidence_interval=worst.confidence_interval,
        alternative="equivalence",
        n_rows=sum(problem.n_rows),
        group_sizes=dict(zip(names, problem.n_rows, strict=True)),
        seed=seed,
        engine=problem.drawing_engine if bootstrap else "formula",
        warnings=(*_warnings(question, bootstrap, maker), *tester.notes),
        metric=problem.metric.name,
        margin=margin,
        scale=scale,
        comparisons=tuple(comparisons),
        method=method,
        n_resamples=n_resamples if bootstrap else 0,
        confidence_level=level,
    )


def _margin(value: object, scale: str) -> float:
    accepted = "a number above 0" if scale == "difference" else "a number between 0 and 1"
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        raise ArgumentError(f"margin is {value!r}; accepted: {accepted}")
    margin = float(value)
    if not (0 < margin < math.inf) or (scale == "ratio" and margin >= 1):
        raise ArgumentError(f"margin is {margin:g}; accepted: {accepted} with scale {scale!r}")
    return margin


@dataclass(frozen=True)
class _Tester:
    """Two one-sided tests of the two ends of a margin."""

    maker: _Maker
    margin: float
    scale: str
    notes: list[str] = field(default_factory=list)

    def test(self, pair: Pair) -> tuple[float, float]:
        """Return the statistic and the p-value of the pair's being outside of the margin."""
        problem = self.maker.problem
        if self.maker.method == "score":
            first, second = (problem.evaluations[i] for i in pair)
            counts = (first[2], first[3], second[2], second[3])
            if self.margin >= 1:
                raise ArgumentError(f"margin is {self.margin:g}; accepted: below 1 for proportions")
            above = farrington_manning(*counts, -self.margin)
            below = farrington_manning(*counts, self.margin)
            return min(above, -below, key=abs), max(_upper_tail(above), _upper_tail(-below))
        (a, v_a), (b, v_b) = (problem.evaluations[i][:2] for i in pair)
        if self.scale == "difference":
            gap = problem.gap(pair)
            estimate, error = gap.estimate, gap.standard_error
            low, high = -self.margin, self.margin
        else:
            if not (a > 0 and b > 0):
                raise DataError(
                    f"{problem.metric.name} is {min(a, b):g} in a group; a ratio needs values "
                    "above 0"
                )
            estimate, error = math.log(a / b), math.sqrt(v_a / a**2 + v_b / b**2)
            low, high = math.log(self.margin), -math.log(self.margin)
        if not (v_a > 0 and v_b > 0):
            # No variation is no precision: few rows can agree by chance.
            names = [group_name(label(problem.keys[i])) for i in pair]
            self.notes.append(
                f"{problem.metric.name} does not vary, or has no standard error, in {names[0]} or "
                f"{names[1]}: nothing is shown about their gap"
            )
            return math.nan, 1.0
        above = _divide(estimate - low, error)
        below = _divide(estimate - high, error)
        statistic = min(above, -below, key=abs)
        if self.maker.bootstrap is None:
            return statistic, max(_upper_tail(above), _upper_tail(-below))
        if self.scale == "difference":
            (x, v_x), (y, v_y) = (self.maker._columns(i) for i in pair)
            t = studentize(x - y, estimate, v_x + v_y)
        else:
            values, variances = self.maker.log_ratios(pair)
            t = studentize(values, estimate, variances)
        undefined = np.isnan(t)
        extreme = [(t >= above - 1e-10 * abs(above)), (t <= below + 1e-10 * abs(below))]
        pvalue = max((1 + int((part | undefined).sum())) / (1 + len(t)) for part in extreme)
        return statistic, pvalue


def _divide(gap: float, error: float) -> float:
    if error > 0:
        return gap / error
    return math.copysign(math.inf, gap) if gap else 0.0


def _upper_tail(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2))


def farrington_manning(
    x_first: float, n_first: float, x_second: float, n_second: float, margin: float
) -> float:
    """Return the z statistic of p_first - p_second = margin.

    The variance is that of the proportions which are most likely under the hypothesis: the
    middle root of a cubic.
    """
    p, q = x_first / n_first, x_second / n_second
    theta = n_second / n_first
    a = 1 + theta
    b = -(1 + theta + p + theta * q + margin * (theta + 2))
    c = margin**2 + margin * (2 * p + theta + 1) + p + theta * q
    d = -p * margin * (1 + margin)
    v = b**3 / (3 * a) ** 3 - b * c / (6 * a**2) + d / (2 * a)
    u = math.copysign(math.sqrt(max(b**2 / (3 * a) ** 2 - c / (3 * a), 0.0)), v)
    angle = math.acos(min(max(v / u**3, -1.0), 1.0)) if u else math.pi / 2
    first = 2 * u * math.cos((math.pi + angle) / 3) - b / (3 * a)
    first = min(max(first, 0.0, margin), 1.0, 1 + margin)
    second = min(max(first - margin, 0.0), 1.0)
    variance = first * (1 - first) / n_first + second * (1 - second) / n_second
    return _divide(p - q - margin, math.sqrt(variance))
