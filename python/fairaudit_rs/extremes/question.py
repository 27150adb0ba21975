"""Turns the arguments of `extreme_test` into the discrimination of each group's rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..arguments import ProgressCallback
from ..data.cells import Cells
from ..data.groups import choose_groups, find_group, group_label, pairs_of
from ..data.index import check_indices, indices_of
from ..data.labels import GroupKey, Label
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError, DataError
from ..report.notes import Note
from ..report.shared_notes import rows_without_group_note
from .attribute import read_attribute
from .feature_tables import FeatureTable, RowNumbers, wrap_features
from .flips import Flips, flips_of, mapped_flips
from .scoring import Probability, probability_of, score_rows

Floats = NDArray[np.float64]

#: The value of `upper` for which each row's bound is 1 - f(x, z).
ROW_BOUNDS = "row"


@dataclass(frozen=True, eq=False)
class GroupDiscrimination:
    """A group, with the discrimination f(x, z') - f(x, z) of its rows in their order."""

    name: Any
    discrimination: Floats
    #: f(x, z), so that 1 - score is the largest possible discrimination of a row.
    score: Floats
    #: Positions of the rows in the data.
    rows: RowNumbers

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExtremeQuestion:
    """The discrimination of rows by group, and the pairs of groups to compare."""

    #: The groups in the order of their names, the reference last.
    groups: tuple[GroupDiscrimination, ...]
    #: Positions in `groups` of each pair: the difference is the first minus the second.
    pairs: tuple[tuple[int, int], ...]
    #: Names of the features that define the groups.
    features: tuple[str, ...]
    #: The known upper end for all rows, None if there is none, or "row".
    upper: float | str | None
    #: The attribute that is flipped; None if the user passed scores.
    attribute: str | None
    #: Largest number of counterfactuals of a row; the largest of their differences counts.
    n_flips: int
    #: Whether no flip changes any score, so that there is nothing to measure.
    nothing_changes: bool
    #: Number of rows of the groups that are compared.
    n_rows: int
    #: Number of rows without a group.
    n_missing: int
    #: Number of rows scored, flips included; 0 if the user passed scores.
    n_scored: int
    notes: tuple[Note, ...]

    @property
    def group_sizes(self) -> dict[Any, int]:
        """Number of rows of each group."""
        return {group.name: group.n_rows for group in self.groups}


@dataclass(frozen=True, kw_only=True)
class ExtremeArguments:
    """The arguments of `extreme_test` that define the data and the comparison."""

    model: Any = None
    X: Any = None
    attribute: Any = None
    y_score: Any = None
    counterfactual_score: Any = None
    sensitive_features: Any = None
    data: Any = None
    groups: Sequence[Any] | None = None
    reference: Any = None
    flip: Any = None
    upper: Any = 1.0
    pos_label: Label = None
    missing: str | None = None

    def pose(self, progress: ProgressCallback | None = None) -> ExtremeQuestion:
        """Check the arguments, read the data, and score the rows if there is a model."""
        upper = upper_of(self.upper)
        if self.y_score is not None or self.counterfactual_score is not None:
            return self._pose_scores(upper)
        if self.model is None and self.X is None and self.attribute is None:
            raise ArgumentError(
                "model and y_score are None. Pass model, X and attribute, or y_score and "
                "counterfactual_score.",
                argument="model",
                mentions=(
                    "y_score",
                    "counterfactual_score",
                ),
                code="missing-argument",
            )
        return self._pose_model(upper, progress)

    # -- two columns of scores ---------------------------------------------------------------

    def _pose_scores(self, upper: float | str | None) -> ExtremeQuestion:
        for name in ("model", "X", "attribute", "flip", "pos_label"):
            if getattr(self, name) is not None:
                raise ArgumentTypeError(
                    f"{name} cannot be combined with y_score and counterfactual_score. Pass these "
                    "two, or model, X and attribute.",
                    argument=name,
                    mentions=(
                        "y_score",
                        "counterfactual_score",
                    ),
                    code="conflicting-arguments",
                )
        both = ("y_score", "counterfactual_score")
        for name, other in zip(both, both[::-1], strict=True):
            if getattr(self, name) is None:
                raise ArgumentError(
                    f"{other} needs {name} too. Pass both scores of every row.",
                    argument=name,
                    mentions=(other,),
                    code="missing-argument",
                )
        table = AuditTable.make(
            data=self.data,
            y_score=self.y_score,
            counterfactual_score=self.counterfactual_score,
            sensitive_features=self.sensitive_features,
            rows_for="a tail",
            missing=self.missing,
        )
        rows = table.rows(columns=("y_score", "counterfactual_score"))
        score, flipped = rows.columns["y_score"], rows.columns["counterfactual_score"]
        if upper is not None:
            for name, column in (("y_score", score), ("counterfactual_score", flipped)):
                _check_probabilities(name, column)
        chosen = ChosenGroups.from_cells(rows.cells, rows.group, self.groups, self.reference)
        every = np.flatnonzero(chosen.place >= 0)
        if len(every) < len(score):
            score, flipped = score[every], flipped[every]
        return _question(
            chosen,
            every,
            score,
            flipped - score,
            upper=upper,
            attribute=None,
            n_flips=1,
            n_scored=0,
            notes=(),
        )

    # -- a model -------------------------------------------------------------------------------

    def _pose_model(
        self, upper: float | str | None, progress: ProgressCallback | None
    ) -> ExtremeQuestion:
        if self.data is not None:
            raise ArgumentTypeError(
                "data cannot be combined with model. Pass the features as X=, or names of columns "
                "of data as y_score= and counterfactual_score=.",
                argument="data",
                mentions=(
                    "model",
                    "y_score",
                    "counterfactual_score",
                ),
                code="conflicting-arguments",
            )
        for name in ("model", "X"):
            if getattr(self, name) is None:
                raise ArgumentError(
                    f"{name} is None. Pass model, X and attribute, or y_score and "
                    "counterfactual_score.",
                    argument=name,
                    mentions=(
                        "y_score",
                        "counterfactual_score",
                    ),
                    code="missing-argument",
                )
        probability = probability_of(self.model, self.pos_label)
        return self.prepared(upper).ask(probability, progress=progress)

    def prepared(self, upper: float | str | None) -> FlippedRows:
        """Read the rows, their flips and groups, without any model."""
        arguments.check(missing=self.missing)
        if self.missing is not None and self.sensitive_features is None:
            raise ArgumentTypeError(
                "missing needs sensitive_features too. Pass sensitive_features=, or remove missing "
                "and pass an attribute that has a level in every row.",
                argument="missing",
                mentions=("sensitive_features",),
                code="missing-argument",
            )
        feature_table = wrap_features(self.X)
        flips, cells, group, called, notes = self._flips(feature_table)
        has_counterfactual = flips.has_counterfactual
        chosen = ChosenGroups.from_cells(
            cells, group, self._comparable_groups(cells, group[has_counterfactual]), self.reference
        )
        return FlippedRows(
            feature_table=feature_table,
            flips=flips,
            chosen=chosen,
            rows=np.flatnonzero((chosen.place >= 0) & has_counterfactual),
            attribute=called,
            upper=upper,
            notes=(*notes, *flips.notes),
        )

    def _comparable_groups(self, cells: Cells, group: NDArray[np.int64]) -> Sequence[Any] | None:
        """Return the groups to compare; refuse requested groups in which no row has a flip."""
        existing = list(cells.group_sizes())
        flipped = np.bincount(group, minlength=len(cells.groups)) > 0
        left = [key for key in existing if flipped[cells.groups.index(key)]]
        if len(left) == len(existing):
            return self.groups
        gone = [key for key in existing if key not in left]
        named = existing if self.groups is None else choose_groups(cells, self.groups, None)
        wanted = gone if self.groups is not None or len(left) < 2 else []
        if self.reference is not None:
            wanted = [*wanted, find_group("reference", self.reference, existing)]
        for key in gone:
            if key in wanted and key in named:
                raise DataError(
                    f"flip has no counterfactual for the rows of group {group_label(key)!r}. Map "
                    "its level too, or compare at least two other groups.",
                    argument="flip",
                )
        return [group_label(key) for key in left] if self.groups is None else self.groups

    def _flips(
        self, feature_table: FeatureTable
    ) -> tuple[Flips, Cells, NDArray[np.int64], str | None, tuple[Note, ...]]:
        """Return the flips and the groups, by sensitive_features or else by attribute."""
        groups = None if self.sensitive_features is None else self._groups(feature_table)
        if self.attribute is None:
            if not callable(self.flip) or groups is None:
                raise ArgumentError(
                    "attribute is None. Pass the column of X that is flipped, or flip= as a "
                    "function of X and sensitive_features=.",
                    argument="attribute",
                    mentions=(
                        "flip",
                        "sensitive_features",
                    ),
                    code="missing-argument",
                )
            cells, group = groups
            columns = [
                np.array([key[i] for key in cells.groups])[group]
                for i in range(len(cells.sensitive_features))
            ]
            levels = (
                columns[0]
                if len(columns) == 1
                else dict(zip(cells.sensitive_features, columns, strict=True))
            )
            return mapped_flips(self.flip, feature_table, levels), cells, group, None, ()
        attribute = read_attribute(self.attribute, feature_table)
        cells, group = groups or (attribute.cells, attribute.code)
        flips: Flips
        if callable(self.flip):
            flips = mapped_flips(self.flip, feature_table, attribute.levels_of_rows())
        else:
            flips = flips_of(self.flip, feature_table, attribute)
        return flips, cells, group, attribute.name, attribute.notes

    def _groups(self, feature_table: FeatureTable) -> tuple[Cells, NDArray[np.int64]]:
        """Return the groups by sensitive_features: an array, or the name of a column of X."""
        given = self.sensitive_features
        if (
            isinstance(given, str)
            and feature_table.names is not None
            and given in feature_table.names
        ):
            given = {given: feature_table.raw(feature_table.names.index(given))}
        table = AuditTable.make(sensitive_features=given, missing=self.missing)
        check_indices(indices_of({"X": self.X, "sensitive_features": table.index}))
        rows = table.rows(columns=())
        if len(rows.group) != feature_table.n_rows:
            raise DataError(
                f"sensitive_features has {len(rows.group):,} rows; X has {feature_table.n_rows:,}",
                argument="sensitive_features",
                mentions=("X",),
            )
        return rows.cells, rows.group.astype(np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class FlippedRows:
    """Rows with their flips and groups, which one or several models can score."""

    feature_table: FeatureTable
    flips: Flips
    chosen: ChosenGroups
    #: Positions of the rows that have a flip and belong to a compared group.
    rows: RowNumbers
    attribute: str | None
    upper: float | str | None
    notes: tuple[Note, ...]

    def ask(
        self,
        probability: Probability,
        rows: RowNumbers | None = None,
        progress: ProgressCallback | None = None,
    ) -> ExtremeQuestion:
        """Return the discrimination by a model, for all rows or some of them."""
        rows = self.rows if rows is None else rows
        scored = score_rows(probability, self.feature_table, self.flips, rows, progress)
        return _question(
            self.chosen,
            rows,
            scored.score,
            scored.discrimination,
            upper=self.upper,
            attribute=self.attribute,
            n_flips=self.flips.n_different,
            n_scored=scored.n_scored,
            notes=self.notes,
        )


@dataclass(frozen=True, eq=False)
class ChosenGroups:
    """The groups that are compared, and for every row the position of its group, or -1."""

    keys: list[GroupKey]
    place: NDArray[Any]
    pairs: list[tuple[int, int]]
    cells: Cells

    @classmethod
    def from_cells(
        cls, cells: Cells, group: NDArray[Any], groups: Sequence[Any] | None, reference: Any
    ) -> ChosenGroups:
        """Choose groups as `choose_groups` does."""
        keys = choose_groups(cells, groups, reference)
        at = {key: i for i, key in enumerate(keys)}
        place = np.array([at.get(key, -1) for key in cells.groups], dtype=np.int32)
        return cls(keys, place[group], pairs_of(keys, reference), cells)


def _question(
    chosen: ChosenGroups,
    rows: RowNumbers,
    score: Floats,
    discrimination: Floats,
    *,
    upper: float | str | None,
    attribute: str | None,
    n_flips: int,
    n_scored: int,
    notes: tuple[Note, ...],
) -> ExtremeQuestion:
    discrimination = _restore_ties(score, discrimination)
    if isinstance(upper, float) and discrimination.max() > upper:
        largest = int(discrimination.argmax())
        raise DataError(
            f"the discrimination in row {rows[largest]} is {discrimination[largest]:g}, above "
            f"upper, {upper:g}. Pass an upper= that no row exceeds, or upper=None.",
            argument="upper",
        )
    cells = chosen.cells
    group_of_row = chosen.place[rows]
    groups = []
    for place, key in enumerate(chosen.keys):
        in_group = np.flatnonzero(group_of_row == place)
        groups.append(
            GroupDiscrimination(
                group_label(key), discrimination[in_group], score[in_group], rows[in_group]
            )
        )
    nothing_changes = not discrimination.any()
    return ExtremeQuestion(
        groups=tuple(groups),
        pairs=tuple(chosen.pairs),
        features=cells.sensitive_features,
        upper=upper,
        attribute=attribute,
        n_flips=n_flips,
        nothing_changes=nothing_changes,
        n_rows=len(rows),
        n_missing=cells.n_missing,
        n_scored=n_scored,
        notes=(*notes, *_row_notes(cells, nothing_changes, attribute)),
    )


#: Relative rounding error of model scores: 64 units in the last place.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


def _restore_ties(score: Floats, discrimination: Floats) -> Floats:
    """Replace differences that are equal up to rounding by the one that is closest to 0.

    0.07 - 0.03 and 0.05 - 0.01 differ in their last bits, but scores on a grid must keep their
    ties, which decide how a tail is fitted.
    """
    largest = max(np.abs(score).max(), np.abs(score + discrimination).max())
    rounding = _ROUNDING * largest
    values = np.sort(discrimination)
    apart = np.diff(values) > rounding
    first, last = values[np.append(True, apart)], values[np.append(apart, True)]
    del values
    # Few clusters have several values; only the rows of these change.
    several = first < last
    first, last = first[several], last[several]
    restored = np.where(np.abs(discrimination) <= rounding, 0.0, discrimination)
    if len(first):
        cluster = np.searchsorted(first, discrimination, side="right") - 1
        rows = np.flatnonzero((cluster >= 0) & (discrimination <= last[cluster]))
        # The value closest to 0, which is 0 if a cluster has values on both sides.
        least = np.where(first > 0, first, np.minimum(last, 0.0))
        least[np.abs(least) <= rounding] = 0.0
        restored[rows] = least[cluster[rows]]
    return restored


def _row_notes(cells: Cells, nothing_changes: bool, attribute: str | None) -> Iterator[Note]:
    if cells.n_missing:
        yield rows_without_group_note(cells.n_missing, " and ".join(cells.sensitive_features))
    yield from cells.notes
    if nothing_changes and attribute is None:
        yield Note("equal-scores", "the two scores are the same in every row")
    elif nothing_changes:
        yield Note(
            "model-ignores-attribute",
            f"the model ignores {attribute}: no flip changes a score. That does not say that "
            "groups are scored alike: what stands in for the attribute was not flipped",
        )


def upper_of(value: object) -> float | str | None:
    """Check the known upper end of the discrimination: a number, "row", or None for none."""
    if value is None:
        return None
    if isinstance(value, str):
        if value == ROW_BOUNDS:
            return value
        raise ArgumentError(
            f"upper is {value!r}; accepted: a finite number above 0, None where no upper end is "
            "known, or 'row' for 1 - score in each row",
            argument="upper",
        )
    return arguments.positive("upper", value)


def _check_probabilities(name: str, column: Floats) -> None:
    bad = (column < 0) | (column > 1)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{name} is {column[row]:g} in row {row} and not from 0 to 1 in "
            f"{int(bad.sum()):,} of {len(column):,} rows. Pass probabilities, or upper=None for "
            "scores on another scale.",
            argument=name,
            mentions=("upper",),
        )
