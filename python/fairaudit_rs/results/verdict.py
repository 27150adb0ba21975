"""p-values against levels: the one place where a rejection is decided."""

from __future__ import annotations

#: Of a level: 1 - 0.9 is a little less than 0.1, and a p-value of exactly 0.1 rejects at it.
_ROUNDING = 1e-9


def rejects(pvalue: float, alpha: float) -> bool:
    """Whether a test rejects at a level; a p-value that is not measurable never does."""
    return bool(pvalue <= alpha * (1 + _ROUNDING))
