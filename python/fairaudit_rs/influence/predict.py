"""A model as a function of rows of features: scores or decisions, also of rows that never were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentTypeError, DataError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predictor:
    """Scores (P(Y = 1), from 0 to 1) or decisions of a model for rows of numbers."""

    model: Any
    #: The features as the user gave them: rows go to the model in this form.
    given: Any
    names: Sequence[str]
    decisions: bool

    def __call__(self, values: Floats) -> Floats:
        """Return a number from 0 to 1 for every row."""
        rows = self._like_given(values)
        if self.decisions:
            found = self._decide(rows)
        else:
            if not hasattr(self.model, "predict_proba"):
                raise ArgumentTypeError(
                    f"model is a {type(self.model).__name__} without predict_proba; accepted: a "
                    "model that has it, or decisions in y_pred"
                )
            found = np.asarray(self.model.predict_proba(rows), dtype=np.float64)
            if found.ndim == 2:
                if found.shape[1] != 2:
                    raise DataError(f"model has {found.shape[1]} classes; accepted: two")
                found = found[:, 1]
        if found.shape != (len(values),) or not ((found >= 0) & (found <= 1)).all():
            raise DataError("model gives other numbers than one from 0 to 1 for each row")
        return found

    def _decide(self, rows: Any) -> Floats:
        if hasattr(self.model, "decision"):
            return np.asarray(self.model.decision(rows), dtype=np.float64)
        if not hasattr(self.model, "predict"):
            raise ArgumentTypeError(
                f"model is a {type(self.model).__name__} without predict; accepted: a model that "
                "decides, or y_score"
            )
        found = np.asarray(self.model.predict(rows))
        classes = getattr(self.model, "classes_", (0, 1))
        if len(classes) != 2:
            raise DataError(f"model has {len(classes)} classes; accepted: two")
        return np.asarray(found == classes[1], dtype=np.float64)

    def _like_given(self, values: Floats) -> Any:
        """Return rows in the form in which the features were given."""
        package = type(self.given).__module__.partition(".")[0]
        if package in ("pandas", "polars") and hasattr(self.given, "columns"):
            columns = {name: values[:, place] for place, name in enumerate(self.names)}
            return type(self.given)(columns)
        return values
