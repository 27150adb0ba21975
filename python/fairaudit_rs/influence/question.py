"""From the arguments of `influence_audit` to a group, the others, and columns of features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import Coded, Column
from ..data.features import named_columns
from ..data.groups import find_group, group_name, label
from ..data.labels import Label
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError, ColumnError, DataError
from .features import Feature
from .predict import Predictor
from .rates import Measure

Floats = NDArray[np.float64]

#: Levels of a categorical feature: more are to be put into classes first.
_MOST_LEVELS = 200
_MISSING = "missing"
#: Scores of one model differ by less, in single precision too.
_ROUNDING = 1e-5


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """Labels and scores of the target group and of the others, with the group's features."""

    measure: Measure
    #: Labels (0 where none are needed) and scores of both.
    target: Floats
    others: Floats
    #: Positions of the target group's rows in the data as given.
    rows: NDArray[np.int64]
    matrix: Floats
    features: tuple[Feature, ...]
    #: The score of rows of the matrix; None without a model.
    predict: Callable[[Floats], Floats] | None
    target_name: Any
    other_names: tuple[Any, ...]
    attribute: str
    n_rows: int
    n_missing: int


@dataclass(frozen=True, kw_only=True)
class Design:
    """The arguments of `influence_audit` that say what is looked at."""

    measure: Measure
    y_true: Any
    y_pred: Any
    y_score: Any
    X: Any
    model: Any
    sensitive_features: Any
    target: Any
    data: Any
    features: Sequence[str] | None
    sets: Mapping[str, Sequence[str]] | None
    pos_label: Label

    def pose(self) -> Question:
        """Check the arguments and read the data."""
        names = self._names()
        table = AuditTable.make(
            data=self.data,
            y_true=self.y_true,
            y_pred=self.y_pred,
            y_score=self.y_score,
            sensitive_features=self.sensitive_features,
            extra=names if self.X is None else (),
        )
        self._check(table)
        table = table.loaded()
        what = "y_pred" if "y_pred" in table.roles else "y_score"
        wanted = [name for name in ("y_true", what) if name in table.roles]
        rows = table.rows(columns=wanted, pos_label=self.pos_label)
        existing = list(rows.cells.group_sizes())
        key = find_group("target", self.target, existing)
        if len(existing) < 2:
            raise DataError(
                f"only one group: every row is {group_name(label(key))!r}; a gap needs others"
            )
        code = rows.cells.groups.index(key)
        known = np.array([None not in group for group in rows.cells.groups])[rows.group]
        inside = rows.group == code
        columns = self._columns(table, names, len(inside))
        predictor = self._predictor(columns, what)
        if what in rows.columns:
            score = self._score(rows.columns[what], what)
        else:
            assert predictor is not None
            score = predictor(_values(columns))
        truth = rows.columns.get("y_true")
        truth = np.zeros(len(score)) if truth is None else truth.astype(np.float64)
        both = np.column_stack([truth, score])
        matrix, features = _matrix(columns, self.sets or {}, np.flatnonzero(inside))
        predict = None
        if predictor is not None:
            predict = _of_coded(predictor, columns)
            self._check_model(predict(matrix), both[inside, 1], what)
        if self.features is not None:
            features = tuple(one for one in features if one.name in self.features)
        return Question(
            measure=self.measure,
            target=both[inside],
            others=both[known & ~inside],
            rows=np.flatnonzero(inside),
            matrix=matrix,
            features=features,
            predict=predict,
            target_name=label(key),
            other_names=tuple(label(other) for other in existing if other != key),
            attribute=" and ".join(rows.cells.sensitive_features),
            n_rows=int(known.sum()),
            n_missing=int((~known).sum()),
        )

    def _names(self) -> list[str]:
        """Return the names of the features that are columns of the data."""
        if self.X is not None:
            return []
        if self.data is None:
            raise ArgumentError("X is None; accepted: features, or data= with features= by name")
        if self.features is None:
            raise ArgumentError("features is None; with data= it names the columns to look at")
        return list(self.features)

    def _check(self, table: AuditTable) -> None:
        if self.y_pred is not None and self.y_score is not None:
            raise ArgumentTypeError("y_pred and y_score are both given; pass one")
        nothing = "y_pred" not in table.roles and "y_score" not in table.roles
        if nothing and self.model is None:
            raise ArgumentError("y_pred and y_score are None; accepted: decisions, or scores")
        if self.measure.needs_labels and "y_true" not in table.roles:
            raise ArgumentError(f"y_true is None; {self.measure.name} needs it")

    @staticmethod
    def _score(column: NDArray[Any], what: str) -> Floats:
        score = np.asarray(column, dtype=np.float64)
        if ((score < 0) | (score > 1)).any():
            row = int(((score < 0) | (score > 1)).argmax())
            raise DataError(
                f"{what} is {score[row]:g} in row {row}; accepted: probabilities, from 0 to 1"
            )
        return score

    def _columns(self, table: AuditTable, names: Sequence[str], n_rows: int) -> dict[str, Column]:
        """Return the features by name."""
        if self.X is None:
            source = table.source.in_memory()
            return {name: source.columns[f"extra:{name}"] for name in names}
        columns = dict(named_columns(self.X))
        if any(len(column) != n_rows for column in columns.values()):
            n = len(next(iter(columns.values())))
            raise DataError(f"X has {n:,} rows; the labels and scores have {n_rows:,}")
        if self.features is None:
            return columns
        if isinstance(self.features, str):
            raise ArgumentTypeError(f"features is {self.features!r}; accepted: a list of names")
        lacking = [name for name in self.features if name not in columns]
        if lacking:
            raise ColumnError(f"features names {lacking[0]!r}; X has {', '.join(columns)}")
        # A model needs all of them.
        chosen = columns if self.model is not None else self.features
        return {name: columns[name] for name in chosen}

    def _predictor(self, columns: Mapping[str, Column], what: str) -> Predictor | None:
        """Return the model as a function, None without one."""
        if self.model is None:
            return None
        if self.X is None or self.sets:
            given = "sets" if self.X is not None else "data without X"
            raise ArgumentTypeError(f"model does not go with {given}; accepted: X of numbers")
        return Predictor(self.model, self.X, tuple(columns), what == "y_pred")

    @staticmethod
    def _check_model(found: Floats, given: Floats, what: str) -> None:
        """Refuse predictions that are not those of the model."""
        differ = np.abs(found - given) > _ROUNDING
        if differ.any():
            raise DataError(
                f"{what} differs from the model in {int(differ.sum()):,} of {len(given):,} rows of "
                "the target group; accepted: what the model says of X"
            )


