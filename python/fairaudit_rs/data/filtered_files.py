"""Read files with options: text formats, row filters, score cuts and combined attributes."""

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
    """Options for reading files: formats, row filters, score cuts and combined attributes."""

    form: TextFormat
    #: The filter of rows to keep; see `filters.row_filter`.
    where: str | None = None
    #: A column of scores and a threshold, such as ``score=0.7``.
    cut: str | None = None
    #: Attributes by name, each combined from mutually exclusive columns of 0 and 1.
    combine: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def opened(self, data: str | Path) -> FilteredFile:
        """Open files with these options."""
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
                    f"where {self.where!r} matches none of the {n_rows:,} rows of {data}. Check "
                    "the values in this condition.",
                    argument="where",
                )
            kept = (int(n_kept), int(n_rows))
            frame = frame.filter(rows)
        return FilteredFile(
            frame=frame, decision=name, where=self.where, kept=kept, combine=self.combine
        )

    def _marked(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Return a frame in which the texts for missing values are missing."""
        import polars as pl

        if not self.form.missing:
            return frame
        texts = pl.selectors.string()
        marked = texts.str.strip_chars().is_in(list(self.form.missing))
        return frame.with_columns(pl.when(~marked).then(texts))


@dataclass(frozen=True, kw_only=True)
class FilteredFile:
    """The rows of files after filters and cuts, with a description of both."""

    frame: pl.LazyFrame
    #: The decision column that a cut has added.
    decision: str | None
    where: str | None
    #: The number of rows that are kept, and of all rows.
    kept: tuple[int, int] | None
    combine: Mapping[str, Sequence[str]]

    def told(self) -> tuple[str, ...]:
        """Return sentences on the rows that are kept and the attributes that are combined."""
        sentences = [
            f"{name} is combined from the columns {', '.join(columns)}"
            for name, columns in self.combine.items()
        ]
        if self.kept is not None:
            kept, of = self.kept
            sentences.append(f"{kept:,} of {of:,} rows are kept, where {self.where}")
        return tuple(sentences)
