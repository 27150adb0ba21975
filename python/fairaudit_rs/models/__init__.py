"""The model protocol, the models of this package, and adapters from fitted models.

A model of this package offers four methods (`Model`): `decision_function`, `decision`,
`predict_proba` and `distance`. `LinearModel` and `KernelModel` are made from numbers, `TorchModel`
from a module, and `adapt` converts models that were fitted elsewhere.
"""

from .adapt import Model, adapt
from .distances import Distances, score_distance
from .kernel import KernelModel
from .linear import LinearModel
from .multiclass import MulticlassModel
from .sklearn import from_sklearn
from .torch_model import TorchModel

__all__ = [
    "LinearModel",
    "KernelModel",
    "TorchModel",
    "MulticlassModel",
    "Distances",
    "Model",
    "adapt",
    "from_sklearn",
    "score_distance",
]


def __dir__() -> list[str]:
    return sorted(__all__)
