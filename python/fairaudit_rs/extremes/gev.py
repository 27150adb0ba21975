"""Fits the generalised extreme value law to block maxima, and relates it to a Pareto law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native, arguments
from ..errors import ArgumentError, ArgumentTypeError, NotMeasurableError
from ..report.notes import Note
from ..report.words import number
from ..results.result import Result

Floats = NDArray[np.float64]

#: Fewest blocks for a fit of three parameters.
FEWEST_BLOCKS = 10
#: Fewest distinct maxima for such a fit.
FEWEST_DISTINCT = 5
#: The largest of labelled blocks may have this many times the rows of the smallest.
UNEVEN = 2
#: Above this shape the observed information gives standard errors.
_REGULAR_SHAPE = -0.5
_LARGEST_BLOCK = 10**9

_ENDS = {
    "lowest shape": Note(
        "block-fit-at-lowest-shape",
        "the shape is -1, the edge of what is fitted: the law ends at the largest maximum",
    ),
    "highest shape": Note(
        "block-fit-at-highest-shape", "the shape is 3, the largest that is fitted"
    ),
    "not converged": Note(
        "block-fit-not-converged",
        "the likelihood is too flat or too steep: the search did not come to a top",
    ),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockMaxima:
    """The largest value of each block of rows.

    Attributes
    ----------
    maxima : numpy.ndarray
        One number for each block.
    block_size : float
        Rows of a block, the mean where blocks were labelled.
    notes : tuple of Note
        Notes on excluded rows and on blocks of unequal sizes.
    """

    maxima: Floats
    block_size: float
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.maxima)
        if n < FEWEST_BLOCKS:
            blocks = "1 block" if n == 1 else f"{n} blocks"
            raise NotMeasurableError(
                f"{blocks} of rows; block maxima need at least {FEWEST_BLOCKS}. Use smaller "
                "blocks, or method='gpd'.",
                argument="values",
                mentions=("method",),
            )
        counts = np.unique(self.maxima, return_counts=True)[1]
        if len(counts) == 1:
            raise NotMeasurableError(
                f"the maxima of all {n} blocks are {self.maxima[0]:g}: there is no tail to fit",
                argument="values",
            )
        if len(counts) < FEWEST_DISTINCT or 2 * counts.max() > n:
            # The likelihood is unbounded: a law may shrink to the most frequent value.
            raise NotMeasurableError(
                f"the maxima of {n} blocks have only {len(counts)} distinct values, and one occurs "
                f"{counts.max()} times. Use larger blocks, or method='gpd'.",
                argument="values",
                mentions=("method",),
            )


def block_maxima(values: Any, *, blocks: Any = None, block_size: int | None = None) -> BlockMaxima:
    """Take the largest value of each block of rows.

    Without labels, the order of the rows decides which rows make a block, and so the maxima. Do not
    use ``block_size`` for rows that are sorted or listed group by group; label the rows that belong
    together (a day, a batch) in ``blocks``.

    Parameters
    ----------
    values : array_like
        One finite number per row.
    blocks : array_like, optional
        A label per row; rows with the same label are a block, at any positions. Blocks must have
        similar sizes: none may be more than twice as large as another.
    block_size : int, optional
        Number of consecutive rows in a block, if the order of the rows has a meaning. An
        incomplete last block is excluded.

    Returns
    -------
    BlockMaxima
        The maxima of at least 10 blocks.

    Examples
    --------
    >>> from fairaudit_rs.extremes.gev import block_maxima
    >>> found = block_maxima([(7 * i) % 23 for i in range(32)], block_size=3)
    >>> found.maxima.astype(int).tolist()
    [14, 21, 19, 17, 22, 20, 18, 16, 21, 19]
    >>> found.notes[0].text
    'the last 2 rows are no whole block and were excluded'
    """
    numbers = arguments.finite_array("values", values, 1)
    if (blocks is None) == (block_size is None):
        problem = "and block_size are both None" if blocks is None else "and block_size are given"
        raise ArgumentTypeError(
            f"blocks {problem}. Pass either blocks (a label per row), or block_size (rows of a "
            "block, if the order of the rows has a meaning).",
            argument="blocks",
            mentions=("block_size",),
            code="missing-argument" if blocks is None else "conflicting-arguments",
        )
    if block_size is not None:
        size = arguments.count("block_size", block_size, 1, _LARGEST_BLOCK)
        left = len(numbers) % size
        rows = "row is" if left == 1 else f"{left} rows are"
        incomplete = Note("incomplete-block", f"the last {rows} no whole block and were excluded")
        maxima = numbers[: len(numbers) - left].reshape(-1, size).max(axis=1)
        return BlockMaxima(
            maxima=maxima, block_size=float(size), notes=(incomplete,) if left else ()
        )
    try:
        labels = np.asarray(blocks)
    except Exception as error:  # objects may raise any error when they become an array
        raise ArgumentTypeError(
            f"blocks cannot become an array ({error}); accepted: a label for each of "
            f"{len(numbers)} rows",
            argument="blocks",
        ) from None
    return _labelled(numbers, labels)


def _labelled(numbers: Floats, labels: NDArray[Any]) -> BlockMaxima:
    if labels.shape != numbers.shape:
        raise ArgumentError(
            f"blocks has shape {labels.shape}; accepted: a label for each of {len(numbers)} rows",
            argument="blocks",
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ArgumentError(
            "blocks has missing labels. Label every row with a number or a text.",
            argument="blocks",
        )
    try:
        _, block, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise ArgumentTypeError(
            f"blocks has labels that cannot be compared ({error}); accepted: numbers, or texts",
            argument="blocks",
        ) from None
    least, most = int(sizes.min()), int(sizes.max())
    if most > UNEVEN * least:
        raise ArgumentError(
            f"blocks has labels of {least:,} to {most:,} rows. Use blocks of similar sizes, none "
            f"with more than {UNEVEN} times the rows of another.",
            argument="blocks",
        )
    maxima = np.full(len(sizes), -np.inf)
    np.maximum.at(maxima, block, numbers)
    size = len(numbers) / len(sizes)
    uneven = Note(
        "uneven-blocks",
        f"blocks have {least:,} to {most:,} rows; return levels take their mean, {size:.1f}",
    )
    return BlockMaxima(maxima=maxima, block_size=size, notes=(uneven,) if least < most else ())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GevFit(Result):
    """A generalised extreme value law fitted to block maxima by maximum likelihood.

    Attributes
    ----------
    location, scale, shape : float
        The law of the largest value of a block. A shape above 0 means a heavy tail, below 0 a
        finite end; ``scipy.stats.genextreme`` has the opposite sign.
    standard_errors : tuple of float
        Of location, scale and shape, from the observed information; NaN where `reason` is given.
    reason : str
        Why there are no standard errors; "" where there are.
    log_likelihood : float
        Log likelihood of the maxima.
    end : str
        How the fit ended: ``"converged"``, ``"lowest shape"`` (at -1), ``"highest shape"`` (at 3)
        or ``"not converged"``.
    slope : float
        The largest derivative of the log likelihood per maximum, in location / scale, log scale
        and shape; NaN at a bound of the shape.
    n_blocks : int
        Number of maxima.
    block_size : float
        Rows of a block.
    confidence_level : float
        Level of the intervals of return levels.
    notes : tuple of Note
        Notes on excluded rows and on how the fit ended.
    """

    location: float
    scale: float
    shape: float
    standard_errors: tuple[float, float, float]
    reason: str
    log_likelihood: float
    end: str
    slope: float
    n_blocks: int
    block_size: float
    confidence_level: float
    notes: tuple[Note, ...]
    maxima: Floats
    call: _native.Call

    _not_in_dict = frozenset({"maxima", "call"})
    _not_compared = frozenset({"call"})

    @property
    def law(self) -> tuple[float, float, float]:
        """Location, scale and shape."""
        return self.location, self.scale, self.shape

    @property
    def endpoint(self) -> float:
        """The upper end of the law; infinite for shapes of 0 or more."""
        return self.location - self.scale / self.shape if self.shape < 0 else math.inf

    def return_level(self, m: float) -> tuple[float, float, float]:
        r"""Return the level that one row in m exceeds, with a profile-likelihood interval.

        Parameters
        ----------
        m : float
            The horizon in rows, above 1.

        Returns
        -------
        tuple of float
            The level and the two limits, on the scale of the values; an upper limit may be
            infinite.

        Notes
        -----
        The level solves :math:`G(x) = (1 - 1/m)^s` for blocks of s rows. Its interval consists of
        the levels at which twice the loss of log likelihood is within the quantile of chi-square
        with one degree of freedom. It is descriptive: with as few values as block maxima, its
        coverage is not the nominal one. Rely on the interval of the Pareto fit, which is
        calibrated.

        Examples
        --------
        >>> import numpy as np
        >>> from fairaudit_rs.extremes.gev import block_maxima, fit_gev
        >>> rows = np.random.default_rng(0).standard_exponential(2_000)
        >>> fit = fit_gev(block_maxima(rows, block_size=40))
        >>> level, low, high = fit.return_level(1_000)
        >>> bool(low < np.log(1_000) < high)
        True
        """
        horizon = arguments.positive("m", m)
        level = _native.gev_return_level(self.law, self.block_size, horizon)
        low, high = _native.gev_return_level_interval(
            self.maxima, self.block_size, horizon, self.confidence_level, self.call
        )
        return level, low, high

    def excesses(self, threshold: float) -> tuple[float, float]:
        """Return the implied law of excesses over a threshold, and how many a block has.

        Parameters
        ----------
        threshold : float
            Within the law: above its lower end, if it has one, and below its upper end.

        Returns
        -------
        tuple of float
            The scale of the generalised Pareto law of excesses, whose shape is that of the fit,
            and how many rows of a block are expected to exceed the threshold.
        """
        threshold = arguments.check(threshold=threshold).threshold
        scale, expected = _native.gev_excesses(self.law, threshold)
        if not scale > 0:
            border = self.location - self.scale / self.shape
            side = "below" if self.shape < 0 else "above"
            raise ArgumentError(
                f"threshold is {threshold:g}; accepted: a number {side} {border:g}, where the law "
                "ends",
                argument="threshold",
            )
        return scale, expected

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        error = self.standard_errors[2]
        within = f" (standard error {number(error)})" if not self.reason else ""
        ends = f", so it ends at {number(self.endpoint)}" if self.shape < 0 else ""
        return (
            f"The maxima of {self.n_blocks} blocks of {self.block_size:g} rows follow an extreme "
            f"value law of shape {number(self.shape)}{within}{ends}; location "
            f"{number(self.location)}, scale {number(self.scale)}."
        )

    def __repr__(self) -> str:
        law = f"location={self.location:.6g}, scale={self.scale:.6g}, shape={self.shape:.6g}"
        return f"GevFit({law}, n_blocks={self.n_blocks})"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns."""
        return ("law",)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per number of the law."""
        names = ("location", "scale", "shape")
        return [
            {"name": name, "estimate": value, "standard_error": error}
            for name, value, error in zip(names, self.law, self.standard_errors, strict=True)
        ]


def fit_gev(
    maxima: BlockMaxima, *, confidence_level: float = 0.95, call: _native.Call | None = None
) -> GevFit:
    """Fit the generalised extreme value law to block maxima by maximum likelihood.

    The shape is restricted to -1 to 3; below -1 the likelihood is unbounded.

    Parameters
    ----------
    maxima : BlockMaxima
        Maxima on the scale of the fit.
    confidence_level : float, default 0.95
        Level of the intervals of return levels.
    call : Call, optional
        How native functions are run.

    Returns
    -------
    GevFit
        With standard errors where the shape is above -0.5.

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs.extremes.gev import block_maxima, fit_gev
    >>> rows = np.random.default_rng(0).standard_exponential(2_000)
    >>> fit = fit_gev(block_maxima(rows, block_size=40))
    >>> fit.end
    'converged'
    >>> abs(fit.shape) < 3 * fit.standard_errors[2]
    True
    """
    call = call or _native.Call()
    level = arguments.check(confidence_level=confidence_level).confidence_level
    largest = np.ascontiguousarray(maxima.maxima, dtype=np.float64)
    law, log_likelihood, slope, covariance, end = _native.gev_fit(largest, call)
    errors, reason = _errors(covariance, law[2], end)
    return GevFit(
        location=law[0],
        scale=law[1],
        shape=law[2],
        standard_errors=errors,
        reason=reason,
        log_likelihood=log_likelihood,
        end=end,
        slope=slope,
        n_blocks=len(largest),
        block_size=maxima.block_size,
        confidence_level=level,
        notes=(*maxima.notes, *([_ENDS[end]] if end in _ENDS else [])),
        maxima=largest,
        call=call,
    )


def _errors(
    covariance: Sequence[float] | None, shape: float, end: str
) -> tuple[tuple[float, float, float], str]:
    """Return standard errors, and why there are none."""
    if covariance is not None:
        location, scale, shape_error = (math.sqrt(covariance[4 * place]) for place in range(3))
        return (location, scale, shape_error), ""
    if end in _ENDS:
        reason = _ENDS[end].text
    elif shape <= _REGULAR_SHAPE:
        reason = "the shape is not above -0.5, where the likelihood is not regular"
    else:
        reason = "the observed information is not positive definite"
    return (math.nan, math.nan, math.nan), reason


def gev_of_excesses(
    threshold: float, scale: float, shape: float, expected: float
) -> tuple[float, float, float]:
    """Return the law of the largest of m rows that follows from a Pareto law of excesses.

    Parameters
    ----------
    threshold, scale, shape : float
        The threshold and the parameters of the generalised Pareto law.
    expected : float
        Expected number of the m rows above the threshold: M = m k / n.

    Returns
    -------
    tuple of float
        Location u + scale (M^shape - 1) / shape, scale scale M^shape, and the shape.

    Examples
    --------
    >>> from fairaudit_rs.extremes.gev import gev_of_excesses
    >>> gev_of_excesses(0.5, 2.0, 0.0, 1.0)
    (0.5, 2.0, 0.0)
    """
    return _native.gev_of_excesses(
        arguments.check(threshold=threshold).threshold,
        arguments.positive("scale", scale),
        arguments.finite("shape", shape),
        arguments.positive("expected", expected),
    )
