"""The schedule of a flow: number and lengths of its steps, and which of them are recorded."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..literals import Solver

Floats = NDArray[np.float64]

#: The stability limit of each solver: the flow diverges if 2 lambda eta mu is larger.
SOLVERS: dict[Solver, float] = {"euler": 2.0, "heun": 2.0, "rk4": 2.785293563405282}


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Steps of length ``size / t**decay``, and the steps after which scores are recorded."""

    n_steps: int
    size: float
    decay: float
    solver: Solver
    record: tuple[int, ...]

    @classmethod
    def from_arguments(
        cls, n_steps: int, size: float, decay: float, solver: Solver, n_points: int
    ) -> Schedule:
        """Return a schedule that records this many points, with the start and the end."""
        record = np.unique(np.round(np.linspace(0, n_steps, n_points)).astype(int))
        return cls(
            n_steps=n_steps, size=size, decay=decay, solver=solver, record=tuple(record.tolist())
        )

    def ends(self) -> Schedule:
        """Return the same steps, recorded only at the start and the end."""
        return replace(self, record=(0, self.n_steps))

    @cached_property
    def native(self) -> _native.Schedule:
        """The schedule as an object of the native module."""
        return _native.Schedule(
            self.n_steps,
            self.size,
            decay=self.decay,
            solver=self.solver,
            record=list(self.record),
        )

    def steps_above(self, stability: float, limit: float) -> int:
        """Return how many of the first steps are too long for a limit of the stability."""
        if stability <= limit * (1 + 1e-9):
            return 0
        excess = math.log(stability / limit)
        if excess >= self.decay * math.log(self.n_steps + 1):
            return self.n_steps
        return int(min(self.n_steps, math.ceil(math.exp(excess / self.decay)) - 1))

    def times(self) -> Floats:
        """Return the time of each recorded step: the sum of the lengths of the steps up to it."""
        lengths = self.size / np.arange(1, self.n_steps + 1) ** self.decay
        reached: Floats = np.concatenate([[0.0], np.cumsum(lengths)])
        return reached[list(self.record)]
