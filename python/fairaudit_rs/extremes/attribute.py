"""Finds the columns of X that hold the protected attribute, and reads the level of every row.

Levels are values as X holds them, scaled numbers included. For one-hot columns, scaled or not, the
level of a row is the column that is at its higher value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.cells import Cells
from ..data.columns import Column, EncodedColumn, list_some
from ..data.features import positions_of
from ..data.groups import group_label
from ..data.labels import GroupKey
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError, ColumnError, DataError
from ..report.notes import Note
from .feature_tables import FeatureTable, RowNumbers

_ACCEPTED = (
    "the name or position of a column of X, the common prefix of one-hot columns, a list of "
    "one-hot columns or of attributes, or a dict of these by the names of attributes"
)
#: Separators of prefix and level in the name of a one-hot column.
_SEPARATORS = r"[_\-=:./ \[\]]"


@dataclass(frozen=True, eq=False, kw_only=True)
class AttributeLevels:
    """The levels of a protected attribute, or the combined levels of several attributes."""

    names: tuple[str, ...]
    #: Positions in X of the attribute's columns.
    places: tuple[int, ...]
    #: The levels, in the order of groups, and the code of every row's level.
    keys: tuple[GroupKey, ...]
    code: NDArray[np.int64]
    #: For each level, one row that has it.
    first: RowNumbers
    cells: Cells
    notes: tuple[Note, ...]

    @property
    def name(self) -> str:
        """The names of the attributes, joined for a sentence."""
        return " and ".join(self.names)

    def levels_of_rows(self) -> NDArray[Any] | dict[str, NDArray[Any]]:
        """Return the level of every row; for several attributes, a dict of these by name."""
        columns = [np.array([key[i] for key in self.keys]) for i in range(len(self.names))]
        if len(columns) == 1:
            return columns[0][self.code]
        return {name: column[self.code] for name, column in zip(self.names, columns, strict=True)}


@dataclass(frozen=True, eq=False)
class _SingleAttribute:
    """One attribute: a column of X, or level codes that were read from one-hot columns."""

    name: str
    places: tuple[int, ...]
    column: Any
    levels: tuple[str, ...] | None = None


def read_attribute(given: Any, feature_table: FeatureTable) -> AttributeLevels:
    """Find the columns of an attribute in X, and the level of every row."""
    parts, notes = _split_attributes(given, feature_table)
    names = tuple(part.name for part in parts)
    places = tuple(place for part in parts for place in part.places)
    if len(set(names)) < len(names) or len(set(places)) < len(places):
        raise ArgumentError(
            f"attribute is {given!r}, which names a column twice. Name each column once.",
            argument="attribute",
        )
    # The model reads texts such as "none" as levels, so they are not missing values.
    columns = {part.name: part.column for part in parts}
    table = AuditTable.make(sensitive_features=columns, missing="keep_texts")
    rows = table.rows(columns=())
    n_missing = rows.cells.n_missing
    if n_missing:
        raise DataError(
            f"attribute {' and '.join(map(repr, names))} is missing in {n_missing:,} of "
            f"{feature_table.n_rows:,} rows of X. Remove these rows, or give each a level.",
            argument="attribute",
        )
    keys = tuple(
        tuple(
            level if part.levels is None else part.levels[int(level)]  # type: ignore[arg-type]
            for level, part in zip(key, parts, strict=True)
        )
        for key in rows.cells.groups
    )
    if len(keys) < 2:
        raise DataError(
            f"attribute {' and '.join(map(repr, names))} is {group_label(keys[0])!r} "
            "in every row of X; a comparison needs at least two levels. Add rows with another "
            "level, or pass flip= as a function of X.",
            argument="attribute",
            mentions=("flip",),
        )
    code = rows.group.astype(np.int64)
    return AttributeLevels(
        names=names,
        places=places,
        keys=keys,
        code=code,
        first=np.unique(code, return_index=True)[1].astype(np.int64),
        cells=replace(rows.cells, groups=keys),
        notes=notes,
    )


def _split_attributes(
    given: Any, feature_table: FeatureTable
) -> tuple[list[_SingleAttribute], tuple[Note, ...]]:
    if isinstance(given, Mapping):
        if not given:
            raise ArgumentError(f"attribute is empty; accepted: {_ACCEPTED}", argument="attribute")
        return [
            replace(_single_attribute(entry, feature_table), name=str(name))
            for name, entry in given.items()
        ], ()
    if not isinstance(given, list | tuple):
        return [_single_attribute(given, feature_table)], ()
    entries = list(given)
    if not entries:
        raise ArgumentError(f"attribute is empty; accepted: {_ACCEPTED}", argument="attribute")
    if any(isinstance(entry, list | tuple) for entry in entries):
        return [_single_attribute(entry, feature_table) for entry in entries], ()
    return _one_or_several(entries, feature_table)


def _single_attribute(given: Any, feature_table: FeatureTable) -> _SingleAttribute:
    """Return one attribute; a list of columns is read as one-hot."""
    if isinstance(given, list | tuple):
        if not given:
            raise ArgumentError(
                f"attribute has an empty list of columns; accepted: {_ACCEPTED}",
                argument="attribute",
            )
        if len(given) == 1:
            return _single_attribute(given[0], feature_table)
        return _one_hot([_place(entry, feature_table) for entry in given], feature_table)
    places = _places(given, feature_table)
    if len(places) == 1:
        column_name = _column_name(feature_table, places[0])
        name = f"column {column_name}" if feature_table.names is None else column_name
        return _SingleAttribute(name, (places[0],), feature_table.raw(places[0]))
    return _one_hot(places, feature_table, str(given))


def _one_or_several(
    entries: Sequence[Any], feature_table: FeatureTable
) -> tuple[list[_SingleAttribute], tuple[Note, ...]]:
    """Return columns as one attribute if they are one-hot, else as one attribute each."""
    places = [_places(entry, feature_table) for entry in entries]
    each = [_single_attribute(entry, feature_table) for entry in entries]
    if len(each) == 1 or any(len(at) > 1 for at in places):
        return each, ()
    columns = [at[0] for at in places]
    high = _at_higher_value(columns, feature_table)
    if high is None or (n_high := high.sum(axis=0, dtype=np.int64)).max() > 1:
        return each, ()
    column_names = [_column_name(feature_table, place) for place in columns]
    if not n_high.all() and not _common_prefix(column_names):
        raise ArgumentError(
            f"attribute is {list(entries)!r}, columns that may be one one-hot attribute or several "
            "attributes: in no row is more than one of them at its higher value. Pass a dict: "
            f"{{'name': {list(entries)!r}}} for one attribute, { {str(e): e for e in entries} } "
            "for several.",
            argument="attribute",
        )
    note = Note(
        "columns-read-as-one-attribute",
        f"columns {', '.join(column_names[:5])} of X, of which at most one is at its higher value "
        "in any row, count as the levels of one attribute",
        tuple(column_names),
    )
    return [_one_hot(columns, feature_table)], (note,)


def _one_hot(
    places: Sequence[int], feature_table: FeatureTable, prefix: str | None = None
) -> _SingleAttribute:
    """Return one-hot columns as one attribute."""
    column_names = [_column_name(feature_table, place) for place in places]
    high = _at_higher_value(places, feature_table)
    if high is None:
        raise DataError(
            f"attribute names {list_some(column_names)} as one-hot columns, but one of them has "
            "text, missing values or more than two distinct values. Name columns with a lower and "
            "a higher value.",
            argument="attribute",
        )
    n_high = high.sum(axis=0, dtype=np.int64)
    if n_high.max() > 1:
        row = int((n_high > 1).argmax())
        raise DataError(
            f"attribute names {list_some(column_names)} as one-hot columns, but {n_high[row]} are "
            f"at their higher value in row {row}. Name columns of which at most one is, in every "
            "row.",
            argument="attribute",
        )
    name, levels, none = _named_levels(
        column_names, _common_prefix(column_names) if prefix is None else prefix
    )
    if feature_table.names is None:
        name = f"columns {name}"
    # Codes in the order of the names, so that codes sort as levels do.
    order = sorted(range(len(levels)), key=levels.__getitem__)
    all_levels = sorted([*levels, none])
    level_codes = np.array([all_levels.index(levels[number]) for number in order], dtype=np.int64)
    code = np.full(feature_table.n_rows, all_levels.index(none), dtype=np.int64)
    for number, place in zip(order, level_codes, strict=True):
        code[high[number]] = place
    return _SingleAttribute(name, tuple(places), code, tuple(all_levels))


def _named_levels(column_names: list[str], prefix: str) -> tuple[str, list[str], str]:
    """Return the names of an attribute, of its levels, and of the level where no column is high."""
    name = re.sub(f"{_SEPARATORS}+$", "", prefix) or ", ".join(column_names[:3])
    levels = [
        re.sub(f"^{_SEPARATORS}+|\\]$", "", text[len(prefix) :]) or text for text in column_names
    ]
    if len(set(levels)) < len(levels):
        levels = column_names
    none = "none"
    while none in levels:
        none = f"({none})"
    return name, levels, none


def _at_higher_value(
    places: Sequence[int], feature_table: FeatureTable
) -> NDArray[np.bool_] | None:
    """Return, by column and row, where the higher of two values is; None if there are others."""
    is_high = np.zeros((len(places), feature_table.n_rows), dtype=bool)
    ends = []
    for number, place in enumerate(places):
        column = _column_numbers(feature_table.column(place))
        if column is None:
            return None
        low, top = column.min(), column.max()
        if not ((column == low) | (column == top)).all():
            return None
        ends.append((low, top))
        # A constant column is the level of no row,
        is_high[number] = (column == top) & (low != top)
    lows, tops = ({end[i] for end in ends if end[0] != end[1]} for i in (0, 1))
    for number, (low, top) in enumerate(ends):
        # unless its value is the higher value of other columns: 1 in columns that are not scaled.
        is_high[number] |= low == top and top in tops - lows
    return is_high


def _column_numbers(column: Column) -> NDArray[Any] | None:
    """Return a column as numbers, NaN where they are missing; None if it holds text."""
    if not isinstance(column, EncodedColumn):
        return column if column.dtype.kind in "biuf" else None
    if any(isinstance(value, str) for value in column.labels):
        return None
    return np.array([*map(float, column.labels), np.nan])[column.codes]


def _common_prefix(names: Sequence[str]) -> str:
    """Return the common prefix of names up to a separator; "" if there is none."""
    # A prefix of the first and the last name in sorted order is a prefix of all.
    pairs = zip(min(names), max(names), strict=False)
    common = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    ends = [match.end() for match in re.finditer(_SEPARATORS, common)]
    return common[: ends[-1]] if ends else ""


def _column_name(feature_table: FeatureTable, place: int) -> str:
    """Return the name of a column, or its position in an array, as text."""
    return str(place) if feature_table.names is None else feature_table.names[place]


def _places(given: Any, feature_table: FeatureTable) -> list[int]:
    """Return the position of a column, or the positions of the columns with a prefix."""
    names = feature_table.names
    if isinstance(given, str) and names is not None and given not in names:
        pattern = re.compile(
            re.escape(given) + ("" if re.search(_SEPARATORS + "$", given) else _SEPARATORS)
        )
        matching = [place for place, name in enumerate(names) if pattern.match(name)]
        if given and matching:
            return matching
    return [_place(given, feature_table)]


def _place(given: Any, feature_table: FeatureTable) -> int:
    names = feature_table.names
    if isinstance(given, bool) or not isinstance(given, str | int | np.integer):
        shown = repr(given) if isinstance(given, bool | float) else f"a {type(given).__name__}"
        raise ArgumentTypeError(
            f"attribute is {shown}; accepted: {_ACCEPTED}", argument="attribute"
        )
    if names is None:
        return int(positions_of("attribute", given, None, feature_table.n_columns)[0])
    if str(given) not in names:
        raise ColumnError(
            f"attribute is {given!r}, which is no column of X and no prefix of one; its columns: "
            f"{list_some(names, 20)}",
            argument="attribute",
        )
    return names.index(str(given))
