"""The first line of a text file: names of columns, or values already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .frames import _are_text, _files, check_regular
from .text_files import TextFormat

#: So many rows are compared with the first one.
_MOST_ROWS = 2_000
#: The share of the values below that must be numbers where a column holds numbers.
_MOSTLY = 0.9


def first_rows(data: str | Path, form: TextFormat) -> list[list[str]]:
    """Return the first rows of the first text file, its first line included; none of Parquet."""
    files = _files(data)
    check_regular("data", files[0])
    return form.first_rows(files[0], _MOST_ROWS) if _are_text(files, form) else []


def has_no_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return True where the first row looks like data: most of its values occur below it.

    A number above a column of numbers counts, too: measurements rarely occur twice. A line of names
    that is repeated as a whole (in files that were put together), and the names 0, 1, 2, ... are
    names.
    """
    if len(rows) < 2 or len(rows[0]) < 2:
        return False
    names = [name.strip() for name in rows[0]]
    if [name for name in names if name] == [str(i) for i in range(len(names) - ("" in names))]:
        return False
    n_repeats = list(rows).count(rows[0]) - 1
    alike = 0
    for name, values in _columns(rows):
        is_value = values.count(name) > n_repeats
        alike += is_value or (_is_number(name) and _share_of_numbers(values) >= _MOSTLY)
    return 2 * alike > len(rows[0])


def has_names_below(rows: Sequence[Sequence[str]]) -> bool:
    """Return True where the second row holds the names: texts above columns of numbers."""
    if len(rows) < 3 or has_no_names(rows):
        return False
    columns = list(_columns(rows[1:]))
    above = sum(
        not _is_number(name) and _share_of_numbers(values) >= _MOSTLY for name, values in columns
    )
    return 2 * above > len(columns)


def _columns(rows: Sequence[Sequence[str]]) -> list[tuple[str, list[str]]]:
    """Return the value of the first row and those below it, for each column."""
    below = [row for row in rows[1:] if len(row) == len(rows[0])]
    return [
        (name.strip(), [row[place].strip() for row in below]) for place, name in enumerate(rows[0])
    ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _share_of_numbers(values: Sequence[str]) -> float:
    return sum(map(_is_number, values)) / len(values) if values else 0.0
