"""How features become columns of numbers, of the rows of an audit and of rows that come later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..data.columns import Coded, Column
from ..errors import ColumnError, DataError
from .features import Feature, Kind

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

#: Levels of a categorical feature: more are to be put into classes first.
_MOST_LEVELS = 200
_MISSING = "missing"


class Code(Protocol):
    """How a feature becomes columns."""

    @property
    def name(self) -> str:
        """The feature's name."""
        ...

    @property
    def kind(self) -> Kind:
        """What the columns are."""
        ...

    @property
    def levels(self) -> tuple[str, ...]:
        """What they stand for."""
        ...

    def columns(self, data: Mapping[str, Column], rows: Rows | None) -> list[Floats]:
        """Return its columns, of some rows or all."""
        ...

    def values(self, coded: Floats) -> dict[str, NDArray[np.generic]]:
        """Return what its columns stand for, by the names of the data."""
        ...


@dataclass(frozen=True)
class NumberCode:
    """A number: 0 and 1 for the lower and the higher of two values, else as it is."""

    name: str
    kind: Kind
    levels: tuple[str, ...]
    #: The two values of a binary feature; 0 and 1 leave a number as it is.
    ends: tuple[float, float] = (0.0, 1.0)

    def columns(self, data: Mapping[str, Column], rows: Rows | None) -> list[Floats]:
        """Return its column, of some rows or all."""
        found = numbers(self.name, data[self.name])
        low, high = self.ends
        found = found if rows is None else found[rows]
        return [found if (low, high) == (0.0, 1.0) else (found - low) / (high - low)]

    def values(self, coded: Floats) -> dict[str, NDArray[np.generic]]:
        """Return the numbers."""
        low, high = self.ends
        if self.kind == "continuous":
            return {self.name: coded[:, 0]}
        return {self.name: np.where(coded[:, 0] > 0, high, low)}


@dataclass(frozen=True)
class TextCode:
    """Text or truth: a column for each level, or one for the last of two."""

    name: str
    kind: Kind
    levels: tuple[str, ...]
    #: Levels as the data have them.
    labels: tuple[str | bool | None, ...]

    def columns(self, data: Mapping[str, Column], rows: Rows | None) -> list[Floats]:
        """Return a column for each level; a level that was not seen is in none of them."""
        named, codes = _levels(data[self.name])
        codes = codes if rows is None else codes[rows]
        place = np.array([*(_place(self.levels, name) for name in named), -1])[codes]
        if self.kind == "binary":
            # The first level is the high one; one that was not seen is between both.
            return [np.array([1.0, 0.0, 0.5])[place]]
        return [(place == k).astype(np.float64) for k in range(len(self.levels))]

    def values(self, coded: Floats) -> dict[str, NDArray[np.generic]]:
        """Return the levels as the data have them."""
        place = np.where(coded[:, 0] > 0, 0, 1) if self.kind == "binary" else coded.argmax(axis=1)
        place = np.minimum(place, len(self.labels) - 1)
        truths = all(isinstance(label, bool) for label in self.labels)
        return {self.name: np.array(self.labels, dtype=bool if truths else object)[place]}


@dataclass(frozen=True)
class SetCode:
    """Columns of 0 and 1 of which at most one is 1: the levels of one feature."""

    name: str
    kind: Kind
    levels: tuple[str, ...]
    members: tuple[str, ...]

    def columns(self, data: Mapping[str, Column], rows: Rows | None) -> list[Floats]:
        """Return the members, and what is in none of them where it is a level."""
        found = [numbers(member, data[member]) for member in self.members]
        found = found if rows is None else [column[rows] for column in found]
        if len(self.levels) > len(self.members):
            found.append(1.0 - np.sum(found, axis=0))
        return found

    def values(self, coded: Floats) -> dict[str, NDArray[np.generic]]:
        """Return the members."""
        return {member: coded[:, at] for at, member in enumerate(self.members)}


