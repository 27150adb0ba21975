"""Read the arguments of `influence_audit`: the target group, the others, and their features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import Column
from ..data.features import named_columns
from ..data.groups import attribute_name, find_group, group_label, group_name
from ..data.index import check_indices, indices_of
from ..data.labels import Label
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError, ColumnError, DataError
from ..report.notes import Note
from ..report.shared_notes import rows_without_group_note
from .feature import Feature
from .feature_encodings import FeatureEncodings
from .missing_numbers import MissingNumbers
from .predictor import EncodedPredictor, Predictor
from .rates import Measure

Floats = NDArray[np.float64]

#: The most that scores of the same model differ, even in single precision.
_ROUNDING = 1e-5


@dataclass(frozen=True, eq=False, kw_only=True)
class InfluenceQuestion:
    """The labels, scores and features of all rows, and the positions of both sides."""

    measure: Measure
    #: Labels (False if none are needed) and scores of all rows, in the order of the data.
    label: NDArray[np.bool_]
    score: Floats
    #: Positions of the rows of the target group and of the others.
    rows: NDArray[np.int64]
    other_rows: NDArray[np.int64]
    #: For each row of the others, the position of its group in `other_names`.
    other_group: NDArray[np.int64]
    encodings: FeatureEncodings
    #: The features that get scores.
    features: tuple[Feature, ...]
    #: The score of encoded rows; None without a model.
    predict: Callable[[Floats], Floats] | None
    target_name: Any
    other_names: tuple[Any, ...]
    attribute: str
    #: Whether there are scores, not decisions.
    of_scores: bool
    n_rows: int
    n_missing: int
    #: Missing numbers in the features.
    missing_numbers: MissingNumbers
    #: Notes on how the rows were read.
    notes: tuple[Note, ...] = ()

    def row_notes(self) -> tuple[Note, ...]:
        """Return the notes on rows without a group and on how the rows were read."""
        if not self.n_missing:
            return self.notes
        return (rows_without_group_note(self.n_missing, self.attribute), *self.notes)


@dataclass(frozen=True, kw_only=True)
class InfluenceArguments:
    """The arguments of `influence_audit` that define the question."""

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
    missing: str | None = None
    n_threads: int | None = None
    #: Whether features may have missing numbers.
    takes_gaps: bool = False

    def pose(self) -> InfluenceQuestion:
        """Check the arguments and read the data."""
        names = self._names()
        table = AuditTable.make(
            data=self.data,
            y_true=self.y_true,
            y_pred=self.y_pred,
            y_score=self.y_score,
            sensitive_features=self.sensitive_features,
            extra=names if self.X is None else (),
            rows_for="influence_audit",
            missing=self.missing,
        )
        self._check(table)
        table = table.loaded()
        role = "y_pred" if "y_pred" in table.roles else "y_score"
        roles = [name for name in ("y_true", role) if name in table.roles]
        rows = table.rows(columns=roles, pos_label=self.pos_label)
        existing = list(rows.cells.group_sizes())
        key = find_group("target", self.target, existing)
        if len(existing) < 2:
            raise DataError(
                f"only one group: every row is {group_name(group_label(key))!r}. Pass rows of at "
                "least two groups.",
                argument="sensitive_features",
            )
        code = rows.cells.groups.index(key)
        in_group = np.array([None not in group for group in rows.cells.groups])
        own = np.flatnonzero(rows.group == code)
        rest = in_group.copy()
        rest[code] = False
        others = np.flatnonzero(rest[rows.group])
        columns = self._columns(table, names, len(rows.group))
        coding, gaps = self._encode_features(columns)
        predictor = self._predictor(columns, role)
        if role in rows.columns:
            score = self._score(rows.columns[role], role)
        else:
            assert predictor is not None
            score = predictor.predict_given()
        label = rows.columns.get("y_true")
        predict = None
        if predictor is not None:
            predict = EncodedPredictor(predictor, coding, gaps)
            self._check_model(predict(coding.matrix(own)), score[own], role)
        return InfluenceQuestion(
            measure=self.measure,
            label=np.zeros(len(score), dtype=bool) if label is None else label,
            score=np.ascontiguousarray(score),
            rows=own,
            other_rows=others,
            other_group=_positions(rows.cells.groups, [name for name in existing if name != key])[
                rows.group[others]
            ],
            encodings=coding,
            features=self._requested_features(coding, gaps),
            predict=predict,
            target_name=group_label(key),
            other_names=tuple(group_label(other) for other in existing if other != key),
            attribute=attribute_name(rows.cells.sensitive_features),
            of_scores=role == "y_score" and not bool(((score == 0) | (score == 1)).all()),
            n_rows=len(own) + len(others),
            n_missing=len(rows.group) - len(own) - len(others),
            missing_numbers=gaps,
            notes=tuple(rows.cells.notes),
        )

    def _encode_features(
        self, columns: Mapping[str, Column]
    ) -> tuple[FeatureEncodings, MissingNumbers]:
        """Return the encoding of the features; missing numbers are filled only if there are any."""
        sets = self.sets or {}
        try:
            return FeatureEncodings.from_columns(columns, sets, self.n_threads), MissingNumbers()
        except DataError:
            if not self.takes_gaps:
                raise
            gaps, filled = MissingNumbers.from_columns(columns)
            if not gaps.indicator:
                raise
            return FeatureEncodings.from_columns(filled, sets, self.n_threads), gaps

    def _names(self) -> list[str]:
        """Return the names of the features that are columns of the data."""
        if self.X is not None:
            return []
        if self.data is None:
            raise ArgumentError(
                "X is None. Pass the features as X=, or data= with their names in features=.",
                argument="X",
                mentions=("data", "features"),
                code="missing-argument",
            )
        if self.features is None:
            raise ArgumentError(
                "features is None. With data=, name the columns of the features in features=.",
                argument="features",
                mentions=("data",),
                code="missing-argument",
            )
        self._check_names(self.features)
        return list(self.features)

    def _check(self, table: AuditTable) -> None:
        if self.y_pred is not None and self.y_score is not None:
            raise ArgumentTypeError(
                "y_pred and y_score are both given. Pass one of them.",
                argument="y_pred",
                mentions=("y_score",),
                code="conflicting-arguments",
            )
        has_neither = "y_pred" not in table.roles and "y_score" not in table.roles
        if has_neither and self.model is None:
            raise ArgumentError(
                "y_pred and y_score are None. Pass decisions as y_pred=, or scores as y_score=.",
                argument="y_pred",
                mentions=("y_score",),
                code="missing-argument",
            )
        if self.measure.needs_labels and "y_true" not in table.roles:
            raise ArgumentError(
                f"y_true is None, but {self.measure.name} needs labels. Pass y_true=.",
                argument="y_true",
                code="missing-argument",
                needed_by=self.measure.name,
            )

    @staticmethod
    def _score(column: NDArray[Any], role: str) -> Floats:
        score = np.asarray(column, dtype=np.float64)
        if ((score < 0) | (score > 1)).any():
            row = int(((score < 0) | (score > 1)).argmax())
            raise DataError(
                f"{role} is {score[row]:g} in row {row}; accepted: probabilities from 0 to 1",
                argument=role,
            )
        return score

    def _columns(self, table: AuditTable, names: Sequence[str], n_rows: int) -> dict[str, Column]:
        """Return the features by name."""
        if self.X is None:
            source = table.source.in_memory()
            return {name: source.columns[f"extra:{name}"] for name in names}
        check_indices(indices_of({"the labels and scores": table.index, "X": self.X}))
        columns = dict(named_columns(self.X))
        if not columns:
            raise ArgumentError("X has no columns. Pass at least one feature.", argument="X")
        lengths = {len(column) for column in columns.values()} - {n_rows}
        if lengths:
            raise DataError(
                f"X has {min(lengths):,} rows; the labels and scores have {n_rows:,}. Pass the "
                "features of the same rows.",
                argument="X",
            )
        if self.features is None:
            return columns
        self._check_names(self.features)
        lacking = [name for name in self.features if name not in columns]
        if lacking:
            raise ColumnError(
                f"features names {lacking[0]!r}, which is not a column of X. The columns are "
                f"{', '.join(columns)}.",
                argument="features",
                mentions=("X",),
            )
        # A model needs all features, even if scores are requested for some.
        chosen = columns if self.model is not None else self.features
        return {name: columns[name] for name in chosen}

    def _check_names(self, features: Any) -> None:
        if isinstance(features, str) or not hasattr(features, "__len__"):
            raise ArgumentTypeError(
                f"features is {features!r}; accepted: a list of names", argument="features"
            )
        if not len(features):
            instead = "" if self.X is None else ", or None for all"
            raise ArgumentError(
                f"features is empty; accepted: column names{instead}", argument="features"
            )

    def _requested_features(
        self, coding: FeatureEncodings, gaps: MissingNumbers
    ) -> tuple[Feature, ...]:
        """Return the features that get scores."""
        if self.features is None or self.X is None:
            return coding.features
        sets = self.sets or {}
        return tuple(
            feature
            for feature in coding.features
            if gaps.column_of(feature.name) in self.features
            or set(sets.get(feature.name, ())) & set(self.features)
        )

    def _predictor(self, columns: Mapping[str, Column], role: str) -> Predictor | None:
        """Return the model as a function; None without one."""
        if self.model is None:
            return None
        if self.X is None:
            raise ArgumentTypeError(
                "model needs the features as X=. Pass X=, or remove the model.",
                argument="model",
                mentions=("X",),
                code="missing-argument",
            )
        return Predictor(self.model, self.X, tuple(columns), role == "y_pred")

    @staticmethod
    def _check_model(predicted: Floats, given: Floats, role: str) -> None:
        """Raise if the given decisions or scores are not those of the model."""
        differ = np.abs(predicted - given) > _ROUNDING
        if differ.any():
            raise DataError(
                f"{role} differs from the model in {int(differ.sum()):,} of {len(given):,} rows of "
                f"the target group. Pass the model that made {role}, or no model.",
                argument=role,
                mentions=("model",),
            )


def _positions(groups: Sequence[Any], names: Sequence[Any]) -> NDArray[np.int64]:
    """Return the position of each group among the names, -1 if it is not among them."""
    return np.array([names.index(name) if name in names else -1 for name in groups], dtype=np.int64)
