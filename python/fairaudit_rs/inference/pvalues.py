"""P-values from replicates, and from the normal, t and chi-squared distributions."""

from __future__ import annotations

import math
import sys

from .. import _native

#: The smallest p-value that is returned.
SMALLEST_PVALUE = sys.float_info.min
#: The constant c of `anytime_pvalue`, as a share of the level.
_MIXTURE_SHARE = 0.9
#: Number of replicates after which an adaptive test may first stop.
_FIRST_BOUNDARY = 128


def monte_carlo_pvalue(n_extreme: int, n_resamples: int) -> float:
    """Return the p-value from the number of replicates at least as extreme as the data."""
    return (1 + n_extreme) / (1 + n_resamples)


def boundaries_up_to(n_resamples: int) -> list[int]:
    """Return the numbers of replicates after which an adaptive test may stop; they double."""
    boundaries = []
    end = _FIRST_BOUNDARY
    while end < n_resamples:
        boundaries.append(end)
        end *= 2
    return [*boundaries, n_resamples]


def anytime_pvalue(extreme: int, n: int) -> float:
    """Return a p-value after n replicates that is valid at any stopping time.

    The wealth of betting on the binomial mixture over [0, c] is (1 - F(extreme; n + 1, c)) / c
    (Fischer and Ramdas, 2024); the p-value is the smallest level at which the wealth with
    c = 0.9 level reaches 1 / level: a beta quantile.
    """
    quantile = _native.beta_quantile(extreme + 1, n + 1 - extreme, _MIXTURE_SHARE)
    return min(quantile / _MIXTURE_SHARE, 1.0)


def standardize_gap(gap: float, error: float) -> float:
    """Return a gap in standard errors: 0 if the gap is 0, infinite if only the error is 0."""
    if error > 0:
        return gap / error
    return math.copysign(math.inf, gap) if gap else 0.0


def upper_tail(z: float) -> float:
    """Return the probability that a standard normal variable exceeds z."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def normal_cdf(z: float) -> float:
    """Return the probability that a standard normal variable is at most z."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def clamp_pvalue(pvalue: float) -> float:
    """Raise a p-value from a formula to the smallest positive float, if it is below."""
    return max(pvalue, SMALLEST_PVALUE)


def t_upper_tail(t: float, df: float) -> float:
    """Return the probability that Student's t exceeds a value; infinite df mean normal."""
    return _native.t_upper_tail(t, df)


def t_quantile(tail: float, df: float) -> float:
    """Return the upper quantile of Student's t for a tail probability."""
    return _native.t_tail_quantile(tail, df)


def chi_square_tail(value: float, df: int) -> float:
    """Return the probability that a chi-squared variable exceeds a value."""
    from scipy import special

    return float(special.chdtrc(df, value))


def normal_of_tail(tail: float) -> float:
    """Return the upper quantile of the standard normal distribution for a tail probability."""
    return -_native.normal_quantile(tail)


def two_sided_normal_quantile(level: float) -> float:
    """Return the half width of a two-sided normal interval, in standard errors.

    At least 0 and finite, even if rounding makes 1 - level (or its half) vanish.
    """
    probability = 0.5 + level / 2
    if probability < 1:
        return max(_native.normal_quantile(probability), 0.0)
    return normal_of_tail(max((1 - level) / 2, SMALLEST_PVALUE))
