"""What a plan says about gaps, sizes and power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _native, arguments
from ..data.groups import group_name
from ..errors import ArgumentTypeError
from ..inference.pvalues import normal_cdf
from ..results.result import Result
from ..results.words import number

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 10**15


@dataclass(frozen=True, eq=False)
class PowerPlan(Result):
    """A gap, the sizes of the groups, and the power of the test to see the gap.

    ``float(plan)`` is the gap, ``str(plan)`` a sentence.

    Attributes
    ----------
    metric : str
        Name of the metric.
    group_sizes : dict
        Rows of each group (of a correlation: of all).
    standard_deviations : dict
        Of the metric of each group per row: its standard error is this over the root of the rows.
    gap : float
        The gap of two groups; of more, a gap that is seen in any pair.
    power : float
        Probability that the test rejects when the gap is there.
    confidence_level : float
        1 minus the level of the test.
    alternative : str
        ``"two-sided"`` or one of the one-sided ones.
    n_comparisons : int
        Number of pairs among which the level is shared.
    reference : optional
        The group that all others are compared with; None when all are with all.
    """

    metric: str
    group_sizes: dict[Any, int]
    standard_deviations: dict[Any, float]
    gap: float
    power: float
    confidence_level: float
    alternative: str
    n_comparisons: int
    reference: Any = None

    def __float__(self) -> float:
        return self.gap

    def summary(self) -> str:
        """Return a sentence that says what is found."""
        sizes = ", ".join(f"{n:,} of {group_name(g)}" for g, n in self.group_sizes.items())
        what = "gap"
        if len(self.group_sizes) == 1:
            (n,) = self.group_sizes.values()
            sizes, what = f"{n:,} rows", "correlation"
        shared = "" if self.n_comparisons == 1 else f" shared by {self.n_comparisons} pairs"
        return (
            f"{self.metric}: with {sizes} a {what} of {number(self.gap)} is found with probability "
            f"{self.power:.3g} at the {100 * (1 - self.confidence_level):.3g} % level{shared} "
            f"({self.alternative})."
        )

    @property
    def standard_error(self) -> float:
        """Standard error of the gap of the two compared groups that are hardest to tell apart."""
        parts = {
            group: self.standard_deviations[group] ** 2 / size
            for group, size in self.group_sizes.items()
        }
        if self.reference is None:
            return math.sqrt(sum(sorted(parts.values())[-2:]))
        fixed = parts.pop(self.reference)
        return math.sqrt(fixed + max(parts.values()))

    def power_at(self, gap: float) -> float:
        """Return the power to see another gap with these groups."""
        return power_of(gap, self.standard_error, self._level, self.alternative)

    @property
    def _level(self) -> float:
        return (1 - self.confidence_level) / self.n_comparisons

    def curve(
        self, gaps: ArrayLike | None = None, n_rows: Sequence[int] | None = None
    ) -> pl.DataFrame:
        """Return the power over gaps and numbers of rows, which keep the shares of the groups.

        Parameters
        ----------
        gaps : array of float, optional
            Gaps; by default from 0 to twice that of the plan.
        n_rows : sequence of int, optional
            Rows in all; by default those of the plan.

        Returns
        -------
        polars.DataFrame
            With columns n_rows, gap, power.
        """
        import polars as pl

        total = sum(self.group_sizes.values())
        chosen = np.linspace(0, 2 * self.gap, 41) if gaps is None else np.atleast_1d(gaps)
        if n_rows is not None and not hasattr(n_rows, "__iter__"):
            raise ArgumentTypeError(f"n_rows is {n_rows!r}; accepted: a sequence of whole numbers")
        rows = []
        for n in [total] if n_rows is None else n_rows:
            n = arguments.count("n_rows", n, 2, MOST_ROWS)
            error = self.standard_error * math.sqrt(total / n)
            rows += [
                {
                    "n_rows": n,
                    "gap": float(gap),
                    "power": power_of(float(gap), error, self._level, self.alternative),
                }
                for gap in chosen
            ]
        return pl.DataFrame(rows)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        return [
            {
                "metric": self.metric,
                "group": group_name(group),
                "n_rows": n,
                "standard_deviation": self.standard_deviations[group],
                "gap": self.gap,
                "power": self.power,
            }
            for group, n in self.group_sizes.items()
        ]


def power_of(gap: float, error: float, level: float, alternative: str) -> float:
    """Return the power of a normal test; a gap counts in the direction of the alternative."""
    if alternative == "two-sided":
        z = _native.normal_quantile(1 - level / 2)
        return normal_cdf(gap / error - z) + normal_cdf(-gap / error - z)
    return normal_cdf(gap / error - _native.normal_quantile(1 - level))


def smallest_gap(error: float, level: float, power: float, alternative: str) -> float:
    """Return the smallest gap that a test finds with the power."""
    if power <= level:
        return 0.0
    low, high = 0.0, error
    while power_of(high, error, level, alternative) < power:
        high *= 2
    for _ in range(200):
        middle = 0.5 * (low + high)
        if power_of(middle, error, level, alternative) < power:
            low = middle
        else:
            high = middle
    return high
