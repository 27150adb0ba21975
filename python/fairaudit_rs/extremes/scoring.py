"""Scores rows and their counterfactuals in batches, by any kind of model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import ProgressCallback
from ..data.columns import list_some
from ..data.labels import Label, label_matches
from ..errors import ArgumentError, ArgumentTypeError, DataError
from ..models.torch_model import TorchModel
from .distinct_rows import find_distinct_rows
from .feature_tables import FeatureTable, RowNumbers
from .flips import Flips

Floats = NDArray[np.float64]

_BATCH = 1 << 14
#: Probabilities in single precision may be outside [0, 1] by this much.
_ROUNDING = 4 * float(np.finfo(np.float32).eps)

_ACCEPTED = (
    "a model of this package, a torch.nn.Module, an object with predict_proba, or a function of X "
    "that returns probabilities"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Probability:
    """A function that returns a model's probability of the favourable label for rows."""

    predict: Callable[[Any], Any]
    #: The column of the favourable label, if the model returns several.
    column: int
    #: Whether the single number per row of a model is the probability of the unfavourable label.
    of_other: bool = False
    n_classes: int = 2
    #: Whether a dict of columns is passed to the model as an array.
    as_array: bool = True

    def __call__(self, X: Any, rows: RowNumbers, what: str) -> Floats:
        """Return a probability for each row of X; messages use `rows`, their numbers."""
        features = stack_columns(X) if self.as_array and isinstance(X, Mapping) else X
        probabilities = _as_numbers(self.predict(features))
        if probabilities.ndim == 2 and probabilities.shape[1] == 1:
            probabilities = probabilities[:, 0]
        if probabilities.ndim == 2 and probabilities.shape == (len(rows), self.n_classes):
            probabilities = probabilities[:, self.column]
        elif probabilities.shape == (len(rows),) and self.n_classes == 2:
            probabilities = 1 - probabilities if self.of_other else probabilities
        else:
            raise DataError(
                f"model returns an array of shape {probabilities.shape} for {len(rows):,} rows; "
                f"accepted: a probability per row, or one for each of {self.n_classes} classes",
                argument="model",
            )
        bad = ~((probabilities >= -_ROUNDING) & (probabilities <= 1 + _ROUNDING))
        if bad.any():
            place = int(bad.argmax())
            raise DataError(
                f"model returns {probabilities[place]:g} for {what} row {rows[place]}; accepted: "
                "probabilities, from 0 to 1, for all rows",
                argument="model",
            )
        return np.asarray(probabilities.clip(0.0, 1.0))


def probability_of(model: Any, pos_label: Label = None) -> Probability:
    """Return a function for a model's probability of the favourable label."""
    if isinstance(model, type):
        raise ArgumentTypeError(
            f"model is the class {model.__name__}. Pass a fitted model.", argument="model"
        )
    if "torch" in sys.modules and isinstance(model, sys.modules["torch"].nn.Module):
        return _of_module(model, pos_label)
    if hasattr(model, "predict_proba"):
        column, n_classes = _class_of(model, pos_label)
        return Probability(
            predict=model.predict_proba,
            column=column,
            of_other=column == 0,
            n_classes=n_classes,
        )
    if not callable(model):
        raise ArgumentTypeError(
            f"model is a {type(model).__name__} without predict_proba; accepted: {_ACCEPTED}",
            argument="model",
        )
    if pos_label is not None:
        raise ArgumentTypeError(
            f"pos_label is {pos_label!r} and model is a function, which has no labels. Remove "
            "pos_label, and let the function return the probability of the favourable label.",
            argument="pos_label",
            mentions=("model",),
            code="conflicting-arguments",
        )
    return Probability(predict=model, column=1, as_array=False)


def _of_module(module: Any, pos_label: Label) -> Probability:
    """Return the probability of a torch module, which returns logits or ends in a sigmoid."""
    column, _ = _find_label((0, 1), pos_label)
    if type(list(module.modules())[-1]).__name__ == "Sigmoid":
        predict = TorchModel(module, link="identity").decision_function
    else:
        predict = TorchModel(module).predict_proba
    return Probability(predict=predict, column=column, of_other=column == 0)


