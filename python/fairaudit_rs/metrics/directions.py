"""Which values of a metric are better: those with fewer errors, or those that favour people."""

from __future__ import annotations

from typing import Literal

from .metric import Metric

Better = Literal["higher", "lower"]

#: Metrics that are no share of rows.
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


def better_value(metric: Metric, punitive: bool) -> Better | None:
    """Return which values are better, by errors or else for people; None where neither says."""
    return _of_errors(metric) or _OPPOSITE.get(worse_off(metric, punitive))


def agreed_value(metric: Metric, punitive: bool) -> Better | None:
    """Return which values are better; None where errors and the interest of people disagree.

    A low false positive rate is a low rate of errors, but of approvals that people want, too.
    """
    both = _of_errors(metric), _OPPOSITE.get(worse_off(metric, punitive))
    return None if None not in both and both[0] != both[1] else both[0] or both[1]


def _of_errors(metric: Metric) -> Better | None:
    """Return which values have fewer errors; None of metrics that mix them with right decisions."""
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
    """Return whose decisions are worse, of the lower or the higher value; None of other metrics.

    Of rates of positive decisions the lower one, of rates of negative ones the higher one; the
    other way round where the positive decision is the punishment.
    """
    fraction = metric.native.fraction if metric.is_proportion else None
    if fraction is None:
        return None
    (tp, fp, fn, tn), below = (list(part) for part in fraction)
    decides = any(below[:2]) and any(below[2:])
    if not decides:
        return None
    if [tp, fp] == below[:2] and not (fn or tn):
        return "higher" if punitive else "lower"
    if [fn, tn] == below[2:] and not (tp or fp):
        return "lower" if punitive else "higher"
    return None
