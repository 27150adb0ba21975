"""`fit_tail`: the tail of some numbers."""

from __future__ import annotations

from typing import Any, get_args

from .. import _native, arguments
from ..errors import ArgumentError, DataError, NotMeasurableError
from ..literals import Auto, TailMethod
from .gev import GevFit, block_maxima, fit_gev
from .problem import FEWEST_EXCEEDANCES, FEWEST_ROWS, TailProblem
from .tail import TailFit, horizon_of, tail_of

_MOST_EXCEEDANCES = 100_000


def fit_tail(
    values: Any,
    *,
    n_exceedances: int | Auto = "auto",
    threshold: float | None = None,
    method: TailMethod = "gpd",
    upper: float | None = None,
    resolution: float | Auto | None = "auto",
    blocks: Any = None,
    block_size: int | None = None,
    confidence_level: float = 0.95,
    n_threads: int | None = None,
) -> TailFit | GevFit:
    r"""Fit the upper tail of some numbers: what one row in m exceeds.

    Parameters
    ----------
    values : array
        One finite number for each row, at least 100.
    n_exceedances : int or "auto"
        How many of the largest values are fitted: fixed by the number of rows, before they are
        looked at, as :math:`n^{2/3} / \log\log n`, at least 15. A number chosen by looking at fits,
        or by a rule that does, makes intervals that do not hold (84 to 99 % for 95 %).
    threshold : float, optional
        In place of a number of exceedances. Intervals take it as the order statistic that it is
        next to.
    method : {"gpd", "point_process", "gev"}
        ``"gpd"``: the generalised Pareto law of what exceeds the threshold. ``"point_process"``:
        the same fit, its parameters those of the largest of ``block_size`` rows. ``"gev"``: the
        generalised extreme value law fitted to the maxima of blocks; its intervals are descriptive.
    upper : float, optional
        A known end of the values, such as 1 for probabilities: the fit is then of
        :math:`t = -\log(1 - c / \mathrm{upper})`.
    resolution : float, "auto" or None
        The step of the grid on which values lie. ``"auto"`` looks for one where more than a tenth
        of the exceedances are tied; then cells are fitted. None: each value counts by itself.
    blocks : array, optional
        For ``method="gev"``: the block of each row.
    block_size : int, optional
        For ``"gev"``: rows of a block, in their order. For ``"point_process"``: of how many rows
        the largest one is meant.
    confidence_level : float
        Level of the intervals.
    n_threads : int, optional
        None or -1 takes all cores that the process may use. The result does not depend on it.

    Returns
    -------
    TailFit
        With ``return_level(m)``, ``lower_free(m)``, ``return_levels``, ``goodness_of_fit`` and
        ``plot(kind)``; `GevFit` for ``method="gev"``.

    Notes
    -----
    The k largest values exceed the (k+1)-th, u, by excesses that follow, for large n, a generalised
    Pareto law, whatever the law of the values [1]_. It is fitted by the profile likelihood with a
    shape of at least -1. What one row in m exceeds is
    :math:`x_m = u + \sigma ((m k / n)^\xi - 1) / \xi`.

    An interval of :math:`x_m` holds the levels whose signed root of the likelihood ratio is within
    *calibrated* cuts: the root's null law depends on the shape, k, n and m only, so its quantiles
    were simulated once and are shipped. With the cuts of chi-square such intervals hold 80 to 94 %
    where they should hold 95. Where n is at least 3.69 m (at 95 %) order statistics limit the level
    whatever the law, and stand first: the level is *measured*. Below it is *extrapolated*, right
    where the tail goes on as it began; two populations in the tail cannot be seen, and intervals
    then hold 54 to 99 %. Beyond 5 n a horizon is refused. ``lower_free`` holds for every law and
    every horizon; a claim "at least" takes the smaller of the two lower limits.

    References
    ----------
    .. [1] Pickands, J. (1975). Statistical inference using extreme order statistics. Annals of
       Statistics 3, 119-131.

    Examples
    --------
    >>> import numpy as np, fairaudit_rs as fa
    >>> values = np.random.default_rng(0).beta(2, 4, size=2_000)
    >>> tail = fa.fit_tail(values, upper=1.0)
    >>> tail.n_exceedances
    78
    >>> tail.level(100).standing, tail.level(1_000).standing, tail.level(20_000).standing
    ('measured', 'extrapolated', 'refused')
    """
    numbers = arguments.finite_array("values", values, 1)
    method = arguments.choice("method", method, get_args(TailMethod))
    upper = None if upper is None else arguments.positive("upper", upper)
    checked = arguments.check(confidence_level=confidence_level, n_threads=n_threads)
    level, n_threads = checked.confidence_level, checked.n_threads
    if threshold is not None:
        threshold = arguments.check(threshold=threshold).threshold
    if method == "gev":
        for name, given in (("threshold", threshold), ("upper", upper)):
            if given is not None:
                raise ArgumentError(
                    f"{name} does not go with method='gev'; accepted: None",
                    argument=name,
                    mentions=("method",),
                )
        for name, value in (("resolution", resolution), ("n_exceedances", n_exceedances)):
            if not (isinstance(value, str) and value == "auto"):
                raise ArgumentError(
                    f"{name} does not go with method='gev'; accepted: 'auto'",
                    argument=name,
                    mentions=("method",),
                )
        maxima = block_maxima(numbers, blocks=blocks, block_size=block_size)
        return fit_gev(maxima, confidence_level=level, call=_native.Call(n_threads))
    if blocks is not None:
        raise ArgumentError(
            f"blocks goes with method='gev'; method is {method!r}",
            argument="blocks",
            mentions=("method",),
        )
    size = None
    if method == "point_process":
        size = horizon_of("block_size", 1_000 if block_size is None else block_size)
    elif block_size is not None:
        raise ArgumentError(
            "block_size goes with method='gev' or 'point_process'; method is 'gpd'",
            argument="block_size",
            mentions=("method",),
        )
    if len(numbers) < FEWEST_ROWS:
        raise NotMeasurableError(
            f"values has {len(numbers)} rows; a tail needs at least {FEWEST_ROWS}",
            argument="values",
        )
    if numbers.max() == numbers.min():
        raise NotMeasurableError(
            f"all {len(numbers):,} values are {numbers[0]:g}: there is no tail to fit"
        )
    if upper is not None and numbers.max() > upper:
        raise DataError(
            f"values has {numbers.max():g}, above upper, {upper:g}; accepted: an end that no value "
            "exceeds, or None",
            argument="values",
        )
    problem = TailProblem(
        values=numbers,
        upper=upper,
        n_exceedances=exceedances_of(n_exceedances, len(numbers), threshold),
        threshold=threshold,
        resolution=resolution_of(resolution),
        ties=resolution is not None,
        confidence=level,
        n_threads=n_threads,
    )
    if threshold is not None and problem.k < FEWEST_EXCEEDANCES:
        raise NotMeasurableError(
            f"threshold is {threshold:g}, and {problem.k} rows exceed it; a fit needs at least "
            f"{FEWEST_EXCEEDANCES}",
            argument="threshold",
        )
    if problem.k >= len(numbers):
        raise ArgumentError(
            f"threshold is {threshold:g}, which all values exceed", argument="threshold"
        )
    if problem.resolution is not None and problem.resolution > numbers.max() - numbers.min():
        raise ArgumentError(
            f"resolution is {problem.resolution:g}, and all values lie within "
            f"{numbers.max() - numbers.min():g}; accepted: a smaller step",
            argument="resolution",
        )
    return tail_of(problem, method=method, block_size=size)


def exceedances_of(value: object, n: int, threshold: float | None = None) -> int | None:
    """Return how many of the largest values are fitted; None: fixed by the number of rows."""
    if isinstance(value, str):
        if value != "auto":
            raise ArgumentError(
                f"n_exceedances is {value!r}; accepted: 'auto', or a whole number from "
                f"{FEWEST_EXCEEDANCES}",
                argument="n_exceedances",
            )
        return None
    if threshold is not None:
        raise ArgumentError(
            "n_exceedances and threshold are two ways to say one thing; pass one",
            argument="n_exceedances",
            code="conflicting-arguments",
        )
    most = min(max(n - 1, FEWEST_EXCEEDANCES), _MOST_EXCEEDANCES)
    return arguments.count("n_exceedances", value, FEWEST_EXCEEDANCES, most)


def resolution_of(value: object) -> float | None:
    """Return the step of a grid; None where it is to be looked for, or not wanted."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return None
    if isinstance(value, str):
        raise ArgumentError(
            f"resolution is {value!r}; accepted: 'auto', None, or a number above 0",
            argument="resolution",
        )
    return arguments.positive("resolution", value)
