"""Compare the changes of two groups in paired data, where each row is observed twice.

In a rate, a row goes up by 1, goes down by 1 or stays. The change of a group is the share of rows
that go up minus the share that go down. Two groups are compared by a score test, with both shares
of both groups at their most likely values under the hypothesis. So a group without any changes
still has a variance. For a single group it is Tango's test (1998). There are two statistics, the
score and the score corrected for skewness (Laud, 2017); the p-value of a side is the larger one
(see `score.ScoreStatistic`).

.. [1] Tango, T. (1998). Equivalence test and confidence interval for the difference in proportions
   for the paired-sample design. Statistics in Medicine 17.
   doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B
.. [2] Laud, P. J. (2017). Equal-tailed confidence intervals for comparison of rates.
   Pharmaceutical Statistics 16. doi:10.1002/pst.1813
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from .intervals import NO_INTERVAL, Interval
from .pvalues import clamp_pvalue, t_quantile, t_upper_tail, two_sided_normal_quantile
from .score import ScoreStatistic, interval_of

#: Bisection steps to find a root between -2 and 2 to the last bit.
_HALVINGS = 56
#: Standard deviations below this are rounding errors.
_ROUNDING = 1e-15


@dataclass(frozen=True, kw_only=True)
class PairedDifference:
    """A difference with its one-sided p-values and two-sided interval."""

    estimate: float
    standard_error: float
    #: P-value of "not below 0", which is small if the difference is below 0.
    less: float
    #: P-value of "not above 0".
    greater: float
    interval: Interval

    @property
    def two_sided(self) -> float:
        """The p-value of "is 0"; NaN if it is unknown."""
        return min(2 * min(self.less, self.greater), 1.0)

    def mirrored(self) -> PairedDifference:
        """Return the difference with the opposite sign."""
        low, high = self.interval
        return replace(
            self,
            estimate=-self.estimate,
            less=self.greater,
            greater=self.less,
            interval=(-high, -low),
        )


class ChangeCounts(NamedTuple):
    """The numbers of rows that go up by 1 and down by 1, and of all eligible rows."""

    up: float
    down: float
    n_rows: float

    @property
    def mean(self) -> float:
        """The share of rows that go up minus the share that go down."""
        return (self.up - self.down) / self.n_rows

    @property
    def variance(self) -> float:
        """The variance of the mean at the observed shares."""
        return max((self.up + self.down) / self.n_rows - self.mean**2, 0.0) / self.n_rows


def score_statistic(
    first: ChangeCounts, second: ChangeCounts | None, margin: float
) -> ScoreStatistic:
    """Return the score statistic of "the change of the first group minus the second is the margin".

    Without a second group, the change of the first is compared with the margin.
    """
    middle = margin if second is None else _middle(first, second, margin)
    observed, variance, third = first.mean - margin, *_moments(first, middle)
    if second is not None:
        observed -= second.mean
        more, skewed = _moments(second, middle - margin)
        variance, third = variance + more, third - skewed
    if abs(observed) <= _ROUNDING:
        return ScoreStatistic(0.0, 0.0)
    return ScoreStatistic.from_moments(
        observed, variance if variance > _ROUNDING**2 else 0.0, third
    )


def by_score(first: ChangeCounts, second: ChangeCounts | None, level: float) -> PairedDifference:
    """Test and estimate the difference of two changes, or the change of one group."""
    estimate, variance = first.mean, first.variance
    if second is not None:
        estimate, variance = estimate - second.mean, variance + second.variance
    at_zero, most = score_statistic(first, second, 0.0), 1.0 if second is None else 2.0

    def at(margin: float) -> ScoreStatistic:
        return score_statistic(first, second, margin)

    return PairedDifference(
        estimate=estimate,
        standard_error=math.sqrt(variance),
        less=at_zero.less,
        greater=at_zero.greater,
        interval=interval_of(at, estimate, (-most, most), two_sided_normal_quantile(level)),
    )


def by_law(
    estimate: float, standard_error: float, level: float, df: float = math.inf
) -> PairedDifference:
    """Test and estimate a difference by the normal distribution, or by Student's t."""
    if not standard_error > 0:
        return unknown_difference(estimate)
    t, half = estimate / standard_error, t_quantile((1 - level) / 2, df) * standard_error
    return PairedDifference(
        estimate=estimate,
        standard_error=standard_error,
        less=clamp_pvalue(t_upper_tail(-t, df)),
        greater=clamp_pvalue(t_upper_tail(t, df)),
        interval=(estimate - half, estimate + half),
    )


def unknown_difference(estimate: float) -> PairedDifference:
    """Return an estimate without p-values and interval."""
    unknown = math.nan
    return PairedDifference(
        estimate=estimate,
        standard_error=unknown,
        less=unknown,
        greater=unknown,
        interval=NO_INTERVAL,
    )


def _middle(first: ChangeCounts, second: ChangeCounts, margin: float) -> float:
    """Return the most likely change of the first group if that of the second is a margin less."""
    low, high = max(-1.0, margin - 1), min(1.0, margin + 1)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if _slope(first, middle) + _slope(second, middle - margin) > 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _share_down(changes: ChangeCounts, mean: float) -> float:
    """Return the most likely share of rows that go down, given the mean change.

    The larger root of 2 n q^2 - (x + y - (2 n - x + y) m) q - y m (1 - m) = 0 (Tango).
    """
    up, down, n = changes
    linear = up + down - mean * (2 * n - up + down)
    root = math.sqrt(max(linear * linear + 8 * n * down * mean * (1 - mean), 0.0))
    return min(max((linear + root) / (4 * n), 0.0, -mean), 0.5 * (1 - mean))


def _slope(changes: ChangeCounts, mean: float) -> float:
    """Return the derivative of the profile log-likelihood of a mean change."""
    up, down, n = changes
    same, share = n - up - down, _share_down(changes, mean)
    if same == 0:
        # If every row changes, 1 + mean is twice the share that goes up.
        return _ratio(up, 1 + mean) - _ratio(down, 1 - mean)
    if up == 0 and share + mean <= _ROUNDING:
        # If no row goes up, the change is minus the share that goes down.
        return _ratio(same, 1 + mean) - _ratio(down, -mean)
    return _ratio(up, share + mean) - _ratio(same, 1 - 2 * share - mean)


def _ratio(count: float, share: float) -> float:
    if count == 0:
        return 0.0
    return count / share if share > 0 else math.inf


def _moments(changes: ChangeCounts, mean: float) -> tuple[float, float]:
    """Return the second and third central moments of the mean, at the most likely shares."""
    n, down = changes.n_rows, _share_down(changes, mean)
    moved = 2 * down + mean
    return (moved - mean**2) / n, (mean - 3 * mean * moved + 2 * mean**3) / n**2
