"""The protocol of score functions, which is all that a gradient flow needs of a model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Scores(Protocol):
    """A function from rows to scores; its class decides how a flow is computed."""

    @property
    def n_scores(self) -> int:
        """The number of scores of a row."""
        ...

    @property
    def n_features(self) -> int | None:
        """The number of features of a row; None if it can be any."""
        ...

    def score_rows(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of rows, one column per score."""
        ...
