"""Sources: what the columns of a table come from, and one that is read once for many questions.

Arrays (`arrays`), frames and files (`frames`) and cells that were counted before all answer the
same two requests: count the distinct combinations of some columns, and bring columns into memory.
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
    """Columns by key, wherever they are."""

    @property
    def holds_rows(self) -> bool:
        """Return whether there are rows, not counts alone."""

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
        """Return the columns with one of them cut into bands, if it holds numbers."""

    def in_memory(self, needed_by: str = "this") -> ArraySource:
        """Return the columns as arrays; a source of counts refuses, naming who needs rows."""


@dataclass(frozen=True)
class CellsSource:
    """Cells: combinations that were counted before, with bins of scores of their own."""

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
        """Return the combinations of some of the columns; equal ones are not added up."""
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
        """Return whether the cells hold just these columns, in this order, and score bins.

        ``known`` asks that they have no missing values.
        """
        cells = self.cells
        if known and cells.n_missing:
            return False
        held = [f"sensitive_features:{name}" for name in cells.sensitive_features]
        held += [f"strata:{name}" for name in cells.strata_names]
        held += [name for name in ("y_true", "y_pred") if name in cells.columns]
        return list(keys) == held and scored == (cells.score_edges is not None)

    def _column(self, key: str) -> tuple[list[Any], NDArray[np.int64]]:
        """Return the distinct values of a column, and their codes by cell."""
        role, _, name = key.partition(":")
        cells = self.cells
        if role == "sensitive_features":
            at = cells.sensitive_features.index(name)
            return [group[at] for group in cells.groups], cells.group
        if role == "strata":
            at = cells.strata_names.index(name)
            return [stratum[at] for stratum in cells.strata], cells.stratum
        column = cells.y_true if key == "y_true" else cells.y_pred
        held = np.unique(column)
        return held.tolist(), np.searchsorted(held, column)

    def cut(self, key: str, cuts: Sequence[float]) -> CellsSource:
        """Return the cells with the numbers of one feature cut into bands, which add up."""
        name = key.partition(":")[2]
        return CellsSource(cut_cells(self.cells, name, cuts))

    def in_memory(self, needed_by: str = "this") -> ArraySource:
        """Refuse: cells hold no rows."""
        raise ArgumentTypeError(
            f"data is a Cells, which hold counts; {needed_by} needs the rows themselves",
            argument="data",
        )


@dataclass
class SharedSource:
    """A source that is read once, however many metrics and attributes are asked of it.

    The combinations of all columns are counted together the first time; what is asked for later
    are combinations of some of them, which add up to the same cells.
    """

    source: Source
    #: All columns that may be asked for, with the most values that each may have.
    limits: dict[str, int]
    _counted: dict[bytes | None, tuple[list[str], CombinationCounts]] = field(
        default_factory=dict, repr=False
    )
    _loaded: ArraySource | None = field(default=None, repr=False)

    @property
    def holds_rows(self) -> bool:
        """Return whether there are rows, not counts alone."""
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
            # A column with too many values, which is told to whoever asks for it.
            return source.count(keys, limits, score, edges, n_threads)
        at = [union.index(key) for key in keys]
        for i, (place, limit) in enumerate(zip(at, limits, strict=True)):
            if len(counted.values[place]) > limit:
                raise TooManyValuesError(f"column {i} has more than {limit} values", (i, limit))
        return CombinationCounts(
            values=[counted.values[place] for place in at],
            codes=counted.codes[:, at],
            counts=counted.counts,
            score_sums=counted.score_sums,
            score_bins=counted.score_bins,
        )

    def cut(self, key: str, cuts: Sequence[float]) -> SharedSource:
        """Return the columns with the numbers of one of them cut into bands."""
        return SharedSource(self.source.cut(key, cuts), self.limits)

    def _count(
        self,
        source: Source,
        keys: Sequence[str],
        score: str | None,
        edges: NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> tuple[list[str], CombinationCounts]:
        """Count the combinations of all columns, but for those of too many values."""
        union = list(self.limits)
        while True:
            try:
                limits = [self.limits[key] for key in union]
                return union, source.count(union, limits, score, edges, n_threads)
            except TooManyValuesError as error:
                del union[error.column]

    def in_memory(self, needed_by: str = "this") -> ArraySource:
        """Return the columns as arrays, which are kept."""
        if self._loaded is None:
            self._loaded = self.source.in_memory(needed_by).remembering(self.limits)
        return self._loaded