def _class_of(model: Any, pos_label: Label) -> tuple[int, int]:
    """Return the position of the favourable class in a model's classes, and their number."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        classes = getattr(model, "classes", None)
    if classes is None or callable(classes):
        classes = (0, 1)
    return _find_label(np.asarray(classes).tolist(), pos_label)


def _find_label(classes: Any, pos_label: Label) -> tuple[int, int]:
    if not all(isinstance(class_, str | int | float) for class_ in classes) or len(classes) < 2:
        raise DataError(
            f"model has the classes {list_some(list(classes))}; accepted: at least two labels",
            argument="model",
        )
    if pos_label is None:
        if len(classes) > 2:
            raise ArgumentError(
                f"model has {len(classes)} classes ({list_some(list(classes))}). Pass pos_label= "
                "to name the favourable one.",
                argument="model",
                mentions=("pos_label",),
                code="missing-argument",
            )
        return 1, 2
    wanted = pos_label.item() if isinstance(pos_label, np.generic) else pos_label
    for place, class_ in enumerate(classes):
        if label_matches(class_, wanted):
            return place, len(classes)
    raise ArgumentError(
        f"pos_label is {pos_label!r}, which is no class of the model; its classes: "
        f"{list_some(list(classes), 20)}",
        argument="pos_label",
    )


def _as_numbers(found: Any) -> NDArray[Any]:
    if hasattr(found, "detach"):
        found = found.detach().cpu().numpy()
    try:
        return np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"model does not return an array of numbers: {error}", argument="model"
        ) from None


def stack_columns(columns: Mapping[Any, Any]) -> Floats:
    """Return columns as an array, in their order."""
    try:
        return np.column_stack([np.asarray(c, dtype=np.float64) for c in columns.values()])
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            "X is a dict with text columns, which cannot become the array of numbers that the "
            "model takes. Pass the kind of frame that the model was fitted on.",
            argument="X",
        ) from None


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """The scores of some rows, and the largest amount by which a flip raises each of them."""

    score: Floats
    discrimination: Floats
    #: Number of rows scored: each distinct row once as it is and once for each flip.
    n_scored: int


def score_rows(
    probability: Probability,
    feature_table: FeatureTable,
    flips: Flips,
    rows: RowNumbers,
    progress: ProgressCallback | None = None,
    batch: int = _BATCH,
) -> ScoredRows:
    """Score rows, and find the largest f(x, z') - f(x, z) of each over its counterfactuals z'.

    Identical rows are scored once. A row and its flips have the same position in batches of the
    same size, so a model that ignores the attribute has differences of exactly 0.
    """
    distinct = find_distinct_rows([feature_table, *flips.compared_forms], rows)
    n_distinct = len(distinct.first)
    score, raised = np.empty(n_distinct), np.full(n_distinct, -np.inf)
    total, done = n_distinct * (1 + flips.n_flips), 0
    for start in range(0, n_distinct, batch):
        part = slice(start, start + batch)
        batch_rows = distinct.first[part]
        score[part] = probability(feature_table.take(batch_rows), batch_rows, "X,")
        for flip in range(flips.n_flips):
            flipped = probability(
                flips.flipped_rows(flip, batch_rows), batch_rows, "the counterfactual of"
            )
            np.maximum(raised[part], flipped - score[part], out=raised[part])
        done += len(batch_rows) * (1 + flips.n_flips)
        if progress is not None:
            progress(done, total)
    return ScoredRows(score[distinct.distinct_of_row], raised[distinct.distinct_of_row], total)


def scores_of(
    probability: Probability, feature_table: FeatureTable, rows: RowNumbers, batch: int = _BATCH
) -> Floats:
    """Return the probability of each of some rows; identical rows are scored once."""
    distinct = find_distinct_rows([feature_table], rows)
    score = np.empty(len(distinct.first))
    for start in range(0, len(score), batch):
        batch_rows = distinct.first[start : start + batch]
        score[start : start + batch] = probability(feature_table.take(batch_rows), batch_rows, "X,")
    return score[distinct.distinct_of_row]
