"""The interval of Pearson's correlation, by inverting its permutation test."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import NO_INTERVAL, Interval, quantile


@dataclass(frozen=True, kw_only=True)
class CorrelationSums:
    """Sums of two columns, from which any value rho of the correlation can be tested.

    For standardized columns let u = x y and w = (x^2 + y^2) / 2. If rho is the correlation,
    u - rho w has mean 0, and S(rho) = sum (u - rho w) / sqrt(sum (u - rho w)^2) is studentized
    under the hypothesis. S(0) is the statistic of the permutation test. Fisher's z uses the
    variance at the estimate, which is too small for skewed values: at 60 rows it covers 83 % where
    this interval covers 95 %.
    """

    n: float
    #: Sums of u, u^2, u w and w^2; the sum of w is n.
    products: float
    squares: float
    mixed: float
    weights: float

    @classmethod
    def from_columns(
        cls, x: NDArray[np.float64], y: NDArray[np.float64], stratum: NDArray[np.uint32] | None
    ) -> CorrelationSums:
        """Compute the sums of both columns, centred (within strata, if any) and standardized."""
        # Sorted, so that the last bits of the sums do not depend on the order of the rows.
        keys = (y, x) if stratum is None else (y, x, stratum)
        order = np.lexsort(keys)
        parts = None if stratum is None else np.unique(stratum[order], return_inverse=True)[1]
        x, y = (_standardized(column[order], parts) for column in (x, y))
        u, w = x * y, (x * x + y * y) / 2
        return cls(
            n=float(len(u)),
            products=float(u.sum()),
            squares=float((u * u).sum()),
            mixed=float((u * w).sum()),
            weights=float((w * w).sum()),
        )

    def statistic(self, value: float) -> float:
        """Return S(value)."""
        spread = self.squares - 2 * value * self.mixed + value**2 * self.weights
        distance = self.products - value * self.n
        return distance / math.sqrt(spread) if spread > 0 else math.copysign(math.inf, distance)

    def interval(self, above: float, below: float) -> Interval:
        """Return the values with -below <= S <= above; NaN if the correlation is -1 or 1."""
        if not abs(self.products) < self.n:
            return NO_INTERVAL
        return self._accepted(above)[0], self._accepted(below)[1]

    def _accepted(self, critical: float) -> Interval:
        """Return the smallest and the largest value with |S| up to a critical value.

        They are the roots of a quadratic equation. Without roots they are -1 and 1: with few rows
        and heavy tails, it may be impossible to reject any correlation.
        """
        if math.isinf(critical):
            return -1.0, 1.0
        square = critical**2
        a = self.n**2 - square * self.weights
        b = self.products * self.n - square * self.mixed
        c = self.products**2 - square * self.squares
        if not a > 0:
            return -1.0, 1.0
        estimate, root = self.products / self.n, math.sqrt(max(b * b - a * c, 0.0))
        low, high = (b - root) / a, (b + root) / a
        return max(min(low, estimate), -1.0), min(max(high, estimate), 1.0)


def critical_values(
    null: NDArray[np.float64], level: float, alternative: str
) -> tuple[float, float]:
    """Return the critical values of the upper and the lower side of a permutation test.

    A two-sided test uses the quantile of the absolute statistic on both sides; a one-sided test
    uses half the error on each side.
    """
    values = np.where(np.isnan(null), np.inf, null)
    if alternative == "two-sided":
        both = quantile(np.abs(values), level)
        return both, both
    opposite = np.where(np.isnan(null), np.inf, -null)
    above, below = (quantile(part, (1 + level) / 2) for part in (values, opposite))
    return max(above, 0.0), max(below, 0.0)


def _standardized(
    column: NDArray[np.float64], parts: NDArray[np.intp] | None
) -> NDArray[np.float64]:
    # Scaled by a power of 2, so that squares do not overflow.
    column = np.ldexp(column, -math.frexp(float(np.abs(column).max()))[1])
    if parts is None:
        centred = column - column.mean()
    else:
        means = np.bincount(parts, weights=column) / np.bincount(parts)
        centred = column - means[parts]
    standardized: NDArray[np.float64] = centred / math.sqrt(float((centred * centred).mean()))
    return standardized
