"""`calibration="permutation"`: what it would cost to remove gaps that chance makes.

Where the rates are equal, decisions are exchangeable among the groups of a label. Gaps of permuted
decisions are projected at the margins as they are; the cost of the observed gaps is ranked among
these costs. Rows on both sides of the boundary stand for each other, see the core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.arrays import ArraySource
from ..data.columns import column_array
from ..errors import ArgumentError, DataError
from ..inference.pvalues import monte_carlo_pvalue
from ..progress import Progress
from .criteria import Tolerance
from .problem import RowCriteria, UnitCriteria
from .question import Question

_TIE = 1e-10
_SERIES = 0

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Permuted:
    """A permutation p-value with what it rests on."""

    pvalue: float
    pvalue_interval: tuple[float, float]
    n_undefined: int
    null: Array


def permuted(
    question: Question,
    tolerance: Tolerance,
    n_resamples: int,
    seed: int,
    n_threads: int | None,
    callback: Callable[[int, int], object] | None,
) -> Permuted:
    """Return the rank of the observed cost among the costs of chance gaps."""
    criteria = question.criteria
    if criteria.columns.weight is not None:
        raise ArgumentError(
            "sample_weight is given with calibration='permutation'; accepted: None, because rows "
            "of different weights are not exchangeable"
        )
    progress = Progress(callback, n_resamples)
    progress.total = n_resamples
    if isinstance(criteria, UnitCriteria) and criteria.blocks is not None:
        blocks = criteria.native_blocks(tolerance)
        test = _native.ProjectionTest(
            criteria.columns.native, 2 * criteria.n_units, blocks, criteria.call
        )
        observed = test.observed()
        call = _native.Call(n_threads, progress.tick())
        null = test.null_distribution(_native.Draws(n_resamples, seed=seed), call)
    else:
        gaps = _unit_gaps if isinstance(criteria, UnitCriteria) else _row_gaps
        draw = gaps(criteria)  # type: ignore[arg-type]
        both = criteria.both_sides()
        observed = both.cost(tolerance, criteria.gap)
        null = np.empty(n_resamples)
        for replicate in range(n_resamples):
            null[replicate] = both.cost(tolerance, draw(replicate, seed))
            progress.show(replicate + 1)
    progress.finish(drawn=True)
    extreme = int((null >= observed * (1 - _TIE)).sum())
    return Permuted(
        monte_carlo_pvalue(extreme, n_resamples),
        _native.clopper_pearson(extreme, n_resamples, 0.99),
        int(np.isinf(null).sum()),
        null,
    )


def _unit_gaps(criteria: UnitCriteria) -> Callable[[int, int], Array]:
    """Return what draws the gaps of a replicate: decisions exchanged among units of one label."""
    tally = criteria.tally
    unit = np.repeat(np.arange(criteria.n_units), tally.by_unit(tally.rows))
    decided = np.concatenate(
        [np.repeat([0, 1], tally.rows[2 * u : 2 * u + 2]) for u in range(criteria.n_units)]
    )
    stratum = (criteria.unit_label[unit] + 1).astype(np.uint32)
    call = criteria.call
    units = _native.Units(decided.astype(np.uint16), 2, stratum=stratum)
    assignments = _native.Assignments(units, call)
    sizes, phi = len(unit), criteria.phi

    def draw(replicate: int, seed: int) -> Array:
        draws = _native.Draws(1, seed=seed, series=_SERIES, first=replicate)
        positive = assignments.groups(draws, replicate, call)
        return np.asarray(np.bincount(unit, positive, criteria.n_units) @ phi / sizes)

    return draw


def _row_gaps(criteria: RowCriteria) -> Callable[[int, int], Array]:
    """Return what draws the gaps of a replicate: decisions exchanged among rows of a stratum.

    Without strata of the user's the null hypothesis is weaker than that decisions do not depend on
    phi, so gaps are scaled from their own covariance to that of the data.
    """
    notion = criteria.notion
    decisions = (criteria.columns.cell & 1).astype(np.uint16)
    stratum = None
    if notion.strata is not None:
        column = column_array("strata", notion.strata)
        if len(column) != len(decisions):
            raise DataError(f"strata has {len(column):,} rows; the data have {len(decisions):,}")
        stratum = ArraySource({"strata": column}).units(["strata"], ["strata"])
    call = criteria.call
    assignments = _native.Assignments(_native.Units(decisions, 2, stratum=stratum), call)
    root = _root(criteria.covariance)

    def draw(replicate: int, seed: int) -> Array:
        draws = _native.Draws(1, seed=seed, series=_SERIES, first=replicate)
        positive = assignments.groups(draws, replicate, call)
        drawn = replace(criteria, values=notion.evaluate(positive, None))
        if stratum is not None:
            return drawn.gap
        scaled = np.linalg.lstsq(_root(drawn.covariance), drawn.gap, rcond=1e-12)[0]
        return np.asarray(root @ scaled)

    return draw


def _root(matrix: Array) -> Array:
    """Return the symmetric square root."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)
