"""Two groups of a mean or ratio of skewed values: the test of any gap, its interval, its guard.

The native module draws the replicates and tells how many are at least as extreme as the data by the
studentized statistic, and how many by the one that Hall's cubic corrects for skewness; the p-value
of a side is the larger of the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.intervals import Interval
from ..inference.pvalues import LEAST

#: Skewness over the root of the units, from which on a tail can be missing from a group:
#: n < 25 G^2, which is Cochran's rule.
MOST_SKEWED = 0.2
#: With fewer clusters, counted as if of one size, no test is given. Measured: 10 clusters of very
#: unequal sizes beside 70 are answered in more than nine of ten samples, and wrongly in 2 to 5 %; a
#: limit of 2 would leave four of ten unanswered and make no level better.
FEWEST_CLUSTERS = 1.2
#: With fewer clusters (of one size) that hold the departures from the usual value, nothing shows
#: whether a tail is missing from values of unknown range. Measured in 120 designs of 6 to 20
#: clusters: at most 5.5 and 2.0 % are answered and wrong at the levels of 5 and 1 %; with 8 of them
#: 6.0 and 4.5 %, by skewness alone 15.8 and 15.8 %.
FEWEST_ANSWERED = 10.0

SIDES = {"two-sided": ("greater", "less"), "greater": ("greater",), "less": ("less",)}


@dataclass(frozen=True)
class ReplicateTails:
    """How many replicates are as extreme as the data: of the more extreme side of two."""

    n_extreme: int
    n_undefined: int
    #: 2 when the p-value is twice that of a side.
    n_sides: int

    def pvalue(self, of_side: Callable[[int], float]) -> float:
        """Return the p-value, given that of a number of replicates on one side."""
        return min(1.0, self.n_sides * of_side(self.n_extreme))

    def interval(self, n: int, level: float) -> Interval:
        """Return the Clopper-Pearson interval of the p-value of infinitely many replicates."""
        low, high = _native.clopper_pearson(self.n_extreme, n, level)
        return min(1.0, self.n_sides * low), min(1.0, self.n_sides * high)


def count_tails(shifts: _native.Shifts, alternative: str, call: _native.Call) -> ReplicateTails:
    """Count the replicates that are as extreme as the data."""
    sides = SIDES[alternative]
    counted = [shifts.extremes(0.0, side, call) for side in sides]
    most = [max(side.studentized, side.corrected) for side in counted]
    return ReplicateTails(min(most), counted[0].undefined, len(sides))


def invert_test(shifts: _native.Shifts, level: float, call: _native.Call) -> Interval:
    """Return the gaps that the two-sided test does not reject; infinite ends are open."""
    # Levels of several intervals together can round to 1.
    tail = max((1 - level) / 2, LEAST)
    return shifts.limit("greater", tail, call), shifts.limit("less", tail, call)


def drop_unsupported_end(interval: Interval, bound: float) -> Interval:
    """Return an interval without the end that says more than its test is allowed to."""
    low, high = interval
    return (-bound if low > 0 else low), (bound if high < 0 else high)


@dataclass(frozen=True, kw_only=True)
class SkewnessGuard:
    """The guard against skewness: samples can miss a tail, and then some verdicts are blocked."""

    #: Skewness over the root of the units, the larger of the two groups.
    skewness: float
    #: The group that has it, by position among the two, and the units that would do.
    group: int
    wanted: float
    n_units: float
    #: The sign of the gap that a missed tail would make; 0: none.
    dangerous: int
    #: The position of a group that does not vary at all.
    certain: int | None

    @classmethod
    def from_shapes(cls, shapes: NDArray[np.float64]) -> SkewnessGuard:
        """Look at the linearised values: units, sums of squares and of cubes of two groups."""
        n, squares, cubes = shapes.T
        certain = [i for i in (0, 1) if not squares[i] > 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            # Of n u, whose mean square is n times the sum of squares.
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
        """Return whether a verdict that the groups differ as they seem to is too much to say."""
        if self.certain is not None:
            return True
        return self.is_skewed and estimate * self.dangerous > 0

    def reason(self, names: Sequence[str], units: str = "rows") -> str:
        """Say which group has too few units, for what, and how many would do."""
        if self.certain is not None:
            return f"no value varies within {names[self.certain]}, which says nothing of its spread"
        low = (self.group == 0) == (self.dangerous < 0)
        return (
            f"too skewed for n: a tail that {names[self.group]} has not shown in "
            f"{self.n_units:,.0f} {units} would make it look too {'low' if low else 'high'}; some "
            f"{rounded_up(self.wanted):,} would do"
        )


def rounded_up(number: float) -> int:
    """Return a number of rows or clusters with two digits."""
    if not math.isfinite(number) or number <= 0:
        return 0
    unit = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return int(math.ceil(number / unit) * unit)
