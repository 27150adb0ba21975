"""p-values from counts of replicates, and from the normal law."""

from __future__ import annotations

import math
import sys

from .. import _native

#: p-values below this are not told apart from 0.
LEAST = sys.float_info.min
#: Share of the confidence that `anytime_pvalue` spends on each level.
_MIXTURE_SHARE = 0.9
_FIRST_BOUNDARY = 128


def monte_carlo_pvalue(n_extreme: int, n_resamples: int) -> float:
    """Return the p-value of replicates of which so many are at least as extreme as the data."""
    return (1 + n_extreme) / (1 + n_resamples)


def boundaries_up_to(n_resamples: int) -> list[int]:
    """Return the numbers of replicates at which an adaptive test looks: doubling ones."""
    boundaries = []
    end = _FIRST_BOUNDARY
    while end < n_resamples:
        boundaries.append(end)
        end *= 2
    return [*boundaries, n_resamples]


def anytime_pvalue(extreme: int, n: int) -> float:
    """Return the p-value after n replicates that is valid whenever one stops.

    The wealth of betting on the binomial mixture over [0, c] is (1 - F(extreme; n + 1, c)) / c
    (Fischer and Ramdas, 2024); the p-value is the smallest level at which the wealth with
    c = 0.9 level reaches 1 / level: a beta quantile.
    """
    quantile = _native.beta_quantile(extreme + 1, n + 1 - extreme, _MIXTURE_SHARE)
    return min(quantile / _MIXTURE_SHARE, 1.0)


def standardize_gap(gap: float, error: float) -> float:
    """Return a gap in standard errors: infinite without an error, 0 without a gap."""
    if error > 0:
        return gap / error
    return math.copysign(math.inf, gap) if gap else 0.0


def upper_tail(z: float) -> float:
    """Return the probability of a standard normal number above z."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def normal_cdf(z: float) -> float:
    """Return the probability of a standard normal number up to z."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def clamp_pvalue(pvalue: float) -> float:
    """Return a p-value of a formula that is not below what can be told from 0."""
    return max(pvalue, LEAST)


def t_upper_tail(t: float, df: float) -> float:
    """Return the probability of Student's t above a value; the normal law has infinite df."""
    return _native.t_upper_tail(t, df)


def t_quantile(tail: float, df: float) -> float:
    """Return what Student's t exceeds with a probability."""
    return _native.t_tail_quantile(tail, df)


def chi_square_tail(value: float, df: int) -> float:
    """Return the probability of a chi-square number above a value."""
    from scipy import special

    return float(special.chdtrc(df, value))


def normal_of_tail(tail: float) -> float:
    """Return what a standard normal number exceeds with a probability."""
    return -_native.normal_quantile(tail)


def normal_of_level(level: float) -> float:
    """Return how many standard errors a two-sided normal interval of a level reaches.

    At least 0, and finite: 1 - level can be half of what is told from 1, or, of several intervals
    together, nothing.
    """
    place = 0.5 + level / 2
    if place < 1:
        return max(_native.normal_quantile(place), 0.0)
    return normal_of_tail(max((1 - level) / 2, LEAST))
