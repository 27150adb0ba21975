"""P(Y = 1 | X) in the target group, fitted on one part of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .nuisance import label_chance
from .problem import InfluenceProblem, RowParts

Floats = NDArray[np.float64]


def label_rate(audit: InfluenceProblem, parts: RowParts, part: int, nuisance: Any = None) -> Floats:
    """Return P(Y = 1 | X, target group) for every kind of row, fitted on the rows of one part.

    By default with the audit's own estimator, or a ridge logistic regression whose penalty has the
    least cross-validated log loss.
    """
    kinds = parts.kinds
    if not audit.measure.needs_labels:
        return np.zeros(len(kinds.count))
    return label_chance(
        kinds.features,
        kinds.parts[:, 0],
        parts.count[:, part],
        n_folds=audit.n_folds,
        estimator=audit.estimator if nuisance is None else nuisance,
        call=audit.call,
    )
