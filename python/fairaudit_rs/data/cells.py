"""Cells: rows collapsed to counts.

A source (see `arrays` and `frames`) counts the distinct combinations of some columns, and module
`labels` names them; here these combinations are sorted and merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError, DataError
from ..literals import Missing
from ..report.notes import Note
from ..writing import check_target, write_file
from .arrays import CombinationCounts, check_total
from .bands import cut_column
from .cell_columns import label_series, own_scores, row_counts
from .columns import EncodedColumn
from .frames import (
    as_frame,
    check_columns,
    check_pages,
    check_regular,
    factorize,
    names_of,
    reading_errors,
)
from .labels import (
    ABSENT,
    MISSING_TEXTS_NOTE,
    GroupKey,
    Label,
    check_one_kind,
    distinct_rows,
    is_missing_text,
    missing_texts,
    name_combinations,
    sort_keys,
)
from .ranked_labels import is_missing_group, unify_ranks

if TYPE_CHECKING:
    import polars as pl


#: Maximum number of entries of the dense stratum x group x class table (128 MB).
MAX_ENTRIES = 2**24


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows collapsed to counts by group, stratum, label, decision and score bin.

    Cells are all that count metrics need, whatever the number of rows. Cells of parts of the
    data add up: ``a + b``, or ``sum(parts)``. They are always sorted the same way, so equal
    data give equal cells and the same seed gives the same test.

    Make them with `tabulate`, or from the counts of a database query with `Cells.from_frame`.

    Attributes
    ----------
    sensitive_features, strata_names : tuple of str
        Names of the attributes that define groups and strata.
    groups, strata : tuple of tuples
        The labels of each group and stratum; None is a missing value.
    score_edges : ndarray or None
        Edges of the score bins.
    group, stratum, y_true, y_pred, score_bin : ndarray
        One entry per cell; -1 where a column was not given.
    count, score_sum : ndarray
        Rows in each cell, and the sum of their scores in units of 2**-30.
    """

    sensitive_features: tuple[str, ...]
    groups: tuple[GroupKey, ...]
    strata_names: tuple[str, ...]
    strata: tuple[GroupKey, ...]
    score_edges: NDArray[np.float64] | None
    group: NDArray[np.int64]
    stratum: NDArray[np.int64]
    y_true: NDArray[np.int8]
    y_pred: NDArray[np.int8]
    score_bin: NDArray[np.int64]
    count: NDArray[np.int64]
    score_sum: NDArray[np.int64]
    #: Texts that were read as missing: feature, text and rows. Ignored by ``==``.
    missing_texts: tuple[tuple[str, str, int], ...] = ()

    def __len__(self) -> int:
        return len(self.count)

    @property
    def n_rows(self) -> int:
        """Number of rows in all cells, including rows without a group."""
        return int(self.count.sum())

    @property
    def n_missing(self) -> int:
        """Number of rows in which a sensitive feature is missing."""
        missing = np.array([None in group for group in self.groups], dtype=bool)
        return int(self.count[missing[self.group]].sum()) if len(self) else 0

    @property
    def notes(self) -> list[Note]:
        """Notes on texts that were read as missing, one for each sensitive feature."""
        by_feature: dict[str, list[str]] = {}
        for name, text, n in self.missing_texts:
            rows = "1 row" if n == 1 else f"{n:,} rows"
            by_feature.setdefault(name, []).append(f"{text!r} in {rows}")
        return [
            Note(
                "missing-texts",
                MISSING_TEXTS_NOTE.format(name=name, texts=" and ".join(texts)),
                (name,),
            )
            for name, texts in by_feature.items()
        ]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns among y_true, y_pred and y_score that the cells hold."""
        present = [name for name in ("y_true", "y_pred") if self._has(name)]
        return (*present, "y_score") if self.score_edges is not None else tuple(present)

    def _has(self, name: str) -> bool:
        return bool(len(self)) and bool(getattr(self, name)[0] != ABSENT)

    def group_sizes(self) -> dict[GroupKey, int]:
        """Return the number of rows of each group, except groups with a missing value."""
        sizes = np.bincount(self.group, weights=self.count, minlength=len(self.groups))
        return {
            key: int(size) for key, size in zip(self.groups, sizes, strict=True) if None not in key
        }

    def marginalize(self, sensitive_features: str | Sequence[str]) -> Cells:
        """Keep some of the sensitive features and sum over the others."""
        kept = tuple(names_of("sensitive_features", sensitive_features))
        if not kept:
            raise ArgumentError(
                "sensitive_features is empty; accepted: at least one name",
                argument="sensitive_features",
            )
        check_columns(kept, self.sensitive_features, "the cells")
        if kept == self.sensitive_features:
            return self
        positions = [self.sensitive_features.index(name) for name in kept]
        groups = tuple(tuple(key[i] for i in positions) for key in self.groups)
        cells = self._rebuild(kept, groups, self.group, self._rows())
        texts = tuple(text for text in self.missing_texts if text[0] in kept)
        return replace(cells, missing_texts=texts)

    def class_counts(
        self, groups: Sequence[GroupKey], classes: NDArray[np.int64], n_classes: int
    ) -> NDArray[np.uint64]:
        """Return counts by stratum, group (in the given order) and class of each cell."""
        new_index = np.full(len(self.groups), ABSENT, dtype=np.int64)
        index_of_group = {key: i for i, key in enumerate(self.groups)}
        for i, key in enumerate(groups):
            new_index[index_of_group[key]] = i
        group = new_index[self.group]
        keep = group != ABSENT
        n_strata = max(len(self.strata), 1)
        entries = n_strata * len(groups) * n_classes
        if entries > MAX_ENTRIES:
            raise DataError(
                f"{int(self.count.sum()):,} rows in {n_strata:,} strata, {len(groups):,} groups "
                f"and {n_classes:,} classes need a table of {entries:,} counts, "
                f"{entries / 2**27:.3g} GB; accepted: up to {MAX_ENTRIES:,} counts. Use coarser "
                "strata, fewer groups (groups=) or fewer distinct scores.",
                mentions=("groups",),
            )
        flat = (self.stratum[keep] * len(groups) + group[keep]) * n_classes + classes[keep]
        counts = np.zeros(entries, dtype=np.uint64)
        np.add.at(counts, flat, self.count[keep].astype(np.uint64))
        return counts.reshape(n_strata, len(groups), n_classes)

    def confusion_classes(self) -> NDArray[np.int64]:
        """Return 0 for tp, 1 for fp, 2 for fn and 3 for tn; an absent column counts as 0."""
        label = np.maximum(self.y_true, 0).astype(np.int64)
        decision = np.maximum(self.y_pred, 0).astype(np.int64)
        return 2 * (1 - decision) + (1 - label)

    # -- combining ---------------------------------------------------------------------------

    def __add__(self, other: object) -> Cells:
        if not isinstance(other, Cells):
            return NotImplemented
        for name in ("sensitive_features", "strata_names", "columns"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs and len(self) and len(other):
                raise DataError(
                    f"cells with {name} {mine} and {theirs} cannot be added. Tabulate both alike."
                )
        if not _same_edges(self.score_edges, other.score_edges):
            raise DataError(
                "cells with different score bins cannot be added. Tabulate both with the same "
                "score_bins.",
                mentions=("score_bins",),
            )
        rows = tuple(np.concatenate(pair) for pair in zip(self._rows(), other._rows(), strict=True))
        strata = self.strata + other.strata
        rows = (np.concatenate([self.stratum, other.stratum + len(self.strata)]), *rows[1:])
        group = np.concatenate([self.group, other.group + len(self.groups)])
        cells = self._rebuild(
            self.sensitive_features, self.groups + other.groups, group, rows, strata
        )
        texts: Counter[tuple[str, str]] = Counter()
        for name, text, n in (*self.missing_texts, *other.missing_texts):
            texts[name, text] += n
        return replace(cells, missing_texts=tuple(sorted((*key, n) for key, n in texts.items())))

    def __radd__(self, other: object) -> Cells:
        # sum() starts from 0.
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def _rows(self) -> tuple[NDArray[Any], ...]:
        return (self.stratum, self.y_true, self.y_pred, self.score_bin, self.count, self.score_sum)

    def _rebuild(
        self,
        names: tuple[str, ...],
        groups: tuple[GroupKey, ...],
        group: NDArray[np.int64],
        rows: tuple[NDArray[Any], ...],
        strata: tuple[GroupKey, ...] | None = None,
    ) -> Cells:
        strata = self.strata if strata is None else strata
        return _canonical(
            names, groups, group, self.strata_names, strata, *rows, score_edges=self.score_edges
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cells):
            return NotImplemented
        return (
            (self.sensitive_features, self.groups, self.strata_names, self.strata)
            == (other.sensitive_features, other.groups, other.strata_names, other.strata)
            and _same_edges(self.score_edges, other.score_edges)
            and np.array_equal(self.group, other.group)
            and all(np.array_equal(a, b) for a, b in zip(self._rows(), other._rows(), strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    # -- in and out --------------------------------------------------------------------------

    def to_frame(self) -> pl.DataFrame:
        """Return the cells as a polars frame that `from_frame` reads back."""
        import polars as pl

        columns: dict[str, Any] = {}
        for kind, names, keys, codes in (
            ("group", self.sensitive_features, self.groups, self.group),
            ("stratum", self.strata_names, self.strata, self.stratum),
        ):
            for i, name in enumerate(names):
                group_labels = [None if is_missing_group(key[i]) else key[i] for key in keys]
                labels = label_series(f"{kind}:{name}", group_labels)
                columns[f"{kind}:{name}"] = labels.gather(codes.astype(np.uint32))
        for name in ("y_true", "y_pred"):
            if self._has(name):
                columns[name] = getattr(self, name)
        if self.score_edges is not None:
            columns["score_bin"] = self.score_bin
            columns["score_sum"] = self.score_sum
            columns["score_edges"] = pl.Series(
                [self.score_edges.tolist()] * len(self), dtype=pl.List(pl.Float64)
            )
        if self._missing is not None:
            columns["missing"] = [self._missing] * len(self)
        columns["count"] = self.count
        return pl.DataFrame(columns)

    @property
    def _missing(self) -> Missing | None:
        """The ``missing`` option that is needed to read the cells back; None for the default."""
        if any(is_missing_group(label) for key in (*self.groups, *self.strata) for label in key):
            return "own"
        kept = any(is_missing_text(label) for key in self.groups for label in key)
        return "keep_texts" if kept else None

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        sensitive_features: str | Sequence[str] | None = None,
        y_true: str | None = None,
        y_pred: str | None = None,
        strata: str | Sequence[str] | None = None,
        count: str = "count",
        pos_label: Label = None,
        missing: Missing | None = None,
    ) -> Cells:
        """Make cells from a frame of counts: one from `to_frame`, or any group-by.

        Parameters
        ----------
        frame : polars, pandas or Arrow frame
            One row per combination of values.
        sensitive_features, y_true, y_pred, strata, count : str, optional
            Names of the columns. Without ``sensitive_features`` the frame must have the
            columns that `to_frame` makes.
        pos_label, missing : optional
            See `tabulate`.
        """
        missing_option: str | None = arguments.check(missing=missing).missing
        table = as_frame("frame", frame)
        is_exported = sensitive_features is None
        if is_exported:
            group_columns, strata_columns = (
                [name for name in table.columns if name.startswith(f"{kind}:")]
                for kind in ("group", "stratum")
            )
            if not group_columns:
                raise ArgumentError(
                    "sensitive_features is None; accepted: names of columns of the frame, which "
                    f"has: {', '.join(table.columns)}",
                    argument="sensitive_features",
                )
            if "missing" in table.columns and len(table):
                stored = table["missing"][0]
                missing_option = arguments.check(missing=stored).missing
            y_true = "y_true" if "y_true" in table.columns else None
            y_pred = "y_pred" if "y_pred" in table.columns else None
        else:
            group_columns = names_of("sensitive_features", sensitive_features)
            strata_columns = names_of("strata", [] if strata is None else strata)
            if not group_columns:
                raise ArgumentError(
                    "sensitive_features is empty; accepted: at least one name",
                    argument="sensitive_features",
                )
        for role, column in {"y_true": y_true, "y_pred": y_pred, "count": count}.items():
            if not isinstance(column, str) and (column is not None or role == "count"):
                raise ArgumentTypeError(
                    f"{role} is {column!r}; accepted: the name of a column", argument=role
                )
        labels = [column for column in (y_true, y_pred) if column is not None]
        keys = [*group_columns, *strata_columns, *labels]
        check_columns([*keys, count], table.columns)
        edges = score_bins = score_sums = None
        if is_exported and "score_edges" in table.columns and len(table):
            check_columns(["score_bin", "score_sum"], table.columns)
            edges, score_bins, score_sums = own_scores(table)
        values, codes = factorize(table, keys)
        return cells_from_counts(
            CombinationCounts(
                values=values,
                codes=codes,
                counts=row_counts(table, count),
                score_sums=score_sums,
                score_bins=score_bins,
            ),
            # The columns of other frames keep their names, whatever these begin with.
            tuple(name.removeprefix("group:") if is_exported else name for name in group_columns),
            tuple(
                name.removeprefix("stratum:") if is_exported else name for name in strata_columns
            ),
            y_true is not None,
            y_pred is not None,
            edges,
            pos_label,
            missing_option,
        )

    def write_parquet(self, path: str | Path) -> None:
        """Write the cells to a Parquet file; the file appears complete or not at all."""
        check_target("path", path)
        write_file("path", path, self.to_frame().write_parquet)

    @classmethod
    def read_parquet(cls, path: str | Path) -> Cells:
        """Read cells that `write_parquet` wrote."""
        import polars as pl

        check_regular("path", path)
        with reading_errors(path):
            check_pages(path)
            frame = pl.read_parquet(path, glob=False)
        if not any(name.startswith("group:") for name in frame.columns):
            raise DataError(
                f"{path} does not hold cells; its columns are {', '.join(frame.columns)}. "
                "Use tabulate for rows, or Cells.from_frame for other counts.",
                argument="path",
            )
        return cls.from_frame(frame)

    def __repr__(self) -> str:
        features = ", ".join(self.sensitive_features)
        strata = f", strata by {', '.join(self.strata_names)}" if self.strata_names else ""
        return (
            f"Cells: {self.n_rows:,} rows in {len(self):,} cells, {len(self.groups)} groups "
            f"by {features}{strata}, with {', '.join(self.columns) or 'no labels'}"
        )

    def _repr_html_(self) -> str:
        return self.to_frame()._repr_html_()


def cut_cells(cells: Cells, name: str, cuts: Sequence[float]) -> Cells:
    """Return cells with a sensitive feature cut into bands, if the feature is numeric."""
    position = cells.sensitive_features.index(name)
    labels = [key[position] for key in cells.groups]
    known = [label for label in labels if label is not None and not is_missing_group(label)]
    if not all(isinstance(label, int | float) and not isinstance(label, bool) for label in known):
        return cells
    column = np.array(
        [
            arguments.as_float(label) if isinstance(label, int | float) else np.nan
            for label in labels
        ]
    )
    bands = cut_column(column, cuts)
    if not isinstance(bands, EncodedColumn):
        return cells
    names = dict(enumerate(bands.labels))
    groups = tuple(
        (*key[:position], names.get(code, key[position]), *key[position + 1 :])
        for key, code in zip(cells.groups, bands.codes.tolist(), strict=True)
    )
    return cells._rebuild(cells.sensitive_features, groups, cells.group, cells._rows())


def _same_edges(a: NDArray[np.float64] | None, b: NDArray[np.float64] | None) -> bool:
    return (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))


def _canonical(
    names: tuple[str, ...],
    groups: Sequence[GroupKey],
    group: NDArray[np.int64],
    strata_names: tuple[str, ...],
    strata: Sequence[GroupKey],
    stratum: NDArray[np.int64],
    y_true: NDArray[Any],
    y_pred: NDArray[Any],
    score_bin: NDArray[np.int64],
    count: NDArray[np.int64],
    score_sum: NDArray[np.int64],
    *,
    score_edges: NDArray[np.float64] | None,
) -> Cells:
    """Sort groups, strata and cells; merge equal cells; drop empty ones."""
    for role, columns, keys in (
        ("sensitive feature", names, groups),
        ("strata column", strata_names, strata),
    ):
        for i, name in enumerate(columns):
            check_one_kind(f"{role} {name!r}", [key[i] for key in keys])
            if any(key[i] is None for key in keys) and any(is_missing_group(k[i]) for k in keys):
                raise DataError(
                    f"{role} {name!r} has missing values that are a group in some cells and not in "
                    "others. Make all cells with missing='own', or all without it.",
                    argument="missing",
                )
    for i in range(len(names)):
        groups = unify_ranks(groups, i)
    for i in range(len(strata_names)):
        strata = unify_ranks(strata, i)
    check_total(float(count.sum(dtype=np.float64)), score_edges is not None)
    keep = count > 0
    groups, group = sort_keys(groups, group[keep])
    strata, stratum = sort_keys(strata, stratum[keep])
    rows = np.stack([group, stratum, y_true[keep], y_pred[keep], score_bin[keep]], axis=1)
    distinct, inverse = distinct_rows(rows.astype(np.int64))
    totals = np.zeros(len(distinct), dtype=np.int64)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(totals, inverse, count[keep])
    np.add.at(sums, inverse, score_sum[keep])
    return Cells(
        names,
        groups,
        strata_names,
        strata,
        score_edges,
        group=distinct[:, 0],
        stratum=distinct[:, 1],
        y_true=distinct[:, 2].astype(np.int8),
        y_pred=distinct[:, 3].astype(np.int8),
        score_bin=distinct[:, 4],
        count=totals,
        score_sum=sums,
    )


def cells_from_counts(
    counted: CombinationCounts,
    names: tuple[str, ...],
    strata_names: tuple[str, ...],
    has_label: bool,
    has_decision: bool,
    edges: NDArray[np.float64] | None,
    pos_label: Label,
    missing: str | None = None,
) -> Cells:
    """Make cells from counted combinations of (features, strata, label, decision)."""
    label_columns = [name for name, has in (("y_true", has_label), ("y_pred", has_decision)) if has]
    named = name_combinations(counted, len(names), strata_names, label_columns, pos_label, missing)
    texts = missing_texts(counted, names, missing)
    zeros = np.zeros(len(counted.counts), dtype=np.int64)
    absent = np.full(len(counted.counts), ABSENT, dtype=np.int64)
    cells = _canonical(
        names,
        named.groups,
        named.group,
        strata_names,
        named.strata,
        named.stratum,
        named.y_true,
        named.y_pred,
        absent if counted.score_bins is None else counted.score_bins.astype(np.int64),
        counted.counts,
        zeros if counted.score_sums is None else counted.score_sums,
        score_edges=edges,
    )
    return replace(cells, missing_texts=texts) if texts else cells
