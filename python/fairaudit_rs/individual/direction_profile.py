r"""Confidence limits for the angle between a linear model and a fitted sensitive direction.

Notation: w -> coef, b and V -> a fitted direction and its covariance, v -> any direction,
c -> the squared cosine of the angle between w and v.

The flow of a linear model with one sensitive direction v depends on v through c alone, and the
audit value grows with c. So an interval for c gives an interval for the value, without a refit. The
profile of c is the smallest Wald statistic of all directions with that angle,

.. math:: D(c) = \min_{v:\, \cos^2(v, w) = c} (v - b)' V^{-1} (v - b),

and the interval of level 1 - a contains all c with D(c) <= z(1 - a/2)^2. With V = L L',
M = (1 - c) P_w - c (I - P_w), P_w the projection on w, m and Q the eigenvalues and eigenvectors of
L' M L, and z = Q' L^-1 b,

.. math:: D(c) = \sum_i z_i^2 \frac{(\mu m_i)^2}{(1 + \mu m_i)^2}, \qquad
    \sum_i \frac{m_i z_i^2}{(1 + \mu m_i)^2} = 0,

with mu between -1 / max m and -1 / min m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from ..data.sums import sums_of
from ..errors import DataError
from ..inference.pvalues import normal_of_tail, t_quantile
from .sensitive_directions import ProtectedAttribute

Floats = NDArray[np.float64]

#: Eigenvalues, and lengths, below this share of the largest count as 0.
_ZERO = 1e-12
#: The relative distance that mu keeps from its bounds.
_NEAR = 1e-13
_PRECISE = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class DirectionFit:
    """A fitted sensitive direction with its covariance."""

    direction: Floats
    covariance: Floats
    #: Number of independent units: rows, or clusters.
    n_units: int
    is_clustered: bool

    def lowest_angle(self, coef: Floats, alpha: float) -> float:
        """Return the lower limit of the squared cosine to the coefficients, at 1 - alpha / 2.

        At 0 the squared cosine has no sign, so directions on both sides of the model are too far
        away. The statistic therefore has the tail alpha / 4 on each side.
        """
        limit = self.quantile(alpha / 4) ** 2
        return cosine_limit(coef, self.direction, self.covariance, limit, 0.0)

    def highest_angle(self, coef: Floats, alpha: float) -> float:
        """Return the upper limit of the squared cosine to the coefficients, at 1 - alpha / 2."""
        limit = self.quantile(alpha / 2) ** 2
        return cosine_limit(coef, self.direction, self.covariance, limit, 1.0)

    def quantile(self, tail: float) -> float:
        """Return the upper quantile of the normal law, or of Student's t for clusters."""
        return t_quantile(tail, self.n_units - 1) if self.is_clustered else normal_of_tail(tail)


def fit_direction(
    attribute: ProtectedAttribute,
    rows: Floats,
    n_features: int,
    C: float,
    cluster: NDArray[np.intp] | None,
) -> DirectionFit:
    """Fit the logistic direction of an attribute of two values, with its sandwich covariance.

    Parameters
    ----------
    attribute : Attribute
        Of two levels.
    rows : ndarray of shape (n_rows, n_columns)
        Features in the units of the metric. Columns from position ``n_features`` on take part in
        the regression, but are not features of the model.
    n_features : int
        Number of columns that are features.
    C : float
        Inverse strength of the ridge penalty, as in `FairMetric.subspace`.
    cluster : array, optional
        The cluster of each row, from 0 on: scores are summed over clusters.

    Returns
    -------
    DirectionFit
        b and V = H^-1 (sum s s') H^-1 k of the features, with H the Hessian of the penalised loss,
        s the scores of rows or clusters, and k = G / (G - 1) (n - 1) / (n - p), as of G units.
    """
    n = len(rows)
    b = attribute.directions(rows, C, None)[0]
    label = attribute.values.astype(np.float64)
    score = rows @ b
    shift = _intercept(score, label)
    probability = 1 / (1 + np.exp(-np.clip(score + shift, -700, 700)))
    Z = np.column_stack([rows, np.ones(n)])
    hessian = (Z * (probability * (1 - probability))[:, None]).T @ Z
    hessian[np.diag_indices(len(b))] += 1 / C
    scores = Z * (label - probability)[:, None]
    if cluster is not None:
        scores = np.column_stack([sums_of(cluster, column) for column in scores.T])
    n_units, p = scores.shape
    if n_units < 2 or n <= p:
        raise DataError(
            f"X has {n:,} rows, too few for a regression on {p - 1:,} features. Pass more rows.",
            argument="X",
        )
    factor = n_units / (n_units - 1) * (n - 1) / (n - p)
    inverse = np.linalg.inv(hessian)
    covariance = factor * inverse @ (scores.T @ scores) @ inverse
    features = slice(0, n_features)
    return DirectionFit(
        direction=b[features],
        covariance=covariance[features, features],
        n_units=n_units,
        is_clustered=cluster is not None,
    )


