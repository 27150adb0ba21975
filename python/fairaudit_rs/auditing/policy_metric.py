"""The class `PolicyMetric`: a fair metric that is written in a policy, not fitted to rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError, ColumnError
from .keys import check_names, known_keys

if TYPE_CHECKING:
    from ..data.features import Features
    from ..individual.fair_metric import FairMetric


@dataclass(frozen=True, kw_only=True, repr=False)
class PolicyMetric:
    """The fair metric of a policy: `FairMetric.directions` or `FairMetric.matrix`, as data.

    Parameters
    ----------
    features : sequence of str
        Features in which people may differ at no cost. The name of a feature that is coded in
        several columns means all of them.
    directions : sequence of dict
        Directions in which people may differ at no cost, each with the weights of its features, in
        the units of X.
    matrix : sequence of rows, optional
        The matrix of the squared distance, in the units of X, instead of features and directions.
    matrix_features : sequence of str
        The feature of each row and column of the matrix.
    units : dict
        The unit of each feature, such as its standard deviation; 1 for features not named.
    """

    features: Sequence[str] = ()
    directions: Sequence[Mapping[str, float]] = ()
    matrix: Sequence[Sequence[float]] = ()
    matrix_features: Sequence[str] = ()
    units: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "features": check_names("features", self.features),
            "directions": _directions(self.directions),
            "matrix": _matrix(self.matrix),
            "matrix_features": check_names("matrix_features", self.matrix_features),
            "units": None if self.units is None else _units(self.units),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        has_free_directions = bool(self.features or self.directions)
        if has_free_directions == bool(self.matrix):
            raise ArgumentError(
                f"fair_metric has {'both' if has_free_directions else 'no'} features "
                f"or directions and "
                f"{'a' if has_free_directions else 'no'} matrix. Give features, "
                f"directions or both; or else a "
                "matrix.",
                argument="fair_metric",
            )
        if len(self.matrix) != len(self.matrix_features):
            raise ArgumentError(
                f"matrix_features has {len(self.matrix_features)} names, matrix has "
                f"{len(self.matrix)} rows. Name one feature for each row.",
                argument="matrix_features",
                mentions=("matrix",),
            )

    @classmethod
    def read(cls, given: object) -> PolicyMetric:
        """Return the metric from a table of a policy file, or from a `FairMetric`."""
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            known_keys("fair_metric", given, [entry.name for entry in fields(cls)], "fair_metric")
            return cls(**given)
        from ..individual.fair_metric import FairMetric

        if not isinstance(given, FairMetric):
            raise ArgumentTypeError(
                f"fair_metric is {given!r}; accepted: a table with features, directions or matrix, "
                "or a FairMetric",
                argument="fair_metric",
            )
        called = given.feature_names or tuple(f"x{place}" for place in range(given.n_features))
        units = dict(zip(called, given.units.tolist(), strict=True))
        return cls(matrix=given.D.tolist(), matrix_features=called, units=units)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are given, as plain values."""
        found = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: _plain(value) for name, value in found.items() if value}

    def for_features(self, features: Features) -> FairMetric:
        """Return the fair metric for features of these names."""
        import numpy as np

        from ..individual.fair_metric import FairMetric
        from ..individual.question import chosen_features

        names = features.called
        positions = {name: position for position, name in enumerate(names)}
        units = np.ones(len(names))
        for name, unit in (self.units or {}).items():
            units[_place(positions, name, "units")] = unit
        if self.matrix:
            lacking = [name for name in names if name not in self.matrix_features]
            if lacking:
                raise ColumnError(
                    f"fair_metric has no row for the feature {lacking[0]!r}. Give a row for each "
                    "feature of X.",
                    argument="fair_metric",
                )
            own_positions = [
                _place(positions, name, "matrix_features") for name in self.matrix_features
            ]
            matrix = np.zeros((len(names), len(names)))
            matrix[np.ix_(own_positions, own_positions)] = np.array(self.matrix)
            metric = FairMetric.matrix(matrix * np.outer(units, units))
        else:
            rows = []
            if self.features:
                without_cost = chosen_features(
                    "fair_metric", list(self.features), names, len(names)
                )
                rows += list(np.eye(len(names))[without_cost])
            for direction in self.directions:
                row = np.zeros(len(names))
                for name, weight in direction.items():
                    row[_place(positions, name, "directions")] = weight
                rows.append(row / units)
            metric = FairMetric.directions(np.array(rows))
        if not metric.rank:
            raise ArgumentError(
                "fair_metric makes all people alike: no difference costs anything. Give fewer "
                "features and directions.",
                argument="fair_metric",
            )
        kind = f"{metric.kind}, given by the policy"
        return replace(metric, kind=kind, units=units, feature_names=features.names)

    def __str__(self) -> str:
        free = [*self.features, *(" + ".join(direction) for direction in self.directions)]
        what = f"{', '.join(free)} at no cost" if free else "a matrix"
        return f"the metric of the policy ({what})"

    def __repr__(self) -> str:
        return repr(self.to_dict())

    def __hash__(self) -> int:
        return hash(repr(self))


def _place(positions: Mapping[str, int], name: str, key: str) -> int:
    if name not in positions:
        from ..data.columns import list_some

        raise ColumnError(
            f"{key} of fair_metric names {name!r}, which is not a feature of X; accepted: "
            f"{list_some(list(positions), 20)}",
            argument=key,
            mentions=("fair_metric",),
        )
    return positions[name]


def _number(name: str, value: object) -> float:
    return arguments.number(name, value, "a finite number", math.isfinite)


def _units(given: object) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"units is {given!r}; accepted: a table of features and numbers", argument="units"
        )
    return {
        str(name): arguments.number(
            f"units of {str(name)!r}", value, "a number above 0", lambda unit: 0 < unit < math.inf
        )
        for name, value in given.items()
    }


def _directions(given: object) -> tuple[dict[str, float], ...]:
    accepted = "a list of tables, each with weights of features"
    if not arguments.is_listing(given) or isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"directions is {given!r}; accepted: {accepted}", argument="directions"
        )
    found = []
    for entry in given:
        if not isinstance(entry, Mapping):
            raise ArgumentTypeError(
                f"directions holds {entry!r}; accepted: {accepted}", argument="directions"
            )
        weights = {str(name): _number(f"weight of {str(name)!r}", entry[name]) for name in entry}
        if not any(weights.values()):
            raise ArgumentError(
                f"directions holds {dict(entry)!r}; accepted: {accepted}, not all 0",
                argument="directions",
            )
        found.append(weights)
    return tuple(found)


def _matrix(given: object) -> tuple[tuple[float, ...], ...]:
    if not arguments.is_listing(given) or isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"matrix is {given!r}; accepted: a list of rows of numbers", argument="matrix"
        )
    rows: list[tuple[float, ...]] = []
    for row in given:
        if not arguments.is_listing(row):
            raise ArgumentTypeError(
                f"matrix holds {row!r}; accepted: rows of numbers", argument="matrix"
            )
        rows.append(tuple(_number("matrix", value) for value in row))
    if any(len(row) != len(rows) for row in rows):
        raise ArgumentError(
            f"matrix has {len(rows)} rows of {sorted({len(row) for row in rows})} numbers; "
            "accepted: a square matrix",
            argument="matrix",
        )
    return tuple(rows)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value
