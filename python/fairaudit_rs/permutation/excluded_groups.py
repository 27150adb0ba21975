"""Groups that are not compared: they have no value of the metric, or too few rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..data.groups import group_label, group_name
from ..data.labels import GroupKey
from ..errors import ArgumentTypeError, NotMeasurableError

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class ExcludedGroup:
    """A group that is not compared, and why."""

    group: Any
    n_rows: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class ExclusionRule(Generic[Made]):
    """Which groups of a metric are left out, and what is made of the others."""

    #: Makes the problem of some groups; raises when one of them has no value.
    make: Callable[[Sequence[GroupKey]], Made]
    metric: str
    sizes: Mapping[GroupKey, int]
    #: Whether the last group is the one that all others are compared with.
    with_reference: bool
    undefined: str
    min_group_size: int | None

    def split_off(self, keys: Sequence[GroupKey]) -> tuple[Made, tuple[ExcludedGroup, ...]]:
        """Return the problem of the groups that can be compared, and those that are left out."""
        wanted, found = list(keys), dict[GroupKey, str]()
        fewest = self.min_group_size or 0
        for key in wanted:
            if not self.sizes[key]:
                found[key] = "only rows in clusters of several groups, which are dropped"
            elif self.sizes[key] < fewest:
                found[key] = f"fewer rows than min_group_size={fewest:,}"
        empty = {i: found[key] for i, key in enumerate(wanted) if not self.sizes[key]}
        if self.undefined == "raise":
            refuse_groups(empty, wanted, [group_name(group_label(key)) for key in wanted])
        while True:
            kept = self._checked(wanted, found)
            try:
                made = self.make(kept)
            except NotMeasurableError as error:
                unmeasured = {key: error.reasons.get(group_label(key)) for key in kept}
                known = {key: why for key, why in unmeasured.items() if why is not None}
                if self.undefined == "raise" or not known:
                    raise
                found |= known
            else:
                return made, tuple(self._left_out(key, found) for key in wanted if key in found)

    def _checked(self, keys: Sequence[GroupKey], found: Mapping[GroupKey, str]) -> list[GroupKey]:
        """Return the groups that are kept, or raise when they make no comparison."""
        kept = [key for key in keys if key not in found]
        if self.with_reference and keys[-1] in found:
            left = self._left_out(keys[-1], found)
            raise NotMeasurableError(
                f"reference is {group_name(left.group)!r}, which is left out: {left.n_rows:,} "
                f"rows, {left.reason}; accepted: a group in which {self.metric} can be measured",
                {left.group: left.reason},
                argument="reference",
            )
        if len(kept) < 2:
            every = [self._left_out(key, found) for key in keys if key in found]
            raise NotMeasurableError(
                f"{len(kept)} of {len(keys):,} groups can be compared by {self.metric}; a "
                f"comparison needs at least two; {note_on_excluded(every)}",
                {group.group: group.reason for group in every},
            )
        return kept

    def _left_out(self, key: GroupKey, found: Mapping[GroupKey, str]) -> ExcludedGroup:
        return ExcludedGroup(group=group_label(key), n_rows=self.sizes[key], reason=found[key])


def refuse_groups(
    shortages: Mapping[int, str], keys: Sequence[GroupKey], names: Sequence[str]
) -> None:
    """Raise when there are groups that cannot be compared, by position; names them all."""
    if not shortages:
        return
    found = [f"group {names[i]!r} has {why}" for i, why in sorted(shortages.items())]
    raise NotMeasurableError(
        f"{'; '.join(found)}. Name the groups to compare with groups=, leave out those without "
        "a value with undefined='skip', or choose another metric",
        {group_label(keys[i]): why for i, why in shortages.items()},
        mentions=(
            "groups",
            "undefined",
        ),
    )


def note_on_excluded(left_out: Sequence[ExcludedGroup]) -> str:
    """Say which groups are left out, with their rows and why."""
    named = "; ".join(
        f"{group_name(group.group)} ({group.n_rows:,} rows: {group.reason})" for group in left_out
    )
    return f"left out: {named}"


def with_left_out(
    rows: list[dict[str, Any]], left_out: Sequence[ExcludedGroup], named: Callable[[Any], str]
) -> list[dict[str, Any]]:
    """Return the rows of a table of groups with those that are left out, and why they are."""
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
    """Refuse what says which groups are left out where there is none to leave out."""
    for name, given in (
        ("undefined", undefined != "raise"),
        ("min_group_size", min_group_size is not None),
    ):
        if given:
            raise ArgumentTypeError(f"{name} {why}")
