"""Texts and tables as Markdown shows them literally."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.groups import escape_controls


def escape_markdown(text: str) -> str:
    """Return a text as Markdown shows it literally; a list stays one."""
    text = escape_controls(text)
    head = "- " if text.startswith("- ") else ""
    text = text.removeprefix("- ")
    for letter in "\\`*_{}[]<>|#":
        text = text.replace(letter, f"\\{letter}")
    return head + text


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table under its heads."""
    lines = [
        heads,
        ["---"] * len(heads),
        *([escape_markdown(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
