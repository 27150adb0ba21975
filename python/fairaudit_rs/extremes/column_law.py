"""One column as a function of a standard normal number: atoms, and values interpolated between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

#: Hermite polynomials of the scores; what lies beyond matters for correlations close to 1 alone.
DEGREE = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnLaw:
    """The law of a column on the scale of a standard normal number.

    Attributes
    ----------
    u, value : ndarray
        Corners of the quantile function, which is linear between them.
    scores : ndarray
        What a row has in place of its hidden normal number: the mean of this number over the
        values that its tie covers, by row.
    variance : float
        Of the score, over the law of the hidden number.
    hermite : ndarray
        Means of the score times the normalised Hermite polynomials 1, 2, ... of the number.
    """

    u: Floats
    value: Floats
    scores: Floats
    variance: float
    hermite: Floats

    @classmethod
    def from_column(cls, column: Floats, atom: NDArray[np.bool_]) -> ColumnLaw:
        """Return the law of a column of values, some of which are atoms.

        Notes
        -----
        With F the share of the rows up to a value, an atom v covers (F(v-), F(v)); other values
        stand at the middle of this interval, and what lies between two of them is interpolated.
        """
        distinct, first, place, count = np.unique(
            column, return_index=True, return_inverse=True, return_counts=True
        )
        end = np.cumsum(count) / len(column)
        start = np.r_[0.0, end[:-1]]
        middle = (start + end) / 2
        fixed = atom[first]
        low, high = ndtri(start), ndtri(end)
        mean = (_density(low) - _density(high)) / (end - start)
        scores = np.where(fixed, mean, ndtri(middle))
        at_low, at_high = (_density(z) * np.where(np.isfinite(z), z, 0.0) for z in (low, high))
        lost = (end - start) * (1 - mean**2) + at_low - at_high
        u, value = _corners(start, middle, end, distinct, fixed)
        return cls(
            u=u,
            value=value,
            scores=scores[place],
            variance=float(1 - lost[fixed].sum()),
            hermite=_hermite(low[fixed], high[fixed], mean[fixed]),
        )

    def at(self, normal: Floats) -> Floats:
        """Return the values of standard normal numbers."""
        return np.asarray(np.interp(ndtr(normal), self.u, self.value))


def _corners(
    start: Floats, middle: Floats, end: Floats, value: Floats, fixed: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return the corners of a quantile function: an atom is level, and ends where others begin."""
    # A value that is no atom is level on the side where its neighbour is an atom, or none.
    alone_before = fixed | np.r_[True, fixed[:-1]]
    alone_after = fixed | np.r_[fixed[1:], True]
    u = np.column_stack(
        [np.where(alone_before, start, middle), middle, np.where(alone_after, end, middle)]
    )
    return u.ravel(), np.repeat(value, 3)


def _density(z: Floats) -> Floats:
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))


def _hermite(low: Floats, high: Floats, mean: Floats) -> Floats:
    """Return E[s(Z) h_k(Z)], k = 1, 2, ..., of s(z) = z but for its mean on some intervals.

    With h_k normalised, the integral of h_k phi is (h_(k-1)(low) phi(low) - the same at high) /
    sqrt k, and z h_k = sqrt(k+1) h_(k+1) + sqrt(k) h_(k-1).
    """
    k = np.arange(DEGREE + 2)
    ends = [_polynomials(z, DEGREE + 2) for z in (low, high)]
    # Line k: the integral of h_k over each interval; of h_0 it is its probability.
    whole = np.empty((DEGREE + 2, len(low)))
    whole[0] = ndtr(high) - ndtr(low)
    whole[1:] = (ends[0] - ends[1])[: DEGREE + 1] / np.sqrt(k[1:, None])
    inner = slice(1, DEGREE + 1)
    steps = np.sqrt(k[1 : DEGREE + 1, None])
    times_z = np.sqrt(k[2:, None]) * whole[2:] + steps * whole[:DEGREE]
    found = (mean * whole[inner] - times_z).sum(axis=1)
    found[0] += 1.0
    return np.asarray(found)


def _polynomials(z: Floats, n: int) -> Floats:
    """Return h_k(z) phi(z) for k = 0, 1, ... n - 1; 0 at infinity."""
    found = np.zeros((n, len(z)))
    inside = np.isfinite(z)
    z = z[inside]
    held = np.zeros((n, len(z)))
    held[0] = _density(z)
    held[1] = z * held[0]
    for k in range(1, n - 1):
        held[k + 1] = (z * held[k] - np.sqrt(k) * held[k - 1]) / np.sqrt(k + 1)
    found[:, inside] = held
    return found
