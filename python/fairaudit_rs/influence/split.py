"""Rows in disjoint parts: what is fitted on one is measured on another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


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
