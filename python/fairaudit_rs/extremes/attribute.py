"""Which columns of X hold the protected attribute, and the level that every row has.

A level is what X holds: scaled numbers are levels like any others. Of one-hot columns, scaled or
not, the level is the column that is at its higher value.
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
from .forms import FeatureForm, RowNumbers

_ACCEPTED = (
    "the name or position of a column of X, the common prefix of one-hot columns, a list of "
    "one-hot columns or of attributes, or a dict of these by name of the attribute"
)
#: What stands between a prefix and a level in the name of a one-hot column.
_BETWEEN = r"[_\-=:./ \[\]]"


@dataclass(frozen=True, eq=False, kw_only=True)
class AttributeLevels:
    """The levels of a protected attribute, or the combined ones of several."""

    names: tuple[str, ...]
    #: Places of the columns of X that hold it.
    places: tuple[int, ...]
    #: Levels in the order of groups, and that of every row.
    keys: tuple[GroupKey, ...]
    code: NDArray[np.int64]
    #: A row that has each level.
    first: RowNumbers
    cells: Cells
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name in a sentence."""
        return " and ".join(self.names)

    def levels_of_rows(self) -> NDArray[Any] | dict[str, NDArray[Any]]:
        """Return the level of every row; with several attributes by name."""
        columns = [np.array([key[i] for key in self.keys]) for i in range(len(self.names))]
        if len(columns) == 1:
            return columns[0][self.code]
        return {name: column[self.code] for name, column in zip(self.names, columns, strict=True)}


@dataclass(frozen=True, eq=False)
class _Part:
    """One attribute: a column as it is, or the place of each row among names of levels."""

    name: str
    places: tuple[int, ...]
    column: Any
    levels: tuple[str, ...] | None = None


