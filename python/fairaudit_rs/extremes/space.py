"""Reads the space of settings of a search, and draws settings from it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import numpy as np

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import SamplerName

Settings = dict[str, Any]

SAMPLERS: tuple[SamplerName, ...] = get_args(SamplerName)
_ACCEPTED = (
    "a list of values, (low, high), (low, high, 'log'), a distribution with rvs, or a function of "
    "a random generator"
)


@dataclass(frozen=True)
class Range:
    """Numbers between two ends; whole numbers if both ends are whole."""

    low: float
    high: float
    log: bool
    whole: bool

    def draw(self, stream: np.random.Generator) -> float:
        """Draw a number, uniformly on the scale of the range."""
        if self.whole and not self.log:
            return int(stream.integers(int(self.low), int(self.high), endpoint=True))
        if not self.log:
            return float(stream.uniform(self.low, self.high))
        # A whole number has the probability of the interval half a step around it.
        half = 0.5 if self.whole else 0.0
        low, high = math.log(self.low - half), math.log(self.high + half)
        value = math.exp(stream.uniform(low, high))
        if self.whole:
            return min(max(round(value), int(self.low)), int(self.high))
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Choice:
    """Values of a list."""

    values: tuple[Any, ...]

    def draw(self, stream: np.random.Generator) -> Any:
        """Draw one of the values."""
        return self.values[int(stream.integers(len(self.values)))]


@dataclass(frozen=True)
class DrawFunction:
    """A distribution or user function that draws values."""

    function: Callable[[np.random.Generator], Any]

    def draw(self, stream: np.random.Generator) -> Any:
        """Draw a value; NumPy scalars become Python numbers."""
        value = self.function(stream)
        return value.item() if isinstance(value, np.generic) else value


Axis = Range | Choice | DrawFunction


def read_space(space: object) -> dict[str, Axis]:
    """Return the axes of a space by name."""
    if not isinstance(space, Mapping):
        raise ArgumentTypeError(
            f"space is a {type(space).__name__}; accepted: a dict by the names of settings",
            argument="space",
        )
    if not space:
        raise ArgumentError(
            f"space is empty. Add at least one setting, as {_ACCEPTED}.", argument="space"
        )
    for name in space:
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"space has the name {name!r}; accepted: names as text", argument="space"
            )
    return {name: _axis(name, given) for name, given in space.items()}


def _axis(name: str, axis: Any) -> Axis:
    if isinstance(axis, list):
        if not axis:
            raise ArgumentError(
                f"space[{name!r}] is an empty list; accepted: {_ACCEPTED}", argument="space"
            )
        return Choice(tuple(axis))
    if isinstance(axis, tuple):
        return _range(name, axis)
    if hasattr(axis, "rvs"):
        return DrawFunction(lambda stream: axis.rvs(random_state=stream))
    if callable(axis):
        return DrawFunction(axis)
    raise ArgumentTypeError(f"space[{name!r}] is {axis!r}; accepted: {_ACCEPTED}", argument="space")


def _range(name: str, ends: tuple[Any, ...]) -> Range:
    log = len(ends) == 3 and ends[2] == "log"
    if len(ends) != 2 and not log:
        raise ArgumentError(f"space[{name!r}] is {ends!r}; accepted: {_ACCEPTED}", argument="space")
    low, high = (arguments.finite(f"space[{name!r}]", end) for end in ends[:2])
    whole = all(isinstance(end, int | np.integer) for end in ends[:2])
    if not low < high or (log and low <= 0):
        accepted = "0 < low < high" if log else "low < high"
        raise ArgumentError(f"space[{name!r}] is {ends!r}; accepted: {accepted}", argument="space")
    return Range(low, high, log, whole)


class Sampler(Protocol):
    """The protocol of samplers, which propose settings and receive their results."""

    #: Number of settings to try.
    n_settings: int

    def ask(self, trial: int) -> Settings:
        """Return the settings of a trial."""
        ...

    def tell(self, trial: int, ecd: float, accuracy: float) -> None:
        """Receive the results of a trial; NaN if they could not be measured."""
        ...


class RandomSampler:
    """Draws each setting at random from its own stream, or lists a small grid in order."""

    def __init__(self, space: Mapping[str, Axis], n_settings: int, seed: int) -> None:
        self._space, self._seed = space, seed
        choices = [axis.values for axis in space.values() if isinstance(axis, Choice)]
        n_grid = math.prod(map(len, choices)) if len(choices) == len(space) else math.inf
        self._grid: Sequence[tuple[Any, ...]] = ()
        if n_grid <= n_settings:
            self._grid = list(itertools.product(*choices))
        self.n_settings = len(self._grid) or n_settings

    def ask(self, trial: int) -> Settings:
        """Return the settings of a trial."""
        if self._grid:
            return dict(zip(self._space, self._grid[trial], strict=True))
        stream = stream_of(self._seed, trial)
        return {name: axis.draw(stream) for name, axis in self._space.items()}

    def tell(self, trial: int, ecd: float, accuracy: float) -> None:
        """Ignore the results of a trial."""


class OptunaSampler:
    """Lets optuna propose settings for a small ECD and a high accuracy."""

    def __init__(self, space: Mapping[str, Axis], n_settings: int, seed: int) -> None:
        try:
            import optuna
        except ImportError:
            raise ArgumentError(
                "sampler is 'optuna', which is not installed. Install it (pip install optuna), or "
                "pass sampler='random'.",
                argument="sampler",
            ) from None
        self._optuna, self._space, self.n_settings = optuna, space, n_settings
        self._axes = {name: self._distribution(name, axis) for name, axis in space.items()}
        tree = optuna.samplers.TPESampler(seed=seed % 2**32)
        self._study = optuna.create_study(directions=["minimize", "maximize"], sampler=tree)
        self._asked: dict[int, Any] = {}

    def _distribution(self, name: str, axis: Axis) -> Any:
        kinds = self._optuna.distributions
        if isinstance(axis, Choice):
            # Positions, because optuna takes only plain values.
            return kinds.CategoricalDistribution(tuple(range(len(axis.values))))
        if isinstance(axis, Range) and axis.whole:
            return kinds.IntDistribution(int(axis.low), int(axis.high), log=axis.log)
        if isinstance(axis, Range):
            return kinds.FloatDistribution(axis.low, axis.high, log=axis.log)
        raise ArgumentTypeError(
            f"space[{name!r}] is drawn by a function, which sampler='optuna' does not support; "
            "accepted: a list of values, (low, high), or (low, high, 'log')",
            argument="space",
            mentions=("sampler",),
        )

    def ask(self, trial: int) -> Settings:
        """Return the settings of a trial."""
        self._asked[trial] = self._study.ask(self._axes)
        given = self._asked[trial].params
        return {
            name: axis.values[given[name]] if isinstance(axis, Choice) else given[name]
            for name, axis in self._space.items()
        }

    def tell(self, trial: int, ecd: float, accuracy: float) -> None:
        """Pass the results of a trial to optuna."""
        asked = self._asked.pop(trial)
        if math.isnan(ecd):
            self._study.tell(asked, state=self._optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(asked, [ecd, accuracy])


def stream_of(seed: int, series: int) -> np.random.Generator:
    """Return the random generator of a numbered series: a trial, or another use."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, series], dtype=np.uint64)))
