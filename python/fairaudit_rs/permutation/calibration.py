"""False alarms and power of the test on data of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _native, arguments, metrics
from ..data.groups import label
from ..data.labels import Label
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError, NotMeasurableError
from ..metrics.metric import Metric
from ..progress import Progress
from ..results.result import Result
from ..results.verdict import rejects
from .outcome import OMNIBUS_SERIES, Procedure, run
from .question import Question, named_columns, pose, split_strata

#: Confidence of the intervals of measured rates.
_CONFIDENCE = 0.99


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How often the test rejected groups with a gap; 0 is no gap."""

    gap: float
    rejected: float
    confidence_interval: tuple[float, float]
    n_audits: int
    #: Audits in which some group had no value; the test counts as not rejecting.
    n_not_measurable: int


@dataclass(frozen=True, eq=False)
class CalibrationReport(Result):
    """What `calibrate` found.

    Attributes
    ----------
    metric : str
        Name of the metric.
    level : float
        The level of the test.
    false_alarms : Rate
        How often it rejected equal groups.
    power : tuple of Rate
        How often it rejected groups with a gap.
    group_sizes : dict
        Rows of each group.
    exchanged : str
        Which rows exchanged their groups.
    n_resamples : int
        Replicates of each test.
    seed : int
        Pass it as ``rng=`` to repeat the report.
    notes : tuple of str
        What a reader must know besides the numbers.
    """

    metric: str
    level: float
    false_alarms: Rate
    power: tuple[Rate, ...]
    group_sizes: dict[Any, int]
    exchanged: str
    n_resamples: int
    seed: int
    notes: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the false alarms are compatible with the level; few audits always are."""
        return self.false_alarms.confidence_interval[0] <= self.level

    def summary(self) -> str:
        """Return sentences that an auditor can quote, with their notes."""
        low, high = self.false_alarms.confidence_interval
        verdict = "shows no sign of missing its level" if self.holds else "MISSES its level"
        lines = [
            f"{self.metric}: the test {verdict} of {100 * self.level:.3g} % on these data: equal "
            f"groups are rejected in {100 * self.false_alarms.rejected:.3g} % of "
            f"{self.false_alarms.n_audits:,} audits ({100 * _CONFIDENCE:g} % interval "
            f"{100 * low:.3g} to {100 * high:.3g} %), exchanging {self.exchanged}."
        ]
        for rate in self.power:
            low, high = rate.confidence_interval
            lines.append(
                f"  a gap of {rate.gap:g} is found in {100 * rate.rejected:.3g} % "
                f"({100 * low:.3g} to {100 * high:.3g} %)"
            )
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)])

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per gap; the first one, of gap 0, are the false alarms."""
        return [
            {
                "metric": self.metric,
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
    metric: str | Metric,
    gaps: Sequence[float] = (),
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    studentize: str | bool = "auto",
    strata: Any = "auto",
    clusters: Any = None,
    sample_weight: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    n_audits: int = 1_000,
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> CalibrationReport:
    """Measure the false alarms and the power of the permutation test on data of one's own.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference, studentize, \
strata, clusters, sample_weight, score_bins, pos_label : optional
        See `permutation_test`. The strata are also those within which groups are shuffled.
    gaps : sequence of float
        Gaps of the first group from the others at which the power is measured; for metrics of
        counts, ranks and ratios, without strata of your own.
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
    Shuffled groups are equal in law, so the false alarms show that the machinery keeps its level
    with these sizes, ties and weights. Name strata, such as the label, within which groups may
    differ to see how the test does when only the metric is equal.

    A gap is made by drawing the first group with odds that grow with the influence of a row on
    the metric (an exponential tilt), as strongly as the expected gap asks for.

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
    )
    question = pose(
        table,
        chosen,
        groups=groups,
        reference=reference,
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
            f"gaps is {wanted!r} with strata of your own; accepted: no gaps, or no strata: a gap "
            "within strata cannot be made by drawing groups anew"
        )
    relabelling = problem.relabelled(np.random.default_rng(seed), seed)
    if wanted and not relabelling.tilts:
        raise ArgumentError(
            f"gaps is {wanted!r} for {problem.metric.name}; accepted: gaps of rates and other "
            "metrics of counts, of the AUC, and of means and ratios of row values"
        )
    sources = [relabelling, *map(relabelling.with_gap, wanted)]
    ticker = Progress(None, n_resamples)
    plan = Procedure(
        engine="auto",
        alternative="two-sided",
        n_resamples=n_resamples,
        seed=seed,
        n_threads=n_threads,
        level=level,
        progress=ticker,
    )
    total = n_audits * (1 + len(wanted))
    rates = []
    for i, (gap, source) in enumerate(zip([0.0, *wanted], sources, strict=True)):
        rejected, unmeasured = 0, 0
        for audit in range(n_audits):
            try:
                made = source.draw(audit)
                series = OMNIBUS_SERIES + 1 + i * n_audits + audit
                rejected += rejects(run(made, plan, series).pvalue, 1 - level)
            except NotMeasurableError:
                unmeasured += 1
            if callback is not None:
                callback(i * n_audits + audit + 1, total)
        interval = _native.clopper_pearson(rejected, n_audits, _CONFIDENCE)
        rates.append(
            Rate(
                gap=gap,
                rejected=rejected / n_audits,
                confidence_interval=interval,
                n_audits=n_audits,
                n_not_measurable=unmeasured,
            )
        )
    return CalibrationReport(
        problem.metric.name,
        round(1 - level, 12),
        rates[0],
        tuple(rates[1:]),
        dict(zip(map(label, problem.keys), problem.n_rows, strict=False)),
        question.exchanged,
        n_resamples,
        seed,
        tuple(_notes(question, rates)),
    )


def _gaps(gaps: Sequence[float]) -> list[float]:
    if isinstance(gaps, str) or not hasattr(gaps, "__iter__"):
        raise ArgumentTypeError(f"gaps is {gaps!r}; accepted: a sequence of numbers")
    listed = list(gaps)
    for gap in listed:
        if not arguments.is_number(gap):
            raise ArgumentTypeError(f"gaps holds {gap!r}; accepted: numbers")
        if not math.isfinite(gap) or gap == 0:
            raise ArgumentError(f"gaps holds {gap!r}; accepted: numbers other than 0")
    return [float(gap) for gap in listed]


def _notes(question: Question, rates: Sequence[Rate]) -> list[str]:
    notes = [*question.problem.notes, *question.problem.doubts]
    unmeasured = max(rate.n_not_measurable for rate in rates)
    if unmeasured:
        notes.append(
            f"in up to {unmeasured:,} audits some group had no value of "
            f"{question.problem.metric.name}; they count as not rejected"
        )
    return notes
