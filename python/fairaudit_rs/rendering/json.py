"""Documents as plain values for JSON: sentences, typed tables with their numbers, and notes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..report.document import Cell, Document, Remainder, Section, Table
from ..results.stored import encode_value


def render(document: Document) -> dict[str, Any]:
    """Return a document as plain values; NaN is None, and cells keep their numbers."""
    return {
        "title": document.title,
        "headline": document.headline,
        "sentences": list(document.sentences),
        "sections": [_section(section) for section in document.sections],
        "notes": list(document.notes),
        "details": document.details,
        "facts": dict(document.facts),
    }


def _section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "sentences": list(section.sentences),
        "tables": [_table(table) for table in section.tables],
        "is_detail": section.is_detail,
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "columns": [asdict(column) for column in table.columns],
        "rows": [[_value(value) for value in row] for row in table.rows],
    }


def _value(value: Any) -> Any:
    if isinstance(value, Remainder):
        return {"text": value.text}
    if isinstance(value, Cell):
        return {"text": value.text, "value": encode_value(value.value)}
    if isinstance(value, tuple):
        return [encode_value(entry) for entry in value]
    return encode_value(value)
