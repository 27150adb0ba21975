"""Formats gaps and bounds for sentences: points for shares, numbers for the rest."""

from __future__ import annotations

import math

from ..report.words import number
from .findings import LensFinding, QuestionFinding

#: Maximum number of digits that distinguish a bound from its tolerance.
_MOST_DIGITS = 8

AnyFinding = QuestionFinding | LensFinding


def share(part: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * part:.1f} %"


class NumberStyle:
    """The number format and confidence of an audit with a number of comparisons."""

    def __init__(self, alpha: float, n_tests: int, adjusts: bool = True) -> None:
        self.alpha, self.n_tests = alpha, n_tests
        #: Whether fails are adjusted for all comparisons, so that their bounds hold together.
        self.adjusts = adjusts

    @property
    def confidence(self) -> str:
        """The confidence of bounds in words."""
        return f"{100 * (1 - self.alpha):g} % confidence"

    @property
    def of_all(self) -> str:
        """The confidence of the bounds of fails in words; if adjusted, for all at once."""
        together = " for all comparisons" if self.adjusts and self.n_tests > 1 else ""
        return f"{self.confidence}{together}"

    def gap(self, found: AnyFinding, value: float) -> str:
        """Return a difference or a ratio in words."""
        if math.isnan(value):
            return number(value)
        if math.isinf(value):
            return "any size"
        if found.tolerance is not None and found.tolerance.scale == "ratio":
            return f"{value:.2f}"
        return f"{100 * value:.1f} points" if found.is_share else number(value)

    def bound(self, found: AnyFinding, value: float) -> str:
        """Return a bound with enough digits to differ from the tolerance, unless it equals it."""
        assert found.tolerance is not None
        text, limit = self.gap(found, value), self.gap(found, found.tolerance.value)
        if text != limit or value == found.tolerance.value:
            return text
        is_points = found.is_share and found.tolerance.scale == "difference"
        for digits in range(2, _MOST_DIGITS):
            times, unit = (100, " points") if is_points else (1, "")
            text, limit = (f"{times * x:.{digits}f}" for x in (value, found.tolerance.value))
            if text != limit:
                return f"{text}{unit}"
        return self.gap(found, value)
