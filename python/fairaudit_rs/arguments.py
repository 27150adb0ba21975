"""Checks of arguments that all lenses share. A message names the argument and its value."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, ArgumentTypeError

ProgressCallback = Callable[[int, int], object]

MAX_RESAMPLES = 100_000_000


def choice(name: str, value: object, accepted: Iterable[str]) -> str:
    """Return the value when it is one of the accepted words."""
    accepted = list(accepted)
    if isinstance(value, str) and value in accepted:
        return value
    raise ArgumentError(f"{name} is {value!r}; accepted: {', '.join(map(repr, accepted))}")


def count(name: str, value: object, low: int, high: int) -> int:
    """Return the value as an int between low and high."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(
            f"{name} is {value!r}; accepted: a whole number from {low:,} to {high:,}"
        ) from None
    if not low <= number <= high:
        raise ArgumentError(
            f"{name} is {number:,}; accepted: a whole number from {low:,} to {high:,}"
        )
    return number


def n_resamples(value: object) -> int:
    """Return the number of replicates."""
    return count("n_resamples", value, 1, MAX_RESAMPLES)


def parts(value: object, names: Sequence[str]) -> tuple[float, ...]:
    """Return shares of the rows that add up to 1, one for each name."""
    what = f"{len(names)} shares that add up to 1 ({', '.join(names)})"
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != len(names):
        raise ArgumentTypeError(f"parts is {value!r}; accepted: {what}")
    shares = tuple(finite_number("parts", share) for share in value)
    if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise ArgumentError(f"parts is {value!r}; accepted: {what}, none of them 0")
    return shares


def flag(name: str, value: object) -> bool:
    """Return the value when it is True or False."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ArgumentTypeError(f"{name} is {value!r}; accepted: True, False")


def n_threads(value: object) -> int | None:
    """Return the number of threads, None for all cores that the process may use."""
    return None if value is None else count("n_threads", value, 1, 4096)


def level(name: str, value: object) -> float:
    """Return a confidence level strictly between 0 and 1."""
    accepted = "a number strictly between 0 and 1, such as 0.95"
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        raise ArgumentTypeError(f"{name} is {value!r}; accepted: {accepted}")
    if not (math.isfinite(value) and 0 < value < 1):
        raise ArgumentError(f"{name} is {value!r}; accepted: {accepted}")
    return float(value)


def positive(name: str, value: object) -> float:
    """Return a finite number above 0."""
    accepted = "a finite number above 0"
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ArgumentTypeError(f"{name} is {value!r}; accepted: {accepted}")
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(f"{name} is {value!r}; accepted: {accepted}")
    return float(value)


def finite(name: str, value: object) -> float:
    """Return a finite number."""
    accepted = "a finite number"
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ArgumentTypeError(f"{name} is {value!r}; accepted: {accepted}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ArgumentError(f"{name} is {value!r}; accepted: {accepted}")
    return number


def seed(rng: object, random_state: object) -> int:
    """Return the 64-bit seed of a call (SPEC 7: None, int, SeedSequence, Generator).

    An int below 2^64 is the seed itself, so a result is repeated by ``rng=result.seed``.
    """
    if rng is not None and random_state is not None:
        raise ArgumentTypeError("rng and random_state are two names of one argument; pass one")
    value = rng if rng is not None else random_state
    if value is None:
        return _from_sequence(np.random.SeedSequence())
    if isinstance(value, np.random.SeedSequence):
        return _from_sequence(value)
    if isinstance(value, np.random.Generator):
        return int(value.integers(0, 2**64, dtype=np.uint64))
    accepted = "None, an int of at least 0, a numpy SeedSequence or Generator"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(f"rng is a {type(value).__name__}; accepted: {accepted}") from None
    if number < 0:
        raise ArgumentError(f"rng is {number}; accepted: {accepted}")
    return number if number < 2**64 else _from_sequence(np.random.SeedSequence(number))


def _from_sequence(sequence: np.random.SeedSequence) -> int:
    return int(sequence.generate_state(1, np.uint64)[0])


def progress(value: object) -> ProgressCallback | None:
    """Return the callback of (done, total), or None."""
    if value is None or value is False:
        return None
    if value is True:
        return _print_progress
    if not callable(value):
        raise ArgumentTypeError(
            f"progress is {value!r}; accepted: None, True, or a callable of (done, total)"
        )
    callback: Callable[[int, int], Any] = value
    return callback


def _print_progress(done: int, total: int) -> None:
    end = "\n" if done >= total else ""
    sys.stderr.write(f"\r{done:>13,} / {total:,}{end}")
    sys.stderr.flush()


def finite_number(name: str, value: object) -> float:
    """Return a finite number; an array of one number is one too."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"{name} is {value!r}; accepted: a finite number")
    number = float(array.ravel()[0])
    if not math.isfinite(number):
        raise ArgumentError(f"{name} is {number}; accepted: a finite number")
    return number


def finite_array(name: str, value: Any, dimensions: int) -> NDArray[np.float64]:
    """Return an array of finite numbers of so many dimensions, read-only and our own."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{name} is no array of numbers: {error}") from None
    if array.ndim != dimensions or not array.size:
        raise ArgumentError(
            f"{name} has shape {array.shape}; accepted: {dimensions} dimension(s), not empty"
        )
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} is not finite in some places; accepted: finite numbers")
    array.setflags(write=False)
    return array
