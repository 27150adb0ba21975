"""Scores of rows and of their counterfactuals: what any model says, in batches."""

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
from ..models.network import TorchModel
from .distinct_rows import distinct_rows
from .flips import Flips
from .forms import FeatureForm, RowNumbers

Floats = NDArray[np.float64]

_BATCH = 1 << 14
#: Probabilities in single precision may be so far outside of [0, 1].
_ROUNDING = 4 * float(np.finfo(np.float32).eps)

_ACCEPTED = (
    "a model of this package, a torch.nn.Module, an object with predict_proba, or a function of X "
    "that gives probabilities"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Probability:
    """P(favourable label) of rows, as a model gives it."""

    predict: Callable[[Any], Any]
    #: Which column of several is the favourable label.
    column: int
    #: Whether one number per row is the probability of the other label.
    of_other: bool = False
    n_classes: int = 2
    #: Whether a dict of columns goes to the model as an array.
    as_array: bool = True

    def __call__(self, X: Any, rows: RowNumbers, what: str) -> Floats:
        """Return a probability for each row; `rows` are their places, for messages."""
        given = stack_columns(X) if self.as_array and isinstance(X, Mapping) else X
        found = _as_numbers(self.predict(given))
        if found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        if found.ndim == 2 and found.shape == (len(rows), self.n_classes):
            found = found[:, self.column]
        elif found.shape == (len(rows),) and self.n_classes == 2:
            found = 1 - found if self.of_other else found
        else:
            raise DataError(
                f"model gives an array of shape {found.shape} for {len(rows):,} rows; accepted: a "
                f"probability per row, or one for each of {self.n_classes} classes",
                argument="model",
            )
        bad = ~((found >= -_ROUNDING) & (found <= 1 + _ROUNDING))
        if bad.any():
            place = int(bad.argmax())
            raise DataError(
                f"model gives {found[place]:g} for {what} row {rows[place]}; accepted: "
                "probabilities, from 0 to 1, for all rows",
                argument="model",
            )
        return np.asarray(found.clip(0.0, 1.0))


def probability_of(model: Any, pos_label: Label = None) -> Probability:
    """Return what gives the probability of the favourable label, of any model."""
    if isinstance(model, type):
        raise ArgumentTypeError(
            f"model is the class {model.__name__}; accepted: a fitted model", argument="model"
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
            f"pos_label is {pos_label!r} and model is a function, which knows of no labels; "
            "accepted: a function that gives the probability of the favourable label",
            argument="pos_label",
        )
    return Probability(predict=model, column=1, as_array=False)


def _of_module(module: Any, pos_label: Label) -> Probability:
    """Return the probabilities of a torch module of logits, or one that ends in a sigmoid."""
    column, _ = _label_place((0, 1), pos_label)
    if type(list(module.modules())[-1]).__name__ == "Sigmoid":
        predict = TorchModel(module, link="identity").decision_function
    else:
        predict = TorchModel(module).predict_proba
    return Probability(predict=predict, column=column, of_other=column == 0)


def _class_of(model: Any, pos_label: Label) -> tuple[int, int]:
    """Return the place of the favourable class among those of a model, and their number."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        classes = getattr(model, "classes", None)
    if classes is None or callable(classes):
        classes = (0, 1)
    return _label_place(np.asarray(classes).tolist(), pos_label)


def _label_place(classes: Any, pos_label: Label) -> tuple[int, int]:
    if not all(isinstance(class_, str | int | float) for class_ in classes) or len(classes) < 2:
        raise DataError(
            f"model has the classes {list_some(list(classes))}; accepted: at least two labels",
            argument="model",
        )
    if pos_label is None:
        if len(classes) > 2:
            raise ArgumentError(
                f"model has {len(classes)} classes ({list_some(list(classes))}); "
                f"accepted: pos_label= "
                "names the favourable one",
                argument="model",
                mentions=("pos_label",),
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
        raise DataError(f"model gives no array of numbers: {error}", argument="model") from None


def stack_columns(columns: Mapping[Any, Any]) -> Floats:
    """Return columns as an array, in their order."""
    try:
        return np.column_stack([np.asarray(c, dtype=np.float64) for c in columns.values()])
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            "X is a dict with text, which model does not take as an array; accepted: numbers, or a "
            "pandas or polars frame as the model was fitted on",
            argument="X",
        ) from None


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Of some rows the score, and by how much a flip raises it at most."""

    score: Floats
    discrimination: Floats
    #: Rows that were scored: each kind once as it is and once for each flip.
    n_scored: int


def score_rows(
    probability: Probability,
    form: FeatureForm,
    flips: Flips,
    rows: RowNumbers,
    progress: ProgressCallback | None = None,
    batch: int = _BATCH,
) -> ScoredRows:
    """Score rows and their counterfactuals: f(x, z') - f(x, z), the largest over the flips.

    Rows that are alike are scored once. A row and its flips stand in the same place of batches of
    the same size, so that a model that ignores the attribute gives differences of exactly 0.
    """
    kinds = distinct_rows([form, *flips.forms], rows)
    n_kinds = len(kinds.first)
    score, raised = np.empty(n_kinds), np.full(n_kinds, -np.inf)
    total, done = n_kinds * (1 + flips.n_flips), 0
    for start in range(0, n_kinds, batch):
        part = slice(start, start + batch)
        at = kinds.first[part]
        score[part] = probability(form.take(at), at, "X,")
        for flip in range(flips.n_flips):
            flipped = probability(flips.flipped_rows(flip, at), at, "the counterfactual of")
            np.maximum(raised[part], flipped - score[part], out=raised[part])
        done += len(at) * (1 + flips.n_flips)
        if progress is not None:
            progress(done, total)
    return ScoredRows(score[kinds.kind], raised[kinds.kind], total)


def scores_of(
    probability: Probability, form: FeatureForm, rows: RowNumbers, batch: int = _BATCH
) -> Floats:
    """Return the probability of each of some rows; rows that are alike are scored once."""
    kinds = distinct_rows([form], rows)
    score = np.empty(len(kinds.first))
    for start in range(0, len(score), batch):
        at = kinds.first[start : start + batch]
        score[start : start + batch] = probability(form.take(at), at, "X,")
    return score[kinds.kind]
