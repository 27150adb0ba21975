"""Audit calibration, or the divergence of a group from the others: measures that are not rates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.groups import group_name
from ..errors import ArgumentError, NotMeasurableError
from ..inference.pvalues import upper_tail
from ..report.notes import Note
from ..report.words import number
from ..results.chart import Chart
from .calibration import ENOUGH, CalibrationDistance, calibration_of, two_sided
from .divergence import InputDivergence, OutputDivergence, input_divergence, output_divergence
from .known_probabilities import KnownProbabilities
from .marginal_scores import ENOUGH_EVENTS
from .problem import InfluenceProblem, others_name
from .question import InfluenceQuestion
from .result import InfluenceResult

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class AlignmentPart:
    """One number of an audit of calibration or divergence.

    Attributes
    ----------
    of : str
        The name of the quantity.
    estimate, standard_error : float
        NaN if the data do not support an estimate.
    low, high : float
        The two-sided interval; NaN if no valid interval exists.
    lower : float
        The one-sided lower limit; NaN if only the interval is given.
    note : str
        How to read the number.
    binned : float
        For a calibration error, the error over ten score bins, which needs no regression but is
        biased upwards in small groups.
    """

    of: str
    estimate: float
    standard_error: float
    low: float
    high: float
    lower: float
    note: str
    binned: float = math.nan


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class AlignmentResult(InfluenceResult):
    """The result of `influence_audit` for ``metric="calibration"`` or ``"divergence"``.

    Attributes
    ----------
    parts : tuple of AlignmentPart
        Calibration: the error of the target group, that of the others, and their difference (the
        estimate). Divergence, in nats: by the features ("input", a lower bound) and by the mean
        score ("output", the estimate).
    """

    parts: tuple[AlignmentPart, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("parts", "groups")

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        who = f"{self.sized(self.target)} against the others{self._of_others()}"
        return ". ".join([f"{self.metric} of {who}", *map(_sentence, self.parts)]) + "."

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per part."""
        return [dict(vars(part)) for part in self.parts]

    def plot(self, kind: str | None = None) -> Chart:
        """Raise an error: there are no proxy scores to plot."""
        raise NotMeasurableError(
            f"metric {self.metric!r} has no proxy scores to plot. Audit a rate instead.",
            argument="metric",
        )

    def descend(self, *_: Any, **__: Any) -> Any:
        """Raise an error: descent and repair need a rate."""
        raise NotMeasurableError(
            f"metric {self.metric!r} is not a rate, so it has no descent and no repair. Audit a "
            "rate instead.",
            argument="metric",
        )

    repair = descend


def _sentence(part: AlignmentPart) -> str:
    if math.isnan(part.estimate):
        return f"The {part.of} is not measured ({part.note})"
    said = f"The {part.of} is {number(part.estimate)}"
    if not math.isnan(part.low):
        said += f" (interval {number(part.low)} to {number(part.high)})"
    elif part.lower > 0:
        said += f" (at least {number(part.lower)})"
    if not math.isnan(part.binned):
        said += f", {number(part.binned)} over ten bins of the score"
    return f"{said}: {part.note}" if part.note else said


@dataclass(frozen=True, eq=False, kw_only=True)
class _AlignmentFinding:
    """The results that the audits of calibration and divergence have in common."""

    parts: tuple[AlignmentPart, ...]
    #: The position of the estimate in `parts`.
    main: int
    statistic: float
    pvalue: float
    values: dict[Any, float]
    nuisances: tuple[Any, ...]
    influence: Floats
    notes: tuple[Note, ...]


def audit_alignment(
    question: InfluenceQuestion,
    audit: InfluenceProblem,
    known: KnownProbabilities,
    level: float,
    seed: int,
) -> AlignmentResult:
    """Return the audit of calibration or divergence."""
    if question.measure.name == "calibration" and not question.of_scores:
        raise ArgumentError(
            "metric='calibration' needs scores. Pass y_score= instead of y_pred=.",
            argument="metric",
            mentions=("y_score", "y_pred"),
        )
    measure = _calibration if question.measure.name == "calibration" else _divergence
    finding = measure(question, audit, known, level)
    main = finding.parts[finding.main]
    who, rest = question.target_name, others_name(question.target_name)
    return AlignmentResult(
        estimate=main.estimate,
        standard_error=main.standard_error,
        statistic=finding.statistic,
        pvalue=finding.pvalue,
        confidence_interval=(main.low, main.high),
        alternative="two-sided",
        n_rows=question.n_rows,
        group_sizes={who: len(question.rows), rest: len(question.other_rows)},
        seed=seed,
        engine="influence values",
        notes=(*question.row_notes(), *finding.notes),
        metric=question.measure.name,
        target=question.target_name,
        others=question.other_names,
        values=finding.values,
        proxy_scores=(),
        feature_tests={},
        nuisances=finding.nuisances,
        row=question.rows,
        influence=finding.influence,
        n_missing=question.n_missing,
        attribute=question.attribute,
        of_scores=question.of_scores,
        n_draws=0,
        confidence_level=level,
        problem=audit,
        parts=finding.parts,
    )


