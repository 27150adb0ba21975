"""Check arguments: one rule for each argument name that several functions share.

A function passes its shared arguments to `check` by name and reads the checked values from the
result. It checks its own arguments with the functions below. A message names the argument, its
value and the accepted values.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, ArgumentTypeError
from .literals import Alternative, Compatibility, Missing, MixedClusters, Undefined
from .progress import ProgressPrinter

ProgressCallback = Callable[[int, int], object]
#: A function of the name and the value of an argument that returns the checked value.
Rule = Callable[[str, object], Any]

#: A literal type such as `Alternative`.
Word = TypeVar("Word", bound=str)

MAX_RESAMPLES = 100_000_000
_MAX_THREADS = 4_096
_NUMBERS = (int, float, np.integer, np.floating)


# -- checks ------------------------------------------------------------------------------------


def choice(name: str, value: object, accepted: Iterable[Word]) -> Word:
    """Return the value when it is one of the accepted words."""
    accepted = list(accepted)
    if isinstance(value, str) and value in accepted:
        return accepted[accepted.index(value)]
    raise ArgumentError(
        f"{name} is {value!r}; accepted: {', '.join(map(repr, accepted))}", argument=name
    )


def suggest_nearest(name: str, accepted: Iterable[str], cutoff: float = 0.5) -> str:
    """Return "did you mean ...? " with the nearest accepted name; "" if none is near."""
    import difflib

    folded = {word.casefold(): word for word in accepted}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return f"did you mean {folded[near[0]]!r}? " if near else ""


def flag(name: str, value: object) -> bool:
    """Return the value when it is True or False."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ArgumentTypeError(f"{name} is {value!r}; accepted: True, False", argument=name)


def count(name: str, value: object, low: int, high: int) -> int:
    """Return the value as an int between low and high."""
    try:
        if isinstance(value, bool):
            raise TypeError
        whole = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(
            f"{name} is {value!r}; accepted: a whole number from {low:,} to {high:,}", argument=name
        ) from None
    if not low <= whole <= high:
        raise ArgumentError(
            f"{name} is {whole:,}; accepted: a whole number from {low:,} to {high:,}", argument=name
        )
    return whole


def number(
    name: str, value: object, accepted: str, within: Callable[[float], bool] = math.isfinite
) -> float:
    """Return the value as a float if ``within`` accepts it; an array of one number is a number."""
    scalar = value.ravel()[0] if isinstance(value, np.ndarray) and value.size == 1 else value
    if not is_number(scalar):
        raise ArgumentTypeError(f"{name} is {value!r}; accepted: {accepted}", argument=name)
    result = as_float(scalar)
    if not within(result):
        raise ArgumentError(f"{name} is {value!r}; accepted: {accepted}", argument=name)
    return result


