"""Encode features as numeric columns, and decode them, for audited rows and for new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import _native, arguments
from ..data.columns import Column, EncodedColumn
from ..data.equality import EqualByValue
from ..errors import ArgumentError, ArgumentTypeError, ColumnError, DataError
from .feature import Feature, Kind
from .levels import (
    check_levels,
    levels_of,
    name_of_missing,
    ordered_levels,
    present_levels,
    with_text_codes,
)

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
#: A column as passed to native code: numbers; codes and the value of each code; or a matrix and the
#: index of the column in it.
NativeColumn: TypeAlias = NDArray[Any] | tuple[NDArray[np.uint32], list[float]] | tuple[Floats, int]


class FeatureEncoding(Protocol):
    """The encoding of one feature as columns."""

    @property
    def name(self) -> str:
        """The feature's name."""
        ...

    @property
    def kind(self) -> Kind:
        """The kind of the columns."""
        ...

    @property
    def levels(self) -> tuple[str, ...]:
        """The level that each column represents."""
        ...

    def columns(self, data: Mapping[str, Column], rows: Rows | None) -> list[Floats]:
        """Return the columns of the feature, of some rows or all."""
        ...

    def native_columns(self, data: Mapping[str, Column]) -> list[NativeColumn]:
        """Return the columns for native code, without copies where possible."""
        ...

    @property
    def raw_values_of_one(self) -> list[float]:
        """For each native column that has two values, the raw value that is encoded as 1."""
        ...

    def values(self, coded: Floats) -> dict[str, NDArray[np.generic]]:
        """Decode columns: return the original values, by column name of the data."""
        ...


