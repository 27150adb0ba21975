"""Lenses of a model in an audit: individual, influence and extremes, each where it can be run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from ..data.columns import Coded
from ..data.features import Features
from ..data.groups import attribute_name, group_name
from ..errors import (
    ArgumentError,
    ColumnError,
    FairAuditError,
    TooManyValuesError,
)
from ..extremes.attribute import read_attribute
from ..extremes.forms import Form
from ..extremes.lens import extreme_test
from ..individual.fair_metric import FairMetric
from ..individual.lens import individual_test
from ..individual.question import FlowModel, flow_model
from ..individual.result import IndividualResult
from ..influence.lens import influence_audit
from ..influence.rates import RATES
from ..literals import Loss
from ..models.linear import LinearScores
from ..results.verdict import rejects
from . import lens_words as words
from .binding import rate_of, testable
from .findings import LensFinding, QuestionFinding, not_run
from .lens_tests import (
    measured_groups,
    measured_pairs,
    of_growth,
    of_levels,
    of_rates,
    repeats_of_levels,
    rows_of_levels,
)
from .questions import Attribute
from .refusals import reason_of
from .row_sample import sampled_rows
from .setting import People, Positions, Setting

#: Rows whose flow is computed: where it is solved in a few numbers by row, and of other models.
MOST_LINEAR_ROWS = 100_000
MOST_ROWS = 2_000
#: Regressions of features on each other: rows times squared features up to which they are made.
MOST_REGRESSED = 20_000_000
#: Level at which a feature is shown to go with an attribute.
_ALPHA = 0.05
#: Features that vary by less than this share of their size do not, nor do sums of features by
#: less than this share of the largest.
_CONSTANT, _RANK = 1e-12, 1e-10
#: Groups of an attribute that sensitive directions are fitted for.
MOST_GROUPS = 20


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


# -- individual --------------------------------------------------------------------------------


def individual(setting: Setting) -> Iterator[Ran]:
    """Attack the model of all attributes at once: what tells their groups apart costs nothing."""
    name = attribute_name([one.name for one in setting.attributes])
    form = setting.given.form
    assert form is not None
    why = setting.why_not("individual")
    if why is None and "y_true" not in setting.roles:
        why = "needs labels, against which losses are measured"
    if why is not None:
        yield not_run("individual", name, why, "loss_ratio"), None
        return
    make = partial(_attacked, setting, name, form)
    yield _tried(make, "individual", name, "loss_ratio")


def _attacked(setting: Setting, name: str, form: Form) -> Ran:
    model, table = setting.given.model, setting.attributes[0].table
    flow, loss = _flow(model)
    protected, rows, notes = _protected(setting, form.n_rows)
    n_known = len(rows)
    most = MOST_LINEAR_ROWS if isinstance(flow.scores, LinearScores) else MOST_ROWS
    if len(rows) > most:
        notes.append(f"a sample of {most:,} of {len(rows):,} rows")
    rows = sampled_rows(setting, name, rows, most)
    found = table.rows(columns=("y_true",), pos_label=setting.computing.pos_label)
    # A model that knows its classes is told labels by name; others score the positive one.
    y = _raw(table.source.in_memory().columns["y_true"]) if flow.classes else None
    y = found.columns["y_true"].astype(np.float64) if y is None else y
    X = _taken(form, rows)
    groups = {key: column[rows] for key, column in protected.items()}
    fair_metric = _likeness(flow.rows(X), groups, notes)
    bound = setting.bound("individual", name)
    held: dict[str, Any] = {}
    if bound is not None:
        # Bounds of the normal law are missed in up to 15 % where ratios are skewed.
        n_resamples = bound.n_resamples(setting.computing.n_resamples)
        held = {
            "delta": bound.tolerance,
            "interval": "bootstrap-t",
            "n_resamples": n_resamples,
        }

    def at(confidence: float) -> IndividualResult:
        return individual_test(
            model,
            X,
            y[rows],
            fair_metric=fair_metric,
            sample_weight=None if found.weight is None else found.weight[rows],
            clusters=None if found.cluster is None else found.cluster[rows],
            loss=loss,
            **held,
            **(setting.options("individual", name) | {"confidence_level": confidence}),
        )

    result = at(setting.confidence)
    low, high = result.confidence_interval
    unknown = math.isnan(result.pvalue)
    finding = LensFinding(
        lens="individual",
        metric="loss_ratio",
        attribute=name,
        estimate=result.estimate,
        low=low,
        high=high,
        pvalue=result.pvalue,
        reason="the ratio of losses has no standard error" if unknown else None,
        note="; ".join(notes),
        told="" if unknown else words.of_individual(result),
    )
    if bound is not None:
        finding = replace(
            finding, tests=(of_growth(bound, result, at),), coverage=n_known / max(form.n_rows, 1)
        )
    return finding, result


def _flow(model: Any) -> tuple[FlowModel, Loss]:
    """Return a model that has gradients, and the loss that goes with its scores."""
    try:
        return flow_model(model, "log_loss", "loss"), "log_loss"
    except ArgumentError:
        found = flow_model(model, "smooth_hinge", "loss")
        # Without classes a score may be a prediction of numbers, which has no margin.
        if not found.classes:
            raise
        return found, "smooth_hinge"


def _protected(setting: Setting, n_rows: int) -> tuple[dict[str, Any], Positions, list[str]]:
    """Return the groups of all rows as text by attribute, the rows known in all, and notes."""
    known = np.ones(n_rows, dtype=bool)
    columns: dict[str, Any] = {}
    left: list[str] = []
    for one in setting.attributes:
        if not 2 <= len(one.groups) <= MOST_GROUPS:
            left.append(f"{one.name} ({len(one.groups):,})")
            continue
        people = People.of(one)
        place = np.zeros(n_rows, dtype=np.intp)
        place[people.rows] = people.code
        columns[one.name] = np.array([str(i) for i in range(len(one.groups))])[place]
        inside = np.zeros(n_rows, dtype=bool)
        inside[people.rows] = True
        known &= inside
    accepted = f"from 2 to {MOST_GROUPS} groups"
    if not columns:
        raise ArgumentError(
            f"no metric of likeness can be made of {', '.join(left)}; accepted: an attribute of "
            f"{accepted}"
        )
    notes = [f"without {', '.join(left)}: accepted are {accepted}"] if left else []
    rows = np.flatnonzero(known)
    if len(rows) < n_rows:
        notes.append(f"{n_rows - len(rows):,} people without a known group are left out")
    return columns, rows, notes


def _likeness(features: Features, protected: dict[str, Any], notes: list[str]) -> FairMetric:
    """Return the metric under which what tells groups apart costs nothing.

    Attributes that no feature is shown to go with are left out: the direction that a regression
    finds of noise is any direction, and would make any feature cost nothing.
    """
    rows, names = features
    kept = {}
    for name, column in protected.items():
        if not rejects(p_of_no_relation(rows, column), _ALPHA):
            notes.append(f"without {name}: no feature is shown to go with it")
        else:
            kept[name] = column
    if not kept:
        raise ArgumentError(
            f"no feature of X is shown to go with {' or '.join(protected)}, so that none stands "
            "for a difference of groups; individual_test takes a fair_metric"
        )
    given: Any = rows
    if names is not None:
        import polars as pl

        given = pl.DataFrame(dict(zip(map(str, names), rows.T, strict=True)))
    found = FairMetric.subspace(given, kept, standardize=True)
    if not found.rank:
        raise ArgumentError(
            f"what tells groups of {' and '.join(kept)} apart spans all {found.n_features} "
            "features of X, so that all people are alike; individual_test takes a fair_metric"
        )
    return found


def p_of_no_relation(rows: NDArray[np.float64], group: NDArray[Any]) -> float:
    """Return the p-value of groups with the same means of all features: Pillai's trace."""
    centred = rows - rows.mean(axis=0)
    scale = centred.std(axis=0)
    varies = scale > _CONSTANT * np.abs(rows).max(axis=0)
    if not varies.any():
        return 1.0
    left, size, _ = np.linalg.svd(centred[:, varies] / scale[varies], full_matrices=False)
    # Columns of length 1 that say all that the features say.
    basis = left[:, size > _RANK * size[0]]
    _, code, n = np.unique(group, return_inverse=True, return_counts=True)
    sums = (code[:, None] == np.arange(len(n))).T.astype(np.float64) @ basis
    trace = float((sums**2 / n[:, None]).sum())
    return float(chdtrc(basis.shape[1] * (len(n) - 1), trace * len(rows)))


def _raw(column: Any) -> NDArray[Any]:
    """Return the values of a column as they were given."""
    if isinstance(column, Coded):
        values = np.empty(len(column.labels) + 1, dtype=object)
        values[:] = [*column.labels, None]
        return np.asarray(values[np.minimum(column.codes, len(column.labels))])
    return np.asarray(column)


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
