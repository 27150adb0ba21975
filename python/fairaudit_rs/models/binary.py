"""Models with one score and a threshold."""

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
    """A score of the features, and the threshold from which on the decision is 1.

    Attributes
    ----------
    threshold : float
        As given: a probability with link ``"logit"``, a score with link ``"identity"``.
    link : {"logit", "identity"}
        What the score is: log-odds, or a number with no meaning of its own.
    boundary : float
        The score from which on the decision is 1.
    feature_names : tuple of str or None
        Names of the features, in the order of the model.
    classes : tuple or None
        Labels 0 and 1 as the model was fitted on them; None where it knows of none.
    scores : Scores
        What gives the score of rows, as a gradient flow follows it.
    fill : dict
        What stands for missing values, by name or position of the column: that of the imputer of a
        pipeline.
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
        """Return whether another model scores and decides all rows alike, by the same numbers."""
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
        """Return the same model with another threshold, None for that of its link."""
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
            With link ``"identity"``: margins and regression values are no probabilities.
        """
        if self.link != "logit":
            raise ArgumentError(
                "predict_proba needs link='logit'; this model has link='identity', so that its "
                "score is no log-odds; use decision_function, or pass link='logit' if it is one",
                mentions=("link",),
            )
        with np.errstate(over="ignore"):
            return 1 / (1 + np.exp(-self.decision_function(X)))

    def _probability_rounding(self) -> float:
        """How far a score must be from the boundary for its probability to tell the side."""
        if self.link != "logit":
            return 0.0
        return 8 * EPSILON / min(self.threshold, 1 - self.threshold)


def intercept_of(value: Any) -> float:
    """Return the intercept; scikit-learn's shape (1,) is accepted too."""
    return arguments.finite("intercept", np.asarray(value) if np.ndim(value) else value)
