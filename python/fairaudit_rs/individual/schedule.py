"""The steps of a flow: how many, how long, and which of them are kept."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..literals import Solver

Floats = NDArray[np.float64]

#: Each solver with the 2 lambda eta mu from which on it blows up.
SOLVERS: dict[Solver, float] = {"euler": 2.0, "heun": 2.0, "rk4": 2.785293563405282}


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Steps of length ``size / t**decay``, and after which of them scores are kept."""

    n_steps: int
    size: float
    decay: float
    solver: Solver
    record: tuple[int, ...]

    @classmethod
    def from_arguments(
        cls, n_steps: int, size: float, decay: float, solver: Solver, n_points: int
    ) -> Schedule:
        """Return a schedule that looks at the flow so many times, at the start and the end too."""
        record = np.unique(np.round(np.linspace(0, n_steps, n_points)).astype(int))
        return cls(
            n_steps=n_steps, size=size, decay=decay, solver=solver, record=tuple(record.tolist())
        )

    def ends(self) -> Schedule:
        """Return the same steps, looked at before the first and after the last one."""
        return replace(self, record=(0, self.n_steps))

    @cached_property
    def native(self) -> _native.Schedule:
        """As the native module takes it."""
        return _native.Schedule(
            self.n_steps,
            self.size,
            decay=self.decay,
            solver=self.solver,
            record=list(self.record),
        )

    def steps_above(self, stability: float, limit: float) -> int:
        """Return how many steps, the first ones, are too long for a limit of the stability."""
        if stability <= limit * (1 + 1e-9):
            return 0
        excess = math.log(stability / limit)
        if excess >= self.decay * math.log(self.n_steps + 1):
            return self.n_steps
        return int(min(self.n_steps, math.ceil(math.exp(excess / self.decay)) - 1))

    def times(self) -> Floats:
        """Return the time that the flow has reached at each recorded step: the sum of steps."""
        lengths = self.size / np.arange(1, self.n_steps + 1) ** self.decay
        reached: Floats = np.concatenate([[0.0], np.cumsum(lengths)])
        return reached[list(self.record)]
