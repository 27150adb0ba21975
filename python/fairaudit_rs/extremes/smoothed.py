"""Generates rows by the smoothed bootstrap: draws with replacement, plus noise on numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..data.columns import list_some
from ..errors import ArgumentError, ArgumentTypeError, ColumnError, DataError
from ..literals import Bandwidth
from .mixed_columns import MixedRows, read_mixed
from .seeds import stream_of

Floats = NDArray[np.float64]

#: A number that at least this share of the rows repeats is an atom, such as a gain of 0.
ATOM_SHARE = 0.05


class SmoothedBootstrap:
    """Rows drawn with replacement, with kernel noise on numbers.

    Parameters
    ----------
    bandwidth : "silverman" or float
        Width of the Gaussian kernel in standard deviations of a column: Silverman's
        (4 / (d + 2))^(1 / (d + 4)) n^(-1 / (d + 4)) for d columns of numbers, or a number of at
        least 0 (the plain bootstrap).
    keep_moments : bool
        Whether the noisy values are shrunk towards the mean, so that mean and variance of a column
        stay the same. If not, the variance grows by a factor of 1 + bandwidth squared.
    switch : float
        The probability that a cell of a column of levels is replaced by a draw from that column,
        independent of the other columns. The default 0 keeps the levels of the drawn row, so that
        only observed combinations of levels occur.
    bounds : mapping, optional
        (low, high) for columns of numbers by name; None means no bound. Values beyond a bound are
        mirrored at it. Columns without bounds stay within their observed range.

    Notes
    -----
    For row i drawn, x* = m + (x_i - m + h s e) / sqrt(1 + h^2), with mean m, standard deviation s,
    and e normal with the correlation of the columns of numbers. Whole numbers are then rounded. A
    number that at least 5 % of the rows repeat is an atom and gets no noise; m and s are computed
    from the other rows. Numbers with at most ten distinct values are levels. Mirroring and rounding
    change mean and variance slightly.

    References
    ----------
    .. [1] B. W. Silverman, G. A. Young, "The bootstrap: to smooth or not to smooth?", Biometrika
       74, 1987. doi:10.1093/biomet/74.3.469

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs.extremes.smoothed import SmoothedBootstrap
    >>> rng = np.random.default_rng(0)
    >>> X = {"income": rng.exponential(size=500), "job": rng.choice(["clerk", "cook"], 500)}
    >>> rows = SmoothedBootstrap().fit(X, rng=1).sample(1_000, rng=2)
    >>> len(rows["income"]), bool((rows["income"] > 0).all())
    (1000, True)
    """

    def __init__(
        self,
        *,
        bandwidth: Bandwidth | float = "silverman",
        keep_moments: bool = True,
        switch: float = 0.0,
        bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
    ) -> None:
        self.bandwidth = _bandwidth(bandwidth)
        self.keep_moments = arguments.flag("keep_moments", keep_moments)
        self.switch = arguments.number(
            "switch", switch, "a probability from 0 to 1", lambda found: 0 <= found <= 1
        )
        if bounds is not None and not isinstance(bounds, Mapping):
            raise ArgumentTypeError(
                f"bounds is {bounds!r}; accepted: a dict of (low, high) by column, or None",
                argument="bounds",
            )
        self.bounds = dict(bounds or {})
        self._learned: _KernelFit | None = None

    def fit(self, X: Any, rng: Any = None, *, random_state: Any = None) -> SmoothedBootstrap:
        """Learn the rows of a frame.

        Parameters
        ----------
        X : frame or array
            Rows of mixed columns.
        rng : None, int, SeedSequence, Generator or RandomState
            Not used: fitting is not random; ``random_state`` is an alias.

        Returns
        -------
        SmoothedBootstrap
            This generator.

        Examples
        --------
        >>> from fairaudit_rs.extremes.smoothed import SmoothedBootstrap
        >>> generator = SmoothedBootstrap().fit({"age": [31, 45, 62]})
        >>> generator.sample(1, rng=0)["age"][0] in range(31, 63)
        True
        """
        rows = _bounded(read_mixed(X), self.bounds)
        self._learned = _KernelFit.from_rows(rows, self.bandwidth)
        return self

    def sample(self, n: int, rng: Any = None, *, random_state: Any = None) -> Any:
        """Return generated rows.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : None, int, SeedSequence, Generator or RandomState
            Source of the seed; ``random_state`` is an alias.

        Returns
        -------
        frame or array
            Of the same kind as the frame that was learned.

        Examples
        --------
        >>> from fairaudit_rs.extremes.smoothed import SmoothedBootstrap
        >>> generator = SmoothedBootstrap(bandwidth=0).fit({"age": [31, 45, 62]})
        >>> set(generator.sample(5, rng=0)["age"]) <= {31, 45, 62}
        True
        """
        n = arguments.check(n=n).n
        if self._learned is None:
            raise DataError("SmoothedBootstrap has learned no rows yet. Call fit before sample.")
        stream = stream_of(rng, random_state)
        values = self._learned.drawn(n, stream, keep_moments=self.keep_moments)
        if self.switch > 0:
            self._learned.switch(values, self.switch, stream)
        return self._learned.rows.frame(values)


@dataclass(frozen=True, eq=False, kw_only=True)
class _KernelFit:
    """The learned rows, with the distribution of the noise on their numbers."""

    rows: MixedRows
    #: Positions of the columns with noise; the fields below have an entry for each of them.
    noisy: NDArray[np.intp]
    #: By row and column, whether the value is an atom.
    at_atom: NDArray[np.bool_]
    mean: Floats
    spread: Floats
    #: A root of the correlation matrix.
    root: Floats
    width: float

    @classmethod
    def from_rows(cls, rows: MixedRows, bandwidth: float | None) -> _KernelFit:
        """Learn the noise of some rows; without a bandwidth, Silverman's is used."""
        noisy = rows.places("integers", "numbers")
        x = rows.values[:, noisy]
        n, d = x.shape
        at_atom = np.zeros((n, d), dtype=bool)
        mean, spread = np.zeros(d), np.zeros(d)
        for place, column in enumerate(x.T):
            at_atom[:, place] = find_atoms(column)
            free = column[~at_atom[:, place]]
            if len(free):
                mean[place], spread[place] = free.mean(), free.std()
        silverman = (4 / (d + 2)) ** (1 / (d + 4)) * float(n) ** (-1 / (d + 4))
        return cls(
            rows=rows,
            noisy=noisy,
            at_atom=at_atom,
            mean=mean,
            spread=spread,
            root=_root(x),
            width=silverman if bandwidth is None else bandwidth,
        )

    def drawn(self, n: int, stream: np.random.Generator, *, keep_moments: bool) -> Floats:
        """Draw the codes and numbers of n rows, with noise."""
        row = stream.integers(0, len(self.rows), n)
        found = self.rows.values[row]
        if not len(self.noisy) or self.width == 0:
            return found
        x = found[:, self.noisy]
        noise = stream.standard_normal(x.shape) @ self.root.T
        moved = x + self.width * self.spread * noise
        if keep_moments:
            moved = self.mean + (moved - self.mean) / np.sqrt(1 + self.width**2)
        moved = np.where(self.at_atom[row], x, moved)
        for place, column in enumerate(self.noisy):
            held = self.rows.columns[column]
            moved[:, place] = mirror_at_bounds(moved[:, place], held.low, held.high)
        found[:, self.noisy] = moved
        return found

    def switch(self, values: Floats, chance: float, stream: np.random.Generator) -> None:
        """Replace random cells of columns of levels by draws from these columns."""
        for place in self.rows.places("levels"):
            changed = np.flatnonzero(stream.random(len(values)) < chance)
            row = stream.integers(0, len(self.rows), len(changed))
            values[changed, place] = self.rows.values[row, place]


