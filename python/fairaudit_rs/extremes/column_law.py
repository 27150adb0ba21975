"""Describes the distribution of a column as a function of a hidden standard normal number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

#: Degree of the Hermite series; further terms matter only for correlations close to 1.
DEGREE = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnLaw:
    """The distribution of a column, as a function of a hidden standard normal number.

    Attributes
    ----------
    u, value : ndarray
        Corners of the quantile function, which is linear between them.
    scores : ndarray
        For each row, the mean of the hidden number over the interval that its value covers.
    variance : float
        The variance of the score under the law of the hidden number.
    hermite : ndarray
        Means of the score times the normalised Hermite polynomials 1, 2, ... of the hidden number.
    """

    u: Floats
    value: Floats
    scores: Floats
    variance: float
    hermite: Floats

    @classmethod
    def from_column(cls, column: Floats, atom: NDArray[np.bool_]) -> ColumnLaw:
        """Estimate the law of a column from its values and a mask of the rows at atoms.

        Notes
        -----
        With F the share of the rows up to a value, an atom v covers (F(v-), F(v)). Other values
        are at the middle of this interval, with linear interpolation in between.
        """
        distinct, first, place, count = np.unique(
            column, return_index=True, return_inverse=True, return_counts=True
        )
        end = np.cumsum(count) / len(column)
        start = np.r_[0.0, end[:-1]]
        middle = (start + end) / 2
        is_atom = atom[first]
        low, high = ndtri(start), ndtri(end)
        mean = (_density(low) - _density(high)) / (end - start)
        scores = np.where(is_atom, mean, ndtri(middle))
        at_low, at_high = (_density(z) * np.where(np.isfinite(z), z, 0.0) for z in (low, high))
        lost_variance = (end - start) * (1 - mean**2) + at_low - at_high
        u, value = _corners(start, middle, end, distinct, is_atom)
        return cls(
            u=u,
            value=value,
            scores=scores[place],
            variance=float(1 - lost_variance[is_atom].sum()),
            hermite=_hermite(low[is_atom], high[is_atom], mean[is_atom]),
        )

    def at(self, normal: Floats) -> Floats:
        """Return the column values of standard normal numbers."""
        return np.asarray(np.interp(ndtr(normal), self.u, self.value))


def _corners(
    start: Floats, middle: Floats, end: Floats, value: Floats, is_atom: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return the corners of a quantile function, which is constant over each atom."""
    # Next to an atom or an end, it is constant from the middle of a value's interval to the edge.
    alone_before = is_atom | np.r_[True, is_atom[:-1]]
    alone_after = is_atom | np.r_[is_atom[1:], True]
    u = np.column_stack(
        [np.where(alone_before, start, middle), middle, np.where(alone_after, end, middle)]
    )
    return u.ravel(), np.repeat(value, 3)


def _density(z: Floats) -> Floats:
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))


def _hermite(low: Floats, high: Floats, mean: Floats) -> Floats:
    """Return E[s(Z) h_k(Z)], k = 1, 2, ..., where s(z) = z, but its mean on some intervals.

    With h_k normalised, the integral of h_k phi from low to high is
    (h_(k-1)(low) phi(low) - h_(k-1)(high) phi(high)) / sqrt(k), and
    z h_k = sqrt(k+1) h_(k+1) + sqrt(k) h_(k-1).
    """
    k = np.arange(DEGREE + 2)
    ends = [_polynomials(z, DEGREE + 2) for z in (low, high)]
    # Row k has the integrals of h_k phi over the intervals; row 0 their probabilities.
    integrals = np.empty((DEGREE + 2, len(low)))
    integrals[0] = ndtr(high) - ndtr(low)
    integrals[1:] = (ends[0] - ends[1])[: DEGREE + 1] / np.sqrt(k[1:, None])
    inner = slice(1, DEGREE + 1)
    steps = np.sqrt(k[1 : DEGREE + 1, None])
    times_z = np.sqrt(k[2:, None]) * integrals[2:] + steps * integrals[:DEGREE]
    coefficients = (mean * integrals[inner] - times_z).sum(axis=1)
    coefficients[0] += 1.0
    return np.asarray(coefficients)


def _polynomials(z: Floats, n: int) -> Floats:
    """Return h_k(z) phi(z) for k = 0, 1, ... n - 1; 0 at infinity."""
    values = np.zeros((n, len(z)))
    inside = np.isfinite(z)
    z = z[inside]
    inner = np.zeros((n, len(z)))
    inner[0] = _density(z)
    inner[1] = z * inner[0]
    for k in range(1, n - 1):
        inner[k + 1] = (z * inner[k] - np.sqrt(k) * inner[k - 1]) / np.sqrt(k + 1)
    values[:, inside] = inner
    return values
