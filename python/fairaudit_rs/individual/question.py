"""Reads the arguments of the individual lens: models, rows, labels, weights and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import arguments
from ..data.arrays import ArraySource
from ..data.columns import Column, EncodedColumn, column_array, list_some
from ..data.columns_from_arguments import add_columns
from ..data.features import Features, Fill, gaps_of, positions_of, read_features
from ..data.labels import Label, binary_labels, check_pos_label, distinct_values, label_matches
from ..errors import ArgumentError, ArgumentTypeError, DataError
from ..literals import Loss
from ..models.adapt import adapt
from ..models.binary import BinaryModel
from ..models.multiclass import MulticlassModel
from ..models.scores import Scores
from ..models.sklearn import is_tree, last_step, multiclass_from_sklearn
from ..report.notes import Note
from .sample import RowWeights
from .sensitive_directions import ProtectedAttribute
from .simplex import Groups, check_groups, found_groups
from .targets import Targets

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]

#: Separators between the name of a feature and its level, as in "race_black" or "race=black".
_JOINTS = ("_", "=")
#: Whole numbers with more distinct values than this are numeric, not categorical.
_MOST_CLASSES = 10

LOSSES: tuple[Loss, ...] = get_args(Loss)


@dataclass(frozen=True, kw_only=True)
class FlowModel:
    """The scores of a model, and how they decide."""

    scores: Scores
    #: The lowest score with decision 1; None with several scores.
    boundary: float | None
    classes: tuple[Label, ...]
    feature_names: tuple[str, ...] | None
    #: The values that replace missing ones.
    fill: Fill

    def targets(self, y: Any, loss: str, pos_label: Label) -> Targets:
        """Return the targets of the scores: labels, classes or numbers."""
        if loss == "squared":
            values = _numbers(y, pos_label)
        elif self.classes:
            values = _classes(y, self.classes, pos_label)
        else:
            values = _labels(y, pos_label)
        return Targets(values, loss, self.boundary)

    def rows(self, X: Any) -> Features:
        """Return the rows, with features in the order of the model."""
        return read_features(X, self.scores.n_features, self.feature_names, self.fill)

    def gaps(self, X: Any) -> NDArray[np.bool_] | None:
        """Return a mask of missing features, by row and feature; None if none is missing."""
        mask = gaps_of(X, self.feature_names) if self.fill else None
        return mask if mask is not None and mask.any() else None

    def gap_notes(self, X: Any) -> list[Note]:
        """Return the notes about rows with missing values."""
        gaps = self.gaps(X)
        if gaps is None:
            return []
        n = int(gaps.any(axis=1).sum())
        return [
            Note(
                "attack-from-imputed-values",
                f"{n:,} of {len(gaps):,} rows have missing values: their attack starts at the "
                "values that the imputer of the model fills in",
            )
        ]


def flow_model(model: Any, loss: str, ratio: str) -> FlowModel:
    """Return the scores of a model; raise if the loss or the ratio does not fit them."""
    last = last_step(model)
    if is_tree(last):
        raise ArgumentTypeError(
            f"model is a {type(last).__name__}, whose score is piecewise constant: there is no "
            "gradient to follow. Use a linear model, a kernel model or a network. For any model, "
            "extreme_test(model, X, attribute=...) changes an attribute, and projection_test takes "
            "scores with calibration='permutation'.",
            argument="model",
            mentions=(
                "attribute",
                "calibration",
            ),
        )
    several = model if isinstance(model, MulticlassModel) else multiclass_from_sklearn(model)
    if several is not None:
        if loss != "log_loss":
            raise ArgumentError(
                f"loss is {loss!r} for a model of {len(several.classes)} classes; accepted: "
                "'log_loss'",
                argument="loss",
            )
        return FlowModel(
            scores=several.scores,
            boundary=None,
            classes=several.classes,
            feature_names=several.feature_names,
            fill=several.fill,
        )
    adapted = adapt(model)
    if not isinstance(adapted, BinaryModel):
        raise ArgumentTypeError(
            f"model is a {type(model).__name__}, whose gradient is not known; accepted: a "
            "LinearModel, KernelModel, TorchModel or MulticlassModel, or a fitted model that "
            "becomes one of them",
            argument="model",
        )
    if loss == "log_loss" and adapted.link != "logit":
        raise ArgumentError(
            "model has link='identity', so its score is not a log-odds, which loss='log_loss' "
            "needs. Use loss='smooth_hinge' or 'softplus_hinge' for the margin of a support vector "
            "machine, loss='squared' for a regression, or link='logit' if the score is a log-odds.",
            argument="model",
            mentions=(
                "link",
                "loss",
            ),
        )
    if loss == "squared" and adapted.link == "logit":
        raise ArgumentError(
            "model has link='logit', so its score is a log-odds and not a prediction of y, which "
            "loss='squared' needs. Use loss='log_loss', or a model with link='identity'.",
            argument="model",
            mentions=(
                "link",
                "loss",
            ),
        )
    if loss == "squared" and ratio == "error_rate":
        raise ArgumentError(
            "ratio is 'error_rate', but loss='squared' is for numbers, which have no wrong "
            "decisions. Use ratio='loss'.",
            argument="ratio",
            mentions=("loss",),
            code="conflicting-arguments",
        )
    return FlowModel(
        scores=adapted.scores,
        boundary=adapted.boundary,
        classes=adapted.classes or (),
        feature_names=adapted.feature_names,
        fill=adapted.fill,
    )


def _labels(y: Any, pos_label: Label) -> Floats:
    """Return labels as 0 and 1."""
    values, codes = _distinct(y)
    if pos_label is not None:
        check_pos_label(pos_label, {"y": values})
    return binary_labels("y", values, pos_label)[codes].astype(np.float64)


def _classes(y: Any, known: tuple[Label, ...], pos_label: Label) -> Floats:
    """Return labels as positions among the classes of a model."""
    if pos_label is not None and len(known) > 2:
        raise ArgumentTypeError(
            f"pos_label is {pos_label!r}, but the model has {len(known)} classes. Omit pos_label.",
            argument="pos_label",
            code="conflicting-arguments",
        )
    if pos_label is not None and not label_matches(known[1], pos_label):
        raise ArgumentError(
            f"pos_label is {pos_label!r}, but the model gives the score of {known[1]!r}; accepted: "
            f"{known[1]!r}, None",
            argument="pos_label",
        )
    values, codes = _distinct(y)
    numbers = []
    for value in values:
        matches = [number for number, class_ in enumerate(known) if label_matches(value, class_)]
        if not matches:
            raise DataError(
                f"y holds {value!r}; accepted: the classes of the model, "
                f"{list_some(list(known), 20)}",
                argument="y",
            )
        numbers.append(matches[0])
    return np.array(numbers, dtype=np.float64)[codes]


def _numbers(y: Any, pos_label: Label) -> Floats:
    """Return numbers as they are, or labels as 0 and 1 if there is a `pos_label`."""
    if pos_label is not None:
        return _labels(y, pos_label)
    column = column_array("y", y)
    if isinstance(column, EncodedColumn) or column.dtype.kind not in "biuf":
        raise DataError(
            "y holds text, but loss='squared' needs numbers. Pass numbers, or pos_label.",
            argument="y",
            mentions=(
                "loss",
                "pos_label",
            ),
        )
    _check_finite(column)
    return column.astype(np.float64)


def _distinct(y: Any) -> tuple[list[Label], NDArray[np.int64]]:
    """Return the distinct values of a column, and the position among them of each row's value."""
    column = column_array("y", y)
    if not isinstance(column, EncodedColumn):
        _check_finite(column)
    values, codes = distinct_values(column)
    if len(codes) and codes.max() >= len(values):
        raise DataError(
            "y is missing in some rows. Label every row, or leave these rows out.", argument="y"
        )
    return values, codes


