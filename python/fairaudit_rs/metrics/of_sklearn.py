"""Metric functions and scorers of scikit-learn that are metrics of the registry."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError

#: By the name of a function of `sklearn.metrics`, the metric that it is for labels of 0 and 1.
SAME: Mapping[str, str] = {
    "accuracy_score": "accuracy",
    "zero_one_loss": "error_rate",
    "balanced_accuracy_score": "balanced_accuracy",
    "recall_score": "true_positive_rate",
    "precision_score": "positive_predictive_value",
    "f1_score": "f1",
    "matthews_corrcoef": "mcc",
    "roc_auc_score": "auc",
    "brier_score_loss": "mean_squared_error",
    "log_loss": "log_loss",
    "mean_squared_error": "mean_squared_error",
    "mean_absolute_error": "mean_absolute_error",
}
#: Values of options that say what these metrics say anyway; other options change the metric.
_HARMLESS: Mapping[str, tuple[Any, ...]] = {
    "average": ("binary",),
    "pos_label": (1, None),
    "labels": (None,),
    "normalize": (True,),
    "adjusted": (False,),
    "sample_weight": (None,),
    "zero_division": ("warn",),
    "max_fpr": (None,),
    "multi_class": ("raise",),
    "multioutput": ("uniform_average",),
    "scale_by_half": ("auto", True),
}
#: Metrics of scores; the others look at decisions.
_OF_SCORES = ("auc", "mean_squared_error", "mean_absolute_error", "log_loss")


def same_as(value: Any) -> str | None:
    """Return the name of the metric that a function or scorer of scikit-learn is.

    None for what is not of scikit-learn; what is, and means something else, is refused. Nothing is
    imported: whoever has such a function has scikit-learn.
    """
    options: dict[str, Any] = {}
    scorer: dict[str, Any] | None = None
    if _is_scorer(value):
        scorer = vars(value)
        options, value = dict(scorer["_kwargs"]), scorer["_score_func"]
    while isinstance(value, functools.partial):
        options = {**value.keywords, **options}
        if value.args:
            return None
        value = value.func
    name = getattr(value, "__name__", None)
    if not _is_function(value, name):
        return None
    metric = SAME.get(str(name))
    if metric is None:
        raise _refused(str(name), f"{name}, which is no metric of the registry")
    if metric == "auc":
        # Of two classes all averages are the same.
        options.pop("average", None)
    for option, given in options.items():
        if not _means_the_same(option, given):
            raise _refused(str(name), f"{name} with {option}={given!r}, which is another metric")
    if scorer is not None:
        _check_scorer(scorer, str(name), metric)
    return metric


def _is_function(value: Any, name: Any) -> bool:
    module = sys.modules.get("sklearn.metrics")
    return module is not None and isinstance(name, str) and getattr(module, name, None) is value


def _is_scorer(value: Any) -> bool:
    kind = type(value)
    return kind.__module__.startswith("sklearn.metrics.") and hasattr(value, "_score_func")


def _means_the_same(option: str, given: Any) -> bool:
    if option == "zero_division" and isinstance(given, float) and given != given:
        # Without a value, as here.
        return True
    known = _HARMLESS.get(option, ())
    return any(given is value or (type(given) is type(value) and given == value) for value in known)


def _check_scorer(scorer: Mapping[str, Any], name: str, metric: str) -> None:
    """Refuse a scorer that turns the sign, or looks at the other of scores and decisions."""
    if scorer["_sign"] != 1:
        raise ArgumentError(
            f"metric is a scorer of -{name}; accepted: the loss itself, metric={metric!r}",
            argument="metric",
        )
    asked = scorer.get("_response_method", "predict")
    of_decisions = asked in ("predict", None)
    if of_decisions == (metric in _OF_SCORES):
        wanted = "scores" if metric in _OF_SCORES else "decisions"
        raise _refused(name, f"a scorer of {name} by {asked!r}, and {metric} is one of {wanted}")


def _refused(name: str, what: str) -> ArgumentError:
    return ArgumentError(
        f"metric is scikit-learn's {what}; accepted: functions that mean a metric of the registry "
        f"with their defaults ({', '.join(SAME)}), or metrics.callable_metric({name!r}, lambda "
        f"y_true, value, weight: {name}(y_true, value, sample_weight=weight), columns=...)",
        argument="metric",
        mentions=(
            "y_true",
            "sample_weight",
            "columns",
        ),
    )
