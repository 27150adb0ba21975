"""Format tables as lines of text; rows wider than the terminal continue in the next line."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

_INDENT, _GAP = "  ", "  "
#: The indentation of continued lines.
_FURTHER = "      "


def table_lines(rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Return rows of text as aligned lines; the first row is the header.

    In a row shorter than the header, the last cell is free text that replaces the remaining cells.
    If lines would be longer than ``width``, the columns are split over several lines.
    """
    n = len(rows[0])
    columns = [[row[i] for row in rows if i < len(row) - (len(row) < n)] for i in range(n)]
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for row in rows:
        has_text = len(row) < n
        cells = [cell.ljust(size) for cell, size in zip(row, widths, strict=False)]
        if has_text:
            cells[-1] = row[-1]
        lines.append(f"{_INDENT}{_GAP.join(cells)}".rstrip())
    if width is None or max(map(len, lines)) <= width:
        return lines
    parts = _parts(widths, width)
    return [line for row in rows for line in _folded(row, widths, parts, width)]


def _parts(widths: Sequence[int], width: int) -> list[range]:
    """Return the columns that share a line."""
    parts, start, used = [], 0, len(_INDENT)
    for i, size in enumerate(widths):
        if i > start and used + size > width:
            parts.append(range(start, i))
            start, used = i, len(_FURTHER)
        used += size + len(_GAP)
    return [*parts, range(start, len(widths))]


def _folded(
    row: Sequence[str], widths: Sequence[int], parts: Sequence[range], width: int
) -> list[str]:
    """Return a row in several lines; free text at its end gets its own line."""
    has_text = len(row) < len(widths)
    n_cells = len(row) - has_text
    lines: list[str] = []
    for part in parts:
        cells = [row[i].ljust(widths[i]) for i in part if i < n_cells]
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
