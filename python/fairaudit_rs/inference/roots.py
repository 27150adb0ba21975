"""Narrow the bracket of a root, so that a bisection needs fewer function evaluations."""

from __future__ import annotations

from collections.abc import Callable

#: Half width of the narrowed bracket, relative to the root or to 1.
_NEAR = 1e-12
_SECANTS = 16

#: An argument of a function, and the function value there.
Point = tuple[float, float]


def narrowed(
    function: Callable[[float], float], value: float, start: Point, end: Point
) -> tuple[float, float]:
    """Return a narrow bracket of a root, outside which a bisection needs no evaluations.

    The function is monotone except for rounding and takes the value between ``start`` and ``end``,
    which are given with the differences of the function from the value. The secant method
    (Illinois) finds the root. The new bracket is wider than any rounding error, so a bisection that
    uses it gives the same result to the last bit. If the secant method fails, the original bracket
    is returned.
    """
    (low, at_low), (high, at_high) = start, end
    if not at_low * at_high < 0:
        return low, high
    moved, place = 0, low
    for _ in range(_SECANTS):
        before, place = place, high - at_high * (high - low) / (at_high - at_low)
        if not low < place < high:
            break
        near = _NEAR * max(abs(place), 1.0)
        if abs(place - before) <= 0.1 * near:
            break
        at_place = function(place) - value
        if at_place == 0:
            break
        # The Illinois rule: halve the value at an end that stays twice.
        if (at_place < 0) == (at_low < 0):
            low, at_low = place, at_place
            at_high, moved = (0.5 * at_high if moved == -1 else at_high), -1
        else:
            high, at_high = place, at_place
            at_low, moved = (0.5 * at_low if moved == 1 else at_low), 1
    near = _NEAR * max(abs(place), 1.0)
    if not start[0] < place - 2 * near < place + 2 * near < end[0]:
        return start[0], end[0]
    # Check that the function is linear near the root: no jumps from rounding, and no bend.
    slope = (function(place + near) - value) / near
    deviation = max(
        abs(function(place + steps * near) - value - steps * near * slope) for steps in (-2, -1, 2)
    )
    is_line = slope * (at_high - at_low) > 0 and deviation <= 0.1 * abs(slope) * near
    return (place - near, place + near) if is_line else (start[0], end[0])
