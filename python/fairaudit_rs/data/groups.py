"""Name groups, and choose those that are compared."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError, DataError
from .cells import Cells
from .labels import GroupKey, is_missing_text, label_matches

MAX_PAIRS = 100_000
#: Separates the names of attributes that define groups jointly.
_AND = " and "


def choose_groups(cells: Cells, groups: Sequence[Any] | None, reference: Any) -> list[GroupKey]:
    """Return the groups to compare, with the reference group last."""
    existing = list(cells.group_sizes())
    if groups is None:
        chosen = existing
    else:
        if not arguments.is_listing(groups):
            raise ArgumentTypeError(
                f"groups is {groups!r}; accepted: a sequence of groups", argument="groups"
            )
        chosen = [find_group("groups", label, existing) for label in groups]
        if len(set(chosen)) < len(chosen):
            raise ArgumentError(
                f"groups is {list(groups)!r}; a group is named twice. Name each once.",
                argument="groups",
            )
    if len(chosen) < 2 < 1 + len(existing):
        raise DataError(
            f"only one group: groups is {list(groups or [])!r}; a comparison needs at least two",
            argument="groups",
        )
    if len(chosen) < 2:
        features = " and ".join(cells.sensitive_features)
        raise DataError(
            f"only one group: {features} is {group_name(group_label(chosen[0]))!r} in every row; a "
            "comparison needs at least two"
            if chosen
            else f"no group: {features} is missing in every row",
            argument="sensitive_features",
        )
    if reference is not None:
        key = find_group("reference", reference, chosen)
        # "other minus reference": the reference comes last.
        chosen = [other for other in chosen if other != key] + [key]
    return chosen


def find_group(argument: str, wanted: Any, existing: Sequence[GroupKey]) -> GroupKey:
    """Return the group that an argument names; raise if there is none."""
    parts = wanted if isinstance(wanted, tuple | list) else (wanted,)
    parts = tuple(part.item() if isinstance(part, np.generic) else part for part in parts)
    for key in existing:
        if len(key) == len(parts) and all(map(label_matches, key, parts)):
            return key
    for key in existing:
        name = group_name(group_label(key))
        if isinstance(wanted, str) and wanted in (name, " & ".join(map(str, key))):
            return key
    names = [repr(group_label(key)) for key in existing]
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    hint = (
        ". This text is read as a missing value; missing='keep_texts' makes it a group"
        if any(map(is_missing_text, parts))
        else ""
    )
    raise DataError(
        f"{argument} names {wanted!r}, which is no group of the data; groups: {shown}{hint}",
        argument=argument,
    )


def pairs_of(keys: Sequence[GroupKey], reference: Any) -> list[tuple[int, int]]:
    """Return the pairs of groups to compare, by position."""
    if reference is not None:
        return [(i, len(keys) - 1) for i in range(len(keys) - 1)]
    n_pairs = len(keys) * (len(keys) - 1) // 2
    if n_pairs > MAX_PAIRS:
        raise DataError(
            f"{len(keys):,} groups make {n_pairs:,} pairs; accepted: at most {MAX_PAIRS:,} pairs. "
            "Compare with one group by reference=, or name some groups by groups=",
            argument="groups",
            mentions=("reference",),
        )
    return list(combinations(range(len(keys)), 2))


def group_label(key: GroupKey) -> Any:
    """Return the group as users name it: a label, or a tuple of several."""
    return key[0] if len(key) == 1 else key


def group_name(group: Any, attribute: str = "") -> str:
    """Return the display name of a group: its label, or several joined by "&".

    Bare numbers and booleans are preceded by the name of their attribute, if given: black=0. The
    names of several attributes in ``attribute`` are joined by "and".
    """
    if not isinstance(group, tuple):
        return _named(group, attribute)
    attributes = attribute.split(_AND)
    if len(attributes) != len(group):
        attributes = [""] * len(group)
    return " & ".join(map(_named, group, attributes))


def attribute_name(attributes: Sequence[str]) -> str:
    """Return the joint name of several attributes."""
    return _AND.join(attributes)


def _named(label: Any, attribute: str) -> str:
    return escape_controls(f"{attribute}={label}" if attribute and _is_bare(label) else str(label))


def _is_bare(label: Any) -> bool:
    """Return whether a label is a number or a boolean, also as text."""
    if not isinstance(label, str):
        return isinstance(label, bool | int | float)
    if label.strip().lower() in ("true", "false"):
        return True
    try:
        float(label)
    except ValueError:
        return False
    return True


def escape_controls(text: str, kept: str = "") -> str:
    """Escape characters that could control a terminal or reorder a line, except those in ``kept``.

    These are control characters, line ends, direction marks, lone surrogates and the like.
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter in kept or unicodedata.category(letter) == "Zs"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )
