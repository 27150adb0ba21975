"""How a row becomes its counterfactual: other levels of the attribute, or the user's own map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.groups import find_group, group_label, group_name
from ..data.labels import GroupKey
from ..errors import ArgumentError, ArgumentTypeError, DataError, FairAuditError, FunctionError
from .attribute import AttributeLevels
from .distinct_rows import row_words
from .forms import FeatureForm, RowNumbers, check_like, copy_features, form_of

#: Levels that are tried by themselves: each is one more call of the model for every row.
MAX_LEVELS = 50


class Flips(ABC):
    """Counterfactuals of rows, one or several for each."""

    #: How many each row has.
    n_flips: int
    #: The largest number of different ones that a row has.
    n_different: int

    @abstractmethod
    def flipped_rows(self, flip: int, rows: RowNumbers) -> Any:
        """Return counterfactuals of some rows, in the form of X."""

    @property
    def forms(self) -> tuple[FeatureForm, ...]:
        """Further columns that distinguish rows: rows that are equal in X may have other flips."""
        return ()

    @property
    @abstractmethod
    def kept(self) -> NDArray[np.bool_]:
        """Which rows have a counterfactual."""

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """Notes on the counterfactuals."""


@dataclass(frozen=True, eq=False)
class LevelFlips(Flips):
    """Rows with other levels of the attribute: its columns get the values of rows that have it."""

    form: FeatureForm
    attribute: AttributeLevels
    #: By level and flip the level that it becomes; -1 for levels whose rows are left out.
    targets: NDArray[np.int64]

    @property
    def n_flips(self) -> int:  # type: ignore[override]
        """How many each row has; one with fewer has the first one again."""
        return int(self.targets.shape[1])

    @property
    def n_different(self) -> int:  # type: ignore[override]
        """The largest number of different ones that a row has."""
        return max(len(set(targets)) for targets in self.targets.tolist())

    def flipped_rows(self, flip: int, rows: RowNumbers) -> Any:
        """Return counterfactuals of some rows, in the form of X."""
        source = self.attribute.first[self.targets[self.attribute.code[rows], flip]]
        return self.form.take(rows, dict.fromkeys(self.attribute.places, source))

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which rows have a counterfactual."""
        return (self.targets[:, 0] >= 0)[self.attribute.code]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the counterfactuals."""
        notes = []
        for level in np.flatnonzero(self.targets[:, 0] < 0).tolist():
            name = group_name(group_label(self.attribute.keys[level]))
            n_rows = int(np.count_nonzero(self.attribute.code == level))
            notes.append(
                f"{n_rows:,} rows with {self.attribute.name} {name} have no flip and are left out"
            )
        if self.n_different > 1:
            notes.append(
                _several(f"up to {self.n_different} other levels of {self.attribute.name}")
            )
        return tuple(notes)


@dataclass(frozen=True, eq=False)
class MappedFlips(Flips):
    """Counterfactual rows as the user's function gave them."""

    maps: tuple[FeatureForm, ...]

    @property
    def n_flips(self) -> int:  # type: ignore[override]
        """How many each row has."""
        return len(self.maps)

    @property
    def n_different(self) -> int:  # type: ignore[override]
        """The largest number of different ones that a row has."""
        return len(self.maps)

    def flipped_rows(self, flip: int, rows: RowNumbers) -> Any:
        """Return counterfactuals of some rows, in the form of X."""
        return self.maps[flip].take(rows)

    @property
    def forms(self) -> tuple[FeatureForm, ...]:
        """Further columns that distinguish rows."""
        return self.maps

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which rows have a counterfactual: all."""
        return np.ones(self.maps[0].n_rows, dtype=bool)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the counterfactuals."""
        return (
            (_several(f"{len(self.maps)} counterfactuals of flip"),) if len(self.maps) > 1 else ()
        )


def _several(what: str) -> str:
    return (
        f"the discrimination of a row is the largest over {what}: the largest of several is "
        "another quantity than that of one flip, and is not comparable with it"
    )


def flips_of(flip: Any, form: FeatureForm, attribute: AttributeLevels) -> LevelFlips:
    """Return the flips of an attribute of X: to each other level, or as the argument says."""
    keys = attribute.keys
    if len(keys) > MAX_LEVELS and not isinstance(flip, Mapping):
        raise DataError(
            f"attribute {attribute.name!r} has {len(keys):,} levels; accepted: at most "
            f"{MAX_LEVELS}: put values into classes first, or pass flip= as a dict, or as a "
            "function of X",
            mentions=("flip",),
        )
    if flip is None:
        n = len(keys)
        # The next level, the one after it, ...: so that every flip is one of every row.
        targets = (np.arange(n)[:, None] + np.arange(1, n)) % n
    elif isinstance(flip, Mapping):
        targets = _by_level(flip, keys)
    elif isinstance(flip, list):
        raise ArgumentTypeError(
            f"flip is {flip!r}; accepted: None, a level, a dict of levels by level, or a function "
            "of X and the level of each row",
            argument="flip",
        )
    else:
        level = keys.index(find_group("flip", flip, keys))
        targets = np.full((len(keys), 1), level, dtype=np.int64)
        targets[level] = -1
    return LevelFlips(form, attribute, targets.astype(np.int64))


def _by_level(flip: Mapping[Any, Any], keys: Sequence[GroupKey]) -> NDArray[np.int64]:
    """Return targets from a dict of levels by level."""
    wanted: dict[int, list[int]] = {}
    for given, to in flip.items():
        level = keys.index(find_group("flip", given, keys))
        several = to if isinstance(to, list) else [to]
        targets = [keys.index(find_group("flip", rows, keys)) for rows in several]
        if level in wanted:
            raise ArgumentError(
                f"flip names {given!r} twice; accepted: each level once", argument="flip"
            )
        if level in targets:
            raise ArgumentError(f"flip sends {given!r} to itself; accepted: other levels")
        if not targets or len(set(targets)) < len(targets):
            raise ArgumentError(
                f"flip sends {given!r} to {to!r}; accepted: other levels, each once"
            )
        wanted[level] = targets
    if not wanted:
        raise ArgumentError("flip is empty; accepted: a dict of levels by level", argument="flip")
    most = max(map(len, wanted.values()))
    found = np.full((len(keys), most), -1, dtype=np.int64)
    for level, targets in wanted.items():
        found[level] = targets + targets[:1] * (most - len(targets))
    return found


def mapped_flips(flip: Callable[[Any, Any], Any], form: FeatureForm, levels: Any) -> MappedFlips:
    """Return the counterfactuals that the user's function makes of X and the level of each row."""
    try:
        made = flip(copy_features(form.given), levels)
    except FairAuditError:
        raise
    except Exception as error:
        raise FunctionError(f"flip failed on X: {type(error).__name__}: {error}") from error
    one = not isinstance(made, list | tuple) or isinstance(form.given, list | tuple)
    several = [made] if one else list(made)
    if not several:
        raise DataError(
            "flip gives no counterfactuals; accepted: rows like X, or a list of such",
            argument="flip",
        )
    forms: list[FeatureForm] = []
    seen: list[tuple[NDArray[np.uint64], ...]] = []
    everything = np.arange(form.n_rows, dtype=np.int64)
    for at, X in enumerate(several):
        called = "flip's X" if one else f"flip's X number {at}"
        other = form_of(X, called)
        check_like(other, form, called)
        words = row_words([other], everything)
        if not any(all(map(np.array_equal, words, before)) for before in seen):
            forms.append(other)
            seen.append(words)
    return MappedFlips(tuple(forms))
