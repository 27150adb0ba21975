"""Counts of people and selections by group, with the tests that the rules share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ... import arguments
from ...errors import ArgumentTypeError, DataError
from ...inference.exact_tests import fisher_pvalue, least_expected, pooled_z, two_sided
from ...inference.proportions import SampleProportion

#: Tables with an expected count below this are tested by Fisher's exact test.
FEW = 5
FISHER = "Fisher's exact test"
_MOST = 10**15


class SelectionCount(NamedTuple):
    """The number of selected people and of all people in a group."""

    selected: int
    total: int

    @property
    def exact(self) -> Fraction:
        """The rate as a fraction, so that rules compare without rounding."""
        return Fraction(self.selected, self.total)

    @property
    def rate(self) -> float:
        """The share of the group that was selected."""
        return self.selected / self.total

    @property
    def share(self) -> SampleProportion:
        """The rate with its number of rows."""
        return SampleProportion(self.rate, self.total)


#: Groups with (selected, total).
Counts: TypeAlias = Mapping[Any, tuple[int, int]]


class EqualityTest(NamedTuple):
    """A test of equal rates."""

    z: float
    pvalue: float
    method: str


def check_counts(counts: object, groups: int = 2) -> dict[Any, SelectionCount]:
    """Check counts, of at least this many groups, each with people."""
    accepted = "a dict with (selected, total) of each group"
    if not isinstance(counts, Mapping):
        raise ArgumentTypeError(f"counts is {counts!r}; accepted: {accepted}", argument="counts")
    found = {}
    for group, pair in counts.items():
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ArgumentTypeError(
                f"counts of {group!r} is {pair!r}; accepted: {accepted}", argument="counts"
            )
        total = arguments.count(f"total of {group!r}", _whole(pair[1]), 1, _MOST)
        selected = arguments.count(f"selected of {group!r}", _whole(pair[0]), 0, total)
        found[group] = SelectionCount(selected, total)
    if len(found) < groups:
        raise DataError(
            f"counts has {len(found)} groups; accepted: {groups} or more", argument="counts"
        )
    return found


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float | np.floating) and value == int(value) else value


def highest_rate_group(counts: Mapping[Any, SelectionCount]) -> Any:
    """Return the group with the highest rate; if rates are equal, the largest, then the first."""
    return max(counts, key=lambda group: (counts[group].exact, counts[group].total))


def found_in(counts: Mapping[Any, SelectionCount], reference: object) -> Any:
    """Return the reference group, which must be in the counts."""
    if reference not in counts:
        names = ", ".join(map(repr, counts))
        raise DataError(
            f"reference is {reference!r}, which is not a group; accepted: {names}",
            argument="reference",
        )
    return reference


def equal_rates_test(
    first: SelectionCount, second: SelectionCount, fisher_below: int | None = None
) -> EqualityTest:
    """Test equal rates by the pooled z test, or by Fisher's exact test if rows are few.

    Rows are few if a cell of the table has fewer than 5 expected people or, with ``fisher_below``,
    if both groups together have fewer people than that.
    """
    table = (*first, *second)
    few = (
        least_expected(*_split(table)) < FEW
        if fisher_below is None
        else first.total + second.total < fisher_below
    )
    z = pooled_z(*_split(table))
    if few:
        return EqualityTest(z, fisher_pvalue(*_split(table)), FISHER)
    return EqualityTest(
        z, two_sided(z), "pooled z test" if fisher_below is None else "chi-squared test"
    )


def _split(table: tuple[int, ...]) -> tuple[int, int, int, int]:
    x, n, y, m = table
    return x, n, y, m


def selection_shortfall(count: SelectionCount, reference: SelectionCount, ratio: Fraction) -> int:
    """Return the additional selections with which the rate is ``ratio`` times the reference's."""
    wanted = ratio * reference.exact * count.total
    return max(-(-wanted.numerator // wanted.denominator) - count.selected, 0)


def pair_count(n_groups: int) -> int:
    """Return the number of pairs of groups."""
    return math.comb(n_groups, 2)


def bonferroni_pvalue(pvalue: float, n_comparisons: int) -> float:
    """Return a p-value adjusted for a number of comparisons; NaN stays NaN."""
    return pvalue if math.isnan(pvalue) else min(1.0, n_comparisons * pvalue)


def format_percent(rate: float) -> str:
    """Return a rate for a sentence."""
    return f"{100 * rate:.1f} %"
