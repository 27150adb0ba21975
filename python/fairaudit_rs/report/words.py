"""Format numbers, names and notes for sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Smaller p-values are printed as "p < 1e-300": they are near the smallest floats.
_SMALLEST = 1e-300


def number(value: float) -> str:
    """Format a number with three significant digits."""
    if math.isnan(value):
        return "not measurable"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return f"{value:.3f}" if 0.1 <= abs(value) < 1000 or value == 0 else f"{value:.3g}"


def numbers(*values: float) -> tuple[str, ...]:
    """Format numbers with three to eight digits, so that unequal numbers look different."""
    shown = tuple(map(number, values))
    for digits in range(4, 9):
        if len(set(zip(values, shown, strict=True))) == len(set(shown)):
            break
        shown = tuple(
            f"{value:#.{digits}g}" if math.isfinite(value) else number(value) for value in values
        )
    return shown


def limits_text(low: float, high: float, texts: tuple[str, str]) -> str:
    """Format the limits of order statistics, with an explanation if they are equal."""
    if low == high:
        return f"{texts[0]} on both sides, as rows near the level have equal values"
    return f"{texts[0]} to {texts[1]}"


def p_text(pvalue: float) -> str:
    """Format a p-value."""
    if pvalue < _SMALLEST:
        return f"p < {_SMALLEST:.0e}"
    return f"p = {pvalue:.4f}" if pvalue >= 0.0001 else f"p = {pvalue:.2g}"


def row_count(n_rows: int | None, n_used: int | None = None) -> str:
    """Format a number of rows, and how many of them are eligible."""
    if n_rows is None:
        return "" if n_used is None else row_count(n_used)
    if n_used is None or n_used == n_rows:
        return "1 row" if n_rows == 1 else f"{n_rows:,} rows"
    return f"{n_used:,} eligible of {n_rows:,} rows"


def join_names(names: Sequence[str], most: int = 3) -> str:
    """Join names: a and b; a, b and c; a, b, c and 4 more."""
    shown = list(names[:most])
    left = len(names) - len(shown)
    if left:
        return f"{', '.join(shown)} and {left:,} more"
    return " and ".join([*([", ".join(shown[:-1])] if len(shown) > 1 else []), *shown[-1:]])


def note_on_disagreement(interval: tuple[float, float], rejected: bool) -> str:
    """Return a sentence if a test and an interval disagree about 0, else ""."""
    low, high = interval
    if math.isnan(low) or (low > 0 or high < 0) == rejected:
        return ""
    what = "includes" if rejected else "leaves out"
    return f" The interval, by another method, {what} 0: the test decides."
