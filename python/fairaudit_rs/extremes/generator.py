"""Generators of rows like those of a group: the protocol, the choice by name, one for each group.

Generated rows are no observations; `augment.py` says what may be done with them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .. import arguments
from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    DataError,
    FairAuditError,
    FunctionError,
)
from .copula import GaussianCopula
from .ctgan import CTGAN
from .mixed_columns import MixedRows, coded_like, read_mixed
from .seeds import child_seed
from .smoothed import SmoothedBootstrap
from .tvae import TVAE

NAMED: dict[str, Callable[[], Generator]] = {
    "bootstrap": SmoothedBootstrap,
    "copula": GaussianCopula,
    "tvae": TVAE,
    "ctgan": CTGAN,
}


@runtime_checkable
class Generator(Protocol):
    """A generator of rows like those it was fitted to."""

    def fit(self, X: Any, rng: Any = None) -> Any:
        """Learn the rows of a frame; return the generator."""
        ...

    def sample(self, n: int, rng: Any = None) -> Any:
        """Return n rows, as a frame of the same kind and columns as the one it learned."""
        ...


def new_generator(generator: Any) -> Generator:
    """Return a generator that nobody else uses, by its name or as a copy of an object."""
    accepted = f"{', '.join(map(repr, NAMED))}, or an object with fit(X, rng) and sample(n, rng)"
    if isinstance(generator, str):
        if generator not in NAMED:
            raise ArgumentError(
                f"generator is {generator!r}; accepted: {accepted}", argument="generator"
            )
        return NAMED[generator]()
    lacking = [name for name in ("fit", "sample") if not callable(getattr(generator, name, None))]
    if lacking or isinstance(generator, type):
        what = "a class" if isinstance(generator, type) else f"without {lacking[0]}"
        raise ArgumentTypeError(
            f"generator is {generator!r}, {what}; accepted: {accepted}", argument="generator"
        )
    made: Generator = copy.deepcopy(generator)
    return made


@dataclass(frozen=True, eq=False)
class FittedGenerator:
    """A generator that has learned some rows, and what these rows are."""

    generator: Generator
    rows: MixedRows

    def sample(self, n: int, rng: Any = None) -> Any:
        """Return n generated rows, checked against the rows that were learned.

        The frame is of the same kind with the same columns; numbers are finite, whole where all
        were whole, and text has levels that were seen.
        """
        checked = arguments.check(n=n, rng=rng)
        name = type(self.generator).__name__
        what = f"what generator {name} gave"
        try:
            found = self.generator.sample(checked.n, rng=checked.seed)
        except FairAuditError:
            raise
        except Exception as error:
            raise FunctionError(
                f"sample of generator {name} failed: {error!r}", argument="sample"
            ) from error
        n_found = len(coded_like(self.rows, found, what))
        if n_found != checked.n:
            raise DataError(f"{what} has {n_found:,} rows; accepted: the {checked.n:,} asked for")
        return found


def fit_generator(generator: Any, X: Any, rng: Any = None) -> FittedGenerator:
    """Return a generator, by its name or as an object, that has learned the rows of a frame.

    An object is copied first, and stays as it is.
    """
    made, rows = new_generator(generator), read_mixed(X)
    try:
        learned = made.fit(X, rng=arguments.check(rng=rng).seed)
    except FairAuditError:
        raise
    except Exception as error:
        raise FunctionError(f"fit of generator {type(made).__name__} failed: {error!r}") from error
    return FittedGenerator(made if learned is None else learned, rows)


def per_group(
    generator: Any, frames: Mapping[Hashable, Any], rng: Any = None
) -> dict[Hashable, FittedGenerator]:
    """Return a generator for each protected group, fitted to the rows of this group alone.

    Parameters
    ----------
    generator : str or Generator
        ``"bootstrap"``, ``"copula"``, ``"tvae"``, ``"ctgan"``, or an object, copied for each group.
    frames : mapping
        The rows of every group.
    rng : None, int, SeedSequence, Generator or RandomState
        Source of the seed. A group's own seed depends on its name, not on the other groups.

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs.extremes.generator import per_group
    >>> rng = np.random.default_rng(0)
    >>> frames = {name: {"age": rng.integers(20, 60, 100)} for name in ("man", "woman")}
    >>> generators = per_group("bootstrap", frames, rng=1)
    >>> len(generators["woman"].sample(250, rng=2)["age"])
    250
    """
    seed = arguments.check(rng=rng).seed
    return {
        group: fit_generator(generator, frame, group_seed(seed, group))
        for group, frame in frames.items()
    }


def group_seed(seed: int, group: Hashable) -> int:
    """Return the seed of a group, by its name."""
    return child_seed(seed, *str(group).encode())
