"""Checks whether a generalised Pareto law fits a tail: variation, goodness of fit, thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native, arguments
from ..errors import NotMeasurableError
from ..inference.pvalues import monte_carlo_pvalue
from ..report.words import number, p_text

Floats = NDArray[np.float64]

#: The smallest and the largest k with a critical value.
SMALLEST_K, LARGEST_K = 10, 499
#: The default largest k, as in the paper.
USUAL_LARGEST_K = 50
#: Normal quantile of the paper's bound.
_PAPER_QUANTILE = 1.96


def _array(numbers: Floats) -> Floats:
    """Return numbers as a contiguous array for the native module."""
    return np.ascontiguousarray(numbers, dtype=np.float64)


def _check_exceedances(ks: Sequence[int], n: int) -> list[int]:
    """Check that n values have these numbers of exceedances."""
    return [arguments.count("ks", k, 2, n - 1) for k in ks]


@dataclass(frozen=True, eq=False, kw_only=True)
class CvTest:
    """A test for a tail heavier than exponential, by the coefficient of variation.

    Lighter tails pass, so passing does not show that a tail is exponential. Each k is tested at
    the level; together the tests reject more often.

    Attributes
    ----------
    ks : numpy.ndarray
        Numbers of exceedances.
    values : numpy.ndarray
        sd / mean for each k; NaN where all values are tied.
    critical : numpy.ndarray
        The critical values: at or above them, a tail is heavier than exponential.
    level : float
        The level of the critical values; NaN for the paper's bound.
    method : str
        ``"residual"``: the coefficients of the excesses over the (k+1)-th largest value.
        ``"paper"``: those of the k largest values themselves, for which almost every tail passes.
    """

    ks: NDArray[np.int64]
    values: Floats
    critical: Floats
    level: float
    method: str

    @property
    def n_above(self) -> int:
        """Number of k for which the coefficient reaches the critical value."""
        return int((self.values >= self.critical).sum())

    @property
    def passes(self) -> bool | None:
        """Return whether all coefficients stay below; None where one is not measurable."""
        if self.n_above:
            return False
        return None if np.isnan(self.values).any() else True

    def summary(self) -> str:
        """Return the result in a sentence."""
        span = f"k = {self.ks[0]} to {self.ks[-1]}"
        if self.passes is None:
            n_tied = int(np.isnan(self.values).sum())
            return f"Not measurable for {n_tied} of {span}: all values are tied."
        if self.passes:
            return f"Not shown to be heavier than an exponential tail ({span})."
        worst = int(np.nanargmax(self.values - self.critical))
        return (
            f"Heavier than an exponential tail for {self.n_above} of {span}; most clearly at k = "
            f"{self.ks[worst]}: {number(self.values[worst])} against "
            f"{number(self.critical[worst])}."
        )


def cv_test(
    values: Any,
    *,
    first: int = SMALLEST_K,
    last: int | None = None,
    level: float = 0.95,
    compat: str | None = None,
    call: _native.Call | None = None,
) -> CvTest:
    r"""Test whether a tail is heavier than an exponential one.

    Parameters
    ----------
    values : array_like
        One finite number per row.
    first, last : int
        The range of k, within 10 to 499; by default up to 50 or the largest that the rows allow.
    level : {0.9, 0.95, 0.99}
        Probability that an exponential tail passes at one k.
    compat : {None, "paper"}
        ``"paper"``: compare the k largest values themselves with :math:`1 + 1.96 / \sqrt k`.
    call : Call, optional
        How native functions are run.

    Returns
    -------
    CvTest
        With a coefficient and a critical value for each k.

    Notes
    -----
    The excesses of an exponential tail over its (k+1)-th largest value are k independent
    exponential numbers, so the law of sd / mean (denominator k - 1) depends on k only; its critical
    values were simulated once. The k largest values themselves are close together and far from 0,
    so their coefficient is below 1 for almost every tail.

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs.extremes.diagnostics import cv_test
    >>> rows = np.random.default_rng(0).random(2_000)
    >>> cv_test(rows).passes
    True
    >>> cv_test(1 / rows).passes
    False
    """
    numbers = arguments.finite_array("values", values, 1)
    paper = arguments.check(compat=compat).compat == "paper"
    largest = min(LARGEST_K, len(numbers) - 1)
    if largest < SMALLEST_K:
        raise NotMeasurableError(
            f"values has {len(numbers)} rows; the coefficient of variation needs at least "
            f"{SMALLEST_K + 1}",
            argument="values",
        )
    first = arguments.count("first", first, SMALLEST_K, largest)
    last = max(first, min(USUAL_LARGEST_K, largest)) if last is None else last
    last = arguments.count("last", last, first, largest)
    ks = np.arange(first, last + 1)
    level = arguments.level("level", level)
    variations = _native.tail_variations(numbers, ks.tolist(), not paper, call or _native.Call())
    if paper:
        level, critical, method = math.nan, 1 + _PAPER_QUANTILE / np.sqrt(ks), "paper"
    else:
        start, table = _native.critical_variations(level)
        critical, method = table[first - start : last - start + 1], "residual"
    return CvTest(ks=ks, values=variations, critical=critical, level=level, method=method)


@dataclass(frozen=True, kw_only=True)
class GoodnessOfFit:
    """The Anderson-Darling test of a generalised Pareto fit.

    Attributes
    ----------
    n_exceedances : int
        Number of excesses.
    shape, scale : float
        The fit.
    statistic : float
        A^2, NaN where it is not measurable.
    pvalue : float
        By a parametric bootstrap that refits each replicate, excluding replicates at the edge; NaN
        where it is not measurable.
    n_resamples : int
        Number of replicates.
    n_at_edge : int
        Number of excluded replicates: their fit has the shape -1, where A^2 is infinite.
    reason : str
        Why it is not measurable; "" where it is.
    """

    n_exceedances: int
    shape: float
    scale: float
    statistic: float
    pvalue: float
    n_resamples: int
    n_at_edge: int
    reason: str

    def summary(self) -> str:
        """Return the result in a sentence."""
        if self.reason:
            return f"Goodness of fit is not measurable: {self.reason}."
        edge = (
            f"; {self.n_at_edge:,} of {self.n_resamples:,} replicates are at the edge and excluded"
            if self.n_at_edge
            else ""
        )
        return (
            f"Anderson-Darling test of {self.n_exceedances:,} excesses: A^2 = "
            f"{number(self.statistic)}, {p_text(self.pvalue)}{edge}."
        )


_AT_EDGE = "the fit is at the edge, shape -1, where the statistic is infinite"
_TIED = "excesses are tied with the threshold"


def goodness_of_fit(
    excesses: Floats, draws: _native.Draws, call: _native.Call | None = None
) -> GoodnessOfFit:
    r"""Test whether excesses over a threshold follow a generalised Pareto law.

    Parameters
    ----------
    excesses : numpy.ndarray
        Above 0, at least two.
    draws : Draws
        Replicates, seed and series of the bootstrap.
    call : Call, optional
        How native functions are run.

    Returns
    -------
    GoodnessOfFit
        The test; not measurable where the fit is at the edge.

    Notes
    -----
    :math:`A^2 = -k - \frac1k \sum_i (2i - 1) [\log F(y_{(i)}) + \log S(y_{(k+1-i)})]` of the fit.
    Its law depends on the shape, so samples of the fitted law are drawn and *fitted again*:
    :math:`p = (1 + \#\{A^{2*} \ge A^2\}) / (1 + B)`. At the edge, shape -1, :math:`A^2` is
    infinite: a sample there cannot be tested, and B counts only the replicates that are not there.
    At 5 % and k = 34 the test rejects 4.0 to 4.4 % for shapes of -0.5 to 0.3 (4,000 simulations).
    If replicates at the edge counted as extreme, it would reject 0.3 % at a shape of -0.5, and
    1.8 % at -0.2.

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs import _native
    >>> from fairaudit_rs.extremes.diagnostics import goodness_of_fit
    >>> rng, draws = np.random.default_rng(0), _native.Draws(999, seed=1)
    >>> goodness_of_fit(rng.standard_exponential(78), draws).pvalue > 0.05
    True
    >>> heaped = np.concatenate([rng.standard_exponential(78), 1 + 0.01 * rng.random(60)])
    >>> goodness_of_fit(heaped, draws).pvalue
    0.001
    """
    outcome = _native.tail_goodness(_array(excesses), draws, call or _native.Call())
    return _goodness(len(excesses), outcome, draws.n)


def _goodness(
    k: int, found: tuple[float, float, bool, float, int, int] | None, n: int
) -> GoodnessOfFit:
    nothing = (math.nan, math.nan, True, math.nan, 0, 0)
    shape, scale, at_edge, statistic, n_extreme, n_at_edge = nothing if found is None else found
    reason = _TIED if found is None else _AT_EDGE if at_edge else ""
    return GoodnessOfFit(
        n_exceedances=k,
        shape=shape,
        scale=scale,
        statistic=math.nan if reason else statistic,
        pvalue=math.nan if reason else monte_carlo_pvalue(n_extreme - n_at_edge, n - n_at_edge),
        n_resamples=n,
        n_at_edge=n_at_edge,
        reason=reason,
    )


@dataclass(frozen=True, kw_only=True)
class ThresholdSequence:
    """Anderson-Darling tests over thresholds from low to high, for description only.

    Intervals above a threshold that was chosen this way do not have their nominal coverage (84 to
    99 % for 95 %), so no other number of an audit uses it.

    Attributes
    ----------
    tests : tuple of GoodnessOfFit
        From the lowest threshold, which has most exceedances, to the highest.
    rate : float
        False discovery rate of ForwardStop.
    n_rejected : int
        Number of measurable tests that are rejected, from the lowest threshold on.
    n_exceedances : int or None
        The first k that is not rejected; None if all are rejected or not measurable.
    """

    tests: tuple[GoodnessOfFit, ...]
    rate: float
    n_rejected: int
    n_exceedances: int | None


def threshold_sequence(
    values: Floats,
    ks: Sequence[int],
    draws: _native.Draws,
    *,
    rate: float = 0.05,
    call: _native.Call | None = None,
) -> ThresholdSequence:
    """Test the fit over many thresholds and apply the ForwardStop rule.

    Parameters
    ----------
    values : numpy.ndarray
        Finite, on the scale of the fit.
    ks : sequence of int
        Numbers of exceedances, in any order.
    draws : Draws
        Replicates of each test; each k has its own random numbers.
    rate : float, default 0.05
        The false discovery rate.
    call : Call, optional
        How native functions are run.

    Returns
    -------
    ThresholdSequence
        For description only.

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs import _native
    >>> from fairaudit_rs.extremes.diagnostics import threshold_sequence
    >>> rows = np.random.default_rng(0).standard_normal(1_000)
    >>> found = threshold_sequence(rows, range(30, 121, 10), _native.Draws(199, seed=1))
    >>> found.tests[0].n_exceedances, found.n_exceedances
    (120, 120)
    """
    rate = arguments.level("rate", rate)
    numbers = _array(values)
    order = sorted(set(_check_exceedances(ks, len(numbers))), reverse=True)
    outcomes = _native.tail_goodness_by_threshold(numbers, order, draws, call or _native.Call())
    tests = tuple(_goodness(k, row, draws.n) for k, row in zip(order, outcomes, strict=True))
    measurable = [test for test in tests if not test.reason]
    n_rejected = _native.forward_stop([test.pvalue for test in measurable], rate)
    not_rejected = measurable[n_rejected:]
    return ThresholdSequence(
        tests=tests,
        rate=rate,
        n_rejected=n_rejected,
        n_exceedances=not_rejected[0].n_exceedances if not_rejected else None,
    )


@dataclass(frozen=True)
class QuantileRow:
    """An excess against the quantile of the fit, with the band for this excess alone."""

    observed: float
    fitted: float
    low: float
    high: float


def quantile_rows(
    excesses: Floats,
    shape: float,
    scale: float,
    *,
    confidence_level: float = 0.95,
    call: _native.Call | None = None,
) -> tuple[QuantileRow, ...]:
    """Return the excesses with the quantiles of a Pareto law, in ascending order.

    The i-th smallest of k excesses is compared with the quantile at i / (k + 1). The band maps
    quantiles of Beta(i, k + 1 - i) to the law; it takes the law as known and is pointwise.

    Parameters
    ----------
    excesses : numpy.ndarray
        Above 0.
    shape, scale : float
        Parameters of the law.
    confidence_level : float, default 0.95
        Level of the band.
    call : Call, optional
        How native functions are run.

    Returns
    -------
    tuple of QuantileRow
        One for each excess.

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs.extremes.diagnostics import quantile_rows
    >>> rows = quantile_rows(np.array([0.4, 1.0, 2.3]), 0.0, 1.0)
    >>> [round(row.fitted, 3) for row in rows]
    [0.288, 0.693, 1.386]
    """
    level = arguments.check(confidence_level=confidence_level).confidence_level
    rows = _native.tail_quantiles(_array(excesses), shape, scale, level, call or _native.Call())
    return tuple(QuantileRow(*row) for row in rows.tolist())


@dataclass(frozen=True, kw_only=True)
class StabilityRow:
    """The fit over one of many thresholds; NaN where excesses are tied with it."""

    n_exceedances: int
    threshold: float
    shape: float
    scale: float
    #: The return level.
    level: float


def stability_rows(
    values: Floats, ks: Sequence[int], m: float, call: _native.Call | None = None
) -> tuple[StabilityRow, ...]:
    """Return the fits above the (k+1)-th largest value for many k, with the return levels for m.

    Parameters
    ----------
    values : numpy.ndarray
        Finite, on the scale of the fit.
    ks : sequence of int
        Numbers of exceedances.
    m : float
        The horizon in rows.
    call : Call, optional
        How native functions are run.

    Returns
    -------
    tuple of StabilityRow
        In the order of `ks`; thresholds and levels are on the scale of the values.

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs.extremes.diagnostics import stability_rows
    >>> rows = np.random.default_rng(0).standard_exponential(2_000)
    >>> [round(row.level, 1) for row in stability_rows(rows, [40, 80, 160], 1_000)]
    [7.3, 7.3, 7.4]
    """
    numbers = _array(values)
    ks = _check_exceedances(ks, len(numbers))
    fits = _native.tail_stability(numbers, ks, float(m), call or _native.Call())
    return tuple(
        StabilityRow(n_exceedances=int(k), threshold=u, shape=shape, scale=scale, level=level)
        for k, u, shape, scale, level in fits.tolist()
    )


def zhang_stephens(excesses: Floats, call: _native.Call | None = None) -> tuple[float, float]:
    """Estimate shape and scale by Zhang and Stephens (2009), which has no edge at shape -1.

    Parameters
    ----------
    excesses : numpy.ndarray
        Above 0, at least two.
    call : Call, optional
        How native functions are run.

    Returns
    -------
    tuple of float
        The shape and the scale.

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs.extremes.diagnostics import zhang_stephens
    >>> shape, scale = zhang_stephens(np.random.default_rng(0).standard_exponential(1_000))
    >>> abs(shape) < 0.1
    True
    """
    return _native.zhang_stephens(_array(excesses), call or _native.Call())
