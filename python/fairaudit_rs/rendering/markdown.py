"""Documents as a page of Markdown, in which every text is shown literally."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.groups import escape_controls
from ..report.document import Document, Section, Table


def render(document: Document) -> str:
    """Return a document as a page of Markdown with all its sections."""
    first, *rest = map(escape_markdown, document.sentences or ("",))
    parts = [f"# {escape_markdown(document.title)}" if document.title else "", first]
    parts += ["\n".join(rest)]
    for section in document.sections:
        parts += _section_parts(section)
    notes = "\n".join(f"- {escape_markdown(note)}." for note in document.notes)
    parts += ["## Notes", notes] if notes or document.facts else []
    parts += [f"Details: {escape_markdown(document.details)}."] if document.details else []
    parts += [f"{name}: {escape_markdown(text)}" for name, text in document.facts.items()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section_parts(section: Section) -> list[str]:
    parts = [f"## {escape_markdown(section.title)}"] if section.title else []
    for table in section.tables:
        parts += [_table_part(table)]
    parts += ["\n".join(f"- {escape_markdown(sentence)}" for sentence in section.sentences)]
    return parts


def _table_part(table: Table) -> str:
    heads, *rows = table.texts()
    text = markdown_table(heads, [[*row, *[""] * (len(heads) - len(row))] for row in rows])
    if table.n_hidden:
        text += f"\n\n{table.n_hidden:,} more {table.noun} are not shown."
    return text


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
