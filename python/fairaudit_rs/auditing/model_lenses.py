"""Run the lenses influence and extremes of an audit, and return their findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..data.groups import group_name
from ..errors import (
    ArgumentError,
    ColumnError,
    FairAuditError,
    TooManyValuesError,
)
from ..extremes.attribute import read_attribute
from ..extremes.feature_tables import FeatureTable
from ..extremes.lens import extreme_test
from ..influence.lens import influence_audit
from ..influence.rates import RATES
from . import lens_words as words
from .context import AuditContext, GroupMembership, Positions
from .findings import LensFinding, QuestionFinding, not_run
from .lens_tests import (
    compare_levels,
    compare_rates,
    measured_groups,
    measured_pairs,
    note_on_repeated_differences,
    note_on_required_rows,
)
from .lens_tolerances import first_supported_rate, groups_of_eligible_size
from .questions import AuditedAttribute
from .refusals import reason_of

#: Features are regressed on each other only if rows times squared features are at most this.
MAX_REGRESSION_SIZE = 20_000_000


LensOutcome = tuple[LensFinding, Any]


def _try_lens(
    make: Callable[[], LensOutcome], lens: str, attribute: str, metric: str
) -> LensOutcome:
    """Run a lens; if it raises an error, return the error as the reason of its finding."""
    try:
        return make()
    except FairAuditError as error:
        return not_run(lens, attribute, reason_of(error), metric), None


def _take_rows(feature_table: FeatureTable, rows: Positions) -> Any:
    """Return rows of features; if these are all rows, the original with its index."""
    return feature_table.given if len(rows) == feature_table.n_rows else feature_table.take(rows)


# -- influence ---------------------------------------------------------------------------------


def run_influence(context: AuditContext) -> Iterator[LensOutcome]:
    """Find the features related to the gap of the worst-off group, for each attribute."""
    feature_table = context.model_inputs.feature_table
    assert feature_table is not None
    for attribute in context.attributes:
        metric = first_supported_rate(context.policy, attribute)
        why = context.why_not("influence")
        if why is None and not metric:
            why = f"the policy asks for none of {', '.join(RATES)} by {attribute.name}"
        if why is None and "y_pred" not in context.roles:
            why = "needs decisions"
        if why is not None:
            yield not_run("influence", attribute.name, why, metric), None
            continue
        make = partial(_explain_gap, context, attribute, metric, feature_table)
        yield _try_lens(make, "influence", attribute.name, metric)


def _explain_gap(
    context: AuditContext, attribute: AuditedAttribute, metric: str, feature_table: FeatureTable
) -> LensOutcome:
    """Run the influence lens on the gap of the worst-off group of an attribute."""
    target = _find_worst_group(context.questions, attribute, metric)
    people = GroupMembership.from_attribute(attribute)
    columns = [name for name in ("y_true", "y_pred") if name in context.roles]
    found = attribute.table.rows(
        columns=columns, pos_label=context.compute_options.pos_label
    ).columns
    decided: dict[str, Any] = {name: found[name][people.rows].astype(np.int64) for name in columns}
    n, width = len(people.rows), feature_table.n_columns

    def run_with(model: Any) -> Any:
        return influence_audit(
            decided.get("y_true"),
            decided["y_pred"],
            X=_take_rows(feature_table, people.rows),
            model=model,
            sensitive_features={attribute.name: people.names},
            missing="keep_texts",
            target=target,
            metric=metric,
            **context.options("influence", metric, attribute.name),
        )

    notes = []
    model = context.model_inputs.model
    if model is not None and n * width**2 > MAX_REGRESSION_SIZE:
        notes.append(f"without the model: {n:,} rows of {width:,} features are too many for it")
        model = None
    try:
        result = run_with(model)
    except FairAuditError as error:
        reason = reason_of(error)
        if model is None:
            raise
        # Without the model, the marginal scores can still be computed.
        result = run_with(None)
        notes.append(f"without the model: {reason}")
    low, high = result.confidence_interval
    others = [group for group in attribute.groups if group != target]
    first = group_name(target, attribute.name)
    second = group_name(others[0], attribute.name) if len(others) == 1 else "all others"
    finding = LensFinding(
        lens="influence",
        metric=metric,
        attribute=attribute.name,
        first=first,
        second=second,
        estimate=result.estimate,
        low=low,
        high=high,
        pvalue=result.pvalue,
        reason="too few rows for an interval" if math.isnan(low) else None,
        note="; ".join(notes),
        told="" if math.isnan(low) else words.describe_influence(result, first, second),
    )
    lens_tolerance = context.lens_tolerance("influence", attribute.name)
    if lens_tolerance is not None:
        tested = groups_of_eligible_size(_question(context.questions, attribute, metric).groups)
        tests = compare_rates(
            lens_tolerance, context.compute_options, attribute, metric, decided, people, tested
        )
        coverage = context.coverage(attribute, measured_groups(tested, tests))
        features = words.describe_features(result) if low > 0 or high < 0 else ""
        finding = replace(finding, tests=tests, coverage=coverage, features=features)
    return finding, result


def _question(
    questions: Sequence[QuestionFinding], attribute: AuditedAttribute, metric: str
) -> QuestionFinding:
    """Return the question about a metric in an attribute."""
    return next(
        question
        for question in questions
        if (question.metric, question.attribute) == (metric, attribute.name)
    )


def _find_worst_group(
    questions: Sequence[QuestionFinding], attribute: AuditedAttribute, metric: str
) -> Any:
    """Return the worst-off group; for a metric without direction, the one of the lowest value."""
    question = _question(questions, attribute, metric)
    groups = [group for group in question.tested if not math.isnan(group.value)]
    if len(groups) < 2:
        raise ArgumentError(
            f"fewer than two groups of {attribute.name} have a {metric} that could be tested",
            argument="sensitive_features",
        )
    pick = max if question.worse_off == "higher" else min
    return pick(groups, key=lambda group: group.value).group


# -- extremes ----------------------------------------------------------------------------------


def run_extremes(context: AuditContext) -> Iterator[LensOutcome]:
    """Compare the worst cases of groups when an attribute is flipped, for each attribute."""
    model_inputs = context.model_inputs
    for attribute in context.attributes:
        why = context.why_not("extremes")
        if why is None and model_inputs.has_counterfactuals and "y_score" not in context.roles:
            why = "needs y_score, the scores that counterfactual_score is compared with"
        if why is not None:
            yield not_run("extremes", attribute.name, why, "ecd"), None
            continue
        yield _try_lens(
            partial(_flip_attribute, context, attribute), "extremes", attribute.name, "ecd"
        )


def _flip_attribute(context: AuditContext, attribute: AuditedAttribute) -> LensOutcome:
    """Run the extremes lens on counterfactuals in which an attribute is flipped."""
    model_inputs = context.model_inputs
    people = GroupMembership.from_attribute(attribute)
    design: dict[str, Any]
    if model_inputs.has_counterfactuals:
        names = ("y_score", "counterfactual_score")
        found = attribute.table.rows(columns=names).columns
        design = {name: found[name][people.rows] for name in names}
    else:
        assert model_inputs.feature_table is not None
        _check_column(model_inputs.feature_table, attribute, people)
        classes = getattr(
            model_inputs.model, "classes_", getattr(model_inputs.model, "classes", None)
        )
        known = classes is not None and not callable(classes)
        design = {
            "model": model_inputs.model,
            "X": _take_rows(model_inputs.feature_table, people.rows),
            "attribute": attribute.name,
            "pos_label": context.compute_options.pos_label if known else None,
        }

    result = extreme_test(
        **design,
        sensitive_features={attribute.name: people.names},
        missing="keep_texts",
        **context.options("extremes", attribute.name),
    )
    low, high = result.confidence_interval
    pair = result.clearest
    finding = LensFinding(
        lens="extremes",
        metric="ecd",
        attribute=attribute.name,
        first=result.name_of(pair.first),
        second=result.name_of(pair.second),
        estimate=result.estimate,
        low=low,
        high=high,
        pvalue=result.pvalue,
        note=note_on_repeated_differences(result),
        told=words.describe_extremes(result),
    )
    lens_tolerance = context.lens_tolerance("extremes", attribute.name)
    if lens_tolerance is not None:
        groups = {group for pair in measured_pairs(result) for group in pair}
        finding = replace(
            finding,
            tests=compare_levels(lens_tolerance, result),
            coverage=context.coverage(attribute, groups),
            note="; ".join(
                filter(None, (note_on_required_rows(lens_tolerance, result), finding.note))
            ),
        )
    return finding, result


def _check_column(
    feature_table: FeatureTable, attribute: AuditedAttribute, people: GroupMembership
) -> None:
    """Refuse an attribute without a column in X, or whose column does not match the groups."""
    advice = "To flip other columns, call extreme_test with flip= or counterfactual_score=."
    if feature_table.names is None:
        raise ArgumentError(
            f"X has no column names, so {attribute.name} cannot be found in it. {advice}",
            argument="X",
        )
    mismatch = (
        f"X has levels of {attribute.name} that are not its groups, so that flipping the column "
        f"does not change the group. {advice}"
    )
    try:
        found = read_attribute(attribute.name, feature_table)
    except ColumnError:
        raise ArgumentError(
            f"X has no column {attribute.name} to flip. {advice}", argument="X"
        ) from None
    except TooManyValuesError:
        raise ArgumentError(mismatch, argument="X") from None
    code = found.code[people.rows]
    both = len(np.unique(code * len(people.groups) + people.code))
    if not len(np.unique(code)) == len(np.unique(people.code)) == both:
        raise ArgumentError(mismatch, argument="X")
