"""A source of columns in memory, which counts the combinations of their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..arguments import as_float
from ..errors import DataError, TooManyValuesError
from .bands import cut_column
from .columns import Column, EncodedColumn, argument_of, check_numeric, count_not_finite
from .integer_codes import number_values

#: Bin of a score that is missing or outside all bins.
NO_BIN = 2**32 - 1
#: Maximum number of rows: floats count exactly up to here.
MAX_ROWS = 2**53
#: Maximum number of rows with scores, whose sums must fit into 64 bits.
MAX_SCORED_ROWS = 2**32
#: If the largest weight exceeds 2**64 (or is below 2**-64), all are rescaled by a power of 2.
MAX_EXPONENT = 64
#: Up to this many joint combinations, those of a subset of columns are derived from the joint ones.
MAX_JOINT_CELLS = 2**16
#: The values that a column of counts accepts.
WHOLE_NUMBERS = "whole numbers of at least 0: how many people a row stands for"


@dataclass(frozen=True, kw_only=True)
class CombinationCounts:
    """Distinct combinations of values: values by column, codes by cell and column, and counts."""

    values: list[list[Any]]
    codes: NDArray[np.int64]
    counts: NDArray[np.int64]
    score_sums: NDArray[np.int64] | None = None
    score_bins: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class ArraySource:
    """Columns in memory, one array each; the native module counts their combinations."""

    columns: dict[str, Column]
    #: The column of people per row; None: one person per row.
    people_column: str | None = None
    #: Cache of what was read; None: no caching.
    _cache: EncodingCache | None = field(default=None, compare=False, repr=False)
    holds_rows: ClassVar[bool] = True

    def count(
        self,
        keys: Sequence[str],
        limits: Sequence[int],
        score: str | None,
        edges: NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> CombinationCounts:
        """Count the distinct combinations of the keys' values, and of the bins of the score."""
        columns = [self.columns[key] for key in keys]
        native = [_native_column(column) for column in columns]
        limits, call = list(limits), _native.Call(n_threads)
        scores = None
        if score is not None:
            assert edges is not None
            scores = _floats("y_score", self.columns[score])
            bins = _native.bin_scores(scores, edges, call)
            outside = bins == NO_BIN
            if outside.any():
                refuse_scores(
                    int(outside.sum()), len(bins), float(scores[int(outside.argmax())]), edges
                )
            native.append(bins)
            limits.append(len(edges))
        repeats = (
            None
            if self.people_column is None
            else self._people_per_row(self.people_column, score is not None)
        )
        if repeats is None:
            tabulated = _native.tabulate(native, limits, call, score=scores)
        else:
            tabulated = _native.tabulate(native, limits, call, cells=True)
        rows, codes = tabulated.value_rows, tabulated.codes
        counts, score_sums = tabulated.counts.astype(np.int64), tabulated.score_sums
        if repeats is not None:
            cell = tabulated.cell_of_row
            assert cell is not None
            # Whole numbers below 2^53 add up exactly.
            counts = np.bincount(cell, repeats, len(counts)).astype(np.int64)
            if scores is not None:
                score_units = np.floor(scores / _native.SCORE_UNIT + 0.5).astype(np.int64)
                score_sums = np.zeros(len(counts), dtype=np.int64)
                np.add.at(score_sums, cell, score_units * repeats.astype(np.int64))
        values = [_values_at(column, index) for column, index in zip(columns, rows, strict=False)]
        return CombinationCounts(
            values=values,
            codes=codes[:, : len(keys)].astype(np.int64),
            counts=counts,
            score_sums=score_sums if score is not None else None,
            score_bins=native[-1][rows[-1]][codes[:, -1]].astype(np.int64)
            if score is not None
            else None,
        )

    def with_counts(self, key: str) -> ArraySource:
        """Return this source with ``key`` as its checked column of people per row.

        Rows of 0 people are dropped, and with them groups that have no other rows.
        """
        values = self.numbers(key, key)
        wrong = (values < 0) | (values != np.floor(values))
        if wrong.any():
            row = int(wrong.argmax())
            raise DataError(
                f"{key} is {values[row]:g} in row {row}; accepted: {WHOLE_NUMBERS}", argument=key
            )
        has_people = values > 0
        if has_people.all():
            return replace(self, people_column=key)
        return replace(self.where(has_people), people_column=key)

    def where(self, keep: NDArray[np.bool_]) -> ArraySource:
        """Return a source with only the rows of a mask."""
        columns = {
            name: replace(column, codes=column.codes[keep])
            if isinstance(column, EncodedColumn)
            else column[keep]
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns, _cache=None)

    def value_at(self, key: str, row: int) -> Any:
        """Return the value of a column in one row."""
        value = _values_at(self.columns[key], np.array([row]))[0]
        return value.item() if isinstance(value, np.generic) else value

    def _people_per_row(self, key: str, scored: bool) -> NDArray[np.float64]:
        """Return the number of people that each row stands for."""
        values = self.numbers(key, key)
        check_total(values.sum(), scored)
        return values

    def in_memory(self, needed_by: str = "this") -> ArraySource:
        """Return this source, which is in memory already."""
        del needed_by
        return self

    def cut(self, key: str, cuts: Sequence[float]) -> ArraySource:
        """Return this source with the numbers of one column cut into bands."""
        return replace(self, columns={**self.columns, key: cut_column(self.columns[key], cuts)})

    def with_cache(self, limits: dict[str, int]) -> ArraySource:
        """Return this source with a cache of what is read.

        ``limits`` has the maximum number of distinct values of each column that may be encoded.
        """
        return replace(self, _cache=EncodingCache(limits))

    def encode(
        self, keys: Sequence[str], limits: Sequence[int], n_threads: int | None = 1
    ) -> tuple[CombinationCounts, NDArray[Any]]:
        """Count the distinct combinations of the keys' values; also return that of each row."""
        if self._cache is None:
            return self._encode(keys, limits, n_threads)
        cache, cache_key = self._cache, tuple(keys)
        if cache_key not in cache.parts:
            joint = cache.joint_encoding(self, n_threads)
            within = joint is not None and set(keys) <= set(joint.keys)
            cache.parts[cache_key] = (
                joint.part(keys)
                if joint is not None and within
                else self._encode(keys, limits, n_threads)
            )
        return cache.parts[cache_key]

    def _encode(
        self, keys: Sequence[str], limits: Sequence[int], n_threads: int | None
    ) -> tuple[CombinationCounts, NDArray[Any]]:
        columns = [self.columns[key] for key in keys]
        native = [_native_column(column) for column in columns]
        found = _native.tabulate(native, limits, _native.Call(n_threads), cells=True)
        assert found.cell_of_row is not None
        rows = found.value_rows
        values = [_values_at(column, index) for column, index in zip(columns, rows, strict=True)]
        return CombinationCounts(
            values=values, codes=found.codes.astype(np.int64), counts=found.counts.astype(np.int64)
        ), found.cell_of_row

    def cluster_codes(self, keys: Sequence[str], names: Sequence[str]) -> NDArray[np.uint32]:
        """Return the cluster of each row, numbered in the sorted order of the cluster labels."""
        combined: NDArray[Any] = np.zeros(0, dtype=np.uint32)
        for key, name in zip(keys, names, strict=True):
            column = self.columns[key]
            place, n_distinct, missing = _rank_values(column)
            if missing.any():
                raise DataError(
                    f"clusters column {name!r} is missing in {int(missing.sum()):,} of "
                    f"{len(column):,} rows; leave these rows out or fill them in",
                    argument="clusters",
                )
            if len(combined):
                place = combined.astype(np.int64) * n_distinct + place
            # Renumbered at each step, so that the products stay small.
            combined = number_values(place)[0]
        return combined.astype(np.uint32, copy=False)

    def numbers_or_missing(
        self, key: str, name: str
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return a column as floats, and a mask of the values that are not missing."""
        values = _floats(name, self.columns[key])
        known = ~np.isnan(values)
        if np.isinf(values).any():
            raise DataError(
                f"{name} is infinite in some rows; accepted: finite numbers",
                argument=argument_of(name),
            )
        return values, known

    def floats(self, key: str, name: str) -> NDArray[np.float64]:
        """Return a column as floats that may be infinite or missing."""
        return _floats(name, self.columns[key])

    def weights(self, key: str) -> NDArray[np.float64]:
        """Return a column of weights: at least 0, and not all 0."""
        weight = self.numbers(key, key)
        if (weight < 0).any():
            row = int((weight < 0).argmax())
            raise DataError(
                f"{key} is {weight[row]:g} in row {row}; accepted: numbers of at least 0",
                argument=key,
            )
        if not weight.any():
            raise DataError(
                f"{key} is 0 in every row; accepted: a weight above 0 in some rows", argument=key
            )
        # The scale of the weights does not matter, but sums of their powers could overflow.
        exponent = math.frexp(weight.max())[1]
        return weight if abs(exponent) <= MAX_EXPONENT else np.ldexp(weight, -exponent)

    def compact_numbers(self, key: str, name: str) -> NDArray[Any]:
        """Return a column of finite numbers: integers of up to 4 bytes as they are, or floats."""
        column = self.columns[key]
        if (
            isinstance(column, EncodedColumn)
            or column.dtype.kind not in "biu"
            or column.itemsize > 4
        ):
            return self.numbers(key, name)
        return np.require(column, dtype=column.dtype.newbyteorder("="), requirements=["C", "A"])

    def numbers(self, key: str, name: str) -> NDArray[np.float64]:
        """Return a column as finite floats."""
        if self._cache is not None and key in self._cache.numbers:
            return self._cache.numbers[key]
        values = _floats(name, self.columns[key])
        n_bad, row = count_not_finite(values)
        if n_bad:
            raise DataError(
                f"{name} is {values[row]:g} in row {row} and missing or infinite in "
                f"{n_bad:,} of {len(values):,} rows; accepted: finite numbers",
                argument=argument_of(name),
            )
        if self._cache is not None:
            self._cache.numbers[key] = values
        return values


@dataclass(frozen=True)
class JointEncoding:
    """The combinations of several columns, and the combination of each row."""

    keys: list[str]
    counts: CombinationCounts
    cell: NDArray[Any]

    def part(self, keys: Sequence[str]) -> tuple[CombinationCounts, NDArray[Any]]:
        """Return the result of `ArraySource.encode` for a subset of the columns."""
        columns = [self.keys.index(key) for key in keys]
        codes, part_of = np.unique(self.counts.codes[:, columns], axis=0, return_inverse=True)
        part_of = part_of.ravel()
        counts = np.zeros(len(codes), dtype=np.int64)
        np.add.at(counts, part_of, self.counts.counts)
        values = [self.counts.values[column] for column in columns]
        part_counts = CombinationCounts(values=values, codes=codes, counts=counts)
        return part_counts, part_of.astype(self.cell.dtype)[self.cell]


@dataclass
class EncodingCache:
    """A cache of columns that were read and encoded."""

    limits: dict[str, int]
    parts: dict[tuple[str, ...], tuple[CombinationCounts, NDArray[Any]]] = field(
        default_factory=dict
    )
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    #: The joint encoding of all columns once it was tried; None if there are too many combinations.
    _joint: list[JointEncoding | None] = field(default_factory=list)

    def joint_encoding(self, source: ArraySource, n_threads: int | None) -> JointEncoding | None:
        """Encode jointly all columns but those over their limit.

        Returns None if there are more than `MAX_JOINT_CELLS` combinations.
        """
        if not self._joint:
            self._joint.append(self._encode(source, n_threads))
        return self._joint[0]

    def _encode(self, source: ArraySource, n_threads: int | None) -> JointEncoding | None:
        keys = list(self.limits)
        while keys:
            limits = [self.limits[key] for key in keys]
            try:
                counts, cell = source._encode(keys, limits, n_threads)
            except TooManyValuesError as error:
                del keys[error.column]
                continue
            few = len(counts.counts) <= MAX_JOINT_CELLS
            return JointEncoding(keys, counts, cell) if few else None
        return None


def check_total(total: float, scored: bool) -> None:
    """Raise when counts add up to more rows than cells can hold."""
    most = MAX_SCORED_ROWS if scored else MAX_ROWS
    if total > most:
        with_scores = " with scores" if scored else ""
        raise DataError(
            f"counts add up to {total:,.0f} rows{with_scores}; accepted: up to {most:,}",
            argument="counts",
        )


def _rank_values(column: Column) -> tuple[NDArray[Any], int, NDArray[np.bool_]]:
    """Return the rank of each value, the number of distinct values, and a mask of missing ones."""
    if isinstance(column, EncodedColumn):
        # An array of text would give each label the size of the longest one.
        labels = [str(label) for label in column.labels]
        place = np.empty(len(labels) + 1, dtype=np.int64)
        place[sorted(range(len(labels)), key=labels.__getitem__)] = np.arange(len(labels))
        place[-1] = len(labels)
        return place[column.codes], len(labels) + 1, column.codes == len(labels)
    missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
    return *number_values(column), missing


def _values_at(column: Column, rows: NDArray[Any]) -> list[Any]:
    return column.values_at(rows) if isinstance(column, EncodedColumn) else list(column[rows])


def refuse_scores(n_outside: int, n_rows: int, example: float, edges: NDArray[np.float64]) -> None:
    """Raise the error for scores outside all bins."""
    raise DataError(
        f"y_score is missing or not between {edges[0]:g} and {edges[-1]:g} in {n_outside:,} of "
        f"{n_rows:,} rows (for example {example:g}); accepted: scores within score_bins",
        argument="y_score",
        mentions=("score_bins",),
    )


def _native_column(column: Column) -> NDArray[Any]:
    """Return an array that the native module accepts: numbers, booleans or fixed-width bytes."""
    if isinstance(column, EncodedColumn):
        return column.codes
    array = np.require(column, dtype=column.dtype.newbyteorder("="), requirements=["C", "A"])
    if array.dtype.kind in "US":
        if array.dtype.itemsize == 0:
            return np.zeros(len(array), dtype=np.uint8)
        return array.view(np.uint8).reshape(len(array), array.dtype.itemsize)
    return array


def _floats(name: str, column: Column) -> NDArray[np.float64]:
    check_numeric(name, column)
    if isinstance(column, EncodedColumn):
        numbers = np.array([*map(as_float, column.labels), np.nan])
        return np.asarray(numbers[column.codes], dtype=np.float64)
    return np.require(column, dtype=np.float64, requirements=["C", "A"])
