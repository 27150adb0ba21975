"""Mantel-Haenszel differences and ratios of two proportions within strata, with score tests.

The tests, intervals and equivalence tests of `permutation` use it for proportions with
``strata=``: `permutation.counts` makes a `WithinStrata` of each pair of groups, and
`permutation.formulas` uses its score tests and intervals.

A stratum with n_1 and n_2 rows, of which x_1 and x_2 are hits, has the weight k = n_1 n_2 / N. Both
contrasts, sum k (p_1 - p_2 - D) for a difference D and sum k (p_1 - R p_2) for a ratio R, are
tested by a score test whose variance and skewness are computed, in each stratum, from the pooled
rate under the hypothesis. The variance p (1 - p) at a pooled rate of few rows is biased downwards;
the bias is corrected, so that the test keeps its level with many small strata as well as with
few large ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .intervals import NO_INTERVAL, Interval
from .proportions import ratio_interval_of
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
    def standard_error(self) -> float:
        """The standard error of the difference, after Sato, Greenland and Robins (1989).

        It is consistent both when few strata grow large and when many strata stay small. Its
        square is
        (D sum P + sum Q) / (sum k)^2 with
        P = (n_1^2 x_2 - n_2^2 x_1 + n_1 n_2 (n_2 - n_1) / 2) / N^2 and
        Q = (x_1 (n_2 - x_2) + x_2 (n_1 - x_1)) / (2 N) of each stratum.
        """
        if self.is_empty:
            return math.nan
        (x1, x2), (n1, n2), total = self.hits.T, self.rows.T, self._stratum_sizes
        sum_p = ((n1**2 * x2 - n2**2 * x1 + n1 * n2 * (n2 - n1) / 2) / total**2).sum()
        sum_q = ((x1 * (n2 - x2) + x2 * (n1 - x1)) / (2 * total)).sum()
        # If no stratum varies, rounding can make this slightly negative.
        return math.sqrt(max(self.estimate * sum_p + sum_q, 0.0)) / float(self._weights.sum())

    def difference_score(self, margin: float) -> ScoreStatistic:
        """Return the score for the hypothesis that the difference equals the margin.

        In each stratum the two rates under the hypothesis differ by the margin, and their mean over
        the rows is the pooled rate. The variance at these rates can be negative, because one of
        them can be below 0 or above 1. Sato's variance is never negative, but belongs to the
        estimate instead of the hypothesis. The larger of the two is used. NaN if nothing varies.
        """
        if not self.standard_error > 0:
            return NO_SCORE
        n1, n2 = self.rows.T
        rate, margin_factor, bias_factor, degrees = self._pooled
        pooled = rate + margin * margin_factor
        p, q = pooled, pooled - margin
        pooled_variance = n1 * p * (1 - p) + n2 * q * (1 - q)
        bias = bias_factor * pooled_variance / degrees
        variance = max(self._variance(p, q, 1.0, bias), self.standard_error**2)
        p = np.minimum(np.maximum(pooled, max(0.0, margin)), min(1.0, 1.0 + margin))
        third = self._third_moment(p, p - margin, 1.0)
        return ScoreStatistic.from_moments(self.estimate - margin, variance, third)

    @cached_property
    def _pooled(self) -> tuple[Floats, Floats, Floats, Floats]:
        """By stratum: the pooled rate, the factors of the margin and of the bias, and N - 1."""
        (n1, n2), total = self.rows.T, self._stratum_sizes
        return self.hits.sum(axis=1) / total, n2 / total, n1 * n2 / total**2, total - 1

    def difference_interval(self, z: float) -> Interval:
        """Return the differences that the score test does not reject; NaN if nothing varies."""
        if not self.standard_error > 0:
            return NO_INTERVAL
        return interval_of(self.difference_score, self.estimate, (-1.0, 1.0), z)

    # -- ratios ------------------------------------------------------------------------------

    @property
    def ratio(self) -> float:
        """The Mantel-Haenszel ratio, sum k p_1 / sum k p_2; infinite if only the latter is 0."""
        first, second = self.means
        if second > 0:
            return first / second
        return math.inf if first > 0 else math.nan

    @cached_property
    def log_ratio_standard_error(self) -> float:
        """The standard error of the logarithm of the ratio, after Greenland and Robins (1985).

        The root of sum (n_1 n_2 (x_1 + x_2) / N^2 - x_1 x_2 / N) / (sum k p_1 sum k p_2).
        """
        first, second = self.means
        if not (first > 0 and second > 0):
            return math.nan
        (x1, x2), (n1, n2), total = self.hits.T, self.rows.T, self._stratum_sizes
        spread = float((n1 * n2 * (x1 + x2) / total**2 - x1 * x2 / total).sum())
        return math.sqrt(max(spread, 0.0) / (first * second)) / float(self._weights.sum())

    def ratio_score(self, ratio: float) -> ScoreStatistic:
        """Return the score for the hypothesis that the ratio is R; NaN if no stratum has a hit.

        The rates of a stratum are R q and q, with q = (x_1 + x_2) / (R n_1 + n_2), capped at
        min(1, 1 / R).
        """
        first, second = self.means
        if not (first > 0 or second > 0):
            return NO_SCORE
        n1, n2 = self.rows.T
        expected = ratio * n1 + n2
        q = np.minimum(self.hits.sum(axis=1) / expected, min(1.0, 1 / ratio))
        p = np.minimum(ratio * q, 1.0)
        share = ratio / expected
        share_second = n2 / expected
        bias_denominator = (
            share**2 * n1 * (n1 - 1)
            + share_second * (n2 - 1) / expected
            + 2 * share * n1 * share_second
        )
        pooled_variance = n1 * p * (1 - p) + n2 * q * (1 - q)
        bias = n1 * n2 / self._stratum_sizes * share**2 * pooled_variance / bias_denominator
        variance = self._variance(p, q, ratio, bias)
        return ScoreStatistic.from_moments(
            first - ratio * second, variance, self._third_moment(p, q, ratio)
        )

    def ratio_interval(self, z: float) -> Interval:
        """Return the ratios that the score test does not reject; NaN if no stratum has a hit."""
        first, second = self.means
        if not (first > 0 or second > 0):
            return NO_INTERVAL
        return ratio_interval_of(self.ratio_score, first, second, z)

    # -- shared terms ------------------------------------------------------------------------

    @cached_property
    def _stratum_sizes(self) -> Floats:
        """Rows of both groups, by stratum."""
        total: Floats = self.rows.sum(axis=1)
        return total

    @cached_property
    def _weights(self) -> Floats:
        weights: Floats = self.rows.prod(axis=1) / self._stratum_sizes
        return weights

    def _variance(self, p: Floats, q: Floats, ratio: float, bias: Floats) -> float:
        """Return the variance of sum k (p_1 - R p_2) / sum k, given the rates of the strata."""
        n1, n2 = self.rows.T
        own = p * (1 - p) / n1 + ratio**2 * q * (1 - q) / n2
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
        n1, n2 = self.rows.T
        second_group_term = ratio**2 * q * (1 - q) * (1 - 2 * q) / n2**2 * ratio
        return float((p * (1 - p) * (1 - 2 * p) / n1**2 - second_group_term) @ self._cubes)

    @cached_property
    def _cubes(self) -> Floats:
        """The cubes of the weight shares, corrected for the bias of the third moment.

        The third moment at a pooled rate is too small by the factor N^2 / ((N - 1) (N - 2)). In a
        stratum of two rows it is taken as 0.
        """
        total, share = self._stratum_sizes, self._weights / self._weights.sum()
        factor = total**2 / ((total - 1) * np.maximum(total - 2, 1))
        cubes: Floats = share**3 * np.where(total > 2, factor, 0.0)
        return cubes


def keep_shared_strata(hits: Floats, rows: Floats) -> WithinStrata:
    """Return two groups within the strata in which both have rows."""
    shared = np.all(rows > 0, axis=1)
    return WithinStrata(hits=hits[shared].astype(float), rows=rows[shared].astype(float))
