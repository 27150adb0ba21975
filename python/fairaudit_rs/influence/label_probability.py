"""Estimate the label probability P(Y = 1 | X) in the target group from one split of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .nuisance import fit_label_probability
from .problem import InfluenceProblem, RowParts

Floats = NDArray[np.float64]


def label_probability(
    audit: InfluenceProblem, splits: RowParts, split: int, nuisance: Any = None
) -> Floats:
    """Return P(Y = 1 | X) in the target group for every distinct row, fitted on one split.

    Fitted with ``nuisance`` if given, else with the estimator of the audit if it has one, else with
    a ridge logistic regression whose penalty is chosen by cross-validated log loss.
    """
    distinct = splits.distinct
    if not audit.measure.needs_labels:
        return np.zeros(len(distinct.count))
    return fit_label_probability(
        distinct.features,
        distinct.terms[:, 0],
        splits.count[:, split],
        n_folds=audit.n_folds,
        estimator=audit.estimator if nuisance is None else nuisance,
        call=audit.call,
    )
