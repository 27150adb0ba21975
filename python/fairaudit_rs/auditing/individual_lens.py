"""The individual lens in an audit: one attack on the model for all attributes at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import EncodedColumn
from ..data.features import Features
from ..data.groups import attribute_name
from ..errors import ArgumentError, ColumnError, DataError
from ..extremes.feature_tables import FeatureTable
from ..individual.fair_metric import FairMetric
from ..individual.lens import individual_test
from ..individual.question import FlowModel, flow_model
from ..individual.ranges import find_range_departure
from ..individual.result import IndividualResult
from ..individual.simplex import one_hot_sets
from ..literals import Loss
from ..models.linear import LinearScores
from . import lens_words as words
from .context import AuditContext, Positions
from .findings import LensFinding, LensTest, not_run
from .lens_sentences import OF_POLICY, OF_ROWS
from .lens_tests import compare_growth
from .lens_tolerances import LensTolerance
from .model_lenses import LensOutcome, _take_rows, _try_lens
from .policy_metric import PolicyMetric
from .refusals import BindingRefusedError
from .row_sample import sampled_rows
from .similarity import (
    ADVICE_NO_METRIC,
    MetricProfile,
    RegressionRows,
    fitted_metric,
    protected_groups,
    why_no_profile,
)

#: Maximum number of attacked rows: for linear models, whose flow takes a few numbers per row; for
#: linear models with one-hot features; and for other models.
MOST_LINEAR_ROWS = 100_000
MOST_HELD_ROWS = 20_000
MOST_ROWS = 2_000
#: If more people than this share leave the observed range of a feature, the value is meaningless.
_MOST_OUTSIDE = 0.5


def run_individual(context: AuditContext) -> Iterator[LensOutcome]:
    """Attack the model once for all attributes: differences between their groups cost nothing."""
    name = attribute_name([attribute.name for attribute in context.attributes])
    feature_table = context.model_inputs.feature_table
    assert feature_table is not None
    why = context.why_not("individual")
    if why is None and "y_true" not in context.roles:
        why = "needs labels, against which losses are measured"
    if why is not None:
        yield not_run("individual", name, why, "loss_ratio"), None
        return
    make = partial(_attack_model, context, name, feature_table)
    yield _try_lens(make, "individual", name, "loss_ratio")


def _attack_model(context: AuditContext, name: str, feature_table: FeatureTable) -> LensOutcome:
    attack = _AttackInputs.from_context(context, name, feature_table)
    lens_tolerance = attack.lens_tolerance
    why = None
    if lens_tolerance is not None and attack.policy_metric is None:
        why = why_no_profile(
            attack.flow.scores, attack.features, attack.protected, bool(attack.sets)
        )
        if why is not None and lens_tolerance.criterion.binding:
            raise BindingRefusedError(
                f"the individual lens binds, but its fair metric would be fitted to these rows, "
                f"and a fitted metric decides by chance. To go on, {ADVICE_NO_METRIC}. A fitted "
                "metric can bind for a linear model of one score, one attribute of two groups, and "
                f"features without one-hot columns only. Here {why}.",
                argument="fair_metric",
            )
    fair_metric = attack.metric
    result = attack.run(fair_metric, context.confidence)
    departure = find_range_departure(result.flow, attack.features.called)
    impossible = departure is not None and departure.share > _MOST_OUTSIDE
    low, high = result.confidence_interval
    unknown = math.isnan(result.pvalue)
    binds = lens_tolerance is not None and lens_tolerance.criterion.binding
    # A binding lens then has no verdict, and the departure is its reason.
    notes = [*attack.notes, str(departure)] if impossible and not binds else attack.notes
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
        told="" if unknown else words.describe_growth(result, attack.metric_in_words),
    )
    if lens_tolerance is None:
        return finding, result
    finding = replace(finding, coverage=attack.coverage)
    if impossible:
        why = f"{departure}: the value is that of people who do not exist"
    if why is not None:
        why = (
            why
            if impossible
            else f"a fitted metric has no verdict here ({why}); {ADVICE_NO_METRIC}"
        )
        test = LensTest(estimate=result.estimate, reason=why)
        return replace(finding, tests=(test,)), result
    if attack.policy_metric is not None:
        lower = (
            result
            if lens_tolerance.n_adjusted == 1
            else attack.run(fair_metric, 1 - lens_tolerance.comparison_alpha)
        )
        upper = result
        alike = OF_POLICY
    else:
        lower, upper = _profile_direction(attack, lens_tolerance)
        alike = OF_ROWS
    notes_of_limits = (*lower.notes, *upper.notes)
    tests = (compare_growth(lens_tolerance, result, lower, upper),)
    return replace(finding, tests=tests, alike=alike, notes=notes_of_limits), result


def _profile_direction(
    attack: _AttackInputs, lens_tolerance: LensTolerance
) -> tuple[IndividualResult, IndividualResult]:
    """Return the results for the lower and the upper bound of the value.

    Half of each level goes to the direction, a quarter to the units, and a quarter to the rows.
    """
    scores = attack.flow.scores
    assert isinstance(scores, LinearScores)
    profile = MetricProfile.from_scores(
        scores, attack.likeness_rows, attack.protected, attack.metric, attack.cluster
    )
    alpha = lens_tolerance.policy.alpha
    return (
        attack.run(
            profile.least_unfair(lens_tolerance.comparison_alpha),
            1 - lens_tolerance.comparison_alpha / 4,
        ),
        attack.run(profile.most_unfair(alpha), 1 - alpha / 4),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _AttackInputs:
    """The model, the rows and the fair metric of an attack."""

    context: AuditContext
    name: str
    flow: FlowModel
    loss: Loss
    X: Any
    y: NDArray[Any]
    features: Features
    #: The positions of the columns of each one-hot feature.
    sets: tuple[tuple[int, ...], ...]
    protected: dict[str, Any]
    weight: NDArray[np.float64] | None
    cluster: NDArray[Any] | None
    policy_metric: PolicyMetric | None
    #: The share of people whose groups are known; 1 under a metric of the policy.
    coverage: float
    #: Deviations of the run from the request.
    notes: list[str]

    @classmethod
    def from_context(
        cls, context: AuditContext, name: str, feature_table: FeatureTable
    ) -> _AttackInputs:
        """Collect the inputs, with a sample of the rows if there are too many."""
        table = context.attributes[0].table
        flow, loss = _flow(context.model_inputs.model)
        given = _metric_of_policy(context)
        protected: dict[str, Any] = {}
        known, notes = np.arange(feature_table.n_rows), list[str]()
        if given is None:
            protected, known, notes = protected_groups(context, feature_table.n_rows)
        is_linear = isinstance(flow.scores, LinearScores)
        rows = sampled_rows(context, name, known, MOST_LINEAR_ROWS if is_linear else MOST_ROWS)
        X = _take_rows(feature_table, rows)
        _check_gaps(flow, feature_table)
        sets = one_hot_sets(flow.rows(X))
        if sets and len(rows) > MOST_HELD_ROWS:
            rows = sampled_rows(context, name, known, MOST_HELD_ROWS)
            X = _take_rows(feature_table, rows)
        if len(rows) < len(known):
            notes.append(f"a sample of {len(rows):,} of {len(known):,} rows")
        if sets:
            notes.append("one-hot features stay a choice of one value")
        found = table.rows(columns=("y_true",), pos_label=context.compute_options.pos_label)
        # A model with classes takes labels by name; other models score the positive one.
        y = _raw(table.source.in_memory().columns["y_true"]) if flow.classes else None
        y = found.columns["y_true"].astype(np.float64) if y is None else y
        return cls(
            context=context,
            name=name,
            flow=flow,
            loss=loss,
            X=X,
            y=y[rows],
            features=flow.rows(X),
            sets=sets,
            protected={key: column[rows] for key, column in protected.items()},
            weight=None if found.weight is None else found.weight[rows],
            cluster=None if found.cluster is None else found.cluster[rows],
            policy_metric=given,
            coverage=_share(known, feature_table.n_rows, found.weight),
            notes=notes,
        )

    @property
    def lens_tolerance(self) -> LensTolerance | None:
        """The tolerance of the lens."""
        return self.context.lens_tolerance("individual", self.name)

    @cached_property
    def likeness_rows(self) -> RegressionRows:
        """The rows that a fair metric is fitted to."""
        return RegressionRows.from_features(self.features, self.flow.gaps(self.X))

    @cached_property
    def metric(self) -> FairMetric:
        """The fair metric of the policy, or else one that is fitted to these rows."""
        if self.policy_metric is None:
            return fitted_metric(self.likeness_rows, self.protected, self.notes)
        try:
            return self.policy_metric.for_features(self.features)
        except (ArgumentError, ColumnError) as error:
            raise BindingRefusedError(
                str(error), argument=error.argument, mentions=error.mentions
            ) from None

    @property
    def metric_in_words(self) -> str:
        """The origin of the metric in words."""
        fitted = self.policy_metric is None
        return "a metric fitted to these rows" if fitted else "the metric of this policy"

    def run(self, metric: FairMetric, confidence: float) -> IndividualResult:
        """Attack the model under a fair metric, with bounds at a confidence level."""
        options: dict[str, Any] = {}
        if self.sets:
            options = {"one_hot": "keep", "one_hot_groups": self.sets}
        lens_tolerance = self.lens_tolerance
        if lens_tolerance is not None:
            # Normal bounds have up to 15 % errors if ratios are skewed.
            n_parts = 1 if self.policy_metric is not None else 4
            options |= {
                "delta": lens_tolerance.tolerance,
                "interval": "bootstrap-t",
                "n_resamples": lens_tolerance.n_resamples(
                    self.context.compute_options.n_resamples, n_parts
                ),
            }
        return individual_test(
            self.context.model_inputs.model,
            self.X,
            self.y,
            fair_metric=metric,
            sample_weight=self.weight,
            clusters=self.cluster,
            loss=self.loss,
            **options,
            **(self.context.options("individual", self.name) | {"confidence_level": confidence}),
        )


def _check_gaps(flow: FlowModel, feature_table: FeatureTable) -> None:
    """Refuse missing values unless the model is known to fill them in."""
    if flow.fill:
        return
    for place in range(feature_table.n_columns):
        column = feature_table.column(place)
        gap = (
            column.codes >= len(column.labels)
            if isinstance(column, EncodedColumn)
            else np.isnan(column)
            if column.dtype.kind == "f"
            else np.zeros(1, dtype=bool)
        )
        if gap.any():
            raise DataError(
                f"column {feature_table.called(place)} of X is missing in {int(gap.sum()):,} of "
                f"{feature_table.n_rows:,} rows, and a gradient flow cannot start at a "
                f"missing value. Use a "
                "pipeline with a SimpleImputer as the model: the flow starts at its values.",
                argument="X",
            )


def _share(known: Positions, n_rows: int, weight: NDArray[np.float64] | None) -> float:
    """Return the share of people in some rows, by weight."""
    if weight is None:
        return len(known) / max(n_rows, 1)
    return float(weight[known].sum() / weight.sum())


def _metric_of_policy(context: AuditContext) -> PolicyMetric | None:
    """Return the fair metric in the policy's criteria of the lens; None if there is none."""
    given = [
        criterion.policy_metric
        for criterion in context.policy.criteria
        if criterion.lens == "individual"
    ]
    return next(filter(None, given), None)


def _flow(model: Any) -> tuple[FlowModel, Loss]:
    """Return a model with gradients, and the loss that suits its scores."""
    try:
        return flow_model(model, "log_loss", "loss"), "log_loss"
    except ArgumentError:
        found = flow_model(model, "smooth_hinge", "loss")
        # Without classes a score may be a predicted number, which has no margin.
        if not found.classes:
            raise
        return found, "smooth_hinge"


def _raw(column: Any) -> NDArray[Any]:
    """Return the values of a column as they were given."""
    if isinstance(column, EncodedColumn):
        values = np.empty(len(column.labels) + 1, dtype=object)
        values[:] = [*column.labels, None]
        return np.asarray(values[np.minimum(column.codes, len(column.labels))])
    return np.asarray(column)
