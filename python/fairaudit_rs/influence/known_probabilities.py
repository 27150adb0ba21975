"""Read `p_group=` and `p_outcome=`: known probabilities that replace regressions."""

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
    """Known probabilities of the rows of the target group and of the others; None if unknown."""

    #: P(y = 1 | X) within the group of the row.
    outcome: Floats | None
    other_outcome: Floats | None
    #: P(group is not the target | X) for the rows of both.
    group: tuple[Floats, Floats] | None

    @classmethod
    def from_arguments(
        cls, question: InfluenceQuestion, p_group: Any, p_outcome: Mapping[Any, Any] | None
    ) -> KnownProbabilities:
        """Check the arguments."""
        n, own, rest = question.n_rows + question.n_missing, question.rows, question.other_rows
        group = None
        if p_group is not None:
            both = _numbers("p_group", p_group, n)
            group = (
                _probabilities_of("p_group", both, own),
                _probabilities_of("p_group", both, rest),
            )
        outcomes = _outcomes(question, p_outcome, n)
        outcome = other_outcome = None
        if question.target_name in outcomes:
            values = outcomes[question.target_name]
            outcome = _probabilities_of(f"p_outcome[{question.target_name!r}]", values, own)
        if all(name in outcomes for name in question.other_names):
            other_outcome = np.empty(len(rest))
            for place, name in enumerate(question.other_names):
                inside = question.other_group == place
                other_outcome[inside] = _probabilities_of(
                    f"p_outcome[{name!r}]", outcomes[name], rest[inside]
                )
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
    groups = (question.target_name, *question.other_names)
    for name in p_outcome:
        if name not in groups:
            raise ArgumentError(
                f"p_outcome names the group {name!r}; accepted: {', '.join(map(repr, groups))}",
                argument="p_outcome",
            )
    return {
        name: _numbers(f"p_outcome[{name!r}]", values, n_rows) for name, values in p_outcome.items()
    }


def _numbers(name: str, values: Any, n_rows: int) -> Floats:
    """Return one number for each row of the data."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name} is {values!r}; accepted: numbers", argument=_argument(name)
        ) from None
    if numbers.shape != (n_rows,):
        raise ArgumentError(
            f"{name} has the shape {numbers.shape}; accepted: one number for each of the "
            f"{n_rows:,} rows",
            argument=_argument(name),
        )
    return numbers


def _probabilities_of(name: str, values: Floats, rows: NDArray[np.int64]) -> Floats:
    """Return the probabilities of some rows, or raise an error."""
    probabilities = values[rows]
    wrong = ~((probabilities > 0) & (probabilities < 1))
    if wrong.any():
        row = int(rows[wrong.argmax()])
        raise ArgumentError(
            f"{name} is {values[row]:g} in row {row}; accepted: numbers above 0 and below 1",
            argument=_argument(name),
        )
    return probabilities


def _argument(name: str) -> str:
    """Return the argument of an entry: p_outcome of p_outcome['a']."""
    return name.partition("[")[0]
