"""Rows as arrays, for metrics that cannot be computed from counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cells import Cells
from .equality import EqualByValue
from .labels import NamedCombinations


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows(EqualByValue):
    """Rows as arrays: the group of each row (a code into ``cells.groups``) and columns by name."""

    cells: Cells
    group: NDArray[np.uint16]
    stratum: NDArray[np.uint32] | None
    #: Labels and decisions are booleans if they are 0 and 1, or small integers; other columns are
    #: floats.
    columns: dict[str, NDArray[Any]]
    cluster: NDArray[np.uint32] | None = None
    weight: NDArray[np.float64] | None = None

    def taken(self, rows: NDArray[Any]) -> Rows:
        """Return some of the rows in the given order, with the cells of all rows."""

        def some(column: NDArray[Any] | None) -> Any:
            return None if column is None else column[rows]

        return replace(
            self,
            group=self.group[rows],
            stratum=some(self.stratum),
            columns={name: column[rows] for name, column in self.columns.items()},
            cluster=some(self.cluster),
            weight=some(self.weight),
        )


@dataclass(frozen=True)
class EncodedRows:
    """The combination of groups and labels of each row, and the meaning of the combinations."""

    #: Cells by group and stratum.
    cells: Cells
    named: NamedCombinations
    combination: NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class AttributeRows(EqualByValue):
    """Rows with a continuous attribute, and the number of rows in which it is missing."""

    attribute: NDArray[np.float64]
    stratum: NDArray[np.uint32] | None
    columns: dict[str, NDArray[np.float64]]
    name: str
    strata_names: tuple[str, ...]
    n_missing: int
