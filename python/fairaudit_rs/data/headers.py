"""Detect whether the first line of a text file holds column names or data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .frames import are_text_files, check_regular, data_files
from .text_files import TextFormat

#: Number of rows that are compared with the first.
_MOST_ROWS = 2_000
#: A column is numeric when at least this share of the values below the first row are numbers.
_NUMERIC_SHARE = 0.9


def first_rows(data: str | Path, form: TextFormat) -> list[list[str]]:
    """Return the first rows of the first text file, from its first line on; [] for Parquet."""
    files = data_files(data)
    check_regular("data", files[0])
    return form.first_rows(files[0], _MOST_ROWS) if are_text_files(files, form) else []


def has_no_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row looks like data: most of its values occur below it.

    A number above a numeric column also looks like data, since measurements rarely repeat. A first
    row that is repeated as a whole (in concatenated files), or that reads 0, 1, 2, ..., is still a
    header.
    """
    if len(rows) < 2 or len(rows[0]) < 2:
        return False
    names = [name.strip() for name in rows[0]]
    if [name for name in names if name] == [str(i) for i in range(len(names) - ("" in names))]:
        return False
    n_repeats = list(rows).count(rows[0]) - 1
    n_like_data = 0
    for name, values in _columns(rows):
        is_value = values.count(name) > n_repeats
        n_like_data += is_value or (
            _is_number(name) and _share_of_numbers(values) >= _NUMERIC_SHARE
        )
    return 2 * n_like_data > len(rows[0])


def has_names_below(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the second row is the header.

    It is if it holds texts where the rows below hold numbers, in most columns.
    """
    if len(rows) < 3 or has_no_names(rows):
        return False
    columns = list(_columns(rows[1:]))
    above = sum(
        not _is_number(name) and _share_of_numbers(values) >= _NUMERIC_SHARE
        for name, values in columns
    )
    return 2 * above > len(columns)


def _columns(rows: Sequence[Sequence[str]]) -> list[tuple[str, list[str]]]:
    """Return for each column the value of the first row and the values below it."""
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
