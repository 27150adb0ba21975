"""Runs the lenses of an audit and returns their findings, with reasons for those not run."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, get_args

from ..data.groups import group_label, group_name, pairs_of
from ..data.tables import AuditTable
from ..errors import FairAuditError
from ..literals import Evidence, LensName, NotionName
from ..permutation.comparison import ComparisonSettings, compare_groups, visited_rows
from ..permutation.question import PermutationQuestion, prepare_question
from ..permutation.result import PermutationResult
from ..projection.lens import project_table
from ..projection.result import ProjectionResult
from ..report.notes import Note
from . import lens_words as words
from .context import AuditContext, ModelInputs, design_refusal
from .findings import LensFinding, LensTest, QuestionFinding, not_run
from .lens_tolerances import LensTolerance, large_groups
from .policy import Policy
from .questions import AuditedAttribute, ComputeOptions, PreparedCriterion
from .refusals import reason_of
from .seeds import seed_of

#: Advice for permutation tests that take long.
_ADVICE = (
    "Pass a smaller n_resamples, evidence='none' for no permutation tests, or progress=True to see "
    "how far it is"
)

#: If all replicates of an evidence test visit more rows than this, which takes one core some ten
#: seconds, the test stops as soon as it is decided. Replicates of counts visit no rows.
_MOST_VISITED = 1e10
_STOPS_EARLY = (
    "all {n_resamples:,} replicates of these rows would take long, so the tests stop once they are "
    "decided; such a p-value is valid, but can be far larger than that of all replicates. Call "
    "permutation_test to draw them all"
)

LensRun = tuple[list[LensFinding], dict[str, Any]]


def wanted_lenses(policy: Policy) -> tuple[LensName, ...]:
    """Return the lenses that a policy asks for."""
    return get_args(LensName) if policy.lenses == "auto" else tuple(policy.lenses)


def available_lenses(
    policy: Policy, model_inputs: ModelInputs, table: AuditTable
) -> list[LensName]:
    """Return the lenses of a policy that can be run on a table."""
    return [
        lens
        for lens in wanted_lenses(policy)
        if lens == "permutation"
        or (
            missing_inputs(lens, model_inputs, table.roles) is None
            and design_refusal(lens, table) is None
        )
    ]


def run_lenses(context: AuditContext, threshold: float) -> LensRun:
    """Run the lenses of a policy other than its questions; return findings and results."""
    findings, results = [], {}
    for lens in wanted_lenses(context.policy):
        runs: Iterator[tuple[LensFinding, Any]] = iter(())
        if lens == "projection":
            runs = _run_projections(context, threshold)
        elif lens != "permutation":
            runs = _run_model_lens(lens, context)
        for finding, result in runs:
            if result is not None:
                notes = dict.fromkeys((*result.notes, *finding.notes))
                finding = replace(finding, notes=tuple(notes))
            lens_tolerance = context.lens_tolerance(lens, finding.attribute)
            findings.append(
                finding if lens_tolerance is None else lens_tolerance.give_verdict(finding)
            )
            if result is not None:
                results[f"{lens}: {finding.metric} by {finding.attribute}"] = result
    return findings, results


def missing_inputs(lens: str, model_inputs: ModelInputs, roles: Collection[str]) -> str | None:
    """Return the inputs that a lens needs and does not have; None if it has all."""
    has_model = model_inputs.model is not None and model_inputs.feature_table is not None
    needed = {
        "projection": (
            None
            if "y_score" in roles
            else "scores, whose distance to the threshold is what it costs to move"
        ),
        "individual": None if has_model else "a model and X, its rows: see individual_test",
        "influence": (
            None
            if model_inputs.feature_table is not None
            else "X, the features to look at: see influence_audit"
        ),
        "extremes": (
            None
            if has_model or model_inputs.has_counterfactuals
            else "a model and X with the attribute in it, or counterfactual_score: see extreme_test"
        ),
    }
    return needed.get(lens)


def _run_model_lens(lens: LensName, context: AuditContext) -> Iterator[tuple[LensFinding, Any]]:
    """Run a lens that needs a model or features; without them return the reason."""
    needed = missing_inputs(lens, context.model_inputs, context.roles)
    if needed is not None:
        return iter([(not_run(lens, "", f"needs {needed}"), None)])
    # Imported here, because most audits do not need these modules.
    from . import individual_lens, model_lenses

    run_lens = {
        "individual": individual_lens.run_individual,
        "influence": model_lenses.run_influence,
        "extremes": model_lenses.run_extremes,
    }[lens]
    return run_lens(context)


def _run_projections(context: AuditContext, threshold: float) -> Iterator[tuple[LensFinding, Any]]:
    """Project the scores to the nearest fair ones, for each attribute."""
    compute_options = context.compute_options
    for attribute in context.attributes:
        roles = attribute.table.roles
        notion: NotionName = "equal_opportunity" if "y_true" in roles else "statistical_parity"
        why = context.why_not("projection")
        if (
            why is None
            and (needed := missing_inputs("projection", context.model_inputs, roles)) is not None
        ):
            why = f"needs {needed}"
        if why is not None:
            yield not_run("projection", attribute.name, why, notion), None
            continue
        finding, result = _project_attribute(
            attribute, notion, threshold, compute_options, context.confidence
        )
        lens_tolerance = context.lens_tolerance("projection", attribute.name)
        if lens_tolerance is not None:
            finding = _add_verdict(
                finding,
                lens_tolerance,
                context,
                attribute,
                partial(_project_pair, attribute, notion, threshold),
            )
        yield finding, result


def _project_attribute(
    attribute: AuditedAttribute,
    notion: NotionName,
    threshold: float,
    compute_options: ComputeOptions,
    level: float,
) -> tuple[LensFinding, Any]:
    """Project the scores of all groups of an attribute."""
    try:
        result = project_table(
            attribute.table,
            notion,
            threshold=threshold,
            groups=attribute.groups,
            pos_label=compute_options.pos_label,
            level=level,
            seed=seed_of(compute_options.seed, "projection", notion, attribute.name),
            n_threads=compute_options.n_threads,
        )
    except FairAuditError as error:
        return not_run("projection", attribute.name, reason_of(error), notion), None
    low, high = result.confidence_interval
    finding = LensFinding(
        lens="projection",
        metric=notion,
        attribute=attribute.name,
        estimate=result.estimate,
        low=low,
        high=high,
        pvalue=result.pvalue,
        reason=result.inconclusive,
        told="" if result.inconclusive else words.describe_projection(result),
    )
    return finding, result


def _add_verdict(
    finding: LensFinding,
    lens_tolerance: LensTolerance,
    context: AuditContext,
    attribute: AuditedAttribute,
    project_pair: Callable[..., ProjectionResult],
) -> LensFinding:
    """Return a finding with the tests of all pairs for a gap above the tolerance.

    Pairs are tested, because a gap among more than two groups has no common direction.
    """
    tests, measured = [], set()
    notes: list[Note] = []
    for pair in combinations(large_groups(attribute), 2):
        try:
            result = project_pair(pair, lens_tolerance.tolerance, context.compute_options)
        except FairAuditError as error:
            tests.append(_no_departure(attribute, pair, reason_of(error)))
            continue
        notes += result.notes
        if result.inconclusive is not None:
            tests.append(_no_departure(attribute, pair, result.inconclusive))
            continue
        measured |= set(pair)
        tests.append(lens_tolerance.test_by_pvalues(_describe_departure(attribute, result)))
    # If pairs can be projected, it does not matter whether all groups together can.
    reason = None if measured else finding.reason
    coverage = context.coverage(attribute, measured)
    return replace(
        finding, tests=tuple(tests), coverage=coverage, reason=reason, notes=tuple(notes)
    )


def _project_pair(
    attribute: AuditedAttribute,
    notion: NotionName,
    threshold: float,
    pair: tuple[Any, Any],
    tolerance: float,
    compute_options: ComputeOptions,
) -> ProjectionResult:
    return project_table(
        attribute.table,
        notion,
        threshold=threshold,
        groups=list(pair),
        epsilon=tolerance,
        pos_label=compute_options.pos_label,
        seed=seed_of(compute_options.seed, "projection", notion, attribute.name),
        n_threads=compute_options.n_threads,
    )


def _no_departure(attribute: AuditedAttribute, pair: tuple[Any, Any], reason: str) -> LensTest:
    first, second = (group_name(group, attribute.name) for group in pair)
    return LensTest(first=first, second=second, reason=reason)


def _describe_departure(attribute: AuditedAttribute, result: ProjectionResult) -> LensTest:
    """Return the test of a pair of groups, the one with the higher rate first."""
    [found] = result.criteria
    sides = [
        (value, group_name(group, attribute.name), None if math.isnan(used) else round(used))
        for value, group, used in (
            (found.first_value, found.first, found.first_used),
            (found.second_value, found.second, found.second_used),
        )
    ]
    if found.gap < 0:
        sides.reverse()
    (first_value, first, first_n), (second_value, second, second_n) = sides
    return LensTest(
        first=first,
        second=second,
        first_value=first_value,
        second_value=second_value,
        first_n=first_n,
        second_n=second_n,
        estimate=abs(found.gap),
        p_fail=result.pvalue,
    )


def with_evidence(
    prepared_criteria: Sequence[PreparedCriterion],
    findings: Sequence[QuestionFinding],
    evidence: Evidence,
    compute_options: ComputeOptions,
) -> tuple[tuple[QuestionFinding, ...], dict[str, Any]]:
    """Add permutation tests of equality for binding questions that fail, or for all questions.

    Only pairs of groups that a question compared are tested, as with a reference.
    """
    wanted: dict[str, list[tuple[PreparedCriterion, QuestionFinding]]] = {}
    names: list[str | None] = []
    for criterion, finding in zip(prepared_criteria, findings, strict=True):
        fails = finding.binding and finding.verdict == "fail"
        is_wanted = evidence == "permutation" or (fails and evidence == "failures")
        name = (
            f"permutation: {criterion.metric.name} by {criterion.attribute.name}"
            if is_wanted
            else None
        )
        names.append(name)
        if name is not None:
            wanted.setdefault(name, []).append((criterion, finding))
    tested = {
        name: _run_permutations(questions, compute_options) for name, questions in wanted.items()
    }
    results = {name: result for name, result in tested.items() if result is not None}
    found = tuple(
        finding if name is None else replace(finding, evidence=_pvalue_of(results.get(name)))
        for name, finding in zip(names, findings, strict=True)
    )
    return found, results


def _pvalue_of(result: PermutationResult | None) -> float:
    return math.nan if result is None else result.pvalue


def _run_permutations(
    questions: Sequence[tuple[PreparedCriterion, QuestionFinding]], compute_options: ComputeOptions
) -> PermutationResult | None:
    """Return the permutation test of the groups that questions compared; None without a test.

    The questions are about one metric and one attribute.
    """
    criterion, finding = questions[0]
    metric, attribute = criterion.metric, criterion.attribute
    groups = [group.group for group in finding.tested]
    if len(groups) < 2 or criterion.question.prepared is None:
        return None
    seed = seed_of(compute_options.seed, "evidence", metric.name, attribute.name)
    settings = ComparisonSettings.checked(
        alternative="two-sided",
        adjust="holm",
        engine="auto",
        interval="auto",
        n_resamples=compute_options.n_resamples,
        adaptive=False,
        confidence_level=0.95,
        rng=seed,
        random_state=None,
        n_threads=compute_options.n_threads,
        progress=compute_options.callback,
    )
    prepared = _prepared_for_permutations(criterion, groups)
    if prepared is None:
        prepared = prepare_question(
            attribute.table,
            metric,
            groups=groups,
            score_bins=compute_options.score_bins if metric.kind.takes_bins else None,
            pos_label=compute_options.pos_label,
            n_threads=settings.n_threads,
            seed=settings.seed,
        )
    prepared = prepared.of_pairs(_pairs_to_test(questions, groups))
    if not _is_long(prepared, settings.n_resamples):
        return compare_groups(prepared, settings, _ADVICE)
    result = compare_groups(prepared, replace(settings, adaptive=True), _ADVICE)
    note = Note("stops-early", _STOPS_EARLY.format(n_resamples=settings.n_resamples))
    return replace(result, notes=(*result.notes, note))


def _is_long(prepared: PermutationQuestion, n_resamples: int) -> bool:
    """Return whether all replicates of a permutation test would take long, by its size."""
    if prepared.problem.drawing_engine != "stream":
        return False
    of_pairs, of_all = visited_rows(prepared.problem, prepared.pairs)
    return n_resamples * (sum(of_pairs) + of_all) > _MOST_VISITED


def _prepared_for_permutations(
    criterion: PreparedCriterion, groups: Sequence[Any]
) -> PermutationQuestion | None:
    """Return the prepared question of a criterion if a test of equality can reuse it, else None.

    It cannot if the metric has its own strata: an audit exchanges all rows, a test of equality only
    rows of the same stratum. Nor can it for metrics of functions, whose problem has the seed.
    """
    prepared, kind = criterion.question.prepared, criterion.metric.kind
    own_strata = criterion.metric.conditions_on is not None and not criterion.attribute.table.strata
    if prepared is None or own_strata or kind.reads == "function":
        return None
    keys = prepared.problem.keys
    if [group_label(key) for key in keys] != list(groups):
        return None
    return replace(prepared, pairs=pairs_of(keys, None), left_out=())


def _pairs_to_test(
    questions: Sequence[tuple[PreparedCriterion, QuestionFinding]], groups: Sequence[Any]
) -> set[frozenset[Any]]:
    """Return the pairs of groups that could fail in one of these questions; if none, all pairs."""
    pairs = set()
    for question, finding in questions:
        keys = [] if question.question.prepared is None else question.question.prepared.problem.keys
        only_pass = {
            frozenset(group_label(keys[i]) for i in pair) for pair in question.question.pass_only
        }
        of_groups = (frozenset(group.group for group in pair.test.groups) for pair in finding.pairs)
        pairs |= set(of_groups) - only_pass
    for question, finding in questions:
        prepared = question.question.prepared
        if not finding.pairs and prepared is not None:
            # Without a tolerance a question has the pairs whose values are shown.
            keys = [group_label(key) for key in prepared.problem.keys]
            pairs |= {frozenset((keys[i], keys[j])) for i, j in prepared.pairs}
    everything = {frozenset(pair) for pair in combinations(groups, 2)}
    return pairs & everything or everything