def _check_finite(column: NDArray[Any]) -> None:
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise DataError(
            "y is missing or infinite in some rows. Pass finite numbers, or leave these rows out.",
            argument="y",
        )


def read_rows(
    X: Any, n_features: int | None = None, feature_names: tuple[str, ...] | None = None
) -> Features:
    """Return rows of features, with a given number or given names of features."""
    return read_features(X, n_features, feature_names)


def sample_of(sample_weight: Any, clusters: Any, n_rows: int) -> RowWeights | None:
    """Return weights and clusters of the rows; None if each row is independent with weight 1."""
    columns: dict[str, Column] = {}
    names: dict[str, str] = {}
    keys: tuple[str, ...] = ()
    if clusters is not None:
        keys = add_columns(columns, names, "clusters", clusters)
    if sample_weight is not None:
        columns["sample_weight"] = column_array("sample_weight", sample_weight)
    for key, column in columns.items():
        if len(column) != n_rows:
            argument = key.partition(":")[0]
            raise DataError(
                f"{argument} has {len(column):,} rows, X has {n_rows:,}. Pass one value per row.",
                argument=argument,
            )
    source = ArraySource(columns)
    weight = None if sample_weight is None else source.weights("sample_weight")
    person = source.cluster_codes(keys, [names[key] for key in keys]) if keys else None
    return RowWeights.from_arrays(weight, person)


def one_hot_groups_of(one_hot_groups: Any, features: Features) -> Groups:
    """Return the groups of one-hot features: the given ones, or those found in the rows."""
    rows, names = features
    if one_hot_groups is None:
        return found_groups(rows)
    accepted = "a sequence of groups, each with names or positions of features"
    if not arguments.is_listing(one_hot_groups):
        raise ArgumentTypeError(
            f"one_hot_groups is {one_hot_groups!r}; accepted: {accepted}", argument="one_hot_groups"
        )
    groups = tuple(
        tuple(chosen_features("one_hot_groups", group, names, rows.shape[1]).tolist())
        for group in one_hot_groups
    )
    taken = [column for group in groups for column in group]
    if len(set(taken)) < len(taken) or not all(groups):
        raise ArgumentError(
            "one_hot_groups has a group without features, or a feature in two groups. Give each "
            "group at least one feature, and each feature one group.",
            argument="one_hot_groups",
        )
    check_groups(groups, rows, features.called)
    return groups