@dataclass(frozen=True, kw_only=True)
class CombinedCode:
    """Several features as one: its levels are the combinations of theirs."""

    name: str
    kind: Kind
    levels: tuple[str, ...]
    members: tuple[Code, ...]
    #: By level, the place of each member's level.
    combinations: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, name: str, members: tuple[Code, ...], data: Mapping[str, Column]) -> CombinedCode:
        """Find the combinations that occur."""
        places = np.column_stack([_places(member, data, None) for member in members])
        found = tuple(tuple(int(place) for place in row) for row in np.unique(places, axis=0))
        levels = tuple(
            ", ".join(
                f"{member.name} {member.levels[place]}"
                for member, place in zip(members, combination, strict=True)
            )
            for combination in found
        )
        _check_levels(name, len(levels))
        return cls(
            name=name, kind="categorical", levels=levels, members=members, combinations=found
        )

    def columns(self, data: Mapping[str, Column], rows: Rows | None) -> list[Floats]:
        """Return a column for each combination; one that was not seen is in none of them."""
        places = np.column_stack([_places(member, data, rows) for member in self.members])
        return [
            np.asarray((places == combination).all(axis=1), dtype=np.float64)
            for combination in self.combinations
        ]

    def values(self, coded: Floats) -> dict[str, NDArray[np.generic]]:
        """Return what the members are."""
        place = np.array(self.combinations)[coded.argmax(axis=1)]
        found: dict[str, NDArray[np.generic]] = {}
        for at, member in enumerate(self.members):
            if member.kind == "binary":
                own = 1.0 - place[:, at, None]
            else:
                own = np.eye(len(member.levels))[place[:, at]]
            found |= member.values(own)
        return found


def _places(code: Code, data: Mapping[str, Column], rows: Rows | None) -> NDArray[np.int64]:
    """Return the place of every row's level; -1 where it has none."""
    columns = np.column_stack(code.columns(data, rows))
    if code.kind == "binary":
        known = (columns[:, 0] == 0) | (columns[:, 0] == 1)
        return np.where(known, 1 - columns[:, 0], -1).astype(np.int64)
    return np.where(columns.any(axis=1), columns.argmax(axis=1), -1)


def _place(levels: Sequence[str], name: str) -> int:
    return levels.index(name) if name in levels else -1


@dataclass(frozen=True, eq=False)
class Coding:
    """The features of all rows of an audit, and how they become columns."""

    data: Mapping[str, Column]
    codes: tuple[Code, ...]

    @classmethod
    def of(cls, data: Mapping[str, Column], sets: Mapping[str, Sequence[str]]) -> Coding:
        """Find out what the columns are; several of them are one feature by ``sets``."""
        codes: list[Code] = [_set_code(name, tuple(sets[name]), data) for name in sets]
        used = {member for members in sets.values() for member in members}
        codes += [_code(name, column) for name, column in data.items() if name not in used]
        return cls(data, tuple(codes))

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """What the columns are."""
        features, first = [], 0
        for code in self.codes:
            width = len(code.levels) if code.kind == "categorical" else 1
            at = tuple(range(first, first + width))
            features.append(Feature(name=code.name, kind=code.kind, columns=at, levels=code.levels))
            first += width
        return tuple(features)

    def matrix(self, rows: Rows) -> Floats:
        """Return the columns of some rows of the audit."""
        return self._stacked(self.data, rows)

    def encode(self, data: Mapping[str, Column], rows: Rows | None = None) -> Floats:
        """Return the columns of other rows, some of them or all."""
        names = [name for name in self.data if name not in data]
        if names:
            raise ColumnError(f"X has no column {names[0]!r}; the audit has {', '.join(self.data)}")
        return self._stacked(data, rows)

    def without_rows(self) -> Coding:
        """Return the coding alone, for rows that come later."""
        nothing: dict[str, Column] = {name: np.zeros(0) for name in self.data}
        return Coding(nothing, self.codes)

    def decode(self, matrix: Floats) -> dict[str, NDArray[np.generic]]:
        """Return what coded rows stand for, by column of the data."""
        found: dict[str, NDArray[np.generic]] = {}
        for code, feature in zip(self.codes, self.features, strict=True):
            found |= code.values(matrix[:, feature.columns])
        return {name: found[name] for name in self.data}

    def _stacked(self, data: Mapping[str, Column], rows: Rows | None) -> Floats:
        parts = [column for code in self.codes for column in code.columns(data, rows)]
        return np.ascontiguousarray(np.column_stack(parts))


