"""How files are read that are not read as they stand: formats of text, rows to keep, a cut."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError
from .filters import decision, row_filter
from .frames import reading, scanned
from .text_files import TextFormat

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is asked of the rows of a file."""

    form: TextFormat
    #: Rows to keep, as `filters.row_filter` reads it.
    where: str | None = None
    #: A column of scores and a threshold, as ``score=0.7``.
    cut: str | None = None

    def opened(self, data: str | Path) -> Opened:
        """Return the rows that are asked for."""
        import polars as pl

        frame = self._marked(scanned(data, self.form))
        with reading(data):
            schema = frame.collect_schema()
        name = kept = None
        if self.cut is not None:
            name, decided = decision(self.cut, schema)
            frame = frame.with_columns(decided.alias(name))
        if self.where is not None:
            rows = row_filter(self.where, schema)
            with reading(data):
                n_rows, n_kept = (
                    frame.select(pl.len(), rows.sum().alias("kept"))
                    .collect(engine="streaming")
                    .row(0)
                )
            if not n_kept:
                raise DataError(
                    f"where is {self.where!r}, which is true of none of the {n_rows:,} rows of "
                    f"{data}; accepted: what keeps some"
                )
            kept = (int(n_kept), int(n_rows))
            frame = frame.filter(rows)
        return Opened(frame=frame, decision=name, where=self.where, kept=kept)

    def _marked(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Return a frame of Parquet with the texts of missing values as missing."""
        import polars as pl

        if not self.form.missing:
            return frame
        texts = pl.selectors.string()
        marked = texts.str.strip_chars().is_in(list(self.form.missing))
        return frame.with_columns(pl.when(~marked).then(texts))


@dataclass(frozen=True, kw_only=True)
class Opened:
    """Rows that were asked for, and what is said about them."""

    frame: pl.LazyFrame
    #: The column of decisions that a cut made.
    decision: str | None
    where: str | None
    #: Rows that are kept, of all.
    kept: tuple[int, int] | None

    def told(self) -> str | None:
        """Return which rows are kept, in words."""
        if self.kept is None:
            return None
        kept, of = self.kept
        return f"{kept:,} of {of:,} rows are kept, where {self.where}"
