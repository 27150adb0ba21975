"""Features as columns of numbers: 0 and 1, one column for each level, or a number per row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..data.equality import Value

Floats = NDArray[np.float64]
Kind = Literal["binary", "categorical", "continuous"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Feature(Value):
    """A feature, or a set of columns that are one: where its columns are, and what they mean."""

    name: str
    kind: Kind
    #: Places of its columns in the matrix.
    columns: tuple[int, ...]
    #: What the columns stand for: levels of a categorical feature, the two values of a binary one.
    levels: tuple[str, ...] = ()
