"""`calibrate`: measures how often the test rejects, on simulated groups of the user's rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native, arguments, metrics
from ..data.groups import attribute_name, group_label, group_name
from ..data.labels import Label
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError, NotMeasurableError
from ..literals import Missing, MixedClusters, NullHypothesis, Studentize, Undefined
from ..metrics.metric import AnyMetric
from ..progress import Progress
from ..report.notes import Note
from ..report.words import join_names, row_count
from ..results.result import Result
from ..results.verdict import rejects_at
from .excluded_groups import ExcludedGroup, notes_on_excluded
from .outcome import Procedure, run_test
from .problem import Problem
from .question import PermutationQuestion, named_columns, prepare_question, split_strata
from .simulated_groups import SimulatedTests, TiltedSampler

#: Confidence of the intervals of measured rates.
_CONFIDENCE = 0.99
#: Random streams: the first one, which no test uses, and how many are reserved for each gap.
_FIRST_SERIES = 2**63
_SERIES_OF_GAP = 2**40
#: Description of the simulated groups for each null hypothesis.
_GROUPS = {
    "shuffle": "groups of one law",
    "weak": "groups that have one value of the metric, and each its own law,",
}


@dataclass(frozen=True, kw_only=True)
class RejectionRate:
    """The share of simulated audits in which the test rejected, for one true gap (0: none)."""

    gap: float
    rejected: float
    confidence_interval: tuple[float, float]
    n_audits: int
    #: Audits in which some group had no value; they count as not rejected.
    n_not_measurable: int


@dataclass(frozen=True, eq=False)
class CalibrationReport(Result):
    """The result of `calibrate`.

    Attributes
    ----------
    metric : str
        Name of the metric.
    level : float
        The level of the test.
    false_alarms : RejectionRate
        How often the test rejected equal groups.
    power : tuple of RejectionRate
        How often the test rejected groups with a gap, for each gap.
    group_sizes : dict
        Rows of each group.
    exchanged : str
        Which rows exchanged their groups.
    null : str
        How equal groups were simulated: "shuffle" (same distribution) or "weak" (same value of
        the metric only).
    n_resamples : int
        Replicates of each test.
    seed : int
        Pass it as ``rng=`` to repeat the report.
    notes : tuple of Note
        Remarks on the numbers, each with a code.
    attribute : str
        Names of the sensitive features.
    left_out : tuple of ExcludedGroup
        Groups excluded from all audits, with their rows and the reason.
    """

    metric: str
    level: float
    false_alarms: RejectionRate
    power: tuple[RejectionRate, ...]
    group_sizes: dict[Any, int]
    exchanged: str
    null: str
    n_resamples: int
    seed: int
    notes: tuple[Note, ...]
    attribute: str
    left_out: tuple[ExcludedGroup, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether the false-alarm rate is compatible with the level.

        With few audits the interval is wide, so this is nearly always true.
        """
        return self.false_alarms.confidence_interval[0] <= self.level

    def summary(self) -> str:
        """Return sentences that an auditor can quote."""
        low, high = self.false_alarms.confidence_interval
        verdict = "shows no sign of missing its level" if self.holds else "MISSES its level"
        lines = [
            f"{self.metric}: the test {verdict} of {100 * self.level:.3g} % on these data: "
            f"{_GROUPS[self.null]} (null {self.null!r}) are rejected in "
            f"{100 * self.false_alarms.rejected:.3g} % of "
            f"{self.false_alarms.n_audits:,} audits of {self._who()} "
            f"({100 * _CONFIDENCE:g} % interval "
            f"{100 * low:.3g} to {100 * high:.3g} %), exchanging {self.exchanged}."
        ]
        for rate in self.power:
            low, high = rate.confidence_interval
            lines.append(
                f"  a gap of {rate.gap:g} is found in {100 * rate.rejected:.3g} % "
                f"({100 * low:.3g} to {100 * high:.3g} %)"
            )
        return "\n".join(lines)

    def _who(self) -> str:
        sizes = [
            f"{row_count(n)} of {name}"
            for name, n in zip(self._group_names(), self.group_sizes.values(), strict=True)
        ]
        return join_names(sizes, most=5)

    def _group_names(self) -> list[str]:
        return [group_name(group, self.attribute) for group in self.group_sizes]

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("gaps", "groups") if self.group_sizes else ("gaps",)

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        return [
            {"metric": self.metric, "group": name, "n_rows": n}
            for name, n in zip(self._group_names(), self.group_sizes.values(), strict=True)
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per gap; the first row (gap 0) holds the false alarms."""
        return [
            {
                "metric": self.metric,
                "null": self.null,
                "gap": rate.gap,
                "rejected": rate.rejected,
                "low": rate.confidence_interval[0],
                "high": rate.confidence_interval[1],
                "n_audits": rate.n_audits,
                "n_not_measurable": rate.n_not_measurable,
            }
            for rate in (self.false_alarms, *self.power)
        ]


def calibrate(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    sensitive_features: Any = None,
    data: Any = None,
    metric: AnyMetric,
    gaps: Sequence[float] = (),
    null: NullHypothesis = "shuffle",
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    undefined: Undefined = "raise",
    min_group_size: int | None = None,
    studentize: Studentize | bool = "auto",
    strata: Any = "auto",
    clusters: Any = None,
    sample_weight: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    missing: Missing | None = None,
    mixed_clusters: MixedClusters = "refuse",
    n_audits: int = 1_000,
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> CalibrationReport:
    """Measure the false alarms and the power of the permutation test on your own data.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference, undefined, \
min_group_size, studentize, strata, clusters, sample_weight, score_bins, pos_label : optional
        See `permutation_test`. The strata are also those within which groups are shuffled.
    missing, mixed_clusters : optional
        See `permutation_test`.
    gaps : sequence of float
        Gaps between the first group and the others at which the power is measured; for metrics of
        counts, ranks and ratios, without strata of your own.
    null : {"shuffle", "weak"}
        How equal groups are simulated. ``"shuffle"``: all groups have the same distribution.
        ``"weak"``: they have the same value of the metric, but each its own spread and skewness.
    n_audits : int
        Audits for the false alarms, and for each gap.
    n_resamples : int
        Replicates of each test.
    confidence_level : float
        1 minus the level of the test.
    rng, random_state, n_threads, progress : optional
        See `permutation_test`; progress counts audits.

    Returns
    -------
    CalibrationReport

    Notes
    -----
    Shuffled groups have the same distribution, so the false alarms show whether the test keeps its
    level with these sizes, ties and weights. Each audit treats one permutation of the rows as the
    observed data and compares it with `n_resamples` others. To see how the test behaves when only
    the metric is equal, name strata, such as the label, within which groups may differ.

    Shuffling hides the effect of skewness, which makes tests of means miss their level when a
    small group happens to contain none of its rare rows. The weak null shows it. The linearised
    values are centred within each group (means, F1 and other ratios: a - theta d and d; the AUC
    and other formulas: the influence of each row, as if the metric were its mean). Rows, or whole
    clusters, are then redrawn from their own group with replacement, and each sample is tested.
    The distribution of an unweighted rate is determined by the rate, so there the weak null equals
    the shuffle. Rare rows that are missing from a group are also missing from its samples.

    For a gap, the first group is redrawn: the odds that a row joins it grow with the influence of
    the row on the metric (an exponential tilt), as strongly as the gap requires.

    Examples
    --------
    >>> import numpy as np
    >>> import fairaudit_rs as fa
    >>> generator = np.random.default_rng(1)
    >>> report = fa.calibrate(
    ...     y_pred=generator.integers(0, 2, 400), sensitive_features=generator.integers(0, 2, 400),
    ...     metric="selection_rate", gaps=[0.2], n_audits=200, rng=1)
    >>> report.holds, report.power[0].rejected > 0.9
    (True, True)
    """
    checked = arguments.check(
        n_audits=n_audits,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        rng=rng,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    n_audits = checked.n_audits
    n_resamples, level = checked.n_resamples, checked.confidence_level
    seed, n_threads, callback = checked.seed, checked.n_threads, checked.progress
    wanted = _gaps(gaps)
    wanted_null = arguments.choice("null", null, tuple(_GROUPS))
    chosen = metrics.get(metric)
    conditional, own_strata = split_strata(strata)
    table = AuditTable.make(
        data=data,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        sensitive_features=sensitive_features,
        strata=own_strata,
        clusters=clusters,
        sample_weight=sample_weight,
        extra=named_columns(chosen),
        missing=missing,
        mixed_clusters=mixed_clusters,
    )
    question = prepare_question(
        table,
        chosen,
        groups=groups,
        reference=reference,
        undefined=undefined,
        min_group_size=min_group_size,
        studentize=studentize,
        conditional=conditional,
        score_bins=score_bins,
        pos_label=pos_label,
        n_threads=n_threads,
        seed=seed,
    )
    problem = question.problem
    if wanted and question.strata_names:
        raise ArgumentError(
            f"gaps is {wanted!r}, but gaps cannot be simulated within strata. Pass no gaps, or no "
            "strata of your own.",
            argument="gaps",
            mentions=("strata",),
            code="conflicting-arguments",
        )
    equal = problem.equal(wanted_null)
    sources: list[SimulatedTests] = [equal]
    how = _AuditOptions(n_resamples=n_resamples, seed=seed, n_threads=n_threads, level=level)
    sources += [_RebuiltAudits(problem.unequal(gap), how) for gap in wanted]
    total = n_audits * len(sources)
    rates = []
    for i, (gap, source) in enumerate(zip([0.0, *wanted], sources, strict=True)):
        series = _FIRST_SERIES + i * _SERIES_OF_GAP
        call = _native.Call(n_threads, _offset_progress(callback, i * n_audits, total))
        draws = _native.Draws(n_audits, seed=seed, series=series)
        pvalues = source.pvalues(n_resamples, draws, call).tolist()
        rates.append(_rate(gap, pvalues, 1 - level))
    return CalibrationReport(
        problem.metric.name,
        round(1 - level, 12),
        rates[0],
        tuple(rates[1:]),
        dict(zip(map(group_label, problem.keys), problem.n_rows, strict=False)),
        question.exchanged,
        equal.null,
        n_resamples,
        seed,
        tuple(_calibration_notes(question, rates, equal.note)),
        attribute_name(question.features),
        question.left_out,
    )


@dataclass(frozen=True, kw_only=True)
class _AuditOptions:
    """The options of each simulated test."""

    n_resamples: int
    seed: int
    n_threads: int | None
    level: float


@dataclass(frozen=True)
class _RebuiltAudits:
    """Audits of groups with a gap, each on a new `Problem`."""

    source: TiltedSampler[Problem]
    how: _AuditOptions
    null = "shuffle"
    note = None

    def pvalues(
        self, n_resamples: int, draws: _native.Draws, call: _native.Call
    ) -> NDArray[np.float64]:
        """Return the two-sided p-value of every audit; NaN where a group has no value."""
        plan = Procedure(
            engine="auto",
            alternative="two-sided",
            n_resamples=n_resamples,
            seed=self.how.seed,
            n_threads=self.how.n_threads,
            level=self.how.level,
            progress=Progress(callback=None, n_resamples=n_resamples),
        )
        pvalues = np.full(draws.n, math.nan)
        for i in range(draws.n):
            audit = draws.first + i
            try:
                problem = self.source.draw(draws, audit)
                outcome = run_test(problem, plan, draws.series + 1 + audit)
                # An inconclusive test does not reject.
                pvalues[i] = 1.0 if outcome.inconclusive else outcome.pvalue
            except NotMeasurableError:
                pass
            if call.progress is not None:
                call.progress(i + 1)
        return pvalues


def _rate(gap: float, pvalues: list[float], alpha: float) -> RejectionRate:
    measured = [pvalue for pvalue in pvalues if not math.isnan(pvalue)]
    rejected = sum(rejects_at(pvalue, alpha) for pvalue in measured)
    return RejectionRate(
        gap=gap,
        rejected=rejected / len(pvalues),
        confidence_interval=_native.clopper_pearson(rejected, len(pvalues), _CONFIDENCE),
        n_audits=len(pvalues),
        n_not_measurable=len(pvalues) - len(measured),
    )


def _offset_progress(
    callback: Callable[[int, int], object] | None, before: int, total: int
) -> Callable[[int], object] | None:
    """Return a progress function that adds the audits done before."""
    return None if callback is None else lambda done: callback(before + done, total)


def _gaps(gaps: Sequence[float]) -> list[float]:
    if not arguments.is_listing(gaps):
        raise ArgumentTypeError(
            f"gaps is {gaps!r}; accepted: a sequence of numbers", argument="gaps"
        )
    listed = list(gaps)
    for gap in listed:
        if not arguments.is_number(gap):
            raise ArgumentTypeError(f"gaps contains {gap!r}; accepted: numbers", argument="gaps")
        if not math.isfinite(arguments.as_float(gap)) or gap == 0:
            raise ArgumentError(
                f"gaps contains {gap!r}; accepted: finite numbers other than 0", argument="gaps"
            )
    return [float(gap) for gap in listed]


def _calibration_notes(
    question: PermutationQuestion, rates: Sequence[RejectionRate], note: Note | None
) -> list[Note]:
    notes = [*([note] if note else []), *question.notes]
    notes += [*notes_on_excluded(question.left_out), *question.problem.notes]
    unmeasured = max(rate.n_not_measurable for rate in rates)
    if unmeasured:
        notes.append(
            Note(
                "audits-without-value",
                f"in up to {unmeasured:,} audits some group had no value of "
                f"{question.problem.metric.name}; they count as not rejected",
            )
        )
    return notes
