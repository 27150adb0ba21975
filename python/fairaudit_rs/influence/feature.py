"""Describe a feature: its kind, its levels, and its columns in the matrix of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..data.equality import EqualByValue

Floats = NDArray[np.float64]
Kind = Literal["binary", "categorical", "continuous"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Feature(EqualByValue):
    """A feature (or a set of columns that form one), with the positions of its columns."""

    name: str
    kind: Kind
    #: The positions of its columns in the matrix.
    columns: tuple[int, ...]
    #: The levels of a categorical feature, or the two values of a binary one.
    levels: tuple[str, ...] = ()
