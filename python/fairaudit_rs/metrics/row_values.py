"""The values that metrics sum over rows: ranks, fractions, or weighted counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.columns import count_not_finite
from ..data.integer_codes import split_ranges
from ..errors import ArgumentError, FairAuditError, FunctionError

Floats = NDArray[np.float64]
Codes = NDArray[np.uint32]
Columns = Mapping[str, NDArray[Any]]
#: A function of columns that returns one value per row.
RowFunction = Callable[[Mapping[str, Floats]], Floats]
#: Attribute that marks functions whose value for a row depends on that row alone.
_OF_ONE_ROW = "_fairaudit_of_one_row"
#: The largest absolute row value must lie between the inverse of this and this.
MAX_SIZE = 1e70
#: Adds up row values over each unit: rows, or clusters of rows.
Sums = Callable[[Floats], Floats]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """The units that exchange groups, and the scaling of the statistic."""

    units: _native.Units
    scaling: str
    sums: Sums
    call: _native.Call
    #: For ranks of rows only: the position of each group code among the tested groups, if not all
    #: are tested.
    places: NDArray[np.uint16] | None = None

    def of_rows(self, codes: Codes) -> Codes:
        """Return the code of the unit of each row."""
        return codes if self.units.of_row is None else codes[self.units.of_row]

    def single_units(self) -> _native.Units:
        """Return the units without their rows, for values that are already summed by unit."""
        return _native.Units(self.units.group, self.units.n_groups, stratum=self.units.stratum)


class RowValues(Protocol):
    """Numbers by row, multiplied by the weights."""

    def taken(self, rows: Any) -> RowValues:
        """Return the values of some rows."""

    def test(self, exchange: Exchange, within_labels: bool) -> _native.PermutationTest:
        """Return the native test."""

    def gap(self, share: Floats) -> float:
        """Return the gap of two groups, given the share of each row that is in the first."""

    def terms(self) -> tuple[Floats, Floats] | None:
        """Return numerator and denominator of a ratio of sums; None for other metrics."""

    def weak(self, exchange: Exchange, cell: Codes) -> _native.WeakNull:
        """Return samples of the weak null, with values centred in every cell of units."""

    def shortage(self, rows: NDArray[np.bool_]) -> str | None:
        """Describe why some rows have no value; None if that depends on weights and clusters."""


@dataclass(frozen=True)
class RankValues:
    """Scores and labels of a metric of ranks."""

    score: Floats
    positive: NDArray[np.bool_]
    weight: Floats | None

    def taken(self, rows: Any) -> RankValues:
        """Return the values of some rows."""
        weight = None if self.weight is None else self.weight[rows]
        return RankValues(self.score[rows], self.positive[rows], weight)

    def test(self, exchange: Exchange, within_labels: bool) -> _native.PermutationTest:
        """Return the native test."""
        return _native.PermutationTest.auc(
            self.score,
            self.positive,
            exchange.units,
            exchange.call,
            studentize=exchange.scaling,
            weight=self.weight,
            within_labels=within_labels,
            places=exchange.places,
        )

    def weak(self, exchange: Exchange, cell: Codes) -> _native.WeakNull:
        """Return samples of the weak null, with the AUC linearised as a mean of influences."""
        influence = np.zeros(len(self.score))
        of_rows = exchange.of_rows(cell)
        for code in range(int(cell.max(initial=0)) + 1):
            inside = of_rows == code
            weight = None if self.weight is None else self.weight[inside]
            psi = rank_influence(self.score[inside], self.positive[inside], weight)
            influence[inside] = psi if weight is None else weight * psi
        return _weak_means(influence, exchange, cell)

    def gap(self, share: Floats) -> float:
        """Return the gap of two groups, given the share of each row that is in the first."""
        weight = np.ones(len(share)) if self.weight is None else self.weight
        group = np.repeat(np.array([0, 1], dtype=np.uint16), len(share))
        weights = np.concatenate([weight * share, weight * (1 - share)])
        score, positive = (np.concatenate([part] * 2) for part in (self.score, self.positive))
        units = _native.Units(group, 2)
        test = _native.PermutationTest.auc(
            score, positive, units, _native.Call(), studentize="unpooled", weight=weights
        )
        first, second = (entry.value for entry in test.evaluations)
        return first - second

    def terms(self) -> None:
        """Return None: the AUC is not a ratio of sums."""

    def shortage(self, rows: NDArray[np.bool_]) -> str | None:
        """Describe why some rows have no value: too few of one label."""
        positive = self.positive[rows]
        if self.weight is not None:
            positive = positive[self.weight[rows] > 0]
        n_positive = int(positive.sum())
        return few_labels(n_positive, len(positive) - n_positive)


@dataclass(frozen=True)
class RatioValues:
    """Numerator and denominator of each row; without a denominator it is 1 in every row."""

    numerator: Floats
    denominator: Floats | None

    def taken(self, rows: Any) -> RatioValues:
        """Return the values of some rows."""
        below = None if self.denominator is None else self.denominator[rows]
        return RatioValues(self.numerator[rows], below)

    def test(self, exchange: Exchange, within_labels: bool) -> _native.PermutationTest:
        """Return the native test."""
        del within_labels
        below = self.denominator
        if below is None and exchange.units.of_row is not None:
            below = np.ones(len(self.numerator))
        return _native.PermutationTest.ratio(
            exchange.sums(self.numerator),
            None if below is None else exchange.sums(below),
            exchange.units,
            exchange.call,
            studentize=exchange.scaling,
        )

    def weak(self, exchange: Exchange, cell: Codes) -> _native.WeakNull:
        """Return samples of a - theta d and d, where theta is the ratio in the cell."""
        below = np.ones(len(self.numerator)) if self.denominator is None else self.denominator
        of_rows = exchange.of_rows(cell)
        n = int(cell.max(initial=0)) + 1
        above, total = (np.bincount(of_rows, part, n) for part in (self.numerator, below))
        theta = np.divide(above, total, out=np.zeros(n), where=total > 0)
        centred = self.numerator - theta[of_rows] * below
        plain = self.denominator is None and exchange.units.of_row is None
        return _native.WeakNull.rows(
            exchange.sums(centred),
            None if plain else exchange.sums(below),
            exchange.units,
            cell,
            exchange.call,
            studentize=exchange.scaling,
        )

    def gap(self, share: Floats) -> float:
        """Return the gap of two groups, given the share of each row that is in the first."""
        above, below = self.terms()
        first, second = (float(above @ part) / float(below @ part) for part in (share, 1 - share))
        return float(first - second)

    def terms(self) -> tuple[Floats, Floats]:
        """Return numerator and denominator."""
        below = self.denominator
        return self.numerator, np.ones(len(self.numerator)) if below is None else below

    def shortage(self, rows: NDArray[np.bool_]) -> str | None:
        """Return None: whether there is a value depends on weights and clusters."""
        del rows
        return None


@dataclass(frozen=True)
class MeanOfParts:
    """The mean of a value that depends on one row at a time, computed in blocks of rows.

    Values are streamed to the test, so that they are in memory once and not twice.
    """

    metric: str
    source: RowFunction
    columns: Columns
    #: None: the denominator is 1 in every row.
    denominator: ClassVar[None] = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def taken(self, rows: Any) -> MeanOfParts:
        """Return the values of some rows."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return replace(self, columns=columns)

    def parts(self) -> Iterator[Floats]:
        """Yield the values of consecutive rows, and raise at the end if some are not accepted.

        After the first value that is not finite, the rest is only counted.
        """
        named, n_bad, largest = (self.metric, "numerator"), 0, 0.0
        for part in split_ranges(len(self)):
            columns = {name: column[part] for name, column in self.columns.items()}
            values = _computed(*named, self.source, columns, part.stop - part.start)
            n_bad += count_not_finite(values)[0]
            if not n_bad:
                largest = max(largest, _largest(values))
                yield values
        if n_bad:
            raise _not_finite(*named, (len(self),), n_bad, len(self))
        _check_largest(*named, largest)

    @property
    def numerator(self) -> Floats:
        """The values of all rows."""
        values = np.empty(len(self))
        start = 0
        for part in self.parts():
            values[start : start + len(part)] = part
            start += len(part)
        return values

    @property
    def _whole(self) -> RatioValues:
        return RatioValues(self.numerator, None)

    def test(self, exchange: Exchange, within_labels: bool) -> _native.PermutationTest:
        """Return the native test."""
        if exchange.units.of_row is not None:
            return self._whole.test(exchange, within_labels)
        return _native.PermutationTest.mean(
            self.parts(), exchange.units, exchange.call, studentize=exchange.scaling
        )

    def weak(self, exchange: Exchange, cell: Codes) -> _native.WeakNull:
        """Return samples of a - theta, where theta is the mean in the cell."""
        return self._whole.weak(exchange, cell)

    def gap(self, share: Floats) -> float:
        """Return the gap of two groups, given the share of each row that is in the first."""
        return self._whole.gap(share)

    def terms(self) -> tuple[Floats, Floats]:
        """Return numerator and denominator."""
        return self._whole.terms()

    def shortage(self, rows: NDArray[np.bool_]) -> str | None:
        """Return None: whether there is a value depends on weights and clusters."""
        del rows
        return None