@dataclass(frozen=True)
class NumberEncoding:
    """A numeric feature.

    Two distinct values are encoded as 0 (the lower) and 1 (the higher); otherwise the numbers are
    unchanged.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...]
    #: The two values of a binary feature; with 0 and 1 the numbers are unchanged.
    two_values: tuple[float, float] = (0.0, 1.0)

    def columns(self, data: Mapping[str, Column], rows: Rows | None) -> list[Floats]:
        """Return its column, of some rows or all."""
        column = check_numbers(self.name, data[self.name])
        low, high = self.two_values
        column = column if rows is None else column[rows]
        return [column if (low, high) == (0.0, 1.0) else (column - low) / (high - low)]

    def native_columns(self, data: Mapping[str, Column]) -> list[NativeColumn]:
        """Return its column unchanged."""
        return [_native_numbers(self.name, data[self.name])]

    @property
    def raw_values_of_one(self) -> list[float]:
        """The higher of two values."""
        return [self.two_values[1]]

    def values(self, coded: Floats) -> dict[str, NDArray[np.generic]]:
        """Return the numbers."""
        low, high = self.two_values
        if self.kind == "continuous":
            return {self.name: coded[:, 0]}
        return {self.name: np.where(coded[:, 0] > 0, high, low)}


@dataclass(frozen=True)
class TextEncoding:
    """Text or booleans.

    Three or more levels have a 0/1 column each. Two levels (or one) have one column, which is 1
    for the level stored first (the last in sorted order).
    """

    name: str
    kind: Kind
    levels: tuple[str, ...]
    #: The levels as they are in the data.
    labels: tuple[str | bool | None, ...]

    def columns(self, data: Mapping[str, Column], rows: Rows | None) -> list[Floats]:
        """Return a column for each level; a new level has 0 in all of them."""
        named, codes = levels_of(self.name, data[self.name], self.is_boolean)
        codes = codes if rows is None else codes[rows]
        level_index = np.array([*(self._level_index(name) for name in named), -1])[codes]
        if self.kind == "binary":
            # The first level is the high one; a new level lies halfway between both.
            return [np.array([1.0, 0.0, 0.5])[level_index]]
        return [(level_index == k).astype(np.float64) for k in range(len(self.levels))]

    def native_columns(self, data: Mapping[str, Column]) -> list[NativeColumn]:
        """Return, for each column, the text codes and the value of every code, or the booleans."""
        column = data[self.name]
        if not isinstance(column, EncodedColumn):
            return [column]
        places = [self._level_index(name) for name in (*map(str, column.labels), None)]
        n_columns = 1 if self.kind == "binary" else len(self.levels)
        return [(column.codes, [float(at == k) for at in places]) for k in range(n_columns)]

    @property
    def raw_values_of_one(self) -> list[float]:
        """1 for every column; 0 for a boolean column that is always false."""
        if self.kind == "binary":
            return [0.0 if self.labels[0] is False else 1.0]
        return [1.0] * len(self.levels)

    def values(self, coded: Floats) -> dict[str, NDArray[np.generic]]:
        """Return the levels as they are in the data."""
        place = np.where(coded[:, 0] > 0, 0, 1) if self.kind == "binary" else coded.argmax(axis=1)
        place = np.minimum(place, len(self.labels) - 1)
        return {self.name: np.array(self.labels, dtype=bool if self.is_boolean else object)[place]}

    @property
    def is_boolean(self) -> bool:
        """Return whether the data are booleans, not text."""
        return all(isinstance(label, bool) for label in self.labels)

    def _level_index(self, name: str | None) -> int:
        """Return the index of a level (None: the missing value), -1 for a new one."""
        if name is None:
            return self.labels.index(None) if None in self.labels else -1
        known = name in self.levels and self.labels[self.levels.index(name)] is not None
        return self.levels.index(name) if known else -1


@dataclass(frozen=True)
class SetEncoding:
    """Several 0/1 columns that form one feature; in each row at most one of them is 1."""

    name: str
    kind: Kind
    levels: tuple[str, ...]
    members: tuple[str, ...]

    def columns(self, data: Mapping[str, Column], rows: Rows | None) -> list[Floats]:
        """Return the member columns, and one for rows with no 1 in any of them if there are any."""
        columns = [check_numbers(member, data[member]) for member in self.members]
        columns = columns if rows is None else [column[rows] for column in columns]
        if len(self.levels) > len(self.members):
            columns.append(1.0 - np.sum(columns, axis=0))
        return columns

    def native_columns(self, data: Mapping[str, Column]) -> list[NativeColumn]:
        """Return the members, and booleans of the rows in none of them if that is a level."""
        columns = [_native_numbers(member, data[member]) for member in self.members]
        if len(self.levels) > len(self.members):
            columns.append(_count_ones(self.members, data) == 0)
        return columns

    @property
    def raw_values_of_one(self) -> list[float]:
        """1 in every column."""
        return [1.0] * len(self.levels)

    def values(self, coded: Floats) -> dict[str, NDArray[np.generic]]:
        """Return the members."""
        return {member: coded[:, at] for at, member in enumerate(self.members)}


@dataclass(frozen=True, kw_only=True)
class CombinedEncoding:
    """Several features combined into one, whose levels are combinations of their levels."""

    name: str
    kind: Kind
    levels: tuple[str, ...]
    members: tuple[FeatureEncoding, ...]
    #: For each combination, the index of its level in each member.
    combinations: tuple[tuple[int, ...], ...]

    @classmethod
    def from_members(
        cls, name: str, members: tuple[FeatureEncoding, ...], data: Mapping[str, Column]
    ) -> CombinedEncoding:
        """Return the encoding of the combinations that occur."""
        places = np.column_stack([_level_indices(member, data, None) for member in members])
        combinations = tuple(
            tuple(int(place) for place in row) for row in np.unique(places, axis=0)
        )
        levels = tuple(
            ", ".join(
                f"{member.name} {member.levels[place]}"
                for member, place in zip(members, combination, strict=True)
            )
            for combination in combinations
        )
        check_levels(name, len(levels))
        return cls(
            name=name, kind="categorical", levels=levels, members=members, combinations=combinations
        )

    def columns(self, data: Mapping[str, Column], rows: Rows | None) -> list[Floats]:
        """Return a column for each combination; a new combination has 0 in all of them."""
        places = np.column_stack([_level_indices(member, data, rows) for member in self.members])
        return [
            np.asarray((places == combination).all(axis=1), dtype=np.float64)
            for combination in self.combinations
        ]

    def native_columns(self, data: Mapping[str, Column]) -> list[NativeColumn]:
        """Return a column of booleans for each combination."""
        return [column > 0 for column in self.columns(data, None)]

    @property
    def raw_values_of_one(self) -> list[float]:
        """1 in every column."""
        return [1.0] * len(self.levels)

    def values(self, coded: Floats) -> dict[str, NDArray[np.generic]]:
        """Return the values of the members."""
        place = np.array(self.combinations)[coded.argmax(axis=1)]
        decoded: dict[str, NDArray[np.generic]] = {}
        for at, member in enumerate(self.members):
            if member.kind == "binary":
                columns = 1.0 - place[:, at, None]
            else:
                columns = np.eye(len(member.levels))[place[:, at]]
            decoded |= member.values(columns)
        return decoded


def _level_indices(
    code: FeatureEncoding, data: Mapping[str, Column], rows: Rows | None
) -> NDArray[np.int64]:
    """Return the index of the level of every row; -1 for a new level."""
    columns = np.column_stack(code.columns(data, rows))
    if code.kind == "binary":
        known = (columns[:, 0] == 0) | (columns[:, 0] == 1)
        return np.where(known, 1 - columns[:, 0], -1).astype(np.int64)
    return np.where(columns.any(axis=1), columns.argmax(axis=1), -1)


@dataclass(frozen=True, eq=False)
class FeatureEncodings(EqualByValue):
    """The features of all rows of an audit, and their encodings."""

    data: Mapping[str, Column]
    encodings: tuple[FeatureEncoding, ...]

    @classmethod
    def from_columns(
        cls,
        data: Mapping[str, Column],
        sets: Mapping[str, Sequence[str]],
        n_threads: int | None = None,
    ) -> FeatureEncodings:
        """Find the kind of each column.

        ``sets`` maps the name of a combined feature to the columns that form it.
        """
        data = {name: with_text_codes(column) for name, column in data.items()}
        codes: list[FeatureEncoding] = [_set_encoding(name, sets[name], data) for name in sets]
        used = {member for members in sets.values() for member in members}
        taken = [name for name in sets if name in data and name not in used]
        if taken:
            raise ColumnError(
                f"sets has the key {taken[0]!r}, which is the name of a feature. Choose another "
                "key.",
                argument="sets",
            )
        codes += [_encoding(name, column) for name, column in data.items() if name not in used]
        by_code = [code.native_columns(data) for code in codes]
        native = _native.InfluenceColumns(
            [column for columns in by_code for column in columns], _native.Call(n_threads)
        )
        owner = [code for code, columns in zip(codes, by_code, strict=True) for _ in columns]
        if native.not_finite is not None:
            place, row = native.not_finite
            raise _not_finite(owner[place].name, row)
        ends = native.ends
        for place, code in enumerate(owner):
            if isinstance(code, NumberEncoding):
                codes[codes.index(code)] = _number_encoding(code.name, *ends[place])
        coding = cls(data, tuple(codes))
        # Fill the cached property, which would otherwise pass over the data again.
        coding.__dict__["native"] = native
        return coding

    @cached_property
    def native(self) -> _native.InfluenceColumns:
        """The columns, held by native code."""
        columns = [column for code in self.encodings for column in code.native_columns(self.data)]
        return _native.InfluenceColumns(columns, _native.Call())

    @property
    def raw_values_of_one(self) -> list[float]:
        """For each native column that has two values, the raw value that is encoded as 1."""
        return [value for code in self.encodings for value in code.raw_values_of_one]

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The features, with the positions of their columns."""
        features, first = [], 0
        for code in self.encodings:
            width = len(code.levels) if code.kind == "categorical" else 1
            at = tuple(range(first, first + width))
            features.append(Feature(name=code.name, kind=code.kind, columns=at, levels=code.levels))
            first += width
        return tuple(features)

    def matrix(self, rows: Rows) -> Floats:
        """Return the columns of some rows of the audit."""
        return self._stacked(self.data, rows)

    def encode(self, data: Mapping[str, Column], rows: Rows | None = None) -> Floats:
        """Return the columns of rows of other data, some of them or all."""
        names = [name for name in self.data if name not in data]
        if names:
            raise ColumnError(
                f"X has no column {names[0]!r}. The audit needs the columns "
                f"{', '.join(self.data)}.",
                argument="X",
            )
        return self._stacked(data, rows)

    def without_rows(self) -> FeatureEncodings:
        """Return the encodings without the data, for later rows."""
        nothing: dict[str, Column] = {name: np.zeros(0) for name in self.data}
        return FeatureEncodings(nothing, self.encodings)

    def decode(self, matrix: Floats) -> dict[str, NDArray[np.generic]]:
        """Return the original values of encoded rows, by column of the data."""
        decoded: dict[str, NDArray[np.generic]] = {}
        for code, feature in zip(self.encodings, self.features, strict=True):
            decoded |= code.values(matrix[:, feature.columns])
        return {name: decoded[name] for name in self.data}

    def _stacked(self, data: Mapping[str, Column], rows: Rows | None) -> Floats:
        columns = [column for code in self.encodings for column in code.columns(data, rows)]
        return np.ascontiguousarray(np.column_stack(columns))


