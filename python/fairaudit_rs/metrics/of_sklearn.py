"""Maps metric functions and scorers of scikit-learn to metrics of the registry."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError

#: The metric of each function of `sklearn.metrics`, for labels 0 and 1.
METRIC_OF_FUNCTION: Mapping[str, str] = {
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
#: Values of options that do not change these metrics; other values or options would.
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
#: Metrics of scores; the others are of decisions.
_OF_SCORES = ("auc", "mean_squared_error", "mean_absolute_error", "log_loss")


def same_as(value: Any) -> str | None:
    """Return the name of the metric that a function or scorer of scikit-learn computes.

    None for objects that are not from scikit-learn. Raises if scikit-learn's function computes
    another metric. Scikit-learn is not imported here: who passes its function has imported it.
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
    metric = METRIC_OF_FUNCTION.get(str(name))
    if metric is None:
        raise _unsupported(str(name), f"{name}, which is no metric of the registry")
    if metric == "auc":
        # With two classes all averages are the same.
        options.pop("average", None)
    for option, given in options.items():
        if not _means_the_same(option, given):
            what = f"{name} with {option}={given!r}, which is another metric"
            raise _unsupported(str(name), what)
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
        # NaN means undefined, as in this package.
        return True
    known = _HARMLESS.get(option, ())
    return any(given is value or (type(given) is type(value) and given == value) for value in known)


def _check_scorer(scorer: Mapping[str, Any], name: str, metric: str) -> None:
    """Raise for a scorer that flips the sign, or that reads decisions in place of scores."""
    if scorer["_sign"] != 1:
        raise ArgumentError(
            f"metric is a scorer of -{name}; accepted: the loss itself, metric={metric!r}",
            argument="metric",
        )
    response = scorer.get("_response_method", "predict")
    of_decisions = response in ("predict", None)
    if of_decisions == (metric in _OF_SCORES):
        wanted = "scores" if metric in _OF_SCORES else "decisions"
        what = f"a scorer of {name} by {response!r}, and {metric} is one of {wanted}"
        raise _unsupported(name, what)


def _unsupported(name: str, what: str) -> ArgumentError:
    return ArgumentError(
        f"metric is scikit-learn's {what}; accepted: functions that compute a registered "
        f"metric by default ({', '.join(METRIC_OF_FUNCTION)}), or "
        f"metrics.callable_metric({name!r}, lambda y_true, value, weight: "
        f"{name}(y_true, value, sample_weight=weight), columns=...)",
        argument="metric",
        mentions=(
            "y_true",
            "sample_weight",
            "columns",
        ),
    )
