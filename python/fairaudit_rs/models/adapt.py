"""The model protocol, and `adapt`, which converts fitted models to models of this package."""

from __future__ import annotations

import sys
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentTypeError
from .binary import BinaryModel
from .distances import Distances
from .estimators import sklearn_names
from .sklearn import from_sklearn, is_tree
from .torch_model import TorchModel


@runtime_checkable
class Model(Protocol):
    """The protocol of models: any class with these methods is a model."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of every row, before any link."""
        ...

    def decision(self, X: Any) -> NDArray[np.bool_]:
        """Return the decision of every row."""
        ...

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of label 1, one number per row."""
        ...

    def distance(self, X: Any) -> Distances:
        """Return the distance of every row to the decision boundary."""
        ...


def adapt(model: Any, threshold: float | None = None) -> Model:
    """Return any supported model as a model of this package.

    Parameters
    ----------
    model : Model, torch.nn.Module or fitted scikit-learn estimator
        A model of this package is returned as it is, a torch module becomes a `TorchModel`, and
        `from_sklearn` lists the estimators that are accepted.
    threshold : float, optional
        Rows that reach it get decision 1; see the model that is returned. By default the
        threshold of the model itself; for a torch module probability 0.5.

    Returns
    -------
    Model
        The model.
    """
    if isinstance(model, BinaryModel):
        return model if threshold is None else model.with_threshold(threshold)
    if isinstance(model, type):
        raise ArgumentTypeError(
            f"model is the class {model.__name__}; accepted: a fitted model", argument="model"
        )
    if "torch" in sys.modules and isinstance(model, sys.modules["torch"].nn.Module):
        return TorchModel(model, 0.5 if threshold is None else threshold)
    if isinstance(model, Model):
        if threshold is not None:
            raise ArgumentTypeError(
                "threshold is only for models that are converted, and this "
                f"{type(model).__name__} makes its own decisions. Omit threshold.",
                argument="threshold",
                code="conflicting-arguments",
            )
        return model
    if sklearn_names(model) or is_tree(model):
        return from_sklearn(model, threshold)
    raise ArgumentTypeError(
        f"model is a {type(model).__name__}; accepted: a LinearModel, KernelModel or TorchModel, a "
        "torch.nn.Module, a linear or kernel model of scikit-learn, or an object with the methods "
        "decision_function, decision, predict_proba and distance. For any other model pass "
        "y_score: the distance is then |score - threshold|",
        argument="model",
        mentions=("y_score",),
    )