@dataclass(frozen=True)
class CountValues:
    """Weights by row and class, for a count metric that is not a fraction."""

    counts: Floats
    native: _native.CountMetric

    def taken(self, rows: Any) -> CountValues:
        """Return the values of some rows."""
        return CountValues(self.counts[rows], self.native)

    def test(self, exchange: Exchange, within_labels: bool) -> _native.PermutationTest:
        """Return the native test."""
        del within_labels
        counts = np.stack([exchange.sums(column) for column in self.counts.T], axis=1)
        return _native.PermutationTest.weighted_counts(
            np.ascontiguousarray(counts),
            self.native,
            exchange.units,
            exchange.call,
            studentize=exchange.scaling,
        )

    def weak(self, exchange: Exchange, cell: Codes) -> _native.WeakNull:
        """Return samples of the weak null, with the metric linearised as a mean of influences."""
        of_rows = exchange.of_rows(cell)
        n = int(cell.max(initial=0)) + 1
        totals = np.stack([np.bincount(of_rows, column, n) for column in self.counts.T], axis=1)
        gradients = [self.native.gradient(total.tolist()) for total in totals]
        of_cells = np.nan_to_num(np.array(gradients, dtype=np.float64))
        return _weak_means((self.counts * of_cells[of_rows]).sum(axis=1), exchange, cell)

    def gap(self, share: Floats) -> float:
        """Return the gap of two groups, given the share of each row that is in the first."""
        first, second = (
            self.native.evaluate((self.counts * part[:, None]).sum(axis=0).tolist()).value
            for part in (share, 1 - share)
        )
        return float(first - second)

    def terms(self) -> None:
        """Return None: the formula is not a ratio of sums."""

    def shortage(self, rows: NDArray[np.bool_]) -> str | None:
        """Return None: whether there is a value depends on weights and clusters."""
        del rows
        return None