def _set_code(name: str, members: tuple[str, ...], data: Mapping[str, Column]) -> Code:
    lacking = [member for member in members if member not in data]
    if lacking or not members:
        raise ColumnError(f"sets names {(lacking or [name])[0]!r} in {name!r}, which is no feature")
    codes = tuple(_code(member, data[member]) for member in members)
    for code in codes:
        if code.kind == "continuous":
            raise DataError(
                f"sets: {code.name!r} in {name!r} is continuous; accepted: features of few values, "
                "put it into classes first"
            )
    if all(code.kind == "binary" and set(code.levels) <= {"0", "1"} for code in codes):
        sums = np.sum([numbers(member, data[member]) for member in members], axis=0)
        if (sums <= 1).all():
            levels = members if (sums == 1).all() else (*members, f"none of {name}")
            return SetCode(name, "categorical", levels, members)
    return CombinedCode.of(name, codes, data)


def _code(name: str, column: Column) -> Code:
    text = (
        bool(len(column.labels)) and isinstance(column.labels[0], str)
        if isinstance(column, Coded)
        else column.dtype.kind not in "iuf"
    )
    if not text:
        distinct = np.unique(numbers(name, column))
        if len(distinct) > 2:
            return NumberCode(name, "continuous", ())
        low, high = float(distinct[0]), float(distinct[-1])
        # A constant is 0.
        ends = (low, high) if low < high else (low, low + 1.0)
        return NumberCode(name, "binary", (f"{high:g}", f"{low:g}"), ends)
    levels, codes = _levels(column)
    present = set(np.unique(codes).tolist())
    levels = [level for code, level in enumerate(levels) if code in present]
    _check_levels(name, len(levels))
    truths = not isinstance(column, Coded) and column.dtype.kind == "b"
    labels: list[str | bool | None] = [level == "True" if truths else level for level in levels]
    if isinstance(column, Coded) and levels[-1] == _MISSING and (column.codes < 0).any():
        labels[-1] = None
    if len(levels) <= 2:
        return TextCode(name, "binary", tuple(levels[::-1]), tuple(labels[::-1]))
    return TextCode(name, "categorical", tuple(levels), tuple(labels))


def _check_levels(name: str, n_levels: int) -> None:
    if n_levels > _MOST_LEVELS:
        raise DataError(
            f"feature {name!r} has {n_levels:,} levels; accepted: at most {_MOST_LEVELS}, put them "
            "into classes first"
        )


def numbers(name: str, column: Column) -> Floats:
    """Return a column of numbers, none missing."""
    if isinstance(column, Coded):
        try:
            table = np.array([float(value) for value in column.labels] + [np.nan])
        except (TypeError, ValueError):
            raise DataError(f"feature {name!r} holds text; accepted here: numbers") from None
        values = table[column.codes]
    else:
        values = np.asarray(column, dtype=np.float64)
    if not np.isfinite(values).all():
        row = int((~np.isfinite(values)).argmax())
        raise DataError(
            f"feature {name!r} is missing or infinite in row {row}; accepted: finite numbers, or "
            "text, of which a missing value is a level of its own"
        )
    return values


def _levels(column: Column) -> tuple[list[str], NDArray[np.int64]]:
    """Return the levels in order, missing last, and the code of every row."""
    if not isinstance(column, Coded):
        distinct, codes = np.unique(column, return_inverse=True)
        return [str(value) for value in distinct], codes.ravel().astype(np.int64)
    named = [str(value) for value in column.labels]
    order = sorted(range(len(named)), key=named.__getitem__)
    place = np.empty(len(named) + 1, dtype=np.int64)
    place[order] = np.arange(len(named))
    place[len(named)] = len(named)
    return [*(named[i] for i in order), _MISSING], place[column.codes]
