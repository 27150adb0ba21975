"""Excludes groups from a comparison that have no value of the metric, or too few rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..data.groups import group_label, group_name
from ..data.labels import GroupKey
from ..errors import ArgumentTypeError, NotMeasurableError
from ..report.notes import Note

ProblemT = TypeVar("ProblemT")


@dataclass(frozen=True, kw_only=True)
class ExcludedGroup:
    """A group that is not compared, and why."""

    group: Any
    n_rows: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class ExclusionRule(Generic[ProblemT]):
    """The rule that excludes groups of a metric, and how the others become a problem."""

    #: Makes the problem for some groups; raises `NotMeasurableError` if one has no value.
    make: Callable[[Sequence[GroupKey]], ProblemT]
    metric: str
    sizes: Mapping[GroupKey, int]
    #: Whether the last group is the reference.
    with_reference: bool
    undefined: str
    min_group_size: int | None

    def split_off(self, keys: Sequence[GroupKey]) -> tuple[ProblemT, tuple[ExcludedGroup, ...]]:
        """Return the problem of the groups that can be compared, and the excluded groups."""
        wanted, reasons = list(keys), dict[GroupKey, str]()
        fewest = self.min_group_size or 0
        for key in wanted:
            if not self.sizes[key]:
                reasons[key] = "only rows in clusters of several groups, which are dropped"
            elif self.sizes[key] < fewest:
                reasons[key] = f"fewer rows than min_group_size={fewest:,}"
        empty = {i: reasons[key] for i, key in enumerate(wanted) if not self.sizes[key]}
        if self.undefined == "raise":
            refuse_groups(empty, wanted, [group_name(group_label(key)) for key in wanted])
        while True:
            kept = self._check_kept(wanted, reasons)
            try:
                problem = self.make(kept)
            except NotMeasurableError as error:
                unmeasured = {key: error.reasons.get(group_label(key)) for key in kept}
                known = {key: why for key, why in unmeasured.items() if why is not None}
                if self.undefined == "raise" or not known:
                    raise
                reasons |= known
            else:
                excluded = (self._exclude(key, reasons) for key in wanted if key in reasons)
                return problem, tuple(excluded)

    def _check_kept(
        self, keys: Sequence[GroupKey], reasons: Mapping[GroupKey, str]
    ) -> list[GroupKey]:
        """Return the groups that are not excluded, or raise if they cannot be compared."""
        kept = [key for key in keys if key not in reasons]
        if self.with_reference and keys[-1] in reasons:
            reference = self._exclude(keys[-1], reasons)
            raise NotMeasurableError(
                f"reference is {group_name(reference.group)!r}, which is excluded "
                f"({reference.n_rows:,} rows: {reference.reason}). Choose a group in which "
                f"{self.metric} can be measured.",
                {reference.group: reference.reason},
                argument="reference",
            )
        if len(kept) < 2:
            every = [self._exclude(key, reasons) for key in keys if key in reasons]
            raise NotMeasurableError(
                f"{len(kept)} of {len(keys):,} groups can be compared by {self.metric}, and a "
                f"comparison needs two. Excluded: {_list_excluded(every)}",
                {group.group: group.reason for group in every},
                argument="sensitive_features",
            )
        return kept

    def _exclude(self, key: GroupKey, reasons: Mapping[GroupKey, str]) -> ExcludedGroup:
        return ExcludedGroup(group=group_label(key), n_rows=self.sizes[key], reason=reasons[key])


def refuse_groups(
    shortages: Mapping[int, str], keys: Sequence[GroupKey], names: Sequence[str]
) -> None:
    """Raise if some groups (given by position) cannot be compared; the message names them all."""
    if not shortages:
        return
    lines = [f"group {names[i]!r} has {why}" for i, why in sorted(shortages.items())]
    raise NotMeasurableError(
        f"{'; '.join(lines)}. Name the groups to compare with groups=, exclude those without "
        "a value with undefined='skip', or choose another metric.",
        {group_label(keys[i]): why for i, why in shortages.items()},
        mentions=("groups", "undefined"),
    )


def notes_on_excluded(left_out: Sequence[ExcludedGroup]) -> list[Note]:
    """Return the note of a result on its excluded groups; no note if there are none."""
    if not left_out:
        return []
    names = tuple(group_name(group.group) for group in left_out)
    return [Note("excluded-groups", f"excluded: {_list_excluded(left_out)}", names)]


def _list_excluded(excluded: Sequence[ExcludedGroup]) -> str:
    return "; ".join(
        f"{group_name(group.group)} ({group.n_rows:,} rows: {group.reason})" for group in excluded
    )


def with_left_out(
    rows: list[dict[str, Any]], left_out: Sequence[ExcludedGroup], named: Callable[[Any], str]
) -> list[dict[str, Any]]:
    """Return the rows of a group table, with the excluded groups and their reasons appended."""
    if not left_out:
        return rows
    empty = {k: math.nan if isinstance(v, float) else None for k, v in rows[0].items()}
    metric = rows[0]["metric"]
    return [{**row, "reason": None} for row in rows] + [
        {
            **empty,
            "metric": metric,
            "group": named(group.group),
            "n_rows": group.n_rows,
            "reason": group.reason,
        }
        for group in left_out
    ]


def check_unused(undefined: str, min_group_size: int | None, why: str) -> None:
    """Raise if ``undefined`` or ``min_group_size`` is set where no group can be excluded."""
    for name, is_set in (
        ("undefined", undefined != "raise"),
        ("min_group_size", min_group_size is not None),
    ):
        if is_set:
            raise ArgumentTypeError(f"{name} {why}", argument=name, code="conflicting-arguments")
