"""Interpret values: labels of groups and strata, positive classes, missing texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, DataError
from .arrays import MAX_ROWS, CombinationCounts
from .columns import Column, EncodedColumn, argument_of, list_some
from .ranked_labels import MISSING, is_missing_group, sort_key

#: A value that names a group or a stratum; None is a missing value.
Label: TypeAlias = str | int | float | bool | None
#: The labels of one group, one per sensitive feature.
GroupKey: TypeAlias = tuple[Label, ...]

ABSENT = -1
#: Texts that mean a missing group, ignoring case and surrounding blanks. ``astype(str)`` turns
#: missing values into some of them.
MISSING_TEXTS = frozenset({"nan", "none", "null", "na", "<na>", "missing"})
#: The note about such texts.
MISSING_TEXTS_NOTE = (
    "{name}: the text {texts} is read as a missing value; missing='keep_texts' makes it a group"
)
#: More different numbers than this do not look like classes.
MOST_CLASSES = 10
_KINDS = {"y_true": "labels"}
#: Up to this many combinations, lists are faster than arrays.
_FEW = 256


def distinct_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows in ascending order, and the index of each row among them.

    Same as np.unique with axis=0, but faster for few rows.
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
    """Return the distinct values of a column, and the index of the value in each row.

    Numbers come in ascending order and must not be missing. In encoded columns, missing values have
    the index after the last one.
    """
    if isinstance(column, EncodedColumn):
        return list(column.labels), column.codes.astype(np.int64)
    values, place = np.unique(column, return_inverse=True)
    return values.tolist(), place.ravel()


def check_one_kind(name: str, labels: Sequence[Label]) -> None:
    """Raise if labels mix text, numbers and booleans, such as "1" and 1, or 1 and True."""
    kinds = {
        "booleans" if isinstance(label, bool) else "text" if isinstance(label, str) else "numbers"
        for label in labels
        if label is not None and not is_missing_group(label)
    }
    if len(kinds) > 1:
        raise DataError(
            f"{name} holds {' and '.join(sorted(kinds))}; accepted: labels of one kind",
            argument=argument_of(name),
        )


def sort_keys(
    keys: Sequence[GroupKey], codes: NDArray[np.int64]
) -> tuple[tuple[GroupKey, ...], NDArray[np.int64]]:
    """Sort the keys that occur, and renumber the codes accordingly."""
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
    """Convert a value to str, int, float, bool or None, equally for all kinds of tables."""
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
    # Dates and other types are identified by their text.
    return str(value)


def is_missing_text(label: object) -> bool:
    """Return whether a label is a text that means a missing group."""
    return (
        isinstance(label, str)
        and not is_missing_group(label)
        and label.strip().casefold() in MISSING_TEXTS
    )


def missing_texts(
    counted: CombinationCounts, names: Sequence[str], missing: str | None
) -> tuple[tuple[str, str, int], ...]:
    """Return the texts that are read as missing: feature, text and number of rows."""
    if missing is not None:
        return ()
    entries = []
    for column, name in enumerate(names):
        for code, value in enumerate(counted.values[column]):
            text = _plain(value)
            if is_missing_text(text):
                n_rows = int(counted.counts[counted.codes[:, column] == code].sum())
                entries.append((name, str(text), n_rows))
    return tuple(sorted(entry for entry in entries if entry[2]))


def label_matches(label: Label, wanted: Any) -> bool:
    """Return whether a label matches; a number or boolean also matches its text.

    None matches the group of missing values; intervals, periods and dates match by their text.
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
    """Return whether two values are equal; False if the comparison has no truth value."""
    try:
        return bool(label == wanted)
    except (TypeError, ValueError):
        return False


