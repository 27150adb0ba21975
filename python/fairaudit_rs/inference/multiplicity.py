"""Adjust p-values for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import PlainAdjustment


def adjust_pvalues(
    pvalues: Sequence[float], method: PlainAdjustment = "holm"
) -> NDArray[np.float64]:
    """Adjust p-values so that many tests together keep their error rate.

    Parameters
    ----------
    pvalues : sequence of float
        Valid p-values, in any order. NaN (not measurable) remains NaN and does not count as a test.
    method : {"holm", "bh", "none"}
        ``"holm"`` keeps the family-wise error rate under any dependence (Holm, 1979);
        ``"bh"`` keeps the false discovery rate under independence or positive dependence
        (Benjamini and Hochberg, 1995).

    Returns
    -------
    ndarray
        Adjusted p-values in the order of the input.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> fa.adjust_pvalues([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    method = arguments.choice("method", method, get_args(PlainAdjustment))
    try:
        p = np.asarray(pvalues, dtype=np.float64)
    except Exception as error:  # the __array__ method of the argument may raise any exception
        raise ArgumentTypeError(
            f"pvalues is a {type(pvalues).__name__} ({error}); accepted: a sequence of numbers "
            "from 0 to 1, or NaN",
            argument="pvalues",
        ) from None
    if p.ndim != 1:
        raise ArgumentError(f"pvalues has {p.ndim} dimensions; accepted: one", argument="pvalues")
    measured = ~np.isnan(p)
    if np.any((p[measured] < 0) | (p[measured] > 1)):
        bad = p[measured][(p[measured] < 0) | (p[measured] > 1)][0]
        raise ArgumentError(
            f"pvalues contains {bad}; accepted: numbers from 0 to 1, or NaN", argument="pvalues"
        )
    adjusted = p.copy()
    if method == "none" or not measured.any():
        return adjusted
    values = p[measured]
    tests = len(values)
    order = np.argsort(values, kind="stable")
    ranks = np.arange(tests)
    if method == "holm":
        steps = np.maximum.accumulate((tests - ranks) * values[order])
    else:
        steps = np.minimum.accumulate((tests / (ranks + 1.0) * values[order])[::-1])[::-1]
    result = np.empty(tests)
    result[order] = np.minimum(steps, 1.0)
    adjusted[measured] = result
    return adjusted
