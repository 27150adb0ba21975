"""Example data: a synthetic credit portfolio with a known bias."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import arguments

__all__ = ["synthetic_credit"]


#: The default seed, so that everyone gets the same data.
_SEED = 2020


def __dir__() -> list[str]:
    return sorted(__all__)


def synthetic_credit(
    n_rows: int = 20_000, *, rng: Any = _SEED, random_state: Any = None
) -> dict[str, NDArray[Any]]:
    """Make loan decisions with a known bias.

    Applicants have a ``sex`` (45 % female) and an ``age`` class (18-29: 25 %, 30-59: 55 %,
    60+: 20 %), drawn independently. The share that ``repaid`` is 0.75, 0.82 and 0.85 by age and
    does not depend on sex. The model ``score`` is a number from 0 to 1 that tends to be higher
    for those who repay. The decision ``approved`` depends on ``repaid`` and sex, not on the score:

    - women who would repay are approved with probability 0.82, men with 0.88: the true positive
      rate differs by -0.06 between female and male, whatever their age;
    - the false positive rate is 0.30 in every group;
    - selection rates differ by sex (through the true positive rate) and by age (through the
      base rates).

    Parameters
    ----------
    n_rows : int
        Number of applicants.
    rng : None, int, SeedSequence, Generator or RandomState
        Source of the seed; ``random_state`` is an alias.

    Returns
    -------
    dict of ndarray
        Columns ``sex``, ``age``, ``repaid``, ``approved``, ``score``.
    """
    n_rows = arguments.count("n_rows", n_rows, 1, 10**9)
    if random_state is not None and isinstance(rng, int) and rng == _SEED:
        rng = None
    seed = arguments.check(rng=rng, random_state=random_state).seed
    draw = np.random.Generator(np.random.Philox(seed))
    sex = np.where(draw.random(n_rows) < 0.45, "female", "male")
    age_class = np.searchsorted(np.array([0.25, 0.80]), draw.random(n_rows), side="right")
    repaid = draw.random(n_rows) < np.array([0.75, 0.82, 0.85])[age_class]
    true_positive_rate = np.where(sex == "female", 0.82, 0.88)
    approved = draw.random(n_rows) < np.where(repaid, true_positive_rate, 0.30)
    score = np.clip(draw.beta(np.where(repaid, 6.0, 3.0), np.where(repaid, 2.0, 3.0)), 0.0, 1.0)
    return {
        "sex": sex,
        "age": np.array(["18-29", "30-59", "60+"])[age_class],
        "repaid": repaid.astype(np.int8),
        "approved": approved.astype(np.int8),
        "score": score,
    }
