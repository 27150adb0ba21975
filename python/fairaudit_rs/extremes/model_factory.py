"""Makes and fits the models of a search, from an estimator or a user's function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..data.columns import list_some
from ..errors import ArgumentError, ArgumentTypeError
from .scoring import stack_columns
from .space import Settings


@dataclass(frozen=True, eq=False)
class ModelFactory:
    """Makes and fits the model of a setting."""

    estimator: Any
    train: Callable[[Any, Any, Any, Settings], Any] | None
    is_estimator: bool

    @classmethod
    def from_estimator(cls, estimator: Any, train: Any, names: Sequence[str]) -> ModelFactory:
        """Check the arguments from which models are made."""
        if train is not None and not callable(train):
            raise ArgumentTypeError(
                f"train is a {type(train).__name__}; accepted: a function of the model, X, y and "
                "the settings",
                argument="train",
            )
        is_class = isinstance(estimator, type)
        if not is_class and hasattr(estimator, "get_params") and hasattr(estimator, "set_params"):
            known = sorted(estimator.get_params())
            unknown = [name for name in names if name not in known]
            if unknown:
                raise ArgumentError(
                    f"space names {unknown[0]!r}, which is not a parameter of "
                    f"{type(estimator).__name__}; its parameters: {list_some(known, 30)}",
                    argument="space",
                )
            return cls(estimator, train, True)
        if "torch" in sys.modules and isinstance(estimator, sys.modules["torch"].nn.Module):
            raise ArgumentTypeError(
                "estimator is a torch module, which has no settings. Pass a function of settings "
                "that makes a module.",
                argument="estimator",
            )
        if not callable(estimator):
            raise ArgumentTypeError(
                f"estimator is a {type(estimator).__name__}; accepted: a scikit-learn estimator, "
                "or a function of settings that makes a model",
                argument="estimator",
            )
        return cls(estimator, train, False)

    def fit_model(self, settings: Settings, X: Any, y: Any, seed: int) -> Any:
        """Make the model of a setting, and fit it."""
        with _seeded(seed):
            if self.is_estimator:
                from sklearn.base import clone

                model = clone(self.estimator).set_params(**settings)
            else:
                model = self.estimator(**settings)
            _seed_parameters(model, seed)
            if self.train is not None:
                trained = self.train(model, X, y, dict(settings))
                return model if trained is None else trained
            if not hasattr(model, "fit"):
                raise ArgumentTypeError(
                    f"estimator makes a {type(model).__name__}, which has no fit method. Pass "
                    "train= as a function that fits it.",
                    argument="estimator",
                    mentions=("train",),
                    code="missing-argument",
                )
            model.fit(stack_columns(X) if isinstance(X, Mapping) else X, y)
        return model


def _seed_parameters(model: Any, seed: int) -> None:
    """Set the seeds that an estimator, or an estimator inside it, leaves open."""
    if not hasattr(model, "get_params") or not hasattr(model, "set_params"):
        return
    unseeded = [
        name
        for name, value in model.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    ]
    if unseeded:
        model.set_params(**dict.fromkeys(unseeded, seed))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed torch if it is in use, and restore its random state afterwards."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    n_devices = torch.cuda.device_count() if torch.cuda.is_initialized() else 0
    with torch.random.fork_rng(devices=range(n_devices)):
        torch.manual_seed(seed)
        yield
