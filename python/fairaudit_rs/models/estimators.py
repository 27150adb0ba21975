"""Helpers that recognise and read estimators of scikit-learn without importing it."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ArgumentTypeError

#: Maximum depth of nested searches.
_MOST_SEARCHES = 10


def sklearn_names(model: Any) -> list[str]:
    """Return the scikit-learn classes that a model is an instance of."""
    names = [c.__name__ for c in type(model).__mro__ if c.__module__.startswith("sklearn.")]
    return names if "BaseEstimator" in names else []


def fitted_value(model: Any, attribute: str) -> Any:
    """Return a fitted attribute of an estimator, as a dense array."""
    if not hasattr(model, attribute):
        raise ArgumentError(
            f"model is a {type(model).__name__} without {attribute}, so it is not "
            "fitted. Fit it first.",
            argument="model",
        )
    value = getattr(model, attribute)
    return value.toarray() if hasattr(value, "toarray") else value


def best_of(model: Any) -> Any:
    """Return the best estimator of a search, or of nested searches; other models as they are."""
    for _ in range(_MOST_SEARCHES):
        # A mock has every attribute, but is not of scikit-learn.
        if not (sklearn_names(model) and hasattr(model, "best_estimator_")):
            return model
        model = model.best_estimator_
    raise ArgumentTypeError(
        f"model is a {type(model).__name__} with more than {_MOST_SEARCHES} nested searches; "
        "accepted: a fitted estimator of scikit-learn",
        argument="model",
    )
