"""Scores of rows, one or one for each class: what a gradient flow needs to know of a model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Scores(Protocol):
    """A function from rows to scores; its class decides how a flow follows them."""

    @property
    def n_scores(self) -> int:
        """How many a row has."""
        ...

    @property
    def n_features(self) -> int | None:
        """Of a row, None if any number will do."""
        ...

    def score_rows(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of rows, one column for each."""
        ...
