"""The audit value: its estimate, variance, bounds and p-value, and the correction for skewness."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.intervals import studentize
from ..inference.pvalues import (
    SMALLEST_PVALUE,
    monte_carlo_pvalue,
    t_quantile,
    t_upper_tail,
    upper_tail,
)
from ..literals import RatioInterval

Floats = NDArray[np.float64]
Interval = tuple[float, float]

INTERVALS: tuple[RatioInterval, ...] = get_args(RatioInterval)


def mean_ratio(ratios: Floats, ddof: int = 1) -> tuple[float, float]:
    """Return S_n and V_n^2 / n; NaN where a ratio is not finite (no row is dropped)."""
    n = len(ratios)
    if n <= ddof:
        return math.nan, math.nan
    mean, squares = _native.moments(ratios, _native.Call())
    return mean, squares / (n - ddof) / n


def error_ratio(
    wrong_start: NDArray[np.bool_], wrong_end: NDArray[np.bool_], ddof: int = 1
) -> tuple[float, float]:
    """Return A / B, the error rates after and before, and its variance by the delta method.

    With a rows wrong after, b rows wrong before, and c rows wrong in both, the variance is
    n^2 a (a + b - 2 c) / b^3 / (n (n - ddof)): equation (3.13) for ddof 0.
    """
    both = int((wrong_start & wrong_end).sum())
    counts = int(wrong_end.sum()), int(wrong_start.sum()), both
    return error_ratio_of_counts(len(wrong_start), *counts, ddof)


def error_ratio_of_counts(n: int, a: int, b: int, c: int, ddof: int = 1) -> tuple[float, float]:
    """Return `error_ratio` of n rows from its three counts."""
    if b == 0 or n <= ddof:
        return math.nan, math.nan
    return a / b, n * a * (a + b - 2 * c) / b**3 / (n - ddof)


@dataclass(frozen=True)
class AuditValue:
    """An estimate with its variance, and its bounds and p-value for the tolerated value delta."""

    estimate: float
    variance: float
    _: KW_ONLY
    interval: str = "normal"
    #: Whether replicates are studentized on the log scale, as for a ratio of error rates: with few
    #: errors before the flow it is too skewed for studentizing on its own scale.
    of_rates: bool = False
    #: (values, variances) of the bootstrap, for ``interval="bootstrap-t"``.
    replicates: tuple[Floats, Floats] | None = None
    #: Degrees of freedom of the variance, for Student's t instead of the normal law.
    df: float = math.inf

    @cached_property
    def standard_error(self) -> float:
        """The square root of the variance."""
        return math.sqrt(self.variance) if self.variance >= 0 else math.nan

    def two_sided(self, level: float) -> Interval:
        """Return the interval of a level; its ends are one-sided bounds at (1 + level) / 2."""
        if math.isnan(self.estimate) or math.isnan(self.variance):
            return math.nan, math.nan
        error = self.standard_error
        if self._on_log_scale and not self.estimate > 0:
            return math.nan, math.nan
        if self.replicates is not None:
            return self._resampled(0.5 + level / 2)
        half = self._quantile(level) * error
        if self.interval == "log":
            factor = _exp(half / self.estimate)
            return self.estimate / factor, self.estimate * factor
        return self.estimate - half, self.estimate + half

    def _quantile(self, level: float) -> float:
        """Return the half-width of an interval of a level in standard errors."""
        if math.isinf(self.df):
            return _native.normal_quantile(0.5 + level / 2)
        # A one-sided bound of a level below 1/2 lies on the other side of the estimate.
        tail = 0.5 - level / 2
        return t_quantile(tail, self.df) if tail <= 0.5 else -t_quantile(1 - tail, self.df)

    def _resampled(self, level: float) -> Interval:
        """Return both bounds of a one-sided level: order statistics that agree with the p-value.

        Undefined replicates count as extreme on both sides.
        """
        estimate, error = self.estimate, self.standard_error
        if error == 0:
            return estimate, estimate
        assert self.replicates is not None
        values, variances = self.replicates
        if self.of_rates:
            estimate, error = math.log(estimate), error / estimate
            values, variances = self._log_replicates
        t = studentize(values.copy(), estimate, variances)
        rank = math.ceil(level * (len(t) + 1) * (1 - 1e-12))
        known = np.sort(t[~np.isnan(t)])
        if rank > len(known):
            low, high = -math.inf, math.inf
        else:
            # Undefined replicates come last for the lower bound, and first for the upper.
            low = estimate - float(known[rank - 1]) * error
            high = estimate - float(known[len(known) - rank]) * error
        return (_exp(low), _exp(high)) if self.of_rates else (low, high)

    @property
    def _on_log_scale(self) -> bool:
        return self.interval == "log" or (self.of_rates and self.replicates is not None)

    @cached_property
    def _log_replicates(self) -> tuple[Floats, Floats]:
        """Logarithms of the replicates with their variances; NaN for a ratio of 0."""
        assert self.replicates is not None
        values, variances = self.replicates
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(values > 0, np.log(values), math.nan)
            return logs, np.where(values > 0, variances / values**2, math.nan)

    def lower_bound(self, level: float) -> float:
        """Return T_n: the value is at least this, with confidence `level`."""
        return self.two_sided(2 * level - 1)[0]

    def upper_bound(self, level: float) -> float:
        """Return the upper bound: the value is at most this, with confidence `level`."""
        return self.two_sided(2 * level - 1)[1]

    def statistic(self, delta: float) -> float:
        """Return the distance of the estimate from delta in standard errors."""
        if math.isnan(self.estimate) or math.isnan(self.variance):
            return math.nan
        gap, error = self.estimate - delta, self.standard_error
        if self._on_log_scale:
            if not self.estimate > 0:
                return math.nan
            gap, error = math.log(self.estimate / delta), error / self.estimate
        if abs(gap) <= 1e-14 * (abs(self.estimate) + delta):
            return 0.0
        return gap / error if error > 0 else math.copysign(math.inf, gap)

    def pvalue(self, delta: float) -> tuple[float, int]:
        """Return the p-value of H0: value <= delta, and the number of undefined replicates."""
        t = self.statistic(delta)
        if math.isnan(t):
            return math.nan, 0
        if self.replicates is None:
            tail = upper_tail(t) if math.isinf(self.df) else t_upper_tail(t, self.df)
            return max(tail, SMALLEST_PVALUE) if math.isfinite(t) else tail, 0
        estimate, (values, variances) = self.estimate, self.replicates
        if self.of_rates:
            estimate, (values, variances) = math.log(estimate), self._log_replicates
        null = studentize(values.copy(), estimate, variances)
        extreme, undefined = _native.count_extreme(
            np.ascontiguousarray(null), t, "greater", False, _native.Call()
        )
        return monte_carlo_pvalue(extreme, len(null)), undefined


def bootstrap_mean(
    numerator: Floats,
    denominator: Floats | None,
    n_resamples: int,
    seed: int,
    n_threads: int | None,
    ddof: int = 1,
) -> tuple[Floats, Floats]:
    """Return replicates of a mean or of a ratio of means, with their variances.

    Rows are sorted first, so that the draws do not depend on their order.
    """
    n = len(numerator)
    if denominator is None:
        numerator = np.sort(numerator)
    else:
        order = np.lexsort((numerator, denominator))
        numerator, denominator = numerator[order], denominator[order]
    draws, call = _native.Draws(n_resamples, seed=seed), _native.Call(n_threads)
    replicates = _native.bootstrap_ratio(numerator, denominator, draws, call)
    return replicates.values[:, 0], replicates.variances[:, 0] * (n / (n - ddof))


@dataclass(frozen=True)
class SkewCorrection:
    """The skewness correction of normal bounds, from the influence of each row."""

    #: psi_i, with mean 0; the variance of the estimate is that of the mean of psi_i.
    influence: Floats
    #: Covariance of the influence with the change of the standard error; 0 for a mean.
    bend: float
    estimate: float

    @classmethod
    def of_mean(cls, ratios: Floats) -> SkewCorrection:
        """Return the correction for the mean of finite ratios."""
        mean = _native.moments(ratios, _native.Call())[0]
        return cls(ratios - mean, 0.0, mean)

    @classmethod
    def of_rates(
        cls, wrong_start: NDArray[np.bool_], wrong_end: NDArray[np.bool_]
    ) -> SkewCorrection:
        """Return the correction for the ratio of two error rates, the first of which is not 0."""
        rate = float(wrong_start.mean())
        ratio = float(wrong_end.mean()) / rate
        influence = (wrong_end - ratio * wrong_start) / rate
        return cls(influence, float((influence * wrong_start).mean()) / rate, ratio)

    def excess(self, level: float, log: bool) -> float:
        """Return the excess of an upper bound's error over 1 - level; a lower one has minus this.

        To first order in one over the root of n (Edgeworth; Hall 1992, section 2.6):
        phi(z) / sqrt(n) (skewness (2 z^2 + 1) / 6 - z^2 (bend / sd + [log] sd / (2 S))).
        """
        n, (squares, _) = len(self.influence), self._squares
        if not squares > 0:
            return 0.0
        deviation = math.sqrt(squares)
        standardised = self.influence / deviation
        cubes = standardised * standardised * standardised
        skewness = _native.moments(cubes, _native.Call())[0]
        z = _native.normal_quantile(level)
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        bend = self.bend / deviation
        if log and self.estimate > 0:
            bend += deviation / (2 * self.estimate)
        return density / math.sqrt(n) * (skewness * (2 * z * z + 1) / 6 - z * z * bend)

    @property
    def largest_share(self) -> float:
        """The largest share of the variance that one row has."""
        mean, largest = self._squares
        total = len(self.influence) * mean
        return largest / total if total > 0 else 0.0

    @cached_property
    def _squares(self) -> tuple[float, float]:
        """The mean and the maximum of the squared influences."""
        squares = self.influence**2
        return _native.moments(squares, _native.Call())[0], float(squares.max())


def _exp(x: float) -> float:
    """Return exp(x), infinite where it overflows."""
    return math.exp(x) if x < 709 else math.inf
