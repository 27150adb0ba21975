"""Generates rows by the conditional GAN of the package ctgan, which users install themselves."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError, DataError
from .mixed_columns import MixedRows, read_mixed
from .seeds import child_seed

#: Number of seeds of NumPy's legacy generator, which ctgan uses.
_SEEDS = 2**32


class CTGAN:
    """Rows by the package ``ctgan`` [1]_, which you install yourself (``pip install ctgan``).

    It is neither a requirement nor an extra of this package: its licence (Business Source License)
    does not allow every use. `TVAE` needs only torch.

    Parameters
    ----------
    n_epochs : int
        Number of passes over the rows in training.
    options : mapping, optional
        Further arguments of ``ctgan.CTGAN``, such as ``{"batch_size": 200, "pac": 1}``.

    Attributes
    ----------
    losses : ndarray or None
        The losses of generator and discriminator in each epoch, as reported by ctgan.

    Notes
    -----
    Text, booleans and numbers with few distinct values are discrete columns. Whole numbers are
    rounded, and numbers stay within the observed range. Training runs on the CPU unless ``options``
    ask for a GPU. A seed reproduces the rows on one machine with the same number of threads.

    References
    ----------
    .. [1] L. Xu, M. Skoularidou, A. Cuesta-Infante, K. Veeramachaneni, "Modeling tabular data using
       conditional GAN", NeurIPS 2019. arXiv:1907.00503

    Examples
    --------
    >>> from fairaudit_rs.extremes.ctgan import CTGAN
    >>> generator = CTGAN(n_epochs=100, options={"batch_size": 200})
    >>> generator.losses is None
    True
    """

    def __init__(self, *, n_epochs: int = 300, options: Mapping[str, Any] | None = None) -> None:
        self.n_epochs = arguments.check(n_epochs=n_epochs).n_epochs
        if options is not None and not isinstance(options, Mapping):
            raise ArgumentTypeError(
                f"options is {options!r}; accepted: a dict of arguments of ctgan.CTGAN, or None",
                argument="options",
            )
        self.options = dict(options or {})
        self.losses: NDArray[np.float64] | None = None
        self._learned: _CtganFit | None = None

    def fit(self, X: Any, rng: Any = None, *, random_state: Any = None) -> CTGAN:
        """Learn the rows of a frame.

        Parameters
        ----------
        X : frame or array
            Rows of mixed columns.
        rng : None, int, SeedSequence, Generator or RandomState
            Source of the seed; ``random_state`` is an alias.

        Returns
        -------
        CTGAN
            This generator.
        """
        seed = arguments.check(rng=rng, random_state=random_state).seed
        package = _package()
        rows = read_mixed(X)
        model = package.CTGAN(**{"enable_gpu": False, "epochs": self.n_epochs, **self.options})
        model.set_random_state(child_seed(seed) % _SEEDS)
        model.fit(rows.values, rows.places("levels").tolist())
        table = model.loss_values
        names = [name for name in table.columns if "Loss" in name]
        self.losses = np.asarray(table[names], dtype=np.float64)
        self._learned = _CtganFit(rows, model)
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
        """
        checked = arguments.check(n=n, rng=rng, random_state=random_state)
        if self._learned is None:
            raise DataError("CTGAN has learned no rows yet. Call fit before sample.")
        self._learned.model.set_random_state(child_seed(checked.seed) % _SEEDS)
        values = np.asarray(self._learned.model.sample(checked.n), dtype=np.float64)
        return self._learned.rows.frame(values)


@dataclass(frozen=True, eq=False)
class _CtganFit:
    """The rows that were learned, and the model of ctgan."""

    rows: MixedRows
    model: Any


def _package() -> Any:
    """Return the package ctgan."""
    try:
        return importlib.import_module("ctgan")
    except ImportError as error:
        raise ArgumentError(
            f"generator is 'ctgan', but the package ctgan cannot be imported ({error}). Install it "
            "(pip install ctgan; check its licence), or pass 'tvae', 'copula' or 'bootstrap'.",
            argument="generator",
        ) from error
