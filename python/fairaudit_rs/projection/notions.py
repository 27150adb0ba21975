"""Define notions of fairness as criteria that must be 0: the tuple (U, phi) of Si et al. (2021)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.equality import EqualByValue
from ..errors import ArgumentError, ArgumentTypeError, DataError

#: The labels for which the rates of the groups must be equal; None: all rows together.
NOTIONS: dict[str, tuple[int | None, ...]] = {
    "statistical_parity": (None,),
    "equal_opportunity": (1,),
    "predictive_equality": (0,),
    "equalized_odds": (1, 0),
}
ALIASES = {
    "demographic_parity": "statistical_parity",
    "equality_of_opportunity": "equal_opportunity",
}
#: The name of the rate of rows with a label.
RATES = {None: "selection_rate", 1: "true_positive_rate", 0: "false_positive_rate"}

Array = NDArray[np.float64]
Phi = Callable[[Array, Array], ArrayLike]


@dataclass(frozen=True, eq=False)
class Notion(EqualByValue):
    """A user-defined notion: a model is fair if ``E[C(X) phi(U, E[U])]`` is 0.

    Parameters
    ----------
    phi : array (rows x criteria), or callable of (U, mean of U)
        The contribution of a positive decision of each row to each criterion. An array has the
        values at the mean of ``U``.
    U : array (rows x s), optional
        The statistics whose means phi depends on. Without it phi is taken as known.
    derivative : array (rows x criteria x s), or callable of (U, mean of U), optional
        The derivative of phi by the mean of ``U``, for the variance that comes from estimated
        means. Computed by central differences if phi is a callable; required if phi is an array
        and ``U`` is given.
    strata : array, optional
        With ``calibration="permutation"`` decisions are permuted within strata (for equal
        opportunity: within labels). Pass strata within which the decisions of a fair model do not
        depend on phi. Without strata all rows are permuted, and gaps are rescaled to the covariance
        of the data; the level is then only asymptotic.
    names : sequence of str, optional
        Names of the criteria.
    name : str
        Name of the notion.

    Examples
    --------
    >>> import numpy as np, fairaudit_rs as fa
    >>> a = np.array([1, 1, 0, 0, 0])
    >>> U = np.stack([a == 1, a == 0], axis=1).astype(float)
    >>> parity = fa.Notion(lambda U, mean: U[:, :1] / mean[0] - U[:, 1:] / mean[1], U)
    >>> parity.evaluate(np.array([1, 0, 1, 0, 0]), None).gap.round(3)
    array([0.167])
    """

    phi: Any
    U: Any = None
    derivative: Any = None
    strata: Any = None
    names: Sequence[str] | None = None
    name: str = "notion"

    def evaluate(self, decisions: NDArray[Any], weight: Array | None) -> NotionValues:
        """Return phi, the criteria and their linearisation at these decisions."""
        n = len(decisions)
        share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
        statistics = None if self.U is None else _matrix("U", self.U, n)
        if callable(self.phi) and statistics is None:
            raise ArgumentTypeError(
                "phi is a function of U, but U is None. Pass U as an array.",
                argument="phi",
                mentions=("U",),
            )
        mean = None if statistics is None else share @ statistics
        phi = _matrix("phi", self._phi(statistics, mean), n)
        positive = decisions.astype(np.float64)
        influence = phi * positive[:, None]
        if statistics is not None:
            assert mean is not None
            jacobian = self._jacobian(statistics, mean, share * positive, phi.shape[1])
            influence = influence + statistics @ jacobian.T
        names = (
            tuple(self.names)
            if self.names is not None
            else tuple(f"criterion_{j + 1}" for j in range(phi.shape[1]))
        )
        if len(names) != phi.shape[1]:
            raise ArgumentError(
                f"names has {len(names)} entries; accepted: one for each of {phi.shape[1]} "
                "criteria",
                argument="names",
            )
        return NotionValues(phi, influence, share @ (phi * positive[:, None]), names)

    def _phi(self, statistics: Array | None, mean: Array | None) -> Any:
        return self.phi(statistics, mean) if callable(self.phi) else self.phi

    def _jacobian(self, statistics: Array, mean: Array, share: Array, m: int) -> Array:
        """Return the mean of C(X) times the derivative of phi, criteria x s."""
        n, s = statistics.shape
        if self.derivative is not None:
            values = self.derivative
            if callable(values):
                values = values(statistics, mean)
            value = _numbers("derivative", values)
            if value.shape != (n, m, s):
                raise ArgumentError(
                    f"derivative has the shape {value.shape}; accepted: (rows, criteria, columns "
                    f"of U), here {(n, m, s)}",
                    argument="derivative",
                )
            return np.asarray(np.einsum("i,ijk->jk", share, value))
        if not callable(self.phi):
            raise ArgumentError(
                "derivative is None, but phi is an array and U is given. Pass derivative=, or phi "
                "as a function of (U, mean).",
                argument="derivative",
                mentions=("phi", "U"),
            )
        columns = []
        for k in range(s):
            step = np.zeros(s)
            step[k] = 1e-5 * max(abs(mean[k]), 1e-3)
            up, down = (
                share @ _matrix("phi", self.phi(statistics, mean + sign * step), n)
                for sign in (1, -1)
            )
            columns.append((up - down) / (2 * step[k]))
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class NotionValues(EqualByValue):
    """The values of phi, the linearised criteria, and the gaps: the criteria themselves."""

    phi: Array
    influence: Array
    gap: Array
    names: tuple[str, ...]


def _numbers(name: str, value: Any) -> Array:
    try:
        return np.asarray(value, dtype=np.float64)
    except Exception as error:  # converting an arbitrary object may raise anything
        raise ArgumentTypeError(
            f"{name} is not an array of numbers: {error}", argument=name
        ) from None


def _matrix(name: str, value: Any, n: int) -> Array:
    array = _numbers(name, value)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != n or not array.shape[1]:
        raise DataError(
            f"{name} has the shape {array.shape}; accepted: one row for each of {n:,} data rows",
            argument=name,
        )
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise DataError(
            f"{name} is not finite in row {row}; accepted: finite numbers", argument=name
        )
    return array