def _set_encoding(name: str, columns: Sequence[str], data: Mapping[str, Column]) -> FeatureEncoding:
    if not arguments.is_listing(columns):
        raise ArgumentTypeError(
            f"sets[{name!r}] is {columns!r}; accepted: a list of column names", argument="sets"
        )
    members = tuple(columns)
    lacking = [member for member in members if member not in data]
    if not members:
        raise ArgumentError(
            f"sets[{name!r}] is empty; accepted: a list of column names", argument="sets"
        )
    if lacking:
        raise ColumnError(
            f"sets[{name!r}] names {lacking[0]!r}, which is not a feature. The features are "
            f"{', '.join(data)}.",
            argument="sets",
        )
    codes = tuple(_encoding(member, data[member], find_two_values=True) for member in members)
    for code in codes:
        if code.kind == "continuous":
            raise DataError(
                f"sets[{name!r}] names {code.name!r}, which is continuous. Bin it into a few "
                "classes first.",
                argument="sets",
            )
    if all(isinstance(code, NumberEncoding) and code.two_values == (0.0, 1.0) for code in codes):
        n_ones = _count_ones(members, data)
        if (n_ones <= 1).all():
            levels = members if (n_ones == 1).all() else (*members, f"none of {name}")
            return SetEncoding(name, "categorical", levels, members)
    return CombinedEncoding.from_members(name, codes, data)


