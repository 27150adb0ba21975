"""Checks whether each group has enough eligible rows for a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.equality import EqualByValue
from ..data.groups import group_label
from ..data.labels import GroupKey
from ..metrics.metric import Metric
from .question import PermutationQuestion

#: Minimum number of eligible rows in a group: with fewer, an audit of ten questions, each exactly
#: at its tolerance, can fail in more than 5 % of cases.
ROWS = 30
#: The same for metrics that depend on both labels, and the minimum of each label.
ROWS_OF_LABELS = 50
OF_EACH_LABEL = 10
#: The same for the AUC: near 1, with 12 positive labels, 6.9 % of audits are wrong.
OF_EACH_LABEL_FOR_RANKS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupCount(EqualByValue):
    """A group of a question: its rows, its eligible rows and its value."""

    group: Any
    n_rows: int
    #: Eligible rows: in the denominator of the metric, and with positive weight.
    n_counted: int
    value: float
    #: Whether the value is crude: over all rows of the group, while gaps are within strata.
    is_crude: bool = False
    #: The sampling variance of the value.
    variance: float = float("nan")
    #: Eligible rows of each label, for metrics that depend on both.
    n_positive: int | None = None
    n_negative: int | None = None
    #: The number of people that the rows stand for, and the effective number of eligible rows,
    #: (sum w)^2 / sum w^2. None without weights.
    weight: float | None = None
    n_effective: float | None = None
    #: Why the group is not tested; None if it is.
    reason: str | None = None
    #: Whether the group could be tested, but is excluded by the minimum group size of a policy.
    withheld: bool = False

    @property
    def is_tested(self) -> bool:
        """Return whether the group is compared with others."""
        return self.reason is None

    @property
    def n_people(self) -> float:
        """The number of people in the group: the sum of the weights, or the number of rows."""
        return self.n_rows if self.weight is None else self.weight

    @classmethod
    def uncounted(
        cls, group: Any, n_rows: int, reason: str, weight: float | None = None
    ) -> GroupCount:
        """Return a group that has no value, or no other group to compare with."""
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
    """The minimum numbers of rows in a group for a metric."""

    #: The minimum of the method, and that of the policy.
    least: int
    wanted: int
    #: Rows of each label; 0 if the metric does not use labels.
    of_each_label: int

    @classmethod
    def from_metric(cls, metric: Metric, wanted: int | None) -> MinimumCounts:
        """Return the minimum counts of a metric; a policy can raise them."""
        by_labels = _depends_on_labels(metric)
        least = ROWS_OF_LABELS if by_labels else ROWS
        of_ranks = metric.kind.reads == "scores" and metric.kind.compares_labels
        of_each = OF_EACH_LABEL_FOR_RANKS if of_ranks else OF_EACH_LABEL
        of_each = of_each if by_labels else 0
        return cls(least=least, wanted=max(least, wanted or 0), of_each_label=of_each)

    @property
    def requirement(self) -> str:
        """The required rows of a group, as text."""
        rows = f"{self.wanted:,} eligible rows"
        return f"{rows}, {self.of_each_label} of each label" if self.of_each_label else rows

    def shortage(self, group: GroupCount) -> tuple[str | None, bool]:
        """Return what a group lacks, and whether only the policy requires it."""
        is_one = group.n_counted == 1
        counting = f"{group.n_counted:,} eligible {'row' if is_one else 'rows'}"
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


def _depends_on_labels(metric: Metric) -> bool:
    """Return whether each label needs a minimum: for F1, AUC, losses of scores and functions."""
    kind = metric.kind
    of_losses = kind.reads == "rows" and "y_true" in metric.needs and not metric.is_residual
    return kind.compares_labels or of_losses or kind.reads == "function"


def counted_groups(
    prepared: PermutationQuestion, floor: MinimumCounts, weights: Mapping[Any, float] | None = None
) -> tuple[GroupCount, ...]:
    """Return all groups of a question with their counts, and why some are not tested.

    ``weights`` are the people of each group, where rows have weights.
    """
    return tuple(_counted(prepared, floor, weights or {}))


def _effective(weights: NDArray[np.float64]) -> float:
    """Return the effective number of rows: (sum w)^2 / sum w^2."""
    ordered = np.sort(weights)
    squares = float((ordered**2).sum())
    return float(ordered.sum()) ** 2 / squares if squares else 0.0


def _counted(
    prepared: PermutationQuestion, floor: MinimumCounts, weights: Mapping[Any, float]
) -> Iterator[GroupCount]:
    problem = prepared.problem
    for i, key in enumerate(problem.keys):
        labels = problem.labels_of(i) if floor.of_each_label else None
        positive, negative = (None, None) if labels is None else labels
        of_rows = problem.weights_of(i)
        counts = {
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
        reason, withheld = floor.shortage(GroupCount(**counts))
        yield GroupCount(**counts, reason=reason, withheld=withheld)
    for group in prepared.left_out:
        yield GroupCount.uncounted(
            group.group, group.n_rows, group.reason, weights.get(group.group)
        )


def unmeasured_groups(
    sizes: dict[GroupKey, int],
    reasons: dict[Any, str],
    groups: Sequence[Any] | None,
    weights: Mapping[Any, float],
) -> list[GroupCount]:
    """Return all groups as untested: fewer than two of them have a value."""
    kept = {group_label(key): n for key, n in sizes.items()}
    if groups is not None:
        kept = {group: n for group, n in kept.items() if group in list(groups)}
    return [
        GroupCount.uncounted(
            group, n, reasons.get(group, "no other group to compare with"), weights.get(group)
        )
        for group, n in kept.items()
    ]
