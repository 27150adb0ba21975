"""Computes the metric by stratum and group from rows, and tests whether the gap varies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.labels import GroupKey
from ..data.rows import Rows
from ..data.sums import sums_of
from ..inference.homogeneity import Homogeneity, permuted_homogeneity
from ..inference.intervals import Pair
from ..metrics.metric import Metric
from ..metrics.row_values import Exchange, RowValues
from .units import group_codes, make_units
from .within_strata import HOMOGENEITY_SEED, MOST_ROWS, MOST_ROWS_OF_RANKS, StratumValues

#: Maximum number of groups for the test whether a gap is the same in all strata.
MOST_GROUPS = 5
#: Maximum number of groups times strata for metrics that are not ratios of sums.
MOST_PLACES = 1 << 16
#: Number of rows per batch.
_ROWS_AT_ONCE = 1 << 18


class StratifiedRows(Protocol):
    """The parts of a `RowProblem` that are needed here."""

    @property
    def metric(self) -> Metric:
        """Return the metric."""

    @property
    def keys(self) -> tuple[GroupKey, ...]:
        """Return the groups."""

    @property
    def rows(self) -> Rows:
        """Return the rows."""

    @property
    def position(self) -> NDArray[np.int64]:
        """Return the position of each group of the rows among the compared ones."""

    @property
    def values(self) -> RowValues:
        """Return the values that are summed over rows."""

    @property
    def stratified(self) -> bool:
        """Return whether gaps are taken within the user's strata."""

    @property
    def everything(self) -> Sequence[int]:
        """Return the positions of all groups."""

    @property
    def call(self) -> _native.Call:
        """Return the threads for making native tests."""

    def in_denominator(self) -> NDArray[np.bool_]:
        """Return which rows are in the denominator of the metric."""

    def order(self) -> NDArray[np.intp]:
        """Return a canonical order of the rows."""


def rows_by_stratum(problem: StratifiedRows) -> StratumValues | None:
    """Return the metric by stratum and group; None without the user's strata."""
    rows = problem.rows
    if not problem.stratified or rows.stratum is None:
        return None
    if problem.values.terms() is None and len(rows.group) > MOST_ROWS_OF_RANKS:
        # Each stratum would need its own test: too much memory.
        return None
    n_groups, strata = len(problem.keys), rows.cells.strata
    shape = (len(strata), n_groups)
    keep: Any = slice(None)
    group = problem.position.astype(np.int32)[rows.group]
    if problem.position.min(initial=0) < 0:
        keep = group >= 0
    place = rows.stratum[keep].astype(np.uint32) * np.uint32(n_groups) + group[keep]
    del group
    values = problem.values.taken(keep)

    def added(column: NDArray[Any] | None) -> NDArray[np.float64]:
        if column is None or column.dtype == bool:
            chosen = place if column is None else place[column]
            return np.bincount(chosen, minlength=math.prod(shape)).reshape(shape).astype(float)
        return sums_of(place, column.astype(np.float64, copy=False), math.prod(shape)).reshape(
            shape
        )

    weight = None if rows.weight is None else rows.weight[keep]
    eligible = None
    if problem.metric.is_proportion:
        eligible = problem.in_denominator()[keep]
    if weight is not None:
        # Rows of weight 0 are not eligible.
        eligible = weight > 0 if eligible is None else eligible & (weight > 0)
    people = added(eligible)
    if weight is not None and eligible is not None:
        people = added(weight * eligible)
    terms = values.terms()
    if terms is not None:
        above = added(terms[0])
        size = people if getattr(values, "denominator", 1) is None else added(terms[1])
        value = np.divide(above, size, out=np.full(shape, np.nan), where=size > 0)
    else:
        value = _values_of(problem, values, place, math.prod(shape)).reshape(shape)
        squares = _squares(problem, place, weight, keep, shape)
        effective = people**2 / np.maximum(squares, 1e-300)
        size = np.where(np.isnan(value), 0.0, effective)
    return StratumValues(
        names=rows.cells.strata_names,
        strata=strata,
        value=value,
        size=size,
        n=added(eligible).astype(np.int64),
        people=people,
        keys=problem.keys,
    )


