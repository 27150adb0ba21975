"""Meaning of values: labels of groups and strata, positive classes, distinct combinations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, DataError
from .arrays import MAX_ROWS, CombinationCounts
from .columns import Column, EncodedColumn, list_some
from .ranked_labels import MISSING, is_missing_group, sort_key

#: A value that names a group or a stratum; None is a missing value.
Label: TypeAlias = str | int | float | bool | None
#: The labels of one group, one per sensitive feature.
GroupKey: TypeAlias = tuple[Label, ...]

ABSENT = -1
#: Texts that stand for a missing group, whatever their case and the blanks around them: some are
#: made of missing values by ``astype(str)``.
MISSING_TEXTS = frozenset({"nan", "none", "null", "na", "<na>", "missing"})
#: The sentence of a note about them.
MISSING_TEXTS_NOTE = (
    "{name}: the text {texts} is read as a missing value; missing='keep_texts' makes it a group"
)
#: Up to so many combinations lists are faster than arrays.
_FEW = 256


def distinct_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows in ascending order, and the place of each row among them.

    As np.unique with axis=0, which takes longer than all else here when there are few rows; of very
    few, so does every call of NumPy.
    """
    if len(rows) <= _FEW:
        listed = [tuple(row) for row in rows.tolist()]
        known = {row: i for i, row in enumerate(sorted(set(listed)))}
        distinct = np.array(list(known), dtype=np.int64).reshape(len(known), rows.shape[1])
        return distinct, np.array([known[row] for row in listed], dtype=np.int64)
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    is_new = np.ones(len(rows), dtype=bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.cumsum(is_new) - 1
    return ordered[is_new], place


def distinct_values(column: Column) -> tuple[list[Label], NDArray[np.int64]]:
    """Return the distinct values of a column, and which of them each row has.

    Numbers must be there, and come in ascending order. What is missing of others has the place
    after the last one.
    """
    if isinstance(column, EncodedColumn):
        return list(column.labels), column.codes.astype(np.int64)
    values, place = np.unique(column, return_inverse=True)
    return values.tolist(), place.ravel()


def check_one_kind(name: str, labels: Sequence[Label]) -> None:
    """Refuse labels that are text in one place and numbers in another: "1" and 1, 1 and True."""
    kinds = {
        "booleans" if isinstance(label, bool) else "text" if isinstance(label, str) else "numbers"
        for label in labels
        if label is not None and not is_missing_group(label)
    }
    if len(kinds) > 1:
        raise DataError(
            f"{name} holds {' and '.join(sorted(kinds))}; accepted: labels of one kind",
            argument=name,
        )


def sort_keys(
    keys: Sequence[GroupKey], codes: NDArray[np.int64]
) -> tuple[tuple[GroupKey, ...], NDArray[np.int64]]:
    """Sort the keys that occur, and give every code its key's new place."""
    few = len(codes) <= _FEW
    present = set(codes.tolist()) if few else np.flatnonzero(np.bincount(codes)).tolist()
    used = {keys[code] for code in present}
    ordered = sorted(used, key=lambda key: [sort_key(label) for label in key])
    place = {key: i for i, key in enumerate(ordered)}
    table = np.array([place.get(key, 0) for key in keys] or [0], dtype=np.int64)
    return tuple(ordered), table[codes]


# ---------------------------------------------------------------------------------------------
# From distinct combinations of values to cells


def _plain(value: Any) -> Label:
    """Return a value as str, int, float, bool or None, the same for every kind of table."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_ROWS:
        return int(value)
    if isinstance(value, str | int | float):
        return value
    # Dates and the like go by their text.
    return str(value)


def is_missing_text(label: object) -> bool:
    """Return whether a label is a text that stands for a missing group."""
    return (
        isinstance(label, str)
        and not is_missing_group(label)
        and label.strip().casefold() in MISSING_TEXTS
    )


def missing_texts(
    counted: CombinationCounts, names: Sequence[str], missing: str | None
) -> tuple[tuple[str, str, int], ...]:
    """Return the texts that are read as missing: feature, text and rows."""
    if missing is not None:
        return ()
    found = []
    for column, name in enumerate(names):
        for code, value in enumerate(counted.values[column]):
            text = _plain(value)
            if is_missing_text(text):
                n_rows = int(counted.counts[counted.codes[:, column] == code].sum())
                found.append((name, str(text), n_rows))
    return tuple(sorted(entry for entry in found if entry[2]))


def label_matches(label: Label, wanted: Any) -> bool:
    """Return whether a label is the wanted one; text also names a number or boolean that reads so.

    None names missing values that are a group, and intervals, periods and dates go by their text.
    """
    if wanted is None and is_missing_group(label):
        return True
    if isinstance(label, str) or label is None:
        plain = wanted is None or isinstance(wanted, str | int | float)
        return _equal(label, wanted if plain else str(wanted))
    if isinstance(wanted, str):
        return str(label).lower() == wanted.strip().lower()
    return _equal(label, wanted)


def _equal(label: Label, wanted: Any) -> bool:
    """Return whether two values are equal; arrays and missing values of pandas do not say."""
    try:
        return bool(label == wanted)
    except (TypeError, ValueError):
        return False


@dataclass(frozen=True, kw_only=True)
class NamedCombinations:
    """Names of the distinct combinations of values."""

    groups: list[GroupKey]
    group: NDArray[np.int64]
    strata: list[GroupKey]
    stratum: NDArray[np.int64]
    y_true: NDArray[np.int64]
    y_pred: NDArray[np.int64]
    #: The decisions of models that are compared, by role.
    decisions: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def coded(self, name: str) -> NDArray[np.int64]:
        """Return labels or decisions by their role."""
        if name in self.decisions:
            return self.decisions[name]
        return self.y_true if name == "y_true" else self.y_pred

    @classmethod
    def nothing(cls) -> NamedCombinations:
        """Return the one combination of no columns at all."""
        zero = np.zeros(1, dtype=np.int64)
        return cls(groups=[()], group=zero, strata=[()], stratum=zero, y_true=zero, y_pred=zero)


def name_combinations(
    counted: CombinationCounts,
    n_features: int,
    strata_names: tuple[str, ...],
    labels: Sequence[str],
    pos_label: Label,
    missing: str | None = None,
) -> NamedCombinations:
    """Check and name distinct combinations of (features, strata, labels).

    ``missing="own"`` makes missing values of features and strata a label of their own. None reads
    texts such as "nan" as missing in features; all else keeps them as labels.
    """
    if not len(counted.counts) or not counted.counts.sum():
        raise DataError("the data have no rows", argument="data")
    values = [[_plain(value) for value in column] for column in counted.values]
    if missing is None:
        values[:n_features] = [
            [None if is_missing_text(value) else value for value in column]
            for column in values[:n_features]
        ]
    elif missing == "own":
        n_named = n_features + len(strata_names)
        values[:n_named] = map(_with_missing, values[:n_named])
    columns = iter(range(len(values)))
    groups, group = _keys(counted, values, [next(columns) for _ in range(n_features)])
    at_strata = [next(columns) for _ in strata_names]
    for name, column in zip(strata_names, at_strata, strict=True):
        hint = "or make them strata of their own by missing='own'"
        _refuse_missing(f"strata column {name!r}", counted, values, column, hint)
    strata, stratum = _keys(counted, values, at_strata)
    absent = np.full(len(counted.counts), ABSENT, dtype=np.int64)
    coded: dict[str, NDArray[np.int64]] = {"y_true": absent, "y_pred": absent}
    at = {name: next(columns) for name in labels}
    for name in labels:
        _refuse_missing(name, counted, values, at[name])
    if pos_label is not None and at:
        check_pos_label(pos_label, {name: values[column] for name, column in at.items()})
    for name, column in at.items():
        coded[name] = binary_labels(name, values[column], pos_label)[counted.codes[:, column]]
    return NamedCombinations(
        groups=groups,
        group=group,
        strata=strata,
        stratum=stratum,
        y_true=coded.pop("y_true"),
        y_pred=coded.pop("y_pred"),
        decisions=coded,
    )


def _with_missing(values: list[Label]) -> list[Label]:
    """Return the values with a label in place of None."""
    if None in values and any(v == MISSING and not is_missing_group(v) for v in values):
        raise DataError(
            f"missing is 'own', and a column holds {str(MISSING)!r} beside missing values; "
            "accepted: one of both (fill them in, or give the label another name)",
            argument="missing",
        )
    return [MISSING if value is None else value for value in values]


def _keys(
    counted: CombinationCounts, values: list[list[Label]], columns: list[int]
) -> tuple[list[GroupKey], NDArray[np.int64]]:
    """Combine the labels of several columns: the distinct keys, and the key of each cell."""
    if not columns:
        return [()], np.zeros(len(counted.counts), dtype=np.int64)
    distinct, place = distinct_rows(counted.codes[:, columns])
    keys = [
        tuple(values[column][code] for column, code in zip(columns, row, strict=True))
        for row in distinct
    ]
    return keys, place


def _refuse_missing(
    name: str,
    counted: CombinationCounts,
    values: list[list[Label]],
    column: int,
    hint: str = "before the audit",
) -> None:
    """Raise when some rows have no value of a column."""
    missing = [code for code, value in enumerate(values[column]) if value is None]
    if not missing:
        return
    rows = int(counted.counts[np.isin(counted.codes[:, column], missing)].sum())
    if rows:
        raise DataError(
            f"{name} is missing (NaN or None) in {rows:,} of {int(counted.counts.sum()):,} rows; "
            f"leave these rows out or fill them in {hint}",
            argument=name,
        )


def check_pos_label(pos_label: Label, columns: Mapping[str, list[Label]]) -> None:
    """Refuse a positive class that no column holds, when all of them hold 0 and 1."""
    wanted = _plain(pos_label)
    seen = [value for values in columns.values() for value in values]
    if all(map(is_coded, columns.values())) and not any(label_matches(v, wanted) for v in seen):
        if len(set(seen)) == 1 and not isinstance(wanted, str):
            return  # a part of the data in which the positive class does not occur
        held: list[Label] = sorted(set(seen), key=sort_key)
        raise ArgumentError(
            f"pos_label is {pos_label!r}, which does not occur in {' or '.join(columns)}; they "
            f"hold {list_some(held)}",
            argument="pos_label",
        )


def is_coded(values: list[Label]) -> bool:
    """Return whether all values are 0 and 1, or booleans."""
    return all(value in (0, 1) and not isinstance(value, str) for value in values)


def binary_labels(name: str, values: list[Label], pos_label: Label) -> NDArray[np.int64]:
    """Return 1 for the positive class and 0 for others, for each value of a label column."""
    shown = sorted(values, key=sort_key)
    coded = is_coded(values)
    wanted = _plain(pos_label)
    found = any(label_matches(value, wanted) for value in values)
    if pos_label is None or (coded and isinstance(wanted, str) and not found):
        if coded:
            return np.array([int(cast(int, value)) for value in values], dtype=np.int64)
        text = any(isinstance(value, float) for value in values)
        raise DataError(
            f"{name} holds {list_some(shown)}; accepted: 0/1 or booleans. Name the "
            f"positive class with "
            f"pos_label, such as pos_label={shown[-1]!r}"
            + ("; scores belong in y_score" if text and name.startswith("y_") else ""),
            argument=name,
            mentions=("pos_label",),
        )
    if not found and len(values) > 1:
        raise ArgumentError(
            f"pos_label is {pos_label!r}, which does not occur in {name}; it holds "
            f"{list_some(shown)}",
            argument="pos_label",
        )
    return np.array([int(label_matches(value, wanted)) for value in values], dtype=np.int64)
