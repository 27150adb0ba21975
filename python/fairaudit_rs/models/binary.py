"""The base class of models with one score and a threshold."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..data.features import Fill
from ..errors import ArgumentError
from ..literals import Link
from .distances import EPSILON, Distances
from .scores import Scores

LINKS: tuple[Link, ...] = get_args(Link)


class BinaryModel(ABC):
    """A score of the features and a threshold: rows whose score reaches it get decision 1.

    Attributes
    ----------
    threshold : float
        As given: a probability with link ``"logit"``, a score with link ``"identity"``.
    link : {"logit", "identity"}
        The meaning of the score: log-odds, or any other number.
    boundary : float
        The lowest score with decision 1.
    feature_names : tuple of str or None
        Names of the features, in the order of the model.
    classes : tuple or None
        The labels that the model was fitted on, which stand for 0 and 1; None if unknown.
    scores : Scores
        The function from rows to scores that a gradient flow follows.
    fill : dict
        The values that replace missing ones, by name or position of the column: those of the
        imputer of a pipeline.
    """

    classes: tuple[Any, Any] | None = None
    fill: Fill = MappingProxyType({})
    threshold: float
    link: Link
    boundary: float
    feature_names: tuple[str, ...] | None
    scores: Scores

    def _decide_by(self, threshold: object, link: object) -> None:
        """Set the threshold: None is probability 0.5, or score 0 with link "identity"."""
        chosen = arguments.choice("link", link, LINKS)
        if threshold is None:
            threshold = 0.5 if chosen == "logit" else 0.0
        value = arguments.check(threshold=threshold).threshold
        if chosen == "auto":
            chosen = "logit" if 0 < value < 1 else "identity"
        if chosen == "logit" and not 0 < value < 1:
            raise ArgumentError(
                f"threshold is {value:g} with link='logit'; accepted: a probability strictly "
                "between 0 and 1 (link='identity' compares the score itself)",
                argument="threshold",
                mentions=("link",),
            )
        self.threshold, self.link = value, chosen
        self.boundary = math.log(value / (1 - value)) if chosen == "logit" else value

    def __eq__(self, other: object) -> bool:
        """Return whether another model has the same scores, threshold, names and classes."""
        if not isinstance(other, BinaryModel) or type(self) is not type(other):
            return NotImplemented
        mine, theirs = (
            (model.scores, model.threshold, model.link, model.feature_names, model.classes)
            for model in (self, other)
        )
        return mine == theirs

    def __hash__(self) -> int:
        return hash((type(self), self.threshold, self.link, self.feature_names))

    def with_threshold(self, threshold: float | None) -> Self:
        """Return the same model with another threshold; None is the default of its link."""
        other = copy.copy(self)
        other._decide_by(threshold, self.link)
        return other

    @abstractmethod
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of every row, before any link."""

    @abstractmethod
    def distance(self, X: Any) -> Distances:
        """Return the distance of every row to the decision boundary."""

    def decision(self, X: Any) -> NDArray[np.bool_]:
        """Return the decision of every row: whether its score reaches the boundary."""
        return self.decision_function(X) >= self.boundary

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of label 1, one number per row.

        Raises
        ------
        ArgumentError
            With link ``"identity"``: margins and regression values are not log-odds.
        """
        if self.link != "logit":
            raise ArgumentError(
                "predict_proba needs link='logit', but this model has link='identity', so its "
                "score is not a log-odds. Use decision_function, or link='logit' if it is one.",
                argument="link",
            )
        with np.errstate(over="ignore"):
            return 1 / (1 + np.exp(-self.decision_function(X)))

    def _probability_rounding(self) -> float:
        """Return how far from the boundary a score must be for its probability to show the side."""
        if self.link != "logit":
            return 0.0
        return 8 * EPSILON / min(self.threshold, 1 - self.threshold)


def intercept_of(value: Any) -> float:
    """Return the intercept as a number; scikit-learn's shape (1,) is accepted too."""
    return arguments.finite("intercept", np.asarray(value) if np.ndim(value) else value)
