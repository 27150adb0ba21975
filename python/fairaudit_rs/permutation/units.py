"""Makes the units that exchange groups in permutation tests: rows, or clusters of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.cells import Cells
from ..data.groups import group_label, group_name
from ..data.integer_codes import codes_by_unit, differing_rows, number_values
from ..data.labels import GroupKey
from ..data.rows import Rows
from ..data.sums import sums_of
from ..errors import DataError
from ..metrics.row_values import Exchange


@dataclass(frozen=True)
class ExchangeUnits:
    """The units that exchange groups: rows, or clusters of rows."""

    group: NDArray[np.uint16]
    stratum: NDArray[np.uint32] | None
    #: The part of its stratum within which each unit exchanges its group.
    part: NDArray[np.uint32] | None
    #: The unit of each row; None if units are rows.
    of_row: NDArray[np.uint32] | None

    def native(self, n_groups: int) -> _native.Units:
        """Return the units for the native module."""
        return _native.Units(
            self.group, n_groups, stratum=self.stratum, part=self.part, of_row=self.of_row
        )

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up row values over each unit."""
        if self.of_row is None:
            return values
        return sums_of(self.of_row, np.asarray(values, dtype=np.float64), len(self.group))

    def exchange(self, n_groups: int, scaling: str, call: _native.Call) -> Exchange:
        """Return the inputs of a native test."""
        return Exchange(units=self.native(n_groups), scaling=scaling, sums=self.sums, call=call)


def without_strata(rows: Rows) -> Rows:
    """Return the rows without strata."""
    if rows.stratum is None:
        return rows
    none = np.zeros_like(rows.cells.stratum)
    cells = replace(rows.cells, strata_names=(), strata=(), stratum=none)
    return replace(rows, stratum=None, cells=cells)


def positions_of(cells: Cells, keys: Sequence[GroupKey]) -> NDArray[np.int64]:
    """Return the position of each group of the cells among the chosen keys, -1 for others."""
    position = np.full(len(cells.groups), -1, dtype=np.int64)
    place = {key: i for i, key in enumerate(cells.groups)}
    for i, key in enumerate(keys):
        position[place[key]] = i
    return position


def places_of(position: NDArray[np.int64], positions: Sequence[int]) -> NDArray[np.uint16] | None:
    """Return the place of each group code among some groups; None if codes and places agree.

    Other groups get the place after the last one.
    """
    wanted = np.full(int(position.max(initial=0)) + 2, len(positions), dtype=np.uint16)
    wanted[list(positions)] = np.arange(len(positions))
    places: NDArray[np.uint16] = wanted[position]
    return None if np.array_equal(places, np.arange(len(positions))) else places


def group_codes(
    rows: Rows, position: NDArray[np.int64], positions: Sequence[int]
) -> tuple[NDArray[np.uint16], Any]:
    """Return the group codes of the rows in some groups, and the index of these rows."""
    wanted = np.full(int(position.max(initial=0)) + 2, -1, dtype=np.int64)
    wanted[list(positions)] = np.arange(len(positions))
    table = wanted[position]
    if np.array_equal(table, np.arange(len(table))):
        return rows.group, slice(None)
    inside = (table >= 0)[rows.group]
    codes = np.maximum(table, 0).astype(np.uint16)
    if inside.all():
        return codes[rows.group], slice(None)
    return codes[rows.group[inside]], inside


def make_units(
    rows: Rows,
    keys: Sequence[GroupKey],
    codes: NDArray[np.uint16],
    keep: Any,
    positions: Sequence[int],
    own_strata: NDArray[np.uint32] | None,
) -> ExchangeUnits:
    """Return the exchange units of the kept rows."""
    stratum = None if rows.stratum is None else rows.stratum[keep]
    if rows.cluster is None:
        return ExchangeUnits(codes, stratum, None if own_strata is None else own_strata[keep], None)
    # Clusters of the kept rows, numbered in order.
    cluster, n_clusters = number_values(rows.cluster[keep])
    group = codes_by_unit(codes, cluster, n_clusters)
    differs = differing_rows(codes, cluster, group)
    if differs.any():
        first = int(differs.argmax())
        names = sorted(
            group_name(group_label(keys[positions[int(code)]]))
            for code in (codes[first], group[cluster[first]])
        )
        raise DataError(
            f"{_n_mixed(differs, cluster):,} of {n_clusters:,} clusters have rows in more than "
            f"one group (the first one in {names[0]!r} and {names[1]!r}). Pass clusters within "
            "groups, or pass what these rows have in common as strata=.",
            argument="clusters",
            mentions=("strata",),
        )
    if stratum is None:
        return ExchangeUnits(group, None, None, cluster)
    unit_stratum = codes_by_unit(stratum, cluster, n_clusters)
    differs = differing_rows(stratum, cluster, unit_stratum)
    if differs.any():
        raise DataError(
            f"{_n_mixed(differs, cluster):,} of {n_clusters:,} clusters have rows in more than "
            "one stratum. Pass strata that contain whole clusters.",
            argument="clusters",
            mentions=("strata",),
        )
    return ExchangeUnits(group, unit_stratum, None, cluster)


@dataclass(frozen=True, kw_only=True)
class Regrouping:
    """Assigns new groups to the rows of all compared groups."""

    rows: Rows
    units: ExchangeUnits
    #: Index of the rows of the compared groups.
    keep: Any
    #: The code of each compared group among the groups of the rows.
    code_of_group: NDArray[np.uint16]

    @classmethod
    def from_rows(
        cls,
        rows: Rows,
        position: NDArray[np.int64],
        keys: Sequence[GroupKey],
        own_strata: NDArray[np.uint32] | None,
    ) -> Regrouping:
        """Return the regrouping of all compared groups."""
        every = range(len(keys))
        codes, keep = group_codes(rows, position, every)
        place = {key: i for i, key in enumerate(rows.cells.groups)}
        return cls(
            rows=rows,
            units=make_units(rows, keys, codes, keep, every, own_strata),
            keep=keep,
            code_of_group=np.array([place[key] for key in keys], dtype=np.uint16),
        )

    @property
    def n_groups(self) -> int:
        """The number of compared groups."""
        return len(self.code_of_group)

    def regrouped(self, codes: NDArray[Any]) -> tuple[Rows, tuple[int, ...]]:
        """Return the rows with new groups, and the number of rows of each group."""
        group = self.rows.group.copy()
        group[self.keep] = self.code_of_group[codes]
        n_rows = np.bincount(codes, minlength=len(self.code_of_group)).tolist()
        return replace(self.rows, group=group), tuple(n_rows)


def _n_mixed(differs: NDArray[np.bool_], cluster: NDArray[np.uint32]) -> int:
    return len(np.unique(cluster[differs]))
