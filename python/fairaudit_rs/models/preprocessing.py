"""Converts fitted preprocessing steps of scikit-learn to one affine map of features.

Each column that the steps produce is ``scale * feature + shift`` of one feature: a numeric column,
or the indicator of a level. The map is merged into a linear model or the first layer of a network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..data.indicators import Indicator
from ..errors import ArgumentError, ArgumentTypeError
from .estimators import fitted_value, sklearn_names

Floats = NDArray[np.float64]
#: A feature: (input column, level of it), both by position; the level of a numeric column is None.
Feature: TypeAlias = tuple[int, int | None]

_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
_HINT = (
    f"accepted before a linear model or a network: {', '.join(_SCALERS)}, SimpleImputer, and in a "
    "ColumnTransformer also OneHotEncoder, 'passthrough' and 'drop' (or call "
    "adapt() on the last step alone, and pass rows that are already transformed)"
)


@dataclass(frozen=True, kw_only=True)
class PreprocessedColumns:
    """The columns after some preprocessing steps, each computed from one feature."""

    #: Names of the input columns (None if they have none), and their number.
    names: tuple[str, ...] | None
    n_columns: int
    #: The feature that each column is computed from.
    source: tuple[Feature, ...]
    scale: Floats
    shift: Floats
    #: The indicators of categorical input columns, by position.
    levels: Mapping[int, tuple[Indicator, ...]]
    #: The values that replace missing ones in input columns, by position.
    fill: Mapping[int, Any] = field(default_factory=dict)

    @classmethod
    def raw(cls, model: Any) -> PreprocessedColumns:
        """Return the unchanged input columns of a fitted estimator."""
        names = getattr(model, "feature_names_in_", None)
        n = int(fitted_value(model, "n_features_in_"))
        return cls(
            names=None if names is None else tuple(map(str, names)),
            n_columns=n,
            source=tuple((place, None) for place in range(n)),
            scale=np.ones(n),
            shift=np.zeros(n),
            levels={},
        )

    def scaled(self, scale: Any, shift: Any) -> PreprocessedColumns:
        """Return the columns after another affine map."""
        return replace(self, scale=self.scale * scale, shift=self.shift * scale + shift)

    def select(self, places: Sequence[int]) -> PreprocessedColumns:
        """Return some of the columns."""
        chosen = list(places)
        source = tuple(self.source[place] for place in chosen)
        return replace(self, source=source, scale=self.scale[chosen], shift=self.shift[chosen])

    @property
    def features(self) -> list[Feature]:
        """The features of the model: all columns if they have no names, else those that are used.

        All levels of a categorical column are features, even one that the encoder dropped.
        """
        if self.names is None:
            return [(place, None) for place in range(self.n_columns)]
        used = set(self.source)
        return [
            feature
            for place in range(self.n_columns)
            for feature in [
                *([(place, None)] if (place, None) in used else []),
                *((place, level) for level in range(len(self.levels.get(place, ())))),
            ]
        ]

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features; the name of an indicator is an `Indicator`."""
        if self.names is None:
            return None
        return tuple(
            self.names[place] if level is None else self.levels[place][level]
            for place, level in self.features
        )

    @property
    def fill_by_name(self) -> dict[str | int, Any]:
        """The fill value of each column, by its name, or position without one."""
        names = self.names
        return {
            place if names is None else names[place]: value for place, value in self.fill.items()
        }

    def feature_weights(self, weights: Floats) -> Floats:
        """Return the weights of the features, given those of the columns (columns x scores).

        The shifts are not included; they belong to the intercepts.
        """
        position = {feature: number for number, feature in enumerate(self.features)}
        folded = np.zeros((len(position), weights.shape[1]))
        positions = [position[source] for source in self.source]
        np.add.at(folded, positions, self.scale[:, None] * weights)
        return folded


def prepared_by(
    steps: Sequence[tuple[str, Any]], columns: PreprocessedColumns
) -> PreprocessedColumns:
    """Return the columns after some fitted steps."""
    for name, step in steps:
        columns = _after(name, step, columns)
    return columns


