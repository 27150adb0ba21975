"""Prepares notes that contain reasons, so that different reasons are not printed as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..report.notes import Note

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def notes_with_reasons(noted: Sequence[tuple[Note, str]]) -> list[Note]:
    """Return notes, given with the reasons that their texts contain.

    Three or more notes with different subjects are printed as the first one and "the same of" the
    others. That would be wrong if the reasons differ in more than their numbers, so these notes
    have no subject.
    """
    kinds: dict[str, set[str]] = {}
    for note, reason in noted:
        kinds.setdefault(note.code, set()).add(_NUMBER.sub("#", reason))
    return [note if len(kinds[note.code]) == 1 else replace(note, subject=()) for note, _ in noted]
