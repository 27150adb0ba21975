"""Influence and extremes in an audit, each where it can be run."""

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
from ..extremes.forms import Form
from ..extremes.lens import extreme_test
from ..influence.lens import influence_audit
from ..influence.rates import RATES
from . import lens_words as words
from .binding import rate_of, testable
from .findings import LensFinding, QuestionFinding, not_run
from .lens_tests import (
    measured_groups,
    measured_pairs,
    of_levels,
    of_rates,
    repeats_of_levels,
    rows_of_levels,
)
from .questions import Attribute
from .refusals import reason_of
from .setting import People, Positions, Setting

#: Regressions of features on each other: rows times squared features up to which they are made.
MOST_REGRESSED = 20_000_000


Ran = tuple[LensFinding, Any]


def _tried(make: Callable[[], Ran], lens: str, attribute: str, metric: str) -> Ran:
    """Run a lens; what it refuses is a finding, and stops nobody."""
    try:
        return make()
    except FairAuditError as error:
        return not_run(lens, attribute, reason_of(error), metric), None


def _taken(form: Form, rows: Positions) -> Any:
    """Return rows of features; all of them as they were given, with their index."""
    return form.given if len(rows) == form.n_rows else form.take(rows)


# -- influence ---------------------------------------------------------------------------------


def influence(setting: Setting) -> Iterator[Ran]:
    """Look for the features that go with the gap of the group that is worst off, by attribute."""
    form = setting.given.form
    assert form is not None
    for one in setting.attributes:
        metric = rate_of(setting.policy, one)
        why = setting.why_not("influence")
        if why is None and not metric:
            why = f"the policy asks for none of {', '.join(RATES)} by {one.name}"
        if why is None and "y_pred" not in setting.roles:
            why = "needs decisions"
        if why is not None:
            yield not_run("influence", one.name, why, metric), None
            continue
        make = partial(_explained, setting, one, metric, form)
        yield _tried(make, "influence", one.name, metric)


def _explained(setting: Setting, one: Attribute, metric: str, form: Form) -> Ran:
    target = _worst(setting.questions, one, metric)
    people = People.of(one)
    columns = [name for name in ("y_true", "y_pred") if name in setting.roles]
    found = one.table.rows(columns=columns, pos_label=setting.computing.pos_label).columns
    decided: dict[str, Any] = {name: found[name][people.rows].astype(np.int64) for name in columns}
    n, width = len(people.rows), form.n_columns

    def of(model: Any) -> Any:
        return influence_audit(
            decided.get("y_true"),
            decided["y_pred"],
            X=_taken(form, people.rows),
            model=model,
            sensitive_features={one.name: people.names},
            missing="keep_texts",
            target=target,
            metric=metric,
            **setting.options("influence", metric, one.name),
        )

    notes = []
    model = setting.given.model
    if model is not None and n * width**2 > MOST_REGRESSED:
        notes.append(f"without the model: {n:,} rows of {width:,} features are too many for it")
        model = None
    try:
        result = of(model)
    except FairAuditError as error:
        reason = reason_of(error)
        if model is None:
            raise
        # What goes with the gap needs no model; what moves the model's decisions does.
        result = of(None)
        notes.append(f"without the model: {reason}")
    low, high = result.confidence_interval
    others = [group for group in one.groups if group != target]
    first = group_name(target, one.name)
    second = group_name(others[0], one.name) if len(others) == 1 else "all others"
    finding = LensFinding(
        lens="influence",
        metric=metric,
        attribute=one.name,
        first=first,
        second=second,
        estimate=result.estimate,
        low=low,
        high=high,
        pvalue=result.pvalue,
        reason="too few rows for an interval" if math.isnan(low) else None,
        note="; ".join(notes),
        told="" if math.isnan(low) else words.of_influence(result, first, second),
    )
    bound = setting.bound("influence", one.name)
    if bound is not None:
        tested = testable(_question(setting.questions, one, metric).groups)
        tests = of_rates(bound, setting.computing, one, metric, decided, people, tested)
        coverage = setting.coverage(one, measured_groups(tested, tests))
        features = words.of_features(result) if low > 0 or high < 0 else ""
        finding = replace(finding, tests=tests, coverage=coverage, features=features)
    return finding, result


