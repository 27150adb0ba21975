"""Decides whether higher or lower values of a metric are better, for accuracy or for people.

`audit` uses it: to say which group of a pair is worse off, to choose the group that the influence
lens examines, and to find the best group when a criterion has ``reference="best"``.
"""

from __future__ import annotations

from typing import Literal

from .metric import Metric

Better = Literal["higher", "lower"]

#: Metrics that are not proportions of rows.
_KNOWN: dict[str, Better] = {
    "balanced_accuracy": "higher",
    "f1": "higher",
    "mcc": "higher",
    "auc": "higher",
    "mean_absolute_error": "lower",
    "mean_squared_error": "lower",
    "log_loss": "lower",
}
_OPPOSITE: dict[str | None, Better] = {"lower": "higher", "higher": "lower"}


def better_direction(metric: Metric, punitive: bool) -> Better | None:
    """Return which values are better: those with fewer errors, else those that favour people."""
    return _with_fewer_errors(metric) or _OPPOSITE.get(worse_off(metric, punitive))


def undisputed_direction(metric: Metric, punitive: bool) -> Better | None:
    """Return which values are better; None where accuracy and the interest of people disagree.

    A low false positive rate means few errors, but also fewer approvals, and people want approvals.
    """
    both = _with_fewer_errors(metric), _OPPOSITE.get(worse_off(metric, punitive))
    return None if None not in both and both[0] != both[1] else both[0] or both[1]


def _with_fewer_errors(metric: Metric) -> Better | None:
    """Return which values mean fewer errors; None if errors and right decisions are mixed."""
    if not metric.is_proportion:
        return _KNOWN.get(metric.name)
    fraction = metric.native.fraction
    assert fraction is not None
    tp, fp, fn, tn = fraction[0]
    right, wrong = bool(tp or tn), bool(fp or fn)
    if right == wrong:
        return None
    return "higher" if right else "lower"


def worse_off(metric: Metric, punitive: bool) -> str | None:
    """Return whether a group with the lower or the higher value has the worse decisions.

    The lower one for rates of positive decisions, the higher one for rates of negative decisions,
    and the reverse where the positive decision is the punishment. None for other metrics.
    """
    fraction = metric.native.fraction if metric.is_proportion else None
    if fraction is None:
        return None
    (tp, fp, fn, tn), denominator = (list(part) for part in fraction)
    counts_both_decisions = any(denominator[:2]) and any(denominator[2:])
    if not counts_both_decisions:
        return None
    if [tp, fp] == denominator[:2] and not (fn or tn):
        return "higher" if punitive else "lower"
    if [fn, tn] == denominator[2:] and not (tp or fp):
        return "lower" if punitive else "higher"
    return None
