"""Generates rows of mixed columns by a Gaussian copula that keeps the columns' distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..errors import DataError
from .column_law import DEGREE, ColumnLaw
from .mixed_columns import MixedRows, read_mixed
from .seeds import stream_of
from .smoothed import find_atoms

Floats = NDArray[np.float64]

#: The largest correlation in absolute value: at 1 the series does not converge.
_CLOSEST = 0.999
_HALVINGS = 40
#: The smallest eigenvalue of the correlation matrix that rows are drawn with.
_LEAST = 1e-6
_MOST_PROJECTIONS = 200


class GaussianCopula:
    """A generator that keeps the law of each column and the correlations between columns.

    Each column is a function of a hidden standard normal number. Numbers have their empirical law,
    interpolated between observed values; a number that at least 5 % of the rows repeat is an atom
    (a gain that is 0 for most); whole numbers stay whole. Levels of text keep their shares and are
    ordered by frequency, the most frequent first.

    Attributes
    ----------
    correlation : ndarray
        Correlations of the hidden numbers, in the order of the columns; None before `fit`.
    shift : float
        The largest change of a correlation that made the matrix positive definite.

    Notes
    -----
    A row's score is its hidden number where that is known (normal scores at mid-ranks); for an atom
    or level it is the mean hidden number over the interval that it covers. The mean product of the
    scores of two columns is sum_k r^k a_k b_k with the hidden correlation r and Hermite
    coefficients a, b of their scores [1]_; r solves this equation. For two columns of two levels it
    is the tetrachoric correlation. The nearest correlation matrix is found by alternating
    projections [2]_.

    The copula misses dependence that does not follow the order of the levels, and dependence in
    joint tails, where its columns are independent.

    References
    ----------
    .. [1] G. Masarotto, C. Varin, "Gaussian copula marginal regression", Electronic Journal of
       Statistics 6, 2012. doi:10.1214/12-EJS721
    .. [2] N. J. Higham, "Computing the nearest correlation matrix: a problem from finance", IMA
       Journal of Numerical Analysis 22, 2002. doi:10.1093/imanum/22.3.329

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs.extremes.copula import GaussianCopula
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(20, 60, 800)
    >>> X = {"age": age, "retired": age + rng.normal(0, 5, 800) > 50}
    >>> copula = GaussianCopula().fit(X)
    >>> bool(copula.correlation[0, 1] > 0.8)
    True
    >>> rows = copula.sample(2, rng=1)
    >>> rows["age"].dtype == age.dtype, rows["retired"].dtype
    (True, dtype('bool'))
    """

    def __init__(self) -> None:
        self.correlation: Floats | None = None
        self.shift = 0.0
        self._learned: _CopulaFit | None = None

    def fit(self, X: Any, rng: Any = None, *, random_state: Any = None) -> GaussianCopula:
        """Learn the rows of a frame.

        Parameters
        ----------
        X : frame or array
            Rows of mixed columns.
        rng : None, int, SeedSequence, Generator or RandomState
            Not used: fitting is not random; ``random_state`` is an alias.

        Returns
        -------
        GaussianCopula
            This generator.

        Examples
        --------
        >>> from fairaudit_rs.extremes.copula import GaussianCopula
        >>> GaussianCopula().fit({"age": [31, 45, 62], "paid": [1.5, 2.5, 4.0]}).correlation.shape
        (2, 2)
        """
        rows = read_mixed(X)
        orders = [_by_frequency(rows, place) for place in range(len(rows.columns))]
        margins = [_margin(rows, place, order) for place, order in enumerate(orders)]
        hidden = _hidden_correlations(margins, len(rows))
        self.correlation = nearest_correlation(hidden)
        self.shift = float(np.abs(self.correlation - hidden).max())
        self._learned = _CopulaFit(rows, margins, orders, _root(self.correlation))
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
        >>> from fairaudit_rs.extremes.copula import GaussianCopula
        >>> copula = GaussianCopula().fit({"paid": [1.5, 2.5, 4.0]})
        >>> bool((1.5 <= copula.sample(100, rng=0)["paid"][0] <= 4.0))
        True
        """
        n = arguments.check(n=n).n
        if self._learned is None:
            raise DataError("GaussianCopula has learned no rows yet. Call fit before sample.")
        return self._learned.drawn(n, stream_of(rng, random_state))