def _squares(
    problem: StratifiedRows,
    place: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    keep: NDArray[np.bool_],
    shape: tuple[int, int],
) -> NDArray[np.float64]:
    """Return the sum of squared weights of rows or clusters, by stratum and group."""
    unit = place
    if problem.rows.cluster is not None:
        of_place = np.stack([place, problem.rows.cluster[keep].astype(np.int64)])
        (unit, _), of_row = np.unique(of_place, axis=1, return_inverse=True)
        ones = np.ones(len(place)) if weight is None else weight
        weight = sums_of(of_row.ravel(), ones)
    squares = np.ones(len(unit)) if weight is None else weight**2
    return sums_of(unit, squares, math.prod(shape)).reshape(shape)


def _values_of(problem: StratifiedRows, values: RowValues, place: NDArray[Any], n: int) -> Any:
    """Return the metric at each place (stratum and group); NaN if it has no value.

    Places are processed in batches, so that only their rows are copied.
    """
    metric_values = np.full(n, np.nan)
    sizes = np.bincount(place, minlength=n)
    if np.count_nonzero(sizes) > MOST_PLACES:
        return metric_values
    batch = np.cumsum(sizes) // _ROWS_AT_ONCE
    for stratum in np.unique(batch):
        first, last = np.searchsorted(batch, [stratum, stratum + 1])
        rows = slice(None)
        if last - first < n:
            rows = (place >= first) & (place < last)
        used, code = np.unique(place[rows], return_inverse=True)
        units = _native.Units(code.astype(np.uint16), len(used))
        exchange = Exchange(units=units, scaling="unpooled", sums=_identity, call=problem.call)
        if len(used):
            entries = values.taken(rows).test(exchange, False).evaluations
            metric_values[used] = [entry.value for entry in entries]
    return metric_values


def homogeneity_of_rows(problem: StratifiedRows, pair: Pair) -> Homogeneity:
    """Test whether the gap of two groups is the same in all strata."""
    rows, values = problem.rows, problem.values
    if rows.stratum is None or len(problem.keys) > MOST_GROUPS:
        return Homogeneity.unknown(f"it is tested for up to {MOST_GROUPS} groups")
    most = MOST_ROWS if values.terms() is not None else MOST_ROWS_OF_RANKS
    if len(rows.group) > most:
        return Homogeneity.unknown(f"it is tested for up to {most:,} rows")
    if values.terms() is None:
        # Influences are sums of floats: their bits depend on the order of rows.
        order = problem.order()
        rows, values = rows.taken(order), values.taken(order)
    codes, keep = group_codes(rows, problem.position, pair)
    units = make_units(rows, problem.keys, codes, keep, pair, None)
    assert rows.stratum is not None
    assert units.stratum is not None
    terms = values.terms()
    if terms is None:
        place = rows.stratum[keep].astype(np.int64) * 2 + codes
        terms = _linearised(problem, rows, values.taken(keep), keep, place)
    else:
        terms = terms[0][keep], terms[1][keep]
    above, below = map(units.sums, terms)
    is_second, stratum = units.group == 1, units.stratum.astype(np.int64)
    return permuted_homogeneity(above, below, is_second, stratum, HOMOGENEITY_SEED)


def _linearised(
    problem: StratifiedRows, rows: Rows, kept: RowValues, keep: Any, place: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return row values and weights whose mean and variance at each place are the metric's."""
    columns = {name: column[keep] for name, column in rows.columns.items()}
    weight = None if rows.weight is None else rows.weight[keep]
    below = np.ones(len(place)) if weight is None else weight
    used, code = np.unique(place, return_inverse=True)
    values = _values_of(problem, kept, code, len(used))
    above = values[code]
    for used_place in np.flatnonzero(~np.isnan(values)):
        inside = code == used_place
        own = {name: column[inside] for name, column in columns.items()}
        above[inside] += problem.metric.influence(own, None if weight is None else weight[inside])
    known = ~np.isnan(above)
    return np.where(known, above, 0.0) * below, np.where(known, below, 0.0)


def _identity(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values
