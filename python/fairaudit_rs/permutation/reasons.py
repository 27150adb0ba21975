"""Reasons why a test has no verdict or an interval is unknown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WithholdingReason:
    """A reason, its kind, and the names of the groups in its text."""

    kind: str
    text: str
    subject: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text
