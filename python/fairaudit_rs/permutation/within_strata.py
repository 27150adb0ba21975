"""Compares two groups within the user's strata: values by stratum, and their weighted means.

Two groups are compared in the strata that contain both. With D_sg the size of group g in stratum s
(the denominator of a rate, mean or ratio; the rows of other metrics) and theta_sg its value there,

    k_s = D_s1 D_s2 / (D_s1 + D_s2),    value_g = sum_s k_s theta_sg / sum_s k_s,

so that value_1 - value_2 is the gap within strata (of rates the Mantel-Haenszel difference), and
value_1 / value_2 the Mantel-Haenszel ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.equality import EqualByValue
from ..data.groups import group_label
from ..data.labels import GroupKey
from ..inference.homogeneity import Homogeneity
from ..inference.intervals import Pair
from ..report.notes import Note
from ..report.words import p_text
from ..results.result import Finding
from ..results.verdict import rejects_at
from .strata import EFFECT_VARIES, LEAST_QUERIES, can_be_queries, note_of_many_strata

#: Maximum number of strata that a result lists per pair, for up to ten pairs (fewer for more
#: pairs). Otherwise it gives only their number.
MOST_LISTED = 1_000
#: Level of the test whether the gap is the same in all strata, and its names.
_LEVEL = 0.05
_TESTS = {"breslow-day": "Breslow-Day test", "permutation": "permutation test"}
#: The homogeneity test has a fixed seed, whatever the seed of the call.
HOMOGENEITY_SEED = 28
#: Maximum number of rows for the homogeneity test on rows.
MOST_ROWS = 1_000_000
#: The same for metrics that are not ratios of sums; with more rows they have no values by stratum.
MOST_ROWS_OF_RANKS = 200_000

Floats = NDArray[np.float64]

#: The sentences of `note_of_homogeneity`.
SENTENCES = {
    "gap_not_tested": (
        "{about}: whether the gap is the same in all strata was not tested: {reason}"
    ),
    "odds_differ": (
        "{about}: the odds ratio differs between strata by more than chance explains "
        "({tested_by}); the gap within strata is a weighted mean, so read the strata one by one"
    ),
    "odds_may_be_one": (
        "{about}: no sign that the odds ratio differs between strata ({tested_by}); the gaps of "
        "the strata can differ all the same"
    ),
    "gap_differs": (
        "{about}: the gap differs between strata by more than chance explains ({tested_by}); "
        "the gap within strata is their weighted mean, so read the strata one by one"
    ),
    "gap_may_be_one": (
        "{about}: no sign that the gap differs between strata ({tested_by}); that does not show "
        "that it is the same in all"
    ),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class StratumGap(EqualByValue):
    """Two groups in one stratum."""

    stratum: Any
    #: Eligible rows and metric of each group; NaN if a group has no value.
    first_n: int
    second_n: int
    first_value: float
    second_value: float
    #: The weight of the stratum in the gap; 0 if it does not contain both groups.
    weight: float

    @property
    def gap(self) -> float:
        """The value of the first group minus that of the second."""
        return self.first_value - self.second_value


@dataclass(frozen=True, kw_only=True, eq=False)
class PairWithinStrata(EqualByValue):
    """The values of two groups within strata, with the strata that they come from."""

    names: tuple[str, ...]
    first: Any
    second: Any
    first_value: float
    second_value: float
    n_strata: int
    #: Number of strata that contain both groups.
    n_compared: int
    #: The share of the people in both groups whose stratum contains only one of the groups.
    share_outside: float
    homogeneity: Homogeneity
    #: Empty if there are more than `MOST_LISTED`.
    strata: tuple[StratumGap, ...]

    def swapped(self) -> PairWithinStrata:
        """Return the same with the groups in the other order."""
        strata = tuple(
            replace(
                stratum,
                first_n=stratum.second_n,
                second_n=stratum.first_n,
                first_value=stratum.second_value,
                second_value=stratum.first_value,
            )
            for stratum in self.strata
        )
        return replace(
            self,
            first=self.second,
            second=self.first,
            first_value=self.second_value,
            second_value=self.first_value,
            strata=strata,
        )

    def complement(self) -> PairWithinStrata:
        """Return the same for the complementary proportion: 1 minus each value."""
        strata = tuple(
            replace(
                stratum, first_value=1 - stratum.first_value, second_value=1 - stratum.second_value
            )
            for stratum in self.strata
        )
        first, second = 1 - self.first_value, 1 - self.second_value
        return replace(self, first_value=first, second_value=second, strata=strata)

    def rows(self) -> list[dict[str, Any]]:
        """Return one table row per stratum."""
        return [
            {
                "stratum": stratum_name(self.names, stratum.stratum),
                "first_n": stratum.first_n,
                "second_n": stratum.second_n,
                "first_value": stratum.first_value,
                "second_value": stratum.second_value,
                "gap": stratum.gap,
                "weight": stratum.weight,
            }
            for stratum in self.strata
        ]


def stratum_name(names: tuple[str, ...], stratum: Any) -> str:
    """Return the name of a stratum, such as "dept=A, year=1"."""
    labels = stratum if isinstance(stratum, tuple) else (stratum,)
    return ", ".join(f"{name}={value}" for name, value in zip(names, labels, strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class StratumValues(EqualByValue):
    """A metric by stratum and group; NaN if a group has no value in a stratum."""

    names: tuple[str, ...]
    strata: tuple[GroupKey, ...]
    value: Floats
    #: The size D of each group, from which the weights of strata are computed.
    size: Floats
    #: Eligible rows, and the people that they stand for (sum of weights).
    n: NDArray[np.int64]
    people: Floats
    #: The groups.
    keys: tuple[GroupKey, ...]

    def share_compared(self, groups: Collection[Any]) -> float:
        """Return the share of people in some groups whose stratum contains two of the groups."""
        columns = [i for i, key in enumerate(self.keys) if group_label(key) in groups]
        present = (self.size[:, columns] > 0) & ~np.isnan(self.value[:, columns])
        people = self.people[:, columns]
        # Sum the people outside, so that the share is exactly 1 if there are none.
        outside = people[present.sum(axis=1) < 2].sum()
        everyone = float(people.sum())
        return 1 - float(outside) / everyone if everyone > 0 else 1.0

    def compare_pair(self, pair: Pair, test: Callable[[], Homogeneity]) -> PairWithinStrata:
        """Return two groups within strata; ``test`` tests whether their gap is the same in all."""
        columns = list(pair)
        value, size, n = self.value[:, columns], self.size[:, columns], self.n[:, columns]
        people = self.people[:, columns].sum(axis=1)
        both = np.all((size > 0) & ~np.isnan(value), axis=1)
        weight = np.where(both, size.prod(axis=1) / np.maximum(size.sum(axis=1), 1e-300), 0.0)
        total = float(weight.sum())
        weight = weight / total if total > 0 else weight
        first, second = (
            float(weight[both] @ value[both, i]) if total > 0 else math.nan for i in (0, 1)
        )
        present = np.flatnonzero(n.sum(axis=1) > 0)
        n_pairs = max(len(self.keys) * (len(self.keys) - 1) // 20, 1)
        listed = present if len(present) * n_pairs <= MOST_LISTED else present[:0]
        everyone = float(people.sum())
        return PairWithinStrata(
            names=self.names,
            first=group_label(self.keys[pair[0]]),
            second=group_label(self.keys[pair[1]]),
            first_value=first,
            second_value=second,
            n_strata=len(present),
            n_compared=int(both.sum()),
            share_outside=float(people[~both].sum()) / everyone if everyone > 0 else 0.0,
            homogeneity=test(),
            strata=tuple(
                StratumGap(
                    stratum=group_label(self.strata[s]),
                    first_n=int(n[s, 0]),
                    second_n=int(n[s, 1]),
                    first_value=float(value[s, 0]),
                    second_value=float(value[s, 1]),
                    weight=float(weight[s]),
                )
                for s in listed
            ),
        )


class StratifiedFinding(Finding):
    """Base class of results whose comparisons can be within strata; adds a table of strata."""

    within: tuple[PairWithinStrata, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return (*super().tables, *(("strata",) if self.within else ()))

    def _rows_of(self, table: str) -> Sequence[dict[str, Any]]:
        if table == "strata":
            return stratum_rows(self.within, self.name_of)
        return super()._rows_of(table)


def stratum_rows(
    within: Sequence[PairWithinStrata], name_of: Callable[[Any], str]
) -> list[dict[str, Any]]:
    """Return one table row per comparison and stratum, with the homogeneity test."""
    return [
        {
            "first": name_of(pair.first),
            "second": name_of(pair.second),
            **row,
            "homogeneity_test": pair.homogeneity.method,
            "homogeneity_pvalue": pair.homogeneity.pvalue,
        }
        for pair in within
        for row in pair.rows()
    ]


def note_of_sample(
    within: Sequence[PairWithinStrata], n_rows: Mapping[Any, int], only_varying: bool = False
) -> Note | None:
    """Return a note on strata that can be a sample: with few rows each, or unequal effects.

    ``n_rows`` are the rows of each group. ``only_varying``: skip small strata, which have another
    note.
    """
    few = [
        pair.n_compared
        for pair in within
        if can_be_queries(pair.n_compared, (n_rows[pair.first] + n_rows[pair.second]) / 2)
    ]
    if few:
        return None if only_varying else note_of_many_strata(max(few))
    tested = [pair for pair in within if not math.isnan(pair.homogeneity.pvalue)]
    varying = [
        strata.n_compared
        for strata in tested
        if strata.n_compared >= LEAST_QUERIES
        and rejects_at(min(strata.homogeneity.pvalue * len(tested), 1.0), _LEVEL)
    ]
    if not varying:
        return None
    return Note("effect-varies", EFFECT_VARIES.format(n=f"{max(varying):,}"))


def note_of_homogeneity(
    within: PairWithinStrata,
    about: str,
    n_pairs: int = 1,
    *,
    subject: tuple[str, ...] = (),
    scope: str = "",
) -> Note:
    """Return the note on whether the gap is the same in all strata; p is adjusted for pairs."""
    test = within.homogeneity
    pvalue = min(test.pvalue * max(n_pairs, 1), 1.0)
    if math.isnan(test.pvalue):
        text = SENTENCES["gap_not_tested"].format(about=about, reason=test.note)
        return Note("gap-not-tested", text, subject, scope)
    name = _TESTS.get(test.method, "chi-squared test")
    how = f"{name}, {p_text(pvalue)}" + (f"; {test.note}" if test.note else "")
    if n_pairs > 1:
        how += f", adjusted for {n_pairs} pairs"
    # The Breslow-Day test is about odds ratios, which can differ although gaps are equal.
    what = "odds" if test.method == "breslow-day" else "gap"
    verb = "differ" if what == "odds" else "differs"
    name = f"{what}_{verb}" if rejects_at(pvalue, _LEVEL) else f"{what}_may_be_one"
    text = SENTENCES[name].format(about=about, tested_by=how)
    return Note(name.replace("_", "-"), text, subject, scope)
