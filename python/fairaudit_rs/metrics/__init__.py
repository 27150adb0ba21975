"""The metric registry: one row per metric, found by name or alias, extended by formulas.

>>> import fairaudit_rs as fa
>>> fa.metrics.get("recall").name
'true_positive_rate'
>>> miss = fa.metrics.count_metric("miss_share", "fn / (fn + tp)")
>>> miss.evaluate(tp=30, fp=5, fn=10, tn=55)
0.25
"""

from .custom_metrics import (
    callable_metric,
    correlation_metric,
    count_metric,
    joint_metric,
    ratio_metric,
)
from .metric import Metric
from .registry import get, names, register, table

__all__ = [
    "Metric",
    "callable_metric",
    "correlation_metric",
    "count_metric",
    "get",
    "joint_metric",
    "names",
    "ratio_metric",
    "register",
    "table",
]


def __dir__() -> list[str]:
    return sorted(__all__)