def _matrix(
    columns: Mapping[str, Column], sets: Mapping[str, Sequence[str]], rows: NDArray[np.int64]
) -> tuple[Floats, tuple[Feature, ...]]:
    """Return the features of some rows as columns of numbers, and what they are."""
    parts: list[Floats] = []
    features: list[Feature] = []
    used: set[str] = set()

    def add(name: str, kind: Any, levels: Sequence[str], made: list[Floats]) -> None:
        at = range(len(parts), len(parts) + len(made))
        features.append(Feature(name=name, kind=kind, columns=tuple(at), levels=tuple(levels)))
        parts.extend(made)

    for name, members in sets.items():
        lacking = [member for member in members if member not in columns]
        if lacking or not members:
            raise ColumnError(
                f"sets names {(lacking or [name])[0]!r} in {name!r}, which is no feature"
            )
        used |= set(members)
        indicators = [_numbers(member, columns[member])[rows] for member in members]
        stacked = np.column_stack(indicators)
        if not np.isin(stacked, (0, 1)).all() or (stacked.sum(axis=1) > 1).any():
            raise DataError(
                f"sets: the columns of {name!r} are not one feature; accepted: columns of 0 and 1, "
                "of which at most one is 1 in every row"
            )
        rest = 1.0 - stacked.sum(axis=1)
        made, levels = list(stacked.T), list(members)
        if rest.any():
            made, levels = [*made, rest], [*levels, f"none of {name}"]
        add(name, "categorical", levels, made)
    for name, column in columns.items():
        if name not in used:
            kind, levels, made = _coded(name, column, rows)
            add(name, kind, levels, made)
    return np.ascontiguousarray(np.column_stack(parts)), tuple(features)


def _values(columns: Mapping[str, Column]) -> Floats:
    """Return all features as numbers, row by row."""
    return np.column_stack([_numbers(name, column) for name, column in columns.items()])


def _of_coded(predictor: Predictor, columns: Mapping[str, Column]) -> Callable[[Floats], Floats]:
    """Return the model as a function of rows as they are coded: binary features as 0 and 1."""
    values = _values(columns)
    low, high = values.min(axis=0), values.max(axis=0)
    binary = ((values == low) | (values == high)).all(axis=0)

    def predict(coded: Floats) -> Floats:
        return predictor(np.where(binary, np.where(coded > 0, high, low), coded))

    return predict


def _numbers(name: str, column: Column) -> Floats:
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


def _coded(
    name: str, column: Column, rows: NDArray[np.int64]
) -> tuple[str, list[str], list[Floats]]:
    """Return kind, levels and columns of a feature."""
    text = (
        bool(len(column.labels)) and isinstance(column.labels[0], str)
        if isinstance(column, Coded)
        else column.dtype.kind not in "iuf"
    )
    if not text:
        values = _numbers(name, column)
        distinct = np.unique(values)
        if len(distinct) > 2:
            return "continuous", [], [values[rows]]
        low, high = (f"{value:g}" for value in distinct[[0, -1]])
        return "binary", [high, low], [(values[rows] == distinct[-1]).astype(np.float64)]
    labels, codes = _levels(column)
    if len(labels) > _MOST_LEVELS:
        raise DataError(
            f"feature {name!r} has {len(labels):,} levels; accepted: at most {_MOST_LEVELS}, put "
            "them into classes first"
        )
    codes = codes[rows]
    if len(labels) <= 2:
        return "binary", labels[::-1], [(codes == len(labels) - 1).astype(np.float64)]
    return "categorical", labels, [(codes == k).astype(np.float64) for k in range(len(labels))]


def _levels(column: Column) -> tuple[list[str], NDArray[Any]]:
    """Return the levels in order, missing last, and the code of every row."""
    if isinstance(column, Coded):
        named = [str(value) for value in column.labels]
        order = sorted(range(len(named)), key=named.__getitem__)
        place = np.empty(len(named) + 1, dtype=np.int64)
        place[order] = np.arange(len(named))
        place[len(named)] = len(named)
        labels = [named[i] for i in order]
        codes = place[column.codes]
    else:
        distinct, codes = np.unique(column, return_inverse=True)
        labels, codes = [str(value) for value in distinct], codes.ravel()
    if (codes == len(labels)).any():
        labels = [*labels, _MISSING]
    present = np.unique(codes)
    table = np.zeros(len(labels) + 1, dtype=np.int64)
    table[present] = np.arange(len(present))
    return [labels[code] for code in present], table[codes]