def _weak_means(influence: Floats, exchange: Exchange, cell: Codes) -> _native.WeakNull:
    """Return samples of the mean of influences, which add up to 0 in every cell of units."""
    sizes = np.bincount(cell)
    return _native.WeakNull.rows(
        sizes[cell] * exchange.sums(influence),
        None,
        exchange.single_units(),
        cell,
        exchange.call,
        studentize=exchange.scaling,
    )


def few_labels(n_positive: int, n_negative: int) -> str:
    """Describe the label that a group has few rows of."""
    few, what = fewer_of_labels(n_positive, n_negative)
    return f"{few} {what}"


def fewer_of_labels(n_positive: int, n_negative: int) -> tuple[int, str]:
    """Return the number of rows of the rarer label, and a description of them."""
    few, kind = min((n_positive, "positive"), (n_negative, "negative"))
    return few, f"row{'' if few == 1 else 's'} with a {kind} label"


def of_one_row(function: RowFunction) -> RowFunction:
    """Mark a function whose value for a row depends on the columns of this row alone."""
    setattr(function, _OF_ONE_ROW, True)
    return function


def is_of_one_row(source: Any) -> TypeGuard[RowFunction]:
    """Return whether a row value is a function that `of_one_row` marked."""
    return getattr(source, _OF_ONE_ROW, False) is True


