"""Rows in disjoint parts: what is fitted on one is measured on another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError

Counts = NDArray[np.int64]


def check_parts(parts: object, names: Sequence[str]) -> tuple[float, ...]:
    """Return shares of the rows that add up to 1, one for each name."""
    what = f"{len(names)} shares that add up to 1 ({', '.join(names)})"
    if isinstance(parts, str) or not isinstance(parts, Sequence) or len(parts) != len(names):
        raise ArgumentTypeError(f"parts is {parts!r}; accepted: {what}")
    shares = tuple(arguments.finite_number("parts", share) for share in parts)
    if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise ArgumentError(f"parts is {parts!r}; accepted: {what}, none of them 0")
    return shares


def deal_at_random(count: Counts, shares: Sequence[float], seed: int, series: int = 0) -> Counts:
    """Deal the rows of kinds into parts at random; return their numbers by kind and part.

    The kinds have an order of their own, so that the parts do not depend on that of the rows.
    """
    n = int(count.sum())
    ends = np.round(np.cumsum(shares) * n).astype(np.int64)
    stream = np.random.Generator(np.random.Philox(key=np.array([seed, series], dtype=np.uint64)))
    part = np.searchsorted(ends, np.arange(n), side="right")[stream.permutation(n)]
    kind = np.repeat(np.arange(len(count)), count)
    flat = np.bincount(kind * len(ends) + part, minlength=len(count) * len(ends))
    return flat.reshape(len(count), len(ends)).astype(np.int64)
