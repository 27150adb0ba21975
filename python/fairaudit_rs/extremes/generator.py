"""Chooses generators by name or object, fits them to the rows of groups, and checks their samples.

Generated rows are not observations; see `augment.py` for their use.
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

GENERATORS: dict[str, Callable[[], Generator]] = {
    "bootstrap": SmoothedBootstrap,
    "copula": GaussianCopula,
    "tvae": TVAE,
    "ctgan": CTGAN,
}


@runtime_checkable
class Generator(Protocol):
    """The protocol of generators of rows like those that they were fitted to."""

    def fit(self, X: Any, rng: Any = None) -> Any:
        """Learn the rows of a frame; return the generator."""
        ...

    def sample(self, n: int, rng: Any = None) -> Any:
        """Return n rows, as a frame of the same kind and columns as the one it learned."""
        ...


def new_generator(generator: Any) -> Generator:
    """Return a new generator: the named one, or a copy of an object."""
    accepted = (
        f"{', '.join(map(repr, GENERATORS))}, or an object with fit(X, rng) and sample(n, rng)"
    )
    if isinstance(generator, str):
        if generator not in GENERATORS:
            raise ArgumentError(
                f"generator is {generator!r}; accepted: {accepted}", argument="generator"
            )
        return GENERATORS[generator]()
    lacking = [name for name in ("fit", "sample") if not callable(getattr(generator, name, None))]
    if lacking or isinstance(generator, type):
        problem = "a class" if isinstance(generator, type) else f"without {lacking[0]}"
        raise ArgumentTypeError(
            f"generator is {generator!r}, {problem}; accepted: {accepted}", argument="generator"
        )
    copied: Generator = copy.deepcopy(generator)
    return copied


@dataclass(frozen=True, eq=False)
class FittedGenerator:
    """A generator that has learned some rows, with these rows."""

    generator: Generator
    rows: MixedRows

    def sample(self, n: int, rng: Any = None) -> Any:
        """Return n generated rows, checked against the rows that were learned.

        The frame has the same kind and columns. Numbers are finite, and whole in columns of whole
        numbers; text has only levels that were learned.
        """
        checked = arguments.check(n=n, rng=rng)
        name = type(self.generator).__name__
        sampled = f"the sample of generator {name}"
        try:
            found = self.generator.sample(checked.n, rng=checked.seed)
        except FairAuditError:
            raise
        except Exception as error:
            raise FunctionError(
                f"sample of generator {name} failed: {error!r}", argument="generator"
            ) from error
        n_found = len(coded_like(self.rows, found, sampled, argument="generator"))
        if n_found != checked.n:
            raise DataError(
                f"{sampled} has {n_found:,} rows; accepted: {checked.n:,}, as requested",
                argument="generator",
            )
        return found


def fit_generator(generator: Any, X: Any, rng: Any = None) -> FittedGenerator:
    """Fit a generator, given by name or as an object, to the rows of a frame.

    An object is copied first and not changed.
    """
    unfitted, rows = new_generator(generator), read_mixed(X)
    try:
        learned = unfitted.fit(X, rng=arguments.check(rng=rng).seed)
    except FairAuditError:
        raise
    except Exception as error:
        raise FunctionError(
            f"fit of generator {type(unfitted).__name__} failed: {error!r}", argument="generator"
        ) from error
    return FittedGenerator(unfitted if learned is None else learned, rows)


def per_group(
    generator: Any, frames: Mapping[Hashable, Any], rng: Any = None
) -> dict[Hashable, FittedGenerator]:
    """Fit one generator for each group to the rows of that group only.

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
    """Derive the seed of a group from its name."""
    return child_seed(seed, *str(group).encode())
