"""Numbers for a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

#: p-values below this are not told apart: sums of products of the smallest floats.
_SMALLEST = 1e-300
#: So many notes of one kind are folded into one.
_FOLDED = 3
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def number(value: float) -> str:
    """Return a number with three significant digits for a sentence."""
    if math.isnan(value):
        return "not measurable"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return f"{value:.3f}" if 0.1 <= abs(value) < 1000 or value == 0 else f"{value:.3g}"


def numbers(*values: float) -> tuple[str, ...]:
    """Return numbers for a sentence, of three to eight digits, so that unequal ones differ."""
    shown = tuple(map(number, values))
    for digits in range(4, 9):
        if len(set(zip(values, shown, strict=True))) == len(set(shown)):
            break
        shown = tuple(
            f"{value:#.{digits}g}" if math.isfinite(value) else number(value) for value in values
        )
    return shown


def limits_text(low: float, high: float, texts: tuple[str, str]) -> str:
    """Return limits of order statistics for a sentence; equal ones with what that means."""
    if low == high:
        return f"{texts[0]} on both sides, as rows near the level have equal values"
    return f"{texts[0]} to {texts[1]}"


def p_text(pvalue: float) -> str:
    """Return a p-value for a sentence; what cannot be told from 0 is below 1e-300."""
    if pvalue < _SMALLEST:
        return f"p < {_SMALLEST:.0e}"
    return f"p = {pvalue:.4f}" if pvalue >= 0.0001 else f"p = {pvalue:.2g}"


def row_count(n_rows: int | None, n_used: int | None = None) -> str:
    """Return how many rows, and how many of them are used, for a sentence."""
    if n_rows is None:
        return "" if n_used is None else row_count(n_used)
    if n_used is None or n_used == n_rows:
        return "1 row" if n_rows == 1 else f"{n_rows:,} rows"
    return f"{n_used:,} of {n_rows:,} rows"


def join_names(names: Sequence[str], most: int = 3) -> str:
    """Return names for a sentence: a and b; a, b and c; a, b, c and 4 more."""
    shown = list(names[:most])
    left = len(names) - len(shown)
    if left:
        return f"{', '.join(shown)} and {left:,} more"
    return " and ".join([*([", ".join(shown[:-1])] if len(shown) > 1 else []), *shown[-1:]])


def fold_notes(notes: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return notes; three or more that differ in numbers and names of groups alone become one.

    It is the first of them, with the groups of the next ones and how many there are.
    """
    longest_first = map(re.escape, sorted(names, key=len, reverse=True))
    found = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first) or '(?!)'})(?!\w)")
    kinds: dict[str, list[str]] = {}
    for note in notes:
        kinds.setdefault(_NUMBER.sub("#", found.sub("@", note)), []).append(note)
    lines = []
    for alike in kinds.values():
        named = [found.findall(note) for note in alike]
        # Words that happen to be names are the same in all of them.
        differ = [i for i, column in enumerate(zip(*named, strict=True)) if len(set(column)) > 1]
        if len(alike) < _FOLDED or not differ:
            lines += alike
            continue
        who = join_names([" and ".join(dict.fromkeys(row[i] for i in differ)) for row in named[1:]])
        lines.append(f"{alike[0]}; the same of {who} ({len(alike):,} notes of this kind)")
    return lines


def note_on_disagreement(interval: tuple[float, float], rejected: bool) -> str:
    """Return a sentence for a test and an interval that disagree about 0; "" where they agree."""
    low, high = interval
    if math.isnan(low) or (low > 0 or high < 0) == rejected:
        return ""
    what = "includes" if rejected else "leaves out"
    return f" The interval, by another method, {what} 0: the test decides."
