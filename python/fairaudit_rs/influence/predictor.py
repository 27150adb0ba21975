"""Call a model on feature rows, including hypothetical ones, for scores or decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentTypeError, DataError
from .feature_encodings import FeatureEncodings
from .missing_numbers import MissingNumbers
from .rewrite import like_column

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model as a function of features: scores (P(Y = 1), from 0 to 1) or decisions."""

    model: Any
    #: The features as the user passed them: the model gets rows in this form.
    given: Any
    names: Sequence[str]
    decisions: bool

    def __call__(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        """Return a number from 0 to 1 for every row."""
        return self._scores(like_given(self.given, columns), len(columns[self.names[0]]))

    def predict_given(self) -> Floats:
        """Return the numbers for the rows that the user passed."""
        if isinstance(self.given, Mapping):
            return self({name: np.asarray(self.given[name]) for name in self.names})
        return self._scores(self.given, len(self.given))

    def _scores(self, rows: Any, n: int) -> Floats:
        if self.decisions:
            predictions = self._decide(rows)
        else:
            if not hasattr(self.model, "predict_proba"):
                raise ArgumentTypeError(
                    f"model is a {type(self.model).__name__} without predict_proba. Pass a model "
                    "that has it, or decisions as y_pred=.",
                    argument="model",
                    mentions=("y_pred",),
                )
            predictions = np.asarray(self.model.predict_proba(rows), dtype=np.float64)
            if predictions.ndim == 2:
                if predictions.shape[1] != 2:
                    raise DataError(
                        f"model has {predictions.shape[1]} classes; accepted: two", argument="model"
                    )
                predictions = predictions[:, 1]
        if predictions.shape != (n,) or not ((predictions >= 0) & (predictions <= 1)).all():
            raise DataError(
                "model did not return one number from 0 to 1 for each row. Pass a model that "
                "predicts probabilities, or decisions of 0 and 1.",
                argument="model",
            )
        return predictions

    def _decide(self, rows: Any) -> Floats:
        if hasattr(self.model, "decision"):
            return np.asarray(self.model.decision(rows), dtype=np.float64)
        if not hasattr(self.model, "predict"):
            raise ArgumentTypeError(
                f"model is a {type(self.model).__name__} without predict. Pass a model that has "
                "it, or scores as y_score=.",
                argument="model",
                mentions=("y_score",),
            )
        predictions = np.asarray(self.model.predict(rows))
        classes = getattr(self.model, "classes_", (0, 1))
        if len(classes) != 2:
            raise DataError(f"model has {len(classes)} classes; accepted: two", argument="model")
        return np.asarray(predictions == classes[1], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class EncodedPredictor:
    """A model as a function of encoded rows."""

    predictor: Predictor
    coding: FeatureEncodings
    gaps: MissingNumbers

    def __call__(self, coded: Floats) -> Floats:
        """Return a number from 0 to 1 for every row."""
        return self.predictor(self.gaps.restored(self.coding.decode(coded)))


def like_given(given: Any, columns: Mapping[str, NDArray[Any]]) -> Any:
    """Return columns in the form in which the user passed features: a frame or an array."""
    package = type(given).__module__.partition(".")[0]
    if package in ("pandas", "polars") and hasattr(given, "columns"):
        return type(given)({name: like_column(given[name], columns[name]) for name in columns})
    if any(column.dtype.kind not in "biuf" for column in columns.values()):
        raise ArgumentTypeError(
            "model needs X as a pandas or polars frame when a feature is text. Convert X to a "
            "frame.",
            argument="model",
            mentions=("X",),
        )
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns.values()])