def _count_ones(
    members: Sequence[str], data: Mapping[str, Column]
) -> NDArray[np.unsignedinteger[Any]]:
    """Return how many columns of a set are 1 in each row."""
    n_ones = np.zeros(len(data[members[0]]), dtype=np.uint16)
    for member in members:
        n_ones += check_numbers(member, data[member]) == 1
    return n_ones


def _encoding(name: str, column: Column, *, find_two_values: bool = False) -> FeatureEncoding:
    """Return the encoding of a column.

    Numbers are first taken as continuous: native code finds those with two values in one pass over
    all columns. With ``find_two_values``, this function itself checks whether they have two.
    """
    text = (
        bool(len(column.labels)) and isinstance(column.labels[0], str)
        if isinstance(column, EncodedColumn)
        else column.dtype.kind not in "iuf"
    )
    if not text:
        if not find_two_values:
            return NumberEncoding(name, "continuous", ())
        distinct = np.unique(check_numbers(name, column))
        few = len(distinct) <= 2
        return _number_encoding(name, *(distinct[[0, -1]].tolist() if few else (np.nan, np.nan)))
    present = present_levels(column)
    named, _ = ordered_levels(column)
    levels = [level or "" for level, occurs in zip(named, present, strict=True) if occurs]
    check_levels(name, len(levels))
    is_boolean = not isinstance(column, EncodedColumn)
    labels: list[str | bool | None] = [level == "True" if is_boolean else level for level in levels]
    if isinstance(column, EncodedColumn) and present[-1]:
        labels[-1] = None
        levels[-1] = name_of_missing(levels[:-1])
    if len(levels) <= 2:
        return TextEncoding(name, "binary", tuple(levels[::-1]), tuple(labels[::-1]))
    return TextEncoding(name, "categorical", tuple(levels), tuple(labels))


