"""From the arguments of `extreme_test` to the discrimination of the rows of each group."""

from __future__ import annotations

from collections.abc import Sequence
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
from .attribute import read_attribute
from .flips import Flips, flips_of, mapped_flips
from .forms import FeatureForm, RowNumbers, form_of
from .scoring import Probability, probability_of, score_rows

Floats = NDArray[np.float64]

#: A bound of its own for each row, what its score leaves: 1 - f(x, z).
ROW_BOUNDS = "row"


@dataclass(frozen=True, eq=False)
class GroupDiscrimination:
    """A group and the discrimination of its rows, f(x, z') - f(x, z), in the order of the rows."""

    name: Any
    discrimination: Floats
    #: f(x, z): what the discrimination of a row leaves is 1 - f(x, z).
    score: Floats
    #: Places of the rows in the data.
    rows: RowNumbers

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return len(self.rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExtremeQuestion:
    """The discrimination of rows by group, and which groups are compared."""

    #: In the order of their names, the reference last.
    groups: tuple[GroupDiscrimination, ...]
    #: Places of the groups compared: the first, which a flip should not help, minus the second.
    pairs: tuple[tuple[int, int], ...]
    #: What makes the groups.
    features: tuple[str, ...]
    #: The known upper end of all rows, None where it is unknown, or "row".
    upper: float | str | None
    #: What is flipped; None with scores that were given.
    attribute: str | None
    #: The largest number of counterfactuals of a row, of which the largest difference counts.
    n_flips: int
    #: Whether no flip changes any score: then there is nothing to measure.
    nothing_changes: bool
    #: Rows of the groups compared.
    n_rows: int
    #: Rows without a group.
    n_missing: int
    #: Rows that were scored, flips included; 0 with scores that were given.
    n_scored: int
    notes: tuple[str, ...]

    @property
    def group_sizes(self) -> dict[Any, int]:
        """Rows of each group."""
        return {group.name: group.n_rows for group in self.groups}


@dataclass(frozen=True, kw_only=True)
class ExtremeArguments:
    """The arguments of `extreme_test` that say what is compared."""

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
        """Check the arguments, read the data, and ask the model where there is one."""
        upper = upper_of(self.upper)
        if self.y_score is not None or self.counterfactual_score is not None:
            return self._of_scores(upper)
        if self.model is None and self.X is None and self.attribute is None:
            raise ArgumentError(
                "model and y_score are None; accepted: model, X and attribute, or y_score and "
                "counterfactual_score",
                argument="model",
                mentions=(
                    "y_score",
                    "counterfactual_score",
                ),
            )
        return self._of_model(upper, progress)

    # -- two columns of scores ---------------------------------------------------------------

    def _of_scores(self, upper: float | str | None) -> ExtremeQuestion:
        for name in ("model", "X", "attribute", "flip", "pos_label"):
            if getattr(self, name) is not None:
                raise ArgumentTypeError(
                    f"{name} does not go with y_score and counterfactual_score; accepted: these "
                    "two, or model, X and attribute",
                    argument=name,
                    mentions=(
                        "y_score",
                        "counterfactual_score",
                    ),
                )
        for name in ("y_score", "counterfactual_score"):
            if getattr(self, name) is None:
                raise ArgumentError(
                    f"{name} is None; accepted: both scores of every row", argument=name
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

    def _of_model(
        self, upper: float | str | None, progress: ProgressCallback | None
    ) -> ExtremeQuestion:
        if self.data is not None:
            raise ArgumentTypeError(
                "data does not go with model; accepted: X= with the features, or y_score= and "
                "counterfactual_score= with data=",
                argument="data",
                mentions=(
                    "y_score",
                    "counterfactual_score",
                ),
            )
        for name in ("model", "X"):
            if getattr(self, name) is None:
                raise ArgumentError(
                    f"{name} is None; accepted: model, X and attribute, or y_score and "
                    "counterfactual_score",
                    argument=name,
                    mentions=(
                        "y_score",
                        "counterfactual_score",
                    ),
                )
        probability = probability_of(self.model, self.pos_label)
        return self.prepared(upper).ask(probability, progress=progress)

    def prepared(self, upper: float | str | None) -> FlippedRows:
        """Read what is asked of a model, whatever the model."""
        arguments.check(missing=self.missing)
        if self.missing is not None and self.sensitive_features is None:
            raise ArgumentTypeError(
                f"missing is {self.missing!r} without sensitive_features; accepted: both, or an "
                "attribute with a level in every row",
                argument="missing",
                mentions=("sensitive_features",),
            )
        form = form_of(self.X)
        flips, cells, group, called, notes = self._flips(form)
        kept = flips.kept
        chosen = ChosenGroups.from_cells(
            cells, group, self._left(cells, group[kept]), self.reference
        )
        return FlippedRows(
            form=form,
            flips=flips,
            chosen=chosen,
            rows=np.flatnonzero((chosen.place >= 0) & kept),
            attribute=called,
            upper=upper,
            notes=(*notes, *flips.notes),
        )

    def _left(self, cells: Cells, group: NDArray[np.int64]) -> Sequence[Any] | None:
        """Return the groups to compare; those whose rows all have no flip only if asked for."""
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
                    f"flip leaves no row of group {group_label(key)!r}; accepted: a "
                    f"flip for rows of "
                    "the groups that are compared, of which there must be two",
                    argument="flip",
                )
        return [group_label(key) for key in left] if self.groups is None else self.groups

    def _flips(
        self, form: FeatureForm
    ) -> tuple[Flips, Cells, NDArray[np.int64], str | None, tuple[str, ...]]:
        """Return flips, and groups: those of sensitive_features, or levels of the attribute."""
        groups = None if self.sensitive_features is None else self._groups(form)
        if self.attribute is None:
            if not callable(self.flip) or groups is None:
                raise ArgumentError(
                    "attribute is None; accepted: the column of X that is flipped, or flip= as a "
                    "function of X, and sensitive_features=",
                    argument="attribute",
                    mentions=(
                        "flip",
                        "sensitive_features",
                    ),
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
            return mapped_flips(self.flip, form, levels), cells, group, None, ()
        attribute = read_attribute(self.attribute, form)
        cells, group = groups or (attribute.cells, attribute.code)
        flips: Flips
        if callable(self.flip):
            flips = mapped_flips(self.flip, form, attribute.levels_of_rows())
        else:
            flips = flips_of(self.flip, form, attribute)
        return flips, cells, group, attribute.name, attribute.notes

    def _groups(self, form: FeatureForm) -> tuple[Cells, NDArray[np.int64]]:
        """Return the groups of the user's own: an array, or the name of a column of X."""
        given = self.sensitive_features
        if isinstance(given, str) and form.names is not None and given in form.names:
            given = {given: form.raw(form.names.index(given))}
        table = AuditTable.make(sensitive_features=given, missing=self.missing)
        check_indices(indices_of({"X": self.X, "sensitive_features": table.index}))
        rows = table.rows(columns=())
        if len(rows.group) != form.n_rows:
            raise DataError(
                f"sensitive_features has {len(rows.group):,} rows; X has {form.n_rows:,}",
                argument="sensitive_features",
            )
        return rows.cells, rows.group.astype(np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class FlippedRows:
    """Rows with their flips and groups: what is asked of a model, or of several."""

    form: FeatureForm
    flips: Flips
    chosen: ChosenGroups
    #: Rows of the groups compared that have a flip.
    rows: RowNumbers
    attribute: str | None
    upper: float | str | None
    notes: tuple[str, ...]

    def ask(
        self,
        probability: Probability,
        rows: RowNumbers | None = None,
        progress: ProgressCallback | None = None,
    ) -> ExtremeQuestion:
        """Return the discrimination by a model, of all rows or of some of them."""
        rows = self.rows if rows is None else rows
        scored = score_rows(probability, self.form, self.flips, rows, progress)
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
    """The groups that are compared, and the place among them of every row, or -1."""

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
    notes: tuple[str, ...],
) -> ExtremeQuestion:
    discrimination = _tied(score, discrimination)
    if isinstance(upper, float) and discrimination.max() > upper:
        at = int(discrimination.argmax())
        raise DataError(
            f"the discrimination in row {rows[at]} is {discrimination[at]:g}, above upper, "
            f"{upper:g}; accepted: an upper end that no row exceeds, or None"
        )
    cells = chosen.cells
    own = chosen.place[rows]
    groups = []
    for place, key in enumerate(chosen.keys):
        mine = np.flatnonzero(own == place)
        groups.append(
            GroupDiscrimination(group_label(key), discrimination[mine], score[mine], rows[mine])
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
        notes=(*notes, *_notes(cells, nothing_changes, attribute)),
    )


#: Scores of models are rounded in their last bits: 64 of them.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


def _tied(score: Floats, discrimination: Floats) -> Floats:
    """Return differences that are equal but for rounding as equal, the one closest to 0.

    .07 - .03 and .05 - .01 differ in their last bits; scores on a grid have ties, and whoever looks
    at a tail must see them.
    """
    largest = max(np.abs(score).max(), np.abs(score + discrimination).max())
    rounding = _ROUNDING * largest
    values = np.sort(discrimination)
    apart = np.diff(values) > rounding
    first, last = values[np.append(True, apart)], values[np.append(apart, True)]
    del values
    # Kinds of several values are few: only their rows change.
    several = first < last
    first, last = first[several], last[several]
    found = np.where(np.abs(discrimination) <= rounding, 0.0, discrimination)
    if len(first):
        kind = np.searchsorted(first, discrimination, side="right") - 1
        rows = np.flatnonzero((kind >= 0) & (discrimination <= last[kind]))
        # The one closest to 0, which is 0 where a kind has values on both sides.
        least = np.where(first > 0, first, np.minimum(last, 0.0))
        least[np.abs(least) <= rounding] = 0.0
        found[rows] = least[kind[rows]]
    return found


def _notes(cells: Cells, nothing_changes: bool, attribute: str | None) -> list[str]:
    notes = []
    if cells.n_missing:
        notes.append(
            f"{cells.n_missing:,} rows have no value of {' and '.join(cells.sensitive_features)} "
            "and belong to no group"
        )
    notes += cells.notes
    if nothing_changes:
        notes.append(
            "the two scores are the same in every row"
            if attribute is None
            else f"the model ignores {attribute}: no flip changes a score. That does not say that "
            "groups are scored alike: what stands in for the attribute was not flipped"
        )
    return notes


def upper_of(value: object) -> float | str | None:
    """Return the known upper end of the discrimination, None where there is none, or "row"."""
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
            f"{int(bad.sum()):,} of {len(column):,} rows; accepted: probabilities, or upper=None "
            "for scores on another scale",
            argument=name,
            mentions=("upper",),
        )
