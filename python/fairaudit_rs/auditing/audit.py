"""The function `audit`, which tests data against a policy and returns one verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from .. import arguments, metrics
from ..data.columns import list_some
from ..data.frames import check_columns
from ..data.groups import group_name
from ..data.index import check_indices, indices_of
from ..data.labels import Label, is_coded, label_matches
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError, DataError
from ..extremes.feature_tables import FeatureTable, wrap_features
from ..literals import Auto, Evidence, LensName, Missing, MixedClusters, PresetName
from ..permutation.question import named_columns
from ..report.notes import Note
from .attribute_names import check_attribute_names, check_bands
from .context import AuditContext, ModelInputs
from .context_notes import (
    base_rates,
    notes_of_conflict,
    notes_of_indicator_attributes,
    notes_of_lens_results,
    notes_of_lenses,
    notes_of_refusals,
    notes_of_uniform_decisions,
    weight_base_rates,
)
from .findings import QuestionFinding
from .intersections import intersections_of, limit_intersections, notes_of_small
from .lens_tolerances import LensTolerances
from .lenses import available_lenses, run_lenses, wanted_lenses, with_evidence
from .policy import Policy
from .questions import (
    AuditedAttribute,
    ComputeOptions,
    Family,
    PreparedCriterion,
    overall_verdict,
    prepare_criteria,
)
from .request import AuditRequest
from .result import Audit
from .rules.categories import bias_audit
from .rules.lines import notes_of_own_minimum
from .rules.report import rule_report
from .strata_tables import notes_of_homogeneity, notes_of_samples
from .values import lens_names


def audit(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    threshold: float = 0.5,
    sensitive_features: Any = None,
    data: Any = None,
    model: Any = None,
    X: Any = None,
    counterfactual_score: Any = None,
    policy: Policy | PresetName | str | Path | None = None,
    lenses: Auto | Sequence[LensName] = "auto",
    evidence: Evidence = "failures",
    strata: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    counts: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    missing: Missing | None = None,
    mixed_clusters: MixedClusters = "refuse",
    n_resamples: int = 9_999,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> Audit:
    r"""Audit decisions or scores against a policy, and return one verdict.

    Every criterion of the policy is tested for every sensitive attribute, on all pairs of groups
    with enough eligible rows (rows in the denominator of the metric). The verdict is *fail* when
    the data show a gap beyond its tolerance, *pass* when they show that there is none, and
    *inconclusive* when they show neither. A gap does not pass merely because it is not significant.

    Parameters
    ----------
    y_true, y_pred, y_score : array, or str with ``data``, optional
        Labels, decisions, and scores of the positive value. A metric that the verdict depends on
        (a binding one) raises an error if its columns are missing; other metrics are reported as
        not measurable.
    threshold : float
        For the projection lens only: scores at or above it count as positive decisions.
    sensitive_features : array, several arrays, or str(s) with ``data``
        The attributes. Each is tested alone; pairs of attributes are informational, unless the
        policy says otherwise.
    data : frame, path, glob or `Cells`, optional
        See `permutation_test`.
    model : object, optional
        The model that made the decisions, for the lenses that need it: see the notes.
    X : frame or array, or names of columns of ``data``, optional
        The features of every row, as the model takes them.
    counterfactual_score : array, or str with ``data``, optional
        Scores with the attribute flipped, for the lens of extremes: see `extreme_test`.
    policy : Policy, str or path, optional
        A policy, the name of a preset, or a file ending in ``.toml``. None takes the default for
        the given columns: see `Policy.default`.
    lenses : str or sequence of str
        Which of "permutation", "projection", "individual", "influence" and "extremes" to run, in
        place of the lenses of the policy; "auto" runs those of the policy. They are informational,
        except those that a criterion of the policy names.
    evidence : {"failures", "permutation", "none"}
        Which questions also get a permutation test of equality: "failures", the binding ones that
        fail; "permutation", all; "none". It does not affect the verdict. If all replicates would
        visit more than 10^10 rows, the tests stop as soon as they are decided, as with
        ``adaptive=True``.
    strata, clusters, sample_weight, score_bins : optional
        See `intervals`. ``strata`` takes columns only, not ``"auto"``.
    counts : array or str, optional
        Number of people that each row stands for; see `tabulate`. Weights, clusters, scores and a
        model need one row for each person.
    pos_label : optional
        The positive value of labels and decisions, if the policy does not name the favourable one.
    missing, mixed_clusters : optional
        See `permutation_test`.
    n_resamples : int
        Number of replicates of the tests that use replicates; most tests use formulas.
    rng, random_state, n_threads, progress : optional
        See `permutation_test`. Every test has its own seed, derived from this one and its name.

    Returns
    -------
    Audit

    Notes
    -----
    A question is one metric and one attribute. For each pair of groups, ordered so that the gap d
    is at least 0, the p-value of a fail is :math:`P(tol) + P(-tol)` and that of a pass
    :math:`\max(P(-tol), P'(tol))`, with :math:`P(m)` the p-value of the hypothesis that the gap is
    at most m and :math:`P'(m)` that it is at least m, from the tests of `equivalence_test`. Fails
    are adjusted for all pairs of all binding questions (Holm); a pass needs every pair. Groups
    below 30 eligible rows (50 and 10 of each label for F1 and losses of scores, 50 and 20 of each
    for AUC) are not tested but listed with the number of rows they lack; a pass also needs 95 % of
    all people to be in tested groups.

    Other lenses are informational and run with the defaults of their own functions. A lens that a
    criterion of the policy names (``Criterion(lens="extremes", tolerance=0.1)``) has a verdict too:
    a comparison fails when the lower limit of its gap, with error rate alpha / m, is above the
    tolerance, with m the number of comparisons of all binding questions and lenses, and passes when
    the upper limit, with error rate alpha, is below it. Holm's adjustment of the questions counts
    these comparisons among the tests, as if they were never rejected. The projection lens can fail
    or be inconclusive, but never passes.
    *individual*: `individual_test` with the fair metric of the policy, or a `FairMetric.subspace`
    of all attributes. Features are scaled to standard deviations, and the attack keeps exactly one
    1 in every one-hot feature. At most 100,000 rows are used for a linear model (20,000 with
    one-hot features), and 2,000 for other models. If the criterion has a tolerance, the bounds use
    the fair metric of the policy; without one, they allow for the error of the fitted metric by its
    profile interval.
    *influence*: for each attribute, `influence_audit` of the worst-off group and the first metric
    of the policy that it supports. Without a model, or if rows times squared features
    exceed 20 million, it reports marginal scores only.
    *extremes*: `extreme_test` of every attribute that is a column of X with the same groups, or of
    ``counterfactual_score``.
    A lens that cannot run appears as a row with the reason. The output of a model without
    ``classes_`` is read as scores of the positive value.

    Examples
    --------
    >>> import numpy as np, fairaudit_rs as fa
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 4_000)
    >>> decided = (rng.random(4_000) < np.where(sex == "f", 0.3, 0.6)).astype(int)
    >>> audit = fa.audit(y_pred=decided, sensitive_features={"sex": sex}, rng=1)
    >>> audit.verdict, audit.exit_code()
    ('fail', 1)
    """
    evidence = arguments.choice("evidence", evidence, get_args(Evidence))
    lenses = lens_names(lenses)
    checked = arguments.check(
        threshold=threshold,
        n_resamples=n_resamples,
        rng=rng,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    policy_read = _read_policy(policy)
    table = AuditTable.make(
        data=data,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        counterfactual_score=counterfactual_score,
        sensitive_features=sensitive_features,
        strata=strata,
        clusters=clusters,
        sample_weight=sample_weight,
        counts=counts,
        extra=() if policy_read is None else _metric_columns(policy_read),
        missing=missing,
        mixed_clusters=mixed_clusters,
    )
    chosen = policy_read or Policy.default(
        labels="y_true" in table.roles,
        decisions="y_pred" in table.roles,
        scores="y_score" in table.roles,
    )
    if lenses != "auto":
        chosen = replace(chosen, lenses=lenses)
    check_attribute_names(chosen, table.feature_names)
    table = table.with_bands(chosen.bands).with_cache()
    if counts is not None and (X is not None or model is not None):
        name, other = ("model", "X") if X is None else ("X", "model")
        raise ArgumentTypeError(
            f"{name} needs one row for each person, and with counts= a row stands for several. "
            "Pass data with one row for each person, or audit without X= and model=.",
            argument=name,
            mentions=("counts", other),
            code="conflicting-arguments",
        )
    model_inputs = ModelInputs(
        model=model,
        feature_table=None if X is None else _read_features(X, data, table),
        has_counterfactuals=counterfactual_score is not None,
    )
    positive = _positive(chosen, table, pos_label)
    table = table.with_positive(positive)
    request = AuditRequest.from_arguments(
        data=data,
        arguments={
            "y_true": y_true,
            "y_pred": y_pred,
            "y_score": y_score,
            "counterfactual_score": counterfactual_score,
            "sample_weight": sample_weight,
            "counts": counts,
            "clusters": clusters,
        },
        table=table,
        policy=chosen,
        positive=positive,
    )
    table = table if counts is None else table.collapse_to_cells(positive).with_cache()
    compute_options = ComputeOptions(
        seed=checked.seed,
        n_resamples=checked.n_resamples,
        n_threads=checked.n_threads,
        pos_label=positive,
        score_bins=score_bins,
        callback=checked.progress,
    )
    return _run_audit(
        table, chosen, compute_options, checked.threshold, evidence, model_inputs, request
    )


def _run_audit(
    table: AuditTable,
    policy: Policy,
    compute_options: ComputeOptions,
    threshold: float,
    evidence: Evidence,
    model_inputs: ModelInputs,
    request: AuditRequest,
) -> Audit:
    attributes = _attributes(table, policy)
    check_bands(policy, [attribute for attribute in attributes if not attribute.is_intersection])
    prepared_criteria = limit_intersections(
        prepare_criteria(policy, attributes, compute_options), table, policy, attributes
    )
    single = [attribute for attribute in attributes if not attribute.is_intersection]
    lens_tolerances = LensTolerances.from_questions(
        policy, single, prepared_criteria, available_lenses(policy, model_inputs, table)
    )
    family = Family.from_questions(
        prepared_criteria, policy, compute_options, lens_tolerances.n_binding
    )
    findings = family.findings(prepared_criteria)
    context = AuditContext(
        policy=policy,
        attributes=single,
        compute_options=compute_options,
        model_inputs=model_inputs,
        questions=findings,
        lens_tolerances=replace(lens_tolerances, n_tests=family.n_tests),
    )
    lens_findings, results = run_lenses(context, threshold)
    if "permutation" in wanted_lenses(policy):
        findings, tests = with_evidence(prepared_criteria, findings, evidence, compute_options)
        results = tests | results
    rates_of_rows = base_rates(attributes, compute_options.pos_label)
    weighted_rates = weight_base_rates(rates_of_rows, attributes, compute_options.pos_label)
    result = Audit(
        verdict=overall_verdict([*findings, *lens_findings]),
        policy=policy,
        questions=findings,
        others=tuple(lens_findings),
        base_rates=weighted_rates,
        attributes=table.feature_names,
        n_rows=table.cells(columns=()).n_rows,
        n_comparisons=family.n_tests,
        seed=compute_options.seed,
        n_resamples=compute_options.n_resamples,
        notes=(),
        results=results,
        bias_audit=bias_audit(table, policy, compute_options.pos_label)
        if policy.rule == "nyc_ll144"
        else None,
        rule_report=rule_report(policy, single, rates_of_rows),
        request=replace(request, excluded=_excluded(attributes, prepared_criteria)),
    )
    notes = [*_notes_of_rows(prepared_criteria), *_notes(result, attributes, findings)]
    notes += notes_of_lens_results(result.others, results, notes)
    return replace(result, notes=tuple(dict.fromkeys(notes)))


def _read_features(X: Any, data: Any, table: AuditTable) -> FeatureTable:
    """Return the features of X, checked against the rows of the table."""
    if isinstance(X, str) or (isinstance(X, list | tuple) and X and isinstance(X[0], str)):
        names = [X] if isinstance(X, str) else list(X)
        kind = type(data).__module__.partition(".")[0]
        if kind not in ("pandas", "polars") or hasattr(data, "collect"):
            raise ArgumentTypeError(
                f"X is {X!r}; accepted: a frame or an array with one row for each row of the "
                "data, or names of columns where data is a frame of pandas or polars",
                argument="X",
            )
        check_columns(names, list(data.columns), "the data")
        X = data[names]
    if not table.source.holds_rows:
        raise ArgumentTypeError(
            "X needs the rows of the data, and data=cells has counts only. Pass the rows, or audit "
            "without X=.",
            argument="X",
            mentions=("data",),
            code="conflicting-arguments",
        )
    feature_table = wrap_features(X)
    check_indices(indices_of({"the labels and decisions": table.index, "X": X}))
    n_rows = table.loaded("X").n_rows
    if feature_table.n_rows != n_rows:
        raise DataError(
            f"X has {feature_table.n_rows:,} rows; the data have {n_rows:,}. Pass one "
            f"row of X for each row "
            "of the data.",
            argument="X",
        )
    return feature_table


def _read_policy(policy: object) -> Policy | None:
    """Return the policy that the user passed; None for the default."""
    if policy is None:
        return None
    if isinstance(policy, Path) or (isinstance(policy, str) and policy.endswith(".toml")):
        return Policy.load(policy)
    if isinstance(policy, str):
        return Policy.preset(arguments.choice("policy", policy, get_args(PresetName)))
    if isinstance(policy, Policy):
        return policy
    raise ArgumentTypeError(
        f"policy is a {type(policy).__name__}; accepted: a Policy, the name of a preset such as "
        "'opportunity', a file ending in .toml, or None for the default",
        argument="policy",
    )


def _metric_columns(policy: Policy) -> list[str]:
    """Return the columns of the data that metrics of the policy name themselves."""
    known = [metrics.get(criterion.metric) for criterion in policy.criteria if criterion.metric]
    return list(dict.fromkeys(name for metric in known for name in named_columns(metric)))


def _positive(policy: Policy, table: AuditTable, pos_label: Label) -> Label:
    """Return the positive value of labels and decisions; None if nothing names one."""
    roles = [name for name in ("y_pred", "y_true") if name in table.roles]
    if policy.favourable is None and pos_label is None and roles:
        _refuse_unnamed_texts(roles[0], table)
    if policy.favourable is None or not roles:
        return pos_label
    if not table.source.holds_rows:
        if policy.positive_label([0, 1]) != 1:
            raise ArgumentTypeError(
                f"favourable is {policy.favourable!r} with data=cells, whose positive value is 1. "
                "Tabulate the rows again with another pos_label=, or remove favourable.",
                argument="favourable",
                mentions=("data", "pos_label"),
                code="conflicting-arguments",
            )
        return pos_label
    if pos_label is not None:
        raise ArgumentTypeError(
            f"pos_label is {pos_label!r}, and favourable is {policy.favourable!r} in the policy. "
            "Give one of them.",
            argument="pos_label",
            mentions=("favourable",),
            code="conflicting-arguments",
        )
    return policy.positive_label(_classes_of(policy, roles, table))


def _classes_of(policy: Policy, named: Sequence[str], table: AuditTable) -> list[Any]:
    """Return the values of decisions, or of labels, among which the favourable value is.

    Decisions of 0 and 1, such as those of a cut, go with labels of any two values.
    """
    values = {role: table.values(role) for role in named[:1]}
    first = values[named[0]]
    if any(label_matches(value, policy.favourable) for value in first):
        return first
    if is_coded(first) and len(named) > 1:
        values[named[1]] = table.values(named[1])
        if any(label_matches(value, policy.favourable) for value in values[named[1]]):
            return values[named[1]]
    holds = " and ".join(f"{role} holds {list_some(some)}" for role, some in values.items())
    raise DataError(
        f"favourable is {policy.favourable!r}, but {holds}. Name the value that people want.",
        argument="favourable",
        mentions=tuple(values),
    )


def _refuse_unnamed_texts(role: str, table: AuditTable) -> None:
    """Refuse labels or decisions that are two texts if nothing says which one is favourable."""
    if not table.source.holds_rows:
        return
    try:
        values = table.values(role)
    except DataError:
        return  # Too many values for labels: a later check raises a clearer error.
    if len(values) == 2 and all(isinstance(value, str) for value in values):
        first, second = sorted(values)
        raise ArgumentError(
            f"favourable is None and {role} holds {first!r}, {second!r}",
            argument="favourable",
            mentions=("pos_label", role),
            code="missing-argument",
            advice=(
                f". Pass pos_label={second!r}, if that is the value that people want, or set "
                "favourable in a Policy."
            ),
        )


def _attributes(table: AuditTable, policy: Policy) -> list[AuditedAttribute]:
    """Return the attributes, and intersections of them."""
    single = [AuditedAttribute.from_table(table, (name,), policy) for name in table.feature_names]
    return [*single, *intersections_of(table, policy)]


def _notes_of_rows(prepared_criteria: list[PreparedCriterion]) -> Iterator[Note]:
    """Yield the notes on how the rows of binding questions were read and tested."""
    for criterion in prepared_criteria:
        prepared = criterion.question.prepared
        if not criterion.binding or prepared is None:
            continue
        yield from prepared.notes
        if any(map(prepared.problem.uses_melded_limits, criterion.question.pairs)):
            note = prepared.problem.melding_note
            assert note is not None
            yield note


def _excluded(
    attributes: Sequence[AuditedAttribute], prepared_criteria: Sequence[PreparedCriterion]
) -> tuple[str, ...]:
    """Describe the excluded rows: unknown group, weight 0, or a cluster in several groups."""
    exclusions = []
    weights = (
        attributes[0].table.weights() if "sample_weight" in attributes[0].table.roles else None
    )
    n_zero_weight = 0 if weights is None else int(np.count_nonzero(weights == 0))
    if n_zero_weight:
        exclusions.append(f"{n_zero_weight:,} row{'' if n_zero_weight == 1 else 's'} of weight 0")
    for attribute in attributes:
        questions = (
            criterion.question.prepared
            for criterion in prepared_criteria
            if criterion.attribute is attribute
        )
        n_dropped = max(
            (question.n_dropped for question in questions if question is not None), default=0
        )
        if n_dropped and not attribute.is_intersection:
            exclusions.append(
                f"{n_dropped:,} rows of clusters in several groups of {attribute.name}"
            )
    for attribute in attributes:
        who = f"{attribute.n_unknown:,} {'person' if attribute.n_unknown == 1 else 'people'}"
        if attribute.share_unknown is not None:
            who = (
                f"{attribute.n_unknown:,} rows ({100 * attribute.share_unknown:.1f} % of "
                f"people by weight)"
            )
        if attribute.n_unknown and not attribute.is_intersection:
            exclusions.append(f"{who} without a known {attribute.name}")
    return tuple(exclusions)


def _notes(
    result: Audit, attributes: list[AuditedAttribute], findings: tuple[QuestionFinding, ...]
) -> list[Note]:
    """Return the notes that a reader needs besides the verdict."""
    notes = [note for attribute in attributes for note in attribute.notes]

    def named(attribute: str, group: Any) -> str:
        return group_name(group, attribute)

    notes += notes_of_own_minimum(result.policy, result.rule_report)
    notes += notes_of_small(findings, named)
    notes += notes_of_indicator_attributes(attributes)
    notes += notes_of_uniform_decisions(result.base_rates)
    notes += notes_of_refusals(findings, named)
    notes += notes_of_conflict(findings, result.base_rates, result.policy.name, named)
    notes += notes_of_homogeneity(findings, named)
    notes += notes_of_samples(findings)
    return [*notes, *notes_of_lenses(result.others)]
