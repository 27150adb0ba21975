"""Which groups have enough rows that count for a verdict, and what the others lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.equality import Value
from ..data.groups import group_label
from ..data.labels import GroupKey
from ..metrics.metric import Metric
from .question import PermutationQuestion

#: Rows that count which a group needs: the fewest with which ten questions at the tolerance fail in
#: at most 5 % of audits.
ROWS = 30
#: Of metrics that rest on both labels, and of each label.
ROWS_OF_LABELS = 50
OF_EACH_LABEL = 10
#: Of the AUC, which near 1 errs in 6.9 % of audits with 12 positive labels.
OF_EACH_LABEL_FOR_RANKS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupCount(Value):
    """A group of a question: its rows, those that count, and its value."""

    group: Any
    n_rows: int
    #: Rows in the denominator of the metric; of weighted rows those of positive weight.
    n_counted: int
    value: float
    #: Whether the value is crude: of all rows of the group, where gaps are taken within strata.
    is_crude: bool = False
    #: Of the value, over its samples.
    variance: float = float("nan")
    #: Rows of each label that count, of metrics that rest on both.
    n_positive: int | None = None
    n_negative: int | None = None
    #: The people whom all its rows stand for, and how many rows of equal weight the rows that
    #: count are worth, (sum w)^2 / sum w^2. None without weights.
    weight: float | None = None
    n_effective: float | None = None
    #: Why it is not tested.
    reason: str | None = None
    #: Whether it could be tested, and is left out by a floor that was raised.
    withheld: bool = False

    @property
    def is_tested(self) -> bool:
        """Return whether it is compared with others."""
        return self.reason is None

    @property
    def n_people(self) -> float:
        """The people of the group: the sum of the weights of its rows, or their number."""
        return self.n_rows if self.weight is None else self.weight

    @classmethod
    def uncounted(
        cls, group: Any, n_rows: int, reason: str, weight: float | None = None
    ) -> GroupCount:
        """Return a group that has no value, or nothing to be compared with."""
        return cls(
            group=group,
            n_rows=n_rows,
            n_counted=0,
            value=float("nan"),
            weight=weight,
            reason=reason,
        )


@dataclass(frozen=True, kw_only=True)
class MinimumCounts:
    """The rows that a group needs for a metric."""

    #: What the method needs, and what a policy asks for.
    least: int
    wanted: int
    #: Rows of each label; 0 where labels play no part.
    of_each_label: int

    @classmethod
    def from_metric(cls, metric: Metric, wanted: int | None) -> MinimumCounts:
        """Return the floor of a metric; a policy can raise it."""
        by_labels = _rests_on_labels(metric)
        least = ROWS_OF_LABELS if by_labels else ROWS
        of_ranks = metric.kind.reads == "scores" and metric.kind.compares_labels
        of_each = OF_EACH_LABEL_FOR_RANKS if of_ranks else OF_EACH_LABEL
        of_each = of_each if by_labels else 0
        return cls(least=least, wanted=max(least, wanted or 0), of_each_label=of_each)

    @property
    def told(self) -> str:
        """Return a sentence on the rows that a group needs."""
        rows = f"{self.wanted:,} rows that count"
        return f"{rows}, {self.of_each_label} of each label" if self.of_each_label else rows

    def shortage(self, group: GroupCount) -> tuple[str | None, bool]:
        """Return what a group has too little of, and whether only a policy says so."""
        counting = _rows(group.n_counted, "that counts" if group.n_counted == 1 else "that count")
        if group.n_counted < self.least:
            return f"{counting}, of {self.least:,} needed", False
        of_labels = {"positive": group.n_positive, "negative": group.n_negative}
        for name, n in of_labels.items():
            if n is not None and n < self.of_each_label:
                labelled = _rows(n, f"with a {name} label")
                return f"{labelled}, of {self.of_each_label} needed", False
        worth = group.n_effective
        equal = "" if worth is None else f"{counting}, worth {worth:.3g} rows of equal weight"
        if worth is not None and worth < self.least:
            return f"{equal}, of {self.least:,} needed", False
        if group.n_counted < self.wanted:
            return f"{counting}, of {self.wanted:,} that the policy asks for", True
        if worth is not None and worth < self.wanted:
            return f"{equal}, of {self.wanted:,} that the policy asks for", True
        return None, False


def _rows(n: int, which: str) -> str:
    return f"{n:,} row{'' if n == 1 else 's'} {which}"


def _rests_on_labels(metric: Metric) -> bool:
    """Return whether few rows of one label are too few: F1, AUC, losses of scores, any function."""
    kind = metric.kind
    of_losses = kind.reads == "rows" and "y_true" in metric.needs and not metric.is_residual
    return kind.compares_labels or of_losses or kind.reads == "function"


def counted_groups(
    posed: PermutationQuestion, floor: MinimumCounts, weights: Mapping[Any, float] | None = None
) -> tuple[GroupCount, ...]:
    """Return all groups of a question with their counts, and why some are not tested.

    ``weights`` are the people of each group, where rows have weights.
    """
    return tuple(_counted(posed, floor, weights or {}))


def _effective(weights: NDArray[np.float64]) -> float:
    """Return how many rows of equal weight some rows are worth: (sum w)^2 / sum w^2."""
    ordered = np.sort(weights)
    squares = float((ordered**2).sum())
    return float(ordered.sum()) ** 2 / squares if squares else 0.0


def _counted(
    posed: PermutationQuestion, floor: MinimumCounts, weights: Mapping[Any, float]
) -> Iterator[GroupCount]:
    problem = posed.problem
    for i, key in enumerate(problem.keys):
        labels = problem.labels_of(i) if floor.of_each_label else None
        positive, negative = (None, None) if labels is None else labels
        of_rows = problem.weights_of(i)
        found = {
            "group": group_label(key),
            "n_rows": problem.n_rows[i],
            "n_counted": problem.n_used(i) if of_rows is None else int(np.count_nonzero(of_rows)),
            "value": problem.evaluations[i].value,
            "is_crude": problem.stratified,
            "variance": problem.evaluations[i].variance,
            "n_positive": positive,
            "n_negative": negative,
            "weight": weights.get(group_label(key)),
            "n_effective": None if of_rows is None else _effective(of_rows),
        }
        reason, withheld = floor.shortage(GroupCount(**found))
        yield GroupCount(**found, reason=reason, withheld=withheld)
    for group in posed.left_out:
        yield GroupCount.uncounted(
            group.group, group.n_rows, group.reason, weights.get(group.group)
        )


def unmeasured_groups(
    sizes: dict[GroupKey, int],
    reasons: dict[Any, str],
    groups: Sequence[Any] | None,
    weights: Mapping[Any, float],
) -> list[GroupCount]:
    """Return the groups of which too few have a value: the others wait for a second one."""
    kept = {group_label(key): n for key, n in sizes.items()}
    if groups is not None:
        kept = {group: n for group, n in kept.items() if group in list(groups)}
    return [
        GroupCount.uncounted(
            group, n, reasons.get(group, "no other group to compare with"), weights.get(group)
        )
        for group, n in kept.items()
    ]