@dataclass(frozen=True, kw_only=True)
class NamedCombinations:
    """Distinct combinations of values, as groups, strata, labels and decisions."""

    groups: list[GroupKey]
    group: NDArray[np.int64]
    strata: list[GroupKey]
    stratum: NDArray[np.int64]
    y_true: NDArray[np.int64]
    y_pred: NDArray[np.int64]
    #: The decisions of the compared models, by role.
    decisions: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def coded(self, name: str) -> NDArray[np.int64]:
        """Return labels or decisions by role."""
        if name in self.decisions:
            return self.decisions[name]
        return self.y_true if name == "y_true" else self.y_pred

    @classmethod
    def nothing(cls) -> NamedCombinations:
        """Return the single combination that exists without any columns."""
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
    """Interpret the distinct combinations of (features, strata, labels), and check them.

    With ``missing="own"``, missing values of features and strata get their own label. None reads
    texts such as "nan" as missing in features; the other options keep them as labels.
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
    strata_columns = [next(columns) for _ in strata_names]
    for name, column in zip(strata_names, strata_columns, strict=True):
        hint = "or make them strata of their own by missing='own'"
        _refuse_missing(f"strata column {name!r}", counted, values, column, hint)
    strata, stratum = _keys(counted, values, strata_columns)
    absent = np.full(len(counted.counts), ABSENT, dtype=np.int64)
    coded: dict[str, NDArray[np.int64]] = {"y_true": absent, "y_pred": absent}
    column_of = {name: next(columns) for name in labels}
    for name in labels:
        _refuse_missing(name, counted, values, column_of[name])
    if pos_label is not None and column_of:
        check_pos_label(pos_label, {name: values[column] for name, column in column_of.items()})
    for name, column in column_of.items():
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
    """Replace None by the label of missing values."""
    if None in values and any(v == MISSING and not is_missing_group(v) for v in values):
        raise DataError(
            f"missing is 'own', and a column holds {str(MISSING)!r} beside missing values. Fill "
            "them in, or rename this label.",
            argument="missing",
        )
    return [MISSING if value is None else value for value in values]


def _keys(
    counted: CombinationCounts, values: list[list[Label]], columns: list[int]
) -> tuple[list[GroupKey], NDArray[np.int64]]:
    """Combine the labels of several columns: return the distinct keys, and that of each cell."""
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
    """Raise if a column has missing values."""
    missing = [code for code, value in enumerate(values[column]) if value is None]
    if not missing:
        return
    rows = int(counted.counts[np.isin(counted.codes[:, column], missing)].sum())
    if rows:
        raise DataError(
            f"{name} is missing (NaN or None) in {rows:,} of {int(counted.counts.sum()):,} rows; "
            f"leave these rows out or fill them in {hint}",
            argument=argument_of(name),
        )


def check_pos_label(pos_label: Label, columns: Mapping[str, list[Label]]) -> None:
    """Raise if all columns hold 0 and 1, and none of them holds the positive class."""
    wanted = _plain(pos_label)
    seen = [value for values in columns.values() for value in values]
    if all(map(is_coded, columns.values())) and not any(label_matches(v, wanted) for v in seen):
        if len(set(seen)) == 1 and not isinstance(wanted, str):
            return  # the data may be a part without rows of the positive class
        held: list[Label] = sorted(set(seen), key=sort_key)
        raise ArgumentError(
            f"pos_label is {pos_label!r}, which does not occur in {' or '.join(columns)}; they "
            f"hold {list_some(held)}",
            argument="pos_label",
        )


def is_coded(values: list[Label]) -> bool:
    """Return whether all values are 0 and 1, or booleans."""
    return all(value in (0, 1) and not isinstance(value, str) for value in values)


def _not_binary(name: str, shown: Sequence[Label]) -> DataError:
    """Return the error about labels or decisions other than 0 and 1, without a positive class."""
    problem = f"{name} holds {list_some(shown)}; accepted: 0/1 or booleans"
    numbers = [value for value in shown if isinstance(value, int | float)]
    if len(numbers) == len(shown) > MOST_CLASSES:
        scores = "Pass scores as y_score, or decide" if name == "y_pred" else "Pass classes"
        return DataError(
            problem,
            argument=name,
            code="not-classes",
            advice=(
                f". So many numbers do not look like {_KINDS.get(name, 'decisions')}. {scores} "
                f"from a threshold on, such as {name}=(values >= {numbers[len(numbers) // 2]:g})"
            ),
        )
    is_score = name.startswith("y_") and any(isinstance(value, float) for value in shown)
    return DataError(
        f"{problem}. Name the positive class with pos_label, such as pos_label={shown[-1]!r}"
        + ("; scores belong in y_score" if is_score else ""),
        argument=name,
        mentions=("pos_label", "y_score"),
    )


def binary_labels(name: str, values: list[Label], pos_label: Label) -> NDArray[np.int64]:
    """Return 1 for the positive class and 0 for others, for each value of a label column."""
    shown = sorted(values, key=sort_key)
    coded = is_coded(values)
    wanted = _plain(pos_label)
    occurs = any(label_matches(value, wanted) for value in values)
    if pos_label is None or (coded and isinstance(wanted, str) and not occurs):
        if coded:
            return np.array([int(cast(int, value)) for value in values], dtype=np.int64)
        raise _not_binary(name, shown)
    if not occurs and len(values) > 1:
        raise ArgumentError(
            f"pos_label is {pos_label!r}, which does not occur in {name}; it holds "
            f"{list_some(shown)}",
            argument="pos_label",
            mentions=(name,),
        )
    return np.array([int(label_matches(value, wanted)) for value in values], dtype=np.int64)