@dataclass(frozen=True, eq=False)
class _CopulaFit:
    """The laws of columns, the order of their levels, and a root of their correlation."""

    rows: MixedRows
    margins: list[ColumnLaw]
    orders: list[NDArray[np.intp]]
    root: Floats

    def drawn(self, n: int, stream: np.random.Generator) -> Any:
        """Return n rows."""
        hidden = stream.standard_normal((n, len(self.margins))) @ self.root.T
        values = np.empty_like(hidden)
        for place, margin in enumerate(self.margins):
            values[:, place] = margin.at(hidden[:, place])
            if self.rows.columns[place].kind == "levels":
                rank = np.rint(values[:, place]).astype(np.intp)
                values[:, place] = self.orders[place][rank]
        return self.rows.frame(values)


def _root(correlation: Floats) -> Floats:
    return np.asarray(np.linalg.cholesky(correlation), dtype=np.float64)


def _by_frequency(rows: MixedRows, place: int) -> NDArray[np.intp]:
    """Return the codes of text by descending frequency; codes of other columns keep their order."""
    column = rows.columns[place]
    n_levels = len(column.labels)
    if column.of_numbers or n_levels <= 2:
        return np.arange(n_levels)
    count = np.bincount(rows.values[:, place].astype(np.intp), minlength=n_levels)
    return np.argsort(-count, kind="stable")


def _margin(rows: MixedRows, place: int, order: NDArray[np.intp]) -> ColumnLaw:
    """Return the law of a column, with levels as atoms."""
    values = rows.values[:, place]
    if rows.columns[place].kind != "levels":
        return ColumnLaw.from_column(values, find_atoms(values))
    rank = np.argsort(order)[values.astype(np.intp)]
    return ColumnLaw.from_column(rank.astype(np.float64), np.ones(len(values), dtype=bool))


def _hidden_correlations(margins: list[ColumnLaw], n: int) -> Floats:
    """Return the hidden correlations that explain the mean products of scores, by bisection.

    sum_k r^k a_k b_k increases with r in the relevant range; a product that it cannot reach gives
    the largest or the smallest correlation.
    """
    scores = np.column_stack([margin.scores for margin in margins])
    hermite = np.array([margin.hermite for margin in margins])
    products = scores.T @ scores / n
    weights = hermite[:, None, :] * hermite[None, :, :]
    # The empirical variance of the scores is slightly below the theoretical one.
    variance = np.array([margin.variance for margin in margins])
    rescaling = np.sqrt(variance.clip(0.0) / products.diagonal().clip(1e-12))
    products = products * np.outer(rescaling, rescaling)
    low, high = np.full(products.shape, -_CLOSEST), np.full(products.shape, _CLOSEST)
    degrees = np.arange(1, DEGREE + 1)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = (weights * middle[..., None] ** degrees).sum(axis=-1) > products
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    correlations = np.where(np.abs(products) > 0, (low + high) / 2, 0.0)
    # A constant column has no correlation with others.
    constant = variance < 1e-12
    correlations[constant] = correlations[:, constant] = 0.0
    np.fill_diagonal(correlations, 1.0)
    return np.asarray((correlations + correlations.T) / 2)


def nearest_correlation(matrix: Floats) -> Floats:
    """Return the nearest correlation matrix whose eigenvalues are at least a millionth."""
    nearest, correction = matrix.copy(), np.zeros_like(matrix)
    for _ in range(_MOST_PROJECTIONS):
        values, vectors = np.linalg.eigh(nearest)
        if values[0] >= _LEAST * (1 - 1e-9):
            return nearest
        moved = nearest - correction
        values, vectors = np.linalg.eigh(moved)
        projected = (vectors * np.maximum(values, 2 * _LEAST)) @ vectors.T
        correction = projected - moved
        nearest = (projected + projected.T) / 2
        np.fill_diagonal(nearest, 1.0)
    values, vectors = np.linalg.eigh(nearest)
    projected = (vectors * np.maximum(values, 2 * _LEAST)) @ vectors.T
    scale = np.sqrt(projected.diagonal())
    return np.asarray(projected / np.outer(scale, scale))
