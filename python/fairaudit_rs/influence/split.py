"""Split rows into disjoint parts at random: one to fit on, another to measure on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def deal_at_random(count: Counts, shares: Sequence[float], seed: int, series: int = 0) -> Counts:
    """Deal rows into parts at random; return their counts by distinct row and part.

    The distinct rows are sorted, so the parts do not depend on the order of the rows.
    """
    n = int(count.sum())
    ends = np.round(np.cumsum(shares) * n).astype(np.int64)
    stream = np.random.Generator(np.random.Philox(key=np.array([seed, series], dtype=np.uint64)))
    part = np.searchsorted(ends, np.arange(n), side="right")[stream.permutation(n)]
    distinct_of_row = np.repeat(np.arange(len(count)), count)
    flat = np.bincount(distinct_of_row * len(ends) + part, minlength=len(count) * len(ends))
    return flat.reshape(len(count), len(ends)).astype(np.int64)
