"""The cost of changing the features of a row, and the features that must not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native, arguments
from ..errors import ArgumentError, ArgumentTypeError, DataError
from .feature import Feature
from .feature_encodings import FeatureEncodings

Floats = NDArray[np.float64]
Codes = NDArray[np.uint32]
Rows = Mapping[str, NDArray[Any]]
CostFunction = Callable[[Rows, Rows], Any]

#: The maximum number of distinct feature rows ("cells") when the cost is a function of the user,
#: since it is called once with all pairs.
MAX_CELLS_WITH_COST_FUNCTION = 2_000
#: The most pairs whose costs are in memory at once.
_PAIRS = 4_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class ChangeCost:
    """The cost of a change: a weighted sum of absolute differences of columns, or a function."""

    coding: FeatureEncodings
    #: The weight of each column.
    weights: Floats
    #: Columns that must not change.
    fixed: tuple[int, ...]
    function: CostFunction | None = None

    @classmethod
    def from_arguments(
        cls,
        cost: Mapping[str, float] | CostFunction | None,
        immovable: Iterable[str],
        coding: FeatureEncodings,
        cells: Floats,
        count: Floats,
    ) -> ChangeCost:
        """Make the cost from the arguments of the user.

        By default a change of a continuous feature costs 1 per standard deviation, computed over
        the cells weighted by their counts.
        """
        features = {feature.name: feature for feature in coding.features}
        if not arguments.is_listing(immovable):
            raise ArgumentTypeError(
                f"immovable is {immovable!r}; accepted: a sequence of feature names",
                argument="immovable",
            )
        names = tuple(immovable)
        _check_names("immovable", names, features)
        fixed = tuple(column for name in names for column in features[name].columns)
        factors, function = _factors(cost, features)
        weights = np.zeros(cells.shape[1])
        for name, feature in features.items():
            columns = list(feature.columns)
            weights[columns] = factors.get(name, 1.0) * _default_weight(feature, cells, count)
        return cls(coding=coding.without_rows(), weights=weights, fixed=fixed, function=function)

    @property
    def is_a_metric(self) -> bool:
        """Return whether the triangle inequality holds, so that a detour never costs less."""
        return self.function is None

    def immovable_codes(self, *rows: Floats) -> list[Codes]:
        """Return, for each array of rows, a code for the immovable values of every row.

        The same code means the same values in all arrays.
        """
        ends = np.cumsum([len(row) for row in rows])[:-1]
        if not self.fixed or not sum(map(len, rows)):
            return [np.zeros(len(row), dtype=np.uint32) for row in rows]
        stacked = np.ascontiguousarray(np.vstack(rows)[:, list(self.fixed)])
        _, _, place = _native.distinct_rows(stacked, _native.Call())
        return np.split(place, ends)

    def matrix(self, source: Floats, destination: Floats) -> Floats:
        """Return the costs of all pairs; infinite if an immovable feature would change."""
        if self.function is None:
            costs = np.zeros((len(source), len(destination)))
            for column, weight in enumerate(self.weights):
                costs += weight * np.abs(source[:, column, None] - destination[None, :, column])
        else:
            costs = self._by_function(source, destination)
        own, other = self.immovable_codes(source, destination)
        costs[own[:, None] != other[None]] = np.inf
        return costs

    def _by_function(self, source: Floats, destination: Floats) -> Floats:
        assert self.function is not None
        returned = self.function(self.coding.decode(source), self.coding.decode(destination))
        try:
            costs = np.array(returned, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(
                f"cost returned {returned!r}; accepted: numbers of at least 0", argument="cost"
            ) from None
        shape = (len(source), len(destination))
        if costs.shape != shape:
            raise DataError(
                f"cost returned an array of shape {costs.shape}; accepted: {shape}, the cost of "
                "each pair of rows",
                argument="cost",
            )
        if np.isnan(costs).any() or (costs < 0).any():
            raise DataError(
                "cost returned negative or missing numbers; accepted: numbers of at least 0",
                argument="cost",
            )
        return costs

    def nearest(
        self, rows: Floats, known: Floats, call: _native.Call
    ) -> tuple[NDArray[np.int64], Floats]:
        """Return the position of the cheapest known row for each row, and the cost of moving there.

        The position is -1 if no known row has the same immovable values.
        """
        if not len(rows):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        if self.function is None:
            own, other = self.immovable_codes(rows, known)
            place, distance = _native.nearest_rows(
                rows, own, known, other, self.weights.tolist(), call
            )
        else:
            step = max(1, _PAIRS // len(known))
            parts = [
                self.matrix(rows[start : start + step], known)
                for start in range(0, len(rows), step)
            ]
            place = np.concatenate([part.argmin(axis=1) for part in parts]).astype(np.uint32)
            distance = np.concatenate([part.min(axis=1) for part in parts])
        return np.where(np.isfinite(distance), place.astype(np.int64), -1), distance


def _factors(
    cost: Mapping[str, float] | CostFunction | None, features: Mapping[str, Feature]
) -> tuple[dict[str, float], CostFunction | None]:
    """Return weights by name, or a function."""
    if cost is None:
        return {}, None
    if isinstance(cost, Mapping):
        _check_names("cost", tuple(cost), features)
        return {name: arguments.positive(f"cost[{name!r}]", cost[name]) for name in cost}, None
    if not callable(cost):
        raise ArgumentTypeError(
            f"cost is {cost!r}; accepted: None, a dict of weights by feature, or a function of the "
            "rows before and after a change",
            argument="cost",
        )
    return {}, cost


def _check_names(argument: str, names: tuple[str, ...], features: Mapping[str, Feature]) -> None:
    unknown = [name for name in names if name not in features]
    if unknown:
        raise ArgumentError(
            f"{argument} names {unknown[0]!r}, which is not a feature of the audit. The features "
            f"are {', '.join(features)}.",
            argument=argument,
        )


def _default_weight(feature: Feature, cells: Floats, count: Floats) -> float:
    """Return the default weight of the columns of a feature.

    A changed category, or one standard deviation, then costs 1.
    """
    if feature.kind != "continuous":
        # A new level of a categorical feature changes two columns.
        return 0.5 if feature.kind == "categorical" else 1.0
    values = cells[:, feature.columns[0]]
    center = float(count @ values) / float(count.sum())
    spread = float(np.sqrt(count @ (values - center) ** 2 / count.sum()))
    return 1 / spread if spread > 0 else 1.0
