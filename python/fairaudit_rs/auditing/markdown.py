"""Escape texts for Markdown, and write Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.groups import escape_controls


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it literally; a leading "- " still makes a list."""
    text = escape_controls(text)
    head = "- " if text.startswith("- ") else ""
    text = text.removeprefix("- ")
    for letter in "\\`*_{}[]<>|#":
        text = text.replace(letter, f"\\{letter}")
    return head + text


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with headings."""
    lines = [
        headings,
        ["---"] * len(headings),
        *([escape_markdown(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
