"""Reasons why a test has no verdict or an interval is unknown, and the notes that contain them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..report.notes import Note


@dataclass(frozen=True)
class WithholdingReason:
    """A reason, its kind, and the names of the groups in its text."""

    kind: str
    text: str
    subject: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


def notes_with_reasons(noted: Iterable[tuple[Note, WithholdingReason | None]]) -> list[Note]:
    """Return notes, given with their reasons; None for notes whose text contains none.

    Three or more notes with different subjects are printed as the first one and "the same of" the
    others. That would be wrong for different kinds of reasons, so these notes have no subject.
    """
    pairs = list(dict.fromkeys(noted))
    are_alike = len({reason.kind for _, reason in pairs if reason is not None}) <= 1
    return [
        note if reason is None or are_alike else replace(note, subject=()) for note, reason in pairs
    ]