# -- arguments of fair metrics -----------------------------------------------------------------


def attributes_of(protected: Any, n_rows: int) -> list[ProtectedAttribute]:
    """Return the protected attributes with their names ("" for unnamed ones)."""
    if protected is None:
        return []
    columns: list[tuple[str, Any]]
    if isinstance(protected, Mapping):
        columns = [(str(name), column) for name, column in protected.items()]
    elif hasattr(protected, "columns") and not hasattr(protected, "shape"):
        raise ArgumentTypeError(
            "protected is a lazy frame; accepted: columns, or a frame", argument="protected"
        )
    elif hasattr(protected, "columns"):
        columns = [(str(name), protected[name]) for name in protected.columns]
    elif isinstance(protected, np.ndarray) and protected.ndim == 2:
        columns = [("", column) for column in protected.T]
    elif isinstance(protected, Sequence) and len(protected) and not _is_value(protected[0]):
        columns = [("", column) for column in protected]
    else:
        columns = [(str(getattr(protected, "name", None) or ""), protected)]
    return [_attribute(name, column, n_rows) for name, column in columns]


def _is_value(value: Any) -> bool:
    return isinstance(value, str) or (not isinstance(value, Sequence) and np.ndim(value) == 0)


def _attribute(name: str, values: Any, n_rows: int) -> ProtectedAttribute:
    description = f"protected attribute {name!r}" if name else "protected"
    column = column_array(description, values)
    if len(column) != n_rows:
        raise DataError(
            f"{description} has {len(column):,} rows, X has {n_rows:,}. Pass one value per row.",
            argument="protected",
        )
    kind = "U" if isinstance(column, EncodedColumn) else column.dtype.kind
    if not isinstance(column, EncodedColumn) and kind == "f" and not np.isfinite(column).all():
        raise DataError(
            f"{description} is not finite in some rows. Pass finite numbers, or leave these "
            "rows out.",
            argument="protected",
        )
    levels, codes = distinct_values(column)
    if len(codes) and codes.max() >= len(levels):
        raise DataError(
            f"{description} is missing in some rows. Fill in the values, or leave these rows out.",
            argument="protected",
        )
    if len(levels) < 2:
        raise DataError(
            f"{description} has the same value in all rows. Pass an attribute with at least "
            "two values.",
            argument="protected",
        )
    if len(levels) == 2 or kind in "USOb" or (kind in "iu" and len(levels) <= _MOST_CLASSES):
        return ProtectedAttribute(name, codes, len(levels))
    return ProtectedAttribute(name, np.asarray(column, dtype=np.float64), 0)


def chosen_rows(argument: str, rows: ArrayLike, n_rows: int) -> Positions:
    """Return positions of rows, given positions or a mask."""
    try:
        positions = np.asarray(rows)
    except Exception as error:  # __array__ of the argument may raise any error
        raise ArgumentTypeError(
            f"{argument} is no array ({error}); accepted: positions of rows, or a mask",
            argument=argument,
        ) from None
    if positions.ndim != 1 or positions.dtype.kind not in "biu":
        raise ArgumentTypeError(
            f"{argument} has dtype {positions.dtype} and {positions.ndim} dimensions; accepted: "
            "positions of rows, or a mask",
            argument=argument,
        )
    if positions.dtype.kind == "b":
        if len(positions) != n_rows:
            raise ArgumentError(
                f"{argument} is a mask of {len(positions):,} rows; accepted: the {n_rows:,} of X",
                argument=argument,
            )
        positions = np.flatnonzero(positions)
    if not len(positions):
        raise ArgumentError(f"{argument} chooses no row. Choose at least two.", argument=argument)
    outside = (positions < 0) | (positions >= n_rows)
    if outside.any():
        raise ArgumentError(
            f"{argument} contains {positions[outside][0]}; accepted: 0 to {n_rows - 1:,}",
            argument=argument,
        )
    return positions.astype(np.intp)


def chosen_features(
    argument: str, columns: Any, names: tuple[str, ...] | None, n_features: int
) -> Positions:
    """Return positions of features; a name may stand for the columns that were coded from it."""
    chosen = [columns] if isinstance(columns, str | int | np.integer) else columns
    if names is None or not arguments.is_listing(chosen):
        return positions_of(argument, columns, names, n_features)
    whole: list[Any] = []
    for column in chosen:
        coded = [
            name
            for name in names
            if isinstance(column, str)
            and name.startswith(tuple(column + joint for joint in _JOINTS))
        ]
        whole.extend(coded if column not in names and coded else [column])
    return positions_of(argument, whole, names, n_features)


def scaled_features(standardize: Any, rows: Floats, names: tuple[str, ...] | None) -> Positions:
    """Return the features that are measured in standard deviations."""
    if isinstance(standardize, bool | np.bool_):
        if not standardize:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(((rows != 0) & (rows != 1)).any(axis=0))
    return chosen_features("standardize", standardize, names, rows.shape[1])