def _intercept(score: Floats, label: Floats) -> float:
    """Return the intercept at which the probabilities add up to the number of labels 1."""

    def excess(shift: float) -> float:
        return float((1 / (1 + np.exp(-np.clip(score + shift, -700, 700)))).sum() - label.sum())

    bound = 50 + float(np.abs(score).max())
    return float(brentq(excess, -bound, bound, xtol=_PRECISE))


def squared_cosine(coef: Floats, direction: Floats) -> float:
    """Return the squared cosine of the angle between two vectors; 0 if one of them is 0."""
    sizes = float(coef @ coef) * float(direction @ direction)
    return min(float(coef @ direction) ** 2 / sizes, 1.0) if sizes > 0 else 0.0


def direction_at(coef: Floats, direction: Floats, c: float) -> Floats:
    """Return the unit vector in the plane of coefficients and direction with squared cosine c."""
    along = coef / np.linalg.norm(coef)
    across = direction - (direction @ along) * along
    if np.linalg.norm(across) <= _ZERO * np.linalg.norm(direction):
        # The two are parallel, so any vector orthogonal to them serves.
        across = np.eye(len(along))[np.abs(along).argmin()]
        across = across - (across @ along) * along
    across = across / np.linalg.norm(across)
    return np.asarray(np.sqrt(c) * along + np.sqrt(1 - c) * across)


def profile_distance(coef: Floats, b: Floats, covariance: Floats, c: float) -> float:
    """Return D(c), the smallest Wald statistic of the directions with squared cosine c."""
    along = coef / np.linalg.norm(coef)
    if c >= 1 or len(b) == 1:
        inverse = np.linalg.inv(covariance)
        return float(b @ inverse @ b - (along @ inverse @ b) ** 2 / (along @ inverse @ along))
    if c <= 0:
        return float((along @ b) ** 2 / (along @ covariance @ along))
    lower = np.linalg.cholesky(covariance)
    onto = np.outer(along, along)
    M = (1 - c) * onto - c * (np.eye(len(b)) - onto)
    m, Q = np.linalg.eigh(lower.T @ M @ lower)
    z = Q.T @ np.linalg.solve(lower, b)
    return _least_distance(m, z)


def _least_distance(m: Floats, z: Floats) -> float:
    """Return the squared distance of z to the cone sum m_i x_i^2 = 0, m in ascending order."""

    def slope(mu: float) -> float:
        return float((m * z**2 / (1 + mu * m) ** 2).sum())

    if slope(0.0) == 0:
        return 0.0
    low, high = (1 - _NEAR) * (-1 / m[-1]), (1 - _NEAR) * (-1 / m[0])
    if slope(low) > 0 > slope(high):
        mu = float(brentq(slope, low, high, xtol=1e-300, rtol=1e-15, maxiter=1_000))
        return float((z**2 * (mu * m / (1 + mu * m)) ** 2).sum())
    # z has no component along the outermost eigenvector, but the nearest x has: mu is at its bound.
    outermost = 0 if slope(high) >= 0 else len(m) - 1
    rest = np.abs(m - m[outermost]) > _ZERO * np.abs(m).max()
    mu = -1 / m[outermost]
    x = z[rest] / (1 + mu * m[rest])
    part = float((m[rest] * x**2).sum() / -m[outermost])
    return float(((x - z[rest]) ** 2).sum()) + max(part, 0.0)


def cosine_limit(coef: Floats, b: Floats, covariance: Floats, limit: float, end: float) -> float:
    """Return the squared cosine, between that of b and an end, at which D(c) equals the limit.

    Parameters
    ----------
    coef : ndarray of shape (n_features,)
        The coefficients of the model.
    b, covariance : ndarray
        The fitted direction with its covariance.
    limit : float
        The largest Wald statistic, z(1 - a/2)^2.
    end : float
        0 or 1; returned if D does not exceed the limit there.
    """

    def excess(c: float) -> float:
        return profile_distance(coef, b, covariance, c) - limit

    if excess(end) <= 0:
        return end
    return float(brentq(excess, *sorted([squared_cosine(coef, b), end]), xtol=_PRECISE))
