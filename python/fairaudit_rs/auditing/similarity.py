"""The fair metric of the individual lens in an audit: when two people count as similar.

An informational lens uses a metric that is fitted to the audited rows. A lens with a tolerance does
not, because the fit moves the value by far more than the width of its interval, so that a verdict
at the tolerance would be a matter of chance. It uses the metric of the policy, or the profile
interval of the fitted direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from ..data.features import Features
from ..data.sums import sums_of
from ..errors import ArgumentError
from ..individual.direction_profile import DirectionFit, direction_at, fit_direction
from ..individual.fair_metric import FairMetric
from ..individual.question import attributes_of
from ..individual.sensitive_directions import varying_space
from ..models.linear import LinearScores
from ..results.verdict import rejects_at
from .context import AuditContext, GroupMembership, Positions

#: Level of the test that a feature is related to an attribute.
_ALPHA = 0.05
#: Features that vary by less than this share of their size count as constant, and so do linear
#: combinations that vary by less than this share of the largest.
_CONSTANT, _RANK = 1e-12, 1e-10
#: Maximum number of groups of an attribute for which sensitive directions are fitted.
MOST_GROUPS = 20
#: Units shrink by at most this factor, so that the attack can still move rows.
_LEAST_STRETCH = 1e-3
#: Inverse strength of the ridge penalty of regressions on features.
_C = 1.0

#: What to do if a binding lens has no metric that can decide.
ADVICE_NO_METRIC = (
    "give the metric in the policy (fair_metric of the criterion, with features, directions or a "
    "matrix), or set binding to false"
)


def protected_groups(
    context: AuditContext, n_rows: int
) -> tuple[dict[str, Any], Positions, list[str]]:
    """Return the group of each row by attribute, the rows whose groups are all known, and notes.

    A group is given by its position, as text.
    """
    known = np.ones(n_rows, dtype=bool)
    columns: dict[str, Any] = {}
    excluded: list[str] = []
    for attribute in context.attributes:
        if not 2 <= len(attribute.groups) <= MOST_GROUPS:
            excluded.append(f"{attribute.name} ({len(attribute.groups):,})")
            continue
        people = GroupMembership.from_attribute(attribute)
        code = np.zeros(n_rows, dtype=np.intp)
        code[people.rows] = people.code
        columns[attribute.name] = np.array([str(i) for i in range(len(attribute.groups))])[code]
        inside = np.zeros(n_rows, dtype=bool)
        inside[people.rows] = True
        known &= inside
    accepted = f"from 2 to {MOST_GROUPS} groups"
    if not columns:
        raise ArgumentError(
            f"no attribute of sensitive_features has {accepted}, which a fair metric needs: "
            f"{', '.join(excluded)}. Give fair_metric in the policy.",
            argument="sensitive_features",
            mentions=("fair_metric",),
        )
    notes = [f"without {', '.join(excluded)}: accepted are {accepted}"] if excluded else []
    rows = np.flatnonzero(known)
    if len(rows) < n_rows:
        notes.append(f"{n_rows - len(rows):,} people without a known group are excluded")
    return columns, rows, notes


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionRows:
    """The rows for the regressions of groups on features."""

    #: Missing values are replaced by the mean of the feature; those of 0/1 features by the value
    #: that the model fills in.
    features: Features
    #: Missing-value indicators: a column for each distinct set of rows with a missing value.
    indicators: NDArray[np.float64]

    @classmethod
    def from_features(
        cls, features: Features, is_missing: NDArray[np.bool_] | None
    ) -> RegressionRows:
        """Return the rows of features as the model reads them, of which some were missing."""
        if is_missing is None:
            return cls(features=features, indicators=np.zeros((len(features.values), 0)))
        rows = features.values.copy()
        for place in np.flatnonzero(is_missing.any(axis=0)):
            known = rows[~is_missing[:, place], place]
            if len(known) and not np.isin(known, (0, 1)).all():
                rows[is_missing[:, place], place] = known.mean()
        distinct = np.unique(is_missing[:, is_missing.any(axis=0)], axis=1)
        return cls(features=Features(rows, features.names), indicators=distinct.astype(np.float64))

    def design(self, units: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the features in units, next to the indicators."""
        return np.column_stack([self.features.values / units, self.indicators])

    @property
    def features_argument(self) -> Any:
        """The features as `FairMetric.subspace` takes them."""
        rows, names = self.features
        if names is None:
            return rows
        import polars as pl

        return pl.DataFrame(dict(zip(map(str, names), rows.T, strict=True)))

    def metric(self, protected: Mapping[str, Any]) -> FairMetric:
        """Return the metric that is fitted to these rows, with features in standard deviations.

        With missing values the regressions include the indicators, which are not features of the
        metric: its directions are the coefficients of the features.
        """
        if not self.indicators.shape[1]:
            return FairMetric.subspace(self.features_argument, protected, standardize=True)
        p = self.features.values.shape[1]
        units = FairMetric.subspace(
            self.features_argument, given=np.ones((1, p)), standardize=True
        ).units
        design = self.design(units)
        space = varying_space(design)
        found = [
            attribute.directions(design, _C, space)[:, :p] * units
            for attribute in attributes_of(protected, len(design))
        ]
        return FairMetric.subspace(
            self.features_argument, given=np.concatenate(found), standardize=True
        )


