"""Tables of columns with roles, which become cells or rows.

Arrays, frames and files are read in the same way: a source (see `arrays` and `frames`) counts the
distinct combinations of the columns that a metric needs, and `labels` interprets them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError, DataError, TooManyValuesError
from .arrays import CombinationCounts
from .cell_columns import score_edges_of
from .cells import Cells, cells_from_counts
from .columns import check_numeric
from .frames import check_columns
from .labels import (
    GroupKey,
    Label,
    NamedCombinations,
    is_coded,
    label_matches,
    name_combinations,
    sort_keys,
)
from .mixed_clusters import MixedClusterResolution, resolve_mixed_clusters
from .paired_counts import PairedCounts
from .people import People
from .roles import read_roles
from .rows import AttributeRows, EncodedRows, Rows
from .sources import CachedSource, CellsSource, Source

MAX_GROUP_VALUES = 1_000
MAX_ROW_GROUPS = 65_535
MAX_STRATUM_VALUES = 100_000
MAX_DECISION_VALUES = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditTable:
    """Columns with roles, from which every lens reads its data."""

    source: Source
    sensitive_features: tuple[str, ...]
    strata: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    clusters: tuple[str, ...] = ()
    #: "own": missing values of features and strata get their own label; "keep_texts": texts such as
    #: "nan" are labels of features. None reads these texts as missing.
    missing: str | None = None
    #: How to treat clusters with rows in several groups.
    mixed_clusters: str = "refuse"
    #: The pandas index of the rows; None if rows are known by position only.
    index: Any = None
    #: The edges of the score bins of cells; None if scores are numbers.
    score_edges: NDArray[np.float64] | None = None
    #: A positive value that labels or decisions hold; columns of 0 and 1 need not hold it.
    known_positive: Label = None
    #: For cells: the texts that were read as missing when the cells were made.
    missing_texts: tuple[tuple[str, str, int], ...] = ()
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
        first: Any = None,
        second: Any = None,
        extra: Sequence[str] = (),
        rows_for: str | None = None,
        missing: str | None = None,
        mixed_clusters: str = "refuse",
    ) -> AuditTable:
        """Assign roles to arrays, or to columns of ``data``; ``extra`` are names of more columns.

        ``counts`` is the number of people that each row stands for; ``first`` and ``second`` are
        decisions or scores of two models that are compared. If ``rows_for`` names something that
        needs rows, cells raise an error with this name.
        """
        single = {
            "y_true": y_true,
            "y_pred": y_pred,
            "y_score": y_score,
            "counterfactual_score": counterfactual_score,
            "sample_weight": sample_weight,
            "distance": distance,
            "counts": counts,
            "first": first,
            "second": second,
        }
        several = {"sensitive_features": sensitive_features, "strata": strata, "clusters": clusters}
        checked = arguments.check(missing=missing, mixed_clusters=mixed_clusters)
        if checked.mixed_clusters != "refuse" and clusters is None:
            raise ArgumentTypeError(
                "mixed_clusters needs clusters too. Pass clusters=, or remove mixed_clusters.",
                argument="mixed_clusters",
                mentions=("clusters",),
                code="missing-argument",
            )
        read = read_roles(data, single, several, extra, rows_for)
        return cls(
            source=read.source,
            sensitive_features=read.sensitive_features,
            strata=read.strata,
            roles=read.roles,
            clusters=read.clusters,
            score_edges=read.score_edges,
            # The treatment of missing values was fixed when the cells were made.
            missing=checked.missing if read.source.holds_rows else checked.missing or "keep_texts",
            mixed_clusters=checked.mixed_clusters,
            index=read.index,
            missing_texts=read.source.cells.missing_texts
            if isinstance(read.source, CellsSource)
            else (),
            _keys=read.names,
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
            raise ArgumentError(
                f"{name} is None, and it is needed here. Pass it.",
                argument=name,
                code="missing-argument",
            )
        present = [name for name in ("y_true", "y_pred") if name in used]
        keys = [*self.sensitive_features, *self.strata, *present]
        if isinstance(self.source, CellsSource) and self.source.has_just(
            keys, "y_score" in used, known=self.missing == "own"
        ):
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
        # The labels in cells are 0 and 1 already.
        positive = self._positive_of(present, pos_label) if self.source.holds_rows else None
        cells = cells_from_counts(
            counted,
            names,
            strata,
            "y_true" in used,
            "y_pred" in used,
            edges,
            positive,
            self.missing,
        )
        before = tuple(text for text in self.missing_texts if text[0] in names)
        return replace(cells, missing_texts=before) if before else cells

    def collapse_to_cells(self, pos_label: Label = None) -> AuditTable:
        """Return the table of cells of rows that stand for several people each."""
        for name in ("y_score", "counterfactual_score"):
            if name in self.roles:
                raise ArgumentTypeError(
                    f"{name} cannot be combined with counts: a row of counts has only labels and "
                    "decisions. Pass cells with score bins, made by tabulate.",
                    argument=name,
                    code="conflicting-arguments",
                )
        return AuditTable.make(data=self.cells(pos_label=pos_label), missing=self.missing)

    def count_paired(
        self, *, pos_label: Label = None, n_threads: int | None = None
    ) -> PairedCounts:
        """Count the rows by group, label and the decisions of two models."""
        labels = [name for name in ("y_true", "first", "second") if name in self.roles]
        keys = [*self.sensitive_features, *labels]
        limits = [MAX_GROUP_VALUES] * len(self.sensitive_features)
        try:
            counted = self.source.count(
                keys, [*limits, *[MAX_DECISION_VALUES] * len(labels)], None, None, n_threads
            )
        except TooManyValuesError as error:
            raise self._too_many(keys[error.column], error) from None
        names = tuple(self._keys[key] for key in self.sensitive_features)
        named = name_combinations(counted, len(names), (), labels, pos_label, self.missing)
        cells = cells_from_counts(counted, names, (), False, False, None, None, self.missing)
        groups, group = sort_keys(named.groups, named.group)
        assert groups == cells.groups
        return PairedCounts.from_combinations(cells, named, group, counted.counts)

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

        ``binary`` requires labels of 0 and 1; without it y_true may be any number. ``needed_by``
        names what needs rows, for the error of a table of counts.
        """
        table = self.loaded(needed_by)
        source = table.source.in_memory()
        coded_roles = ("y_true", "y_pred", "first", "second")
        labels = [name for name in coded_roles if name in columns and binary]
        coded = table.combinations(labels, pos_label)
        cells, named, cell = coded.cells, coded.named, coded.combination
        _, group = sort_keys(named.groups, named.group)
        _, stratum = sort_keys(named.strata, named.stratum)
        if len(cells.groups) > MAX_ROW_GROUPS:
            raise DataError(
                f"{len(cells.groups):,} groups; accepted: at most {MAX_ROW_GROUPS:,} for metrics "
                "that need rows",
                argument="sensitive_features",
            )
        values: dict[str, NDArray[Any]] = {
            name: named.coded(name).astype(bool)[cell] for name in labels
        }
        for name in (*columns, *extra):
            if name in values:
                continue
            read = source.compact_numbers if name in coded_roles else source.numbers
            values[name] = read(name, name.removeprefix("extra:"))
        return Rows(
            cells=cells,
            group=group.astype(np.uint16)[cell],
            stratum=stratum.astype(np.uint32)[cell] if self.strata else None,
            columns={name.removeprefix("extra:"): value for name, value in values.items()},
            cluster=source.cluster_codes(self.clusters, [self._keys[key] for key in self.clusters])
            if self.clusters
            else None,
            weight=table.weights(),
        )

    def settled(self, rows: Rows, keys: Sequence[GroupKey]) -> MixedClusterResolution:
        """Resolve clusters with rows in several of these groups, as ``mixed_clusters`` says."""
        source = self.source.in_memory()

        def name_of(row: int) -> str:
            parts = [source.value_at(key, row) for key in self.clusters]
            return " & ".join(map(repr, parts))

        return resolve_mixed_clusters(rows, keys, self.mixed_clusters, name_of)

    def where(self, keep: NDArray[np.bool_]) -> AuditTable:
        """Return a table with only the rows of a mask, for a table in memory."""
        index = None if self.index is None else self.index[keep]
        return replace(self, source=self.source.in_memory().where(keep), index=index)

    def combinations(
        self, labels: Sequence[str], pos_label: Label, n_threads: int | None = 1
    ) -> EncodedRows:
        """Return the combination of group, stratum and the given labels of each row."""
        source = self.source.in_memory()
        keys = [*self.sensitive_features, *self.strata, *labels]
        limits = (
            [MAX_GROUP_VALUES] * len(self.sensitive_features)
            + [MAX_STRATUM_VALUES] * len(self.strata)
            + [MAX_DECISION_VALUES] * len(labels)
        )
        if not keys:
            single = CombinationCounts(
                values=[], codes=np.zeros((1, 0), dtype=np.int64), counts=np.array([self.n_rows])
            )
            named = NamedCombinations.nothing()
            cells = cells_from_counts(single, (), (), False, False, None, None)
            return EncodedRows(cells, named, np.zeros(self.n_rows, dtype=np.uint16))
        try:
            counted, combination = source.encode(keys, limits, n_threads)
        except TooManyValuesError as error:
            raise self._too_many(keys[error.column], error) from None
        strata_names = tuple(self._keys[key] for key in self.strata)
        positive = self._positive_of(labels, pos_label)
        named = name_combinations(
            counted, len(self.sensitive_features), strata_names, labels, positive, self.missing
        )
        cells = cells_from_counts(
            CombinationCounts(
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
            self.missing,
        )
        return EncodedRows(cells, named, combination)

    def numbers(self, role: str) -> NDArray[np.float64]:
        """Return a column of a table in memory as floats; they may be infinite or missing."""
        return self.source.in_memory().floats(role, role)

    def weights(self) -> NDArray[np.float64] | None:
        """Return the weights of the rows of a table in memory."""
        source = self.source.in_memory()
        return source.weights("sample_weight") if "sample_weight" in self.roles else None

    @cached_property
    def people(self) -> People:
        """The people of each group."""
        if "sample_weight" not in self.roles:
            cells = self.cells(columns=())
            return People.from_cells(cells.groups, cells.group, cells.count)
        loaded = self.loaded("sample_weight")
        coded, weights = loaded.combinations((), None), loaded.weights()
        assert weights is not None
        groups, code = sort_keys(coded.named.groups, coded.named.group)
        return People.from_rows(groups, code[coded.combination], weights)

    def loaded(self, needed_by: str = "this") -> AuditTable:
        """Return the table with its columns in memory."""
        return replace(self, source=self.source.in_memory(needed_by))

    def with_cache(self) -> AuditTable:
        """Return the table with a cached source, which is read once for all questions."""
        limits = dict.fromkeys(self.sensitive_features, MAX_GROUP_VALUES)
        limits |= dict.fromkeys(self.strata, MAX_STRATUM_VALUES)
        limits |= {name: MAX_DECISION_VALUES for name in ("y_true", "y_pred") if name in self.roles}
        return replace(self, source=CachedSource(self.source, limits))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the sensitive features."""
        return tuple(self._keys[key] for key in self.sensitive_features)

    @property
    def strata_names(self) -> tuple[str, ...]:
        """The names of the strata columns."""
        return tuple(self._keys[key] for key in self.strata)

    def with_bands(self, bands: Mapping[str, Sequence[float]]) -> AuditTable:
        """Return the table with numeric features cut into bands, by name of the feature.

        Without an exact match of the name, case is ignored: bands of "age" apply to "Age".
        """
        source = self.source
        folded = {name.casefold(): cuts for name, cuts in bands.items()}
        for key in self.sensitive_features:
            name = self._keys[key]
            cuts = bands.get(name, folded.get(name.casefold()))
            if cuts is not None:
                source = source.cut(key, cuts)
        return replace(self, source=source)

    def values(self, role: str) -> list[Any]:
        """Return the distinct values of labels or decisions, without missing values."""
        try:
            counted = self.source.count([role], [MAX_DECISION_VALUES], None, None, None)
        except TooManyValuesError as error:
            raise self._too_many(role, error) from None
        return [value for value in counted.values[0] if value is not None and value == value]

    def with_positive(self, pos_label: Label) -> AuditTable:
        """Return the table with a known positive value, if labels or decisions hold it."""
        names = [name for name in ("y_pred", "y_true") if name in self.roles]
        if not isinstance(pos_label, str) or not self.source.holds_rows:
            return self
        occurs = any(
            label_matches(value, pos_label) for name in names for value in self._labels(name)
        )
        return replace(self, known_positive=pos_label) if occurs else self

    def _positive_of(self, names: Sequence[str], pos_label: Label) -> Label:
        """Return the positive value of some columns; None if they hold 0 and 1 instead of it."""
        if pos_label is None or pos_label != self.known_positive:
            return pos_label
        values = [value for name in names for value in self._labels(name)]
        if not is_coded(values) or any(label_matches(value, pos_label) for value in values):
            return pos_label
        return None

    def _labels(self, name: str) -> list[Any]:
        """Return the distinct values of a column; none if it has too many values for labels."""
        try:
            return self.values(name)
        except DataError:
            return []

    def by(self, *names: str) -> AuditTable:
        """Return the table with only some of the sensitive features."""
        keys = {self._keys[key]: key for key in self.sensitive_features}
        check_columns(names, list(keys), "the sensitive features")
        return replace(self, sensitive_features=tuple(keys[name] for name in names))

    @property
    def n_rows(self) -> int:
        """Number of rows of a table in memory."""
        return len(next(iter(self.source.in_memory().columns.values())))

    def score_levels(self, limit: int, pos_label: Label) -> Cells | None:
        """Collapse the rows to cells by group, stratum, label and distinct score.

        The score bins of the cells are the ranks of the scores. None if there are more than
        ``limit`` distinct scores.
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
            [np.nan if value is None else arguments.as_float(value) for value in counted.values[-1]]
        )
        if not np.all(np.isfinite(scores)):
            # Raises the same error as for rows.
            source.numbers("y_score", "y_score")
        level = np.unique(scores, return_inverse=True)[1].ravel()
        return cells_from_counts(
            CombinationCounts(
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
            self._positive_of(["y_true"], pos_label),
            self.missing,
        )

    def attribute_rows(
        self,
        *,
        columns: Sequence[str],
        extra: Sequence[str],
        pos_label: Label,
        needed_by: str = "this",
    ) -> AttributeRows:
        """Return the rows with the single sensitive feature as a number."""
        if self.missing == "own":
            raise ArgumentError(
                f"missing is {self.missing!r}, and {needed_by} is a correlation with a number. "
                "Pass missing=None.",
                argument="missing",
            )
        source = self.source.in_memory(needed_by)
        names = [self._keys[key] for key in self.sensitive_features]
        if len(names) != 1:
            raise ArgumentError(
                f"sensitive_features names {len(names)} columns ({', '.join(names)}). Pass one "
                "continuous attribute for a correlation.",
                argument="sensitive_features",
            )
        attribute, known = source.numbers_or_missing(
            self.sensitive_features[0], f"sensitive feature {names[0]!r}"
        )
        stratum = None
        strata_names = tuple(self._keys[key] for key in self.strata)
        if self.strata:
            counted, cell = source.encode(self.strata, [MAX_STRATUM_VALUES] * len(self.strata))
            named = name_combinations(counted, 0, strata_names, (), None, self.missing)
            _, code = sort_keys(named.strata, named.stratum)
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
            "y_true": "It must hold the label, 0 or 1",
            "y_pred": "It must hold the decision, 0 or 1; scores belong in y_score",
            "first": "For this metric it must hold decisions, 0 or 1",
            "second": "For this metric it must hold decisions, 0 or 1",
        }.get(key, "Group them into fewer classes first")
        role = key.split(":")[0]
        shown = role if role == key else f"{role} {name!r}"
        return TooManyValuesError(
            f"{shown} has more than {error.limit:,} distinct values.",
            (error.column, error.limit),
            advice=f" {hint}.",
            argument=role,
            mentions=("y_score",),
        )
