"""Looks metrics up by name, alias or scikit-learn function, and registers new ones."""

from __future__ import annotations

from ..errors import ArgumentError, ArgumentTypeError, UnknownMetricError
from .known_metrics import known_metrics
from .metric import AnyMetric, Metric
from .of_sklearn import METRIC_OF_FUNCTION, same_as

_METRICS: dict[str, Metric] = {}
_NAME_BY_KEY: dict[str, str] = {}


def _key(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def register(metric: Metric) -> Metric:
    """Add a metric to the registry, so that it is found by name.

    Raises
    ------
    ArgumentError
        When a name or alias belongs to another metric.
    """
    if not isinstance(metric, Metric):
        raise ArgumentTypeError(
            f"metric is {metric!r}; accepted: a Metric, see count_metric", argument="metric"
        )
    if metric.is_counts:
        _ = metric.native  # raises if the formula cannot be read
    keys = [_key(name) for name in (metric.name, *metric.aliases)]
    for key in keys:
        if _NAME_BY_KEY.get(key, metric.name) != metric.name:
            raise ArgumentError(
                f"metric name {key!r} is already taken by {_NAME_BY_KEY[key]!r}. Choose another.",
                argument="metric",
            )
    if metric.name in _METRICS and _METRICS[metric.name] != metric:
        raise ArgumentError(
            f"metric name {metric.name!r} is already taken by another metric. Choose another.",
            argument="metric",
        )
    _METRICS[metric.name] = metric
    _NAME_BY_KEY.update(dict.fromkeys(keys, metric.name))
    return metric


def names() -> list[str]:
    """Return the names of all metrics."""
    return list(_METRICS)


def get(metric: AnyMetric) -> Metric:
    """Find a metric by name or alias; a Metric is returned as it is.

    Functions and scorers of scikit-learn that correspond to a registered metric, such as
    ``recall_score``, are accepted too.
    """
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        sklearn_name = same_as(metric)
        if sklearn_name is not None:
            return _METRICS[sklearn_name]
        hint_of_functions = (
            "; a function of your own: see metrics.callable_metric" if callable(metric) else ""
        )
        raise ArgumentTypeError(
            f"metric is {metric!r}; accepted: a name such as 'true_positive_rate', or a "
            f"Metric{hint_of_functions}",
            argument="metric",
        )
    key = _key(metric)
    name = _NAME_BY_KEY.get(key) or METRIC_OF_FUNCTION.get(key)
    if name is not None:
        return _METRICS[name]
    near = _nearest(key)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise UnknownMetricError(
        f"metric is {metric!r}, which is not the name of a metric{hint}",
        argument="metric",
        advice=(
            " (all names: fairaudit_rs.metrics.names(); own ones: "
            "fairaudit_rs.metrics.count_metric)"
        ),
    )


def _nearest(key: str) -> list[str]:
    """Return the metrics that are meant most likely: with these initials, or spelt like this."""
    initials = [
        name for name in _METRICS if "".join(word[0] for word in name.split("_") if word) == key
    ]
    if initials:
        return initials
    # A part that is an alias, such as "tpr" in "tpr_rate", means more than a likeness of letters.
    parts = [_NAME_BY_KEY[part] for part in key.split("_") if part in _NAME_BY_KEY]
    if parts:
        return list(dict.fromkeys(parts))
    import difflib

    near = difflib.get_close_matches(key, _NAME_BY_KEY, n=3, cutoff=0.5)
    likeness = [difflib.SequenceMatcher(None, known, key).ratio() for known in near]
    # Others are suggested only if they are about as near as the nearest.
    best = [
        known for known, ratio in zip(near, likeness, strict=True) if ratio > likeness[0] - 0.05
    ]
    return list(dict.fromkeys(_NAME_BY_KEY[known] for known in best))


def table() -> list[dict[str, str]]:
    """Return the registry as rows of text, for the docs and ``fairaudit metrics``."""
    exchanged = {
        "denominator": "rows of the denominator",
        "label": "rows of the same label",
        "decision": "rows of the same decision",
        "score": "rows of the same score bin",
        None: "all rows",
    }
    return [
        {
            "metric": metric.name,
            "aliases": ", ".join(metric.aliases),
            "formula": metric.formula,
            "meaning": metric.description,
            "variance": metric.variance,
            'exchanged by strata="auto"': exchanged[metric.conditions_on],
        }
        for metric in _METRICS.values()
    ]


for _known in known_metrics():
    register(_known)
