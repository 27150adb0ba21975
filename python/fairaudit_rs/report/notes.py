"""The class `Note`: a remark of a result, with a code; alike notes are folded into one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass

from .words import join_names

#: This many notes with one code are folded into one.
_FOLDED = 3
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Note:
    """A remark that a reader needs besides the numbers.

    Attributes
    ----------
    code : str
        A short name of this kind of remark, which stays the same: see docs/results.md.
    text : str
        The remark, as part of a sentence without a full stop.
    subject : tuple of str
        The names of the groups, features or files that it is about; empty if it is about all.
    scope : str
        The attribute, metric or lens that it is about, if a result has several.
    reason : str
        The kind of reason that the text contains; empty if all notes of the code have the same.
    """

    code: str
    text: str
    subject: tuple[str, ...] = ()
    scope: str = ""
    _: KW_ONLY
    reason: str = ""

    def __str__(self) -> str:
        return self.text


def reason_without_numbers(reason: str) -> str:
    """Return a reason with "#" for its numbers, so that alike reasons of several groups agree."""
    return _NUMBER.sub("#", reason)


def fold_notes(notes: Iterable[Note]) -> list[str]:
    """Return the texts of notes; three or more of one kind become one.

    Notes of one kind have the same code, scope and reason, and differ in their subjects. The text
    is that of the first note, with the subjects of the others and the number of notes.
    """
    kinds: dict[tuple[str, str, str], list[Note]] = {}
    for note in dict.fromkeys(notes):
        kinds.setdefault((note.code, note.scope, note.reason), []).append(note)
    texts = []
    for alike in kinds.values():
        first, *others = alike
        if len(alike) < _FOLDED or len({note.subject for note in alike}) == 1:
            texts += [note.text for note in alike]
            continue
        who = join_names([" and ".join(note.subject) for note in others])
        texts.append(f"{first.text}; the same of {who} ({len(alike):,} notes of this kind)")
    return texts
