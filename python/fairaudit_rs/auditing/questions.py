"""The questions of an audit: poses each criterion for each attribute, tests all, gives verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .. import metrics
from ..data.groups import attribute_name, group_label
from ..data.labels import Label
from ..data.tables import AuditTable
from ..errors import ArgumentError, FairAuditError
from ..inference.multiplicity import adjust_pvalues
from ..inference.tolerance import Tolerance
from ..literals import Verdict
from ..metrics.directions import better_direction, undisputed_direction, worse_off
from ..metrics.metric import Metric
from ..metrics.mirrors import gap_key
from ..permutation.equality import equality_tests
from ..permutation.minimum_counts import GroupCount
from ..permutation.tolerance import ToleranceQuestion, ToleranceTest, prepare_tolerance_question
from ..report.notes import Note
from ..results import verdict
from .criterion import Criterion
from .findings import LensFinding, PairFinding, QuestionFinding
from .policy import Policy
from .refusals import reason_of
from .seeds import seed_of
from .sentences import fill_part
from .tolerance_scale import check_scale

_WHY_NOT = "the data hold no {}"
#: The names of columns in sentences.
_COLUMNS = {"y_true": "labels", "y_pred": "decisions", "y_score": "scores"}


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """How the tests of an audit are computed."""

    seed: int
    n_resamples: int
    n_threads: int | None
    pos_label: Label
    score_bins: Any
    callback: Callable[[int, int], object] | None = None


@dataclass(frozen=True, kw_only=True)
class AuditedAttribute:
    """An attribute, or several of them together: its table and the groups that are known."""

    name: str
    table: AuditTable
    #: The groups by name, without those that mean "unknown".
    groups: tuple[Any, ...]
    #: People whose group is not known: the value is missing, or means "unknown".
    n_unknown: int
    #: The single attributes whose combinations are the groups.
    parts: tuple[str, ...]
    #: The share of people by weight whose group is not known; None without weights.
    share_unknown: float | None = None
    #: Notes on how the groups were read.
    notes: tuple[Note, ...] = ()

    @classmethod
    def from_table(
        cls, table: AuditTable, names: Sequence[str], policy: Policy
    ) -> AuditedAttribute:
        """Return one attribute of a table, or the intersection of several."""
        chosen = table.by(*names)
        cells = chosen.cells(columns=())
        sizes = cells.group_sizes()
        unknown = {key for key in sizes if any(policy.is_unknown(part) for part in key)}
        return cls(
            name=attribute_name(names),
            table=chosen,
            groups=tuple(group_label(key) for key in sizes if key not in unknown),
            n_unknown=cells.n_missing + sum(sizes[key] for key in unknown),
            parts=tuple(names),
            share_unknown=1 - chosen.people.share(set(sizes) - unknown)
            if "sample_weight" in table.roles
            else None,
            notes=tuple(cells.notes),
        )

    @property
    def is_intersection(self) -> bool:
        """Return whether the groups are combinations of several attributes."""
        return len(self.parts) > 1


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedCriterion:
    """A criterion for one attribute, with its data read and checked."""

    criterion: Criterion
    attribute: AuditedAttribute
    binding: bool
    metric: Metric
    question: ToleranceQuestion
    #: Why a binding question was skipped, which withholds a pass.
    why_skipped: str | None = None

    @property
    def name(self) -> tuple[str, ...]:
        """The name from which the seeds of its tests are derived."""
        scale = "" if self.question.tolerance is None else self.question.tolerance.scale
        return (self.metric.name, self.attribute.name, scale)

    @property
    def family_key(self) -> Hashable:
        """The key of questions whose pairs have the same gaps, which count once."""
        tolerance = self.question.tolerance
        assert tolerance is not None
        is_gap = tolerance.scale == "difference"
        of_metric = gap_key(self.metric) if is_gap else self.metric.name
        if self.criterion.is_chosen_reference:
            # Metrics with the same gaps can have different highest groups.
            of_metric = self.metric.name
        return (of_metric, tolerance, self.attribute.name, self.criterion.reference)


def prepare_criteria(
    policy: Policy, attributes: Sequence[AuditedAttribute], compute_options: ComputeOptions
) -> list[PreparedCriterion]:
    """Pose every criterion for every attribute that it covers.

    Too few replicates for the comparisons so far are refused before more data are read.
    """
    found: list[PreparedCriterion] = []
    for criterion in policy.criteria:
        if criterion.metric is None:
            continue
        metric = metrics.get(criterion.metric)
        for attribute in attributes:
            binding = criterion.binding and (
                not attribute.is_intersection or policy.intersections == "bind"
            )
            if not _is_about(criterion, attribute) or (len(attribute.parts) > 2 and not binding):
                continue
            found.append(
                PreparedCriterion(
                    criterion=criterion,
                    attribute=attribute,
                    binding=binding,
                    metric=metric,
                    question=_pose_criterion(
                        criterion, metric, attribute, policy, compute_options, binding
                    ),
                )
            )
            if binding and not attribute.is_intersection:
                _check_resamples(found, policy, compute_options)
    return found


def _check_resamples(
    prepared_criteria: Sequence[PreparedCriterion], policy: Policy, compute_options: ComputeOptions
) -> None:
    """Refuse too few replicates for the binding questions about single attributes."""
    single = [
        criterion for criterion in prepared_criteria if not criterion.attribute.is_intersection
    ]
    Family.from_questions(single, policy, compute_options).check_resamples()


def skipped_criterion(
    criterion: Criterion, attribute: AuditedAttribute, why: str
) -> PreparedCriterion:
    """Return a binding question that is skipped, with the reason."""
    assert criterion.metric is not None
    metric = metrics.get(criterion.metric)
    return PreparedCriterion(
        criterion=criterion,
        attribute=attribute,
        binding=True,
        metric=metric,
        question=_unasked(metric, _tolerance(criterion), attribute.table, why),
        why_skipped=why,
    )


def _tolerance(criterion: Criterion) -> Tolerance | None:
    if criterion.ratio is not None:
        return Tolerance(value=criterion.ratio, scale="ratio")
    return None if criterion.tolerance is None else Tolerance(value=criterion.tolerance)


def _is_about(criterion: Criterion, attribute: AuditedAttribute) -> bool:
    if not attribute.is_intersection:
        return criterion.covers(attribute.name)
    # A reference group belongs to one attribute, so it has no meaning in intersections.
    return not criterion.is_fixed_reference and all(
        map(criterion.covers, attribute.table.feature_names)
    )


def _pose_criterion(
    criterion: Criterion,
    metric: Metric,
    attribute: AuditedAttribute,
    policy: Policy,
    compute_options: ComputeOptions,
    binding: bool,
) -> ToleranceQuestion:
    table = attribute.table
    tolerance = _tolerance(criterion)
    missing = [name for name in metric.needs if name not in table.roles]
    if missing:
        if binding:
            raise ArgumentError(
                f"{missing[0]} is None, but {metric.name} needs it and binds in the policy "
                f"{policy.name!r}. Pass {missing[0]}=, or set binding to false.",
                argument=missing[0],
                code="missing-argument",
                needed_by=f"{metric.name}, which binds in the policy {policy.name!r},",
            )
        why = _WHY_NOT.format(" and no ".join(_COLUMNS[name] for name in missing))
        return _unasked(metric, tolerance, table, why)
    agreed = undisputed_direction(metric, policy.punitive)
    options: dict[str, Any] = {
        "score_bins": compute_options.score_bins if metric.kind.takes_bins else None,
        "pos_label": compute_options.pos_label,
        "n_threads": compute_options.n_threads,
        "seed": seed_of(compute_options.seed, metric.name, attribute.name),
    }
    try:
        check_scale(metric, tolerance, table, compute_options.pos_label)
        return prepare_tolerance_question(
            table,
            metric,
            tolerance,
            floor=policy.floor,
            groups=attribute.groups,
            reference=criterion.reference,
            better=agreed if agreed is not None else better_direction(metric, policy.punitive),
            one_sided=agreed is not None,
            has_pass=policy.has_pass,
            **options,
        )
    except FairAuditError as error:
        # An error in a non-binding question must not stop the audit.
        if binding:
            raise
        return _unasked(metric, tolerance, table, reason_of(error))


def _unasked(
    metric: Metric, tolerance: Tolerance | None, table: AuditTable, reason: str
) -> ToleranceQuestion:
    return ToleranceQuestion(
        metric=metric,
        tolerance=tolerance,
        groups=(),
        n_rows=table.cells(columns=()).n_rows,
        pairs=(),
        n_comparisons=0,
        reason=reason,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """All pairs of all binding questions, whose p-values are adjusted together.

    Tests of binding lenses count too, as comparisons that are not rejected.
    """

    policy: Policy
    compute_options: ComputeOptions
    n_tests: int
    #: The counted questions by `PreparedCriterion.family_key`.
    counted: dict[Hashable, PreparedCriterion] = field(default_factory=dict)

    @classmethod
    def from_questions(
        cls,
        prepared_criteria: Sequence[PreparedCriterion],
        policy: Policy,
        compute_options: ComputeOptions,
        n_others: int = 0,
    ) -> Family:
        """Return the family of the binding questions; of those with the same gaps one counts.

        ``n_others`` is the number of tests of other lenses.
        """
        counted: dict[Hashable, PreparedCriterion] = {}
        for criterion in prepared_criteria:
            if criterion.binding and criterion.question.pairs:
                counted.setdefault(criterion.family_key, criterion)
        n_tests = n_others + sum(criterion.question.n_comparisons for criterion in counted.values())
        return cls(policy=policy, compute_options=compute_options, n_tests=n_tests, counted=counted)

    def check_resamples(self) -> None:
        """Refuse too few replicates for a binding question to fail."""
        for criterion in self.counted.values():
            criterion.question.check_resamples(
                self.compute_options.n_resamples, self._n_each, self.policy.alpha
            )

    @property
    def _n_each(self) -> int:
        """The number of comparisons that a fail is adjusted for."""
        return self.n_tests if self.policy.adjustment == "holm" else 1

    def findings(
        self, prepared_criteria: Sequence[PreparedCriterion]
    ) -> tuple[QuestionFinding, ...]:
        """Test all questions, and give each its verdict."""
        self.check_resamples()
        tested = {
            key: self._tests(criterion, self.n_tests) for key, criterion in self.counted.items()
        }
        adjusted = self._adjusted(tested)
        return tuple(self._finding(criterion, tested, adjusted) for criterion in prepared_criteria)

    def _tests(self, criterion: PreparedCriterion, n_tests: int) -> tuple[ToleranceTest, ...]:
        each = n_tests if self.policy.adjustment == "holm" else 1
        return criterion.question.tests(
            alpha=self.policy.alpha,
            n_tests=each,
            n_resamples=self.compute_options.n_resamples,
            seed=seed_of(self.compute_options.seed, *criterion.name),
            n_threads=self.compute_options.n_threads,
            callback=self.compute_options.callback,
        )

    def _adjusted(
        self, tested: Mapping[Hashable, Sequence[ToleranceTest]]
    ) -> dict[Hashable, list[float]]:
        """Return adjusted p-values by question; comparisons that were not made count as 1."""
        computed = [test.p_fail for tests in tested.values() for test in tests]
        pvalues = [*computed, *[1.0] * (self.n_tests - len(computed))]
        adjusted = iter(adjust_pvalues(pvalues, self.policy.adjustment).tolist())
        return {key: [next(adjusted) for _ in tests] for key, tests in tested.items()}

    def _finding(
        self,
        criterion: PreparedCriterion,
        tested: Mapping[Hashable, Sequence[ToleranceTest]],
        adjusted: Mapping[Hashable, list[float]],
    ) -> QuestionFinding:
        question, metric = criterion.question, criterion.metric
        found = QuestionFinding(
            metric=metric.name,
            description=metric.description,
            is_share=metric.is_proportion,
            attribute=criterion.attribute.name,
            is_intersection=criterion.attribute.is_intersection,
            tolerance=question.tolerance,
            binding=criterion.binding,
            verdict="not_measurable"
            if question.tolerance is not None and criterion.why_skipped is None
            else "not_asked",
            groups=question.groups,
            pairs=(),
            n_rows=question.n_rows,
            coverage=question.coverage,
            weight=question.weight,
            reason=question.reason,
            worse_off=worse_off(metric, self.policy.punitive),
        )
        if question.tolerance is None:
            equal = equality_tests(question)
            shown = [PairFinding(test=x, adjusted=math.nan, verdict="not_asked") for x in equal]
            return replace(found, pairs=tuple(shown))
        if not question.pairs:
            return found
        tests: Sequence[ToleranceTest]
        if criterion.binding:
            first = self.counted[criterion.family_key]
            tests, fails = tested[criterion.family_key], adjusted[criterion.family_key]
            if first is not criterion:
                found = replace(found, same_as=first.metric.name)
                is_same = metric.native.fraction == first.metric.native.fraction
                tests = [_mirror_test(test, question.groups, is_same) for test in tests]
            n_tests = self.n_tests
        else:
            n_tests = question.n_comparisons
            try:
                tests = self._tests(criterion, n_tests)
            except FairAuditError as error:
                return replace(found, reason=reason_of(error))
            pvalues = [test.p_fail for test in tests] + [1.0] * (n_tests - len(tests))
            fails = adjust_pvalues(pvalues, self.policy.adjustment).tolist()[: len(tests)]
        pairs = tuple(
            self._pair(test, p, question, n_tests) for test, p in zip(tests, fails, strict=True)
        )
        if any(pair.telling and pair.telling.side == "within" for pair in pairs):
            times = question.rows_to_pass(tests, self.policy.alpha)
            pairs = tuple(pair.with_rows_to_pass(times) for pair in pairs)
        word = verdict.of_question(
            verdict.PairPValues(fails, [test.p_pass for test in tests]),
            alpha=self.policy.alpha,
            coverage=question.coverage,
            min_coverage=self.policy.min_coverage,
            withheld=bool(question.withheld),
            has_pass=self.policy.has_pass,
        )
        reason = found.reason
        if word == "inconclusive" and all(pair.is_within for pair in pairs):
            reason = self._why_no_pass(question)
        return replace(found, pairs=pairs, verdict=word, reason=reason)

    def _pair(
        self, test: ToleranceTest, adjusted: float, question: ToleranceQuestion, n_tests: int
    ) -> PairFinding:
        tolerance, alpha = question.tolerance, self.policy.alpha
        assert tolerance is not None
        word: Verdict = "inconclusive"
        if verdict.rejects_at(adjusted, alpha):
            word = "fail"
            # A later step of Holm can reject although the bound, from the first step, does not.
            beyond = max if tolerance.scale == "difference" else min
            test = replace(test, least=beyond(test.least, tolerance.value))
        elif verdict.rejects_at(test.p_pass, alpha):
            word = verdict.in_policy("pass", self.policy.has_pass)
        telling = None
        if word == "inconclusive":
            each = n_tests if self.policy.adjustment == "holm" else 1
            telling = test.rows_that_tell(tolerance, alpha, each)
        return PairFinding(test=test, adjusted=adjusted, verdict=word, telling=telling)

    def _why_no_pass(self, question: ToleranceQuestion) -> str:
        if question.withheld:
            n = len(question.withheld)
            return fill_part("why_open", "group_withheld" if n == 1 else "withheld", n=n)
        return fill_part(
            "why_open",
            "few_covered",
            share=f"{100 * question.coverage:.1f}",
            needed=f"{100 * self.policy.min_coverage:g}",
        )


def _mirror_test(test: ToleranceTest, groups: Sequence[GroupCount], is_same: bool) -> ToleranceTest:
    """Return the test of a metric as a test of another metric with the same gaps."""
    of_other = {name.group: name for name in groups}
    first, second = (of_other[group.group] for group in test.groups)
    if is_same:
        # Another name of the same metric.
        return replace(test, first=first, second=second)
    within = None if test.within is None else test.within.complement().swapped()
    return replace(test, first=second, second=first, within=within)


def overall_verdict(findings: Sequence[QuestionFinding | LensFinding]) -> Verdict:
    """Return the verdict of an audit: the worst of its binding questions and lenses.

    A skipped binding question withholds a pass.
    """
    word = verdict.worst_verdict(finding.verdict for finding in findings if finding.binding)
    skipped = any(
        isinstance(finding, QuestionFinding) and finding.is_skipped for finding in findings
    )
    return "inconclusive" if word == "pass" and skipped else word


def least_coverage(findings: Sequence[QuestionFinding | LensFinding]) -> float:
    """Return the smallest share of people in tested groups, over binding questions and lenses.

    NaN if there are none, or if a binding lens was not run.
    """
    known = [
        finding.coverage
        for finding in findings
        if finding.binding and not (isinstance(finding, QuestionFinding) and finding.is_skipped)
    ]
    return math.nan if not known or any(map(math.isnan, known)) else min(known)