def as_float(value: float) -> float:
    """Return a number as a float; an int too large for a float becomes infinity with its sign."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number, and not True or False."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def is_listing(value: object) -> TypeGuard[Iterable[Any]]:
    """Return whether a value can be iterated; an array without dimensions cannot."""
    return (
        isinstance(value, Iterable)
        and not isinstance(value, str)
        and getattr(value, "ndim", 1) != 0
    )


def finite(name: str, value: object) -> float:
    """Return a finite number."""
    return number(name, value, "a finite number")


def positive(name: str, value: object) -> float:
    """Return a finite number above 0."""
    return number(name, value, "a finite number above 0", lambda entry: 0 < entry < math.inf)


def at_least_0(name: str, value: object) -> float:
    """Return a finite number of at least 0."""
    accepted = "a finite number of at least 0"
    return number(name, value, accepted, lambda entry: 0 <= entry < math.inf)


def level(name: str, value: object) -> float:
    """Return a level strictly between 0 and 1."""
    example = "0.05, for false alarms in 5 % of tests" if name == "alpha" else "0.95"
    accepted = f"a number strictly between 0 and 1, such as {example}"
    return number(name, value, accepted, lambda entry: 0 < entry < 1)


def optional(name: str, value: object, rule: Rule) -> Any:
    """Return None unchanged and any other value as the rule returns it."""
    return None if value is None else rule(name, value)


def parts(value: object, names: Sequence[str]) -> tuple[float, ...]:
    """Return shares of the rows that add up to 1, one for each name."""
    accepted = f"{len(names)} shares above 0 that add up to 1 ({', '.join(names)})"
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != len(names):
        raise ArgumentTypeError(f"parts is {value!r}; accepted: {accepted}", argument="parts")
    shares = tuple(finite("parts", share) for share in value)
    if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise ArgumentError(f"parts is {value!r}; accepted: {accepted}", argument="parts")
    return shares


def finite_array(name: str, value: Any, dimensions: int) -> NDArray[np.float64]:
    """Return a read-only copy as an array of finite numbers with this many dimensions."""
    try:
        array = np.array(value, dtype=np.float64)
    except Exception as error:  # the __array__ method of the value may raise any exception
        raise ArgumentTypeError(
            f"{name} is not an array of numbers: {error}", argument=name
        ) from None
    if array.ndim != dimensions or not array.size:
        raise ArgumentError(
            f"{name} has shape {array.shape}; accepted: {dimensions} dimension(s), not empty",
            argument=name,
        )
    if not np.isfinite(array).all():
        raise ArgumentError(
            f"{name} has missing or infinite entries; accepted: finite numbers", argument=name
        )
    array.setflags(write=False)
    return array


def seed(rng: object, random_state: object = None) -> int:
    """Return the 64-bit seed of a call (SPEC 7, and the RandomState of scikit-learn).

    An int below 2^64 is the seed itself, so a result is repeated by ``rng=result.seed``.
    """
    if rng is not None and random_state is not None:
        raise ArgumentTypeError(
            "rng and random_state are two names of one argument. Pass only one of them.",
            argument="rng",
            mentions=("random_state",),
            code="conflicting-arguments",
        )
    if random_state is not None:
        return _seed("random_state", random_state)
    return _seed("rng", rng)


def _seed(name: str, value: object) -> int:
    if value is None:
        return _from_sequence(np.random.SeedSequence())
    if isinstance(value, np.random.SeedSequence):
        return _from_sequence(value)
    if isinstance(value, np.random.Generator):
        return int(value.integers(0, 2**64, dtype=np.uint64))
    if isinstance(value, np.random.RandomState):
        return int(value.randint(0, 2**64, dtype=np.uint64))
    accepted = "None, an int of at least 0, a numpy SeedSequence, Generator or RandomState"
    try:
        if isinstance(value, bool):
            raise TypeError
        whole = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(
            f"{name} is a {type(value).__name__}; accepted: {accepted}", argument=name
        ) from None
    if whole < 0:
        raise ArgumentError(f"{name} is {whole}; accepted: {accepted}", argument=name)
    return whole if whole < 2**64 else _from_sequence(np.random.SeedSequence(whole))


def _from_sequence(sequence: np.random.SeedSequence) -> int:
    return int(sequence.generate_state(1, np.uint64)[0])


def _missing(name: str, value: object) -> str | None:
    """Return how to treat missing values of features and strata."""
    words = get_args(Missing)
    if value is None or (isinstance(value, str) and value in words):
        return value
    raise ArgumentError(
        f"{name} is {value!r}; accepted: None, {', '.join(map(repr, words))}", argument=name
    )


def _threads(name: str, value: object) -> int:
    """Return the number of threads; -1 means all cores that the process may use."""
    if is_number(value) and value == -1:
        return min(_cores(), _MAX_THREADS)
    try:
        return count(name, value, 1, _MAX_THREADS)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}, or -1 for all cores", argument=name) from None
    except ArgumentError as error:
        raise ArgumentError(f"{error}, or -1 for all cores", argument=name) from None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _progress(name: str, value: object) -> ProgressCallback | None:
    """Return the callback of (done, total), or None."""
    if value is None or value is False:
        return None
    if value is True:
        return ProgressPrinter()
    if not callable(value):
        raise ArgumentTypeError(
            f"{name} is {value!r}; accepted: None, True, or a callable of (done, total)",
            argument=name,
        )
    callback: Callable[[int, int], Any] = value
    return callback


# -- one rule for each name --------------------------------------------------------------------

#: The rule for an argument name, the same in every public function. Words of a single lens, and
#: conditions on data or other arguments, are checked where they are used.
RULES: Mapping[str, Rule] = {
    # of tests and intervals
    "alternative": partial(choice, accepted=get_args(Alternative)),
    "confidence_level": level,
    "alpha": level,
    "power": level,
    "n_comparisons": partial(optional, rule=partial(count, low=1, high=1_000_000)),
    # of data
    "missing": _missing,
    "mixed_clusters": partial(choice, accepted=get_args(MixedClusters)),
    "compat": partial(optional, rule=partial(choice, accepted=get_args(Compatibility))),
    # of groups
    "undefined": partial(choice, accepted=get_args(Undefined)),
    "min_group_size": partial(optional, rule=partial(count, low=1, high=10**15)),
    # of replicates and draws
    "n_resamples": partial(count, low=1, high=MAX_RESAMPLES),
    "n_audits": partial(count, low=10, high=10_000_000),
    "n_draws": partial(count, low=1, high=10_000_000),
    "n_folds": partial(count, low=2, high=1_000),
    "n": partial(count, low=1, high=1_000_000_000),
    "k": partial(count, low=1, high=2**62),
    "rng": _seed,
    "random_state": _seed,
    # of steps
    "n_steps": partial(count, low=1, high=10_000_000),
    "max_steps": partial(count, low=0, high=10_000),
    "n_epochs": partial(count, low=1, high=1_000_000),
    "batch_size": partial(count, low=1, high=10_000_000),
    "step": positive,
    "step_size": positive,
    "step_decay": at_least_0,
    "learning_rate": positive,
    "weight_decay": at_least_0,
    # of scores, models and fairness
    "threshold": finite,
    "dtype": partial(optional, rule=partial(choice, accepted=("float32", "float64"))),
    "n_classes": partial(count, low=2, high=1_000_000),
    "tolerance": positive,
    "delta": positive,
    "penalty": at_least_0,
    "loss_floor": at_least_0,
    # of the computation
    "n_threads": partial(optional, rule=_threads),
    "progress": _progress,
}


class CheckedArguments:
    """Checked arguments by name; only those that were passed to `check` exist."""

    alternative: Alternative
    confidence_level: float
    alpha: float
    power: float
    n_comparisons: int | None
    missing: Missing | None
    mixed_clusters: MixedClusters
    compat: Compatibility | None
    undefined: Undefined
    min_group_size: int | None
    n_resamples: int
    n_audits: int
    n_draws: int
    n_folds: int
    n: int
    k: int
    #: From ``rng`` or ``random_state``.
    seed: int
    n_steps: int
    max_steps: int
    n_epochs: int
    batch_size: int
    step: float
    step_size: float
    step_decay: float
    learning_rate: float
    weight_decay: float
    threshold: float
    dtype: str | None
    n_classes: int
    tolerance: float
    delta: float
    penalty: float
    loss_floor: float
    n_threads: int | None
    progress: ProgressCallback | None


def check(**given: object) -> CheckedArguments:
    """Check arguments by the rules for their names.

    ``rng`` and ``random_state`` become one ``seed``, which is drawn after all other checks.
    """
    checked = CheckedArguments()
    values = checked.__dict__
    for name, value in given.items():
        if name != "rng" and name != "random_state":
            values[name] = RULES[name](name, value)
    if "rng" in given:
        values["seed"] = seed(given["rng"], given.get("random_state"))
    return checked