def read_attribute(given: Any, form: FeatureForm) -> AttributeLevels:
    """Find the columns of an attribute in X, and the level of every row."""
    parts, notes = _parts(given, form)
    names = tuple(part.name for part in parts)
    places = tuple(place for part in parts for place in part.places)
    if len(set(names)) < len(names) or len(set(places)) < len(places):
        raise ArgumentError(
            f"attribute is {given!r}, which names a column twice; accepted: once",
            argument="attribute",
        )
    # Levels of a feature are those that the model reads, texts such as "none" among them.
    columns = {part.name: part.column for part in parts}
    table = AuditTable.make(sensitive_features=columns, missing="keep_texts")
    rows = table.rows(columns=())
    n_missing = rows.cells.n_missing
    if n_missing:
        raise DataError(
            f"attribute {' and '.join(map(repr, names))} is missing in {n_missing:,} of "
            f"{form.n_rows:,} rows of X; accepted: a level in every row"
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
            f"in every row of X; "
            "accepted: at least two levels, or flip= as a function of X",
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


def _parts(given: Any, form: FeatureForm) -> tuple[list[_Part], tuple[str, ...]]:
    if isinstance(given, Mapping):
        if not given:
            raise ArgumentError(f"attribute is empty; accepted: {_ACCEPTED}", argument="attribute")
        return [replace(_part(entry, form), name=str(name)) for name, entry in given.items()], ()
    if not isinstance(given, list | tuple):
        return [_part(given, form)], ()
    entries = list(given)
    if not entries:
        raise ArgumentError(f"attribute is empty; accepted: {_ACCEPTED}", argument="attribute")
    if any(isinstance(entry, list | tuple) for entry in entries):
        return [_part(entry, form) for entry in entries], ()
    return _one_or_several(entries, form)


def _part(given: Any, form: FeatureForm) -> _Part:
    """Return one attribute: a list of columns is one-hot."""
    if isinstance(given, list | tuple):
        if not given:
            raise ArgumentError(
                f"attribute has an empty list of columns; accepted: {_ACCEPTED}",
                argument="attribute",
            )
        if len(given) == 1:
            return _part(given[0], form)
        return _one_hot([_place(entry, form) for entry in given], form)
    places = _places(given, form)
    if len(places) == 1:
        bare = _bare(form, places[0])
        name = f"column {bare}" if form.names is None else bare
        return _Part(name, (places[0],), form.raw(places[0]))
    return _one_hot(places, form, str(given))


def _one_or_several(
    entries: Sequence[Any], form: FeatureForm
) -> tuple[list[_Part], tuple[str, ...]]:
    """Return columns as one attribute where they are one-hot, else as one attribute each."""
    places = [_places(entry, form) for entry in entries]
    each = [_part(entry, form) for entry in entries]
    if len(each) == 1 or any(len(at) > 1 for at in places):
        return each, ()
    columns = [at[0] for at in places]
    high = _high(columns, form)
    if high is None or (n_high := high.sum(axis=0, dtype=np.int64)).max() > 1:
        return each, ()
    bare = [_bare(form, place) for place in columns]
    if not n_high.all() and not _prefix(bare):
        raise ArgumentError(
            f"attribute is {list(entries)!r}, columns of two values of which at most one is at its "
            "higher value in any row: levels of one attribute, or several; accepted: a dict, such "
            f"as {{'name': {list(entries)!r}}} for one, or { {str(e): e for e in entries} } for "
            "several",
            argument="attribute",
        )
    note = (
        f"columns {', '.join(bare[:5])} of X, of which at most one is at its higher value in any "
        "row, count as the levels of one attribute"
    )
    return [_one_hot(columns, form)], (note,)


def _one_hot(places: Sequence[int], form: FeatureForm, prefix: str | None = None) -> _Part:
    """Return one-hot columns as one attribute."""
    bare = [_bare(form, place) for place in places]
    high = _high(places, form)
    if high is None:
        raise DataError(
            f"attribute names {list_some(bare)} as one-hot columns, one of which has "
            f"other than one "
            "or two values, or misses some; accepted: columns of a lower and a higher value",
            argument="attribute",
        )
    n_high = high.sum(axis=0, dtype=np.int64)
    if n_high.max() > 1:
        row = int((n_high > 1).argmax())
        raise DataError(
            f"attribute names {list_some(bare)} as one-hot columns, of which {n_high[row]} are at "
            f"their higher value in row {row}; accepted: at most one in every row",
            argument="attribute",
        )
    name, levels, none = _named_levels(bare, _prefix(bare) if prefix is None else prefix)
    if form.names is None:
        name = f"columns {name}"
    # In the order of names, so that places sort as levels do.
    order = sorted(range(len(levels)), key=levels.__getitem__)
    everything = sorted([*levels, none])
    own = np.array([everything.index(levels[at]) for at in order], dtype=np.int64)
    code = np.full(form.n_rows, everything.index(none), dtype=np.int64)
    for at, place in zip(order, own, strict=True):
        code[high[at]] = place
    return _Part(name, tuple(places), code, tuple(everything))


def _named_levels(bare: list[str], prefix: str) -> tuple[str, list[str], str]:
    """Return what an attribute, its levels and that of no column are called."""
    name = re.sub(f"{_BETWEEN}+$", "", prefix) or ", ".join(bare[:3])
    levels = [re.sub(f"^{_BETWEEN}+|\\]$", "", text[len(prefix) :]) or text for text in bare]
    if len(set(levels)) < len(levels):
        levels = bare
    none = "none"
    while none in levels:
        none = f"({none})"
    return name, levels, none


def _high(places: Sequence[int], form: FeatureForm) -> NDArray[np.bool_] | None:
    """Return which columns are at the higher of their two values; None if they have others."""
    found = np.zeros((len(places), form.n_rows), dtype=bool)
    ends = []
    for at, place in enumerate(places):
        column = _numbers(form.column(place))
        if column is None:
            return None
        low, top = column.min(), column.max()
        if not ((column == low) | (column == top)).all():
            return None
        ends.append((low, top))
        # A column of one value is no level of these rows,
        found[at] = (column == top) & (low != top)
    lows, tops = ({end[i] for end in ends if end[0] != end[1]} for i in (0, 1))
    for at, (low, top) in enumerate(ends):
        # unless it is the value that others have where they are higher: 1 where nothing is scaled.
        found[at] |= low == top and top in tops - lows
    return found


def _numbers(column: Column) -> NDArray[Any] | None:
    """Return a column as numbers, NaN where they are missing; None if it holds text."""
    if not isinstance(column, EncodedColumn):
        return column if column.dtype.kind in "biuf" else None
    if any(isinstance(value, str) for value in column.labels):
        return None
    return np.array([*map(float, column.labels), np.nan])[column.codes]


def _prefix(names: Sequence[str]) -> str:
    """Return what names have in common up to a sign between words, nothing if there is none."""
    # What the first and the last in order share, all between them share.
    pairs = zip(min(names), max(names), strict=False)
    common = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    ends = [match.end() for match in re.finditer(_BETWEEN, common)]
    return common[: ends[-1]] if ends else ""


def _bare(form: FeatureForm, place: int) -> str:
    """Return the name of a column, or its place in an array, as text."""
    return str(place) if form.names is None else form.names[place]


def _places(given: Any, form: FeatureForm) -> list[int]:
    """Return the place of a column, or those of the columns with a prefix."""
    names = form.names
    if isinstance(given, str) and names is not None and given not in names:
        pattern = re.compile(
            re.escape(given) + ("" if re.search(_BETWEEN + "$", given) else _BETWEEN)
        )
        found = [place for place, name in enumerate(names) if pattern.match(name)]
        if given and found:
            return found
    return [_place(given, form)]


def _place(given: Any, form: FeatureForm) -> int:
    names = form.names
    if isinstance(given, bool) or not isinstance(given, str | int | np.integer):
        shown = repr(given) if isinstance(given, bool | float) else f"a {type(given).__name__}"
        raise ArgumentTypeError(
            f"attribute is {shown}; accepted: {_ACCEPTED}", argument="attribute"
        )
    if names is None:
        return int(positions_of("attribute", given, None, form.n_columns)[0])
    if str(given) not in names:
        raise ColumnError(
            f"attribute is {given!r}, which is no column of X and the prefix of none; its columns: "
            f"{list_some(names, 20)}",
            argument="attribute",
        )
    return names.index(str(given))
