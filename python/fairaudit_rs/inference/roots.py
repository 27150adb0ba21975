"""Where a monotone function has a value, to the last bit of a bisection, with fewer evaluations."""

from __future__ import annotations

from collections.abc import Callable

#: A root is sure to lie this near to where secants find it, as a share of itself or of 1.
_NEAR = 1e-12
_SECANTS = 16

#: Where a function was evaluated, and what it is there.
Point = tuple[float, float]


def narrowed(
    function: Callable[[float], float], value: float, start: Point, end: Point
) -> tuple[float, float]:
    """Return ends, near to each other, outside of which a bisection needs no evaluations.

    The function is monotone but for its rounding and has the value between ``start`` and ``end``,
    which come with how far it lies above the value there.
    Secants (Illinois) find the place. The ends lie beyond all rounding on both sides of it, so a
    bisection that takes its answers from them ends at the same bits. Where the secants do not get
    there the ends are those that are given.
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
        # An end that stays twice counts half, so that it comes to move.
        if (at_place < 0) == (at_low < 0):
            low, at_low = place, at_place
            at_high, moved = (0.5 * at_high if moved == -1 else at_high), -1
        else:
            high, at_high = place, at_place
            at_low, moved = (0.5 * at_low if moved == 1 else at_low), 1
    near = _NEAR * max(abs(place), 1.0)
    if not start[0] < place - 2 * near < place + 2 * near < end[0]:
        return start[0], end[0]
    # A line through the place, twice as far out twice as high: where rounding makes the function
    # jump, or it bends, it is none.
    slope = (function(place + near) - value) / near
    off = max(
        abs(function(place + steps * near) - value - steps * near * slope) for steps in (-2, -1, 2)
    )
    is_line = slope * (at_high - at_low) > 0 and off <= 0.1 * abs(slope) * near
    return (place - near, place + near) if is_line else (start[0], end[0])
