"""Differences and ratios of two proportions within strata, after Mantel and Haenszel.

A stratum with n_1 and n_2 rows, of which x_1 and x_2 are hits, has the weight k = n_1 n_2 / N. Both
contrasts, sum k (p_1 - p_2 - D) and sum k (p_1 - R p_2), are tested by a score: their second and
third moments are those of rates that fulfil the hypothesis in every stratum, made of its pooled
rate. A pooled rate of few rows varies less in expectation than the true one; what is missing is
given back, so that many small strata are as right as few large ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .intervals import NOTHING, Interval
from .proportions import ratios_of
from .score import NO_SCORE, ScoreStatistic, interval_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class WithinStrata:
    """The hits and rows of two groups, by stratum and group; each has rows in every stratum."""

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
        """The standard error of the difference of Sato, Greenland and Robins (1989).

        It holds both for few large strata and for many small ones: (D sum P + sum Q) / (sum k)^2,
        with P = (n_1^2 x_2 - n_2^2 x_1 + n_1 n_2 (n_2 - n_1) / 2) / N^2 and
        Q = (x_1 (n_2 - x_2) + x_2 (n_1 - x_1)) / (2 N) of each stratum.
        """
        if self.is_empty:
            return math.nan
        (x, y), (n, m), both = self.hits.T, self.rows.T, self._both
        tilt = ((n**2 * y - m**2 * x + n * m * (m - n) / 2) / both**2).sum()
        spread = ((x * (m - y) + y * (n - x)) / (2 * both)).sum()
        # All strata without variation: rounding can be below 0.
        return math.sqrt(max(self.estimate * tilt + spread, 0.0)) / float(self._weights.sum())

    def difference_score(self, margin: float) -> ScoreStatistic:
        """Return the score of a difference of the margin; NaN where nothing varies.

        The rates of a stratum lie the margin apart around its pooled rate. Their variance can fall
        below 0 where rates near 0 and 1 do not allow the margin, and that of Sato follows the
        estimate away from the hypothesis: the larger of the two counts.
        """
        if not self.error > 0:
            return NO_SCORE
        n, m = self.rows.T
        rate, of_margin, of_missing, rest = self._pooled
        pooled = rate + margin * of_margin
        p, q = pooled, pooled - margin
        of_pooled = n * p * (1 - p) + m * q * (1 - q)
        missing = of_missing * of_pooled / rest
        variance = max(self._variance(p, q, 1.0, missing), self.error**2)
        p = np.minimum(np.maximum(pooled, max(0.0, margin)), min(1.0, 1.0 + margin))
        third = self._third_moment(p, p - margin, 1.0)
        return ScoreStatistic.from_moments(self.estimate - margin, variance, third)

    @cached_property
    def _pooled(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the parts of the pooled rates of the strata, and of their variance."""
        (n, m), both = self.rows.T, self._both
        return self.hits.sum(axis=1) / both, m / both, n * m / both**2, both - 1

    def difference_interval(self, z: float) -> Interval:
        """Return the differences that the score test does not reject; NaN where nothing varies."""
        if not self.error > 0:
            return NOTHING
        return interval_of(self.difference_score, self.estimate, (-1.0, 1.0), z)

    # -- ratios ------------------------------------------------------------------------------

    @property
    def ratio(self) -> float:
        """The Mantel-Haenszel ratio, sum k p_1 / sum k p_2; infinite above 0, NaN at 0 / 0."""
        above, below = self.means
        if below > 0:
            return above / below
        return math.inf if above > 0 else math.nan

    @cached_property
    def log_error(self) -> float:
        """The standard error of the logarithm of the ratio, of Greenland and Robins (1985).

        The root of sum (n_1 n_2 (x_1 + x_2) / N^2 - x_1 x_2 / N) / (sum k p_1 sum k p_2).
        """
        above, below = self.means
        if not (above > 0 and below > 0):
            return math.nan
        (x, y), (n, m), both = self.hits.T, self.rows.T, self._both
        spread = float((n * m * (x + y) / both**2 - x * y / both).sum())
        return math.sqrt(max(spread, 0.0) / (above * below)) / float(self._weights.sum())

    def ratio_score(self, ratio: float) -> ScoreStatistic:
        """Return the score of a ratio; NaN where no stratum has a hit.

        The rates of a stratum are R q and q, with q = (x_1 + x_2) / (R n_1 + n_2) or the most that
        there can be.
        """
        above, below = self.means
        if not (above > 0 or below > 0):
            return NO_SCORE
        n, m = self.rows.T
        expected = ratio * n + m
        q = np.minimum(self.hits.sum(axis=1) / expected, min(1.0, 1 / ratio))
        p = np.minimum(ratio * q, 1.0)
        share = ratio / expected
        other = m / expected
        left = share**2 * n * (n - 1) + other * (m - 1) / expected + 2 * share * n * other
        of_pooled = n * p * (1 - p) + m * q * (1 - q)
        missing = n * m / self._both * share**2 * of_pooled / left
        variance = self._variance(p, q, ratio, missing)
        return ScoreStatistic.from_moments(
            above - ratio * below, variance, self._third_moment(p, q, ratio)
        )

    def ratio_interval(self, z: float) -> Interval:
        """Return the ratios that the score test does not reject; NaN where no stratum has a hit."""
        above, below = self.means
        if not (above > 0 or below > 0):
            return NOTHING
        return ratios_of(self.ratio_score, above, below, z)

    # -- what both are made of ---------------------------------------------------------------

    @cached_property
    def _both(self) -> Floats:
        """Rows of both groups, by stratum."""
        both: Floats = self.rows.sum(axis=1)
        return both

    @cached_property
    def _weights(self) -> Floats:
        weights: Floats = self.rows.prod(axis=1) / self._both
        return weights

    def _variance(self, p: Floats, q: Floats, ratio: float, missing: Floats) -> float:
        """Return the variance of sum k (p_1 - R p_2) / sum k, given the rates of the strata."""
        n, m = self.rows.T
        own = p * (1 - p) / n + ratio**2 * q * (1 - q) / m
        squares, of_all = self._squares
        return float((squares * own + missing).sum() / of_all)

    @cached_property
    def _squares(self) -> tuple[Floats, float]:
        """The squares of the weights of the strata, and that of their sum."""
        return self._weights**2, self._weights.sum() ** 2

    def _third_moment(self, p: Floats, q: Floats, ratio: float) -> float:
        """Return the third moment of sum k (p_1 - R p_2) / sum k, given the rates of the strata.

        It is sum k^3 (p (1 - p) (1 - 2 p) / n_1^2 - R^3 q (1 - q) (1 - 2 q) / n_2^2) / (sum k)^3.
        """
        n, m = self.rows.T
        of_second = ratio**2 * q * (1 - q) * (1 - 2 * q) / m**2 * ratio
        return float((p * (1 - p) * (1 - 2 * p) / n**2 - of_second) @ self._cubes)

    @cached_property
    def _cubes(self) -> Floats:
        """The cubes of the weights of the strata, times what a third moment of few rows lacks.

        That of a pooled rate is N^2 / ((N - 1) (N - 2)) times too small; strata of two rows count
        as symmetric.
        """
        both, share = self._both, self._weights / self._weights.sum()
        lacking = both**2 / ((both - 1) * np.maximum(both - 2, 1))
        cubes: Floats = share**3 * np.where(both > 2, lacking, 0.0)
        return cubes


def mantel_haenszel(hits: Floats, rows: Floats) -> WithinStrata:
    """Return two groups within the strata in which both have rows."""
    shared = np.all(rows > 0, axis=1)
    return WithinStrata(hits=hits[shared].astype(float), rows=rows[shared].astype(float))
