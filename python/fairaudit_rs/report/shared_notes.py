"""Notes that the results of several lenses have in common."""

from __future__ import annotations

from .notes import Note


def rows_without_group_note(
    n_missing: int, features: str, n_rows: int | None = None, effect: str = "belong to no group"
) -> Note:
    """Return the note that rows have no value of the features that define the groups."""
    count = f"{n_missing:,}" if n_rows is None else f"{n_missing:,} of {n_rows:,}"
    return Note("rows-without-group", f"{count} rows have no value of {features} and {effect}")


def no_pvalue_note(reason: str) -> Note:
    """Return the note that there is no p-value, with the reason."""
    return Note("no-pvalue", f"no p-value: {reason}")


def smallest_pvalue_note() -> Note:
    """Return the note that the p-value is the smallest positive floating-point number."""
    return Note("p-below-smallest-number", "p is below the smallest number that can be told from 0")
