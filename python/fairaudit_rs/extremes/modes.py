"""Encodes rows for a network: a mode and a position within it for numbers, a flag for each level.

This is the mode-specific normalisation of Xu et al. (2019) with another mixture: the number of
normal laws is chosen by the Bayesian information criterion, and each atom is a separate mode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .mixed_columns import MixedRows
from .smoothed import find_atoms

Floats = NDArray[np.float64]

#: Numbers of normal laws that are tried, and the most steps of the search for each of them.
_TRIED = (1, 2, 3, 5, 8)
_MOST_STEPS = 200
_CONVERGED = 1e-6
#: The most points of the search; with more rows, they are means of neighbouring values.
_MOST_POINTS = 1_000
#: The smallest spread of a normal law, as a part of the column's standard deviation.
_NARROWEST = 1e-3
#: A position of 1 within a mode is this many standard deviations from its mean.
REACH = 4.0
#: The most levels of one column for a network.
MOST_LEVELS = 500


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnModes:
    """The modes of a column of numbers: normal laws, and atoms, whose spread is 0."""

    share: Floats
    mean: Floats
    spread: Floats

    @classmethod
    def from_column(cls, column: Floats) -> ColumnModes:
        """Find the modes of a column of numbers."""
        at_atom = find_atoms(column)
        fixed, count = np.unique(column[at_atom], return_counts=True)
        loose = column[~at_atom]
        share, mean, spread = _mixture(loose) if len(loose) else (np.empty(0),) * 3
        return cls(
            share=np.r_[count / len(column), share * len(loose) / len(column)],
            mean=np.r_[fixed, mean],
            spread=np.r_[np.zeros(len(fixed)), spread],
        )

    def chances(self, column: Floats) -> Floats:
        """Return the probability of each mode for every number; at an atom's value it is 1."""
        loose = self.spread > 0
        logs = np.full((len(column), len(self.mean)), -np.inf)
        if loose.any():
            logs[:, loose] = _log_parts(
                column, self.share[loose], self.mean[loose], self.spread[loose]
            )
        own = (column[:, None] == self.mean) & ~loose
        is_atom = own.any(axis=1)
        logs[is_atom] = np.where(own[is_atom], 0.0, -np.inf)
        parts = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(parts / parts.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ColumnBlock:
    """Where an encoded row has a column: its position within a mode (numbers only), then flags."""

    start: int
    n_flags: int
    modes: ColumnModes | None

    @property
    def flags(self) -> slice:
        """The flags of modes or levels."""
        first = self.start + (self.modes is not None)
        return slice(first, first + self.n_flags)


@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """The layout of an encoded row: the blocks of all columns, one after the other."""

    blocks: tuple[ColumnBlock, ...]

    @classmethod
    def from_rows(cls, rows: MixedRows) -> ColumnLayout:
        """Lay out the columns of some rows."""
        blocks: list[ColumnBlock] = []
        start = 0
        for place, column in enumerate(rows.columns):
            n_flags = len(column.labels)
            modes = None
            if column.kind == "levels" and n_flags > MOST_LEVELS:
                raise DataError(
                    f"column {column.name!r} of X has {n_flags:,} levels; TVAE takes at most "
                    f"{MOST_LEVELS}. Merge rare levels.",
                    argument="X",
                    code="too-many-values",
                )
            if column.kind != "levels":
                modes = ColumnModes.from_column(rows.values[:, place])
                n_flags = len(modes.mean)
            blocks.append(ColumnBlock(start, n_flags, modes))
            start += n_flags + (modes is not None)
        return cls(tuple(blocks))

    @property
    def width(self) -> int:
        """Number of entries of an encoded row."""
        return int(self.blocks[-1].flags.stop)

    def encoded(self, values: Floats, stream: np.random.Generator) -> Floats:
        """Encode rows for the network; the mode of a number is drawn by its probabilities."""
        encoded = np.zeros((len(values), self.width))
        rows = np.arange(len(values))
        for block, column in zip(self.blocks, values.T, strict=True):
            if block.modes is None:
                mode = column.astype(np.intp)
            else:
                edges = np.cumsum(block.modes.chances(column), axis=1)
                above = stream.random(len(column))[:, None] >= edges[:, :-1]
                mode = above.sum(axis=1)
                spread = block.modes.spread[mode]
                deviation = column - block.modes.mean[mode]
                place = np.divide(
                    deviation, REACH * spread, out=np.zeros_like(deviation), where=spread > 0
                )
                encoded[:, block.start] = np.clip(place, -1.0, 1.0)
            encoded[rows, block.flags.start + mode] = 1.0
        return encoded

    def decoded(self, outputs: Floats, noise: Floats, stream: np.random.Generator) -> Floats:
        """Draw rows from the outputs of a network: positions in (-1, 1), and logits of flags.

        `noise` has, for each column of numbers, the standard deviation of its position.
        """
        values = np.empty((len(outputs), len(self.blocks)))
        for number, block in enumerate(self.blocks):
            logits = outputs[:, block.flags]
            mode = (logits + stream.gumbel(size=logits.shape)).argmax(axis=1)
            if block.modes is None:
                values[:, number] = mode
                continue
            place = outputs[:, block.start] + noise[number] * stream.standard_normal(len(outputs))
            reach = REACH * block.modes.spread[mode]
            values[:, number] = block.modes.mean[mode] + reach * np.clip(place, -1.0, 1.0)
        return values


def _log_parts(x: Floats, share: Floats, mean: Floats, spread: Floats) -> Floats:
    """Return the log density of each weighted normal law, by row and law."""
    z = (x[:, None] - mean) / spread
    return np.asarray(np.log(share) - np.log(spread) - z**2 / 2 - np.log(2 * np.pi) / 2)


def _mixture(x: Floats) -> tuple[Floats, Floats, Floats]:
    """Return shares, means and spreads of the mixture with the smallest information criterion."""
    scale = float(x.std())
    if scale == 0:
        return np.ones(1), x[:1].copy(), np.zeros(1)
    n_rows = len(x)
    edges = np.linspace(0, n_rows, min(n_rows, _MOST_POINTS) + 1).astype(np.intp)
    count = np.diff(edges).astype(np.float64)
    points = np.add.reduceat(np.sort(x), edges[:-1]) / count
    best, best_law = np.inf, (np.ones(1), np.array([x.mean()]), np.array([scale]))
    for n in _TRIED:
        if 5 * n > n_rows:
            break
        loss, law = _fit_mixture(points, count, n, scale)
        criterion = 2 * loss + (3 * n - 1) * np.log(n_rows)
        if criterion < best:
            best, best_law = criterion, law
    return best_law


def _fit_mixture(
    x: Floats, rows: Floats, n: int, scale: float
) -> tuple[float, tuple[Floats, Floats, Floats]]:
    """Fit a mixture of n normal laws by expectation-maximisation; return its loss and parameters.

    The search starts at quantiles. `rows` has the number of rows that each point of x represents.
    """
    mean = np.quantile(x, (np.arange(n) + 0.5) / n)
    share, spread = np.full(n, 1 / n), np.full(n, scale / n)
    before = np.inf
    for _ in range(_MOST_STEPS):
        logs = _log_parts(x, share, mean, spread)
        top = logs.max(axis=1)
        parts = np.exp(logs - top[:, None])
        total = parts.sum(axis=1)
        loss = -float((rows * (top + np.log(total))).sum())
        if before - loss < _CONVERGED * rows.sum():
            break
        before = loss
        parts *= (rows / total)[:, None]
        count = np.maximum(parts.sum(axis=0), 1e-9)
        share = count / count.sum()
        # Without BLAS, whose sums over rows depend on the number of threads.
        mean = np.einsum("i,ij->j", x, parts) / count
        variance = ((x[:, None] - mean) ** 2 * parts).sum(axis=0) / count
        spread = np.sqrt(np.maximum(variance, (_NARROWEST * scale) ** 2))
    return loss, (share, mean, spread)
