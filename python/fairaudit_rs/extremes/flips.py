"""Makes the counterfactuals of rows: by other levels of the attribute, or a user's function."""

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
from ..report.notes import Note
from .attribute import AttributeLevels
from .distinct_rows import row_hashes
from .feature_tables import FeatureTable, RowNumbers, check_like, copy_features, wrap_features

#: Most levels that are flipped to by default: each costs one more model call per row.
MAX_LEVELS = 50


class Flips(ABC):
    """Counterfactuals of rows, one or several for each row."""

    #: Number of counterfactuals per row.
    n_flips: int
    #: Largest number of different counterfactuals of a row.
    n_different: int

    @abstractmethod
    def flipped_rows(self, flip: int, rows: RowNumbers) -> Any:
        """Return one counterfactual of each of some rows, in the form of X."""

    @property
    def compared_forms(self) -> tuple[FeatureTable, ...]:
        """Forms to compare besides X: rows with equal X may have different counterfactuals."""
        return ()

    @property
    @abstractmethod
    def has_counterfactual(self) -> NDArray[np.bool_]:
        """A mask of the rows that have a counterfactual."""

    @property
    @abstractmethod
    def notes(self) -> tuple[Note, ...]:
        """Notes on the counterfactuals."""


@dataclass(frozen=True, eq=False)
class LevelFlips(Flips):
    """Counterfactuals by level: the attribute's columns are copied from a row of the new level."""

    feature_table: FeatureTable
    attribute: AttributeLevels
    #: ``targets[level, flip]`` is the new level; -1 for levels whose rows are excluded.
    targets: NDArray[np.int64]

    @property
    def n_flips(self) -> int:  # type: ignore[override]
        """Number of counterfactuals per row; rows with fewer repeat their first."""
        return int(self.targets.shape[1])

    @property
    def n_different(self) -> int:  # type: ignore[override]
        """Largest number of different counterfactuals of a row."""
        return max(len(set(targets)) for targets in self.targets.tolist())

    def flipped_rows(self, flip: int, rows: RowNumbers) -> Any:
        """Return one counterfactual of each of some rows, in the form of X."""
        source = self.attribute.first[self.targets[self.attribute.code[rows], flip]]
        return self.feature_table.take(rows, dict.fromkeys(self.attribute.places, source))

    @property
    def has_counterfactual(self) -> NDArray[np.bool_]:
        """A mask of the rows that have a counterfactual."""
        return (self.targets[:, 0] >= 0)[self.attribute.code]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the counterfactuals."""
        notes = []
        for level in np.flatnonzero(self.targets[:, 0] < 0).tolist():
            name = group_name(group_label(self.attribute.keys[level]))
            n_rows = int(np.count_nonzero(self.attribute.code == level))
            notes.append(
                Note(
                    "rows-without-flip",
                    f"{n_rows:,} rows with {self.attribute.name} {name} have no flip and are left "
                    "out",
                    (name,),
                )
            )
        if self.n_different > 1:
            notes.append(
                _several_flips_note(
                    f"up to {self.n_different} other levels of {self.attribute.name}"
                )
            )
        return tuple(notes)


@dataclass(frozen=True, eq=False)
class MappedFlips(Flips):
    """Counterfactual rows that a user's function returned."""

    counterfactuals: tuple[FeatureTable, ...]

    @property
    def n_flips(self) -> int:  # type: ignore[override]
        """Number of counterfactuals per row."""
        return len(self.counterfactuals)

    @property
    def n_different(self) -> int:  # type: ignore[override]
        """Largest number of different counterfactuals of a row."""
        return len(self.counterfactuals)

    def flipped_rows(self, flip: int, rows: RowNumbers) -> Any:
        """Return one counterfactual of each of some rows, in the form of X."""
        return self.counterfactuals[flip].take(rows)

    @property
    def compared_forms(self) -> tuple[FeatureTable, ...]:
        """Forms to compare besides X."""
        return self.counterfactuals

    @property
    def has_counterfactual(self) -> NDArray[np.bool_]:
        """A mask of the rows that have a counterfactual: all of them."""
        return np.ones(self.counterfactuals[0].n_rows, dtype=bool)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the counterfactuals."""
        return (
            (_several_flips_note(f"{len(self.counterfactuals)} counterfactuals of flip"),)
            if len(self.counterfactuals) > 1
            else ()
        )


def _several_flips_note(what: str) -> Note:
    return Note(
        "largest-of-several-flips",
        f"the discrimination of a row is the largest over {what}: the largest of several is "
        "another quantity than that of one flip, and is not comparable with it",
    )


def flips_of(flip: Any, feature_table: FeatureTable, attribute: AttributeLevels) -> LevelFlips:
    """Return the flips of an attribute of X: to every other level, or as `flip` asks."""
    keys = attribute.keys
    if len(keys) > MAX_LEVELS and not isinstance(flip, Mapping):
        raise DataError(
            f"attribute {attribute.name!r} has {len(keys):,} levels; accepted: at most "
            f"{MAX_LEVELS}. Group the values into classes first, or pass flip= as a dict or as a "
            "function of X.",
            argument="attribute",
            mentions=("flip",),
            code="too-many-values",
        )
    if flip is None:
        n = len(keys)
        # Flip i moves each level i + 1 places on, cyclically, so each flip applies to every row.
        targets = (np.arange(n)[:, None] + np.arange(1, n)) % n
    elif isinstance(flip, Mapping):
        targets = _targets_from_dict(flip, keys)
    elif isinstance(flip, list):
        raise ArgumentTypeError(
            f"flip is {flip!r}; accepted: None, a level, a dict that maps levels to levels, or a "
            "function of X and the level of each row",
            argument="flip",
        )
    else:
        level = keys.index(find_group("flip", flip, keys))
        targets = np.full((len(keys), 1), level, dtype=np.int64)
        targets[level] = -1
    return LevelFlips(feature_table, attribute, targets.astype(np.int64))


def _targets_from_dict(flip: Mapping[Any, Any], keys: Sequence[GroupKey]) -> NDArray[np.int64]:
    """Return targets from a dict that maps each level to the level or levels it becomes."""
    wanted: dict[int, list[int]] = {}
    for given, to in flip.items():
        level = keys.index(find_group("flip", given, keys))
        several = to if isinstance(to, list) else [to]
        targets = [keys.index(find_group("flip", rows, keys)) for rows in several]
        if level in wanted:
            raise ArgumentError(
                f"flip names {given!r} twice. Name each level once.", argument="flip"
            )
        if level in targets:
            raise ArgumentError(
                f"flip maps {given!r} to itself. Map each level to other levels.", argument="flip"
            )
        if not targets or len(set(targets)) < len(targets):
            raise ArgumentError(
                f"flip maps {given!r} to {to!r}; accepted: other levels, each once",
                argument="flip",
            )
        wanted[level] = targets
    if not wanted:
        raise ArgumentError(
            "flip is empty; accepted: a dict that maps levels to levels", argument="flip"
        )
    most = max(map(len, wanted.values()))
    found = np.full((len(keys), most), -1, dtype=np.int64)
    for level, targets in wanted.items():
        found[level] = targets + targets[:1] * (most - len(targets))
    return found


def mapped_flips(
    flip: Callable[[Any, Any], Any], feature_table: FeatureTable, levels: Any
) -> MappedFlips:
    """Return the counterfactuals that a user's function gives for X and the levels of its rows."""
    try:
        result = flip(copy_features(feature_table.given), levels)
    except FairAuditError:
        raise
    except Exception as error:
        raise FunctionError(
            f"flip failed on X: {type(error).__name__}: {error}", argument="flip"
        ) from error
    is_single = not isinstance(result, list | tuple) or isinstance(
        feature_table.given, list | tuple
    )
    several = [result] if is_single else list(result)
    if not several:
        raise DataError(
            "flip returns an empty list. Return rows like X, or a list of these.",
            argument="flip",
        )
    feature_tables: list[FeatureTable] = []
    seen: list[tuple[NDArray[np.uint64], ...]] = []
    everything = np.arange(feature_table.n_rows, dtype=np.int64)
    for number, X in enumerate(several, start=1):
        called = "the result of flip" if is_single else f"result {number} of flip"
        other = wrap_features(X, called, argument="flip")
        check_like(other, feature_table, called)
        hashes = row_hashes([other], everything)
        if not any(all(map(np.array_equal, hashes, before)) for before in seen):
            feature_tables.append(other)
            seen.append(hashes)
    return MappedFlips(tuple(feature_tables))
