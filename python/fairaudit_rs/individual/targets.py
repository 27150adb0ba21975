"""The class `Targets`: the labels, classes or numbers that scores are compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.equality import EqualByValue

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Targets(EqualByValue):
    """Labels 0 and 1, class numbers, or numeric targets, and the loss of scores for them."""

    values: Floats
    loss: str
    #: The lowest score with decision 1; None with several scores, of which the largest decides.
    boundary: float | None

    def __len__(self) -> int:
        return len(self.values)

    def of_rows(self, chosen: Any) -> Targets:
        """Return the targets of some rows."""
        return replace(self, values=self.values[chosen])

    def wrong(self, scores: Floats) -> NDArray[np.bool_]:
        """Return which decisions are wrong, given scores of shape (scores per row, rows)."""
        if self.boundary is None:
            return np.asarray(scores.argmax(axis=0) != self.values)
        return np.asarray((scores[0] >= self.boundary) != (self.values == 1))
