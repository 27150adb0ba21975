"""Tests two groups by a mean or ratio of skewed values, and guards against missing tails.

The native module counts the replicates that are at least as extreme as the data, by the
studentized statistic and by the same corrected for skewness (Hall's cubic transformation). The
p-value of a side is the larger of the two. The guard withholds verdicts if a group may lack its
rare extreme values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.intervals import Interval
from ..inference.pvalues import SMALLEST_PVALUE
from .reasons import WithholdingReason

#: Above this skewness, divided by the square root of the units, the tail of the values can be
#: missing from a group: n < 25 G^2, Cochran's rule.
MOST_SKEWED = 0.2
#: Minimum effective number of clusters for a test. With a limit of 2, four of ten samples of 10
#: clusters of very unequal sizes would get no test, without better error rates.
FEWEST_CLUSTERS = 1.2
#: Minimum number of clusters (of equal size) that deviate from the usual value, for values of
#: unknown range: with fewer, a missing tail cannot be detected. Measured in 120 designs of 6 to 20
#: clusters: at most 5.5 and 2.0 % of samples get a wrong verdict at the levels of 5 and 1 %; with a
#: minimum of 8, 6.0 and 4.5 %; by skewness alone, 15.8 and 15.8 %.
FEWEST_ANSWERED = 10.0

SIDES = {"two-sided": ("greater", "less"), "greater": ("greater",), "less": ("less",)}


@dataclass(frozen=True)
class ReplicateTails:
    """The number of replicates that are as extreme as the data, on the more extreme side."""

    n_extreme: int
    n_undefined: int
    #: 2 if the p-value is twice that of one side.
    n_sides: int

    def pvalue(self, of_side: Callable[[int], float]) -> float:
        """Return the p-value; ``of_side`` maps a number of replicates to a one-sided p-value."""
        return min(1.0, self.n_sides * of_side(self.n_extreme))

    def interval(self, n: int, level: float) -> Interval:
        """Return the Clopper-Pearson interval of the p-value with infinitely many replicates."""
        low, high = _native.clopper_pearson(self.n_extreme, n, level)
        return min(1.0, self.n_sides * low), min(1.0, self.n_sides * high)


def count_tails(shifts: _native.Shifts, alternative: str, call: _native.Call) -> ReplicateTails:
    """Count the replicates that are as extreme as the data."""
    sides = SIDES[alternative]
    counted = [shifts.extremes(0.0, side, call) for side in sides]
    most = [max(side.studentized, side.corrected) for side in counted]
    return ReplicateTails(min(most), counted[0].undefined, len(sides))


def invert_test(shifts: _native.Shifts, level: float, call: _native.Call) -> Interval:
    """Return the interval of gaps that the two-sided test does not reject; ends can be infinite."""
    # The level of simultaneous intervals can round to 1.
    tail = max((1 - level) / 2, SMALLEST_PVALUE)
    return shifts.limit("greater", tail, call), shifts.limit("less", tail, call)


def drop_unsupported_end(interval: Interval, bound: float) -> Interval:
    """Return an interval that includes 0, opened on the side where it claimed a gap."""
    low, high = interval
    return (-bound if low > 0 else low), (bound if high < 0 else high)


@dataclass(frozen=True, kw_only=True)
class SkewnessGuard:
    """Blocks verdicts that a missing tail of skewed values could have caused."""

    #: Skewness divided by the square root of the units; the larger one of the two groups.
    skewness: float
    #: The position of that group, and its required number of units.
    group: int
    wanted: float
    n_units: float
    #: The sign of the gap that a missing tail would cause; 0: none.
    dangerous: int
    #: The position of a group that does not vary; else None.
    certain: int | None

    @classmethod
    def from_shapes(cls, shapes: NDArray[np.float64]) -> SkewnessGuard:
        """Return the guard, given units, sums of squares and sums of cubes of both groups."""
        n, squares, cubes = shapes.T
        certain = [i for i in (0, 1) if not squares[i] > 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            # Shape of n u, whose mean square is n times the sum of squares.
            own = np.sqrt(n) * cubes / squares**1.5
            spread = n * squares
            pooled_square = (n * spread).sum() / n.sum()
            pooled = (n**3 * cubes).sum() / n.sum() / pooled_square**1.5
            larger = np.where(np.abs(own) >= abs(pooled), own, pooled)
            larger = np.where(np.isnan(own), pooled, larger)
            by_group = np.abs(larger) / np.sqrt(n)
            common = (n * spread).sum() / (n.sum() - 2)
            variance = np.maximum(n * spread / (n - 1), common) / n
            parts = larger * variance**1.5 / np.sqrt(n)
            side = (parts[0] - parts[1]) / variance.sum() ** 1.5
        group = int(np.nanargmax(by_group)) if not np.isnan(by_group).all() else 0
        skewness = float(by_group[group])
        return cls(
            skewness=skewness,
            group=group,
            wanted=25 * float(larger[group]) ** 2,
            n_units=float(n[group]),
            dangerous=0 if math.isnan(side) else -int(np.sign(side)),
            certain=certain[0] if certain else None,
        )

    @property
    def is_skewed(self) -> bool:
        """Return whether the tail of a group can be missing from its rows."""
        return self.skewness > MOST_SKEWED

    def blocks(self, estimate: float) -> bool:
        """Return whether the verdict must be withheld that the groups differ as observed."""
        if self.certain is not None:
            return True
        return self.is_skewed and estimate * self.dangerous > 0

    def reason(self, names: Sequence[str], units: str = "rows") -> WithholdingReason:
        """Return which group has too few units, and the required number."""
        if self.certain is not None:
            name = names[self.certain]
            text = f"no value varies within {name}, which says nothing of its spread"
            return WithholdingReason("no-spread", text, (name,))
        name, low = names[self.group], (self.group == 0) == (self.dangerous < 0)
        return WithholdingReason(
            "skewed-low" if low else "skewed-high",
            f"too skewed for n: a tail that {name} has not shown in "
            f"{self.n_units:,.0f} {units} would make it look too {'low' if low else 'high'}; some "
            f"{rounded_up(self.wanted):,} would do",
            (name,),
        )


def rounded_up(number: float) -> int:
    """Return a number of rows or clusters, rounded up to two digits."""
    if not math.isfinite(number) or number <= 0:
        return 0
    unit = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return int(math.ceil(number / unit) * unit)
