"""Tables: columns with roles, from arrays, frames and files to cells or rows.

All go one way: a source (see `arrays` and `frames`) counts the distinct combinations of the columns
that a metric needs, and `labels` says what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ArgumentError, ArgumentTypeError, DataError, TooManyValuesError
from .arrays import ArraySource, Counts
from .cells import Cells, cells_of, score_edges_of
from .columns import Column, check_numeric, column_array, is_pandas
from .frames import check_columns, frame_source, names_of
from .given import add_columns, check_lengths, named_columns
from .labels import Label, Named, name_combinations, relabel
from .rows import AttributeRows, CodedRows, Rows
from .sources import CellsSource, SharedSource, Source

MAX_GROUP_VALUES = 1_000
MAX_ROW_GROUPS = 65_535
MAX_STRATUM_VALUES = 100_000
MAX_DECISION_VALUES = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditTable:
    """Columns with roles: what every lens reads its data from."""

    source: Source
    sensitive_features: tuple[str, ...]
    strata: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    clusters: tuple[str, ...] = ()
    #: The bins that scores come in; None where they are numbers.
    score_edges: NDArray[np.float64] | None = None
    _keys: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def make(
        cls,
        *,
        data: Any = None,
        y_true: Any = None,
        y_pred: Any = None,
        y_score: Any = None,
        counterfactual_score: Any = None,
        sensitive_features: Any = None,
        strata: Any = None,
        clusters: Any = None,
        sample_weight: Any = None,
        distance: Any = None,
        counts: Any = None,
        extra: Sequence[str] = (),
        rows_for: str | None = None,
    ) -> AuditTable:
        """Assign roles to arrays, or to columns of ``data``; ``extra`` columns go by name.

        ``counts`` says how many persons each row stands for, for those who count rows only.
        ``rows_for`` is who needs rows, for the refusal of cells, which hold counts alone.
        """
        if sensitive_features is None and not isinstance(data, Cells):
            raise ArgumentTypeError(
                "sensitive_features is missing; accepted: an array of group labels, several of "
                "them in a dict or frame, or with data= the name(s) of its column(s)"
            )
        if data is None and extra:
            raise ArgumentTypeError(
                f"column {extra[0]!r} is named by the metric; names of columns go with data="
            )
        roles = {
            "y_true": y_true,
            "y_pred": y_pred,
            "y_score": y_score,
            "counterfactual_score": counterfactual_score,
            "sample_weight": sample_weight,
            "distance": distance,
            "counts": counts,
        }
        keys = {"sensitive_features": sensitive_features, "strata": strata, "clusters": clusters}
        if data is None:
            return cls._from_arrays(roles, keys)
        if isinstance(data, Cells):
            if rows_for is not None:
                CellsSource(data).in_memory(rows_for)
            return cls._from_cells(data, roles, keys, extra)
        return cls._from_data(data, roles, keys, extra)

    @classmethod
    def _from_cells(
        cls,
        cells: Cells,
        given: Mapping[str, Any],
        several: Mapping[str, Any],
        extra: Sequence[str],
    ) -> AuditTable:
        """Take cells, which hold columns and strata of their own."""
        source = CellsSource(cells)
        of_rows = ("sample_weight", "clusters", "counterfactual_score", "distance", "counts")
        rows_only = {**given, **several, **dict.fromkeys(extra, True)}
        for name in (*of_rows, *extra):
            if rows_only[name] is not None:
                source.in_memory(name)
        for name in ("y_true", "y_pred", "y_score", "strata"):
            if rows_only[name] is not None:
                raise ArgumentTypeError(
                    f"{name} does not go with data=cells, which hold their own columns"
                )
        features = several["sensitive_features"]
        source = CellsSource(cells if features is None else cells.marginalize(features))
        features = source.cells.sensitive_features
        keys = {f"sensitive_features:{name}": name for name in features}
        keys |= {f"strata:{name}": name for name in cells.strata_names}
        return cls(
            source=source,
            sensitive_features=tuple(f"sensitive_features:{name}" for name in features),
            strata=tuple(f"strata:{name}" for name in cells.strata_names),
            roles=frozenset(cells.columns),
            score_edges=cells.score_edges,
            _keys=keys,
        )

    @classmethod
    def _from_arrays(cls, given: Mapping[str, Any], several: Mapping[str, Any]) -> AuditTable:
        columns: dict[str, Column] = {}
        keys: dict[str, str] = {}
        for name, value in given.items():
            if isinstance(value, str):
                raise ArgumentTypeError(
                    f"{name} is the text {value!r}; names of columns go with data="
                )
            if value is not None:
                columns[name] = column_array(name, value)
        features, strata, clusters = (
            () if value is None else add_columns(columns, keys, role, value)
            for role, value in several.items()
        )
        check_lengths({name.split(":")[-1]: len(column) for name, column in columns.items()})
        roles = frozenset(set(columns) & set(given))
        source = ArraySource(columns)
        return cls(
            source=source.repeated("counts") if "counts" in roles else source,
            sensitive_features=features,
            strata=strata,
            roles=roles,
            clusters=clusters,
            _keys=keys,
        )

    @classmethod
    def _from_data(
        cls,
        data: Any,
        given: Mapping[str, Any],
        several: Mapping[str, Any],
        extra: Sequence[str],
    ) -> AuditTable:
        named = {
            role: names_of(role, [] if value is None else value) for role, value in several.items()
        }
        no_groups = isinstance(several["sensitive_features"], tuple)
        if not named["sensitive_features"] and not no_groups:
            raise ArgumentError("sensitive_features is empty; accepted: at least one name")
        for name, value in given.items():
            if value is not None and not isinstance(value, str):
                raise ArgumentTypeError(
                    f"{name} is a {type(value).__name__}; with data= it is the name of a column"
                )
        roles = {name: value for name, value in given.items() if value is not None}
        keys = {f"{role}:{name}": name for role, names in named.items() for name in names}
        wanted = roles | keys | {f"extra:{name}": name for name in extra}
        source: Source
        if is_pandas(data) or isinstance(data, Mapping):
            columns = ArraySource(named_columns(data, wanted))
            source = columns.repeated("counts") if "counts" in roles else columns
        else:
            frame = frame_source(data, wanted)
            source = replace(frame, repeats="counts") if "counts" in roles else frame
        features, strata, clusters = (
            tuple(f"{role}:{name}" for name in names) for role, names in named.items()
        )
        return cls(
            source=source,
            sensitive_features=features,
            strata=strata,
            roles=frozenset(roles),
            clusters=clusters,
            _keys=keys,
        )

    def cells(
        self,
        *,
        columns: Sequence[str] | None = None,
        score_bins: int | ArrayLike | None = None,
        pos_label: Label = None,
        n_threads: int | None = None,
    ) -> Cells:
        """Collapse the rows to cells over the given ones of y_true, y_pred and y_score."""
        used = self.roles if columns is None else set(columns)
        for name in used - self.roles:
            raise ArgumentError(f"{name} is None; it is needed here")
        present = [name for name in ("y_true", "y_pred") if name in used]
        keys = [*self.sensitive_features, *self.strata, *present]
        if isinstance(self.source, CellsSource) and self.source.has_just(keys, "y_score" in used):
            return self.source.cells
        limits = (
            [MAX_GROUP_VALUES] * len(self.sensitive_features)
            + [MAX_STRATUM_VALUES] * len(self.strata)
            + [MAX_DECISION_VALUES] * len(present)
        )
        edges = None
        if "y_score" in used:
            own = self.score_edges
            edges = score_edges_of(score_bins) if own is None else own
        try:
            counted = self.source.count(
                keys, limits, "y_score" if edges is not None else None, edges, n_threads
            )
        except TooManyValuesError as error:
            raise self._too_many(keys[error.column], error) from None
        names = tuple(self._keys[key] for key in self.sensitive_features)
        strata = tuple(self._keys[key] for key in self.strata)
        # Labels of cells are 0 and 1 already.
        positive = pos_label if self.source.holds_rows else None
        return cells_of(counted, names, strata, "y_true" in used, "y_pred" in used, edges, positive)

    def rows(
        self,
        *,
        columns: Sequence[str],
        extra: Sequence[str] = (),
        binary: bool = True,
        pos_label: Label = None,
        needed_by: str = "this",
    ) -> Rows:
        """Return the rows as arrays: groups and strata as codes, the columns as floats.

        ``binary`` checks that labels are 0 and 1; without it y_true may be any number.
        ``needed_by`` is who needs rows, for the refusal of a table that holds counts alone.
        """
        source = self.source.in_memory(needed_by)
        labels = [name for name in ("y_true", "y_pred") if name in columns and binary]
        coded = self.combinations(labels, pos_label)
        cells, named, cell = coded.cells, coded.named, coded.combination
        _, group = relabel(named.groups, named.group)
        _, stratum = relabel(named.strata, named.stratum)
        if len(cells.groups) > MAX_ROW_GROUPS:
            raise DataError(
                f"{len(cells.groups):,} groups; accepted: at most {MAX_ROW_GROUPS:,} for metrics "
                "of rows"
            )
        values: dict[str, NDArray[Any]] = {
            name: getattr(named, name).astype(bool)[cell] for name in labels
        }
        for name in (*columns, *extra):
            if name not in values:
                values[name] = source.numbers(name, name.removeprefix("extra:"))
        return Rows(
            cells=cells,
            group=group.astype(np.uint16)[cell],
            stratum=stratum.astype(np.uint32)[cell] if self.strata else None,
            columns={name.removeprefix("extra:"): value for name, value in values.items()},
            cluster=source.units(self.clusters, [self._keys[key] for key in self.clusters])
            if self.clusters
            else None,
            weight=self.weights(),
        )

    def combinations(
        self, labels: Sequence[str], pos_label: Label, n_threads: int | None = 1
    ) -> CodedRows:
        """Name the combination of groups, strata and the given labels that every row has."""
        source = self.source.in_memory()
        keys = [*self.sensitive_features, *self.strata, *labels]
        limits = (
            [MAX_GROUP_VALUES] * len(self.sensitive_features)
            + [MAX_STRATUM_VALUES] * len(self.strata)
            + [MAX_DECISION_VALUES] * len(labels)
        )
        if not keys:
            everything = Counts(
                values=[], codes=np.zeros((1, 0), dtype=np.int64), counts=np.array([self.n_rows])
            )
            named = Named.nothing()
            cells = cells_of(everything, (), (), False, False, None, None)
            return CodedRows(cells, named, np.zeros(self.n_rows, dtype=np.uint16))
        try:
            counted, combination = source.encode(keys, limits, n_threads)
        except TooManyValuesError as error:
            raise self._too_many(keys[error.column], error) from None
        strata_names = tuple(self._keys[key] for key in self.strata)
        named = name_combinations(
            counted, len(self.sensitive_features), strata_names, labels, pos_label
        )
        cells = cells_of(
            Counts(
                values=counted.values[: len(keys) - len(labels)],
                codes=counted.codes,
                counts=counted.counts,
            ),
            tuple(self._keys[key] for key in self.sensitive_features),
            strata_names,
            False,
            False,
            None,
            None,
        )
        return CodedRows(cells, named, combination)

    def numbers(self, role: str) -> NDArray[np.float64]:
        """Return a column of a table in memory as floats; they may be infinite or missing."""
        return self.source.in_memory().floats(role, role)

    def weights(self) -> NDArray[np.float64] | None:
        """Return the weights of the rows of a table in memory."""
        source = self.source.in_memory()
        return source.weights("sample_weight") if "sample_weight" in self.roles else None

    def loaded(self, needed_by: str = "this") -> AuditTable:
        """Return the table with its columns in memory."""
        return replace(self, source=self.source.in_memory(needed_by))

    def shared(self) -> AuditTable:
        """Return the table with a source that is read once for all that is asked of it."""
        limits = dict.fromkeys(self.sensitive_features, MAX_GROUP_VALUES)
        limits |= dict.fromkeys(self.strata, MAX_STRATUM_VALUES)
        limits |= {name: MAX_DECISION_VALUES for name in ("y_true", "y_pred") if name in self.roles}
        return replace(self, source=SharedSource(self.source, limits))

    def by(self, *names: str) -> AuditTable:
        """Return the table with some of the sensitive features only."""
        keys = {self._keys[key]: key for key in self.sensitive_features}
        check_columns(names, list(keys), "the sensitive features")
        return replace(self, sensitive_features=tuple(keys[name] for name in names))

    @property
    def n_rows(self) -> int:
        """Number of rows of a table in memory."""
        return len(next(iter(self.source.in_memory().columns.values())))

    def score_levels(self, limit: int, pos_label: Label) -> Cells | None:
        """Collapse the rows to cells by group, stratum, label and distinct score.

        The bins of the cells are the places of the scores in ascending order. None when there
        are more than ``limit`` scores.
        """
        source = self.source.in_memory()
        check_numeric("y_score", source.columns["y_score"])
        keys = [*self.sensitive_features, *self.strata, "y_true", "y_score"]
        limits = [
            *[MAX_GROUP_VALUES] * len(self.sensitive_features),
            *[MAX_STRATUM_VALUES] * len(self.strata),
            MAX_DECISION_VALUES,
            limit,
        ]
        try:
            counted = source.count(keys, limits, None, None, None)
        except TooManyValuesError as error:
            if error.column == len(keys) - 1:
                return None
            raise self._too_many(keys[error.column], error) from None
        scores = np.array(
            [np.nan if value is None else float(value) for value in counted.values[-1]]
        )
        if not np.all(np.isfinite(scores)):
            # The same message as for rows.
            source.numbers("y_score", "y_score")
        level = np.unique(scores, return_inverse=True)[1].ravel()
        return cells_of(
            Counts(
                values=counted.values[:-1],
                codes=counted.codes[:, :-1],
                counts=counted.counts,
                score_sums=None,
                score_bins=level[counted.codes[:, -1]],
            ),
            tuple(self._keys[key] for key in self.sensitive_features),
            tuple(self._keys[key] for key in self.strata),
            True,
            False,
            None,
            pos_label,
        )

    def attribute_rows(
        self,
        *,
        columns: Sequence[str],
        extra: Sequence[str],
        pos_label: Label,
        needed_by: str = "this",
    ) -> AttributeRows:
        """Return the rows with the one sensitive feature as a number."""
        source = self.source.in_memory(needed_by)
        names = [self._keys[key] for key in self.sensitive_features]
        if len(names) != 1:
            raise ArgumentError(
                f"sensitive_features names {len(names)} columns ({', '.join(names)}); a "
                "correlation needs one continuous attribute"
            )
        attribute, known = source.numbers_or_missing(
            self.sensitive_features[0], f"sensitive feature {names[0]!r}"
        )
        stratum = None
        strata_names = tuple(self._keys[key] for key in self.strata)
        if self.strata:
            counted, cell = source.encode(self.strata, [MAX_STRATUM_VALUES] * len(self.strata))
            named = name_combinations(counted, 0, strata_names, (), None)
            _, code = relabel(named.strata, named.stratum)
            stratum = code.astype(np.uint32)[cell]
        values = {}
        for name in (*columns, *extra):
            if name != "y_score" and name in columns and pos_label is not None:
                counted, cell = source.encode([name], [MAX_DECISION_VALUES])
                named = name_combinations(counted, 0, (), [name], pos_label)
                values[name] = getattr(named, name).astype(np.float64)[cell]
            else:
                values[name] = source.numbers(name, name.removeprefix("extra:"))
        everything = bool(known.all())

        def kept(array: NDArray[Any]) -> NDArray[Any]:
            return array if everything else array[known]

        return AttributeRows(
            attribute=kept(attribute),
            stratum=None if stratum is None else kept(stratum),
            columns={name.removeprefix("extra:"): kept(value) for name, value in values.items()},
            name=names[0],
            strata_names=strata_names,
            n_missing=int((~known).sum()),
        )

    def _too_many(self, key: str, error: TooManyValuesError) -> DataError:
        name = self._keys.get(key, key)
        hint = {
            "y_true": "it must hold the label, 0 or 1",
            "y_pred": "it must hold the decision, 0 or 1; scores belong in y_score",
        }.get(key, "put its values into fewer classes first")
        role = key.split(":")[0]
        shown = role if role == key else f"{role} {name!r}"
        return TooManyValuesError(
            f"{shown} has more than {error.limit:,} distinct values; {hint}",
            (error.column, error.limit),
        )