def find_atoms(column: Floats) -> NDArray[np.bool_]:
    """Return a mask of atoms: values of at least `ATOM_SHARE` of the rows, and of two rows."""
    _, place, count = np.unique(column, return_inverse=True, return_counts=True)
    return np.asarray((count >= max(2.0, ATOM_SHARE * len(column)))[place])


def mirror_at_bounds(x: Floats, low: float, high: float) -> Floats:
    """Mirror values beyond the bounds, then clip them to the bounds."""
    x = np.where(x < low, 2 * low - x, x) if np.isfinite(low) else x
    x = np.where(x > high, 2 * high - x, x) if np.isfinite(high) else x
    return np.clip(x, low, high)


def _root(x: Floats) -> Floats:
    """Return a root of the correlation matrix; constant columns are uncorrelated."""
    spread = x.std(axis=0)
    scaled = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    correlation = scaled.T @ scaled / max(len(x), 1)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _bandwidth(value: object) -> float | None:
    """Check a bandwidth in standard deviations; return None for Silverman's."""
    if isinstance(value, str) and value == "silverman":
        return None
    accepted = "'silverman', or a number of at least 0"
    return arguments.number("bandwidth", value, accepted, lambda found: 0 <= found < np.inf)


def _bounded(rows: MixedRows, bounds: Mapping[str, Any]) -> MixedRows:
    """Return rows whose columns of numbers have the bounds of the user."""
    names = [column.name for column in rows.columns]
    unknown = [name for name in bounds if name not in names]
    if unknown:
        raise ColumnError(
            f"bounds names {list_some(unknown)}; accepted: columns of X: {list_some(names)}",
            argument="bounds",
        )
    columns = list(rows.columns)
    for name, pair in bounds.items():
        place = names.index(name)
        column = columns[place]
        if column.kind == "levels":
            raise ArgumentError(
                f"bounds names column {name!r}, which has levels. Name only columns of more than "
                "ten distinct numbers.",
                argument="bounds",
            )
        try:
            low, high = (
                end if bound is None else float(bound)
                for bound, end in zip(pair, (-np.inf, np.inf), strict=True)
            )
        except (TypeError, ValueError):
            raise ArgumentTypeError(
                f"bounds of column {name!r} are {pair!r}; accepted: (low, high), None for no bound",
                argument="bounds",
            ) from None
        if not (low <= column.low and column.high <= high):
            raise ArgumentError(
                f"bounds of column {name!r} are {pair!r}, but its numbers go from {column.low:g} "
                f"to {column.high:g}. Pass bounds that include them.",
                argument="bounds",
            )
        columns[place] = replace(column, low=low, high=high)
    return replace(rows, columns=tuple(columns))
