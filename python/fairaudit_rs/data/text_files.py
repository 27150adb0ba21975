"""Read text files that are not plain CSV: other separators or encodings, compressed, with blanks.

These include files without a header line, with lines above it, or with a repeated name. They are
rewritten in memory as plain CSV, so that rows of another length are errors and types are inferred
as for any other file.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..errors import ArgumentError, DataError

if TYPE_CHECKING:
    import polars as pl

#: Endings of text files, without ``.gz``, and their separators.
SEPARATORS = {".csv": ",", ".tsv": "\t"}
#: Common separators besides the comma.
_USUAL = ";\t|"
_GZ = ".gz"


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """The format of text files; None or empty means as in a plain CSV file."""

    delimiter: str | None = None
    encoding: str | None = None
    #: Texts that mean a missing value.
    missing: tuple[str, ...] = ()
    #: Number of lines above the header line, or above the first row.
    skip_lines: int = 0
    #: Column names for a file without a header line.
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        repeated = [name for name in self.columns if self.columns.count(name) > 1 or not name]
        if repeated:
            raise ArgumentError(
                f"columns names {repeated[0]!r}, which is "
                f"{'used twice' if repeated[0] else 'empty'}; accepted: a different name for each "
                "column, such as a,b,c",
                argument="columns",
            )
        delimiter = self.delimiter
        if delimiter is not None and (
            len(delimiter) != 1 or delimiter in '\r\n"' or not delimiter.isascii()
        ):
            raise ArgumentError(
                f"delimiter is {delimiter!r}; accepted: one character, such as ';' or '|', or tab",
                argument="delimiter",
            )
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, ValueError):
                raise ArgumentError(
                    f"encoding is {self.encoding!r}; accepted: utf-8, latin-1, cp1252, utf-16 and "
                    "other encodings that Python knows",
                    argument="encoding",
                ) from None

    def is_text(self, file: str | Path) -> bool:
        """Return whether a file is text, by its ending or since text options are given."""
        named = self.delimiter is not None or self.encoding is not None or bool(self.columns)
        return file_ending(file) in SEPARATORS or (
            named and file_ending(file) not in (".parquet", ".pq")
        )

    def is_plain(self, file: str) -> bool:
        """Return whether a file is plain CSV, which polars can read directly."""
        if self != TextFormat() or is_compressed(file) or file_ending(file) != ".csv":
            return False
        header = self.header(file, errors="replace")
        return not _has_blanks(header) and len(set(header)) == len(header)

    def separator(self, file: str | Path) -> str:
        """Return the separator of the columns of a file."""
        return self.delimiter or SEPARATORS.get(file_ending(file), ",")

    def header(self, file: str, errors: str = "strict") -> list[str]:
        """Return the first row below the skipped lines, unchanged."""
        with self._text(file, errors) as text:
            return next(csv.reader(text, delimiter=self.separator(file)), [])

    def first_rows(self, file: str, n: int) -> list[list[str]]:
        """Return the first rows below the skipped lines, unchanged."""
        with self._text(file) as text:
            return list(islice(csv.reader(text, delimiter=self.separator(file)), n))

    def names(self, file: str) -> list[str]:
        """Return the names of the columns, without surrounding blanks.

        A name that occurs twice gets the number of its column: ``score (column 8)``.
        """
        if self.columns:
            return list(self.columns)
        names = [name.strip() for name in self.header(file)]
        return [
            numbered_name(name, place) if names.count(name) > 1 else name
            for place, name in enumerate(names, 1)
        ]

    def frame(self, file: str) -> pl.LazyFrame:
        """Rewrite the file as plain CSV in memory, and scan it with polars.

        Column names lose surrounding blanks.
        """
        import polars as pl

        plain = io.StringIO(newline="")
        with self._text(file) as text:
            blanks = _has_blanks(self.header(file))
            rows = csv.reader(text, delimiter=self.separator(file), skipinitialspace=blanks)
            names = self.names(file)
            if not self.columns:
                next(rows, None)
            if not names:
                raise DataError(f"data from {file} cannot be read: it is empty", argument="data")
            write = csv.writer(plain, lineterminator="\n").writerow
            write(names)
            for row in rows:
                if len(row) != len(names):
                    if not row:
                        continue
                    line = self.skip_lines + rows.line_num
                    first = f"line {self.skip_lines + 1:,}" if self.skip_lines else "the first line"
                    raise DataError(
                        f"data from {file} cannot be read: line {line:,} has {len(row):,} values, "
                        f"and {'--columns names' if self.columns else first} {len(names):,}"
                        f"{self._hint_of_lines(line)}",
                        argument="data",
                    )
                values = self._values(row, blanks)
                if values == [""]:
                    # The CSV writer would quote an empty text in a single column.
                    plain.write("\n")
                else:
                    write(values)
        content = io.BytesIO(plain.getvalue().encode())
        return pl.scan_csv(content, infer_schema_length=10_000)

    def _hint_of_lines(self, line: int) -> str:
        """Return a hint for a line near the start that has another length."""
        if self.columns or line > self.skip_lines + 2:
            return ""
        return (
            f". Skip lines above the table with --skip-lines {self.skip_lines + 1} (from Python: "
            "read it into a frame)"
        )

    def _values(self, row: Sequence[str], blanks: bool) -> Sequence[str]:
        if blanks:
            row = [value.strip() for value in row]
        if self.missing:
            row = ["" if value.strip() in self.missing else value for value in row]
        return row

    @contextmanager
    def _text(self, file: str, errors: str = "strict") -> Iterator[TextIO]:
        """Open a file as text; errors become a DataError that names the file."""
        encoding = self.encoding or "utf-8"
        # A byte order mark must not become part of the first name.
        encoding = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        try:
            with (
                (gzip.open if is_compressed(file) else open)(file, "rb") as content,
                io.TextIOWrapper(content, encoding, errors=errors, newline="") as text,
            ):
                for _ in range(self.skip_lines):
                    text.readline()
                yield text
        except UnicodeError as error:
            raise DataError(
                f"data from {file} cannot be read as {self.encoding or 'utf-8'}: {error.args[-1]}. "
                f"{OTHER_ENCODING}",
                argument="data",
            ) from None
        except (OSError, EOFError, zlib.error, csv.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"data from {file} cannot be read: {reason}", argument="data") from None


OTHER_ENCODING = (
    "Pass its encoding, such as --encoding latin-1 (from Python: read it into a frame)."
)


def is_compressed(file: str | Path) -> bool:
    """Return whether a file is compressed by gzip."""
    return Path(file).suffix.lower() == _GZ


def file_ending(file: str | Path) -> str:
    """Return the ending of a file, without that of its compression."""
    place = Path(file)
    return Path(place.stem if is_compressed(place) else place.name).suffix.lower()


def numbered_name(name: str, place: int) -> str:
    """Return the name of a column whose name is repeated: with the number of the column, from 1."""
    return f"{name} (column {place})"


def repeats_of(name: str, names: Sequence[str]) -> list[str]:
    """Return the numbered names of the columns that share a name."""
    return [
        heading for place, heading in enumerate(names, 1) if heading == numbered_name(name, place)
    ]


def hint_of(names: Sequence[str]) -> str:
    """Return a hint for a file that seems to have a single column."""
    separator = separator_in(names)
    if separator is None:
        return ""
    return (
        f". Columns may be separated by {separator!r}: --delimiter "
        f"{'tab' if separator == chr(9) else repr(separator)} (from Python: read it into a frame)"
    )


def separator_in(names: Sequence[str]) -> str | None:
    """Guess the separator of a file that was read as a single column."""
    return next(
        (separator for separator in _USUAL if len(names) == 1 and separator in names[0]), None
    )


def _has_blanks(names: Sequence[str]) -> bool:
    return any(name != name.strip() for name in names)
