"""Derives independent streams of random numbers and child seeds from one seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arguments


def stream_of(rng: Any, random_state: Any = None) -> np.random.Generator:
    """Return the random generator of a seed."""
    seed = arguments.check(rng=rng, random_state=random_state).seed
    key = np.array([seed, 0], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def child_seed(seed: int, *place: int) -> int:
    """Derive the seed of a part of a computation, such as a group or a replicate."""
    sequence = np.random.SeedSequence(seed, spawn_key=place)
    return int(sequence.generate_state(1, np.uint64)[0])
