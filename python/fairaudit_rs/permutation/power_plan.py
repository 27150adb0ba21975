"""`PowerPlan`, the result of `minimum_detectable_gap` and `sample_size`, and the power formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _native, arguments
from ..data.groups import group_name
from ..errors import ArgumentTypeError
from ..inference.proportions import farrington_manning
from ..inference.pvalues import normal_cdf, normal_of_tail, standardize_gap
from ..report.notes import Note
from ..report.words import number
from ..results.result import Result
from .excluded_groups import ExcludedGroup, notes_on_excluded

if TYPE_CHECKING:
    import polars as pl

MAX_PLANNED_ROWS = 10**15
#: Larger margins of proportions have no score test.
_LARGEST_MARGIN = 1 - 1e-9


class ComparedProportions(NamedTuple):
    """Two proportions and the rows in their denominators."""

    first: float
    n_first: float
    second: float
    n_second: float

    @property
    def discreteness_loss(self) -> float:
        """The part of a gap that an exact test loses because counts are discrete."""
        return 0.5 * (1 / self.n_first + 1 / self.n_second)

    @property
    def pooled(self) -> float:
        """The pooled rate."""
        hits = self.n_first * self.first + self.n_second * self.second
        return hits / (self.n_first + self.n_second)

    @property
    def pooled_error(self) -> float:
        """The standard error of the gap if both have the pooled rate."""
        return math.sqrt(self.pooled * (1 - self.pooled) * (1 / self.n_first + 1 / self.n_second))

    def errors_at(self, margin: float) -> tuple[float, float]:
        """Return the standard errors of the score tests of -margin and margin, at equal rates."""
        margin = min(margin, _LARGEST_MARGIN)
        rate, n, m = self.pooled, self.n_first, self.n_second
        low, high = (
            abs(end / farrington_manning(rate * n, n, rate * m, m, end).plain)
            for end in (-margin, margin)
        )
        return low, high


@dataclass(frozen=True, eq=False)
class PowerPlan(Result):
    """A gap, the group sizes, and the power of the test to find the gap or show its absence.

    ``float(plan)`` is the gap, ``str(plan)`` a sentence.

    Attributes
    ----------
    metric : str
        Name of the metric.
    group_sizes : dict
        Rows of each group (for a correlation: all rows).
    standard_deviations : dict
        For each group: the standard error of its metric times the square root of its rows.
    gap : float
        The gap between two groups; with more groups, a gap that is found in any pair. With the
        goal ``"equivalence"`` the margin of `equivalence_test`.
    power : float
        Probability that the test rejects if the gap exists; with the goal ``"equivalence"``, if
        there is no gap.
    confidence_level : float
        1 minus the level of the test.
    alternative : str
        ``"two-sided"``, ``"greater"`` or ``"less"``.
    n_comparisons : int
        Number of pairs that share the level, or with the goal ``"equivalence"`` that must all be
        shown to be equal.
    reference : optional
        The group that all others are compared with; None if all pairs are compared.
    goal : str
        ``"difference"`` for `permutation_test`, ``"equivalence"`` for `equivalence_test`.
    values : dict or None
        The assumed proportion of each group, for the exact test. None for other metrics.
    shares : dict or None
        Share of the rows of each group in the denominator of a proportion.
    attribute : str
        Names of the sensitive features; "" without data.
    left_out : tuple of ExcludedGroup
        Groups of the data that are not in the plan, with their rows and the reason.
    notes : tuple of Note
        Remarks on the numbers, each with a code.
    error_within : float or None
        Within strata: the largest standard error of a gap, times the square root of all rows; None
        for gaps of all rows.
    strata : tuple of str
        Names of the strata within which gaps are taken.
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
    goal: str = "difference"
    values: dict[Any, float] | None = None
    shares: dict[Any, float] | None = None
    attribute: str = ""
    left_out: tuple[ExcludedGroup, ...] = ()
    notes: tuple[Note, ...] = ()
    error_within: float | None = None
    strata: tuple[str, ...] = ()

    def __float__(self) -> float:
        return self.gap

    def _remarks(self) -> tuple[Note, ...]:
        """Return the remarks that are printed after the sentence."""
        return (*self.notes, *notes_on_excluded(self.left_out))

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        sizes = ", ".join(
            f"{n:,} of {group_name(g, self.attribute)}" for g, n in self.group_sizes.items()
        )
        what = "gap"
        if len(self.group_sizes) == 1:
            (n,) = self.group_sizes.values()
            sizes, what = f"{n:,} rows", "correlation"
        if self.strata:
            what += f" within equal {', '.join(self.strata)}"
        level = f"at the {100 * (1 - self.confidence_level):.3g} % level"
        if self.goal == "equivalence":
            pairs = "" if self.n_comparisons == 1 else f" in {self.n_comparisons} pairs"
            return (
                f"{self.metric}: with {sizes} it is shown with probability {self.power:.3g} "
                f"{level} that no {what}{pairs} is as large as {number(self.gap)}, if there is "
                "none."
            )
        shared = "" if self.n_comparisons == 1 else f" shared by {self.n_comparisons} pairs"
        return (
            f"{self.metric}: with {sizes} a {what} of {number(self.gap)} is found with probability "
            f"{self.power:.3g} {level}{shared}."
        )

    @property
    def details(self) -> str:
        """The name of the tests that are planned."""
        if self.goal == "equivalence":
            return "two one-sided tests"
        return "two-sided test" if self.alternative == "two-sided" else "one-sided test"

    @property
    def standard_error(self) -> float:
        """The largest standard error of a gap between two compared groups."""
        if self.error_within is not None:
            return self.error_within / math.sqrt(sum(self.group_sizes.values()))
        return math.sqrt(sum(self._variance(group) for group in self._hardest))

    def _variance(self, group: Any) -> float:
        return self.standard_deviations[group] ** 2 / self.group_sizes[group]

    @property
    def _hardest(self) -> list[Any]:
        """The two compared groups with the largest standard error; one entry for a correlation."""
        groups = sorted(self.group_sizes, key=self._variance)
        if self.reference is None:
            return groups[-2:]
        groups.remove(self.reference)
        return [groups[-1], self.reference]

    def power_at(self, gap: float) -> float:
        """Return the power for another gap or margin, with the same group sizes."""
        return self._power(gap, 1.0)

    def _power(self, gap: float, times: float) -> float:
        """Return the power with ``times`` as many rows."""
        error = self.standard_error / math.sqrt(times)
        proportions = self._proportions(times)
        if self.goal == "equivalence":
            pair = power_of_equivalence(gap, error, self._level, proportions)
            return max(1 - self.n_comparisons * (1 - pair), 0.0)
        if proportions is None:
            return power_of_difference(gap, error, self._level, self.alternative)
        return power_of_difference(gap, error, self._level, self.alternative, exact=proportions)

    def _proportions(self, times: float) -> ComparedProportions | None:
        """Return the proportions of the two hardest groups, with ``times`` as many rows."""
        if self.values is None or self.shares is None:
            return None
        first, second = self._hardest
        rows = {g: times * self.shares[g] * self.group_sizes[g] for g in (first, second)}
        return ComparedProportions(
            self.values[first], rows[first], self.values[second], rows[second]
        )

    @property
    def _level(self) -> float:
        level = 1 - self.confidence_level
        # All pairs must pass, so the level is not shared.
        return level if self.goal == "equivalence" else level / self.n_comparisons

    def curve(
        self, gaps: ArrayLike | None = None, n_rows: Sequence[int] | None = None
    ) -> pl.DataFrame:
        """Return the power over gaps and total rows, with fixed proportions of the groups.

        Parameters
        ----------
        gaps : array of float, optional
            Gaps; by default from 0 to twice that of the plan.
        n_rows : sequence of int, optional
            Total rows; by default those of the plan.

        Returns
        -------
        polars.DataFrame
            With columns n_rows, gap, power.
        """
        import polars as pl

        total = sum(self.group_sizes.values())
        chosen = np.linspace(0, 2 * self.gap, 41) if gaps is None else np.atleast_1d(gaps)
        if n_rows is not None and not arguments.is_listing(n_rows):
            raise ArgumentTypeError(
                f"n_rows is {n_rows!r}; accepted: a sequence of whole numbers", argument="n_rows"
            )
        rows = []
        for n in [total] if n_rows is None else n_rows:
            n = arguments.count("n_rows", n, 2, MAX_PLANNED_ROWS)
            rows += [
                {"n_rows": n, "gap": float(gap), "power": self._power(float(gap), n / total)}
                for gap in chosen
            ]
        return pl.DataFrame(rows)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns."""
        return ("groups",)

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        return self.rows()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        return [
            {
                "metric": self.metric,
                "group": group_name(group, self.attribute),
                "n_rows": n,
                "standard_deviation": self.standard_deviations[group],
                "gap": self.gap,
                "power": self.power,
            }
            for group, n in self.group_sizes.items()
        ]


def power_of_difference(
    gap: float,
    error: float,
    level: float,
    alternative: str,
    exact: ComparedProportions | None = None,
) -> float:
    """Return the power of a normal test, or of the exact test of two proportions.

    The gap is measured in the direction of the alternative. The exact test has the critical value
    at the pooled rate, and because counts are discrete it loses (1 / n_1 + 1 / n_2) / 2 of the gap:
    the correction of Casagrande, Pike and Smith (1978).
    """
    loss, null_error = (
        (0.0, error) if exact is None else (exact.discreteness_loss, exact.pooled_error)
    )
    two_sided = alternative == "two-sided"
    critical_gap = _normal_quantile_above(level / (2 if two_sided else 1)) * null_error
    power = normal_cdf(standardize_gap(gap - loss - critical_gap, error))
    return (
        power + normal_cdf(standardize_gap(-gap - loss - critical_gap, error))
        if two_sided
        else power
    )


def power_of_equivalence(
    margin: float, error: float, level: float, proportions: ComparedProportions | None
) -> float:
    """Return the power of two one-sided tests to show that a true gap of 0 is below a margin."""
    if margin <= 0:
        return 0.0
    low = high = error
    if proportions is not None:
        low, high = proportions.errors_at(margin)
    z = _normal_quantile_above(level)
    both = normal_cdf(standardize_gap(margin - z * low, error))
    both += normal_cdf(standardize_gap(margin - z * high, error))
    return max(both - 1, 0.0)


def _normal_quantile_above(tail: float) -> float:
    """Return the upper quantile of the normal distribution, also for tiny tail probabilities."""
    return _native.normal_quantile(1 - tail) if 1 - tail < 1 else normal_of_tail(tail)


def smallest_gap(power_at: Callable[[float], float], power: float, start: float) -> float:
    """Return the smallest gap or margin with the required power, given a first guess."""
    if power <= power_at(0.0):
        return 0.0
    # The first guess is 0 if the standard error is.
    low, high = 0.0, start or math.ulp(0.0)
    while power_at(high) < power:
        high *= 2
        if math.isinf(high):
            return high
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if power_at(middle) < power else (low, middle)
    return high
