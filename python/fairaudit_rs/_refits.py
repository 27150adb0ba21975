"""The bootstrap that fits the fair metric again in every replicate."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ._distances import Features
from ._flow import Flow
from ._losses import Along, Losses
from .errors import ArgumentError, DataError

Floats = NDArray[np.float64]


def refitted(
    flow: Flow, features: Features, along: Along, n_resamples: int, seed: int
) -> tuple[Floats, Floats]:
    """Return replicates of the audit value with their variances, given the metric of each.

    The rows of the metric are drawn with replacement, and so are the audited ones: the same draw
    where they are the same rows. A draw that has no metric, because one protected group is not
    in it, has no value.
    """
    fitted = flow.metric.fitted_rows
    if fitted is None:
        raise ArgumentError(
            f"refit_metric is True, but fair_metric ({flow.metric.kind}) was not fitted on rows; "
            "accepted: a FairMetric.subspace with protected attributes"
        )
    n, same = len(features.values), np.array_equal(fitted, features.values)
    schedule = flow.schedule.ends()
    values, variances = np.full(n_resamples, math.nan), np.full(n_resamples, math.nan)
    for replicate in range(n_resamples):
        rng = np.random.Generator(np.random.Philox(key=[seed, replicate]))
        drawn = rng.integers(n, size=n)
        of_metric = drawn if same else rng.integers(len(fitted), size=len(fitted))
        try:
            metric = flow.metric.refit(of_metric)
        except DataError:
            continue
        again = Along(along.ratio, along.floor, along.paper, along.targets.of_rows(drawn))
        rows = Features(features.values[drawn], features.names)
        flowed = flow.under(metric, schedule).run(rows, again.targets, lambda scores, part: None)
        value = Losses(flowed, again).value("normal")
        values[replicate], variances[replicate] = value.estimate, value.variance
        if flow.progress is not None:
            flow.progress(replicate + 1, n_resamples)
    return values, variances
