"""Intervals and tests of proportions by formula."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .intervals import Interval
from .pvalues import standardized


class Share(NamedTuple):
    """A proportion of so many rows."""

    value: float
    n_rows: float


def newcombe(first: Share, second: Share, z: float) -> Interval:
    """Newcombe's hybrid score interval of a difference of proportions (1998, method 10)."""
    gap = first.value - second.value
    low_1, high_1 = wilson(*first, z)
    low_2, high_2 = wilson(*second, z)
    return (
        max(gap - math.hypot(first.value - low_1, high_2 - second.value), -1.0),
        min(gap + math.hypot(high_1 - first.value, second.value - low_2), 1.0),
    )


def wilson(p: float, n: float, z: float) -> Interval:
    """Return the score interval of a proportion p of n rows."""
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(center - half, 0.0), min(center + half, 1.0)


def farrington_manning(
    x_first: float, n_first: float, x_second: float, n_second: float, margin: float
) -> float:
    """Return the z statistic of p_first - p_second = margin.

    The variance is that of the proportions which are most likely under the hypothesis: the
    middle root of a cubic.
    """
    p, q = x_first / n_first, x_second / n_second
    theta = n_second / n_first
    a = 1 + theta
    b = -(1 + theta + p + theta * q + margin * (theta + 2))
    c = margin**2 + margin * (2 * p + theta + 1) + p + theta * q
    d = -p * margin * (1 + margin)
    v = b**3 / (3 * a) ** 3 - b * c / (6 * a**2) + d / (2 * a)
    u = math.copysign(math.sqrt(max(b**2 / (3 * a) ** 2 - c / (3 * a), 0.0)), v)
    angle = math.acos(min(max(v / u**3, -1.0), 1.0)) if u else math.pi / 2
    first = 2 * u * math.cos((math.pi + angle) / 3) - b / (3 * a)
    first = min(max(first, 0.0, margin), 1.0, 1 + margin)
    second = min(max(first - margin, 0.0), 1.0)
    variance = first * (1 - first) / n_first + second * (1 - second) / n_second
    return standardized(p - q - margin, math.sqrt(variance))


def mantel_haenszel(hits: NDArray[np.float64], rows: NDArray[np.float64]) -> tuple[float, float]:
    """Return the Mantel-Haenszel difference of two groups and its standard error.

    Of proportions, given as hits and rows by stratum and group; strata in which a group has no rows
    take no part. The variance is that of Greenland and Robins (1985).
    """
    rows, hits = (part[np.all(rows > 0, axis=1)] for part in (rows, hits))
    if not len(rows):
        return math.nan, math.nan
    weight = rows[:, 0] * rows[:, 1] / rows.sum(axis=1)
    share = hits / rows
    spread = share * (1 - share) / rows
    total = weight.sum()
    return (
        float(weight @ (share[:, 0] - share[:, 1]) / total),
        float(math.sqrt(weight**2 @ spread.sum(axis=1)) / total),
    )
