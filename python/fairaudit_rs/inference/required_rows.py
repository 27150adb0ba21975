"""Compute the required rows: how many rows a verdict needs if the observed gap is the true one.

All groups are assumed to grow by the same factor. Depending on the observed gap, the rows would
show with a probability of 80 % that the gap lies within the tolerance, or that it exceeds it. Close
to the tolerance, no realistic number of rows is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .pvalues import normal_cdf, normal_of_tail

#: Probability of a verdict with the required rows.
PROMISED = 0.8
#: Larger factors are not realistic, unless a small group needs at most `_FEW_ROWS` rows.
_MOST_TIMES = 50.0
_FEW_ROWS = 10_000
_HALVINGS = 200
#: Simulated values of all groups; 2,000 draws give 80 % up to one percentage point.
_DRAWS, _SEED, _HALVINGS_OF_DRAWS = 2_000, 80, 30
#: Number of pairs in each draw: those that are hardest to show.
_HARDEST = 100
_LARGEST_ROOT = 1e9


@dataclass(frozen=True)
class RequiredRows:
    """The factor by which all groups must grow, and what would then be shown."""

    #: "within" the tolerance or "beyond" it: the side of the observed gap.
    side: str
    #: Factor for the rows of every group; infinite at the tolerance itself.
    factor: float
    #: Required rows of the smaller group; None if there is no realistic number.
    n_rows: int | None


def times_to_show_within(
    gap: float, error: float, tolerance: float, level: float, promised: float = PROMISED
) -> float:
    """Return the factor of rows f at which both one-sided tests of a tolerance reject.

    f solves Phi(sqrt(f) (tol - |d|) / se - z) + Phi(sqrt(f) (tol + |d|) / se - z) = 1 + promised,
    z = z(1 - level). Infinite if the observed gap is not within the tolerance.
    """
    if not abs(gap) < tolerance:
        return math.inf
    z = normal_of_tail(level)

    def both(root: float) -> float:
        sides = ((tolerance + sign * abs(gap)) * root / error - z for sign in (-1, 1))
        return sum(map(normal_cdf, sides))

    below, above = 0.0, 1.0
    while both(above) < 1 + promised:
        above *= 2
        if math.isinf(above):
            return math.inf
    for _ in range(_HALVINGS):
        middle = 0.5 * (below + above)
        if not below < middle < above:
            break
        below, above = (below, middle) if both(middle) >= 1 + promised else (middle, above)
    return above**2


def times_to_show_all_within(
    values: Sequence[float],
    variances: Sequence[float],
    pairs: Sequence[tuple[int, int, float]],
    tolerance: float,
    level: float,
    promised: float = PROMISED,
) -> float:
    """Return the factor of rows f at which all pairs are shown to lie within a tolerance.

    f solves P(all pairs pass | values ~ N(observed, v / f)) = promised, by simulating the values of
    the groups. A pair (i, j, se) passes if |x_i - x_j| + z se / sqrt(f) <= tol, z = z(1 - level).
    Infinite if some observed gap is not within the tolerance.
    """
    if len(pairs) == 1:
        i, j, error = pairs[0]
        if not 0 < error < math.inf:
            return math.inf
        return times_to_show_within(values[i] - values[j], error, tolerance, level, promised)
    seen, spread = np.asarray(values), np.sqrt(np.asarray(variances))
    first, second = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
    errors = np.array([pair[2] for pair in pairs])
    room = tolerance - np.abs(seen[first] - seen[second])
    if not (np.all(room > 0) and np.all(np.isfinite(errors)) and np.all(np.isfinite(spread))):
        return math.inf
    # All other pairs pass with far fewer rows.
    hardest = np.argsort(room / np.maximum(errors, 1e-300), kind="stable")[:_HARDEST]
    first, second, errors = first[hardest], second[hardest], errors[hardest]
    noise = np.random.Generator(np.random.Philox(_SEED)).standard_normal((_DRAWS, len(seen)))
    noise = (noise * spread)[:, first] - (noise * spread)[:, second]
    gaps, z = seen[first] - seen[second], normal_of_tail(level)

    def share(root: float) -> float:
        size = np.abs(gaps + noise / root) + z * errors / root
        return float((size <= tolerance).all(axis=1).mean())

    below, above = 0.0, 1.0
    while share(above) < promised:
        above *= 2
        if above > _LARGEST_ROOT:
            return math.inf
    for _ in range(_HALVINGS_OF_DRAWS):
        middle = 0.5 * (below + above)
        below, above = (below, middle) if share(middle) >= promised else (middle, above)
    return above**2


def times_to_show_beyond(
    gap: float,
    error: float,
    tolerance: float,
    level: float,
    n_tests: int = 1,
    promised: float = PROMISED,
) -> float:
    """Return the factor of rows f at which a gap beyond the tolerance is found in n adjusted tests.

    f = ((z(1 - level / n) + z(promised)) se / (|d| - tol))^2; infinite if the observed gap does not
    exceed the tolerance.
    """
    if not abs(gap) > tolerance:
        return math.inf
    z = normal_of_tail(level / n_tests) + normal_of_tail(1 - promised)
    return (z * error / (abs(gap) - tolerance)) ** 2


def rows_that_tell(
    gap: float, error: float, tolerance: float, level: float, n_smaller: int, n_tests: int = 1
) -> RequiredRows:
    """Return the required rows on the side of the tolerance where the observed gap lies.

    ``n_smaller`` is the number of rows of the smaller group. The answer is a number of rows of this
    group, which is easier to act on than a factor.
    """
    if abs(gap) < tolerance:
        side, factor = "within", times_to_show_within(gap, error, tolerance, level)
    else:
        side, factor = "beyond", times_to_show_beyond(gap, error, tolerance, level, n_tests)
    return rows_of_smaller_group(side, factor, n_smaller)


def rows_of_smaller_group(side: str, factor: float, n_smaller: int) -> RequiredRows:
    """Return the required rows of the smaller group, given the factor for all groups."""
    n_rows = factor * n_smaller
    unreal = not factor < math.inf or (factor > _MOST_TIMES and n_rows > _FEW_ROWS)
    return RequiredRows(side, factor, None if unreal else math.ceil(n_rows))
