"""Targets of the scores: labels, classes or numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.equality import Value

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Targets(Value):
    """Labels 0 and 1, numbers of classes, or numbers, and the loss of scores for them."""

    values: Floats
    loss: str
    #: The score from which on the decision is 1; None with several scores, the largest decides.
    boundary: float | None

    def __len__(self) -> int:
        return len(self.values)

    def of_rows(self, chosen: Any) -> Targets:
        """Return the targets of some rows."""
        return replace(self, values=self.values[chosen])

    def wrong(self, scores: Floats) -> NDArray[np.bool_]:
        """Return which decisions are wrong, by scores (score by score) of all rows."""
        if self.boundary is None:
            return np.asarray(scores.argmax(axis=0) != self.values)
        return np.asarray((scores[0] >= self.boundary) != (self.values == 1))
