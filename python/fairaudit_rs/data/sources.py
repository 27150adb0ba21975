"""Sources of the columns of a table, and a cached source that is read once for many questions.

Arrays (`arrays`), frames and files (`frames`) and existing cells have the same two operations:
count the distinct combinations of some columns, and load columns into memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentTypeError, TooManyValuesError
from .arrays import ArraySource, CombinationCounts
from .cells import Cells, cut_cells


class Source(Protocol):
    """Columns by key, in memory or elsewhere."""

    @property
    def holds_rows(self) -> bool:
        """Return whether there are rows and not only counts."""

    def count(
        self,
        keys: Sequence[str],
        limits: Sequence[int],
        score: str | None,
        edges: NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> CombinationCounts:
        """Count the distinct combinations of the keys' values, and of the bins of the score."""

    def cut(self, key: str, cuts: Sequence[float]) -> Source:
        """Return this source with one column cut into bands, if it holds numbers."""

    def in_memory(self, needed_by: str = "this") -> ArraySource:
        """Return the columns as arrays; a source of counts raises and names ``needed_by``."""


@dataclass(frozen=True)
class CellsSource:
    """Existing cells: combinations with their counts and score bins."""

    cells: Cells
    holds_rows = False

    def count(
        self,
        keys: Sequence[str],
        limits: Sequence[int],
        score: str | None,
        edges: NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> CombinationCounts:
        """Return the combinations of some of the columns; equal combinations are not merged."""
        del limits, edges, n_threads
        values, codes = zip(*map(self._column, keys), strict=True) if keys else ((), ())
        cells = self.cells
        scored = score is not None
        return CombinationCounts(
            values=list(values),
            codes=np.stack(codes, axis=1) if codes else np.zeros((len(cells), 0), dtype=np.int64),
            counts=cells.count,
            score_sums=cells.score_sum if scored else None,
            score_bins=cells.score_bin if scored else None,
        )

    def has_just(self, keys: Sequence[str], scored: bool, known: bool = False) -> bool:
        """Return whether the cells hold exactly these columns, in this order, and score bins.

        With ``known``, the cells must also be without missing values.
        """
        cells = self.cells
        if known and cells.n_missing:
            return False
        present = [f"sensitive_features:{name}" for name in cells.sensitive_features]
        present += [f"strata:{name}" for name in cells.strata_names]
        present += [name for name in ("y_true", "y_pred") if name in cells.columns]
        return list(keys) == present and scored == (cells.score_edges is not None)

    def _column(self, key: str) -> tuple[list[Any], NDArray[np.int64]]:
        """Return the distinct values of a column, and their codes by cell."""
        role, _, name = key.partition(":")
        cells = self.cells
        if role == "sensitive_features":
            position = cells.sensitive_features.index(name)
            return [group[position] for group in cells.groups], cells.group
        if role == "strata":
            position = cells.strata_names.index(name)
            return [stratum[position] for stratum in cells.strata], cells.stratum
        column = cells.y_true if key == "y_true" else cells.y_pred
        distinct = np.unique(column)
        return distinct.tolist(), np.searchsorted(distinct, column)

    def cut(self, key: str, cuts: Sequence[float]) -> CellsSource:
        """Return the cells with the numbers of one feature cut into bands."""
        name = key.partition(":")[2]
        return CellsSource(cut_cells(self.cells, name, cuts))

    def in_memory(self, needed_by: str = "this") -> ArraySource:
        """Raise, since cells hold counts and no rows."""
        raise ArgumentTypeError(
            f"data is a Cells object, which holds counts; {needed_by} needs the rows "
            "themselves. Pass them instead.",
            argument="data",
            mentions=(needed_by,),
        )


@dataclass
class CachedSource:
    """A cached source, which is read once for any number of metrics and attributes.

    The first call counts the joint combinations of all columns. Later calls use the same counts for
    a subset of the columns.
    """

    source: Source
    #: The maximum number of distinct values of each column that can be counted.
    limits: dict[str, int]
    _counted: dict[bytes | None, tuple[list[str], CombinationCounts]] = field(
        default_factory=dict, repr=False
    )
    _loaded: ArraySource | None = field(default=None, repr=False)

    @property
    def holds_rows(self) -> bool:
        """Return whether there are rows and not only counts."""
        return self.source.holds_rows

    def count(
        self,
        keys: Sequence[str],
        limits: Sequence[int],
        score: str | None,
        edges: NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> CombinationCounts:
        """Count the distinct combinations of the keys' values, and of the bins of the score."""
        source = self._loaded or self.source
        if not set(keys) <= set(self.limits):
            return source.count(keys, limits, score, edges, n_threads)
        of_bins = None if edges is None else edges.tobytes()
        if of_bins not in self._counted:
            self._counted[of_bins] = self._count(source, keys, score, edges, n_threads)
        union, counted = self._counted[of_bins]
        if not set(keys) <= set(union):
            # A column has too many values: counting it raises the error.
            return source.count(keys, limits, score, edges, n_threads)
        positions = [union.index(key) for key in keys]
        for i, (place, limit) in enumerate(zip(positions, limits, strict=True)):
            if len(counted.values[place]) > limit:
                raise TooManyValuesError(f"column {i} has more than {limit} values", (i, limit))
        return CombinationCounts(
            values=[counted.values[place] for place in positions],
            codes=counted.codes[:, positions],
            counts=counted.counts,
            score_sums=counted.score_sums,
            score_bins=counted.score_bins,
        )

    def cut(self, key: str, cuts: Sequence[float]) -> CachedSource:
        """Return this source with the numbers of one column cut into bands."""
        return CachedSource(self.source.cut(key, cuts), self.limits)

    def _count(
        self,
        source: Source,
        keys: Sequence[str],
        score: str | None,
        edges: NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> tuple[list[str], CombinationCounts]:
        """Count the joint combinations of all columns but those over their limit."""
        union = list(self.limits)
        while True:
            try:
                limits = [self.limits[key] for key in union]
                return union, source.count(union, limits, score, edges, n_threads)
            except TooManyValuesError as error:
                del union[error.column]

    def in_memory(self, needed_by: str = "this") -> ArraySource:
        """Return the columns as arrays, from memory after the first call."""
        if self._loaded is None:
            self._loaded = self.source.in_memory(needed_by).with_cache(self.limits)
        return self._loaded