def row_value(name: str, argument: str, source: Any, columns: Columns, n_rows: int) -> Floats:
    """Return the value of every row that a function or a column gives, checked."""
    array = _computed(name, argument, source, columns, n_rows)
    n_bad = count_not_finite(array.ravel())[0]
    if array.shape != (n_rows,) or n_bad:
        raise _not_finite(name, argument, array.shape, n_bad, n_rows)
    return array


def _computed(name: str, argument: str, source: Any, columns: Columns, n_rows: int) -> Floats:
    try:
        return np.ascontiguousarray(value_of(source, columns), dtype=np.float64)
    except FairAuditError:
        raise
    except Exception as error:
        raise FunctionError(
            f"{argument} of {name} failed on {n_rows:,} rows: {type(error).__name__}: {error}. "
            "Return one finite number for each row.",
            argument=argument,
        ) from error


def _not_finite(
    name: str, argument: str, shape: tuple[int, ...], n_bad: int, n_rows: int
) -> ArgumentError:
    return ArgumentError(
        f"{argument} of {name} gives an array of shape {shape} with "
        f"{n_bad} values that are not finite; accepted: one finite number for "
        f"each of the {n_rows} rows",
        argument=argument,
    )


def check_size(name: str, argument: str, values: Floats) -> None:
    """Raise if sums of third powers of the row values would overflow or underflow."""
    _check_largest(name, argument, _largest(values))


def _largest(values: Floats) -> float:
    return max(-float(values.min(initial=0.0)), float(values.max(initial=0.0)))


def _check_largest(name: str, argument: str, largest: float) -> None:
    if largest and not 1 / MAX_SIZE <= largest <= MAX_SIZE:
        raise ArgumentError(
            f"{argument} of {name} has absolute values of up to {largest:g}; accepted: a largest "
            f"one from {1 / MAX_SIZE:g} to {MAX_SIZE:g} (values in another unit)",
            argument=argument,
        )


def check_bounds(name: str, bounds: Any, above: Floats, below: Floats | None) -> None:
    """Raise if row values are outside the range that the user gave."""
    if bounds is None or callable(bounds):
        return
    low, high = bounds
    if below is not None and below.size and below.min() < 0:
        raise ArgumentError(
            f"denominator of {name} is {below.min():g} in a row, but bounds need denominators of "
            "at least 0. Remove bounds, or change the sign of such rows.",
            argument="denominator",
            mentions=("bounds",),
        )
    slack = 1e-12 * max(abs(low), abs(high))
    for part in split_ranges(len(above)):
        size: Any = 1.0 if below is None else below[part]
        outside = (above[part] < (low - slack) * size) | (above[part] > (high + slack) * size)
        if not outside.any():
            continue
        row = part.start + int(np.argmax(outside))
        value = f"{above[row]:g}" if below is None else f"{above[row]:g} of {below[row]:g}"
        raise ArgumentError(
            f"{name} is {value} in row {row}; accepted: {low:g} to {high:g}, its bounds",
            argument="bounds",
        )


def as_floats(columns: Columns) -> dict[str, Floats]:
    """Return all columns as floats."""
    return {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}


def value_of(source: Any, columns: Columns) -> NDArray[Any]:
    """Return the value of every row that a function or a column gives."""
    floats = as_floats(columns)
    # Overflow is reported later, with the name of the argument.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(floats[source] if isinstance(source, str) else source(floats))


def rank_influence(
    score: NDArray[Any], positive: NDArray[Any], weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return the influence of rows on the AUC, with ties counted as 1/2."""
    weight = np.ones(len(score)) if weight is None else weight
    positive = positive.astype(bool)
    _, level = np.unique(score, return_inverse=True)
    level = level.ravel()

    def below(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        sums = np.bincount(level, weight * rows)
        ranks: NDArray[np.float64] = (np.cumsum(sums) - 0.5 * sums)[level]
        return ranks

    up, down = float(weight[positive].sum()), float(weight[~positive].sum())
    if not up or not down:
        return np.zeros(len(score))
    component = np.where(positive, below(~positive) / down, 1 - below(positive) / up)
    auc = float((weight * component * positive).sum()) / up
    return (component - auc) / np.where(positive, up, down)