def _question(questions: Sequence[QuestionFinding], one: Attribute, metric: str) -> QuestionFinding:
    """Return the question about a metric in an attribute."""
    return next(
        question
        for question in questions
        if (question.metric, question.attribute) == (metric, one.name)
    )


def _worst(questions: Sequence[QuestionFinding], one: Attribute, metric: str) -> Any:
    """Return the group that is worst off; where decisions do not say so, that of the lowest."""
    question = _question(questions, one, metric)
    groups = [group for group in question.tested if not math.isnan(group.value)]
    if len(groups) < 2:
        raise ArgumentError(f"fewer than two groups of {one.name} have a {metric} that was tested")
    pick = max if question.worse_off == "higher" else min
    return pick(groups, key=lambda group: group.value).group


# -- extremes ----------------------------------------------------------------------------------


def extremes(setting: Setting) -> Iterator[Ran]:
    """Compare the worst cases of groups when an attribute is flipped, by attribute."""
    given = setting.given
    for one in setting.attributes:
        why = setting.why_not("extremes")
        if why is None and given.has_counterfactuals and "y_score" not in setting.roles:
            why = "needs y_score, the scores that counterfactual_score is compared with"
        if why is not None:
            yield not_run("extremes", one.name, why, "ecd"), None
            continue
        yield _tried(partial(_flipped, setting, one), "extremes", one.name, "ecd")


def _flipped(setting: Setting, one: Attribute) -> Ran:
    given = setting.given
    people = People.of(one)
    design: dict[str, Any]
    if given.has_counterfactuals:
        names = ("y_score", "counterfactual_score")
        found = one.table.rows(columns=names).columns
        design = {name: found[name][people.rows] for name in names}
    else:
        assert given.form is not None
        _check_column(given.form, one, people)
        classes = getattr(given.model, "classes_", getattr(given.model, "classes", None))
        known = classes is not None and not callable(classes)
        design = {
            "model": given.model,
            "X": _taken(given.form, people.rows),
            "attribute": one.name,
            "pos_label": setting.computing.pos_label if known else None,
        }

    result = extreme_test(
        **design,
        sensitive_features={one.name: people.names},
        missing="keep_texts",
        **setting.options("extremes", one.name),
    )
    low, high = result.confidence_interval
    pair = result.clearest
    finding = LensFinding(
        lens="extremes",
        metric="ecd",
        attribute=one.name,
        first=result.name_of(pair.first),
        second=result.name_of(pair.second),
        estimate=result.estimate,
        low=low,
        high=high,
        pvalue=result.pvalue,
        note=repeats_of_levels(result),
        told=words.of_extremes(result),
    )
    bound = setting.bound("extremes", one.name)
    if bound is not None:
        groups = {group for pair in measured_pairs(result) for group in pair}
        finding = replace(
            finding,
            tests=of_levels(bound, result),
            coverage=setting.coverage(one, groups),
            note="; ".join(filter(None, (rows_of_levels(bound, result), finding.note))),
        )
    return finding, result


def _check_column(form: Form, one: Attribute, people: People) -> None:
    """Refuse an attribute that is no column of X, or one that says something else there."""
    otherwise = "extreme_test takes other columns, flip= and counterfactual_score="
    if form.names is None:
        raise ArgumentError(f"the columns of X have no names, so none is {one.name}; {otherwise}")
    unlike = (
        f"the levels of {one.name} in X are not its groups, so that a flip of one is none of the "
        f"other; {otherwise}"
    )
    try:
        found = read_attribute(one.name, form)
    except ColumnError:
        raise ArgumentError(f"{one.name} is no column of X to flip; {otherwise}") from None
    except TooManyValuesError:
        raise ArgumentError(unlike) from None
    code = found.code[people.rows]
    both = len(np.unique(code * len(people.groups) + people.code))
    if not len(np.unique(code)) == len(np.unique(people.code)) == both:
        raise ArgumentError(unlike)