def steps_of(model: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline without those that pass columns through."""
    return [(name, step) for name, step in model.steps if not _is_placeholder(step, "passthrough")]


def _is_placeholder(step: Any, word: str) -> bool:
    """Return whether a step is this word, None, or the identity that scikit-learn puts for it."""
    if step is None or isinstance(step, str):
        return step in (None, word)
    identity = "FunctionTransformer" in sklearn_names(step) and step.func is None
    return word == "passthrough" and identity


def _after(name: str, step: Any, columns: PreprocessedColumns) -> PreprocessedColumns:
    kinds = sklearn_names(step)
    if _is_placeholder(step, "passthrough"):
        return columns
    if "Pipeline" in kinds:
        return prepared_by(steps_of(step), columns)
    if "ColumnTransformer" in kinds:
        return _by_columns(name, step, columns)
    if "SimpleImputer" in kinds:
        return _with_fill_values(name, step, columns)
    if "OneHotEncoder" in kinds:
        return _encoded(name, step, columns)
    if any(kind in kinds for kind in _SCALERS):
        return columns.scaled(*_affine(name, step, kinds))
    raise ArgumentTypeError(f"step {name!r} is a {type(step).__name__}; {_HINT}", argument="model")


def _affine(name: str, step: Any, kinds: Sequence[str]) -> tuple[Any, Any]:
    """Return scale and shift of a scaler that maps x to ``scale * x + shift``."""
    unit_scale, no_shift = 1.0, 0.0
    if getattr(step, "clip", False):
        raise ArgumentError(
            f"step {name!r} clips, which is not linear. Refit it with clip=False.",
            argument="model",
        )
    if "MinMaxScaler" in kinds:
        return fitted_value(step, "scale_"), fitted_value(step, "min_")
    if "MaxAbsScaler" in kinds:
        return 1 / fitted_value(step, "scale_"), no_shift
    standard = "StandardScaler" in kinds
    divided = step.with_std if standard else step.with_scaling
    centred = step.with_mean if standard else step.with_centering
    centre = fitted_value(step, "mean_" if standard else "center_") if centred else no_shift
    scale = 1 / fitted_value(step, "scale_") if divided else unit_scale
    return scale, -centre * scale


def _with_fill_values(name: str, step: Any, columns: PreprocessedColumns) -> PreprocessedColumns:
    """Return the columns with the values that an imputer fills in for missing ones."""
    marker = step.missing_values
    if not (marker is None or marker != marker) or getattr(step, "add_indicator", False):
        raise ArgumentError(
            f"step {name!r} is a SimpleImputer with missing_values={marker!r} and "
            f"add_indicator={step.add_indicator}; accepted: missing_values=nan and no indicator",
            argument="model",
        )
    statistics = np.asarray(fitted_value(step, "statistics_"), dtype=object)
    if len(statistics) != len(columns.source) or any(value != value for value in statistics):
        raise ArgumentError(
            f"step {name!r} drops columns that are entirely missing. Remove these columns and "
            "refit.",
            argument="model",
        )
    fill = dict(columns.fill)
    for (place, _), scale, shift, value in zip(
        columns.source, columns.scale, columns.shift, statistics, strict=True
    ):
        is_text = isinstance(value, str)
        fill.setdefault(place, value if is_text else (float(value) - shift) / scale)
    return replace(columns, fill=fill)


def _encoded(name: str, step: Any, columns: PreprocessedColumns) -> PreprocessedColumns:
    """Return the indicator columns of an encoder, one for each level that it keeps."""
    if columns.names is None:
        raise ArgumentTypeError(
            f"step {name!r} is a OneHotEncoder of columns without names. Fit the estimator on a "
            "frame, so that columns can be found by name.",
            argument="model",
        )
    raw = all(level is None for _, level in columns.source)
    if not raw or (columns.scale != 1).any() or (columns.shift != 0).any():
        raise ArgumentTypeError(
            f"step {name!r} encodes columns that an earlier step has changed. Encode the input "
            "columns instead.",
            argument="model",
        )
    if step.min_frequency is not None or step.max_categories is not None:
        raise ArgumentTypeError(
            f"step {name!r} merges rare categories. Refit it without min_frequency and "
            "max_categories.",
            argument="model",
        )
    dropped = step.drop_idx_
    source: list[Feature] = []
    levels = dict(columns.levels)
    strict = step.handle_unknown == "error"
    for j, ((place, _), categories) in enumerate(
        zip(columns.source, fitted_value(step, "categories_"), strict=True)
    ):
        values = tuple(np.asarray(categories).tolist())
        allowed = values if strict else None
        levels[place] = tuple(Indicator(columns.names[place], value, allowed) for value in values)
        dropped_level = None if dropped is None else dropped[j]
        source += [(place, level) for level in range(len(values)) if level != dropped_level]
    return replace(
        columns,
        source=tuple(source),
        scale=np.ones(len(source)),
        shift=np.zeros(len(source)),
        levels=levels,
    )


def _by_columns(name: str, step: Any, columns: PreprocessedColumns) -> PreprocessedColumns:
    """Return the output columns of a ColumnTransformer, in its order."""
    parts: dict[int, PreprocessedColumns] = {}
    weights = step.transformer_weights or {}
    names = getattr(step, "feature_names_in_", None)
    for transformer_name, transformer, chosen in fitted_value(step, "transformers_"):
        places = _places(chosen, names, len(columns.source))
        output_slice = step.output_indices_.get(transformer_name)
        if _is_placeholder(transformer, "drop") or not places or output_slice is None:
            continue
        part = _after(f"{name}: {transformer_name}", transformer, columns.select(places))
        weight = weights.get(transformer_name, 1.0)
        parts[output_slice.start] = part.scaled(weight, 0.0)
        if len(part.source) != output_slice.stop - output_slice.start:
            raise ArgumentTypeError(
                f"step {name!r} has {output_slice.stop - output_slice.start} columns from "
                f"{transformer_name!r}, but {len(part.source)} are expected; {_HINT}",
                argument="model",
            )
    ordered = [part for _, part in sorted(parts.items())]
    if not ordered:
        raise ArgumentError(
            f"step {name!r} drops all columns. Keep at least one.", argument="model"
        )
    return replace(
        columns,
        source=tuple(feature for part in ordered for feature in part.source),
        scale=np.concatenate([part.scale for part in ordered]),
        shift=np.concatenate([part.shift for part in ordered]),
        levels={place: levels for part in ordered for place, levels in part.levels.items()},
        fill=_agreed(ordered),
    )


def _agreed(parts: Sequence[PreprocessedColumns]) -> dict[int, Any]:
    """Return the fill values on which all parts that use a column agree."""
    fill: dict[int, Any] = {}
    for place in {place for part in parts for place in part.fill}:
        users = [part for part in parts if any(place == other for other, _ in part.source)]
        values = [part.fill.get(place) for part in users]
        if values and None not in values and all(value == values[0] for value in values):
            fill[place] = values[0]
    return fill


def _places(chosen: Any, names: Any, n_columns: int) -> list[int]:
    """Return the positions of the columns that a transformer takes."""
    if isinstance(chosen, slice) and isinstance(chosen.start or chosen.stop, str):
        listed = list(names)
        first = 0 if chosen.start is None else listed.index(chosen.start)
        last = n_columns if chosen.stop is None else listed.index(chosen.stop) + 1
        return list(range(first, last))
    if isinstance(chosen, slice):
        return list(range(n_columns)[chosen])
    names_or_positions = [chosen] if isinstance(chosen, str | int) else list(chosen)
    if names_or_positions and all(isinstance(name, bool | np.bool_) for name in names_or_positions):
        return [place for place, name in enumerate(names_or_positions) if name]
    if any(isinstance(name, str) for name in names_or_positions):
        listed = list(names)
        return [listed.index(name) for name in names_or_positions]
    return [int(name) % n_columns for name in names_or_positions]
