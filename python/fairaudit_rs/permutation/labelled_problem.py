"""Problems of rows with labels: which groups have too few of one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from .problem import Problem

#: With fewer rows of a label than this in a group, un-pooled tests of ranks can miss their level;
#: docs/atlas/permutation.md has the figures.
FEW_LABELS = 20
#: With fewer in a cell of the confusion table, those of counts can, and intervals be too short:
#: where a cell with one expected row carries the metric, 30 to 40 % of its samples are empty.
FEW_IN_CELL = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledProblem(Problem):
    """A problem of rows with labels, of which a group can have too few."""

    @property
    @abstractmethod
    def fewest(self) -> Sequence[tuple[int, str]] | None:
        """The smallest count that the metric rests on in each group, and of what; None: of rows."""

    def notes_of_few(self) -> list[str]:
        """Note the groups in which a label, or a cell of the confusion table, has few rows."""
        if self.fewest is None or self.scaling != "unpooled":
            return []
        enough = FEW_LABELS if self.metric.kind.reads == "scores" else FEW_IN_CELL
        return [
            f"{name} has only {few} {kind}: with few of them (below {enough}) the test of "
            f"{self.metric.name} can reject too often and its interval be too short"
            for name, (few, kind) in zip(self.names, self.fewest, strict=True)
            if few < enough
        ]