def fitted_metric(rows: RegressionRows, protected: dict[str, Any], notes: list[str]) -> FairMetric:
    """Return the metric under which differences between groups cost nothing.

    Attributes without a significantly related feature are excluded: a regression on noise finds an
    arbitrary direction, which could make any feature cost nothing.
    """
    kept = {}
    for name, column in protected.items():
        if not rejects_at(p_of_no_relation(rows.features.values, column), _ALPHA):
            notes.append(f"without {name}: no feature is significantly related to it")
        else:
            kept[name] = column
    if not kept:
        raise ArgumentError(
            f"X has no feature that is significantly related to {' or '.join(protected)}, so no "
            "fair metric can be fitted. Give fair_metric in the policy, or to individual_test.",
            argument="X",
            mentions=("fair_metric",),
        )
    found = rows.metric(kept)
    if not found.rank:
        raise ArgumentError(
            f"no two people would differ under the fitted metric: the directions in X that "
            f"separate groups of {' and '.join(kept)} span all {found.n_features} features. "
            "Give fair_metric in the policy, or to individual_test.",
            argument="X",
            mentions=("fair_metric",),
        )
    return found


def p_of_no_relation(rows: NDArray[np.float64], group: NDArray[Any]) -> float:
    """Return the p-value of equal means of all features in all groups, by Pillai's trace."""
    centred = rows - rows.mean(axis=0)
    scale = centred.std(axis=0)
    varies = scale > _CONSTANT * np.abs(rows).max(axis=0)
    if not varies.any():
        return 1.0
    left_vectors, singular_values, _ = np.linalg.svd(
        centred[:, varies] / scale[varies], full_matrices=False
    )
    # An orthonormal basis of the space of the features.
    basis = left_vectors[:, singular_values > _RANK * singular_values[0]]
    _, code, n = np.unique(group, return_inverse=True, return_counts=True)
    sums = (code[:, None] == np.arange(len(n))).T.astype(np.float64) @ basis
    trace = float((sums**2 / n[:, None]).sum())
    return float(chdtrc(basis.shape[1] * (len(n) - 1), trace * len(rows)))


def why_no_profile(
    scores: Any, features: Features, protected: Mapping[str, Any], has_one_hot: bool
) -> str | None:
    """Return why a fitted metric has no profile interval, or None if it has one."""
    if not isinstance(scores, LinearScores) or scores.n_scores != 1:
        return "the model is not linear with one score"
    if len(protected) != 1:
        return f"{len(protected):,} attributes were given, not one"
    [column] = protected.values()
    if len(np.unique(column)) != 2:
        return "the attribute has more than two groups"
    if has_one_hot:
        return "X has one-hot features"
    if not scores.coef.any():
        return "all coefficients of the model are 0"
    if varying_space(features.values) is not None:
        return "features of X are linearly dependent"
    return None


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricProfile:
    """The confidence set of fair metrics, for a linear model with one sensitive direction.

    The audit value depends on two numbers that are estimated: the squared cosine of the angle
    between the model and the direction, and s = sum_j (w_j u_j)^2, with w_j the coefficients and
    u_j the units. The angle has its profile interval. If u_j is a standard deviation,
    (w_j u_j)^2 is the mean of (w_j (x_j - mean of x_j))^2 over the rows, and s has the normal
    interval of a mean; with clusters, that of Student's t.
    """

    fit: DirectionFit
    #: The coefficients of the model in the units of the metric.
    coef: NDArray[np.float64]
    metric: FairMetric
    #: The standard error of s.
    s_error: float

    @classmethod
    def from_scores(
        cls,
        scores: LinearScores,
        rows: RegressionRows,
        protected: Mapping[str, Any],
        metric: FairMetric,
        cluster: NDArray[Any] | None,
    ) -> MetricProfile:
        """Fit the direction of the one attribute, in the units of a fitted metric."""
        design, p = rows.design(metric.units), len(metric.units)
        [attribute] = attributes_of(protected, len(design))
        cluster_code = (
            None if cluster is None else np.unique(cluster, return_inverse=True)[1].ravel()
        )
        fit = fit_direction(attribute, design, p, _C, cluster_code)
        # A feature with unit 1 has no standard deviation to estimate.
        coef_of_estimated_units = np.where(metric.units == 1, 0.0, scores.coef[0])
        values = rows.features.values
        terms = (((values - values.mean(axis=0)) * coef_of_estimated_units) ** 2).sum(axis=1)
        terms -= terms.mean()
        if cluster_code is not None:
            terms = sums_of(cluster_code, terms)
        n_units = fit.n_units
        error = float(np.sqrt(n_units / (n_units - 1) * (terms**2).sum())) / len(values)
        return cls(fit=fit, coef=scores.coef[0] * metric.units, metric=metric, s_error=error)

    def least_unfair(self, alpha: float) -> FairMetric:
        """Return the metric that gives the lower bound of the value.

        The bound errs in at most 3 alpha / 4 of samples: alpha / 2 for the angle and alpha / 4 for
        s. The last alpha / 4 is left for the rows.
        """
        angle = self.fit.lowest_angle(self.coef, alpha)
        return self._metric_at(angle, -self.fit.quantile(alpha / 4))

    def most_unfair(self, alpha: float) -> FairMetric:
        """Return the metric that gives the upper bound of the value; see `least_unfair`."""
        angle = self.fit.highest_angle(self.coef, alpha)
        return self._metric_at(angle, self.fit.quantile(alpha / 4))

    def _metric_at(self, angle: float, z: float) -> FairMetric:
        """Return the metric of an angle, with s moved by ``z`` standard errors."""
        s = float(self.coef @ self.coef)
        stretch = np.sqrt(max(s + z * self.s_error, 0.0) / s)
        direction = direction_at(self.coef, self.fit.direction, angle)
        return replace(
            FairMetric.directions([direction]),
            units=self.metric.units * max(float(stretch), _LEAST_STRETCH),
            feature_names=self.metric.feature_names,
        )
