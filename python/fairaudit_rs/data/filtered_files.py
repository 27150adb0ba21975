"""How files are read that are not read as they stand: formats of text, rows to keep, a cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError
from .combined_columns import with_combined
from .filters import parse_decision, row_filter
from .frames import reading_errors, scan_files
from .text_files import TextFormat

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options for reading a file: formats, row filters and cuts."""

    form: TextFormat
    #: Rows to keep, as `filters.row_filter` reads it.
    where: str | None = None
    #: A column of scores and a threshold, as ``score=0.7``.
    cut: str | None = None
    #: Attributes by name, each made of columns of 0 and 1 that exclude each other.
    combine: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def opened(self, data: str | Path) -> FilteredFile:
        """Return the rows that are asked for."""
        import polars as pl

        frame = with_combined(self._marked(scan_files(data, self.form)), self.combine, data)
        with reading_errors(data):
            schema = frame.collect_schema()
        name = kept = None
        if self.cut is not None:
            name, decided = parse_decision(self.cut, schema)
            frame = frame.with_columns(decided.alias(name))
        if self.where is not None:
            rows = row_filter(self.where, schema)
            with reading_errors(data):
                n_rows, n_kept = (
                    frame.select(pl.len(), rows.sum().alias("kept"))
                    .collect(engine="streaming")
                    .row(0)
                )
            if not n_kept:
                raise DataError(
                    f"where is {self.where!r}, which is true of none of the {n_rows:,} rows of "
                    f"{data}; accepted: what keeps some",
                    argument="where",
                )
            kept = (int(n_kept), int(n_rows))
            frame = frame.filter(rows)
        return FilteredFile(
            frame=frame, decision=name, where=self.where, kept=kept, combine=self.combine
        )

    def _marked(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Return a frame of Parquet with the texts of missing values as missing."""
        import polars as pl

        if not self.form.missing:
            return frame
        texts = pl.selectors.string()
        marked = texts.str.strip_chars().is_in(list(self.form.missing))
        return frame.with_columns(pl.when(~marked).then(texts))


@dataclass(frozen=True, kw_only=True)
class FilteredFile:
    """Rows that were asked for, and what is said about them."""

    frame: pl.LazyFrame
    #: The column of decisions that a cut made.
    decision: str | None
    where: str | None
    #: Rows that are kept, of all.
    kept: tuple[int, int] | None
    combine: Mapping[str, Sequence[str]]

    def told(self) -> tuple[str, ...]:
        """Return which rows are kept, and which attributes are combined, in sentences."""
        told = [
            f"{name} is combined from the columns {', '.join(columns)}"
            for name, columns in self.combine.items()
        ]
        if self.kept is not None:
            kept, of = self.kept
            told.append(f"{kept:,} of {of:,} rows are kept, where {self.where}")
        return tuple(told)
