"""Which groups have enough rows that count for a verdict, and what the others lack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..data.equality import Value
from ..data.groups import label
from ..metrics.metric import Metric
from .question import Question

#: Rows that count which a group needs: the fewest with which ten questions at the tolerance fail in
#: at most 5 % of audits.
ROWS = 30
#: Of metrics that rest on both labels, and of each label.
ROWS_OF_LABELS = 50
OF_EACH_LABEL = 10
#: Of the AUC, which near 1 errs in 6.9 % of audits with 12 positive labels.
OF_EACH_LABEL_FOR_RANKS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedGroup(Value):
    """A group of a question: its rows, those that count, and its value."""

    group: Any
    n_rows: int
    #: Rows in the denominator of the metric.
    n_counted: int
    value: float
    #: Rows of each label that count, of metrics that rest on both.
    n_positive: int | None = None
    n_negative: int | None = None
    #: Why it is not tested.
    reason: str | None = None
    #: Whether it could be tested, and is left out by a floor that was raised.
    withheld: bool = False

    @property
    def is_tested(self) -> bool:
        """Whether it is compared with others."""
        return self.reason is None

    @classmethod
    def uncounted(cls, group: Any, n_rows: int, reason: str) -> CountedGroup:
        """Return a group that has no value, or nothing to be compared with."""
        return cls(group=group, n_rows=n_rows, n_counted=0, value=float("nan"), reason=reason)


@dataclass(frozen=True, kw_only=True)
class Floor:
    """The rows that a group needs for a metric."""

    #: What the method needs, and what a policy asks for.
    least: int
    wanted: int
    #: Rows of each label; 0 where labels play no part.
    of_each_label: int

    @classmethod
    def of(cls, metric: Metric, wanted: int | None) -> Floor:
        """Return the floor of a metric; a policy can raise it."""
        by_labels = _rests_on_labels(metric)
        least = ROWS_OF_LABELS if by_labels else ROWS
        of_ranks = metric.kind.reads == "scores" and metric.kind.compares_labels
        of_each = OF_EACH_LABEL_FOR_RANKS if of_ranks else OF_EACH_LABEL
        of_each = of_each if by_labels else 0
        return cls(least=least, wanted=max(least, wanted or 0), of_each_label=of_each)

    @property
    def told(self) -> str:
        """What a group needs, in words."""
        rows = f"{self.wanted:,} rows that count"
        return f"{rows}, {self.of_each_label} of each label" if self.of_each_label else rows

    def shortage(self, group: CountedGroup) -> tuple[str | None, bool]:
        """Return what a group has too little of, and whether only a policy says so."""
        counting = _rows(group.n_counted, "that counts" if group.n_counted == 1 else "that count")
        if group.n_counted < self.least:
            return f"{counting}, of {self.least:,} needed", False
        of_labels = {"positive": group.n_positive, "negative": group.n_negative}
        for name, n in of_labels.items():
            if n is not None and n < self.of_each_label:
                labelled = _rows(n, f"with a {name} label")
                return f"{labelled}, of {self.of_each_label} needed", False
        if group.n_counted < self.wanted:
            return f"{counting}, of {self.wanted:,} that the policy asks for", True
        return None, False


def _rows(n: int, which: str) -> str:
    return f"{n:,} row{'' if n == 1 else 's'} {which}"


def _rests_on_labels(metric: Metric) -> bool:
    """Whether few rows of one label are too few: F1, AUC, losses of scores, any function."""
    kind = metric.kind
    of_losses = kind.reads == "rows" and "y_true" in metric.needs and not metric.is_residual
    return kind.compares_labels or of_losses or kind.reads == "function"


def counted_groups(posed: Question, floor: Floor) -> tuple[CountedGroup, ...]:
    """Return all groups of a question with their counts, and why some are not tested."""
    return tuple(_counted(posed, floor))


def _counted(posed: Question, floor: Floor) -> Iterator[CountedGroup]:
    problem = posed.problem
    for i, key in enumerate(problem.keys):
        labels = problem.labels_of(i) if floor.of_each_label else None
        positive, negative = (None, None) if labels is None else labels
        found = {
            "group": label(key),
            "n_rows": problem.n_rows[i],
            "n_counted": problem.n_used(i),
            "value": problem.evaluations[i].value,
            "n_positive": positive,
            "n_negative": negative,
        }
        reason, withheld = floor.shortage(CountedGroup(**found))
        yield CountedGroup(**found, reason=reason, withheld=withheld)
    for one in posed.left_out:
        yield CountedGroup.uncounted(one.group, one.n_rows, one.reason)