def _calibration(
    question: InfluenceQuestion, audit: InfluenceProblem, given: KnownProbabilities, level: float
) -> _AlignmentFinding:
    name = group_name(question.target_name, question.attribute)

    def distance_of(
        who: str, rows: Floats, features: Floats, probabilities: Floats | None
    ) -> CalibrationDistance:
        return calibration_of(
            who,
            rows,
            features,
            probabilities,
            level,
            n_folds=audit.n_folds,
            estimator=audit.estimator,
            call=audit.call,
        )

    own = distance_of(name, audit.rows, audit.matrix, given.outcome)
    rest = distance_of("the others", audit.others, audit.other_matrix, given.other_outcome)
    gap = own.value - rest.value
    error = math.hypot(own.standard_error, rest.standard_error)
    has_interval = not any(math.isnan(distance.interval[0]) for distance in (own, rest))
    low, high = two_sided(gap, error, level) if has_interval else (math.nan, math.nan)
    note = f"no interval: one of both is below {ENOUGH:g} standard errors"
    difference = AlignmentPart(
        of="calibration error less that of the others",
        estimate=gap,
        standard_error=error,
        low=low,
        high=high,
        lower=math.nan,
        note="" if has_interval else note,
    )
    parts = (_calibration_part(name, own), _calibration_part("the others", rest), difference)
    may_miss = Note(
        "regression-may-miss-calibration-error",
        "the calibration error is what the regression finds of it: a regression that misses some "
        "makes it smaller",
    )
    return _AlignmentFinding(
        parts=parts,
        main=2,
        statistic=gap / error if has_interval else math.nan,
        pvalue=2 * upper_tail(abs(gap) / error) if has_interval else math.nan,
        values={question.target_name: own.value, others_name(question.target_name): rest.value},
        nuisances=(own.fit, rest.fit),
        influence=own.influence,
        notes=(_no_proxy_scores_note("calibration"), may_miss),
    )


def _calibration_part(name: str, distance: CalibrationDistance) -> AlignmentPart:
    return AlignmentPart(
        of=f"calibration error of {name}",
        estimate=distance.value,
        standard_error=distance.standard_error,
        low=distance.interval[0],
        high=distance.interval[1],
        lower=distance.lower,
        note=distance.words,
        binned=distance.binned,
    )


def _divergence(
    question: InfluenceQuestion, audit: InfluenceProblem, given: KnownProbabilities, level: float
) -> _AlignmentFinding:
    inside = input_divergence(
        audit.matrix,
        audit.other_matrix,
        given.group,
        level,
        n_folds=audit.n_folds,
        estimator=audit.estimator,
        call=audit.call,
    )
    target, others = audit.rows[:, 1], audit.others[:, 1]
    outside = output_divergence(target, others, level)
    if inside.refusal:
        input_note = Note("input-part-refused", f"the input part is refused: {inside.refusal}")
    else:
        input_note = Note(
            "input-part-is-lower-bound",
            "the input part is a lower bound: a regression that misses differences makes it "
            "smaller",
        )
    if math.isnan(outside.derivative):
        output_note = Note(
            "output-part-without-interval",
            "the output part has no interval: a group has fewer than "
            f"{ENOUGH_EVENTS:g} rows that are predicted positive, or negative",
        )
    else:
        output_note = _no_proxy_scores_note("divergence")
    return _AlignmentFinding(
        parts=(_input_part(inside), _output_part(outside)),
        main=1,
        statistic=outside.statistic,
        pvalue=2 * upper_tail(abs(outside.statistic)),
        values={"input": inside.value, "output": outside.value},
        nuisances=(inside.fit,),
        influence=outside.derivative * (target - float(np.sort(target).mean())),
        notes=(input_note, output_note),
    )


def _no_proxy_scores_note(measure: str) -> Note:
    """Return the note that no feature has a proxy score."""
    return Note(
        "no-proxy-scores",
        f"{measure} has no proxy scores: no interval of them is known to hold",
    )


def _input_part(divergence: InputDivergence) -> AlignmentPart:
    return AlignmentPart(
        of="divergence of the features (input, nats)",
        estimate=divergence.value,
        standard_error=divergence.standard_error,
        low=math.nan,
        high=math.nan,
        lower=divergence.lower,
        note=divergence.refusal
        or ("a lower bound" if divergence.lower > 0 else "not shown to be above 0"),
    )


def _output_part(divergence: OutputDivergence) -> AlignmentPart:
    return AlignmentPart(
        of="divergence of the scores (output, nats)",
        estimate=divergence.value,
        standard_error=divergence.standard_error,
        low=divergence.interval[0],
        high=divergence.interval[1],
        lower=math.nan,
        note="",
    )
