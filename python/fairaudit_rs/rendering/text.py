"""Documents as text for a terminal: sentences, tables of aligned columns, notes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ..data.groups import escape_controls
from ..report.document import Document, Section, Table

_INDENT, _GAP = "  ", "  "
#: The indentation of continued lines.
_FURTHER = "      "


def render(
    document: Document, width: int | None = None, *, details: bool = False, where: str = ""
) -> str:
    """Return a document as text.

    Sentences are not wrapped. Rows of tables that are longer than ``width`` continue on the next
    line. Sections of details are included on request. ``where`` says what has the rows that are not
    shown; by default it is `Result.to_frame`.
    """
    sentences = list(document.sentences)
    if document.headline:
        sentences[0] = f"{document.headline}. {sentences[0]}"
    ends = [f"Note: {note}." for note in document.notes]
    ends += [f"Details: {document.details}."] if document.details else []
    sections = [
        _section_lines(section, width, where)
        for section in document.sections
        if details or not section.is_detail
    ]
    blocks = [sentences, *sections, ends] if sections else [[*sentences, *ends]]
    text = "\n\n".join("\n".join(block) for block in blocks if block)
    return escape_controls(text, kept="\n\t")


def _section_lines(section: Section, width: int | None, where: str) -> list[str]:
    lines = [f"{section.title}:"] if section.title else []
    lines += [f"{_INDENT}{sentence}" for sentence in section.sentences]
    for table in section.tables:
        lines += aligned_lines(table, width, where)
    return lines


def aligned_lines(table: Table, width: int | None = None, where: str = "") -> list[str]:
    """Return a table as aligned lines under its headings; numbers are aligned at the right."""
    lines = table_lines(table.texts(), width, [column.is_numeric for column in table.columns])
    if table.n_hidden:
        where = where or f'to_frame("{table.name}")'
        lines.append(f"{_INDENT}... and {table.n_hidden:,} more {table.noun}: {where} has them all")
    return lines


def table_lines(
    rows: Sequence[Sequence[str]], width: int | None = None, numeric: Sequence[bool] = ()
) -> list[str]:
    """Return rows of text as aligned lines; the first row is the header.

    In a row shorter than the header, the last cell is free text that replaces the remaining cells.
    If lines would be longer than ``width``, the columns are split over several lines.
    """
    n = len(rows[0])
    columns = [[row[i] for row in rows if i < len(row) - (len(row) < n)] for i in range(n)]
    widths = [max(map(len, column)) for column in columns]
    is_right = [*numeric, *[False] * (n - len(numeric))]
    padded = [
        [
            cell if i == len(row) - 1 < n - 1 else _padded(cell, widths[i], is_right[i])
            for i, cell in enumerate(row)
        ]
        for row in rows
    ]
    lines = [f"{_INDENT}{_GAP.join(row)}".rstrip() for row in padded]
    if width is None or max(map(len, lines)) <= width:
        return lines
    parts = _parts(widths, width)
    return [line for row in padded for line in _folded(row, n, parts, width)]


def _padded(cell: str, size: int, is_right: bool) -> str:
    return cell.rjust(size) if is_right else cell.ljust(size)


def _parts(widths: Sequence[int], width: int) -> list[range]:
    """Return the columns that share a line."""
    parts, start, used = [], 0, len(_INDENT)
    for i, size in enumerate(widths):
        if i > start and used + size > width:
            parts.append(range(start, i))
            start, used = i, len(_FURTHER)
        used += size + len(_GAP)
    return [*parts, range(start, len(widths))]


def _folded(row: Sequence[str], n: int, parts: Sequence[range], width: int) -> list[str]:
    """Return a row of padded cells in several lines; free text at its end gets its own line."""
    has_text = len(row) < n
    n_cells = len(row) - has_text
    lines: list[str] = []
    for part in parts:
        cells = [row[i] for i in part if i < n_cells]
        if any(map(str.strip, cells)):
            lines.append((_FURTHER if lines else _INDENT) + _GAP.join(cells).rstrip())
    if has_text:
        lines.append(_FURTHER + row[-1])
    return [piece for line in lines for piece in wrap_line(line, width)]


def join_cells(cells: Sequence[str], width: int | None = None) -> list[str]:
    """Join padded cells into one line, or into several lines of at most ``width``."""
    if width is None or len("".join(cells).rstrip()) <= width:
        return ["".join(cells).rstrip()]
    lines = [""]
    for cell in cells:
        if lines[-1] and len(f"{lines[-1]}{cell}") > width:
            lines.append(_FURTHER[2:])
        lines[-1] += cell
    return [piece for line in lines for piece in wrap_line(line.rstrip(), width)]


def wrap_line(line: str, width: int) -> list[str]:
    """Wrap a line to a width; continued lines of indented text are indented further."""
    if len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}    " if indent else "",
        break_on_hyphens=False,
    )
