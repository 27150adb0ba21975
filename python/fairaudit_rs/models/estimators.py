"""Checks of scikit-learn estimators, without importing it."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ArgumentTypeError

#: Searches within searches that are looked through.
_MOST_SEARCHES = 10


def sklearn_names(model: Any) -> list[str]:
    """Return the scikit-learn classes that a model is an instance of."""
    names = [c.__name__ for c in type(model).__mro__ if c.__module__.startswith("sklearn.")]
    return names if "BaseEstimator" in names else []


def fitted_value(model: Any, attribute: str) -> Any:
    """Return what an estimator has learned, dense."""
    if not hasattr(model, attribute):
        raise ArgumentError(
            f"model is a {type(model).__name__} without {attribute}; accepted: a fitted one",
            argument="model",
        )
    value = getattr(model, attribute)
    return value.toarray() if hasattr(value, "toarray") else value


def best_of(model: Any) -> Any:
    """Return what searches within searches found; anything else as it is."""
    for _ in range(_MOST_SEARCHES):
        # An object that has every attribute is no search.
        if not (sklearn_names(model) and hasattr(model, "best_estimator_")):
            return model
        model = model.best_estimator_
    raise ArgumentTypeError(
        f"model is a {type(model).__name__} with more than {_MOST_SEARCHES} searches within each "
        "other; accepted: a fitted estimator of scikit-learn",
        argument="model",
    )
