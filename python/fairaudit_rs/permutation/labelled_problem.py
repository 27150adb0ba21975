"""Base class of problems with labels: notes groups in which a label has too few rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ..report.notes import Note
from .problem import Problem

#: With fewer rows of a label than this in a group, un-pooled tests of ranks can miss their level;
#: docs/atlas/permutation.md has the figures.
FEW_LABELS = 20
#: With fewer rows in a cell of the confusion table, tests of counts can too, and intervals can be
#: too short: a cell with one expected row is empty in 30 to 40 % of samples.
FEW_IN_CELL = 5
#: The codes of notes on few rows, by words in the description of these rows.
_FEW_CODES = {
    "positive label": "few-positive-labels",
    "negative label": "few-negative-labels",
    "true positive": "few-true-positives",
    "false positive": "few-false-positives",
    "false negative": "few-false-negatives",
    "true negative": "few-true-negatives",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledProblem(Problem):
    """A problem with labels."""

    @property
    @abstractmethod
    def fewest(self) -> Sequence[tuple[int, str]] | None:
        """The smallest count behind the metric, with its name, by group; None if it is the rows."""

    def notes_of_few(self) -> list[Note]:
        """Note the groups in which a label, or a cell of the confusion table, has few rows."""
        if self.fewest is None or self.scaling != "unpooled":
            return []
        enough = FEW_LABELS if self.metric.kind.reads == "scores" else FEW_IN_CELL
        return [
            Note(
                next(code for words, code in _FEW_CODES.items() if words in kind),
                f"{name} has only {few} {kind}: with few of them (below {enough}) the test of "
                f"{self.metric.name} can reject too often and its interval be too short",
                (name,),
            )
            for name, (few, kind) in zip(self.names, self.fewest, strict=True)
            if few < enough
        ]
