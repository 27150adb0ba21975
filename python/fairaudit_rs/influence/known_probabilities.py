"""Probabilities that the user knows, in the place of regressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, ArgumentTypeError
from .question import InfluenceQuestion

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownProbabilities:
    """Known probabilities by row of the target group and of the others; None where unknown."""

    #: P(y = 1 | X) in the own group.
    outcome: Floats | None
    other_outcome: Floats | None
    #: P(group is not the target | X) of both.
    group: tuple[Floats, Floats] | None

    @classmethod
    def from_arguments(
        cls, question: InfluenceQuestion, p_group: Any, p_outcome: Mapping[Any, Any] | None
    ) -> KnownProbabilities:
        """Check what is given."""
        n, own, rest = question.n_rows + question.n_missing, question.rows, question.other_rows
        group = None
        if p_group is not None:
            both = _probabilities("p_group", p_group, n)
            group = _inside("p_group", both, own), _inside("p_group", both, rest)
        outcomes = _outcomes(question, p_outcome, n)
        outcome = other_outcome = None
        if question.target_name in outcomes:
            found = outcomes[question.target_name]
            outcome = _inside(f"p_outcome[{question.target_name!r}]", found, own)
        if all(name in outcomes for name in question.other_names):
            other_outcome = np.empty(len(rest))
            for place, name in enumerate(question.other_names):
                inside = question.other_group == place
                found = outcomes[name]
                other_outcome[inside] = _inside(f"p_outcome[{name!r}]", found, rest[inside])
        return cls(outcome=outcome, other_outcome=other_outcome, group=group)


def _outcomes(
    question: InfluenceQuestion, p_outcome: Mapping[Any, Any] | None, n_rows: int
) -> dict[Any, Floats]:
    if p_outcome is None:
        return {}
    if not isinstance(p_outcome, Mapping):
        raise ArgumentTypeError(
            f"p_outcome is a {type(p_outcome).__name__}; accepted: a dict of probabilities by "
            "group",
            argument="p_outcome",
        )
    known = (question.target_name, *question.other_names)
    for name in p_outcome:
        if name not in known:
            raise ArgumentError(
                f"p_outcome names the group {name!r}; accepted: {', '.join(map(repr, known))}",
                argument="p_outcome",
            )
    return {
        name: _probabilities(f"p_outcome[{name!r}]", values, n_rows)
        for name, values in p_outcome.items()
    }


def _probabilities(name: str, values: Any, n_rows: int) -> Floats:
    """Return one number for each row of the data."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name} is {values!r}; accepted: numbers", argument=_argument(name)
        ) from None
    if found.shape != (n_rows,):
        raise ArgumentError(
            f"{name} has the shape {found.shape}; accepted: one number for each of {n_rows:,} rows",
            argument=_argument(name),
        )
    return found


def _inside(name: str, values: Floats, rows: NDArray[np.int64]) -> Floats:
    """Return the numbers of some rows, which are probabilities."""
    found = values[rows]
    wrong = ~((found > 0) & (found < 1))
    if wrong.any():
        row = int(rows[wrong.argmax()])
        raise ArgumentError(
            f"{name} is {values[row]:g} in row {row}; accepted: numbers above 0 and below 1",
            argument=_argument(name),
        )
    return found


def _argument(name: str) -> str:
    """Return the argument of an entry: p_outcome of p_outcome['a']."""
    return name.partition("[")[0]