def _number_encoding(name: str, low: float, high: float) -> NumberEncoding:
    """Return the encoding of numbers from their two values; NaN if they have more."""
    if np.isnan(low):
        return NumberEncoding(name, "continuous", ())
    # A constant is encoded as 0.
    ends = (low, high) if low < high else (low, low + max(1.0, abs(low)))
    return NumberEncoding(name, "binary", (f"{high:g}", f"{low:g}"), ends)


def _native_numbers(name: str, column: Column) -> NativeColumn:
    """Return a column of numbers for native code."""
    if isinstance(column, EncodedColumn):
        return np.ascontiguousarray(column.codes), _code_values(name, column)
    if column.dtype.kind == "f" and column.dtype.itemsize not in (4, 8):
        return column.astype(np.float64)
    if not column.dtype.isnative or not column.flags.aligned:
        return column.astype(column.dtype.newbyteorder("="))
    return _matrix_view(column) or column


def _matrix_view(column: NDArray[Any]) -> tuple[Floats, int] | None:
    """Return the matrix that a column is a view of, and the index of the column in it.

    Native code then needs no copy. None unless the matrix is C-contiguous and of float64.
    """
    matrix = column.base
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or not matrix.flags.c_contiguous:
        return None
    first, least = (array.__array_interface__["data"][0] for array in (column, matrix))
    place, within = divmod(first - least, matrix.itemsize)
    same = column.dtype == matrix.dtype == np.float64 and len(column) == len(matrix)
    if (
        not same
        or within
        or column.strides != matrix.strides[:1]
        or not 0 <= place < matrix.shape[1]
    ):
        return None
    return matrix, place


def _code_values(name: str, column: EncodedColumn) -> list[float]:
    """Return the value of each code, NaN for the missing one."""
    try:
        return [*(float(value) for value in column.labels), np.nan]
    except (TypeError, ValueError):
        raise _not_numeric(name) from None


def check_numbers(name: str, column: Column) -> Floats:
    """Return a column as finite numbers, or raise an error."""
    if isinstance(column, EncodedColumn):
        values = np.array(_code_values(name, column))[column.codes]
    elif column.dtype.kind not in "biuf":
        raise _not_numeric(name)
    else:
        values = np.asarray(column, dtype=np.float64)
    if not np.isfinite(values).all():
        raise _not_finite(name, int((~np.isfinite(values)).argmax()))
    return values


def _not_numeric(name: str) -> DataError:
    return DataError(
        f"feature {name!r} holds text where numbers are needed. Convert it to numbers.",
        argument="X",
    )


def _not_finite(name: str, row: int) -> DataError:
    return DataError(
        f"feature {name!r} is missing or infinite in row {row}. Fill in finite numbers, or pass "
        "the feature as text, in which a missing value is a level of its own.",
        argument="X",
    )
