"""Mantel-Haenszel differences and ratios of two proportions within strata, with score tests.

A stratum with n_1 and n_2 rows, of which x_1 and x_2 are hits, has the weight k = n_1 n_2 / N. Both
contrasts, sum k (p_1 - p_2 - D) for a difference D and sum k (p_1 - R p_2) for a ratio R, are
tested by a score test whose variance and skewness are computed, in each stratum, from the pooled
rate under the hypothesis. The variance p (1 - p) at a pooled rate of few rows is biased downwards;
the bias is corrected, so that the test holds for many small strata as well as for few large ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .intervals import NO_INTERVAL, Interval
from .proportions import ratios_of
from .score import NO_SCORE, ScoreStatistic, interval_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class WithinStrata:
    """The hits and rows of two groups by stratum and group; both have rows in every stratum."""

    hits: Floats
    rows: Floats

    @property
    def is_empty(self) -> bool:
        """Return whether the groups share no stratum."""
        return not len(self.rows)

    @cached_property
    def means(self) -> tuple[float, float]:
        """The rates of both groups: means over the strata with the weights k."""
        if self.is_empty:
            return math.nan, math.nan
        first, second = self._weights @ (self.hits / self.rows) / self._weights.sum()
        return float(first), float(second)

    # -- differences -------------------------------------------------------------------------

    @cached_property
    def estimate(self) -> float:
        """The Mantel-Haenszel difference, sum k (p_1 - p_2) / sum k."""
        first, second = self.means
        return first - second

    @cached_property
    def error(self) -> float:
        """The standard error of the difference, after Sato, Greenland and Robins (1989).

        It holds both for few large strata and for many small ones. Its square is
        (D sum P + sum Q) / (sum k)^2 with
        P = (n_1^2 x_2 - n_2^2 x_1 + n_1 n_2 (n_2 - n_1) / 2) / N^2 and
        Q = (x_1 (n_2 - x_2) + x_2 (n_1 - x_1)) / (2 N) of each stratum.
        """
        if self.is_empty:
            return math.nan
        (x, y), (n, m), both = self.hits.T, self.rows.T, self._stratum_sizes
        sum_p = ((n**2 * y - m**2 * x + n * m * (m - n) / 2) / both**2).sum()
        sum_q = ((x * (m - y) + y * (n - x)) / (2 * both)).sum()
        # If no stratum varies, rounding can make this slightly negative.
        return math.sqrt(max(self.estimate * sum_p + sum_q, 0.0)) / float(self._weights.sum())

    def difference_score(self, margin: float) -> ScoreStatistic:
        """Return the score for the hypothesis that the difference equals the margin.

        The rates of a stratum lie the margin apart around its pooled rate. This variance can be
        negative if rates near 0 or 1 cannot lie the margin apart, and Sato's variance is taken at
        the estimate, not under the hypothesis; so the larger one is used. NaN if nothing varies.
        """
        if not self.error > 0:
            return NO_SCORE
        n, m = self.rows.T
        rate, margin_factor, bias_factor, rest = self._pooled
        pooled = rate + margin * margin_factor
        p, q = pooled, pooled - margin
        pooled_variance = n * p * (1 - p) + m * q * (1 - q)
        bias = bias_factor * pooled_variance / rest
        variance = max(self._variance(p, q, 1.0, bias), self.error**2)
        p = np.minimum(np.maximum(pooled, max(0.0, margin)), min(1.0, 1.0 + margin))
        third = self._third_moment(p, p - margin, 1.0)
        return ScoreStatistic.from_moments(self.estimate - margin, variance, third)

    @cached_property
    def _pooled(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The terms of the pooled rates of the strata, and of their variance."""
        (n, m), both = self.rows.T, self._stratum_sizes
        return self.hits.sum(axis=1) / both, m / both, n * m / both**2, both - 1

    def difference_interval(self, z: float) -> Interval:
        """Return the differences that the score test does not reject; NaN if nothing varies."""
        if not self.error > 0:
            return NO_INTERVAL
        return interval_of(self.difference_score, self.estimate, (-1.0, 1.0), z)

    # -- ratios ------------------------------------------------------------------------------

    @property
    def ratio(self) -> float:
        """The Mantel-Haenszel ratio, sum k p_1 / sum k p_2; infinite if only the latter is 0."""
        above, below = self.means
        if below > 0:
            return above / below
        return math.inf if above > 0 else math.nan

    @cached_property
    def log_error(self) -> float:
        """The standard error of the logarithm of the ratio, after Greenland and Robins (1985).

        The root of sum (n_1 n_2 (x_1 + x_2) / N^2 - x_1 x_2 / N) / (sum k p_1 sum k p_2).
        """
        above, below = self.means
        if not (above > 0 and below > 0):
            return math.nan
        (x, y), (n, m), both = self.hits.T, self.rows.T, self._stratum_sizes
        spread = float((n * m * (x + y) / both**2 - x * y / both).sum())
        return math.sqrt(max(spread, 0.0) / (above * below)) / float(self._weights.sum())

    def ratio_score(self, ratio: float) -> ScoreStatistic:
        """Return the score for the hypothesis that the ratio is R; NaN if no stratum has a hit.

        The rates of a stratum are R q and q, with q = (x_1 + x_2) / (R n_1 + n_2), capped at
        min(1, 1 / R).
        """
        above, below = self.means
        if not (above > 0 or below > 0):
            return NO_SCORE
        n, m = self.rows.T
        expected = ratio * n + m
        q = np.minimum(self.hits.sum(axis=1) / expected, min(1.0, 1 / ratio))
        p = np.minimum(ratio * q, 1.0)
        share = ratio / expected
        share_second = m / expected
        rest = (
            share**2 * n * (n - 1)
            + share_second * (m - 1) / expected
            + 2 * share * n * share_second
        )
        pooled_variance = n * p * (1 - p) + m * q * (1 - q)
        bias = n * m / self._stratum_sizes * share**2 * pooled_variance / rest
        variance = self._variance(p, q, ratio, bias)
        return ScoreStatistic.from_moments(
            above - ratio * below, variance, self._third_moment(p, q, ratio)
        )

    def ratio_interval(self, z: float) -> Interval:
        """Return the ratios that the score test does not reject; NaN if no stratum has a hit."""
        above, below = self.means
        if not (above > 0 or below > 0):
            return NO_INTERVAL
        return ratios_of(self.ratio_score, above, below, z)

    # -- shared terms ------------------------------------------------------------------------

    @cached_property
    def _stratum_sizes(self) -> Floats:
        """Rows of both groups, by stratum."""
        both: Floats = self.rows.sum(axis=1)
        return both

    @cached_property
    def _weights(self) -> Floats:
        weights: Floats = self.rows.prod(axis=1) / self._stratum_sizes
        return weights

    def _variance(self, p: Floats, q: Floats, ratio: float, bias: Floats) -> float:
        """Return the variance of sum k (p_1 - R p_2) / sum k, given the rates of the strata."""
        n, m = self.rows.T
        own = p * (1 - p) / n + ratio**2 * q * (1 - q) / m
        squares, square_of_sum = self._squares
        return float((squares * own + bias).sum() / square_of_sum)

    @cached_property
    def _squares(self) -> tuple[Floats, float]:
        """The squares of the weights of the strata, and the square of their sum."""
        return self._weights**2, self._weights.sum() ** 2

    def _third_moment(self, p: Floats, q: Floats, ratio: float) -> float:
        """Return the third moment of sum k (p_1 - R p_2) / sum k, given the rates of the strata.

        It is sum k^3 (p (1 - p) (1 - 2 p) / n_1^2 - R^3 q (1 - q) (1 - 2 q) / n_2^2) / (sum k)^3.
        """
        n, m = self.rows.T
        third_of_second = ratio**2 * q * (1 - q) * (1 - 2 * q) / m**2 * ratio
        return float((p * (1 - p) * (1 - 2 * p) / n**2 - third_of_second) @ self._cubes)

    @cached_property
    def _cubes(self) -> Floats:
        """The cubes of the weight shares, corrected for the bias of the third moment.

        The third moment at a pooled rate is too small by the factor N^2 / ((N - 1) (N - 2)); strata
        of two rows count as symmetric.
        """
        both, share = self._stratum_sizes, self._weights / self._weights.sum()
        factor = both**2 / ((both - 1) * np.maximum(both - 2, 1))
        cubes: Floats = share**3 * np.where(both > 2, factor, 0.0)
        return cubes


def keep_shared_strata(hits: Floats, rows: Floats) -> WithinStrata:
    """Return two groups within the strata in which both have rows."""
    shared = np.all(rows > 0, axis=1)
    return WithinStrata(hits=hits[shared].astype(float), rows=rows[shared].astype(float))
