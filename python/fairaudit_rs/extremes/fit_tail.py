"""Holds `fit_tail`, which checks its arguments and fits the upper tail of some numbers."""

from __future__ import annotations

from typing import Any, get_args

from .. import _native, arguments
from ..errors import ArgumentError, DataError, NotMeasurableError
from ..literals import Auto, TailMethod
from .gev import GevFit, block_maxima, fit_gev
from .problem import FEWEST_EXCEEDANCES, FEWEST_ROWS, TailProblem
from .tail import TailFit, check_horizon, make_tail_fit

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
    r"""Fit the upper tail of some numbers, to estimate the level that one row in m exceeds.

    Parameters
    ----------
    values : array
        One finite number for each row, at least 100.
    n_exceedances : int or "auto"
        How many of the largest values are fitted. ``"auto"`` depends on the number of rows only:
        :math:`n^{2/3} / \log\log n`, at least 15. If the number is chosen by looking at fits, or by
        a rule that does, intervals do not have their nominal coverage (84 to 99 % for 95 %).
    threshold : float, optional
        The threshold itself, in place of a number of exceedances. Intervals treat it as the nearest
        order statistic.
    method : {"gpd", "point_process", "gev"}
        ``"gpd"``: a generalised Pareto law of the excesses over the threshold. ``"point_process"``:
        the same fit, with the parameters of the largest of ``block_size`` rows. ``"gev"``: a
        generalised extreme value law of block maxima; its intervals are descriptive.
    upper : float, optional
        A known upper end of the values, such as 1 for probabilities: then
        :math:`t = -\log(1 - c / \mathrm{upper})` is fitted.
    resolution : float, "auto" or None
        The step of the grid on which values lie. ``"auto"`` looks for a grid if more than a tenth
        of the exceedances are tied, and then fits its cells. None treats all values as continuous.
    blocks : array, optional
        For ``method="gev"``: the block of each row.
    block_size : int, optional
        For ``"gev"``: the number of consecutive rows in a block. For ``"point_process"``: the
        number of rows whose maximum the parameters describe.
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
    For large n, the excesses of the k largest values over the (k+1)-th, u, follow a generalised
    Pareto law for almost every law of the values [1]_. It is fitted by the profile likelihood with
    a shape of at least -1. The level that one row in m exceeds is
    :math:`x_m = u + \sigma ((m k / n)^\xi - 1) / \xi`.

    An interval of :math:`x_m` consists of the levels whose signed root of the likelihood ratio is
    within *calibrated* cuts: the root's null law depends on the shape, k, n and m only, so its
    quantiles were simulated once and are shipped. With chi-square cuts such intervals would cover
    80 to 94 % instead of 95 %.

    If n is at least 3.69 m (at 95 %), order statistics limit the level for every law: it is
    *measured*. For larger m it is *extrapolated*, which is right if the tail goes on as it began.
    Two populations in the tail cannot be detected; intervals then cover 54 to 99 %. Beyond 5 n a
    horizon is refused. ``lower_free`` is valid for every law and every horizon; for a claim "at
    least" use the smaller of the two lower limits.

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
                    f"{name} does not apply to method='gev'. Remove it, or choose another method.",
                    argument=name,
                    mentions=("method",),
                    code="conflicting-arguments",
                )
        for name, value in (("resolution", resolution), ("n_exceedances", n_exceedances)):
            if not (isinstance(value, str) and value == "auto"):
                raise ArgumentError(
                    f"{name} does not apply to method='gev'. Remove it, or choose another method.",
                    argument=name,
                    mentions=("method",),
                    code="conflicting-arguments",
                )
        maxima = block_maxima(numbers, blocks=blocks, block_size=block_size)
        return fit_gev(maxima, confidence_level=level, call=_native.Call(n_threads))
    if blocks is not None:
        raise ArgumentError(
            f"blocks applies to method='gev' only, but method is {method!r}. Remove blocks, or "
            "pass method='gev'.",
            argument="blocks",
            mentions=("method",),
            code="conflicting-arguments",
        )
    size = None
    if method == "point_process":
        size = check_horizon("block_size", 1_000 if block_size is None else block_size)
    elif block_size is not None:
        raise ArgumentError(
            "block_size applies to method='gev' or 'point_process' only, but method is 'gpd'. "
            "Remove block_size, or choose one of these methods.",
            argument="block_size",
            mentions=("method",),
            code="conflicting-arguments",
        )
    if len(numbers) < FEWEST_ROWS:
        raise NotMeasurableError(
            f"values has {len(numbers)} rows; a tail needs at least {FEWEST_ROWS}",
            argument="values",
        )
    if numbers.max() == numbers.min():
        raise NotMeasurableError(
            f"all {len(numbers):,} values are {numbers[0]:g}: there is no tail to fit",
            argument="values",
        )
    if upper is not None and numbers.max() > upper:
        raise DataError(
            f"values has {numbers.max():g}, above upper, {upper:g}. Pass an upper= that no value "
            "exceeds, or upper=None.",
            argument="values",
            mentions=("upper",),
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
            f"threshold is {threshold:g}, which all values exceed. Pass a threshold within the "
            "values.",
            argument="threshold",
        )
    if problem.resolution is not None and problem.resolution > numbers.max() - numbers.min():
        raise ArgumentError(
            f"resolution is {problem.resolution:g}, but the values span only "
            f"{numbers.max() - numbers.min():g}. Pass a smaller step.",
            argument="resolution",
        )
    return make_tail_fit(problem, method=method, block_size=size)


def exceedances_of(value: object, n: int, threshold: float | None = None) -> int | None:
    """Return how many of the largest values are fitted; None if the number of rows decides."""
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
            "n_exceedances and threshold both set where the tail begins. Pass only one of them.",
            argument="n_exceedances",
            mentions=("threshold",),
            code="conflicting-arguments",
        )
    most = min(max(n - 1, FEWEST_EXCEEDANCES), _MOST_EXCEEDANCES)
    return arguments.count("n_exceedances", value, FEWEST_EXCEEDANCES, most)


def resolution_of(value: object) -> float | None:
    """Return the step of a grid; None if it is not given ("auto" or None)."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return None
    if isinstance(value, str):
        raise ArgumentError(
            f"resolution is {value!r}; accepted: 'auto', None, or a number above 0",
            argument="resolution",
        )
    return arguments.positive("resolution", value)
