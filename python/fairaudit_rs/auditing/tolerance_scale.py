"""Checks that a tolerance of means is on the scale of the scores and labels."""

from __future__ import annotations

import numpy as np

from ..data.labels import Label
from ..data.tables import AuditTable
from ..errors import ArgumentError, DataError
from ..inference.tolerance import Tolerance
from ..metrics.metric import Metric

#: The largest gap that each metric can have when scores and labels lie between 0 and 1.
_LARGEST_GAP = {
    "mean_prediction": 1.0,
    "mean_residual": 2.0,
    "mean_absolute_error": 1.0,
    "mean_squared_error": 1.0,
}


def check_scale(
    metric: Metric, tolerance: Tolerance | None, table: AuditTable, pos_label: Label
) -> None:
    """Refuse a tolerance of means that is on another scale than scores and labels.

    A tolerance below 1 is a difference of shares: it needs scores from 0 to 1 and labels that are
    classes. A tolerance of 1 or more is in units of the scores, such as dollars; with scores from
    0 to 1 nothing could fail.
    """
    largest_gap = _LARGEST_GAP.get(metric.name)
    if largest_gap is None or tolerance is None or not table.source.holds_rows:
        return
    limit = tolerance.value
    found = _other_scale(metric, table.loaded(needed_by=metric.name), pos_label)
    if found is not None and limit < 1:
        role, value, accepted = found
        raise ArgumentError(
            f"{role} holds {value:g}",
            argument=role,
            code="other-scale",
            advice=(
                f", but the tolerance {limit:g} of {metric.name} is a difference of shares. Use "
                f"{accepted}, or a tolerance of 1 or more, in units of the score."
            ),
        )
    if found is None and limit >= largest_gap:
        raise ArgumentError(
            f"tolerance is {limit:g}; accepted: a number above 0 and below {largest_gap:g}: the "
            f"gap of {metric.name} cannot be larger with scores from 0 to 1",
            argument="tolerance",
        )


def _other_scale(
    metric: Metric, table: AuditTable, pos_label: Label
) -> tuple[str, float, str] | None:
    """Return the first score outside 0 to 1, or the first label other than 0 and 1, or None.

    The result has its role, its value, and what is accepted.
    """
    score = table.numbers("y_score")
    # Missing scores pass here; the metric refuses them.
    if len(score) and (score.min() < 0 or score.max() > 1):
        outside = score[(score < 0) | (score > 1)]
        return "y_score", float(outside[0]), "scores from 0 to 1"
    if "y_true" not in metric.needs or pos_label is not None:
        return None
    try:
        labels = table.values("y_true")
    except DataError:
        # Too many values for classes.
        labels = table.numbers("y_true").tolist()
    numbers = [label for label in labels if isinstance(label, int | float | np.number)]
    wrong = [float(number) for number in numbers if number not in (0, 1)]
    return (
        ("y_true", wrong[0], "labels of 0 and 1, name the positive class with pos_label")
        if wrong
        else None
    )
