"""Numbers for a sentence."""

from __future__ import annotations

import math


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


def p_text(pvalue: float) -> str:
    """Return a p-value for a sentence."""
    return f"p = {pvalue:.4f}" if pvalue >= 0.0001 else f"p = {pvalue:.2g}"
